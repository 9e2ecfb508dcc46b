"""Code of users that an experiment names: where it lies, and whether it may be executed.

Nothing here imports or executes a module. A package is executed when one of its modules is
imported, so its files count as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import machinery
from pathlib import Path
from typing import TypeAlias

from redtail.errors import SpecError
from redtail.files import path_of

Refusal: TypeAlias = tuple[str, str, str]
"""What is wrong with a queue of an experiment: the key, the problem, what is accepted."""

Allowed: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
"""Files and folders whose code may be executed."""

ACCEPTED = '"my_queue.py:MyQueue" or "package.module:MyQueue"'

# Installed packages are in folders of these names, also where an environment lies in the folder of
# an experiment.
_INSTALLED = frozenset({"site-packages", "dist-packages"})

# As `importlib` orders them.
_LOADERS = (
    (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
    (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
    (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
)

# The classes that the program itself has passed, by their names.
_PASSED: set[str] = set()


class Wrong(Exception):
    """A class cannot be used; holds the refusal."""

    def __init__(self, key: str, problem: str, accepted: str) -> None:
        super().__init__(problem)
        self.refusal: Refusal = (key, problem, accepted)


@dataclass(frozen=True)
class Code:
    """A class that an experiment names.

    Attributes:
        name: as in the experiment.
        files: what is executed to have it, symbolic links followed: the packages that it is in,
            then its own file. Empty for a class that the program has passed.
        shown: its own file or module as a user would name it.
        needs: the file or folder that `--allow-code` has to name; None when the code is allowed.
        key: of the first queue that it is.
    """

    name: str
    files: tuple[Path, ...]
    shown: str
    needs: Path | None
    key: str = ""

    @property
    def text(self) -> str:
        """What would be executed, in one line."""
        path = self.name.rpartition(":")[2]
        text = f"{self.key}: class {path} of {self.shown}"
        return text if self.needs is None else f"{text}; needs --allow-code {self.needs}"


@dataclass(frozen=True)
class Rule:
    """What code of an experiment may be executed.

    Attributes:
        folder: the experiment's own folder, which needs no permission.
        allowed: further files and folders.
        near: the folder as the user has named it, for messages.
    """

    folder: Path
    allowed: tuple[Path, ...] = ()
    near: Path = field(default=Path(), compare=False)

    @classmethod
    def of(
        cls,
        file: str | None,
        allowed: Allowed = (),
        within: Path | None = None,
    ) -> Rule:
        """Return the rule for an experiment.

        Args:
            file: its file, if it has one; otherwise its folder is the current one.
            allowed: files and folders with code that may be executed as well.
            within: the folder that counts as its own, by default that of its file.

        Raises:
            SpecError: what is allowed does not exist.
        """
        near = folder_of(file) if within is None else within
        return cls(near.resolve(), allowed_paths(allowed), near)

    def locate(self, name: str, folder: Path) -> Code:
        """Find the code of a class without executing any.

        Args:
            name: as in the experiment.
            folder: what files and modules are looked for in.

        Raises:
            Wrong: there is no such file or module.
        """
        place = split(name)[0]
        if name in _PASSED:
            return Code(name, (), f"{place}, which the program has passed", None)
        files = _file(place, folder) if place.endswith(".py") else _module(place, folder)
        missing = [file for file in files if not self._allows(file)]
        needs = None
        if missing:
            # The whole package, or the file alone.
            package = missing[0].stem == "__init__" and len(files) > 1
            needs = missing[0].parent if package else missing[0]
        return Code(name, files, self._shown(files[-1]), needs)

    def refuse(self, code: Code) -> None:
        """Refuse code that may not be executed.

        Raises:
            Wrong: it may not.
        """
        if code.needs is not None:
            raise Wrong(
                "class",
                f"names code outside the experiment's folder, which is not executed: {code.shown}",
                f"code in {self.folder}, or --allow-code {code.needs} "
                "(allow_code=… in Python) if you trust it",
            )

    def _allows(self, file: Path) -> bool:
        if any(file.is_relative_to(path) for path in self.allowed):
            return True
        if not file.is_relative_to(self.folder):
            return False
        return _INSTALLED.isdisjoint(file.relative_to(self.folder).parts)

    def _shown(self, file: Path) -> str:
        if file.is_relative_to(self.folder):
            return str(self.near / file.relative_to(self.folder))
        return str(file)


def folder_of(file: str | None) -> Path:
    """Return the folder of an experiment; the current one if it is not in a file."""
    path = Path(file) if file is not None else None
    return path.parent if path is not None and path.is_file() else Path()


def allowed_paths(given: Allowed) -> tuple[Path, ...]:
    """Return the files and folders that are allowed, symbolic links followed.

    Raises:
        SpecError: one does not exist.
    """
    found = []
    for path in map(path_of, [given] if isinstance(given, str | os.PathLike) else given):
        if not path.exists():
            raise SpecError(
                f"--allow-code {path}: no such file or folder; accepted: a file with code, or a "
                "folder of such files",
                key="allow_code",
            )
        found.append(path.resolve())
    return tuple(found)


def passed(name: str) -> None:
    """Take note that the program itself has passed the class of this name."""
    _PASSED.add(name)


def split(name: str) -> tuple[str, str]:
    """Return the file or module of a class, and the class in it.

    Raises:
        Wrong: the name has not got these parts.
    """
    place, _, path = name.rpartition(":")
    parts = path.split(".") if place.endswith(".py") else [*place.split("."), *path.split(".")]
    if not place or not all(part.isidentifier() for part in parts):
        raise Wrong("class", "does not name a file or module and a class in it", ACCEPTED)
    return place, path


def _file(place: str, folder: Path) -> tuple[Path, ...]:
    path = folder / place
    try:
        found = path.resolve()
        there = found.is_file()
    except (OSError, ValueError, RuntimeError):  # links in a circle, a name that cannot be one
        there = False
    if not there:
        raise Wrong("class", f"names a file that cannot be read: {path}", ACCEPTED)
    return (found,)


def _module(name: str, folder: Path) -> tuple[Path, ...]:
    """Find the files that importing a module executes, as the import system would find them."""
    files = []
    parts = name.split(".")
    entries: Sequence[str] | None = [str(folder), *(entry or os.curdir for entry in sys.path)]
    for number in range(len(parts)):
        full = ".".join(parts[: number + 1])
        loaded = sys.modules.get(full)
        if loaded is not None:
            file = getattr(loaded, "__file__", None)
            entries = getattr(loaded, "__path__", None)
            if file is None and entries is None:
                raise Wrong(
                    "class",
                    f"names a module that is not in a file: {full}",
                    f"{ACCEPTED}; a class of a program or notebook is passed as such",
                )
        else:
            spec = _spec(full, entries or [])
            if spec is None:
                raise Wrong("class", f"names a module that is not found: {full}", ACCEPTED)
            file = spec.origin if spec.loader is not None else None
            entries = spec.submodule_search_locations
        if file is not None:
            files.append(Path(file).resolve())
    if not files or (entries is not None and file is None):
        raise Wrong("class", f"names a folder and not a module: {name}", ACCEPTED)
    return tuple(files)


def _spec(name: str, entries: Sequence[str]) -> machinery.ModuleSpec | None:
    """Find a module in folders; one without a loader is a folder, part of a namespace."""
    if "." not in name and (
        name in sys.builtin_module_names or machinery.FrozenImporter.find_spec(name) is not None
    ):
        return None
    space = None
    for entry in entries:
        spec = machinery.FileFinder(entry, *_LOADERS).find_spec(name)
        if spec is None:
            continue
        if spec.loader is not None:
            return spec
        if space is None:
            space = spec
        elif space.submodule_search_locations is not None:
            space.submodule_search_locations.extend(spec.submodule_search_locations or [])
    return space
