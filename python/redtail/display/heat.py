"""The figure of a metric over two factors: a map with a cell for each pair of their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LogNorm, Normalize

from redtail import escape, quantities
from redtail import metrics as names
from redtail.display import style
from redtail.display.layout import factor_axis
from redtail.errors import RedtailError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results
    from redtail.analysis.stats import Estimate
    from redtail.display.style import Size

# From this share of the colours on, letters are dark.
_LIGHT = 0.6
_CELL = 0.42  # inches of height of a row


@dataclass(frozen=True)
class _Axis:
    """A factor of numbers or quantities.

    Attributes:
        key: its key.
        title: the text of the axis, with the unit.
        of: the number of each case.
    """

    key: str
    title: str
    of: tuple[float, ...]

    @property
    def values(self) -> list[float]:
        """Each value once, in order."""
        return sorted(set(self.of))


def heat_figure(
    results: Results, metric: str, *, size: Size | None = None, log: bool | None = None
) -> Figure:
    """Draw a metric over the first two factors of numbers, a panel for each setting of the rest.

    The second of the two is along the horizontal axis. Values stand at equal distances.

    Args:
        results: what to draw.
        metric: the metric.
        size: by default one column of a journal, or both for several panels.
        log: whether colours are logarithmic; by default if the means span decades.

    Raises:
        RedtailError: there are not two factors of numbers with two values each.
    """
    axes_of = [each for key in results.factors if (each := _axis(results, key)) is not None]
    if len(axes_of) < 2:
        known = ", ".join(results.factors) or "none"
        raise RedtailError(
            f"a heat map needs two factors of numbers or quantities with several values; the "
            f"factors are: {known}"
        )
    down, along = axes_of[:2]
    rest = [key for key in results.factors if key not in (down.key, along.key)]
    panels: dict[str, list[int]] = {}
    for number, case in enumerate(results.cases):
        panels.setdefault(_title(case, rest), []).append(number)
    found = [case.metric(metric) for case in results.cases]
    about = names.readable(names.describe(metric), [each.mean for each in found])
    known_means = [each.mean * about.scale for each in found if not math.isnan(each.mean)]
    if not known_means:
        raise RedtailError(f"no case has a value of {metric}")
    low, high = min(known_means), max(known_means)
    log = style.spans_decades(known_means) if log is None else log
    colours = LogNorm(low, high) if log and 0 < low < high else Normalize(low, high)
    figure, grid = style.panels(
        len(panels),
        size or ("column" if len(panels) == 1 else "page"),
        height=0.7 + _CELL * len(down.values),
        least=2.2,
        sharey=True,
    )
    for axes, (title, numbers) in zip(grid, panels.items(), strict=True):
        cells = np.full((len(down.values), len(along.values)), np.nan)
        for number in numbers:
            row = down.values.index(down.of[number])
            column = along.values.index(along.of[number])
            cells[row, column] = found[number].mean * about.scale
        image = axes.imshow(cells, norm=colours, cmap="viridis", aspect="auto", origin="lower")
        axes.grid(visible=False)
        axes.set_xticks(range(len(along.values)), [f"{value:g}" for value in along.values])
        axes.set_yticks(range(len(down.values)), [f"{value:g}" for value in down.values])
        axes.set_xlabel(escape.plot(along.title))
        if style.is_first(axes):
            axes.set_ylabel(escape.plot(down.title))
        if title:
            axes.set_title(escape.plot(title), loc="left")
        for (row, column), value in np.ndenumerate(cells):
            if not math.isnan(value):
                colour = "black" if colours(value) > _LIGHT else "white"
                axes.text(
                    column, row, f"{value:.3g}", ha="center", va="center", color=colour, fontsize=7
                )
    bar = figure.colorbar(image, ax=grid, shrink=0.9, pad=0.02)
    bar.set_label(escape.plot(names.axis(metric, about)), fontsize=7.5)
    style.caption(figure, _widths(found, about.scale, about.shown_unit))
    return figure


def _axis(results: Results, key: str) -> _Axis | None:
    read = quantities.in_one_unit([case.factors.get(key) for case in results.cases])
    if read is None or len(set(read[0])) < 2:
        return None
    return _Axis(key, factor_axis(key, read[1]), tuple(read[0]))


def _title(case: CaseResult, keys: Sequence[str]) -> str:
    return names.case_title(
        {key: case.factors.get(key) for key in keys},
        {key: case.labels[key] for key in keys if key in case.labels},
    )


def _widths(found: Sequence[Estimate], scale: float, unit: str) -> str:
    """Return how many replications means are of, and how wide their intervals are, in words."""
    counted = style.replications_in_words(each.n for each in found)
    halves = [each.ci95 * scale for each in found if each.ci95 is not None]
    if not halves:
        return f"mean, {counted}; no interval can be given"
    without = sum(each.ci95 is None and not math.isnan(each.mean) for each in found)
    text = f"mean, {counted}; half-width of the 95 % interval: at most {max(halves):.2g} {unit}"
    text = text.rstrip()
    return f"{text}, and none can be given for {without} of the means" if without else text
