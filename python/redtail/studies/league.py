"""The league of a suite: subjects ranked by each criterion, with ties as ties.

Each replication of an experiment has the same random numbers whatever the subject is, so subjects
are compared by their differences, replication by replication (`analysis.paired`). One subject is
better than another by a criterion if the mean difference is above the smallest difference that
matters, `matters` of the criterion: a paired test at 5 %, corrected by Holm for all pairs of the
column. All other pairs are ties.

Being tied does not carry over: A may be tied with B, B with C, and A still be better than C. So a
rank is not a place in a sorted list. It is one more than the number of subjects that are better,
and at most the number of subjects less those that are worse. With 95 % the true ranks of all
subjects lie within these bounds at once, as no test of the column is wrong with this probability
(for differences that matter). The rows of the table are in the order of the middle of these bounds,
on average over all columns. It is the number of subjects that are better less that of those that
are worse (Copeland's score), so that a subject of which little is known comes in the middle.

Source: A. M. Mohamad, J. J. Goeman, E. W. van Zwet, "Simultaneous confidence intervals for ranks
using the partitioning principle", Electronic Journal of Statistics 15 (2021) 2608-2646, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from redtail.analysis.paired import (
    Paired,
    Unjudged,
    corrected,
    p_of,
    why_no_interval,
    why_unjudged,
)
from redtail.analysis.stats import Estimate, difference
from redtail.analysis.tolerances import Tolerance
from redtail.metrics import Metric
from redtail.studies.definition import Criterion
from redtail.studies.grid import Grid


@dataclass(frozen=True)
class Distance(Paired):
    """How far one subject is from another, beyond the smallest difference that matters.

    Attributes:
        first: the label of one.
        second: the label of the other, which is subtracted.
        differences: first less second by replication, less what does not matter; as they are where
            their mean does not matter.
        reference: the larger of the two means.
        refused: why there is no interval whatever the differences are; None when there may be one.
        unjudged: why there is no verdict either; None when there may be one.
        p: the p-value of the test; None without a test.
        p_adjusted: the same after the correction.
        together: how many tests the correction allows for.
    """

    first: str
    second: str
    differences: dict[int, float]
    reference: float
    refused: str | None
    unjudged: Unjudged | None
    p: float | None
    p_adjusted: float | None = None
    together: int = 1


@dataclass(frozen=True)
class Ranked:
    """A subject in a column.

    Attributes:
        value: the mean with its interval.
        values: the replications, by number.
        first: one more than the number of subjects that are better.
        last: the number of subjects less those that are worse.
        unjudged: why it could not be compared with some; empty where it was with all.
    """

    value: Estimate
    values: Mapping[int, float]
    first: int
    last: int
    unjudged: str = ""

    @property
    def middle(self) -> float:
        """The middle of the bounds."""
        return (self.first + self.last) / 2

    @property
    def rank(self) -> str:
        """The rank with its bounds: "2", or "2-5" where ties leave it open."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class Column:
    """A criterion with what it says of each subject.

    Attributes:
        criterion: the criterion.
        about: how its metric is shown.
        ranked: the subjects that have a value, by label.
        absent: why the others have none, by label.
        pairs: all pairs of those with a value.
    """

    criterion: Criterion
    about: Metric
    ranked: Mapping[str, Ranked]
    absent: Mapping[str, str]
    pairs: tuple[Distance, ...]


@dataclass(frozen=True)
class Entry:
    """A row of the table.

    Attributes:
        labels: the subjects that it is of: several where they are equal in every replication of
            every column.
        place: its place by the mean rank; None where a column has no value of it.
        mean_rank: the mean over all columns of the middle of its bounds; NaN without a place.
    """

    labels: tuple[str, ...]
    place: int | None
    mean_rank: float


def distance(
    grid: Grid,
    metric: str,
    first: str,
    second: str,
    loads: Sequence[float],
    values: Mapping[str, Mapping[int, float]],
    least: Tolerance | None = None,
) -> Distance:
    """Return how far one subject is from another, before any correction.

    Args:
        grid: the results.
        metric: a metric or measure.
        first: the label of one subject.
        second: the label of the other.
        loads: of several loads each replication counts with its mean.
        values: the replications of both, by label, as `by_replication` returns them.
        least: the smallest difference that matters; None where each does.
    """
    one, other = values[first], values[second]
    found = {
        number: difference(one[number], other[number])
        for number in sorted(one.keys() & other.keys())
        if not math.isnan(one[number] - other[number])
    }
    pairs = [(grid.case(first, load), grid.case(second, load)) for load in loads]
    unjudged = next(filter(None, (why_unjudged(metric, *pair) for pair in pairs)), None)
    whys = (why_no_interval(metric, *pair, len(found)) for pair in pairs)
    refused = next(filter(None, whys), None)
    means = [abs(fmean(each[number] for number in found)) for each in (one, other) if found]
    reference = max(means, default=math.nan)
    margin = 0.0 if least is None or not found else least.allowed(reference)
    mean = fmean(found.values()) if found else math.nan
    if not found or abs(mean) <= margin:
        p = p_of([0.0] * len(found), unjudged)
    else:
        found = {number: each - math.copysign(margin, mean) for number, each in found.items()}
        p = p_of(list(found.values()), unjudged)
    return Distance(first, second, found, reference, refused, unjudged, p)


def by_replication(grid: Grid, metric: str, label: str, loads: Sequence[float]) -> dict[int, float]:
    """Return a metric or measure by the number of the replication, the mean over loads."""
    columns = [
        dict(
            zip(sorted(grid.case(label, load).runs), grid.values(metric, label, load), strict=True)
        )
        for load in loads
    ]
    shared = set.intersection(*(set(each) for each in columns))
    return {number: fmean(each[number] for each in columns) for number in sorted(shared)}


def column(criterion: Criterion, grid: Grid, labels: Iterable[str]) -> Column:
    """Rank subjects by a criterion.

    Args:
        criterion: the criterion.
        grid: the results that it looks at.
        labels: the subjects.
    """
    about = grid.describe(criterion.metric)
    loads = grid.loads if criterion.load is None else (grid.named.find(criterion.load),)
    values: dict[str, dict[int, float]] = {}
    absent: dict[str, str] = {}
    for label in labels:
        if not all(grid.has(label, load) for load in loads):
            absent[label] = "not run"
            continue
        found = by_replication(grid, criterion.metric, label, loads)
        if all(map(math.isnan, found.values())):
            absent[label] = "no value"
        else:
            values[label] = found
    least = criterion.least(about)
    pairs = corrected(
        [
            distance(grid, criterion.metric, first, second, loads, values, least)
            for first, second in combinations(values, 2)
        ],
        "holm",
    )
    better = dict.fromkeys(values, 0)
    worse = dict.fromkeys(values, 0)
    unjudged = dict.fromkeys(values, "")
    for pair in pairs:
        match pair.judged:
            case "higher" | "lower" as side:
                first_wins = (side == "lower") == (criterion.better == "less")
                winner, loser = pair.first, pair.second
                if not first_wins:
                    winner, loser = loser, winner
                better[loser] += 1
                worse[winner] += 1
            case "one observation" | "not comparable" | "no value":
                why = pair.unjudged.why if pair.unjudged else pair.judged
                for label in (pair.first, pair.second):
                    unjudged[label] = unjudged[label] or why
            case _:
                pass
    ranked = {
        label: Ranked(
            grid.combined(fmean, *((criterion.metric, label, load) for load in loads)),
            found,
            1 + better[label],
            len(values) - worse[label],
            unjudged[label],
        )
        for label, found in values.items()
    }
    return Column(criterion, about, ranked, absent, pairs)


def entries(columns: Sequence[Column], labels: Iterable[str]) -> tuple[Entry, ...]:
    """Return the rows of the table: the best first, by the mean of their ranks.

    Subjects without a value in a column have no place, and come last in their own order.
    """
    groups: dict[object, list[str]] = {}
    for label in labels:
        groups.setdefault(tuple(_content(each, label) for each in columns), []).append(label)
    means = {
        tuple(group): fmean(each.ranked[group[0]].middle for each in columns)
        for group in groups.values()
        if columns and all(group[0] in each.ranked for each in columns)
    }
    # Each subject counts, also those that share a row.
    all_means = [mean for group, mean in means.items() for _ in group]
    placed = [
        Entry(group, 1 + sum(each < mean for each in all_means), mean)
        for group, mean in means.items()
    ]
    placed.sort(key=lambda entry: entry.mean_rank)
    others = (Entry(tuple(group), None, math.nan) for group in groups.values())
    return (*placed, *(each for each in others if each.labels not in means))


def _content(of: Column, label: str) -> object:
    """Return what two subjects have in common where they are equal in a column."""
    if label not in of.ranked:
        return of.absent.get(label, "")
    return tuple((number, repr(value)) for number, value in of.ranked[label].values.items())


def against(grid: Grid, metrics: Sequence[str], control: str) -> dict[tuple[str, str, float], str]:
    """Judge each subject against the control, at each load, in several metrics.

    Returns:
        "higher" or "lower" by metric, label and load, where they differ: a paired test at 5 %,
        corrected by Holm for all of a label's tests.
    """
    drafts: dict[str, dict[tuple[str, str, float], Distance]] = {}
    for metric in metrics:
        for load in grid.loads:
            present = [label for label in grid.queues if grid.has(label, load)]
            if control not in present:
                continue
            values = {label: by_replication(grid, metric, label, (load,)) for label in present}
            for label in present:
                if label != control:
                    drafts.setdefault(label, {})[metric, label, load] = distance(
                        grid, metric, label, control, (load,), values
                    )
    return {
        cell: row.words
        for of_label in drafts.values()
        for cell, row in zip(of_label, corrected(list(of_label.values()), "holm"), strict=True)
        if row.distinguishable
    }
