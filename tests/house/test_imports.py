"""Which module imports which: no circles between packages, and what a start loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

import redtail
from redtail import cli
from redtail.cli.deferred import Deferred

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
            yield from (f"{part.module}.{each.name}" for each in part.names)
        elif isinstance(part, ast.Import):
            yield from (each.name for each in part.names)
        else:
            yield from imported(part)


@cache
def modules() -> dict[str, set[str]]:
    """Return each module with the modules that it imports, without the package itself."""
    paths = {name_of(path): path for path in FOLDER.rglob("*.py")}
    del paths["redtail"]  # gives the functions of all others to users
    code = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    # What is no module is a name of the module before the last dot.
    found = {
        name: {each if each in paths else each.rpartition(".")[0] for each in imported(parsed)}
        for name, parsed in code.items()
    }
    return {name: of & paths.keys() - {name} for name, of in found.items()}


def reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found


#: Results that print or draw themselves load within a function what does so, and are its input.
FACES = {
    ("redtail.lines.advice.answer", "redtail.lines.advice.report"),
    ("redtail.lines.verify.report", "redtail.lines.verify.verified"),
    ("redtail.lines.provider.answer", "redtail.lines.provider.report"),
    ("redtail.studies.report", "redtail.studies.results"),
    ("redtail.tuning.figures", "redtail.tuning.found"),
}


def test_imports_have_no_circles() -> None:
    graph = modules()
    assert "redtail.display.plots" in graph["redtail.analysis.results"]  # also within functions
    behind = {name: reached(name, graph) for name in graph}
    circles = {
        (name, other)
        for name in graph
        for other in behind[name]
        if name in behind[other] and name < other
    }
    assert circles == FACES


PUBLIC = {"redtail.lines", "redtail.lines.routers"}
ABOVE = {"cli", "page", "templates", "tuning"}


def within(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"redtail.{package}.")


def test_lines_are_used_by_their_door_and_by_the_command_line_alone() -> None:
    graph = modules()
    using = {
        name: lines
        for name, of in graph.items()
        if not within(name, "lines") and (lines := {each for each in of if within(each, "lines")})
    }
    assert "redtail.cli.advise" in using
    assert {name for name in using if not within(name, "cli")} == {"redtail._generate"}
    inner = {"redtail.lines.routers.openwrt"}  # of which a page has a table
    assert set().union(*using.values()) - PUBLIC == inner
    assert inner <= using["redtail._generate"]


def test_lines_know_nothing_that_is_above_or_beside_them() -> None:
    known = {each for name, of in modules().items() if within(name, "lines") for each in of}
    assert "redtail.running.runner" in known
    assert not {each for each in known for package in ABOVE if within(each, package)}


def test_recordings_routers_and_advice_know_nothing_of_each_other() -> None:
    graph = modules()
    rooms = ("lines.recordings", "lines.routers", "lines.advice")
    for room in rooms:
        known = {each for name, of in graph.items() if within(name, room) for each in of}
        assert "redtail.lines.line" in known
        others = {other for other in rooms if other != room}
        assert not {each for each in known for other in others if within(each, other)}


def test_the_door_of_lines_gives_each_of_its_names_and_loads_none_before() -> None:
    from redtail import lines

    assert sorted(lines.__all__) == sorted(lines._MODULES)
    for name in lines.__all__:
        assert getattr(lines, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = lines.nothing  # type: ignore[attr-defined]
    new = loaded("import redtail.lines") - loaded("import redtail")
    assert {name for name in new if within(name, "lines")} == {"redtail.lines"}


#: Libraries that take a tenth of a second or more to load, some of them a second.
HEAVY = {"matplotlib", "numpy", "optuna", "pandas", "polars", "pyarrow", "ruptures", "scipy"}
HEAVY |= {"dask", "distributed", "fsspec", "jinja2", "IPython"}

#: Libraries that the command line can use, each of which takes as long as the rest of a start.
LATE = {"pydantic", "rich"}


def loaded(script: str) -> set[str]:
    """Return the modules that a process of its own has after a script."""
    script = f"import sys\n{script}\nprint(*sys.modules, file=sys.stderr)"
    call = [sys.executable, "-c", script]
    done = subprocess.run(call, capture_output=True, encoding="utf-8", check=True)
    return set(done.stderr.splitlines()[-1].split())


def command_line(*words: str) -> str:
    return (
        f"sys.argv = ['redtail', *{words!r}]\nfrom redtail.cli import main\n"
        "try: main()\nexcept SystemExit as error: assert not error.code, error"
    )


def test_importing_redtail_loads_nothing_but_the_standard_library() -> None:
    before = loaded("")
    new = loaded("import redtail") - before
    assert "redtail" in new
    assert {name for name in new if name.split(".")[0] == "redtail"} == {"redtail"}
    others = {name.split(".")[0] for name in new} - {"redtail"}
    assert others <= sys.stdlib_module_names


@pytest.mark.parametrize("words", [(), ("runs",), ("kernel",)])
def test_help_loads_no_command_and_no_heavy_library(words: tuple[str, ...]) -> None:
    modules = loaded(command_line(*words, "--help"))
    assert not (HEAVY | LATE) & modules
    ours = {name for name in modules if name.startswith("redtail.")}
    needed = {"redtail.cli.deferred", "redtail.cli.exits", "redtail.cli.output"}
    assert needed <= ours
    assert not {name for name in ours if name.startswith("redtail.cli.")} - needed
    assert "redtail._native" not in modules


def test_a_command_loads_its_own_module_alone() -> None:
    modules = loaded(command_line("schema"))
    assert "redtail.cli.parts" in modules
    assert not {"redtail.cli.run", "redtail.cli.stored", "redtail.cli.advise"} & modules


@pytest.mark.parametrize(
    "words",
    [
        ("check", "examples/quickstart.toml", "--set", "duration=20 s"),
        ("list", "queues"),
        ("list", "tcp"),
        ("list", "traffic", "voip"),
        ("list", "metrics", "--long"),
        ("kernel", "list"),
        ("schema",),
        ("run", "--help"),
    ],
    ids=" ".join,
)
def test_commands_that_only_say_something_load_no_heavy_library(words: tuple[str, ...]) -> None:
    assert not (HEAVY | LATE) & loaded(command_line(*words))


def test_the_lines_of_help_are_those_of_the_commands() -> None:
    root = get_command(cli.app)
    assert isinstance(root, TyperGroup)
    groups = [root, root.commands["runs"], root.commands["kernel"]]
    for group in groups:
        assert isinstance(group, TyperGroup)
        for one in group.commands.values():
            if one in groups:
                continue
            assert isinstance(one, Deferred)
            paragraph = one.loaded().help.split("\n\n")[0]
            assert one.short_help == " ".join(paragraph.split()), one.name
