"""The Common TCP Evaluation Suite: its networks, loads and buffers are those of the draft."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import pytest

import redtail
from redtail import experiment, quantities, studies

STUDY = studies.load("tcpeval")
FILES = {path.stem: path for each in STUDY.comparisons for path in each.files}

#: The law of the sizes of responses: least, largest, shape.
LEAST, LARGEST, SHAPE = 8e3, 10e6, 1.2
#: Bytes on the link for each byte of a response in full packets.
ON_LINK = 1500 / 1460

#: For each file the rate of the central link, its delay, its buffer in seconds, and rate and
#: buffer of the other direction (draft-irtf-iccrg-tcpeval-01, sections 4.4.1 to 4.4.6, 5.2.1 and
#: 6.1.1).
LINKS: dict[str, tuple[float, float, float, float, float]] = {
    "data-center": (1e9, 0.0, 0.01, 1e9, 0.01),
    "access-link": (100e6, 0.002, 0.1, 100e6, 0.1),
    "trans-oceanic": (1e9, 0.065, 0.1, 1e9, 0.1),
    "satellite": (40e6, 0.3, 0.1, 4e6, 1.0),
    "wireless-lan": (6e6, 0.002, 0.1, 6e6, 0.1),
    "dial-up": (64e3, 0.005, 1.25, 64e3, 1.25),
    "ramp-up": (10e6, 0.002, 0.08, 10e6, 0.08),
    "ramp-up-fast": (1e9, 0.002, 0.08, 1e9, 0.08),
    "impact": (100e6, 0.002, 0.1, 100e6, 0.1),
}
#: One-way delays of the nodes of each side (section 4.1; the data centre: section 4.4.1).
LEFT, RIGHT = (0.0, 0.012, 0.025), (0.002, 0.037, 0.075)
LEFT_NEAR, RIGHT_NEAR = (10e-6, 10e-6, 100e-6), (10e-6, 100e-6, 100e-6)
#: Table 1, in milliseconds.
TABLE_1 = {4, 74, 150, 28, 98, 174, 54, 124, 200}


def _scales() -> list[Any]:
    return [
        pytest.param(each, scale, id=f"{each.name}, {scale.name}")
        for each in STUDY.comparisons
        for scale in each.scales
    ]


def _scenarios(file: str, sets: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    plan = experiment.prepare(FILES[file], set=dict(sets or {}))
    return [json.loads(plan.example(case)) for case in range(len(plan.cases))]


def _si(text: str) -> float:
    return quantities.parse(text)[0]


def _group(scenario: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next(each for each in scenario["traffic"] if each["name"] == name)


def _packets(rate: float, seconds: float) -> int:
    return math.floor(rate * seconds / 12_000 + 1e-9)


def _moment(power: int) -> float:
    """Return a moment of the law: of x^power over the density of a truncated Pareto."""
    density = SHAPE * LEAST**SHAPE / (1 - (LEAST / LARGEST) ** SHAPE)
    return density * (LARGEST ** (power - SHAPE) - LEAST ** (power - SHAPE)) / (power - SHAPE)


def _rate(group: Mapping[str, Any]) -> float:
    """Return connections per second of a group."""
    assert group["size"] == "pareto min 8 kB shape 1.2 max 10 MB"
    mean = re.fullmatch(r"exponential mean (.+)", group["gap"])
    assert mean is not None
    return float(group["users"]) / _si(mean[1])


def _load(group: Mapping[str, Any], rate: float) -> float:
    return _rate(group) * _moment(1) * ON_LINK * 8 / rate


@pytest.mark.parametrize(("comparison", "scale"), _scales())
def test_each_file_is_valid_at_each_scale(comparison: Any, scale: Any) -> None:
    for path in comparison.files:
        plan = experiment.prepare(path, set=dict(scale.set))
        assert plan.cases
        assert not comparison.unmeant(plan.warnings)


@pytest.mark.parametrize("file", LINKS)
def test_links_have_the_rates_delays_and_buffers_of_the_draft(file: str) -> None:
    rate, delay, buffer, back, back_buffer = LINKS[file]
    for scenario in _scenarios(file):
        for link, bits, seconds in (
            (scenario["bottleneck"], rate, buffer),
            (scenario["bottleneck"]["return"], back, back_buffer),
        ):
            assert _si(link["rate"]) == bits
            assert _si(link["delay"]) == delay
            assert link["queue"]["kind"] == "tail-drop"
            assert link["queue"]["limit"] == f"{_packets(bits, seconds)} packets"


def test_the_nine_round_trip_times_are_those_of_table_1() -> None:
    found = {round(2e3 * (left + right)) for left, right in itertools.product(LEFT, RIGHT)}
    assert found == TABLE_1


@pytest.mark.parametrize("file", [*LINKS, "buffers", "same-rtt", "other-rtt"])
def test_paths_join_each_node_of_one_side_with_each_of_the_other(file: str) -> None:
    left, right = (LEFT_NEAR, RIGHT_NEAR) if file == "data-center" else (LEFT, RIGHT)
    names = ("standard", "tested") if file == "impact" else ("down",)
    for scenario, name in itertools.product(_scenarios(file), names):
        group = _group(scenario, name)
        paths = [
            (_si(access), _si(exit), _si(back))
            for access, exit, back in zip(
                group["access_delay"], group["exit_delay"], group["return_delay"], strict=True
            )
        ]
        assert [path[:2] for path in paths] == [(far, near) for far in right for near in left]
        assert all(back == pytest.approx(there + here) for there, here, back in paths)
        other = _group(scenario, f"{name}_up" if file == "impact" else "up")
        assert other["hosts"] == name
        assert other["direction"] == "reverse"


@pytest.mark.parametrize(("comparison", "scale"), _scales())
def test_the_mean_of_the_traffic_is_the_load_of_the_draft(comparison: Any, scale: Any) -> None:
    file = comparison.files[0].stem
    for scenario in _scenarios(file, scale.set):
        links = scenario.get("bottleneck") or scenario["chain"]["hop"][0]
        rate = _si(links["rate"])
        loads = {
            group["name"]: _load(group, rate)
            for group in scenario["traffic"]
            if group["kind"] == "arrivals"
        }
        asked = {
            group["name"]: group["users"] / 100
            for group in scenario["traffic"]
            if group["kind"] == "arrivals"
        }
        for name, load in loads.items():
            share = 0.1 if name.endswith("up") else 1.0
            if file == "impact":
                share /= 2  # two halves
            if file == "wireless-lan":
                share /= 1.1  # both directions together
            assert load == pytest.approx(asked[name] * share, rel=2e-4), name


def test_round_trip_times_of_single_flows_are_those_of_the_draft() -> None:
    def found(file: str, name: str) -> list[int]:
        return [
            round(
                1e3
                * (
                    sum(
                        _si(_group(scenario, name)[f"{part}_delay"])
                        for part in ("access", "exit", "return")
                    )
                    + _si(scenario["bottleneck"]["delay"])
                    + _si(scenario["bottleneck"].get("return", {}).get("delay", "0 s"))
                )
            )
            for scenario in _scenarios(file)
        ]

    for file in ("ramp-up", "ramp-up-fast"):
        # Table 8.
        pairs = set(zip(found(file, "first"), found(file, "new"), strict=True))
        assert pairs == {(80, 80), (120, 30), (30, 120)}
    # Sections 6.2.2.1 and 6.2.2.2.
    assert set(found("same-rtt", "first")) == {10, 20, 40, 80, 160}
    assert found("same-rtt", "first") == found("same-rtt", "second")
    assert set(found("other-rtt", "first")) == {160}
    assert set(found("other-rtt", "second")) == {10, 20, 40, 80, 160}
    # Section 5.3.2.
    for file in ("release", "taken", "crowd"):
        assert set(found(file, "flow")) == {100}


def test_buffers_are_shares_of_the_product_of_100_ms() -> None:
    def limits(file: str) -> list[str]:
        return list(
            dict.fromkeys(each["bottleneck"]["queue"]["limit"] for each in _scenarios(file))
        )

    # Sections 5.1.1 and 6.2.1.
    shares = (0.1, 0.2, 0.5, 1, 2)
    assert limits("buffers") == [f"{_packets(100e6, 0.1 * each)} packets" for each in shares]
    shares = (0.25, 0.5, 1, 2)
    for file in ("same-rtt", "other-rtt"):
        assert limits(file) == [f"{_packets(10e6, 0.1 * each)} packets" for each in shares]


def test_each_link_of_the_parking_lot_has_two_sources_and_all_paths_take_60_ms() -> None:
    for scenario in _scenarios("parking-lot"):
        hops = scenario["chain"]["hop"]
        sources = [0] * len(hops)
        for group in scenario["traffic"]:
            if group["direction"] == "reverse":
                continue
            first, last = group.get("first_hop") or 1, group.get("last_hop") or len(hops)
            crossed = hops[first - 1 : last]
            for hop in range(first - 1, last):
                sources[hop] += 1
            delays = [group[f"{part}_delay"] for part in ("access", "exit", "return")]
            links = [each["delay"] for hop in crossed for each in (hop, hop["return"])]
            assert sum(map(_si, [*delays, *links])) == pytest.approx(0.06)
        assert sources == [2, 2, 2]


def test_the_traffic_offers_its_load_where_nothing_limits_it(tmp_path: Any) -> None:
    # Bytes of a compound Poisson process: variance = rate * time * second moment of the sizes.
    # Four standard errors, of a sum of 27,000 sizes; handshakes, requests and acknowledgements of
    # the other direction add up to 1 %.
    seconds, replications, rate = 60.0, 3, 100e6
    sets = {
        "duration": f"{seconds + 20:g} s",
        "warmup": "20 s",
        "replications": replications,
        "traffic.down.users": [60],
        "traffic.up.users": [60],
        "bottleneck.rate": "10 Gbit/s",
        "bottleneck.return.rate": "10 Gbit/s",
        "bottleneck.queue.limit": "100000 packets",
        "bottleneck.return.queue.limit": "100000 packets",
        "traffic.down.access_rate": "10 Gbit/s",
    }
    (case,) = redtail.run(FILES["access-link"], set=sets, out=tmp_path).cases
    expected = 0.6 * rate
    arrivals = expected / (_moment(1) * ON_LINK * 8) * seconds * replications
    error = math.sqrt(_moment(2) / _moment(1) ** 2 / arrivals)
    offered = case.metric("utilization").mean * 10e9
    assert expected * (1 - 4 * error) < offered < expected * (1.01 + 4 * error)
    assert error < 0.03
