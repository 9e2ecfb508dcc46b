"""Verdicts on what experiments expect: a table, JSON, and JUnit's XML for CI."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as xml

from redtail import escape
from redtail.analysis.digits import shown
from redtail.analysis.paired import LEVEL, MOST_NEEDED
from redtail.metrics import counted
from redtail.studies.checks import Answer
from redtail.studies.definition import Judgement
from redtail.studies.expect import Judged, Row, Verdicts, worst
from redtail.studies.report import drawn

if TYPE_CHECKING:
    from rich.table import Table

JSON_FORMAT = 1
"""Version of what `redtail expect --json` prints."""


def table(verdicts: Verdicts) -> Table:
    """Return the verdicts on an experiment as a table for the terminal."""
    titles = any(row.case for judged in verdicts.judged for row in judged.rows)
    heads: list[tuple[str, int | None]] = [("expectation", 5)]
    heads += [("case", 4)] if titles else []
    heads += [("measured", None), ("has to be", None), ("verdict", None)]
    made = drawn(*heads, title=escape.title(escape.name(verdicts.results.name)))
    for judged in verdicts.judged:
        for row in judged.rows:
            cells = [judged.expected.name] + ([row.case] if titles else [])
            cells += [number(judged, row), bounds(row), _verdict(row)]
            made.add_row(*(escape.plain(escape.name(cell)) for cell in cells))
    return made


def number(judged: Judged, row: Row) -> str:
    """Return what was measured, with its interval or its range, and its unit."""
    scale, unit = row.evidence.shown.scale, _unit(row)
    known = sorted(each for each in row.values if not math.isnan(each))
    if known and math.isinf(known[-1]):
        never = sum(map(math.isinf, known))
        return "never" if never == len(row.values) else f"never in {never} of {len(row.values)}"
    if judged.expected.of == "each":
        ends = [f"{each * scale:.4g}" for each in (known[:1] + known[-1:])]
        return ("..".join(dict.fromkeys(ends)) or "–") + (unit if ends else "")
    return shown(row.evidence.value, scale) + unit


def bounds(row: Row) -> str:
    """Return where a number has to be, with its unit."""
    return row.evidence.bounds.text(row.evidence.shown.scale) + _unit(row)


def _unit(row: Row) -> str:
    unit = row.evidence.shown.shown_unit
    return f" {unit}" if unit else ""


_VERDICTS = {Answer.YES: "holds", Answer.NO: "fails", Answer.UNDECIDED: "undecided"}


def _verdict(row: Row) -> str:
    return _VERDICTS[row.answer]


def reasons(verdicts: Verdicts) -> Iterator[str]:
    """Yield a line for each number that does not simply hold: why, and what would decide it."""
    for judged in verdicts.judged:
        for row in judged.rows:
            if row.answer is Answer.YES:
                continue
            where = f", {row.case}" if row.case else ""
            yield f"{judged.expected.name}{where}: {_verdict(row)}: {reason(row)}"


def reason(row: Row) -> str:
    """Return why a number has its verdict, and how many replications would decide it."""
    parts = [row.why] if row.why else []
    if row.answer is Answer.UNDECIDED:
        if not parts:
            parts = ["the 95 % interval contains the bound"]
        if row.needed is not None:
            parts.append(f"about {row.needed} replications like these would decide it")
        elif row.p is not None:
            parts.append(f"{MOST_NEEDED:,} replications like these would not decide it")
    elif not parts:
        parts = ["the whole 95 % interval is outside" if row.answer is Answer.NO else "inside"]
    return "; ".join(parts)


def in_words(every: Sequence[Verdicts]) -> str:
    """Return how many expectations have which verdict, and what that is worth."""
    found = [judged.judgement for each in every for judged in each.judged]
    counts = ", ".join(
        f"{found.count(each)} {_plural(each, found.count(each))}"
        for each in _WORDS
        if each in found
    )
    tests = sum(each.tests for each in every[:1])
    looks = every[0].looks if every else 1
    at_looks = f", at {looks} looks" if looks > 1 else ""
    return (
        f"{counts}\n"
        f"probability that all hold although one should not: at most {100 * LEVEL / 2:g} %; that "
        f"one fails although all should hold: at most {100 * LEVEL:g} % "
        f"(Holm's correction for {counted(tests, 'number')}{at_looks})"
    )


_WORDS = {Judgement.HOLDS: "holds", Judgement.FAILS: "fails", Judgement.UNDECIDED: "undecided"}


def _plural(judgement: Judgement, count: int) -> str:
    """Return a verdict as the predicate of so many."""
    word = _WORDS[judgement]
    return word.removesuffix("s") if count != 1 and judgement is not Judgement.UNDECIDED else word


def as_json(every: Sequence[Verdicts]) -> dict[str, Any]:
    """Return what `redtail expect --json` prints, as Python objects."""
    return {
        "format": JSON_FORMAT,
        "verdict": _WORDS[worst(each.judgement for each in every)],
        "level": LEVEL,
        "tests": every[0].tests if every else 0,
        "looks": every[0].looks if every else 1,
        "experiments": [
            {
                "experiment": each.results.name,
                "backend": each.results.backend,
                "made_by": each.results.made_by,
                "folder": str(each.results.folder),
                "verdict": _WORDS[each.judgement],
                "expectations": [_judged_json(judged) for judged in each.judged],
            }
            for each in every
        ],
    }


def _judged_json(judged: Judged) -> dict[str, Any]:
    expected = judged.expected
    return {
        "name": expected.name,
        "holds": expected.text,
        "of": expected.of,
        "source": expected.source or None,
        "line": expected.line,
        "verdict": _WORDS[judged.judgement],
        "replications_needed": judged.needed,
        "rows": [
            {
                "case": row.case,
                "value": _finite(row.evidence.value.as_json()),
                "unit": row.evidence.shown.unit,
                "values": [each if math.isfinite(each) else None for each in row.values],
                "bounds": {
                    key: value
                    for key, value in vars(row.evidence.bounds).items()
                    if value is not None
                },
                "verdict": _verdict(row),
                "why": row.why,
                "p": row.p,
                "p_adjusted": row.p_adjusted,
                "replications_needed": row.needed,
            }
            for row in judged.rows
        ],
    }


def _finite(found: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in found.items()
    }


def to_json(every: Sequence[Verdicts]) -> str:
    """Return what `redtail expect --json` prints."""
    return json.dumps(as_json(every), indent=2, ensure_ascii=False, allow_nan=False)


def junit(every: Sequence[Verdicts]) -> bytes:
    """Return the verdicts as JUnit's XML: a suite for each experiment, a case for each expectation.

    One that fails is a `failure`, and one that is undecided an `error`: neither is a success.
    """
    root = xml.Element("testsuites", name="redtail expect")
    for each in every:
        found = [judged.judgement for judged in each.judged]
        suite = xml.SubElement(
            root,
            "testsuite",
            name=_clean(each.results.name),
            tests=str(len(found)),
            failures=str(found.count(Judgement.FAILS)),
            errors=str(found.count(Judgement.UNDECIDED)),
        )
        for judged in each.judged:
            case = xml.SubElement(
                suite,
                "testcase",
                name=_clean(judged.expected.name),
                classname=_clean(each.results.name),
            )
            if judged.judgement is not Judgement.HOLDS:
                kind = "failure" if judged.judgement is Judgement.FAILS else "error"
                problem = xml.SubElement(
                    case,
                    kind,
                    message=_clean(f"{_WORDS[judged.judgement]}: {judged.expected.text}"),
                    type=_WORDS[judged.judgement],
                )
                problem.text = _clean(_rows_text(judged))
            output = xml.SubElement(case, "system-out")
            output.text = _clean(f"{judged.expected.text}\n{_rows_text(judged)}")
    xml.indent(root)
    found_text: bytes = xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return found_text + b"\n"


def _rows_text(judged: Judged) -> str:
    lines = [f"source: {judged.expected.source}"] if judged.expected.source else []
    for row in judged.rows:
        where = f"{row.case}: " if row.case else ""
        why = f" ({reason(row)})" if row.answer is not Answer.YES or row.why else ""
        lines.append(f"{where}{number(judged, row)}, {bounds(row)}: {_verdict(row)}{why}")
    return "\n".join(lines)


# What XML 1.0 has no character for.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
