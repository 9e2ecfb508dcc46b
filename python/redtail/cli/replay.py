"""`redtail replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redtail.cli.one_run import CaseOf, ReplicationOf, RunOf, folder_of_run, seconds
from redtail.cli.options import Out
from redtail.cli.output import say, warnings_shown


def replay(
    run: RunOf,
    link: Annotated[
        str | None,
        typer.Option(
            "--link", metavar="NAME", help="The link whose queue is shown; default: the first."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="T",
            help="When the picture begins, such as '12.3 s'. Without --from and --to it is the "
            "whole run, or as much as fits around the moment in which the most happens.",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="T", help="When the picture ends.")
    ] = None,
    flow: Annotated[
        list[int] | None,
        typer.Option(
            "--flow",
            min=0,
            metavar="F",
            help="A flow to colour, by its number in the run; the others are pale. May be "
            "repeated.",
        ),
    ] = None,
    case: CaseOf = None,
    replication: ReplicationOf = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file; default: replay.html in the folder of the results.",
        ),
    ] = None,
    out: Out = "runs",
) -> None:
    """Write a picture that moves, in one HTML file: the packets of a queue, and their fates."""
    from redtail.running import replaying

    wanted = replaying.Wanted(
        link, seconds("--from", since), seconds("--to", until), tuple(flow or ())
    )
    with warnings_shown():
        folder = folder_of_run(run, out, case, replication)
        say(f"replay:  {replaying.write(folder, wanted, file=output)}")
