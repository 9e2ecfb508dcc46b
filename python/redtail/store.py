"""Results on disk: one folder per run, named by what determines it.

    runs/<experiment>/<hash>/scenario.json                 the run, all defaults filled in
                             manifest.json                 who, when, where, and checksums
                             summary.parquet               one row, a column per metric
                             consecutive_losses.parquet    loss events by queue and size
                             series_queues.parquet         on request
                             series_flows.parquet          on request
                             transfers.parquet             of experiments with sized transfers
    runs/<experiment>/results.json                         which runs make up which case
                      replications.parquet, cases.parquet  all runs in one table each
                      figures/

The hash covers the scenario, the backend and the code version, so a result that is present is
the result of exactly this run. A folder is written aside and renamed when whole. There is no
fsync: the manifest carries checksums, so whatever a crash leaves is noticed and run again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import platform
import re
import shutil
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail import metrics as names
from redtail.errors import RedtailWarning, StoreError

if TYPE_CHECKING:
    import pyarrow as pa

    from redtail._engine import Outcome

FORMAT = 1
"""Version of the folder's layout; raised when a reader of the old one would misread the new."""

_STALE_AFTER_S = 24 * 3600.0
_HASH_DIGITS = 16

# What the columns of the time series mean; the engine names them, this adds the units.
_SERIES_UNITS = {
    "time_s": "s",
    "packets": "packets",
    "bytes": "bytes",
    "probability": "1",
    "cwnd_bytes": "bytes",
    "ssthresh_bytes": "bytes",
    "in_flight_bytes": "bytes",
    "srtt_s": "s",
    "size_bytes": "bytes",
    "start_s": "s",
    "handshake_time_s": "s",
    "first_byte_time_s": "s",
    "completion_time_s": "s",
    "retransmissions": "segments",
    "timeouts": "timeouts",
    "size_up_to_bytes": "bytes",
    "time_up_to_s": "s",
    "count": "responses",
}

# Tables that are no time series: a row for each transfer, or for each bin of a distribution.
_TABLES = ("transfers", "response_times")


@dataclass(frozen=True)
class StoredRun:
    """A run read back from the store.

    Attributes:
        key: the folder's name.
        folder: where it is.
        metrics: SI numbers by name; an undefined metric is absent.
        consecutive_losses: per queue, the number of loss events of size 1, 2, 3, ….
        manifest: the manifest as written.
    """

    key: str
    folder: Path
    metrics: dict[str, float]
    consecutive_losses: dict[str, list[int]]
    manifest: dict[str, Any]


def slug(name: str) -> str:
    """Return `name` as the name of a folder.

    >>> slug("Tail drop against RED, 64 bulk flows")
    'tail-drop-against-red-64-bulk-flows'
    >>> slug("…")
    'experiment'
    """
    return re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-._") or "experiment"


def run_key(scenario: str, code_version: str, backend: str = "sim") -> str:
    """Return the name under which a run is stored.

    >>> run_key("{}", "abc") == run_key("{}", "abc", "sim") != run_key("{}", "abd")
    True
    """
    # The parts are separated by a byte that none of them can contain.
    text = "\0".join((backend, code_version, scenario))
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


class ExperimentStore:
    """The folder of one experiment.

    Args:
        root: the folder of all experiments, `runs` by default on the command line.
        name: the experiment's name; the folder gets a form of it that every file system takes.

    Raises:
        StoreError: the folder cannot be made or written.
    """

    def __init__(self, root: Path, name: str) -> None:
        self.root = root
        self.folder = root / slug(name)
        with _told(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers()
            # Find out now, and not after the first run, that nothing can be written.
            probe = self._aside("probe")
            probe.mkdir()
            probe.rmdir()

    def load(self, key: str) -> StoredRun | None:
        """Return a stored run, or None when it is absent or damaged (which warns)."""
        folder = self.folder / key
        if not folder.is_dir():
            return None
        try:
            return read_run(folder)
        except StoreError as error:
            warnings.warn(f"{error}; it is run again", RedtailWarning, stacklevel=2)
            return None

    def save(
        self,
        key: str,
        scenario: str,
        outcome: Outcome,
        *,
        code_version: str,
        version: str,
        backend: str,
        replication: int,
    ) -> StoredRun:
        """Write a run; it appears whole or not at all.

        Raises:
            StoreError: it cannot be written, for instance because the disk is full. What was
                stored before is untouched.
        """
        folder = self.folder / key
        aside = self._aside(key)
        with _told(folder):
            try:
                files = {"scenario.json": scenario.encode()}
                files.update(_tables(key, replication, outcome))
                manifest = {
                    "format": FORMAT,
                    "run": key,
                    "backend": backend,
                    "redtail_version": version,
                    "code_version": code_version,
                    "replication": replication,
                    "seed": json.loads(scenario).get("seed"),
                    "created": datetime.now(UTC).isoformat(timespec="seconds"),
                    "wall_time_s": round(outcome.wall_time_s, 6),
                    "bottleneck_packets": outcome.bottleneck_packets,
                    "events": outcome.events,
                    **_machine(),
                    "files": {
                        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
                        for name, data in files.items()
                    },
                }
                files["manifest.json"] = (json.dumps(manifest, indent=2) + "\n").encode()
                aside.mkdir()
                for name, data in files.items():
                    (aside / name).write_bytes(data)
                _put(aside, folder)
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
        return read_run(folder)

    def write(self, name: str, data: bytes) -> Path:
        """Write a file of the experiment's folder, replacing an older one in one step."""
        path = self.folder / name
        aside = self._aside(name)
        with _told(path):
            try:
                aside.write_bytes(data)
                os.replace(aside, path)
            except BaseException:
                aside.unlink(missing_ok=True)
                raise
        return path

    def _aside(self, name: str) -> Path:
        """Return a path beside the final one, unlike that of any other process."""
        unique = f"{platform.node()}-{os.getpid()}-{time.monotonic_ns()}"
        return self.folder / f".tmp-{name}-{unique}"

    def _remove_leftovers(self) -> None:
        """Remove what killed processes left; what another live process is writing stays."""
        for path in self.folder.glob(".tmp-*"):
            ours = re.search(rf"-{re.escape(platform.node())}-(\d+)-\d+$", path.name)
            with contextlib.suppress(OSError):
                dead = ours is not None and not _alive(int(ours.group(1)))
                if dead or time.time() - path.stat().st_mtime > _STALE_AFTER_S:
                    if path.is_dir():
                        shutil.rmtree(path)
                    else:
                        path.unlink()


def read_run(folder: Path) -> StoredRun:
    """Read a run and check that it is whole.

    Raises:
        StoreError: something is missing, altered or of another format.
    """
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        if manifest["format"] != FORMAT:
            raise StoreError(
                f"{folder}: stored in format {manifest['format']}, this redtail reads {FORMAT}"
            )
        for name, expected in manifest["files"].items():
            if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected["sha256"]:
                raise StoreError(f"{folder}: the stored run is damaged: {name} was altered")
        return StoredRun(
            key=manifest["run"],
            folder=folder,
            metrics=_read_metrics(folder / "summary.parquet"),
            consecutive_losses=_read_losses(folder / "consecutive_losses.parquet"),
            manifest=manifest,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{folder}: the stored run is damaged: {_brief(error)}") from error


def read_series(folder: Path, table: str) -> pa.Table | None:
    """Return a table of a stored run by its name in `Outcome.series`, None when not recorded."""
    import pyarrow.parquet as pq

    path = folder / _series_file(table)
    return pq.read_table(path) if path.is_file() else None


def parquet_bytes(table: pa.Table) -> bytes:
    """Return `table` as a Parquet file.

    It is made in memory and written with plain Python, so that a full disk is an ordinary
    OSError and never a half-written file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def field(name: str, kind: pa.DataType, **metadata: str) -> pa.Field:
    """Return an Arrow field with metadata (its unit, say)."""
    import pyarrow as pa

    return pa.field(name, kind, metadata={key: text for key, text in metadata.items() if text})


def metric_field(metric: str) -> pa.Field:
    """Return the Arrow field of a metric's column: unit in the name and in the metadata."""
    import pyarrow as pa

    about = names.describe(metric)
    return field(
        names.column(metric), pa.float64(), metric=metric, unit=about.unit, description=about.title
    )


def _tables(key: str, replication: int, outcome: Outcome) -> dict[str, bytes]:
    """Return the Parquet files of a run."""
    import pyarrow as pa

    fields = [field("run", pa.string()), field("replication", pa.uint32())]
    values: list[list[Any]] = [[key], [replication]]
    for metric, value in outcome.metrics.items():
        fields.append(metric_field(metric))
        values.append([value])
    files = {"summary.parquet": parquet_bytes(pa.table(values, schema=pa.schema(fields)))}

    rows = [
        (link, size, count)
        for link, counts in outcome.consecutive_losses.items()
        for size, count in enumerate(counts, start=1)
        if count
    ]
    losses = pa.table(
        [list(part) for part in zip(*rows, strict=True)] if rows else [[], [], []],
        schema=pa.schema(
            [
                field("link", pa.string(), description="the queue"),
                field("losses_packets", pa.uint32(), unit="packets"),
                field("events", pa.uint64(), unit="events"),
            ]
        ),
    )
    # A queue without a loss event has no row; its name is kept so that it is not forgotten.
    losses = losses.replace_schema_metadata({"links": json.dumps(list(outcome.consecutive_losses))})
    files["consecutive_losses.parquet"] = parquet_bytes(losses)

    for table, columns in outcome.series.items():
        files[_series_file(table)] = parquet_bytes(_series(columns, outcome.names))
    return files


def _series_file(table: str) -> str:
    """Return the file of a table."""
    return f"{table}.parquet" if table in _TABLES else f"series_{table}.parquet"


def _series(columns: dict[str, tuple[str, bytes]], codes: dict[str, list[str]]) -> pa.Table:
    """Return a time series; columns of codes become dictionaries of names."""
    import pyarrow as pa

    kinds = {"f64": pa.float64(), "u32": pa.uint32(), "u64": pa.uint64()}
    arrays = []
    fields = []
    for name, (kind, data) in columns.items():
        width = kinds[kind].bit_width // 8
        array = pa.Array.from_buffers(
            kinds[kind], len(data) // width, [None, pa.py_buffer(data)], offset=0
        )
        if f"{name}s" in codes:
            array = pa.DictionaryArray.from_arrays(
                array.cast(pa.int32()), pa.array(codes[f"{name}s"], pa.string())
            )
        arrays.append(array)
        fields.append(field(name, array.type, unit=_SERIES_UNITS.get(name, "")))
    return pa.table(arrays, schema=pa.schema(fields))


def _read_metrics(path: Path) -> dict[str, float]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    found = {}
    for about in table.schema:
        metadata = about.metadata or {}
        value = table.column(about.name)[0].as_py()
        if b"metric" in metadata and value is not None:
            found[metadata[b"metric"].decode()] = value
    return found


def _read_losses(path: Path) -> dict[str, list[int]]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    links = json.loads((table.schema.metadata or {}).get(b"links", b"[]"))
    found: dict[str, list[int]] = {link: [] for link in links}
    for row in table.to_pylist():
        counts = found.setdefault(row["link"], [])
        counts.extend([0] * (row["losses_packets"] - len(counts)))
        counts[row["losses_packets"] - 1] = row["events"]
    return found


def _put(aside: Path, folder: Path) -> None:
    """Move a whole folder to its place."""
    try:
        os.rename(aside, folder)
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    try:
        read_run(folder)
    except StoreError:
        shutil.rmtree(folder)  # damaged: ours takes its place
        os.rename(aside, folder)
    else:
        shutil.rmtree(aside)  # another process was faster; the same run has the same result


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn an operating system's refusal into a message that says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreError(
                f"{path}: cannot write the result: {reason}. Results stored before are whole; "
                "make room and give the same command again, it goes on from there."
            ) from error
        raise StoreError(
            f"{path}: cannot be written: {reason}; choose a folder with --out DIR"
        ) from error


@cache
def _machine() -> dict[str, str]:
    return {
        "host": platform.node(),
        "platform": platform.platform(),
        "processor": platform.machine(),
        "python": platform.python_version(),
    }


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _brief(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{Path(error.filename or '').name}: {error.strerror}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__
