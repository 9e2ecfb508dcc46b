"""The packets of a connection as one side sees them: what it sends, and what it receives.

QUIC numbers each transmission, TCP numbers bytes. Here the packets of each side are numbered from
0 in the order in which they were captured. An acknowledgement of bytes is that of the
transmissions that carried them, were sent before it, and were not lost.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

FIN, SYN, ACK = 1, 2, 16
"""Flags of TCP."""

CE = 3
"""The ECN field of a marked packet (RFC 3168, section 5)."""

_WRAP = 1 << 32


class Packet(NamedTuple):
    """A captured packet.

    Attributes:
        at_ns: when it was captured.
        ours: whether the side whose log this is sent it.
        id: the identification in its IP header: its number at its sender, modulo 2^16.
        size: of the IP packet, bytes.
        payload: bytes.
        flags: of TCP.
        seq: TCP's sequence number.
        ack: TCP's acknowledgement number.
        ecn: the ECN field.
        sack: the edges of its selective acknowledgements.
    """

    at_ns: int
    ours: bool
    id: int
    size: int
    payload: int
    flags: int = 0
    seq: int = 0
    ack: int = 0
    ecn: int = 0
    sack: tuple[tuple[int, int], ...] = ()


@dataclass
class Sent:
    """A transmission.

    Attributes:
        number: among those of its side.
        packet: as captured.
        start: offset of its first byte in the stream.
        end: offset after its last byte.
        again: the number of the transmission that carried these bytes before; None if none did.
        lost: whether a queue dropped it or a wire lost it.
    """

    number: int
    packet: Packet
    start: int
    end: int
    again: int | None = None
    lost: bool = False


@dataclass
class Side:
    """What one side has sent so far.

    Attributes:
        sent: its transmissions.
    """

    sent: list[Sent] = field(default_factory=list)
    _origin: int | None = None
    _top: int = 0
    # Starts of what is not acknowledged, in order; and the transmissions that begin there.
    _starts: list[int] = field(default_factory=list)
    _at: dict[int, list[Sent]] = field(default_factory=dict)
    # The latest transmission from each offset, and with each identification.
    _carried: dict[int, int] = field(default_factory=dict)
    _latest: dict[int, Sent] = field(default_factory=dict)

    def offset(self, number: int) -> int:
        """Return a sequence number of this side as an offset in its stream."""
        origin = self._origin or 0
        near = (number - origin - self._top) % _WRAP
        return self._top + (near if near < _WRAP // 2 else near - _WRAP)

    def send(self, packet: Packet) -> Sent:
        """Note a transmission."""
        syn = bool(packet.flags & SYN)
        if self._origin is None:
            # The SYN has the number before that of the first byte.
            self._origin = (packet.seq + syn) % _WRAP
        start = 0 if syn else self.offset(packet.seq)
        self._top = max(self._top, start)
        sent = Sent(len(self.sent), packet, start, start + packet.payload)
        self.sent.append(sent)
        self._latest[packet.id] = sent
        if packet.payload:
            sent.again = self._carried.get(start)
            self._carried[start] = sent.number
            if start not in self._at:
                self._at[start] = []
                bisect.insort(self._starts, start)
            self._at[start].append(sent)
        return sent

    def latest(self, identification: int) -> Sent | None:
        """Return the latest transmission with this identification in its IP header."""
        return self._latest.get(identification)

    def acknowledge(self, packet: Packet) -> list[int]:
        """Return the numbers of the transmissions that a packet of the peer newly acknowledges."""
        if not packet.flags & ACK or self._origin is None:
            return []
        found: list[int] = []
        upto = self.offset(packet.ack)
        while self._starts and self._at[self._starts[0]][-1].end <= upto:
            found += self._take(0)
        for left, right in packet.sack:
            low, high = self.offset(left), self.offset(right)
            place = bisect.bisect_left(self._starts, low)
            while place < len(self._starts) and self._starts[place] < high:
                if self._at[self._starts[place]][-1].end <= high:
                    found += self._take(place)
                else:
                    place += 1
        return sorted(found)

    def _take(self, place: int) -> list[int]:
        return [sent.number for sent in self._at.pop(self._starts.pop(place)) if not sent.lost]


def ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Return numbers in order as ranges.

    >>> ranges([1, 2, 3, 5, 7, 8])
    [[1, 3], [5], [7, 8]]
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][-1] == number - 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return found


def of_conversation(
    columns: Mapping[str, np.ndarray[Any, Any]], rows: np.ndarray[Any, Any], us: int
) -> Iterator[Packet]:
    """Yield packets of a capture.

    Args:
        columns: of the capture, by name (`redtail._native.PacketCapture`).
        rows: which of its packets.
        us: the end of the conversation whose log this is, 0 or 1.
    """
    import numpy as np

    first = np.searchsorted(columns["sack_row"], rows, side="left")
    last = np.searchsorted(columns["sack_row"], rows, side="right")
    names = ("at_ns", "id", "size", "payload", "flags", "seq", "ack", "ecn")
    values = zip(*(columns[name][rows].tolist() for name in names), strict=True)
    ours = (columns["end"][rows] == us).tolist()
    for one, own, low, high in zip(values, ours, first, last, strict=True):
        edges = (columns[name][low:high].tolist() for name in ("sack_left", "sack_right"))
        at_ns, number, size, payload, flags, seq, ack, ecn = one
        sack = tuple(zip(*edges, strict=True))
        yield Packet(at_ns, own, number, size, payload, flags, seq, ack, ecn, sack)
