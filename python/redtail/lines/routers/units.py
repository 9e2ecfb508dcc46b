"""How values are written for a device: what it accepts, and what it makes of others.

Each unit has `words`, what the reference page says of it, and `write`, which returns the text for
the device and, if that is another value, what the device keeps in the words of the experiment file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from redtail.scenario import quantity, rate_or_size, seconds

_SAME = 1e-6
"""The largest relative difference that is not told."""


@dataclass(frozen=True)
class Place:
    """What conversions depend on.

    Attributes:
        rate_bps: rate at which the queue is emptied, in bit/s.
        packet_bytes: size of a full packet with its IP header, in bytes.
    """

    rate_bps: float
    packet_bytes: int


@dataclass(frozen=True)
class Written:
    """A value for a device.

    Attributes:
        text: how the device is told.
        kept: what the device has then, in the words of the experiment file; None if it is the
            value itself.
    """

    text: str
    kept: str | None = None


class Unit(Protocol):
    """How the values of a key are written."""

    @property
    def words(self) -> str:
        """What the device accepts."""
        ...

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        ...


def digits(number: float) -> str:
    """Return a number in six digits, without an exponent where it is not needed.

    >>> digits(0.001953125), digits(12000000.0)
    ('0.00195312', '12000000')
    """
    return str(round(number)) if float(number).is_integer() else f"{number:.6g}"


def rounded(asked: float, made: float, unit: str = "") -> str | None:
    """Return what was made of a value with its unit, None if it is the same.

    >>> rounded(4.6, 5, " ms"), rounded(5, 5, " ms")
    ('5 ms', None)
    """
    return f"{digits(made)}{unit}" if abs(made - asked) > _SAME * abs(asked) else None


def clamped(number: float, least: int, most: int) -> int:
    """Return the nearest whole number in a range."""
    return min(max(round(number), least), most)


def parts(limit: Any) -> list[str]:
    """Return the parts of a limit: "100 packets" or a list of such texts."""
    return [limit] if isinstance(limit, str) else list(limit)


def listed(value: Any) -> list[Any]:
    """Return one value or several as a list.

    >>> listed("EF"), listed(["EF", "VA"])
    (['EF'], ['EF', 'VA'])
    """
    return list(value) if isinstance(value, list | tuple) else [value]


def is_packets(value: str) -> bool:
    """Return whether a limit or a threshold counts packets."""
    return quantity(value)[1] in ("packets", "packet")


def in_packets(value: str, place: Place) -> float:
    """Return a limit or a threshold in packets; bytes and times are those of full packets.

    >>> in_packets("60 kB", Place(1e6, 1500)), in_packets("12 ms", Place(1e6, 1500))
    (40.0, 1.0)
    """
    if is_packets(value):
        return quantity(value)[0] or 0.0
    return in_bytes(value, place) / place.packet_bytes


def in_bytes(value: str, place: Place) -> float:
    """Return a limit or a threshold in bytes; packets are full ones.

    >>> in_bytes("40 packets", Place(1e6, 1500)), in_bytes("12 ms", Place(1e6, 1500))
    (60000.0, 1500.0)
    """
    number, unit = quantity(value)
    assert number is not None, value
    if is_packets(value):
        return number * place.packet_bytes
    if unit.endswith("B"):
        return rate_or_size(value)
    return seconds(value) * place.rate_bps / 8


@dataclass(frozen=True)
class Packets:
    """A whole number of packets; the smallest part of a limit counts."""

    least: int
    most: int

    @property
    def words(self) -> str:
        """What the device accepts."""
        return f"whole packets, {self.least} to {self.most}; bytes and times become full packets"

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        each = {part: in_packets(part, place) for part in parts(value)}
        part = min(each, key=lambda part: each[part])
        made = clamped(each[part], self.least, self.most)
        same = is_packets(part) and made == each[part]
        return Written(str(made), None if same else f"{made} packets")


@dataclass(frozen=True)
class Time:
    """A time in whole units."""

    unit: str
    least: int
    most: int
    named: bool = True

    @property
    def words(self) -> str:
        """What the device accepts."""
        return f"whole {self.unit}, {self.least} to {self.most}"

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        asked = seconds(value) * {"s": 1, "ms": 1e3, "us": 1e6}[self.unit]
        made = clamped(asked, self.least, self.most)
        return Written(
            f"{made}{self.unit if self.named else ''}", rounded(asked, made, f" {self.unit}")
        )


@dataclass(frozen=True)
class BufferTime:
    """A limit as the time that it takes to send it, in whole microseconds."""

    most: int

    @property
    def words(self) -> str:
        """What the device accepts."""
        return f"whole us at the shaper's rate, 1 to {self.most}; packets are full ones"

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        size = min(in_bytes(part, place) for part in parts(value))
        asked = size * 8e6 / place.rate_bps
        made = clamped(asked, 1, self.most)
        return Written(str(made), f"{made} us")


@dataclass(frozen=True)
class Count:
    """A whole number."""

    least: int
    most: int

    @property
    def words(self) -> str:
        """What the device accepts."""
        return f"whole number, {self.least} to {self.most}"

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        made = clamped(value, self.least, self.most)
        return Written(str(made), rounded(value, made))


@dataclass(frozen=True)
class Size:
    """A size in bytes."""

    least: int
    most: int

    @property
    def words(self) -> str:
        """What the device accepts."""
        return f"bytes, {self.least} to {self.most}"

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        asked = rate_or_size(value)
        made = clamped(asked, self.least, self.most)
        return Written(str(made), rounded(asked, made, " B"))


@dataclass(frozen=True)
class Fixed:
    """A number in parts of one, rounded down."""

    of_one: int
    most: float

    @property
    def words(self) -> str:
        """What the device accepts."""
        return f"in parts of 1/{self.of_one}, rounded down, at most {digits(self.most)}"

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        # What is nearer than a millionth of a part is this part, and floating point made it less.
        made = min(math.floor(value * self.of_one + 1e-6) / self.of_one, self.most)
        return Written(f"{value:.9f}".rstrip("0").rstrip("."), rounded(value, made))


@dataclass(frozen=True)
class OneIn:
    """A probability as one in a whole number."""

    most: int

    @property
    def words(self) -> str:
        """What the device accepts."""
        return f"one in a whole number, 1 to {self.most}"

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        made = clamped(1 / value, 1, self.most)
        return Written(str(made), rounded(value, 1 / made))


@dataclass(frozen=True)
class Percent:
    """A probability in whole percent."""

    @property
    def words(self) -> str:
        """What the device accepts."""
        return "whole percent, 1 to 100"

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        made = clamped(100 * value, 1, 100)
        return Written(str(made), rounded(value, made / 100))


@dataclass(frozen=True)
class Exponent:
    """A weight as a power of two, of which the exponent is written."""

    least: int
    most: int

    @property
    def words(self) -> str:
        """What the device accepts."""
        return f"n of 2^-n, {self.least} to {self.most}"

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        made = clamped(-math.log2(value), self.least, self.most)
        return Written(str(made), rounded(value, 2.0**-made))


@dataclass(frozen=True)
class Word:
    """A word for each value; an empty one is no word."""

    words_of: Mapping[Any, str]

    @property
    def words(self) -> str:
        """What the device accepts."""
        return ", ".join(
            f"{_json(value)}: {f'`{word}`' if word else 'no word'}"
            for value, word in self.words_of.items()
        )

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        if value in self.words_of:
            return Written(self.words_of[value])
        first, word = next(iter(self.words_of.items()))
        return Written(word, _json(first))


@dataclass(frozen=True)
class Only:
    """No setting: the device always does this; None where the key must be left out."""

    value: Any

    @property
    def words(self) -> str:
        """What the device accepts."""
        return "nothing" if self.value is None else f"always {_json(self.value)}"

    def write(self, value: Any, place: Place) -> Written:
        """Return a value as the device is told it."""
        kept = "not set" if self.value is None else _json(self.value)
        return Written("", None if value == self.value else kept)


def _json(value: Any) -> str:
    """Return a value as the experiment file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
