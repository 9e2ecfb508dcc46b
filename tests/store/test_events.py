"""The event log of stored runs: its table, its limit, and how it is asked for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import redtail
from redtail.cli import app
from redtail.errors import RedtailWarning, StoreError
from redtail.experiment import Toml, asking_for_events
from redtail.store import segments

EXPERIMENT = """
name = "logged"
duration = "5 s"
warmup = "1 s"
replications = 2
[bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = { kind = "red", limit = "60 packets", min_th = "5 packets", max_th = "15 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 3
tcp = { preset = "linux" }
"""


def test_a_run_has_its_events_as_a_table_with_names(tmp_path: Path) -> None:
    results = redtail.run(Toml(EXPERIMENT), set={"events": {}}, out=tmp_path)
    table = results.events(replication=1)
    rows = table.to_pylist()
    assert [row["time_s"] for row in rows] == sorted(row["time_s"] for row in rows)
    assert table.schema.field("bytes").metadata[b"unit"] == b"bytes"
    assert pa.types.is_dictionary(table.schema.field("event").type)
    case = results.cases[0]
    counted = {"timeout": "timeouts", "recovery": "fast_recoveries"}
    for event, metric in counted.items():
        found = [row for row in rows if row["event"] == event and row["time_s"] >= 1]
        assert len(found) == case.values(f"ftp.{metric}")[1], event
        assert all(row["group"] == "ftp" and row["link"] is None for row in found)
    drops = [row for row in rows if row["event"] == "drop"]
    assert {row["reason"] for row in drops} <= {"early", "forced", "limit"}
    assert all(row["link"] == "bottleneck" and row["bytes"] > 0 for row in drops)
    assert all(row["average"] > 0 for row in drops)
    assert drops[0]["connection"] is None
    assert results.warnings == ()
    # Runs with a log have folders, also in large campaigns.
    assert {path.name for path in case.runs[0].folder.iterdir()} > {"events.parquet"}
    assert segments.LARGE > 2


def test_recording_changes_no_metric(tmp_path: Path) -> None:
    without = redtail.run(Toml(EXPERIMENT), out=tmp_path / "without")
    logged = redtail.run(Toml(EXPERIMENT), set={"events": {}}, out=tmp_path / "with")
    assert without.cases[0].runs[0].metrics == logged.cases[0].runs[0].metrics
    with pytest.raises(StoreError, match="no events were recorded for replication 0; ask for them"):
        without.events()


def test_a_log_that_is_full_is_told(tmp_path: Path) -> None:
    with pytest.warns(RedtailWarning, match="the event log of 2 of 2 runs reached its limit"):
        results = redtail.run(Toml(EXPERIMENT), set={"events.limit": 20}, out=tmp_path)
    assert results.events().num_rows == 21
    last = results.events().to_pylist()[-1]
    assert last["event"] == "log_full" and last["value"] > 0
    (warning,) = results.warnings
    assert warning.startswith("the event log of 2 of 2 runs reached its limit, 20 rows: up to ")


def test_the_first_replications_can_be_recorded_alone(tmp_path: Path) -> None:
    results = redtail.run(Toml(EXPERIMENT), set={"events.replications": 1}, out=tmp_path)
    assert results.events().num_rows > 0
    with pytest.raises(StoreError, match="no events were recorded for replication 1"):
        results.events(replication=1)


def test_the_option_asks_for_what_the_file_does_not() -> None:
    assert asking_for_events(Toml(EXPERIMENT), None) == ["events={}"]
    own = Toml(EXPERIMENT + "[events]\nlimit = 10\n")
    assert asking_for_events(own, {"seed": 3}) == ["seed=3"]
    assert asking_for_events(Toml(EXPERIMENT), ["events.limit=5"]) == ["events.limit=5"]


def test_the_commands_ask_for_events_and_explain_them(tmp_path: Path) -> None:
    file = tmp_path / "logged.toml"
    file.write_text(EXPERIMENT)
    out = str(tmp_path / "runs")
    runner = CliRunner()
    done = runner.invoke(app, ["run", str(file), "--events", "--no-figures", "--out", out])
    assert done.exit_code == 0, done.output
    assert redtail.load(tmp_path / "runs" / "logged").events().num_rows > 0
    listed = runner.invoke(app, ["list", "events"]).output
    assert "timeout (of a flow)" in listed and "reason frto:" in listed
    unknown = runner.invoke(app, ["list", "events", "timeot"])
    assert unknown.exit_code != 0
