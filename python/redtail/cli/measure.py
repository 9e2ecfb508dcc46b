"""`redtail measure`."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redtail.cli.exits import EXIT_FAILED
from redtail.cli.output import complain, print_wide, say
from redtail.errors import SpecError
from redtail.files import path_of
from redtail.running.interrupts import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from redtail.lines import Estimated, Measured, MeasuredRow, MeasureState, Measuring

# A log gets a line so often.
_SECONDS_BETWEEN_LINES = 5.0

# States that the graph shows, five a second.
_SHOWN = 60

_BLOCKS = "▁▂▃▄▅▆▇█"


class Kind(StrEnum):
    """What answers at the other end."""

    redtail = "redtail"
    iperf3 = "iperf3"
    irtt = "irtt"


def measure(
    server: Annotated[
        str | None,
        typer.Argument(
            metavar="HOST[:PORT]",
            help="The server: a computer of yours beyond the line, on which `redtail measure "
            "--serve` runs, or iperf3 or irtt as servers.",
        ),
    ] = None,
    server_kind: Annotated[
        Kind,
        typer.Option(
            help="What runs there: redtail; iperf3 (its program is needed here, too, and delays "
            "are those of ping); or irtt (delays alone)."
        ),
    ] = Kind.redtail,
    phases: Annotated[
        str | None,
        typer.Option(
            "--phases",
            metavar="LIST",
            help="What loads the line, one after the other: idle,down,up,both.",
        ),
    ] = None,
    load: Annotated[
        str, typer.Option("--load", metavar="TIME", help="How long each load takes.")
    ] = "15 s",
    idle: Annotated[
        str, typer.Option("--idle", metavar="TIME", help="How long the idle line is probed.")
    ] = "10 s",
    streams: Annotated[
        int, typer.Option("--streams", metavar="N", help="TCP connections of each direction.")
    ] = 4,
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="Time between two probes.")
    ] = "20 ms",
    tcp: Annotated[
        str | None,
        typer.Option(
            "--tcp",
            metavar="NAME",
            help="The congestion control of both ends, such as cubic; else each has its own.",
        ),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save",
            metavar="FILE",
            help="Where the measurement is written (.json or .json.gz); by default a name with "
            "the time, in this folder.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that exists; without it none is.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")
    ] = False,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Be the server of others' measurements, until Ctrl-C."),
    ] = False,
    bind: Annotated[
        str | None,
        typer.Option(
            "--bind", metavar="ADDR", help="Of the server: the address; by default all it has."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            help="Of the server: the port, for TCP and UDP; by default 61707.",
        ),
    ] = None,
    clients: Annotated[
        int | None,
        typer.Option(
            "--clients", metavar="N", help="Of the server: measurements at a time; by default 1."
        ),
    ] = None,
    longest: Annotated[
        str | None,
        typer.Option(
            "--longest",
            metavar="TIME",
            help="Of the server: how long a measurement may take; by default 300 s.",
        ),
    ] = None,
    most: Annotated[
        str | None,
        typer.Option(
            "--most",
            metavar="SIZE",
            help="Of the server: what a measurement may send and receive; by default 10 GB.",
        ),
    ] = None,
) -> None:
    """Measure a line of yours: rates, delay under load, responsiveness; writes a recording.

    The line is idle, loaded down, loaded up, and loaded in both directions, with probes of its
    delay throughout. Nothing is sent but to the server that is named. `redtail estimate` and
    `redtail advise --from` read what is written. Ctrl-C ends it, and what was measured is kept.
    """
    if serve:
        if server is not None:
            raise SpecError(f"{server}: --serve measures nothing; accepted: --serve alone")
        _serve(bind, port, clients, longest, most)
        return
    given = {"--bind": bind, "--port": port, "--clients": clients, "--longest": longest,
             "--most": most}  # fmt: skip
    for name, value in given.items():
        if value is not None:
            raise SpecError(f"{name}: is for a server; accepted: with --serve")
    if server is None:
        raise SpecError("which server? accepted: HOST[:PORT], or --serve to be one")
    _measure(server, _options(server_kind, phases, load, idle, streams, interval, tcp), save, force,
             as_json)  # fmt: skip


def _options(
    kind: Kind,
    phases: str | None,
    load: str,
    idle: str,
    streams: int,
    interval: str,
    tcp: str | None,
) -> Measuring:
    from redtail import facts, lines
    from redtail.selection import split

    plain = lines.Measuring()
    named = plain.phases if kind is not Kind.irtt else ("idle",)
    return lines.Measuring(
        kind.value,
        tuple(split(phases)) if phases is not None else named,
        facts.time_s("load", load),
        facts.time_s("idle", idle),
        streams,
        facts.time_s("interval", interval),
        tcp or "",
    )


def _serve(
    bind: str | None,
    port: int | None,
    clients: int | None,
    longest: str | None,
    most: str | None,
) -> None:
    from redtail import facts, lines

    plain = lines.ServerLimits()
    size, unit = facts.si_value(most) if most is not None else (float(plain.most_b), "B")
    if unit != "B":
        raise SpecError(f"--most {most}: accepted: a size such as 10 GB")
    limits = lines.ServerLimits(
        plain.clients if clients is None else clients,
        plain.longest_s if longest is None else facts.time_s("longest", longest),
        int(size),
    )
    lines.serve(bind, lines.PORT if port is None else port, limits, _at_once)


def _at_once(text: str) -> None:
    """Print a line, which is not kept back where standard output is a file."""
    say(text)
    sys.stdout.flush()


def _measure(server: str, options: Measuring, save: str | None, force: bool, as_json: bool) -> None:
    from redtail import lines

    path = path_of(save or f"line-{time.strftime('%Y%m%dT%H%M%S')}.json.gz")
    with _shown() as show:
        measured = lines.measure_line(server, options, show, save=path, force=force)
    _print(measured, path, as_json)
    if measured.stopped:
        complain("interrupted; what was measured is kept")
        raise typer.Exit(EXIT_INTERRUPTED)
    if measured.failed:
        complain(measured.failed)
        raise typer.Exit(EXIT_FAILED)


def _print(measured: Measured, path: Path, as_json: bool) -> None:
    """Print what a measurement has come to."""
    rows, notes = measured.rows(), measured.measurement.notes
    if as_json:
        made = {"format": 1, "file": str(path), "rows": [row.to_dict() for row in rows],
                "notes": notes}  # fmt: skip
        say(json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False))
        return
    print_wide(_rates_table(rows))
    print_wide(_delays_table(rows))
    for text in filter(None, (measured.added, *(f"note: {each}" for each in notes))):
        say(text)
    say(f"data:    {path}")
    file = shlex.quote(str(path))
    say(f"next:    redtail estimate {file}; redtail advise --from {file}")


def _rates_table(rows: list[MeasuredRow]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("load", "down", "up", "responsiveness", box=box.SIMPLE_HEAD)
    for row in rows:
        if row.phase != "idle":
            rates = (row.rates.get(name) for name in ("down", "up"))
            cells = ["" if each is None else each.text for each in rates]
            rpm = row.responsiveness
            table.add_row(row.phase, *cells, "" if rpm is None else _whole(rpm))
    return table


def _whole(rpm: Estimated) -> str:
    return rpm.text if rpm.value is None else f"{rpm.bound} {rpm.value:.0f} RPM".lstrip()


def _delays_table(rows: list[MeasuredRow]) -> Table:
    from rich import box
    from rich.table import Table

    heads = ("round trips", "least", *(rows[0].delays if rows else ()), "lost")
    table = Table(*heads, box=box.SIMPLE_HEAD)
    for row in rows:
        cells = [row.least, *row.delays.values()]
        table.add_row(row.phase, *(each.text for each in cells), row.loss.basis)
    return table


@contextmanager
def _shown() -> Iterator[Callable[[MeasureState], None]]:
    """Show a graph on a terminal; lines on standard error without one."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield _lines()
        return
    from rich.console import Console
    from rich.live import Live

    states: deque[MeasureState] = deque(maxlen=_SHOWN)
    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:

        def show(state: MeasureState) -> None:
            states.append(state)
            live.update(_graph(states), refresh=True)

        yield show


def _lines() -> Callable[[MeasureState], None]:
    """Return what prints a line with what is measured, but not more often than every few s."""
    last = -_SECONDS_BETWEEN_LINES

    def show(state: MeasureState) -> None:
        nonlocal last
        if state.at_s - last >= _SECONDS_BETWEEN_LINES:
            last = state.at_s
            complain(", ".join(filter(None, [state.heading, *state.texts().values()])), "progress")

    return show


def _graph(states: deque[MeasureState]) -> Group:
    """Return the courses of rates and delay as bars."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    now = states[-1]
    values = now.texts()
    courses = {
        "down": [state.rates_bps.get("down", 0.0) for state in states],
        "up": [state.rates_bps.get("up", 0.0) for state in states],
        "round trip": [state.rtt_s or 0.0 for state in states],
    }
    for name, course in courses.items():
        table.add_row(Text(name), Text(bars(course)), Text(values.get(name, "")))
    return Group(Text(f"{now.heading} (Ctrl-C ends it and keeps what was measured)"), table)


def bars(values: list[float]) -> str:
    """Return values as bars, the largest as high as a line.

    >>> bars([0.0, 1.0, 4.0, 8.0])
    ' ▁▄█'
    """
    most = max(values, default=0.0)
    return "".join(
        " " if value <= 0 or most <= 0 else _BLOCKS[round(value / most * len(_BLOCKS) + 0.49) - 1]
        for value in values
    )
