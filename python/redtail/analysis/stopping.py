"""When a case has had enough replications.

A rule looks at a case for the first time after `at_least` replications, then whenever half as many
have been added again, and for the last time at `at_most`. A case needs no more replications when,
for each metric named, half the width of the 95 % interval is at most the given share of the mean. A
metric without an interval (for example when most of its values are equal) does not meet its bound.
A bound may also be about the *difference of two settings* of a factor, A less B, replication by
replication: half the width of its interval is at most the given share of the mean of B. It holds
for each two cases that differ in this factor alone (and in factors that change along with it).
While it does not hold for a pair, both of its cases get further replications, so that there are
pairs.
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

For a bound of 5 % on a difference whose standard deviation is 0.02 to 0.15 of the mean that the
bound is a share of, with correlations of 0, 0.5 and 0.9 between the settings, the interval printed
after stopping covers the true difference 93 % of the time in the worst case, and where the rule was
met the difference is within the bound of the true one 95 % of the time. (Its interval is Student's,
which is shorter than the one of a mean.)

`tests/analysis/test_stop_rule.py` measures all of these again.

Source: A. M. Law, W. D. Kelton, L. W. Koenig, "Relative width sequential confidence intervals for
the mean", Communications in Statistics B 10 (1981) 29-39, for the kind of rule and for beginning
with ten.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redtail.analysis.along import changing_along
from redtail.analysis.stats import Estimate, estimate, paired_difference
from redtail.errors import SpecError

if TYPE_CHECKING:
    from redtail.cases import Case

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
    """A bound on the interval of a metric, or of its difference between two settings.

    Attributes:
        metric: the metric's name.
        within: half the width of its 95 % interval as a share of its mean; of a difference as a
            share of the mean of the setting that is subtracted.
        between: of a difference, the labels of both settings as they were given, "A and B".
    """

    metric: str
    within: float
    between: str | None = None

    def met(self, found: Estimate, reference: float | None = None) -> bool:
        """Return whether an estimate is as narrow as this asks.

        Args:
            found: the estimate.
            reference: what the bound is a share of; by default the estimate's mean.
        """
        of = found.mean if reference is None else reference
        return found.ci95 is not None and found.ci95 <= self.within * abs(of)

    def __str__(self) -> str:
        about = self.metric
        if self.between is not None:
            about = f"difference of {about} between {self.between}"
        return f"{about} within {100 * self.within:.10g} %"


@dataclass(frozen=True)
class Pair:
    """Two cases whose difference a bound is about.

    Attributes:
        bound: the bound.
        first, second: the numbers of the cases; the second's values are subtracted.
    """

    bound: Bound
    first: int
    second: int


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
        bounds = tuple(
            Bound(each["metric"], each["within"], each.get("between")) for each in found["until"]
        )
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
        """Return whether a case needs no more replications, as far as it alone tells.

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
            if bound.between is not None:
                continue
            found = estimate(values(bound.metric))
            reason = why(bound.metric, found.n)
            yield bound, found if reason is None else found.without_interval(reason)


def pairs(rule: StopRule, cases: Sequence[Case]) -> tuple[Pair, ...]:
    """Return the pairs of cases that the bounds on differences are about.

    Args:
        rule: the rule.
        cases: the cases of the experiment.

    Raises:
        SpecError: no factor has both settings, or several have; or no two cases differ in it alone.

    >>> rule = StopRule((Bound("loss", 0.05, "A and B"),), 10, 50)
    >>> from redtail.cases import Case
    >>> cases = [Case({}, {"queue": q, "rate": r}) for q in ("A", "B", "C") for r in ("1", "2")]
    >>> [(pair.first, pair.second) for pair in pairs(rule, cases)]
    [(0, 2), (1, 3)]
    """
    if all(bound.between is None for bound in rule.until):
        return ()

    labels = [case.labels for case in cases]
    found: list[Pair] = []
    for bound in rule.until:
        if bound.between is not None:
            factor, first, second = _settings(bound, labels)
            along = changing_along(cases, factor)
            places: dict[tuple[str, ...], dict[str, int]] = {}
            for number, each in enumerate(labels):
                held = tuple(text for key, text in each.items() if key not in (factor, *along))
                places.setdefault(held, {})[each[factor]] = number
            found += [
                Pair(bound, here[first], here[second])
                for here in places.values()
                if first in here and second in here
            ]
            if not any(pair.bound is bound for pair in found):
                raise _refused(bound, f"no two cases differ in {factor} alone")
    return tuple(found)


def _settings(bound: Bound, labels: Sequence[Mapping[str, str]]) -> tuple[str, str, str]:
    """Return the factor and the two labels of a bound on a difference."""
    settings: dict[str, dict[str, None]] = {}
    for each in labels:
        for key, text in each.items():
            settings.setdefault(key, {})[text] = None
    words = (bound.between or "").split(" and ")
    ways = [(" and ".join(words[:at]), " and ".join(words[at:])) for at in range(1, len(words))]
    fitting = [
        (key, first.strip(), second.strip())
        for key, known in settings.items()
        for first, second in ways
        if first.strip() in known and second.strip() in known and first.strip() != second.strip()
    ]
    if len(fitting) != 1:
        known = "; ".join(f"{key}: {', '.join(texts)}" for key, texts in settings.items())
        what = "several factors have" if fitting else "no factor has"
        raise _refused(bound, f"{what} these two settings; accepted: two labels of one of {known}")
    return fitting[0]


def _refused(bound: Bound, why: str) -> SpecError:
    return SpecError(f'replications.until = "{bound}": {why}', key="replications.until")


def reached(
    pair: Pair, values: Callable[[int, str], Mapping[int, float]], why: Why = never
) -> tuple[Estimate, float]:
    """Return the difference of a pair so far, and the mean of the second case.

    Args:
        pair: the pair.
        values: gives a metric of a case by replication.
        why: says why the difference has no interval over so many replications, if it has none.
    """
    metric = pair.bound.metric
    first, second = values(pair.first, metric), values(pair.second, metric)
    shared = sorted(first.keys() & second.keys())
    common = [n for n in shared if not math.isnan(first[n] - second[n])]
    found = paired_difference([first[n] for n in common], [second[n] for n in common])
    reason = why(metric, found.n)
    return (
        found if reason is None else found.without_interval(reason),
        estimate(second[n] for n in common).mean,
    )


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
