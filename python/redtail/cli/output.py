"""What commands print: results on standard output, all else on standard error."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from redtail import escape
from redtail.errors import RedtailWarning, SpecError

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table


# A table sent to a file or through a pipe has no terminal to fit.
_WIDTH_WITHOUT_TERMINAL = 118

# The name of `_as_escapes` among Python's handlers of errors.
_ESCAPED = "redtail-escapes"


def prepare_streams() -> None:
    """Make standard output and error take every text, whatever encoding they have.

    What the encoding has no character for is written as an escape, which is the same text in JSON.
    What is written to a stream that the caller has closed is not wanted; no file that is opened
    later gets its number.
    """
    codecs.register_error(_ESCAPED, _as_escapes)
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            assert opened == number
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ESCAPED)


def encodable(text: str) -> str:
    """Return a text with escapes for what standard output has no character for."""
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    return text.encode(encoding, errors).decode(encoding) if encoding and errors else text


def _as_escapes(error: UnicodeError) -> tuple[str, int]:
    r"""Write characters that an encoding lacks as JSON does.

    >>> _as_escapes(UnicodeEncodeError("ascii", "a\u00b1\U0001f600", 1, 3, "none"))
    ('\\u00b1\\ud83d\\ude00', 3)
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wanted = error.object[error.start : error.end]
    units = wanted.encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in pairs), error.end


def complain(text: str, kind: str = "error") -> None:
    """Print a message on standard error."""
    # Plain print: a message may contain what rich would take for markup.
    # Even if no message can be shown, the exit code says how it ended.
    with contextlib.suppress(OSError):
        print(escape.text(f"{kind}: {text}"), file=sys.stderr)


def say(text: str) -> None:
    """Print a result; what cannot be seen in names is escaped, which is the same text in JSON."""
    print(escape.text(text))


def form_alone(form: str, as_json: bool) -> str:
    """Return the form that `--format` names.

    Raises:
        SpecError: there is no such form, or `--json` is given too.
    """
    from redtail.display.texts import form_of

    if as_json:
        raise SpecError("--format and --json exclude each other")
    return form_of(form, "--format")


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Show redtail's warnings as lines, not as Python shows warnings.

    Of those that differ in numbers alone, as those of 500 runs do, the first is shown, and in the
    end how many there were.
    """
    counts: dict[str, tuple[str, int]] = {}

    def show(message: Warning | str, category: type[Warning], *rest: object) -> None:
        if not issubclass(category, RedtailWarning):
            original(message, category, *rest)  # type: ignore[arg-type]
            return
        form = _NUMBERS.sub("", str(message))
        first, count = counts.get(form, (str(message), 0))
        counts[form] = first, count + 1
        if count == 0:
            complain(first, "warning")

    with warnings.catch_warnings():
        original = warnings.showwarning
        warnings.simplefilter("always", RedtailWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        finally:
            for first, count in counts.values():
                if count > 1:
                    complain(f"{count - 1} more like this one: {first}", "warning")


# Numbers, and the names of runs.
_NUMBERS = re.compile(r"[0-9a-f]{16,}|[0-9]+")


def print_wide(table: Table | Group) -> None:
    """Print a table as wide as the terminal."""
    from rich.console import Console

    Console(width=width(), highlight=False, markup=False, emoji=False).print(table)


def width() -> int:
    """Return the number of columns of the output: `COLUMNS`, else those of the terminal."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    if not sys.stdout.isatty():
        return _WIDTH_WITHOUT_TERMINAL
    return shutil.get_terminal_size().columns


def runs_in_words(count: int, reused: int, seconds: float) -> str:
    """Return how many runs a command took, and how long it was.

    >>> runs_in_words(12, 4, 3.25), runs_in_words(1, 0, 0.5)
    ('12 runs, 4 of them reused, in 3.2 s', '1 run, in 0.5 s')
    """
    from redtail.metrics import counted

    again = f", {reused} of them reused" if reused else ""
    return f"{counted(count, 'run')}{again}, in {seconds:.1f} s"
