"""The files of the suite `rfc7928` follow the formulas of the RFC."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest

from redtail import experiment, facts, quantities, studies
from redtail.studies.definition import FOLDER

SUITE = FOLDER / "suites" / "rfc7928"
FILES = sorted(path for path in SUITE.glob("*.toml") if path.name != "study.toml")
PACKET = 1500 * 8

# Section 8.2.1: the share of packets that drop-tail loses at each level, and the factor of S that
# the RFC has for the number of flows.
LEVELS = {"mild": (0.001, 0.036), "medium": (0.005, 0.081), "heavy": (0.01, 0.114)}


def scenarios(path: Path) -> list[dict[str, Any]]:
    """Return a run of each case."""
    plan = experiment.prepare(path)
    return [json.loads(plan.example(number)) for number in range(len(plan.cases))]


def links(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    chain = scenario.get("chain")
    return chain["hop"] if chain else [scenario["bottleneck"]]


def seconds(text: str | None) -> float:
    return quantities.parse(text)[0] if text else 0.0


def rates(link: dict[str, Any]) -> list[float]:
    changes = link.get("rate_changes", [])
    texts = changes["rates"] if isinstance(changes, dict) else [each["rate"] for each in changes]
    return [facts.rate_bps("rate", text) for text in (link["rate"], *texts)]


def round_trip(scenario: dict[str, Any], group: dict[str, Any]) -> float:
    """Return the propagation delay there and back; lists of delays are not in these files."""
    hops = links(scenario)[group.get("first_hop", 1) - 1 : group.get("last_hop")]
    ways = sum(seconds(hop["delay"]) + seconds(hop["return"]["delay"]) for hop in hops)
    return ways + sum(
        seconds(group.get(key)) for key in ("access_delay", "exit_delay", "return_delay")
    )


def flows_at(rate: float, rtt: float, buffer: int) -> dict[str, int]:
    """Return the number of flows of each level: N = ROUND(factor S), S = BDP + buffer."""
    size = rate * rtt / PACKET + buffer
    return {name: round(factor * size) for name, (_, factor) in LEVELS.items()}


def buffer_of(link: dict[str, Any]) -> int:
    size, unit = quantities.parse(link["queue"]["limit"])
    assert unit == "packets"
    return round(size)


def test_all_files_are_of_the_suite() -> None:
    study = studies.load("rfc7928")
    used = {path for each in study.comparisons for path in each.files}
    assert used == set(FILES)
    shown = {name for each in study.sections for name in each.comparisons}
    assert shown == {view.name for view in study.all_views if not view.name.startswith("criterion")}


def test_each_section_with_a_scenario_has_its_row() -> None:
    wanted = [
        *("4.4", "4.5", "4.6", "5.1.1", "5.1.2", "5.2", "5.3", "5.4", "6.2", "7.2"),
        *("8.2.2 to 8.2.4", "8.2.5", "8.2.6", "8.3", "9.1", "9.2", "10.2", "11", "12"),
    ]
    assert [each.id for each in studies.load("rfc7928").sections] == wanted


def test_the_factors_of_section_8_2_follow_from_the_loss() -> None:
    # With one window of W packets for each flow, N W = S, and a window is 0.87 over the square root
    # of the loss (R. Morris, "Scalable TCP congestion control", 2000).
    for loss, factor in LEVELS.values():
        assert math.sqrt(loss) / 0.87 == pytest.approx(factor, abs=1e-3)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_buffer_is_a_product_of_the_largest_rate_and_round_trip(path: Path) -> None:
    found = scenarios(path)
    largest = max(
        round_trip(scenario, group) for scenario in found for group in scenario["traffic"]
    )
    for scenario in found:
        for link in links(scenario):
            assert buffer_of(link) == math.ceil(max(rates(link)) * largest / PACKET)


def test_loads_of_sections_8_2_2_to_8_2_4() -> None:
    found = scenarios(SUITE / "congestion.toml")
    (link,) = links(found[0])
    wanted = flows_at(rates(link)[0], 0.1, buffer_of(link))
    assert wanted == {"mild": 6, "medium": 14, "heavy": 19}
    assert {each["traffic"][0]["flows"] for each in found} == set(wanted.values())


def test_loads_of_section_8_2_5_by_phase() -> None:
    scenario = scenarios(SUITE / "varying-load.toml")[0]
    (link,) = links(scenario)
    wanted = list(flows_at(rates(link)[0], 0.1, buffer_of(link)).values())
    ends = [*map(seconds, scenario["phases"]), seconds(scenario["duration"])]
    assert [end - start for start, end in itertools.pairwise(ends)] == [20.0] * 5
    for number, end in enumerate(ends):
        at = end - 10
        running = sum(
            group["flows"]
            for group in scenario["traffic"]
            if (group["name"] == "mild" or seconds(group["start"]) <= at)
            and at < seconds(group.get("stop", scenario["duration"]))
        )
        assert running == wanted[number % 3]


def test_the_mild_load_of_section_9_2_in_each_direction() -> None:
    for scenario in scenarios(SUITE / "two-way.toml"):
        (link,) = links(scenario)
        by_name = {group["name"]: group for group in scenario["traffic"]}
        for way, name in ((link, "down"), (link["return"], "up")):
            wanted = flows_at(rates(way)[0], 0.1, buffer_of(way))["mild"]
            assert by_name[name].get("flows", 1) == wanted


def test_pages_are_those_of_section_7_2() -> None:
    # Fifty objects of at least 1 kB over six connections, with an initial window of ten.
    for name in ("bursts.toml", "mix.toml"):
        for scenario in scenarios(SUITE / name):
            (web,) = (group for group in scenario["traffic"] if group["kind"] == "web")
            assert web["model"] == "http1"
            assert web["object"].startswith("pareto min 1 kB")
            assert web["tcp"] == "sack" or web["tcp"]["initial_window"] == 10


def test_senders_with_ecn_and_subjects_that_mark() -> None:
    for scenario in scenarios(SUITE / "ecn.toml"):
        assert all(group["tcp"]["ecn"] for group in scenario["traffic"])
    study = studies.load("rfc7928")
    assert all(
        (dict(each.subject) == {"ecn": True}) == each.name.startswith("ecn")
        for each in study.comparisons
    )
