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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from redtail import metrics as names
from redtail.errors import RedtailError, SpecError
from redtail.metrics import Metric
from redtail.papers.formula import Formula
from redtail.results import CaseResult, Results
from redtail.stats import Estimate, estimate

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
}
_TAIL = re.compile(r"loss_events_of_(\d+)_or_more")


def describe(metric: str) -> Metric:
    """Return how a metric or a derived measure is shown.

    >>> describe("loss_events_of_4_or_more").title
    'Loss events of 4 packets or more'
    """
    base = metric.rpartition(".")[2]
    tail = _TAIL.fullmatch(base)
    if tail:
        return Metric(f"Loss events of {tail[1]} packets or more", "tail", "1", "", 100.0, "%")
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
        """Return a load in words: "16 flows", "start 2 s"."""
        name = self.load_key.rpartition(".")[2]
        return f"{name} {load:g} {self._unit}" if self._unit else f"{load:g} {name}"

    def describe(self, metric: str) -> Metric:
        """Return how a metric or measure is shown."""
        return self._measures[metric][1] if metric in self._measures else describe(metric)

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
            factors it has.
        """
        cases = []
        for queue in queues or self.queues:
            for load in loads or self.loads:
                if not self.has(queue, load):
                    continue
                case = self.case(queue, load)
                keys = (self.load_key, self.queue_key)
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
                        factors={key: case.factors[key] for key in keys},
                        labels={key: case.labels[key] for key in keys},
                        runs=runs,
                    )
                )
        return replace_cases(self.results, (self.load_key, self.queue_key), tuple(cases))

    def values(self, metric: str, queue: str, load: float) -> list[float]:
        """Return a metric or measure replication by replication, NaN where undefined."""
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
            case _:
                return case.values(metric)

    def estimate(self, metric: str, queue: str, load: float) -> Estimate:
        """Return the estimate of a metric or measure."""
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
