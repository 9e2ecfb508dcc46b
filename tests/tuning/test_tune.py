"""`redtail tune`: what is searched, by which seeds it is judged, and what comes out."""

from __future__ import annotations

import json
import signal
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import redtail
from redtail import facts
from redtail.analysis.stats import Estimate
from redtail.catalog import Catalog
from redtail.cli import app
from redtail.tuning import aims
from redtail.tuning.bench import Queue
from redtail.tuning.found import Candidate, front
from redtail.tuning.space import Choices, Range, axes

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(facts.schema())

RED = {"kind": "red", "limit": "60 packets", "min_th": "10 packets", "max_th": "30 packets"}

FILE = """
# Two loads.
name = "Small"
duration = "12 s"
warmup = "4 s"
replications = 2
seed = 5

[bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = { kind = "red", limit = "60 packets", min_th = "10 packets", max_th = "30 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 8
tcp = "sack"
start = "uniform 0..1 s"

[factors]
"traffic.ftp.flows" = [4, 12] # the loads
"""

WANTED: dict[str, Any] = {
    "queue": "red",
    "vary": "min_th=2..28packets,max_p",
    "objective": "min queue_delay_mean",
    "subject_to": "utilization >= 0.9",
    "trials": 12,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tune")


@pytest.fixture(scope="module")
def file(folder: Path) -> Path:
    path = folder / "small.toml"
    path.write_text(FILE)
    return path


def tuned_of(file: Path, **changes: Any) -> redtail.Tuned:
    with warnings.catch_warnings():  # a test reads them in the result
        warnings.simplefilter("ignore", redtail.RedtailWarning)
        return redtail.tune(file, **{**WANTED, "out": file.parent / "runs", **changes})


@pytest.fixture(scope="module")
def tuned(file: Path) -> Iterator[redtail.Tuned]:
    yield tuned_of(file)


def test_the_best_queue_is_better_than_that_of_the_file_with_other_seeds(
    tuned: redtail.Tuned,
) -> None:
    best, own = tuned.reached(), tuned.reached("red")
    assert best["queue_delay_mean"].mean < 0.7 * own["queue_delay_mean"].mean
    assert best["utilization"].mean >= 0.9
    for case, difference in tuned.results.differences(
        "queue_delay_mean", factor="bottleneck.queue", baseline="red"
    ):
        assert difference.high < 0, case.title


def test_the_worst_load_counts(tuned: redtail.Tuned, file: Path) -> None:
    best, worst = tuned.reached(), [0.0, 1.0]
    for case in tuned.results.cases:
        if case.labels["bottleneck.queue"] == "red tuned":
            worst[0] = max(worst[0], case.metric("queue_delay_mean").mean)
            worst[1] = min(worst[1], case.metric("utilization").mean)
    assert [best["queue_delay_mean"].mean, best["utilization"].mean] == worst
    of_all = [
        case.metric("queue_delay_mean").mean
        for case in tuned.results.cases
        if case.labels["bottleneck.queue"] == "red tuned"
    ]
    mean = aims.objectives("min queue_delay_mean", None)[0].reached(
        [c for c in tuned.results.cases if c.labels["bottleneck.queue"] == "red tuned"], "mean"
    )
    assert mean.mean == pytest.approx(sum(of_all) / 2)
    assert mean.mean < worst[0]


def test_search_finalists_and_report_have_seeds_of_their_own(
    tuned: redtail.Tuned, file: Path
) -> None:
    def seeds(name: str) -> set[int]:
        found = (file.parent / "runs" / name).glob("*/scenario.json")
        return {json.loads(path.read_text())["seed"] for path in found}

    assert seeds("small-red-search") == {5, 6}
    assert seeds("small-red-tuned") == {7}
    assert {case.metric("utilization").n for case in tuned.results.cases} == {4}


def test_candidates_meet_the_same_workload(file: Path, tuned: redtail.Tuned) -> None:
    found = (file.parent / "runs" / "small-red-search").glob("*/scenario.json")
    others = set()
    for path in found:
        scenario = json.loads(path.read_text())
        del scenario["bottleneck"]["queue"]
        others.add(json.dumps(scenario, sort_keys=True))
    # Two loads, with two replications of the search and four of the finalists.
    assert len(others) == 2 * (2 + 4)


def test_the_same_search_makes_no_run_a_second_time(tuned: redtail.Tuned, file: Path) -> None:
    states = []
    again = tuned_of(file, progress=lambda state: states.append((state.done, state.reused)))
    assert states[-1][0] == states[-1][1] > 0
    assert again.to_dict() == tuned.to_dict()


def test_an_interrupted_search_goes_on_to_the_same_end(
    tuned: redtail.Tuned, file: Path, tmp_path: Path
) -> None:
    made = []

    def interrupt(state: redtail.Progress) -> None:
        if state.done == 40:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(redtail.Cancelled, match=r"of about .* the same command goes on") as caught:
        tuned_of(file, out=tmp_path, progress=interrupt)
    assert 40 <= caught.value.kept < 60
    again = tuned_of(file, out=tmp_path, progress=lambda state: made.append(state.reused))
    assert made[-1] >= 40
    assert again.to_dict() == tuned.to_dict()


def test_the_result_is_a_file_that_repeats_the_report(tuned: redtail.Tuned, tmp_path: Path) -> None:
    path = tuned.write(tmp_path / "found.toml")
    assert "# the loads" in path.read_text()
    plan = redtail.check(path)
    assert plan.name == tuned.results.name
    assert [case.labels for case in plan.cases] == [case.labels for case in tuned.results.cases]
    results = redtail.run(path, out=tuned.results.folder.parent)
    assert results.reused == results.run_count
    assert [case.metric("queue_delay_mean") for case in results.cases] == [
        case.metric("queue_delay_mean") for case in tuned.results.cases
    ]


def test_overrides_are_in_the_file(file: Path, tmp_path: Path) -> None:
    sets = ["traffic.ftp.flows=[3]", "bottleneck.rate=3 Mbit/s", "traffic.ftp.tcp=linux"]
    found = tuned_of(
        file, out=tmp_path, trials=1, subject_to=(), set=sets, replications=2, vary="max_p=0.3..0.6"
    )
    plan = redtail.check(redtail.Toml(found.toml))
    scenario = json.loads(plan.scenario(0, 0))
    assert scenario["bottleneck"]["rate"] == "3 Mbit/s"
    assert scenario["traffic"][0]["flows"] == 3
    assert scenario["traffic"][0]["tcp"]["preset"] == "linux"
    assert len(plan.cases) == 2  # the queue of the file, and the one that was found
    results = redtail.run(redtail.Toml(found.toml), out=tmp_path)
    assert results.reused == results.run_count


def test_a_label_ends_no_comment_of_the_file(tuned: redtail.Tuned) -> None:
    named = replace(tuned, queue=replace(tuned.queue, label="a\nduration = 3\n\x1b[31m"))
    text = named.toml
    assert "# a\\u000aduration = 3\\u000a\\u001b[31m: " in text
    assert all(sign == "\n" or sign.isprintable() for sign in text)
    redtail.check(redtail.Toml(text))


def test_an_experiment_of_typed_objects_is_searched(tmp_path: Path) -> None:
    red = redtail.Red(limit="60 packets", min_th="10 packets", max_th="30 packets")
    experiment = redtail.Experiment(
        name="Typed",
        duration="4 s",
        warmup="2 s",
        replications=1,
        bottleneck=redtail.Bottleneck(rate="4 Mbit/s", delay="20 ms", queue=red),
        traffic=[redtail.Bulk(name="ftp", flows=8, start="uniform 0..1 s")],
    )
    found = redtail.tune(
        experiment, queue=red, vary=["max_p"], objective="max goodput", trials=2, out=tmp_path
    )
    plan = redtail.check(redtail.Toml(found.toml))
    assert [case.factors["bottleneck.queue"]["kind"] for case in plan.cases] == ["red", "red"]
    assert plan.cases[1].factors["bottleneck.queue"]["max_p"] == found.parameters["max_p"]


def test_the_sensitivity_has_the_best_and_varies_one_key(tuned: redtail.Tuned) -> None:
    assert list(tuned.sensitivity) == ["min_th", "max_p"]
    for key, profile in tuned.sensitivity.items():
        assert len(profile) >= 7
        for each in profile:
            assert {**each.table, key: None} == {**tuned.queue.table, key: None}
        same = [each for each in profile if each.table == tuned.queue.table]
        assert [each.objectives for each in same] == [tuned.at_training.objectives]
        assert same[0] in tuned.insensitive(key)
        assert len(tuned.insensitive(key)) < len(profile)


def test_figures_show_the_trade_off_and_the_sensitivity(
    tuned: redtail.Tuned, tmp_path: Path
) -> None:
    from redtail.tuning import figures

    drawn = dict(figures.all_of(tuned))
    assert list(drawn) == ["trade_off", "sensitivity"]
    trade = drawn["trade_off"].axes[0]
    assert [trade.get_xlabel(), trade.get_ylabel().replace("\n", " ")] == [
        "Utilization (%)",
        "Mean queueing delay (ms)",
    ]
    best = next(line for line in trade.lines if line.get_label() == " red tuned")
    assert best.get_ydata()[0] == 1e3 * tuned.at_training.objectives[0].mean  # type: ignore[index]
    assert [axes.get_xlabel() for axes in drawn["sensitivity"].axes] == [
        "min_th (packets)",
        "max_p",
    ]
    assert [axes.get_xscale() for axes in drawn["sensitivity"].axes] == ["log", "log"]


def test_a_search_finds_red_parameters_as_good_as_the_papers(tmp_path: Path) -> None:
    """With one load and little time; docs/how-to/tune.md has the paper's own length."""
    found = tuned_of(
        ROOT / "python/redtail/studies/papers/iscc2001/ftp-64.toml",
        out=tmp_path,
        queue="REDopt",
        vary="min_th,max_p",
        subject_to="utilization >= 0.98",
        objective="min queue_delay_p95",
        set={"duration": "40 s", "warmup": "15 s"},
        replications=2,
        trials=12,
    )
    assert found.reached()["utilization"].mean >= 0.98
    against = [
        each
        for case, each in found.results.differences(
            "queue_delay_p95", factor="bottleneck.queue", baseline="REDopt"
        )
        if case.labels["bottleneck.queue"] == "REDopt tuned"
    ]
    assert len(against) == 1 and against[0].high < 0


def test_a_bound_that_nothing_keeps_is_told(file: Path, tmp_path: Path) -> None:
    found = tuned_of(
        file, out=tmp_path, trials=2, vary="max_p=0.05..0.1", subject_to="loss <= 0.0001"
    )
    assert any("no candidate of the search kept all bounds" in text for text in found.warnings)
    assert not found.to_dict()["candidates"][0]["bounds_kept"]


def test_an_end_of_a_range_is_told(file: Path, tmp_path: Path) -> None:
    found = tuned_of(file, out=tmp_path, trials=3, vary="max_p=0.05|0.1,min_th=9..10packets")
    told = f"min_th = {found.parameters['min_th']} is at an end of its range"  # either is one
    assert any(told in text for text in found.warnings)


def test_the_command_writes_a_file_and_replaces_no_other(file: Path, tuned: redtail.Tuned) -> None:
    words = ["tune", str(file), "--queue", "red", "--vary", "min_th=2..28packets,max_p"]
    words += ["--objective", "min queue_delay_mean", "--subject-to", "utilization >= 0.9"]
    words += ["--trials", "12", "--out", str(file.parent / "runs"), "--no-figures"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "found:   " + tuned.queue.toml in done.output
    assert "against red, at the load where it gains least: queue_delay_mean -" in done.output
    target = file.with_name("small-tuned.toml")
    assert target.read_text() == tuned.toml
    assert CliRunner().invoke(app, words).exit_code == 0  # its own file is replaced
    target.write_text("precious\n")
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "redtail tune has not made it" in refused.output
    assert target.read_text() == "precious\n"
    target.unlink()


def test_the_command_prints_json(file: Path, tuned: redtail.Tuned, tmp_path: Path) -> None:
    words = ["tune", str(file), "--queue", "red", "--vary", "min_th=2..28packets"]
    words += ["--vary", "max_p", "--objective", "min queue_delay_mean", "--json"]
    words += ["--subject-to", "utilization >= 0.9", "--trials", "12"]
    words += ["--out", str(file.parent / "runs"), "--write", str(tmp_path / "found.toml")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(tuned.to_json())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vary": "min_thh"}, "the queue red has no key min_thh; nearest: min_th"),
        ({"vary": "min_th,min_th"}, "min_th is given twice"),
        ({"vary": ""}, "no key is given"),
        ({"vary": "label"}, "has no key label"),
        ({"vary": "min_th=5..50"}, "min_th=5..50: its unit is missing; accepted: min_th=LOW..HIGH"),
        ({"vary": "min_th=5..50ly"}, "ly is no unit of it"),
        ({"vary": "min_th=5ms..50kB"}, "its ends have different units"),
        ({"vary": "max_p=0.1..0.5s"}, "max_p has no unit"),
        ({"vary": "max_p=0.5..0.1"}, "its ends are not in order"),
        ({"vary": "max_p=much"}, "max_p=much: no range of this key; accepted: max_p=LOW..HIGH"),
        ({"vary": "max_p=5..9"}, "no candidate of .* is valid.*max_p = .* not a probability"),
        ({"vary": "tune"}, "tune has one value"),
        ({"queue": "pie", "vary": "target"}, 'the key "limit" is missing'),
        ({"queue": "rde"}, 'neither a label nor a kind of queue; did you mean "red"'),
        ({"queue": "{kind = 3}"}, "kind is missing or unknown"),
        ({"queue": "{kind"}, "not a table in TOML"),
        ({"at": "bottleneck.return.queue"}, "small.toml: at: the experiment has no queue"),
        ({"objective": "min queue_dealy_p95"}, "nearest: queue_delay_p95"),
        ({"objective": "queue_delay_p95"}, "accepted: 'min METRIC' or 'max METRIC'"),
        ({"objective": []}, "objective: none is given"),
        ({"objective": ["min loss", "min loss"]}, "loss is given twice"),
        ({"subject_to": "utilization = 1"}, "accepted: 'METRIC >= VALUE'"),
        ({"subject_to": "utilization >= 98"}, "utilization is never beyond 0 and 1"),
        ({"subject_to": "utilization >= 98 ms"}, "ms is no unit of utilization"),
        ({"subject_to": "queue_delay_p95 <= 20"}, "queue_delay_p95 needs a unit; accepted: s, ms"),
        ({"subject_to": "loess <= 0.1"}, "no run of this experiment has the metric loess"),
        ({"trials": 0}, "trials = 0; accepted: 1 or more"),
        ({"over": "best"}, "over = 'best'; accepted: worst, mean"),
        ({"sampler": "oracle"}, "sampler = 'oracle'; accepted: tpe, nsga2, random"),
        ({"until": "loss within 5 %"}, "a search compares queues over the same replications"),
        ({"set": ['factors."bottleneck.queue.max_p"=[0.1, 0.2]']}, "cannot set the queue"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    file: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(redtail.SpecError, match=message):
        redtail.tune(file, **{**WANTED, "out": tmp_path / "runs", **changes})
    assert not (tmp_path / "runs").exists()


def test_without_optuna_the_message_says_what_to_install(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(redtail.RedtailError, match=r"pip install 'redtail\[tune\]'"):
        redtail.tune(file, **{**WANTED, "out": tmp_path})


def axes_of(vary: Any, **queue: Any) -> tuple[Any, ...]:
    def why_not(table: Any) -> str | None:
        return None if 0 < float(table.get("max_p", 0.1)) <= 1 else "no probability"

    red = next(each for each in CATALOG.queues if each.kind == "red")
    return axes(vary, red, {**RED, **queue}, CATALOG, why_not)


def test_ranges_are_read_or_follow_from_the_definitions() -> None:
    assert axes_of("min_th=5..100packets") == (Range("min_th", 5, 100, "packets", True),)
    assert axes_of("min_th=1.5ms..20ms") == (Range("min_th", 1.5, 20, "ms", False),)
    assert axes_of({"max_p": (0.1, 0.5)}) == (Range("max_p", 0.1, 0.5, "", False),)
    assert axes_of("ecn,gentle=false|limit") == (
        Choices("ecn", (False, True)),
        Choices("gentle", (False, "limit")),
    )
    (of_default,) = axes_of(["w_q"])
    assert (of_default.low, of_default.high) == (0.0002, 0.02)
    assert "the default 0.002" in of_default.text
    (of_file,) = axes_of("max_p", max_p=0.5)  # ends where it is no probability
    assert of_file.low == 0.05 and 0.99 < of_file.high <= 1
    assert "as far as it is valid" in of_file.text


def test_ranges_that_span_decades_are_logarithmic_and_numbers_are_short() -> None:
    wide, narrow = Range("a", 0.01, 1, "", False), Range("b", 10, 50, "packets", True)
    assert [wide.logarithmic, narrow.logarithmic] == [True, False]
    assert wide.points(3) == [0.01, 0.1, 1]
    assert narrow.points(3) == ["10 packets", "30 packets", "50 packets"]
    assert wide.value(0.123456) == 0.123
    assert replace(narrow, initial="12 packets").start == 12
    assert replace(narrow, initial="12 ms").start is None
    assert replace(narrow, initial="0.012 s", unit="ms").start == 12  # where the file has it
    assert Range("c", 1, 9, "packets", True).value(1) == "1 packet"


def test_a_search_begins_with_the_queue_as_it_is(tuned: redtail.Tuned) -> None:
    assert tuned.candidates[0].values == {"min_th": "10 packets", "max_p": 0.1}  # a default
    assert tuned.candidates[0].objectives == tuned.own[0].objectives
    assert [axis.start for axis in axes_of("ecn,gentle,w_q,max_p=0.2..0.5")] == [0, 1, 0.002, None]


def candidate(number: int, *values: float) -> Candidate:
    objective = aims.Aim("min a", "a", True)
    bound = aims.Aim("b >= 1", "b", False, 1.0)
    first, second = (Estimate(value, None, 1) for value in values)
    queue = Queue(str(number), {"kind": "red"})
    return Candidate(number, queue, (), (first,), (second,), ((objective,), (bound,)), True)


def test_the_front_has_what_no_other_candidate_beats() -> None:
    found = [
        candidate(0, 3.0, 2.0),
        candidate(1, 2.0, 1.0),
        candidate(2, 4.0, 2.0),  # number 0 has a smaller first value
        candidate(3, 3.0, 2.0),  # the same as number 0
        candidate(4, 5.0, 3.0),
        candidate(5, float("nan"), 9.0),
    ]
    assert [each.number for each in front(found)] == [0, 1, 4]


def test_a_bound_that_is_kept_counts_before_the_objective() -> None:
    broken, kept, worse = candidate(0, 1.0, 0.5), candidate(1, 3.0, 1.0), candidate(2, 1.0, 0.2)
    assert sorted([broken, kept, worse], key=lambda each: each.rank) == [kept, broken, worse]
    assert [broken.excess, kept.excess] == [0.5, 0.0]


LAW = """
name = "Law"
duration = "6 s"
warmup = "2 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "17 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
start = "0 s"
tcp = { preset = "cubic", growth = { c = 0.8 } }
"""


def test_the_constants_of_a_law_are_searched(tmp_path: Path) -> None:
    file = tmp_path / "law.toml"
    file.write_text(LAW)
    tuned = redtail.tune(
        file,
        queue="cubic",
        at="traffic.ftp.tcp.growth",
        vary="beta=0.3..0.9",
        objective="max utilization",
        trials=6,
        out=tmp_path / "runs",
    )
    # The buffer is the product of the path, so a reduction below a half lets the link idle.
    assert tuned.parameters["beta"] > 0.45
    own = tuned.own[0].queue.table
    assert own == {"kind": "cubic", "c": 0.8}  # the law of the file, without its defaults
    text = tuned.write(tmp_path / "found.toml").read_text()
    assert "traffic.ftp.tcp.growth" in text
    again = redtail.run(tmp_path / "found.toml", out=tmp_path / "runs")
    assert len(again.cases) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vary": "betta"}, "the law cubic has no key betta; nearest: beta; accepted: c, beta, "),
        ({"queue": "cubik"}, 'neither a label nor a kind of law; did you mean "cubic"'),
        ({"at": "traffic.ftp.tcp.growht"}, "at: the experiment has no queue traffic.ftp.tcp"),
        ({"vary": "beta=1.2..3"}, "no candidate of .* is valid.*beta = .* is outside its range"),
    ],
)
def test_what_cannot_be_searched_of_a_law_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    file = tmp_path / "law.toml"
    file.write_text(LAW)
    wanted: dict[str, Any] = {"queue": "cubic", "vary": "beta", "objective": "max utilization"}
    wanted |= {"at": "traffic.ftp.tcp.growth", "out": tmp_path / "runs", **changes}
    with pytest.raises(redtail.SpecError, match=message):
        redtail.tune(file, **wanted)


def test_a_range_of_a_constant_follows_from_its_default_as_far_as_it_is_valid() -> None:
    cubic = next(law for _, law in CATALOG.tcp_laws if law.kind == "cubic")

    def why_not(table: Any) -> str | None:
        return None if 0.05 <= float(table.get("beta", 0.7)) <= 0.95 else "outside its range"

    (axis,) = axes("beta", cubic, {"kind": "cubic"}, CATALOG, why_not)
    assert isinstance(axis, Range)
    assert (axis.low, round(axis.high, 2)) == (0.07, 0.95)
    assert axis.initial == 0.7
