"""The bounds within which Parquet files are read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from redtail.store import parquet

SIZE = 1_000_000
# What a file of this size may become, as the module says: values, and bytes before decoding.
MOST_CELLS = 10_000_000 + 100 * SIZE
MOST_DATA = (64 << 20) + 200 * SIZE


def claims(rows: int, columns: int, data: int) -> Any:
    """Return a file whose footer says so, in two groups of rows."""
    halves = [(rows // 2, data // 2), (rows - rows // 2, data - data // 2)]
    groups = [SimpleNamespace(num_rows=n, total_byte_size=size) for n, size in halves]
    about = SimpleNamespace(
        num_rows=rows, num_columns=columns, num_row_groups=2, row_group=groups.__getitem__
    )
    return SimpleNamespace(metadata=about)


@pytest.mark.parametrize(
    ("rows", "columns", "data"), [(MOST_CELLS // 10, 10, 0), (1, 1, MOST_DATA)]
)
def test_as_much_as_redtail_writes_is_read(rows: int, columns: int, data: int) -> None:
    parquet._refuse_large(claims(rows, columns, data), SIZE)


@pytest.mark.parametrize(
    ("rows", "columns", "data"), [(MOST_CELLS // 10 + 1, 10, 0), (1, 1, MOST_DATA + 1)]
)
def test_more_than_redtail_writes_is_refused(rows: int, columns: int, data: int) -> None:
    with pytest.raises(
        ValueError, match=r"a table of 1000000 bytes has .* more than redtail writes"
    ):
        parquet._refuse_large(claims(rows, columns, data), SIZE)


def test_groups_that_have_more_rows_than_the_file_says_count() -> None:
    file = claims(MOST_CELLS, 1, 0)
    file.metadata.num_rows = 1
    parquet._refuse_large(file, SIZE)
    file.metadata.row_group(0).num_rows += 1
    with pytest.raises(ValueError, match="more than redtail writes"):
        parquet._refuse_large(file, SIZE)
