"""`redtail advise`."""

from __future__ import annotations

import shlex
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from redtail.cli import completion
from redtail.cli.options import Jobs, Out
from redtail.cli.output import say, width
from redtail.cli.progress import progress_shown

if TYPE_CHECKING:
    from redtail.advice.answer import Advice

Down = Annotated[
    str, typer.Option("--down", metavar="RATE", help="The line's download rate: 50mbit.")
]
Up = Annotated[str, typer.Option("--up", metavar="RATE", help="Its upload rate: 10mbit.")]
Rtt = Annotated[
    str,
    typer.Option(
        "--rtt", metavar="TIME", help="What ping shows when nobody else uses the line: 30ms."
    ),
]
Access = Annotated[
    str,
    typer.Option(
        "--access",
        metavar="NAME",
        help="docsis, pppoe-vdsl2, vdsl2, adsl, fibre, ethernet, lte or unknown.",
        autocompletion=completion.accesses,
    ),
]
Use = Annotated[
    list[str],
    typer.Option(
        "--use",
        metavar="NAMES",
        help="What the line is used for: calls, web, backup, games, streaming, downloads, with "
        "commas between them.",
        autocompletion=completion.uses,
    ),
]
People = Annotated[int, typer.Option("--people", metavar="N", help="How many people use the line.")]
Queues = Annotated[
    list[str] | None,
    typer.Option(
        "--queues",
        metavar="KINDS",
        help="The queues that your router has: cake, fq-codel, fq-pie, codel, pie, dualpi2, "
        "adaptive-red, red, wred, tail-drop; without it all but wred.",
        autocompletion=completion.advised_queues,
    ),
]
ObjectiveName = Annotated[
    str | None,
    typer.Option(
        "--objective",
        metavar="NAME",
        help="What queues are ranked by: calls, games, pages or throughput; without it the first "
        "of these that the line is used for.",
        autocompletion=completion.objectives,
    ),
]
Buffer = Annotated[
    str | None,
    typer.Option(
        "--buffer",
        metavar="TIME",
        help="How long the modem's or provider's full buffer takes to empty; without it 200ms.",
    ),
]
EffortName = Annotated[
    str,
    typer.Option(
        "--effort",
        metavar="NAME",
        help="How much is simulated: quick, normal or thorough.",
        autocompletion=completion.efforts,
    ),
]
Save = Annotated[
    str | None,
    typer.Option(
        "--save", metavar="FILE", help="Write the experiment file of the simulations, to edit."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the advice as JSON and nothing else.")]


def advise(
    down: Down,
    up: Up,
    rtt: Rtt,
    access: Access,
    use: Use,
    people: People = 1,
    queues: Queues = None,
    objective: ObjectiveName = None,
    buffer: Buffer = None,
    effort: EffortName = "normal",
    save: Save = None,
    jobs: Jobs = None,
    out: Out = "runs",
    as_json: AsJson = False,
) -> None:
    """Advise a queue for a line, with simulations of it. Goes on where it was stopped."""
    from redtail.advice.advise import advise_on, read
    from redtail.advice.answer import writable

    line = read(down, up, rtt, access, use, people)
    if save is not None:
        writable(save)  # before a minute of work
    start = time.monotonic()
    with progress_shown() as show:
        found = advise_on(
            line,
            queues=queues or (),
            objective=objective,
            buffer=buffer,
            effort=effort,
            jobs=jobs,
            out=out,
            progress=show,
        )
    seconds = time.monotonic() - start
    if save is not None:
        found.save(save)
    if as_json:
        say(found.to_json())
        return
    # Commands for a router are made of `found.down` and `found.up`, and printed after this.
    _print(found, seconds, save)


def _print(found: Advice, seconds: float, save: str | None) -> None:
    print(found.to_text(width()))
    say("")
    runs = len(found.results.cases) * found.wanted.effort.replications
    say(f"{runs} runs, in {seconds:.1f} s")
    say(f"runs:  {found.results.folder}/")
    if save is not None:
        say(f"file:  {save} (redtail run {shlex.quote(save)} repeats the runs)")
    sys.stdout.flush()
