"""`redtail figures`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from redtail.cli.options import Out
from redtail.cli.output import say


def figures(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="The folder of an experiment's results, or the name of an experiment in --out.",
        ),
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME...]", help="The figures; --list prints the names."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All figures that the results have data for.")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Print the names of the figures, and draw none.")
    ] = False,
    formats: Annotated[
        str, typer.Option("--format", metavar="NAMES", help="Of each figure: png, svg, pdf.")
    ] = "png",
    folder: Annotated[
        str | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Where to; default: figures in the folder of the results.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", min=1, metavar="N", help="Processes that draw; default: all processors."
        ),
    ] = None,
    out: Out = "runs",
) -> None:
    """Draw figures of results. Without names or --all: the few that `redtail run` draws."""
    from redtail import selection
    from redtail.cli.report import stored
    from redtail.errors import SpecError

    if bool(names) + every + listed > 1:
        raise SpecError("--all, --list and names: accepted: one of the three")
    results = stored(run, out)
    if listed:
        from redtail.display import plots  # loads Matplotlib

        for each in plots.drawings(results):
            say(each.name)
        return
    drawn = results.figures(
        folder,
        names=names or None,
        every=every,
        formats=selection.split(formats),
        jobs=jobs or os.cpu_count() or 1,
    )
    for path in drawn:
        say(str(path))
