"""Paired comparisons: what they subtract, when they see a difference, and how often wrongly."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import redtail
from redtail.analysis.case import CaseResult
from redtail.analysis.compare import compare
from redtail.analysis.results import Results
from redtail.analysis.stats import holm, p_zero_mean
from redtail.cli import app
from redtail.errors import RedtailError, RedtailWarning
from redtail.store.folders import StoredRun

from fake_native import FakeNative

QUEUE = "bottleneck.queue"


def _results(
    tmp_path: Path, values: dict[tuple[object, ...], Sequence[float]], factors: Sequence[str]
) -> Results:
    cases = []
    for settings, numbers in values.items():
        runs = {
            number: StoredRun(f"{number}", tmp_path, {"queue_delay_mean": value}, {}, {})
            for number, value in enumerate(numbers)
        }
        named = dict(zip(factors, settings, strict=True))
        labels = {key: str(value) for key, value in named.items()}
        cases.append(CaseResult.of(named, labels, runs, ()))
    return Results(
        name="made up", description="", factors=factors, cases=tuple(cases), folder=tmp_path
    )


def test_every_pair_of_queues_is_compared_at_each_setting_of_the_rest(tmp_path: Path) -> None:
    values = {(q, n): [1.0, 2.0] for q in ("a", "b", "c") for n in (16, 64)}
    found = _results(tmp_path, values, [QUEUE, "traffic.ftp.flows"]).compare("queue_delay_mean")
    pairs = [(row.others, row.label, row.baseline) for row in found]
    expected = [("b", "a"), ("c", "a"), ("c", "b")]
    assert pairs == [(f"ftp flows {n}", *pair) for n in (16, 64) for pair in expected]


def test_a_factor_with_one_setting_does_not_change_along_with_another(tmp_path: Path) -> None:
    values = {(q, 16): [1.0, 2.0] for q in ("a", "b")}
    found = _results(tmp_path, values, [QUEUE, "traffic.ftp.flows"]).compare("queue_delay_mean")
    assert found.along == ()
    assert [row.others for row in found] == ["ftp flows 16"]


def test_with_a_baseline_it_alone_is_subtracted(tmp_path: Path) -> None:
    values = {("a",): [1.0, 2.0, 4.0], ("b",): [2.0, 4.0, 5.0], ("c",): [1.0, 1.0, 1.0]}
    found = _results(tmp_path, values, [QUEUE]).compare("queue_delay_mean", baseline="b")
    assert [(row.label, row.baseline) for row in found] == [("a", "b"), ("c", "b")]
    assert found[0].differences == {0: -1.0, 1: -2.0, 2: -1.0}
    assert found[0].difference.mean == pytest.approx(-4 / 3)
    assert found[0].relative.mean == pytest.approx(-4 / 11)


def test_only_replications_that_both_have_are_paired(tmp_path: Path) -> None:
    values = {("a",): [1.0, math.nan, 4.0, 7.0], ("b",): [2.0, 4.0, 6.0]}
    found = _results(tmp_path, values, [QUEUE]).compare("queue_delay_mean")
    assert found[0].differences == {0: 1.0, 2: 2.0}


def test_pairing_sees_what_two_intervals_do_not(tmp_path: Path) -> None:
    """A workload that varies much more than the queues differ."""
    draw = np.random.default_rng(1)
    workload = draw.normal(100.0, 20.0, 10)
    values = {("a",): list(workload), ("b",): list(workload + draw.normal(2.0, 0.5, 10))}
    results = _results(tmp_path, values, [QUEUE])
    low, high = (case.metric("queue_delay_mean") for case in results.cases)
    assert low.high > high.low
    assert results.compare("queue_delay_mean")[0].distinguishable is True


def test_a_p_value_agrees_with_a_worked_example() -> None:
    # Student's own data (Biometrika 6, 1908, p. 20): ten patients, the additional hours of sleep
    # by laevohyoscyamine less those by dextrohyoscyamine; t = 4.06, 9 degrees of freedom.
    sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    assert p_zero_mean(sleep) == pytest.approx(0.00283, abs=1e-5)


def test_holm_rejects_in_steps() -> None:
    # Four tests at 5 %: 0.01 <= 0.05 / 4 and 0.013 <= 0.05 / 3 are rejected; 0.03 > 0.05 / 2
    # stops there, although 0.04 <= 0.05 (Holm 1979, section 2).
    adjusted = holm([0.04, 0.01, 0.03, 0.013])
    assert [p <= 0.05 for p in adjusted] == [False, True, False, True]
    assert adjusted == pytest.approx([0.06, 0.04, 0.06, 0.04])
    ordered = sorted(holm(list(np.random.default_rng(2).random(50))))
    assert all(one <= other <= 1 for one, other in pairwise(ordered))
    assert holm([]) == []


def test_false_alarms_are_as_rare_as_stated(tmp_path: Path) -> None:
    """Six queues that do not differ, 15 pairs, 400 campaigns of ten replications.

    At a true rate of 5 % more than 37 campaigns with a false alarm come up with a probability
    below 1e-4; without a correction about 35 % of all campaigns have one.
    """
    draw = np.random.default_rng(6)
    alarms = {"holm": 0, "none": 0}
    for _ in range(400):
        workload = draw.normal(100.0, 20.0, 10)
        values = {(f"q{n}",): list(workload + draw.normal(0.0, 1.0, 10)) for n in range(6)}
        results = _results(tmp_path, values, [QUEUE])
        for correction in alarms:
            found = compare(results, "queue_delay_mean", correction=correction)  # type: ignore[arg-type]
            alarms[correction] += any(row.distinguishable for row in found)
    assert alarms["holm"] <= 37
    assert alarms["none"] > 80


def test_more_metrics_make_verdicts_stricter(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    values = {("a",): list(draw.normal(0, 1, 10)), ("b",): list(draw.normal(1, 1, 10))}
    results = _results(tmp_path, values, [QUEUE])
    once = results.compare("queue_delay_mean")[0]
    twice = results.compare(["queue_delay_mean", "queue_delay_mean"])[0]
    assert once.p is not None and twice.p_adjusted == pytest.approx(2 * once.p)
    assert results.compare("queue_delay_mean", correction="none")[0].p_adjusted == once.p


def test_cases_with_another_workload_are_warned_of(tmp_path: Path) -> None:
    values = {(q, n): [1.0, 2.0] for q in ("a", "b") for n in (16, 64)}
    results = _results(tmp_path, values, [QUEUE, "traffic.ftp.flows"])
    with pytest.warns(RedtailWarning, match=r"differ in traffic\.ftp\.flows, which is no queue"):
        found = results.compare("queue_delay_mean", by="flows")
    assert [(row.others, row.label, row.shared) for row in found] == [
        ("queue a", "64", False),
        ("queue b", "64", False),
    ]


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    results = _results(tmp_path, {("a",): [1.0], ("b",): [2.0]}, [QUEUE])
    with pytest.raises(RedtailError, match="'delay' is not a metric here; nearest: queue_d"):
        results.compare("delay")
    with pytest.raises(RedtailError, match=r"baseline = 'x' is not a setting of .*; they are a, b"):
        results.compare("queue_delay_mean", baseline="x")
    with pytest.raises(RedtailError, match="by = 'x' names 0 factors; the factors are bottleneck"):
        results.compare("queue_delay_mean", by="x")
    with pytest.warns(RedtailWarning, match="fewer than two replications"):
        found = results.compare("queue_delay_mean")
    assert found[0].distinguishable is None
    alone = _results(tmp_path, {(): [1.0]}, [])
    with pytest.raises(RedtailError, match="only one case"):
        alone.compare("queue_delay_mean")


def test_the_command_prints_a_row_per_pair(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    out = ["--out", str(tmp_path / "runs")]
    arguments = ["compare", str(fake_file), "--metric", "queue_delay_mean", *out]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    rows = [line for line in done.stdout.splitlines() if "tail drop" in line]
    assert [row.split()[:3] for row in rows] == [["ftp", "flows", "16"], ["ftp", "flows", "64"]]
    assert "Holm" in done.stdout
    made = len(fake.ran)

    told = CliRunner().invoke(app, [*arguments, "--json", "--baseline", "RED"])
    assert told.exit_code == 0, told.output
    assert len(fake.ran) == made
    rows = json.loads(told.stdout)["comparisons"]
    assert [(row["label"], row["baseline"]) for row in rows] == [("tail drop", "RED")] * 2
    refused = CliRunner().invoke(app, [*arguments, "--correction", "bonferroni"])
    assert refused.exit_code == 2


def test_stored_results_can_be_compared_by_their_folder(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    results = redtail.run(fake_file, out=tmp_path / "runs")
    arguments = ["compare", str(results.folder), "--metric", "queue_delay_mean", "--json"]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    assert told.stdout.strip() == results.compare("queue_delay_mean").to_json()


def test_factors_in_step_are_compared_together_and_named(tmp_path: Path) -> None:
    text = """
name = "In step"
duration = "8 s"
warmup = "3 s"
replications = 3
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "40 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 2
start = "uniform 0..1 s"
[factors]
"traffic.ftp.flows" = [2, 4]
[[factors.zip]]
"bottleneck.rate" = ["5 Mbit/s", "10 Mbit/s", "10 Mbit/s"]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "40 packets", label = "slow" },
  { kind = "tail-drop", limit = "40 packets", label = "fast" },
  { kind = "tail-drop", limit = "80 packets", label = "fast and long" },
]
"""
    results = redtail.run(redtail.Toml(text), out=tmp_path)
    with pytest.warns(redtail.RedtailWarning, match="differ in bottleneck.rate"):
        found = results.compare("goodput", by="queue")
    assert found.along == ("bottleneck.rate",) and found.held == ("traffic.ftp.flows",)
    assert len(found) == 6  # three pairs of queues at each of two numbers of flows
    assert {row.others for row in found} == {"ftp flows 2", "ftp flows 4"}
    shared = {(row.baseline, row.label): row.shared for row in found}
    assert shared[("fast", "fast and long")] and not shared[("slow", "fast")]
    assert found.pairing == [
        "changes along with queue: rate",
        "held equal in each pair: ftp flows, the seed",
    ]
    assert found.as_json()["held_equal"] == ("traffic.ftp.flows",)
    with pytest.warns(redtail.RedtailWarning, match="changes along with bottleneck.queue"):
        assert len(results.compare("goodput", by="rate")) == 0
    assert [case.title for case, _ in results.differences("goodput", factor="bottleneck.queue")]
