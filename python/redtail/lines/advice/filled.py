"""Whether the loads of an advice filled the line where they are meant to.

Queues differ only while packets wait. So a load with senders that never run out of data tests a
direction only if they filled it: if a queue on the way dropped or marked packets in the time that
is measured, or if FULL of what the line and the shaper let through was used. Whether that is so is
read from the results, run by run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from redtail.lines.advice.access import carried
from redtail.lines.advice.simulated import AS_IT_IS, Simulated
from redtail.lines.line import Direction

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

FULL = 0.95
"""Share of the rate from which a direction is full without a drop or a mark. Source: our choice."""

_QUEUES = {"down": ("hop1", "hop2"), "up": ("hop2.return", "hop1.return")}


def not_filled(
    results: Results, wanted: Simulated, label: str
) -> tuple[tuple[str, Direction], ...]:
    """Return the loads and directions that senders did not fill, as they are meant to.

    There nothing waited, so that they test no queue: on the line as it is, or with a queue.

    Args:
        results: the runs.
        wanted: what was simulated.
        label: the queue's label.
    """
    full = {load.name: load.full for load in wanted.loads}
    return tuple(
        dict.fromkeys(
            (case.labels["case.name"], direction)
            for case in results.cases
            if (queue := case.labels["chain.hop2.queue"]) in (AS_IT_IS, label)
            for direction in full.get(case.labels["case.name"], ())
            if not filled(case, direction, wanted, _passing(wanted, direction, queue))
        )
    )


def _passing(wanted: Simulated, direction: Direction, label: str) -> float:
    """Return what the line and the shaper of a queue let through of full packets, in bit/s."""
    line = wanted.down_bps if direction == "down" else wanted.up_bps
    for each in wanted.candidates:
        shaped = getattr(each, direction).shaped
        if each.label == label and shaped.shaper_bps is not None:
            return min(line, carried(shaped.overhead, shaped.shaper_bps))
    return line


def filled(case: CaseResult, direction: Direction, wanted: Simulated, shaped: float) -> bool:
    """Return whether senders filled a direction in each run of a case.

    Args:
        case: its results.
        direction: the direction.
        wanted: what was simulated.
        shaped: what the shaper, or without one the line, carries of full packets, in bit/s.
    """
    signals = [
        case.values(f"{queue}.{metric}")
        for queue in _QUEUES[direction]
        for metric in ("loss", "mark")
    ]
    return all(
        used >= FULL or any(share > 0 for share in of_run)
        for used, *of_run in zip(_used(case, direction, wanted, shaped), *signals, strict=True)
    )


def _used(
    case: CaseResult, direction: Direction, wanted: Simulated, shaped: float
) -> Sequence[float]:
    """Return the share that was used, by run; where rates change, of the link that is used most."""
    shares = {queue: case.values(f"{queue}.utilization") for queue in _QUEUES[direction]}
    if wanted.varied is not None:
        return [max(of_run) for of_run in zip(*shares.values(), strict=True)]
    if direction == "down":
        return [share * wanted.router_bps / shaped for share in shares["hop2"]]
    return [share * wanted.link_bps("up") / shaped for share in shares["hop1.return"]]
