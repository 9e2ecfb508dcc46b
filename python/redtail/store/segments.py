"""Runs of large campaigns: many in one file, and in columns in memory.

    runs/<experiment>/segments/<hash>.parquet   a row for each run: what determines it (scenario),
                                                what it measured, when and how fast it was

A folder for a run costs some milliseconds, as much as a short run itself. So an experiment of
`LARGE` runs or more puts those that have no further tables (series, transfers, response times)
into segments. The tables of flows and of distributions are columns there (`tables`); flows are kept
only if the experiment asks for them with `keep_flows`. What finished since the last checkpoint is
written at the next one, aside and renamed when whole. A segment is named by the hash of its bytes,
so damage shows; the run's key is that of the folder it would have had.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
import warnings
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from redtail.derived import DerivedMetric, with_derived
from redtail.errors import RedtailWarning, StoreError
from redtail.files import plain_bytes
from redtail.metrics import column as column_of
from redtail.outcomes import TABLES, Outcomes, Rows
from redtail.store import writing
from redtail.store.columns import column, numbers
from redtail.store.columns import table as table_of
from redtail.store.folders import ExperimentStore, StoredRun, read_run
from redtail.store.format import MALFORMED, RUN_NAME, SEGMENTS, brief, inside, run_key, segment_name
from redtail.store.parquet import field, metric_field, open_parquet
from redtail.store.sealing import expect
from redtail.store.tables import Nested, read_table, unnested
from redtail.store.writing import explain_write_errors, machine, make_inside

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

LARGE = 1000
"""Number of runs from which on an experiment keeps them in segments."""

FOLDER = SEGMENTS
"""The folder of an experiment's segments."""

FORMAT = 1
"""Version of a segment's columns."""

# A checkpoint loses no more than this when the process is killed, or no more than this share of
# the time that the campaign has taken, so that even a long one has some hundred segments.
_SECONDS = 1.0
_SHARE = 0.01
# Bounds what waits in memory.
_MOST_RUNS = 2000


# Is in the scenario of a run exactly if its experiment says how many flows are kept.
_ASKED_FOR_FLOWS = '"keep_flows":'

# The columns that every run has a value in.
_WHOLE = ("run", "replication", "created", "metrics", "consecutive_losses", "scenario")


class Run(Protocol):
    """A run that is to be stored."""

    @property
    def key(self) -> str:
        """Its name in the store."""
        ...

    @property
    def scenario(self) -> str:
        """The run, as canonical JSON."""
        ...

    @property
    def replication(self) -> int:
        """Its number."""
        ...


Places: TypeAlias = "tuple[list[int], np.ndarray[Any, Any], np.ndarray[Any, Any]]"
"""Lists of metrics; for each run which of them it has; and where its first number is."""


class DamagedError(StoreError):
    """A segment was altered after it was written."""


class RunTable:
    """What runs measured, in a few hundred bytes each.

    A run's metrics are a slice of one array; their names are kept once for all runs that have the
    same ones, in the engine's order.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys: list[str] = []
        self.row_of: dict[str, int] = {}
        self.shapes: list[tuple[str, ...]] = []
        self._shape_of: dict[tuple[str, ...], int] = {}
        self.shape = array("H")
        self.start = array("Q")
        self.numbers = array("d")
        # Of loss events, as JSON, by row; where there are none they are fetched.
        self.losses: dict[int, str] = {}
        self.fetch: Callable[[str], str] = _Losses(folder)
        # The names of the queues, by shape: each queue has metrics.
        self.links: dict[int, tuple[str, ...]] = {}

    def __contains__(self, key: object) -> bool:
        return key in self.row_of

    def __len__(self) -> int:
        return len(self.keys)

    def add(
        self, key: str, metrics: Mapping[str, float], losses: str | Mapping[str, Any] | None
    ) -> int:
        """Enter a run; returns its row.

        Its loss events may be given as JSON, to keep them, or by queue, or not at all.
        """
        row = self.row_of.get(key)
        if row is not None:
            return row  # the same run has the same result
        row = self.row_of[key] = len(self.keys)
        self.keys.append(key)
        shape = self.shape_number(tuple(metrics))
        self.shape.append(shape)
        self.start.append(len(self.numbers))
        self.numbers.extend(metrics.values())
        if isinstance(losses, str):
            self.losses[row] = losses
        elif losses is not None:
            self.links.setdefault(shape, tuple(losses))
        return row

    def extend(self, keys: Sequence[str], rows: Rows) -> range:
        """Enter runs that are not there yet; returns their rows."""
        first = len(self.keys)
        shapes = []
        for names, links in rows.shapes:
            number = self.shape_number(tuple(names))
            self.links.setdefault(number, tuple(links))
            shapes.append(number)
        start = len(self.numbers)
        for place in rows.shape:
            self.shape.append(shapes[place])
            self.start.append(start)
            start += len(rows.shapes[place][0])
        self.numbers.frombytes(rows.numbers)
        self.keys.extend(keys)
        added = range(first, len(self.keys))
        self.row_of.update(zip(keys, added, strict=True))
        return added

    def shape_number(self, names: tuple[str, ...]) -> int:
        """Return the number of a list of metrics."""
        number = self._shape_of.get(names)
        if number is None:
            number = self._shape_of[names] = len(self.shapes)
            self.shapes.append(names)
        return number

    def metrics(self, row: int) -> dict[str, float]:
        """Return a run's metrics."""
        names = self.shapes[self.shape[row]]
        start = self.start[row]
        return dict(zip(names, self.numbers[start : start + len(names)], strict=True))

    def places(self, rows: Sequence[int]) -> Places:
        """Return where the metrics of these runs are."""
        import numpy as np

        if not rows:
            return [], np.empty(0, np.int64), np.empty(0, np.int64)
        where = np.array(rows, dtype=np.int64)
        shapes, inverse = np.unique(
            np.frombuffer(self.shape, dtype=np.uint16)[where], return_inverse=True
        )
        start = np.frombuffer(self.start, dtype=np.uint64)[where].astype(np.int64)
        return shapes.tolist(), inverse, start

    def column(self, name: str, places: Places) -> np.ndarray[Any, Any]:
        """Return a metric of runs that are at these places, NaN where it is undefined."""
        import numpy as np

        shapes, inverse, start = places
        if not shapes:
            return np.empty(0)
        inside = [
            names.index(name) if name in names else -1
            for names in map(self.shapes.__getitem__, shapes)
        ]
        known = np.frombuffer(self.numbers)
        if len(inside) == 1 and inside[0] >= 0:
            found: np.ndarray[Any, Any] = known[start + inside[0]]
            return found
        at = np.array(inside, dtype=np.int64)[inverse]
        return np.where(at < 0, math.nan, known[np.where(at < 0, 0, start + at)])

    def run(self, row: int) -> StoredRun:
        """Return a run as the store does; it has no more of a manifest than this needs."""
        key = self.keys[row]
        losses = self.losses[row] if row in self.losses else self.fetch(key)
        return StoredRun(
            key=key,
            folder=self.folder / key,
            metrics=self.metrics(row),
            consecutive_losses=_counts(self.folder / key, losses),
            manifest={"run": key},
        )


class CaseRuns(Mapping[int, StoredRun]):
    """The runs of a case by replication, each made when it is asked for."""

    def __init__(
        self,
        run_table: RunTable,
        rows: Mapping[int, int],
        derived: Sequence[DerivedMetric] = (),
    ) -> None:
        self.run_table = run_table
        self.derived = tuple(derived)
        self._numbers = array("L", sorted(rows))
        self._rows = array("Q", [rows[number] for number in self._numbers])
        self._places: Places | None = None

    def __getitem__(self, replication: int) -> StoredRun:
        place = bisect_left(self._numbers, replication)
        if place == len(self._numbers) or self._numbers[place] != replication:
            raise KeyError(replication)
        run = self.run_table.run(self._rows[place])
        return replace(run, metrics=with_derived(run.metrics, self.derived))

    def with_derived(self, derived: Sequence[DerivedMetric]) -> CaseRuns:
        """Return the same runs with metrics that follow from theirs."""
        rows = dict(zip(self._numbers, self._rows, strict=True))
        return CaseRuns(self.run_table, rows, derived)

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def names(self) -> dict[str, None]:
        """Return the names of the metrics that any of the runs has, in their order."""
        run_table = self.run_table
        shapes = dict.fromkeys(run_table.shape[row] for row in self._rows)
        found = dict.fromkeys(name for shape in shapes for name in run_table.shapes[shape])
        for each in self.derived:
            if each.formula is not None or each.name in found:
                found.pop(each.name, None)
                found[each.name] = None  # the name with its unit
        return found

    def links(self) -> dict[str, None]:
        """Return the names of the queues of the runs, in their order."""
        run_table = self.run_table
        shapes = dict.fromkeys(run_table.shape[row] for row in self._rows)
        if all(shape in run_table.links for shape in shapes):
            return dict.fromkeys(name for shape in shapes for name in run_table.links[shape])
        return dict.fromkeys(name for run in self.values() for name in run.consecutive_losses)

    def keys_of_runs(self) -> dict[int, str]:
        """Return the key of each run by its replication."""
        keys = self.run_table.keys
        return {n: keys[row] for n, row in zip(self._numbers, self._rows, strict=True)}

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """Return a metric replication by replication, NaN where it is undefined."""
        import numpy as np

        if self._places is None:
            self._places = self.run_table.places(self._rows)
        formula = next((each.formula for each in self.derived if each.name == name), None)
        if formula is None:
            return self.run_table.column(name, self._places)
        inputs = [self.column(each).tolist() for each in formula.names]
        return np.array(
            [
                formula(dict(zip(formula.names, values, strict=True)))
                for values in zip(*inputs, strict=True)
            ]
            if inputs
            else [formula({})] * len(self),
            dtype=np.float64,
        )


def keys_of(runs: Mapping[int, StoredRun]) -> dict[int, str]:
    """Return the key of each run by its replication, without making runs for it."""
    if isinstance(runs, CaseRuns):
        return runs.keys_of_runs()
    return {number: run.key for number, run in runs.items()}


class CampaignRuns:
    """The stored runs of a campaign: stores new ones, finds existing ones.

    Args:
        store: the experiment's folder.
        code_version: of the engine; segments of another one are passed over.
        large: whether new runs go into segments.
    """

    def __init__(self, store: ExperimentStore, code_version: str, large: bool) -> None:
        self.store = store
        self.code_version = code_version
        self.large = large
        self.plain: dict[str, StoredRun] = {}
        store.fetch_segments()
        self.run_table = in_segments(store.folder, code_version, aside=True)
        # Which rows of it are the campaign's.
        self._wanted = bytearray(len(self.run_table))
        # Asked for once, and not for every run.
        self._present = store.present()
        # Whether nothing was stored at the beginning.
        self.empty = not self.run_table and not any(map(RUN_NAME.fullmatch, self._present))
        self._segment = _Segment()
        self._begun = self._written = time.monotonic()

    def __enter__(self) -> CampaignRuns:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Write what is not written yet, also after an error."""
        if kind is None:
            self.flush()
        else:
            with contextlib.suppress(StoreError):  # the reason is an error already
                self.flush()

    def __contains__(self, key: str) -> bool:
        row = self.run_table.row_of.get(key)
        return key in self.plain if row is None else bool(self._wanted[row])

    def find(self, key: str) -> bool:
        """Return whether a run is stored; it counts as one of the campaign's from then on."""
        row = self.run_table.row_of.get(key)
        if row is not None:
            self._wanted[row] = True
            return True
        found = self.store.load(key) if key in self._present else None
        if found is None:
            return False
        self._keep(found)
        return True

    def metrics(self, key: str) -> dict[str, float]:
        """Return the metrics of one of the campaign's runs that is stored."""
        if key in self.plain:
            return self.plain[key].metrics
        return self.run_table.metrics(self.run_table.row_of[key])

    def save(
        self,
        runs: Sequence[Run],
        outcomes: Outcomes,
        *,
        version: str,
        backend: str,
    ) -> Iterator[int]:
        """Store runs; those in a segment are safe from the next checkpoint on.

        Args:
            runs: what was run.
            outcomes: what the first of them measured, in their order.
            version: of redtail.
            backend: the name of the backend.

        Yields:
            The place of a run, as soon as it is stored.

        Raises:
            StoreError: one cannot be written.
        """
        alone: Sequence[bool] = [True] * len(outcomes)
        if self.large:
            alone = outcomes.has_series
            # The same run has the same result.
            places = [
                place
                for place, series in enumerate(alone)
                if not series and runs[place].key not in self.run_table
            ]
            if places:
                kept = [runs[place] for place in places]
                flows = [_ASKED_FOR_FLOWS in run.scenario for run in kept]
                rows = outcomes.rows(places, flows)
                added = self.run_table.extend([run.key for run in kept], rows)
                self._wanted.extend(b"\1" * len(added))
                self._segment.extend(added, kept, rows)
                self._segment.version, self._segment.backend = version, backend
                self.tick()
        for place, apart in enumerate(alone):
            if apart:
                run = runs[place]
                self._keep(
                    self.store.save(
                        run.key,
                        run.scenario,
                        outcomes[place],
                        code_version=self.code_version,
                        version=version,
                        backend=backend,
                        replication=run.replication,
                    )
                )
            yield place

    def tick(self) -> None:
        """Write a checkpoint if it is time for one."""
        now = time.monotonic()
        due = max(_SECONDS, _SHARE * (now - self._begun))
        if now - self._written >= due or len(self._segment.rows) >= _MOST_RUNS:
            self.flush()

    def flush(self) -> None:
        """Write what is not written yet.

        Raises:
            StoreError: it cannot be written.
        """
        if self._segment.rows:
            path = _write(self.store.folder, self._segment.data(self.run_table, self.code_version))
            self._segment = _Segment()
            if self.store.remote is not None:
                self.store.remote.put_segment(path)
        self._written = time.monotonic()

    def runs(self, keys: Mapping[int, str]) -> Mapping[int, StoredRun]:
        """Return the runs with these keys, by replication; those that are missing are left out."""
        if all(key in self.plain for key in keys.values() if key in self):
            return {number: self.plain[key] for number, key in keys.items() if key in self}
        for key in keys.values():
            if key in self.plain:
                self._enter(self.plain.pop(key))
        return CaseRuns(
            self.run_table,
            {number: self.run_table.row_of[key] for number, key in keys.items() if key in self},
        )

    def _keep(self, run: StoredRun) -> None:
        if self.large:
            self._enter(run)
        else:
            self.plain[run.key] = run

    def _enter(self, run: StoredRun) -> None:
        self._add(run.key, run.metrics, run.consecutive_losses)

    def _add(self, key: str, metrics: Mapping[str, float], losses: Mapping[str, Any]) -> int:
        row = self.run_table.add(key, metrics, losses)
        if row == len(self._wanted):
            self._wanted.append(True)
        self._wanted[row] = True
        return row


def _counts(run: Path, losses: str) -> dict[str, list[int]]:
    """Return loss events by queue from JSON.

    Raises:
        DamagedError: redtail has not written them.
    """
    try:
        return {
            link: [expect(count, int, "a count") for count in expect(counts, list, "counts")]
            for link, counts in expect(json.loads(losses), dict, "loss events").items()
        }
    except MALFORMED as error:
        raise DamagedError(f"{run}: its loss events are damaged: {brief(error)}") from error


class _Segment:
    """Runs that wait to be written."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.replication: list[int] = []
        self.scenario: list[str] = []
        self.losses: list[str] = []
        self.created: list[int] = []
        self.wall_time_s: list[float] = []
        self.packets: list[int] = []
        self.events: list[int] = []
        self.version = ""
        self.backend = ""
        self.tables = {name: Nested(name) for name in TABLES}

    def extend(self, added: Sequence[int], runs: Sequence[Run], rows: Rows) -> None:
        """Add runs, which have these rows of the table of runs."""
        self.rows.extend(added)
        self.replication.extend(run.replication for run in runs)
        self.scenario.extend(run.scenario for run in runs)
        self.losses.extend(rows.losses)
        self.created.extend([int(time.time())] * len(runs))
        self.wall_time_s.extend(rows.wall_time_s)
        self.packets.extend(rows.bottleneck_packets)
        self.events.extend(rows.events)
        for name, table in self.tables.items():
            table.extend(rows.tables[name])

    def data(self, run_table: RunTable, code_version: str) -> bytes:
        """Return the segment as a Parquet file."""
        import pyarrow as pa

        shapes = list(dict.fromkeys(run_table.shape[row] for row in self.rows))
        number = {shape: place for place, shape in enumerate(shapes)}
        columns: list[tuple[pa.Field, Any]] = [
            (field("run", pa.string()), [run_table.keys[row] for row in self.rows]),
            (field("replication", pa.uint32()), self.replication),
            (field("created", pa.timestamp("s"), description="UTC"), self.created),
            (field("wall_time_s", pa.float64(), unit="s"), self.wall_time_s),
            (field("bottleneck_packets", pa.uint64(), unit="packets"), self.packets),
            (field("events", pa.uint64(), unit="events"), self.events),
            (
                field("metrics", pa.uint16(), description="which list of metrics it has"),
                [number[run_table.shape[row]] for row in self.rows],
            ),
        ]
        places = run_table.places(self.rows)
        for name in dict.fromkeys(name for shape in shapes for name in run_table.shapes[shape]):
            columns.append((_metric_field(name), numbers(run_table.column(name, places))))
        columns.append(
            (
                field("consecutive_losses", pa.string(), description="loss events by size, JSON"),
                self.losses,
            )
        )
        nested = {name: table.column() for name, table in self.tables.items()}
        columns.extend(each for each in nested.values() if each is not None)
        columns.append((field("scenario", pa.string()), self.scenario))
        about = {
            "format": FORMAT,
            "backend": self.backend,
            "redtail_version": self.version,
            "code_version": code_version,
            **machine(),
            "metrics": [run_table.shapes[shape] for shape in shapes],
            "tables": {name: list(table.names) for name, table in self.tables.items()},
        }
        values = [values for _, values in columns]
        fields = [about for about, _ in columns]
        return _parquet(table_of(values, fields, {"redtail": json.dumps(about)}))


def _parquet(table: pa.Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    # Neither dictionaries nor statistics help with numbers that are all different.
    pq.write_table(
        table, sink, compression="zstd", use_dictionary=["metrics"], write_statistics=["run"]
    )
    return bytes(sink.getvalue())


@cache
def _metric_field(name: str) -> pa.Field:
    return metric_field(name)


def _write(folder: Path, data: bytes) -> Path:
    name = segment_name(data)
    path = folder / FOLDER / f"{name}.parquet"
    with explain_write_errors(path):
        make_inside(path.parent)
        writing.put_in_place(path, data, folder)
    return path


def read_segment(
    path: Path, columns: list[str] | None = None, *, scenarios: bool = True
) -> pa.Table:
    """Read a segment and check that it is whole.

    Args:
        path: its file.
        columns: those that are wanted, by default all.
        scenarios: whether the scenarios and the tables of runs are among these; they are most of
            a segment.

    Raises:
        StoreError: it was altered, or is of another format.
    """
    import pyarrow as pa

    try:
        data = plain_bytes(path)
        if segment_name(data) != path.stem:
            raise DamagedError(f"{path}: the segment is damaged: it was altered")
        file = open_parquet(data)
        if not scenarios and columns is None:
            large = ("scenario", *TABLES)
            columns = [name for name in file.schema_arrow.names if name not in large]
        table = file.read(columns, use_threads=False)
        number = about(table)["format"]
        if number != FORMAT:
            raise StoreError(f"{path}: stored in format {number}, this redtail reads {FORMAT}")
        _check_form(table, file.schema_arrow)
        return table
    except OSError as error:
        raise StoreError(f"{path}: the segment cannot be read: {error}") from error
    except (*MALFORMED, pa.ArrowException) as error:
        raise DamagedError(f"{path}: the segment is damaged: {brief(error)}") from error


def _check_form(table: pa.Table, schema: pa.Schema) -> None:
    """Refuse a segment that redtail has not written, though its name is that of its bytes."""
    import pyarrow as pa

    common = about(table)
    for key in ("backend", "code_version"):
        expect(common[key], str, key)
    shapes = expect(common["metrics"], list, "metrics")
    metrics = {
        expect(name, str, "a metric") for names in shapes for name in expect(names, list, "metrics")
    }
    kinds = {
        "run": pa.types.is_string,
        "created": pa.types.is_timestamp,
        "consecutive_losses": pa.types.is_string,
        "scenario": pa.types.is_string,
        **dict.fromkeys(
            ("replication", "bottleneck_packets", "events", "metrics"),
            pa.types.is_unsigned_integer,
        ),
        **dict.fromkeys(("wall_time_s", *map(column_of, metrics)), pa.types.is_floating),
    }
    for name, fits in kinds.items():
        if not fits(schema.field(name).type):
            raise ValueError(f"the column {name} is of type {schema.field(name).type}")
        if name in table.column_names and name in _WHOLE and table.column(name).null_count:
            raise ValueError(f"the column {name} has gaps")
    if "metrics" in table.column_names and any(
        shape >= len(shapes) for shape in table.column("metrics").unique().to_pylist()
    ):
        raise ValueError("there is no such list of metrics")


def about(table: pa.Table) -> dict[str, Any]:
    """Return what all runs of a segment have in common: backend, code version, host and more."""
    found: dict[str, Any] = json.loads((table.schema.metadata or {})[b"redtail"])
    return found


def runs_of(path: Path) -> tuple[dict[str, str], dict[str, Any], str]:
    """Read and check the data of a segment's runs.

    Returns:
        The scenario of each run by its name, what all have in common (see `about`), and when the
        latest was made.

    Raises:
        DamagedError: it was altered, or holds a run under another's name.
        StoreError: it cannot be read, or is of another format.
    """
    table = read_segment(path, ["run", "scenario", "created"])
    common = about(table)
    scenarios = dict(
        zip(table.column("run").to_pylist(), table.column("scenario").to_pylist(), strict=True)
    )
    for key, scenario in scenarios.items():
        if run_key(scenario, common["code_version"], common["backend"]) != key:
            raise DamagedError(f"{path}: the segment is damaged: {key} is another run")
    newest = max(table.column("created").to_pylist(), default=None)
    return scenarios, common, "" if newest is None else newest.isoformat(timespec="seconds")


def names_in(path: Path) -> list[str]:
    """Return the names of a segment's runs; errors as for `read_segment`."""
    found: list[str] = read_segment(path, ["run"]).column("run").to_pylist()
    return found


def run_of(path: Path, key: str) -> tuple[StoredRun, str]:
    """Read one run of a segment, checked; returns its scenario too.

    Its manifest has what the segment says of all its runs, and has no files.

    Raises:
        DamagedError: the segment was altered, or the run is another one.
        StoreError: the segment cannot be read, or the run is not in it.
    """
    table = read_segment(path)
    common = about(table)
    keys = table.column("run").to_pylist()
    if key not in keys:
        raise StoreError(f"{path}: the run {key} is not in this segment")
    (row,) = table.slice(keys.index(key), 1).to_pylist()
    if run_key(row["scenario"], common["code_version"], common["backend"]) != key:
        raise DamagedError(f"{path}: the segment is damaged: {key} is another run")
    shapes = common.pop("metrics")
    common.pop("tables", None)
    manifest = {
        **common,
        "run": key,
        "replication": row["replication"],
        "seed": json.loads(row["scenario"]).get("seed"),
        "created": row["created"].isoformat(timespec="seconds") + "+00:00",
        **{name: row[name] for name in ("wall_time_s", "bottleneck_packets", "events")},
    }
    run = StoredRun(
        key=key,
        folder=path.parent.parent / key,
        metrics={name: row[column_of(name)] for name in shapes[row["metrics"]]},
        consecutive_losses=_counts(path, row["consecutive_losses"]),
        manifest=manifest,
    )
    return run, row["scenario"]


def take_out(path: Path, keys: Collection[str]) -> None:
    """Remove some runs of a segment: a segment with the other runs replaces it.

    The new one is there before the old one goes, so that no run is missing at any moment; a kill
    in between leaves the others twice. This does no harm, and the next call removes them.

    Raises:
        StoreError: it cannot be read, written or removed.
    """
    import pyarrow as pa

    table = read_segment(path)
    stays = [row for row, key in enumerate(table.column("run").to_pylist()) if key not in keys]
    rest = table.take(column(stays, pa.int64())).combine_chunks()
    if rest.num_rows == table.num_rows:
        return
    if rest.num_rows:
        _write(path.parent.parent, _parquet(rest))
    with explain_write_errors(path):
        path.unlink()


def segments(
    folder: Path, code_version: str | None = None, *, aside: bool = False
) -> Iterator[tuple[Path, pa.Table]]:
    """Yield the segments of an experiment's folder; damaged ones warn.

    Args:
        folder: of the experiment.
        code_version: passes over those of other versions.
        aside: whether damaged ones get another name, which is not that of a segment.
    """
    for path in inside(folder, FOLDER, "*.parquet"):
        try:
            table = read_segment(path, scenarios=False)
        except StoreError as error:
            warnings.warn(f"{error}; its runs are run again", RedtailWarning, stacklevel=3)
            if aside and isinstance(error, DamagedError):
                with contextlib.suppress(OSError):
                    path.rename(path.with_suffix(".damaged"))
            continue
        if code_version is None or about(table)["code_version"] == code_version:
            yield path, table


def in_segments(folder: Path, code_version: str | None = None, *, aside: bool = False) -> RunTable:
    """Return the runs of an experiment that are in segments; arguments as for `segments`."""
    run_table = RunTable(folder)
    for _, table in segments(folder, code_version, aside=aside):
        _enter(run_table, table)
    return run_table


def _enter(run_table: RunTable, table: pa.Table) -> None:
    """Enter the runs of a segment."""
    shapes = [tuple(names) for names in about(table)["metrics"]]
    values = {
        name: table.column(column_of(name)).to_pylist()
        for name in dict.fromkeys(name for shape in shapes for name in shape)
    }
    runs = table.column("run").to_pylist()
    links: dict[int, Any] = {}
    for row, (key, shape) in enumerate(zip(runs, table.column("metrics").to_pylist(), strict=True)):
        if shape not in links:
            losses = table.column("consecutive_losses")[row].as_py()
            links[shape] = _counts(run_table.folder / key, losses)
        run_table.add(key, {name: values[name][row] for name in shapes[shape]}, links[shape])


def run_table_of(folder: Path, table: pa.Table) -> RunTable:
    """Return the runs of a table of replications; what it has not is fetched when asked for.

    Args:
        folder: of the experiment.
        table: `replications.parquet`.
    """
    import numpy as np

    run_table = RunTable(folder)
    named = [
        ((about.metadata or {})[b"metric"].decode(), about.name)
        for about in table.schema
        if b"metric" in (about.metadata or {})
    ]
    matrix = np.column_stack(
        [_numbers(table.column(each)) for _, each in named] or [np.empty((table.num_rows, 0))]
    ).astype(np.float64)
    present = ~np.isnan(matrix)
    patterns, shape = np.unique(np.packbits(present, axis=1), axis=0, return_inverse=True)
    names = [
        tuple(name for (name, _), there in zip(named, row, strict=False) if there)
        for row in np.unpackbits(patterns, axis=1)
    ]
    shapes = np.array([run_table.shape_number(each) for each in names], dtype=np.uint16)
    counts = present.sum(axis=1)
    run_table.keys = table.column("run").to_pylist()
    run_table.row_of = {key: row for row, key in enumerate(run_table.keys)}
    run_table.shape.frombytes(shapes[shape.reshape(-1)].tobytes())
    run_table.start.frombytes((np.cumsum(counts) - counts).astype(np.uint64).tobytes())
    run_table.numbers.frombytes(matrix[present].tobytes())
    return run_table


def _numbers(values: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """Return numbers with NaN for nulls; Arrow's own way loads pandas, which takes a while."""
    import numpy as np

    parts = [np.empty(0)]
    for part in values.chunks:
        valid, data = part.buffers()
        here = slice(part.offset, part.offset + len(part))
        known = np.frombuffer(data, np.float64)[here]
        if valid is not None:
            bits = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")
            known = np.where(bits[here], known, math.nan)
        parts.append(known)
    return np.concatenate(parts)


def tables_of(folder: Path, name: str, keys: Collection[str]) -> dict[str, pa.Table]:
    """Return a table of each of these runs that has it, by the run's key.

    Args:
        folder: of the experiment.
        name: of the table, one of `TABLES`.
        keys: the runs.
    """
    found = {}
    for key in keys:
        table = read_table(folder / key, name)
        if table is not None:
            found[key] = table
    if len(found) == len(keys):
        return found
    for path in inside(folder, FOLDER, "*.parquet"):
        try:
            segment = read_segment(path, ["run", name])
            names = about(segment).get("tables", {}).get(name, [])
            found.update(unnested(segment, name, names, keys))
        except StoreError as error:
            warnings.warn(str(error), RedtailWarning, stacklevel=2)
        except MALFORMED as error:
            text = f"{path}: the segment is damaged: {brief(error)}"
            warnings.warn(text, RedtailWarning, stacklevel=2)
    return found


class _Losses:
    """Finds the loss events of runs, those of segments all at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: dict[str, str] | None = None

    def __call__(self, key: str) -> str:
        if self.found is None or (key not in self.found and not (self.folder / key).is_dir()):
            self.found = {}
            for _, table in segments(self.folder):
                runs = table.column("run").to_pylist()
                losses = table.column("consecutive_losses").to_pylist()
                self.found.update(zip(runs, losses, strict=True))
        if key in self.found:
            return self.found[key]
        return json.dumps(read_run(self.folder / key).consecutive_losses)
