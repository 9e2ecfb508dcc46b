"""Runs that have one source of chance or two: replications, and the cut of a course.

Each replication has the same workload over every cut, and each cut is the same for every
replication, so values that share one of them are not independent. The mean over both has the
variance of the means of cuts over the number of cuts, and the same of replications. The sum counts
the rest of the chance twice, so that the interval is rather too wide.

Source: F. E. Satterthwaite, "An approximate distribution of estimates of variance components",
Biometrics Bulletin 2 (1946) 110-114, for the degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from redtail.analysis.stats import (
    Estimate,
    difference,
    estimate,
    p_zero_mean,
    t_above,
    t_quantile,
)

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Runs:
    """How the runs of a case share their chance.

    Values are given in order: the replications of the first cut, then those of the next one; NaN
    stands for none.

    Attributes:
        cuts: number of cuts; 1 where replications are all there is.
    """

    cuts: int = 1

    def mean(self, values: Sequence[float]) -> Estimate:
        """Estimate a mean over cuts and replications.

        >>> f"{Runs(3).mean([1.0, 1.2, 3.0, 3.2, 2.0, 2.2]):.2f}"
        '2.10 ± 2.52'
        """
        return self._estimate(values, CONFIDENCE, skewed=True)

    def mean_difference(
        self, first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
    ) -> Estimate:
        """Estimate the mean of `first - second`, run by run."""
        differences = [difference(a, b) for a, b in zip(first, second, strict=True)]
        return self._estimate(differences, confidence, skewed=False)

    def p_zero_mean(self, values: Sequence[float]) -> float | None:
        """Return the p-value of a test that the mean of values is zero; None with one run."""
        plain = p_zero_mean(values)
        error, degrees = self._error(values)
        if plain is None or degrees == 0 or error == 0:
            return plain
        return max(plain, 2 * t_above(abs(estimate(values).mean) / error, degrees))

    def _estimate(self, values: Sequence[float], confidence: float, *, skewed: bool) -> Estimate:
        found = estimate(values, confidence, skewed=skewed)
        error, degrees = self._error(values)
        if found.ci95 is None or degrees == 0:
            return found
        return replace(found, ci95=max(found.ci95, t_quantile(confidence, degrees) * error))

    def _error(self, values: Sequence[float]) -> tuple[float, int]:
        """Return the standard error of the mean and its degrees of freedom, 0 without cuts."""
        if self.cuts < 2:
            return 0.0, 0
        runs = len(values) // self.cuts
        rows = [values[begin : begin + runs] for begin in range(0, len(values), runs)]
        parts = [
            _variance([estimate(row).mean for row in rows]),
            _variance([estimate(column).mean for column in zip(*rows, strict=True)]),
        ]
        total = sum(variance for variance, _ in parts)
        if total == 0:
            return 0.0, 0
        weights = sum(variance**2 / degrees for variance, degrees in parts if degrees)
        return math.sqrt(total), max(1, math.floor(total**2 / weights))


REPLICATIONS = Runs()
"""Runs of which each has its own chance."""


def _variance(means: Sequence[float]) -> tuple[float, int]:
    """Return the variance of the mean of some means, and its degrees of freedom."""
    known = [mean for mean in means if not math.isnan(mean)]
    if len(known) < 2:
        return 0.0, 0
    middle = math.fsum(known) / len(known)
    squares = math.fsum((mean - middle) ** 2 for mean in known)
    return squares / (len(known) - 1) / len(known), len(known) - 1
