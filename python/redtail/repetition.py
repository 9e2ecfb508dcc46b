"""Whether the repetition of an experiment gives the files of an archive, byte by byte.

What an archive says of itself counts for nothing: each of its files is compared with the file that
the repetition wrote in the same place. `MAY_DIFFER` names the values that are others each time.
Runs in segments, whose files hold such values, are compared number by number; the name of a run is
a hash of its scenario. What has no counterpart in the repetition (page, figures, a README) is
listed as not compared.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.analysis.exact import first_difference
from redtail.errors import StoreError
from redtail.metrics import case_title, counted
from redtail.outcomes import TABLES
from redtail.store.folders import StoredRun, read_run
from redtail.store.format import EXPERIMENT_FILES, MALFORMED, SEGMENTS, brief, inside
from redtail.store.index import read_index
from redtail.store.parquet import open_parquet, read_parquet
from redtail.store.segments import RunTable, in_segments, names_in, tables_of

if TYPE_CHECKING:
    import pyarrow as pa

    from redtail.analysis.results import Results

MAY_DIFFER = {
    "manifest.json": (
        "created",
        "wall_time_s",
        "host",
        "platform",
        "processor",
        "python",
        "redtail_version",
        "checksum",
    ),
    "results.json": (
        "provenance.version",
        "provenance.experiment.given_as",
        "files",
        "checksum",
    ),
}
"""The values that another machine or another day makes others. `files` has the checksums of the
tables, which are compared themselves."""

# The values that another version of the code makes others as well.
_OF_CODE = {
    "manifest.json": ("format", "run", "code_version", "events", "files"),
    "results.json": ("made_by", "provenance.experiment.input_checksums"),
}

# What the rows of the tables are known by.
_KEYS = {"cases.parquet": ("case", "metric"), "replications.parquet": ("case", "replication")}

_RESULTS = "results"


@dataclass(frozen=True)
class Verified:
    """What repeating a packed experiment has shown.

    Attributes:
        runs: how many runs were repeated.
        tables: of each table, whether its bytes are those of the repetition.
        differing: the runs of which a byte differs, each with the files that do.
        numbers: the values that differ, each with both.
        why: why bytes may differ though the numbers agree: other versions.
        files: of the other files that the repetition writes, whether they are the same, but for
            `MAY_DIFFER`.
        unchecked: the entries of the archive that were not compared with anything.
    """

    runs: int
    tables: dict[str, bool]
    differing: dict[str, tuple[str, ...]]
    numbers: tuple[str, ...]
    why: tuple[str, ...]
    files: dict[str, bool] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()

    @property
    def bytes_agree(self) -> bool:
        """Whether every byte of every table and run agrees; of `unchecked` this says nothing."""
        return all(self.tables.values()) and all(self.files.values()) and not self.differing

    @property
    def numbers_agree(self) -> bool:
        """Whether every number in runs and tables is the same."""
        return not self.numbers

    @property
    def confirmed(self) -> bool:
        """Whether the numbers agree, and the bytes too unless another version explains them."""
        return self.numbers_agree and (self.bytes_agree or bool(self.why))

    def as_json(self) -> dict[str, Any]:
        """Return what `redtail run ARCHIVE --verify --json` prints, as Python objects."""
        return {
            "format": 1,
            "confirmed": self.confirmed,
            "runs": self.runs,
            "bytes_agree": self.bytes_agree,
            "numbers_agree": self.numbers_agree,
            "tables": self.tables,
            "files": self.files,
            "differing": {title: list(names) for title, names in self.differing.items()},
            "numbers": list(self.numbers),
            "why": list(self.why),
            "not_compared": list(self.unchecked),
            "may_differ": {name: list(keys) for name, keys in MAY_DIFFER.items()},
        }


def compare(
    root: Path, index: Mapping[str, Any], again: Results, why: Sequence[str], used: Collection[str]
) -> Verified:
    """Compare an archive with the repetition of its experiment.

    Args:
        root: the unpacked archive.
        index: its `pack.json`.
        again: the repetition.
        why: what of the versions is other than it was.
        used: the entries that the repetition has read.

    Raises:
        StoreError: the results in the archive cannot be read, or contradict its index.
    """
    return _Comparison(root, index, again, why, used).verified()


class _Comparison:
    """Compares the files of an archive with those of the repetition; arguments as for `compare`."""

    def __init__(
        self,
        root: Path,
        index: Mapping[str, Any],
        again: Results,
        why: Sequence[str],
        used: Collection[str],
    ) -> None:
        self.index = index
        self.again = again
        self.why = tuple(why)
        self.old, self.new = root / _RESULTS, again.folder
        self.before, self.after = read_index(self.old), read_index(self.new)
        self.same_code = again.made_by == index["code_version"]
        for key, said in (("made_by", index["code_version"]), ("backend", index["backend"])):
            if (was := self.before.get(key, said)) != said:
                raise StoreError(f"pack.json says {said!r}, and results.json {key} {was!r}")
        self.compared = {"pack.json", *used}
        self.numbers: list[str] = []

    def verified(self) -> Verified:
        """Return what comes out."""
        tables = {name: self._table(name) for name in _KEYS}
        text = self.again.provenance.name
        files = {text: self._text(text), "results.json": self._results()}
        differing = self._runs()
        return Verified(
            runs=self.again.run_count,
            tables=tables,
            differing=differing,
            numbers=tuple(self.numbers),
            why=self.why,
            files=files,
            unchecked=tuple(sorted(self.index["files"].keys() - self.compared)),
        )

    def _table(self, name: str) -> bool:
        """Compare a table of the results; returns whether every byte is the same."""
        before, after = self._bytes(name)
        if before == after:
            return True
        if before is None or after is None:
            self.numbers.append(f"{name}: is only in the {_where(before)}")
            return False
        try:
            one = open_parquet(before).read(use_threads=False)
        except MALFORMED as error:
            self.numbers.append(f"{name}: cannot be read: {brief(error)}")
            return False
        two = open_parquet(after).read(use_threads=False)
        if self.why:
            keys = _KEYS[name]
            aligned = _aligned(one, two, keys)
            if aligned is None:
                self.numbers.append(f"{name}: has rows that the repetition has not")
                return False
            one, two = aligned
        skipped = () if self.same_code else ("run",)
        self.numbers += _differences(name, one, two, bool(self.why), skipped)
        return False

    def _text(self, name: str) -> bool:
        """Compare the experiment's text in the results with the one that was repeated."""
        before, after = self._bytes(name)
        if before != after:
            self.numbers.append(f"{name}: is not the experiment that was repeated")
        others = [each for each in EXPERIMENT_FILES if each != name and (self.old / each).exists()]
        self.numbers += [f"{each}: is only in the archive" for each in others]
        return before == after and not others

    def _results(self) -> bool:
        """Compare the two indexes, but for what may differ."""
        self.compared.add(f"{_RESULTS}/results.json")
        found = list(self._values("results.json", self.before, self.after))
        self.numbers += found
        return not found

    def _values(self, name: str, before: Any, after: Any) -> Iterator[str]:
        """Yield how two JSON files differ, but for what may."""
        leave = MAY_DIFFER[name] + (() if self.same_code else _OF_CODE[name])
        before, after = (json.loads(json.dumps(each)) for each in (before, after))
        if not self.same_code:
            for each in (before, after):
                for case in each.get("cases", []):
                    case["runs"] = sorted(case["runs"], key=int)
        if "input_checksums" not in _experiment(before):  # of an older version
            _experiment(after).pop("input_checksums", None)
        yield from _of_json(name, "", before, after, leave, bool(self.why))

    def _bytes(self, name: str) -> tuple[bytes | None, bytes | None]:
        """Return a file of the results, and the one of the repetition."""
        self.compared.add(f"{_RESULTS}/{name}")
        return _read(self.old / name), _read(self.new / name)

    def _runs(self) -> dict[str, tuple[str, ...]]:
        """Compare the runs; returns the files that differ, by the run in words."""
        differing: dict[str, tuple[str, ...]] = {}
        pairs: list[tuple[str, str, str]] = []
        for at, (one, two) in enumerate(
            zip(self.before["cases"], self.after["cases"], strict=False)
        ):
            title = case_title(one["factors"], one["labels"]) or "the case"
            runs = {int(number): key for number, key in one["runs"].items()}
            others = {int(number): key for number, key in two["runs"].items()}
            if at < len(self.again.cases) and one["labels"] != two["labels"]:
                self.numbers.append(f"{title}: was another case")
            for number in sorted(runs.keys() | others.keys()):
                words = f"{title}, replication {number}"
                if number in runs and number in others:
                    pairs.append((words, runs[number], others[number]))
                else:
                    which = "archive" if number in runs else "repetition"
                    self.numbers.append(f"{words}: is only in the {which}")
        if len(self.before["cases"]) != len(self.after["cases"]):
            was, now = (len(each["cases"]) for each in (self.before, self.after))
            self.numbers.append(f"there were {counted(was, 'case')}, and are {now}")
        alone = [
            pair for pair in pairs if not (self._folder(pair[1]) and (self.new / pair[2]).is_dir())
        ]
        for words, key, other in pairs:
            if self._folder(key) and (self.new / other).is_dir():
                files = self._folders(words, key, other)
                if files:
                    differing[words] = files
        if alone:
            differing |= self._in_columns(alone)
        return differing

    def _folder(self, key: str) -> bool:
        return (self.old / key).is_dir()

    def _folders(self, words: str, key: str, other: str) -> tuple[str, ...]:
        """Compare a run that has a folder in both; returns the files that differ."""
        differing = []
        tables = []
        names = {
            path.name for folder in (self.old / key, self.new / other) for path in folder.iterdir()
        }
        for name in sorted(names):
            self.compared.add(f"{_RESULTS}/{key}/{name}")
            before, after = _read(self.old / key / name), _read(self.new / other / name)
            if before == after:
                continue
            if before is None or after is None:
                differing.append(name)
                if before is not None or not self.why:
                    self.numbers.append(f"{words}: {name} is only in the {_where(before)}")
            elif name == "manifest.json":
                found = list(self._values(name, json.loads(before), json.loads(after)))
                self.numbers += [f"{words}: {each}" for each in found]
                if found:
                    differing.append(name)
            elif name.endswith(".parquet"):
                differing.append(name)
                tables.append(name)
            elif self.same_code:
                differing.append(name)
                self.numbers.append(f"{words}: {name} differs")
            else:
                differing.append(name)
        if tables:
            one, two = read_run(self.old / key), read_run(self.new / other)
            self._measured(words, one, two)
            for name in tables:
                if name in ("summary.parquet", "consecutive_losses.parquet"):
                    continue
                try:
                    was = read_parquet(self.old / key / name)
                except MALFORMED as error:
                    found = [f"{name}: cannot be read: {brief(error)}"]
                else:
                    now = read_parquet(self.new / other / name)
                    found = _differences(name, was, now, bool(self.why))
                self.numbers += [f"{words}: {each}" for each in found]
        return tuple(differing)

    def _in_columns(self, pairs: Sequence[tuple[str, str, str]]) -> dict[str, tuple[str, ...]]:
        """Compare runs of which one is in a segment, number by number."""
        differing: dict[str, list[str]] = {}
        sides = (
            _Side(self.old, {key for _, key, _ in pairs}),
            _Side(self.new, {key for _, _, key in pairs}),
        )
        for words, *keys in pairs:
            one, two = (side.run(key) for side, key in zip(sides, keys, strict=True))
            if self._measured(words, one, two):
                differing.setdefault(words, []).append("metrics")
            for name in TABLES:
                was, now = (
                    side.tables[name].get(key) for side, key in zip(sides, keys, strict=True)
                )
                if now is None and self._folder(keys[0]) and not (self.new / keys[1]).is_dir():
                    continue  # segments keep it on request alone
                self.compared.add(f"{_RESULTS}/{keys[0]}/{name}.parquet")
                if was is None or now is None:
                    found = [] if was is now else [f"{name}: is only in the {_where(was)}"]
                else:
                    found = _differences(name, was, now, bool(self.why))
                if found:
                    differing.setdefault(words, []).append(name)
                    self.numbers += [f"{words}: {each}" for each in found]
            if self._folder(keys[0]):
                self.compared |= {
                    f"{_RESULTS}/{keys[0]}/{name}"
                    for name in (
                        "summary.parquet",
                        "consecutive_losses.parquet",
                        *(("scenario.json",) if keys[0] == keys[1] else ()),
                    )
                }
        wanted = {key for case in self.before["cases"] for key in case["runs"].values()}
        for path in inside(self.old, SEGMENTS, "*.parquet"):
            if wanted.issuperset(names_in(path)):
                self.compared.add(f"{_RESULTS}/{SEGMENTS}/{path.name}")
        return {words: tuple(names) for words, names in differing.items()}

    def _measured(self, words: str, one: StoredRun, two: StoredRun) -> bool:
        """Compare the metrics and the loss events of a run; returns whether any differs."""
        found = []
        for name in sorted(one.metrics.keys() | two.metrics.keys()):
            was, now = one.metrics.get(name), two.metrics.get(name)
            if not _equal(was, now):
                found.append(f"{name} was {was}, and is {now}")
        if one.consecutive_losses != two.consecutive_losses:
            found.append("the counts of loss events differ")
        self.numbers += [f"{words}: {each}" for each in found]
        return bool(found)


class _Side:
    """Runs of a folder of results, wherever they are kept.

    Args:
        folder: of the results.
        keys: the runs.
    """

    def __init__(self, folder: Path, keys: Collection[str]) -> None:
        self.folder = folder
        self.run_table: RunTable = in_segments(folder)
        self.tables = {name: tables_of(folder, name, keys) for name in TABLES}

    def run(self, key: str) -> StoredRun:
        """Return a run.

        Raises:
            StoreError: it is not there.
        """
        if (self.folder / key).is_dir():
            return read_run(self.folder / key)
        if key not in self.run_table:
            raise StoreError(f"the run {key} is in no segment")
        return self.run_table.run(self.run_table.row_of[key])


def _experiment(index: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (index.get("provenance") or {}).get("experiment") or {}
    return found


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _where(before: object) -> str:
    return "repetition" if before is None else "archive"


def _equal(was: float | None, now: float | None) -> bool:
    """Return whether two numbers are the same, bit by bit."""
    if was is None or now is None:
        return was is now
    return struct.pack("<d", was) == struct.pack("<d", now)


def _aligned(was: pa.Table, now: pa.Table, keys: Sequence[str]) -> tuple[pa.Table, pa.Table] | None:
    """Return a table, and of another one the rows with the same keys in the same order.

    Another version measures more. None if there are rows in the first alone.
    """
    if not set(keys) <= set(was.column_names) & set(now.column_names):
        return None

    def rows(table: pa.Table) -> list[tuple[Any, ...]]:
        return list(zip(*(table.column(key).to_pylist() for key in keys), strict=True))

    place = {key: row for row, key in enumerate(rows(now))}
    wanted = rows(was)
    if len(set(wanted)) != len(wanted) or not place.keys() >= set(wanted):
        return None
    return was, now.take([place[key] for key in wanted])


def _differences(
    name: str, was: pa.Table, now: pa.Table, lenient: bool, skipped: Collection[str] = ()
) -> list[str]:
    """Return how the values of two tables differ, a line for each column.

    Args:
        name: what they are called.
        was: of the archive.
        now: of the repetition.
        lenient: whether the second may have more columns.
        skipped: columns that are not compared.
    """
    if was.num_rows != now.num_rows:
        return [f"{name}: had {counted(was.num_rows, 'row')}, and has {now.num_rows}"]
    found = []
    for column in was.column_names:
        if was.column_names.count(column) > 1:
            return [f"{name}: has the column {column} twice"]
        if column in skipped:
            continue
        if column not in now.column_names:
            found.append(f"{name}: the column {column} is only in the archive")
            continue
        before, after = was.column(column), now.column(column)
        row = first_difference(before, after)
        if row is not None:
            values = [_shown(each[row].as_py()) for each in (before, after)]
            found.append(f"{name}: {column} in row {row + 1} was {values[0]}, and is {values[1]}")
        units = [(each.schema.field(column).metadata or {}).get(b"unit") for each in (was, now)]
        if units[0] != units[1]:
            found.append(f"{name}: the unit of {column} differs")
    for column in now.column_names:
        if column not in was.column_names and not lenient:
            found.append(f"{name}: the column {column} is only in the repetition")
    return found


def _shown(value: Any) -> str:
    return (
        "undefined"
        if value is None or (isinstance(value, float) and math.isnan(value))
        else (repr(value) if isinstance(value, float) else str(value))
    )


def _of_json(
    name: str, at: str, before: Any, after: Any, leave: Collection[str], lenient: bool
) -> Iterator[str]:
    """Yield where two values of JSON differ.

    Args:
        name: of the file.
        at: the dotted key of the values, empty at the top.
        before: of the archive.
        after: of the repetition.
        leave: dotted keys that are left out.
        lenient: whether the second may have more keys.
    """
    if at in leave:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            below = f"{at}.{key}" if at else key
            if below in leave or (key not in before and lenient):
                continue
            if key not in before or key not in after:
                which = "archive" if key in before else "repetition"
                yield f"{name}: {below} is only in the {which}"
                continue
            yield from _of_json(name, below, before[key], after[key], leave, lenient)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, two) in enumerate(zip(before, after, strict=True)):
            yield from _of_json(name, f"{at}[{number}]", one, two, leave, lenient)
    elif type(before) is not type(after) or before != after:
        texts = [json.dumps(each, ensure_ascii=False)[:80] for each in (before, after)]
        yield f"{name}: {at} was {texts[0]}, and is {texts[1]}"
