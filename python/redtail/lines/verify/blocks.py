"""A value of a stretch of time, and how sure it is: batch means.

Round trips that follow each other are alike, since they wait in the same queue: their number says
little of how sure their median is. So a stretch is cut into blocks of equal length, and each block
gives a value. The value of the stretch is that of all its samples; its error comes from how the
values of the blocks lie around it ("sectioning": S. Asmussen, P. W. Glynn, "Stochastic Simulation"
(2007), section III.5a; of quantiles M. K. Nakayama, ACM TOMACS 24(4), 2014). Blocks that follow
each other may still be alike. Then the error of a first-order autoregressive series is taken, whose
variance of a mean is (1 + r) / (1 - r) times that of independent values, with r as it is found; and
where r is large, the recording is too short to tell.

Two stretches are compared by Welch's t (B. L. Welch, Biometrika 34, 1947). How often this finds a
difference where there is none is held by `tests/lines/test_verify.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from redtail.analysis.stats import t_above, t_quantile

MOST_BLOCKS, FEWEST_BLOCKS = 10, 6
"""Source: B. Schmeiser, Operations Research 30(3), 1982: more than 10 to 30 blocks make an interval
hardly shorter, and longer blocks are less alike. Fewer than 6 leave too few degrees of freedom."""

SLOW = 0.85
"""Correlation of blocks that follow each other from which a stretch is too short for what happens
in it: its values would count for a twelfth of their number. Source: our choice."""

NARROW = 0.01
"""Share of a value up to which its blocks may drift: the farthest of them is then its error.
Source: our choice; no margin of differences that count is so small."""


@dataclass(frozen=True)
class Value:
    """A value of a stretch of time.

    Attributes:
        value: of all samples; NaN if there is none.
        error: its standard error; None if it is not known.
        degrees: degrees of freedom of the error.
        why: why there is no value, or no error.
        bound: "at least" or "at most" if it is a bound only.
    """

    value: float
    error: float | None = None
    degrees: int = 0
    why: str = ""
    bound: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)

    def ends(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """Return the interval of the value; None if its error is not known."""
        if self.error is None:
            return None
        half = t_quantile(confidence, self.degrees) * self.error
        return self.value - half, self.value + half


@dataclass(frozen=True)
class Difference:
    """A value less another one.

    Attributes:
        value: the difference.
        low, high: its 95 % interval.
        p: probability of one as large if there were none.
    """

    value: float
    low: float
    high: float
    p: float


def of_blocks(whole: float, blocks: Sequence[float], least: float = 0.0) -> Value:
    """Return the value of a stretch with its error.

    Args:
        whole: the value of all samples.
        blocks: the values of its blocks, in order.
        least: the error that it has at least, such as that of rounding.
    """
    count = len(blocks)
    if count < FEWEST_BLOCKS:
        return Value(whole, why=f"{count} blocks of time have a value, and {FEWEST_BLOCKS} must")
    off = [each - whole for each in blocks]
    spread = math.fsum(each * each for each in off) / (count - 1)
    alike = _correlation(blocks)
    most = max(map(abs, off))
    if alike > SLOW and most <= NARROW * abs(whole):
        return Value(whole, max(most, least), count - 1)
    if alike > SLOW:
        return Value(
            whole, why="it drifts: what happens takes longer than a block; record for longer"
        )
    variance = spread / count * (1 + alike) / (1 - alike)
    return Value(whole, max(math.sqrt(variance), least), count - 1)


def _correlation(blocks: Sequence[float]) -> float:
    """Return how alike blocks are that follow each other; 0 if they are not.

    It is without the bias of a short series, which is about -(1 + 3 r) / n (F. H. C. Marriott,
    J. A. Pope, Biometrika 41, 1954).
    """
    count = len(blocks)
    mean = math.fsum(blocks) / count
    off = [each - mean for each in blocks]
    power = math.fsum(each * each for each in off)
    if power == 0:
        return 0.0
    found = math.fsum(one * other for one, other in itertools.pairwise(off)) / power
    return max((count * found + 1) / (count - 3), 0.0)


def difference(after: Value, before: Value) -> Difference | None:
    """Return the difference of two values; None if the error of one is not known."""
    if after.error is None or before.error is None:
        return None
    value = after.value - before.value
    parts = after.error**2, before.error**2
    error = math.sqrt(sum(parts))
    if error == 0:
        return Difference(value, value, value, 1.0 if value == 0 else 0.0)
    below = parts[0] ** 2 / after.degrees + parts[1] ** 2 / before.degrees
    degrees = max(int(sum(parts) ** 2 / below), 1) if below > 0 else after.degrees
    half = t_quantile(0.95, degrees) * error
    p = min(2 * t_above(abs(value) / error, degrees), 1.0)
    return Difference(value, value - half, value + half, p)
