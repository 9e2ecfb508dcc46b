"""What backends measure of one experiment, beside each other, and the matrix of the validation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import redtail
from redtail import backends
from redtail.analysis.case import CaseResult
from redtail.analysis.gap import Gap, Gaps, gaps
from redtail.analysis.results import Results
from redtail.analysis.tolerances import Tolerances, of_options, parse, read
from redtail.backends import host
from redtail.cli import app
from redtail.display.gaps import gap_figure
from redtail.engine import batches, plans, realtime
from redtail.errors import InvalidRun, RedtailWarning, SpecError
from redtail.outcomes import Outcome
from redtail.store.folders import StoredRun
from redtail.studies import gaps as validation
from redtail.studies import gaps_report as report

from fake_native import FakeNative

FLOWS = "traffic.ftp.flows"


def _results(
    tmp_path: Path,
    backend: str,
    values: Mapping[str, Sequence[float]],
    others: Sequence[Mapping[str, Sequence[float]]] = (),
) -> Results:
    """Results of a case for each mapping, which has the values of each metric by replication."""
    cases = []
    for number, each in enumerate((values, *others)):
        count = max(map(len, each.values()), default=0)
        runs = {
            place: StoredRun(
                f"{place}",
                tmp_path,
                # What differs from run to run, so that equal values are not those of copies.
                {name: found[place] for name, found in each.items() if place < len(found)}
                | {"ftp.ack_wait_max": float(place)},
                {"bottleneck": []},
                {},
            )
            for place in range(count)
        }
        cases.append(CaseResult.of({FLOWS: number}, {FLOWS: str(number)}, runs, ()))
    return Results(
        name="made up",
        description="",
        factors=[FLOWS],
        cases=tuple(cases),
        folder=tmp_path,
        backend=backend,
    )


def _gap(
    tmp_path: Path,
    first: Sequence[float],
    second: Sequence[float],
    tolerance: str,
    metric: str = "queue_length_mean",
) -> Gap:
    results = [_results(tmp_path, "a", {metric: first}), _results(tmp_path, "b", {metric: second})]
    (row,) = gaps(results, metrics=[metric], tolerances=Tolerances({metric: tolerance}))
    assert isinstance(row, Gap)
    return row


# Verdicts


BASE = [50.0, 52.0, 47.0, 51.0, 49.0]
#: Differences of mean 5 whose 95 % interval is ±0.98.
NEAR_5 = [5.5, 4.0, 5.0, 5.8, 4.7]


@pytest.mark.parametrize(
    ("tolerance", "verdict"),
    [
        ("7 packets", "inside"),
        ("14 %", "inside"),
        ("1 % or 7 packets", "inside"),
        ("5.5 packets", "not certain"),
        ("10 %", "not certain"),
        ("3 packets", "outside"),
        ("1 % or 3 packets", "outside"),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_verdict_is_certain_when_the_whole_interval_is_on_one_side(
    tolerance: str, verdict: str, sign: int, tmp_path: Path
) -> None:
    second = [value + sign * more for value, more in zip(BASE, NEAR_5, strict=True)]
    row = _gap(tmp_path, BASE, second, tolerance)
    assert row.difference.mean == pytest.approx(sign * 5.0)
    assert row.difference.ci95 == pytest.approx(0.85, abs=0.15)
    assert row.relative.mean == pytest.approx(sign * 5.0 / 49.8)
    assert row.verdict == verdict


def test_differences_are_paired_by_replication(tmp_path: Path) -> None:
    # The workload makes most of the spread; what the backends differ by is the same in each pair.
    first = [10.0, 90.0, 40.0, 70.0, 20.0]
    second = [value + more for value, more in zip(first, NEAR_5, strict=True)]
    row = _gap(tmp_path, first, second, "7 packets")
    assert row.means[0].ci95 > 30 and row.difference.ci95 < 1
    assert row.verdict == "inside"


def test_only_replications_that_both_have_are_compared(tmp_path: Path) -> None:
    row = _gap(tmp_path, [1.0, 2.0, 3.0], [2.0, 4.0], "1 packets")
    assert row.differences == {0: 1.0, 1: 2.0}
    assert (row.reference, row.means[0].n, row.means[1].n) == (1.5, 3, 2)


@pytest.mark.parametrize(
    ("second", "count", "verdict"),
    [(1.0, 5, "inside"), (1.0, 4, "not certain"), (0.9, 5, "outside"), (0.9, 4, "not certain")],
)
def test_equal_differences_have_no_interval_and_five_of_them_decide(
    second: float, count: int, verdict: str, tmp_path: Path
) -> None:
    row = _gap(tmp_path, [1.0] * count, [second] * count, "1.5 %", "utilization")
    assert row.difference.ci95 is None and row.verdict == verdict


def test_one_replication_is_never_certain(tmp_path: Path) -> None:
    results = [_results(tmp_path, name, {"loss": [0.01]}) for name in ("a", "b")]
    found = gaps(results)
    assert [row.verdict for row in found] == ["not certain"]
    assert any("1 replication" in text for text in found.warnings)


def test_a_share_of_zero_allows_no_difference(tmp_path: Path) -> None:
    zeros = [0.0] * 5
    assert _gap(tmp_path, zeros, zeros, "15 %", "loss").verdict == "inside"
    row = _gap(tmp_path, zeros, [0.01] * 5, "15 %", "loss")
    assert (row.verdict, row.allowed, row.as_json()["size"]) == ("outside", None, None)
    assert _gap(tmp_path, zeros, [0.001] * 5, "15 % or 0.2 points", "loss").verdict == "inside"


def test_what_a_backend_has_no_value_of_is_listed_as_such(tmp_path: Path) -> None:
    both = {"loss": [0.01, 0.02], "goodput": [1e6, 2e6]}
    alone = {**both, "ftp.stalls": [3.0, 4.0], "ftp.completion_time_mean": [1.0, 2.0]}
    first = _results(tmp_path, "a", alone, [alone, alone])
    second = _results(tmp_path, "b", both, [{**both, "ftp.completion_time_mean": [2.0, 2.5]}, {}])
    with_times = gaps([first, second])
    asked = gaps([first, second], metrics=["ftp.stalls"])
    times = [row for row in with_times if row.metric == "ftp.completion_time_mean"]
    assert [row.missing for row in times] == [{"b": "no value"}, {}, {"b": "no run"}]
    assert [row.verdict for row in times] == ["not measured", "not certain", "not measured"]
    assert [row.missing for row in asked][:2] == [{"b": "not measured"}] * 2
    for row in asked:
        assert row.verdict == "not measured"
        shown = row.as_json()
        assert shown["second"]["mean"] is None and shown["difference"]["mean"] is None


def test_metrics_that_are_compared_by_default(tmp_path: Path) -> None:
    one = {
        name: [1.0, 2.0]
        for name in (
            "goodput",
            "fairness",
            "loss",
            "mark",
            "ftp.goodput",
            "web.goodput",
            "ftp.loss",
            "web.response_time_p50",
            "web.response_time_p99",
            "phase1.loss",
        )
    }
    unmarked = {**one, "mark": [0.0, 0.0]}
    marked = {row.metric for row in gaps([_results(tmp_path, name, one) for name in "ab"])}
    assert marked == {
        "goodput",
        "ftp.goodput",
        "web.goodput",
        "loss",
        "mark",
        "web.response_time_p50",
    }
    without = {row.metric for row in gaps([_results(tmp_path, name, unmarked) for name in "ab"])}
    assert without == marked - {"mark"}


def test_a_metric_without_a_tolerance_has_no_verdict(tmp_path: Path) -> None:
    results = [_results(tmp_path, name, {"fairness": [0.9, 0.8]}) for name in "ab"]
    (row,) = gaps(results, metrics=["fairness"])
    assert (row.verdict, row.allowed) == ("no tolerance", None)
    (row,) = gaps(results, metrics=["fairness"], tolerances=Tolerances({"fairness": "0.5"}))
    assert row.allowed == 0.5


def test_every_further_backend_is_compared_with_the_first(tmp_path: Path) -> None:
    results = [_results(tmp_path, name, {"loss": [0.1, 0.2]}) for name in "abc"]
    found = gaps(results)
    assert [(row.first, row.second) for row in found] == [("a", "b"), ("a", "c")]
    assert found.to_arrow().column("second").to_pylist() == ["b", "c"]


def test_results_of_different_cases_are_not_compared(tmp_path: Path) -> None:
    one = _results(tmp_path, "a", {"loss": [0.1]})
    two = _results(tmp_path, "b", {"loss": [0.1]}, [{"loss": [0.1]}])
    with pytest.raises(SpecError, match="a and b have different cases; accepted: results of"):
        gaps([one, two])


# Tolerances


@pytest.mark.parametrize(
    ("metric", "text", "relative", "absolute"),
    [
        ("goodput", "1.5 %", 0.015, None),
        ("web.goodput", "0.1 Mbit/s", None, 1e5),
        ("loss", "15 % or 0.2 points", 0.15, 0.002),
        ("loss", "0.2 points or 15 %", 0.15, 0.002),
        ("queue_length_mean", "3 packets", None, 3.0),
        ("queue_delay_mean", "5ms", None, 0.005),
        ("fairness", "0.05", None, 0.05),
    ],
)
def test_forms_of_a_tolerance(
    metric: str, text: str, relative: float | None, absolute: float | None
) -> None:
    found = parse(metric, text)
    assert (found.relative, found.absolute) == (
        None if relative is None else pytest.approx(relative),
        None if absolute is None else pytest.approx(absolute),
    )


@pytest.mark.parametrize(
    ("metric", "text", "accepted"),
    [
        ("goodput", "much", "'0.5 bit/s'"),
        ("goodput", "", "'1.5 %'"),
        ("goodput", "-1 %", "'1.5 %'"),
        ("goodput", "0 %", "a share above 0"),
        ("goodput", "3 packets", "bit/s, kbit/s, Mbit/s, Gbit/s"),
        ("loss", "0.002", "'0.5 points'"),
        ("loss", "1 % or 2 %", "'1.5 % or 0.5 points'"),
        ("queue_length_mean", "5 ms", "'0.5 packets'"),
    ],
)
def test_texts_that_are_no_tolerance_are_refused_with_what_is(
    metric: str, text: str, accepted: str
) -> None:
    with pytest.raises(SpecError) as refused:
        of_options([f"{metric}={text}"])
    message = str(refused.value)
    assert message.startswith(f"--tolerance {metric} = {text!r}: not a tolerance")
    assert accepted in message


def test_tolerances_of_metrics_that_do_not_exist_are_refused() -> None:
    with pytest.raises(SpecError, match=r"there is no metric godput; .*nearest: goodput"):
        of_options(["godput=1 %"])
    with pytest.raises(SpecError, match="--tolerance 1 %: accepted: METRIC=VALUE"):
        of_options(["1 %"])


def test_a_file_of_tolerances_gives_way_to_options(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text('goodput = "3 %"\nloss = "20 %"\n"web.goodput" = "9 %"\n')
    found = read(file).updated(of_options(["loss=1 points"]))
    assert [found.of(name).text for name in ("goodput", "loss", "web.goodput", "a.goodput")] == [  # type: ignore[union-attr]
        "3 %",
        "1 points",
        "9 %",
        "3 %",
    ]
    assert found.of("mark") == parse("mark", "15 % or 0.2 points")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('goodput = "3 %"\n# more\nloss = 3\n', "limits.toml:3: loss = '3': not a tolerance"),
        ('\nlosss = "3 %"', "limits.toml:2: losss = '3 %': there is no metric losss"),
        ('[web]\ngoodput = "3 %"', "limits.toml:1: web: a table; accepted: METRIC"),
        ("goodput = 3 %", "limits.toml: "),
    ],
)
def test_a_wrong_file_of_tolerances_is_told_by_its_line(
    text: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(text)
    with pytest.raises(SpecError) as refused:
        read(file)
    assert message in str(refused.value)
    with pytest.raises(SpecError, match=r"none\.toml: cannot be read"):
        read(tmp_path / "none.toml")


# The command and the function


class Kernel:
    """A backend that measures what the fake engine does, changed by a known amount."""

    at_once: int | None = None

    def __init__(self, name: str, change: Callable[[dict[str, float]], None]) -> None:
        self.name = name
        self.change = change
        self.ran = 0
        self.invalid = False

    def identity(self) -> str:
        return f"{self.name} 1"

    def refuse(self, plan: plans.Plan) -> Sequence[backends.Refusal]:
        return ()

    def cancel_token(self) -> backends.Cancel:
        return batches.cancel_token()

    def run(
        self, scenario: str, cancel: Any = None, queues: Any = None, traces: Any = None
    ) -> Outcome:
        self.ran += 1
        if self.invalid:
            raise InvalidRun("late")
        outcome = batches.run_one(scenario, cancel)
        self.change(outcome.metrics)
        return outcome


def _changed(metrics: dict[str, float]) -> None:
    metrics["goodput"] *= 1.03
    metrics["loss"] *= 1.01
    metrics["queue_length_mean"] += 2.0
    del metrics["ftp.goodput"]


@pytest.fixture
def kernel(fake: FakeNative, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    backend = Kernel("kernel", _changed)
    monkeypatch.setitem(backends.KNOWN, "kernel", lambda: backend)
    return backend


def _command(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


def test_backends_that_differ_by_a_known_amount(
    kernel: Kernel, fake_file: Path, tmp_path: Path
) -> None:
    found = redtail.compare_backends(
        fake_file, ["sim", "kernel"], out=tmp_path / "runs", replications=5
    )
    verdicts = {(row.metric, row.verdict) for row in found}
    assert verdicts == {
        ("utilization", "inside"),
        ("goodput", "outside"),
        ("loss", "inside"),
        ("queue_length_mean", "inside"),
    }
    for row in found:
        if row.metric == "goodput":
            assert row.relative.mean == pytest.approx(0.03)
        if row.metric == "queue_length_mean":
            assert row.difference.mean == pytest.approx(2.0) and row.differences[0] == 2.0
    assert [each.folder.name for each in found.results] == [
        "fake-experiment",
        "fake-experiment@kernel",
    ]
    assert found.counts == {"inside": 12, "outside": 4}


def test_runs_that_are_stored_are_not_made_again(
    kernel: Kernel, fake_file: Path, tmp_path: Path
) -> None:
    redtail.run(fake_file, out=tmp_path, backend="kernel")
    assert kernel.ran == 12
    found = redtail.compare_backends(fake_file, ["sim", "kernel"], out=tmp_path)
    assert kernel.ran == 12 and found.results[1].reused == 12


def test_the_command_prints_verdicts_and_draws_figures(
    kernel: Kernel, fake_file: Path, tmp_path: Path
) -> None:
    words = ["compare", str(fake_file), "--backends", "sim,kernel", "--replications", "5"]
    words += ["--out", str(tmp_path), "--metric", "goodput", "--metric", "ftp.goodput"]
    done = _command(*words)
    assert done.exit_code == 0, done.output
    assert "4 outside, 4 not measured" in done.output
    assert "not measured by kernel" in done.output
    assert "made by: backend kernel, kernel 1" in done.output
    figures = tmp_path / "fake-experiment" / "figures" / "compare-sim-kernel"
    assert (figures / "goodput.png").stat().st_size > 0
    # The figures are no foreign files.
    assert _command("runs", "verify", "--out", str(tmp_path)).exit_code == 0
    assert _command(*words, "--check").exit_code == 1
    wide = _command(*words[:-2], "--tolerance", "goodput=4 %", "--check", "--json")
    assert wide.exit_code == 0
    found = json.loads(wide.stdout)
    assert found["verdicts"] == {"inside": 4}
    assert [each["backend"] for each in found["backends"]] == ["sim", "kernel"]


def test_an_invalid_run_is_left_out_and_makes_the_command_fail(
    kernel: Kernel, fake_file: Path, tmp_path: Path
) -> None:
    kernel.invalid = True
    words = ["compare", str(fake_file), "--backends", "sim,kernel", "--out", str(tmp_path)]
    done = _command(*words, "--no-figures")
    assert done.exit_code == 1
    assert "backend kernel: 12 of 12 runs failed" in done.output
    assert "no run of kernel" in done.output
    with (
        pytest.warns(RedtailWarning, match="backend kernel: 12 of 12 runs failed"),
        pytest.warns(RedtailWarning, match="a case has 0 replications"),
    ):
        redtail.compare_backends(fake_file, ["sim", "kernel"], out=tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--backends", "sim,none"], "there is no backend 'none'; accepted: two or more of sim"),
        (["--backends", "sim"], "backends = sim: there is nothing to compare it with"),
        (["--backends", "sim,sim"], "sim is there twice"),
        (["--backends", ""], "there is no backend ''"),
        (["--backends", "sim,kernel", "--tolerance", "loss=much"], "not a tolerance of loss"),
        (["--backends", "sim,kernel", "--tolerances", "none.toml"], "none.toml: cannot be read"),
        (["--backends", "sim,kernel", "--by", "queue"], "--by queue: is for cases"),
        (["--backends", "sim,kernel", "--backend", "sim"], "--backend sim: is for one backend"),
        (["--metric", "loss", "--tolerance", "loss=1 %"], "--tolerance: goes with --backends"),
        (["--metric", "loss", "--check"], "--check: goes with --backends"),
        ([], "--metric NAME is missing"),
    ],
)
def test_bad_input_is_refused_before_any_run(
    words: list[str], message: str, kernel: Kernel, fake_file: Path, tmp_path: Path
) -> None:
    done = _command("compare", str(fake_file), "--out", str(tmp_path / "out"), *words)
    assert done.exit_code == 2 and message in done.output
    assert kernel.ran == 0 and not (tmp_path / "out").exists()


def test_an_unknown_metric_is_refused(kernel: Kernel, fake_file: Path, tmp_path: Path) -> None:
    words = ["compare", str(fake_file), "--backends", "sim,kernel", "--metric", "godput"]
    done = _command(*words, "--out", str(tmp_path))
    assert done.exit_code == 2
    assert "--metric godput: there is no such metric here; nearest: goodput" in done.output


def test_an_unknown_metric_of_a_real_experiment_is_refused_before_any_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = Kernel("kernel", lambda metrics: None)
    monkeypatch.setitem(backends.KNOWN, "kernel", lambda: other)
    out = tmp_path / "runs"
    with pytest.raises(SpecError, match=r"no run has 'ftp\.godput'; nearest: ftp\.goodput"):
        redtail.compare_backends(
            "examples/quickstart.toml", ["sim", "kernel"], metrics=["ftp.godput"], out=out
        )
    assert other.ran == 0 and not out.exists()


def test_a_load_has_as_many_users_under_every_backend(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The other backend would find twice as many users for the same load.
    def halved(metrics: dict[str, float]) -> None:
        for name in metrics:
            if name.endswith("received_rate") or "utilization" in name:
                metrics[name] /= 2

    other = Kernel("kernel", halved)
    monkeypatch.setitem(backends.KNOWN, "kernel", lambda: other)
    text = """
name = "load"
duration = "10 s"
warmup = "2 s"
replications = 2
[bottleneck]
rate = "1 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
[[traffic]]
name = "web"
kind = "web"
model = "request-think"
think = "exponential mean 1 s"
object = "5 kB"
load = "50 %"
tcp = "sack"
"""
    found = redtail.compare_backends(redtail.Toml(text), ["sim", "kernel"], out=tmp_path)
    users = [each.cases[0].runs[0].metrics["web.users"] for each in found.results]
    assert users[0] == users[1] > 0
    assert other.ran == 2


# The validation

#: What `tc` calls the queues of a kernel that has them all.
ALL_KINDS = (
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "red",
    "gred",
    "choke",
    "codel",
    "fq_codel",
    "pie",
    "fq_pie",
    "cake",
    "sfq",
    "sfb",
    "dualpi2",
    "htb",
    "tbf",
    "prio",
    "drr",
)


def test_a_kernel_can_run_every_case_of_the_matrix() -> None:
    refused = []
    for file, plan, names in validation.plans(validation.read()):
        for case, name in enumerate(names):
            scenario = plan.example(case)
            found = realtime.live_queue_refusals(scenario, ALL_KINDS, list(host.FILTERS))
            # Which congestion controls are loaded is a matter of this computer alone.
            found += [
                each
                for each in realtime.live_refusals(scenario)
                if "which this kernel has not loaded" not in each[1]
            ]
            refused += [(file, name, *each) for each in found]
    assert refused == []


def test_the_matrix_has_what_is_to_be_validated() -> None:
    names = validation.names()
    assert 60 <= len(names) <= 300 and len(set(names)) == len(names)
    mixed = [name for name in names if name.startswith("mixed")]
    assert sorted(mixed) == sorted(
        f"{file}/{tcp}-{flows}/{queue}"
        for file in ("mixed", "mixed-far")
        for tcp in ("reno", "cubic", "bbr")
        for flows in (2, 8, 32)
        for queue in ("pfifo", "red", "codel", "fq-codel")
    )
    for pattern in (
        *(f"fast/{queue}/{flows}" for queue in ("pfifo", "cake") for flows in (1, 4, 16, 64)),
        *(f"slow/{queue}/4" for queue in ("bfifo", "red", "choke", "sfb")),
        *(f"web/{queue}" for queue in ("codel", "fq-codel", "pie", "fq-pie", "sfq")),
        *("ecn/red-ecn/16", "tcp/bbr-pfifo", "tcp/reno-red", "tcp/dctcp-step", "htb/64"),
        *("round-trips/300ms/fq-pie", "round-trips/5ms/cake", "rates/100M/pie"),
        *("beside/bbr/pfifo-50", "calls/codel", "udp/nine-tenths/red", "two-way/cake-narrow"),
        "transfers/fq-codel",
    ):
        assert pattern in names
    for _, plan, _ in validation.plans(validation.read()):
        assert plan.replications >= 5


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (["fast/red/16"], ["fast/red/16"]),
        (["fast/red"], [f"fast/red/{flows}" for flows in (1, 4, 16, 64)]),
        (["*/sfq*", "!fast", "!slow"], ["web/sfq"]),
        (["tcp/bbr-c*"], ["tcp/bbr-codel", "tcp/bbr-cake"]),
        (["fast/red/1", "fast/pie/4"], ["fast/red/1", "fast/pie/4"]),
    ],
)
def test_patterns_choose_cases(only: list[str], expected: list[str]) -> None:
    assert validation.names(only) == expected
    for file, plan, _ in validation.plans(validation.read(), only):
        names = [validation._name(file, case.labels) for case in plan.cases]
        assert set(expected) <= set(names) and len(names) <= 2 * len(expected)


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A backend that measures a tenth less goodput than the engine, and else the same."""

    def less(metrics: dict[str, float]) -> None:
        metrics["goodput"] *= 0.9

    backend = Kernel("guest", less)
    monkeypatch.setitem(backends.KNOWN, "guest", lambda: backend)
    return backend


def test_a_validation_names_and_explains_what_is_outside(guest: Kernel, tmp_path: Path) -> None:
    file = tmp_path / "why.toml"
    file.write_text(
        '[[explanation]]\npattern = "slow/red"\nmetric = "goodput"\ntext = "It | halves."\n'
        '[[explanation]]\npattern = "slow/red"\nmetric = "loss"\ntext = "Not so."\n'
    )
    written = tmp_path / "report.md"
    words = ["validate", "--backends", "sim,guest", "--only", "slow/red", "--out", str(tmp_path)]
    words += ["--explanations", str(file), "--report", str(written)]
    done = _command(*words)
    assert done.exit_code == 0, done.output
    assert "the explanation of slow/red, loss, is for is outside" in done.output
    text = written.read_text()
    assert "| sim |" in text and "| guest | guest 1 |" in text
    assert "12 of 14 cells are inside (86 %); 2 outside." in text
    outside = text[text.index("## Outside") : text.index("## Inside")]
    assert outside.count("It \\| halves.") == 2 and "slow/red/1" in outside
    # 10 % are 6.7 times 1.5 %.
    assert outside.count("| 6.67 |") == 2
    # The same command makes no run, and the same report.
    before = guest.ran
    assert before == 10
    assert _command(*words, "--check").exit_code == 1
    assert guest.ran == before and written.read_text() == text


def test_a_validation_goes_on_past_runs_that_are_not_valid(guest: Kernel, tmp_path: Path) -> None:
    guest.invalid = True
    words = ["validate", "--backends", "sim,guest", "--only", "slow/red/1", "--out", str(tmp_path)]
    done = _command(*words, "--replications", "2", "--json")
    assert done.exit_code == 1 and guest.ran == 2
    found = json.loads(done.stdout)
    assert found["verdicts"] == {"not measured": 7} and found["failed_runs"] == 2


class Uneven(Kernel):
    """A backend whose goodput with one flow is 1.2 or 2.2 % higher in turn: about the tolerance."""

    def run(
        self, scenario: str, cancel: Any = None, queues: Any = None, traces: Any = None
    ) -> Outcome:
        outcome = super().run(scenario, cancel, queues, traces)
        found = json.loads(scenario)
        if found["traffic"][0]["flows"] == 1:
            outcome.metrics["goodput"] *= 1.012 + 0.01 * (found["replication"] % 2)
        return outcome


def test_cases_that_are_not_certain_get_more_replications(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    backend = Uneven("uneven", lambda metrics: None)
    monkeypatch.setitem(backends.KNOWN, "uneven", lambda: backend)
    written = tmp_path / "report.md"
    words = ["validate", "--backends", "sim,uneven", "--only", "slow/red", "--out", str(tmp_path)]
    words += ["--report", str(written)]
    done = _command(*words, "--at-most", "12")
    assert done.exit_code == 0, done.output
    assert backend.ran == 12 + 5
    text = written.read_text()
    assert "1 not certain. 1 case with 5 replications, 1 case with 12 replications." in text
    assert "In each look" in text
    assert "By the means alone, 13 of 14 cells (93 %) are within." in text
    assert "| slow/red/1 | goodput Mbit/s | 12 |" in text
    assert "| slow/red/4 | goodput Mbit/s | 5 |" in text
    # Without it the same runs are compared, five of each case, and none is made.
    assert _command(*words, "--json").exit_code == 0
    assert backend.ran == 12 + 5 and "In each look" not in written.read_text()


def test_kernels_are_compared_with_each_other_too(
    guest: Kernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def much_less(metrics: dict[str, float]) -> None:
        metrics["goodput"] *= 0.8

    monkeypatch.setitem(backends.KNOWN, "other", lambda: Kernel("other", much_less))
    written = tmp_path / "report.md"
    words = ["validate", "--backends", "sim,guest,other", "--only", "slow/red/1"]
    words += ["--out", str(tmp_path), "--report", str(written)]
    done = _command(*words)
    assert done.exit_code == 0, done.output
    text = written.read_text()
    for pair in ("sim and guest", "sim and other", "guest and other"):
        assert f"- {pair}: 6 of 7 cells are inside (86 %); 1 outside." in text
        assert f"| slow | {pair} | 6 | 1 | 0 | 0 |" in text
    # One row for both, of the larger gap: 20 % are 13.3 times 1.5 %.
    (row,) = [line for line in text.splitlines() if "| slow/red/1 | goodput" in line]
    assert row.startswith("| 13.33 |") and row.count("(outside)") == 1
    found = json.loads(_command(*words, "--json").stdout)
    assert {each["second"]["backend"] for each in found["between"]} == {"other"}
    assert [
        (each["metric"], round(each["relative"]["mean"], 3))
        for each in found["between"]
        if each["verdict"] == "outside"
    ] == [("goodput", -0.111)]


def test_what_several_calls_stored_is_one_report_without_a_run(
    guest: Kernel, tmp_path: Path
) -> None:
    common = ["validate", "--backends", "sim,guest", "--out", str(tmp_path)]
    assert _command(*common, "--only", "slow/red/1", "--replications", "3").exit_code == 0
    assert _command(*common, "--only", "slow/red/4").exit_code == 0
    assert guest.ran == 3 + 5
    written = tmp_path / "report.md"
    words = [*common, "--stored", "--only", "slow/red", "--only", "slow/pie/1"]
    done = _command(*words, "--report", str(written))
    assert done.exit_code == 0, done.output
    assert guest.ran == 3 + 5
    text = written.read_text()
    assert "1 case with 3 replications, 1 case with 5 replications." in text
    assert "1 case without runs that are stored under all backends: slow/pie/1." in text
    assert "slow/pie/1 |" not in text
    assert json.loads(_command(*words, "--json").stdout)["absent"] == ["slow/pie/1"]
    # No more replications of a case than were asked for.
    done = _command(*words, "--at-most", "5", "--replications", "2", "--json")
    assert {
        (each["case"], each["difference"]["n"]) for each in json.loads(done.stdout)["cells"]
    } == {("slow/red/1", 3), ("slow/red/4", 5)}
    assert guest.ran == 3 + 5


def test_a_store_without_the_runs_of_a_report_is_refused(guest: Kernel, tmp_path: Path) -> None:
    words = ["validate", "--backends", "sim,guest", "--stored", "--only", "slow/red"]
    missing = tmp_path / "missing"
    done = _command(*words, "--out", str(missing))
    assert done.exit_code == 1
    assert f"{missing}: there is no such folder" in " ".join(done.output.split())
    assert not missing.exists()
    done = _command(*words, "--out", str(tmp_path), "--report", str(tmp_path / "report.md"))
    assert done.exit_code == 1
    text = " ".join(done.output.split())
    assert "no run of 2 cases is stored under all backends (sim, guest)" in text
    assert not (tmp_path / "report.md").exists()


class Refusing(Kernel):
    """A backend that cannot run experiments in which a queue of a kind is compared."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(name, lambda metrics: None)
        self.kind = kind

    def refuse(self, plan: plans.Plan) -> Sequence[backends.Refusal]:
        has_it = any(self.kind in case.labels.values() for case in plan.cases)
        return [backends.Refusal("bottleneck.queue", f"has no {self.kind}")] if has_it else []


def test_what_a_backend_cannot_run_is_left_out_and_told(
    guest: Kernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = Refusing("old", "pie")
    monkeypatch.setitem(backends.KNOWN, "old", lambda: old)
    written = tmp_path / "report.md"
    common = ["validate", "--out", str(tmp_path), "--replications", "2"]
    words = ["--only", "slow/pie/1", "--only", "web-slow/red", "--report", str(written)]
    done = _command(*common, *words, "--backends", "sim,old,guest")
    assert done.exit_code == 0, done.output
    assert (old.ran, guest.ran) == (2, 4)
    text = written.read_text()
    assert "slow is not run by old: bottleneck.queue: has no pie." in text
    assert text.index("| old |") < text.index("| guest |")
    (row,) = [line for line in text.splitlines() if "| slow/pie/1 | goodput" in line]
    assert row.count("| – |") == 3, "its mean, and its differences from both"
    # Nobody to compare with is an error, before any run.
    done = _command(*common, "--only", "slow/pie/1", "--backends", "sim,old")
    assert done.exit_code == 2 and "backend old cannot run this experiment" in done.output


def test_a_tolerance_that_is_given_is_judged(tmp_path: Path) -> None:
    metrics = {"goodput": [100.0] * 5, "queue_delay_p95": [0.1] * 5, "queue_length_std": [3.0] * 5}
    results = [_results(tmp_path, name, metrics) for name in "ab"]
    assert {row.metric for row in gaps(results)} == {"goodput"}
    given = Tolerances({"queue_delay_p95": "1 ms", "a.goodput": "1 %"})
    assert {row.metric for row in gaps(results, tolerances=given)} == {"goodput", "queue_delay_p95"}


def test_the_matrix_judges_delay_spread_and_runs_of_losses() -> None:
    study = validation.read().gaps
    assert study is not None and study.allowed is not None
    judged = {"queue_delay_p95", "queue_length_std", "consecutive_loss_mean"}
    of_groups = {"udp.end_to_end_loss", "call.bitrate", "call.one_way_delay_p95"}
    assert set(study.allowed.given) == judged | of_groups


def test_a_tolerance_of_a_study_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("")
    (tmp_path / "study.toml").write_text(
        'title = "A"\n[gaps]\nfiles = ["a.toml"]\n[gaps.tolerances]\nloss = "little"\n'
    )
    with pytest.raises(SpecError) as refused:
        validation.read(tmp_path)
    assert "study.toml:5" in str(refused.value) and "'little'" in str(refused.value)
    assert "accepted: a share above 0" in str(refused.value)


def test_gaps_of_a_report_are_sorted_worst_first(tmp_path: Path) -> None:
    first = {"goodput": [100.0] * 5, "loss": [0.1] * 5}
    second = {"goodput": [90.0] * 5, "loss": [0.9] * 5}
    found = gaps([_results(tmp_path, "a", first), _results(tmp_path, "b", second)])
    cells = tuple(validation.Cell("x/0", row) for row in found)
    done = validation.Validation({"x": found}, cells)
    assert [cell.gap.metric for cell in done.with_verdict("outside")] == ["loss", "goodput"]
    text = report.markdown(done)
    assert text.index("| 53.33 |") < text.index("| 6.67 |")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "quick"], "--only quick: fits no case of the matrix; accepted: patterns"),
        (["--only", "web/red", "--only", "!web"], "leaves no case of the matrix"),
        (["--backends", "sim"], "there is nothing to compare it with"),
        (["--backends", "sim,none"], "there is no backend 'none'"),
        (["--at-most", "4"], "--at-most 4: each case has 5 replications; accepted: 5 or more"),
        (["--explanations", "none.toml"], "none.toml: cannot be read"),
    ],
)
def test_a_validation_refuses_bad_input(
    words: list[str], message: str, guest: Kernel, tmp_path: Path
) -> None:
    done = _command("validate", "--backends", "sim,guest", "--out", str(tmp_path / "out"), *words)
    assert done.exit_code == 2 and message in done.output
    assert guest.ran == 0 and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '\n[[explanation]]\npattern = "a"\n',
            "why.toml:2: explanation 1: text is missing; accepted: a text",
        ),
        (
            '[[explanation]]\npattern = ""\ntext = "b"',
            "why.toml:2: explanation.pattern = ''; accepted: a text",
        ),
        (
            '[[explanation]]\npattern = "a"\ntext = "b"\nwhy = 1',
            "why.toml:4: explanation.why: unknown",
        ),
        ("[[reason]]\n", "why.toml:1: reason: unknown key; accepted: explanation"),
        ("explanation = 3\n", "why.toml:1: explanation = 3; accepted: a list, each of it a table"),
        ("[[explanation]", "why.toml: "),
    ],
)
def test_wrong_explanations_are_told_by_their_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "why.toml"
    file.write_text(text)
    with pytest.raises(SpecError) as refused:
        validation.Explanations.read(file)
    assert message in str(refused.value)


def test_the_explanations_of_the_matrix_are_read() -> None:
    for each in validation.Explanations.read(
        validation.VALIDATION / "explanations.toml"
    ).explanations:
        assert validation.names([each.pattern])


def test_a_comparison_is_a_sequence_of_gaps(tmp_path: Path) -> None:
    found = gaps([_results(tmp_path, name, {"loss": [0.1, 0.2]}) for name in "ab"])
    assert isinstance(found, Gaps) and isinstance(found[0], redtail.Gap) and len(found) == 1
    assert found.outside == ()


def test_without_a_load_each_case_has_a_row_with_its_tolerance(tmp_path: Path) -> None:
    key = "bottleneck.queue"
    found = []
    for backend, values in (("a", [0.1, 0.2, 0.3]), ("b", [0.2, 0.3, 0.4])):
        made = _results(tmp_path, backend, {"loss": values}, [{"loss": [0.5, 0.5, 0.6]}])
        cases = [
            replace(case, factors={key: {"kind": kind}}, labels={key: kind})
            for case, kind in zip(made.cases, ("red", "pie"), strict=True)
        ]
        found.append(
            Results(
                name="made up",
                description="",
                factors=[key],
                cases=tuple(cases),
                folder=tmp_path,
                backend=backend,
            )
        )
    figure = gap_figure(gaps(found, tolerances=Tolerances({"loss": "5 points"})), "loss")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["red", "pie"]
    # 5 points to each side of the first backend's mean of 20 %.
    boxes = {round(box.get_y() + 0.35): box for box in axes.patches}
    assert boxes[0].get_width() == pytest.approx(10) and boxes[0].get_x() == pytest.approx(15)
    means = [line.get_xdata().tolist() for line in axes.lines if len(line.get_xdata()) == 2]
    assert [20, 100 * 1.6 / 3] in [pytest.approx(each) for each in means]
    heights = [line.get_ydata().tolist() for line in axes.lines if len(line.get_ydata()) == 2]
    assert len({tuple(each) for each in heights}) == 2, "backends stand beside each other"
