"""One run of results: the options with which commands name it, and what finds it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redtail.cli import completion
from redtail.cli.report import stored
from redtail.errors import SpecError, StoreError

if TYPE_CHECKING:
    from redtail.analysis.results import Results

RunOf = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="The folder of an experiment's results or its URL, the name of an experiment in "
        "--out, or a run: its folder, or the beginning of its key.",
        autocompletion=completion.experiments,
    ),
]
CaseOf = Annotated[
    int | None,
    typer.Option(
        "--case", min=0, metavar="N", help="Which case, from 0; not needed if there is one."
    ),
]
ReplicationOf = Annotated[
    int | None,
    typer.Option(
        "--replication",
        min=0,
        metavar="N",
        help="Which replication, from 0; default: the first.",
    ),
]


def seconds(option: str, text: str | None) -> float | None:
    """Return a time in seconds; a number alone is one."""
    from redtail.scenario import TIMES, quantity

    if text is None:
        return None
    number: float | None
    try:
        number, unit = float(text), ""
    except ValueError:
        number, unit = quantity(text)
    if number is None or not 0 <= number < math.inf or unit not in ("", *TIMES):
        raise SpecError(f"{option} {text}: accepted: a time, such as '12.3 s'")
    return number * TIMES[unit or "s"]


def folder_of_run(run: str, out: str, case: int | None, replication: int | None) -> Path:
    """Return the folder of the run that is meant.

    Raises:
        SpecError: there is no such case or replication, or it is not said which.
        StoreError: there is no such run.
    """
    from redtail.files import path_of
    from redtail.store import format, objects, runs

    path = path_of(run)
    results = None
    if not format.is_run(path):
        try:
            results = stored(run, out)
        except StoreError:
            if objects.is_url(run) or objects.is_url(out) or not path_of(out).is_dir():
                raise
            path = runs.find(path_of(out), run)
            if not runs.is_run(path):
                raise
    if results is not None:
        return _of_results(results, case, replication)
    for option, given in (("--case", case), ("--replication", replication)):
        if given is not None:
            raise SpecError(f"{option}: {run} is one run")
    return path


def _of_results(results: Results, case: int | None, replication: int | None) -> Path:
    """Return the folder of one run of an experiment."""
    count = len(results.cases)
    if (case is None and count > 1) or (case is not None and case >= count):
        lines = [f"  {at}: {each.title or results.name}" for at, each in enumerate(results.cases)]
        said = (
            "choose one with --case N:" if case is None else f"there is no case {case}; accepted:"
        )
        raise SpecError("\n".join([f"{results.name} has {count} cases; {said}", *lines]))
    runs = results.cases[case or 0].runs
    if not runs:
        raise SpecError(f"case {case or 0} of {results.name} has no run: all of them failed")
    number = min(runs) if replication is None else replication
    if number not in runs:
        listed = ", ".join(map(str, sorted(runs)))
        raise SpecError(f"there is no replication {number} of this case; accepted: {listed}")
    return runs[number].folder
