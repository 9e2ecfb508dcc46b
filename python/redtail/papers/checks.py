"""The tests that findings name, over a comparison of queues at several loads.

A test returns its evidence row by row: a number with its 95 % interval, the bounds it should
keep, and whether it does. Ratios and differences are taken replication by replication, since
cases that differ in the queue alone draw the same workload. Whether a row holds is decided on
the mean; it is clear when the whole interval is on that side.
"""

from __future__ import annotations

import inspect
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any, Literal, get_args

from redtail import metrics as names
from redtail.errors import RedtailError, SpecError
from redtail.metrics import Metric
from redtail.papers.formula import Formula
from redtail.results import CaseResult, Results
from redtail.stats import Estimate, estimate, shares_within
from redtail.store import read_series

_RATIO = Metric("", "", "1", "", 1.0, "")

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
_QUANTILES = {"least": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "most": 1.0}


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


@dataclass(frozen=True)
class Bounds:
    """Where a number should be; None is no bound.

    Attributes:
        at_least: least value.
        above: value it must exceed.
        at_most: greatest value.
    """

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        """Refuse bounds that bound nothing."""
        if self.at_least is None and self.above is None and self.at_most is None:
            raise SpecError("a bound is missing; accepted: at_least, above, at_most")

    def under(self, value: float) -> bool:
        """Whether `value` breaks the lower bound."""
        return (self.at_least is not None and value < self.at_least) or (
            self.above is not None and value <= self.above
        )

    def over(self, value: float) -> bool:
        """Whether `value` breaks the upper bound."""
        return self.at_most is not None and value > self.at_most

    def hold(self, value: float) -> bool:
        """Whether `value` keeps the bounds; NaN never does."""
        return not (math.isnan(value) or self.under(value) or self.over(value))

    def margin(self, value: float) -> float:
        """How far inside `value` is; negative outside."""
        below = [value - low for low in (self.at_least, self.above) if low is not None]
        return min([*below, *([] if self.at_most is None else [self.at_most - value])])

    def text(self, scale: float = 1.0) -> str:
        """Return the bounds in words, times `scale`.

        >>> Bounds(at_least=0.98, at_most=1.02).text()
        'at least 0.98, at most 1.02'
        """
        words = (("at least", self.at_least), ("above", self.above), ("at most", self.at_most))
        return ", ".join(
            f"{word} {value * scale:.4g}" for word, value in words if value is not None
        )


@dataclass(frozen=True)
class Evidence:
    """One number that speaks for or against a finding.

    Attributes:
        about: what it is of.
        value: the number with its interval, in SI units.
        bounds: where it should be.
        shown: how it is shown.
    """

    about: str
    value: Estimate
    bounds: Bounds
    shown: Metric = _RATIO

    @property
    def holds(self) -> bool:
        """Whether the mean keeps the bounds."""
        return self.bounds.hold(self.value.mean)

    @property
    def clear(self) -> bool:
        """Whether the whole interval is on the mean's side of the bounds."""
        if math.isnan(self.value.mean):
            return True  # nothing to measure: more replications would not tell either
        if self.value.ci95 is None:
            return False
        low, high = self.value.low, self.value.high
        if self.holds:
            return self.bounds.hold(low) and self.bounds.hold(high)
        return self.bounds.under(high) or self.bounds.over(low)


class Grid:
    """Results laid out by queue and load.

    Args:
        results: the results of a study.
        queue: the dotted key of the factor that is compared.
        load: the dotted key of the factor it is compared over: a number, or a quantity with a
            unit, of which the number counts.
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
        self._unit = ""
        for case in results.cases:
            if not all(_has(case, key, value) for key, value in (where or {}).items()):
                continue
            for key in (queue, load):
                if key not in case.factors:
                    factors = ", ".join(case.factors)
                    raise RedtailError(f"no factor {key!r}; accepted: {factors}")
            number, self._unit = quantity(load, case.factors[load])
            if self._cases.setdefault((case.labels[queue], number), case) is not case:
                raise RedtailError(
                    f"two cases have queue {case.labels[queue]!r} at load {number:g}: "
                    "where has to say which"
                )
        labels = dict.fromkeys(label for label, _ in self._cases)
        self.queues = tuple(label for label in labels if label not in variants)
        self.variants = tuple(label for label in labels if label in variants)
        self.loads = tuple(sorted({load for _, load in self._cases}))
        self._answered: dict[tuple[str, str, float], list[float]] = {}

    def case(self, queue: str, load: float) -> CaseResult:
        """Return one case.

        Raises:
            RedtailError: there is none.
        """
        try:
            return self._cases[queue, load]
        except KeyError:
            labels = ", ".join(dict.fromkeys(label for label, _ in self._cases))
            loads = ", ".join(f"{each:g}" for each in self.loads)
            raise RedtailError(
                f"no case has queue {queue!r} at load {load!r}; the queues are {labels}; "
                f"the loads are {loads}"
            ) from None

    def has(self, queue: str, load: float) -> bool:
        """Whether there is a case of this queue at this load."""
        return (queue, load) in self._cases

    def at(self, load: float) -> str:
        """Return a load in words: "16 flows", "start 2 s", "90 %" of a case of that name."""
        if self.load_key == names.CASE_NAME:
            return f"{load:g} {self._unit}".rstrip()
        name = self.load_key.rpartition(".")[2]
        return f"{name} {load:g} {self._unit}" if self._unit else f"{load:g} {name}"

    def describe(self, metric: str) -> Metric:
        """Return how a metric or measure is shown; its title says what it is of."""
        which, _, base = metric.rpartition(":")
        if which in _QUANTILES:
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
                        labels={key: case.labels[key] for key in keys},
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
        if metric.partition(":")[0] in _QUANTILES:
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
                return [_quotient(lost, lost + marked) for lost, marked in pairs]
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
        if which in _QUANTILES:
            share = _QUANTILES[which]
            return _resampled(
                lambda drawn: _quantile(drawn[0], share), [self.values(base, queue, load)]
            )
        return estimate(self.values(metric, queue, load))

    def _size(self, case: CaseResult, key: str) -> float:
        """Return a parameter of the case's queue that is a number of packets."""
        text = str(case.factors[self.queue_key].get(key, ""))
        match = re.fullmatch(r"\s*([0-9.]+)\s*(packets?|pkts?)\s*", text)
        if match is None:
            raise RedtailError(f"{case.title}: {key} = {text!r}: a number of packets is wanted")
        return float(match[1])


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
    )


def _has(case: CaseResult, key: str, value: object) -> bool:
    if key not in case.factors:
        raise RedtailError(f"no factor {key!r}; accepted: {', '.join(case.factors)}")
    return case.factors[key] == value or case.labels[key] == str(value)


_QUANTITY = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*(\D*?)\s*")


def quantity(key: str, value: object) -> tuple[float, str]:
    """Return the number and the unit of a factor's value.

    >>> quantity("traffic.web.load", "90 %"), quantity("traffic.ftp.flows", 16)
    ((90.0, '%'), (16.0, ''))
    """
    if isinstance(value, int | float):
        return float(value), ""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise RedtailError(f"{key} = {value!r}: a load is a number, with a unit or without")
    return float(match[1]), match[2]


Test = Callable[..., list[Evidence]]

Statistic = Literal["mean", "median", "each"]
"""What stands for a load: the mean or the median of its replications, or each of them."""

TESTS: dict[str, Test] = {}
"""The tests by name; the parameters after the grid are what a finding gives."""


def _test(function: Test) -> Test:
    TESTS[function.__name__] = function
    return function


def validate(name: str, parameters: Mapping[str, Any], where: str) -> None:
    """Refuse a test that does not exist, and parameters that it does not take.

    Raises:
        SpecError: with `where` in front.
    """
    test = TESTS.get(name)
    if test is None:
        raise SpecError(f"{where}: test = {name!r}; accepted: {', '.join(TESTS)}")
    accepted = dict(inspect.signature(test).parameters)
    del accepted["grid"]
    for key in parameters:
        if key not in accepted:
            raise SpecError(
                f"{where}: {key}: unknown key of {name}; accepted: {', '.join(accepted)}"
            )
    for key, about in accepted.items():
        if about.default is inspect.Parameter.empty and key not in parameters:
            raise SpecError(f"{where}: {name} needs {key}")
    if parameters.get("direction", "rises") not in ("rises", "falls"):
        raise SpecError(
            f"{where}: direction = {parameters['direction']!r}; accepted: 'rises', 'falls'"
        )
    if parameters.get("statistic", "mean") not in get_args(Statistic):
        raise SpecError(
            f"{where}: statistic = {parameters['statistic']!r}; "
            f"accepted: {', '.join(map(repr, get_args(Statistic)))}"
        )
    if {"at_least", "at_most"} & accepted.keys():
        try:
            Bounds(*(parameters.get(key) for key in ("at_least", "above", "at_most")))
        except SpecError as error:
            raise SpecError(f"{where}: {error}") from None


@_test
def level(
    grid: Grid,
    *,
    metric: str,
    queues: Sequence[str] = (),
    loads: Sequence[float] = (),
    at_least: float | None = None,
    at_most: float | None = None,
) -> list[Evidence]:
    """Each queue's `metric` is within the bounds at each load."""
    about, bounds = grid.describe(metric), Bounds(at_least, None, at_most)
    return [
        Evidence(
            f"{about.title}, {queue}, {grid.at(load)}",
            grid.estimate(metric, queue, load),
            bounds,
            about,
        )
        for queue, load in _cells(grid, queues, loads)
    ]


@_test
def spread(
    grid: Grid,
    *,
    metric: str,
    at_most: float,
    queues: Sequence[str] = (),
    loads: Sequence[float] = (),
) -> list[Evidence]:
    """The largest `metric` among the queues, over the smallest, at each load."""
    found = []
    for load in loads or grid.loads:
        order = _by_mean(grid, metric, queues or grid.queues, load)
        found.append(
            _ratio(grid, metric, (order[-1], load), (order[0], load), Bounds(at_most=at_most))
        )
    return found


@_test
def share_of_best(
    grid: Grid,
    *,
    metric: str,
    queues: Sequence[str],
    at_least: float,
    loads: Sequence[float] = (),
) -> list[Evidence]:
    """Each queue's `metric` over the largest of all queues, at each load."""
    return [
        _ratio(
            grid,
            metric,
            (queue, load),
            (_by_mean(grid, metric, grid.queues, load)[-1], load),
            Bounds(at_least=at_least),
        )
        for queue, load in _cells(grid, queues, loads)
    ]


@_test
def ratio(
    grid: Grid,
    *,
    metric: str,
    queues: Sequence[str],
    to: Sequence[str],
    loads: Sequence[float] = (),
    at_least: float | None = None,
    at_most: float | None = None,
) -> list[Evidence]:
    """Each queue's `metric` over that of each queue in `to`, at each load."""
    bounds = Bounds(at_least, None, at_most)
    return [
        _ratio(grid, metric, (queue, load), (other, load), bounds)
        for queue, load in _cells(grid, queues, loads)
        for other in to
    ]


@_test
def ratio_of_loads(
    grid: Grid,
    *,
    metric: str,
    load: float,
    to: float,
    queues: Sequence[str] = (),
    at_least: float | None = None,
    at_most: float | None = None,
) -> list[Evidence]:
    """Each queue's `metric` at one load over that at another."""
    bounds = Bounds(at_least, None, at_most)
    return [
        _ratio(grid, metric, (queue, load), (queue, to), bounds) for queue in queues or grid.queues
    ]


@_test
def difference(
    grid: Grid,
    *,
    metric: str,
    queues: Sequence[str],
    to: Sequence[str],
    loads: Sequence[float] = (),
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
) -> list[Evidence]:
    """Each queue's `metric` less that of each queue in `to`, at each load."""
    bounds = Bounds(at_least, above, at_most)
    return [
        _difference(grid, metric, (queue, load), (other, load), bounds)
        for queue, load in _cells(grid, queues, loads)
        for other in to
    ]


@_test
def monotone(
    grid: Grid,
    *,
    metric: str,
    direction: Literal["rises", "falls"],
    queues: Sequence[str] = (),
    loads: Sequence[float] = (),
) -> list[Evidence]:
    """Each queue's `metric` goes one way with the load.

    No step goes the other way, and from the first to the last load it does move.
    """
    along = loads or grid.loads
    found = []
    for queue in queues or grid.queues:
        steps = [(pair, Bounds(at_least=0.0)) for pair in pairwise(along)]
        for (first, last), bounds in [*steps, ((along[0], along[-1]), Bounds(above=0.0))]:
            ends = [(queue, last), (queue, first)]
            if direction == "falls":
                ends.reverse()
            found.append(_difference(grid, metric, ends[0], ends[1], bounds))
    return found


@_test
def convex(
    grid: Grid,
    *,
    metric: str,
    loads: Sequence[float],
    factor: float = 1.0,
    queues: Sequence[str] = (),
) -> list[Evidence]:
    """From the second to the third of three loads each queue's `metric` rises by more.

    The number is that step less `factor` times the step before it.
    """
    if len(loads) != 3:
        raise RedtailError(f"convex takes three loads, and {len(loads)} are given")
    words = " to ".join(f"{load:g}" for load in loads)
    found = []
    for queue in queues or grid.queues:
        steps = zip(*(grid.values(metric, queue, load) for load in loads), strict=True)
        value = estimate((c - b) - factor * (b - a) for a, b, c in steps)
        about = grid.describe(metric)
        title = f"{about.title}, {queue}, {words}: second step less {factor:g} times the first"
        found.append(Evidence(title, value, Bounds(at_least=0.0), about))
    return found


@_test
def load_dependence(
    grid: Grid,
    *,
    metric: str,
    queues: Sequence[str],
    to: Sequence[str],
    loads: Sequence[float] = (),
) -> list[Evidence]:
    """Over the loads, each queue's `metric` varies by a smaller factor than that of those in `to`.

    The factor is the largest mean over the smallest; the number is one factor over the other.
    """

    def factors(queue: str) -> tuple[list[float], str]:
        order = sorted(along, key=lambda load: grid.estimate(metric, queue, load).mean)
        high, low = (grid.values(metric, queue, load) for load in (order[-1], order[0]))
        values = [_quotient(a, b) for a, b in zip(high, low, strict=True)]
        return values, f"{queue} ×{estimate(values).mean:.3g}"

    along = loads or grid.loads
    found = []
    for queue in queues:
        for other in to:
            (mine, said), (theirs, also) = factors(queue), factors(other)
            value = estimate(_quotient(a, b) for a, b in zip(mine, theirs, strict=True))
            title = grid.describe(metric).title
            about = f"{title}, largest over smallest of all loads, {said} / {also}"
            found.append(Evidence(about, value, Bounds(at_most=1.0)))
    return found


@_test
def ratio_of_metrics(
    grid: Grid,
    *,
    metric: str,
    to_metric: str,
    queues: Sequence[str],
    to: Sequence[str] = (),
    loads: Sequence[float] = (),
    at_least: float | None = None,
    at_most: float | None = None,
) -> list[Evidence]:
    """Each queue's `metric` over `to_metric` of each queue in `to`, or its own, at each load."""
    bounds, found = Bounds(at_least, None, at_most), []
    over, under = grid.describe(metric).title, grid.describe(to_metric).title
    for queue, load in _cells(grid, queues, loads):
        for other in to or (queue,):
            pairs = zip(
                grid.values(metric, queue, load), grid.values(to_metric, other, load), strict=True
            )
            value = estimate(_quotient(a, b) for a, b in pairs)
            about = f"{over}, {queue} / {under}, {other}, {grid.at(load)}"
            found.append(Evidence(about, value, bounds))
    return found


@_test
def constant(
    grid: Grid,
    *,
    metric: str,
    queues: Sequence[str] = (),
    loads: Sequence[float] = (),
    at_least: float | None = None,
    at_most: float | None = None,
) -> list[Evidence]:
    """Each queue's `metric` at each load over its mean over these loads."""
    bounds, found = Bounds(at_least, None, at_most), []
    along = loads or grid.loads
    for queue in queues or grid.queues:
        rows = list(zip(*(grid.values(metric, queue, load) for load in along), strict=True))
        for index, load in enumerate(along):
            value = estimate(_quotient(row[index], statistics.fmean(row)) for row in rows)
            about = f"{grid.describe(metric).title}, {queue}, {grid.at(load)} / mean of all loads"
            found.append(Evidence(about, value, bounds))
    return found


@_test
def span(
    grid: Grid,
    *,
    metric: str,
    at_most: float,
    queues: Sequence[str] = (),
    loads: Sequence[float] = (),
) -> list[Evidence]:
    """The largest `metric` among the queues, less the smallest, at each load."""
    found = []
    for load in loads or grid.loads:
        order = _by_mean(grid, metric, queues or grid.queues, load)
        ends = (order[-1], load), (order[0], load)
        found.append(_difference(grid, metric, *ends, Bounds(at_most=at_most)))
    return found


@_test
def difference_monotone(
    grid: Grid,
    *,
    metric: str,
    direction: Literal["rises", "falls"],
    queues: Sequence[str],
    to: Sequence[str],
    loads: Sequence[float] = (),
) -> list[Evidence]:
    """Each queue's `metric` less that of each queue in `to` goes one way with the load.

    Each number is a step of that difference from one load to the next, in this direction; none is
    below 0, and from the first to the last load it does move.
    """
    along = loads or grid.loads
    sign = 1.0 if direction == "rises" else -1.0
    about = grid.describe(metric)
    found = []
    for queue in queues:
        for other in to:
            gains = {
                load: [
                    sign * (a - b)
                    for a, b in zip(
                        grid.values(metric, queue, load),
                        grid.values(metric, other, load),
                        strict=True,
                    )
                ]
                for load in along
            }
            steps = [(pair, Bounds(at_least=0.0)) for pair in pairwise(along)]
            for (first, last), bounds in [*steps, ((along[0], along[-1]), Bounds(above=0.0))]:
                value = estimate(b - a for a, b in zip(gains[first], gains[last], strict=True))
                change = f"{direction} from {grid.at(first)} to {grid.at(last)} by"
                title = f"{about.title}, {queue} − {other}: {change}"
                found.append(Evidence(title, value, bounds, about))
    return found


@_test
def closer(
    grid: Grid, *, metric: str, queues: Sequence[str], load: float, to: float
) -> list[Evidence]:
    """Two queues are nearer to each other in `metric` at one load than at another.

    The number is the distance of their means at `to` less that at `load`.
    """
    if len(queues) != 2:
        raise RedtailError(f"closer takes two queues, and {len(queues)} are given")

    def apart(at: float) -> list[float]:
        pairs = zip(*(grid.values(metric, queue, at) for queue in queues), strict=True)
        steps = [a - b for a, b in pairs]
        # The sign is that of the mean, so that noise alone makes no distance in each replication.
        return steps if estimate(steps).mean >= 0 else [-step for step in steps]

    value = estimate(a - b for a, b in zip(apart(to), apart(load), strict=True))
    about = grid.describe(metric)
    words = f"{queues[0]} and {queues[1]}: apart, {grid.at(to)} − {grid.at(load)}"
    return [Evidence(f"{about.title}, {words}", value, Bounds(above=0.0), about)]


def _cells(
    grid: Grid, queues: Sequence[str], loads: Sequence[float]
) -> Iterator[tuple[str, float]]:
    for queue in queues or grid.queues:
        for load in loads or grid.loads:
            yield queue, load


def _by_mean(grid: Grid, metric: str, queues: Sequence[str], load: float) -> list[str]:
    return sorted(queues, key=lambda queue: grid.estimate(metric, queue, load).mean)


def _ratio(
    grid: Grid, metric: str, first: tuple[str, float], second: tuple[str, float], bounds: Bounds
) -> Evidence:
    pairs = zip(grid.values(metric, *first), grid.values(metric, *second), strict=True)
    value = estimate(_quotient(a, b) for a, b in pairs)
    return Evidence(_pair(grid, metric, first, second, "/"), value, bounds)


def _difference(
    grid: Grid, metric: str, first: tuple[str, float], second: tuple[str, float], bounds: Bounds
) -> Evidence:
    pairs = zip(grid.values(metric, *first), grid.values(metric, *second), strict=True)
    value = estimate(a - b for a, b in pairs)
    return Evidence(_pair(grid, metric, first, second, "−"), value, bounds, grid.describe(metric))


def _pair(
    grid: Grid, metric: str, first: tuple[str, float], second: tuple[str, float], sign: str
) -> str:
    title = grid.describe(metric).title
    if first[1] == second[1]:
        return f"{title}, {first[0]} {sign} {second[0]}, {grid.at(first[1])}"
    return f"{title}, {first[0]}, {grid.at(first[1])} {sign} {grid.at(second[1])}"


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


def _quotient(a: float, b: float) -> float:
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
    return _quotient(float(sum(counts[size - 1 :])), float(sum(counts)))


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


# --- Over all loads together -----------------------------------------------------------------

_RESAMPLES = 1000


@_test
def range_over_loads(
    grid: Grid,
    *,
    metric: str,
    queues: Sequence[str] = (),
    to: Sequence[str] = (),
    loads: Sequence[float] = (),
    statistic: Statistic = "mean",
    relative: bool = False,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
) -> list[Evidence]:
    """The largest less the smallest of all loads, of each queue's `metric`.

    What is compared is the mean or the median over the replications of a load; "each" takes every
    replication of every load by itself. With `relative` the range is divided by the largest; with
    `to` it is divided by that of each queue there.
    """
    along, bounds = tuple(loads or grid.loads), Bounds(at_least, above, at_most)
    of = "replications" if statistic == "each" else f"{statistic}s"
    title = f"{grid.describe(metric).title}, range of the {of} over {grid.along(along)}"
    title += " over the largest" if relative else ""

    def extent(cells: Sequence[Sequence[float]]) -> float:
        points = _summaries(cells, statistic)
        if not points:
            return math.nan
        width = max(points) - min(points)
        return _quotient(width, max(points)) if relative else width

    return _over_loads(grid, metric, queues, to, along, title, extent, bounds, relative)


@_test
def mean_over_loads(
    grid: Grid,
    *,
    metric: str,
    queues: Sequence[str] = (),
    to: Sequence[str] = (),
    loads: Sequence[float] = (),
    statistic: Statistic = "mean",
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
) -> list[Evidence]:
    """The mean over the loads of each queue's `metric`, with `to` over that of each queue there.

    A load counts with the mean or the median over its replications.
    """
    along, bounds = tuple(loads or grid.loads), Bounds(at_least, above, at_most)
    of = "" if statistic == "mean" else " of the medians" if statistic == "median" else " of all"
    title = f"{grid.describe(metric).title}, {grid.along(along)}"
    title += f", mean{of}" if len(along) > 1 else ""

    def centre(cells: Sequence[Sequence[float]]) -> float:
        points = _summaries(cells, statistic)
        return math.fsum(points) / len(points) if points else math.nan

    return _over_loads(grid, metric, queues, to, along, title, centre, bounds, False)


@_test
def where_largest(
    grid: Grid,
    *,
    metric: str,
    of: str,
    queues: Sequence[str] = (),
    loads: Sequence[float] = (),
    at_least: float | None = None,
    at_most: float | None = None,
) -> list[Evidence]:
    """Each queue's `metric` at that load at which the mean of `of` is largest."""
    about, bounds = grid.describe(metric), Bounds(at_least, None, at_most)
    found = []
    for queue in queues or grid.queues:
        means = {load: grid.estimate(of, queue, load).mean for load in loads or grid.loads}
        at = max(means, key=lambda load: -math.inf if math.isnan(means[load]) else means[load])
        title = f"{about.title}, {queue}, {grid.at(at)}, where {grid.describe(of).title} is largest"
        found.append(Evidence(title, grid.estimate(metric, queue, at), bounds, about))
    return found


def _over_loads(
    grid: Grid,
    metric: str,
    queues: Sequence[str],
    to: Sequence[str],
    loads: Sequence[float],
    title: str,
    number: Callable[[Sequence[Sequence[float]]], float],
    bounds: Bounds,
    is_ratio: bool,
) -> list[Evidence]:
    """Return one number over all loads for each queue, or for each pair of queues their ratio."""

    def cells(queue: str) -> list[list[float]]:
        return [grid.values(metric, queue, load) for load in loads]

    found = []
    for queue in queues or grid.queues:
        if not to:
            value = _resampled(number, cells(queue))
            shown = _RATIO if is_ratio else grid.describe(metric)
            found.append(Evidence(f"{title}, {queue}", value, bounds, shown))
        for other in to:
            both = [*cells(queue), *cells(other)]
            value = _resampled(
                lambda drawn: _quotient(number(drawn[: len(loads)]), number(drawn[len(loads) :])),
                both,
            )
            found.append(Evidence(f"{title}, {queue} / {other}", value, bounds))
    return found


def _quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of the values that are there; NaN when none is."""
    import numpy as np

    used = [value for value in values if not math.isnan(value)]
    return float(np.quantile(used, share)) if used else math.nan


def _summaries(cells: Sequence[Sequence[float]], statistic: Statistic) -> list[float]:
    """Return one number for each cell that has any, or all numbers of all cells."""
    defined = [[value for value in cell if not math.isnan(value)] for cell in cells]
    match statistic:
        case "mean":
            return [math.fsum(cell) / len(cell) for cell in defined if cell]
        case "median":
            return [statistics.median(cell) for cell in defined if cell]
        case "each":
            return [value for cell in defined for value in cell]


def _resampled(
    number: Callable[[Sequence[Sequence[float]]], float], cells: Sequence[Sequence[float]]
) -> Estimate:
    """Return a number that follows from all replications of some cells, with its interval.

    The interval is the bootstrap's (percentiles, Efron 1979), given by its longer side:
    replications are drawn with replacement, the same in every cell, since they share their seeds.
    Of a largest or smallest single value it can only say how much that hangs on few replications.
    """
    value = number(cells)
    count = min(len(cell) for cell in cells)
    if count < 2 or math.isnan(value):
        return Estimate(value, None, count)
    rng = Random(count)
    drawn = []
    for _ in range(_RESAMPLES):
        picks = [rng.random() for _ in range(max(len(cell) for cell in cells))]
        again = number([[cell[int(u * len(cell))] for u in picks[: len(cell)]] for cell in cells])
        if not math.isnan(again):
            drawn.append(again)
    drawn.sort()
    low, high = (drawn[round(share * (len(drawn) - 1))] for share in (0.025, 0.975))
    return Estimate(value, max(value - low, high - value, 0.0), count)
