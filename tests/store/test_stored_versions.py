"""Results that earlier versions have stored are opened, with the numbers that they had then.

`tests/store/fixtures/README.md` says what is in the folders, and why they are never made again.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import redtail
from redtail import experiment, facts, packing
from redtail.analysis.export import JSON_FORMAT
from redtail.cli import app
from redtail.store import format, index, segments
from redtail.studies import report

from conftest import ROOT

FIXTURES = ROOT / "tests" / "store" / "fixtures"
VERSIONS = sorted(path.name for path in FIXTURES.glob("results-*"))
STORED = [
    pytest.param(version, name, id=f"{version}-{name}")
    for version in VERSIONS
    for name in sorted(path.name for path in (FIXTURES / version / "runs").iterdir())
]


def command(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


def assert_kept(then: Any, now: Any, where: str = "") -> None:
    """Everything that was said then is said now; more may be said."""
    if isinstance(then, dict):
        assert isinstance(now, dict), where
        for key, value in then.items():
            assert key in now, f"{where}/{key}"
            assert_kept(value, now[key], f"{where}/{key}")
    elif isinstance(then, list):
        assert isinstance(now, list) and len(then) == len(now), where
        for number, (one, other) in enumerate(zip(then, now, strict=True)):
            assert_kept(one, other, f"{where}/{number}")
    elif isinstance(then, float) and isinstance(now, float):
        # The same sums, perhaps in another order.
        assert math.isclose(then, now, rel_tol=1e-12), f"{where}: {then} {now}"
    else:
        assert then == now, where


@pytest.fixture
def runs(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of the folder of results of a version, since commands write into it."""
    version = request.node.callspec.params["version"]
    return Path(shutil.copytree(FIXTURES / version / "runs", tmp_path / "runs"))


def test_there_are_results_of_the_first_version() -> None:
    assert VERSIONS[0] == "results-0.1.0"
    assert {"folders", "many-runs", "objects"} == {param.values[1] for param in STORED[:3]}


@pytest.mark.parametrize(("version", "name"), STORED)
def test_stored_results_say_what_they_said_then(version: str, name: str) -> None:
    then = json.loads((FIXTURES / version / f"{name}.json").read_text())
    results = redtail.load(FIXTURES / version / "runs" / name)
    assert_kept(then, results.as_json())
    assert results.provenance.version == version.removeprefix("results-")


@pytest.mark.parametrize(("version", "name"), STORED)
def test_every_table_of_stored_results_opens(version: str, name: str) -> None:
    results = redtail.load(FIXTURES / version / "runs" / name)
    rows = results.to_pandas()
    assert len(rows) == results.run_count > 0
    first = rows if not results.factors else rows[: len(results.cases[0].runs)]
    assert first["loss"].mean() == pytest.approx(results.cases[0].metric("loss").mean, rel=1e-12)
    flows = results.flows(case=0, replication=0)
    assert flows.num_rows == {"folders": 2, "many-runs": 2, "objects": 7}[name]
    assert sum(flows["delivered_bytes"].to_pylist()) > 0
    assert results.distributions
    shares = results.cdf(results.distributions[0])
    assert shares.num_rows > 0
    assert results.consecutive_losses() is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_tables_of_single_runs_open(version: str) -> None:
    folder = FIXTURES / version / "runs"
    files = redtail.load(folder / "folders")
    times = files.transfers(case=1)["completion_time_s"].to_pylist()
    mean = files.case(queue="RED").metric("file.completion_time_mean").mean
    assert sum(times) / len(times) == pytest.approx(mean, rel=1e-9)
    for table, rows in (("queues", 6), ("flows", 12), ("groups", 6)):
        assert files.series(table).num_rows == rows, table
    pages = redtail.load(folder / "objects")
    assert pages.user_groups == ("web",)
    assert pages.response_times().num_rows > 0


@pytest.mark.parametrize(("version", "name"), STORED)
def test_commands_read_stored_results(version: str, name: str, runs: Path) -> None:
    experiment = json.loads((FIXTURES / version / f"{name}.json").read_text())["experiment"]
    listed = json.loads(command("runs", "list", "--json", "--out", str(runs)))
    assert name in [each["experiment"] for each in listed]
    assert "everything is as it was written" in command("runs", "verify", "--out", str(runs))
    shown = json.loads(command("runs", "show", name, "--json", "--out", str(runs)))
    assert shown["in_results"] == shown["runs"] > 0
    page = runs / name / "report.html"
    command("report", str(runs / name))
    assert experiment in page.read_text(encoding="utf-8")
    if redtail.load(runs / name).factors:
        words = ["compare", str(runs / name), "--metric", "loss", "--json"]
        assert json.loads(command(*words))["comparisons"]
    same = json.loads(command("diff", str(runs / name), str(runs / name), "--json"))
    assert same["same"] and not same["only"]


@pytest.mark.parametrize(("version", "name"), STORED)
def test_the_experiments_of_stored_results_are_still_valid(version: str, name: str) -> None:
    folder = FIXTURES / version / "runs" / name
    file = folder / "experiment.toml"
    if file.is_file():
        then = json.loads((FIXTURES / version / f"{name}.json").read_text())
        plan = redtail.check(file)
        assert [case.labels for case in plan.cases] == [case["labels"] for case in then["cases"]]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_archive_opens_and_its_experiment_runs(version: str, tmp_path: Path) -> None:
    about = packing.unpack(FIXTURES / version / "packed.zip", tmp_path / "archive")
    assert about["redtail_version"] == version.removeprefix("results-")
    then = json.loads((FIXTURES / version / "packed.json").read_text())
    assert_kept(then, redtail.load(tmp_path / "archive" / "results").as_json())
    # Numbers of another version may be others; that they are compared is what is checked.
    verified = packing.verify(FIXTURES / version / "packed.zip")
    assert verified.runs == then["cases"][0]["metrics"]["utilization"]["n"] == 1
    assert set(verified.tables) == {"cases.parquet", "replications.parquet"}


def test_the_page_of_formats_has_the_numbers_that_are_written() -> None:
    page = (ROOT / "docs/reference/stability.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    numbers = {name: number for name, _, number in rows[1:]}
    assert numbers == {
        "experiment file": str(experiment.FORMAT),
        "index of results, `results.json`": str(index.FORMAT),
        "tables `cases.parquet`, `replications.parquet`": str(index.FORMAT),
        "folder of a run, `manifest.json`": str(format.FORMAT),
        "segment, `segments/HASH.parquet`": str(segments.FORMAT),
        "archive of `redtail pack`, `pack.json`": str(packing.FORMAT),
        "output of `--json`": f"{JSON_FORMAT}; of `redtail reproduce` {report.JSON_FORMAT}",
    }
    assert facts.schema()["properties"]["format"]["enum"] == [experiment.FORMAT]


@pytest.mark.parametrize("version", VERSIONS)
def test_new_runs_of_a_stored_experiment_stand_beside_the_stored_ones(
    version: str, runs: Path, tmp_path: Path
) -> None:
    stored = redtail.load(runs / "folders")
    again = redtail.run(runs / "folders" / "experiment.toml", out=tmp_path / "again")
    found = json.loads(
        CliRunner().invoke(app, ["diff", str(stored.folder), str(again.folder), "--json"]).stdout
    )
    assert found["format"] == 1
    assert found["old"]["made_by"] == stored.made_by
    assert not found["only"]
