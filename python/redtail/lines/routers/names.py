"""Names of what is made for an interface, so that two lines of a router do not share them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from redtail.lines.line import Shaped

HASH_BYTES = 4
"""Bytes of a hash in a name: with a thousand interfaces, two are the same once in 8600 routers."""

LAN = "LAN"
"""What stands for an interface to the people that was not named."""


def short_hash(device: str) -> str:
    """Return a hash of an interface's name, in 8 letters."""
    return hashlib.blake2s(device.encode(), digest_size=HASH_BYTES).hexdigest()


def tag(device: str, sign: str = "-", most: int = 16) -> str:
    """Return a text for an interface: letters, digits and one sign; another one for each.

    Args:
        device: the interface.
        sign: the sign that takes the place of others.
        most: length from which on it is a hash alone.

    >>> tag("eth0"), tag("ge-0/0/0"), tag("eth0.100", "_")
    ('eth0', 'ge-0-0-0-37675d21', 'eth0_100_67e13a72')
    >>> tag("GigabitEthernet0/0/0.100")
    'c6e07e15'
    """
    plain = re.sub(rf"[^A-Za-z0-9{re.escape(sign)}]", sign, device)
    if len(plain) > most:
        return short_hash(device)
    return plain if plain == device else f"{plain}{sign}{short_hash(device)}"


def of_direction(shaped: Shaped, device: str) -> str:
    """Return the name of what is made for a direction at an interface."""
    return f"redtail-{shaped.direction}-{tag(device)}"


def exits(directions: Sequence[Shaped], wan: str, lan: str | None) -> Iterator[tuple[Shaped, str]]:
    """Yield each direction with the interface at which its packets leave the router."""
    for shaped in directions:
        yield shaped, wan if shaped.direction == "up" else lan or LAN


def exit_notices(directions: Sequence[Shaped], lan: str | None) -> Iterator[str]:
    """Yield what to know of a device that shapes only what it sends."""
    if any(shaped.direction == "down" for shaped in directions):
        where = "" if lan else f": write its interface to the people in place of {LAN} (--lan)"
        yield (
            f"down: the device shapes only what it sends{where}. What it sends there from "
            "elsewhere is shaped, too"
        )
