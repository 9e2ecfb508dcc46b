"""`redtail doctor`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from redtail.cli.exits import EXIT_FAILED
from redtail.cli.options import AsJson
from redtail.cli.output import say

if TYPE_CHECKING:
    from redtail.backends.doctor import Need


def doctor(as_json: AsJson = False) -> None:
    """Say for each backend what it needs, what this computer has, and what brings the rest.

    The exit code is 1 if a backend lacks something that it cannot run without.
    """
    from redtail.backends import doctor

    found = doctor.needs()
    if as_json:
        say(json.dumps([need.as_json() for need in found], indent=2))
    else:
        for backend in dict.fromkeys(need.backend for need in found):
            own = [need for need in found if need.backend == backend]
            ready = all(need.here for need in own if need.required)
            say(f"backend {backend}: {'ready' if ready else 'cannot run here'}")
            for need in own:
                say(_line(need))
                if not need.here and need.packages:
                    brought = "; ".join(f"{who}: {what}" for who, what in need.packages.items())
                    say(f"           packages: {brought}")
    if any(need.required and not need.here for need in found):
        raise typer.Exit(EXIT_FAILED)


def _line(need: Need) -> str:
    if need.here:
        return f"  ok       {need.what}: {need.found}"
    kind = "missing" if need.required else "absent"
    return f"  {kind:8} {need.what}: {need.lacking}"
