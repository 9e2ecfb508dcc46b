"""Runs a scenario in real time, or in a virtual machine: requests, replies, namespaces.

It must not know which process or machine a request goes to: `backends` decides that.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from redtail import native
from redtail.engine.batches import outcome, translated
from redtail.errors import QueueError, RedtailError, RunError, SpecError
from redtail.inputs import programs
from redtail.inputs import queues as own
from redtail.inputs import traces as tables
from redtail.outcomes import Outcome, Program

Traces: TypeAlias = Mapping[str, tables.Located | programs.Located]
"""The tables of connections and the files of programs that a scenario names."""


def live_refusals(scenario: str, controls: Sequence[str] | None = None) -> list[tuple[str, str]]:
    """Return why a kernel cannot run a scenario.

    Args:
        scenario: the run.
        controls: the congestion controls that the kernel has; None for this computer's kernel.

    Returns:
        Keys of the experiment file, and reasons.
    """
    with native.translated():
        return list(
            native.module().live_refusals(scenario, None if controls is None else list(controls))
        )


def live_queue_refusals(
    scenario: str, available: Sequence[str], filters: Sequence[str]
) -> list[tuple[str, str]]:
    """Return why the kernel's own queues cannot stand at the links of a scenario.

    Args:
        scenario: the run.
        available: the kinds of queues that the kernel has, as `tc` calls them.
        filters: the kinds of filters that it has.

    Returns:
        Keys of the experiment file, and reasons.
    """
    with native.translated():
        return list(native.module().live_queue_refusals(scenario, list(available), list(filters)))


_FAILURES: Mapping[str, type[RedtailError]] = {
    "kernel": RunError,
    "experiment": SpecError,
    "queue": QueueError,
    "engine": RunError,
    "program": RunError,
}
"""What a failure is raised as, by the name that replies have for what failed."""


def guest_request(scenario: str, traces: Traces | None, kernel_queues: bool) -> bytes:
    """Return what the agent in a virtual machine is asked for.

    Args:
        scenario: the run.
        traces: the tables of connections that it names.
        kernel_queues: whether links have the kernel's own queues, in place of redtail's.
    """
    loaded, files = _loaded(traces)
    with native.translated():
        request: bytes = native.module().guest_request(
            scenario, loaded, kernel_queues, list(files.items())
        )
    return request


def _loaded(traces: Traces | None) -> tuple[list[Any], dict[str, bytes]]:
    """Return the tables that a scenario names, and the contents of the files of its programs."""
    given = (traces or {}).values()
    loaded = [each.load() for each in given if isinstance(each, tables.Located)]
    files = {each.name: each.load() for each in given if isinstance(each, programs.Located)}
    return loaded, files


def run_outcome(
    reply: bytes, start: float, host: str, scenario: str = ""
) -> tuple[Outcome, str | None, int | None]:
    """Return what an agent's run has measured.

    The reply is data, whoever has written it: programs of the user run where the agent does.

    Args:
        reply: what the agent sent.
        start: `time.perf_counter()` when it began.
        host: whose kernel made it, for messages, such as "the guest".
        scenario: the run, which says what its programs measure.

    Returns:
        What was measured, why it must not be used, if there is a reason, and the exit code of the
        user's program, if there is one and it has ended by itself.

    Raises:
        RunError: the run failed there, or the reply is not one of a run.
        QueueError: a queue of the user failed.
        SpecError: the experiment, or a file that it names, is not what it was when it was checked.
    """
    try:
        ran, failed = native.module().run_reply(reply)
    except ValueError as error:
        raise RunError(f"{host}'s answer cannot be read: {error}") from None
    if ran is None:
        at, reason = failed
        raise _FAILURES[at](
            f"{host}'s kernel refused a step: {reason}" if at == "kernel" else reason
        )
    result, invalid, code, left = ran
    found = outcome(result, time.perf_counter() - start)
    if left:
        programs = tuple(map(_program, left))
        metrics = found.metrics | program_measures(scenario, left)
        found = replace(found, programs=programs, metrics=metrics)
    return found, invalid, code


def _program(left: Any) -> Program:
    """Return what the native module says of a program, as plain data."""
    started, ended = left.times
    return Program(
        group=left.group,
        flow=left.flow,
        role=left.role,
        code=left.code,
        signal=left.signal,
        ended=left.ended,
        started_s=started,
        ended_s=ended,
        output=bytes(left.output),
        output_cut=left.output_cut,
        errors=bytes(left.errors),
        files={name: bytes(content) for name, content in left.files},
        left_out=tuple(left.left_out),
    )


class Left(Protocol):
    """What a program of a group left; `redtail._native.ProgramReport` is one."""

    @property
    def group(self) -> str:
        """The name of its group."""

    @property
    def flow(self) -> int:
        """The number of its pair."""

    @property
    def role(self) -> str:
        """Whether it is the "client" or the "server"."""

    @property
    def output(self) -> bytes:
        """What it printed to standard output."""

    @property
    def output_cut(self) -> int:
        """Bytes of standard output that are not kept."""

    @property
    def files(self) -> Sequence[tuple[str, bytes]]:
        """The names and contents of its files in `{out}`."""

    @property
    def left_out(self) -> Sequence[str]:
        """The names of files that are not kept."""


def program_measures(scenario: str, left: Iterable[Left]) -> dict[str, float]:
    """Return what the programs of a run measured, by the names of the metrics.

    Args:
        scenario: the run, whose groups say where in the outputs each number stands.
        left: what their programs left.

    Raises:
        RunError: a number is not there; the text says what is.
    """
    given = [
        (
            each.group,
            each.flow,
            each.role == "server",
            each.output,
            each.output_cut > 0,
            list(each.files),
            list(each.left_out),
        )
        for each in left
    ]
    with native.translated():
        try:
            return dict(native.module().program_measures(scenario, given))
        except ValueError as error:
            raise RunError(str(error)) from None


def live_version() -> str:
    """Return the hash of the code that makes runs in real time; empty where there is none."""
    return str(getattr(native.module(), "live_version", str)())


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
        environment: names and values of their environment, to which redtail adds the addresses;
            None for that of the process that makes the run.
    """

    command: tuple[str, ...]
    servers: tuple[str, ...] = ()
    show: str = "off"
    logs: str | None = None
    outside: str | None = None
    read_only: bool = False
    writable: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] | None = None


def run_live(
    scenario: str,
    queues: Mapping[str, own.Located] | None = None,
    traces: Traces | None = None,
    ours: Programs | None = None,
    captures: Sequence[tuple[str, str]] = (),
    kernel_queues: bool = False,
) -> bytes:
    """Run one scenario in real time, in a process that `enter_namespaces` has prepared.

    Args:
        scenario: the run.
        queues: the classes that it names as queues.
        traces: the tables of connections that it names.
        ours: programs of the user, which end the run.
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
    loaded, files = _loaded(traces)
    refused = None
    with translated(queues):
        try:
            reply: bytes = native.module().live_run(
                scenario,
                classes or None,
                loaded or None,
                ours,
                list(captures) or None,
                kernel_queues,
                files or None,
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
    reply: bytes = native.module().failed_reply(at, reason)
    return reply


def hide_process() -> None:
    """Hide memory and open files of this process, and of those that it forks, from programs.

    They are those of the user, in namespaces of this process (`PR_SET_DUMPABLE` in prctl(2)).
    """
    native.module().live_hide()


def enter_namespaces(*, processes: bool = False) -> None:
    """Move this process, which must have one thread, into a user namespace of its own.

    Args:
        processes: whether its next child begins a process namespace: at the end of that child the
            kernel ends all processes that it has started.

    Raises:
        OSError: the kernel, or a setting of it, forbids it.
    """
    if processes:
        native.module().live_enter_processes()
    else:
        native.module().live_enter()


def enter_network() -> None:
    """Move this thread into a network namespace of its own, after `enter_namespaces`.

    Raises:
        OSError: the kernel forbids it.
    """
    native.module().live_enter_network()


def guest_programs(programs: Sequence[Sequence[str]]) -> bytes:
    """Return what the agent in a virtual machine is asked for: to run programs one by one."""
    request: bytes = native.module().guest_programs([list(words) for words in programs])
    return request


def guest_printed(reply: bytes) -> list[tuple[int | None, str, str]]:
    """Return the exit code of each program that ran in a virtual machine, and what it printed.

    Raises:
        RunError: a program could not be started there, or the reply is not one.
    """
    try:
        return list(native.module().guest_printed(reply))
    except OSError as error:
        raise RunError(f"the guest could not run a program: {error}") from None
    except ValueError as error:
        raise RunError(f"the guest's answer cannot be read: {error}") from None
