"""Figures of a search: the trade-off between the aims, and the sensitivity of the best queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from redtail import escape
from redtail import metrics as names
from redtail.display import style
from redtail.metrics import Metric
from redtail.tuning.aims import Aim
from redtail.tuning.found import NEAR, Candidate, Tuned
from redtail.tuning.space import Axis, Range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SEEDS = "all with the seeds of the search"

_BEST: dict[str, Any] = {
    "marker": "*",
    "markersize": 11,
    "color": style.COLOURS[1],
    "linestyle": "none",
}


def all_of(tuned: Tuned) -> list[tuple[str, Figure]]:
    """Return the figures of a search, by their names."""
    found = [("sensitivity", sensitivity(tuned))]
    if len((*tuned.finding.objectives, *tuned.finding.bounds)) > 1:
        found.insert(0, ("trade_off", trade_off(tuned)))
    return found


def trade_off(tuned: Tuned, *, size: style.Size | None = None) -> Figure:
    """Draw each candidate by the first objective and each further aim, and the Pareto front.

    Args:
        tuned: the result of a search with two aims or more.
        size: by default one column of a journal for two aims, or both for more.
    """
    first, *others = (*tuned.finding.objectives, *tuned.finding.bounds)
    with mpl.rc_context(style.RC):
        figure, grid = style.panels(
            len(others),
            size or ("column" if len(others) == 1 else "page"),
            height=2.4,
            least=2.2,
            sharex=False,
        )
        for place, (axes, other) in enumerate(zip(grid, others, strict=True), start=1):
            _trade(axes, tuned, first, other, place)
        style.outer(grid, x=False)
        style.legend(figure, grid)
        style.caption(
            figure,
            f"each point is a candidate, {_what(tuned)}",
            "the front joins the candidates that no other one beats in both",
            "dotted: a bound" if tuned.finding.bounds else "",
            _SEEDS,
        )
    return figure


def _trade(axes: Axes, tuned: Tuned, first: Aim, other: Aim, place: int) -> None:
    """Draw the panel of the first objective and one other aim."""
    drawn = (*tuned.candidates, *tuned.own)
    about_x = _about(other, [each.estimates[place].mean for each in drawn])
    about_y = _about(first, [each.estimates[0].mean for each in drawn])

    def points(found: Sequence[Candidate]) -> tuple[list[float], list[float]]:
        return (
            [each.estimates[place].mean * about_x.scale for each in found],
            [each.estimates[0].mean * about_y.scale for each in found],
        )

    kept = [each for each in tuned.candidates if each.excess == 0]
    broken = [each for each in tuned.candidates if each.excess > 0]
    small: dict[str, Any] = {"markersize": 3.5, "linestyle": "none"}
    axes.plot(*points(kept), marker="o", color=style.COLOURS[0], label="candidate", **small)
    if broken:
        axes.plot(
            *points(broken),
            marker="x",
            color=style.GREY,
            label="candidate that breaks a bound",
            **small,
        )
    joined = _front(tuned.candidates, first, other, place)
    axes.plot(*points(joined), color=style.COLOURS[0], linewidth=0.9, label="front", zorder=1)
    for number, each in enumerate(tuned.own):
        look = style.look(number + 2)
        axes.plot(
            *points([each]),
            color=look["color"],
            marker=look["marker"],
            markersize=5.5,
            linestyle="none",
            label=style.mark(each.queue.label),
        )
    axes.plot(*points([tuned.at_training]), label=style.mark(tuned.queue.label), zorder=5, **_BEST)
    if other.limit is not None:
        axes.axvline(other.limit * about_x.scale, color="black", linestyle=":", linewidth=0.9)
    if style.spans_decades(points(drawn)[1]):
        style.log_axis(axes.yaxis)
    if style.spans_decades(points(drawn)[0]) and names.base(other.metric) != "utilization":
        style.log_axis(axes.xaxis)
    axes.set_xlabel(escape.plot(names.axis(other.metric, about_x)))
    style.label_y(axes, escape.plot(names.axis(first.metric, about_y)), 2.4)


def _front(candidates: Sequence[Candidate], first: Aim, other: Aim, place: int) -> list[Candidate]:
    """Return the candidates that no other one beats in two aims, in the order of the second."""
    best: list[Candidate] = []
    for each in sorted(
        candidates,
        key=lambda one: (
            other.cost(one.estimates[place].mean),
            first.cost(one.estimates[0].mean),
        ),
    ):
        cost = first.cost(each.estimates[0].mean)
        if not best or cost < first.cost(best[-1].estimates[0].mean):
            best.append(each)
    return best


def sensitivity(tuned: Tuned, *, size: style.Size | None = None) -> Figure:
    """Draw the first objective against each key, the others as in the best queue."""
    keys = tuned.finding.axes
    aim = tuned.finding.objectives[0]
    with mpl.rc_context(style.RC):
        figure, grid = style.panels(
            len(keys),
            size or ("column" if len(keys) == 1 else "page"),
            height=2.2,
            least=2.2,
            sharex=False,
        )
        every = [each for profile in tuned.sensitivity.values() for each in profile]
        about = _about(aim, [each.objectives[0].mean for each in every])
        for axes, axis in zip(grid, keys, strict=True):
            _profile(axes, tuned, axis, about)
            style.label_y(axes, escape.plot(names.axis(aim.metric, about)), 2.2)
        if style.spans_decades(each.objectives[0].mean for each in every):
            style.log_axis(grid[0].yaxis)
        style.outer(grid, x=False)
        style.legend(figure, grid)
        style.caption(
            figure,
            f"one key is varied, the others are those of the best queue, {_what(tuned)}",
            style.meaning_of_bars([each.objectives[0] for each in every]),
            f"band: up to {100 * NEAR:g} % worse than the best",
            _SEEDS,
        )
    return figure


def _profile(axes: Axes, tuned: Tuned, axis: Axis, about: Metric) -> None:
    """Draw the panel of one key."""
    aim = tuned.finding.objectives[0]
    best = tuned.queue.table[axis.key]
    profile = list(tuned.sensitivity[axis.key])
    if isinstance(axis, Range):
        place = {id(each): axis.number(each.table[axis.key]) or 0.0 for each in profile}
        profile.sort(key=lambda each: place[id(each)])
    else:
        place = {id(each): float(number) for number, each in enumerate(profile)}
        axes.set_xticks(range(len(profile)), [_text(each.table[axis.key]) for each in profile])
    scale = about.scale
    at = next(each for each in profile if each.table[axis.key] == best)
    level = at.objectives[0].mean
    worse = level + (1 if aim.small else -1) * NEAR * abs(level)
    axes.axhspan(level * scale, worse * scale, color=style.COLOURS[1], alpha=0.15, linewidth=0)
    axes.errorbar(
        [place[id(each)] for each in profile],
        [each.objectives[0].mean * scale for each in profile],
        yerr=style.bars([each.objectives[0] for each in profile], scale, names.bounds(aim.metric)),
        color=style.COLOURS[0],
        marker="o",
        elinewidth=0.9,
        linestyle="-" if isinstance(axis, Range) else "none",
        label="one key varied",
    )
    style.hollow(
        axes,
        [
            (place[id(each)], each.objectives[0].mean * scale)
            for each in profile
            if style.unsure(each.objectives[0])
        ],
        style.look(0),
    )
    broken = [each for each in profile if each.excess > 0]
    if broken:
        axes.plot(
            [place[id(each)] for each in broken],
            [each.objectives[0].mean * scale for each in broken],
            marker="x",
            markersize=8,
            color="black",
            linestyle="none",
            zorder=6,
            label="a bound is broken",
        )
    axes.plot(
        [place[id(at)]], [level * scale], label=style.mark(tuned.queue.label), zorder=5, **_BEST
    )
    unit = f" ({axis.unit})" if isinstance(axis, Range) and axis.unit else ""
    if isinstance(axis, Range) and axis.logarithmic:
        style.log_axis(axes.xaxis)
    axes.set_xlabel(escape.plot(f"{axis.key}{unit}"))


def _about(aim: Aim, values: Sequence[float]) -> Metric:
    return names.readable(names.describe(aim.metric), values)


def _what(tuned: Tuned) -> str:
    """Return which of the loads count, in words."""
    loads = len(tuned.results.cases) // (len(tuned.own) + 1)
    if loads == 1:
        return "at the only load"
    return (
        f"at the worst of {loads} loads"
        if tuned.finding.over == "worst"
        else (f"the mean over {loads} loads")
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else escape.plot(str(value))
