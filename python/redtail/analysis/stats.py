"""Intervals over replications.

Replications of a case use independent seeds, so their results are independent draws from one
distribution; a mean over them carries a Student-t interval, made wider where the values are skewed.
`interval_in_words` says so wherever an interval is explained to a reader.
When more than half of the values are equal, there is no interval: the values that would show how
far the mean can be off are too few. `docs/explanation/coverage.md` has what this was measured to
cover. Two cases that differ in the queue
alone share their seeds (common random numbers), so their difference is best taken replication
by replication: the workload's share of the noise cancels.

Everything here takes plain numbers and depends on no other part of redtail.
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_RESAMPLES = 1000
_FEWEST_DRAWN = 5

_MOST_ALIKE = 0.5
"""With more than this share of equal values there is no interval.

Source: measured, `docs/explanation/coverage.md`: from half on, intervals cover too seldom.
"""

_DIGITS = 13
"""Values that agree in so many significant digits are equal; a sum of doubles may lose the rest."""

_SKEWNESS_SHRINKS = 10
"""The sample's skewness counts for n / (n + this), since that of few values is mostly chance.

Source: skewness has a variance of about 6 / n over samples of normal values, and of about 0.6 over
the metrics of `docs/explanation/coverage.md`.
"""


@dataclass(frozen=True)
class Estimate:
    """A mean over replications with the half-width of its 95 % interval.

    Attributes:
        mean: the mean; NaN when no replication has a value.
        ci95: half the width of the interval, `mean ± ci95`; None with fewer than two values.
        n: number of replications with a value.
        no_interval: why there is no interval; None when there is one.
        constant: whether there are several values, all of them equal.
        mostly: the value that more than half of the replications have, where the others have not
            all of it, so that the mean describes no replication; None otherwise.
        least: the smallest value, where there is no interval because more than half are equal; NaN
            otherwise.
        most: the largest value, likewise.
        unfinished: of a time, the share of what had not finished, the mean over replications; None
            where nothing could be left out (`analysis.censoring`).
    """

    mean: float
    ci95: float | None
    n: int
    no_interval: str | None = dataclasses.field(default=None, compare=False)
    constant: bool = dataclasses.field(default=False, compare=False, repr=False)
    mostly: float | None = dataclasses.field(default=None, compare=False, repr=False)
    least: float = dataclasses.field(default=math.nan, compare=False, repr=False)
    most: float = dataclasses.field(default=math.nan, compare=False, repr=False)
    unfinished: float | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def low(self) -> float:
        """The interval's lower end; NaN without an interval."""
        return math.nan if self.ci95 is None else self.mean - self.ci95

    @property
    def high(self) -> float:
        """The interval's upper end; NaN without an interval."""
        return math.nan if self.ci95 is None else self.mean + self.ci95

    def __format__(self, spec: str) -> str:
        """Return the mean and the interval, both as numbers of this format.

        >>> format(Estimate(1.25, 0.5, 10), "+.2f"), f"{Estimate(0.5, None, 10):.1f}"
        ('+1.25 ± 0.50', '0.5 ± ?')
        """
        if not spec:
            return str(self)
        half = "?" if self.ci95 is None else format(self.ci95, spec.lstrip("+"))
        return f"{format(self.mean, spec)} ± {half}"

    def as_json(self) -> dict[str, float | int | str | None]:
        """Return the estimate as JSON has it, where NaN is null.

        `no_interval` is there when `ci95` is null, and says why; `mostly` is there when more than
        half of the replications have this value and others have not; `unfinished` is there for
        times, and is the share that did not finish.
        """
        found: dict[str, float | int | str | None] = {
            "mean": None if math.isnan(self.mean) else self.mean,
            "ci95": self.ci95,
            "n": self.n,
        }
        if self.no_interval is not None:
            found["no_interval"] = self.no_interval
        if self.mostly is not None:
            found["mostly"] = self.mostly
        if self.unfinished is not None:
            found["unfinished"] = self.unfinished
        return found

    def without_interval(self, why: str) -> Estimate:
        """Return the estimate without its interval, if it has one."""
        if self.ci95 is None:
            return self
        return dataclasses.replace(self, ci95=None, no_interval=why)


@cache
def t_quantile(confidence: float, degrees: int) -> float:
    """Return t such that a Student-t variable lies in ±t with probability `confidence`.

    It is found by Newton's method from 0. The probability is concave in t, so each step comes
    closer from below. The time is in proportion to `degrees`: a millisecond for 5,000 of them.

    Args:
        confidence: between 0 and 1, both excluded.
        degrees: degrees of freedom, at least 1.

    >>> round(t_quantile(0.95, 9), 3)
    2.262
    """
    gammas = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)
    highest = math.exp(gammas) / math.sqrt(degrees * math.pi)  # the density at 0
    t, step = 0.0, 1.0
    # The next step would be of the order of the square of this one.
    while step > 1e-9 * t:
        density = highest * (1 + t * t / degrees) ** (-(degrees + 1) / 2)
        step = (confidence - _t_within(t, degrees)) / (2 * density)
        t += step
    return t


def _t_within(t: float, degrees: int) -> float:
    """Return the probability with which a Student-t variable lies in ±t.

    Source: M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), equations 26.7.3
    (odd degrees) and 26.7.4 (even ones); all terms of the sums are positive.
    """
    square = degrees / (degrees + t * t)  # of the cosine of the angle whose tangent is t / √degrees
    sine = t / math.sqrt(degrees + t * t)
    odd = degrees % 2
    term = total = math.sqrt(square) if odd else 1.0
    for k in range(3 if odd else 2, degrees - 1, 2):
        term *= square * (k - 1) / k
        total += term
    if not odd:
        return sine * total
    arc = math.atan2(t, math.sqrt(degrees))
    return 2 / math.pi * (arc + sine * total if degrees > 1 else arc)


def t_above(t: float, degrees: int) -> float:
    """Return the probability with which a Student-t variable is above `t`.

    It is half the incomplete beta function at the squared cosine of `_t_within`, or at the squared
    sine, where the continued fraction takes the fewest terms. Small probabilities have as many
    digits as large ones.

    Source: M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), equations 26.7.1
    and 26.5.8; the fraction is evaluated as W. J. Lentz does (Applied Optics 15 (1976) 668-671).

    Args:
        t: any number.
        degrees: degrees of freedom, at least 1.

    >>> t_above(0.0, 3), round(t_above(2.262157, 9), 6)
    (0.5, 0.025)
    """
    if t < 0:
        return 1 - t_above(-t, degrees)
    square = t * t
    cosine = degrees / (degrees + square)
    sine = 1 / (1 + degrees / square) if square else 0.0
    a, b = degrees / 2, 0.5
    if cosine < (a + 1) / (a + b + 2):
        return _beta_within(cosine, sine, a, b) / 2
    return 0.5 - _beta_within(sine, cosine, b, a) / 2


def _beta_within(x: float, rest: float, a: float, b: float) -> float:
    """Return the incomplete beta function's ratio at `x`, which is 1 - `rest`."""
    if x == 0:
        return 0.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    )
    d = 1 / (1 - (a + b) * x / (a + 1))
    c, product = 1.0, d
    m, last = 0, math.inf
    while abs(last - 1) > 1e-15:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for factor in (even, odd):
            d = 1 / (1 + factor * d)
            c = 1 + factor / c
            last = d * c
            product *= last
    return front * product / a


def estimate(
    values: Iterable[float] | np.ndarray[Any, Any], confidence: float = 0.95, *, skewed: bool = True
) -> Estimate:
    """Estimate the mean of independent `values` with an interval from Student's t, or Hall's.

    A NaN stands for a replication in which the metric is undefined (no loss event, say) and is
    left out; `n` says how many were used. Where more than half of the values are equal there is no
    interval, and `no_interval` says so. The interval of skewed values is wider: it is the longer
    side of the one that Hall's transformation gives; not with `skewed` false, when it is Student's.
    An array has the same estimate as a list, and of thousands of values it takes half the time.

    Source: P. Hall, "On the removal of skewness by transformation", Journal of the Royal
    Statistical Society B 54 (1992) 221-228, for the transformation.

    >>> found = estimate([1.0, 2.0, 3.0])
    >>> f"{found.mean} ± {found.ci95:.3f} from {found.n}"
    '2.0 ± 2.484 from 3'
    >>> estimate([1.0])
    Estimate(mean=1.0, ci95=None, n=1, no_interval='one replication')
    >>> estimate([0.0, 0.0, 0.0, 4.0]).no_interval
    '3 of 4 replications are 0'
    """
    # NaN equals nothing. The order does not matter: `fsum` rounds once.
    given: Any = values
    if hasattr(given, "tolist"):
        used = given[given == given]
        used.sort()
        ordered = used.tolist()
    else:
        used = ordered = sorted(value for value in values if value == value)
    n = len(ordered)
    if n == 0:
        return Estimate(math.nan, None, 0, "no replication has a value")
    mean = math.fsum(ordered) / n
    if n == 1:
        return Estimate(mean, None, 1, "one replication")
    value, alike = _middle(ordered)
    if alike > _MOST_ALIKE * n:
        which = f"all {n}" if alike == n else f"{alike} of {n}"
        return Estimate(
            mean,
            None,
            n,
            f"{which} replications are {'0' if value == 0 else 'equal'}",
            constant=alike == n,
            mostly=None if alike == n else value,
            least=mean if alike == n else ordered[0],
            most=mean if alike == n else ordered[-1],
        )
    off: Any = [value - mean for value in used] if used is ordered else used - mean
    squares = _sum_of_powers(off, 2)
    error = math.sqrt(squares / (n - 1) / n)
    if not skewed or error == 0:
        return Estimate(mean, t_quantile(confidence, n - 1) * error, n)
    deviation = math.sqrt(squares / n)
    scaled = [each / deviation for each in off] if used is ordered else off / deviation
    skewness = _sum_of_powers(scaled, 3) / n
    return Estimate(mean, _t_for_skewed(skewness, n, confidence) * error, n)


def interval_in_words(*, paired: bool = False) -> str:
    """Return what the interval of a mean is, or that of a mean of paired differences.

    `estimate` and `band` give the first, `paired_difference` the second.

    >>> interval_in_words(paired=True)
    "95 % interval (Student's t of the paired differences)"
    """
    method = (
        "Student's t of the paired differences"
        if paired
        else "Student's t, wider where values are skewed: Hall 1992"
    )
    return f"95 % interval ({method})"


def _sum_of_powers(values: Any, power: int) -> float:
    """Return the sum of the squares or cubes of a list or an array, the same for both."""
    if isinstance(values, list):
        return math.fsum([x * x if power == 2 else x * x * x for x in values])
    powers = values * values if power == 2 else values * values * values
    return math.fsum(powers.tolist())


def _middle(ordered: list[float]) -> tuple[float, int]:
    """Return the middle of sorted values and how many are equal to it, but for what rounding makes.

    A value that more than half of them have is the middle one.
    """
    digits = _digits(max(-ordered[0], ordered[-1]))
    middle = _rounded(ordered[len(ordered) // 2], digits)

    def rounded(value: float) -> float:
        return _rounded(value, digits)

    first = bisect_left(ordered, middle, key=rounded)
    return middle, bisect_right(ordered, middle, lo=first, key=rounded) - first


def _tidied(value: float, largest: float) -> float:
    """Return a value without what rounding made of it, from the size of what it came from."""
    return _rounded(value, _digits(largest))


def _digits(largest: float) -> int | None:
    """Return how many decimals of values of this size are not made by rounding."""
    if largest == 0 or not math.isfinite(largest):
        return None
    return _DIGITS - 1 - math.floor(math.log10(largest))


def _rounded(value: float, digits: int | None) -> float:
    return value if digits is None else round(value, digits)


def difference(first: float, second: float) -> float:
    """Return `first - second`, where equal differences come out equal.

    >>> 0.3 - 0.1 == 0.4 - 0.2, difference(0.3, 0.1) == difference(0.4, 0.2)
    (False, True)
    """
    return _tidied(first - second, abs(first) + abs(second))


def _t_for_skewed(skewness: float, n: int, confidence: float) -> float:
    """Return Student's t, or what takes its place for a sample of this skewness.

    Hall's transformation of the studentized mean, T + aT²/3 + a²T³/27 + a/6 with a the skewness
    over √n, is nearly symmetrical. Student's quantiles, transformed back, are the ends of the
    interval; the longer side stands for both.
    """
    t = t_quantile(confidence, n - 1)
    a = skewness * n / (n + _SKEWNESS_SHRINKS) / math.sqrt(n)
    if abs(a) < 1e-6:
        return t
    ends = [(math.cbrt(1 + a * (side - a / 6)) - 1) * 3 / a for side in (-t, t)]
    return max(t, *map(abs, ends))


def paired_difference(
    first: Sequence[float], second: Sequence[float], confidence: float = 0.95
) -> Estimate:
    """Estimate the mean of `first - second`, taken replication by replication.

    The interval is Student's: what both share cancels, and most of the skewness with it. Use it for
    two cases that share their seeds. A pair with a NaN on either side is left out.

    Raises:
        ValueError: the sequences differ in length, so they cannot be pairs.

    >>> paired_difference([3.0, 6.0, 9.0], [1.0, 3.0, 5.0]).mean
    3.0
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} values cannot be paired with {len(second)}")
    return estimate(map(difference, first, second), confidence, skewed=False)


def p_zero_mean(values: Iterable[float]) -> float | None:
    """Return the p-value of a two-sided test that the mean of `values` is zero.

    Of differences replication by replication this is the paired test. It is Student's. Where more
    than half of the values are equal, it is the exact sign test: of the values that are not zero,
    as many are positive as negative. A NaN is left out.

    Source: W. J. Dixon, A. M. Mood, "The statistical sign test", Journal of the American
    Statistical Association 41 (1946) 557-566; zeros are left out as they propose.

    Returns:
        The probability of a result at least this far from zero were the true mean zero; None with
        fewer than two values.

    >>> round(p_zero_mean([1.0, 2.0, 3.0]), 4)
    0.0742
    >>> p_zero_mean([0.0, 0.0]), p_zero_mean([3.0] * 6), p_zero_mean([1.0])
    (1.0, 0.03125, None)
    """
    used = [value for value in values if not math.isnan(value)]
    found = estimate(used, skewed=False)
    if found.n < 2:
        return None
    if found.ci95 is None:
        above, below = (sum(sign * value > 0 for value in used) for sign in (1, -1))
        fewer = range(min(above, below) + 1)
        ways = sum(math.comb(above + below, count) for count in fewer)
        return min(1.0, math.ldexp(ways, 1 - above - below))
    error = found.ci95 / t_quantile(0.95, found.n - 1)
    return 2 * t_above(abs(found.mean) / error, found.n - 1)


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
    Of a largest or smallest single value it only shows how much that depends on few replications.
    With fewer than five replications there is no interval: even the whole range of n values covers
    the median with probability 1 - 2^(1 - n) only, which is 0.94 for five (H. A. David,
    H. N. Nagaraja, "Order Statistics", 3rd ed. (2003), chapter 7). Nor is there one where all
    samples that are drawn give the same number: their spread says nothing then.

    Args:
        number: takes one list of values for each cell.
        cells: the values of each cell, replication by replication; NaN where one has none. A cell
            without any value does not count.
    """
    value = number(cells)
    counts = [sum(each == each for each in cell) for cell in cells]
    count = min((each for each in counts if each), default=0)
    if math.isnan(value) or count == 0:
        return Estimate(value, None, count, "it is undefined")
    constant = count > 1 and all(len({x for x in cell if x == x}) < 2 for cell in cells)
    if constant:
        why = f"all {count} replications are equal"
        return Estimate(value, None, count, why, constant=True, least=value, most=value)
    if count < _FEWEST_DRAWN:
        return Estimate(value, None, count, f"fewer than {_FEWEST_DRAWN} replications")
    rng = Random(count)
    drawn = []
    for _ in range(_RESAMPLES):
        picks = [rng.random() for _ in range(max(len(cell) for cell in cells))]
        again = number([[cell[int(u * len(cell))] for u in picks[: len(cell)]] for cell in cells])
        if not math.isnan(again):
            drawn.append(again)
    drawn.sort()
    low, high = (drawn[round(share * (len(drawn) - 1))] for share in (0.025, 0.975))
    if low == high:
        each = estimate(number([[x] for x in row]) for row in zip(*cells, strict=False))
        which = "all" if each.constant else "most of"
        why = f"{which} {count} replications are equal"
        least, most = (value, value) if each.constant else (each.least, each.most)
        return Estimate(value, None, count, why, constant=each.constant, least=least, most=most)
    return Estimate(value, max(value - low, high - value, 0.0), count)
