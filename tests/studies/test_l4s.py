"""The files of the suite `l4s` have the rates, round trips and buffers of l4s-tests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from redtail import experiment, facts, quantities, studies
from redtail.studies.definition import FOLDER

SUITE = FOLDER / "suites" / "l4s"
FILES = sorted(path for path in SUITE.glob("*.toml") if path.name != "study.toml")


def scenarios(name: str) -> list[dict[str, Any]]:
    plan = experiment.prepare(SUITE / f"{name}.toml")
    return [json.loads(plan.example(number)) for number in range(len(plan.cases))]


def seconds(text: str | None) -> float:
    return quantities.parse(text)[0] if text else 0.0


def round_trip(link: dict[str, Any], group: dict[str, Any]) -> float:
    ways = seconds(link["delay"]) + seconds(link["return"]["delay"])
    return ways + seconds(group.get("access_delay")) + seconds(group.get("return_delay"))


def rates(link: dict[str, Any]) -> dict[float, float]:
    found = {0.0: facts.rate_bps("rate", link["rate"]) / 1e6}
    return found | {
        seconds(each["at"]): facts.rate_bps("rate", each["rate"]) / 1e6
        for each in link.get("rate_changes", [])
    }


def test_all_files_are_of_the_suite() -> None:
    study = studies.load("l4s")
    assert {path for each in study.comparisons for path in each.files} == set(FILES)
    shown = {name for each in study.sections for name in each.comparisons}
    assert shown == {view.name for view in study.all_views if not view.name.startswith("criterion")}


@pytest.mark.parametrize("rate", [50, 10])
@pytest.mark.parametrize(
    ("kind", "pairs"),
    [("equal", {(10, 10), (20, 20), (80, 80)}), ("unequal", {(20, 10), (80, 20), (160, 10)})],
)
def test_round_trips_and_buffers_of_scenario_1(
    kind: str, pairs: set[tuple[int, int]], rate: int
) -> None:
    found = set()
    for scenario in scenarios(kind if rate == 50 else f"{kind}-slow"):
        link = scenario["bottleneck"]
        assert rates(link) == {0: rate}
        assert link["queue"]["limit"] == f"{20 * rate} packets"
        found.add(tuple(round(1e3 * round_trip(link, each)) for each in scenario["traffic"]))
    assert found == pairs


def test_rates_of_scenarios_2_and_3() -> None:
    steps = {(25.0,), (10.0,), (5.0,), (1.0,)}
    of_step = [rates(each["bottleneck"]) for each in scenarios("step")]
    bursty = [rates(each["chain"]["hop"][1]) for each in scenarios("step-bursty")]
    for found in (of_step, bursty):
        assert all(list(each) == [0, 30] and each[0] == 50 for each in found)
        assert {(each[30],) for each in found} == steps
    for scenario in scenarios("variable"):
        assert rates(scenario["bottleneck"]) == {0: 100, 25: 50, 30: 10, 35: 90, 50: 5}


def test_published_numbers_fit_in_the_rate() -> None:
    # A delivery rate leaves out headers of Ethernet, IP and TCP: at most 95 % of the rate.
    study = studies.load("l4s")
    tables = [each for each in study.tables if each.metrics[0] == "first.goodput"]
    assert len(tables) == 16
    for table in tables:
        rate = 10e6 if "slow" in table.name else 50e6
        for row in table.rows:
            assert 0.8 * rate < sum(row.values) < 0.96 * rate
