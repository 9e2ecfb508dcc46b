"""The figures of what runs recorded beyond metrics: distributions, flows, and series over time."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from redtail import metrics as names
from redtail.display.distributions import distribution_figure
from redtail.display.series import fairness_figure, series_figure
from redtail.errors import RedtailWarning, StoreError
from redtail.store.segments import LARGE

if TYPE_CHECKING:
    from redtail.analysis.results import Results
    from redtail.display.style import Figure

# Flows from which on their goodputs are drawn as a distribution.
_FLOWS = 4

# Cases of which what was recorded over time is drawn.
_CASES = 4


def figures(results: Results, drawn: Sequence[str]) -> Iterator[tuple[str, Figure]]:
    """Yield the tails of delays, the goodput of flows, and what was recorded over time.

    Large campaigns have no distributions: every run would have to be read. Of metrics that were
    asked for, only those distributions that show them too.

    Args:
        results: what to draw.
        drawn: the metrics that have figures.
    """
    if results.run_count < LARGE:
        yield from _distributions(results, drawn)
    yield from _over_time(results)


def _distributions(results: Results, drawn: Sequence[str]) -> Iterator[tuple[str, Figure]]:
    known = results.distributions
    for name in known:
        of = names.prefix(name)
        # Of queueing delays that of all packets at the first queue.
        chosen = names.base(name) == "one_way_delay" or (
            names.base(name) == "queue_delay" and of in ("", *results.links[:1])
        )
        if chosen and _shown(results, drawn, f"{name}_"):
            yield f"{name}_tail", distribution_figure(results, name, tail=True)
    fair = _shown(results, drawn, "goodput") or _shown(results, drawn, "fairness")
    if "flow_goodput" in known and fair and _several_flows(results):
        yield "flow_goodput", distribution_figure(results, "flow_goodput")


def _shown(results: Results, drawn: Sequence[str], beginning: str) -> bool:
    return not results.report or any(name.startswith(beginning) for name in drawn)


def _several_flows(results: Results) -> bool:
    """Return whether a run has so many flows that their distribution says something."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RedtailWarning)
        with contextlib.suppress(StoreError):
            flows = results.flows(case=0)
            return flows.num_rows >= _FLOWS * len(flows["replication"].unique())
    return False


def _over_time(results: Results) -> Iterator[tuple[str, Figure]]:
    for number in range(min(_CASES, len(results.cases))):
        with contextlib.suppress(StoreError):
            name = f"time_series_{number + 1}" if len(results.cases) > 1 else "time_series"
            yield name, series_figure(results, case=number)
    with contextlib.suppress(StoreError):
        yield "fairness_over_time", fairness_figure(results)
