"""What programs of groups measure: from their outputs to results, tables, formulas and pages.

No program runs here. A backend of this file gives outputs of other people's programs, which
`crates/traffic/tests/outputs` describes; how they are read is tested there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import redtail
from redtail import backends
from redtail import metrics as names
from redtail.backends.interface import Refusal
from redtail.cli import app
from redtail.engine import batches, plans, realtime
from redtail.errors import RunError, SpecError, StoreError
from redtail.outcomes import Outcome
from redtail.studies.definition import Judgement
from redtail.studies.expect import judge

OUTPUTS = Path(__file__).parents[2] / "crates" / "traffic" / "tests" / "outputs"

EXPERIMENT = """
name = "Programs"
backend = "other"
duration = "12 s"
replications = 6

[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }

[factors]
"bottleneck.queue.limit" = ["20 packets", "60 packets"]

[[traffic]]
name = "iperf"
kind = "program"
server = "iperf3 -s -1 -p {port}"
client = "iperf3 -c {server} -p {port} --json"

[traffic.measure.goodput]
json = "end.sum_received.bits_per_second"
unit = "bit/s"
title = "Application goodput"

[traffic.measure.rtt]
json = "end.streams[*].sender.mean_rtt"
unit = "us"
statistic = "max"

[traffic.measure.retries]
line = "retry ([0-9]+)"
unit = "1"
optional = true
"""
MORE = """
[metrics]
per_rtt = "iperf.measured.goodput * iperf.measured.rtt"

[expect]
fast = "iperf.measured.goodput >= 1 Mbit/s"
near = "iperf.measured.rtt < 10 ms"
"""
GOODPUT, RTT, RETRIES = (f"iperf.measured.{name}" for name in ("goodput", "rtt", "retries"))


@dataclass
class Left:
    """What a program left."""

    output: bytes
    group: str = "iperf"
    flow: int = 0
    role: str = "client"
    output_cut: int = 0
    files: Sequence[tuple[str, bytes]] = ()
    left_out: Sequence[str] = ()


def iperf3(replication: int, more: float) -> bytes:
    """Return the output of iperf3, the numbers changed a little from run to run."""
    output = json.loads((OUTPUTS / "iperf3-tcp.json").read_bytes())
    output["end"]["sum_received"]["bits_per_second"] += 1e5 * replication + more
    for stream in output["end"]["streams"]:
        stream["sender"]["mean_rtt"] += replication
    return json.dumps(output).encode()


@dataclass
class Other:
    """A backend whose programs are those of this file."""

    name: str = "other"
    at_once: int | None = None
    own_metrics: Sequence[str] = ()
    wrong: dict[int, bytes] = field(default_factory=dict)
    ran: int = 0

    def lacks(self, metric: str) -> bool:
        return False

    def identity(self) -> str:
        return "other 1"

    def refuse(self, plan: plans.Plan) -> Sequence[Refusal]:
        return []

    def cancel_token(self) -> backends.Cancel:
        return batches.cancel_token()

    def run(
        self, scenario: str, cancel: Any = None, queues: Any = None, traces: Any = None
    ) -> Outcome:
        self.ran += 1
        run = json.loads(scenario)
        more = 0.0 if "20 packets" in scenario else 5e6 + 1e4 * run["replication"] ** 2
        replication = run["replication"]
        output = self.wrong.get(replication, iperf3(replication, more))
        metrics = {
            "loss": 0.01,
            **realtime.program_measures(scenario, [Left(output), Left(b"", role="server")]),
        }
        return Outcome(metrics, {"bottleneck": [1]}, {}, {}, 1, 1, 0.1)


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Other:
    backend = Other()
    monkeypatch.setitem(backends.KNOWN, "other", lambda: backend)
    return backend


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "programs.toml"
    path.write_text(EXPERIMENT + MORE)
    return path


def test_a_plan_knows_them_before_any_run(other: Other, file: Path) -> None:
    plan = redtail.check(file)
    assert [str(each.name) for each in plan.derived] == [GOODPUT, RETRIES, RTT, "per_rtt"]
    listed = CliRunner().invoke(app, ["list", "metrics", str(file)])
    assert listed.exit_code == 0, listed.output
    assert f"{GOODPUT}" in listed.output and "iperf.measured.rtt" in listed.output
    for key, why in [
        ('metrics.x="iperf.measured.goodputs"', "nearest: iperf.measured.goodput"),
        ('expect.y="iperf.measured.rtt < 1 Mbit/s"', "accepted: values of one unit"),
        ('report.metrics=["iperf.measured.gp"]', "no run has 'iperf.measured.gp'"),
    ]:
        with pytest.raises(SpecError, match=why):
            redtail.check(file, set=[key])
    assert "measured" not in plan.scenario(0, 0) and "Goodput" not in plan.scenario(0, 0)


def test_they_are_metrics_like_all_others(other: Other, file: Path, tmp_path: Path) -> None:
    results = redtail.run(file, out=tmp_path / "runs")
    assert other.ran == 12
    first = results.cases[0]
    assert first.values(GOODPUT) == pytest.approx([41_022_414.96 + 1e5 * n for n in range(6)])
    assert first.values(RTT) == pytest.approx([(113 + n) * 1e-6 for n in range(6)])
    found = first.metric(GOODPUT)
    assert (found.n, found.ci95 is not None) == (6, True)
    assert first.metric(RETRIES).n == 0
    # Those of the file stand first in tables, with their titles and units.
    chosen = results.select()
    assert chosen[:3] == [GOODPUT, RTT, "per_rtt"]
    assert names.axis(chosen[0]) == "Application goodput of iperf (Mbit/s)"
    assert names.head(chosen[1]).split("\n") == ["iperf:", "measured rtt", "µs"]
    per_rtt = first.values("per_rtt")
    assert per_rtt == [a * b for a, b in zip(*map(first.values, (GOODPUT, RTT)), strict=True)]
    assert f"{GOODPUT}_bit_per_s" in results.to_pandas().columns
    again = redtail.load(results.folder)
    assert again.to_json() == results.to_json()
    assert names.describe(again.select(GOODPUT)[0]).shown_unit == "Mbit/s"
    assert again.as_json()["units"][RTT] == "s"

    (row,) = results.compare(GOODPUT).rows
    assert abs(row.difference.mean) == pytest.approx(5e6 + 1e4 * 55 / 6)
    assert row.difference.ci95 is not None
    (verdicts,) = judge([(redtail.check(file), results)])
    assert verdicts.judgement is Judgement.HOLDS and len(verdicts.judged) == 2


def test_another_title_makes_no_new_run_and_another_place_does(
    other: Other, file: Path, tmp_path: Path
) -> None:
    redtail.run(file, out=tmp_path / "runs")
    file.write_text(file.read_text().replace("Application goodput", "Payload"))
    results = redtail.run(file, out=tmp_path / "runs")
    assert results.reused == 12
    assert names.axis(results.select(GOODPUT)[0]) == "Payload of iperf (Mbit/s)"
    file.write_text(file.read_text().replace("sum_received", "sum_sent"))
    assert redtail.run(file, out=tmp_path / "runs").reused == 0


def test_a_stop_rule_may_be_about_one(other: Other, file: Path, tmp_path: Path) -> None:
    results = redtail.run(
        file, out=tmp_path / "runs", until=f"{GOODPUT} within 5 %", at_least=3, at_most=9
    )
    assert [len(case.runs) for case in results.cases] == [3, 3]


def test_a_run_without_a_number_fails_with_the_reason(
    other: Other, file: Path, tmp_path: Path
) -> None:
    other.wrong[2] = (OUTPUTS / "iperf3-refused.json").read_bytes()
    with pytest.warns(redtail.RedtailWarning, match="2 of 12 runs failed"):
        results = redtail.run(file, out=tmp_path / "runs", keep_going=True)
    assert results.failed == 2
    assert (
        f"{GOODPUT}: end.sum_received.bits_per_second is not in the client's output: end has no "
        'key sum_received, and error is "unable to connect to server: Connection refused"; '
        "accepted: " in results.failures[0].text
    )
    assert "fault in redtail" not in results.failures[0].text


def test_the_page_and_differences_of_results_have_them(
    other: Other, file: Path, tmp_path: Path
) -> None:
    from redtail.analysis.moved import diff

    results = redtail.run(file, out=tmp_path / "runs")
    rows = diff(results, redtail.load(results.folder), metrics=GOODPUT)
    assert [row.verdict for row in rows] == ["equal", "equal"]
    done = CliRunner().invoke(
        app, ["report", str(results.folder), "--output", str(tmp_path / "page.html")]
    )
    assert done.exit_code == 0, done.output
    assert "Application goodput" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    "wrong",
    [
        [{"name": "goodput", "unit": "1", "text": ""}],
        [{"name": "a.measured.b", "unit": "m", "text": ""}],
        [{"name": "a.measured.b", "unit": "1", "text": "", "title": 3}],
        [{"name": "a.measured.\x1b", "unit": "1", "text": ""}],
        [{"unit": "1"}],
        "loss",
    ],
)
def test_results_with_a_wrong_measure_are_refused(tmp_path: Path, wrong: object) -> None:
    from redtail.store.sealing import sealed

    index = {
        "format": 1,
        "experiment": "x",
        "description": "",
        "factors": [],
        "cases": [],
        "files": {},
        "measures": wrong,
    }
    (tmp_path / "results.json").write_bytes(sealed(index))
    with pytest.raises(StoreError):
        redtail.load(tmp_path)


def test_what_is_wrong_with_a_measure_is_told_with_its_line(file: Path) -> None:
    text = file.read_text()
    for old, new, why in [
        ('unit = "us"', 'unit = "usec"', r'"usec" is no unit; accepted: 1, %, s, ms, us'),
        ("streams[*]", "streams[x]", r"\* or a key in quotes is missing at character 13"),
        ("retry ([0-9]+)", "retry", r"has 0 groups; accepted: one group"),
        ("retry ([0-9]+)", "retry ([0-9]+", r"accepted: a regular expression with one group"),
        ('statistic = "max"', 'statistic = "most"', r'"most" is no statistic; accepted: first'),
        ('unit = "us"', 'from = "server"\nunit = "us"', None),
        ('json = "end.streams', 'from = "../a"\njson = "end.streams', r"is no path inside {out}"),
        ('title = "App', 'titel = "App', r'did you mean "title"'),
    ]:
        assert old in text
        changed = text.replace(old, new)
        file.write_text(changed)
        if why is None:
            redtail.check(file, set=['backend="live"'])
            continue
        with pytest.raises(SpecError, match=why) as refused:
            redtail.check(file, set=['backend="live"'])
        line = next(
            number
            for number, (a, b) in enumerate(
                zip(text.splitlines(), changed.splitlines(), strict=False), start=1
            )
            if a != b
        )
        assert f"programs.toml:{line}: " in str(refused.value), refused.value


def test_units_of_one_metric_that_differ_in_quantity_are_refused(other: Other, file: Path) -> None:
    file.write_text(
        EXPERIMENT.replace(
            '"bottleneck.queue.limit" = ["20 packets", "60 packets"]',
            '"traffic.iperf.measure.rtt.unit" = ["us", "bytes"]',
        )
    )
    with pytest.raises(
        SpecError, match=r"traffic\.iperf\.measure\.rtt\.unit: is 'us' in one case and 'bytes' in"
    ):
        redtail.check(file)


def test_no_group_has_the_name_that_stands_before_them(file: Path) -> None:
    file.write_text(EXPERIMENT.replace('name = "iperf"', 'name = "measured"'))
    with pytest.raises(SpecError, match=r"is what results call what programs measure; accepted:"):
        redtail.check(file, set=['backend="live"'])


def test_numbers_are_read_from_all_pairs_and_files() -> None:
    plan = plans.plan(
        EXPERIMENT.replace("[traffic.measure.goodput]", "flows = 2\n\n[traffic.measure.goodput]")
        + '\n[traffic.measure.p50]\nqlog = "metrics_updated.smoothed_rtt"\nfrom = "*.sqlog"\n'
        'unit = "ms"\nstatistic = "p50"\npairs = "max"\n'
    )
    qlog = (OUTPUTS / "quic-go.sqlog").read_bytes()
    left = [Left(iperf3(n, 0.0), flow=n, files=[("a.sqlog", qlog)]) for n in range(2)]
    found = realtime.program_measures(plan.scenario(0, 0), left)
    assert found == pytest.approx(
        {GOODPUT: 41_072_414.96, RTT: 113.5e-6, "iperf.measured.p50": 1.568e-3}
    )
    with pytest.raises(RunError, match=r"in the client's output of pair 1: there is none"):
        realtime.program_measures(plan.scenario(0, 0), left[:1])
