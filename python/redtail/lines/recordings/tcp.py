"""What the segments of a TCP connection say to someone who sees them pass.

Of each end's data: round trips between the point of capture and the other end, what was delivered
and when, and what was lost on which side of the point.

A round trip is taken of a segment and the acknowledgement that ends exactly with it, so that no
delayed acknowledgement of an earlier segment counts, and not of segments that were sent twice (Karn
and Partridge, SIGCOMM 1987). A selective acknowledgement (RFC 2018) gives one too, also while data
is missing. Round trips on the side of the sender are taken by timestamps (RFC 7323): from the first
segment with a value to the first data that echoes it. Without timestamps there are few: from the
acknowledgement that makes the sender send a segment again to that segment.

A host may answer late: it delays an acknowledgement (RFC 5681, section 4.2), or it has nothing to
send for a while, and its next data echoes an old value (RFC 7323, section 4.1). So each round trip
says how long the host may have taken. It answers at once where an acknowledgement has more than a
full segment or selects one (RFC 5681, sections 4.2 and 3.2). Else it had answered before the next
segment of its peer arrived, for it would have acknowledged, or echoed, that one; and where none
came, all of the round trip may be the host's.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings.packets import ACK, CUT, FIN, SYN, TCP, TIMESTAMPS, Capture

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

ACKED, STAMPED, AGAIN, SHAKEN = 0, 1, 2, 3
"""How a round trip was taken: by an acknowledgement, by timestamps, of a retransmission, or by the
acknowledgement of a SYN."""

DUP_THRESH = 3
"""Duplicates that make a sender send again (RFC 5681, section 3.2)."""

MOST_HOLES = 4096
"""Stretches of missing data that are remembered of one end: more than a window of 64 kB has octets
between SACK blocks; older ones will not be filled any more."""

MOST_CUT = 128
"""Segments that a retransmission in another cut may cover: 64 kB in segments of 536 bytes."""

BLOCK = 1 << 14
"""Packets whose columns are Python's numbers at the same time."""

_WRAP = 1 << 32
_HALF = 1 << 31


@dataclass(frozen=True)
class Segments:
    """What was seen of all connections; a row for each observation, in no particular order.

    Attributes:
        trips: round trips from the point to an end and back. Columns: time at which the first
            packet passed (s), time at which the answer passed (s), conversation, the end that
            turned it around, bytes of the packet whose wait is in it, how it was taken, and how
            much of it that end may have taken (s).
        delivered: acknowledged data. Columns: time (s), conversation, the end that sent the data,
            bytes on the line, headers included.
        beyond: data that passed the point and was sent again: lost behind it, unless the receiver
            says that it was not. Columns: time at which the lost copy passed (s), time of the next
            copy (s), conversation, end, and whether it was data (1) or a SYN or FIN alone (0).
        missing: data that did not pass when it should have, and came later: lost before the point.
            Columns: time at which the data behind it passed (s), time at which it came (s),
            conversation, end, and the same.
    """

    trips: Array
    delivered: Array
    beyond: Array
    missing: Array


class _Stream:
    """The data of one end of a connection."""

    __slots__ = (
        "again",
        "asked",
        "by_end",
        "credit",
        "duplicates",
        "first",
        "highest",
        "holes",
        "largest",
        "order",
        "recover",
        "syn",
        "una",
    )

    def __init__(self) -> None:
        self.highest: int | None = None
        self.una = 0
        #: By its end, a segment: begin, time, size, whether it was sent twice, whether it was
        #: acknowledged selectively, and whether it has data.
        self.by_end: dict[int, list[Any]] = {}
        #: The ends in order, from place `first` on.
        self.order: list[int] = []
        self.first = 0
        self.holes: list[tuple[int, int, float]] = []
        self.credit = 0
        #: Duplicates of the last acknowledgement, and when they asked for a retransmission.
        self.duplicates = 0
        self.asked: float | None = None
        #: What was sent before this may have arrived long before it is acknowledged.
        self.recover = 0
        #: By their begins, the rows of segments that were sent twice.
        self.again: dict[int, int] = {}
        #: The payload of the largest segment.
        self.largest = 0
        #: Where a SYN begins.
        self.syn: int | None = None

    def waits(self) -> bool:
        """Return whether segments have not been acknowledged."""
        return self.first < len(self.order)

    def take(self) -> list[Any]:
        """Remove the first segment and return it."""
        segment: list[Any] = self.by_end.pop(self.order[self.first])
        self.first += 1
        if self.first > 1000 and 2 * self.first > len(self.order):
            del self.order[: self.first]
            self.first = 0
        return segment


class _Connection:
    """Goes through the segments of one connection."""

    def __init__(self, number: int, out: tuple[array[float], ...], mss: int = 1460) -> None:
        self.number = number
        self.mss = mss
        self.trips, self.delivered, self.beyond, self.missing = out
        self.streams = (_Stream(), _Stream())
        #: By end: when a value of its timestamps was seen first, and when the next one was. The
        #: first time is negative once data has echoed the value.
        self.values: tuple[dict[int, list[float]], dict[int, list[float]]] = ({}, {})
        self.newest: list[list[float] | None] = [None, None]

    def data(
        self, end: int, at: float, seq: int, length: int, size: int, full: bool, syn: bool = False
    ) -> None:
        """Take a segment with data (it is full then), a SYN or a FIN."""
        stream = self.streams[end]
        if stream.highest is None:
            stream.highest = stream.una = stream.recover = seq
        begin = _unwrapped(seq, stream.highest)
        stop = begin + length
        if syn:
            stream.syn = begin
        elif full:
            stream.largest = min(max(stream.largest, length), self.mss)
        if begin >= stream.highest:
            if begin > stream.highest:
                stream.holes.append((stream.highest, begin, at))
                del stream.holes[:-MOST_HOLES]
            stream.by_end[stop] = [begin, at, size, False, False, full]
            stream.order.append(stop)
            stream.highest = stop
            return
        if not self._fills(stream, end, at, begin, stop, size, full):
            self._repeats(stream, end, at, begin, stop)
        if stop > stream.highest:  # old data and new in one segment
            if stop not in stream.by_end:  # or else it has filled a hole
                stream.order.append(stop)
            stream.by_end[stop] = [stream.highest, at, size, True, False, full]
            stream.highest = stop

    def _fills(
        self, stream: _Stream, end: int, at: float, begin: int, stop: int, size: int, full: bool
    ) -> bool:
        index = bisect_right(stream.holes, begin, key=_right)
        if index == len(stream.holes) or stream.holes[index][0] >= stop:
            return False
        left, right, since = stream.holes[index]
        self.missing.extend((since, at, self.number, end, full))
        if stream.asked is not None and begin <= stream.una < stop:
            self.trips.extend((stream.asked, at, self.number, end, size, AGAIN, 0.0))
        stream.asked = None
        rest = [(left, begin, since)] if left < begin else []
        rest += [(stop, right, since)] if stop < right else []
        stream.holes[index : index + 1] = rest
        if stop > stream.una and stop not in stream.by_end:
            # Karn: counted as sent twice, for an earlier copy was lost.
            stream.by_end[stop] = [begin, at, size, True, False, full]
            insort(stream.order, stop, stream.first)
        return True

    def _repeats(self, stream: _Stream, end: int, at: float, begin: int, stop: int) -> None:
        exact = stream.by_end.get(stop)
        segments = [exact] if exact is not None else []
        if exact is None:  # cut in another way than before
            first = bisect_right(stream.order, begin, stream.first)
            segments = [
                stream.by_end[known]
                for known in stream.order[first : first + MOST_CUT]
                if stream.by_end[known][0] < stop
            ]
        for segment in segments:
            if not segment[3] and not segment[4]:
                stream.again[segment[0]] = len(self.beyond)
                self.beyond.extend((segment[1], at, self.number, end, segment[5]))
            segment[3] = True

    def acknowledge(
        self,
        end: int,
        at: float,
        number: int,
        blocks: list[tuple[int, int]],
        pure: bool,
        cut: bool = False,
    ) -> None:
        """Take an acknowledgement of the data of `end`; with `cut`, blocks may be missing."""
        stream = self.streams[end]
        if stream.highest is None:
            stream.highest = stream.una = stream.recover = number
            return
        ack = _unwrapped(number, stream.highest)
        bytes_now = 0
        duplicate = pure and ack == stream.una and stream.waits()
        if ack > stream.una:
            since_una = ack - stream.una
            while stream.waits() and stream.order[stream.first] <= ack:
                stop = stream.order[stream.first]
                segment = stream.take()
                bytes_now += 0 if segment[4] else segment[2]
                # With SACK blocks, what made the receiver answer is another segment.
                clean = not blocks and not cut and not segment[3] and not segment[4]
                if stop == ack and clean and segment[0] >= stream.recover:
                    self._trip(segment, at, end, _late(stream, segment, at, since_una))
            used = min(stream.credit, bytes_now)
            bytes_now -= used
            stream.credit -= used
            if not stream.waits():
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
        if blocks and stream.again:
            self._received_twice(stream, ack, blocks)
        for place, (left, right) in enumerate(blocks):
            bytes_now += self._select(stream, end, at, left, right, place == 0)
        if bytes_now:
            self.delivered.extend((at, self.number, end, bytes_now))

    def _received_twice(self, stream: _Stream, ack: int, blocks: list[tuple[int, int]]) -> None:
        """Take back the losses of what the first block says was received twice (RFC 2883)."""
        assert stream.highest is not None
        near = stream.highest
        edges = [(_unwrapped(left, near), _unwrapped(right, near)) for left, right in blocks[:2]]
        left, right = edges[0]
        around = edges[1] if len(edges) > 1 else (0, 0)
        if right <= ack or around[0] <= left < right <= around[1]:
            for begin in [begin for begin in stream.again if left <= begin < right]:
                self.beyond[stream.again.pop(begin) + 2] = -1.0
        for begin in list(stream.again)[:-MOST_HOLES]:
            del stream.again[begin]

    def _select(
        self, stream: _Stream, end: int, at: float, left: int, right: int, newest: bool
    ) -> int:
        """Take a block; the newest has the segment that was just received (RFC 2018, section 4).

        What another one tells for the first time was in an acknowledgement that did not come.
        """
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
            if first and newest and not segment[3]:
                self._trip(segment, at, end, 0.0)
            first = False
            stop = segment[0]
        return bytes_now

    def _trip(self, segment: list[Any], at: float, end: int, late: float) -> None:
        how = SHAKEN if segment[0] == self.streams[end].syn else ACKED
        self.trips.extend((segment[1], at, self.number, 1 - end, segment[2], how, late))

    def stamp(
        self, end: int, at: float, value: int, echo: int, size: int, data: bool, quiet: bool
    ) -> None:
        """Take the timestamps of a segment that `end` sent.

        With `quiet`, no data of this end was waiting for its acknowledgement. Else the other end
        may not echo the value: not before it has acknowledged that data (RFC 7323, section 4.3).
        """
        mine, others = self.values[end], self.values[1 - end]
        if value not in mine:
            mine[value] = [at, math.inf]
            before = self.newest[end]
            if quiet and before is not None:
                before[1] = at
            if quiet:
                self.newest[end] = mine[value]
        if data:
            seen = others.get(echo)
            if seen is not None and seen[0] >= 0:
                since, late = seen[0], min(seen[1], at) - seen[0]
                self.trips.extend((since, at, self.number, end, size, STAMPED, late))
                seen[0] = -1.0
        if len(mine) > 100_000:
            for old in list(mine)[:50_000]:
                del mine[old]


def _late(stream: _Stream, segment: list[Any], at: float, acked: int) -> float:
    """Return how long a receiver may have waited to acknowledge a segment, which ends at una.

    Args:
        stream: the data of the other end, without what is acknowledged.
        segment: the last one that is acknowledged.
        at: when the acknowledgement passed.
        acked: the bytes that it acknowledges.
    """
    if acked > stream.largest or segment[0] == stream.syn:
        return 0.0
    following = stream.by_end[stream.order[stream.first]][1] if stream.waits() else at
    found: float = min(following, at) - segment[1]
    return max(found, 0.0)


def _unwrapped(seq: int, near: int) -> int:
    """Return the number of a sequence that does not wrap, nearest to `near`.

    >>> _unwrapped(5, 2**32 - 10) - 2**32
    5
    """
    return near + ((seq - near + _HALF) % _WRAP) - _HALF


def _right(hole: tuple[int, int, float]) -> int:
    return hole[1]


def follow(capture: Capture) -> Segments:
    """Follow all TCP connections of a capture, one after the other."""
    out = tuple(array("d") for _ in range(4))
    talks = capture["conversation"]
    rows = np.flatnonzero(capture.protocol == TCP)
    rows = rows[np.argsort(talks[rows], kind="stable")]
    # The first SACK block of each packet; its others follow.
    order = np.argsort(capture["sack_row"], kind="stable")
    sack_rows = capture["sack_row"][order]
    names = ("at_s", "conversation", "end", "size", "payload", "flags", "seq", "ack", "options")
    segments = capture.conversations.segments
    connection = _Connection(-1, out)
    none: list[tuple[int, int]] = []
    for first in range(0, len(rows), BLOCK):
        part = rows[first : first + BLOCK]
        columns = [capture[name][part].tolist() for name in (*names, "ts_val", "ts_ecr")]
        begins = np.searchsorted(sack_rows, part, side="left").tolist()
        ends = np.searchsorted(sack_rows, part, side="right").tolist()
        for (
            begin,
            stop,
            at,
            number,
            end,
            size,
            payload,
            flags,
            seq,
            ack,
            options,
            value,
            echo,
        ) in zip(begins, ends, *columns, strict=True):
            if number != connection.number:
                connection = _Connection(number, out, int(segments[number]))
            length = payload + ((flags & SYN) >> 1) + (flags & FIN)
            quiet = not connection.streams[end].waits()
            if length:
                connection.data(end, at, seq, length, size, payload > 0, bool(flags & SYN))
            if flags & ACK:
                sacks = none
                if begin < stop:
                    which = order[begin:stop]
                    left, right = capture["sack_left"][which], capture["sack_right"][which]
                    sacks = list(zip(left.tolist(), right.tolist(), strict=True))
                connection.acknowledge(1 - end, at, ack, sacks, length == 0, bool(options & CUT))
            if options & TIMESTAMPS:
                connection.stamp(end, at, value, echo, size, payload > 0, quiet)
    widths = (7, 4, 5, 5)
    trips, delivered, beyond, missing = (
        np.asarray(rows).reshape(-1, width) for rows, width in zip(out, widths, strict=True)
    )
    return Segments(trips, delivered, beyond[beyond[:, 2] >= 0], missing)
