"""What was measured up to now: it can be asked at any time, so that Ctrl-C loses nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail import facts
from redtail.lines.recordings.measurement import MOST_BYTES, Measurement, Phase, Transfer
from redtail.lines.recordings.pings import LONGEST_TRIP_S
from redtail.lines.recordings.values import quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

LATE_S = 2.0
"""How long an answer is waited for at the end. A probe without one that was sent so shortly before
the end is left out: it may be on its way."""

SHOWN_S = 1.0
"""Time over which rates are shown while they are measured."""


@dataclass
class Connection:
    """A connection: times, and the payload that was received up to each."""

    direction: str
    at_s: list[float] = field(default_factory=list)
    total_b: list[int] = field(default_factory=list)

    def add(self, at_s: float, total_b: int) -> None:
        """Add a report; one that goes back in time or bytes is left out."""
        if self.at_s and (at_s < self.at_s[-1] or total_b < self.total_b[-1]):
            return
        if at_s >= 0 and 0 <= total_b <= MOST_BYTES:
            self.at_s.append(at_s)
            self.total_b.append(total_b)

    def rate_bps(self) -> float:
        """Return what was received in the last second, in bit/s of payload."""
        if not self.at_s:
            return 0.0
        first = next(n for n, at in enumerate(self.at_s) if at >= self.at_s[-1] - SHOWN_S)
        length = self.at_s[-1] - self.at_s[first]
        return 8 * (self.total_b[-1] - self.total_b[first]) / length if length > 0 else 0.0


@dataclass(frozen=True)
class MeasureState:
    """What is shown while a line is measured.

    Attributes:
        phase: what loads the line; empty between two phases.
        at_s: time since the begin.
        length_s: how long the whole measurement takes, about.
        rates_bps: payload that is received, by direction; without those that send nothing.
        rtt_s: the median round trip of the last second; None without an answer.
    """

    phase: str
    at_s: float
    length_s: float
    rates_bps: dict[str, float]
    rtt_s: float | None

    @property
    def heading(self) -> str:
        """What is measured, and how far that is."""
        return f"{self.phase or 'pause'}, {self.at_s:.0f} s of about {self.length_s:.0f} s"

    def texts(self) -> dict[str, str]:
        """Return the values for people: "down", "up" and "round trip", as far as there are any."""
        found = {
            name: f"{quantity(bps, 'bit/s', 3)} {name}"
            for name, bps in sorted(self.rates_bps.items())
        }
        if self.rtt_s is not None:
            found["round trip"] = f"round trip {quantity(self.rtt_s, 's', 3)}"
        return found


class Record:
    """What was measured.

    Args:
        server: the host, as it was named.
        probe: what the delays are of.
        length_s: how long it takes, about.

    Attributes:
        begin_ns: when it began (`time.monotonic_ns`).
        probe: what the delays are of.
        notes: what to know besides.
    """

    def __init__(self, server: str, probe: str, length_s: float) -> None:
        self._server, self._length_s = server, length_s
        self.probe = probe
        self._begun = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.begin_ns = time.monotonic_ns()
        self._phases: list[tuple[str, float, float | None]] = []
        self._connections: list[Connection] = []
        self._open: list[Connection] = []
        self._sent_s: list[float] = []
        self._rtt_s: list[float] = []
        self._one_way: list[tuple[float, float, float]] = []
        self.notes: list[str] = []

    def now_s(self) -> float:
        """Return the time since the begin."""
        return (time.monotonic_ns() - self.begin_ns) / 1e9

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Note a phase, which lasts as long as the context."""
        self._phases.append((name, self.now_s(), None))
        try:
            yield
        finally:
            _, begin, _ = self._phases[-1]
            self._phases[-1] = (name, begin, self.now_s())
            self._open.clear()

    def connection(self, direction: str) -> Connection:
        """Return a new connection, to which reports are added."""
        made = Connection(direction)
        self._connections.append(made)
        if self._phases and self._phases[-1][2] is None:
            self._open.append(made)
        return made

    def sent(self, at_s: float) -> int:
        """Note that a probe was sent; returns its number."""
        self._sent_s.append(at_s)
        self._rtt_s.append(np.nan)
        return len(self._sent_s) - 1

    def answered(
        self, number: int, rtt_s: float, one_way_s: tuple[float, float] | None = None
    ) -> None:
        """Note the answer to a probe; the first counts, and one that cannot be does not.

        Args:
            number: of the probe.
            rtt_s: its round trip.
            one_way_s: its delays up and down, with the distance of two clocks in them.
        """
        if not 0 <= number < len(self._rtt_s) or not np.isnan(self._rtt_s[number]):
            return
        if not 0 < rtt_s <= LONGEST_TRIP_S:
            return
        self._rtt_s[number] = rtt_s
        if one_way_s is not None:
            self._one_way.append((self._sent_s[number], *one_way_s))

    def series(self, begin_s: float) -> list[float]:
        """Return the round trips of probes that were sent from a time on and answered."""
        found = []
        for at, rtt in zip(reversed(self._sent_s), reversed(self._rtt_s), strict=True):
            if at < begin_s:
                break
            if not np.isnan(rtt):
                found.append(rtt)
        return found

    def state(self) -> MeasureState:
        """Return what is shown now."""
        now = self.now_s()
        name, _, end = self._phases[-1] if self._phases else ("", 0.0, 0.0)
        rates: dict[str, float] = {}
        for each in self._open:
            rates[each.direction] = rates.get(each.direction, 0.0) + each.rate_bps()
        some = self.series(now - SHOWN_S)
        rtt = float(np.median(some)) if some else None
        return MeasureState(name if end is None else "", now, self._length_s, rates, rtt)

    def measurement(self) -> Measurement:
        """Return what was measured."""
        now = self.now_s()
        order = np.argsort(self._sent_s, kind="stable")
        sent, rtt = np.array(self._sent_s, float)[order], np.array(self._rtt_s, float)[order]
        known = np.isfinite(rtt) | (sent < now - LATE_S)
        rows = np.array(sorted(self._one_way), float).reshape(-1, 3)
        return Measurement(
            facts.version(),
            self._begun,
            self._server,
            self.probe,
            tuple(
                Phase(name, begin, now if end is None else end) for name, begin, end in self._phases
            ),
            sent[known],
            rtt[known],
            (rows[:, 0], rows[:, 1], rows[:, 2]),
            tuple(_transfers(self._connections)),
            tuple(dict.fromkeys(self.notes)),
        )


def _transfers(connections: Sequence[Connection]) -> Iterator[Transfer]:
    for each in connections:
        if len(each.at_s) > 1:
            yield Transfer(
                each.direction, np.array(each.at_s, float), np.array(each.total_b, np.int64)
            )
