"""What an advice is judged by: measures of a run, and objectives that rank queues by them.

Queues are ranked by several objectives (`ranking`), each with a margin that a person would notice.
An objective looks, in each replication, at the worst of its measures over directions and loads. So
a queue is as good as its worst load, as in `redtail tune` (robust optimisation, Ben-Tal, El Ghaoui,
Nemirovski 2009, chapter 1). Queues see the same loads with the same seeds, and are compared
replication by replication.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from redtail.analysis.censoring import shares
from redtail.errors import SpecError
from redtail.lines.advice.access import SHARE_OF_CHANGING
from redtail.lines.advice.loads import MANY, ONE, TWO_PEOPLE
from redtail.lines.advice.simulated import Simulated
from redtail.lines.line import Direction

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.lines.advice.loads import Load

LOST_AT_MOST = 0.10
"""How much more of the throughput a queue may lose than the one that loses least, as a share of the
line, to be ranked by another objective: a queue that keeps the line idle has no delay. Source: our
choice, twice the margin of throughput."""

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
        Measure("call_lost_down", "share of a call's packets lost, down", "1"),
        Measure("call_lost_up", "share of a call's packets lost, up", "1"),
        Measure("lost_down", "throughput lost, down", "1"),
        Measure("lost_up", "throughput lost, up", "1"),
        Measure("unequal_down", "missing from the half of a person with one connection, down", "1"),
        Measure("unequal_up", "missing from the half of a person with one connection, up", "1"),
        Measure("buffer_down", "wait in the provider's buffer, 95th percentile", "s"),
        Measure("buffer_up", "wait in the modem's buffer, 95th percentile", "s"),
    )
}

Values: TypeAlias = Mapping[str, Sequence[float]]
"""The measures of a case, replication by replication; NaN where there is none."""

_METRICS = {
    "call_down": f"calls-down.{DELAY}",
    "call_up": f"calls-up.{DELAY}",
    "call_lost_down": "calls-down.end_to_end_loss",
    "call_lost_up": "calls-up.end_to_end_loss",
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
        if load.name == TWO_PEOPLE:
            found[f"unequal_{direction}"] = _unequal(case, direction)
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


def unfinished(values: Values, wanted: Simulated) -> tuple[str, ...]:
    """Return the measures that are lower bounds: of times that `_pages` has put in their place."""
    return ("page",) if any(time >= wanted.measured_s for time in values["page"]) else ()


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
        link = wanted.link_bps("up", share)
        carried = [value * link for value in case.values("hop1.return.utilization")]
        whole = wanted.up_bps * share
    return [max(0.0, 1 - each / whole) for each in carried]


def _unequal(case: CaseResult, direction: Direction) -> Sequence[float]:
    """Return what a person's one connection lacks of half the throughput, by replication.

    0 where it has half of it or more, 1 where it has nothing.
    """
    one, many = (case.values(f"{name}-{direction}.goodput") for name in (ONE, MANY))
    return [
        math.nan if math.isnan(a + b) or a + b == 0 else max(0.0, 1 - 2 * a / (a + b))
        for a, b in zip(one, many, strict=True)
    ]


@dataclass(frozen=True)
class Margin:
    """A difference that a person would notice; a smaller one counts as none.

    Attributes:
        least: the difference, in SI units.
        share: as a share of the smaller value, where that is more.
        text: the margin in words.
        source: where it is from.
    """

    least: float
    share: float
    text: str
    source: str

    def of(self, value: float) -> float:
        """Return the margin beside a value, in SI units; `least` where the value is not known."""
        return self.least if math.isnan(value) else max(self.least, self.share * value)


@dataclass(frozen=True)
class Objective:
    """What queues are ranked by.

    Attributes:
        name: what the option takes.
        title: what it is, in words.
        measures: the measures, of which the worst counts.
        use: the use without which there are none; None for any.
        margin: the difference that counts.
        unit: the unit that people read it in: "ms", "s" or "%".
        words: what is better and what is worse, such as "faster" and "slower".
        optional: whether the option takes it.
    """

    name: str
    title: str
    measures: tuple[str, ...]
    use: str | None
    margin: Margin
    unit: str
    words: tuple[str, str]
    optional: bool = True

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


THROUGHPUT = Objective(
    "throughput",
    "throughput lost",
    ("lost_down", "lost_up"),
    None,
    Margin(
        0.05,
        0.0,
        "5 % of the line",
        "our choice: what a shaper below the line costs anyway (OpenWrt, SQM Details).",
    ),
    "%",
    ("less lost", "more lost"),
)

IDLE = replace(
    THROUGHPUT,
    name="idle",
    margin=Margin(LOST_AT_MOST, 0.0, "10 % of the line", "our choice."),
    optional=False,
)
"""What is asked before all objectives but the throughput itself."""

COST = replace(
    IDLE,
    name="cost",
    margin=Margin(LOST_WHERE_IT_VARIES, 0.0, "25 % of the line", "our choice, as there."),
)
"""What a queue may lose more than the line as it is, where the rate varies."""

OBJECTIVES: dict[str, Objective] = {
    each.name: each
    for each in (
        Objective(
            "calls",
            "delay of calls' packets",
            ("call_down", "call_up"),
            "calls",
            Margin(
                0.020,
                0.0,
                "20 ms",
                "one packet of a call (RFC 3551, section 4.2: 20 ms), in which its jitter buffer "
                "counts; half a point of the 100 of the E-model (0.024 a ms below 177 ms: Cole, "
                "Rosenbluth 2001, of ITU-T G.107; by G.114 calls bear 150 ms).",
            ),
            "ms",
            ("shorter", "longer"),
        ),
        Objective(
            "games",
            "delay of games' packets",
            ("game_down", "game_up"),
            "games",
            Margin(
                0.010,
                0.0,
                "10 ms",
                "the smallest latency that was seen to change how well people play a shooter (Xu, "
                "Liu, Claypool 2022).",
            ),
            "ms",
            ("shorter", "longer"),
        ),
        Objective(
            "pages",
            "time of Web pages",
            ("page",),
            "web",
            Margin(
                0.1,
                0.2,
                "20 % of the shorter time, at least 0.1 s",
                "a wait is felt in proportion to its length (ITU-T G.1030; Egger and others 2012), "
                "a fifth is noticed (Seow 2008, chapter 2); 0.1 s seems no wait (Nielsen 1993, "
                "section 5.5).",
            ),
            "s",
            ("faster", "slower"),
        ),
        Objective(
            "fairness",
            "what a person with one connection lacks of half the line, beside one with 8",
            ("unequal_down", "unequal_up"),
            None,
            Margin(
                0.2,
                0.0,
                "20 % of the half",
                "our choice: a transfer that takes a quarter longer, as with pages.",
            ),
            "%",
            ("nearer to equal halves", "further from equal halves"),
            optional=False,
        ),
        THROUGHPUT,
    )
}
"""Objectives in the order in which they count: what suffers most of delay first, then what people
share. Source: our choice. The one that is chosen (`--objective`) goes before the others."""


def in_turn(first: Objective, uses: Sequence[str], people: int) -> tuple[Objective, ...]:
    """Return the objectives of a line, the one that counts most first.

    Args:
        first: the chosen one.
        uses: what the line is used for.
        people: number of people; of one alone there is no fairness between people.
    """
    fitting = [
        each
        for each in OBJECTIVES.values()
        if (each.use is None or each.use in uses) and (each.name != "fairness" or people > 1)
    ]
    guard = [] if first is THROUGHPUT else [IDLE]
    return (*guard, first, *(each for each in fitting if each is not first))


def chosen(name: str | None, uses: Sequence[str], policed: bool = False) -> Objective:
    """Return an objective, by default the first one that suits the uses.

    Of a policed line that is the throughput: a policer delays nothing, whatever the load, and what
    it drops costs transfers and pages their rate.

    Raises:
        SpecError: there is no such objective for these uses.
    """
    fitting = {
        each.name: each
        for each in OBJECTIVES.values()
        if each.optional and (each.use is None or each.use in uses)
    }
    if name is None and policed:
        return THROUGHPUT
    if name is None:
        return next(iter(fitting.values()))
    if name not in OBJECTIVES or not OBJECTIVES[name].optional:
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
