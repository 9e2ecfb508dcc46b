"""Quantities of an experiment file, such as "20 ms", as numbers in SI units.

The engine reads them, with the units that experiment files accept
(docs/reference/experiment-file.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from redtail import facts
from redtail.errors import SpecError
from redtail.scenario import quantity

_SUFFIXES = {
    "s": "_s",
    "bit/s": "_bit_per_s",
    "B": "_bytes",
    "packets": "_packets",
    "Hz": "_hz",
    "1": "_fraction",
}


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
    return facts.si_value(text)


def in_si(values: Sequence[object]) -> tuple[list[float], str] | None:
    """Return quantities of one dimension as numbers in its SI unit, and this unit.

    None if there are no quantities, if one of the values is none, or if they differ in dimension:
    a limit in packets and one in ms can only be compared on a link of known rate, with packets of
    known size. Among shares in percent a plain number is a share too, as in `load`.

    >>> in_si(["20 ms", "1.28 s"]), in_si([0.5, "90 %"])
    (([0.02, 1.28], 's'), ([0.5, 0.9], '1'))
    >>> in_si(["20 ms", "300 packets"]), in_si(["RED", "CoDel"]), in_si([1, 2])
    (None, None, None)
    """
    if not any(isinstance(value, str) for value in values):
        return None
    found: list[tuple[float, str]] = []
    for value in values:
        if isinstance(value, str):
            try:
                found.append(parse(value))
            except SpecError:
                return None
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((float(value), "1"))
        else:
            return None
    units = {unit for _, unit in found}
    return ([number for number, _ in found], units.pop()) if len(units) == 1 else None


def column(key: str, unit: str) -> str:
    """Return the name of the column with the SI values of a factor.

    >>> column("bottleneck.queue.limit", "s"), column("traffic.web.load", "1")
    ('bottleneck.queue.limit_s', 'traffic.web.load_fraction')
    """
    return key + _SUFFIXES[unit]


def in_one_unit(values: Sequence[object]) -> tuple[tuple[float, ...], str] | None:
    """Return numbers, or quantities of one dimension, as numbers in one unit, for an axis.

    The unit is that of the first quantity, as it is written; plain numbers have none. Numbers with
    one word that is no unit ("4 users", "16 users") are in one unit too. None if a value has no
    number, or if they differ in dimension.

    >>> in_one_unit(["20 ms", "1.28 s"]), in_one_unit([1, 2]), in_one_unit(["RED", 2])
    (((20.0, 1280.0), 'ms'), ((1.0, 2.0), ''), None)
    """
    parsed = [quantity(value) for value in values]
    numbers = [number for number, _ in parsed if number is not None]
    if values and len(numbers) == len(values) and len({unit for _, unit in parsed}) == 1:
        return tuple(numbers), parsed[0][1]
    found = in_si(values)
    if found is None:
        return None
    unit = next((unit for _, unit in parsed if unit), "")
    try:
        one = parse(f"1 {unit}")[0]
    except SpecError:  # written in a form that only the engine reads
        unit, one = found[1], 1.0
    return tuple(float(f"{number / one:.12g}") for number in found[0]), unit
