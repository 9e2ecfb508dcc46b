"""Packets that a capture has twice, because it was taken on both sides of a queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from redtail.lines.recordings.packets import Capture

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

TWICE = 0.5
"""Share of the packets of an interface that another one has seen too, from which the two are taken
to be on the two sides of a queue."""

_KEY = ["conversation", "end", "id", "seq", "ack", "payload", "flags", "ts_val"]


@dataclass(frozen=True)
class Pair:
    """Two points of one direction with a queue between them.

    Attributes:
        in_s: when each packet passed the first point, of those that passed both.
        out_s: when it passed the second.
        size_b: its bytes.
        lost_s: when those passed the first point that never passed the second.
        passed_s: when packets passed the second point, all of them.
        passed_b: their bytes.
        names: of the two interfaces.
    """

    in_s: Array
    out_s: Array
    size_b: Array
    lost_s: Array
    passed_s: Array
    passed_b: Array
    names: tuple[str, str]


def once(capture: Capture, is_up: Array) -> tuple[Capture, Array, dict[str, Pair]]:
    """Return a capture without the second copies of packets, and what the copies tell.

    Args:
        capture: the packets.
        is_up: of each, whether it goes up.

    Returns:
        The capture, `is_up` for it, and by direction ("down", "up") the two points.
    """
    pairs: dict[str, Pair] = {}
    keep = np.ones(len(capture), bool)
    if len(capture.interfaces) > 1:
        for name, way in (("down", ~is_up), ("up", is_up)):
            found = _pair(capture, np.flatnonzero(way))
            if found is not None:
                pairs[name], copies = found
                keep[copies] = False
    if keep.all():
        return capture, is_up, pairs
    return capture.only(keep), is_up[keep], pairs


def _pair(capture: Capture, rows: Array) -> tuple[Pair, Array] | None:
    interface = capture["interface"][rows]
    counts = np.bincount(interface, minlength=len(capture.interfaces))
    two = np.argsort(counts, kind="stable")[::-1][:2]
    if counts[two[1]] < 100:
        return None
    table = pd.DataFrame({name: capture[name][rows] for name in _KEY})
    table["row"] = rows
    sides = [table[interface == one] for one in two]
    unique = [side.drop_duplicates(_KEY, keep=False) for side in sides]
    both = unique[0].merge(unique[1], on=_KEY, suffixes=("_a", "_b"))
    if len(both) < TWICE * counts[two[1]]:
        return None
    at = capture["at_s"]
    first, second = both["row_a"].to_numpy(), both["row_b"].to_numpy()
    a, b = 0, 1
    if np.median(at[second] - at[first]) < 0:
        first, second, a, b = second, first, 1, 0
    behind = sides[b]["row"].to_numpy()
    copies = behind
    end = at[second].max()
    alone = unique[a][~unique[a]["row"].isin(first)]["row"].to_numpy()
    # What was still waiting when the capture ended is not lost.
    longest = float(np.max(at[second] - at[first]))
    lost = at[alone]
    names = (capture.interfaces[two[a]], capture.interfaces[two[b]])
    return (
        Pair(
            at[first],
            at[second],
            capture["size"][first],
            np.sort(lost[lost < end - longest]),
            at[behind],
            capture["size"][behind],
            names,
        ),
        copies,
    )
