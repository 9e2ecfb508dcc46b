"""The digits of an estimate that are shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redtail.analysis.stats import Estimate

_ANOTHER = 0.05
"""A mean that is further than this share of it from the value that most replications have describes
none of them. Source: ours; a step of a histogram is 1 to 2 %.
"""

_MOST = 3
"""So many decimals are shown of a value that they do not show as 0."""
_LEAST = 0.5 * 10**-_MOST
_NOISE = 1e-6
"""A smaller number, of a unit that makes the others readable, is what rounding leaves."""


def shown(found: Estimate, scale: float = 1.0) -> str:
    """Return an estimate as text, to one or two digits of its interval.

    No more than three decimals and four significant digits: what lies beyond them changes no
    decision, and a very short interval would take the room of other columns. A value that three
    decimals would show as 0, and that its interval keeps apart from 0, has as many as it needs.

    An interval that the digits cannot show is less than one of the last digit, and never ±0. "±?"
    stands where several replications have no interval, and "±?*" where the mean describes no
    replication besides: most of them have another value.

    >>> from redtail.analysis.stats import Estimate
    >>> shown(Estimate(0.1234567, 0.00123, 10), 1000), shown(Estimate(5.0, None, 1))
    ('123.5 ±1.2', '5')
    >>> shown(Estimate(2.3456, 0.098, 10)), shown(Estimate(99.99996, 0.00012, 10))
    ('2.35 ±0.10', '100.0 ±<0.1')
    >>> shown(Estimate(100.0, None, 10)), shown(Estimate(0.0123, None, 10))
    ('100 ±?', '0.012 ±?')
    >>> shown(Estimate(12.08, None, 5, mostly=10.27))
    '12.08 ±?*'
    >>> shown(Estimate(310.7345, 0.09, 10)), shown(Estimate(12345.6, None, 1))
    ('310.7 ±0.1', '12346')
    >>> shown(Estimate(0.000214, None, 10)), shown(Estimate(0.000214, 0.00003, 10))
    ('0.00021 ±?', '0.00021 ±0.00003')
    >>> shown(Estimate(0.0002, 0.0004, 10)), shown(Estimate(1e-17, None, 10))
    ('0.000 ±<0.001', '0 ±?')
    >>> shown(Estimate(float("nan"), None, 0))
    '–'
    """
    if math.isnan(found.mean):
        return "–"
    mean = found.mean * scale
    rounded = float(f"{mean:.3e}")  # 99.9999 is shown with three digits before the point
    most = min(_MOST, _decimals(rounded, digits=4))
    half = (found.ci95 or 0.0) * scale
    if max(half, _NOISE) < abs(mean) < _LEAST:
        most = -math.floor(math.log10(abs(mean))) + 1
    if found.ci95 is None:
        text = _plain(mean, most)
        if found.n < 2:
            return text
        another = found.mostly is not None and abs(found.mostly - found.mean) > (
            _ANOTHER * abs(found.mean)
        )
        return f"{text} ±?{'*' if another else ''}"
    wanted = _decimals(half, digits=2 if _leading(half) < 3 else 1) if half > 0 else most
    decimals = min(wanted, most)
    least = 10**-decimals
    text = f"{half:.{decimals}f}" if half >= least / 2 else f"<{least:.{decimals}f}"
    return f"{mean:.{decimals}f} ±{text}"


def _plain(value: float, decimals: int) -> str:
    """Return a number with at most so many decimals, without zeros at its end."""
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimals(value: float, digits: int) -> int:
    """Return the decimals that show so many significant digits."""
    exponent = math.floor(math.log10(abs(value))) if value else 0
    return max(0, digits - 1 - exponent)


def _leading(value: float) -> float:
    """Return the first digit, with what follows it as decimals."""
    return value / 10 ** math.floor(math.log10(value)) if value > 0 else 0.0
