"""Measurements of `redtail measure`: their form, and what they tell of a line.

A file is a JSON object. Times are in s since the begin of the measurement, on the clock of the one
who measured; bytes are payload that was received up to each time. One-way delays have the distance
of two clocks in them. docs/reference/measurement-file.md has the keys for people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from redtail.lines.recordings import loaded, pings, timeline
from redtail.lines.recordings.documents import numbers, of_kind, short, shown
from redtail.lines.recordings.found import Direction, Found
from redtail.lines.recordings.timeline import Timeline
from redtail.lines.recordings.transfers import WIRE
from redtail.lines.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

FORMAT, VERSION = "redtail-measurement", 1

MOST_B, MOST_NUMBERS = 64_000_000, 10_000_000
"""Bytes of a file that is not packed, and numbers in its lists."""

MOST_S, MOST_BYTES, MOST_STREAMS, MOST_PHASES, MOST_NOTES = 1e6, 1e17, 1000, 100, 100

LONGEST_TEXT = 1000

PHASES = ("idle", "down", "up", "both")
"""What loads the line: nothing, downloads, uploads, or both at once (RRUL's form)."""

_LOADING = {"down": ("down", "both"), "up": ("up", "both")}

_NEEDED = ("format", "version", "redtail", "begun", "server", "probe", "phases", "delays")

_KEYS = (*_NEEDED, "one_way", "transfers", "notes")

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True)
class Phase:
    """A part of a measurement.

    Attributes:
        name: one of `PHASES`.
        from_s: its begin.
        to_s: its end.
    """

    name: str
    from_s: float
    to_s: float


@dataclass(frozen=True)
class Transfer:
    """A connection that sent all the time.

    Attributes:
        direction: "down" or "up".
        t_s: times.
        total_b: payload that was received up to each.
        protocol: "tcp".
    """

    direction: str
    t_s: Array
    total_b: Array
    protocol: str = "tcp"


@dataclass(frozen=True)
class Measurement:
    """What `redtail measure` has measured.

    Attributes:
        redtail: the version that wrote it.
        begun: when, as RFC 3339 has it.
        server: the host, as it was named.
        probe: what the delays are of: "udp", "icmp", "irtt" or "tcp-handshake".
        phases: what loaded the line when, in order.
        sent_s: when probes were sent, in order.
        rtt_s: the round trip of each; NaN for those without an answer.
        one_way: when probes were sent that have delays of each direction, those of the way up, and
            those of the way down; each has the distance of two clocks in it. Three empty lists
            without any.
        transfers: the connections.
        notes: what to know besides, a sentence each.
    """

    redtail: str
    begun: str
    server: str
    probe: str
    phases: tuple[Phase, ...]
    sent_s: Array
    rtt_s: Array
    one_way: tuple[Array, Array, Array] = field(
        default_factory=lambda: (np.zeros(0), np.zeros(0), np.zeros(0))
    )
    transfers: tuple[Transfer, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def duration_s(self) -> float:
        """Time up to the last of what it has."""
        ends = [phase.to_s for phase in self.phases]
        ends += [float(self.sent_s[-1])] if len(self.sent_s) else []
        ends += [float(each.t_s[-1]) for each in self.transfers if len(each.t_s)]
        return max(ends, default=0.0)

    def load(self, name: str, phase: Phase) -> loaded.Load | None:
        """Return the transfers of a direction in a phase; None if there are none.

        Args:
            name: "down" or "up".
            phase: one of `phases`.
        """
        columns = []
        for each in self.transfers:
            inside = (each.t_s >= phase.from_s) & (each.t_s <= phase.to_s)
            if each.direction == name and inside.sum() > 1:
                columns.append((each.t_s[inside], each.total_b[inside]))
        trips = self.rtt_s[(self.sent_s >= phase.from_s) & (self.sent_s < phase.to_s)]
        trip = float(np.nanmedian(trips)) if np.isfinite(trips).any() else 0.0
        return loaded.load(columns, phase.name != name, trip)

    def to_text(self) -> str:
        """Return it as the JSON text of a file."""
        sent, up, down = self.one_way
        made: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "redtail": self.redtail,
            "begun": self.begun,
            "server": self.server,
            "probe": self.probe,
            "phases": [
                {"name": each.name, "from_s": _rounded(each.from_s), "to_s": _rounded(each.to_s)}
                for each in self.phases
            ],
            "delays": {"sent_s": _plain(self.sent_s), "rtt_s": _plain(self.rtt_s)},
        }
        if len(sent):
            made["one_way"] = {"sent_s": _plain(sent), "up_s": _plain(up), "down_s": _plain(down)}
        made["transfers"] = [
            {
                "direction": each.direction,
                "t_s": _plain(each.t_s),
                "bytes": [int(value) for value in each.total_b],
                "protocol": each.protocol,
            }
            for each in self.transfers
        ]
        made["notes"] = list(self.notes)
        return json.dumps(made, ensure_ascii=False, allow_nan=False) + "\n"


def _rounded(value: float) -> float:
    """Return a time to the microsecond, which is finer than clocks of programs are read."""
    return round(float(value), 6)


def _plain(values: Array) -> list[float | None]:
    return [None if np.isnan(value) else _rounded(value) for value in values]


def is_one(data: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a document is a measurement."""
    return isinstance(data, dict) and data.get("format") == FORMAT


def parsed(data: Mapping[str, Any], size_b: int) -> Measurement:
    """Return the measurement that a document has.

    Args:
        data: the document.
        size_b: bytes of its text.

    Raises:
        ValueError: it is too large, a key is missing or not known, or a value is impossible; the
            text says which, and what is accepted.
    """
    if size_b > MOST_B:
        raise ValueError(f"has {size_b} bytes; accepted: up to {MOST_B}")
    if data.get("version") != VERSION:
        raise ValueError(f'"version" is {shown(data.get("version"))}; accepted: {VERSION}')
    _refuse_keys(data, _KEYS, _NEEDED, "")
    _refuse_many(data)
    phases = tuple(_phases(data["phases"]))
    sent, rtt = _columns(data["delays"], ("sent_s", "rtt_s"), '"delays"')
    return Measurement(
        _text(data["redtail"], '"redtail"'),
        _time(data["begun"]),
        _text(data["server"], '"server"'),
        _text(data["probe"], '"probe"'),
        phases,
        _ordered(sent, '"delays": "sent_s"'),
        numbers(rtt, '"delays": "rtt_s"', pings.LONGEST_TRIP_S),
        _one_way(data.get("one_way")),
        tuple(_transfers(data.get("transfers", []))),
        tuple(_notes(data.get("notes", []))),
    )


def _refuse_keys(
    data: Mapping[str, Any], known: tuple[str, ...], needed: tuple[str, ...], where: str
) -> None:
    accepted = ", ".join(f'"{key}"' for key in known)
    for key in data:
        if key not in known:
            raise ValueError(f'{where}there is a key "{short(key)}"; accepted: {accepted}')
    for key in needed:
        if key not in data:
            raise ValueError(f'{where}there is no "{key}"; accepted: {accepted}')


def _lists(value: object) -> Iterator[list[Any]]:
    """Yield the lists of a document, also those within others."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            yield each
        if isinstance(each, dict | list):
            inside = each.values() if isinstance(each, dict) else each
            waiting.extend(one for one in inside if isinstance(one, dict | list))


def _refuse_many(data: Mapping[str, Any]) -> None:
    count = sum(map(len, _lists(data)))
    if count > MOST_NUMBERS:
        raise ValueError(f"its lists have {count} values; accepted: up to {MOST_NUMBERS}")


def _text(value: object, where: str) -> str:
    told: str = of_kind(value, str, where)
    if len(told) > LONGEST_TEXT:
        raise ValueError(
            f"{where} has {len(told)} characters; accepted: a text of up to {LONGEST_TEXT}"
        )
    return told


def _time(value: object) -> str:
    told = _text(value, '"begun"')
    if not _TIME.fullmatch(told):
        raise ValueError(
            f'"begun" is "{short(told)}"; accepted: a time of RFC 3339, such as '
            '"2026-11-28T12:00:00Z"'
        )
    return told


def _one_of(value: object, accepted: tuple[str, ...], where: str) -> None:
    if value not in accepted:
        told = f'"{short(value)}"' if isinstance(value, str) else shown(value)
        listed = ", ".join(f'"{one}"' for one in accepted)
        raise ValueError(f"{where} is {told}; accepted: {listed}")


def _some(value: object, where: str, most: int) -> list[Any]:
    found: list[Any] = of_kind(value, list, where)
    if len(found) > most:
        raise ValueError(f"{where} has {len(found)} values; accepted: up to {most}")
    return found


def _phases(value: object) -> Iterator[Phase]:
    before = 0.0
    for place, each in enumerate(_some(value, '"phases"', MOST_PHASES), start=1):
        where = f'"phases": value {place}'
        keys = ("name", "from_s", "to_s")
        _refuse_keys(of_kind(each, dict, where), keys, keys, f"{where}: ")
        _one_of(each["name"], PHASES, f'{where}: "name"')
        begin, end = numbers([each["from_s"], each["to_s"]], f'{where}: "from_s", "to_s"', MOST_S)
        if not before <= begin <= end:
            raise ValueError(
                f"{where} is from {begin:.10g} to {end:.10g} s; accepted: an end after the begin, "
                "and a begin after the end of the phase before"
            )
        before = float(end)
        yield Phase(each["name"], float(begin), float(end))


def _columns(value: object, keys: tuple[str, ...], where: str) -> list[list[Any]]:
    """Return the lists of an object, which are equally long."""
    data: Mapping[str, Any] = of_kind(value, dict, where)
    _refuse_keys(data, keys, keys, f"{where}: ")
    found = [of_kind(data[key], list, f'{where}: "{key}"') for key in keys]
    for key, each in zip(keys, found, strict=True):
        if len(each) != len(found[0]):
            accepted = f'{len(found[0])}, as "{keys[0]}"'
            raise ValueError(f'{where}: "{key}" has {len(each)} values; accepted: {accepted}')
    return found


def _ordered(values: list[Any], where: str, most: float = MOST_S) -> Array:
    """Return numbers, none of which is missing or less than that before it."""
    found = numbers(values, where, most)
    wrong = np.flatnonzero(~(np.diff(found, prepend=0.0) >= 0))
    if len(wrong):
        place = int(wrong[0])
        raise ValueError(
            f"{where}: value {place + 1} is {shown(values[place])}; accepted: numbers, none less "
            "than the one in front of it"
        )
    return found


def _one_way(value: object) -> tuple[Array, Array, Array]:
    if value is None:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    sent, up, down = _columns(value, ("sent_s", "up_s", "down_s"), '"one_way"')
    # The distance of two clocks is in them, so they may be large or less than 0.
    most = 2 * pings.LATEST_S
    return (
        _ordered(sent, '"one_way": "sent_s"'),
        numbers(up, '"one_way": "up_s"', most, -most),
        numbers(down, '"one_way": "down_s"', most, -most),
    )


def _transfers(value: object) -> Iterator[Transfer]:
    keys = ("direction", "t_s", "bytes", "protocol")
    for place, each in enumerate(_some(value, '"transfers"', MOST_STREAMS), start=1):
        where = f'"transfers": value {place}'
        _refuse_keys(of_kind(each, dict, where), keys, keys, f"{where}: ")
        _one_of(each["direction"], ("down", "up"), f'{where}: "direction"')
        _one_of(each["protocol"], ("tcp",), f'{where}: "protocol"')
        lists = {key: each[key] for key in ("t_s", "bytes")}
        at, total = _columns(lists, ("t_s", "bytes"), where)
        yield Transfer(
            each["direction"],
            _ordered(at, f'{where}: "t_s"'),
            _ordered(total, f'{where}: "bytes"', MOST_BYTES),
            each["protocol"],
        )


def _notes(value: object) -> Iterator[str]:
    for place, each in enumerate(_some(value, '"notes"', MOST_NOTES), start=1):
        yield _text(each, f'"notes": value {place}')


def estimate(
    data: Mapping[str, Any], size_b: int, file: Path, direction: str | None = None
) -> Found:
    """Return what a measurement tells of a line.

    Args:
        data: the document.
        size_b: bytes of its text.
        file: where it is from.
        direction: none is accepted, for a measurement names its directions.

    Raises:
        ValueError: it has neither transfers nor delays, or impossible values; the text says which.
    """
    if direction is not None:
        raise ValueError("--direction: a measurement names its directions itself")
    return told(parsed(data, size_b), file)


def told(measured: Measurement, file: Path) -> Found:
    """Return what a measurement tells of a line.

    Raises:
        ValueError: it has neither transfers nor delays.
    """
    sent, trip = measured.sent_s, measured.rtt_s
    answered = np.isfinite(trip)
    loads = _loads(measured)
    if not loads and answered.sum() < pings.FEWEST:
        raise ValueError(
            f"it is a measurement with neither transfers nor {pings.FEWEST} probes that were "
            "answered"
        )
    base = Estimated(None, "s", "few probes were answered, or none")
    if answered.sum() >= pings.FEWEST:
        base = pings.base(trip[answered])
    made = {
        name: loaded.direction(name, loads[name], sent, trip) if name in loads else Direction()
        for name in ("down", "up")
    }
    names = ", ".join(phase.name for phase in measured.phases)
    about = (
        f"redtail measure, {quantity(measured.duration_s, 's', 3)} ({names}): "
        f"{int(answered.sum())} of {len(sent)} probes ({measured.probe}) answered"
    )
    cautions = (loaded.CAUTION, *measured.notes) if loads else measured.notes
    return Found(
        file,
        "measurement",
        about,
        measured.duration_s,
        made["down"],
        made["up"],
        base,
        loaded.flows(loads),
        cautions,
        _timeline(measured),
    )


def _timeline(measured: Measurement) -> Timeline | None:
    """Return what a measurement shows over time."""
    if not len(measured.sent_s):
        return None
    by_way = {
        name: [(each.t_s, each.total_b) for each in measured.transfers if each.direction == name]
        for name in ("down", "up")
    }
    phases = tuple(timeline.Phase(each.name, each.from_s, each.to_s) for each in measured.phases)
    return Timeline(
        measured.sent_s,
        measured.rtt_s,
        measured.probe.upper(),
        {name: timeline.summed(some, WIRE) for name, some in by_way.items() if some},
        phases,
        short(measured.server),
        {name: _most_at_once(measured, name) for name, some in by_way.items() if some},
    )


def _most_at_once(measured: Measurement, name: str) -> int:
    """Return the most connections of a direction that a phase has."""
    loads = (measured.load(name, phase) for phase in measured.phases)
    return max((each.streams for each in loads if each is not None), default=0)


def _loads(measured: Measurement) -> dict[str, loaded.Load]:
    """Return the transfers of each direction: those of a phase in which it was loaded alone."""
    found = {}
    for name, phases in _LOADING.items():
        # The first of the names is that of the direction alone; of several phases the longest.
        chosen = sorted(
            (each for each in measured.phases if each.name in phases),
            key=lambda each: (phases.index(each.name), each.from_s - each.to_s),
        )
        loads = (measured.load(name, phase) for phase in chosen)
        carried = next((each for each in loads if each is not None), None)
        if carried is not None:
            found[name] = carried
    return found
