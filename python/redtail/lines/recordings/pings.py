"""Series of pings: round trips of small packets, whatever program printed them (`echoes`)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import buffers, fping, hrping, unix, windows
from redtail.lines.recordings.echoes import Echo, Form
from redtail.lines.recordings.found import Direction, Found
from redtail.lines.recordings.timeline import Timeline
from redtail.lines.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

FORMS: tuple[Form, ...] = (hrping, fping, windows, unix)
"""The programs whose logs are read; the later ones are less strict about their lines."""

INTERVAL_S = 1.0
"""Time between two requests, unless an option says otherwise: `ping -i` of iputils, `fping -p`.
Windows waits so long, too, after an answer."""

FEWEST = 10

LOOKED_AT = 50
"""Lines of a file in which an answer has to be for the file to be a log."""

LONGEST_TRIP_S = 3600.0
"""Longest round trip that is accepted: by then an echo's number has come again."""

LONGEST_NAME = 60
"""Letters of a host's name that are shown."""

LATEST_S = 1e10
"""Latest time stamp that is accepted, in seconds from 1970: the year 2286."""

_MOST_COUNTED = 2**40
"""The largest number of a request of programs that do not count from 0 again."""

MOST_HOSTS = 1000
"""Hosts that a log may be about."""

MOST_LISTED = 10
"""Lost requests are listed one by one up to so many for each answer; of more of them, the first and
the last of each gap."""


@dataclass(frozen=True)
class Pings:
    """A series of pings.

    Attributes:
        sent_s: when each request that was answered was sent, from the first.
        trip_s: its round trip.
        lost_s: about when those were sent that were not answered; of long gaps only the ends.
        timed: whether the times are known, not counted.
        lost: how many were not answered.
        finest_s: how finely the least round trip is told.
        below: whether it was less than what is told.
        host: the host that was asked, where the log has several.
        hosts: how many there are.
        program: what has printed the log.
    """

    sent_s: Array
    trip_s: Array
    lost_s: Array
    timed: bool
    lost: int
    finest_s: float = 0.0
    below: bool = False
    host: str = ""
    hosts: int = 1
    program: str = "ping"

    @property
    def duration_s(self) -> float:
        """Time from the first request to the last."""
        return float(np.ptp(self.sent_s)) if len(self.sent_s) else 0.0

    @property
    def wait_s(self) -> Array:
        """What each waited: its round trip without the least one."""
        found: Array = self.trip_s - self.trip_s.min()
        return found


def form(head: Iterable[str]) -> Form | None:
    """Return the program that has printed lines; None if it is none that is known."""
    head = list(head)
    return next((each for each in FORMS if each.looks_like(head)), None)


@dataclass
class _Columns:
    """Echoes of one host: of those with an answer the columns, and the numbers of all."""

    stamps: array[float] = field(default_factory=lambda: array("d"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    trips: array[float] = field(default_factory=lambda: array("d"))
    first: int | None = None
    last: int = 0
    before: int | None = None
    answered: int | None = None
    least: tuple[float, float, bool] = (np.inf, 0.0, False)

    def add(self, echo: Echo, wrap: int | None) -> None:
        number = _checked(
            echo.place, "sequence number", echo.number, _MOST_COUNTED if wrap is None else wrap - 1
        )
        if wrap is not None and self.before is not None:
            number += wrap * round((self.before - number) / wrap)
        if echo.answered and number == self.before == self.answered:
            return  # another host's answer to the same request
        self.before = number
        self.first = number if self.first is None else min(self.first, number)
        self.last = max(self.last, number)
        if not echo.answered:
            return
        self.answered = number
        trip = _checked(echo.place, "round trip", float(echo.ms), 1e3 * LONGEST_TRIP_S, " ms") / 1e3
        stamp = _checked(echo.place, "time", float(echo.at), LATEST_S, " s") if echo.at else np.nan
        self.numbers.append(number)
        self.stamps.append(stamp)
        self.trips.append(trip)
        if trip < self.least[0]:
            self.least = (trip, _finest_s(echo.ms), echo.below)


def read(lines: Iterable[tuple[int, str]], program: Form = unix) -> Pings:
    """Return the pings of a log; those of the host with most answers, if it has several.

    Args:
        lines: its lines with their numbers.
        program: what has printed them.

    Raises:
        ValueError: it has too few of them, or numbers that no ping prints; the text says so.
    """
    hosts: dict[str, _Columns] = {}
    for echo in program.echoes(lines):
        if echo.host not in hosts and len(hosts) == MOST_HOSTS:
            raise ValueError(
                f"line {echo.place}: there are more than {MOST_HOSTS} hosts; accepted: up to "
                f"{MOST_HOSTS}"
            )
        hosts.setdefault(echo.host, _Columns()).add(echo, program.NUMBERS)
    found = max(hosts.values(), key=lambda each: len(each.trips), default=_Columns())
    if len(found.trips) < FEWEST:
        raise ValueError(f"it has {len(found.trips)} answers of a ping, and {FEWEST} are needed")
    host = next((name for name, each in hosts.items() if each is found), "")
    order = np.argsort(found.numbers, kind="stable")
    seq, trip = np.asarray(found.numbers)[order], np.asarray(found.trips)[order]
    at = np.asarray(found.stamps)[order] - trip
    timed = bool(np.isfinite(at).all())
    if not timed:
        at = seq * INTERVAL_S
    assert found.first is not None
    made = series(seq, at, trip, timed, (found.first, found.last))
    _, finest, below = found.least
    return replace(
        made, finest_s=finest, below=below, host=host, hosts=len(hosts), program=program.NAME
    )


def _finest_s(ms: str) -> float:
    """Return what the last digit of a round trip in ms stands for, in s.

    >>> _finest_s("12"), _finest_s("12.3")
    (0.001, 0.0001)
    """
    return float(f"1e-{3 + len(ms.partition('.')[2])}")


def _checked(place: int, what: str, value: float, most: float, unit: str = "") -> Any:
    if value > most:
        raise ValueError(
            f"line {place}: the {what} is {value:.10g}{unit}; accepted: 0 to {most:.10g}{unit}"
        )
    return value


def series(
    seq: Array, at_s: Array, trip_s: Array, timed: bool, ends: tuple[int, int] | None = None
) -> Pings:
    """Return a series of pings.

    Args:
        seq: numbers of the requests that were answered, in order.
        at_s: when each was sent.
        trip_s: the round trips.
        timed: whether the times are known, not counted.
        ends: numbers of the first request and of the last one; by default of those answered.
    """
    sent = at_s - at_s.min()
    known, rows = np.unique(seq, return_index=True)
    first, last = ends or (known[0], known[-1])
    edges = np.concatenate([[first - 1], known, [last + 1]])
    gaps = np.diff(edges) - 1
    lost = int(gaps.sum())
    if lost <= MOST_LISTED * len(seq):
        numbers = np.setdiff1d(np.arange(first, last + 1), known, assume_unique=True)
    else:
        numbers = np.union1d(edges[:-1][gaps > 0] + 1, edges[1:][gaps > 0] - 1)
    return Pings(sent, trip_s, np.interp(numbers, known, sent[rows]), timed, lost)


def base(trip_s: Array, finest_s: float = 0.0, below: bool = False) -> Estimated:
    """Return the base round trip that pings show.

    Args:
        trip_s: round trips, two or more.
        finest_s: how finely the least is told; a program may round either way.
        below: whether it was less than what is told.
    """
    least, second = np.sort(trip_s)[:2].tolist()
    count = len(trip_s)
    if below or (least <= 0 < finest_s):
        most = max(least, finest_s)
        told = f"the least of {count} pings took less than {quantity(most, 's')}"
        return Estimated(most, "s", told, bound="at most")
    if least <= 0:
        return Estimated(None, "s", f"the least of {count} pings took 0 ms")
    low = max(min(least - 19 * (second - least), least - finest_s), 0.5 * least)
    return Estimated(
        least,
        "s",
        f"the least of {count} pings; the interval is that of Robson and Whitlock (Biometrika 51, "
        "1964) for an endpoint. If the line was never idle, it is an upper bound",
        low,
        least + finest_s,
    )


def full_wait(pings: Pings, least_s: float | None = None) -> Estimated:
    """Return what a packet waits when the buffer is full.

    Args:
        pings: the pings.
        least_s: the round trip without waiting; by default the least of them.
    """
    order = np.argsort(pings.sent_s, kind="stable")
    least = pings.trip_s.min() if least_s is None else least_s
    sent, wait = pings.sent_s[order], pings.trip_s[order] - least
    gap = float(np.median(np.diff(sent))) if len(sent) > 1 else INTERVAL_S
    _, full = buffers.estimate(
        buffers.Backlogs(sent, wait, wait), pings.lost_s, 1.5 * gap, gap, unit="s"
    )
    return full


def direction_of(program: str, name: str, wait: Estimated, loss: Estimated) -> Direction:
    """Return a direction of which a program tells waits and losses, and no rate."""
    rate = Estimated(None, "bit/s", f"{program} says nothing about the rate; --{name} gives it")
    return Direction(
        rate=rate,
        buffer=buffers.of_wait(wait, rate, name),
        wait=wait,
        loss=loss,
    )


def both_ways(name: str) -> str:
    """Return what to know of waits that are taken to be of one direction."""
    other = "up" if name == "down" else "down"
    return (
        f"a ping waits in both directions: all of it is taken to be {name} (--direction {other}: "
        "it is the other one)"
    )


def over_time(pings: Pings, begin_s: float = 0.0) -> tuple[Array, Array]:
    """Return when pings were sent, and their round trips, NaN for those without an answer."""
    sent = np.concatenate([pings.sent_s, pings.lost_s]) + begin_s
    trips = np.concatenate([pings.trip_s, np.full(len(pings.lost_s), np.nan)])
    order = np.argsort(sent, kind="stable")
    return sent[order], trips[order]


def estimate(pings: Pings, file: Path, direction: str | None = None) -> Found:
    """Return what a ping log tells of a line.

    Args:
        pings: the pings.
        file: the log.
        direction: "down" or "up": where the packets waited; by default down.
    """
    rtt, full = base(pings.trip_s, pings.finest_s, pings.below), full_wait(pings)
    name = direction or "down"
    total = len(pings.trip_s) + pings.lost
    loss = Estimated(pings.lost / total, "", f"{pings.lost} of {total} pings")
    way = direction_of("a ping log", name, full, loss)
    cautions = [both_ways(name)]
    if pings.hosts > 1:
        cautions.append(
            f"the log has pings of {pings.hosts} hosts; those of {pings.host[:LONGEST_NAME]} are "
            "used, which answered most"
        )
    if not pings.timed:
        cautions.append(
            "the log has no times (ping -D and fping -D print them): one ping a second is assumed"
        )
    about = f"{pings.program} log of {total} pings in {quantity(pings.duration_s, 's', 3)}"
    found = Found(
        file, "ping", about, pings.duration_s, rtt=rtt, cautions=tuple(cautions),
        timeline=Timeline(*over_time(pings), "ICMP", server=pings.host, finest_s=pings.finest_s),
    )  # fmt: skip
    return replace(found, down=way) if name == "down" else replace(found, up=way)
