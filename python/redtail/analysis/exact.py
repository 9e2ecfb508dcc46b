"""Whether two results agree bit for bit in all that was measured.

Compared are, for each replication of each case, every metric, the counts of loss events, and
the tables of the run: flows, distributions, transfers, response times and time series. Two numbers
agree if their bits do. Files may still differ: they have the key of the run, which depends on the
code, and another version of Arrow writes other bytes. What the experiment derives by formulas was
not measured, and is not compared.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail import metrics as names
from redtail.analysis.flows import tables_by_run
from redtail.analysis.moved import identity
from redtail.outcomes import TABLES
from redtail.store.parquet import read_table_of

if TYPE_CHECKING:
    import pyarrow as pa

    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

MOST = 20
"""The most differences that are listed."""

# Files of a run that are compared in another way.
_OTHERS = ("summary.parquet", "consecutive_losses.parquet", *(f"{name}.parquet" for name in TABLES))


@dataclass(frozen=True)
class Exact:
    """How two results agree bit for bit.

    Attributes:
        differences: the first `MOST` differences, a line each, in the order of the cases.
        count: how many runs, or cases that one of the two lacks, differ.
        runs: how many runs both have.
        values: how many metrics of these were compared.
    """

    differences: tuple[str, ...]
    count: int
    runs: int
    values: int

    @property
    def same(self) -> bool:
        """Whether there is no difference."""
        return not self.count

    def as_json(self) -> dict[str, Any]:
        """Return what `redtail diff --exact --json` prints, as Python objects."""
        return {
            "format": 1,
            "exact": True,
            "same": self.same,
            "runs": self.runs,
            "values": self.values,
            "differing": self.count,
            "differences": self.differences,
        }


def exact(old: Results, new: Results) -> Exact:
    """Compare all that two results measured, bit for bit; nothing is run.

    Args:
        old: what was.
        new: what is.

    Raises:
        StoreError: a table cannot be read.
    """
    first = {identity(case): place for place, case in enumerate(old.cases)}
    second = {identity(case): place for place, case in enumerate(new.cases)}
    lines: list[str] = []
    count = runs = values = 0
    for which, mine, other in (("old", first, second), ("new", second, first)):
        results = old if which == "old" else new
        for key, place in mine.items():
            if key not in other:
                count += 1
                lines.append(f"{results.cases[place].title or 'the case'}: only in the {which}")
    nested = {name: (tables_by_run(old, name), tables_by_run(new, name)) for name in TABLES}
    for key, place in first.items():
        if key not in second:
            continue
        one, two = old.cases[place], new.cases[second[key]]
        for number in sorted({*one.runs, *two.runs}):
            title = f"{one.title or 'the case'}, replication {number}"
            if number not in one.runs or number not in two.runs:
                count += 1
                lines.append(f"{title}: only in the {'old' if number in one.runs else 'new'}")
                continue
            runs += 1
            tables = {
                name: (was[place].get(number), now[second[key]].get(number))
                for name, (was, now) in nested.items()
            }
            compared, found = _run(one, two, number, tables)
            values += compared
            count += bool(found)
            lines += [f"{title}: {each}" for each in found[: max(0, MOST - len(lines))]]
    return Exact(tuple(lines[:MOST]), count, runs, values)


def _run(
    one: CaseResult,
    two: CaseResult,
    number: int,
    tables: Mapping[str, tuple[pa.Table | None, pa.Table | None]],
) -> tuple[int, list[str]]:
    """Return how many metrics of a run were compared, and the differences in words."""
    first, second = one.runs[number], two.runs[number]
    found = []
    present = {
        name: None
        for name in (*first.metrics, *second.metrics)
        if not isinstance(name, names.Derived)
    }
    for name in present:
        was, now = first.metrics.get(name), second.metrics.get(name)
        if not _equal(was, now):
            found.append(f"metric {name} was {_shown(was)}, is {_shown(now)}")
    if first.consecutive_losses != second.consecutive_losses:
        found.append("the counts of loss events differ")
    for name, (before, after) in tables.items():
        found += table_difference(name, before, after)
    files = sorted({*_files(first.folder), *_files(second.folder)})
    for file in files:
        read = [read_table_of(run.folder, file) for run in (first, second)]
        found += table_difference(file.removesuffix(".parquet"), *read)
    return len(present), found


def _files(folder: Path) -> Iterator[str]:
    """Yield the names of the further tables of a run."""
    for path in folder.glob("*.parquet"):
        if re.fullmatch(r"[a-z_]+\.parquet", path.name) and path.name not in _OTHERS:
            yield path.name


def _equal(was: float | None, now: float | None) -> bool:
    if was is None or now is None:
        return was is now
    return struct.pack("<d", was) == struct.pack("<d", now)


def _shown(value: float | None) -> str:
    return "undefined" if value is None else repr(value)


def table_difference(name: str, was: pa.Table | None, now: pa.Table | None) -> list[str]:
    """Return how two tables differ, in at most one line."""
    if was is None or now is None:
        if was is now:
            return []
        return [f"table {name}: only in the {'old' if now is None else 'new'}"]
    if was.schema.names != now.schema.names:
        return [f"table {name}: other columns"]
    if was.num_rows != now.num_rows:
        return [f"table {name}: had {was.num_rows} rows, has {now.num_rows}"]
    for column in was.schema.names:
        before, after = was.column(column), now.column(column)
        row = first_difference(before, after)
        if row is not None:
            return [
                f"table {name}, column {column}, row {row}: was {before[row].as_py()!r}, "
                f"is {after[row].as_py()!r}"
            ]
    return []


def first_difference(was: pa.ChunkedArray, now: pa.ChunkedArray) -> int | None:
    """Return the first row in which two columns differ; None where they agree."""
    import numpy as np
    import pyarrow as pa

    if was.type != now.type and not (
        pa.types.is_dictionary(was.type) and pa.types.is_dictionary(now.type)
    ):
        return 0 if len(was) else None
    if pa.types.is_floating(was.type):
        valid, other = (np.asarray(each.is_valid()) for each in (was, now))
        bits = [
            np.asarray(each.fill_null(0.0)).astype(np.float64).view(np.uint64)
            for each in (was, now)
        ]
        differing = np.flatnonzero((valid != other) | (bits[0] != bits[1]))
        return int(differing[0]) if len(differing) else None
    first, second = was.to_pylist(), now.to_pylist()
    return next((row for row, (a, b) in enumerate(zip(first, second, strict=True)) if a != b), None)
