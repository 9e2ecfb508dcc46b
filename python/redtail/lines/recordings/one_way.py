"""Delays of each direction, which the clocks of both ends tell.

A delay of one direction has the distance of the two clocks in it, which is the same in all of them,
so that the least is taken off. Whether the clocks went alike is seen from the round trips, which
one clock tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings.pings import Pings
from redtail.lines.recordings.values import quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

DIRECTIONS = ("up", "down")

APART, LEAST_APART_S = 0.1, 0.001
"""The least delays of both directions make a round trip that is this part of the least one, or so
much, shorter than it, if the clocks went alike and the line was idle once."""


def why_not(ways: Mapping[str, Array], trip_s: Array) -> str:
    """Return why the delays of each direction do not tell what waited there; empty if they do.

    Args:
        ways: delays in s of "up" and "down", one for each round trip; NaN for what is missing.
        trip_s: the round trips, in s.
    """
    if not all(np.isfinite(delay).all() for delay in ways.values()):
        return "the file does not have them (--tstamp=both)"
    least = float(trip_s.min())
    apart = least - sum(float(delay.min()) for delay in ways.values())
    if apart <= max(APART * least, LEAST_APART_S):
        return ""
    return (
        f"the least of each make a round trip that is {quantity(apart, 's', 3)} shorter than any: "
        "the clocks did not go alike, or one direction was always busy"
    )


def split(ways: Mapping[str, Array], whole: Pings, lost_s: Mapping[str, Array]) -> dict[str, Pings]:
    """Return the waits of each direction as a series of pings.

    Args:
        ways: as for `why_not`, which finds no reason against them.
        whole: the round trips.
        lost_s: when those were sent that were lost on the way "up" and on the way "down".
    """
    return {
        name: Pings(whole.sent_s, delay - delay.min(), lost_s[name], True, len(lost_s[name]))
        for name, delay in ways.items()
    }
