"""Which queues a number or a figure of a whole network is about.

In a chain packets wait at every hop. No hop stands for the others: where one delay is asked for, it
is the sum of the delays at all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from redtail import metrics as names
from redtail.scenario import is_return

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

PATH_DELAY = "path.queue_delay_mean"
"""What the page calls the sum of the mean queueing delays at the hops of a chain."""


def forward(links: Sequence[str]) -> list[str]:
    """Return the queues that data crosses in forward direction, in their order.

    >>> forward(["bottleneck", "return"]), forward(["hop1", "hop1.return", "hop2"])
    (['bottleneck'], ['hop1', 'hop2'])
    """
    return [link for link in links if not is_return(link)]


def path_delays(results: Results) -> list[str]:
    """Return the mean delays at the hops of a chain of several; empty for other networks."""
    hops = forward(results.links)
    found = [f"{hop}.queue_delay_mean" for hop in hops if hop != "bottleneck"]
    return found if len(found) > 1 and set(found) <= set(results.metric_names) else []


def sums(case: CaseResult, metrics: Sequence[str]) -> list[float]:
    """Return the sum of metrics, replication by replication.

    A queue that no packet crossed has no delay and adds none; NaN where that is so of all.
    """
    found = []
    for values in zip(*(case.values(name) for name in metrics), strict=True):
        known = [value for value in values if not math.isnan(value)]
        found.append(math.fsum(known) if known else math.nan)
    return found


def path_title(metrics: Sequence[str]) -> str:
    """Return what the sum of mean queueing delays is, in words.

    >>> path_title(["hop1.queue_delay_mean", "hop2.queue_delay_mean"])
    'Sum of the mean queueing delays at hop1 and hop2'
    >>> path_title([f"hop{number}.queue_delay_mean" for number in (1, 2, 3)])
    'Sum of the mean queueing delays at hop1 to hop3'
    """
    hops = [names.prefix(name) for name in metrics]
    return (
        f"Sum of the mean queueing delays at {hops[0]} {'and' if len(hops) == 2 else 'to'} "
        f"{hops[-1]}"
    )
