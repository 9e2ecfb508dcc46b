"""Figures of one experiment under several backends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from redtail import escape
from redtail import metrics as names
from redtail.display import style
from redtail.display.axes import row_labels, value_axis
from redtail.display.layout import Line, Load, find_load, lines_of, load_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from redtail.analysis.case import CaseResult
    from redtail.analysis.gap import Gaps


def gap_figure(gaps: Gaps, name: str) -> Figure:
    """Draw a metric under every backend against the load, with what the tolerance allows.

    A panel for each setting of the other factors. Without a numeric factor each case has a row. The
    tolerance is drawn around the mean of the first backend.
    """
    first = gaps.results[0]
    load = find_load(first)
    allowed = {
        row.case: row.allowed for row in gaps if row.metric == name and row.allowed is not None
    }
    places = {id(case): number for number, case in enumerate(first.cases)}
    lines = lines_of(first, load)
    if load is None:
        rows = tuple((float(number), case) for number, case in enumerate(first.cases))
        lines = [Line("", rows)]
        figure, grid = style.panels(1, "page", height=0.4 + 0.33 * len(rows))
    else:
        figure, grid = style.panels(len(lines), "page", height=1.9, least=2.2)
    about = names.describe(name)
    estimates = [case.metric(name) for results in gaps.results for case in results.cases]
    for axes, line in zip(grid, lines, strict=True):
        cases = line.points
        _allowed(axes, name, cases, [allowed.get(places[id(case)]) for _, case in cases], load)
        for number, results in enumerate(gaps.results):
            shift = 2 * number - len(gaps.results) + 1  # keeps intervals apart
            found = [results.cases[places[id(case)]].metric(name) for _, case in cases]
            values = [each.mean * about.scale for each in found]
            bars = style.bars(found, about.scale, names.bounds(name))
            label = style.mark(results.backend)
            if load is None:
                at = [y + 0.12 * shift for y, _ in cases]
                look = {**style.look(number), "linestyle": "none"}
                axes.errorbar(values, at, xerr=bars, label=label, **look)
                points = zip(values, at, found, strict=True)
            else:
                at = [load.shifted(x, shift) for x, _ in cases]
                axes.errorbar(at, values, yerr=bars, label=label, **style.look(number))
                points = zip(at, values, found, strict=True)
            unsure = [(x, y) for x, y, each in points if style.unsure(each)]
            style.hollow(axes, unsure, style.look(number))
        if line.label:
            axes.set_title(escape.plot(line.label), loc="left")
        if load is not None:
            load_axis(axes, load)
    title = escape.plot(names.axis(name))
    if load is None:
        (axes,) = grid
        row_labels(figure, axes, [case.title or first.name for case in first.cases])
        axes.set_xlabel(title)
        value_axis([axes.xaxis], name, estimates, log=False)
    else:
        value_axis([axes.yaxis for axes in grid], name, estimates, log=False)
        for axes in grid:
            if style.is_first(axes):
                axes.set_ylabel(title)
        style.outer(grid)
    style.legend(figure, grid)
    style.caption(figure, style.meaning_of_bars(estimates))
    return figure


def _allowed(
    axes: Axes,
    name: str,
    cases: Sequence[tuple[float, CaseResult]],
    allowed: Sequence[float | None],
    load: Load | None,
) -> None:
    """Draw what a tolerance allows around the first backend's means; `allowed` in SI units."""
    scale = names.describe(name).scale
    known = [
        (x, case.metric(name).mean * scale, width * scale)
        for (x, case), width in zip(cases, allowed, strict=True)
        if width is not None
    ]
    if not known:
        return
    look: dict[str, Any] = {"color": "#bbbbbb", "alpha": 0.5, "linewidth": 0}
    if load is None:
        axes.barh(
            [x for x, _, _ in known],
            [2 * width for _, _, width in known],
            left=[mean - width for _, mean, width in known],
            height=0.7,
            label=style.mark("tolerance"),
            **look,
        )
        return
    axes.fill_between(
        [x for x, _, _ in known],
        [mean - width for _, mean, width in known],
        [mean + width for _, mean, width in known],
        label=style.mark("tolerance"),
        **look,
    )
