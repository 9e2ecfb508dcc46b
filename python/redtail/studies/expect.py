"""Whether results are as expected: the verdicts on an experiment's table `[expect]`.

A number is judged as those of findings (`checks`): with its 95 % interval, or by the sign test
where most replications are equal. An expectation holds when each of its numbers keeps its bound,
fails when one does not, and is undecided else.

Errors. That an expectation holds although a number is outside its bound has a probability of at
most 2.5 %, and so has that all hold although one of them does not, however many there are (an
intersection-union test, see `checks`). That anything fails although all of it is true has one of at
most 5 %: the p-values of numbers outside their bounds are corrected for the number of all numbers
(Holm). With `most`, results are looked at several times, and each look takes an equal part of both
probabilities (Bonferroni).

Of "each" replication a single one outside its bound decides: it is a counterexample, and no
statistics are needed. Six that are inside show that more than half of all possible ones are
(the sign test), and the text says how many may be outside. Where a simulation draws nothing at
random, its one run is all that there is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from redtail import metrics as names
from redtail.analysis import censoring, copies
from redtail.analysis.case import CaseResult
from redtail.analysis.paired import LEVEL, adjusted, replications_needed
from redtail.analysis.rare import why_no_interval
from redtail.analysis.results import Results
from redtail.analysis.stats import Estimate, estimate, p_zero_mean
from redtail.engine.plans import Plan
from redtail.errors import SpecError
from redtail.expectation import (
    Expectation,
    OfMetric,
    OfPath,
    OverTime,
    Quantity,
)
from redtail.expected import RowOf, group_of_path, rows_of
from redtail.formula import Formula
from redtail.metrics import Metric
from redtail.options import ExecuteOptions
from redtail.running import runner
from redtail.studies.checks import FEWEST_SIGNS, Answer, Bounds, Evidence
from redtail.studies.definition import Judgement
from redtail.studies.gaps import doubled
from redtail.studies.over_time import Run

_SHOWN = {"s": (1e3, "ms"), "bit/s": (1e-6, "Mbit/s"), "bytes": (1e-3, "kB")}
"""What values are shown in that are no metric's: scale and unit, by the SI unit."""


_MOST_KEPT = 256 << 20
"""Bytes of time series that are kept in memory; more of a run are read again."""


@dataclass(frozen=True)
class Row:
    """A number that an expectation is about.

    Attributes:
        case: what tells its case from others.
        evidence: the number with its interval, and where it should be.
        values: it, replication by replication.
        answer: whether it is there.
        why: the reason of an answer that the interval does not show; possibly empty.
        p: of the test that it is outside; None where there is none.
        p_adjusted: the same, corrected for all numbers.
        needed: about how many replications would decide; None if it is decided or not known.
        cases: the cases that it is of, by their places.
    """

    case: str
    evidence: Evidence
    values: tuple[float, ...]
    answer: Answer
    why: str = ""
    p: float | None = None
    p_adjusted: float | None = None
    needed: int | None = None
    cases: tuple[int, ...] = ()


@dataclass(frozen=True)
class Judged:
    """An expectation and what follows from the results.

    Attributes:
        expected: the expectation.
        rows: its numbers.
    """

    expected: Expectation
    rows: tuple[Row, ...]

    @property
    def judgement(self) -> Judgement:
        """Whether it holds."""
        answers = {row.answer for row in self.rows}
        if Answer.NO in answers:
            return Judgement.FAILS
        return Judgement.UNDECIDED if Answer.UNDECIDED in answers else Judgement.HOLDS

    @property
    def needed(self) -> int | None:
        """About how many replications would decide it; None if it is decided or not known."""
        found = [row.needed for row in self.rows if row.answer is Answer.UNDECIDED]
        known = [each for each in found if each is not None]
        return max(known) if known and len(known) == len(found) else None


@dataclass(frozen=True)
class Verdicts:
    """What follows for an experiment.

    Attributes:
        results: of its runs.
        judged: its expectations.
        looks: how often results were looked at, at most.
        tests: how many numbers the correction allows for.
    """

    results: Results
    judged: tuple[Judged, ...]
    looks: int
    tests: int

    @property
    def judgement(self) -> Judgement:
        """Whether all hold."""
        return worst(each.judgement for each in self.judged)


def worst(found: Iterable[Judgement]) -> Judgement:
    """Return what follows for several together: one that fails decides, then one undecided."""
    present = set(found)
    for each in (Judgement.FAILS, Judgement.UNDECIDED):
        if each in present:
            return each
    return Judgement.HOLDS


def run(
    plans: Sequence[Plan], *, most: int | None = None, **options: Unpack[ExecuteOptions]
) -> list[Verdicts]:
    """Run experiments and judge what they expect, all together.

    Args:
        plans: checked experiments whose code is loaded.
        most: make more replications of what is undecided, up to so many of a case: twice as many
            at each look.
        **options: as of `runner.execute`.

    Raises:
        SpecError: one expects nothing, or `most` does not go with its number of replications.
    """
    for plan in plans:
        _refuse_unfit(plan, most)
    looks = 1 if most is None else max(_looks(plan.replications, most) for plan in plans)
    due = list(plans)
    while True:
        found = [runner.execute(plan, **options) for plan in due]
        verdicts = judge(list(zip(due, found, strict=True)), looks=looks)
        counts = [
            doubled(plan, _waiting(each), most) for plan, each in zip(due, verdicts, strict=True)
        ]
        if not any(counts):
            return verdicts
        due = [
            plan.with_counts(more) if more else plan for plan, more in zip(due, counts, strict=True)
        ]


def _refuse_unfit(plan: Plan, most: int | None) -> None:
    where = f"{plan.file}: " if plan.file else ""
    if not plan.expected:
        raise SpecError(
            f"{where}expects nothing; accepted: a file with a table [expect], such as "
            '"used" = "goodput >= 9 Mbit/s"',
            file=plan.file,
            key="expect",
        )
    if most is not None and plan.stop is not None:
        raise SpecError(
            f"{where}replications has a rule of its own; accepted: a number beside --more"
        )
    if most is not None and most < plan.replications:
        raise SpecError(
            f"--more {most}: {where}each case has {plan.replications} replications; accepted: "
            "that many or more"
        )


def _looks(first: int, most: int) -> int:
    """Return how often results are looked at when their number doubles, at most.

    >>> _looks(10, 10), _looks(10, 11), _looks(10, 40), _looks(10, 41)
    (1, 2, 3, 4)
    """
    return 1 + max(0, math.ceil(math.log2(most / first)))


def _waiting(verdicts: Verdicts) -> set[int]:
    """Return the cases of which more replications may decide something."""
    return {
        case
        for each in verdicts.judged
        if each.judgement is Judgement.UNDECIDED
        for row in each.rows
        if row.answer is Answer.UNDECIDED and _may_be_decided(row)
        for case in row.cases
    }


def _may_be_decided(row: Row) -> bool:
    """Whether more replications can tell anything: not of copies of one run."""
    return row.evidence.value.n > 1 or len(row.values) == 1


def judge(of: Sequence[tuple[Plan, Results]], *, looks: int = 1) -> list[Verdicts]:
    """Judge what experiments expect, all together.

    Args:
        of: each experiment and its results.
        looks: how often they are looked at, at most.
    """
    drafts = [[_drafted(each, plan, results) for each in plan.expected] for plan, results in of]
    every = [row for judged in drafts for each in judged for row in each.rows]
    corrected = iter(adjusted([row.p for row in every]))
    tests = sum(row.p is not None for row in every)
    level = LEVEL / looks
    return [
        Verdicts(
            results,
            tuple(
                replace(
                    each,
                    rows=tuple(_final(row, next(corrected), tests, level) for row in each.rows),
                )
                for each in judged
            ),
            looks,
            tests,
        )
        for (_, results), judged in zip(of, drafts, strict=True)
    ]


# --- Values ----------------------------------------------------------------------------------


class _Measured:
    """Terms of expectations in the replications of some cases."""

    def __init__(self, plan: Plan, results: Results) -> None:
        self.plan = plan
        self.cases = results.cases
        self.simulated = results.backend == "sim"
        self._scenarios: dict[int, Mapping[str, Any]] = {}
        self._runs: dict[Path, Run] = {}

    def scenario(self, case: int) -> Mapping[str, Any]:
        if case not in self._scenarios:
            self._scenarios[case] = json.loads(self.plan.example(case))
        return self._scenarios[case]

    def determined(self, cases: Iterable[int]) -> bool:
        """Whether runs follow from the scenario alone: simulations that draw nothing."""
        return self.simulated and all(copies.draws_nothing(self.scenario(case)) for case in cases)

    def rows(self, expected: Expectation, row: RowOf) -> list[_Sides]:
        """Return both sides in each replication that all cases of a row have."""
        first = next(iter(row.cases.values()))
        group = group_of_path(expected, self.scenario(first))
        common = set.intersection(*(set(self.cases[case].runs) for case in row.cases.values()))
        found = []
        for number in sorted(common):
            values, bounded = {}, {}
            for name, term in expected.terms.items():
                case = row.cases.get(name, first)
                values[name] = bounded[name] = self._value(term, case, number, group)
                if math.isinf(values[name]) and isinstance(term, OfMetric | OverTime):
                    bounded[name] = self._left(term, case, number)
            left, right = (side(values, bounded=False) for side in (expected.left, expected.right))
            found.append(_Sides(number, left, right, expected.left(bounded)))
        return found

    def _value(
        self, term: OfMetric | OfPath | OverTime | Quantity, case: int, number: int, group: str
    ) -> float:
        if isinstance(term, Quantity):
            return term.value
        if isinstance(term, OfMetric):
            return _of_metric(term.metric, self.cases[case].runs[number].metrics)
        run = self._run(case, number)
        return run.path(term, group) if isinstance(term, OfPath) else run.over_time(term, group)

    def _left(self, term: OfMetric | OverTime, case: int, number: int) -> float:
        """Return how long a run goes on in which something has not happened."""
        run = self._run(case, number)
        if isinstance(term, OfMetric):
            return run.left(names.prefix(term.metric))
        return run.left(term.place, term.window.begin, term.window.end)

    def _run(self, case: int, number: int) -> Run:
        folder = self.cases[case].runs[number].folder
        found = self._runs.pop(folder, None) or Run(folder, self.scenario(case))
        while self._runs and sum(run.size for run in self._runs.values()) > _MOST_KEPT:
            del self._runs[next(iter(self._runs))]  # of which nothing was asked for longest
        self._runs[folder] = found
        return found


@dataclass(frozen=True)
class _Sides:
    """Both sides of an expectation in a replication.

    Attributes:
        number: the replication.
        left: the left side; infinite where it is a time of what does not happen.
        right: the right side.
        least: the left side, with the rest of the run for what does not happen in it.
    """

    number: int
    left: float
    right: float
    least: float


def _of_metric(name: str, metrics: Mapping[str, float]) -> float:
    """Return a metric of a run: infinite where it is a time of what has not finished.

    NaN where some has finished and much has not (`censoring`): the time is one of the rest.
    """
    value = metrics.get(name, math.nan)
    unfinished = censoring.shares(name, lambda share: [metrics.get(share, math.nan)])
    if not unfinished or not unfinished[0] > 0:
        return value
    if math.isnan(value):
        return math.inf
    return value if censoring.is_quantile(name) or unfinished[0] <= censoring.BOUND else math.nan


def _drafted(expected: Expectation, plan: Plan, results: Results) -> Judged:
    measured = _Measured(plan, results)
    rows = tuple(_row(expected, measured, row) for row in rows_of(expected, results.cases))
    return Judged(expected, rows)


def _row(expected: Expectation, measured: _Measured, of: RowOf) -> Row:
    sides = measured.rows(expected, of)
    values, bounds, is_ratio = _compared(expected, sides)
    cases = tuple(dict.fromkeys(of.cases.values()))
    shown = _shown(expected, bounds, is_ratio)
    row = Row(
        case=of.title,
        evidence=Evidence(expected.text, estimate(values), bounds, shown),
        values=tuple(values),
        answer=Answer.UNDECIDED,
        cases=cases,
    )
    if any(map(math.isnan, bounds.limits)):
        return replace(row, why="its bound has no value, as without a table of flows (keep_flows)")
    if any(map(math.isinf, values)):
        rest = [replace(each, left=each.least) for each in sides]
        return _never(row, sides, _compared(expected, rest)[0])
    if expected.of == "each":
        return _each(
            row,
            [each.number for each in sides],
            measured.determined(cases),
            _copied(measured, cases),
        )
    found = _observed(expected, measured, of, values)
    evidence = Evidence(expected.text, found, bounds, shown)
    answer = evidence.answer
    row = replace(row, evidence=evidence, answer=answer, why=found.no_interval or "")
    # Where there is no test, or nothing may be judged, there is no p-value.
    if math.isnan(found.mean) or (found.ci95 is None and math.isnan(found.least)):
        return row
    return replace(row, p=_p(values, found, bounds) if found.n > 1 else None)


def _compared(expected: Expectation, sides: Sequence[_Sides]) -> tuple[list[float], Bounds, bool]:
    """Return what is estimated of each replication, its bounds, and whether it is a ratio.

    It is the left side where the right one is the same number in all, else their difference; or
    their ratio, where the margin is a share.
    """
    right = [each.right for each in sides]
    fixed = expected.bounded_by_numbers and len({f"{each:.12g}" for each in right}) < 2
    bound = right[0] if right else math.nan
    if expected.margin is not None:
        share = expected.margin.unit == "1"
        wide = expected.margin.value * (abs(bound) if share else 1.0)
        if fixed:
            bounds = Bounds(at_least=bound - wide, at_most=bound + wide)
            return [each.left for each in sides], bounds, False
        if share:
            ratios = [each.left / each.right if each.right else math.nan for each in sides]
            least, most = 1 - expected.margin.value, 1 + expected.margin.value
            return ratios, Bounds(at_least=least, at_most=most), True
        return (
            [each.left - each.right for each in sides],
            Bounds(at_least=-expected.margin.value, at_most=expected.margin.value),
            False,
        )
    key = {"<": "below", "<=": "at_most", ">": "above", ">=": "at_least"}[expected.compared]
    if fixed:
        return [each.left for each in sides], Bounds(**{key: bound}), False
    return [each.left - each.right for each in sides], Bounds(**{key: 0.0}), False


def _shown(expected: Expectation, bounds: Bounds, is_ratio: bool) -> Metric:
    """Return how a number is shown."""
    only = expected.terms.get(expected.left.names[0]) if len(expected.left.names) == 1 else None
    if isinstance(only, OfMetric) and _bare(expected.left) and not is_ratio:
        return names.describe(only.metric)
    unit = "1" if is_ratio else expected.unit
    scale, shown_unit = _SHOWN.get(unit, (1.0, "" if unit == "1" else unit))
    if unit == "s" and max(map(abs, bounds.limits)) >= 1:
        scale, shown_unit = 1.0, "s"
    return Metric(expected.text, expected.name, unit, "", scale, shown_unit)


def _bare(formula: Formula) -> bool:
    """Whether a formula is a term alone."""
    return len(formula.names) == 1 and formula.text.strip("'\"") == formula.names[0]


def _observed(
    expected: Expectation, measured: _Measured, of: RowOf, values: Sequence[float]
) -> Estimate:
    """Return the mean with what the evidence carries, as `grid.observed` does."""
    found = estimate(values)
    for case in dict.fromkeys(of.cases.values()):
        copied = measured.cases[case].copies
        if copied:
            return Estimate(found.mean, None, 1, f"{copies.reason(copied)}; {_REMEDY}")
    for name, case in of.cases.items():
        term, why_not = expected.terms[name], None
        if isinstance(term, OverTime):
            why_not = "an extreme of each run" if term.how in ("max", "min") else None
        elif isinstance(term, OfMetric):
            result = measured.cases[case]
            unjudged = censoring.why_incomparable(term.metric, result.values)
            if unjudged is not None:
                return Estimate(math.nan, None, found.n, unjudged)
            why_not = _why_no_interval(term, result, found.n)
        if why_not is not None:
            return Estimate(found.mean, None, found.n, f'{why_not}; accepted: of = "each"')
    return found


_REMEDY = f'{copies.REMEDY}, or expect it of = "each" run'


def _why_no_interval(term: OfMetric, case: CaseResult, n: int) -> str | None:
    return why_no_interval(names.named(case.metrics, term.metric), case.sharing, n, case.values)


# --- Answers ---------------------------------------------------------------------------------


def _copied(measured: _Measured, cases: Iterable[int]) -> int:
    return max(measured.cases[case].copies for case in cases)


def _never(row: Row, sides: Sequence[_Sides], least: Sequence[float]) -> Row:
    """Judge what does not happen in some run, so that its time is beyond all bounds.

    A single such run makes the mean infinite. But a run that ends before the bound shows nothing.

    Args:
        row: the number.
        sides: of each replication.
        least: the number with the rest of the run in place of a time that is not over.
    """
    bounds = row.evidence.bounds
    never = [each for each in sides if math.isinf(each.left)]
    why = f"does not happen in {_listed([each.number for each in never])} of {len(sides)}"
    row = replace(row, evidence=replace(row.evidence, value=Estimate(math.inf, None, 1, why)))
    if any(
        value == math.inf and bounds.over(shortest)
        for value, shortest in zip(row.values, least, strict=True)
    ):
        return replace(row, answer=Answer.NO, why=why)
    return replace(row, why=f"{why}, and they end before it had to")


def _listed(replications: Sequence[int]) -> str:
    """Return replications in words: "2 runs (replications 1, 4)"."""
    listed = ", ".join(map(str, replications[:5])) + (", …" if len(replications) > 5 else "")
    many = len(replications) != 1
    return f"{len(replications)} run{'s' * many} (replication{'s' * many} {listed})"


def _each(row: Row, numbers: Sequence[int], determined: bool, copied: int) -> Row:
    """Judge every replication by itself."""
    bounds, n = row.evidence.bounds, len(row.values)
    known = [each for each in row.values if not math.isnan(each)]
    outside = [
        number
        for number, each in zip(numbers, row.values, strict=True)
        if not math.isnan(each) and (bounds.under(each) or bounds.over(each))
    ]
    if outside:
        return replace(row, answer=Answer.NO, why=f"outside in {_listed(outside)} of {n}")
    if not known:
        return replace(row, why="it has no value in any run")
    if len(known) < n:
        return replace(row, why=f"it has no value in {n - len(known)} of {n} runs")
    if determined:
        return replace(
            row, answer=Answer.YES, why="nothing is drawn at random: this is the only run"
        )
    if copied:
        return replace(row, why=copies.reason(copied))
    if n < FEWEST_SIGNS:
        return replace(
            row,
            why=f"inside in all of {n} {'run' if n == 1 else 'runs'}; {FEWEST_SIGNS} show it",
            needed=FEWEST_SIGNS,
        )
    share = 1 - 0.05 ** (1 / n)
    return replace(
        row,
        answer=Answer.YES,
        why=f"inside in all of {n} runs: at most {100 * share:.0f} % of all possible ones are "
        "outside (95 %)",
    )


def _nearest(bounds: Bounds, mean: float) -> float:
    """Return the bound that decides a mean."""
    return min(bounds.limits, key=lambda limit: abs(mean - limit))


def _p(values: Sequence[float], found: Estimate, bounds: Bounds) -> float | None:
    """Return the p-value of the test that a mean is outside its bounds; 1 where it is inside."""
    known = [each for each in values if not math.isnan(each)]
    if found.ci95 is None:
        return _p_of_signs(known, bounds, outside=True)
    if bounds.margin(found.mean) >= 0:
        return 1.0
    limit = _nearest(bounds, found.mean)
    return p_zero_mean([each - limit for each in known])


def _p_inside(values: Sequence[float], found: Estimate, bounds: Bounds) -> float:
    """Return the p-value of the test that a mean is inside its bounds, of the nearest one."""
    known = [each for each in values if not math.isnan(each)]
    if found.ci95 is None:
        return _p_of_signs(known, bounds, outside=False)
    return max(p_zero_mean([each - limit for each in known]) or 0.0 for limit in bounds.limits)


def _p_of_signs(values: Sequence[float], bounds: Bounds, *, outside: bool) -> float:
    """Return the p-value of the sign test that most are outside their bounds, or inside.

    It is for values most of which are equal; a bound may be this value.
    """
    signs = [bounds.under(each) or bounds.over(each) for each in values]
    if 2 * signs.count(outside) <= len(signs):
        return 1.0
    return p_zero_mean([1.0 if each is outside else -1.0 for each in signs]) or 1.0


def _final(row: Row, p_adjusted: float | None, tests: int, level: float) -> Row:
    """Return a row whose answer allows for all numbers and all looks."""
    row = replace(row, p_adjusted=p_adjusted)
    found = row.evidence.value
    if row.p is None:
        known = [each for each in row.values if not math.isnan(each)]
        if row.answer is Answer.UNDECIDED and row.needed is None and len(known) == 1 == found.n:
            return replace(row, needed=FEWEST_SIGNS if len(row.values) == 1 else None)
        return row
    if row.answer is Answer.NO and (p_adjusted is None or p_adjusted > level):
        row = replace(
            row,
            answer=Answer.UNDECIDED,
            why=f"outside by itself, and not among {tests} numbers (p = {p_adjusted:.2g})",
        )
    elif row.answer is Answer.YES and level < LEVEL:
        worst_p = _p_inside(row.values, found, row.evidence.bounds)
        if worst_p > level:
            row = replace(
                row,
                answer=Answer.UNDECIDED,
                why=f"inside at one look, and not at several (p = {worst_p:.2g})",
            )
    if row.answer is not Answer.UNDECIDED or found.n < 2:
        return row
    values = [each for each in row.values if not math.isnan(each)]
    inside = row.evidence.bounds.margin(found.mean) >= 0
    together = round(LEVEL / level) * (1 if inside else tests)
    limit = _nearest(row.evidence.bounds, found.mean)
    return replace(row, needed=replications_needed([each - limit for each in values], together))
