"""The experiment that an advice is judged by: the line, the router, the loads and the candidates.

    servers ── line, buffer of the provider ── router, shaper and queue ── people
    servers ── line, buffer of the modem ───── router, shaper and queue ── people

Two links stand in a row in each direction. Towards the people a packet crosses the line first and
then the router; from them, the router first. So a shaper that is slower than the line keeps the
line's own buffer empty, and one that is faster does not: then the packets wait there.

Packets are counted without what the line adds to them, and the line's rates are those that remain
for full packets.

Where the provider polices, the first link has the rate of the port, and in front of it a policer
(`sold`) in the place of the buffer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redtail.experiment import FORMAT, toml_value
from redtail.lines.advice.access import ACCESS, carried, own_port
from redtail.lines.advice.candidates import Candidate, candidate
from redtail.lines.advice.loads import Load, loads, most_flows, with_windows
from redtail.lines.advice.sold import policer, port_of
from redtail.lines.advice.timing import Times, needed
from redtail.lines.line import Direction, Line, Recorded, Shaped

BUFFER = 0.2
"""Time that a full buffer of the modem or the provider takes to empty, in s.

Source: our choice, that of the template access-line; such buffers are rarely documented.
"""

AS_IT_IS = "as it is"
"""The label of the line without a queue of the router's."""

HALF = ", half the rate"
"""What the names of loads on a line of half its rate end with."""

HEADER = "# Made by redtail advise."
"""The first line of each such file."""

# A router between its ports delays nothing; it has to be faster than the line.
_ROUTER = 1e9


@dataclass(frozen=True)
class Effort:
    """How much is simulated.

    Attributes:
        replications: runs of each case.
        seconds: simulated time of a run that is measured, in s.
        least_s: the same on a line that is so fast that `seconds` would take too long.
        bits: what the line may carry in both directions in a run; a line that would carry more in
            `least_s` is simulated with its rates and its people divided.
    """

    replications: int
    seconds: float
    least_s: float
    bits: float


EFFORTS: dict[str, Effort] = {
    "quick": Effort(3, 8.0, 4.0, 0.8e9),
    "normal": Effort(10, 25.0, 10.0, 3.0e9),
    "thorough": Effort(20, 60.0, 30.0, 9.0e9),
}
"""Efforts by name.

Source: ours, so that "normal" takes less than a minute on two processors; its replications are
those that an experiment has by default.
"""


@dataclass(frozen=True)
class Simulated:
    """What is simulated.

    Attributes:
        line: the line, with its rates and its people divided by `divisor`.
        divisor: what they were divided by; 1 for nothing.
        effort: how much is simulated.
        warmup_s: time of a run before what is measured, in s.
        measured_s: time of a run that is measured, in s.
        loads: the loads.
        buffers: time that the buffers of the provider and the modem take to empty, in s.
        candidates: the queues, with parameters for `line`.
    """

    line: Line
    divisor: float
    effort: Effort
    warmup_s: float
    measured_s: float
    loads: tuple[Load, ...]
    buffers: tuple[float, float]
    candidates: tuple[Candidate, ...]

    @property
    def down_bps(self) -> float:
        """What the line carries of full packets towards the people, in bit/s."""
        return carried(ACCESS[self.line.access].overhead, self.line.down_bps)

    @property
    def up_bps(self) -> float:
        """The same from them."""
        return carried(ACCESS[self.line.access].overhead, self.line.up_bps)

    @property
    def policed(self) -> bool:
        """Whether the provider drops at once what exceeds the rates."""
        return self.line.burst_bytes is not None

    def link_bps(self, direction: Direction, share: float = 1.0) -> float:
        """Return the rate of the first link of a direction, in bit/s; a policed one is the port's.

        Args:
            direction: the direction.
            share: rate of the line as a share of what it usually is.
        """
        if self.policed:
            return carried(ACCESS[self.line.access].overhead, port_of(self.line))
        return share * (self.down_bps if direction == "down" else self.up_bps)

    def link_queue(self, direction: Direction, share: float = 1.0) -> dict[str, Any]:
        """Return the provider's or the modem's queue in front of this link; arguments as there."""
        down = direction == "down"
        rate = self.down_bps if down else self.up_bps
        if self.line.burst_bytes is not None:
            return policer(share * rate, self.line.burst_bytes[0 if down else 1])
        return _buffer(rate, self.buffers[0 if down else 1])

    @property
    def router_bps(self) -> float:
        """Rate of the router's ports, in bit/s."""
        return max(_ROUTER, 10 * self.line.down_bps, 10 * self.line.up_bps)

    @property
    def halved(self) -> Load:
        """The load that is repeated on a line of half its rate: the heaviest of those we chose."""
        return next(load for load in self.loads if load.name == "everything")


def simulated(
    line: Line,
    kinds: Sequence[str],
    effort: Effort,
    buffers: tuple[float, float] = (BUFFER, BUFFER),
    recorded: Recorded | None = None,
) -> Simulated:
    """Return what is simulated for a line.

    Args:
        line: the line.
        kinds: the candidates, of `QUEUES`.
        effort: how much to simulate.
        buffers: time that the buffers of the provider and the modem take to empty, in s.
        recorded: what a recording told of the line.
    """
    divisor, times = _divisor(line, effort, recorded)
    smaller = _divided(line, divisor)
    happening = with_windows(loads(smaller.uses, smaller.people, recorded, times.warmup_s), divisor)
    return Simulated(
        line=smaller,
        divisor=divisor,
        effort=effort,
        warmup_s=times.warmup_s,
        measured_s=float(f"{times.measured_s:.2g}"),
        loads=happening,
        buffers=buffers,
        candidates=candidates(smaller, kinds, happening, own_port(line)),
    )


_DIVISIONS = 20
"""How often times and divisor are computed, each from the other; three or four times are usual."""


def _divisor(line: Line, effort: Effort, recorded: Recorded | None) -> tuple[float, Times]:
    """Return what a line's rates are divided by, and the times of a run on the divided line.

    The slower the line, the shorter are the times that it needs.
    """
    total = line.down_bps + line.up_bps
    divisor = 1.0
    for _ in range(_DIVISIONS):
        times = _times(_divided(line, divisor), effort, recorded)
        wanted = max(1.0, total * times.total_s / effort.bits)
        if wanted <= 1.1:  # not worth a line that is not the user's
            wanted = 1.0
        if math.isclose(wanted, divisor, rel_tol=0.02):
            break
        divisor = wanted
    return divisor, times


def _times(line: Line, effort: Effort, recorded: Recorded | None) -> Times:
    """Return the times of a run: as many as the effort has, and no less than the line needs."""
    over = loads(line.uses, line.people, recorded)
    flows: dict[Direction, int] = {"down": most_flows(over, "down"), "up": most_flows(over, "up")}
    least = needed(line, flows, "web" in line.uses)
    total = line.down_bps + line.up_bps
    usual = min(effort.seconds, max(effort.least_s, effort.bits / total - least.warmup_s))
    return Times(least.warmup_s, max(usual, least.measured_s))


def _divided(line: Line, divisor: float) -> Line:
    """Return a line with its rates and its people divided by a number."""
    bursts = line.burst_bytes
    return replace(
        line,
        down_bps=line.down_bps / divisor,
        up_bps=line.up_bps / divisor,
        people=max(1, round(line.people / divisor)),
        port_bps=None if line.port_bps is None else line.port_bps / divisor,
        burst_bytes=None if bursts is None else (bursts[0] / divisor, bursts[1] / divisor),
    )


def candidates(
    line: Line, kinds: Sequence[str], over: Sequence[Load], port: bool
) -> tuple[Candidate, ...]:
    """Return kinds of queues with parameters for a line and its loads (`port`: of `own_port`)."""
    flows = {"down": most_flows(over, "down"), "up": most_flows(over, "up")}
    return tuple(candidate(kind, line, flows, port) for kind in kinds)  # type: ignore[arg-type]


def buffers_of(recorded: Recorded | None, default: float) -> tuple[float, float]:
    """Return the buffers of the provider and the modem, in s: recorded ones, else the default."""
    if recorded is None:
        return default, default
    down, up = recorded.down_buffer_s, recorded.up_buffer_s
    return default if down is None else down, default if up is None else up


def experiment_text(wanted: Simulated, name: str, about: Sequence[str]) -> str:
    """Return the experiment file.

    Args:
        wanted: what is simulated.
        name: the experiment's name.
        about: what the file is for, a line each.
    """
    from jinja2 import Environment, FileSystemLoader

    files = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=False,  # it makes no HTML
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
    )
    files.filters |= {"toml": toml_value, "rate": _rate, "time": _time}
    return files.get_template("line.toml.jinja").render(
        header=HEADER,
        about=about,
        format=FORMAT,
        name=name,
        wanted=wanted,
        half=HALF,
        through=_THROUGH,
        queues=_factors(wanted),
        metrics=_report(wanted),
    )


_THROUGH = {"kind": "tail-drop", "limit": "10000 packets"}
"""A queue of the router's own in which nothing waits."""


def _factors(wanted: Simulated) -> dict[str, list[dict[str, Any]]]:
    """Return the queues of the router in both directions, in step."""
    upward, own = "chain.hop2.return.queue", _THROUGH
    if all(each.up.shaped.shaper_bps is None for each in wanted.candidates):
        upward, own = "chain.hop1.return.queue", _buffer(wanted.up_bps, wanted.buffers[1])
    columns = {
        "chain.hop2.queue": [
            *(shaped_table(each.down.shaped) for each in wanted.candidates),
            _THROUGH,
        ],
        upward: [*(shaped_table(each.up.shaped) for each in wanted.candidates), own],
    }
    labels = [*(each.label for each in wanted.candidates), AS_IT_IS]
    return {
        key: [{**table, "label": label} for table, label in zip(tables, labels, strict=True)]
        for key, tables in columns.items()
    }


def shaped_table(shaped: Shaped) -> dict[str, Any]:
    """Return a queue with the shaper around it, as a table of the experiment file.

    CAKE is a shaper itself; around other queues it is a class of HTB. The overhead is left out,
    because the simulated packets have none.
    """
    if shaped.shaper_bps is None:
        return dict(shaped.queue)
    rate = _rate(carried(shaped.overhead, shaped.shaper_bps))
    if shaped.queue["kind"] == "cake":
        return {"kind": "cake", "rate": rate, **shaped.queue}
    return {"kind": "htb", "class": [{"name": "line", "rate": rate, "queue": dict(shaped.queue)}]}


def _report(wanted: Simulated) -> list[str]:
    names = {group["name"] for load in wanted.loads for group in load.groups}
    found = ["calls-down.one_way_delay_p95", "calls-up.one_way_delay_p95"]
    found += ["web.page_time_p50"] if "web" in names else []
    return [*found, "hop2.utilization", "hop1.return.utilization"]


def _buffer(rate: float, seconds: float) -> dict[str, Any]:
    """Return a buffer of the line's own, in bytes, which take longer to empty at half the rate."""
    return {"kind": "tail-drop", "limit": f"{max(3000, round(rate * seconds / 8))} B"}


def _rate(bps: float) -> str:
    """Return a rate as the experiment file has it.

    >>> _rate(47.5e6), _rate(12345.6)
    ('47.5 Mbit/s', '12346 bit/s')
    """
    whole = round(bps)
    if whole % 1000:
        return f"{whole} bit/s"
    return f"{whole / 1e6:.3f}".rstrip("0").rstrip(".") + " Mbit/s"


def _time(seconds: float) -> str:
    """Return a time as the experiment file has it.

    >>> _time(30.0), _time(0.015)
    ('30 s', '15 ms')
    """
    return f"{seconds:g} s" if seconds >= 1 else f"{round(1e3 * seconds, 6):g} ms"
