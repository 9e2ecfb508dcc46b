"""Results as tables of Arrow: a row for each replication, estimate or loss event."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from redtail import metrics as names
from redtail import quantities
from redtail.analysis.phases import metrics as of_phases
from redtail.analysis.phases import prefix
from redtail.errors import RedtailError
from redtail.store.columns import numbers
from redtail.store.columns import table as table_of
from redtail.store.index import FORMAT
from redtail.store.parquet import field, metric_field
from redtail.store.segments import keys_of

if TYPE_CHECKING:
    import pyarrow as pa

    from redtail.analysis.results import Results


def case_columns(results: Results, repeats: Sequence[int]) -> tuple[list[pa.Field], list[Any]]:
    """Return the columns that identify a case, each case's row repeated as often as asked.

    A factor whose settings are quantities has its texts in one column, and in the next one
    their values in SI units: `bottleneck.queue.limit` and `bottleneck.queue.limit_s`. Where
    its settings differ in dimension (packets and ms) there are only the texts.
    """
    import pyarrow as pa

    fields = [field("case", pa.uint32())]
    columns: list[list[Any]] = [_repeated(range(len(repeats)), repeats)]
    for key in results.factors:
        settings = [case.factors.get(key) for case in results.cases]
        kind: pa.DataType = pa.string()
        # A seed may be larger than a signed number; as text it keeps all its digits.
        plain = all(
            ((isinstance(value, int) and abs(value) < 2**63) or isinstance(value, float))
            and not isinstance(value, bool)
            for value in settings
        )
        if plain and all(isinstance(value, int) for value in settings):
            kind = pa.int64()
        elif plain:
            kind = pa.float64()
        else:
            settings = [case.labels.get(key) for case in results.cases]
        fields.append(field(key, kind))
        columns.append(_repeated(settings, repeats))
        numbers_in_si = in_si(results, key)
        if numbers_in_si is not None:
            fields.append(
                field(
                    quantities.column(key, numbers_in_si[1]),
                    pa.float64(),
                    unit=numbers_in_si[1],
                    description=f"{key} as a number",
                )
            )
            columns.append(_repeated(numbers_in_si[0], repeats))
    return fields, columns


def in_si(results: Results, key: str) -> tuple[list[float], str] | None:
    """Return the settings of a factor in SI, and the unit; None if they are no quantities."""
    return quantities.in_si([case.factors.get(key) for case in results.cases])


def _repeated(values: Sequence[Any], repeats: Sequence[int]) -> list[Any]:
    """Return a list with each value as often as the number at its place says."""
    return [value for value, times in zip(values, repeats, strict=True) for _ in range(times)]


def estimates(results: Results) -> pa.Table:
    """Return a row for each case and metric; see `Results.to_arrow`."""
    import pyarrow as pa

    fields, repeated = case_columns(results, [len(results.metric_names)] * len(results.cases))
    estimates = [
        (name, names.describe(name).unit, case.metric(name))
        for case in results.cases
        for name in results.metric_names
    ]
    fields += [
        field("metric", pa.string()),
        field("unit", pa.string()),
        field("mean", pa.float64(), description="mean over replications"),
        field("ci95", pa.float64(), description="half-width of the 95 % interval"),
        field("n", pa.uint32(), description="replications with a value"),
        field("no_interval", pa.string(), description="why there is no interval"),
        field("unfinished", pa.float64(), unit="1", description="share that did not finish"),
    ]
    repeated += [
        [name for name, _, _ in estimates],
        [unit for _, unit, _ in estimates],
        [None if math.isnan(found.mean) else found.mean for _, _, found in estimates],
        [found.ci95 for _, _, found in estimates],
        [found.n for _, _, found in estimates],
        [found.no_interval for _, _, found in estimates],
        [found.unfinished for _, _, found in estimates],
    ]
    return table_of(repeated, fields, results.provenance.metadata(FORMAT))


def replications(results: Results) -> pa.Table:
    """Return a row for each replication of each case; see `Results.to_arrow`."""
    import numpy as np
    import pyarrow as pa

    fields, columns = case_columns(results, [len(case.runs) for case in results.cases])
    runs = [each for case in results.cases for each in sorted(keys_of(case.runs).items())]
    fields += [
        field("replication", pa.uint32()),
        field("run", pa.string(), description="folder of the run"),
    ]
    columns += [[number for number, _ in runs], [key for _, key in runs]]
    for name in results.metric_names:
        fields.append(metric_field(name))
        # As Arrow's at once: lists of numbers would be the most that a campaign has in memory.
        columns.append(
            numbers(np.concatenate([np.empty(0), *(case.column(name) for case in results.cases)]))
        )
    return table_of(columns, fields, results.provenance.metadata(FORMAT))


def phases(results: Results) -> pa.Table:
    """Return a row for each replication and phase; see `Results.to_arrow`."""
    import numpy as np
    import pyarrow as pa

    numbers_of = results.phases
    runs = [
        (number, key)
        for case in results.cases
        for number, key in sorted(keys_of(case.runs).items())
    ]
    repeats = [len(case.runs) * len(numbers_of) for case in results.cases]
    fields, columns = case_columns(results, repeats)
    fields += [
        field("replication", pa.uint32()),
        field("run", pa.string(), description="folder of the run"),
        field("phase", pa.uint32(), description="its number, from 1"),
    ]
    columns += [
        [number for number, _ in runs for _ in numbers_of],
        [key for _, key in runs for _ in numbers_of],
        [phase for _ in runs for phase in numbers_of],
    ]
    for name in of_phases(results):
        fields.append(metric_field(name))
        # Of each case a row for each phase, and a column for each replication.
        values = [
            np.array([case.column(prefix(phase) + name) for phase in numbers_of]).T.ravel()
            for case in results.cases
        ]
        columns.append(numbers(np.concatenate([np.empty(0), *values])))
    return table_of(columns, fields, results.provenance.metadata(FORMAT))


def consecutive_losses(results: Results, link: str | None) -> pa.Table:
    """Return a row for each case, queue and n; see `Results.consecutive_losses`."""
    import pyarrow as pa

    chosen = results.links if link is None else [_link(results, link)]
    tails = [[(each, case.exceedance(each)) for each in chosen] for case in results.cases]
    fields, columns = case_columns(results, [sum(len(tail) for _, tail in each) for each in tails])
    fields += [
        field("link", pa.string()),
        field("losses_packets", pa.uint32(), unit="packets", description="n"),
        field("mean", pa.float64(), unit="1", description="P(N > n), mean over replications"),
        field("ci95", pa.float64(), unit="1", description="half-width of the 95 % interval"),
        field("n", pa.uint32(), description="replications with a loss event"),
    ]
    flat = [
        (of, n, found)
        for each in tails
        for of, tail in each
        for n, found in enumerate(tail, start=1)
    ]
    columns += [
        [of for of, _, _ in flat],
        [n for _, n, _ in flat],
        [found.mean for _, _, found in flat],
        [found.ci95 for _, _, found in flat],
        [found.n for _, _, found in flat],
    ]
    return table_of(columns, fields)


def _link(results: Results, link: str) -> str:
    if link not in results.links:
        raise RedtailError(f"{link!r} is not a queue; the queues are {', '.join(results.links)}")
    return link
