"""Runs made elsewhere: by other processes, on a dask cluster, by workers that die."""

from __future__ import annotations

import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import redtail
from redtail import cluster
from redtail.cli import app
from redtail.errors import QueueError, RedtailError, RunError
from redtail.running import pool

pytestmark = [
    pytest.mark.filterwarnings("ignore::redtail.RedtailWarning"),
    # Of distributed, when a worker dies.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

EXPERIMENT = """\
name = "Elsewhere"
duration = "20 s"
warmup = "1 s"
replications = 12

[bottleneck]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4

[[traffic]]
name = "all"
kind = "trace"
file = "flows.csv"

[factors]
"bottleneck.queue" = [
    { kind = "tail-drop", limit = "50 packets" },
    { kind = "plugin", class = "mine.py:Mine", limit = "50 packets", label = "mine" },
]
"""

BASE = """\
from collections import deque


class Base:
    def __init__(self, context):
        self.context, self.packets = context, deque()

    def enqueue(self, packet, now):
        if not self.context.admits(packet):
            return False
        self.packets.append(packet)
        return True
"""

MINE = """\
from base_of_mine import Base


class Mine(Base):
    def dequeue(self, now):
        return self.packets.popleft() if self.packets else None
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "base_of_mine.py").write_text(BASE)
    (folder / "mine.py").write_text(MINE)
    (folder / "flows.csv").write_text("start_s,size_bytes\n0.5,20000\n1.5,50000\n")
    path = folder / "elsewhere.toml"
    path.write_text(EXPERIMENT)
    return path


def data_of(folder: Path) -> dict[str, bytes]:
    """What must not depend on where runs were made: all but manifests, which say where."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("manifest.json", "results.json")
    }


def elsewhere(needs: pool.Needs) -> pool.Needs:
    """The same, as on a machine that has none of the files."""
    return dataclasses.replace(
        needs,
        queues={
            name: dataclasses.replace(each, folder="/nowhere")
            for name, each in needs.queues.items()
        },
        traces={
            name: dataclasses.replace(each, path="/nowhere/flows.csv", _native=None)
            for name, each in needs.traces.items()
        },
    )


class Elsewhere(Executor):
    """Does what an executor on another machine does: pickles, and has no files of ours."""

    def __init__(self, inner: Executor) -> None:
        self.inner = inner
        self.sent: list[tuple[str, ...]] = []
        self.sizes: list[int] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        scenarios, token, needs, contents = pickle.loads(pickle.dumps(args))
        self.sent.append(tuple(sorted(contents)))
        self.sizes.append(len(scenarios))
        return self.inner.submit(fn, scenarios, token, elsewhere(needs), contents)


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a process that has seen no file of another."""
    monkeypatch.setattr(pool, "_UNPACKED", {})
    monkeypatch.delitem(sys.modules, "base_of_mine", raising=False)


def test_queues_and_tables_travel_to_workers_that_have_not_got_them(
    experiment: Path, tmp_path: Path
) -> None:
    sets = {"duration": "3 s"}
    here = redtail.run(experiment, set=sets, replications=2, out=tmp_path / "here")
    with ThreadPoolExecutor(1) as threads:
        executor = Elsewhere(threads)
        there = redtail.run(
            experiment,
            set=sets,
            replications=2,
            jobs=1,
            out=tmp_path / "there",
            executor=executor,
        )
    assert data_of(here.folder) == data_of(there.folder)
    # They are sent to a worker that says that it does not have them, and not with every run.
    assert executor.sent[0] == ()
    sent = [names for names in executor.sent if names]
    assert 1 <= len(sent) <= 2
    assert all(len(names) == 2 for names in sent)


def test_a_class_that_cannot_be_sent_is_named(experiment: Path, tmp_path: Path) -> None:
    elsewhere_too = tmp_path / "lib"
    elsewhere_too.mkdir()
    name = "base_of_mine_too"
    (elsewhere_too / f"{name}.py").write_text(BASE)
    (experiment.parent / "mine.py").write_text(MINE.replace("base_of_mine", name))
    sys.path.insert(0, str(elsewhere_too))
    try:
        with (
            ThreadPoolExecutor(1) as threads,
            pytest.raises(QueueError, match=f"does not have {name}.*install it where the workers"),
        ):
            redtail.run(
                experiment,
                out=tmp_path / "runs",
                executor=Elsewhere(threads),
                allow_code=elsewhere_too,
            )
    finally:
        sys.path.remove(str(elsewhere_too))
        del sys.modules[name]


def test_a_worker_with_another_engine_is_refused(tmp_path: Path) -> None:
    needs = pool.Needs(code_version="another")
    with pytest.raises(RunError, match="another version of redtail"):
        pool.run_batch([], None, needs, {})


def test_an_executor_that_fails_is_told_from_a_run_that_fails(
    experiment: Path, tmp_path: Path
) -> None:
    class Broken(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(OSError("the line is dead"))
            return future

    with pytest.raises(RunError, match="the executor failed: OSError: the line is dead"):
        redtail.run(experiment, out=tmp_path / "runs", executor=Broken())


# --- A cluster ------------------------------------------------------------------------------


@dataclasses.dataclass
class Started:
    """A scheduler and its workers, processes of this machine."""

    file: Path
    workers: list[subprocess.Popen[bytes]]


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[Started]:
    file = tmp_path / "scheduler.json"
    processes = []

    def start(what: str, *words: str) -> subprocess.Popen[bytes]:
        log = (tmp_path / f"{what}-{len(processes)}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{what}", *words],
                stdout=log,
                stderr=log,
                cwd=tmp_path,
                env={**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s"},
            )
        processes.append(process)
        return process

    try:
        scheduler = start(
            "scheduler",
            *("--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
            *("--no-show", "--scheduler-file", str(file)),
        )
        wait_for(lambda: file.is_file() and file.stat().st_size > 0, scheduler)
        workers = [
            start(
                "worker",
                *("--scheduler-file", str(file), "--nthreads", "1", "--no-nanny"),
                *("--no-dashboard", "--local-directory", str(tmp_path)),
            )
            for _ in range(2)
        ]
        yield Started(file, workers)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    for _ in range(6000):
        if condition():
            return
        assert process.poll() is None
        time.sleep(0.1)
    raise AssertionError("waited for ten minutes")


def test_a_cluster_loses_a_worker_and_no_run(
    experiment: Path, tmp_path: Path, dask: Started
) -> None:
    here = redtail.run(experiment, out=tmp_path / "here")
    seen: list[tuple[int, int, int]] = []

    def look(state: Any) -> None:
        seen.append((state.done, state.total, state.packets))
        if state.done == 5:
            os.kill(dask.workers[0].pid, signal.SIGKILL)

    with cluster.connected(str(dask.file)) as executor:
        wait_for(lambda: executor.width == 2, dask.workers[0])
        there = redtail.run(
            experiment, out=tmp_path / "there", executor=Elsewhere(executor), progress=look
        )
    assert dask.workers[0].wait() == -signal.SIGKILL
    assert there.run_count == here.run_count == 24
    assert [done for done, _, _ in seen] == list(range(25))
    assert data_of(here.folder) == data_of(there.folder)
    assert there.to_json() == here.to_json()


def test_the_command_line_runs_on_a_cluster(
    experiment: Path, tmp_path: Path, dask: Started
) -> None:
    words = ["run", str(experiment), "--set", "duration=3 s", "--replications", "2", "--json"]
    there = CliRunner().invoke(
        app, [*words, "--out", str(tmp_path / "there"), "--dask", str(dask.file)]
    )
    assert there.exit_code == 0, there.output
    here = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "here")])
    assert there.stdout == here.stdout


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_S", 0.3)
    with (
        pytest.raises(RedtailError, match=r"no dask scheduler answers at tcp://127.0.0.1:1"),
        cluster.connected("tcp://127.0.0.1:1"),
    ):
        pass
