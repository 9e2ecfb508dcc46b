"""The experiment that an advice is judged by: the line, the router, the loads and the candidates.

    servers ── line, buffer of the provider ── router, shaper and queue ── people
    servers ── line, buffer of the modem ───── router, shaper and queue ── people

Two links stand in a row in each direction. Towards the people a packet crosses the line first and
then the router; from them, the router first. So a shaper that is slower than the line keeps the
line's own buffer empty, and one that is faster does not: then the packets wait there.

Where the line's rate varies, its course is cut into parts (`varied`), and each queue is simulated
over each of them. A shaper that follows is the rate of the router's link, which changes.

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
from redtail.lines.advice import varied as courses
from redtail.lines.advice.access import ACCESS, carried, own_port
from redtail.lines.advice.candidates import Candidate, candidate, variants
from redtail.lines.advice.loads import Load, flows_of, loads, with_windows
from redtail.lines.advice.sold import policer, port_of
from redtail.lines.advice.timing import Times, needed
from redtail.lines.advice.varied import Amount, Varied
from redtail.lines.course import trace_text
from redtail.lines.line import DIRECTIONS, Direction, Line, Recorded, Shaped

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
        varied: what takes the place of `replications` and `seconds` where the rate varies.
    """

    replications: int
    seconds: float
    least_s: float
    bits: float
    varied: Amount


EFFORTS: dict[str, Effort] = {
    "quick": Effort(3, 8.0, 4.0, 0.8e9, Amount(3, 3, 15.0)),
    "normal": Effort(10, 25.0, 10.0, 3.0e9, Amount(5, 4, 30.0)),
    "thorough": Effort(20, 60.0, 30.0, 9.0e9, Amount(8, 6, 60.0)),
}
"""Efforts by name.

Source: ours, so that "normal" takes less than a minute on two processors; its replications are
those that an experiment has by default. Where the rate varies there are about as many runs.
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
        varied: how the line's rate varies; None if it does not.
    """

    line: Line
    divisor: float
    effort: Effort
    warmup_s: float
    measured_s: float
    loads: tuple[Load, ...]
    buffers: tuple[float, float]
    candidates: tuple[Candidate, ...]
    varied: Varied | None = None

    @property
    def replications(self) -> int:
        """Runs of each case."""
        return self.effort.replications if self.varied is None else self.varied.amount.replications

    @property
    def runs(self) -> int:
        """Runs of each queue under each load."""
        return self.replications * (1 if self.varied is None else self.varied.amount.cuts)

    @property
    def in_modem(self) -> Candidate | None:
        """What the modem could have itself, where the line's rate varies; it is not ranked."""
        return None if self.varied is None else courses.in_modem(self.line, self.loads)

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
    *,
    follows: bool = True,
) -> Simulated:
    """Return what is simulated for a line.

    Args:
        line: the line.
        kinds: the candidates, of `QUEUES`.
        effort: how much to simulate.
        buffers: time that the buffers of the provider and the modem take to empty, in s.
        recorded: what a recording told of the line.
        follows: whether the router can have a shaper that follows the line's rate.
    """
    found = {} if recorded is None else courses.courses(recorded)
    divisor, times = _divisor(line, effort, recorded)
    smaller = _divided(line, divisor)
    happening = with_windows(loads(smaller.uses, smaller.people, recorded, times.warmup_s), divisor)
    varied = Varied(found, effort.varied, divisor, times.total_s) if found else None
    return Simulated(
        line=smaller,
        divisor=divisor,
        effort=effort,
        warmup_s=times.warmup_s,
        measured_s=times.measured_s,
        loads=happening,
        buffers=buffers,
        candidates=candidates(smaller, kinds, happening, varied, follows=follows),
        varied=varied,
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
    least = needed(line, flows_of(over), "web" in line.uses)
    total = line.down_bps + line.up_bps
    varies = recorded is not None and recorded.varies
    seconds = effort.varied.seconds if varies else effort.seconds
    usual = min(seconds, max(effort.least_s, effort.bits / total - least.warmup_s))
    return Times(least.warmup_s, float(f"{max(usual, least.measured_s):.2g}"))


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
    line: Line,
    kinds: Sequence[str],
    over: Sequence[Load],
    varied: Varied | None = None,
    *,
    follows: bool = True,
) -> tuple[Candidate, ...]:
    """Return the queues to choose from, with parameters for a line.

    Args:
        line: the line.
        kinds: the kinds of queue.
        over: its loads.
        varied: how its rate varies; None if it does not.
        follows: as for `simulated`.
    """
    flows = flows_of(over)
    if varied is not None:
        return courses.candidates(line, varied, kinds, flows, follows=follows)
    found = (candidate(kind, line, flows, own_port(line)) for kind in kinds)
    return tuple(variant for each in found for variant in variants(each, line))


def buffers_of(recorded: Recorded | None, default: float) -> tuple[float, float]:
    """Return the buffers of the provider and the modem, in s: recorded ones, else the default.

    Of a bound the default stands where it keeps to it, and the bound itself elsewhere.
    """

    def of(name: str, seconds: float | None) -> float:
        if recorded is None or seconds is None:
            return default
        match recorded.bound(name):
            case "at least":
                return max(default, seconds)
            case "at most":
                return min(default, seconds)
            case _:
                return seconds

    if recorded is None:
        return default, default
    return of("down_buffer", recorded.down_buffer_s), of("up_buffer", recorded.up_buffer_s)


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
        queues=_factors(wanted) if wanted.varied is None else _varied_factors(wanted),
        down=_line(wanted, "down"),
        up=_line(wanted, "up"),
        metrics=_report(wanted),
    )


_THROUGH = {"kind": "tail-drop", "limit": "10000 packets"}
"""A queue of the router's own in which nothing waits."""


def _factors(wanted: Simulated) -> dict[str, list[dict[str, Any]]]:
    """Return the queues of the router in both directions, in step."""
    upward, own = "chain.hop2.return.queue", _THROUGH
    if all(each.up.shaped.shaper_bps is None for each in wanted.candidates):
        upward, own = "chain.hop1.return.queue", wanted.link_queue("up")
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


_HOPS: dict[Direction, str] = {"down": "chain.hop{}", "up": "chain.hop{}.return"}
"""A link of the chain, by direction: 1 is the line, 2 the router."""


def trace_name(cut: int, direction: Direction, stem: str = "line") -> str:
    """Return the name of the file with a cut of a trace.

    >>> trace_name(0, "down")
    'line.cut1.down.trace'
    """
    return f"{stem}.cut{cut + 1}.{direction}.trace"


def trace_files(wanted: Simulated, stem: str = "line") -> dict[str, str]:
    """Return the traces that the experiment names, by their names."""
    if wanted.varied is None:
        return {}
    found = {}
    for number in range(wanted.varied.amount.cuts):
        for name in wanted.varied.courses:
            course = wanted.varied.cut(name, number)
            if course is not None and course.trace_ms:
                found[trace_name(number, name, stem)] = trace_text(course.trace_ms)
    return found


def _line(wanted: Simulated, direction: Direction, cut: int = 0) -> dict[str, Any]:
    """Return the keys of the line in one direction that say its rate."""
    course = None if wanted.varied is None else wanted.varied.cut(direction, cut)
    if course is None:
        return {"rate": _rate(wanted.link_bps(direction))}
    return courses.link(course, trace_name(cut, direction))


def _varied_factors(wanted: Simulated) -> dict[str, list[Any]]:
    """Return, in step, the cuts of the line's course and the queues, each queue over each cut."""
    assert wanted.varied is not None and wanted.in_modem is not None
    cuts = range(wanted.varied.amount.cuts)
    rows = [_row(wanted, each, cut) for each in wanted.candidates for cut in cuts]
    rows += [_row(wanted, which, cut) for which in (wanted.in_modem, None) for cut in cuts]
    return {key: [row[key] for row in rows] for key in rows[0]}


def _row(wanted: Simulated, chosen: Candidate | None, cut: int) -> dict[str, Any]:
    """Return what a candidate sets over a cut; None is the line as it is."""
    assert wanted.varied is not None
    row: dict[str, Any] = {"chain.hop1.return.queue": wanted.link_queue("up")}
    for name in wanted.varied.courses:
        hop = _HOPS[name].format(1)
        row |= {f"{hop}.{key}": value for key, value in _line(wanted, name, cut).items()}
        row |= _router(name, [(0.0, wanted.router_bps)])
    tables: dict[Direction, dict[str, Any]] = dict.fromkeys(DIRECTIONS, _THROUGH)
    if chosen is not None and chosen != wanted.in_modem:
        tables = {name: _in_router(getattr(chosen, name).shaped) for name in DIRECTIONS}
        for name, rates in _followed(wanted, chosen, cut).items():
            row |= _router(name, rates)
    if chosen is not None and chosen.up.shaped.shaper_bps is None:  # it stands at the line
        row["chain.hop1.return.queue"] = dict(chosen.up.shaped.queue)
        tables["up"] = _THROUGH
    label = AS_IT_IS if chosen is None else chosen.label
    queues = {f"{_HOPS[name].format(2)}.queue": table for name, table in tables.items()}
    return row | {key: {**table, "label": label} for key, table in queues.items()}


def _router(direction: Direction, rates: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return the keys of the router's link with these rates."""
    hop = _HOPS[direction].format(2)
    return {f"{hop}.{key}": value for key, value in courses.changing(rates).items()}


def _in_router(shaped: Shaped) -> dict[str, Any]:
    """Return a queue of the router's; where its shaper follows, it is the link's rate."""
    if shaped.follows is None:
        return shaped_table(shaped)
    # Without a rate CAKE does not shape, and only a shaper counts what it drops.
    return {key: value for key, value in shaped.queue.items() if key != "ingress"}


def _followed(
    wanted: Simulated, chosen: Candidate, cut: int
) -> dict[Direction, list[tuple[float, float]]]:
    assert wanted.varied is not None
    if chosen.down.shaped.follows is None and chosen.up.shaped.follows is None:
        return {}
    rates = {"down": wanted.down_bps, "up": wanted.up_bps}
    buffers = dict(zip(DIRECTIONS, wanted.buffers, strict=True))
    return courses.followed(
        chosen,
        wanted.varied,
        cut,
        wanted.line,
        {name: rates[name] for name in DIRECTIONS},
        {name: rates[name] * buffers[name] / 8 for name in DIRECTIONS},
        wanted.loads,
    )


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
