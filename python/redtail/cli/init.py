"""`redtail init`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
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
    lang: Annotated[
        str | None,
        typer.Option(
            "--lang",
            metavar="LANGUAGE",
            help="For `queue` and `controller`: python, c, c++ or rust; without it python.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that exists; without it none is.")
    ] = False,
) -> None:
    """Write a commented experiment to start from, or list those there are."""
    from redtail import templates
    from redtail.display.index import index
    from redtail.templates import plugins

    names = tuple(dict.fromkeys((*templates.names(), *plugins.KINDS)))
    if template is None:
        if out is not None or force or lang is not None:
            option = f"--out {out}" if out is not None else "--lang" if lang else "--force"
            raise SpecError(f"{option}: which template? accepted: {', '.join(names)}")
        rows = [(name, _about(name)) for name in names]
        say("\n".join(index(rows, width())))
        return
    if template in plugins.KINDS and (
        template not in templates.names() or lang not in (None, "python")
    ):
        _say_written(plugins.write(template, lang or "python", out, force=force))
        return
    if lang is not None and template not in plugins.KINDS:
        raise SpecError(f"--lang {lang}: accepted with {', '.join(plugins.KINDS)}")
    if template not in names:
        raise SpecError(f"there is no template {template!r}; accepted: {', '.join(names)}")
    if out == "-":
        say(templates.text(template).rstrip("\n"))
        return
    _say_written(templates.write(template, out, force=force))


def _about(name: str) -> str:
    """Return the sentence that says what a template is about."""
    from redtail import templates
    from redtail.templates import plugins

    return templates.about(name) if name in templates.names() else plugins.KINDS[name]


def _say_written(written: Sequence[Path]) -> None:
    """Say which files were written, the experiment first, and what can be done with it."""
    for path in written:
        say(f"written: {path}")
    file = shlex.quote(str(written[0]))
    make = [
        f"make -C {shlex.quote(str(path.parent))}" for path in written if path.name == "Makefile"
    ]
    say(f"next:    {'; '.join([*make, f'redtail check {file}', f'redtail run {file}'])}")
