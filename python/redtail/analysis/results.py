"""Results of an experiment: estimates per case, tables, time series."""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from redtail import metrics as names
from redtail import selection
from redtail.analysis import (
    censoring,
    copies,
    distributions,
    export,
    failures,
    loads,
    lockstep,
    logs,
    paired,
    responses,
    stalls,
    tables,
)
from redtail.analysis import compare as comparing
from redtail.analysis import flows as flow_tables
from redtail.analysis.case import CaseResult
from redtail.analysis.compare import Comparisons
from redtail.analysis.failures import Failure
from redtail.analysis.paired import Correction
from redtail.analysis.parts import with_parts
from redtail.analysis.provenance import Provenance
from redtail.analysis.stats import Estimate
from redtail.derived import DerivedMetric
from redtail.errors import RedtailError, RedtailWarning, StoreError
from redtail.extras import extra
from redtail.files import path_of, plain_bytes
from redtail.scenario import series_key
from redtail.store.folders import read_series
from redtail.store.format import SEGMENTS, figures_of, inside
from redtail.store.programs import read as read_programs
from redtail.store.segments import CaseRuns, keys_of, run_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from redtail.display.style import Size
    from redtail.display.texts import Form
    from redtail.outcomes import Program

Rows = Literal["cases", "replications", "phases"]
"""The rows of a table: each case and metric, or each replication of each case."""

# Letters across a table in a notebook.
_NOTEBOOK = 140


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
        derived: the metrics that its programs measure, and those that follow by its formulas.
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
        return failures.summary(self.failures, self.run_count, self.folder)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to check before you trust these results.

        One line about flows that made no progress, one if replications are alike, and one about
        event logs that reached their limit.
        """
        modules = (stalls, copies, loads, lockstep, logs)
        return tuple(text for module in modules for text in module.warnings(self))

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
                no_interval, which says why there is no ci95; "phases" has a row per run and
                phase with its number, its begin and its end, and a column per metric of phases.

        Returns:
            The table. The metadata of its schema have the version of redtail, the seed and the
            number of the format, and those of each column its unit.
        """
        if rows == "replications":
            known = () if self._loaded is None else self._loaded.column_names
            # A table of an earlier version has no numbers beside the texts of quantities.
            complete = all(
                about.name in known for about in tables.case_columns(self, [0] * len(self.cases))[0]
            )
            return self._loaded if complete else tables.replications(self)
        if rows == "phases":
            return tables.phases(self)
        if rows != "cases":
            raise ValueError(f"rows = {rows!r}; accepted: 'cases', 'replications', 'phases'")
        return tables.estimates(self)

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
        return export.dataset(self)

    def consecutive_losses(self, link: str | None = None) -> pa.Table:
        """Return P(a loss event has more than n losses), with intervals, per case, queue and n.

        Args:
            link: the queue; by default all that lose packets, which the column `link` names.

        Raises:
            RedtailError: there is no such queue.
        """
        return tables.consecutive_losses(self, link)

    def programs(self, *, case: int = 0, replication: int = 0) -> list[Program]:
        """Return what the programs of one run left: how they ended, their outputs and files.

        Args:
            case: index into `cases`.
            replication: from 0.

        Raises:
            StoreError: there is no such run, or it is damaged.
        """
        run = self.cases[case].runs.get(replication)
        if run is None:
            raise StoreError(f"there is no replication {replication} of case {case}")
        return read_programs(run.folder)

    def series(
        self,
        table: Literal["queues", "flows", "controllers", "groups"] = "queues",
        *,
        case: int = 0,
        replication: int = 0,
    ) -> pa.Table:
        """Return a time series of one run.

        Args:
            table: "queues" (length, RED's average, drops, marks, delay), "flows" (windows,
                round-trip times, pacing rates), "controllers" (what controllers of your own
                report) or "groups" (goodput).
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

    def events(self, *, case: int = 0, replication: int = 0) -> pa.Table:
        """Return the event log of one run, a row for each event in the order of time.

        Its columns are `time_s`, `event`, `reason`, `link`, `group`, `flow`, `connection`, `back`,
        `packet`, `sequence`, `bytes`, `wait_s`, `average`, `probability`, `cwnd_bytes`,
        `ssthresh_bytes` and `value`; what an event does not say is null or NaN.

        Args:
            case: index into `cases`.
            replication: from 0.

        Raises:
            StoreError: the experiment did not record it.
        """
        run = self.cases[case].runs.get(replication)
        found = None if run is None else read_series(run.folder, "events")
        if found is None:
            raise StoreError(
                f"no events were recorded for replication {replication}; ask for them with "
                "[events] in the experiment, or with `redtail run --events`"
                if run is not None
                else f"there is no replication {replication}"
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
                `one_way_delay`, `pdv`, `round_trip`, `response_time`, `flow_goodput`, `flow_rtt` or
                `completion_time`, with the queue and the group in front as in the names of metrics.
                The name of a metric such as `calls.one_way_delay_p99` stands for its distribution.
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
        return tuple(responses.groups(self))

    def response_times(self) -> pa.Table:
        """Return the response times of all runs, counted in bins.

        A row for each case, replication, group, class of response sizes (`size_up_to_bytes`, inf
        for the largest) and bin of times (`time_up_to_s`) with a `count`. The bins are the same in
        every run, 50 to a factor of ten; those without a response are left out.

        Raises:
            StoreError: no run has any: they come from groups with users.
        """
        return responses.table(self)

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
        return responses.cdf(self, group, size_up_to, at)

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
        return paired.differences(self, metric, factor, baseline)

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
        return export.as_json(self)

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

        return plots.draw(self, into, names=names, every=every, formats=formats, jobs=jobs)

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
        from redtail.display import tables as printed

        return printed.as_html(printed.summary_tables(self, _NOTEBOOK))


def _labels(case: CaseResult) -> list[tuple[str, str]]:
    """Return the labels of a case, and its plain values, so that both can be asked for."""
    plain = [(key, str(value)) for key, value in case.factors.items()]
    return [*case.labels.items(), *plain]
