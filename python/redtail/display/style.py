"""The common style of all figures: looks of lines, sizes, legends, captions and files.

A line differs from every other line of its panel in colour (the Okabe-Ito palette), in marker and
in dash, so that one of the three is enough to tell them apart: in black and white, and with colour
blindness. There are `DISTINCT` such looks; a figure with more lines has several panels (`split`).

Widths are those of a two-column journal: IEEE prints a figure in one column 3.5 inches wide and
over both columns 7.16 inches wide ("Preparing Your Graphics", IEEE Author Center). Text is 7 to 8
points there, and it is text in SVG and PDF files too. Nothing here needs a display.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation

from redtail import escape
from redtail.analysis import censoring
from redtail.analysis.stats import interval_in_words
from redtail.display import drawn
from redtail.errors import RedtailError, SpecError, StoreError
from redtail.files import is_file_name
from redtail.store.writing import refuse_planted, replace_file

if TYPE_CHECKING:
    from matplotlib.axis import Axis

    from redtail.analysis.stats import Estimate

T = TypeVar("T")
R = TypeVar("R")
G = TypeVar("G")

Share: TypeAlias = bool | Literal["row"]
"""Which panels have the same axis."""

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

DISTINCT = len(COLOURS)
"""Lines of one panel that can be told apart."""

GREY = "#999999"
"""Of what is in the background: lines of other panels, captions."""

COLUMN = 3.5
"""Width of a figure in one column of a journal, in inches (IEEE)."""

PAGE = 7.16
"""Width of a figure over both columns, in inches (IEEE)."""


@dataclass(frozen=True)
class Given:
    """Axes of a figure of the user, which stand in the place of a size.

    What is drawn there has the settings of the user, a legend in the first panel, and no caption.

    Attributes:
        axes: a panel each.
    """

    axes: tuple[Axes, ...]

    @classmethod
    def of(cls, ax: object) -> Given:
        """Return one Axes, or a sequence or array of them.

        Raises:
            RedtailError: it is neither, or they are of a figure that redtail has drawn.
        """
        axes = tuple(getattr(ax, "flat", ax if isinstance(ax, Iterable) else (ax,)))
        if not axes or not all(isinstance(each, Axes) for each in axes):
            raise RedtailError("ax: accepted: Axes of Matplotlib, or a sequence of them")
        if any(isinstance(each.get_figure(root=True), Shown) for each in axes):
            raise RedtailError("ax: these Axes are of a figure that redtail has drawn already")
        return cls(axes)

    def panels(self, count: int, *, sharex: bool, sharey: Share) -> tuple[Figure, list[Axes]]:
        """Return the figure and its panels.

        Raises:
            RedtailError: so many panels are not given.
        """
        if count != len(self.axes):
            panels = "1 panel" if count == 1 else f"{count} panels"
            raise RedtailError(
                f"ax: this figure has {panels}; accepted: "
                + ("one Axes" if count == 1 else f"a sequence of {count} Axes")
                + f", not {len(self.axes)}"
            )
        first, *others = self.axes
        for each in others:
            if sharex and not each.get_shared_x_axes().joined(first, each):
                each.sharex(first)
            if sharey and not each.get_shared_y_axes().joined(first, each):
                each.sharey(first)
        figure = first.get_figure(root=True)
        assert figure is not None
        return figure, [*self.axes]


Size: TypeAlias = Literal["column", "page"] | tuple[float, float] | Given
"""A width of a journal, width and height in inches, or Axes of the user."""

RC: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2.5,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
    "savefig.dpi": 250,
    "pdf.fonttype": 42,  # TrueType: text stays text, and journals refuse the fonts of type 3
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "redtail",  # the same results give the same file
}
"""Matplotlib's settings for all figures; `with mpl.rc_context(style.RC)` draws with them."""

_WIDE = 5.0  # inches from which a figure has room for four panels beside each other
_CAPTION = 6.5  # points
_NARROW = 2.2  # inches; a narrower panel has no room for numbers between powers of ten
_BESIDE = 0.45  # inches that the numbers and the name of the vertical axis take
_LINE = 0.155  # inches of height that a line of a legend takes
_UNBROKEN = "\u00a0"  # a space at which no line breaks
_CAPTION_LINE = 0.115  # inches of height that a line of a caption takes


class Shown(Figure):
    """A figure of redtail; a notebook shows it by itself, also without `%matplotlib inline`."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure to a file, as Matplotlib does, with text as text."""
        with mpl.rc_context(RC):
            fit_labels(self)
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=150)
        return file.getvalue()


def width_of(size: Size) -> float:
    """Return a width in inches.

    Raises:
        SpecError: it is none of the widths, and no pair of positive numbers.
    """
    if size == "column":
        return COLUMN
    if size == "page":
        return PAGE
    given: Any = size
    pair = isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2
    if pair and all(isinstance(each, int | float) and each > 0 for each in given):
        return float(given[0])
    raise SpecError(
        f"size = {size!r}; accepted: 'column' ({COLUMN} inches wide), 'page' ({PAGE} inches wide), "
        "or (width, height) in inches"
    )


def new(size: Literal["column", "page"] | tuple[float, float], height: float) -> Shown:
    """Return an empty figure.

    Args:
        size: its width; with a height in it, that height is kept.
        height: in inches, before `legend` and `caption` make room for themselves.

    Raises:
        SpecError: there is no such size.
    """
    width = width_of(size)
    figure = Shown(
        figsize=(width, height if isinstance(size, str) else float(size[1])),
        layout="constrained",
    )
    figure.redtail_grows = isinstance(size, str)  # type: ignore[attr-defined]
    return figure


def panels(
    count: int,
    size: Size,
    *,
    height: float = 1.9,
    least: float = 1.65,
    columns: int | None = None,
    sharex: bool = True,
    sharey: Share = True,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with so many panels, in as many rows as its width makes necessary.

    Args:
        count: number of panels, at least one.
        size: the figure's width.
        height: of a panel, in inches.
        least: width of the narrowest panel, in inches.
        columns: how many panels are in a row; by default as many as there is room for.
        sharex: whether all panels have the same horizontal axis.
        sharey: whether all have the same vertical axis, or those of a row.

    Returns:
        The figure and its panels, row by row.
    """
    if isinstance(size, Given):
        return size.panels(count, sharex=sharex, sharey=sharey)
    if columns is None:
        columns = max(1, min(count, int(width_of(size) / least)))
        rows = math.ceil(count / columns)
        columns = math.ceil(count / rows)  # no row with one panel below a full one
    rows = math.ceil(count / columns)
    figure = new(size, 0.3 + height * rows)
    grid = list(figure.subplots(rows, columns, sharex=sharex, sharey=sharey, squeeze=False).flat)
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, grid[:count]


def cells(
    rows: Sequence[R],
    groups: Sequence[G],
    size: Size | None,
    *,
    height: float = 1.9,
    sharey: Share = True,
) -> tuple[Figure, list[tuple[Axes, R, G]]]:
    """Return a figure with a panel for each row and each group of lines (`split`).

    One group of lines is in all panels, which fill the width. Several groups have a column each, if
    there is room for them.

    Args:
        rows: what panels differ in beside their lines, such as the load.
        groups: the groups of lines.
        size: the figure's width; None for one column of a journal, or both for several panels.
        height: of a panel, in inches.
        sharey: whether all have the same vertical axis, or those of a row.

    Returns:
        The figure, and each panel with its row and its group.
    """
    pairs = [(row, group) for row in rows for group in groups]
    size = size or ("column" if len(pairs) == 1 else "page")
    columns = None
    if len(groups) > 1 and not isinstance(size, Given):
        columns = min(len(groups), 2 if width_of(size) < _WIDE else 4)
    figure, grid = panels(len(pairs), size, height=height, columns=columns, sharey=sharey)
    return figure, [(axes, row, group) for axes, (row, group) in zip(grid, pairs, strict=True)]


def is_given(figure: Figure) -> bool:
    """Return whether a figure is the user's, who has laid it out."""
    return not isinstance(figure, Shown)


def panel_width(axes: Axes) -> float:
    """Return the width of a panel with what stands beside it, in inches."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    if is_given(figure):
        return figure.get_figwidth() * axes.get_position().width + _BESIDE
    return figure.get_figwidth() / columns_of(axes)


def columns_of(axes: Axes) -> int:
    """Return how many panels stand beside each other."""
    spec = axes.get_subplotspec()
    assert spec is not None
    return int(spec.get_gridspec().ncols)


def outer(grid: Sequence[Axes], *, x: bool = True, y: bool = True) -> None:
    """Leave numbers and texts of axes that panels share to those at the left and below.

    Args:
        grid: the panels, row by row.
        x: whether those of a column share the horizontal axis.
        y: whether those of a row share the vertical axis.
    """
    figure = grid[0].get_figure(root=True)
    if figure is None or is_given(figure):
        return
    columns = columns_of(grid[0])
    for number, axes in enumerate(grid):
        # A panel above an empty place is the last of its column.
        if x and number + columns < len(grid):
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
        elif x:
            axes.tick_params(labelbottom=True)
        if y and number % columns:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)


def is_first(axes: Axes) -> bool:
    """Return whether a panel is the first of its row, or one of the user's figure."""
    figure = axes.get_figure(root=True)
    spec = axes.get_subplotspec()
    return spec is None or figure is None or is_given(figure) or bool(spec.is_first_col())


def look(number: int) -> dict[str, Any]:
    """Return colour, marker and dash of a line as arguments of `errorbar`."""
    return {
        "color": COLOURS[number % DISTINCT],
        "marker": MARKERS[number % DISTINCT],
        "linestyle": DASHES[number % DISTINCT],
        "elinewidth": 0.9,
    }


def split(lines: Sequence[T], most: int = DISTINCT) -> list[list[tuple[int, T]]]:
    """Return lines in as few groups as can be told apart, of about equal size.

    With each line comes the number of its look.

    >>> [len(group) for group in split(range(7))], [len(group) for group in split(range(16))]
    ([7], [6, 5, 5])
    """
    groups = max(1, math.ceil(len(lines) / most))
    ends = [math.ceil(len(lines) * number / groups) for number in range(groups + 1)]
    return [list(enumerate(lines[first:end])) for first, end in pairwise(ends)]


def in_words(lines: int, groups: int, *, grey: bool = False) -> str:
    """Return why a figure has several panels, for its caption; empty for one group.

    Args:
        lines: how many lines there are.
        groups: how many groups they are in.
        grey: whether each panel shows the lines of the others in grey.

    >>> in_words(16, 3)
    '16 lines cannot be told apart in one panel: each panel has some of them'
    """
    if groups == 1:
        return ""
    others = ", the others in grey" if grey else ""
    return f"{lines} lines cannot be told apart in one panel: each panel has some of them{others}"


def mark(label: str) -> str:
    """Return a label to draw with: Matplotlib takes one that begins with "_" for one of its own."""
    return f" {escape.plot(label)}"


def handles(axes: Iterable[Axes]) -> dict[str, Any]:
    """Return what a legend needs, each label once."""
    return {
        label.removeprefix(" "): handle
        for each in axes
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True)
    }


def legend(figure: Figure, axes: Sequence[Axes], *, title: str = "", least: int = 2) -> None:
    """Put a legend above all panels, in as many columns as fit into the figure's width.

    Args:
        figure: what to put it on; its height grows by that of the legend. In a figure of the user
            the legend is in the first panel.
        axes: the panels.
        title: what the entries are; ready to be drawn.
        least: there is no legend with fewer entries.
    """
    found = handles(axes)
    if len(found) < least:
        return
    if is_given(figure):
        axes[0].legend(found.values(), list(found), title=title or None)
        return
    size = RC["legend.fontsize"]
    room = 72 * figure.get_figwidth() - 8
    labels = [wrapped(label, room - 6 * size, size) for label in found]
    columns = _columns(labels, room, size)
    grow(figure, _LINE * (_rows(labels, columns) + bool(title)))
    figure.legend(
        found.values(),
        labels,
        loc="outside upper center",
        ncols=columns,
        handlelength=3.0,  # long enough to tell the dashes apart
        columnspacing=1.5,
        frameon=False,
        title=title or None,
        title_fontsize=size,
    )


def legends(figure: Figure, grid: Sequence[Axes], groups: int, title: str = "") -> None:
    """Put a legend above all panels; or above each column, or each panel, that has its own lines.

    Args:
        figure: what to put it on; its height grows by that of the legend.
        grid: the panels, row by row.
        groups: the number of groups of lines, as for `cells`.
        title: what the entries are; ready to be drawn.
    """
    if groups == 1:
        legend(figure, grid, title=title)
        return
    if is_given(figure):
        for axes in grid:
            legend(figure, [axes], title=title, least=1)
        return
    size = RC["legend.fontsize"]
    across = columns_of(grid[0])
    room = 72 * (figure.get_figwidth() / across - 0.55)
    highest = 0
    # With a column for each group its first panel has the legend; otherwise each panel has.
    several_rows = groups > across
    for number, axes in enumerate(grid if several_rows else grid[:groups]):
        found = handles([axes] if several_rows else grid[number::groups])
        if not found:
            continue
        labels = [wrapped(label, room - 5 * size, size) for label in found]
        columns = _columns(labels, room, size)
        highest = max(highest, _rows(labels, columns) + bool(title))
        above = 0.17 if axes.get_title("left") else 0.02
        axes.legend(
            found.values(),
            labels,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            bbox_transform=axes.transAxes + ScaledTranslation(0, above, figure.dpi_scale_trans),
            ncols=columns,
            handlelength=3.0,
            columnspacing=1.5,
            borderaxespad=0.2,
            borderpad=0.1,
            frameon=False,
            title=title or None,
            title_fontsize=size,
            alignment="left",
        )
    rows = math.ceil(len(grid) / across) if several_rows else 1
    grow(figure, rows * (_LINE * highest + 0.1))


def two_legends(
    figure: Figure,
    axes: Sequence[Axes],
    groups: Sequence[tuple[str, Sequence[tuple[str, dict[str, Any]]]]],
) -> None:
    """Put a legend of points above all panels, with two groups of entries beside each other.

    Args:
        figure: what to put it on, as for `legend`.
        axes: the panels.
        groups: of each its title and, for each entry, its label and its colour and marker.
    """
    most = max(len(entries) for _, entries in groups)
    lines, labels = [], []
    for title, entries in groups:
        nothing: dict[str, Any] = {}
        rows = [(title, nothing), *entries, *[("", nothing)] * (most - len(entries))]
        lines += [Line2D([], [], linestyle="none", **look) for _, look in rows]
        labels += [escape.plot(label) or " " for label, _ in rows]
    if is_given(figure):
        axes[0].legend(lines, labels, ncols=2)
        return
    size = RC["legend.fontsize"]
    room = (72 * figure.get_figwidth() - 8) / len(groups) - 6 * size
    labels = [wrapped(label, room, size) for label in labels]
    grow(figure, _LINE * _rows(labels, len(groups)))
    figure.legend(
        lines,
        labels,
        loc="outside upper center",
        ncols=len(groups),
        columnspacing=1.5,
        frameon=False,
    )


def title(axes: Axes, *texts: str) -> None:
    """Write what a panel is about above it, in lines that are no longer than it is wide."""
    room = 72 * (panel_width(axes) - 0.3)
    lines = [wrapped(text, room, RC["axes.titlesize"]) for text in texts if text]
    if lines:
        axes.set_title("\n".join(lines), loc="left")


def label_y(axes: Axes, text: str, height: float) -> None:
    """Name the vertical axis; a text that is longer than a panel is high has several lines.

    Args:
        axes: the panel.
        text: ready to be drawn.
        height: of the panel with all around it, in inches.
    """
    room = 72 * max(0.9, height - 0.45)
    axes.set_ylabel(
        "\n".join(wrapped(line, room, RC["axes.labelsize"]) for line in text.split("\n"))
    )


def caption(figure: Figure, *texts: str) -> None:
    """Write below a figure what its marks mean; its height grows by that of the text."""
    text = "; ".join(each for each in texts if each)
    if not text or is_given(figure):
        return
    room = 0.93 * (72 * figure.get_figwidth() - 8)
    text = escape.plot(text[:1].upper() + text[1:] + ".")
    kept = text.replace("n = ", f"n{_UNBROKEN}={_UNBROKEN}")
    lines = wrapped(kept, room, _CAPTION).replace(_UNBROKEN, " ")
    grow(figure, _CAPTION_LINE * (1 + lines.count("\n")))
    figure.supxlabel(lines, x=0.01, ha="left", fontsize=_CAPTION, color="#555555", linespacing=1.15)


def drop_caption(figure: Figure) -> None:
    """Take away what `caption` has written; the figure's height shrinks by that of the text."""
    text = getattr(figure, "_supxlabel", None)
    if text is not None:
        grow(figure, -_CAPTION_LINE * (1 + text.get_text().count("\n")))
        text.remove()
        figure._supxlabel = None  # type: ignore[attr-defined]


def fit_labels(figure: Figure) -> None:
    """Break names of horizontal axes that are wider than their panels into lines.

    How wide a panel is, is known when what stands beside it has got its place. Labels of panels
    beside each other would collide, and that of the last would be cut at the edge.
    """
    layout = figure.get_layout_engine()
    if layout is None or not figure.axes:
        return
    layout.execute(figure)
    more = 0
    for axes in figure.axes:
        label = axes.xaxis.label
        if not axes.get_visible() or not label.get_text():
            continue
        room = 72 / figure.dpi * axes.get_window_extent().width
        text = label.get_text()
        size = float(label.get_fontsize())
        if _text_width(text, size) <= room:
            continue
        fitted = wrapped(" ".join(text.split("\n")), room, size)
        if fitted != text:
            more = max(more, fitted.count("\n") - text.count("\n"))
            label.set_text(fitted)
    if more:
        grow(figure, 0.13 * more)
        layout.execute(figure)


def grow(figure: Figure, inches: float) -> None:
    """Make a figure higher, unless its height was asked for or is the user's."""
    if getattr(figure, "redtail_grows", False):
        figure.set_figheight(figure.get_figheight() + inches)


def replications_in_words(counts: Iterable[int]) -> str:
    """Return over how many replications values are, in words.

    >>> replications_in_words([10, 10]), replications_in_words([1]), replications_in_words([5, 9])
    ('n = 10 replications', 'one replication, so no intervals', 'n = 5 to 9 replications')
    """
    found = sorted({count for count in counts if count > 0})
    if not found:
        return "no replication has a value"
    if found == [1]:
        return "one replication, so no intervals"
    if len(found) == 1:
        return f"n = {found[0]} replications"
    return f"n = {found[0]} to {found[-1]} replications"


def meaning_of_bars(found: Iterable[Estimate], what: str = "mean", *, paired: bool = False) -> str:
    """Return what points and bars of a figure are, with the number of replications.

    Args:
        found: what is drawn.
        what: what the points are.
        paired: whether they are differences replication by replication.
    """
    found = [each for each in found if each.n > 0]
    text = replications_in_words(each.n for each in found)
    if text.startswith("one"):
        return f"point: {what}; {text}" if what != "mean" else text
    text = f"{what} and its {interval_in_words(paired=paired)}, {text}"
    if any(unsure(each) for each in found):
        text += "; hollow: no interval can be given"
    most = max((each.unfinished or 0.0 for each in found), default=0.0)
    if most > 0:
        text += f"; up to {censoring.percent(most)} did not finish when the runs ended"
    return text


def unsure(found: Estimate) -> bool:
    """Return whether several replications have no interval."""
    return found.ci95 is None and found.n > 1


def bars(
    found: Sequence[Estimate],
    scale: float = 1.0,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    *,
    log: bool = False,
) -> list[list[float]]:
    """Return the lengths of error bars below and above, as `yerr` takes them.

    They end where the quantity cannot go, and on a logarithmic axis above zero. NaN, for which no
    bar is drawn, without an interval.

    Args:
        found: the estimates.
        scale: a drawn number is a stored number times this.
        bounds: the least and the greatest possible value, as they are stored.
        log: whether the axis is logarithmic.
    """
    lower, upper = [], []
    for each in found:
        half = math.nan if each.ci95 is None else each.ci95
        low = max(each.mean - half, min(bounds[0], each.mean))
        high = min(each.mean + half, max(bounds[1], each.mean))
        down = each.mean - low if not math.isnan(half) else half
        if log:
            down = min(down, 0.999 * each.mean)
        lower.append(max(0.0, down) * scale if not math.isnan(down) else down)
        upper.append((high - each.mean) * scale if not math.isnan(half) else half)
    return [lower, upper]


def hollow(axes: Axes, points: Sequence[tuple[float, float]], look: Mapping[str, Any]) -> None:
    """Make the markers of these points of a line hollow: there is no interval."""
    if points:
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            linestyle="none",
            marker=look["marker"],
            color=look["color"],
            markerfacecolor="white",
            zorder=10,
        )


def spans_decades(values: Iterable[float], factor: float = 50.0) -> bool:
    """Return whether values are all positive and so far apart that an axis is better logarithmic.

    >>> spans_decades([1, 60]), spans_decades([0, 60]), spans_decades([5, 60])
    (True, False, False)
    """
    known = [value for value in values if not math.isnan(value)]
    return bool(known) and min(known) > 0 and max(known) >= factor * min(known)


def log_axis(axis: Axis) -> None:
    """Make an axis logarithmic, with its numbers written out where they are readable so."""
    axis._set_axes_scale("log")  # type: ignore[attr-defined]
    axis.set_major_locator(LogLocator(numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    low, high = axis.get_view_interval()
    narrow = axis is axis.axes.xaxis and panel_width(axis.axes) < _NARROW
    if low > 0 and high / low < 100 and not narrow:
        axis.set_minor_formatter(
            FuncFormatter(lambda value, _: number(value) if leading_digit(value) in (2, 5) else "")
        )
    else:
        axis.set_minor_formatter(NullFormatter())


def leading_digit(value: float) -> int:
    """Return the first digit of a positive number."""
    return round(value / 10 ** math.floor(math.log10(value) + 1e-9)) if value > 0 else 0


def number(value: float) -> str:
    """Return a number as it stands at an axis.

    >>> number(0.25), number(100.0), number(1e6), number(2e-5)
    ('0.25', '100', '$10^{6}$', '2e-05')
    """
    if value and (abs(value) >= 1e5 or abs(value) < 1e-3):
        power = math.log10(abs(value))
        if abs(power - round(power)) < 1e-9:
            return f"$10^{{{round(power)}}}$"
    return f"{value:g}"


def save(
    figures: Iterable[tuple[str, Figure]],
    folder: Path,
    formats: Sequence[str] = (drawn.DEFAULT,),
) -> list[Path]:
    """Write figures under the names given; returns the paths in the order of figures and formats.

    All files of a figure have the layout that is found for the PNG, and the figure keeps it. The
    same figure gives the same bytes. A file appears when it is whole.

    Args:
        figures: names and figures.
        folder: made when missing.
        formats: of `drawn.FORMATS`.

    Raises:
        StoreError: the folder cannot be written.
        ValueError: a name cannot be the name of a file.
    """
    figures = list(figures)
    for name, _ in figures:
        if not is_file_name(name):
            raise ValueError(f"{name!r} cannot be the name of a figure's file")
    # Without them the files would have the version of Matplotlib and the time.
    metadata: dict[str, dict[str, None]] = {
        "png": {"Software": None},
        "svg": {"Date": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    paths = []
    with mpl.rc_context(RC), _explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        refuse_planted(folder)
        for name, figure in figures:
            # To find the layout takes as long as to draw the figure; `savefig` would find it for
            # each file.
            if figure.get_layout_engine() is not None:
                figure.set_dpi(RC["savefig.dpi"])
                fit_labels(figure)
                figure.set_layout_engine(None)
            for kind in formats:
                path = folder / f"{name}.{kind}"
                data = io.BytesIO()
                figure.savefig(data, format=kind, metadata=metadata[kind])
                replace_file(path, data.getvalue())
                paths.append(path)
    return paths


def _text_width(text: str, size: float) -> float:
    """Return the width of the longest line of a text, in points."""
    font = FontProperties(size=size)
    return max(
        float(text_to_path.get_text_width_height_descent(line or " ", font, ismath=False)[0])
        for line in text.split("\n")
    )


def wrapped(text: str, room: float, size: float) -> str:
    """Return a text with line breaks where it would be wider than so many points."""
    width = _text_width(text, size)
    if width <= room:
        return text
    letters = max(8, int(len(text) * room / width))
    while letters > 8:
        lines = textwrap.wrap(text, letters, break_on_hyphens=False)
        if max(_text_width(line, size) for line in lines) <= room:
            break
        letters -= 2
    return "\n".join(textwrap.wrap(text, letters, break_on_hyphens=False))


def _columns(labels: Sequence[str], room: float, size: float) -> int:
    """Return in how many columns a legend fits into so many points, rows filled evenly."""
    # Handle, the gap behind it, and the gap between columns, in units of the font's size.
    beside = (3.0 + 0.8 + 1.5) * size
    widths = [_text_width(label, size) + beside for label in labels]
    for columns in range(min(len(labels), 8), 0, -1):
        rows = math.ceil(len(labels) / columns)
        parts = [widths[at : at + rows] for at in range(0, len(widths), rows)]
        if sum(map(max, parts)) <= room or columns == 1:
            return len(parts)
    return 1


def _rows(labels: Sequence[str], columns: int) -> int:
    """Return how many lines of text the highest column of a legend has."""
    rows = math.ceil(len(labels) / columns)
    parts = [labels[at : at + rows] for at in range(0, len(labels), rows)]
    return max(sum(1 + label.count("\n") for label in part) for part in parts)


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
