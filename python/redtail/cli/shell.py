"""`redtail shell`."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from redtail.cli.exits import EXIT_FAILED
from redtail.cli.options import AllowCode, File, Out, Sets
from redtail.cli.output import complain, print_wide, say, width
from redtail.cli.run import Pcap
from redtail.errors import SpecError
from redtail.files import path_of


class Status(StrEnum):
    """How the state of the links is shown."""

    TITLE = "title"
    LINES = "lines"
    OFF = "off"


class Outside(StrEnum):
    """What connects the program to the world outside of the run."""

    OFF = "off"
    AUTO = "auto"
    PASTA = "pasta"
    SLIRP4NETNS = "slirp4netns"


def shell(
    file: File,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="A program; without one, your shell."),
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server",
            metavar="COMMAND",
            help="A command line to run on the other side of the bottleneck. What it prints goes "
            "to server-1.log in the folder of the results. May be repeated.",
        ),
    ] = None,
    outside: Annotated[
        Outside,
        typer.Option(
            help="What connects the program, through the bottleneck, to this computer and its "
            "networks: pasta, slirp4netns, or auto for what is installed. Without it the program "
            "reaches the servers alone."
        ),
    ] = Outside.OFF,
    status: Annotated[
        Status,
        typer.Option(
            help="Where rate, queue, delay, drops and marks are shown each second: in the title "
            "of the terminal, as lines on standard error, or not at all."
        ),
    ] = Status.TITLE,
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only",
            help="Let the programs write to no file except in --writable folders and a /tmp of "
            "their own, which is gone afterwards. They can still read all files that you can.",
        ),
    ] = False,
    writable: Annotated[
        list[str] | None,
        typer.Option(
            "--writable",
            metavar="DIR",
            help="With --read-only: a folder to which they may write. May be repeated.",
        ),
    ] = None,
    longest: Annotated[
        str, typer.Option("--longest", metavar="TIME", help="The run ends after this time.")
    ] = "3600 s",
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            metavar="N",
            help="The seed in place of that of FILE, of queues, random loss and its traffic. "
            "The programs have it as REDTAIL_SEED.",
        ),
    ] = None,
    pcap: Pcap = None,
    out: Out = "runs",
    sets: Sets = None,
    allow_code: AllowCode = None,
) -> None:
    """Run a shell, or any program, behind the bottleneck of FILE, with real packets.

    The program reaches the other side of the bottleneck at the address in REDTAIL_SERVER, and with
    `--outside` this computer's loopback at the address in REDTAIL_COMPUTER. Its exit code becomes
    that of this command. Each run has a folder of results of its own.
    """
    from redtail.backends.live import require_host
    from redtail.display.tables import summary_table
    from redtail.engine import realtime
    from redtail.running import captures
    from redtail.running import shell as backend

    if writable and not read_only:
        raise SpecError("--writable: all folders are; accepted: with --read-only")
    for folder in writable or ():
        if not path_of(folder).is_dir():
            raise SpecError(f"--writable {folder}: there is no such folder; accepted: one that is")
    require_host()
    connected = backend.connection(outside.value)
    points = captures.points(pcap or ())
    sets = [*(sets or ()), *([] if seed is None else [f"seed={seed}"])]
    plan = backend.planned(file, longest, sets, allow_code=tuple(allow_code or ()))
    for text in plan.warnings:
        complain(text, "warning")
    words = tuple(command or [os.environ.get("SHELL") or "/bin/sh"])
    if not command:
        say(f"A shell behind the bottleneck of {file}; the other side is $REDTAIL_SERVER.")
        if connected:
            say(f"The outside is connected by {connected}; this computer is $REDTAIL_COMPUTER.")
        say("The status is in the title of the terminal. The end of the shell ends the run.")
    plan, logs = backend.kept(plan, out, words, server or ())
    programs = realtime.Programs(
        words,
        tuple(server or ()),
        status.value,
        logs=str(logs),
        outside=connected,
        read_only=read_only,
        writable=tuple(str(path_of(folder).absolute()) for folder in writable or ()),
        environment=backend.environment(plan),
    )
    results, ran = backend.execute(plan, programs, out, points)
    print_wide(summary_table(results, width(), False))
    say(f"made by: backend {results.backend}, {ran.engine()}")
    say(f"data:    {results.folder}/")
    for log in backend.logs(logs):
        say(f"server:  {log}")
    for path in dict.fromkeys(path_of(name) for _, name in points):
        say(f"capture: {path}")
    for text in results.warnings:
        complain(text, "warning")
    if results.failed:
        complain(results.failure_summary(), "warning")
        raise typer.Exit(EXIT_FAILED)
    if ran.invalid:
        complain(f"do not trust these results: {ran.invalid}", "warning")
    if ran.code is None:
        complain(f"the run ended before the program, after {longest} (--longest)", "warning")
    raise typer.Exit(EXIT_FAILED if ran.code is None else ran.code)
