"""Results of crusader, as `crusader export` writes them in JSON.

Source of the form: src/crusader-lib/src/file_format.rs of crusader 0.3: what was transferred over
time, and pings beside it. Bytes are those that were received. The file that crusader itself keeps
(.crr) is compressed and binary; it is recognised, and not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import loaded, pings, timeline
from redtail.lines.recordings.documents import number, of_kind
from redtail.lines.recordings.found import Direction, Found
from redtail.lines.recordings.loaded import Load
from redtail.lines.recordings.timeline import Timeline
from redtail.lines.recordings.transfers import WIRE
from redtail.lines.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

MAGIC = 0x5372AB82AE7C59CB.to_bytes(8, "little")
"""How a .crr file begins."""

BINARY = (
    "is a result of crusader in its binary form; `crusader export FILE` converts it to JSON, which "
    "is read"
)

MOST_S, MOST_BYTES, MOST_STREAMS = 1e9, 1e17, 10_000


def is_one(data: Mapping[str, Any]) -> bool:
    """Return whether an object is a result of crusader."""
    return "stream_groups" in data


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
        name: loaded.direction(name, loads[name], sent, trip) if name in loads else Direction()
        for name in ("down", "up")
    }
    length = _seconds(data.get("duration", 0), '"duration"')
    about = f"crusader, {quantity(length, 's', 3)}: {int(answered.sum())} pings"
    flows = loaded.flows(loads)
    cautions = (loaded.CAUTION,)
    over_time = _timeline(data, sent, trip)
    return Found(
        file, "crusader", about, length, made["down"], made["up"], base, flows, cautions, over_time
    )


def _timeline(data: Mapping[str, Any], sent: Array, trip: Array) -> Timeline | None:
    """Return what the result shows over time: of all its transfers, not one a direction."""
    found: dict[str, list[Load]] = {}
    for name, load in _groups(data):
        found.setdefault(name, []).append(load)
    if not found or not len(sent):
        return None
    delivered = {
        name: timeline.summed([(load.at_s, load.total_b) for load in some], WIRE)
        for name, some in found.items()
    }
    order = np.argsort(sent, kind="stable")
    ends = [way.at_s[-1] for way in delivered.values()]
    phases = timeline.phases_of(delivered, float(sent.min()), float(max(sent.max(), *ends)))
    streams = {name: max(load.streams for load in some) for name, some in found.items()}
    return Timeline(sent[order], trip[order], "UDP", delivered, phases, "", streams)


def _loads(data: Mapping[str, Any]) -> dict[str, Load]:
    """Return the transfer of each direction: the one beside which nothing else was sent, if any."""
    found: dict[str, Load] = {}
    for name, load in _groups(data):
        if name not in found or (found[name].beside and not load.beside):
            found[name] = load
    return found


def _groups(data: Mapping[str, Any]) -> Iterator[tuple[str, Load]]:
    """Yield the transfers with their directions."""
    groups = of_kind(data["stream_groups"], list, '"stream_groups"')
    for place, group in enumerate(groups, start=1):
        where = f'"stream_groups": value {place}'
        of_kind(group, dict, where)
        streams = of_kind(group.get("streams", []), list, f'{where}: "streams"')
        load = _load(streams, bool(group.get("both")), where)
        if load is not None:
            yield ("down" if group.get("download") else "up"), load


def _load(streams: list[Any], beside: bool, where: str) -> Load | None:
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
        columns.append((at, got))
    return loaded.load(columns, beside)


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


def _seconds(value: object, where: str) -> float:
    """Return a duration: of Rust's `Duration` seconds and nanoseconds."""
    told = of_kind(value, dict, f"{where}: a duration") if value != 0 else {}
    whole = number(told, "secs", where, MOST_S) or 0.0
    return whole + (number(told, "nanos", where, 1e9) or 0.0) / 1e9
