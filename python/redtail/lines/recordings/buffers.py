"""The buffer of a link, from what packets waited that came next to packets it dropped.

A tail-drop queue drops when it is full, so the packets before and behind a dropped one have waited
for a full buffer. They all wait about equally long; where they do not, something else than a full
buffer drops, such as a queue management or a lossy link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings.values import Estimated, quantity, within

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

FEWEST_EVENTS = 3
"""Loss events from which a buffer is estimated."""

NEAREST = 5
"""Packets next to the losses of an event whose median counts: a delayed acknowledgement among them
makes no difference."""

SHARP = 0.25
"""Largest distance of the quartiles of the backlogs at losses, relative to their median, at which a
full buffer explains the losses."""

MANY_EVENTS = 10
"""Loss events below which the largest and the smallest tenths take the place of the quartiles: of
five events the quartiles are three, and CoDel drops at one backlog three times and at twice as much
then."""

REACHED = 0.8
"""Share of the largest backlogs that the backlogs at losses have to reach for the same."""


LARGEST = 0.99
"""The quantile that stands for the largest backlog: above it are delayed acknowledgements."""


@dataclass(frozen=True)
class Backlogs:
    """How much waited in a queue.

    Attributes:
        at_s: times, in order, on the time axis of the losses.
        size_b: backlog that a packet met, in bytes.
        wait_s: what it waited.
    """

    at_s: Array
    size_b: Array
    wait_s: Array


def estimate(
    backlogs: Backlogs,
    lost_s: Array,
    near_s: float,
    apart_s: float,
    *,
    other: bool = False,
    few: bool = False,
    unit: str = "B",
) -> tuple[Estimated, Estimated]:
    """Estimate the buffer in bytes, and the longest wait in it.

    Args:
        backlogs: what packets met that were not dropped.
        lost_s: when packets came that were dropped.
        near_s: how far from a loss a packet may be to tell of it.
        apart_s: losses that are nearer to each other than this are one event.
        other: whether packets may have waited in another queue besides.
        few: whether waits are known of retransmissions only.
        unit: of the backlogs; "s" where nothing but the wait is known.
    """
    if not len(backlogs.at_s):
        reason = "the recording has no waiting times in this direction"
        return Estimated(None, unit, reason), Estimated(None, "s", reason)
    events = _events(backlogs, np.sort(lost_s), near_s, apart_s)
    if other:
        return _beside_another(events)
    most = float(np.quantile(backlogs.size_b, LARGEST))
    longest = float(np.quantile(backlogs.wait_s, LARGEST))
    if longest <= 0:
        reason = "no packet was seen to wait"
        return Estimated(None, unit, reason), Estimated(None, "s", reason)

    def bound(reason: str) -> tuple[Estimated, Estimated]:
        basis = f"the largest that was seen; {reason}"
        return (
            Estimated(most, unit, basis, bound="at least"),
            Estimated(longest, "s", basis, bound="at least"),
        )

    if not len(lost_s):
        return bound("nothing was lost, so the buffer was never seen full")
    if len(events) < FEWEST_EVENTS:
        return bound(_too_few(events))
    size, wait = events[:, 0], events[:, 1]
    tail = 0.25 if len(events) >= MANY_EVENTS else 0.1
    low, middle, high = np.quantile(size, [tail, 0.5, 1 - tail])
    if middle < REACHED * most or high - low > SHARP * middle:
        ends = [quantity(end, unit, 2) for end in _ends(size)]
        if few:
            return bound(
                "without timestamps only retransmissions tell waits, and they tell "
                f"{ends[0]} to {ends[1]}"
            )
        return bound(
            f"losses come at backlogs from {ends[0]} to {ends[1]}, so it is not a full buffer that "
            "drops: a queue management, or losses on the way"
        )
    basis = f"the median backlog at {len(events)} loss events, and what 80 % of them have"
    return (
        within(float(middle), unit, basis, *_ends(size)),
        within(float(np.median(wait)), "s", basis, *_ends(wait)),
    )


def of_wait(wait: Estimated, rate: Estimated, name: str) -> Estimated:
    """Return the buffer in bytes: what passes at a rate while a packet waits for the full buffer.

    A bound of one of the two is a bound of the buffer; two bounds of different sides tell nothing.

    Args:
        wait: what a packet waits when the buffer is full.
        rate: the rate of the link.
        name: the direction, "down" or "up".
    """
    if rate.value is None:
        return Estimated(None, "B", f"it takes the rate, which --{name} gives")
    if wait.value is None:
        return Estimated(None, "B", wait.basis)
    bounds = {wait.bound, rate.bound} - {""}
    if len(bounds) > 1:
        return Estimated(
            None, "B", f"the wait is known as {wait.bound}, the rate as {rate.bound}; --{name}"
            " gives the rate",
        )  # fmt: skip
    basis = f"the wait times the {'given ' if rate.given else ''}rate; {wait.basis}"
    if bounds:
        return Estimated(wait.value * rate.value / 8, "B", basis, bound=bounds.pop())
    ends = [
        None
        if wait_end is None and rate_end is None
        else (wait.value if wait_end is None else wait_end)
        * (rate.value if rate_end is None else rate_end)
        / 8
        for wait_end, rate_end in ((wait.low, rate.low), (wait.high, rate.high))
    ]
    return Estimated(wait.value * rate.value / 8, "B", basis, ends[0], ends[1])


def _beside_another(events: Array) -> tuple[Estimated, Estimated]:
    """Return bounds where waits in another queue are added: the least of the loss events."""
    if len(events) < FEWEST_EVENTS:
        reason = f"packets wait in both directions, and {_too_few(events)}"
        return Estimated(None, "B", reason), Estimated(None, "s", reason)
    basis = (
        f"what the least tenth of {len(events)} loss events have; packets wait in both directions, "
        "and the waits cannot be told apart"
    )
    return (
        Estimated(_ends(events[:, 0])[0], "B", basis, bound="at most"),
        Estimated(_ends(events[:, 1])[0], "s", basis, bound="at most"),
    )


def _too_few(events: Array) -> str:
    return f"{len(events)} loss events have a wait near them, and {FEWEST_EVENTS} are needed"


def _ends(values: Array) -> tuple[float, float]:
    low, high = np.quantile(values, [0.1, 0.9])
    return float(low), float(high)


def _events(backlogs: Backlogs, lost_s: Array, near_s: float, apart_s: float) -> Array:
    """Return backlog and wait at each loss event: of the packets next to its losses the median."""
    rows: list[tuple[float, float]] = []
    events = np.split(lost_s, np.flatnonzero(np.diff(lost_s) > apart_s) + 1)
    for lost in events if len(lost_s) else ():
        first, last = np.searchsorted(backlogs.at_s, [lost[0] - near_s, lost[-1] + near_s])
        if last <= first:
            continue
        # The nearest are among those next to each loss, however far is near.
        beside = np.searchsorted(backlogs.at_s, lost)[:, None] + np.arange(-NEAREST, NEAREST)
        part = np.unique(np.clip(beside, first, last - 1))
        at = backlogs.at_s[part]
        spot = np.searchsorted(lost, at)
        behind, ahead = lost[np.maximum(spot - 1, 0)], lost[np.minimum(spot, len(lost) - 1)]
        distance = np.minimum(np.abs(at - behind), np.abs(at - ahead))
        nearest = np.argsort(distance, kind="stable")[:NEAREST]
        nearest = nearest[distance[nearest] <= near_s]
        if len(nearest):
            rows.append(
                (
                    float(np.median(backlogs.size_b[part][nearest])),
                    float(np.median(backlogs.wait_s[part][nearest])),
                )
            )
    return np.array(rows).reshape(-1, 2)
