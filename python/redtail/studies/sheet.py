"""What a suite found, as pages: the compliance sheet, the score cards, the league table; and JSON.

The sheet says section by section what was run, what not and why, and has the numbers. A card has
the figures and ranks of one subject. The league has a column for each criterion.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from redtail import escape
from redtail import metrics as names
from redtail.analysis import phases
from redtail.analysis.digits import shown
from redtail.analysis.paired import as_far_as_known, why_no_interval, why_unjudged
from redtail.analysis.results import Results
from redtail.analysis.stats import Estimate, paired_difference
from redtail.errors import RedtailError
from redtail.metrics import Metric
from redtail.store.folders import ExperimentStore
from redtail.store.writing import explain_write_errors, replace_file
from redtail.studies import definition, league, pages
from redtail.studies.definition import Section
from redtail.studies.evaluation import Evaluation
from redtail.studies.grid import Grid
from redtail.studies.league import Column, Entry, Ranked
from redtail.studies.report import drawn, lines_of_table, with_legend
from redtail.studies.results import versions

if TYPE_CHECKING:
    from rich.table import Table

JSON_FORMAT = 1
"""Version of what `redtail evaluate --json` prints."""

_OVERVIEW = "overview"
"""The name of the figure with the delay-goodput planes of all comparisons."""

RANKS = (
    "in brackets the rank: one more than the number of subjects that are better; behind a dash the "
    "last rank that ties leave open"
)
"""What ranks are, for the terminal."""

_MARKS = {"higher": "↑", "lower": "↓"}

_LEGEND = (
    "Means over replications ± half-width of the 95 % interval (±?: it has none). ↑ and ↓: higher "
    "or lower than the control, by a paired test at 5 %, corrected for all numbers of a subject in "
    "the table; in most runs: the number depends on rare events, so the size of the difference is "
    "not known. Empty: a run has no such number."
)

_RANKS = (
    "In brackets the rank: one more than the number of subjects that are better, and behind a dash "
    "the last rank that ties leave open. One subject is better than another if the mean of their "
    "paired differences is above what matters, at 5 % for all pairs of a column at once (Holm). "
    "Rows are in the order of the mean rank, that of the middle of the bounds. It weighs all "
    "columns alike, and is no verdict. Subjects that are equal in every replication of every "
    "column share a row. !: not compared with all, because an estimate has one observation or is "
    "censored."
)


def listing() -> str:
    """Return the suites that are built in, with their scales."""
    lines = []
    for name in definition.suites():
        study = definition.load(name)
        lines += [name, f"  {study.title}", f"  {len(study.sections)} sections"]
        if study.subject is not None:
            usual = ", ".join(study.subject.usual)
            lines += [f"  --{study.subject.kind}, by default {usual}; beside {_control(study)}"]
        scales = {of.name: of for each in study.comparisons for of in each.scales}
        lines += [f"  --scale {', '.join(scales)}"]
    return "\n".join(lines) or "no suite is built in; `redtail evaluate FOLDER` runs one of yours"


def _control(study: definition.Study) -> str:
    return "" if study.subject is None else study.subject.control


def write(done: Evaluation, folder: Path | None = None) -> list[Path]:
    """Write the sheet, the league, a card for each subject, and all of it as JSON.

    Args:
        done: what was found.
        folder: a further folder that gets the pages, to be kept under version control.

    Returns:
        The paths, the sheet first.

    Raises:
        StoreError: a folder cannot be written.
    """
    store = ExperimentStore(done.folder.parent, done.folder.name)
    texts = {"sheet.md": sheet(done), "league.md": league_page(done)}
    files = {label: re.sub(r"[^\w.-]+", "-", label) or "subject" for label in done.labels}
    with explain_write_errors(done.folder):
        (done.folder / "cards").mkdir(parents=True, exist_ok=True)
    for each in done.subjects:
        figures = _draw(done, each.label, done.folder / "cards" / files[each.label])
        name = f"cards/{files[each.label]}.md"
        texts[name] = card(done, each.label, [f"{files[each.label]}/{path}" for path in figures])
    written = [store.write(name, text.encode()) for name, text in texts.items()]
    written.append(store.write("sheet.json", (to_json(done) + "\n").encode()))
    if folder is not None:
        for name in ("sheet.md", "league.md"):
            to = folder / f"{done.study.name}-{name}"
            with explain_write_errors(to):
                folder.mkdir(parents=True, exist_ok=True)
                replace_file(to, texts[name].encode())
            written.append(to)
    return written


def _draw(done: Evaluation, label: str, folder: Path) -> list[str]:
    """Draw the suite's figures of one subject beside the control; return their names."""
    from redtail.display import plots

    names_drawn = []
    everything = plots.overview(list(_planes(done, label)))
    if everything is not None:
        plots.save([(_OVERVIEW, everything)], folder)
        names_drawn.append(f"{_OVERVIEW}.png")
    for figure in done.study.figures:
        grid = done.grids.get(figure.comparison)
        if grid is None or label not in grid.queues:
            continue
        loads = tuple(map(grid.named.find, figure.loads))
        results = grid.subset(figure.metrics, (done.subject.control, label), loads)
        about = grid.describe(next(iter(figure.metrics), ""))
        try:
            made = plots.paper_figure(results, figure.draws, about)
        except RedtailError:
            continue  # this subject has nothing of it, which the sheet shows
        paths = plots.save([(figure.name, made)], folder)
        names_drawn += [path.name for path in paths if path.suffix == ".png"]
    return names_drawn


def _planes(done: Evaluation, label: str) -> Iterator[tuple[str, Results]]:
    """Yield the runs of a subject and of the control, by section and comparison.

    Of several loads these are the first and the last.
    """
    for section in done.sections:
        for name in section.comparisons:
            grid = done.grids.get(name)
            if grid is None or label not in grid.queues:
                continue
            for load in dict.fromkeys((grid.loads[0], grid.loads[-1])):
                labels = (done.subject.control, label)
                if all(grid.has(each, load) for each in labels):
                    at = f", {grid.at(load)}" if len(grid.loads) > 1 else ""
                    yield f"{section.id} {name}{at}", grid.subset((), labels, (load,))


def head(done: Evaluation, what: str) -> list[str]:
    """Return the head of a page: what it is of, when and by what it was made."""
    made = versions()
    today = datetime.datetime.now(datetime.UTC).date()
    kind = "queues" if done.subject.kind == "queue" else "congestion controls"
    return [
        f"# {_md(done.study.title)}: {what}",
        "",
        f"Made on {today} with redtail {made['redtail_version']} (engine "
        f"{made['code_version'][:12]}) at scale {_md(done.scale)}: {done.run_count} runs of "
        f"{len(done.labels)} {kind}, of which {_md(done.subject.control)} is the control.",
        "",
    ]


def sheet(done: Evaluation) -> str:
    """Return the compliance sheet in Markdown."""
    lines = [*head(done, "compliance sheet"), "## Sections", ""]
    rows = (
        (_md(each.id), _md(each.title), each.requirement, done.state(each))
        for each in done.sections
    )
    lines += [*pages.table(("section", "title", "requirement", "state"), rows), ""]
    lines += [f"{_LEGEND}", ""]
    for section in done.sections:
        lines += _section(done, section)
    lines += ["## Parameters", "", *_parameters(done)]
    return "\n".join(lines)


def _section(done: Evaluation, section: Section) -> list[str]:
    lines = [f"## {_md(section.id)} {_md(section.title)}", ""]
    lines += [f"Requirement: {section.requirement}. State: {done.state(section)}.", ""]
    lines += [escape.paragraph(section.about), ""] if section.about else []
    lines += [f"Not run: {_md(section.not_run)}", ""] if section.not_run else []
    for name in section.comparisons:
        if name not in done.grids:
            lines += [f"**{_md(name)}** is not run at scale {_md(done.scale)}.", ""]
            continue
        lines += [f"**{_md(name)}**: {_md(_about(done, name))}", ""]
        lines += [*_numbers(done, name, section.measures), ""]
        absent = [f"- {line}" for line in _absent(done, name)]
        lines += [*absent, ""] if absent else []
        lines += _published(done, name)
        lines += _kernel(done, name, section.measures)
    return lines


def _published(done: Evaluation, view: str) -> list[str]:
    """Return the tables of a view: the numbers of subjects for which others have published some."""
    grid = done.grids[view]
    lines = []
    for table in (table for table in done.study.tables if table.comparison == view):
        rows = tuple(
            row
            for row in table.rows
            if row.queue in done.labels and grid.has(row.queue, grid.named.find(row.load))
        )
        if rows:
            numbers = lines_of_table(grid, replace(table, rows=rows))
            lines += [escape.paragraph(table.caption), "", *numbers, ""]
    return lines


def _about(done: Evaluation, view: str) -> str:
    of = _comparison(done, view)
    return next(each.about for each in done.study.comparisons if each.name == of)


def _comparison(done: Evaluation, view: str) -> str:
    return next(each.comparison for each in done.study.all_views if each.name == view)


def _absent(done: Evaluation, view: str) -> Iterator[str]:
    """Yield why a subject is not run, and what to know of one that is."""
    for label, placed in done.placed.get(_comparison(done, view), {}).items():
        for why in dict.fromkeys(placed.unfit.values()):
            part = "not run in part" if placed.fitted else "not run"
            yield f"{_md(label)}: {part}: {_md(why)}"
        for text in placed.warnings:
            yield f"{_md(label)}: {_md(text)}"
    yield from map(_md, done.failed.get(_comparison(done, view), ()))


def _present(grid: Grid, measures: Sequence[str]) -> list[str]:
    """Return the measures that a view has."""
    found = []
    for each in measures:
        try:
            values = _values(grid, each)
        except RedtailError:
            continue
        if not all(map(math.isnan, values)):
            found.append(each)
    return found


def _of_phases(grid: Grid, present: Sequence[str]) -> dict[int, list[str]]:
    """Return those of some measures that phases have, by the number of the phase."""
    return {
        number: own
        for number in grid.results.phases
        if (own := _present(grid, [phases.prefix(number) + each for each in present]))
    }


def _values(grid: Grid, measure: str) -> list[float]:
    """Return the values of a measure in all runs."""
    return [
        value
        for queue in grid.queues
        for load in grid.loads
        if grid.has(queue, load)
        for value in grid.values(measure.rpartition(":")[2], queue, load)
    ]


def _numbers(done: Evaluation, view: str, measures: Sequence[str]) -> list[str]:
    """Return the numbers of all subjects at all loads, then those of each phase."""
    grid = done.grids[view]
    present = _present(grid, measures)
    lines = _table(done, grid, {"": present})
    of_phases = _of_phases(grid, present)
    if of_phases:
        parts = {_phase(done, view, number): own for number, own in of_phases.items()}
        lines += ["", "By phase:", "", *_table(done, grid, parts)]
    return with_legend(lines)


def _phase(done: Evaluation, view: str, number: int) -> str:
    """Return a phase in words, with its times where they are those of all files."""
    bounds = done.phases.get(_comparison(done, view), ())
    times = f", {bounds[number - 1]} to {bounds[number]}" if number < len(bounds) else ""
    return f"phase {number}{times}"


def _table(done: Evaluation, grid: Grid, parts: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a table with the numbers of all subjects at all loads.

    Args:
        done: what was found.
        grid: the results.
        parts: the metrics of each part of a run, the whole or its phases, by its name.
    """
    everything = [each for part in parts.values() for each in part]
    if not everything:
        return ["No run has one of the numbers of this section."]
    marked = _marked(done, grid, everything)
    columns = list(dict.fromkeys(re.sub(r"^phase\d+\.", "", each) for each in everything))
    abouts = {
        column: _readable(grid, [each for each in everything if each.endswith(column)])
        for column in columns
    }
    several, phased = len(grid.loads) > 1, "" not in parts
    rows = []
    for load in grid.loads:
        for part, metrics in parts.items():
            own = {re.sub(r"^phase\d+\.", "", each): each for each in metrics}
            for label in done.labels:
                if not grid.has(label, load):
                    continue
                cells = [_md(grid.at(load))] if several else []
                cells += [_md(part)] if phased else []
                cells.append(_md(label))
                for column in columns:
                    cells.append("")
                    if (metric := own.get(column)) is not None:
                        found = grid.estimate(metric, label, load)
                        mark = _mark(marked.get((metric, label, load), ""))
                        text = "" if found.n == 0 else shown(found, abouts[column].scale)
                        cells[-1] = f"{text}{mark}"
                rows.append(cells)
    heads = [*([""] if several else []), *(["phase"] if phased else []), done.subject.kind]
    heads += [_md(_head(column, abouts[column])) for column in columns]
    return pages.table(heads, rows)


def _marked(
    done: Evaluation, grid: Grid, measures: Sequence[str]
) -> dict[tuple[str, str, float], str]:
    """Judge all subjects in the measures of a table, for which the test is corrected together."""
    plain = [each for each in measures if ":" not in each]
    return league.against(grid, plain, done.subject.control)


def _mark(words: str) -> str:
    """Return the sign of a difference: "↑", "↓ in most runs", or nothing."""
    side, _, rest = words.partition(" ")
    return f" {_MARKS[side]}{f' {rest}' if rest else ''}" if side in _MARKS else ""


def _readable(grid: Grid, metrics: Sequence[str]) -> Metric:
    """Return how metrics that differ in the phase alone are shown."""
    values = [value for metric in metrics for value in _values(grid, metric)]
    return names.readable(grid.describe(metrics[0]), values)


def _head(metric: str, about: Metric) -> str:
    of = names.prefix(metric.rpartition(":")[2])
    return f"{of} {about.short}{_unit(about)}".lstrip()


def _unit(about: Metric) -> str:
    """Return the unit in brackets behind a space; nothing without one."""
    return f" ({about.shown_unit})" if about.shown_unit else ""


def _kernel(done: Evaluation, view: str, measures: Sequence[str]) -> list[str]:
    """Return the numbers of a kernel beside simulations of the same set-up."""
    kernel = done.kernel
    if kernel is None:
        return []
    if view not in kernel.measured:
        asked = done.study.kernel
        why = asked.not_run.get(_comparison(done, view)) if asked is not None else None
        return [f"Not run by a kernel{f': {_md(why)}' if why else '.'}", ""]
    simulated, measured = kernel.simulated[view], kernel.measured[view]
    present = [each for each in _present(measured, measures) if ":" not in each]
    lines = [f"By a kernel ({_md(kernel.made_by)}): {_md(kernel.about)}", ""]
    rows = []
    abouts = {metric: _readable(measured, [metric]) for metric in present}
    for load in measured.loads:
        for label in done.labels:
            if not (measured.has(label, load) and simulated.has(label, load)):
                continue
            cells = [_md(measured.at(load)), _md(label)]
            for metric in present:
                for grid in (simulated, measured):
                    found = grid.estimate(metric, label, load)
                    cells.append("" if found.n == 0 else shown(found, abouts[metric].scale))
                gap = _gap(simulated, measured, metric, label, load)
                cells.append("" if gap.n == 0 else shown(gap, abouts[metric].scale))
            rows.append(cells)
    heads = [
        f"{_md(_head(metric, abouts[metric]))}, {by}"
        for metric in present
        for by in ("simulated", "kernel", "difference")
    ]
    if present:
        lines += [*with_legend(pages.table(("", done.subject.kind, *heads), rows)), ""]
    else:
        lines += ["No run of it has one of the numbers.", ""]
    of = _comparison(done, view)
    absent = kernel.absent.get(of, {})
    told = [f"{label}: not run by the kernel: {why}" for label, why in absent.items()]
    told += kernel.failed.get(of, ())
    return [*lines, *(f"- {_md(text)}" for text in told), ""] if told else lines


def _gap(simulated: Grid, measured: Grid, metric: str, label: str, load: float) -> Estimate:
    """Return by how much a kernel's number is larger than the simulated one.

    A replication has the same seed in both, so they are compared one by one.
    """
    one, other = (grid.case(label, load) for grid in (simulated, measured))
    first, second = (
        league.by_replication(grid, metric, label, (load,)) for grid in (simulated, measured)
    )
    shared = first.keys() & second.keys()
    found = paired_difference([second[n] for n in shared], [first[n] for n in shared])
    refused = why_no_interval(metric, one, other, found.n)
    return as_far_as_known(found, refused, why_unjudged(metric, one, other))


def _parameters(done: Evaluation, only: str | None = None) -> list[str]:
    """Return each parameter that is not the default, with where and why it was set."""
    lines = [
        "Each parameter that is not the default of its kind, and why. All others are defaults "
        f"(`redtail list {'queues' if done.subject.kind == 'queue' else 'tcp'}`).",
        "",
    ]
    rows = []
    for each in done.subjects:
        if only not in (None, each.label):
            continue
        where: dict[tuple[str, str], dict[str, None]] = {}
        for comparison, of in done.placed.items():
            for fitted in of[each.label].fitted.values():
                for name, why in fitted.set.items():
                    where.setdefault((name, why), {})[comparison] = None
        for (name, why), comparisons in where.items():
            rows.append((_md(each.label), f"`{name}`", _md(why), _md(", ".join(comparisons))))
        if not where:
            rows.append((_md(each.label), "", "all are defaults", ""))
    return [*lines, *pages.table((done.subject.kind, "parameter", "set to", "in"), rows), ""]


def league_page(done: Evaluation) -> str:
    """Return the league in Markdown."""
    return "\n".join([*head(done, "league"), *league_lines(done)]) + "\n"


def league_lines(done: Evaluation) -> list[str]:
    """Return the league table and its legend in Markdown."""
    if not done.columns:
        return ["No criterion was run."]
    lines = pages.table(
        ("", done.subject.kind, *(_md(_title(each)) for each in done.columns), "mean rank"),
        (map(_md, row) for row in league_rows(done)),
    )
    about = (
        f"- {_md(_title(each))}: {_md(each.criterion.title)}, in {_md(each.criterion.comparison)}; "
        f"{each.criterion.better} is better; what matters is {_md(each.criterion.matters)}"
        for each in done.columns
    )
    return with_legend([*lines, "", *about, "", _RANKS])


def _title(of: Column) -> str:
    return f"{of.criterion.name}{_unit(_shown_as(of))}"


def _shown_as(of: Column) -> Metric:
    values = (value for each in of.ranked.values() for value in each.values.values())
    return names.readable(of.about, values)


def league_rows(done: Evaluation) -> list[list[str]]:
    """Return the rows of the league, as texts: place, labels, a cell for each column, mean rank."""
    places = [entry.place for entry in done.entries]
    rows = []
    for entry in done.entries:
        equal = "=" if places.count(entry.place) > 1 or len(entry.labels) > 1 else ""
        rows.append(
            [
                "–" if entry.place is None else f"{entry.place}{equal}",
                ", ".join(entry.labels),
                *(_cell(each, entry) for each in done.columns),
                "–" if math.isnan(entry.mean_rank) else f"{entry.mean_rank:.1f}",
            ]
        )
    return rows


def _cell(of: Column, entry: Entry) -> str:
    label = entry.labels[0]
    if label not in of.ranked:
        return of.absent.get(label, "")
    return _ranked(of.ranked[label], _shown_as(of))


def card(done: Evaluation, label: str, figures: Sequence[str] = ()) -> str:
    """Return the score card of a subject in Markdown.

    Args:
        done: what was found.
        label: the subject's label.
        figures: its figures, as the page names them.
    """
    lines = head(done, f"score card of {_md(label)}")
    rows = []
    for each in done.columns:
        about = _shown_as(each)
        cells = [_md(f"{each.criterion.title}{_unit(about)}")]
        for of in (label, done.subject.control):
            found = each.ranked.get(of)
            cells.append(each.absent.get(of, "") if found is None else _ranked(found, about))
        rows.append((*cells, f"{each.criterion.better} is better", str(len(each.ranked))))
    heads = ("", _md(label), f"{_md(done.subject.control)} (control)", "", "of")
    if rows:
        lines += [*pages.table(heads, rows), "", "In brackets the rank, and how far ties leave it "]
        lines[-1] += "open; `of` is the number of subjects that have one."
        lines.append("")
    captions = {f"{each.name}.png": each.caption for each in done.study.figures}
    captions.setdefault(
        f"{_OVERVIEW}.png",
        "Goodput against queueing delay in all comparisons: a point per run, median and ellipse",
    )
    for path in figures:
        caption = captions.get(path.rpartition("/")[2], "")
        lines += [f"![{_md(caption)}]({quote(path)})", "", escape.paragraph(caption), ""]
    lines += ["## Sections", ""]
    states = ((_md(each.id), _md(each.title), _ran(done, each, label)) for each in done.sections)
    lines += [*pages.table(("section", "title", "state"), states), ""]
    lines += ["## Parameters", "", *_parameters(done, label)]
    return "\n".join(lines)


def _ranked(found: Ranked, about: Metric) -> str:
    return f"{shown(found.value, about.scale)} ({found.rank}{'!' if found.unjudged else ''})"


def _ran(done: Evaluation, section: Section, label: str) -> str:
    """Return how much of a section was run of one subject."""
    ran = [name in done.grids and label in done.grids[name].queues for name in section.comparisons]
    if not any(ran):
        return "not run"
    return done.state(section) if all(ran) else "run in part"


def sections_table(done: Evaluation) -> Table:
    """Return the sections as a table for the terminal."""
    title = escape.title(f"{done.study.name}, scale {done.scale}: {done.study.title}")
    made = drawn(
        ("section", None), ("title", 3), ("requirement", None), ("state", None), ("not run", 5),
        title=title,
    )  # fmt: skip
    for each in done.sections:
        _add(made, (each.id, each.title, each.requirement, done.state(each), each.not_run))
    return made


def league_table(done: Evaluation) -> Table:
    """Return the league as a table for the terminal."""
    heads = ["", done.subject.kind, *map(_title, done.columns), "mean rank"]
    made = drawn(*((head.replace(" ", "\n"), None) for head in heads))
    for row in league_rows(done):
        _add(made, row)
    return made


def _add(made: Table, cells: Iterable[str]) -> None:
    made.add_row(*(escape.plain(escape.name(cell)) for cell in cells))


def as_json(done: Evaluation) -> dict[str, Any]:
    """Return everything as plain Python objects, numbers in SI units."""
    return {
        "format": JSON_FORMAT,
        "suite": done.study.name,
        "title": done.study.title,
        "scale": done.scale,
        **versions(),
        "kind": done.subject.kind,
        "control": done.subject.control,
        "subjects": [
            {
                "label": each.label,
                "given": each.given,
                "comparisons": {
                    name: {
                        "set": {file: dict(fit.set) for file, fit in of[each.label].fitted.items()},
                        "not_run": dict(of[each.label].unfit),
                        "warnings": list(of[each.label].warnings),
                    }
                    for name, of in done.placed.items()
                },
            }
            for each in done.subjects
        ],
        "sections": [
            {
                "id": each.id,
                "title": each.title,
                "requirement": each.requirement,
                "state": done.state(each),
                "about": each.about,
                "not_run": each.not_run,
                "numbers": [row for name in each.comparisons for row in _rows(done, name, each)],
            }
            for each in done.sections
        ],
        "league": {
            "criteria": [
                {
                    "name": each.criterion.name,
                    "title": each.criterion.title,
                    "metric": each.criterion.metric,
                    "better": each.criterion.better,
                    "matters": each.criterion.matters,
                    "ranks": {
                        label: {
                            "value": found.value.as_json(),
                            "rank": found.first,
                            "last_rank": found.last,
                            "not_compared": found.unjudged or None,
                        }
                        for label, found in each.ranked.items()
                    },
                    "absent": dict(each.absent),
                }
                for each in done.columns
            ],
            "rows": [
                {
                    "subjects": list(each.labels),
                    "place": each.place,
                    "mean_rank": None if math.isnan(each.mean_rank) else each.mean_rank,
                }
                for each in done.entries
            ],
        },
    }


def _rows(done: Evaluation, view: str, section: Section) -> Iterator[dict[str, Any]]:
    """Yield the numbers of a section in a view, the phases behind the whole."""
    sources: list[tuple[str | None, Grid | None]] = [(None, done.grids.get(view))]
    if done.kernel is not None:
        sources.append((done.kernel.made_by, done.kernel.measured.get(view)))
    for made_by, grid in sources:
        if grid is None:
            continue
        own = _present(grid, section.measures)
        of_phases = [each for part in _of_phases(grid, own).values() for each in part]
        metrics = [*own, *of_phases]
        # As in the sheet, where they have a table each.
        marked = _marked(done, grid, own) | _marked(done, grid, of_phases)
        for load in grid.loads:
            for label in done.labels:
                if grid.has(label, load):
                    for metric in metrics:
                        yield {
                            "comparison": view,
                            "load": grid.named.text(load),
                            "subject": label,
                            "metric": metric,
                            "unit": grid.describe(metric).unit,
                            "value": grid.estimate(metric, label, load).as_json(),
                            "against_control": marked.get((metric, label, load)),
                            "made_by": made_by,
                        }


def to_json(done: Evaluation) -> str:
    """Return everything as JSON."""
    return json.dumps(as_json(done), indent=2, ensure_ascii=False, allow_nan=False)


def _md(text: str) -> str:
    return escape.markdown(text)
