"""`redtail compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Unpack

import typer

from redtail.backends import DEFAULT
from redtail.cli.options import BackendName, Jobs, Out, with_plan_options
from redtail.cli.output import complain, print_wide, say, warnings_shown
from redtail.cli.progress import progress_shown
from redtail.errors import SpecError
from redtail.options import PlanOptions


@with_plan_options
def compare(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The experiment, in TOML, or the folder of its results."
        ),
    ],
    metric: Annotated[
        list[str],
        typer.Option("--metric", metavar="NAME", help="What to compare. May be repeated."),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="LABEL", help="Compare with this one; default: every pair."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="FACTOR", help="The factor compared; default: the queue, or the first."
        ),
    ] = None,
    correction: Annotated[
        str,
        typer.Option(
            "--correction", metavar="NAME", help="For many comparisons at once: holm or none."
        ),
    ] = "holm",
    jobs: Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparisons as JSON and nothing else.")
    ] = False,
    out: Out = "runs",
    backend: BackendName = DEFAULT,
    **given: Unpack[PlanOptions],
) -> None:
    """Compare cases replication by replication: difference, interval, whether they differ."""
    from redtail import experiment
    from redtail.analysis import results
    from redtail.files import path_of
    from redtail.running import runner

    if correction not in ("holm", "none"):
        raise SpecError(f"--correction {correction}: accepted: holm, none")
    if path_of(file).is_dir():
        if {"set", "replications", "until"} & given.keys():
            raise SpecError(f"{file} holds results; --set and replications go with a file")
        found = results.load(file)
    else:
        plan = experiment.prepare(file, **given)
        for text in plan.warnings:
            complain(text, "warning")
        with warnings_shown(), progress_shown() as show:
            found = runner.execute(plan, jobs=jobs, out=out, progress=show, backend=backend)
    with warnings_shown():
        compared = found.compare(metric, baseline=baseline, by=by, correction=correction)  # type: ignore[arg-type]
    if as_json:
        say(compared.to_json())
        return
    if len(compared):
        print_wide(compared.table())
