"""Traces of rates beside an experiment, and results by phase."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import redtail
from redtail import metrics as names
from redtail import selection
from redtail.display.tables import summary_table
from redtail.errors import SpecError

TEXT = """
name = "trace"
duration = "6 s"
warmup = "1 s"
replications = 2
phases = ["2 s", "4 s"]
[bottleneck]
rate_trace = "traces/one.trace"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 2
[[traffic]]
name = "web"
kind = "bulk"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "one.trace").write_text("2\n2\n5\n")
    path = tmp_path / "e.toml"
    path.write_text(TEXT)
    return path


def test_a_trace_is_found_beside_the_file_whatever_the_folder(
    file: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    link = json.loads(redtail.check(file).scenario(0, 0))["bottleneck"]
    assert link["rate_trace"] == {"differences_ms": "2 0 3"}
    assert link["rate"] == "7.2 Mbit/s"  # 36,000 bit in 5 ms


def test_a_run_depends_on_what_the_trace_holds_and_not_on_its_name(file: Path) -> None:
    before = redtail.check(file).scenario(0, 0)
    trace = file.parent / "traces" / "one.trace"
    (file.parent / "two.trace").write_bytes(trace.read_bytes())
    other = {"bottleneck.rate_trace": "two.trace"}
    assert redtail.check(file, set=other).scenario(0, 0) == before
    trace.write_text("2\n2\n6\n")
    assert redtail.check(file).scenario(0, 0) != before


def test_a_trace_that_is_refused_is_named_with_its_line(file: Path) -> None:
    trace = file.parent / "traces" / "one.trace"
    trace.write_text("2\nsoon\n")
    with pytest.raises(SpecError) as caught:
        redtail.check(file)
    assert str(caught.value) == (
        f'{file}:8: bottleneck.rate_trace = "traces/one.trace": traces/one.trace:2: "soon" is no '
        "time; accepted: a whole number of milliseconds"
    )
    assert (caught.value.line, caught.value.key) == (8, "bottleneck.rate_trace")
    trace.write_bytes(b"1\n\xff\n")
    with pytest.raises(SpecError, match=r"is not a text file in UTF-8 \(byte 2\); accepted: "):
        redtail.check(file)
    trace.unlink()
    with pytest.raises(SpecError, match=r'one\.trace" is no file in .*; accepted: a path relative'):
        redtail.check(file)
    trace.mkdir()
    with pytest.raises(SpecError, match="cannot be read"):
        redtail.check(file)


def test_typed_objects_have_the_same_keys(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    bulk = redtail.Bulk(name="ftp", flows=2)
    queue = redtail.TailDrop(limit="20 packets")
    changes = [redtail.model.RateChange(at="2 s", rate="1 Mbit/s")]
    stepped = redtail.Bottleneck(rate="2 Mbit/s", rate_changes=changes, delay="5 ms", queue=queue)
    traced = redtail.Bottleneck(rate_trace="traces/one.trace", delay="5 ms", queue=queue)
    for link in (stepped, traced):
        whole = redtail.Experiment(
            name="typed", duration="6 s", bottleneck=link, traffic=[bulk], phases="auto"
        )
        scenario = json.loads(redtail.check(whole).scenario(0, 0))
        assert scenario.get("phases", []) == (["2 s"] if link is stepped else [])


def test_phases_have_rows_of_their_own_when_asked_for(file: Path, tmp_path: Path) -> None:
    from rich.console import Console

    results = redtail.run(file, out=tmp_path / "runs")
    assert results.phases == (1, 2, 3)
    case = results.cases[0]
    for number in results.phases:
        assert 0.5 < case.metric(f"phase{number}.utilization").mean <= 1
        assert case.metric(f"phase{number}.web.goodput").n == 2
    # Not of goodput: data that arrived out of order in one phase may be delivered in the next.
    parts = [case.metric(f"phase{number}.utilization").mean for number in results.phases]
    lengths = (1, 2, 2)
    whole = sum(part * length for part, length in zip(parts, lengths, strict=True)) / 5
    assert whole == pytest.approx(case.metric("utilization").mean)
    assert "phase1.goodput_bit_per_s" in results.to_arrow().column_names

    def printed(phases: bool) -> list[str]:
        console = Console(width=118, record=True, file=io.StringIO())
        console.print(summary_table(results, 118, phases))
        return console.export_text().splitlines()

    assert not any("phase" in line for line in printed(False))
    rows = [line.split()[:3] for line in printed(True) if line[:1].isdigit() or line[:3] == "all"]
    assert rows == [["all", "1", "6"], ["1", "1", "2"], ["2", "2", "4"], ["3", "4", "6"]]
    csv = results.table_text("csv", phases=True).splitlines()
    assert csv[0].startswith('"phase","from (s)","to (s)",')
    assert [row.replace('"', "").split(",")[:3] for row in csv[1:]][1:] == [
        ["1", "1.0", "2.0"],
        ["2", "2.0", "4.0"],
        ["3", "4.0", "6.0"],
    ]


def test_phases_are_rows_of_data_and_a_figure(file: Path, tmp_path: Path) -> None:
    results = redtail.run(file, out=tmp_path / "runs")
    table = results.to_arrow("phases")
    assert table["replication"].to_pylist() == [0, 0, 0, 1, 1, 1]
    assert table["phase"].to_pylist() == [1, 2, 3] * 2
    assert table["begin_time_s"].to_pylist() == [1.0, 2.0, 4.0] * 2
    assert table["end_time_s"].to_pylist() == [2.0, 4.0, 6.0] * 2
    case = results.cases[0]
    of_second = table["web.goodput_bit_per_s"].to_pylist()[1::3]
    assert of_second == list(case.column("phase2.web.goodput"))

    figure = results.figure("web.goodput", kind="phases")
    (levels,) = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 6]
    assert list(levels.get_xdata()) == [1.0, 2.0, 2.0, 4.0, 4.0, 6.0]
    means = [case.metric(f"phase{number}.web.goodput").mean for number in results.phases]
    assert list(levels.get_ydata())[::2] == pytest.approx([mean * 1e-6 for mean in means])
    with pytest.raises(redtail.RedtailError, match=r"no phase has the metric web\.fairness"):
        results.figure("web.fairness", kind="phases")


def test_what_metrics_of_phases_are_called() -> None:
    assert names.describe("phase2.ftp.goodput").unit == "bit/s"
    assert names.phase("phase12.loss") == 12
    assert names.phase("phases.loss") is None
    assert selection.default(["goodput", "phase1.goodput", "phase2.goodput"]) == ["goodput"]
