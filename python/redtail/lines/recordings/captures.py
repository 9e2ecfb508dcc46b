"""What a capture tells of a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import buffers, delays, links, mix, points, rates
from redtail.lines.recordings.bases import round_trip
from redtail.lines.recordings.found import Direction, Found
from redtail.lines.recordings.loads import MOST_SLOTS
from redtail.lines.recordings.packets import ICMP, REQUEST, TCP, UDP, Capture
from redtail.lines.recordings.rates import PACKET_B, Deliveries, Rate
from redtail.lines.recordings.seen import (
    CLOCK_S,
    MOSTLY,
    Seen,
    came_late,
    echoes,
    own_trips,
    prepared,
    shares_trips,
    spread,
    tcp_data,
    tells_waits,
    trips_of,
    turn,
)
from redtail.lines.recordings.sides import Sides, sides
from redtail.lines.recordings.timeline import Delivered, Timeline, of_slots
from redtail.lines.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

SURE = 0.5
"""Share of a wait that the host may have taken at most where a backlog follows from the wait."""

NEAR_PACKETS = 10
"""So many packets before or behind a loss tell how full the queue was."""

ACKS_S, SHARED_S = 0.25, 1.0
"""Acknowledgements come in lumps, more so where they wait themselves: windows are so long."""

MOST_LATE = 0.99
"""The quantile of round trips above the least that stands for the largest."""

PINGS = "ICMP"
"""What probes of a capture are called that has pings."""

COURSE_S = 0.1
"""How finely what was delivered is told over time."""


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
    seen = prepared(capture, told)
    ways = {name: _direction(seen, name) for name in ("down", "up")}
    rtt, by_talk = round_trip(seen, ways)
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
        timeline=_timeline(seen, ways, rtt),
    )


def _timeline(
    seen: Seen, ways: Mapping[str, tuple[Direction, Rate]], rtt: Estimated
) -> Timeline | None:
    """Return what a capture shows over time: pings if it has them, else round trips of TCP."""
    at, trips, probe = _probes(seen, rtt)
    if not len(at):
        return None
    # A damaged time stamp can be years away.
    width = max(COURSE_S, seen.capture.duration_s / MOST_SLOTS)
    edges = width * np.arange(int(seen.capture.duration_s / width) + 2)
    delivered = {}
    for name, (way, _) in ways.items():
        if way.bytes:
            came = _deliveries(seen, name, way.loss)
            sums, _ = np.histogram(came.at_s, edges, weights=came.size_b)
            delivered[name] = Delivered(edges, np.concatenate([[0.0], np.cumsum(sums)]))
    phases = of_slots(seen.loads.loaded, 0.0, seen.loads.width_s)
    return Timeline(at, trips, probe, delivered, phases, own=probe != PINGS)


def _probes(seen: Seen, rtt: Estimated) -> tuple[Array, Array, str]:
    """Return when probes were sent, their round trips, and what they are."""
    echoed = echoes(seen.capture)
    if len(echoed) >= delays.FEWEST:
        asked = (seen.capture.protocol == ICMP) & (seen.capture["flags"] == REQUEST)
        sent = seen.capture["at_s"][asked]
        lost = sent[~np.isin(sent, echoed[:, 0])]
        at = np.concatenate([echoed[:, 0], lost])
        trip = np.concatenate([delays.spans(echoed), np.full(len(lost), np.nan)])
        order = np.argsort(at, kind="stable")
        return at[order], trip[order], PINGS
    name = max(seen.owners, key=lambda each: int(seen.way(each).sum()), default="down")
    trips = trips_of(seen, name)
    order = np.argsort(trips.sent_s, kind="stable")
    return trips.sent_s[order], (trips.wait_s + (rtt.value or 0.0))[order], "TCP's own"


def _direction(seen: Seen, name: str) -> tuple[Direction, Rate]:
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


def _rate(seen: Seen, name: str, deliveries: Deliveries) -> tuple[Rate, bool]:
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
    trips = trips_of(seen, name)
    slack = rates.standing_s(rates.rough(deliveries), CLOCK_S)
    if not tells_waits(seen, name):
        waited = int((trips.sure_s > slack).sum())
        if waited >= max(buffers.FEWEST_EVENTS, MOSTLY * len(trips)):
            return rates.near_largest(deliveries, shortest_s=deliveries.even_s), False
        why = f"{waited} of {len(trips)} packets that tell of waiting have waited"
        return rates.estimate(deliveries, None, why=why), False
    if len(trips) < delays.FEWEST:
        why = f"{len(trips)} round trips tell how long packets waited"
        return rates.estimate(deliveries, None, why=why), False
    alone = trips.only(own_trips(seen, name, trips))
    found = rates.estimate(deliveries, _standing(alone, slack), shortest_s=deliveries.even_s)
    if found.form or not shares_trips(seen, name):
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


def _losses(seen: Seen, name: str) -> tuple[Estimated, Array]:
    """Return the share of lost packets, and when the lost packets, or those behind them, passed."""
    if name in seen.pairs:
        pair = seen.pairs[name]
        total = len(pair.in_s) + len(pair.lost_s)
        share = len(pair.lost_s) / max(total, 1)
        basis = f"{len(pair.lost_s)} of {total} packets passed {pair.names[0]} only"
        return Estimated(share, "", basis), pair.lost_s
    beyond, missing = seen.of(seen.segments.beyond, name), came_late(seen, name)
    data = int((seen.way(name) & tcp_data(seen.capture)).sum())
    if not data:
        none = Estimated(None, "", "no TCP sends data in this direction")
        return none, np.zeros(0)
    behind = seen.position[name] == "behind"
    rows = missing if behind else beyond
    what = "came late, after a gap" if behind else "were sent again"
    lost = int(rows[:, 4].sum())
    basis = f"{lost} of {data} TCP segments with data {what}"
    return Estimated(lost / data, "", basis), np.sort(rows[:, 0])


def _deliveries(seen: Seen, name: str, loss: Estimated) -> Deliveries:
    if name in seen.pairs:
        pair = seen.pairs[name]
        return Deliveries(pair.passed_s, pair.passed_b, 0.0, f"as they passed {pair.names[1]}")
    way = seen.way(name)
    at, size = seen.capture["at_s"], seen.capture["size"].astype(float)
    acked = seen.of(seen.segments.delivered, name, talk=1, end=2)
    passed = Deliveries(at[way], size[way], 0.0, "as they passed the point of capture")
    if seen.place(name) == "behind":
        return passed
    # What passed may still wait for the link, or be dropped. What was acknowledged has passed it.
    sure = Deliveries(acked[:, 0], acked[:, 3], 0.0, "as acknowledgements tell", ACKS_S)
    if not len(acked):
        return replace(passed, sure=sure)
    late = spread(seen.trips[turn(seen, name)], MOST_LATE)
    if seen.position[name] != "before" or loss.value is None:
        return replace(passed, sure=replace(sure, late_s=late))
    rest = way & ~tcp_data(seen.capture)
    others = size[rest] * (1 - loss.value)
    total = float(acked[:, 3].sum() + others.sum())
    return replace(
        sure,
        at_s=np.concatenate([acked[:, 0], at[rest]]),
        size_b=np.concatenate([acked[:, 3], others]),
        uncertain=loss.value * float(others.sum()) / max(total, 1.0),
        late_s=late,
    )


def _buffer(
    seen: Seen,
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
    trips = trips_of(seen, name, rate.mean.value, longest=shared)
    trips = trips.only(trips.wait_s - trips.sure_s <= np.maximum(CLOCK_S, SURE * trips.wait_s))
    if shared:
        trips = trips.only(seen.loads.throughout(name, trips.sent_s, trips.back_s))
    else:
        trips = trips.only(own_trips(seen, name, trips))
        if shares_trips(seen, name):
            lost_s = lost_s[seen.loads.alone(name, lost_s, lost_s)]
    size = _drained(rate, trips, deliveries)
    at = trips.back_s if seen.position[name] == "behind" else trips.sent_s
    few = not tells_waits(seen, name)
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


def _about(capture: Capture, seen: Seen) -> str:
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
    "encrypted": "encrypted by Wi-Fi (a capture on the interface itself, without monitor mode, "
    "has them in the clear)",
}


def left_out(capture: Capture) -> list[str]:
    """Return which packets are left out, and why."""
    found = [
        f"{count} packets are left out: {_REASONS[reason]}"
        for reason, count in capture.left_out.items()
        if count and reason in _REASONS
    ]
    if capture.unknown_links:
        found.append(f"not read: {links.named(capture.unknown_links)}")
    return found


def _place(seen: Seen, name: str) -> str:
    place = seen.position[name]
    if not place:
        return "nothing tells whether the point of capture is before the queue or behind it"
    if len(seen.of(seen.segments.beyond, name)) == len(came_late(seen, name)):
        why = "round trips vary on that side"
    elif place == "before":
        why = "data that passed was sent again"
    else:
        why = "data was missing when it passed"
    return f"the point of capture is {place} the queue, for {why}"


def _cautions(seen: Seen, told: Sides, capture: Capture) -> list[str]:
    found = [told.told_by]
    if capture.damage:
        found.append(f"the file is damaged {capture.damage}; what is before is used")
    for side in seen.near:
        found.append(
            f"something near acknowledges data in place of the {side} hosts: only handshakes tell "
            "round trips"
        )
    for at, size in capture.set_back:
        found.append(
            f"the clock was set back by {quantity(size, 's', 3)}, {quantity(at, 's', 3)} after the "
            "begin; times are as if it had not been"
        )
    found += left_out(capture)
    for name in ("down", "up"):
        if name in seen.owners and name not in seen.pairs:
            found.append(f"{name}: {_place(seen, name)}")
        elif name in seen.pairs:
            first, second = seen.pairs[name].names
            found.append(f"{name}: the queue is between {first} and {second}")
    return found
