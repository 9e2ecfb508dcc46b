"""Searches the parameters of a queue, or the constants of a law of TCP.

A sampler of Optuna suggests candidates in rounds of a fixed size; all candidates of a round are
runs of one experiment, so the pool and the store are those of `redtail run`. Every candidate meets
the same loads with the same seeds (common random numbers), so candidates are compared without the
noise of the workload (Law, "Simulation Modeling and Analysis", 5th edition, section 11.2). The
sampler's own seed is fixed: what was interrupted is searched again in the same order, and takes its
runs from the store.

The best of many noisy means is better than what it stands for. So the search does not report its
own numbers:

- the `FINALISTS` best candidates run again with a second set of seeds, of which the best is chosen
  whose bounds hold with the whole 95 % interval;
- this one and the queues of the file run with a third set, and these numbers are reported.

Both sets have twice the replications of the search.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from redtail import facts
from redtail.catalog import Catalog
from redtail.errors import RedtailWarning, SpecError
from redtail.experiment import Source, toml_value
from redtail.extras import extra
from redtail.measured import Measured
from redtail.options import ExecuteOptions, RunOptions, split
from redtail.studies.runner import Counting
from redtail.tuning import aims
from redtail.tuning.aims import OVER, Aim, Over
from redtail.tuning.bench import Bench, Queue
from redtail.tuning.found import Candidate, Finding, Tuned
from redtail.tuning.space import Axis, Choices, Vary, axes

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import Trial

    from redtail.engine.plans import Plan

ROUND = 8
"""Candidates of a round. Source: our choice; their runs fill a pool of many cores, and the sampler
learns often enough. It is the same on every computer, so that a search is repeatable."""

FINALISTS = 5
"""Candidates that run again with seeds of their own. Source: our choice."""

PROFILE = 7
"""Values of each key for the sensitivity. Source: our choice."""

TRIALS = 100
"""Candidates by default. Source: our choice; ten times the candidates that Optuna's TPE draws at
random before it begins to learn (`n_startup_trials`)."""

SAMPLERS = ("tpe", "nsga2", "random")

# Candidates in a row that the checks of the experiment refuse, before the search gives up.
_REFUSED_AT_MOST = 200

Texts: TypeAlias = "str | Sequence[str]"


def tune(
    source: Source,
    *,
    queue: str | Mapping[str, Any],
    vary: Vary,
    objective: Texts,
    subject_to: Texts = (),
    at: str = "bottleneck.queue",
    trials: int = TRIALS,
    over: Over = "worst",
    sampler: str = "tpe",
    sampler_seed: int = 1,
    **options: Unpack[RunOptions],
) -> Tuned:
    """Search the parameters of a queue over the loads of an experiment.

    Runs that are in the store are not made again, so a search that was stopped goes on where it
    was.

    Args:
        source: a path, `Toml` text or an `Experiment`. Its factors beside the queue are the loads.
        queue: what to tune: a label or a kind of the experiment's queues, another kind, or the
            queue as a mapping of its keys. For a law of TCP the same of laws.
        vary: the keys to vary, with or without ranges: "min_th=5..100packets,max_p", a list of such
            texts, or a mapping of keys to texts, pairs of numbers, lists of values, or None.
        objective: "min METRIC" or "max METRIC". With several the search looks for good compromises,
            and the first decides.
        subject_to: "METRIC >= VALUE" or "METRIC <= VALUE", or several of these.
        at: the key of the queue, or of a law of TCP: "traffic.ftp.tcp.growth".
        trials: number of candidates.
        over: "worst": the load with the worst value counts, for the objective and for each bound;
            "mean": the mean over all loads.
        sampler: "tpe", "nsga2" or "random", of Optuna.
        sampler_seed: where its random numbers start from.
        **options: as for `redtail.run`, but for `until`; `replications` are those of the search.

    Raises:
        SpecError: the experiment, a key, a range, an objective or a bound is not valid.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept.
        RedtailError: Optuna is not installed.
    """
    checking, running = split(options)
    given = queue if isinstance(queue, str) else toml_value(queue, "queue")
    search = prepare(
        Bench(source, checking, at),
        queue=given,
        vary=vary,
        objective=objective,
        subject_to=subject_to,
        trials=trials,
        over=over,
        sampler=sampler,
        sampler_seed=sampler_seed,
    )
    for text in search.bench.plan.warnings:
        warnings.warn(text, RedtailWarning, stacklevel=2)
    found = search.run(running)
    for text in (*found.warnings, *found.results.warnings):
        warnings.warn(text, RedtailWarning, stacklevel=2)
    return found


def prepare(
    bench: Bench,
    *,
    queue: str,
    vary: Vary,
    objective: Texts,
    subject_to: Texts = (),
    trials: int = TRIALS,
    over: Over = "worst",
    sampler: str = "tpe",
    sampler_seed: int = 1,
) -> Search:
    """Check everything that is wanted of a search; arguments and errors as for `tune`."""
    if trials < 1:
        raise SpecError(f"trials = {trials}; accepted: 1 or more", key="trials")
    if over not in OVER:
        raise SpecError(f"over = {over!r}; accepted: {', '.join(OVER)}", key="over")
    if sampler not in SAMPLERS:
        raise SpecError(f"sampler = {sampler!r}; accepted: {', '.join(SAMPLERS)}", key="sampler")
    known = Measured.of(bench.scenarios, bench.plan.derived)
    objectives = aims.objectives(objective, known)
    if not objectives:
        raise SpecError("objective: none is given; accepted: 'min METRIC' or 'max METRIC'")
    bounds = aims.bounds(subject_to, known)
    catalog = Catalog(facts.schema())
    sections = {str(section.kind): section for section in bench.sections(catalog)}
    chosen = bench.chosen(queue, list(sections))
    varied = axes(
        vary,
        sections[str(chosen.table["kind"])],
        chosen.table,
        catalog,
        bench.why_not,
    )
    _load_optuna()
    return Search(bench, chosen, varied, objectives, bounds, trials, over, sampler, sampler_seed)


def _load_optuna() -> Any:
    with extra("tune", "the search"):
        import optuna
        import tomlkit  # noqa: F401 (the experiment file is written with it)
    return optuna


@dataclass(frozen=True)
class Search:
    """A search that has been checked.

    Attributes:
        bench: the experiment.
        queue: the queue to tune, as the file has it.
        axes: what is varied.
        objectives: what is made as small or large as possible.
        bounds: what must be kept.
        trials: number of candidates.
        over: which of the loads count.
        sampler: the name of Optuna's sampler.
        sampler_seed: its seed.
    """

    bench: Bench
    queue: Queue
    axes: tuple[Axis, ...]
    objectives: tuple[Aim, ...]
    bounds: tuple[Aim, ...]
    trials: int
    over: Over
    sampler: str
    sampler_seed: int

    @property
    def name(self) -> str:
        """What the results of the search are called."""
        return f"{self.bench.plan.name}, {self.queue.label} tuned"

    @property
    def seeds(self) -> tuple[int, int, int]:
        """The seeds of the search, of the finalists and of the report."""
        first = self.bench.plan.seed
        return first, first + 1, first + 2

    @property
    def again(self) -> int:
        """Replications of finalists and of the report."""
        return 2 * self.bench.replications

    @property
    def own(self) -> list[Queue]:
        """The queues that the result is compared with: those of the file."""
        return self.bench.own_queues()

    @property
    def runs(self) -> int:
        """About how many runs the search takes."""
        profiles = sum(
            len(axis.values) if isinstance(axis, Choices) else PROFILE for axis in self.axes
        )
        once = self.trials + len(self.own) + profiles
        finals = min(FINALISTS, self.trials) + len(self.own) + 1
        return self.bench.loads * (once * self.bench.replications + finals * self.again)

    def run(self, running: ExecuteOptions) -> Tuned:
        """Search; errors as for `tune`."""
        counting = Counting(self.runs, running.get("progress"))
        try:
            return self._run(counting, running)
        except KeyboardInterrupt:  # between two rounds
            raise counting.cancelled(running.get("out", "runs")) from None

    def _run(self, counting: Counting, running: ExecuteOptions) -> Tuned:
        for axis in self.axes:
            counting.note(f"vary: {axis.text}")
        candidates = self._candidates(counting, running)
        own = self._measured(self.own, counting, running)
        finalists, best = self._final(candidates, counting, running)
        sensitivity = self._sensitivity(best, counting, running)
        tuned = Queue(self._label(), best.table)
        seed = self.seeds[2]
        plan = self.bench.planned([*self.own, tuned], self.name, seed, self.again)
        results = counting.run(plan, running)
        return Tuned(
            finding=Finding(
                source=self.bench.source,
                sets=tuple(self.bench.sets),
                name=self.name,
                key=self.bench.key,
                seed=seed,
                replications=self.again,
                objectives=self.objectives,
                bounds=self.bounds,
                over=self.over,
                axes=self.axes,
                sampler=f"{self.sampler}, seed {self.sampler_seed}",
            ),
            queue=tuned,
            number=best.number,
            candidates=tuple(candidates),
            finalists=tuple(finalists),
            own=tuple(own),
            sensitivity=sensitivity,
            results=results,
        )

    def _label(self) -> str:
        """Return a label that no queue of the file has."""
        label = f"{self.queue.label} tuned"
        while label in [queue.label for queue in self.own]:
            label += " again"
        return label

    def _study(self) -> Study:
        optuna = _load_optuna()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        seed = self.sampler_seed
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            if self.sampler == "tpe":
                sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True)
            elif self.sampler == "nsga2":
                sampler = optuna.samplers.NSGAIISampler(seed=seed)
            else:
                sampler = optuna.samplers.RandomSampler(seed=seed)
        directions = ["minimize" if aim.small else "maximize" for aim in self.objectives]
        study: Study = optuna.create_study(directions=directions, sampler=sampler)
        # The queue as it is comes first, so that the result is no worse.
        start = {axis.key: axis.start for axis in self.axes}
        if all(value is not None for value in start.values()):
            study.enqueue_trial(start)
        return study

    def _candidates(self, counting: Counting, running: ExecuteOptions) -> list[Candidate]:
        """Ask a sampler for candidates, and run them."""
        study = self._study()
        found: list[Candidate] = []
        best: Candidate | None = None
        while len(found) < self.trials:
            count = min(ROUND, self.trials - len(found))
            asked = [self._asked(study) for _ in range(count)]
            queues = [
                Queue(f"#{len(found) + place}", table) for place, (_, table) in enumerate(asked)
            ]
            round_found = self._measured(queues, counting, running, len(found))
            for (trial, _), candidate in zip(asked, round_found, strict=True):
                self._tell(study, trial, candidate)
            found += round_found
            leader = min(found, key=lambda each: each.rank)
            if leader is not best:
                best = leader
                counting.note(f"after {len(found)} of {self.trials} candidates: {best.text}")
        return found

    def _asked(self, study: Study) -> tuple[Trial, dict[str, Any]]:
        """Return a candidate that the experiment's own checks accept."""
        optuna = _load_optuna()
        reason: str | None = None
        for _ in range(_REFUSED_AT_MOST):
            trial = study.ask()
            values = {axis.key: axis.value(axis.asked(trial)) for axis in self.axes}
            table = {**self.queue.table, **values}
            reason = self.bench.why_not(table)
            if reason is None:
                return trial, table
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        raise SpecError(
            f"vary: no candidate of {_REFUSED_AT_MOST} is valid; accepted: other ranges, or a "
            "queue with the keys that are missing, as in --queue '{kind = \"red\", limit = ...}'. "
            f"The last one was refused: {reason}"
        )

    def _tell(self, study: Study, trial: Trial, candidate: Candidate) -> None:
        optuna = _load_optuna()
        values = [estimate.mean for estimate in candidate.objectives]
        kept = [
            aim.excess(estimate.mean)
            for aim, estimate in zip(self.bounds, candidate.bounds, strict=True)
        ]
        if any(math.isnan(value) for value in (*values, *kept)):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            for place, value in enumerate(kept):
                trial.set_constraint(str(place), value)
            study.tell(trial, values)

    def _plan(self, queues: Sequence[Queue], seed: int, replications: int) -> Plan:
        name = f"{self.bench.plan.name}, {self.queue.label} search"
        return self.bench.planned(queues, name, seed, replications)

    def _measured(
        self,
        queues: Sequence[Queue],
        counting: Counting,
        running: ExecuteOptions,
        first: int = 0,
        again: bool = False,
    ) -> list[Candidate]:
        """Run queues, and return what they reach.

        Args:
            queues: the queues.
            counting: the progress of the whole.
            running: options for running.
            first: the number of the first.
            again: with the seeds of the finalists, not with those of the search.
        """
        seed = self.seeds[1 if again else 0]
        plan = self._plan(queues, seed, self.again if again else self.bench.replications)
        cases = self.bench.by_queue(counting.run(plan, running))
        found = []
        for number, queue in enumerate(queues, start=first):
            here = cases[queue.label]
            found.append(
                Candidate(
                    number=number,
                    queue=queue,
                    keys=tuple(axis.key for axis in self.axes),
                    objectives=tuple(aim.reached(here, self.over) for aim in self.objectives),
                    bounds=tuple(aim.reached(here, self.over) for aim in self.bounds),
                    aims=(self.objectives, self.bounds),
                    sure=all(aim.surely_kept(here, self.over) for aim in self.bounds),
                )
            )
        return found

    def _final(
        self, candidates: Sequence[Candidate], counting: Counting, running: ExecuteOptions
    ) -> tuple[list[Candidate], Candidate]:
        """Run the best candidates again, and return them and the best of them."""
        unlike = {each.queue.toml.replace(each.queue.label, ""): each for each in candidates[::-1]}
        best = sorted(unlike.values(), key=lambda each: (each.rank, each.number))[:FINALISTS]
        found = self._measured([each.queue for each in best], counting, running, again=True)
        found = [each.numbered(old.number) for each, old in zip(found, best, strict=True)]
        chosen = min(found, key=lambda each: (not each.sure, each.rank, each.number))
        counting.note(f"chosen: number {chosen.number}, {chosen.text}")
        return found, chosen

    def _sensitivity(
        self, best: Candidate, counting: Counting, running: ExecuteOptions
    ) -> dict[str, tuple[Candidate, ...]]:
        """Vary each key alone around the best."""
        wanted: list[tuple[str, Queue]] = []
        for axis in self.axes:
            points = axis.points(PROFILE)
            if best.table[axis.key] not in points:
                points.append(best.table[axis.key])
            for place, value in enumerate(points):
                table = {**best.table, axis.key: value}
                if self.bench.why_not(table) is None:
                    wanted.append((axis.key, Queue(f"{axis.key} {place}", table)))
        found = self._measured([queue for _, queue in wanted], counting, running)
        by_key: dict[str, list[Candidate]] = {axis.key: [] for axis in self.axes}
        for (key, _), candidate in zip(wanted, found, strict=True):
            by_key[key].append(candidate)
        return {key: tuple(each) for key, each in by_key.items()}
