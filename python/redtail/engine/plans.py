"""Checks an experiment and expands it into cases and replications.

It must not know how a run is made, nor what a run measures.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from redtail import native
from redtail.analysis.stopping import StopRule
from redtail.cases import Case
from redtail.derived import DerivedMetric, measured_of
from redtail.derived import parse as derived_of
from redtail.errors import SpecError
from redtail.expectation import Expectation
from redtail.expectation import parse as expectations_of
from redtail.files import Reader, digest, path_of
from redtail.inputs import programs
from redtail.inputs import queues as own
from redtail.inputs import traces as tables
from redtail.inputs.code import Allowed, Code, Rule

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class LoadRequest:
    """A load that a group is asked to offer, in place of a number of users.

    Attributes:
        group: the group's name.
        share: of the link's rate.
        text: the load as it is printed.
        link: what results call the link.
        metric: what results call the link's utilization by the group.
        rate: of the link, in bit/s.
        speed_up: how much faster the link of the unconstrained network is.
        estimate: about how many users offer it, from the means of the model.
    """

    group: str
    share: float
    text: str
    link: str
    metric: str
    rate: float
    speed_up: float
    estimate: int


@dataclass(frozen=True)
class Plan:
    """An experiment that has been checked and expanded into cases and replications.

    Attributes:
        name: the experiment's name.
        description: its description, possibly empty.
        replications: number of runs of each case; with a stop rule, the largest.
        counts: the number of runs of each case, if these are not alike; then `replications` is the
            largest of them, and there is no stop rule.
        backend: the name of what makes the runs, if the experiment says so.
        report: names of the metrics that the experiment wants shown, which may have wildcards.
        derived: the metrics that its programs measure, and those that it derives from others, in
            an order in which they can be computed.
        expected: what has to hold of the results, which `redtail.studies.expect` judges.
        seed: where the random numbers start from.
        warnings: set-ups that are legal but degenerate, each a whole message.
        factors: the dotted keys of its factors.
        outline: lines that sum up the file.
        cases: every combination of factor values.
        file: the name of the experiment's file, when there is one.
        sets: the overrides it was checked with.
        code: the classes in Python that it names as queues and controllers; running it executes
            them.
        queues: these classes by their names, when they were loaded: `redtail.check` does not.
        users: for each case, the number of users of each group that was asked for by its load
            and calibrated.
        traces: the tables of connections that it names, and the files of its programs, by a hash
            of their content.
        programs: the command lines of its programs; running it executes them.
        stop: when a case has enough replications, if that depends on what they measure.
        allowed: the files and folders with further code that may be executed.
        text: the experiment as it was given.
        form: the form of the text: "toml" or "json".
        inputs: the files that it names, relative to its own folder or as it names them, and those
            that its classes import.
        checksums: of these files, as they were read.
        packages: the installed packages that its classes import, and their versions.
    """

    name: str
    description: str
    replications: int
    seed: int
    warnings: tuple[str, ...]
    factors: tuple[str, ...]
    outline: tuple[str, ...]
    cases: tuple[Case, ...]
    file: str | None
    sets: tuple[str, ...]
    code: tuple[Code, ...]
    queues: dict[str, own.Located]
    traces: dict[str, tables.Located | programs.Located]
    _native_plan: Any = field(repr=False)
    users: tuple[dict[str, int], ...] = ()
    stop: StopRule | None = None
    allowed: tuple[str, ...] = ()
    backend: str | None = None
    text: str = field(default="", repr=False)
    form: str = "toml"
    inputs: tuple[str, ...] = ()
    checksums: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    report: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    derived: tuple[DerivedMetric, ...] = ()
    expected: tuple[Expectation, ...] = ()
    programs: tuple[programs.Lines, ...] = ()

    @property
    def loaded(self) -> bool:
        """Whether it can be run: the code that it names, if any, has been loaded."""
        return not self.code or bool(self.queues)

    def require_loaded(self) -> None:
        """Refuse to run a plan whose code has not been loaded.

        Raises:
            SpecError: it has not.
        """
        if not self.loaded:
            raise SpecError(
                f"{self.name}: was checked without loading the code that it names; accepted: "
                "redtail.run, or a plan of redtail.experiment.prepare"
            )

    def runs_code(self, case: int) -> bool:
        """Return whether a case runs code of the user."""
        return bool(self.code) and _has_plugin(json.loads(self.example(case)))

    @property
    def runs(self) -> int:
        """Number of runs of all cases; with a stop rule, the largest."""
        return sum(self.counts) if self.counts else len(self.cases) * self.replications

    @property
    def first_runs(self) -> int:
        """Number of runs before a stop rule is looked at; without one, all."""
        return self.runs if self.stop is None else len(self.cases) * self.stop.at_least

    def with_counts(self, counts: Sequence[int]) -> Plan:
        """Return a plan without a stop rule whose cases have these numbers of replications."""
        return replace(self, counts=tuple(counts), replications=max(counts), stop=None)

    def has(self, case: int, replication: int) -> bool:
        """Return whether a replication of a case is among the runs; both numbers from 0."""
        return replication < (self.counts[case] if self.counts else self.replications)

    @property
    def at_least(self) -> int:
        """Number of runs that each case gets at least."""
        return self.replications if self.stop is None else self.stop.at_least

    def packets(self, case: int) -> float | None:
        """Return about how many packets the first bottleneck sends in a run of a case.

        None if that does not follow from its traffic, as with users who wait for answers.
        """
        # A stand-in for the native module may not have the method.
        found = getattr(self._native_plan, "packets", lambda case: None)(case)
        return None if found is None else float(found)

    def scenario(self, case: int, replication: int) -> str:
        """Return one run as canonical JSON, all defaults filled in; both numbers from 0."""
        (text,) = self.scenarios([(case, replication)])
        return text

    def scenarios(self, runs: Sequence[tuple[int, int]]) -> list[str]:
        """Return runs as canonical JSON.

        Args:
            runs: the case and the replication of each.
        """
        users = {case: list(self.users[case].items()) for case, _ in runs} if self.users else {}
        with native.translated():
            texts: list[str] = self._native_plan.texts(runs, users)
        return texts

    def example(self, case: int, replication: int = 0) -> str:
        """Return a run of a case; loads stand as about the users who offer them."""
        if self.users:
            return self.scenario(case, replication)
        users = {load.group: load.estimate for load in self.loads(case)}
        return replace(self, users=({},) * case + (users,)).scenario(case, replication)

    def loads(self, case: int) -> list[LoadRequest]:
        """Return the loads that groups of a case are asked for by."""
        with native.translated():
            # A stand-in for the native module may not have the method.
            found = getattr(self._native_plan, "loads", lambda case: "[]")(case)
        return [LoadRequest(**each) for each in json.loads(found)]

    def kernel_controls(self) -> list[tuple[str, str]]:
        """Return the congestion controls of a kernel that its cases ask for: keys and names."""
        if not any("kernel_control" in text for text in (self.text, *self.sets)):
            return []
        with native.translated():
            found = [
                each
                for case in range(len(self.cases))
                for each in native.module().kernel_controls(self.example(case))
            ]
        return list(dict.fromkeys(found))

    def program_groups(self) -> list[str]:
        """Return the names of the groups of programs in its cases."""
        if not self.programs:
            return []
        groups = [
            group["name"]
            for case in range(len(self.cases))
            for group in json.loads(self.example(case))["traffic"]
            if group["kind"] == "program"
        ]
        return list(dict.fromkeys(groups))

    def line_of(self, key: str) -> int | None:
        """Return the line of its file that gives a key; None if that is not known."""
        replaced = any(text.partition("=")[0].strip() == key for text in self.sets)
        if self.form != "toml" or replaced:
            return None
        # A stand-in for the native module may not have the function.
        found = getattr(native.module(), "line_of", lambda text, key: None)(self.text, key)
        return None if found is None else int(found)

    def unconstrained(self, case: int, replication: int, group: str, users: int) -> str:
        """Return a run of a group alone with so many users, where nothing limits its rate."""
        with native.translated():
            return str(self._native_plan.unconstrained(case, replication, group, users))


def _has_plugin(part: Any) -> bool:
    """Return whether there is a class of the user in a scenario: a queue or a controller."""
    if isinstance(part, dict):
        return isinstance(part.get("class"), str) or any(map(_has_plugin, part.values()))
    return isinstance(part, list) and any(map(_has_plugin, part))


def plan(
    text: str,
    *,
    file: str | None = None,
    sets: Sequence[str] = (),
    format: str = "toml",
    load: bool = False,
    refuse: bool = False,
    allow_code: Allowed = (),
    within: Path | None = None,
    given: Mapping[str, str] | None = None,
    confined: Path | None = None,
) -> Plan:
    """Check an experiment and expand it.

    Args:
        text: the experiment.
        file: its name for messages.
        sets: overrides of the form `key=value`, the value in TOML.
        format: "toml" or "json".
        load: whether the classes that it names are loaded, which executes their code. Without it
            nothing is executed; with it nothing is before everything else has been checked.
        refuse: whether code is refused that may not be executed.
        allow_code: files and folders outside the experiment's own whose code may be executed.
        within: the folder that counts as the experiment's own.
        given: the text of files that it names, in place of what is in the folder.
        confined: the folder that all files which it names must lie in; by default they may lie
            anywhere.

    Raises:
        SpecError: the experiment is not valid; the message says where and what is accepted.
    """
    rule = Rule.of(file, allow_code, within)
    resolver = own.Resolver(file, rule, refuse=refuse, load=False, confined=confined)
    found_tables = tables.Resolver(file, confined)
    found_programs = programs.Resolver(file, rule, refuse=refuse, confined=confined)
    with native.translated():
        read = Reader(resolver.folder, confined, given)

        def made() -> Any:
            return native.module().plan(
                text, file, list(sets), format, resolver, read, found_tables, found_programs
            )

        found = made()
        if load and found.plugins:
            resolver.load = True
            found = made()
        measured = measured_of(json.loads(getattr(found, "measures", "[]")))
        derived = derived_of(json.loads(getattr(found, "derived", "[]")), file, measured)
        cases = tuple(
            Case(dict(case["factors"]), dict(case["labels"]), case.get("settings"))
            for case in json.loads(found.cases)
        )
        inputs = tuple(
            dict.fromkeys(
                [
                    *read.names,
                    *found_tables.found,
                    *found_programs.names,
                    *_files(resolver.code, resolver.folder),
                ]
            )
        )
        return Plan(
            name=found.name,
            description=found.description or "",
            replications=found.replications,
            seed=found.seed,
            warnings=(*found.warnings, *found_tables.warnings),
            factors=tuple(found.factors),
            outline=tuple(found.outline),
            cases=cases,
            file=file,
            sets=tuple(sets),
            code=tuple(replace(resolver.code[name], key=key) for name, key, _ in found.plugins),
            queues=resolver.located({name: place for name, _, place in found.plugins}),
            traces={**found_tables.located(), **found_programs.found},
            programs=tuple(found_programs.code.values()),
            _native_plan=found,
            stop=StopRule.from_json(rule_of) if (rule_of := getattr(found, "stop", None)) else None,
            allowed=tuple(map(str, rule.allowed)),
            backend=found.backend,
            text=text,
            form=format,
            inputs=inputs,
            checksums=_checksums(resolver.folder, inputs),
            report=tuple(getattr(found, "report", ())),
            packages=dict(sorted({at for it in resolver.code.values() for at in it.installed})),
            derived=derived,
            expected=expectations_of(json.loads(getattr(found, "expected", "[]")), file, derived),
        )


def _files(code: Mapping[str, Code], folder: Path) -> Iterator[str]:
    """Yield the files with the code of an experiment, relative to its folder."""
    for each in code.values():
        for path in each.inputs:
            yield os.path.relpath(path, folder)


def _checksums(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the checksums of the files that an experiment names."""
    found = {}
    for name in names:
        with contextlib.suppress(OSError):  # gone again; what it had is in the keys of the runs
            found[name] = digest(folder / path_of(name))
    return found
