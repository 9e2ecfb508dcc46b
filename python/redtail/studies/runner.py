"""Runs experiment files with overrides as one piece of work: the runner of all studies.

A file is run as it is and with each variant in place of its queues; files that comparisons share
are run once. `Counting` makes one progress of several experiments, for whoever runs some.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from redtail import backends, experiment
from redtail.analysis.case import CaseResult
from redtail.analysis.results import Results
from redtail.engine.plans import Plan
from redtail.errors import Cancelled, RedtailError, RedtailWarning, SpecError
from redtail.inputs.code import Allowed
from redtail.options import ExecuteOptions
from redtail.progress import Progress
from redtail.running import runner
from redtail.studies import subjects
from redtail.studies.definition import (
    Comparison,
    Kernel,
    Scale,
    Setting,
    Solve,
    Subject,
    Variant,
)
from redtail.studies.grid import in_si, quantity, replace_cases
from redtail.studies.subjects import Examined, Fitted


class Counting:
    """The progress of several experiments, one after the other, as that of one.

    Args:
        total: about how many runs there will be.
        progress: called after each run.
    """

    def __init__(self, total: int, progress: Callable[[Progress], None] | None) -> None:
        self.state = Progress(total)
        self._show = progress or (lambda state: None)

    def note(self, *texts: str) -> None:
        """Tell what was found."""
        self.state.notes += texts
        self._show(self.state)

    def cancelled(self, out: object, folder: Path | None = None) -> Cancelled:
        """Return the error of work that was interrupted.

        Args:
            out: the folder of the store, as the user named it.
            folder: where the kept runs are.
        """
        state = self.state
        return Cancelled(
            f"interrupted: {state.done} of about {state.total} runs are finished and kept in "
            f"{out}; the same command goes on from there",
            kept=state.done,
            total=state.total,
            folder=folder,
        )

    def run(self, plan: Plan, running: ExecuteOptions) -> Results:
        """Run an experiment as a part of the whole, without warnings: the whole tells of them.

        Raises:
            Cancelled: it was interrupted; what was finished is kept.
        """
        given: ExecuteOptions = {**running, "progress": self.part()}
        try:
            return quietly(lambda: runner.execute(plan, **given))
        except Cancelled as error:
            raise self.cancelled(running.get("out", "runs"), error.folder) from None

    def part(self, *, notes: bool = False) -> Callable[[Progress], None]:
        """Return what counts the runs of the next experiment, and tells its notes if asked to."""
        before = replace(self.state)

        def count(part: Progress) -> None:
            state = self.state
            state.calibrating = part.calibrating
            state.notes = (*before.notes, *part.notes) if notes else state.notes
            state.packets = before.packets + part.packets
            if not part.calibrating:
                state.done = before.done + part.done
                state.reused = before.reused + part.reused
                state.failed = before.failed + part.failed
                state.total = max(state.total, state.done + state.failed)
            self._show(state)

        return count


def quietly(work: Callable[[], Results]) -> Results:
    """Do what would warn of properties that the results are asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


@dataclass(frozen=True)
class ComparisonResult:
    """What the runs of a comparison measured.

    Attributes:
        comparison: the comparison.
        results: all its cases, variants included.
        solved: for each variant with a value looked for: that value by load.
    """

    comparison: Comparison
    results: Results
    solved: Mapping[str, Mapping[float, str]]


class Request:
    """A comparison to be run as it is, or under a setting, and what its runs measured so far.

    Args:
        comparison: the comparison.
        scale: how much is run.
        setting: what is changed.
        trust: the code that may be executed.
        variants: whether its variants are run as well.
        examined: the subjects that are run in place of a suite's control, besides it.
    """

    def __init__(
        self,
        comparison: Comparison,
        scale: Scale,
        setting: Setting | Kernel | None,
        trust: Trust,
        variants: bool = True,
        examined: InPlace | None = None,
    ) -> None:
        self.trust = trust
        self.examined = examined
        self.comparison = comparison
        self.setting = setting
        self.variants = comparison.variants_at(scale.name) if variants else ()
        self.sets = {**scale.set, **(setting.of(comparison.name) if setting else {})}
        self.files = [File(self, path) for path in comparison.files]
        self.solved: dict[str, dict[float, str]] = {}

    def result(self, folder: Path) -> ComparisonResult:
        """Combine what the files measured."""
        cases = [case for file in self.files for case in file.cases(self.comparison)]
        cases.sort(key=lambda case: _load(self.comparison, case))
        last = self.files[-1].found[-1]
        everything = replace_cases(last, last.factors, tuple(cases))
        everything.name, everything.description = self.comparison.name, self.comparison.about
        everything.folder = folder
        return ComparisonResult(self.comparison, everything, self.solved)


class File:
    """One of a comparison's files, with the plans of its variants."""

    def __init__(self, of: Request, path: Path) -> None:
        self.of = of
        self.path = path
        self.base = Experiment(path, of.sets, of.trust)
        if of.setting is not None:
            name = f"{self.base.plan.name}, {of.setting.name}"
            self.base = Experiment(path, {**of.sets, "name": name}, of.trust)
        self.found: list[Results] = []
        self.fitted: dict[str, Fitted] = {}
        self.unfit: dict[str, str] = {}
        self.errors: dict[str, SpecError] = {}
        self.warnings: dict[str, list[str]] = {}
        self._subjects = [] if of.examined is None else list(self._examined(of.examined))

    @property
    def plan(self) -> Plan:
        """The plan of the file without variants."""
        return self.base.plan

    def experiments(self) -> list[Experiment]:
        """Return the requests that can be run at once: all except searches for a value."""
        variants = [each for each in self.of.variants if each.solve is None]
        of_variants = (self.attempt(each, self.queue(each)) for each in variants)
        return [self.base, *of_variants, *self._subjects]

    def cases(self, comparison: Comparison) -> Iterator[CaseResult]:
        """Yield what was measured, each subject with its own label."""
        for label, results in self.labelled():
            for case in results.cases:
                own = {} if label is None else {comparison.queue: label}
                yield replace(case, labels={**case.labels, **own})

    def labelled(self) -> Iterator[tuple[str | None, Results]]:
        """Yield what was measured, with the label of the subject; None for what is none."""
        others = len(self.found) - len(self.fitted)
        yield from zip([*[None] * others, *self.fitted], self.found, strict=True)

    def _examined(self, wanted: InPlace) -> Iterator[Experiment]:
        """Yield the file with each subject in place of the control, where it can be examined."""
        for each in wanted.subjects:
            try:
                kernel = self.of.setting if isinstance(self.of.setting, Kernel) else None
                fitted = subjects.fit(each, self.of.comparison, self.plan, wanted.of, kernel)
                own = (f"{key} {value}" for key, value in self.of.comparison.subject.items())
                name = ", ".join([self.plan.name, each.label, *own])
                # What the scale sets inside a subject's table comes after the table.
                sets = {**fitted.values, **self.of.sets, "name": name}
                made = Experiment(self.path, sets, self.of.trust)
                if wanted.backend is not None:
                    backends.require_able(backends.find(wanted.backend), [made.plan])
            except subjects.Unfit as why:
                self.unfit[each.label] = str(why)
            except SpecError as error:
                self.errors[each.label] = error
                self.unfit[each.label] = subjects.brief(str(error))
            else:
                self.fitted[each.label] = fitted
                texts = self.of.comparison.unmeant(made.plan.warnings)
                self.warnings[each.label] = list(map(subjects.brief, texts))
                yield made

    def queue(self, variant: Variant) -> dict[str, Any]:
        """Return a variant's queue: its own, or its changes to the one it comes from."""
        if "kind" in variant.queue:
            return {**variant.queue, "label": variant.label}
        key = self.of.comparison.queue
        of = next((case for case in self.plan.cases if case.labels[key] == variant.of), None)
        if of is None:
            labels = ", ".join(dict.fromkeys(case.labels[key] for case in self.plan.cases))
            raise SpecError(
                f"{self.path}: variant {variant.label}: of = {variant.of!r}; accepted: {labels}"
            )
        return {**of.factors[key], **variant.queue, "label": variant.label}

    def attempt(self, variant: Variant, queue: Mapping[str, Any]) -> Experiment:
        """Return the file with one queue, a variant, in place of its queues."""
        # The experiment's name is the folder's; a variant keeps apart from what it came from.
        own = {"name": f"{self.plan.name}, {variant.label}", self.of.comparison.queue: [queue]}
        return Experiment(self.path, {**self.of.sets, **own, **variant.set}, self.of.trust)


@dataclass(frozen=True)
class InPlace:
    """What is run in place of a suite's control, besides it.

    Attributes:
        subjects: the subjects.
        of: what the suite says of them.
        backend: what will make the runs; None for the simulator.
    """

    subjects: Sequence[Examined]
    of: Subject
    backend: str | None = None


@dataclass(frozen=True)
class Trust:
    """The code of a study that may be executed: that in its folder, and what is allowed.

    Attributes:
        folder: the study's folder.
        allowed: files and folders with further code.
        checked: the experiments that were checked by this rule, as comparisons share files.
    """

    folder: Path
    allowed: Allowed
    checked: dict[str, Plan] = field(default_factory=dict, compare=False, repr=False)


class Experiment:
    """An experiment file with overrides; `same` is equal for those that run the same."""

    def __init__(self, path: Path, sets: Mapping[str, Any], trust: Trust) -> None:
        self.path, self.sets, self.trust = path, sets, trust
        self.same = json.dumps([str(path), sets], sort_keys=True)
        if self.same not in trust.checked:
            trust.checked[self.same] = self._prepared(load=False)
        self.plan = trust.checked[self.same]

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


class Search:
    """A variant whose value is searched for at the one load of a file."""

    def __init__(self, file: File, variant: Variant, wanted: Solve) -> None:
        self.file = file
        self.variant = variant
        self.metric = wanted.metric
        self.key = wanted.key
        self.rounds = wanted.rounds
        comparison = file.of.comparison
        cases = file.found[0].cases
        by_queue = {case.labels[comparison.queue]: case for case in cases}
        if len(by_queue) != len(cases):
            raise SpecError(
                f"{file.path}: the search for a value needs exactly one value of {comparison.load}"
            )
        base = by_queue[variant.of]
        self.at = _load(comparison, base)
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

    def experiment(self) -> Experiment:
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


class Work:
    """Runs experiments as one, with one progress over all of them.

    Args:
        out: the folder of the store.
        jobs: number of runs at the same time; by default one per processor.
        progress: called after each run.
    """

    def __init__(
        self, out: Path, jobs: int | None, progress: Callable[[Progress], None] | None
    ) -> None:
        self.out = out
        self.jobs = jobs
        self.counting = Counting(0, progress)

    def run(self, wanted: Sequence[Request], backend: str | None = None) -> None:
        """Run all files with their variants, then the searches for values."""
        files = [file for each in wanted for file in each.files]
        texts = (text for file in files for text in file.of.comparison.unmeant(file.plan.warnings))
        for text in dict.fromkeys(texts):
            warnings.warn(text, RedtailWarning, stacklevel=4)
        of_files = [file.experiments() for file in files]
        results = iter(self.execute([each for part in of_files for each in part], backend))
        for file, of_file in zip(files, of_files, strict=True):
            file.found += [next(results) for _ in of_file]
        going = [
            Search(file, variant, variant.solve)
            for file in files
            for variant in file.of.variants
            if variant.solve is not None
        ]
        while going:
            found = self.execute([search.experiment() for search in going])
            going = [each for each, at in zip(going, found, strict=True) if each.measured(at)]

    def execute(
        self, experiments: Sequence[Experiment], backend: str | None = None
    ) -> list[Results]:
        """Run experiments, adding to the common progress; of like ones the first alone."""
        # Comparisons may look at the same file.
        first = {each.same: each for each in experiments}
        self.counting.state.total += sum(each.plan.runs for each in first.values())
        found = runner.execute_all(
            [each.loaded() for each in first.values()],
            jobs=self.jobs,
            out=self.out,
            progress=self.counting.part(notes=True),
            backend=backend,
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


def _load(comparison: Comparison, case: CaseResult) -> float:
    return in_si(comparison.load, case.factors[comparison.load])[0]
