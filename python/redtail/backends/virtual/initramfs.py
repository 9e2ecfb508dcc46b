"""What the guest starts with: an archive of files that its kernel unpacks into memory.

The form is "newc" without compression (Documentation/driver-api/early-userspace/buffer-format.rst
of Linux). The guest finds in it

    /init                  the agent
    /bin/ip, /bin/tc       those that were fetched with the kernel, or else this computer's, with
                           their libraries where the programs look for them
    /modules               the modules to load, a path in each line, in the order to load them
    /modules.d/NAME.ko
    /bin/bpftool           this computer's, if there are objects in BPF
    /objects               these, in the form of /modules
    /objects.d/NAME.bpf.o
    /programs           the root filesystem of the user's programs (`roots`), if there are some
    /dev, /proc, /sys, /run, /tmp
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from redtail.backends import host
from redtail.backends.virtual import images, objects
from redtail.backends.virtual import programs as of_guest
from redtail.backends.virtual.kernels import PROGRAMS, Kernel
from redtail.backends.virtual.roots import MOUNTED, Root
from redtail.errors import SpecError

# Where the agent finds the root filesystem of programs (crates/live/src/guest.rs).
_ROOT = "programs"
_FILE, _FOLDER = 0o100000, 0o040000
# A user's PATH has not always the folders of an administrator's programs.
_ADMIN = "/usr/sbin:/sbin"
# Libraries for newer processors than the guest's, beside which those for all are.
_FOR_PROCESSORS = re.compile(r"/glibc-hwcaps/[^/]+")


def build(kernel: Kernel, agent: Path, root: Root | None = None) -> bytes:
    """Return the archive for a kernel; the same bytes for the same files.

    Args:
        kernel: whose modules it has.
        agent: the program that the kernel starts as its first process.
        root: what programs of the user find at `/`.

    Raises:
        SpecError: the agent or a program is missing.
        StoreError: the kernel's files are not those that were fetched or added.
    """
    kernel.check()
    try:
        files = {"init": (0o755, agent.read_bytes())}
    except OSError as error:
        raise SpecError(
            f"{agent}: the program for the guest cannot be read: {error.strerror}; `make dev` "
            "builds it",
            key="backend",
        ) from None
    programs, libraries = _programs(kernel), _libraries(str(agent))
    files |= libraries
    files |= programs  # a newer C library than this computer's runs the agent, too
    _require_new_enough(kernel, agent, [Path("/", path) for path in libraries])
    paths = kernel.to_load()
    names = [f"modules.d/{images.module_name(path)}.ko" for path in paths]
    files["modules"] = (0o644, "".join(f"/{name}\n" for name in names).encode())
    for name, module in zip(names, paths, strict=True):
        files[name] = (0o644, images.module_bytes(module))
    return archive({**_objects(kernel), **files, **_of_programs(root)})


def _of_programs(root: Root | None) -> dict[str, tuple[int, bytes]]:
    """Return the entries of a root filesystem, and the folders in it that the guest mounts over."""
    if root is None:
        return {}
    mounted = {name: (_FOLDER | 0o755, b"") for name in MOUNTED}
    return {f"{_ROOT}/{path}": entry for path, entry in {**root.entries, **mounted}.items()}


def _objects(kernel: Kernel) -> dict[str, tuple[int, bytes]]:
    """Return the kernel's objects in BPF, and the program that registers them, by their paths."""
    if not kernel.objects:
        return {}
    program = where(objects.PROGRAM)
    if program is None:
        raise SpecError(
            f"kernel {kernel.name} has congestion controls in BPF, and the program "
            f"{objects.PROGRAM}, which registers them, is not installed; it is in the package "
            "bpftool (Debian, Fedora), linux-tools-generic (Ubuntu) or bpf (Arch)",
            key="kernel",
        )
    data = Path(program).read_bytes()
    if not data.startswith(b"\x7fELF"):
        raise SpecError(
            f"kernel {kernel.name} has congestion controls in BPF, and {program} is a script, "
            "which the guest cannot run; accepted: a PATH in which the program itself comes first, "
            "such as /usr/lib/linux-tools/VERSION (Ubuntu)",
            key="kernel",
        )
    files = _libraries(os.path.realpath(program))
    files[f"bin/{objects.PROGRAM}"] = (0o755, data)
    names = {f"objects.d/{path.name}": path for path in kernel.objects}
    files["objects"] = (0o644, "".join(f"/{name}\n" for name in names).encode())
    return files | {name: (0o644, objects.content(path)) for name, path in names.items()}


def _programs(kernel: Kernel) -> dict[str, tuple[int, bytes]]:
    """Return the programs of iproute2 and their libraries, by their paths."""
    files: dict[str, tuple[int, bytes]] = {}
    if kernel.iproute2:
        return {name: (mode, path.read_bytes()) for name, (mode, path) in kernel.programs.items()}
    for program, package in PROGRAMS.items():
        found = where(program)
        if found is None:
            raise SpecError(
                f"backend linux cannot run on this host: {host.not_installed(program, package)}",
                key="backend",
            )
        files[f"bin/{program}"] = (0o755, Path(found).read_bytes())
        files |= _libraries(os.path.realpath(found))
    return files


def _require_new_enough(kernel: Kernel, agent: Path, libraries: Sequence[Path]) -> None:
    """Refuse programs whose C library, which the guest has only once, is too old for the agent."""
    files = kernel.programs
    if not files or not libraries:
        return
    loader = files[of_guest.LOADER][1]
    own = loader.parents[1] / of_guest.LIBRARIES
    folders = list(dict.fromkeys(library.parent for library in libraries))
    if not of_guest.runs(loader, [own, *folders], agent):
        raise SpecError(
            f"kernel {kernel.name} cannot be used: its suite has an older C library than this "
            "computer; accepted: a kernel that was fetched without --suite, or from a newer suite",
            key="kernel",
        )


def where(program: str) -> str | None:
    """Return the path of a program of this computer, None if it is not installed."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{_ADMIN}")


def _libraries(program: str) -> dict[str, tuple[int, bytes]]:
    """Return the libraries and the loader that a program needs, by their paths.

    Raises:
        SpecError: one is not installed.
    """
    files: dict[str, tuple[int, bytes]] = {}
    own = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
    try:
        ran = subprocess.run(
            ["ldd", program],
            env={**own, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise SpecError(
            f"backend linux cannot run on this host: the program `ldd`, which comes with the C "
            f"library, cannot be started: {error.strerror}",
            key="backend",
        ) from None
    for line in ran.stdout.splitlines():  # none for a program without shared libraries
        path = re.search(r"/\S+", line)
        if path:
            library = _FOR_PROCESSORS.sub("", path[0])
            library = library if os.path.exists(library) else path[0]
            files[library.lstrip("/")] = (0o755, Path(library).read_bytes())
        elif "not found" in line:
            raise SpecError(
                f"backend linux cannot run on this host: {program} lacks a library: {line.strip()}",
                key="backend",
            )
    return files


def archive(files: Mapping[str, tuple[int, bytes]]) -> bytes:
    """Return an archive of files, and the folders that they and the guest need.

    Owner, times and numbers do not depend on where and when it is made.

    Args:
        files: permissions and content of each file, by its path without a slash at the beginning.
            A mode with a kind makes a folder, or a link to the path that is its content.
    """
    folders = {*MOUNTED}
    for path in files:
        folders |= {str(parent) for parent in Path(path).parents} - {"."}
    folders -= files.keys()
    entries = [(path, _FOLDER | (0o1777 if path == "tmp" else 0o755), b"") for path in folders]
    entries += [
        (path, mode if stat.S_IFMT(mode) else _FILE | mode, data)
        for path, (mode, data) in files.items()
    ]
    # Sorted by path, so that a folder comes before what is in it.
    parts = [_entry(at, *each) for at, each in enumerate(sorted(entries), start=1)]
    return b"".join([*parts, _entry(0, "TRAILER!!!", 0, b"")])


def _entry(number: int, path: str, mode: int, data: bytes) -> bytes:
    name = os.fsencode(path) + b"\0"
    # inode, mode, user, group, links, time, size, four numbers of devices, length of name, checksum
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08x" % each for each in fields) + name
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
