"""The figures of what runs recorded beyond metrics: distributions, flows, and series over time."""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from redtail import metrics as names
from redtail.analysis import places
from redtail.display.distributions import distribution_figure
from redtail.display.series import fairness_figure, run_of, series_figure
from redtail.errors import RedtailWarning, StoreError
from redtail.store.segments import LARGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from redtail.analysis.results import Results

# Flows from which on their goodputs are drawn as a distribution.
_FLOWS = 4


@dataclass(frozen=True)
class Drawing:
    """A figure that results have data for, which is not drawn yet.

    Attributes:
        name: that of its files.
        draw: makes the figure.
        answers: whether it is one of the few that `redtail run` draws: what was asked for by
            `--metrics` or `[series]`, or what compares the cases at a glance.
    """

    name: str
    draw: Callable[[], Figure]
    answers: bool = False


def has(results: Results, table: Literal["queues", "flows", "groups"], case: int) -> bool:
    """Return whether a series was recorded in the first run of a case."""
    with contextlib.suppress(StoreError):
        results.series(table, case=case)
        return True
    return False


def has_scenario(results: Results, case: int) -> bool:
    """Return whether the scenario of a case's first run can be read."""
    with contextlib.suppress(StoreError):
        run_of(results, case, 0, None)
        return True
    return False


def drawings(results: Results, drawn: Sequence[str]) -> Iterator[Drawing]:
    """Yield the tails of delays, the goodput of TCP flows, and what was recorded over time.

    Large campaigns have no distributions: every run would have to be read. Of metrics that were
    asked for, only those distributions that show them too.

    Args:
        results: what to draw.
        drawn: the metrics that have figures.
    """
    if results.run_count < LARGE:
        yield from _distributions(results, drawn)
    yield from _over_time(results)


def _distributions(results: Results, drawn: Sequence[str]) -> Iterator[Drawing]:
    known = results.distributions
    for name in known:
        of = names.prefix(name)
        # Of queueing delays those of all packets, at each queue of the forward path.
        chosen = names.base(name) in ("one_way_delay", "round_trip") or (
            names.base(name) == "queue_delay" and of in ("", *places.forward(results.links))
        )
        if chosen and _shown(results, drawn, f"{name}_"):
            yield Drawing(f"{name}_tail", partial(distribution_figure, results, name, tail=True))
    if _shown(results, drawn, "goodput") or _shown(results, drawn, "fairness"):
        for group in _large_groups(results):
            name = f"{group}.flow_goodput"
            if name in known:
                yield Drawing(name, partial(distribution_figure, results, name))


def _shown(results: Results, drawn: Sequence[str], beginning: str) -> bool:
    return not results.report or any(name.startswith(beginning) for name in drawn)


def _large_groups(results: Results) -> list[str]:
    """Return the groups with so many TCP flows that the distribution of goodput says something.

    Not those of users, whose connections carry different amounts.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RedtailWarning)
        try:
            flows = results.flows(case=0)
        except StoreError:
            return []
    runs = len(flows["replication"].unique())
    # Flows without TCP have no timeouts.
    groups = zip(flows["group"].to_pylist(), flows["timeouts"].to_pylist(), strict=True)
    counts = Counter(group for group, timeouts in groups if timeouts is not None)
    return [
        group
        for group, count in counts.items()
        if count >= _FLOWS * runs and group not in results.user_groups
    ]


def _over_time(results: Results) -> Iterator[Drawing]:
    count = len(results.cases)
    chosen = [
        number
        for number in range(count)
        if results.cases[number].runs  # not all of them failed
        and has_scenario(results, number)
        and any(has(results, table, number) for table in ("groups", "queues", "flows"))
    ]
    for number in chosen:
        name = f"time_series_{number + 1}" if count > 1 else "time_series"
        draw = partial(series_figure, results, case=number)
        yield Drawing(name, draw, answers=number == chosen[0])
    if chosen and has(results, "flows", chosen[0]):
        yield Drawing("fairness_over_time", partial(fairness_figure, results))
