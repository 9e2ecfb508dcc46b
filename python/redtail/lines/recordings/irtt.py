"""Results of irtt in JSON (`irtt client -o`): round trips and delays of each direction.

Source of the form: result.go of irtt 0.9. Times are in ns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import one_way, pings
from redtail.lines.recordings.documents import number, of_kind, part
from redtail.lines.recordings.found import Direction, Found
from redtail.lines.recordings.pings import Pings
from redtail.lines.recordings.timeline import Timeline
from redtail.lines.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

MOST_NS = 1e9 * pings.LONGEST_TRIP_S
"""The longest round trip that is accepted."""

LARGEST_NS = 2.0**63
"""The largest time that is accepted: irtt has 64 bits for it."""

_LOST = {"true_up": "up", "true_down": "down"}

_SIDES = {
    "up": ("client", "send", "server", "receive"),
    "down": ("server", "send", "client", "receive"),
}


def is_one(data: Mapping[str, Any]) -> bool:
    """Return whether an object is a result of irtt."""
    return "round_trips" in data


def estimate(data: Mapping[str, Any], file: Path, direction: str | None = None) -> Found:
    """Return what a result of irtt tells of a line.

    Args:
        data: the document.
        file: where it is from.
        direction: "down" or "up": where packets waited, if the clocks do not tell it.

    Raises:
        ValueError: it has too few round trips, or impossible values; the text says which.
    """
    rows = [
        of_kind(row, dict, f'"round_trips": value {place}')
        for place, row in enumerate(of_kind(data["round_trips"], list, '"round_trips"'), start=1)
    ]
    read = [_row(row, place) for place, row in enumerate(rows, start=1)]
    answered = [row for row in read if row[1] is not None]
    if len(answered) < pings.FEWEST:
        raise ValueError(
            f"it is a result of irtt with {len(answered)} round trips, and {pings.FEWEST} are "
            "needed"
        )
    seq = np.array([place for place, _, _, _, _ in answered])
    sent = _sent_s(read, data)
    trip = np.array([row[1] for row in answered], float)
    ends = (1, len(read))
    whole = pings.series(seq, sent[seq - 1], trip, True, ends)
    ways = {
        name: np.array([row[2 + place] for row in answered], float)
        for place, name in enumerate(one_way.DIRECTIONS)
    }
    why = one_way.why_not(ways, trip)
    base = pings.base(trip)
    over_time = _timeline(read, sent)
    about = f"irtt, {len(read)} round trips in {quantity(whole.duration_s, 's', 3)}"
    if why:
        found = pings.estimate(whole, file, direction)
        note = f"the delays of each direction do not tell where packets waited: {why}"
        cautions = (*found.cautions, note)
        return replace(found, form="irtt", about=about, cautions=cautions, timeline=over_time)
    lost = [row[4] for row in read]
    gone = {
        name: sent[[place for place, told in enumerate(lost) if _LOST.get(told) == name]]
        - sent[seq - 1].min()
        for name in ways
    }
    made = {
        name: _direction(name, waits, lost)
        for name, waits in one_way.split(ways, whole, gone).items()
    }
    told = "irtt runs at the people's side of the line, and its server beyond it"
    return Found(
        file, "irtt", about, whole.duration_s, made["down"], made["up"], base, (), (told,),
        over_time,
    )  # fmt: skip


def _timeline(read: Sequence[Any], sent: Array) -> Timeline:
    trips = np.array([np.nan if row[1] is None else row[1] for row in read], float)
    return Timeline(sent, trips, "UDP")


def round_trips(data: Mapping[str, Any]) -> tuple[Array, Array, Array, Array]:
    """Return when packets were sent, round trips, and delays up and down; NaN where none is told.

    Raises:
        ValueError: a value is impossible; the text says which.
    """
    rows = of_kind(data.get("round_trips"), list, '"round_trips"')
    read = [
        _row(of_kind(row, dict, f'"round_trips": value {place}'), place)
        for place, row in enumerate(rows, start=1)
    ]
    columns = np.array([row[1:4] for row in read], float).reshape(-1, 3)
    return _sent_s(read, data), columns[:, 0], columns[:, 1], columns[:, 2]


def _row(
    row: Mapping[str, Any], place: int
) -> tuple[int, float | None, float | None, float | None, str]:
    """Return number, round trip, delay up and down in s, and in which direction it was lost."""
    where = f'"round_trips": value {place}'
    delay = part(row, "delay", where)
    stamps = part(row, "timestamps", where)
    trip = number(delay, "rtt", f'{where}: "delay"', MOST_NS)
    times = [_one_way(stamps, delay, name, where) for name in one_way.DIRECTIONS]
    told = of_kind(row.get("lost", "false"), str, f'{where}: "lost"')
    return place, None if trip is None else trip / 1e9, times[0], times[1], told


def _one_way(
    stamps: Mapping[str, Any], delay: Mapping[str, Any], name: str, where: str
) -> float | None:
    """Return the delay of a direction, with the distance of the clocks in it.

    That of clocks that nobody sets is taken, if the file has it.
    """
    from_, sent, to, received = _SIDES[name]
    begin, end = (
        number(part(part(stamps, side, where), event, where), "monotonic", where, LARGEST_NS)
        for side, event in ((from_, sent), (to, received))
    )
    if begin and end:
        return (end - begin) / 1e9
    key = "send" if name == "up" else "receive"
    told = number(delay, key, f'{where}: "delay"', LARGEST_NS, -LARGEST_NS)
    return None if told is None else told / 1e9


def _sent_s(read: list[Any], data: Mapping[str, Any]) -> Array:
    """Return when each packet was sent: irtt sends one in each interval."""
    told = part(part(data, "config", "irtt"), "params", '"config"')
    interval = number(told, "interval", '"config": "params"', MOST_NS) or 1e9
    return np.arange(len(read)) * interval / 1e9


def _direction(name: str, waits: Pings, lost: list[str]) -> Direction:
    unknown = sum(told == "true" for told in lost)
    total = len(lost)
    share = Estimated(waits.lost / total, "", f"{waits.lost} of {total} packets")
    if unknown:
        reason = f"of {unknown} of {total} packets it is not told in which direction they were lost"
        share = Estimated(None, "", reason)
    return pings.direction_of("irtt", name, pings.full_wait(waits), share)
