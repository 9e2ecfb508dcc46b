"""The report of a study of backends, in Markdown: the same results make the same text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from redtail import escape, facts
from redtail.analysis.gap import head_of, row_texts
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


def markdown(found: Validation) -> str:
    """Return the report: backends, how many cells are inside, and all gaps, the worst first."""
    first = next(iter(found.studies.values()))
    lines = [_INTRODUCTION.format(first=escape.markdown(found.backends[0]))]
    lines += _lines(("backend", "made by"), ((of.backend, of.made_by) for of in first.results))
    lines += ["", f"redtail {escape.markdown(facts.version())}.", "", "## Cells", ""]
    lines += [summary(found), *by_means(found), ""]
    if len(found.replications) > 1:
        lines += [*_GROWN.splitlines(), ""]
    verdicts = ("inside", "outside", "not certain", "not measured")
    counts = {
        file: Counter(
            cell.gap.verdict for cell in found.cells if cell.name.partition("/")[0] == file
        )
        for file in found.studies
    }
    lines += _lines(
        ("experiments", *verdicts),
        ((file, *(str(of[verdict]) for verdict in verdicts)) for file, of in counts.items()),  # type: ignore[index]
    )
    if found.failed:
        lines += ["", f"{counted(found.failed, 'run')} failed and are missing in the means."]
    for verdict, title in (
        ("outside", "Outside"),
        ("not certain", "Not certain"),
        ("inside", "Inside"),
        ("not measured", "Not measured"),
    ):
        cells = found.with_verdict(verdict)  # type: ignore[arg-type]
        if cells:
            lines += ["", f"## {title}", "", *_table(found, cells, explained=verdict == "outside")]
    return "\n".join(lines) + "\n"


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
    )


def by_means(found: Validation) -> list[str]:
    """Return a line with how many cells would be inside without intervals, if there are any."""
    sizes = [size for cell in found.judged if (size := cell.gap.size) == size]
    if not sizes:
        return []
    within = sum(size <= 1 for size in sizes)
    share = f"{100 * within / len(sizes):.0f} %"
    return [f"By the means alone, {within} of {counted(len(sizes), 'cell')} ({share}) are within."]


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
    """Return the cells that are not inside, the worst first, as a table for the terminal."""
    made = drawn(*((head, None) for head in (*_heads(found), "verdict")))
    for column in made.columns:
        left = str(column.header) in ("case", "metric", "verdict")
        column.justify = "left" if left else "right"
    for verdict in ("outside", "not certain", "not measured"):
        for cell in found.with_verdict(verdict):
            made.add_row(*(escape.plain(escape.name(text)) for text in _texts(found, cell)))
    return made


def _heads(found: Validation) -> list[str]:
    first, *others = found.backends
    other = others[0] if len(others) == 1 else "the other's"
    heads = ["gap", "case", "metric", "n", first, other, "difference", "%", "allowed"]
    return [*heads[:2], "backend", *heads[2:]] if len(others) > 1 else heads


def _texts(found: Validation, cell: Cell) -> list[str]:
    """Return a cell as the cells of a row, the verdict last."""
    size = cell.gap.size
    start = ["–" if size != size else f"{size:.2f}", cell.name]
    if len(found.backends) > 2:
        start.append(cell.gap.second)
    number = str(len(cell.gap.differences))
    return [*start, head_of(cell.gap.metric), number, *row_texts(cell.gap)]


def _table(found: Validation, cells: Sequence[Cell], *, explained: bool) -> list[str]:
    rows = []
    for cell in cells:
        *texts, verdict = _texts(found, cell)
        rows.append((*texts, found.explained(cell) if explained else verdict))
    return _lines((*_heads(found), "explanation" if explained else "verdict"), rows)


def _lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return pages.table(heads, (map(escape.markdown, row) for row in rows))
