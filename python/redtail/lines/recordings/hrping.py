"""Logs of hrPING, which counts requests in hexadecimal.

2022-10-15 18:43:19.628: From 192.0.2.1: bytes=60 seq=2e6b TTL=47 ID=2dc4 time=12.305ms
2022-10-15 18:43:20.128: Timeout waiting for seq=2e6c
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from redtail.lines.recordings.echoes import LONGEST_LINE, WRAP, Echo

NAME = "hrPING"
NUMBERS = WRAP

_ECHO = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?): .*?"
    r"(?:bytes=[0-9]+ seq=(?P<seq>[0-9a-fA-F]{4}) .*?time=(?P<ms>[0-9]+(?:\.[0-9]+)?) ?ms"
    r"|seq=(?P<lost>[0-9a-fA-F]{4})\s*$)"
)


def looks_like(head: Iterable[str]) -> bool:
    """Return whether lines have the answers of hrPING."""
    return any((found := _match(line)) is not None and found["ms"] for line in head)


def echoes(lines: Iterable[tuple[int, str]]) -> Iterator[Echo]:
    """Yield what lines, with their numbers, tell of requests."""
    for place, line in lines:
        match = _match(line)
        if match is not None:
            number = int(match["seq"] or match["lost"], 16)
            yield Echo(place, number, match["ms"] or "", False, _seconds(place, match["date"]))


def _match(line: str) -> re.Match[str] | None:
    return _ECHO.match(line) if len(line) <= LONGEST_LINE else None


def _seconds(place: int, date: str) -> str:
    """Return a time of the clock on the wall in s; only differences of it are looked at."""
    try:
        return f"{datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp():.6f}"
    except ValueError:
        raise ValueError(
            f"line {place}: {date!r} is no time; accepted: a date and a time of the day"
        ) from None
