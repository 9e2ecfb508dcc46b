"""Whether the loads of an advice filled the line where they are meant to.

Queues differ only while packets wait. So a load with senders that never run out of data tests a
direction only if they filled it: if a queue on the way dropped or marked packets in the time that
is measured, or if FULL of what the line and the shaper let through was used. Whether that is so is
read from the results, run by run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redtail.lines.advice.simulated import Simulated
from redtail.lines.line import Direction

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult

FULL = 0.95
"""Share of the rate from which a direction is full without a drop or a mark. Source: our choice."""

_QUEUES = {"down": ("hop1", "hop2"), "up": ("hop2.return", "hop1.return")}


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
    if direction == "down":
        carried = [value * wanted.router_bps for value in case.values("hop2.utilization")]
    else:
        link = wanted.link_bps("up")
        carried = [value * link for value in case.values("hop1.return.utilization")]
    return all(
        rate >= FULL * shaped or any(share > 0 for share in of_run)
        for rate, *of_run in zip(carried, *signals, strict=True)
    )
