"""Logs of fping: a line for each request (`-l`, `-c`, with `-D` times), or its table (`-C`).

[1700000000.123456] 192.0.2.1 : [0], 64 bytes, 12.3 ms (12.3 avg, 0% loss)
192.0.2.1 : [1], timed out (12.3 avg, 50% loss)
192.0.2.1 : 12.3 - 12.9
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from redtail.lines.recordings.echoes import LONGEST_LINE, Echo

NAME = "fping"
NUMBERS = None

_ECHO = re.compile(
    r"(?:\[(?P<at>[0-9]+\.[0-9]+)\] )?(?P<host>\S+(?: \(\S+\))?)\s* : "
    r"\[(?P<number>[0-9]{1,15})\], (?:[0-9]+ bytes, (?P<ms>[0-9]+(?:\.[0-9]+)?) ms|timed out)"
)
_ROW = re.compile(r"(?P<host>\S+(?: \(\S+\))?)\s* : ?(?=[-0-9])")
_TRIP = re.compile(r"-|[0-9]+(?:\.[0-9]+)?")

FEWEST_IN_ROW = 2
"""Round trips that a row of the table has at least."""


def looks_like(head: Iterable[str]) -> bool:
    """Return whether lines are of fping."""
    return any(_echo(line) or _row(line) for line in head)


def echoes(lines: Iterable[tuple[int, str]]) -> Iterator[Echo]:
    """Yield what lines, with their numbers, tell of requests.

    Where there are lines of requests, the table that tells them once more is left out.
    """
    seen = False
    for place, line in lines:
        match = _echo(line)
        if match is not None:
            seen = True
            yield Echo(
                place, int(match["number"]), match["ms"] or "", False, match["at"] or "",
                match["host"],
            )  # fmt: skip
            continue
        row = None if seen else _row(line)
        if row is not None:
            host, trips = row
            for number, trip in enumerate(trips):
                yield Echo(place, number, "" if trip == "-" else trip, host=host)


def _echo(line: str) -> re.Match[str] | None:
    return _ECHO.match(line) if len(line) <= LONGEST_LINE else None


def _row(line: str) -> tuple[str, list[str]] | None:
    match = _ROW.match(line[:LONGEST_LINE])
    if match is None:
        return None
    trips = line[match.end() :].split()
    if len(trips) < FEWEST_IN_ROW or not all(_TRIP.fullmatch(trip) for trip in trips):
        return None
    return match["host"], trips
