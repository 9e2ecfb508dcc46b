"""Tables that every run may have: of its flows, and of distributions.

    flows.parquet        a row for each flow
    histograms.parquet   distributions of times: counts by distribution and bin

A run in a folder has them as files. In a segment they are columns, with a list of rows for each
run; what stands for a name there is its place among the names of the segment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.store.columns import column
from redtail.store.folders import field, read_parquet, unit_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

TABLES = ("flows", "histograms")
"""The names of these tables."""

_KINDS = {"f64": "<f8", "u32": "<u4", "u64": "<u8"}

# The columns whose values stand for names, and what stands for the names.
_CODES = {"group": "groups", "distribution": "distributions"}

Columns = Mapping[str, tuple[str, bytes]]
"""A table as the engine gives it: the type and the values of each column."""


def read_table(folder: Path, table: str) -> pa.Table | None:
    """Return a table of a run that has a folder, None when it has no such table."""
    path = folder / f"{table}.parquet"
    return read_parquet(path) if path.is_file() else None


class Nested:
    """A table of several runs, to be a column of a segment.

    Args:
        name: of the table.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.names: dict[str, int] = {}
        self._runs: list[tuple[Columns, tuple[str, ...]] | None] = []
        self._places: dict[tuple[str, ...], np.ndarray[Any, Any]] = {}

    def add(self, columns: Columns | None, names: Mapping[str, Sequence[str]]) -> None:
        """Add the table of the next run; None when it has none."""
        if columns is None:
            self._runs.append(None)
            return
        kind = next((_CODES[name] for name in columns if name in _CODES), None)
        self._runs.append((columns, tuple(names[kind]) if kind else ()))

    def column(self) -> tuple[pa.Field, pa.Array] | None:
        """Return the column, None when no run has the table."""
        import numpy as np
        import pyarrow as pa

        present = [run for run in self._runs if run is not None]
        if not present:
            return None
        first, _ = present[0]
        arrays = []
        fields = []
        for name, (kind, _) in first.items():
            parts = []
            for columns, names in present:
                part = np.frombuffer(columns[name][1], _KINDS[kind])
                parts.append(self._placed(names)[part] if name in _CODES else part)
            values = np.concatenate(parts)
            about = field(name, pa.from_numpy_dtype(values.dtype), unit=unit_of(name))
            arrays.append(column(values, about.type))
            fields.append(about)
        width = next(iter(first))
        size = np.dtype(_KINDS[first[width][0]]).itemsize
        rows = [0 if run is None else len(run[0][width][1]) // size for run in self._runs]
        ends = np.zeros(len(rows) + 1, np.int32)
        np.cumsum(rows, out=ends[1:])
        nested = pa.ListArray.from_arrays(
            column(ends, pa.int32()), pa.StructArray.from_arrays(arrays, fields=fields)
        )
        return field(self.name, nested.type), nested

    def _placed(self, names: tuple[str, ...]) -> np.ndarray[Any, Any]:
        """Return the place of each of a run's names among those of the segment."""
        import numpy as np

        found = self._places.get(names)
        if found is None:
            places = [self.names.setdefault(name, len(self.names)) for name in names]
            found = self._places[names] = np.array(places, np.uint32)
        return found


def unnested(
    table: pa.Table, name: str, names: Sequence[str], keys: Collection[str]
) -> Iterator[tuple[str, pa.Table]]:
    """Yield a table of each run of a segment that has it, with the run's key.

    Args:
        table: of the segment, with the columns `run` and `name`.
        name: of the table.
        names: what the segment has for names.
        keys: the runs that are wanted.

    Raises:
        ValueError: redtail has not written it.
    """
    import pyarrow as pa

    if name not in table.column_names:
        return
    nested = table.column(name).combine_chunks()
    if isinstance(nested, pa.ChunkedArray):
        nested = nested.chunk(0)
    if not pa.types.is_list(nested.type) or not pa.types.is_struct(nested.type.value_type):
        raise ValueError(f"the column {name} is of type {nested.type}")
    dictionary = column(list(names), pa.string())
    rows = nested.values
    arrays = []
    for about in nested.type.value_type:
        values = rows.field(about.name)
        if about.name in _CODES:
            codes = values.cast(pa.int32())
            # Checks that each place has a name.
            values = pa.DictionaryArray.from_arrays(codes, dictionary, safe=True)
        arrays.append(values)
    whole = pa.Table.from_arrays(arrays, schema=_schema(nested.type.value_type, arrays))
    ends = nested.offsets.to_pylist()
    for row, key in enumerate(table.column("run").to_pylist()):
        if key in keys and ends[row + 1] > ends[row]:
            yield key, whole.slice(ends[row], ends[row + 1] - ends[row])


def _schema(kind: pa.StructType, arrays: Sequence[pa.Array]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        field(about.name, array.type, unit=unit_of(about.name))
        for about, array in zip(kind, arrays, strict=True)
    )
