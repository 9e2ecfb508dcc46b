"""Which metrics the runs of an experiment can have."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from redtail import _engine, backends
from redtail.metrics import DEFINITIONS, Definition, base, named, phase, prefix

if TYPE_CHECKING:
    from redtail._engine import Plan
    from redtail.derived import DerivedMetric

# Most names that a message lists.
_NEAREST = 5


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
            known, own = _engine.metric_names(json.dumps(scenario))
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


def nearest(present: Collection[str], wanted: str) -> str:
    """Return the names that are most like one that does not exist, as the end of a message.

    Args:
        present: the names that there are.
        wanted: a name, or a pattern with wildcards.

    >>> nearest(["calls.mos", "calls.jitter"], "mos"), nearest(["ftp.goodput"], "ftp.godput")
    ('; nearest: calls.mos', '; nearest: ftp.goodput')
    >>> nearest(["queue_delay_mean", "loss"], "delay")
    '; nearest: queue_delay_mean'
    >>> nearest(["loss"], "x")
    '; `redtail list metrics FILE` has the names'
    """
    whole = [name for name in present if phase(name) is None]
    bare = wanted.replace("*", "").strip(".")
    word = base(bare)
    found = [name for name in whole if base(name) == word and "*" not in wanted]
    if not found and len(word) > 2:
        found = [name for name in whole if word in base(name) and prefix(name) == prefix(bare)]
    found += get_close_matches(bare, whole, n=3, cutoff=0.7)
    # A name may be right but for its group, or its group but for the name.
    for like in get_close_matches(word, {base(name) for name in whole}, n=2, cutoff=0.75):
        alike = [name for name in whole if base(name) == like]
        found += sorted(alike, key=lambda name: prefix(name) != prefix(bare))
    if not found and len(word) > 2:
        found = [name for name in whole if word in base(name)]
    if not found:
        found = get_close_matches(bare, whole, n=3, cutoff=0.5)
    chosen = list(dict.fromkeys(found))[:_NEAREST]
    if not chosen:
        return "; `redtail list metrics FILE` has the names"
    return f"; nearest: {', '.join(chosen)}"
