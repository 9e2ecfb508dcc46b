"""Transfers of known course with pings beside them, as crusader and `redtail measure` record them.

Bytes are those that were received. A rate is a value where the pings show that a queue stood
(`transfers`), and the wait is that of the pings while the direction was loaded alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import buffers, pings, rates, transfers
from redtail.lines.recordings.found import Direction, Flows
from redtail.lines.recordings.transfers import HEADERS_B, LEAST_HEADERS_B, SEGMENT_B, Intervals
from redtail.lines.recordings.values import Estimated

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

INTERVALS, FEWEST_INTERVALS = 20, 10
"""Intervals of a transfer in which the rate and the queue are looked at, at most: each has to have
a report of its own, for between two reports nothing is known. Where round trips are long, they are
fewer, but so many that those that are not at the ends tell a rate (`rates.FEWEST`)."""

CAUTION = (
    f"rates are what was received with headers of {HEADERS_B} bytes for each {SEGMENT_B}; what "
    "others sent at the same time is not in the file"
)


@dataclass(frozen=True)
class Load:
    """The transfers of one direction.

    Attributes:
        at_s: edges of intervals.
        total_b: payload that was received up to each.
        streams: connections.
        beside: whether the other direction was loaded, too.
    """

    at_s: Array
    total_b: Array
    streams: int
    beside: bool

    @property
    def scaled_bps(self) -> float:
        """What was received on average, with headers."""
        length = float(self.at_s[-1] - self.at_s[0])
        payload = float(self.total_b[-1] - self.total_b[0])
        return 8 * payload / length * (SEGMENT_B + HEADERS_B) / SEGMENT_B

    def intervals(self, sent_s: Array, wait_s: Array) -> Intervals:
        """Return its intervals with what probes waited in them.

        Args:
            sent_s: when probes were sent.
            wait_s: what each waited; NaN for those without an answer.
        """
        each = np.full(len(self.at_s) - 1, np.nan)
        answered = np.isfinite(wait_s)
        for place, (begin, end) in enumerate(zip(self.at_s[:-1], self.at_s[1:], strict=True)):
            inside = wait_s[(sent_s >= begin) & (sent_s < end) & answered]
            if len(inside):
                each[place] = np.quantile(inside, rates.STANDING)
        size = np.diff(self.total_b) * (SEGMENT_B + HEADERS_B) / SEGMENT_B
        return Intervals(np.diff(self.at_s), size, each)


def load(columns: Sequence[tuple[Array, Array]], beside: bool, trip_s: float = 0.0) -> Load | None:
    """Return the transfers of one direction; None if they do not overlap in time.

    Args:
        columns: of each connection times, and the payload that was received up to each.
        beside: whether the other direction was loaded, too.
        trip_s: the round trip under load. What a lost segment holds back comes at once, after a
            round trip: intervals are so many of them that this evens out (`rates.LUMPS`).
    """
    columns = [(at, got) for at, got in columns if len(at) > 1 and at[-1] > at[0]]
    if not columns:
        return None
    begin, end = max(at[0] for at, _ in columns), min(at[-1] for at, _ in columns)
    if end <= begin:
        return None
    longest = max(float(np.diff(at).max()) for at, _ in columns)
    even = max((end - begin) / (rates.LUMPS * trip_s), FEWEST_INTERVALS) if trip_s else np.inf
    count = int(min(max((end - begin) // longest, 1), even, INTERVALS))
    grid = np.linspace(begin, end, count + 1)
    total = sum(np.interp(grid, at, got) for at, got in columns)
    return Load(grid, np.asarray(total), len(columns), beside)


def rate(carried: Load, middle: Intervals, why: str = "") -> Estimated:
    """Return the rate that transfers show.

    Args:
        carried: the transfers.
        middle: their intervals without those at the ends.
        why: why the waits do not tell which direction was full; empty if they do.
    """
    why = transfers.why_no_queue(middle) or why
    how = "of what was received with its headers"
    return transfers.rate(middle, why, how, least=SEGMENT_B / (rates.PACKET_B - LEAST_HEADERS_B))


def direction(name: str, carried: Load, sent_s: Array, trip_s: Array) -> Direction:
    """Return what transfers of a direction tell of it.

    Args:
        name: "down" or "up".
        carried: the transfers.
        sent_s: when pings were sent.
        trip_s: the round trip of each; NaN for those without an answer.
    """
    answered = np.isfinite(trip_s)
    least = float(trip_s[answered].min()) if answered.any() else 0.0
    whole = carried.intervals(sent_s, trip_s - least)
    why = "the other direction was loaded, too" if carried.beside else ""
    found = rate(carried, whole.middle(), why)
    full = Estimated(None, "s", "the file has few pings beside the transfer")
    inside = (sent_s >= carried.at_s[0]) & (sent_s < carried.at_s[-1])
    seq = np.flatnonzero(inside & answered)
    if len(seq) >= pings.FEWEST and not carried.beside:
        ends = np.flatnonzero(inside)[[0, -1]]
        series = pings.series(seq, sent_s[seq], trip_s[seq], True, (int(ends[0]), int(ends[1])))
        full = pings.full_wait(series, least)
    buffer = buffers.of_wait(full, found, name)
    loss = Estimated(None, "", "the file does not tell the losses of transfers")
    size = int(whole.size_b.sum())
    return Direction(rate=found, buffer=buffer, wait=full, loss=loss, bytes=size)


def flows(loads: Mapping[str, Load]) -> tuple[Flows, ...]:
    """Return who sent, of the transfers of each direction."""
    return tuple(
        Flows("bulk", name, each.streams, each.scaled_bps, SEGMENT_B + HEADERS_B, tcp="linux")
        for name, each in loads.items()
        if each.scaled_bps > 0
    )
