"""Results in the store: written with their index, and read back."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.analysis.case import CaseResult
from redtail.analysis.loads import Calibrated
from redtail.analysis.provenance import Provenance
from redtail.analysis.results import Results
from redtail.derived import DerivedMetric, measured_of
from redtail.derived import parse as derived_of
from redtail.errors import SpecError, StoreError
from redtail.files import path_of, plain_bytes
from redtail.store.folders import ExperimentStore, StoredRun, read_run
from redtail.store.format import EXPERIMENT_FILES, MALFORMED, parts_of
from redtail.store.index import FORMAT, read_index
from redtail.store.objects import is_url
from redtail.store.parquet import open_parquet, parquet_bytes
from redtail.store.sealing import checksums, sealed
from redtail.store.segments import LARGE, CaseRuns, RunTable, in_segments, keys_of, run_table_of

if TYPE_CHECKING:
    import pyarrow as pa


def write(results: Results, store: ExperimentStore) -> list[Path]:
    """Write the experiment's own files; returns the paths of its data files."""
    tables = {
        "cases.parquet": parquet_bytes(results.to_arrow("cases")),
        "replications.parquet": parquet_bytes(results.to_arrow("replications")),
    }
    index = {
        "format": FORMAT,
        "experiment": results.name,
        "backend": results.backend,
        "made_by": results.made_by,
        "description": results.description,
        "provenance": results.provenance.as_json(),
        **({"report": {"metrics": results.report}} if results.report else {}),
        **_own(results.derived),
        "factors": results.factors,
        "cases": [
            {
                "factors": case.factors,
                "labels": case.labels,
                "runs": {str(number): key for number, key in keys_of(case.runs).items()},
                **({"settings": case.own} if case.own is not None else {}),
                **({"sharing": dict(case.sharing)} if case.sharing else {}),
                **({"loads": [load.as_json() for load in case.loads]} if case.loads else {}),
            }
            for case in results.cases
        ],
        "files": {name: checksums(data) for name, data in tables.items()},
    }
    with store.writing():
        written = [store.write(name, data) for name, data in tables.items()]
        if results.provenance.text is not None:
            store.write(results.provenance.name, results.provenance.text.encode())
        store.write("results.json", sealed(index, ensure_ascii=False))
    return written


def _own(derived: Sequence[DerivedMetric]) -> dict[str, list[Mapping[str, str]]]:
    """Return what an index has of the metrics that the experiment defines."""
    tables = {
        "measures": [each.given for each in derived if each.formula is None],
        "metrics": [each.given for each in derived if each.formula is not None],
    }
    return {name: table for name, table in tables.items() if table}


def load(folder: str | os.PathLike[str]) -> Results:
    """Read the results of an experiment back from its folder in the store.

    Args:
        folder: the experiment's folder, for instance `runs/quickstart`, or its URL.

    Raises:
        StoreError: there is none, or a run in it is missing or damaged.
    """
    path = path_of(folder)
    try:
        if is_url(folder):
            path = _fetched(str(folder))
        index = read_index(path)
        runs = _Stored(path, index)
        measured = measured_of(index.get("measures", []))
        derived = derived_of(index.get("metrics", []), measured=measured)
        results = Results(
            name=index["experiment"],
            description=index["description"],
            factors=index["factors"],
            cases=tuple(
                CaseResult.of(
                    case["factors"],
                    case["labels"],
                    runs.of({int(number): key for number, key in case["runs"].items()}),
                    tuple(Calibrated.from_json(load) for load in case.get("loads", [])),
                    case.get("settings"),
                    case.get("sharing"),
                    derived,
                )
                for case in index["cases"]
            ),
            folder=path,
            backend=index.get("backend", "sim"),
            made_by=index.get("made_by", ""),
            provenance=Provenance.read(path, index.get("provenance")),
            report=index.get("report", {}).get("metrics", ()),
            derived=derived,
        )
        results._loaded = runs.table
        return results
    except FileNotFoundError:
        raise StoreError(
            f"{folder}: not the folder of a finished experiment (it has no results.json)"
        ) from None
    except (*MALFORMED, SpecError) as error:
        raise StoreError(f"{path}/results.json: cannot be read: {error}") from error


def _fetched(url: str) -> Path:
    """Fetch the results of an experiment from an object store; returns the folder of its copy.

    Raises:
        StoreError: it cannot be read.
        FileNotFoundError: there are no results.
    """
    root, _, folder = url.rstrip("/").rpartition("/")
    with ExperimentStore(root, *parts_of(folder)) as store:
        remote = store.remote
        if remote is None or "results.json" not in remote.objects.there:
            raise FileNotFoundError(url)
        remote.puts = False
        store.fetch_segments()
        remote.fetch(["cases.parquet", "replications.parquet", *EXPERIMENT_FILES, "results.json"])
        index = read_index(store.folder)
        for case in index["cases"]:
            for key in case["runs"].values():
                if key in remote.runs:
                    store.load(key)
        return store.folder


class _Stored:
    """The runs of results that are in the store.

    Those of a large experiment are taken from its table of replications, the others one by one.

    Args:
        folder: of the experiment.
        index: its results.json.
    """

    def __init__(self, folder: Path, index: Mapping[str, Any]) -> None:
        self.folder = folder
        self.table: pa.Table | None = None
        self.run_table: RunTable | None = None
        self.segments: RunTable | None = None
        count = sum(len(case["runs"]) for case in index["cases"])
        checksum = index.get("files", {}).get("replications.parquet", {}).get("sha256")
        if count >= LARGE and checksum is not None:
            self.table = self._read(checksum)
            self.run_table = run_table_of(folder, self.table)

    def of(self, keys: Mapping[int, str]) -> Mapping[int, StoredRun]:
        """Return the runs with these keys.

        Raises:
            StoreError: one is missing or damaged.
        """
        if self.run_table is not None:
            rows = {number: self.run_table.row_of[key] for number, key in keys.items()}
            return CaseRuns(self.run_table, rows)
        return {number: self._one(key) for number, key in keys.items()}

    def _read(self, checksum: str) -> pa.Table:
        path = self.folder / "replications.parquet"
        data = plain_bytes(path)
        if hashlib.sha256(data).hexdigest() != checksum:
            raise StoreError(
                f"{path}: is not the table that results.json belongs to; "
                "give the experiment's command again to write both anew"
            )
        return open_parquet(data).read(use_threads=False)

    def _one(self, key: str) -> StoredRun:
        if not (self.folder / key).is_dir():
            if self.segments is None:
                self.segments = in_segments(self.folder)
            if key in self.segments:
                return self.segments.run(self.segments.row_of[key])
        return read_run(self.folder / key)


def replaced(results: Results, code_version: str) -> int:
    """Return the number of runs in the stored results that `results` would replace.

    0 when `results` has all of their runs, or they are
    those of another version of the engine for the same cases.

    Args:
        results: the new results, not written yet.
        code_version: of the engine that made them.
    """
    try:
        index = read_index(results.folder)
        old = {
            (json.dumps(case["factors"], sort_keys=True), int(number)): key
            for case in index["cases"]
            for number, key in case["runs"].items()
        }
    except (FileNotFoundError, StoreError):
        return 0  # there are none, or none that can be read
    new = {
        (json.dumps(case.factors, sort_keys=True), number): key
        for case in results.cases
        for number, key in keys_of(case.runs).items()
    }
    lost = sorted(set(old.values()) - set(new.values()))
    if not lost:
        return 0
    if old.keys() <= new.keys():
        with contextlib.suppress(*MALFORMED):
            manifest = json.loads((results.folder / lost[0] / "manifest.json").read_bytes())
            if manifest["code_version"] != code_version:
                return 0
    return len(old)
