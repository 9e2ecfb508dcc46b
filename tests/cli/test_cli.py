"""What a user of the command line sees when an engine does as told."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import redtail
from redtail.cli import app
from redtail.cli.output import warnings_shown
from redtail.engine import batches
from redtail.errors import RedtailWarning, RunError
from redtail.outcomes import Outcomes
from redtail.store import runs

from conftest import ROOT
from fake_native import FakeNative

runner = CliRunner()

SHORT = """
name = "Short"
duration = "5 s"
warmup = "1 s"
replications = 3
[bottleneck]
rate = "1 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "10 packets" },
  { kind = "red", limit = "10 packets", min_th = "2 packets", max_th = "6 packets", label = "RED" },
]
"traffic.ftp.flows" = [1, 2]
"""


def test_json_is_all_that_stands_on_standard_output(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    done = runner.invoke(app, ["run", str(fake_file), "--json", "--out", str(tmp_path / "runs")])
    assert done.exit_code == 0
    assert len(json.loads(done.stdout)["cases"]) == 4
    assert done.stderr == ""
    assert not list(tmp_path.rglob("*.png"))


def test_piped_output_is_as_wide_as_columns_says(
    fake: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def widths(columns: str) -> int:
        monkeypatch.setenv("COLUMNS", columns)
        arguments = ["run", str(fake_file), "--no-figures", "--out", str(tmp_path / "runs")]
        done = runner.invoke(app, arguments)
        assert done.exit_code == 0
        return len(next(line for line in done.stdout.splitlines() if line.startswith("───")))

    assert widths("60") <= 60 < widths("200") <= 200
    # What is no width is ignored.
    assert widths("0") == widths("many") == widths("118")


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
    assert [path.name for path in (folder / "figures").glob("*.*") if path.name[0] != "."]
    assert max(map(len, done.stdout.split("12 runs")[0].splitlines())) <= 120

    again = runner.invoke(app, [*arguments, "--no-figures"])
    assert "12 runs, 12 of them reused, in" in again.stdout
    assert "figures:" not in again.stdout
    assert "note:" not in again.stdout


def test_results_that_take_the_place_of_others_say_so(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    arguments = ["run", str(fake_file), "--out", str(tmp_path / "runs"), "--no-figures"]
    runner.invoke(app, arguments)
    fewer = runner.invoke(app, [*arguments, "--replications", "1"])
    assert fewer.stdout.splitlines()[-1].startswith(
        "note:    replaces the earlier results of this name (12 runs); those runs are kept"
    )
    full = runner.invoke(app, arguments)  # takes the place of a part of itself
    assert "12 runs, 12 of them reused" in full.stdout and "note:" not in full.stdout

    other = runner.invoke(app, [*arguments, "--set", "seed=2", "--json"])
    assert len(json.loads(other.stdout)["cases"]) == 4
    assert other.stderr.startswith("note: replaces the earlier results of this name (12 runs)")

    fake.version_of_code = "fake-2"
    newer = runner.invoke(app, [*arguments, "--set", "seed=2"])
    assert "note:" not in newer.stdout  # the same cases, by another engine


def test_check_says_what_the_file_amounts_to_and_counts_in_english(
    fake: FakeNative, tmp_path: Path
) -> None:
    path = tmp_path / "one.toml"
    path.write_text('name = "One"\n')
    done = runner.invoke(app, ["check", str(path), "--replications", "1"])
    assert done.stdout == (
        f"{path}: 'One' is valid: 1 case, 1 replication, 1 run\n  bottleneck: none\n"
    )
    done = runner.invoke(app, ["run", str(path), "--replications", "1", "--out", str(tmp_path)])
    assert "\n1 run, in" in done.stdout


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


def test_the_command_in_the_message_repeats_the_failed_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "short.toml"
    path.write_text(SHORT)
    ran: list[str] = []
    real = batches.run_many

    def fails(scenarios: Sequence[str], *rest: Any) -> list[Outcomes | RunError]:
        found: list[Outcomes | RunError] = []
        for scenario in scenarios:
            ran.append(scenario)
            if len(ran) == 8:
                found.append(RunError("the engine failed: no luck"))
            else:
                found += real([scenario], *rest)
        return found

    monkeypatch.setattr(batches, "run_many", fails)
    out = str(tmp_path / "the runs")
    arguments = ["run", str(path), "--set", "seed=3", "--jobs", "1", "--out", out]
    done = runner.invoke(app, arguments)
    assert done.exit_code == 1
    assert "error: RED, ftp flows 2, replication 1: the engine failed" in done.stderr
    kept = re.search(rf"\n(\d+) of 12 runs are finished and kept in {re.escape(out)}", done.stderr)
    # The next one had begun, and may have ended.
    assert kept is not None and int(kept[1]) in (7, 8)

    (line,) = (line for line in done.stderr.splitlines() if line.startswith("To repeat"))
    command = shlex.split(line.partition(": ")[2])
    assert command[:3] == ["redtail", "run", str(path)]
    failed = ran[7]
    ran[:] = [""] * 8  # beyond the one that fails
    assert runner.invoke(app, [*command[1:], "--no-figures"]).exit_code == 0
    assert ran[8:] == [failed]


def test_runs_that_fail_on_the_way_exit_with_1_after_the_results(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    def fail(number: int) -> None:
        if number == 7:
            raise RuntimeError("no luck")

    fake.before_run = fail
    arguments = ["run", str(fake_file), "--out", str(tmp_path), "--jobs", "1", "--keep-going"]
    done = runner.invoke(app, [*arguments, "--json"])
    assert done.exit_code == 1
    assert len(json.loads(done.stdout)["cases"]) == 4
    assert done.stderr.startswith("warning: 1 of 12 runs failed and are missing in the results:\n")
    assert "\nRED, ftp flows 64, replication 1: " in done.stderr
    assert "To repeat this run alone: redtail run " in done.stderr


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


def test_every_preset_of_tcp_is_listed_with_what_it_sets() -> None:
    listed = runner.invoke(app, ["list", "tcp"]).output
    own = " ".join(listed.partition('tcp = "dctcp"')[2].partition('tcp = "')[0].split())
    for setting in ('ecn_feedback = "dctcp"', "prr = true", 'min_rto = "200 ms"'):
        assert setting in own
    assert "slow_start" not in own.partition("Beside what sack sets:")[2]  # as in `sack`
    alone = runner.invoke(app, ["list", "tcp", "sack"]).output
    assert 'growth = { kind = "reno", beta = 0.5 }' in alone


def test_laws_are_listed_with_default_range_and_source_of_their_constants() -> None:
    alone = runner.invoke(app, ["list", "laws", "ledbat"]).output
    assert alone.startswith('tcp.growth: kind = "ledbat"\n')
    assert '  target: a time with its unit, for example "100 ms"; default "100 ms"\n' in alone
    assert "  gain: a number from 0.001 to 100; default 1.0\n" in alone
    assert "      Source: RFC 6817, section 2.5: at most 1\n" in alone
    both = runner.invoke(app, ["list", "laws", "vegas"]).output
    assert 'tcp.slow_start: kind = "vegas"' in both and "\n  gamma: " in both
    google = runner.invoke(app, ["list", "laws", "bbr3-google"]).output
    assert "  drain_gain: a number from 0.01 to 1; default 0.34375\n" in google
    missing = runner.invoke(app, ["list", "laws", "vegass"])
    assert missing.exit_code == 2 and 'did you mean "vegas"' in missing.output


def test_metrics_are_listed_with_unit_scope_and_definition() -> None:
    lines = runner.invoke(app, ["list", "metrics"]).output.splitlines()
    rows = [line.split(maxsplit=2) for line in lines]
    assert ["GROUP.retransmissions", "count", "Retransmissions; TCP groups"] in rows
    alone = runner.invoke(app, ["list", "metrics", "calls.mos"]).output
    assert alone.startswith("mos: 1; group; groups of kind voip\n") and len(alone) < 1000
    missing = runner.invoke(app, ["list", "metrics", "goodptu"])
    assert missing.exit_code == 2 and "nearest: goodput" in missing.output
    listed = runner.invoke(app, ["list", "metrics", "--long"]).output
    assert "\nretransmissions: count; group; TCP groups\n" in listed
    assert "\nl_delay_max: s; queue; queues of kind dualpi2\n" in listed
    assert "](" not in listed  # links are text here
    rows = json.loads(runner.invoke(app, ["list", "metrics", "--json"]).output)
    by_name = {(row["name"], row["of"]): row for row in rows}
    assert len(by_name) == len(rows)
    assert by_name["loss", "every link"] == {
        "name": "loss",
        "unit": "1",
        "title": "Packets lost at the queue",
        "scope": "link, and group at a link",
        "phases": True,
        "of": "every link",
        "definition": "Of the packets that arrived in the period, those that the queue dropped "
        "before the period ended.",
    }
    assert runner.invoke(app, ["list", "queues", "--json"]).exit_code == 2


def test_metrics_of_an_experiment_are_listed_with_their_names() -> None:
    file = str(ROOT / "examples/qos-last-hop.toml")
    lines = runner.invoke(app, ["list", "metrics", file]).output.splitlines()
    rows = [line.split(maxsplit=2) for line in lines]
    assert ["udp.one_way_delay_p99", "s", "One-way delay of udp, 99th percentile"] in rows
    assert not any(name.endswith("mos") for name, *_ in rows)
    listed = runner.invoke(app, ["list", "metrics", file, "--long"]).output
    assert "Here: loss, tcp.loss, udp.loss\n" in listed
    assert "Here: queue.udp.borrowed, queue.tcp.borrowed\n" in listed
    assert "\nmos: " not in listed
    rows = json.loads(runner.invoke(app, ["list", "metrics", file, "--json"]).output)
    names = {row["name"]: row["names"] for row in rows if row["scope"] == "group"}
    assert names["completed"] == ["tcp.completed"]
    assert names["end_to_end_loss"] == ["udp.end_to_end_loss"]


def test_warnings_that_differ_in_numbers_alone_are_one_with_a_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with warnings_shown():
        for number in range(500):
            text = f"runs/short/{number:064x}: has no manifest; it is run again"
            warnings.warn(text, RedtailWarning, stacklevel=1)
        warnings.warn("the disk is nearly full", RedtailWarning, stacklevel=1)
    first, other, count = capsys.readouterr().err.splitlines()
    assert first == f"warning: runs/short/{0:064x}: has no manifest; it is run again"
    assert other == "warning: the disk is nearly full"
    assert count == f"warning: 499 more like this one: {first.removeprefix('warning: ')}"


def to_full_device(*arguments: str) -> tuple[int, str]:
    """Run a command whose standard output cannot be written; return exit code and complaints."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from redtail.cli import main; main()", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=600,
        )
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "short.toml"
    path.write_text(SHORT)
    out = str(tmp_path / "runs")
    told = "error: standard output cannot be written: No space left on device\n"
    kept = ["run", str(path), "--replications", "1", "--no-figures", "--out", out]
    assert to_full_device("check", str(path)) == (1, told)
    assert to_full_device(*kept) == (1, told)
    assert to_full_device(*kept, "--json") == (1, told)
    assert to_full_device("list", "queues") == (1, told)
    assert to_full_device("runs", "list", "--out", out) == (1, told)
    assert to_full_device("--help") == (1, told)
    # What the command itself has to say comes first, and the runs are kept.
    code, complaints = to_full_device("check", str(tmp_path / "none.toml"))
    assert (code, complaints) == (2, f"error: {tmp_path / 'none.toml'}: no such file\n")
    again = runner.invoke(app, kept)
    assert "4 runs, 4 of them reused" in again.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_messages_that_cannot_be_written_leave_the_exit_code(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from redtail.cli import main; main()", "check", "none.toml"],
            stderr=full,
            check=False,
            timeout=600,
        )
    assert done.returncode == 2


def test_a_tilde_is_the_home_folder(
    fake: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    done = runner.invoke(app, ["run", str(fake_file), "--no-figures", "--out", "~/kept"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert f"runs:    {home}/kept/fake-experiment/" in done.stdout
    assert not Path("~").exists()
    assert redtail.load("~/kept/fake-experiment").run_count == 12
    assert redtail.run("~/../fake.toml", out="~/kept").reused == 12
    assert len(runs.listing(Path(home, "kept"))) == 1
    for command in (["runs", "list"], ["runs", "verify"], ["runs", "gc"]):
        done = runner.invoke(app, [*command, "--out", "~/kept"])
        assert (done.exit_code, done.stderr) == (0, ""), done.stderr
    dry = runner.invoke(app, ["run", str(fake_file), "--dry-run", "--out", "~/kept"])
    assert "3 runs stored" in dry.stdout
    compared = ["compare", "~/kept/fake-experiment", "--metric", "goodput"]
    assert runner.invoke(app, compared).exit_code == 0


def test_a_folder_whose_name_begins_with_a_tilde_is_that_folder(
    fake: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow would look for the home folder of a user; a shell leaves such a name as it is."""
    monkeypatch.chdir(tmp_path)
    for out in ("~no-such-user", "./~"):
        assert redtail.run(fake_file, out=out).reused == 0
        assert redtail.run(fake_file, out=out).reused == 12
        assert (tmp_path / out / "fake-experiment").is_dir()
