"""The tables that `redtail run` and `redtail runs` print."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from redtail import escape
from redtail import metrics as names
from redtail.analysis.digits import shown
from redtail.store import runs

if TYPE_CHECKING:
    from rich.table import Table

    from redtail.analysis.results import Results

_GAP = 2  # columns of space between two columns

_UNSURE = "\n±?: no interval can be given from these replications; cases.parquet says why"


def summary_table(results: Results, width: int, phases: bool = False) -> Table:
    """Return a row per case: its labels and as many of the main metrics as fit into `width`.

    Args:
        results: what to show.
        width: columns of the screen.
        phases: below each case, a row for each of its phases.
    """
    from rich import box
    from rich.table import Table

    # Of each row: the case, and what stands before its metrics' names.
    numbers = results.phases if phases else ()
    prefixes = ["", *(f"phase{number}." for number in numbers)]
    rows = [(case, prefix) for case in results.cases for prefix in prefixes]
    columns: list[tuple[str, str, list[str]]] = []
    for key in results.factors:
        texts = [escape.name(case.labels.get(key, "")) for case, _ in rows]
        numeric = all(isinstance(case.factors.get(key), int | float) for case in results.cases)
        columns.append((names.factor_title(key), "right" if numeric else "left", texts))
    if numbers:
        columns.append(("phase", "left", ["all", *map(str, numbers)] * len(results.cases)))
    # No gap is needed behind the last column.
    room = width + _GAP - 1 - sum(_width(head, texts) for head, _, texts in columns)

    for name in names.shown(results.metric_names, results.links, names.TABLE):
        found = [case.metric(prefix + name) for case, prefix in rows]
        if all(math.isnan(each.mean) or (name == "mark" and each.mean == 0) for each in found):
            continue
        head = names.head(name)
        texts = [shown(each, names.describe(name).scale) for each in found]
        room -= _width(head, texts)
        if room < 0:
            break
        columns.append((head, "right", texts))

    replications = max((len(case.runs) for case in results.cases), default=0)
    unsure = any("±?" in text for _, _, texts in columns for text in texts)
    table = Table(
        title=escape.title(escape.name(results.name)),
        title_justify="left",
        caption=(
            f"mean ± half-width of the 95 % interval over {replications} replications; "
            f"all metrics are in cases.parquet{_UNSURE if unsure else ''}"
            if replications > 1
            else "one replication, so no intervals; all metrics are in cases.parquet"
        ),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, _GAP - 1, 0, 0),
        show_edge=False,
    )
    for head, justify, _ in columns:
        table.add_column(escape.plain(head), justify=justify, no_wrap=True, vertical="bottom")  # type: ignore[arg-type]
    for row in zip(*(texts for _, _, texts in columns), strict=True):
        table.add_row(*map(escape.plain, row))
    return table


def _width(head: str, texts: list[str]) -> int:
    return max(len(line) for line in [*head.split("\n"), *texts]) + _GAP


def experiment_table(found: list[runs.Experiment]) -> Table:
    """Return the experiments of a store as a table."""
    from rich import box
    from rich.table import Table

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    drawn.add_column("experiment")
    for title in ("runs", "in results", "size"):
        drawn.add_column(title, justify="right")
    drawn.add_column("newest")
    drawn.add_column("code versions")
    if any(each.failed or each.in_use for each in found):
        drawn.add_column("")
    for each in found:
        versions = (f"{version[:12]} ({count})" for version, count in each.versions.items())
        remarks = [f"{each.failed} failed"] if each.failed else []
        remarks += ["at work"] if each.in_use else []
        cells = (
            each.name,
            str(each.runs),
            str(each.in_results),
            runs.shown_size(each.size),
            (each.newest or "-").replace("T", " ").replace("+00:00", " UTC"),
            ", ".join(versions) or "-",
            ", ".join(remarks),
        )
        drawn.add_row(*(escape.plain(escape.name(cell)) for cell in cells[: len(drawn.columns)]))
    return drawn
