"""Runs a paper's studies and judges its findings."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail import _engine, experiment, runner
from redtail._engine import Plan
from redtail.errors import RedtailWarning, SpecError
from redtail.papers.checks import TESTS, Evidence, Grid, quantity, replace_cases
from redtail.papers.definition import (
    FIGURES,
    Check,
    FigureOf,
    Finding,
    Paper,
    Scale,
    Setting,
    Study,
    Variant,
    load,
)
from redtail.results import CaseResult, Results
from redtail.runner import Progress
from redtail.store import ExperimentStore, parquet_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def grids(paper: Paper, studies: Mapping[str, StudyResult]) -> dict[str, Grid]:
    """Return what checks, tables and figures look at: the results by queue and load.

    Args:
        paper: its views and measures are used.
        studies: the results by study.

    Returns:
        A grid for each study and view whose study has results.
    """
    measures = {each.name: (each.formula, each.shown) for each in paper.measures}
    found = {}
    for view in paper.all_views:
        if view.study in studies:
            of = studies[view.study]
            found[view.name] = Grid(
                of.results,
                queue=view.queue,
                load=view.load,
                variants=[variant.label for variant in of.study.variants],
                where=view.where,
                measures=measures,
            )
    return found


@dataclass(frozen=True)
class UnderSetting:
    """The headline findings with something of our time in place of the paper's.

    Attributes:
        setting: what was put in place; None for the paper's own set-up.
        grids: the results by study or view.
        verdicts: one for each headline finding.
    """

    setting: Setting | None
    grids: Mapping[str, Grid]
    verdicts: tuple[Verdict, ...]

    @property
    def name(self) -> str:
        """What tables call it."""
        return "then" if self.setting is None else self.setting.name


@dataclass(frozen=True)
class Reproduction:
    """A paper run again.

    Attributes:
        paper: the paper.
        scale: the name of the scale it was run at.
        studies: the results by study.
        grids: the results by study or view.
        verdicts: one for each finding, in the paper's order.
        now: the headline findings under each setting, the paper's own first; empty when not asked
            for.
        folder: where everything is kept.
        run_count: runs it took, those on the way to a value looked for included.
        reused: how many of these were in the store already.
        packets: packets that the other runs sent over their bottleneck.
    """

    paper: Paper
    scale: str
    studies: Mapping[str, StudyResult]
    grids: Mapping[str, Grid]
    verdicts: tuple[Verdict, ...]
    now: tuple[UnderSetting, ...]
    folder: Path
    run_count: int
    reused: int
    packets: int

    @property
    def changed(self) -> list[tuple[str, str, str]]:
        """The findings whose verdict is not the expected one: id, expected, found."""
        expected = self.paper.expected.get(self.scale, {})
        return [
            (verdict.finding.id, expected.get(verdict.finding.id, "nothing"), verdict.judgement)
            for verdict in self.verdicts
            if expected.get(verdict.finding.id) != verdict.judgement
        ]

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
            if figure.study in self.grids:
                found = self.figure(figure)
                drawn += plots.save([(figure.name, found)], self.folder / "figures")
        written = [
            store.write("report.md", report.markdown(self).encode()),
            store.write("verdicts.json", (report.to_json(self) + "\n").encode()),
        ]
        for name, study in self.studies.items():
            for rows in ("cases", "replications"):
                data = parquet_bytes(study.results.to_arrow(rows))
                written.append(store.write(f"{name}-{rows}.parquet", data))
        return written + drawn

    def figure(self, wanted: FigureOf) -> Figure:
        """Draw one of the paper's figures."""
        from redtail import plots

        grid = self.grids[wanted.study]
        queues = wanted.queues or grid.queues
        if wanted.modern:
            queues = (*queues, *modern(self, wanted.study))
        kind, _, of = wanted.draws.partition(":")
        metrics = (of,) if kind == "quartiles" else () if kind in FIGURES else (wanted.draws,)
        results = grid.subset(metrics, queues, wanted.loads)
        return plots.paper_figure(
            results, wanted.draws, grid.describe(metrics[0] if metrics else "")
        )


def modern(done: Reproduction, view: str) -> tuple[str, ...]:
    """Return the queues of today among those a view shows."""
    studies = {each.name: each.study for each in done.paper.all_views}
    study = done.studies[studies[view]].study
    labels = {variant.label for variant in study.variants if variant.modern}
    return tuple(label for label in done.grids[view].variants if label in labels)


def reproduce(
    name: str,
    *,
    scale: str = "quick",
    then_and_now: bool = False,
    out: str | os.PathLike[str] = "runs",
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """Run a paper's studies and judge its findings; nothing but the runs is written.

    Args:
        name: the paper, one of `names()`, or the folder of one of your own.
        scale: one of the paper's scales, "quick" or "paper".
        then_and_now: whether the headline findings are tried under each of the paper's settings
            as well, such as a TCP of today.
        out: the folder in which one for this paper and scale is made.
        jobs: number of runs at the same time; by default one per processor.
        progress: called after each finished run.

    Raises:
        SpecError: there is no such paper or scale.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    return reproduce_paper(
        load(name), scale=scale, then_and_now=then_and_now, out=out, jobs=jobs, progress=progress
    )


def reproduce_paper(
    paper: Paper,
    *,
    scale: str = "quick",
    then_and_now: bool = False,
    out: str | os.PathLike[str] = "runs",
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """As `reproduce`, for a paper that was read already."""
    if scale not in paper.scales:
        raise SpecError(f"{paper.name} has no scale {scale!r}; accepted: {', '.join(paper.scales)}")
    if then_and_now and not (paper.settings and paper.headlines):
        raise SpecError(
            f"{paper.name} has no [[setting]] in paper.toml, or no finding with headline = true: "
            "there is no then and now to show"
        )
    work = _Work(Path(out) / paper.name / scale, jobs, progress)
    studies = [study for study in paper.studies if scale in study.scales]
    settings = paper.settings if then_and_now else ()
    needed = _of_headlines(paper, studies) if settings else []
    work.announce(studies, scale, None)
    for setting in settings:
        work.announce(needed, scale, setting)
    done = {study.name: work.study(study, study.scales[scale], None) for study in studies}
    seen = grids(paper, done)
    verdicts = tuple(judge(finding, seen) for finding in paper.findings)
    now = []
    if settings:
        headlines = tuple(verdict for verdict in verdicts if verdict.finding.headline)
        now.append(UnderSetting(None, seen, headlines))
    for setting in settings:
        part = {study.name: work.study(study, study.scales[scale], setting) for study in needed}
        changed = grids(paper, part)
        judged = tuple(judge(finding, changed) for finding in paper.headlines)
        now.append(UnderSetting(setting, changed, judged))
    return Reproduction(
        paper=paper,
        scale=scale,
        studies=done,
        grids=seen,
        verdicts=verdicts,
        now=tuple(now),
        folder=work.out,
        run_count=work.state.done,
        reused=work.state.reused,
        packets=work.state.packets,
    )


def _of_headlines(paper: Paper, studies: list[Study]) -> list[Study]:
    """Return the studies that headline findings look at, or the numbers shown with them."""
    of = {view.name: view.study for view in paper.all_views}
    named = {
        of[check.study]
        for finding in paper.headlines
        for check in (*finding.checks, *finding.conditions)
    }
    named |= {of[each.study] for each in paper.then_and_now}
    return [study for study in studies if study.name in named]


def judge(finding: Finding, grids: Mapping[str, Grid]) -> Verdict:
    """Judge a finding by the results, by study or view, that it looks at."""
    if not finding.checks:
        return Verdict(finding, Judgement.UNTESTED, (), finding.untested)
    looked_at = {check.study for check in (*finding.checks, *finding.conditions)}
    missing = sorted(looked_at - grids.keys())
    if missing:
        why = f"this scale does not run: {', '.join(missing)}"
        return Verdict(finding, Judgement.UNTESTED, (), why)

    conditions = tuple(_tested(check, grids) for check in finding.conditions)
    broken = [row for each in conditions for row in each.evidence if not row.holds]
    if broken:
        why = f"a condition for the test is not met: {broken[0].about}"
        return Verdict(finding, Judgement.UNTESTED, conditions, why)

    tested = tuple(_tested(check, grids) for check in finding.checks)
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


def _tested(check: Check, grids: Mapping[str, Grid]) -> Tested:
    found = TESTS[check.test](grids[check.study], **check.parameters)
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

    def announce(self, studies: list[Study], scale: str, setting: Setting | None) -> None:
        """Count the runs to come, at most: a value may be found before its last round."""
        for study in studies:
            for file in study.files:
                plan = _plan(file, _sets(study, study.scales[scale], setting))
                queues = {case.labels[study.queue] for case in plan.cases}
                of_queue = plan.runs // len(queues)
                rounds = sum(each.solve.rounds if each.solve else 1 for each in study.variants)
                self.state.total += plan.runs + of_queue * rounds

    def study(self, study: Study, scale: Scale, setting: Setting | None) -> StudyResult:
        """Run a study's files, each with all variants."""
        found: list[CaseResult] = []
        solved: dict[str, dict[float, str]] = {}
        last: Results | None = None
        sets = _sets(study, scale, setting)
        for file in study.files:
            plan = _plan(file, sets)
            for text in plan.warnings:
                warnings.warn(text, RedtailWarning, stacklevel=4)
            name = plan.name if setting is None else f"{plan.name}, {setting.name}"
            if setting is not None:
                plan = _plan(file, {**sets, "name": name})
            last = self.execute(plan)
            found += last.cases
            for variant in study.variants:
                if variant.solve is None:
                    queue = self._queue(study, variant, last.cases)
                    found += self.attempt(study, file, sets, name, variant, queue).cases
                else:
                    case, at, value = self.solve(study, file, sets, name, variant, last.cases)
                    found.append(case)
                    solved.setdefault(variant.label, {})[at] = value
        assert last is not None
        order = {load: number for number, load in enumerate(_loads(study, found))}
        found.sort(key=lambda case: order[_load(study, case)])
        everything = replace_cases(last, last.factors, tuple(found))
        everything.name, everything.description = study.name, study.about
        everything.folder = self.out
        return StudyResult(study, everything, solved)

    def attempt(
        self,
        study: Study,
        file: Path,
        sets: Mapping[str, Any],
        name: str,
        variant: Variant,
        queue: Mapping[str, Any],
    ) -> Results:
        """Run a file with one queue, a variant, in place of its queues."""
        # The experiment's name is the folder's; a variant keeps apart from what it came from.
        own = {"name": f"{name}, {variant.label}", study.queue: [queue]}
        return self.execute(_plan(file, {**sets, **own, **variant.set}))

    def _queue(self, study: Study, variant: Variant, cases: Sequence[CaseResult]) -> dict[str, Any]:
        """Return a variant's queue: its own, or its changes to the one it comes from."""
        if "kind" in variant.queue:
            return {**variant.queue, "label": variant.label}
        of = next((case for case in cases if case.labels[study.queue] == variant.of), None)
        if of is None:
            labels = ", ".join(dict.fromkeys(case.labels[study.queue] for case in cases))
            raise SpecError(
                f"{study.name}: variant {variant.label}: of = {variant.of!r}; accepted: {labels}"
            )
        return {**of.factors[study.queue], **variant.queue, "label": variant.label}

    def solve(
        self,
        study: Study,
        file: Path,
        sets: Mapping[str, Any],
        name: str,
        variant: Variant,
        cases: Sequence[CaseResult],
    ) -> tuple[CaseResult, float, str]:
        """Look for a variant's value at the one load of a file; returns it after case and load."""
        wanted = variant.solve
        assert wanted is not None
        by_queue = {case.labels[study.queue]: case for case in cases}
        if len(by_queue) != len(cases):
            raise SpecError(
                f"{file}: a value is looked for, so one value of {study.load} is wanted"
            )
        base, queue = by_queue[variant.of], self._queue(study, variant, cases)
        match = re.fullmatch(r"\s*([0-9.]+)\s*(\D+)", str(queue.get(wanted.key)))
        if match is None:
            raise SpecError(f"{wanted.key} = {queue.get(wanted.key)!r}: a number with a unit")
        start, unit = float(match[1]), match[2]
        tried: dict[int, CaseResult] = {}

        def measure(value: int) -> float:
            tuned = {**queue, wanted.key: f"{value} {unit}"}
            tried[value] = self.attempt(study, file, sets, name, variant, tuned).cases[0]
            return tried[value].metric(wanted.metric).mean

        best = seek(
            measure,
            start=(start, base.metric(wanted.metric).mean),
            target=by_queue[wanted.like].metric(wanted.metric).mean,
            within=wanted.within,
            rounds=wanted.rounds,
        )
        # Rounds that were not needed are not waited for.
        self.state.total -= len(base.runs) * (wanted.rounds - len(tried))
        return tried[best], _load(study, base), f"{best} {unit}"

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


def _sets(study: Study, scale: Scale, setting: Setting | None) -> dict[str, Any]:
    return {**scale.set, **(setting.of(study.name) if setting else {})}


def _load(study: Study, case: CaseResult) -> float:
    return quantity(study.load, case.factors[study.load])[0]


def _loads(study: Study, cases: Sequence[CaseResult]) -> list[float]:
    return sorted({_load(study, case) for case in cases})


def versions() -> dict[str, str]:
    """Return what made the results: redtail's version and the hash of the engine's sources."""
    return {"redtail_version": _engine.version(), "code_version": _engine.code_version()}
