"""Large campaigns: segments in place of folders, checkpoints, columns in place of objects."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

import redtail
from redtail.analysis import stored
from redtail.errors import RedtailWarning, StoreError
from redtail.outcomes import Rows
from redtail.running import runner
from redtail.store import segments, writing

from conftest import ROOT
from fake_native import FakeNative, RunResult


@pytest.fixture
def plain(fake: FakeNative, monkeypatch: pytest.MonkeyPatch) -> FakeNative:
    """An engine whose runs have no tables of their own, and for which 12 runs are many."""
    init = RunResult.__init__

    def without_series(self: RunResult, scenario: str) -> None:
        init(self, scenario)
        self.series = {}
        if int(scenario.encode().hex(), 16) % 3 == 0:
            # Not every metric is defined in every run.
            self.metrics["queue_delay_p95"] = float("nan")

    monkeypatch.setattr(RunResult, "__init__", without_series)
    large(monkeypatch, 12)
    return fake


def large(monkeypatch: pytest.MonkeyPatch, runs: int) -> None:
    monkeypatch.setattr(runner, "LARGE", runs)
    monkeypatch.setattr(stored, "LARGE", runs)


def files(folder: Path) -> list[Path]:
    return sorted((folder / segments.FOLDER).glob("*.parquet"))


def test_segments_change_no_result(
    plain: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large(monkeypatch, 13)
    folders = redtail.run(fake_file, out=tmp_path / "folders")
    large(monkeypatch, 12)
    columns = redtail.run(fake_file, out=tmp_path / "segments")
    assert not files(folders.folder)
    assert len(files(columns.folder)) == 1
    assert not [path for path in columns.folder.iterdir() if len(path.name) == 16]
    for name in ("cases.parquet", "replications.parquet", "results.json"):
        assert (folders.folder / name).read_bytes() == (columns.folder / name).read_bytes(), name
    loaded = redtail.load(columns.folder)
    for one, other in zip(folders.cases, loaded.cases, strict=True):
        assert dict(one.metrics) == dict(other.metrics)
        assert list(one.runs) == list(other.runs)
        for number, run in one.runs.items():
            assert run.metrics == other.runs[number].metrics
            assert run.consecutive_losses == other.runs[number].consecutive_losses
    assert loaded.to_json() == columns.to_json() == folders.to_json()
    assert loaded.to_arrow().equals(folders.to_arrow())


def test_a_segment_says_what_its_runs_are(
    plain: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    results = redtail.run(fake_file, out=tmp_path)
    (path,) = files(results.folder)
    table = segments.read_segment(path)
    assert sorted(table.column("scenario").to_pylist()) == sorted(plain.ran)
    assert segments.about(table)["code_version"] == "fake-1"
    assert table.schema.field("queue_delay_mean_s").metadata[b"unit"] == b"s"
    # Any reader of Parquet sees the same.
    frame = pl.read_parquet(path, columns=["run", "goodput_bit_per_s"])
    assert frame.height == 12


def test_a_run_that_two_cases_need_is_made_once(
    plain: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []
    twice = {"factors.'traffic.ftp.flows'": [16, 16, 64], "replications": 6}
    results = redtail.run(
        fake_file,
        out=tmp_path,
        set=twice,
        progress=lambda state: seen.append((state.done, state.total)),
    )
    assert (len(plain.ran), results.run_count) == (12, 18)
    assert seen[-1] == (12, 12)
    again = redtail.run(fake_file, out=tmp_path, set=twice)
    assert (len(plain.ran), again.to_json()) == (12, results.to_json())


def test_loss_events_are_read_when_they_are_asked_for(
    plain: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    results = redtail.run(fake_file, out=tmp_path)
    assert results.links == ("bottleneck", "return")  # without reading any
    (path,) = files(results.folder)
    aside = path.rename(path.with_suffix(".aside"))
    with pytest.raises(StoreError):
        results.cases[0].runs[0].consecutive_losses  # noqa: B018
    aside.rename(path)
    loaded = redtail.load(results.folder)
    assert loaded.links == results.links
    run = results.cases[0].runs[0]
    assert run.consecutive_losses["bottleneck"][:2] == [100, 20]
    assert run.consecutive_losses["return"] == []


def test_a_campaign_does_without_pandas(tmp_path: Path) -> None:
    """Arrow would load it for a list of numbers; it takes as long as a thousand short runs."""
    script = f"""
import sys, redtail
results = redtail.run(redtail.Toml({CAMPAIGN!r}), replications=3, out={str(tmp_path)!r})
results = redtail.run(redtail.Toml({CAMPAIGN!r}), replications=1000, out={str(tmp_path)!r})
redtail.load(results.folder)
assert results.reused == 3
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, cwd=ROOT).returncode == 0


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux does")
def test_reading_starts_no_thread(tmp_path: Path) -> None:
    """A thread of Arrow that releases a Python object at the interpreter's exit aborts it."""
    script = f"""
import os, pathlib, sys
import pyarrow as pa
from redtail.store.parquet import open_parquet, parquet_bytes, read_parquet
data = parquet_bytes(pa.table({{"a": range(100_000)}}))
path = pathlib.Path({str(tmp_path / "table.parquet")!r})
path.write_bytes(data)
before = len(os.listdir("/proc/self/task"))
assert open_parquet(data).read(use_threads=False).num_rows == 100_000
assert read_parquet(path).num_rows == 100_000
sys.exit(len(os.listdir("/proc/self/task")) - before)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, cwd=ROOT).returncode == 0


def test_runs_in_segments_are_not_made_again(
    plain: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    first = redtail.run(fake_file, out=tmp_path)
    again = redtail.run(fake_file, out=tmp_path)
    assert (len(plain.ran), again.reused) == (12, 12)
    assert again.to_json() == first.to_json()
    # A smaller experiment of the same name finds them too.
    fewer = redtail.run(fake_file, replications=2, out=tmp_path)
    assert (len(plain.ran), fewer.reused, fewer.run_count) == (12, 8, 8)
    assert redtail.load(fewer.folder).to_json() == fewer.to_json()
    plain.version_of_code = "fake-2"
    assert redtail.run(fake_file, out=tmp_path).reused == 0


def test_a_damaged_segment_is_noticed_and_its_runs_are_made_again(
    plain: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    first = redtail.run(fake_file, out=tmp_path)
    (path,) = files(first.folder)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.warns(RedtailWarning, match="segment is damaged.*run again"):
        again = redtail.run(fake_file, out=tmp_path)
    assert (len(plain.ran), again.reused) == (24, 0)
    assert again.to_json() == first.to_json()
    # It is out of the way, and everything is as before.
    assert path not in files(first.folder)
    assert redtail.run(fake_file, out=tmp_path).reused == 12


def test_tables_of_another_command_are_not_taken_for_these(
    plain: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    results = redtail.run(fake_file, out=tmp_path)
    path = results.folder / "replications.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(StoreError, match=r"replications.parquet.*results.json belongs to"):
        redtail.load(results.folder)


def test_what_is_finished_is_kept_when_interrupted_or_failing(
    plain: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    def interrupt(number: int) -> None:
        if number == 6:
            plain.delay = 60.0
            signal.raise_signal(signal.SIGINT)

    plain.before_run = interrupt
    with pytest.raises(redtail.Cancelled) as caught:
        redtail.run(fake_file, out=tmp_path, jobs=1)
    assert caught.value.kept == 6
    plain.delay, plain.before_run = 0.0, lambda number: None
    plain.ran.clear()

    def fail(number: int) -> None:
        if number == 3:
            raise RuntimeError("no luck")

    plain.before_run = fail
    with pytest.raises(redtail.RunError, match="no luck"):
        redtail.run(fake_file, out=tmp_path, jobs=1)
    plain.before_run = lambda number: None
    assert redtail.run(fake_file, out=tmp_path).reused >= 9


def test_an_interrupt_does_not_stop_half_way_through_putting_a_run_away(
    plain: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extend = segments.RunTable.extend
    calls = []

    def interrupted(table: segments.RunTable, keys: Sequence[str], rows: Rows) -> range:
        added = extend(table, keys, rows)
        calls.append(keys)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)  # the runs are in the table, not in the segment
        return added

    monkeypatch.setattr(segments.RunTable, "extend", interrupted)
    with pytest.raises(redtail.Cancelled) as caught:
        redtail.run(fake_file, out=tmp_path, jobs=1)
    assert caught.value.kept >= 3
    assert redtail.run(fake_file, out=tmp_path).reused == caught.value.kept
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_full_disk_leaves_whole_segments_only(
    plain: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_new = writing.write_new

    def fill(path: Path, data: bytes) -> None:
        write_new(path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(writing, "write_new", fill)
    with pytest.raises(StoreError, match=r"No space left on device.*goes on from there"):
        redtail.run(fake_file, out=tmp_path / "runs", jobs=1)
    monkeypatch.setattr(writing, "write_new", write_new)
    left = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert {path.name for path in left} <= {".lock"}
    assert redtail.run(fake_file, out=tmp_path / "runs").run_count == 12


CAMPAIGN = """\
name = "Many"
duration = "1 s"
warmup = "0.2 s"
replications = 1500

[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "50 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
"""


@pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")
def test_a_killed_campaign_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    """SIGKILL after the first checkpoint: what it holds is not made again."""
    file = tmp_path / "many.toml"
    file.write_text(CAMPAIGN)
    whole = redtail.run(file, out=tmp_path / "whole")
    script = textwrap.dedent(
        f"""
        import redtail
        from redtail.store import segments
        segments._SECONDS = 0.05
        redtail.run({str(file)!r}, out={str(tmp_path / "killed")!r})
        """
    )
    folder = tmp_path / "killed" / "many"
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stderr=subprocess.DEVNULL)
    while not files(folder) and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    process.wait()
    kept = {
        key
        for path in files(folder)
        for key in segments.read_segment(path, ["run"]).column("run").to_pylist()
    }
    finished = redtail.run(file, out=tmp_path / "killed")
    assert finished.reused == len(kept) > 0
    for name in ("cases.parquet", "replications.parquet", "results.json"):
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes(), name
    runs = [
        key
        for path in files(folder)
        for key in segments.read_segment(path, ["run"]).column("run").to_pylist()
    ]
    assert len(runs) == len(set(runs)) == 1500
    assert json.loads((folder / "results.json").read_text())["cases"][0]["runs"]["0"] in runs
