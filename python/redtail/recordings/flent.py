"""Data files of Flent: goodputs and pings over time.

Source of the form: doc/data-format.rst of Flent. Series are told apart by their names ("TCP
download", "TCP upload BE", "Ping (ms) ICMP"), their unit stands in the metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.recordings import pings, rates
from redtail.recordings.found import Direction, Flows, Found
from redtail.recordings.pings import Pings
from redtail.recordings.rates import Deliveries
from redtail.recordings.values import Estimated, quantity

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


def read(data: object) -> Mapping[str, Any]:
    """Return the content of a data file.

    Raises:
        ValueError: it has another form; the text says what is missing.
    """
    if not isinstance(data, dict):
        raise ValueError("it is JSON, but no data file of Flent: there is no object at the top")
    for key in ("version", "metadata", "x_values", "results"):
        if key not in data:
            raise ValueError(f'it is JSON, but no data file of Flent: there is no "{key}"')
    length = len(data["x_values"])
    for name, values in data["results"].items():
        if len(values) != length:
            raise ValueError(
                f'the series "{name}" has {len(values)} values, and there are {length} x_values'
            )
    return data


def estimate(data: Mapping[str, Any], file: Path) -> Found:
    """Return what a data file of Flent tells of a line.

    Raises:
        ValueError: it has neither transfers nor pings; the text says so.
    """
    at = np.array(data["x_values"], float)
    goodputs: dict[str, Array] = {"down": np.zeros(len(at)), "up": np.zeros(len(at))}
    counts = {"down": 0, "up": 0}
    for direction, values in _transfers(data):
        counts[direction] += 1
        goodputs[direction] += np.nan_to_num(values)
    echoes = _pings(data, at)
    if not any(counts.values()) and echoes is None:
        names = ", ".join(list(data["results"])[:5])
        raise ValueError(
            f"it has no series of TCP downloads, uploads or pings; its series are: {names}"
        )
    duration = float(at[-1] - at[0]) if len(at) else 0.0
    step = duration / max(len(at) - 1, 1)
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
    about = data["metadata"].get("NAME", "?")
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
        unit = about.get(name, {}).get("UNITS", "Mbits/s")
        if direction is not None and unit == "Mbits/s":
            yield direction, 1e6 * np.array(values, float)


def _pings(data: Mapping[str, Any], at: Array) -> Pings | None:
    """Return the pings of a file: of its series of pings, the one with most of them."""
    best: tuple[int, Pings] | None = None
    raw = data.get("raw_values", {})
    for name, values in data["results"].items():
        if not name.startswith("Ping (ms)") or name.split()[-1] in _SUMS:
            continue
        rows = [row for row in raw.get(name, []) if "val" in row and "t" in row]
        if len(rows) >= pings.FEWEST and all("seq" in row for row in rows):
            seq = np.array([row["seq"] for row in rows], int)
            trip = np.array([row["val"] for row in rows], float) / 1e3
            sent = np.array([row["t"] for row in rows], float)
            order = np.argsort(seq, kind="stable")
            seq, trip, sent = seq[order], trip[order], sent[order] - sent[order][0]
            lost = np.setdiff1d(np.arange(seq[0], seq[-1] + 1), seq)
            found = Pings(sent, trip, np.interp(lost, seq, sent), True)
        else:
            trip = np.array(values, float) / 1e3
            some = np.isfinite(trip)
            if some.sum() < pings.FEWEST:
                continue
            found = Pings(at[some] - at[some][0], trip[some], np.zeros(0), True)
        if best is None or len(found.trip_s) > best[0]:
            best = (len(found.trip_s), found)
    return None if best is None else best[1]


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
    share = float(acks[part].sum() / max(size[part].sum() * 8 / step, 1.0))
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
