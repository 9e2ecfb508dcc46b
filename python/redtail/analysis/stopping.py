"""When a case has had enough replications.

A rule looks at a case for the first time after `at_least` replications, then whenever half as many
have been added again, and for the last time at `at_most`. A case needs no more replications when,
for each metric named, half the width of the 95 % interval is at most the given share of the mean. A
metric without an interval (for example when most of its values are equal) does not meet its bound.
All of this follows from what the runs measured. So the same file gives the same number of
replications on any number of threads, and an interrupted experiment continues to the same end.

To stop when an interval is narrow favours samples that vary little by chance, so that intervals
cover the true mean less often than stated. Few looks, far apart, and ten replications before the
first one keep this effect small.

We measured at_least = 10, at_most = 50 and a bound of 5 %, over coefficients of variation from 0.02
to 0.15, normal or log-normal, with 40 000 experiments each. In the worst case

- the interval printed after stopping covers the true mean 94 % of the time in place of 95 %
  (93 % with at_least = 5);
- where the rule was met, the mean is within the bound of the true mean 96 % of the time
  (95 % with at_least = 5).

`tests/test_stop_rule.py` measures both again.

Source: A. M. Law, W. D. Kelton, L. W. Koenig, "Relative width sequential confidence intervals for
the mean", Communications in Statistics B 10 (1981) 29-39, for the kind of rule and for beginning
with ten.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from redtail.analysis.stats import Estimate, estimate

GROWTH = 1.5
"""The factor by which the replications of a case grow from one look to the next.

Source: our choice; five looks from 10 to 50, and no case gets more than 1.5 times what it needs.
"""


Why = Callable[[str, int], str | None]
"""Returns why a metric has no interval over a number of replications; None when it may have one."""


def never(metric: str, n: int) -> str | None:
    """Return None: every metric may have an interval."""
    return None


@dataclass(frozen=True)
class Bound:
    """A bound on the interval of a metric.

    Attributes:
        metric: the metric's name.
        within: half the width of its 95 % interval as a share of its mean.
    """

    metric: str
    within: float

    def met(self, found: Estimate) -> bool:
        """Return whether an estimate is as narrow as this asks."""
        return found.ci95 is not None and found.ci95 <= self.within * abs(found.mean)

    def __str__(self) -> str:
        return f"{self.metric} within {100 * self.within:.10g} %"


@dataclass(frozen=True)
class StopRule:
    """Replications until intervals are narrow enough.

    Attributes:
        until: what has to hold, all of it.
        at_least: replications before the first look.
        at_most: replications after which no more are made.
    """

    until: tuple[Bound, ...]
    at_least: int
    at_most: int

    @classmethod
    def from_json(cls, text: str) -> StopRule:
        """Return what the native module describes."""
        found = json.loads(text)
        bounds = tuple(Bound(each["metric"], each["within"]) for each in found["until"])
        return cls(bounds, found["at_least"], found["at_most"])

    def looks(self) -> list[int]:
        """Return the numbers of replications at which a case is looked at.

        >>> StopRule((), 10, 50).looks(), StopRule((), 2, 5).looks()
        ([10, 15, 23, 35, 50], [2, 3, 5])
        """
        found = [self.at_least]
        while found[-1] < self.at_most:
            found.append(min(self.at_most, math.ceil(GROWTH * found[-1])))
        return found

    def met(self, values: Callable[[str], Sequence[float]], why: Why = never) -> bool:
        """Return whether a case needs no more replications.

        Args:
            values: gives a metric replication by replication.
            why: says why a metric has no interval over so many of them, if it has none.
        """
        return all(bound.met(found) for bound, found in self._reached(values, why))

    def unmet(self, values: Callable[[str], Sequence[float]], why: Why = never) -> list[str]:
        """Return the bounds that do not hold, each with what there is in its place."""
        found = []
        for bound, reached in self._reached(values, why):
            if not bound.met(reached):
                share = (
                    f"no interval, {reached.no_interval}"
                    if reached.ci95 is None
                    else "the mean is 0"
                    if reached.mean == 0
                    else f"±{100 * reached.ci95 / abs(reached.mean):.2g} %"
                )
                found.append(f"{bound}: {share}")
        return found

    def _reached(
        self, values: Callable[[str], Sequence[float]], why: Why
    ) -> Iterator[tuple[Bound, Estimate]]:
        for bound in self.until:
            found = estimate(values(bound.metric))
            reason = why(bound.metric, found.n)
            yield bound, found if reason is None else found.without_interval(reason)


def table(until: Sequence[str], at_least: int | None = None, at_most: int | None = None) -> object:
    """Return the value of `replications` that stands for a rule.

    >>> table(["loss within 5 %"], at_most=30)
    {'until': 'loss within 5 %', 'at_most': 30}
    """
    found: dict[str, object] = {"until": until[0] if len(until) == 1 else list(until)}
    if at_least is not None:
        found["at_least"] = at_least
    if at_most is not None:
        found["at_most"] = at_most
    return found
