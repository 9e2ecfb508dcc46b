"""A line as its owner knows it, and what is advised for one direction of it, as plain data.

These are what other parts work with: what is estimated from a recording is a `Line`, and the
commands for a router are made from two `Shaped`, one for each direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from redtail.lines.course import Course

Direction: TypeAlias = Literal["down", "up"]
"""To the people at the line, or from them."""

DIRECTIONS: tuple[Direction, Direction] = ("down", "up")

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
class Follows:
    """A shaper whose rate a program changes, between two bounds.

    Attributes:
        least_bps: the lowest rate, in bit/s.
        base_bps: the rate without load.
        most_bps: the highest rate.
    """

    least_bps: float
    base_bps: float
    most_bps: float


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
        follows: the bounds of the shaper's rate, where it follows that of the line; `shaper_bps` is
            then the rate without load.
    """

    direction: Direction
    queue: Mapping[str, Any]
    shaper_bps: float | None
    overhead: Overhead
    line_bps: float
    follows: Follows | None = None


@dataclass(frozen=True)
class Recorded:
    """What a recording tells about a line beside its rates; None for what is not known.

    Attributes:
        down_buffer_s: time that the provider's full buffer takes to empty at the line's rate, in s.
        up_buffer_s: the same of the modem's buffer.
        down_flows: number of flows that send all the time, towards the people.
        up_flows: the same from them.
        down_course: how the rate towards the people went, if it varies.
        up_course: the same from them.
        bounds: of what else stands here or in the line, what is a bound only: "down", "up" (rates),
            "rtt", "down_buffer", "up_buffer", each with "at least" or "at most".
        of_packets: directions whose rate in the line is one of IP packets, without what the line
            adds to them; courses always are.
    """

    down_buffer_s: float | None = None
    up_buffer_s: float | None = None
    down_flows: int | None = None
    up_flows: int | None = None
    down_course: Course | None = None
    up_course: Course | None = None
    bounds: tuple[tuple[str, str], ...] = ()
    of_packets: tuple[Direction, ...] = ()

    @property
    def varies(self) -> bool:
        """Whether a rate varies."""
        return self.down_course is not None or self.up_course is not None

    def course(self, direction: Direction) -> Course | None:
        """Return how the rate of a direction went, if it varies."""
        return self.down_course if direction == "down" else self.up_course

    def bound(self, name: str) -> str:
        """Return "at least" or "at most" if a value is a bound only, else nothing."""
        return dict(self.bounds).get(name, "")

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        # Without the courses: a trace is long.
        found = asdict(replace(self, down_course=None, up_course=None))
        found["bounds"] = dict(self.bounds)
        for name in ("down_course", "up_course"):
            course: Course | None = getattr(self, name)
            found[name] = None if course is None else course.as_dict()
        return found
