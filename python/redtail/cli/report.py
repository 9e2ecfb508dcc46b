"""`redtail report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redtail.cli.options import Metrics, Out
from redtail.cli.output import say

if TYPE_CHECKING:
    from redtail.analysis.results import Results


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="The folder of an experiment's results or its URL, or the name of an experiment "
            "in --out; several are put on one page.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file; default: report.html in the folder of the first RUN.",
        ),
    ] = None,
    metrics: Metrics = None,
    out: Out = "runs",
) -> None:
    """Write one HTML page of results, to hand over: it needs no network and no other file."""
    from redtail import page, selection

    found = [stored(each, out) for each in runs]
    say(f"report:  {page.write(found, output, metrics=selection.split(metrics))}")


def stored(name: str, out: str) -> Results:
    """Return the results in a folder, or those of an experiment in a store.

    Args:
        name: the folder or its URL, or the name of an experiment.
        out: the store.

    Raises:
        StoreError: there are none.
    """
    from redtail.analysis import stored
    from redtail.errors import StoreError
    from redtail.files import path_of
    from redtail.store import objects, runs

    if objects.is_url(name) or path_of(name).is_dir():
        return stored.load(name)
    if objects.is_url(out):
        return stored.load(f"{out.rstrip('/')}/{runs.find_there(out, name)}")
    root = path_of(out)
    if not root.is_dir():
        raise StoreError(
            f"{name}: there is no such folder; accepted: a folder with results or its URL, or with "
            "--out DIR the name of an experiment"
        )
    return stored.load(runs.find(root, name))
