"""Measures how often the 95 % intervals hold the true mean, and writes the tables of coverage.md.

    .venv/bin/python docs/explanation/coverage.py [--out DIR] [--jobs N]

Two scenarios, each behind three queues and 2000 times with other random numbers: 200 experiments of
ten replications. What an interval should hold is the mean over all 2000. Runs are kept in DIR
(target/coverage by default) and not made again; all of them take some five minutes of processor
time.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import redtail
from redtail import metrics as names
from redtail.analysis.case import CaseResult
from redtail.analysis.paired import why_no_interval as why_no_difference
from redtail.analysis.rare import why_no_interval
from redtail.analysis.results import Results
from redtail.analysis.stats import Estimate, estimate, paired_difference, t_quantile
from redtail.studies import pages

PAGE = Path(__file__).with_suffix(".md")
OUT = Path(__file__).parents[2] / "target" / "coverage"

EXPERIMENTS = 200
REPLICATIONS = 10
LEAST, MOST = 0.90, 0.97
"""What an interval of 95 % should cover."""

SCENARIOS = sorted(PAGE.with_suffix("").glob("*.toml"))


@dataclass(frozen=True)
class Coverage:
    """How often intervals of a metric held its true mean.

    Attributes:
        metric: the metric's name.
        shown: experiments with an interval.
        held: of these, the experiments whose interval held the true mean.
        student: of all experiments with two values or more, the share in which Student's interval
            alone would have.
    """

    metric: str
    shown: int
    held: int
    student: float

    @property
    def share(self) -> float:
        """Share of the intervals that held the true mean; NaN without one."""
        return self.held / self.shown if self.shown else math.nan

    @property
    def outside(self) -> bool:
        """Whether the share is below what it should be by more than chance.

        By more than 1.96 standard errors of a share of so many that is `LEAST`: one in forty
        that cover just so often is taken to be outside.
        """
        error = math.sqrt(LEAST * (1 - LEAST) / self.shown) if self.shown else math.inf
        return self.share < LEAST - 1.96 * error


def main() -> None:
    """Run both scenarios and fill the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--jobs", type=int)
    given = parser.parse_args()
    blocks: dict[str, list[str]] = {}
    for file in SCENARIOS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # single flows stall, as they may
            results = redtail.run(
                file, out=given.out, jobs=given.jobs, replications=EXPERIMENTS * REPLICATIONS
            )
        blocks |= {f"{file.stem}: {mark}": lines for mark, lines in tables(results)}
    PAGE.write_text(pages.filled(PAGE.read_text(), blocks))


def tables(results: Results) -> Iterator[tuple[str, list[str]]]:
    """Yield the marks of the page and the lines that stand there."""
    queues = {case.labels["bottleneck.queue"]: measured(case) for case in results.cases}
    first = results.cases[0]
    pairs = {
        f"{case.labels['bottleneck.queue']} less {first.labels['bottleneck.queue']}": (
            measured_difference(case, first)
        )
        for case in results.cases[1:]
    }
    yield "summary", summary({**queues, **pairs})
    yield "metrics", by_metric(queues)


def measured(case: CaseResult) -> list[Coverage]:
    """Return the coverage of each metric of a case."""
    found = []
    for name in case.metrics:
        values = case.values(name)
        estimates = []
        for part in parts(values):
            each = estimate(part)
            why = why_no_interval(name, case.sharing, each.n, case.values)
            estimates.append(each if why is None else each.without_interval(why))
        found.append(covered(name, values, estimates))
    return found


def measured_difference(case: CaseResult, base: CaseResult) -> list[Coverage]:
    """Return the coverage of each metric's difference between two cases."""
    found = []
    for name in base.metrics:
        first, second = case.values(name), base.values(name)
        estimates = []
        for one, other in zip(parts(first), parts(second), strict=True):
            each = paired_difference(one, other)
            why = why_no_difference(name, case, base, each.n)
            estimates.append(each if why is None else each.without_interval(why))
        differences = [a - b for a, b in zip(first, second, strict=True)]
        found.append(covered(name, differences, estimates))
    return found


def parts(values: Sequence[float]) -> Iterator[Sequence[float]]:
    """Yield the replications of each experiment."""
    for start in range(0, len(values), REPLICATIONS):
        yield values[start : start + REPLICATIONS]


def covered(name: str, values: Sequence[float], estimates: Sequence[Estimate]) -> Coverage:
    """Return how often these estimates hold the mean of all values."""
    known = [value for value in values if not math.isnan(value)]
    truth = math.fsum(known) / len(known) if known else math.nan
    shown = [each for each in estimates if each.ci95 is not None]
    alone = [student(part) for part in parts(values)]
    judged = [each for each in alone if each is not None]
    return Coverage(
        name,
        len(shown),
        sum(each.low <= truth <= each.high for each in shown),
        sum(abs(mean - truth) <= half + 1e-12 * abs(truth) for mean, half in judged) / len(judged)
        if judged
        else math.nan,
    )


def student(part: Sequence[float]) -> tuple[float, float] | None:
    """Return a mean and half of Student's interval, whatever the values look like."""
    used = [value for value in part if not math.isnan(value)]
    if len(used) < 2:
        return None
    mean = math.fsum(used) / len(used)
    variance = math.fsum((value - mean) ** 2 for value in used) / (len(used) - 1)
    return mean, t_quantile(0.95, len(used) - 1) * math.sqrt(variance / len(used))


def summary(cases: dict[str, list[Coverage]]) -> list[str]:
    """Return a row per case: how its intervals cover together, and which do not."""
    rows = []
    for title, found in cases.items():
        # Few intervals tell little of how often they hold.
        shown = [each for each in found if each.shown >= EXPERIMENTS / 10]
        alone = [each.student for each in found if not math.isnan(each.student)]
        rows.append(
            (
                title,
                len(found),
                percent(math.fsum(alone) / len(alone)),
                percent(min(alone)),
                len(shown),
                percent(math.fsum(each.share for each in shown) / len(shown)),
                percent(min(each.share for each in shown)),
                ", ".join(f"`{each.metric}`" for each in shown if each.outside) or "none",
            )
        )
    student = ("Student's alone, mean", "Student's alone, least")
    heads = (None, "metrics", *student, "with an interval", "mean", "least", "outside")
    return pages.table(heads, rows)


def by_metric(queues: dict[str, list[Coverage]]) -> list[str]:
    """Return a row per metric, a column per queue."""
    known = {title: {each.metric: each for each in found} for title, found in queues.items()}
    rows = dict.fromkeys(name for found in known.values() for name in found)
    names_of = sorted(rows, key=lambda name: (names.prefix(name), list(rows).index(name)))
    return pages.table(
        ("metric", *queues),
        ((f"`{name}`", *(cell(found.get(name)) for found in known.values())) for name in names_of),
    )


def cell(found: Coverage | None) -> str:
    """Return the coverage, and in how many experiments there was an interval if not in all."""
    if found is None:
        return ""
    if not found.shown:
        return "–"
    held = percent(found.share)
    if found.shown == EXPERIMENTS:
        return held
    return f"{held} ({found.held} of {found.shown})"


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.1f}"


if __name__ == "__main__":
    main()
