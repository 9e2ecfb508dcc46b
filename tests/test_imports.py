"""Which module of the package imports which: no circles between packages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import redtail

FOLDER = Path(redtail.__file__).parent


def name_of(path: Path) -> str:
    parts = path.relative_to(FOLDER.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def imported(code: ast.AST) -> Iterator[str]:
    """Yield what code imports, also within functions, but not what it imports for types alone."""
    for part in ast.iter_child_nodes(code):
        if isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING":
            continue
        if isinstance(part, ast.ImportFrom) and part.module is not None:
            yield part.module
            yield from (f"{part.module}.{each.name}" for each in part.names)
        elif isinstance(part, ast.Import):
            yield from (each.name for each in part.names)
        else:
            yield from imported(part)


def modules() -> dict[str, set[str]]:
    """Return each module with the modules that it imports, without the package itself."""
    paths = {name_of(path): path for path in FOLDER.rglob("*.py")}
    del paths["redtail"]  # gives the functions of all others to users
    code = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    return {name: {*imported(parsed)} & paths.keys() - {name} for name, parsed in code.items()}


def reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found


def package(name: str) -> str:
    """Return the part of redtail that a module belongs to: `store`, `analysis`, or itself."""
    return name.split(".")[1]


def test_no_circle_of_imports_goes_through_two_packages() -> None:
    graph = modules()
    assert "redtail.display.plots" in graph["redtail.analysis.results"]  # also within functions
    behind = {name: reached(name, graph) for name in graph}
    circles = {
        (name, other)
        for name in graph
        for other in behind[name]
        if name in behind[other] and package(name) < package(other)
    }
    assert not circles
