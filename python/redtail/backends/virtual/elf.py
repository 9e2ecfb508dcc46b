"""What a program for x86-64 needs to be loaded: its loader and its libraries, read and not asked.

Nothing is executed: `ldd` starts the loader that the program names ("Security" in ldd(1)). The
files are those of the ELF specification and of the System V ABI for x86-64; where libraries are
looked for is said in ld.so(8).
"""

from __future__ import annotations

import glob
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_ET_EXEC, _ET_DYN, _EM_X86_64 = 2, 3, 62
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 0, 1, 5, 15, 29

_MOST_NEEDED = 1000
"""Libraries that one file names; those with the most have some 100."""

_LONGEST = 4096
"""Bytes of a path (`PATH_MAX`, linux/limits.h)."""

_CONFIGURATION = "/etc/ld.so.conf"

DEFAULTS = (
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
"""The folders in which loaders look without being told: Debian's, and those of ld.so(8)."""


@dataclass(frozen=True)
class Elf:
    """What an ELF file names.

    Attributes:
        loader: the path of its loader; empty for a library, and for a static program.
        needed: the names of its libraries.
        early: the folders of `DT_RPATH`, which hold for the libraries of its libraries as well.
        own: the folders of `DT_RUNPATH`, which hold for its own.
    """

    loader: str
    needed: tuple[str, ...]
    early: tuple[str, ...]
    own: tuple[str, ...]


def read(data: bytes) -> Elf | None:
    """Return what a program or a library names; None if the file is none.

    Raises:
        ValueError: it is for another processor, or is damaged.
    """
    if data[:4] != b"\x7fELF":
        return None
    try:
        return _read(data)
    except (struct.error, IndexError, OverflowError, UnicodeDecodeError):
        raise ValueError("its tables are damaged") from None


def _read(data: bytes) -> Elf | None:
    kind, machine = struct.unpack_from("<HH", data, 16)
    if data[4:6] != b"\2\1" or machine != _EM_X86_64:
        raise ValueError("it is for another processor than x86-64")
    if kind not in (_ET_EXEC, _ET_DYN):
        return None  # an object that is not linked, or a core dump
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    loads: list[tuple[int, int, int]] = []
    loader, dynamic = "", (0, 0)
    for each in range(count):
        found, _, at, address, _, length = struct.unpack_from("<IIQQQQ", data, table + each * size)
        if found == _PT_LOAD:
            loads.append((address, at, length))
        elif found == _PT_INTERP:
            loader = _text(data, at)
        elif found == _PT_DYNAMIC:
            dynamic = (at, length)
    tags = list(_tags(data, *dynamic))
    texts = next((_offset(loads, value) for tag, value in tags if tag == _DT_STRTAB), 0)

    def named(wanted: int) -> Iterator[str]:
        return (_text(data, texts + value) for tag, value in tags if tag == wanted)

    needed = tuple(named(_DT_NEEDED))
    if len(needed) > _MOST_NEEDED:
        raise ValueError(f"it names {len(needed)} libraries; accepted: up to {_MOST_NEEDED}")
    early, own = (
        tuple(folder for text in named(tag) for folder in text.split(":") if folder)
        for tag in (_DT_RPATH, _DT_RUNPATH)
    )
    return Elf(loader, needed, early, own)


def _tags(data: bytes, at: int, length: int) -> Iterator[tuple[int, int]]:
    for place in range(at, at + length, 16):
        tag, value = struct.unpack_from("<qQ", data, place)
        if tag == _DT_NULL:
            return
        yield tag, value


def _offset(loads: list[tuple[int, int, int]], address: int) -> int:
    """Return where the byte at an address in memory stands in the file."""
    for begin, at, length in loads:
        if begin <= address < begin + length:
            return at + address - begin
    raise IndexError("no part of the file has this address")


def _text(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + _LONGEST)
    if end < 0:
        raise IndexError("a text lies outside of the file")
    return data[at:end].decode()


def library(name: str, file: Elf, place: Path, inherited: tuple[str, ...]) -> Path | None:
    """Return where the loader finds a library; None if it does not.

    Args:
        name: as a file names it.
        file: what names it.
        place: the folder of this file, links followed (`$ORIGIN`).
        inherited: the folders of `DT_RPATH` of the program and of the libraries in between.
    """
    if "/" in name:
        return Path(name) if Path(name).is_file() else None
    for folder in (*(file.own or inherited), *_folders()):
        path = Path(expanded(folder, place), name)
        if path.is_file() and _fits(path):
            return path
    return None


def expanded(folder: str, place: Path) -> str:
    """Return a folder of a file in this place, as the loader reads it."""
    for word in ("$ORIGIN", "${ORIGIN}"):
        folder = folder.replace(word, str(place))
    return folder


def _fits(path: Path) -> bool:
    """Return whether a file is a library for this processor; the loader passes over others."""
    with path.open("rb") as file:
        head = file.read(20)
    return head[:6] == b"\x7fELF\2\1" and head[18:20] == _EM_X86_64.to_bytes(2, "little")


@lru_cache(maxsize=1)
def _folders() -> tuple[str, ...]:
    return tuple(dict.fromkeys([*_configured(_CONFIGURATION), *DEFAULTS]))


def _configured(file: str, depth: int = 0) -> list[str]:
    """Return the folders that a configuration of the loader names (ldconfig(8))."""
    try:
        lines = Path(file).read_text(errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        words = line.partition("#")[0].split()
        if words[:1] == ["include"] and depth == 0:
            for pattern in words[1:]:
                for each in sorted(glob.glob(str(Path(file).parent / pattern))):
                    found += _configured(each, 1)
        elif len(words) == 1 and words[0].startswith("/"):
            found.append(words[0])
    return found
