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

from redtail.store import runs
from test_kills import contents, finish, lines, start, stored

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)

_TESTS = Path(__file__).parent.parent

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


def able(name: str) -> str:
    """The backend `linux` where there is a kernel and QEMU for it, or else one in its place."""
    from redtail.backends import doctor

    return name if all(not need.lacking for need in doctor.needs() if need.backend == name) else ""


def validated(folder: Path, backends: str) -> tuple[dict[str, bytes], bytes]:
    """What `redtail validate` leaves in its store when nothing happens, and its report."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tmp").mkdir(parents=True)
    process = _validation(folder, backends)
    said = process.communicate()[1]
    assert process.returncode == 0, said
    return _validation_left(folder)


def validate_wrong(
    seed: int,
    number: int,
    folder: Path,
    backends: str,
    expected: tuple[dict[str, bytes], bytes],
    seconds: float,
) -> list[str]:
    """End a validation some times and finish it; return what is not as it should be.

    Args:
        seed: with `number`, what the moments and the signals are drawn from.
        number: of the case.
        folder: where all of it is.
        backends: what is compared.
        expected: of `validated`.
        seconds: how long it takes when nothing happens.
    """
    draw = random.Random(f"validate {seed} {number}")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tmp").mkdir(parents=True)
    found = []
    for kill in range(draw.randrange(1, 4)):
        process = _validation(folder, backends)
        chosen = draw.choice(SIGNALS)
        try:
            process.wait(draw.uniform(0.2, seconds))
        except subprocess.TimeoutExpired:
            process.send_signal(chosen)
        said = process.communicate()[1].decode()
        name = f"kill {kill} ({chosen.name})"
        if _traceback(said):
            found.append(f"{name}: {said[-600:]}")
        found += [f"{name}: left running: {each}" for each in _left_running(folder)]
        for store in sorted((folder / "runs").glob("*/")):
            for key in runs.run_names(store):
                found += [f"{name}: {each}" for each in runs.verify_run(store / key)]
        report = folder / "report.md"
        if report.exists() and report.read_bytes() != expected[1]:
            found.append(f"{name}: half a report")
    process = _validation(folder, backends)
    said = process.communicate()[1].decode()
    if process.returncode:
        found.append(f"the last command ended with {process.returncode}: {said[-600:]}")
        return found
    if _validation_left(folder) != expected:
        found.append("the store or the report differs from that of a validation without kills")
    for store in sorted((folder / "runs").glob("*/")):
        found += map(str, runs.verify(store))
    found += [f"left running: {each}" for each in _left_running(folder)]
    left = [path for path in folder.rglob(".*") if path.name.startswith(".tmp-")]
    found += [f"left: {path}" for path in [*left, *(folder / "tmp").iterdir()]]
    return found


def _validation(folder: Path, backends: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), _MARK: str(folder)}
    command = [sys.executable, str(_TESTS / "validate_process.py"), str(folder), backends]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def _validation_left(folder: Path) -> tuple[dict[str, bytes], bytes]:
    return contents(folder / "runs"), (folder / "report.md").read_bytes()


def _traceback(said: str) -> bool:
    """Whether it ended in a traceback, other than by Ctrl-C while Python loads modules."""
    return "Traceback" in said and not said.rstrip().endswith("KeyboardInterrupt")


def _left_running(folder: Path) -> list[str]:
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
        if not to_end and watcher.returncode:
            found.append(f"a watcher ended with {watcher.returncode}: {complaints.decode()[-600:]}")
        if not to_end and b"{" in output:
            found.append(f"a watcher says {output!r}")
    ended = finish(start(root, count, folder / "log"))
    if ended != (0, ""):
        found.append(f"the last command ended with {ended}")
    if contents(root) != expected:
        found.append("the store differs from that of a campaign that nobody watched")
    return found + list(map(str, runs.verify(root / "killed")))
