"""What a program that pings prints of one request: in which words, each of its forms knows.

unix     ping of iputils, BSD, macOS and BusyBox; `windows`, `fping`, `hrping`: the others
pings    makes a series of echoes, whatever printed them
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

LONGEST_LINE = 1000
"""Letters of the longest line that tells of one request."""

WRAP = 65536
"""ICMP counts echo requests with 16 bits."""


class Echo(NamedTuple):
    """A request, and the answer to it.

    Attributes:
        place: number of the line that tells of it.
        number: of the request, as the program counts.
        ms: the round trip as it is written, in ms; empty without an answer.
        below: whether it was shorter than that.
        at: when the line was printed, in s, as it is written; empty if it is not told.
        host: the host that was asked, where the program asks several.
    """

    place: int
    number: int
    ms: str
    below: bool = False
    at: str = ""
    host: str = ""

    @property
    def answered(self) -> bool:
        """Whether there is an answer."""
        return bool(self.ms)


class Form(Protocol):
    """What each of the modules has."""

    @property
    def NAME(self) -> str:
        """The program, for people."""

    @property
    def NUMBERS(self) -> int | None:
        """The number after which the program counts from 0 again; None if it does not."""

    def looks_like(self, head: Iterable[str]) -> bool:
        """Return whether lines have the answers that the program prints."""

    def echoes(self, lines: Iterable[tuple[int, str]]) -> Iterator[Echo]:
        """Yield what lines, with their numbers, tell of requests."""
