"""Intervals over replications.

Replications of a case use independent seeds, so their results are independent draws from one
distribution; a mean over them carries a Student-t interval. Two cases that differ in the queue
alone share their seeds (common random numbers), so their difference is best taken replication
by replication: the workload's share of the noise cancels.

Everything here works on plain numbers and knows nothing of experiments.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random

_RESAMPLES = 1000


@dataclass(frozen=True)
class Estimate:
    """A mean over replications with the half-width of its 95 % interval.

    Attributes:
        mean: the mean; NaN when no replication has a value.
        ci95: half the width of the interval, `mean ± ci95`; None with fewer than two values.
        n: number of replications with a value.
    """

    mean: float
    ci95: float | None
    n: int

    @property
    def low(self) -> float:
        """The interval's lower end; NaN without an interval."""
        return math.nan if self.ci95 is None else self.mean - self.ci95

    @property
    def high(self) -> float:
        """The interval's upper end; NaN without an interval."""
        return math.nan if self.ci95 is None else self.mean + self.ci95

    def as_json(self) -> dict[str, float | int | None]:
        """Return the estimate as JSON knows it, where NaN is null."""
        return {
            "mean": None if math.isnan(self.mean) else self.mean,
            "ci95": self.ci95,
            "n": self.n,
        }


def t_quantile(confidence: float, degrees: int) -> float:
    """Return t such that a Student-t variable lies in ±t with probability `confidence`.

    Args:
        confidence: between 0 and 1, both excluded.
        degrees: degrees of freedom, at least 1.

    >>> round(t_quantile(0.95, 9), 3)
    2.262
    """
    # scipy.special loads several times faster than scipy.stats and has the same quantile.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + confidence / 2))


def estimate(values: Iterable[float], confidence: float = 0.95) -> Estimate:
    """Estimate the mean of independent `values` with a Student-t interval.

    A NaN stands for a replication in which the metric is undefined (no loss event, say) and is
    left out; `n` says how many were used.

    >>> found = estimate([1.0, 2.0, 3.0])
    >>> f"{found.mean} ± {found.ci95:.3f} from {found.n}"
    '2.0 ± 2.484 from 3'
    >>> estimate([1.0])
    Estimate(mean=1.0, ci95=None, n=1)
    """
    used = [value for value in values if not math.isnan(value)]
    n = len(used)
    if n == 0:
        return Estimate(math.nan, None, 0)
    mean = math.fsum(used) / n
    if n == 1:
        return Estimate(mean, None, 1)
    variance = math.fsum([(value - mean) ** 2 for value in used]) / (n - 1)
    return Estimate(mean, t_quantile(confidence, n - 1) * math.sqrt(variance / n), n)


def paired_difference(
    first: Sequence[float], second: Sequence[float], confidence: float = 0.95
) -> Estimate:
    """Estimate the mean of `first - second`, taken replication by replication.

    Use it for two cases that share their seeds. A pair with a NaN on either side is left out.

    Raises:
        ValueError: the sequences differ in length, so they cannot be pairs.

    >>> paired_difference([3.0, 5.0, 7.0], [1.0, 3.0, 5.0])
    Estimate(mean=2.0, ci95=0.0, n=3)
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} values cannot be paired with {len(second)}")
    return estimate((a - b for a, b in zip(first, second, strict=True)), confidence)


def p_zero_mean(values: Iterable[float]) -> float | None:
    """Return the p-value of Student's two-sided t-test that the mean of `values` is zero.

    Of differences replication by replication this is the paired t-test. A NaN is left out.

    Returns:
        The probability of a mean at least this far from zero were the true mean zero; None with
        fewer than two values. Values that are all the same leave no doubt: 1 for zeros, else 0.

    >>> round(p_zero_mean([1.0, 2.0, 3.0]), 4)
    0.0742
    >>> p_zero_mean([0.0, 0.0]), p_zero_mean([1.0])
    (1.0, None)
    """
    from scipy.special import stdtr

    found = estimate(values)
    if found.ci95 is None:
        return None
    error = found.ci95 / t_quantile(0.95, found.n - 1)
    if error == 0:
        return 1.0 if found.mean == 0 else 0.0
    return float(2 * stdtr(found.n - 1, -abs(found.mean) / error))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values of one family of tests, adjusted so that they may be read together.

    When every hypothesis whose adjusted value is at most α is rejected, the probability of one
    false rejection or more is at most α, however the tests depend on each other. Of m values the
    smallest is multiplied by m, the next one by m - 1, and so on, and none may come out below
    one before it.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
    Journal of Statistics 6 (1979) 65-70.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [math.nan] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted


def shares_within(ends: Sequence[float], counts: Sequence[int], at: Sequence[float]) -> list[float]:
    """Return the share of counted values that are at most each of `at`, from counts in bins.

    Args:
        ends: the upper ends of the bins, rising; a bin begins where the one before ends.
        counts: how many values each bin has, at least one in all.
        at: where to read the distribution. Inside a bin the share rises linearly, which is off by
            no more than the bin's own share. Values below the first end have share 0: how far
            below it the first bin begins is not known.

    >>> shares_within([1.0, 2.0, 4.0], [1, 0, 3], [0.5, 1.0, 2.0, 3.0, 9.0])
    [0.0, 0.25, 0.25, 0.625, 1.0]
    """
    sums = list(accumulate(counts))
    found = []
    for value in at:
        over = bisect_right(ends, value)
        if over == 0:
            found.append(0.0)
        elif over == len(ends):
            found.append(1.0)
        else:
            inside = (value - ends[over - 1]) / (ends[over] - ends[over - 1])
            found.append((sums[over - 1] + inside * counts[over]) / sums[-1])
    return found


def band(curves: Iterable[Sequence[float]], confidence: float = 0.95) -> list[Estimate]:
    """Estimate a curve point by point from its replications, all read at the same points.

    Each interval covers its point with this confidence; all points at once are covered less often.

    >>> [found.mean for found in band([[0.0, 0.5], [0.5, 1.0]])]
    [0.25, 0.75]
    """
    return [estimate(values, confidence) for values in zip(*curves, strict=True)]


def exceedance(counts: Sequence[int]) -> list[float]:
    """Return P(N > n) for n = 1, 2, 3, … from the number of events of size 1, 2, 3, ….

    The list ends before the first zero. Without an event there is nothing to say: it is empty.

    >>> exceedance([6, 3, 1])
    [0.4, 0.1]
    """
    total = sum(counts)
    tail = total
    probabilities = []
    for count in counts:
        tail -= count
        if tail <= 0:
            break
        probabilities.append(tail / total)
    return probabilities


ALIKE = 0.01
"""Replications whose values differ by less than this part of their mean are alike."""

_FEWEST = 5
_OF_A_CLUSTER = 4
_GAP = 10


def clusters(values: Iterable[float]) -> list[list[float]]:
    """Return the clusters in which implausibly like replications lie; none if they are plausible.

    They are implausible when five values or more differ by less than `ALIKE` of their mean; or when
    they form clusters that narrow, with four values to a cluster or more on the mean, and with gaps
    between them ten times as wide as any cluster. Of independent values from a normal distribution
    whose standard deviation is 3 % of its mean, five are found alike with probability 7e-4, eight
    with 2e-5; with 1 % five are with 4e-2, eight with 3e-3 and ten with 4e-4.

    >>> clusters([14.7, 14.71, 14.68, 14.72, 14.7])
    [[14.68, 14.7, 14.7, 14.71, 14.72]]
    >>> [len(found) for found in clusters([10.1] * 4 + [17.3] * 5)]
    [4, 5]
    >>> clusters([14.1, 15.0, 12.7, 13.3, 16.2])
    []
    """
    used = sorted(value for value in values if not math.isnan(value))
    if len(used) < _FEWEST:
        return []
    width = ALIKE * abs(math.fsum(used)) / len(used)
    found: list[list[float]] = []
    for value in used:
        if found and value - found[-1][0] < width:
            found[-1].append(value)
        else:
            found.append([value])
    if len(found) > 1:
        widest = max(each[-1] - each[0] for each in found)
        gaps = (after[0] - before[-1] for before, after in pairwise(found))
        if len(found) * _OF_A_CLUSTER > len(used) or min(gaps) < _GAP * widest:
            return []
    return found


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of the values that are there, interpolated; NaN when none is."""
    import numpy as np

    used = [value for value in values if not math.isnan(value)]
    return float(np.quantile(used, share)) if used else math.nan


def bootstrap(
    number: Callable[[Sequence[Sequence[float]]], float], cells: Sequence[Sequence[float]]
) -> Estimate:
    """Return a number that follows from all replications of some cells, with its interval.

    The interval is the bootstrap's (percentiles, Efron 1979), given by its longer side:
    replications are drawn with replacement, the same in every cell, since they share their seeds.
    Of a largest or smallest single value it can only say how much that hangs on few replications.
    """
    value = number(cells)
    count = min(len(cell) for cell in cells)
    if count < 2 or math.isnan(value):
        return Estimate(value, None, count)
    rng = Random(count)
    drawn = []
    for _ in range(_RESAMPLES):
        picks = [rng.random() for _ in range(max(len(cell) for cell in cells))]
        again = number([[cell[int(u * len(cell))] for u in picks[: len(cell)]] for cell in cells])
        if not math.isnan(again):
            drawn.append(again)
    drawn.sort()
    low, high = (drawn[round(share * (len(drawn) - 1))] for share in (0.025, 0.975))
    return Estimate(value, max(value - low, high - value, 0.0), count)
