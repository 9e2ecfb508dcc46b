"""The errors redtail raises, as one family."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from redtail import escape


class RedtailError(Exception):
    """Anything redtail reports to its user; the text is the whole message.

    Characters in it that cannot be seen, which names of users can have, are shown as escapes.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(escape.text(message))


class SpecError(RedtailError, ValueError):
    """The experiment is not valid.

    Attributes:
        file: the experiment file, when there is one.
        line: the line in that file (from 1), when it is known.
        key: the dotted path of the offending key, when there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.key = key


class StoreError(RedtailError):
    """Results cannot be written or read."""


class RunError(RedtailError):
    """A run failed although its scenario was valid: a fault in redtail, or in a queue of yours."""


class PluginError(RunError):
    """A class of the user's own failed: it raised an exception or broke its contract."""


class QueueError(PluginError):
    """A queue written in Python failed."""


class ControllerError(PluginError):
    """A congestion controller written in Python failed."""


class InvalidRun(RunError):
    """A run came to its end, but what it measured must not be used.

    A backend in real time raises it, for instance, when the machine was too busy to send on time.

    Attributes:
        metrics: what was measured nevertheless; it goes into the log of the run.
    """

    def __init__(self, reason: str, metrics: Mapping[str, float] | None = None) -> None:
        super().__init__(reason)
        self.metrics = dict(metrics or {})

    # Not in the arguments, from which the error is made again in another process.
    def __str__(self) -> str:
        return f"the run is not valid: {self.args[0]}"


class Cancelled(RedtailError):
    """The work was stopped before its end; what was finished is kept.

    Attributes:
        kept: number of runs whose results are in the store.
        total: number of runs the experiment has.
        folder: where the kept results are, when a store was in use.
    """

    def __init__(
        self,
        message: str = "cancelled",
        *,
        kept: int = 0,
        total: int = 0,
        folder: Path | None = None,
    ) -> None:
        super().__init__(message)
        self.kept = kept
        self.total = total
        self.folder = folder


class RedtailWarning(UserWarning):
    """Check this before trusting the results."""

    def __init__(self, message: str = "") -> None:
        super().__init__(escape.text(message))


# Of the dynamic linker (ld.so), of the C library's ENOMEM, and of Python's threads and exceptions.
_SIGNS_OF_NO_MEMORY = (
    "failed to map segment from shared object",
    "cannot allocate memory",
    "Cannot allocate memory",
    "can't start new thread",
    "MemoryError",
)


def tells_no_memory(text: str) -> bool:
    """Return whether an error's text, or what a program wrote of one, tells of a lack of memory."""
    return any(sign in text for sign in _SIGNS_OF_NO_MEMORY)
