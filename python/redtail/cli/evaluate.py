"""`redtail evaluate`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redtail.cli import completion
from redtail.cli.options import AllowCode, Jobs, OutFolder
from redtail.cli.output import complain, print_wide, runs_in_words, say, warnings_shown
from redtail.cli.progress import progress_shown
from redtail.errors import SpecError

if TYPE_CHECKING:
    from redtail.studies.evaluation import Evaluation


def evaluate(
    suite: Annotated[
        str | None,
        typer.Argument(
            metavar="SUITE",
            help="A built-in suite, such as rfc7928, or a folder with one of your own; without it: "
            "a list.",
            autocompletion=completion.suites,
        ),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue",
            metavar="QUEUE",
            help="A queue to examine: a kind, a TOML file with its table, or a plug-in such as "
            "mine.py:Mine or mine.wasm. May be repeated; without it the suite's usual ones.",
        ),
    ] = None,
    tcp: Annotated[
        list[str] | None,
        typer.Option(
            "--tcp",
            metavar="TCP",
            help="A congestion control to examine: a preset, a TOML file with its table, or a "
            "plug-in. May be repeated; without it the suite's usual ones.",
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option("--scale", metavar="SCALE", help="How much is run: quick or full."),
    ] = "quick",
    section: Annotated[
        list[str] | None,
        typer.Option("--section", metavar="ID", help="Run this section alone. May be repeated."),
    ] = None,
    league: Annotated[
        bool,
        typer.Option("--league", help="Examine all kinds of queues, or all presets of TCP."),
    ] = False,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            metavar="NAME",
            help="A kernel that runs what it can besides the simulator, for instance linux.",
            autocompletion=completion.backends,
        ),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(
            "--pages", metavar="DIR", help="Also write the sheet and the league there, as pages."
        ),
    ] = None,
    jobs: Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all of it as JSON and nothing else.")
    ] = False,
    out: OutFolder = "runs",
    allow_code: AllowCode = None,
) -> None:
    """Examine queues or congestion controls with a suite: sheet, score cards, league."""
    from redtail.store.objects import is_url
    from redtail.studies import evaluation, sheet, subjects

    if suite is None:
        say(sheet.listing())
        return
    if is_url(out):
        raise SpecError(f"--out {out}: a suite is run in a folder")
    study = evaluation.load(suite)
    assert study.subject is not None, "a suite has a subject"
    options = {"queue": queue, "tcp": tcp}
    named = options.pop(study.subject.kind)
    for name, given in options.items():
        if given:
            raise SpecError(
                f"--{name} {given[0]}: {study.name} examines what --{study.subject.kind} names"
            )
    start = time.monotonic()
    with warnings_shown(), progress_shown() as show:
        done = evaluation.evaluate(
            study,
            named=named,
            everything=league,
            scale=scale,
            sections=section,
            backend=backend,
            out=out,
            jobs=jobs,
            progress=show,
            allow_code=allow_code or (),
        )
    seconds = time.monotonic() - start
    written = sheet.write(done, pages)
    if as_json:
        say(sheet.to_json(done))
        _exit_for_failures(done)
        return
    print_wide(sheet.sections_table(done))
    if done.columns:
        print_wide(sheet.league_table(done))
        say(sheet.RANKS)
    say(f"examined: {subjects.listing(study.subject.kind, done.subjects)}")
    say(runs_in_words(done.run_count, done.reused, seconds))
    say(f"sheet:  {written[0]}")
    say(f"league: {written[1]}")
    say(f"cards:  {done.folder / 'cards'}/")
    for path in written:
        if pages is not None and path.parent == pages:
            say(f"page:   {path}")
    _exit_for_failures(done)


def _exit_for_failures(done: Evaluation) -> None:
    """Say which runs failed; exit with 1 if any did."""
    failed = [done.failed, *([done.kernel.failed] if done.kernel is not None else [])]
    lines = [f"{name}: {line}" for each in failed for name in each for line in each[name]]
    for line in lines:
        complain(line, "warning")
    if lines:
        raise typer.Exit(1)
