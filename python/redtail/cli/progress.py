"""How far a campaign is, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from redtail import escape
from redtail.cli.output import complain

if TYPE_CHECKING:
    from redtail.progress import Progress
    from redtail.running.watching import State


# A log of a campaign of hours gets a line so often.
_SECONDS_BETWEEN_LINES = 60.0

# Simulations in progress whose shares are listed, at most.
_MOST_SHARES = 4

# From this many simulated seconds on, tenths of them tell nothing.
_WHOLE = 1000.0


@contextmanager
def progress_shown(
    every: float | None = None,
) -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar on standard error; a line every so many seconds when that is not a terminal."""
    if not sys.stderr.isatty():
        yield _lines(_SECONDS_BETWEEN_LINES if every is None else every)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    with Bar(
        BarColumn(bar_width=None),
        TextColumn("{task.fields[runs]}"),
        TextColumn("{task.fields[inside]}"),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[failed]}"),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None, runs="", inside="", speed="", left="", failed="")
        noted = 0

        def show(state: Progress) -> None:
            nonlocal noted
            for text in state.notes[noted:]:
                bar.console.print(escape.text(text), highlight=False, markup=False, emoji=False)
            noted = len(state.notes)
            runs, inside, speed, left, failed = _words(state)
            bar.update(
                task,
                total=state.total,
                completed=state.done + state.failed + (state.parts if state.slow else 0.0),
                runs=runs,
                inside=inside,
                speed=speed,
                left=left,
                failed=failed,
            )

        yield show


def seen(state: State) -> Progress:
    """Return the state of another process's campaign as the progress of one of this process."""
    from redtail.progress import Progress

    return Progress(
        total=state.total,
        reused=state.reused,
        done=state.done,
        packets=state.packets,
        failed=state.failed,
        calibrating=state.calibrating,
        running=state.running,
        started=time.monotonic() - state.elapsed,
    )


def _lines(every: float) -> Callable[[Progress], None]:
    """Return what prints a line of progress, but not more often than every so many seconds."""
    last = time.monotonic()

    def show(state: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every:
            last = now
            complain(", ".join(filter(None, _words(state))), "progress")

    return show


def _words(state: Progress) -> tuple[str, str, str, str, str]:
    """Return runs, how far those in progress are, speed, time left and failures.

    A part that is not known is empty.
    """
    # The number of runs of a calibration is known only at its end.
    left = None if state.calibrating else state.left_s
    return (
        f"{state.done}/{state.total} {'runs to calibrate' if state.calibrating else 'runs'}",
        _inside(state.running) if state.slow else "",
        _speed(state.packets_per_s) if state.packets else "",
        "" if left is None else f"{_duration(left)} left",
        f"{state.failed} failed" if state.failed else "",
    )


def _inside(running: Sequence[tuple[float, float]]) -> str:
    """Return how far simulations in progress are.

    >>> _inside([(12.34, 60.0)]), _inside([(15.0, 60.0), (30.0, 60.0)]), _inside([])
    ('12.3 s of 60 s simulated', '25 %, 50 % simulated', '')
    >>> _inside([(15.0, 60.0)] * 5)
    '25 % simulated, the mean of 5'
    """
    if not running:
        return ""
    if len(running) == 1:
        now, end = running[0]
        return f"{now:.{1 if end < _WHOLE else 0}f} s of {end:g} s simulated"
    shares = [100 * now / end for now, end in running]
    if len(shares) <= _MOST_SHARES:
        return f"{', '.join(f'{share:.0f} %' for share in shares)} simulated"
    return f"{sum(shares) / len(shares):.0f} % simulated, the mean of {len(shares)}"


def _speed(packets_per_s: float) -> str:
    """Return packets in a second of waiting: millions of a simulation, fewer in real time.

    >>> [_speed(packets) for packets in (2_345_678, 845.2)]
    ['2.35 M packets/s', '845 packets/s']
    """
    if packets_per_s < 1e4:
        return f"{packets_per_s:.0f} packets/s"
    return f"{packets_per_s / 1e6:.2f} M packets/s"


def _duration(seconds: float) -> str:
    """Return a time to wait, to two places.

    >>> [_duration(seconds) for seconds in (7.4, 119.6, 7260, 200_000)]
    ['7 s', '2 min 0 s', '2 h 1 min', '2 d 7 h']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"
