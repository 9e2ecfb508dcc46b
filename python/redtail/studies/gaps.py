"""A study of backends: its experiments run under several, and what is apart and what is not.

The code must not know a queue, or the reason of a gap: experiments (`[gaps]` of a study) and
explanations (`explanations.toml` beside it) are data. A *cell* is one metric of one case. The name
of a case is that of its file and the labels of its factors: `fast/red/16`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from redtail import backends as known
from redtail import experiment
from redtail.analysis.gap import Gap, Gaps, Verdict, gaps
from redtail.analysis.gap import counted as by_verdict
from redtail.analysis.tolerances import Tolerances
from redtail.engine.plans import Plan
from redtail.errors import SpecError, StoreError
from redtail.experiment import toml_value
from redtail.files import path_of
from redtail.metrics import counted
from redtail.running import gaps as running
from redtail.store import objects
from redtail.studies import definition
from redtail.studies.definition import Study
from redtail.studies.reading import Placed, key

if TYPE_CHECKING:
    from redtail.analysis.results import Results
    from redtail.progress import Progress

# More replications of a case than this are not looked for in a store.
_MOST = 10_000

VALIDATION = definition.FOLDER / "validation"
"""The study that is run when no other is named: the simulator against a kernel."""


@dataclass(frozen=True)
class Explanation(Placed):
    """Why gaps are what they are.

    Attributes:
        pattern: the cases, as for `--only`.
        text: the reason.
        metric: the metrics, as a pattern.
    """

    pattern: str
    text: str
    metric: str = "*"

    def __post_init__(self) -> None:
        """Refuse a pattern or a reason that is empty."""
        for name in ("pattern", "text", "metric"):
            if not getattr(self, name):
                raise SpecError("= ''; accepted: a text that is not empty", key=name)

    def fits(self, cell: Cell) -> bool:
        """Return whether this is about a cell."""
        return _fits(cell.name, self.pattern) and fnmatchcase(cell.gap.metric, self.metric)


@dataclass(frozen=True)
class Explanations(Placed):
    """The explanations of a file."""

    explanations: tuple[Explanation, ...] = key("explanation", default=())


@dataclass(frozen=True)
class Cell:
    """One metric of one case.

    Attributes:
        name: the case: its file and the labels of its factors.
        gap: how far the backends are apart.
    """

    name: str
    gap: Gap


@dataclass(frozen=True)
class Validation:
    """A study, run under several backends.

    Attributes:
        studies: the differences of each experiment, by the name of its file.
        cells: all of them, experiment by experiment.
        explanations: what explains those outside.
        between: the same metrics of the same cases, with the second backend in place of the first;
            none if there are only two.
        absent: the cases that are left out, because a backend has no stored run of them.
        unable: why a backend cannot run an experiment, by the name of its file and the backend.
    """

    studies: Mapping[str, Gaps]
    cells: tuple[Cell, ...]
    explanations: tuple[Explanation, ...] = ()
    between: tuple[Cell, ...] = ()
    absent: tuple[str, ...] = ()
    unable: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def backends(self) -> tuple[str, ...]:
        """The names of the backends, the first of which the others are compared with."""
        return tuple(self.made_by)

    @property
    def made_by(self) -> dict[str, str | None]:
        """What the runs of each backend depend on, by its name."""
        # Where a backend cannot run an experiment, this has fewer.
        largest_first = sorted(self.studies.values(), key=lambda study: -len(study.results))
        found: dict[str, str | None] = {}
        for study in largest_first:
            for each in study.results:
                found.setdefault(each.backend, each.made_by)
        return found

    @property
    def judged(self) -> tuple[Cell, ...]:
        """The cells that have a difference and a tolerance."""
        return _judged(self.cells)

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many cells have each verdict."""
        return by_verdict([cell.gap for cell in self.cells])

    @property
    def pairs(self) -> list[tuple[str, str, Validation]]:
        """The names of each two backends that are compared, and their cells alone.

        These are each with the first, then each further one with the second.
        """
        first, second, *others = self.backends
        found = []
        for one, two in [(first, second), *((a, b) for a in (first, second) for b in others)]:
            cells = self.cells if one == first else self.between
            of_two = tuple(
                cell for cell in cells if (cell.gap.first, cell.gap.second) == (one, two)
            )
            found.append((one, two, replace(self, cells=of_two)))
        return found

    @property
    def replications(self) -> dict[int, int]:
        """How many cases have how many replications, the smallest number first."""
        largest: dict[str, int] = {}
        for cell in self.judged:
            largest[cell.name] = max(largest.get(cell.name, 0), len(cell.gap.differences))
        return dict(sorted(Counter(largest.values()).items()))

    @property
    def failed(self) -> int:
        """Number of runs that failed and are missing."""
        return sum(each.failed for study in self.studies.values() for each in study.results)

    def with_verdict(self, verdict: Verdict) -> list[Cell]:
        """Return the cells with a verdict, the largest gap first, in units of its tolerance."""
        found = [cell for cell in self.cells if cell.gap.verdict == verdict]
        return sorted(found, key=lambda cell: (-_size(cell), cell.name, cell.gap.metric))

    def explained(self, cell: Cell) -> str:
        """Return what explains a cell; empty when nothing does."""
        return " ".join(each.text for each in self.explanations if each.fits(cell))

    @property
    def stale(self) -> list[Explanation]:
        """Explanations of cells that were compared, none of which is outside its tolerance."""
        outside = self.with_verdict("outside")
        return [
            each
            for each in self.explanations
            if any(map(each.fits, self.cells)) and not any(map(each.fits, outside))
        ]

    def as_json(self) -> dict[str, Any]:
        """Return what `redtail validate --json` prints, as Python objects."""
        return {
            "format": 1,
            "backends": [
                {"backend": name, "made_by": made_by} for name, made_by in self.made_by.items()
            ],
            "verdicts": self.counts,
            "failed_runs": self.failed,
            "cells": [
                {**cell.gap.as_json(), "case": cell.name, "explanation": self.explained(cell)}
                for cell in self.cells
            ],
            "between": [{**cell.gap.as_json(), "case": cell.name} for cell in self.between],
            "absent": list(self.absent),
            "unable": [
                {"experiment": file, "backend": name, "reason": reason}
                for (file, name), reason in self.unable.items()
            ],
        }


def _judged(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    return tuple(cell for cell in cells if cell.gap.verdict in ("inside", "outside", "not certain"))


def read(study: str | os.PathLike[str] | None = None) -> Study:
    """Read a study with a table `[gaps]`, by its folder; without one the validation.

    Raises:
        SpecError: there is none, or its files are not valid.
    """
    found = definition.load(VALIDATION if study is None else study)
    if found.gaps is None:
        raise found.refused("gaps", None, ["a table [gaps] with files"])
    return found


def names(only: Sequence[str] = (), study: Study | None = None) -> list[str]:
    """Return the names of the cases.

    Args:
        only: patterns of names; as for `validate`.
        study: as `read` returns it.

    Raises:
        SpecError: a pattern fits no case.
    """
    return [name for _, _, kept in plans(study or read(), only) for name in kept]


def validate(
    backends: Sequence[str] | None = None,
    *,
    study: Study | None = None,
    only: Sequence[str] = (),
    replications: int | None = None,
    at_most: int | None = None,
    explanations: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    out: str | os.PathLike[str] = "runs",
    progress: Callable[[Progress], None] | None = None,
    stored_only: bool = False,
) -> Validation:
    """Run a study under several backends, and compare what they measure.

    Runs that are stored are not made again, so that a validation that was stopped goes on from
    there. A run that fails is left out, and the others are made. A backend leaves out an experiment
    that it cannot run, such as one with a queue that is newer than a kernel.

    Args:
        backends: their names; each of the others is compared with the first. Without them those of
            the study.
        study: as `read` returns it; without one the validation.
        only: patterns of names of cases (`fast/red/*`; `fast` stands for `fast/*`), by default
            all. One that begins with `!` leaves cases out.
        replications: overrides the number of replications.
        at_most: while a metric of a case is not found inside, the case gets twice as many
            replications, up to this number; without it all cases have the same number.
        explanations: a TOML file, by default `explanations.toml` of the study.
        jobs: number of runs at the same time; by default one per processor.
        out: folder of the store.
        progress: called after each finished run.
        stored_only: make no run; compare the replications that are stored under all backends, of
            each case at most `at_most`, and leave out cases without any.

    Raises:
        SpecError: a pattern fits no case, no two backends can run an experiment, or `at_most` is
            less than the number of replications.
        StoreError: results cannot be written, or no run is stored with `stored_only`.
        Cancelled: it was interrupted; what was finished is kept.
    """
    if stored_only and not objects.is_url(out) and not path_of(out).is_dir():
        raise StoreError(f"{out}: there is no such folder, so no run is stored")
    study = study or read()
    if backends is None:
        backends = study.gaps.backends if study.gaps else ()
    running.require_several(backends)
    file = study.folder / "explanations.toml" if explanations is None else path_of(explanations)
    has_reasons = explanations is not None or file.exists()
    reasons = Explanations.read(file).explanations if has_reasons else ()
    chosen = plans(study, only, replications)
    able, unable = _able(chosen, backends)
    _require_more(at_most, [plan for _, plan, _ in chosen])
    asked = {name for file, _, names in chosen if file in able for name in names}
    studies: dict[str, Gaps] = {}
    allowed = study.gaps.allowed if study.gaps else None
    limits = Tolerances(allowed.given if allowed else {})
    due = {file: plan for file, plan, _ in chosen if file in able}
    while due:
        of_backends = next(iter(able[file] for file in due))
        together = {file: plan for file, plan in due.items() if able[file] == of_backends}
        found = running.execute_all(
            list(together.values()),
            of_backends,
            keep_going=True,
            jobs=jobs,
            out=out,
            progress=progress,
            stored_only=stored_only,
        )
        more = {file: plan for file, plan in due.items() if file not in together}
        for (file, plan), *results in zip(together.items(), *found, strict=True):
            before = _in_all(studies[file].results) if file in studies else None
            studies[file] = gaps(results, tolerances=limits)
            if stored_only and before == _in_all(results):
                continue  # the last replications that were asked for are not stored
            if stored_only:
                counts = doubled(plan, range(len(plan.cases)), at_most or _MOST)
            else:
                counts = doubled(plan, _doubtful(file, studies[file], asked), at_most)
            if counts is not None:
                more[file] = plan.with_counts(counts)
        due = more
    absent = tuple(
        name
        for file, of in studies.items()
        for case, runs in zip(of.results[0].cases, _in_all(of.results), strict=True)
        if stored_only and not runs and (name := _name(file, case.labels)) in asked
    )
    kept = asked.difference(absent)
    if not kept:
        raise StoreError(
            f"{out}: no run of {counted(len(asked), 'case')} is stored under all backends "
            f"({', '.join(backends)})"
        )
    cells: list[Cell] = []
    between: list[Cell] = []
    for name, of in studies.items():
        cells += _cells(name, of, kept)
        if len(of.results) > 2:
            metrics = list(dict.fromkeys(row.metric for row in of))
            others = gaps(of.results[1:], metrics=metrics, tolerances=limits)
            between += _judged(_cells(name, others, kept))
    return Validation(studies, tuple(cells), reasons, tuple(between), absent, unable)


def _able(
    chosen: Iterable[tuple[str, Plan, list[str]]], backends: Sequence[str]
) -> tuple[dict[str, tuple[str, ...]], dict[tuple[str, str], str]]:
    """Return the backends that can run each experiment, and why others cannot.

    Experiments that fewer than two can run are not among them.

    Raises:
        SpecError: there is none that two can run.
    """
    able: dict[str, tuple[str, ...]] = {}
    unable: dict[tuple[str, str], str] = {}
    for file, plan, _ in chosen:
        refusals = {name: known.find(name).refuse(plan) for name in backends}
        for name, refused in refusals.items():
            if refused:
                texts = dict.fromkeys(f"{each.key}: {each.reason}" for each in refused)
                unable[file, name] = "; ".join(texts)
        left = tuple(name for name in backends if not refusals[name])
        if backends[0] in left and len(left) > 1:
            able[file] = left
    if not able:
        running.require_able([plan for _, plan, _ in chosen], backends)
    return able, unable


def _doubtful(file: str, study: Gaps, kept: Container[str]) -> set[int]:
    """Return the cases of which a metric is not found inside.

    Also those outside: of many cells that are inside, some are found outside by chance.
    """
    return {
        cell.gap.case
        for cell in _cells(file, study, kept)
        if cell.gap.verdict in ("not certain", "outside")
    }


def _in_all(results: Sequence[Results]) -> list[int]:
    """Return how many replications of each case all backends have."""
    of_cases = zip(*(each.cases for each in results), strict=True)
    return [len(set.intersection(*(set(case.runs) for case in cases))) for cases in of_cases]


def _cells(file: str, study: Gaps, kept: Container[str]) -> Iterator[Cell]:
    """Yield the cells of the cases that were asked for."""
    for row in study:
        name = _name(file, study.results[0].cases[row.case].labels)
        if name in kept:
            yield Cell(name, row)


def _require_more(at_most: int | None, plans: Iterable[Plan]) -> None:
    most = max(plan.replications for plan in plans)
    if at_most is not None and at_most < most:
        raise SpecError(
            f"--at-most {at_most}: each case has {most} replications; accepted: {most} or more",
            key="at_most",
        )


def doubled(plan: Plan, doubtful: Container[int], at_most: int | None) -> list[int] | None:
    """Return how many replications each case is to have; None if it has as many.

    Args:
        plan: the experiment.
        doubtful: the cases that get twice as many.
        at_most: the most of a case; None for as many as there are.
    """
    now = plan.counts or (plan.replications,) * len(plan.cases)
    then = [
        min(2 * count, at_most) if at_most is not None and case in doubtful else count
        for case, count in enumerate(now)
    ]
    return None if tuple(then) == now else then


def plans(
    study: Study, only: Sequence[str] = (), replications: int | None = None
) -> list[tuple[str, Plan, list[str]]]:
    """Return the experiments of a study.

    Returns:
        Of each the name of its file, the plan, and the names of the cases that were asked for. The
        plan may have more of them, when they are not all combinations of some values of factors.

    Raises:
        SpecError: a pattern fits no case.
    """
    wanted = [pattern for pattern in only if not pattern.startswith("!")]
    without = [pattern[1:] for pattern in only if pattern.startswith("!")]
    files = study.gaps.files if study.gaps else ()
    read = {file: experiment.prepare(file, replications=replications) for file in files}
    cases = [_name(file.stem, case.labels) for file, plan in read.items() for case in plan.cases]
    for pattern in (*wanted, *without):
        if not any(_fits(name, pattern) for name in cases):
            raise SpecError(
                f"--only {pattern}: fits no case of the matrix; accepted: patterns of names such "
                f"as {cases[0]}; the files are {', '.join(file.stem for file in files)}",
                key="only",
            )
    found = []
    for file, plan in read.items():
        kept = [
            number
            for number, case in enumerate(plan.cases)
            if (name := _name(file.stem, case.labels))
            and (not wanted or any(_fits(name, pattern) for pattern in wanted))
            and not any(_fits(name, pattern) for pattern in without)
        ]
        if not kept:
            continue
        labels = [_name(file.stem, plan.cases[number].labels) for number in kept]
        if len(kept) < len(plan.cases):
            sets = _restricting(plan, kept)
            plan = experiment.prepare(file, replications=replications, set=sets)
        found.append((file.stem, plan, labels))
    if not found:
        raise SpecError(f"--only {' '.join(only)}: leaves no case of the matrix", key="only")
    return found


def _restricting(plan: Plan, kept: Sequence[int]) -> list[str]:
    """Return the overrides that leave of each factor the values that some cases have."""
    sets = []
    for factor in plan.factors:
        values: list[object] = []
        for number in kept:
            value = plan.cases[number].factors[factor]
            if value not in values:
                values.append(value)
        sets.append(f"{factor}={toml_value(values)}")
    return sets


def _name(file: str, labels: Mapping[str, str]) -> str:
    """Return the name of a case.

    >>> _name("fast", {"bottleneck.queue": "red", "traffic.bulk.flows": "16"})
    'fast/red/16'
    """
    return "/".join((file, *labels.values()))


def _fits(name: str, pattern: str) -> bool:
    """Return whether a pattern stands for a case, or for all of a folder of them.

    >>> [_fits("fast/red/16", pattern) for pattern in ("fast", "*/red/*", "fast/red/1")]
    [True, True, False]
    """
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*")


def _size(cell: Cell) -> float:
    size = cell.gap.size
    return size if size == size else -1.0
