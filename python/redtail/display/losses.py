"""The figure of loss events: how many packets are lost in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator, NullFormatter

from redtail import escape
from redtail.display import style
from redtail.display.layout import arranged, find_load, lines_of, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from redtail.analysis.results import Results
    from redtail.display.style import Size


def loss_figure(results: Results, link: str | None = None, *, size: Size | None = None) -> Figure:
    """Draw P(a loss event has more than n losses) on a logarithmic axis, a panel per load."""
    link = link or results.links[0]
    load = find_load(results)
    lines = lines_of(results, load)
    found = arranged(results, load, lines)
    groups = [*zip(found.titles, found.groups, strict=True)]
    figure, cells = style.cells(values_of(load), groups, size, height=2.1)
    grid = [axes for axes, _, _ in cells]
    room = 72 * (style.panel_width(grid[0]) - 1.0)
    longest, rarest = 1, 1.0
    estimates = []
    for axes, x, (title, group) in cells:
        single = []
        for number, line in group:
            for case in line.at(x):
                tail = case.exceedance(link)
                estimates += tail
                if not tail:
                    single.append(line.label)
                    continue
                longest = max(longest, len(tail))
                rarest = min(rarest, tail[-1].mean)
                every = max(1, len(tail) // 12)
                axes.errorbar(
                    range(1, len(tail) + 1),
                    [each.mean for each in tail],
                    yerr=style.bars(tail, 1.0, (0.0, 1.0), log=True),
                    label=style.mark(line.label),
                    markevery=every,
                    errorevery=every,
                    **style.look(number),
                )
        axes.set_yscale("log")
        style.title(axes, escape.plot(title), load.of_panel(x) if load is not None else "")
        if single:
            texts = [style.wrapped(escape.plot(label), room, 7) for label in single]
            axes.text(
                0.97,
                0.97,
                "never more than 1:\n" + "\n".join(texts),
                transform=axes.transAxes,
                ha="right",
                va="top",
                fontsize=7,
                in_layout=False,
            )
        axes.set_xlabel("n (packets)")
    for axes in grid:
        if longest > 20:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
            axes.set_xlim(0.5, longest + 0.5)
        axes.set_ylim(rarest / 3, 1.0)
        if style.is_first(axes):
            where = f" at {link}" if len(results.links) > 1 else ""
            style.label_y(axes, f"P(loss event longer than n){escape.plot(where)}", 2.1)
    style.outer(grid)
    style.legends(figure, grid, found.legends, found.legend)
    style.caption(
        figure,
        style.meaning_of_bars(estimates, "mean share of loss events"),
        found.in_words(),
    )
    return figure
