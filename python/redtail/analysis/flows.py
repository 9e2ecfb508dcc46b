"""Flows one by one: their table, and how fairly they share over time."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from redtail.analysis.tables import case_columns
from redtail.errors import RedtailError, RedtailWarning, StoreError
from redtail.metrics import counted
from redtail.store.columns import column
from redtail.store.parquet import field
from redtail.store.segments import LARGE, keys_of, tables_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from redtail.analysis.results import Results


def tables_by_run(
    results: Results, name: str, case: int | None = None, replication: int | None = None
) -> list[dict[int, pa.Table]]:
    """Return a table of every run that has it: for each case, by replication.

    Args:
        results: the runs.
        name: of the table, "flows" or "histograms".
        case: index of the only case that is wanted; the others are then empty.
        replication: the only replication that is wanted.
    """
    wanted: list[dict[int, str]] = []
    for number, each in enumerate(results.cases):
        keys = keys_of(each.runs) if case in (None, number) else {}
        if replication is not None:
            keys = {n: key for n, key in keys.items() if n == replication}
        wanted.append(keys)
    found = tables_of(results.folder, name, {key for keys in wanted for key in keys.values()})
    return [{n: found[key] for n, key in sorted(keys.items()) if key in found} for keys in wanted]


def flows(results: Results, case: int | None = None, replication: int | None = None) -> pa.Table:
    """Return a row for each flow; see `Results.flows`."""
    import pyarrow as pa

    if case is not None and not 0 <= case < len(results.cases):
        raise RedtailError(
            f"case = {case}: there are {len(results.cases)}, and the first is number 0"
        )
    found = tables_by_run(results, "flows", case, replication)
    runs = sum(
        len(each.runs) if replication is None else int(replication in each.runs)
        for number, each in enumerate(results.cases)
        if case in (None, number)
    )
    present = sum(map(len, found))
    if not runs and replication is None:
        raise StoreError("there is no run with flows: every run failed")
    if not runs:
        raise RedtailError(f"replication = {replication}: there is no such run")
    if not present:
        raise StoreError(
            "no table of flows was kept: a run with more flows than keep_flows (1000 by default) "
            f"has none, nor has a run of an experiment of {LARGE} runs or more that does not give "
            "keep_flows; give keep_flows = N in the experiment file and run it again"
        )
    if present < runs:
        warnings.warn(
            f"{counted(runs - present, 'run')} of {runs} kept no table of flows, "
            "because of more flows than keep_flows; their flows are missing",
            RedtailWarning,
            stacklevel=3,
        )
    tables = [(number, table) for each in found for number, table in each.items()]
    whole = pa.concat_tables([_with_names(table) for _, table in tables]).combine_chunks()
    fields, columns = case_columns(
        results, [sum(table.num_rows for table in each.values()) for each in found]
    )
    fields.append(field("replication", pa.uint32()))
    columns.append([number for number, table in tables for _ in range(table.num_rows)])
    arrays = [column(values, about.type) for values, about in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(
        [*arrays, *whole.columns], schema=pa.schema([*fields, *whole.schema])
    )


def _with_names(table: pa.Table) -> pa.Table:
    """Return a table of flows with the groups as text, and null for what is not known."""
    import pyarrow as pa

    arrays = []
    fields = []
    for about in table.schema:
        values = table.column(about.name)
        if pa.types.is_dictionary(about.type):
            values = values.cast(pa.string())
            about = field(about.name, pa.string())
        elif pa.types.is_floating(about.type):
            values = _nulls(values)
        arrays.append(values)
        fields.append(about)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _nulls(values: pa.ChunkedArray) -> pa.Array:
    from redtail.store.columns import numbers

    return numbers(array(values))


def array(values: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, Any]:
    """Return a column of numbers as an array, with NaN for null where there are nulls."""
    import numpy as np
    import pyarrow as pa

    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    if not chunks:
        return np.empty(0)
    parts = []
    for chunk in chunks:
        # Arrow's own way loads pandas, which takes a while.
        kind = np.dtype(str(chunk.type).replace("double", "f8"))
        part = np.frombuffer(chunk.buffers()[1], kind)[chunk.offset : chunk.offset + len(chunk)]
        if chunk.null_count:
            part = np.where(chunk.is_null().to_pylist(), np.nan, part)
        parts.append(part)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def fairness_over_time(
    results: Results,
    *,
    group: str | None = None,
    case: int = 0,
    replication: int = 0,
    every: float | None = None,
) -> pa.Table:
    """Return Jain's index of the flows' goodputs over time; see `Results.fairness_over_time`."""
    import numpy as np
    import pyarrow as pa

    table = results.series("flows", case=case, replication=replication)
    if "delivered_bytes" not in table.column_names:
        raise StoreError("the series of flows has no delivered_bytes: run the experiment again")
    if group is not None:
        import pyarrow.compute as pc

        groups = table["group"].unique().to_pylist()
        if group not in groups:
            raise RedtailError(
                f"group = {group!r}: the series has flows of {', '.join(map(str, groups))}"
            )
        table = table.filter(pc.equal(table["group"].cast("string"), group))
    time, flow = array(table["time_s"]), array(table["flow"])
    times, row = np.unique(time, return_inverse=True)
    flows_, place = np.unique(flow, return_inverse=True)
    # A flow without a row has not delivered anything yet, or is over.
    delivered = np.full((len(times), len(flows_)), np.nan)
    delivered[row, place] = array(table["delivered_bytes"])
    if len(times) < 2:
        raise StoreError("the series has fewer than two samples")
    step = 1 if every is None else max(1, round(every / (times[1] - times[0])))
    times, delivered = times[::step], delivered[::step]
    got = np.diff(np.nan_to_num(delivered), axis=0).clip(min=0.0)
    # Flows that have not begun are not among those that share.
    begun = np.nan_to_num(delivered[1:]) > 0
    count = begun.sum(axis=1)
    squares = (got**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        index = np.where(squares > 0, got.sum(axis=1) ** 2 / (count * squares), np.nan)
    arrays = [
        column(times[1:], pa.float64()),
        column(index, pa.float64()),
        column(count, pa.uint32()),
    ]
    fields = [
        field("time_s", pa.float64(), unit="s", description="end of the interval"),
        field("fairness", pa.float64(), unit="1", description="Jain's index"),
        field("flows", pa.uint32(), description="flows that have begun"),
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
