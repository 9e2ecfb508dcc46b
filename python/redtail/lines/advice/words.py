"""Rates and sizes in words."""

from __future__ import annotations


def rate(bps: float) -> str:
    """Return a rate in the largest unit in which it is at least 1, to four digits.

    >>> rate(47.5e6), rate(9.5e5), rate(2.5e9)
    ('47.5 Mbit/s', '950 kbit/s', '2.5 Gbit/s')
    """
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6)):
        if bps >= size:
            return f"{bps / size:.4g} {unit}"
    return f"{bps / 1e3:.4g} kbit/s"


def size(number: float) -> str:
    """Return a number of bytes in the largest unit in which it is at least 1, to four digits.

    >>> size(625e3), size(1500), size(3 << 20)
    ('625 kB', '1.5 kB', '3.146 MB')
    """
    for unit, factor in (("MB", 1e6), ("kB", 1e3)):
        if number >= factor:
            return f"{number / factor:.4g} {unit}"
    return f"{number:.4g} B"
