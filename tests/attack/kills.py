"""Commands that are ended at random moments; once finished they are as if never ended.

Campaigns, `redtail validate`, and `redtail runs watch` beside a campaign.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from test_kills import contents, finish, lines, start, stored

from redtail.store import runs

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)

_TESTS = Path(__file__).parents[1]

# Of processes that one leaves behind; the variable says whose they are.
_MARK = "REDTAIL_ATTACK"
_SECONDS_TO_END = 20.0


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


def backends() -> str:
    """What `redtail validate` compares: a kernel, where there is one."""
    from redtail.backends import doctor

    needed = [need for need in doctor.needs() if need.backend == "linux" and need.required]
    return "sim,other" if any(need.lacking for need in needed) else "sim,linux"


class Validation:
    """Validations, the first of which nobody ends.

    Args:
        folder: where all of it is.
        compared: the names of the backends.
    """

    def __init__(self, folder: Path, compared: str) -> None:
        self.folder = folder
        self.compared = compared
        begun = time.monotonic()
        process = self._start()
        said = process.communicate()[1]
        assert process.returncode == 0, said
        self.seconds = time.monotonic() - begun
        self.expected = self._left()

    def wrong(self, seed: int, number: int) -> list[str]:
        """End a validation some times and finish it; return what is not as it should be."""
        draw = random.Random(f"validate {seed} {number}")
        found = []
        store = self.folder / "runs"
        for kill in range(draw.randrange(1, 4)):
            process = self._start(again=kill > 0)
            chosen = draw.choice(SIGNALS)
            try:
                process.wait(draw.uniform(0.2, self.seconds))
            except subprocess.TimeoutExpired:
                process.send_signal(chosen)
            said = process.communicate()[1].decode()
            name = f"kill {kill} ({chosen.name})"
            if _traceback(said):
                found.append(f"{name}: {said[-600:]}")
            found += [f"{name}: left running: {each}" for each in left_running(self.folder)]
            for folder in sorted(store.glob("*/")):
                for key in runs.run_names(folder):
                    found += [f"{name}: {each}" for each in runs.verify_run(folder / key)]
            report = self.folder / "report.md"
            if report.exists() and report.read_bytes() != self.expected[1]:
                found.append(f"{name}: half a report")
        process = self._start(again=True)
        said = process.communicate()[1].decode()
        if process.returncode:
            return [*found, f"the last command ended with {process.returncode}: {said[-600:]}"]
        if self._left() != self.expected:
            found.append("the store or the report differs from those that nobody ended")
        for folder in sorted(store.glob("*/")):
            found += map(str, runs.verify(folder))
        found += [f"left running: {each}" for each in left_running(self.folder)]
        left = [path for path in self.folder.rglob(".tmp-*")]
        return found + [f"left: {path}" for path in [*left, *(self.folder / "tmp").iterdir()]]

    def _start(self, *, again: bool = False) -> subprocess.Popen[bytes]:
        if not again:
            shutil.rmtree(self.folder, ignore_errors=True)
            (self.folder / "tmp").mkdir(parents=True)
        command = [sys.executable, str(_TESTS / "validate_process.py")]
        return subprocess.Popen(
            [*command, str(self.folder), self.compared],
            env={**os.environ, **marked(self.folder), "TMPDIR": str(self.folder / "tmp")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def _left(self) -> tuple[dict[str, bytes], bytes]:
        return contents(self.folder / "runs"), (self.folder / "report.md").read_bytes()


def _traceback(said: str) -> bool:
    """Whether it ended in a traceback, other than by Ctrl-C while Python loads modules."""
    return "Traceback" in said and not said.rstrip().endswith("KeyboardInterrupt")


def marked(folder: Path) -> dict[str, str]:
    """The environment by which processes are known that a command in a folder has started."""
    return {_MARK: str(folder)}


def left_running(folder: Path) -> list[str]:
    """Processes that are still there of those that a command has started, after a while."""
    end = time.monotonic() + _SECONDS_TO_END
    while True:
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if f"{_MARK}={folder}".encode() in (path / "environ").read_bytes().split(b"\0"):
                    words = (path / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.append(f"{path.name} {words.decode(errors='replace')[:100]}")
            except OSError:
                continue
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.05)


def watch_wrong(
    seed: int, number: int, folder: Path, expected: dict[str, bytes], count: int
) -> list[str]:
    """End a campaign or what watches it; return what is not as it should be."""
    draw = random.Random(f"watch {seed} {number}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    root = folder / "runs"
    campaign = start(root, count, folder / "log")
    words = ["runs", "watch", "--out", str(root), "--interval", "0.1"]
    watchers = []
    found = []
    for _ in range(3):
        time.sleep(draw.uniform(0.0, 0.6))
        watcher = subprocess.Popen(
            [sys.executable, "-m", "redtail", *words],
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        watchers.append((watcher, draw.random() < 0.5))
    for watcher, to_end in watchers:
        if to_end:
            time.sleep(draw.uniform(0.0, 0.8))
            watcher.send_signal(draw.choice(SIGNALS))
    if draw.random() < 0.5:
        time.sleep(draw.uniform(0.0, 0.5))
        campaign.send_signal(signal.SIGKILL)
    campaign.communicate()
    for watcher, to_end in watchers:
        try:
            output, complaints = watcher.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            watcher.kill()
            found.append("it watches although nobody is at work")
            continue
        if _traceback(complaints.decode()):
            found.append(complaints.decode()[-600:])
        early = b"there is no such folder" in complaints  # before the campaign has made it
        if not to_end and watcher.returncode and not early:
            found.append(f"a watcher ended with {watcher.returncode}: {complaints.decode()[-600:]}")
        if not to_end and b"{" in output:
            found.append(f"a watcher says {output!r}")
    ended = finish(start(root, count, folder / "log"))
    if ended != (0, ""):
        found.append(f"the last command ended with {ended}")
    if contents(root) != expected:
        found.append("the store differs from that of a campaign that nobody watched")
    return found + list(map(str, runs.verify(root / "killed")))
