"""Tables that every run may have: of its flows, and of distributions.

    flows.parquet        a row for each flow
    histograms.parquet   distributions of times: counts by distribution and bin

A run in a folder has them as files. In a segment they are columns, with a list of rows for each
run; what stands for a name there is its place among the names of the segment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.outcomes import CODES, Joined
from redtail.store.columns import column
from redtail.store.parquet import field, read_table_of, unit_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

# What every version has written.
_COLUMNS = {"flows": ("group", "flow"), "histograms": ("distribution", "up_to_s", "count")}

_KINDS = {"f64": "<f8", "u32": "<u4", "u64": "<u8"}


def read_table(folder: Path, table: str) -> pa.Table | None:
    """Return a table of a run that has a folder, None when it has no such table."""
    return read_table_of(folder, f"{table}.parquet", _COLUMNS[table])


class Nested:
    """A table of several runs, to be a column of a segment.

    Args:
        name: of the table.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.names: dict[str, int] = {}
        self._parts: list[Joined] = []
        self._places: dict[tuple[str, ...], np.ndarray[Any, Any]] = {}

    def extend(self, parts: Sequence[Joined]) -> None:
        """Add the tables of the next runs."""
        self._parts.extend(parts)

    def column(self) -> tuple[pa.Field, pa.Array] | None:
        """Return the column, None when no run has the table."""
        import numpy as np
        import pyarrow as pa

        present = [part for part in self._parts if part.columns]
        if not present:
            return None
        arrays = []
        fields = []
        for name, (kind, _) in present[0].columns.items():
            values = []
            for part in present:
                found = np.frombuffer(part.columns[name][1], _KINDS[kind])
                values.append(self._placed(part.names)[found] if name in CODES else found)
            whole = np.concatenate(values)
            about = field(name, pa.from_numpy_dtype(whole.dtype), unit=unit_of(name))
            arrays.append(column(whole, about.type))
            fields.append(about)
        lengths = np.frombuffer(b"".join(part.lengths for part in self._parts), "<u4")
        ends = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=ends[1:])
        nested = pa.ListArray.from_arrays(
            column(ends, pa.int32()), pa.StructArray.from_arrays(arrays, fields=fields)
        )
        return field(self.name, nested.type), nested

    def _placed(self, names: Sequence[str]) -> np.ndarray[Any, Any]:
        """Return the place of each of the names of some runs among those of the segment."""
        import numpy as np

        key = tuple(names)
        found = self._places.get(key)
        if found is None:
            places = [self.names.setdefault(name, len(self.names)) for name in key]
            found = self._places[key] = np.array(places, np.uint32)
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
        if about.name in CODES:
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
