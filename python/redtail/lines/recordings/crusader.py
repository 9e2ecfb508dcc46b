"""Results of crusader, as `crusader export` writes them in JSON.

Source of the form: src/crusader-lib/src/file_format.rs of crusader 0.3: what was transferred over
time, and pings beside it. Bytes are those that were received. The file that crusader itself keeps
(.crr) is compressed and binary; it is recognised, and not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import course, pings, rates, transfers
from redtail.lines.recordings.course import Course
from redtail.lines.recordings.documents import number, of_kind
from redtail.lines.recordings.found import Direction, Flows, Found
from redtail.lines.recordings.transfers import HEADERS_B, LEAST_HEADERS_B, SEGMENT_B, Intervals
from redtail.lines.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

MAGIC = 0x5372AB82AE7C59CB.to_bytes(8, "little")
"""How a .crr file begins."""

BINARY = (
    "is a result of crusader in its binary form; `crusader export FILE` converts it to JSON, which "
    "is read"
)

INTERVALS = 20
"""Intervals of a transfer in which the rate and the queue are looked at."""

MOST_S, MOST_BYTES, MOST_STREAMS = 1e9, 1e17, 10_000


def is_one(data: Mapping[str, Any]) -> bool:
    """Return whether an object is a result of crusader."""
    return "stream_groups" in data


@dataclass(frozen=True)
class _Load:
    """A transfer of one direction.

    Attributes:
        at_s: times.
        total_b: payload that was received up to each.
        streams: connections.
        beside: whether the other direction was loaded, too.
    """

    at_s: Array
    total_b: Array
    streams: int
    beside: bool


def estimate(data: Mapping[str, Any], file: Path, direction: str | None = None) -> Found:
    """Return what a result of crusader tells of a line.

    Args:
        data: the document.
        file: where it is from.
        direction: none is accepted, for a result names its directions.

    Raises:
        ValueError: it has neither transfers nor pings, or impossible values; the text says which.
    """
    if direction is not None:
        raise ValueError("--direction: a result of crusader names its directions itself")
    loads = _loads(data)
    sent, trip = _pings(data)
    answered = np.isfinite(trip)
    if not loads and answered.sum() < pings.FEWEST:
        raise ValueError("it is a result of crusader with neither transfers nor pings")
    base = Estimated(None, "s", "the file has few pings or none")
    if answered.sum() >= pings.FEWEST:
        base = pings.base(trip[answered])
    made = {
        name: _direction(name, loads[name], sent, trip) if name in loads else Direction()
        for name in ("down", "up")
    }
    length = _seconds(data.get("duration", 0), '"duration"')
    about = f"crusader, {quantity(length, 's', 3)}: {int(answered.sum())} pings"
    flows = tuple(
        Flows("bulk", name, load.streams, _scaled(load), SEGMENT_B + HEADERS_B, tcp="linux")
        for name, load in loads.items()
        if _scaled(load) > 0
    )
    caution = (
        f"rates are what was received with headers of {HEADERS_B} bytes for each {SEGMENT_B}; what "
        "others sent at the same time is not in the file"
    )
    return Found(
        file, "crusader", about, length, made["down"], made["up"], base, flows, (caution,),
        _course(data, sent, trip),
    )  # fmt: skip


def _course(data: Mapping[str, Any], sent: Array, trip: Array) -> Course | None:
    """Return what the result shows over time: of all its transfers, not one a direction."""
    found: dict[str, list[_Load]] = {}
    for name, load in _groups(data):
        found.setdefault(name, []).append(load)
    if not found or not len(sent):
        return None
    delivered = {name: _one_after_another(groups) for name, groups in found.items()}
    streams = {name: max(load.streams for load in groups) for name, groups in found.items()}
    order = np.argsort(sent, kind="stable")
    ends = [way.at_s[-1] for way in delivered.values()]
    phases = course.phases_of(delivered, float(sent.min()), float(max(sent.max(), *ends)))
    return Course(sent[order], trip[order], "UDP", delivered, phases, "", streams)


def _one_after_another(groups: list[_Load]) -> course.Delivered:
    at: list[Array] = []
    total: list[Array] = []
    done = 0.0
    for load in sorted(groups, key=lambda each: float(each.at_s[0])):
        at.append(load.at_s)
        total.append((load.total_b - load.total_b[0]) * (SEGMENT_B + HEADERS_B) / SEGMENT_B + done)
        done = float(total[-1][-1])
    return course.Delivered(np.concatenate(at), np.concatenate(total))


def _scaled(load: _Load) -> float:
    length = float(load.at_s[-1] - load.at_s[0])
    payload = float(load.total_b[-1] - load.total_b[0])
    return 8 * payload / length * (SEGMENT_B + HEADERS_B) / SEGMENT_B


def _loads(data: Mapping[str, Any]) -> dict[str, _Load]:
    """Return the transfer of each direction: the one beside which nothing else was sent, if any."""
    found: dict[str, _Load] = {}
    for name, load in _groups(data):
        if name not in found or (found[name].beside and not load.beside):
            found[name] = load
    return found


def _groups(data: Mapping[str, Any]) -> Iterator[tuple[str, _Load]]:
    """Yield the transfers with their directions."""
    groups = of_kind(data["stream_groups"], list, '"stream_groups"')
    for place, group in enumerate(groups, start=1):
        where = f'"stream_groups": value {place}'
        of_kind(group, dict, where)
        streams = of_kind(group.get("streams", []), list, f'{where}: "streams"')
        load = _load(streams, bool(group.get("both")), where)
        if load is not None:
            yield ("down" if group.get("download") else "up"), load


def _load(streams: list[Any], beside: bool, where: str) -> _Load | None:
    if len(streams) > MOST_STREAMS:
        raise ValueError(f"{where} has {len(streams)} streams; accepted: up to {MOST_STREAMS}")
    columns = []
    for place, stream in enumerate(streams, start=1):
        here = f'{where}: "streams": value {place}'
        points = of_kind(of_kind(stream, dict, here).get("data", []), list, f'{here}: "data"')
        at = np.array([_seconds(of_kind(one, dict, here).get("time"), here) for one in points])
        got = np.array([number(one, "bytes", here, MOST_BYTES) or 0.0 for one in points])
        if (np.diff(at) < 0).any() or (np.diff(got) < 0).any():
            raise ValueError(f"{here}: times and bytes go back; accepted: numbers that grow")
        if len(at) > 1 and at[-1] > at[0]:
            columns.append((at, got))
    if not columns:
        return None
    begin, end = max(at[0] for at, _ in columns), min(at[-1] for at, _ in columns)
    if end <= begin:
        return None
    grid = np.linspace(begin, end, INTERVALS + 1)
    total = sum(np.interp(grid, at, got) for at, got in columns)
    return _Load(grid, np.asarray(total), len(columns), beside)


def _pings(data: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return when pings were sent, and their round trips; NaN without an answer."""
    sent, trips = [], []
    for place, ping in enumerate(of_kind(data.get("pings", []), list, '"pings"'), start=1):
        where = f'"pings": value {place}'
        of_kind(ping, dict, where)
        latency = ping.get("latency") or {}
        total = of_kind(latency, dict, f'{where}: "latency"').get("total")
        sent.append(_seconds(ping.get("sent"), where))
        trips.append(np.nan if total is None else _seconds(total, where))
    trip = np.array(trips, float)
    trip[trip > pings.LONGEST_TRIP_S] = np.nan
    return np.array(sent, float), trip


def _direction(name: str, load: _Load, sent: Array, trip: Array) -> Direction:
    seconds = np.diff(load.at_s)
    size = np.diff(load.total_b) * (SEGMENT_B + HEADERS_B) / SEGMENT_B
    answered = np.isfinite(trip)
    wait = trip - trip[answered].min() if answered.any() else trip
    each = np.full(len(seconds), np.nan)
    for place, (begin, end) in enumerate(zip(load.at_s[:-1], load.at_s[1:], strict=True)):
        inside = wait[(sent >= begin) & (sent < end) & answered]
        if len(inside):
            each[place] = np.quantile(inside, rates.STANDING)
    middle = Intervals(seconds, size, each).middle()
    why = transfers.why_no_queue(middle)
    if load.beside:
        why = why or "the other direction was loaded, too"
    how = "of what was received with its headers"
    rate = transfers.rate(middle, why, how, least=SEGMENT_B / (rates.PACKET_B - LEAST_HEADERS_B))
    missing = Estimated(None, "s", "the file has few pings beside the transfer")
    full = missing
    inside = (sent >= load.at_s[0]) & (sent < load.at_s[-1])
    seq = np.flatnonzero(inside & answered)
    if len(seq) >= pings.FEWEST and not load.beside:
        ends = np.flatnonzero(inside)[[0, -1]]
        series = pings.series(seq, sent[seq], wait[seq], True, (int(ends[0]), int(ends[1])))
        full = pings.full_wait(series)
    buffer = Estimated(None, "B", f"it takes the rate and the wait; --{name} gives the rate")
    if rate.value is not None and full.value is not None and not rate.bound:
        scale = rate.value / 8
        buffer = Estimated(
            full.value * scale,
            "B",
            f"the wait of pings times the rate; {full.basis}",
            None if full.low is None else full.low * scale,
            None if full.high is None else full.high * scale,
            full.bound,
        )
    loss = Estimated(None, "", "the file does not tell the losses of transfers")
    return Direction(rate=rate, buffer=buffer, wait=full, loss=loss, bytes=int(size.sum()))


def _seconds(value: object, where: str) -> float:
    """Return a duration: of Rust's `Duration` seconds and nanoseconds."""
    told = of_kind(value, dict, f"{where}: a duration") if value != 0 else {}
    whole = number(told, "secs", where, MOST_S) or 0.0
    return whole + (number(told, "nanos", where, 1e9) or 0.0) / 1e9
