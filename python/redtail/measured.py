"""Which metrics the runs of an experiment can have, and which of them its results show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redtail import backends, facts, selection
from redtail.metrics import DEFINITIONS, Definition, named, nearest, phase
from redtail.scenario import links as links_of

if TYPE_CHECKING:
    from redtail.derived import DerivedMetric
    from redtail.engine.plans import Plan


@dataclass(frozen=True)
class Measured:
    """The metrics that runs of an experiment can have.

    Not every one has a value in every run.

    Attributes:
        names: each with its definition.
        free: what stands in front of names that queues of users choose.
        phases: number of phases.

    >>> loss = next(each for each in DEFINITIONS if each.name == "loss")
    >>> known = Measured(dict.fromkeys(("loss", "phase1.loss"), loss), ("return.queue.",), 1)
    >>> [name in known for name in ("loss", "phase1.loss", "phase2.loss", "return.queue.mine")]
    [True, True, False, True]
    """

    names: Mapping[str, Definition]
    free: tuple[str, ...]
    phases: int

    @classmethod
    def of(
        cls,
        scenarios: Iterable[Mapping[str, Any]],
        derived: Iterable[DerivedMetric] = (),
        backend: str | None = None,
        *,
        lenient: bool = False,
    ) -> Measured | None:
        """Return what runs of these scenarios can have; None when they do not tell.

        Args:
            scenarios: a run of each case.
            derived: the metrics that the experiment derives from others.
            backend: the name of what makes the runs; by default the simulator.
            lenient: keep what the simulator measures and this backend does not.
        """
        names: dict[str, Definition] = {}
        free: dict[str, None] = {}
        phases = 0
        for scenario in scenarios:
            # A stand-in for the native module may make scenarios of another form.
            if "traffic" not in scenario:
                return None
            known, own = facts.metric_names(json.dumps(scenario))
            names.update((name, DEFINITIONS[place]) for name, place in known.items())
            free.update(dict.fromkeys(own))
            ends = len(scenario.get("phases", ()))
            phases = max(phases, ends + 1 if ends else 0)
        if backend is not None and backends.exists(backend):
            makes = backends.find(backend)
            if not lenient:
                names = {name: each for name, each in names.items() if not makes.lacks(name)}
                free = {each: None for each in free if not makes.lacks(f"{each}name")}
            names.update((each.name, each) for each in DEFINITIONS if each.of in makes.own_metrics)
        names.update((each.name, each.definition) for each in derived)
        return cls(names, tuple(free), phases)

    @classmethod
    def of_plan(
        cls, plan: Plan, backend: str | None = None, *, lenient: bool = False
    ) -> Measured | None:
        """Return what runs of an experiment can have; None when it does not tell.

        Args:
            plan: the experiment.
            backend: the name of what makes the runs; by default what the experiment says.
            lenient: keep what the simulator measures and this backend does not.
        """
        cases = range(len(plan.cases))
        scenarios = (json.loads(plan.example(case)) for case in cases)
        return cls.of(scenarios, plan.derived, backend or plan.backend, lenient=lenient)

    def named(self, name: str) -> str:
        """Return a name as it is among those that are known."""
        return named(self.names, name)

    def __contains__(self, name: str) -> bool:
        return name in self.names or name.startswith(self.free)

    def nearest(self, name: str) -> str:
        """Return the names that are most like `name`, as the end of a message."""
        return nearest(self.names, name)


def shown(
    plan: Plan,
    patterns: Sequence[str] = (),
    where: str = "metrics",
    backend: str | None = None,
) -> list[str]:
    """Return the metrics that results of an experiment will show, before anything is run.

    Args:
        plan: the experiment.
        patterns: as for `select`; without them those of the file's [report].
        where: what messages call the place of the patterns.
        backend: the name of what makes the runs; by default what the experiment says. What it does
            not measure may stand in the file's [report], and not in `patterns`.

    Raises:
        SpecError: a pattern fits no metric that a run can have.
    """
    scenarios = [json.loads(plan.example(case)) for case in range(len(plan.cases))]
    known = Measured.of(scenarios, plan.derived, backend or plan.backend, lenient=not patterns)
    if known is None:  # a stand-in for the native module
        return list(patterns)
    if not patterns:
        patterns = plan.report
        where = f"{plan.file}: report.metrics" if plan.file else "report.metrics"
    links = dict.fromkeys(name for scenario in scenarios for name in links_of(scenario))
    phases = [name for name in known.names if phase(name) is not None]
    # Without patterns nothing needs to be known of phases, which are most names of a long file.
    present = known.names if patterns else known.names.keys() - set(phases)
    order = [name for name in known.names if name in present]
    return selection.select(order, patterns, links=list(links), where=where, free=known.free)
