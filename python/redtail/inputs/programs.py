"""Programs of users that an experiment runs: their files, and whether they may run.

A command line in an experiment's file is code: it is run if the file lies where the code of users
may lie (`code.Rule`). The files are named by the hashes of their contents in a scenario, so a
result is never taken for one of files that have changed.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from redtail.errors import SpecError
from redtail.files import OUTSIDE, is_within, plain_bytes
from redtail.inputs.code import Refusal, Rule, folder_of

MOST_FILES = 1000
"""Files that a group may take along; as `MAX_FILES` in crates/traffic/src/program.rs."""

MOST_BYTES = 64 << 20
"""Bytes of these files together; as `MAX_FILE_BYTES` there."""

Taken: TypeAlias = list[tuple[str, str, bool]]
"""For each file its path, the SHA-256 of its content, and whether it may be executed."""


@dataclass(frozen=True)
class Located:
    """A file of programs, so that another process can find it too.

    Attributes:
        name: what scenarios call it: the SHA-256 of its content.
        path: where it is.
    """

    name: str
    path: str
    _content: bytes | None = field(default=None, repr=False, compare=False)

    def load(self) -> bytes:
        """Return its content.

        Raises:
            SpecError: it is not what it was when the experiment was checked.
        """
        if self._content is not None:
            return self._content
        try:
            content = plain_bytes(Path(self.path), MOST_BYTES)
        except (OSError, ValueError):
            content = b""
        if hashlib.sha256(content).hexdigest() != self.name:
            raise SpecError(
                f"{self.path}: has changed since the experiment was checked", file=self.path
            )
        return content

    def pack(self) -> dict[str, bytes]:
        """Return its content, for a process that has not got the file."""
        return {"content": self.load()}

    def unpack(self, content: Mapping[str, bytes]) -> Located:
        """Return the same with the content that `pack` gave in another process."""
        return Located(self.name, self.path, content["content"])


@dataclass(frozen=True)
class Lines:
    """The command lines of a group.

    Attributes:
        key: the group, as a key of the experiment.
        lines: they.
        needs: the folder that `--allow-code` has to name; None when they are allowed.
    """

    key: str
    lines: tuple[str, ...]
    needs: Path | None

    @property
    def text(self) -> str:
        """What would be executed, in one line."""
        text = f"{self.key}: {self.shown}"
        return text if self.needs is None else f"{text}; needs --allow-code {self.needs}"

    @property
    def shown(self) -> str:
        """The command lines."""
        return ", ".join(f"`{line}`" for line in self.lines)


class Wrong(Exception):
    """A group cannot have its files; holds what is wrong."""

    def __init__(self, problem: str, accepted: str) -> None:
        super().__init__(problem)
        self.refusal: Refusal = ("files", problem, accepted)


class Resolver:
    """Finds the files that groups of programs name, and says whether the programs may run.

    Args:
        file: the experiment's file, if it has one.
        rule: what code may be executed.
        refuse: whether programs that may not run are refused.
        confined: the folder that the files must lie in; by default the experiment's own.
    """

    def __init__(
        self, file: str | None, rule: Rule, *, refuse: bool, confined: Path | None = None
    ) -> None:
        self.folder = folder_of(file)
        self.file = Path(file) if file is not None and Path(file).is_file() else None
        self.rule = rule
        self.refuse = refuse
        self.confined = confined
        self.code: dict[str, Lines] = {}
        self.found: dict[str, Located] = {}
        self.names: dict[str, None] = {}

    def __call__(self, group: str, lines: Sequence[str], files: Sequence[str]) -> Taken | Refusal:
        """Return the files of a group, or what is wrong with it.

        Args:
            group: its name.
            lines: its command lines.
            files: as in the experiment.
        """
        code = self._code(group, lines)
        self.code[group] = code
        if self.refuse and code.needs is not None:
            return (
                "client",
                "is a program of an experiment outside of the folder whose code may be executed",
                f"--allow-code {code.needs} (allow_code=… in Python) if you trust it",
            )
        try:
            taken = self._taken(files)
        except Wrong as wrong:
            return wrong.refusal
        return taken

    def _code(self, group: str, lines: Sequence[str]) -> Lines:
        needs = None
        if self.file is not None and not self.rule.allows(self.file.resolve()):
            needs = self.file.resolve().parent
        return Lines(f"traffic.{group}", tuple(lines), needs)

    def _taken(self, files: Sequence[str]) -> Taken:
        taken: Taken = []
        size = 0
        for name, path in self._all(files):
            if not is_within(path, self.folder) or not is_within(path, self.confined):
                reason = OUTSIDE if self.confined is not None else _ELSEWHERE
                raise Wrong(f'has "{name}", which {reason[0]}', reason[1])
            located, executable, length = _read(path, name)
            size += length
            if len(taken) == MOST_FILES or size > MOST_BYTES:
                raise Wrong(
                    "are more than programs may take along",
                    f"up to {MOST_FILES} files of {MOST_BYTES >> 20} MiB together",
                )
            taken.append((name, located.name, executable))
            self.found[located.name] = located
            self.names[name] = None
        return taken

    def _all(self, files: Sequence[str]) -> Iterator[tuple[str, Path]]:
        """Yield each file with its path in the folder of the programs, folders opened."""
        for name in files:
            path = self.folder / name
            if not path.is_dir():
                yield name, path
                continue
            for parent, folders, inner in os.walk(path):
                folders.sort()
                # A link to a folder is not followed, and refused where it is read.
                linked = [each for each in folders if (Path(parent) / each).is_symlink()]
                for each in sorted([*inner, *linked]):
                    found = Path(parent) / each
                    yield found.relative_to(self.folder).as_posix(), found


_ELSEWHERE = ("is outside of the experiment's folder", "files beside the experiment's, or below")


def _read(path: Path, name: str) -> tuple[Located, bool, int]:
    """Return a file, whether it may be executed, and its length.

    Raises:
        Wrong: it cannot be read.
    """
    try:
        about = path.stat()
        digest = _digest(str(path.resolve()), about.st_ino, about.st_size, about.st_mtime_ns)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Wrong(f'has "{name}", which cannot be read: {reason}', "a file or a folder") from None
    return Located(digest, str(path.resolve())), bool(about.st_mode & 0o100), about.st_size


@functools.lru_cache(maxsize=MOST_FILES)
def _digest(path: str, inode: int, size: int, time: int) -> str:
    """Return the hash of a file; the other arguments say whether it is still the same."""
    return hashlib.sha256(plain_bytes(Path(path), MOST_BYTES)).hexdigest()
