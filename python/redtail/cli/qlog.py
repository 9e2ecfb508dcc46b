"""`redtail qlog`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redtail.cli.one_run import CaseOf, ReplicationOf, RunOf, folder_of_run
from redtail.cli.options import Out
from redtail.cli.output import complain, say, warnings_shown
from redtail.errors import SpecError


def qlog(
    run: RunOf,
    flow: Annotated[
        int | None,
        typer.Option(
            "--flow",
            min=0,
            metavar="F",
            help="Only this flow, or the connections of this user, by its number in the run.",
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="NAME", help="Only the flows of this group.")
    ] = None,
    case: CaseOf = None,
    replication: ReplicationOf = None,
    folder: Annotated[
        Path, typer.Option("--folder", metavar="DIR", help="Where to; default: qlog, here.")
    ] = Path("qlog"),
    interval: Annotated[
        str | None,
        typer.Option(
            "--interval",
            metavar="T",
            help="Between two samples of windows; default: 10 ms, or what makes 2 million samples.",
        ),
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="Files at most.")] = 100,
    out: Out = "runs",
) -> None:
    """Write what connections of a run did as qlog, a file for each, which qvis draws."""
    from redtail.metrics import counted
    from redtail.running import qlogs
    from redtail.scenario import TIMES, quantity

    interval_s = None
    if interval is not None:
        number, unit = quantity(interval)
        if not number or unit not in TIMES:
            raise SpecError(f"--interval {interval}: accepted: a time, such as '10 ms'")
        interval_s = number * TIMES[unit]
    wanted = qlogs.Wanted(folder, flow, group, most, interval_s)
    with warnings_shown():
        written = qlogs.write(folder_of_run(run, out, case, replication), wanted)
    for path in written.files:
        say(f"qlog:    {path}")
    for note in written.notes:
        complain(note, "note")
    if written.left_out:
        left = counted(written.left_out, "connection")
        complain(f"{left} more; --most N, --flow and --group choose others", "note")
