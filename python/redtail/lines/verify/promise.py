"""What an advice promised: the JSON of `redtail advise`, or what it kept beside its runs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redtail.errors import SpecError, StoreError
from redtail.files import plain_bytes
from redtail.lines.line import DIRECTIONS
from redtail.lines.recordings.documents import number, of_kind, parsed, part, short

LARGEST_B = 4_000_000
"""Bytes that the JSON of an advice may have. Source: as `store.advice.LARGEST`."""

MOST_BPS, MOST_S, MOST_LOADS = 1e13, 1e4, 1000

FORMAT = 1


@dataclass(frozen=True)
class Expected:
    """What the advised queue does under a load, as the advice says.

    Attributes:
        load: the load's name.
        about: what it is, in words.
        delays_s: by direction, the 95th percentile of the one-way delay of a call's packets, and
            half the width of its interval.
        lost: by direction, the share of the line's rate that is lost, and the same.
    """

    load: str
    about: str
    delays_s: Mapping[str, tuple[float, float]]
    lost: Mapping[str, tuple[float, float]]

    @property
    def fills(self) -> tuple[str, ...]:
        """The directions that the load fills: those of which a loss of throughput is told."""
        return tuple(self.lost)


@dataclass(frozen=True)
class Promise:
    """What an advice promised.

    Attributes:
        file: where it stands.
        queue: the queue that it advises.
        line_bps: by direction, the rate of the line that it is for.
        shaper_bps: by direction, the rate of the shaper; None for none.
        rtt_s: the base round trip of the line.
        expected: what the advised queue does under each load.
        condition: what all of it holds only if; empty for nothing.
    """

    file: str
    queue: str
    line_bps: Mapping[str, float]
    shaper_bps: Mapping[str, float | None]
    rtt_s: float
    expected: tuple[Expected, ...]
    condition: str = ""

    def under(self, load: str) -> Expected | None:
        """Return what is expected where the line is filled as under "down", "up" or "both".

        Of several loads it is the lightest, which is the first.
        """
        wanted = DIRECTIONS if load == "both" else (load,)
        return next((each for each in self.expected if set(each.fills) == set(wanted)), None)


def read(place: Path) -> Promise:
    """Return the promise of an advice.

    Args:
        place: the file, or the folder of the advice's runs.

    Raises:
        SpecError: it is no advice; the text names the key and what is accepted.
    """
    from redtail.store import advice

    try:
        if place.is_dir():
            return of_document(advice.answer(place), str(place))
        data = plain_bytes(place, LARGEST_B)
        return of_document(parsed(data.decode("utf-8-sig")), str(place))
    except OSError as error:
        raise SpecError(f"{place}: cannot be read: {error.strerror or error}") from None
    except (StoreError, ValueError) as error:
        if isinstance(error, SpecError):
            raise
        text = str(error) if isinstance(error, StoreError) else f"{place}: {error}"
        raise SpecError(text, file=str(place)) from None


def of_document(data: object, file: str) -> Promise:
    """Return the promise that the JSON of an advice has.

    Raises:
        ValueError: it has another form; the text says which key.
    """
    accepted = "what `redtail advise --json` prints"
    if not isinstance(data, dict) or not {"format", "line", "expected"} <= data.keys():
        raise ValueError(f"is no advice; accepted: {accepted}")
    if data["format"] != FORMAT:
        raise ValueError(f'"format" is {short(json.dumps(data["format"]))}; accepted: {FORMAT}')
    line = part(data, "line", "the advice")
    label = _label(data, of_kind(data.get("queue"), str, '"queue"'))
    condition = data.get("holds_if")
    about = part(data, "loads", "the advice")
    rows = of_kind(data["expected"], list, '"expected"')
    if len(rows) > MOST_LOADS:
        raise ValueError(f'"expected" has {len(rows)} values; accepted: up to {MOST_LOADS}')
    expected = tuple(
        _expected(row, f'"expected": value {place}', about)
        for place, row in enumerate(rows, start=1)
        if of_kind(row, dict, f'"expected": value {place}').get("queue") == label
        and row.get("load") in about
    )
    return Promise(
        file,
        short(label),
        {name: _needed(line, f"{name}_bps", '"line"', MOST_BPS) for name in DIRECTIONS},
        {
            name: number(part(data, name, "the advice"), "shaper_bps", f'"{name}"', MOST_BPS)
            for name in DIRECTIONS
        },
        _needed(line, "rtt_s", '"line"', MOST_S),
        expected,
        "" if condition is None else short(of_kind(condition, str, '"holds_if"')),
    )


def _label(data: Mapping[str, Any], key: str) -> str:
    """Return how tables call the advised queue."""
    for place, row in enumerate(of_kind(data.get("ranking"), list, '"ranking"'), start=1):
        of_kind(row, dict, f'"ranking": value {place}')
        if row.get("key") == key:
            found: str = of_kind(row.get("queue"), str, f'"ranking": value {place}: "queue"')
            return found
    raise ValueError(f'"ranking" has no queue with the key "{short(key)}", which "queue" names')


def _expected(row: Mapping[str, Any], where: str, about: Mapping[str, Any]) -> Expected:
    load = of_kind(row.get("load"), str, f'{where}: "load"')
    return Expected(
        short(load),
        short(of_kind(about[load], str, '"loads"')),
        _measures(row, where, "call", MOST_S),
        _measures(row, where, "lost", 1.0),
    )


def _measures(
    row: Mapping[str, Any], where: str, name: str, most: float
) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for direction in DIRECTIONS:
        key = f"{name}_{direction}"
        told = part(row, key, where) if key in row else {}
        mean = number(told, "mean", f'{where}: "{key}"', most)
        if mean is not None:
            half = number(told, "ci95", f'{where}: "{key}"', most)
            found[direction] = (mean, math.nan if half is None else half)
    return found


def _needed(data: Mapping[str, Any], key: str, where: str, most: float) -> float:
    found = number(data, key, where, most)
    if not found:
        raise ValueError(f'{where}: "{key}" is missing; accepted: a number above 0')
    return found
