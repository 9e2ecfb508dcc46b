"""How far the runs of an experiment are, for those who watch them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Inside: TypeAlias = "Sequence[tuple[float, float]]"
"""For each run in progress the simulated time and its end, in seconds."""

# The share of a run from which on the time that is left can be told.
_LEAST_PART = 0.01

# Seconds that a run takes at least to be slow.
_SLOW_S = 2.0


@dataclass
class Progress:
    """The progress of an experiment.

    Attributes:
        total: number of runs of the experiment.
        reused: runs whose results were in the store already.
        done: runs finished so far, the reused ones included.
        packets: packets that finished runs have sent over their bottleneck.
        failed: runs that failed so far.
        calibrating: whether these are runs that find how many users offer a load, before those of
            the experiment.
        notes: what was found so far, a line each.
        running: for each simulation in progress the simulated time and its end, in seconds, as they
            were half a second ago or less; empty where this is not known.
        started: `time.monotonic()` at the start.
    """

    total: int
    reused: int = 0
    done: int = 0
    packets: int = 0
    failed: int = 0
    calibrating: bool = False
    notes: tuple[str, ...] = ()
    running: Inside = ()
    started: float = field(default_factory=time.monotonic)

    @property
    def packets_per_s(self) -> float:
        """Simulated bottleneck packets per second of waiting."""
        return self.packets / max(time.monotonic() - self.started, 1e-9)

    @property
    def left_s(self) -> float | None:
        """Seconds left, supposing that runs take as long as so far; None if nothing is known yet.

        The parts that simulations in progress have done count.
        """
        fresh = self.done - self.reused + self.failed + self.parts
        if fresh < _LEAST_PART:
            return None
        left = max(0.0, self.total - self.reused - fresh)
        return (time.monotonic() - self.started) / fresh * left

    @property
    def parts(self) -> float:
        """What simulations in progress have done, in runs."""
        return sum(min(1.0, now / end) for now, end in self.running if end > 0)

    @property
    def slow(self) -> bool:
        """Whether runs take so long that it is worth saying how far each is."""
        fresh = self.done - self.reused + self.failed
        working = (time.monotonic() - self.started) * len(self.running)
        return working >= _SLOW_S * max(1, fresh)
