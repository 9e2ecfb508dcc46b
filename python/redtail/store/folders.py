"""Results on disk: one folder per run, named by what determines it.

    runs/<experiment>/<hash>/scenario.json                 the run, all defaults filled in
                             manifest.json                 who, when, where, and checksums
                             summary.parquet               one row, a column per metric
                             consecutive_losses.parquet    loss events by queue and size
                             flows.parquet                 a row for each flow (tables.py)
                             histograms.parquet            distributions of times (tables.py)
                             series_queues.parquet         on request
                             series_flows.parquet          on request
                             series_groups.parquet         on request
                             transfers.parquet             of experiments with sized transfers
                             response_times.parquet        of experiments with users
                             programs.parquet              of experiments with programs
                             program_files.parquet         what these printed and wrote
    runs/<experiment>/segments/<hash>.parquet              runs of large campaigns (segments.py)
    runs/<experiment>/results.json                         which runs make up which case
                      experiment.toml                the experiment as it was given
                      replications.parquet, cases.parquet  all runs in one table each
                      figures/
                      report.html                    the page of `redtail report`
                      replay.html                    the picture of `redtail replay`
                      advice.json                    what `redtail advise` says, for this page
                      failed/<hash>.log              why a run failed, and how to repeat it
                      server-N.log                   what server N of `redtail shell` printed
                      .lock, .lock-results           empty; locked by the commands at work here
                      .progress.json                 how far the command at work here is

The folder of an experiment under another backend than `sim` has its name behind an `@`, as in
`runs/quickstart@live`: the results of one backend do not take the place of another's. Each run of
`redtail shell` has a folder, as in `runs/line-run-1@live-shell`.

The hash covers the scenario, the backend and the code version, so a result that is present is
the result of exactly this run. A folder is written aside and renamed when whole. There is no
fsync: the manifest carries checksums, its own included, so whatever a crash leaves is noticed
and run again. No decision depends on a clock where a lock or a checksum can decide.

Campaigns hold `.lock` in common and cleaning holds it alone, so that nothing is removed that
a campaign is about to refer to. The system releases the lock when a process ends, for any reason.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import warnings
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.errors import RedtailWarning, StoreError
from redtail.files import path_of, plain_bytes
from redtail.outcomes import used
from redtail.store import objects, programs, writing
from redtail.store.columns import column
from redtail.store.columns import table as table_of
from redtail.store.format import (
    FAILED,
    FORMAT,
    NAME_IN_RESULTS,
    OWN_FOLDERS,
    READABLE,
    RUN_FILES,
    UnreadableError,
    explain_read_errors,
    folder_name,
    refuse_link,
    run_key,
)
from redtail.store.locks import LOCK, LOCK_RESULTS, lock_file, lock_shared, unlock
from redtail.store.parquet import (
    field,
    metric_field,
    open_parquet,
    parquet_bytes,
    read_parquet,
    read_table_of,
    unit_of,
)
from redtail.store.sealing import checksums, expect, is_sealed, sealed
from redtail.store.writing import (
    explain_write_errors,
    leftovers,
    machine,
    make_inside,
    put_in_place,
    refuse_planted,
    remove,
    temporary_path,
)

try:
    import fcntl

    _LOCKS = True
except ImportError:  # on Windows; there process numbers alone show what is a leftover
    _LOCKS = False

if TYPE_CHECKING:
    from types import TracebackType

    import pyarrow as pa

    from redtail.outcomes import Outcome


_LARGEST_MANIFEST = 16 << 20

# Tables that are no time series: a row for each transfer, or for each bin of a distribution.
_TABLES = ("transfers", "response_times", "events")


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


class ExperimentStore:
    """The folder of one experiment.

    Args:
        root: the folder of all experiments, `runs` by default on the command line; or the URL of
            an object store, whose copy on this machine is then the folder.
        name: the experiment's name; the folder gets a form of it that every file system takes.
        backend: the name of the backend whose results these are.

    Attributes:
        place: where the experiment is kept, for people.

    Raises:
        StoreError: the folder cannot be made or written, or the object store not read.
    """

    def __init__(self, root: str | os.PathLike[str], name: str, backend: str = "sim") -> None:
        self.root = objects.own_copy_of(str(root)) if objects.is_url(root) else path_of(root)
        self.folder = self.root / folder_name(name, backend)
        self.place = str(self.folder)
        self.remote: objects.Remote | None = None
        with explain_write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            refuse_planted(self.folder)
            for name in OWN_FOLDERS:
                refuse_link(self.folder / name)
            lock, alone = lock_shared(self.folder / LOCK)
            self._let_go = weakref.finalize(self, unlock, lock)
            try:
                # Find out now, and not after the first run, that nothing can be written.
                probe = temporary_path(self.folder, "probe")
                probe.mkdir()
                now = probe.stat().st_mtime
                probe.rmdir()
                if alone:
                    for path in leftovers(self.folder, now):
                        with contextlib.suppress(OSError):
                            remove(path)
                    if lock is not None:
                        fcntl.flock(lock, fcntl.LOCK_SH)
                if objects.is_url(root):
                    self.place = f"{str(root).rstrip('/')}/{self.folder.name}"
                    self.remote = objects.Remote(self.place, self.folder)
                    self.remote.fetch(["results.json"])
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> ExperimentStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def refuse_results_of_another(self, name: str) -> None:
        """Refuse a folder with the results of an experiment of another name than this one.

        Two names that differ in spaces, signs or capital letters alone have the same folder.

        Raises:
            StoreError: there are such results.
        """
        with contextlib.suppress(OSError, ValueError):
            with (self.folder / "results.json").open("rb") as file:
                found = NAME_IN_RESULTS.search(file.read(1 << 16))
            if found is not None and (other := json.loads(found[1])) != name:
                raise StoreError(
                    f"{self.place}: has the results of the experiment {other!r}, and {name!r} "
                    "would have the same folder; choose a name that differs in a letter or digit, "
                    "or another folder with --out DIR"
                )

    def close(self) -> None:
        """Let other processes clean the folder; also done when the store is garbage-collected."""
        self._let_go()

    def fetch_segments(self) -> None:
        """Fetch the segments that only the object store has; put those that only the folder has."""
        if self.remote is not None:
            self.remote.fetch_segments()

    def present(self) -> set[str]:
        """Return the names of what is in the folder or can be fetched into it."""
        found = {path.name for path in self.folder.iterdir()}
        return found | self.remote.runs if self.remote is not None else found

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other processes from writing the experiment's tables at the same time.

        The tables and `results.json` go together; those of two commands must not be mixed.
        """
        with explain_write_errors(self.folder):
            lock = lock_file(self.folder / LOCK_RESULTS)
        try:
            if lock is not None:
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            unlock(lock)

    def load(self, key: str) -> StoredRun | None:
        """Return a stored run, or None when it is absent or damaged (which warns).

        Raises:
            StoreError: it is there, in a format or under permissions that keep us from reading it.
        """
        folder = self.folder / key
        try:
            folder.lstat()
        except FileNotFoundError:
            if self.remote is None or not self._fetched(key):
                return None
        except OSError:
            pass  # reading says why
        try:
            found = read_run(folder)
        except UnreadableError:
            raise
        except StoreError as error:
            warnings.warn(f"{error}; it is run again", RedtailWarning, stacklevel=2)
            return None
        if self.remote is not None:
            self.remote.put_run(key, found.manifest)
        return found

    def _fetched(self, key: str) -> bool:
        """Copy a run of the object store into the folder; false when there is no whole one."""
        assert self.remote is not None
        aside = temporary_path(self.folder, key)
        with explain_write_errors(self.folder / key):
            try:
                if not self.remote.fetch_run(key, aside):
                    return False
                read_run(aside, key)
                _put(aside, self.folder / key)
            except UnreadableError:
                raise
            except StoreError as error:
                message = str(error).replace(str(aside), f"{self.place}/{key}")
                warnings.warn(f"{message}; it is run again", RedtailWarning, stacklevel=3)
                self.remote.put_again(key)
                return False
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        return True

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
        found = run_key(scenario, code_version, backend)
        if found != key:
            raise StoreError(
                f"{folder}: this run would be stored under the name of the run {found}"
            )
        aside = temporary_path(self.folder, key)
        with explain_write_errors(folder):
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
                    **machine(),
                    "files": {name: checksums(data) for name, data in files.items()},
                }
                files["manifest.json"] = sealed(manifest)
                # As read_run returns it; reading it takes as long as writing it.
                stored = StoredRun(
                    key=key,
                    folder=folder,
                    metrics={name: float(value) for name, value in outcome.metrics.items()},
                    consecutive_losses={
                        link: used(counts) for link, counts in outcome.consecutive_losses.items()
                    },
                    manifest=json.loads(files["manifest.json"]),
                )
                aside.mkdir()
                for name, data in files.items():
                    writing.write_new(aside / name, data)
                _put(aside, folder)
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
        with contextlib.suppress(OSError):
            self._log(key).unlink(missing_ok=True)
        if self.remote is not None:
            self.remote.put_run(key, stored.manifest)
            self.remote.objects.drop(f"{FAILED}/{key}.log")
        return stored

    def write_log(self, key: str, text: str) -> Path | None:
        """Keep what is known of a run that failed, until the run succeeds.

        Returns:
            The file; None when it cannot be written, which must not hide why the run failed.
        """
        path = self._log(key)
        try:
            make_inside(path.parent)
            put_in_place(path, text.encode(), self.folder)
        except (OSError, StoreError):
            return None
        if self.remote is not None:
            with contextlib.suppress(StoreError):
                self.remote.objects.put(f"{FAILED}/{key}.log", text.encode())
        return path

    def _log(self, key: str) -> Path:
        return self.folder / FAILED / f"{key}.log"

    def write(self, name: str, data: bytes) -> Path:
        """Write a file of the experiment's folder, replacing an older one in one step."""
        path = self.folder / name
        with explain_write_errors(path):
            put_in_place(path, data)
        if self.remote is not None:
            self.remote.objects.put(name, data)
        return path


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a run.

    Raises:
        UnreadableError: it is of another format, or another user's.
        StoreError: it is missing or altered.
    """
    with explain_read_errors(folder):
        data = plain_bytes(folder / "manifest.json", _LARGEST_MANIFEST)
        manifest: dict[str, Any] = json.loads(data)
        number = expect(manifest["format"], int, "manifest.json was altered: format")
        if number > 1 and not is_sealed(data, manifest):
            raise ValueError("manifest.json was altered")
        if number not in READABLE:
            formats = " and ".join(map(str, READABLE))
            newer = "a newer" if number > FORMAT else "an older"
            raise UnreadableError(
                f"{folder}: stored in format {number} by {newer} redtail "
                f"({manifest.get('redtail_version', 'unknown')}), this redtail reads {formats}; "
                "use that redtail, or choose another folder with --out DIR"
            )
        for key in ("run", "backend", "code_version"):
            expect(manifest[key], str, f"manifest.json: {key}")
        for name, about in expect(manifest["files"], dict, "manifest.json: files").items():
            if not RUN_FILES.fullmatch(name):
                raise ValueError(f"manifest.json: {name!r} is no file of a run")
            expect(about, dict, f"manifest.json: files: {name}")
            expect(about["bytes"], int, f"manifest.json: bytes of {name}")
            expect(about["sha256"], str, f"manifest.json: sha256 of {name}")
        return manifest


def read_run(folder: Path, key: str | None = None) -> StoredRun:
    """Read a run and check that it is whole, and the run that its folder is named after.

    Args:
        folder: where it is.
        key: the run it must be, by default the folder's name.

    Raises:
        UnreadableError: it is of another format, or another user's.
        StoreError: something is missing or altered.
    """
    manifest = read_manifest(folder)
    with explain_read_errors(folder):
        for name, expected in manifest["files"].items():
            if hashlib.sha256(plain_bytes(folder / name)).hexdigest() != expected["sha256"]:
                raise StoreError(f"{folder}: the stored run is damaged: {name} was altered")
        found = key_of(folder, manifest)
        if found != (key or folder.name) or manifest["run"] != found:
            raise StoreError(f"{folder}: the stored run is damaged: it is the run {found}")
        return StoredRun(
            key=found,
            folder=folder,
            metrics=_read_metrics(folder / "summary.parquet"),
            consecutive_losses=_read_losses(folder / "consecutive_losses.parquet"),
            manifest=manifest,
        )


def key_of(folder: Path, manifest: dict[str, Any]) -> str:
    """Return the key of a run by what is in its folder; errors as for `read_manifest`."""
    with explain_read_errors(folder):
        scenario = plain_bytes(folder / "scenario.json").decode()
    return run_key(scenario, manifest["code_version"], manifest["backend"])


def read_series(folder: Path, table: str) -> pa.Table | None:
    """Return a table of a stored run by its name in `Outcome.series`, None when not recorded."""
    return read_table_of(folder, _series_file(table), use_threads=True)


def last_event(folder: Path) -> dict[str, Any] | None:
    """Return the `event` and the `value` of the last row of a run's event log, None without one.

    Raises:
        StoreError: it is damaged.
    """
    path = folder / _series_file("events")
    if not path.is_file():
        return None
    with explain_read_errors(folder), open_parquet(path) as file:
        if file.num_row_groups == 0 or file.metadata.num_rows == 0:
            return None
        last = file.read_row_group(file.num_row_groups - 1, ["event", "value"])
        found: list[dict[str, Any]] = last.slice(len(last) - 1).to_pylist()
        return found[0]


def _tables(key: str, replication: int, outcome: Outcome) -> dict[str, bytes]:
    """Return the Parquet files of a run."""
    import pyarrow as pa

    # A column for each metric: a slice of one, which is made faster than many.
    metrics = column(list(outcome.metrics.values()), pa.float64())
    summary = pa.Table.from_arrays(
        [column([key], pa.string()), column([replication], pa.uint32())]
        + [metrics.slice(at, 1) for at in range(len(metrics))],
        schema=_summary_schema(tuple(outcome.metrics)),
    )
    files = {"summary.parquet": parquet_bytes(summary)}

    links = tuple(outcome.consecutive_losses)
    rows = tuple(
        (link, size, count)
        for link, counts in outcome.consecutive_losses.items()
        for size, count in enumerate(counts, start=1)
        if count
    )
    files["consecutive_losses.parquet"] = _no_losses(links) if not rows else _losses(links, rows)

    for table, columns in outcome.series.items():
        files[_series_file(table)] = parquet_bytes(_series(columns, outcome.names))
    for table, columns in outcome.tables.items():
        files[f"{table}.parquet"] = parquet_bytes(_series(columns, outcome.names))
    files.update(programs.tables(outcome.programs))
    return files


@lru_cache(maxsize=64)
def _summary_schema(metrics: tuple[str, ...]) -> pa.Schema:
    """Return the schema of the summary of runs that have these metrics."""
    import pyarrow as pa

    own = [field("run", pa.string()), field("replication", pa.uint32())]
    return pa.schema([*own, *map(metric_field, metrics)])


@lru_cache(maxsize=64)
def _no_losses(links: tuple[str, ...]) -> bytes:
    """Return the file of loss events of a run without any."""
    return _losses(links, ())


def _losses(links: Sequence[str], rows: Sequence[tuple[str, int, int]]) -> bytes:
    """Return the file of loss events: link, size and number of each."""
    import pyarrow as pa

    table = table_of(
        list(zip(*rows, strict=True)) if rows else [(), (), ()],
        [
            field("link", pa.string(), description="the queue"),
            field("losses_packets", pa.uint32(), unit="packets"),
            field("events", pa.uint64(), unit="events"),
        ],
        # A queue without a loss event has no row, so its name is kept here.
        {"links": json.dumps(list(links))},
    )
    return parquet_bytes(table)


def table_of_outcome(outcome: Outcome, table: str) -> pa.Table:
    """Return a table of a run that is not stored, by its name in `Outcome.series`."""
    return _series(outcome.series[table], outcome.names)


def _series_file(table: str) -> str:
    """Return the file of a table."""
    return f"{table}.parquet" if table in _TABLES else f"series_{table}.parquet"


def _series(columns: dict[str, tuple[str, bytes]], codes: dict[str, list[str]]) -> pa.Table:
    """Return a table of a run; columns of codes become dictionaries of names.

    In the event log the largest number of a type stands for what an event does not say.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = {"f64": pa.float64(), "u32": pa.uint32(), "u64": pa.uint64()}
    arrays = []
    fields = []
    for name, (kind, data) in columns.items():
        width = kinds[kind].bit_width // 8
        array = pa.Array.from_buffers(
            kinds[kind], len(data) // width, [None, pa.py_buffer(data)], offset=0
        )
        if "event" in columns and kind != "f64":
            unset = pa.scalar(2 ** kinds[kind].bit_width - 1, kinds[kind])
            array = pc.if_else(pc.equal(array, unset), None, array)
        if f"{name}s" in codes:
            array = pa.DictionaryArray.from_arrays(
                array.cast(pa.int32()), column(codes[f"{name}s"], pa.string())
            )
        arrays.append(array)
        fields.append(field(name, array.type, unit=unit_of(name)))
    return pa.table(arrays, schema=pa.schema(fields))


def _read_metrics(path: Path) -> dict[str, float]:
    table = read_parquet(path)
    found = {}
    for about in table.schema:
        metadata = about.metadata or {}
        value = table.column(about.name)[0].as_py()
        if b"metric" in metadata and value is not None:
            found[metadata[b"metric"].decode()] = value
    return found


def _read_losses(path: Path) -> dict[str, list[int]]:
    table = read_parquet(path)
    links = json.loads((table.schema.metadata or {}).get(b"links", b"[]"))
    found: dict[str, list[int]] = {link: [] for link in links}
    for row in table.to_pylist():
        counts = found.setdefault(row["link"], [])
        counts.extend([0] * (row["losses_packets"] - len(counts)))
        counts[row["losses_packets"] - 1] = row["events"]
    return found


def _put(aside: Path, folder: Path) -> None:
    """Move a whole folder to its place."""
    while True:
        try:
            os.rename(aside, folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        try:
            read_run(folder)
        except UnreadableError:
            raise
        except StoreError:
            # Damaged: ours takes its place, unless another process is just doing the same.
            with contextlib.suppress(FileNotFoundError):
                gone = temporary_path(folder.parent, f"damaged-{folder.name}")
                os.rename(folder, gone)
                remove(gone)
        else:
            shutil.rmtree(aside)  # another process was faster; the same run has the same result
            return
