"""Differences of two things, replication by replication, and what may be said of them.

There is one rule for all that compares: `compare`, `diff`, the page of `report`, `reproduce`,
`tune` and `advise`. A difference is judged by its own values, whatever the values of the two sides
look like:

- **One observation.** The replications of one side are copies of one run (`copies`), or there is
  one replication: no interval, no p-value, no verdict.
- **Not comparable.** Much of what one side measures did not finish (`censoring`): no verdict.
- **Equal.** All differences are zero.
- **Student.** At most half of the differences are equal to each other: the paired t-test.
- **Signs.** More than half of them are equal to each other, so that their spread says nothing: the
  exact sign test. It needs six differences of one sign, and more of them where Holm's correction
  multiplies p; fewer are "too few replications".

An interval may be refused although there is a p-value. The metric then has rare events (`rare`), of
which the replications may have seen none: the verdict is of what most replications show, and the
size of the mean difference is not known.

`docs/explanation/statistics.md` has the cases with the verdict of each and its false-alarm rate,
which `docs/explanation/verdicts.py` measures.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from redtail.analysis import censoring, copies, rare
from redtail.analysis.along import changing_along
from redtail.analysis.stats import (
    Estimate,
    estimate,
    holm,
    p_zero_mean,
    paired_difference,
    t_quantile,
)
from redtail.errors import RedtailError
from redtail.metrics import named

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

Correction = Literal["holm", "none"]
"""How verdicts allow for the number of comparisons."""

LEVEL = 0.05
"""A difference whose adjusted p-value is at most this is distinguishable.

Source: the 95 % of all intervals here.
"""

MOST_NEEDED = 1000
"""No number of replications above this is named as the one that would decide.

Source: ours; a difference that needs more is of no practical size.
"""

Verdict = Literal[
    "higher",
    "lower",
    "equal",
    "not distinguishable",
    "too few replications",
    "one observation",
    "not comparable",
    "no value",
]
"""What is said of a difference: of the first less the second.

"equal" when all differences are zero, "no value" when no replication has one.
"""


@dataclass(frozen=True)
class Unjudged:
    """Why a difference gets no verdict, whatever its values are.

    Attributes:
        verdict: what stands in the place of a verdict.
        why: the reason in words.
    """

    verdict: Literal["one observation", "not comparable"]
    why: str


class Paired:
    """Differences of what two things measured, replication by replication.

    Attributes:
        differences: first less second by replication, where both have a value; SI units.
        reference: the mean over these replications of the one that differences are shares of.
        refused: why there is no interval whatever the differences are; None when there may be one.
        unjudged: why there is no verdict either; None when there may be one.
        p: the p-value of the test; None without a test.
        p_adjusted: the same after the correction.
        together: how many tests the correction allows for.
    """

    differences: dict[int, float]
    reference: float
    refused: str | None
    unjudged: Unjudged | None
    p: float | None
    p_adjusted: float | None
    together: int

    @property
    def difference(self) -> Estimate:
        """The mean difference with its 95 % interval, of this pair taken alone."""
        found = estimate(self.differences.values(), skewed=False)
        return as_far_as_known(found, self.refused, self.unjudged)

    @property
    def relative(self) -> Estimate:
        """The difference as a share of the reference; NaN when that is zero."""
        return relative_to(self.reference, self.difference)

    @property
    def test(self) -> Literal["student", "sign"] | None:
        """What `p` is of: the paired t-test or the sign test; None without a p-value."""
        return None if self.p is None else which_test(list(self.differences.values()))

    @property
    def judged(self) -> Verdict:
        """The verdict that the module's text describes."""
        if self.unjudged is not None:
            return self.unjudged.verdict
        if not self.differences:
            return "no value"
        if self.p_adjusted is None:
            return "one observation"
        values = list(self.differences.values())
        if not any(values):
            return "equal"
        above, below = (sum(sign * value > 0 for value in values) for sign in (1, -1))
        mean = math.fsum(values)
        if self.p_adjusted <= LEVEL:
            if self.test == "student" or (above > below) == (mean > 0):
                return "higher" if mean > 0 else "lower"
            return "not distinguishable"  # most are on one side, and the mean is on the other
        if self.test == "sign" and 0 in (above, below):
            return "too few replications"
        return "not distinguishable"

    @property
    def words(self) -> str:
        """The verdict as tables show it: of most replications, where rare events are possible."""
        found = self.judged
        return f"{found} in most runs" if self.refused and self.distinguishable else found

    @property
    def distinguishable(self) -> bool | None:
        """Whether the two differ significantly; None where there is no verdict."""
        match self.judged:
            case "higher" | "lower":
                return True
            case "equal" | "not distinguishable" | "too few replications":
                return False
            case _:
                return None

    @property
    def needed(self) -> int | None:
        """About how many replications would decide, if they are like those that there are.

        None where the difference is decided, where no number of at most `MOST_NEEDED` is enough, or
        where more of the same decide nothing. The level is that of the smallest p-value of the
        family, so that it is an upper bound for the others.
        """
        if self.judged not in ("not distinguishable", "too few replications"):
            return None
        found = replications_needed(list(self.differences.values()), self.together)
        return found if found is None or found < 100 else 10 * math.ceil(found / 10)


def as_far_as_known(found: Estimate, refused: str | None, unjudged: Unjudged | None) -> Estimate:
    """Return a mean difference without what its evidence does not carry.

    Args:
        found: the mean of all differences that there are.
        refused: why there is no interval; None when there may be one.
        unjudged: why there is no verdict either; None when there may be one.
    """
    if unjudged is not None and unjudged.verdict == "one observation":
        return Estimate(found.mean, None, min(found.n, 1), unjudged.why)
    if unjudged is not None:
        # What is missing on one side can be larger than the difference of the rest.
        return Estimate(math.nan, None, found.n, unjudged.why)
    return found if refused is None else found.without_interval(refused)


def which_test(values: Sequence[float]) -> Literal["student", "sign"]:
    """Return which test judges these differences.

    >>> which_test([1.0, 2.0, 3.0]), which_test([2.0, 2.0, 3.0]), which_test([0.0, 0.0])
    ('student', 'sign', 'sign')
    """
    return "sign" if estimate(values, skewed=False).ci95 is None else "student"


def replications_needed(values: Sequence[float], together: int = 1) -> int | None:
    """Return with how many differences like these the test would be significant.

    Args:
        values: the differences that there are.
        together: how many tests are corrected for, by which the level is divided.

    Returns:
        The number; None where it is above `MOST_NEEDED` or none is enough.

    >>> replications_needed([2.0] * 4), replications_needed([2.0] * 4, together=10)
    (6, 9)
    >>> replications_needed([1.0, -1.0, 2.0, -0.5, 1.5])
    21
    """
    level = LEVEL / max(1, together)
    mean = math.fsum(values) / len(values)
    if which_test(values) == "sign":
        signs = {value > 0 for value in values if value}
        share = sum(value != 0 for value in values) / len(values)
        if len(signs) != 1:
            return None
        found = math.ceil(math.ceil(1 - math.log2(level)) / share)
        return found if found <= MOST_NEEDED else None
    squares = math.fsum((value - mean) ** 2 for value in values)
    deviation = math.sqrt(squares / (len(values) - 1))
    if mean == 0:
        return None
    for n in range(len(values) + 1, MOST_NEEDED + 1):
        if abs(mean) * math.sqrt(n) / deviation >= t_quantile(1 - level, n - 1):
            return n
    return None


Row = TypeVar("Row", bound=Any)


def corrected(rows: Sequence[Row], correction: Correction) -> tuple[Row, ...]:
    """Return rows with the p-values of all of them corrected for their number.

    Args:
        rows: dataclasses that are `Paired`.
        correction: "holm" or "none".
    """
    p_values = [row.p for row in rows]
    together = sum(p is not None for p in p_values) if correction == "holm" else 1
    return tuple(
        dataclasses.replace(row, p_adjusted=p, together=together)
        for row, p in zip(rows, adjusted(p_values, correction), strict=True)
    )


def adjusted(
    p_values: Sequence[float | None], correction: Correction = "holm"
) -> list[float | None]:
    """Return p-values corrected for the number of tests; None stands where there is no test.

    >>> adjusted([0.01, None, 0.03])
    [0.02, None, 0.03]
    """
    known = [p for p in p_values if p is not None]
    found = iter(holm(known) if correction == "holm" else known)
    return [None if p is None else next(found) for p in p_values]


def p_of(values: Sequence[float], unjudged: Unjudged | None = None) -> float | None:
    """Return the p-value of differences; None where there is no test of them."""
    return None if unjudged is not None else p_zero_mean(values)


def relative_to(reference: float, found: Estimate) -> Estimate:
    """Return a difference as a share of the baseline's mean; NaN when that is zero."""
    if reference == 0 or math.isnan(reference):
        return Estimate(math.nan, None, found.n, "the baseline's mean is not above zero")
    scale = abs(reference)
    return dataclasses.replace(
        found,
        mean=found.mean / scale,
        ci95=None if found.ci95 is None else found.ci95 / scale,
        mostly=None if found.mostly is None else found.mostly / scale,
    )


def why_no_interval(metric: str, first: CaseResult, second: CaseResult, n: int) -> str | None:
    """Return why a difference of two cases has no interval; None when it may have one."""
    found = (rare.why_no_interval(metric, case.sharing, n, case.values) for case in (first, second))
    return next((why for why in found if why is not None), None)


def why_unjudged(metric: str, first: CaseResult, second: CaseResult) -> Unjudged | None:
    """Return why a difference of two cases in a metric gets no verdict; None when it may get one.

    Args:
        metric: the metric's name.
        first: one case.
        second: the other.
    """
    for case in (first, second):
        if case.copies:
            where = f"'{case.title}': " if case.title else ""
            return Unjudged("one observation", f"{where}{copies.reason(case.copies)}")
    for case in (first, second):
        why = censoring.why_incomparable(metric, case.values)
        if why is not None:
            where = f"'{case.title}': " if case.title else ""
            return Unjudged("not comparable", f"{where}{metric}: {why}")
    return None


def notes(rows: Sequence[Paired], correction: Correction) -> list[str]:
    """Return what a table of differences says of its verdicts, a line for each."""
    count = sum(row.p is not None for row in rows)
    tests = f"{count} test{'' if count == 1 else 's'}"
    found = [
        "no difference is tested"
        if not count
        else f"verdicts hold for all of the {tests} at once (Holm's correction, 5 %)"
        if correction == "holm"
        else f"verdicts are for each of the {tests} alone (no correction, 5 %)"
    ]
    if any(row.test == "sign" and row.judged != "equal" for row in rows):
        found.append("more than half of some differences are equal: p is of the exact sign test")
    if any(row.refused and row.distinguishable for row in rows):
        found.append(
            "in most runs: the metric depends on rare events, so the size of the mean difference "
            "is not known"
        )
    undecided = [
        row for row in rows if row.judged in ("not distinguishable", "too few replications")
    ]
    needed = sorted(row.needed for row in undecided if row.needed is not None)
    if needed:
        span = str(needed[0]) if len(set(needed)) == 1 else f"{needed[0]} to {needed[-1]}"
        beyond = len(undecided) - len(needed)
        more = f"; {beyond} would stay undecided at {MOST_NEEDED:,}" if beyond else ""
        found.append(f"about {span} replications like these would decide what is not decided{more}")
    whys = dict.fromkeys(row.unjudged.why for row in rows if row.unjudged is not None)
    found += [f"not judged: {why}" for why in list(whys)[:_WHYS]]
    if len(whys) > _WHYS:
        found.append(f"not judged: {len(whys) - _WHYS} more reasons; --json has all")
    return found


_WHYS = 3


def differences(
    results: Results, metric: str, factor: str | None, baseline: str | None
) -> list[tuple[CaseResult, Estimate]]:
    """Return how much each case differs from its baseline; see `Results.differences`."""
    metric = named(results.metric_names, metric)
    factor = factor or (results.factors[0] if results.factors else "")
    settings = list(dict.fromkeys(case.labels.get(factor, "") for case in results.cases))
    if factor not in results.factors:
        raise RedtailError(f"{factor!r} is not a factor; the factors are {results.factors}")
    baseline = settings[0] if baseline is None else baseline
    if baseline not in settings:
        raise RedtailError(f"{baseline!r} is not a setting of {factor}; they are {settings}")

    along = changing_along(results.cases, factor)

    def others(case: CaseResult) -> tuple[str, ...]:
        return tuple(label for key, label in case.labels.items() if key not in (factor, *along))

    bases = {others(case): case for case in results.cases if case.labels[factor] == baseline}
    found = []
    for case in results.cases:
        base = bases.get(others(case))
        if base is None or case is base:
            continue
        by_number, base_by_number = (
            dict(zip(sorted(each.runs), each.values(metric), strict=True)) for each in (case, base)
        )
        shared = sorted(by_number.keys() & base_by_number.keys())
        first = [by_number[number] for number in shared]
        second = [base_by_number[number] for number in shared]
        difference = paired_difference(first, second)
        refused = why_no_interval(metric, case, base, difference.n)
        unjudged = why_unjudged(metric, case, base)
        found.append((case, as_far_as_known(difference, refused, unjudged)))
    return found
