"""Arithmetic of metrics, as `[metrics]` of an experiment and a paper's `[[measure]]` give it.

    (ecn.goodput - plain.goodput) / plain.goodput

Numbers, the names of metrics, `+ - * /`, parentheses, `min` and `max`. A name with other characters
than letters, digits and low lines, such as that of a group `bbr-1`, stands in quotes:
`'bbr-1.goodput' / goodput`.
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from redtail.errors import SpecError

_ACCEPTED = (
    "numbers, names of metrics (in single quotes if they have a -), + - * /, parentheses, "
    "min(...) and max(...)"
)

LONGEST = 500
"""The longest formula, in characters. A text from outside cannot nest deeper than is parsed."""

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b if b else math.nan,
}

_Powers: TypeAlias = dict[str, int]

_FUNCTIONS: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max}

# A part of a dotted name; Python's words, such as the link called `return`, are parsed with a
# low line behind them.
_PART = re.compile(r"(?<=\.)[A-Za-z]+\b|\b[A-Za-z]+(?=\.)")
_QUOTED = re.compile(r"""('[^']*'|"[^"]*")""")


class Formula:
    """A formula over metrics.

    Args:
        text: the formula.

    Raises:
        SpecError: it is not one.

    >>> formula = Formula("(on.goodput - off.goodput) / off.goodput")
    >>> formula.names
    ('off.goodput', 'on.goodput')
    >>> formula({"on.goodput": 3e6, "off.goodput": 2e6})
    0.5
    >>> Formula("(loss + return.loss) / 2").names
    ('loss', 'return.loss')
    >>> Formula("'bbr-1.goodput' - goodput").names
    ('bbr-1.goodput', 'goodput')
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST:
            raise SpecError(
                f"formula = {text[:40]!r}…: has {len(text)} characters; accepted: up to {LONGEST}"
            )
        try:
            self._parsed = "".join(
                part if part.startswith(("'", '"')) else _PART.sub(_escaped_part, part)
                for part in _QUOTED.split(text.strip())
            )
            self._tree = ast.parse(self._parsed, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            why = getattr(error, "msg", None) or str(error) or "it cannot be read"
            raise SpecError(f"formula = {text!r}: {why}; accepted: {_ACCEPTED}") from None
        found: set[str] = set()
        self._collect(self._tree, found)
        self.names = tuple(sorted(found))

    def __call__(self, values: Mapping[str, float], *, bounded: bool = True) -> float:
        """Compute it; NaN where it divides by zero or a value is not a number.

        Args:
            values: by name.
            bounded: whether an infinite value is none either.
        """
        found = self._value(self._tree, values)
        return found if math.isfinite(found) or not bounded else math.nan

    def __repr__(self) -> str:
        """Return the formula as it was given."""
        return f"Formula({self.text!r})"

    def _collect(self, node: ast.expr, found: set[str]) -> None:
        """Take in the names below a node, and refuse what is not arithmetic."""
        match node:
            case ast.Constant(value=int() | float() as number) if _is_number(number):
                return
            case ast.Constant(value=str() as quoted) if quoted.strip():
                found.add(quoted)
                return
            case ast.Name() | ast.Attribute() if (name := _dotted(node)) is not None:
                found.add(name)
                return
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                self._collect(operand, found)
                return
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                self._collect(left, found)
                self._collect(right, found)
                return
            case ast.Call(func=ast.Name(id=called), args=[_, *_] as args, keywords=[]) if (
                called in _FUNCTIONS
            ):
                for each in args:
                    self._collect(each, found)
                return
        part = ast.get_source_segment(self._parsed, node) or self.text
        raise SpecError(f"formula = {self.text!r}: {part!r}; accepted: {_ACCEPTED}")

    def _value(self, node: ast.expr, values: Mapping[str, float]) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Constant(value=str() as name):
                return values[name]
            case ast.UnaryOp(operand=operand):
                return -self._value(operand, values)
            case ast.BinOp(left=left, op=op, right=right):
                return _OPERATORS[type(op)](self._value(left, values), self._value(right, values))
            case ast.Call(func=ast.Name(id=called), args=args):
                found = [self._value(each, values) for each in args]
                return math.nan if any(map(math.isnan, found)) else _FUNCTIONS[called](found)
        return values[_dotted(node) or ""]

    def unit(self, unit_of: Callable[[str], str]) -> Unit:
        """Return the unit that follows from those of the metrics.

        Args:
            unit_of: gives the unit of a metric, as "bit/s"; "1" for ratios, empty if not known.

        Raises:
            SpecError: it adds or compares values of different units.

        >>> units = {"goodput": "bit/s", "rtt": "s", "loss": "1"}.__getitem__
        >>> Formula("goodput / (goodput + goodput)").unit(units).text
        '1'
        >>> Formula("max(rtt, rtt) / 2").unit(units)
        Unit(text='s', certain=False)
        >>> Formula("goodput * rtt").unit(units).text
        'bit'
        >>> Formula("goodput - rtt").unit(units)
        Traceback (most recent call last):
        redtail.errors.SpecError: formula = 'goodput - rtt': 'goodput - rtt' is of bit/s and s
        """
        powers, certain = self._unit(self._tree, unit_of)
        return Unit("" if powers is None else _unit_text(powers), certain and powers is not None)

    def _unit(self, node: ast.expr, of: Callable[[str], str]) -> tuple[_Powers | None, bool]:
        """Return the powers of units, None where they are not known, and whether they must be so.

        A number may have a unit of its own, such as 8 bits in a byte.
        """
        match node:
            case ast.Constant(value=int() | float()):
                return {}, False
            case ast.UnaryOp(operand=operand):
                return self._unit(operand, of)
            case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
                (one, sure), (two, also) = self._unit(left, of), self._unit(right, of)
                if one is None or two is None:
                    return None, False
                sign = 1 if isinstance(op, ast.Mult) else -1
                product = {
                    name: power
                    for name in {**one, **two}
                    if (power := one.get(name, 0) + sign * two.get(name, 0))
                }
                return product, sure and also
            case ast.BinOp(left=left, right=right):
                parts = [left, right]
            case ast.Call(args=args):
                parts = args
            case _:
                name = node.value if isinstance(node, ast.Constant) else _dotted(node)
                powers_of = _unit_powers(of(str(name)))
                return powers_of, powers_of is not None
        found = [self._unit(part, of) for part in parts]
        certain = [powers for powers, sure in found if sure and powers is not None]
        for other in certain[1:]:
            if other != certain[0]:
                part = ast.get_source_segment(self._parsed, node) or self.text
                raise SpecError(
                    f"formula = {self.text!r}: {part!r} is of {_unit_text(certain[0])} and "
                    f"{_unit_text(other)}"
                )
        if certain:  # a number beside it is of the same unit
            return certain[0], all(powers is not None for powers, _ in found)
        first = found[0][0]
        return first if all(powers == first for powers, _ in found) else None, False


@dataclass(frozen=True)
class Unit:
    """The unit of a formula's value.

    Attributes:
        text: as "bit/s"; "1" of a ratio, empty if it is not known.
        certain: whether it cannot be another one: no number of the formula may have a unit.
    """

    text: str
    certain: bool


def _unit_powers(text: str) -> _Powers | None:
    """Return the power of each unit in a text such as "bit/s"; None for an empty text."""
    if not text:
        return None
    above, _, below = text.partition("/")
    return {name: power for name, power in ((above, 1), (below, -1)) if name not in ("", "1")}


def _unit_text(powers: _Powers) -> str:
    def part(sign: int) -> str:
        return "·".join(
            name if abs(power) == 1 else f"{name}^{abs(power)}"
            for name, power in powers.items()
            if power * sign > 0
        )

    below = part(-1)
    return (part(1) or "1") + (f"/{below}" if below else "")


def _is_number(number: float) -> bool:
    try:
        return not isinstance(number, bool) and math.isfinite(float(number))
    except OverflowError:
        return False


def _escaped_part(found: re.Match[str]) -> str:
    return _escaped(found[0])


def _escaped(part: str) -> str:
    return f"{part}_" if keyword.iskeyword(part) else part


def _dotted(node: ast.expr) -> str | None:
    """Return a dotted name as text; None for anything else."""
    if isinstance(node, ast.Name):
        return _plain(node.id)
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return None if before is None else f"{before}.{_plain(node.attr)}"
    return None


def _plain(part: str) -> str:
    """Return what was `_escaped` as it was."""
    return part.removesuffix("_") if keyword.iskeyword(part.removesuffix("_")) else part
