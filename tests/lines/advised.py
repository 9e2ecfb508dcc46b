"""What the tests of commands for routers share: advised queues, and network namespaces."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from typing import Any

from redtail.backends import live
from redtail.lines import Overhead, Shaped, routers

DOCSIS = Overhead(packet_bytes=18, minimum_bytes=64, framing="none")
VDSL2 = Overhead(packet_bytes=30, minimum_bytes=0, framing="ptm")
ADSL = Overhead(packet_bytes=40, minimum_bytes=0, framing="atm")

QUEUES: dict[str, dict[str, Any]] = {
    "tail-drop": {"limit": "100 packets"},
    "codel": {"limit": "1000 packets", "target": "7 ms", "interval": "120 ms", "ecn": True},
    "pie": {"limit": "1000 packets", "target": "20 ms", "alpha": 0.13, "ecn": True},
    "fq-codel": {"target": "7 ms", "interval": "120 ms", "quantum": "300 B"},
    "fq-pie": {"target": "20 ms", "flows": 512, "max_ecn": 0.25, "ecn": True},
    "cake": {"rtt": "50 ms", "diffserv": "besteffort", "isolation": "dual-srchost"},
    "red": {
        "limit": "120 packets",
        "min_th": "20 packets",
        "max_th": "60 packets",
        "max_p": 0.07,
        "w_q": 0.0022,
        "mean_packet": "1500 B",
        "ecn": True,
    },
    "wred": {
        "limit": "180 kB",
        "profiles": [
            {"dscp": ["EF", "VA"], "min_th": "60 kB", "max_th": "90 kB", "max_p": 0.05},
            {"min_th": "30 kB", "max_th": "90 kB", "max_p": 0.1},
        ],
        "w_q": 0.002,
        "mean_packet": "1500 B",
        "spacing": "linux",
    },
    "sfq": {"limit": "127 packets", "divisor": 1024},
    "prio": {
        "class": [
            {
                "name": "voice",
                "match": [{"dscp": ["EF", "VA"]}, {"group": "calls-up"}],
                "queue": {
                    "kind": "tbf",
                    "rate": "3 Mbit/s",
                    "burst": "75 kB",
                    "queue": {"kind": "tail-drop", "limit": "64 packets"},
                },
            },
            {"name": "others", "queue": {"kind": "sfq", "limit": "127 packets", "divisor": 256}},
        ]
    },
    "adaptive-red": {
        "limit": "120 packets",
        "min_th": "5 packets",
        "max_th": "15 packets",
        "gentle": True,
    },
    "dualpi2": {"limit": "198 packets", "target": "15 ms", "rtt_max": "100 ms", "coupling": 2.0},
}


def shaped(
    kind: str,
    direction: Any = "up",
    overhead: Overhead = DOCSIS,
    rate: float | None = 9_500_000,
    **keys: Any,
) -> Shaped:
    queue = {"kind": kind, **QUEUES[kind], **keys}
    return Shaped(direction, queue, rate, overhead, line_bps=10_000_000)


def made(kind: str, device: str, **options: Any) -> routers.Commands:
    overhead, keys = options.pop("overhead", DOCSIS), options.pop("keys", {})
    ways = [shaped(kind, way, overhead, **keys) for way in ("down", "up")]
    return routers.commands(ways, device=device, wan=options.pop("wan", "wan0"), **options)


def unshared() -> str:
    """Why no namespace can be made here; empty if one can."""
    if live.missing():
        return "; ".join(live.missing())
    done = subprocess.run(["unshare", "-Urn", "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


UNSHARED = unshared()


def without_ifb(lines: Sequence[str]) -> list[str]:
    """The commands for a kernel that may have no module ifb; any device stands in for it."""
    return [
        re.sub(
            r"^ip link del dev (rtifb\S+)",
            r"ip tuntap del dev \1 mode tap",
            re.sub(r"ip link add name (\S+) type ifb", r"ip tuntap add dev \1 mode tap", line),
        )
        for line in lines
    ]


def in_a_namespace(script: Sequence[str]) -> str:
    """What commands print in a network namespace of their own."""
    done = subprocess.run(
        ["unshare", "-Urn", "sh", "-c", "\n".join(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
