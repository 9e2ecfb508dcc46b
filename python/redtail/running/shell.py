"""Programs of the user behind a bottleneck: one run in real time, which ends with a program."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
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
from redtail.store import format, objects

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

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
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
        for log in logs(self.programs.logs):
            log.unlink()  # of the run before
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
                asked = Request(scenario, queues or {}, traces or {}, self.programs)
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


def logs_folder(plan: Plan, out: str) -> Path:
    """Return the folder for what the servers print: that of the results on this computer."""
    root = objects.copy_of(out) if objects.is_url(out) else path_of(out)
    return (root / format.folder_name(plan.name, Shell.name)).absolute()


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


def execute(plan: Plan, programs: Programs, out: str) -> tuple[Results, Shell]:
    """Run programs behind the bottleneck of a plan.

    Returns:
        What was measured, and the backend: its `code` is the exit code of the command (None if the
        run ended first), its `invalid` says why the results cannot be trusted.

    Raises:
        SpecError: this host cannot run it.
    """
    from redtail.running import runner

    backend = Shell(programs)
    backends.KNOWN[backend.name] = lambda: backend
    before = None
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C is for the program; when that has ended, so has the run.
        before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        results = runner.execute(plan, out=out, backend=backend.name)
    finally:
        del backends.KNOWN[backend.name]
        if before is not None:
            signal.signal(signal.SIGINT, before)
    return results, backend
