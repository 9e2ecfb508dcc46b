"""What a shaper does whose rate cake-autorate changes, over a course of the line's rate.

cake-autorate looks at two things: what passes the shaper, and how much longer pings take than they
did at best. Both follow from queues, so its law is run beside a model of them. The law is the
program's own, step by step. The model is a fluid:

    up    senders ── router, shaper and CAKE ── modem's buffer, line ── servers
    down  servers ── provider's buffer, line ── router, shaper and CAKE ── people

| part | model |
|---|---|
| line | the bytes of each interval that the course lets pass; what is not used is lost |
| senders | flows that never run out of data, and have a window W in flight in each direction |
| growth | one full packet in a round trip for each flow (RFC 5681, section 3.1) |
| CAKE | while more than its target waits, one flow after another reduces its window by 0.3 |
| buffer of the line | when it is full, all flows reduce their windows, once in a round trip |
| pings | pass CAKE at once, for they are flows of their own, and wait in the line's buffers |

Windows decrease to 0.7 (RFC 9438, section 4.6). There are no timeouts, no packets and no other
traffic. What follows from it is only the shaper's rate over time. Delays and throughput are then
those of a simulation of packets with this rate, whose queues the law does not hear of.

Source: cake-autorate, master of August 2026 (commit 94238be, behind version 3.5.0), the files
cake-autorate.sh and defaults.sh; with its usual pinger, fping. Left out: sleep when idle, stalls,
and the choice of reflectors.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redtail.lines.course import Course
from redtail.lines.line import Direction, Follows

VERSION = "cake-autorate, master of August 2026 (commit 94238be, behind 3.5.0)"

# defaults.sh; times in s.
PINGERS, PING_INTERVAL_S = 6, 0.3
RATES_INTERVAL_S = 0.2
DELAY_S, UP_MOST_S, DOWN_MOST_S = 0.030, 0.010, 0.060
"""owd_delta_delay_thr, avg_owd_delta_max_adjust_up_thr and avg_owd_delta_max_adjust_down_thr."""
WINDOW, DETECTED = 6, 3
BASELINE_UP, BASELINE_DOWN = 0.001, 0.9
DOWN_LEAST, DOWN_MOST = 0.99, 0.75
UP_LEAST, UP_MOST = 1.0, 1.04
DECAY_DOWN, DECAY_UP = 0.99, 1.01
HIGH_LOAD = 0.75
REFRACTORY_S, DECAY_REFRACTORY_S = 0.3, 1.0
FIRST_BASELINE_S = 0.1
"""cake-autorate.sh: dl_owd_baselines_us, ul_owd_baselines_us."""

FULL_B = 1514
"""A full packet with its Ethernet header, which the thresholds allow for (cake-autorate.sh,
get_max_wire_packet_size_bits)."""

STEP_S = 0.002
"""Interval of the model, in s. Source: our choice; halved, rates differ by less than 3 %."""

TARGET_S, INTERVAL_S = 0.005, 0.1
"""CAKE's target and interval. Source: tc-cake(8), internet."""

KEPT = 0.7
"""Share of a window that remains behind a signal. Source: RFC 9438, section 4.6."""

MSS_B = 1500


@dataclass
class Law:
    """The control law of one direction.

    Attributes:
        bounds: the lowest, the usual and the highest rate.
        rate: the shaper's rate, in bit/s.
    """

    bounds: Follows
    rate: float = 0.0
    _delayed: deque[bool] = field(default_factory=lambda: deque([False] * WINDOW, WINDOW))
    _deltas: deque[float] = field(default_factory=lambda: deque([0.0] * WINDOW, WINDOW))
    _high: bool = False
    _updated: bool = False
    _last_bloat_s: float = 0.0
    _last_decay_s: float = 0.0

    def __post_init__(self) -> None:
        self.rate = self.bounds.base_bps

    def passed(self, bps: float) -> None:
        """Hear what has passed the shaper since the last time, in bit/s."""
        self._high = bps > HIGH_LOAD * self.rate
        self._updated = True

    def pinged(self, at_s: float, delta_s: float) -> None:
        """Hear how much longer than at best a ping took in this direction."""
        compensation = 8 * FULL_B / self.rate
        threshold = DELAY_S + compensation
        self._delayed.append(delta_s > threshold)
        self._deltas.append(delta_s)
        average = sum(self._deltas) / WINDOW
        calm = at_s > self._last_bloat_s + REFRACTORY_S
        if sum(self._delayed) >= DETECTED:
            if calm:
                share = _share(average - threshold, DOWN_MOST_S - DELAY_S)
                self.rate *= DOWN_LEAST - share * (DOWN_LEAST - DOWN_MOST)
                self._last_bloat_s = self._last_decay_s = at_s
        elif self._high:
            if self._updated and calm:
                share = _share(threshold - average, DELAY_S - UP_MOST_S)
                self.rate *= UP_LEAST + share * (UP_MOST - UP_LEAST)
                self._updated = False
                self._last_decay_s = at_s
        elif at_s > self._last_decay_s + DECAY_REFRACTORY_S:
            base = self.bounds.base_bps
            if self.rate > base:
                self.rate = max(base, self.rate * DECAY_DOWN)
            else:
                self.rate = min(base, self.rate * DECAY_UP)
            self._last_decay_s = at_s
        self.rate = min(max(self.rate, self.bounds.least_bps), self.bounds.most_bps)


def _share(part: float, whole: float) -> float:
    return min(max(part / whole, 0.0), 1.0)


@dataclass(frozen=True)
class Way:
    """One direction of a line, as the model has it.

    Attributes:
        capacity_b: bytes that can pass the line in each interval.
        shaper: the bounds of a shaper that follows; a number of a fixed one, in bit/s.
        buffer_b: the line's own buffer.
        flows: number of flows that send all the time; 0 for none.
    """

    capacity_b: Sequence[float]
    shaper: Follows | float
    buffer_b: float
    flows: int


def way(
    course: Course | float, shaper: Follows | float, buffer_b: float, flows: int, length_s: float
) -> Way:
    """Return a direction of a line for so many seconds; a course begins where the run does."""
    if isinstance(course, Course):
        capacity = course.amounts(0.0, length_s, STEP_S).tolist()
    else:
        capacity = [course * STEP_S / 8] * int(length_s / STEP_S + 1e-6)
    return Way(capacity, shaper, buffer_b, flows)


def rates(
    ways: Mapping[Direction, Way], rtt_s: float
) -> dict[Direction, list[tuple[float, float]]]:
    """Return the rates of the shapers that follow, each from when on, in s and bit/s.

    Args:
        ways: the directions, equally long.
        rtt_s: round trip without queueing.
    """
    sides = {name: _Side(each, rtt_s, router_first=name == "up") for name, each in ways.items()}
    laws = {name: side.law for name, side in sides.items() if side.law is not None}
    found = {name: [(0.0, law.rate)] for name, law in laws.items()}
    pings = _Pings(sides["up"], sides["down"], rtt_s)
    for step in range(len(ways["down"].capacity_b)):
        at = step * STEP_S
        for side in sides.values():
            side.advance(step, at)
        for delta in pings.answers(at):
            for name, law in laws.items():
                law.pinged(at, delta)
                if law.rate != found[name][-1][1]:
                    found[name].append((at, law.rate))
    return found


class _Side:
    """The queues of a direction, and the flows that fill them."""

    def __init__(self, way: Way, rtt_s: float, *, router_first: bool) -> None:
        self.law = Law(way.shaper) if isinstance(way.shaper, Follows) else None
        self._fixed = way.shaper if not isinstance(way.shaper, Follows) else 0.0
        self._way = way
        self._rtt_s = rtt_s
        self._router_first = router_first
        self._router = self._line = 0.0
        self._flying: deque[float] = deque([0.0] * max(1, round(rtt_s / STEP_S)))
        self._in_flight = 0.0
        self._window = 2.0 * MSS_B * way.flows
        self._above_since: float | None = None
        self._next_signal = self._full_until = 0.0
        self._passed, self._counted_s = 0.0, 0.0
        self.entered = self.left = 0.0
        """Bytes that entered the line's buffer and that left it, in all."""

    @property
    def rate(self) -> float:
        """The shaper's rate, in bit/s."""
        return self._fixed if self.law is None else self.law.rate

    def advance(self, step: int, at_s: float) -> None:
        """Let an interval pass."""
        sent = max(0.0, self._window - self._in_flight)
        self._in_flight += sent
        capacity = self._way.capacity_b[step]
        if self._router_first:
            self._router += sent
            shaped = self._shape()
            self._enter(shaped, at_s)
            out = self._cross(capacity)
        else:
            self._enter(sent, at_s)
            self._router += self._cross(capacity)
            shaped = out = self._shape()
        self._flying.append(out)
        self._in_flight -= self._flying.popleft()
        self._passed += shaped
        self._grow(at_s)
        self._report(at_s)

    def _shape(self) -> float:
        passed = min(self._router, self.rate * STEP_S / 8)
        self._router -= passed
        return passed

    def _enter(self, amount: float, at_s: float) -> None:
        room = self._way.buffer_b - self._line
        kept = min(amount, max(0.0, room))
        self._line += kept
        self.entered += kept
        if kept < amount:
            self._in_flight -= amount - kept  # sent again
            if at_s >= self._full_until:
                self._window *= KEPT
                self._full_until = at_s + self._round_trip()

    def _cross(self, capacity: float) -> float:
        passed = min(self._line, capacity)
        self._line -= passed
        self.left += passed
        return passed

    def _round_trip(self) -> float:
        return self._rtt_s + 8 * (self._router + self._line) / self.rate

    def _grow(self, at_s: float) -> None:
        """Grow the windows, or reduce that of one flow if CAKE has made it."""
        flows = self._way.flows
        if not flows:
            return
        # More than what waits for its turn while the shaper sends a packet of each flow.
        target = max(TARGET_S, 1.5 * 8 * MSS_B / self.rate)
        if 8 * self._router / self.rate <= target:
            self._above_since = None
        elif self._above_since is None:
            self._above_since = at_s
            self._next_signal = at_s + INTERVAL_S
        elif at_s >= self._next_signal:
            self._window *= 1 - (1 - KEPT) / flows
            self._next_signal = at_s + INTERVAL_S / flows
        self._window += flows * MSS_B * STEP_S / self._round_trip()
        self._window = max(self._window, float(flows * MSS_B))

    def _report(self, at_s: float) -> None:
        """Tell the law what has passed."""
        every = max(RATES_INTERVAL_S, 10 * 2 * 8 * FULL_B / self.rate)
        if at_s + STEP_S - self._counted_s >= every:
            if self.law is not None:
                self.law.passed(8 * self._passed / (at_s + STEP_S - self._counted_s))
            self._passed, self._counted_s = 0.0, at_s + STEP_S


class _Pings:
    """Pings of several reflectors in turn, which wait in the line's own buffers."""

    def __init__(self, up: _Side, down: _Side, rtt_s: float) -> None:
        self._up, self._down = up, down
        self._rtt_s = rtt_s
        self._sent = 0
        self._going: deque[tuple[int, float, float]] = deque()  # the pinger, when, behind so much
        self._away: deque[tuple[int, float, float]] = deque()  # the pinger, when, due
        self._coming: deque[tuple[int, float, float]] = deque()
        self._baselines = [FIRST_BASELINE_S] * PINGERS

    def answers(self, at_s: float) -> list[float]:
        """Return how much longer than at best the pings took that come back now, one way."""
        while self._sent * PING_INTERVAL_S / PINGERS <= at_s:
            self._going.append((self._sent % PINGERS, at_s, self._up.entered))
            self._sent += 1
        while self._going and self._going[0][2] <= self._up.left + 0.5:
            pinger, sent, _ = self._going.popleft()
            self._away.append((pinger, sent, at_s + self._rtt_s))
        while self._away and self._away[0][2] <= at_s + STEP_S / 2:
            pinger, sent, _ = self._away.popleft()
            self._coming.append((pinger, sent, self._down.entered))
        found = []
        while self._coming and self._coming[0][2] <= self._down.left + 0.5:
            pinger, sent, _ = self._coming.popleft()
            found.append(self._delta(pinger, (at_s - sent) / 2))
        return found

    def _delta(self, pinger: int, one_way_s: float) -> float:
        """Return what a ping takes above the baseline; fping tells round trips, halved here."""
        baseline = self._baselines[pinger]
        weight = BASELINE_UP if one_way_s >= baseline else BASELINE_DOWN
        baseline += weight * (one_way_s - baseline)
        self._baselines[pinger] = baseline
        return one_way_s - baseline


def fewer(found: Sequence[tuple[float, float]], change: float) -> list[tuple[float, float]]:
    """Return rates over time without changes that are small: one stands until the next differs.

    >>> fewer([(0.0, 100.0), (0.2, 101.0), (0.4, 104.0)], 0.03)
    [(0.0, 100.0), (0.4, 104.0)]
    """
    kept = [found[0]]
    for at, rate in found[1:]:
        if math.isclose(rate, kept[-1][1], rel_tol=change):
            continue
        kept.append((at, rate))
    return kept
