"""Code of users that an experiment names: where it lies, and whether it may be executed.

Nothing here imports or executes a module. A package is executed when one of its modules is
imported, so its files count as well, and so do the modules that the code imports (`imports`).
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from redtail.errors import SpecError
from redtail.files import path_of
from redtail.inputs import compiled, imports
from redtail.inputs.imports import Closure, Found, Module

Refusal: TypeAlias = tuple[str, str, str]
"""What is wrong with a class of an experiment: the key, the problem, what is accepted."""

Allowed: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
"""Files and folders whose code may be executed."""

ACCEPTED = '"my_queue.py:MyQueue", "package.module:MyQueue" or "my_queue.wasm"'

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
            its own file, then the files that these import. Empty for a class that the program has
            passed.
        shown: its own file or module as a user would name it.
        needs: the file or folder that `--allow-code` has to name; None when the code is allowed.
        key: of the first queue or controller that it is.
        imported: the files that it imports, as a user would name them.
        refused: the file that has to be allowed, as a user would name it; empty when none has.
        inputs: of the files, those that repeating it needs; others are of installed packages.
        beyond: the modules that Python's path led to, which are found on this computer alone.
        installed: the installed packages that it imports, and their versions.
        source: the hash of all this; empty for a class that the program has passed.
        sandboxed: it is a WebAssembly module, which needs no permission.
    """

    name: str
    files: tuple[Path, ...]
    shown: str
    needs: Path | None
    key: str = ""
    imported: tuple[str, ...] = ()
    refused: str = ""
    inputs: tuple[Path, ...] = ()
    beyond: tuple[str, ...] = ()
    installed: tuple[tuple[str, str], ...] = ()
    source: str = ""
    sandboxed: bool = False

    @property
    def text(self) -> str:
        """What would be executed, in one line."""
        if self.sandboxed:
            return f"{self.key}: the module {self.shown}, in a sandbox"
        path = self.name.rpartition(":")[2]
        text = f"{self.key}: class {path} of {self.shown}"
        if self.imported:
            text += f", with {', '.join(self.imported)}"
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
        if compiled.is_compiled(name):
            return self._locate_compiled(name, folder)
        place = split(name)[0]
        if name in _PASSED:
            return Code(name, (), f"{place}, which the program has passed", None)
        found = closure_of(name, folder)
        own = found.main.found.file
        assert own is not None, "a class is in a file"
        imported = [each for each in found.imported if each.found.file is not None]
        needed = [each for each in found.modules if not imports.installed_package(each)]
        missing = [
            each
            for each in found.modules
            if each.found.file is not None and not self.allows(each.found.file)
        ]
        needs, refused = None, ""
        if missing:
            needs, refused = self._to_allow(missing[0], found)
        return Code(
            name,
            tuple(each.found.file for each in found.modules if each.found.file is not None),
            self._shown(own),
            needs,
            imported=tuple(self._shown(each.found.file) for each in imported if each.found.file),
            refused=refused,
            inputs=tuple(each.found.file for each in needed if each.found.file is not None),
            beyond=tuple(each.name for each in needed if not each.own),
            installed=found.installed,
            source=found.source,
        )

    def _locate_compiled(self, name: str, folder: Path) -> Code:
        try:
            file, content = compiled.read(name, folder)
        except compiled.Refused as refused:
            raise Wrong("class", refused.problem, refused.accepted) from None
        return Code(
            name,
            (file,),
            self._shown(file),
            None,
            inputs=(file,),
            source=compiled.source_of(content),
            sandboxed=True,
        )

    def _to_allow(self, module: Module, found: Closure) -> tuple[Path, str]:
        """Return the file or folder that has to be allowed for a module, and what to call it."""
        file, own = module.found.file, found.main.found.file
        assert file is not None and own is not None, "what is in no file needs no permission"
        shown = self._shown(file)
        if module in found.imported:
            shown += f", which {self._shown(own)} imports"
        # The whole package, or the file alone.
        top = module.name.partition(".")[0]
        packages = [each.found.search for each in found.modules if each.name == top]
        folder = packages[0][0] if packages and packages[0] else None
        return (file if folder is None else Path(folder).resolve()), shown

    def refuse(self, code: Code) -> None:
        """Refuse code that may not be executed.

        Raises:
            Wrong: it may not.
        """
        if code.needs is not None:
            raise Wrong(
                "class",
                "names code outside the experiment's folder, which is not executed: "
                f"{code.refused}",
                f"code in {self.folder}, or --allow-code {code.needs} "
                "(allow_code=… in Python) if you trust it",
            )

    def allows(self, file: Path) -> bool:
        """Return whether code in a file, links followed, may be executed."""
        if any(file.is_relative_to(path) for path in self.allowed):
            return True
        if not file.is_relative_to(self.folder):
            return False
        return imports.INSTALLED.isdisjoint(file.relative_to(self.folder).parts)

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


def was_passed(name: str) -> bool:
    """Return whether the program itself has passed the class of this name."""
    return name in _PASSED


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


def closure_of(name: str, folder: Path) -> Closure:
    """Read the code of a class, and all that it imports, without executing any.

    Modules are looked for beside the file of the class, then in the experiment's folder, then where
    Python's import looks.

    Args:
        name: as in the experiment.
        folder: the experiment's folder.

    Raises:
        Wrong: there is no such file or module, or it cannot be read.
    """
    place = split(name)[0]
    try:
        if place.endswith(".py"):
            file = _file(place, folder)
            search = [*dict.fromkeys([file.parent, (folder / place).parent.resolve(), folder])]
            main = file.stem if file.stem.isidentifier() else re.sub(r"\W", "_", file.stem) + "_py"
            found = imports.closure(main, Found(file, None), (), search, own=True)
            _require_python(found)
            return found
        if name not in _PASSED:
            steps = _module(place, [str(folder)])
            if steps is not None:
                return imports.closure(place, steps[-1][1], steps[:-1], [folder], own=True)
        steps = _module(place, ())
        if steps is None:
            raise Wrong(
                "class", f"names a module that is not found: {_missing(place, folder)}", ACCEPTED
            )
        return imports.closure(place, steps[-1][1], steps[:-1], [], own=False)
    except imports.TooMuch as error:
        raise Wrong("class", str(error), ACCEPTED) from error
    except OSError as error:
        raise Wrong("class", f"needs a file that cannot be read: {error}", ACCEPTED) from error


def _require_python(found: Closure) -> None:
    """Refuse a file of a class that is no Python."""
    try:
        ast.parse(found.main.text)
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise Wrong(
            "class",
            f"cannot be loaded from {found.main.found.file}{line}: {type(error).__name__}: "
            f"{error.msg if isinstance(error, SyntaxError) else error}",
            "a file in Python",
        ) from None


def _file(place: str, folder: Path) -> Path:
    path = folder / place
    try:
        found = path.resolve()
        there = found.is_file()
    except (OSError, ValueError, RuntimeError):  # links in a circle, a name that cannot be one
        there = False
    if not there:
        raise Wrong("class", f"names a file that cannot be read: {path}", ACCEPTED)
    return found


def _module(name: str, search: Sequence[str]) -> list[tuple[str, Found]] | None:
    """Find a module and the packages that it is in, the outermost first.

    Args:
        name: its dotted name.
        search: the folders that it has to be in; without any, where Python's import finds it.

    Raises:
        Wrong: the name is that of a folder, or of a module that is in no file.
    """
    steps = []
    parts = name.split(".")
    for count in range(len(parts)):
        full = ".".join(parts[: count + 1])
        found = imports.locate(full, search)
        if found is None or found[1] is not bool(search):
            if not search and full in sys.modules:
                raise _in_no_file(full)
            return None
        if found[0].file is None and found[0].search is None:
            raise _in_no_file(full)
        steps.append((full, found[0]))
    if steps[-1][1].file is None:
        raise Wrong("class", f"names a folder and not a module: {name}", ACCEPTED)
    return steps


def _in_no_file(name: str) -> Wrong:
    return Wrong(
        "class",
        f"names a module that is not in a file: {name}",
        f"{ACCEPTED}; a class of a program or notebook is passed as such",
    )


def _missing(name: str, folder: Path) -> str:
    """Return the first part of a module's name that is not found."""
    parts = name.split(".")
    names = (".".join(parts[: count + 1]) for count in range(len(parts)))
    return next((each for each in names if imports.locate(each, [str(folder)]) is None), name)
