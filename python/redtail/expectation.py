"""What an experiment expects of its results, in its table `[expect]`.

    cubic.goodput >= 9 Mbit/s
    share within 5 % of 0.5
    queue_delay_mean[CoDel] < queue_delay_mean[RED]
    time(state of bbr leaves startup) < 12 RTT
    last(in_flight of bbr, while startup) <= 2 BDP

Each side is a `formula`, whose names are terms: a metric, a quantity with its unit, a quantity of
the path (`2 BDP`), or something of a time series. Here a text becomes an `Expectation` that says
what is to be computed. `redtail.studies.expect` computes it and judges.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal, NoReturn, TypeAlias

from redtail import metrics as names
from redtail import quantities
from redtail.derived import DerivedMetric
from redtail.errors import SpecError
from redtail.formula import Formula

LONGEST = 500
"""The longest expectation, in characters. Source: as of formulas."""

Statistic: TypeAlias = Literal["mean", "each"]
"""What has to hold of the replications."""

PATH_UNITS = {"BDP": "bytes", "RTT": "s", "rate": "bit/s"}
"""Quantities of the path of a group, and their units."""

FLOW_SERIES = {
    "cwnd": ("cwnd_bytes", "bytes"),
    "ssthresh": ("ssthresh_bytes", "bytes"),
    "in_flight": ("in_flight_bytes", "bytes"),
    "srtt": ("srtt_s", "s"),
    "pacing_rate": ("pacing_rate_bps", "bit/s"),
    "delivered": ("delivered_bytes", "bytes"),
    "state": ("state", ""),
}
GROUP_SERIES = {"goodput": ("goodput_bps", "bit/s")}
QUEUE_SERIES = {
    "packets": ("packets", "packets"),
    "bytes": ("bytes", "bytes"),
    "delay": ("delay_s", "s"),
    "average": ("average", ""),
    "probability": ("probability", "1"),
    "arrivals": ("arrivals", "packets"),
    "drops": ("drops", "packets"),
    "marks": ("marks", "packets"),
}
"""The series of a flow, a group and a queue: the column in the file, and its unit."""

_TABLES = {"flows": FLOW_SERIES, "groups": GROUP_SERIES, "queues": QUEUE_SERIES}
_VALUES = ("max", "min", "mean", "first", "last")
_CONDITIONS = ("time", "share")
_EXTREMES = ("max", "min")
_STATES = ("is", "leaves", "enters")
_COMPARISONS = ("<", "<=", ">", ">=")

_NUMBER = r"(?:\d[\d_]*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
_NAME = r"[A-Za-z_]\w*(?:\.\w+)*"
_QUOTED = r"'[^']*'|\"[^\"]*\""
_OF_GROUP = rf"\s+of\s+(?:{_NAME}|{_QUOTED})(?!\s*[(\[.])"
_TOKEN = re.compile(
    rf"""(?P<quoted>{_QUOTED})
    | (?P<call>(?:{"|".join(_VALUES + _CONDITIONS)})\s*\(
        (?=[^()]*\sof\s)(?P<inside>(?:[^()'"]|{_QUOTED})*)\))
    | (?P<path>(?:(?P<times>{_NUMBER})\s*)?\b(?P<what>{"|".join(PATH_UNITS)})\b(?!\s*[(.])
        (?P<group>{_OF_GROUP})?)
    | (?P<quantity>{_NUMBER}\s*(?:%|[A-Za-zµ]+(?:/[A-Za-z]+)?))
    | (?P<number>{_NUMBER})
    | (?P<name>{_NAME})
    | (?P<compared><=|>=|==|!=|<|>|=)
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_LABELS = re.compile(rf"\s*\[((?:[^\]'\"]|{_QUOTED})*)\]")
_PART = re.compile(rf"\s*(\w+)\s+of\s+({_NAME}|{_QUOTED})\s*(.*)", re.DOTALL)
_CONDITION = re.compile(rf"(<=|>=|<|>|{'|'.join(_STATES)})\s*(.+)", re.DOTALL)


@dataclass(frozen=True)
class OfMetric:
    """A metric of a case.

    Attributes:
        metric: its name.
        labels: of the case, where it is not the case at hand.
    """

    metric: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Quantity:
    """A number with its unit, in SI units, and as it was written."""

    value: float
    unit: str
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class OfPath:
    """A quantity of the path of a group without its queues.

    Attributes:
        what: a key of `PATH_UNITS`.
        times: the number in front of it.
        group: the group; empty for the only one that the expectation is about.
    """

    what: str
    times: float = 1.0
    group: str = ""


@dataclass(frozen=True)
class Window:
    """Part of a run.

    Attributes:
        begin, end: in seconds from the start of the run; None where it is not bounded.
        state: the state that the flow is in; empty for any.
    """

    begin: float | None = None
    end: float | None = None
    state: str = ""


@dataclass(frozen=True)
class OverTime:
    """A value of a time series.

    Attributes:
        how: "max", "min", "mean", "first" or "last" of the samples; "time" or "share" of those for
            which a condition holds.
        table: "flows", "groups" or "queues".
        series: the name of the quantity.
        place: the group or the link.
        window: the samples that count.
        condition: a comparison and its bound; of states "is", "leaves" or "enters", and one.
        labels: as of `OfMetric`.
    """

    how: str
    table: str
    series: str
    place: str
    window: Window
    condition: tuple[str, Quantity | OfPath | str] | None = None
    labels: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """The unit of the value."""
        return {"time": "s", "share": "1"}.get(self.how) or _TABLES[self.table][self.series][1]


Term: TypeAlias = OfMetric | Quantity | OfPath | OverTime


@dataclass(frozen=True)
class Expectation:
    """Something that has to hold of results.

    Attributes:
        name: what the file calls it.
        text: what has to hold.
        left: what is looked at.
        compared: how: "<", "<=", ">", ">=" or "within".
        right: what it is compared with.
        margin: of "within": a share (unit "%") or a quantity.
        terms: what the names of both formulas stand for.
        unit: of the left side, as "bit/s"; empty if it is not known.
        cases: labels of the cases that it is about; none stands for all.
        of: what has to hold of the replications.
        source: where the expectation comes from.
        place: what stands before a message about it.
        line: of the file.
        file: its name.
    """

    name: str
    text: str
    left: Formula
    compared: str
    right: Formula
    margin: Quantity | None
    terms: Mapping[str, Term]
    unit: str
    cases: tuple[str, ...] = ()
    of: Statistic = "mean"
    source: str = ""
    place: str = ""
    line: int | None = None
    file: str | None = field(default=None, repr=False)

    @property
    def measured(self) -> tuple[OfMetric | OverTime, ...]:
        """The terms that are measured."""
        return tuple(each for each in self.terms.values() if isinstance(each, OfMetric | OverTime))

    @property
    def bounded_by_numbers(self) -> bool:
        """Whether nothing that is measured stands on the right side."""
        return not any(
            isinstance(self.terms[name], OfMetric | OverTime) for name in self.right.names
        )

    def error(self, problem: str) -> SpecError:
        """Return the error for this expectation."""
        return _error({"name": self.name, "place": self.place, "line": self.line}, self.file)(
            f' = "{self.text}": {problem}'
        )


def parse(
    given: Sequence[Mapping[str, Any]],
    file: str | None = None,
    derived: Sequence[DerivedMetric] = (),
) -> tuple[Expectation, ...]:
    """Return the expectations of a table `[expect]`.

    Args:
        given: of each its `name` and `holds`, and what there is of `cases`, `of`, `source`,
            `place` and `line`.
        file: the name of the experiment's file, for errors.
        derived: the metrics that the experiment derives from others.

    Raises:
        SpecError: one is not valid.

    >>> (found,) = parse([{"name": "used", "holds": "a.goodput / 2 >= 4.5 Mbit/s"}])
    >>> found.compared, found.unit, [in_words(term) for term in found.terms.values()]
    ('>=', 'bit/s', ['a.goodput', '4.5 Mbit/s'])
    """
    units = {str(each.name): each.name.about.unit for each in derived}
    return tuple(_parsed(each, file, units) for each in given)


def _error(given: Mapping[str, Any], file: str | None) -> Callable[[str], SpecError]:
    key = f"expect.{given['name']}"

    def made(problem: str) -> SpecError:
        place, line = given.get("place") or "", given.get("line")
        return SpecError(f"{place}{key}{problem}", file=file, line=line, key=key)

    return made


def _parsed(given: Mapping[str, Any], file: str | None, units: Mapping[str, str]) -> Expectation:
    refuse = _error(given, file)
    text = given["holds"]
    name = given["name"]
    if not re.fullmatch(r"[^.\x00-\x1f]{1,100}", name):
        raise refuse(": cannot be a name; accepted: 1 to 100 characters, none of them a full stop")
    of = given.get("of")
    if of not in (None, "mean", "each"):
        raise refuse(f'.of = "{of}"; accepted: "mean", "each"')
    try:
        read = _Reader(text)
        unit = _unit(read, units)
    except SpecError as error:
        raise refuse(f' = "{text}": {error}') from None
    extreme = any(
        (isinstance(term, OverTime) and term.how in _EXTREMES)
        or (isinstance(term, OfMetric) and term.metric.endswith(("_max", "_min")))
        for term in read.terms.values()
    )
    return Expectation(
        name=name,
        text=text,
        left=read.left,
        compared=read.compared,
        right=read.right,
        margin=read.margin,
        terms=read.terms,
        unit=unit,
        cases=tuple(given.get("cases") or ()),
        of=of or ("each" if extreme else "mean"),
        source=given.get("source") or "",
        place=given.get("place") or "",
        line=given.get("line"),
        file=file,
    )


@dataclass
class _Piece:
    """A part of the text: what Formula reads in its place, and where it begins."""

    kind: str
    text: str
    at: int


class _Reader:
    """Reads the text of an expectation.

    Args:
        text: the text.

    Raises:
        SpecError: it is none.
    """

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise SpecError(f"has {len(text)} characters; accepted: up to {LONGEST}")
        self.text = text
        self.terms: dict[str, Term] = {}
        pieces = list(self._pieces())
        places = [number for number, each in enumerate(pieces) if each.kind == "compared"]
        if len(places) != 1:
            raise SpecError(
                f"has {len(places) or 'no'} comparison{'s' if len(places) > 1 else ''}; accepted: "
                f"one of {', '.join(_COMPARISONS)}, or 'within 5 % of'"
            )
        (place,) = places
        if pieces[place].text not in (*_COMPARISONS, "within"):
            self._refuse(pieces[place].text, pieces[place].at, ", ".join((*_COMPARISONS, "within")))
        self.compared = pieces[place].text
        right = pieces[place + 1 :]
        self.margin: Quantity | None = None
        if self.compared == "within":
            right = self._take_margin(right, pieces[place].at)
        self.left = self._formula(pieces[:place], "left")
        self.right = self._formula(right, "right")
        if not any(isinstance(each, OfMetric | OverTime) for each in self.terms.values()):
            raise SpecError("names nothing that is measured; accepted: a metric on one side")

    def _pieces(self) -> Iterator[_Piece]:
        at = 0
        while found := _TOKEN.match(self.text, at):
            start, at = at, found.end()
            kind, whole = found.lastgroup or "", found[0]
            if found["call"]:
                kind = "call"
            elif found["path"]:
                kind = "path"
            labels: tuple[str, ...] = ()
            if kind in ("quoted", "call", "name") and (picked := _LABELS.match(self.text, at)):
                labels = tuple(_bare(each) for each in _split(picked[1]) if each)
                if not labels:
                    self._refuse(picked[0].strip(), at, "labels of cases, such as [CoDel]")
                at = picked.end()
            match kind:
                case "name" if whole in ("within", "of"):
                    yield _Piece("compared" if whole == "within" else "of", whole, start)
                case "name" if self.text[at:].lstrip().startswith("("):
                    if whole not in ("min", "max"):
                        self._refuse(
                            f"{whole}(…)",
                            start,
                            "min(…), max(…), and of series "
                            f"{', '.join((*_VALUES, *_CONDITIONS))} of something: "
                            "'max(cwnd of GROUP)'",
                        )
                    yield _Piece("other", whole, start)
                case "name" | "quoted":
                    yield self._term(OfMetric(_bare(whole), labels), start)
                case "call":
                    yield self._term(self._over_time(whole, found["inside"], start, labels), start)
                case "path":
                    group = (found["group"] or "").partition("of")[2].strip()
                    times = float((found["times"] or "1").replace("_", ""))
                    yield self._term(OfPath(found["what"], times, _bare(group)), start)
                case "quantity":
                    yield self._term(self._quantity(whole, start), start)
                case _:
                    yield _Piece(kind, whole, start)

    def _term(self, term: Term, at: int) -> _Piece:
        name = next((name for name, each in self.terms.items() if each == term), None)
        if name is None:
            name = f"@{len(self.terms)}"
            self.terms[name] = term
        return _Piece("term", f"'{name}'", at)

    def _quantity(self, text: str, at: int) -> Quantity:
        try:
            value, unit = quantities.parse(text.strip())
        except SpecError:
            self._refuse(
                text.strip(),
                at,
                "a number with a unit such as 20 ms, 9 Mbit/s, 50 packets, 64 kB, 5 %, 2 BDP, 3 "
                "RTT, 0.9 rate",
            )
        return Quantity(value, "bytes" if unit == "B" else unit, " ".join(text.split()))

    def _take_margin(self, pieces: list[_Piece], at: int) -> list[_Piece]:
        """Take in what stands between `within` and `of`, and return the rest."""
        solid = [each for each in pieces if each.text.strip()]
        accepted = "'within 5 % of X', or a quantity in place of the share"
        if len(solid) < 3 or solid[1].kind != "of":
            self._refuse("within", at, accepted)
        margin = self.terms.get(solid[0].text.strip("'"))
        if solid[0].kind == "number":
            margin = Quantity(float(solid[0].text), "")
        if not isinstance(margin, Quantity) or not margin.value > 0:
            self._refuse(solid[0].text, solid[0].at, accepted)
        self.margin = margin
        return pieces[pieces.index(solid[1]) + 1 :]

    def _formula(self, pieces: Sequence[_Piece], side: str) -> Formula:
        text = "".join(each.text for each in pieces).strip()
        for each in pieces:
            if each.kind == "of":
                self._refuse("of", each.at, "within 5 % of X, and SERIES of GROUP in max(…)")
        if not text:
            raise SpecError(f"the {side} side is empty; accepted: a metric, a formula, a quantity")
        try:
            return Formula(text)
        except SpecError as error:
            raise SpecError(self._shown(str(error))) from None

    def _shown(self, message: str) -> str:
        """Return a message about a formula with terms as they were written."""
        message = message.partition(": ")[2]
        for name, term in self.terms.items():
            message = message.replace(f"'{name}'", in_words(term)).replace(name, in_words(term))
        return message

    def _over_time(self, whole: str, inside: str, at: int, labels: tuple[str, ...]) -> OverTime:
        how = whole.partition("(")[0].strip()
        first, *rest = _split(inside)
        found = _PART.fullmatch(first)
        if found is None:
            self._refuse(whole, at, f"{how}(SERIES of GROUP), such as {how}(cwnd of bbr)")
        series, place, condition = found[1], _bare(found[2]), found[3].strip()
        tables = [table for table, known in _TABLES.items() if series in known]
        if not tables:
            every = [each for known in _TABLES.values() for each in known]
            near = get_close_matches(series, every, n=3)
            self._refuse(
                f"{series} of {place}",
                at,
                f"of a group {', '.join((*FLOW_SERIES, *GROUP_SERIES))}; of a link "
                f"{', '.join(QUEUE_SERIES)}" + (f"; nearest: {', '.join(near)}" if near else ""),
            )
        if (how in _CONDITIONS) != bool(condition):
            of_state = f"{how}(state of {place} leaves startup)"
            self._refuse(
                whole,
                at,
                f"with a condition, such as {how}(cwnd of {place} > 50 kB) or {of_state}"
                if how in _CONDITIONS
                else f"without a condition, which time(…) and share(…) take; '{condition}' is one",
            )
        if how == "share" and re.match("leaves|enters", condition):
            self._refuse(whole, at, f"share({series} of {place} is STATE)")
        if series == "state" and how not in _CONDITIONS:
            self._refuse(whole, at, "time(…) and share(…) of a state, and 'while STATE'")
        return OverTime(
            how=how,
            table=tables[0],
            series=series,
            place=place,
            window=self._window(rest, at),
            condition=self._condition(series, condition, whole, at) if condition else None,
            labels=labels,
        )

    def _condition(
        self, series: str, text: str, whole: str, at: int
    ) -> tuple[str, Quantity | OfPath | str]:
        found = _CONDITION.fullmatch(text)
        if series == "state":
            if found is None or found[1] not in _STATES:
                self._refuse(whole, at, f"{', '.join(_STATES)}, and a state such as startup")
            return found[1], _bare(found[2])
        if found is None or found[1] in _STATES:
            self._refuse(whole, at, f"{', '.join(_COMPARISONS)}, and a quantity")
        bound = found[2].strip()
        token = _TOKEN.fullmatch(bound)
        if token is not None and token["path"]:
            times = float((token["times"] or "1").replace("_", ""))
            group = (token["group"] or "").partition("of")[2].strip()
            value: Quantity | OfPath = OfPath(token["what"], times, _bare(group))
            unit = PATH_UNITS[token["what"]]
        elif token is not None and token["number"]:
            value, unit = Quantity(float(bound.replace("_", "")), ""), ""
        else:
            value = self._quantity(bound, at)
            unit = value.unit
        wanted = next(known[series][1] for known in _TABLES.values() if series in known)
        if wanted not in ("", unit) and not (wanted == "1" and not unit):
            self._refuse(whole, at, f"a quantity in {wanted}, since {series} is in {wanted}")
        return found[1], value

    def _window(self, texts: Sequence[str], at: int) -> Window:
        found: dict[str, Any] = {}
        for text in texts:
            state = re.fullmatch(rf"\s*while\s+({_NAME}|{_QUOTED})\s*", text)
            ends = text.split("..")
            if state and "state" not in found:
                found["state"] = _bare(state[1])
            elif len(ends) == 2 and any(map(str.strip, ends)) and "begin" not in found:
                for key, end in zip(("begin", "end"), ends, strict=True):
                    value = self._quantity(end, at) if end.strip() else None
                    if value is not None and value.unit != "s":
                        self._refuse(text.strip(), at, "times, such as 2 s..5 s")
                    found[key] = None if value is None else value.value
                if None not in found.values() and found["begin"] >= found["end"]:
                    self._refuse(text.strip(), at, "a time before another one")
            else:
                self._refuse(
                    text.strip(),
                    at,
                    "one window, such as 2 s..5 s or 2 s.., and one state, such as 'while startup'",
                )
        return Window(**found)

    def _refuse(self, text: str, at: int, accepted: str) -> NoReturn:
        raise SpecError(f"{text!r} (character {at + 1}): accepted: {accepted}")


def _split(text: str) -> list[str]:
    """Return the parts of a list that commas separate, those in quotes left alone.

    >>> _split("cwnd of a, 'x, y'")
    ['cwnd of a', " 'x, y'"]
    """
    parts = [""]
    for found in re.finditer(rf"{_QUOTED}|.", text, re.DOTALL):
        if found[0] == ",":
            parts.append("")
        else:
            parts[-1] += found[0]
    return parts


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1] if text[:1] in ("'", '"') and text[-1:] == text[:1] and text[1:] else text


def unit_of(term: Term, derived: Mapping[str, str]) -> str:
    """Return the unit of a term; empty if it is not known."""
    match term:
        case Quantity() | OverTime():
            return term.unit
        case OfPath():
            return PATH_UNITS[term.what]
        case OfMetric():
            return derived.get(term.metric) or names.describe(term.metric).unit


def _unit(read: _Reader, derived: Mapping[str, str]) -> str:
    """Return the unit of the left side.

    Raises:
        SpecError: the sides have different units, or a number stands where a quantity should.
    """

    def of(name: str) -> str:
        return unit_of(read.terms[name], derived)

    try:
        left, right = read.left.unit(of), read.right.unit(of)
        # As a difference, of which both have to have one unit.
        Formula(f"({read.left.text}) - ({read.right.text})").unit(of)
    except SpecError as error:
        raise SpecError(f"{read._shown(str(error))}; accepted: values of one unit") from None
    for side, other in ((left, read.right), (right, read.left)):
        if side.certain and side.text not in ("", "1") and not other.names and other({}) != 0:
            raise SpecError(
                f"{other.text!r} has no unit, and the other side is in {side.text}; accepted: a "
                f"quantity such as {_EXAMPLES.get(side.text, '1 ' + side.text)}"
            )
    margin = read.margin
    known = left.text or right.text
    if (
        margin is not None
        and margin.unit not in ("1", known)
        and not (margin.unit == "" and known in ("", "1"))
    ):
        raise SpecError(
            f"the margin is in {margin.unit or 'no unit'}; accepted: a share such as "
            f"5 %, or a quantity in {known or 'the unit of the sides'}"
        )
    return left.text if left.certain or not right.certain else right.text


_EXAMPLES = {"s": "20 ms", "bit/s": "9 Mbit/s", "bytes": "64 kB", "packets": "50 packets"}


def in_words(term: Term) -> str:
    """Return a term as an expectation writes it.

    >>> in_words(OfPath("BDP", 2.0, "bbr")), in_words(OfMetric("loss", ("CoDel",)))
    ('2 BDP of bbr', 'loss[CoDel]')
    """
    match term:
        case Quantity():
            unit = {"bytes": "B", "1": ""}.get(term.unit, term.unit)
            return term.text or f"{term.value:g} {unit}".rstrip()
        case OfPath():
            of = f" of {term.group}" if term.group else ""
            return f"{term.times:g} {term.what}{of}" if term.times != 1 else f"{term.what}{of}"
        case OfMetric():
            return term.metric + (f"[{', '.join(term.labels)}]" if term.labels else "")
    condition = ""
    if term.condition is not None:
        how, bound = term.condition
        condition = f" {how} {bound if isinstance(bound, str) else in_words(bound)}"
    window = (
        ""
        if (term.window.begin, term.window.end) == (None, None)
        else ", "
        + "..".join(
            "" if end is None else f"{end:g} s" for end in (term.window.begin, term.window.end)
        )
    )
    window += f", while {term.window.state}" if term.window.state else ""
    labels = f"[{', '.join(term.labels)}]" if term.labels else ""
    return f"{term.how}({term.series} of {term.place}{condition}{window}){labels}"
