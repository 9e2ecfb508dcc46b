"""`redtail diff --exact`: whether two results agree bit for bit."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import redtail
from redtail.analysis import exact as module
from redtail.analysis.case import CaseResult
from redtail.analysis.exact import exact
from redtail.analysis.results import Results
from redtail.cli import app
from redtail.store.folders import StoredRun
from redtail.store.parquet import parquet_bytes

EXAMPLE = "examples/quickstart.toml"


def _results(folder: Path, *values: dict[str, float]) -> Results:
    runs = {n: StoredRun(f"{n:016}", folder, metrics, {}, {}) for n, metrics in enumerate(values)}
    case = CaseResult.of({}, {}, runs, ())
    return Results(name="x", description="", factors=[], cases=(case,), folder=folder)


@pytest.mark.parametrize("other", [math.nextafter(1.0, 2.0), 2.0])
def test_one_bit_is_a_difference(tmp_path: Path, other: float) -> None:
    old = _results(tmp_path, {"loss": 1.0, "goodput": 3.0}, {"loss": 2.0})
    assert exact(old, old).same
    assert exact(old, old).values == 3
    found = exact(old, _results(tmp_path, {"loss": other, "goodput": 3.0}, {"loss": 2.0}))
    assert not found.same
    assert found.count == 1
    assert found.differences == (f"the case, replication 0: metric loss was 1.0, is {other!r}",)


def test_signs_of_zero_undefined_values_and_missing_runs_differ(tmp_path: Path) -> None:
    old = _results(tmp_path, {"loss": 0.0})
    assert not exact(old, _results(tmp_path, {"loss": -0.0})).same
    (line,) = exact(old, _results(tmp_path, {})).differences
    assert line == "the case, replication 0: metric loss was 0.0, is undefined"
    (line,) = exact(old, _results(tmp_path, {"loss": 0.0}, {"loss": 0.0})).differences
    assert line == "the case, replication 1: only in the new"


def test_the_list_is_bounded(tmp_path: Path) -> None:
    old = _results(tmp_path, *({"loss": float(n)} for n in range(50)))
    new = _results(tmp_path, *({"loss": float(n) + 1} for n in range(50)))
    found = exact(old, new)
    assert len(found.differences) == module.MOST
    assert found.count == 50


def test_tables_are_compared_column_by_column(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, value in zip(folders, (2.0, math.nextafter(2.0, 3.0)), strict=True):
        folder.mkdir()
        table = pa.table({"time_s": [1.0, math.nan, None], "v": [value, 1.0, 1.0]})
        (folder / "series_queues.parquet").write_bytes(parquet_bytes(table))
    old, new = (_results(folder, {"loss": 0.0}) for folder in folders)
    assert exact(old, old).same
    (line,) = exact(old, new).differences
    assert line.startswith("the case, replication 0: table series_queues, column v, row 0: was 2.0")


def test_diff_exact_exits_with_one_if_a_number_is_another(tmp_path: Path) -> None:
    short = {"duration": "4 s", "warmup": "3 s", "replications": 2}
    folders = [
        str(redtail.run(EXAMPLE, out=tmp_path / name, set={**short, "seed": seed}).folder)
        for name, seed in (("one", 1), ("two", 1), ("three", 2))
    ]
    same = CliRunner().invoke(app, ["diff", folders[0], folders[1], "--exact"])
    assert same.exit_code == 0
    assert same.stdout.startswith("equal: 4 runs of both, ")
    words = ["diff", folders[0], folders[2], "--exact"]
    other = CliRunner().invoke(app, words)
    assert other.exit_code == 1
    lines = other.stdout.splitlines()
    assert lines[0].startswith("differs: tail drop, replication 0: metric ")
    assert len(lines) == module.MOST + 1
    assert lines[-1] == "4 runs or cases differ; the first differences are above"
    as_json = CliRunner().invoke(app, [*words, "--json"])
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["differing"] == 4
    refused = CliRunner().invoke(app, [*words, "--tolerance", "loss=1 %"])
    assert refused.exit_code == 2
    assert "--tolerance: does not go with --exact" in refused.stderr
