"""`redtail init`."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from redtail.cli import completion
from redtail.cli.output import say, width
from redtail.errors import SpecError


def init(
    template: Annotated[
        str | None,
        typer.Argument(
            metavar="[TEMPLATE]",
            help="What to start from; without it: a list.",
            autocompletion=completion.templates,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Where it is written: a file, a folder, or - for standard output; without it "
            "TEMPLATE.toml in this folder.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that exists; without it none is.")
    ] = False,
) -> None:
    """Write a commented experiment to start from, or list those there are."""
    from redtail import templates
    from redtail.display.index import index

    if template is None:
        if out is not None or force:
            option = "--force" if out is None else f"--out {out}"
            raise SpecError(f"{option}: which template? accepted: {', '.join(templates.names())}")
        rows = [(name, templates.about(name)) for name in templates.names()]
        say("\n".join(index(rows, width())))
        return
    if out == "-":
        say(templates.text(template).rstrip("\n"))
        return
    written = templates.write(template, out, force=force)
    for path in written:
        say(f"written: {path}")
    file = shlex.quote(str(written[0]))
    say(f"next:    redtail check {file}; redtail run {file}")
