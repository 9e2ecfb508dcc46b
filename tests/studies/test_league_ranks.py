"""Ranks of a league: ties are ties, a rank has bounds, and chance makes no winner."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from redtail.analysis.stats import Estimate, estimate
from redtail.metrics import Metric, describe
from redtail.studies import league
from redtail.studies.definition import Criterion

METRIC = "queue_delay_mean"


@dataclass
class Case:
    numbers: Sequence[float]
    copies: int = 0
    title: str = ""
    sharing: dict[str, float] = field(default_factory=dict)

    @property
    def runs(self) -> range:
        return range(len(self.numbers))

    def values(self, name: str) -> list[float]:
        return list(self.numbers) if name == METRIC else []


class Laid:
    """What a league asks of results: one load, and a case for each label."""

    def __init__(self, cases: Mapping[str, Case]) -> None:
        self.cases, self.loads = cases, (1.0,)

    def has(self, label: str, load: float) -> bool:
        return label in self.cases

    def case(self, label: str, load: float) -> Case:
        return self.cases[label]

    def values(self, metric: str, label: str, load: float) -> list[float]:
        return self.cases[label].values(metric)

    def describe(self, metric: str) -> Metric:
        return describe(metric)

    def combined(self, number: Callable[[Sequence[float]], float], *cells: Any) -> Estimate:
        rows = zip(*(self.values(*cell) for cell in cells), strict=True)
        return estimate(map(number, rows))


def ranked(values: Mapping[str, Sequence[float]], matters: str = "1 us") -> league.Column:
    criterion = Criterion(
        name="delay", title="", comparison="", metric=METRIC, better="less", matters=matters
    )
    grid: Any = Laid({label: Case(numbers) for label, numbers in values.items()})
    return league.column(criterion, grid, [*values, "absent"])


def noisy(mean: float, seed: int, spread: float = 1.0, count: int = 10) -> list[float]:
    draws = random.Random(seed)
    return [mean + draws.gauss(0.0, spread) for _ in range(count)]


def test_a_tie_does_not_carry_over() -> None:
    found = ranked({"a": noisy(10.0, 1), "b": noisy(10.6, 22), "c": noisy(11.4, 23)})
    bounds = {label: each.rank for label, each in found.ranked.items()}
    assert bounds == {"a": "1-2", "b": "1-3", "c": "2-3"}
    assert found.absent == {"absent": "not run"}
    rows = league.entries([found], ["c", "a", "b", "absent"])
    assert [(each.labels, each.place) for each in rows] == [
        (("a",), 1),
        (("b",), 2),
        (("c",), 3),
        (("absent",), None),
    ]


def test_what_does_not_matter_is_a_tie() -> None:
    # The same noise, so that the difference is 0.1 in every replication but for rounding.
    values = {"a": noisy(10.0, 1), "b": [each + 0.1 for each in noisy(10.0, 1)]}
    assert [each.rank for each in ranked(values, "0.05 s").ranked.values()] == ["1", "2"]
    assert [each.rank for each in ranked(values, "0.5 s").ranked.values()] == ["1-2", "1-2"]
    assert [each.rank for each in ranked(values, "2 %").ranked.values()] == ["1-2", "1-2"]
    # A difference of about what matters is not above it.
    near = {"a": [0.0] * 10, "b": noisy(0.5, 4, spread=0.1)}
    assert [each.rank for each in ranked(near, "0.5 s").ranked.values()] == ["1-2", "1-2"]


def test_equal_subjects_share_a_row_and_a_rank() -> None:
    same = noisy(20.0, 5)
    found = ranked({"x": same, "a": noisy(10.0, 1), "y": list(same)})
    assert found.ranked["x"].rank == found.ranked["y"].rank == "2-3"
    rows = league.entries([found], ["x", "a", "y"])
    assert [(each.labels, each.place) for each in rows] == [(("a",), 1), (("x", "y"), 2)]


def test_copies_of_one_run_win_nothing() -> None:
    grid: Any = Laid({"a": Case([1.0] * 5, copies=5), "b": Case(noisy(10.0, 1, count=5))})
    criterion = Criterion(name="d", title="", comparison="", metric=METRIC, better="less")
    found = league.column(criterion, grid, ["a", "b"])
    assert [each.rank for each in found.ranked.values()] == ["1-2", "1-2"]
    assert all("copies" in each.unjudged for each in found.ranked.values())


def test_chance_makes_a_winner_in_one_of_twenty_leagues_at_most() -> None:
    # Six subjects that are alike, in workloads that they share. Of 200 leagues at most 5 % have a
    # winner by chance: 10, and more than 21 in fewer than one of 1000 series of leagues. The seed
    # is fixed, so this fails only if the ranking changes.
    draws = random.Random(7)
    won = 0
    for _ in range(200):
        common = [draws.gauss(0.0, 3.0) for _ in range(10)]
        values = {
            label: [10.0 + each + draws.gauss(0.0, 1.0) for each in common] for label in "abcdef"
        }
        won += any(each.rank != "1-6" for each in ranked(values).ranked.values())
    assert 0 < won <= 21


def test_the_bounds_of_all_ranks_hold_true_at_once() -> None:
    # Four subjects with true ranks 1 to 4, of which neighbours are hard to tell apart. In at most
    # 5 % of 200 leagues one bound or more is wrong: 10, and more than 21 in fewer than one of 1000.
    draws = random.Random(11)
    wrong = 0
    for _ in range(200):
        values = {
            label: [10.0 + 0.8 * place + draws.gauss(0.0, 1.0) for _ in range(10)]
            for place, label in enumerate("abcd")
        }
        found = ranked(values).ranked
        wrong += any(
            not found[label].first <= place <= found[label].last
            for place, label in enumerate("abcd", start=1)
        )
        assert fmean(each.middle for each in found.values()) == 2.5
    assert wrong <= 21
