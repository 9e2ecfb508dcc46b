"""What a user of the command line sees when an engine does as told."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redtail.cli import app

from fake_native import FakeNative

runner = CliRunner()


def test_json_is_all_that_stands_on_standard_output(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    done = runner.invoke(app, ["run", str(fake_file), "--json", "--out", str(tmp_path / "runs")])
    assert done.exit_code == 0
    assert len(json.loads(done.stdout)["cases"]) == 4
    assert done.stderr == ""
    assert not list(tmp_path.rglob("*.png"))


def test_a_run_prints_table_and_paths(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    arguments = ["run", str(fake_file), "--out", str(tmp_path / "runs")]
    done = runner.invoke(app, arguments)
    assert done.exit_code == 0
    assert done.stderr == ""
    assert "gentle" not in done.stdout
    assert "tail drop" in done.stdout
    assert "12 runs, in" in done.stdout
    folder = tmp_path / "runs" / "fake-experiment"
    assert str(folder / "cases.parquet") in done.stdout
    assert (folder / "figures" / "goodput.svg").is_file()
    assert max(map(len, done.stdout.split("12 runs")[0].splitlines())) <= 120

    again = runner.invoke(app, [*arguments, "--no-figures"])
    assert "12 runs, 12 of them reused, in" in again.stdout
    assert "figures:" not in again.stdout


def test_set_replications_and_warnings(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    arguments = ["run", str(fake_file), "--out", str(tmp_path), "--json"]
    arguments += ["--set", "warnings=['[odd] set-up']", "--replications", "1"]
    done = runner.invoke(app, arguments)
    assert done.stderr == "warning: [odd] set-up\n"
    assert json.loads(done.stdout)["cases"][0]["metrics"]["goodput"]["n"] == 1


def test_an_interrupt_says_what_is_kept_and_exits_with_130(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    def interrupt(number: int) -> None:
        if number == 4:
            fake.delay = 60.0
            signal.raise_signal(signal.SIGINT)

    fake.before_run = interrupt
    done = runner.invoke(app, ["run", str(fake_file), "--jobs", "1", "--out", str(tmp_path)])
    assert done.exit_code == 130
    assert "4 of 12 runs are finished and kept" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_failing_run_exits_with_1(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    def fail(number: int) -> None:
        raise RuntimeError("no luck")

    fake.before_run = fail
    done = runner.invoke(app, ["run", str(fake_file), "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert done.stderr.startswith("error: ")
    assert "no luck" in done.stderr


def test_an_unwritable_folder_exits_with_1(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    done = runner.invoke(app, ["run", str(fake_file), "--out", str(fake_file)])
    assert done.exit_code == 1
    assert "cannot be written" in done.stderr and "--out DIR" in done.stderr


def test_a_missing_file_exits_with_2(tmp_path: Path) -> None:
    for command in ("run", "check"):
        done = runner.invoke(app, [command, str(tmp_path / "none.toml")])
        assert done.exit_code == 2
        assert done.stderr == f"error: {tmp_path}/none.toml: no such file\n"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "not a text file in UTF-8 (byte 0)"),
    ],
)
def test_what_is_no_text_exits_with_2(tmp_path: Path, make: object, message: str) -> None:
    path = tmp_path / "odd.toml"
    make(path)  # type: ignore[operator]
    done = runner.invoke(app, ["check", str(path)])
    assert done.exit_code == 2
    assert done.stderr == f"error: {path}: {message}\n"


def test_options_that_make_no_sense_exit_with_2(fake_file: Path) -> None:
    assert runner.invoke(app, ["run", str(fake_file), "--jobs", "0"]).exit_code == 2
    assert runner.invoke(app, ["list", "colours"]).exit_code == 2
