"""Response times of users: their table, and the shares of responses that took at most a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from redtail.analysis.stats import Estimate, band, shares_within
from redtail.analysis.tables import case_columns
from redtail.errors import RedtailError, StoreError
from redtail.store.columns import table as table_of
from redtail.store.parquet import field

if TYPE_CHECKING:
    import pyarrow as pa

    from redtail.analysis.results import Results

_NO_RESPONSES = (
    'there are no response times: they come from groups with users ("web", "transactions")'
)


def groups(results: Results) -> tuple[str, ...]:
    """Return the names of the groups whose users got responses, in the order of the file."""
    return tuple(
        dict.fromkeys(
            group
            for case in results.cases
            for table in case.response_times.values()
            for group in table["group"].unique().to_pylist()
        )
    )


def group_of(results: Results, group: str | None) -> str:
    """Return the name of a group of users: the only one there is, or the one that is named.

    Raises:
        RedtailError: there is no such group, or there are several and none is named.
        StoreError: the experiment has no responses.
    """
    known = results.user_groups
    if not known:
        raise StoreError(_NO_RESPONSES)
    if group is None and len(known) > 1:
        raise RedtailError(f"group: one of {', '.join(known)} is wanted")
    if group is not None and group not in known:
        raise RedtailError(f"{group!r} is no group with users; they are {', '.join(known)}")
    return known[0] if group is None else group


def table(results: Results) -> pa.Table:
    """Return the counts of response times in bins; see `Results.response_times`."""
    import pyarrow as pa

    tables = [(case, case.response_times) for case in results.cases]
    if not any(found for _, found in tables):
        raise StoreError(_NO_RESPONSES)
    fields, columns = case_columns(
        results, [sum(table.num_rows for table in found.values()) for _, found in tables]
    )
    rows = [(number, table) for _, found in tables for number, table in found.items()]
    fields.append(field("replication", pa.uint32()))
    columns.append([number for number, table in rows for _ in range(table.num_rows)])
    for name in ("group", "size_up_to_bytes", "time_up_to_s", "count"):
        about = rows[0][1].schema.field(name)
        if name == "group":  # the codes of a dictionary may differ between cases
            about = field("group", pa.string())
        fields.append(about)
        columns.append([value for _, table in rows for value in table[name].to_pylist()])
    return table_of(columns, fields)


def cdf(
    results: Results, group: str | None, size_up_to: float | None, at: Sequence[float] | None
) -> pa.Table:
    """Return the share of responses that took at most a time; see `Results.response_time_cdf`."""
    import pyarrow as pa

    group = group_of(results, group)
    times, bands = bands_of(results, group, size_up_to, at)
    fields, columns = case_columns(results, [len(found) for found in bands])
    fields += [
        field("group", pa.string()),
        field("time_s", pa.float64(), unit="s"),
        field("mean", pa.float64(), unit="1", description="P(T <= time), over replications"),
        field("ci95", pa.float64(), unit="1", description="half-width of the 95 % interval"),
        field("n", pa.uint32(), description="replications with responses"),
    ]
    flat = [found for case in bands for found in case]
    columns += [
        [group] * len(flat),
        [time for case in bands for time, _ in zip(times, case, strict=True)],
        [found.mean for found in flat],
        [found.ci95 for found in flat],
        [found.n for found in flat],
    ]
    return table_of(columns, fields)


def bands_of(
    results: Results, group: str, size_up_to: float | None = None, at: Sequence[float] | None = None
) -> tuple[list[float], list[list[Estimate]]]:
    """Return times, and for each case the share answered within each of them.

    Arguments and errors as for `response_time_cdf`; a case without responses has no shares.
    """
    bins = [case.response_bins(group, size_up_to) for case in results.cases]
    if size_up_to is not None and not any(bins):
        classes = sorted(
            {
                size
                for case in results.cases
                for table in case.response_times.values()
                for size in table["size_up_to_bytes"].to_pylist()
            }
        )
        known = ", ".join(f"{size:.0f}" for size in classes)
        raise RedtailError(
            f"size_up_to = {size_up_to}: no response of {group!r} is in such a class; "
            f"the classes with responses end at {known} bytes"
        )
    if at is None:
        times = sorted({end for case in bins for ends, _ in case for end in ends})
    else:
        times = [float(time) for time in at]
        for time in times:
            if not time > 0:
                raise RedtailError(f"at = {time}: a time in seconds above 0 is wanted")
    return times, [
        band(shares_within(ends, counts, times) for ends, counts in case) for case in bins
    ]
