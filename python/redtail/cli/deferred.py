"""Commands whose modules are loaded when they are called.

`redtail --help` needs a name and a line of each command, and `redtail run` the module of one. To
load them all would take as long as the rest of the start.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Mapping


class Deferred(TyperCommand):
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
        alone.command(self.name)(reported(command))
        return typer.main.get_command(alone)

    def make_context(self, *args: Any, **named: Any) -> Any:
        """Return the context of the loaded command, which is then called in place of this one."""
        return self.loaded().make_context(*args, **named)


def deferred(lines: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Return commands by name, from the place of each and its line of help."""
    return {name: Deferred(name, *place_and_line) for name, place_and_line in lines.items()}


def group(name: str, line: str, lines: Mapping[str, tuple[str, str]]) -> TyperGroup:
    """Return a command that has commands; without one it prints its help."""
    return TyperGroup(name=name, help=line, commands=deferred(lines), no_args_is_help=True)
