"""Figures of distributions: cumulative, and complementary where tails matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from redtail import escape
from redtail.analysis.distributions import Distribution, distribution
from redtail.analysis.stats import interval_in_words
from redtail.display import style
from redtail.display.layout import of_distributions, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from redtail.analysis.results import Results
    from redtail.analysis.stats import Estimate
    from redtail.display.style import Size

# Units for axes, by the unit of stored values, the smallest first.
_UNITS: dict[str, tuple[tuple[str, float], ...]] = {
    "s": (("µs", 1e6), ("ms", 1e3), ("s", 1.0)),
    "bit/s": (("kbit/s", 1e-3), ("Mbit/s", 1e-6), ("Gbit/s", 1e-9)),
}

# The share above which a complementary distribution is drawn at least.
_LEAST_TAIL = 1e-2
# The share below which values are left out at either end of a cumulative distribution.
_ENDS = 0.002

# How many times as large as small values the largest are, at least, for a logarithmic axis.
_DECADES = 50.0

# A share that counts as zero.
_NOTHING = 1e-12

Curve = tuple[Sequence[float], Sequence["Estimate"]]


def distribution_figure(
    results: Results,
    metric: str,
    *,
    tail: bool = False,
    size: Size | None = None,
    log: bool | None = None,
) -> Figure:
    """Draw a distribution with its 95 % band, a line per case.

    With a load and something to compare there is a panel per load.

    Args:
        results: what to draw.
        metric: as for `Results.cdf`.
        tail: whether the share of values above x is drawn, on a logarithmic axis.
        size: the figure's width.
        log: whether the values are on a logarithmic axis; by default if they span decades.

    Raises:
        RedtailError: there is no such distribution.
        StoreError: the runs have none.
    """
    found = distribution(results, metric)
    unit, scale = unit_of(found)
    of = {id(case): curve for case, curve in zip(results.cases, found.bands, strict=True)}
    load, arranged = of_distributions(results)
    groups = [*zip(arranged.titles, arranged.groups, strict=True)]
    pairs = [(x, part) for x in values_of(load) for part in groups]
    figure, grid = style.panels(
        len(pairs),
        size or ("column" if len(pairs) == 1 else "page"),
        height=2.2,
        columns=len(groups) if len(groups) > 1 else None,
        sharex=False,  # of different loads, values may be far apart
    )
    if log is None:  # of all panels
        log = 0 < _DECADES * _small(found) <= _span(found, tail=tail)[1]
    for axes, (x, (title, part)) in zip(grid, pairs, strict=True):
        curves = []
        for number, line in part:
            for case in line.at(x):
                if of[id(case)]:
                    curves.append(of[id(case)])
                    _draw(axes, (found.values, of[id(case)]), scale, line.label, number, tail=tail)
        style.title(axes, escape.plot(title), load.of_panel(x) if load is not None else "")
        axes.set_xlabel(escape.plot(_title(results, found, unit)))
        _value_axis(axes, replace(found, bands=tuple(curves)), scale, tail=tail, log=log)
        if tail:
            axes.set_yscale("log")
        if style.is_first(axes):
            of_what = found.about.of
            axes.set_ylabel(f"Share of {of_what} above" if tail else f"Share of {of_what}")
    for axes in grid:
        axes.set_ylim(_least(found) if tail else 0.0, 1.0)
    style.legends(figure, grid, arranged.legends, arranged.legend)
    counts = [curve[0].n for curve in found.bands if curve]
    share = f"share of {found.about.of} with more than x" if tail else "share"
    style.caption(
        figure,
        f"line and band: mean {share} and its {interval_in_words()}, at each value alone, "
        + style.replications_in_words(counts),
        arranged.in_words(),
    )
    return figure


def _value_axis(axes: Axes, found: Distribution, scale: float, *, tail: bool, log: bool) -> None:
    """Set the ends and the scale of the axis of values for the curves of one panel."""
    if not found.bands:
        return
    low, high = _span(found, tail=tail)
    small = _small(found)
    if log and small > 0:
        axes.set_xlim(max(low, small / 10) * scale / 1.1, high * scale * 1.1)
        style.log_axis(axes.xaxis)
    else:
        axes.set_xlim(*_linear(low * scale, high * scale))


def unit_of(found: Distribution) -> tuple[str, float]:
    """Return the unit in which most values are easy to read, and what a value is multiplied by."""
    middle = [
        value
        for curve in found.bands
        for value, each in zip(found.values, curve, strict=False)
        if each.mean >= 0.5
    ]
    largest = min(middle, default=0.0) or max(found.values, default=0.0)
    units = _UNITS[found.about.unit]
    if found.about.unit == "s":
        fitting = [each for each in reversed(units) if largest * each[1] >= 1.0]
        return fitting[0] if fitting else units[0]
    fitting = [each for each in reversed(units) if largest * each[1] >= 0.1]
    return fitting[0] if fitting else units[0]


def _title(results: Results, found: Distribution, unit: str) -> str:
    """Return the text of the horizontal axis."""
    return f"{found.title(results.links)} ({unit})"


def _span(found: Distribution, *, tail: bool) -> tuple[float, float]:
    """Return the ends of the axis of values: all but a few of a thousand."""
    shares = [
        (value, each.mean)
        for curve in found.bands
        for value, each in zip(found.values, curve, strict=False)
    ]
    low = max((value for value, share in shares if share <= _ENDS), default=0.0)
    inside = [value for value, share in shares if share > _ENDS]
    low = max(low, 0.0) if not inside else min(inside)
    least = _least(found) if tail else _ENDS
    high = 0.0
    for curve in found.bands:
        beyond = [
            value
            for value, each in zip(found.values, curve, strict=False)
            if each.mean >= 1.0 - least
        ]
        high = max(high, min(beyond, default=found.values[-1]))
    return low, max(high, low)


def _small(found: Distribution) -> float:
    """Return the smallest value above zero that a twentieth does not exceed, of all cases."""
    values = []
    for curve in found.bands:
        shares = zip(found.values, curve, strict=False)
        values.append(min((v for v, each in shares if v > 0 and each.mean >= 0.05), default=0.0))
    return min((value for value in values if value > 0), default=0.0)


def _linear(low: float, high: float) -> tuple[float, float]:
    """Return the ends of a linear axis: from zero, unless the values are close together."""
    if low < 0.5 * high:
        return 0.0, high * 1.03 or 1.0
    room = 0.08 * (high - low) or 0.05 * high or 1.0
    return low - room, high + room


def _least(found: Distribution) -> float:
    """Return where the axis of a complementary distribution ends: at a power of ten."""
    shares = [
        1.0 - each.mean for curve in found.bands for each in curve if each.mean < 1.0 - _NOTHING
    ]
    least = min(shares, default=_LEAST_TAIL)
    return min(_LEAST_TAIL, max(1e-6, 10.0 ** math.floor(math.log10(least) + 1e-9)))


def _draw(axes: Axes, curve: Curve, scale: float, label: str, number: int, *, tail: bool) -> None:
    """Draw one distribution and its band."""
    values, shares = curve
    look = style.look(number)
    means = [each.mean for each in shares]
    half = [each.ci95 or 0.0 for each in shares]
    lower = [max(0.0, mean - width) for mean, width in zip(means, half, strict=True)]
    upper = [min(1.0, mean + width) for mean, width in zip(means, half, strict=True)]
    if tail:
        # Where the share above is zero a logarithmic axis has no place.
        means = _above(means)
        lower, upper = [1.0 - share for share in upper], [1.0 - share for share in lower]
        floor = axes.get_ylim()[0] if axes.get_yscale() == "log" else _NOTHING
        lower = [max(share, floor) for share in lower]
        upper = [max(share, floor) for share in upper]
    x = [value * scale for value in values]
    axes.fill_between(x, lower, upper, color=look["color"], alpha=0.2, linewidth=0)
    axes.plot(
        x,
        means,
        label=style.mark(label),
        color=look["color"],
        linestyle=look["linestyle"],
        marker=look["marker"],
        markersize=4,
        markevery=_marks(means, number, tail=tail),
    )


def _above(shares: Sequence[float]) -> list[float]:
    """Return the shares above, which fall to the end of the axis where nothing is left."""
    found: list[float] = []
    for share in shares:
        if share < 1.0 - _NOTHING:
            found.append(1.0 - share)
        else:
            found.append(math.nan if found and not found[-1] > _NOTHING else _NOTHING)
    return found


def _marks(means: Sequence[float], number: int, *, tail: bool) -> list[int]:
    """Return which points have markers: at equal steps of the share, other ones for each line."""
    marks = []
    wanted = 0.05 + 0.025 * (number % 4)
    for index, mean in enumerate(means):
        if math.isnan(mean) or (tail and mean <= _NOTHING):
            continue
        place = -math.log10(mean) / 3 if tail else mean
        if place >= wanted:
            marks.append(index)
            wanted = place + 0.1
    return marks
