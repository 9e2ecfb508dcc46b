"""Metrics that an experiment defines itself: by formulas, and by what its programs tell.

Those of the table `[metrics]` follow from others by formulas. They are computed replication by
replication when results are put together, so they have intervals and are compared like all others.
No run depends on them: another formula makes no new run. A value is undefined where one of those
that it follows from is, and where the formula divides by zero.

What programs measure (`measure` of a group of kind program) is stored with the other metrics of a
run. Here such metrics get their units and titles.
"""

from __future__ import annotations

import json
import keyword
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from redtail import metrics as names
from redtail.errors import SpecError
from redtail.formula import Formula
from redtail.metrics import Definition, Derived, Metric, Own

# Units that values can be shown in: the SI unit, the end of a column's name, the scale, and the
# unit as it is printed. Rust defines them; `make generate` writes them to `units.json`.
_SHOWN: dict[str, tuple[str, str, float, str]] = {
    each["word"]: (each["unit"], each["suffix"], each["scale"], each["shown_unit"])
    for each in json.loads(Path(__file__).with_name("units.json").read_text(encoding="utf-8"))
}

# What values of an SI unit are shown in when the file does not say: as metrics of redtail's own.
_USUAL = {"s": "ms", "bit/s": "Mbit/s"}

# What rates are shown in when programs give them in these.
_RATES = {"bit/s": "Mbit/s", "bytes/s": "MB/s"}

# What tables call columns that are no metrics.
_COLUMNS = ("case", "replication", "run", "metric", "phase")


@dataclass(frozen=True)
class DerivedMetric:
    """A metric that follows from others by a formula, or that programs measure.

    Attributes:
        name: its name, which says how it is shown; that of a formula also says which metrics of a
            run it follows from.
        formula: how it is computed; None for what programs measure, which runs have.
        given: what the file says, by key, and the name.
        place: what stands before a message about it.
        line: of the file; None without one.
    """

    name: Own
    formula: Formula | None
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
            scope="group" if self.formula is None else "derived",
            phases=False,
            of="this experiment",
            text=self.given["text"] if self.formula is None else f"`{self.formula.text}`",
        )


_MEASURED = re.compile(rf"([A-Za-z0-9_-]+)\.{names.MEASURED}\.([A-Za-z][A-Za-z0-9_]*)")


def measured_of(given: Sequence[Mapping[str, str | None]]) -> tuple[DerivedMetric, ...]:
    r"""Return the metrics that programs measure.

    Args:
        given: of each metric its `name`, `unit`, `text` and, if there is one, `title`. One may
            stand there several times, of several cases.

    Raises:
        SpecError: cases give one a unit each, and they are of different quantities.

    >>> of = {"name": "iperf.measured.goodput", "unit": "bit/s", "text": "`end`"}
    >>> (goodput,) = measured_of([of, {**of, "unit": "kbit/s"}])
    >>> names.axis(goodput.name), names.head(goodput.name)
    ('Measured goodput of iperf (Mbit/s)', 'iperf:\nmeasured goodput\nMbit/s')
    """
    found: dict[str, DerivedMetric] = {}
    for each in given:
        says = {key: value for key, value in each.items() if value is not None}
        name = says["name"]
        parts = _MEASURED.fullmatch(name)
        if parts is None or not all(isinstance(value, str) for value in says.values()):
            raise SpecError(f"{name!r}: no name of a metric that programs measure")
        unit, suffix, scale, shown = _SHOWN[_RATES.get(says["unit"], says["unit"])]
        known = found.get(name)
        if known is None:
            words = f"measured {parts[2].replace('_', ' ')}"
            title, short = says.get("title", words.capitalize()), says.get("title", words)
            about = Metric(title, short, unit, suffix, scale, shown)
            found[name] = DerivedMetric(Own(name, about), None, says)
        elif known.name.about.unit != unit:
            key = f"traffic.{parts[1]}.measure.{parts[2]}.unit"
            raise SpecError(
                f"{key}: is {known.given['unit']!r} in one case and {each['unit']!r} in another; "
                "accepted: units of one quantity",
                key=key,
            )
    return tuple(found.values())


def parse(
    given: Sequence[Mapping[str, Any]],
    file: str | None = None,
    measured: Sequence[DerivedMetric] = (),
) -> tuple[DerivedMetric, ...]:
    r"""Return the metrics of a table `[metrics]`, in an order in which they can be computed.

    Args:
        given: of each metric its `name`, `formula`, and what there is of `title`, `short`,
            `unit`, `place` and `line`.
        file: the name of the experiment's file, for errors.
        measured: what programs measure, from which they may follow.

    Returns:
        Those that are measured and, after them, those of the table.

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
    found: dict[str, DerivedMetric] = {str(each.name): each for each in measured}
    for name in ordered:
        found[name] = _derived(by_name[name], formulas[name], found, file)
    return tuple(found.values())


def with_derived(metrics: dict[str, float], derived: Sequence[DerivedMetric]) -> dict[str, float]:
    """Return the metrics of a run with those that follow from them; undefined ones are left out.

    The names of those that programs measured get their units.
    """
    if not derived:
        return metrics
    found = dict(metrics)
    for each in derived:
        if each.formula is None:
            if each.name in found:
                found[each.name] = found.pop(each.name)  # the name with its unit
        elif all(name in found for name in each.formula.names):
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
    columns = {names.column(name) for name in known.names if not isinstance(name, Own)}
    columns.update(factors)
    for each in derived:
        if each.formula is None:
            columns.add(names.column(each.name))
            continue
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
    unit, suffix, scale, shown = _SHOWN.get(wanted, (wanted, "", 1.0, wanted))
    if follows.certain and unit != follows.text:
        fitting = [each for each, (of, *_) in _SHOWN.items() if of == follows.text]
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
        shown_unit=shown,
    )
    inputs = dict.fromkeys(each for used in formula.names for each in _inputs(used, before))
    keys = ("name", "formula", "title", "short", "unit")
    return DerivedMetric(
        Derived(name, about, inputs),
        formula,
        {key: given[key] for key in keys if given.get(key) is not None},
        given.get("place") or "",
        given.get("line"),
    )


def _inputs(name: str, before: Mapping[str, DerivedMetric]) -> Iterable[str]:
    """Return the metrics of a run that a metric is made of."""
    known = before[name].name if name in before else name
    return known.inputs if isinstance(known, Derived) else (known,)


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
