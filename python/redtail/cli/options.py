"""Options that several commands have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from redtail.cli import completion
from redtail.options import PlanOptions

File = Annotated[Path, typer.Argument(metavar="FILE", help="The experiment, in TOML.")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key, for instance bottleneck.rate='20 Mbit/s'. May be repeated.",
    ),
]
Replications = Annotated[
    int | None, typer.Option("--replications", min=1, metavar="N", help="Replications per case.")
]
Until = Annotated[
    list[str] | None,
    typer.Option(
        "--until",
        metavar="RULE",
        help="Replications until sure, for instance 'queue_delay_p99 within 5 %'. May be repeated.",
    ),
]
AtLeast = Annotated[
    int | None,
    typer.Option("--at-least", min=2, metavar="N", help="Replications before --until looks."),
]
AtMost = Annotated[
    int | None, typer.Option("--at-most", min=2, metavar="N", help="Replications at most.")
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, metavar="N", help="Runs at a time; default: all processors."),
]
Out = Annotated[
    str,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Where results are kept: a folder, or a URL such as s3://bucket/runs.",
    ),
]
OutFolder = Annotated[
    str,
    typer.Option("--out", metavar="DIR", help="Where results are kept: a folder on this computer."),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        metavar="NAMES",
        help="What tables and figures show: 'goodput,web.*,*.one_way_delay_p99'. Without it what "
        "the table `report` of FILE says, or what suits the traffic.",
    ),
]
AllowCode = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow-code",
        metavar="PATH",
        help="A file or folder, outside the experiment's own, whose code the experiment may "
        "execute. May be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Print the table alone, for other programs: csv, latex or markdown.",
        autocompletion=completion.forms,
    ),
]
BackendName = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="NAME",
        help="What makes the runs: sim, live, live-tc, linux or linux-tcp. Without it what FILE "
        "says, or sim.",
        autocompletion=completion.backends,
    ),
]
KernelName = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="NAME",
        help="The kernel of backend linux or linux-tcp, one of `redtail kernel list`; without it "
        "the one fetched or added last.",
        autocompletion=completion.kernels,
    ),
]

_PLAN = {
    "set": Sets,
    "replications": Replications,
    "until": Until,
    "at_least": AtLeast,
    "at_most": AtMost,
    "metrics": Metrics,
    "allow_code": AllowCode,
}
assert _PLAN.keys() == PlanOptions.__annotations__.keys()


def with_plan_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each of `PlanOptions`, after its arguments.

    Args:
        command: a command with a parameter `**given: Unpack[PlanOptions]`; it gets those that the
            user has given.
    """

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        for name in _PLAN:
            if values[name] in (None, []):
                del values[name]
        command(**values)

    own = list(inspect.signature(command, eval_str=True).parameters.values())[:-1]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _PLAN.items()
    ]
    all_of_them = [
        own[0],
        *shared,
        *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own[1:]),
    ]
    wrapped.__signature__ = inspect.Signature(all_of_them)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in all_of_them}
    return wrapped
