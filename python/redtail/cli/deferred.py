"""Commands whose modules are loaded when they are called.

`redtail --help` needs a name and a line of each command, and `redtail run` the module of one. To
load them all would take as long as the rest of the start.
"""

from __future__ import annotations

import inspect
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from redtail.cli.output import encodable

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Plain:
    """What commands have in common, and groups of them: help as plain text, read without pydantic.

    rich, which draws help otherwise, takes longer to load than the help of a command to print.
    """

    kinds: Mapping[str, Any]
    """The types of the values of parameters, by name, as the function of a command has them."""

    def __init__(self, *args: Any, **named: Any) -> None:
        self.kinds = {}
        super().__init__(*args, **{**named, "rich_markup_mode": None})

    def get_help(self, context: Any) -> str:
        """Return the help; Typer would write UTF-8, whatever the encoding of the output is."""
        return encodable(super().get_help(context))  # type: ignore[misc]

    def get_params(self, context: Any) -> Any:
        """Return the parameters, which read what they can themselves."""
        found = super().get_params(context)  # type: ignore[misc]
        for each in found:
            if "process_value" not in vars(each):
                # `--help`, `--version` and the options for completion are flags.
                _read_plainly(each, self.kinds.get(each.name, bool))
        return found


class PlainCommand(_Plain, TyperCommand):
    """A command of Typer."""


class PlainGroup(_Plain, TyperGroup):
    """A group of commands of Typer."""


class Deferred(PlainCommand):
    """A command that is a name and a line of help until it is called.

    Args:
        name: its name on the command line.
        place: where its function is: the module in `redtail.cli`, a dot, and the function.
        line: what `redtail --help` says of it: the first paragraph of the function's docstring.
    """

    def __init__(self, name: str, place: str, line: str) -> None:
        super().__init__(name, short_help=line)
        self._place = place

    def loaded(self) -> Any:
        """Return the command with its options, by typer."""
        from redtail.cli.exits import reported

        module, _, function = self._place.partition(".")
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        command = getattr(import_module(f"redtail.cli.{module}"), function)
        alone.command(self.name, cls=PlainCommand)(reported(command))
        made: Any = typer.main.get_command(alone)
        given = inspect.signature(command, eval_str=True).parameters
        made.kinds = {name: get_args(each.annotation)[0] for name, each in given.items()}
        return made

    def make_context(self, *args: Any, **named: Any) -> Any:
        """Return the context of the loaded command, which is then called in place of this one."""
        return self.loaded().make_context(*args, **named)


def _read_plainly(parameter: Any, kind: Any) -> None:
    """Let a parameter read texts, paths and choices itself, and take defaults as they are.

    Typer reads each value, also one that is not given, with pydantic, which takes as long to load
    as the rest of the start. It still reads numbers, and says what is wrong with a value.

    Args:
        parameter: of a command.
        kind: the type of its values, as the function has it.
    """
    by_typer = parameter.process_value
    if get_origin(kind) is UnionType:
        (kind,) = set(get_args(kind)) - {NoneType}
    several = get_origin(kind) is list
    if several:
        (kind,) = get_args(kind)
    choices = [each.value for each in kind] if issubclass(kind, Enum) else []

    def process_value(context: Any, value: Any) -> Any:
        texts = value if several and value else [value]
        if value is None and not parameter.required:
            read: Any = () if several else None
        elif type(value) is kind and not several:
            read = value
        elif all(type(each) is str and (kind in (str, Path) or each in choices) for each in texts):
            read = [kind(each) for each in texts] if several else kind(value)
        else:
            return by_typer(context, value)
        return read if parameter.callback is None else parameter.callback(context, parameter, read)

    parameter.process_value = process_value


def deferred(lines: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Return commands by name, from the place of each and its line of help."""
    return {name: Deferred(name, *place_and_line) for name, place_and_line in lines.items()}


def group(name: str, line: str, lines: Mapping[str, tuple[str, str]]) -> TyperGroup:
    """Return a command that has commands; without one it prints its help."""
    return PlainGroup(name=name, help=line, commands=deferred(lines), no_args_is_help=True)
