"""`redtail diff`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redtail.cli.compare import limits_of
from redtail.cli.exits import EXIT_FAILED
from redtail.cli.options import Format, Metrics, Out
from redtail.cli.output import complain, form_alone, print_wide, say
from redtail.cli.report import stored
from redtail.errors import SpecError

if TYPE_CHECKING:
    from redtail.analysis.results import Results


def diff(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD", help="A folder of results, or its URL, or an experiment in --out."
        ),
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
    form: Format = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Ask whether every number that was measured agrees bit for bit; without noise or "
            "tolerances.",
        ),
    ] = False,
    out: Out = "runs",
) -> None:
    """Compare two results of one experiment; exits with 1 if anything moved beyond noise.

    With --exact it exits with 1 if any measured number is another one.
    """
    from redtail import selection
    from redtail.analysis import moved

    if correction not in ("holm", "none"):
        raise SpecError(f"--correction {correction}: accepted: holm, none")
    if form is not None:
        form = form_alone(form, as_json)
    if exact:
        given: dict[str, object] = {
            "--metrics": metrics,
            "--tolerance": tolerance,
            "--tolerances": tolerances,
        }
        given |= {"--format": form}
        for option, value in given.items():
            if value:
                raise SpecError(f"{option}: does not go with --exact, which compares all numbers")
        _exactly(stored(old, out), stored(new, out), as_json)
        return
    before, after = stored(old, out), stored(new, out)
    limits = limits_of(tolerance, tolerances, [*before.metric_names, *after.metric_names])
    found = moved.diff(
        before,
        after,
        metrics=selection.split(metrics),
        tolerances=limits,
        correction=correction,  # type: ignore[arg-type]
    )
    if as_json:
        say(found.to_json())
    elif form is not None:
        say(found.table_text(form))
    else:
        if found.moved:
            print_wide(found.table())
        for line in found.only:
            say(f"missing: {line}")
        counts = ", ".join(f"{number} {verdict}" for verdict, number in found.counts.items())
        say(f"{'nothing moved' if found.same else 'moved'}: {counts}")
        for line in found.notes:
            say(f"note:    {line}")
    if found.only and (as_json or form is not None):
        complain("; ".join(found.only), "missing")
    if not found.same:
        raise typer.Exit(EXIT_FAILED)


def _exactly(before: Results, after: Results, as_json: bool) -> None:
    """Say whether two results agree bit for bit; exits with 1 if they do not."""
    from redtail.analysis.exact import exact
    from redtail.metrics import counted

    found = exact(before, after)
    if as_json:
        say(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
    else:
        for line in found.differences:
            say(f"differs: {line}")
        if found.same:
            say(
                f"equal: {counted(found.runs, 'run')} of both, "
                f"{counted(found.values, 'value')} and all tables, bit for bit"
            )
        else:
            count = (
                "1 run or case differs"
                if found.count == 1
                else f"{found.count} runs or cases differ"
            )
            say(f"{count}; the first differences are above")
    if not found.same:
        raise typer.Exit(EXIT_FAILED)
