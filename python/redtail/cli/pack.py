"""`redtail pack`, and `redtail run ARCHIVE --verify`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from redtail.cli.exits import EXIT_FAILED
from redtail.cli.options import Out
from redtail.cli.output import complain, say
from redtail.cli.progress import progress_shown
from redtail.cli.report import stored

_SHOWN = 10


def pack(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="The folder of an experiment's results, or the name of an experiment in --out.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The archive; default: the folder's name with .zip, here.",
        ),
    ] = None,
    experiment: Annotated[
        Path | None,
        typer.Option(
            "--experiment",
            metavar="FOLDER",
            help="Where the experiment's file is, if not where it was when it was run.",
        ),
    ] = None,
    out: Out = "runs",
) -> None:
    """Make one archive with all that a reviewer needs to repeat a result."""
    from redtail import packing
    from redtail.store.runs import shown_size

    found = stored(folder, out)
    archive = packing.pack(found.folder, output, base=experiment)
    say(f"archive: {archive} ({shown_size(archive.stat().st_size)})")
    say(f"check:   redtail run {archive} --verify")


def verify(archive: Path, *, allow_code: Sequence[Path], jobs: int | None) -> None:
    """Repeat the experiment of an archive, and say whether the bytes agree.

    Raises:
        typer.Exit: with 1, if a number differs.
    """
    from redtail import packing
    from redtail.metrics import counted

    options: dict[str, Any] = {"jobs": jobs}
    with progress_shown() as show:
        found = packing.verify(archive, allow_code=allow_code, progress=show, **options)
    for name, same in found.tables.items():
        say(f"{name}: {'every byte agrees' if same else 'the bytes differ'}")
    runs = counted(found.runs, "run")
    if found.differing:
        say(f"{len(found.differing)} of {runs}: bytes differ")
    else:
        say(f"{runs} repeated: every byte agrees")
    if found.numbers_agree:
        say("numbers: all are equal")
    sys.stdout.flush()
    for text in found.why:
        complain(text, "note")
    if not found.numbers_agree:
        for text in found.numbers[:_SHOWN]:
            complain(text, "differs")
        if len(found.numbers) > _SHOWN:
            complain(f"and {len(found.numbers) - _SHOWN} more numbers", "differs")
        raise typer.Exit(EXIT_FAILED)
