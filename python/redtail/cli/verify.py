"""`redtail verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from redtail.cli.estimate import Local
from redtail.cli.exits import EXIT_DID_NOT_HELP, EXIT_MADE_WORSE, EXIT_UNDECIDED
from redtail.cli.options import Format
from redtail.cli.output import form_alone, say, width

_EXITS = {
    "helped": 0,
    "did not help": EXIT_DID_NOT_HELP,
    "made it worse": EXIT_MADE_WORSE,
    "undecided": EXIT_UNDECIDED,
}


def verify(
    before: Annotated[
        str,
        typer.Argument(
            metavar="BEFORE",
            help="A recording of the line before the change, of any form that `redtail estimate` "
            "reads and that has round trips over time.",
        ),
    ],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The same after the change.")],
    advice: Annotated[
        str | None,
        typer.Option(
            "--advice",
            metavar="FILE|RUN",
            help="What was promised: what `redtail advise --json` printed, or the folder of its "
            "runs.",
        ),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            "--load",
            metavar="down|up|both|idle",
            help="What was on the line while pings were logged; other recordings tell it.",
        ),
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option(
            "--rtt", metavar="TIME", help="The round trip when nobody sends, if it is known."
        ),
    ] = None,
    local: Local = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparison as JSON and nothing else.")
    ] = False,
    form: Format = None,
) -> None:
    """Say whether a change to a line helped, as promised: recordings from before and after it.

    Exits with 0 if it helped, 3 if it did not, 4 if it made it worse, and 5 if that is undecided.
    """
    from rich.console import Console

    from redtail import facts, lines

    if form is not None:
        form = form_alone(form, as_json)
    rtt_s = None if rtt is None else facts.time_s("rtt", rtt)
    with Console(stderr=True).status("Reading the recordings"):
        found = lines.verify_change(
            before, after, advice=advice, load=load, rtt_s=rtt_s, local=local or ()
        )
    if as_json:
        say(found.to_json())
    elif form is not None:
        say(found.table_text(form))
    else:
        print(found.to_text(width()))
    if found.verdict != "helped":
        raise typer.Exit(_EXITS[found.verdict])
