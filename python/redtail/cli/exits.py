"""How a command ends: one message and an exit code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

import typer

from redtail.cli.output import complain
from redtail.errors import Cancelled, RedtailError, SpecError
from redtail.running.interrupts import EXIT_INTERRUPTED

P = ParamSpec("P")

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2

EXIT_DID_NOT_HELP = 3
EXIT_MADE_WORSE = 4
EXIT_UNDECIDED = 5
"""How `redtail verify` ends, besides 0 where it helped. `redtail expect` may end with the last."""


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what a user can run into one clear message and an exit code."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            complain("interrupted; finished runs are kept")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except Cancelled as error:
            complain(str(error))
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except SpecError as error:
            complain(str(error))
            raise typer.Exit(EXIT_BAD_INPUT) from None
        except RedtailError as error:
            complain(str(error))
            raise typer.Exit(EXIT_FAILED) from None

    return wrapped
