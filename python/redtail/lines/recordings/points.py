"""Packets that a capture has twice: taken on both sides of a queue, or of a router.

`tcpdump -i any` on a router has each packet when it comes and when it leaves, and often does not
tell where. A router that translates addresses shows two conversations with the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from redtail.lines.recordings.packets import TCP, UDP, Capture

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

TWICE = 0.5
"""Share of the packets of an interface that another one has seen too, from which the two are taken
to be on the two sides of a queue."""

FEWEST = 100
"""Packets of a point from which it is compared with another one."""

SAME_B = 0.5
"""Share of the packets of a conversation that another one has with the same numbers, from which a
router has translated the one into the other."""

NO_WAIT_S = 0.002
"""Copies that come within less of each other, but for a hundredth, are on the two sides of no
queue."""

MOST_COPIES = 4
"""A packet is seen so often at most: at a port, a bridge, a tunnel and a port at the other side."""

_NUMBERS = ["id", "seq", "ack", "payload", "flags", "ts_val"]
_KEY = ["conversation", "end", *_NUMBERS]


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
    capture, between = _told_apart(capture)
    keep[between] = False
    if len(capture.interfaces) > 1:
        for name, way in (("down", ~is_up), ("up", is_up)):
            found = _pair(capture, np.flatnonzero(way & keep))
            if found is not None:
                pair, copies = found
                keep[copies] = False
                if _queues(pair):
                    pairs[name] = pair
    if keep.all():
        return capture, is_up, pairs
    return capture.only(keep), is_up[keep], pairs


def _queues(pair: Pair) -> bool:
    """Return whether packets waited between two points."""
    if not len(pair.in_s):
        return False
    wait = pair.out_s - pair.in_s
    return float(np.quantile(wait, 0.99) - wait.min()) >= NO_WAIT_S


def _told_apart(capture: Capture) -> tuple[Capture, Array]:
    """Return a capture in which the first and the last copies of packets have interfaces.

    Returns:
        The capture, and the rows of copies between the first and the last one.
    """
    none = np.zeros(0, np.int64)
    data = np.flatnonzero((capture.protocol == TCP) & (capture["payload"] > 0))
    key = ["interface", *_KEY]
    if len(data) < FEWEST:
        return capture, none
    seen = pd.DataFrame({name: capture[name][data] for name in key}).groupby(key, sort=False).size()
    copies = min(int(seen.median()), MOST_COPIES)
    if copies < 2:
        return capture, none
    # Copies of different packets with the same numbers, as UDP has them, come in turns.
    table = pd.DataFrame({name: capture[name] for name in key})
    turn = table.groupby(key, sort=False).cumcount().to_numpy() % copies
    alone = table.groupby(key, sort=False)["end"].transform("size").to_numpy() == 1
    last = (turn == copies - 1) & ~alone
    places = len(capture.interfaces)
    columns = {**capture.columns, "interface": capture["interface"] + places * last}
    names = [f"{name} ({which})" for which in ("in", "out") for name in capture.interfaces]
    between = np.flatnonzero((turn > 0) & ~last)
    return replace(capture, columns=columns, interfaces=names), between


def joined(capture: Capture) -> Capture:
    """Return a capture in which a router's translation of addresses makes no new conversations.

    Packets of UDP are told by the number that IP gives them, if it gives one: where fragments are
    forbidden it may be 0 in all (RFC 6864, section 4.1).
    """
    numbered = (capture.protocol == UDP) & (capture["id"] != 0)
    rows = np.flatnonzero((capture.protocol == TCP) | numbered)
    if len(rows) < FEWEST or len(capture.conversations) < 2:
        return capture
    table = pd.DataFrame({name: capture[name][rows] for name in ("conversation", *_NUMBERS)})
    table = table.sort_values([*_NUMBERS, "conversation"], kind="stable")
    same = (table[_NUMBERS].to_numpy()[1:] == table[_NUMBERS].to_numpy()[:-1]).all(axis=1)
    talks = table["conversation"].to_numpy().astype(np.int64)
    met = np.stack([talks[:-1], talks[1:]])[:, same & (talks[:-1] != talks[1:])]
    pairs, counts = np.unique(met, axis=1, return_counts=True)
    total = np.bincount(talks, minlength=len(capture.conversations))
    into, turned = np.arange(len(total)), np.zeros(len(total), bool)
    for (one, other), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        if count < max(SAME_B * min(total[one], total[other]), 2):
            continue
        ends = _common_end(capture, one, other)
        if ends is not None and into[one] == one and into[other] == other:
            private = not capture.conversations.addresses(other)[1 - ends[1]].is_global
            kept, left = (other, one) if private else (one, other)
            into[left], turned[left] = kept, ends[0] != ends[1]
    if (into == np.arange(len(into))).all():
        return capture
    talk = capture["conversation"]
    columns = {
        **capture.columns,
        "conversation": into[talk],
        "end": np.where(turned[talk], 1 - capture["end"], capture["end"]),
    }
    return replace(capture, columns=columns)


def _common_end(capture: Capture, one: int, other: int) -> tuple[int, int] | None:
    """Return which ends of two conversations are the same, if one of each is."""
    first, second = capture.conversations[one], capture.conversations[other]
    for end in (0, 1):
        for there in (0, 1):
            here = (first.addresses[end], first.ports[end])
            if here == (second.addresses[there], second.ports[there]):
                return end, there
    return None


def _pair(capture: Capture, rows: Array) -> tuple[Pair, Array] | None:
    interface = capture["interface"][rows]
    counts = np.bincount(interface, minlength=len(capture.interfaces))
    two = np.argsort(counts, kind="stable")[::-1][:2]
    if counts[two[1]] < FEWEST:
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
