"""Runs an experiment: what is missing in the store, on all cores, stored run by run."""

from __future__ import annotations

import functools
import json
import math
import os
import shlex
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

from redtail import _engine, calibration, experiment
from redtail._engine import Case, Outcome, Plan
from redtail.calibration import Calibrated
from redtail.errors import Cancelled, RedtailWarning, RunError, SpecError
from redtail.experiment import Overrides, Source, toml_value
from redtail.pool import Pool, available_cores
from redtail.results import CaseResult, Failure, Results, replaced
from redtail.segments import LARGE, Shelf
from redtail.stopping import StopRule
from redtail.store import ExperimentStore, StoredRun, run_key


@dataclass
class Progress:
    """How far an experiment is.

    Attributes:
        total: number of runs of the experiment.
        reused: runs whose results were in the store already.
        done: runs finished so far, the reused ones included.
        packets: packets that finished runs have sent over their bottleneck.
        failed: runs that failed so far.
        calibrating: whether these are runs that find how many users offer a load, before those of
            the experiment.
        notes: what was found so far, a line each.
        started: `time.monotonic()` at the start.
    """

    total: int
    reused: int = 0
    done: int = 0
    packets: int = 0
    failed: int = 0
    calibrating: bool = False
    notes: tuple[str, ...] = ()
    started: float = field(default_factory=time.monotonic)

    @property
    def packets_per_s(self) -> float:
        """Simulated bottleneck packets per second of waiting."""
        return self.packets / max(time.monotonic() - self.started, 1e-9)

    @property
    def left_s(self) -> float | None:
        """Seconds left, supposing that runs take as long as so far; None before the first."""
        fresh = self.done - self.reused + self.failed
        if fresh == 0:
            return None
        left = self.total - self.done - self.failed
        return (time.monotonic() - self.started) / fresh * left


@dataclass(frozen=True)
class _Task:
    """One run to be made."""

    key: str
    scenario: str
    replication: int


@dataclass(slots=True)
class _Planned:
    """One run of a plan to be made; several cases can need the same one."""

    key: str
    plan: Plan
    number: int
    replication: int
    case: Case
    _text: str | None = None

    @property
    def scenario(self) -> str:
        """The run, as canonical JSON, made when it is first asked for."""
        if self._text is None:
            self._text = self.plan.scenario(self.number, self.replication)
        return self._text

    def forget(self) -> None:
        """Give the memory of the text back, which a campaign's would fill."""
        self._text = None


def run(
    source: Source,
    *,
    set: Overrides | None = None,
    replications: int | None = None,
    until: str | Sequence[str] | None = None,
    at_least: int | None = None,
    at_most: int | None = None,
    jobs: int | None = None,
    out: str | os.PathLike[str] = "runs",
    progress: Callable[[Progress], None] | None = None,
    keep_going: bool = False,
    executor: Executor | None = None,
) -> Results:
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
        jobs: number of runs at the same time; by default one per processor.
        out: folder of the store.
        progress: called after each finished run.
        keep_going: when a run fails, make the others and warn, rather than stop.
        executor: runs the scenarios in place of threads of this process, for instance
            dask's (`redtail.cluster.ClusterExecutor`); `jobs` then only says how many it makes at
            once, unless it has an attribute `width` that does.

    Raises:
        SpecError: the experiment is not valid.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    plan = experiment.check(
        source,
        set=set,
        replications=replications,
        until=until,
        at_least=at_least,
        at_most=at_most,
    )
    for text in plan.warnings:
        warnings.warn(text, RedtailWarning, stacklevel=2)
    results = execute(
        plan, jobs=jobs, out=out, progress=progress, keep_going=keep_going, executor=executor
    )
    if results.failures:
        warnings.warn(results.failure_summary(), RedtailWarning, stacklevel=2)
    return results


def execute(
    plan: Plan,
    *,
    jobs: int | None = None,
    out: str | os.PathLike[str] = "runs",
    progress: Callable[[Progress], None] | None = None,
    keep_going: bool = False,
    executor: Executor | None = None,
) -> Results:
    """Run a checked experiment; arguments and errors as for `run`.

    What failed on the way is in the results, and there is no warning of it.
    """
    with ExperimentStore(Path(out), plan.name) as store:
        return _execute(
            store,
            plan,
            jobs=jobs,
            out=out,
            progress=progress,
            keep_going=keep_going,
            executor=executor,
        )


def _execute(
    store: ExperimentStore,
    plan: Plan,
    *,
    jobs: int | None,
    out: str | os.PathLike[str],
    progress: Callable[[Progress], None] | None,
    keep_going: bool,
    executor: Executor | None,
) -> Results:
    code_version = _engine.code_version()
    plan, loads, notes = calibrated(plan, jobs=jobs, out=out, progress=progress, executor=executor)

    keys: dict[tuple[int, int], str] = {}
    stored = Shelf(store, code_version, plan.runs >= LARGE)
    failures: dict[str, Failure] = {}
    state = Progress(total=0, notes=notes)

    def wanted(replications: range, cases: Sequence[int]) -> list[_Planned]:
        """Return the runs that are missing, having taken in those that are there."""
        # Replication by replication: what an interrupted experiment leaves then covers all cases
        # alike, and the time left is estimated from all of them.
        tasks: dict[str, _Planned] = {}
        for replication in replications:
            for number in cases:
                key = run_key(plan.scenario(number, replication), code_version, _engine.BACKEND)
                keys[number, replication] = key
                if key in stored or key in tasks or key in failures:
                    continue
                if stored.find(key):
                    state.reused += 1
                    state.done += 1
                else:
                    tasks[key] = _Planned(key, plan, number, replication, plan.cases[number])
                state.total += 1
        return list(tasks.values())

    def values(case: int, metric: str) -> list[float]:
        of_case = (keys.get((case, replication)) for replication in range(plan.replications))
        runs = (stored.metrics(key) for key in of_case if key is not None and key in stored)
        return [run.get(metric, math.nan) for run in runs]

    def keep(task: _Planned, outcome: Outcome) -> None:
        stored.save(
            task.key,
            task.scenario,
            outcome,
            version=_engine.version(),
            backend=_engine.BACKEND,
            replication=task.replication,
        )
        task.forget()
        state.done += 1
        state.packets += outcome.bottleneck_packets
        if progress is not None:
            progress(state)

    def failure(task: _Planned, error: RunError) -> str:
        run = f"{task.case.title or 'the run'}, replication {task.replication}"
        command = _repeating(plan, task, out)
        log = store.write_log(task.key, _log(run, command, task, error))
        failures[task.key] = Failure(task.key, run, str(error), command, log)
        state.failed += 1
        if progress is not None:
            progress(state)
        return failures[task.key].text

    pool = Pool(executor, jobs or available_cores(), keep_going, plan.queues, plan.traces)
    open_cases = list(range(len(plan.cases)))
    made = 0
    for look in [plan.replications] if plan.stop is None else plan.stop.looks():
        tasks = wanted(range(made, look), open_cases)
        if progress is not None:
            progress(state)
        try:
            with stored:
                told = pool.run(tasks, keep, failure, stored.tick)
        except RunError as error:
            raise type(error)(
                f"{error}\n{_kept(state, store.folder)}; the same command goes on from there, "
                "and with --keep-going (keep_going=True in Python) past runs that fail"
            ) from error
        if told is None:
            failed = f", {state.failed} failed" if state.failed else ""
            raise Cancelled(
                f"interrupted: {_kept(state, store.folder)}{failed}; "
                "the same command goes on from there",
                kept=state.done,
                total=state.total,
                folder=store.folder,
            )
        made = look
        if plan.stop is not None:
            _known(plan.stop, (stored.metrics(key) for key in keys.values() if key in stored))
            rule = plan.stop
            open_cases = [
                case for case in open_cases if not rule.met(functools.partial(values, case))
            ]
            if not open_cases:
                break

    cases = []
    for number, case in enumerate(plan.cases):
        of_case = {
            replication: keys[number, replication]
            for replication in range(plan.replications)
            if (number, replication) in keys
        }
        runs = stored.runs(of_case)
        cases.append(CaseResult.of(case.factors, case.labels, runs, loads[number], case.settings))
    results = Results(
        name=plan.name,
        description=plan.description,
        factors=plan.factors,
        cases=tuple(cases),
        folder=store.folder,
        reused=state.reused,
        failures=list(failures.values()),
    )
    results.unsure = _unsure(plan, open_cases, values)
    results.replaced = replaced(results, code_version)
    results.write(store)
    return results


def calibrated(
    plan: Plan,
    *,
    jobs: int | None = None,
    out: str | os.PathLike[str] = "runs",
    progress: Callable[[Progress], None] | None = None,
    executor: Executor | None = None,
) -> tuple[Plan, list[tuple[Calibrated, ...]], tuple[str, ...]]:
    """Find the users of groups that are asked for by the load they offer.

    The runs that this takes are kept in the store, so that it costs nothing a second time.

    Args:
        plan: a checked experiment; without such groups nothing is run.
        jobs: as for `run`, like those that follow.
        out: folder of the store.
        progress: called after each run.
        executor: runs the scenarios.

    Returns:
        The plan with the users, what was found for each case, and the same in words.

    Raises:
        StoreError: results cannot be written.
        RunError: no number of users offers a load, or a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    if plan.users or not any(plan.loads(case) for case in range(len(plan.cases))):
        return plan, [()] * len(plan.cases), ()
    store = ExperimentStore(Path(out), calibration.FOLDER)
    code_version = _engine.code_version()
    state = Progress(total=0, calibrating=True)
    pool = Pool(executor, jobs or available_cores(), keep_going=False, queues={}, traces={})

    def measure(scenarios: list[tuple[str, str]]) -> list[float | None]:
        keys = [run_key(scenario, code_version, _engine.BACKEND) for scenario, _ in scenarios]
        stored: dict[str, StoredRun] = {}
        tasks = {}
        for key, (scenario, _) in zip(keys, scenarios, strict=True):
            if key in stored or key in tasks:
                continue
            found = store.load(key)
            if found is not None:
                stored[key] = found
            else:
                replication = int(json.loads(scenario)["replication"])
                tasks[key] = _Task(key, scenario, replication)
        state.total += len(tasks)

        def keep(task: _Task, outcome: Outcome) -> None:
            stored[task.key] = _save(store, task, outcome)
            state.done += 1
            state.packets += outcome.bottleneck_packets
            if progress is not None:
                progress(state)

        def failure(task: _Task, error: RunError) -> str:
            run = f"calibrating, replication {task.replication}"
            log = store.write_log(task.key, _log(run, None, task, error))
            return Failure(task.key, run, str(error), None, log).text

        if pool.run(list(tasks.values()), keep, failure) is None:
            raise Cancelled(
                "interrupted while finding the users for a load; what was found is kept, and the "
                "same command goes on from there",
                kept=state.done,
                total=state.total,
                folder=store.folder,
            )
        return [
            stored[key].metrics.get(name) for key, (_, name) in zip(keys, scenarios, strict=True)
        ]

    def told(text: str) -> None:
        state.notes = (*state.notes, text)
        if progress is not None:
            progress(state)

    with store:
        plan, found = calibration.calibrate(plan, measure, told)
    return plan, found, state.notes


def _save(store: ExperimentStore, task: _Task, outcome: Outcome) -> StoredRun:
    return store.save(
        task.key,
        task.scenario,
        outcome,
        code_version=_engine.code_version(),
        version=_engine.version(),
        backend=_engine.BACKEND,
        replication=task.replication,
    )


def _known(rule: StopRule, runs: Iterable[Mapping[str, float]]) -> None:
    """Refuse a rule about a metric that no run has."""
    known = dict.fromkeys(name for run in runs for name in run)
    for bound in rule.until:
        if known and bound.metric not in known:
            raise SpecError(
                f'replications.until = "{bound}": no run has the metric {bound.metric}; '
                f"accepted: {', '.join(known)}",
                key="replications.until",
            )


def _unsure(
    plan: Plan, cases: Sequence[int], values: Callable[[int, str], list[float]]
) -> tuple[str, ...]:
    """Return a line for each case whose intervals are wider than its rule asks for."""
    if plan.stop is None:
        return ()
    return tuple(
        f"{plan.cases[case].title or 'the case'} after {plan.stop.at_most} replications: "
        + "; ".join(plan.stop.unmet(functools.partial(values, case)))
        for case in cases
    )


def _kept(state: Progress, folder: Path) -> str:
    runs = "1 run is" if state.total == 1 else f"{state.total} runs are"
    return f"{state.done} of {runs} finished and kept in {folder}"


def _log(run: str, command: str | None, task: _Task | _Planned, error: RunError) -> str:
    """Return what is kept of a run that failed."""
    lines = [
        run,
        f"run: {task.key}",
        f"code version: {_engine.code_version()}, backend {_engine.BACKEND}",
        f"to repeat it alone: {command or 'its experiment is not in a file; see the scenario'}",
        "",
        "".join(traceback.format_exception(error)),
        "scenario:",
        json.dumps(json.loads(task.scenario), indent=2, ensure_ascii=False),
    ]
    return "\n".join(lines) + "\n"


def _repeating(plan: Plan, task: _Planned, out: str | os.PathLike[str]) -> str | None:
    """Return the command that makes one run, None when the experiment is not in a file.

    Earlier replications of its case are in the store by then, and are not made again.
    """
    if plan.file is None or not Path(plan.file).is_file():
        return None
    sets = [text for text in plan.sets if not text.startswith(("replications=", "replications."))]
    sets += [f"{key}={toml_value(value, key)}" for key, value in task.case.factors.items()]
    words = ["redtail", "run", plan.file]
    for text in sets:
        words += ["--set", text]
    words += ["--replications", str(task.replication + 1)]
    if Path(out) != Path("runs"):
        words += ["--out", str(out)]
    return shlex.join(words)
