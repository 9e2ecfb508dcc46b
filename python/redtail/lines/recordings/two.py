"""Two recordings of one line, each of another direction."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from redtail.lines.recordings.found import Direction, Found
from redtail.lines.recordings.values import Estimated

_NAMES = {
    "down": {"down", "downlink", "download", "dl", "rx"},
    "up": {"up", "uplink", "upload", "ul", "tx"},
}


def named(file: Path) -> str | None:
    """Return the direction that the words of a file's name say; None if they say none or both.

    >>> [named(Path(name)) for name in ("down.trace", "ATT-LTE-driving.up", "lte_uplink", "a.trace")]
    ['down', 'up', 'up', None]
    """
    words = set(re.split(r"[^a-z]+", file.name.lower()))
    found = [name for name, known in _NAMES.items() if words & known]
    return found[0] if len(found) == 1 else None


def directions(files: tuple[Path, Path]) -> tuple[str, str]:
    """Return the directions of two files: as their names say, else the first is down.

    Raises:
        ValueError: both names say the same direction.
    """
    first, second = (named(file) for file in files)
    if first is not None and first == second:
        raise ValueError(
            f"the names of both files say {first}; accepted: one of each direction, or names that "
            "say none, the file of the way down first"
        )
    if first is None and second is None:
        return "down", "up"
    known = first or ("up" if second == "down" else "down")
    return known, "up" if known == "down" else "down"


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
