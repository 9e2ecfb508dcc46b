"""Nothing half-written, nothing lost, nothing stale."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import redtail
from redtail.errors import RedtailWarning, StoreError
from redtail.outcomes import Outcome
from redtail.store import folders as store
from redtail.store import format, parquet, sealing, writing

from conftest import FAKE_EXPERIMENT, ROOT
from fake_native import FakeNative


def run_folders(out: Path) -> list[Path]:
    return sorted(path for path in (out / "fake-experiment").glob("?" * 16) if path.is_dir())


def test_a_run_is_stored_with_units_and_provenance(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    redtail.run(fake_file, out=tmp_path / "runs")
    folder = run_folders(tmp_path / "runs")[0]
    assert {path.name for path in folder.iterdir()} == {
        "scenario.json",
        "manifest.json",
        "summary.parquet",
        "consecutive_losses.parquet",
        "series_queues.parquet",
    }
    summary = pq.read_table(folder / "summary.parquet")
    delay = summary.schema.field("queue_delay_mean_s")
    assert delay.metadata[b"unit"] == b"s"
    assert summary.schema.field("ftp.goodput_bit_per_s").metadata[b"metric"] == b"ftp.goodput"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == format.FORMAT
    assert manifest["run"] == folder.name
    assert manifest["code_version"] == "fake-1"
    assert manifest["backend"] == "sim"
    assert manifest["bottleneck_packets"] == 1000


def outcome(**changes: Any) -> Outcome:
    """What a run of two queues measured, the second without losses."""
    whole = Outcome(
        metrics={"loss": 0.25, "return.loss": 0.0, "mark": 1e-300},
        consecutive_losses={"bottleneck": [3, 0, 1, 0, 0], "return": [0, 0]},
        series={},
        names={},
        bottleneck_packets=7,
        events=9,
        wall_time_s=0.5,
    )
    return replace(whole, **changes)


def saved(folder: Path, scenario: str, measured: Outcome) -> store.StoredRun:
    with store.ExperimentStore(folder, "one") as one:
        return one.save(
            format.run_key(scenario, "code"),
            scenario,
            measured,
            code_version="code",
            version="1",
            backend="sim",
            replication=2,
        )


@pytest.mark.parametrize(
    "measured",
    [
        outcome(),
        outcome(consecutive_losses={}),
        outcome(consecutive_losses={"b": [], "a": []}),
        outcome(metrics={}),
    ],
)
def test_what_storing_a_run_returns_is_what_reading_it_returns(
    tmp_path: Path, measured: Outcome
) -> None:
    stored = saved(tmp_path, '{"seed": 3}', measured)
    read = store.read_run(tmp_path / "one" / stored.key)
    assert read == stored
    assert list(read.metrics) == list(stored.metrics)
    assert list(read.consecutive_losses) == list(stored.consecutive_losses)


def test_a_run_is_not_stored_under_the_name_of_another(tmp_path: Path) -> None:
    with (
        store.ExperimentStore(tmp_path, "one") as one,
        pytest.raises(StoreError, match=r"under the name of the run [0-9a-f]{16}"),
    ):
        one.save(
            "0" * 16,
            '{"seed": 3}',
            outcome(),
            code_version="code",
            version="1",
            backend="sim",
            replication=2,
        )
    assert not list((tmp_path / "one").glob("0*"))


@pytest.mark.parametrize("rows", [0, 1, 100, 101])
def test_a_table_is_read_back_as_it_was_whatever_its_length(rows: int) -> None:
    names = pa.DictionaryArray.from_arrays(
        pa.array([1] * rows, pa.int32()), pa.array(["never there", "bulk"])
    )
    about = parquet.metric_field("loss")
    kinds = [pa.field("group", names.type), about, pa.field("text", pa.string())]
    known = [None, *[0.1] * (rows - 1)][:rows]
    columns = [names, pa.array(known, pa.float64()), pa.array(["a b"] * rows, pa.string())]
    table = pa.Table.from_arrays(columns, schema=pa.schema(kinds, metadata={"links": "[]"}))
    with parquet.open_parquet(parquet.parquet_bytes(table)) as file:
        read = file.read()
    assert read.schema.equals(table.schema, check_metadata=True)
    assert read.equals(table)


def test_present_runs_are_not_made_again(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    first = redtail.run(fake_file, out=tmp_path / "runs")
    assert len(fake.ran) == 12
    again = redtail.run(fake_file, out=tmp_path / "runs")
    assert (len(fake.ran), again.reused) == (12, 12)
    assert again.to_json() == first.to_json()
    redtail.run(fake_file, out=tmp_path / "runs", replications=4)
    assert len(fake.ran) == 16


def test_another_engine_makes_all_runs_again(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    redtail.run(fake_file, out=tmp_path / "runs")
    fake.version_of_code = "fake-2"
    assert redtail.run(fake_file, out=tmp_path / "runs").reused == 0
    assert len(fake.ran) == 24


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "manifest.json").write_text("{"),
        lambda folder: (folder / "summary.parquet").write_bytes(b"PAR1"),
        lambda folder: (folder / "scenario.json").write_text("{}"),
        lambda folder: (folder / "series_queues.parquet").unlink(),
        lambda folder: [shutil.rmtree(folder), folder.mkdir()],
    ],
)
def test_a_damaged_run_is_noticed_and_made_again(
    fake: FakeNative, fake_file: Path, tmp_path: Path, damage: object
) -> None:
    first = redtail.run(fake_file, out=tmp_path / "runs")
    folder = run_folders(tmp_path / "runs")[3]
    damage(folder)  # type: ignore[operator]
    with pytest.warns(RedtailWarning, match=f"{folder.name}.*damaged.*run again"):
        again = redtail.run(fake_file, out=tmp_path / "runs")
    assert (len(fake.ran), again.reused) == (13, 11)
    assert again.to_json() == first.to_json()
    store.read_run(folder)


def rewritten(folder: Path, **changes: object) -> None:
    """Write a run's manifest anew, as a redtail that wants it so would."""
    path = folder / "manifest.json"
    manifest = {**json.loads(path.read_text()), **changes}
    del manifest["checksum"]
    path.write_bytes(sealing.sealed(manifest))


@pytest.mark.parametrize(("number", "newer"), [(99, "a newer"), (0, "an older")])
def test_a_run_of_another_format_is_refused_with_the_reason_and_kept(
    fake: FakeNative, fake_file: Path, tmp_path: Path, number: int, newer: str
) -> None:
    redtail.run(fake_file, out=tmp_path / "runs")
    folder = run_folders(tmp_path / "runs")[0]
    rewritten(folder, format=number, redtail_version="9.8")
    before = (folder / "manifest.json").read_bytes()
    told = rf"stored in format {number} by {newer} redtail \(9\.8\), this redtail reads 1 and 2"
    with pytest.raises(StoreError, match=told):
        store.read_run(folder)
    # The run is not made in its place either: whoever can read it would lose it.
    with pytest.raises(StoreError, match=told):
        redtail.run(fake_file, out=tmp_path / "runs")
    assert len(fake.ran) == 12
    assert (folder / "manifest.json").read_bytes() == before


def test_a_run_of_the_first_format_is_read(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    first = redtail.run(fake_file, out=tmp_path / "runs")
    for folder in run_folders(tmp_path / "runs"):
        path = folder / "manifest.json"
        manifest = {**json.loads(path.read_text()), "format": 1}
        del manifest["checksum"]  # it had none
        path.write_text(json.dumps(manifest, indent=2) + "\n")
    again = redtail.run(fake_file, out=tmp_path / "runs")
    assert (len(fake.ran), again.reused) == (12, 12)
    assert again.to_json() == first.to_json()


def test_results_of_another_format_are_refused_with_the_reason(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    path = redtail.run(fake_file, out=tmp_path / "runs").folder / "results.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 7', 1))
    with pytest.raises(StoreError, match=r"written in format 7, this redtail reads 1.*again"):
        redtail.load(path.parent)


def test_a_full_disk_leaves_whole_runs_only(
    fake: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = 0
    write_new = writing.write_new

    def fill(path: Path, data: bytes) -> None:
        nonlocal written
        written += 1
        if written > 12:
            write_new(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write_new(path, data)

    monkeypatch.setattr(writing, "write_new", fill)
    with pytest.raises(StoreError, match=r"No space left on device.*goes on from there"):
        redtail.run(fake_file, out=tmp_path / "runs", jobs=1)
    monkeypatch.undo()
    os.chdir(ROOT)
    kept = run_folders(tmp_path / "runs")
    assert len(kept) == 2
    for folder in kept:
        assert store.read_run(folder).metrics["goodput"] > 0
    assert not list((tmp_path / "runs").rglob(".tmp-*"))


def test_a_real_file_size_limit_is_reported_like_a_full_disk(tmp_path: Path) -> None:
    """The operating system refuses the write here, not a stand-in."""
    script = textwrap.dedent(
        f"""
        import resource, signal, sys
        sys.path.insert(0, {str(ROOT / "tests")!r})
        from fake_native import FakeNative
        import redtail
        from redtail import native
        engine = FakeNative()
        native.module = lambda: engine
        source = redtail.Toml({FAKE_EXPERIMENT!r})
        redtail.run(source, replications=1, out={str(tmp_path)!r})
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            redtail.run(source, replications=2, out={str(tmp_path)!r})
        except redtail.StoreError as error:
            print(error)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "File too large" in done.stdout
    folders = run_folders(tmp_path)
    assert len(folders) == 4
    for folder in folders:
        store.read_run(folder)
    assert not list(tmp_path.rglob(".tmp-*"))


def test_an_unwritable_folder_is_refused_before_any_run(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file.*cannot be written.*--out DIR"):
        redtail.run(fake_file, out=tmp_path / "file")
    assert fake.ran == []


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)
def test_a_read_only_folder_is_refused_before_any_run(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "runs").mkdir(mode=0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        redtail.run(fake_file, out=tmp_path / "runs")
    assert fake.ran == []


def test_leftovers_of_dead_processes_are_removed_and_those_of_live_ones_kept(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    folder = tmp_path / "runs" / "fake-experiment"
    folder.mkdir(parents=True)
    node = platform.node()
    gone = folder / f".tmp-redtail-0123456789abcdef-{node}-{dead.pid}-17"
    gone.mkdir()
    (gone / "summary.parquet").write_bytes(b"half")
    busy = folder / f".tmp-redtail-0123456789abcdef-{node}-{os.getppid()}-17"
    busy.mkdir()
    redtail.run(fake_file, out=tmp_path / "runs")
    assert not gone.exists()
    assert busy.exists()


def test_two_processes_may_store_the_same_run(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    """The later one finds the folder in place and keeps it."""
    results = redtail.run(fake_file, out=tmp_path / "runs")
    folder = run_folders(tmp_path / "runs")[0]
    before = (folder / "manifest.json").read_bytes()
    aside = tmp_path / "aside"
    shutil.copytree(folder, aside)
    (aside / "manifest.json").write_text("another")
    store._put(aside, folder)
    assert not aside.exists()
    assert (folder / "manifest.json").read_bytes() == before
    assert results.run_count == 12


def test_results_can_be_loaded_again(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    results = redtail.run(fake_file, out=tmp_path / "runs")
    loaded = redtail.load(results.folder)
    assert loaded.to_json() == results.to_json()
    assert loaded.to_arrow("replications").equals(results.to_arrow("replications"))
    with pytest.raises(StoreError, match="not the folder of a finished experiment"):
        redtail.load(tmp_path)


def test_names_that_differ_do_not_share_a_folder(fake: FakeNative, tmp_path: Path) -> None:
    def experiment(name: str) -> redtail.Toml:
        return redtail.Toml(f'name = "{name}"\nreplications = 1\n')

    names = ["Ουρά", "Ουρά 2", "очередь", "隊列", "Zürich", "Zurich", "Zörich"]
    folders = {redtail.run(experiment(name), out=tmp_path).folder for name in names}
    assert len(folders) == len(names)
    long = [redtail.run(experiment("x" * 5000 + end), out=tmp_path).folder for end in "ab"]
    assert long[0] != long[1] and max(len(folder.name) for folder in long) < 255
    # Names without further letters keep the folder that they have always had.
    assert format.slug("Tail drop, 64 flows") == "tail-drop-64-flows"
    for other in ("ZURICH", "zurich!"):
        told = (
            rf"{tmp_path}/zurich: has the results of the experiment 'Zurich', and '{other}' would"
        )
        with pytest.raises(StoreError, match=told):
            redtail.run(experiment(other), out=tmp_path)
    assert redtail.load(tmp_path / "zurich").name == "Zurich"
    quoted = 'a \\"b\\" \\\\'
    assert redtail.run(experiment(quoted), out=tmp_path).run_count == 1
    assert redtail.run(experiment(quoted), out=tmp_path).reused == 1


@pytest.mark.parametrize(("digits", "is_run"), [(15, False), (16, True), (17, False)])
def test_the_name_of_a_run_has_as_many_digits_as_its_key(digits: int, is_run: bool) -> None:
    assert (format.RUN_NAME.fullmatch("a" * digits) is not None) is is_run
    (key,) = format.run_keys(["{}"], "code", "sim")
    assert len(key) == 16
