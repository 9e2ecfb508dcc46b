"""Changes one place of the code at a time and looks whether a test fails.

    .venv/bin/python tools/mutation.py [--minutes 60] [--seed 1] [ROOM ...]

A room is a folder of modules with the folder of its tests. Mutants are drawn at random from all
that cosmic-ray can make of a room, by the seed; those in annotations are left out, since nothing
evaluates them. They are made in a copy of the tree, never in the tree itself. Printed is for each
room the share of mutants that survive, with its 95 % interval (Wilson 1927), and each survivor.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import math
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.testing import run_tests
from cosmic_ray.work_item import TestOutcome

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from check import python_tests

ROOT = Path(__file__).parents[1]
COPY = ROOT / "target" / "mutants" / "tree"

#: The modules of a room and its tests, from the package and from `tests`.
ROOMS = {
    "analysis": ("analysis", "analysis"),
    "store": ("store", "store"),
    "studies": ("studies", "studies"),
    "lines": ("lines", "lines"),
}

#: Seconds after which a test counts as failed: it takes much longer than without a mutant.
TIMEOUT = 300


@dataclass(frozen=True)
class Mutant:
    """A change of one place.

    Attributes:
        module: the file, from the root of the project.
        operator: its name in cosmic-ray.
        occurrence: which of the places that it can change.
    """

    module: Path
    operator: str
    occurrence: int

    def text(self) -> str | None:
        """Return the module with this change."""
        source = (ROOT / self.module).read_text(encoding="utf-8")
        found: str | None = mutate_code(
            source, plugins.get_operator(self.operator)(), self.occurrence
        )
        return found

    def difference(self) -> str:
        """Return the changed lines."""
        source = (ROOT / self.module).read_text(encoding="utf-8")
        lines = difflib.unified_diff(
            source.splitlines(), (self.text() or "").splitlines(), lineterm="", n=0
        )
        return f"{self.module}\n" + "\n".join([*lines][2:])


def annotations(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where annotations of types begin and end: line from 1, column from 0."""
    found = []
    for node in ast.walk(ast.parse(source)):
        for each in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(each, ast.expr) and each.end_lineno is not None:
                end = (each.end_lineno, each.end_col_offset or 0)
                found.append(((each.lineno, each.col_offset), end))
    return found


def mutants(module: Path) -> Iterator[Mutant]:
    """Yield all mutants of a module."""
    source = (ROOT / module).read_text(encoding="utf-8")
    types = annotations(source)
    nodes = [*ast_nodes(get_ast(source))]
    for name in plugins.operator_names():
        kind = plugins.get_operator(name)
        if kind.arguments() or "Decorator" in name:
            continue
        places = [place for node in nodes for place in kind().mutation_positions(node)]
        for number, (start, _) in enumerate(places):
            if not any(begin <= start < end for begin, end in types):
                yield Mutant(module, name, number)


def copy() -> None:
    """Make the copy in which mutants are put."""
    shutil.rmtree(COPY, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    built = [*(ROOT / "python/redtail").glob("_native*.so")]
    for name in [os.fsdecode(each) for each in listed.split(b"\0") if each] + built:
        source = ROOT / name
        if source.is_file():
            target = COPY / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def test(mutant: Mutant, tests: str) -> TestOutcome:
    """Return whether a mutant survives the tests of its room: those that import it come first."""
    text = mutant.text()
    if text is None:
        return TestOutcome.INCOMPETENT
    file = COPY / mutant.module
    before = file.read_text(encoding="utf-8")
    named = python_tests([str(mutant.module)])
    files = [str(COPY / name) for name in named if Path(name).parent.name == tests]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-m", "not live and not linux and not weekly and not papers"]
    command += [*files, str(COPY / "tests" / tests), str(file)]
    file.write_text(text, encoding="utf-8")
    try:
        found, _ = run_tests(" ".join(f"'{word}'" for word in command), TIMEOUT)
    finally:
        file.write_text(before, encoding="utf-8")
    return found


def interval(survived: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, by Wilson's score."""
    z = 1.959964
    middle = (survived + z * z / 2) / (total + z * z)
    half = z / (total + z * z) * math.sqrt(survived * (total - survived) / total + z * z / 4)
    return middle - half, middle + half


def main() -> int:
    """Test mutants of each room until the time is over; returns 1 where tests fail without one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--minutes", type=float, default=60.0, help="for all rooms together")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if unknown := set(options.rooms) - set(ROOMS):
        parser.error(f"{', '.join(sorted(unknown))}: accepted: {', '.join(ROOMS)}")
    rooms = options.rooms or list(ROOMS)
    copy()
    os.chdir(COPY)
    os.environ["PYTHONPATH"] = str(COPY / "python")
    for room in rooms:
        modules, tests = ROOMS[room]
        paths = sorted((ROOT / "python/redtail" / modules).rglob("*.py"))
        drawn = [each for path in paths for each in mutants(path.relative_to(ROOT))]
        random.Random(f"{options.seed} {room}").shuffle(drawn)
        end = time.monotonic() + 60 * options.minutes / len(rooms)
        survivors: list[Mutant] = []
        total = 0
        for mutant in drawn:
            if time.monotonic() > end:
                break
            outcome = test(mutant, tests)
            total += outcome in (TestOutcome.KILLED, TestOutcome.SURVIVED)
            if outcome == TestOutcome.SURVIVED:
                survivors.append(mutant)
                print(f"survived: {mutant.difference()}\n", flush=True)
        if not total:
            print(f"{room}: no mutant was tested in the time", flush=True)
            continue
        low, high = interval(len(survivors), total)
        share = 100 * len(survivors) / total
        print(
            f"{room}: {len(survivors)} of {total} mutants survived, {share:.0f} % "
            f"({100 * low:.0f} to {100 * high:.0f}); {len(drawn)} can be made",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
