"""`redtail runs`: what is kept of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from redtail.cli import completion
from redtail.cli.exits import EXIT_FAILED
from redtail.cli.options import (
    AsJson,
    Out,
    OutFolder,
)
from redtail.cli.output import complain, print_wide, say
from redtail.cli.progress import progress_shown, seen
from redtail.errors import SpecError


def list_runs(out: Out = "runs", as_json: AsJson = False) -> None:
    """List the experiments: runs, size, newest, versions of the code."""
    from redtail.display.tables import experiment_table
    from redtail.store import objects, runs

    with objects.whole_copy(out) as folder:
        found = runs.listing(folder)
    if as_json:
        text = json.dumps([each.as_json() for each in found], indent=2, ensure_ascii=False)
        say(objects.as_named(text, folder, out))
        return
    if not found:
        say(f"{out}: no experiments")
        return
    print_wide(experiment_table(found))


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="KEY|EXPERIMENT",
            help="The beginning of a run's key, or EXPERIMENT/KEY, or an experiment.",
            autocompletion=completion.experiments,
        ),
    ],
    out: Out = "runs",
    as_json: AsJson = False,
) -> None:
    """Show a run with scenario, manifest and metrics, or an experiment with its runs."""
    from redtail.store import objects, runs

    with objects.whole_copy(out) as folder:
        found = runs.show(folder, runs.find(folder, name))
        text = json.dumps(found, indent=2, ensure_ascii=False) if as_json else runs.text(found)
        say(objects.as_named(text, folder, out))


def verify(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPERIMENT]",
            help="This one alone, or one run.",
            autocompletion=completion.experiments,
        ),
    ] = None,
    out: Out = "runs",
) -> None:
    """Check all stored runs against their hashes; exits with 1 if anything is wrong."""
    from redtail.metrics import counted
    from redtail.store import objects, runs

    checked = 0
    wrong = 0
    with objects.whole_copy(out) as root:
        where = runs.folders(root) if experiment is None else [runs.find(root, experiment)]
        for folder in where:
            single = runs.is_run(folder)
            checked += 1 if single else len(runs.all_names(folder))
            for finding in runs.verify_run(folder) if single else runs.verify(folder):
                say(objects.as_named(str(finding), root, out))
                wrong += 1
    within = "" if experiment else f" in {counted(len(where), 'experiment')}"
    verdict = f"{counted(wrong, 'problem')}" if wrong else "everything is as it was written"
    say(f"{counted(checked, 'run')}{within} checked: {verdict}")
    if wrong:
        raise typer.Exit(EXIT_FAILED)


def watch(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPERIMENT]",
            help="This one; without it the one that is at work, if there is only one.",
        ),
    ] = None,
    out: OutFolder = "runs",
    interval: Annotated[
        float,
        typer.Option("--interval", min=0.1, metavar="S", help="Seconds between two looks."),
    ] = 1.0,
) -> None:
    """Show how far a campaign is that another process makes, until it ends."""
    from redtail.running import watching

    folder = _at_work(experiment, out)
    if folder is None:
        say(f"{out}: no campaign is at work")
        return
    say(f"watching {folder}/")
    with progress_shown(every=10.0) as show:
        last = watching.watch(folder, lambda state: show and show(seen(state)), interval=interval)
    if last is None:
        say("ended before it said how far it was")
        return
    failed = f", {last.failed} failed" if last.failed else ""
    say(f"ended: last seen with {last.done} of {last.total} runs finished{failed}")


def _at_work(experiment: str | None, out: str) -> Path | None:
    """Return the folder of the campaign to watch; None when none is at work.

    Raises:
        SpecError: several are at work, or the store is on an object store.
        StoreError: there is no such experiment.
    """
    from redtail.files import path_of
    from redtail.store import locks, objects, runs

    if objects.is_url(out):
        raise SpecError(
            f"--out {out}: watch looks at a folder; on an object store `redtail runs list` shows "
            "the runs that are there"
        )
    root = path_of(out)
    if experiment is not None:
        folder = runs.find(root, experiment)
        return folder if locks.in_use(folder) else None
    working = [folder for folder in runs.folders(root) if locks.in_use(folder)]
    # Runs that find users for a load are made for an experiment that is at work too.
    working = [each for each in working if each.name != runs.CALIBRATIONS] or working
    if len(working) > 1:
        listed = ", ".join(str(each.relative_to(root)) for each in working)
        raise SpecError(f"{len(working)} campaigns are at work: {listed}; name one")
    return working[0] if working else None


def gc(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPERIMENT]",
            help="This one alone.",
            autocompletion=completion.experiments,
        ),
    ] = None,
    out: OutFolder = "runs",
    unreferenced: Annotated[
        bool,
        typer.Option("--unreferenced", help="Also runs that no results.json refers to."),
    ] = False,
    older_code: Annotated[
        bool,
        typer.Option(
            "--older-code",
            help="Also runs of other versions of the code that no results.json refers to.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Remove nothing, whatever else is given.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove; without it nothing is.")] = False,
) -> None:
    """Remove leftovers and damaged runs, and on request runs that no results refer to."""
    from redtail import facts
    from redtail.files import path_of
    from redtail.store import objects, runs

    if objects.is_url(out):
        raise SpecError(
            f"--out {out}: an object store has no locks that would keep campaigns away; remove "
            "objects with its own tools, while no campaign is at work"
        )
    root = path_of(out)
    where = runs.folders(root) if experiment is None else [runs.find(root, experiment)]
    count = 0
    size = 0
    really = yes and not dry_run
    for folder in where:
        if runs.is_run(folder):
            raise SpecError(f"{folder} is a run; name its experiment, {folder.parent.name}")
        found = runs.clean(
            folder,
            code_version=facts.code_version() if older_code else None,
            unreferenced=unreferenced,
            yes=really,
        )
        for each in found.removals:
            say(f"{each.path}: {each.why}, {runs.shown_size(each.size)}")
        for text in found.kept:
            complain(text, "note")
        count += len(found.removals)
        size += found.size
    things = "1 thing" if count == 1 else f"{count} things"
    if really or not count:
        say(f"removed {things}, {runs.shown_size(size)}" if count else "nothing to remove")
    else:
        say(f"{things}, {runs.shown_size(size)}, to remove; give --yes to do it")
