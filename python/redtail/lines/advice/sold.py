"""Lines as they are sold: behind a faster port, policed by the provider, known by a speed test.

A policer is a token bucket without a buffer. It lets a packet pass if there are tokens for the
whole packet, and drops it otherwise (RFC 2697, section 3, of which it has the first bucket). The
experiment file has no queue of this name, and it is made of two that there are:

    tbf  with the rate 1.25 R, bucket B      makes nothing wait, and tells AVQ its rate C
     └─ avq  with alpha -> 0, virtual_limit B    a virtual queue that drains at 0.8 C = R

AVQ's virtual queue starts at 0.8 of its rate (ns-2.35, `ecnlim_`) and adapts with the gain alpha,
which here is too small to change a digit. A virtual backlog V with the limit B is a bucket with
B - V tokens: a packet of L bytes passes if V + L <= B. What passes is at most B + R t in any
interval t, which a bucket of B bytes with the rate 1.25 R never delays.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from redtail import facts, quantities
from redtail.errors import SpecError
from redtail.lines.advice.access import ACCESS, PORT_RATES, own_port, wire_bytes
from redtail.lines.line import Line

USUAL_PORT = 1e9
"""The slowest port that a policed line is assumed to have, in bit/s. Source: our choice."""

BURST_S = 0.010
"""The bucket of a policer, in s at the rate of the contract.

Source: Cisco NCS 540, `police rate`. It is the smallest of the defaults that are documented: a
shaper that is right for a small bucket is so for a larger one. Others are 250 ms (Cisco ME 3600X,
`police`) and, to start with, 5 ms at the rate of the port (Juniper, "Determining Proper Burst Size
for Traffic Policers").
"""

LEAST_BURST = 3000
"""The smallest bucket, in bytes: two full packets. Source: our choice."""

MOST_BURST_S = 10.0
"""The largest bucket, in s at the rate of the line. Source: our choice."""

HEADERS = 52
"""Headers of a segment of a speed test, in bytes. Source: IPv4 and TCP, 20 each, and timestamps,
10 and 2 to fill up (RFC 7323, section 3.2)."""

PROVIDERS = ("buffer", "policer")
RATES = ("line", "speed-test")

_SLACK = 1.25  # 1 / 0.8, of which AVQ starts with 0.8
_STILL = 1e-9  # AVQ's gain, per second


def as_sold(line: Line, port_rate: str | None, provider: str, rates: str) -> Line:
    """Return a line with what is known of how it is sold.

    Args:
        line: the line, with rates as they were given.
        port_rate: rate of the port that the router is connected to, as text.
        provider: "buffer", "policer" or "policer:BURST", with a size or a time.
        rates: what the rates are of, of `RATES`.

    Raises:
        SpecError: a value makes no sense.
    """
    if rates not in RATES:
        raise SpecError(f'rates = "{rates}" is none; accepted: {", ".join(RATES)}', key="rates")
    if rates == "speed-test":
        line = _of_payload(line)
    if port_rate is not None:
        port = facts.rate_bps("port-rate", port_rate)
        line = replace(
            line,
            port_bps=port,
            down_bps=min(line.down_bps, port),
            up_bps=min(line.up_bps, port),
        )
    kind, _, burst = provider.partition(":")
    if kind not in PROVIDERS or (burst and kind != "policer"):
        raise SpecError(
            f'provider = "{provider}" is none; accepted: buffer, policer, or policer with its '
            'burst, such as "policer:125 kB" or "policer:10 ms"',
            key="provider",
        )
    if kind == "buffer":
        return line
    if own_port(line):
        raise SpecError(
            f'provider = "{provider}" needs a port that is faster than the line, and port-rate = '
            f'"{port_rate}"; accepted: a port-rate above up',
            key="provider",
        )
    size = functools.partial(_burst, provider, burst)
    return replace(line, burst_bytes=(size(line.down_bps), size(line.up_bps)))


def port_of(line: Line) -> float:
    """Return the rate of the port: the given one, else the usual one that is above the line."""
    if line.port_bps is not None:
        return line.port_bps
    fastest = max(line.down_bps, line.up_bps)
    return next((rate for rate in PORT_RATES if rate > fastest and rate >= USUAL_PORT), 2 * fastest)


def policer(rate: float, burst: float) -> dict[str, Any]:
    """Return a policer, as a queue of the experiment file.

    Args:
        rate: what it lets pass, in bit/s.
        burst: its bucket, in bytes.
    """
    size = f"{max(LEAST_BURST, round(burst))} B"
    virtual = {"kind": "avq", "limit": "10000 packets", "virtual_limit": size, "alpha": _STILL}
    return {"kind": "tbf", "rate": f"{round(_SLACK * rate)} bit/s", "burst": size, "queue": virtual}


def _of_payload(line: Line) -> Line:
    """Return a line of which a speed test has measured the rates."""
    access = ACCESS[line.access]
    more = wire_bytes(access.overhead, access.mtu) / (access.mtu - HEADERS)
    return replace(line, down_bps=line.down_bps * more, up_bps=line.up_bps * more)


def _burst(provider: str, text: str, rate: float) -> float:
    """Return the bucket of a policer with a rate, in bytes."""
    number, unit = _parsed(provider, text) if text else (BURST_S, "s")
    size = number * rate / 8 if unit == "s" else number
    if text and not LEAST_BURST <= size <= MOST_BURST_S * rate / 8:
        raise SpecError(
            f'provider = "{provider}" has no burst of a policer; accepted: from "{LEAST_BURST} B" '
            f'to "{MOST_BURST_S:g} s"',
            key="provider",
        )
    return max(float(LEAST_BURST), size)


def _parsed(provider: str, text: str) -> tuple[float, str]:
    try:
        number, unit = quantities.parse(text)
    except SpecError as error:
        raise SpecError(f'provider = "{provider}": {error}', key="provider") from None
    if unit not in ("B", "s"):
        raise SpecError(
            f'provider = "{provider}" has neither a size nor a time after the colon; accepted: '
            'such as "policer:125 kB" or "policer:10 ms"',
            key="provider",
        )
    return number, unit
