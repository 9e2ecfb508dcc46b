"""What a campaign will take: `redtail run --dry-run`."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from redtail import backends, facts
from redtail.engine.plans import Plan
from redtail.files import path_of
from redtail.metrics import counted
from redtail.store.folders import ExperimentStore
from redtail.store.format import folder_name, run_key
from redtail.store.objects import is_url
from redtail.store.segments import in_segments


@dataclass(frozen=True)
class Forecast:
    """The time and space that an experiment will need; the two ends of each range.

    Attributes:
        runs: runs asked for, at least and at most: they differ with a stop rule.
        stored: how many of the most are in the store already, for each case; None for a case that
            runs code of the user: what it measures depends on that code, which is not loaded.
        seconds: time for the missing ones, at least and at most.
        disk_bytes: what they will add to the store, at least and at most.
        source: what the estimates rest on: runs in the "store", or a "trial" run of the first case
            that runs no code of the user; "nothing" if all do.
        seconds_per_packet: what a bottleneck packet has cost there, on one processor.
        calibrates: whether users have to be found first, which is not counted.
        jobs: runs at the same time.
    """

    runs: tuple[int, int]
    stored: tuple[int | None, ...]
    seconds: tuple[float, float]
    disk_bytes: tuple[float, float]
    source: Literal["store", "trial", "nothing"]
    seconds_per_packet: float
    calibrates: bool
    jobs: int


def forecast(
    plan: Plan,
    *,
    out: str | os.PathLike[str] = "runs",
    jobs: int | None = None,
    backend: str | None = None,
) -> Forecast:
    """Estimate the time and space that a checked experiment will need.

    The cost of a run is that of a packet times the packets that the outline expects in it, or,
    where that cannot tell, the mean of what was measured. It is measured from runs of the
    experiment that are in the store; without any, one run of the first case is made, not kept.
    Cases that run code of the user are left out: no such code is executed.

    Args:
        plan: a checked experiment.
        out: folder of the store; nothing is written to it.
        jobs: runs at the same time; by default one per processor.
        backend: the name of what would make the runs; without it what the experiment says.

    Raises:
        SpecError: there is no such backend, or it cannot run the experiment.
        RunError: the trial run failed.
    """
    from redtail.running.pool import available_cores

    maker = backends.find(backends.chosen(backend, [plan]))
    backends.require_able(maker, [plan])
    maker = backends.bound(maker, plan)
    jobs = jobs or available_cores()
    if maker.at_once is not None:
        jobs = min(jobs, maker.at_once)
    asked = [plan.loads(case) for case in range(len(plan.cases))]
    calibrates = not plan.users and any(asked)
    if calibrates:
        users = tuple({load.group: load.estimate for load in loads} for loads in asked)
        plan = replace(plan, users=users)

    store = None
    if is_url(out) or (path_of(out) / folder_name(plan.name, maker.name)).is_dir():
        store = ExperimentStore(out, plan.name, maker.name)
        if store.remote is not None:
            store.remote.puts = False
    version = maker.identity()
    segments: Container[str] = ()
    if store is not None:
        store.fetch_segments()
        segments = in_segments(store.folder, version)
    seconds, packets, sizes = [], [], []
    # Of each case the replications that are stored; None if that is unknown.
    present: list[set[int] | None] = []
    for case in range(len(plan.cases)):
        if plan.runs_code(case):
            present.append(None)
            continue
        found = set()
        for replication in range(plan.replications):
            run = None
            if store is not None:
                key = run_key(plan.scenario(case, replication), version, maker.name)
                if key in segments:
                    found.add(replication)
                    continue
                run = store.load(key)
            if run is None:
                continue
            found.add(replication)
            if "wall_time_s" in run.manifest:
                seconds.append(float(run.manifest["wall_time_s"]))
                packets.append(int(run.manifest.get("bottleneck_packets", 0)))
                sizes.append(_size(run.folder))
        present.append(found)
    source: Literal["store", "trial", "nothing"] = "store"
    if all(found is None for found in present):
        source = "nothing"
        seconds, packets, sizes = [0.0], [0], [0]
    elif not seconds:
        source = "trial"
        first = next(case for case, found in enumerate(present) if found is not None)
        scenario = plan.scenario(first, 0)
        outcome = maker.run(scenario, None, None, plan.traces or None)
        with tempfile.TemporaryDirectory() as aside:
            kept = ExperimentStore(Path(aside), plan.name).save(
                run_key(scenario, version, maker.name),
                scenario,
                outcome,
                code_version=version,
                version=facts.version(),
                backend=maker.name,
                replication=0,
            )
            sizes = [_size(kept.folder)]
        seconds, packets = [outcome.wall_time_s], [outcome.bottleneck_packets]

    per_packet = math.fsum(seconds) / max(sum(packets), 1)
    per_run = math.fsum(seconds) / len(seconds)
    size = math.fsum(sizes) / len(sizes)

    def cost(case: int) -> float:
        expected = plan.packets(case)
        return per_run if expected is None else per_packet * expected

    def total(replications: int) -> tuple[float, float]:
        missing = [
            0
            if found is None
            else sum(replication not in found for replication in range(replications))
            for found in present
        ]
        work = math.fsum(cost(case) * count for case, count in enumerate(missing))
        return work / min(jobs, max(sum(missing), 1)), size * sum(missing)

    least, most = total(plan.at_least), total(plan.replications)
    return Forecast(
        runs=(plan.first_runs, plan.runs),
        stored=tuple(None if found is None else len(found) for found in present),
        seconds=(least[0], most[0]),
        disk_bytes=(least[1], most[1]),
        source=source,
        seconds_per_packet=per_packet,
        calibrates=calibrates,
        jobs=jobs,
    )


def duration(seconds: float) -> str:
    """Return a time as text, to two digits.

    >>> duration(0.234), duration(75.0), duration(4000.0), duration(1e6)
    ('0.23 s', '75 s', '67 min', '280 h')
    """
    for limit, unit, name in ((100.0, 1.0, "s"), (6000.0, 60.0, "min"), (math.inf, 3600.0, "h")):
        if seconds < limit:
            return f"{_two_digits(seconds / unit)} {name}"
    raise AssertionError


def size_text(size: float) -> str:
    """Return an amount of data as text, to two digits.

    >>> size_text(12345.0), size_text(3.456e9)
    ('12 kB', '3.5 GB')
    """
    for limit, unit, name in ((1e3, 1.0, "B"), (1e6, 1e3, "kB"), (1e9, 1e6, "MB")):
        if size < limit:
            return f"{_two_digits(size / unit)} {name}"
    return f"{_two_digits(size / 1e9)} GB"


def lines(found: Forecast) -> list[str]:
    """Return what `redtail run --dry-run` says below the cases."""
    stored = sum(each or 0 for each in found.stored)
    own = sum(each is None for each in found.stored)
    known = found.runs[1] // len(found.stored) * (len(found.stored) - own)
    code = [
        f"code:    {counted(own, 'case')} of {len(found.stored)} would run code, which a dry run "
        "does not execute; estimated without"
    ]
    if found.source == "nothing":
        return [f"code:    all {counted(own, 'case')} would run code: nothing is estimated"]
    basis = (
        f"{stored} stored runs"
        if found.source == "store"
        else f"one trial run of the first case{' without code' if own else ''}"
    )
    report = [
        f"stored:  {stored} of {known} runs are in the store already",
        f"time:    about {_range(found.seconds, duration)} on {found.jobs} processors "
        f"({1e9 * found.seconds_per_packet:.0f} ns per bottleneck packet, measured in {basis})",
        f"disk:    about {_range(found.disk_bytes, size_text)} more",
    ]
    report += code if own else []
    if found.calibrates:
        report.append(
            "loads:   the users of groups with a load are found first; that is not counted, and "
            "runs in the store are not recognised before"
        )
    return report


def _range(ends: tuple[float, float], text: object) -> str:
    assert callable(text)
    low, high = text(ends[0]), text(ends[1])
    return str(low) if low == high else f"{low} to {high}"


def _two_digits(value: float) -> str:
    if value == 0:
        return "0"
    rounded = float(f"{value:.1e}")
    return f"{rounded:g}" if rounded < 100 else f"{rounded:.0f}"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
