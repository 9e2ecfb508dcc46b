"""Captures of redtail as others would have taken them: with other clocks, twice, or cut."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

PACKET = 6
STATISTICS = 5
"""Type of pcapng's enhanced packet block, as redtail writes it."""


LOCAL = (bytes([10, 128]), bytes([10, 1]))
"""Networks of the hosts that download, and of those that upload."""


@dataclass(frozen=True)
class Packet:
    """A packet of a capture: time in ns, interface, what was kept of it, and its size."""

    at_ns: int
    interface: int
    data: bytes
    size: int


def packets(file: Path) -> tuple[bytes, list[Packet]]:
    """Return what stands before the packets, and the packets."""
    data = file.read_bytes()
    at, head, found = 0, b"", []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == PACKET:
            interface, high, low, kept, size = struct.unpack_from("<5I", data, at + 8)
            found.append(Packet(high << 32 | low, interface, data[at + 28 : at + 28 + kept], size))
        elif kind != STATISTICS:  # what the capture counted, which stands at its end
            assert not found
            head += data[at : at + length]
        at += length
    return head, found


def altered(file: Path, out: Path, change: Callable[[list[Packet]], Iterable[Packet]]) -> Path:
    """Write a capture whose packets are changed, in the order in which they are returned."""
    head, found = packets(file)
    parts = [head]
    for packet in change(found):
        padded = packet.data + bytes(-len(packet.data) % 4)
        length = 32 + len(padded)
        high, low = packet.at_ns >> 32, packet.at_ns % 2**32
        parts.append(
            struct.pack(
                "<7I", PACKET, length, packet.interface, high, low, len(packet.data), packet.size
            )
        )
        parts += [padded, struct.pack("<I", length)]
    out.write_bytes(b"".join(parts))
    return out


def near_proxy(found: list[Packet]) -> Iterator[Packet]:
    """Something near the sender acknowledges each segment of a download, but not its SYN."""
    for each in found:
        header = 14 + 20
        seq, answered = struct.unpack_from(">II", each.data, header + 4)
        syn = each.data[header + 13] & 2
        if each.data[26:28] in LOCAL and not syn:
            continue
        yield each
        length = each.size - header - (each.data[header + 12] >> 4) * 4
        if syn or not length:
            continue
        ends = each.data[30:34] + each.data[26:30]
        ports = each.data[header + 2 : header + 4] + each.data[header : header + 2]
        acknowledged = (seq + length) % 2**32
        tcp = ports + struct.pack(">IIBBHHH", answered, acknowledged, 0x50, 16, 9999, 0, 0)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0) + ends
        yield Packet(each.at_ns + 4000, each.interface, each.data[:14] + ip + tcp, 54)


def clock_set(at_s: float, by_s: float) -> Callable[[list[Packet]], list[Packet]]:
    """The clock is set by some seconds after so many, or nothing passes for so long."""

    def change(found: list[Packet]) -> list[Packet]:
        begin = found[0].at_ns + round(at_s * 1e9)
        by = round(by_s * 1e9)
        return [
            replace(each, at_ns=each.at_ns + (by if each.at_ns >= begin else 0)) for each in found
        ]

    return change


def cut(length: int) -> Callable[[list[Packet]], list[Packet]]:
    """Of each packet so many bytes are kept, as `tcpdump -s` does."""
    return lambda found: [replace(each, data=each.data[:length]) for each in found]


def one_interface(found: list[Packet]) -> list[Packet]:
    """Nothing tells where a packet was captured, as with `tcpdump -i any` (LINKTYPE_LINUX_SLL)."""
    return [replace(each, interface=0) for each in found]


def twice(late_s: float, translated: bool = False) -> Callable[[list[Packet]], list[Packet]]:
    """A router captures each packet when it comes and when it leaves.

    With `translated`, the far side sees the router's address in place of those of the hosts.
    """

    def change(found: list[Packet]) -> list[Packet]:
        made = []
        for each in one_interface(found):
            behind = replace(each, at_ns=each.at_ns + round(late_s * 1e9))
            if translated and each.data[26:28] in LOCAL:
                behind = replace(behind, data=with_address(behind.data, 26))
            elif translated:
                each = replace(each, data=with_address(each.data, 30))
            made += [each, behind]
        return sorted(made, key=lambda each: each.at_ns)

    return change


def with_address(data: bytes, place: int) -> bytes:
    """Return an Ethernet frame with the router's IPv4 address at a place."""
    return data[:place] + bytes([203, 0, 113, 7]) + data[place + 4 :]
