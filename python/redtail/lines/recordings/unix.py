"""Logs of ping as iputils, BSD, macOS and BusyBox print them; iputils does so in many languages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from redtail.lines.recordings.echoes import LONGEST_LINE, WRAP, Echo

NAME = "ping"
NUMBERS = WRAP

# "64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=12.3 ms"; "64 Bytes von ... Zeit=12.3 ms".
_ANSWER = re.compile(
    r"(?:\[(?P<at>\d+(?:\.\d+)?)\] )?\b\d+ "
    r"(?:bytes from .*?[ _]seq=|[^\W\d]+ [^\W\d]+ .*?icmp_seq=)(?P<seq>\d+)\b"
    r".*? [^\W\d]+(?P<sign>[=<])(?P<ms>\d+(?:\.\d+)?) ?ms(?P<twice>.*DUP!)?"
)
_DIGITS = re.compile(r"[0-9.]+")


def looks_like(head: Iterable[str]) -> bool:
    """Return whether lines have the answers of a ping."""
    return any(_match(line) for line in head)


def echoes(lines: Iterable[tuple[int, str]]) -> Iterator[Echo]:
    """Yield what lines, with their numbers, tell of requests; copies of answers are left out."""
    for place, line in lines:
        match = _match(line)
        if match is not None and not match["twice"]:
            number, below = int(match["seq"][:20]), match["sign"] == "<"
            yield Echo(place, number, match["ms"], below, match["at"] or "")


def _match(line: str) -> re.Match[str] | None:
    if len(line) > LONGEST_LINE:
        return None
    found = _ANSWER.search(line)
    if found is None or not all(_DIGITS.fullmatch(found[key]) for key in ("seq", "ms")):
        return None
    return found
