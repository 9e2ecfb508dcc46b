"""What stands in the store: listed, shown, verified, cleaned; and why runs are not in it."""

from __future__ import annotations

import contextlib
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import redtail
from redtail.cli import app, progress
from redtail.display.tables import experiment_table
from redtail.errors import StoreError
from redtail.store import folders as store
from redtail.store import format, runs, sealing
from redtail.store.format import FAILED

from conftest import FAKE_EXPERIMENT
from fake_native import FakeNative

runner = CliRunner()


@pytest.fixture
def root(fake: FakeNative, fake_file: Path, tmp_path: Path) -> Path:
    """A store with 4 runs in the results, 4 of another seed, and 4 of another code version."""
    root = tmp_path / "runs"
    fake.version_of_code = "fake-0"
    redtail.run(fake_file, out=root, replications=1)
    fake.version_of_code = "fake-1"
    redtail.run(fake_file, out=root, replications=1, set={"seed": 2})
    redtail.run(fake_file, out=root, replications=1)
    return root


def invoke(*arguments: object) -> tuple[int, str]:
    done = runner.invoke(app, ["runs", *map(str, arguments)])
    return done.exit_code, done.output


def keys(root: Path) -> list[str]:
    return runs.run_names(root / "fake-experiment")


def referred(root: Path) -> list[str]:
    found = runs.referred_to(root / "fake-experiment")
    assert found is not None
    return list(found)


def unfinished(folder: Path) -> Path:
    """What a process leaves that dies while it writes."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    path = folder / f".tmp-redtail-0123456789abcdef-{platform.node()}-{dead.pid}-17"
    path.mkdir()
    (path / "summary.parquet").write_bytes(b"half")
    return path


def test_a_list_has_runs_size_newest_and_versions(root: Path) -> None:
    code, output = invoke("list", "--out", root)
    assert code == 0
    row = output.splitlines()[-1]
    assert re.match(r"fake-experiment +12 +4 +[\d.]+ kB +\d{4}-.* UTC ", row)
    assert "fake-0 (4)" in row and "fake-1 (8)" in row

    code, output = invoke("list", "--out", root, "--json")
    (found,) = json.loads(output)
    assert (code, found["runs"], found["in_results"]) == (0, 12, 4)
    files = (path for path in (root / "fake-experiment").rglob("*") if path.is_file())
    assert found["bytes"] == sum(path.stat().st_size for path in files)
    assert found["code_versions"] == {"fake-0": 4, "fake-1": 8}


def test_experiments_are_found_below_one_another(root: Path, fake_file: Path) -> None:
    """As `redtail reproduce` puts them: a folder for the paper, in it one for the scale."""
    redtail.run(fake_file, out=root / "paper" / "quick", replications=1)
    (root / "paper" / "quick" / "report.md").write_text("a report")
    listed = [found.name for found in runs.listing(root)]
    assert listed == ["fake-experiment", "paper/quick/fake-experiment"]
    assert invoke("verify", "--out", root) == (
        0,
        "16 runs in 2 experiments checked: everything is as it was written\n",
    )
    assert runs.listing(root / "fake-experiment")[0].runs == 12


def test_a_run_is_shown_with_scenario_manifest_and_metrics(root: Path) -> None:
    key = referred(root)[0]
    for name in (key[:8], f"fake-experiment/{key[:6]}"):
        code, output = invoke("show", name, "--out", root)
        assert code == 0
        assert f"run {key} of fake-experiment" in output
        assert "in the results: tail drop, 16, replication 0" in output
        assert "code_version: fake-1" in output
        assert re.search(r"queue_delay_mean +0\.\d+ s\n", output)
        assert '"traffic.ftp.flows": 16' in output
    shown = json.loads(invoke("show", key, "--out", root, "--json")[1])
    assert shown["metrics"] == store.read_run(root / "fake-experiment" / key).metrics
    assert shown["scenario"]["case"]["traffic.ftp.flows"] == 16
    assert shown["manifest"]["run"] == key


def test_an_experiment_is_shown_with_its_runs(root: Path) -> None:
    for name in ("fake-experiment", "Fake experiment", str(root / "fake-experiment")):
        code, output = invoke("show", name, "--out", root)
        assert code == 0
        assert "12 runs, 4 of them in the results" in output
        for key in keys(root):
            assert f"\n  {key}" in output
    shown = json.loads(invoke("show", "fake-experiment", "--out", root, "--json")[1])
    assert list(shown["results"]) == referred(root)
    assert sorted([*shown["results"], *shown["others"]]) == keys(root)


def test_what_is_not_there_or_not_clear_is_an_error(root: Path) -> None:
    for name, told in (
        ("0", "no run and no experiment '0'"),
        ("zzzzzz", "the experiments are: fake-experiment"),
        ("elsewhere/" + keys(root)[0], "no run and no experiment"),
    ):
        code, output = invoke("show", name, "--out", root)
        assert code == 1 and told in output
    shutil.copytree(root / "fake-experiment", root / "copy")
    code, output = invoke("show", keys(root)[0], "--out", root)
    assert code == 1 and "2 runs in" in output
    code, output = invoke("list", "--out", root / "none")
    assert code == 1 and "no such folder" in output


def test_verify_finds_nothing_wrong_in_what_redtail_wrote(root: Path, fake_file: Path) -> None:
    runner.invoke(app, ["run", str(fake_file), "--out", str(root)])  # with figures
    code, output = invoke("verify", "--out", root)
    assert (code, output.count("\n")) == (0, 1)
    assert invoke("verify", "fake-experiment", "--out", root)[0] == 0
    assert invoke("verify", keys(root)[0], "--out", root) == (
        0,
        "1 run checked: everything is as it was written\n",
    )


def test_verify_has_a_line_for_each_thing_that_is_wrong_and_what_to_do(root: Path) -> None:
    folder = root / "fake-experiment"
    altered, gone, renamed, format_, missing = (folder / key for key in [*referred(root)[:4], "x"])
    data = (altered / "summary.parquet").read_bytes()
    (altered / "summary.parquet").write_bytes(data[:99] + b"\0\0\0\0" + data[103:])
    (gone / "scenario.json").unlink()
    other = next(key for key in keys(root) if key not in referred(root))
    missing = renamed
    renamed = folder / ("0" * 16)
    missing.rename(renamed)
    manifest = json.loads((format_ / "manifest.json").read_text())
    del manifest["checksum"]
    (format_ / "manifest.json").write_bytes(sealing.sealed({**manifest, "format": 3}))
    (folder / other / "notes.txt").write_text("mine")
    (folder / "thesis.tex").write_text("mine")
    left = unfinished(folder)
    (folder / "cases.parquet").write_bytes(b"PAR1")

    code, output = invoke("verify", "--out", root)
    assert code == 1
    lines = output.splitlines()
    for path, kind, what, advice in (
        (altered / "summary.parquet", "damaged", "content was altered", "runs gc --yes"),
        (gone / "scenario.json", "damaged", "the file is missing", "`redtail run` command again"),
        (renamed, "foreign", f"it is the run {missing.name}", "rename it"),
        (missing, "missing", "tail drop, 64|RED, 16", "`redtail run` command again"),
        (format_, "refused", "stored in format 3 by a newer redtail", "use that redtail"),
        (folder / other / "notes.txt", "foreign", "did not write it", "move it elsewhere"),
        (folder / "thesis.tex", "foreign", "did not write it", "move it elsewhere"),
        (left, "unfinished", "process that died", "runs gc --yes"),
        (folder / "cases.parquet", "damaged", "has 4 bytes", "`redtail run` command again"),
    ):
        (line,) = (line for line in lines if line.startswith(f"{path}: {kind}: "))
        assert re.search(what, line) and advice in line
    assert lines[-1] == "12 runs in 1 experiment checked: 9 problems"


def test_cleaning_removes_nothing_without_yes(root: Path) -> None:
    folder = root / "fake-experiment"
    unfinished(folder)
    (folder / keys(root)[0] / "summary.parquet").unlink()
    before = sorted(root.rglob("*"))
    for options in ([], ["--dry-run"], ["--dry-run", "--yes"], ["--unreferenced"]):
        code, output = invoke("gc", "--out", root, *options)
        assert code == 0
        assert output.endswith("to remove; give --yes to do it\n")
        assert sorted(root.rglob("*")) == before


def test_cleaning_removes_leftovers_and_damaged_runs_and_nothing_else(root: Path) -> None:
    folder = root / "fake-experiment"
    left = unfinished(folder)
    broken = folder / keys(root)[0]
    (broken / "summary.parquet").unlink()
    (folder / "thesis.tex").write_text("mine")
    (folder / keys(root)[1] / "notes.txt").write_text("mine")
    kept = set(root.rglob("*")) - {left, broken, *left.rglob("*"), *broken.rglob("*")}
    code, output = invoke("gc", "--out", root, "--yes")
    assert code == 0
    assert f"{left}: unfinished, 4 B" in output
    assert re.search(rf"{broken}: damaged, [\d.]+ kB", output)
    assert re.search(r"\nremoved 2 things, [\d.]+ kB\n", output)
    assert set(root.rglob("*")) == kept
    assert "nothing to remove" in invoke("gc", "--out", root, "--yes")[1]


def test_cleaning_never_touches_what_is_not_redtails(root: Path, fake_file: Path) -> None:
    folder = root / "fake-experiment"
    # An experiment and folders of others, all named as a run is.
    named = root / "2026112201300000"
    shutil.copytree(folder, named)
    backup = folder / "2026112201300001"
    backup.mkdir()
    (backup / "thesis.tex").write_text("mine")
    (backup / "manifest.json").write_text('{"name": "of another program"}')
    (folder / "2026112201300002").mkdir()
    # A damaged run, into which somebody has put a file.
    visited = folder / keys(root)[0]
    (visited / "summary.parquet").unlink()
    (visited / "notes.txt").write_text("mine")
    before = sorted(root.rglob("*"))
    for options in ([], ["--unreferenced"], ["--older-code"]):
        invoke("gc", backup.name, "--out", root, "--yes", *options)
    for options in ([], ["--older-code"]):
        code, output = invoke("gc", "--out", root, "--yes", *options)
        assert code == 0
        gone = set(before) - set(root.rglob("*"))
        assert not {each for each in gone if "20261122013000" in each.name}
        assert visited not in gone and not set(visited.iterdir()) - set(before)
    assert f"{visited / 'notes.txt'}: foreign: " in output
    assert runs.referred_to(named)
    code, output = invoke("verify", "--out", root)
    assert f"{backup}: foreign: redtail did not write it here" in output
    listed = json.loads(invoke("list", "--json", "--out", root)[1])
    assert [each["experiment"] for each in listed] == ["2026112201300000", "fake-experiment"]
    # Without the four of older code each, but the one with a file of somebody's.
    assert keys(root).count(visited.name) == 1
    assert [each["runs"] for each in listed] == [8, 8 + (visited.name not in referred(root))]


@pytest.mark.parametrize(
    "name", ["2026112201300000", "segments", "failed", "Figures", "0123456789abcdef"]
)
def test_an_experiment_may_have_any_name(
    fake: FakeNative, fake_file: Path, tmp_path: Path, name: str
) -> None:
    root = tmp_path / "runs"
    text = fake_file.read_text().replace("Fake experiment", name)
    results = redtail.run(redtail.Toml(text), out=root, replications=1)
    (found,) = runs.listing(root)
    assert (found.name, found.runs, found.in_results) == (f"experiment-{name.lower()}", 4, 4)
    assert invoke("gc", "--out", root, "--yes", "--unreferenced")[0] == 0
    assert invoke("verify", "--out", root)[0] == 0
    assert redtail.load(results.folder).run_count == 4


def test_runs_that_are_not_in_the_results_go_on_request_only(root: Path, fake_file: Path) -> None:
    in_results = sorted(referred(root))
    code, output = invoke("gc", "--out", root, "--older-code", "--yes")
    assert code == 0 and "removed 4 things" in output
    assert output.count("of other code (fake-0), not in the results") == 4
    assert len(keys(root)) == 8
    code, output = invoke("gc", "fake-experiment", "--out", root, "--unreferenced", "--yes")
    assert code == 0 and "removed 4 things" in output
    assert keys(root) == in_results
    assert redtail.load(root / "fake-experiment").run_count == 4
    assert redtail.run(fake_file, out=root, replications=1).reused == 4


def test_runs_of_older_code_that_results_stand_on_are_kept(root: Path, fake: FakeNative) -> None:
    fake.version_of_code = "fake-2"
    code, output = invoke("gc", "--out", root, "--older-code", "--yes")
    assert code == 0 and "removed 8 things" in output
    assert redtail.load(root / "fake-experiment").run_count == 4


def test_without_results_nobody_knows_what_is_in_them(root: Path, fake_file: Path) -> None:
    """An interrupted campaign, or results that only a newer redtail can read."""
    index = root / "fake-experiment" / "results.json"
    index.write_text(index.read_text().replace('"format": 1', '"format": 2', 1))
    for options in (["--unreferenced"], ["--older-code"]):
        code, output = invoke("gc", "--out", root, "--yes", *options)
        assert code == 0
        assert "no run is removed for that reason" in output and "nothing to remove" in output
    index.unlink()
    assert "nothing to remove" in invoke("gc", "--out", root, "--yes", "--unreferenced")[1]
    assert len(keys(root)) == 12

    # Runs that found the users for a load are in no results, and are wanted all the same.
    (root / "fake-experiment").rename(root / runs.CALIBRATIONS)
    assert "nothing to remove" in invoke("gc", "--out", root, "--yes", "--unreferenced")[1]
    assert "removed 4 things" in invoke("gc", "--out", root, "--yes", "--older-code")[1]


def test_a_run_is_no_experiment_to_clean(root: Path) -> None:
    code, output = invoke("gc", keys(root)[0], "--out", root, "--yes")
    assert code == 2 and "name its experiment, fake-experiment" in output


# Runs that fail


def fail_at(fake: FakeNative, *numbers: int) -> None:
    """Let these runs fail, counted from 0."""

    def fail(number: int) -> None:
        if number in numbers:
            raise RuntimeError("no luck")

    fake.before_run = fail


@pytest.mark.parametrize("keep_going", [False, True])
def test_a_run_that_fails_leaves_a_log_until_it_is_made(
    fake: FakeNative, fake_file: Path, tmp_path: Path, keep_going: bool
) -> None:
    out = tmp_path / "runs"
    fail_at(fake, 5)
    arguments = ["run", str(fake_file), "--jobs", "1", "--no-figures", "--out", str(out)]
    done = runner.invoke(app, [*arguments, "--keep-going" if keep_going else "--fail-fast"])
    assert done.exit_code == 1
    (log,) = (out / "fake-experiment" / "failed").iterdir()
    assert str(log) in done.stderr
    text = log.read_text()
    assert text.startswith("tail drop, ftp flows 64, replication 1\nrun: " + log.stem)
    assert 'raise RuntimeError("no luck")' in text and "RuntimeError: no luck" in text
    assert f"to repeat it alone: redtail run {fake_file} --set " in text
    scenario = json.loads(text.partition("\nscenario:\n")[2])
    assert scenario == json.loads(fake.ran[5])
    assert runs.listing(out)[0].failed == 1
    assert (
        "tail drop, ftp flows 64, replication 1"
        in invoke("show", "fake-experiment", "--out", out)[1]
    )
    assert invoke("verify", "--out", out)[0] == 0  # a failure is not damage

    fake.before_run = lambda number: None
    assert runner.invoke(app, arguments).exit_code == 0
    assert not list(out.rglob("*.log"))


def test_a_log_of_a_run_that_another_process_made_is_cleaned_away(
    fake: FakeNative, fake_file: Path, root: Path
) -> None:
    failed = root / "fake-experiment" / "failed"
    failed.mkdir()
    (failed / f"{keys(root)[0]}.log").write_text("it failed")
    (failed / "0123456789abcdef.log").write_text("it failed")
    code, output = invoke("gc", "--out", root, "--yes")
    assert code == 0 and "the run was made since" in output
    assert [path.name for path in failed.iterdir()] == ["0123456789abcdef.log"]


def test_the_summary_at_the_end_says_what_failed_and_why(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:

    def fail(number: int) -> None:
        if number in (1, 3, 4, 5, 6, 7):
            raise RuntimeError("no memory" if number == 4 else f"no luck at {number}.5 s")

    fake.before_run = fail
    arguments = ["run", str(fake_file), "--jobs", "1", "--keep-going", "--no-figures"]
    done = runner.invoke(app, [*arguments, "--out", str(tmp_path / "runs")])
    assert done.exit_code == 1
    assert "6 runs, in" in done.stdout
    lines = [line for line in done.stderr.splitlines() if not line.startswith("This is a fault")]
    assert lines[0] == "warning: 6 of 12 runs failed and are missing in the results:"
    assert lines[1] == "tail drop, ftp flows 64, replication 0: the engine failed: no luck at 1.5 s"
    assert lines[2].startswith("To repeat this run alone: redtail run ")
    assert lines[3].startswith("Its traceback and scenario: ")
    assert lines[4] == (
        "For the same reason: RED, ftp flows 64, replication 0; "
        "tail drop, ftp flows 64, replication 1; RED, ftp flows 16, replication 1; and 1 more"
    )
    assert lines[5] == "tail drop, ftp flows 16, replication 1: the engine failed: no memory"
    assert lines[-1] == f"Each has a log in {tmp_path / 'runs' / 'fake-experiment' / 'failed'}/"
    assert len(list((tmp_path / "runs").rglob("*.log"))) == 6


def test_a_campaign_in_which_every_run_fails_says_so(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    fail_at(fake, *range(12))
    arguments = ["run", str(fake_file), "--keep-going", "--out", str(tmp_path / "runs")]
    done = runner.invoke(app, arguments)
    assert done.exit_code == 1
    assert "12 of 12 runs failed" in done.stderr
    assert not isinstance(done.exception, Exception)


def test_failures_are_part_of_the_results_in_python(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    fail_at(fake, 2, 9)
    with pytest.warns(redtail.RedtailWarning, match="2 of 12 runs failed"):
        results = redtail.run(fake_file, out=tmp_path, jobs=1, keep_going=True)
    assert results.failed == 2
    first = results.failures[0]
    assert (first.run, first.reason.splitlines()[0]) == (
        "RED, ftp flows 16, replication 0",
        "the engine failed: no luck",
    )
    assert first.log is not None and first.log.stem == first.key


def test_progress_counts_failures_and_what_is_left(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    fail_at(fake, 0, 11)
    seen: list[tuple[int, int, float | None]] = []
    with pytest.warns(redtail.RedtailWarning):
        redtail.run(
            fake_file,
            out=tmp_path,
            jobs=1,
            keep_going=True,
            progress=lambda state: seen.append((state.done, state.failed, state.left_s)),
        )
    assert [pair[:2] for pair in seen[:3]] == [(0, 0), (0, 1), (1, 1)]
    assert seen[-1] == (10, 2, 0.0)  # failed runs are not waited for


def test_a_campaign_without_a_terminal_logs_a_line_now_and_then(
    fake: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_at(fake, 3)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    arguments = ["run", str(fake_file), "--jobs", "1", "--keep-going", "--out", str(tmp_path)]
    done = runner.invoke(app, [*arguments, "--json"])
    lines = [line for line in done.stderr.splitlines() if line.startswith("progress: ")]
    assert len(lines) == 13
    assert lines[0] == "progress: 0/12 runs"
    assert re.fullmatch(r"progress: 11/12 runs, [\d.]+ M packets/s, 0 s left, 1 failed", lines[-1])
    assert json.loads(done.stdout)


def test_a_text_that_is_no_file_has_no_command_to_repeat_a_run(
    fake: FakeNative, tmp_path: Path
) -> None:
    fail_at(fake, 0)
    with pytest.raises(redtail.RunError, match="Its traceback and scenario"):
        redtail.run(redtail.Toml(FAKE_EXPERIMENT), out=tmp_path, jobs=1)
    (log,) = tmp_path.rglob("*.log")
    assert "its experiment is not in a file; see the scenario" in log.read_text()


def test_an_unreadable_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such folder"):
        runs.listing(tmp_path / "none")


WRONG = (None, 1.5, "x", [1], {"x": 1})


def wrong_types(value: dict[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    """Each value of a tree of tables and lists replaced by values of other types, or gone."""
    for key, part in value.items():
        yield f"without {key}", {k: v for k, v in value.items() if k != key}
        for other in WRONG:
            if type(other) is not type(part):
                yield f"{key} = {other}", {**value, key: other}
        if isinstance(part, dict):
            for what, changed in wrong_types(part):
                yield f"{key}: {what}", {**value, key: changed}
        elif isinstance(part, list) and part and isinstance(part[0], dict):
            for what, changed in wrong_types(part[0]):
                yield f"{key}: {what}", {**value, key: [changed, *part[1:]]}


def all_readers(root: Path, key: str) -> None:
    """Whatever reads a store; raises nothing but our errors."""
    folder = root / "fake-experiment"
    readers: list[Callable[[], object]] = [
        lambda: json.dumps([each.as_json() for each in runs.listing(root)]),
        lambda: experiment_table(runs.listing(root)),
        lambda: runs.text(runs.show(root, folder)),
        lambda: runs.text(runs.show(root, folder / key)),
        lambda: runs.clean(folder, code_version="x", unreferenced=True),
        lambda: redtail.load(folder).to_json(),
    ]
    for reader in readers:
        with contextlib.suppress(StoreError):
            reader()


@pytest.mark.filterwarnings("ignore::redtail.errors.RedtailWarning")
def test_a_manifest_of_wrong_types_with_a_valid_seal_is_damaged(root: Path) -> None:
    key = referred(root)[0]
    path = root / "fake-experiment" / key / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["checksum"]
    needed = {name: manifest[name] for name in ("run", "backend", "code_version", "files")}
    tried = 0
    for what, changed in wrong_types(needed):
        rest = {name: value for name, value in manifest.items() if name not in needed}
        path.write_bytes(sealing.sealed({**rest, **changed}))
        found = list(runs.verify_run(path.parent))
        # A file that the manifest does not name was not written by redtail.
        kinds = {"foreign"} if what.startswith("files: without") else {"damaged"}
        assert {each.kind for each in found} & kinds, (what, found)
        all_readers(root, key)
        tried += 1
    assert tried > 40
    for data in (b"[" * 100_000, b'{"format":' * 100_000, b"3", b"\xff"):
        path.write_bytes(data)
        assert {each.kind for each in runs.verify_run(path.parent)} == {"damaged"}
        all_readers(root, key)
    scenario = path.parent / "scenario.json"
    scenario.write_bytes(b"\xff")
    files = {**manifest["files"], "scenario.json": sealing.checksums(b"\xff")}
    path.write_bytes(sealing.sealed({**manifest, "files": files}))
    assert {each.kind for each in runs.verify_run(path.parent)} == {"damaged"}


@pytest.mark.filterwarnings("ignore::redtail.errors.RedtailWarning")
def test_a_results_json_of_wrong_types_with_a_valid_seal_is_damaged(root: Path) -> None:
    folder = root / "fake-experiment"
    path = folder / "results.json"
    index = json.loads(path.read_text())
    del index["checksum"]
    refused = 0
    for _, changed in wrong_types(index):
        path.write_bytes(sealing.sealed(changed))
        refused += runs.referred_to(folder) is None
        all_readers(root, keys(root)[0])
    assert refused > 40  # some are of right types all the same, such as another factor's value
    for key in ("format", "experiment", "description", "factors", "cases", "files"):
        path.write_bytes(sealing.sealed({**index, key: 1.5}))
        told = [each for each in runs.verify(folder) if each.path == path]
        assert [each.kind for each in told] == ["damaged"], key
        assert f"cannot be read: {key} is 1.5; give the experiment's" in str(told[0])
    for data in (b"[" * 100_000, b"3", b"\xff"):
        path.write_bytes(data)
        assert "damaged" in {each.kind for each in runs.verify(folder)}
        all_readers(root, keys(root)[0])
    path.write_bytes(
        sealing.sealed({**index, "cases": [{**index["cases"][0], "runs": {"0": "../x"}}]})
    )
    with pytest.raises(StoreError, match=r"'\.\./x' is no run; give the experiment's command"):
        redtail.load(folder)


def test_cases_that_were_swapped_in_the_results_are_noticed(
    root: Path, fake_file: Path, fake: FakeNative
) -> None:
    folder = root / "fake-experiment"
    path = folder / "results.json"
    whole = path.read_bytes()
    index = json.loads(whole)
    first, second, *_ = index["cases"]
    first["runs"], second["runs"] = second["runs"], first["runs"]
    path.write_text(json.dumps(index, indent=2, ensure_ascii=False) + "\n")
    (finding,) = runs.verify(folder)
    assert str(finding).startswith(f"{path}: damaged: cannot be read: its content was altered; ")
    with pytest.raises(StoreError, match="altered; give the experiment's command again"):
        redtail.load(folder)
    # Nobody knows what is in the results, so nothing is removed for not being in them.
    assert runs.clean(folder, unreferenced=True).removals == []
    redtail.run(fake_file, out=root, replications=1)
    assert path.read_bytes() == whole
    # Results of before there was a checksum are read as ever.
    del index["checksum"]
    path.write_text(json.dumps(index))
    assert redtail.load(folder).run_count == 4


def test_links_that_lead_in_a_circle_are_foreign(root: Path, fake_file: Path) -> None:
    folder = root / "fake-experiment"
    run = folder / referred(root)[0]
    for link, target in (
        (root / "loop", "loop"),
        (root / "here", "."),
        (folder / "here", "."),
        (folder / "x", "x"),
        (folder / ("0" * 16), "0" * 16),
        (folder / ("1" * 16), run.name),
        (run / "loop", "loop"),
    ):
        link.symlink_to(target)
    found = {each.path.name: each.kind for each in runs.verify(folder)}
    assert found == dict.fromkeys(["here", "x", "0" * 16, "1" * 16, "loop"], "foreign")
    all_readers(root, run.name)
    (listed,) = runs.listing(root)
    assert listed.runs == 12
    (folder / "results.json").unlink()
    (folder / "results.json").symlink_to("results.json")
    all_readers(root, run.name)
    assert "Too many levels of symbolic links" in " ".join(map(str, runs.verify(folder)))
    assert redtail.run(fake_file, out=root, replications=1).reused == 4  # which puts it right
    assert "results.json" not in " ".join(map(str, runs.verify(folder)))
    (run / "manifest.json").unlink()
    (run / "manifest.json").symlink_to("manifest.json")
    assert {"damaged", "missing"} & {each.kind for each in runs.verify(folder)}
    all_readers(root, run.name)
    for name in (format.SEGMENTS, FAILED):
        (folder / name).symlink_to(name)
    all_readers(root, run.name)
    with pytest.raises(StoreError, match="Too many levels of symbolic links"):
        redtail.run(fake_file, out=root / "loop")
