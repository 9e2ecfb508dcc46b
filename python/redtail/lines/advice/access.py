"""Access technologies: what a line adds to a packet, and how far a shaper stays below its rate.

A shaper in a router counts packets as the router sees them. The line also carries headers, blocks
or cells around them. A shaper that does not count these sends more than the line carries as soon as
packets are small, and the queue is then in the modem. The overheads are those of the keywords of
tc-cake(8), unless a source says otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from redtail.lines.line import Direction, Line, Overhead, Recorded

FULL = 1500
"""A full packet without the line's overhead, in bytes. Source: Ethernet's MTU."""

SHARE = 0.95
"""Rate of a shaper as a share of the line's.

Source: OpenWrt, "SQM Details": 95 % of a measured rate.
"""

SHARE_OF_CHANGING = 0.85
"""The same on a line whose rate changes.

Source: OpenWrt, "SQM Details", 85 % of an advertised rate: there, too, what the line carries is not
known.
"""

PORT_RATES = (10e6, 100e6, 1e9, 2.5e9, 5e9, 10e9, 25e9, 40e9, 100e9)
"""Rates of Ethernet's ports, in bit/s. Source: IEEE 802.3."""

_MEASURED = 'OpenWrt, "SQM Details": 95 % of a measured rate.'


@dataclass(frozen=True)
class Access:
    """An access technology.

    Attributes:
        name: what the option takes.
        title: what it is, in a few words.
        overhead: what the line adds to an IP packet.
        source: where the overhead is from.
        share: the shaper's rate as a share of the line's.
        share_source: where that is from.
        cautions: what is uncertain about such lines, a sentence each.
        changes: how the rate changes by itself, so that one rate promises nothing; empty for a rate
            that stays.
        by_port: whether the line is handed over at an Ethernet port, which can be its bottleneck.
        mtu: largest IP packet, in bytes.
    """

    name: str
    title: str
    overhead: Overhead
    source: str
    share: float = SHARE
    share_source: str = _MEASURED
    cautions: tuple[str, ...] = ()
    changes: str = ""
    by_port: bool = False
    mtu: int = FULL

    @property
    def varies(self) -> bool:
        """Whether the rate changes by itself."""
        return bool(self.changes)


_CHANGING = 'OpenWrt, "SQM Details": 85 % of a rate that nobody has measured.'

PPPOE_MTU = 1492
"""Largest IP packet over PPPoE, in bytes. Source: RFC 2516, section 7."""

_TAG = (
    "A VLAN tag on the line adds 4 bytes to each packet (tc-cake(8), ether-vlan); your provider's "
    "settings name one or not."
)

ACCESS: dict[str, Access] = {
    each.name: each
    for each in (
        Access(
            "docsis",
            "cable (DOCSIS)",
            Overhead(18, 64, "none"),
            "tc-cake(8), docsis: the provider's equipment counts Ethernet frames with their CRC.",
            cautions=(
                "A modem of DOCSIS 3.1 has an AQM of its own for the upload (DOCSIS-PIE, RFC "
                "8034). The simulations have a plain buffer there, as older modems have.",
            ),
        ),
        Access(
            "pppoe-vdsl2",
            "VDSL2 with PPPoE (PTM)",
            Overhead(30, 0, "ptm"),
            "tc-cake(8), pppoe-ptm: PPP and PPPoE 8 B, Ethernet 18 B, PTM 4 B; 65 bytes for 64.",
            cautions=(_TAG,),
            mtu=PPPOE_MTU,
        ),
        Access(
            "vdsl2",
            "VDSL2 without PPPoE (PTM)",
            Overhead(22, 0, "ptm"),
            "tc-cake(8), bridged-ptm: Ethernet 18 B, PTM 4 B; 65 bytes for 64.",
            cautions=(_TAG,),
        ),
        Access(
            "adsl",
            "ADSL (ATM)",
            Overhead(40, 0, "atm"),
            "tc-cake(8), pppoe-llcsnap, the largest of its ADSL encapsulations; cells of 53 bytes "
            "for 48.",
            cautions=(
                "The modem's page names the encapsulation; others add 8 to 32 bytes instead of 40 "
                "(tc-cake(8), ADSL Overhead Keywords).",
            ),
            mtu=PPPOE_MTU,
        ),
        Access(
            "fibre",
            "fibre to the home",
            Overhead(38, 84, "none"),
            "tc-cake(8), ethernet. It is more than GPON needs, 18 B of Ethernet and 5 B of GEM "
            "header (ITU-T G.984.3), also with a VLAN tag and PPPoE.",
            by_port=True,
        ),
        Access(
            "pppoe-fibre",
            "fibre with PPPoE over an Ethernet port",
            Overhead(50, 84, "none"),
            "tc-cake(8), ethernet and ether-vlan: 38 B and 4 B; PPPoE and PPP 8 B (RFC 2516).",
            cautions=(
                "The queue counts IP packets. On a device below PPPoE (the port, and not ppp0 or "
                "pppoe-wan) all of them are one flow for a kernel that does not look into PPPoE: "
                "set it on the device of PPPoE.",
            ),
            by_port=True,
            mtu=PPPOE_MTU,
        ),
        Access(
            "ethernet",
            "an Ethernet hand-off",
            Overhead(38, 84, "none"),
            "tc-cake(8), ethernet: preamble, gap, header and CRC.",
            by_port=True,
        ),
        Access(
            "lte",
            "LTE or 5G",
            Overhead(0, 0, "none"),
            "tc-cake(8), raw: a measured rate has the radio's headers taken off already.",
            share=SHARE_OF_CHANGING,
            share_source=_CHANGING,
            changes="The rate of a radio link changes with the cell's load and the reception, "
            "often below any fixed shaper. A shaper that follows the rate (cake-autorate, or "
            "tc-cake(8), autorate-ingress) is safer than a fixed one.",
        ),
        Access(
            "satellite",
            "satellite",
            Overhead(0, 0, "none"),
            "tc-cake(8), raw: a measured rate has the link's headers taken off already.",
            share=SHARE_OF_CHANGING,
            share_source=_CHANGING,
            changes="The rate of a satellite link changes with the weather, with the load of the "
            "beam and, of satellites in low orbits, with each of them. A shaper that follows the "
            "rate is safer than a fixed one.",
            cautions=(
                "Many operators of geostationary satellites end TCP's connections in the modem "
                "and go on with others (RFC 3135, section 4.1). Here senders and receivers are at "
                "the ends, and TCP fills the line more slowly than there.",
            ),
        ),
        Access(
            "unknown",
            "a technology that is not known",
            Overhead(48, 0, "atm"),
            "tc-cake(8), conservative: more than any widely used technology adds.",
            cautions=(
                "The access technology is not known (--access), so the shaper counts what the one "
                "with the most overhead adds, and simulations have such a line: full packets get "
                "81 % of its rate. A line that adds less, as fibre, loses 11 % of its rate by "
                "that; --access says which it is.",
            ),
            by_port=True,
        ),
    )
}


def wire_bytes(overhead: Overhead, packet: int) -> int:
    """Return what a packet takes on the line, in bytes.

    Args:
        overhead: what the line adds.
        packet: size of the IP packet, in bytes.

    >>> wire_bytes(ACCESS["adsl"].overhead, 40), wire_bytes(ACCESS["docsis"].overhead, 40)
    (106, 64)
    >>> wire_bytes(ACCESS["pppoe-vdsl2"].overhead, 1492)
    1546
    """
    size = max(packet + overhead.packet_bytes, overhead.minimum_bytes)
    match overhead.framing:
        case "atm":
            return 53 * math.ceil(size / 48)
        case "ptm":
            return size + math.ceil(size / 64)
        case _:
            return size


def carried(overhead: Overhead, rate: float) -> float:
    """Return what a line of a rate carries of full IP packets, in bit/s."""
    return rate * FULL / wire_bytes(overhead, FULL)


def on_line(overhead: Overhead, rate: float) -> float:
    """Return the rate of a line that carries a rate of full IP packets, in bit/s.

    >>> round(on_line(ACCESS["docsis"].overhead, 20e6))
    20240000
    """
    return rate * wire_bytes(overhead, FULL) / FULL


def with_overhead(line: Line, recorded: Recorded | None) -> Line:
    """Return a line whose rates count what it adds to packets, also those that were recorded."""
    if recorded is None:
        return line
    overhead = ACCESS[line.access].overhead
    most = math.inf if line.port_bps is None else line.port_bps
    rates = {"down": line.down_bps, "up": line.up_bps}
    rates |= {name: min(most, on_line(overhead, rates[name])) for name in recorded.of_packets}
    return replace(line, down_bps=rates["down"], up_bps=rates["up"])


def as_known(line: Line, recorded: Recorded | None) -> dict[Direction, float]:
    """Return the rates of a line with its overhead as they were recorded or given, in bit/s."""
    rates: dict[Direction, float] = {"down": line.down_bps, "up": line.up_bps}
    of_packets = () if recorded is None else recorded.of_packets
    overhead = ACCESS[line.access].overhead
    return rates | {name: carried(overhead, rates[name]) for name in of_packets}


def own_port(line: Line) -> bool:
    """Return whether the upload's bottleneck is the router's port, where its queue can stand.

    It is if the port is no faster than the line. Without the port's rate nothing says so: a line of
    100 Mbit/s is also sold on a port of 1 Gbit/s, by a provider who drops or delays the rest.
    """
    return line.port_bps is not None and line.port_bps <= line.up_bps


def could_be_own_port(line: Line) -> bool:
    """Return whether the upload has the rate of a port, and nobody said that it is not one."""
    known = line.port_bps is not None or line.burst_bytes is not None
    return not known and ACCESS[line.access].by_port and line.up_bps in PORT_RATES


def shaper(line: Line, direction: Direction, port: bool) -> tuple[float | None, str]:
    """Return the rate of the shaper in one direction, in bit/s, and why it is so; None for none.

    Args:
        line: the line.
        direction: the direction.
        port: whether the upload's bottleneck is a port of the router (`own_port`).
    """
    access = ACCESS[line.access]
    rate = line.down_bps if direction == "down" else line.up_bps
    if direction == "up" and port:
        return None, "The line is the router's own port: the queue stands there without a shaper."
    if line.burst_bytes is not None:
        below = "the provider drops nothing only while less comes than it lets pass"
    elif direction == "down":
        below = "the provider's buffer stays empty only while less arrives than the line carries"
    else:
        below = "the modem's buffer stays empty only while less is sent than the line carries"
    # tc and routers take whole kilobits per second.
    wanted = max(1e3, math.floor(rate * access.share / 1e3) * 1e3)
    return wanted, f"{100 * access.share:.0f} % of the line: {below}. {access.share_source}"
