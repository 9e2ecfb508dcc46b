"""How long a line is simulated, so that loads fill it and what is measured is not their beginning.

Senders begin within START_S. A sender of TCP doubles its window W each round trip, from 10 segments
(RFC 6928), until it has its share of the line, or HyStart ends this early, at half of it at worst:
a train of acknowledgements as long as half of the round trip ends it (Ha and Rhee 2011, section 4).
From there CUBIC grows, by (dW / C)^(1/3) s (RFC 9438, section 4.2) or, where that is shorter, as
Reno in dW r / alpha (section 4.3). The warm-up lasts as long. What is measured has ROUND_TRIPS, and
SAWTEETH of CUBIC's from one loss to the next, in which W grows back from beta W.

Pages take their time on a slow line, whatever its queue: what is measured has PAGES of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from redtail.lines.line import Direction, Line

WARMUP_S = 5.0
"""The shortest warm-up, in s. Source: our choice; readers begin after it, pages take time."""

START_S = 2.0
"""The time within which transfers begin, in s. Source: that of the loads."""

ROUND_TRIPS = 50
"""Round trips that are measured at least. Source: our choice."""

SAWTEETH = 3
"""Sawteeth of CUBIC's window that are measured at least. Source: our choice."""

PAGES = 3
"""Pages that a reader could load on the empty line in the time that is measured, at least. Source:
our choice."""

PAGE_B = 1.9e6
"""Size of a page, in bytes: 70 objects of 27.7 kB, the median and the mean of the model http2."""

LONGEST_S = 600.0
"""The longest time that is measured, in s. Source: our choice."""

_BETA, _C = 0.7, 0.4  # RFC 9438, section 4.6 and 4.1
_ALPHA = 3 * (1 - _BETA) / (1 + _BETA)  # RFC 9438, section 4.3
_INITIAL = 10  # RFC 6928
_PACKET = 1500


@dataclass(frozen=True)
class Times:
    """How long a run takes.

    Attributes:
        warmup_s: time before what is measured, in s.
        measured_s: time that is measured, in s.
    """

    warmup_s: float
    measured_s: float

    @property
    def total_s(self) -> float:
        """The time of a run, in s."""
        return self.warmup_s + self.measured_s


def needed(line: Line, flows: Mapping[Direction, int], pages: bool) -> Times:
    """Return the shortest times after which results are those of a full line.

    Args:
        line: the line.
        flows: the number of flows that fill it, in each direction.
        pages: whether pages are read.
    """
    shares = (line.down_bps / flows["down"], line.up_bps / flows["up"])
    share = max(1.0, *(rate * line.rtt_s / 8 / _PACKET for rate in shares))
    rounds = math.ceil(math.log2(max(1.0, share / _INITIAL)))
    warmup = START_S + rounds * line.rtt_s + _grown(share / 2, line.rtt_s)
    sawtooth = _grown((1 - _BETA) * share, line.rtt_s)
    measured = max(ROUND_TRIPS * line.rtt_s, SAWTEETH * sawtooth)
    if pages:
        measured = max(measured, PAGES * 8 * PAGE_B / line.down_bps)
    return Times(max(WARMUP_S, math.ceil(warmup)), min(LONGEST_S, math.ceil(measured)))


def _grown(packets: float, rtt_s: float) -> float:
    """Return how long a window takes to grow by so many packets, in s."""
    return min(math.cbrt(packets / _C), packets * rtt_s / _ALPHA)
