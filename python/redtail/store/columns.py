"""Arrow columns and tables of plain values.

Arrow's own way from a list to a column loads pandas when that is installed, which takes longer than
a thousand short runs. Here the buffers are made with NumPy; the columns are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def table(
    values: Sequence[Any], fields: Sequence[pa.Field], metadata: Mapping[str, str] | None = None
) -> pa.Table:
    """Return a table.

    Args:
        values: for each field a column of it, an array of NumPy, or a list in which None stands
            for what is not known.
        fields: name, type and metadata of each.
        metadata: of the table.
    """
    import pyarrow as pa

    schema = pa.schema(fields, metadata=metadata)
    arrays = [column(part, each.type) for part, each in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def column(values: Any, kind: pa.DataType) -> pa.Array:
    """Return a column of a type.

    >>> import pyarrow as pa
    >>> column([1, None, 3], pa.int64()).to_pylist(), column(["a", None], pa.string()).to_pylist()
    ([1, None, 3], ['a', None])
    """
    import numpy as np
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    text = pa.types.is_string(kind)
    missing = None
    if not isinstance(values, np.ndarray) and None in values:
        missing = np.array([value is None for value in values])
        values = [("" if text else 0) if value is None else value for value in values]
    if text:
        whole = "".join(values)
        parts: Iterable[str | bytes] = values
        if not whole.isascii():
            parts = (value.encode() for value in values)
        ends = np.zeros(len(values) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, parts), np.int64, len(values)), out=ends[1:])
        if ends[-1] > np.iinfo(np.int32).max:
            raise OverflowError("a column of texts has more than 2 GB")
        buffers = [pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(whole.encode())]
        return pa.Array.from_buffers(kind, len(values), [_valid(missing), *buffers])
    # A timestamp is a number of its unit.
    dtype = np.dtype(np.int64 if pa.types.is_timestamp(kind) else str(kind).replace("double", "f8"))
    data = np.ascontiguousarray(values, dtype)
    return pa.Array.from_buffers(kind, len(data), [_valid(missing), pa.py_buffer(data)])


def numbers(values: np.ndarray[Any, Any]) -> pa.Array:
    """Return a column of numbers in which NaN is what is not known."""
    import numpy as np
    import pyarrow as pa

    data = np.ascontiguousarray(values, np.float64)
    missing = np.isnan(data)
    if missing.any():
        data = np.where(missing, 0.0, data)
    return pa.Array.from_buffers(pa.float64(), len(data), [_valid(missing), pa.py_buffer(data)])


def _valid(missing: np.ndarray[Any, Any] | None) -> pa.Buffer | None:
    """Return the bits that say which values are known; None when all are."""
    import numpy as np
    import pyarrow as pa

    if missing is None or not missing.any():
        return None
    return pa.py_buffer(np.packbits(~missing, bitorder="little"))
