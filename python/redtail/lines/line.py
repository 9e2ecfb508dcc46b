"""A line as its owner knows it, and what is advised for one direction of it, as plain data.

These are what other parts work with: what is estimated from a recording is a `Line`, and the
commands for a router are made from two `Shaped`, one for each direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Direction: TypeAlias = Literal["down", "up"]
"""To the people at the line, or from them."""

Framing: TypeAlias = Literal["none", "ptm", "atm"]
"""How a line frames packets: not at all, in blocks of 64 of 65 bytes, or in cells of 53 bytes."""


@dataclass(frozen=True)
class Line:
    """A line to the Internet, and who uses it.

    Attributes:
        down_bps: rate towards the people, in bit/s.
        up_bps: rate from them, in bit/s.
        rtt_s: round trip to near servers without queueing, in s.
        access: the access technology, a name of `redtail.lines.ACCESS`.
        uses: what the line is used for, of `redtail.lines.USES`, each once.
        people: number of people who use it.
        port_bps: rate of the port that the router is connected to, in bit/s; None if not known.
        burst_bytes: what a provider who polices lets pass at once, towards the people and from
            them, in bytes; None for one who has buffers.
    """

    down_bps: float
    up_bps: float
    rtt_s: float
    access: str
    uses: tuple[str, ...]
    people: int
    port_bps: float | None = None
    burst_bytes: tuple[float, float] | None = None


@dataclass(frozen=True)
class Overhead:
    """What a line adds to an IP packet.

    Attributes:
        packet_bytes: bytes added to each packet.
        minimum_bytes: smallest packet on the line, the added bytes included; 0 for none (tc's mpu).
        framing: how the result is framed.
    """

    packet_bytes: int
    minimum_bytes: int
    framing: Framing


@dataclass(frozen=True)
class Shaped:
    """What is advised for one direction of a line.

    Attributes:
        direction: "down" or "up".
        queue: the queue's table with the keys of the experiment file, `kind` first. It has no keys
            of the shaper: for CAKE, `rate`, `overhead`, `mpu` and `framing` are left out.
        shaper_bps: rate of the shaper around the queue, in bit/s as `overhead` counts packets;
            None for no shaper, where the queue stands at the line itself.
        overhead: what the shaper has to count with each packet.
        line_bps: rate of the line in this direction, in bit/s.
    """

    direction: Direction
    queue: Mapping[str, Any]
    shaper_bps: float | None
    overhead: Overhead
    line_bps: float


@dataclass(frozen=True)
class Recorded:
    """What a recording tells about a line beside its rates; None for what is not known.

    Attributes:
        down_buffer_s: time that the provider's full buffer takes to empty at the line's rate, in s.
        up_buffer_s: the same of the modem's buffer.
        down_flows: number of flows that send all the time, towards the people.
        up_flows: the same from them.
    """

    down_buffer_s: float | None = None
    up_buffer_s: float | None = None
    down_flows: int | None = None
    up_flows: int | None = None
