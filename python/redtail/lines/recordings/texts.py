"""The lines of a recording that is text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

LONGEST_B = 100_000
"""Bytes of the longest line that a log or a trace has: a row of `fping -C` has all round trips."""

UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""Encodings by the mark at the begin; PowerShell writes so what it redirects."""

UTF_8_MARK = b"\xef\xbb\xbf"

# What no text has: control characters besides those that end and indent lines, and colours.
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


class NoTextError(ValueError):
    """Bytes are no text in UTF-8."""

    def __init__(self, place: int) -> None:
        super().__init__(f"is no text (byte {place})")


def encoding(begin: bytes) -> str:
    """Return how a text is encoded: in UTF-8, or in a code page of which only ASCII is read.

    A console of Windows writes a log in the code page of its language. Each letter beyond ASCII
    then becomes another one, which does not matter for numbers.
    """
    try:
        begin.decode("utf-8")
    except UnicodeDecodeError as error:
        # A letter may be cut at the end of what is looked at.
        if error.start < len(begin) - 3 and not _NO_TEXT.search(begin):
            return "latin-1"
    return "utf-8"


def lines(
    file: IO[bytes], code: str = "utf-8", errors: str = "strict"
) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, one at a time; a file may have millions.

    Args:
        file: the text.
        code: its encoding, one in which a line ends with the byte 10.
        errors: "replace" where only a part of each line is looked at.

    Raises:
        ValueError: a line is longer than any of a log or a trace, or is no text.
    """
    file.seek(0)
    if file.read(len(UTF_8_MARK)) != UTF_8_MARK:
        file.seek(0)
    place, number = file.tell(), 0
    while line := file.readline(LONGEST_B + 1):
        number += 1
        try:
            text = line.decode(code, errors)
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
