"""Logs of ping as iputils, BSD, macOS and BusyBox print them; iputils does so in many languages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from redtail.lines.recordings.echoes import LONGEST_LINE, WRAP, Echo

NAME = "ping"
NUMBERS = WRAP

# "64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=12.3 ms"; "64 Bytes von ... Zeit=12.3 ms". The
# parts are looked for one after the other, so that the time of a line grows as its length does.
_NUMBER = re.compile(r"[ _]seq=([0-9]+)\b")
_BEGIN = re.compile(r"(?:\[(?P<at>[0-9]+(?:\.[0-9]+)?)\] )?\b[0-9]+ bytes from ")
_LOCAL_BEGIN = re.compile(
    r"(?:\[(?P<at>[0-9]+(?:\.[0-9]+)?)\] )?\b[0-9]+ [^\W\d]+ [^\W\d]+ ",
)
_TRIP = re.compile(r" [^\W\d]+(?P<sign>[=<])(?P<ms>[0-9]+(?:\.[0-9]+)?) ?ms")


def looks_like(head: Iterable[str]) -> bool:
    """Return whether lines have the answers of a ping."""
    return any(_echo(0, line) for line in head)


def echoes(lines: Iterable[tuple[int, str]]) -> Iterator[Echo]:
    """Yield what lines, with their numbers, tell of requests; copies of answers are left out."""
    for place, line in lines:
        echo = _echo(place, line)
        if echo is not None and "DUP!" not in line:
            yield echo


def _echo(place: int, line: str) -> Echo | None:
    number = _NUMBER.search(line) if len(line) <= LONGEST_LINE else None
    if number is None:
        return None
    is_icmp = line.startswith("icmp", number.start() - 4)
    begin = (_LOCAL_BEGIN if is_icmp else _BEGIN).search(line, 0, number.start() + 1)
    trip = _TRIP.search(line, number.end())
    if begin is None or trip is None:
        return None
    told = int(number[1][:20])
    return Echo(place, told, trip["ms"], trip["sign"] == "<", begin["at"] or "")
