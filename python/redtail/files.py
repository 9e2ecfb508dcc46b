"""Paths that users write, the folder of caches, and the traces of rates of an experiment."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from redtail import escape

# Not on Windows, which has no pipes among its files.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

Refusal: TypeAlias = tuple[str, str]
"""What is wrong with a file that an experiment names: the problem, what is accepted."""


OUTSIDE: Refusal = ("is outside of the archive", "a file that is packed with the experiment")
"""What is wrong with a file that an experiment from others names elsewhere."""


def is_file_name(name: str) -> bool:
    r"""Return whether a text can be the name of a file that stays in its folder on every system.

    >>> [is_file_name(name) for name in ("fig 3b", "../up", "a/b", ".hidden", "", "c:d", "nul\0")]
    [True, False, False, False, False, False, False]
    """
    plain = name == escape.name(name) and not set('/\\:*?"<>|') & set(name)
    return plain and name != "" and not name.startswith(".") and len(name.encode()) <= 200


def path_of(name: str | os.PathLike[str]) -> Path:
    """Return the path that a user names; `~` at its beginning is the home folder.

    A shell expands it too, but not in quotes and not in a file. As in a shell, `~NAME` stays as it
    is if there is no such user, and `./~` is a file of that name.
    """
    return Path(os.path.expanduser(name))


def caches() -> Path:
    """Return redtail's folder of caches, in which nothing else is.

    It is `redtail` in `$XDG_CACHE_HOME`, by default ~/.cache (the XDG Base Directory
    Specification).
    """
    own = os.environ.get("XDG_CACHE_HOME")
    return (Path(own) if own else Path.home() / ".cache") / "redtail"


def is_plain(path: Path) -> bool:
    """Return whether a path is a file, and no link, pipe or device in its place."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def is_archive(path: Path) -> bool:
    """Return whether a path is that of a ZIP file, which no experiment is."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def plain_bytes(path: Path, most: int | None = None) -> bytes:
    """Return the content of a file; a pipe or a device in its place is not read.

    Args:
        path: the file, or a link to it.
        most: how many bytes it may have.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no file, or larger.
    """
    # Without waiting: somebody else would have to write into a pipe.
    with open(os.open(path, os.O_RDONLY | _NO_WAIT), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ValueError(f"{path.name} is no file")
        if most is not None and about.st_size > most:
            raise ValueError(f"{path.name} has {about.st_size} bytes; accepted: at most {most}")
        return file.read()


def is_within(path: Path, folder: Path | None) -> bool:
    """Return whether a path, links followed, is in a folder; with None, where it is does not count.

    >>> is_within(Path("a/../b"), Path()), is_within(Path("../b"), Path()), is_within(Path(), None)
    (True, False, True)
    """
    if folder is None:
        return True
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # links in a circle, a name that cannot be one
        return False


def digest(path: Path) -> dict[str, Any]:
    """Return the number of bytes and the hash of a file; one of the same time is read once.

    Raises:
        OSError: it cannot be read, or is no file.
    """
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise OSError(f"{path}: is no file")
    size, sha256 = _digest(path.resolve(), about.st_ino, about.st_size, about.st_mtime_ns)
    return {"bytes": size, "sha256": sha256}


@lru_cache(maxsize=256)
def _digest(path: Path, *_: int) -> tuple[int, str]:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), found


class Reader:
    """Reads the files that an experiment names, each once.

    Args:
        folder: what their names are relative to.
        confined: the folder that they must lie in; by default they may lie anywhere.
        given: texts of files that are not read.
    """

    def __init__(
        self,
        folder: Path,
        confined: Path | None = None,
        given: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.confined = confined
        self._read: dict[str, str | Refusal] = dict(given or {})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files that were read."""
        return tuple(self._read)

    def __call__(self, name: str) -> str | Refusal:
        """Return the text of a file, or what is wrong with it."""
        if name not in self._read:
            self._read[name] = self._text(name)
        return self._read[name]

    def _text(self, name: str) -> str | Refusal:
        try:
            path = self.folder / path_of(name)
            if not is_within(path, self.confined):
                return OUTSIDE
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return f"is no file in {self.folder}", "a path relative to the experiment's file"
        except UnicodeDecodeError as error:
            return f"is not a text file in UTF-8 (byte {error.start})", "a text file"
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return f"cannot be read: {reason}", "a text file"
