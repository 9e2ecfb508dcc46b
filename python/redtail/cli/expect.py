"""`redtail expect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Unpack

import typer

from redtail.cli.exits import EXIT_FAILED, EXIT_UNDECIDED
from redtail.cli.options import BackendName, Jobs, Out, with_plan_options
from redtail.cli.output import complain, print_wide, say, warnings_shown
from redtail.cli.progress import progress_shown
from redtail.options import PlanOptions

More = Annotated[
    int | None,
    typer.Option(
        "--more",
        min=2,
        metavar="N",
        help="Make more replications of what is undecided, up to N of a case.",
    ),
]
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Also write the verdicts as JUnit's XML."),
]


@with_plan_options
def expect(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Experiments, in TOML, with a table [expect]; or folders of such files.",
        ),
    ],
    more: More = None,
    junit: Junit = None,
    jobs: Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdicts as JSON and nothing else.")
    ] = False,
    out: Out = "runs",
    backend: BackendName = None,
    **given: Unpack[PlanOptions],
) -> None:
    """Run experiments and say whether what their table [expect] says holds.

    Exits with 0 if all holds, 1 if something fails, and 5 if nothing fails and something is
    undecided.
    """
    from redtail import experiment
    from redtail.errors import SpecError
    from redtail.store.writing import explain_write_errors, replace_file
    from redtail.studies import expect as judging
    from redtail.studies import expect_report as report
    from redtail.studies.definition import Judgement

    plans = [experiment.prepare(file, backend=backend, **given) for file in _all(files)]
    if len({plan.name for plan in plans}) < len(plans):
        raise SpecError("two experiments have one name; accepted: names of their own")
    for plan in plans:
        for text in plan.warnings:
            complain(text, "warning")
    with warnings_shown(), progress_shown() as show:
        found = judging.run(plans, most=more, jobs=jobs, out=out, backend=backend, progress=show)
    if junit is not None:
        with explain_write_errors(junit.parent):
            replace_file(junit, report.junit(found))
    if as_json:
        say(report.to_json(found))
    else:
        for each in found:
            print_wide(report.table(each))
            for line in report.reasons(each):
                say(line)
        say(report.in_words(found))
    match judging.worst(each.judgement for each in found):
        case Judgement.FAILS:
            raise typer.Exit(EXIT_FAILED)
        case Judgement.UNDECIDED:
            raise typer.Exit(EXIT_UNDECIDED)


def _all(files: list[Path]) -> list[Path]:
    """Return the files, and those of the folders among them, in alphabetical order."""
    from redtail.errors import SpecError

    found: list[Path] = []
    for file in files:
        inside = sorted(file.glob("*.toml")) if file.is_dir() else [file]
        if not inside:
            raise SpecError(f"{file}: has no file *.toml; accepted: experiments with [expect]")
        found += inside
    return found
