"""Commands under limits of memory without room for their packages: a message, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attack.kills import left_running, marked
from redtail.backends import live
from redtail.cli import _of_memory
from redtail.store import runs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")

LACKING = live.missing() if sys.platform == "linux" else []

EXPERIMENT = """\
name = "Limited"
duration = "500 ms"
replications = 1
[bottleneck]
rate = "2 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
tcp = "linux"
"""

# The limit counts from the moment when Python has started.
LIMITED = """\
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) * 1000000,) * 2)
sys.argv[:] = ["redtail", *sys.argv[2:]]
from redtail.cli import main
main()
"""


def limited(folder: Path, megabytes: int, *words: str) -> str:
    """Run a command; return what it says on standard error when all that it started has ended."""
    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "experiment.toml").write_text(EXPERIMENT)
    done = subprocess.run(
        [sys.executable, "-P", "-c", LIMITED, str(megabytes), *words],
        env={**os.environ, **marked(folder), "TMPDIR": str(folder / "tmp")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    # A library in C may crash where its memory ends, seldom, and says nothing then.
    crashed = done.returncode in (-signal.SIGSEGV, -signal.SIGABRT)
    assert crashed or done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert crashed or bool(done.stderr.strip()) >= bool(done.returncode), "it says why"
    assert left_running(folder) == []
    assert not list((folder / "tmp").iterdir())
    assert not [path for path in folder.rglob(".tmp-*")]
    for store in (folder / "runs").glob("*/"):
        assert list(runs.verify(store)) == []
    return (done.stderr or "it crashed") if done.returncode else ""


@pytest.mark.weekly
def test_a_command_without_room_for_its_packages_says_so(tmp_path: Path) -> None:
    words = ("run", "experiment.toml", "--no-figures", "--jobs", "2")
    # Where it ends depends on the sizes of the packages. Libraries have messages of their own.
    told = [limited(tmp_path, size, *words) for size in (50, 60, 70, 80, 100, 160, 220, 280, 340)]
    assert all(told[:5])
    assert sum("there is not enough memory for this command" in text for text in told) >= 3
    assert limited(tmp_path, 8000, *words) == ""


@pytest.mark.live
@pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))
@pytest.mark.parametrize("words", [("run", "--backend", "live"), ("shell",)])
def test_a_run_in_real_time_without_room_ends_and_leaves_nothing(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Its agent has the same limit, and fails where the command itself still has room."""
    command, *rest = words
    after = ["--no-figures"] if command == "run" else ["--", "true"]
    for size in (60, 220, 360, 420):
        limited(tmp_path, size, command, "experiment.toml", *rest, *after)


@pytest.mark.parametrize(
    ("error", "of_memory"),
    [
        (MemoryError(), True),
        (ImportError("libarrow.so: failed to map segment from shared object"), True),
        (ImportError("x.so: cannot allocate memory in static TLS block"), True),
        (RuntimeError("can't start new thread"), True),
        (ImportError("No module named 'numpy'"), False),
        (RuntimeError("a fault"), False),
    ],
)
def test_only_a_lack_of_memory_is_told_as_one(error: Exception, of_memory: bool) -> None:
    assert _of_memory(error) is of_memory
    outer = ImportError("it cannot be loaded")
    outer.__cause__ = error
    assert _of_memory(outer) is of_memory
