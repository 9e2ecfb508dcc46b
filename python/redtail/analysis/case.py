"""What the replications of one case measured: estimates, values, response times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as field_of
from functools import cached_property
from typing import TYPE_CHECKING, Any

from redtail import metrics as names
from redtail.analysis import censoring, copies
from redtail.analysis.loads import Calibrated
from redtail.analysis.rare import why_no_interval
from redtail.analysis.stats import Estimate, estimate, exceedance
from redtail.derived import DerivedMetric, with_derived
from redtail.store.folders import StoredRun, read_series
from redtail.store.segments import CaseRuns

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


@dataclass(frozen=True)
class CaseResult:
    """What the replications of one case measured.

    Attributes:
        factors: the value of each factor as the experiment gives it, by its dotted key.
        labels: a short text for each of these values.
        runs: the stored runs by replication, from 0.
        loads: how many users were found for the loads that groups were asked to offer.
        own: every key that the case sets and its value, if these are not its factors.
        sharing: how many pairs of flows are expected to share a bucket of a hashing queue, by the
            metrics that it decides (`rare.sharing`).
    """

    factors: dict[str, Any]
    labels: dict[str, str]
    runs: Mapping[int, StoredRun]
    loads: tuple[Calibrated, ...] = ()
    own: dict[str, Any] | None = None
    sharing: Mapping[str, float] = field_of(default_factory=dict)

    @classmethod
    def of(
        cls,
        factors: dict[str, Any],
        labels: dict[str, str],
        runs: Mapping[int, StoredRun],
        loads: tuple[Calibrated, ...],
        own: dict[str, Any] | None = None,
        sharing: Mapping[str, float] | None = None,
        derived: Sequence[DerivedMetric] = (),
    ) -> CaseResult:
        """Return a case with more metrics of its runs.

        These are the load that its groups offered, and what follows by formulas from the others.
        """
        if not loads:
            if derived and isinstance(runs, CaseRuns):
                runs = runs.with_derived(derived)
            elif derived:
                runs = {
                    number: replace(run, metrics=with_derived(run.metrics, derived))
                    for number, run in runs.items()
                }
            return cls(factors, labels, runs, loads, own, sharing or {})
        with_loads = {}
        for number, run in runs.items():
            offered = {
                f"{load.group}.offered_load": load.offered[number]
                for load in loads
                if number in load.offered
            }
            metrics = with_derived({**run.metrics, **offered}, derived)
            with_loads[number] = replace(run, metrics=metrics)
        return cls(factors, labels, with_loads, loads, own, sharing or {})

    @property
    def title(self) -> str:
        """The case in one line; empty for an experiment without factors."""
        return names.case_title(self.factors, self.labels)

    @property
    def settings(self) -> dict[str, Any]:
        """The keys of the file that this case sets, with their values."""
        return self.factors if self.own is None else self.own

    @cached_property
    def metrics(self) -> dict[str, Estimate]:
        """The estimate of each metric, by its name."""
        if isinstance(self.runs, CaseRuns):
            found = self.runs.names()
        else:
            found = dict.fromkeys(name for run in self.runs.values() for name in run.metrics)
        return {name: self._estimated(name) for name in found}

    @cached_property
    def copies(self) -> int:
        """How many replications are copies of one run: all of them, or 0 (`analysis.copies`)."""
        if isinstance(self.runs, CaseRuns):
            return copies.of_columns(map(self.runs.column, self.runs.names()))
        return copies.of_metrics([run.metrics for run in self.runs.values()])

    def _estimated(self, name: str) -> Estimate:
        found = estimate(
            self.column(name) if isinstance(self.runs, CaseRuns) else self.values(name)
        )
        if self.copies:
            found = Estimate(found.mean, None, min(found.n, 1), copies.reason(self.copies))
            return censoring.estimated(name, found, self.values)
        why = why_no_interval(name, self.sharing, found.n, self.values)
        found = found if why is None else found.without_interval(why)
        return censoring.estimated(name, found, self.values)

    def metric(self, name: str) -> Estimate:
        """Return the estimate of a metric; one without any value when it is undefined here."""
        if name in self.metrics:
            return self.metrics[name]
        return censoring.estimated(name, estimate([]), self.values)

    def values(self, name: str) -> list[float]:
        """Return a metric replication by replication; NaN where it is undefined."""
        if isinstance(self.runs, CaseRuns):
            found: list[float] = self.runs.column(name).tolist()
            return found
        return [run.metrics.get(name, math.nan) for _, run in sorted(self.runs.items())]

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """Return `values` as an array."""
        import numpy as np

        if isinstance(self.runs, CaseRuns):
            return self.runs.column(name)
        return np.array(self.values(name), dtype=np.float64)

    def exceedance(self, link: str) -> list[Estimate]:
        """Return P(a loss event has more than n losses) at a queue, for n = 1, 2, 3, ….

        A replication without a loss event has no such probability and is left out.
        """
        per_run = []
        for run in self.runs.values():
            counts = run.consecutive_losses.get(link, [])
            if any(counts):
                per_run.append(exceedance(counts))
        longest = max(map(len, per_run), default=0)
        return [
            estimate(tail[n] if n < len(tail) else 0.0 for tail in per_run) for n in range(longest)
        ]

    @cached_property
    def response_times(self) -> dict[int, pa.Table]:
        """The binned response times of each replication that has some, by its number."""
        found = {
            number: read_series(run.folder, "response_times")
            for number, run in sorted(self.runs.items())
        }
        return {number: table for number, table in found.items() if table is not None}

    def response_bins(self, group: str, size_up_to: float | None) -> list[tuple[list[float], Any]]:
        """Return the ends of the bins and the counts in them, for each replication with any."""
        import pyarrow.compute as pc

        found = []
        for table in self.response_times.values():
            rows = table.filter(pc.equal(table["group"].cast("string"), group))
            if size_up_to is not None:
                rows = rows.filter(pc.equal(rows["size_up_to_bytes"], float(size_up_to)))
            if rows.num_rows:
                bins = rows.group_by("time_up_to_s").aggregate([("count", "sum")])
                bins = bins.sort_by("time_up_to_s")
                found.append((bins["time_up_to_s"].to_pylist(), bins["count_sum"].to_pylist()))
        return found
