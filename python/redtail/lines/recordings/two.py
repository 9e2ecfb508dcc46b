"""Two recordings of one line, each of another direction."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from redtail.lines.recordings.found import Direction, Found
from redtail.lines.recordings.values import Estimated

UNTOLD = {"mahimahi"}
"""Forms of one direction that do not say which: the file's name does, or its place."""

_BOTH = {"ping", "mtr"}
"""Forms of which each value has both directions in it."""

_NAMES = {
    "down": {"down", "downlink", "download", "dl", "rx"},
    "up": {"up", "uplink", "upload", "ul", "tx"},
}


def named(file: Path) -> str | None:
    """Return the direction that the words of a file's name say; None if they say none or both.

    >>> [named(Path(name)) for name in ("down.trace", "ATT-LTE-driving.up", "uplink-3", "a.trace")]
    ['down', 'up', 'up', None]
    """
    words = set(re.split(r"[^a-z]+", file.name.lower()))
    found = [name for name, known in _NAMES.items() if words & known]
    return found[0] if len(found) == 1 else None


def require_one_way(found: Found) -> None:
    """Refuse a recording of round trips, of which each has both directions in it.

    Raises:
        ValueError: it is one.
    """
    if found.form in _BOTH:
        raise ValueError(
            f"{found.file} has round trips, in which both directions are; accepted: two recordings "
            "of one direction each (--rtt gives a round trip)"
        )


def directions(first: Found, second: Found) -> tuple[str, str]:
    """Return the directions of two recordings of which one or both do not say their own.

    The names of files say it, or what the other recording says; else the first is the way down.

    Raises:
        ValueError: both say the same direction.
    """
    told = [_direction(found) for found in (first, second)]
    if told[0] is not None and told[0] == told[1]:
        raise ValueError(
            f"both say {told[0]}; accepted: one of each direction, or names that say none, the "
            "file of the way down first"
        )
    known = told[0] or ("up" if told[1] == "down" else "down")
    return known, "up" if known == "down" else "down"


def _direction(found: Found) -> str | None:
    if found.form in UNTOLD:
        return named(found.file)
    ways = [name for name in ("down", "up") if _is_told(found.direction(name))]
    return ways[0] if len(ways) == 1 else None


def joined(one: Found, other: Found) -> Found:
    """Return what two recordings tell of a line, each of one direction.

    Raises:
        ValueError: both tell of the same direction, or one tells of both or of none.
    """
    ways: dict[str, Found] = {}
    for found in (one, other):
        told = [name for name in ("down", "up") if _is_told(found.direction(name))]
        if len(told) != 1:
            what = "both directions" if told else "no direction"
            raise ValueError(
                f"{found.file} tells of {what}; accepted: two recordings of one direction each, or "
                "one recording alone"
            )
        if told[0] in ways:
            raise ValueError(
                f"{ways[told[0]].file} and {found.file} both tell of the way {told[0]}; accepted: "
                "one recording of each direction"
            )
        ways[told[0]] = found
    down, up = ways["down"], ways["up"]
    cautions = [f"{found.file.name}: {text}" for found in (down, up) for text in found.cautions]
    return Found(
        down.file,
        down.form if down.form == up.form else f"{down.form}, {up.form}",
        f"down: {down.about}; up ({up.file.name}): {up.about}",
        max(down.duration_s, up.duration_s),
        down.down,
        up.up,
        _base(down, up),
        (*down.flows, *up.flows),
        tuple(cautions),
    )


def _is_told(way: Direction) -> bool:
    return bool(way.bytes) or any(one.known for one in (way.rate, way.wait, way.buffer, way.loss))


def _base(down: Found, up: Found) -> Estimated:
    """Return the base round trip: the smaller of two, for each is at least that of the line."""
    known = [found.rtt for found in (down, up) if found.rtt.value is not None]
    if not known:
        return down.rtt
    least = min(known, key=lambda rtt: rtt.value or 0.0)
    if len(known) == 2:
        least = replace(least, basis=f"{least.basis}; the smaller of those of two recordings")
    return least
