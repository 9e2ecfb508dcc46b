"""The rate of a shaper that cannot be told what a line adds to each packet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from redtail.lines.line import Overhead, Shaped
from redtail.lines.routers.model import Change
from redtail.lines.routers.units import digits

CELL_BYTES, CELL_PAYLOAD = 53, 48
PTM_BYTES, PTM_PAYLOAD = 65, 64


def on_the_line(packet_bytes: int, overhead: Overhead) -> float:
    """Return the bytes that an IP packet takes on a line.

    >>> on_the_line(1500, Overhead(30, 0, "ptm"))
    1553.90625
    >>> on_the_line(1500, Overhead(10, 0, "atm"))
    1696
    >>> on_the_line(20, Overhead(18, 64, "none"))
    64
    """
    size = max(packet_bytes + overhead.packet_bytes, overhead.minimum_bytes)
    if overhead.framing == "atm":
        return math.ceil(size / CELL_PAYLOAD) * CELL_BYTES
    return size * PTM_BYTES / PTM_PAYLOAD if overhead.framing == "ptm" else size


def for_full_packets(
    shaped: Shaped, packet_bytes: int, counted_bytes: int, step_bps: int
) -> tuple[int, list[Change]]:
    """Return the rate at which full packets leave at the advised rate of the line.

    Args:
        shaped: what was advised; it has a shaper.
        packet_bytes: a full IP packet.
        counted_bytes: what the device counts of its link header.
        step_bps: the device has multiples of this rate.

    Returns:
        The rate in bit/s, rounded down, and what is told of it.
    """
    assert shaped.shaper_bps is not None
    share = (packet_bytes + counted_bytes) / on_the_line(packet_bytes, shaped.overhead)
    rate = math.floor(shaped.shaper_bps * share / step_bps) * step_bps
    if rate == shaped.shaper_bps:
        return rate, []
    reasons = []
    if share != 1:
        reasons.append(
            f"the device counts {packet_bytes + counted_bytes} B of a packet that takes "
            f"{digits(on_the_line(packet_bytes, shaped.overhead))} B on the line"
        )
    if step_bps > 1:
        reasons.append(f"multiples of {step_bps} bit/s")
    why = ", and ".join(reasons) or "whole bit/s"
    before, after = f"{digits(shaped.shaper_bps)} bit/s", f"{rate} bit/s"
    return rate, [Change(shaped.direction, "shaper", before, after, why)]


def small_packets(shaped: Shaped, counted_bytes: int) -> str:
    """Return what is not counted for small packets; an empty text if nothing is missing."""
    small = 64
    line = on_the_line(small, shaped.overhead)
    if line <= small + counted_bytes:
        return ""
    return (
        f"{shaped.direction}: the rate of the shaper is right for full packets. A packet of "
        f"{small} B takes {digits(line)} B on the line and counts as {small + counted_bytes} B: "
        "with many small packets, lower the rate further"
    )


def notices(directions: Sequence[Shaped], counted_bytes: int) -> Iterator[str]:
    """Yield what is not counted for small packets, for each direction of which it matters."""
    yield from (text for each in directions if (text := small_packets(each, counted_bytes)))
