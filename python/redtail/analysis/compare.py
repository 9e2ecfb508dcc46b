"""Paired comparisons between the cases of an experiment, on common random numbers.

Cases of one experiment share their seeds, and those that differ in a queue alone draw the same
workload in each replication: the same transfers start at the same times. What one queue measures
less the other, replication by replication, is therefore free of most of the workload's noise.

The differences of a pair are independent from one replication to the next, so their mean carries a
Student-t interval. `paired` judges whether it differs from zero. When many pairs are
asked about, some would look different by chance; Holm's correction keeps the probability of one
false alarm or more among all of them below 5 %.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from redtail import escape
from redtail import metrics as names
from redtail.analysis.along import changing_along
from redtail.analysis.digits import shown
from redtail.analysis.equivalence import Margins, p_equal
from redtail.analysis.paired import (
    LEVEL,
    Correction,
    Paired,
    Unjudged,
    adjusted,
    corrected,
    notes,
    p_of,
    why_no_interval,
    why_unjudged,
)
from redtail.analysis.stats import difference, estimate
from redtail.errors import RedtailError
from redtail.metrics import nearest

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results
    from redtail.analysis.tolerances import Tolerance

Row = TypeVar("Row")


@dataclass(frozen=True)
class Comparison(Paired):
    """How far one case is from another in one metric.

    Attributes:
        metric: the metric's name.
        factor: the factor in which the two differ.
        label: the setting of the first.
        baseline: the setting of the second, which is subtracted.
        others: what the two have in common, in one line.
        differences: first less second by replication, where both have a value; SI units.
        reference: the second's mean over these replications.
        p: the p-value of the paired t-test, or of the sign test where most differences are equal;
            None with fewer than two differences, and where nothing may be judged.
        p_adjusted: the same after the correction.
        shared: whether the two ran the same workload: they differ in queues alone.
        refused: why there is no interval whatever the differences are; None when there may be one.
        unjudged: why there is no verdict either; None when there may be one.
        together: how many tests the correction allows for.
        margin: within which difference the two count as equal; None when it was not asked.
        p_equal: the p-value of the test that they are (`equivalence`); None without an interval.
        p_equal_adjusted: the same after the correction, for all tests of equality.
    """

    metric: str
    factor: str
    label: str
    baseline: str
    others: str
    differences: dict[int, float]
    reference: float
    p: float | None
    p_adjusted: float | None
    shared: bool
    refused: str | None = None
    unjudged: Unjudged | None = None
    together: int = 1
    margin: Tolerance | None = None
    p_equal: float | None = None
    p_equal_adjusted: float | None = None

    @property
    def equal(self) -> bool | None:
        """Whether the two are shown to be equal within the margin; None without a test."""
        return None if self.p_equal_adjusted is None else self.p_equal_adjusted <= LEVEL

    @property
    def equality(self) -> str:
        """What is said of equality; empty without a test."""
        if self.equal is None or self.margin is None:
            return ""
        return f"{'equal' if self.equal else 'not shown equal'} within {self.margin.text}"

    def as_json(self) -> dict[str, Any]:
        """Return what `redtail compare --json` prints of it, as Python objects."""
        return {
            "metric": self.metric,
            "factor": self.factor,
            "label": self.label,
            "baseline": self.baseline,
            "others": self.others,
            "difference": self.difference.as_json(),
            "relative": self.relative.as_json(),
            "p": self.p,
            "test": self.test,
            "p_adjusted": self.p_adjusted,
            "verdict": self.judged,
            "distinguishable": self.distinguishable,
            "replications_needed": self.needed,
            "same_workload": self.shared,
            "equal_within": None if self.margin is None else self.margin.text,
            "equal": self.equal,
            "p_equal": self.p_equal,
            "p_equal_adjusted": self.p_equal_adjusted,
        }


class Rows(Sequence[Row]):
    """What is a sequence of its rows, and has more to tell of them.

    Attributes:
        rows: each in its place.
    """

    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


@dataclass(frozen=True)
class Comparisons(Rows[Comparison]):
    """Comparisons that were asked for together.

    Attributes:
        rows: the comparisons.
        correction: how verdicts allow for their number.
        factor: the factor compared.
        warnings: what to know before trusting them.
        along: the factors that change with it, as those of one `[[factors.zip]]` do.
        held: the factors that are equal in each pair.
    """

    rows: tuple[Comparison, ...]
    correction: Correction
    factor: str
    warnings: tuple[str, ...] = ()
    along: tuple[str, ...] = ()
    held: tuple[str, ...] = ()

    def to_arrow(self) -> pa.Table:
        """Return a row per comparison, differences in SI units."""
        import pyarrow as pa

        from redtail.store.parquet import field

        found = [(row, row.difference, row.relative) for row in self.rows]
        fields = [
            field("metric", pa.string()),
            field("unit", pa.string()),
            field("others", pa.string(), description="what the two cases have in common"),
            field("label", pa.string()),
            field("baseline", pa.string()),
            field("mean", pa.float64(), description="label less baseline, by replication"),
            field("ci95", pa.float64(), description="half-width of the 95 % interval, this alone"),
            field("n", pa.uint32(), description="replications that both have"),
            field("relative", pa.float64(), unit="1", description="mean over the baseline's"),
            field("no_interval", pa.string(), description="why there is no interval"),
            field("p", pa.float64(), unit="1", description="of the test"),
            field("test", pa.string(), description="student (paired t-test) or sign"),
            field("p_adjusted", pa.float64(), unit="1", description=f"after {self.correction}"),
            field("distinguishable", pa.bool_()),
            field("verdict", pa.string(), description="what is said of the difference"),
            field("equal_within", pa.string(), description="the margin of the test of equality"),
            field("equal", pa.bool_(), description="whether they are shown to be equal within it"),
            field("p_equal", pa.float64(), unit="1", description="of two one-sided tests"),
            field("p_equal_adjusted", pa.float64(), unit="1", description=f"{self.correction}"),
        ]
        columns = [
            [row.metric for row in self.rows],
            [names.describe(row.metric).unit for row in self.rows],
            [row.others for row in self.rows],
            [row.label for row in self.rows],
            [row.baseline for row in self.rows],
            [_or_none(difference.mean) for _, difference, _ in found],
            [difference.ci95 for _, difference, _ in found],
            [difference.n for _, difference, _ in found],
            [_or_none(relative.mean) for _, _, relative in found],
            [difference.no_interval for _, difference, _ in found],
            [row.p for row in self.rows],
            [row.test for row in self.rows],
            [row.p_adjusted for row in self.rows],
            [row.distinguishable for row in self.rows],
            [row.judged for row in self.rows],
            [None if row.margin is None else row.margin.text for row in self.rows],
            [row.equal for row in self.rows],
            [row.p_equal for row in self.rows],
            [row.p_equal_adjusted for row in self.rows],
        ]
        return pa.table(columns, schema=pa.schema(fields))

    def as_json(self) -> dict[str, Any]:
        """Return what `redtail compare --json` prints, as Python objects."""
        return {
            "format": 1,
            "factor": self.factor,
            "changes_along": self.along,
            "held_equal": self.held,
            "correction": self.correction,
            "level": LEVEL,
            "comparisons": [row.as_json() for row in self.rows],
        }

    def to_json(self) -> str:
        """Return what `redtail compare --json` prints."""
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False, allow_nan=False)

    def table_text(self, form: str = "csv") -> str:
        """Return the table that `redtail compare` prints as text for other programs.

        Args:
            form: "csv" has the columns of `to_arrow`, in SI units with all digits; "latex" (with
                booktabs) and "markdown" have the digits and units of the printed table.

        Raises:
            SpecError: there is no such form.
        """
        from redtail.display import texts

        chosen = texts.form_of(form)
        if chosen == "csv":
            return texts.of_arrow(self.to_arrow())
        return texts.of_tables([self.table()], chosen)

    def table(self) -> Table:
        """Return the table that `redtail compare` prints."""
        from rich import box
        from rich.table import Table

        several = len({row.metric for row in self.rows}) > 1
        others = any(row.others for row in self.rows)
        table = Table(
            title=escape.title(
                f"differences by {names.factor_title(self.factor)}, replication by replication"
            ),
            title_justify="left",
            caption=self._caption(),
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0),
            show_edge=False,
        )
        if several:
            table.add_column("metric", no_wrap=True, vertical="bottom")
        if others:
            table.add_column("at", no_wrap=True, vertical="bottom")
        table.add_column("case", no_wrap=True, vertical="bottom")
        table.add_column("less", no_wrap=True, vertical="bottom")
        head = "difference" if several or not self.rows else names.head(self.rows[0].metric)
        for title in (head, "relative\n%", "n", "p", "verdict"):
            table.add_column(
                escape.plain(title),
                justify="left" if title == "verdict" else "right",
                no_wrap=True,
                vertical="bottom",
            )
        for row in self.rows:
            about = names.describe(row.metric)
            cells = [names.head(row.metric).replace("\n", " ")] if several else []
            cells += [row.others] if others else []
            cells += [
                row.label,
                row.baseline,
                shown(row.difference, about.scale),
                shown(row.relative, 100.0),
                str(row.difference.n),
                _shown_p(row.p_adjusted),
                ", ".join(text for text in (row.words, row.equality) if text),
            ]
            table.add_row(*(escape.plain(escape.name(cell)) for cell in cells))
        return table

    def _notes_on_equality(self) -> list[str]:
        tests = sum(row.p_equal is not None for row in self.rows)
        if all(row.margin is None for row in self.rows):
            return []
        if not tests:
            return ["no difference has an interval, so nothing is shown to be equal"]
        alone = "" if self.correction == "holm" else ", each alone"
        found = f"equal: two one-sided tests at 5 %{alone}; shares are of the mean of the second"
        untested = sum(row.margin is not None and row.p_equal is None for row in self.rows)
        return [found, *([f"without an interval, not tested: {untested}"] if untested else [])]

    @property
    def pairing(self) -> list[str]:
        """What changes along with the factor, and what is equal in each pair, a line for each."""
        found = []
        if self.along:
            along = ", ".join(map(names.factor_title, self.along))
            found.append(f"changes along with {names.factor_title(self.factor)}: {along}")
        held = ", ".join(map(names.factor_title, self.held))
        found.append(f"held equal in each pair: {held}{', ' if held else ''}the seed")
        return found

    def _repr_html_(self) -> str:
        """Return the table, for notebooks."""
        from redtail.display.tables import as_html

        return as_html([self.table()])

    def _caption(self) -> str:
        return "\n".join(
            [
                "mean ± half-width of the 95 % interval of each difference alone;",
                *notes(self.rows, self.correction),
                *self._notes_on_equality(),
                *self.pairing,
            ]
        )


def compare(
    results: Results,
    metric: str | Sequence[str],
    *,
    baseline: str | None = None,
    by: str | None = None,
    correction: Correction = "holm",
    equal_within: str | Sequence[str] = (),
) -> Comparisons:
    """Compare the cases of an experiment that differ in one factor alone.

    Args:
        results: the experiment's results.
        metric: the metric, or several: the correction then counts the comparisons of all.
        baseline: the label of one setting of the factor, which all others are compared with; by
            default every pair is compared.
        by: the factor, by its dotted key or the last part of it; by default the first one that is
            a queue, else the first.
        correction: "holm" (Holm 1979) or "none".
        equal_within: within which difference two cases count as equal, which is tested too: "2 %"
            (of the baseline's mean), or of one metric "goodput=2 %", "loss=0.2 points".

    Returns:
        A comparison for each metric and pair, with what to know before trusting them.

    Raises:
        RedtailError: there is no such metric, factor, setting or margin.
    """
    metrics = [metric] if isinstance(metric, str) else list(metric)
    if correction not in get_args(Correction):
        raise RedtailError(f"correction = {correction!r}; accepted: 'holm', 'none'")
    for name in metrics:
        if name not in results.metric_names:
            raise RedtailError(
                f"{name!r} is not a metric here{nearest(results.metric_names, name)}"
            )
    factor = _factor(results, by)
    labels = list(dict.fromkeys(case.labels[factor] for case in results.cases))
    if baseline is not None and baseline not in labels:
        raise RedtailError(
            f"baseline = {baseline!r} is not a setting of {factor}; they are {', '.join(labels)}"
        )

    along = changing_along(results.cases, factor)
    held = tuple(key for key in results.factors if key not in (factor, *along))
    places: dict[tuple[str, ...], list[CaseResult]] = {}
    for case in results.cases:
        places.setdefault(tuple(case.labels[key] for key in held), []).append(case)
    drafts = []
    changed: dict[str, None] = {}
    for name in metrics:
        for cases in places.values():
            for first, second in _pairs(cases, factor, baseline):
                keys = [key for key in _differing(first, second) if not is_queue(key)]
                changed.update(dict.fromkeys(keys))
                drafts.append(_compared(name, factor, held, first, second, shared=not keys))
    rows = corrected(drafts, correction)
    if equal_within:
        margins = Margins(equal_within)
        margins.refuse_unknown(metrics)
        rows = _with_equality(rows, margins, correction)
    found = _warnings(results, factor, rows, list(changed))
    return Comparisons(rows, correction, factor, tuple(found), along, held)


def _with_equality(
    rows: Sequence[Comparison], margins: Margins, correction: Correction
) -> tuple[Comparison, ...]:
    """Return comparisons with tests of equality, whose p-values are corrected for their number."""
    found = []
    for row in rows:
        margin = margins.of(row.metric)
        p = None
        if margin is not None and not math.isnan(row.reference):
            p = p_equal(row.difference, margin.allowed(row.reference))
        found.append(replace(row, margin=margin, p_equal=p))
    together = adjusted([row.p_equal for row in found], correction)
    return tuple(replace(row, p_equal_adjusted=p) for row, p in zip(found, together, strict=True))


def is_queue(key: str) -> bool:
    """Return whether a dotted key is that of a queue or of something in one.

    >>> is_queue("bottleneck.queue"), is_queue("chain.hop2.queue.limit"), is_queue("traffic.a.tcp")
    (True, True, False)
    """
    return "queue" in key.split(".")


def _factor(results: Results, by: str | None) -> str:
    if not results.factors:
        raise RedtailError("there is only one case, so there is nothing to compare it with")
    if by is None:
        return next((key for key in results.factors if is_queue(key)), results.factors[0])
    fitting = [key for key in results.factors if key == by]
    fitting = fitting or [key for key in results.factors if key.rpartition(".")[2] == by]
    if len(fitting) != 1:
        raise RedtailError(
            f"by = {by!r} names {len(fitting)} factors; the factors are "
            f"{', '.join(results.factors)}"
        )
    return fitting[0]


def _pairs(
    cases: Sequence[CaseResult], factor: str, baseline: str | None
) -> list[tuple[CaseResult, CaseResult]]:
    if baseline is None:
        return [(second, first) for first, second in combinations(cases, 2)]
    bases = [case for case in cases if case.labels[factor] == baseline]
    return [(case, base) for base in bases for case in cases if case is not base]


def _differing(first: CaseResult, second: CaseResult) -> list[str]:
    """Return the keys of the file in which two cases differ."""
    one, other = first.settings, second.settings
    return [key for key in {**one, **other} if one.get(key) != other.get(key)]


def _compared(
    metric: str,
    factor: str,
    held: Sequence[str],
    first: CaseResult,
    second: CaseResult,
    *,
    shared: bool,
) -> Comparison:
    differences = {}
    references = []
    for number in sorted(first.runs.keys() & second.runs.keys()):
        one, other = (case.runs[number].metrics.get(metric, math.nan) for case in (first, second))
        if not math.isnan(one - other):
            differences[number] = difference(one, other)
            references.append(other)
    unjudged = why_unjudged(metric, first, second)
    return Comparison(
        metric=metric,
        factor=factor,
        label=first.labels[factor],
        baseline=second.labels[factor],
        others=names.case_title(
            {key: first.factors.get(key) for key in held}, {key: first.labels[key] for key in held}
        ),
        differences=differences,
        reference=estimate(references).mean,
        p=p_of(list(differences.values()), unjudged),
        p_adjusted=None,
        shared=shared,
        refused=why_no_interval(metric, first, second, len(differences)),
        unjudged=unjudged,
    )


def _warnings(
    results: Results, factor: str, rows: Sequence[Comparison], changed: Sequence[str]
) -> list[str]:
    found = []
    if not rows:
        over = [
            key for key in results.factors if factor in changing_along(results.cases, key)
        ]  # each of their settings has one of the factor
        hint = f"; {factor} changes along with {over[0]}: compare by that" if over else ""
        found.append(f"no two cases differ in {factor} alone, so there is nothing to compare{hint}")
    if changed:
        found.append(
            f"these cases differ in {', '.join(changed)}, which is no queue: they do not run the "
            "same workload. The intervals hold, but pairing may not narrow them, and a difference "
            "can be the workload's"
        )
    if any(row.p is None and row.unjudged is None for row in rows):
        found.append("fewer than two replications have a difference; there is no interval to judge")
    return found


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _shown_p(p: float | None) -> str:
    if p is None:
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"
