"""The command line: a thin layer over the Python interface, with a file for each command.

Exit codes: 0 done, 1 a run failed or its results could not be kept, 2 the input is not valid,
130 interrupted; `verify` ends with 3, 4 or 5 where nothing helped, `expect` with 5 where
something is undecided (`exits`). Standard output
carries results alone; progress, warnings and errors go to standard error.

It must not know how a run is made or a number is computed, and no other package may know it. Heavy
libraries are loaded only when a command needs them, and a command only when it is called.

    deferred    commands that are not loaded yet
    options     options that several commands have
    completion  names that a shell completes
    output      what commands print; `progress`: how far a campaign is; `exits`: how a command ends

Every other module is a command, a group of commands, or the options of one.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import sys
from typing import Annotated, Any

import typer

from redtail.cli.deferred import PlainGroup, deferred, group
from redtail.cli.exits import EXIT_FAILED
from redtail.cli.output import complain, prepare_streams, say
from redtail.errors import tells_no_memory

# By name: where the function is, and what `redtail --help` says, in this order.
_COMMANDS = {
    "init": (
        "init.init",
        "Write a commented experiment to start from, or list those there are.",
    ),
    "run": (
        "run.run",
        "Run an experiment: table, figures, data. Runs made before are not made again.",
    ),
    "shell": (
        "shell.shell",
        "Run a shell, or any program, behind the bottleneck of FILE, with real packets.",
    ),
    "figures": (
        "figures.figures",
        "Draw figures of results. Without names or --all: the few that `redtail run` draws.",
    ),
    "report": (
        "report.report",
        "Write one HTML page of results, to hand over: it needs no network and no other file.",
    ),
    "explain": (
        "explain.explain",
        "Say why: what happened in a run, and the story of a flow, from its events.",
    ),
    "qlog": (
        "qlog.qlog",
        "Write what connections of a run did as qlog, a file for each, which qvis draws.",
    ),
    "explore": (
        "explore.explore",
        "Open the laboratory in a browser: knobs, and two queues side by side. Ctrl-C ends it.",
    ),
    "replay": (
        "replay.replay",
        "Write a picture that moves, in one HTML file: the packets of a queue, and their fates.",
    ),
    "pack": (
        "pack.pack",
        "Make one archive with all that a reviewer needs to repeat a result.",
    ),
    "compare": (
        "compare.compare",
        "Compare cases, or with --backends what backends measure, replication by replication.",
    ),
    "diff": (
        "diff.diff",
        "Compare two results of one experiment; exits with 1 if anything moved beyond noise.",
    ),
    "expect": (
        "expect.expect",
        "Run experiments and say whether what their table [expect] says holds.",
    ),
    "check": (
        "check.check",
        "Check an experiment without running it, and say what it amounts to.",
    ),
    "doctor": (
        "doctor.doctor",
        "Say for each backend what it needs, what this computer has, and what brings the rest.",
    ),
    "schema": (
        "parts.schema",
        "Print the JSON schema of the experiment file, for editors that complete and check.",
    ),
    "list": (
        "parts.list_parts",
        "List queues, TCP presets, laws or traffic with parameters, metrics or events.",
    ),
    "advise": (
        "advise.advise",
        "Advise a queue for a line, with simulations of it. Goes on where it was stopped.",
    ),
    "estimate": (
        "estimate.estimate",
        "Estimate a line from a recording: rate, round trip, buffer, and who sent.",
    ),
    "measure": (
        "measure.measure",
        "Measure a line of yours: rates, delay under load, responsiveness; writes a recording.",
    ),
    "verify": (
        "verify.verify",
        "Say whether a change to a line helped, as promised: recordings from before and after it.",
    ),
    "watch": (
        "watch.watch",
        "Watch the queues of a device, and whether its shaper is above the line.",
    ),
    "parameters": (
        "parameters.parameters",
        "Compute parameters for one queue on one link by published rules, each with its source.",
    ),
    "tune": (
        "tune.tune",
        "Search parameters of a queue or law over an experiment's loads. Goes on if stopped.",
    ),
    "import": (
        "traces.import_trace",
        "Check a table of connections for traffic of kind `trace`, and say what it amounts to.",
    ),
    "reproduce": (
        "reproduce.reproduce",
        "Run a study, such as a published evaluation, with a verdict on each of its findings.",
    ),
    "evaluate": (
        "evaluate.evaluate",
        "Examine queues or congestion controls with a suite: sheet, score cards, league.",
    ),
    "validate": (
        "validate.validate",
        "Run a committed matrix of experiments under several backends, and tell where they differ.",
    ),
}
_RUNS_COMMANDS = {
    "list": (
        "stored.list_runs",
        "List the experiments: runs, size, newest, versions of the code.",
    ),
    "show": (
        "stored.show",
        "Show a run with scenario, manifest and metrics, or an experiment with its runs.",
    ),
    "watch": (
        "stored.watch",
        "Show how far a campaign is that another process makes, until it ends.",
    ),
    "verify": (
        "stored.verify",
        "Check all stored runs against their hashes; exits with 1 if anything is wrong.",
    ),
    "gc": (
        "stored.gc",
        "Remove leftovers and damaged runs, and on request runs that no results refer to.",
    ),
}
_KERNEL_COMMANDS = {
    "fetch": (
        "kernel.fetch",
        "Get a kernel from the packages of this computer's distribution, without root.",
    ),
    "add": (
        "kernel.add",
        "Keep a copy of a kernel of yours; it becomes the default.",
    ),
    "headers": (
        "kernel.headers",
        "Get the headers of a kernel, with which modules for it are built, without root.",
    ),
    "list": (
        "kernel.list_kernels",
        "List the kernels: release, origin, queues, congestion controls, size, and the default.",
    ),
    "remove": (
        "kernel.remove",
        "Remove a kernel; results that it has made stay.",
    ),
}


class _Commands(PlainGroup):
    """The command `redtail` with all others in it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            **deferred(_COMMANDS),
            "runs": group(
                "runs", "List, show, verify and clean what is kept of runs.", _RUNS_COMMANDS
            ),
            "kernel": group(
                "kernel",
                "Get, add, list and remove kernels for the backend linux, and headers for modules.",
                _KERNEL_COMMANDS,
            ),
        }


app = typer.Typer(
    cls=_Commands,
    help="What does this queue, with these parameters, do to this traffic on this link?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line."""
    prepare_streams()
    room = bytearray(_ROOM)
    try:
        try:
            code = app(prog_name="redtail", standalone_mode=False)
        except typer.Abort:
            code = EXIT_FAILED
        except Exception as error:
            if not (hasattr(error, "show") and hasattr(error, "exit_code")):
                raise
            # A mistake on the command line. Typer would write UTF-8, whatever the encoding is.
            error.show(sys.stderr)
            code = error.exit_code
        finally:
            sys.stdout.flush()
        sys.exit(code)
    except OSError as error:
        if error.filename is not None:
            complain(f"{error.filename}: {error.strerror}")
        elif error.errno != errno.EPIPE:  # the reader of a pipe may end early
            complain(f"standard output cannot be written: {error.strerror}")
        # The interpreter would write again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(EXIT_FAILED)
    except (MemoryError, ImportError, RuntimeError) as error:
        room.clear()
        if not _of_memory(error):
            raise
        # Nothing that has to be imported: there is no room for it.
        os.write(2, _NO_MEMORY)
        # Folders that are removed at the end of the program are; libraries, which may crash when
        # they end with half of what they need, are not ended.
        with contextlib.suppress(Exception):
            atexit._run_exitfuncs()
        os._exit(EXIT_FAILED)


_ROOM = 8 << 20
"""Bytes of memory that are given up where memory ends, to say so."""

_NO_MEMORY = (
    b"error: there is not enough memory for this command; what was finished is stored. More memory "
    b"(`ulimit -v`, the limit of a container or of a batch system), or fewer runs at the same time "
    b"with --jobs, help\n"
)


def _of_memory(error: BaseException | None) -> bool:
    """Whether an error comes from a lack of memory: also for a library, or for a thread."""
    while error is not None:
        if isinstance(error, MemoryError) or tells_no_memory(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _version(wanted: bool) -> None:
    if wanted:
        from redtail import facts

        say(f"redtail {facts.version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass
