"""What is simulated of a line whose rate varies: cuts of its course, and queues that may help.

A queue of the router's helps only while the router is the bottleneck. Where the line's rate varies,
there are three ways to that, and each is a candidate or is told:

- a fixed shaper at a low rate, which loses what the line could carry beyond it,
- a shaper that follows the rate (`autorate`), which is always late,
- a queue management in the modem, where the packets wait. The router cannot set it, so it is not
  ranked; what it would do is told.

Without a shaper a queue of the router's is empty, and the line stays as it is.

The course is cut into parts that are as long as a run. Each replication of the loads runs over each
cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from redtail.lines.advice import autorate
from redtail.lines.advice.access import ACCESS, Access, carried, on_line, own_port
from redtail.lines.advice.candidates import Candidate, Setting, candidate
from redtail.lines.advice.loads import Load, flows_of
from redtail.lines.course import Course
from redtail.lines.line import DIRECTIONS, Direction, Follows, Line, Recorded, Shaped

IN_MODEM = "fq-codel"
"""The queue management that a modem is asked for. Source: RFC 8290, the one of Linux, which modems
run."""

LOW, HIGH = 0.1, 0.95
"""Share of the windows in which the line is slower than the fixed shaper's reference, and than the
highest rate of a shaper that follows.

Source: cake-autorate, README: a compromise "that is bufferbloat-free most, but not necessarily all,
of the time"; the highest rate, or slightly below; the numbers are our choice.
"""

LEAST = 0.05
"""The same of the lowest rate of a shaper that follows; and the smallest rate of any, as a share of
the mean. Source: as for `LOW`: the lowest rate without bufferbloat; the numbers are our choice."""


@dataclass(frozen=True)
class Amount:
    """How much of a course is simulated.

    Attributes:
        cuts: parts of it.
        replications: runs over each part.
        seconds: simulated time of a run that is measured, in s.
    """

    cuts: int
    replications: int
    seconds: float


@dataclass(frozen=True)
class Varied:
    """The courses of a line.

    Attributes:
        courses: by direction, where the rate varies.
        amount: how much of them is simulated.
        divisor: what their rates are divided by.
        length_s: how long a cut is, in s.
    """

    courses: Mapping[Direction, Course]
    amount: Amount
    divisor: float
    length_s: float

    @property
    def duration_s(self) -> float:
        """What was recorded, in s; the longer one of two."""
        return max(course.duration_s for course in self.courses.values())

    def begin_s(self, cut: int) -> float:
        """Return where a cut begins, in s."""
        # Whole milliseconds, as a trace has them.
        return math.floor(1e3 * cut * self.duration_s / self.amount.cuts) / 1e3

    def cut(self, direction: Direction, number: int) -> Course | None:
        """Return a cut of a direction's course; None if its rate does not vary."""
        course = self.courses.get(direction)
        if course is None:
            return None
        return course.cut(self.begin_s(number), self.length_s, self.divisor)

    @property
    def covered(self) -> float:
        """The share of the recording that the cuts cover."""
        return min(1.0, self.amount.cuts * self.length_s / self.duration_s)


def courses(recorded: Recorded) -> dict[Direction, Course]:
    """Return the courses of the directions whose rates vary."""
    both = {name: recorded.course(name) for name in DIRECTIONS}
    return {name: course for name, course in both.items() if course is not None}


def candidates(
    line: Line,
    varied: Varied,
    kinds: Sequence[str],
    flows: Mapping[Direction, int],
    *,
    follows: bool = True,
) -> tuple[Candidate, ...]:
    """Return the queues to choose from.

    Args:
        line: the line, with its rates divided.
        varied: its courses.
        kinds: the kinds of queue.
        flows: the largest number of flows that send at once for long, in each direction.
        follows: whether the router can have cake-autorate.
    """
    found, divisor = varied.courses, varied.divisor
    access = ACCESS[line.access]
    low = {
        name: on_line(access.overhead, _low(access, course, divisor))
        for name, course in found.items()
    }
    slow = replace(
        line,
        down_bps=low.get("down", line.down_bps),
        up_bps=low.get("up", line.up_bps),
    )
    port = "up" not in found and own_port(line)
    made = [_fixed(candidate(kind, slow, flows, port), line, found, divisor) for kind in kinds]
    if follows and "cake" in kinds:
        made.append(_following(candidate("cake", slow, flows, port), line, found, divisor))
    return tuple(made)


def filling(over: Sequence[Load]) -> dict[Direction, int]:
    """Return the same of flows that never run out of data; 0 where no load has any."""
    most = flows_of(over)
    return {name: most[name] if any(name in load.full for load in over) else 0 for name in most}


def in_modem(line: Line, over: Sequence[Load]) -> Candidate:
    """Return what a modem with a queue management of its own would have, for the upload."""
    made = candidate(IN_MODEM, line, flows_of(over), port=True)
    return replace(made, variant="modem", label=f"{made.label} in the modem")


def _floor(course: Course, divisor: float) -> float:
    return LEAST * course.mean_bps / divisor


def _low(access: Access, course: Course, divisor: float) -> float:
    """Return what the line carries in most of the time, in bit/s of IP packets."""
    # Behind the share of the access technology, it is still above the floor.
    floor = _floor(course, divisor) / access.share
    return max(floor, course.quantile(LOW) / divisor)


def bounds(line: Line, course: Course, divisor: float) -> Follows:
    """Return the bounds of a shaper that follows, which counts what the line adds to packets."""
    access = ACCESS[line.access]
    floor = _floor(course, divisor)
    base = access.share * _low(access, course, divisor)
    least = max(floor, course.quantile(LEAST) / divisor)
    most = course.quantile(HIGH) / divisor
    rates = [on_line(access.overhead, rate) for rate in (min(least, base), base, most)]
    whole = [max(1e3, math.floor(rate / 1e3) * 1e3) for rate in rates]
    return Follows(*whole)


def _mean(line: Line, course: Course, divisor: float) -> float:
    """Return the mean rate of a line, in bit/s, with what it adds to packets."""
    return on_line(ACCESS[line.access].overhead, course.mean_bps / divisor)


def _fixed(
    made: Candidate, line: Line, found: Mapping[Direction, Course], divisor: float
) -> Candidate:
    settings: dict[str, Any] = {}
    for name in DIRECTIONS:
        setting: Setting = getattr(made, name)
        if name in found:
            share = 100 * ACCESS[line.access].share
            why = (
                f"{share:.0f} % of what the line carries in {100 * (1 - LOW):.0f} % of the seconds "
                "that were recorded: below it the queue stands here, and what is above is lost. "
                f"{ACCESS[line.access].share_source}"
            )
            shaped = replace(setting.shaped, line_bps=_mean(line, found[name], divisor))
            setting = replace(setting, shaped=shaped, shaper_source=why)
        settings[name] = setting
    return replace(made, label=f"{made.label}, fixed", **settings)


def _following(
    made: Candidate, line: Line, found: Mapping[Direction, Course], divisor: float
) -> Candidate:
    settings: dict[str, Any] = {}
    for name in DIRECTIONS:
        setting: Setting = getattr(made, name)
        if name in found:
            limits = bounds(line, found[name], divisor)
            why = (
                f"It follows the line. Lowest: what the line carries in {100 * (1 - LEAST):.0f} % "
                f"of the seconds that were recorded; base: {100 * ACCESS[line.access].share:.0f} % "
                f"of what it carries in {100 * (1 - LOW):.0f} % of them; highest: what it exceeds "
                f"in {100 * (1 - HIGH):.0f} %. {autorate.VERSION}, README."
            )
            shaped = replace(
                setting.shaped,
                line_bps=_mean(line, found[name], divisor),
                shaper_bps=limits.base_bps,
                follows=limits,
            )
            setting = replace(setting, shaped=shaped, shaper_source=why)
        settings[name] = setting
    return replace(made, variant="follows", label=f"{made.label} that follows", **settings)


def followed(
    chosen: Candidate,
    varied: Varied,
    cut: int,
    line: Line,
    rates_bps: Mapping[Direction, float],
    buffers_b: Mapping[Direction, float],
    over: Sequence[Load],
) -> dict[Direction, list[tuple[float, float]]]:
    """Return the rates that shapers which follow have over a cut, in bit/s of IP packets.

    Args:
        chosen: the candidate.
        varied: the courses.
        cut: the number of the cut.
        line: the line, with its rates divided.
        rates_bps: what the line carries where its rate does not vary.
        buffers_b: the line's own buffers.
        over: the loads.
    """
    flows = filling(over)
    ways: dict[Direction, autorate.Way] = {}
    for name in DIRECTIONS:
        shaped = getattr(chosen, name).shaped
        course = varied.cut(name, cut)
        ways[name] = autorate.way(
            rates_bps[name] if course is None else course,
            _shaper(shaped),
            buffers_b[name],
            flows[name],
            varied.length_s,
        )
    return {
        name: autorate.fewer(rates, CHANGE)
        for name, rates in autorate.rates(ways, line.rtt_s).items()
    }


def _shaper(shaped: Shaped) -> Follows | float:
    """Return the rate of a shaper, or its bounds, in bit/s of full IP packets."""
    if shaped.follows is None:
        return carried(shaped.overhead, shaped.shaper_bps or shaped.line_bps)
    rates = (shaped.follows.least_bps, shaped.follows.base_bps, shaped.follows.most_bps)
    return Follows(*(carried(shaped.overhead, bps) for bps in rates))


CHANGE = 0.02
"""Changes of a shaper's rate that are left out, relative to it. Source: our choice: half of a step
up (`autorate.UP_MOST`)."""


def link(course: Course, trace: str) -> dict[str, Any]:
    """Return the keys of a link with this course; a trace is in a file."""
    if course.trace_ms:
        return {"rate_trace": trace}
    return changing([(at, bps) for at, bps in _starts(course.steps)])


def _starts(steps: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    found, at = [], 0.0
    for seconds, bps in steps:
        found.append((at, bps))
        at += seconds
    return found


def changing(found: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return the keys of a link with these rates, each from when on."""
    (_, first), *others = found
    changes = [
        {"at": f"{round(at, 6):g} s", "rate": f"{max(1, round(bps))} bit/s"} for at, bps in others
    ]
    return {"rate": f"{max(1, round(first))} bit/s", "rate_changes": changes}
