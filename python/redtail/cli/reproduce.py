"""`redtail reproduce`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redtail.cli import completion
from redtail.cli.options import (
    AllowCode,
    Jobs,
    OutFolder,
)
from redtail.cli.output import complain, print_wide, runs_in_words, say, warnings_shown
from redtail.cli.progress import progress_shown
from redtail.errors import SpecError

if TYPE_CHECKING:
    from redtail.studies import StudyResults
    from redtail.studies.definition import Study


def reproduce(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            help="A built-in study, such as the paper iscc2001, or a folder with one of your own; "
            "without it: a list.",
            autocompletion=completion.studies,
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            metavar="SCALE",
            help="How much is run: quick, paper, or another scale that the study has.",
        ),
    ] = "quick",
    then_and_now: Annotated[
        bool,
        typer.Option(
            "--then-and-now",
            help="Also try the headline findings with a TCP of today, with initial window 10, …",
        ),
    ] = False,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            metavar="NAME",
            help="A kernel that repeats what it can besides the simulator, for instance linux.",
            autocompletion=completion.backends,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit with 1 if a verdict is not the expected one."),
    ] = False,
    write_expected: Annotated[
        bool,
        typer.Option(
            "--write-expected",
            help="Make the verdicts the expected ones: write them into the study's expected.toml.",
        ),
    ] = False,
    copy_to: Annotated[
        Path | None,
        typer.Option(
            "--copy-to",
            metavar="DIR",
            help="Copy the study's files there, to be changed, and run nothing.",
        ),
    ] = None,
    jobs: Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdicts as JSON and nothing else.")
    ] = False,
    out: OutFolder = "runs",
    allow_code: AllowCode = None,
) -> None:
    """Run a study, such as a published evaluation, with a verdict on each of its findings."""
    from redtail import studies
    from redtail.running.pool import available_cores
    from redtail.store.objects import is_url
    from redtail.studies import definition, report

    if study is None:
        say(report.listing())
        return
    if copy_to is not None:
        copied = definition.copy(studies.load(study), copy_to)
        say(f"{len(copied)} files copied; redtail reproduce {copy_to} runs them")
        return
    if is_url(out):
        raise SpecError(f"--out {out}: a study is reproduced in a folder")
    if check and write_expected:
        raise SpecError("--check and --write-expected exclude each other: one compares, one writes")
    if check:
        _require_expected(studies.load(study), scale)
    start = time.monotonic()
    with warnings_shown(), progress_shown() as show:
        done = studies.run(
            study,
            scale=scale,
            then_and_now=then_and_now,
            backend=backend,
            out=out,
            jobs=jobs,
            progress=show,
            allow_code=allow_code or (),
        )
    seconds = time.monotonic() - start
    written = done.write()
    if as_json:
        say(report.to_json(done))
    else:
        if done.verdicts:
            print_wide(report.table(done))
        for numbers in () if done.verdicts else done.study.tables:
            if numbers.comparison in done.grids:
                print_wide(report.numbers_table(done, numbers))
        if done.now:
            say("\nthe headline findings then and now:\n")
            print_wide(report.table_of(done.now))
            for each in done.now:
                if each.setting:
                    say(f"{each.name}: {each.setting.about}")
        if done.kernel:
            say("\nthe findings with a kernel of today:\n")
            print_wide(report.table_of(done.kernel))
            for line in report.kernel_notes(done):
                say(line)
        if done.verdicts:
            say(report.counts(done))
        say(runs_in_words(done.run_count, done.reused, seconds))
        if done.packets:
            rate = done.packets / seconds
            say(
                f"{done.packets / 1e6:.1f} M packets over the bottleneck: {rate / 1e6:.2f} M "
                f"packets/s, {rate / (jobs or available_cores()) / 1e6:.2f} M packets/s per core"
            )
        drawn = list(dict.fromkeys(path.stem for path in written if path.suffix == ".png"))
        say(f"report:   {written[0]}")
        say(f"verdicts: {written[1]}")
        if drawn:
            say(f"figures:  {done.folder / 'figures'}/ ({', '.join(drawn)})")
        say(f"set-up:   {done.study.folder}/")
    if write_expected:
        complain(str(done.expect()), "expected")
    if check:
        _exit_for_verdicts(done)


def _require_expected(study: Study, scale: str) -> None:
    """Refuse to check what has no expectations, before anything is run.

    Raises:
        SpecError: the study has none at this scale, or not this scale.
    """
    from redtail.studies import definition, results

    results.require_scale(study, scale)
    if not study.expected.get(scale):
        raise SpecError(
            f"{study.folder / definition.EXPECTED} has no verdicts for scale {scale}: there is "
            f"nothing to check against; `redtail reproduce {study.folder} --scale {scale} "
            "--write-expected` makes them"
        )


def _exit_for_verdicts(done: StudyResults) -> None:
    """Say whether the verdicts are the expected ones; exit with 1 if not."""
    from redtail.studies import report

    changed = report.changes(done)
    for line in changed:
        complain(line, "changed")
    if changed:
        raise typer.Exit(1)
    complain(f"all {len(done.study.expected[done.scale])} verdicts are as expected", "check")
