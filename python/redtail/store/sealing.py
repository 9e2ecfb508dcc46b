"""JSON that carries its own checksum, and JSON from somebody else, read within bounds."""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any, NoReturn

_SEAL = "0" * 64


def checksums(data: bytes) -> dict[str, Any]:
    """Return what shows whether a file is unchanged."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def sealed(manifest: dict[str, Any], *, ensure_ascii: bool = True) -> bytes:
    """Return a manifest as a file that carries its own checksum.

    It is the SHA-256 of the file with zeros in its place.
    """
    text = json.dumps({**manifest, "checksum": _SEAL}, indent=2, ensure_ascii=ensure_ascii) + "\n"
    head, _, tail = text.rpartition(_SEAL)
    return f"{head}{hashlib.sha256(text.encode()).hexdigest()}{tail}".encode()


def is_sealed(data: bytes, manifest: dict[str, Any]) -> bool:
    """Return whether a file is unchanged since `sealed` made it."""
    seal = str(manifest["checksum"])
    blank = data.replace(seal.encode(), _SEAL.encode())
    return hashlib.sha256(blank).hexdigest() == seal


def expect(value: Any, kind: Any, what: str) -> Any:
    """Return a value that a file must have for something to be read from it.

    Raises:
        ValueError: it is of another type.
    """
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{what} is {json.dumps(value)[:40]}")
    return value


def decoded(data: bytes) -> Any:
    r"""Return the value of a JSON text from somebody else.

    >>> decoded(b'{"a": 1}')
    {'a': 1}
    >>> decoded(b'{"a": NaN}')
    Traceback (most recent call last):
    ...
    ValueError: NaN is no number in JSON

    Raises:
        ValueError: it is no JSON, has numbers that JSON has not, half a character, or a key twice.
    """
    found = json.loads(
        data,
        parse_constant=_no_number,
        parse_float=_finite,
        parse_int=_short,
        object_pairs_hook=_once,
    )
    if _HALF.search(data):
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text has half of a character") from None
    return found


_LONGEST_NUMBER = 100

# What begins half of a character, or a whole one in two halves.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number in JSON")


def _finite(text: str) -> float:
    if math.isinf(found := float(text)):
        raise ValueError(f"{text[:20]} is too large a number")
    return found


def _short(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(
            f"{text[:20]}… has {len(text)} digits; accepted: at most {_LONGEST_NUMBER}"
        )
    return int(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found
