"""The kernels that the backend `linux` can start, for x86-64 alone.

They are kept in a folder for each, in `$REDTAIL_KERNELS` or else below the folder of caches:

    kernels/NAME/image           the kernel: a bzImage, or an ELF file
                 modules/*.ko    queues, classifiers, redirection, congestion controls, tun, and
                                 what they need, decompressed
                 modules/modules.builtin
                 objects/*.bpf.o congestion controls in BPF, if some were added
                 programs/       iproute2 with its libraries, if it was fetched with the kernel
                 kernel.json     what else is known of it

A folder is made aside and renamed when it is whole, so that nothing half-written can be found.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from redtail.backends.host import FILTERS, QUEUES
from redtail.backends.virtual import images, objects, packages, suites
from redtail.backends.virtual import programs as of_guest
from redtail.errors import Cancelled, SpecError, StoreError
from redtail.files import caches, is_file_name, path_of, plain_bytes
from redtail.store import format, sealing, writing

_ABOUT = "kernel.json"
_IMAGE = "image"
_MODULES = "modules"
_OBJECTS = "objects"
_PROGRAMS = "programs"

_LARGEST_ABOUT = 1 << 20

_OF = "redtail kernel"
"""What a description says that it is; without it a folder is not redtail's, and never removed."""

# The files in the folder of a kernel.
_OURS = re.compile(
    rf"{_IMAGE}|{re.escape(_ABOUT)}|{_MODULES}/[^/]+|{_OBJECTS}/[^/]+|{_PROGRAMS}/.+"
)

NO_PROGRAMS: Mapping[str, tuple[int, Path]] = MappingProxyType({})

REQUIRED = {"tun": "CONFIG_TUN"}
"""Modules without which the guest cannot work, and the setting that makes each."""

PROGRAMS = {"ip": "iproute", "tc": "iproute-tc"}
"""The programs of iproute2 in the guest, each with Fedora's package."""

CLASSIFIERS = ("cls_flower", "cls_matchall", "cls_u32", "cls_fw", "act_gact", "act_skbedit")
"""Modules that put packets into classes."""

REDIRECTION = ("act_mirred", "ifb")
"""Modules that put what arrives at a device into a queue (`redtail.lines.routers.linux`)."""

# The kernel always has these: net/sched/sch_fifo.c is a part of CONFIG_NET_SCHED.
_ALWAYS_QUEUES = ("bfifo", "pfifo", "pfifo_head_drop")
# Reno cannot be left out: net/ipv4/tcp_cong.c.
_ALWAYS_CONTROLS = ("reno",)
# Modules whose kinds have other names than they, or that have none.
_KINDS = {"ingress": ("clsact", "ingress"), "teql": ("teql0",), "mqprio_lib": ()}
_NOT_CONTROLS = {"tcp_diag", "tcp_probe", "tcp_sigpool"}

GET_ONE = (
    "`redtail kernel fetch` gets one from this distribution's packages, and `redtail kernel add "
    "NAME --image FILE --modules DIR` takes one of yours"
)


@dataclass(frozen=True)
class Kernel:
    """A Linux kernel for x86-64.

    Attributes:
        name: what the user calls it.
        release: what it calls itself, such as "6.1.0-56-cloud-amd64".
        image: a bzImage, or an ELF file with a PVH note.
        modules: a folder; it and those below it have *.ko, *.ko.xz, *.ko.gz or *.ko.zst.
        origin: a package and its version, or the paths that the user gave.
        identity: a SHA-256 over the image and the modules that are kept, and over its programs.
        added: when it was fetched or added, in nanoseconds since 1970.
        iproute2: the version that was fetched with it; empty if the guest has this computer's.
        own: modules of the user that are to be kept with it, each in place of one of its name.
        objects: congestion controls in BPF, a file for each.
    """

    name: str
    release: str
    image: Path
    modules: Path
    origin: str
    identity: str = ""
    added: int = 0
    iproute2: str = ""
    own: tuple[Path, ...] = ()
    objects: tuple[Path, ...] = ()

    @property
    def programs(self) -> dict[str, tuple[int, Path]]:
        """The files of iproute2 that were fetched with it: permissions and file, by path."""
        return of_guest.kept_in(self.image.parent / _PROGRAMS) if self.iproute2 else {}

    @cached_property
    def found(self) -> images.Modules:
        """The files of its modules, and what is built in."""
        return images.modules_in(self.modules, self.release).with_files(self.own)

    def queues(self) -> list[str]:
        """Return the kinds of queue that it has, by the names that `tc` has for them, sorted."""
        return sorted({*_ALWAYS_QUEUES, *_queues(self.found)})

    def filters(self) -> list[str]:
        """Return the kinds of filters of `redtail.backends.host.FILTERS` that it has."""
        has = self.found.files.keys() | self.found.builtin
        return [kind for kind, (module, _) in FILTERS.items() if module in has]

    def controls(self) -> list[str]:
        """Return the TCP congestion controls that it has, sorted."""
        modules = (name[4:] for name in _controls(self.found))
        return sorted({*_ALWAYS_CONTROLS, *modules, *map(objects.control, self.objects)})

    def to_load(self) -> list[Path]:
        """Return the modules that the guest loads, each after those that it needs.

        They are `tun`, the queues of `redtail.backends.host.QUEUES` with what `tc` needs to put
        packets into them and their classes, and all congestion controls.

        Raises:
            SpecError: a module needs another one that is not there.
        """
        queues = [f"sch_{kind}" for kind in (*QUEUES, "ingress")]  # sch_ingress has clsact
        controls = sorted(_controls(self.found))
        return self.found.order([*REQUIRED, *sorted(queues), *CLASSIFIERS, *REDIRECTION, *controls])

    @property
    def size(self) -> int:
        """The bytes of its image and of the files of its modules and programs."""
        programs = (path for _, path in self.programs.values())
        paths = (self.image, *self.found.files.values(), *self.objects, *programs)
        return sum(path.stat().st_size for path in paths)

    def check(self) -> None:
        """Compare the files with the identity that was computed when it was fetched or added.

        Raises:
            StoreError: they are not those, or cannot be read.
        """
        try:
            now = identity_of(self.image, self.found, self.programs, self.objects)
        except (SpecError, OSError) as error:
            raise StoreError(f"kernel {self.name} is damaged: {error}; {_again(self)}") from None
        if now != self.identity:
            raise StoreError(
                f"kernel {self.name}: the files in {self.image.parent} are not those that were "
                f"put there; {_again(self)}"
            )

    def as_json(self) -> dict[str, Any]:
        """Return it as `redtail kernel list --json` prints it."""
        return {
            "name": self.name,
            "release": self.release,
            "origin": self.origin,
            "identity": self.identity,
            "image": str(self.image),
            "modules": str(self.modules),
            "queues": self.queues(),
            "controls": self.controls(),
            "iproute2": self.iproute2 or None,
            "bytes": self.size,
        }


def _again(kernel: Kernel) -> str:
    return f"`redtail kernel remove {kernel.name}` removes it; then {GET_ONE}"


def _queues(found: images.Modules) -> Iterator[str]:
    """Yield the kinds of queue that are modules or built in."""
    names = {name for name in (*found.files, *found.builtin) if name.startswith("sch_")}
    for name in names:
        # A part that several queues share, such as sch_mqprio_lib, makes none known to the kernel.
        if name in found.builtin or b"register_qdisc" in images.module_bytes(found.files[name]):
            yield from _KINDS.get(name[4:], (name[4:],))


def _controls(found: images.Modules) -> Iterator[str]:
    """Yield the modules, or built-in parts, that are congestion controls."""
    names = {name for name in (*found.files, *found.builtin) if name.startswith("tcp_")}
    for name in names - _NOT_CONTROLS:
        if name in found.builtin or b"tcp_register_congestion_control" in images.module_bytes(
            found.files[name]
        ):
            yield name


def _kept(found: images.Modules) -> list[Path]:
    """Return the files of the modules that are kept: all that an experiment could need."""
    queues = sorted(name for name in found.files if name.startswith("sch_"))
    controls = sorted(_controls(found))
    return found.order([*REQUIRED, *queues, *CLASSIFIERS, *REDIRECTION, *controls])


def identity_of(
    image: Path,
    found: images.Modules,
    programs: Mapping[str, tuple[int, Path]] = NO_PROGRAMS,
    of_bpf: Sequence[Path] = (),
) -> str:
    """Return a SHA-256 in hexadecimal over an image and what is kept with it."""
    whole = hashlib.sha256()
    with open(image, "rb") as file:
        whole.update(hashlib.file_digest(file, "sha256").digest())
    for path in sorted(_kept(found), key=images.module_name):
        content = hashlib.sha256(images.module_bytes(path)).hexdigest()
        whole.update(f"{images.module_name(path)} {content}\n".encode())
    whole.update("\n".join(sorted(found.builtin)).encode())
    for name, (_, path) in sorted(programs.items()):
        whole.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    for path in sorted(of_bpf, key=objects.control):
        content = hashlib.sha256(objects.content(path)).hexdigest()
        whole.update(f"{objects.control(path)} {content}\n".encode())
    return whole.hexdigest()


def store() -> Path:
    """Return the folder in which kernels are kept.

    It is `$REDTAIL_KERNELS`, or else `redtail/kernels` in `$XDG_CACHE_HOME`, by default ~/.cache
    (the XDG Base Directory Specification).
    """
    own = os.environ.get("REDTAIL_KERNELS")
    if own:
        return path_of(own)
    return caches() / "kernels"


def known() -> list[Kernel]:
    """Return the kernels that are kept, sorted by name.

    Raises:
        StoreError: the folder cannot be read, or what it says of a kernel is damaged.
    """
    folder = store()
    try:
        names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{folder}: kernels cannot be read: {error.strerror}") from None
    return [_read(folder / name) for name in names if (folder / name / _ABOUT).exists()]


def _read(folder: Path) -> Kernel:
    """Return the kernel in a folder of the store."""
    about = _described(folder)
    return Kernel(
        folder.name,
        release=about["release"],
        image=folder / _IMAGE,
        modules=folder / _MODULES,
        origin=about["origin"],
        identity=about["identity"],
        added=about["added"],
        iproute2=about["iproute2"],
        objects=tuple(sorted((folder / _OBJECTS).glob("*"))),
    )


def _described(folder: Path) -> dict[str, Any]:
    """Return what the description of a kernel says.

    Raises:
        StoreError: it is none of redtail, so that nothing tells that the folder is redtail's.
    """
    file = folder / _ABOUT
    try:
        about: dict[str, Any] = json.loads(plain_bytes(file, _LARGEST_ABOUT))
        if about["of"] != _OF or about["name"] != folder.name:
            raise ValueError(f"it is not of the {_OF} {folder.name}")
        sealing.expect(about["added"], int, "added")
        for key in ("release", "origin", "identity", "iproute2"):
            sealing.expect(about[key], str, key)
    except format.MALFORMED as error:
        raise StoreError(
            f"{file}: is damaged, or not of redtail: {format.brief(error)}; so nothing tells that "
            f"{folder} is redtail's: move or remove it yourself"
        ) from None
    return about


def default(kernels: list[Kernel]) -> Kernel:
    """Return the kernel that is meant when none is named: the one fetched or added last."""
    return max(kernels, key=lambda kernel: (kernel.added, kernel.name))


def find(name: str | None = None) -> Kernel:
    """Return a kernel.

    Args:
        name: its name; None for the one that was fetched or added last.

    Raises:
        SpecError: there is none, or none of this name.
        StoreError: as for `known`.
    """
    kernels = known()
    if not kernels:
        wanted = "there is no kernel" if name is None else f'kernel = "{name}": there is no kernel'
        raise SpecError(f"{wanted}; {GET_ONE}", key="kernel")
    if name is None:
        return default(kernels)
    for kernel in kernels:
        if kernel.name == name:
            return kernel
    raise SpecError(
        f'kernel = "{name}": there is no kernel of this name; accepted: '
        + ", ".join(kernel.name for kernel in kernels),
        key="kernel",
    )


def examine(name: str, image: Path, modules: Path, origin: str = "") -> Kernel:
    """Return the kernel in files of the user, where they are.

    Args:
        name: what to call it.
        image: a bzImage, or a vmlinux with a PVH note.
        modules: a folder with its modules and its list modules.builtin, which may be deep in it.
        origin: where it comes from; by default the two paths.

    Raises:
        SpecError: the files are not those of one kernel for x86-64 with what a guest needs.
    """
    release = images.release_of(image)
    found = images.modules_in(modules, release)
    kept = _kept(found)
    for path in kept:
        built_for = images.vermagic(path, images.module_bytes(path))
        release = release or built_for
        if built_for != release:
            raise SpecError(
                f"{path}: was built for the kernel {built_for}, and {image} is {release}; "
                "accepted: modules of the same kernel"
            )
    if not release:
        raise SpecError(
            f"{image}: neither the image nor a module in {modules} tells the kernel's release; "
            "accepted: a bzImage, or a folder with the kernel's modules"
        )
    for module, setting in REQUIRED.items():
        if module not in found:
            why = "" if found.told else f", and no file {images.BUILTIN} tells what is built in"
            raise SpecError(
                f"{modules}: the kernel {release} has no module {module}{why}; accepted: a "
                f"kernel with {setting}=m or {setting}=y, and the folder with its modules and "
                f"its file {images.BUILTIN}"
            )
    origin = origin or f"{image.absolute()}, {modules.absolute()}"
    return Kernel(name, release, image, found.folder, origin, identity_of(image, found))


def add(
    name: str,
    image: Path | None = None,
    modules: Path | None = None,
    iproute2: str | None = None,
    *,
    base: str | None = None,
    own: Sequence[Path] = (),
    bpf: Sequence[Path] = (),
) -> Kernel:
    """Keep a copy of a kernel of the user, or of one that is kept, with modules of the user.

    Args:
        name: what to call it.
        image: a bzImage, or a vmlinux with a PVH note; None for that of `base`.
        modules: a folder with its modules and its list modules.builtin, which may be deep in it.
        iproute2: the name of a kernel that was fetched from another suite, whose iproute2 the guest
            gets; None for this computer's, or for that of `base`.
        base: the name of a kernel that is kept; None for the default one.
        own: files of modules: congestion controls (tcp_NAME), queues (sch_NAME), and what these
            need. One stands in place of the kernel's own of its name.
        bpf: congestion controls in BPF: NAME.bpf.o with a struct_ops of that name.

    Raises:
        SpecError: the name is taken or is none, the files are not those of one kernel for x86-64
            with what a guest needs, a module does not fit it, or no iproute2 was fetched with that
            kernel.
        StoreError: the copy cannot be written.
        Cancelled: by Ctrl-C.
    """
    _require_name(name)
    with _undone("added"):
        if (store() / name).exists():
            raise SpecError(
                f"{name}: there is a kernel of this name; accepted: another name, or first "
                f"`redtail kernel remove {name}`",
                key="NAME",
            )
        own, bpf = [path_of(path) for path in own], [path_of(path) for path in bpf]
        kernel, programs = _to_copy(name, image, modules, base, (own, bpf))
        _require_fitting(kernel)
        if iproute2 is not None:
            other = find(iproute2)
            if not other.iproute2:
                raise SpecError(
                    f"--iproute2 {iproute2}: no iproute2 was fetched with this kernel; accepted: a "
                    "kernel from `redtail kernel fetch --suite NAME`",
                    key="--iproute2",
                )
            kernel, programs = replace(kernel, iproute2=other.iproute2), other.programs
        with _aside(name) as folder:
            return _put(kernel, folder, programs)


def _to_copy(
    name: str,
    image: Path | None,
    modules: Path | None,
    base: str | None,
    added: tuple[Sequence[Path], Sequence[Path]],
) -> tuple[Kernel, Mapping[str, tuple[int, Path]]]:
    """Return the kernel that a copy is made of, with modules of the user, and its programs.

    Raises:
        SpecError: it is not said which one, or as for `examine`.
    """
    if image is not None and modules is not None and base is None:
        return _with(examine(name, path_of(image), path_of(modules)), *added), NO_PROGRAMS
    if image is not None or modules is not None or not any(added):
        raise SpecError(
            f"{name}: it is not said what the kernel is; accepted: --image FILE with --modules "
            "DIR, or --module FILE or --bpf FILE, whose kernel is the default one or that of "
            "--base",
            key="--image",
        )
    kept = find(base)
    kept.check()
    return replace(_with(kept, *added), name=name), kept.programs


def _with(kernel: Kernel, own: Sequence[Path], bpf: Sequence[Path]) -> Kernel:
    """Return a kernel with modules and objects of the user."""
    if not own and not bpf:
        return kernel
    for path in bpf:
        objects.require(path)
    names = ", ".join(path.name for path in (*own, *bpf))
    origin = f"{kernel.origin}, with {names}"
    return replace(kernel, own=tuple(own), objects=(*kernel.objects, *bpf), origin=origin)


def _require_fitting(kernel: Kernel) -> None:
    """Refuse modules of the user that the kernel would not load, or that no run could use.

    Raises:
        SpecError: one was built for another kernel, or is none of those that are kept.
    """
    kept = {images.module_name(path): path for path in _kept(kernel.found)}
    others = (path for path in kept.values() if path not in kernel.own)
    wanted = {images.whole_vermagic(path, images.module_bytes(path)) for path in others}
    for path in kernel.own:
        name, data = images.module_name(path), images.module_bytes(path)
        built_for = images.whole_vermagic(path, data)
        if images.vermagic(path, data) != kernel.release or (wanted and built_for not in wanted):
            raise SpecError(
                f"{path}: was built for the kernel {built_for}, and the kernel is "
                f"{', '.join(sorted(wanted)) or kernel.release}; accepted: a module that was built "
                "with the headers and the configuration of this kernel",
                key="--module",
            )
        if name not in kept:
            raise SpecError(
                f"{path}: is nothing that a run could use; accepted: a congestion control, which "
                "is a module tcp_NAME that calls tcp_register_congestion_control; a queue, "
                "sch_NAME; and what these need",
                key="--module",
            )
        control = name.removeprefix("tcp_")
        if name in _controls(kernel.found) and not images.has_text(data, control):
            raise SpecError(
                f"{path}: does not register a congestion control of the name {control}; accepted: "
                "for one of the name NAME the file tcp_NAME.ko",
                key="--module",
            )
    names = [*map(objects.control, kernel.objects), *(name[4:] for name in _controls(kernel.found))]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SpecError(
            f"two congestion controls have the name {twice[0]}; accepted: a name for each",
            key="--module",
        )


def _require_name(name: str) -> None:
    if not is_file_name(name) or name.startswith("-"):
        raise SpecError(
            f"{name}: cannot be the name of a kernel; accepted: letters, digits, and signs such "
            "as - and . between them",
            key="NAME",
        )


def fetch(
    package: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
    suite: str | None = None,
) -> Kernel:
    """Get a kernel from the packages of this computer's distribution, without root.

    It is called by its release. If the same version of the package is here already, nothing is
    downloaded. It becomes the default.

    Args:
        package: a package with a kernel, or one that depends on it; NAME=VERSION for another
            version than the newest. By default linux-image-cloud-amd64 (Debian) or
            linux-image-virtual (Ubuntu), the distributions' kernels for virtual machines.
        progress: is told what is being done.
        suite: the name of another suite of the distribution than this computer's, such as "sid";
            iproute2 comes from there, too.

    Raises:
        SpecError: this is not Debian or Ubuntu on x86-64, there is no such package or suite, or it
            has no kernel that a guest can use.
        RedtailError: it could not be downloaded or unpacked.
        StoreError: it cannot be written.
        Cancelled: by Ctrl-C.
    """
    with _undone("fetched"), _aside("fetched") as folder:
        packages.require_apt()
        source = suites.SYSTEM
        if suite is not None:
            with _writing(folder):
                source = suites.find(suite, folder / "suite", progress)
        wanted = packages.resolve(package, source)
        for kernel in known():
            if kernel.origin == wanted.origin and kernel.iproute2 == wanted.iproute2:
                progress(f"{wanted.origin} is here already")
                return _made_default(kernel)
        with _writing(folder):
            folder.mkdir(exist_ok=True)
        unpacked, programs = packages.unpack(wanted, folder, progress, source)
        progress("checking the kernel and its modules")
        kernel = examine(wanted.origin, _image_in(unpacked, wanted), unpacked, wanted.origin)
        kernel = replace(kernel, name=kernel.release, iproute2=wanted.iproute2)
        _require_ours(kernel, wanted)
        found = of_guest.found_in(programs, tuple(PROGRAMS)) if programs else NO_PROGRAMS
        return _put(kernel, folder / "kept", found)


def headers(
    folder: Path,
    name: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
    suite: str | None = None,
) -> Path:
    """Get what modules for a kernel are built with, from the packages of its distribution.

    Nothing is installed, and root is not needed.

    Args:
        folder: a new folder for it.
        name: the kernel, from `fetch`; None for the default one.
        progress: is told what is being done.
        suite: the suite that the kernel was fetched from, if it was one.

    Returns:
        The folder for `make -C`.

    Raises:
        SpecError: there is no such kernel, or it is of no package; the folder exists.
        RedtailError: the packages could not be downloaded or unpacked.
        StoreError: they cannot be written.
        Cancelled: by Ctrl-C.
    """
    folder = path_of(folder).absolute()
    if os.path.lexists(folder):
        raise SpecError(f"{folder}: exists; accepted: a new folder", key="DIR")
    kernel = find(name)
    packages.require_apt()
    aside = writing.temporary_path(folder.parent, folder.name)
    try:
        aside.mkdir(parents=True)
        source = suites.SYSTEM
        if suite is not None:
            source = suites.find(suite, aside / "suite", progress)
        wanted = packages.headers(kernel.origin, source)
        unpacked, _ = packages.unpack(wanted, aside, progress, source)
        tree = Path("usr/src") / wanted.image
        _name_place(unpacked / tree / "Makefile", folder)
        os.rename(unpacked, folder)
        return folder / tree
    except KeyboardInterrupt:
        raise Cancelled("interrupted; no headers were fetched") from None
    except OSError as error:
        whose = writing.owner(folder) if isinstance(error, PermissionError) else ""
        raise StoreError(
            f"{folder}: the headers cannot be written: {error.strerror or error}{whose}; "
            "accepted: a new folder where there is room for 100 MB"
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _name_place(makefile: Path, folder: Path) -> None:
    """Let a Makefile of Debian's headers include the common one in a folder, not in /usr/src."""
    if makefile.is_file() and not makefile.is_symlink():
        text = makefile.read_text(encoding="utf-8")
        text = text.replace("include /usr/src/", f"include {folder}/usr/src/")
        makefile.write_text(text, encoding="utf-8")


def _image_in(unpacked: Path, wanted: packages.Wanted) -> Path:
    found = sorted(path for path in unpacked.rglob("vmlinu[xz]*") if path.is_file())
    if not found:
        raise SpecError(
            f"{wanted.image}: the package has no image of a kernel (vmlinuz); accepted: a package "
            "such as linux-image-cloud-amd64",
            key="PACKAGE",
        )
    return found[0]


def _require_ours(kernel: Kernel, wanted: packages.Wanted) -> None:
    """Refuse to replace a kernel that comes from elsewhere than an older version of the package."""
    for other in known():
        if other.name == kernel.name and other.origin.split(" ")[0] != wanted.image:
            raise SpecError(
                f"{kernel.name}: there is a kernel of this name, from {other.origin}; first "
                f"`redtail kernel remove {kernel.name}`",
                key="PACKAGE",
            )


def remove(name: str) -> None:
    """Remove a kernel.

    Raises:
        SpecError: there is none of this name.
        StoreError: it cannot be removed.
    """
    folder = store() / name
    if not is_file_name(name) or not (folder / _ABOUT).exists():
        find(name)
        raise SpecError(f'kernel = "{name}": there is no kernel of this name', key="NAME")
    _take_away(folder)
    with _writing(folder):
        _sweep()


def _put(
    kernel: Kernel, folder: Path, programs: Mapping[str, tuple[int, Path]] = NO_PROGRAMS
) -> Kernel:
    """Copy a kernel and programs into a folder, move that to its place, return what is there."""
    with _writing(folder):
        (folder / _MODULES).mkdir(parents=True)
        shutil.copyfile(kernel.image, folder / _IMAGE)
    for path in _kept(kernel.found):
        data = images.module_bytes(path)
        with _writing(folder):
            (folder / _MODULES / f"{images.module_name(path)}.ko").write_bytes(data)
    for path in kernel.objects:
        data = objects.content(path)
        with _writing(folder):
            (folder / _OBJECTS).mkdir(exist_ok=True)
            (folder / _OBJECTS / path.name).write_bytes(data)
    names = (f"{name}.ko\n" for name in sorted(kernel.found.builtin))
    identity = identity_of(kernel.image, kernel.found, programs, kernel.objects)
    kernel = replace(kernel, added=_later_than_all(), identity=identity)
    place = store() / kernel.name
    with _writing(folder):
        (folder / _MODULES / images.BUILTIN).write_text("".join(names), encoding="utf-8")
        (folder / _ABOUT).write_text(_about(kernel), encoding="utf-8")
        of_guest.keep(programs, folder / _PROGRAMS)
    if os.path.lexists(place):
        _take_away(place)
    with _writing(folder):
        os.rename(folder, place)
    return _read(place)


def _take_away(folder: Path) -> None:
    """Remove the folder of a kernel, in which there is nothing but what `_put` has put there.

    Raises:
        StoreError: it is not of redtail, or something else is in it; then all of it stays.
    """
    if folder.is_symlink() or not (folder / _ABOUT).is_file():
        raise StoreError(f"{folder}: is no kernel that redtail keeps; move it away")
    _described(folder)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_dir() or _OURS.fullmatch(name)):
            raise StoreError(f"{path}: is not of redtail, so the kernel stays; move this file away")
    with _writing(folder):
        writing.remove(folder)


def _about(kernel: Kernel) -> str:
    keys = ("name", "release", "origin", "identity", "added", "iproute2")
    about = {"of": _OF, **{key: getattr(kernel, key) for key in keys}}
    return json.dumps(about, indent=2) + "\n"


def _later_than_all() -> int:
    """Return the present time; later than all kernels, since a clock may have stepped back."""
    return max([time.time_ns(), *(kernel.added + 1 for kernel in known())])


def _made_default(kernel: Kernel) -> Kernel:
    kernel = replace(kernel, added=_later_than_all())
    folder = kernel.image.parent
    with _writing(folder):
        writing.replace_file(folder / _ABOUT, _about(kernel).encode())
    return kernel


@contextlib.contextmanager
def _aside(name: str) -> Iterator[Path]:
    """Give the path of a folder beside the kernels, and remove what is there at the end."""
    folder = store()
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _sweep()
    path = writing.temporary_path(folder, name)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _sweep() -> None:
    """Remove what killed commands left; what is in use is left for the next time."""
    for path in writing.leftovers(store()):
        with contextlib.suppress(OSError):
            writing.remove(path)


@contextlib.contextmanager
def _undone(verb: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise Cancelled(f"interrupted; no kernel was {verb}") from None


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turn an operating system's refusal into a message that says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        todo = "REDTAIL_KERNELS=DIR chooses another folder"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            todo = f"make room, or {todo}"
        whose = writing.owner(folder) if isinstance(error, PermissionError) else ""
        raise StoreError(
            f"{store()}: the kernel cannot be written: {reason}{whose}; {todo}"
        ) from error
