"""The tests that findings name, over a comparison of queues at several loads.

A test returns its evidence row by row: a number with its 95 % interval, the bounds it should
keep, and whether it does. Ratios and differences are taken replication by replication, since
cases that differ in the queue alone draw the same workload.

A row holds when its whole interval keeps the bounds, and does not hold when its whole interval is
outside. It is undecided when the interval crosses a bound, and when there is no interval: with one
replication, with replications that are copies of one (nothing is drawn at random, so that they are
one observation), for an extreme, for rare events (`analysis.rare`), and where no replication has a
value. Where there is none because more than half of the values are equal (all, or nearly all),
though the replications are no copies, all of six or more have to be on one side of a bound. That
is the sign test, as for differences (`stats.p_zero_mean`): were the median on the other side, six
of six would be on this one with a probability of 1.6 %. That n replications are on one side shows
with 95 % confidence that at most 1 - 0.05^(1/n) of all possible ones are on the other (26 % for
n = 10).

Each interval is for one row. All rows have to hold for a finding to hold, so the probability that
it holds although a number is outside its bounds is at most 2.5 %, with however many rows; the same
is true of "does not hold" (an intersection-union test: R. L. Berger, "Multiparameter hypothesis
testing and acceptance sampling", Technometrics 24 (1982) 295-300). "Holds in part" needs one row
inside and one outside. If all numbers are just inside their bounds, that happens by chance with up
to 2.5 % for each row.
"""

from __future__ import annotations

import inspect
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

from redtail.analysis.stats import Estimate, bootstrap
from redtail.errors import RedtailError, SpecError
from redtail.metrics import Metric
from redtail.studies.grid import Cell, Grid, extreme, quotient

FEWEST_SIGNS = 6
"""Replications that decide without an interval if all agree: the sign test's p is 2^(1-6) = 3 %."""

_RATIO = Metric("", "", "1", "", 1.0, "")


Load: TypeAlias = float
"""A load; findings name it, and tests are given its value in SI units."""


class Answer(StrEnum):
    """Whether a number keeps its bounds."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Bounds:
    """Where a number should be; None is no bound.

    Attributes:
        at_least: least value.
        above: value it must exceed.
        at_most: greatest value.
        below: value it must not reach.
    """

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    def __post_init__(self) -> None:
        """Refuse bounds that bound nothing."""
        if not self.limits:
            raise SpecError(f"a bound is missing; accepted: {', '.join(BOUNDS)}")

    @property
    def limits(self) -> list[float]:
        """The bounds that there are."""
        found = (self.at_least, self.above, self.at_most, self.below)
        return [each for each in found if each is not None]

    def under(self, value: float) -> bool:
        """Whether `value` breaks the lower bound."""
        return (self.at_least is not None and value < self.at_least) or (
            self.above is not None and value <= self.above
        )

    def over(self, value: float) -> bool:
        """Whether `value` breaks the upper bound."""
        return (self.at_most is not None and value > self.at_most) or (
            self.below is not None and value >= self.below
        )

    def kept(self, low: float, high: float) -> Answer:
        """Whether all values from `low` to `high` keep the bounds, none does, or some do.

        >>> Bounds(at_most=15.0).kept(7.0, 9.0), Bounds(at_most=15.0).kept(16.0, 17.0)
        (<Answer.YES: 'yes'>, <Answer.NO: 'no'>)
        """
        if self.under(high) or self.over(low):
            return Answer.NO
        inside = not (self.under(low) or self.over(high))
        return Answer.YES if inside else Answer.UNDECIDED

    def margin(self, value: float) -> float:
        """How far inside `value` is; negative outside."""
        lower = [value - low for low in (self.at_least, self.above) if low is not None]
        upper = [high - value for high in (self.at_most, self.below) if high is not None]
        return min([*lower, *upper])

    def text(self, scale: float = 1.0) -> str:
        """Return the bounds in words, times `scale`.

        >>> Bounds(at_least=0.98, at_most=1.02).text()
        'at least 0.98, at most 1.02'
        """
        words = (
            ("at least", self.at_least),
            ("above", self.above),
            ("at most", self.at_most),
            ("below", self.below),
        )
        return ", ".join(
            f"{word} {value * scale:.4g}" for word, value in words if value is not None
        )


@dataclass(frozen=True)
class Evidence:
    """One number that supports a finding or contradicts it.

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
    def answer(self) -> Answer:
        """Whether the number keeps the bounds, with its whole interval; see the module's text."""
        found = self.value
        low, high = (found.least, found.most) if found.ci95 is None else (found.low, found.high)
        few = found.ci95 is None and found.n < FEWEST_SIGNS
        return Answer.UNDECIDED if math.isnan(low) or few else self.bounds.kept(low, high)

    @property
    def margin(self) -> float:
        """How far inside the bounds the mean is; negative outside, -inf without a mean."""
        mean = self.value.mean
        return -math.inf if math.isnan(mean) else self.bounds.margin(mean)


Texts: TypeAlias = Sequence[str]
Loads: TypeAlias = Sequence[Load]

Statistic = Literal["mean", "median", "each"]
"""What stands for a load: the mean or the median of its replications, or each of them."""

Direction = Literal["rises", "falls"]
"""How a metric moves along the loads."""

BOUNDS = ("at_least", "above", "at_most", "below")


@dataclass(frozen=True)
class Test:
    """A test that a finding can name.

    Attributes:
        function: takes the grid, and what the finding gives.
        keys: what the finding gives: the annotation of each, and whether it has to.
    """

    function: Callable[..., Iterable[Evidence]]
    keys: Mapping[str, tuple[str, bool]]

    def __call__(self, grid: Grid, **given: Any) -> list[Evidence]:
        """Return the evidence; the bounds are given one by one."""
        bounds = {key: given.pop(key) for key in BOUNDS if key in given}
        more = {"bounds": Bounds(**bounds)} if set(BOUNDS) & self.keys.keys() else {}
        return list(self.function(grid, **given, **more))


TESTS: dict[str, Test] = {}
"""The tests by name."""


def _test(function: Callable[..., Iterable[Evidence]]) -> Callable[..., Iterable[Evidence]]:
    keys: dict[str, tuple[str, bool]] = {}
    for key, about in list(inspect.signature(function).parameters.items())[1:]:
        needed = about.default is inspect.Parameter.empty
        names = BOUNDS if key == "bounds" else (key,)
        keys |= {name: (str(about.annotation), needed and key != "bounds") for name in names}
    TESTS[function.__name__] = Test(function, keys)
    return function


_TAKES: dict[str, tuple[Any, str]] = {
    "Bounds": (int | float, "a number"),
    "float": (int | float, "a number"),
    "bool": (bool, "true or false"),
    "str": (str, "a text"),
    "Texts": (list, "a list of texts"),
    "Load": (int | float | str, "a number, or a quantity such as '640 ms'"),
    "Loads": (list, "a list of loads"),
}
"""What a parameter may be, by its annotation."""


def validate(name: str, parameters: Mapping[str, Any]) -> None:
    """Refuse a test that does not exist, and parameters that it does not take.

    Raises:
        SpecError: with the key.
    """

    def refuse(key: str, value: object, accepted: str) -> SpecError:
        return SpecError(f"= {value!r}; accepted: {accepted}", key=key)

    def require(key: str, value: object, annotation: str) -> None:
        kind, words = _TAKES[annotation]
        if not isinstance(value, kind) or isinstance(value, bool) != (annotation == "bool"):
            raise refuse(key, value, words)

    if name not in TESTS:
        raise refuse("test", name, ", ".join(TESTS))
    accepted = TESTS[name].keys
    for key, value in parameters.items():
        if key not in accepted:
            listed = ", ".join(accepted)
            raise SpecError(f"unknown key of {name}; accepted: {listed}", key=key)
        annotation = accepted[key][0]
        if annotation in _TAKES:
            require(key, value, annotation)
        elif value not in (words := get_args({"Statistic": Statistic}.get(annotation, Direction))):
            raise refuse(key, value, ", ".join(map(repr, words)))
        for each in value if isinstance(value, list) else ():
            require(key, each, annotation.removesuffix("s").replace("Text", "str"))
    for key, (_, needed) in accepted.items():
        if needed and key not in parameters:
            raise SpecError(f"{name} needs {key}", key="test")
    if set(BOUNDS) & accepted.keys():
        Bounds(**{key: value for key, value in parameters.items() if key in BOUNDS})


def loads_named(name: str, parameters: Mapping[str, Any]) -> list[str]:
    """Return the keys of a test's parameters that name a load or loads."""
    return [key for key in parameters if TESTS[name].keys[key][0] in ("Load", "Loads")]


def located(name: str, parameters: Mapping[str, Any], grid: Grid) -> dict[str, Any]:
    """Return a test's parameters with loads in SI units and queues by their labels.

    Raises:
        RedtailError: a load is named that there is not, or two have the name.
    """
    found = dict(parameters)
    for key in loads_named(name, parameters):
        value = parameters[key]
        several = isinstance(value, list | tuple)
        found[key] = [*map(grid.named.find, value)] if several else grid.named.find(value)
    for key in ("queues", "to"):
        if isinstance(found.get(key), list | tuple):
            found[key] = [grid.queue(each) for each in found[key]]
    return found


# --- At each load ----------------------------------------------------------------------------


@_test
def level(
    grid: Grid, metric: str, bounds: Bounds, queues: Texts = (), loads: Loads = ()
) -> Iterator[Evidence]:
    """Each queue's `metric` is within the bounds at each load."""
    about = grid.describe(metric)
    for queue, load in _cells(grid, queues, loads):
        title = f"{about.title}, {queue}, {grid.at(load)}"
        yield Evidence(title, grid.estimate(metric, queue, load), bounds, about)


@_test
def spread(
    grid: Grid, metric: str, bounds: Bounds, queues: Texts = (), loads: Loads = ()
) -> Iterator[Evidence]:
    """The largest `metric` among the queues, over the smallest, at each load."""
    for load in loads or grid.loads:
        *_, largest = order = _by_mean(grid, metric, queues or grid.queues, load)
        yield _pair(grid, "/", metric, (largest, load), (order[0], load), bounds)


@_test
def span(
    grid: Grid, metric: str, bounds: Bounds, queues: Texts = (), loads: Loads = ()
) -> Iterator[Evidence]:
    """The largest `metric` among the queues, less the smallest, at each load."""
    for load in loads or grid.loads:
        *_, largest = order = _by_mean(grid, metric, queues or grid.queues, load)
        yield _pair(grid, "−", metric, (largest, load), (order[0], load), bounds)


@_test
def share_of_best(
    grid: Grid, metric: str, queues: Texts, bounds: Bounds, loads: Loads = ()
) -> Iterator[Evidence]:
    """Each queue's `metric` over the largest of all queues, at each load."""
    for queue, load in _cells(grid, queues, loads):
        best = _by_mean(grid, metric, grid.queues, load)[-1]
        yield _pair(grid, "/", metric, (queue, load), (best, load), bounds)


@_test
def ratio(
    grid: Grid, metric: str, queues: Texts, to: Texts, bounds: Bounds, loads: Loads = ()
) -> Iterator[Evidence]:
    """Each queue's `metric` over that of each queue in `to`, at each load."""
    for queue, load in _cells(grid, queues, loads):
        for other in to:
            yield _pair(grid, "/", metric, (queue, load), (other, load), bounds)


@_test
def difference(
    grid: Grid, metric: str, queues: Texts, to: Texts, bounds: Bounds, loads: Loads = ()
) -> Iterator[Evidence]:
    """Each queue's `metric` less that of each queue in `to`, at each load."""
    for queue, load in _cells(grid, queues, loads):
        for other in to:
            yield _pair(grid, "−", metric, (queue, load), (other, load), bounds)


@_test
def ratio_of_metrics(
    grid: Grid,
    metric: str,
    to_metric: str,
    queues: Texts,
    bounds: Bounds,
    to: Texts = (),
    loads: Loads = (),
) -> Iterator[Evidence]:
    """Each queue's `metric` over `to_metric` of each queue in `to`, or its own, at each load."""
    over, under = grid.describe(metric).title, grid.describe(to_metric).title
    for queue, load in _cells(grid, queues, loads):
        for other in to or (queue,):
            cells = (metric, queue, load), (to_metric, other, load)
            about = f"{over}, {queue} / {under}, {other}, {grid.at(load)}"
            yield Evidence(about, grid.combined(_over, *cells), bounds)


# --- From load to load -----------------------------------------------------------------------


@_test
def ratio_of_loads(
    grid: Grid, metric: str, load: Load, to: Load, bounds: Bounds, queues: Texts = ()
) -> Iterator[Evidence]:
    """Each queue's `metric` at one load over that at another."""
    for queue in queues or grid.queues:
        yield _pair(grid, "/", metric, (queue, load), (queue, to), bounds)


@_test
def monotone(
    grid: Grid, metric: str, direction: Direction, queues: Texts = (), loads: Loads = ()
) -> Iterator[Evidence]:
    """Each queue's `metric` is monotonic in the load.

    No step goes the other way, and from the first to the last load it does move.
    """
    for queue in queues or grid.queues:
        for first, last, bounds in _steps(loads or grid.loads):
            one, other = (last, first) if direction == "rises" else (first, last)
            yield _pair(grid, "−", metric, (queue, one), (queue, other), bounds)


@_test
def difference_monotone(
    grid: Grid, metric: str, direction: Direction, queues: Texts, to: Texts, loads: Loads = ()
) -> Iterator[Evidence]:
    """Each queue's `metric` minus that of each queue in `to` is monotonic in the load.

    Each number is a step of that difference from one load to the next, in this direction; none is
    below 0, and from the first to the last load it does move.
    """
    sign = 1.0 if direction == "rises" else -1.0
    about = grid.describe(metric)

    def gain(row: Sequence[float]) -> float:
        return sign * (row[2] - row[3]) - sign * (row[0] - row[1])

    for queue in queues:
        for other in to:
            for first, last, bounds in _steps(loads or grid.loads):
                ends = [(metric, which, load) for load in (first, last) for which in (queue, other)]
                change = f"{direction} from {grid.at(first)} to {grid.at(last)} by"
                title = f"{about.title}, {queue} − {other}: {change}"
                yield Evidence(title, grid.combined(gain, *ends), bounds, about)


@_test
def convex(
    grid: Grid, metric: str, loads: Loads, factor: float = 1.0, queues: Texts = ()
) -> Iterator[Evidence]:
    """From the second to the third of three loads each queue's `metric` rises by more.

    The number is that step less `factor` times the step before it.
    """
    if len(loads) != 3:
        raise RedtailError(f"convex takes three loads, and {len(loads)} are given")
    words, about = " to ".join(map(grid.named.text, loads)), grid.describe(metric)
    for queue in queues or grid.queues:
        cells = [(metric, queue, load) for load in loads]
        value = grid.combined(lambda row: row[2] - row[1] - factor * (row[1] - row[0]), *cells)
        title = f"{about.title}, {queue}, {words}: second step less {factor:g} times the first"
        yield Evidence(title, value, Bounds(at_least=0.0), about)


@_test
def closer(grid: Grid, metric: str, queues: Texts, load: Load, to: Load) -> Iterator[Evidence]:
    """Two queues are nearer to each other in `metric` at one load than at another.

    The number is the distance of their means at `to` less that at `load`.
    """
    if len(queues) != 2:
        raise RedtailError(f"closer takes two queues, and {len(queues)} are given")

    def apart(at: float) -> tuple[list[Cell], float]:
        cells = [(metric, queue, at) for queue in queues]
        # The sign is that of the mean, so that noise alone makes no distance in each replication.
        mean = grid.combined(lambda row: row[0] - row[1], *cells).mean
        return cells, 1.0 if mean >= 0 else -1.0

    (there, first), (here, second) = apart(to), apart(load)
    value = grid.combined(
        lambda row: first * (row[0] - row[1]) - second * (row[2] - row[3]), *there, *here
    )
    about = grid.describe(metric)
    words = f"{queues[0]} and {queues[1]}: apart, {grid.at(to)} − {grid.at(load)}"
    yield Evidence(f"{about.title}, {words}", value, Bounds(above=0.0), about)


@_test
def load_dependence(
    grid: Grid, metric: str, queues: Texts, to: Texts, loads: Loads = ()
) -> Iterator[Evidence]:
    """Over the loads, each queue's `metric` varies by a smaller factor than that of those in `to`.

    The factor is the largest mean over the smallest; the number is one factor over the other.
    """
    title = grid.describe(metric).title

    def ends(queue: str) -> tuple[list[Cell], str]:
        means = {load: grid.estimate(metric, queue, load).mean for load in loads or grid.loads}
        order = sorted(means, key=means.__getitem__)
        cells = [(metric, queue, load) for load in (order[-1], order[0])]
        return cells, f"{queue} ×{grid.combined(_over, *cells).mean:.3g}"

    for queue in queues:
        for other in to:
            (mine, said), (theirs, also) = ends(queue), ends(other)
            value = grid.combined(
                lambda row: quotient(_over(row[:2]), _over(row[2:])), *mine, *theirs
            )
            about = f"{title}, largest over smallest of all loads, {said} / {also}"
            yield Evidence(about, value, Bounds(at_most=1.0))


@_test
def constant(
    grid: Grid, metric: str, bounds: Bounds, queues: Texts = (), loads: Loads = ()
) -> Iterator[Evidence]:
    """Each queue's `metric` at each load over its mean over these loads."""
    for queue in queues or grid.queues:
        cells = [(metric, queue, load) for load in loads or grid.loads]
        for cell in cells:
            value = grid.combined(
                lambda row: quotient(row[-1], statistics.fmean(row[:-1])), *cells, cell
            )
            title = f"{grid.describe(metric).title}, {queue}, {grid.at(cell[2])}"
            yield Evidence(f"{title} / mean of all loads", value, bounds)


def _cells(grid: Grid, queues: Texts, loads: Loads) -> Iterator[tuple[str, float]]:
    for queue in queues or grid.queues:
        for load in loads or grid.loads:
            yield queue, load


def _steps(loads: Loads) -> Iterator[tuple[float, float, Bounds]]:
    """Yield each step, not below 0, and the one from the first to the last, above 0."""
    yield from ((*pair, Bounds(at_least=0.0)) for pair in pairwise(loads))
    yield loads[0], loads[-1], Bounds(above=0.0)


def _by_mean(grid: Grid, metric: str, queues: Texts, load: float) -> list[str]:
    return sorted(queues, key=lambda queue: grid.estimate(metric, queue, load).mean)


def _over(row: Sequence[float]) -> float:
    return quotient(row[0], row[1])


def _pair(
    grid: Grid,
    sign: Literal["/", "−"],
    metric: str,
    first: tuple[str, float],
    second: tuple[str, float],
    bounds: Bounds,
) -> Evidence:
    """Return a queue's number at a load over that of another, or less it."""
    about, number = grid.describe(metric), _over if sign == "/" else lambda row: row[0] - row[1]
    value = grid.combined(number, (metric, *first), (metric, *second))
    words = f"{first[0]} {sign} {second[0]}, {grid.at(first[1])}"
    if first[1] != second[1]:
        words = f"{first[0]}, {grid.at(first[1])} {sign} {grid.at(second[1])}"
    return Evidence(f"{about.title}, {words}", value, bounds, _RATIO if sign == "/" else about)


# --- Over all loads together -----------------------------------------------------------------


@_test
def range_over_loads(
    grid: Grid,
    metric: str,
    bounds: Bounds,
    queues: Texts = (),
    to: Texts = (),
    loads: Loads = (),
    statistic: Statistic = "mean",
    relative: bool = False,
) -> Iterator[Evidence]:
    """The largest less the smallest of all loads, of each queue's `metric`.

    What is compared is the mean or the median over the replications of a load; "each" takes every
    replication of every load by itself. With `relative` the range is divided by the largest; with
    `to` it is divided by that of each queue there.
    """
    along = tuple(loads or grid.loads)
    of = "replications" if statistic == "each" else f"{statistic}s"
    title = f"{grid.describe(metric).title}, range of the {of} over {grid.along(along)}"
    title += " over the largest" if relative else ""

    def extent(cells: Sequence[Sequence[float]]) -> float:
        points = _summaries(cells, statistic)
        if not points:
            return math.nan
        width = max(points) - min(points)
        return quotient(width, max(points)) if relative else width

    for row in _over_loads(grid, metric, queues, to, along, title, extent, bounds, relative):
        yield replace(row, value=extreme(row.value)) if statistic == "each" else row


@_test
def mean_over_loads(
    grid: Grid,
    metric: str,
    bounds: Bounds,
    queues: Texts = (),
    to: Texts = (),
    loads: Loads = (),
    statistic: Statistic = "mean",
) -> Iterator[Evidence]:
    """The mean over the loads of each queue's `metric`, with `to` over that of each queue there.

    A load counts with the mean or the median over its replications.
    """
    along = tuple(loads or grid.loads)
    of = "" if statistic == "mean" else " of the medians" if statistic == "median" else " of all"
    title = f"{grid.describe(metric).title}, {grid.along(along)}"
    title += f", mean{of}" if len(along) > 1 else ""

    def centre(cells: Sequence[Sequence[float]]) -> float:
        points = _summaries(cells, statistic)
        return math.fsum(points) / len(points) if points else math.nan

    yield from _over_loads(grid, metric, queues, to, along, title, centre, bounds, False)


@_test
def where_largest(
    grid: Grid, metric: str, of: str, bounds: Bounds, queues: Texts = (), loads: Loads = ()
) -> Iterator[Evidence]:
    """Each queue's `metric` at that load at which the mean of `of` is largest."""
    about = grid.describe(metric)
    for queue in queues or grid.queues:
        means = {load: grid.estimate(of, queue, load).mean for load in loads or grid.loads}
        at = max(means, key=lambda load: -math.inf if math.isnan(means[load]) else means[load])
        title = f"{about.title}, {queue}, {grid.at(at)}, where {grid.describe(of).title} is largest"
        yield Evidence(title, grid.estimate(metric, queue, at), bounds, about)


def _over_loads(
    grid: Grid,
    metric: str,
    queues: Texts,
    to: Texts,
    loads: Loads,
    title: str,
    number: Callable[[Sequence[Sequence[float]]], float],
    bounds: Bounds,
    is_ratio: bool,
) -> Iterator[Evidence]:
    """Yield one number over all loads for each queue, or for each pair of queues their ratio."""

    def estimated(of: Callable[[Sequence[Sequence[float]]], float], *of_queues: str) -> Estimate:
        wanted = [(metric, queue, load) for queue in of_queues for load in loads]
        return grid.observed(bootstrap(of, [grid.values(*cell) for cell in wanted]), *wanted)

    def over(drawn: Sequence[Sequence[float]]) -> float:
        return quotient(number(drawn[: len(loads)]), number(drawn[len(loads) :]))

    for queue in queues or grid.queues:
        if not to:
            shown = _RATIO if is_ratio else grid.describe(metric)
            yield Evidence(f"{title}, {queue}", estimated(number, queue), bounds, shown)
        for other in to:
            yield Evidence(f"{title}, {queue} / {other}", estimated(over, queue, other), bounds)


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
