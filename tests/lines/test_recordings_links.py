"""Captures of links of all kinds: what is read of them is the same; others are named."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from attack.recordings import seeds
from redtail import lines
from redtail.errors import SpecError
from redtail.lines.recordings import packets
from redtail.lines.recordings.found import Found

SNAP = bytes([0xAA, 0xAA, 3, 0, 0, 0, 8, 0])

ETHERNET = bytes(12)

WIFI = bytes([0x88, 0x01]) + bytes(24)
"""A data frame with QoS to an access point."""


def tunnel(protocol: int, header: bytes) -> Callable[[bytes], bytes]:
    """Return what puts a packet into an IPv4 packet of a protocol."""

    def made(packet: bytes) -> bytes:
        length = 20 + len(header) + struct.unpack_from(">H", packet, 2)[0]
        outer = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0, 64, protocol, 0)
        return outer + bytes([10, 9, 0, 1, 10, 9, 0, 2]) + header + packet

    return made


LINKS: dict[str, tuple[int, bytes]] = {
    "ethernet": (1, ETHERNET + b"\x08\x00"),
    "a tag in a tag": (1, ETHERNET + b"\x88\xa8\x00\x05\x81\x00\x00\x07\x08\x00"),
    "PPPoE": (1, ETHERNET + b"\x88\x64\x11\x00\x00\x01\x00\x00\x00\x21"),
    "MPLS": (1, ETHERNET + b"\x88\x47\x00\x01\x00\x40\x00\x02\x01\x40"),
    "LLC": (1, ETHERNET + b"\x00\x40" + SNAP),
    "PPP": (9, b"\xff\x03\x00\x21"),
    "802.11": (105, WIFI + SNAP),
    "radiotap": (127, b"\x00\x00\x0a\x00\x00\x00\x00\x00\x01\x02" + WIFI + SNAP),
    "cooked": (113, bytes(14) + b"\x08\x00"),
    "cooked 2": (276, b"\x08\x00" + bytes(5) + b"\x02" + bytes(12)),
    "loopback": (0, b"\x02\x00\x00\x00"),
}


@cache
def raw() -> list[tuple[bytes, bytes]]:
    """Packets of one of redtail's captures: the head of each record, and the IP packet."""
    data = seeds()["linux<6.pcap"]
    found, at = [], 24
    while at < len(data):
        seconds, micros, kept, size = struct.unpack_from("<4I", data, at)
        found.append((struct.pack("<2I", seconds, micros), data[at + 16 : at + 16 + kept]))
        assert size >= kept
        at += 16 + kept
    return found


def capture(link: int, wrap: Callable[[bytes], bytes]) -> bytes:
    """A capture of these packets from a link."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)]
    for stamp, packet in raw():
        framed = wrap(packet)
        size = len(framed) + struct.unpack_from(">H", packet, 2)[0] - len(packet)
        parts.append(stamp + struct.pack("<2I", len(framed), size) + framed)
    return b"".join(parts)


def told(folder: Path, link: int, wrap: Callable[[bytes], bytes]) -> Found:
    file = folder / "line.pcap"
    file.write_bytes(capture(link, wrap))
    return lines.estimate(file)


@pytest.mark.parametrize("name", LINKS)
def test_the_link_makes_no_difference(name: str, tmp_path: Path) -> None:
    link, header = LINKS[name]
    bare = told(tmp_path, 101, bytes)
    found = told(tmp_path, link, lambda packet: header + packet)
    assert bare.down.rate.known and found.down == bare.down and found.rtt == bare.rtt
    assert found.flows == bare.flows


@pytest.mark.parametrize(
    ("protocol", "header"),
    [(4, b""), (47, b"\x00\x00\x08\x00"), (47, b"\x20\x00\x08\x00" + bytes(4))],
)
def test_a_tunnel_has_the_connections_inside_and_its_own_size(
    protocol: int, header: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "line.pcap"
    file.write_bytes(capture(101, bytes))
    bare = packets.read(file)
    file.write_bytes(capture(101, tunnel(protocol, header)))
    found = packets.read(file)
    # The others are larger than Ethernet has them, as if a network card would cut them.
    small = bare["size"] < 1400
    assert (found["size"] == bare["size"] + 20 + len(header))[small].all() and small.any()
    assert (found["payload"] == bare["payload"]).all()
    assert found.conversations[:] == bare.conversations[:]


def test_a_link_that_is_not_read_is_named_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError, match=r"of link type 195 \(IEEE 802.15.4\); capture on an"
    ) as one:
        told(tmp_path, 195, bytes)
    assert "editcap -C BYTES -L -T rawip FILE NEW" in str(one.value)
    with pytest.raises(SpecError, match="packets of link type 8888; "):
        told(tmp_path, 8888, bytes)


def test_what_wifi_encrypts_is_counted(tmp_path: Path) -> None:
    secret = bytes([0x88, 0x41]) + bytes(24)
    with pytest.raises(SpecError, match="packets are left out: encrypted by Wi-Fi"):
        told(tmp_path, 105, lambda packet: secret + packet)
