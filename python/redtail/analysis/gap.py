"""How far the backends of one experiment are apart, and whether that is inside a tolerance.

Which test. Every backend runs the same replications: the seed of replication k gives all of them
the same starts, sizes, pages and pauses (common random numbers). So what two backends measure in
one replication depends on one workload, and they are no two independent samples. Differences are
therefore taken replication by replication, second less first, and their mean carries Student's
interval (the paired t-test). It holds whether or not the two depend on each other, because the
replications do not; Welch's test for independent samples would hold only if nothing were drawn
that both use. Where that is so, pairing costs width: with five replications Student's t is that
of 4 degrees of freedom (2.78), and Welch's that of up to 8 (2.31).

The verdict on a difference with an interval, for a tolerance that allows ±a:

    inside        the whole interval is within ±a
    outside       the whole interval is above a, or the whole of it below -a
    not certain   the interval reaches across a or -a

A difference that is a or more is found inside in at most 2.5 % of comparisons, and one that is a or
less is found outside in at most 2.5 %. Where there is no interval (most
differences are equal, or `rare` refuses one) the exact sign test decides: inside if each difference
is within ±a, outside if each is above a or each below -a, from five replications on (the chance
that all five are on one side of their median is 3 %); otherwise it is not certain. With fewer
replications and no interval nothing is certain, and nothing is where the replications of a backend
are copies of one run, which are one observation. Each verdict is for its comparison alone.

A tolerance that is a share is one of the first backend's mean. The uncertainty of that mean is left
out: if it is off by 10 %, so is what the tolerance allows.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as field_of
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from redtail import escape
from redtail import metrics as names
from redtail.analysis.compare import Rows
from redtail.analysis.digits import shown
from redtail.analysis.paired import Paired, Unjudged, why_no_interval, why_unjudged
from redtail.analysis.stats import Estimate, difference, estimate
from redtail.analysis.tolerances import DEFAULTS, Tolerance, Tolerances
from redtail.errors import SpecError
from redtail.metrics import nearest

if TYPE_CHECKING:
    import os

    import pyarrow as pa
    from rich.table import Table

    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

Verdict = Literal["inside", "outside", "not certain", "not measured", "no tolerance"]
"""What is said of a difference; "not measured" when a backend has no value of the metric."""

FEWEST_SIGNS = 5
"""Replications from which the sign test is certain: 1/2 to this power is below 5 %."""

# Metrics of groups that are compared by default.
_TIMES = ("response_time_p50", "page_time_p50", "completion_time_mean")


@dataclass(frozen=True)
class Gap(Paired):
    """How far one backend is from another in one metric of one case.

    Attributes:
        metric: the metric's name.
        case: the number of the case, from 0.
        title: the case in one line.
        first: the name of the first backend, whose mean is subtracted.
        second: the name of the other.
        means: the estimate under each of the two, over all of its replications; SI units.
        differences: second less first by replication, where both have a value; SI units.
        reference: the first's mean over these replications.
        tolerance: how large the difference may be; None when the metric has no tolerance.
        missing: which of the two have no value of the metric, each with the reason: "no run" (of
            this case), "not measured" (in any case), or "no value" (in this one).
        refused: why there is no interval whatever the differences are; None when there may be one.
        unjudged: why there is no verdict either; None when there may be one.
        p: None, since a tolerance decides and no test.
        p_adjusted: None for the same reason.
        together: 1, as there is no correction.
    """

    metric: str
    case: int
    title: str
    first: str
    second: str
    means: tuple[Estimate, Estimate]
    differences: dict[int, float]
    reference: float
    tolerance: Tolerance | None
    missing: Mapping[str, str] = field_of(default_factory=dict)
    refused: str | None = None
    unjudged: Unjudged | None = None
    p: float | None = None
    p_adjusted: float | None = None
    together: int = 1

    @property
    def allowed(self) -> float | None:
        """The largest difference that is inside, in SI units; None when there is none."""
        if self.tolerance is None or math.isnan(self.reference):
            return None
        allowed = self.tolerance.allowed(self.reference)
        return allowed if allowed > 0 else None

    @property
    def size(self) -> float:
        """The difference without its sign, in units of the tolerance; NaN without either."""
        allowed = self.allowed
        return math.nan if allowed is None else abs(self.difference.mean) / allowed

    @property
    def verdict(self) -> Verdict:
        """Whether the difference is inside the tolerance, as the module's text says."""
        if self.missing or not self.differences:
            return "not measured"
        if self.tolerance is None:
            return "no tolerance"
        if self.unjudged is not None:
            return "not certain"
        allowed = self.allowed
        if allowed is None:  # a share of zero: nothing but zero is inside
            allowed = 0.0
        found = self.difference
        # Both ends of the mean's interval, or every difference.
        ends = list(self.differences.values())
        if found.ci95 is not None:
            ends = [found.low, found.high]
        elif len(ends) < FEWEST_SIGNS:
            return "not certain"
        if all(abs(end) <= allowed for end in ends):
            return "inside"
        if all(end > allowed for end in ends) or all(end < -allowed for end in ends):
            return "outside"
        return "not certain"

    def as_json(self) -> dict[str, Any]:
        """Return what `redtail compare --backends --json` prints of it, as Python objects."""
        size = self.size
        return {
            "metric": self.metric,
            "unit": names.describe(self.metric).unit,
            "case": self.title,
            "first": {"backend": self.first, **self.means[0].as_json()},
            "second": {"backend": self.second, **self.means[1].as_json()},
            "difference": self.difference.as_json(),
            "relative": self.relative.as_json(),
            "tolerance": None if self.tolerance is None else self.tolerance.text,
            "allowed": self.allowed,
            "size": None if math.isnan(size) else size,
            "verdict": self.verdict,
            "missing": dict(self.missing),
        }


@dataclass(frozen=True)
class Gaps(Rows[Gap]):
    """How far the backends of one experiment are apart.

    Attributes:
        rows: the differences: metric by metric, case by case, and backend by backend.
        results: the results under each backend, the first one's first.
        warnings: what to know before trusting them.
    """

    rows: tuple[Gap, ...]
    results: tuple[Results, ...]
    warnings: tuple[str, ...] = ()

    @property
    def backends(self) -> tuple[str, ...]:
        """The names of the backends."""
        return tuple(each.backend for each in self.results)

    @property
    def outside(self) -> tuple[Gap, ...]:
        """The differences that are outside their tolerances, the worst first."""
        return tuple(row for row in worst_first(self.rows) if row.verdict == "outside")

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many differences have each verdict."""
        return counted(self.rows)

    def to_arrow(self) -> pa.Table:
        """Return a row per difference, in SI units."""
        import pyarrow as pa

        from redtail.store.parquet import field

        of = "half-width of its 95 % interval"
        columns: list[tuple[pa.Field, list[Any]]] = [
            (field("metric", pa.string()), [row.metric for row in self.rows]),
            (field("unit", pa.string()), [names.describe(row.metric).unit for row in self.rows]),
            (field("case", pa.string()), [row.title for row in self.rows]),
            (field("first", pa.string()), [row.first for row in self.rows]),
            (field("second", pa.string()), [row.second for row in self.rows]),
        ]
        for place, which in enumerate(("first", "second")):
            columns += [
                (
                    field(f"{which}_mean", pa.float64()),
                    [_or_none(row.means[place].mean) for row in self.rows],
                ),
                (
                    field(f"{which}_ci95", pa.float64()),
                    [row.means[place].ci95 for row in self.rows],
                ),
            ]
        found = [row.difference for row in self.rows]
        columns += [
            (
                field("mean", pa.float64(), description="second less first, by replication"),
                [_or_none(each.mean) for each in found],
            ),
            (field("ci95", pa.float64(), description=of), [each.ci95 for each in found]),
            (
                field("n", pa.uint32(), description="replications that both have"),
                [each.n for each in found],
            ),
            (
                field("relative", pa.float64(), unit="1", description="mean over the first's"),
                [_or_none(row.relative.mean) for row in self.rows],
            ),
            (
                field("allowed", pa.float64(), description="the tolerance, in the metric's unit"),
                [row.allowed for row in self.rows],
            ),
            (field("verdict", pa.string()), [row.verdict for row in self.rows]),
        ]
        return pa.table(
            [values for _, values in columns], schema=pa.schema([each for each, _ in columns])
        )

    def as_json(self) -> dict[str, Any]:
        """Return what `redtail compare --backends --json` prints, as Python objects."""
        return {
            "format": 1,
            "experiment": self.results[0].name,
            "backends": [
                {"backend": each.backend, "made_by": each.made_by, "folder": str(each.folder)}
                for each in self.results
            ],
            "verdicts": self.counts,
            "gaps": [row.as_json() for row in self.rows],
        }

    def to_json(self) -> str:
        """Return what `redtail compare --backends --json` prints.

        The backends with what their runs depend on, how many differences have each verdict, and for
        each metric and case the estimate under both, the difference, its share of the first's mean,
        what the tolerance allows (in the metric's unit), and the verdict.
        """
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False, allow_nan=False)

    def table(self) -> Table:
        """Return the table that `redtail compare --backends` prints."""
        from rich import box
        from rich.table import Table

        first, *others = self.backends
        several = len(others) > 1
        titles = any(row.title for row in self.rows)
        table = Table(
            title=escape.title(
                f"{escape.name(self.results[0].name)}: {' and '.join(self.backends)}"
            ),
            title_justify="left",
            caption=_caption(self.rows, first),
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0),
            show_edge=False,
        )
        table.add_column("metric", no_wrap=True, vertical="bottom")
        if titles:
            table.add_column("case", vertical="bottom")
        if several:
            table.add_column("other", no_wrap=True, vertical="bottom")
        heads = (first, "the other's" if several else others[0])
        for head in (*heads, "difference", "%", "allowed"):
            table.add_column(escape.plain(head), justify="right", no_wrap=True, vertical="bottom")
        table.add_column("verdict", no_wrap=True, vertical="bottom")
        for row in self.rows:
            cells = [head_of(row.metric)]
            cells += [row.title] if titles else []
            cells += [row.second] if several else []
            table.add_row(*(escape.plain(escape.name(cell)) for cell in [*cells, *row_texts(row)]))
        return table

    def _repr_html_(self) -> str:
        """Return the table, for notebooks."""
        from redtail.display.tables import as_html

        return as_html([self.table()])

    def figures(
        self,
        folder: str | os.PathLike[str] | None = None,
        formats: Sequence[str] = ("png",),
    ) -> list[Path]:
        """Draw a figure for each metric, with all backends beside each other.

        Args:
            folder: where to; by default a folder of the backends' names in the figures of the
                first one's results.
            formats: of each figure: "png", "svg", "pdf".

        Returns:
            The paths of the files.
        """
        from redtail.display import plots  # loads Matplotlib
        from redtail.files import path_of
        from redtail.store.format import figures_of

        name = f"compare-{'-'.join(self.backends)}"
        into = figures_of(self.results[0].folder, name) if folder is None else path_of(folder)
        return plots.draw_gaps(self, into, formats)


def row_texts(row: Gap) -> list[str]:
    """Return a difference as the cells of a table: means, difference, share, allowed, verdict."""
    scale = names.describe(row.metric).scale
    verdict: str = row.verdict
    if verdict == "not measured":
        by = {"no run": "no run of", "not measured": "not measured by", "no value": "no value in"}
        found = [f"{by[reason]} {name}" for name, reason in row.missing.items()]
        verdict = ", ".join(found) or "no replication has both"
    allowed = row.allowed
    return [
        *("–" if math.isnan(each.mean) else shown(each, scale) for each in row.means),
        shown(row.difference, scale),
        "–" if math.isnan(row.relative.mean) else f"{100 * row.relative.mean:.2g}",
        "–" if allowed is None else f"{allowed * scale:.3g}",
        verdict,
    ]


def head_of(metric: str) -> str:
    """Return a metric with its unit on one line.

    >>> head_of("web.goodput")
    'web: goodput Mbit/s'
    """
    return " ".join(names.head(metric).split())


def counted(rows: Sequence[Gap]) -> dict[Verdict, int]:
    """Return how many of some differences have each verdict."""
    found = Counter(row.verdict for row in rows)
    return {verdict: found[verdict] for verdict in get_args(Verdict) if found[verdict]}


def in_words(rows: Sequence[Gap]) -> str:
    """Return how many of some differences have each verdict, in one line."""
    return ", ".join(f"{number} {verdict}" for verdict, number in counted(rows).items())


def worst_first(rows: Sequence[Gap]) -> list[Gap]:
    """Return differences by their size in units of the tolerance, the largest first."""
    return sorted(rows, key=lambda row: -1.0 if math.isnan(row.size) else row.size, reverse=True)


def gaps(
    results: Sequence[Results],
    *,
    metrics: Sequence[str] | None = None,
    tolerances: Tolerances | None = None,
) -> Gaps:
    """Lay the results of one experiment under several backends beside each other.

    Args:
        results: the results under each backend; every other one is compared with the first.
        metrics: the metrics; without them those of `tolerances.DEFAULTS`, and those to which
            `tolerances` gives one.
        tolerances: how large differences may be.

    Returns:
        A difference for each metric, case and further backend. A metric that a backend has no value
        of is among them as not measured; one that none has a value of is only if it was asked for.

    Raises:
        SpecError: there is no such metric, or the results are not of the same cases.
    """
    first, *others = results
    tolerances = tolerances or Tolerances()
    for other in others:
        if [case.labels for case in other.cases] != [case.labels for case in first.cases]:
            raise SpecError(
                f"the results of {first.backend} and {other.backend} have different cases; "
                "accepted: results of the same experiment with the same --set"
            )
    known = [name for each in results for name in each.metric_names]
    chosen = _chosen(results, tolerances) if metrics is None else metrics
    wanted = [names.named(known, name) for name in dict.fromkeys(chosen)]
    rows = []
    for name in wanted:
        for number, case in enumerate(first.cases):
            for other in others:
                row = _gap(name, number, first, other, case, other.cases[number], tolerances)
                if metrics is not None or len(row.missing) < 2:
                    rows.append(row)
    return Gaps(tuple(rows), tuple(results), tuple(_warnings(rows, results)))


def require_metrics(wanted: Sequence[str], known: Sequence[str]) -> None:
    """Refuse metrics that no backend has measured.

    Raises:
        SpecError: there is one.
    """
    for name in wanted:
        if name not in known:
            raise SpecError(
                f"--metric {name}: there is no such metric here{nearest(known, name)}",
                key=name,
            )


def _gap(
    name: str,
    number: int,
    first: Results,
    other: Results,
    one: CaseResult,
    two: CaseResult,
    tolerances: Tolerances,
) -> Gap:
    differences, references = {}, []
    for replication in sorted(one.runs.keys() & two.runs.keys()):
        a, b = (case.runs[replication].metrics.get(name, math.nan) for case in (one, two))
        if not math.isnan(b - a):
            differences[replication] = difference(b, a)
            references.append(a)
    means = (one.metric(name), two.metric(name))
    return Gap(
        metric=name,
        case=number,
        title=one.title,
        first=first.backend,
        second=other.backend,
        means=means,
        differences=differences,
        reference=estimate(references).mean,
        tolerance=tolerances.of(name),
        missing={
            results.backend: _reason(name, results, case)
            for results, case, mean in zip((first, other), (one, two), means, strict=True)
            if math.isnan(mean.mean)
        },
        refused=why_no_interval(name, one, two, len(differences)),
        unjudged=why_unjudged(name, one, two),
    )


def _reason(name: str, results: Results, case: CaseResult) -> str:
    """Return why a case has no value of a metric."""
    if not case.runs:
        return "no run"
    return "no value" if name in results.metric_names else "not measured"


def _chosen(results: Sequence[Results], tolerances: Tolerances) -> list[str]:
    """Return the metrics to compare when none is named.

    Those of `DEFAULTS` and those that are given a tolerance, of all traffic and of each further
    queue; the times of each group, and the goodput of each group when there are several; `mark`
    only if a packet was marked.
    """
    present = list(dict.fromkeys(name for each in results for name in each.metric_names))
    links = {link for each in results for link in each.links}
    several = sum(name.count(".") == 1 and name.endswith(".goodput") for name in present) > 1
    found = []
    for wanted in dict.fromkeys((*DEFAULTS, *tolerances.given)):
        if "." in wanted:  # a whole name
            found += [wanted] if wanted in present else []
            continue
        for name in present:
            of = names.prefix(name)
            if names.base(name) != wanted or "." in of or names.phase(name) is not None:
                continue
            group = wanted in _TIMES or (wanted == "goodput" and several)
            if of and not group and of not in links:
                continue
            if wanted == "mark" and not any(
                value > 0 for each in results for case in each.cases for value in case.values(name)
            ):
                continue
            found.append(name)
    return found


def _warnings(rows: Sequence[Gap], results: Sequence[Results]) -> list[str]:
    found = []
    if not rows:
        found.append("no backend has measured any of the metrics, so there is nothing to compare")
    fewest = min((len(case.runs) for each in results for case in each.cases), default=0)
    if fewest < 2:
        found.append(
            f"a case has {names.counted(fewest, 'replication')} under one of the backends; "
            "there is no interval to judge"
        )
    return found


def _caption(rows: Sequence[Gap], first: str) -> str:
    lines = [
        "mean ± half-width of the 95 % interval; differences are paired by replication, and a",
        f"verdict is for each alone; % and shares in tolerances are of the mean of {first}",
    ]
    if any(row.verdict == "not certain" for row in rows):
        lines.append("not certain: the interval of the difference reaches across the tolerance")
    return "\n".join(lines)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
