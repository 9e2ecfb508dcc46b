"""Verdicts "equal within a margin", by two one-sided tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from redtail.analysis.case import CaseResult
from redtail.analysis.equivalence import Margins, p_equal
from redtail.analysis.results import Results
from redtail.analysis.stats import Estimate, estimate
from redtail.cli import app
from redtail.errors import RedtailError, RedtailWarning, SpecError
from redtail.store.folders import StoredRun

from conftest import ROOT

QUEUE = "bottleneck.queue"


def _results(
    folder: Path, values: dict[str, Sequence[float]], metric: str = "queue_delay_mean"
) -> Results:
    cases = []
    for label, numbers in values.items():
        runs = {
            n: StoredRun(f"{n}", folder, {metric: value, "loss": n / 100}, {}, {})
            for n, value in enumerate(numbers)
        }
        cases.append(CaseResult.of({QUEUE: label}, {QUEUE: label}, runs, ()))
    return Results(name="x", description="", factors=[QUEUE], cases=tuple(cases), folder=folder)


def _noisy(mean: float, spread: float, n: int = 12) -> list[float]:
    noise = np.random.default_rng(7).standard_normal(n)
    return [float(mean + spread * each) for each in noise - noise.mean()]


def test_the_p_value_is_that_of_the_worse_of_two_one_sided_tests() -> None:
    from scipy.stats import ttest_1samp

    values = [0.5, -0.2, 0.9, 0.4, -0.6, 0.3]
    above = ttest_1samp(values, 1.0, alternative="less").pvalue
    below = ttest_1samp(values, -1.0, alternative="greater").pvalue
    found = p_equal(estimate(values, skewed=False), 1.0)
    assert found == pytest.approx(max(above, below))


@pytest.mark.parametrize(("n", "spread"), [(5, 0.3), (10, 0.6), (30, 1.0)])
def test_cases_that_are_a_margin_apart_are_found_equal_in_five_percent(
    n: int, spread: float
) -> None:
    """The difference is the margin: the largest rate of false verdicts.

    20 000 experiments: a rate of 5 % has a standard error of 0.0015, so a right test is above 5.5 %
    in 0.06 % of cases. With little noise it is also not below 4.5 %.
    """
    values = 1.0 + spread * np.random.default_rng(11).standard_normal((20_000, n))
    mean, error = values.mean(axis=1), values.std(axis=1, ddof=1) / math.sqrt(n)
    t = Estimate(0.0, 1.0, n)
    from redtail.analysis.stats import t_quantile

    half = t_quantile(0.95, n - 1) * error
    found = [
        p_equal(Estimate(float(m), float(h), t.n), 1.0) for m, h in zip(mean, half, strict=True)
    ]
    rate = np.mean([p is not None and p <= 0.05 for p in found])
    assert 0.045 <= rate <= 0.055


def test_equal_is_said_within_the_margin_and_only_there(tmp_path: Path) -> None:
    values = {"a": _noisy(1.0, 0.01), "b": [v + 0.005 for v in _noisy(1.0, 0.01)]}
    values["b"] = [v + w for v, w in zip(values["b"], _noisy(0.0, 0.004)[::-1], strict=True)]
    results = _results(tmp_path, values)
    (row,) = results.compare("queue_delay_mean", baseline="a", equal_within="2 %")
    assert row.equal is True
    assert row.equality == "equal within 2 %"
    assert row.p_equal is not None
    (row,) = results.compare("queue_delay_mean", baseline="a", equal_within="0.1 %")
    assert row.equal is False
    assert row.equality == "not shown equal within 0.1 %"
    (row,) = results.compare("queue_delay_mean", baseline="a")
    assert row.equal is None
    assert "p_equal" not in row.as_json() or row.as_json()["p_equal"] is None


def test_a_small_difference_may_be_certain_and_equal_at_once(tmp_path: Path) -> None:
    first = _noisy(1.0, 0.05)
    second = [v + 0.004 + w for v, w in zip(first, _noisy(0.0, 0.001)[::-1], strict=True)]
    results = _results(tmp_path, {"a": first, "b": second})
    compared = results.compare("queue_delay_mean", baseline="a", equal_within="2 %")
    (row,) = compared
    assert (row.judged, row.equal) == ("higher", True)
    table = compared.table()
    (cell,) = [str(cell) for cell in table.columns[-1].cells]
    assert cell == "higher, equal within 2 %"
    assert compared.to_arrow().column("equal").to_pylist() == [True]
    assert compared.as_json()["comparisons"][0]["equal_within"] == "2 %"


@pytest.mark.parametrize(
    "values",
    [
        {"a": [1.0], "b": [1.0]},
        {"a": [1.0] * 10, "b": [1.0] * 10},
        {"a": _noisy(1.0, 0.1), "b": _noisy(1.0, 0.1)},
        {"a": _noisy(1.0, 0.1), "b": [v + 0.01 for v in _noisy(1.0, 0.1)]},
    ],
)
def test_without_an_interval_nothing_is_shown_equal(
    tmp_path: Path, values: dict[str, list[float]]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RedtailWarning)
        (row,) = _results(tmp_path, values).compare("queue_delay_mean", equal_within="50 %")
    assert row.difference.ci95 is None
    assert (row.p_equal, row.equal) == (None, None)


def test_holm_counts_all_tests_of_equality(tmp_path: Path) -> None:
    first = _noisy(1.0, 0.05)
    noises = [_noisy(0.0, 0.02), _noisy(0.0, 0.02)[::-1], _noisy(0.0, 0.03)[::-1]]
    values = {"a": first} | {
        label: [v + w for v, w in zip(first, noise, strict=True)]
        for label, noise in zip("bcd", noises, strict=True)
    }
    results = _results(tmp_path, values)
    plain = results.compare("queue_delay_mean", equal_within="2 %", correction="none")
    holm = results.compare("queue_delay_mean", equal_within="2 %")
    tested = [row for row in plain if row.p_equal is not None]
    assert len(tested) > 2
    smallest = min(range(len(holm)), key=lambda at: holm[at].p_equal or 2.0)
    assert holm[smallest].p_equal_adjusted == pytest.approx(
        min(1.0, len(tested) * (holm[smallest].p_equal or 0.0))
    )
    assert [row.p_equal_adjusted for row in plain] == [row.p_equal for row in plain]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("2", "'2': not a margin for all metrics; accepted: a share above 0"),
        ("5 points", "'5 points': not a margin for all metrics"),
        ("0 %", "accepted: a share above 0"),
        (["2 %", "3 %"], "a margin of all is given twice"),
        ("goodput=5 ms", "not a tolerance of goodput"),
        ("goodput=5 %", "goodput: is not compared; accepted: queue_delay_mean"),
    ],
)
def test_what_is_no_margin_is_refused(tmp_path: Path, texts: str | list[str], said: str) -> None:
    results = _results(tmp_path, {"a": [1.0, 2.0], "b": [1.0, 3.0]})
    with pytest.raises((SpecError, RedtailError), match=said):
        results.compare("queue_delay_mean", equal_within=texts)


def test_a_margin_may_be_in_the_unit_of_the_metric() -> None:
    margins = Margins(["2 %", "queue_delay_mean=1 ms"])
    found = margins.of("queue_delay_mean")
    assert found is not None
    assert found.allowed(5.0) == 0.001


def test_the_command_says_what_is_equal(tmp_path: Path) -> None:
    short = ["--set", "duration=6 s", "--set", "warmup=3 s", "--replications", "3"]
    words = ["compare", str(ROOT / "examples/quickstart.toml"), *short, "--out", str(tmp_path)]
    words += ["--metric", "utilization", "--metric", "loss"]
    done = CliRunner().invoke(app, [*words, "--equal-within", "1000 %"])
    assert done.exit_code == 0, done.output
    assert "equal within 1000 %" in done.stdout
    assert "two one-sided tests at 5 %" in done.stdout
    refused = CliRunner().invoke(app, [*words, "--equal-within", "loss=3 ms"])
    assert refused.exit_code == 2
    assert "--equal-within loss = '3 ms': not a tolerance of loss" in refused.stderr
