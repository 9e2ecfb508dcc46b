"""The tables that `redtail run` and `redtail runs` print."""

from __future__ import annotations

import html
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from redtail import escape, selection
from redtail import metrics as names
from redtail.analysis import censoring
from redtail.analysis import phases as phases_of
from redtail.analysis.digits import shown
from redtail.analysis.stats import Estimate
from redtail.store import runs

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

_Column: TypeAlias = tuple[str, Literal["left", "right"], list[str]]
"""The head of a column, its side, and its texts."""

_GAP = 2  # columns of space between two columns

_ODD_SHOWN = 3  # means that describe no run, below a table

_REASONS_SHOWN = 3  # why there are no intervals, below a table


def summary_table(
    results: Results, width: int, phases: bool = False, metrics: Sequence[str] = ()
) -> Group:
    """Return `summary_tables`, one below the other, to be printed.

    The caption is as wide as the screen, also where the table is narrow.
    """
    from rich.console import Group
    from rich.text import Text

    tables = summary_tables(results, width, phases, metrics)
    caption, tables[-1].caption = tables[-1].caption, None
    parts: list[Table | Text] = []
    for table in tables:
        parts += [Text(""), table] if parts else [table]
    return Group(*parts, Text(str(caption), style="table.caption"))


def summary_tables(
    results: Results, width: int, phases: bool = False, metrics: Sequence[str] = ()
) -> list[Table]:
    """Return a row per case: its labels and its metrics.

    What does not fit into the width continues in a further table, with the same cases. Metrics that
    were not asked for and that say least are left out instead.

    Args:
        results: what to show.
        width: columns of the screen.
        phases: below each case, a row for each of its phases.
        metrics: names, with wildcards, of what is shown; by default as the results say.

    Raises:
        SpecError: there is no such metric.
    """
    # Of each row: the case, and what stands before its metrics' names.
    numbers = results.phases if phases else ()
    prefixes = ["", *(f"phase{number}." for number in numbers)]
    rows = [(case, prefix) for case in results.cases for prefix in prefixes]
    labels: list[_Column] = []
    for key in results.factors:
        texts = [escape.name(case.labels.get(key, "")) for case, _ in rows]
        numeric = all(isinstance(case.factors.get(key), int | float) for case in results.cases)
        labels.append((names.factor_title(key), "right" if numeric else "left", texts))
    if numbers:
        labels.append(("phase", "left", ["all", *map(str, numbers)] * len(results.cases)))
        labels += _times_of(results, numbers)

    asked_for = bool(metrics or results.report)
    names_shown = shown_metrics(results, prefixes, metrics)
    alike = {} if metrics else _alike(names_shown)
    many: list[str] = []
    columns: list[_Column] = []
    parts = [columns]
    # Means that describe no replication: the metric, its case, the estimate.
    odd: list[tuple[str, CaseResult, Estimate]] = []
    timed: list[tuple[str, Estimate]] = []
    reasons: list[str] = []
    # No gap is needed behind the last column.
    room = least = width + _GAP - 1 - sum(_width(head, texts) for head, _, texts in labels)
    for name in names_shown:
        of_groups = alike.get(name, (name,))
        if not of_groups:
            continue  # it is shown with the first of its kind
        found = [case.metric(prefix + name) for case, prefix in rows]
        known = [each.mean for each in found if not math.isnan(each.mean)]
        about = names.readable(names.describe(name), known)
        head = names.head(name, about)
        if len(of_groups) > 1:
            head, text = _head_of_many(head, of_groups)
            many.append(text)
            texts = [
                _of_many([case.metric(prefix + each) for each in of_groups], about.scale)
                for case, prefix in rows
            ]
            found = []
        else:
            texts = [
                censoring.cell(prefix + name, each, about.scale)
                for (_, prefix), each in zip(rows, found, strict=True)
            ]
        alone = list(zip(rows, found, texts, strict=True)) if found else []
        reasons += [_reason(each) for _, each, text in alone if "±?" in text]
        odd += [(name, case, each) for (case, _), each, text in alone if text.endswith("*")]
        room -= _width(head, texts)
        if room < 0 and columns:
            if not asked_for and selection.is_last(name):
                break
            columns = []
            parts.append(columns)
            room = least - _width(head, texts)
        columns.append((head, "right", texts))
        timed += [(name, each) for each in found]

    equal = any(
        text.endswith(censoring.EQUAL) for part in parts for _, _, texts in part for text in texts
    )
    caption = _caption(results, _signs(reasons, equal=equal)) + _no_run(odd)
    replications = max((len(case.runs) for case in results.cases), default=0)
    caption += "".join(f"\n{escape.name(text)}" for text in censoring.notes(timed, replications))
    caption += "".join(f"\n{escape.name(text)}" for text in dict.fromkeys(many))
    return [
        _table(
            [*labels, *part],
            title=escape.title(escape.name(results.name)) if part is parts[0] else None,
            caption=caption if part is parts[-1] else None,
        )
        for part in parts
    ]


_MOST_ALIKE = 8
"""The most groups whose names differ in their numbers alone that have a column each."""

_NUMBERED = re.compile(r"((?:[\w-]+\.)*?[A-Za-z][\w-]*?)([0-9]+)(\..+)")


def _times_of(results: Results, numbers: Sequence[int]) -> list[_Column]:
    """Return the columns with the times of the period and of each phase; none if none is known."""
    times: list[tuple[float, float] | None] = []
    for case in results.cases:
        spans = phases_of.spans(results, case)
        times += [phases_of.whole(spans), *(spans.get(number) for number in numbers)]
    if not any(times):
        return []
    return [
        (f"{head}\ns", "right", [f"{each[end]:g}" if each else "" for each in times])
        for end, head in enumerate(("from", "to"))
    ]


def _alike(shown_ones: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return metrics of many groups, or classes, whose names differ in their numbers alone.

    Returns:
        For the first of each kind all of them, and for the others nothing.

    >>> found = _alike([f"s{i}.goodput" for i in range(9)] + ["web.pages", "hop1.loss"])
    >>> len(found["s0.goodput"]), found["s8.goodput"], found.get("web.pages")
    (9, (), None)
    """
    kinds: dict[tuple[str, str], list[str]] = {}
    for name in shown_ones:
        match = _NUMBERED.fullmatch(name)
        if match and match[1].rpartition(".")[2] not in ("hop", "phase"):
            kinds.setdefault((match[1], match[3]), []).append(name)
    found: dict[str, tuple[str, ...]] = {}
    for own in kinds.values():
        if len(own) > _MOST_ALIKE:
            found |= dict.fromkeys(own, ())
            found[own[0]] = tuple(own)
    return found


def _head_of_many(head: str, of_groups: Sequence[str]) -> tuple[str, str]:
    """Return the head of a column for many groups, and what is said of them below the table."""
    first, last = (_group_of(each) for each in (of_groups[0], of_groups[-1]))
    text = (
        f"{first} to {last}: the median of {len(of_groups)} groups, and from the least to the "
        "largest, of means over replications; with --metrics a column for each"
    )
    return head.replace(f"{first}:", f"{first} to {last}:", 1), text


def _group_of(name: str) -> str:
    match = _NUMBERED.fullmatch(name)
    assert match is not None
    return (match[1] + match[2]).rpartition(".")[2]


def _of_many(found: Sequence[Estimate], scale: float) -> str:
    """Return what groups have: their median, and from the least to the largest.

    >>> _of_many([Estimate(value, None, 1) for value in (1.0, 4.0, 2.0)], 1.0)
    '2 (1 to 4)'
    """
    known = sorted(each.mean for each in found if not math.isnan(each.mean))
    if not known:
        return ""
    three = (statistics.median(known), known[0], known[-1])
    middle, least, most = (shown(Estimate(value, None, 1), scale) for value in three)
    return f"{middle} ({least} to {most})"


def _signs(reasons: Sequence[str], *, equal: bool) -> str:
    """Return what the signs behind means say, a line for each sign; and why, each reason once.

    >>> print(_signs([_ALIKE, "an extreme of each run", _ALIKE], equal=True).strip())
    =: every replication has this value
    ±?: no interval: more than half of the replications are equal; an extreme of each run
    """
    lines = [f"\n{censoring.EQUAL.strip()}: every replication has this value"] if equal else []
    found = _merged(reasons)
    if found:
        more = len(found) - _REASONS_SHOWN
        shown_ones = [*found[:_REASONS_SHOWN]]
        if more > 0:
            shown_ones.append(f"and {more} more, which cases.parquet has")
        lines.append(f"\n±?: no interval: {'; '.join(shown_ones)}")
    return "".join(lines)


def _merged(texts: Sequence[str]) -> list[str]:
    """Return texts, each once; those that differ in numbers alone are one with the ranges.

    >>> _merged(["about 2 times in 5", "an extreme", "about 0.5 times in 5"])
    ['about 0.5 to 2 times in 5', 'an extreme']
    """
    found: dict[tuple[str, ...], list[list[str]]] = {}
    for text in texts:
        found.setdefault(tuple(_NUMBER.split(text)), []).append(_NUMBER.findall(text))
    merged = []
    for words, numbers in found.items():
        columns = (sorted(set(column), key=float) for column in zip(*numbers, strict=True))
        ranges = [" to ".join(dict.fromkeys((column[0], column[-1]))) for column in columns]
        merged.append("".join(chain.from_iterable(zip(words, [*ranges, ""], strict=True))))
    return merged


_NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")

_ALIKE = "more than half of the replications are equal"


def _reason(found: Estimate) -> str:
    """Return why an estimate has no interval, without numbers of this one."""
    alike = not math.isnan(found.least)
    return _ALIKE if alike else found.no_interval or "cases.parquet says why"


def _caption(results: Results, unsure: str) -> str:
    """Return what stands below a table of cases.

    Args:
        results: what is shown.
        unsure: what is said of values without an interval; empty without such a value.
    """
    replications = max((len(case.runs) for case in results.cases), default=0)
    copied = sum(case.copies > 0 for case in results.cases)
    if replications < 2:
        text = "one replication, so no intervals; all metrics are in cases.parquet"
    elif copied == len(results.cases):
        text = (
            f"one observation, so no intervals: the {replications} replications of each case are "
            "copies of one run; all metrics are in cases.parquet"
        )
    else:
        text = (
            f"mean ± half-width of the 95 % interval over {replications} replications; "
            f"all metrics are in cases.parquet{unsure}"
        )
        if copied:
            text += (
                f"\nwithout ±: one observation, since the replications of {copied} of "
                f"{names.counted(len(results.cases), 'case')} are copies of one run"
            )
    return text


def _no_run(odd: Sequence[tuple[str, CaseResult, Estimate]]) -> str:
    """Return the lines below a table about means that describe no replication.

    Args:
        odd: the metric, the case and the estimate of each.
    """
    lines = []
    for name, case, found in odd[:_ODD_SHOWN]:
        about = names.describe(name)
        values = case.values(name)
        assert found.mostly is not None
        count = sum(math.isclose(each, found.mostly, rel_tol=1e-12) for each in values)
        most = shown(Estimate(found.mostly, None, 1), about.scale)
        where = f"{escape.name(case.title)}: " if case.title else ""
        head = " ".join(names.head(name).split())
        lines.append(f"{where}{head} is {most} in {count} of {len(values)} replications")
    if not lines:
        return ""
    more = f"; and {len(odd) - _ODD_SHOWN} more" if len(odd) > _ODD_SHOWN else ""
    return f"\n*: a mean that describes no run; {'; '.join(lines)}{more}"


def shown_metrics(
    results: Results, prefixes: Sequence[str], metrics: Sequence[str] = ()
) -> list[str]:
    """Return the names of the metrics that a table has.

    What has no value in any case is left out if it was not asked for, and so are marks where there
    are none. A time of which nothing finished is kept.

    Args:
        results: what is shown.
        prefixes: what stands before the names: nothing, and of each phase "phase1." and so on.
        metrics: names, with wildcards, of what is shown; by default as the results say.

    Raises:
        SpecError: there is no such metric.
    """
    found = []
    for name in results.select(metrics):
        cells = [case.metric(prefix + name) for case in results.cases for prefix in prefixes]
        known = [each.mean for each in cells if not math.isnan(each.mean)]
        absent = not known or (names.base(name) == "mark" and not any(known))
        absent = absent and not any(each.unfinished for each in cells)
        if not absent or name in metrics:
            found.append(name)
    return found


def _table(columns: Sequence[_Column], title: Any, caption: str | None) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title=title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, _GAP - 1, 0, 0),
        show_edge=False,
    )
    for head, justify, _ in columns:
        table.add_column(escape.plain(head), justify=justify, no_wrap=True, vertical="bottom")
    for row in zip(*(texts for _, _, texts in columns), strict=True):
        table.add_row(*map(escape.plain, row))
    return table


def _width(head: str, texts: list[str]) -> int:
    return max(len(line) for line in [*head.split("\n"), *texts]) + _GAP


def as_html(tables: Iterable[Table]) -> str:
    """Return tables as HTML, for notebooks: plain, with their titles and captions.

    Args:
        tables: whose cells are plain texts, such as those of this module.
    """
    found = []
    for table in tables:
        align = ["right" if column.justify == "right" else "left" for column in table.columns]
        head = "".join(
            f'<th style="text-align:{side};vertical-align:bottom;white-space:pre-line">'
            f"{html.escape(str(column.header))}</th>"
            for side, column in zip(align, table.columns, strict=True)
        )
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:{side}">{html.escape(str(cell))}</td>'
                for side, cell in zip(align, row, strict=True)
            )
            + "</tr>"
            for row in zip(*(column._cells for column in table.columns), strict=True)
        )
        title = f"<h4>{html.escape(str(table.title))}</h4>" if table.title else ""
        caption = (
            f'<p style="white-space:pre-line"><small>{html.escape(str(table.caption))}</small></p>'
            if table.caption
            else ""
        )
        found.append(
            f"{title}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{caption}"
        )
    return "".join(found)


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
