"""`redtail watch`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from redtail.cli.output import complain, say
from redtail.errors import SpecError

if TYPE_CHECKING:
    from redtail.lines import Seen, Watch


class Form(StrEnum):
    """How what is seen is printed."""

    LIVE = "live"
    LINES = "lines"
    CSV = "csv"
    JSON = "json"


def watch(
    device: Annotated[
        str, typer.Argument(metavar="DEV", help="The network device of the line, such as eth0.")
    ],
    ifb: Annotated[
        str | None,
        typer.Option(
            "--ifb",
            metavar="DEV",
            help="The device that what comes in is redirected to; without it as the filters say.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COMMAND",
            help="A command that runs tc on the router: 'ssh root@router'. No shell reads it here.",
        ),
    ] = None,
    ping: Annotated[
        str | None,
        typer.Option(
            "--ping",
            metavar="HOST",
            help="Ping a host behind the line meanwhile, which shows whether packets wait there.",
        ),
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option(
            "--rtt", metavar="TIME", help="Its round trip when nobody sends, if it is known."
        ),
    ] = None,
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="Time between two readings.")
    ] = "1 s",
    count: Annotated[
        int | None,
        typer.Option("--count", min=1, metavar="N", help="End after so many readings."),
    ] = None,
    form: Annotated[
        Form | None,
        typer.Option(
            "--format",
            help="A table that is renewed, lines, CSV, or a line of JSON for each reading; without "
            "it a table in a terminal, and lines elsewhere.",
        ),
    ] = None,
) -> None:
    """Watch the queues of a device, and whether its shaper is above the line.

    It reads `tc -s -j qdisc show` every second, and changes nothing. Ctrl-C ends it.
    """
    from redtail import facts, lines

    every_s = facts.time_s("every", every)
    rtt_s = None if rtt is None else facts.time_s("rtt", rtt)
    if rtt is not None and ping is None:
        raise SpecError("--rtt: of which host? accepted: with --ping HOST")
    watched = lines.watch_device(device, ifb=ifb, by=by)
    chosen = form or (Form.LIVE if sys.stdout.isatty() else Form.LINES)
    last: Seen | None = None
    try:
        with _printed(chosen, watched) as show:
            for last in watched.seen(every_s=every_s, count=count, ping=ping, rtt_s=rtt_s):
                show(last)
    except KeyboardInterrupt:
        pass  # how it is ended
    for text in watched.notes:
        complain(text, "note")
    if last is not None and chosen in (Form.LIVE, Form.LINES):
        for line in last.told():
            say(line)


@contextmanager
def _printed(form: Form, watched: Watch) -> Iterator[Callable[[Seen], None]]:
    """Yield what shows a reading."""
    if form is Form.LIVE:
        from rich.live import Live

        with Live(auto_refresh=False) as live:
            yield lambda seen: live.update(seen.table(), refresh=True)
    elif form is Form.CSV:
        from redtail.display import texts

        print(texts.csv(watched.heads, []), flush=True)

        def rows(seen: Seen) -> None:
            for row in seen.cells():
                print(texts.csv([], [row]).lstrip("\n"), flush=True)

        yield rows
    elif form is Form.JSON:
        yield lambda seen: print(json.dumps(seen.to_dict(), allow_nan=False), flush=True)
    else:

        def lines(seen: Seen) -> None:
            for line in seen.lines():
                say(line)
            sys.stdout.flush()

        yield lines
