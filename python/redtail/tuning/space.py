"""What is varied: keys of a queue or constants of a law, and from where to where.

A range is given with the key (`min_th=5..100packets`, `ecn=false|true`) or follows from the key's
definition: all values of a key that chooses between some; for a number, a tenth to ten times the
value that the file gives, or else the default, as far as the experiment's own checks accept it.
Ranges whose ends are a factor of ten or more apart are searched on a logarithmic scale.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from redtail import quantities
from redtail.catalog import Catalog, Parameter, Section
from redtail.errors import SpecError

if TYPE_CHECKING:
    from optuna.trial import Trial

Vary: TypeAlias = "str | Sequence[str] | Mapping[str, Any]"
"""Keys with or without ranges: `"min_th=5..100packets,max_p"`, a list of such texts, or a mapping
of keys to texts, pairs of numbers, lists of values, or None."""

REACH = 10.0
"""How far a range reaches that is not given, as a factor of the value. Source: our choice."""

LOGARITHMIC = 10.0
"""Ranges whose ends are this factor apart have a logarithmic scale. Source: our choice."""

DIGITS = 3
"""Significant digits of the numbers that are tried. Source: our choice; what an operator types."""

# Units that count whole things.
_WHOLE = frozenset({"packet", "packets", "pkt", "pkts", "B", "byte", "bytes"})

_END = r"([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)\s*([^\s0-9.][^.]*?)?"
_RANGE = re.compile(rf"\s*{_END}\s*\.\.\s*{_END}\s*")
_QUANTITY = re.compile(rf"\s*{_END}\s*")

# How often the end of a range that is refused is halved towards the value, on a logarithmic scale.
_HALVINGS = 12


@dataclass(frozen=True)
class Range:
    """The numbers that a key may have.

    Attributes:
        key: the key.
        low: the least, in `unit`.
        high: the greatest.
        unit: the unit; empty for a pure number.
        whole: whether only whole numbers count.
        origin: where the range comes from, in words; empty when it was given.
        initial: the value that the file gives, or else the default; None without one.
    """

    key: str
    low: float
    high: float
    unit: str
    whole: bool
    origin: str = ""
    initial: Any = field(default=None, compare=False)

    @property
    def logarithmic(self) -> bool:
        """Whether the scale is logarithmic."""
        return self.low > 0 and self.high >= LOGARITHMIC * self.low

    @property
    def text(self) -> str:
        """The range in words."""
        scale = ", logarithmic" if self.logarithmic else ""
        origin = f" ({self.origin})" if self.origin else ""
        return f"{self.key} {self.low:g}..{self.high:g} {self.unit}".rstrip() + scale + origin

    def asked(self, trial: Trial) -> float:
        """Return the number that a sampler suggests."""
        if self.whole:
            low, high = int(self.low), int(self.high)
            return trial.suggest_int(self.key, low, high, log=self.logarithmic)
        return trial.suggest_float(self.key, self.low, self.high, log=self.logarithmic)

    def value(self, number: float) -> Any:
        """Return a number as the experiment file has it, to a few digits."""
        if self.whole:
            rounded: float = round(number)
        else:
            rounded = min(max(float(f"{number:.{DIGITS}g}"), self.low), self.high)
        if not self.unit:
            return rounded
        if rounded == 1 and self.unit == "packets":
            return "1 packet"
        return f"{rounded:g} {self.unit}" if rounded < 1e6 else f"{rounded:.0f} {self.unit}"

    def number(self, value: Any) -> float | None:
        """Return a value of the file as a number in this unit; None when it has no such number."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return None if self.unit else float(value)
        if not isinstance(value, str):
            return None
        try:
            (found, dimension), (one, own) = map(quantities.parse, (value, f"1 {self.unit}"))
        except SpecError:
            return None
        return float(f"{found / one:.12g}") if dimension == own else None

    @property
    def start(self) -> float | None:
        """What a search begins with: the number of the initial value, if it is in the range."""
        number = self.number(self.initial)
        if number is None or not self.low <= number <= self.high:
            return None
        return round(number) if self.whole else number

    def points(self, count: int) -> list[Any]:
        """Return values spread evenly over the range, each once."""
        shares = [place / (count - 1) for place in range(count)]
        if self.logarithmic:
            numbers = [self.low * (self.high / self.low) ** share for share in shares]
        else:
            numbers = [self.low + (self.high - self.low) * share for share in shares]
        return list(dict.fromkeys(self.value(number) for number in numbers))


@dataclass(frozen=True)
class Choices:
    """The values that a key may have, when these are not numbers of a range.

    Attributes:
        key: the key.
        values: the values, as the file has them.
        initial: the value that the file gives, or else the default; None without one.
    """

    key: str
    values: tuple[Any, ...]
    initial: Any = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The values in words."""
        return f"{self.key} {'|'.join(map(_shown, self.values))}"

    def asked(self, trial: Trial) -> int:
        """Return the place of the value that a sampler suggests."""
        found: int = trial.suggest_categorical(self.key, list(range(len(self.values))))
        return found

    def value(self, number: float) -> Any:
        """Return the value at a place."""
        return self.values[int(number)]

    @property
    def start(self) -> int | None:
        """What a search begins with: the place of the initial value, if it is one of these."""
        found = [place for place, each in enumerate(self.values) if each == self.initial]
        return found[0] if found else None

    def points(self, count: int) -> list[Any]:
        """Return all values."""
        return list(self.values)


Axis: TypeAlias = Range | Choices
"""A key that is varied."""


def axes(
    vary: Vary,
    section: Section,
    table: Mapping[str, Any],
    catalog: Catalog,
    why_not: Callable[[Mapping[str, Any]], str | None],
) -> tuple[Axis, ...]:
    """Return what is varied.

    Args:
        vary: the keys, with their ranges where they are given.
        section: the keys of the queue or law.
        table: the queue or law, as the file has it.
        catalog: the definitions of all keys.
        why_not: says why the experiment is not valid with such a table; None when it is.

    Raises:
        SpecError: there is no such key, or a range is missing or wrong.
    """
    given = _given(vary)
    if not given:
        raise SpecError("vary: no key is given; accepted: " + ", ".join(_names(section)))
    found: list[Axis] = []
    for key, wanted in given:
        parameter = _parameter(key, section)
        if any(each.key == key for each in found):
            raise SpecError(f"vary: {key} is given twice", key=key)
        axis = (
            _defined(parameter, table, catalog, why_not)
            if wanted is None
            else _read(parameter, wanted, catalog)
        )
        found.append(replace(axis, initial=_initial(parameter, table, catalog)))
    return tuple(found)


def _given(vary: Vary) -> list[tuple[str, Any]]:
    """Return keys and what stands behind them."""
    if isinstance(vary, Mapping):
        return list(vary.items())
    texts: Iterable[str] = [vary] if isinstance(vary, str) else vary
    parts = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    pairs = [part.partition("=") for part in parts]
    return [(key.strip(), value.strip() if sign else None) for key, sign, value in pairs]


def _names(section: Section) -> list[str]:
    """Return the keys that can be varied."""
    return [parameter.key for parameter in section.parameters if parameter.key != "label"]


def _parameter(key: str, section: Section) -> Parameter:
    for parameter in section.parameters:
        if parameter.key == key != "label":
            return parameter
    known = _names(section)
    near = get_close_matches(key, known, n=3)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    what = "queue" if "kind" in section.schema["required"] else "law"
    raise SpecError(
        f"vary: the {what} {section.kind} has no key {key}{hint}; accepted: {', '.join(known)}",
        key=key,
    )


def _choices(parameter: Parameter, catalog: Catalog) -> tuple[Any, ...]:
    """Return the values of a key that chooses between some; empty for others."""
    resolved = catalog.resolve(parameter.schema)
    if resolved.get("type") == "boolean":
        return (False, True)
    return tuple(choice.value for choice in catalog.choices(parameter.schema))


def _is_number(parameter: Parameter, catalog: Catalog) -> bool:
    return catalog.resolve(parameter.schema).get("type") in ("number", "integer")


def _pattern(parameter: Parameter, catalog: Catalog) -> str | None:
    """Return what a quantity looks like; None for a key that is none."""
    resolved = catalog.resolve(parameter.schema)
    for part in (resolved, *resolved.get("anyOf", []), *resolved.get("oneOf", [])):
        inner = catalog.resolve(part)
        if "x-unit" in inner and "pattern" in inner:
            return str(inner["pattern"])
    return None


def _axis(
    parameter: Parameter, catalog: Catalog, low: float, high: float, unit: str, origin: str = ""
) -> Range:
    whole = unit in _WHOLE or catalog.resolve(parameter.schema).get("type") == "integer"
    if whole:
        low, high = math.ceil(low), math.floor(high)
    return Range(parameter.key, low, high, unit, whole, origin)


def _defined(
    parameter: Parameter,
    table: Mapping[str, Any],
    catalog: Catalog,
    why_not: Callable[[Mapping[str, Any]], str | None],
) -> Axis:
    """Return the range that follows from a key's definition."""
    key = parameter.key
    values = _choices(parameter, catalog)
    if values:
        return _chosen(key, values)
    value = _initial(parameter, table, catalog)
    number, unit = _numbered(value)
    if number is None or number <= 0:
        why = (
            f"{key} = {_shown(value)} is no number above 0"
            if value is not None
            else f"the file gives no {key} here, and {key} has no fixed default"
        )
        raise SpecError(f"vary: {why}; accepted: {_example(parameter, catalog)}", key=key)
    reason = why_not(table)
    if reason is not None:
        raise SpecError(
            f"vary: no range follows for {key}, since what is tuned is not valid as it is: "
            f"{reason}; accepted: valid values, or {_example(parameter, catalog)}",
            key=key,
        )
    is_given = key in table
    widest = _axis(parameter, catalog, number / REACH, number * REACH, unit)

    def fits(share: float) -> bool:
        return why_not({**table, key: widest.value(number * REACH**share)}) is None

    low, high = (number * REACH ** _farthest(fits, sign) for sign in (-1, 1))
    short = f"{_shown(value)} in the file" if is_given else f"the default {_shown(value)}"
    reach = f"a tenth to ten times {short}"
    if low > 1.01 * number / REACH or high < 0.99 * number * REACH:
        reach += ", as far as it is valid"
    digits = f".{DIGITS}g"
    found = _axis(
        parameter, catalog, float(format(low, digits)), float(format(high, digits)), unit, reach
    )
    if not found.low < found.high:
        raise SpecError(
            f"vary: around {key} = {_shown(value)} no other value is valid; accepted: "
            f"{_example(parameter, catalog)}",
            key=key,
        )
    return found


def _initial(parameter: Parameter, table: Mapping[str, Any], catalog: Catalog) -> Any:
    """Return the value that a queue has without a search; None if there is none."""
    default = catalog.resolve(parameter.schema).get("default")
    return table.get(parameter.key, default)


def _farthest(fits: Callable[[float], bool], sign: int) -> float:
    """Return the share of the reach, on a logarithmic scale, up to which values are valid."""
    if fits(sign):
        return float(sign)
    good, bad = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if fits(sign * middle) else (good, middle)
    return sign * good


def _read(parameter: Parameter, wanted: Any, catalog: Catalog) -> Axis:
    """Return the range that was given."""
    key = parameter.key
    if isinstance(wanted, tuple) and len(wanted) == 2 and all(map(_plain, wanted)):
        wanted = f"{wanted[0]!r}..{wanted[1]!r}"
    if isinstance(wanted, list | tuple):
        return _chosen(key, tuple(wanted))
    text = str(wanted)
    found = _RANGE.fullmatch(text)
    if found is None and "|" in text:
        return _chosen(key, tuple(_value(part.strip()) for part in text.split("|")))
    if found is None or not (_is_number(parameter, catalog) or _pattern(parameter, catalog)):
        raise _refused(parameter, text, "no range of this key", catalog)
    low, high = (float(found[place].replace("_", "")) for place in (1, 3))
    unit = found[4] or ""
    if found[2] and found[2] != unit:
        raise _refused(parameter, text, "its ends have different units", catalog)
    if not low < high:
        raise _refused(parameter, text, "its ends are not in order", catalog)
    pattern = _pattern(parameter, catalog)
    if pattern is None and unit:
        raise _refused(parameter, text, f"{key} has no unit", catalog)
    if pattern is not None and not re.fullmatch(pattern, f"1 {unit}"):
        wrong = f"{unit} is no unit of it" if unit else "its unit is missing"
        raise _refused(parameter, text, wrong, catalog)
    axis = _axis(parameter, catalog, low, high, unit)
    if not axis.low < axis.high:
        raise _refused(parameter, text, "it has one whole number or none", catalog)
    return axis


def _chosen(key: str, values: tuple[Any, ...]) -> Choices:
    kept = tuple(dict.fromkeys(values))
    if len(kept) < 2:
        raise SpecError(f"vary: {key} has one value; accepted: two or more", key=key)
    return Choices(key, kept)


def _refused(parameter: Parameter, text: str, why: str, catalog: Catalog) -> SpecError:
    return SpecError(
        f"vary: {parameter.key}={text}: {why}; accepted: {_example(parameter, catalog)}",
        key=parameter.key,
    )


def _example(parameter: Parameter, catalog: Catalog) -> str:
    """Return how a range of a key is written."""
    key = parameter.key
    values = _choices(parameter, catalog)
    if values:
        return f"{key}={'|'.join(map(_shown, values))}"
    if _is_number(parameter, catalog):
        return f"{key}=LOW..HIGH, for example {key}=0.01..0.5"
    pattern = _pattern(parameter, catalog)
    for unit in ("packets", "ms", "B", "Mbit/s"):
        if pattern is not None and re.fullmatch(pattern, f"1 {unit}"):
            return f"{key}=LOW..HIGH with a unit, for example {key}=5..100{unit}"
    return f"{key}=VALUE|VALUE"


def _numbered(value: Any) -> tuple[float | None, str]:
    """Return the number and the unit of a value of the file."""
    if isinstance(value, bool):
        return None, ""
    if isinstance(value, int | float):
        return float(value), ""
    found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return (float(found[1].replace("_", "")), found[2] or "") if found else (None, "")


def _plain(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _value(text: str) -> Any:
    """Return a choice from its text: true, false, a number or a text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text.strip("\"'")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
