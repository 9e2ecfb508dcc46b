"""Results of an experiment: estimates per case, tables, time series."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as field_of
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from redtail import metrics as names
from redtail import quantities, selection
from redtail.analysis import censoring, copies, distributions, lockstep
from redtail.analysis import compare as comparing
from redtail.analysis import flows as flow_tables
from redtail.analysis.along import changing_along
from redtail.analysis.compare import Comparisons
from redtail.analysis.loads import Calibrated, alike
from redtail.analysis.paired import Correction, as_far_as_known, why_unjudged
from redtail.analysis.paired import why_no_interval as why_of_pair
from redtail.analysis.parts import with_parts
from redtail.analysis.provenance import Provenance
from redtail.analysis.rare import why_no_interval
from redtail.analysis.stats import (
    Estimate,
    band,
    estimate,
    exceedance,
    paired_difference,
    shares_within,
)
from redtail.derived import DerivedMetric, with_derived
from redtail.derived import parse as derived_of
from redtail.errors import RedtailError, RedtailWarning, SpecError, StoreError
from redtail.extras import extra
from redtail.files import path_of, plain_bytes
from redtail.scenario import series_key
from redtail.store.columns import numbers
from redtail.store.columns import table as table_of
from redtail.store.folders import ExperimentStore, StoredRun, read_run, read_series
from redtail.store.format import (
    EXPERIMENT_FILES,
    FAILED,
    MALFORMED,
    SEGMENTS,
    figures_of,
    inside,
    parts_of,
)
from redtail.store.index import FORMAT, read_index
from redtail.store.objects import is_url
from redtail.store.parquet import field, metric_field, open_parquet, parquet_bytes
from redtail.store.sealing import checksums, sealed
from redtail.store.segments import (
    LARGE,
    CaseRuns,
    RunTable,
    in_segments,
    keys_of,
    run_of,
    run_table_of,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from redtail.display.style import Size
    from redtail.display.texts import Form

JSON_FORMAT = 1
"""Version of what `redtail run --json` prints."""

Rows = Literal["cases", "replications"]
"""The rows of a table: each case and metric, or each replication of each case."""


# Of runs that failed for the same reason, so many are named after the first.
_FAILURES_SHOWN = 3

# Groups that a warning names.
_GROUPS_SHOWN = 3

# Letters across a table in a notebook.
_NOTEBOOK = 140

_NO_RESPONSES = (
    'there are no response times: they come from groups with users ("web", "transactions")'
)


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


@dataclass(frozen=True)
class Failure:
    """A run that failed.

    Attributes:
        key: what its folder would be called.
        run: its case and replication in words.
        reason: why it failed.
        command: what repeats it alone, None when its experiment is not in a file.
        log: the file with the traceback and the scenario, None when it could not be written.
    """

    key: str
    run: str
    reason: str
    command: str | None
    log: Path | None

    @property
    def kind(self) -> str:
        """The reason without the parts that differ between runs: times, addresses, traceback."""
        lines = self.reason.splitlines() or [""]
        return re.sub(r"\d+", "0", f"{lines[0]}\n{lines[-1]}")

    @property
    def text(self) -> str:
        """The message for a user who sees only this failure."""
        lines = [f"{self.run}: {self.reason}"]
        if self.command:
            lines.append(f"To repeat this run alone: {self.command}")
        if self.log:
            lines.append(f"Its traceback and scenario: {self.log}")
        return "\n".join(lines)


class Results:
    """The results of an experiment.

    Attributes:
        name: the experiment's name.
        description: its description, possibly empty.
        factors: the dotted keys of its factors.
        cases: the results case by case.
        folder: the experiment's folder in the store.
        reused: number of runs that were in the store already.
        failures: the runs that failed and are missing here.
        replaced: number of runs of the results under this name that these took the place of.
        backend: the name of what made the runs.
        made_by: what the runs depend on beside the experiment: a hash of the code, and with real
            packets the kernel and its tools.
        provenance: the experiment as it was given, its seed, and the version of redtail.
        unsure: a line for each case whose intervals a stop rule's last look still found too wide.
        report: names of the metrics that the experiment wants shown, which may have wildcards.
        derived: the metrics that the experiment derives from others by formulas.
    """

    def __init__(
        self,
        *,
        name: str,
        description: str,
        factors: Sequence[str],
        cases: tuple[CaseResult, ...],
        folder: Path,
        reused: int = 0,
        failures: Sequence[Failure] = (),
        backend: str = "sim",
        made_by: str = "",
        provenance: Provenance | None = None,
        report: Sequence[str] = (),
        derived: Sequence[DerivedMetric] = (),
    ) -> None:
        self.name = name
        self.description = description
        self.factors = tuple(factors)
        self.cases = cases
        self.folder = folder
        self.reused = reused
        self.failures = tuple(failures)
        self.backend = backend
        self.made_by = made_by
        self.provenance = provenance or Provenance()
        self.report = tuple(report)
        self.derived = tuple(derived)
        self.replaced = 0
        # The table of replications as it was read, when it was.
        self._loaded: pa.Table | None = None
        self.unsure: tuple[str, ...] = ()

    def __repr__(self) -> str:
        cases = names.counted(len(self.cases), "case")
        return f"<Results of {self.name!r}: {cases}, {names.counted(self.run_count, 'run')}>"

    @property
    def run_count(self) -> int:
        """Number of runs from which the results are made."""
        return sum(len(case.runs) for case in self.cases)

    @property
    def failed(self) -> int:
        """Number of runs that failed and are missing here."""
        return len(self.failures)

    def failure_summary(self) -> str:
        """Return what failed and why, a paragraph for each reason; empty when nothing did."""
        if not self.failures:
            return ""
        reasons: dict[str, list[Failure]] = {}
        for each in self.failures:
            reasons.setdefault(each.kind, []).append(each)
        total = names.counted(self.run_count + self.failed, "run")
        lines = [f"{self.failed} of {total} failed and are missing in the results:"]
        for same in sorted(reasons.values(), key=len, reverse=True):
            lines.append(same[0].text)
            shown = same[1 : 1 + _FAILURES_SHOWN]
            if shown:
                lines.append(
                    f"For the same reason: {'; '.join(each.run for each in shown)}"
                    + (
                        f"; and {len(same) - 1 - len(shown)} more"
                        if len(same) - 1 > len(shown)
                        else ""
                    )
                )
        if any(each.log for each in self.failures):
            lines.append(f"Each has a log in {self.folder / FAILED}/")
        return "\n".join(lines)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to check before you trust these results.

        One line about flows that made no progress, and one if replications are alike.
        """
        return (
            *self._stalls(),
            *self._copies(),
            *self._same_users(),
            *lockstep.warnings(self),
        )

    def _stalls(self) -> list[str]:
        """Return a warning about groups with flows that made no progress, or nothing."""
        stalled = [
            (name, case)
            for name in self.metric_names
            if names.base(name) == "stalls" and names.phase(name) is None
            for case in self.cases
            if any(value > 0 for value in case.values(name))
        ]
        if not stalled:
            return []
        groups = dict.fromkeys(names.prefix(name) for name, _ in stalled)
        of = {id(case): case for _, case in stalled}
        runs = sum(
            any(value > 0 for value in values)
            for case in of.values()
            for values in zip(*(case.values(f"{group}.stalls") for group in groups), strict=True)
        )
        wait = max(max(case.values(f"{names.prefix(name)}.ack_wait_max")) for name, case in stalled)
        name, worst = max(stalled, key=lambda each: each[1].metric(each[0]).mean)
        group = names.prefix(name)
        shown = [repr(each) for each in groups]
        more = len(groups) - _GROUPS_SHOWN
        if more > 0:
            shown[_GROUPS_SHOWN:] = [names.counted(more, "other group")]
        *first, last = shown
        named = f"{', '.join(first)} and {last}" if first else last
        where = [f"of {group!r}"] * (len(groups) > 1) + [f"in '{worst.title}'"] * bool(worst.title)
        most = f"most {' '.join(where)}: " if where else ""
        cases = names.counted(len(self.cases), "case")
        return [
            f"flows of {named} that had sent data made no cumulative progress "
            f"for more than 10 s, and for up to {wait:.0f} s, in {runs} of "
            f"{names.counted(self.run_count, 'run')} ({len(of)} of {cases}), "
            f"{most}{worst.metric(name).mean:.3g} times in a run; {name} and "
            f"{group}.ack_wait_max have it case by case"
        ]

    def _copies(self) -> list[str]:
        """Return a warning about cases whose replications are copies of one run, or nothing."""
        copied = [case for case in self.cases if case.copies]
        if not copied:
            return []
        cases = names.counted(len(self.cases), "case")
        return [copies.warning(len(copied), cases, copied[0].title)]

    def _same_users(self) -> list[str]:
        """Return a warning for each two loads that were found to be the same number of users."""
        return alike(
            (
                (case.settings, load.group, load.link, load.asked, load.text, load.users)
                for case in self.cases
                for load in case.loads
            ),
            about=False,
        )

    @cached_property
    def metric_names(self) -> tuple[str, ...]:
        """The names of all metrics that any case has."""
        return tuple(dict.fromkeys(name for case in self.cases for name in case.metrics))

    def select(self, metrics: str | Sequence[str] = ()) -> list[str]:
        """Return the names of the metrics to show.

        Args:
            metrics: names, which may have wildcards (`web.*`, `*.one_way_delay_p99`); without them
                those of `report`, and without these what suits the traffic.

        Raises:
            SpecError: there is no such metric; the message has the nearest names.
        """
        chosen = selection.split(metrics)
        found = selection.select(
            self.metric_names,
            chosen or self.report,
            links=self.links,
            # What [report] names was checked before the runs; some may have no value in any.
            lenient=not chosen,
        )
        if chosen or self.report:
            return found
        return with_parts(self, [name for name in found if self._tells(name)])

    def _tells(self, name: str) -> bool:
        """Return whether a metric that nobody asked for is worth a column.

        A share of what did not finish is not where everything did.
        """
        found = [case.metric(name) for case in self.cases]
        if censoring.is_beside(name):
            return any(each.unfinished for each in found)
        return not censoring.says_nothing(name, [each.mean for each in found])

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The first run with all defaults filled in; empty when there is none to read."""
        for case in self.cases:
            for key in keys_of(case.runs).values():
                path = self.folder / key / "scenario.json"
                with contextlib.suppress(OSError, ValueError):
                    found: dict[str, Any] = json.loads(plain_bytes(path))
                    return found
                for segment in inside(self.folder, SEGMENTS, "*.parquet"):
                    with contextlib.suppress(StoreError, ValueError):
                        _, text = run_of(segment, key)
                        found = json.loads(text)
                        return found
        return {}

    @cached_property
    def phases(self) -> tuple[int, ...]:
        """The numbers of the phases, from 1; empty when the experiment asks for none."""
        found = {names.phase(name) for name in self.metric_names}
        return tuple(sorted(number for number in found if number is not None))

    @cached_property
    def links(self) -> tuple[str, ...]:
        """The names of the queues, the forward bottleneck first."""
        return tuple(
            dict.fromkeys(
                link
                for case in self.cases
                for link in (
                    case.runs.links()
                    if isinstance(case.runs, CaseRuns)
                    else (name for run in case.runs.values() for name in run.consecutive_losses)
                )
            )
        )

    def case(self, **labels: object) -> CaseResult:
        """Return the one case with these labels, by the last part of the factor's key.

        `results.case(queue="RED", flows=64)` finds the case whose `bottleneck.queue` is labelled
        "RED" and whose `traffic.ftp.flows` is 64.

        Raises:
            RedtailError: none or several cases fit.
        """
        wanted = {key: str(value) for key, value in labels.items()}
        fitting = [
            case
            for case in self.cases
            if all(
                any(
                    key.rpartition(".")[2] == part and label == text for key, label in _labels(case)
                )
                for part, text in wanted.items()
            )
        ]
        if len(fitting) != 1:
            known = "; ".join(case.title for case in self.cases)
            raise RedtailError(f"{len(fitting)} cases fit {wanted}; the cases are: {known}")
        return fitting[0]

    def table(self) -> pa.Table:
        """Return a row per case and metric: mean, ci95 (half-width), n, no_interval (why)."""
        return self.to_arrow("cases")

    def to_arrow(self, rows: Rows = "replications") -> pa.Table:
        """Return an Arrow table.

        Args:
            rows: "replications" has a row per run and a column per metric, the SI unit in its
                name; "cases" has a row per case and metric with mean, ci95, n, and
                no_interval, which says why there is no ci95.

        Returns:
            The table. The metadata of its schema have the version of redtail, the seed and the
            number of the format, and those of each column its unit.
        """
        if rows == "replications":
            known = () if self._loaded is None else self._loaded.column_names
            # A table of an earlier version has no numbers beside the texts of quantities.
            complete = all(
                about.name in known for about in self.case_columns([0] * len(self.cases))[0]
            )
            return self._loaded if complete else self._replications()
        if rows != "cases":
            raise ValueError(f"rows = {rows!r}; accepted: 'cases', 'replications'")
        return self._estimates()

    def _estimates(self) -> pa.Table:
        import pyarrow as pa

        fields, repeated = self.case_columns([len(self.metric_names)] * len(self.cases))
        estimates = [
            (name, names.describe(name).unit, case.metric(name))
            for case in self.cases
            for name in self.metric_names
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
        return table_of(repeated, fields, self.provenance.metadata(FORMAT))

    def to_pandas(self, rows: Rows = "replications") -> pd.DataFrame:
        """Return `to_arrow(rows)` as a pandas data frame.

        Raises:
            RedtailError: pandas is not installed.
        """
        with extra("pandas", "to_pandas"):
            import pandas  # noqa: F401 (Arrow uses it)
        frame: pd.DataFrame = self.to_arrow(rows).to_pandas()
        return frame

    def to_polars(self, rows: Rows = "replications") -> pl.DataFrame:
        """Return `to_arrow(rows)` as a polars data frame.

        Raises:
            RedtailError: polars is not installed.
        """
        with extra("polars", "to_polars"):
            import polars as pl

        frame = pl.from_arrow(self.to_arrow(rows))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_xarray(self) -> Any:
        """Return an `xarray.Dataset` with a variable per metric and replication.

        Its dimensions are the factors, by the last parts of their keys where these differ, and
        `replication`. Numbers stand as numbers, quantities of one dimension as numbers in SI
        units, with the attribute `units` and with their labels in a second coordinate
        (`limit` and `limit_label`), other settings by their labels. Cases that are
        no full grid (a list of cases and factors, zipped factors) have one dimension `case`
        with the factors along it. What was not run or is undefined is NaN.

        Raises:
            RedtailError: xarray is not installed.
        """
        with extra("notebook", "to_xarray"):
            import xarray
        import numpy as np

        along_cases = {key: self._settings(key) for key in self.factors}
        settings = {key: list(dict.fromkeys(values)) for key, values in along_cases.items()}
        short = {key: key.rpartition(".")[2] for key in self.factors}
        titles = {
            key: short[key] if list(short.values()).count(short[key]) == 1 else key
            for key in self.factors
        }
        known = sorted({number for case in self.cases for number in case.runs})
        cells = np.full((len(self.metric_names), len(self.cases), len(known)), np.nan)
        for at, case in enumerate(self.cases):
            for along, number in enumerate(known):
                run = case.runs.get(number)
                for metric, name in enumerate(self.metric_names):
                    if run is not None:
                        cells[metric, at, along] = run.metrics.get(name, np.nan)
        shape = [len(values) for values in settings.values()]
        coords: dict[str, Any] = {"replication": known}
        if math.prod(shape) == len(self.cases):
            # The last factor changes fastest, in the cases as in the array.
            dims = list(titles.values())
            cells = cells.reshape(len(self.metric_names), *shape, len(known))
            placed = {key: (titles[key], values) for key, values in settings.items()}
        else:
            dims = ["case"]
            placed = {key: ("case", values) for key, values in along_cases.items()}
        for key, (dim, values) in placed.items():
            in_si = self._in_si(key)
            coords[titles[key]] = (dim, values, {} if in_si is None else {"units": in_si[1]})
            if in_si is not None:
                labels = [case.labels.get(key, "") for case in self.cases]
                if dim != "case":
                    label_of = dict(zip(in_si[0], labels, strict=True))
                    labels = [label_of[value] for value in values]
                coords[f"{titles[key]}_label"] = (dim, labels)
        variables = {
            name: (
                [*dims, "replication"],
                cells[metric],
                {"long_name": names.describe(name).title, "units": names.describe(name).unit},
            )
            for metric, name in enumerate(self.metric_names)
        }
        about = {"experiment": self.name, "description": self.description}
        return xarray.Dataset(variables, coords, about)

    def _settings(self, key: str) -> list[Any]:
        """Return a factor's setting in each case: numbers, in SI units, or else labels."""
        given = [case.factors.get(key) for case in self.cases]
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
            return given
        in_si = self._in_si(key)
        return [case.labels.get(key, "") for case in self.cases] if in_si is None else in_si[0]

    def consecutive_losses(self, link: str | None = None) -> pa.Table:
        """Return P(a loss event has more than n losses), with intervals, per case, queue and n.

        Args:
            link: the queue; by default all that lose packets, which the column `link` names.

        Raises:
            RedtailError: there is no such queue.
        """
        import pyarrow as pa

        chosen = self.links if link is None else [self._link(link)]
        tails = [[(each, case.exceedance(each)) for each in chosen] for case in self.cases]
        fields, columns = self.case_columns([sum(len(tail) for _, tail in each) for each in tails])
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

    def series(
        self,
        table: Literal["queues", "flows", "groups"] = "queues",
        *,
        case: int = 0,
        replication: int = 0,
    ) -> pa.Table:
        """Return a time series of one run.

        Args:
            table: "queues" (length, RED's average, drops, marks, delay), "flows" (windows,
                round-trip times, pacing rates) or "groups" (goodput).
            case: index into `cases`.
            replication: from 0.

        Raises:
            StoreError: the experiment did not record it.
        """
        run = self.cases[case].runs.get(replication)
        found = None if run is None else read_series(run.folder, table)
        if found is None:
            raise StoreError(
                f"no series of {table} was recorded for replication {replication}; "
                f"ask for it in the experiment's [series] section with {series_key(table)} = true"
            )
        return found

    def transfers(self, *, case: int = 0, replication: int = 0) -> pa.Table:
        """Return the sized transfers of one run, a row for each.

        Times are in seconds from a transfer's start: to the SYN-ACK, to the delivery of the first
        byte, to the acknowledgement of the last. They are NaN where the run ended before.

        Args:
            case: index into `cases`.
            replication: from 0.

        Raises:
            StoreError: the experiment has no traffic of kind "transfer", or not this run.
        """
        run = self.cases[case].runs.get(replication)
        found = None if run is None else read_series(run.folder, "transfers")
        if found is None:
            raise StoreError(
                f"replication {replication} has no transfers: "
                'they come from traffic of kind "transfer"'
                if run is not None
                else f"there is no replication {replication}"
            )
        return found

    def flows(self, *, case: int | None = None, replication: int | None = None) -> pa.Table:
        """Return every flow, a row for each.

        After the columns of the case and `replication`: `group`, `flow` and `host` (numbers),
        `round_trip_s` (without queueing), `start_s`, `completion_time_s` (from its start; of a
        sized transfer, or of a user's connection), `active_s` (how long it was active in the
        measurement period), `delivered_bytes`, `goodput_bps` (of these bytes in this time),
        `sent_packets`, `lost_packets`, `marked_packets`, `retransmissions`, `timeouts`,
        `rtt_mean_s`, `rtt_min_s`.
        Counts are of the measurement period. What does not exist for a flow, or is not known, is
        null.

        Args:
            case: index into `cases`; by default all.
            replication: from 0; by default all.

        Raises:
            RedtailError: there is no such case or replication.
            StoreError: no table of flows was kept (`keep_flows` in the experiment file).
        """
        return flow_tables.flows(self, case, replication)

    def fairness_over_time(
        self,
        *,
        group: str | None = None,
        case: int = 0,
        replication: int = 0,
        every: float | None = None,
    ) -> pa.Table:
        """Return Jain's fairness index of the flows' goodputs in each interval of one run.

        From the series of flows. A flow counts from its first byte on.

        Args:
            group: the group of flows; by default all TCP flows.
            case: index into `cases`.
            replication: from 0.
            every: length of an interval in seconds; by default that of the series.

        Returns:
            A row per interval: `time_s` (its end), `fairness` (NaN where nothing was delivered),
            `flows`.

        Raises:
            RedtailError: there is no such group.
            StoreError: no series of flows was recorded.
        """
        return flow_tables.fairness_over_time(
            self, group=group, case=case, replication=replication, every=every
        )

    def cdf(self, metric: str, *, at: Sequence[float] | None = None) -> pa.Table:
        """Return a cumulative distribution with intervals, per case.

        Args:
            metric: `queue_delay`, `loss_gap` (the time from one loss at a queue to the next),
                `one_way_delay`, `response_time`, `flow_goodput`, `flow_rtt` or `completion_time`,
                with the queue and the group in front as in the names of metrics. The name of a
                metric such as `calls.one_way_delay_p99` stands for its distribution.
            at: values in SI units; by default the ends of all bins that any case has.

        Returns:
            A row per case and value: `metric`, `value` and its `unit`, the `mean` over replications
            of the share of values up to this one, half the width `ci95` of its interval (Student's
            t, wider where the shares are skewed, see `stats.estimate`; at this value alone) and
            `n`, the replications that have such values.

        Raises:
            RedtailError: there is no such distribution, or a value of `at` is negative.
            StoreError: the runs have no distributions.
        """
        return distributions.cdf(self, metric, at)

    @cached_property
    def distributions(self) -> tuple[str, ...]:
        """The names that `cdf` takes."""
        return tuple(distributions.names(self))

    @cached_property
    def histograms(self) -> list[dict[int, pa.Table]]:
        """The distributions as runs keep them: for each case, by replication.

        A row for each `distribution` and bin that is not empty: its upper end `up_to_s`, and the
        `count` of values from the end of the bin before. There are 100 bins to a factor of ten, and
        one for zero, the same in every run.
        """
        return flow_tables.tables_by_run(self, "histograms")

    @cached_property
    def user_groups(self) -> tuple[str, ...]:
        """The names of the groups whose users got responses, in the order of the file."""
        return tuple(
            dict.fromkeys(
                group
                for case in self.cases
                for table in case.response_times.values()
                for group in table["group"].unique().to_pylist()
            )
        )

    def user_group(self, group: str | None) -> str:
        """Return the name of a group of users: the only one there is, or the one that is named.

        Raises:
            RedtailError: there is no such group, or there are several and none is named.
            StoreError: the experiment has no responses.
        """
        known = self.user_groups
        if not known:
            raise StoreError(_NO_RESPONSES)
        if group is None and len(known) > 1:
            raise RedtailError(f"group: one of {', '.join(known)} is wanted")
        if group is not None and group not in known:
            raise RedtailError(f"{group!r} is no group with users; they are {', '.join(known)}")
        return known[0] if group is None else group

    def response_times(self) -> pa.Table:
        """Return the response times of all runs, counted in bins.

        A row for each case, replication, group, class of response sizes (`size_up_to_bytes`, inf
        for the largest) and bin of times (`time_up_to_s`) with a `count`. The bins are the same in
        every run, 50 to a factor of ten; those without a response are left out.

        Raises:
            StoreError: no run has any: they come from groups with users.
        """
        import pyarrow as pa

        tables = [(case, case.response_times) for case in self.cases]
        if not any(found for _, found in tables):
            raise StoreError(_NO_RESPONSES)
        fields, columns = self.case_columns(
            [sum(table.num_rows for table in found.values()) for _, found in tables]
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

    def response_time_cdf(
        self,
        *,
        group: str | None = None,
        size_up_to: float | None = None,
        at: Sequence[float] | None = None,
    ) -> pa.Table:
        """Return the share of responses that took at most a time, with intervals, per case.

        The shares are of the responses that came; requests without an answer when the run ended
        are in `GROUP.unanswered`.

        Args:
            group: the group of users; may be left out when there is one.
            size_up_to: the class of response sizes, by its upper end in bytes (1460, 10 000,
                100 000, 1 000 000 or inf; it begins where the one before ends); by default all.
            at: times in seconds; by default the ends of all bins that any case has.

        Returns:
            A row per case and time: `time_s`, the `mean` of the share over replications, half the
            width `ci95` of its interval (Student's t, wider where the shares are skewed, see
            `stats.estimate`; at this time alone) and `n`, the replications with responses.

        Raises:
            RedtailError: there is no such group or class, or a time is not positive.
            StoreError: the experiment has no responses.
        """
        import pyarrow as pa

        group = self.user_group(group)
        times, bands = self.response_time_bands(group, size_up_to, at)
        fields, columns = self.case_columns([len(found) for found in bands])
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

    def response_time_bands(
        self, group: str, size_up_to: float | None = None, at: Sequence[float] | None = None
    ) -> tuple[list[float], list[list[Estimate]]]:
        """Return times, and for each case the share answered within each of them.

        Arguments and errors as for `response_time_cdf`; a case without responses has no shares.
        """
        bins = [case.response_bins(group, size_up_to) for case in self.cases]
        if size_up_to is not None and not any(bins):
            classes = sorted(
                {
                    size
                    for case in self.cases
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

    def differences(
        self, metric: str, *, factor: str | None = None, baseline: str | None = None
    ) -> list[tuple[CaseResult, Estimate]]:
        """Return how much each case differs from its baseline, replication by replication.

        Cases that differ in the queue alone draw the same workload, so these intervals are
        narrower than those of the cases themselves.

        Args:
            metric: the metric to compare.
            factor: the factor compared, by default the first.
            baseline: the label of the setting compared with, by default the first.

        Raises:
            RedtailError: there is no such factor or setting.
        """
        metric = names.named(self.metric_names, metric)
        factor = factor or (self.factors[0] if self.factors else "")
        settings = list(dict.fromkeys(case.labels.get(factor, "") for case in self.cases))
        if factor not in self.factors:
            raise RedtailError(f"{factor!r} is not a factor; the factors are {self.factors}")
        baseline = settings[0] if baseline is None else baseline
        if baseline not in settings:
            raise RedtailError(f"{baseline!r} is not a setting of {factor}; they are {settings}")

        along = changing_along(self.cases, factor)

        def others(case: CaseResult) -> tuple[str, ...]:
            return tuple(label for key, label in case.labels.items() if key not in (factor, *along))

        bases = {others(case): case for case in self.cases if case.labels[factor] == baseline}
        found = []
        for case in self.cases:
            base = bases.get(others(case))
            if base is None or case is base:
                continue
            by_number, base_by_number = (
                dict(zip(sorted(each.runs), each.values(metric), strict=True))
                for each in (case, base)
            )
            shared = sorted(by_number.keys() & base_by_number.keys())
            first = [by_number[number] for number in shared]
            second = [base_by_number[number] for number in shared]
            difference = paired_difference(first, second)
            refused = why_of_pair(metric, case, base, difference.n)
            unjudged = why_unjudged(metric, case, base)
            found.append((case, as_far_as_known(difference, refused, unjudged)))
        return found

    def compare(
        self,
        metric: str | Sequence[str],
        *,
        baseline: str | None = None,
        by: str | None = None,
        correction: Correction = "holm",
        equal_within: str | Sequence[str] = (),
    ) -> Comparisons:
        """Compare the cases that differ in one factor alone, replication by replication.

        Args:
            metric: the metric, or several: the correction then counts the comparisons of all.
            baseline: the label of one setting of the factor, which all others are compared with;
                by default every pair is compared.
            by: the factor, by its dotted key or the last part of it; by default the first one
                that is a queue, else the first.
            correction: "holm", so that verdicts hold for all comparisons at once, or "none".
            equal_within: within which difference two cases count as equal, which is tested too:
                "2 %" (of the baseline's mean), or of one metric "goodput=2 %", "loss=0.2 points".

        Raises:
            RedtailError: there is no such metric, factor, setting or margin.
        """
        wanted = [metric] if isinstance(metric, str) else metric
        metric = [names.named(self.metric_names, each) for each in wanted]
        found = comparing.compare(
            self,
            metric,
            baseline=baseline,
            by=by,
            correction=correction,
            equal_within=equal_within,
        )
        for text in found.warnings:
            warnings.warn(text, RedtailWarning, stacklevel=2)
        return found

    def as_json(self) -> dict[str, Any]:
        """Return what `redtail run --json` prints, as Python objects."""

        def tail(case: CaseResult, link: str) -> list[dict[str, Any]]:
            return [
                {"losses": size, **found.as_json()}
                for size, found in enumerate(case.exceedance(link), start=1)
            ]

        return {
            "format": JSON_FORMAT,
            "version": self.provenance.version,
            "experiment": self.name,
            "backend": self.backend,
            "made_by": self.made_by,
            "seed": self.provenance.seed,
            "units": {name: names.describe(name).unit for name in self.metric_names},
            "cases": [
                {
                    "factors": case.factors,
                    "labels": case.labels,
                    "metrics": {name: case.metric(name).as_json() for name in self.metric_names},
                    "consecutive_loss_exceeds": [
                        {"queue": link, **row}
                        for link in self.links[:1]
                        for row in tail(case, link)
                    ],
                    "consecutive_loss_exceeds_at": {link: tail(case, link) for link in self.links},
                }
                for case in self.cases
            ],
        }

    def to_json(self) -> str:
        """Return what `redtail run --json` prints.

        The number of this format, the version of redtail, the backend that made the runs, what
        they depend on, the seed, the unit of each metric, and per case: `factors`, `labels`,
        `metrics` (each `mean`, `ci95`, `n`, where `ci95` is null `no_interval`, which says why, and
        of times `unfinished`, the share that did not finish), `consecutive_loss_exceeds`, the
        probability that a loss event at the first `queue` has
        more than `losses` losses, and `consecutive_loss_exceeds_at`, the same for each queue.
        """
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False, allow_nan=False)

    def of_queues(self, queues: str | Sequence[str]) -> Results:
        """Return the results of some of the queues.

        Args:
            queues: labels of queues, or of the settings of the first factor when no factor is a
                queue; with `*` for any letters.

        Raises:
            RedtailError: no case has such a label.
        """
        wanted = [queues] if isinstance(queues, str) else list(queues)
        queue = [key for key in self.factors if comparing.is_queue(key)]
        factor = next(iter([*queue, *self.factors]), "")
        labels = [case.labels.get(factor, "") for case in self.cases]
        for pattern in wanted:
            if not any(fnmatchcase(label, pattern) for label in labels):
                known = ", ".join(dict.fromkeys(labels))
                raise RedtailError(f"queues: no case has {pattern!r}; accepted: {known}")
        return self._with(
            [
                case
                for case, label in zip(self.cases, labels, strict=True)
                if any(fnmatchcase(label, pattern) for pattern in wanted)
            ]
        )

    def _with(self, cases: Sequence[CaseResult]) -> Results:
        """Return the results of these cases alone."""
        return Results(
            name=self.name,
            description=self.description,
            factors=self.factors,
            cases=tuple(cases),
            folder=self.folder,
            reused=self.reused,
            backend=self.backend,
            made_by=self.made_by,
            report=self.report,
            derived=self.derived,
        )

    def figure(
        self,
        metric: str | None = None,
        *,
        kind: str = "",
        size: Size | None = None,
        queues: str | Sequence[str] = (),
        log: bool | None = None,
        case: int = 0,
        replication: int = 0,
        flows: Sequence[int] | None = None,
        models: Mapping[str, Callable[[float], float]] | None = None,
        caption: bool = True,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Figure:
        """Draw one figure, as a Matplotlib figure that can be changed and saved.

        Args:
            metric: the metric; `redtail list metrics FILE` has the names. Of kind "plane" it is the
                delay, of "loss_events", "queue" and "series" the link, of "response_times" and
                "fairness" the group, of "cdf" and "tail" a distribution (see `cdf`); there it may
                be left out.
            kind: "value" (means and intervals, the default with a metric), "difference" (paired
                differences from the first setting), "quartiles" (a box for each case), "plane"
                (delay against goodput, the default without a metric), "loss_events", "queue" (its
                length over time), "response_times", "cdf" (a distribution), "tail" (the share above
                each value, on a logarithmic axis), "heatmap" (a metric over two factors of
                numbers), "series" (one run over time: goodput, queue, and windows of chosen flows)
                or "fairness" (of the flows over time).
            size: "column" or "page", the widths of a journal (3.5 and 7.16 inches), or (width,
                height) in inches.
            queues: labels of the queues that are shown, with `*` for any letters; by default all.
            log: whether the values are on a logarithmic axis; by default if they span decades.
            case: of kind "series", index into `cases`.
            replication: of kind "series", from 0.
            flows: of kind "series", the numbers of the flows; by default the first three.
            models: of kind "value", curves behind the points: by name, functions of the load in the
                unit of its axis, which return the metric in its SI unit.
            caption: whether what the marks mean is written below; without it, say so in the text.
            ax: Axes of a figure of your own to draw into, as many as the figure has panels, row by
                row. Settings of Matplotlib are yours then; there is a legend and no caption.

        Raises:
            RedtailError: there is no such metric, kind or queue, nothing to draw it from, or `ax`
                does not have one Axes for each panel.
            SpecError: there is no such size.
        """
        from redtail.display import plots, style  # loads Matplotlib

        if ax is not None and size is not None:
            raise RedtailError("size: the figure of `ax` has one; accepted: one of the two")
        place = size if ax is None else style.Given.of(ax)
        results = self.of_queues(queues) if queues else self
        kind = kind or ("plane" if metric is None else "value")
        return plots.figure(
            results,
            kind,
            plots.Wanted(metric, place, log, case, replication, flows, models, caption),
        )

    def figures(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        names: Sequence[str] | None = None,
        every: bool = False,
        formats: Sequence[str] = ("png",),
        jobs: int = 1,
    ) -> list[Path]:
        """Draw figures, except those that are drawn already.

        Args:
            folder: where to; `figures` in the experiment's folder by default.
            names: which; by default the few that answer what the experiment asks.
            every: all figures that the results have data for.
            formats: of each figure: "png", "svg", "pdf".
            jobs: processes that draw, if there is much to draw.

        Returns:
            The paths of the files.

        Raises:
            RedtailError: there is no such figure or format.
            StoreError: the folder cannot be written.
        """
        from redtail.display import drawn

        for kind in formats:
            if kind not in drawn.FORMATS:
                raise RedtailError(f"formats: {kind}; accepted: {', '.join(drawn.FORMATS)}")
        into = figures_of(self.folder) if folder is None else path_of(folder)
        if names is None:
            choice = drawn.EVERY if every else drawn.ANSWERS
            kept = drawn.Record(into, self).kept(choice, formats)
            if kept is not None:
                return kept
        from redtail.display import plots  # loads Matplotlib

        return plots.draw(
            self, into, names=names, every=every, formats=formats, jobs=jobs, load=load
        )

    def table_text(
        self, form: Form = "csv", *, phases: bool = False, metrics: str | Sequence[str] = ()
    ) -> str:
        """Return the table that `redtail run` prints as text for other programs.

        Args:
            form: "csv" has SI units and all digits, and for each metric the columns mean, ci95
                (half-width of the 95 % interval) and n; "latex" (with booktabs) and "markdown" have
                the digits and units of the printed table.
            phases: below each case, a row for each of its phases.
            metrics: names, which may have wildcards; by default those of `report`, and without
                these what suits the traffic.

        Raises:
            SpecError: there is no such form or metric.
        """
        from redtail.display import texts

        chosen = selection.split(metrics)
        return texts.of_results(self, texts.form_of(form), phases=phases, metrics=chosen)

    def _repr_html_(self) -> str:
        """Return the table, for notebooks."""
        from redtail.display import tables

        return tables.as_html(tables.summary_tables(self, _NOTEBOOK))

    def write(self, store: ExperimentStore) -> list[Path]:
        """Write the experiment's own files; returns the paths of its data files."""
        tables = {
            "cases.parquet": parquet_bytes(self.to_arrow("cases")),
            "replications.parquet": parquet_bytes(self.to_arrow("replications")),
        }
        index = {
            "format": FORMAT,
            "experiment": self.name,
            "backend": self.backend,
            "made_by": self.made_by,
            "description": self.description,
            "provenance": self.provenance.as_json(),
            **({"report": {"metrics": self.report}} if self.report else {}),
            **({"metrics": [each.given for each in self.derived]} if self.derived else {}),
            "factors": self.factors,
            "cases": [
                {
                    "factors": case.factors,
                    "labels": case.labels,
                    "runs": {str(number): key for number, key in keys_of(case.runs).items()},
                    **({"settings": case.own} if case.own is not None else {}),
                    **({"sharing": dict(case.sharing)} if case.sharing else {}),
                    **({"loads": [load.as_json() for load in case.loads]} if case.loads else {}),
                }
                for case in self.cases
            ],
            "files": {name: checksums(data) for name, data in tables.items()},
        }
        with store.writing():
            written = [store.write(name, data) for name, data in tables.items()]
            if self.provenance.text is not None:
                store.write(self.provenance.name, self.provenance.text.encode())
            store.write("results.json", sealed(index, ensure_ascii=False))
        return written

    def _replications(self) -> pa.Table:
        import numpy as np
        import pyarrow as pa

        fields, columns = self.case_columns([len(case.runs) for case in self.cases])
        runs = [each for case in self.cases for each in sorted(keys_of(case.runs).items())]
        fields += [
            field("replication", pa.uint32()),
            field("run", pa.string(), description="folder of the run"),
        ]
        columns += [[number for number, _ in runs], [key for _, key in runs]]
        for name in self.metric_names:
            fields.append(metric_field(name))
            # As Arrow's at once: lists of numbers would be the most that a campaign has in memory.
            columns.append(
                numbers(np.concatenate([np.empty(0), *(case.column(name) for case in self.cases)]))
            )
        return table_of(columns, fields, self.provenance.metadata(FORMAT))

    def case_columns(self, repeats: Sequence[int]) -> tuple[list[pa.Field], list[Any]]:
        """Return the columns that identify a case, each case's row repeated as often as asked.

        A factor whose settings are quantities has its texts in one column, and in the next one
        their values in SI units: `bottleneck.queue.limit` and `bottleneck.queue.limit_s`. Where
        its settings differ in dimension (packets and ms) there are only the texts.
        """
        import pyarrow as pa

        fields = [field("case", pa.uint32())]
        columns: list[list[Any]] = [_repeated(range(len(repeats)), repeats)]
        for key in self.factors:
            settings = [case.factors.get(key) for case in self.cases]
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
                settings = [case.labels.get(key) for case in self.cases]
            fields.append(field(key, kind))
            columns.append(_repeated(settings, repeats))
            in_si = self._in_si(key)
            if in_si is not None:
                fields.append(
                    field(
                        quantities.column(key, in_si[1]),
                        pa.float64(),
                        unit=in_si[1],
                        description=f"{key} as a number",
                    )
                )
                columns.append(_repeated(in_si[0], repeats))
        return fields, columns

    def _in_si(self, key: str) -> tuple[list[float], str] | None:
        """Return the settings of a factor in SI, and the unit; None if they are no quantities."""
        return quantities.in_si([case.factors.get(key) for case in self.cases])

    def _link(self, link: str) -> str:
        if link not in self.links:
            raise RedtailError(f"{link!r} is not a queue; the queues are {', '.join(self.links)}")
        return link


def _repeated(values: Sequence[Any], repeats: Sequence[int]) -> list[Any]:
    """Return a list with each value as often as the number at its place says."""
    return [value for value, times in zip(values, repeats, strict=True) for _ in range(times)]


def load(folder: str | os.PathLike[str]) -> Results:
    """Read the results of an experiment back from its folder in the store.

    Args:
        folder: the experiment's folder, for instance `runs/quickstart`, or its URL.

    Raises:
        StoreError: there is none, or a run in it is missing or damaged.
    """
    path = path_of(folder)
    try:
        if is_url(folder):
            path = _fetched(str(folder))
        index = read_index(path)
        runs = _Stored(path, index)
        derived = derived_of(index.get("metrics", []))
        results = Results(
            name=index["experiment"],
            description=index["description"],
            factors=index["factors"],
            cases=tuple(
                CaseResult.of(
                    case["factors"],
                    case["labels"],
                    runs.of({int(number): key for number, key in case["runs"].items()}),
                    tuple(Calibrated.from_json(load) for load in case.get("loads", [])),
                    case.get("settings"),
                    case.get("sharing"),
                    derived,
                )
                for case in index["cases"]
            ),
            folder=path,
            backend=index.get("backend", "sim"),
            made_by=index.get("made_by", ""),
            provenance=Provenance.read(path, index.get("provenance")),
            report=index.get("report", {}).get("metrics", ()),
            derived=derived,
        )
        results._loaded = runs.table
        return results
    except FileNotFoundError:
        raise StoreError(
            f"{folder}: not the folder of a finished experiment (it has no results.json)"
        ) from None
    except (*MALFORMED, SpecError) as error:
        raise StoreError(f"{path}/results.json: cannot be read: {error}") from error


def _fetched(url: str) -> Path:
    """Fetch the results of an experiment from an object store; returns the folder of its copy.

    Raises:
        StoreError: it cannot be read.
        FileNotFoundError: there are no results.
    """
    root, _, folder = url.rstrip("/").rpartition("/")
    with ExperimentStore(root, *parts_of(folder)) as store:
        remote = store.remote
        if remote is None or "results.json" not in remote.objects.there:
            raise FileNotFoundError(url)
        remote.puts = False
        store.fetch_segments()
        remote.fetch(["cases.parquet", "replications.parquet", *EXPERIMENT_FILES, "results.json"])
        index = read_index(store.folder)
        for case in index["cases"]:
            for key in case["runs"].values():
                if key in remote.runs:
                    store.load(key)
        return store.folder


class _Stored:
    """The runs of results that are in the store.

    Those of a large experiment are taken from its table of replications, the others one by one.

    Args:
        folder: of the experiment.
        index: its results.json.
    """

    def __init__(self, folder: Path, index: Mapping[str, Any]) -> None:
        self.folder = folder
        self.table: pa.Table | None = None
        self.run_table: RunTable | None = None
        self.segments: RunTable | None = None
        count = sum(len(case["runs"]) for case in index["cases"])
        checksum = index.get("files", {}).get("replications.parquet", {}).get("sha256")
        if count >= LARGE and checksum is not None:
            self.table = self._read(checksum)
            self.run_table = run_table_of(folder, self.table)

    def of(self, keys: Mapping[int, str]) -> Mapping[int, StoredRun]:
        """Return the runs with these keys.

        Raises:
            StoreError: one is missing or damaged.
        """
        if self.run_table is not None:
            rows = {number: self.run_table.row_of[key] for number, key in keys.items()}
            return CaseRuns(self.run_table, rows)
        return {number: self._one(key) for number, key in keys.items()}

    def _read(self, checksum: str) -> pa.Table:
        path = self.folder / "replications.parquet"
        data = plain_bytes(path)
        if hashlib.sha256(data).hexdigest() != checksum:
            raise StoreError(
                f"{path}: is not the table that results.json belongs to; "
                "give the experiment's command again to write both anew"
            )
        return open_parquet(data).read(use_threads=False)

    def _one(self, key: str) -> StoredRun:
        if not (self.folder / key).is_dir():
            if self.segments is None:
                self.segments = in_segments(self.folder)
            if key in self.segments:
                return self.segments.run(self.segments.row_of[key])
        return read_run(self.folder / key)


def replaced(results: Results, code_version: str) -> int:
    """Return the number of runs in the stored results that `results` would replace.

    0 when `results` has all of their runs, or they are
    those of another version of the engine for the same cases.

    Args:
        results: the new results, not written yet.
        code_version: of the engine that made them.
    """
    try:
        index = read_index(results.folder)
        old = {
            (json.dumps(case["factors"], sort_keys=True), int(number)): key
            for case in index["cases"]
            for number, key in case["runs"].items()
        }
    except (FileNotFoundError, StoreError):
        return 0  # there are none, or none that can be read
    new = {
        (json.dumps(case.factors, sort_keys=True), number): key
        for case in results.cases
        for number, key in keys_of(case.runs).items()
    }
    lost = sorted(set(old.values()) - set(new.values()))
    if not lost:
        return 0
    if old.keys() <= new.keys():
        with contextlib.suppress(*MALFORMED):
            manifest = json.loads((results.folder / lost[0] / "manifest.json").read_bytes())
            if manifest["code_version"] != code_version:
                return 0
    return len(old)


def _labels(case: CaseResult) -> list[tuple[str, str]]:
    """Return the labels of a case, and its plain values, so that both can be asked for."""
    plain = [(key, str(value)) for key, value in case.factors.items()]
    return [*case.labels.items(), *plain]
