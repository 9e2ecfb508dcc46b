"""`redtail import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redtail.cli.output import say, warnings_shown


def import_trace(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A table of connections: .csv, .parquet or .cvec."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write it as Parquet, in its normal form."),
    ] = None,
) -> None:
    """Check a table of connections for traffic of kind `trace`, and say what it amounts to."""
    from redtail.inputs.traces import read_trace

    with warnings_shown():
        trace = read_trace(file)
    say(trace.summary())
    if out is not None:
        trace.write(out)
        say(f"written: {out}")
