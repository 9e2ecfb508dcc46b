"""`redtail advise`."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from redtail.cli import completion
from redtail.cli.estimate import Direction, Local
from redtail.cli.options import Jobs, Out
from redtail.cli.output import say, width
from redtail.cli.progress import progress_shown
from redtail.cli.routers import Device, Lan, Wan, router
from redtail.errors import SpecError

if TYPE_CHECKING:
    from redtail.lines import Advice, Line, ProviderAdvice, Recorded

Down = Annotated[
    str | None, typer.Option("--down", metavar="RATE", help="The line's download rate: 50mbit.")
]
Up = Annotated[str | None, typer.Option("--up", metavar="RATE", help="Its upload rate: 10mbit.")]
Rtt = Annotated[
    str | None,
    typer.Option(
        "--rtt", metavar="TIME", help="What ping shows when nobody else uses the line: 30ms."
    ),
]
Access = Annotated[
    str | None,
    typer.Option(
        "--access",
        metavar="NAME",
        help="docsis, pppoe-vdsl2, vdsl2, adsl, fibre, pppoe-fibre, ethernet, lte or satellite; "
        "without it unknown, the most that any of them adds to a packet.",
        autocompletion=completion.accesses,
    ),
]
PortRate = Annotated[
    str | None,
    typer.Option(
        "--port-rate",
        metavar="RATE",
        help="Rate of the Ethernet port between the router and the line, as ethtool shows it.",
    ),
]
Provider = Annotated[
    str,
    typer.Option(
        "--provider",
        metavar="NAME",
        help="What the provider does with what exceeds the rates: buffer delays it; policer, or "
        "policer:BURST such as policer:125kB, drops it.",
        autocompletion=completion.providers,
    ),
]
Rates = Annotated[
    str,
    typer.Option(
        "--rates",
        metavar="NAME",
        help="What --down and --up are of: line, as modem or contract state; or speed-test.",
        autocompletion=completion.rates,
    ),
]
Use = Annotated[
    list[str] | None,
    typer.Option(
        "--use",
        metavar="NAMES",
        help="What the line is used for: calls, web, backup, games, streaming, downloads, with "
        "commas between them.",
        autocompletion=completion.uses,
    ),
]
Recordings = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="Estimate what is not given from a recording of the line: a capture, a measurement of "
        "`redtail measure`, a .flent.gz file, JSON of iperf3, irtt, mtr, networkQuality or "
        "crusader, a log of ping, or a trace of mahimahi; twice for two of one direction each.",
    ),
]
People = Annotated[int, typer.Option("--people", metavar="N", help="How many people use the line.")]
Queues = Annotated[
    list[str] | None,
    typer.Option(
        "--queues",
        metavar="KINDS",
        help="The queues that your router has: cake, fq-codel, fq-pie, codel, pie, dualpi2, "
        "adaptive-red, red, wred, tail-drop, sfq, prio; without it those of --device, or all but "
        "wred, sfq and prio.",
        autocompletion=completion.advised_queues,
    ),
]
ObjectiveName = Annotated[
    str | None,
    typer.Option(
        "--objective",
        metavar="NAME",
        help="What counts first when queues are ranked: calls, games, pages or throughput; without "
        "it the first of these that the line is used for.",
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
Subscribers = Annotated[
    str | None,
    typer.Option(
        "--subscribers",
        metavar="PLANS",
        help='Advise a provider: "200 x 100mbit/20mbit", with commas between several plans, or a '
        "file .csv or .toml with name, down, up, number and uses of each.",
    ),
]
Export = Annotated[
    str | None,
    typer.Option(
        "--export",
        metavar="FOLDER",
        help="With --subscribers: write the files of LibreQoS that set what is advised.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the advice as JSON and nothing else.")]


def advise(
    down: Down = None,
    up: Up = None,
    rtt: Rtt = None,
    access: Access = None,
    use: Use = None,
    recordings: Recordings = None,
    local: Local = None,
    direction: Direction = None,
    people: People = 1,
    subscribers: Subscribers = None,
    queues: Queues = None,
    objective: ObjectiveName = None,
    buffer: Buffer = None,
    port_rate: PortRate = None,
    provider: Provider = "buffer",
    rates: Rates = "line",
    effort: EffortName = "normal",
    save: Save = None,
    export: Export = None,
    device: Device = None,
    wan: Wan = None,
    lan: Lan = None,
    jobs: Jobs = None,
    out: Out = "runs",
    as_json: AsJson = False,
) -> None:
    """Advise a queue for a line, with simulations of it. Goes on where it was stopped."""
    from redtail.lines import advise_on, as_sold, require_writable

    if subscribers is not None:
        others = {
            **{"--access": access, "--from": recordings, "--local": local, "--people": people > 1},
            **{"--direction": direction, "--queues": queues, "--objective": objective},
            **{"--buffer": buffer, "--device": device, "--wan": wan, "--lan": lan},
        }
        _refuse_beside_subscribers(others)
        advised = _provider(subscribers, (down, up, rtt), use, effort, (save, export), jobs, out)
        _print_provider(*advised, save, export, as_json=as_json)
        return
    if export is not None:
        raise SpecError("--export writes the files of a provider; accepted: with --subscribers")
    line, recorded = _line(
        down, up, rtt, access, use, people, recordings, local, direction, quiet=as_json
    )
    if recordings and rates != "line":
        raise SpecError(f"--rates {rates}: accepted: with --down and --up, and no recording")
    line = as_sold(line, port_rate, provider, rates)
    if save is not None:
        require_writable(save)  # before a minute of work
    own = router(device, wan, lan)
    if own is not None:
        own.require_rates(recorded)
        varies = recorded is not None and recorded.varies
        queues = [*own.queues(queues or (), varies=varies)]
    start = time.monotonic()
    with progress_shown() as show:
        found = advise_on(
            line,
            recorded=recorded,
            queues=queues or (),
            objective=objective,
            buffer=buffer,
            effort=effort,
            follows=own is None or own.follows,
            jobs=jobs,
            out=out,
            progress=show,
        )
    seconds = time.monotonic() - start
    if save is not None:
        found.save(save)
    made = None if own is None else own.commands(found)
    if made is not None:
        found.keep(made.parts())
    if as_json:
        say(found.to_json() if made is None else made.beside(found.to_dict()))
        return
    _print(found, seconds, save)
    if made is not None:
        say("")
        say(made.text())


def _refuse_beside_subscribers(others: Mapping[str, object]) -> None:
    for option, value in others.items():
        if value:
            raise SpecError(
                f"{option} is about one line; accepted beside --subscribers: --down, --up, --rtt, "
                "--use, --effort, --save, --export, --jobs, --out, --json"
            )


def _provider(
    subscribers: str,
    line: tuple[str | None, str | None, str | None],
    use: list[str] | None,
    effort: str,
    files: tuple[str | None, str | None],
    jobs: int | None,
    out: str,
) -> tuple[ProviderAdvice, float]:
    """Return the advice for a provider, and how long it took in s."""
    from redtail.lines import (
        advise_provider,
        read_plans,
        require_exportable,
        require_writable,
    )
    from redtail.selection import split

    down, up, rtt = line
    for option, value in {"--down": down, "--up": up, "--rtt": rtt}.items():
        if not value:
            raise SpecError(f"{option} is missing; accepted: that of the provider's line")
    assert down is not None and up is not None and rtt is not None
    save, export = files
    if save is not None:
        require_writable(save)  # before minutes of work
    if export is not None:
        require_exportable(export)
    plans = read_plans(subscribers, split(use)) if use else read_plans(subscribers)
    start = time.monotonic()
    with progress_shown() as show:
        found = advise_provider(
            plans, down, up, rtt, effort=effort, jobs=jobs, out=out, progress=show
        )
    return found, time.monotonic() - start


def _print_provider(
    found: ProviderAdvice, seconds: float, save: str | None, export: str | None, *, as_json: bool
) -> None:
    if save is not None:
        found.save(save)
    exported = None if export is None else found.export(export)
    if as_json:
        say(found.to_json())
        return
    print(found.to_text(width()))
    say("")
    if exported is not None:
        say(f"LibreQoS: {', '.join(str(path) for path in exported.files.values())}")
        for notice in exported.notices:
            say(f"- {notice}")
        say("")
    runs = len(found.results.cases) * found.wanted.effort.replications
    say(f"{runs} runs, in {seconds:.1f} s")
    say(f"runs:  {found.results.folder}/")
    if save is not None:
        say(f"file:  {save} (redtail run {shlex.quote(save)} repeats the runs)")
    sys.stdout.flush()


def _line(
    down: str | None,
    up: str | None,
    rtt: str | None,
    access: str | None,
    use: list[str] | None,
    people: int,
    recordings: list[str] | None,
    local: list[str] | None,
    direction: str | None,
    *,
    quiet: bool,
) -> tuple[Line, Recorded | None]:
    """Return the line as it is given, or as a recording shows it where nothing is given.

    Raises:
        SpecError: an option is missing or makes no sense, or the recording does not tell enough.
    """
    from redtail.cli import estimate
    from redtail.lines import given_line, recorded_line

    if recordings:
        estimates = estimate.read(recordings, rtt, down, up, local, direction)
        if not quiet:
            estimate.show(estimates)
        return recorded_line(estimates, access or "unknown", use or (), people)
    for option, value in {"--local": local, "--direction": direction}.items():
        if value:
            raise SpecError(f"{option} is about a recording; accepted: with --from FILE")
    given = {"--down": down, "--up": up, "--rtt": rtt, "--use": use}
    for option, value in given.items():
        if not value:
            raise SpecError(
                f"{option} is missing; accepted: {', '.join(given)}, or a recording of the line "
                "with --from FILE"
            )
    assert down is not None and up is not None and rtt is not None
    return given_line(down, up, rtt, access or "unknown", use or (), people), None


def _print(found: Advice, seconds: float, save: str | None) -> None:
    print(found.to_text(width()))
    say("")
    runs = len(found.results.cases) * found.wanted.replications
    say(f"{runs} runs, in {seconds:.1f} s")
    say(f"runs:  {found.results.folder}/")
    if save is not None:
        say(f"file:  {save} (redtail run {shlex.quote(save)} repeats the runs)")
    sys.stdout.flush()
