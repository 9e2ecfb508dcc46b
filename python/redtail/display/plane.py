"""The delay-throughput plane: what a queue costs in delay for what it delivers.

One point per run, and for each queue the median of its runs and an ellipse: the 1-sigma contour of
the normal distribution in two dimensions that fits the runs best (maximum likelihood), around their
mean. RFC 7928 (section 4.3) wants the trade-off between queueing delay and goodput shown like this;
papers on congestion control draw it so too (K. Winstein, H. Balakrishnan, "TCP ex Machina", SIGCOMM
2013).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from redtail import escape
from redtail import metrics as names
from redtail.analysis import places
from redtail.display import style
from redtail.display.axes import close_in_words, close_span
from redtail.display.layout import (
    Load,
    arranged,
    coded,
    find_load,
    lines_of,
    queue_factor,
    values_of,
)
from redtail.errors import RedtailError
from redtail.metrics import nearest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results
    from redtail.display.style import Size

# Fewer runs have no contour.
FEWEST = 3


@dataclass(frozen=True)
class Contour:
    """The 1-sigma contour of the normal distribution that fits points best.

    Attributes:
        centre: the mean of the points.
        width: the length of its first axis.
        height: the length of its second axis.
        angle: of the first axis against the horizontal, in degrees.
    """

    centre: tuple[float, float]
    width: float
    height: float
    angle: float


def contour(points: Sequence[tuple[float, float]]) -> Contour | None:
    """Return the 1-sigma contour of points; None for fewer than `FEWEST`.

    The covariance of maximum likelihood divides by the number of points, not by one less. The
    contour holds 39 % of such a distribution (1 - exp(-1/2)).

    >>> found = contour([(0.0, 0.0), (2.0, 0.0), (0.0, 4.0), (2.0, 4.0)])
    >>> found.centre, sorted((found.width, found.height))
    ((1.0, 2.0), [2.0, 4.0])
    """
    if len(points) < FEWEST:
        return None
    data = np.asarray(points, dtype=np.float64)
    covariance = np.cov(data.T, bias=True)
    variances, axes = np.linalg.eigh(covariance)
    lengths = 2 * np.sqrt(np.maximum(variances, 0.0))
    centre = data.mean(axis=0)
    return Contour(
        (float(centre[0]), float(centre[1])),
        float(lengths[1]),
        float(lengths[0]),
        math.degrees(math.atan2(axes[1, 1], axes[0, 1])),
    )


def plane_figure(
    results: Results,
    delay: str | None = None,
    goodput: str | None = None,
    *,
    size: Size | None = None,
    log: bool | None = None,
) -> Figure:
    """Draw delay against goodput: a point per run, median and 1-sigma ellipse per queue.

    There is a panel for each load.

    Args:
        results: what to draw.
        delay: the metric along the horizontal axis; by default the mean delay at the bottleneck. In
            a chain of several hops it is the sum of the mean delays at all of them, because a hop
            alone does not say what packets wait; if a queue of a return link is compared, it is
            the delay there.
        goodput: the metric along the vertical axis; by default the goodput of all TCP traffic. The
            link's utilization stands for it where there is none, and for the return link.
        size: by default one column of a journal, or both for several panels.
        log: whether the axis of the delay is logarithmic; by default if the medians span decades.

    Raises:
        RedtailError: no run has one of the metrics.
    """
    load = find_load(results)
    drawn = _drawn(results, load, delay, goodput)
    delays, goodput, scales = drawn.delays, drawn.goodput, drawn.scales
    lines = lines_of(results, load)
    both = coded(results, load, lines)
    found = arranged(results, load, lines) if both is None else None
    if found is None:
        groups = [("", [*enumerate(lines)])]
    else:
        groups = [*zip(found.titles, found.groups, strict=True)]
    figure, cells = style.cells(values_of(load), groups, size, height=2.1, sharey="row")
    grid = [axes for axes, _, _ in cells]
    medians = [
        median(known)
        for case in results.cases
        if (known := [v for v in places.sums(case, delays) if not math.isnan(v)])
    ]
    log = style.spans_decades(medians, 20.0) if log is None else log
    runs = []
    for axes, x, (title, group) in cells:
        own = {id(case) for _, line in group for _, case in line.points}
        for line in lines:
            for case in line.at(x):
                if id(case) in own:
                    continue
                _others(axes, _points(case, delays, goodput, scales))
        for number, line in group:
            for case in line.at(x):
                points = _points(case, delays, goodput, scales)
                runs.append(len(points))
                look = style.look(number) if both is None else both.looks[number]
                _draw(axes, points, line.label, look, log=log)
        style.title(axes, escape.plot(title), load.of_panel(x) if load is not None else "")
        unit = drawn.x_about.shown_unit
        delay_title = f"{places.path_title(drawn.path)} ({unit})" if drawn.path else ""
        room = 72 * (style.panel_width(axes) - 0.45)
        axes.set_xlabel(
            style.wrapped(
                escape.plot(delay_title or names.axis(delays[0], drawn.x_about)),
                room,
                style.RC["axes.labelsize"],
            )
        )
        if style.is_first(axes):
            style.label_y(axes, escape.plot(names.axis(goodput, drawn.y_about)), 2.1)
    rates = [
        v * drawn.y_about.scale for case in results.cases for v in case.values(goodput) if v == v
    ]
    span = close_span(rates)
    for axes in grid:
        if span is not None and names.base(goodput) != "utilization":
            axes.set_ylim(span)
        if log:
            style.log_axis(axes.xaxis)
        elif axes.get_xlim()[0] < 0:
            axes.set_xlim(left=0)
    style.outer(grid)
    if both is not None:
        style.two_legends(figure, grid, both.legend)
    elif found is not None:
        style.legends(figure, grid, found.legends, found.legend)
    style.caption(
        figure,
        f"one point per run ({style.replications_in_words(runs)}), marker: the median, ellipse: "
        "1-sigma contour of the normal distribution that fits best; better is up and to the left",
        _where(results, delays),
        close_in_words(drawn.y_about.title, rates) if names.base(goodput) != "utilization" else "",
        found.in_words(grey=True) if found is not None else "",
    )
    return figure


def overview_figure(parts: Sequence[tuple[str, Results]]) -> Figure | None:
    """Draw the planes of several experiments in one figure, a panel for each, on axes of its own.

    Args:
        parts: for each panel its title and the results of one load; the lines have one order.

    Returns:
        The figure; None where no part has delay and goodput.
    """
    kept = [(title, results) for title, results in parts if can_draw(results)]
    if not kept:
        return None
    columns = min(3, len(kept))
    figure, grid = style.panels(
        len(kept), "page", height=1.75, columns=columns, sharex=False, sharey=False
    )
    runs = []
    for axes, (title, results) in zip(grid, kept, strict=True):
        drawn = _drawn(results, None)
        for number, line in enumerate(lines_of(results, None)):
            for case in (case for _, case in line.points):
                points = _points(case, drawn.delays, drawn.goodput, drawn.scales)
                runs.append(len(points))
                _draw(axes, points, line.label, style.look(number), log=False)
        style.title(axes, escape.plot(title))
        axes.set_xlabel(f"{drawn.x_about.short} ({drawn.x_about.shown_unit})")
        axes.set_ylabel(f"{drawn.y_about.short} ({drawn.y_about.shown_unit})")
        axes.set_xlim(left=0)
    style.legend(figure, grid)
    style.caption(
        figure,
        f"one point per run ({style.replications_in_words(runs)}), marker: the median, ellipse: "
        "1-sigma contour of the normal distribution that fits best; better is up and to the left; "
        "each panel has its own axes",
    )
    return figure


def _where(results: Results, delays: Sequence[str]) -> str:
    """Return at which queue the delay is, where the title of the axis does not say it."""
    if len(delays) > 1:
        return "delay: the mean over all packets at each hop, added over the hops"
    alone = len(results.links) < 2 or names.prefix(delays[0])
    return "" if alone else f"delay: at the {results.links[0]}"


def can_draw(results: Results) -> bool:
    """Return whether runs have delay and goodput, and there is more than one run."""
    present = results.metric_names
    usual, rates = _usual(results, find_load(results))
    delays = any(name in present for name in usual) or bool(places.path_delays(results))
    return results.run_count > 1 and delays and any(name in present for name in rates)


def _of_path(results: Results) -> list[str]:
    """Return what stands for the delays at all hops of a chain, or at the bottleneck."""
    first = next(iter(places.forward(results.links)), "hop1")
    return ["queue_delay_mean", f"{first}.queue_delay_mean"]


@dataclass(frozen=True)
class _Drawn:
    """What a plane has along its axes.

    Attributes:
        delays: the metrics whose sum is along the horizontal axis.
        path: the same where they are the delays at all hops of a chain; otherwise empty.
        goodput: the metric along the vertical axis.
        x_about: how the sum is shown.
        y_about: how the other is shown.
    """

    delays: list[str]
    path: list[str]
    goodput: str
    x_about: names.Metric
    y_about: names.Metric

    @property
    def scales(self) -> tuple[float, float]:
        """What both are multiplied by."""
        return (self.x_about.scale, self.y_about.scale)


def _drawn(
    results: Results, load: Load | None, delay: str | None = None, goodput: str | None = None
) -> _Drawn:
    """Return what is drawn of results, by default what is usual."""
    usual, usual_rates = _usual(results, load)
    of_path = delay is None and usual == _of_path(results)
    path = places.path_delays(results) if of_path else []
    delays = path or [_chosen(results, delay, usual)]
    goodput = _chosen(results, goodput, usual_rates)
    x_about, y_about = (
        names.readable(
            names.describe(each[0]), [v for case in results.cases for v in places.sums(case, each)]
        )
        for each in (delays, [goodput])
    )
    return _Drawn(delays, path, goodput, x_about, y_about)


def _usual(results: Results, load: Load | None) -> tuple[list[str], list[str]]:
    """Return what is drawn when no metric is named, the first that runs have: delays and rates."""
    parts = (queue_factor(results, load) or "").split(".")
    path = _of_path(results)
    first = names.prefix(path[-1])
    rates = ["goodput", "utilization", f"{first}.utilization"]
    if "return" not in parts:
        return path, rates
    hop = parts[1] if parts[0] == "chain" else ""
    # A chain of one hop calls its return link as a bottleneck does.
    links = [f"{hop}.return.", "return."] if hop else ["return."]
    return (
        [*(f"{link}queue_delay_mean" for link in links), *path],
        [*(f"{link}utilization" for link in links), *rates],
    )


def _chosen(results: Results, name: str | None, usual: Sequence[str]) -> str:
    present = results.metric_names
    if name is None:
        name = next((each for each in usual if each in present), usual[0])
    if name not in present:
        raise RedtailError(f"no run has the metric {name}{nearest(present, name)}")
    return name


def _points(
    case: CaseResult, delays: Sequence[str], goodput: str, scales: tuple[float, float]
) -> list[tuple[float, float]]:
    return [
        (x * scales[0], y * scales[1])
        for x, y in zip(places.sums(case, delays), case.values(goodput), strict=True)
        if not math.isnan(x) and not math.isnan(y)
    ]


def outline(found: Contour, steps: int = 96) -> list[tuple[float, float]]:
    """Return a contour as the corners of a closed polygon."""
    turn = math.radians(found.angle)
    corners = []
    for step in range(steps + 1):
        at = 2 * math.pi * step / steps
        along, across = found.width / 2 * math.cos(at), found.height / 2 * math.sin(at)
        corners.append(
            (
                found.centre[0] + along * math.cos(turn) - across * math.sin(turn),
                found.centre[1] + along * math.sin(turn) + across * math.cos(turn),
            )
        )
    return corners


def _draw(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    label: str,
    look: Mapping[str, Any],
    *,
    log: bool,
) -> None:
    if not points:
        return
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        linestyle="none",
        marker=".",
        markersize=4.8,
        color=look["color"],
        markeredgecolor="white",
        markeredgewidth=0.3,
        zorder=6,  # the marker of the median does not hide the runs
    )
    if log:  # the distribution is then one of the delay's logarithm
        found = contour([(math.log10(x), y) for x, y in points if x > 0])
        corners = [(10**x, y) for x, y in outline(found)] if found else []
    else:
        found = contour(points)
        corners = outline(found) if found else []
    axes.plot(
        [x for x, _ in corners],
        [y for _, y in corners],
        color=look["color"],
        linestyle=look["linestyle"],
        linewidth=1.1,
    )
    axes.plot(
        [median(x for x, _ in points)],
        [median(y for _, y in points)],
        linestyle="none",
        marker=look["marker"],
        markersize=6,
        markeredgecolor="white",
        markeredgewidth=0.6,
        color=look["color"],
        label=style.mark(label),
        zorder=5,
    )


def _others(axes: Axes, points: Sequence[tuple[float, float]]) -> None:
    """Draw the median of a queue that another panel names, for comparison."""
    if points:
        axes.plot(
            [median(x for x, _ in points)],
            [median(y for _, y in points)],
            linestyle="none",
            marker="o",
            markersize=4,
            color="#cccccc",
            zorder=0.5,
        )
