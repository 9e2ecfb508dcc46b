"""What makes two recordings not comparable: then no difference between them says that it helped.

Each obstacle is about the delays and rates of one load, or about all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from redtail.lines.recordings.found import Found
from redtail.lines.recordings.timeline import IDLE
from redtail.lines.recordings.values import quantity
from redtail.lines.verify.phases import Loaded, stands
from redtail.lines.verify.promise import Promise

FULL = 0.9
"""Share of the rate of a line, or of a shaper, from which a load is taken to fill it. Source: our
choice: an advised shaper stands at 95 % of a line, and TCP leaves some of that; a load that happens
to be limited elsewhere at nine tenths of it is not told apart."""

SAME_BASE, SAME_BASE_S = 0.1, 0.005
"""How far base round trips of one path may be apart: this part of one, or so much. Source: our
choice; a shaper adds the time of two packets at most."""


@dataclass(frozen=True)
class Side:
    """One of the two recordings.

    Attributes:
        name: "before" or "after".
        found: what was estimated from it.
        loads: what it has of each load.
    """

    name: str
    found: Found
    loads: Mapping[str, Loaded]

    @property
    def base_s(self) -> float | None:
        """The base round trip, if it is known as more than a bound."""
        rtt = self.found.rtt
        return None if rtt.bound else rtt.value

    def stands(self, load: str) -> bool:
        """Return whether a queue stood under a load."""
        base, found = self.found.rtt.value, self.loads[load]
        if base is None:
            return False
        idle = self.loads.get(IDLE)
        noise = max(idle.p95.value - base, 0.0) if idle is not None and idle.p95.known else 0.0
        rates = [each.value for each in found.rates.values() if each.known]
        return stands(found, base, noise, min(rates, default=0.0))


@dataclass(frozen=True)
class Obstacle:
    """What makes a comparison of two recordings say nothing.

    Attributes:
        load: the load that it is about; None for all.
        text: what it is, and what would do.
    """

    load: str | None
    text: str

    def concerns(self, load: str) -> bool:
        """Return whether it is about a load."""
        return self.load is None or self.load == load


def obstacles(before: Side, after: Side, promise: Promise | None) -> Iterator[Obstacle]:
    """Yield what makes two recordings not comparable."""
    yield from _general(before, after)
    common = [load for load in before.loads if load in after.loads]
    if not common:
        told = "; ".join(
            f"{side.name}: {', '.join(side.loads) or 'nothing tells what loaded the line'}"
            for side in (before, after)
        )
        yield Obstacle(
            None,
            f"the recordings have no load in common ({told}); record both under the same load "
            "(--load says what was on the line beside a log of pings)",
        )
    for load in common:
        if load != IDLE:
            yield from _of_load(before, after, load, promise)


def _general(before: Side, after: Side) -> Iterator[Obstacle]:
    was, now = before.found.timeline, after.found.timeline
    for side, timeline in ((before, was), (after, now)):
        if timeline is None or not len(timeline.sent_s):
            yield Obstacle(
                None, f"{side.name}: the recording has no round trips over time ({side.found.form})"
            )
    if was is None or now is None:
        return
    if was.probe != now.probe:
        yield Obstacle(
            None,
            f"the round trips are of {was.probe} before and of {now.probe} after, which queues may "
            "treat differently; record both by the same program",
        )
    if was.server and now.server and was.server != now.server:
        yield Obstacle(
            None,
            f"the far end is {was.server} before and {now.server} after; record to the same one",
        )
    base_was, base_now = before.base_s, after.base_s
    if base_was is None or base_now is None or not (IDLE in before.loads and IDLE in after.loads):
        return
    if abs(base_now - base_was) > max(SAME_BASE * min(base_was, base_now), SAME_BASE_S):
        yield Obstacle(
            None,
            f"the base round trip is {quantity(base_was, 's', 3)} before and "
            f"{quantity(base_now, 's', 3)} after: another server, or another way to it; record to "
            "the same one, beside idle time",
        )


def _of_load(before: Side, after: Side, load: str, promise: Promise | None) -> Iterator[Obstacle]:
    was, now = before.found.timeline, after.found.timeline
    names = ("down", "up") if load == "both" else (load,)
    for name in names:
        streams = [
            None if timeline is None or timeline.streams is None else timeline.streams.get(name)
            for timeline in (was, now)
        ]
        if None not in streams and streams[0] != streams[1]:
            yield Obstacle(
                load,
                f"{streams[0]} connections loaded it {name} before and {streams[1]} after; record "
                "both with as many",
            )
    for side, other in ((before, after), (after, before)):
        text = why_not_full(side, other, load, promise)
        if text:
            yield Obstacle(load, text)


def why_not_full(side: Side, other: Side, load: str, promise: Promise | None) -> str:
    """Return why a recording does not show that a load filled the line; empty if it does.

    A queue stood; or a shaper keeps it away, and then the load has to carry what the line carried
    where a queue stood in the other recording, or what the advice's shaper lets through.
    """
    if side.stands(load):
        return ""
    found = side.loads[load]
    if not found.rates:
        if side.found.timeline is not None and not side.found.timeline.phases:
            return ""  # what was on the line is what the user says
        return f"{side.name}: nothing tells what was delivered under the load"
    missing = []
    for name, rate in found.rates.items():
        full = _full_bps(side, other, load, name, promise)
        if full is None:
            missing.append(
                f"{name}: no queue stood in either recording, so nothing tells how much fills the "
                "line"
            )
        elif not rate.known or rate.value < FULL * full:
            carried = quantity(rate.value, "bit/s", 3) if rate.known else "an unknown rate"
            least = quantity(FULL * full, "bit/s", 3)
            missing.append(f"{name}: no queue stood, and {carried} is below {least}")
    if not missing:
        return ""
    return (
        f"{side.name}: the load is not known to have filled the line ({'; '.join(missing)}); load "
        "it with more connections, to a server that is faster than the line"
    )


def _full_bps(
    side: Side, other: Side, load: str, name: str, promise: Promise | None
) -> float | None:
    """Return what a load carries at least where it fills the line; None if nothing tells."""
    told = []
    if promise is not None:
        shaper = promise.shaper_bps.get(name) if side.name == "after" else None
        told.append(shaper or promise.line_bps[name])
    rate = other.loads[load].rates.get(name)
    if other.stands(load) and rate is not None and rate.known:
        told.append(rate.value)
    return min(told, default=None)
