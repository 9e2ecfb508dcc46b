"""Runs a suite: a study whose experiments have a control, in whose place subjects are examined."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from redtail import backends
from redtail.engine.plans import Plan
from redtail.errors import SpecError
from redtail.files import path_of
from redtail.inputs.code import Allowed
from redtail.metrics import counted
from redtail.progress import Progress
from redtail.studies import definition, league, subjects
from redtail.studies.agreement import refuse_unknown
from redtail.studies.definition import Kernel, Section, Study, Subject
from redtail.studies.grid import Grid
from redtail.studies.results import grids, require_kernel, require_scale
from redtail.studies.runner import ComparisonResult, InPlace, Request, Trust, Work
from redtail.studies.subjects import Examined, Fitted


@dataclass(frozen=True)
class Placed:
    """A subject in the experiments of a comparison.

    Attributes:
        fitted: what was set of it, by the name of the file; without files that it is not run in.
        unfit: why it is not run, by the name of the file.
        warnings: what to know of it there, besides what is said of the control.
    """

    fitted: Mapping[str, Fitted]
    unfit: Mapping[str, str]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class ByKernel:
    """What a kernel made of a suite, beside simulations of the same set-up.

    Attributes:
        backend: what made the runs.
        made_by: it in words.
        about: what of the set-up is changed so that a kernel can run it.
        simulated: the simulations, by comparison or view.
        measured: the runs of the kernel, by comparison or view.
        absent: why a subject is not run by the kernel, by comparison and label.
        failed: the runs of the kernel that failed, by comparison.
    """

    backend: str
    made_by: str
    about: str
    simulated: Mapping[str, Grid]
    measured: Mapping[str, Grid]
    absent: Mapping[str, Mapping[str, str]]
    failed: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Evaluation:
    """Subjects that a suite has examined.

    Attributes:
        study: the suite.
        subject: what it examines.
        scale: the name of the scale.
        subjects: what was examined besides the control.
        sections: the sections that were asked for.
        comparisons: the results by comparison.
        grids: the results by comparison or view.
        placed: how each subject stood in each comparison, by comparison and label.
        failed: the runs that failed and are missing, by comparison: how many of which subject, why.
        phases: the bounds of the phases, by comparison, where all its files have the same.
        kernel: what a kernel made; None when not asked for.
        folder: where everything is kept.
        run_count: runs it took.
        reused: how many of these were in the store already.
        packets: packets that the other runs sent over their bottleneck.
    """

    study: Study
    subject: Subject
    scale: str
    subjects: tuple[Examined, ...]
    sections: tuple[Section, ...]
    comparisons: Mapping[str, ComparisonResult]
    grids: Mapping[str, Grid]
    placed: Mapping[str, Mapping[str, Placed]]
    failed: Mapping[str, tuple[str, ...]]
    phases: Mapping[str, tuple[str, ...]]
    kernel: ByKernel | None
    folder: Path
    run_count: int
    reused: int
    packets: int

    @property
    def labels(self) -> tuple[str, ...]:
        """The control, then the subjects."""
        return (self.subject.control, *(each.label for each in self.subjects))

    @cached_property
    def columns(self) -> tuple[league.Column, ...]:
        """The criteria whose comparison was run, with what they say of each subject."""
        return tuple(
            league.column(each, self.grids[each.view], self.labels)
            for each in self.study.criteria
            if each.view in self.grids
        )

    @cached_property
    def entries(self) -> tuple[league.Entry, ...]:
        """The rows of the league table, the best first."""
        return league.entries(self.columns, self.labels)

    def state(self, section: Section) -> str:
        """Return how much of a section was run: "run", "run in part" or "not run"."""
        ran = [name in self.grids for name in section.comparisons]
        if not any(ran):
            return "not run"
        return "run" if all(ran) and not section.not_run else "run in part"


def load(name: str | os.PathLike[str]) -> Study:
    """Read a suite that is built in, by its name, or one of your own, by its folder.

    Raises:
        SpecError: there is none, or its files are not valid.
    """
    if str(name) not in definition.suites() and not (path_of(name) / "study.toml").is_file():
        raise SpecError(
            f"no suite {str(name)!r} is built in, and it is no folder with a study.toml; "
            f"accepted: {', '.join(definition.suites()) or 'none'}, or such a folder"
        )
    study = definition.load(name)
    if study.subject is None:
        raise SpecError(
            f"{study.folder / 'study.toml'}: has no table [subject], so it is no suite; "
            f"`redtail reproduce {name}` runs a study"
        )
    return study


def evaluate(
    suite: Study | str | os.PathLike[str],
    *,
    named: Sequence[str] | None = None,
    everything: bool = False,
    scale: str = "quick",
    sections: Sequence[str] | None = None,
    backend: str | None = None,
    out: str | os.PathLike[str] = "runs",
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    allow_code: Allowed = (),
) -> Evaluation:
    """Examine queues or congestion controls with a suite; nothing but the runs is written.

    Args:
        suite: the suite, the name of a built-in one, or the folder of one of your own.
        named: kinds of queues or presets of TCP, TOML files and plug-ins; None stands for the
            usual ones of the suite.
        everything: whether all kinds of queues, or all presets, are examined besides those named.
        scale: one of the suite's scales.
        sections: the sections that are run, by their ids; None stands for all.
        backend: a kernel that runs what it can, such as "linux", besides the simulator.
        out: the folder in which one for this suite and scale is made.
        jobs: number of runs at the same time; by default one per processor.
        progress: called after each finished run.
        allow_code: files and folders outside the suite's own whose code may be executed, as for
            `redtail.run`.

    Raises:
        SpecError: there is no such suite, scale, section or subject, or a subject can be examined
            nowhere.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    study = suite if isinstance(suite, Study) else load(suite)
    subject = study.subject
    if subject is None:
        raise SpecError(f"{study.name} has no table [subject], so it is no suite")
    require_scale(study, scale)
    wanted = _sections(study, sections)
    of_all = subjects.everything(subject) if everything else ()
    both = [*of_all, *(each for each in named or () if each not in of_all)]
    examined = subjects.chosen(subject, both if everything else named)
    if backend is not None:
        require_kernel(study, scale, backend)
    views = {view.name: view.comparison for view in study.all_views}
    used = {views[name] for section in wanted for name in section.comparisons}
    if sections is None:
        used |= {views[each.comparison] for each in study.criteria}
        used |= {views[each.comparison] for each in study.figures}
    work = Work(path_of(out) / study.name / scale, jobs, progress)
    own = requests(study, scale, used, examined, allow_code)
    elsewhere = plans_of(
        each
        for other in study.scales
        if other != scale
        for each in requests(study, other, used, (), allow_code)
    )
    refuse_unknown(study, plans_of(own), elsewhere)
    _refuse_unfit(own, [each for each in examined if each.given in (named or ())])
    of_kernel = used & set(study.kernel.each) if backend is not None and study.kernel else set()
    simulated, measured = (
        requests(study, scale, of_kernel, examined, allow_code, study.kernel, by)
        for by in (None, backend)
    )
    if backend is not None:
        controls = [file.plan for each in measured for file in each.files]
        backends.require_able(backends.find(backend), controls)
    work.run([*own, *simulated])
    if backend is not None:
        work.run(measured, backend)

    def results(part: Sequence[Request]) -> dict[str, ComparisonResult]:
        return {each.comparison.name: each.result(work.out) for each in part}

    done = results(own)
    kernel = None
    if backend is not None:
        by_kernel = results(measured)
        kernel = ByKernel(
            backend=backend,
            made_by=", ".join(sorted({each.results.made_by for each in by_kernel.values()})),
            about=study.kernel.about if study.kernel else "",
            simulated=grids(study, results(simulated)),
            measured=grids(study, by_kernel),
            absent={
                each.comparison.name: {
                    label: why for file in each.files for label, why in file.unfit.items()
                }
                for each in measured
            },
            failed={each.comparison.name: _failed(each, subject.control) for each in measured},
        )
    state = work.counting.state
    return Evaluation(
        study=study,
        subject=subject,
        scale=scale,
        subjects=examined,
        sections=wanted,
        comparisons=done,
        grids=grids(study, done),
        placed={each.comparison.name: _placed(each, examined) for each in own},
        failed={each.comparison.name: _failed(each, subject.control) for each in own},
        phases={each.comparison.name: _phases(each) for each in own},
        kernel=kernel,
        folder=work.out,
        run_count=state.done,
        reused=state.reused,
        packets=state.packets,
    )


def requests(
    study: Study,
    scale: str,
    names: Collection[str],
    examined: Sequence[Examined],
    allow_code: Allowed,
    setting: Kernel | None = None,
    backend: str | None = None,
) -> list[Request]:
    """Return comparisons of a suite, to be run with its subjects.

    Args:
        study: the suite.
        scale: the name of the scale; comparisons without it are left out.
        names: the names of the comparisons.
        examined: the subjects.
        allow_code: files and folders whose code may be executed.
        setting: what is changed so that a kernel can run them.
        backend: what will make the runs, which some subjects may not suit; None for the simulator.
    """
    if study.subject is None:
        raise SpecError(f"{study.name} has no table [subject], so it is no suite")
    trust = Trust(study.folder, allow_code)
    inside = InPlace(examined, study.subject, backend)
    return [
        Request(comparison, of_scale, setting, trust, variants=False, examined=inside)
        for comparison in study.comparisons
        if (of_scale := comparison.scale(scale)) is not None and comparison.name in names
    ]


def plans_of(requests: Iterable[Request]) -> dict[str, list[Plan]]:
    """Return the plans of all files by comparison."""
    found: dict[str, list[Plan]] = {}
    for each in requests:
        found.setdefault(each.comparison.name, []).extend(file.plan for file in each.files)
    return found


def _sections(study: Study, named: Sequence[str] | None) -> tuple[Section, ...]:
    """Return the sections of some ids, in the order of the suite."""
    ids = [section.id for section in study.sections]
    for name in named or ():
        if name not in ids:
            raise SpecError(f"--section {name}: accepted: {', '.join(ids)}")
    return tuple(each for each in study.sections if named is None or each.id in named)


def _refuse_unfit(requests: Sequence[Request], examined: Sequence[Examined]) -> None:
    """Refuse a subject that was named and can be examined nowhere."""
    files = [file for request in requests for file in request.files]
    for each in examined:
        if files and all(each.label in file.unfit for file in files):
            for file in files:
                if each.label in file.errors:
                    raise each.error(file.errors[each.label], file.of.comparison.queue)
            why = files[0].unfit[each.label]
            raise SpecError(f"{each.given}: can be examined in no experiment: {why}")


def _failed(request: Request, control: str) -> tuple[str, ...]:
    """Return which runs failed, a line for each subject and reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for file in request.files:
        for label, results in file.labelled():
            for failure in results.failures:
                first, *_ = failure.reason.splitlines() or [""]
                reasons.setdefault((label or control, failure.kind), []).append(first)
    return tuple(
        f"{label}: {counted(len(same), 'run')} failed and is missing: {same[0]}"
        if len(same) == 1
        else f"{label}: {counted(len(same), 'run')} failed and are missing, such as: {same[0]}"
        for (label, _), same in reasons.items()
    )


def _phases(request: Request) -> tuple[str, ...]:
    """Return the bounds of the phases of a comparison; none where its files differ in them."""
    found = set()
    for file in request.files:
        scenario = json.loads(file.plan.example(0))
        if ends := scenario.get("phases"):
            first, last = scenario.get("warmup", "0 s"), scenario.get("duration", "")
            found.add((first, *map(str, ends), last))
    return found.pop() if len(found) == 1 else ()


def _placed(request: Request, examined: Sequence[Examined]) -> dict[str, Placed]:
    found = {}
    for each in examined:
        label = each.label
        known = {text for file in request.files for text in file.plan.warnings}
        warnings = dict.fromkeys(
            text
            for file in request.files
            for text in file.warnings.get(label, ())
            if text not in known
        )
        found[label] = Placed(
            {file.path.name: file.fitted[label] for file in request.files if label in file.fitted},
            {file.path.name: file.unfit[label] for file in request.files if label in file.unfit},
            tuple(warnings),
        )
    return found
