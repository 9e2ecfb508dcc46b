"""The lines of a recording that is text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

LONGEST_B = 1000
"""Bytes of the longest line that a log or a trace has."""


class NoTextError(ValueError):
    """Bytes are no text in UTF-8."""

    def __init__(self, place: int) -> None:
        super().__init__(f"is no text (byte {place})")


def lines(file: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, one at a time; a file may have millions.

    Raises:
        ValueError: a line is longer than any of a log or a trace, or is no text.
    """
    file.seek(0)
    place, number = 0, 0
    while line := file.readline(LONGEST_B + 1):
        number += 1
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            # A line that was cut may end within a letter.
            if len(line) <= LONGEST_B or error.end < len(line):
                raise NoTextError(place + error.start) from None
            text = ""
        if len(line) > LONGEST_B and not line.endswith(b"\n"):
            raise ValueError(
                f"line {number}: has more than {LONGEST_B} bytes; accepted: lines that are shorter"
            )
        place += len(line)
        yield number, text.rstrip("\r\n")
