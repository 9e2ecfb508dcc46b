"""Metrics of the table [metrics], which follow from others by formulas."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import redtail
from redtail import metrics as names
from redtail.analysis.case import CaseResult
from redtail.analysis.results import Results
from redtail.derived import DerivedMetric, parse, with_derived
from redtail.errors import SpecError
from redtail.formula import Formula
from redtail.store import segments
from redtail.store.folders import StoredRun

EXPERIMENT = """
name = "Two controls"
duration = "3 s"
warmup = "1 s"
replications = 3

[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }

[factors]
"bottleneck.queue.limit" = ["20 packets", "60 packets"]

[[traffic]]
name = "cubic"
kind = "bulk"
flows = 1
start = "uniform 0..0.5 s"
tcp = { preset = "cubic" }

[[traffic]]
name = "new-reno"
kind = "bulk"
flows = 1
start = "uniform 0..0.5 s"
tcp = { preset = "newreno" }
"""
METRICS = """
[metrics]
rest = "1 - share"
gap = { formula = "queue_delay_p95 - queue_delay_mean" }

[metrics.share]
formula = "cubic.goodput / (cubic.goodput + 'new-reno.goodput')"
title = "Share of CUBIC"
unit = "%"
"""


def _made(*given: Mapping[str, str]) -> tuple[DerivedMetric, ...]:
    return parse(given)


def _results(
    folder: Path, values: Mapping[str, Sequence[Mapping[str, float]]], *given: Mapping[str, str]
) -> Results:
    derived = _made(*given)
    cases = []
    for label, measured in values.items():
        runs = {
            number: StoredRun(f"{number:016}", folder, dict(metrics), {}, {})
            for number, metrics in enumerate(measured)
        }
        labels = {"bottleneck.queue": label}
        cases.append(CaseResult.of(dict(labels), labels, runs, (), derived=derived))
    return Results(
        name="made up",
        description="",
        factors=["bottleneck.queue"],
        cases=tuple(cases),
        folder=folder,
        derived=derived,
    )


SHARE = {"name": "share", "formula": "a.goodput / goodput", "unit": "%"}


def test_a_share_is_computed_replication_by_replication_and_has_an_interval(tmp_path: Path) -> None:
    runs = [{"a.goodput": a, "goodput": g} for a, g in ((1.0, 4.0), (3.0, 4.0), (2.0, 8.0))]
    results = _results(tmp_path, {"x": runs}, SHARE)
    assert results.cases[0].values("share") == [0.25, 0.75, 0.25]
    found = results.cases[0].metric("share")
    assert found.mean == pytest.approx(5 / 12)
    # The mean of the ratios, not the ratio of the means.
    assert found.mean != pytest.approx((6 / 3) / (16 / 3))
    assert found.n == 3


def test_a_value_is_undefined_without_an_input_and_with_division_by_zero(tmp_path: Path) -> None:
    runs = [
        {"a.goodput": 1.0, "goodput": 0.0},
        {"goodput": 2.0},
        {"a.goodput": 1.0, "goodput": 2.0},
    ]
    results = _results(tmp_path, {"x": runs}, SHARE)
    values = results.cases[0].values("share")
    assert [value == value for value in values] == [False, False, True]
    assert results.cases[0].metric("share").n == 1


def test_derived_metrics_are_selected_shown_compared_and_drawn(tmp_path: Path) -> None:
    values = {
        "x": [{"a.goodput": 1.0 + n / 10, "goodput": 4.0} for n in range(6)],
        "y": [{"a.goodput": 2.0 + n / 7, "goodput": 4.0} for n in range(6)],
    }
    results = _results(tmp_path, values, SHARE)
    assert results.select()[0] == "share"
    assert results.select(["sh*"]) == ["share"]
    assert names.head(results.select("share")[0]) == "share\n%"
    (row,) = results.compare("share", baseline="x")
    assert names.describe(row.metric).shown_unit == "%"
    assert row.difference.mean == pytest.approx((1 + 15 * (1 / 7 - 1 / 10) / 6) / 4)
    from redtail.display.values import metric_figure

    figure = metric_figure(results, results.select("share")[0])
    assert figure.axes[0].get_xlabel() == "a.goodput / goodput (%)"
    redtail_figure = results.figure("share", kind="difference")
    assert redtail_figure.axes
    columns = results.to_arrow("replications").schema
    assert columns.field("share").metadata[b"unit"] == b"1"


def test_a_large_campaign_computes_them_from_columns(tmp_path: Path) -> None:
    table = segments.RunTable(tmp_path)
    numbers = [(1.0, 4.0), (3.0, 0.0), (2.0, 8.0)]
    for place, (a, g) in enumerate(numbers):
        table.add(f"{place:016}", {"a.goodput": a, "goodput": g}, "{}")
    runs = segments.CaseRuns(table, {0: 0, 1: 1, 2: 2})
    double = {"name": "double", "formula": "2 * share"}
    case = CaseResult.of({}, {}, runs, (), derived=_made(double, SHARE))
    assert [value for value in case.values("double") if value == value] == [0.5, 0.5]
    assert case.runs[0].metrics["share"] == 0.25
    assert "share" not in case.runs[1].metrics
    assert list(case.metrics) == ["a.goodput", "goodput", "share", "double"]


def test_what_one_of_its_inputs_has_no_interval_for_it_has_none_for(tmp_path: Path) -> None:
    given = {"name": "wait", "formula": "2 * a.ack_wait_max"}
    runs = [{"a.ack_wait_max": 1.0 + n} for n in range(10)]
    found = _results(tmp_path, {"x": runs}, given).cases[0].metric("wait")
    assert (found.ci95, found.no_interval) == (None, "an extreme of each run")


@pytest.mark.parametrize(
    ("formula", "unit", "shown", "scale"),
    [
        ("a.goodput / goodput", None, "", 1.0),
        ("a.queue_delay_p99 - queue_delay_p99", None, "ms", 1e3),
        ("max(a.goodput, goodput)", None, "Mbit/s", 1e-6),
        ("a.goodput / goodput", "%", "%", 100.0),
        ("8 * a.page_bytes / 1", "bytes", "bytes", 1.0),
        ("goodput * queue_delay_p99", None, "bit", 1.0),
    ],
)
def test_the_unit_follows_from_the_formula(
    formula: str, unit: str | None, shown: str, scale: float
) -> None:
    given = {"name": "x", "formula": formula} | ({} if unit is None else {"unit": unit})
    (found,) = _made(given)
    assert (found.name.about.shown_unit, found.name.about.scale) == (shown, scale)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "x", "formula": "goodput +"}, "invalid syntax"),
        ({"name": "x", "formula": "goodput ** 2"}, r"'goodput \*\* 2'; accepted: numbers, names"),
        ({"name": "x", "formula": "__import__('os')"}, "accepted: numbers, names of metrics"),
        ({"name": "x", "formula": "1" + "+1" * 300}, "601 characters; accepted: up to 500"),
        ({"name": "x", "formula": "9" * 400}, "accepted: numbers"),
        ({"name": "x", "formula": "(" * 240 + "1" + ")" * 240}, "formula = "),
        ({"name": "goodput", "formula": "1"}, "redtail uses this name itself"),
        ({"name": "a.b", "formula": "1"}, "cannot be the name of a metric"),
        ({"name": "if", "formula": "1"}, "cannot be the name of a metric"),
        ({"name": "x", "formula": "goodput - queue_delay_p99"}, "of bit/s and s; accepted"),
        (
            {"name": "x", "formula": "queue_delay_p99 - queue_delay_p50", "unit": "%"},
            "has the unit s; accepted: s, ms, us",
        ),
        ({"name": "x", "formula": "loss", "unit": "furlongs"}, "'furlongs': accepted: 1, %, s"),
    ],
)
def test_what_is_no_metric_is_refused_with_its_place(given: dict[str, str], said: str) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        _made({**given, "place": "file.toml:7: "})
    assert str(caught.value).startswith(f"file.toml:7: metrics.{given['name']}")
    assert caught.value.key == f"metrics.{given['name']}"


def test_a_circle_is_refused() -> None:
    circle = [{"name": "a", "formula": "1 + b"}, {"name": "b", "formula": "2 * a"}]
    with pytest.raises(
        SpecError, match=r"metrics\.a = '1 \+ b': follows from itself \(a -> b -> a\)"
    ):
        _made(*circle)


def test_formulas_may_refer_to_ones_further_below() -> None:
    found = _made({"name": "b", "formula": "2 * a"}, {"name": "a", "formula": "loss + 1"})
    assert with_derived({"loss": 0.5}, found)["b"] == 3.0
    assert found[1].name.inputs == ("loss",)


def test_a_name_survives_copies() -> None:
    (found,) = _made(SHARE)
    again = pickle.loads(pickle.dumps(found.name))
    assert (again, again.about, again.inputs) == (found.name, found.name.about, found.name.inputs)
    assert json.dumps({found.name: 1}) == '{"share": 1}'


def test_a_formula_has_names_in_quotes() -> None:
    formula = Formula("'a-1.goodput' / return.loss")
    assert formula.names == ("a-1.goodput", "return.loss")
    assert formula({"a-1.goodput": 3.0, "return.loss": 2.0}) == 1.5


def test_check_finds_what_no_run_has(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(EXPERIMENT + METRICS)
    plan = redtail.check(path)
    assert [str(each.name) for each in plan.derived] == ["gap", "share", "rest"]

    path.write_text(EXPERIMENT + '\n[metrics]\nx = "cubic.godput / goodput"\n')
    line = path.read_text().splitlines().index('x = "cubic.godput / goodput"') + 1
    with pytest.raises(
        SpecError,
        match=rf"two\.toml:{line}: metrics\.x = 'cubic.godput / goodput': no run has the metric "
        r"cubic\.godput; nearest: cubic\.goodput",
    ):
        redtail.check(path)
    path.write_text(EXPERIMENT + "\n[metrics]\nx = 3\n")
    with pytest.raises(SpecError, match=r"metrics\.x = 3: expected a formula such as"):
        redtail.check(path)
    path.write_text(EXPERIMENT + '\n[metrics.x]\nformulae = "loss"\n')
    with pytest.raises(
        SpecError, match=r'metrics\.x\.formulae: unknown key.*did you mean "formula"'
    ):
        redtail.check(path)
    path.write_text(EXPERIMENT + METRICS)
    with pytest.raises(SpecError, match=r"report\.metrics: no run has 'shar'; nearest: share"):
        redtail.check(path, set=['report.metrics=["shar"]'])


def test_they_make_no_new_runs_and_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(EXPERIMENT)
    plain = redtail.run(path, out=tmp_path / "runs")
    path.write_text(EXPERIMENT + METRICS)
    first = redtail.run(path, out=tmp_path / "runs", metrics="share,goodput")
    assert (first.reused, first.run_count, first.replaced) == (6, 6, 0)
    assert [run.key for case in first.cases for run in case.runs.values()] == [
        run.key for case in plain.cases for run in case.runs.values()
    ]
    for case in first.cases:
        for share, rest, one, two in zip(
            *map(case.values, ("share", "rest", "cubic.goodput", "new-reno.goodput")), strict=True
        ):
            assert share == one / (one + two)
            assert rest == 1 - share
    again = redtail.load(first.folder)
    assert again.cases[0].metric("share") == first.cases[0].metric("share")
    assert names.describe(again.select("share")[0]).title == "Share of CUBIC"
    assert first.to_json() == again.to_json()
    assert first.as_json()["units"]["gap"] == "s"
    assert "gap_s" in again.to_pandas().columns
    assert set(again.to_pandas("cases")["metric"]) >= {"share", "rest", "gap"}

    other = METRICS.replace("cubic.goodput / (", "2 * cubic.goodput / (")
    path.write_text(EXPERIMENT + other)
    doubled = redtail.run(path, out=tmp_path / "runs")
    assert doubled.reused == 6
    assert doubled.cases[0].values("share") == [2 * v for v in first.cases[0].values("share")]


def test_a_stop_rule_may_be_about_one(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(EXPERIMENT + METRICS)
    results = redtail.run(
        path, out=tmp_path / "runs", until="share within 0.001 %", at_least=2, at_most=3
    )
    assert all("share within 0.001 %: ±" in line for line in results.unsure)
    assert len(results.unsure) == 2
    with pytest.raises(SpecError, match="no run has the metric shere"):
        redtail.check(path, until="shere within 5 %")


def test_a_typed_experiment_has_them(tmp_path: Path) -> None:
    experiment = redtail.Experiment(
        name="typed",
        duration="3 s",
        warmup="2 s",
        replications=2,
        bottleneck=redtail.Hop(
            rate="10 Mbit/s",
            delay="10 ms",
            queue=redtail.TailDrop(limit="20 packets"),
        ),
        traffic=[redtail.Bulk(name="ftp")],
        metrics={
            "spare": "1 - utilization",
            "lost": redtail.DerivedMetric(formula="loss", unit="%"),
        },
    )
    results = redtail.run(experiment, out=tmp_path)
    utilization = results.cases[0].values("utilization")
    assert results.cases[0].values("spare") == [1 - value for value in utilization]


@pytest.mark.parametrize(
    "wrong",
    [
        [{"name": "x", "formula": 3}],
        [{"name": "x", "formula": "open('x')"}],
        [{"formula": "loss"}],
        "loss",
    ],
)
def test_results_with_a_wrong_formula_are_refused(tmp_path: Path, wrong: object) -> None:
    results = _results(tmp_path, {"x": [{"a.goodput": 1.0, "goodput": 2.0}]}, SHARE)
    from redtail.store.sealing import sealed

    index = {
        "format": 1,
        "experiment": "x",
        "description": "",
        "factors": [],
        "cases": [],
        "files": {},
        "metrics": wrong,
    }
    assert results.derived
    (tmp_path / "results.json").write_bytes(sealed(index))
    with pytest.raises(redtail.StoreError):
        redtail.load(tmp_path)


def test_a_tolerance_may_be_about_one(tmp_path: Path) -> None:
    from redtail.analysis.moved import diff
    from redtail.analysis.tolerances import Tolerances

    def made(more: float) -> Results:
        runs = [{"a.goodput": 1.0 + n / 10 + more, "goodput": 4.0} for n in range(6)]
        return _results(tmp_path, {"x": runs}, SHARE)

    old, new = made(0.0), made(0.2)
    assert [row.verdict for row in diff(old, new, metrics="share")] == ["moved"]
    limits = Tolerances({"share": "10 points"}, own=old.metric_names)
    (row,) = diff(old, new, metrics="share", tolerances=limits)
    assert row.verdict == "within tolerance"
    with pytest.raises(SpecError, match=r"there is no metric shale; .*nearest: share"):
        Tolerances({"shale": "1 %"}, own=old.metric_names)
