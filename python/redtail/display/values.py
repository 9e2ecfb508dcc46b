"""Figures of one metric: its means with intervals, paired differences, and quartiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from redtail import escape
from redtail import metrics as names
from redtail.display import style
from redtail.display.axes import row_labels, value_axis
from redtail.display.layout import (
    Line,
    Load,
    find_load,
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

    from redtail.analysis.results import Results
    from redtail.analysis.stats import Estimate
    from redtail.display.style import Figure, Size

Published: TypeAlias = Mapping[tuple[str, float], float]
"""Numbers that others published, in SI units, by the queue's label and the load."""

# Of boxes whose colours are used up.
_HATCHES = ("", "////", "xxxx", "....")

# Height of a row, in inches.
_ROW = 0.19


def metric_figure(
    results: Results,
    name: str,
    about: Metric | None = None,
    *,
    size: Size | None = None,
    log: bool | None = None,
    published: Published | None = None,
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
    """
    found = [case.metric(name) for case in results.cases]
    if about is None or about == names.describe(name):
        about = names.readable(names.describe(name), [each.mean for each in found])
        title = names.axis(name, about)
    else:
        title = about.axis
    if log is None:
        log = style.spans_decades(each.mean for each in found) and names.base(name) != "utilization"
    load = find_load(results)
    if load is None:
        return _rows_figure(results, name, about, title, size, log)
    panels = panels_of(results, load, style.DISTINCT)
    parts = [(panel, part) for panel in panels for part in style.split(panel.lines)]
    size = size or ("column" if len(parts) == 1 else "page")
    figure, grid = style.panels(len(parts), size, height=2.2 if len(parts) == 1 else 1.8)
    several = max(len(style.split(panel.lines)) for panel in panels) > 1
    for axes, (panel, part) in zip(grid, parts, strict=True):
        own = {id(line) for _, line in part}
        for line in panel.lines:
            if id(line) not in own:
                _background(axes, line, name, about, load)
        for number, line in part:
            shift = number - (len(part) - 1) / 2  # keeps intervals of equal x apart
            _draw_line(axes, line, name, about, load, number, shift, log)
        if published:
            _draw_published(axes, part, published, about)
        if panel.title:
            axes.set_title(escape.plot(panel.title), loc="left")
        load_axis(axes, load)
        if several:
            style.panel_legend(axes, figure.get_figwidth() / _columns_of(axes) - 0.5)
    value_axis([axes.yaxis for axes in grid], name, found, log)
    for axes in grid:
        axes.label_outer(remove_inner_ticks=False)
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            axes.set_ylabel(escape.plot(title))
    if not several:
        style.legend(figure, grid)
    else:
        style.grow(figure, 0.35 * math.ceil(len(grid) / _columns_of(grid[0])))
    style.caption(
        figure,
        style.meaning_of_bars(found),
        style.in_words(len(lines_of(results, load)), len(parts)) if several else "",
        "stars: published" if published else "",
        "panels share their axes" if len(parts) > 1 and not several else "",
    )
    return figure


def _columns_of(axes: Axes) -> int:
    spec = axes.get_subplotspec()
    assert spec is not None
    return spec.get_gridspec().ncols


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
    style.hollow(axes, [(x, each.mean * about.scale) for x, each in found if style.unsure(each)])


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
                axes.plot(
                    [x],
                    [value * about.scale],
                    linestyle="none",
                    marker="*",
                    markersize=9,
                    markerfacecolor="white",
                    markeredgecolor=style.COLOURS[number % style.DISTINCT],
                    zorder=5,
                )


def _rows_figure(
    results: Results, name: str, about: Metric, title: str, size: Size | None, log: bool
) -> Figure:
    """Draw a row per case."""
    labels = [case.title or results.name for case in results.cases]
    size = size or ("column" if max(map(len, labels)) <= 24 else "page")
    figure = style.new(size, 0.55 + _ROW * len(labels))
    axes = figure.subplots()
    found = [case.metric(name) for case in results.cases]
    _draw_rows(axes, found, about.scale, names.bounds(name), log)
    row_labels(figure, axes, labels)
    axes.set_xlabel(escape.plot(title))
    value_axis([axes.xaxis], name, found, log)
    style.caption(figure, style.meaning_of_bars(found))
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
    )


def difference_figure(
    results: Results,
    name: str,
    *,
    baseline: str | None = None,
    size: Size | None = None,
) -> Figure:
    """Draw how far each setting is from the baseline, replication by replication.

    Cases that differ in the queue alone draw the same workload, so the intervals of these paired
    differences are narrower than those of the cases.

    Args:
        results: what to draw.
        name: the metric.
        baseline: the label of the setting that the others are compared with; by default the first.
        size: by default one column of a journal.

    Raises:
        RedtailError: there are not two settings to compare.
    """
    load = find_load(results)
    factor, baseline = _compared(results, load, baseline)
    figure = style.new(size or "column", 2.2 if load else 0.75)
    axes = figure.subplots()
    found = _draw_differences(figure, axes, results, name, factor, baseline, load)
    style.legend(figure, [axes], least=1)
    style.caption(figure, _about_differences(found, baseline))
    return figure


def differences_figure(
    results: Results, metrics: Sequence[str], *, baseline: str | None = None
) -> Figure:
    """Draw the paired differences of several metrics, a panel each; otherwise as above."""
    load = find_load(results)
    factor, baseline = _compared(results, load, baseline)
    rows = len(results.differences(metrics[0], factor=factor, baseline=baseline))
    height = 1.9 if load else 0.6 + _ROW * rows
    figure, grid = style.panels(
        len(metrics), "page", height=height, least=2.2, sharex=load is not None, sharey=load is None
    )
    found = []
    for axes, name in zip(grid, metrics, strict=True):
        found += _draw_differences(figure, axes, results, name, factor, baseline, load, many=True)
    if load is not None:
        for axes in grid:
            axes.label_outer(remove_inner_ticks=False)
    style.legend(figure, grid, least=1)
    style.caption(figure, _about_differences(found, baseline))
    return figure


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


def _draw_differences(
    figure: Figure,
    axes: Axes,
    results: Results,
    name: str,
    factor: str,
    baseline: str,
    load: Load | None,
    *,
    many: bool = False,
) -> list[Estimate]:
    pairs = results.differences(name, factor=factor, baseline=baseline)
    found = [each for _, each in pairs]
    about = names.readable(names.describe(name), [each.mean for each in found])
    unit = "percentage points" if about.shown_unit == "%" else about.shown_unit
    text = names.title_of(name) + (f"\n({unit})" if unit else "")
    if load is None:
        axes.axvline(0.0, color="black", linewidth=0.8)
        _draw_rows(axes, found, about.scale)
        if not many:
            style.grow(figure, _ROW * len(found))
        if not many or axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            row_labels(figure, axes, [case.title for case, _ in pairs])
        axes.set_xlabel(style.wrapped(escape.plot(text), 72 * 2.2, 8))
        return found
    axes.axhline(0.0, color="black", linewidth=0.8)
    number_of = {id(case): number for number, case in enumerate(results.cases)}
    of = {id(case): each for case, each in pairs}
    lines = [
        line for line in lines_of(results, load) if any(id(case) in of for _, case in line.points)
    ]
    for number, line in enumerate(lines):
        shift = number - (len(lines) - 1) / 2
        points = [
            (load.shifted(load.values[number_of[id(case)]], shift), of[id(case)])
            for _, case in line.points
            if id(case) in of
        ]
        # The first look is the baseline's in other figures.
        axes.errorbar(
            [x for x, _ in points],
            [each.mean * about.scale for _, each in points],
            yerr=style.bars([each for _, each in points], about.scale),
            label=style.mark(line.label),
            **style.look(number + 1),
        )
        style.hollow(
            axes, [(x, each.mean * about.scale) for x, each in points if style.unsure(each)]
        )
    load_axis(axes, load)
    axes.set_ylabel(style.wrapped(escape.plot(text), 72 * 1.9, 8))
    return found


def _about_differences(found: Sequence[Estimate], baseline: str) -> str:
    return (
        f"difference from {escape.name(baseline)} (the line at zero), replication by replication: "
        + style.meaning_of_bars(found)
    )


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
    figure = style.new(size or ("column" if boxes <= 16 else "page"), 2.4)
    axes = figure.subplots()
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
    axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    if load is not None:
        axes.set_xlabel(escape.plot(load.title))
    axes.set_ylabel(escape.plot(title))
    axes.set_ylim(bottom=0)
    style.legend(figure, [axes])
    style.caption(
        figure,
        "box: the middle half of the replications, with their median; whiskers: least and greatest",
        style.replications_in_words(sum(not math.isnan(v) for v in each) for each in found),
    )
    return figure
