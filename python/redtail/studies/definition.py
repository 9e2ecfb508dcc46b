"""What a study consists of, read from its folder: each class is a table, each field a key."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from redtail.analysis import tolerances
from redtail.analysis.tolerances import Tolerance, Tolerances
from redtail.errors import SpecError, StoreError
from redtail.files import path_of
from redtail.formula import Formula
from redtail.metrics import Metric, Own
from redtail.studies import checks
from redtail.studies.reading import Place, Placed, key, opened

FOLDER = Path(__file__).parent
"""Where the built-in studies are: a folder for each kind of them, and in it one for each study."""

_OF_METRICS = ("value", "difference", "quartiles", "heatmap")

FIGURES = (
    *("consecutive_loss", "queue_over_time", "response_times", "plane", "loss_events", "queue"),
    *("cdf", "tail", "fairness", "series"),
    *_OF_METRICS,
)
"""What a figure draws that is not a metric against the load: the kinds of `Results.figure`."""


class Judgement(StrEnum):
    """The verdict on a finding."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNTESTED = "not tested"


EXPECTED = "expected.toml"
"""The file with the verdicts that runs are compared with."""


def _require_files(files: tuple[Path, ...]) -> None:
    if not files:
        raise SpecError("= []; accepted: one experiment file or more", key="files")


@dataclass(frozen=True)
class Solve(Placed):
    """A value to be looked for.

    Attributes:
        key: the queue's parameter whose value is looked for.
        metric: the metric that is to be equal.
        like: the label of the queue it is to be equal to.
        within: how near is near enough, relatively.
        rounds: most experiments to make for it.
    """

    key: str
    metric: str
    like: str
    within: float
    rounds: int


@dataclass(frozen=True)
class Variant(Placed):
    """One of a comparison's queues with something changed, or another queue in its place.

    Attributes:
        label: what the variant is called.
        of: the label of the queue it comes from.
        queue: parameters that replace or add to that queue's; with a `kind`, a queue of its own.
        set: further overrides of the experiment.
        solve: the value to be looked for, if there is one.
        modern: whether it is a queue of today, shown next to the others.
        scales: the scales at which it is run; none stands for all.
    """

    label: str
    of: str
    queue: Mapping[str, Any] = key(default={})
    set: Mapping[str, Any] = key(default={})
    solve: Solve | None = None
    modern: bool = False
    scales: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scale(Placed):
    """How much is run.

    Attributes:
        name: what `--scale` calls it.
        about: it in words.
        set: overrides of the experiment files.
    """

    name: str = key(file_name=True)
    about: str = key()
    set: Mapping[str, Any] = key(default={})


@dataclass(frozen=True)
class View(Placed):
    """A way to look at the runs of a comparison.

    Attributes:
        name: what checks, tables and figures call it.
        comparison: the name of the comparison.
        queue: the dotted key of the factor compared.
        load: the dotted key of the factor it is compared over.
        where: the label or value of each further factor.
    """

    name: str
    comparison: str
    queue: str
    load: str
    where: Mapping[str, Any] = key(default={})


@dataclass(frozen=True)
class Comparison(Placed):
    """A comparison of queues over loads.

    Attributes:
        name: what checks call it.
        about: it in words.
        queue: the dotted key of the factor compared.
        load: the dotted key of the factor it is compared over.
        files: the experiment files, which together have all loads.
        scales: the scales.
        variants: further queues derived from those in the files.
        where: the label or value of each further factor.
        meant: parts of warnings of the files that are meant to be so, and are not shown.
        also: in a suite, further dotted keys that have the subject as well, such as the queue of
            the return link.
        subject: in a suite, parameters that each subject is given here, such as `ecn = true`. A
            subject that has no such parameter is not run here, and the sheet says so.
    """

    name: str = key(file_name=True)
    about: str = key()
    queue: str = key()
    load: str = key()
    files: tuple[Path, ...] = key()
    scales: tuple[Scale, ...] = key("scale", default=())
    variants: tuple[Variant, ...] = key("variant", default=())
    where: Mapping[str, Any] = key(default={})
    meant: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    subject: Mapping[str, Any] = key(default={})

    def __post_init__(self) -> None:
        """Refuse a comparison of nothing."""
        _require_files(self.files)

    def scale(self, name: str) -> Scale | None:
        """Return the scale of a name; None if it is not run at such a scale."""
        return next((each for each in self.scales if each.name == name), None)

    def unmeant(self, warnings: Iterable[str]) -> list[str]:
        """Return the warnings that are not meant to be so."""
        return [text for text in warnings if not any(map(text.count, self.meant))]

    def variants_at(self, scale: str) -> tuple[Variant, ...]:
        """Return the variants that are run at a scale."""
        return tuple(each for each in self.variants if not each.scales or scale in each.scales)

    @property
    def view(self) -> View:
        """What checks see when they name the comparison itself."""
        return View(self.name, self.name, self.queue, self.load, self.where, place=self.place)


@dataclass(frozen=True)
class Measure(Placed):
    """A number computed from the metrics of a run.

    Attributes:
        name: what checks, tables and figures call it.
        formula: how it is computed.
        title: what it is.
        short: the head of its column; by default the title.
        unit: its SI unit; "1" for a share or a number.
        scale: what it is multiplied by where it is shown.
        shown_unit: the unit where it is shown; by default the SI unit.
    """

    name: str
    formula: Formula = key(make=Formula)  # noqa: RUF009 (a field)
    title: str = key()
    short: str = ""
    unit: str = "1"
    scale: float = 1.0
    shown_unit: str | None = None

    @property
    def shown(self) -> Metric:
        """How it is shown."""
        plain = self.unit == "1"
        suffix = "" if plain else f"_{self.unit.replace('/', '_per_')}"
        unit = ("" if plain else self.unit) if self.shown_unit is None else self.shown_unit
        return Metric(self.title, self.short or self.title, self.unit, suffix, self.scale, unit)


@dataclass(frozen=True)
class Check(Placed):
    """A test of a finding.

    Attributes:
        comparison: the name of the comparison or view it looks at.
        test: the name of a test.
        parameters: the keys of the test.
    """

    comparison: str
    test: str
    parameters: Mapping[str, Any] = key(rest=True)

    def __post_init__(self) -> None:
        """Refuse a test that there is not, or other parameters than it takes."""
        checks.validate(self.test, self.parameters)


@dataclass(frozen=True)
class Finding(Placed):
    """Something that was found, or is expected.

    Attributes:
        id: its name.
        statement: it in our own words.
        checks: what would show it; none when it is not tested.
        conditions: checks without which there is nothing to test.
        untested: what of it is not tested and why; empty when all is.
        headline: whether the study is known for it, so that it is also tried under each setting.
    """

    id: str
    statement: str
    checks: tuple[Check, ...] = key("check", default=())
    conditions: tuple[Check, ...] = key("condition", default=())
    untested: str = ""
    headline: bool = False

    def __post_init__(self) -> None:
        """Refuse a finding about which nothing is said."""
        if not self.checks and not self.untested:
            raise SpecError(f"{self.id}: neither a check nor a reason in untested")

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """The checks, then the conditions."""
        return (*self.checks, *self.conditions)


@dataclass(frozen=True)
class FigureOf(Placed):
    """A figure that is drawn.

    Attributes:
        name: the name of the file.
        comparison: the comparison or view it shows.
        draws: a metric or measure, or a kind of figure with what it is of, such as
            "response_times:GROUP", "quartiles:METRIC", "cdf:queue_delay" or "plane".
        caption: what it shows.
        loads: the names of the loads shown; none stands for all.
        queues: the queues shown; none stands for all but variants.
        modern: whether the queues of today are shown as well.
    """

    name: str = key(file_name=True)
    comparison: str = key()
    draws: str = key()
    caption: str = key()
    loads: tuple[float | str, ...] = ()
    queues: tuple[str, ...] = ()
    modern: bool = False

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics or measures that it draws."""
        kind, _, of = self.draws.partition(":")
        if kind in _OF_METRICS:
            return (of,)
        return () if kind in FIGURES else (self.draws,)


@dataclass(frozen=True)
class Row(Placed):
    """A row of a table.

    Attributes:
        load: the name of the load.
        queue: the queue.
        values: others' number for each metric in SI units, NaN where there is none.
    """

    load: float | str
    queue: str
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Column(Placed):
    """A column of a table.

    Attributes:
        metric: the metric or measure.
        head: what stands above it; by default the metric's name and unit.
        digits: digits after the point; by default as many as the interval allows.
    """

    metric: str
    head: str = ""
    digits: int | None = None


@dataclass(frozen=True)
class TableOf(Placed):
    """Our numbers, with published ones next to them where there are some.

    Attributes:
        name: what marks of pages call it.
        comparison: the comparison or view it shows.
        caption: what it shows.
        source: where others' numbers come from; empty without any.
        metrics: its columns.
        columns: more columns, each with its own form.
        rows: its rows; none stand for all queues at all loads.
        modern: whether the queues of today have rows as well.
        link: where the name of a queue leads, in which QUEUE stands for it; empty for nowhere.
        order: metrics by which the rows are sorted, the least first, after a minus the largest; all
            but the last as they are shown. Rows that are equal in them are sorted by the queue.
    """

    name: str
    comparison: str
    caption: str
    source: str = ""
    metrics: tuple[str, ...] = ()
    columns: tuple[Column, ...] = key("column", default=())
    rows: tuple[Row, ...] = ()
    modern: bool = False
    link: str = ""
    order: tuple[str, ...] = ()

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """All columns, those without a form of their own first."""
        return (*(Column(metric, place=self.place) for metric in self.metrics), *self.columns)

    def __post_init__(self) -> None:
        """Refuse rows with fewer or more numbers than there are metrics."""
        for row in self.rows:
            if len(row.values) not in (0, len(self.metrics)):
                raise SpecError(
                    f"{len(row.values)} values for {len(self.metrics)} metrics", key="rows"
                )

    def published(self, row: Row) -> tuple[float, ...]:
        """Return others' numbers of a row, NaN where there are none."""
        return row.values or (math.nan,) * len(self.metrics)


@dataclass(frozen=True)
class Kernel(Placed):
    """What is changed so that a kernel can run a study.

    Attributes:
        about: it in words.
        each: overrides of the experiment files, by comparison.
        not_run: why no kernel runs it, by comparison; a suite's sheet says so.
        kinds: in a suite, parameters of a kind of queue. They replace what the suites' rules would
            set (docs/how-to/evaluate.md).
        buffer_in_bytes: in a suite, the kinds whose buffer a kernel counts in bytes: they get that
            of the control in packets of 1500 B.
        own_buffer: in a suite, the kinds whose buffer no kernel lets one set: they have their own.
    """

    about: str
    each: Mapping[str, Mapping[str, Any]] = key("of")
    not_run: Mapping[str, str] = key(default={})
    kinds: Mapping[str, Mapping[str, Any]] = key(default={})
    buffer_in_bytes: tuple[str, ...] = ()
    own_buffer: tuple[str, ...] = ()

    name = "kernel"

    def of(self, comparison: str) -> dict[str, Any]:
        """Return the overrides of a comparison."""
        return dict(self.each.get(comparison, {}))


@dataclass(frozen=True)
class Setting(Placed):
    """Something put in place of a part of the set-up, to see which findings survive it.

    Attributes:
        name: what tables call it.
        about: it in words.
        set: overrides of the experiment files of all comparisons.
        each: further ones, by comparison.
        all_findings: whether all findings are tried under it, and not only the headline ones.
    """

    name: str
    about: str
    set: Mapping[str, Any] = key(default={})
    each: Mapping[str, Mapping[str, Any]] = key("of", default={})
    all_findings: bool = False

    def of(self, comparison: str) -> dict[str, Any]:
        """Return the overrides of a comparison."""
        return {**self.set, **self.each.get(comparison, {})}


@dataclass(frozen=True)
class ThenAndNow(Placed):
    """The numbers shown for each setting.

    Attributes:
        comparison: the comparison or view they are of.
        loads: the names of its loads; none stands for all.
        metrics: the columns.
    """

    comparison: str
    loads: tuple[float | str, ...] = ()
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Allowed(Placed):
    """How large differences between backends may be; what is named here is compared as well.

    Attributes:
        given: for each metric a text, such as "15 % or 2 ms".
    """

    given: Mapping[str, Any] = key(rest=True)

    def __post_init__(self) -> None:
        """Refuse a metric that there is not, and a text that is no tolerance."""
        Tolerances(self.given)


@dataclass(frozen=True)
class Backends(Placed):
    """Experiments that are run under several backends, to see how far these are apart.

    Attributes:
        files: the experiment files.
        backends: what is compared when nothing else is asked for; each with the first.
        allowed: how large differences may be, where it is not what `redtail compare` allows.
    """

    files: tuple[Path, ...] = key()
    backends: tuple[str, ...] = ("sim", "linux")
    allowed: Allowed | None = key("tolerances", default=None)  # noqa: RUF009 (a field)

    def __post_init__(self) -> None:
        """Refuse what runs nothing."""
        _require_files(self.files)


SUBJECTS = {"queue": ("red", "pie", "codel", "fq-codel"), "tcp": ("cubic", "bbr3")}
"""What a suite examines, queues or what senders of TCP run, and which when none is named."""

REQUIREMENTS = (
    *("must", "must discuss", "should", "should discuss", "recommended", "may"),
    *("required", "optional", "ours"),
)
"""What a document says of a section; `ours` is of none."""


@dataclass(frozen=True)
class Subject(Placed):
    """What a suite examines: it takes the place of the control in each comparison.

    Attributes:
        kind: `queue`, or `tcp` for presets and congestion controllers.
        control: the label of what stands in the experiment files, which every subject is compared
            with.
        default: the kinds of queues, or presets of TCP, that are examined when none is named;
            without it `red`, `pie`, `codel` and `fq-codel`, or `cubic` and `bbr3`.
        kinds: parameters of a kind in this suite, by kind. They replace what the suites' rules
            would set (docs/how-to/evaluate.md).
    """

    kind: str
    control: str
    default: tuple[str, ...] = ()
    kinds: Mapping[str, Mapping[str, Any]] = key(default={})

    def __post_init__(self) -> None:
        """Refuse what is no kind of subject."""
        if self.kind not in SUBJECTS:
            raise SpecError(f"= {self.kind!r}; accepted: {', '.join(SUBJECTS)}", key="kind")

    @property
    def usual(self) -> tuple[str, ...]:
        """The subjects when none is named."""
        return self.default or SUBJECTS[self.kind]


@dataclass(frozen=True)
class Section(Placed):
    """A section of the document that a suite follows: what is run of it, and what is not.

    Attributes:
        id: its number or name in the document, such as "5.1.1".
        title: its title.
        requirement: what the document says of it: `must`, `must discuss`, `should`,
            `should discuss`, `recommended`, `may`, `required`, `optional`, or `ours`.
        about: what is run.
        comparisons: the comparisons or views that are run for it.
        measures: the metrics or measures that the sheet shows, of the comparisons that have them.
        not_run: what of the section is not run, and why; empty where all is.
    """

    id: str
    title: str
    requirement: str
    about: str = ""
    comparisons: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    not_run: str = ""

    def __post_init__(self) -> None:
        """Refuse a section of which nothing is said."""
        if self.requirement not in REQUIREMENTS:
            accepted = ", ".join(REQUIREMENTS)
            raise SpecError(f"= {self.requirement!r}; accepted: {accepted}", key="requirement")
        if not self.comparisons and not self.not_run:
            raise SpecError(f"{self.id}: neither comparisons nor a reason in not_run")
        if self.comparisons and not (self.measures and self.about):
            raise SpecError(
                f"{self.id}: comparisons without {'measures' if self.about else 'about'}"
            )


@dataclass(frozen=True)
class Criterion(Placed):
    """A column of the league table, by which subjects are ranked.

    Attributes:
        name: what results call it.
        title: it in words.
        comparison: the comparison or view that it is of.
        metric: the metric or measure.
        better: `less` or `more`, whichever is better.
        load: the load; without it each replication counts with its mean over all loads.
        where: the label or value of each further factor, besides the comparison's own.
        matters: the smallest difference that matters: a share of the larger of two means ("2 %"),
            a difference ("1 ms", "0.2 points"), or one of each ("2 % or 1 ms").
    """

    name: str = key(file_name=True)
    title: str = key()
    comparison: str = key()
    metric: str = key()
    better: str = key()
    load: float | str | None = None
    where: Mapping[str, Any] = key(default={})
    matters: str = "2 %"

    def __post_init__(self) -> None:
        """Refuse what is no direction."""
        if self.better not in ("less", "more"):
            raise SpecError(f"= {self.better!r}; accepted: less, more", key="better")

    @property
    def view(self) -> str:
        """The name of the view that it looks at."""
        return f"criterion {self.name}" if self.where else self.comparison

    def least(self, about: Metric) -> Tolerance:
        """Return the smallest difference that matters.

        Args:
            about: how the metric or measure is shown.

        Raises:
            SpecError: the text is none.
        """
        try:
            return tolerances.parse(Own(self.metric, about), self.matters)
        except SpecError as error:
            raise self.error("matters", str(error)) from None


@dataclass(frozen=True)
class _Findings(Placed):
    findings: tuple[Finding, ...] = key("finding", default=())


@dataclass(frozen=True)
class Study(Placed):
    """Experiments, and what is asked of their results.

    Attributes:
        name: what the command line calls it.
        folder: where its files are.
        title: its title.
        authors: its authors.
        published: where and when.
        about: the page of the documentation on it.
        comparisons: what is run.
        views: other ways to look at what is run.
        measures: numbers computed from metrics.
        findings: what was found, or is expected.
        figures: the figures that are drawn.
        tables: the tables that are made.
        settings: what is put in the place of a part of the set-up, then and now.
        then_and_now: the numbers shown for each setting.
        kernel: what is changed so that a kernel can run it, for the comparisons that it names; None
            if no kernel can run any.
        gaps: what is run under several backends, to see how far these are apart.
        subject: what a suite examines; None for a study that is no suite.
        sections: the sections of the document that a suite follows.
        criteria: the columns of a suite's league table.
        expected: the verdicts at each scale that has expectations, by finding.
    """

    name: str
    folder: Path
    title: str
    authors: str = ""
    published: str = ""
    about: str = ""
    comparisons: tuple[Comparison, ...] = key("comparison", default=())
    views: tuple[View, ...] = key("view", default=())
    measures: tuple[Measure, ...] = key("measure", default=())
    findings: tuple[Finding, ...] = key("finding", default=())
    figures: tuple[FigureOf, ...] = key("figure", default=())
    tables: tuple[TableOf, ...] = key("table", default=())
    settings: tuple[Setting, ...] = key("setting", default=())
    then_and_now: tuple[ThenAndNow, ...] = ()
    kernel: Kernel | None = None
    gaps: Backends | None = None
    subject: Subject | None = None
    sections: tuple[Section, ...] = key("section", default=())
    criteria: tuple[Criterion, ...] = key("criterion", default=())
    expected: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def scales(self) -> dict[str, str]:
        """The scales, each in words."""
        found: dict[str, list[str]] = {}
        for comparison in self.comparisons:
            for scale in comparison.scales:
                found.setdefault(scale.name, []).append(f"{comparison.name}: {scale.about}")
        return {name: "; ".join(about) for name, about in found.items()}

    @property
    def all_views(self) -> tuple[View, ...]:
        """The views, those that are a comparison itself first."""
        named = (*(comparison.view for comparison in self.comparisons), *self.views)
        by_name = {view.name: view for view in named}
        return (
            *named,
            *(
                replace(of, name=each.view, where={**of.where, **each.where}, place=each.place)
                for each in self.criteria
                if each.where and (of := by_name.get(each.comparison)) is not None
            ),
        )

    def tried(self, setting: Setting) -> tuple[Finding, ...]:
        """The findings that are tried under a setting."""
        return self.findings if setting.all_findings else self.headlines

    @property
    def headlines(self) -> tuple[Finding, ...]:
        """The findings that are tried under each setting."""
        return tuple(finding for finding in self.findings if finding.headline)


def names() -> tuple[str, ...]:
    """Return the names of all built-in studies, suites included."""
    return tuple(sorted(_built_in()))


def suites() -> tuple[str, ...]:
    """Return the names of the built-in suites, which `redtail evaluate` runs."""
    return tuple(name for name, at in sorted(_built_in().items()) if at.parent.name == "suites")


def _built_in() -> dict[str, Path]:
    return {path.parent.name: path.parent for path in FOLDER.glob("*/*/study.toml")}


def load(name: str | os.PathLike[str]) -> Study:
    """Read a study that is built in, by its name, or one of your own, by its folder.

    Raises:
        SpecError: there is none, or its files are not valid.
    """
    folder = _built_in().get(str(name)) or path_of(name)
    if (folder / "study.toml").is_file():
        return read(folder)
    raise SpecError(
        f"no study {str(name)!r} is built in, and it is no folder with a study.toml; "
        f"accepted: {', '.join(names())}, or such a folder"
    )


def copy(study: Study, folder: Path) -> list[Path]:
    """Copy a study's files into a new folder, to be read and changed.

    Returns:
        The files.

    Raises:
        StoreError: the folder is there already, or cannot be written.
    """
    files = sorted(path for path in study.folder.iterdir() if path.suffix == ".toml")
    try:
        folder.mkdir(parents=True)
        return [Path(shutil.copy(file, folder)) for file in files]
    except FileExistsError:
        raise StoreError(f"{folder}: is there already; accepted: a folder to be made") from None
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror or error}") from error


def read(folder: Path) -> Study:
    """Read a study from its folder.

    Raises:
        SpecError: a file is missing or not valid; the message says where, and what would be.
    """
    given: dict[str, Any] = {"name": folder.resolve().name, "folder": folder, "expected": {}}
    if (file := folder / "findings.toml").exists():
        given["findings"] = _Findings.read(file).findings
    study = Study.read(folder / "study.toml", **given)
    _agree(study)
    return replace(study, expected=_expected(folder / EXPECTED, study))


def _agree(study: Study) -> None:
    """Refuse names that nothing has, and names that two things have."""
    views = {view.name: view for view in study.all_views}
    comparisons = {comparison.name: comparison for comparison in study.comparisons}
    named: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("comparison] or [[view", study.all_views),
        ("figure", study.figures),
        ("table", study.tables),
        ("setting", study.settings),
        ("measure", study.measures),
        ("criterion", study.criteria),
    )
    for kind, key_of, parts in (
        *((kind, "name", parts) for kind, parts in named),
        ("finding", "id", study.findings),
        ("section", "id", study.sections),
    ):
        seen: set[str] = set()
        for part in parts:
            name = getattr(part, key_of)
            if name in seen:
                others = f"a name that no other of [[{kind}]] has"
                raise part.refused(key_of, name, [others])
            seen.add(name)

    def known(part: Placed, at: str, name: str, accepted: Iterable[str]) -> None:
        if name not in accepted:
            raise part.refused(at, name, sorted(accepted))

    for view in study.views:
        known(view, "comparison", view.comparison, comparisons)
    for of in study.comparisons:
        for variant in of.variants:
            for scale in variant.scales:
                known(variant, "scales", scale, [each.name for each in of.scales])
    checks = (check for finding in study.findings for check in finding.all_checks)
    users: list[Check | FigureOf | TableOf | ThenAndNow | Criterion]
    users = [*checks, *study.figures, *study.tables, *study.then_and_now, *study.criteria]
    for user in users:
        known(user, "comparison", user.comparison, views)
    for section in study.sections:
        for name in section.comparisons:
            known(section, "comparisons", name, views)
    _agree_on_suite(study)
    settings: list[Setting | Kernel]
    settings = [*study.settings, *([study.kernel] if study.kernel else [])]
    for setting in settings:
        for name in setting.each.keys() - comparisons.keys():
            listed = ", ".join(sorted(comparisons))
            raise setting.error("of", f"is no comparison; accepted: {listed}", name)
    if study.kernel is not None:
        if not study.kernel.each:
            raise study.kernel.refused("of", {}, ["a table [kernel.of.COMPARISON] or more"])
        for name in study.kernel.not_run:
            known(study.kernel, "not_run", name, comparisons.keys() - study.kernel.each.keys())


def _agree_on_suite(study: Study) -> None:
    """Refuse tables of a suite in a study that is none, and a suite without what it needs."""
    if study.subject is None:
        parts: list[Section | Criterion] = [*study.sections, *study.criteria]
        for part in parts:
            place = part.place or Place(Path(), {})
            raise place.error("needs a table [subject], which says what the suite examines")
        for of in study.comparisons:
            for at, given in (("also", of.also), ("subject", of.subject)):
                if given:
                    raise of.error(at, "needs a table [subject]")
        return
    if not study.sections:
        raise study.subject.error("", "a suite needs a table [[section]] or more")
    for of in study.comparisons:
        if of.variants:
            raise of.variants[0].error("label", "a suite has no variants: its subjects vary")


def _expected(path: Path, study: Study) -> Mapping[str, Mapping[str, str]]:
    """Read the expected verdicts, by scale and finding."""
    if not path.is_file():
        return {}
    found, place = opened(path)
    ids = [finding.id for finding in study.findings]
    verdicts = [repr(each.value) for each in Judgement]
    for scale, of_scale in found.items():
        if scale not in study.scales or not isinstance(of_scale, dict):
            raise place.below(scale).error(f"is no scale; accepted: {', '.join(study.scales)}")
        for name, verdict in of_scale.items():
            there = place.below(scale, name)
            if name not in ids:
                raise there.error(f"is no finding; accepted: {', '.join(ids)}")
            if repr(verdict) not in verdicts:
                raise there.error(f"= {verdict!r}; accepted: {', '.join(verdicts)}")
    return found
