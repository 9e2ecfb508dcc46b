"""What a capture tells of a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import buffers, clocks, delays, loads, mix, points, rates, tcp
from redtail.lines.recordings.found import Direction, Found
from redtail.lines.recordings.packets import ICMP, REPLY, REQUEST, SYN, TCP, UDP, Capture
from redtail.lines.recordings.rates import PACKET_B, Deliveries, Rate
from redtail.lines.recordings.sides import Sides, sides
from redtail.lines.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

SLOT_S, SLOT_PACKETS, MOST_SLOT_S = 0.02, 4, 0.5
"""Time within which waiting is taken to change little, and in which so many packets are sent, up to
the longest."""

TAKES = 0.2
"""Share of a round trip that its packet takes on the line at most where a base follows: many a line
is faster for the first packets. Those of a handshake take little on any line."""

SURE = 0.5
"""Share of a wait that the host may have taken at most where a backlog follows from the wait."""

NEAR_PACKETS = 10
"""So many packets before or behind a loss tell how full the queue was."""

CLOCK_S = 0.001
"""The tick of most hosts' timestamps (RFC 7323, section 5.4, recommends 1 ms to 1 s)."""

MOSTLY = 0.5
"""Share of bytes in packets with data below which a direction carries acknowledgements mostly."""

FULL = 0.8
"""Share of the largest segment that a full one has at least: options take the rest."""

RARE = 0.1
"""Share of the losses of the other direction below which a direction loses nothing itself: what is
sent again there is because answers were lost."""

MUCH_LESS = 0.9
"""A base that follows from other conversations counts if it is less than this share of the least
round trip."""

ACKS_S, SHARED_S = 0.25, 1.0
"""Acknowledgements come in lumps, more so where they wait themselves: windows are so long."""

MOST_LATE = 0.99
"""The quantile of round trips above the least that stands for the largest."""

IDLE = 0.75
"""Share of the rate below which a window shows that the queue was empty in it."""

REORDERED_S = 0.003
"""Data that comes late by less was reordered, not sent again, where nothing else tells."""


@dataclass(frozen=True)
class _Seen:
    """A capture, prepared: what all estimates look at.

    Attributes:
        sender: by direction, the end of each conversation that sends in it.
        trips: round trips by the side that turned them around: "local" or "remote".
        position: by direction, where the point of capture is: "before" the queue, "behind" it,
            "both", or "" if nothing tells.
        loads: which direction loads the line, over time.
    """

    capture: Capture
    is_up: Array
    pairs: dict[str, points.Pair]
    segments: tcp.Segments
    sender: dict[str, Array]
    trips: dict[str, Array]
    position: dict[str, str]
    loads: loads.Loads = field(default_factory=lambda: loads.NONE)

    @property
    def owners(self) -> tuple[str, ...]:
        """Directions whose queue packets are taken to wait in."""
        loading = (*self.loads.owners, *self.pairs)
        return tuple(name for name in ("down", "up") if name in loading)

    def way(self, name: str) -> Array:
        return self.is_up if name == "up" else ~self.is_up

    def of(self, rows: Array, name: str, talk: int = 2, end: int = 3) -> Array:
        """Return the rows whose data goes in a direction."""
        found: Array = rows[rows[:, end] == self.sender[name][rows[:, talk].astype(int)]]
        return found


def estimate(capture: Capture, *, local: Sequence[str] = (), direction: str | None = None) -> Found:
    """Return what a capture tells of a line.

    Args:
        capture: the packets.
        local: addresses and networks at the people's side; by default as `sides.sides` finds them.
        direction: "down" or "up": the direction with more bytes, where addresses do not tell.

    Raises:
        SpecError: `local` is not in the capture.
    """
    capture = points.joined(capture)
    told = sides(capture, local, direction)
    seen = _prepared(capture, told)
    ways = {name: _direction(seen, name) for name in ("down", "up")}
    rtt, by_talk = _round_trip(seen, ways)
    return Found(
        file=capture.path,
        form="capture",
        about=_about(capture, seen),
        duration_s=capture.duration_s,
        down=ways["down"][0],
        up=ways["up"][0],
        rtt=rtt,
        flows=mix.mix(seen.capture, seen.is_up, by_talk),
        cautions=tuple(_cautions(seen, told, capture)),
    )


def _prepared(capture: Capture, told: Sides) -> _Seen:
    single, is_up, pairs = points.once(capture, told.is_up(capture))
    segments = tcp.follow(single)
    sender = {"up": told.local, "down": 1 - told.local}
    trips = np.concatenate([segments.trips, _echoes(single)])
    for at, _ in single.set_back:  # how long it stood still is not known
        trips = trips[(trips[:, 0] > at) | (trips[:, 1] < at)]
    # What seems to take longer than a pause takes may have been sent before a clock was set.
    long = clocks.across_pauses(single["at_s"], trips[:, 0], trips[:, 1])
    trips[long, 6] = delays.spans(trips[long])
    turned_local = trips[:, 3] == told.local[trips[:, 2].astype(int)] if len(trips) else []
    by_side = {"local": trips[turned_local], "remote": trips[~np.asarray(turned_local, bool)]}
    seen = _Seen(single, is_up, pairs, segments, sender, by_side, {})
    seen = replace(seen, position={name: _position(seen, name) for name in ("down", "up")})
    return replace(seen, loads=_loads(seen))


def _loads(seen: _Seen) -> loads.Loads:
    """Return which direction loads the line, over time.

    Where both send, queues are taken to be where data is lost, or in full segments.
    """
    counts = {
        name: len(seen.of(seen.segments.beyond, name)) + len(_missing(seen, name))
        for name in ("down", "up")
    }
    most = max(counts.values())
    at, size = seen.capture["at_s"], seen.capture["size"].astype(float)
    payload = seen.capture["payload"]
    mss = seen.capture.conversations.segments[seen.capture["conversation"]]
    full = _tcp_data(seen.capture) & (payload >= FULL * mss)
    carried = {}
    for name, count in counts.items():
        way = seen.way(name)
        loses = count > 0 and count >= RARE * most
        carried[name] = loads.Carried(at[way], size[way], (payload > 0)[way], full[way], loses)
    return loads.find(seen.capture.duration_s, carried)


def _echoes(capture: Capture) -> Array:
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


def _position(seen: _Seen, name: str) -> str:
    if name in seen.pairs:
        return "both"
    beyond, missing = seen.of(seen.segments.beyond, name), _missing(seen, name)
    if len(beyond) != len(missing):
        return "before" if len(beyond) > len(missing) else "behind"
    ahead = _spread(seen.trips["local" if name == "down" else "remote"])
    back = _spread(seen.trips["remote" if name == "down" else "local"])
    if max(ahead, back) < 2 * CLOCK_S:
        return ""
    return "before" if ahead >= back else "behind"


def _missing(seen: _Seen, name: str) -> Array:
    """Return the data that was lost before the point, without what was reordered only."""
    rows = seen.of(seen.segments.missing, name)
    turned = seen.trips["remote" if name == "down" else "local"]
    least = REORDERED_S
    if len(turned):
        least = max(least, 0.5 * float((turned[:, 1] - turned[:, 0]).min()))
    found: Array = rows[rows[:, 1] - rows[:, 0] >= least]
    return found


def _spread(trips: Array, quantile: float = 0.9) -> float:
    """Return how much round trips of a conversation vary: a quantile above the least."""
    spans = delays.spans(trips)
    if len(trips) < delays.FEWEST:
        return 0.0
    talks, place = np.unique(trips[:, 2], return_inverse=True)
    base = np.full(len(talks), np.inf)
    np.minimum.at(base, place, spans)
    above = (spans - base[place])[delays.prompt(trips)]
    return float(np.quantile(above, quantile)) if len(above) >= delays.FEWEST else 0.0


def _turn(seen: _Seen, name: str) -> str:
    """Return the side whose round trips have the queue of a direction in them."""
    ahead, back = ("local", "remote") if name == "down" else ("remote", "local")
    return back if seen.position[name] == "behind" else ahead


def _direction(seen: _Seen, name: str) -> tuple[Direction, Rate]:
    way = seen.way(name)
    sizes = seen.capture["size"][way]
    if not len(sizes):
        return Direction(), Rate(Direction().rate)
    loss, lost_s = _losses(seen, name)
    deliveries = _deliveries(seen, name, loss)
    rate, shared = _rate(seen, name, deliveries)
    buffer, wait = _buffer(seen, name, rate, lost_s, deliveries, shared)
    share = float(rate.busy.mean()) if len(rate.busy) and rate.form else None
    found = Direction(
        rate.mean, rate.steps, rate.trace_ms, buffer, wait, loss, share, int(sizes.sum())
    )
    return found, rate


def _rate(seen: _Seen, name: str, deliveries: Deliveries) -> tuple[Rate, bool]:
    """Return the rate of a direction, and whether packets waited in the other one at that time."""
    sizes, payload = seen.capture["size"], seen.capture["payload"]
    way = seen.way(name)
    own = float(sizes[way & (payload > 0)].sum()) / float(sizes[way].sum())
    if name not in seen.owners:
        why = "nothing tells how long packets waited"
        if own < MOSTLY:
            why = (
                "mostly acknowledgements go this way, and they are as fast as the data of the "
                "other direction"
            )
        return rates.estimate(deliveries, None, why=why), False
    trips = _trips(seen, name)
    slack = rates.standing_s(rates.rough(deliveries), CLOCK_S)
    if not _timed(seen, name):
        waited = int((trips.sure_s > slack).sum())
        if waited >= max(buffers.FEWEST_EVENTS, MOSTLY * len(trips)):
            return rates.near_largest(deliveries, shortest_s=deliveries.even_s), False
        why = f"{waited} of {len(trips)} packets that tell of waiting have waited"
        return rates.estimate(deliveries, None, why=why), False
    if len(trips) < delays.FEWEST:
        why = f"{len(trips)} round trips tell how long packets waited"
        return rates.estimate(deliveries, None, why=why), False
    alone = trips.only(_within(seen, name, trips))
    found = rates.estimate(deliveries, _standing(alone, slack), shortest_s=deliveries.even_s)
    if found.form or not _shared(seen, name):
        return found, False
    both = trips.only(seen.loads.throughout(name, trips.sent_s, trips.back_s))
    shared = rates.estimate(deliveries, _standing(both, slack), shortest_s=SHARED_S, near=True)
    return (shared, True) if shared.form else (found, True)


def _standing(trips: delays.Trips, slack: float) -> rates.Standing:
    return rates.Standing(
        *rates.busy_time(trips.back_s, trips.sure_s, slack),
        trips.back_s,
        trips.talk,
        trips.wait_s <= slack,
    )


def _within(seen: _Seen, name: str, trips: delays.Trips) -> Array:
    """Return which round trips have the queue of this direction in them, and not the other one."""
    if name in seen.pairs:
        return np.ones(len(trips), bool)
    if not _shared(seen, name):
        return seen.loads.throughout(name, trips.sent_s, trips.back_s)
    return seen.loads.alone(name, trips.sent_s, trips.back_s)


def _timed(seen: _Seen, name: str) -> bool:
    """Return whether there are waiting times of more than retransmissions."""
    if name in seen.pairs:
        return True
    return len(_often(seen.trips[_turn(seen, name)])) > 0


def _often(rows: Array) -> Array:
    """Return the conversations with many round trips that tell of waiting."""
    rows = rows[(rows[:, 5] != tcp.AGAIN) & (rows[:, 6] < delays.spans(rows))]
    talks, counts = np.unique(rows[:, 2], return_counts=True)
    found: Array = talks[counts >= delays.MANY]
    return found


def _shared(seen: _Seen, name: str) -> bool:
    """Return whether a direction's round trips have the queue of the other one in them too."""
    both = len(seen.owners) == 2 and _turn(seen, "down") == _turn(seen, "up")
    return both and name not in seen.pairs


def _losses(seen: _Seen, name: str) -> tuple[Estimated, Array]:
    """Return the share of lost packets, and when the lost packets, or those behind them, passed."""
    if name in seen.pairs:
        pair = seen.pairs[name]
        total = len(pair.in_s) + len(pair.lost_s)
        share = len(pair.lost_s) / max(total, 1)
        basis = f"{len(pair.lost_s)} of {total} packets passed {pair.names[0]} only"
        return Estimated(share, "", basis), pair.lost_s
    beyond, missing = seen.of(seen.segments.beyond, name), _missing(seen, name)
    data = int((seen.way(name) & _tcp_data(seen.capture)).sum())
    if not data:
        none = Estimated(None, "", "no TCP sends data in this direction")
        return none, np.zeros(0)
    behind = seen.position[name] == "behind"
    rows = missing if behind else beyond
    what = "came late, after a gap" if behind else "were sent again"
    lost = int(rows[:, 4].sum())
    basis = f"{lost} of {data} TCP segments with data {what}"
    return Estimated(lost / data, "", basis), np.sort(rows[:, 0])


def _tcp_data(capture: Capture) -> Array:
    """Return of each packet whether it is a TCP segment with data."""
    found: Array = (capture.protocol == TCP) & (capture["payload"] > 0)
    return found


def _deliveries(seen: _Seen, name: str, loss: Estimated) -> Deliveries:
    if name in seen.pairs:
        pair = seen.pairs[name]
        return Deliveries(pair.passed_s, pair.passed_b, 0.0, f"as they passed {pair.names[1]}")
    way = seen.way(name)
    at, size = seen.capture["at_s"], seen.capture["size"].astype(float)
    acked = seen.of(seen.segments.delivered, name, talk=1, end=2)
    if seen.position[name] != "before" or not len(acked):
        return Deliveries(at[way], size[way], 0.0, "as they passed the point of capture")
    rest = way & ~_tcp_data(seen.capture)
    lost = loss.value or 0.0
    others = size[rest] * (1 - lost)
    total = float(acked[:, 3].sum() + others.sum())
    return Deliveries(
        np.concatenate([acked[:, 0], at[rest]]),
        np.concatenate([acked[:, 3], others]),
        lost * float(others.sum()) / max(total, 1.0),
        "as acknowledgements tell",
        ACKS_S,
        _spread(seen.trips[_turn(seen, name)], MOST_LATE),
    )


def _trips(
    seen: _Seen, name: str, bps: float | None = None, *, longest: bool = False
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
    rows = seen.trips[_turn(seen, name)]
    if not len(rows) or name not in seen.owners:
        none = np.zeros(0)
        return delays.Trips(none, none, none, none, none, none)
    trip = _spans(seen, rows, {name: bps} if bps else {})
    clean = rows[:, 5] != tcp.AGAIN
    shortest = np.maximum(trip, (1 - TAKES) * delays.spans(rows))
    bases = _bases(seen, _turn(seen, name), rows[clean], shortest[clean], bps)
    keep = clean & np.isin(rows[:, 2], _often(rows)) if _timed(seen, name) else ~clean
    if longest and bases:
        bases = dict.fromkeys(bases, min(bases.values()))
    keep &= np.isin(rows[:, 2], list(bases))
    rows, trip = rows[keep], trip[keep]
    wait = trip - np.array([bases[talk] for talk in rows[:, 2].astype(int).tolist()])
    wait, sure = np.maximum(wait, 0.0), np.maximum(wait - rows[:, 6], 0.0)
    return delays.Trips(rows[:, 0], rows[:, 1], trip, rows[:, 2], wait, sure)


def _spans(seen: _Seen, rows: Array, bps: Mapping[str, float]) -> Array:
    """Return round trips without the time that their packets take on the line.

    Args:
        seen: the capture.
        rows: round trips on the side of the point where the line is.
        bps: the rates that are known, by direction.
    """
    talk = rows[:, 2].astype(int)
    # The packet with data comes to the end that acknowledges it, and from the one that echoes.
    turned_up = rows[:, 3] != seen.sender["up"][talk]
    echoed = rows[:, 5] != tcp.ACKED
    goes_up = turned_up ^ echoed
    found = delays.spans(rows)
    for name, rate in bps.items():
        found = found - np.where(goes_up == (name == "up"), 8 * rows[:, 4] / rate, 0.0)
    return np.maximum(found, 0.0)


def _bases(
    seen: _Seen, side: str, rows: Array, trip: Array, bps: float | None, *, strict: bool = False
) -> dict[int, float]:
    """Return the base of each conversation on one side of the point, from its round trips there."""
    # Packets meet in a queue: behind it they are seen together, before it they go there together.
    owners = [name for name in seen.owners if _turn(seen, name) == side]
    behind = any(seen.position[name] == "behind" for name in owners)
    at = rows[:, 1] if behind else rows[:, 0]
    width = min(max(SLOT_S, SLOT_PACKETS * 8 * PACKET_B / (bps or 1e12)), MOST_SLOT_S)
    meets = delays.prompt(rows)
    if strict:
        # Where both directions load the line, packets that meet in one queue wait in another too.
        meets &= ~seen.loads.both(rows[:, 0], rows[:, 1])
    return delays.bases(at, trip, rows[:, 2].astype(int), meets, width)


def _buffer(
    seen: _Seen,
    name: str,
    rate: Rate,
    lost_s: Array,
    deliveries: Deliveries,
    shared: bool,
) -> tuple[Estimated, Estimated]:
    if name not in seen.owners:
        reason = "nothing was lost in this direction, and waiting is taken to be in the other one"
        return Estimated(None, "B", reason), Estimated(None, "s", reason)
    if not rate.form:
        reason = "the link is not known to have been full"
        return Estimated(None, "B", reason), Estimated(None, "s", reason)
    trips = _trips(seen, name, rate.mean.value, longest=shared)
    trips = trips.only(trips.wait_s - trips.sure_s <= np.maximum(CLOCK_S, SURE * trips.wait_s))
    if not _shared(seen, name):
        trips = trips.only(_within(seen, name, trips))
    elif shared:
        trips = trips.only(seen.loads.throughout(name, trips.sent_s, trips.back_s))
    else:
        trips = trips.only(_within(seen, name, trips))
        lost_s = lost_s[seen.loads.alone(name, lost_s, lost_s)]
    size = _drained(rate, trips, deliveries)
    at = trips.back_s if seen.position[name] == "behind" else trips.sent_s
    few = not _timed(seen, name)
    if few:
        lost_s = at  # retransmissions: each tells of the loss before it
    order = np.argsort(at)
    backlogs = buffers.Backlogs(at[order], size[order], trips.wait_s[order])
    assert rate.mean.value is not None
    near = max(NEAR_PACKETS * 8 * PACKET_B / rate.mean.value, 2 * CLOCK_S)
    apart = max(0.05, float(np.median(trips.trip_s)) if len(trips) else 0.0)
    return buffers.estimate(backlogs, lost_s, near, apart, other=shared, few=few)


def _drained(rate: Rate, trips: delays.Trips, deliveries: Deliveries) -> Array:
    """Return the bytes that left the queue while each packet waited."""
    begins, ends = trips.back_s - trips.wait_s, trips.back_s
    if rate.form == "varying":
        at, total = rates.cumulative(deliveries.at_s, deliveries.size_b)
    elif rate.form == "steps":
        edges = [rate.steps[0][0], *(end for _, end, _ in rate.steps)]
        sizes = [(end - begin) * bps / 8 for begin, end, bps in rate.steps]
        at, total = np.array(edges), np.concatenate([[0.0], np.cumsum(sizes)])
    else:
        assert rate.mean.value is not None
        drained: Array = trips.wait_s * rate.mean.value / 8
        return drained
    drained = np.interp(ends, at, total) - np.interp(begins, at, total)
    return drained


def _round_trip(
    seen: _Seen, ways: dict[str, tuple[Direction, Rate]]
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
            if _turn(seen, name) == side and ways[name][1].form
        }
        spans = np.maximum(_spans(seen, rows, known), (1 - TAKES) * delays.spans(rows))
        least.append(delays.least(spans, rows[:, 2]))
        slow = min(known.values(), default=None)
        for each, sure in ((fitted, False), (strict, True)):
            fit = _bases(seen, side, rows, spans, slow, strict=sure) if known else least[-1]
            each.append(fit)
    if not any(least):
        reason = (
            "no packet can be told to be the answer to another one: the capture has one direction "
            "only, or no TCP and no pings"
        )
        return Estimated(None, "s", reason), {}
    timed = all(_timed(seen, name) for name in seen.owners)
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


def _of_talk(seen: _Seen, side: str, talk: int) -> Array:
    rows = seen.trips[side]
    return delays.spans(rows[rows[:, 2] == talk])


def _endpoint(spans: Array, value: float) -> float:
    """Return the lower end of the 95 % interval of a minimum."""
    two = np.sort(spans)[:2]
    gap = float(two[1] - two[0]) if len(two) == 2 else value
    return max(value - 19 * gap, 0.5 * value)


def _was_empty(seen: _Seen, ways: dict[str, tuple[Direction, Rate]]) -> bool:
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
        back = seen.trips[_turn(seen, name)][:, 1]
        slow = rate.windows_bps < IDLE * _rate_at(rate)
        slots = np.searchsorted(rate.edges_s, back) - 1
        inside = (slots >= 0) & (slots < len(slow))
        early = back <= rate.edges_s[0]
        empty &= bool(slow[slots[inside]].any() or early.any())
    return empty


def _all_met_an_empty_queue(seen: _Seen, ways: dict[str, tuple[Direction, Rate]]) -> bool:
    """Return whether each conversation has a round trip from when the link was not busy."""
    for name in seen.owners:
        rate = ways[name][1]
        if not rate.form:
            continue
        rows = seen.trips[_turn(seen, name)]
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


def _about(capture: Capture, seen: _Seen) -> str:
    names = {TCP: "TCP", UDP: "UDP", ICMP: "ping"}
    protocols = Counter(
        names.get(protocol, "other") for protocol in capture.conversations.protocols.tolist()
    )
    talks = ", ".join(f"{count} {name}" for name, count in protocols.most_common())
    places = len(np.unique(capture["interface"]))
    where = f" at {places} points" if places > 1 else ""
    length = quantity(capture.duration_s, "s", 3)
    return f"capture of {len(capture)} packets{where} in {length}; conversations: {talks}"


_REASONS = {
    "not_ip": "without IP",
    "fragments": "fragments",
    "other": "of protocols other than TCP, UDP and ping",
    "cut": "cut within their headers (a larger snapshot length, tcpdump -s, keeps them)",
    "unknown_link": "from links of a type that is not known",
}


def _place(seen: _Seen, name: str) -> str:
    place = seen.position[name]
    if not place:
        return "nothing tells whether the point of capture is before the queue or behind it"
    if len(seen.of(seen.segments.beyond, name)) == len(_missing(seen, name)):
        why = "round trips vary on that side"
    elif place == "before":
        why = "data that passed was sent again"
    else:
        why = "data was missing when it passed"
    return f"the point of capture is {place} the queue, for {why}"


def _cautions(seen: _Seen, told: Sides, capture: Capture) -> list[str]:
    found = [told.told_by]
    if capture.damage:
        found.append(f"the file is damaged {capture.damage}; what is before is used")
    for at, size in capture.set_back:
        found.append(
            f"the clock was set back by {quantity(size, 's', 3)}, {quantity(at, 's', 3)} after the "
            "begin; times are as if it had not been"
        )
    for reason, count in capture.left_out.items():
        if count:
            found.append(f"{count} packets are left out: {_REASONS[reason]}")
    for name in ("down", "up"):
        if name in seen.owners and name not in seen.pairs:
            found.append(f"{name}: {_place(seen, name)}")
        elif name in seen.pairs:
            first, second = seen.pairs[name].names
            found.append(f"{name}: the queue is between {first} and {second}")
    return found
