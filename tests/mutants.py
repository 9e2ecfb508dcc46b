"""Structural mutants of JSON documents: other values, missing and additional keys, moved parts."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1,
    2**63,
    10**400,
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "NaN",
    "0",
    "../../etc/passwd",
    "/etc/passwd",
    "~",
    "\0",
    "\x1b[31m",
    "\ud800",
    "5 Mbit/s",
    "a" * 5000,
    [],
    {},
    [[]],
    {"": None},
    [None, 1, "x"],
    {"value": 1, "label": "NaN"},
)

Place = tuple[Any, Any]


def places(value: Any) -> Iterator[Place]:
    """Yield every part of a document: what holds it, and its key there."""
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        for key in keys:
            yield value, key
            yield from places(value[key])


def deep(levels: int = 2000) -> Any:
    """Return a deeply nested list."""
    found: Any = []
    for _ in range(levels):
        found = [found]
    return found


def mutant(document: Any, seed: int) -> Any:
    """Return a document with one to three changes, the same for the same seed."""
    chance = random.Random(seed)
    found = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        known = list(places(found))
        if not known:
            return found
        holder, key = chance.choice(known)
        kind = chance.randrange(8)
        if kind < 4:
            holder[key] = copy.deepcopy(chance.choice(VALUES))
        elif kind == 4:
            del holder[key]
        elif kind == 5:
            other, at = chance.choice(known)
            holder[key] = copy.deepcopy(other[at] if _has(other, at) else None)
        elif kind == 6 and isinstance(holder, dict):
            holder[str(chance.choice(VALUES))[:50]] = holder.pop(key)
        elif kind == 7 and chance.random() < 0.1:
            holder[key] = deep()
        else:
            holder[key] = [holder[key]]
    return found


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)
