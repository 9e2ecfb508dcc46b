"""What the runs of a study show: its comparisons, the verdicts on its findings, its figures."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from redtail import backends, facts
from redtail.errors import SpecError
from redtail.experiment import toml_key
from redtail.files import path_of
from redtail.inputs.code import Allowed
from redtail.progress import Progress
from redtail.store.folders import ExperimentStore
from redtail.store.parquet import parquet_bytes
from redtail.store.writing import explain_write_errors, replace_file
from redtail.studies import definition
from redtail.studies.agreement import refuse_unknown
from redtail.studies.definition import EXPECTED, FigureOf, Finding, Kernel, Setting, Study
from redtail.studies.grid import Grid
from redtail.studies.runner import ComparisonResult, Request, Trust, Work
from redtail.studies.verdicts import Verdict, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def grids(study: Study, comparisons: Mapping[str, ComparisonResult]) -> dict[str, Grid]:
    """Return what checks, tables and figures look at: the results by queue and load.

    Args:
        study: its views and measures are used.
        comparisons: the results by comparison.

    Returns:
        A grid for each comparison and view whose comparison has results.
    """
    measures = {each.name: (each.formula, each.shown) for each in study.measures}
    found = {}
    for view in study.all_views:
        if view.comparison in comparisons:
            of = comparisons[view.comparison]
            found[view.name] = Grid(
                of.results,
                queue=view.queue,
                load=view.load,
                variants=[variant.label for variant in of.comparison.variants],
                where=view.where,
                measures=measures,
            )
    return found


@dataclass(frozen=True)
class UnderSetting:
    """Findings with another set-up than the paper's, or made by a kernel.

    Attributes:
        name: its name in tables.
        setting: what was put in place; None for the paper's own set-up.
        grids: the results by comparison or view.
        verdicts: one for each finding that is tried so.
        made_by: what made the runs; empty for the simulator.
    """

    name: str
    setting: Setting | Kernel | None
    grids: Mapping[str, Grid]
    verdicts: tuple[Verdict, ...]
    made_by: str = ""


@dataclass(frozen=True)
class StudyResults:
    """The reproduction of a study.

    Attributes:
        study: the study.
        scale: the name of the scale it was run at.
        comparisons: the results by comparison.
        grids: the results by comparison or view.
        verdicts: one for each finding, in the paper's order.
        now: the headline findings, or all, under each setting, the paper's own first; empty when
            not asked for.
        kernel: all findings under the paper's set-up, under one that a kernel can run, and by the
            kernel; empty when not asked for.
        folder: where everything is kept.
        run_count: runs it took, those on the way to a value looked for included.
        reused: how many of these were in the store already.
        packets: packets that the other runs sent over their bottleneck.
    """

    study: Study
    scale: str
    comparisons: Mapping[str, ComparisonResult]
    grids: Mapping[str, Grid]
    verdicts: tuple[Verdict, ...]
    now: tuple[UnderSetting, ...]
    kernel: tuple[UnderSetting, ...]
    folder: Path
    run_count: int
    reused: int
    packets: int

    @property
    def changed(self) -> list[tuple[str, str, str]]:
        """The findings whose verdict is not the expected one: id, expected, found."""
        expected = self.study.expected.get(self.scale, {})
        return [
            (verdict.finding.id, expected.get(verdict.finding.id, "nothing"), verdict.judgement)
            for verdict in self.verdicts
            if expected.get(verdict.finding.id) != verdict.judgement
        ]

    def expect(self) -> Path:
        """Make these verdicts the expected ones at this scale; those of other scales stay.

        Returns:
            The file of the study that has them.

        Raises:
            StoreError: it cannot be written.
        """
        verdicts = {verdict.finding.id: verdict.judgement for verdict in self.verdicts}
        expected = {**self.study.expected, self.scale: verdicts}
        path = self.study.folder / EXPECTED
        lines = [
            "# The verdict on each finding; `redtail reproduce PAPER --check` fails when one "
            "changes.",
            "# `redtail reproduce PAPER --write-expected` writes this file.",
        ]
        for scale, of_scale in expected.items():
            lines.append(f"[{toml_key(scale)}]")
            lines += [f'{toml_key(name)} = "{verdict}"' for name, verdict in of_scale.items()]
        with explain_write_errors(path):
            replace_file(path, ("\n".join(lines) + "\n").encode())
        return path

    def write(self) -> list[Path]:
        """Write figures, verdicts, report and data; returns their paths, the report first.

        Raises:
            StoreError: the folder cannot be written.
        """
        from redtail.display import plots
        from redtail.studies import report

        store = ExperimentStore(self.folder.parent, self.folder.name)
        drawn = []
        for figure in self.study.figures:
            if figure.comparison in self.grids:
                found = self.figure(figure)
                drawn += plots.save([(figure.name, found)], self.folder / "figures")
        written = [
            store.write("report.md", report.markdown(self).encode()),
            store.write("verdicts.json", (report.to_json(self) + "\n").encode()),
        ]
        for name, comparison in self.comparisons.items():
            for rows in ("cases", "replications"):
                data = parquet_bytes(comparison.results.to_arrow(rows))
                written.append(store.write(f"{name}-{rows}.parquet", data))
        return written + drawn

    def figure(self, wanted: FigureOf) -> Figure:
        """Draw one of the paper's figures."""
        from redtail.display import plots

        grid = self.grids[wanted.comparison]
        queues = tuple(map(grid.queue, wanted.queues)) or grid.queues
        if wanted.modern:
            queues = (*queues, *modern(self, wanted.comparison))
        loads = tuple(map(grid.named.find, wanted.loads))
        results = grid.subset(wanted.metrics, queues, loads)
        about = grid.describe(next(iter(wanted.metrics), ""))
        published, source = self._published(wanted)
        return plots.paper_figure(results, wanted.draws, about, published, source)

    def _published(self, wanted: FigureOf) -> tuple[dict[tuple[str, float], float], str]:
        """Return others' numbers of what a figure shows, and their source.

        They are by queue and by load, in the unit of the figure's axis: that of its first load.
        """
        grid = self.grids[wanted.comparison]
        loads = [grid.named.find(name) for name in wanted.loads] or list(grid.loads)
        found: dict[tuple[str, float], float] = {}
        sources: dict[str, None] = {}
        for table in self.study.tables:
            if table.comparison != wanted.comparison:
                continue
            for metric in set(wanted.metrics) & set(table.metrics):
                for row in table.rows:
                    value = table.published(row)[table.metrics.index(metric)]
                    at = grid.named.find(row.load)
                    if at in loads and not math.isnan(value):
                        found[grid.queue(row.queue), grid.named.number(at, loads[0])] = value
                        sources[table.source] = None
        return found, "; ".join(sources)


def modern(done: StudyResults, view: str) -> tuple[str, ...]:
    """Return the queues of today among those a view shows."""
    comparisons = {each.name: each.comparison for each in done.study.all_views}
    comparison = done.comparisons[comparisons[view]].comparison
    labels = {variant.label for variant in comparison.variants if variant.modern}
    return tuple(label for label in done.grids[view].variants if label in labels)


def run(
    study: Study | str | os.PathLike[str],
    *,
    scale: str = "quick",
    then_and_now: bool = False,
    backend: str | None = None,
    out: str | os.PathLike[str] = "runs",
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    allow_code: Allowed = (),
) -> StudyResults:
    """Run a study and judge its findings; nothing but the runs is written.

    Args:
        study: the study, one of `names()`, or the folder of one of your own.
        scale: one of the study's scales.
        then_and_now: whether the headline findings are tried under each of the study's settings
            as well, such as a TCP of today.
        backend: a kernel that repeats what it can, such as "linux", besides the simulator.
        out: the folder in which one for this study and scale is made.
        jobs: number of runs at the same time; by default one per processor.
        progress: called after each finished run.
        allow_code: files and folders outside the study's own whose code may be executed, as for
            `redtail.run`.

    Raises:
        SpecError: there is no such study or scale, or the kernel cannot run it.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    if not isinstance(study, Study):
        study = definition.load(study)
    if study.subject is not None:
        raise SpecError(
            f"{study.name} is a suite, which `redtail evaluate {study.name}` runs; accepted: a "
            "study without a table [subject]"
        )
    require_scale(study, scale)
    if then_and_now and not (study.settings and study.headlines):
        raise SpecError(
            f"{study.name} has no [[setting]] in study.toml, or no finding with headline = true: "
            "there is no then and now to show"
        )
    if backend is not None:
        require_kernel(study, scale, backend)
    work = Work(path_of(out) / study.name / scale, jobs, progress)
    trust = Trust(study.folder, allow_code)

    def requested(
        names: Collection[str] | None, setting: Setting | Kernel | None, *, variants: bool = True
    ) -> list[Request]:
        """Return the comparisons of this scale to be run: those of some names, or all."""
        return [
            Request(comparison, of_scale, setting, trust, variants)
            for comparison in study.comparisons
            if (of_scale := comparison.scale(scale)) is not None
            and (names is None or comparison.name in names)
        ]

    own = requested(None, None)
    refuse_unknown(
        study, {each.comparison.name: [file.plan for file in each.files] for each in own}
    )
    settings = study.settings if then_and_now else ()
    modern = [requested(_tried(study, setting), setting) for setting in settings]
    of_kernel = study.kernel.each if backend is not None and study.kernel else ()
    simulated, measured = (requested(of_kernel, study.kernel, variants=False) for _ in range(2))
    if backend is not None:
        files = [file.plan for each in measured for file in each.files]
        backends.require_able(backends.find(backend), files)
    work.run([*own, *(each for part in modern for each in part), *simulated])
    if backend is not None:
        work.run(measured, backend)

    def under(
        name: str,
        setting: Setting | Kernel | None,
        part: Sequence[Request],
        findings: Sequence[Finding],
    ) -> UnderSetting:
        results = {each.comparison.name: each.result(work.out) for each in part}
        found = grids(study, results)
        judged = tuple(judge(finding, found) for finding in findings)
        made_by = {each.results.made_by for each in results.values()}
        return UnderSetting(name, setting, found, judged, ", ".join(sorted(made_by)))

    done = {each.comparison.name: each.result(work.out) for each in own}
    seen = grids(study, done)
    verdicts = tuple(judge(finding, seen) for finding in study.findings)
    now, kernel = [], []
    if settings:
        tried = [finding for setting in settings for finding in study.tried(setting)]
        shown = tuple(verdict for verdict in verdicts if verdict.finding in tried)
        now.append(UnderSetting("then", None, seen, shown))
    for setting, part in zip(settings, modern, strict=True):
        now.append(under(setting.name, setting, part, study.tried(setting)))
    if backend is not None:
        kernel = [
            UnderSetting("simulation", None, seen, verdicts),
            under("simulation, the kernel's set-up", study.kernel, simulated, study.findings),
            under(f"kernel ({backend})", study.kernel, measured, study.findings),
        ]
    state = work.counting.state
    return StudyResults(
        study=study,
        scale=scale,
        comparisons=done,
        grids=seen,
        verdicts=verdicts,
        now=tuple(now),
        kernel=tuple(kernel),
        folder=work.out,
        run_count=state.done,
        reused=state.reused,
        packets=state.packets,
    )


def require_scale(study: Study, scale: str) -> None:
    """Refuse a scale that a study does not have.

    Raises:
        SpecError: the text says which it has.
    """
    if scale not in study.scales:
        accepted = ", ".join(study.scales) or "none, as study.toml has no [[comparison.scale]]"
        raise SpecError(f"{study.name} has no scale {scale!r}; accepted: {accepted}")


def require_kernel(study: Study, scale: str, backend: str) -> None:
    """Refuse a backend that measures nothing of a study.

    Raises:
        SpecError: the text says which studies have something for a kernel.
    """
    if backend == backends.DEFAULT:
        raise SpecError(
            f"backend = {backend!r}: the simulator reproduces every study; accepted: a backend "
            "with a kernel, such as 'linux', or none",
            key="backend",
        )
    of = study.kernel.each if study.kernel else ()
    if not any(each.name in of and each.scale(scale) for each in study.comparisons):
        studies = (definition.load(name) for name in definition.names())
        able = [of.name for of in studies if of.kernel is not None and of.subject is None]
        raise SpecError(
            f"backend = {backend!r}: {study.name} has no [kernel] in study.toml that says what a "
            f"kernel can repeat at scale {scale}; accepted: {', '.join(able)}",
            key="backend",
        )


def _tried(study: Study, setting: Setting) -> set[str]:
    """Return the comparisons that the findings under a setting look at, or the numbers shown."""
    of = {view.name: view.comparison for view in study.all_views}
    named = {each.comparison for each in study.then_and_now}
    findings = study.tried(setting)
    named |= {each.comparison for finding in findings for each in finding.all_checks}
    return {of[name] for name in named}


def versions() -> dict[str, str]:
    """Return what made the results: redtail's version and the hash of the engine's sources."""
    return {"redtail_version": facts.version(), "code_version": facts.code_version()}
