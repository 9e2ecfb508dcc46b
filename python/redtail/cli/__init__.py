"""The command line: a thin layer over the Python interface, with a file for each command.

Exit codes: 0 done, 1 a run failed or its results could not be kept, 2 the input is not valid,
130 interrupted. Standard output carries results alone; progress, warnings and errors go to
standard error.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from redtail.cli import (
    advise,
    check,
    compare,
    diff,
    doctor,
    estimate,
    init,
    kernel,
    pack,
    parameters,
    parts,
    report,
    reproduce,
    run,
    shell,
    stored,
    traces,
    tune,
    validate,
)
from redtail.cli.exits import EXIT_FAILED, reported
from redtail.cli.output import complain, say

app = typer.Typer(
    help="What does this queue, with these parameters, do to this traffic on this link?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line."""
    try:
        try:
            app(prog_name="redtail")
        finally:
            if sys.stdout is not None:  # None if the caller has closed it
                sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            complain(f"{error.filename}: {error.strerror}")
        elif error.errno != errno.EPIPE:  # the reader of a pipe may end early
            complain(f"standard output cannot be written: {error.strerror}")
        # The interpreter would write again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(EXIT_FAILED)


def _version(wanted: bool) -> None:
    if wanted:
        from redtail import _engine

        say(f"redtail {_engine.version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


# In the order in which `redtail --help` lists them.
_COMMANDS: dict[str, Callable[..., None]] = {
    "init": init.init,
    "run": run.run,
    "shell": shell.shell,
    "report": report.report,
    "pack": pack.pack,
    "compare": compare.compare,
    "diff": diff.diff,
    "check": check.check,
    "doctor": doctor.doctor,
    "schema": parts.schema,
    "list": parts.list_parts,
    "advise": advise.advise,
    "estimate": estimate.estimate,
    "parameters": parameters.parameters,
    "tune": tune.tune,
    "import": traces.import_trace,
    "reproduce": reproduce.reproduce,
    "validate": validate.validate,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(reported(_command))

_runs = typer.Typer(help="List, show, verify and clean what is kept of runs.", no_args_is_help=True)
_RUNS_COMMANDS: dict[str, Callable[..., None]] = {
    "list": stored.list_runs,
    "show": stored.show,
    "watch": stored.watch,
    "verify": stored.verify,
    "gc": stored.gc,
}
for _name, _command in _RUNS_COMMANDS.items():
    _runs.command(_name)(reported(_command))
app.add_typer(_runs, name="runs")

_kernels = typer.Typer(
    help="Get, add, list and remove kernels for the backend linux.", no_args_is_help=True
)
_KERNEL_COMMANDS: dict[str, Callable[..., None]] = {
    "fetch": kernel.fetch,
    "add": kernel.add,
    "list": kernel.list_kernels,
    "remove": kernel.remove,
}
for _name, _command in _KERNEL_COMMANDS.items():
    _kernels.command(_name)(reported(_command))
app.add_typer(_kernels, name="kernel")
