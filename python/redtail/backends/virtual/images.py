"""The files of a kernel for x86-64: its image and its modules."""

from __future__ import annotations

import gzip
import lzma
import mmap
import os
import re
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from redtail.errors import SpecError

BUILTIN = "modules.builtin"
"""The file that lists the modules which the image has in it; each kernel's build makes it."""

_ACCEPTED = (
    "accepted: the bzImage (vmlinuz) of a kernel for x86-64, or its vmlinux if it is built with "
    "CONFIG_PVH"
)

# Documentation/arch/x86/boot.rst of Linux: offsets in the header of a bzImage.
_MAGIC = 0x202
_PROTOCOL = 0x206
_VERSION = 0x20E
_XLOADFLAGS = 0x236
_KERNEL_64 = 1
_WITH_XLOADFLAGS = 0x20C

# The ELF specification, and include/xen/interface/elfnote.h of Linux for the note that QEMU reads.
_ET_EXEC, _ET_DYN, _EM_X86_64, _PT_NOTE = 2, 3, 62, 4
_XEN_ELFNOTE_PHYS32_ENTRY = 18

_BANNER = re.compile(rb"Linux version (\S+) \(")
_VERMAGIC = re.compile(rb"(?<![ -~])vermagic=(([^\0 ]+)[^\0]*)")
_DEPENDS = re.compile(rb"(?<![ -~])depends=([^\0]*)")
_SUFFIX = re.compile(r"\.ko(\.xz|\.gz|\.zst)?$")


def release_of(image: Path) -> str:
    """Return the release of the kernel in an image, such as "6.1.0-56-cloud-amd64".

    Returns:
        The release, or "" for an image that does not tell it.

    Raises:
        SpecError: it cannot be read, is no kernel, or is one that the machine cannot start.
    """
    try:
        with (
            open(image, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            try:
                if data[:4] == b"\x7fELF":
                    return _release_of_elf(image, data)
                return _release_of_bzimage(image, data)
            except (struct.error, IndexError):
                raise SpecError(f"{image}: the image is cut off; {_ACCEPTED}") from None
    except OSError as error:
        raise SpecError(f"{image}: cannot be read: {error.strerror}; {_ACCEPTED}") from None
    except ValueError as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(f"{image}: is empty; {_ACCEPTED}") from None


def _release_of_bzimage(image: Path, data: mmap.mmap) -> str:
    if data[_MAGIC : _MAGIC + 4] != b"HdrS":
        raise SpecError(f"{image}: is not the image of a kernel; {_ACCEPTED}")
    (protocol,) = struct.unpack_from("<H", data, _PROTOCOL)
    (flags,) = struct.unpack_from("<H", data, _XLOADFLAGS)
    if protocol < _WITH_XLOADFLAGS or not flags & _KERNEL_64:
        raise SpecError(f"{image}: is a kernel for 32-bit x86; {_ACCEPTED}")
    (offset,) = struct.unpack_from("<H", data, _VERSION)
    if not offset:
        return ""
    begin = offset + 0x200
    words = data[begin : begin + 512].split(b"\0")[0].split()
    return words[0].decode(errors="replace") if words else ""


def _release_of_elf(image: Path, data: mmap.mmap) -> str:
    wide, little = data[4], data[5]
    kind, machine = struct.unpack_from("<HH", data, 16)
    if (wide, little) != (2, 1) or machine != _EM_X86_64:
        raise SpecError(f"{image}: is an ELF file for another processor; {_ACCEPTED}")
    if kind not in (_ET_EXEC, _ET_DYN):
        raise SpecError(f"{image}: is an ELF file, but not the image of a kernel; {_ACCEPTED}")
    banner = _BANNER.search(data)
    if not _has_entry(data):
        what = "is a kernel built without CONFIG_PVH" if banner else "is not the image of a kernel"
        raise SpecError(f"{image}: {what}; {_ACCEPTED}")
    return banner[1].decode(errors="replace") if banner else ""


LARGEST_MODULE = 256 << 20
"""Bytes of a module, decompressed. The largest of Debian's have some 10 MiB."""


def _has_entry(data: mmap.mmap) -> bool:
    """Return whether an ELF file has the note with the address at which QEMU enters a kernel."""
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for each in range(count):
        kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", data, table + each * size)
        end = at + length
        while kind == _PT_NOTE and at + 12 <= end:
            of_name, of_value, note = struct.unpack_from("<III", data, at)
            if note == _XEN_ELFNOTE_PHYS32_ENTRY and data[at + 12 : at + 15] == b"Xen":
                return True
            at += 12 + _padded(of_name) + _padded(of_value)
    return False


def _padded(size: int) -> int:
    return size + -size % 4


def module_name(path: Path) -> str:
    """Return the name by which the kernel knows the module in a file.

    >>> module_name(Path("kernel/drivers/char/hw_random/virtio-rng.ko.xz"))
    'virtio_rng'
    """
    return _SUFFIX.sub("", path.name).replace("-", "_")


def module_bytes(path: Path) -> bytes:
    """Return a module, decompressed.

    Raises:
        SpecError: it cannot be read or decompressed, or has more than `LARGEST_MODULE` bytes.
    """
    try:
        with path.open("rb") as file, _unpacked(file, path.suffix) as unpacked:
            data: bytes = unpacked.read(LARGEST_MODULE + 1)
        if len(data) > LARGEST_MODULE:
            raise ValueError(f"it has more than {LARGEST_MODULE >> 20} MiB")
        return data
    except (OSError, lzma.LZMAError, EOFError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecError(f"{path}: the module cannot be read: {reason}") from None


def _unpacked(file: IO[bytes], suffix: str) -> Any:
    """Return what reads the content of a file of this suffix."""
    match suffix:
        case ".xz":
            return lzma.LZMAFile(file)
        case ".gz":
            return gzip.GzipFile(fileobj=file)
        case ".zst":
            import pyarrow as pa

            return pa.CompressedInputStream(file, "zstd")
    return file


def vermagic(path: Path, data: bytes) -> str:
    """Return the release of the kernel that a module was built for.

    Raises:
        SpecError: it is no module.
    """
    return _vermagic(path, data)[2].decode(errors="replace")


def whole_vermagic(path: Path, data: bytes) -> str:
    """Return all that a module says of the kernel that it was built for.

    It is the release and settings that change what modules share with the kernel
    (include/linux/vermagic.h of Linux).

    Raises:
        SpecError: it is no module.
    """
    return _vermagic(path, data)[1].decode(errors="replace").strip()


def _vermagic(path: Path, data: bytes) -> re.Match[bytes]:
    found = _VERMAGIC.search(data)
    if found is None:
        raise SpecError(f"{path}: is not a kernel module: it has no vermagic")
    return found


def has_text(data: bytes, text: str) -> bool:
    """Return whether a module has a text as a whole, as a name in its structures is."""
    return re.search(rb"(?<![ -~])" + re.escape(text.encode()) + rb"\0", data) is not None


def depends(data: bytes) -> list[str]:
    """Return the names of the modules that a module needs directly."""
    found = _DEPENDS.search(data)
    names = found[1].decode(errors="replace").split(",") if found else []
    return [name.replace("-", "_") for name in names if name]


@dataclass(frozen=True)
class Modules:
    """The modules that a folder has.

    Attributes:
        folder: the folder.
        files: the file of each module, by its name.
        builtin: the names of those that the image has in it.
        told: whether there is a file that tells the latter.
    """

    folder: Path
    files: dict[str, Path] = field(default_factory=dict)
    builtin: frozenset[str] = frozenset()
    told: bool = False

    def __contains__(self, name: object) -> bool:
        return name in self.files or name in self.builtin

    def with_files(self, paths: Iterable[Path]) -> Modules:
        """Return the same with further modules, each in place of one of its name.

        Raises:
            SpecError: a file cannot be the one of a module, or two are of one module.
        """
        own: dict[str, Path] = {}
        for path in paths:
            if not _SUFFIX.search(path.name):
                raise SpecError(
                    f"{path}: is not the file of a kernel module; accepted: NAME.ko, NAME.ko.xz, "
                    "NAME.ko.gz or NAME.ko.zst",
                    key="--module",
                )
            name = module_name(path)
            if name in own:
                raise SpecError(f"{own[name]} and {path}: the same module twice; accepted: one")
            own[name] = path
        return replace(self, files={**self.files, **own}, builtin=self.builtin - own.keys())

    def order(self, wanted: Iterable[str]) -> list[Path]:
        """Return the files of modules in the order in which to load them: dependencies first.

        Names that are built in or absent are left out.

        Raises:
            SpecError: a module needs another one that is not there.
        """
        order: dict[str, Path] = {}

        def need(name: str) -> None:
            if name in order or name not in self.files:
                return
            path = self.files[name]
            for other in depends(module_bytes(path)):
                if other not in self:
                    raise SpecError(
                        f"{path}: needs the module {other}, which is neither in {self.folder} "
                        f"nor listed in a file {BUILTIN} there; accepted: a folder with all "
                        "modules of the kernel"
                    )
                need(other)
            order[name] = path

        for name in wanted:
            need(name)
        return list(order.values())


def modules_in(folder: Path, release: str = "") -> Modules:
    """Return what a folder and those below it have of modules.

    Args:
        folder: the modules of a kernel, an unpacked package, or a kernel's build tree.
        release: of the kernel; a folder lib/modules/RELEASE or RELEASE in `folder` is preferred.

    Raises:
        SpecError: it is no folder, cannot be read, or has two modules of one name.
    """
    folder = _of_release(folder, release)
    files: dict[str, Path] = {}
    lists: list[Path] = []

    def refuse(error: OSError) -> None:
        raise SpecError(
            f"{error.filename}: cannot be read: {error.strerror}; accepted: the folder of the "
            "kernel's modules, such as lib/modules/RELEASE"
        ) from None

    for where, folders, names in os.walk(folder, onerror=refuse):
        folders.sort()
        for name in sorted(names):
            path = Path(where, name)
            if name == BUILTIN:
                lists.append(path)
            elif _SUFFIX.search(name):
                own = module_name(path)
                files[own] = _preferred(files[own], path) if own in files else path
    # Of the folder `kernel` alone the list is one level higher.
    beside = folder.resolve().parent / BUILTIN
    if not lists and folder.resolve().name == "kernel" and beside.is_file():
        lists.append(beside)
    try:
        lines = [line for path in lists for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{lists[0]}: cannot be read: {error}") from None
    builtin = frozenset(module_name(Path(line)) for line in lines if line)
    return Modules(folder, files, builtin, told=bool(lists))


def _of_release(folder: Path, release: str) -> Path:
    if not release:
        return folder
    places = (f"lib/modules/{release}", f"usr/lib/modules/{release}", release)
    return next((folder / each for each in places if (folder / each).is_dir()), folder)


def _preferred(one: Path, other: Path) -> Path:
    """Return which of two files with the same module is loaded, as depmod.d(5) has it."""
    updates = [path for path in (one, other) if "updates" in path.parts]
    if len(updates) != 1:
        raise SpecError(
            f"{one} and {other}: the same module twice; accepted: a folder with the modules of "
            "one kernel"
        )
    return updates[0]
