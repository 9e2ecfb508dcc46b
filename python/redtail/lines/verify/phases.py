"""What a recording has of each load: delays, rates and losses, each in blocks of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import rates, transfers
from redtail.lines.recordings.timeline import IDLE, SHORT_S, Delivered, Phase, Timeline
from redtail.lines.verify.blocks import FEWEST_BLOCKS, MOST_BLOCKS, Value, of_blocks

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

QUANTILES: Mapping[str, float] = {"median": 0.5, "p95": 0.95}
"""The delays that are compared. Source: the median is what most packets meet; the 95th percentile
is what an advice promises (`advice.objectives.DELAY`)."""

IN_A_BLOCK: Mapping[str, int] = {"median": 3, "p95": 10, "spread": 10, "loss": 10}
"""Probes that a block needs for each value. Source: our choice; of ten samples the 95th percentile
lies between the two largest."""

UNKNOWN = Value(math.nan, why="the recording does not tell it")


@dataclass(frozen=True)
class Loaded:
    """What a recording has of one load.

    Attributes:
        load: the load.
        seconds: how long it lasted, without its ends.
        probes: how many probes were sent in it.
        median, p95: round trips.
        spread: the 95th percentile less the 5th.
        loss: share of the probes that were lost.
        rates: by direction, what was delivered, in bit/s of IP packets.
        tenth_s: what nine of ten round trips took at least; NaN without any.
    """

    load: str
    seconds: float
    probes: int
    median: Value
    p95: Value
    spread: Value
    loss: Value
    rates: Mapping[str, Value]
    tenth_s: float


def loaded(timeline: Timeline, load: str | None = None) -> dict[str, Loaded]:
    """Return what a recording has of each load, in the order of time.

    Args:
        timeline: what it shows over time.
        load: what was on the line all the time, where the recording does not tell.
    """
    phases = timeline.phases
    if not phases and load is not None and len(timeline.sent_s):
        phases = (Phase(load, float(timeline.sent_s[0]), float(timeline.sent_s[-1])),)
    by_load: dict[str, list[Phase]] = {}
    for phase in phases:
        settled = phase.settled()
        if phase.to_s - phase.from_s >= SHORT_S:
            by_load.setdefault(phase.load, []).append(settled)
    return {name: _of_stretches(timeline, name, some) for name, some in by_load.items()}


def _of_stretches(timeline: Timeline, load: str, stretches: Sequence[Phase]) -> Loaded:
    clock = _Clock(stretches)
    at = clock.own(timeline.sent_s)
    inside = np.isfinite(at)
    at, trip = at[inside], timeline.trip_s[inside]
    answered = np.isfinite(trip)
    known_at, known = at[answered], trip[answered]
    # A number that is rounded has an error of a twelfth of the square of the step.
    rounding = timeline.finest_s / math.sqrt(12)

    def over(name: str, of: Callable[[Array], float]) -> Value:
        return _in_blocks(clock, known_at, known, of, IN_A_BLOCK[name], rounding)

    lost = np.where(answered, 0.0, 1.0) if not timeline.own else np.zeros(0)
    return Loaded(
        load,
        clock.length_s,
        len(at),
        over("median", lambda part: float(np.quantile(part, QUANTILES["median"]))),
        over("p95", lambda part: float(np.quantile(part, QUANTILES["p95"]))),
        over("spread", lambda part: float(np.diff(np.quantile(part, [0.05, 0.95]))[0])),
        _in_blocks(
            clock,
            at[: len(lost)],
            lost,
            lambda part: float(part.mean()),
            IN_A_BLOCK["loss"],
            _of_few(lost),
        ),
        {
            name: _rate(clock, way)
            for name, way in timeline.delivered.items()
            if load in (name, "both")
        },
        float(np.quantile(known, rates.STANDING)) if len(known) else math.nan,
    )


def _of_few(lost: Array) -> float:
    """Return the error that a share of lost probes has at least: also none lost is no certainty.

    It is that of independent losses (A. Agresti, B. A. Coull, The American Statistician 52(2),
    1998: with two more that were lost and two that were not).
    """
    count = len(lost) + 4
    share = (float(lost.sum()) + 2) / count
    return math.sqrt(share * (1 - share) / count)


@dataclass(frozen=True)
class _Clock:
    """A clock that goes in stretches of time alone."""

    stretches: Sequence[Phase]

    @property
    def length_s(self) -> float:
        return math.fsum(each.to_s - each.from_s for each in self.stretches)

    def own(self, at_s: Array) -> Array:
        """Return times on this clock; NaN for those outside of the stretches."""
        found = np.full(len(at_s), np.nan)
        begin = 0.0
        for each in self.stretches:
            inside = (at_s >= each.from_s) & (at_s < each.to_s)
            found[inside] = at_s[inside] - each.from_s + begin
            begin += each.to_s - each.from_s
        return found

    def blocks(self, count: int) -> Array:
        """Return the edges of blocks of equal length on this clock."""
        return np.linspace(0.0, self.length_s, count + 1)

    def pieces(self, from_s: float, to_s: float) -> list[tuple[float, float]]:
        """Return the times that a block on this clock has on the recording's."""
        found = []
        begin = 0.0
        for each in self.stretches:
            length = each.to_s - each.from_s
            first, last = max(from_s, begin) - begin, min(to_s, begin + length) - begin
            if last > first:
                found.append((each.from_s + first, each.from_s + last))
            begin += length
        return found


def _in_blocks(
    clock: _Clock,
    at: Array,
    values: Array,
    of: Callable[[Array], float],
    in_a_block: int,
    least: float,
) -> Value:
    if not len(values):
        return Value(math.nan, why="no probe was answered")
    whole = of(values)
    count = min(MOST_BLOCKS, len(values) // in_a_block)
    if count < FEWEST_BLOCKS:
        needed = FEWEST_BLOCKS * in_a_block
        return Value(whole, why=f"it has {len(values)} probes, and {needed} are needed")
    slot = np.clip(np.searchsorted(clock.blocks(count), at, side="right") - 1, 0, count - 1)
    parts = [values[slot == place] for place in range(count)]
    told = [of(part) for part in parts if len(part) >= in_a_block / 2]
    return of_blocks(whole, told, least)


def _rate(clock: _Clock, way: Delivered) -> Value:
    if clock.length_s <= 0:
        return UNKNOWN
    reports = np.isfinite(clock.own(way.at_s)).sum()
    count = int(min(MOST_BLOCKS, reports // 2))
    if count < 1:
        return Value(math.nan, why="it has no course of what was delivered in this time")
    edges = clock.blocks(count)
    each = [
        8 * math.fsum(float(way.between(np.array(piece))[0]) for piece in clock.pieces(*block))
        / (block[1] - block[0])
        for block in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]  # fmt: skip
    return of_blocks(math.fsum(each) / count, each)


def stands(found: Loaded, base_s: float, noise_s: float, bps: float) -> bool:
    """Return whether a queue stood under a load: nine of ten probes waited (`rates.standing_s`).

    Args:
        found: what the recording has of the load.
        base_s: the base round trip.
        noise_s: what round trips vary without load.
        bps: about the rate of the line; 0 if it is not known.
    """
    if found.load == IDLE or math.isnan(found.tenth_s):
        return False
    least = max(transfers.STANDING_S, rates.standing_s(bps, noise_s))
    return found.tenth_s - base_s > least
