"""The root filesystem that programs of the user have in a guest: `/` is this, and nothing else.

It comes from a folder, from an archive of tar, or from this computer (`collecting`). Owner and
times are left out, so that the same content is the same root, wherever and whenever it was made.
Links are kept as they are: in the guest they lead to what is there, never to this computer.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO

from redtail.errors import SpecError

MOST_BYTES = 512 << 20
"""Bytes of all files of a root; the guest has them in memory twice while it starts."""

MOST_FILES = 50_000
"""Files and links of a root; Python with its library has 2500."""

KEY = "programs"
"""The table of an experiment that says what is in the root."""

MOUNTED = ("dev", "proc", "run", "sys", "tmp")
"""What the guest mounts over: content there would not be seen, and is left out."""

_FORMS = "accepted: a folder, or an archive of tar (.tar, .tar.gz, .tar.xz, .tar.bz2)"

Entry = tuple[int, bytes]
"""Kind and permissions as in `st_mode`, and the content of a file, or where a link leads."""

# What programs ask for names with; the same for all.
_ACCOUNTS: Mapping[str, bytes] = {
    "etc/passwd": b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": b"127.0.0.1 localhost\n",
    "etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
}


@dataclass(frozen=True, eq=False)  # one that is built again is equal in `identity`
class Root:
    """What is at `/` for programs.

    Attributes:
        entries: files, links and folders, by their paths without a slash at the beginning.
    """

    entries: Mapping[str, Entry]

    @cached_property
    def identity(self) -> str:
        """A SHA-256 over paths, permissions and content."""
        found = hashlib.sha256()
        for path, (mode, data) in sorted(self.entries.items()):
            found.update(b"%s\0%o %d\0" % (os.fsencode(path), mode, len(data)))
            found.update(data)
        return found.hexdigest()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(len(data) for _, data in self.entries.values())


class Builder:
    """Gathers the entries of a root within its bounds.

    Args:
        origin: what they come from, for messages.
        key: the key of the experiment that names it.
    """

    def __init__(self, origin: str, key: str) -> None:
        self.entries: dict[str, Entry] = {}
        self._origin = origin
        self._key = key
        self._size = 0

    def room(self, size: int) -> None:
        """Refuse further bytes that would be too many, before they are read."""
        if self._size + size > MOST_BYTES:
            raise self.refused(
                f"has more than {MOST_BYTES >> 20} MiB; accepted: what the programs need, "
                f"up to {MOST_BYTES >> 20} MiB"
            )

    def refused(self, what: str) -> SpecError:
        """Return an error about what the entries come from."""
        return SpecError(f"{self._origin}: {what}", key=self._key)

    def add(self, path: str, mode: int, data: bytes) -> None:
        """Add a file or a link; what the guest mounts over is left out.

        Raises:
            SpecError: there are too many.
        """
        if path.split("/", 1)[0] in MOUNTED:
            return
        self.room(len(data))
        if len(self.entries) >= MOST_FILES:
            raise self.refused(
                f"has more than {MOST_FILES} files; accepted: what the programs need"
            )
        kind = stat.S_IFMT(mode) or stat.S_IFREG
        # A program of another user has no use here: all run as root of the guest.
        permissions = 0o777 if kind == stat.S_IFLNK else mode & 0o777
        self.entries[path] = (kind | permissions, _timeless(path, data))
        self._size += len(data)

    def read(self, path: Path) -> bytes:
        """Return the content of a file of this computer.

        Raises:
            SpecError: it cannot be read, is none, or is too large.
        """
        try:
            # Without waiting: a pipe may have taken its place.
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode):
                    raise self.refused(f"{path} is no file; accepted: files, folders and links")
                self.room(about.st_size)
                return file.read(about.st_size)
        except OSError as error:
            raise self.refused(f"{path} cannot be read: {error.strerror}") from None

    def built(self) -> Root:
        """Return the root, with the files of accounts and names that it lacks.

        Raises:
            SpecError: a file has the place of a folder.
        """
        entries = {**{path: (0o100644, data) for path, data in _ACCOUNTS.items()}, **self.entries}
        for path in entries:
            for parent in map(str, PurePosixPath(path).parents):
                if parent in entries and not stat.S_ISDIR(entries[parent][0]):
                    raise self.refused(
                        f"{parent} is a file or a link, and {path} lies in it; accepted: paths "
                        "that lead through folders"
                    )
        return Root(entries)


def _timeless(path: str, data: bytes) -> bytes:
    """Return a file, whose validity does not depend on the time of another one.

    Python takes a module's compiled form only if it has the time of its source, which it has not
    in the guest; one that is marked as unchecked it takes as it is (PEP 552).
    """
    if path.endswith(".pyc") and "__pycache__" in path.split("/") and data[4:8] == bytes(4):
        return data[:4] + (1).to_bytes(4, "little") + bytes(8) + data[16:]
    return data


def of(path: Path, key: str = f"{KEY}.root") -> Root:
    """Return the root that a folder or an archive has.

    Raises:
        SpecError: it cannot be read, or is none.
    """
    builder = Builder(str(path), key)
    if path.is_dir():
        for name, place in walked(path, builder):
            add_from(builder, name, place)
    elif path.is_file() and tarfile.is_tarfile(path):
        _unpack(path, builder)
    else:
        what = "is no archive of tar" if path.exists() else "no such file or folder"
        raise builder.refused(f"{what}; {_FORMS}")
    if not builder.entries:
        raise builder.refused(f"is empty; {_FORMS}")
    return builder.built()


def walked(
    folder: Path, builder: Builder, without: re.Pattern[str] | None = None
) -> Iterator[tuple[str, Path]]:
    """Yield the path within a folder of all that is below it; no link is followed.

    Args:
        folder: the folder.
        builder: raises the error of a folder that cannot be read.
        without: names of files and folders that are left out.
    """

    def refuse(error: OSError) -> None:
        raise builder.refused(f"{error.filename} cannot be read: {error.strerror}") from None

    for where, folders, files in os.walk(folder, onerror=refuse):
        if without is not None:
            folders[:] = [name for name in folders if not without.fullmatch(name)]
            files = [name for name in files if not without.fullmatch(name)]
        folders.sort()
        for name in sorted([*files, *folders]):
            place = Path(where, name)
            yield str(place.relative_to(folder)), place


def add_from(builder: Builder, name: str, place: Path) -> None:
    """Add a file, a link or a folder itself; pipes, sockets and devices are left out."""
    try:
        about = place.lstat()
        if stat.S_ISLNK(about.st_mode):
            builder.add(name, about.st_mode, os.fsencode(os.readlink(place)))
            return
    except OSError as error:
        raise builder.refused(f"{place} cannot be read: {error.strerror}") from None
    if stat.S_ISDIR(about.st_mode):
        builder.add(name, about.st_mode, b"")
    elif stat.S_ISREG(about.st_mode):
        builder.add(name, about.st_mode, builder.read(place))


def _unpack(path: Path, builder: Builder) -> None:
    """Add what an archive has."""
    try:
        with tarfile.open(path) as archive:
            for number, member in enumerate(archive):
                if number > 2 * MOST_FILES:
                    raise builder.refused(f"has more than {2 * MOST_FILES} entries")
                _add_member(builder, archive, member)
    except (tarfile.TarError, OSError, EOFError, ValueError, KeyError) as error:
        if isinstance(error, SpecError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise builder.refused(f"cannot be unpacked: {reason}; {_FORMS}") from None


def _add_member(builder: Builder, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    name = _inside(builder, member.name)
    if not name:
        return
    if member.issym():
        builder.add(name, stat.S_IFLNK, os.fsencode(member.linkname))
    elif member.isdir():
        builder.add(name, stat.S_IFDIR | member.mode, b"")
    elif member.islnk():
        target = builder.entries.get(_inside(builder, member.linkname))
        if target is not None:
            builder.add(name, *target)
    elif member.isreg():
        builder.room(member.size)
        file: IO[bytes] | None = archive.extractfile(member)
        builder.add(name, member.mode, file.read() if file else b"")


def _inside(builder: Builder, name: str) -> str:
    """Return a path of an archive without what changes nothing; "" for its top.

    Raises:
        SpecError: it leads out.
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name:
        raise builder.refused(
            f"has the path {name!r}, which leads out of it; accepted: paths below it"
        )
    return "/".join(parts)
