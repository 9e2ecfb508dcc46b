"""`redtail pack`, and `redtail run ARCHIVE --verify`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redtail.cli.exits import EXIT_FAILED
from redtail.cli.options import Out
from redtail.cli.output import complain, say, warnings_shown
from redtail.cli.progress import progress_shown
from redtail.cli.report import stored

if TYPE_CHECKING:
    from redtail.repetition import Verified

_SHOWN = 10


def pack(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="The folder of an experiment's results or its URL, or the name of an experiment "
            "in --out.",
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
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs",
            metavar="FOLDER",
            help="Where files may be of which the results (of an older version) have no hash; "
            "default: --experiment.",
        ),
    ] = None,
    out: Out = "runs",
) -> None:
    """Make one archive with all that a reviewer needs to repeat a result."""
    from redtail import packing
    from redtail.store.runs import shown_size

    found = stored(folder, out)
    archive = packing.pack(found.folder, output, base=experiment, within=inputs)
    say(f"archive: {archive} ({shown_size(archive.stat().st_size)})")
    say(f"check:   redtail run {archive} --verify")


def verify(archive: Path, *, allow_code: Sequence[Path], jobs: int | None, as_json: bool) -> None:
    """Repeat the experiment of an archive, and say whether the bytes agree.

    Raises:
        typer.Exit: with 1, if a number differs, or bytes that no other version explains.
    """
    from redtail import packing

    options: dict[str, Any] = {"jobs": jobs}
    with warnings_shown(), progress_shown() as show:
        found = packing.verify(archive, allow_code=allow_code, progress=show, **options)
    if as_json:
        say(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
    else:
        for line in _lines(found):
            say(line)
    sys.stdout.flush()
    for text in found.why:
        complain(text, "note")
    for text in found.numbers[:_SHOWN]:
        complain(text, "differs")
    if len(found.numbers) > _SHOWN:
        complain(f"and {len(found.numbers) - _SHOWN} more values", "differs")
    if not found.confirmed:
        raise typer.Exit(EXIT_FAILED)


def _lines(found: Verified) -> Iterator[str]:
    """Yield what a verification has shown."""
    from redtail.metrics import counted
    from redtail.repetition import MAY_DIFFER

    for name, same in found.tables.items():
        yield f"{name}: {'every byte agrees' if same else 'the bytes differ'}"
    for name, same in found.files.items():
        what = "every value" if name in MAY_DIFFER else "every byte"
        yield f"{name}: {f'{what} agrees' if same else 'differs'}"
    runs = counted(found.runs, "run")
    if found.differing:
        yield f"{len(found.differing)} of {runs}: bytes differ"
    else:
        yield f"{runs} repeated: every byte of what they measured agrees"
    if found.numbers_agree:
        yield "numbers: all are equal"
    if found.unchecked:
        yield f"not compared: {', '.join(_grouped(found.unchecked))}"


def _grouped(names: Sequence[str]) -> Iterator[str]:
    """Yield names of entries, those of a folder below the results as one."""
    from redtail.metrics import counted

    groups: dict[str, list[str]] = {}
    for name in names:
        parts = name.split("/")
        groups.setdefault("/".join(parts[:2]) if len(parts) > 2 else name, []).append(name)
    for group, inside in groups.items():
        alone = inside == [group]
        yield group if alone else f"{group}/ ({counted(len(inside), 'file')})"
