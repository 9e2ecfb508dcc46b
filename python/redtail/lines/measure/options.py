"""What a measurement may be asked for, and where its defaults come from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from redtail.errors import SpecError
from redtail.lines.measure import protocol
from redtail.lines.recordings.measurement import PHASES

KINDS = ("redtail", "iperf3", "irtt")
"""What answers at the other end."""

IPERF3_PORT, IRTT_PORT = 5201, 2112
"""Ports of iperf3 and irtt, as their manuals have them (iperf3(1), irtt-server(1))."""

_PORTS = {"redtail": protocol.PORT, "iperf3": IPERF3_PORT, "irtt": IRTT_PORT}

STREAMS = 4
"""Connections of a direction: RRUL's (Täht, RRUL specification; doc/tests.rst of Flent 2.1)."""

LOAD_S, IDLE_S = 15.0, 10.0
"""Time of a load, and of the idle line before. A load has to be stable for 4 s
(draft-ietf-ippm-responsiveness: MAD intervals of ID), and what begins and ends it is left out. The
idle line has 500 probes, and a 99th percentile takes 299 (`summary.fewest`)."""

INTERVAL_S = 0.02
"""Time between two probes: that between packets of a call (RFC 3551, section 4.2). A load of 15 s
has 750 of them, of which 7 are above the 99th percentile."""

LONGEST_S, SHORTEST_S = 600.0, 1.0

MOST_PROBES = 500_000
"""Probes of a measurement, whose file then has a quarter of the values that are read at most."""

LEAST_INTERVAL_S, MOST_INTERVAL_S = 0.002, 1.0
"""The least time between two pings that ping lets users have (iputils, ping(8))."""


@dataclass(frozen=True)
class Measuring:
    """What is measured.

    Attributes:
        kind: one of `KINDS`.
        phases: of `PHASES`, each once, in the order in which they are made.
        load_s: time of each load.
        idle_s: time of the idle line.
        streams: connections of each direction.
        interval_s: time between two probes.
        congestion: the congestion control of both ends; empty for what each has.

    Raises:
        SpecError: a value is not accepted; the text says which is.
    """

    kind: str = "redtail"
    phases: tuple[str, ...] = PHASES
    load_s: float = LOAD_S
    idle_s: float = IDLE_S
    streams: int = STREAMS
    interval_s: float = INTERVAL_S
    congestion: str = ""

    def __post_init__(self) -> None:
        _require(self.kind in KINDS, "--server-kind", self.kind, ", ".join(KINDS))
        known = set(self.phases) <= set(PHASES) and len(set(self.phases)) == len(self.phases)
        told = ",".join(self.phases)
        _require(known and bool(told), "--phases", told, f"some of {', '.join(PHASES)}, each once")
        only = self.kind != "irtt" or self.phases == ("idle",)
        _require(only, "--phases", told, "idle, for an irtt server answers probes alone")
        for name, value in (("--load", self.load_s), ("--idle", self.idle_s)):
            accepted = f"{SHORTEST_S:g} to {LONGEST_S:g} s"
            _require(SHORTEST_S <= value <= LONGEST_S, name, f"{value:g} s", accepted)
        accepted = f"{LEAST_INTERVAL_S:g} to {MOST_INTERVAL_S:g} s"
        within = LEAST_INTERVAL_S <= self.interval_s <= MOST_INTERVAL_S
        _require(within, "--interval", f"{self.interval_s:g} s", accepted)
        probes = sum(map(self.length_s, self.phases)) / self.interval_s
        accepted = f"up to {MOST_PROBES} probes; a larger --interval, or less time"
        _require(probes <= MOST_PROBES, "--interval", f"{probes:.0f} probes", accepted)
        within = 1 <= self.streams <= protocol.MOST_STREAMS
        _require(within, "--streams", str(self.streams), f"1 to {protocol.MOST_STREAMS}")
        if self.congestion:
            named = protocol.CONGESTION.fullmatch(self.congestion) is not None
            _require(named, "--tcp", self.congestion, "a name such as cubic")

    @property
    def port(self) -> int:
        """The port where nothing else is said."""
        return _PORTS[self.kind]

    def length_s(self, phase: str) -> float:
        """Return how long a phase takes."""
        return self.idle_s if phase == "idle" else self.load_s


def _require(holds: bool, name: str, value: str, accepted: str) -> None:
    if not holds:
        raise SpecError(f"{name} {value}: accepted: {accepted}", key=name)


def place(text: str, port: int) -> tuple[str, int]:
    """Return the host and the port that a text names.

    Args:
        text: HOST, HOST:PORT, or an address of IPv6 in brackets with a port.
        port: the port where the text has none.

    Raises:
        SpecError: it names none.

    >>> place("192.0.2.1", 5201), place("home.example:99", 5201), place("[2001:db8::1]:99", 5201)
    (('192.0.2.1', 5201), ('home.example', 99), ('2001:db8::1', 99))
    >>> place("2001:db8::1", 5201)
    ('2001:db8::1', 5201)
    """
    host, told = text, ""
    if text.startswith("["):
        host, _, told = text[1:].partition("]")
        if told and not told.startswith(":"):
            host = ""
        told = told[1:]
    elif text.count(":") == 1:
        host, _, told = text.partition(":")
    number = port if not told else int(told) if told.isdecimal() and len(told) < 6 else math.inf
    if not host or not 1 <= number <= 65535 or text.endswith(":") or host.startswith("-"):
        raise SpecError(
            f"{text}: accepted: HOST, HOST:PORT or [ADDRESS]:PORT, with a port from 1 to 65535"
        )
    return host, int(number)
