"""What an estimate is: a value with its interval or bound, and where it comes from."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Bound: TypeAlias = Literal["", "at least", "at most"]
"""Whether the value is a bound only."""


class Impossible(ValueError):
    """An estimate that no line can have, or that contradicts itself: a fault in redtail."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the estimate is impossible: {what}. This is a fault in redtail; please report it "
            "together with the recording"
        )


def require(holds: bool, what: str) -> None:
    """Refuse an estimate that does not hold.

    Raises:
        Impossible: it does not.
    """
    if not holds:
        raise Impossible(what)


@dataclass(frozen=True)
class Estimated:
    """A quantity of a line as a recording shows it.

    All its numbers are finite and at least 0, shares at most 1, and the value is in its interval.

    Attributes:
        value: the quantity in `unit`; None if the recording does not tell it.
        unit: "bit/s", "s", "B", "packets" or "" (a number).
        basis: how it was found, or why it was not.
        low: lower end of the interval; None without one.
        high: upper end of it.
        bound: "at least" or "at most" if the recording gives a bound only.
        given: whether a user gave it.

    Raises:
        Impossible: the numbers are not so.
    """

    value: float | None
    unit: str
    basis: str
    low: float | None = None
    high: float | None = None
    bound: Bound = ""
    given: bool = False

    def __post_init__(self) -> None:
        told = [each for each in (self.low, self.value, self.high) if each is not None]
        shown = f"{self.low} <= {self.value} <= {self.high} {self.unit}".rstrip()
        require(self.value is not None or not told, f"an interval without a value, {shown}")
        require(all(0 <= each < math.inf for each in told), f"{shown} is outside of what is")
        require(told == sorted(told), f"{shown} does not hold")
        require(self.unit != "" or all(each <= 1 for each in told), f"{shown} is no share")

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @property
    def text(self) -> str:
        """The value with its interval or bound, for people.

        >>> Estimated(10.02e6, "bit/s", "", 9.9e6, 10.1e6).text
        '10.02 Mbit/s (9.9 to 10.1)'
        >>> Estimated(0.25, "s", "", bound="at least").text
        'at least 250 ms'
        >>> Estimated(None, "B", "no losses").text
        'not known'
        """
        if self.value is None:
            return "not known"
        text = quantity(self.value, self.unit)
        if self.bound:
            return f"{self.bound} {text}"
        if self.low is None or self.high is None:
            return text
        scale, _ = scaled(self.value, self.unit)
        low, high = f"{self.low / scale:.4g}", f"{self.high / scale:.4g}"
        return f"{text} ({low} to {high})" if low != high else text

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def within(
    value: float, unit: str, basis: str, low: float, high: float, bound: Bound = ""
) -> Estimated:
    """Return an estimate whose interval is made to hold its value; none of it is below 0.

    A mean, for instance, may be outside of quantiles.
    """
    low, high = float(max(min(low, value), 0.0)), float(max(high, value))
    return Estimated(value, unit, basis, low, high, bound)


def given(value: float, unit: str) -> Estimated:
    """Return a quantity that a user gave."""
    return Estimated(value, unit, "given", given=True)


def quantity(value: float, unit: str, digits: int = 4) -> str:
    """Return a number with its unit, as the experiment file reads it.

    >>> [quantity(1.25e7, "bit/s"), quantity(0.0305, "s"), quantity(97_300, "B")]
    ['12.5 Mbit/s', '30.5 ms', '97.3 kB']
    >>> quantity(3.0, "packets")
    '3 packets'
    """
    scale, name = scaled(value, unit)
    number = float(f"{value / scale:.{digits}g}")
    return f"{number:.10g} {name}".rstrip()


_SCALES = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "B": ((1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


def scaled(value: float, unit: str) -> tuple[float, str]:
    """Return the size and the name of the unit in which a number is shown."""
    steps = _SCALES.get(unit, ((1.0, unit),))
    size = abs(value)
    if not math.isfinite(size) or size == 0:
        return steps[-1]
    return next((step for step in steps if size >= step[0]), steps[-1])
