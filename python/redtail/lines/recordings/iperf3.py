"""Results of iperf3 in JSON (`-J`, `--json-stream`).

Source of the form: src/iperf_api.c of iperf 3.18. Round trips are those that TCP smooths
(`tcpi_rtt`), in us, of the side that sends; a receiver has none. A sender
counts what it writes into its socket, and the end of the file has what was received.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import pings, rates, timeline, transfers
from redtail.lines.recordings.documents import number, of_kind, part, short
from redtail.lines.recordings.found import Direction, Flows, Found
from redtail.lines.recordings.packets import LEAST_MSS_B
from redtail.lines.recordings.timeline import Delivered, Phase, Timeline
from redtail.lines.recordings.transfers import HEADERS_B, LEAST_HEADERS_B, SEGMENT_B, Intervals
from redtail.lines.recordings.values import Estimated, given, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

UDP_B = 28
"""Headers of IPv4 with UDP."""

DRAIN_S = 1.0
"""What waits when a test by UDP ends is received after it, which takes up to so long; of a test by
TCP its longest round trip says how long."""

MOST_MSS_B = 65_495
"""The most that a segment may carry."""

MOST_BYTES, MOST_S, MOST_US, MOST_PACKETS = 1e17, 1e8, 1e6 * pings.LONGEST_TRIP_S, 1e15
"""The largest values of an interval that are accepted."""

MOST_STREAMS = 128
"""Streams that iperf3 runs in parallel at most (`MAX_STREAMS`)."""

FULL_LOSS = 0.1
"""UDP that loses so much in nearly all intervals fills a line: one that lost it at a lower rate
would give TCP 4 segments a round trip (Mathis et al., CCR 27(3), 1997)."""

SHORTEST_S = 0.01


def is_one(data: Mapping[str, Any]) -> bool:
    """Return whether an object is a result of iperf3."""
    return "intervals" in data and "start" in data


@dataclass
class _Way:
    """Intervals of one direction.

    Attributes:
        streams: most streams that an interval has.
        rtts_s: the least smoothed round trip of an interval's streams; NaN without one.
        lost, packets: of UDP as the receiver counts; None where the sender wrote the file.
    """

    seconds: list[float] = field(default_factory=list)
    bytes: list[float] = field(default_factory=list)
    rtts_s: list[float] = field(default_factory=list)
    lost: list[float] = field(default_factory=list)
    packets: list[float] = field(default_factory=list)
    again: float = 0.0
    streams: int = 0
    sends: bool = False


@dataclass(frozen=True)
class _Test:
    protocol: str
    reverse: bool
    is_client: bool
    mss: float
    block_b: float
    forward: str
    """The direction of what the client sends."""


def estimate(
    data: Mapping[str, Any],
    file: Path,
    direction: str | None = None,
    rtt_s: float | None = None,
) -> Found:
    """Return what a result of iperf3 tells of a line.

    Args:
        data: the document.
        file: where it is from.
        direction: "down" or "up": where its data went; by default up from a client, and down to
            one with -R, as at home.
        rtt_s: the round trip of the idle line, if a user knows it.

    Raises:
        ValueError: it has no intervals, or impossible values; the text says which.
    """
    test = _test(data, direction)
    ways = _ways(data, test)
    if not any(way.seconds for way in ways.values()):
        told = data.get("error")
        why = f'; iperf3 says "{short(told)}"' if isinstance(told, str) else ""
        raise ValueError(f"it is a result of iperf3 without intervals{why}")
    _add_server(data, ways)
    base = _base(data, ways) if rtt_s is None else given(rtt_s, "s")
    both = all(way.seconds for way in ways.values())
    made = {
        name: _direction(data, test, way, base, both) if way.seconds else Direction()
        for name, way in ways.items()
    }
    duration = max(sum(way.seconds) for way in ways.values())
    streams = sum(way.streams for way in ways.values())
    return Found(
        file,
        "iperf3",
        f"iperf3, {test.protocol}, {quantity(duration, 's', 3)}: {streams} streams",
        duration,
        made["down"],
        made["up"],
        base,
        tuple(_flows(test, ways)),
        (_told(test, direction), "what others sent at the same time is not in the file"),
        _timeline(data, test, ways),
    )


def _timeline(data: Mapping[str, Any], test: _Test, ways: Mapping[str, _Way]) -> Timeline | None:
    """Return what the test shows over time: one smoothed round trip an interval, if it has any."""
    told = max(ways.values(), key=lambda way: int(np.isfinite(way.rtts_s).sum()))
    if not np.isfinite(told.rtts_s).any():
        return None
    scale = (test.mss + HEADERS_B) / test.mss
    delivered = {}
    for name, way in ways.items():
        # Of what was written into a socket only the mean is what was received.
        received, sent = _received_bps(data, test, way), sum(way.bytes)
        share = 1.0
        if received is not None and sent:
            share = min(received * sum(way.seconds) / 8 / sent, 1.0)
        if way.seconds and (received is not None or not way.sends):
            ends = np.concatenate([[0.0], np.cumsum(way.seconds)])
            total = np.concatenate([[0.0], np.cumsum(way.bytes)])
            delivered[name] = Delivered(ends, share * scale * total)
    ends = np.cumsum(told.seconds)
    loads = [name for name, way in ways.items() if way.seconds]
    phase = Phase(timeline.BOTH if len(loads) == 2 else loads[0], 0.0, float(ends[-1]))
    known = np.isfinite(told.rtts_s)
    return Timeline(
        (ends - np.array(told.seconds) / 2)[known],
        np.array(told.rtts_s)[known],
        "TCP's own, smoothed",
        delivered,
        (phase,),
        _server(data),
        {name: way.streams for name, way in ways.items() if way.seconds},
        1e-6,
        own=True,
    )


def _server(data: Mapping[str, Any]) -> str:
    told = part(part(data, "start", "iperf3"), "connecting_to", '"start"').get("host")
    return short(told) if isinstance(told, str) else ""


def _test(data: Mapping[str, Any], direction: str | None) -> _Test:
    start = part(data, "start", "iperf3")
    told = part(start, "test_start", '"start"')
    where = '"start": "test_start"'
    protocol = of_kind(told.get("protocol", "TCP"), str, f'{where}: "protocol"').upper()
    if protocol not in ("TCP", "UDP"):
        raise ValueError(f'{where}: "protocol" is "{short(protocol)}"; accepted: TCP or UDP')
    reverse = bool(number(told, "reverse", where, 1))
    is_client = "accepted_connection" not in start
    mss = number(start, "tcp_mss_default", '"start"', 1e9) or number(
        start, "tcp_mss", '"start"', 1e9
    )
    if mss is None or not LEAST_MSS_B <= mss <= MOST_MSS_B:
        mss = SEGMENT_B
    forward = direction or ("down" if reverse else "up")
    if reverse:
        forward = "up" if forward == "down" else "down"
    block = number(told, "blksize", where, 1e9) or 0.0
    return _Test(protocol, reverse, is_client, mss, block, forward)


def _ways(data: Mapping[str, Any], test: _Test) -> dict[str, _Way]:
    ways = {"down": _Way(), "up": _Way()}
    backward = "up" if test.forward == "down" else "down"
    for place, interval in enumerate(of_kind(data["intervals"], list, '"intervals"'), start=1):
        where = f'"intervals": value {place}'
        of_kind(interval, dict, where)
        streams = of_kind(interval.get("streams", []), list, f'{where}: "streams"')
        if len(streams) > 2 * MOST_STREAMS:
            raise ValueError(
                f"{where} has {len(streams)} streams; accepted: up to {2 * MOST_STREAMS}"
            )
        by_way: dict[str, list[Mapping[str, Any]]] = {"down": [], "up": []}
        for stream in streams:
            of_kind(stream, dict, f'{where}: "streams"')
            if stream.get("omitted"):
                continue
            sends = stream.get("sender")
            if not isinstance(sends, bool):
                sends = test.is_client != test.reverse
            is_forward = sends == test.is_client
            name = test.forward if is_forward else backward
            by_way[name].append(stream)
            ways[name].sends = sends
        for name, group in by_way.items():
            if group:
                _add(ways[name], group, f'{where}: "streams"')
    return ways


def _add(way: _Way, streams: list[Mapping[str, Any]], where: str) -> None:
    """Add an interval; one that is too short to tell a rate is left out."""
    seconds = max(number(stream, "seconds", where, MOST_S) or 0.0 for stream in streams)
    sent = sum(number(stream, "bytes", where, MOST_BYTES) or 0.0 for stream in streams)
    way.again += sum(number(one, "retransmits", where, MOST_PACKETS, -1) or 0.0 for one in streams)
    rtts = [number(stream, "rtt", where, MOST_US) or 0.0 for stream in streams]
    lost = [
        number(stream, "lost_packets", where, MOST_PACKETS, -MOST_PACKETS) for stream in streams
    ]
    packets = [number(stream, "packets", where, MOST_PACKETS) for stream in streams]
    if seconds < SHORTEST_S:
        return
    way.seconds.append(seconds)
    way.bytes.append(sent)
    way.rtts_s.append(min(rtts) / 1e6 if min(rtts) > 0 else np.nan)
    way.packets.append(sum(each or 0.0 for each in packets))
    way.lost.append(np.nan if None in lost else max(sum(each or 0.0 for each in lost), 0.0))
    way.streams = max(way.streams, len(streams))


def _add_server(data: Mapping[str, Any], ways: Mapping[str, _Way]) -> None:
    """Add the round trips that the server saw of what it sent (`--get-server-output`)."""
    told = data.get("server_output_json")
    if not isinstance(told, dict) or not is_one(told):
        return
    where = '"server_output_json"'
    trips = []
    for interval in of_kind(told["intervals"], list, f'{where}: "intervals"'):
        of_kind(interval, dict, where)
        streams = of_kind(interval.get("streams", []), list, f'{where}: "streams"')
        rtts = [
            number(of_kind(one, dict, where), "rtt", where, MOST_US) or 0.0
            for one in streams
            if not one.get("omitted") and one.get("sender")
        ]
        if rtts:
            trips.append(min(rtts) / 1e6 if min(rtts) > 0 else np.nan)
    for way in ways.values():
        if way.seconds and not way.sends:
            count = len(way.seconds)
            # Its last interval may be one more or one less.
            way.rtts_s = (trips + [np.nan] * count)[:count]
            if len(trips) == count - 1:
                way.rtts_s[-1] = trips[-1] if trips else np.nan


def _base(data: Mapping[str, Any], ways: Mapping[str, _Way]) -> Estimated:
    """Return the base round trip: at most the least that TCP had smoothed, for it was loaded."""
    seen = [rtt for way in ways.values() for rtt in way.rtts_s if np.isfinite(rtt)]
    count = len(seen)
    for stream in of_kind(part(data, "end", "iperf3").get("streams", []), list, '"end": "streams"'):
        of_kind(stream, dict, '"end": "streams"')
        sender = part(stream, "sender", '"end": "streams"')
        least = number(sender, "min_rtt", '"end": "streams": "sender"', MOST_US)
        if least:
            seen.append(least / 1e6)
    if not seen:
        return Estimated(None, "s", "the file has no round trips: its writer did not send by TCP")
    basis = (
        f"the least of {count} smoothed round trips, one an interval; the line was loaded in all"
    )
    return Estimated(min(seen), "s", basis, bound="at most")


def _direction(
    data: Mapping[str, Any], test: _Test, way: _Way, base: Estimated, both: bool
) -> Direction:
    seconds, sent = np.array(way.seconds), np.array(way.bytes)
    waits = np.array(way.rtts_s) - (base.value or 0.0)
    if test.protocol == "UDP":
        return _of_udp(data, way, seconds, sent, both)
    size = sent * (test.mss + HEADERS_B) / test.mss
    grain = test.block_b * way.streams if way.sends else 0.0
    middle = Intervals(seconds, size, np.maximum(waits, 0.0), grain).middle()
    why = transfers.why_no_queue(middle)
    if why and np.isfinite(middle.wait_s).all() and not base.given:
        why += " (the least was seen under load: --rtt TIME gives that of the idle line)"
    if both:
        why = why or "transfers go both ways, so that round trips do not tell which way is full"
    received = _received_bps(data, test, way)
    how = f"of the goodput with headers of {HEADERS_B} bytes for each {test.mss:.0f}"
    if way.sends and received is None:
        reason = "the file has what was written into sockets, and not what was received"
        rate = Estimated(None, "bit/s", reason)
    else:
        scale = (test.mss + HEADERS_B) / test.mss
        received = None if received is None else received * scale
        least = (test.mss + LEAST_HEADERS_B) / (test.mss + HEADERS_B)
        rate = transfers.rate(middle, why, how, received, least)
    loss = Estimated(None, "", "the file has no count of retransmissions")
    if way.sends and sent.any():
        segments = max(float(sent.sum()) / test.mss, way.again, 1.0)
        again = max(way.again, 0.0)
        loss = Estimated(
            again / segments,
            "",
            f"{again:.0f} of about {segments:.0f} TCP segments were sent again",
        )
    seen = waits[np.isfinite(waits)]
    missing = "the file has no losses that tell when a buffer is full"
    wait = Estimated(None, "s", missing)
    if len(seen) and seen.max() > 0 and not both:
        basis = "the longest smoothed round trip above the least; nothing tells that it was full"
        wait = Estimated(float(seen.max()), "s", basis, bound="at least")
    return Direction(
        rate=rate,
        buffer=Estimated(None, "B", missing),
        wait=wait,
        loss=loss,
        bytes=int(size.sum()),
    )


def _received_bps(data: Mapping[str, Any], test: _Test, way: _Way) -> float | None:
    """Return the goodput that was received on average, where the file's writer sent; else None."""
    if not way.sends:
        return None
    # What a client receives in a test of both directions has a name of its own.
    forward = test.is_client
    both = part(data, "end", "iperf3")
    name = (
        "sum_received" if forward or not _is_bidirectional(both) else "sum_received_bidir_reverse"
    )
    total = part(both, name, '"end"')
    where = f'"end": "{name}"'
    got = number(total, "bytes", where, MOST_BYTES)
    seconds = number(total, "seconds", where, MOST_S)
    if not got or not seconds or seconds < SHORTEST_S:
        return None
    trips = [trip for trip in way.rtts_s if np.isfinite(trip)]
    return 8 * got / (seconds + max(trips, default=DRAIN_S))


def _is_bidirectional(end: Mapping[str, Any]) -> bool:
    return "sum_received_bidir_reverse" in end


def _of_udp(
    data: Mapping[str, Any], way: _Way, seconds: Array, sent: Array, both: bool
) -> Direction:
    """Return what a test by UDP tells: what was received, if much was lost all the time."""
    packets, lost = np.array(way.packets), np.array(way.lost)
    missing = "UDP of iperf3 has no round trips"
    share = Estimated(None, "", "the file does not tell what was lost")
    if way.sends:
        total = part(part(data, "end", "iperf3"), "sum", '"end"')
        all_sent = number(total, "packets", '"end": "sum"', MOST_PACKETS) or 0.0
        all_lost = number(total, "lost_packets", '"end": "sum"', MOST_PACKETS, -MOST_PACKETS)
        if all_lost is None or not all_sent:
            reason = "the file has what was sent, and not what was received"
            return Direction(
                Estimated(None, "bit/s", reason),
                buffer=Estimated(None, "B", missing),
                wait=Estimated(None, "s", missing),
                loss=share,
                bytes=int(sent.sum()),
            )
        part_lost = min(max(all_lost, 0.0) / all_sent, 1.0)
        whole = float(seconds.sum())
        size = (sent + UDP_B * packets) * (1 - part_lost) * whole / (whole + DRAIN_S)
        share = Estimated(part_lost, "", f"{max(all_lost, 0):.0f} of {all_sent:.0f} UDP packets")
        why = "the sender does not know what was lost in each interval (a receiver does: -R)"
    else:
        received = np.maximum(packets - np.nan_to_num(lost), 0.0)
        size = sent + UDP_B * received
        count = float(packets.sum())
        if count and np.isfinite(lost).all():
            gone = float(min(lost.sum(), count))
            share = Estimated(gone / count, "", f"{gone:.0f} of {count:.0f} UDP packets")
        shares = lost / np.maximum(packets, 1.0)
        few = float(np.quantile(np.nan_to_num(shares), rates.STANDING))
        why = (
            ""
            if few >= FULL_LOSS
            else f"in a tenth of the intervals {100 * few:.2g} % or less were lost, and "
            f"{100 * FULL_LOSS:.0f} % in all of them would show it"
        )
    if both:
        why = why or "transfers go both ways"
    how = f"of what was received with headers of {UDP_B} bytes a packet"
    middle = Intervals(seconds, size, np.full(len(seconds), np.nan)).middle()
    return Direction(
        rate=transfers.rate(middle, why, how),
        buffer=Estimated(None, "B", missing),
        wait=Estimated(None, "s", missing),
        loss=share,
        bytes=int(size.sum()),
    )


def _flows(test: _Test, ways: Mapping[str, _Way]) -> Iterator[Flows]:
    for name, way in ways.items():
        if way.seconds and test.protocol == "TCP" and sum(way.bytes):
            bps = 8 * sum(way.bytes) / sum(way.seconds) * (test.mss + HEADERS_B) / test.mss
            yield Flows("bulk", name, way.streams, bps, int(test.mss) + HEADERS_B, tcp="linux")


def _told(test: _Test, direction: str | None) -> str:
    if direction is not None:
        return f"the data of the test went {direction}, as --direction says"
    other = "up" if test.reverse else "down"
    return (
        "the client of iperf3 is taken to be at the line, and its server beyond it "
        f"(--direction {other}: the data of the test went {other})"
    )
