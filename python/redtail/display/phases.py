"""The figure of phases: a metric in each phase of a run, where the phase lies in time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from redtail import escape
from redtail import metrics as names
from redtail.analysis import phases
from redtail.display import style
from redtail.display.axes import close_in_words, ends_of, value_axis
from redtail.display.layout import find_load, legend_title, lines_of
from redtail.errors import RedtailError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from redtail.analysis.results import Results
    from redtail.display.style import Size


def phase_figure(results: Results, name: str, *, size: Size | None = None) -> Figure:
    """Draw a metric in each phase: a level from its begin to its end, with its 95 % interval.

    Each case is a line. Cases with other times of phases have them where they lie.

    Raises:
        RedtailError: no phase has the metric, or the times of phases are not known.
    """
    spans = [phases.spans(results, case) for case in results.cases]
    if not any(spans):
        raise RedtailError(
            "there are no phases with times to draw; ask for phases = [...] in the experiment file"
        )
    found = {
        (place, number): case.metric(phases.prefix(number) + name)
        for place, case in enumerate(results.cases)
        for number in spans[place]
    }
    known = [each for each in found.values() if not math.isnan(each.mean)]
    if not known:
        raise RedtailError(f"no phase has the metric {escape.name(name)}")
    about = names.readable(names.describe(name), [each.mean for each in known])
    load = find_load(results)
    place_of = {id(case): place for place, case in enumerate(results.cases)}
    labels = [
        (
            place_of[id(case)],
            ", ".join(filter(None, (line.label, load.of_panel(x) if load else None))),
        )
        for line in lines_of(results, load)
        for x, case in line.points
    ]
    groups = style.split(sorted(labels))
    figure, cells = style.cells([None], groups, size, height=2.2)
    grid = [axes for axes, _, _ in cells]
    for axes, _, group in cells:
        for number, (place, label) in group:
            look = style.look(number)
            times: list[float] = []
            levels: list[float] = []
            middles = []
            for phase, (begin, end) in spans[place].items():
                level = found[place, phase]
                times += [begin, end]
                levels += [level.mean * about.scale] * 2
                if not math.isnan(level.mean):
                    # Intervals of cases stand beside each other.
                    at = begin + (end - begin) * (number + 1) / (len(group) + 1)
                    middles.append((at, level))
            plain = {"color": look["color"], "linestyle": look["linestyle"]}
            axes.plot(times, levels, label=style.mark(label), **plain)
            axes.errorbar(
                [at for at, _ in middles],
                [level.mean * about.scale for _, level in middles],
                yerr=style.bars([level for _, level in middles], about.scale, names.bounds(name)),
                color=look["color"],
                marker=look["marker"],
                linestyle="none",
                elinewidth=0.9,
            )
        for begin in {begin for each in spans for begin, _ in each.values()}:
            axes.axvline(begin, color="0.8", linewidth=0.6, zorder=0)
        axes.set_xlabel("Time (s)")
    value_axis([axes.yaxis for axes in grid], name, known, scale=about.scale)
    for axes in filter(style.is_first, grid):
        style.label_y(axes, escape.plot(names.axis(name, about)), 2.2)
    style.outer(grid)
    style.legends(figure, grid, len(groups), legend_title(results, list(results.factors)))
    style.caption(
        figure,
        style.meaning_of_bars(known),
        "each level is of one phase",
        style.in_words(len(labels), len(groups)),
        close_in_words(about.title, ends_of(known)),
    )
    return figure
