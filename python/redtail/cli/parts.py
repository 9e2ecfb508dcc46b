"""`redtail list` and `redtail schema`: what an experiment file can say."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from redtail.cli import completion
from redtail.cli.output import say, width
from redtail.errors import SpecError
from redtail.files import path_of


class Part(StrEnum):
    """What `redtail list` lists."""

    queues = "queues"
    tcp = "tcp"
    laws = "laws"
    traffic = "traffic"
    metrics = "metrics"
    events = "events"


def schema() -> None:
    """Print the JSON schema of the experiment file, for editors that complete and check."""
    from redtail import facts

    say(json.dumps(facts.schema(), indent=2, ensure_ascii=False))


def list_parts(
    part: Annotated[Part, typer.Argument(help="What to list.")],
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="Show this one alone; for metrics an experiment file (.toml): show those that it "
            "will have.",
            autocompletion=completion.parts,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print metrics as JSON and nothing else.")
    ] = False,
    long: Annotated[
        bool, typer.Option("--long", help="Metrics with their definitions, not in a line each.")
    ] = False,
) -> None:
    """List queues, TCP presets, laws or traffic with parameters, metrics or events."""
    from redtail import catalog

    if part is Part.metrics:
        from redtail import experiment

        is_file = kind is not None and (kind.endswith(".toml") or path_of(kind).exists())
        measured = experiment.measured(kind) if kind is not None and is_file else None
        wanted = None if is_file else kind
        say(
            catalog.metric_listing(
                measured, as_json=as_json, long=long, wanted=wanted, width=width()
            )
        )
        return
    for option, given in (("--json", as_json), ("--long", long)):
        if given:
            raise SpecError(
                f"{option}: not for {part.value}; accepted: redtail list metrics {option}"
            )
    if part is Part.events:
        say(catalog.event_listing(kind, width()))
        return
    say(catalog.listing(part.value, kind, width()))
