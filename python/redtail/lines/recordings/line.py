"""The line to advise on, from what a recording tells."""

from __future__ import annotations

from collections.abc import Sequence

from redtail.errors import SpecError
from redtail.lines.course import Course
from redtail.lines.line import DIRECTIONS, Line, Recorded
from redtail.lines.recordings.found import Direction, Found
from redtail.selection import split

CALL_B = 400
"""Largest packet of a steady UDP flow that is taken to be a call: voice in 20 ms has up to 214
bytes (G.711 in RFC 3551, with headers)."""


LONGEST_WAIT_S, MOST_FLOWS = 10.0, 1000
"""The longest full buffer, as `--buffer` accepts it, and the flows of a direction that are
simulated."""


def recorded_line(
    found: Found, access: str, uses: str | Sequence[str] = (), people: int = 1
) -> tuple[Line, Recorded]:
    """Return the line to advise on.

    A rate that varies stays one: the line has its mean, and what was recorded its course. A bound
    stays a bound: the line has it as its value, and `Recorded.bounds` names it. Recorded rates are
    of IP packets, and `Recorded.of_packets` names them.

    Args:
        found: what a recording tells.
        access: the access technology, a name of `redtail.lines.ACCESS`.
        uses: what it is used for, a list or "calls,web"; by default what the recording shows.
        people: number of people who use it.

    Raises:
        SpecError: the recording does not tell a rate or the round trip, and the text says what
            gives it; or it has a buffer or flows that are no line's.
    """
    rates = {name: _needed(found, name) for name in ("down", "up")}
    rtt = found.rtt.value
    if rtt is None:
        raise SpecError(
            f"{found.file}: {found.rtt.basis}; to advise takes the base round trip: give it with "
            "--rtt TIME, such as --rtt 30ms"
        )
    told = tuple(dict.fromkeys(split(uses))) or uses_of(found)
    if not told:
        raise SpecError(
            f"{found.file} does not tell what the line is used for; give it with --use, such as "
            "--use calls,web"
        )
    found_bounds = {
        "down": found.down.rate.bound,
        "up": found.up.rate.bound,
        "rtt": found.rtt.bound,
        "down_buffer": found.down.wait.bound,
        "up_buffer": found.up.wait.bound,
    }
    recorded = Recorded(
        down_buffer_s=_whole(found, "down"),
        up_buffer_s=_whole(found, "up"),
        down_flows=_flows(found, "down"),
        up_flows=_flows(found, "up"),
        down_course=_course(found.down),
        up_course=_course(found.up),
        bounds=tuple((name, str(bound)) for name, bound in found_bounds.items() if bound),
        of_packets=tuple(name for name in DIRECTIONS if not found.direction(name).rate.given),
    )
    return Line(rates["down"], rates["up"], rtt, access, told, people), recorded


def uses_of(found: Found) -> tuple[str, ...]:
    """Return what a line is used for, as far as a recording shows it."""
    seen = set()
    for flows in found.flows:
        if flows.kind == "steady" and flows.packet_b <= CALL_B:
            seen.add("calls")
        elif flows.kind == "transfers":
            seen.add("web")
        elif flows.kind in ("bulk", "downloads"):
            seen.add("backup" if flows.direction == "up" else "downloads")
    return tuple(name for name in ("calls", "web", "backup", "downloads") if name in seen)


def _needed(found: Found, name: str) -> float:
    rate = found.direction(name).rate
    if rate.value is None or rate.bound == "at most":
        raise SpecError(
            f"{found.file}: {name} rate {rate.text}: {rate.basis}; to advise takes both rates: "
            f"give this one with --{name} RATE, such as --{name} 10mbit"
        )
    course = _course(found.direction(name))
    return rate.value if course is None else course.mean_bps


def _course(way: Direction) -> Course | None:
    """Return how a rate went; None if it is one, or if a bound is all that is known of it."""
    if way.rate.given or way.rate.bound:
        return None
    if way.trace_ms:
        course = Course(trace_ms=way.trace_ms)
    elif len(way.steps) > 1:
        # What lies between two stretches belongs to the first one.
        begins = [begin for begin, _, _ in way.steps]
        ends = [*begins[1:], way.steps[-1][1]]
        lengths = [end - begin for begin, end in zip(begins, ends, strict=True)]
        rates = [bps for _, _, bps in way.steps]
        course = Course(steps=tuple(zip(lengths, rates, strict=True)))
    else:
        return None
    return course if course.varies else None


def _whole(found: Found, direction: str) -> float | None:
    """Return what a full buffer makes wait, or the bound of it; at the mean rate if it varies."""
    way = found.direction(direction)
    seconds = way.wait.value
    course, held = _course(way), way.buffer.value
    if seconds is not None and course is not None and held is not None:
        seconds = 8 * held / course.mean_bps
    if seconds is None:
        return None
    if seconds > LONGEST_WAIT_S:
        raise SpecError(
            f"{found.file}: a full buffer waits {way.wait.text} {direction}; to advise takes one "
            f"of up to {LONGEST_WAIT_S:g} s"
        )
    return seconds


def _flows(found: Found, direction: str) -> int | None:
    kinds = ("bulk", "downloads")
    count = sum(
        flows.count for flows in found.flows if flows.direction == direction and flows.kind in kinds
    )
    if count > MOST_FLOWS:
        raise SpecError(
            f"{found.file}: {count} flows send all the time {direction}; to advise takes up to "
            f"{MOST_FLOWS}"
        )
    return count or None
