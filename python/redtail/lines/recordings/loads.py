"""Which direction loads the line, over time: a speed test loads one and then the other.

A round trip has the queues of both directions in it. Waiting is in the queue of the direction that
sends data, while the other one carries little but acknowledgements. Where both send, the waits
cannot be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import rates

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

SLOT_S = 0.5
"""A slot of time, as long as rates that last are looked for."""

MOST_SLOTS = 40_000

MOSTLY = 0.5
"""Share of the bytes of a slot in full segments, from which a direction fills a queue even if the
other one sends too. Requests, calls and acknowledgements do not."""

LOADED = 0.1
"""Share of the largest rate of a direction that lasts, from which its data loads it: the rate of a
link may change by so much."""


@dataclass(frozen=True)
class Loads:
    """Which direction loads the line, in slots of time.

    Attributes:
        width_s: length of a slot; the first begins at time 0.
        loaded: by direction, whether its queue may hold packets in each slot.
    """

    width_s: float
    loaded: dict[str, Array]

    @property
    def owners(self) -> tuple[str, ...]:
        """The directions that load the line at some time."""
        return tuple(name for name, slots in self.loaded.items() if slots.any())

    def alone(self, name: str, begin_s: Array, end_s: Array) -> Array:
        """Return of stretches of time whether this direction loads the line in them alone."""
        return self._throughout(self.loaded[name] & ~self.loaded[_other(name)], begin_s, end_s)

    def throughout(self, name: str, begin_s: Array, end_s: Array) -> Array:
        """Return of stretches of time whether this direction loads the line in all of them."""
        return self._throughout(self.loaded[name], begin_s, end_s)

    def both(self, begin_s: Array, end_s: Array) -> Array:
        """Return of stretches of time whether both directions load the line at some time."""
        found: Array = ~self._throughout(~(self.loaded["down"] & self.loaded["up"]), begin_s, end_s)
        return found

    def _throughout(self, slots: Array, begin_s: Array, end_s: Array) -> Array:
        not_so = np.concatenate([[0], np.cumsum(~slots)])
        first, last = (
            np.clip(np.floor(at / self.width_s).astype(np.int64), 0, len(slots) - 1)
            for at in (begin_s, end_s)
        )
        found: Array = not_so[last + 1] == not_so[first]
        return found


NONE = Loads(SLOT_S, {"down": np.zeros(1, bool), "up": np.zeros(1, bool)})
"""Neither direction, at any time."""


def _other(name: str) -> str:
    return "up" if name == "down" else "down"


@dataclass(frozen=True)
class Carried:
    """What a direction carries.

    Attributes:
        at_s: when each packet passes.
        size_b: its bytes.
        data: whether it has data.
        full: whether it is a full segment of TCP, which senders send while they have more.
        loses: whether the direction loses a fair share of what is lost.
    """

    at_s: Array
    size_b: Array
    data: Array
    full: Array
    loses: bool

    def sums(self, edges: Array, some: Array | None = None) -> Array:
        """Return the bytes in windows, of some of the packets."""
        at, size = (
            (self.at_s, self.size_b) if some is None else (self.at_s[some], self.size_b[some])
        )
        found, _ = np.histogram(at, edges, weights=size)
        return found


def find(duration_s: float, carried: dict[str, Carried]) -> Loads:
    """Return which direction loads the line over time.

    Args:
        duration_s: length of the recording, which begins at 0.
        carried: by direction, what it carries.
    """
    width = max(SLOT_S, duration_s / MOST_SLOTS)
    edges = width * np.arange(int(duration_s / width) + 2)
    loaded, fills = {}, {}
    for name, way in carried.items():
        total, data = way.sums(edges), way.sums(edges, way.data)
        loaded[name] = (data >= LOADED * rates.lasting(total)) & (data > 0)
        fills[name] = (way.sums(edges, way.full) >= MOSTLY * total) | way.loses
    both = loaded["down"] & loaded["up"] & (fills["down"] | fills["up"])
    return Loads(width, {name: loaded[name] & (fills[name] | ~both) for name in loaded})
