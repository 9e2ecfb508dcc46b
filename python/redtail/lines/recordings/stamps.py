"""Delays of one direction that TCP's timestamps tell: on which way of a round trip packets waited.

The far end of a connection puts the time into each segment (RFC 7323, section 3.2). From its clock
to the point of capture a segment takes a part that is the same for all, in which the distance of
the clocks is, and what it waits. So the waits of a round trip, from the point to the far end and
back, can be told apart, as finely as the clock ticks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings.packets import TCP, TIMESTAMPS, Capture

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

CLOCKS_HZ = (1.0, 2.0, 10.0, 100.0, 200.0, 250.0, 300.0, 500.0, 1000.0, 1e6)
"""Ticks in a second of hosts' clocks. RFC 7323, section 5.4, accepts 1 ms to 1 s; Linux counts in
ms, or since 6.7 in us, where a route says so; its older versions in ticks of 100, 250, 300 or 1000
Hz."""

NEAR_HZ = 0.1
"""How far the counted ticks in a second may be from those of a clock: waits that grow make it look
slower."""

FEWEST, SHORTEST_S = 100, 2.0
"""Segments of an end, and the time between the first and the last, from which a clock is told."""

_WRAP, _HALF = 1 << 32, 1 << 31


def delays(capture: Capture, ends: Array) -> tuple[Array, Array, Array, float]:
    """Return when segments passed and how late each was, as the clocks of their senders tell.

    Args:
        capture: the packets.
        ends: of each conversation, the end whose segments are wanted.

    Returns:
        The conversations, in order; the times, in order for each; the delays in s, which differ
        from the true ones by a part that is the same in a conversation; and the longest tick, in s.
    """
    talks = capture["conversation"]
    stamped = (capture.protocol == TCP) & (capture["options"] & TIMESTAMPS > 0)
    rows = np.flatnonzero(stamped & (capture["end"] == ends[talks]))
    rows = rows[np.lexsort((capture["at_s"][rows], talks[rows]))]
    parts, tick = [], 0.0
    for part in np.split(rows, np.flatnonzero(np.diff(talks[rows])) + 1):
        at = capture["at_s"][part]
        if len(part) < FEWEST or at[-1] - at[0] < SHORTEST_S:
            continue
        ticks = _unwrapped(capture["ts_val"][part].astype(np.int64))
        hz = _clock(at, ticks)
        if hz is None:
            continue
        late = at - at[0] - ticks / hz
        parts.append((talks[part], at, late - late.min()))
        tick = max(tick, 1 / hz)
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 0.0
    talk, at, late = (np.concatenate(column) for column in zip(*parts, strict=True))
    return talk, at, late, tick


def _unwrapped(values: Array) -> Array:
    """Return the values of a clock of 32 bits from its first one on."""
    steps = (np.diff(values) + _HALF) % _WRAP - _HALF
    return np.concatenate([[0], np.cumsum(steps)])


def _clock(at: Array, ticks: Array) -> float | None:
    """Return the ticks in a second of a clock; None if it is none that is known."""
    counted = float(ticks[-1] - ticks[0]) / float(at[-1] - at[0])
    nearest = min(CLOCKS_HZ, key=lambda hz: abs(hz - counted) / hz)
    return nearest if abs(nearest - counted) <= NEAR_HZ * nearest else None


def matched(talk: Array, at: Array, late: Array, talks: Array, times: Array) -> Array:
    """Return the delays of segments by their conversations and times; NaN where there is none.

    Args:
        talk: conversations, as `delays` returns them.
        at: times, likewise.
        late: the delays.
        talks: the conversations that are asked for.
        times: the times.
    """
    found = np.full(len(times), np.nan)
    names, first = np.unique(talk, return_index=True)
    for name, begin, end in zip(names, first, [*first[1:], len(talk)], strict=True):
        wanted = np.flatnonzero(talks == name)
        place = np.clip(np.searchsorted(at[begin:end], times[wanted]), 0, end - begin - 1) + begin
        same = at[place] == times[wanted]
        found[wanted[same]] = late[place[same]]
    return found
