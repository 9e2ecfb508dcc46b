"""`redtail list` and `redtail schema`: what an experiment file can say."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from redtail.cli.output import say
from redtail.errors import SpecError


class Part(StrEnum):
    """What `redtail list` lists."""

    queues = "queues"
    tcp = "tcp"
    traffic = "traffic"
    metrics = "metrics"


def schema() -> None:
    """Print the JSON schema of the experiment file, for editors that complete and check."""
    from redtail import _engine

    say(json.dumps(_engine.schema(), indent=2, ensure_ascii=False))


def list_parts(
    part: Annotated[Part, typer.Argument(help="What to list.")],
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="Show this one alone; for metrics an experiment file: show those it will have.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print metrics as JSON and nothing else.")
    ] = False,
) -> None:
    """List queues, TCP presets or traffic with parameters, or metrics with definitions."""
    from redtail import catalog

    if part is Part.metrics:
        from redtail import experiment

        measured = None if kind is None else experiment.measured(kind)
        say(catalog.metric_listing(measured, as_json))
        return
    if as_json:
        raise SpecError(f"--json: not for {part.value}; accepted: redtail list metrics --json")
    say(catalog.listing(part.value, kind))
