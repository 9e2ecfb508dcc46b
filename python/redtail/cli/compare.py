"""`redtail compare`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from redtail.cli import completion
from redtail.cli.exits import EXIT_FAILED
from redtail.cli.options import BackendName, Format, Jobs, Out, with_plan_options
from redtail.cli.output import complain, form_alone, print_wide, say, warnings_shown
from redtail.cli.progress import progress_shown
from redtail.errors import SpecError
from redtail.options import PlanOptions

if TYPE_CHECKING:
    from redtail.analysis.gap import Gap
    from redtail.analysis.results import Results
    from redtail.analysis.tolerances import Tolerances


Backends = Annotated[
    str | None,
    typer.Option(
        "--backends",
        metavar="NAMES",
        help="Compare what these backends measure, not the cases: sim,live. Each of the others is "
        "compared with the first.",
    ),
]
ToleranceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tolerance",
        metavar="METRIC=VALUE",
        help="How far backends may be apart: 'goodput=1.5 %', 'queue_length_mean=3 packets', "
        "'loss=15 % or 0.2 points'. May be repeated.",
    ),
]
ToleranceFile = Annotated[
    Path | None,
    typer.Option(
        "--tolerances",
        metavar="FILE.toml",
        help='The same in a file, a line METRIC = "VALUE" each; --tolerance goes before it.',
    ),
]
Check = Annotated[
    bool,
    typer.Option("--check", help="With --backends: exit with 1 if one is outside its tolerance."),
]
Figures = Annotated[
    bool, typer.Option("--figures/--no-figures", help="With --backends: draw figures.")
]


@with_plan_options
def compare(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The experiment, in TOML, or the folder of its results or its URL."
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="What to compare. May be repeated. --metrics names families too; with --backends "
            "both may be left out.",
            autocompletion=completion.metrics,
        ),
    ] = None,
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
        str | None,
        typer.Option(
            "--correction",
            metavar="NAME",
            help="For many comparisons at once: holm (the default) or none.",
        ),
    ] = None,
    equal_within: Annotated[
        list[str] | None,
        typer.Option(
            "--equal-within",
            metavar="MARGIN",
            help="Also test whether cases are equal within '2 %' of the baseline's mean, or of one "
            "metric: 'goodput=2 %', 'loss=0.2 points'. May be repeated.",
        ),
    ] = None,
    backends: Backends = None,
    tolerance: ToleranceOption = None,
    tolerances: ToleranceFile = None,
    check: Check = False,
    figures: Figures = True,
    jobs: Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparisons as JSON and nothing else.")
    ] = False,
    form: Format = None,
    out: Out = "runs",
    backend: BackendName = None,
    **given: Unpack[PlanOptions],
) -> None:
    """Compare cases, or with --backends what backends measure, replication by replication."""
    from redtail import experiment
    from redtail.analysis import stored
    from redtail.analysis.equivalence import Margins
    from redtail.running import runner

    if form is not None:
        form = form_alone(form, as_json)
    if backends is not None:
        _refuse({"--baseline": baseline, "--by": by, "--correction": correction}, "cases")
        _refuse({"--backend": backend}, "one backend")
        _refuse({"--equal-within": ", ".join(equal_within) if equal_within else None}, "cases")
        if _holds_results(file):
            raise SpecError(f"{file} holds results; --backends goes with an experiment file")
        limits = (tolerance, tolerances)
        if form is not None:
            raise SpecError("--format: goes with cases; accepted: --backends with --json")
        _compare_backends(
            Path(file), backends, metric, limits, check, figures, jobs, as_json, out, given
        )
        return
    alone = {"--tolerance": tolerance, "--tolerances": tolerances, "--check": check or None}
    for option, value in alone.items():
        if value:
            raise SpecError(f"{option}: goes with --backends")
    if not metric and not given.get("metrics"):
        raise SpecError("--metric NAME is missing: what to compare; it may be repeated")
    correction = correction or "holm"
    if correction not in ("holm", "none"):
        raise SpecError(f"--correction {correction}: accepted: holm, none")
    if equal_within:
        Margins(equal_within, "--equal-within ")  # a mistake is found before anything is run
    if _holds_results(file):
        if {"set", "replications", "until"} & given.keys():
            raise SpecError(f"{file} holds results; --set and replications go with a file")
        found = stored.load(file)
    else:
        plan = experiment.prepare(Path(file), **given)
        for text in plan.warnings:
            complain(text, "warning")
        with warnings_shown(), progress_shown() as show:
            found = runner.execute(plan, jobs=jobs, out=out, progress=show, backend=backend)
    metric = metric or found.select(given.get("metrics") or ())
    with warnings_shown():
        compared = found.compare(
            metric,
            baseline=baseline,
            by=by,
            correction=correction,  # type: ignore[arg-type]
            equal_within=equal_within or (),
        )
    if as_json:
        say(compared.to_json())
        return
    if form is not None:
        say(compared.table_text(form))
        return
    if len(compared):
        print_wide(compared.table())


def _holds_results(file: str) -> bool:
    """Return whether FILE is a folder of results, here or in an object store."""
    from redtail.files import path_of
    from redtail.store.objects import is_url

    return is_url(file) or path_of(file).is_dir()


def limits_of(texts: list[str] | None, file: Path | None, own: Iterable[str] = ()) -> Tolerances:
    """Return the tolerances that the options give.

    Args:
        texts: those of `--tolerance`.
        file: that of `--tolerances`.
        own: names of metrics of the experiment.

    Raises:
        SpecError: one is not valid.
    """
    from redtail.analysis import tolerances

    found = tolerances.Tolerances(own=own) if file is None else tolerances.read(file, own)
    return found.updated(tolerances.of_options(texts or [], own))


def names_of(backends: str) -> list[str]:
    """Return the names in `--backends`.

    Raises:
        SpecError: they are not two backends or more.
    """
    from redtail.running.gaps import require_several

    names = [name.strip() for name in backends.split(",")]
    require_several(names)
    return names


def say_failures(found: Sequence[Results]) -> bool:
    """Say which runs failed; returns whether any did."""
    sys.stdout.flush()
    for each in found:
        if each.failed:
            complain(f"backend {each.backend}: {each.failure_summary()}", "warning")
    return any(each.failed for each in found)


def _refuse(given: dict[str, str | None], what: str) -> None:
    for option, value in given.items():
        if value is not None:
            raise SpecError(f"{option} {value}: is for {what}; accepted: without --backends")


def _compare_backends(
    file: Path,
    backends: str,
    metric: list[str] | None,
    limits: tuple[list[str] | None, Path | None],
    check: bool,
    figures: bool,
    jobs: int | None,
    as_json: bool,
    out: str,
    given: PlanOptions,
) -> None:
    from redtail import experiment, measured
    from redtail.analysis.gap import in_words
    from redtail.running import gaps

    chosen = names_of(backends)
    plan = experiment.prepare(file, **given)
    for text in plan.warnings:
        complain(text, "warning")
    with warnings_shown(), progress_shown() as show:
        found = gaps.execute(
            plan,
            chosen,
            metrics=metric or (measured.shown(plan) if given.get("metrics") else None),
            tolerances=limits_of(*limits, own=[each.name for each in plan.derived]),
            jobs=jobs,
            out=out,
            progress=show,
        )
    if as_json:
        say(found.to_json())
    else:
        print_wide(found.table())
        say(in_words(found.rows))
        for each in found.results:
            say(f"made by: backend {each.backend}, {each.made_by}: {each.folder}/")
        drawn = found.figures() if figures else []
        for folder in dict.fromkeys(path.parent for path in drawn):
            say(f"figures: {folder}/ ({', '.join(dict.fromkeys(path.stem for path in drawn))})")
    for text in found.warnings:
        complain(text, "warning")
    failed = say_failures(found.results)
    exit_for(found.outside if check else (), failed)


def exit_for(outside: Sequence[Gap], failed: bool) -> None:
    """Exit with 1 if a difference is outside its tolerance or a run failed, and say which."""
    from redtail.analysis.gap import head_of

    for row in outside:
        at = f" at {row.title}" if row.title else ""
        complain(
            f"{head_of(row.metric)}{at}: {row.second} is {row.size:.1f} tolerances from "
            f"{row.first}",
            "outside",
        )
    if outside or failed:
        raise typer.Exit(EXIT_FAILED)
