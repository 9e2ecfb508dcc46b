"""Which metrics the runs of an experiment can have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from redtail import _engine
from redtail.metrics import DEFINITIONS, Definition, phase, prefix


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
    def of(cls, scenarios: Iterable[Mapping[str, Any]]) -> Measured | None:
        """Return what runs of these scenarios can have; None when they do not tell."""
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
        return cls(names, tuple(free), phases)

    def __contains__(self, name: str) -> bool:
        return name in self.names or name.startswith(self.free)

    def accepted(self, name: str) -> str:
        """Return in words what there is where `name` is looked for, and where else there is more.

        >>> loss = next(each for each in DEFINITIONS if each.name == "loss")
        >>> names = dict.fromkeys(("loss", "return.loss", "ftp.loss"), loss)
        >>> Measured(names, (), 0).accepted("return.delay")
        'return.loss; and more under ftp.'
        """
        fronts = dict.fromkeys(prefix(known) for known in self.names if phase(known) is None)
        here = prefix(name) if prefix(name) in {*map(prefix, self.names)} else ""
        found = ", ".join(known for known in self.names if prefix(known) == here)
        others = [f"{front}." for front in fronts if front not in ("", here)]
        others += self.free
        if self.phases:
            others.append(f"phase1. to phase{self.phases}.")
        return f"{found}; and more under {', '.join(others)}" if others else found

    def nearest(self, name: str) -> str:
        """Return the names that are most like `name`, as the end of a message; may be empty.

        >>> goodput = next(each for each in DEFINITIONS if each.name == "goodput")
        >>> Measured({"ftp.goodput": goodput}, (), 0).nearest("ftp.godput")
        '; nearest: ftp.goodput'
        """
        found = get_close_matches(name, self.names, n=3)
        return f"; nearest: {', '.join(found)}" if found else ""
