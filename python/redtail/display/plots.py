"""Which figures there are, by name: those that a run draws, those of a paper, and single ones.

What they look like is in `style`; each kind of figure has a module of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

from redtail import metrics as names
from redtail.display import plane, recorded, style, values
from redtail.display.distributions import distribution_figure
from redtail.display.gaps import gap_figure
from redtail.display.layout import find_load, lines_of
from redtail.display.lengths import queue_figure
from redtail.display.losses import loss_figure
from redtail.display.responses import response_figure
from redtail.display.series import fairness_figure, series_figure
from redtail.display.values import Published
from redtail.errors import RedtailError
from redtail.measured import nearest
from redtail.metrics import Metric
from redtail.scenario import series_key

if TYPE_CHECKING:
    from redtail.analysis.gap import Gaps
    from redtail.analysis.results import Results
    from redtail.display.style import Figure, Size

save = style.save

# Metrics whose paired differences are in one figure, at most; fewer if each needs several panels.
_DIFFERENCES = 12
_DIFFERENCES_OF_MANY = 4


@dataclass(frozen=True)
class Wanted:
    """A figure that was asked for.

    Attributes:
        metric: what it shows; None where its kind needs none.
        size: its width, None for the kind's own.
        log: whether values are on a logarithmic axis; None to let the values decide.
        case: the index of the case of a figure over time.
        replication: the replication of a figure over time.
        flows: the numbers of the flows in a figure over time; None for the first three.
    """

    metric: str | None = None
    size: Size | None = None
    log: bool | None = None
    case: int = 0
    replication: int = 0
    flows: Sequence[int] | None = None


Draw = Callable[["Results", Wanted], "Figure"]


def _metric(results: Results, wanted: Wanted) -> str:
    if wanted.metric is None:
        raise RedtailError("metric: a name is wanted; `redtail list metrics FILE` has them")
    if wanted.metric not in results.metric_names:
        raise RedtailError(
            f"no run has the metric {wanted.metric}{nearest(results.metric_names, wanted.metric)}"
        )
    return names.named(results.metric_names, wanted.metric)


def _distribution(results: Results, wanted: Wanted, *, tail: bool) -> Figure:
    return distribution_figure(
        results, wanted.metric or "queue_delay", tail=tail, size=wanted.size, log=wanted.log
    )


def _queue(results: Results, wanted: Wanted) -> Figure:
    found = queue_figure(results, wanted.metric, size=wanted.size)
    if found is None:
        raise RedtailError(
            "no series was recorded to draw queue_over_time from; ask for it with "
            f"{series_key('queues')} = true in [series] of the experiment"
        )
    return found


KINDS: dict[str, Draw] = {
    "value": lambda results, wanted: values.metric_figure(
        results, _metric(results, wanted), size=wanted.size, log=wanted.log
    ),
    "difference": lambda results, wanted: values.difference_figure(
        results, [_metric(results, wanted)], size=wanted.size
    ),
    "quartiles": lambda results, wanted: values.quartile_figure(
        results, _metric(results, wanted), size=wanted.size
    ),
    "plane": lambda results, wanted: plane.plane_figure(
        results, wanted.metric, size=wanted.size, log=wanted.log
    ),
    "loss_events": lambda results, wanted: loss_figure(results, wanted.metric, size=wanted.size),
    "response_times": lambda results, wanted: response_figure(
        results, results.user_group(wanted.metric), size=wanted.size
    ),
    "queue": _queue,
    "cdf": lambda results, wanted: _distribution(results, wanted, tail=False),
    "tail": lambda results, wanted: _distribution(results, wanted, tail=True),
    "fairness": lambda results, wanted: fairness_figure(results, wanted.metric, size=wanted.size),
    "series": lambda results, wanted: series_figure(
        results,
        case=wanted.case,
        replication=wanted.replication,
        link=wanted.metric,
        flows=wanted.flows,
        size=wanted.size,
    ),
}
"""The kinds of single figures, by name.

`metric` is of "plane" the delay (by default the mean queueing delay), of "loss_events", "queue" and
"series" the link (by default the first), of "response_times" the group of users, of "fairness" a
group, and of "cdf" and "tail" a distribution (`Results.cdf`; by default the queueing delay).
"""


def figure(results: Results, kind: str, wanted: Wanted) -> Figure:
    """Draw a figure of a kind.

    Raises:
        RedtailError: there is no such kind, or nothing to draw it from.
    """
    if kind not in KINDS:
        raise RedtailError(f"kind = {kind!r}; accepted: {', '.join(KINDS)}")
    with mpl.rc_context(style.RC):
        return KINDS[kind](results, wanted)


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Draw every figure the results have data for.

    Args:
        results: what to draw.
        folder: where to; made when missing.

    Returns:
        The paths, in the order of `style.FORMATS` for each figure.

    Raises:
        StoreError: the folder cannot be written.
    """
    with mpl.rc_context(style.RC):
        drawn = [name for name in results.select() if _has_values(results, name)]
        figures = [(name, values.metric_figure(results, name)) for name in drawn]
        if drawn and values.can_differ(results):
            figures.append(("differences", _differences(results, drawn)))
        return save(
            [*figures, *_distributions(results, drawn), *recorded.figures(results, drawn)], folder
        )


def _has_values(results: Results, name: str) -> bool:
    known = [mean for case in results.cases if not math.isnan(mean := case.metric(name).mean)]
    return bool(known) and (any(known) or names.base(name) != "mark")


def _differences(results: Results, drawn: Sequence[str]) -> Figure:
    """Draw paired differences; the goodput of each group is left to the figures of its own."""
    many = len(lines_of(results, find_load(results))) > style.DISTINCT
    most = _DIFFERENCES_OF_MANY if many else _DIFFERENCES
    chosen = [name for name in drawn if not name.endswith(".goodput")][:most]
    return values.difference_figure(results, chosen or drawn[:1])


def _distributions(results: Results, drawn: Sequence[str]) -> Iterator[tuple[str, Figure]]:
    """Yield the figures that show more of the metrics drawn than means.

    Of metrics that were asked for, only those that show them too.
    """
    bases = {names.base(name) for name in drawn}
    every = not results.report
    delays = any(base.startswith("queue_delay") for base in bases)
    if plane.can_draw(results) and (every or (delays and bases & {"goodput", "utilization"})):
        yield "delay_and_goodput", plane.plane_figure(results)
    for group in results.user_groups:
        if every or any(name.startswith(f"{group}.response_time") for name in drawn):
            yield f"{group}.response_times", response_figure(results, group)
    for link in results.links:
        of = f"{link}." if link != results.links[0] else ""
        losses = every or "consecutive_loss_mean" in bases
        if losses and any(case.exceedance(link) for case in results.cases):
            yield f"{of}consecutive_loss", loss_figure(results, link)
        over_time = queue_figure(results, link)
        if over_time is not None:
            yield f"{of}queue_over_time", over_time


def draw_gaps(gaps: Gaps, folder: Path) -> list[Path]:
    """Draw a figure for each metric that was compared, with all backends beside each other.

    Args:
        gaps: what to draw.
        folder: where to; made when missing.

    Returns:
        The paths, in the order of `style.FORMATS`; a metric without any value has no figure.

    Raises:
        StoreError: the folder cannot be written.
    """
    metrics = dict.fromkeys(
        row.metric for row in gaps if not all(math.isnan(mean.mean) for mean in row.means)
    )
    with mpl.rc_context(style.RC):
        return save([(name, gap_figure(gaps, name)) for name in metrics], folder)


def paper_figure(
    results: Results,
    draws: str,
    about: Metric,
    published: Published | None = None,
    source: str = "published",
) -> Figure:
    """Draw what a paper's figure shows.

    Args:
        results: what to draw, of a queue and a load.
        draws: a metric, "consecutive_loss", "queue_over_time", "response_times:GROUP" or
            "quartiles:METRIC".
        about: how the metric is shown.
        published: the paper's numbers, drawn as points.
        source: where they come from.

    Raises:
        RedtailError: there is nothing to draw it from.
    """
    kind, _, of = draws.partition(":")
    with mpl.rc_context(style.RC):
        match kind:
            case "consecutive_loss":
                return loss_figure(results)
            case "queue_over_time":
                return _queue(results, Wanted())
            case "response_times":
                return response_figure(results, of)
            case "quartiles":
                return values.quartile_figure(results, of, about)
            case _:
                return values.metric_figure(
                    results, draws, about, published=published, source=source
                )
