"""Distributions over runs: cumulative shares with intervals over replications.

A run keeps a distribution as counts in bins that are the same in every run. The share of values
that are at most x is a number for each run, exact at the ends of bins. Its mean over replications
has an interval like any metric.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redtail.analysis.flows import array, tables_by_run
from redtail.analysis.stats import Estimate, band
from redtail.analysis.tables import case_columns
from redtail.errors import RedtailError, StoreError
from redtail.metrics import BINS_PER_DECADE, base, nearest, prefix
from redtail.scenario import is_return
from redtail.store.columns import table as table_of
from redtail.store.parquet import field

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from redtail.analysis.results import Results


@dataclass(frozen=True)
class About:
    """What a distribution is of.

    Attributes:
        title: for the axis of a figure.
        unit: of its values.
        of: what is counted, in the plural.
        per_decade: the bins of its histogram in a factor of ten; None if each value is known.
        column: the column of the table of flows that it is of, if it is of flows.
    """

    title: str
    unit: str
    of: str
    per_decade: float | None = None
    column: str | None = None


KINDS: Mapping[str, About] = {
    "queue_delay": About("Queueing delay", "s", "packets", 100),
    "loss_gap": About("Time from one loss to the next", "s", "losses", 100),
    "one_way_delay": About("One-way delay", "s", "packets", 100),
    "pdv": About("Packet delay variation", "s", "packets", 100),
    "round_trip": About("Round-trip time", "s", "segments", 100),
    "response_time": About("Response time", "s", "responses", BINS_PER_DECADE),
    "flow_goodput": About("Goodput of a flow", "bit/s", "flows", None, "goodput_bps"),
    "flow_rtt": About("Mean round-trip time of a flow", "s", "flows", None, "rtt_mean_s"),
    "completion_time": About("Completion time", "s", "flows", None, "completion_time_s"),
}
"""The kinds of distributions, by the last part of their names."""

# What follows the name of a distribution in the name of one of its metrics.
_OF_METRIC = re.compile(r"_(mean|std|min|max|p\d+)$")

# Points at which a distribution of flows is read, at most.
_MOST_POINTS = 400


@dataclass(frozen=True)
class Distribution:
    """A distribution in every case.

    Attributes:
        name: what it is of, such as `calls.one_way_delay`.
        about: its kind.
        values: where it was read, in the unit of its kind.
        bands: for each case the share of values that are at most each of `values`; empty for a case
            without values.
    """

    name: str
    about: About
    values: tuple[float, ...]
    bands: tuple[tuple[Estimate, ...], ...]

    @property
    def group(self) -> str:
        """The queue and the group that it is of; empty for all packets of the bottleneck."""
        return prefix(self.name)

    def title(self, links: Sequence[str]) -> str:
        """Return what it is of, in words: with its groups, and with the queue if there are several.

        Args:
            links: the names of all queues.

        >>> found = Distribution("hop2.web.queue_delay", KINDS["queue_delay"], (), ())
        >>> found.title(["hop1", "hop2"])
        'Queueing delay of web at hop2'
        >>> found = Distribution("queue_delay", KINDS["queue_delay"], (), ())
        >>> found.title(["bottleneck", "return"]), found.title(["bottleneck"])
        ('Queueing delay at the bottleneck', 'Queueing delay')
        """
        link = next(
            (each for each in sorted(links, key=len, reverse=True) if self._is_at(each)), ""
        )
        of = self.group.removeprefix(link).lstrip(".")
        title = self.about.title
        if of:
            title = f"{title} of {of.replace('.', ', ')}"
        if not link and base(self.name) in ("queue_delay", "loss_gap"):
            link = "bottleneck" if "bottleneck" in links else ""
        if not link or len(links) < 2:
            return title
        place = link.replace(".", " ")
        if is_return(link):
            place = f"the {place} link"
        elif link == "bottleneck":
            place = "the bottleneck"
        return f"{title} at {place}"

    def _is_at(self, link: str) -> bool:
        return f"{self.group}.".startswith(f"{link}.")


# For a run: the ends of the bins that are not empty, the beginnings of these, and the counts.
_Run = tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]


def distribution(results: Results, metric: str, at: Sequence[float] | None = None) -> Distribution:
    """Return a distribution in every case; see `Results.cdf`.

    Raises:
        RedtailError: there is no such distribution, or a value of `at` is negative.
        StoreError: the runs have none.
    """
    name = _OF_METRIC.sub("", metric)
    about = KINDS.get(base(name))
    if about is None:
        raise RedtailError(
            f"{metric!r} has no distribution; accepted: {', '.join(KINDS)}, each also with the "
            "name of a group or queue in front, as in GROUP.queue_delay"
        )
    runs = _runs(results, name, about)
    import numpy as np

    if not any(runs):
        raise _missing(results, name, about)
    if at is None:
        points = _points(runs, about)
    else:
        points = [float(value) for value in at]
        for value in points:
            if not value >= 0:
                raise RedtailError(f"at = {value}: a number of at least 0 is wanted")
    where = np.array(points)
    bands = [band([_shares(run, where).tolist() for run in case]) for case in runs]
    return Distribution(name, about, tuple(points), tuple(map(tuple, bands)))


def cdf(results: Results, metric: str, at: Sequence[float] | None = None) -> pa.Table:
    """Return a distribution as a table; see `Results.cdf`."""
    import pyarrow as pa

    found = distribution(results, metric, at)
    fields, columns = case_columns(results, [len(case) for case in found.bands])
    unit = found.about.unit
    fields += [
        field("metric", pa.string()),
        field("value", pa.float64(), unit=unit),
        field("unit", pa.string()),
        field("mean", pa.float64(), unit="1", description="P(X <= value), over replications"),
        field("ci95", pa.float64(), unit="1", description="half-width of the 95 % interval"),
        field("n", pa.uint32(), description=f"replications with {found.about.of}"),
    ]
    flat = [each for case in found.bands for each in case]
    columns += [
        [found.name] * len(flat),
        [value for case in found.bands for value, _ in zip(found.values, case, strict=False)],
        [unit] * len(flat),
        [each.mean for each in flat],
        [each.ci95 for each in flat],
        [each.n for each in flat],
    ]
    return table_of(columns, fields)


def names(results: Results) -> list[str]:
    """Return the names of the distributions that any run has."""
    found: dict[str, None] = {}
    for case in results.histograms:
        for table in case.values():
            found.update(dict.fromkeys(_unique(table, "distribution")))
    found.update(dict.fromkeys(f"{group}.response_time" for group in results.user_groups))
    tables = [table for case in tables_by_run(results, "flows") for table in case.values()]
    groups = dict.fromkeys(group for table in tables for group in _unique(table, "group"))
    for kind, about in KINDS.items():
        if about.column is not None:
            of = [
                group
                for group in groups
                if any(len(_of_flows(t, group, about.column)) for t in tables)
            ]
            found.update(dict.fromkeys([kind] if of else []))
            found.update(dict.fromkeys(f"{group}.{kind}" for group in of))
    return list(found)


def _unique(table: pa.Table, name: str) -> list[str]:
    found: list[str] = table[name].unique().to_pylist()
    return found


def _missing(results: Results, name: str, about: About) -> RedtailError:
    """Return why there is no such distribution."""
    known = names(results)
    if known:
        return RedtailError(f"no run has the distribution {name}{nearest(known, name)}")
    kept = "; run the experiment again" if results.run_count else ""
    return StoreError(f"no run has a distribution of {about.title.lower()}{kept}")


def _runs(results: Results, name: str, about: About) -> list[list[_Run]]:
    """Return the distribution of each run that has it, case by case."""
    import numpy as np

    if about.column is not None:
        group, column = prefix(name), about.column
        found = [
            [_of_flows(table, group, column) for table in case.values()]
            for case in tables_by_run(results, "flows")
        ]
        return [[(v, v, np.ones(len(v))) for v in case if len(v)] for case in found]
    if base(name) == "response_time":
        return [
            [
                _binned(ends, counts, about)
                for ends, counts in case.response_bins(prefix(name), None)
            ]
            for case in results.cases
        ]
    binned = []
    for case in results.histograms:
        runs = []
        for table in case.values():
            ends, counts = rows_of(table, name)
            if len(counts):
                runs.append(_binned(ends, counts, about))
        binned.append(runs)
    return binned


def rows_of(table: pa.Table, name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the ends of the bins of one distribution of a run, and the counts in them."""
    import numpy as np
    import pyarrow as pa

    codes = table["distribution"].combine_chunks()
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.chunk(0)
    known = codes.dictionary.to_pylist()
    if name not in known:
        return np.empty(0), np.empty(0)
    here = array(codes.indices) == known.index(name)
    return array(table["up_to_s"])[here], array(table["count"])[here]


def _binned(ends: Any, counts: Any, about: About) -> _Run:
    import numpy as np

    ends = np.asarray(ends, np.float64)
    assert about.per_decade is not None
    return ends, ends / 10 ** (1 / about.per_decade), np.asarray(counts, np.float64)


def _of_flows(table: pa.Table, group: str, name: str) -> np.ndarray[Any, Any]:
    """Return what is known of the flows of a group, or of all, in rising order."""
    import numpy as np
    import pyarrow.compute as pc

    if group:
        table = table.filter(pc.equal(table["group"].cast("string"), group))
    values = array(table[name])
    return np.sort(values[~np.isnan(values)])


def _points(runs: Sequence[Sequence[_Run]], about: About) -> list[float]:
    """Return where to read a distribution: at the ends of all bins, or at the values."""
    import numpy as np

    points = np.unique(np.concatenate([ends for case in runs for ends, _, _ in case]))
    if about.column is not None and len(points) > _MOST_POINTS:
        chosen = np.linspace(0, len(points) - 1, _MOST_POINTS).round().astype(int)
        points = points[chosen]
    found: list[float] = points.tolist()
    return found


def _shares(run: _Run, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the share of values that are at most each of the points; linear inside a bin.

    >>> import numpy as np
    >>> run = np.array([0.0, 1.0, 4.0]), np.array([0.0, 0.5, 2.0]), np.array([1.0, 2.0, 1.0])
    >>> _shares(run, np.array([0.0, 0.5, 0.75, 1.0, 1.5, 3.0, 9.0])).tolist()
    [0.25, 0.25, 0.5, 0.75, 0.75, 0.875, 1.0]
    """
    import numpy as np

    ends, begins, counts = run
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    over = np.searchsorted(ends, points, side="right")
    # Behind the last bin there is one without values.
    begin = np.append(begins, np.inf)[over]
    width = np.append(ends - begins, 1.0)[over]
    inside = np.clip((points - begin) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    within = sums[over] + inside * np.append(counts, 0.0)[over]
    shares: np.ndarray[Any, Any] = within / sums[-1]
    return shares
