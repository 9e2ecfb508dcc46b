"""What a search has found."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redtail.analysis.results import Results
from redtail.analysis.stats import Estimate
from redtail.errors import StoreError
from redtail.experiment import Source
from redtail.files import path_of
from redtail.store.format import figures_of
from redtail.tuning.aims import Aim, Over
from redtail.tuning.bench import Queue
from redtail.tuning.space import Axis, Range

NEAR = 0.05
"""How much worse than the best an objective may be for a value to be called about as good, as a
share. Source: our choice."""


@dataclass(frozen=True)
class Candidate:
    """A queue and what it reaches.

    Attributes:
        number: in the order of the search, from 0.
        queue: the queue.
        keys: the keys that are varied.
        objectives: the estimate that counts, for each objective.
        bounds: the same for each bound.
        aims: the objectives and the bounds themselves.
        sure: whether the whole 95 % interval of each bound is within it.
    """

    number: int
    queue: Queue
    keys: tuple[str, ...]
    objectives: tuple[Estimate, ...]
    bounds: tuple[Estimate, ...]
    aims: tuple[tuple[Aim, ...], tuple[Aim, ...]]
    sure: bool

    @property
    def table(self) -> Mapping[str, Any]:
        """The queue as the file has it."""
        return self.queue.table

    @property
    def values(self) -> dict[str, Any]:
        """The keys that are varied, with their values."""
        return {key: self.table[key] for key in self.keys if key in self.table}

    @property
    def excess(self) -> float:
        """By how much its means are beyond the bounds, as shares of these; 0: kept."""
        found = [aim.excess(each.mean) for aim, each in zip(self.aims[1], self.bounds, strict=True)]
        if any(math.isnan(each) for each in found):
            return math.inf
        return math.fsum(max(0.0, each) for each in found)

    @property
    def rank(self) -> tuple[float, float]:
        """What candidates are sorted by: kept bounds first, then the first objective."""
        cost = self.aims[0][0].cost(self.objectives[0].mean)
        return self.excess, math.inf if math.isnan(cost) else cost

    @property
    def text(self) -> str:
        """Its parameters and what it reaches, in a line."""
        parameters = ", ".join(f"{key} = {_shown(value)}" for key, value in self.values.items())
        reached = ", ".join(
            f"{aim.metric} {aim.shown(each.mean)}"
            for aim, each in zip((*self.aims[0], *self.aims[1]), self.estimates, strict=True)
        )
        broken = "" if self.excess == 0 else " (a bound is not kept)"
        return f"{parameters}: {reached}{broken}"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The estimates of all objectives and bounds."""
        return (*self.objectives, *self.bounds)

    def numbered(self, number: int) -> Candidate:
        """Return it with another number."""
        return replace(self, number=number)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values; metrics are in SI units."""
        aims = (*self.aims[0], *self.aims[1])
        return {
            "number": self.number,
            "parameters": self.values,
            "metrics": {
                aim.metric: {"mean": _finite(each.mean), "ci95": each.ci95, "n": each.n}
                for aim, each in zip(aims, self.estimates, strict=True)
            },
            "bounds_kept": self.excess == 0,
        }


@dataclass(frozen=True)
class Finding:
    """What was searched for.

    Attributes:
        source: the experiment.
        sets: overrides of it.
        name: what the results are called.
        key: the key of the queue.
        seed: of the report.
        replications: of the report.
        objectives: what was made as small or large as possible.
        bounds: what was to be kept.
        over: which of the loads count.
        axes: what was varied.
        sampler: what suggested the candidates, in words.
    """

    source: Source
    sets: tuple[str, ...]
    name: str
    key: str
    seed: int
    replications: int
    objectives: tuple[Aim, ...]
    bounds: tuple[Aim, ...]
    over: Over
    axes: tuple[Axis, ...]
    sampler: str


@dataclass(frozen=True)
class Tuned:
    """The result of a search.

    Attributes:
        finding: what was searched for.
        queue: the best queue that was found.
        number: its number among the candidates.
        candidates: all candidates in the order of the search, with the seeds of the search.
        finalists: the best of them, with seeds of their own.
        own: the file's own queues, with the seeds of the search.
        sensitivity: for each key, queues that differ from the best in it alone.
        results: the best queue and those of the file, with seeds that the search has not used.
    """

    finding: Finding
    queue: Queue
    number: int
    candidates: tuple[Candidate, ...]
    finalists: tuple[Candidate, ...]
    own: tuple[Candidate, ...]
    sensitivity: Mapping[str, tuple[Candidate, ...]]
    results: Results

    def __repr__(self) -> str:
        return f"<Tuned {self.queue.toml}>"

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys that were varied, with the best values."""
        return {axis.key: self.queue.table[axis.key] for axis in self.finding.axes}

    @property
    def at_training(self) -> Candidate:
        """The best queue with the seeds of the search."""
        return next(each for each in self.candidates if each.number == self.number)

    @property
    def front(self) -> tuple[Candidate, ...]:
        """The candidates that no other one beats in all objectives and metrics of bounds."""
        return front(self.candidates)

    def reached(self, label: str | None = None) -> dict[str, Estimate]:
        """Return what counts of each objective and bound, with seeds that were not searched.

        Args:
            label: of a queue; by default of the best one.
        """
        label = self.queue.label if label is None else label
        cases = [each for each in self.results.cases if each.labels[self.finding.key] == label]
        aims = (*self.finding.objectives, *self.finding.bounds)
        return {aim.metric: aim.reached(cases, self.finding.over) for aim in aims}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before the best queue is used."""
        reached = self.reached()
        found = []
        for aim in self.finding.bounds:
            if not aim.excess(reached[aim.metric].mean) <= 0:
                found.append(
                    f"{self.queue.label} does not keep {aim.text!r}: with seeds that the search "
                    f"has not used it reaches {aim.shown(reached[aim.metric].mean)}; "
                    + (
                        "no candidate of the search kept all bounds"
                        if all(each.excess > 0 for each in self.candidates)
                        else "use a stricter bound or more replications"
                    )
                )
        for axis in self.finding.axes:
            value = self.queue.table[axis.key]
            if isinstance(axis, Range) and value in (axis.value(axis.low), axis.value(axis.high)):
                found.append(
                    f"{axis.key} = {_shown(value)} is at an end of its range; a better value may "
                    f"be beyond it: --vary {axis.key}=LOW..HIGH"
                )
        return tuple(found)

    def insensitive(self, key: str) -> tuple[Candidate, ...]:
        """Return the queues that differ in one key and are about as good as the best.

        Their first objective is at most `NEAR` worse, and they keep the bounds.
        """
        aim = self.finding.objectives[0]
        profile = self.sensitivity[key]
        at = next(each for each in profile if each.table[key] == self.queue.table[key])
        most = aim.cost(at.objectives[0].mean) + NEAR * abs(at.objectives[0].mean)
        return tuple(
            each
            for each in profile
            if each.excess <= at.excess and aim.cost(each.objectives[0].mean) <= most
        )

    @property
    def toml(self) -> str:
        """The experiment file: the file's queues and the best one, with the seeds of the report."""
        from redtail.tuning.file import experiment_text

        return experiment_text(self)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the experiment file; returns its path.

        Raises:
            StoreError: it cannot be written.
        """
        found = path_of(path)
        try:
            found.write_text(self.toml, encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{found}: cannot be written: {error.strerror or error}") from None
        return found

    def figures(
        self,
        folder: str | os.PathLike[str] | None = None,
        formats: Sequence[str] = ("png",),
    ) -> list[Path]:
        """Draw the trade-off and the sensitivity; returns the paths.

        Args:
            folder: where to; `figures` in the folder of the results by default.
            formats: of each figure: "png", "svg", "pdf".
        """
        from redtail.display import style
        from redtail.tuning import figures

        here = figures_of(self.results.folder) if folder is None else path_of(folder)
        return style.save(figures.all_of(self), here, formats)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values; metrics are in SI units."""
        finding = self.finding
        queues = [*(each.queue.label for each in self.own), self.queue.label]
        return {
            "format": 1,
            "experiment": finding.name,
            "queue": {"label": self.queue.label, **self.queue.table},
            "parameters": self.parameters,
            "objective": [aim.text for aim in finding.objectives],
            "subject_to": [aim.text for aim in finding.bounds],
            "over": finding.over,
            "vary": [axis.text for axis in finding.axes],
            "sampler": finding.sampler,
            "seed": finding.seed,
            "replications": finding.replications,
            "reached": {
                label: {
                    metric: {"mean": _finite(each.mean), "ci95": each.ci95, "n": each.n}
                    for metric, each in self.reached(label).items()
                }
                for label in queues
            },
            "candidates": [each.as_dict() for each in self.candidates],
            "front": [each.number for each in self.front],
            "finalists": [each.as_dict() for each in self.finalists],
            "sensitivity": {
                key: [each.as_dict() for each in profile]
                for key, profile in self.sensitivity.items()
            },
            "warnings": list(self.warnings),
        }

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)


def front(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates that no other one beats (the Pareto front).

    One beats another when it is at least as good in all objectives and all metrics of bounds, and
    better in one of them. Of those that are equal in all, the first counts.
    """
    costs: dict[tuple[float, ...], Candidate] = {}
    for each in candidates:
        aims = (*each.aims[0], *each.aims[1])
        cost = tuple(aim.cost(found.mean) for aim, found in zip(aims, each.estimates, strict=True))
        if not any(map(math.isnan, cost)):
            costs.setdefault(cost, each)
    return tuple(
        each
        for cost, each in costs.items()
        if not any(
            other != cost and all(a <= b for a, b in zip(other, cost, strict=True))
            for other in costs
        )
    )


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
