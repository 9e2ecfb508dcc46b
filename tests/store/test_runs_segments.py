"""The store's commands know the runs that large campaigns keep many to a file."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

import redtail
from redtail.analysis import stored
from redtail.cli import app
from redtail.errors import StoreError
from redtail.running import runner
from redtail.store import format, runs, segments
from redtail.store.format import FAILED

TEXT = """
name = "many"
duration = "100 ms"
replications = 1000
[bottleneck]
rate = "1 Mbit/s"
delay = "1 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "cbr"
kind = "cbr"
rate = "500 kbit/s"
packet = "500 B"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    redtail.run(redtail.Toml(TEXT), out=folder)
    return folder


def test_a_large_campaign_is_listed_and_whole(store: Path) -> None:
    (found,) = runs.listing(store)
    assert (found.runs, found.in_results) == (1000, 1000)
    assert sum(found.versions.values()) == 1000
    assert list(runs.verify(found.folder)) == []


def test_a_segment_that_was_altered_is_found_and_named(store: Path) -> None:
    path = next((store / "many" / "segments").glob("*.parquet"))
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    try:
        findings = list(runs.verify(store / "many"))
        assert (findings[0].path, findings[0].kind) == (path, "damaged")
        # What the results refer to in it is missing.
        assert {each.kind for each in findings[1:]} == {"missing"}
    finally:
        path.write_bytes(data)
    other = path.with_name("notes.txt")
    other.write_text("mine")
    try:
        (finding,) = runs.verify(store / "many")
        assert (finding.path, finding.kind) == (other, "foreign")
    finally:
        other.unlink()


def invoke(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["runs", *map(str, arguments)])
    return done.exit_code, done.output


def referred(folder: Path) -> set[str]:
    found = runs.referred_to(folder)
    assert found is not None
    return set(found)


def files(folder: Path) -> list[Path]:
    return sorted((folder / "segments").glob("*.parquet"))


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A segment with 12 runs, 4 of them in the results; one with 14 of a seed that are not."""
    monkeypatch.setattr(runner, "LARGE", 12)
    monkeypatch.setattr(stored, "LARGE", 12)
    redtail.run(redtail.Toml(TEXT), out=tmp_path, set={"seed": 2}, replications=14)
    redtail.run(redtail.Toml(TEXT), out=tmp_path, replications=12)
    redtail.run(redtail.Toml(TEXT), out=tmp_path, replications=4)
    return tmp_path / "many"


def test_a_run_in_a_segment_is_shown_as_one_with_a_folder_is(store: Path, tmp_path: Path) -> None:
    alone = redtail.run(redtail.Toml(TEXT), out=tmp_path, replications=3)
    key = alone.cases[0].runs[2].key
    folder, segment = (
        json.loads(invoke("show", key, "--out", root, "--json")[1]) for root in (tmp_path, store)
    )
    assert folder["folder"] == str(alone.folder / key)
    assert segment["segment"] in map(str, files(store / "many"))
    same = ("run", "experiment", "in_results", "metrics", "scenario")
    assert [folder[name] for name in same] == [segment[name] for name in same]
    only_folders = {"files", "checksum"}
    assert folder["manifest"].keys() - segment["manifest"].keys() == only_folders
    for name in ("run", "replication", "seed", "code_version", "bottleneck_packets", "events"):
        assert folder["manifest"][name] == segment["manifest"][name], name

    code, output = invoke("show", f"many/{key[:9]}", "--out", store)
    assert code == 0
    assert f"run {key} of many in {segment['segment']}\n" in output
    assert "in the results: replication 2\n" in output and "files:" not in output
    code, output = invoke("verify", key, "--out", store)
    assert (code, output) == (0, "1 run checked: everything is as it was written\n")
    code, output = invoke("verify", "--out", store)
    assert output == "1000 runs in 1 experiment checked: everything is as it was written\n"
    code, output = invoke("show", "0" * 16, "--out", store)
    assert code == 1 and "no run and no experiment" in output


def test_runs_in_segments_that_are_not_in_the_results_are_listed(mixed: Path) -> None:
    shown = runs.show(mixed.parent, mixed)
    assert (shown["runs"], len(shown["results"]), len(shown["others"])) == (26, 4, 22)


def test_gc_takes_runs_out_of_segments(mixed: Path) -> None:
    kept = referred(mixed)
    before = {name: (mixed / name).read_bytes() for name in ("results.json", "cases.parquet")}
    assert runs.clean(mixed).removals == []
    told = runs.clean(mixed, unreferenced=True)
    assert sorted(each.why for each in told.removals) == [
        "14 runs not in the results",
        "8 of 12 runs not in the results",
    ]
    assert len(files(mixed)) == 2, "nothing is removed without being asked for"
    code, output = invoke("gc", "--unreferenced", "--yes", "--out", mixed.parent)
    assert code == 0 and "removed 2 things" in output
    (path,) = files(mixed)
    assert set(segments.names_in(path)) == kept
    assert list(runs.verify(mixed)) == []
    again = redtail.run(redtail.Toml(TEXT), out=mixed.parent, replications=4)
    assert again.reused == 4
    assert {name: (mixed / name).read_bytes() for name in before} == before
    assert runs.clean(mixed, unreferenced=True, yes=True).removals == []


def test_gc_of_older_code_leaves_what_is_in_the_results_and_what_is_of_this_code(
    mixed: Path,
) -> None:
    version = segments.about(segments.read_segment(files(mixed)[0]))["code_version"]
    assert runs.clean(mixed, code_version=version, yes=True).removals == []
    found = runs.clean(mixed, code_version="another", yes=True)
    assert all(f"of other code ({version})" in each.why for each in found.removals)
    (path,) = files(mixed)
    assert set(segments.names_in(path)) == referred(mixed)


def test_gc_without_results_takes_nothing_out_of_segments(mixed: Path) -> None:
    (mixed / "results.json").unlink()
    (mixed / FAILED).mkdir()  # or it would be no experiment
    found = runs.clean(mixed, unreferenced=True, yes=True)
    assert found.removals == [] and "it is unknown which runs" in found.kept[0]


def test_gc_removes_damaged_segments_and_leaves_those_of_another_format(mixed: Path) -> None:
    damaged, other = files(mixed)
    data = damaged.read_bytes()
    damaged.write_bytes(data[:99] + bytes([data[99] ^ 1]) + data[100:])
    table = segments.read_segment(other)
    about = {**segments.about(table), "format": 99}
    data = segments._parquet(table.replace_schema_metadata({"redtail": json.dumps(about)}))
    newer = other.with_name(f"{format.segment_name(data)}.parquet")
    newer.write_bytes(data)
    other.unlink()
    (refused,) = [each for each in runs.verify(mixed) if each.kind == "refused"]
    assert refused.path == newer
    found = runs.clean(mixed, yes=True)
    assert [(each.path, each.why) for each in found.removals] == [(damaged, "damaged")]
    assert "format 99" in found.kept[0]
    assert files(mixed) == [newer]


def test_gc_that_is_killed_loses_nothing_and_is_finished_by_the_next(
    mixed: Path, tmp_path: Path
) -> None:
    """SIGKILL before each change to the file system, and in the middle of each file's content."""
    kept = referred(mixed)
    undisturbed = tmp_path / "undisturbed"
    shutil.copytree(mixed, undisturbed)
    runs.clean(undisturbed, unreferenced=True, yes=True)
    script = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        from redtail.store import runs
        from store_process import count_changes
        count_changes(lambda count: count == int(sys.argv[2]))
        runs.clean(Path(sys.argv[1]), unreferenced=True, yes=True)
        """
    )
    for number in range(1, 99):
        folder = tmp_path / f"killed-{number}"
        shutil.copytree(mixed, folder)
        command = [sys.executable, "-c", script, str(folder), str(number)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, "tests"])}
        status = subprocess.run(command, check=False, env=environment).returncode
        assert status in (0, -signal.SIGKILL)
        assert kept <= set(runs.all_names(folder))
        assert {each.kind for each in runs.verify(folder)} <= {"unfinished"}
        runs.clean(folder, unreferenced=True, yes=True)
        assert files(folder) == [folder / "segments" / path.name for path in files(undisturbed)]
        assert list(runs.verify(folder)) == []
        if status == 0:
            break
    assert number > 4, "writing aside, renaming and two removals"


@pytest.mark.filterwarnings("ignore::redtail.errors.RedtailWarning")
def test_a_segment_of_wrong_types_under_the_name_of_its_bytes_is_damaged(
    store: Path, tmp_path: Path
) -> None:
    import pyarrow as pa

    (path,) = sorted((store / "many" / "segments").glob("*.parquet"))[:1]
    table = segments.read_segment(path)
    common = segments.about(table)
    key = table.column("run")[0].as_py()

    def about(**changes: object) -> pa.Table:
        text = json.dumps({**common, **changes})
        return table.replace_schema_metadata({"redtail": text})

    def column(name: str, value: object, kind: pa.DataType) -> pa.Table:
        values = pa.array([value] * table.num_rows, kind)
        return table.set_column(table.schema.names.index(name), name, values)

    tables = [table.replace_schema_metadata({}), table.replace_schema_metadata({"redtail": "x"})]
    for wrong in (None, 3, "x", [], {}, [1], [["no such metric"]]):
        tables += [about(**{name: wrong}) for name in ("format", "backend", "code_version")]
        tables.append(about(metrics=wrong))
    for name in ("run", "metrics", "consecutive_losses", "scenario", "created", "events"):
        tables.append(table.drop_columns([name]))
        for value, kind in ((None, pa.null()), (None, pa.string()), (9, pa.int64()), ("x", None)):
            tables.append(column(name, value, kind))
    for losses in ("[1]", "{", '{"bottleneck": 3}', '{"bottleneck": ["x"]}'):
        tables.append(column("consecutive_losses", losses, pa.string()))
    folder = tmp_path / "many"
    for wrong in tables:
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "segments").mkdir(parents=True)
        data = segments._parquet(wrong)
        new = folder / "segments" / f"{format.segment_name(data)}.parquet"
        new.write_bytes(data)
        readers = [
            lambda: list(runs.verify(folder)),
            lambda: runs.listing(tmp_path),
            lambda: runs.text(runs.show(tmp_path, folder)),
            lambda: runs.text(runs.show(tmp_path, folder / key)),
            lambda: runs.clean(folder, unreferenced=True, code_version="x"),
            lambda: segments.in_segments(folder),
            lambda: segments.in_segments(folder).run(0),
        ]
        refused = 0
        for reader in readers:
            try:
                reader()
            except (StoreError, IndexError):  # there is no run 0
                refused += 1
        told = [each.kind for each in runs.verify(folder)]
        assert told or refused, wrong.schema
