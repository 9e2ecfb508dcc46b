"""`redtail runs watch`: a campaign that another process makes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redtail.cli import app
from redtail.running import watching
from redtail.store.folders import ExperimentStore
from redtail.store.format import PROGRESS
from redtail.store.locks import in_use

NUMBERS = {"reused": 1, "failed": 0, "packets": 5, "calibrating": False}


def test_a_campaign_says_how_far_it_is_and_tidies_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_SECONDS_BETWEEN", 0.0)
    with watching.Board([tmp_path]) as board:
        assert watching.read(tmp_path) is None
        board.show(total=10, done=3, **NUMBERS)
        state = watching.read(tmp_path)
        assert state is not None and (state.total, state.done, state.whole) == (10, 3, False)
    assert not list(tmp_path.iterdir())


def test_it_is_followed_until_nobody_is_at_work(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path, "Campaign")
    waits = 0

    def write(done: int) -> None:
        state = {"total": 9, "done": done, "elapsed": 0.0, **NUMBERS}
        (store.folder / PROGRESS).write_text(json.dumps(state))

    def sleep(_: float) -> None:
        nonlocal waits
        waits += 1
        if waits < 3:
            write(waits)
        elif waits == 3:
            (store.folder / PROGRESS).write_text("{")  # damaged: waited for until it is whole
        else:
            store.close()

    seen: list[int] = []
    last = watching.watch(
        store.folder, lambda state: seen.append(state.done), interval=1, sleep=sleep
    )
    assert seen == [1, 2]
    assert last is not None and last.done == 2
    assert not in_use(store.folder)


def test_the_command_watches_another_process(tmp_path: Path) -> None:
    runner = CliRunner()
    words = ["runs", "watch", "--out", str(tmp_path)]
    assert f"{tmp_path}: no campaign is at work" in runner.invoke(app, words).output
    state = json.dumps({"total": 4, "done": 4, "elapsed": 0, **NUMBERS})
    # Another process that holds the folder as a campaign does, and says once how far it is.
    code = (
        "import sys; from redtail.store.folders import ExperimentStore\n"
        "from redtail.store.format import PROGRESS\n"
        f"store = ExperimentStore({str(tmp_path)!r}, 'Campaign')\n"
        f"(store.folder / PROGRESS).write_text({state!r})\n"
        "(store.folder / 'results.json').write_text('{}')\n"
        "print('ready', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == "ready\n"
        with subprocess.Popen(
            [sys.executable, "-m", "redtail", *words, "--interval", "0.1"],
            stdout=subprocess.PIPE,
            text=True,
        ) as watcher:
            assert watcher.stdout is not None
            first = watcher.stdout.readline()
            assert first.strip() == f"watching {tmp_path / 'campaign'}/"
            time.sleep(0.3)
            assert watcher.poll() is None, "it waits while the other is at work"
            other.stdin.close()
            assert "4 of 4 runs finished" in watcher.stdout.read()
            assert watcher.wait() == 0
    named = runner.invoke(app, [*words, "campaign"])
    assert "no campaign is at work" in named.output
