"""Axes: where they end, and what stands beside rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from redtail import escape
from redtail import metrics as names
from redtail.display import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from redtail.analysis.stats import Estimate

# Quantities whose axis begins at zero; the axis of the others spans their values.
_FROM_ZERO = ("loss", "delay", "length", "mark", "_time", "late", "jitter", "unanswered")

# A label at the side of rows has at most this share of the figure's width.
_SIDE = 0.42


def row_labels(figure: Figure, axes: Axes, labels: Sequence[str]) -> None:
    """Write what each row is at its side; long texts have several lines."""
    room = _SIDE * 72 * figure.get_figwidth()
    wrapped = [style.wrapped(escape.plot(label), room, 7.5) for label in labels]
    axes.set_yticks(range(len(labels)), wrapped)
    axes.set_ylim(len(labels) - 0.35, -0.65)
    axes.grid(axis="y", visible=False)
    style.grow(figure, 0.13 * sum(label.count("\n") for label in wrapped))


def value_axis(
    axes: Sequence[Axis],
    name: str,
    found: Sequence[Estimate],
    *,
    log: bool = False,
    scale: float | None = None,
) -> None:
    """Set the ends of the axes that a metric is on; they do not reach where it cannot go.

    Args:
        axes: the axes, with what is drawn on them.
        name: the metric.
        found: what is drawn.
        log: whether the axes are logarithmic.
        scale: a drawn number is a stored number times this; by default as the metric is shown.
    """
    scale = names.describe(name).scale if scale is None else scale
    if log:
        least = min((each.mean for each in found if each.mean > 0), default=1.0) * scale
        for axis in axes:
            style.log_axis(axis)
            low, high = axis.get_view_interval()
            # An interval that reaches zero has no end on a logarithmic axis.
            axis.set_view_interval(max(low, least / 4), high, ignore=True)
        return
    low, high = names.bounds(name)
    for axis in axes:
        ends = list(axis.get_view_interval())
        if names.base(name) == "utilization":
            ends = list(utilization_span(found))
        elif low == 0.0 and (ends[0] < 0 or any(part in name for part in _FROM_ZERO)):
            ends[0] = 0.0
            # The room of the automatic end is a share of what was shown, not of the whole axis.
            ends[1] = max([ends[1], *(1.04 * end for end in ends_of(found, scale))])
        elif (span := close_span(ends_of(found, scale))) is not None:
            ends = list(span)
        elif names.base(name) in ("mos", "mos_min", "fairness"):
            # These have an end that numbers can touch; a marker there is not cut in half.
            ends[1] = min(ends[1], high + 0.04 * (ends[1] - ends[0]))
        if ends[0] == ends[1]:
            ends[1] = ends[0] + 1 / scale
        axis.set_view_interval(ends[0], ends[1], ignore=True)
        for line in axis.axes.get_lines():
            if line.get_marker() in style.MARKERS and len(np.asarray(line.get_xdata())):
                line.set_clip_on(False)  # a marker at the end of an axis is not cut in half


CLOSE = 0.01
"""Values that differ by less than this share of their middle are shown on an axis as if they
differed by twice as much. Source: ours; an axis that 0.04 % fill makes noise look like an effect.
"""


def ends_of(found: Iterable[Estimate], scale: float = 1.0) -> list[float]:
    """Return the ends of the intervals of estimates, or the means that have none."""
    return [
        (each.mean + side * (each.ci95 or 0.0)) * scale
        for each in found
        if not math.isnan(each.mean)
        for side in (-1, 1)
    ]


def close_span(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the ends of an axis for values that are nearly equal; None for others.

    >>> close_span([9649.0, 9653.0]), close_span([9000.0, 9653.0]), close_span([1.0, 1.0])
    ((9554.49, 9747.51), None, None)
    """
    if not values or min(values) <= 0 or min(values) == max(values):
        return None
    middle = (min(values) + max(values)) / 2
    if max(values) - min(values) >= CLOSE * middle:
        return None
    return round(middle * (1 - CLOSE), 10), round(middle * (1 + CLOSE), 10)


def close_in_words(title: str, values: Sequence[float]) -> str:
    """Return how near to each other values are, for a caption; empty if they are not near.

    >>> close_in_words("TCP goodput", [9649.0, 9653.0]), close_in_words("TCP goodput", [1.0, 2.0])
    ('TCP goodput: all values are within 0.05 % of each other', '')
    """
    if close_span(values) is None:
        return ""
    share = 100 * (max(values) - min(values)) / max(values)
    digit = 10 ** math.floor(math.log10(share))
    return f"{title}: all values are within {math.ceil(share / digit) * digit:.6g} % of each other"


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
