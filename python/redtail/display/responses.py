"""The figure of response times: their distribution, with a band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from redtail import escape
from redtail import metrics as names
from redtail.analysis.responses import bands_of
from redtail.analysis.stats import estimate, interval_in_words
from redtail.display import style
from redtail.display.layout import of_distributions, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from redtail.analysis.results import Results
    from redtail.analysis.stats import Estimate
    from redtail.display.style import Size


def response_figure(
    results: Results, group: str, size_up_to: float | None = None, *, size: Size | None = None
) -> Figure:
    """Draw the distribution of response times with its 95 % band, a line per case.

    With a load and something to compare there is a panel per load.
    """
    times, bands = bands_of(results, group, size_up_to)
    of = {id(case): found for case, found in zip(results.cases, bands, strict=True)}
    load, arranged = of_distributions(results)
    groups = [*zip(arranged.titles, arranged.groups, strict=True)]
    figure, cells = style.cells(values_of(load), groups, size, height=2.2)
    grid = [axes for axes, _, _ in cells]
    for axes, x, (title, part) in cells:
        for number, line in part:
            for case in line.at(x):
                if of[id(case)]:
                    _distribution(axes, times, of[id(case)], line.label, number)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        style.title(axes, escape.plot(title), load.of_panel(x) if load is not None else "")
        axes.set_xlabel(escape.plot(f"Response time of {group} (s)"))
    for axes in grid:
        axes.set_ylim(0.0, 1.0)
        axes.set_xlim(*_time_span(times, [found for found in bands if found]))
        if style.is_first(axes):
            axes.set_ylabel("Share of responses")
    style.outer(grid)
    style.legends(figure, grid, arranged.legends, arranged.legend)
    counts = [found[0].n for found in bands if found]
    style.caption(
        figure,
        f"line and band: mean share and its {interval_in_words()}, at each time alone, "
        + style.replications_in_words(counts),
        arranged.in_words(),
    )
    return figure


def _distribution(
    axes: Axes, times: Sequence[float], found: Sequence[Estimate], label: str, number: int
) -> None:
    """Draw one distribution and its band, from the beginning of the first bin."""
    look = style.look(number)
    times = [times[0] / 10 ** (1 / names.BINS_PER_DECADE), *times]
    found = [estimate([0.0]), *found]
    half = [each.ci95 or 0.0 for each in found]
    axes.fill_between(
        times,
        [max(0.0, each.mean - width) for each, width in zip(found, half, strict=True)],
        [min(1.0, each.mean + width) for each, width in zip(found, half, strict=True)],
        color=look["color"],
        alpha=0.2,
        linewidth=0,
    )
    # Markers at equal steps of the share, so that they are not crowded where the curve is flat; the
    # markers of two lines are at different shares.
    marks = []
    wanted = 0.05 + 0.025 * (number % 4)
    for index, each in enumerate(found):
        if each.mean >= wanted:
            marks.append(index)
            wanted = each.mean + 0.1
    axes.plot(
        times,
        [each.mean for each in found],
        label=style.mark(label),
        color=look["color"],
        linestyle=look["linestyle"],
        marker=look["marker"],
        markersize=4,
        markevery=marks,
    )


def _time_span(times: Sequence[float], bands: Sequence[Sequence[Estimate]]) -> tuple[float, float]:
    """Return the ends of an axis of times: all but the last two of a thousand responses."""
    low = min(t for found in bands for t, each in zip(times, found, strict=True) if each.mean > 0)
    high = max(
        min(t for t, each in zip(times, found, strict=True) if each.mean >= 0.998)
        for found in bands
    )
    return low / 1.1, high * 1.1
