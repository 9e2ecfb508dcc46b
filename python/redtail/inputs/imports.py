"""What the code of users imports, found out by reading it: nothing here executes any of it.

The statements `import` and `from ... import` of a file are found wherever they stand in it, also
in functions, and so are calls of `importlib.import_module` and `__import__` with a name in quotes.
A name that is computed while the code runs cannot be found; `modules` refuses such an import when
it happens.

Modules are of three sorts:

- those in the folders that a class may import from (`Closure.search`) belong to the class;
- those of Python itself, of installed packages and of redtail are not looked into;
- all others, which Python's path leads to, lie elsewhere.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import machinery
from pathlib import Path
from types import ModuleType

# Installed packages are in folders of these names, also where an environment lies in the folder of
# an experiment.
INSTALLED = frozenset({"site-packages", "dist-packages"})

# As `importlib` orders them.
_LOADERS = (
    (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
    (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
    (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
)

# An experiment from somebody else may lead to anything.
_MOST_MODULES = 1000
_LARGEST_FILE = 64 << 20


class TooMuch(Exception):
    """There is more code than is read."""


@dataclass(frozen=True)
class Found:
    """Where a module is, before it is read.

    Attributes:
        file: its file, symbolic links followed; None for a folder without `__init__.py`.
        search: the folders of its submodules; None for a module that is no package.
    """

    file: Path | None
    search: tuple[str, ...] | None


@dataclass(frozen=True)
class Module:
    """A module of a class, or one that lies elsewhere.

    Attributes:
        name: its dotted name.
        found: where it is.
        text: the content of its file; empty for a folder without `__init__.py`.
        own: whether it belongs to the class, so that no other class shares it.
    """

    name: str
    found: Found
    text: bytes = field(repr=False)
    own: bool

    @property
    def package(self) -> str:
        """The name that its relative imports begin at."""
        return self.name if self.found.search is not None else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Closure:
    """A module with everything that it imports, directly or not.

    Attributes:
        main: the module itself.
        parents: the packages that it is in, the outermost first.
        search: the folders that its own modules are looked for in.
        modules: all of these, `parents` and `main` first.
        installed: the installed packages that are imported, and their versions.
    """

    main: Module
    parents: tuple[Module, ...]
    search: tuple[str, ...]
    modules: tuple[Module, ...]
    installed: tuple[tuple[str, str], ...]

    @property
    def imported(self) -> tuple[Module, ...]:
        """What it imports, its own packages not included."""
        return self.modules[len(self.parents) + 1 :]

    @property
    def source(self) -> str:
        """The hash of what is executed: names and contents of modules, versions of packages.

        No path is part of it, so that the same files in another folder have the same hash.
        """
        parts = [f"{self.main.name}\n".encode()]
        for module in sorted(self.modules, key=lambda each: (each.name, each.text)):
            digest = hashlib.sha256(module.text).hexdigest()
            parts.append(f"module {module.name} {digest}\n".encode())
        parts += (f"package {name} {version}\n".encode() for name, version in self.installed)
        return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def closure(
    main: str, found: Found, parents: Sequence[tuple[str, Found]], search: Sequence[Path], own: bool
) -> Closure:
    """Read a module and all that it imports.

    Args:
        main: its dotted name.
        found: where it is.
        parents: the packages that it is in.
        search: the folders that its own modules are looked for in.
        own: whether it is loaded from these, and not by Python's own import.

    Raises:
        TooMuch: more than 1000 modules, or a file larger than 64 MiB.
        OSError: a file cannot be read.
    """
    folders = tuple(map(str, search))
    outer = tuple(_read(name, each, own) for name, each in parents)
    first = _read(main, found, own)
    modules = {(module.own, module.name): module for module in (*outer, first)}
    installed: set[str] = set()
    waiting = list(modules.values())
    while waiting:
        module = waiting.pop(0)
        if installed_package(module):
            installed.add(module.name.partition(".")[0])
            continue
        for name in imported_names(module):
            for step in _steps(name):
                if (True, step) in modules or (False, step) in modules:
                    continue
                place = locate(step, folders if module.own else ())
                if place is None:
                    break  # an attribute, or what is not there
                where, is_own = place
                if not is_own and is_known(step, where):
                    if is_installed(where):
                        installed.add(step.partition(".")[0])
                    break
                if len(modules) == _MOST_MODULES:
                    raise TooMuch(f"imports more than {_MOST_MODULES} modules")
                modules[is_own, step] = _read(step, where, is_own)
                waiting.append(modules[is_own, step])
    versions = {version(name) for name in installed}
    return Closure(first, outer, folders, tuple(modules.values()), tuple(sorted(versions)))


def installed_package(module: Module) -> bool:
    """Return whether a module is one of an installed package, which is not looked into."""
    return not module.own and is_installed(module.found)


def _read(name: str, found: Found, own: bool) -> Module:
    if found.file is None:
        return Module(name, found, b"", own)
    if found.file.stat().st_size > _LARGEST_FILE:
        raise TooMuch(f"has a file larger than {_LARGEST_FILE >> 20} MiB: {found.file}")
    return Module(name, found, found.file.read_bytes(), own)


def _steps(name: str) -> Iterator[str]:
    """Yield the packages around a module, the outermost first, and the module."""
    parts = name.split(".")
    for count in range(len(parts)):
        yield ".".join(parts[: count + 1])


def imported_names(module: Module) -> Iterator[str]:
    """Yield the dotted names that a module may import; some may be no modules but attributes."""
    for level, base, names in _statements(module.text):
        if level:
            around = module.package.split(".") if module.package else []
            if level - 1 > len(around):
                continue  # Python refuses it
            around = around[: len(around) - (level - 1)]
            base = ".".join([*around, base] if base else around)
        if base:
            yield base
        for name in names:
            yield f"{base}.{name}" if base else name
    # `from package import *` imports what `__all__` names.
    if module.found.search is not None:
        for name in _listed(module.text):
            yield f"{module.name}.{name}"


@functools.lru_cache(maxsize=256)
def _statements(text: bytes) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    """Return the imports of a file: the level, the module and the names of each."""
    found: list[tuple[int, str, tuple[str, ...]]] = []
    for_types: set[ast.AST] = set()
    for node in ast.walk(_parsed(text)):
        if node in for_types:
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for_types.update(inner for each in node.body for inner in ast.walk(each))
        if isinstance(node, ast.Import):
            found += [(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names if alias.name != "*")
            found.append((node.level, node.module or "", names))
        elif isinstance(node, ast.Call) and node.args:
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else None
            name = called.id if isinstance(called, ast.Name) else name
            given = node.args[0]
            if name in ("import_module", "__import__") and isinstance(given, ast.Constant):
                word = given.value if isinstance(given.value, str) else ""
                bare = word.lstrip(".")
                if all(part.isidentifier() for part in bare.split(".")):
                    found.append((len(word) - len(bare), bare, ()))
    return tuple(dict.fromkeys(found))


@functools.lru_cache(maxsize=256)
def _listed(text: bytes) -> tuple[str, ...]:
    """Return the names in the list `__all__` of a file."""
    for node in _parsed(text).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets):
            given = node.value if isinstance(node, ast.Assign) else None
            values = given.elts if isinstance(given, ast.List | ast.Tuple) else []
            return tuple(
                each.value
                for each in values
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )
    return ()


def _parsed(text: bytes) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])  # compiled code, or what Python will refuse as well


def locate(name: str, search: Sequence[str]) -> tuple[Found, bool] | None:
    """Find a module: in the folders of `search`, or else where Python's import finds it.

    Returns:
        Where it is, and whether it is in `search`; None if it is nowhere, or built into Python.
    """
    top = name.partition(".")[0]
    if top in sys.builtin_module_names or machinery.FrozenImporter.find_spec(top) is not None:
        return None
    here = _step(top, search)
    if here is not None and here.file is None:
        # A folder without `__init__.py` is a package only where no other module has its name.
        other = _elsewhere(top)
        if other is not None and (other.file is not None or other.search is None):
            here = None
    found = _elsewhere(name) if here is None else _in_folders(name, search)
    return None if found is None else (found, here is not None)


def _in_folders(name: str, search: Sequence[str]) -> Found | None:
    """Find a module below folders by its files alone."""
    entries: Sequence[str] = search
    found: Found | None = None
    full = ""
    for part in name.split("."):
        full = f"{full}.{part}" if full else part
        found = _step(full, entries)
        if found is None:
            return None
        entries = found.search or ()
    return found


def _elsewhere(name: str) -> Found | None:
    """Find a module as Python's import does, without executing the packages that it is in."""
    if name.partition(".")[0] in sys.stdlib_module_names:
        return Found(None, None)
    found: Found | None = None
    entries: Sequence[str] | None = None
    for full in _steps(name):
        loaded = sys.modules.get(full)
        if loaded is not None:
            found = place_of(loaded)
        elif entries is None:
            found = _step(full, [entry or "." for entry in sys.path]) or _hooked(full)
        else:
            found = _step(full, entries)
        if found is None:
            return None
        entries = found.search or ()
    return found


def place_of(module: ModuleType) -> Found:
    """Return where a module is that Python has imported."""
    folders = getattr(module, "__path__", None)
    file = _resolved(getattr(module, "__file__", None))
    return Found(file, None if folders is None else tuple(folders))


def _hooked(name: str) -> Found | None:
    """Ask the finders that other programs have added to Python's import."""
    for finder in sys.meta_path:
        if isinstance(finder, type) or not hasattr(finder, "find_spec"):
            continue  # Python's own, which are classes
        try:
            spec = finder.find_spec(name, None)
        except Exception:  # of a package that is not ours
            continue
        if spec is not None:
            file = spec.origin if spec.has_location else None
            places = spec.submodule_search_locations
            return Found(_resolved(file), None if places is None else tuple(places))
    return None


def _step(name: str, entries: Sequence[str]) -> Found | None:
    """Find a module in folders; one without a file is a folder, part of a namespace."""
    space: list[str] = []
    for entry in entries:
        spec = machinery.FileFinder(entry, *_LOADERS).find_spec(name)
        if spec is None:
            continue
        places = spec.submodule_search_locations
        if spec.loader is not None:
            return Found(_resolved(spec.origin), None if places is None else tuple(places))
        space += places or []
    return Found(None, tuple(space)) if space else None


def _resolved(file: str | None) -> Path | None:
    return None if file is None else Path(file).resolve()


def is_known(name: str, found: Found) -> bool:
    """Return whether a module is one of Python, of an installed package or of redtail."""
    top = name.partition(".")[0]
    if top == "redtail" or top in sys.stdlib_module_names:
        return True
    if is_installed(found):
        return True
    return found.file is None and found.search is None  # in no file: nothing to look into


def is_installed(found: Found) -> bool:
    """Return whether a module lies in a folder of installed packages."""
    places = [found.file] if found.file is not None else map(Path, found.search or ())
    return any(not INSTALLED.isdisjoint(place.parts) for place in places)


@functools.cache
def version(name: str) -> tuple[str, str]:
    """Return the installed package that a module is of, and its version."""
    from importlib import metadata

    try:
        return name, metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
    # Slow, so only where the names differ: `yaml` is of PyYAML.
    for package in metadata.packages_distributions().get(name, []):
        return package, metadata.version(package)
    return name, "unknown"
