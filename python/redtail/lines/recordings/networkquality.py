"""Results of Apple's networkQuality (`-c`): what was transferred, and probes beside it.

The keys are those that macOS 12 to 15 write; rates are in bit/s of payload, times in ms. There is
one number for each direction and no course over time, so that nothing shows that the line was full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from redtail.lines.recordings import pings
from redtail.lines.recordings.documents import number, numbers, of_kind, short
from redtail.lines.recordings.found import Direction, Flows, Found
from redtail.lines.recordings.rates import PACKET_B
from redtail.lines.recordings.transfers import LEAST_HEADERS_B
from redtail.lines.recordings.values import Estimated

MOST_BPS, MOST_FLOWS, MOST_BYTES = 1e12, 1e6, 1e17

_WAYS = {"down": "dl", "up": "ul"}

_HANDSHAKES = "tcp_handshake_443"
"""Probes that are one round trip: those of TLS and HTTP have the time of servers in them."""


def is_one(data: Mapping[str, Any]) -> bool:
    """Return whether an object is a result of networkQuality."""
    return (
        "base_rtt" in data
        or ("dl_throughput" in data or "ul_throughput" in data)
        or ("os_version" in data and "error_code" in data)
    )


def estimate(data: Mapping[str, Any], file: Path, direction: str | None = None) -> Found:
    """Return what a result of networkQuality tells of a line.

    Args:
        data: the document.
        file: where it is from.
        direction: none is accepted, for a result names its directions.

    Raises:
        ValueError: it has no results, or impossible values; the text says which.
    """
    if direction is not None:
        raise ValueError("--direction: a result of networkQuality names its directions itself")
    if not any(f"{key}_throughput" in data for key in _WAYS.values()):
        told = data.get("error_code")
        why = f": it ended with the error {short(str(told))}" if told is not None else ""
        raise ValueError(f"it is a result of networkQuality without throughputs{why}")
    idle, loaded = _trips(data, "il"), _trips(data, "lud")
    ways = {name: _direction(data, key) for name, key in _WAYS.items()}
    cautions = ["rates are the throughput of HTTP with headers of 40 bytes for each 1460"]
    base = _base(data, idle)
    if len(loaded) and base.value is not None:
        longest = float(np.quantile(loaded, 0.99)) - base.value
        if longest > 0:
            cautions.append(
                f"connections were set up in up to {1e3 * longest:.4g} ms more beside the "
                "transfers, which does not tell in which direction packets waited"
            )
    rpm = number(data, "responsiveness", "networkQuality", 1e9)
    about = "Apple's networkQuality" + (f", {rpm:.0f} round trips a minute" if rpm else "")
    return Found(
        file, "networkquality", about, _duration(data), ways["down"], ways["up"], base,
        tuple(_flows(data, ways)), tuple(cautions),
    )  # fmt: skip


def _trips(data: Mapping[str, Any], when: str) -> np.ndarray[Any, Any]:
    """Return the round trips in s that setting up a connection took, idle ("il") or loaded."""
    keys = [f"{when}_{_HANDSHAKES}"]
    if when == "lud":
        keys += [
            f"lud_foreign_{_HANDSHAKES}",
            f"lud_foreign_dl_{_HANDSHAKES}",
            f"lud_foreign_ul_{_HANDSHAKES}",
        ]
    found = [
        numbers(
            of_kind(data.get(key, []), list, f'"{key}"'), f'"{key}"', 1e3 * pings.LONGEST_TRIP_S
        )
        for key in keys
    ]
    all_ms = np.concatenate(found)
    known: np.ndarray[Any, Any] = all_ms[np.isfinite(all_ms)] / 1e3
    return known


def _base(data: Mapping[str, Any], idle: np.ndarray[Any, Any]) -> Estimated:
    told = number(data, "base_rtt", "networkQuality", 1e3 * pings.LONGEST_TRIP_S)
    least = [float(idle.min())] if len(idle) and idle.min() > 0 else []
    least += [told / 1e3] if told else []
    if not least:
        return Estimated(None, "s", "the file has no round trips without load")
    basis = (
        "the least of what networkQuality says of the idle line: the base round trip, and what "
        "setting up connections took, in whole ms"
    )
    return Estimated(min(least), "s", basis, bound="at most")


def _direction(data: Mapping[str, Any], key: str) -> Direction:
    told = number(data, f"{key}_throughput", "networkQuality", MOST_BPS)
    sent = number(data, f"{key}_bytes_transferred", "networkQuality", MOST_BYTES) or 0.0
    missing = "networkQuality does not tell what was lost, or when packets waited"
    rate = Estimated(None, "bit/s", "there was no test of this direction")
    if told:
        basis = (
            "what networkQuality calls the throughput; the link is not known to have been full, "
            "for the file has no course over time (a capture, or iperf3 -J, has)"
        )
        rate = Estimated(
            told * PACKET_B / (PACKET_B - LEAST_HEADERS_B), "bit/s", basis, bound="at least"
        )
    return Direction(
        rate=rate,
        buffer=Estimated(None, "B", missing),
        wait=Estimated(None, "s", missing),
        loss=Estimated(None, "", missing),
        bytes=int(sent),
    )


def _flows(data: Mapping[str, Any], ways: Mapping[str, Direction]) -> Iterator[Flows]:
    for name, key in _WAYS.items():
        count = number(data, f"{key}_flows", "networkQuality", MOST_FLOWS)
        rate = ways[name].rate.value
        if count and rate is not None:
            yield Flows("bulk", name, int(count), rate, PACKET_B, tcp="linux")


def _duration(data: Mapping[str, Any]) -> float:
    from datetime import datetime

    try:
        begin, end = (datetime.fromisoformat(data[key]) for key in ("start_date", "end_date"))
        return max((end - begin).total_seconds(), 0.0)
    except (KeyError, TypeError, ValueError):
        return 0.0
