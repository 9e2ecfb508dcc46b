"""`redtail expect`: what an experiment expects of its results, and whether it holds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as xml

import numpy as np
import pytest
from typer.testing import CliRunner

import redtail
from redtail import expectation
from redtail.analysis.case import CaseResult
from redtail.analysis.results import Results
from redtail.cli import app
from redtail.errors import SpecError
from redtail.store.folders import StoredRun
from redtail.studies import expect
from redtail.studies.checks import Answer
from redtail.studies.definition import Judgement

# Without random numbers: a simulation of it draws nothing.
DETERMINED = {
    "bottleneck": {"queue": {"kind": "codel"}, "rate": "10 Mbit/s"},
    "traffic": [{"name": "a", "kind": "bulk", "start": "0 s"}],
}
DRAWN = {**DETERMINED, "traffic": [{"name": "a", "kind": "bulk", "start": "uniform 0 s..1 s"}]}
VALUES = [9.0, 9.4, 9.1, 9.3, 9.2, 9.0, 9.5, 9.3]


def results(cases: Mapping[str, Mapping[str, Sequence[float]]]) -> Results:
    """Results of a factor: for each label the values of each metric, by replication."""
    made = []
    for label, metrics in cases.items():
        count = len(next(iter(metrics.values())))
        runs = {
            number: StoredRun(
                f"{number:016x}",
                Path(),
                {key: each[number] for key, each in metrics.items()},
                {},
                {},
            )
            for number in range(count)
        }
        made.append(CaseResult.of({"bottleneck.queue": {}}, {"bottleneck.queue": label}, runs, ()))
    return Results(
        name="Made up",
        description="",
        factors=["bottleneck.queue"],
        cases=tuple(made),
        folder=Path("here"),
    )


def parsed(holds: str | Mapping[str, str], **more: Any) -> tuple[expectation.Expectation, ...]:
    texts = {"it": holds} if isinstance(holds, str) else holds
    return expectation.parse(
        [{"name": name, "holds": text, **more} for name, text in texts.items()]
    )


def judged(
    holds: str | Mapping[str, str],
    measured: Mapping[str, Mapping[str, Sequence[float]]] | Sequence[float],
    scenario: Mapping[str, Any] = DRAWN,
    looks: int = 1,
    **more: Any,
) -> expect.Verdicts:
    """Verdicts on results of `goodput` alone, or on those of several metrics of several cases."""
    if not isinstance(measured, Mapping):
        rates = [each * 1e6 for each in measured]
        measured = {"CoDel": {"goodput": rates, "noise": range(len(rates))}}
    plan: Any = SimpleNamespace(
        expected=parsed(holds, **more), example=lambda case: json.dumps(scenario)
    )
    (found,) = expect.judge([(plan, results(measured))], looks=looks)
    return found


def verdict(*given: Any, **more: Any) -> str:
    return judged(*given, **more).judgement.value


# --- Verdicts --------------------------------------------------------------------------------


def test_three_answers_by_the_interval() -> None:
    assert verdict("goodput >= 9 Mbit/s", VALUES) == Judgement.HOLDS
    assert verdict("goodput >= 9.5 Mbit/s", VALUES) == Judgement.FAILS
    assert verdict("goodput >= 9.2 Mbit/s", VALUES) == Judgement.UNDECIDED
    assert verdict("goodput <= 9.5 Mbit/s", VALUES) == Judgement.HOLDS
    assert verdict("goodput within 5 % of 9.2 Mbit/s", VALUES) == Judgement.HOLDS
    assert verdict("goodput within 0.5 Mbit/s of 9.2 Mbit/s", VALUES) == Judgement.HOLDS
    assert verdict("goodput within 5 % of 12 Mbit/s", VALUES) == Judgement.FAILS


def test_undecided_says_how_many_replications_would_decide() -> None:
    (row,) = judged("goodput >= 9.15 Mbit/s", VALUES).judged[0].rows
    assert row.answer is Answer.UNDECIDED
    assert row.needed is not None and row.needed > len(VALUES)
    # So many like these do decide it.
    many = (VALUES * 20)[: row.needed + 8]
    assert verdict("goodput >= 9.15 Mbit/s", many) == Judgement.HOLDS


def test_one_replication_and_copies_of_one_decide_nothing() -> None:
    assert verdict("goodput >= 9 Mbit/s", [20.0]) == Judgement.UNDECIDED
    copied = {"CoDel": {"goodput": [20e6] * 8}}
    (row,) = judged("goodput >= 9 Mbit/s", copied).judged[0].rows
    assert (row.answer, row.needed) == (Answer.UNDECIDED, None)
    assert "one observation" in row.why and "each" in row.why


def test_equal_values_of_different_runs_are_judged_by_their_signs() -> None:
    # The runs are no copies: they differ in another metric.
    assert verdict("goodput >= 9 Mbit/s", [10.0] * 6) == Judgement.HOLDS
    assert verdict("goodput >= 11 Mbit/s", [10.0] * 6) == Judgement.FAILS
    assert verdict("goodput >= 9 Mbit/s", [10.0] * 5) == Judgement.UNDECIDED
    assert verdict("goodput > 10 Mbit/s", [10.0] * 6) == Judgement.FAILS


def test_cases_are_compared_replication_by_replication() -> None:
    common = np.arange(8.0)
    cases = {
        "CoDel": {"queue_delay_mean": (common + 0.5) / 1e3},
        "RED": {"queue_delay_mean": (common + 0.6 + 0.01 * np.sin(common)) / 1e3},
    }
    found = judged("queue_delay_mean[CoDel] < queue_delay_mean[RED]", cases)
    assert found.judgement is Judgement.HOLDS
    (row,) = found.judged[0].rows  # one, and not one for each case
    assert row.case == ""
    assert verdict("queue_delay_mean[RED] < queue_delay_mean[CoDel]", cases) == Judgement.FAILS
    # Of each case beside RED, which is not compared with itself.
    assert len(judged("queue_delay_mean < queue_delay_mean[RED]", cases).judged[0].rows) == 1


def test_an_expectation_can_be_of_some_cases() -> None:
    cases = {
        "CoDel": {"loss": [0.01, 0.012, 0.011, 0.013]},
        "RED": {"loss": [0.2, 0.21, 0.22, 0.2]},
    }
    assert verdict("loss < 5 %", cases) == Judgement.FAILS
    assert verdict("loss < 5 %", cases, cases=["CoDel"]) == Judgement.HOLDS


def test_each_replication_is_refuted_by_one() -> None:
    inside = {"CoDel": {"goodput": [9e6, 9.5e6, 9.2e6, 9.1e6, 9.6e6, 9.3e6]}}
    assert verdict("goodput >= 9 Mbit/s", inside, of="each") == Judgement.HOLDS
    five = {"CoDel": {"goodput": inside["CoDel"]["goodput"][:5]}}
    (row,) = judged("goodput >= 9 Mbit/s", five, of="each").judged[0].rows
    assert (row.answer, row.needed) == (Answer.UNDECIDED, 6)
    one = {"CoDel": {"goodput": [9e6, 8.9e6]}}
    (row,) = judged("goodput >= 9 Mbit/s", one, of="each").judged[0].rows
    assert row.answer is Answer.NO and "replication 1" in row.why


def test_the_only_run_that_is_possible_decides_alone() -> None:
    one = {"CoDel": {"goodput": [9e6]}}
    assert verdict("goodput >= 9 Mbit/s", one, DETERMINED, of="each") == Judgement.HOLDS
    assert verdict("goodput >= 9 Mbit/s", one, DRAWN, of="each") == Judgement.UNDECIDED
    # Of a mean it is one observation, as everywhere.
    assert verdict("goodput >= 8 Mbit/s", one, DETERMINED) == Judgement.UNDECIDED


def test_values_that_are_missing_decide_nothing() -> None:
    some = {"CoDel": {"goodput": [9e6, math.nan, 9.2e6, 9.1e6, 9.3e6, 9.1e6, 9.2e6]}}
    assert verdict("goodput >= 8 Mbit/s", some, of="each") == Judgement.UNDECIDED
    none = {"CoDel": {"goodput": [math.nan] * 6}}
    assert verdict("goodput >= 8 Mbit/s", none) == Judgement.UNDECIDED


def test_extremes_are_expected_of_each_run() -> None:
    (found,) = parsed("a.ack_wait_max < 20 ms")
    assert found.of == "each"
    (found,) = parsed("max(cwnd of a) < 20 kB", of="mean")
    assert found.of == "mean"


# --- Errors of the verdicts -------------------------------------------------------------------


@pytest.mark.weekly
def test_failures_by_chance_are_rare_among_many() -> None:
    """True expectations: all of 40 means are at their bounds, 200 times.

    One of 40 or more fails by chance in 5 % of these at most: of 200, 10 are expected, and more
    than 21 have a probability of 0.05 %. Without the correction about 63 % do.
    """
    rng = np.random.default_rng(7)
    failed = 0
    for _ in range(200):
        cases = {f"case {n}": {"goodput": 1e6 + rng.normal(0, 1e5, 8)} for n in range(40)}
        found = judged("goodput >= 1 Mbit/s", cases)
        failed += found.judgement is Judgement.FAILS
    assert failed <= 21


def test_that_all_hold_is_rarely_wrong() -> None:
    """One of ten means is at its bound, 400 times; it holds by chance in 2.5 % at most.

    10 of 400 are expected, and more than 21 have a probability of 0.1 %.
    """
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(400):
        means = [1e6] + [2e6] * 9
        cases = {f"{n}": {"goodput": rng.normal(mean, 1e5, 8)} for n, mean in enumerate(means)}
        held += judged("goodput > 1 Mbit/s", cases).judgement is Judgement.HOLDS
    assert held <= 21


def test_looks_share_the_error() -> None:
    """A value that holds at one look, p = 3.7 %, is undecided when there may be three."""
    values = [9.0, 10.0, 11.0, 9.5, 10.5, 9.8, 10.2, 10.6]
    (row,) = judged("goodput >= 9.5 Mbit/s", values).judged[0].rows
    assert row.answer is Answer.YES
    (row,) = judged("goodput >= 9.5 Mbit/s", values, looks=3).judged[0].rows
    assert row.answer is Answer.UNDECIDED
    assert row.needed is not None


def test_what_has_not_finished_is_later_than_the_end(tmp_path: Path) -> None:
    """4 MB take at least 3.2 s of 10 Mbit/s: too long for the bound, or for the run."""
    path = tmp_path / "t.toml"
    path.write_text(
        """
        name = "Late"
        duration = "3 s"
        replications = 2
        bottleneck = { rate = "10 Mbit/s", delay = "5 ms", queue = { kind = "codel" } }
        traffic = [{ name = "t", kind = "transfer", size = "4 MB", start = "uniform 0..0.1 s" }]
        [expect]
        "soon" = "t.completion_time_mean < 2 s"
        "soon in each" = { holds = "t.completion_time_mean < 2 s", of = "each" }
        "some time" = "t.completion_time_mean < 3.5 s"
        """
    )
    (found,) = expect.judge([(redtail.check(path), redtail.run(path, out=tmp_path))])
    answers = [each.judgement for each in found.judged]
    assert answers == [Judgement.FAILS, Judgement.FAILS, Judgement.UNDECIDED]
    # Equal values have no spread. Of eight, the signs are enough for three looks.
    assert verdict("goodput >= 9 Mbit/s", [9.0] * 8, looks=3) == Judgement.HOLDS
    assert verdict("goodput >= 9 Mbit/s", [9.0] * 6, looks=3) == Judgement.UNDECIDED


# --- What is written --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("goodput >= 9", "'9' has no unit, and the other side is in bit/s"),
        ("goodput >= 9 Mbit/h", "'9 Mbit/h' (character 12): accepted: a number with a unit"),
        ("goodput = 9 Mbit/s", "'=' (character 9): accepted: <, <=, >, >=, within"),
        ("goodput", "has no comparison"),
        ("1 Mbit/s < goodput < 2 Mbit/s", "has 2 comparisons"),
        ("goodput >= 20 ms", "is of bit/s and s"),
        ("goodput within 20 ms of 9 Mbit/s", "the margin is in s"),
        ("goodput within of 9 Mbit/s", "'within' (character 9)"),
        ("3 > 2", "names nothing that is measured"),
        ("sum(a.goodput) > 9 Mbit/s", "'sum(…)' (character 1): accepted: min(…), max(…)"),
        ("max(cwmd of a) < 9 kB", "nearest: cwnd"),
        ("max(cwnd of a > 3 kB) < 9 kB", "without a condition"),
        ("time(cwnd of a) < 9 s", "with a condition"),
        ("time(cwnd of a > 9 ms) < 9 s", "a quantity in bytes, since cwnd is in bytes"),
        ("max(cwnd of a, 5 s..2 s) < 9 kB", "a time before another one"),
        ("max(cwnd of a, 2 kB..3 kB) < 9 kB", "times, such as 2 s..5 s"),
        ("max(state of a) < 9 kB", "time(…) and share(…) of a state"),
        ("share(state of a leaves drain) < 9 %", "is STATE"),
        ("goodput * (3 >= 2 Mbit/s", "was never closed"),
        ("__import__('os') > 3", "accepted"),
        ("goodput >= " + "9" * 600 + " Mbit/s", "accepted: up to 500"),
    ],
)
def test_mistakes_are_named_with_their_position(text: str, problem: str) -> None:
    with pytest.raises(SpecError) as error:
        parsed(text, place="my.toml:7: ", line=7)
    assert str(error.value).startswith(f'my.toml:7: expect.it = "{text}')
    assert problem in str(error.value)


FILE = """\
name = "Expected"
duration = "4 s"
warmup = "1 s"
replications = 6
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "a"
kind = "bulk"
start = "uniform 0..0.5 s"
tcp = "bbr3"
[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "100 packets", label = "tail drop" },
  { kind = "codel", label = "CoDel" },
]
[series]
interval = "10 ms"
windows = true
replications = 6
[expect]
"""


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def made(*lines: str, text: str = FILE) -> Path:
        path = tmp_path / "expected.toml"
        path.write_text(text + "\n".join(lines) + "\n")
        return path

    return made


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('"used" = "a.godput > 9 Mbit/s"', "no run has the metric a.godput; nearest: a.goodput"),
        ('"used" = "loss[Codel] < 3 %"', "no case has the label Codel; accepted: tail drop, CoDel"),
        ('"used" = "max(cwnd of b) < 3 kB"', "there is no such group of TCP flows; accepted: a"),
        ('"used" = "max(packets of x) < 3 packets"', "no such link; accepted: bottleneck"),
        ('"used" = "max(cwnd of a) < 2 BDP of b"', "there is no such group; accepted: a"),
        ('"used" = { holds = "loss < 3 %", cases = ["x"] }', "no case has the label x"),
        ('"used" = { holds = "loss < 3 %", of = "most" }', 'accepted: "mean", "each"'),
        ('"used" = 3', "a table with holds, cases, of, source"),
        ('"used" = { hold = "loss < 3 %" }', "hold"),
    ],
)
def test_mistakes_name_file_line_and_what_is_accepted(file: Any, line: str, problem: str) -> None:
    with pytest.raises(SpecError) as error:
        redtail.check(file(line))
    assert f"expected.toml:{FILE.count(chr(10)) + 1}: expect.used" in str(error.value)
    assert problem in str(error.value)


def test_states_are_asked_of_the_simulator_alone(file: Any) -> None:
    path = file('"used" = "time(state of a leaves startup) < 1 s"')
    with pytest.raises(SpecError, match="a kernel does not tell its states"):
        redtail.check(path, set={"backend": "live"})


def test_a_bound_without_a_value_decides_nothing(file: Any, tmp_path: Path) -> None:
    """Without a table of flows their round trip is not known, and so the BDP is not."""
    text = FILE.replace("duration", "keep_flows = 0\nduration", 1)
    path = file(
        '"cwnd" = "max(cwnd of a) < 1000 BDP"',
        '"time" = "time(cwnd of a > 1 B) < 9 RTT"',
        '"since" = { holds = "time(cwnd of a > 1 B) < 9 s", of = "each" }',
        text=text,
    )
    (found,) = expect.judge([(redtail.check(path), redtail.run(path, out=tmp_path))])
    cwnd, _, since = found.judged
    assert "keep_flows" in cwnd.rows[0].why and "no value" in since.rows[0].why
    assert [each.judgement for each in found.judged] == [Judgement.UNDECIDED] * 3


def test_a_series_that_is_not_recorded_is_asked_for(file: Any) -> None:
    for change, key in (("windows = true", "windows = true"), ("replications = 6\n[exp", "6")):
        text = FILE.replace(change, change.replace("6", "2").replace("true", "false"))
        with pytest.raises(SpecError, match=r"needs a time series of every replication") as error:
            redtail.check(file('"used" = "max(cwnd of a) < 3 MB"', text=text))
        assert key in str(error.value)


# --- The command ------------------------------------------------------------------------------


def invoke(*given: object) -> Any:
    return CliRunner().invoke(app, ["expect", *map(str, given)])


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (('"used" = "a.goodput > 5 Mbit/s"',), 0),
        (('"used" = "a.goodput > 5 Mbit/s"', '"lossless" = "a.goodput > 11 Mbit/s"'), 1),
        (('"used" = { holds = "a.goodput > 5 Mbit/s" }', '"x" = "a.goodput > 9.5 Mbit/s"'), None),
    ],
)
def test_exit_codes(file: Any, tmp_path: Path, lines: Sequence[str], code: int | None) -> None:
    path = file(*lines)
    if code is None:  # the bound is the mean itself
        mean = redtail.run(path, out=tmp_path / "r").cases[1].metric("a.goodput").mean
        path = file(f'"x" = {{ holds = "a.goodput > {mean:.0f} bit/s", cases = ["CoDel"] }}')
    found = invoke(path, "--out", tmp_path / "r")
    assert found.exit_code == (5 if code is None else code), found.output


def test_the_verdicts_as_json_and_junit(file: Any, tmp_path: Path) -> None:
    path = file('"used" = "a.goodput > 5 Mbit/s"', '"fast" = "a.goodput > 11 Mbit/s"')
    out = tmp_path / "verdicts.xml"
    found = invoke(path, "--out", tmp_path / "r", "--json", "--junit", out)
    shown = json.loads(found.stdout)
    assert shown["verdict"] == "fails"
    used, fast = shown["experiments"][0]["expectations"]
    assert (used["verdict"], fast["verdict"]) == ("holds", "fails")
    assert [row["case"] for row in used["rows"]] == ["tail drop", "CoDel"]
    assert used["line"] == FILE.count("\n") + 1
    suite = xml.fromstring(out.read_bytes())[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert [case.get("name") for case in suite] == ["used", "fast"]
    assert suite[1].find("failure") is not None and suite[0].find("failure") is None


def test_more_replications_are_made_until_it_is_decided(file: Any, tmp_path: Path) -> None:
    few = redtail.run(file(), out=tmp_path / "r", replications=2)
    mean = few.cases[0].metric("queue_delay_mean")
    assert mean.ci95 is not None
    bound = 1e9 * (mean.mean - 0.5 * mean.ci95)
    line = f'"x" = {{ holds = "queue_delay_mean > {bound:.0f} ns", cases = ["tail drop"] }}'
    path = file(line)
    first = invoke(path, "--out", tmp_path / "r", "--replications", 2, "--json")
    assert first.exit_code == 5
    more = invoke(path, "--out", tmp_path / "r", "--replications", 2, "--more", 32, "--json")
    (row,) = json.loads(more.stdout)["experiments"][0]["expectations"][0]["rows"]
    assert json.loads(more.stdout)["looks"] == 5
    assert row["value"]["n"] > 2
    assert row["verdict"] != "undecided" or row["value"]["n"] == 32


def test_a_file_without_expectations_is_refused(file: Any) -> None:
    found = invoke(file(text=FILE.replace("[expect]\n", "")))
    assert found.exit_code == 2
    assert "expects nothing; accepted: a file with a table [expect]" in found.output


# --- Over time --------------------------------------------------------------------------------


def test_terms_of_time_series_are_what_the_series_have(file: Any, tmp_path: Path) -> None:
    path = file(
        '"exit" = "time(state of a leaves startup) < 0.5 s"',
        '"at exit" = "last(in_flight of a, while startup) > 0 B"',
        '"most" = "max(cwnd of a, 1 s..3 s) / BDP > 0"',
        '"queue" = "mean(packets of bottleneck, 2 s..) >= 0 packets"',
        '"fast" = "time(goodput of a >= 0.9 rate) < 100 s"',
        '"cruise" = "share(state of a is probe_bw_cruise, 2 s..) > 0 %"',
        '"never" = "time(cwnd of a > 1 GB) < 3 s"',
    )
    found = redtail.run(path, out=tmp_path)
    plan = redtail.check(path)
    (verdicts,) = expect.judge([(plan, found)])
    rows = {each.expected.name: each.rows[0] for each in verdicts.judged}
    flows = found.series("flows", case=0, replication=3).to_pandas()
    start = found.flows(case=0, replication=3).to_pandas().start_s[0]
    flows = flows[flows.time_s >= start]
    startup = flows[flows.state == "startup"]
    after = flows[(flows.state != "startup") & (flows.time_s > startup.time_s.iloc[0])]
    assert rows["exit"].values[3] == pytest.approx(after.time_s.iloc[0] - start)
    last = startup[startup.time_s < after.time_s.iloc[0]].in_flight_bytes.iloc[-1]
    assert rows["at exit"].values[3] == last
    window = flows[(flows.time_s >= 1) & (flows.time_s <= 3)]
    # 10 Mbit/s times the round trip without queueing and transmission.
    bdp = 10e6 / 8 * found.flows(case=0, replication=3).to_pandas().round_trip_s[0]
    assert rows["most"].values[3] == pytest.approx(window.cwnd_bytes.max() / bdp)
    queue = found.series("queues", case=0, replication=3).to_pandas()
    assert rows["queue"].values[3] == pytest.approx(queue[queue.time_s >= 2].packets.mean())
    groups = found.series("groups", case=0, replication=3).to_pandas()
    reached = groups[(groups.goodput_bps >= 9e6) & (groups.time_s >= start)].time_s.iloc[0]
    assert rows["fast"].values[3] == pytest.approx(reached - start)
    late = flows[flows.time_s >= 2]
    assert rows["cruise"].values[3] == pytest.approx((late.state == "probe_bw_cruise").mean())
    # What never happens is later than any time.
    assert rows["never"].values[3] == math.inf
    assert rows["never"].answer is Answer.NO


def test_states_of_loss_based_controls_are_those_of_rfc_5681(file: Any, tmp_path: Path) -> None:
    text = FILE.replace('"bbr3"', '"cubic"')
    found = redtail.run(file(text=text), out=tmp_path)
    flows = found.series("flows").to_pandas()
    slow = flows.cwnd_bytes < flows.ssthresh_bytes
    assert set(flows.state[slow]) == {"slow_start"}
    assert set(flows.state[~slow]) == {"congestion_avoidance"}
