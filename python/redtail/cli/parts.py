"""`redtail list` and `redtail schema`: what an experiment file can say."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from redtail.cli.output import say


class Part(StrEnum):
    """What `redtail list` lists."""

    queues = "queues"
    tcp = "tcp"
    traffic = "traffic"


def schema() -> None:
    """Print the JSON schema of the experiment file, for editors that complete and check."""
    from redtail import _engine

    say(json.dumps(_engine.schema(), indent=2, ensure_ascii=False))


def list_parts(
    part: Annotated[Part, typer.Argument(help="What to list.")],
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="Show this one alone.")
    ] = None,
) -> None:
    """List queues, TCP presets or traffic with parameters, units, defaults and sources."""
    from redtail import catalog

    say(catalog.listing(part.value, kind))
