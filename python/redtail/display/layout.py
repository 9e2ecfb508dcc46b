"""What stands where in a figure: the load along the horizontal axis, lines, and panels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import NullFormatter, NullLocator

from redtail import escape, quantities
from redtail import metrics as names
from redtail.display import style
from redtail.scenario import quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

# Keys of the factors that are a load before all others.
_LOADS = (".flows", ".users", ".load")

# Most values that are all written at an axis.
_TICKS = 8


@dataclass(frozen=True)
class Load:
    """The horizontal axis: the numeric factor of an experiment.

    Attributes:
        key: the factor's dotted key.
        title: the axis text, with the unit where there is one.
        values: the number of each case; of a load that was asked for, the one that was achieved.
    """

    key: str
    title: str
    values: tuple[float, ...]

    @property
    def logarithmic(self) -> bool:
        """Whether the values spread so far that a linear axis would crowd them."""
        return min(self.values) > 0 and max(self.values) >= 8 * min(self.values)

    def shifted(self, x: float, shift: float) -> float:
        """Return where a point of a line is drawn; intervals of equal x stand beside each other."""
        spread = max(self.values) - min(self.values)
        return x * 1.03**shift if self.logarithmic else x + 0.008 * shift * spread

    def of_panel(self, x: float) -> str:
        """Return the title of the panel for one value.

        >>> Load("traffic.ftp.flows", "Number of ftp flows", (16.0,)).of_panel(16.0)
        'Number of ftp flows: 16'
        >>> Load("bottleneck.rate", "Rate (Mbit/s)", (10.0,)).of_panel(10.0)
        'Rate: 10 Mbit/s'
        """
        title, _, unit = self.title.removesuffix(")").partition(" (")
        return escape.plot(f"{title}: {x:g} {unit}".rstrip())


@dataclass(frozen=True)
class Line:
    """Cases that are equal in all factors but the load.

    Attributes:
        label: what a legend calls them.
        points: the load and the case, sorted by the load.
    """

    label: str
    points: tuple[tuple[float, CaseResult], ...]

    def at(self, x: float) -> list[CaseResult]:
        """Return the cases at a load."""
        return [case for found, case in self.points if found == x]


@dataclass(frozen=True)
class Panel:
    """Lines that share a panel.

    Attributes:
        title: what all its lines have in common; may be empty.
        lines: its lines.
    """

    title: str
    lines: tuple[Line, ...]


def find_load(results: Results) -> Load | None:
    """Return the factor to put on the horizontal axis, None when no factor is numeric.

    Numbers of flows, users and offered loads come first; then the first factor whose values are
    numbers, or quantities of one kind.
    """
    for key in sorted(results.factors, key=lambda key: not key.endswith(_LOADS)):
        about = key
        values = [case.factors.get(key) for case in results.cases]
        if key == names.CASE_NAME:
            about, values = _behind_names(results)
        read = quantities.in_one_unit(values)
        if read is None or len(set(read[0])) < 2:
            continue
        numbers, unit = read
        if about.endswith(".load"):
            numbers, unit = _achieved(results, about.split(".")[-2], numbers), "%"
        return Load(key, factor_axis(about, unit), numbers)
    return None


def factor_axis(key: str, unit: str) -> str:
    """Return the text of an axis along which a factor is, with the unit."""
    if key == names.CASE_NAME:
        # Users that were found beforehand for a share of the link, as the names say.
        return "Load (%)" if unit == "%" else f"Name of the case{f' ({unit})' if unit else ''}"
    group = " ".join(key.split(".")[1:-1])
    if key.startswith("traffic.") and key.endswith((".flows", ".users")):
        title = f"number of {escape.name(group)} {key.rpartition('.')[2]}"
    elif key.startswith("traffic.") and key.endswith(".load"):
        title = f"offered load of {escape.name(group)}"
    else:
        title = in_words(key)
    if title.split(" ")[0] not in _SYMBOLS:
        title = title[:1].upper() + title[1:]
    return f"{title} ({unit})" if unit else title


# Parameters that are written like this in papers too.
_SYMBOLS = ("min_th", "max_th", "max_p", "w_q", "w_p")

# What stands in front of a key, and what that is called.
_PLACES = {
    "bottleneck.return.queue.": " of the return link's queue",
    "bottleneck.queue.": " of the queue",
    "bottleneck.return.": " of the return link",
    "bottleneck.": "",
}


def in_words(key: str) -> str:
    """Return a dotted key as words, for an axis.

    >>> in_words("traffic.other.return_delay"), in_words("bottleneck.queue.min_th")
    ('return delay of other', 'min_th of the queue')
    >>> in_words("traffic.ftp.tcp.initial_window"), in_words("host_jitter")
    ('TCP initial window of ftp', 'host jitter')
    """
    of = ""
    if key.startswith("traffic.") and key.count(".") > 1:
        _, group, key = key.split(".", 2)
        of = f" of {escape.name(group)}"
    else:
        for head, words in _PLACES.items():
            if key.startswith(head):
                key, of = key.removeprefix(head), words
                break
        else:
            key = names.factor_title(key).replace(" ", ".")
    parts = [part if part in _SYMBOLS else part.replace("_", " ") for part in key.split(".")]
    return escape.name(" ".join("TCP" if part == "tcp" else part for part in parts)) + of


def _behind_names(results: Results) -> tuple[str, list[Any]]:
    """Return the key, and its values, that the names of cases stand for; if none, the names."""
    given = [case.factors.get(names.CASE_NAME) for case in results.cases]
    wanted = [quantity(name)[0] for name in given]
    keys = [key for case in results.cases for key in (case.own or {})]
    for key in sorted(dict.fromkeys(keys), key=lambda key: not key.endswith(_LOADS)):
        values = [(case.own or {}).get(key) for case in results.cases]
        if None not in wanted and [quantity(value)[0] for value in values] == wanted:
            return key, values
    return names.CASE_NAME, given


def _achieved(results: Results, group: str, asked: Sequence[float]) -> tuple[float, ...]:
    """Return the load that a group offered in each case, in percent; what was asked if unknown."""
    found = []
    for case, wanted in zip(results.cases, asked, strict=True):
        offered = [
            share for load in case.loads if load.group == group for share in load.offered.values()
        ]
        found.append(float(f"{100 * math.fsum(offered) / len(offered):.3g}") if offered else wanted)
    return tuple(found)


def queue_factor(results: Results, load: Load | None) -> str | None:
    """Return the factor that is compared: the first queue, else the first that is not the load."""
    others = _line_keys(results, load)
    tables = [
        key
        for key in others
        if any(isinstance(case.factors.get(key), dict) for case in results.cases)
    ]
    queues = [key for key in tables if key.rpartition(".")[2] == "queue"]
    return next(iter([*queues, *tables, *others]), None)


def lines_of(results: Results, load: Load | None) -> list[Line]:
    """Return the cases as lines: equal in all factors but the load, and sorted by it."""
    others = _line_keys(results, load)
    found: dict[str, list[tuple[float, CaseResult]]] = {}
    for number, case in enumerate(results.cases):
        x = 0.0 if load is None else load.values[number]
        found.setdefault(_label(case, others), []).append((x, case))
    return [
        Line(label, tuple(sorted(cases, key=lambda pair: pair[0])))
        for label, cases in found.items()
    ]


def panels_of(results: Results, load: Load | None, most: int) -> list[Panel]:
    """Return the lines in panels.

    All in one, if there are no more than `most`. Otherwise a panel for each setting of the factors
    beside the load and the queue; within it there may be more lines than can be told apart.
    """
    lines = lines_of(results, load)
    queue = queue_factor(results, load)
    others = [key for key in _line_keys(results, load) if key != queue]
    if len(lines) <= most or not others or queue is None:
        return [Panel("", tuple(lines))]
    found: dict[str, list[Line]] = {}
    for line in lines:
        case = line.points[0][1]
        title = names.case_title(
            {key: case.factors.get(key) for key in others},
            {key: case.labels[key] for key in others if key in case.labels},
        )
        label = escape.name(case.labels.get(queue, ""))
        found.setdefault(title, []).append(Line(label, line.points))
    return [Panel(title, tuple(each)) for title, each in found.items()]


@dataclass(frozen=True)
class Arrangement:
    """Which lines share a panel, and how each looks.

    Attributes:
        groups: the lines of each group, which shares panels, with the numbers of their looks.
        titles: of each group what its lines have in common; empty of groups that are mere parts.
        legend: what the labels of all lines are; may be empty.
    """

    groups: list[list[tuple[int, Line]]]
    titles: list[str]
    legend: str

    @property
    def legends(self) -> int:
        """In how many groups a look stands for one label."""
        return 1 if any(self.titles) else len(self.groups)

    def in_words(self, *, grey: bool = False) -> str:
        """Return why there are several groups, for a caption; empty for one."""
        if any(self.titles):
            return "other lines in grey" if grey else ""
        return style.in_words(sum(map(len, self.groups)), len(self.groups), grey=grey)


def arranged(
    results: Results, load: Load | None, lines: Sequence[Line], most: int = style.DISTINCT
) -> Arrangement:
    """Return the lines in groups of no more than can be told apart.

    Lines of several factors have a group for each setting of the factors beside the queue, so that
    a look means the same queue everywhere. Others are in parts of about equal size.
    """
    keys = _varied(results, load)
    queue = queue_factor(results, load)
    labels = list(dict.fromkeys(line.points[0][1].labels.get(queue or "", "") for line in lines))
    if len(lines) <= most or len(keys) < 2 or queue is None or len(labels) > most:
        groups = style.split(lines, most)
        return Arrangement(groups, [""] * len(groups), legend_title(results, keys))
    found: dict[str, list[tuple[int, Line]]] = {}
    for line in lines:
        case = line.points[0][1]
        label = case.labels.get(queue, "")
        rest = [key for key in keys if key != queue]
        title = names.case_title(
            {key: case.factors.get(key) for key in rest},
            {key: case.labels[key] for key in rest if key in case.labels},
        )
        found.setdefault(title, []).append((labels.index(label), Line(label, line.points)))
    return Arrangement([*found.values()], [*found], legend_title(results, [queue]))


def of_distributions(results: Results) -> tuple[Load | None, Arrangement]:
    """Return the load and the lines of curves; of a load alone each value is a line."""
    load = find_load(results)
    lines = lines_of(results, load)
    if load is None or len(lines) > 1:
        return load, arranged(results, load, lines)
    groups = style.split([Line(f"{x:g}", ((0.0, case),)) for x, case in lines[0].points])
    return None, Arrangement(groups, [""] * len(groups), escape.plot(load.title))


@dataclass(frozen=True)
class Coded:
    """Looks of lines that two factors tell apart: one is the colour, the other the marker.

    Attributes:
        looks: the look of each line, in their order.
        legend: of colours and of markers the title and, of each entry, the label and its look.
    """

    looks: list[dict[str, Any]]
    legend: list[tuple[str, list[tuple[str, dict[str, Any]]]]]


def coded(results: Results, load: Load | None, lines: Sequence[Line]) -> Coded | None:
    """Return looks for more lines than there are looks; None if two factors do not suffice.

    The factor that is compared has the colours. All others together have the markers.
    """
    keys = _varied(results, load)
    queue = queue_factor(results, load)
    if len(lines) <= style.DISTINCT or len(keys) < 2 or queue is None:
        return None
    rest = [key for key in keys if key != queue]
    cases = [line.points[0][1] for line in lines]
    colours = list(dict.fromkeys(case.labels.get(queue, "") for case in cases))
    markers = list(dict.fromkeys(_label(case, rest) for case in cases))
    if max(len(colours), len(markers)) > style.DISTINCT:
        return None
    looks = []
    for case in cases:
        look = style.look(colours.index(case.labels.get(queue, "")))
        look["marker"] = style.MARKERS[markers.index(_label(case, rest))]
        looks.append(look)
    title = legend_title(results, [queue]) or in_words(queue).capitalize()
    return Coded(
        looks,
        [
            (
                title,
                [
                    (each, {"color": style.COLOURS[at], "marker": "o"})
                    for at, each in enumerate(colours)
                ],
            ),
            (
                legend_title(results, rest),
                [
                    (each, {"color": style.GREY, "marker": style.MARKERS[at]})
                    for at, each in enumerate(markers)
                ],
            ),
        ],
    )


def _line_keys(results: Results, load: Load | None) -> list[str]:
    """Return the factors that tell lines apart."""
    return [key for key in results.factors if load is None or key != load.key]


def _varied(results: Results, load: Load | None) -> list[str]:
    """Return the factors with several settings that tell lines apart."""
    return [
        key
        for key in _line_keys(results, load)
        if len({case.labels.get(key) for case in results.cases}) > 1
    ]


def legend_title(results: Results, keys: Sequence[str]) -> str:
    """Return what the labels of lines are; empty where they say it themselves.

    A number or a word says nothing without its key. Queues, and cases by name, have names.
    """
    if len(keys) != 1 or keys[0] == names.CASE_NAME:
        return ""
    values = [case.factors.get(keys[0]) for case in results.cases]
    if any(isinstance(value, dict) for value in values):
        return ""
    return escape.plot(factor_axis(keys[0], ""))


def _label(case: CaseResult, keys: Sequence[str]) -> str:
    if len(keys) == 1:
        return case.labels.get(keys[0], "")
    return names.case_title(
        {key: case.factors.get(key) for key in keys},
        {key: case.labels[key] for key in keys if key in case.labels},
    )


def values_of(load: Load | None) -> list[float]:
    """Return the values of the load, each once, in their order; one without a load."""
    return [0.0] if load is None else sorted(set(load.values))


def load_axis(axes: Axes, load: Load) -> None:
    """Draw the horizontal axis to scale, with the numbers that were run where there is room."""
    width = style.panel_width(axes) - 0.45
    axes.set_xlabel(style.wrapped(escape.plot(load.title), 72 * width, style.RC["axes.labelsize"]))
    values = values_of(load)
    if load.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
    if len(values) <= _TICKS and _apart(values, load):
        axes.set_xticks(values, [f"{value:g}" for value in values])


def _apart(values: Sequence[float], load: Load) -> bool:
    """Return whether numbers at these values would not be written over each other."""
    places = [math.log(value) if load.logarithmic else value for value in values]
    span = places[-1] - places[0]
    steps = [second - first for first, second in pairwise(places)]
    return not steps or min(steps) >= 0.08 * span
