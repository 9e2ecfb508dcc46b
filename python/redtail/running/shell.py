"""Programs of the user behind a bottleneck: one run in real time, which ends with a program."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail import backends, experiment
from redtail.backends import doctor
from redtail.backends.agent import Request
from redtail.backends.live import Live, reply_of
from redtail.backends.real import Stop
from redtail.errors import RunError, SpecError
from redtail.experiment import Toml
from redtail.files import path_of
from redtail.metrics import DEFINITIONS
from redtail.store import format, objects
from redtail.store.writing import explain_write_errors

if TYPE_CHECKING:
    from redtail.analysis.results import Results
    from redtail.engine.plans import Plan
    from redtail.engine.realtime import Programs
    from redtail.inputs import programs, queues, traces
    from redtail.outcomes import Outcome

GROUP = "shell"
"""What results call the traffic of the programs."""

# A group of hosts whose first connection would come after ten days.
_TRAFFIC = f"""
[[traffic]]
name = "{GROUP}"
kind = "arrivals"
gap = "864000 s"
size = "1 B"
tcp = "linux"
"""


class Shell(Live):
    """Makes one run with programs of the user, which no other run can stand for."""

    name = "live-shell"

    def __init__(self, programs: Programs, captures: Sequence[tuple[str, str]] = ()) -> None:
        self.programs = programs
        self.captures = captures
        self.began = time.time_ns()
        self.code: int | None = None
        self.invalid: str | None = None

    def identity(self) -> str:
        """Return what the backend `live` depends on, the programs and the present time."""
        outside = [self.programs.outside] if self.programs.outside else []
        words = " ".join([*outside, *self.programs.command])
        return f"{self.engine()} {words} {self.began}"

    def engine(self) -> str:
        """Return what the backend `live` depends on."""
        return super().identity()

    def own_names(self) -> set[str]:
        """Return those of the backend `live`, and what packets tell of the programs."""
        told = (each.name for each in DEFINITIONS if each.of == "groups of programs")
        return super().own_names() | {f"{GROUP}.{name}" for name in told}

    def run(
        self,
        scenario: str,
        cancel: Any = None,
        queues: Mapping[str, queues.Located] | None = None,
        traces: Mapping[str, traces.Located | programs.Located] | None = None,
    ) -> Outcome:
        """Make the run, in processes that have the terminal."""
        start = time.perf_counter()
        stop: Stop = cancel or Stop()
        request_from, request_to = os.pipe()
        reply_from, reply_to = os.pipe()
        agent = [sys.executable, "-P", "-m", "redtail.backends.agent"]
        with os.fdopen(request_to, "wb") as request, os.fdopen(reply_from, "rb") as reply:
            process = subprocess.Popen(
                [*agent, "--programs", str(request_from), str(reply_to)],
                pass_fds=(request_from, reply_to),
            )
            os.close(request_from)
            os.close(reply_to)
            stop.add(process)
            try:
                asked = Request(scenario, queues or {}, traces or {}, self.programs, self.captures)
                with contextlib.suppress(BrokenPipeError):  # its reply says why
                    request.write(asked.to_bytes())
                    request.flush()
                answer = reply_of(reply)
            finally:
                with contextlib.suppress(BrokenPipeError):
                    request.close()  # ends the agent's child, and with it all programs
                process.wait()
                stop.remove(process)
        if not answer:
            raise RunError(f"the agent ended without a result: {process.returncode}")
        outcome, self.invalid, self.code = self.measured(answer, scenario, start)
        return outcome


# What connects to the outside, the best first: slirp4netns reacts to losses, and pasta sends all
# that the receiver's window takes.
OUTSIDE = ("slirp4netns", "pasta")


def connection(choice: str) -> str | None:
    """Return the name of the program that connects to the outside; None for "off".

    Args:
        choice: "off", "auto" or a name.

    Raises:
        SpecError: it is not installed; the text says which package has it.
    """
    if choice == "off":
        return None
    names = OUTSIDE if choice == "auto" else (choice,)
    for name in names:
        if shutil.which(name):
            return name
    lacking = "; ".join(
        f"{name} is not installed (package "
        + ", ".join(f"{package} in {where}" for where, package in doctor.OUTSIDE[name].items())
        + ")"
        for name in names
    )
    raise SpecError(f"the outside cannot be connected: {lacking}", key="--outside")


def kept(plan: Plan, out: str, words: Sequence[str], servers: Sequence[str]) -> tuple[Plan, Path]:
    """Return a plan under the name of its next run, and the folder of the results, which is made.

    Each run has a number, a folder and a description of its own: none takes the place of another.

    Args:
        plan: as `planned` returns it.
        out: where results are kept.
        words: the program and its arguments.
        servers: the command lines of the servers.

    Raises:
        StoreError: the folder cannot be made.
    """
    url = objects.is_url(out)
    root = objects.own_copy_of(out) if url else path_of(out)
    there = {name.split("/")[0] for name in objects.Objects(out).there} if url else set()
    run = [f"$ {shlex.join(words)}", *(f"server: {line}" for line in servers)]
    run.append(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
    description = "\n".join([*filter(None, [plan.description]), *run])
    for number in itertools.count(1):
        name = f"{plan.name}, run {number}"
        folder = (root / format.folder_name(name, Shell.name)).absolute()
        if folder.name in there:
            continue
        with explain_write_errors(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            try:
                folder.mkdir()
            except FileExistsError:
                continue
        return replace(plan, name=name, description=description), folder
    raise AssertionError("there is no last number")


def logs(folder: str | os.PathLike[str] | None) -> list[Path]:
    """Return what the servers have printed: a file for each, in their order."""
    found = Path(folder).glob("server-*.log") if folder is not None else ()
    ours = [path for path in found if format.SERVER_LOG.fullmatch(path.name)]
    return sorted(ours, key=lambda path: (len(path.name), path.name))


def planned(file: Path, longest: str, sets: Sequence[str], **options: Any) -> Plan:
    """Return the plan of one run of a file with one group more, that of the programs.

    Args:
        file: the experiment; its own traffic is made as well.
        longest: the time after which the run ends in any case.
        sets: overrides of keys.
        **options: as for `redtail.check`.

    Raises:
        SpecError: the file is not valid, or describes more than one case.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        experiment.check(file)  # says why it cannot be read
        raise
    overrides = [*sets, f'duration="{longest}"', 'warmup="0 s"']
    source = Toml(text + _TRAFFIC, str(file))
    plan = experiment.prepare(source, **{**options, "set": overrides, "replications": 1})
    if len(plan.cases) > 1:
        raise SpecError(
            f"{file}: describes {len(plan.cases)} cases; accepted: one, so fix "
            f"{', '.join(plan.factors)} with --set",
            file=str(file),
        )
    return plan


REDTAIL = "REDTAIL_"
"""What the names of redtail's own variables begin with."""


def environment(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return the environment of the programs: that in which redtail was started, and the seed.

    Python and redtail change their own (`LC_CTYPE`, variables of libraries). Variables that are
    settings of redtail are for redtail; it adds the addresses of the run.
    """
    try:
        lines = Path("/proc/self/environ").read_bytes().split(b"\0")
        pairs = [line.partition(b"=") for line in lines if b"=" in line]
        own = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    except OSError:
        own = dict(os.environ)
    seed = json.loads(plan.scenario(0, 0))["seed"]
    mine = {name: value for name, value in own.items() if not name.startswith(REDTAIL)}
    return tuple({**mine, f"{REDTAIL}SEED": str(seed)}.items())


def execute(
    plan: Plan, programs: Programs, out: str, points: Sequence[tuple[str, str]] = ()
) -> tuple[Results, Shell]:
    """Run programs behind the bottleneck of a plan.

    Args:
        plan: as `kept` returns it.
        programs: what is run.
        out: where results are kept.
        points: what is captured, as for `captures.execute`.

    Returns:
        What was measured, and the backend: its `code` is the exit code of the command (None if the
        run ended first), its `invalid` says why the results cannot be trusted.

    Raises:
        SpecError: this host cannot run it.
    """
    from redtail.running import captures, runner

    backend = Shell(programs)
    backends.KNOWN[backend.name] = lambda: backend
    before = None
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C is for the program; when that has ended, so has the run.
        before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with captures.written(points) as backend.captures:
            results = runner.execute(plan, out=out, backend=backend.name)
    finally:
        del backends.KNOWN[backend.name]
        if before is not None:
            signal.signal(signal.SIGINT, before)
    return results, backend
