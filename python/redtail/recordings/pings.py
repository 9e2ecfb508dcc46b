"""Ping logs: round trips of small packets, as ping of iputils prints them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.recordings import buffers
from redtail.recordings.found import Direction, Found
from redtail.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

ANSWER = re.compile(
    r"(?:\[(?P<at>\d+(?:\.\d+)?)\] )?\d+ bytes from .*?[ _]seq=(?P<seq>\d+) .*?"
    r"time[=<](?P<ms>\d+(?:\.\d+)?) ?ms(?P<twice>.*DUP!)?"
)

WRAP = 65536
"""ICMP counts echo requests with 16 bits."""

INTERVAL_S = 1.0
"""Time between two requests, unless -i says otherwise (iputils)."""

FEWEST = 10


@dataclass(frozen=True)
class Pings:
    """A series of pings.

    Attributes:
        sent_s: when each request that was answered was sent, from the first.
        trip_s: its round trip.
        lost_s: about when those were sent that were not answered.
        timed: whether the times are known, not counted.
    """

    sent_s: Array
    trip_s: Array
    lost_s: Array
    timed: bool

    @property
    def duration_s(self) -> float:
        """Time from the first request to the last."""
        return float(max([*self.sent_s[-1:], *self.lost_s[-1:]], default=0.0))


def looks_like(text: str) -> bool:
    """Return whether a text has the answers of a ping."""
    return any(ANSWER.search(line) for line in text.splitlines()[:50])


def read(text: str) -> Pings:
    """Return the pings of a log.

    Raises:
        ValueError: it has too few of them; the text says so.
    """
    stamps, numbers, trips = [], [], []
    before = None
    for line in text.splitlines():
        match = ANSWER.search(line)
        if match is None or match["twice"]:
            continue
        number = int(match["seq"])
        if before is not None:
            number += WRAP * round((before - number) / WRAP)
        before = number
        numbers.append(number)
        stamps.append(float(match["at"] or "nan"))
        trips.append(float(match["ms"]) / 1e3)
    if len(trips) < FEWEST:
        raise ValueError(f"it has {len(trips)} answers of a ping, and {FEWEST} are needed")
    order = np.argsort(numbers, kind="stable")
    seq, trip = np.array(numbers)[order], np.array(trips)[order]
    at = np.array(stamps)[order] - trip
    timed = bool(np.isfinite(at).all())
    if not timed:
        at = seq * INTERVAL_S
    sent = at - at[0]
    lost = np.setdiff1d(np.arange(seq[0], seq[-1] + 1), seq)
    return Pings(sent, trip, np.interp(lost, seq, sent), timed)


def waits(pings: Pings) -> tuple[Estimated, Estimated]:
    """Return the base round trip, and what a packet waits when the buffer is full."""
    base = float(pings.trip_s.min())
    two = np.sort(pings.trip_s)[:2]
    low = max(base - 19 * float(two[1] - two[0]), 0.5 * base)
    count = len(pings.trip_s)
    rtt = Estimated(
        base,
        "s",
        f"the least of {count} pings; the interval is that of Robson and Whitlock (Biometrika 51, "
        "1964) for an endpoint. If the line was never idle, it is an upper bound",
        low,
        base,
    )
    wait = pings.trip_s - base
    gap = float(np.median(np.diff(pings.sent_s))) if count > 1 else INTERVAL_S
    backlogs = buffers.Backlogs(pings.sent_s, wait, wait)
    _, full = buffers.estimate(backlogs, pings.lost_s, 1.5 * gap, gap)
    return rtt, full


def estimate(pings: Pings, file: Path, direction: str | None = None) -> Found:
    """Return what a ping log tells of a line.

    Args:
        pings: the pings.
        file: the log.
        direction: "down" or "up": where the packets waited; by default down.
    """
    rtt, full = waits(pings)
    name = direction or "down"
    total = len(pings.trip_s) + len(pings.lost_s)
    way = Direction(
        rate=Estimated(None, "bit/s", f"a ping log says nothing about the rate; --{name} gives it"),
        buffer=Estimated(None, "B", f"it takes the rate, which --{name} gives"),
        wait=full,
        loss=Estimated(len(pings.lost_s) / total, "", f"{len(pings.lost_s)} of {total} pings"),
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
