"""`redtail explain`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from redtail.cli.one_run import CaseOf, ReplicationOf, RunOf, folder_of_run, seconds
from redtail.cli.options import AsJson, Out
from redtail.cli.output import say, warnings_shown
from redtail.errors import SpecError


def explain(
    run: RunOf,
    flow: Annotated[
        int | None,
        typer.Option(
            "--flow", min=0, metavar="F", help="The story of this flow, by its number in the run."
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="T", help="What happened within 1 s of this time: '12.3 s'."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="T", help="What happened from this time on."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="T", help="What happened until this time.")
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="NAME", help="The flows of this group.")
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            "--kinds",
            metavar="KINDS",
            help="These kinds of events, as 'timeout,drop'; without it all but drops, marks, "
            "retransmissions, responses and the share of marks.",
        ),
    ] = None,
    case: CaseOf = None,
    replication: ReplicationOf = None,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="Lines at most.")] = 100,
    as_json: AsJson = False,
    out: Out = "runs",
) -> None:
    """Say why: what happened in a run, and the story of a flow, from its events."""
    from redtail.running import explaining

    if at is not None and (since is not None or until is not None):
        raise SpecError("--at: does not go with --from and --to")
    begin, end = seconds("--from", since) or 0.0, seconds("--to", until)
    middle = seconds("--at", at)
    if middle is not None:
        begin = max(0.0, middle - explaining.AROUND_S)
        end = middle + explaining.AROUND_S
    wanted = explaining.Wanted(
        flow=flow,
        group=group,
        kinds=tuple(each.strip() for each in (kinds or "").split(",") if each.strip()),
        from_s=begin,
        to_s=end,
        most=most,
    )
    with warnings_shown():
        found = explaining.explain(folder_of_run(run, out, case, replication), wanted)
    if as_json:
        say(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
    else:
        say(found.text())
