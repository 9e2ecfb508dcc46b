"""Traces of mahimahi: opportunities to deliver 1500 bytes, a millisecond on each line."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from redtail.lines.course import OPPORTUNITY_B
from redtail.lines.recordings import rates
from redtail.lines.recordings.found import Direction, Found
from redtail.lines.recordings.values import Estimated, quantity, within

WINDOW_S, MOST_WINDOWS = 0.1, 100_000
"""Windows whose rates the interval is of; longer ones where there would be more."""

_TIME = re.compile(r"[0-9]{1,18}")


def looks_like(line: str) -> bool:
    """Return whether the first line of a text is a whole number."""
    return re.fullmatch(r"[0-9]+", line.strip()) is not None


def read(lines: Iterable[tuple[int, str]]) -> array[int]:
    """Return the times of a trace in ms.

    Args:
        lines: its lines with their numbers.

    Raises:
        ValueError: a line is no time, or is before the line above it; the text says which.
    """
    found = array("q")
    last, number = 0, 1
    for number, line in lines:
        word = line.strip()
        if _TIME.fullmatch(word) is None or int(word) > rates.LONGEST_TRACE_MS:
            raise ValueError(
                f"line {number}: {word[:40]!r} is no time; accepted: a whole number of "
                f"milliseconds, up to {rates.LONGEST_TRACE_MS}"
            )
        ms = int(word)
        if ms < last:
            raise ValueError(
                f"line {number}: {word} is before the line above it; accepted: at least {last}"
            )
        last = ms
        found.append(ms)
    if last == 0:
        raise ValueError(f"line {number}: the trace takes no time; accepted: a last line above 0")
    return found


def estimate(times_ms: Sequence[int], file: Path, direction: str | None = None) -> Found:
    """Return what a trace tells of a line.

    Args:
        times_ms: the opportunities.
        file: the trace.
        direction: "down" or "up"; by default as the file's name ends, or down.
    """
    name = direction or ("up" if file.suffix == ".up" else "down")
    duration = times_ms[-1] / 1e3
    total = len(times_ms) * OPPORTUNITY_B
    mean = 8 * total / duration
    width = max(WINDOW_S, duration / MOST_WINDOWS)
    edges = 1e3 * width * np.arange(max(2, int(np.ceil(duration / width))))
    counts, _ = np.histogram(np.asarray(times_ms), edges)
    low, high = np.quantile(8 * OPPORTUNITY_B * counts / width, [0.1, 0.9])
    rate = within(
        mean,
        "bit/s",
        f"mean of {len(times_ms)} opportunities of 1500 bytes; the interval has 80 % of the "
        f"windows of {1e3 * width:.0f} ms",
        low,
        high,
    )
    missing = "a mahimahi trace has no queue and no losses"
    way = Direction(
        rate=rate,
        trace_ms=times_ms,
        buffer=Estimated(None, "B", missing),
        wait=Estimated(None, "s", missing),
        loss=Estimated(None, "", missing),
        busy=1.0,
        bytes=total,
    )
    rtt = Estimated(None, "s", "a mahimahi trace says nothing about the round trip; --rtt gives it")
    about = f"mahimahi trace of {len(times_ms)} opportunities in {quantity(duration, 's', 3)}"
    told = f"the trace is taken to be the direction {name}"
    found = Found(file, "mahimahi", about, duration, rtt=rtt, cautions=(told,))
    return replace(found, down=way) if name == "down" else replace(found, up=way)
