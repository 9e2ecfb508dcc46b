"""Metrics that an experiment derives from others by formulas, in its table `[metrics]`.

They are computed replication by replication when results are put together, so they have intervals
and are compared like all others. No run depends on them: another formula makes no new run. A value
is undefined where one of those that it follows from is, and where the formula divides by zero.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from redtail import metrics as names
from redtail.errors import SpecError
from redtail.formula import Formula
from redtail.metrics import Definition, Derived, Metric

# Units that values can be shown in: the SI unit, the end of a column's name, and the scale.
_SHOWN: dict[str, tuple[str, str, float]] = {
    "1": ("1", "", 1.0),
    "%": ("1", "", 100.0),
    "s": ("s", "_s", 1.0),
    "ms": ("s", "_s", 1e3),
    "us": ("s", "_s", 1e6),
    "bit/s": ("bit/s", "_bit_per_s", 1.0),
    "kbit/s": ("bit/s", "_bit_per_s", 1e-3),
    "Mbit/s": ("bit/s", "_bit_per_s", 1e-6),
    "Gbit/s": ("bit/s", "_bit_per_s", 1e-9),
    "bytes": ("bytes", "", 1.0),
    "kB": ("bytes", "", 1e-3),
    "MB": ("bytes", "", 1e-6),
    "packets": ("packets", "_packets", 1.0),
    "1/s": ("1/s", "_per_s", 1.0),
}

# What values of an SI unit are shown in when the file does not say: as metrics of redtail's own.
_USUAL = {"s": "ms", "bit/s": "Mbit/s"}

# What tables call columns that are no metrics.
_COLUMNS = ("case", "replication", "run", "metric", "phase")


@dataclass(frozen=True)
class DerivedMetric:
    """A metric that follows from others by a formula.

    Attributes:
        name: its name, which says how it is shown and which metrics of a run it follows from.
        formula: how it is computed.
        given: what the file says, by key, and the name.
        place: what stands before a message about it.
        line: of the file; None without one.
    """

    name: Derived
    formula: Formula
    given: Mapping[str, str]
    place: str = ""
    line: int | None = None

    @property
    def definition(self) -> Definition:
        """What `redtail list metrics` says of it."""
        about = self.name.about
        return Definition(
            name=str(self.name),
            metric=about,
            measure=about.unit or "not known",
            form=str(self.name),
            scope="derived",
            phases=False,
            of="this experiment",
            text=f"`{self.formula.text}`",
        )


def parse(given: Sequence[Mapping[str, Any]], file: str | None = None) -> tuple[DerivedMetric, ...]:
    r"""Return the metrics of a table `[metrics]`, in an order in which they can be computed.

    Args:
        given: of each metric its `name`, `formula`, and what there is of `title`, `short`,
            `unit`, `place` and `line`.
        file: the name of the experiment's file, for errors.

    Raises:
        SpecError: a name or a formula is not valid, or formulas refer to each other in a circle.

    >>> (share,) = parse([{"name": "share", "formula": "a.goodput / goodput", "unit": "%"}])
    >>> share.name, share.name.about.head, share.name.inputs
    ('share', 'share\n%', ('a.goodput', 'goodput'))
    """
    formulas: dict[str, Formula] = {}
    for each in given:
        name = each["name"]
        with_place = _Refuse(each, file)
        if (
            not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name)
            or keyword.iskeyword(name)
            or name in ("min", "max")
        ):
            raise with_place(
                f"metrics.{name}: cannot be the name of a metric; accepted: letters, digits and _, "
                "a letter first"
            )
        if name in names.METRICS or name in _COLUMNS:
            raise with_place(
                f"metrics.{name}: redtail uses this name itself; accepted: any other name"
            )
        try:
            formulas[name] = Formula(each["formula"])
        except SpecError as error:
            raise with_place(f"metrics.{name}: {error}") from None
    ordered = _in_order(formulas, {each["name"]: _Refuse(each, file) for each in given})
    by_name = {each["name"]: each for each in given}
    found: dict[str, DerivedMetric] = {}
    for name in ordered:
        found[name] = _derived(by_name[name], formulas[name], found, file)
    return tuple(found.values())


def with_derived(metrics: dict[str, float], derived: Sequence[DerivedMetric]) -> dict[str, float]:
    """Return the metrics of a run with those that follow from them; undefined ones are left out."""
    if not derived:
        return metrics
    found = dict(metrics)
    for each in derived:
        if all(name in found for name in each.formula.names):
            value = each.formula(found)
            if not math.isnan(value):
                found[each.name] = value
    return found


class Known(Protocol):
    """The names of the metrics that runs of an experiment can have; `measured.Measured` is one."""

    @property
    def names(self) -> Mapping[str, Any]:
        """The names, each with its definition."""

    def __contains__(self, name: str) -> bool: ...

    def nearest(self, name: str) -> str:
        """Return the names that are most like `name`, as the end of a message."""


def check(derived: Sequence[DerivedMetric], known: Known, factors: Sequence[str] = ()) -> None:
    """Refuse formulas about metrics that no run has, and names that stand for something else.

    Args:
        derived: the metrics.
        known: what runs of the experiment can have, these included.
        factors: the keys of its factors, which are columns of its tables.

    Raises:
        SpecError: for the first one that is not valid.
    """
    columns = {names.column(name) for name in known.names if not isinstance(name, Derived)}
    columns.update(factors)
    for each in derived:
        refuse = _Refuse({"name": each.name, "place": each.place, "line": each.line}, None)
        for name in each.formula.names:
            if name not in known:
                raise refuse(
                    f"metrics.{each.name} = {each.formula.text!r}: no run has the metric {name}"
                    f"{known.nearest(name)}"
                )
        column = names.column(each.name)
        if column in columns:
            raise refuse(
                f"metrics.{each.name}: tables have a column {column} already; accepted: any other "
                "name"
            )
        columns.add(column)


class _Refuse:
    """Makes the error of a metric."""

    def __init__(self, given: Mapping[str, Any], file: str | None) -> None:
        self.place, self.line = given.get("place") or "", given.get("line")
        self.key, self.file = f"metrics.{given['name']}", file

    def __call__(self, text: str) -> SpecError:
        return SpecError(f"{self.place}{text}", file=self.file, line=self.line, key=self.key)


def _derived(
    given: Mapping[str, Any],
    formula: Formula,
    before: Mapping[str, DerivedMetric],
    file: str | None,
) -> DerivedMetric:
    name = given["name"]
    refuse = _Refuse(given, file)

    def unit_of(metric: str) -> str:
        return (before[metric].name.about if metric in before else names.describe(metric)).unit

    try:
        follows = formula.unit(unit_of)
    except SpecError as error:
        raise refuse(f"metrics.{name}: {error}; accepted: values of one unit") from None
    wanted = given.get("unit")
    if wanted is not None and wanted not in _SHOWN and wanted != follows.text:
        raise refuse(f"metrics.{name}.unit = {wanted!r}: accepted: {', '.join(_SHOWN)}")
    if wanted is None:
        wanted = _USUAL.get(follows.text, follows.text)
    unit, suffix, scale = _SHOWN.get(wanted, (wanted, "", 1.0))
    if follows.certain and unit != follows.text:
        fitting = [each for each, (of, _, _) in _SHOWN.items() if of == follows.text]
        raise refuse(
            f"metrics.{name}.unit = {wanted!r}: the formula {formula.text!r} has the unit "
            f"{follows.text}; accepted: {', '.join(fitting or [follows.text])}"
        )
    about = Metric(
        title=given.get("title") or formula.text,
        short=given.get("short") or name,
        unit=unit,
        suffix=suffix,
        scale=scale,
        shown_unit={"1": "", "us": "µs"}.get(wanted, wanted),
    )
    inputs = dict.fromkeys(
        each
        for used in formula.names
        for each in (before[used].name.inputs if used in before else (used,))
    )
    keys = ("name", "formula", "title", "short", "unit")
    return DerivedMetric(
        Derived(name, about, inputs),
        formula,
        {key: given[key] for key in keys if given.get(key) is not None},
        given.get("place") or "",
        given.get("line"),
    )


def _in_order(formulas: Mapping[str, Formula], refuse: Mapping[str, _Refuse]) -> list[str]:
    """Return names so that each stands after those that its formula has."""
    found: dict[str, None] = {}
    waiting = list(formulas)
    while waiting:
        ready = [
            name
            for name in waiting
            if all(used in found for used in formulas[name].names if used in formulas)
        ]
        if not ready:
            circle = _circle(formulas, waiting)
            raise refuse[circle[0]](
                f"metrics.{circle[0]} = {formulas[circle[0]].text!r}: follows from itself "
                f"({' -> '.join(circle)}); accepted: formulas without such a circle"
            )
        found.update(dict.fromkeys(ready))
        waiting = [name for name in waiting if name not in found]
    return list(found)


def _circle(formulas: Mapping[str, Formula], waiting: Sequence[str]) -> list[str]:
    """Return the names of a circle, the first again at the end."""
    path = [waiting[0]]
    while path[-1] not in path[:-1]:
        path.append(next(used for used in formulas[path[-1]].names if used in waiting))
    return path[path.index(path[-1]) :]
