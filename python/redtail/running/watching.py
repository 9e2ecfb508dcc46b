"""How far a campaign is, for other processes: a small file beside its runs.

A campaign writes it about once a second, and removes it at its end. After a kill it stays; the lock
of the folder, which the system releases, tells then that nobody is at work.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType

from redtail.files import plain_bytes
from redtail.store.format import MALFORMED, PROGRESS
from redtail.store.locks import in_use
from redtail.store.sealing import expect
from redtail.store.writing import put_in_place

_SECONDS_BETWEEN = 1.0

# Far more than the numbers of a campaign take, with a pair for each simulation in progress.
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class State:
    """How far a campaign is.

    Attributes:
        total: runs that it makes or has.
        reused: runs whose results were in the store already.
        done: runs that are finished, the reused ones included.
        failed: runs that failed.
        packets: packets that finished runs have sent over their bottleneck.
        calibrating: whether these are runs that find how many users offer a load.
        elapsed: seconds since it began, when it wrote this; by a clock that nobody sets.
        running: for each simulation in progress the simulated time and its end, in seconds.
    """

    total: int
    reused: int
    done: int
    failed: int
    packets: int
    calibrating: bool
    elapsed: float = field(compare=False)
    running: tuple[tuple[float, float], ...] = ()

    @property
    def whole(self) -> bool:
        """Whether every run is finished or has failed."""
        return not self.calibrating and self.done + self.failed >= self.total


class Board:
    """Shows other processes how far this campaign is.

    Args:
        folders: of its experiments; each gets the state of the whole campaign.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders
        self.started = time.monotonic()
        self._last = self.started

    def __enter__(self) -> Board:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        for folder in self.folders:
            with contextlib.suppress(OSError):
                (folder / PROGRESS).unlink(missing_ok=True)

    @property
    def due(self) -> bool:
        """Whether it is time to show it again: about once a second."""
        return time.monotonic() - self._last >= _SECONDS_BETWEEN

    def show(
        self,
        *,
        total: int,
        reused: int,
        done: int,
        failed: int,
        packets: int,
        calibrating: bool,
        running: Sequence[tuple[float, float]] = (),
    ) -> None:
        """Write how far it is."""
        self._last = time.monotonic()
        elapsed = self._last - self.started
        state = State(total, reused, done, failed, packets, calibrating, elapsed, tuple(running))
        data = json.dumps(asdict(state)).encode()
        for folder in self.folders:
            # Nobody's results depend on it: a full disk is found out elsewhere.
            with contextlib.suppress(OSError):
                put_in_place(folder / PROGRESS, data)


def read(folder: Path) -> State | None:
    """Return how far the campaign in a folder is; None when it has not said it yet."""
    with contextlib.suppress(*MALFORMED):
        found = json.loads(plain_bytes(folder / PROGRESS, _MOST_BYTES))
        counts = {
            name: int(_number(found[name], int, name))
            for name in ("total", "reused", "done", "failed", "packets")
        }
        if not all(0 <= count < 2**63 for count in counts.values()):
            raise ValueError("no such number of runs or packets")
        return State(
            **counts,
            calibrating=found["calibrating"] is True,
            elapsed=_number(found["elapsed"], int | float, "elapsed"),
            running=tuple(
                (_number(now, int | float, "running"), _number(end, int | float, "running"))
                for now, end in found.get("running", ())
            ),
        )
    return None


def _number(value: object, kind: object, what: str) -> float:
    """Return a number that can be a count or a time."""
    found = float(expect(value, kind, what))
    if not 0 <= found < math.inf:
        raise ValueError(f"{what} is {found}")
    return found


def watch(
    folder: Path,
    show: Callable[[State], None],
    *,
    interval: float,
    sleep: Callable[[float], object] = time.sleep,
) -> State | None:
    """Follow the campaign in a folder until nobody is at work there.

    Args:
        folder: of an experiment.
        show: called with each new state.
        interval: seconds between two looks.
        sleep: waits so long.

    Returns:
        The last state that was seen; None when there was none.
    """
    last = None
    while True:
        working = in_use(folder)
        state = read(folder)
        if state is not None and state != last:
            last = state
            show(state)
        if not working:
            return last
        sleep(interval)
