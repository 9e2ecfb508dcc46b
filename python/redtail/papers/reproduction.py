"""Runs a paper's studies and judges its findings."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from redtail import _engine, experiment, runner
from redtail._engine import Plan
from redtail.errors import RedtailError, RedtailWarning, SpecError
from redtail.papers.checks import TESTS, Evidence, Grid
from redtail.papers.definition import Check, Finding, Paper, Scale, Study, Variant, load
from redtail.results import CaseResult, Results
from redtail.runner import Progress
from redtail.store import ExperimentStore, parquet_bytes


class Judgement(StrEnum):
    """What can be said of a finding."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    FAILS = "does not hold"
    UNTESTED = "not tested"


@dataclass(frozen=True)
class Tested:
    """A check and what it found."""

    check: Check
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Verdict:
    """A finding, what was measured, and what follows.

    Attributes:
        finding: the finding.
        judgement: what follows.
        tested: the checks with their evidence; conditions first when one of them fails.
        why: the reason in words.
    """

    finding: Finding
    judgement: Judgement
    tested: tuple[Tested, ...]
    why: str

    @property
    def clear(self) -> bool:
        """Whether every number is on its side of the bounds with its whole interval."""
        return all(row.clear for tested in self.tested for row in tested.evidence)


@dataclass(frozen=True)
class StudyResult:
    """What the runs of a study measured.

    Attributes:
        study: the study.
        results: all its cases, variants included.
        solved: for each variant with a value looked for: that value by load.
    """

    study: Study
    results: Results
    solved: Mapping[str, Mapping[float, str]]

    @cached_property
    def grid(self) -> Grid:
        """The results by queue and load."""
        return Grid(
            self.results,
            queue=self.study.queue,
            load=self.study.load,
            variants=[variant.label for variant in self.study.variants],
        )

    def published(self, loads: tuple[float, ...] = ()) -> Results:
        """Return the results without variants, at some loads or all."""
        variants = {variant.label for variant in self.study.variants}
        kept = tuple(
            case
            for case in self.results.cases
            if case.labels[self.study.queue] not in variants
            and (not loads or case.factors[self.study.load] in loads)
        )
        return _with_cases(self.results, kept)


@dataclass(frozen=True)
class Reproduction:
    """A paper run again.

    Attributes:
        paper: the paper.
        scale: the name of the scale it was run at.
        studies: the results by study.
        verdicts: one for each finding, in the paper's order.
        folder: where everything is kept.
        run_count: runs it took, those on the way to a value looked for included.
        reused: how many of these were in the store already.
        packets: packets that the other runs sent over their bottleneck.
    """

    paper: Paper
    scale: str
    studies: Mapping[str, StudyResult]
    verdicts: tuple[Verdict, ...]
    folder: Path
    run_count: int
    reused: int
    packets: int

    def write(self) -> list[Path]:
        """Write figures, verdicts, report and data; returns their paths, the report first.

        Raises:
            StoreError: the folder cannot be written.
        """
        from redtail import plots
        from redtail.papers import report

        store = ExperimentStore(self.folder.parent, self.folder.name)
        drawn = []
        for figure in self.paper.figures:
            results = self.studies[figure.study].published(figure.loads)
            drawn += plots.draw(results, {figure.name: figure.draws}, self.folder / "figures")
        written = [
            store.write("report.md", report.markdown(self).encode()),
            store.write("verdicts.json", (report.to_json(self) + "\n").encode()),
        ]
        for name, study in self.studies.items():
            for rows in ("cases", "replications"):
                data = parquet_bytes(study.results.to_arrow(rows))
                written.append(store.write(f"{name}-{rows}.parquet", data))
        return written + drawn


def reproduce(
    name: str,
    *,
    scale: str = "quick",
    out: str | os.PathLike[str] = "runs",
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """Run a paper's studies and judge its findings; nothing but the runs is written.

    Args:
        name: the paper, one of `names()`.
        scale: one of the paper's scales, "quick" or "paper".
        out: the folder in which one for this paper and scale is made.
        jobs: number of runs at the same time; by default one per processor.
        progress: called after each finished run.

    Raises:
        SpecError: there is no such paper or scale.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    return reproduce_paper(load(name), scale=scale, out=out, jobs=jobs, progress=progress)


def reproduce_paper(
    paper: Paper,
    *,
    scale: str = "quick",
    out: str | os.PathLike[str] = "runs",
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """As `reproduce`, for a paper that was read from any folder."""
    if scale not in paper.scales:
        raise SpecError(f"{paper.name} has no scale {scale!r}; accepted: {', '.join(paper.scales)}")
    work = _Work(Path(out) / paper.name / scale, jobs, progress)
    studies = [study for study in paper.studies if scale in study.scales]
    work.announce(studies, scale)
    done = {study.name: work.study(study, study.scales[scale]) for study in studies}
    return Reproduction(
        paper=paper,
        scale=scale,
        studies=done,
        verdicts=tuple(judge(finding, done) for finding in paper.findings),
        folder=work.out,
        run_count=work.state.done,
        reused=work.state.reused,
        packets=work.state.packets,
    )


def judge(finding: Finding, studies: Mapping[str, StudyResult]) -> Verdict:
    """Judge a finding by the results of the studies it looks at."""
    if not finding.checks:
        return Verdict(finding, Judgement.UNTESTED, (), finding.untested)
    missing = sorted({check.study for check in finding.checks} - studies.keys())
    if missing:
        why = f"this scale does not run: {', '.join(missing)}"
        return Verdict(finding, Judgement.UNTESTED, (), why)

    conditions = tuple(_tested(check, studies) for check in finding.conditions)
    broken = [row for each in conditions for row in each.evidence if not row.holds]
    if broken:
        why = f"a condition for the test is not met: {broken[0].about}"
        return Verdict(finding, Judgement.UNTESTED, conditions, why)

    tested = tuple(_tested(check, studies) for check in finding.checks)
    rows = [row for each in tested for row in each.evidence]
    against = [row for row in rows if not row.holds]
    counted = f"{len(rows) - len(against)} of {len(rows)} numbers are within their bounds"
    if len(against) == len(rows):
        return Verdict(finding, Judgement.FAILS, tested, counted)
    if against:
        return Verdict(finding, Judgement.IN_PART, tested, counted)
    if finding.untested:
        why = f"{counted}; not tested: {finding.untested}"
        return Verdict(finding, Judgement.IN_PART, tested, why)
    return Verdict(finding, Judgement.HOLDS, tested, counted)


def _tested(check: Check, studies: Mapping[str, StudyResult]) -> Tested:
    found = TESTS[check.test](studies[check.study].grid, **check.parameters)
    return Tested(check, tuple(found))


class _Work:
    """Runs experiments one after the other, with one progress over all of them."""

    def __init__(
        self, out: Path, jobs: int | None, progress: Callable[[Progress], None] | None
    ) -> None:
        self.out = out
        self.jobs = jobs
        self.progress = progress
        self.state = Progress(total=0)

    def announce(self, studies: list[Study], scale: str) -> None:
        """Count the runs to come, at most: a value may be found before its last round."""
        for study in studies:
            for file in study.files:
                plan = _plan(file, study.scales[scale].set)
                rounds = sum(each.solve.rounds if each.solve else 1 for each in study.variants)
                self.state.total += plan.runs + plan.replications * rounds

    def study(self, study: Study, scale: Scale) -> StudyResult:
        """Run a study's files and, at each of their loads, its variants."""
        parts: list[tuple[float, CaseResult]] = []
        solved: dict[str, dict[float, str]] = {}
        last: Results | None = None
        for file in study.files:
            plan = _plan(file, scale.set)
            for text in plan.warnings:
                warnings.warn(text, RedtailWarning, stacklevel=4)
            last = self.execute(plan)
            loads = {case.factors[study.load] for case in last.cases}
            if len(loads) != 1:
                raise RedtailError(f"{file}: one value of {study.load} is wanted in each file")
            at = loads.pop()
            cases = {case.labels[study.queue]: case for case in last.cases}
            for variant in study.variants:
                found, value = self.variant(study, scale, file, variant, cases)
                cases[variant.label] = found
                if value is not None:
                    solved.setdefault(variant.label, {})[at] = value
            parts += [(at, case) for case in cases.values()]
        assert last is not None
        parts.sort(key=lambda part: part[0])
        everything = _with_cases(last, tuple(case for _, case in parts))
        everything.name, everything.description = study.name, study.about
        everything.folder = self.out
        return StudyResult(study, everything, solved)

    def variant(
        self,
        study: Study,
        scale: Scale,
        file: Path,
        variant: Variant,
        cases: Mapping[str, CaseResult],
    ) -> tuple[CaseResult, str | None]:
        """Run a variant at one load; returns its case and the value found, if one was sought."""
        base = cases[variant.of]
        queue = {**base.factors[study.queue], **variant.queue, "label": variant.label}

        def attempt(queue: Mapping[str, Any]) -> CaseResult:
            # The experiment's name is the folder's; a variant keeps apart from what it came from.
            name = f"{_plan(file, {}).name}, {variant.label}"
            sets = {**scale.set, "name": name, study.queue: [queue], **variant.set}
            return self.execute(_plan(file, sets)).cases[0]

        wanted = variant.solve
        if wanted is None:
            return attempt(queue), None
        match = re.fullmatch(r"\s*([0-9.]+)\s*(\D+)", str(queue.get(wanted.key)))
        if match is None:
            raise SpecError(f"{wanted.key} = {queue.get(wanted.key)!r}: a number with a unit")
        start, unit = float(match[1]), match[2]
        tried: dict[int, CaseResult] = {}

        def measure(value: int) -> float:
            tried[value] = attempt({**queue, wanted.key: f"{value} {unit}"})
            return tried[value].metric(wanted.metric).mean

        best = seek(
            measure,
            start=(start, base.metric(wanted.metric).mean),
            target=cases[wanted.like].metric(wanted.metric).mean,
            within=wanted.within,
            rounds=wanted.rounds,
        )
        # Rounds that were not needed are not waited for.
        self.state.total -= len(base.runs) * (wanted.rounds - len(tried))
        return tried[best], f"{best} {unit}"

    def execute(self, plan: Plan) -> Results:
        """Run an experiment, adding to the common progress."""
        done, reused, packets = self.state.done, self.state.reused, self.state.packets

        def advance(part: Progress) -> None:
            self.state.done = done + part.done
            self.state.reused = reused + part.reused
            self.state.packets = packets + part.packets
            if self.progress is not None:
                self.progress(self.state)

        return runner.execute(plan, jobs=self.jobs, out=self.out, progress=advance)


def seek(
    measure: Callable[[int], float],
    *,
    start: tuple[float, float],
    target: float,
    within: float,
    rounds: int,
) -> int:
    """Look for the whole number, at least 1, at which a rising `measure` equals a target.

    The first guess supposes proportion, the next ones a straight line through the last two.

    Args:
        measure: what is measured at a number; called at most `rounds` times, at least once.
        start: a number and what was measured there.
        target: the measure wanted.
        within: a relative error that is small enough.
        rounds: most numbers to try.

    Returns:
        The number tried whose measure was nearest.

    >>> seek(lambda x: 3.0 * x + 5.0, start=(100, 305.0), target=95.0, within=0.01, rounds=4)
    30
    """
    points = [(0.0, 0.0), start]
    tried: dict[int, float] = {}
    while len(tried) < rounds:
        (before, was), (at, found) = points[-2:]
        slope = (found - was) / (at - before) if at != before else 0.0
        guess = max(1, round(at + (target - found) / slope)) if slope > 0 else round(at)
        if guess in tried:
            break
        tried[guess] = measure(guess)
        points.append((float(guess), tried[guess]))
        if abs(tried[guess] / target - 1) <= within:
            break
    return min(tried, key=lambda number: abs(tried[number] - target))


def _plan(file: Path, sets: Mapping[str, Any]) -> Plan:
    return experiment.check(file, set=sets)


def _with_cases(results: Results, cases: tuple[CaseResult, ...]) -> Results:
    return Results(
        name=results.name,
        description=results.description,
        factors=results.factors,
        cases=cases,
        folder=results.folder,
        reused=results.reused,
    )


def versions() -> dict[str, str]:
    """Return what made the results: redtail's version and the hash of the engine's sources."""
    return {"redtail_version": _engine.version(), "code_version": _engine.code_version()}
