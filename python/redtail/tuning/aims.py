"""What parameters are searched for: objectives, and bounds that must be kept.

An aim looks at the mean of a metric over the replications of each load. By default the worst load
counts, which is the usual form of robust optimisation (Ben-Tal, El Ghaoui, Nemirovski, "Robust
Optimization", 2009, chapter 1); with `over="mean"` the mean of all loads does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from redtail import metrics as names
from redtail.analysis import censoring
from redtail.analysis.gap import FEWEST_SIGNS
from redtail.analysis.stats import Estimate
from redtail.analysis.tolerances import UNITS
from redtail.errors import SpecError

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.measured import Measured

Over: TypeAlias = Literal["worst", "mean"]
"""Which of the loads count."""

OVER: tuple[Over, ...] = ("worst", "mean")

_OBJECTIVE = re.compile(r"\s*(?P<sense>min|max)\s+(?P<metric>\S+)\s*")
_BOUND = re.compile(
    r"\s*(?P<metric>[^\s<>=]+)\s*(?P<sign><=|>=)\s*"
    r"(?P<number>[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*(?P<unit>[^\s0-9].*?)?\s*"
)


@dataclass(frozen=True)
class Aim:
    """An objective or a bound.

    Attributes:
        text: as it was given.
        metric: the metric that it is about.
        small: whether a small value is a good one.
        limit: the value that must be kept, in the metric's SI unit; None for an objective.
    """

    text: str
    metric: str
    small: bool
    limit: float | None = None

    def cost(self, value: float) -> float:
        """Return a number that is smaller for a better value."""
        return value if self.small else -value

    def excess(self, value: float) -> float:
        """Return by how much a value is beyond the limit, as a share of it; 0 or less: kept."""
        assert self.limit is not None
        beyond = self.cost(value) - self.cost(self.limit)
        return beyond / abs(self.limit) if self.limit else beyond

    def reached(self, cases: Sequence[CaseResult], over: Over) -> Estimate:
        """Return the estimate that counts: of the worst load, or of the mean over the loads.

        Its mean is NaN when the metric has no value at one of the loads, and when too much of what
        it is a time of did not finish (`analysis.censoring`).
        """
        for case in cases:
            why = censoring.why_incomparable(self.metric, case.values)
            if why is not None:
                return Estimate(math.nan, None, 0, why)
        found = [case.metric(self.metric) for case in cases]
        undefined = [each for each in found if math.isnan(each.mean)]
        if undefined:
            return undefined[0]
        if over == "worst":
            return max(found, key=lambda each: self.cost(each.mean))
        # Loads have streams of their own, so their errors are taken as independent.
        half = math.sqrt(sum((each.ci95 or 0.0) ** 2 for each in found)) / len(found)
        return Estimate(
            math.fsum(each.mean for each in found) / len(found),
            half if all(each.ci95 is not None for each in found) else None,
            min(each.n for each in found),
        )

    def surely_kept(self, cases: Sequence[CaseResult], over: Over) -> bool:
        """Return whether the whole 95 % interval of what counts is within the limit.

        Without an interval it is when each replication of each case is within it, from
        `FEWEST_SIGNS` replications on, which are no copies of one run.
        """
        found = [case.metric(self.metric) for case in cases]
        if over != "worst":
            found = [self.reached(cases, over)]
        if all(each.ci95 is not None for each in found):
            return all(self.excess(self._far_end(each)) <= 0 for each in found)
        values = [[v for v in case.values(self.metric) if v == v] for case in cases]
        return all(
            len(each) >= FEWEST_SIGNS
            and not case.copies
            and all(self.excess(value) <= 0 for value in each)
            for case, each in zip(cases, values, strict=True)
        )

    def _far_end(self, found: Estimate) -> float:
        half = found.ci95 or 0.0
        low, high = names.bounds(self.metric)
        return min(found.mean + half, high) if self.small else max(found.mean - half, low)

    def shown(self, value: float, unit: bool = True) -> str:
        """Return a value of the metric as text."""
        about = names.readable(names.describe(self.metric), [value])
        text = f"{value * about.scale:.4g}"
        return f"{text} {about.shown_unit}".rstrip() if unit else text


def objectives(texts: str | Sequence[str], known: Measured | None) -> tuple[Aim, ...]:
    """Return the objectives that texts such as "min queue_delay_p95" describe.

    Args:
        texts: one or several; the first decides between those that keep the bounds.
        known: the metrics that runs of the experiment can have.

    Raises:
        SpecError: one is of another form, or no run has its metric.
    """
    return _aims(texts, "objective", lambda text: _objective(text, known))


def bounds(texts: str | Sequence[str], known: Measured | None) -> tuple[Aim, ...]:
    """Return the bounds that texts such as "utilization >= 0.98" describe; errors as above."""
    return _aims(texts, "subject-to", lambda text: _bound(text, known))


def _aims(texts: str | Sequence[str], option: str, read: Callable[[str], Aim]) -> tuple[Aim, ...]:
    given = [texts] if isinstance(texts, str) else list(texts)
    found = tuple(read(text) for text in given)
    for number, aim in enumerate(found):
        if any((aim.metric, aim.small) == (old.metric, old.small) for old in found[:number]):
            raise SpecError(f"{option} {aim.text!r}: {aim.metric} is given twice", key=option)
    return found


def _objective(text: str, known: Measured | None) -> Aim:
    found = _OBJECTIVE.fullmatch(text)
    if found is None:
        raise SpecError(
            f"objective {text!r}: accepted: 'min METRIC' or 'max METRIC', for example "
            "'min queue_delay_p95'",
            key="objective",
        )
    metric = _metric(found["metric"], "objective", text, known)
    return Aim(text.strip(), metric, found["sense"] == "min")


def _bound(text: str, known: Measured | None) -> Aim:
    found = _BOUND.fullmatch(text)
    if found is None:
        raise SpecError(
            f"subject-to {text!r}: accepted: 'METRIC >= VALUE' or 'METRIC <= VALUE', for example "
            "'utilization >= 0.98' or 'queue_delay_p95 <= 20 ms'",
            key="subject-to",
        )
    metric = _metric(found["metric"], "subject-to", text, known)
    unit = found["unit"] or ""
    units = _units(metric)
    if unit not in units:
        accepted = ", ".join(each or "a number without a unit" for each in units)
        wrong = f"{unit} is no unit of {metric}" if unit else f"{metric} needs a unit"
        raise SpecError(f"subject-to {text!r}: {wrong}; accepted: {accepted}", key="subject-to")
    limit = float(found["number"]) * units[unit]
    low, high = names.bounds(metric)
    if not low <= limit <= high:
        raise SpecError(
            f"subject-to {text!r}: {metric} is never beyond {low:g} and {high:g}; accepted: a "
            "limit between them",
            key="subject-to",
        )
    return Aim(text.strip(), metric, found["sign"] == "<=", limit)


def _metric(name: str, option: str, text: str, known: Measured | None) -> str:
    if known is not None and name not in known:
        raise SpecError(
            f"{option} {text!r}: no run of this experiment has the metric {name}"
            f"{known.nearest(name)}",
            key=option,
        )
    return name if known is None else known.named(name)


def _units(metric: str) -> dict[str, float]:
    """Return what a value of a metric can be written in, and how much of its SI unit each is."""
    about = names.describe(metric)
    if about.unit == "1" and about.shown_unit == "%":
        return {"": 1.0, "%": 0.01}
    if about.unit in ("s", "bit/s", "bytes"):  # a bare number would be taken for ms or Mbit/s
        return UNITS[about.unit]
    return {"": 1.0, **UNITS.get(about.unit, {})}
