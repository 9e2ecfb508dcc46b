"""Experiments to start from: each is valid, runs, and is written without loss of what is there."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import redtail
from redtail import templates
from redtail.cli import app
from redtail.experiment import FORMAT

ROOT = Path(__file__).parents[2]

# What makes a run of each short, and still measures what its tables show.
SHORT: dict[str, dict[str, object]] = {
    "access-line": {"duration": "30 s", "warmup": "6 s"},
    "cellular": {"duration": "6 s", "warmup": "2 s"},
    "congestion-control": {"duration": "6 s", "warmup": "3 s"},
    "controller": {"duration": "10 s", "warmup": "4 s"},
    "data-center": {"duration": "40 ms", "warmup": "10 ms"},
    "expect": {"duration": "6 s", "warmup": "2 s", "traffic.other.start": "1 s"},
    "rrul": {"duration": "15 s"},
    "slow-last-hop": {"duration": "60 s"},
    "small-office": {"duration": "15 s", "warmup": "5 s"},
}


def command(*arguments: str) -> str:
    """What a command prints; it must succeed."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


def refusal(*arguments: str) -> str:
    """The message of a command that is refused."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 2
    return done.output


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")  # of short runs
@pytest.mark.parametrize("name", templates.names())
def test_every_template_runs_and_measures_what_its_table_shows(name: str, tmp_path: Path) -> None:
    (file, *_) = templates.write(name, tmp_path)
    results = redtail.run(file, set=SHORT[name], replications=1, out=tmp_path / "runs")
    assert results.report
    for case in results.cases:
        for metric in results.report:
            found = case.metric(metric)
            # A run that is so short shows no high quantile of what did not finish.
            assert math.isfinite(found.mean) or found.unfinished, f"{case.title}: {metric}"


@pytest.mark.parametrize("name", templates.names())
def test_a_template_is_valid_as_it_is_and_says_how_to_run_it(name: str, tmp_path: Path) -> None:
    (file, *_) = templates.write(name, tmp_path)
    assert redtail.check(file).warnings == ()
    text = file.read_text()
    assert f"#   redtail run {name}.toml\n" in text
    assert text.startswith(f"# {templates.about(name)}\n")
    assert f"\n\nformat = {FORMAT}\nname = " in text
    assert max(len(line) for line in text.splitlines() if line.startswith("#")) <= 105


def test_every_template_is_in_the_docs_with_its_figure() -> None:
    page = (ROOT / "docs" / "how-to" / "start.md").read_text()
    for name in templates.names():
        assert f"## {name}\n" in page.replace("`", "")
        assert f"(../figures/start-{name}.png)" in page
        assert (ROOT / "docs" / "figures" / f"start-{name}.png").exists()


def test_without_a_name_they_are_listed_with_a_line_each() -> None:
    lines = command("init").splitlines()
    assert [line.split()[0] for line in lines] == [*templates.names(), "queue"]
    narrow = subprocess.run(
        [sys.executable, "-m", "redtail", "init"],
        env={"COLUMNS": "60"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(narrow.stdout.splitlines()) == len(lines)
    assert max(map(len, narrow.stdout.splitlines())) <= 60


def test_a_template_is_written_with_the_files_that_it_names(here: Path) -> None:
    said = command("init", "cellular")
    assert (here / "cellular.trace").exists()
    assert "redtail run cellular.toml" in said
    assert command("check", "cellular.toml").startswith("cellular.toml: 'Cellular' is valid")
    command("init", "cellular", "--out", "a folder/mine.toml")
    assert sorted(path.name for path in (here / "a folder").iterdir()) == [
        "cellular.trace",
        "mine.toml",
    ]


def test_a_file_that_exists_is_not_replaced_without_being_told(here: Path) -> None:
    mine = here / "rrul.toml"
    mine.write_text("mine")
    assert "rrul.toml exists" in refusal("init", "rrul")
    assert mine.read_text() == "mine"
    command("init", "rrul", "--force")
    assert mine.read_text() == templates.text("rrul")


def test_a_trace_of_the_user_is_not_replaced_and_nothing_is_written(here: Path) -> None:
    (here / "cellular.trace").write_text("1\n")
    assert "cellular.trace exists" in refusal("init", "cellular")
    assert [path.name for path in here.iterdir()] == ["cellular.trace"]


def test_a_template_can_be_printed(here: Path) -> None:
    assert command("init", "rrul", "--out", "-") == templates.text("rrul")
    assert list(here.iterdir()) == []


def test_a_wrong_name_is_refused_with_those_there_are(here: Path) -> None:
    said = refusal("init", "office")
    assert "'office'" in said and "small-office" in said
    assert "--force: which template?" in refusal("init", "--force")
    (here / "file").write_text("")
    assert "cannot be written" in refusal("init", "rrul", "--out", "file/rrul.toml")
