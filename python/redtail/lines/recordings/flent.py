"""Data files of Flent: goodputs and pings over time.

Source of the form: doc/data-format.rst of Flent. Series are told apart by their names ("TCP
download", "TCP upload BE", "Ping (ms) ICMP"), their unit stands in the metadata.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import pings, rates
from redtail.lines.recordings.found import Direction, Flows, Found
from redtail.lines.recordings.pings import Pings
from redtail.lines.recordings.rates import Deliveries
from redtail.lines.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

SEGMENT_B, HEADERS_B = 1448, 52
"""Payload and headers of a full segment with timestamps in a packet of 1500 bytes over IPv4."""

ACK_B = 52.0 / 2
"""Bytes of acknowledgements for each segment: one for every second (RFC 9293, section 3.8.6.3)."""

_SUMS = ("avg", "sum", "totals")

SHORTEST_S, WINDOWS = 1.0, 30
"""Transfers tell what they have sent in irregular steps, which evens out over a second or more: a
window is so long, and at least so long that a file has so many."""


MOST_MBPS, MOST_MS, LATEST_S = 1e6, 1e3 * pings.LONGEST_TRIP_S, pings.LATEST_S
"""The largest goodput, round trip and time that are accepted."""

MOST_APART = 65536
"""How much larger the number of a ping may be than that before it: ICMP has so many numbers."""

LONGEST_NAME = 100
"""Letters of a name that are shown."""


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
        _of_kind(data[key], kind, f'"{key}"')
    _of_kind(data.get("raw_values", {}), dict, '"raw_values"')
    _of_kind(data["metadata"].get("SERIES_META", {}), dict, '"metadata": "SERIES_META"')
    _of_kind(data["metadata"].get("NAME", ""), str, '"metadata": "NAME"')
    length = len(data["x_values"])
    for name, values in data["results"].items():
        _of_kind(values, list, f'the series "{_short(name)}"')
        if len(values) != length:
            raise ValueError(
                f'the series "{_short(name)}" has {len(values)} values, and there are {length} '
                "x_values"
            )
    return data


_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text"}


def _of_kind(value: object, kind: type, where: str) -> None:
    if not isinstance(value, kind):
        raise ValueError(f"{where} is {_shown(value)}; accepted: {_KINDS[kind]}")


def _shown(value: object) -> str:
    return _KINDS.get(type(value)) or _short(json.dumps(value))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}..."


def _numbers(values: Sequence[Any], where: str, most: float, least: float = 0.0) -> Array:
    """Return values as numbers; NaN stands for null, which means that there is none.

    Raises:
        ValueError: one is no number, or outside of the range; the text says which.
    """
    found = np.empty(len(values))
    for number, value in enumerate(values):
        if value is None:
            found[number] = math.nan
        elif (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and (least <= value <= most)
        ):
            found[number] = value
        else:
            raise ValueError(
                f"{where}: value {number + 1} is {_shown(value)}; accepted: {least:.10g} to "
                f"{most:.10g}, or null"
            )
    return found


def _times(data: Mapping[str, Any]) -> Array:
    at = _numbers(data["x_values"], '"x_values"', LATEST_S, -LATEST_S)
    steps = np.diff(at)
    wrong = np.flatnonzero(~(steps >= 0))
    if len(wrong):
        raise ValueError(
            f'"x_values": value {wrong[0] + 2} is {_shown(data["x_values"][wrong[0] + 1])}; '
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
        goodputs[direction] += np.nan_to_num(values)
    echoes = _pings(data, at)
    if not any(counts.values()) and echoes is None:
        names = ", ".join(_short(name) for name in list(data["results"])[:5])
        raise ValueError(
            f"it has no series of TCP downloads, uploads or pings; its series are: {names}"
        )
    duration = float(at[-1] - at[0])
    step = duration / (len(at) - 1)
    ways = {
        name: _direction(at, step, goodputs, name) if counts[name] else Direction()
        for name in ("down", "up")
    }
    cautions = [
        "the rate is computed from TCP's goodput with headers of 52 bytes for each 1448, and "
        "acknowledgements of every second segment of the other direction"
    ]
    rtt = Found(file, "flent", "", 0.0).rtt
    if echoes is not None:
        rtt, full = pings.waits(echoes)
        ways, told = _with_wait(ways, counts, full)
        cautions.append(told)
    about = _short(data["metadata"].get("NAME", "?"))
    total = sum(counts.values())
    return Found(
        file,
        "flent",
        f"Flent's {about}, {quantity(duration, 's', 3)}: {total} TCP transfers"
        + (f", {len(echoes.trip_s)} pings" if echoes else ""),
        duration,
        ways["down"],
        ways["up"],
        rtt,
        tuple(_flows(goodputs, counts)),
        tuple(cautions),
    )


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
        _of_kind(told, dict, f'"metadata": "SERIES_META": "{_short(name)}"')
        if direction is not None and told.get("UNITS", "Mbits/s") == "Mbits/s":
            yield direction, 1e6 * _numbers(values, f'the series "{_short(name)}"', MOST_MBPS)


def _pings(data: Mapping[str, Any], at: Array) -> Pings | None:
    """Return the pings of a file: of its series of pings, the one with most of them."""
    best: Pings | None = None
    raw = data.get("raw_values", {})
    for name, values in data["results"].items():
        if not name.startswith("Ping (ms)") or name.split()[-1] in _SUMS:
            continue
        where = f'the series "{_short(name)}"'
        found = _of_rows(raw.get(name, []), f'"raw_values": "{_short(name)}"')
        if found is None:
            trip = _numbers(values, where, MOST_MS) / 1e3
            some = np.isfinite(trip)
            if some.sum() < pings.FEWEST:
                continue
            found = Pings(at[some] - at[some][0], trip[some], np.zeros(0), True, 0)
        if best is None or len(found.trip_s) > len(best.trip_s):
            best = found
    return best


def _of_rows(rows: object, where: str) -> Pings | None:
    """Return the pings of a raw series; None without numbers, or if there are few."""
    if not isinstance(rows, list):
        raise ValueError(f"{where} is {_shown(rows)}; accepted: a list")
    for number, row in enumerate(rows, start=1):
        _of_kind(row, dict, f"{where}: value {number}")
    rows = [row for row in rows if row.get("val") is not None and row.get("t") is not None]
    if len(rows) < pings.FEWEST or any(row.get("seq") is None for row in rows):
        return None
    seq = _numbers([row["seq"] for row in rows], f'{where}: "seq"', 2.0**52)
    trip = _numbers([row["val"] for row in rows], f'{where}: "val"', MOST_MS) / 1e3
    sent = _numbers([row["t"] for row in rows], f'{where}: "t"', LATEST_S, -LATEST_S)
    order = np.argsort(seq, kind="stable")
    seq = seq[order].astype(np.int64)
    far = np.flatnonzero(np.diff(seq) > MOST_APART)
    if len(far):
        raise ValueError(
            f'{where}: "seq" goes from {seq[far[0]]} to {seq[far[0] + 1]}; accepted: at most '
            f"{MOST_APART} more"
        )
    return pings.series(seq, sent[order], trip[order], True)


def _direction(at: Array, step: float, goodputs: dict[str, Array], name: str) -> Direction:
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
    found = rates.estimate(
        deliveries, None, shortest_s=max(SHORTEST_S, 5 * step, duration / WINDOWS)
    )
    missing = "Flent's file has no losses in this direction that tell when a buffer is full"
    return Direction(
        rate=found.mean,
        steps=found.steps,
        trace_ms=found.trace_ms,
        buffer=Estimated(None, "B", missing),
        wait=Estimated(None, "s", missing),
        loss=Estimated(None, "", "Flent's file has no losses"),
        busy=float(found.busy.mean()) if len(found.busy) and found.form else None,
        bytes=int(size.sum()),
    )


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
    size = Estimated(None, "B", f"it takes the rate, which --{name} gives")
    if way.rate.value is not None and full.value is not None:
        scale = way.rate.value / 8
        low = None if full.low is None else full.low * scale
        high = None if full.high is None else full.high * scale
        size = Estimated(
            full.value * scale, "B", f"the wait of pings times the rate; {full.basis}", low, high,
            full.bound,
        )  # fmt: skip
    told = f"all that pings wait is taken to be {name}; a fair queue would hide it from them"
    return {**ways, name: replace(way, wait=full, buffer=size)}, told


def _flows(goodputs: Mapping[str, Array], counts: Mapping[str, int]) -> Iterator[Flows]:
    for name, count in counts.items():
        if count:
            loaded = goodputs[name][goodputs[name] > 0]
            mean = float(loaded.mean()) if len(loaded) else 0.0
            bps = mean * (SEGMENT_B + HEADERS_B) / SEGMENT_B
            yield Flows("bulk", name, count, bps, SEGMENT_B + HEADERS_B, tcp="linux")
