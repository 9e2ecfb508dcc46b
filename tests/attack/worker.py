"""Checks experiment files and runs small ones, in a process that may die of it.

    python -m attack.worker

reads the name of a file from each line and answers with a line of JSON: {"end": "refused"},
"checked" or "ran", or {"fault": "..."} for what must not happen.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import resource
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Container, Iterator
from pathlib import Path

from rich.console import Console

import redtail
from redtail.display.tables import summary_table
from redtail.engine import batches, plans
from redtail.errors import SpecError
from redtail.running import runner
from redtail.store import runs

# A check that takes more memory than this has gone wrong; a small run has too.
_MEMORY = 3 << 30

_SECONDS_OF_A_RUN = 2.0
_SIMULATED = "300 ms"
_MOST_FLOWS = 500
_MOST_CASES = 200
# Runs that end within so many seconds, of so many cases, are also stored and shown.
_QUICK = 0.2
_MOST_STORED = 4
# What is sent faster fills the memory before the time is over, as it would anywhere.
_FASTEST = 1e9

# Keys whose numbers make things that take memory.
_COUNTS = ("flows", "users", "hosts", "servers", "connections")


def main() -> None:
    """Answer until there is nothing more to do."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        try:
            answer = {"end": attempt(line.rstrip("\n"))}
        except BaseException as error:
            answer = {"fault": "".join(traceback.format_exception(error))[-3000:]}
        print(json.dumps(answer), flush=True)


def attempt(path: str) -> str:
    """Check a file, and run it if it is small; returns how far that came.

    Raises:
        BaseException: what must not happen.
    """
    try:
        plan = redtail.check(path)
    except SpecError as error:
        assert str(error).strip(), "refused without a word"
        return "refused"
    assert all(plan.warnings), "a warning without a word"
    for case in range(min(len(plan.cases), _MOST_CASES)):
        plan.example(case)
    small = smaller(path)
    if small is None:
        return "checked"
    with limited() as cancel, contextlib.suppress(redtail.Cancelled):
        outcome = batches.run_one(small.scenario(0, 0), cancel, small.queues, small.traces)
        wrong = [name for name, value in outcome.metrics.items() if not math.isfinite(value)]
        assert not wrong, f"not finite: {wrong}"
        if outcome.wall_time_s < _QUICK and len(small.cases) <= _MOST_STORED:
            stored(small)
    return "ran"


def smaller(path: str) -> plans.Plan | None:
    """The file with a short duration; None if it is not valid then, or large all the same."""
    try:
        plan = redtail.check(path, set={"duration": _SIMULATED, "warmup": "0 s"}, replications=1)
    except SpecError:
        return None
    return plan if all(is_small(plan, case) for case in range(len(plan.cases))) else None


def is_small(plan: plans.Plan, case: int) -> bool:
    """Whether a case can be run in no time and memory worth the name."""
    scenario = plan.example(case)
    if len(scenario) > 100_000 or plan.loads(case):
        return False
    tree = json.loads(scenario)
    counts = sum(int(count) for count in values(tree, _COUNTS) if isinstance(count, int))
    fastest = max(map(bits_per_s, values(tree, ("rate",))), default=0.0)
    return counts <= _MOST_FLOWS and fastest <= _FASTEST


def stored(plan: plans.Plan) -> None:
    """Run an experiment as a user would: stored, shown, read back and verified."""
    with tempfile.TemporaryDirectory() as out:
        try:
            results = runner.execute(plan, jobs=1, out=out)
        except SpecError:
            return  # its stop rule asks for a metric that it has not
        shown = Console(width=100, file=io.StringIO(), markup=False)
        for phases in (False, True):
            shown.print(summary_table(results, 100, phases))
        assert json.loads(results.to_json())["experiment"] == plan.name
        (folder,) = (path for path in Path(out).iterdir() if path.name != "calibrations")
        assert json.loads(redtail.load(folder).to_json()) == json.loads(results.to_json())
        assert list(runs.verify(folder)) == []
        runs.text(runs.show(Path(out), folder))


def values(tree: object, keys: Container[str]) -> Iterator[object]:
    """Every value of one of these keys."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key in keys:
                yield value
            yield from values(value, keys)
    elif isinstance(tree, list):
        for value in tree:
            yield from values(value, keys)


def bits_per_s(text: object) -> float:
    """A rate as a number; 0 for what is none."""
    number, _, unit = str(text).partition(" ")
    scale = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}.get(unit)
    return float(number) * scale if scale else 0.0


@contextlib.contextmanager
def limited() -> Iterator[object]:
    """What stops a run that takes long: rates may be of any size."""
    cancel = batches.cancel_token()
    timer = threading.Timer(_SECONDS_OF_A_RUN, cancel.cancel)
    timer.start()
    try:
        yield cancel
    finally:
        timer.cancel()
        timer.join()


if __name__ == "__main__":
    main()
