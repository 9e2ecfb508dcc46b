"""A campaign in a process of its own, for the tests that kill it.

    python store_process.py STORE REPLICATIONS LOG [--die-at-each-change]

runs a small experiment with the real engine. It writes the key of each run that begins to LOG, a
line each. With --die-at-each-change it makes a store in STORE/1, STORE/2 ... instead: for the N-th
a process kills itself before its N-th change to the file system (SIGKILL, in the middle of the
file if the change is a file's content), and another one finishes it. Their logs are STORE/N.killed
and STORE/N.finished, and STORE/N.kept has the runs that were there in between.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import redtail
from redtail import facts
from redtail.engine import batches
from redtail.errors import RunError
from redtail.outcomes import Outcomes
from redtail.store import writing
from redtail.store.format import RUN_NAME, run_key

EXPERIMENT = """
name = "Killed"
duration = "2 s"
warmup = "500 ms"
[bottleneck]
rate = "2 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
host_jitter = "6 ms"
[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "10 packets" },
  { kind = "red", limit = "10 packets", min_th = "2 packets", max_th = "6 packets", label = "RED" },
]
"traffic.ftp.flows" = [1, 2]
"""


def log_runs(log: Path) -> None:
    """Write down every run that begins."""
    made = batches.run_many

    def run_many(scenarios: Sequence[str], *rest: Any) -> list[Outcomes | RunError]:
        found: list[Outcomes | RunError] = []
        for scenario in scenarios:
            key = run_key(scenario, facts.code_version(), batches.BACKEND)
            with log.open("a") as file:
                file.write(f"{key}\n")
            found += made([scenario], *rest)
        return found

    batches.run_many = run_many


def count_changes(at: Callable[[int], bool]) -> None:
    """Die at the change to the file system for which `at` is true, counted from 1."""
    count = 0

    def counted() -> bool:
        nonlocal count
        count += 1
        return at(count)

    write_new, mkdir, unlink = writing.write_new, Path.mkdir, Path.unlink
    rename, replace = os.rename, os.replace

    def half_written(path: Path, data: bytes) -> None:
        if counted():
            write_new(path, data[: len(data) // 2])
            die()
        write_new(path, data)

    def made(path: Path, *rest: object, **more: object) -> None:
        if counted():
            die()
        mkdir(path, *rest, **more)  # type: ignore[arg-type]

    def removed(path: Path, *rest: object, **more: object) -> None:
        if path.exists() and counted():
            die()
        unlink(path, *rest, **more)  # type: ignore[arg-type]

    def renamed(source: str, target: str) -> None:
        if counted():
            die()
        rename(source, target)

    def replaced(source: str, target: str) -> None:
        if counted():
            die()
        replace(source, target)

    writing.write_new = half_written
    Path.mkdir = made  # type: ignore[method-assign, assignment]
    Path.unlink = removed  # type: ignore[method-assign, assignment]
    os.rename, os.replace = renamed, replaced  # type: ignore[assignment]


def die() -> None:
    """End as the kernel's out-of-memory killer would have it."""
    os.kill(os.getpid(), signal.SIGKILL)


def campaign(store: Path, replications: int, log: Path, die_at: int | None = None) -> None:
    """Run the experiment."""
    log_runs(log)
    if die_at is not None:
        count_changes(lambda count: count == die_at)
    redtail.run(redtail.Toml(EXPERIMENT), replications=replications, jobs=2, out=store)


def die_at_each_change(folder: Path, replications: int) -> None:
    """Kill a campaign at its first change, another one at its second, until one lives."""
    # Once, and not in each process; pyarrow loads pandas when it makes its first array of a list.
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import redtail.analysis.results
    import redtail.running.runner

    redtail.check(redtail.Toml(EXPERIMENT))
    folder.mkdir(parents=True)
    for number in itertools.count(1):
        root = folder / str(number)
        status = in_a_process(root, replications, folder / f"{number}.killed", number)
        kept = [path.name for path in root.glob("*/*") if RUN_NAME.fullmatch(path.name)]
        (folder / f"{number}.kept").write_text("\n".join(kept))
        if status == 0:
            return
        assert status == -signal.SIGKILL, status
        status = in_a_process(root, replications, folder / f"{number}.finished", None)
        assert status == 0, status


def in_a_process(root: Path, replications: int, log: Path, die_at: int | None) -> int:
    """Run the experiment in a process that knows all modules; return how it ended."""
    child = os.fork()
    if child == 0:
        try:
            campaign(root, replications, log, die_at)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("store", type=Path)
    parser.add_argument("replications", type=int)
    parser.add_argument("log", type=Path)
    parser.add_argument("--die-at-each-change", action="store_true")
    options = parser.parse_args()
    if options.die_at_each_change:
        die_at_each_change(options.store, options.replications)
    else:
        campaign(options.store, options.replications, options.log)


if __name__ == "__main__":
    main()
