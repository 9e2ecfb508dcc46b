"""The functions of the native module, with the exceptions of `errors` and plain results.

Tests replace `native` here to give these functions a stand-in.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from redtail._module import native
from redtail.analysis.stopping import StopRule
from redtail.derived import DerivedMetric
from redtail.derived import parse as derived_of
from redtail.errors import Cancelled, QueueError, RedtailError, RunError, SpecError
from redtail.files import Reader, digest, path_of
from redtail.inputs import queues as own
from redtail.inputs import traces as tables
from redtail.inputs.code import Allowed, Code, Rule
from redtail.metrics import case_title
from redtail.outcomes import TABLES, Joined, Outcome, Outcomes, Rows

if TYPE_CHECKING:
    from pathlib import Path

    from redtail._native import CancelToken

BACKEND = "sim"
"""The name under which this engine's results are stored."""


@contextmanager
def _translated(queues: Mapping[str, own.Located] | None = None) -> Iterator[None]:
    """Turn the native module's exceptions into the family of `redtail.errors`."""
    module = native()
    try:
        yield
    except module.SpecError as error:
        raise SpecError(
            str(error),
            file=getattr(error, "file", None),
            line=getattr(error, "line", None),
            key=getattr(error, "key", None),
        ) from None
    except module.Cancelled:
        raise Cancelled() from None
    except (RedtailError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except getattr(module, "QueueFailed", ()) as error:
        raise own.failure(error, queues or {}) from error.__cause__
    except BaseException as error:  # a panic in Rust arrives as a BaseException
        raise RunError(
            f"the engine failed: {error}\n"
            "This is a fault in redtail; please report it together with the experiment file."
        ) from error


@dataclass(frozen=True)
class Case:
    """One combination of factor values.

    Attributes:
        factors: the value of each factor as the experiment gives it, by its dotted key.
        labels: a short text for each of these values.
        settings: every key that the case sets and its value, if these are not its factors.
    """

    factors: dict[str, Any]
    labels: dict[str, str]
    settings: dict[str, Any] | None = None

    @property
    def title(self) -> str:
        """The case in one line; empty for an experiment without factors."""
        return case_title(self.factors, self.labels)


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
        derived: the metrics that the experiment derives from others, in an order in which they can
            be computed.
        seed: where the random numbers start from.
        warnings: set-ups that are legal but degenerate, each a whole message.
        factors: the dotted keys of its factors.
        outline: lines that sum up the file.
        cases: every combination of factor values.
        file: the name of the experiment's file, when there is one.
        sets: the overrides it was checked with.
        code: the classes in Python that it names as queues, which running it executes.
        queues: these classes by their names, when they were loaded: `redtail.check` does not.
        users: for each case, the number of users of each group that was asked for by its load
            and calibrated.
        traces: the tables of connections that it names, by a hash of their content.
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
    traces: dict[str, tables.Located]
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
        with _translated():
            texts: list[str] = self._native_plan.texts(runs, users)
        return texts

    def example(self, case: int) -> str:
        """Return the first run of a case; loads stand as about the users who offer them."""
        if self.users:
            return self.scenario(case, 0)
        users = {load.group: load.estimate for load in self.loads(case)}
        return replace(self, users=({},) * case + (users,)).scenario(case, 0)

    def loads(self, case: int) -> list[LoadRequest]:
        """Return the loads that groups of a case are asked for by."""
        with _translated():
            # A stand-in for the native module may not have the method.
            found = getattr(self._native_plan, "loads", lambda case: "[]")(case)
        return [LoadRequest(**each) for each in json.loads(found)]

    def unconstrained(self, case: int, replication: int, group: str, users: int) -> str:
        """Return a run of a group alone with so many users, where nothing limits its rate."""
        with _translated():
            return str(self._native_plan.unconstrained(case, replication, group, users))


def _has_plugin(part: Any) -> bool:
    """Return whether there is a queue of kind `plugin` in a scenario."""
    if isinstance(part, dict):
        return part.get("kind") == "plugin" or any(map(_has_plugin, part.values()))
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
    with _translated():
        read = Reader(resolver.folder, confined, given)

        def made() -> Any:
            return native().plan(text, file, list(sets), format, resolver, read, found_tables)

        found = made()
        if load and found.plugins:
            resolver.load = True
            found = made()
        cases = tuple(
            Case(dict(case["factors"]), dict(case["labels"]), case.get("settings"))
            for case in json.loads(found.cases)
        )
        inputs = tuple(
            dict.fromkeys(
                [*read.names, *found_tables.found, *_files(resolver.code, resolver.folder)]
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
            traces=found_tables.located(),
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
            derived=derived_of(json.loads(getattr(found, "derived", "[]")), file),
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


def run_many(
    scenarios: Sequence[str],
    cancel: CancelToken | None = None,
    queues: Mapping[str, own.Located] | None = None,
    traces: Mapping[str, tables.Located] | None = None,
    columns: bool = False,
) -> list[Outcomes | RunError]:
    """Run scenarios one after the other.

    They are run without the interpreter lock, except for queues written in Python.

    Args:
        scenarios: the runs.
        cancel: stops them.
        queues: the classes that they name as queues.
        traces: the tables of connections that they name.
        columns: whether runs without series are wanted in columns alone, all at once.

    Returns:
        What they measured, in their order: outcomes of one run after the other, and in the place
        of a run that failed its error. Fewer when they were stopped.
    """
    classes = {name: located.load() for name, located in (queues or {}).items()} or None
    loaded = [located.load() for located in (traces or {}).values()] or None
    found: list[Outcomes | RunError] = []
    rest = list(scenarios)
    while rest:
        with _translated(queues):
            batch = native().run_many(rest, cancel, classes, loaded, columns)
        if len(batch):
            found.append(_Batch(batch))
        if batch.failure is None:
            break
        try:
            with _translated(queues):
                raise batch.failure
        except Cancelled:
            break
        except RunError as error:
            found.append(error)
        rest = rest[len(batch) + 1 :]
    return found


def run_one(
    scenario: str,
    cancel: CancelToken | None = None,
    queues: Mapping[str, own.Located] | None = None,
    traces: Mapping[str, tables.Located] | None = None,
) -> Outcome:
    """Run one scenario, without the interpreter lock, except for queues written in Python.

    Args:
        scenario: the run.
        cancel: stops it.
        queues: the classes that it names as queues.
        traces: the tables of connections that it names.

    Raises:
        Cancelled: `cancel` was set before the end.
        QueueError: a queue failed.
        RunError: the engine failed.
    """
    found = run_many([scenario], cancel, queues, traces)
    if not found:
        raise Cancelled()
    if isinstance(found[0], RunError):
        raise found[0]
    return found[0][0]


class _Batch:
    """What the native module measured in several runs."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self.wall_time_s: list[float] = batch.wall_time_s
        self.bottleneck_packets: list[int] = batch.bottleneck_packets
        self.has_series: list[bool] = batch.has_series

    def __len__(self) -> int:
        return len(self._batch)

    def __getitem__(self, index: int) -> Outcome:
        return _outcome(self._batch.result(index), self.wall_time_s[index])

    def rows(self, indices: Sequence[int], flows: Sequence[bool]) -> Rows:
        """Return some of the runs in columns."""
        found = self._batch.rows(indices, flows)
        without = Joined({}, bytes(4 * len(indices)), ())
        given = found.pop("tables")
        joined = {name: [Joined(*given[name]) if name in given else without] for name in TABLES}
        return Rows(**found, tables=joined)


def live_refusals(scenario: str, controls: Sequence[str] | None = None) -> list[tuple[str, str]]:
    """Return why a kernel cannot run a scenario.

    Args:
        scenario: the run.
        controls: the congestion controls that the kernel has; None for this computer's kernel.

    Returns:
        Keys of the experiment file, and reasons.
    """
    with _translated():
        return list(native().live_refusals(scenario, None if controls is None else list(controls)))


def live_queue_refusals(scenario: str, available: Sequence[str]) -> list[tuple[str, str]]:
    """Return why the kernel's own queues cannot stand at the links of a scenario.

    Args:
        scenario: the run.
        available: the kinds of queues that the kernel has, as `tc` calls them.

    Returns:
        Keys of the experiment file, and reasons.
    """
    with _translated():
        return list(native().live_queue_refusals(scenario, list(available)))


_FAILURES: Mapping[str, type[RedtailError]] = {
    "kernel": RunError,
    "experiment": SpecError,
    "queue": QueueError,
    "engine": RunError,
}
"""What a failure is raised as, by the name that replies have for what failed."""


def guest_request(
    scenario: str, traces: Mapping[str, tables.Located] | None, kernel_queues: bool
) -> bytes:
    """Return what the agent in a virtual machine is asked for.

    Args:
        scenario: the run.
        traces: the tables of connections that it names.
        kernel_queues: whether links have the kernel's own queues, in place of redtail's.
    """
    loaded = [located.load() for located in (traces or {}).values()]
    with _translated():
        request: bytes = native().guest_request(scenario, loaded, kernel_queues)
    return request


def run_outcome(reply: bytes, start: float, host: str) -> tuple[Outcome, str | None, int | None]:
    """Return what an agent's run has measured.

    The reply is data, whoever has written it: programs of the user run where the agent does.

    Args:
        reply: what the agent sent.
        start: `time.perf_counter()` when it began.
        host: whose kernel made it, for messages, such as "the guest".

    Returns:
        What was measured, why it must not be used, if there is a reason, and the exit code of the
        user's program, if there is one and it has ended by itself.

    Raises:
        RunError: the run failed there, or the reply is not one of a run.
        QueueError: a queue of the user failed.
        SpecError: the experiment, or a file that it names, is not what it was when it was checked.
    """
    try:
        ran, failed = native().run_reply(reply)
    except ValueError as error:
        raise RunError(f"{host}'s answer cannot be read: {error}") from None
    if ran is None:
        at, reason = failed
        raise _FAILURES[at](
            f"{host}'s kernel refused a step: {reason}" if at == "kernel" else reason
        )
    result, invalid, code = ran
    return _outcome(result, time.perf_counter() - start), invalid, code


def live_version() -> str:
    """Return the hash of the code that makes runs in real time; empty where there is none."""
    return str(getattr(native(), "live_version", str)())


@dataclass(frozen=True)
class Programs:
    """Programs of the user, between which the network of a run in real time lies.

    Attributes:
        command: a program and its arguments, as the user of the last group; the run ends with it.
        servers: command lines for `sh` on the serving side of the last group.
        show: how the state of the links is shown: "title" of the terminal, "lines" or "off".
        logs: the folder for what the servers print; None for standard error.
        outside: "pasta" or "slirp4netns", which connects the command to the world outside of the
            run; None for no connection.
        read_only: whether the programs may write to `writable`, a `/tmp` of their own and devices
            alone.
        writable: folders.
    """

    command: tuple[str, ...]
    servers: tuple[str, ...] = ()
    show: str = "off"
    logs: str | None = None
    outside: str | None = None
    read_only: bool = False
    writable: tuple[str, ...] = ()


def run_live(
    scenario: str,
    queues: Mapping[str, own.Located] | None = None,
    traces: Mapping[str, tables.Located] | None = None,
    programs: Programs | None = None,
    captures: Sequence[tuple[str, str]] = (),
    kernel_queues: bool = False,
) -> bytes:
    """Run one scenario in real time, in a process that `enter_namespaces` has prepared.

    Args:
        scenario: the run.
        queues: the classes that it names as queues.
        traces: the tables of connections that it names.
        programs: programs of the user, which end the run.
        captures: points and the files for the packets that pass them, as for `run_captured`.
        kernel_queues: whether links have the kernel's own queues, in place of redtail's.

    Returns:
        What was measured, for `run_outcome`.

    Raises:
        OSError: the kernel refused a step, which the text names.
        QueueError: a queue failed.
        RunError: the engine failed.
    """
    classes = {name: located.load() for name, located in (queues or {}).items()}
    loaded = [located.load() for located in (traces or {}).values()]
    refused = None
    with _translated(queues):
        try:
            reply: bytes = native().live_run(
                scenario,
                classes or None,
                loaded or None,
                programs,
                list(captures) or None,
                kernel_queues,
            )
        except OSError as error:
            refused = error
    if refused is not None:
        raise refused
    return reply


def failed_reply(at: str, reason: str) -> bytes:
    """Return the reply of an agent whose run failed, for `run_outcome`.

    Args:
        at: "kernel", "experiment", "queue" or "engine".
        reason: why.
    """
    reply: bytes = native().failed_reply(at, reason)
    return reply


def hide_process() -> None:
    """Hide memory and open files of this process, and of those that it forks, from programs.

    They are those of the user, in namespaces of this process (`PR_SET_DUMPABLE` in prctl(2)).
    """
    native().live_hide()


def enter_namespaces(*, processes: bool = False) -> None:
    """Move this process, which must have one thread, into a user namespace of its own.

    Args:
        processes: whether its next child begins a process namespace: at the end of that child the
            kernel ends all processes that it has started.

    Raises:
        OSError: the kernel, or a setting of it, forbids it.
    """
    if processes:
        native().live_enter_processes()
    else:
        native().live_enter()


def enter_network() -> None:
    """Move this thread into a network namespace of its own, after `enter_namespaces`.

    Raises:
        OSError: the kernel forbids it.
    """
    native().live_enter_network()


def run_captured(
    scenario: str,
    points: Sequence[tuple[str, str]],
    ip: int = 4,
    cancel: CancelToken | None = None,
    queues: Mapping[str, own.Located] | None = None,
    traces: Mapping[str, tables.Located] | None = None,
) -> Outcome:
    """Run one scenario and capture packets, without the interpreter lock.

    Args:
        scenario: the run.
        points: pairs of a point and the file for what passes it; points may share a file.
        ip: the version of IP that the headers show, 4 or 6.
        cancel: stops the run.
        queues: the classes that it names as queues.
        traces: the tables of connections that it names.

    Raises:
        SpecError: a point does not exist, or a packet is larger than IP's can be.
        OSError: a file cannot be written; it bears the file's name.
        Cancelled: `cancel` was set before the end.
        RunError: the engine failed.
    """
    start = time.perf_counter()
    failed = None
    classes = {name: located.load() for name, located in (queues or {}).items()}
    loaded = [located.load() for located in (traces or {}).values()]
    with _translated(queues):
        try:
            result = native().run_captured(scenario, list(points), ip, cancel, classes, loaded)
        except OSError as error:
            failed = error
    if failed is not None:
        raise failed
    return _outcome(result, time.perf_counter() - start)


def _outcome(result: Any, wall_time_s: float) -> Outcome:
    metrics: Mapping[str, float] = result.metrics
    return Outcome(
        # NaN equals nothing.
        metrics={name: value for name, value in metrics.items() if value == value},
        consecutive_losses={
            link: list(counts) for link, counts in result.consecutive_losses.items()
        },
        series=_plain(result.series),
        # A stand-in for the native module may not have them.
        tables=_plain(getattr(result, "tables", {})),
        names={kind: list(names) for kind, names in result.names.items()},
        bottleneck_packets=result.bottleneck_packets,
        events=result.events,
        wall_time_s=wall_time_s,
    )


def _plain(
    tables: Mapping[str, Mapping[str, tuple[str, bytes]]],
) -> dict[str, dict[str, tuple[str, bytes]]]:
    return {
        table: {name: (kind, bytes(data)) for name, (kind, data) in columns.items()}
        for table, columns in tables.items()
    }


def cancel_token() -> CancelToken:
    """Return a new token that stops the runs it is given to."""
    token: CancelToken = native().CancelToken()
    return token


def schema() -> dict[str, Any]:
    """Return the JSON schema of the experiment file."""
    found: dict[str, Any] = json.loads(native().schema())
    return found


def hint(word: str, known: Iterable[str]) -> str:
    """Return what a user probably meant by a word, as the end of a message.

    Words of ns-2, ns-3, tc and other programs are known too. Empty if nothing is like it.

    >>> hint("DropTail", ["red", "tail-drop"])
    '; did you mean "tail-drop" ("DropTail" in ns-2)?'
    """
    # A stand-in for the native module may not have the function.
    found = getattr(native(), "hint", None)
    return "" if found is None else str(found(word, list(known)))


def presets() -> Any:
    """Return the TCP presets as the native module describes them."""
    return json.loads(native().presets())


def metric_definitions() -> list[dict[str, Any]]:
    """Return the definitions of all metrics."""
    found: list[dict[str, Any]] = json.loads(native().metrics())
    return found


def tc_table() -> list[dict[str, str]] | None:
    """Return the keys of queues with their options of `tc`; None where the module lacks them."""
    table = getattr(native(), "tc_table", None)
    if table is None:
        return None
    found: list[dict[str, str]] = json.loads(table())
    return found


@dataclass(frozen=True)
class TcQueue:
    """A queue of the Linux kernel at the root of a device.

    Attributes:
        commands: the words after `tc`, in the order in which the commands must be given.
        kept: by key of the inmost queue, what the kernel keeps of a value that it cannot hold.
        words: by key of the inmost queue, the words of `tc`; under "" those without a key.
    """

    commands: tuple[tuple[str, ...], ...]
    kept: Mapping[str, str]
    words: Mapping[str, tuple[str, ...]]


def has_tc() -> bool:
    """Return whether the native module knows the options of `tc`: it does on Linux only."""
    return hasattr(native(), "tc_queue")


def tc_queue(queue: Mapping[str, Any], *, rate_bps: int, mtu: int, hz: int, device: str) -> TcQueue:
    """Return the kernel's queue for a queue.

    Args:
        queue: `{kind: {key: value}}`, inner queues in the same form.
        rate_bps: rate of the link, in bit/s.
        mtu: largest IP packet of the device, in bytes.
        hz: ticks of the kernel's clock in a second.
        device: the name of the device.

    Raises:
        SpecError: it is no queue, or the kernel cannot have it; `key` says where.
    """
    with _translated():
        text = native().tc_queue(json.dumps(queue), rate_bps, mtu, hz, device)
    found = json.loads(text)
    settings = found["queues"][-1]["settings"]
    words: dict[str, tuple[str, ...]] = {}
    for each in settings:
        words[each["key"]] = (*words.get(each["key"], ()), *each["words"])
    return TcQueue(
        commands=tuple(tuple(command) for command in found["commands"]),
        kept={each["key"]: each["kept"] for each in settings if each["kept"] is not None},
        words=words,
    )


def tc_differs(
    queue: Mapping[str, Any], shown: str, *, rate_bps: int, mtu: int, hz: int
) -> list[str]:
    """Return the differences between a queue and what a kernel has, in words.

    Args:
        queue: as for `tc_queue`.
        shown: the output of `tc -j -d qdisc show dev DEVICE`.
        rate_bps: as for `tc_queue`.
        mtu: as for `tc_queue`.
        hz: as for `tc_queue`.
    """
    with _translated():
        return list(native().tc_differs(json.dumps(queue), rate_bps, mtu, hz, shown))


def queue_keys(queue: Mapping[str, Any]) -> dict[str, Any]:
    """Return all keys of a queue with their values, defaults filled in.

    Args:
        queue: its table, with `kind`.

    Raises:
        SpecError: it is no queue.
    """
    keys = dict(queue)
    with _translated():
        found: dict[str, Any] = json.loads(
            native().queue_keys(json.dumps({keys.pop("kind"): keys}))
        )
    return found


def guest_programs(programs: Sequence[Sequence[str]]) -> bytes:
    """Return what the agent in a virtual machine is asked for: to run programs one by one."""
    request: bytes = native().guest_programs([list(words) for words in programs])
    return request


def guest_printed(reply: bytes) -> list[tuple[int | None, str, str]]:
    """Return the exit code of each program that ran in a virtual machine, and what it printed.

    Raises:
        RunError: a program could not be started there, or the reply is not one.
    """
    try:
        return list(native().guest_printed(reply))
    except OSError as error:
        raise RunError(f"the guest could not run a program: {error}") from None
    except ValueError as error:
        raise RunError(f"the guest's answer cannot be read: {error}") from None


def metric_names(scenario: str) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the names of the metrics that runs of a scenario can have.

    Args:
        scenario: the scenario's canonical JSON.

    Returns:
        Each name with the place of its definition among `metric_definitions`; and what stands in
        front of names that queues of users choose.

    Raises:
        SpecError: the text is not a scenario.
    """
    with _translated():
        known, free = native().metric_names(scenario)
    return dict(known), tuple(free)


def traffic_examples() -> dict[str, str]:
    """Return every kind of traffic with the keys of a small group of it."""
    return dict(native().traffic_examples())


def queue_examples() -> dict[str, str]:
    """Return every kind of queue with the keys of a small queue of it."""
    return dict(native().queue_examples())


def rate_bps(key: str, text: str) -> float:
    """Return a rate in bit/s from its text.

    Args:
        key: what it is for, for the message.
        text: the rate with its unit.

    Raises:
        SpecError: the text is no rate.
    """
    with _translated():
        return float(native().rate_bps(key, text))


def time_s(key: str, text: str) -> float:
    """Return a time in s from its text; arguments and errors as for `rate_bps`."""
    with _translated():
        return float(native().time_s(key, text))


def si_value(text: str) -> tuple[float, str]:
    """Return what `redtail.quantities.parse` returns."""
    with _translated():
        value, unit = native().si_value(text)
        return float(value), str(unit)


def advise(**situation: Any) -> dict[str, Any]:
    """Return parameters for a queue, as `redtail.lines.advice.parameters` describes them.

    Raises:
        SpecError: the situation makes no sense.
    """
    flows = situation["flows"]
    if not 0 <= flows < 2**64:
        raise SpecError(
            f"flows = {flows} is no number of flows to plan for; accepted: 1 to 1000000",
            key="flows",
        )
    with _translated():
        found: dict[str, Any] = json.loads(native().advise(**situation))
    return found


def code_version() -> str:
    """Return the hash of the engine's sources: results of another one are not reused."""
    return str(native().code_version())


def version() -> str:
    """Return redtail's version."""
    return str(native().version())
