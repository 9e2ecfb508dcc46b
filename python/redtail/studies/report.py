"""The results of a reproduced study: a table, a page, and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from redtail import escape
from redtail import metrics as names
from redtail.analysis.digits import shown
from redtail.studies import definition, pages
from redtail.studies.checks import Answer, Evidence
from redtail.studies.definition import Column, Finding, Judgement, TableOf
from redtail.studies.grid import Grid
from redtail.studies.results import StudyResults, UnderSetting, modern, versions
from redtail.studies.verdicts import Tested, Verdict

if TYPE_CHECKING:
    from rich.table import Table

JSON_FORMAT = 3
"""Version of what `redtail reproduce --json` prints."""

_SIGNS = {Answer.YES: "+", Answer.NO: "−", Answer.UNDECIDED: "?"}
_SIGNS_TEXT = (
    "+: all numbers of a check are within their bounds; −: one or more are outside; ?: none is "
    "outside, and one or more are undecided, as the 95 % interval crosses a bound or is missing; "
    "shown is the number on which the sign depends, in brackets how many are within"
)


def listing() -> str:
    """Return the studies that can be reproduced, with their scales."""
    lines = []
    for name in definition.names():
        study = definition.load(name)
        if study.subject is not None:
            continue  # `redtail evaluate` lists suites
        lines += [name, f"  {study.title}"]
        lines += [f"  {study.authors}; {study.published}"] if study.authors else []
        lines += [f"  {len(study.findings)} findings"]
        lines += [f"  --scale {scale}: {about}" for scale, about in study.scales.items()]
    return "\n".join(lines)


def number(row: Evidence) -> str:
    """Return the number of a row with its interval and unit, and its bounds."""
    unit = f" {row.shown.shown_unit}" if row.shown.shown_unit else ""
    return f"{shown(row.value, row.shown.scale)}{unit} ({row.bounds.text(row.shown.scale)})"


def summary(tested: Tested) -> str:
    """Return a check in one line: the number on which its answer depends.

    That is the one farthest outside; if none is outside, an undecided one; else the one nearest to
    its bound.
    """
    rows = tested.evidence
    found = [row.answer for row in rows]
    answer = next((each for each in (Answer.NO, Answer.UNDECIDED) if each in found), Answer.YES)
    shown_row = min((row for row in rows if row.answer is answer), key=lambda row: row.margin)
    count = f"{found.count(Answer.YES)} of {len(rows)}"
    if Answer.UNDECIDED in found:
        count += f", {found.count(Answer.UNDECIDED)} undecided"
    count = f" [{count}]" if len(rows) > 1 else ""
    return f"{_SIGNS[answer]} {shown_row.about}: {number(shown_row)}{count}"


def table(done: StudyResults) -> Table:
    """Return the verdicts as a table for the terminal."""
    made = drawn(
        ("finding", None),
        ("statement", 5),
        ("verdict", None),
        ("evidence, and why", 8),
        title=escape.title(f"{done.study.name}, scale {done.scale}: {done.study.title}"),
        caption=_SIGNS_TEXT,
    )
    for verdict in done.verdicts:
        cells = (
            escape.name(verdict.finding.id),
            escape.text(verdict.finding.statement),
            verdict.judgement.value,
            "\n".join(map(escape.name, _evidence_and_why(verdict))),
        )
        made.add_row(*map(escape.plain, cells))
    return made


def drawn(*heads: tuple[str, int | None], title: Any = None, caption: str | None = None) -> Table:
    """Return a table for the terminal without rows; heads with a number may be broken."""
    from rich import box
    from rich.table import Table

    made = Table(
        title=title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    for head, ratio in heads:
        made.add_column(escape.plain(escape.text(head)), ratio=ratio, no_wrap=ratio is None)
    return made


def _evidence_and_why(verdict: Verdict) -> list[str]:
    """Return a line for each check, and the reason of a verdict that is not "holds"."""
    why = [] if verdict.judgement is Judgement.HOLDS else [verdict.why]
    return [*map(summary, verdict.tested), *why]


def counts(done: StudyResults) -> str:
    """Return how many findings got which verdict, in words."""
    found = [verdict.judgement for verdict in done.verdicts]
    return ", ".join(f"{each}: {found.count(each)}" for each in Judgement if each in found)


def as_json(done: StudyResults) -> dict[str, Any]:
    """Return everything as plain Python objects."""
    return {
        "format": JSON_FORMAT,
        "study": done.study.name,
        "title": done.study.title,
        "scale": done.scale,
        **versions(),
        "findings": [
            {
                "id": verdict.finding.id,
                "statement": verdict.finding.statement,
                "verdict": verdict.judgement.value,
                "why": verdict.why,
                "checks": [
                    {
                        "comparison": tested.check.comparison,
                        "test": tested.check.test,
                        "parameters": dict(tested.check.parameters),
                        "evidence": [_row(row) for row in tested.evidence],
                    }
                    for tested in verdict.tested
                ],
            }
            for verdict in done.verdicts
        ],
        "solved": {
            name: {
                label: [
                    {"load": done.grids[name].named.text(load), "value": value}
                    for load, value in values.items()
                ]
                for label, values in comparison.solved.items()
            }
            for name, comparison in done.comparisons.items()
        },
        "then_and_now": [
            {
                "setting": each.name,
                "verdicts": {
                    verdict.finding.id: verdict.judgement.value for verdict in each.verdicts
                },
            }
            for each in done.now
        ],
        "kernel": [
            {
                "set_up": each.name,
                "made_by": each.made_by or None,
                "verdicts": {
                    verdict.finding.id: {
                        "verdict": verdict.judgement.value,
                        "why": verdict.why,
                        "evidence": [
                            _row(row) for tested in verdict.tested for row in tested.evidence
                        ],
                    }
                    for verdict in each.verdicts
                },
            }
            for each in done.kernel
        ],
        "comparisons": {
            name: comparison.results.as_json() for name, comparison in done.comparisons.items()
        },
    }


def to_json(done: StudyResults) -> str:
    """Return everything as JSON."""
    return json.dumps(as_json(done), indent=2, ensure_ascii=False, allow_nan=False)


def markdown(done: StudyResults) -> str:
    """Return a page: verdicts, the numbers they follow from, and published numbers next to ours."""
    study = done.study
    made = versions()
    lines = [
        f"# {_md(study.name)}: {_md(study.title)}",
        "",
        *([escape.paragraph(f"{study.authors}. {study.published}."), ""] if study.authors else []),
        f"Scale {_md(f'{done.scale} ({study.scales[done.scale]})')}, {done.run_count} runs with "
        f"redtail {made['redtail_version']}. Means over replications ± half-width of the 95 % "
        "interval. "
        + (
            "redtail's documentation says what the set-up is and what was assumed: "
            f"{_md(study.about)}."
            if study.about
            else f"The set-up is in {_md(study.folder.name)}/study.toml and the files it names."
        ),
        "",
    ]
    if study.findings:
        lines += ["## Verdicts", "", f"{counts(done)}.", "", *verdict_lines(done), ""]
    if study.figures:
        lines += ["## Figures", "", *figure_lines(done, "figures/")]
    for table in study.tables:
        lines += [f"## {_md(table.caption)}", "", *table_lines(done, table), ""]
    if done.now:
        lines += ["## Then and now", "", *now_lines(done), ""]
    if done.kernel:
        lines += ["## With a kernel", "", *kernel_lines(done), ""]
    lines += ["## Numbers", ""] if study.findings else []
    for verdict in done.verdicts:
        if verdict.tested:
            lines += [f"### {_md(verdict.finding.id)}: {verdict.judgement}", ""]
            rows = (
                map(_md, (row.about, number(row), row.answer.value))
                for tested in verdict.tested
                for row in tested.evidence
            )
            lines += [escape.paragraph(verdict.finding.statement), ""]
            lines += pages.table((None, "number", "within"), rows)
            lines.append("")
    for name, comparison in done.comparisons.items():
        for label, values in comparison.solved.items():
            at = done.grids[name].at
            found = ", ".join(f"{value} at {at(load)}" for load, value in values.items())
            lines += [escape.paragraph(f"{label} ({name}): {found}."), ""]
    return "\n".join(lines)


def verdict_lines(done: StudyResults) -> list[str]:
    """Return the table of verdicts in Markdown."""
    rows = (
        (
            _md(verdict.finding.id),
            _md(verdict.finding.statement),
            verdict.judgement.value,
            "<br>".join(map(_md, _evidence_and_why(verdict))),
        )
        for verdict in done.verdicts
    )
    lines = pages.table(("finding", None, "verdict", "evidence, and why"), rows)
    return with_legend([*lines, "", f"{_md(_SIGNS_TEXT)}."])


def with_legend(lines: list[str]) -> list[str]:
    """Return lines of Markdown with the meaning of the star, if a number has one."""
    if not any("±?*" in line or "±?\\*" in line for line in lines):
        return lines
    return [*lines, "", "\\*: most replications have another value, so the mean describes none."]


def figure_lines(done: StudyResults, folder: str) -> list[str]:
    """Return the paper's figures in Markdown; `folder` is put in front of their names."""
    lines = []
    for figure in done.study.figures:
        if figure.comparison in done.grids:
            file = quote(f"{folder}{figure.name}.png")
            about = escape.paragraph(figure.caption)
            lines += [f"![{_md(figure.caption)}]({file})", "", about, ""]
    return lines


def table_lines(done: StudyResults, table: TableOf) -> list[str]:
    """Return our numbers, with published ones in brackets, as a table in Markdown."""
    if table.comparison not in done.grids:
        return [f"This scale does not run {table.comparison}."]
    return lines_of_table(done.grids[table.comparison], table, _modern(done, table))


def lines_of_table(grid: Grid, table: TableOf, modern_queues: Sequence[str] = ()) -> list[str]:
    """Return the table of a grid with published numbers in brackets, in Markdown."""
    heads, rows = _cells(grid, table, modern_queues)
    lines = [f"In brackets: {_md(table.source)}.", ""] if table.source else []
    place = heads.index("queue")
    cells = (
        (*map(_md, row[:place]), _linked(row[place], table.link), *row[place + 1 :]) for row in rows
    )
    return with_legend([*lines, *pages.table([*map(_md, heads)], cells)])


def numbers_table(done: StudyResults, table: TableOf) -> Table:
    """Return our numbers as a table for the terminal."""
    heads, rows = _cells(done.grids[table.comparison], table, _modern(done, table))
    made = drawn(*((_broken(head), None) for head in heads), title=escape.title(table.caption))
    made.padding = 0  # there may be many columns
    for row in rows:
        made.add_row(*(escape.plain(escape.name(cell)) for cell in row))
    return made


def _broken(head: str) -> str:
    """Return the head of a column in as many lines as it has words, as cells are short."""
    return head.replace(" ", "\n")


def _modern(done: StudyResults, table: TableOf) -> Sequence[str]:
    return modern(done, table.comparison) if table.modern else ()


def _cells(
    grid: Grid, table: TableOf, modern_queues: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of a table of numbers, as texts."""
    published = {
        (grid.named.find(row.load), grid.queue(row.queue)): table.published(row)
        for row in table.rows
    }
    queues = (*grid.queues, *modern_queues)
    rows = list(published)
    if not rows or table.modern:
        loads = tuple(dict.fromkeys(load for load, _ in rows)) or grid.loads
        rows = [(load, queue) for load in loads for queue in queues if grid.has(queue, load)]
    if table.order:
        rows.sort(key=lambda row: _rank(grid, table, *row))
    # Where all columns have a form, there is one load, of which the caption says what it is.
    with_load = bool(table.metrics)
    return [*([""] if with_load else []), "queue", *_heads(grid, table.all_columns)], [
        [
            *([grid.at(load)] if with_load else []),
            queue,
            *_numbers(grid, load, queue, table.all_columns, published.get((load, queue), ())),
        ]
        for load, queue in rows
    ]


def _linked(queue: str, link: str) -> str:
    return f"[{_md(queue)}]({quote(link.replace('QUEUE', queue))})" if link else _md(queue)


def _rank(grid: Grid, table: TableOf, load: float, queue: str) -> tuple[float | str, ...]:
    """Return by what a row is sorted."""
    digits = {column.metric: column.digits for column in table.columns}
    found: list[float | str] = []
    for number, metric in enumerate(table.order, start=1):
        name = metric.removeprefix("-")
        value = grid.describe(name).scale * grid.estimate(name, queue, load).mean
        if number < len(table.order) and digits.get(name) is not None:
            value = round(value, digits[name])
        found.append(-value if metric.startswith("-") else value)
    return (*found, queue)


def now_lines(done: StudyResults) -> list[str]:
    """Return the findings under each setting, and numbers under each, in Markdown."""
    if not done.now:
        return ["Not asked for: `--then-and-now` runs it."]
    lines = [*_side_by_side(done.now), ""]
    about = [
        escape.paragraph(f"{each.name}: {each.setting.about}") for each in done.now if each.setting
    ]
    lines += [f"{'; '.join(about)}. Then is the paper's own set-up.", ""]
    for wanted in done.study.then_and_now:
        if not all(wanted.comparison in each.grids for each in done.now):
            lines += [f"This scale does not run {wanted.comparison}.", ""]
            continue
        rows, columns = [], [Column(metric) for metric in wanted.metrics]
        for each in done.now:
            grid = each.grids[wanted.comparison]
            queues = (*grid.queues, *modern(done, wanted.comparison))
            for load in map(grid.named.find, wanted.loads) if wanted.loads else grid.loads:
                for queue in queues:
                    if grid.has(queue, load):
                        first = map(_md, (each.name, grid.at(load), queue))
                        rows.append([*first, *_numbers(grid, load, queue, columns)])
        heads = _heads(done.now[0].grids[wanted.comparison], columns)
        lines += [*pages.table(("setting", "", "queue", *map(_md, heads)), rows), ""]
    return with_legend(lines[:-1])


def kernel_notes(done: StudyResults) -> list[str]:
    """Return what the columns of `kernel_table` mean."""
    _, simulated, measured = done.kernel
    about = simulated.setting.about if simulated.setting else ""
    return [
        f"simulation: the paper's set-up; {simulated.name}: {about}",
        f"{measured.name}: made by {measured.made_by}",
    ]


def kernel_lines(done: StudyResults) -> list[str]:
    """Return all findings, simulated and by a kernel, in Markdown, with the kernel's numbers."""
    if not done.kernel:
        return ["Not asked for: `--backend linux` runs it."]
    lines = [*_side_by_side(done.kernel), ""]
    lines += [f"{escape.paragraph(note)}." for note in kernel_notes(done)]
    lines.append("")
    rows = (
        map(_md, (simulated.finding.id, ours.about, number(ours), number(theirs)))
        for simulated, measured in zip(*(each.verdicts for each in done.kernel[1:]), strict=True)
        for ours, theirs in zip(_evidence(simulated), _evidence(measured), strict=False)
    )
    return [*lines, *pages.table(("finding", None, "simulated so", "kernel"), rows)]


def _evidence(verdict: Verdict) -> list[Evidence]:
    return [row for tested in verdict.tested for row in tested.evidence]


def _side_by_side(columns: Sequence[UnderSetting]) -> list[str]:
    """Return the findings with the verdicts of each column, in Markdown."""
    return pages.table(
        ("finding", None, *(_md(each.name) for each in columns)),
        ((_md(of.id), _md(of.statement), *found) for of, found in _by_finding(columns)),
    )


def table_of(columns: Sequence[UnderSetting]) -> Table:
    """Return findings with the verdicts of each column as a table for the terminal."""
    made = drawn(("finding", None), *((each.name, 1) for each in columns))
    for finding, found in _by_finding(columns):
        made.add_row(*(escape.plain(escape.name(cell)) for cell in (finding.id, *found)))
    return made


def _by_finding(columns: Sequence[UnderSetting]) -> Iterator[tuple[Finding, list[str]]]:
    """Yield each finding of the first column with its verdict in each; empty where not tried."""
    found = [{of.finding.id: of.judgement.value for of in each.verdicts} for each in columns]
    for verdict in columns[0].verdicts:
        finding = verdict.finding
        yield finding, [verdicts.get(finding.id, "") for verdicts in found]


def changes(done: StudyResults) -> list[str]:
    """Return a line for each finding whose verdict is not the expected one."""
    return [f"{name}: expected {expected}, found {found}" for name, expected, found in done.changed]


def _heads(grid: Grid, columns: Sequence[Column]) -> list[str]:
    """Return the heads of columns: the group or queue that a metric is of, its name, its unit."""
    heads = []
    for column in columns:
        about, of = grid.describe(column.metric), names.prefix(column.metric.rpartition(":")[2])
        unit = f" ({about.shown_unit})" if about.shown_unit else ""
        heads.append(column.head or f"{of} {about.short}{unit}".lstrip())
    return heads


def _numbers(
    grid: Grid, load: float, queue: str, columns: Sequence[Column], others: Sequence[float] = ()
) -> list[str]:
    """Return the numbers of a row, each with that of others in brackets if there is one."""
    cells = []
    for number_of, column in enumerate(columns):
        scale = grid.describe(column.metric).scale
        found = grid.estimate(column.metric, queue, load)
        other = others[number_of] if number_of < len(others) else math.nan
        other_text = "" if math.isnan(other) else f" [{other * scale:.4g}]"
        text = shown(found, scale)
        if column.digits is not None:
            half = "?" if found.ci95 is None else f"{scale * found.ci95:.{column.digits}f}"
            text = f"{scale * found.mean:.{column.digits}f} ±{half}"
        cells.append(f"{text}{other_text}")
    return cells


def _md(text: str) -> str:
    """Return a text of the paper's files, or a name of the experiments', in Markdown."""
    return escape.markdown(text)


def _row(row: Evidence) -> dict[str, Any]:
    bounds = asdict(row.bounds)
    return {
        "about": row.about,
        "unit": row.shown.unit,
        "value": row.value.as_json(),
        "bounds": {key: value for key, value in bounds.items() if value is not None},
        "within": row.answer.value,
    }
