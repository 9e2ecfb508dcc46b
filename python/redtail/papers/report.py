"""The results of a reproduced paper: a table, a page, and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from redtail import escape
from redtail import metrics as names
from redtail.analysis.digits import shown
from redtail.analysis.stats import Estimate
from redtail.papers import definition
from redtail.papers.checks import Answer, Evidence
from redtail.papers.definition import Finding, Judgement, TableOf
from redtail.papers.grid import Grid
from redtail.papers.reproduction import (
    Reproduction,
    Tested,
    UnderSetting,
    Verdict,
    modern,
    versions,
)

if TYPE_CHECKING:
    from rich.table import Table

JSON_FORMAT = 2
"""Version of what `redtail reproduce --json` prints."""

_SIGNS = {Answer.YES: "+", Answer.NO: "−", Answer.UNDECIDED: "?"}
_SIGNS_TEXT = (
    "+: all numbers of a check are within their bounds; −: one or more are outside; ?: none is "
    "outside, and one or more are undecided, as the 95 % interval crosses a bound or is missing; "
    "shown is the number on which the sign depends, in brackets how many are within"
)


def listing() -> str:
    """Return the papers that can be reproduced, with their scales."""
    lines = []
    for name in definition.names():
        paper = definition.load(name)
        lines += [name, f"  {paper.title}", f"  {paper.authors}; {paper.published}"]
        lines += [f"  {len(paper.findings)} findings"]
        lines += [f"  --scale {scale}: {about}" for scale, about in paper.scales.items()]
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


def table(done: Reproduction) -> Table:
    """Return the verdicts as a table for the terminal."""
    from rich import box
    from rich.table import Table

    made = Table(
        title=escape.title(f"{done.paper.name}, scale {done.scale}: {done.paper.title}"),
        title_justify="left",
        caption=_SIGNS_TEXT,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    made.add_column("finding", no_wrap=True)
    made.add_column("what the paper found", ratio=5)
    made.add_column("verdict", no_wrap=True)
    made.add_column("evidence, and why", ratio=8)
    for verdict in done.verdicts:
        why = [] if verdict.judgement is Judgement.HOLDS else [verdict.why]
        cells = (
            escape.name(verdict.finding.id),
            escape.text(verdict.finding.statement),
            verdict.judgement.value,
            "\n".join(map(escape.name, [*(summary(tested) for tested in verdict.tested), *why])),
        )
        made.add_row(*map(escape.plain, cells))
    return made


def counts(done: Reproduction) -> str:
    """Return how many findings got which verdict, in words."""
    found = [verdict.judgement for verdict in done.verdicts]
    return ", ".join(f"{each}: {found.count(each)}" for each in Judgement if each in found)


def as_json(done: Reproduction) -> dict[str, Any]:
    """Return everything as plain Python objects."""
    return {
        "format": JSON_FORMAT,
        "paper": done.paper.name,
        "title": done.paper.title,
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
                        "study": tested.check.study,
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
                for label, values in study.solved.items()
            }
            for name, study in done.studies.items()
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
        "studies": {name: study.results.as_json() for name, study in done.studies.items()},
    }


def to_json(done: Reproduction) -> str:
    """Return everything as JSON."""
    return json.dumps(as_json(done), indent=2, ensure_ascii=False, allow_nan=False)


def markdown(done: Reproduction) -> str:
    """Return a page: verdicts, the numbers they follow from, and published numbers next to ours."""
    paper = done.paper
    made = versions()
    lines = [
        f"# {_md(paper.name)}: {_md(paper.title)}",
        "",
        escape.paragraph(f"{paper.authors}. {paper.published}."),
        "",
        f"Scale {_md(f'{done.scale} ({paper.scales[done.scale]})')}, {done.run_count} runs with "
        f"redtail {made['redtail_version']}. Means over replications ± half-width of the 95 % "
        "interval. "
        + (
            "redtail's documentation says what the set-up is and what was assumed: "
            f"{_md(paper.about)}."
            if paper.about
            else f"The set-up is in {_md(paper.folder.name)}/paper.toml and the files it names."
        ),
        "",
        "## Verdicts",
        "",
        f"{counts(done)}.",
        "",
        *verdict_lines(done),
        "",
        "## Figures",
        "",
    ]
    lines += figure_lines(done, "figures/")
    for table in paper.tables:
        lines += [f"## {_md(table.caption)}", "", *table_lines(done, table), ""]
    if done.now:
        lines += ["## Then and now", "", *now_lines(done), ""]
    if done.kernel:
        lines += ["## With a kernel", "", *kernel_lines(done), ""]
    lines += ["## Numbers", ""]
    for verdict in done.verdicts:
        if verdict.tested:
            lines += [f"### {_md(verdict.finding.id)}: {verdict.judgement}", ""]
            lines += [
                escape.paragraph(verdict.finding.statement),
                "",
                "| | number | within |",
                "|---|---|---|",
            ]
            for tested in verdict.tested:
                for row in tested.evidence:
                    cells = (row.about, number(row), row.answer.value)
                    lines.append("| " + " | ".join(map(_md, cells)) + " |")
            lines.append("")
    for name, study in done.studies.items():
        for label, values in study.solved.items():
            at = done.grids[name].at
            found = ", ".join(f"{value} at {at(load)}" for load, value in values.items())
            lines += [escape.paragraph(f"{label} ({name}): {found}."), ""]
    return "\n".join(lines)


def verdict_lines(done: Reproduction) -> list[str]:
    """Return the table of verdicts in Markdown."""
    lines = ["| finding | | verdict | evidence, and why |", "|---|---|---|---|"]
    for verdict in done.verdicts:
        why = [] if verdict.judgement is Judgement.HOLDS else [verdict.why]
        evidence = "<br>".join(map(_md, [*(summary(tested) for tested in verdict.tested), *why]))
        lines.append(
            f"| {_md(verdict.finding.id)} | {_md(verdict.finding.statement)} "
            f"| {verdict.judgement.value} | {evidence} |"
        )
    return _with_legend([*lines, "", f"{_md(_SIGNS_TEXT)}."])


def _with_legend(lines: list[str]) -> list[str]:
    """Return lines of Markdown with the meaning of the star, if a number has one."""
    if not any("±?*" in line or "±?\\*" in line for line in lines):
        return lines
    return [*lines, "", "\\*: most replications have another value, so the mean describes none."]


def figure_lines(done: Reproduction, folder: str) -> list[str]:
    """Return the paper's figures in Markdown; `folder` is put in front of their names."""
    lines = []
    for figure in done.paper.figures:
        if figure.study in done.grids:
            file = quote(f"{folder}{figure.name}.png")
            about = escape.paragraph(figure.caption)
            lines += [f"![{_md(figure.caption)}]({file})", "", about, ""]
    return lines


def table_lines(done: Reproduction, table: TableOf) -> list[str]:
    """Return our numbers, with published ones in brackets, as a table in Markdown."""
    if table.study not in done.grids:
        return [f"This scale does not run {table.study}."]
    grid = done.grids[table.study]
    published = {
        (grid.named.find(load), grid.queue(queue)): values for load, queue, values in table.rows
    }
    queues = (*grid.queues, *(modern(done, table.study) if table.modern else ()))
    rows = list(published)
    if not rows or table.modern:
        loads = tuple(dict.fromkeys(load for load, _ in rows)) or grid.loads
        rows = [(load, queue) for load in loads for queue in queues if grid.has(queue, load)]
    lines = [f"In brackets: {_md(table.source)}.", ""] if table.source else []
    lines += _head(grid, table.metrics)
    for load, queue in rows:
        others = published.get((load, queue), ())
        lines.append(_line(grid, [grid.at(load), queue], load, queue, table.metrics, others))
    return _with_legend(lines)


def now_lines(done: Reproduction) -> list[str]:
    """Return the headline findings under each setting, and numbers under each, in Markdown."""
    if not done.now:
        return ["Not asked for: `--then-and-now` runs it."]
    lines = [*_side_by_side(done.now), ""]
    about = [
        escape.paragraph(f"{each.name}: {each.setting.about}") for each in done.now if each.setting
    ]
    lines += [f"{'; '.join(about)}. Then is the paper's own set-up.", ""]
    for wanted in done.paper.then_and_now:
        if not all(wanted.study in each.grids for each in done.now):
            lines += [f"This scale does not run {wanted.study}.", ""]
            continue
        lines += _head(done.now[0].grids[wanted.study], wanted.metrics, "setting")
        for each in done.now:
            grid = each.grids[wanted.study]
            queues = (*grid.queues, *modern(done, wanted.study))
            for load in map(grid.named.find, wanted.loads) if wanted.loads else grid.loads:
                for queue in queues:
                    if grid.has(queue, load):
                        first = [each.name, grid.at(load), queue]
                        lines.append(_line(grid, first, load, queue, wanted.metrics))
        lines.append("")
    return _with_legend(lines[:-1])


def now_table(done: Reproduction) -> Table:
    """Return the headline findings under each setting as a table for the terminal."""
    return _table_of(done.now)


def kernel_table(done: Reproduction) -> Table:
    """Return all findings, simulated and by a kernel, as a table for the terminal."""
    return _table_of(done.kernel)


def kernel_notes(done: Reproduction) -> list[str]:
    """Return what the columns of `kernel_table` mean."""
    _, simulated, measured = done.kernel
    about = simulated.setting.about if simulated.setting else ""
    return [
        f"simulation: the paper's set-up; {simulated.name}: {about}",
        f"{measured.name}: made by {measured.made_by}",
    ]


def kernel_lines(done: Reproduction) -> list[str]:
    """Return all findings, simulated and by a kernel, in Markdown, with the kernel's numbers."""
    if not done.kernel:
        return ["Not asked for: `--backend linux` runs it."]
    lines = [*_side_by_side(done.kernel), ""]
    lines += [f"{escape.paragraph(note)}." for note in kernel_notes(done)]
    lines.append("")
    lines += ["| finding | | simulated so | kernel |", "|---|---|---|---|"]
    for simulated, measured in zip(*(each.verdicts for each in done.kernel[1:]), strict=True):
        for ours, theirs in zip(_evidence(simulated), _evidence(measured), strict=False):
            cells = [simulated.finding.id, ours.about, number(ours), number(theirs)]
            lines.append("| " + " | ".join(map(_md, cells)) + " |")
    return lines


def _evidence(verdict: Verdict) -> list[Evidence]:
    return [row for tested in verdict.tested for row in tested.evidence]


def _side_by_side(columns: Sequence[UnderSetting]) -> list[str]:
    """Return the findings with the verdicts of each column, in Markdown."""
    names = [_md(each.name) for each in columns]
    lines = ["| finding | | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 2)]
    for finding, found in _by_finding(columns):
        cells = [_md(finding.id), _md(finding.statement), *found]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _table_of(columns: Sequence[UnderSetting]) -> Table:
    """Return the findings with the verdicts of each column, for the terminal."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    made.add_column("finding", no_wrap=True)
    for each in columns:
        made.add_column(escape.plain(escape.name(each.name)))
    for finding, found in _by_finding(columns):
        made.add_row(*(escape.plain(escape.name(cell)) for cell in (finding.id, *found)))
    return made


def _by_finding(columns: Sequence[UnderSetting]) -> Iterator[tuple[Finding, list[str]]]:
    """Yield each finding with its verdict in each column."""
    for verdicts in zip(*(each.verdicts for each in columns), strict=True):
        yield verdicts[0].finding, [verdict.judgement.value for verdict in verdicts]


def changes(done: Reproduction) -> list[str]:
    """Return a line for each finding whose verdict is not the expected one."""
    return [f"{name}: expected {expected}, found {found}" for name, expected, found in done.changed]


def _head(grid: Grid, metrics: Sequence[str], *first: str) -> list[str]:
    about = [grid.describe(metric) for metric in metrics]
    heads = [
        f"{name}{each.short}{f' ({each.shown_unit})' if each.shown_unit else ''}"
        for each, name in zip(about, _prefixes(metrics), strict=True)
    ]
    cells = [*first, "", "queue", *map(_md, heads)]
    return ["| " + " | ".join(cells) + " |", "|" + "---|" * len(cells)]


def _line(
    grid: Grid,
    first: list[str],
    load: float,
    queue: str,
    metrics: Sequence[str],
    others: Sequence[float] = (),
) -> str:
    cells = []
    for number_of, metric in enumerate(metrics):
        scale = grid.describe(metric).scale
        other = others[number_of] if others else math.nan
        other_text = "" if math.isnan(other) else f" [{other * scale:.4g}]"
        cells.append(f"{shown(grid.estimate(metric, queue, load), scale)}{other_text}")
    return "| " + " | ".join([*map(_md, first), *cells]) + " |"


def _md(text: str) -> str:
    """Return a text of the paper's files, or a name of the experiments', in Markdown."""
    return escape.markdown(text)


def _prefixes(metrics: Sequence[str]) -> list[str]:
    """Return the group or queue that each metric, or quantile of one, is of."""
    found = [names.prefix(metric.rpartition(":")[2]) for metric in metrics]
    return [f"{of} " if of else "" for of in found]


def _row(row: Evidence) -> dict[str, Any]:
    return {
        "about": row.about,
        "unit": row.shown.unit,
        "value": _estimate(row.value),
        "bounds": {
            key: value
            for key, value in (
                ("at_least", row.bounds.at_least),
                ("above", row.bounds.above),
                ("at_most", row.bounds.at_most),
            )
            if value is not None
        },
        "within": row.answer.value,
    }


def _estimate(found: Estimate) -> dict[str, float | int | str | None]:
    return found.as_json()
