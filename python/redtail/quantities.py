"""Quantities of an experiment file, such as "20 ms", as numbers in SI units.

The engine reads them, with the units that experiment files accept
(docs/reference/experiment-file.md).
"""

from __future__ import annotations

from functools import lru_cache

from redtail import _engine


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[float, str]:
    """Return the value of a quantity in its SI unit, and this unit.

    The unit is "s", "bit/s", "B", "packets" or "Hz", and "1" for a share in percent. Equal
    quantities have equal values, however they are written.

    Args:
        text: a number with its unit.

    Raises:
        SpecError: the text is no quantity, or finer than the engine counts (1 ps, 1 bit/s, 1 B,
            1 packet, 1 mHz, 10⁻¹³ %).

    >>> parse("20 ms"), parse("1.28 s"), parse("1 Gbit/s"), parse("90 %")
    ((0.02, 's'), (1.28, 's'), (1000000000.0, 'bit/s'), (0.9, '1'))
    """
    return _engine.si_value(text)
