"""A clock of the system that is set while redtail works: nothing that it decides follows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_kills import SCRIPT, contents, finish, start

from redtail.cli import progress
from redtail.running import watching
from redtail.store import format, runs, writing

from conftest import ROOT

YEAR = 365 * 86400.0
NUMBERS = {"reused": 0, "failed": 0, "packets": 1000, "calibrating": False}


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a command whose clock is set every 20 ms."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("clock") / "steps.so"
    source = ROOT / "tests" / "store" / "fixtures" / "steps.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True, text=True)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    code = "import time\nseen = [time.time() for _ in range(3) if not time.sleep(0.021)]\n"
    said = subprocess.run(
        [sys.executable, "-c", code + "print(max(seen) - min(seen))"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert float(said.stdout) > 19 * YEAR
    return environment


def test_a_campaign_under_a_clock_that_is_set_stores_what_others_do(
    steps: dict[str, str], tmp_path: Path
) -> None:
    assert finish(start(tmp_path / "still", 6, tmp_path / "log")) == (0, "")
    # Another machine is at work there too, and has written just now.
    (tmp_path / "set" / "killed").mkdir(parents=True)
    busy = tmp_path / "set" / "killed" / ".tmp-redtail-0123456789abcdef-another.machine-1-17"
    busy.mkdir()
    for _ in range(2):
        command = [sys.executable, str(SCRIPT), str(tmp_path / "set"), "6", str(tmp_path / "log2")]
        done = subprocess.run(command, env=steps, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert busy.exists()
    made = (tmp_path / "log2").read_text().split()
    assert len(made) == len(set(made)) == 24, "the second command finds all runs"
    busy.rmdir()
    assert contents(tmp_path / "set") == contents(tmp_path / "still")
    assert list(runs.verify(tmp_path / "set" / "killed")) == []


def test_the_forecast_of_a_watched_campaign_does_not_follow_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither that of the machine of the campaign, nor that of the one that watches."""
    monotonic = time.monotonic
    ahead = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + ahead)
    with watching.Board([tmp_path]) as board:
        ahead = 100.0
        monkeypatch.setattr(time, "time", lambda: 17.0)
        board.show(total=10, done=5, **NUMBERS)
        monkeypatch.setattr(time, "time", lambda: 4e9)
        state = watching.read(tmp_path)
        assert state is not None
        shown = progress.seen(state)
        assert shown.left_s == pytest.approx(100.0, rel=0.01)
        assert shown.packets_per_s == pytest.approx(10.0, rel=0.01)


@pytest.mark.parametrize(
    "wrong",
    [
        {"elapsed": float("nan")},
        {"elapsed": -1.0},
        {"elapsed": float("inf")},
        {"done": -3},
        {"running": [[1.0, float("nan")]]},
        {"running": [[1.0]]},
    ],
)
def test_impossible_numbers_of_progress_are_not_shown(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    path = tmp_path / format.PROGRESS
    right = {"total": 9, "done": 3, "elapsed": 2.0, **NUMBERS}
    path.write_text(json.dumps(right))
    assert watching.read(tmp_path) is not None
    path.write_text(json.dumps({**right, **wrong}))
    assert watching.read(tmp_path) is None


def test_what_another_machine_writes_is_no_leftover_when_the_clock_here_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = tmp_path / ".tmp-redtail-0123456789abcdef-another.machine-1-17"
    busy.mkdir()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + YEAR)
    assert writing.leftovers(tmp_path) == []
    os.utime(busy, (now - 3 * 86400, now - 3 * 86400))
    monkeypatch.setattr(time, "time", lambda: now - YEAR)
    assert writing.leftovers(tmp_path) == [busy]
    assert sorted(path.name for path in tmp_path.iterdir()) == [busy.name]
