"""ZIP archives from others: names, sizes and the index of an archive of `redtail pack`.

An archive is data of somebody else. Before anything is unpacked, every entry is named by
`pack.json`, is a plain file, and has a name that is the same file on every system. Decompression
is bounded: by `LARGEST` and `MOST_RATIO` in all, and for each entry by the size that `pack.json`
gives, whatever the ZIP file itself says.
"""

from __future__ import annotations

import hashlib
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from redtail import escape
from redtail.errors import StoreError
from redtail.store.format import MALFORMED
from redtail.store.sealing import decoded, expect

FORMAT = 1
"""Version of the archive's layout."""

INDEX = "pack.json"
"""The entry that names all others."""

LARGEST = 16 << 30
"""The most bytes that an archive may unpack to."""

MOST_RATIO = 200
"""How many times its own size an archive may unpack to, beyond `SLACK`."""

SLACK = 64 << 20
"""Bytes that a small archive may unpack to in any case."""

MOST_ENTRIES = 1_000_000
"""The most entries of an archive."""

LARGEST_INDEX = 256 << 20
"""The most bytes of `pack.json`."""

LONGEST_NAME = 1000
"""The most bytes of the name of an entry."""

_CHUNK = 1 << 20

_DAMAGED = (
    *MALFORMED,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    RuntimeError,  # an entry with a password
)


def unpack(archive: Path, folder: Path) -> dict[str, Any]:
    """Unpack an archive, checked; returns its index.

    Raises:
        StoreError: it is damaged, no archive of `pack`, or of a newer format.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            entries = _entries(file)
            index = _index(file, entries)
            check_names([*index["files"], INDEX])
            check_sizes(index["files"], archive.stat().st_size)
            hidden = sorted(entries.keys() - index["files"].keys() - {INDEX})
            if hidden:
                raise ValueError(f"{escape.name(hidden[0])!r} is not named by {INDEX}")
            for name, expected in index["files"].items():
                if name not in entries:
                    raise ValueError(f"{name} is missing")
                if entries[name].file_size != expected["bytes"]:
                    raise ValueError(f"{name} has another size than {INDEX} says")
                _unpack_entry(file, entries[name], folder / name, expected)
    except FileNotFoundError:
        raise StoreError(f"{archive}: there is no such file") from None
    except _DAMAGED as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else _first_line(error)
        raise StoreError(
            f"{archive}: cannot be read as an archive of `redtail pack`: {what}"
        ) from error
    return index


def check_names(names: Iterable[str]) -> None:
    """Refuse names of entries that are not the names of different files on every system.

    >>> check_names(["a/b", "a/c"])
    >>> check_names(["a/b", "A/c"])
    Traceback (most recent call last):
    ...
    ValueError: 'a' and 'A' are one name on some systems
    >>> check_names(["a", "a/b"])
    Traceback (most recent call last):
    ...
    ValueError: 'a' is a file and a folder

    Raises:
        ValueError: the first name that is none.
    """
    spelled: dict[str, str] = {}
    files: set[str] = set()
    folders: set[str] = set()
    for name in names:
        if not _is_inside(name):
            raise ValueError(f"{escape.name(name)[:80]!r} is no path inside the archive")
        if name in files:
            raise ValueError(f"{name!r} is there twice")
        files.add(name)
        parts = name.split("/")
        for end in range(1, len(parts) + 1):
            part = "/".join(parts[:end])
            other = spelled.setdefault(unicodedata.normalize("NFC", part).casefold(), part)
            if other != part:
                raise ValueError(f"{other!r} and {part!r} are one name on some systems")
            if end < len(parts):
                folders.add(part)
    both = sorted(files & folders)
    if both:
        raise ValueError(f"{both[0]!r} is a file and a folder")


def _is_inside(name: str) -> bool:
    """Return whether a name is a path that stays in its folder on every system."""
    if name != escape.name(name) or set('\\:*?"<>|') & set(name):
        return False
    if len(name.encode()) > LONGEST_NAME:
        return False
    return all(
        part not in ("", ".", "..") and part == part.rstrip(". ") and len(part.encode()) <= 255
        for part in name.split("/")
    )


def check_index(index: Any) -> dict[str, Any]:
    """Return what `pack.json` says, if it has the form that `pack` writes.

    Raises:
        ValueError, KeyError: it has another form.
    """
    number = expect(expect(index, dict, INDEX)["format"], int, "format")
    if number != FORMAT:
        raise ValueError(f"written in format {number}, this redtail reads {FORMAT}")
    for key in ("backend", "code_version", "redtail_version", "experiment"):
        expect(index[key], str, key)
    # Archives of earlier versions lack some of these.
    for key in ("packages", "code_packages", "machine"):
        for name, text in expect(index.setdefault(key, {}), dict, key).items():
            expect(text, str, f"{key}: {name}")
    for each in expect(index["set"], list, "set"):
        expect(each, str, "a value of set")
    for name, about in expect(index["files"], dict, "files").items():
        size = expect(expect(about, dict, f"files: {name}")["bytes"], int, f"bytes of {name}")
        if size < 0:
            raise ValueError(f"bytes of {name} is {size}")
        expect(about["sha256"], str, f"sha256 of {name}")
    if index["experiment"] not in index["files"]:
        raise ValueError("the experiment is not in it")
    if not index["experiment"].startswith("experiment/"):
        raise ValueError(f"the experiment is {index['experiment']!r}")
    found: dict[str, Any] = index
    return found


def _entries(file: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the entries of a ZIP file by their names, refusing all but plain files."""
    found: dict[str, zipfile.ZipInfo] = {}
    listed = file.infolist()
    if len(listed) > MOST_ENTRIES:
        raise ValueError(f"it has {len(listed)} entries; accepted: at most {MOST_ENTRIES}")
    for about in listed:
        # `filename` ends at the first null byte.
        name = about.orig_filename
        kind = stat.S_IFMT(about.external_attr >> 16)
        if not _is_inside(name):
            raise ValueError(f"{escape.name(name)[:80]!r} is no path inside the archive")
        if name in found:
            raise ValueError(f"{name!r} is there twice")
        if kind not in (0, stat.S_IFREG):
            what = "a link" if kind == stat.S_IFLNK else "no plain file"
            raise ValueError(f"{name!r} is {what}")
        if about.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name!r} is compressed by method {about.compress_type}")
        found[name] = about
    return found


def _index(file: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo]) -> dict[str, Any]:
    if INDEX not in entries:
        raise ValueError(f"it has no {INDEX}")
    if entries[INDEX].file_size > LARGEST_INDEX:
        raise ValueError(f"{INDEX} is too large")
    data = b"".join(_chunks(file, entries[INDEX], LARGEST_INDEX))
    return check_index(decoded(data))


def check_sizes(files: Mapping[str, Mapping[str, Any]], packed: int) -> None:
    """Refuse an archive that unpacks to more than is sensible.

    Raises:
        ValueError: it does.
    """
    total = sum(about["bytes"] for about in files.values())
    most = min(LARGEST, SLACK + MOST_RATIO * packed)
    if total > most:
        raise ValueError(
            f"it has {packed} bytes and unpacks to {total}; accepted: at most {most} "
            f"({SLACK} and {MOST_RATIO} times its size, and never more than {LARGEST})"
        )


def _chunks(file: zipfile.ZipFile, about: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
    """Yield the content of an entry.

    Raises:
        ValueError: it is longer than it may be.
    """
    read = 0
    with file.open(about) as source:
        while data := source.read(_CHUNK):
            read += len(data)
            if read > most:
                raise ValueError(f"{about.filename} is longer than {INDEX} says")
            yield data


def _unpack_entry(
    file: zipfile.ZipFile, about: zipfile.ZipInfo, path: Path, expected: Mapping[str, Any]
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = hashlib.sha256()
    size = 0
    with path.open("xb") as target:
        for data in _chunks(file, about, expected["bytes"]):
            whole.update(data)
            size += len(data)
            target.write(data)
    if size != expected["bytes"] or whole.hexdigest() != expected["sha256"]:
        raise ValueError(f"{about.filename} was altered")


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
