"""Paths that users write, the folder of caches, and the traces of rates of an experiment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from redtail import escape

Refusal: TypeAlias = tuple[str, str]
"""What is wrong with a file that an experiment names: the problem, what is accepted."""


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


class Reader:
    """Reads the files that an experiment names, each once.

    Args:
        folder: what their names are relative to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, str | Refusal] = {}

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
            return (self.folder / path_of(name)).read_text(encoding="utf-8")
        except FileNotFoundError:
            return f"is no file in {self.folder}", "a path relative to the experiment's file"
        except UnicodeDecodeError as error:
            return f"is not a text file in UTF-8 (byte {error.start})", "a text file"
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return f"cannot be read: {reason}", "a text file"
