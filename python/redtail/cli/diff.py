"""`redtail diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redtail.cli.compare import limits_of
from redtail.cli.exits import EXIT_FAILED
from redtail.cli.options import Metrics, Out
from redtail.cli.output import complain, print_wide, say
from redtail.cli.report import stored
from redtail.errors import SpecError


def diff(
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="A folder of results, or an experiment in --out.")
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same, to compare with OLD.")],
    metrics: Metrics = None,
    tolerance: Annotated[
        list[str] | None,
        typer.Option(
            "--tolerance",
            metavar="METRIC=VALUE",
            help="How far a metric may move: 'goodput=1.5 %', 'queue_delay_mean=2 ms', "
            "'loss=15 % or 0.2 points'. May be repeated.",
        ),
    ] = None,
    tolerances: Annotated[
        Path | None,
        typer.Option(
            "--tolerances",
            metavar="FILE.toml",
            help='The same in a file, a line METRIC = "VALUE" each; --tolerance goes before it.',
        ),
    ] = None,
    correction: Annotated[
        str,
        typer.Option(
            "--correction", metavar="NAME", help="For many comparisons at once: holm or none."
        ),
    ] = "holm",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print every comparison as JSON and nothing else.")
    ] = False,
    out: Out = "runs",
) -> None:
    """Compare two results of one experiment; exits with 1 if anything moved beyond noise."""
    from redtail import selection
    from redtail.analysis import moved

    if correction not in ("holm", "none"):
        raise SpecError(f"--correction {correction}: accepted: holm, none")
    limits = limits_of(tolerance, tolerances)
    before, after = stored(old, out), stored(new, out)
    found = moved.diff(
        before,
        after,
        metrics=selection.split(metrics),
        tolerances=limits,
        correction=correction,  # type: ignore[arg-type]
    )
    if as_json:
        say(found.to_json())
    else:
        if found.moved:
            print_wide(found.table())
        for line in found.only:
            say(f"missing: {line}")
        counts = ", ".join(f"{number} {verdict}" for verdict, number in found.counts.items())
        say(f"{'nothing moved' if found.same else 'moved'}: {counts}")
        for line in found.notes:
            say(f"note:    {line}")
    if found.only and as_json:
        complain("; ".join(found.only), "missing")
    if not found.same:
        raise typer.Exit(EXIT_FAILED)
