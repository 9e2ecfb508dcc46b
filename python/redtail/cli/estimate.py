"""`redtail estimate`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from redtail.cli.output import complain, print_wide, say
from redtail.errors import SpecError

if TYPE_CHECKING:
    from redtail.lines import Found


Local = Annotated[
    list[str] | None,
    typer.Option(
        "--local",
        metavar="NETWORK",
        help="Addresses of the people in a capture; may be given several times.",
    ),
]
Direction = Annotated[
    str | None,
    typer.Option(
        "--direction",
        metavar="down|up",
        help="Which direction a trace or a ping log is of, where the data of a test went, or most "
        "bytes of a capture.",
    ),
]


def estimate(
    recordings: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE [FILE]",
            help="A capture (pcap, pcapng), a measurement of `redtail measure`, a .flent.gz file, "
            "JSON of iperf3, irtt, mtr, networkQuality or crusader, a log of ping, fping, hrPING "
            "or mtr, or a trace of mahimahi; or two of one direction each.",
        ),
    ],
    rtt: Annotated[
        str | None,
        typer.Option("--rtt", metavar="TIME", help="The round trip when nobody sends, if known."),
    ] = None,
    down: Annotated[
        str | None,
        typer.Option(
            "--down", metavar="RATE", help="The rate to the people at the line, if known."
        ),
    ] = None,
    up: Annotated[
        str | None,
        typer.Option("--up", metavar="RATE", help="The rate from them, if known."),
    ] = None,
    local: Local = None,
    direction: Direction = None,
    save: Annotated[
        str | None,
        typer.Option("--save", metavar="FILE", help="Write what was found as an experiment."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that exists; without it none is.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the estimates as JSON and nothing else.")
    ] = False,
) -> None:
    """Estimate a line from a recording: rate, round trip, buffer, and who sent."""
    from redtail.lines import write_experiment

    if force and save is None:
        raise SpecError("--force: which file? accepted: with --save FILE")
    found = read(recordings, rtt, down, up, local, direction)
    written = write_experiment(found, save, force=force) if save is not None else []
    if as_json:
        say(found.to_json())
        return
    show(found)
    for path in written:
        say(f"written: {path}")
    if written:
        file = shlex.quote(str(written[0]))
        say(f"next:    redtail check {file}; redtail run {file}")


def read(
    recordings: Sequence[str],
    rtt: str | None,
    down: str | None,
    up: str | None,
    local: list[str] | None = None,
    direction: str | None = None,
) -> Found:
    """Return the estimates from one recording or two, and from options as they were written.

    Raises:
        SpecError: an option makes no sense, or a file is no recording.
    """
    from rich.console import Console

    from redtail import escape, facts, lines

    if not 1 <= len(recordings) <= 2:
        raise SpecError(
            f"there are {len(recordings)} recordings; accepted: one, or two of one direction each"
        )
    if direction not in (None, "down", "up"):
        raise SpecError(f"--direction {direction}: accepted: down or up")
    rtt_s = None if rtt is None else facts.time_s("rtt", rtt)
    down_bps = None if down is None else facts.rate_bps("down", down)
    up_bps = None if up is None else facts.rate_bps("up", up)
    # Only on a terminal; a capture of a gigabyte takes some ten seconds.
    with Console(stderr=True).status(f"Reading {escape.plain(escape.name(recordings[0]))}"):
        return lines.estimate(
            *recordings,
            rtt_s=rtt_s,
            down_bps=down_bps,
            up_bps=up_bps,
            local=local or (),
            direction=direction,
        )


def show(found: Found) -> None:
    """Print estimates for people."""
    from rich import box
    from rich.table import Table

    from redtail import escape

    if any(text.startswith("the file is damaged") for text in found.cautions):
        damage = next(text for text in found.cautions if text.startswith("the file is damaged"))
        complain(f"{found.file}: {damage}", "warning")
    # Names of others have no lines of their own.
    say(escape.name(f"{found.file}: {found.about}"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("quantity", "estimate"):
        table.add_column(head, no_wrap=True)
    table.add_column("how it was found, or why not")
    for name, value in found.shown():
        table.add_row(name, value.text, escape.plain(escape.name(value.basis)))
    print_wide(table)
    for name in ("down", "up"):
        way = found.direction(name)
        if way.trace_ms:
            say(f"{name} rate varies all the time: --save writes a trace of it beside the file")
        elif len(way.steps) > 1:
            say(f"{name} rate over time: {way.steps_text}")
    for flows in found.flows:
        say(f"{flows.direction}: {flows.text}")
    for text in found.cautions:
        say(escape.name(f"note: {text}"))
