"""What a paper consists of, read from its folder."""

from __future__ import annotations

import math
import os
import re
import shutil
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from redtail.errors import SpecError, StoreError
from redtail.files import is_file_name, path_of
from redtail.formula import Formula
from redtail.metrics import Metric
from redtail.papers import checks

FOLDER = Path(__file__).parent
"""Where the papers are."""

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


@dataclass(frozen=True)
class Solve:
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
class Variant:
    """One of a study's queues with something changed, or another queue in its place.

    Attributes:
        label: what the variant is called.
        of: the label of the queue it comes from.
        queue: parameters that replace or add to that queue's; with a `kind`, a queue of its own.
        set: further overrides of the experiment.
        solve: the value to be looked for, if there is one.
        modern: whether it is a modern queue, shown next to those of the paper.
        scales: the scales at which it is run; none stands for all.
    """

    label: str
    of: str
    queue: Mapping[str, Any]
    set: Mapping[str, Any]
    solve: Solve | None
    modern: bool = False
    scales: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scale:
    """How much is run.

    Attributes:
        name: what `--scale` calls it.
        about: it in words.
        set: overrides of the experiment files.
    """

    name: str
    about: str
    set: Mapping[str, Any]


@dataclass(frozen=True)
class Study:
    """A comparison of queues over loads.

    Attributes:
        name: what checks call it.
        about: it in words.
        queue: the dotted key of the factor compared.
        load: the dotted key of the factor it is compared over.
        files: the experiment files, which together have all loads.
        scales: the scales by name.
        variants: further queues derived from those in the files.
        where: the label or value of each further factor.
        meant: parts of warnings of the files that are meant to be so, and are not shown.
    """

    name: str
    about: str
    queue: str
    load: str
    files: tuple[Path, ...]
    scales: Mapping[str, Scale]
    variants: tuple[Variant, ...]
    where: Mapping[str, Any] = field(default_factory=dict)
    meant: tuple[str, ...] = ()

    def unmeant(self, warnings: Iterable[str]) -> list[str]:
        """Return the warnings that are not meant to be so."""
        return [text for text in warnings if not any(map(text.count, self.meant))]

    def variants_at(self, scale: str) -> tuple[Variant, ...]:
        """Return the variants that are run at a scale."""
        return tuple(each for each in self.variants if not each.scales or scale in each.scales)

    @property
    def view(self) -> View:
        """What checks see when they name the study itself."""
        return View(self.name, self.name, self.queue, self.load, self.where)


@dataclass(frozen=True)
class View:
    """A way to look at the runs of a study.

    Attributes:
        name: what checks, tables and figures call it.
        study: the name of the study.
        queue: the dotted key of the factor compared.
        load: the dotted key of the factor it is compared over.
        where: the label or value of each further factor.
    """

    name: str
    study: str
    queue: str
    load: str
    where: Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """A number computed from the metrics of a run.

    Attributes:
        name: what checks, tables and figures call it.
        formula: how it is computed.
        shown: how it is shown.
    """

    name: str
    formula: Formula
    shown: Metric


@dataclass(frozen=True)
class Check:
    """A test of a finding.

    Attributes:
        study: the name of the study it looks at.
        test: the name of a function in `checks`.
        parameters: what that function is given.
    """

    study: str
    test: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """Something the paper found.

    Attributes:
        id: its name.
        statement: it in our own words.
        checks: what would show it; none when it is not tested.
        conditions: checks without which there is nothing to test.
        untested: what of it is not tested and why; empty when all is.
        headline: whether the paper is known for it, so that it is also tried under each setting.
    """

    id: str
    statement: str
    checks: tuple[Check, ...]
    conditions: tuple[Check, ...]
    untested: str
    headline: bool = False


@dataclass(frozen=True)
class FigureOf:
    """A figure of the paper that is drawn again.

    Attributes:
        name: the name of the file.
        study: the study or view it shows.
        draws: a metric, or one of `FIGURES` with what it is of, such as "response_times:GROUP",
            "quartiles:METRIC", "cdf:queue_delay" or "plane".
        caption: what it shows, with the paper's number.
        loads: the names of the loads shown (see `grid.Loads.find`); none stands for all.
        queues: the queues shown; none stands for those of the paper.
        modern: whether the queues of today are shown as well.
    """

    name: str
    study: str
    draws: str
    caption: str
    loads: tuple[float | str, ...]
    queues: tuple[str, ...]
    modern: bool

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics or measures that it draws."""
        kind, _, of = self.draws.partition(":")
        if kind in _OF_METRICS:
            return (of,)
        return () if kind in FIGURES else (self.draws,)


@dataclass(frozen=True)
class TableOf:
    """Our numbers, with published ones next to them where there are some.

    Attributes:
        name: its name.
        study: the study or view it shows.
        caption: what it shows.
        source: where others' numbers come from; empty without any.
        metrics: its columns.
        rows: name of the load, queue, and others' number for each metric in SI units, NaN where
            there is none; no rows stand for all queues at all loads.
        modern: whether the queues of today have rows as well.
    """

    name: str
    study: str
    caption: str
    source: str
    metrics: tuple[str, ...]
    rows: tuple[tuple[float | str, str, tuple[float, ...]], ...]
    modern: bool


@dataclass(frozen=True)
class Setting:
    """Something of our time put in place of the paper's, to see which findings survive it.

    Attributes:
        name: what tables call it.
        about: it in words.
        set: overrides of the experiment files, by study; those of "" are for all studies.
    """

    name: str
    about: str
    set: Mapping[str, Mapping[str, Any]]

    def of(self, study: str) -> dict[str, Any]:
        """Return the overrides of a study."""
        return {**self.set.get("", {}), **self.set.get(study, {})}


@dataclass(frozen=True)
class ThenAndNow:
    """The numbers shown for each setting.

    Attributes:
        study: the study or view they are of.
        loads: the names of its loads; none stands for all.
        metrics: the columns.
    """

    study: str
    loads: tuple[float | str, ...]
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class Paper:
    """A published evaluation.

    Attributes:
        name: what the command line calls it.
        folder: where its files are.
        title: its title.
        authors: its authors.
        published: where and when.
        about: the page of the documentation on it.
        studies: what is run.
        views: other ways to look at what is run.
        measures: numbers computed from metrics.
        findings: what it found.
        figures: which of its figures are drawn.
        tables: which of its tables are made.
        settings: what is put in the place of the paper's TCP, then and now.
        then_and_now: the numbers shown for each setting.
        kernel: what is changed so that a kernel can run it, for the studies that it names; None if
            no kernel can run any.
        expected: the verdicts at each scale that has expectations, by finding.
    """

    name: str
    folder: Path
    title: str
    authors: str
    published: str
    about: str
    studies: tuple[Study, ...]
    views: tuple[View, ...]
    measures: tuple[Measure, ...]
    findings: tuple[Finding, ...]
    figures: tuple[FigureOf, ...]
    tables: tuple[TableOf, ...]
    settings: tuple[Setting, ...]
    then_and_now: tuple[ThenAndNow, ...]
    kernel: Setting | None
    expected: Mapping[str, Mapping[str, str]]

    @property
    def scales(self) -> dict[str, str]:
        """The scales, each in words."""
        found: dict[str, list[str]] = {}
        for study in self.studies:
            for scale in study.scales.values():
                found.setdefault(scale.name, []).append(f"{study.name}: {scale.about}")
        return {name: "; ".join(about) for name, about in found.items()}

    @property
    def all_views(self) -> tuple[View, ...]:
        """The views, those that are a study itself first."""
        return (*(study.view for study in self.studies), *self.views)

    @property
    def headlines(self) -> tuple[Finding, ...]:
        """The findings that are tried under each setting."""
        return tuple(finding for finding in self.findings if finding.headline)


def names() -> tuple[str, ...]:
    """Return the names of all papers."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob("*/paper.toml")))


def load(name: str | os.PathLike[str]) -> Paper:
    """Read a paper that is built in, by its name, or one of your own, by its folder.

    Raises:
        SpecError: there is none, or its files are not valid.
    """
    if name in names():
        return read(FOLDER / name)
    folder = path_of(name)
    if (folder / "paper.toml").is_file():
        return read(folder)
    raise SpecError(
        f"no paper {str(name)!r} is built in, and it is no folder with a paper.toml; "
        f"accepted: {', '.join(names())}, or such a folder"
    )


def copy(paper: Paper, folder: Path) -> list[Path]:
    """Copy a paper's files into a new folder, to be read and changed.

    Returns:
        The files.

    Raises:
        StoreError: the folder is there already, or cannot be written.
    """
    files = sorted(path for path in paper.folder.iterdir() if path.suffix == ".toml")
    try:
        folder.mkdir(parents=True)
        return [Path(shutil.copy(file, folder)) for file in files]
    except FileExistsError:
        raise StoreError(f"{folder}: is there already; accepted: a folder to be made") from None
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror or error}") from error


def read(folder: Path) -> Paper:
    """Read a paper from its folder.

    Raises:
        SpecError: a file is missing or not valid; the message says where.
    """
    top = _open(folder / "paper.toml")
    findings = _open(folder / "findings.toml")
    paper = Paper(
        name=folder.resolve().name,
        folder=folder,
        title=top.text("title"),
        authors=top.text("authors"),
        published=top.text("published"),
        about=top.text("about", ""),
        studies=tuple(_study(part, folder) for part in top.tables("study")),
        views=tuple(_view(part) for part in top.tables("view")),
        measures=tuple(_measure(part) for part in top.tables("measure")),
        figures=tuple(_figure(part) for part in top.tables("figure")),
        tables=tuple(_table(part) for part in top.tables("table")),
        settings=tuple(_setting(part) for part in top.tables("setting")),
        then_and_now=tuple(_then_and_now(part) for part in top.tables("then_and_now")),
        kernel=_kernel(top),
        findings=tuple(_finding(part) for part in findings.tables("finding")),
        expected=_expected(folder / EXPECTED),
    )
    top.end()
    findings.end()
    _require_file_names(paper)
    _agree(paper)
    return paper


def _require_file_names(paper: Paper) -> None:
    """Refuse names that could not be those of files in the folder of results."""
    for table, names in (
        ("figure", [figure.name for figure in paper.figures]),
        ("study", [study.name for study in paper.studies]),
        ("study.scale", [name for study in paper.studies for name in study.scales]),
    ):
        for name in names:
            if is_file_name(name):
                continue
            path = paper.folder / "paper.toml"
            line = _line_of(path, table, name)
            at = f"{path}:{line}" if line else str(path)
            raise SpecError(
                f"{at}: {table}.name = {name!r} cannot be the name of a file in the folder of "
                "results; accepted: a name that does not begin with a dot, without control "
                'characters and without / \\ : * ? " < > |',
                file=str(path),
                line=line,
                key=f"{table}.name",
            )


def _line_of(path: Path, table: str, name: str) -> int | None:
    """Return the line of `name = …` in a table of a list, if it stands on a line of its own."""
    within = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if header := re.match(r"\s*\[\[\s*([\w.]+)\s*\]\]", line):
            within = header[1]
        elif within == table and re.match(r"\s*name\s*=", line):
            try:
                found = tomllib.loads(line)
            except tomllib.TOMLDecodeError:
                continue
            if found == {"name": name}:
                return number
    return None


def _agree(paper: Paper) -> None:
    """Refuse names that nothing has, and names that two things have."""
    views = {view.name: view for view in paper.all_views}
    studies = {study.name: study for study in paper.studies}
    for kind, given in (
        ("study] or [[view", [view.name for view in paper.all_views]),
        ("finding", [finding.id for finding in paper.findings]),
        ("figure", [figure.name for figure in paper.figures]),
        ("table", [table.name for table in paper.tables]),
        ("setting", [setting.name for setting in paper.settings]),
        ("measure", [measure.name for measure in paper.measures]),
    ):
        for name in given:
            if given.count(name) > 1:
                raise SpecError(f"{paper.folder}: two of [[{kind}]] are called {name!r}")

    def known(user: str, key: str, name: str, accepted: Iterable[str]) -> None:
        if name not in accepted:
            listed = ", ".join(sorted(accepted)) or "none"
            raise SpecError(f"{paper.folder}: {user}: {key} = {name!r}; accepted: {listed}")

    for view in paper.views:
        known(f"view {view.name}", "study", view.study, studies)
    for of in paper.studies:
        for variant in of.variants:
            for scale in variant.scales:
                known(f"{of.name}: {variant.label}", "scales", scale, of.scales)
    users = [
        (finding.id, check.study)
        for finding in paper.findings
        for check in (*finding.checks, *finding.conditions)
    ]
    users += [(figure.name, figure.study) for figure in paper.figures]
    users += [(table.name, table.study) for table in paper.tables]
    users += [("then_and_now", each.study) for each in paper.then_and_now]
    for user, study in users:
        known(user, "study", study, views)
    for setting in paper.settings:
        for study in setting.set:
            known(f"setting {setting.name}", "study", study, {"", *studies})
    for study in paper.kernel.set if paper.kernel else ():
        known("kernel", "of", study, studies)
    ids = {finding.id for finding in paper.findings}
    for scale, verdicts in paper.expected.items():
        known(EXPECTED, "scale", scale, paper.scales)
        for name in verdicts:
            known(f"{EXPECTED}: {scale}", "finding", name, ids)
    for finding in paper.findings:
        if not finding.checks and not finding.untested:
            raise SpecError(
                f"{paper.folder}: {finding.id}: neither a check nor a reason in untested"
            )


class _Part:
    """A table of a file, whose keys are taken one by one so that none is left unread."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self.left = dict(table)
        self.where = where

    def take(self, key: str, kind: Any, wanted: str, default: Any = None) -> Any:
        if key not in self.left:
            if default is not None:
                return default
            raise SpecError(f"{self.where}: {key} is missing")
        value = self.left.pop(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise SpecError(f"{self.where}: {key} = {value!r}: {wanted} is wanted")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        return str(self.take(key, str, "a text", default))

    def number(self, key: str, default: float | None = None) -> float:
        return float(self.take(key, int | float, "a number", default))

    def flag(self, key: str) -> bool:
        value = self.left.pop(key, False)
        if not isinstance(value, bool):
            raise SpecError(f"{self.where}: {key} = {value!r}: true or false is wanted")
        return value

    def table(self, key: str) -> dict[str, Any]:
        return dict(self.take(key, dict, "a table", {}))

    def listed(self, key: str, kind: Any = object, wanted: str = "") -> list[Any]:
        found = list(self.take(key, list, "a list", []))
        for number, value in enumerate(found, start=1):
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not object):
                raise SpecError(f"{self.where}: {key} {number} = {value!r}: {wanted} is wanted")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(self.listed(key, str, "a text"))

    def numbers(self, key: str) -> tuple[float, ...]:
        return tuple(self.listed(key, int | float, "a number"))

    def loads(self, key: str) -> tuple[float | str, ...]:
        return tuple(self.listed(key, int | float | str, "a number or a quantity"))

    def load(self, key: str) -> float | str:
        value: float | str = self.take(key, int | float | str, "a number or a quantity")
        return value

    def tables(self, key: str) -> list[_Part]:
        parts = [
            _Part(table, f"{self.where}: {key} {number}")
            for number, table in enumerate(self.listed(key, dict, "a table"), start=1)
        ]
        for part in parts:
            called = part.left.get("id", part.left.get("name", part.left.get("label")))
            part.where = f"{part.where} ({called})" if called else part.where
        return parts

    def end(self) -> None:
        for key in self.left:
            raise SpecError(f"{self.where}: {key}: unknown key")


def _open(path: Path) -> _Part:
    try:
        with path.open("rb") as file:
            return _Part(tomllib.load(file), str(path))
    except FileNotFoundError:
        raise SpecError(f"{path}: no such file", file=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path}: {error}", file=str(path)) from None
    except UnicodeDecodeError as error:
        raise SpecError(
            f"{path}: not a text file in UTF-8 (byte {error.start})", file=str(path)
        ) from None


def _study(part: _Part, folder: Path) -> Study:
    scales = []
    for each in part.tables("scale"):
        scales.append(Scale(each.text("name"), each.text("about"), each.table("set")))
        each.end()
    variants = []
    for each in part.tables("variant"):
        solve = None
        if "solve" in each.left:
            inner = _Part(each.table("solve"), f"{each.where}: solve")
            solve = Solve(
                key=inner.text("key"),
                metric=inner.text("metric"),
                like=inner.text("like"),
                within=inner.number("within"),
                rounds=int(inner.number("rounds")),
            )
            inner.end()
        queue, sets = each.table("queue"), each.table("set")
        label, of, modern = each.text("label"), each.text("of"), each.flag("modern")
        at = each.texts("scales")
        variants.append(Variant(label, of, queue, sets, solve, modern, at))
        each.end()
    found = Study(
        name=part.text("name"),
        about=part.text("about"),
        queue=part.text("queue"),
        load=part.text("load"),
        files=tuple(folder / file for file in part.texts("files")),
        scales={scale.name: scale for scale in scales},
        variants=tuple(variants),
        where=part.table("where"),
        meant=part.texts("meant"),
    )
    part.end()
    return found


def _view(part: _Part) -> View:
    found = View(
        name=part.text("name"),
        study=part.text("study"),
        queue=part.text("queue"),
        load=part.text("load"),
        where=part.table("where"),
    )
    part.end()
    return found


def _measure(part: _Part) -> Measure:
    name, unit = part.text("name"), part.text("unit", "1")
    title = part.text("title")
    shown = Metric(
        title=title,
        short=part.text("short", title),
        unit=unit,
        suffix="" if unit == "1" else f"_{unit.replace('/', '_per_')}",
        scale=part.number("scale", 1.0),
        shown_unit=part.text("shown_unit", "" if unit == "1" else unit),
    )
    try:
        found = Measure(name, Formula(part.text("formula")), shown)
    except SpecError as error:
        raise SpecError(f"{part.where}: {error}") from None
    part.end()
    return found


def _finding(part: _Part) -> Finding:
    found = Finding(
        id=part.text("id"),
        statement=part.text("statement"),
        checks=tuple(_check(each) for each in part.tables("check")),
        conditions=tuple(_check(each) for each in part.tables("condition")),
        untested=part.text("untested", ""),
        headline=part.flag("headline"),
    )
    part.end()
    return found


def _check(part: _Part) -> Check:
    study, test = part.text("study"), part.text("test")
    checks.validate(test, part.left, part.where)
    return Check(study, test, part.left)


def _figure(part: _Part) -> FigureOf:
    found = FigureOf(
        name=part.text("name"),
        study=part.text("study"),
        draws=part.text("draws"),
        caption=part.text("caption"),
        loads=part.loads("loads"),
        queues=part.texts("queues"),
        modern=part.flag("modern"),
    )
    part.end()
    return found


def _table(part: _Part) -> TableOf:
    metrics = part.texts("metrics")
    rows = []
    for row in part.tables("rows"):
        values = tuple(map(float, row.numbers("values")))
        if len(values) not in (0, len(metrics)):
            raise SpecError(f"{row.where}: {len(values)} values for {len(metrics)} metrics")
        values = values or (math.nan,) * len(metrics)
        rows.append((row.load("load"), row.text("queue"), values))
        row.end()
    found = TableOf(
        name=part.text("name"),
        study=part.text("study"),
        caption=part.text("caption"),
        source=part.text("source", ""),
        metrics=metrics,
        rows=tuple(rows),
        modern=part.flag("modern"),
    )
    part.end()
    return found


def _setting(part: _Part) -> Setting:
    """Read a setting: `set` for all studies, `[setting.of.STUDY]` for one of them."""
    of = _Part(part.table("of"), f"{part.where}: of")
    found = Setting(
        name=part.text("name"),
        about=part.text("about"),
        set={"": part.table("set"), **{name: of.table(name) for name in list(of.left)}},
    )
    part.end()
    return found


def _kernel(top: _Part) -> Setting | None:
    """Read `[kernel]`: `[kernel.of.STUDY]` has the overrides of a study that a kernel can run."""
    if "kernel" not in top.left:
        return None
    part = _Part(top.table("kernel"), f"{top.where}: kernel")
    of = _Part(part.table("of"), f"{part.where}: of")
    found = Setting("kernel", part.text("about"), {name: of.table(name) for name in list(of.left)})
    part.end()
    if not found.set:
        raise SpecError(f"{part.where}: no study; accepted: [kernel.of.STUDY]")
    return found


def _then_and_now(part: _Part) -> ThenAndNow:
    found = ThenAndNow(part.text("study"), part.loads("loads"), part.texts("metrics"))
    part.end()
    return found


def _expected(path: Path) -> dict[str, dict[str, str]]:
    if not path.is_file():
        return {}
    part = _open(path)
    found = {}
    for scale in list(part.left):
        of_scale = _Part(part.table(scale), f"{path}: {scale}")
        found[scale] = {finding: of_scale.text(finding) for finding in list(of_scale.left)}
        for finding, verdict in found[scale].items():
            if verdict not in list(Judgement):
                raise SpecError(
                    f"{of_scale.where}: {finding} = {verdict!r}; "
                    f"accepted: {', '.join(repr(each.value) for each in Judgement)}",
                    file=str(path),
                    key=f"{scale}.{finding}",
                )
    return found
