"""Figures, as PNG and SVG, that can be read in black and white and with colour blindness.

Lines differ in colour (the Okabe-Ito palette), in marker and in dash, so that one of the three is
enough to tell them apart. Nothing here needs a display.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

from redtail import escape
from redtail import metrics as names
from redtail.analysis.stats import estimate
from redtail.errors import RedtailError, StoreError
from redtail.files import is_file_name
from redtail.metrics import Metric
from redtail.scenario import links, quantity, series_key

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from redtail.analysis.gap import Gaps
    from redtail.analysis.results import CaseResult, Results
    from redtail.analysis.stats import Estimate

# Okabe and Ito, "Color Universal Design", ordered by contrast on white; their yellow is left
# out since it cannot be seen on paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (8, 3)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (2, 4)),
)

_STYLE: Any = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "legend.fontsize": 9,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "errorbar.capsize": 3,
    "savefig.dpi": 200,
    "svg.hashsalt": "redtail",  # the same results give the same file
}

# Panels of a comparison of backends in a row.
_GAP_COLUMNS = 3

# Keys of the factors that are a load before all others.
_LOADS = (".flows", ".users", ".load")

# Quantities whose axis begins at zero; the axis of the others spans their values.
_FROM_ZERO = ("loss", "delay", "length", "mark", "response_time")


@dataclass(frozen=True)
class Load:
    """The horizontal axis: the numeric factor of an experiment.

    Attributes:
        key: the factor's dotted key.
        title: the axis text, with the unit where there is one.
        values: the number of each case.
    """

    key: str
    title: str
    values: tuple[float, ...]

    @property
    def logarithmic(self) -> bool:
        """Whether the values spread so far that a linear axis would crowd them."""
        return min(self.values) > 0 and max(self.values) >= 8 * min(self.values)


def find_load(results: Results) -> Load | None:
    """Return the factor to put on the horizontal axis, None when no factor is numeric.

    Numbers of flows, users and offered loads come first; then the first factor whose values are
    numbers, or quantities in one common unit.
    """
    for key in sorted(results.factors, key=lambda key: not key.endswith(_LOADS)):
        parsed = [quantity(case.factors.get(key)) for case in results.cases]
        units = {unit for _, unit in parsed}
        numbers = tuple(number for number, _ in parsed if number is not None)
        if len(numbers) == len(parsed) and len(units) == 1 and len(set(numbers)) > 1:
            unit = units.pop()
            title = names.factor_title(key)
            if key.startswith("traffic.") and key.endswith((".flows", ".users")):
                title = f"number of {' '.join(key.split('.')[1:])}"
            title = title[:1].upper() + title[1:]
            return Load(key, f"{title} ({unit})" if unit else title, numbers)
    return None


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Draw every figure the results have data for.

    Args:
        results: what to draw.
        folder: where to; made when missing.

    Returns:
        The paths, PNG before SVG.

    Raises:
        StoreError: the folder cannot be written.
    """
    figures: list[tuple[str, Figure]] = []
    with mpl.rc_context(_STYLE):
        for name in results.select():
            if any(not math.isnan(case.metric(name).mean) for case in results.cases):
                figures.append((name, metric_figure(results, name)))
        for group in results.user_groups:
            figures.append((f"{group}.response_times", response_figure(results, group)))
        for link in results.links:
            of = f"{link}." if link != results.links[0] else ""
            if any(case.exceedance(link) for case in results.cases):
                figures.append((f"{of}consecutive_loss", loss_figure(results, link)))
            over_time = queue_figure(results, link)
            if over_time is not None:
                figures.append((f"{of}queue_over_time", over_time))
        return save(figures, folder)


def draw_gaps(gaps: Gaps, folder: Path) -> list[Path]:
    """Draw a figure for each metric that was compared, with all backends beside each other.

    Args:
        gaps: what to draw.
        folder: where to; made when missing.

    Returns:
        The paths, PNG before SVG; a metric without any value has no figure.

    Raises:
        StoreError: the folder cannot be written.
    """
    metrics = dict.fromkeys(
        row.metric for row in gaps if not all(math.isnan(mean.mean) for mean in row.means)
    )
    with mpl.rc_context(_STYLE):
        return save([(name, gap_figure(gaps, name)) for name in metrics], folder)


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
    lines = _lines(first, load)
    if load is None:
        lines = [("", [(float(number), case) for number, case in enumerate(first.cases)])]
        figure = Figure(figsize=(6.4, 1.4 + 0.45 * len(first.cases)), layout="constrained")
    columns = min(len(lines), _GAP_COLUMNS)
    rows = math.ceil(len(lines) / columns)
    if load is not None:
        figure = Figure(
            figsize=(1.4 + 3.0 * max(columns, 1.3), 0.8 + 2.9 * rows), layout="constrained"
        )
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in grid[len(lines) :]:
        axes.set_visible(False)
    about = names.describe(name)
    for axes, (label, cases) in zip(grid, lines, strict=False):
        _allowed(axes, name, cases, [allowed.get(places[id(case)]) for _, case in cases], load)
        for number, results in enumerate(gaps.results):
            shift = 2 * number - len(gaps.results) + 1  # keeps intervals apart
            found = [results.cases[places[id(case)]].metric(name) for _, case in cases]
            values = [each.mean * about.scale for each in found]
            half = [_half(each) * about.scale for each in found]
            if load is None:
                at = [y + 0.12 * shift for y, _ in cases]
                look = {**_look(number), "linestyle": "none"}
                axes.errorbar(values, at, xerr=half, label=_mark(results.backend), **look)
                points = zip(values, at, found, strict=True)
            else:
                at = [_shifted(x, shift, load) for x, _ in cases]
                axes.errorbar(at, values, yerr=half, label=_mark(results.backend), **_look(number))
                points = zip(at, values, found, strict=True)
            _hollow(axes, [(x, y) for x, y, each in points if _unsure(each)])
        if label:
            axes.set_title(escape.plot(label))
        if load is not None:
            _load_axis(axes, load)
    title = escape.plot(names.axis(name))
    estimates = [case.metric(name) for results in gaps.results for case in results.cases]
    if load is None:
        (axes,) = grid
        axes.set_yticks(
            range(len(first.cases)), [escape.plot(case.title or first.name) for case in first.cases]
        )
        axes.set_ylim(len(first.cases) - 0.5, -0.5)
        axes.set_xlabel(title)
        if any(part in name for part in _FROM_ZERO):
            axes.set_xlim(left=0)
        elif _is_utilization(name):
            axes.set_xlim(*utilization_span(estimates))
    else:
        for axes in grid[::columns]:
            axes.set_ylabel(title)
        for axes in grid[: len(lines)]:
            if any(part in name for part in _FROM_ZERO):
                axes.set_ylim(bottom=0)
            elif _is_utilization(name):
                axes.set_ylim(*utilization_span(estimates))
    _legend(figure, grid[: len(lines)], len(gaps.results) + 1)
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
            label=_mark("tolerance"),
            **look,
        )
        return
    axes.fill_between(
        [x for x, _, _ in known],
        [mean - width for _, mean, width in known],
        [mean + width for _, mean, width in known],
        label=_mark("tolerance"),
        **look,
    )


def _shifted(x: float, shift: float, load: Load) -> float:
    """Return where a point of a line is drawn; intervals of equal x stand beside each other."""
    return x * 1.03**shift if load.logarithmic else x + 0.008 * shift * _spread(load.values)


def paper_figure(results: Results, draws: str, about: Metric) -> Figure:
    """Draw what a paper's figure shows.

    Args:
        results: what to draw, of a queue and a load.
        draws: a metric, "consecutive_loss", "queue_over_time", "response_times:GROUP" or
            "quartiles:METRIC".
        about: how the metric is shown.

    Raises:
        RedtailError: there is nothing to draw it from.
    """
    kind, _, of = draws.partition(":")
    with mpl.rc_context(_STYLE):
        match kind:
            case "consecutive_loss":
                return loss_figure(results)
            case "queue_over_time":
                found = queue_figure(results)
                if found is None:
                    raise RedtailError(
                        "no series was recorded to draw queue_over_time from; ask for it with "
                        f"{series_key('queues')} = true in [series] of the experiment"
                    )
                return found
            case "response_times":
                return response_figure(results, of)
            case "quartiles":
                return quartile_figure(results, of, about)
            case _:
                return metric_figure(results, draws, about)


def quartile_figure(results: Results, name: str, about: Metric) -> Figure:
    """Draw quartiles of a metric over replications against the load, a box for each queue.

    A box spans the middle half of the replications, the line in it is the median, and the
    whiskers reach the least and the greatest.
    """
    load = find_load(results)
    lines = _lines(results, load)
    values = _panels(load)
    figure = Figure(figsize=(1.6 + 0.3 * len(lines) * len(values), 3.8), layout="constrained")
    axes = figure.subplots()
    handles = {}
    for number, (label, cases) in enumerate(lines):
        shift = (number - (len(lines) - 1) / 2) * 0.8 / len(lines)
        drawn = axes.boxplot(
            [
                [v * about.scale for v in case.values(name) if not math.isnan(v)]
                for _, case in cases
            ],
            positions=[values.index(x) + shift for x, _ in cases],
            widths=0.6 / len(lines),
            whis=(0, 100),
            patch_artist=True,
            medianprops={"color": "black"},
            boxprops={"facecolor": COLOURS[number % len(COLOURS)], "alpha": 0.55},
            manage_ticks=False,
        )
        handles[escape.plot(label)] = drawn["boxes"][0]
    axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    if load is not None:
        axes.set_xlabel(escape.plot(load.title))
    axes.set_ylabel(escape.plot(about.axis))
    axes.set_ylim(bottom=0)
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside upper center",
        ncols=min(len(lines), 3),
        frameon=False,
    )
    return figure


def save(figures: Iterable[tuple[str, Figure]], folder: Path) -> list[Path]:
    """Write figures as PNG and SVG under the names given; returns the paths, PNG before SVG.

    Both files of a figure have the layout that is found for the PNG, and the figure keeps it.

    Raises:
        StoreError: the folder cannot be written.
        ValueError: a name cannot be the name of a file.
    """
    figures = list(figures)
    for name, _ in figures:
        if not is_file_name(name):
            raise ValueError(f"{name!r} cannot be the name of a figure's file")
    paths = []
    with mpl.rc_context(_STYLE), _explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in figures:
            # To find the layout takes as long as to draw the figure; `savefig` would find it twice.
            if (layout := figure.get_layout_engine()) is not None:
                figure.set_dpi(mpl.rcParams["savefig.dpi"])
                layout.execute(figure)
                figure.set_layout_engine(None)
            for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
                path = folder / f"{name}.{kind}"
                figure.savefig(path, metadata=metadata)
                paths.append(path)
    return paths


def metric_figure(results: Results, name: str, about: Metric | None = None) -> Figure:
    """Draw a metric against the load with 95 % intervals, one line per setting of the rest.

    Without a numeric factor each case gets a row. `about` says how the metric is shown, when it
    is not one that redtail knows.
    """
    title = names.axis(name) if about is None or about == names.describe(name) else about.axis
    about = about or names.describe(name)
    load = find_load(results)
    lines = _lines(results, load)
    if load is None:
        figure = Figure(figsize=(6.0, 1.2 + 0.35 * len(results.cases)), layout="constrained")
        axes = figure.subplots()
        _rows(axes, results, name)
        axes.set_xlabel(escape.plot(title))
        if _is_utilization(name):
            axes.set_xlim(*utilization_span(case.metric(name) for case in results.cases))
        return figure

    figure = Figure(figsize=(5.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for number, (label, cases) in enumerate(lines):
        shift = number - (len(lines) - 1) / 2  # keeps intervals of equal x apart
        points = [(_shifted(x, shift, load), case.metric(name)) for x, case in cases]
        axes.errorbar(
            [x for x, _ in points],
            [found.mean * about.scale for _, found in points],
            yerr=[_half(found) * about.scale for _, found in points],
            label=_mark(label),
            **_look(number),
        )
        _hollow(axes, [(x, found.mean * about.scale) for x, found in points if _unsure(found)])
    _load_axis(axes, load)
    axes.set_ylabel(escape.plot(title))
    if any(part in name for part in _FROM_ZERO):
        axes.set_ylim(bottom=0)
    elif _is_utilization(name):
        axes.set_ylim(*utilization_span(case.metric(name) for case in results.cases))
    _legend(figure, [axes], len(lines))
    return figure


def _half(found: Estimate) -> float:
    """Return half an interval; NaN, for which no bar is drawn, without one."""
    return math.nan if found.ci95 is None else found.ci95


def _unsure(found: Estimate) -> bool:
    """Return whether several replications have no interval."""
    return found.ci95 is None and found.n > 1


def _hollow(axes: Axes, points: Sequence[tuple[float, float]]) -> None:
    """Make the markers of these points hollow: there is no interval."""
    if points:
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            linestyle="none",
            marker="o",
            markersize=2.5,
            color="white",
            zorder=10,
        )


def utilization_span(found: Iterable[Estimate]) -> tuple[float, float]:
    """Return the ends of an axis of utilization, in percent.

    At least five points wide, so that small changes of a link that is always busy look small, and
    no more than a margin beyond 100, the largest utilization.

    >>> from redtail.analysis.stats import Estimate
    >>> utilization_span([Estimate(1.0, 0.0, 10), Estimate(0.9999, 0.0001, 10)])
    (95.0, 100.1)
    >>> utilization_span([Estimate(0.40, 0.02, 10), Estimate(0.78, None, 1)])
    (36.0, 80.0)
    """
    ends = [
        100 * (each.mean + side * (each.ci95 or 0.0))
        for each in found
        if not math.isnan(each.mean)
        for side in (-1, 1)
    ] or [0.0, 100.0]
    low, high = min(ends), min(100.0, max(ends))
    span = max(5.0, 1.1 * (high - low))
    top = min(100.0, (low + high + span) / 2)
    margin = 0.02 * span if top == 100.0 else 0.0
    return round(max(0.0, top - span), 2), round(top + margin, 2)


def _is_utilization(name: str) -> bool:
    return name.rpartition(".")[2] == "utilization"


def loss_figure(results: Results, link: str | None = None) -> Figure:
    """Draw P(a loss event has more than n losses) on a logarithmic axis, a panel per load."""
    link = link or results.links[0]
    load = find_load(results)
    lines = _lines(results, load)
    panels = _panels(load)
    figure = Figure(figsize=(1.2 + 2.5 * max(len(panels), 1.6), 3.6), layout="constrained")
    row: Sequence[Axes] = figure.subplots(1, len(panels), sharey=True, sharex=True, squeeze=False)[
        0
    ]
    longest, rarest = 1, 1.0
    for axes, x in zip(row, panels, strict=True):
        single = []
        for number, (label, cases) in enumerate(lines):
            for case in (case for at, case in cases if at == x):
                tail = case.exceedance(link)
                if not tail:
                    single.append(label)
                    continue
                longest = max(longest, len(tail))
                rarest = min(rarest, tail[-1].mean)
                means = [found.mean for found in tail]
                # An interval that reaches zero has no lower end on a logarithmic axis.
                upper = [_half(found) for found in tail]
                lower = [min(up, 0.999 * found.mean) for up, found in zip(upper, tail, strict=True)]
                axes.errorbar(
                    range(1, len(tail) + 1),
                    means,
                    yerr=[lower, upper],
                    label=_mark(label),
                    markevery=max(1, len(tail) // 12),
                    errorevery=max(1, len(tail) // 12),
                    **_look(number),
                )
        axes.set_yscale("log")
        if load is not None:
            axes.set_title(f"{escape.plot(load.title)}: {x:g}")
        if single:
            axes.text(
                0.97,
                0.97,
                "never more than 1:\n" + "\n".join(map(escape.plot, single)),
                transform=axes.transAxes,
                ha="right",
                va="top",
                fontsize=8,
            )
        axes.set_xlabel("n (packets)")
    for axes in row:
        if longest > 20:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylim(rarest / 3, 1.0)
    of = f"{link}: " if len(results.links) > 1 else ""
    row[0].set_ylabel(f"{escape.plot(of)}P(loss event longer than n)")
    _legend(figure, row, len(lines))
    return figure


def response_figure(results: Results, group: str, size_up_to: float | None = None) -> Figure:
    """Draw the distribution of response times with its 95 % band, a line per case.

    With a load and something to compare there is a panel per load.
    """
    times, bands = results.response_time_bands(group, size_up_to)
    of = {id(case): found for case, found in zip(results.cases, bands, strict=True)}
    load = find_load(results)
    lines = _lines(results, load)
    if load is not None and len(lines) == 1:
        lines = [(case.title, [(0.0, case)]) for _, case in lines[0][1]]
        load = None
    panels = _panels(load)
    figure = Figure(figsize=(1.4 + 2.6 * max(len(panels), 1.6), 3.8), layout="constrained")
    row = figure.subplots(1, len(panels), sharey=True, sharex=True, squeeze=False)[0]
    for axes, x in zip(row, panels, strict=True):
        for number, (label, cases) in enumerate(lines):
            for case in (case for at, case in cases if at == x):
                found = of[id(case)]
                if found:
                    _distribution(axes, times, found, label, number)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        if load is not None:
            axes.set_title(f"{escape.plot(load.title)}: {x:g}")
        axes.set_xlabel("Response time (s)")
    row[0].set_ylim(0.0, 1.0)
    row[0].set_xlim(*_time_span(times, [found for found in bands if found]))
    row[0].set_ylabel(f"{escape.plot(group)}: share of responses")
    _legend(figure, row, len(lines))
    return figure


def _distribution(
    axes: Axes, times: Sequence[float], found: Sequence[Estimate], label: str, number: int
) -> None:
    """Draw one distribution and its band, from the beginning of the first bin."""
    look = _look(number)
    times = [times[0] / 10 ** (1 / names.BINS_PER_DECADE), *times]
    found = [estimate([0.0]), *found]
    half = [_half(each) for each in found]
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
        label=_mark(label),
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


def queue_figure(results: Results, link: str | None = None, replication: int = 0) -> Figure | None:
    """Draw queue length over time, a panel per case; None when no series was recorded.

    In kB when that is the unit of the averages that are drawn as well.
    """
    link = link or (results.links[0] if results.links else "")
    load = find_load(results)
    lines = _lines(results, load)
    panels = _panels(load)
    tables, averages = {}, {}
    for number, case in enumerate(results.cases):
        try:
            tables[id(case)] = results.series("queues", case=number, replication=replication)
        except StoreError:
            continue
        averages[id(case)] = _unit_of_average(case, link, replication)
    if not tables:
        return None
    unit = "bytes" if {*averages.values()} - {""} == {"bytes"} else "packets"
    shown = "kB" if unit == "bytes" else unit
    figure = Figure(
        figsize=(1.0 + 2.6 * max(len(panels), 1.5), 0.9 + 1.5 * len(lines)), layout="constrained"
    )
    grid = figure.subplots(len(lines), len(panels), sharex=True, sharey=True, squeeze=False)
    for number, (label, cases) in enumerate(lines):
        row = grid[number]
        for axes, x in zip(row, panels, strict=True):
            if load is not None and number == 0:
                axes.set_title(f"{escape.plot(load.title)}: {x:g}")
            if axes is row[0]:
                axes.set_ylabel(f"{escape.plot(label)}\n({shown})" if label else f"Queue ({shown})")
            for case in (case for at, case in cases if at == x and id(case) in tables):
                averaged = averages[id(case)] == unit
                _queue_lines(axes, tables[id(case)], link, unit, averaged=averaged)
    for axes in grid[-1]:
        axes.set_xlabel("Time (s)")
    grid[0][0].set_ylim(bottom=0)
    if unit in averages.values():
        handles = _handles(grid.flat)
        figure.legend(
            handles.values(), handles.keys(), loc="outside upper center", ncols=2, frameon=False
        )
    return figure


def _queue_lines(axes: Axes, table: Any, link: str, unit: str, *, averaged: bool) -> None:
    """Draw one queue's length in packets or, with the unit bytes, in kB, and its average."""
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    rows = [number for number, of in enumerate(columns["link"]) if of == link]
    time = [columns["time_s"][number] for number in rows]
    scale = 1e-3 if unit == "bytes" else 1.0
    # Thousands of line segments are drawn as an image also in the SVG file.
    axes.plot(
        time,
        [columns[unit][number] * scale for number in rows],
        color=COLOURS[6],
        linewidth=0.8,
        rasterized=True,
        label=_mark("queue length"),
    )
    if averaged:
        average = [columns["average"][number] * scale for number in rows]
        axes.plot(
            time,
            average,
            color="black",
            linewidth=1.2,
            rasterized=True,
            label=_mark("average (RED's)"),
        )


# Kinds of queue whose series have RED's average; that of others is of something else.
_AVERAGING = (
    "red",
    "adaptive-red",
    "self-configuring-red",
    "dynamic-threshold-red",
    "red-tail",
    "wred",
    "choke",
)


def _unit_of_average(case: CaseResult, link: str, replication: int) -> str:
    """Return what RED's average of a queue is counted in, packets or bytes; empty without one."""
    spec = json.loads((case.runs[replication].folder / "scenario.json").read_bytes())
    queue = links(spec).get(link, {}).get("queue", {})
    if queue.get("kind") not in _AVERAGING:
        return ""
    profiles = queue.get("profile", [queue])
    _, unit = quantity(profiles[0].get("min_th"))  # without it thresholds are computed in packets
    return "packets" if unit in ("", "packet", "packets", "pkt", "pkts") else "bytes"


def _rows(axes: Axes, results: Results, name: str) -> None:
    about = names.describe(name)
    for number, case in enumerate(results.cases):
        found = case.metric(name)
        axes.errorbar(
            [found.mean * about.scale],
            [number],
            xerr=[_half(found) * about.scale],
            color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)],
            linestyle="none",
        )
        _hollow(axes, [(found.mean * about.scale, number)] if _unsure(found) else [])
    axes.set_yticks(
        range(len(results.cases)),
        [escape.plot(case.title or results.name) for case in results.cases],
    )
    axes.set_ylim(len(results.cases) - 0.5, -0.5)


def _lines(results: Results, load: Load | None) -> list[tuple[str, list[tuple[float, CaseResult]]]]:
    """Group the cases into lines: equal in all factors but the load, and sorted by it."""
    lines: dict[str, list[tuple[float, CaseResult]]] = {}
    for number, case in enumerate(results.cases):
        label = ", ".join(
            text for key, text in case.labels.items() if load is None or key != load.key
        )
        x = 0.0 if load is None else load.values[number]
        lines.setdefault(label, []).append((x, case))
    return [(label, sorted(cases, key=lambda pair: pair[0])) for label, cases in lines.items()]


def _panels(load: Load | None) -> list[float]:
    return [0.0] if load is None else sorted(set(load.values))


def _look(number: int) -> dict[str, Any]:
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
        "elinewidth": 1.0,
    }


def _load_axis(axes: Axes, load: Load) -> None:
    axes.set_xlabel(escape.plot(load.title))
    values = sorted(set(load.values))
    if load.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    if len(values) <= 8:
        axes.set_xticks(values, [f"{value:g}" for value in values])


def _legend(figure: Figure, axes: Iterable[Axes], lines: int) -> None:
    handles = _handles(axes)
    if len(handles) > 1:
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside upper center",
            ncols=lines if lines <= 4 and sum(map(len, handles)) <= 28 else min(lines, 3),
            handlelength=3.0,  # long enough to tell the dashes apart
            frameon=False,
        )


def _mark(label: str) -> str:
    """Return a label to draw with: Matplotlib takes one that begins with "_" for one of its own."""
    return f" {escape.plot(label)}"


def _handles(axes: Iterable[Axes]) -> dict[str, Any]:
    """Return what a legend needs, each label once."""
    return {
        label.removeprefix(" "): handle
        for each in axes
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True)
    }


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


@contextmanager
def _explain_write_errors(folder: Path) -> Iterator[None]:
    """Turn an error of the operating system into a message that says what to do."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{folder}: the figures cannot be written: {error.strerror or error}. "
            "The results are stored; make room and give the same command again."
        ) from error
