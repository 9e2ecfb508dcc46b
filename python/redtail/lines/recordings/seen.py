"""A capture, prepared: where its queues are, and the round trips that tell of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import clocks, delays, loads, points, stamps, tcp
from redtail.lines.recordings.packets import ICMP, REPLY, REQUEST, TCP, Capture
from redtail.lines.recordings.rates import PACKET_B
from redtail.lines.recordings.sides import Sides

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

SLOT_S, SLOT_PACKETS, MOST_SLOT_S = 0.02, 4, 0.5
"""Time within which waiting is taken to change little, and in which so many packets are sent, up to
the longest."""

TAKES = 0.2
"""Share of a round trip that its packet takes on the line at most where a base follows: many a line
is faster for the first packets. Those of a handshake take little on any line."""

CLOCK_S = 0.001
"""The tick of most hosts' timestamps (RFC 7323, section 5.4, recommends 1 ms to 1 s)."""

MOSTLY = 0.5
"""Share of bytes in packets with data below which a direction carries acknowledgements mostly."""

NEAR = 0.1
"""Share of a handshake's round trip that data takes at most where something near answers it: the
host of a virtual machine that translates addresses, or a proxy in front of a satellite."""

FULL = 0.8
"""Share of the largest segment that a full one has at least: options take the rest."""

RARE = 0.1
"""Share of the losses of the other direction below which a direction loses nothing itself: what is
sent again there is because answers were lost."""

ELSEWHERE = 0.2
"""Share of the waits in the other direction from which they are taken off. Source: our choice; a
tick of the clocks, or a host that is late, makes less."""

REORDERED_S = 0.003
"""Data that comes late by less was reordered, not sent again, where nothing else tells."""


@dataclass(frozen=True)
class Seen:
    """A capture, prepared: what all estimates look at.

    Attributes:
        sender: by direction, the end of each conversation that sends in it.
        trips: round trips by the side that turned them around: "local" or "remote".
        position: by direction, where the point of capture is: "before" the queue, "behind" it,
            "both", or "" if nothing tells.
        near: sides of which something near acknowledges data in place of the hosts, so that only
            handshakes are round trips.
        loads: which direction loads the line, over time.
    """

    capture: Capture
    is_up: Array
    pairs: dict[str, points.Pair]
    segments: tcp.Segments
    sender: dict[str, Array]
    trips: dict[str, Array]
    position: dict[str, str]
    near: tuple[str, ...] = ()
    loads: loads.Loads = field(default_factory=lambda: loads.NONE)

    @property
    def owners(self) -> tuple[str, ...]:
        """Directions whose queue packets are taken to wait in."""
        loading = (*self.loads.owners, *self.pairs)
        return tuple(name for name in ("down", "up") if name in loading)

    def place(self, name: str) -> str:
        """Return where the point of capture is, also as the other direction tells it.

        Before the queue of one direction it is behind that of the other, and the reverse.
        """
        other = "up" if name == "down" else "down"
        turned = {"before": "behind", "behind": "before"}.get(self.position[other], "")
        if _lost_on_one_side(self, other) and not _lost_on_one_side(self, name):
            return turned
        return self.position[name] or turned

    def way(self, name: str) -> Array:
        """Return of each packet whether it goes in a direction."""
        return self.is_up if name == "up" else ~self.is_up

    def of(self, rows: Array, name: str, talk: int = 2, end: int = 3) -> Array:
        """Return the rows whose data goes in a direction."""
        found: Array = rows[rows[:, end] == self.sender[name][rows[:, talk].astype(int)]]
        return found


def prepared(capture: Capture, told: Sides) -> Seen:
    """Return a capture with what all estimates look at."""
    single, is_up, pairs = points.once(capture, told.is_up(capture))
    segments = tcp.follow(single)
    sender = {"up": told.local, "down": 1 - told.local}
    trips = np.concatenate([segments.trips, echoes(single)])
    for at, _ in single.set_back:  # how long it stood still is not known
        trips = trips[(trips[:, 0] > at) | (trips[:, 1] < at)]
    # What seems to take longer than a pause takes may have been sent before a clock was set.
    long = clocks.across_pauses(single["at_s"], trips[:, 0], trips[:, 1])
    trips[long, 6] = delays.spans(trips[long])
    turned_local = trips[:, 3] == told.local[trips[:, 2].astype(int)] if len(trips) else []
    by_side = {"local": trips[turned_local], "remote": trips[~np.asarray(turned_local, bool)]}
    near = tuple(side for side, rows in by_side.items() if _answered_near(rows))
    for side in near:
        by_side[side] = by_side[side][by_side[side][:, 5] == tcp.SHAKEN]
    seen = Seen(single, is_up, pairs, segments, sender, by_side, {}, near)
    seen = replace(seen, position={name: _position(seen, name) for name in ("down", "up")})
    return replace(seen, loads=_loads(seen))


def _answered_near(rows: Array) -> bool:
    """Return whether something near acknowledges data in place of the hosts on a side.

    It lets handshakes through: the first data takes a small part of the handshake's time. Data that
    meets an emptier queue than the handshake comes later than the first.
    """
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    shaken, data = rows[rows[:, 5] == tcp.SHAKEN], rows[rows[:, 5] == tcp.ACKED]
    _, first = np.unique(shaken[:, 2], return_index=True)
    talks, begin = np.unique(data[:, 2], return_index=True)
    shaken, data = shaken[first], data[begin]
    kept = np.isin(talks, shaken[:, 2])
    shaken, data = shaken[np.isin(shaken[:, 2], talks)], data[kept]
    long, short = delays.spans(shaken), delays.spans(data)
    told = long > 2 * CLOCK_S
    return bool(told.any() and (short < NEAR * long)[told].mean() > MOSTLY)


def _loads(seen: Seen) -> loads.Loads:
    """Return which direction loads the line, over time.

    Where both send, queues are taken to be where data is lost, or in full segments.
    """
    counts = {
        name: len(seen.of(seen.segments.beyond, name)) + len(came_late(seen, name))
        for name in ("down", "up")
    }
    most = max(counts.values())
    at, size = seen.capture["at_s"], seen.capture["size"].astype(float)
    payload = seen.capture["payload"]
    mss = seen.capture.conversations.segments[seen.capture["conversation"]]
    full = tcp_data(seen.capture) & (payload >= FULL * mss)
    carried = {}
    for name, count in counts.items():
        way = seen.way(name)
        loses = count > 0 and count >= RARE * most
        carried[name] = loads.Carried(at[way], size[way], (payload > 0)[way], full[way], loses)
    return loads.find(seen.capture.duration_s, carried)


def echoes(capture: Capture) -> Array:
    """Return the round trips of pings, in the form of `tcp.Segments.trips`."""
    rows = np.flatnonzero(capture.protocol == ICMP)
    asked: dict[tuple[int, int], tuple[float, int]] = {}
    found = []
    for row in rows.tolist():
        talk, seq = int(capture["conversation"][row]), int(capture["seq"][row])
        at, size, end = (capture[name][row] for name in ("at_s", "size", "end"))
        if capture["flags"][row] == REQUEST:
            asked[talk, seq] = (float(at), int(size))
        elif capture["flags"][row] == REPLY and (talk, seq) in asked:
            since, size = asked.pop((talk, seq))
            found.append((since, float(at), talk, int(end), size, tcp.ACKED, 0.0))
    return np.array(found, float).reshape(-1, 7)


def _position(seen: Seen, name: str) -> str:
    if name in seen.pairs:
        return "both"
    if lost := _lost_on_one_side(seen, name):
        return "before" if lost > 0 else "behind"
    ahead = spread(seen.trips["local" if name == "down" else "remote"])
    back = spread(seen.trips["remote" if name == "down" else "local"])
    if max(ahead, back) < 2 * CLOCK_S:
        return ""
    return "before" if ahead >= back else "behind"


def _lost_on_one_side(seen: Seen, name: str) -> int:
    """Return how many more packets of a direction were lost behind the point than before it."""
    return len(seen.of(seen.segments.beyond, name)) - len(came_late(seen, name))


def came_late(seen: Seen, name: str) -> Array:
    """Return the data that was lost before the point, without what was reordered only."""
    rows = seen.of(seen.segments.missing, name)
    turned = seen.trips["remote" if name == "down" else "local"]
    least = REORDERED_S
    if len(turned):
        least = max(least, 0.5 * float((turned[:, 1] - turned[:, 0]).min()))
    found: Array = rows[rows[:, 1] - rows[:, 0] >= least]
    return found


def spread(trips: Array, quantile: float = 0.9) -> float:
    """Return how much round trips of a conversation vary: a quantile above the least."""
    spans = delays.spans(trips)
    if len(trips) < delays.FEWEST:
        return 0.0
    talks, place = np.unique(trips[:, 2], return_inverse=True)
    base = np.full(len(talks), np.inf)
    np.minimum.at(base, place, spans)
    above = (spans - base[place])[delays.prompt(trips)]
    return float(np.quantile(above, quantile)) if len(above) >= delays.FEWEST else 0.0


def turn(seen: Seen, name: str) -> str:
    """Return the side whose round trips have the queue of a direction in them."""
    ahead, back = ("local", "remote") if name == "down" else ("remote", "local")
    return back if seen.position[name] == "behind" else ahead


def own_trips(seen: Seen, name: str, trips: delays.Trips) -> Array:
    """Return which round trips have the queue of this direction in them, and not the other one."""
    if name in seen.pairs:
        return np.ones(len(trips), bool)
    if not shares_trips(seen, name):
        return seen.loads.throughout(name, trips.sent_s, trips.back_s)
    return seen.loads.alone(name, trips.sent_s, trips.back_s)


def tells_waits(seen: Seen, name: str) -> bool:
    """Return whether there are waiting times of more than retransmissions."""
    if name in seen.pairs:
        return True
    return len(_often(seen.trips[turn(seen, name)])) > 0


def _often(rows: Array) -> Array:
    """Return the conversations with many round trips that tell of waiting."""
    rows = rows[(rows[:, 5] != tcp.AGAIN) & (rows[:, 6] < delays.spans(rows))]
    talks, counts = np.unique(rows[:, 2], return_counts=True)
    found: Array = talks[counts >= delays.MANY]
    return found


def shares_trips(seen: Seen, name: str) -> bool:
    """Return whether a direction's round trips have the queue of the other one in them too."""
    both = len(seen.owners) == 2 and turn(seen, "down") == turn(seen, "up")
    return both and name not in seen.pairs


def tcp_data(capture: Capture) -> Array:
    """Return of each packet whether it is a TCP segment with data."""
    found: Array = (capture.protocol == TCP) & (capture["payload"] > 0)
    return found


def trips_of(
    seen: Seen, name: str, bps: float | None = None, *, longest: bool = False
) -> delays.Trips:
    """Return the round trips that have the queue of a direction in them, with the waits.

    Args:
        seen: the capture.
        name: the direction.
        bps: its rate, if it is known: the time that the packet itself takes is left out then.
        longest: whether the waits are the longest that there can have been: from the least base of
            all conversations, for some may never have met an empty queue.
    """
    if name in seen.pairs:
        pair = seen.pairs[name]
        trip = pair.out_s - pair.in_s - (8 * pair.size_b / bps if bps else 0.0)
        wait = np.maximum(trip - trip.min(), 0.0)
        return delays.Trips(pair.in_s, pair.out_s, trip, np.zeros(len(trip)), wait, wait)
    rows = seen.trips[turn(seen, name)]
    if not len(rows) or name not in seen.owners:
        none = np.zeros(0)
        return delays.Trips(none, none, none, none, none, none)
    trip = spans_of(seen, rows, {name: bps} if bps else {})
    clean = rows[:, 5] != tcp.AGAIN
    shortest = np.maximum(trip, (1 - TAKES) * delays.spans(rows))
    bases = bases_of(seen, turn(seen, name), rows[clean], shortest[clean], bps)
    keep = clean & np.isin(rows[:, 2], _often(rows)) if tells_waits(seen, name) else ~clean
    if longest and bases:
        bases = dict.fromkeys(bases, min(bases.values()))
    keep &= np.isin(rows[:, 2], list(bases))
    rows, trip = rows[keep], trip[keep]
    wait = trip - np.array([bases[talk] for talk in rows[:, 2].astype(int).tolist()])
    wait, sure = np.maximum(wait, 0.0), np.maximum(wait - rows[:, 6], 0.0)
    other = _other_wait(seen, name, rows, wait, bps)
    if other is not None:
        wait = np.maximum(wait - other, 0.0)
        sure = np.minimum(sure, wait)
    return delays.Trips(rows[:, 0], rows[:, 1], trip, rows[:, 2], wait, sure)


def _other_wait(seen: Seen, name: str, rows: Array, wait: Array, bps: float | None) -> Array | None:
    """Return what of waits is in the other direction, whose packets carry acknowledgements.

    Args:
        seen: the capture.
        name: the direction whose data loads the line.
        rows: round trips.
        wait: what of each is waiting, in both directions.
        bps: the rate of the direction, if it is known.

    Returns:
        None if nothing tells, or if they did not wait there.
    """
    if shares_trips(seen, name) or not seen.position[name] or not tells_waits(seen, name):
        return None
    side = turn(seen, name)
    behind = seen.position[name] == "behind"
    far = seen.sender["down" if side == "remote" else "up"]
    talk, at, late, tick = stamps.delays(seen.capture, far)
    if not len(talk):
        return None
    apart = 1.0  # delays differ by an unknown part, and bases are above 0
    bases = delays.bases(at, late + apart, talk, np.ones(len(at), bool), _slot_s(bps))
    waited = late + apart - np.array([bases[one] for one in talk.tolist()])
    far_wait = stamps.matched(talk, at, np.maximum(waited, 0.0), rows[:, 2], rows[:, 1])
    other = np.maximum(wait - far_wait, 0.0) if behind else np.minimum(far_wait, wait)
    long = np.isfinite(other) & (wait > 2 * max(tick, CLOCK_S))
    if long.sum() < delays.FEWEST:
        return None
    if np.median(other[long] / wait[long]) < ELSEWHERE:
        return None
    # A wait is known as finely as the clock ticks, and lower bounds of the direction have to hold.
    return np.where(np.isfinite(other), other + tick, wait)


def spans_of(seen: Seen, rows: Array, bps: Mapping[str, float]) -> Array:
    """Return round trips without the time that their packets take on the line.

    Args:
        seen: the capture.
        rows: round trips on the side of the point where the line is.
        bps: the rates that are known, by direction.
    """
    talk = rows[:, 2].astype(int)
    # The packet with data comes to the end that acknowledges it, and from the one that echoes.
    turned_up = rows[:, 3] != seen.sender["up"][talk]
    echoed = (rows[:, 5] == tcp.STAMPED) | (rows[:, 5] == tcp.AGAIN)
    goes_up = turned_up ^ echoed
    found = delays.spans(rows)
    for name, rate in bps.items():
        found = found - np.where(goes_up == (name == "up"), 8 * rows[:, 4] / rate, 0.0)
    return np.maximum(found, 0.0)


def bases_of(
    seen: Seen, side: str, rows: Array, trip: Array, bps: float | None, *, strict: bool = False
) -> dict[int, float]:
    """Return the base of each conversation on one side of the point, from its round trips there."""
    # Packets meet in a queue: behind it they are seen together, before it they go there together.
    owners = [name for name in seen.owners if turn(seen, name) == side]
    behind = any(seen.position[name] == "behind" for name in owners)
    at = rows[:, 1] if behind else rows[:, 0]
    meets = delays.prompt(rows)
    if strict:
        # Where both directions load the line, packets that meet in one queue wait in another too.
        meets &= ~seen.loads.both(rows[:, 0], rows[:, 1])
    return delays.bases(at, trip, rows[:, 2].astype(int), meets, _slot_s(bps))


def _slot_s(bps: float | None) -> float:
    """Return the time within which waiting changes little, at a rate if it is known."""
    return min(max(SLOT_S, SLOT_PACKETS * 8 * PACKET_B / (bps or 1e12)), MOST_SLOT_S)
