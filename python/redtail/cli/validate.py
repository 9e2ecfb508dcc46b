"""`redtail validate`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from redtail.cli.compare import exit_for, names_of, say_failures
from redtail.cli.options import Jobs, Out, Replications
from redtail.cli.output import complain, print_wide, say, warnings_shown
from redtail.cli.progress import progress_shown


def validate(
    study: Annotated[
        Path | None,
        typer.Option(
            "--study",
            metavar="DIR",
            help="A study of your own with a table [gaps]; without it the committed matrix.",
        ),
    ] = None,
    backends: Annotated[
        str | None,
        typer.Option(
            "--backends",
            metavar="NAMES",
            help="What is compared, each of the others with the first; without it sim,linux.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="PATTERN",
            help="Cases of the matrix, for instance 'fast/red/*', '*/pie*' or web; '!tcp' leaves "
            "out. May be repeated.",
        ),
    ] = None,
    replications: Replications = None,
    at_most: Annotated[
        int | None,
        typer.Option(
            "--at-most",
            min=2,
            metavar="N",
            help="Cases that are not found inside get twice as many replications, again and "
            "again, up to N.",
        ),
    ] = None,
    stored_only: Annotated[
        bool,
        typer.Option(
            "--stored",
            help="Make no run: compare what is stored, of one call or of several, and name the "
            "cases without runs.",
        ),
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Print the names of the cases, and run nothing.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write all gaps there, in Markdown."),
    ] = None,
    explanations: Annotated[
        Path | None,
        typer.Option(
            "--explanations",
            metavar="FILE.toml",
            help="Texts for cells outside: tables `explanation` with pattern, metric and text.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 if a cell is outside its tolerance.")
    ] = False,
    jobs: Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all cells as JSON and nothing else.")
    ] = False,
    out: Out = "runs",
) -> None:
    """Run a committed matrix of experiments under several backends, and tell where they differ."""
    from redtail.studies import gaps
    from redtail.studies import gaps_report as reporting

    if listed:
        for name in gaps.names(only or (), gaps.read(study)):
            say(name)
        return
    chosen = None if backends is None else names_of(backends)
    start = time.monotonic()
    with warnings_shown(), progress_shown() as show:
        found = gaps.validate(
            chosen,
            study=gaps.read(study),
            only=only or (),
            replications=replications,
            at_most=at_most,
            explanations=explanations,
            jobs=jobs,
            out=out,
            progress=show,
            stored_only=stored_only,
        )
    written = None if report is None else reporting.write(found, report)
    if as_json:
        say(json.dumps(found.as_json(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print_wide(reporting.table(found))
        for text in reporting.summaries(found):
            say(text)
        for text in reporting.left_out(found):
            say(text)
        if found.absent:
            say(f"{reporting.absent(found)}: {', '.join(found.absent)}")
        results = [each for of in found.studies.values() for each in of.results]
        runs = sum(each.run_count for each in results)
        reused = sum(each.reused for each in results)
        say(f"{runs} runs, {reused} of them reused, in {time.monotonic() - start:.1f} s")
        if written is not None:
            say(f"report:  {written}")
    for each in found.stale:
        complain(
            f"no cell that the explanation of {each.pattern}, {each.metric}, is for is outside",
            "warning",
        )
    failed = False
    for of in found.studies.values():
        failed = say_failures(of.results) or failed
    outside = found.with_verdict("outside") if check else []
    exit_for([cell.gap for cell in outside], failed)
