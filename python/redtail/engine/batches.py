"""Runs scenarios in the simulator: one by one, in batches, or with captures of packets.

It must not know cases, replications or the store: a scenario is a text.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from redtail import native
from redtail.errors import Cancelled, RunError
from redtail.inputs import programs
from redtail.inputs import queues as own
from redtail.inputs import traces as tables
from redtail.outcomes import TABLES, Joined, Outcome, Outcomes, Rows

if TYPE_CHECKING:
    from redtail._native import CancelToken


BACKEND = "sim"
"""The name under which this engine's results are stored."""


def translated(queues: Mapping[str, own.Located] | None) -> AbstractContextManager[None]:
    """Return `native.translated`, which also names the queue of the user that failed."""

    def failed(error: Exception) -> Exception:
        return own.failure(error, queues or {})

    return native.translated(failed)


def run_many(
    scenarios: Sequence[str],
    cancel: CancelToken | None = None,
    queues: Mapping[str, own.Located] | None = None,
    traces: Mapping[str, tables.Located | programs.Located] | None = None,
    columns: bool = False,
) -> list[Outcomes | RunError]:
    """Run scenarios one after the other.

    They are run without the interpreter lock, except for queues written in Python.

    Args:
        scenarios: the runs.
        cancel: stops them.
        queues: the classes that they name as queues.
        traces: the tables of connections that they name.
        columns: whether runs without series are wanted in columns alone, all at once.

    Returns:
        What they measured, in their order: outcomes of one run after the other, and in the place
        of a run that failed its error. Fewer when they were stopped.
    """
    classes = {name: located.load() for name, located in (queues or {}).items()} or None
    loaded = [located.load() for located in (traces or {}).values()] or None
    found: list[Outcomes | RunError] = []
    rest = list(scenarios)
    while rest:
        with translated(queues):
            batch = native.module().run_many(rest, cancel, classes, loaded, columns)
        if len(batch):
            found.append(_Batch(batch))
        if batch.failure is None:
            break
        try:
            with translated(queues):
                raise batch.failure
        except Cancelled:
            break
        except RunError as error:
            found.append(error)
        rest = rest[len(batch) + 1 :]
    return found


def run_one(
    scenario: str,
    cancel: CancelToken | None = None,
    queues: Mapping[str, own.Located] | None = None,
    traces: Mapping[str, tables.Located | programs.Located] | None = None,
) -> Outcome:
    """Run one scenario, without the interpreter lock, except for queues written in Python.

    Args:
        scenario: the run.
        cancel: stops it.
        queues: the classes that it names as queues.
        traces: the tables of connections that it names.

    Raises:
        Cancelled: `cancel` was set before the end.
        PluginError: a queue or a controller failed.
        RunError: the engine failed.
    """
    found = run_many([scenario], cancel, queues, traces)
    if not found:
        raise Cancelled()
    if isinstance(found[0], RunError):
        raise found[0]
    return found[0][0]


class _Batch:
    """What the native module measured in several runs."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self.wall_time_s: list[float] = batch.wall_time_s
        self.bottleneck_packets: list[int] = batch.bottleneck_packets
        self.has_series: list[bool] = batch.has_series

    def __len__(self) -> int:
        return len(self._batch)

    def __getitem__(self, index: int) -> Outcome:
        return outcome(self._batch.result(index), self.wall_time_s[index])

    def rows(self, indices: Sequence[int], flows: Sequence[bool]) -> Rows:
        """Return some of the runs in columns."""
        found = self._batch.rows(indices, flows)
        without = Joined({}, bytes(4 * len(indices)), ())
        given = found.pop("tables")
        joined = {name: [Joined(*given[name]) if name in given else without] for name in TABLES}
        return Rows(**found, tables=joined)


def run_captured(
    scenario: str,
    points: Sequence[tuple[str, str]],
    ip: int = 4,
    cancel: CancelToken | None = None,
    queues: Mapping[str, own.Located] | None = None,
    traces: Mapping[str, tables.Located | programs.Located] | None = None,
) -> Outcome:
    """Run one scenario and capture packets, without the interpreter lock.

    Args:
        scenario: the run.
        points: pairs of a point and the file for what passes it; points may share a file.
        ip: the version of IP that the headers show, 4 or 6.
        cancel: stops the run.
        queues: the classes that it names as queues.
        traces: the tables of connections that it names.

    Raises:
        SpecError: a point does not exist, or a packet is larger than IP's can be.
        OSError: a file cannot be written; it bears the file's name.
        Cancelled: `cancel` was set before the end.
        RunError: the engine failed.
    """
    start = time.perf_counter()
    failed = None
    classes = {name: located.load() for name, located in (queues or {}).items()}
    loaded = [located.load() for located in (traces or {}).values()]
    with translated(queues):
        try:
            result = native.module().run_captured(
                scenario, list(points), ip, cancel, classes, loaded
            )
        except OSError as error:
            failed = error
    if failed is not None:
        raise failed
    return outcome(result, time.perf_counter() - start)


def outcome(result: Any, wall_time_s: float) -> Outcome:
    """Return what the native module measured in a run, as plain data."""
    metrics: Mapping[str, float] = result.metrics
    return Outcome(
        # NaN equals nothing.
        metrics={name: value for name, value in metrics.items() if value == value},
        consecutive_losses={
            link: list(counts) for link, counts in result.consecutive_losses.items()
        },
        series=_plain(result.series),
        # A stand-in for the native module may not have them.
        tables=_plain(getattr(result, "tables", {})),
        names={kind: list(names) for kind, names in result.names.items()},
        bottleneck_packets=result.bottleneck_packets,
        events=result.events,
        wall_time_s=wall_time_s,
    )


def _plain(
    tables: Mapping[str, Mapping[str, tuple[str, bytes]]],
) -> dict[str, dict[str, tuple[str, bytes]]]:
    return {
        table: {name: (kind, bytes(data)) for name, (kind, data) in columns.items()}
        for table, columns in tables.items()
    }


def cancel_token() -> CancelToken:
    """Return a new token that stops the runs it is given to."""
    token: CancelToken = native.module().CancelToken()
    return token
