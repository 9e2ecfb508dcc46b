"""What a recording shows over time: round trips, what was delivered, and when the line was loaded.

An estimate is one number for a recording. Who compares two recordings needs what they are made of:
blocks of time, of which each has its own value.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import rates
from redtail.lines.recordings.loads import LOADED, MOST_SLOTS, SLOT_S

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

IDLE, DOWN, UP, BOTH = "idle", "down", "up", "both"
"""What loads the line in a stretch of time."""

LOADS = (IDLE, DOWN, UP, BOTH)

SETTLES = 0.1
"""Share of a stretch at either end that is left out: transfers begin, and what waits at their end
is still delivered. As `transfers.MIDDLE`."""

APART_S = 2.0
"""What is left out of idle time next to load, at most: transfers begin before they report (as
`flent.APART_S`)."""

SHORT_S = 2.0
"""Stretches shorter than this are not looked at alone. Source: our choice, as `APART_S`."""


@dataclass(frozen=True)
class Phase:
    """A stretch of time in which one load is on the line.

    Attributes:
        load: one of `LOADS`.
        from_s: its begin.
        to_s: its end.
    """

    load: str
    from_s: float
    to_s: float

    def settled(self) -> Phase:
        """Return what is left of it without its ends."""
        margin = SETTLES * (self.to_s - self.from_s)
        if self.load == IDLE:
            margin = min(APART_S, 2 * margin)
        return Phase(self.load, self.from_s + margin, self.to_s - margin)


@dataclass(frozen=True)
class Delivered:
    """What came out of a direction of the line.

    Attributes:
        at_s: times, in order.
        total_b: bytes of IP packets up to each.
    """

    at_s: Array
    total_b: Array

    def between(self, edges: Array) -> Array:
        """Return the bytes in windows of time."""
        return np.diff(np.interp(edges, self.at_s, self.total_b))


@dataclass(frozen=True)
class Timeline:
    """What a recording shows over time, in s on a clock of its own.

    Attributes:
        sent_s: when each probe was sent, in order.
        trip_s: its round trip; NaN for a probe that was lost.
        probe: what the probes are, such as "ICMP"; probes of two names are not compared.
        delivered: by direction, what came out of the line.
        phases: what loaded the line when; empty where nothing tells.
        server: the far end, as the file names it; empty if it does not.
        streams: by direction, how many connections loaded it; None where that is an estimate.
        finest_s: how finely round trips are told.
        own: whether round trips are those of the transfers themselves, which wait in the transfers'
            queues, and of which none tells of a loss.
    """

    sent_s: Array
    trip_s: Array
    probe: str
    delivered: Mapping[str, Delivered] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    server: str = ""
    streams: Mapping[str, int] | None = None
    finest_s: float = 0.0
    own: bool = False


def summed(columns: Sequence[tuple[Array, Array]], scale: float) -> Delivered:
    """Return what several connections delivered together.

    Args:
        columns: of each times, and the payload that was received up to each.
        scale: bytes of IP packets for each byte of payload.
    """
    at = np.unique(np.concatenate([times for times, _ in columns]))
    total = np.zeros(len(at))
    for times, got in columns:
        if len(times):
            total += np.interp(at, times, got - got[0])
    return Delivered(at, scale * total)


def phases_of(
    delivered: Mapping[str, Delivered], begin_s: float, end_s: float
) -> tuple[Phase, ...]:
    """Return what loads a line over time, from what was delivered.

    A direction is loaded while it carries a tenth of its largest rate that lasts (`loads.LOADED`).

    Args:
        delivered: what came out of each direction.
        begin_s: begin of the recording.
        end_s: its end.
    """
    width = max(SLOT_S, (end_s - begin_s) / MOST_SLOTS)
    edges = begin_s + width * np.arange(max(int((end_s - begin_s) / width), 1) + 1)
    none = np.zeros(len(edges) - 1, bool)
    loaded = {name: none for name in (DOWN, UP)}
    for name, way in delivered.items():
        sums = way.between(edges)
        loaded[name] = (sums >= LOADED * rates.lasting(sums)) & (sums > 0)
    return of_slots(loaded, begin_s, width)


def of_slots(loaded: Mapping[str, Array], begin_s: float, width_s: float) -> tuple[Phase, ...]:
    """Return the stretches of time with one load, from slots of equal length.

    A short one between two with the same load is theirs: a transfer that stands still for a moment
    does not leave the line idle.

    Args:
        loaded: by direction, whether it is loaded in each slot.
        begin_s: begin of the first slot.
        width_s: length of a slot.
    """
    codes = loaded[DOWN].astype(int) + 2 * loaded[UP].astype(int)
    for first, last in _runs(codes):
        around = codes[max(first - 1, 0)], codes[min(last, len(codes) - 1)]
        if first > 0 and around[0] == around[1] and width_s * (last - first) < SHORT_S:
            codes[first:last] = around[0]
    return tuple(
        Phase(LOADS[int(codes[first])], begin_s + width_s * first, begin_s + width_s * last)
        for first, last in _runs(codes)
    )


def _runs(codes: Array) -> list[tuple[int, int]]:
    """Return the first and the end of each run of equal numbers."""
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    return list(itertools.pairwise(edges))
