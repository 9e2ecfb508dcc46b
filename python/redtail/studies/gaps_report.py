"""The report of a study of backends, in Markdown: the same results make the same text."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from redtail import escape, facts
from redtail.analysis.gap import Verdict, head_of, row_texts
from redtail.errors import StoreError
from redtail.files import path_of
from redtail.metrics import counted
from redtail.store.writing import replace_file
from redtail.studies import pages
from redtail.studies.report import drawn

if TYPE_CHECKING:
    from rich.table import Table

    from redtail.studies.gaps import Cell, Validation

_INTRODUCTION = """\
# Validation

This page is made by `redtail validate --report FILE`, which runs a matrix of experiments under each
of these backends, with the same seeds, and compares what they measure. A *cell* is one metric of
one case. Its gap is the difference between the backends in units of what the tolerance allows. A
cell is *inside* or *outside* if the whole 95 % interval of the difference is; otherwise it is *not
certain*. Where there is no interval (±?), all of at least five replications decide alike. Shares
are of the mean of {first}; *n* is the number of replications.
"""

_GROWN = """\
Cases with a cell that was not found inside got more replications, so their cells were looked at
more than once. In each look a cell whose difference is as large as the tolerance is found inside in
at most 2.5 % of cases.
"""

_VERDICTS: tuple[Verdict, ...] = ("inside", "outside", "not certain", "not measured")

# Which verdict a row has whose cells have several: the first of these.
_WORST: tuple[Verdict, ...] = ("outside", "not certain", "not measured", "no tolerance", "inside")


def markdown(found: Validation) -> str:
    """Return the report: backends, how many cells are inside, and all gaps, the worst first."""
    called = _called(found.backends)
    lines = [_INTRODUCTION.format(first=escape.markdown(found.backends[0]))]
    made = [(called[name], name, made_by or "") for name, made_by in found.made_by.items()]
    if any(name != short for short, name, _ in made):
        lines += _lines(("here", "backend", "made by"), made)
    else:
        lines += _lines(("backend", "made by"), (each[1:] for each in made))
    lines += ["", f"redtail {escape.markdown(facts.version())}.", "", "## Cells", ""]
    lines += [*summaries(found), ""]
    if len(found.replications) > 1:
        lines += [*_GROWN.splitlines(), ""]
    lines += _of_experiments(found)
    if found.failed:
        lines += ["", f"{counted(found.failed, 'run')} failed and are missing in the means."]
    for text in left_out(found):
        lines += ["", f"{escape.markdown(text)}."]
    if found.absent:
        lines += ["", f"{absent(found)}: {', '.join(map(escape.markdown, found.absent))}."]
    rows = _rows(found)
    for verdict in ("outside", "not certain", "inside", "not measured"):
        if rows[verdict]:
            made_of = _table(found, rows[verdict], explained=verdict == "outside")
            lines += ["", f"## {verdict.capitalize()}", "", *made_of]
    return "\n".join(lines) + "\n"


def _called(backends: Sequence[str]) -> dict[str, str]:
    """Return what columns call backends: a kernel by two numbers of its version, if that is enough.

    >>> _called(["sim", "linux:6.1.0-56-cloud-amd64", "linux:7.2.13"])["linux:7.2.13"]
    'linux:7.2'
    >>> _called(["linux:6.1.0-55", "linux:6.1.0-56"])["linux:6.1.0-55"]
    'linux:6.1.0-55'
    """
    short = {name: re.sub(r"(:\d+\.\d+)\b.*", r"\1", name) for name in backends}
    used = Counter(short.values())
    return {name: text if used[text] == 1 else name for name, text in short.items()}


def _of_experiments(found: Validation) -> list[str]:
    """Return a table of verdicts by experiment, of each pair of backends."""
    several = len(found.backends) > 2
    called = _called(found.backends)
    rows = []
    for file in found.studies:
        for first, second, pair in found.pairs:
            of = Counter(
                cell.gap.verdict for cell in pair.cells if cell.name.partition("/")[0] == file
            )
            backends = [f"{called[first]} and {called[second]}"] if several else []
            rows.append([file, *backends, *(str(of[verdict]) for verdict in _VERDICTS)])
    return _lines(("experiments", *(["backends"] if several else []), *_VERDICTS), rows)


def left_out(found: Validation) -> list[str]:
    """Return a line for each experiment that a backend cannot run, with the reason."""
    return [
        f"{file} is not run by {name}: {reason}" for (file, name), reason in found.unable.items()
    ]


def absent(found: Validation) -> str:
    """Return how many cases are left out."""
    return f"{counted(len(found.absent), 'case')} without runs that are stored under all backends"


def summaries(found: Validation) -> list[str]:
    """Return how many cells are inside, a line for each pair of backends."""
    if len(found.backends) == 2:
        return [summary(found)]
    called = _called(found.backends)
    return [
        f"- {called[first]} and {called[second]}: {summary(pair)}"
        for first, second, pair in found.pairs
    ]


def summary(found: Validation) -> str:
    """Return in one line how many cells are inside."""
    judged = len(found.judged)
    inside = found.counts.get("inside", 0)
    share = f" ({100 * inside / judged:.0f} %)" if judged else ""
    others = ", ".join(
        f"{number} {verdict}" for verdict, number in found.counts.items() if verdict != "inside"
    )
    made = [
        f"{counted(cases, 'case')} with {counted(number, 'replication')}"
        for number, cases in found.replications.items()
    ]
    return (
        f"{inside} of {counted(judged, 'cell')} are inside{share}"
        + (f"; {others}" if others else "")
        + "."
        + (f" {', '.join(made)}." if len(made) > 1 else "")
        + by_means(found)
    )


def by_means(found: Validation) -> str:
    """Return a sentence: how many cells would be inside without intervals; empty without any."""
    sizes = [size for cell in found.judged if (size := cell.gap.size) == size]
    if not sizes:
        return ""
    within = sum(size <= 1 for size in sizes)
    share = f"{100 * within / len(sizes):.0f} %"
    return f" By the means alone, {within} of {counted(len(sizes), 'cell')} ({share}) are within."


def write(found: Validation, file: str | os.PathLike[str]) -> Path:
    """Write the report, replacing an older one in one step.

    Raises:
        StoreError: it cannot be written.
    """
    path = path_of(file)
    try:
        replace_file(path, markdown(found).encode())
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def table(found: Validation) -> Table:
    """Return the cells that are not inside, the worst first, as a table for the terminal.

    With several backends it has no differences, which the report has.
    """
    called = _called(found.backends)
    heads = _heads(called)
    several = len(called) > 2
    shown = [place for place, head in enumerate(heads) if not (several and " - " in head)]
    made = drawn(*((head, None) for head in (*(heads[place] for place in shown), "verdict")))
    for column in made.columns:
        left = str(column.header) in ("case", "metric", "verdict")
        column.justify = "left" if left else "right"
    rows = _rows(found)
    for row in (*rows["outside"], *rows["not certain"], *rows["not measured"]):
        *texts, last = (escape.plain(escape.name(text)) for text in _texts(called, row))
        made.add_row(*(texts[place] for place in shown), last)
    return made


@dataclass(frozen=True)
class _Row:
    """One metric of one case.

    Attributes:
        cells: one for each backend but the first.
        between: one for each backend but the first two, compared with the second.
    """

    cells: list[Cell] = field(default_factory=list)
    between: list[Cell] = field(default_factory=list)


def _rows(found: Validation) -> dict[Verdict, list[_Row]]:
    """Return the rows by verdict, in each the largest gap first.

    A row whose cells have several verdicts has the one that stands first in `_WORST`.
    """

    def place(cell: Cell) -> tuple[str, str]:
        return cell.name, cell.gap.metric

    left: dict[tuple[str, str], _Row] = {}
    for cell in found.cells:
        left.setdefault(place(cell), _Row()).cells.append(cell)
    for cell in found.between:
        if cell.gap.first == found.backends[1]:
            left[place(cell)].between.append(cell)
    rows: dict[Verdict, list[_Row]] = {}
    for verdict in _WORST:
        places = dict.fromkeys(map(place, found.with_verdict(verdict)))
        rows[verdict] = [left.pop(each) for each in places if each in left]
    return rows


def _heads(called: Mapping[str, str]) -> list[str]:
    first, second, *others = called.values()
    heads = ["gap", "case", "metric", "n", first, second, *others]
    if not others:
        return [*heads, "difference", "%", "allowed"]
    less = [f"{name} - {first}" for name in (second, *others)]
    return [*heads, *less, *(f"{name} - {second}" for name in others), "allowed"]


def _texts(called: Mapping[str, str], row: _Row) -> list[str]:
    """Return a row as texts, the verdict last: of each backend, if they differ."""
    gaps = [cell.gap for cell in row.cells]
    sizes = [gap.size for gap in gaps if gap.size == gap.size]
    numbers = dict.fromkeys(str(len(gap.differences)) for gap in gaps)
    start = [f"{max(sizes):.2f}" if sizes else "–", row.cells[0].name, head_of(gaps[0].metric)]
    start.append(", ".join(numbers))
    _, *further = called
    if len(further) == 1:
        return [*start, *row_texts(gaps[0])]
    texts = {gap.second: row_texts(gap) for gap in gaps}
    first, _, _, _, allowed, _ = texts[gaps[0].second]
    between = {cell.gap.second: _with_verdict(cell) for cell in row.between}
    # An experiment that a backend cannot run has no texts of it.
    nothing = ["–"] * 6
    return [
        *start,
        first,
        *(texts.get(name, nothing)[1] for name in further),
        *(texts.get(name, nothing)[2] for name in further),
        *(between.get(name, "–") for name in further[1:]),
        allowed,
        _verdicts({called[name]: of[5] for name, of in texts.items()}),
    ]


def _verdicts(of: Mapping[str, str]) -> str:
    """Return the verdict of all backends, or that of each.

    >>> _verdicts({"a": "inside", "b": "inside"}), _verdicts({"a": "inside", "b": "outside"})
    ('inside', 'a: inside, b: outside')
    """
    if len(set(of.values())) == 1:
        return next(iter(of.values()))
    return ", ".join(f"{name}: {verdict}" for name, verdict in of.items())


def _with_verdict(cell: Cell) -> str:
    """Return a difference between two further backends, with a verdict other than inside."""
    text = row_texts(cell.gap)[2]
    return text if cell.gap.verdict == "inside" else f"{text} ({cell.gap.verdict})"


def _table(found: Validation, rows: Sequence[_Row], *, explained: bool) -> list[str]:
    called = _called(found.backends)
    # Of two backends, those of a table of explanations are all outside.
    with_verdict = not explained or len(called) > 2
    heads = [*_heads(called), *(["verdict"] if with_verdict else [])]
    made = []
    for row in rows:
        *texts, verdict = _texts(called, row)
        texts += [verdict] if with_verdict else []
        made.append([*texts, *([found.explained(row.cells[0])] if explained else [])])
    return _lines([*heads, *(["explanation"] if explained else [])], made)


def _lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return pages.table(heads, (map(escape.markdown, row) for row in rows))
