"""What a recording tells of a line."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.lines.recordings.values import Estimated, quantity, require

if TYPE_CHECKING:
    from redtail.lines.recordings.timeline import Timeline

UNKNOWN_RATE = Estimated(None, "bit/s", "the recording has nothing of this direction")
UNKNOWN_BUFFER = Estimated(None, "B", "the recording has nothing of this direction")
UNKNOWN_WAIT = Estimated(None, "s", "the recording has nothing of this direction")
UNKNOWN_LOSS = Estimated(None, "", "the recording has nothing of this direction")


@dataclass(frozen=True)
class Direction:
    """One direction of a line.

    Attributes:
        rate: its rate, in bit/s of IP packets.
        steps: stretches of constant rate: begin (s), end (s), bit/s.
        trace_ms: opportunities to deliver 1500 bytes, in ms, if the rate varies all the time.
        buffer: bytes that wait when the buffer is full.
        wait: what a packet waits when it is.
        loss: share of the packets that were lost.
        busy: share of the time in which the link was seen busy; None if that is not known.
        bytes: bytes that were seen to pass.
    """

    rate: Estimated = UNKNOWN_RATE
    steps: tuple[tuple[float, float, float], ...] = ()
    trace_ms: Sequence[int] = ()
    buffer: Estimated = UNKNOWN_BUFFER
    wait: Estimated = UNKNOWN_WAIT
    loss: Estimated = UNKNOWN_LOSS
    busy: float | None = None
    bytes: int = 0

    def __post_init__(self) -> None:
        require(self.busy is None or 0 <= self.busy <= 1, f"busy for {self.busy} of the time")
        require(self.bytes >= 0, f"{self.bytes} bytes")
        for begin, end, bps in self.steps:
            held = -math.inf < begin <= end < math.inf and 0 <= bps < math.inf
            require(held, f"{bps} bit/s from {begin} to {end} s")

    @property
    def steps_text(self) -> str:
        """The stretches of constant rate in a line."""
        return ", ".join(
            f"{quantity(bps, 'bit/s')} from {begin:.4g} s" for begin, _, bps in self.steps
        )


@dataclass(frozen=True)
class Flows:
    """Flows of one kind in one direction.

    Attributes:
        kind: "bulk" (send all the time), "downloads" (long transfers with an end), "transfers"
            (short ones), "steady" (UDP of constant rate) or "udp" (other UDP).
        direction: "down" or "up".
        count: number of flows; of transfers, of those in the recording.
        bps: rate of all of them, in bit/s of IP packets.
        packet_b: bytes of a typical packet.
        rtts_s: base round trips that differ by more than a tenth, each with the flows it has.
        gap_s: of transfers: mean time from one to the next.
        size_b: of transfers: mean payload.
        sizes_b: of transfers: quartiles of the payload.
        starts_s: of downloads: when each begins, from the begin of the recording.
        payloads_b: of downloads: the payload of each.
        tcp: preset of TCP whose options the segments have; empty for UDP.
    """

    kind: str
    direction: str
    count: int
    bps: float
    packet_b: int
    rtts_s: tuple[tuple[float, int], ...] = ()
    gap_s: float | None = None
    size_b: float | None = None
    sizes_b: tuple[float, float, float] | None = None
    starts_s: tuple[float, ...] = ()
    payloads_b: tuple[int, ...] = ()
    tcp: str = ""

    def __post_init__(self) -> None:
        pairs = (value for pair in self.rtts_s for value in pair)
        numbers = (
            *(self.count, self.bps, self.packet_b, self.gap_s or 0, self.size_b or 0),
            *(*(self.sizes_b or ()), *self.starts_s, *self.payloads_b, *pairs),
        )
        require(all(0 <= each < math.inf for each in numbers), f"flows with the numbers {numbers}")

    @property
    def text(self) -> str:
        """The flows in a line."""
        rate = quantity(self.bps, "bit/s", 3)
        if self.kind == "bulk":
            plural = "s that send" if self.count != 1 else " that sends"
            return f"{self.count} TCP flow{plural} all the time, {rate}"
        if self.kind == "downloads":
            total = quantity(float(sum(self.payloads_b)), "B", 3)
            plural = "s" if self.count != 1 else ""
            return f"{self.count} long TCP transfer{plural}, {total} in all, {rate}"
        if self.kind == "transfers":
            assert self.gap_s is not None and self.size_b is not None
            plural = "s" if self.count != 1 else ""
            gap, size = quantity(self.gap_s, "s", 3), quantity(self.size_b, "B", 3)
            return (
                f"{self.count} short TCP transfer{plural}, one every {gap}, {size} on average, "
                f"{rate}"
            )
        what = "of constant rate" if self.kind == "steady" else "of changing rate"
        plural = "s" if self.count != 1 else ""
        return f"{self.count} UDP flow{plural} {what}, packets of {self.packet_b} B, {rate}"


@dataclass(frozen=True)
class Found:
    """What a recording tells of a line.

    Attributes:
        file: the recording.
        form: what it is: "capture", "measurement", "flent", "iperf3", "crusader", "irtt",
            "networkquality", "ping", "mtr" or "mahimahi"; of two recordings both.
        about: what is in it, in a line.
        duration_s: how long it is.
        down: the direction to the people.
        up: the direction from them.
        rtt: the base round trip: without waiting and transmission.
        flows: who sent.
        cautions: what to know before it is relied on, a sentence each.
        timeline: what it shows over time, to compare it with another one; None if it has no times.
    """

    file: Path
    form: str
    about: str
    duration_s: float
    down: Direction = field(default_factory=Direction)
    up: Direction = field(default_factory=Direction)
    rtt: Estimated = field(
        default_factory=lambda: Estimated(None, "s", "the recording has no round trips")
    )
    flows: tuple[Flows, ...] = ()
    cautions: tuple[str, ...] = ()
    timeline: Timeline | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        require(0 <= self.duration_s < math.inf, f"a recording of {self.duration_s} s")
        require(self.rtt.value is None or self.rtt.value > 0, "a round trip of 0 s")

    def direction(self, name: str) -> Direction:
        """Return "down" or "up"."""
        return self.down if name == "down" else self.up

    @property
    def main(self) -> str:
        """The direction that tells more: the one with more bytes."""
        known = self.down.rate.known, self.up.rate.known
        if known[0] != known[1]:
            return "down" if known[0] else "up"
        return "up" if self.up.bytes > self.down.bytes else "down"

    def rows(self) -> list[tuple[str, Estimated]]:
        """Return the quantities with their names, in the order in which they are shown."""
        rows = []
        for name in ("down", "up"):
            way = self.direction(name)
            rows += [
                (f"{name} rate", way.rate),
                (f"{name} buffer", way.buffer),
                (f"{name} full buffer waits", way.wait),
                (f"{name} loss", way.loss),
            ]
        return [("base round trip", self.rtt), *rows]

    def shown(self) -> list[tuple[str, Estimated]]:
        """Return the rows for people: one for a direction of which nothing is known."""
        rows = self.rows()
        for name in ("down", "up"):
            way = self.direction(name)
            if not any(one.known for one in (way.rate, way.buffer, way.wait, way.loss)):
                rows = [row for row in rows if not row[0].startswith(name) or row[1] is way.rate]
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        # Without the traces, of which only the length is told: they may be long.
        down, up = replace(self.down, trace_ms=()), replace(self.up, trace_ms=())
        found = {"format": 1, **asdict(replace(self, down=down, up=up, timeline=None))}
        del found["timeline"]
        found["file"] = str(self.file)
        for name in ("down", "up"):
            found[name]["trace_ms"] = len(self.direction(name).trace_ms)
        return found

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
