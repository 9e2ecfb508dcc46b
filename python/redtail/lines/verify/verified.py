"""Whether a change helped: the rows of a comparison, its verdict, and the promise of an advice."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from redtail.analysis.paired import LEVEL, adjusted
from redtail.errors import SpecError
from redtail.files import path_of
from redtail.lines.advice.objectives import LOST_AT_MOST
from redtail.lines.recordings.reading import estimate
from redtail.lines.recordings.timeline import DOWN, IDLE, LOADS, UP
from redtail.lines.verify import promise as promises
from redtail.lines.verify.blocks import Difference, Value, difference
from redtail.lines.verify.comparable import Obstacle, Side, obstacles
from redtail.lines.verify.phases import loaded

DELAY_MARGIN_S, DELAY_MARGIN = 0.005, 0.1
"""A delay that differs by less than this, or by this part of what it was, makes no difference that
counts. Source: TARGET of CoDel (RFC 8289, section 4.3), below which a queue is good; the share is
our choice."""

LOSS_MARGIN = 0.01
"""The same of the share of lost packets. Source: our choice."""

RATE_MARGIN = LOST_AT_MOST
"""The same of a rate, as a share of what it was."""

Effect: TypeAlias = Literal["better", "worse", "alike", "undecided"]
Verdict: TypeAlias = Literal["helped", "did not help", "made it worse", "undecided"]
Kept: TypeAlias = Literal["kept", "not kept", "cannot be told"]

BASE = "base round trip"
"""The quantity that says whether the way is the same, and not whether it is better."""


_INCOMPARABLE = "not comparable: "


@dataclass(frozen=True)
class Row:
    """A quantity, before and after.

    Attributes:
        load: what was on the line.
        quantity: "delay median", "delay p95", "delay spread", "loss", "rate down", "rate up" or
            "base round trip".
        unit: "s", "bit/s" or "" (a share).
        before, after: the values.
        difference: after less before; None where an error is not known.
        margin: a smaller difference does not count.
        p: p-value among all rows (Holm's correction); None without a test.
        effect: what the row says.
        why: why it is undecided.
    """

    load: str
    quantity: str
    unit: str
    before: Value
    after: Value
    difference: Difference | None
    margin: float
    p: float | None
    effect: Effect
    why: str = ""

    @property
    def name(self) -> str:
        """The quantity with its load."""
        if self.quantity == f"rate {self.load}":
            return f"{self.load} rate"
        return f"{self.load} {self.quantity}".strip()

    @property
    def missing(self) -> str:
        """What is missing for it to say something; empty if nothing is, or if it is never asked."""
        asked = self.effect == "undecided" and self.quantity != BASE
        return self.why if asked and not self.why.startswith(_INCOMPARABLE) else ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values; null where there is none."""
        return {
            "load": self.load,
            "quantity": self.quantity,
            "unit": self.unit,
            "before": _value(self.before),
            "after": _value(self.after),
            "difference": None if self.difference is None else asdict(self.difference),
            "margin": self.margin,
            "p_adjusted": self.p,
            "effect": self.effect,
            "why": self.why,
        }


def _value(found: Value) -> dict[str, Any]:
    ends = found.ends()
    return {
        "value": found.value if found.known else None,
        "bound": found.bound,
        "low": None if ends is None else ends[0],
        "high": None if ends is None else ends[1],
        "why": found.why,
    }


@dataclass(frozen=True)
class Promised:
    """A promise beside what came of it.

    Attributes:
        what: what was promised, in words.
        unit: "s" or "bit/s".
        promised: the value that it may have at most (delay) or at least (rate).
        measured: the value after.
        kept: whether it was kept.
        why: why that is said.
    """

    what: str
    unit: str
    promised: float
    measured: Value
    kept: Kept
    why: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "what": self.what,
            "unit": self.unit,
            "promised": self.promised,
            "measured": _value(self.measured),
            "kept": self.kept,
            "why": self.why,
        }


@dataclass(frozen=True)
class Verified:
    """Two recordings of a line, and whether what was done between them helped.

    Attributes:
        before, after: the recordings.
        rows: the quantities of the loads that both have.
        obstacles: what makes them not comparable.
        promise: what an advice promised; None without one.
        promised: its promises beside what came of them.
    """

    before: Side
    after: Side
    rows: tuple[Row, ...]
    obstacles: tuple[Obstacle, ...]
    promise: promises.Promise | None = None
    promised: tuple[Promised, ...] = ()

    def with_effect(self, effect: Effect) -> tuple[Row, ...]:
        """Return the rows that say this."""
        return tuple(row for row in self.rows if row.effect == effect and row.quantity != BASE)

    @property
    def verdict(self) -> Verdict:
        """Whether it helped."""
        better, worse = self.with_effect("better"), self.with_effect("worse")
        if better and worse:
            return "undecided"
        if better:
            return "helped"
        if worse:
            return "made it worse"
        asked = [row for row in self.rows if row.load != IDLE and row.quantity in _ASKED]
        alike = asked and all(row.effect == "alike" for row in asked)
        return "did not help" if alike else "undecided"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is what it is, or what is missing for one, a sentence each."""
        named = {
            effect: ", ".join(row.name for row in self.with_effect(effect))
            for effect in ("better", "worse")
        }
        found = []
        if named["better"] and named["worse"]:
            found.append(
                f"some is better ({named['better']}) and some is worse ({named['worse']}): which "
                "counts for more is not for a measurement to say"
            )
        elif named["better"] or named["worse"]:
            effect = "better" if named["better"] else "worse"
            found.append(f"{effect}: {named[effect]}")
        found += [
            each.text if each.load is None else f"{each.load}: {each.text}"
            for each in self.obstacles
        ]
        return tuple(dict.fromkeys(found))

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to know before the verdict is relied on."""
        return (
            "two recordings do not tell how a line differs from one hour to another: record before "
            "and after more than once, at the same time of day",
            *(f"{side.name}: {text}" for side in (self.before, self.after)
              for text in side.found.cautions if text.startswith("the file is damaged")),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, in SI units and shares."""
        return {
            "format": 1,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "before": str(self.before.found.file),
            "after": str(self.after.found.file),
            "rows": [row.as_dict() for row in self.rows],
            "not_comparable": [asdict(each) for each in self.obstacles],
            "advice": None if self.promise is None else self.promise.file,
            "promised": [each.as_dict() for each in self.promised],
            "level": LEVEL,
            "cautions": list(self.cautions),
        }

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_text(self, width: int = 100) -> str:
        """Return it as the command prints it, in so many columns."""
        from redtail.lines.verify.report import printed

        return printed(self, width)

    def table_text(self, form: str = "csv") -> str:
        """Return the rows as text for other programs: "csv", "latex" or "markdown".

        Raises:
            SpecError: there is no such form.
        """
        from redtail.lines.verify.report import text_of

        return text_of(self, form)


_ASKED = ("delay median", "delay p95", "rate down", "rate up")
"""What has to be alike for a change to have done nothing."""


def verify_change(
    before: str | os.PathLike[str],
    after: str | os.PathLike[str],
    *,
    advice: str | os.PathLike[str] | None = None,
    load: str | None = None,
    rtt_s: float | None = None,
    local: Sequence[str] = (),
) -> Verified:
    """Return whether what was done between two recordings of a line helped.

    Args:
        before: a recording, of any form that `estimate` reads.
        after: another one.
        advice: the JSON of an advice, or the folder of its runs.
        load: what was on the line while pings were logged, whose file does not tell: "down", "up",
            "both" or "idle".
        rtt_s: the base round trip in s, in place of what the recordings tell.
        local: of captures: addresses and networks of the people.

    Raises:
        SpecError: a file cannot be read, or is none that is known.
    """
    if load is not None and load not in LOADS:
        raise SpecError(f"load {load}: accepted: {', '.join(LOADS)}", key="load")
    promise = None if advice is None else promises.read(path_of(advice))
    sides = [
        _side(name, path_of(file), load, rtt_s, local)
        for name, file in (("before", before), ("after", after))
    ]
    return compared(sides[0], sides[1], promise)


def _side(
    name: str, file: Path, load: str | None, rtt_s: float | None, local: Sequence[str]
) -> Side:
    found = estimate(file, rtt_s=rtt_s, local=local)
    timeline = found.timeline
    if load is not None and timeline is not None and timeline.phases:
        raise SpecError(
            f"load {load}: {file} tells what loaded the line; accepted: with logs of pings alone",
            key="load",
        )
    return Side(name, found, {} if timeline is None else loaded(timeline, load))


def compared(before: Side, after: Side, promise: promises.Promise | None = None) -> Verified:
    """Return two recordings compared."""
    found = tuple(obstacles(before, after, promise))
    rows = [*_base(before, after), *_rows(before, after)]
    p_values = adjusted(
        [
            None if row.difference is None or _blocking(found, row) else row.difference.p
            for row in rows
        ]
    )
    judged = tuple(_judged(row, p, found) for row, p in zip(rows, p_values, strict=True))
    promised = () if promise is None else tuple(_promised(promise, after, found))
    return Verified(before, after, judged, found, promise, promised)


def _base(before: Side, after: Side) -> Iterator[Row]:
    was, now = (
        Value(
            math.nan if rtt.value is None else rtt.value,
            why=rtt.basis,
            bound=rtt.bound,
        )
        for rtt in (before.found.rtt, after.found.rtt)
    )
    if was.known or now.known:
        yield Row("", BASE, "s", was, now, None, 0.0, None, "undecided")


def _rows(before: Side, after: Side) -> Iterator[Row]:
    for load, was in before.loads.items():
        now = after.loads.get(load)
        if now is None:
            continue
        for name in (DOWN, UP):
            if name in was.rates and name in now.rates:
                yield _row(load, f"rate {name}", "bit/s", was.rates[name], now.rates[name])
        for name, unit, before_it, after_it in (
            ("delay median", "s", was.median, now.median),
            ("delay p95", "s", was.p95, now.p95),
            ("delay spread", "s", was.spread, now.spread),
            ("loss", "", was.loss, now.loss),
        ):
            if before_it.known or after_it.known:
                yield _row(load, name, unit, before_it, after_it)


def _row(load: str, name: str, unit: str, before: Value, after: Value) -> Row:
    margin = LOSS_MARGIN
    if unit == "s":
        margin = DELAY_MARGIN_S
        if before.known:
            margin = max(margin, DELAY_MARGIN * before.value)
    elif unit == "bit/s":
        margin = RATE_MARGIN * (before.value if before.known else 0.0)
    return Row(
        load, name, unit, before, after, difference(after, before), margin, None, "undecided"
    )


def _blocking(found: Sequence[Obstacle], row: Row) -> Obstacle | None:
    return next((each for each in found if each.concerns(row.load)), None)


def _judged(row: Row, p: float | None, found: Sequence[Obstacle]) -> Row:
    """Return a row with what it says.

    A difference counts if it is not by chance among all rows, and larger than the margin; there is
    none that counts if its whole interval is within the margin.
    """
    if row.quantity == BASE:
        return row
    if (obstacle := _blocking(found, row)) is not None:
        return replace(row, why=_INCOMPARABLE + obstacle.text)
    change = row.difference
    if change is None or p is None:
        return replace(row, why=row.before.why or row.after.why)
    if p <= LEVEL and abs(change.value) > row.margin:
        good = change.value > 0 if row.unit == "bit/s" else change.value < 0
        return replace(row, p=p, effect="better" if good else "worse")
    if -row.margin < change.low and change.high < row.margin:
        return replace(row, p=p, effect="alike")
    why = "the interval has both no difference and one that counts; record for longer"
    if p > LEVEL and not change.low <= 0 <= change.high:
        why = "it differs alone, but among so many rows it may be by chance; record for longer"
    if p <= LEVEL:
        why = "it differs, but nothing tells whether by as much as counts; record for longer"
    return replace(row, p=p, why=why)


def _promised(
    promise: promises.Promise, after: Side, found: Sequence[Obstacle]
) -> Iterator[Promised]:
    for load, now in after.loads.items():
        if load == IDLE:
            continue
        expected = promise.under(load)
        if expected is None:
            continue
        why = "" if after.base_s is None else _other_path(promise, after.base_s)
        blocked = next(
            (each.text for each in found if each.concerns(load) and "after:" in each.text), ""
        )
        limit = sum(mean + _half(half) for mean, half in expected.delays_s.values())
        if len(expected.delays_s) == 2:
            name = f"{load} delay p95: a call's round trip under '{expected.load}'"
            held = _held(name, "s", limit, now.p95, blocked or why, at_most=True)
            timeline = after.found.timeline
            if held.kept == "not kept" and timeline is not None and timeline.own:
                held = replace(held, kept="cannot be told", why=_OWN)
            yield _on_condition(held, promise.condition)
        for direction, (lost, half) in expected.lost.items():
            if direction not in now.rates:
                continue
            least = promise.line_bps[direction] * (1 - min(lost + _half(half), 1.0))
            name = f"rate {direction}: under '{expected.load}'"
            held = _held(name, "bit/s", least, now.rates[direction], blocked, at_most=False)
            yield _on_condition(held, promise.condition)


_OWN = (
    "the round trips are those of the transfers themselves, which may wait longer than a call; "
    "record pings beside them"
)


def _on_condition(held: Promised, condition: str) -> Promised:
    """Return a promise that holds on a condition only: it is not broken by what is not known."""
    if not condition or held.kept != "not kept":
        return held
    why = f"it holds only if {condition}, which the recordings do not tell"
    return replace(held, kept="cannot be told", why=why)


def _half(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _other_path(promise: promises.Promise, base_s: float) -> str:
    """Return why a promise of delays is about another way; empty if it is not."""
    apart = abs(base_s - promise.rtt_s)
    if apart <= max(DELAY_MARGIN * promise.rtt_s, DELAY_MARGIN_S):
        return ""
    return (
        f"the advice is for a base round trip of {1e3 * promise.rtt_s:.3g} ms, and it is "
        f"{1e3 * base_s:.3g} ms"
    )


def _held(
    what: str, unit: str, limit: float, measured: Value, blocked: str, *, at_most: bool
) -> Promised:
    """Return whether a promise was kept: with its whole interval on one side of the limit.

    The margins of differences that count are granted.
    """
    granted = limit * (1 + DELAY_MARGIN) if at_most else limit * (1 - RATE_MARGIN)
    if at_most:
        granted = max(granted, limit + DELAY_MARGIN_S)
    ends = measured.ends()
    kept: Kept = "cannot be told"
    if blocked:
        why = blocked
    elif ends is None:
        why = measured.why or "it was not measured"
    elif ends[1] <= granted if at_most else ends[0] >= granted:
        kept, why = "kept", "the whole 95 % interval is within it"
        if ends[1] > limit if at_most else ends[0] < limit:
            why += ", with the margin that is granted"
    elif ends[0] > granted if at_most else ends[1] < granted:
        kept, why = "not kept", "the whole 95 % interval is beyond it"
    else:
        why = "its 95 % interval is on both sides of it; record for longer"
    return Promised(what, unit, limit, measured, kept, why)
