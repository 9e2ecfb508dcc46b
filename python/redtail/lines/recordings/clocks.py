"""Times of a capture: clocks that were set, and pauses.

A clock that is set back makes packets seem to pass before others that stand in front of them in the
file. One that is set forward looks as a pause does: nothing passes for a while, and what was on its
way then seems to have taken as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

BACK_NS = 20_000_000
"""Packets of an interface stand in the file in the order in which they passed, but for so much:
several queues of a network card are read in turns."""

LASTING = 3
"""So many packets behind a step have times before it, too; a single one is an error of its own."""

MOST_STEPS = 20
"""A clock is not set more often; a file with more steps is not in the order of time."""

LATEST_NS = 2**62
"""The latest time that a capture may have, in 2116: later ones are those of a damaged file."""

PAUSE_S, PAUSE_GAPS = 0.25, 20
"""A pause is longer than this, and than so many times the median time between packets."""


def without_steps(at_ns: Array, interface: Array) -> tuple[Array, list[tuple[int, int]]]:
    """Return time stamps as a clock shows them that is not set back.

    Args:
        at_ns: time stamps in the order of the file.
        interface: where each packet was captured.

    Returns:
        The times, and of each step the row behind it and its size in ns; the times that were
        given, if no clock can have shown them.
    """
    order = np.argsort(interface, kind="stable")
    before = np.empty(len(at_ns), np.int64)
    before[order] = np.concatenate([order[:1], order[:-1]])
    same = interface[before] == interface
    behind = np.flatnonzero(same & (at_ns < at_ns[before] - BACK_NS))
    place = np.empty(len(at_ns), np.int64)
    place[order] = np.arange(len(order))
    found = at_ns.copy()
    steps: list[tuple[int, int]] = []
    for row in behind.tolist():
        last = int(before[row])
        later = order[min(place[row] + LASTING, len(order) - 1)]
        lasts = interface[later] != interface[row] or at_ns[later] < at_ns[last]
        if not lasts or found[row] >= found[last] - BACK_NS:
            continue
        # Other interfaces may have seen packets meanwhile.
        size = int(found[:row].max()) - int(found[row])
        if len(steps) == MOST_STEPS or int(found[row:].max()) + size > LATEST_NS:
            return at_ns, []
        found[row:] += size
        steps.append((row, size))
    return found, steps


def across_pauses(at_s: Array, begin_s: Array, end_s: Array) -> Array:
    """Return which stretches of time have a pause within, in which nothing passes.

    Args:
        at_s: when packets pass, in order.
        begin_s: begins of the stretches.
        end_s: their ends.
    """
    gaps = np.diff(at_s)
    if not len(gaps):
        return np.zeros(len(begin_s), bool)
    longest = max(PAUSE_S, PAUSE_GAPS * float(np.median(gaps)))
    middles = at_s[:-1][gaps > longest] + longest / 2
    found: Array = np.searchsorted(middles, begin_s) != np.searchsorted(middles, end_s)
    return found
