"""Runs a paper's studies and judges its findings."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail import backends, experiment, facts
from redtail.analysis.case import CaseResult
from redtail.analysis.results import Results
from redtail.engine.plans import Plan
from redtail.errors import RedtailError, RedtailWarning, SpecError
from redtail.experiment import toml_key
from redtail.files import path_of
from redtail.inputs.code import Allowed
from redtail.papers.agreement import refuse_unknown
from redtail.papers.checks import TESTS, Answer, Evidence, located
from redtail.papers.definition import (
    EXPECTED,
    Check,
    FigureOf,
    Finding,
    Judgement,
    Paper,
    Scale,
    Setting,
    Solve,
    Study,
    Variant,
    load,
    names,
)
from redtail.papers.grid import Grid, in_si, quantity, replace_cases
from redtail.progress import Progress
from redtail.running import runner
from redtail.store.folders import ExperimentStore
from redtail.store.parquet import parquet_bytes
from redtail.store.writing import explain_write_errors, replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        tested: the checks with their evidence; after conditions that do not hold or that are
            undecided, these first.
        why: the reason in words.
    """

    finding: Finding
    judgement: Judgement
    tested: tuple[Tested, ...]
    why: str


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
    """Findings with another set-up than the paper's, or made by a kernel.

    Attributes:
        name: its name in tables.
        setting: what was put in place; None for the paper's own set-up.
        grids: the results by study or view.
        verdicts: one for each finding that is tried so.
        made_by: what made the runs; empty for the simulator.
    """

    name: str
    setting: Setting | None
    grids: Mapping[str, Grid]
    verdicts: tuple[Verdict, ...]
    made_by: str = ""


@dataclass(frozen=True)
class Reproduction:
    """The reproduction of a paper.

    Attributes:
        paper: the paper.
        scale: the name of the scale it was run at.
        studies: the results by study.
        grids: the results by study or view.
        verdicts: one for each finding, in the paper's order.
        now: the headline findings under each setting, the paper's own first; empty when not asked
            for.
        kernel: all findings under the paper's set-up, under one that a kernel can run, and by the
            kernel; empty when not asked for.
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
    kernel: tuple[UnderSetting, ...]
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

    def expect(self) -> Path:
        """Make these verdicts the expected ones at this scale; those of other scales stay.

        Returns:
            The file of the paper that has them.

        Raises:
            StoreError: it cannot be written.
        """
        verdicts = {verdict.finding.id: verdict.judgement for verdict in self.verdicts}
        expected = {**self.paper.expected, self.scale: verdicts}
        path = self.paper.folder / EXPECTED
        lines = [
            "# The verdict on each finding; `redtail reproduce PAPER --check` fails when one "
            "changes.",
            "# `redtail reproduce PAPER --write-expected` writes this file.",
        ]
        for scale, of_scale in expected.items():
            lines.append(f"[{toml_key(scale)}]")
            lines += [f'{toml_key(name)} = "{verdict}"' for name, verdict in of_scale.items()]
        with explain_write_errors(path):
            replace_file(path, ("\n".join(lines) + "\n").encode())
        return path

    def write(self) -> list[Path]:
        """Write figures, verdicts, report and data; returns their paths, the report first.

        Raises:
            StoreError: the folder cannot be written.
        """
        from redtail.display import plots
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
        from redtail.display import plots

        grid = self.grids[wanted.study]
        queues = tuple(map(grid.queue, wanted.queues)) or grid.queues
        if wanted.modern:
            queues = (*queues, *modern(self, wanted.study))
        loads = tuple(map(grid.named.find, wanted.loads))
        results = grid.subset(wanted.metrics, queues, loads)
        about = grid.describe(next(iter(wanted.metrics), ""))
        published, source = self._published(wanted)
        return plots.paper_figure(results, wanted.draws, about, published, source)

    def _published(self, wanted: FigureOf) -> tuple[dict[tuple[str, float], float], str]:
        """Return others' numbers of what a figure shows, and their source.

        They are by queue and by load, in the unit of the figure's axis: that of its first load.
        """
        grid = self.grids[wanted.study]
        loads = [grid.named.find(name) for name in wanted.loads] or list(grid.loads)
        found: dict[tuple[str, float], float] = {}
        sources: dict[str, None] = {}
        for table in self.paper.tables:
            for metric in set(wanted.metrics) & set(table.metrics):
                place = table.metrics.index(metric)
                for name, queue, values in table.rows:
                    if table.study != wanted.study or math.isnan(values[place]):
                        continue
                    at = grid.named.find(name)
                    if at in loads:
                        found[grid.queue(queue), grid.named.number(at, loads[0])] = values[place]
                        sources[table.source] = None
        return found, "; ".join(sources)


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
    backend: str | None = None,
    out: str | os.PathLike[str] = "runs",
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    allow_code: Allowed = (),
) -> Reproduction:
    """Run a paper's studies and judge its findings; nothing but the runs is written.

    Args:
        name: the paper, one of `names()`, or the folder of one of your own.
        scale: one of the paper's scales, "quick" or "paper".
        then_and_now: whether the headline findings are tried under each of the paper's settings
            as well, such as a TCP of today.
        backend: a kernel that repeats what it can, such as "linux", besides the simulator.
        out: the folder in which one for this paper and scale is made.
        jobs: number of runs at the same time; by default one per processor.
        progress: called after each finished run.
        allow_code: files and folders outside the paper's own whose code may be executed, as for
            `redtail.run`.

    Raises:
        SpecError: there is no such paper or scale, or the kernel cannot run it.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    return reproduce_paper(
        load(name),
        scale=scale,
        then_and_now=then_and_now,
        backend=backend,
        out=out,
        jobs=jobs,
        progress=progress,
        allow_code=allow_code,
    )


def reproduce_paper(
    paper: Paper,
    *,
    scale: str = "quick",
    then_and_now: bool = False,
    backend: str | None = None,
    out: str | os.PathLike[str] = "runs",
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    allow_code: Allowed = (),
) -> Reproduction:
    """As `reproduce`, for a paper that was read already."""
    if scale not in paper.scales:
        raise SpecError(f"{paper.name} has no scale {scale!r}; accepted: {', '.join(paper.scales)}")
    if then_and_now and not (paper.settings and paper.headlines):
        raise SpecError(
            f"{paper.name} has no [[setting]] in paper.toml, or no finding with headline = true: "
            "there is no then and now to show"
        )
    if backend is not None:
        _require_kernel(paper, scale, backend)
    work = _Work(path_of(out) / paper.name / scale, jobs, progress)
    studies = [study for study in paper.studies if scale in study.scales]
    settings = paper.settings if then_and_now else ()
    trust = _Trust(paper.folder, allow_code)
    own = [_Request(study, study.scales[scale], None, trust) for study in studies]
    refuse_unknown(paper, {each.study.name: [file.plan for file in each.files] for each in own})
    modern = {
        setting.name: [
            _Request(study, study.scales[scale], setting, trust)
            for study in _of_headlines(paper, studies)
        ]
        for setting in settings
    }

    def of_kernel() -> list[_Request]:
        """Return what a kernel can repeat, with its set-up."""
        named = paper.kernel.set if backend is not None and paper.kernel else ()
        return [
            _Request(study, study.scales[scale], paper.kernel, trust, variants=False)
            for study in studies
            if study.name in named
        ]

    simulated, measured = of_kernel(), of_kernel()
    if backend is not None:
        files = [file.plan for each in measured for file in each.files]
        backends.require_able(backends.find(backend), files)
    work.run([*own, *(each for part in modern.values() for each in part), *simulated])
    if backend is not None:
        work.run(measured, backend)

    def under(
        name: str, setting: Setting | None, part: Sequence[_Request], findings: Sequence[Finding]
    ) -> UnderSetting:
        results = {each.study.name: each.result(work.out) for each in part}
        found = grids(paper, results)
        judged = tuple(judge(finding, found) for finding in findings)
        made_by = {each.results.made_by for each in results.values()}
        return UnderSetting(name, setting, found, judged, ", ".join(sorted(made_by)))

    done = {each.study.name: each.result(work.out) for each in own}
    seen = grids(paper, done)
    verdicts = tuple(judge(finding, seen) for finding in paper.findings)
    now = []
    if settings:
        headlines = tuple(verdict for verdict in verdicts if verdict.finding.headline)
        now.append(UnderSetting("then", None, seen, headlines))
    for setting in settings:
        now.append(under(setting.name, setting, modern[setting.name], paper.headlines))
    kernel: list[UnderSetting] = []
    if backend is not None:
        kernel.append(UnderSetting("simulation", None, seen, verdicts))
        kernel += [
            under("simulation, the kernel's set-up", paper.kernel, simulated, paper.findings),
            under(f"kernel ({backend})", paper.kernel, measured, paper.findings),
        ]
    return Reproduction(
        paper=paper,
        scale=scale,
        studies=done,
        grids=seen,
        verdicts=verdicts,
        now=tuple(now),
        kernel=tuple(kernel),
        folder=work.out,
        run_count=work.state.done,
        reused=work.state.reused,
        packets=work.state.packets,
    )


def _require_kernel(paper: Paper, scale: str, backend: str) -> None:
    """Refuse a backend that measures nothing of a paper."""
    if backend == backends.DEFAULT:
        raise SpecError(
            f"backend = {backend!r}: the simulator reproduces every paper; accepted: a backend "
            "with a kernel, such as 'linux', or none",
            key="backend",
        )
    of = paper.kernel.set if paper.kernel else ()
    if not any(study.name in of and scale in study.scales for study in paper.studies):
        able = [name for name in names() if load(name).kernel is not None]
        raise SpecError(
            f"backend = {backend!r}: {paper.name} has no [kernel] in paper.toml that says what a "
            f"kernel can repeat at scale {scale}; accepted: {', '.join(able)}",
            key="backend",
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
    absent = _absent([*finding.checks, *finding.conditions], grids)
    if absent:
        why = f"no runs of the queue: {', '.join(absent)}"
        return Verdict(finding, Judgement.UNTESTED, (), why)

    conditions = tuple(_tested(check, grids) for check in finding.conditions)
    of_conditions = [row for each in conditions for row in each.evidence]
    for answer, judgement, how in (
        (Answer.NO, Judgement.UNTESTED, "not met"),
        (Answer.UNDECIDED, Judgement.UNDECIDED, "undecided"),
    ):
        for row in of_conditions:
            if row.answer is answer:
                why = f"a condition for the test is {how}: {row.about}"
                return Verdict(finding, judgement, conditions, why)

    tested = tuple(_tested(check, grids) for check in finding.checks)
    answers = [row.answer for each in tested for row in each.evidence]
    inside, outside, undecided = map(answers.count, Answer)
    why = f"{inside} of {len(answers)} numbers are within their bounds"
    why += f", {outside} are outside, {undecided} undecided" if undecided else ""
    # The undecided numbers may be all inside, all outside, or some of each.
    possible = {
        _follows(inside + more, outside + undecided - more, part=bool(finding.untested))
        for more in range(undecided + 1)
    }
    judgement = possible.pop() if len(possible) == 1 else Judgement.UNDECIDED
    if finding.untested:
        why += f"; not tested: {finding.untested}"
    return Verdict(finding, judgement, tested, why)


def _follows(inside: int, outside: int, *, part: bool) -> Judgement:
    """Return the verdict from the numbers inside and outside their bounds.

    Args:
        inside: how many are inside.
        outside: how many are outside.
        part: whether the tests cover a part of the finding only.
    """
    if not inside:
        return Judgement.FAILS
    return Judgement.IN_PART if outside or part else Judgement.HOLDS


def _absent(checks: Sequence[Check], grids: Mapping[str, Grid]) -> list[str]:
    """Return the queues that checks name and that were not run, as when no kernel has them."""
    found: dict[str, None] = {}
    for check in checks:
        grid = grids[check.study]
        for key in ("queues", "to"):
            named = check.parameters.get(key, ())
            for label in named if isinstance(named, list) else ():
                if label not in (*grid.queues, *grid.variants):
                    found[label] = None
    return list(found)


def _tested(check: Check, grids: Mapping[str, Grid]) -> Tested:
    grid = grids[check.study]
    try:
        given = located(check.test, check.parameters, grid)
    except RedtailError as error:
        raise RedtailError(f"{check.study}: {check.test}: {error}") from None
    return Tested(check, tuple(TESTS[check.test](grid, **given)))


class _Request:
    """A study to be run as it is, or under a setting, and what its runs measured so far."""

    def __init__(
        self,
        study: Study,
        scale: Scale,
        setting: Setting | None,
        trust: _Trust,
        variants: bool = True,
    ) -> None:
        self.trust = trust
        self.study = study
        self.setting = setting
        self.variants = study.variants_at(scale.name) if variants else ()
        self.sets = {**scale.set, **(setting.of(study.name) if setting else {})}
        self.files = [_File(self, path) for path in study.files]
        self.solved: dict[str, dict[float, str]] = {}

    def result(self, folder: Path) -> StudyResult:
        """Combine what the files measured."""
        cases = [case for file in self.files for results in file.found for case in results.cases]
        cases.sort(key=lambda case: _load(self.study, case))
        last = self.files[-1].found[-1]
        everything = replace_cases(last, last.factors, tuple(cases))
        everything.name, everything.description = self.study.name, self.study.about
        everything.folder = folder
        return StudyResult(self.study, everything, self.solved)


class _File:
    """One of a study's files, with the plans of its variants."""

    def __init__(self, of: _Request, path: Path) -> None:
        self.of = of
        self.path = path
        self.base = _Experiment(path, of.sets, of.trust)
        if of.setting is not None:
            name = f"{self.base.plan.name}, {of.setting.name}"
            self.base = _Experiment(path, {**of.sets, "name": name}, of.trust)
        self.found: list[Results] = []

    @property
    def plan(self) -> Plan:
        """The plan of the file without variants."""
        return self.base.plan

    def experiments(self) -> list[_Experiment]:
        """Return the requests that can be run at once: all except searches for a value."""
        variants = [each for each in self.of.variants if each.solve is None]
        return [self.base, *(self.attempt(each, self.queue(each)) for each in variants)]

    def queue(self, variant: Variant) -> dict[str, Any]:
        """Return a variant's queue: its own, or its changes to the one it comes from."""
        if "kind" in variant.queue:
            return {**variant.queue, "label": variant.label}
        key = self.of.study.queue
        of = next((case for case in self.plan.cases if case.labels[key] == variant.of), None)
        if of is None:
            labels = ", ".join(dict.fromkeys(case.labels[key] for case in self.plan.cases))
            raise SpecError(
                f"{self.path}: variant {variant.label}: of = {variant.of!r}; accepted: {labels}"
            )
        return {**of.factors[key], **variant.queue, "label": variant.label}

    def attempt(self, variant: Variant, queue: Mapping[str, Any]) -> _Experiment:
        """Return the file with one queue, a variant, in place of its queues."""
        # The experiment's name is the folder's; a variant keeps apart from what it came from.
        own = {"name": f"{self.plan.name}, {variant.label}", self.of.study.queue: [queue]}
        return _Experiment(self.path, {**self.of.sets, **own, **variant.set}, self.of.trust)


@dataclass(frozen=True)
class _Trust:
    """The code of a paper that may be executed: that in its folder, and what is allowed."""

    folder: Path
    allowed: Allowed


class _Experiment:
    """An experiment file with overrides; `same` is equal for those that run the same."""

    def __init__(self, path: Path, sets: Mapping[str, Any], trust: _Trust) -> None:
        self.path, self.sets, self.trust = path, sets, trust
        self.plan = self._prepared(load=False)
        self.same = json.dumps([str(path), sets], sort_keys=True)

    def loaded(self) -> Plan:
        """Return its plan with the code that it names, if any, loaded."""
        return self._prepared(load=True) if self.plan.code else self.plan

    def _prepared(self, *, load: bool) -> Plan:
        return experiment.prepare(
            self.path,
            set=self.sets,
            allow_code=self.trust.allowed,
            within=self.trust.folder,
            load=load,
        )


class _Search:
    """A variant whose value is searched for at the one load of a file."""

    def __init__(self, file: _File, variant: Variant, wanted: Solve) -> None:
        self.file = file
        self.variant = variant
        self.metric = wanted.metric
        self.key = wanted.key
        self.rounds = wanted.rounds
        study = file.of.study
        cases = file.found[0].cases
        by_queue = {case.labels[study.queue]: case for case in cases}
        if len(by_queue) != len(cases):
            raise SpecError(
                f"{file.path}: the search for a value needs exactly one value of {study.load}"
            )
        base = by_queue[variant.of]
        self.at = _load(study, base)
        self.queue = file.queue(variant)
        try:
            number, self.unit = quantity(wanted.key, self.queue.get(wanted.key))
        except RedtailError:
            self.unit = ""
        if not self.unit:
            raise SpecError(f"{wanted.key} = {self.queue.get(wanted.key)!r}: a number with a unit")
        self.tried: dict[int, Results] = {}
        self.guesses = seek(
            start=(number, base.metric(wanted.metric).mean),
            target=by_queue[wanted.like].metric(wanted.metric).mean,
            within=wanted.within,
            rounds=wanted.rounds,
        )
        self.guess = next(self.guesses)

    def experiment(self) -> _Experiment:
        """Return the present guess as an experiment."""
        queue = {**self.queue, self.key: f"{self.guess} {self.unit}"}
        return self.file.attempt(self.variant, queue)

    def measured(self, results: Results) -> bool:
        """Take in what was measured at the guess; returns whether there is another guess."""
        self.tried[self.guess] = results
        try:
            self.guess = self.guesses.send(results.cases[0].metric(self.metric).mean)
        except StopIteration as found:
            best: int = found.value
            self.file.found.append(self.tried[best])
            solved = self.file.of.solved.setdefault(self.variant.label, {})
            solved[self.at] = f"{best} {self.unit}"
            return False
        return True


class _Work:
    """Runs experiments as one, with one progress over all of them."""

    def __init__(
        self, out: Path, jobs: int | None, progress: Callable[[Progress], None] | None
    ) -> None:
        self.out = out
        self.jobs = jobs
        self.progress = progress
        self.state = Progress(total=0)

    def run(self, wanted: Sequence[_Request], backend: str | None = None) -> None:
        """Run all files with their variants, then the searches for values."""
        files = [file for each in wanted for file in each.files]
        texts = (text for file in files for text in file.of.study.unmeant(file.plan.warnings))
        for text in dict.fromkeys(texts):
            warnings.warn(text, RedtailWarning, stacklevel=4)
        of_files = [file.experiments() for file in files]
        searches = [
            (file, variant, variant.solve)
            for file in files
            for variant in file.of.variants
            if variant.solve is not None
        ]
        results = iter(self.execute([each for part in of_files for each in part], backend))
        for file, of_file in zip(files, of_files, strict=True):
            file.found += [next(results) for _ in of_file]
        going = [_Search(*each) for each in searches]
        while going:
            measured = self.execute([search.experiment() for search in going])
            going = [
                search
                for search, found in zip(going, measured, strict=True)
                if search.measured(found)
            ]

    def execute(
        self, experiments: Sequence[_Experiment], backend: str | None = None
    ) -> list[Results]:
        """Run experiments, adding to the common progress; of like ones the first alone."""
        done, reused, packets = self.state.done, self.state.reused, self.state.packets

        def advance(part: Progress) -> None:
            self.state.calibrating, self.state.notes = part.calibrating, part.notes
            if not part.calibrating:
                self.state.done = done + part.done
                self.state.reused = reused + part.reused
            self.state.packets = packets + part.packets
            if self.progress is not None:
                self.progress(self.state)

        # Studies may look at the same file.
        first = {each.same: each for each in experiments}
        self.state.total += sum(each.plan.runs for each in first.values())
        plans = [each.loaded() for each in first.values()]
        found = runner.execute_all(
            plans, jobs=self.jobs, out=self.out, progress=advance, backend=backend
        )
        by_content = dict(zip(first, found, strict=True))
        return [by_content[each.same] for each in experiments]


def seek(
    *,
    start: tuple[float, float],
    target: float,
    within: float,
    rounds: int,
) -> Generator[int, float, int]:
    """Search for the whole number, at least 1, at which a rising measure equals a target.

    The first guess assumes that the measure is proportional to the number, the next ones that it
    is on a straight line through the last two.

    Args:
        start: a number and what was measured there.
        target: the measure wanted.
        within: a relative error that is small enough.
        rounds: most numbers to try.

    Yields:
        A number to be measured, at least one and at most `rounds`; what was measured is sent.

    Returns:
        The number tried whose measure was nearest.

    >>> guesses = seek(start=(100, 305.0), target=95.0, within=0.01, rounds=4)
    >>> next(guesses), guesses.send(3.0 * 31 + 5.0)
    (31, 30)
    """
    points = [(0.0, 0.0), start]
    tried: dict[int, float] = {}
    while len(tried) < rounds:
        (before, was), (at, found) = points[-2:]
        slope = (found - was) / (at - before) if at != before else 0.0
        guess = max(1, round(at + (target - found) / slope)) if slope > 0 else round(at)
        if guess in tried:
            break
        tried[guess] = yield guess
        points.append((float(guess), tried[guess]))
        if abs(tried[guess] / target - 1) <= within:
            break
    return min(tried, key=lambda number: abs(tried[number] - target))


def _load(study: Study, case: CaseResult) -> float:
    return in_si(study.load, case.factors[study.load])[0]


def versions() -> dict[str, str]:
    """Return what made the results: redtail's version and the hash of the engine's sources."""
    return {"redtail_version": facts.version(), "code_version": facts.code_version()}
