"""Traces of mahimahi: opportunities to deliver 1500 bytes, a millisecond on each line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from redtail.recordings import rates
from redtail.recordings.found import Direction, Found
from redtail.recordings.values import Estimated, quantity

FEWEST = 2 * rates.PACKETS_A_WINDOW


def looks_like(text: str) -> bool:
    """Return whether the first lines of a text are whole numbers."""
    lines = text.split("\n", 20)[:20]
    return bool(lines) and bool(lines[0].strip()) and lines[0].strip().isdigit()


def read(text: str) -> list[int]:
    """Return the times of a trace in ms.

    Raises:
        ValueError: a line is no time, or is before the line above it; the text says which.
    """
    found: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.strip()
        if not word.isdigit():
            raise ValueError(
                f"line {number}: {word!r} is no time; accepted: a whole number of milliseconds"
            )
        if found and int(word) < found[-1]:
            raise ValueError(
                f"line {number}: {word} is before the line above it; accepted: at least {found[-1]}"
            )
        found.append(int(word))
    if not found or found[-1] == 0:
        raise ValueError(
            f"line {len(found) or 1}: the trace takes no time; accepted: a last line above 0"
        )
    return found


def estimate(times_ms: list[int], file: Path, direction: str | None = None) -> Found:
    """Return what a trace tells of a line.

    Args:
        times_ms: the opportunities.
        file: the trace.
        direction: "down" or "up"; by default as the file's name ends, or down.
    """
    name = direction or ("up" if file.suffix == ".up" else "down")
    duration = times_ms[-1] / 1e3
    at = np.array(times_ms) / 1e3
    size = np.full(len(at), float(rates.OPPORTUNITY_B))
    mean = 8 * float(size.sum()) / duration
    windows, _ = np.histogram(at, np.arange(0.0, max(duration, 0.2), 0.1), weights=size)
    spread = np.quantile(8 * windows / 0.1, [0.1, 0.9]) if len(windows) else [mean, mean]
    rate = Estimated(
        mean,
        "bit/s",
        f"mean of {len(times_ms)} opportunities of 1500 bytes; the interval has 80 % of the "
        "windows of 100 ms",
        float(min(spread[0], mean)),
        float(max(spread[1], mean)),
    )
    missing = "a mahimahi trace has no queue and no losses"
    way = Direction(
        rate=rate,
        trace_ms=tuple(times_ms),
        buffer=Estimated(None, "B", missing),
        wait=Estimated(None, "s", missing),
        loss=Estimated(None, "", missing),
        busy=1.0,
        bytes=int(size.sum()),
    )
    rtt = Estimated(None, "s", "a mahimahi trace says nothing about the round trip; --rtt gives it")
    about = f"mahimahi trace of {len(times_ms)} opportunities in {quantity(duration, 's', 3)}"
    told = f"the trace is taken to be the direction {name}"
    found = Found(file, "mahimahi", about, duration, rtt=rtt, cautions=(told,))
    return replace(found, down=way) if name == "down" else replace(found, up=way)
