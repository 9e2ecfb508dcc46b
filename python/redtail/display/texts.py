r"""Tables as text for other programs: CSV, LaTeX and Markdown.

CSV is for computation: values in SI units with all digits, mean, half-width of the interval and
number of replications in columns of their own, and the unit in each head. LaTeX (with booktabs) and
Markdown are for readers: the digits and units of the printed table.

Names and labels are of users. In CSV a text that a spreadsheet would take for a formula gets an
apostrophe in front (CWE-1236); in LaTeX and Markdown what has a meaning there is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from redtail import escape
from redtail import metrics as names
from redtail.analysis import phases as phases_of
from redtail.errors import SpecError

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

    from redtail.analysis.moved import Diff
    from redtail.analysis.results import Results

Form = Literal["csv", "latex", "markdown"]
"""The forms of a table as text."""

# Wide enough for all columns of a table.
_WIDE = 1_000_000

# The first letters of a formula in a spreadsheet, also as full-width letters.
_FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "µ": r"\textmu{}",
    "–": "--",
    "−": r"$-$",
    "±": r"$\pm$",
    "…": r"\ldots{}",
    "·": r"$\cdot$",
}


def form_of(text: str, option: str = "format") -> Form:
    """Return the form that a text names.

    Raises:
        SpecError: there is no such form.
    """
    for form in get_args(Form):
        if text == form:
            return form  # type: ignore[no-any-return]
    raise SpecError(f"{option} {text}: accepted: {', '.join(get_args(Form))}", key=option)


def of_results(
    results: Results, form: Form, *, phases: bool = False, metrics: Sequence[str] = ()
) -> str:
    """Return the table of an experiment's cases as text.

    Args:
        results: what to show.
        form: "csv", "latex" or "markdown".
        phases: below each case, a row for each of its phases.
        metrics: names, with wildcards, of what is shown; by default as the results say.

    Raises:
        SpecError: there is no such metric.
    """
    if form != "csv":
        from redtail.display.tables import summary_tables

        return of_tables(summary_tables(results, _WIDE, phases, metrics), form)
    from redtail.display.tables import shown_metrics

    numbers = results.phases if phases else ()
    prefixes = {"all": "", **{str(number): f"phase{number}." for number in numbers}}
    heads = [*results.factors, *(["phase", "from (s)", "to (s)"] if numbers else [])]
    chosen = shown_metrics(results, [*prefixes.values()], metrics)
    # Times of which something may not have finished.
    timed = {
        name
        for name in chosen
        if any(
            case.metric(prefix + name).unfinished is not None
            for case in results.cases
            for prefix in prefixes.values()
        )
    }
    for name in chosen:
        unit = names.describe(name).unit
        heads += [_with_unit(name, unit), _with_unit(f"{name} ci95", unit), f"{name} n"]
        heads += [f"{name} unfinished"] if name in timed else []
    rows: list[list[str | float | int | None]] = []
    for case in results.cases:
        spans = phases_of.spans(results, case)
        times = {"all": phases_of.whole(spans), **{str(each): spans[each] for each in spans}}
        for phase, prefix in prefixes.items():
            row: list[str | float | int | None] = [
                _setting(case.factors.get(key), case.labels.get(key, "")) for key in results.factors
            ]
            row += [phase, *(times.get(phase) or (None, None))] if numbers else []
            for name in chosen:
                found = case.metric(prefix + name if prefix else name)
                row += [None if math.isnan(found.mean) else found.mean, found.ci95, found.n]
                row += [found.unfinished] if name in timed else []
            rows.append(row)
    return csv(heads, rows)


def of_diff(found: Diff, form: Form) -> str:
    """Return what moved between two results as text, the rows of the printed table."""
    if form != "csv":
        return of_tables([found.table()], form)
    heads = ["metric", "unit", "case", "old", "old ci95", "new", "new ci95"]
    heads += ["difference", "difference ci95", "n", "relative", "p adjusted", "verdict"]
    rows: list[list[str | float | int | None]] = []
    for row in found.moved:
        old, new, gap = *row.means, row.difference
        values = [old.mean, old.ci95, new.mean, new.ci95, gap.mean, gap.ci95, gap.n]
        values += [row.relative.mean, row.p_adjusted]
        shown = [None if value is None or math.isnan(value) else value for value in values]
        rows.append(
            [row.metric, names.describe(row.metric).unit, row.title, *shown, str(row.verdict)]
        )
    return csv(heads, rows)


def of_arrow(table: pa.Table) -> str:
    """Return an Arrow table as CSV; a unit that the schema has stands in the head."""
    heads = [
        _with_unit(about.name, (about.metadata or {}).get(b"unit", b"").decode())
        for about in table.schema
    ]
    columns = [table.column(place).to_pylist() for place in range(table.num_columns)]
    return csv(heads, [list(row) for row in zip(*columns, strict=True)])


def of_tables(tables: Sequence[Table], form: Form) -> str:
    """Return printed tables as text for readers, one below the other, with their captions.

    Args:
        tables: whose cells are plain texts, such as those of `display.tables`.
        form: "latex" or "markdown".
    """
    make = _latex if form == "latex" else _markdown
    return "\n\n".join(make(table) for table in tables)


def csv(heads: Sequence[str], rows: Iterable[Sequence[str | float | int | bool | None]]) -> str:
    r"""Return a table as CSV (RFC 4180, with LF): texts in quotes, numbers with all digits.

    >>> csv(["a (s)", "b"], [[0.1, "=1+1"], [None, "-5"]]).splitlines()
    ['"a (s)","b"', '0.1,"\'=1+1"', ',"-5"']
    """
    lines = [heads, *rows]
    return "\n".join(",".join(map(_cell, line)) for line in lines)


def _cell(value: str | float | int | bool | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    text = escape.name(value)
    if text.lstrip()[:1] in [*_FORMULA] and not _is_number(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"'


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _setting(value: object, label: str) -> str | float | int:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return value if plain else label  # type: ignore[return-value]


def _with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name


def _columns(table: Table) -> list[tuple[str, str, bool, list[str]]]:
    """Return the head, unit, side (whether right) and cells of each column."""
    found = []
    for column in table.columns:
        *head, unit = str(column.header).split("\n")
        if not head:
            head, unit = [unit], ""
        cells = [str(cell) for cell in column.cells]
        found.append((" ".join(head), unit, column.justify == "right", cells))
    return found


def _markdown(table: Table) -> str:
    columns = _columns(table)
    heads = [escape.markdown(_with_unit(head, unit)) for head, unit, _, _ in columns]
    lines = [
        "| " + " | ".join(heads) + " |",
        "|" + "|".join("---:" if right else "---" for _, _, right, _ in columns) + "|",
    ]
    for row in zip(*(cells for *_, cells in columns), strict=True):
        lines.append("| " + " | ".join(map(escape.markdown, row)) + " |")
    # Two spaces at the end of a line keep the next one on a line of its own.
    caption = "  \n".join(map(escape.markdown, _captions(table)))
    return "\n".join([*lines, *(["", caption] if caption else [])])


def _latex(table: Table) -> str:
    columns = _columns(table)
    sides = "".join("r" if right else "l" for _, _, right, _ in columns)
    units = [f"({latex(unit)})" if unit else "" for _, unit, _, _ in columns]
    lines = [
        "% needs \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{sides}}}",
        "\\toprule",
        " & ".join(latex(head) for head, _, _, _ in columns) + r" \\",
    ]
    if any(units):
        lines.append(" & ".join(units) + r" \\")
    lines.append("\\midrule")
    for row in zip(*(cells for *_, cells in columns), strict=True):
        lines.append(" & ".join(map(latex, row)) + r" \\")
    lines += ["\\bottomrule", "\\end{tabular}"]
    return "\n".join(lines + [f"% {line}" for line in _captions(table)])


def latex(text: str) -> str:
    r"""Return a text for LaTeX.

    >>> latex("50 % of max_p & more ±?")
    '50 \\% of max\\_p \\& more $\\pm$?'
    """
    return "".join(_LATEX.get(letter, letter) for letter in escape.name(text))


def _captions(table: Table) -> list[str]:
    """Return the lines below a table."""
    lines = str(table.caption or "").splitlines()
    return [escape.name(" ".join(line.split())) for line in lines if line.strip()]
