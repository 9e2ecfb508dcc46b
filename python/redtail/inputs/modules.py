"""Loads the modules of a class apart from those of all others, from what has been read before.

Two experiments may each have a `law.py`, and a file may change while a program runs. So the
modules of a class are in a package of their own: the class in `queue.py` is of the module
`redtail_code_HASH.queue`, and its `import law` means `redtail_code_HASH.law`. The hash is that of
all contents. What is executed are the texts that the hash was made of, so a module that was not
among them is refused, whenever it is imported.

Code finds this through `__import__` among its builtins, which the statement `import` calls.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib import machinery
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from redtail.inputs.imports import Closure, Module, is_known, locate

PREFIX = "redtail_code_"


class UnseenImport(Exception):
    """Code imports a module that could not be seen before it ran.

    It is no `ImportError`, which code that tries several modules would hide.
    """


def load(closure: Closure) -> ModuleType:
    """Return the main module, loaded unless it has been already.

    Raises:
        BaseException: whatever the code raises.
    """
    name = f"{PREFIX}{_digest(closure)}"
    if name not in sys.modules:
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Finder())
        root = ModuleType(name)
        root.__path__ = []
        _APART[name] = _Apart(name, closure)
        sys.modules[name] = root
    return importlib.import_module(f"{name}.{closure.main.name}")


def _digest(closure: Closure) -> str:
    """Return a hash of the contents and of the place: errors have to name the right files."""
    place = "\0".join(closure.search)
    return hashlib.sha256(f"{place}\0{closure.source}".encode()).hexdigest()[:16]


class _Apart:
    """The modules of a class, and what `import` means in them.

    Args:
        root: the name of the package that they are in.
        closure: the modules.
    """

    def __init__(self, root: str, closure: Closure) -> None:
        self.root = root
        self.search = closure.search
        self.modules = {each.name: each for each in closure.modules if each.own}
        self.elsewhere = {each.name for each in closure.modules if not each.own}
        self.builtins = {**vars(builtins), "__import__": self.imported}
        # Top-level names that are not of this class, once they have been looked at.
        self._others: set[str] = set()
        self._importlib = ModuleType("importlib")
        vars(self._importlib).update(vars(importlib))
        vars(self._importlib)["import_module"] = self.import_module

    def imported(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import as `__import__` does."""
        top = name.partition(".")[0]
        if level == 0 and self._is_own(top, name):
            return self._own(name, fromlist)
        found = builtins.__import__(name, globals, locals, fromlist or (), level)
        return self._importlib if found is importlib else found

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """Import as `importlib.import_module` does."""
        if name.startswith("."):
            return importlib.import_module(name, package)
        if not self._is_own(name.partition(".")[0], name):
            return importlib.import_module(name)
        self._own(name, None)
        return sys.modules[f"{self.root}.{name}"]

    def _own(self, name: str, fromlist: Sequence[str] | None) -> ModuleType:
        full = f"{self.root}.{name}"
        try:
            if fromlist:
                return builtins.__import__(full, None, None, fromlist, 0)
            importlib.import_module(full)
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith(f"{self.root}."):
                raise
            missing = error.name.removeprefix(f"{self.root}.")
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing) from None
        return sys.modules[f"{self.root}.{name.partition('.')[0]}"]

    def _is_own(self, top: str, name: str) -> bool:
        """Return whether a module is of this class.

        Raises:
            UnseenImport: it lies elsewhere, and was not found before.
        """
        if top in self.modules:
            return True
        if top in self._others:
            return False
        place = locate(top, self.search)
        if place is not None and place[1]:
            return True
        if place is not None and not is_known(top, place[0]) and top not in self.elsewhere:
            raise _unseen(name, place[0].file)
        self._others.add(top)
        return False

    def require_seen(self, name: str) -> None:
        """Refuse a module that lies in the folders and was not found before.

        Raises:
            UnseenImport: it is such a module.
        """
        place = locate(name, self.search)
        if place is not None and place[1]:
            raise _unseen(name, place[0].file)


def _unseen(name: str, file: Path | None) -> UnseenImport:
    where = "" if file is None else f" ({file})"
    return UnseenImport(
        f"imports {name}{where}, which could not be found by reading the code before it ran, so "
        f"that no result would be known to depend on it; accepted: the statement `import {name}`, "
        "anywhere in a file that is imported"
    )


# By the name of the package.
_APART: dict[str, _Apart] = {}


class _Finder:
    """Finds the modules in these packages, for Python's import."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        """Return how to load a module; None if it is of no class."""
        root, _, rest = name.partition(".")
        apart = _APART.get(root)
        if apart is None or not rest:
            return None
        module = apart.modules.get(rest)
        if module is None:
            apart.require_seen(rest)
            return None
        file, search = module.found.file, module.found.search
        if file is None:
            space = machinery.ModuleSpec(name, None, is_package=True)
            space.submodule_search_locations = list(search or ())
            return space
        return importlib.util.spec_from_file_location(
            name,
            file,
            loader=_loader(name, module, apart),
            submodule_search_locations=None if search is None else list(search),
        )


def _loader(name: str, module: Module, apart: _Apart) -> Any:
    path = str(module.found.file)
    if path.endswith(tuple(machinery.EXTENSION_SUFFIXES)):
        # Its code is in the file alone.
        if Path(path).read_bytes() != module.text:
            raise UnseenImport(f"imports {path}, which has changed since it was read")
        return machinery.ExtensionFileLoader(name, path)
    if path.endswith(tuple(machinery.BYTECODE_SUFFIXES)):
        return _CompiledLoader(name, path, module, apart)
    return _TextLoader(name, path, module, apart)


class _TextLoader(machinery.SourceFileLoader):
    """Executes a text that has been read.

    Python's own loader compares times of files, and may take an older version.
    """

    def __init__(self, name: str, path: str, module: Module, apart: _Apart) -> None:
        super().__init__(name, path)
        self._text, self._apart = module.text, apart

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the text."""
        code: CodeType = compile(self._text, self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Execute it where `import` means modules of the same class."""
        vars(module)["__builtins__"] = self._apart.builtins
        exec(self.get_code(module.__name__), vars(module))


class _CompiledLoader(machinery.SourcelessFileLoader):
    """The same for a compiled file without its text."""

    def __init__(self, name: str, path: str, module: Module, apart: _Apart) -> None:
        super().__init__(name, path)
        self._text, self._apart = module.text, apart

    def get_data(self, path: str | bytes) -> bytes:
        """Return what has been read."""
        return self._text

    def exec_module(self, module: ModuleType) -> None:
        """Execute it where `import` means modules of the same class."""
        vars(module)["__builtins__"] = self._apart.builtins
        code = self.get_code(module.__name__)
        assert code is not None, "a file without code is an ImportError"
        exec(code, vars(module))
