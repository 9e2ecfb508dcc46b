"""Recordings that are JSON: read within limits, and values that say where they are wrong."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings.texts import NoTextError

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

MOST_DOCUMENT_B, MOST_VALUES_B = 500_000_000, 80_000_000
"""Size of a document, which is read as a whole, and memory for its values besides 8 times its
size."""

LONGEST_NAME = 100
"""Letters of a name that are shown."""

KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text"}


def read(file: IO[bytes]) -> object:
    """Return the content of a document.

    Raises:
        ValueError: it is too large or no JSON; the text says so.
    """
    if os.fstat(file.fileno()).st_size > MOST_DOCUMENT_B:
        raise ValueError(
            f"begins as JSON of more than {MOST_DOCUMENT_B // 10**6} MB; accepted: less"
        )
    data = file.read()
    _refuse_large(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NoTextError(error.start) from None
    del data
    return parsed(text)


def parsed(text: str) -> object:
    """Return the content of JSON.

    Raises:
        ValueError: it is none, or goes too deep; the text says where.
    """
    try:
        if text.startswith(EVENTS):
            return _events(text)
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"line {error.lineno}, column {error.colno}: begins as JSON, but is none: {error.msg}"
        ) from None
    except RecursionError:
        raise ValueError(
            "it is JSON with lists within lists, deeper than a recording has"
        ) from None


def _refuse_constant(name: str) -> object:
    raise ValueError(f"it is JSON with the value {name}; accepted: numbers, and null for none")


_KEYS = (
    b'"val"', b'"t"', b'"seq"', b'"wall"', b'"monotonic"', b'"send"', b'"receive"', b'"rtt"',
    b'"secs"', b'"nanos"',
)  # fmt: skip
"""Keys that Flent, irtt and crusader have most."""


def _refuse_large(data: bytes) -> None:
    """Refuse JSON whose values take far more memory than its text.

    Raises:
        ValueError: they do.
    """
    # What Python takes: a list, an object of few keys, a text, a number, and the place of each.
    # Keys that come again and again are there once.
    known = sum(data.count(key) for key in _KEYS)
    texts = max(data.count(b'"') // 2 - known, 0)
    room = 64 * data.count(b"[") + 192 * data.count(b"{") + 100 * texts + 32 * data.count(b",")
    if room > 8 * len(data) + MOST_VALUES_B:
        raise ValueError(
            f"its values would take {room // 10**6} MB of memory; accepted: 8 times its size of "
            f"{len(data) // 10**6} MB, and {MOST_VALUES_B // 10**6} MB, which a recording needs at "
            "most"
        )


EVENTS = '{"event":'
"""How each line of `iperf3 --json-stream` begins."""


def _events(text: str) -> object:
    """Return the object that lines of events make: of an event that comes again, a list."""
    found: dict[str, Any] = {"intervals": []}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            event = json.loads(line, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {number}: begins as JSON, but is none: {error.msg}") from None
        name = event.get("event") if isinstance(event, dict) else None
        if not isinstance(name, str) or "data" not in event:
            raise ValueError(f'line {number}: accepted: an object with "event" and "data"')
        if name == "interval":
            found["intervals"].append(event["data"])
        else:
            found[name] = event["data"]
    return found


def of_kind(value: object, kind: type, where: str) -> Any:
    """Return a value if it is of a kind: an object, a list or a text.

    Raises:
        ValueError: it is of another one.
    """
    if not isinstance(value, kind):
        raise ValueError(f"{where} is {shown(value)}; accepted: {KINDS[kind]}")
    return value


def shown(value: object) -> str:
    """Return a value for people."""
    return KINDS.get(type(value)) or short(json.dumps(value))


def short(text: str) -> str:
    """Return a text that is not long."""
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}..."


def numbers(values: Sequence[Any], where: str, most: float, least: float = 0.0) -> Array:
    """Return values as numbers; NaN stands for null, which means that there is none.

    Raises:
        ValueError: one is no number, or outside of the range; the text says which.
    """
    found = np.empty(len(values))
    for place, value in enumerate(values):
        if value is None:
            found[place] = math.nan
        elif _is_number(value) and least <= value <= most:
            found[place] = value
        else:
            raise ValueError(
                f"{where}: value {place + 1} is {shown(value)}; accepted: {least:.10g} to "
                f"{most:.10g}, or null"
            )
    return found


def number(
    data: Mapping[str, Any], key: str, where: str, most: float, least: float = 0.0
) -> float | None:
    """Return the number that an object has at a key; None without one.

    Raises:
        ValueError: it is no number, or outside of the range.
    """
    value = data.get(key)
    if value is None:
        return None
    if not _is_number(value) or not least <= value <= most:
        raise ValueError(
            f'{where}: "{key}" is {shown(value)}; accepted: {least:.10g} to {most:.10g}'
        )
    return float(value)


def part(data: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """Return the object that an object has at a key; an empty one without one.

    Raises:
        ValueError: it is something else.
    """
    found: Mapping[str, Any] = of_kind(data.get(key, {}), dict, f'{where}: "{key}"')
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
