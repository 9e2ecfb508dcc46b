"""The law of cake-autorate beside simulated packets, in place of the model of the advice.

A run depends up to a time only on the shaper's rates before it. So the law is given what a run
shows, the run is made again with the rates that it answers, and so on until they are those that the
run had: each time they agree for longer.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import redtail
from redtail.experiment import toml_value
from redtail.lines.advice import autorate
from redtail.lines.advice.varied import changing
from redtail.lines.course import Course, trace_text
from redtail.lines.line import Follows

RTT_S, UP_BPS = 0.05, 2e6
CALL_B, CALLS = 200, 50
"""Bytes of a call's packet, and packets in a second."""

Rates = list[tuple[float, float]]

_TEXT = """
format = 1
name = "closed loop"
duration = "{length} s"
warmup = "1 s"
replications = 1
series = {{ interval = "10 ms", queues = true }}

[[chain.hop]]
rate_trace = "line.trace"
delay = "25 ms"
queue = {{ kind = "tail-drop", limit = "{buffer} B" }}

[chain.hop.return]
rate = "2 Mbit/s"
delay = "25 ms"
queue = {{ kind = "tail-drop", limit = "50000 B" }}

[[chain.hop]]
rate = "{rate}"
rate_changes = {changes}
delay = "0 s"
queue = {{ kind = "cake", diffserv = "besteffort", isolation = "dual-dsthost" }}

[chain.hop.return]
rate = "1.7 Mbit/s"
delay = "0 s"
queue = {{ kind = "cake" }}

[[traffic]]
name = "call"
kind = "voip"

[[traffic]]
name = "download"
kind = "bulk"
flows = 8
tcp = "linux"
start = "uniform 0..1 s"
"""


def closed(
    cut: Course, limits: Follows, buffer_b: float, first: Rates, length_s: float, out: Path
) -> Rates:
    """Return the rates of a shaper that follows, beside packets; `first` is where to begin."""
    rates = first
    for _ in range(200):
        keys = changing(rates)
        text = _TEXT.format(
            length=length_s,
            buffer=round(buffer_b),
            rate=keys["rate"],
            changes=toml_value(keys["rate_changes"]),
        )
        source = redtail.Toml(text, files={"line.trace": trace_text(cut.trace_ms)})
        queues = redtail.run(source, out=out, jobs=1).series("queues", replication=0)
        answered = _answered(queues, cut, limits, length_s)
        if answered == rates:
            return rates
        rates = answered
    raise AssertionError("the rates do not become those that the run had")


def _answered(queues: Any, cut: Course, limits: Follows, length_s: float) -> Rates:
    """Return the rates that the law answers to what a run shows."""
    law = autorate.Law(limits)
    baselines = [autorate.FIRST_BASELINE_S] * autorate.PINGERS
    rates = [(0.0, law.rate)]
    last = 0.0
    links = {name: part.set_index("time_s") for name, part in queues.to_pandas().groupby("link")}
    at = links["hop2"].index.to_numpy()
    columns = ("arrivals", "drops", "packets")
    arrived, dropped, waiting = (links["hop2"][key].to_numpy(np.int64) for key in columns)
    passed = np.cumsum(arrived - dropped) - waiting
    for now, pinger, one_way in heapq.merge(_pings(links, cut, length_s), _ticks(length_s)):
        if pinger < 0:
            every = max(autorate.RATES_INTERVAL_S, 20 * 8 * autorate.FULL_B / law.rate)
            if now - last >= every - 1e-6:
                packets = np.interp(now, at, passed) - np.interp(last, at, passed)
                calls = min(packets, CALLS * (now - last))
                amount = 1500 * (packets - calls) + CALL_B * calls
                law.passed(8 * amount / (now - last))
                last = now
            continue
        baseline = baselines[pinger]
        up = one_way >= baseline
        baseline += (autorate.BASELINE_UP if up else autorate.BASELINE_DOWN) * (one_way - baseline)
        baselines[pinger] = baseline
        law.pinged(now, one_way - baseline)
        if law.rate != rates[-1][1]:
            rates.append((now, law.rate))
    return rates


def _ticks(length_s: float) -> Iterator[tuple[float, int, float]]:
    for number in range(1, int(length_s / autorate.RATES_INTERVAL_S)):
        yield number * autorate.RATES_INTERVAL_S, -1, 0.0


def _pings(links: dict[str, Any], cut: Course, length_s: float) -> list[tuple[float, int, float]]:
    """Return when pings come back, of which pinger, and half of what they took."""
    at = links["hop1"].index.to_numpy()
    down, up = (links[name]["bytes"].to_numpy() for name in ("hop1", "hop1.return"))
    capacity = np.cumsum(cut.amounts(0.0, length_s + 20, 0.001))
    times = 0.001 * np.arange(1, len(capacity) + 1)
    found = []
    for number in range(int(length_s * autorate.PINGERS / autorate.PING_INTERVAL_S)):
        sent = number * autorate.PING_INTERVAL_S / autorate.PINGERS
        there = sent + 8 * np.interp(sent, at, up) / UP_BPS + RTT_S
        before = np.interp(there, times, capacity)
        behind = np.interp(there, at, down)
        back = float(np.interp(before + behind, capacity, times)) if behind > 0 else float(there)
        if max(back, there) < length_s:
            back = max(back, float(there))
            found.append((back, number % autorate.PINGERS, (back - sent) / 2))
    return sorted(found)
