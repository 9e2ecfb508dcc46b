"""Reports of mtr: round trips to the last host of a path (`--json`, `--csv`, `--report`, `--raw`).

Source of the forms: ui/report.c and ui/raw.c of mtr 0.95. Hosts on the way answer when they have
time, so that only the last host counts. A report has the least, the mean and the largest round
trip; `--raw` has all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from redtail.lines.recordings import pings
from redtail.lines.recordings.documents import number, of_kind, part, short
from redtail.lines.recordings.found import Found
from redtail.lines.recordings.values import Estimated

MOST_HOPS = 256
"""Hosts of a path (`MaxHost`)."""

MOST_SENT, MOST_MS = 1e9, 1e3 * pings.LONGEST_TRIP_S

NOBODY = "???"

_CSV = ("Mtr_Version", "Start_Time", "Status", "Host", "Hop")
_RAW = re.compile(r"[xhpdm] [0-9]{1,3}( \S+)*")
_HEAD = re.compile(r"\s*HOST: .*\bLoss%")
_HOP = re.compile(
    r"\s*[0-9]{1,3}\.(?:\s?(?:AS\S+\s+)?\|--)? (?P<host>\S+(?: \(\S+\))?)\s+(?P<rest>[0-9.]+%?\s.*)"
)


@dataclass(frozen=True)
class Hop:
    """What a report says of the last host.

    Attributes:
        host: its name.
        sent: requests.
        loss: share without an answer.
        least_s, most_s: the least and the largest round trip.
        is_last: whether it is the last of the path, and not only the last that answers.
    """

    host: str
    sent: int
    loss: float
    least_s: float
    most_s: float
    is_last: bool


def is_one(data: Mapping[str, Any]) -> bool:
    """Return whether an object is a report of mtr."""
    report = data.get("report")
    return isinstance(report, dict) and "hubs" in report


def looks_like(head: Iterable[str]) -> bool:
    """Return whether lines are of a report as text, CSV or raw."""
    some = [line for line in head if line.strip()]
    return bool(some) and (
        _is_csv(some[0]) or _is_raw(some) or any(_HEAD.match(line) for line in some)
    )


def estimate(data: Mapping[str, Any], file: Path, direction: str | None = None) -> Found:
    """Return what a report in JSON tells of a line.

    Raises:
        ValueError: no host answered, or values are impossible; the text says which.
    """
    hubs = of_kind(part(data, "report", "mtr").get("hubs"), list, '"report": "hubs"')
    rows = [of_kind(hub, dict, f'"report": "hubs": value {n}') for n, hub in enumerate(hubs, 1)]
    return _found(
        _last([(f'"report": "hubs": value {n}', row) for n, row in enumerate(rows, 1)]),
        file,
        direction,
    )


def estimate_text(lines: Iterable[tuple[int, str]], file: Path, direction: str | None) -> Found:
    """Return what lines tell of a line, with their numbers.

    Raises:
        ValueError: no host answered, or values are impossible; the text says which.
    """
    rows: list[tuple[str, Mapping[str, Any]]] = []
    titles: list[str] = []
    raw, reports = _Raw(), 0
    for place, line in lines:
        if _is_csv(line):
            titles, rows = line.rstrip(",").split(","), []
            reports += 1
        elif titles and titles[0] == _CSV[0] and line.strip():
            rows = _with(rows, place, titles, line.split(","))
        elif _HEAD.match(line):
            titles, rows = line.split()[2:], []
            reports += 1
        elif titles and (match := _HOP.match(line)) is not None:
            rows = _with(rows, place, ["Host", *titles], [match["host"], *match["rest"].split()])
        elif not titles and _RAW.fullmatch(line):
            raw.add(place, line)
    if raw.trips:
        return _of_raw(raw, file, direction)
    found = _found(_last(rows), file, direction)
    if reports > 1:
        told = f"the file has {reports} reports, and the last is used"
        found = replace(found, cautions=(*found.cautions, told))
    return found


def _is_csv(line: str) -> bool:
    return line.startswith(",".join(_CSV))


def _is_raw(lines: list[str]) -> bool:
    some = [line for line in lines if _RAW.fullmatch(line)]
    return len(some) >= 0.9 * len(lines) and any(line.startswith("p ") for line in some)


def _with(
    rows: list[tuple[str, Mapping[str, Any]]], place: int, titles: list[str], values: list[str]
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return rows with a further one; a row of a new report begins them again."""
    row = {title: _value(value) for title, value in zip(titles, values, strict=False)}
    hop = row.get("Hop")
    if len(rows) >= MOST_HOPS or (hop == 1 and "Hop" in row):
        rows = []
    return [*rows, (f"line {place}", row)]


def _value(text: str) -> Any:
    text = text.strip()
    try:
        found = float(text.removesuffix("%"))
    except ValueError:
        return text
    return found if np.isfinite(found) else text


def _last(rows: list[tuple[str, Mapping[str, Any]]]) -> Hop:
    """Return the last host that answered."""
    for where, row in reversed(rows):
        loss = number(row, "Loss%", where, 100)
        least, most = number(row, "Best", where, MOST_MS), number(row, "Wrst", where, MOST_MS)
        sent = number(row, "Snt", where, MOST_SENT)
        if loss is None or least is None or most is None or not sent:
            wanted = '"Loss%", "Snt", "Best" and "Wrst"'
            raise ValueError(
                f"{where}: accepted: {wanted}, which mtr writes unless -o leaves them out"
            )
        host = str(row.get("host", row.get("Ip", row.get("Host", "?"))))
        if loss < 100 and host != NOBODY and most > 0:
            if least > most:
                raise ValueError(
                    f'{where}: "Best" is {least:g}; accepted: at most "Wrst", {most:g}'
                )
            return Hop(
                short(host), int(sent), loss / 100, least / 1e3, most / 1e3, row is rows[-1][1]
            )
    raise ValueError("it is a report of mtr in which no host answered")


def _found(hop: Hop, file: Path, direction: str | None) -> Found:
    name = direction or "down"
    rtt = Estimated(None, "s", f"the least of {hop.sent} round trips took 0 ms")
    if hop.least_s > 0:
        basis = (
            f"the least of {hop.sent} round trips; a report does not tell whether the line was idle"
        )
        rtt = Estimated(hop.least_s, "s", basis, bound="at most")
    longest = hop.most_s - hop.least_s
    basis = "the largest round trip above the least; a report does not tell when packets were lost"
    loss = Estimated(hop.loss, "", f"of {hop.sent} pings")
    if not hop.is_last:
        loss = Estimated(None, "", "the last host of the path did not answer")
    wait = Estimated(None, "s", "no packet was seen to wait")
    if longest > 0:
        wait = Estimated(longest, "s", basis, bound="at least")
    way = pings.direction_of("mtr", name, wait, loss)
    about = f"report of mtr: {hop.sent} pings of {hop.host}"
    found = Found(file, "mtr", about, 0.0, rtt=rtt, cautions=tuple(_cautions(hop.is_last, name)))
    return replace(found, down=way) if name == "down" else replace(found, up=way)


def _cautions(is_last: bool, name: str) -> list[str]:
    found = [pings.both_ways(name)]
    if not is_last:
        found.append(
            "the last host of the path did not answer; this is about the last one that did"
        )
    return found


class _Raw:
    """Round trips of `--raw` by host: numbers of the requests, and us."""

    def __init__(self) -> None:
        self.addresses: dict[int, str] = {}
        self.trips: dict[int, list[tuple[int, float]]] = {}
        self.sent: dict[int, int] = {}

    def add(self, place: int, line: str) -> None:
        kind, hop_text, *rest = line.split(" ")
        hop = int(hop_text)
        if hop >= MOST_HOPS:
            raise ValueError(f"line {place}: host {hop}; accepted: up to {MOST_HOPS - 1}")
        if kind == "h" and rest:
            self.addresses[hop] = rest[0]
        if kind == "x":
            self.sent[hop] = self.sent.get(hop, 0) + 1
        if kind != "p":
            return
        us = number({"p": _value(rest[0]) if rest else None}, "p", f"line {place}", 1e3 * MOST_MS)
        if us is None:
            raise ValueError(f"line {place}: accepted: p HOST MICROSECONDS NUMBER")
        # Requests are told before their answers: this one is of the last of this host.
        self.trips.setdefault(hop, []).append((max(self.sent.get(hop, 0) - 1, 0), us / 1e6))

    @property
    def last(self) -> int:
        """The last host: mtr also asks beyond it at first, and the same host answers."""
        end = max(self.trips)
        address = self.addresses.get(end)
        if address is None:
            return end
        return min(hop for hop in self.trips if self.addresses.get(hop) == address)


def _of_raw(raw: _Raw, file: Path, direction: str | None) -> Found:
    hop = raw.last
    trips = raw.trips[hop]
    if len(trips) < pings.FEWEST:
        raise ValueError(
            f"its last host has {len(trips)} answers of a ping, and {pings.FEWEST} are needed"
        )
    count = max(raw.sent.get(hop, 0), len(trips))
    seq = np.array([at for at, _ in trips]) if raw.sent.get(hop) else np.arange(len(trips))
    series = pings.series(
        seq, seq * pings.INTERVAL_S, np.array([trip for _, trip in trips]), False, (0, count - 1)
    )
    series = replace(series, finest_s=1e-6)
    found = pings.estimate(series, file, direction)
    about = f"mtr --raw: {count} pings of host {hop + 1} of the path"
    return replace(found, form="mtr", about=about)
