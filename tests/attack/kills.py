"""Campaigns that are killed at random moments; once finished they are as if never killed."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from redtail.store import runs
from test_kills import contents, finish, lines, start, stored


def undisturbed(folder: Path, replications: int) -> dict[str, bytes]:
    """What is in the store when nothing happens."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    assert finish(start(folder / "runs", replications, folder / "log")) == (0, "")
    return contents(folder / "runs")


def wrong(
    seed: int, number: int, folder: Path, expected: dict[str, bytes], count: int
) -> list[str]:
    """Kill a campaign some times and finish it; return what is not as it should be."""
    draw = random.Random(f"kills {seed} {number}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    root = folder / "runs"
    found = []
    for kill in range(draw.randrange(2, 6)):
        log = folder / f"log-{kill}"
        before = stored(root)
        process = start(root, count, log)
        more = draw.randint(0, count)
        while len(stored(root)) < len(before) + more and process.poll() is None:
            time.sleep(0.0005)
        time.sleep(draw.uniform(0.0, 0.01 if more else 1.0))
        process.kill()
        finish(process)
        if again := before & set(lines(log)):
            found.append(f"kill {kill}: made again though it was stored: {sorted(again)}")
        for key in stored(root):
            found += [f"kill {kill}: {each}" for each in runs.verify_run(root / "killed" / key)]
    ended = finish(start(root, count, folder / "log"))
    if ended != (0, ""):
        found.append(f"the last command ended with {ended}")
    if contents(root) != expected:
        found.append("the store differs from that of a campaign that was never killed")
    found += map(str, runs.verify(root / "killed"))
    return found
