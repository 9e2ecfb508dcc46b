"""How the rate of a line went while it was recorded: in steps, or as a trace of opportunities.

A course is taken to repeat, as mahimahi repeats a trace. So each part of it that is as long as a
run is one, whatever the recording's length: a cut.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

OPPORTUNITY_B = 1500
"""Bytes of an opportunity of a trace. Source: mahimahi, mm-link."""

WINDOW_S = 1.0
"""Time over which a rate is looked at, in s.

Source: our choice; at 1 Mbit/s it is 83 full packets, and a program that follows a rate takes about
a second for it (cake-autorate, README: "well under one second").
"""

CONSTANT = 0.9
"""A rate does not vary if a tenth of the windows is at least this share of all but a tenth of them.

Source: our choice: a shaper at 85 to 95 % of the rate stays below it then.
"""


@dataclass(frozen=True)
class Course:
    """How the rate of one direction went while it was recorded. It has steps or a trace.

    Attributes:
        steps: stretches of constant rate, each a time in s and a rate in bit/s of IP packets.
        trace_ms: opportunities to deliver 1500 bytes, in ms, as mahimahi has them.
    """

    steps: tuple[tuple[float, float], ...] = ()
    trace_ms: Sequence[int] = ()

    @property
    def duration_s(self) -> float:
        """What was recorded, in s."""
        if self.trace_ms:
            return self.trace_ms[-1] / 1e3
        return sum(seconds for seconds, _ in self.steps)

    @property
    def mean_bps(self) -> float:
        """The mean rate, in bit/s."""
        if self.trace_ms:
            return 8 * OPPORTUNITY_B * len(self.trace_ms) / self.duration_s
        return sum(seconds * bps for seconds, bps in self.steps) / self.duration_s

    @property
    def varies(self) -> bool:
        """Whether the rate varies so much that a fixed shaper is above it or far below."""
        return self.quantile(0.1) < CONSTANT * self.quantile(0.9)

    def quantile(self, share: float) -> float:
        """Return the rate that is not exceeded in this share of the windows, in bit/s.

        >>> Course(steps=((9.0, 20e6), (1.0, 5e6))).quantile(0.05) / 1e6
        5.0
        """
        window = min(WINDOW_S, self.duration_s)
        # Of steps and of short traces, in parts of a window.
        found = 8 * self.amounts(0.0, self.duration_s, window) / window
        return float(np.quantile(found, share, method="inverted_cdf"))

    def amounts(self, begin_s: float, length_s: float, every_s: float) -> Array:
        """Return the bytes that can pass in each interval of a part of the course.

        Args:
            begin_s: where the part begins, from the course's begin.
            length_s: how long it is.
            every_s: length of an interval.
        """
        count = max(1, int(length_s / every_s + 1e-6))
        if self.trace_ms:
            edges = 1e3 * every_s * np.arange(count + 1)
            # An opportunity at a time belongs to the interval that ends then.
            times = np.asarray(self._trace(begin_s, length_s, 1.0))
            passed = np.searchsorted(times, edges, side="right")
            found: Array = OPPORTUNITY_B * np.diff(passed).astype(float)
            return found
        edges = begin_s + every_s * np.arange(count + 1)
        return np.diff(self._passed(edges))

    def cut(self, begin_s: float, length_s: float, divisor: float = 1.0) -> Course:
        """Return a part of the course, which may reach beyond its end.

        Args:
            begin_s: where the part begins, from the course's begin.
            length_s: how long it is.
            divisor: what its rates are divided by.
        """
        if self.trace_ms:
            return Course(trace_ms=self._trace(begin_s, length_s, divisor))
        return Course(steps=tuple(self._steps(begin_s, length_s, divisor)))

    def _trace(self, begin_s: float, length_s: float, divisor: float) -> Sequence[int]:
        """Return a trace of a part, whose last line is at its end or beyond."""
        begin, end = round(1e3 * begin_s), round(1e3 * length_s)
        period, times = self.trace_ms[-1], np.asarray(self.trace_ms, dtype=np.int64)
        found = array("q")
        passed = 0
        # Round by round: of a fast line few opportunities remain.
        for number in range(begin // period, (begin + end) // period + 2):
            here = times + (period * number - begin)
            first = int(np.searchsorted(here, 0, side="right"))
            # With those at the end, or else the one behind it: where the trace would repeat.
            before, last = (int(np.searchsorted(here, end, side)) for side in ("left", "right"))
            here = here[first : max(last, before + 1)]
            # Each opportunity with which one more of the divided ones is full.
            full = np.floor((passed + np.arange(len(here) + 1)) / divisor)
            kept = np.diff(full) > 0
            passed += len(here)
            ended = len(here) > 0 and here[-1] >= end
            if ended:
                kept[-1] = True
            found.frombytes(here[kept].tobytes())
            if ended:
                break
        return found

    def _passed(self, at_s: Array) -> Array:
        """Return the bytes that pass up to times, of steps."""
        seconds, rates = (np.array(each) for each in zip(*self.steps, strict=True))
        ends = np.concatenate([[0.0], np.cumsum(seconds)])
        totals = np.concatenate([[0.0], np.cumsum(seconds * rates / 8)])
        whole, rest = np.divmod(at_s, ends[-1])
        found: Array = whole * totals[-1] + np.interp(rest, ends, totals)
        return found

    def _steps(self, begin_s: float, length_s: float, divisor: float) -> list[tuple[float, float]]:
        found: list[tuple[float, float]] = []
        skip, left = begin_s % self.duration_s, length_s
        while left > 1e-9:
            for seconds, bps in self.steps:
                part = min(seconds - min(skip, seconds), left)
                skip -= min(skip, seconds)
                left -= part
                if part > 1e-9:
                    found.append((part, bps / divisor))
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, of a trace only how much it is."""
        return {
            "duration_s": self.duration_s,
            "mean_bps": self.mean_bps,
            "steps": [list(step) for step in self.steps],
            "opportunities": len(self.trace_ms),
        }


def trace_text(times_ms: Sequence[int]) -> str:
    """Return a trace as mahimahi writes it; nothing if there is none.

    >>> trace_text([1, 1, 4]).split()
    ['1', '1', '4']
    """
    times = iter(times_ms)
    # In parts: the lines of a long trace take more than its text.
    return "".join(iter(lambda: "".join(f"{ms}\n" for ms in islice(times, 10_000)), ""))
