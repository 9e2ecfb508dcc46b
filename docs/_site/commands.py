"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from redtail.cli.deferred import Deferred

_HEAD = """# Commands

What `redtail --help` and `redtail COMMAND --help` print, on one page. Exit codes: 0 done, 1 a run
failed or its results could not be kept, 2 the input is not valid, 130 interrupted.
"""


def page(root: Any, name: str = "redtail") -> str:
    """Return the page, in Markdown, for typer's command of an application."""
    return _HEAD + "".join(f"\n{_command(words, one)}" for words, one in commands(root, name))


def commands(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Yield each command that does something, with the words that call it."""
    if isinstance(command, Deferred):
        command = command.loaded()
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
        return
    for name, one in inner.items():
        if not one.hidden:
            yield from commands(one, f"{words} {name}")


def _command(words: str, command: Any) -> str:
    parameters = [one for one in command.params if not getattr(one, "hidden", False)]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    options = [one for one in parameters if one.param_type_name != "argument"]
    usage = " ".join(
        [words, *(["[OPTIONS]"] if options else []), *(_argument(one) for one in arguments)]
    )
    text = f"## {words}\n\n{_prose(command.help)}\n\n```text\n{usage}\n```\n"
    rows = [
        *((f"`{one.metavar or one.name.upper()}`", one) for one in arguments),
        *((_option(one), one) for one in options),
    ]
    if rows:
        text += "\n| argument or option | meaning |\n|---|---|\n"
        text += "".join(f"| {name} | {_meaning(one)} |\n" for name, one in rows)
    return text


def _argument(one: Any) -> str:
    name = (one.metavar or one.name.upper()) + ("..." if one.nargs != 1 else "")
    return name if one.required else f"[{name}]"


def _option(one: Any) -> str:
    value = "" if one.is_flag else f" {one.metavar or one.name.upper()}"
    names = [f"`{name}{value}`" for name in (*one.opts, *one.secondary_opts)]
    return "<br>".join(names)


def _meaning(one: Any) -> str:
    text = _prose(one.help)
    if one.required and one.param_type_name != "argument":
        text += " Required."
    if (default := _default(one)) is not None:
        text += f" Default: `{default}`."
    return text.replace("|", "\\|")


def _default(one: Any) -> str | None:
    """The default as the user would give it, if there is one to tell."""
    if getattr(one, "is_bool_flag", False):
        return (one.opts if one.default else one.secondary_opts)[0] if one.secondary_opts else None
    return None if one.default in (None, (), []) or callable(one.default) else str(one.default)


def _prose(text: str | None) -> str:
    """Return a help text as Markdown: brackets and angles are text, lines are joined."""
    joined = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text or "").replace("\f", ""))
    parts = re.split(r"(`[^`]*`)", joined)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts
    )
