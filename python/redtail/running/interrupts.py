"""What Ctrl-C does while runs are made: the first stops them, the second ends the program.

The first is acknowledged at once, whatever the runs do: they are made in other threads, without the
interpreter lock, and a queue written in Python releases the lock every few milliseconds. They stop
when the engine next checks for it. With a queue that never returns the engine cannot check; then
the second Ctrl-C ends the program. The store is whole at any moment, since results are written
aside and renamed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from types import FrameType
from typing import Self

EXIT_INTERRUPTED = 130
"""Exit code after an interrupt: 128 and the number of SIGINT, as shells have it."""

MESSAGE = "Stopping: finished runs are kept; press Ctrl-C again to end the program now"


class Interrupts:
    """Defers Ctrl-C while results are stored, which it must not interrupt.

    Only in the main thread, which alone receives the signal, and only if the program has no handler
    of its own for it. In an interactive session (a notebook, say) the second one raises
    KeyboardInterrupt and does not end the session.

    Attributes:
        count: how often it was pressed.
    """

    def __init__(self) -> None:
        self.count = 0
        self._held = False

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        self._held = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._held:
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *rest: object) -> None:
        if self._held:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count == 1:
            _print(MESSAGE)
        elif _interactive():
            raise KeyboardInterrupt
        else:
            _end()

    def let_through(self) -> None:
        """Raise the interrupt that was deferred.

        Raises:
            KeyboardInterrupt: there was a Ctrl-C.
        """
        if self.count:
            raise KeyboardInterrupt

    @property
    def waits_for_runs(self) -> bool:
        """Whether to wait for runs that are asked to stop."""
        return self.count < 2


def _interactive() -> bool:
    # `ps1`, the prompt, exists in Python's own shell, in IPython and in notebooks.
    return hasattr(sys, "ps1")


def _print(text: str) -> None:
    # What was interrupted may itself be writing to the stream, which cannot be entered twice.
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        if _interactive():
            print(text, file=sys.stderr, flush=True)
        else:
            # A terminal shows a bar of progress or "^C" in this line.
            begin = "\n" if os.isatty(2) else ""
            os.write(2, f"{begin}{text}\n".encode())


def _end() -> None:
    with contextlib.suppress(OSError):
        if os.isatty(2):
            os.write(2, b"\x1b[?25h\n")  # a bar of progress hides the cursor
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, RuntimeError, ValueError, AttributeError):
            stream.flush()
    # Neither threads nor their runs are waited for.
    os._exit(EXIT_INTERRUPTED)
