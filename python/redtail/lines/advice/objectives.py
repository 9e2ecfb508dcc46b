"""What an advice is judged by: measures of a run, and objectives that rank queues by them.

An objective looks, in each replication, at the worst of its measures over directions and loads. So
a queue is as good as its worst load, as in `redtail tune` (robust optimisation, Ben-Tal, El Ghaoui,
Nemirovski 2009, chapter 1). Queues see the same loads with the same seeds, and are compared
replication by replication.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from redtail.analysis.censoring import shares
from redtail.errors import SpecError
from redtail.lines.advice.access import SHARE_OF_CHANGING
from redtail.lines.advice.simulated import Simulated
from redtail.lines.line import Direction

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.lines.advice.loads import Load

LOST_AT_MOST = 0.10
"""How much more of the throughput a queue may lose than the one that loses least, as a share of the
line, to be ranked by another objective. Source: our choice."""

LOST_WHERE_IT_VARIES = LOST_AT_MOST + 1 - SHARE_OF_CHANGING
"""The same where the line's rate varies, compared with the line as it is. Source: our choice: what
a fixed shaper takes of a line whose rate changes (`access`), and what a queue may lose on any."""

DELAY = "one_way_delay_p95"
"""What stands for the delay of a call's or a game's packets. Source: our choice: a jitter buffer
that waits for 95 % of them loses 1 in 20."""


PAGE = "web.page_time_p50"
"""What stands for the time of a page. A median counts pages that did not finish, and a mean does
not (`analysis.censoring`)."""


@dataclass(frozen=True)
class Measure:
    """A number that a run has.

    Attributes:
        name: what JSON calls it.
        title: what it is.
        unit: its SI unit; "1" for a share.
    """

    name: str
    title: str
    unit: str


MEASURES: dict[str, Measure] = {
    each.name: each
    for each in (
        Measure("call_down", "delay of a call's packets, 95th percentile, down", "s"),
        Measure("call_up", "delay of a call's packets, 95th percentile, up", "s"),
        Measure("game_down", "delay of a game's packets, 95th percentile, down", "s"),
        Measure("game_up", "delay of a game's packets, 95th percentile, up", "s"),
        Measure("page", "median time of a page", "s"),
        Measure("lost_down", "throughput lost, down", "1"),
        Measure("lost_up", "throughput lost, up", "1"),
        Measure("buffer_down", "wait in the provider's buffer, 95th percentile", "s"),
        Measure("buffer_up", "wait in the modem's buffer, 95th percentile", "s"),
    )
}

Values: TypeAlias = Mapping[str, Sequence[float]]
"""The measures of a case, replication by replication; NaN where there is none."""

_METRICS = {
    "call_down": f"calls-down.{DELAY}",
    "call_up": f"calls-up.{DELAY}",
    "game_down": f"games-down.{DELAY}",
    "game_up": f"games-up.{DELAY}",
    "page": PAGE,
    "buffer_down": "hop1.queue_delay_p95",
    "buffer_up": "hop1.return.queue_delay_p95",
}


def measured(case: CaseResult, load: Load, wanted: Simulated, share: float = 1.0) -> Values:
    """Return the measures of a case.

    Args:
        case: its results.
        load: its load.
        wanted: what was simulated.
        share: rate of the line as a share of what it usually is.
    """
    found: dict[str, Sequence[float]] = {
        name: case.values(metric) for name, metric in _METRICS.items()
    }
    found["page"] = _pages(case, wanted)
    for direction in load.full:
        found[f"lost_{direction}"] = _lost(case, direction, wanted, share)
    nothing = [math.nan] * len(case.runs)
    return {name: found.get(name, nothing) for name in MEASURES}


def _pages(case: CaseResult, wanted: Simulated) -> Sequence[float]:
    """Return the median page time by replication.

    Where so many pages did not finish that there is none, it is longer than all that was measured:
    the time that was measured stands for it. NaN where nobody asked for a page.
    """
    times, missing = case.values(PAGE), shares(PAGE, case.values)
    return [
        wanted.measured_s if math.isnan(time) and share > 0 else time
        for time, share in zip(times, missing, strict=True)
    ]


def _lost(
    case: CaseResult, direction: Direction, wanted: Simulated, share: float
) -> Sequence[float]:
    """Return the share of the line's rate that reaches nobody, by replication."""
    if wanted.varied is not None:
        # Of what the line can carry at the time.
        used = case.values(f"hop1.{'' if direction == 'down' else 'return.'}utilization")
        dropped = case.values("hop2.loss") if direction == "down" else [0.0] * len(used)
        return [max(0.0, 1 - share * (1 - loss)) for share, loss in zip(used, dropped, strict=True)]
    if direction == "down":
        # What the router's queue drops has crossed the line, and is lost all the same.
        carried = [value * wanted.router_bps for value in case.values("hop2.utilization")]
        whole = wanted.down_bps * share
    else:
        carried = [
            value * wanted.up_bps * share for value in case.values("hop1.return.utilization")
        ]
        whole = wanted.up_bps * share
    return [max(0.0, 1 - each / whole) for each in carried]


@dataclass(frozen=True)
class Objective:
    """What queues are ranked by.

    Attributes:
        name: what the option takes.
        title: what it is, in words.
        measures: the measures, of which the worst counts.
        use: the use without which there are none; None for any.
    """

    name: str
    title: str
    measures: tuple[str, ...]
    use: str | None

    def worst(self, by_load: Sequence[Values]) -> list[float]:
        """Return what counts, replication by replication: the largest over loads and measures."""
        columns = [values[name] for values in by_load for name in self.measures]
        return [worst_of(row) for row in zip(*columns, strict=True)]


def worst_of(values: Sequence[float]) -> float:
    """Return the largest of values, without those that are NaN.

    >>> worst_of([1.0, float("nan"), 3.0]), worst_of([float("nan")])
    (3.0, nan)
    """
    return max((value for value in values if not math.isnan(value)), default=math.nan)


THROUGHPUT = Objective("throughput", "throughput lost", ("lost_down", "lost_up"), None)

OBJECTIVES: dict[str, Objective] = {
    each.name: each
    for each in (
        Objective("calls", "delay of calls' packets", ("call_down", "call_up"), "calls"),
        Objective("games", "delay of games' packets", ("game_down", "game_up"), "games"),
        Objective("pages", "time of Web pages", ("page",), "web"),
        THROUGHPUT,
    )
}
"""Objectives, the one that is used without a choice first: what suffers most of delay, if the line
is used for it. Source: our choice."""


def chosen(name: str | None, uses: Sequence[str]) -> Objective:
    """Return an objective, by default the first one that suits the uses.

    Raises:
        SpecError: there is no such objective for these uses.
    """
    fitting = {
        each.name: each for each in OBJECTIVES.values() if each.use is None or each.use in uses
    }
    if name is None:
        return next(iter(fitting.values()))
    if name not in OBJECTIVES:
        raise SpecError(
            f'objective = "{name}" is none; accepted: {", ".join(fitting)}', key="objective"
        )
    if name not in fitting:
        raise SpecError(
            f'objective = "{name}" needs the use {OBJECTIVES[name].use}, and use = '
            f'"{",".join(uses)}"; accepted: {", ".join(fitting)}',
            key="objective",
        )
    return fitting[name]
