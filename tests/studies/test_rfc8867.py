"""The files of the suite `rfc8867` have the capacities, times and delays of the test cases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from redtail import experiment, facts, quantities, studies
from redtail.studies.definition import FOLDER

SUITE = FOLDER / "suites" / "rfc8867"
FILES = sorted(path for path in SUITE.glob("*.toml") if path.name != "study.toml")

# From when on, in seconds, a link has which capacity, in Mbit/s: forward, and backward.
CAPACITIES = {
    "variable-single": ({0: 1, 40: 2.5, 60: 0.6, 80: 1}, {0: 4}),
    "variable-multiple": ({0: 4, 25: 2, 50: 3.5, 75: 1, 100: 2}, {0: 4}),
    "congested-feedback": ({0: 2, 20: 1, 40: 0.5, 60: 2}, {0: 2, 35: 0.8, 70: 2}),
    "same-control": ({0: 3.5}, {0: 4}),
    "round-trips": ({0: 4}, {0: 4}),
    "long-tcp": ({0: 2}, {0: 4}),
    "long-tcp-deep": ({0: 2}, {0: 4}),
    "short-tcp": ({0: 2}, {0: 4}),
    "pause": ({0: 3.5}, {0: 4}),
}
LENGTHS = {"variable-single": 100, "variable-multiple": 125, "congested-feedback": 100}
LENGTHS |= {"round-trips": 300, "short-tcp": 300}
# What 300 ms are of: the capacity to which the ratios of 5.1 to 5.3 refer, in Mbit/s.
REFERENCES = {"variable-single": 1, "variable-multiple": 2, "congested-feedback": 1}


def scenarios(name: str) -> list[dict[str, Any]]:
    plan = experiment.prepare(SUITE / f"{name}.toml")
    return [json.loads(plan.example(number)) for number in range(len(plan.cases))]


def seconds(text: str | None) -> float:
    return quantities.parse(text)[0] if text else 0.0


def capacities(link: dict[str, Any]) -> dict[float, float]:
    found = {0.0: facts.rate_bps("rate", link["rate"]) / 1e6}
    return found | {
        seconds(each["at"]): facts.rate_bps("rate", each["rate"]) / 1e6
        for each in link.get("rate_changes", [])
    }


def test_all_files_are_of_the_suite() -> None:
    study = studies.load("rfc8867")
    assert {path for each in study.comparisons for path in each.files} == set(FILES)
    assert {path.stem for path in FILES} == set(CAPACITIES)
    shown = {name for each in study.sections for name in each.comparisons}
    assert shown == {view.name for view in study.all_views if not view.name.startswith("criterion")}
    wanted = [*(f"5.{number}" for number in range(1, 9)), "6.1", "6.2", "6.3"]
    assert [each.id for each in study.sections] == wanted


@pytest.mark.parametrize("name", CAPACITIES)
def test_capacities_delays_and_buffers(name: str) -> None:
    for scenario in scenarios(name):
        assert seconds(scenario["duration"]) == LENGTHS.get(name, 120)
        link = scenario["bottleneck"]
        for way, wanted in zip((link, link["return"]), CAPACITIES[name], strict=True):
            assert capacities(way) == pytest.approx(wanted)
            assert way["delay"] == ("10 ms" if name == "round-trips" else "50 ms")
            assert way["wire"]["jitter"].endswith("max 30 ms")
        limit, unit = quantities.parse(link["queue"]["limit"])
        if name in REFERENCES:
            assert (limit * 8, unit) == (pytest.approx(REFERENCES[name] * 1e6 * 0.3), "B")
        else:
            assert limit == pytest.approx(1.0 if name == "long-tcp-deep" else 0.3)


def test_delays_and_starts_of_section_5_5() -> None:
    for scenario in scenarios("round-trips"):
        base = seconds(scenario["bottleneck"]["delay"])
        delays = [base + seconds(each.get("access_delay")) for each in scenario["traffic"]]
        assert delays == pytest.approx([0.01, 0.025, 0.05, 0.1, 0.15])
        starts = [seconds(each.get("start")) for each in scenario["traffic"]]
        assert starts == [0, 10, 20, 30, 40]


def test_calls_of_one_run_have_one_controller() -> None:
    for path in FILES:
        found = [
            {each["controller"] for each in scenario["traffic"] if each["kind"] == "call"}
            for scenario in scenarios(path.stem)
        ]
        assert found == [{"gcc"}, {"scream"}]
