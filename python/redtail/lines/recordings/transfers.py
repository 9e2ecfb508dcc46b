"""Transfers of test programs: whether they filled a link, and the rate if they did.

A transfer that is not slowed by its hosts fills the link, and then a queue stands: its round trips
are longer than the base all the time. What was delivered while it stood is the rate, if it was
alike; else it is a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import rates
from redtail.lines.recordings.values import Estimated, quantity, within

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

SEGMENT_B, HEADERS_B = 1448, 52
"""Payload and headers of a full segment with timestamps in a packet of 1500 bytes over IPv4."""

WIRE = (SEGMENT_B + HEADERS_B) / SEGMENT_B
"""Bytes of IP packets for each byte of payload."""

LEAST_HEADERS_B = 40
"""Headers that a packet has at least: IPv4 and TCP without options."""

MIDDLE = 0.1
"""Share of the intervals at either end that is left out: transfers begin and end, and what a sender
has written into its socket is not delivered yet."""

STANDING_S = 0.005
"""A queue stands if packets wait at least so long: TARGET of CoDel (RFC 8289, section 4.3)."""


@dataclass(frozen=True)
class Intervals:
    """What was delivered in intervals that follow each other, and what packets waited in them.

    Attributes:
        seconds: how long each is.
        size_b: bytes of IP packets that were delivered.
        wait_s: round trips above the base; NaN where none is told.
        grain_b: bytes that may count in the interval beside the one they are of.
    """

    seconds: Array
    size_b: Array
    wait_s: Array
    grain_b: float = 0.0

    def middle(self) -> Intervals:
        """Return those that are not near the begin or the end; of one or two all."""
        margin = int(np.ceil(MIDDLE * len(self.seconds)))
        if 2 * margin >= len(self.seconds):
            return self
        part = slice(margin, len(self.seconds) - margin)
        return Intervals(self.seconds[part], self.size_b[part], self.wait_s[part], self.grain_b)

    @property
    def rates_bps(self) -> Array:
        """What was delivered in each."""
        found: Array = 8 * self.size_b / self.seconds
        return found

    @property
    def mean_bps(self) -> float:
        """What was delivered in all."""
        return float(8 * self.size_b.sum() / self.seconds.sum())


def why_no_queue(intervals: Intervals) -> str:
    """Return why round trips do not show that a queue stood in all intervals; empty if they do."""
    waits = intervals.wait_s
    told = waits[np.isfinite(waits)]
    if len(told) < len(waits) or not len(waits):
        return "the file does not tell round trips of each interval"
    least = max(STANDING_S, rates.standing_s(intervals.mean_bps, 0.0))
    standing = float(np.quantile(told, rates.STANDING))
    if standing >= least:
        return ""
    return (
        f"in a tenth of the intervals round trips were {quantity(standing, 's', 3)} or less above "
        f"the least, and a queue that stands is {quantity(least, 's', 3)}"
    )


def rate(
    intervals: Intervals,
    why: str,
    how: str,
    received_bps: float | None = None,
    least: float = 1.0,
) -> Estimated:
    """Return the rate that transfers of a direction show.

    Args:
        intervals: those of the middle.
        why: why the link is not known to have been full; empty if it is.
        how: how the bytes were found, in a few words.
        received_bps: what was received on average, where the intervals have what was sent: a sender
            counts what it has written into its socket.
        least: what a lower bound is multiplied by, for headers may be smaller.
    """
    count = len(intervals.seconds)
    if not count or not intervals.size_b.any():
        return Estimated(None, "bit/s", "nothing was delivered in this direction")
    mean, each = intervals.mean_bps, intervals.rates_bps
    if not why and count < rates.FEWEST:
        why = (
            f"without those at the ends there are {count}, and {rates.FEWEST} intervals are needed"
        )
    spread = float(each.std() / mean)
    if not why and spread > rates.VARIES:
        low, high = (quantity(float(end), "bit/s", 3) for end in np.quantile(each, [0.1, 0.9]))
        why = f"it varied from {low} to {high}, which a mean would hide"
    if received_bps is not None and mean > (1 + rates.SAME) * received_bps:
        why = why or f"more was sent than the {quantity(received_bps, 'bit/s')} that were received"
    if why:
        mean = least * min(mean, mean if received_bps is None else received_bps)
        basis = (
            f"the mean of {count} interval{'s' if count != 1 else ''}, {how}; the link is not "
            f"known to have been full: {why}"
        )
        return Estimated(mean, "bit/s", basis, bound="at least")
    from scipy.stats import t

    half = float(t.ppf(0.975, count - 1) * each.std(ddof=1) / np.sqrt(count))
    half += 8 * intervals.grain_b / float(intervals.seconds.sum())
    basis = (
        f"mean and 95 % interval of {count} intervals in which a queue stood, {how}; it is that of "
        "the line if nothing else was sent"
    )
    return within(mean, "bit/s", basis, mean - half, mean + half)
