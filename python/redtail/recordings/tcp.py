"""What the segments of a TCP connection say to someone who sees them pass.

Of each end's data: round trips between the point of capture and the other end, what was delivered
and when, and what was lost on which side of the point.

A round trip is taken of a segment and the acknowledgement that ends exactly with it, so that no
delayed acknowledgement of an earlier segment counts, and not of segments that were sent twice (Karn
and Partridge, SIGCOMM 1987). A selective acknowledgement (RFC 2018) gives one too, also while data
is missing. Round trips on the side of the sender are taken by timestamps (RFC 7323): from the first
segment with a value to the first data that echoes it. Without timestamps there are few: from the
acknowledgement that makes the sender send a segment again to that segment.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.recordings.packets import ACK, FIN, SYN, TCP, Capture

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

ACKED, STAMPED, AGAIN = 0, 1, 2
"""How a round trip was taken: by an acknowledgement, by timestamps, or of a retransmission."""

DUP_THRESH = 3
"""Duplicates that make a sender send again (RFC 5681, section 3.2)."""

_WRAP = 1 << 32
_HALF = 1 << 31


@dataclass(frozen=True)
class Segments:
    """What was seen of all connections; a row for each observation, in no particular order.

    Attributes:
            trips: round trips from the point to an end and back. Columns: time at which the first
            packet passed (s), time at which the answer passed (s), conversation, the end that
            turned it around, bytes of the packet whose wait is in it, how it was taken.
        delivered: acknowledged data. Columns: time (s), conversation, the end that sent the data,
            bytes on the line, headers included.
        beyond: data that passed the point and was sent again: lost behind it. Columns: time at
            which the lost copy passed (s), time of the next copy (s), conversation, end.
        missing: data that did not pass when it should have, and came later: lost before the point.
            Columns: time at which the data behind it passed (s), time at which it came (s),
            conversation, end.
    """

    trips: Array
    delivered: Array
    beyond: Array
    missing: Array


class _Stream:
    """The data of one end of a connection."""

    __slots__ = (
        "asked",
        "by_end",
        "credit",
        "duplicates",
        "highest",
        "holes",
        "order",
        "recover",
        "una",
    )

    def __init__(self) -> None:
        self.highest: int | None = None
        self.una = 0
        self.by_end: dict[int, list[Any]] = {}
        self.order: deque[int] = deque()
        self.holes: list[list[Any]] = []
        self.credit = 0
        #: Duplicates of the last acknowledgement, and when they asked for a retransmission.
        self.duplicates = 0
        self.asked: float | None = None
        #: What was sent before this may have arrived long before it is acknowledged.
        self.recover = 0


class _Connection:
    """Goes through the segments of one connection."""

    def __init__(self, number: int, out: tuple[list[Any], ...]) -> None:
        self.number = number
        self.trips, self.delivered, self.beyond, self.missing = out
        self.streams = (_Stream(), _Stream())
        #: By end: when a value of its timestamps was seen first, and not yet echoed by data.
        self.values: tuple[dict[int, float], dict[int, float]] = ({}, {})

    def data(self, end: int, at: float, seq: int, length: int, size: int) -> None:
        """Take a segment with data, a SYN or a FIN."""
        stream = self.streams[end]
        if stream.highest is None:
            stream.highest = stream.una = stream.recover = seq
        begin = _unwrapped(seq, stream.highest)
        stop = begin + length
        if begin >= stream.highest:
            if begin > stream.highest:
                stream.holes.append([stream.highest, begin, at])
            stream.by_end[stop] = [begin, at, size, False, False]
            stream.order.append(stop)
            stream.highest = stop
            return
        if not self._fills(stream, end, at, begin, stop, size):
            self._repeats(stream, end, at, begin, stop)
        if stop > stream.highest:  # old data and new in one segment
            stream.by_end[stop] = [stream.highest, at, size, True, False]
            stream.order.append(stop)
            stream.highest = stop

    def _fills(
        self, stream: _Stream, end: int, at: float, begin: int, stop: int, size: int
    ) -> bool:
        for index, (left, right, since) in enumerate(stream.holes):
            if begin < right and stop > left:
                self.missing.append((since, at, self.number, end))
                if stream.asked is not None and begin <= stream.una < stop:
                    self.trips.append((stream.asked, at, self.number, end, size, AGAIN))
                stream.asked = None
                rest = [[left, begin, since]] if left < begin else []
                rest += [[stop, right, since]] if stop < right else []
                stream.holes[index : index + 1] = rest
                if stop > stream.una and stop not in stream.by_end:
                    # Karn: counted as sent twice, for an earlier copy was lost.
                    stream.by_end[stop] = [begin, at, size, True, False]
                    stream.order.append(stop)
                    stream.order = deque(sorted(stream.order))
                return True
        return False

    def _repeats(self, stream: _Stream, end: int, at: float, begin: int, stop: int) -> None:
        exact = stream.by_end.get(stop)
        segments = [exact] if exact is not None else []
        if exact is None:  # cut in another way than before
            segments = [
                stream.by_end[known]
                for known in stream.order
                if known > begin and stream.by_end[known][0] < stop
            ]
        for segment in segments:
            if not segment[3] and not segment[4]:
                self.beyond.append((segment[1], at, self.number, end))
            segment[3] = True

    def acknowledge(
        self, end: int, at: float, number: int, blocks: list[tuple[int, int]], pure: bool
    ) -> None:
        """Take an acknowledgement of the data of `end`."""
        stream = self.streams[end]
        if stream.highest is None:
            stream.highest = stream.una = stream.recover = number
            return
        ack = _unwrapped(number, stream.highest)
        bytes_now = 0
        duplicate = pure and ack == stream.una and bool(stream.order)
        if ack > stream.una:
            segment = None
            while stream.order and stream.order[0] <= ack:
                stop = stream.order.popleft()
                segment = stream.by_end.pop(stop)
                bytes_now += 0 if segment[4] else segment[2]
                # With SACK blocks, what made the receiver answer is another segment.
                clean = not blocks and not segment[3] and not segment[4]
                if stop == ack and clean and segment[0] >= stream.recover:
                    self._trip(segment, at, end)
            used = min(stream.credit, bytes_now)
            bytes_now -= used
            stream.credit -= used
            if not stream.order:
                stream.credit = 0
            stream.una = ack
            stream.highest = max(stream.highest, ack)
            stream.duplicates, stream.asked = 0, None
        elif duplicate and not blocks:
            # A duplicate says that a segment has arrived, and not which.
            size = stream.by_end[stream.order[-1]][2]
            stream.credit += size
            bytes_now += size
        if duplicate:
            stream.duplicates += 1
            stream.recover = stream.highest
        if stream.duplicates == DUP_THRESH and stream.holes and stream.asked is None:
            stream.asked = at
        for left, right in blocks:
            bytes_now += self._select(stream, end, at, left, right)
        if bytes_now:
            self.delivered.append((at, self.number, end, bytes_now))

    def _select(self, stream: _Stream, end: int, at: float, left: int, right: int) -> int:
        assert stream.highest is not None
        stop, begin = _unwrapped(right, stream.highest), _unwrapped(left, stream.highest)
        if stop <= stream.una:
            return 0
        bytes_now, first = 0, True
        while stop > begin:
            segment = stream.by_end.get(stop)
            if segment is None or segment[4]:
                break
            segment[4] = True
            bytes_now += segment[2]
            if first and not segment[3]:
                self._trip(segment, at, end)
            first = False
            stop = segment[0]
        return bytes_now

    def _trip(self, segment: list[Any], at: float, end: int) -> None:
        self.trips.append((segment[1], at, self.number, 1 - end, segment[2], ACKED))

    def stamp(self, end: int, at: float, value: int, echo: int, size: int, data: bool) -> None:
        """Take the timestamps of a segment that `end` sent."""
        mine, others = self.values[end], self.values[1 - end]
        if value not in mine:
            mine[value] = at
        if data:
            since = others.get(echo)
            if since is not None and since >= 0:
                self.trips.append((since, at, self.number, end, size, STAMPED))
                others[echo] = -1.0
        if len(mine) > 100_000:
            for old in list(mine)[:50_000]:
                del mine[old]


def _unwrapped(seq: int, near: int) -> int:
    """Return the number of a sequence that does not wrap, nearest to `near`.

    >>> _unwrapped(5, 2**32 - 10) - 2**32
    5
    """
    return near + ((seq - near + _HALF) % _WRAP) - _HALF


def follow(capture: Capture) -> Segments:
    """Follow all TCP connections of a capture."""
    out: tuple[list[Any], ...] = ([], [], [], [])
    protocols = np.array([talk.protocol for talk in capture.conversations] or [0])
    rows = np.flatnonzero(protocols[capture["conversation"]] == TCP)
    blocks: dict[int, list[tuple[int, int]]] = {}
    for row, left, right in zip(
        capture["sack_row"].tolist(),
        capture["sack_left"].tolist(),
        capture["sack_right"].tolist(),
        strict=True,
    ):
        blocks.setdefault(row, []).append((left, right))
    names = ("at_s", "conversation", "end", "size", "payload", "flags", "seq", "ack", "options")
    columns = [capture[name][rows].tolist() for name in (*names, "ts_val", "ts_ecr")]
    known: dict[int, _Connection] = {}
    none: list[tuple[int, int]] = []
    for row, at, number, end, size, payload, flags, seq, ack, options, value, echo in zip(
        rows.tolist(), *columns, strict=True
    ):
        connection = known.get(number)
        if connection is None:
            connection = known[number] = _Connection(number, out)
        length = payload + ((flags & SYN) >> 1) + (flags & FIN)
        if length:
            connection.data(end, at, seq, length, size)
        if flags & ACK:
            sacks = blocks.get(row, none)
            connection.acknowledge(1 - end, at, ack, sacks, length == 0)
        if options & 1:
            connection.stamp(end, at, value, echo, size, payload > 0)
    widths = (6, 4, 4, 4)
    return Segments(
        *(np.array(rows, float).reshape(-1, width) for rows, width in zip(out, widths, strict=True))
    )
