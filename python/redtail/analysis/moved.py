"""What moved between two results of one experiment: another version, another day, another backend.

Differences are taken replication by replication, new less old, as those of `compare` are: both have
the same seeds, so what both measure in one replication depends on one workload. A metric of a case
has *moved* when its mean difference is distinguishable from zero, after Holm's correction over all
that are compared (`paired` has the test), and exceeds its tolerance if it has one. A difference
that no test can decide, of one replication, of copies of one run or of few replications of one
sign, is "not certain".
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from redtail import escape
from redtail import metrics as names
from redtail.analysis.compare import Rows
from redtail.analysis.digits import shown
from redtail.analysis.paired import (
    Correction,
    Paired,
    Unjudged,
    corrected,
    notes,
    p_of,
    why_no_interval,
    why_unjudged,
)
from redtail.analysis.stats import Estimate, difference, estimate
from redtail.analysis.tolerances import Tolerance, Tolerances
from redtail.errors import SpecError

if TYPE_CHECKING:
    from rich.table import Table

    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

Verdict = Literal["moved", "within tolerance", "within noise", "equal", "not certain", "missing"]
"""What is said of a metric of a case.

"not certain" is a difference of which the noise is not known: there is one observation, or there
are too few replications for the test. "missing" is a metric that one of the two has no value of.
"""


@dataclass(frozen=True)
class Moved(Paired):
    """How far a metric of a case is from what it was.

    Attributes:
        metric: its name.
        title: the case in one line.
        means: the estimates of old and new, over all of their replications; SI units.
        differences: new less old by replication, where both have a value; SI units.
        reference: the old mean over these replications.
        tolerance: how large the difference may be; None without one.
        p: the p-value of the paired t-test, or of the sign test where most differences are equal;
            None with fewer than two differences, and where nothing may be judged.
        p_adjusted: the same after the correction.
        refused: why there is no interval whatever the differences are; None when there may be one.
        unjudged: why there is no verdict either; None when there may be one.
        together: how many tests the correction allows for.
    """

    metric: str
    title: str
    means: tuple[Estimate, Estimate]
    differences: dict[int, float]
    reference: float
    tolerance: Tolerance | None
    p: float | None = None
    p_adjusted: float | None = None
    refused: str | None = None
    unjudged: Unjudged | None = None
    together: int = 1

    @property
    def verdict(self) -> Verdict:
        """What the module's text says of it."""
        if not self.differences:
            return "missing"
        if not any(self.differences.values()):
            return "equal"
        if self.tolerance is not None and abs(self.difference.mean) <= self.tolerance.allowed(
            self.reference
        ):
            return "within tolerance"
        match self.judged:
            case "higher" | "lower":
                return "moved"
            case "not distinguishable":
                return "within noise"
            case _:
                return "not certain"

    def as_json(self) -> dict[str, Any]:
        """Return what `redtail diff --json` prints of it, as Python objects."""
        return {
            "metric": self.metric,
            "unit": names.describe(self.metric).unit,
            "case": self.title,
            "old": self.means[0].as_json(),
            "new": self.means[1].as_json(),
            "difference": self.difference.as_json(),
            "relative": self.relative.as_json(),
            "p": self.p,
            "p_adjusted": self.p_adjusted,
            "tolerance": None if self.tolerance is None else self.tolerance.text,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Diff(Rows[Moved]):
    """Two results of one experiment beside each other.

    Attributes:
        rows: each metric of each case that both have, and those that one of the two lacks.
        old, new: the results.
        only: the cases that one of the two lacks, a line each.
        notes: what else is different: versions, seeds, the experiment.
        correction: how verdicts allow for the number of comparisons.
    """

    rows: tuple[Moved, ...]
    old: Results
    new: Results
    only: tuple[str, ...]
    notes: tuple[str, ...]
    correction: Correction

    @property
    def moved(self) -> tuple[Moved, ...]:
        """What moved beyond noise and tolerance, or is missing, the largest share first."""
        found = [row for row in self.rows if row.verdict in ("moved", "missing")]
        return tuple(sorted(found, key=_share, reverse=True))

    @property
    def same(self) -> bool:
        """Whether nothing moved and no case is missing."""
        return not self.moved and not self.only

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many metrics of cases have each verdict."""
        return dict(Counter(row.verdict for row in self.rows).most_common())

    def as_json(self) -> dict[str, Any]:
        """Return what `redtail diff --json` prints, as Python objects."""
        return {
            "format": 1,
            "experiment": self.old.name,
            "old": _about(self.old),
            "new": _about(self.new),
            "same": self.same,
            "verdicts": self.counts,
            "only": self.only,
            "notes": self.notes,
            "correction": self.correction,
            "rows": [row.as_json() for row in self.rows],
        }

    def to_json(self) -> str:
        """Return what `redtail diff --json` prints."""
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False, allow_nan=False)

    def table_text(self, form: str = "csv") -> str:
        """Return the table that `redtail diff` prints as text for other programs.

        Args:
            form: "csv" has SI units and all digits; "latex" (with booktabs) and "markdown" have the
                digits and units of the printed table.

        Raises:
            SpecError: there is no such form.
        """
        from redtail.display import texts

        return texts.of_diff(self, texts.form_of(form))

    def table(self, rows: Sequence[Moved] | None = None) -> Table:
        """Return the table that `redtail diff` prints: what moved, or the rows that are given."""
        from rich import box
        from rich.table import Table

        rows = self.moved if rows is None else rows
        titles = any(row.title for row in rows)
        table = Table(
            title=escape.title(f"{escape.name(self.old.name)}: what moved"),
            title_justify="left",
            caption=self._caption(),
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0),
            show_edge=False,
        )
        table.add_column("metric", no_wrap=True, vertical="bottom")
        if titles:
            table.add_column("case", vertical="bottom")
        for head in ("old", "new", "difference", "%", "p"):
            table.add_column(head, justify="right", no_wrap=True, vertical="bottom")
        table.add_column("verdict", no_wrap=True, vertical="bottom")
        for row in rows:
            scale = names.describe(row.metric).scale
            share = row.relative.mean
            cells = [" ".join(names.head(row.metric).split())]
            cells += [row.title] if titles else []
            cells += [
                *("–" if math.isnan(each.mean) else shown(each, scale) for each in row.means),
                shown(row.difference, scale),
                "–" if math.isnan(share) else f"{100 * share:+.2g}",
                _shown_p(row),
                row.verdict,
            ]
            table.add_row(*(escape.plain(escape.name(cell)) for cell in cells))
        return table

    def _caption(self) -> str:
        return "\n".join(
            [
                "new less old, paired by replication; mean ± half-width of the 95 % interval;",
                *notes(self.rows, self.correction),
            ]
        )


def diff(
    old: Results,
    new: Results,
    *,
    metrics: str | Sequence[str] = (),
    tolerances: Tolerances | None = None,
    correction: Correction = "holm",
) -> Diff:
    """Compare two results of one experiment, case by case and replication by replication.

    Args:
        old: what was.
        new: what is.
        metrics: names, which may have wildcards, as for `Results.select`; by default those that
            tables show, of either.
        tolerances: how large differences may be; only those that are given count.
        correction: "holm" or "none".

    Raises:
        SpecError: there is no such metric, or the two have no case in common.
    """
    wanted = list(dict.fromkeys([*old.select(metrics), *new.select(metrics)]))
    first = {identity(case): case for case in old.cases}
    second = {identity(case): case for case in new.cases}
    common = [key for key in first if key in second]
    if not common:
        raise SpecError(
            f"{old.folder} and {new.folder} have no case in common; accepted: two results of one "
            "experiment"
        )
    only = [f"{first[key].title}: only in the old results" for key in first if key not in second]
    only += [f"{second[key].title}: only in the new results" for key in second if key not in first]
    drafts = [
        row
        for key in common
        for name in wanted
        if (row := _row(name, first[key], second[key], tolerances)) is not None
    ]
    rows = corrected(drafts, correction)
    return Diff(rows, old, new, tuple(only), tuple(_notes(old, new, rows)), correction)


def identity(case: CaseResult) -> tuple[tuple[str, str], ...]:
    """Return what is the same of a case in two results of one experiment."""
    return tuple(sorted(case.labels.items()))


def _row(
    name: str, old: CaseResult, new: CaseResult, tolerances: Tolerances | None
) -> Moved | None:
    """Return a metric of a case; None when neither has a value of it."""
    differences, references = {}, []
    for number in sorted(old.runs.keys() & new.runs.keys()):
        was, now = (case.runs[number].metrics.get(name, math.nan) for case in (old, new))
        if not math.isnan(now - was):
            differences[number] = difference(now, was)
            references.append(was)
    means = (old.metric(name), new.metric(name))
    if all(math.isnan(each.mean) for each in means):
        return None
    unjudged = why_unjudged(name, old, new)
    return Moved(
        metric=name,
        title=old.title,
        means=means,
        differences=differences,
        reference=estimate(references).mean,
        tolerance=None if tolerances is None else tolerances.explicit(name),
        p=p_of(list(differences.values()), unjudged),
        refused=why_no_interval(name, old, new, len(differences)),
        unjudged=unjudged,
    )


def _notes(old: Results, new: Results, rows: Sequence[Moved]) -> list[str]:
    found = []
    for what, was, now in (
        ("redtail", old.provenance.version, new.provenance.version),
        ("code", old.made_by, new.made_by),
        ("backend", old.backend, new.backend),
        ("seed", old.provenance.seed, new.provenance.seed),
        ("overrides", ", ".join(old.provenance.sets), ", ".join(new.provenance.sets)),
    ):
        if was != now and (was or now):
            found.append(f"{what}: was {was or 'none'}, is {now or 'none'}")
    texts = (old.provenance.text, new.provenance.text)
    if None not in texts and texts[0] != texts[1]:
        found.append("the experiment's text is another")
    counts = [sum(len(case.runs) for case in each.cases) for each in (old, new)]
    if counts[0] != counts[1]:
        found.append(f"runs: were {counts[0]}, are {counts[1]}")
    uncertain = sum(row.verdict == "not certain" for row in rows)
    if uncertain:
        found.append(
            f"{names.counted(uncertain, 'difference')} not certain: of one observation, or of too "
            "few replications to tell it from noise; more replications or --tolerance decide it, "
            "and --exact asks whether every byte agrees"
        )
    return found


def _about(results: Results) -> dict[str, Any]:
    return {
        "folder": str(results.folder),
        "version": results.provenance.version,
        "backend": results.backend,
        "made_by": results.made_by,
        "seed": results.provenance.seed,
    }


def _share(row: Moved) -> float:
    share = abs(row.relative.mean)
    return math.inf if math.isnan(share) else share


def _shown_p(row: Moved) -> str:
    if row.p_adjusted is None:
        return "–"
    return "<0.001" if row.p_adjusted < 0.001 else f"{row.p_adjusted:.3f}"
