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
    runs/<experiment>/segments/<hash>.parquet              runs of large campaigns (segments.py)
    runs/<experiment>/results.json                         which runs make up which case
                      experiment.toml                the experiment as it was given
                      replications.parquet, cases.parquet  all runs in one table each
                      figures/
                      report.html                    the page of `redtail report`
                      failed/<hash>.log              why a run failed, and how to repeat it
                      server-N.log                   what server N of `redtail shell` printed
                      .lock, .lock-results           empty; locked by the commands at work here
                      .progress.json                 how far the command at work here is

The folder of an experiment under another backend than `sim` has its name behind an `@`, as in
`runs/quickstart@live`: the results of one backend do not take the place of another's.

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
import glob
import hashlib
import json
import math
import os
import platform
import re
import shutil
import stat
import time
import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from redtail import metrics as names
from redtail.errors import RedtailWarning, StoreError
from redtail.files import path_of, plain_bytes
from redtail.outcomes import used
from redtail.store import objects
from redtail.store.columns import column
from redtail.store.columns import table as table_of

try:
    import fcntl

    _LOCKS = True
except ImportError:  # on Windows; there process numbers alone show what is a leftover
    _LOCKS = False

if TYPE_CHECKING:
    from types import TracebackType

    import pyarrow as pa
    import pyarrow.parquet as pq

    from redtail._engine import Outcome

FORMAT = 2
"""Version of the folder's layout, higher when a reader of the old one would misread the new.

2 has a checksum of the manifest itself, which every later format must keep: it shows whether
an unknown format number is a newer format or damage. 1 has none and is read all the same.
"""

READABLE = (1, 2)
"""The formats that are read."""

RUN_NAME = re.compile(r"[0-9a-f]{16}")
"""The form of the name of a run's folder."""

LEFTOVER = ".tmp-redtail-"
"""The beginning of the names of incomplete files, whose writer is at work or was killed."""

FAILED = "failed"
"""The folder of the logs of runs that failed."""

_OF_BACKEND = "@"

# A lock is no link to a file elsewhere, and no pipe that nobody writes to.
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

_LOCK = ".lock"
_LOCK_RESULTS = ".lock-results"

EXPERIMENT_FILES = ("experiment.toml", "experiment.json")
"""The names that the experiment's own text may have there: as a file, or of typed objects."""

REPORT = "report.html"
"""The page of `redtail report`."""

PROGRESS = ".progress.json"
"""How far the campaign at work here is."""

OWN_FILES = (
    "results.json",
    "cases.parquet",
    "replications.parquet",
    *EXPERIMENT_FILES,
    REPORT,
    PROGRESS,
    _LOCK,
    _LOCK_RESULTS,
)
"""The files that an experiment's folder has in addition to its runs."""

SERVER_LOG = re.compile(r"server-[1-9]\d*\.log")
"""The form of the names of files with what servers of `redtail shell` printed."""

SEGMENTS = "segments"
"""The folder of runs that are kept many to a file (see `segments`)."""

OWN_FOLDERS = ("figures", FAILED, SEGMENTS)
"""The folders that it has in addition to its runs."""

RUN_FILES = re.compile(r"(manifest|scenario)\.json|[a-z_]+\.parquet")
"""The form of the names of a run's files."""

MALFORMED = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
    NotImplementedError,
)
"""Errors that reading a damaged file raises; Arrow's errors are among these."""

# What the files that every run has always contain.
_MARKS = {
    "manifest.json": (b'"code_version"', b'"redtail_version"'),
    "scenario.json": (b'"seed"', b'"replication"'),
}

_SEAL = "0" * 64

# Tables of up to this many rows are not compressed (see `parquet_bytes`).
_FEW_ROWS = 100

# File systems take 255 bytes.
_LONGEST_SLUG = 200

_NAME_IN_RESULTS = re.compile(rb'"experiment": ("(?:[^"\\]|\\.)*")')

_LARGEST_MANIFEST = 16 << 20

# What `temporary_path` makes: name, machine, process, time.
_TEMPORARY = re.compile(rf"{re.escape(LEFTOVER)}.+-.+-\d+-\d+", re.DOTALL)

_STALE_AFTER_S = 24 * 3600.0

_HASH_DIGITS = 16

# What a Parquet file may become in memory: values, and bytes before they are decoded, for each of
# its bytes, beyond what a small file may. A series of which nothing but the time changes has about
# 5 values a byte.
_FEW_CELLS, _MOST_CELLS = 10_000_000, 100
_LITTLE, _MOST_DATA = 64 << 20, 200

# The units of the columns of a run's tables; the engine names these.
_SERIES_UNITS = {
    "time_s": "s",
    "packets": "packets",
    "bytes": "bytes",
    "probability": "1",
    "cwnd_bytes": "bytes",
    "ssthresh_bytes": "bytes",
    "in_flight_bytes": "bytes",
    "srtt_s": "s",
    "pacing_rate_bps": "bit/s",
    "delivered_bytes": "bytes",
    "arrivals": "packets",
    "drops": "packets",
    "marks": "packets",
    "delay_s": "s",
    "goodput_bps": "bit/s",
    "round_trip_s": "s",
    "active_s": "s",
    "sent_packets": "packets",
    "lost_packets": "packets",
    "marked_packets": "packets",
    "rtt_mean_s": "s",
    "rtt_min_s": "s",
    "up_to_s": "s",
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


class UnreadableError(StoreError):
    """A run exists and may be complete, but this redtail or this user cannot read it.

    It is not run again, since the new one would take the place of what another can read.
    """


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

    A name that a run's folder or one of `OWN_FOLDERS` has is changed: an experiment must not be
    taken for one of them. One with letters beyond a to z gets a hash in their place, so that names
    in Greek do not all have the same folder; so does one that is cut because it is long.

    >>> slug("Tail drop against RED, 64 bulk flows")
    'tail-drop-against-red-64-bulk-flows'
    >>> slug("…")
    'experiment'
    >>> slug("Ουρά"), slug("Ουρά 2")
    ('experiment-a6b4b196', '2-73c73d4e')
    >>> slug("2026112201300000"), slug("Figures")
    ('experiment-2026112201300000', 'experiment-figures')
    """
    found = re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-._") or "experiment"
    cut = found[:_LONGEST_SLUG].strip("-._")
    if cut != found or any(letter.isalnum() and not letter.isascii() for letter in name):
        found = f"{cut}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    taken = RUN_NAME.fullmatch(found) is not None or found in OWN_FOLDERS
    return f"experiment-{found}" if taken else found


def folder_name(name: str, backend: str = "sim") -> str:
    """Return the name of an experiment's folder with the results that a backend made.

    >>> folder_name("Quickstart"), folder_name("Quickstart", "live")
    ('quickstart', 'quickstart@live')
    """
    # No slug has an @, so the folder is that of no other experiment.
    return slug(name) if backend == "sim" else f"{slug(name)}{_OF_BACKEND}{backend}"


def parts_of(folder: str) -> tuple[str, str]:
    """Return what `folder_name` made the name of a folder of.

    >>> parts_of("quickstart"), parts_of("quickstart@live")
    (('quickstart', 'sim'), ('quickstart', 'live'))
    """
    name, _, backend = folder.partition(_OF_BACKEND)
    return name, backend or "sim"


def is_run(folder: Path) -> bool:
    """Return whether a folder is that of a run: has a run's name, and a file that redtail wrote.

    A damaged run is one if its manifest or its scenario can be recognised. A folder that cannot
    be read counts as one, so that it is reported; it is never removed.
    """
    if RUN_NAME.fullmatch(folder.name) is None or folder.is_symlink() or not folder.is_dir():
        return False
    for name, marks in _MARKS.items():
        try:
            data = plain_bytes(folder / name)
        except PermissionError:
            return True
        except (OSError, ValueError):
            continue
        if all(mark in data for mark in marks):
            return True
    return False


def inside(folder: Path, name: str, form: str = "*") -> list[Path]:
    """Return what is in one of `OWN_FOLDERS`, in order; nothing if a link is in its place.

    Args:
        folder: of the experiment.
        name: of the folder in it.
        form: a pattern of the names that are wanted.
    """
    own = folder / name
    return [] if own.is_symlink() else sorted(own.glob(form))


def refuse_link(path: Path) -> None:
    """Refuse a link in the place of one of `OWN_FOLDERS`: what is written there would be elsewhere.

    Raises:
        StoreError: there is one.
    """
    if path.is_symlink():
        raise StoreError(
            f"{path}: is a link, and redtail writes in the experiment's own folder; put a folder "
            "in its place, or choose another with --out DIR"
        )


def figures_of(folder: Path, *inner: str) -> Path:
    """Return the folder of an experiment's figures, or one in it.

    Raises:
        StoreError: a link is in its place.
    """
    path = folder / "figures"
    refuse_link(path)
    for name in inner:
        path /= name
        refuse_link(path)
    return path


def run_key(scenario: str, code_version: str, backend: str = "sim") -> str:
    """Return the name under which a run is stored.

    >>> run_key("{}", "abc") == run_key("{}", "abc", "sim") != run_key("{}", "abd")
    True
    """
    (key,) = run_keys([scenario], code_version, backend)
    return key


def run_keys(scenarios: Iterable[str], code_version: str, backend: str) -> list[str]:
    """Return the names under which runs are stored."""
    # The parts are separated by a byte that none of them can contain.
    common = hashlib.sha256(f"{backend}\0{code_version}\0".encode())
    keys = []
    for scenario in scenarios:
        whole = common.copy()
        whole.update(scenario.encode())
        keys.append(whole.hexdigest()[:_HASH_DIGITS])
    return keys


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
            lock, alone = _join(self.folder / _LOCK)
            self._let_go = weakref.finalize(self, _close, lock)
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
                found = _NAME_IN_RESULTS.search(file.read(1 << 16))
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
        from redtail.store.segments import name_of

        if self.remote is not None:
            self.remote.fetch_segments(name_of)

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
            lock = _opened(self.folder / _LOCK_RESULTS)
        try:
            if lock is not None:
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            _close(lock)

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
                    write_new(aside / name, data)
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


def checksums(data: bytes) -> dict[str, Any]:
    """Return what shows whether a file is unchanged."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def sealed(manifest: dict[str, Any], *, ensure_ascii: bool = True) -> bytes:
    """Return a manifest as a file that carries its own checksum.

    It is the SHA-256 of the file with zeros in its place.
    """
    text = json.dumps({**manifest, "checksum": _SEAL}, indent=2, ensure_ascii=ensure_ascii) + "\n"
    head, _, tail = text.rpartition(_SEAL)
    return f"{head}{hashlib.sha256(text.encode()).hexdigest()}{tail}".encode()


def is_sealed(data: bytes, manifest: dict[str, Any]) -> bool:
    """Return whether a file is unchanged since `sealed` made it."""
    seal = str(manifest["checksum"])
    blank = data.replace(seal.encode(), _SEAL.encode())
    return hashlib.sha256(blank).hexdigest() == seal


def expect(value: Any, kind: Any, what: str) -> Any:
    """Return a value that a file must have for something to be read from it.

    Raises:
        ValueError: it is of another type.
    """
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{what} is {json.dumps(value)[:40]}")
    return value


def decoded(data: bytes) -> Any:
    r"""Return the value of a JSON text from somebody else.

    >>> decoded(b'{"a": 1}')
    {'a': 1}
    >>> decoded(b'{"a": NaN}')
    Traceback (most recent call last):
    ...
    ValueError: NaN is no number in JSON

    Raises:
        ValueError: it is no JSON, has numbers that JSON has not, half a character, or a key twice.
    """
    found = json.loads(
        data,
        parse_constant=_no_number,
        parse_float=_finite,
        parse_int=_short,
        object_pairs_hook=_once,
    )
    if _HALF.search(data):
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text has half of a character") from None
    return found


_LONGEST_NUMBER = 100

# What begins half of a character, or a whole one in two halves.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number in JSON")


def _finite(text: str) -> float:
    if math.isinf(found := float(text)):
        raise ValueError(f"{text[:20]} is too large a number")
    return found


def _short(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(
            f"{text[:20]}… has {len(text)} digits; accepted: at most {_LONGEST_NUMBER}"
        )
    return int(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a run.

    Raises:
        UnreadableError: it is of another format, or another user's.
        StoreError: it is missing or altered.
    """
    with _read(folder):
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
    with _read(folder):
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
    with _read(folder):
        scenario = plain_bytes(folder / "scenario.json").decode()
    return run_key(scenario, manifest["code_version"], manifest["backend"])


@contextlib.contextmanager
def _read(folder: Path) -> Iterator[None]:
    """Turn every error of reading a run into one of two errors."""
    try:
        yield
    except PermissionError as error:
        raise UnreadableError(
            f"{folder}: the stored run cannot be read: {error.strerror}{owner(folder)}; "
            "ask for the right to read it, or choose another folder with --out DIR"
        ) from error
    except MALFORMED as error:
        raise StoreError(f"{folder}: the stored run is damaged: {brief(error)}") from error


def temporary_path(folder: Path, name: str) -> Path:
    """Return a path in a folder for an incomplete file; no other process has the same path."""
    unique = f"{platform.node()}-{os.getpid()}-{time.monotonic_ns()}"
    return folder / f"{LEFTOVER}{name}-{unique}"


def write_new(path: Path, data: bytes) -> None:
    """Write a file that is not there; where another user has put a link, it is not followed.

    Raises:
        FileExistsError: there is something of this name.
        OSError: it cannot be written.
    """
    with path.open("xb") as file:
        file.write(data)


def put_in_place(path: Path, data: bytes, aside_in: Path | None = None) -> None:
    """Write a file that appears when it is whole, in the place of an older one.

    Args:
        path: of the file.
        data: its content.
        aside_in: the folder in which it is written before, by default its own. Leftovers of killed
            commands are looked for in the folder of the experiment alone.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    aside = temporary_path(aside_in or path.parent, path.name)
    try:
        write_new(aside, data)
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def replace_file(path: Path, data: bytes) -> None:
    """Write a file in a folder of the user, replacing an older one in one step.

    What killed commands left of it goes as well.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f"{glob.escape(f'{LEFTOVER}{path.name}-')}*"):
        if left in leftovers(path.parent):
            with contextlib.suppress(OSError):
                left.unlink()
    put_in_place(path, data)


def is_temporary(name: str) -> bool:
    """Return whether a name is one that `temporary_path` makes.

    >>> is_temporary(temporary_path(Path(), "results.json").name), is_temporary(".tmp-notes")
    (True, False)
    """
    return _TEMPORARY.fullmatch(name) is not None


def leftovers(folder: Path, now: float | None = None) -> list[Path]:
    """Return what killed processes left, without what a live process is writing.

    It is what has a name of `temporary_path` and belongs to this user.

    Args:
        folder: of the experiment.
        now: the time by the clock of the file system, by default found out by a folder that is made
            there and removed again.
    """
    found = []
    known = [path for path in sorted(folder.glob(f"{LEFTOVER}*")) if is_temporary(path.name)]
    if known and now is None:
        now = _clock(folder)
    for path in known:
        assert now is not None
        ours = re.search(rf"-{re.escape(platform.node())}-(\d+)-\d+$", path.name)
        with contextlib.suppress(OSError):
            there = path.lstat()
            if hasattr(os, "geteuid") and there.st_uid != os.geteuid():
                continue
            # Of another machine's processes nothing is known, only how long ago they wrote.
            if (
                not _alive(int(ours.group(1)))
                if ours is not None
                else now - there.st_mtime > _STALE_AFTER_S
            ):
                found.append(path)
    return found


def _clock(folder: Path) -> float:
    """Return the time by the clock of a folder's file system.

    A clock of this machine that is wrong, or is set while a command runs, then does not count where
    other machines write too. It is asked if nothing can be written there.
    """
    probe = temporary_path(folder, "probe")
    try:
        probe.mkdir()
    except OSError:
        return time.time()
    now = probe.stat().st_mtime
    probe.rmdir()
    return now


def refuse_planted(path: Path) -> None:
    """Refuse a path on which another user has put a link where everybody may.

    Raises:
        StoreError: a part of it is a symbolic link of another user, in a folder in which all users
            can write.
    """
    if not hasattr(os, "geteuid"):
        return
    whole = path.absolute()
    for part in (whole, *whole.parents):
        with contextlib.suppress(OSError):
            its = part.lstat()
            planted = stat.S_ISLNK(its.st_mode) and its.st_uid not in (0, os.geteuid())
            if planted and part.parent.stat().st_mode & stat.S_IWOTH:
                raise StoreError(
                    f"{part}: is a symbolic link of {user_name(its.st_uid)} in a folder in which "
                    "all users can write, and is not followed; choose another folder with --out DIR"
                )


def make_own(folder: Path, use: str, setting: str) -> None:
    """Make a folder for this user alone, unless it is there and is one.

    Args:
        folder: what is in it counts as what this user has put there.
        use: what it is for, as a part of a message.
        setting: what chooses another folder.

    Raises:
        StoreError: it is another user's, all users can write in it, or it cannot be made.
    """
    with explain_write_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    if not hasattr(os, "geteuid"):
        return
    reason = ""
    if about.st_uid != os.geteuid():
        reason = f"belongs to {user_name(about.st_uid)}, not to {user_name(os.geteuid())}"
    elif not stat.S_ISLNK(about.st_mode) and about.st_mode & stat.S_IWOTH:
        reason = "can be written by all users"
    if reason:
        raise StoreError(f"{folder}: {use} and {reason}; {setting} chooses another folder")


def make_inside(folder: Path) -> None:
    """Make a folder of a store, unless it is there.

    Raises:
        StoreError: another user has put a link there.
        OSError: it cannot be made.
    """
    folder.mkdir(exist_ok=True)
    refuse_planted(folder)


def remove(path: Path) -> None:
    """Remove a file or a folder; the folder of a run never holds a part of it.

    Raises:
        OSError: it cannot be removed.
    """
    if path.is_dir() and not path.is_symlink():
        aside = path
        if not path.name.startswith(LEFTOVER):
            aside = temporary_path(path.parent, path.name)
            os.rename(path, aside)
        shutil.rmtree(aside)
    else:
        path.unlink()


@contextlib.contextmanager
def cleaning(folder: Path) -> Iterator[bool]:
    """Lock an experiment's folder against campaigns; false when one is at work there.

    Raises:
        StoreError: the folder cannot be written.
    """
    with explain_write_errors(folder):
        lock = _opened(folder / _LOCK)
    try:
        free = True
        if lock is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                free = False
            except OSError:  # a file system without locks: process numbers are used
                free = not any(set(folder.glob(f"{LEFTOVER}*")) - set(leftovers(folder)))
        yield free
    finally:
        _close(lock)


def in_use(folder: Path) -> bool:
    """Return whether a campaign is at work in an experiment's folder, as far as this is known."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDONLY | _PLAIN)
    except OSError:
        return False
    try:
        if _LOCKS:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return False


def read_series(folder: Path, table: str) -> pa.Table | None:
    """Return a table of a stored run by its name in `Outcome.series`, None when not recorded."""
    return read_table_of(folder, _series_file(table), use_threads=True)


def read_table_of(
    folder: Path, name: str, columns: Sequence[str] = (), *, use_threads: bool = False
) -> pa.Table | None:
    """Return a table of a stored run by the name of its file, None when it has none.

    Args:
        folder: of the run.
        name: of the file.
        columns: that it must have.
        use_threads: as for `read_parquet`.

    Raises:
        StoreError: it is damaged, or no table of redtail.
    """
    path = folder / name
    if not path.is_file():
        return None
    with _read(folder):
        found = read_parquet(path, use_threads=use_threads)
        for each in columns:
            if found.column_names.count(each) != 1:
                raise ValueError(f"{name} has no column {each}")
        return found


def read_parquet(path: Path, *, use_threads: bool = False) -> pa.Table:
    """Read a Parquet file; `pyarrow.parquet.read_table` would load pandas.

    Args:
        path: the file.
        use_threads: whether it is large; threads cost more than a small one.
    """
    with open_parquet(path) as file:
        return file.read(use_threads=use_threads)


def open_parquet(source: Path | bytes) -> pq.ParquetFile:
    """Open a Parquet file, or the content of one, whose data the calling thread reads.

    By default Arrow reads ahead in threads of its own (`pre_buffer`). Such a thread may release
    a Python object while the interpreter exits, which aborts the process.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not isinstance(source, bytes) and not source.is_file():
        source.stat()  # says why
        raise ValueError(f"{source.name} is no file")
    # Arrow takes a path that begins with "~" for one in a home folder.
    file = pq.ParquetFile(
        pa.BufferReader(source) if isinstance(source, bytes) else source.absolute(),
        pre_buffer=False,
    )
    try:
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        _refuse_large(file, size)
    except BaseException:
        file.close()
        raise
    return file


def _refuse_large(file: pq.ParquetFile, size: int) -> None:
    """Refuse a Parquet file that becomes more in memory than a table of redtail of its size can.

    Raises:
        ValueError: it does.
    """
    about = file.metadata
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    cells = max(about.num_rows, sum(group.num_rows for group in groups)) * about.num_columns
    data = sum(group.total_byte_size for group in groups)
    if cells > _FEW_CELLS + _MOST_CELLS * size or data > _LITTLE + _MOST_DATA * size:
        raise ValueError(
            f"a table of {size} bytes has {cells} values in {data} bytes, more than redtail writes"
        )


def parquet_bytes(table: pa.Table) -> bytes:
    """Return `table` as a Parquet file.

    It is made in memory and written with plain Python, so that a full disk is an ordinary
    OSError and never a half-written file.

    A table of few rows is not compressed, and has no statistics and no dictionaries except those
    of its Arrow columns. Each of these takes time and bytes for each column; the file is smaller
    without them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    if table.num_rows <= _FEW_ROWS:
        dictionaries = [each.name for each in table.schema if pa.types.is_dictionary(each.type)]
        pq.write_table(
            table, sink, compression="none", use_dictionary=dictionaries, write_statistics=False
        )
    else:
        pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def field(name: str, kind: pa.DataType, **metadata: str) -> pa.Field:
    """Return an Arrow field with metadata (its unit, say)."""
    import pyarrow as pa

    return pa.field(name, kind, metadata={key: text for key, text in metadata.items() if text})


def unit_of(name: str) -> str:
    """Return the unit of a column of a run's tables, empty when it has none."""
    return _SERIES_UNITS.get(name, "")


def metric_field(metric: str) -> pa.Field:
    """Return the Arrow field of a metric's column: unit in the name and in the metadata."""
    import pyarrow as pa

    about = names.describe(metric)
    return field(
        names.column(metric),
        pa.float64(),
        **{"derived" if isinstance(metric, names.Derived) else "metric": metric},
        unit=about.unit,
        description=about.title,
    )


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


def _series_file(table: str) -> str:
    """Return the file of a table."""
    return f"{table}.parquet" if table in _TABLES else f"series_{table}.parquet"


def _series(columns: dict[str, tuple[str, bytes]], codes: dict[str, list[str]]) -> pa.Table:
    """Return a table of a run; columns of codes become dictionaries of names."""
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


def _opened(path: Path) -> int | None:
    """Open a file to lock it; None where there are no locks."""
    if not _LOCKS:
        return None
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | _PLAIN, 0o666)
    except PermissionError:
        # Another user's, which can be locked all the same.
        return os.open(path, os.O_RDONLY | _PLAIN)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise StoreError(
            f"{path}: is a symbolic link, and is not followed; remove it, or choose another folder "
            "with --out DIR"
        ) from None


def _close(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _join(path: Path) -> tuple[int | None, bool]:
    """Lock a folder in common with the other processes that use it.

    Returns:
        What holds the lock, and whether no other process uses the folder: then it is held alone.
    """
    lock = _opened(path)
    if lock is None:
        return None, True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock, True
    except BlockingIOError:
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock, False
    except OSError:  # a file system without locks
        os.close(lock)
        return None, True


@contextlib.contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
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
        whose = owner(path) if isinstance(error, PermissionError) else ""
        raise StoreError(
            f"{path}: cannot be written: {reason}{whose}; choose a folder with --out DIR"
        ) from error


def owner(path: Path) -> str:
    """Say whose a path is, or what there is of it, when it is not ours."""
    if not hasattr(os, "geteuid"):
        return ""
    for part in (path, *path.parents):
        with contextlib.suppress(OSError):
            its = part.stat().st_uid
            if its == os.geteuid():
                return ""
            return f" ({part} belongs to {user_name(its)}, and this is {user_name(os.geteuid())})"
    return ""


def user_name(number: int) -> str:
    """Return the name of a user, or its number."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


@cache
def machine() -> dict[str, str]:
    """Return what the manifest of a run says of the machine."""
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


def brief(error: Exception) -> str:
    """Return the first line of what an error says, without the folder of a file."""
    if isinstance(error, OSError):
        return f"{Path(error.filename or '').name}: {error.strerror}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__
