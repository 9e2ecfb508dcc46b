"""Ctrl-C while runs are made: real signals to real processes.

What is waited for is a line or a file that must come; the time limits only end a test that fails.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import redtail
from redtail.running.interrupts import MESSAGE, Interrupts
from redtail.store import runs

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")

FILE = """
name = "Endless"
duration = "4 s"
warmup = "1 s"
replications = 1
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 2
[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "20 packets" },
  { kind = "plugin", class = "own.py:Endless" },
]
"""

ENDLESS = """
from collections import deque
from pathlib import Path

class Returns:
    def __init__(self, context):
        self.packets = deque()
        self.reached = False

    def enqueue(self, packet, now):
        if now > 2 and not self.reached:
            self.reached = True
            Path(__file__).with_name("reached").touch()
            self.on_reached()
        if len(self.packets) >= 20:
            return False
        self.packets.append(packet)
        return True

    def on_reached(self):
        pass

    def dequeue(self, now):
        return self.packets.popleft()

class Endless(Returns):
    def on_reached(self):
        while True:
            pass
"""

GIVE_UP_S = 600


@contextmanager
def redtail_process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process of the command line, ended after the test whatever happens."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from redtail.cli import main; main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As a shell starts it, whatever the test's own process does with SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    watch = threading.Timer(GIVE_UP_S, process.kill)
    watch.start()
    try:
        yield process
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


def wait_for_line(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if text in line:
            return
    raise AssertionError(f"{text!r} was not written, but {seen}")


def wait_until(process: subprocess.Popen[str], found: Callable[[], object]) -> None:
    while not found():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def endless(folder: Path) -> Path:
    (folder / "own.py").write_text(ENDLESS)
    path = folder / "endless.toml"
    path.write_text(FILE)
    return path


def test_the_second_ends_the_program_while_a_queue_in_python_never_returns(tmp_path: Path) -> None:
    path, out = endless(tmp_path), tmp_path / "runs"
    arguments = [str(path), "--out", str(out), "--jobs", "1", "--no-figures"]
    with redtail_process("run", *arguments) as process:
        wait_until(process, lambda: list(out.glob("endless/[!.]*/manifest.json")))
        wait_until(process, (tmp_path / "reached").exists)
        process.send_signal(signal.SIGINT)
        wait_for_line(process, MESSAGE)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr is not None and "Traceback" not in process.stderr.read()
    # Nothing is half-written, and what was finished is kept.
    assert list(runs.verify(out / "endless")) == []
    path.write_text(FILE.split("[factors]")[0])
    again = redtail.run(path, out=out)
    assert again.reused == 1


def test_a_capture_is_ended_likewise_and_leaves_no_file(tmp_path: Path) -> None:
    path, packets = endless(tmp_path), tmp_path / "packets.pcapng"
    arguments = [str(path), "--pcap", f"bottleneck={packets}", "--pcap-case", "1"]
    arguments += ["--out", str(tmp_path / "runs")]
    with redtail_process("run", *arguments) as process:
        wait_until(process, (tmp_path / "reached").exists)
        process.send_signal(signal.SIGINT)
        wait_for_line(process, MESSAGE)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert not packets.exists()


def test_the_first_is_acknowledged_and_stops_a_long_run(tmp_path: Path) -> None:
    path, out = endless(tmp_path), tmp_path / "runs"
    text = FILE.split("[factors]")[0].replace('duration = "4 s"', 'duration = "2000 h"')
    queue = '{ kind = "plugin", class = "own.py:Returns" }'
    path.write_text(text.replace('{ kind = "tail-drop", limit = "20 packets" }', queue))
    with redtail_process("run", str(path), "--out", str(out)) as process:
        wait_until(process, (tmp_path / "reached").exists)
        process.send_signal(signal.SIGINT)
        wait_for_line(process, MESSAGE)
        assert process.wait() == 130
        assert process.stderr is not None
        rest = process.stderr.read()
    assert "interrupted: 0 of 1 run is finished and kept" in rest
    assert list(runs.verify(out / "endless")) == []


def test_an_interactive_session_goes_on_after_the_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Interrupts() as held:
        assert held.waits_for_runs
        os.kill(os.getpid(), signal.SIGINT)
        assert (held.count, held.waits_for_runs) == (1, True)
        assert MESSAGE in capsys.readouterr().err
        os.kill(os.getpid(), signal.SIGINT)
    assert not held.waits_for_runs
    assert signal.getsignal(signal.SIGINT) is before
