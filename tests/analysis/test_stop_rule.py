"""Replications until sure: what is run, that it is the same each time, what intervals hold then."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtrit
from typer.testing import CliRunner

import redtail
from redtail import metrics as names
from redtail.analysis.stats import estimate, paired_difference
from redtail.analysis.stopping import Bound, StopRule, pairs
from redtail.cases import Case
from redtail.cli import app
from redtail.engine import batches
from redtail.errors import Cancelled, RedtailWarning, RunError, SpecError
from redtail.measured import Measured

from conftest import ROOT
from fake_native import FakeNative

RULE = "queue_delay_mean within 5 %"


def _counts(results: redtail.Results) -> list[int]:
    return [len(case.runs) for case in results.cases]


@pytest.fixture
def ruled(fake: FakeNative, monkeypatch: pytest.MonkeyPatch) -> FakeNative:
    """The stand-in takes the rule from the text, as the native module does."""

    def plan(text, *arguments, **named):  # type: ignore[no-untyped-def]
        found = FakeNative.plan(fake, text, *arguments, **named)
        rule = found.spec.get("replications")
        if isinstance(rule, dict):
            bounds = [rule["until"]] if isinstance(rule["until"], str) else rule["until"]
            parts = [bound.rpartition(" within ") for bound in bounds]
            abouts = [part[0].removeprefix("difference of ").split(" between ") for part in parts]
            found.replications = rule.get("at_most", 50)
            found.stop = json.dumps(
                {
                    "until": [
                        {
                            "metric": about[0],
                            "between": about[1] if len(about) > 1 else None,
                            "within": float(part[2].removesuffix("%")) / 100,
                        }
                        for part, about in zip(parts, abouts, strict=True)
                    ],
                    "at_least": rule.get("at_least", 10),
                    "at_most": found.replications,
                }
            )
        return found

    monkeypatch.setattr(fake, "plan", plan)
    return fake


def test_each_case_gets_as_many_replications_as_it_needs(
    ruled: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    results = redtail.run(fake_file, out=tmp_path, until=RULE, at_least=3, at_most=50)
    looks = StopRule((), 3, 50).looks()
    # 16 flows: 16 ms and up to 10 ms of noise; 64 flows: the same noise on 64 ms.
    counts = _counts(results)
    assert all(count in looks for count in counts)
    assert min(counts[0], counts[2]) > max(counts[1], counts[3])
    for case in results.cases:
        values = case.values("queue_delay_mean")
        met = [
            estimate(values[:look]).ci95 <= 0.05 * estimate(values[:look]).mean  # type: ignore[operator]
            for look in looks
            if look <= len(values)
        ]
        assert met == [False] * (len(met) - 1) + [True]
    assert results.unsure == ()
    assert len(ruled.ran) == sum(counts)


def test_threads_and_the_store_do_not_change_the_number(
    ruled: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    arguments = {"until": RULE, "at_least": 3}
    one = redtail.run(fake_file, out=tmp_path / "one", jobs=1, **arguments)  # type: ignore[arg-type]
    four = redtail.run(fake_file, out=tmp_path / "four", jobs=4, **arguments)  # type: ignore[arg-type]
    # A store that holds more than is asked for, and one that holds less.
    redtail.run(fake_file, out=tmp_path / "more", replications=50)
    more = redtail.run(fake_file, out=tmp_path / "more", **arguments)  # type: ignore[arg-type]
    redtail.run(fake_file, out=tmp_path / "less", replications=2)
    less = redtail.run(fake_file, out=tmp_path / "less", **arguments)  # type: ignore[arg-type]
    assert one.to_json() == four.to_json() == more.to_json() == less.to_json()
    assert (more.reused, less.reused) == (more.run_count, 8)


def test_an_interrupted_rule_goes_on_to_the_same_end(
    ruled: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    whole = redtail.run(fake_file, out=tmp_path / "whole", until=RULE, at_least=3)

    def interrupt(number: int) -> None:
        if number == made + 15:
            raise KeyboardInterrupt

    made = len(ruled.ran)
    ruled.before_run = interrupt
    with pytest.raises((Cancelled, RunError, KeyboardInterrupt)):
        redtail.run(fake_file, out=tmp_path / "cut", until=RULE, at_least=3, jobs=1)
    ruled.before_run = lambda number: None
    rest = redtail.run(fake_file, out=tmp_path / "cut", until=RULE, at_least=3)
    assert rest.to_json() == whole.to_json()
    assert rest.reused > 12


def test_a_case_that_never_gets_sure_ends_and_is_named(
    ruled: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    rule = "queue_delay_std within 1 %"
    results = redtail.run(fake_file, out=tmp_path, until=rule, at_least=3, at_most=6)
    assert _counts(results) == [6] * 4
    assert len(results.unsure) == 4
    assert results.unsure[0].startswith(
        "tail drop, ftp flows 16 after 6 replications: queue_delay_std within 1 %: ±"
    )


def test_all_bounds_have_to_hold(ruled: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    rule = ["goodput within 50 %", "queue_delay_std within 1 %"]
    results = redtail.run(fake_file, out=tmp_path, until=rule, at_least=2, at_most=4)
    assert _counts(results) == [4] * 4


def test_a_bound_without_an_interval_does_not_hold(
    ruled: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    for bound, why in (
        ("ftp.goodput within 1 %", "no interval, all 4 replications are equal"),
        ("mark within 1 %", "no interval, all 4 replications are 0"),
    ):
        done = redtail.run(fake_file, out=tmp_path, until=bound, at_least=2, at_most=4)
        assert _counts(done) == [4] * 4
        assert done.unsure[0] == f"tail drop, ftp flows 16 after 4 replications: {bound}: {why}"


def test_a_difference_is_known_before_both_of_its_cases_end(
    ruled: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    rule = "difference of queue_delay_mean between RED and tail drop within 20 %"
    results = redtail.run(fake_file, out=tmp_path, until=rule, at_least=3, at_most=50)
    looks = StopRule((), 3, 50).looks()
    counts = dict(zip([case.title for case in results.cases], _counts(results), strict=True))
    for flows in (16, 64):
        titles = [f"{queue}, ftp flows {flows}" for queue in ("RED", "tail drop")]
        assert counts[titles[0]] == counts[titles[1]]
        red, drop = (next(c for c in results.cases if c.title == title) for title in titles)
        met = []
        for look in looks:
            if look <= counts[titles[0]]:
                one, two = (case.values("queue_delay_mean")[:look] for case in (red, drop))
                found = paired_difference(one, two)
                assert found.ci95 is not None
                met.append(found.ci95 <= 0.2 * sum(two) / look)
        assert met == [False] * (len(met) - 1) + [True]
    # The same noise is a smaller share of the mean with 64 flows.
    assert counts["RED, ftp flows 16"] > counts["RED, ftp flows 64"]
    assert results.unsure == ()


def test_a_difference_that_is_never_known_is_named(
    ruled: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    rule = ["difference of queue_delay_mean between RED and tail drop within 1 %", RULE]
    results = redtail.run(fake_file, out=tmp_path, until=rule, at_least=3, at_most=6)
    assert _counts(results) == [6] * 4
    about = "after 6 replications: difference of queue_delay_mean between RED and tail drop"
    named = [line for line in results.unsure if about in line]
    assert [line.partition(" after ")[0] for line in named] == [
        f"RED, ftp flows {flows} less tail drop, ftp flows {flows}" for flows in (16, 64)
    ]
    equal = "difference of queue_length_mean between RED and tail drop within 1 %"
    done = redtail.run(fake_file, out=tmp_path, until=equal, at_least=3, at_most=4)
    assert all("no interval" in line for line in done.unsure)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("RED and CoDel", "no factor has these two settings; accepted: two labels of one of"),
        ("RED and 16", "no factor has these two settings"),
        ("RED and RED", "no factor has these two settings"),
    ],
)
def test_a_difference_of_what_is_no_setting_is_refused(
    ruled: FakeNative, fake_file: Path, pair: str, said: str
) -> None:
    with pytest.raises(SpecError, match=said):
        redtail.run(fake_file, until=f"difference of loss between {pair} within 5 %")
    assert ruled.ran == []


def test_labels_with_and_are_told_apart() -> None:
    labels = ("RED and more", "tail", "RED", "more and tail")
    cases = [Case({}, {"q": label}) for label in labels]
    rule = StopRule((Bound("loss", 0.05, "RED and more and tail"),), 10, 50)
    with pytest.raises(SpecError, match="several factors have"):
        pairs(rule, cases)
    (pair,) = pairs(rule, cases[:2])
    assert (pair.first, pair.second) == (0, 1)


def test_a_rule_on_a_difference_runs(tmp_path: Path) -> None:
    rule = "difference of loss between RED and tail drop within 1 %"
    short = {"duration": "4 s", "warmup": "3 s"}
    results = redtail.run(
        ROOT / "examples/quickstart.toml",
        set=short,
        until=rule,
        at_least=2,
        at_most=2,
        out=tmp_path,
    )
    (line,) = results.unsure
    assert line.startswith(f"RED less tail drop after 2 replications: {rule}: ")
    with pytest.raises(SpecError, match=r"no run has the metric lss; nearest: loss"):
        redtail.check(ROOT / "examples/quickstart.toml", until=rule.replace("loss", "lss"))
    with pytest.raises(SpecError, match="does not say between which settings"):
        redtail.check(ROOT / "examples/quickstart.toml", until="difference of loss within 5 %")


def test_a_rule_about_no_metric_is_refused(
    ruled: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match=r"no run has the metric delay; nearest: queue_delay_"):
        redtail.run(fake_file, out=tmp_path, until="delay within 5 %", at_least=2)
    assert len(ruled.ran) == 8
    with pytest.raises(SpecError, match="exclude each other"):
        redtail.check(fake_file, until=RULE, replications=3)


def test_a_metric_that_cannot_be_is_refused_before_any_run(tmp_path: Path) -> None:
    examples = ROOT / "examples"
    for file, metric, accepted in (
        ("quickstart", "queue_delay_p98", "queue_delay_p99"),
        ("quickstart", "ftp.godput", "ftp.goodput"),
        ("quickstart", "return.loss", "loss"),  # no queue on the way back
        ("quickstart", "phase1.loss", "loss"),
        ("chain", "loss", "hop1.loss"),
        ("congested-return", "return.delay", "return.queue_delay_mean"),
    ):
        with pytest.raises(SpecError, match=f"no run has the metric {metric}; nearest") as caught:
            redtail.run(examples / f"{file}.toml", until=f"{metric} within 5 %", out=tmp_path / "r")
        assert accepted in str(caught.value).partition("nearest: ")[2].split(", ")
        assert caught.value.key == "replications.until"
    assert not (tmp_path / "r").exists()
    redtail.check(examples / "congested-return.toml", until="return.download.loss within 5 %")


def test_a_rule_may_be_about_a_metric_of_the_queue() -> None:
    example = ROOT / "examples/quickstart.toml"
    queue = 'bottleneck.queue={ kind = "fq-codel" }'
    redtail.check(example, set=[queue], until="queue.flows_active within 5 %")
    with pytest.raises(SpecError, match=r"metric queue\.flow_active; nearest: queue\.flows_active"):
        redtail.check(example, set=[queue], until="queue.flow_active within 5 %")
    with pytest.raises(SpecError, match=r"no run has the metric ftp\.mos; "):
        redtail.check(example, until="ftp.mos within 5 %")  # there are no calls
    # A queue of the user's own names its metrics itself.
    own = ROOT / "examples/python-queue.toml"
    redtail.check(own, until="queue.anything within 5 %")


def test_metrics_of_runs_are_among_those_that_can_be() -> None:
    """Every name that runs of the examples have is known, and every one that is known occurs."""
    seen = set()
    for file in sorted((ROOT / "examples").glob("*.toml")):
        plan = redtail.check(file)
        scenario = json.loads(plan.example(0))
        if "phases" not in scenario:
            scenario |= {"duration": "20 s", "warmup": "1 s"}
        text = json.dumps(scenario)
        outcome = batches.run_one(text, None, plan.queues or None, plan.traces or None)
        known = Measured.of([scenario])
        assert known is not None
        assert [name for name in outcome.metrics if name not in known] == [], file
        seen |= {names.base(name) for name in outcome.metrics}
    elsewhere = (
        "queues",
        "groups of programs",
        "runs in real time",
        "runs in a virtual machine",
    )
    listed = {each.name for each in names.DEFINITIONS if not each.of.startswith(elsewhere)}
    # No transfer of the examples is over so soon, programs of users count what their endpoints
    # deliver, and results add the load.
    assert listed - seen == {
        "completion_time_mean",
        "completion_time_p50",
        "completion_time_p95",
        "completion_time_p99",
        "delivered_rate",
        "offered_load",
    }


def test_runs_that_fail_are_left_out_and_not_tried_again(
    ruled: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    def fail(number: int) -> None:
        if number == 1:
            raise ValueError("no")

    ruled.before_run = fail
    with pytest.warns(RedtailWarning, match="no"):
        results = redtail.run(
            fake_file, out=tmp_path, until=RULE, at_least=3, at_most=5, keep_going=True, jobs=1
        )
    assert results.failed == 1
    assert len(ruled.ran) == results.run_count + 1


def test_the_command_takes_a_rule(ruled: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    arguments = ["--until", RULE, "--at-least", "3", "--at-most", "4"]
    told = CliRunner().invoke(app, ["check", str(fake_file), *arguments])
    assert "4 cases, 3 to 4 replications until queue_delay_mean within 5 %, 12 to 16 runs" in (
        told.stdout
    )
    done = CliRunner().invoke(
        app, ["run", str(fake_file), *arguments, "--no-figures", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    assert "unsure:  tail drop, ftp flows 16 after 4 replications: queue_del" in done.stdout


def _t(skewness: np.ndarray, n: int) -> np.ndarray:
    """What stands for Student's t in the interval of a skewed sample, for many at once."""
    t = stdtrit(n - 1, 0.975)
    a = skewness * n / (n + 10) / math.sqrt(n)
    ends = [abs(np.cbrt(1 + a * (side - a / 6)) - 1) * 3 / abs(a) for side in (-t, t)]
    return np.maximum(t, np.maximum(*ends))


def test_many_intervals_at_once_are_those_of_one_at_a_time() -> None:
    for values in np.random.default_rng(3).exponential(1.0, (20, 12)):
        apart = values - values.mean()
        variance = (apart**2).mean()
        half = _t((apart**3).mean() / variance**1.5, 12) * math.sqrt(variance / 11)
        assert estimate(values.tolist()).ci95 == pytest.approx(float(half))


@pytest.mark.parametrize(("at_least", "covers", "within"), [(10, 0.935, 0.96), (5, 0.925, 0.95)])
@pytest.mark.parametrize("law", ["normal", "log-normal"])
def test_what_is_stated_of_intervals_after_stopping_holds(
    at_least: int, covers: float, within: float, law: str
) -> None:
    """Coverage of the interval after stopping, and of the bound itself, for a known true mean of 1.

    20 000 experiments at each of nine coefficients of variation: the standard error of a coverage
    of 0.93 is 0.0018, so that one that is truly 0.5 points above its bound falls below by chance
    in less than 0.3 % of cases. The bounds were set after a simulation with another seed.
    """
    experiments, most, bound = 20_000, 50, 0.05
    draw = np.random.default_rng(50)
    looks = StopRule((Bound("x", bound),), at_least, most).looks()
    worst, worst_within = 1.0, 1.0
    for variation in (0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.10, 0.12, 0.15):
        noise = draw.standard_normal((experiments, most))
        if law == "normal":
            values = 1 + variation * noise
        else:
            spread = math.sqrt(math.log1p(variation**2))
            values = np.exp(spread * noise - spread**2 / 2)
        sums, squares, cubes = (np.cumsum(values**power, axis=1) for power in (1, 2, 3))
        mean = np.full(experiments, math.nan)
        half = np.full(experiments, math.nan)
        going = np.full(experiments, True)
        for n in looks:
            now = sums[:, n - 1] / n
            variance = np.maximum(squares[:, n - 1] / n - now**2, 0)
            third = cubes[:, n - 1] / n - 3 * now * squares[:, n - 1] / n + 2 * now**3
            width = _t(third / variance**1.5, n) * np.sqrt(variance / (n - 1))
            mean[going], half[going] = now[going], width[going]
            going &= width > bound * np.abs(now)
        worst = min(worst, float(np.mean(np.abs(mean - 1) <= half)))
        stopped = ~going
        if stopped.mean() > 0.05:
            worst_within = min(worst_within, float(np.mean(np.abs(mean - 1)[stopped] <= bound)))
    assert worst >= covers
    assert worst_within >= within


@pytest.mark.parametrize("law", ["normal", "log-normal"])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_what_is_stated_of_differences_after_stopping_holds(correlation: float, law: str) -> None:
    """The same of the paired difference of two settings, whose true means are 1.3 and 1.

    20 000 experiments at each of nine standard deviations of the difference, as above: a coverage
    that is truly 0.5 points above its bound falls below by chance in less than 0.3 % of cases.
    """
    experiments, most, bound = 20_000, 50, 0.05
    draw = np.random.default_rng(52)
    looks = StopRule((Bound("x", bound, "A and B"),), 10, most).looks()
    worst, worst_within = 1.0, 1.0
    for deviation in (0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.10, 0.12, 0.15):
        noise = draw.standard_normal((2, experiments, most))
        noise[0] = correlation * noise[1] + math.sqrt(1 - correlation**2) * noise[0]
        # Of each setting, so that the difference has this standard deviation.
        variation = deviation / math.sqrt(1.3**2 + 1 - 2 * 1.3 * correlation)
        if law == "normal":
            values = 1 + variation * noise
        else:
            spread = math.sqrt(math.log1p(variation**2))
            values = np.exp(spread * noise - spread**2 / 2)
        gap = 1.3 * values[0] - values[1]
        sums, squares = (np.cumsum(gap**power, axis=1) for power in (1, 2))
        references = np.cumsum(values[1], axis=1)
        mean = np.full(experiments, math.nan)
        half = np.full(experiments, math.nan)
        going = np.full(experiments, True)
        for n in looks:
            now = sums[:, n - 1] / n
            variance = np.maximum(squares[:, n - 1] / n - now**2, 0)
            width = stdtrit(n - 1, 0.975) * np.sqrt(variance / (n - 1))
            mean[going], half[going] = now[going], width[going]
            going &= width > bound * np.abs(references[:, n - 1] / n)
        worst = min(worst, float(np.mean(np.abs(mean - 0.3) <= half)))
        stopped = ~going
        if stopped.mean() > 0.05:
            within = np.abs(mean - 0.3)[stopped] <= bound
            worst_within = min(worst_within, float(np.mean(within)))
    assert worst >= 0.925
    assert worst_within >= 0.95
