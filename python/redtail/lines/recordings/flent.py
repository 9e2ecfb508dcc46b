"""Data files of Flent: goodputs and pings over time.

Source of the form: doc/data-format.rst of Flent. Series are told apart by their names ("TCP
download", "TCP upload BE", "Ping (ms) ICMP"), their unit stands in the metadata. Pings of irtt have
the delay of each direction beside the round trip (`IrttRunner` in flent/runners.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import buffers, one_way, pings, rates, timeline
from redtail.lines.recordings.documents import numbers, of_kind, short, shown
from redtail.lines.recordings.found import Direction, Flows, Found
from redtail.lines.recordings.pings import Pings
from redtail.lines.recordings.rates import PACKET_B, Deliveries
from redtail.lines.recordings.timeline import Delivered, Timeline
from redtail.lines.recordings.transfers import HEADERS_B, LEAST_HEADERS_B, SEGMENT_B, WIRE
from redtail.lines.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

ACK_B = 52.0 / 2
"""Bytes of acknowledgements for each segment: one for every second (RFC 9293, section 3.8.6.3)."""

KEYS = {"version", "metadata", "x_values", "results"}
"""What a data file has."""

_SUMS = ("avg", "sum", "totals")

SHORTEST_S, WINDOWS = 1.0, 30
"""Transfers tell what they have sent in irregular steps, which evens out over a second or more: a
window is so long, and at least so long that a file has so many."""

MIDDLE = 0.1
"""Share of the time of load at either end that is left out where a mean or a standing queue is
looked for: transfers begin and end, and what a sender has written into its socket is not delivered
yet."""

FEWEST_IDLE, APART_S = 5, 2.0
"""Pings without load that tell how much round trips vary then, and how long before the first report
of a transfer or after the last one they passed: a transfer begins before it reports."""

MOST_MBPS, MOST_MS, LATEST_S = 1e6, 1e3 * pings.LONGEST_TRIP_S, pings.LATEST_S
"""The largest goodput, round trip and time that are accepted."""

MOST_APART_MS = 1e3 * LATEST_S
"""How far apart two clocks may be: a delay of one direction has their distance in it."""

MOST_APART = 65536
"""How much larger the number of a ping may be than that before it: ICMP has so many numbers."""


def read(data: object) -> Mapping[str, Any]:
    """Return the content of a data file.

    Raises:
        ValueError: it has another form; the text says what is missing, or which value is wrong.
    """
    if not isinstance(data, dict):
        raise ValueError("it is JSON, but no data file of Flent: there is no object at the top")
    kinds = {"version": object, "metadata": dict, "x_values": list, "results": dict}
    for key, kind in kinds.items():
        if key not in data:
            raise ValueError(f'it is JSON, but no data file of Flent: there is no "{key}"')
        of_kind(data[key], kind, f'"{key}"')
    of_kind(data.get("raw_values", {}), dict, '"raw_values"')
    of_kind(data["metadata"].get("SERIES_META", {}), dict, '"metadata": "SERIES_META"')
    of_kind(data["metadata"].get("NAME", ""), str, '"metadata": "NAME"')
    length = len(data["x_values"])
    for name, values in data["results"].items():
        of_kind(values, list, f'the series "{short(name)}"')
        if len(values) != length:
            raise ValueError(
                f'the series "{short(name)}" has {len(values)} values, and there are {length} '
                "x_values"
            )
    return data


def _times(data: Mapping[str, Any]) -> Array:
    at = numbers(data["x_values"], '"x_values"', LATEST_S, -LATEST_S)
    steps = np.diff(at)
    wrong = np.flatnonzero(~(steps >= 0))
    if len(wrong):
        raise ValueError(
            f'"x_values": value {wrong[0] + 2} is {shown(data["x_values"][wrong[0] + 1])}; '
            "accepted: numbers, none before the one in front of it"
        )
    if not steps.any():
        raise ValueError(f'"x_values": {len(at)} values take no time; accepted: two times or more')
    return at


def estimate(data: Mapping[str, Any], file: Path) -> Found:
    """Return what a data file of Flent tells of a line.

    Raises:
        ValueError: it has neither transfers nor pings; the text says so.
    """
    at = _times(data)
    goodputs: dict[str, Array] = {"down": np.zeros(len(at)), "up": np.zeros(len(at))}
    counts = {"down": 0, "up": 0}
    for direction, values in _transfers(data):
        counts[direction] += 1
        goodputs[direction] += _filled(values)
    series = _pings(data, at)
    echoes = max(series, key=lambda each: len(each.pings.trip_s), default=None)
    if not any(counts.values()) and echoes is None:
        names = ", ".join(short(name) for name in list(data["results"])[:5])
        raise ValueError(
            f"it has no series of TCP downloads, uploads or pings; its series are: {names}"
        )
    duration = float(at[-1] - at[0])
    step = duration / (len(at) - 1)
    both = all(counts.values())
    unknown = (
        "transfers fill both directions, so that pings do not tell which of them a queue is in"
        if both
        else "the file has no pings that tell whether a queue stood"
    )
    split = max(
        (each for each in series if each.ways),
        key=lambda each: len(each.pings.trip_s),
        default=None,
    )
    waits = {
        name: replace(split, pings=split.ways[name]) if split else None if both else echoes
        for name in one_way.DIRECTIONS
    }
    ways = {
        name: _direction(at, step, goodputs, name, waits[name], unknown)
        if counts[name]
        else Direction()
        for name in ("down", "up")
    }
    cautions = [
        "the rate is computed from TCP's goodput with headers of 52 bytes for each 1448, and "
        "acknowledgements of every second segment of the other direction"
    ]
    rtt = Found(file, "flent", "", 0.0).rtt
    if echoes is not None:
        rtt = pings.base(np.concatenate([each.pings.trip_s for each in series]))
        if split is None:
            ways, told = _with_wait(ways, counts, pings.full_wait(echoes.pings))
        else:
            ways, told = _with_waits(ways, counts, split)
        cautions.append(told)
    over_time = None if echoes is None else _timeline(data, at, goodputs, counts, echoes)
    about = short(data["metadata"].get("NAME", "?"))
    total = sum(counts.values())
    return Found(
        file,
        "flent",
        f"Flent's {about}, {quantity(duration, 's', 3)}: {total} TCP transfers"
        + (f", {sum(len(each.pings.trip_s) for each in series)} pings" if series else ""),
        duration,
        ways["down"],
        ways["up"],
        rtt,
        tuple(_flows(goodputs, counts)),
        tuple(cautions),
        over_time,
    )


def _timeline(
    data: Mapping[str, Any],
    at: Array,
    goodputs: Mapping[str, Array],
    counts: Mapping[str, int],
    echoes: _Echoes,
) -> Timeline:
    """Return what the file shows over time: transfers, and the longest series of pings."""
    delivered = {
        # The value at a time is of what came since the one before it.
        name: Delivered(at, np.cumsum(WIRE / 8 * goodputs[name] * np.diff(at, prepend=at[0])))
        for name, count in counts.items()
        if count
    }
    sent, trips = pings.over_time(echoes.pings, echoes.begin_s)
    phases = timeline.phases_of(delivered, float(at[0]), float(at[-1])) if delivered else ()
    host = data["metadata"].get("HOST")
    server = short(host) if isinstance(host, str) else ""
    return Timeline(sent, trips, echoes.probe, delivered, phases, server, counts)


def _filled(goodput: Array) -> Array:
    """Return a transfer's goodput at all times: 0 before its first report and after its last.

    A report is of the time since the one before it, so what is missing between two is the later.

    >>> _filled(np.array([np.nan, 2.0, np.nan, np.nan, 1.0, np.nan])).tolist()
    [0.0, 2.0, 1.0, 1.0, 1.0, 0.0]
    """
    known = np.flatnonzero(np.isfinite(goodput))
    found = np.zeros(len(goodput))
    if len(known):
        inside = np.arange(known[0], known[-1] + 1)
        found[inside] = goodput[known[np.searchsorted(known, inside)]]
    return found


def _transfers(data: Mapping[str, Any]) -> Iterator[tuple[str, Array]]:
    """Yield the series of single transfers: direction, goodput in bit/s."""
    about = data["metadata"].get("SERIES_META", {})
    for name, values in data["results"].items():
        lower = name.lower()
        if "::" in name and not name.rsplit("::", 1)[1].isdigit():
            continue  # the state of a socket, not its goodput
        if not lower.startswith("tcp ") or lower.split()[-1] in _SUMS or " totals" in lower:
            continue
        direction = "down" if "download" in lower else "up" if "upload" in lower else None
        told = about.get(name, {})
        of_kind(told, dict, f'"metadata": "SERIES_META": "{short(name)}"')
        if direction is not None and told.get("UNITS", "Mbits/s") == "Mbits/s":
            yield direction, 1e6 * numbers(values, f'the series "{short(name)}"', MOST_MBPS)


@dataclass(frozen=True)
class _Echoes:
    """A series of pings.

    Attributes:
        pings: the pings.
        begin_s: when the first was sent, on the clock of the file's x_values.
        probe: the protocol, as the series names it.
        ways: the waits of each direction as series, if the clocks tell them; else empty.
    """

    pings: Pings
    begin_s: float
    probe: str
    ways: Mapping[str, Pings] = field(default_factory=dict)


def _pings(data: Mapping[str, Any], at: Array) -> list[_Echoes]:
    """Return the series of pings of a file that have enough of them."""
    found: list[_Echoes] = []
    raw = data.get("raw_values", {})
    for name, values in data["results"].items():
        if not name.startswith("Ping (ms)") or name.split()[-1] in _SUMS:
            continue
        where, probe = f'the series "{short(name)}"', _probe(name)
        trip = numbers(values, where, MOST_MS) / 1e3
        some = np.isfinite(trip)
        begin = float(at[some][0]) if some.any() else 0.0
        rows = _of_rows(raw.get(name, []), f'"raw_values": "{short(name)}"', begin, probe)
        if rows is not None:
            found.append(rows)
        elif some.sum() >= pings.FEWEST:
            since = at[some] - at[some][0]
            only = Pings(since, trip[some], np.zeros(0), True, 0)
            found.append(_Echoes(only, begin, probe))
    return found


def _probe(name: str) -> str:
    """Return what the pings of a series are: "Ping (ms) UDP EF" has packets of UDP.

    >>> _probe("Ping (ms) UDP EF"), _probe("Ping (ms)::tcp")
    ('UDP', 'TCP')
    """
    words = re.findall(r"[A-Z]+", name.upper().removeprefix("PING (MS)"))
    return next((word for word in words if word in ("UDP", "TCP", "ICMP")), "ICMP")


def _of_rows(rows: object, where: str, begin_s: float, probe: str) -> _Echoes | None:
    """Return the pings of a raw series; None without numbers, or if there are few."""
    if not isinstance(rows, list):
        raise ValueError(f"{where} is {shown(rows)}; accepted: a list")
    for number, row in enumerate(rows, start=1):
        of_kind(row, dict, f"{where}: value {number}")
    lost = [row for row in rows if row.get("lost") is True and row.get("seq") is not None]
    rows = [row for row in rows if row.get("val") is not None and row.get("t") is not None]
    if len(rows) < pings.FEWEST or any(row.get("seq") is None for row in rows):
        return None

    def column(of: list[Any], key: str, most: float, least: float = 0.0) -> Array:
        return numbers([row.get(key) for row in of], f'{where}: "{key}"', most, least)

    seq = column(rows, "seq", 2.0**52)
    trip = column(rows, "val", MOST_MS) / 1e3
    sent = column(rows, "t", LATEST_S, -LATEST_S)
    delays = {
        name: column(rows, f"owd_{name}", MOST_APART_MS, -MOST_APART_MS) / 1e3
        for name in one_way.DIRECTIONS
    }
    order = np.argsort(seq, kind="stable")
    seq = seq[order].astype(np.int64)
    far = np.flatnonzero(np.diff(seq) > MOST_APART)
    if len(far):
        raise ValueError(
            f'{where}: "seq" goes from {seq[far[0]]} to {seq[far[0] + 1]}; accepted: at most '
            f"{MOST_APART} more"
        )
    whole = pings.series(seq, sent[order], trip[order], True)
    delays = {name: delay[order] for name, delay in delays.items()}
    if one_way.why_not(delays, trip[order]):
        return _Echoes(whole, begin_s, probe)
    gone = {
        name: np.interp(
            np.sort(column([row for row in lost if row.get("lost_dir") == name], "seq", 2.0**52)),
            seq,
            whole.sent_s,
        )
        for name in one_way.DIRECTIONS
    }
    return _Echoes(whole, begin_s, probe, one_way.split(delays, whole, gone))


def _direction(
    at: Array,
    step: float,
    goodputs: dict[str, Array],
    name: str,
    waits: _Echoes | None,
    unknown: str,
) -> Direction:
    """Return what transfers of a direction tell of it; `unknown` is why there are no `waits`."""
    other = "up" if name == "down" else "down"
    data = goodputs[name] * (SEGMENT_B + HEADERS_B) / SEGMENT_B
    acks = goodputs[other] * ACK_B / SEGMENT_B
    size = (data + acks) * step / 8
    loaded = goodputs[name] > 0
    if not loaded.any():
        reason = "no transfer of this direction delivered anything"
        return Direction(rate=Estimated(None, "bit/s", reason))
    first, last = np.flatnonzero(loaded)[[0, -1]]
    part = slice(first, last + 1)
    carried = float((data + acks)[part].sum())
    share = float(acks[part].sum()) / carried
    duration = float(at[last] - at[first])
    deliveries = Deliveries(
        at[part],
        size[part],
        share,
        "as the goodput of transfers with their headers and acknowledgements",
    )
    found = rates.near_largest(deliveries, shortest_s=max(SHORTEST_S, 5 * step, duration / WINDOWS))
    mean, why = found.mean, unknown
    if waits is not None:
        why = _why_not_full(waits, float(at[first]), float(at[last]), mean.value or 0.0)
    is_full = mean.known and not mean.bound and not why
    if mean.known and not is_full:
        why = why or "what was delivered in windows of time was not alike"
        mean = _mean_of_middle(at[part], goodputs[name][part], why)
    missing = "Flent's file has no losses in this direction that tell when a buffer is full"
    return Direction(
        rate=mean,
        steps=found.steps if is_full else (),
        trace_ms=found.trace_ms if is_full else (),
        buffer=Estimated(None, "B", missing),
        wait=Estimated(None, "s", missing),
        loss=Estimated(None, "", "Flent's file has no losses"),
        busy=float(found.busy.mean()) if is_full and len(found.busy) and found.form else None,
        bytes=int(size.sum()),
    )


def _middle(at: Array, begin: float, end: float) -> Array:
    """Return which times are within a begin and an end, without `MIDDLE` of it on either side."""
    margin = MIDDLE * (end - begin)
    found: Array = (at >= begin + margin) & (at <= end - margin)
    return found


def _why_not_full(waits: _Echoes, begin: float, end: float, bps: float) -> str:
    """Return why pings do not tell that a link was full from a begin to an end; empty if they do.

    A link is full while packets wait for it.
    """
    sent, wait = waits.begin_s + waits.pings.sent_s, waits.pings.wait_s
    loaded = wait[_middle(sent, begin, end)]
    if len(loaded) < pings.FEWEST:
        return f"{len(loaded)} pings passed while transfers did"
    apart = min(MIDDLE * (end - begin), APART_S)
    idle = wait[(sent < begin - apart) | (sent > end + apart)]
    noise = float(np.quantile(idle, 0.95)) if len(idle) >= FEWEST_IDLE else 0.0
    standing = float(np.quantile(loaded, rates.STANDING))
    if standing > rates.standing_s(bps, noise):
        return ""
    beside = f", and pings without load up to {quantity(noise, 's', 3)}" if noise > 0 else ""
    return (
        f"a tenth of the pings waited {quantity(standing, 's', 3)} or less beside the transfers"
        f"{beside}, so that no queue of {rates.STANDING_PACKETS} packets was seen to stand"
    )


def _mean_of_middle(at: Array, goodput: Array, why: str) -> Estimated:
    """Return what transfers delivered on average, as a lower bound of a rate.

    Only their own data counts, with the shortest headers: acknowledgements of the other direction
    are not in the file.
    """
    inside = _middle(at, at[0], at[-1])
    if not inside.any():
        return Estimated(None, "bit/s", f"transfers took too short a time; {why}")
    basis = (
        f"the mean of transfers over {quantity(float(np.ptp(at[inside])), 's', 3)} with headers of "
        f"40 bytes for each 1460; the link is not known to have been full: {why}"
    )
    mean = float(goodput[inside].mean()) * PACKET_B / (PACKET_B - LEAST_HEADERS_B)
    return Estimated(mean, "bit/s", basis, bound="at least")


def _with_wait(
    ways: dict[str, Direction], counts: Mapping[str, int], full: Estimated
) -> tuple[dict[str, Direction], str]:
    """Give the wait of the pings to the direction that transfers have filled."""
    loaded = [name for name, count in counts.items() if count]
    if len(loaded) == 2:
        told = (
            "transfers fill both directions, and a ping waits in both: neither buffer can be told "
            f"from it; together they make a ping wait {full.text}"
        )
        reason = "transfers fill both directions, and a ping waits in both"
        unknown = {
            name: replace(
                way, buffer=Estimated(None, "B", reason), wait=Estimated(None, "s", reason)
            )
            for name, way in ways.items()
        }
        return unknown, told
    name = loaded[0] if loaded else "down"
    way = ways[name]
    size = buffers.of_wait(full, way.rate, name)
    told = f"all that pings wait is taken to be {name}; a fair queue would hide it from them"
    return {**ways, name: replace(way, wait=full, buffer=size)}, told


def _with_waits(
    ways: dict[str, Direction], counts: Mapping[str, int], split: _Echoes
) -> tuple[dict[str, Direction], str]:
    """Give each direction that transfers have filled the wait that the clocks of both ends tell."""
    made = dict(ways)
    for name, count in counts.items():
        if count:
            full = pings.full_wait(split.ways[name])
            size = buffers.of_wait(full, ways[name].rate, name)
            made[name] = replace(ways[name], wait=full, buffer=size)
    return made, (
        "irtt's delays of each direction tell where packets waited; a fair queue would hide it "
        "from them"
    )


def _flows(goodputs: Mapping[str, Array], counts: Mapping[str, int]) -> Iterator[Flows]:
    for name, count in counts.items():
        if count:
            loaded = goodputs[name][goodputs[name] > 0]
            mean = float(loaded.mean()) if len(loaded) else 0.0
            bps = mean * (SEGMENT_B + HEADERS_B) / SEGMENT_B
            yield Flows("bulk", name, count, bps, SEGMENT_B + HEADERS_B, tcp="linux")
