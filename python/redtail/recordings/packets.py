"""Captures: the columns of their packets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail._module import native

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

TCP, UDP, ICMP = 6, 17, 1

FIN, SYN, RST, ACK = 1, 2, 4, 16
REQUEST, REPLY = 1, 2


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


@dataclass(frozen=True)
class Capture:
    """The packets of a capture, in the order of time.

    Attributes:
        path: the file.
        columns: by name (`redtail_recordings::Packets`), with `at_s` in place of `at_ns`: seconds
            from the first packet.
        begin_ns: time stamp of the first packet.
        conversations: who talks to whom.
        interfaces: names of where packets were captured.
        left_out: how many packets are no rows, by the reason.
        damage: where and why reading ended before the end of the file; None if it did not.
    """

    path: Path
    columns: dict[str, Array]
    begin_ns: int
    conversations: list[Conversation]
    interfaces: list[str]
    left_out: dict[str, int] = field(default_factory=dict)
    damage: str | None = None

    def __len__(self) -> int:
        return len(self.columns["at_s"])

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    @property
    def protocol(self) -> Array:
        """IP's number of the protocol of each packet."""
        numbers = np.array([talk.protocol for talk in self.conversations], np.uint8)
        found: Array = numbers[self["conversation"]]
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


def read(path: Path, name: Path | None = None) -> Capture:
    """Read a pcap or pcapng file.

    Args:
        path: the file.
        name: what messages call it, if it was unpacked from another one.

    Raises:
        ValueError: it is not such a file; the text says what is wrong.
        OSError: it cannot be read.
    """
    found = native().read_capture(path)
    columns = {key: np.frombuffer(data, dtype=kind) for key, (kind, data) in found.columns.items()}
    at_ns = columns.pop("at_ns")
    rows = np.argsort(at_ns, kind="stable")
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    ordered = {
        key: values if key.startswith("sack_") else values[rows] for key, values in columns.items()
    }
    ordered["sack_row"] = place[columns["sack_row"]]
    begin = int(at_ns[rows[0]]) if len(rows) else 0
    ordered["at_s"] = (at_ns[rows] - begin) / 1e9
    talks = [
        Conversation(protocol, tuple(addresses), tuple(ports), tuple(mss), tuple(sack))
        for protocol, addresses, ports, mss, sack in found.conversations
    ]
    ordered["size"] = _on_the_line(ordered, talks)
    return Capture(
        name or path,
        ordered,
        begin,
        talks,
        [label or f"interface {number}" for number, (label, _) in enumerate(found.interfaces)],
        dict(found.left_out),
        found.damage,
    )


def _on_the_line(columns: dict[str, Array], talks: list[Conversation]) -> Array:
    """Return the bytes of each packet on the line.

    A host that leaves segmentation to its network card captures packets that are larger than any
    on the line: they become as many as their payload needs, each with its headers.
    """
    size, payload = columns["size"].astype(np.int64), columns["payload"].astype(np.int64)
    large = size > 1514
    if not large.any():
        return size
    mss = np.array([min((m for m in talk.mss if m), default=1460) for talk in talks])
    segment = np.maximum(mss[columns["conversation"]] - 12 * (columns["options"] & 1), 1)
    pieces = np.where(large & (payload > segment), -(-payload // segment), 1)
    total: Array = size + (pieces - 1) * (size - payload)
    return total
