"""The base round trip of a capture: the least, and what is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import delays, tcp
from redtail.lines.recordings.found import Direction
from redtail.lines.recordings.packets import ICMP, SYN
from redtail.lines.recordings.rates import Rate
from redtail.lines.recordings.seen import TAKES, Seen, bases_of, spans_of, tells_waits, turn
from redtail.lines.recordings.values import Estimated

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

MUCH_LESS = 0.9
"""A base that follows from other conversations counts if it is less than this share of the least
round trip."""

IDLE = 0.75
"""Share of the rate below which a window shows that the queue was empty in it."""


def round_trip(
    seen: Seen, ways: dict[str, tuple[Direction, Rate]]
) -> tuple[Estimated, dict[int, float]]:
    """Return the base round trip of the line, and that of each conversation."""
    least: list[dict[int, float]] = []
    fitted: list[dict[int, float]] = []
    strict: list[dict[int, float]] = []
    for side in ("local", "remote"):
        rows = seen.trips[side]
        rows = rows[rows[:, 5] != tcp.AGAIN]
        known = {
            name: ways[name][1].mean.value or 1e12
            for name in seen.owners
            if turn(seen, name) == side and ways[name][1].form
        }
        spans = np.maximum(spans_of(seen, rows, known), (1 - TAKES) * delays.spans(rows))
        least.append(delays.least(spans, rows[:, 2]))
        slow = min(known.values(), default=None)
        for each, sure in ((fitted, False), (strict, True)):
            fit = bases_of(seen, side, rows, spans, slow, strict=sure) if known else least[-1]
            each.append(fit)
    if not any(least):
        reason = (
            "no packet can be told to be the answer to another one: the capture has one direction "
            "only, or no TCP and no pings"
        )
        return Estimated(None, "s", reason), {}
    timed = all(tells_waits(seen, name) for name in seen.owners)
    whole = _summed(least)
    by_talk = _summed(fitted) or {**fitted[0], **fitted[1]} if timed else {}
    # Less than nothing is what clocks tell that were set, and rates that were taken for too small.
    by_talk = {talk: base for talk, base in by_talk.items() if base > 0}
    table = {talk: base for talk, base in (whole or {**least[0], **least[1]}).items() if base > 0}
    if not table:
        reason = "packets pass and are answered at the same time, as the capture tells it"
        return Estimated(None, "s", reason), by_talk
    best = min(table, key=lambda talk: table[talk])
    spans = np.concatenate([_of_talk(seen, side, best) for side in ("local", "remote")])
    value = table[best]
    count = len(spans)
    basis = f"the least of {count} round trips of one conversation, of {len(table)}"
    if not whole:
        basis = (
            f"the least of {count} round trips on one side of the point of capture; nothing tells "
            "the other side"
        )
        return Estimated(value, "s", basis, bound="at least"), by_talk
    nearest = min(_summed(strict).values(), default=value) if timed else value
    if nearest <= 0:
        # So it is with clocks that were set, and rates that were taken for too small.
        basis += (
            "; nothing remains of it without what packets of several conversations waited at the "
            "same times"
        )
        return Estimated(value, "s", basis, bound="at most"), by_talk
    if nearest < MUCH_LESS * value:
        basis = (
            "what remains of round trips without what packets of several conversations waited at "
            f"the same times; {basis} is the upper end"
        )
        return Estimated(nearest, "s", basis, nearest, value), by_talk
    if not timed and not _all_met_an_empty_queue(seen, ways):
        basis += (
            "; without timestamps there are few, and some conversations began while the link was "
            "busy"
        )
        return Estimated(value, "s", basis, bound="at most"), by_talk
    if not _was_empty(seen, ways):
        basis += "; the link was busy throughout, so that the queue may never have been empty"
        return Estimated(value, "s", basis, bound="at most"), by_talk
    basis += "; the interval is that of Robson and Whitlock (Biometrika 51, 1964) for an endpoint"
    return Estimated(value, "s", basis, _endpoint(spans, value), value), by_talk


def _summed(halves: list[dict[int, float]]) -> dict[int, float]:
    first, second = halves
    return {talk: first[talk] + second[talk] for talk in first if talk in second}


def _of_talk(seen: Seen, side: str, talk: int) -> Array:
    rows = seen.trips[side]
    return delays.spans(rows[rows[:, 2] == talk])


def _endpoint(spans: Array, value: float) -> float:
    """Return the lower end of the 95 % interval of a minimum."""
    two = np.sort(spans)[:2]
    gap = float(two[1] - two[0]) if len(two) == 2 else value
    return max(value - 19 * gap, 0.5 * value)


def _was_empty(seen: Seen, ways: dict[str, tuple[Direction, Rate]]) -> bool:
    """Return whether there are round trips from when no queue of the line can have been full."""
    first = (
        int(seen.capture["flags"][0]),
        seen.capture.conversations[int(seen.capture["conversation"][0])],
    )
    if first[1].protocol == ICMP or first[0] & SYN:
        return True  # the recording begins before the traffic
    empty = True
    for name, (_, rate) in ways.items():
        if not rate.form:
            continue
        back = seen.trips[turn(seen, name)][:, 1]
        slow = rate.windows_bps < IDLE * _rate_at(rate)
        slots = np.searchsorted(rate.edges_s, back) - 1
        inside = (slots >= 0) & (slots < len(slow))
        early = back <= rate.edges_s[0]
        empty &= bool(slow[slots[inside]].any() or early.any())
    return empty


def _all_met_an_empty_queue(seen: Seen, ways: dict[str, tuple[Direction, Rate]]) -> bool:
    """Return whether each conversation has a round trip from when the link was not busy."""
    for name in seen.owners:
        rate = ways[name][1]
        if not rate.form:
            continue
        rows = seen.trips[turn(seen, name)]
        rows = rows[rows[:, 5] != tcp.AGAIN]
        slow = np.append(rate.windows_bps < IDLE * _rate_at(rate), False)
        slots = np.clip(np.searchsorted(rate.edges_s, rows[:, 1]) - 1, -1, len(slow) - 1)
        idle = (slots < 0) | slow[slots]
        if set(rows[:, 2]) - set(rows[idle, 2]):
            return False
    return True


def _rate_at(rate: Rate) -> Array:
    middle = (rate.edges_s[:-1] + rate.edges_s[1:]) / 2
    begins = np.array([begin for begin, _, _ in rate.steps])
    values = np.array([bps for _, _, bps in rate.steps])
    found: Array = values[np.maximum(np.searchsorted(begins, middle) - 1, 0)]
    return found
