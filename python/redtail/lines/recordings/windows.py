"""Logs of the ping that Windows has, in any language.

    Reply from 192.0.2.1: bytes=32 time=12ms TTL=57
    Antwort von 2001:db8::1: Zeit<1ms

Words differ, and so may their encoding (the console's code page); what is read is the same in all.
A request without an answer has a line of its own, in a block of lines that begins with the first
answer, or with a line that ends with a colon, and that an empty line ends. Where empty lines are
between all lines, the statistics at the end tell how many there were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from redtail.lines.recordings.echoes import LONGEST_LINE, Echo

NAME = "Windows ping"
NUMBERS = None

_IPV4 = re.compile(
    r"=\s?[0-9]+\s[^=<]{0,40}(?P<sign>[=<])\s?(?P<ms>[0-9]+)[^0-9=<]{0,16}\sTTL\s?=\s?[0-9]+"
)
# Without bytes and TTL.
_IPV6_END = re.compile(r"(?P<sign>[=<])\s?(?P<ms>[0-9]{1,10})\s?[^\W\d]{1,12}\.?\s{0,9}$")
_IPV6 = re.compile(r"[0-9a-fA-F:.]+(?:%[0-9]+)?:?")

# "    Packets: Sent = 4, Received = 3, Lost = 1 (25% loss),"
_STATISTICS = re.compile(
    r"\s+\S\D{0,40}=\s?(?P<sent>[0-9]{1,9})\D{1,40}=\s?(?P<received>[0-9]{1,9})"
    r"\D{1,40}=\s?(?P<lost>[0-9]{1,9})\b"
)


def looks_like(head: Iterable[str]) -> bool:
    """Return whether lines have the answers of a ping of Windows."""
    return any(_match(line) for line in head)


def echoes(lines: Iterable[tuple[int, str]]) -> Iterator[Echo]:
    """Yield what lines, with their numbers, tell of requests, which are counted from 0."""
    number, inside, answered, lost = 0, False, 0, 0
    for place, line in lines:
        match = _match(line)
        if match is not None:
            yield Echo(place, number, match["ms"], match["sign"] == "<")
            number, inside, answered = number + 1, True, answered + 1
        elif (more := _untold(line, answered, lost)) is not None:
            if more:
                number += more
                yield Echo(place, number - 1, "")
            inside, answered, lost = False, 0, 0
        elif not line.strip():
            inside = False
        elif line.rstrip().endswith((":", "\uff1a")):
            inside = True  # the line above the answers
        elif inside and not line.startswith((" ", "\t")):
            yield Echo(place, number, "")
            number, lost = number + 1, lost + 1


def _untold(line: str, answered: int, lost: int) -> int | None:
    """Return how many requests without an answer statistics have besides those that were seen.

    None if the line has no statistics.
    """
    match = _STATISTICS.match(line) if len(line) <= LONGEST_LINE else None
    if match is None:
        return None
    sent, received, gone = (int(match[key]) for key in ("sent", "received", "lost"))
    if sent != received + gone:
        return None
    return max(gone - lost, 0) if received == answered else 0


def _match(line: str) -> re.Match[str] | None:
    if len(line) > LONGEST_LINE:
        return None
    return _IPV4.search(line) or _ipv6(line)


def _ipv6(line: str) -> re.Match[str] | None:
    """Return the end of an answer of IPv6: a word before it is an address, and no value is."""
    found = _IPV6_END.search(line)
    if found is None or re.search("[=<]", line[: found.start()]):
        return None
    words = (word for word in line[: found.start()].split() if word.count(":") >= 2)
    return found if any(_IPV6.fullmatch(word) for word in words) else None
