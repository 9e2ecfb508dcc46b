"""Ping logs: round trips of small packets, as ping of iputils prints them."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import buffers
from redtail.lines.recordings.found import Direction, Found
from redtail.lines.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

ANSWER = re.compile(
    r"(?:\[(?P<at>\d+(?:\.\d+)?)\] )?\d+ bytes from .*?[ _]seq=(?P<seq>\d+) .*?"
    r"time[=<](?P<ms>\d+(?:\.\d+)?) ?ms(?P<twice>.*DUP!)?",
    re.ASCII,
)

WRAP = 65536
"""ICMP counts echo requests with 16 bits."""

INTERVAL_S = 1.0
"""Time between two requests, unless -i says otherwise (iputils)."""

FEWEST = 10

LOOKED_AT = 50
"""Lines of a file in which an answer has to be for the file to be a log."""

LONGEST_TRIP_S = 3600.0
"""Longest round trip that is accepted: by then an echo's number has come again."""

LATEST_S = 1e10
"""Latest time stamp that is accepted, in seconds from 1970: the year 2286."""

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
    """

    sent_s: Array
    trip_s: Array
    lost_s: Array
    timed: bool
    lost: int

    @property
    def duration_s(self) -> float:
        """Time from the first request to the last."""
        return float(np.ptp(self.sent_s)) if len(self.sent_s) else 0.0

    @property
    def wait_s(self) -> Array:
        """What each waited: its round trip without the least one."""
        found: Array = self.trip_s - self.trip_s.min()
        return found


def looks_like(lines: Iterable[str]) -> bool:
    """Return whether lines have the answers of a ping."""
    return any(ANSWER.search(line) for line in lines)


def read(lines: Iterable[tuple[int, str]]) -> Pings:
    """Return the pings of a log.

    Args:
        lines: its lines with their numbers.

    Raises:
        ValueError: it has too few of them, or numbers that no ping prints; the text says so.
    """
    stamps, numbers, trips = array("d"), array("q"), array("d")
    before = None
    for place, line in lines:
        match = ANSWER.search(line)
        if match is None or match["twice"]:
            continue
        number = _checked(place, "sequence number", int(match["seq"][:20]), WRAP - 1, "")
        if before is not None:
            number += WRAP * round((before - number) / WRAP)
        before = number
        numbers.append(number)
        stamps.append(
            _checked(place, "time", float(match["at"]), LATEST_S, " s") if match["at"] else np.nan
        )
        trips.append(
            _checked(place, "round trip", float(match["ms"]), 1e3 * LONGEST_TRIP_S, " ms") / 1e3
        )
    if len(trips) < FEWEST:
        raise ValueError(f"it has {len(trips)} answers of a ping, and {FEWEST} are needed")
    order = np.argsort(numbers, kind="stable")
    seq, trip = np.asarray(numbers)[order], np.asarray(trips)[order]
    at = np.asarray(stamps)[order] - trip
    timed = bool(np.isfinite(at).all())
    if not timed:
        at = seq * INTERVAL_S
    return series(seq, at, trip, timed)


def _checked(place: int, what: str, value: float, most: float, unit: str) -> Any:
    if value > most:
        raise ValueError(
            f"line {place}: the {what} is {value:.10g}{unit}; accepted: 0 to {most:.10g}{unit}"
        )
    return value


def series(seq: Array, at_s: Array, trip_s: Array, timed: bool) -> Pings:
    """Return a series of pings.

    Args:
        seq: numbers of the requests that were answered, in order.
        at_s: when each was sent.
        trip_s: the round trips.
        timed: whether the times are known, not counted.
    """
    sent = at_s - at_s.min()
    known, rows = np.unique(seq, return_index=True)
    gaps = np.diff(known) - 1
    lost = int(gaps.sum())
    if lost <= MOST_LISTED * len(seq):
        numbers = np.setdiff1d(np.arange(known[0], known[-1] + 1), known, assume_unique=True)
    else:
        numbers = np.union1d(known[:-1][gaps > 0] + 1, known[1:][gaps > 0] - 1)
    return Pings(sent, trip_s, np.interp(numbers, known, sent[rows]), timed, lost)


def base(trip_s: Array) -> Estimated:
    """Return the base round trip that pings show."""
    least, second = np.sort(trip_s)[:2].tolist()
    low = max(least - 19 * (second - least), 0.5 * least)
    count = len(trip_s)
    if least <= 0:
        return Estimated(None, "s", f"the least of {count} pings took 0 ms")
    return Estimated(
        least,
        "s",
        f"the least of {count} pings; the interval is that of Robson and Whitlock (Biometrika 51, "
        "1964) for an endpoint. If the line was never idle, it is an upper bound",
        low,
        least,
    )


def full_wait(pings: Pings) -> Estimated:
    """Return what a packet waits when the buffer is full."""
    order = np.argsort(pings.sent_s, kind="stable")
    sent, wait = pings.sent_s[order], pings.wait_s[order]
    gap = float(np.median(np.diff(sent))) if len(sent) > 1 else INTERVAL_S
    _, full = buffers.estimate(
        buffers.Backlogs(sent, wait, wait), pings.lost_s, 1.5 * gap, gap, unit="s"
    )
    return full


def estimate(pings: Pings, file: Path, direction: str | None = None) -> Found:
    """Return what a ping log tells of a line.

    Args:
        pings: the pings.
        file: the log.
        direction: "down" or "up": where the packets waited; by default down.
    """
    rtt, full = base(pings.trip_s), full_wait(pings)
    name = direction or "down"
    total = len(pings.trip_s) + pings.lost
    way = Direction(
        rate=Estimated(None, "bit/s", f"a ping log says nothing about the rate; --{name} gives it"),
        buffer=Estimated(None, "B", f"it takes the rate, which --{name} gives"),
        wait=full,
        loss=Estimated(pings.lost / total, "", f"{pings.lost} of {total} pings"),
    )
    cautions = [
        "a ping waits in both directions: all of it is taken to be "
        f"{name} (--direction {'up' if name == 'down' else 'down'}: it is the other one)"
    ]
    if not pings.timed:
        cautions.append("the log has no times (ping -D prints them): one ping a second is assumed")
    about = f"ping log of {total} pings in {quantity(pings.duration_s, 's', 3)}"
    found = Found(file, "ping", about, pings.duration_s, rtt=rtt, cautions=tuple(cautions))
    return replace(found, down=way) if name == "down" else replace(found, up=way)
