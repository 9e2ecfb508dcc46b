"""Arithmetic of metrics, as a paper's `[[measure]]` gives it.

    (ecn.goodput - plain.goodput) / plain.goodput

Numbers, the names of metrics, `+ - * /`, parentheses, `min` and `max`.
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
import re
from collections.abc import Callable, Mapping

from redtail.errors import SpecError

_ACCEPTED = "numbers, names of metrics, + - * /, parentheses, min(...) and max(...)"

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b if b else math.nan,
}

_FUNCTIONS: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max}

# A part of a dotted name; Python's words, such as the link called `return`, are parsed with a
# low line behind them.
_PART = re.compile(r"(?<=\.)[A-Za-z]+\b|\b[A-Za-z]+(?=\.)")


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
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._parsed = _PART.sub(lambda found: _escaped(found[0]), text)
            self._tree = ast.parse(self._parsed, mode="eval").body
        except SyntaxError as error:
            raise SpecError(f"formula = {text!r}: {error.msg}; accepted: {_ACCEPTED}") from None
        found: set[str] = set()
        self._collect(self._tree, found)
        self.names = tuple(sorted(found))

    def __call__(self, values: Mapping[str, float]) -> float:
        """Compute it; NaN where it divides by zero or a value is not a number."""
        found = self._value(self._tree, values)
        return found if math.isfinite(found) else math.nan

    def __repr__(self) -> str:
        """Return the formula as it was given."""
        return f"Formula({self.text!r})"

    def _collect(self, node: ast.expr, found: set[str]) -> None:
        """Take in the names below a node, and refuse what is not arithmetic."""
        match node:
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
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
            case ast.Constant(value=value):
                return float(value)  # type: ignore[arg-type]  # only numbers pass _collect
            case ast.UnaryOp(operand=operand):
                return -self._value(operand, values)
            case ast.BinOp(left=left, op=op, right=right):
                return _OPERATORS[type(op)](self._value(left, values), self._value(right, values))
            case ast.Call(func=ast.Name(id=called), args=args):
                found = [self._value(each, values) for each in args]
                return math.nan if any(map(math.isnan, found)) else _FUNCTIONS[called](found)
        return values[_dotted(node) or ""]


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
