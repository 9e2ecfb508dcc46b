"""Results laid out by queue and load, with the measures that follow from a run's metrics."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from redtail import metrics as names
from redtail import quantities
from redtail.analysis import copies
from redtail.analysis.case import CaseResult
from redtail.analysis.rare import why_no_interval
from redtail.analysis.results import Results
from redtail.analysis.stats import Estimate, bootstrap, estimate, quantile, shares_within
from redtail.cases import Case
from redtail.errors import RedtailError, SpecError
from redtail.formula import Formula
from redtail.metrics import Metric
from redtail.store.folders import read_series

# Measures that follow from a run's metrics and its queue's parameters.
_DERIVED: dict[str, Metric] = {
    "threshold_position": Metric(
        "Mean queue, 0 at min_th and 1 at max_th", "position", "1", "", 1.0, ""
    ),
    "filling": Metric("Mean queue length as a share of the limit", "filling", "1", "", 100.0, "%"),
    "longest_loss_event": Metric(
        "Packets in the longest loss event", "longest", "packets", "_packets", 1.0, "packets"
    ),
    "dropped_share": Metric("Drops among drops and marks", "dropped share", "1", "", 100.0, "%"),
    "completion_time_std": Metric(
        "Standard deviation of completion times", "completion sd", "s", "_s", 1.0, "s"
    ),
}
_TAIL = re.compile(r"loss_events_of_(\d+)_or_more")
_WITHIN = re.compile(r"responses_within_(\d+)ms")

# In front of a metric: a quantile of its replications in place of their mean.
QUANTILES = {"least": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "most": 1.0}
_EXTREMES = ("least", "most")


def derived(metric: str) -> bool:
    """Whether a number follows from metrics or loss events rather than being a metric."""
    base = metric.rpartition(".")[2]
    return base in _DERIVED or bool(_TAIL.fullmatch(base) or _WITHIN.fullmatch(base))


def describe(metric: str) -> Metric:
    """Return how a metric or a derived measure is shown.

    >>> describe("loss_events_of_4_or_more").title
    'Loss events of 4 packets or more'
    """
    base = metric.rpartition(".")[2]
    tail = _TAIL.fullmatch(base)
    if tail:
        return Metric(f"Loss events of {tail[1]} packets or more", "tail", "1", "", 100.0, "%")
    within = _WITHIN.fullmatch(base)
    if within:
        short = f"within {within[1]} ms"
        return Metric(f"Requests answered {short}", short, "1", "", 100.0, "%")
    return _DERIVED.get(base) or names.describe(metric)


Cell = tuple[str, str, float]
"""A metric or measure, a queue, and a load in SI units."""


class Loads:
    """The loads of a comparison: their values in SI units, and what findings may call them.

    Args:
        key: the dotted key of the factor.
        values: its values, as the experiment files write them.

    Raises:
        RedtailError: a value has no number, or two values differ in dimension and so have no
            order.
    """

    def __init__(self, key: str, values: Iterable[object]) -> None:
        self.key = key
        written: dict[float, dict[tuple[float, str], None]] = {}
        first: dict[str, object] = {}
        for value in values:
            number, dimension = in_si(key, value)
            first.setdefault(dimension, value)
            written.setdefault(number, {})[quantity(key, value)] = None
        if len(first) > 1:
            a, b = list(first.values())[:2]
            raise RedtailError(
                f"{key}: {a!r} and {b!r} are loads of one comparison; accepted: loads of one "
                "dimension, such as times only"
            )
        self._dimension = next(iter(first), "1")
        self._written = dict(sorted(written.items()))

    def __iter__(self) -> Iterator[float]:
        """Iterate over the loads in SI units, the smallest first."""
        return iter(self._written)

    def text(self, load: float) -> str:
        """Return a load as a file writes it: "640 ms", "90 %", "16"."""
        return _text(*next(iter(self._written[load])))

    def number(self, load: float, of: float | None = None) -> float:
        """Return a load in the unit in which a file writes it, or writes the load `of`.

        So is it on the axis of a figure whose first load is `of`.
        """
        number, unit = next(iter(self._written[load]))
        on_axis = unit if of is None else next(iter(self._written[of]))[1]
        if unit == on_axis:
            return number
        one = in_si(self.key, f"1 {on_axis}".rstrip())[0]
        return float(f"{load / one:.12g}")

    def find(self, name: float | str) -> float:
        """Return the load that a name stands for, in SI units.

        A name is a quantity ("640 ms"; "0.64 s" is the same), or a number: a load that a file
        writes with this number, in whatever unit, or that has it in SI units.

        Raises:
            RedtailError: no load or more than one has this name.
        """
        found: set[float] = set()
        try:
            number, unit = quantity(self.key, name)
        except RedtailError:
            pass
        else:
            if unit:
                value, dimension = in_si(self.key, name)
                found = {value} & self._written.keys() if dimension == self._dimension else set()
            else:
                found = {number} & self._written.keys()
                found |= {
                    load
                    for load, written in self._written.items()
                    if any(number == each for each, _ in written)
                }
        if len(found) == 1:
            return found.pop()
        if found:
            texts = " or ".join(repr(self.text(load)) for load in sorted(found))
            raise RedtailError(f"{name!r} may be {texts}; accepted: a load with its unit")
        listed = ", ".join(map(self.text, self))
        raise RedtailError(f"{name!r}; accepted: {listed}")


class Grid:
    """Results laid out by queue and load.

    Args:
        results: the results of a comparison.
        queue: the dotted key of the factor that is compared.
        load: the dotted key of the factor it is compared over: numbers, or quantities of one
            dimension. A load is its value in SI units.
        variants: labels of queues that a test takes only when it names them.
        where: the label or value of further factors that cases have to have.
        measures: formulas over metrics, and how they are shown, by name.
    """

    def __init__(
        self,
        results: Results,
        *,
        queue: str,
        load: str,
        variants: Sequence[str] = (),
        where: Mapping[str, Any] | None = None,
        measures: Mapping[str, tuple[Formula, Metric]] | None = None,
    ) -> None:
        self.queue_key = queue
        self.load_key = load
        self.results = results
        self._measures = measures or {}
        self._cases: dict[tuple[str, float], CaseResult] = {}
        kept = [case for case in results.cases if is_like(case, where or {})]
        for case in kept:
            for key in (queue, load):
                if key not in case.factors:
                    factors = ", ".join(case.factors)
                    raise RedtailError(f"no factor {key!r}; accepted: {factors}")
        self.named = Loads(load, (case.factors[load] for case in kept))
        self._spelled: dict[str, str] = {}
        spelled: dict[object, str] = {}
        for case in kept:
            label, value = case.labels[queue], case.factors[queue]
            same = _value(value) if isinstance(value, str | int | float) else label
            self._spelled[label] = label = spelled.setdefault(same, label)
            at, _ = in_si(load, case.factors[load])
            if self._cases.setdefault((label, at), case) is not case:
                raise RedtailError(
                    f"two cases have queue {label!r} at load {self.named.text(at)}: "
                    "where has to say which"
                )
        labels = dict.fromkeys(label for label, _ in self._cases)
        self.queues = tuple(label for label in labels if label not in variants)
        self.variants = tuple(label for label in labels if label in variants)
        self.loads = tuple(self.named)
        self._answered: dict[tuple[str, str, float], list[float]] = {}

    def queue(self, name: str) -> str:
        """Return the label of the queue that is called so, whichever spelling of a quantity it is.

        A file may write "1 Gbit/s", and another one "1000 Mbit/s".
        """
        return self._spelled.get(name, name)

    def case(self, queue: str, load: float) -> CaseResult:
        """Return one case.

        Raises:
            RedtailError: there is none.
        """
        try:
            return self._cases[queue, load]
        except KeyError:
            labels = ", ".join(dict.fromkeys(label for label, _ in self._cases))
            loads = ", ".join(map(self.named.text, self.loads))
            at = self.named.text(load) if load in self.loads else f"{load!r}"
            raise RedtailError(
                f"no case has queue {queue!r} at load {at}; the queues are {labels}; "
                f"the loads are {loads}"
            ) from None

    def has(self, queue: str, load: float) -> bool:
        """Whether there is a case of this queue at this load."""
        return (queue, load) in self._cases

    def at(self, load: float) -> str:
        """Return a load in words: "16 flows", "start 2 s", "90 %" of a case of that name."""
        text = self.named.text(load)
        if self.load_key == names.CASE_NAME:
            return text
        name = self.load_key.rpartition(".")[2]
        return f"{name} {text}" if " " in text else f"{text} {name}"

    def describe(self, metric: str) -> Metric:
        """Return how a metric or measure is shown; its title says what it is of."""
        which, _, base = metric.rpartition(":")
        if which in QUANTILES:
            about = self.describe(base)
            return replace(about, title=f"{about.title}, {which}", short=f"{about.short}, {which}")
        if metric in self._measures:
            return self._measures[metric][1]
        about, of = describe(metric), names.prefix(metric)
        return replace(about, title=f"{of}: {about.title}") if of else about

    def subset(
        self, metrics: Sequence[str], queues: Sequence[str] = (), loads: Sequence[float] = ()
    ) -> Results:
        """Return results of two factors alone, with measures among the metrics of runs.

        Args:
            metrics: metrics and measures that are wanted.
            queues: the queues, in this order; none stands for all but variants.
            loads: the loads; none stands for all.

        Returns:
            What figures are drawn from. The label of a case is its queue's, whatever further
            factors it has, and the load alone can be an axis; a single load is left out.
        """
        cases = []
        chosen = queues or self.queues
        along = [
            load for load in loads or self.loads if any(self.has(queue, load) for queue in chosen)
        ]
        keys = (self.queue_key,) if len(along) == 1 else (self.load_key, self.queue_key)
        for queue in chosen:
            for load in along:
                if not self.has(queue, load):
                    continue
                case = self.case(queue, load)
                factors = {key: case.factors[key] for key in keys}
                if not isinstance(factors[self.queue_key], dict):
                    factors[self.queue_key] = case.labels[self.queue_key]
                runs = dict(sorted(case.runs.items()))
                own = [name for name in metrics if name not in case.metrics]
                if own:
                    columns = {name: self.values(name, queue, load) for name in own}
                    for index, (number, run) in enumerate(list(runs.items())):
                        extra = {name: column[index] for name, column in columns.items()}
                        runs[number] = replace(run, metrics={**run.metrics, **extra})
                cases.append(
                    replace(
                        case,
                        factors=factors,
                        labels={
                            key: queue if key == self.queue_key else case.labels[key]
                            for key in keys
                        },
                        runs=runs,
                    )
                )
        return replace_cases(self.results, keys, tuple(cases))

    def along(self, loads: Sequence[float]) -> str:
        """Return several loads in words: "5 loads from 16 flows to 256 flows"."""
        if len(loads) == 1:
            return self.at(loads[0])
        return f"{len(loads)} loads from {self.at(min(loads))} to {self.at(max(loads))}"

    def values(self, metric: str, queue: str, load: float) -> list[float]:
        """Return a metric or measure replication by replication, NaN where undefined.

        Raises:
            RedtailError: it is a quantile, which no single replication has.
        """
        if metric.partition(":")[0] in QUANTILES:
            raise RedtailError(f"{metric!r} is of all replications; this test takes each")
        if metric in self._measures:
            formula = self._measures[metric][0]
            columns = [self.values(name, queue, load) for name in formula.names]
            return [
                formula(dict(zip(formula.names, row, strict=True)))
                for row in (zip(*columns, strict=True) if columns else ())
            ]
        case = self.case(queue, load)
        group, _, base = metric.rpartition(".")
        tail = _TAIL.fullmatch(base)
        if tail:
            return [_tail(counts, int(tail[1])) for counts in _losses(case)]
        within = _WITHIN.fullmatch(base)
        if within:
            if (metric, queue, load) not in self._answered:  # it takes reading files
                found = _answered(case, group, int(within[1]) / 1000)
                self._answered[metric, queue, load] = found
            return self._answered[metric, queue, load]
        match base:
            case "longest_loss_event":
                return [float(len(counts)) if any(counts) else math.nan for counts in _losses(case)]
            case "threshold_position":
                low, high = self._size(case, "min_th"), self._size(case, "max_th")
                return [(each - low) / (high - low) for each in case.values("queue_length_mean")]
            case "filling":
                limit = self._size(case, "limit")
                return [each / limit for each in case.values("queue_length_mean")]
            case "dropped_share":
                of = f"{group}." if group else ""
                pairs = zip(case.values(f"{of}loss"), case.values(f"{of}mark"), strict=True)
                return [quotient(lost, lost + marked) for lost, marked in pairs]
            case "completion_time_std":
                return [_deviation(times) for times in _completion_times(case, group)]
            case _:
                return case.values(metric)

    def estimate(self, metric: str, queue: str, load: float) -> Estimate:
        """Return the estimate of a metric or measure; "median:METRIC" is its median.

        So are "least:", "q25:", "q75:" and "most:", of the replications that have it; a quantile
        between two of them is interpolated.
        """
        which, _, base = metric.rpartition(":")
        if which not in QUANTILES:
            return self.combined(lambda row: row[0], (metric, queue, load))
        share = QUANTILES[which]
        found = bootstrap(lambda drawn: quantile(drawn[0], share), [self.values(base, queue, load)])
        if which in _EXTREMES:
            found = extreme(found)
        return self.observed(found, (base, queue, load))

    def combined(self, number: Callable[[Sequence[float]], float], *cells: Cell) -> Estimate:
        """Estimate a number that is computed replication by replication.

        Args:
            number: takes the values of one replication, one for each cell.
            cells: of what.
        """
        rows = zip(*(self.values(*cell) for cell in cells), strict=True)
        return self.observed(estimate(map(number, rows)), *cells)

    def observed(self, found: Estimate, *cells: Cell) -> Estimate:
        """Return an estimate as one observation if a cell's replications are copies.

        Nor has it an interval where the metric of a cell depends on rare events, or is an extreme
        of each run (`analysis.rare`).
        """
        if math.isnan(found.mean):
            return found
        for metric, queue, load in cells:
            case = self.case(queue, load)
            if case.copies:
                return Estimate(found.mean, None, 1, copies.reason(case.copies))
            why = why_no_interval(metric, case.sharing, found.n, case.values)
            if why is not None:
                return Estimate(found.mean, None, found.n, why)
        return found

    def _size(self, case: CaseResult, key: str) -> float:
        """Return a parameter of the case's queue that is a number of packets."""
        text = str(case.factors[self.queue_key].get(key, ""))
        try:
            size, unit = quantities.parse(text)
        except SpecError:
            unit = ""
        if unit != "packets":
            raise RedtailError(f"{case.title}: {key} = {text!r}: a number of packets is wanted")
        return size


def replace_cases(
    results: Results, factors: tuple[str, ...], cases: tuple[CaseResult, ...]
) -> Results:
    """Return results with other cases and factors."""
    return Results(
        name=results.name,
        description=results.description,
        factors=factors,
        cases=cases,
        folder=results.folder,
        reused=results.reused,
        backend=results.backend,
        made_by=results.made_by,
        report=results.report,
    )


def is_like(case: CaseResult | Case, where: Mapping[str, Any]) -> bool:
    """Return whether a case has these values, or labels, of these factors.

    Equal quantities are the same value, however they are written.

    Raises:
        RedtailError: it has no such factor.
    """
    for key in where:
        if key not in case.factors:
            raise RedtailError(f"no factor {key!r}; accepted: {', '.join(case.factors)}")
    return all(
        case.factors[key] == value
        or case.labels[key] == str(value)
        or _value(case.factors[key]) == _value(value)
        for key, value in where.items()
    )


_NUMBER = re.compile(r"\s*([-+]?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?)\s*(\D*?)\s*")


def quantity(key: str, value: object) -> tuple[float, str]:
    """Return the number and the unit of a load as they are written.

    Args:
        key: of the factor, for the message.
        value: a number, or a text that begins with one.

    Raises:
        RedtailError: it is neither.

    >>> quantity("traffic.web.load", "90 %"), quantity("traffic.ftp.flows", 16)
    ((90.0, '%'), (16.0, ''))
    """
    if isinstance(value, int | float):
        return float(value), ""
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    try:
        if match is not None:
            return float(match[1].replace("_", "")), match[2]
    except ValueError:
        pass
    raise RedtailError(f"{key} = {value!r}: a load is a number, with a unit or without")


def in_si(key: str, value: object) -> tuple[float, str]:
    """Return a load in the SI unit of its dimension, and this unit; "1" of a share or a number.

    The name of a case may count what is no quantity, as in "16 hosts"; this is a dimension of its
    own. Arguments and errors are those of `quantity`.

    >>> in_si("limit", "20 ms"), in_si("limit", "1.28 s"), in_si("load", "90 %"), in_si("load", 0.9)
    ((0.02, 's'), (1.28, 's'), (0.9, '1'), (0.9, '1'))
    """
    number, unit = quantity(key, value)
    if unit and isinstance(value, str):
        try:
            return quantities.parse(value)
        except SpecError:
            return number, unit
    return number, "1"


def _value(value: object) -> object:
    """Return a quantity or a number as a pair that equal ones have in common; others as they are.

    >>> _value("1 Gbit/s") == _value("1000 Mbit/s"), _value("90 %") == _value(0.9), _value("RED")
    (True, True, 'RED')
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), "1"
    try:
        return quantities.parse(value) if isinstance(value, str) else value
    except SpecError:
        return value


def _text(number: float, unit: str) -> str:
    return f"{number:g} {unit}".rstrip()


def _answered(case: CaseResult, group: str, time: float) -> list[float]:
    """Return the share of a group's requests that were answered within a time.

    What was unanswered when the run ended counts as not answered, even if it was asked for less
    than `time` before.
    """
    found = []
    left = case.values(f"{group}.unanswered")
    for (number, run), unanswered in zip(sorted(case.runs.items()), left, strict=True):
        bins = replace(case, runs={number: run}).response_bins(group, None)
        within = shares_within(*bins[0], [time])[0] if bins else 0.0
        found.append(within * (1 - unanswered))
    return found


def extreme(found: Estimate) -> Estimate:
    """Return an estimate of the largest or smallest of all replications, which has no interval.

    More replications can only move it outwards.
    """
    return Estimate(found.mean, None, found.n, "an extreme of replications has no interval")


def quotient(a: float, b: float) -> float:
    """Return a / b; NaN for b = 0."""
    return a / b if b else math.nan


def _losses(case: CaseResult) -> list[list[int]]:
    """Return the loss events of the first queue, by size, replication by replication."""
    found = []
    for _, run in sorted(case.runs.items()):
        link = next(iter(run.consecutive_losses), None)
        found.append([] if link is None else run.consecutive_losses[link])
    return found


def _tail(counts: Sequence[int], size: int) -> float:
    """Return the share of loss events with `size` losses or more."""
    return quotient(float(sum(counts[size - 1 :])), float(sum(counts)))


def _completion_times(case: CaseResult, group: str) -> Iterator[list[float]]:
    """Yield the completion times of a group's transfers, replication by replication.

    Those that were not done by the end have none. Transfers of the warm-up are among them.
    """
    for _, run in sorted(case.runs.items()):
        table = read_series(run.folder, "transfers")
        rows = [] if table is None else table.select(["group", "completion_time_s"]).to_pylist()
        times = [row["completion_time_s"] for row in rows if row["group"] == group]
        yield [time for time in times if not math.isnan(time)]


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else math.nan
