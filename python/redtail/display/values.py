"""Figures of one metric: its means with intervals, paired differences, and quartiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from matplotlib.ticker import MaxNLocator

from redtail import escape
from redtail import metrics as names
from redtail.display import style
from redtail.display.axes import close_in_words, ends_of, row_labels, value_axis
from redtail.display.layout import (
    Arrangement,
    Line,
    Load,
    arranged,
    find_load,
    legend_title,
    lines_of,
    load_axis,
    panels_of,
    queue_factor,
    values_of,
)
from redtail.errors import RedtailError
from redtail.metrics import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results
    from redtail.analysis.stats import Estimate
    from redtail.display.style import Size

Models: TypeAlias = Mapping[str, Callable[[float], float]]
"""Curves by name: functions of the load that return the metric in its SI unit."""

Published: TypeAlias = Mapping[tuple[str, float], float]
"""Numbers that others published, in SI units, by the queue's label and the load."""

# Of boxes whose colours are used up.
_HATCHES = ("", "////", "xxxx", "....")

# Height of a row, in inches, and that of all rows at most: no file of pixels is higher than 2^16.
_ROW = 0.19
_HIGHEST = 60.0


def metric_figure(
    results: Results,
    name: str,
    about: Metric | None = None,
    *,
    size: Size | None = None,
    log: bool | None = None,
    published: Published | None = None,
    source: str = "published",
    models: Models | None = None,
) -> Figure:
    """Draw a metric against the load with 95 % intervals, one line per setting of the rest.

    Without a numeric factor each case gets a row. More lines than can be told apart are put into
    several panels.

    Args:
        results: what to draw.
        name: the metric.
        about: how the metric is shown, when it is not one that redtail knows.
        size: by default one column of a journal, or both for several panels.
        log: whether the axis is logarithmic; by default if the values span decades.
        published: drawn as points beside the lines.
        source: where these come from.
        models: curves behind the points: by name, functions of the load in the unit of its axis,
            which return the metric in its SI unit.

    Raises:
        RedtailError: there are models and no load.
    """
    found = [case.metric(name) for case in results.cases]
    usual = names.describe(name)
    # A paper's title may say what the metric is of.
    if about is None or replace(about, title=usual.title) == usual:
        about = names.readable(names.describe(name), [each.mean for each in found])
        title = names.axis(name, about)
    else:
        title = about.axis
    if log is None:
        # What may be negative, as the measures of papers, has no logarithm.
        log = (
            style.spans_decades(each.mean for each in found)
            and names.bounds(name)[0] >= 0
            and names.base(name) != "utilization"
        )
    load = find_load(results)
    if load is None and models:
        raise RedtailError(
            "models: there is no load to draw a curve over; accepted: a factor of numbers with "
            "several values"
        )
    if load is None:
        return _rows_figure(results, name, about, title, size, log, published, source)
    panels = panels_of(results, load, style.DISTINCT)
    # A label has the same look in all panels, also where one of them lacks some labels.
    labels = dict.fromkeys(line.label for panel in panels for line in panel.lines)
    groups = [{label: at for at, label in group} for group in style.split(list(labels))]
    height = 2.2 if len(panels) * len(groups) == 1 else 1.8
    figure, cells = style.cells(panels, groups, size, height=height)
    grid = [axes for axes, _, _ in cells]
    for axes, panel, group in cells:
        part = [(group[line.label], line) for line in panel.lines if line.label in group]
        for line in panel.lines:
            if line.label not in group:
                _background(axes, line, name, about, load)
        for number, line in part:
            shift = number - (len(group) - 1) / 2  # keeps intervals of equal x apart
            _draw_line(axes, line, name, about, load, number, shift, log)
        if published:
            _draw_published(axes, part, published, about)
        if models:
            _draw_models(axes, models, load, about.scale)
        style.title(axes, escape.plot(panel.title))
        load_axis(axes, load)
    value_axis([axes.yaxis for axes in grid], name, found, log=log, scale=about.scale)
    for axes in filter(style.is_first, grid):
        style.label_y(axes, escape.plot(title), height)
    style.outer(grid)
    queue = queue_factor(results, load)
    keys = [key for key in results.factors if key != load.key]
    title_of = legend_title(results, [queue] if len(panels) > 1 and queue else keys)
    style.legends(figure, grid, len(groups), title_of)
    style.caption(
        figure,
        style.meaning_of_bars(found),
        style.in_words(len(labels), len(groups), grey=True),
        f"star: {source}" if published else "",
        "" if log else close_in_words(about.title, ends_of(found)),
    )
    return figure


def _draw_line(
    axes: Axes,
    line: Line,
    name: str,
    about: Metric,
    load: Load,
    number: int,
    shift: float,
    log: bool,
) -> None:
    found = [(load.shifted(x, shift), case.metric(name)) for x, case in line.points]
    axes.errorbar(
        [x for x, _ in found],
        [each.mean * about.scale for _, each in found],
        yerr=style.bars([each for _, each in found], about.scale, names.bounds(name), log=log),
        label=style.mark(line.label),
        **style.look(number),
    )
    unsure = [(x, each.mean * about.scale) for x, each in found if style.unsure(each)]
    style.hollow(axes, unsure, style.look(number))


def _draw_models(axes: Axes, models: Models, load: Load, scale: float) -> None:
    """Draw curves over the whole load, in grey with a dash each."""
    low, high = min(load.values), max(load.values)
    xs = np.geomspace(low, high, 200) if load.logarithmic else np.linspace(low, high, 200)
    for number, (name, model) in enumerate(models.items()):
        axes.plot(
            xs,
            [float(model(float(x))) * scale for x in xs],
            color="#555555",
            linestyle=style.DASHES[(number + 1) % style.DISTINCT],
            linewidth=1.0,
            zorder=1.5,
            label=style.mark(name),
        )


def _background(axes: Axes, line: Line, name: str, about: Metric, load: Load) -> None:
    """Draw a line of another panel, for comparison."""
    axes.plot(
        [x for x, _ in line.points],
        [case.metric(name).mean * about.scale for _, case in line.points],
        color="#cccccc",
        linewidth=0.8,
        zorder=0.5,
    )


def _draw_published(
    axes: Axes, part: Sequence[tuple[int, Line]], published: Published, about: Metric
) -> None:
    """Draw what others published, in the colours of the lines."""
    for number, line in part:
        for (label, x), value in published.items():
            if label == line.label and not math.isnan(value):
                _star(axes, x, value * about.scale, number)


def _star(axes: Axes, x: float, y: float, number: int) -> None:
    """Draw a published number in the colour of a line."""
    axes.plot(
        [x],
        [y],
        linestyle="none",
        marker="*",
        markersize=9,
        markerfacecolor="white",
        markeredgecolor=style.COLOURS[number % style.DISTINCT],
        zorder=5,
    )


def _rows_figure(
    results: Results,
    name: str,
    about: Metric,
    title: str,
    size: Size | None,
    log: bool,
    published: Published | None,
    source: str,
) -> Figure:
    """Draw a row per case."""
    labels = [case.title or results.name for case in results.cases]
    size = size or ("column" if max(map(len, labels)) <= 24 else "page")
    figure, (axes,) = style.panels(1, size, height=0.3 + min(_ROW * len(labels), _HIGHEST))
    found = [case.metric(name) for case in results.cases]
    _draw_rows(axes, found, about.scale, names.bounds(name), log)
    others = {label: value for (label, _), value in (published or {}).items()}
    for y, case in enumerate(results.cases):
        for value in {others[label] for label in case.labels.values() if label in others}:
            _star(axes, value * about.scale, y, 0)
    row_labels(figure, axes, labels)
    axes.set_xlabel(escape.plot(title))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    value_axis([axes.xaxis], name, found, log=log, scale=about.scale)
    style.caption(
        figure,
        style.meaning_of_bars(found),
        f"star: {source}" if others else "",
        "" if log else close_in_words(about.title, ends_of(found)),
    )
    return figure


def _draw_rows(
    axes: Axes,
    found: Sequence[Estimate],
    scale: float,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    log: bool = False,
) -> None:
    axes.errorbar(
        [each.mean * scale for each in found],
        range(len(found)),
        xerr=style.bars(found, scale, bounds, log=log),
        color=style.COLOURS[0],
        marker="o",
        linestyle="none",
        elinewidth=1.0,
    )
    style.hollow(
        axes,
        [(each.mean * scale, y) for y, each in enumerate(found) if style.unsure(each)],
        style.look(0),
    )


def difference_figure(
    results: Results,
    metrics: Sequence[str],
    *,
    baseline: str | None = None,
    size: Size | None = None,
) -> Figure:
    """Draw how far each setting is from the baseline, replication by replication.

    Cases that differ in the queue alone draw the same workload, so the intervals of these paired
    differences are narrower than those of the cases.

    Args:
        results: what to draw.
        metrics: the metrics, a panel each; those that are the same in all runs have none.
        baseline: the label of the setting that the others are compared with; by default the first.
        size: by default one column of a journal, or both for several panels.

    Raises:
        RedtailError: there are not two settings to compare.
    """
    load = find_load(results)
    factor, baseline = _compared(results, load, baseline)
    pairs = {name: results.differences(name, factor=factor, baseline=baseline) for name in metrics}
    pairs = {name: found for name, found in pairs.items() if _differs(results, name, found)} or {
        metrics[0]: pairs[metrics[0]]
    }
    if load is None:
        figure, grid = _difference_rows(pairs, size)
        found = None
    else:
        figure, grid, found = _difference_lines(results, pairs, load, size)
        style.legends(figure, grid, found.legends, found.legend)
    style.caption(
        figure,
        f"difference from {escape.name(baseline)} (the line at zero), replication by replication: "
        + style.meaning_of_bars(
            (each for of_one in pairs.values() for _, each in of_one), paired=True
        ),
        "" if found is None else found.in_words(),
    )
    return figure


Pairs: TypeAlias = Mapping[str, Sequence[tuple["CaseResult", "Estimate"]]]
"""For each metric the cases beside the baseline, with their differences from it."""


def _differs(results: Results, name: str, found: Sequence[tuple[CaseResult, Estimate]]) -> bool:
    """Return whether a difference is large enough to be seen in a table of four digits."""
    largest = max((abs(case.metric(name).mean) for case in results.cases), default=0.0)
    return any(abs(each.mean) > 1e-4 * largest for _, each in found)


def _difference_rows(pairs: Pairs, size: Size | None) -> tuple[Figure, list[Axes]]:
    """Draw a row per case, and a panel per metric."""
    rows = len(next(iter(pairs.values())))
    size = size or ("column" if len(pairs) == 1 else "page")
    figure, grid = style.panels(
        len(pairs), size, height=0.6 + min(_ROW * rows, _HIGHEST), least=2.2, sharex=False
    )
    width = 0.9 * style.panel_width(grid[0])
    for axes, (name, found) in zip(grid, pairs.items(), strict=True):
        about, text = _about_differences(name, [each for _, each in found])
        axes.axvline(0.0, color="black", linewidth=0.8)
        _draw_rows(axes, [each for _, each in found], about.scale)
        axes.xaxis.set_major_locator(MaxNLocator(4 if len(pairs) > 1 else 6))
        axes.set_xlabel(style.wrapped(escape.plot(text), 72 * width, 8))
    row_labels(figure, grid[0], [case.title for case, _ in next(iter(pairs.values()))])
    for axes in grid[1:]:
        axes.grid(axis="y", visible=False)
    return figure, grid


def _difference_lines(
    results: Results, pairs: Pairs, load: Load, size: Size | None
) -> tuple[Figure, list[Axes], Arrangement]:
    """Draw a line per setting against the load, and a panel per metric."""
    differing = {id(case) for found in pairs.values() for case, _ in found}
    lines = [
        line
        for line in lines_of(results, load)
        if any(id(case) in differing for _, case in line.points)
    ]
    # The first look is the baseline's in other figures.
    found = arranged(results, load, lines, style.DISTINCT - 1)
    groups = [*zip(found.titles, found.groups, strict=True)]
    figure, cells = style.cells(
        list(pairs), groups, size, sharey="row" if len(groups) > 1 else False
    )
    for axes, name, (title, group) in cells:
        of = {id(case): each for case, each in pairs[name]}
        about, text = _about_differences(name, list(of.values()))
        axes.axhline(0.0, color="black", linewidth=0.8)
        for number, line in group:
            shift = number - (len(group) - 1) / 2
            points = [
                (load.shifted(x, shift), of[id(case)]) for x, case in line.points if id(case) in of
            ]
            axes.errorbar(
                [x for x, _ in points],
                [each.mean * about.scale for _, each in points],
                yerr=style.bars([each for _, each in points], about.scale),
                label=style.mark(line.label),
                **style.look(number + 1),
            )
            unsure = [(x, each.mean * about.scale) for x, each in points if style.unsure(each)]
            style.hollow(axes, unsure, style.look(number + 1))
        style.title(axes, escape.plot(title))
        load_axis(axes, load)
        if len(groups) == 1 or style.is_first(axes):
            style.label_y(axes, escape.plot(text), 1.9)
    grid = [axes for axes, _, _ in cells]
    style.outer(grid, y=len(groups) > 1)
    return figure, grid, found


def _about_differences(name: str, found: Sequence[Estimate]) -> tuple[Metric, str]:
    """Return how differences of a metric are shown, and the text of their axis."""
    ends = [each.mean + side * (each.ci95 or 0.0) for each in found for side in (-1, 1)]
    about = names.readable(names.describe(name), ends)
    unit = "percentage points" if about.shown_unit == "%" else about.shown_unit
    return about, f"{names.title_of(name)}, difference" + (f" ({unit})" if unit else "")


def can_differ(results: Results) -> bool:
    """Return whether there is something to compare, with intervals."""
    load = find_load(results)
    factor = queue_factor(results, load)
    if factor is None or max((len(case.runs) for case in results.cases), default=0) < 2:
        return False
    labels = {case.labels.get(factor) for case in results.cases}
    return len(labels) > 1 and bool(results.differences("goodput", factor=factor))


def _compared(results: Results, load: Load | None, baseline: str | None) -> tuple[str, str]:
    """Return the factor that is compared, and the setting that others are compared with."""
    factor = queue_factor(results, load)
    labels = list(dict.fromkeys(case.labels.get(factor or "", "") for case in results.cases))
    if factor is None or len(labels) < 2:
        raise RedtailError(
            "there is nothing to compare: a factor with two settings or more, such as "
            "bottleneck.queue, is wanted"
        )
    return factor, labels[0] if baseline is None else baseline


def quartile_figure(
    results: Results, name: str, about: Metric | None = None, *, size: Size | None = None
) -> Figure:
    """Draw quartiles of a metric over replications against the load, a box for each queue.

    A box spans the middle half of the replications, the line in it is the median, and the
    whiskers reach the least and the greatest.
    """
    load = find_load(results)
    lines = lines_of(results, load)
    values = values_of(load)
    found = [case.values(name) for case in results.cases]
    if about is None:
        about = names.readable(names.describe(name), [v for each in found for v in each])
        title = names.axis(name, about)
    else:
        title = about.axis
    boxes = len(lines) * len(values)
    size = size or ("column" if boxes <= 16 else "page")
    figure, (axes,) = style.panels(1, size, height=2.1)
    for number, line in enumerate(lines):
        shift = (number - (len(lines) - 1) / 2) * 0.8 / len(lines)
        drawn = axes.boxplot(
            [
                [v * about.scale for v in case.values(name) if not math.isnan(v)]
                for _, case in line.points
            ],
            positions=[values.index(x) + shift for x, _ in line.points],
            widths=0.6 / len(lines),
            whis=(0, 100),
            patch_artist=True,
            medianprops={"color": "black"},
            boxprops={
                "facecolor": style.COLOURS[number % style.DISTINCT],
                "alpha": 0.55,
                "hatch": _HATCHES[number // style.DISTINCT % len(_HATCHES)],
            },
            manage_ticks=False,
        )
        drawn["boxes"][0].set_label(style.mark(line.label))
    if load is None:
        axes.set_xticks([])
    else:
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
        axes.set_xlabel(escape.plot(load.title))
    style.label_y(axes, escape.plot(title), 2.4)
    value_axis([axes.yaxis], name, [case.metric(name) for case in results.cases], log=False)
    if names.base(name) not in names.METRICS:
        axes.set_ylim(bottom=0)
    keys = [key for key in results.factors if load is None or key != load.key]
    style.legend(figure, [axes], title=legend_title(results, keys))
    style.caption(
        figure,
        "box: the middle half of the replications, with their median; whiskers: least and greatest",
        style.replications_in_words(sum(not math.isnan(v) for v in each) for each in found),
    )
    return figure
