"""Captures: the columns of their packets."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from redtail import native
from redtail.lines.recordings import clocks

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]
    Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

TCP, UDP, ICMP = 6, 17, 1

LEAST_MSS_B = 88
"""Segments that a SYN asks for are no smaller than this: Linux's TCP_MIN_MSS."""

LONGEST_NAME = 60
"""Letters of the name of an interface that are shown; Linux has up to 15."""

FIN, SYN, RST, ACK = 1, 2, 4, 16
REQUEST, REPLY = 1, 2

TIMESTAMPS, CUT = 1, 2
"""Bits of `options`: the segment has timestamps; the capture has cut its options, and selective
acknowledgements may be missing."""


@dataclass(frozen=True)
class Conversation:
    """Two endpoints and the protocol between them; end 0 sent the first packet.

    Attributes:
        protocol: IP's number of the protocol.
        addresses: of the two ends.
        ports: of the two ends.
        mss: the largest segment that each end accepts; 0 without its SYN.
        sack: whether the SYN of each end permits selective acknowledgements.
    """

    protocol: int
    addresses: tuple[str, str]
    ports: tuple[int, int]
    mss: tuple[int, int]
    sack: tuple[bool, bool]


class Conversations(Sequence[Conversation]):
    """Who talks to whom, as columns: a capture may have a conversation for each packet.

    Args:
        columns: by name (`redtail._native.PacketCapture`); of ends there are two for each
            conversation, side by side.
    """

    def __init__(self, columns: dict[str, Array]) -> None:
        self.protocols = columns["protocol"]
        self._of_ends = {
            name: columns[name].reshape(-1, 2)
            for name in ("version", "address", "port", "mss", "sack")
        }

    def __len__(self) -> int:
        return len(self.protocols)

    @overload
    def __getitem__(self, number: int) -> Conversation: ...

    @overload
    def __getitem__(self, number: slice) -> list[Conversation]: ...

    def __getitem__(self, number: int | slice) -> Conversation | list[Conversation]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        first, second = (str(address) for address in self.addresses(number))
        ports, mss, sack = (
            self._of_ends[name][number].tolist() for name in ("port", "mss", "sack")
        )
        return Conversation(
            int(self.protocols[number]),
            (first, second),
            (ports[0], ports[1]),
            (mss[0], mss[1]),
            (sack[0], sack[1]),
        )

    def addresses(self, number: int) -> tuple[Address, Address]:
        """Return the addresses of the two ends of a conversation."""
        found = [
            ipaddress.IPv4Address(bytes(data)[12:])
            if version == 4
            else ipaddress.IPv6Address(bytes(data))
            for version, data in zip(
                self._of_ends["version"][number], self._of_ends["address"][number], strict=True
            )
        ]
        return found[0], found[1]

    @property
    def segments(self) -> Array:
        """The largest segment of each conversation that both ends accept; 1460 if none is told."""
        told = self._of_ends["mss"].astype(np.int64)
        least: Array = np.where(told > 0, told, 65536).min(axis=1)
        return np.where(least < 65536, np.maximum(least, LEAST_MSS_B), 1460)


@dataclass(frozen=True)
class Capture:
    """The packets of a capture, in the order of time.

    Attributes:
        path: the file.
        columns: by name (`redtail_recordings::Packets`), with `at_s` in place of `at_ns`: seconds
            from the first packet.
        begin_ns: time stamp of the first packet.
        conversations: who talks to whom.
        interfaces: names of where packets were captured, by the numbers in the columns.
        left_out: how many packets are no rows, by the reason.
        unknown_links: how many came from links of a type that is not read, by its number.
        damage: where and why reading ended before the end of the file; None if it did not.
        set_back: when the clock was set back, and how far (s); the times are as if it had not been.
    """

    path: Path
    columns: dict[str, Array]
    begin_ns: int
    conversations: Conversations
    interfaces: list[str]
    left_out: dict[str, int] = field(default_factory=dict)
    damage: str | None = None
    unknown_links: dict[int, int] = field(default_factory=dict)
    set_back: tuple[tuple[float, float], ...] = ()

    def __len__(self) -> int:
        return len(self.columns["at_s"])

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    @property
    def protocol(self) -> Array:
        """IP's number of the protocol of each packet."""
        found: Array = self.conversations.protocols[self["conversation"]]
        return found

    @property
    def duration_s(self) -> float:
        """Time from the first packet to the last."""
        return float(self["at_s"][-1]) if len(self) else 0.0

    def only(self, keep: Array) -> Capture:
        """Return the capture with some of its packets; `keep` has a truth value for each."""
        row = np.cumsum(keep) - 1
        kept = keep[self["sack_row"]] if len(self["sack_row"]) else np.zeros(0, bool)
        columns = {
            name: values[kept] if name.startswith("sack_") else values[keep]
            for name, values in self.columns.items()
        }
        columns["sack_row"] = row[columns["sack_row"]]
        return replace(self, columns=columns)


def read(path: str | Path, name: Path | None = None) -> Capture:
    """Read a pcap or pcapng file.

    Args:
        path: the file.
        name: what messages call it, if it was unpacked from another one.

    Raises:
        ValueError: it is not such a file; the text says what is wrong.
        OSError: it cannot be read.
    """
    found = native.module().read_capture(path)
    columns = _arrays(found.columns)
    talks = Conversations(_arrays(found.conversations))
    used, columns["interface"] = np.unique(columns["interface"], return_inverse=True)
    interfaces = [
        found.interface(number)[:LONGEST_NAME] or f"interface {number}" for number in used.tolist()
    ]
    left_out, damage = dict(found.left_out), found.damage
    unknown_links = dict(found.unknown_links)
    del found  # the same columns once more
    at_ns = columns.pop("at_ns")
    at_ns, steps = clocks.without_steps(at_ns, columns["interface"])
    rows = np.argsort(at_ns, kind="stable")
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    columns["sack_row"] = place[columns["sack_row"]]
    for key in columns:
        if not key.startswith("sack_"):
            columns[key] = columns[key][rows]
    begin = int(at_ns[rows[0]]) if len(rows) else 0
    columns["at_s"] = (at_ns[rows] - begin) / 1e9
    columns["size"] = _on_the_line(columns, talks.segments)
    set_back = tuple(((int(at_ns[row]) - begin) / 1e9, size / 1e9) for row, size in steps)
    return Capture(
        Path(name or path),
        columns,
        begin,
        talks,
        interfaces,
        left_out,
        damage,
        unknown_links,
        set_back,
    )


def _arrays(columns: dict[str, tuple[str, bytes]]) -> dict[str, Array]:
    return {key: np.frombuffer(data, dtype=kind) for key, (kind, data) in columns.items()}


def _on_the_line(columns: dict[str, Array], mss: Array) -> Array:
    """Return the bytes of each packet on the line.

    A host that leaves segmentation to its network card captures packets that are larger than any
    on the line: they become as many as their payload needs, each with its headers.

    Args:
        columns: of the packets.
        mss: the largest segment of each conversation.
    """
    size, payload = columns["size"].astype(np.int64), columns["payload"].astype(np.int64)
    large = size > 1514
    if not large.any():
        return size
    segment = np.maximum(mss[columns["conversation"]] - 12 * (columns["options"] & TIMESTAMPS), 1)
    pieces = np.where(large & (payload > segment), -(-payload // segment), 1)
    total: Array = size + (pieces - 1) * (size - payload)
    return total
