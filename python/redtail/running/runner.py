"""Runs an experiment: what is missing in the store, on all cores, stored run by run."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import os
import shlex
import traceback
import warnings
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from redtail import backends, experiment, facts
from redtail.analysis import copies
from redtail.analysis.case import CaseResult
from redtail.analysis.failures import Failure
from redtail.analysis.loads import Calibrated
from redtail.analysis.provenance import Provenance
from redtail.analysis.rare import sharing, why_no_interval
from redtail.analysis.results import Results
from redtail.analysis.stats import Estimate
from redtail.analysis.stopping import Pair, StopRule, pairs, reached
from redtail.analysis.stored import replaced, write
from redtail.backends import Backend
from redtail.derived import with_derived
from redtail.engine.plans import Plan
from redtail.errors import Cancelled, InvalidRun, RedtailWarning, RunError, SpecError, StoreError
from redtail.experiment import Source, toml_value
from redtail.metrics import nearest
from redtail.options import ExecuteOptions, RunOptions, split
from redtail.outcomes import Outcome, Outcomes
from redtail.progress import Inside, Progress
from redtail.running import calibration
from redtail.running.pool import Needs, Pool, available_cores
from redtail.running.watching import Board
from redtail.store.folders import ExperimentStore, StoredRun
from redtail.store.format import folder_name, run_keys
from redtail.store.segments import LARGE, CampaignRuns

# Runs whose texts are made in one call.
_AT_ONCE = 100


@dataclass(slots=True)
class _Task:
    """One run to be made; several cases can need the same one.

    Attributes:
        key: its name in the store.
        scenario: the run, as canonical JSON.
        case: the number of the first case that needs it.
        replication: its number.
    """

    key: str
    scenario: str
    case: int
    replication: int


def run(source: Source, **options: Unpack[RunOptions]) -> Results:
    """Run an experiment and return its results.

    Runs whose results are in the store are not made again, so an experiment that was stopped
    goes on where it was.

    Args:
        source: a path, `Toml` text or an `Experiment`.
        set: overrides by dotted key, as for `check`.
        replications: overrides the experiment's number of replications.
        until: overrides it with a rule, as for `check`; so do the next two.
        at_least: replications before the rule is looked at.
        at_most: replications that no case exceeds.
        metrics: names of the metrics that tables and figures show, as for `check`.
        jobs: number of runs at the same time; by default one per processor.
        out: folder of the store, or the URL of an object store that fsspec knows.
        progress: called after each finished run, and during runs that take long.
        keep_going: when a run fails, make the others and warn, rather than stop.
        executor: runs the scenarios in place of threads of this process, for instance
            dask's (`redtail.cluster.ClusterExecutor`); `jobs` then only says how many it makes at
            once, unless it has an attribute `width` that does.
        backend: the name of what makes the runs: "sim", "live" or "live-tc"; without it what the
            experiment says.
        allow_code: files and folders outside the experiment's own whose code, classes that it names
            as queues, may be executed. Classes that are passed as such need no permission.

    Raises:
        SpecError: the experiment is not valid.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    checking, running = split(options)
    plan = experiment.prepare(source, backend=running.get("backend"), **checking)
    for text in plan.warnings:
        warnings.warn(text, RedtailWarning, stacklevel=2)
    results = execute(plan, **running)
    for text in results.warnings:
        warnings.warn(text, RedtailWarning, stacklevel=2)
    if results.failures:
        warnings.warn(results.failure_summary(), RedtailWarning, stacklevel=2)
    return results


def execute(plan: Plan, **options: Unpack[ExecuteOptions]) -> Results:
    """Run a checked experiment; arguments and errors as for `run`.

    What failed on the way is in the results, and there is no warning of it.
    """
    (results,) = execute_all([plan], **options)
    return results


def execute_all(
    plans: Sequence[Plan],
    *,
    jobs: int | None = None,
    out: str | os.PathLike[str] = "runs",
    progress: Callable[[Progress], None] | None = None,
    keep_going: bool = False,
    executor: Executor | None = None,
    backend: str | None = None,
    stored_only: bool = False,
) -> list[Results]:
    """Run several checked experiments as one.

    They are run one after the other, but the last runs of one, or of a round of its stop rule,
    delay nothing: an idle worker makes runs of the next.

    Args:
        plans: the experiments, with names that give them different folders.
        jobs: as for `run`, like those that follow.
        out: folder of the store.
        progress: called after each finished run, of all experiments together.
        keep_going: when a run fails, make the others.
        executor: runs the scenarios.
        backend: the name of what makes the runs; without it what the experiments say.
        stored_only: make no run but those that find users for a load; runs that are not stored are
            missing in the results.

    Returns:
        The results of each, as `execute` returns them.

    Raises:
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept, of all experiments.
    """
    backend = backends.chosen(backend, plans)
    maker = backends.find(backend)
    for plan in plans:
        plan.require_loaded()
    backends.require_able(maker, plans)
    folders = [folder_name(plan.name, backend) for plan in plans]
    if len(set(folders)) < len(folders):
        raise ValueError(f"two experiments would have their results in one folder: {folders}")
    with contextlib.ExitStack() as held:
        # All folders now, and not after hours: one may belong to another user.
        stores = [held.enter_context(ExperimentStore(out, plan.name, backend)) for plan in plans]
        for store, plan in zip(stores, plans, strict=True):
            store.refuse_results_of_another(plan.name)
        told = _also_on(held.enter_context(Board([store.folder for store in stores])), progress)
        found = []
        notes: tuple[str, ...] = ()
        for plan in plans:
            plan, loads, more = calibrated(
                plan,
                jobs=jobs,
                out=out,
                progress=told,
                executor=executor,
                before=notes,
                backend=backend,
            )
            found.append((plan, loads))
            notes += more
        state = Progress(sum(plan.first_runs for plan, _ in found), notes=notes)
        notify = functools.partial(told, state)
        executions = [
            _Execution(
                plan, loads, store, state, notify, out, executor is not None, maker, stored_only
            )
            for (plan, loads), store in zip(found, stores, strict=True)
        ]
        held.push(functools.partial(_flushed, executions))
        where = stores[0].place if len(stores) == 1 else str(out)
        folder = stores[0].folder if len(stores) == 1 else stores[0].root
        try:
            whole = Pool(executor, jobs or available_cores(), keep_going, maker).run(executions)
        except RunError as error:
            raise type(error)(
                f"{error}\n{_kept(state, where)}; the same command goes on from there, "
                "and with --keep-going (keep_going=True in Python) past runs that fail"
            ) from error
        if not whole:
            failed = f", {state.failed} failed" if state.failed else ""
            raise Cancelled(
                f"interrupted: {_kept(state, where)}{failed}; the same command goes on from there",
                kept=state.done,
                total=state.total,
                folder=folder,
            )
        return [each.results for each in executions]


def _also_on(
    board: Board, progress: Callable[[Progress], None] | None
) -> Callable[[Progress], None]:
    """Return what shows progress to the caller, if it wants that, and to other processes."""

    def told(state: Progress) -> None:
        if progress is not None:
            progress(state)
        if board.due:
            board.show(
                total=state.total,
                reused=state.reused,
                done=state.done,
                failed=state.failed,
                packets=state.packets,
                calibrating=state.calibrating,
                running=state.running,
            )

    return told


def _flushed(
    executions: Sequence[_Execution], kind: type[BaseException] | None, *rest: object
) -> None:
    """Write what is not written yet, also after an error."""
    for each in executions:
        # What there is to say of a reason that is an error is said already.
        with contextlib.suppress(*[StoreError] if kind not in (None, Cancelled) else []):
            each.flush()


class _Execution:
    """An experiment in progress, from a plan to results, one round of runs at a time.

    Args:
        plan: the experiment, with the users of groups that are asked for by their load.
        loads: what was found of these, for each case.
        store: its folder.
        state: how far all experiments are that are run together; it has the runs of this one that
            are certain already.
        notify: called when `state` has changed.
        out: folder of all stores.
        away: whether runs are made by an executor.
        backend: what makes them.
        stored_only: whether runs that are not stored are left out.
    """

    results: Results

    def __init__(
        self,
        plan: Plan,
        loads: Sequence[tuple[Calibrated, ...]],
        store: ExperimentStore,
        state: Progress,
        notify: Callable[[], None],
        out: str | os.PathLike[str],
        away: bool,
        backend: Backend,
        stored_only: bool = False,
    ) -> None:
        self.backend = backend = _bound(backend, plan, away)
        self.stored_only = stored_only
        self.plan = plan
        self.loads = loads
        self.store = store
        self.state = state
        self.notify = notify
        self.out = out
        self.code_version = backend.identity()
        self.needs = Needs(
            plan.queues,
            plan.traces,
            self.code_version if away else None,
            backend.name,
            plan.runs >= LARGE,
            None if away else backend,
        )
        self.version = facts.version()
        # Of each case, by replication.
        self.keys: list[list[str]] = [[] for _ in plan.cases]
        self.failures: dict[str, Failure] = {}
        self._failed: dict[str, tuple[int, int]] = {}
        self.reused = 0
        self.open_cases = list(range(len(plan.cases)))
        # Cases whose replications are copies of one run, which met no rule.
        self._closed: list[int] = []
        self.open_pairs = list(() if plan.stop is None else pairs(plan.stop, plan.cases))
        self._looks = iter([plan.replications] if plan.stop is None else plan.stop.looks())
        self._made = 0
        self._waiting = 0
        # The keys of runs that are being made.
        self._out: set[str] = set()
        self._tasks: Iterator[_Task] = iter(())
        self._stored: CampaignRuns | None = None

    @property
    def stored(self) -> CampaignRuns:
        """Its runs that are stored; looked for when the first is asked for."""
        if self._stored is None:
            self._stored = CampaignRuns(self.store, self.code_version, self.plan.runs >= LARGE)
        return self._stored

    def left(self) -> int:
        """Return how many runs of the present round wait to be handed out, at most."""
        if not self._made:
            self.state.total -= self.plan.first_runs
            self._begin_round()
        return self._waiting

    def next(self, count: int) -> list[_Task]:
        """Return the next tasks, at most `count`."""
        return list(itertools.islice(self._tasks, count))

    def more(self) -> bool:
        """Examine a finished round; returns whether there is another one."""
        self.flush()
        rule = self.plan.stop
        if rule is not None:
            stored = self.stored
            keys = itertools.chain.from_iterable(self.keys)
            found = (stored.metrics(key) for key in keys if key in stored)
            _known(rule, (with_derived(run, self.plan.derived) for run in found))
            copied = {case for case in self.open_cases if self._copied(case)}
            # More copies would tell nothing.
            self._closed += sorted(copied)
            self.open_pairs = [
                pair
                for pair in self.open_pairs
                if not {pair.first, pair.second} & {*copied, *self._closed} and not self._met(pair)
            ]
            waiting = {case for pair in self.open_pairs for case in (pair.first, pair.second)}
            self.open_cases = [
                case
                for case in self.open_cases
                if case not in copied
                and (
                    case in waiting
                    or not rule.met(functools.partial(self._values, case), self._explain(case))
                )
            ]
        if self.open_cases and self._begin_round():
            return True
        self._finish()
        return False

    def tick(self, running: Inside, idle: bool) -> None:
        """Write a checkpoint if it is time for one; tell how far runs are."""
        if self._stored is not None:
            self._stored.tick()
        self.state.running = running
        if running and idle:
            self.notify()

    def flush(self) -> None:
        """Write what is not written yet."""
        if self._stored is not None:
            self._stored.flush()

    def keep(self, tasks: Sequence[_Task], outcomes: Outcomes) -> None:
        """Store what runs measured."""
        packets = outcomes.bottleneck_packets
        for place in self.stored.save(
            tasks, outcomes, version=self.version, backend=self.backend.name
        ):
            self._out.discard(tasks[place].key)
            self.state.done += 1
            self.state.packets += packets[place]
            self.notify()

    def failure(self, task: _Task, error: RunError) -> str:
        """Record a run that failed; returns the message about it."""
        title = self.plan.cases[task.case].title
        run = f"{title or 'the run'}, replication {task.replication}"
        command = _repeating(self.plan, task, self.out, self.backend)
        log = self.store.write_log(task.key, _log(run, command, task, error, self.backend))
        self.failures[task.key] = Failure(task.key, run, str(error), command, log)
        self._failed[task.key] = (task.replication, task.case)
        self._out.discard(task.key)
        self.state.failed += 1
        self.notify()
        return self.failures[task.key].text

    def _begin_round(self) -> bool:
        """Find the missing runs of the next round; false when there is no further round."""
        look = next(self._looks, None)
        if look is None:
            return False
        # Replication by replication: what an interrupted experiment leaves then covers all cases
        # alike, and the time left is estimated from all of them.
        # Not itertools.product, which would make lists of both.
        cases, has = self.open_cases, self.plan.has
        runs = (
            (number, case)
            for number in range(self._made, look)
            for case in cases
            if has(case, number)
        )
        if self.stored.empty and not self.stored_only:
            fixed = self.plan.stop is None
            count = self.plan.runs if fixed else (look - self._made) * len(cases)
            self._waiting = count
            self.state.total += count
            self._tasks = self._all_tasks(runs)
        else:
            missing = self._missing(runs)
            self._waiting = len(missing) // 2
            self._tasks = self._tasks_of(missing)
        self._made = look
        self.notify()
        return True

    def _all_tasks(self, runs: Iterable[tuple[int, int]]) -> Iterator[_Task]:
        """Yield these runs, none of which is stored; their texts are made shortly before."""
        for task in self._tasks_for(runs):
            key = task.key
            self.keys[task.case].append(key)
            self._waiting -= 1
            if key in self._out or key in self.stored or key in self.failures:
                self.state.total -= 1  # another case needs the same one
            else:
                self._out.add(key)
                yield task

    def _missing(self, runs: Iterable[tuple[int, int]]) -> array[int]:
        """Return replication and case of each run that is missing, and take in the others."""
        found = array("L")
        begun: set[str] = set()
        for task in self._tasks_for(runs):
            key = task.key
            self.keys[task.case].append(key)
            if key in self.stored or key in begun or key in self.failures:
                continue
            is_stored = self.stored.find(key)
            if self.stored_only and not is_stored:
                continue
            self.state.total += 1
            if is_stored:
                self.reused += 1
                self.state.reused += 1
                self.state.done += 1
            else:
                begun.add(key)
                found.extend((task.replication, task.case))
        return found

    def _tasks_of(self, runs: array[int]) -> Iterator[_Task]:
        """Yield runs by replication and case; the texts of all would fill the memory."""
        for task in self._tasks_for(zip(runs[::2], runs[1::2], strict=True)):
            self._waiting -= 1
            yield task

    def _tasks_for(self, runs: Iterable[tuple[int, int]]) -> Iterator[_Task]:
        """Yield these runs, each given by its replication and its case."""
        left = iter(runs)
        while some := [(case, number) for number, case in itertools.islice(left, _AT_ONCE)]:
            texts = self.plan.scenarios(some)
            keys = run_keys(texts, self.code_version, self.backend.name)
            for key, text, (case, number) in zip(keys, texts, some, strict=True):
                yield _Task(key, text, case, number)

    def _values(self, case: int, metric: str) -> list[float]:
        """Return a metric of a case replication by replication."""
        stored = self.stored
        runs = (stored.metrics(key) for key in self.keys[case] if key in stored)
        derived = (
            self.plan.derived if any(each.name == metric for each in self.plan.derived) else ()
        )
        return [with_derived(run, derived).get(metric, math.nan) for run in runs]

    def _reached(self, pair: Pair) -> tuple[Estimate, float]:
        """Return the difference of a pair of cases so far, and the mean of its second case."""

        def values(case: int, metric: str) -> dict[int, float]:
            keys = self.keys[case]
            present = (number for number, key in enumerate(keys) if key in self.stored)
            return dict(zip(present, self._values(case, metric), strict=True))

        def why(metric: str, n: int) -> str | None:
            found = (self._explain(case)(metric, n) for case in (pair.first, pair.second))
            return next((text for text in found if text is not None), None)

        return reached(pair, values, why)

    def _met(self, pair: Pair) -> bool:
        return pair.bound.met(*self._reached(pair))

    def _copied(self, case: int) -> int:
        """Return how many replications of a case are copies of one run: all, or none."""
        stored = self.stored
        return copies.of_metrics([stored.metrics(key) for key in self.keys[case] if key in stored])

    @functools.cached_property
    def _sharing(self) -> list[dict[str, float]]:
        """For each case, how many pairs of its flows are expected to share a bucket."""
        cases = range(len(self.plan.cases))
        return [sharing(json.loads(self.plan.example(case))) for case in cases]

    def _explain(self, case: int) -> Callable[[str, int], str | None]:
        """Return a function that says why a metric of a case has no interval."""
        found = self._sharing[case]
        values = functools.partial(self._values, case)
        return lambda metric, n: why_no_interval(metric, found, n, values)

    def _finish(self) -> None:
        """Put the runs together and write the results."""
        plan = self.plan
        cases = []
        for number, case in enumerate(plan.cases):
            runs = self.stored.runs(dict(enumerate(self.keys[number])))
            cases.append(
                CaseResult.of(
                    case.factors,
                    case.labels,
                    runs,
                    self.loads[number],
                    case.settings,
                    self._sharing[number],
                    plan.derived,
                )
            )
        self.results = Results(
            name=plan.name,
            description=plan.description,
            factors=plan.factors,
            cases=tuple(cases),
            folder=self.store.folder,
            reused=self.reused,
            # In the order of the runs, whichever failed first.
            failures=[
                self.failures[key] for key in sorted(self._failed, key=self._failed.__getitem__)
            ],
            backend=self.backend.name,
            made_by=self.code_version,
            provenance=Provenance(
                version=self.version,
                seed=plan.seed,
                sets=plan.sets,
                file=plan.file,
                text=plan.text,
                form=plan.form,
                inputs=plan.inputs,
                checksums=plan.checksums,
                packages=plan.packages,
            ),
            report=plan.report,
            derived=plan.derived,
        )
        self.results.unsure = (
            *(
                f"{plan.cases[case].title or 'the case'}: {copies.reason(self._copied(case))}; "
                f"{copies.REMEDY}"
                for case in self._closed
            ),
            *_too_wide(plan, self.open_cases, self._values, self._explain),
            *(_too_wide_pair(plan, pair, *self._reached(pair)) for pair in self.open_pairs),
        )
        self.results.replaced = replaced(self.results, self.code_version)
        write(self.results, self.store)
        self.store.close()


def calibrated(
    plan: Plan,
    *,
    jobs: int | None = None,
    out: str | os.PathLike[str] = "runs",
    progress: Callable[[Progress], None] | None = None,
    executor: Executor | None = None,
    before: tuple[str, ...] = (),
    backend: str | None = None,
) -> tuple[Plan, list[tuple[Calibrated, ...]], tuple[str, ...]]:
    """Find the number of users for groups that are specified by their load.

    The runs that this takes are kept in the store, so that it costs nothing a second time.

    Args:
        plan: a checked experiment; without such groups nothing is run.
        jobs: as for `run`, like those that follow.
        out: folder of the store.
        progress: called after each run.
        executor: runs the scenarios.
        before: notes of the progress that there are already.
        backend: the name of what makes the runs; without it what the experiments say.

    Returns:
        The plan with the users, what was found for each case, and the same in words.

    Raises:
        StoreError: results cannot be written.
        RunError: no number of users offers a load, or a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    if plan.users or not any(plan.loads(case) for case in range(len(plan.cases))):
        return plan, [()] * len(plan.cases), ()
    store = ExperimentStore(out, calibration.FOLDER)
    state = Progress(total=0, calibrating=True, notes=before)
    maker = _bound(backends.find(backends.chosen(backend, [plan])), plan, executor is not None)
    pool = Pool(executor, jobs or available_cores(), False, maker)
    away = executor is not None

    def measure(scenarios: list[tuple[str, str]]) -> list[float | None]:
        trials = _Trials(
            store, state, progress, [scenario for scenario, _ in scenarios], away, maker
        )
        if not pool.run([trials]):
            raise Cancelled(
                "interrupted while finding the users for a load; what was found is kept, and the "
                "same command goes on from there",
                kept=state.done,
                total=state.total,
                folder=store.folder,
            )
        return [
            trials.stored[key].metrics.get(name)
            for key, (_, name) in zip(trials.keys, scenarios, strict=True)
        ]

    def report(text: str) -> None:
        state.notes = (*state.notes, text)
        if progress is not None:
            progress(state)

    with store:
        plan, found = calibration.calibrate(plan, measure, report)
    return plan, found, state.notes[len(before) :]


def _bound(backend: Backend, plan: Plan, away: bool) -> Backend:
    """Return the backend with what the runs of an experiment need.

    Raises:
        SpecError: a program is missing, or workers would need this computer's programs.
    """
    found = backends.bound(backend, plan)
    if away and found is not backend:
        raise SpecError(
            f"{plan.name}: backend {backend.name} takes the experiment's programs from this "
            "computer, and the workers of an executor have others; accepted: a run without "
            "executor (--dask)",
            key="kind",
        )
    return found


class _Trials:
    """Runs that find how many users offer a load.

    Args:
        store: where they are kept.
        state: how far the search is.
        progress: called with it after each run.
        scenarios: the runs.
        away: whether they are made by an executor.
        backend: what makes them.
    """

    def __init__(
        self,
        store: ExperimentStore,
        state: Progress,
        progress: Callable[[Progress], None] | None,
        scenarios: Sequence[str],
        away: bool,
        backend: Backend,
    ) -> None:
        self.store = store
        self.state = state
        self.backend = backend
        self.progress = progress
        code_version = backend.identity()
        self.needs = Needs(
            code_version=code_version if away else None,
            backend=backend.name,
            maker=None if away else backend,
        )
        self.keys = run_keys(scenarios, code_version, backend.name)
        self.stored: dict[str, StoredRun] = {}
        tasks = {}
        for key, scenario in zip(self.keys, scenarios, strict=True):
            if key in self.stored or key in tasks:
                continue
            found = store.load(key)
            if found is not None:
                self.stored[key] = found
            else:
                tasks[key] = _Task(key, scenario, 0, int(json.loads(scenario)["replication"]))
        state.total += len(tasks)
        self._waiting = deque(tasks.values())

    def left(self) -> int:
        """Return how many wait to be handed out."""
        return len(self._waiting)

    def next(self, count: int) -> list[_Task]:
        """Return the next tasks, at most `count`."""
        return [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]

    def more(self) -> bool:
        """Return whether there are more tasks."""
        return False

    def tick(self, running: Inside, idle: bool) -> None:
        """Tell how far runs are; each run is written at once."""
        self.state.running = running
        if running and idle and self.progress is not None:
            self.progress(self.state)

    def flush(self) -> None:
        """Do nothing: each run is written at once."""

    def keep(self, tasks: Sequence[_Task], outcomes: Outcomes) -> None:
        """Store what runs measured."""
        for place, task in enumerate(tasks):
            outcome = outcomes[place]
            self.stored[task.key] = _save(self.store, task, outcome, self.backend)
            self.state.done += 1
            self.state.packets += outcome.bottleneck_packets
            if self.progress is not None:
                self.progress(self.state)

    def failure(self, task: _Task, error: RunError) -> str:
        """Keep a log of a run that failed; returns the message about it.

        Raises:
            RunError: the run is not valid, and without it no users can be found.
        """
        run = f"calibrating, replication {task.replication}"
        log = self.store.write_log(task.key, _log(run, None, task, error, self.backend))
        if isinstance(error, InvalidRun):
            raise RunError(Failure(task.key, run, str(error), None, log).text) from error
        return Failure(task.key, run, str(error), None, log).text


def _save(store: ExperimentStore, task: _Task, outcome: Outcome, backend: Backend) -> StoredRun:
    return store.save(
        task.key,
        task.scenario,
        outcome,
        code_version=backend.identity(),
        version=facts.version(),
        backend=backend.name,
        replication=task.replication,
    )


def _known(rule: StopRule, runs: Iterable[Mapping[str, float]]) -> None:
    """Refuse a rule about a metric that no run has."""
    known = dict.fromkeys(name for run in runs for name in run)
    for bound in rule.until:
        if known and bound.metric not in known:
            raise SpecError(
                f'replications.until = "{bound}": no run has the metric {bound.metric}'
                f"{nearest(known, bound.metric)}",
                key="replications.until",
            )


def _too_wide(
    plan: Plan,
    cases: Sequence[int],
    values: Callable[[int, str], list[float]],
    why: Callable[[int], Callable[[str, int], str | None]],
) -> tuple[str, ...]:
    """Return a line for each case whose intervals are wider than its rule asks for."""
    if plan.stop is None:
        return ()
    unmet = {case: plan.stop.unmet(functools.partial(values, case), why(case)) for case in cases}
    return tuple(
        f"{plan.cases[case].title or 'the case'} after {plan.stop.at_most} replications: "
        + "; ".join(texts)
        for case, texts in unmet.items()
        if texts
    )


def _too_wide_pair(plan: Plan, pair: Pair, found: Estimate, reference: float) -> str:
    """Return a line for a pair of cases whose difference is less certain than its rule asks for."""
    first, second = (plan.cases[case].title for case in (pair.first, pair.second))
    share = (
        f"no interval, {found.no_interval}"
        if found.ci95 is None
        else f"the mean of {second} is 0"
        if reference == 0
        else f"±{100 * found.ci95 / abs(reference):.2g} %"
    )
    return f"{first} less {second} after {found.n} replications: {pair.bound}: {share}"


def _kept(state: Progress, place: str) -> str:
    runs = "1 run is" if state.total == 1 else f"{state.total} runs are"
    return f"{state.done} of {runs} finished and kept in {place}"


def _log(run: str, command: str | None, task: _Task, error: RunError, backend: Backend) -> str:
    """Return the log of a run that failed."""
    lines = [
        run,
        f"run: {task.key}",
        f"code version: {backend.identity()}, backend {backend.name}",
        f"to repeat it alone: {command or 'its experiment is not in a file; see the scenario'}",
        "",
        "".join(traceback.format_exception(error)),
        "scenario:",
        json.dumps(json.loads(task.scenario), indent=2, ensure_ascii=False),
    ]
    if isinstance(error, InvalidRun):
        lines += ["measured, but not valid:", json.dumps(error.metrics, indent=2)]
    return "\n".join(lines) + "\n"


def _repeating(
    plan: Plan, task: _Task, out: str | os.PathLike[str], backend: Backend
) -> str | None:
    """Return the command that makes one run, None when the experiment is not in a file.

    Earlier replications of its case are in the store by then, and are not made again.
    """
    if plan.file is None or not Path(plan.file).is_file():
        return None
    factors = plan.cases[task.case].factors
    sets = [text for text in plan.sets if not text.startswith(("replications=", "replications."))]
    sets += [f"{key}={toml_value(value, key)}" for key, value in factors.items()]
    words = ["redtail", "run", plan.file]
    for text in sets:
        words += ["--set", text]
    words += ["--replications", str(task.replication + 1)]
    if str(out) != "runs":
        words += ["--out", str(out)]
    if backend.name != backends.DEFAULT:
        words += ["--backend", backend.name]
    for path in plan.allowed:
        words += ["--allow-code", path]
    return shlex.join(words)
