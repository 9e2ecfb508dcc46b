"""Parquet files of the store: written with units, read within bounds.

Nothing here knows which runs there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from redtail import metrics as names
from redtail.store.format import explain_read_errors

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


# Tables of up to this many rows are not compressed (see `parquet_bytes`).
_FEW_ROWS = 100

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
    "wait_s": "s",
}


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
    with explain_read_errors(folder):
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
