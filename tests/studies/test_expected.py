"""`redtail reproduce --write-expected` and `--check`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redtail import studies
from redtail.cli import app

runner = CliRunner()


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    shutil.copytree("examples/my-paper", folder)
    return folder


def test_expectations_are_written_and_checked(study: Path, tmp_path: Path) -> None:
    words = ["reproduce", str(study), "--out", str(tmp_path / "out")]
    refused = runner.invoke(app, [*words, "--check"])
    assert refused.exit_code == 2 and "--write-expected" in refused.output
    assert not (tmp_path / "out").exists(), "nothing was run"

    written = runner.invoke(app, [*words, "--write-expected"])
    assert written.exit_code == 0, written.output
    expected = studies.load(study).expected
    assert expected["quick"].keys() == {finding.id for finding in studies.load(study).findings}
    checked = runner.invoke(app, [*words, "--check"])
    assert checked.exit_code == 0, checked.output

    # Expectations of another scale stay, and a verdict that is another one is named.
    file = study / "expected.toml"
    text = file.read_text("utf-8")
    name = next(iter(expected["quick"]))
    assert f'{name} = "holds"' in text
    file.write_text(text.replace(f'{name} = "holds"', f'{name} = "does not hold"'), "utf-8")
    changed = runner.invoke(app, [*words, "--check"])
    assert changed.exit_code == 1
    assert f"changed: {name}: expected does not hold, found holds" in changed.output


def test_checking_and_writing_exclude_each_other(study: Path) -> None:
    done = runner.invoke(app, ["reproduce", str(study), "--check", "--write-expected"])
    assert done.exit_code == 2 and "exclude each other" in done.output
    unknown = runner.invoke(app, ["reproduce", str(study), "--check", "--scale", "huge"])
    assert unknown.exit_code == 2 and "accepted: " in unknown.output
