"""What the runs of a batch measured: one by one, and in columns.

Runs in folders are stored one by one. Those of large campaigns are stored in columns, which the
engine makes of a batch at once, without an object in Python for each run and each number.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, Protocol

TABLES = ("flows", "histograms")
"""The names of the tables that rows have."""

# The columns whose values stand for names, and what stands for the names.
CODES = {"group": "groups", "distribution": "distributions"}

Columns = Mapping[str, tuple[str, bytes]]
"""A table as the engine gives it: the type and the values of each column, little-endian."""


class Joined(NamedTuple):
    """A table of several runs.

    Attributes:
        columns: the rows of all, one run after the other.
        lengths: how many of them each run has, as 32-bit numbers.
        names: what the codes in the columns stand for.
    """

    columns: Columns
    lengths: bytes
    names: Sequence[str]


@dataclass(frozen=True)
class Program:
    """What a program of a group left.

    Attributes:
        group: the name of its group.
        flow: the number of its pair, from 0.
        role: "client" or "server".
        code: its exit code; None if a signal has ended it.
        signal: the signal that has ended it, or None.
        ended: whether it was asked to end, as its file or the end of the run says.
        started_s: when it was started, in seconds of the run.
        ended_s: when it had ended.
        output: what it printed to standard output.
        output_cut: bytes of that which were not kept.
        errors: the end of what it printed to standard error.
        files: the contents of its files in `{out}` by their paths there.
        left_out: the paths of files that were not kept: too many, too large, or no files.
    """

    group: str
    flow: int
    role: str
    code: int | None
    signal: int | None
    ended: bool
    started_s: float
    ended_s: float
    output: bytes
    output_cut: int
    errors: bytes
    files: Mapping[str, bytes]
    left_out: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """How it ended, in one line."""
        end = f"exit code {self.code}" if self.code is not None else f"signal {self.signal}"
        asked = " when it was asked to end" if self.ended else ""
        span = f"{self.started_s:.3f} s to {self.ended_s:.3f} s"
        return f"{self.group} {self.role} {self.flow}: {span}, {end}{asked}"


@dataclass(frozen=True)
class Outcome:
    """What one run measured; plain data, so that it can be sent to another process.

    Attributes:
        metrics: SI numbers by name; a metric that is undefined in this run is absent.
        consecutive_losses: per queue, the number of loss events of size 1, 2, 3, ….
        series: per table ("queues", "flows", "transfers", "response_times"), the columns as
            (element type, little-endian bytes).
        names: per kind ("links", "groups", "distributions"), what the codes in tables stand for.
        bottleneck_packets: packets the first bottleneck sent, for progress and benchmarks.
        events: events the scheduler handled.
        wall_time_s: seconds the run took.
        tables: "flows" and "histograms", as far as there are any, like `series`.
        programs: what the programs of groups left.
    """

    metrics: dict[str, float]
    consecutive_losses: dict[str, list[int]]
    series: dict[str, dict[str, tuple[str, bytes]]]
    names: dict[str, list[str]]
    bottleneck_packets: int
    events: int
    wall_time_s: float
    tables: dict[str, dict[str, tuple[str, bytes]]] = field(default_factory=dict)
    programs: tuple[Program, ...] = ()


@dataclass(frozen=True)
class Rows:
    """What runs measured, in columns: a value for each run.

    Attributes:
        shapes: the lists of metrics that runs have, each with the names of the queues.
        shape: which of them.
        numbers: the metrics of all runs, in the order of each run's list, as 64-bit floats.
        losses: loss events by queue and size, as JSON.
        wall_time_s: how long the run took, in seconds.
        bottleneck_packets: packets that the first bottleneck sent.
        events: events the scheduler handled.
        tables: those of `TABLES` that any of the runs has, in parts: each has the next runs.
    """

    shapes: Sequence[tuple[Sequence[str], Sequence[str]]]
    shape: Sequence[int]
    numbers: bytes
    losses: Sequence[str]
    wall_time_s: Sequence[float]
    bottleneck_packets: Sequence[int]
    events: Sequence[int]
    tables: Mapping[str, Sequence[Joined]]


class Outcomes(Protocol):
    """What the runs of a batch measured, in their order."""

    def __len__(self) -> int:
        """Return the number of runs."""
        ...

    def __getitem__(self, index: int) -> Outcome:
        """Return what one run measured."""
        ...

    @property
    def wall_time_s(self) -> Sequence[float]:
        """How long each run took, in seconds."""
        ...

    @property
    def bottleneck_packets(self) -> Sequence[int]:
        """Packets that the first bottleneck sent in each run."""
        ...

    @property
    def has_series(self) -> Sequence[bool]:
        """Whether each run has tables that `rows` leaves out."""
        ...

    def rows(self, indices: Sequence[int], flows: Sequence[bool]) -> Rows:
        """Return some of the runs in columns.

        Args:
            indices: which runs.
            flows: for each of them whether its table of flows is wanted.
        """
        ...


class Listed(list["Outcome"]):
    """Outcomes that were made one by one."""

    @property
    def wall_time_s(self) -> Sequence[float]:
        """How long each run took, in seconds."""
        return [outcome.wall_time_s for outcome in self]

    @property
    def bottleneck_packets(self) -> Sequence[int]:
        """Packets that the first bottleneck sent in each run."""
        return [outcome.bottleneck_packets for outcome in self]

    @property
    def has_series(self) -> Sequence[bool]:
        """Whether each run has tables that `rows` leaves out."""
        return [bool(outcome.series or outcome.programs) for outcome in self]

    def rows(self, indices: Sequence[int], flows: Sequence[bool]) -> Rows:
        """Return some of the runs in columns."""
        found = [self[index] for index in indices]
        shapes: dict[tuple[str, ...], tuple[int, Sequence[str]]] = {}
        for outcome in found:
            place = len(shapes), tuple(outcome.consecutive_losses)
            shapes.setdefault(tuple(outcome.metrics), place)
        tables: dict[str, list[Joined]] = {name: [] for name in TABLES}
        for outcome, asked in zip(found, flows, strict=True):
            for name, parts in tables.items():
                wanted = outcome.tables.get(name) if asked or name != "flows" else None
                parts.append(_alone(wanted, outcome.names))
        return Rows(
            shapes=[(names, links) for names, (_, links) in shapes.items()],
            shape=[shapes[tuple(outcome.metrics)][0] for outcome in found],
            numbers=array("d", [n for each in found for n in each.metrics.values()]).tobytes(),
            losses=[losses_as_json(outcome.consecutive_losses) for outcome in found],
            wall_time_s=[outcome.wall_time_s for outcome in found],
            bottleneck_packets=[outcome.bottleneck_packets for outcome in found],
            events=[outcome.events for outcome in found],
            tables=tables,
        )


def _alone(columns: Columns | None, names: Mapping[str, Sequence[str]]) -> Joined:
    """Return the table of one run."""
    if columns is None:
        return Joined({}, struct.pack("<I", 0), ())
    code = next((name for name in columns if name in CODES), None)
    kind, data = next(iter(columns.values()))
    length = len(data) // struct.calcsize({"f64": "<d", "u32": "<I", "u64": "<Q"}[kind])
    return Joined(columns, struct.pack("<I", length), names[CODES[code]] if code else ())


def losses_as_json(losses: Mapping[str, Sequence[int]]) -> str:
    """Return loss events as `json.dumps` would; it takes several times as long."""
    return "{" + ", ".join(f"{_quoted(link)}: {used(c)}" for link, c in losses.items()) + "}"


def used(counts: Sequence[int]) -> list[int]:
    """Return counts up to the last that is not zero, as the store keeps them."""
    last = next((at for at in range(len(counts), 0, -1) if counts[at - 1]), 0)
    return list(counts[:last])


@cache
def _quoted(text: str) -> str:
    return json.dumps(text)
