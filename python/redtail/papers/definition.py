"""What a paper consists of, read from its folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redtail.errors import SpecError
from redtail.papers import checks

FOLDER = Path(__file__).parent
"""Where the papers are."""


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
    """One of a study's queues with something changed.

    Attributes:
        label: what the variant is called.
        of: the label of the queue it comes from.
        queue: parameters that replace or add to that queue's.
        set: further overrides of the experiment.
        solve: the value to be looked for, if there is one.
    """

    label: str
    of: str
    queue: Mapping[str, Any]
    set: Mapping[str, Any]
    solve: Solve | None


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
    """

    name: str
    about: str
    queue: str
    load: str
    files: tuple[Path, ...]
    scales: Mapping[str, Scale]
    variants: tuple[Variant, ...]


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
    """

    id: str
    statement: str
    checks: tuple[Check, ...]
    conditions: tuple[Check, ...]
    untested: str


@dataclass(frozen=True)
class FigureOf:
    """A figure of the paper that is drawn again.

    Attributes:
        name: the name of the file.
        study: the study it shows.
        draws: a metric, or "consecutive_loss".
        caption: what it shows, with the paper's number.
        loads: the loads shown; none stands for all.
    """

    name: str
    study: str
    draws: str
    caption: str
    loads: tuple[float, ...]


@dataclass(frozen=True)
class Reference:
    """Others' numbers, shown beside ours.

    Attributes:
        study: the study they belong to.
        source: where they come from.
        metrics: which metrics they are.
        rows: load, queue, and a number for each metric, in SI units.
    """

    study: str
    source: str
    metrics: tuple[str, ...]
    rows: tuple[tuple[float, str, tuple[float, ...]], ...]


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
        findings: what it found.
        figures: which of its figures are drawn.
        references: others' numbers.
    """

    name: str
    folder: Path
    title: str
    authors: str
    published: str
    about: str
    studies: tuple[Study, ...]
    findings: tuple[Finding, ...]
    figures: tuple[FigureOf, ...]
    references: tuple[Reference, ...]

    @property
    def scales(self) -> dict[str, str]:
        """The scales, each in words."""
        found: dict[str, list[str]] = {}
        for study in self.studies:
            for scale in study.scales.values():
                found.setdefault(scale.name, []).append(f"{study.name}: {scale.about}")
        return {name: "; ".join(about) for name, about in found.items()}


def names() -> tuple[str, ...]:
    """Return the names of all papers."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob("*/paper.toml")))


def load(name: str) -> Paper:
    """Read a paper.

    Raises:
        SpecError: there is none of this name, or its files are not valid.
    """
    if name not in names():
        raise SpecError(f"no paper {name!r} is built in; accepted: {', '.join(names())}")
    return read(FOLDER / name)


def read(folder: Path) -> Paper:
    """Read a paper from its folder.

    Raises:
        SpecError: a file is missing or not valid; the message says where.
    """
    top = _open(folder / "paper.toml")
    found = Paper(
        name=folder.name,
        folder=folder,
        title=top.text("title"),
        authors=top.text("authors"),
        published=top.text("published"),
        about=top.text("about"),
        studies=tuple(_study(part, folder) for part in top.tables("study")),
        figures=tuple(_figure(part) for part in top.tables("figure")),
        findings=(),
        references=(),
    )
    top.end()
    findings = _open(folder / "findings.toml")
    listed = tuple(_finding(part) for part in findings.tables("finding"))
    findings.end()
    references: tuple[Reference, ...] = ()
    if (folder / "reference.toml").is_file():
        others = _open(folder / "reference.toml")
        references = tuple(_reference(part) for part in others.tables("reference"))
        others.end()
    paper = Paper(**{**vars(found), "findings": listed, "references": references})
    _agree(paper)
    return paper


def _agree(paper: Paper) -> None:
    """Refuse names that nothing has, and names that two things have."""
    studies = {study.name for study in paper.studies}
    for kind, given in (
        ("study", [study.name for study in paper.studies]),
        ("finding", [finding.id for finding in paper.findings]),
        ("figure", [figure.name for figure in paper.figures]),
    ):
        for name in given:
            if given.count(name) > 1:
                raise SpecError(f"{paper.folder}: two of [[{kind}]] are called {name!r}")
    users = [(finding.id, check.study) for finding in paper.findings for check in finding.checks]
    users += [(finding.id, each.study) for finding in paper.findings for each in finding.conditions]
    users += [(figure.name, figure.study) for figure in paper.figures]
    users += [(other.source, other.study) for other in paper.references]
    for user, study in users:
        if study not in studies:
            accepted = ", ".join(sorted(studies))
            raise SpecError(f"{paper.folder}: {user}: study = {study!r}; accepted: {accepted}")
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

    def number(self, key: str) -> float:
        return float(self.take(key, int | float, "a number"))

    def table(self, key: str) -> dict[str, Any]:
        return dict(self.take(key, dict, "a table", {}))

    def listed(self, key: str) -> list[Any]:
        return list(self.take(key, list, "a list", []))

    def tables(self, key: str) -> list[_Part]:
        parts = [
            _Part(table, f"{self.where}: {key} {number}")
            for number, table in enumerate(self.listed(key), start=1)
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
        variants.append(
            Variant(
                each.text("label"), each.text("of"), each.table("queue"), each.table("set"), solve
            )
        )
        each.end()
    found = Study(
        name=part.text("name"),
        about=part.text("about"),
        queue=part.text("queue"),
        load=part.text("load"),
        files=tuple(folder / file for file in part.listed("files")),
        scales={scale.name: scale for scale in scales},
        variants=tuple(variants),
    )
    part.end()
    return found


def _finding(part: _Part) -> Finding:
    found = Finding(
        id=part.text("id"),
        statement=part.text("statement"),
        checks=tuple(_check(each) for each in part.tables("check")),
        conditions=tuple(_check(each) for each in part.tables("condition")),
        untested=part.text("untested", ""),
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
        loads=tuple(part.listed("loads")),
    )
    part.end()
    return found


def _reference(part: _Part) -> Reference:
    metrics = tuple(part.listed("metrics"))
    rows = []
    for row in part.tables("rows"):
        values = tuple(float(value) for value in row.listed("values"))
        if len(values) != len(metrics):
            raise SpecError(f"{row.where}: {len(values)} values for {len(metrics)} metrics")
        rows.append((row.number("load"), row.text("queue"), values))
        row.end()
    found = Reference(part.text("study"), part.text("source"), metrics, tuple(rows))
    part.end()
    return found
