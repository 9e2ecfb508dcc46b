"""Runs in virtual machines, with the TCP and the queues of a Linux kernel (`--backend linux`).

The tests need QEMU and a kernel (`redtail kernel fetch`); without them they are skipped with the
reason. A machine's time does not depend on this computer's, so no test needs a quiet one.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_live import (
    AGREEMENT,
    BULK,
    CROWDED,
    EVERY_KIND,
    agree,
    agreeing,
    counted,
    link,
    mean,
)
from typer.testing import CliRunner

import redtail
from redtail import backends, experiment
from redtail.backends import host, linux, real, virtual
from redtail.backends.virtual import kernels, machine, snapshots
from redtail.cli import app
from redtail.errors import InvalidRun, RedtailWarning, RunError, SpecError
from redtail.outcomes import Outcome

from conftest import some_weekly


def lacking() -> list[str]:
    """What this computer lacks for these tests."""
    try:
        return linux.missing() or ([] if kernels.known() else [kernels.GET_ONE])
    except redtail.RedtailError as error:
        return [str(error)]


LACKING = lacking()

pytestmark = [
    pytest.mark.linux,
    # Short runs with few flows and small buffers are what is wanted here.
    pytest.mark.filterwarnings("ignore::redtail.RedtailWarning"),
]
on_this_host = pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))

SHORT = link('{ kind = "fq-codel" }', "3 s", "1 s") + BULK


def scenario(text: str, replication: int = 0) -> str:
    return experiment.prepare(redtail.Toml(text)).scenario(0, replication)


def everything_of(outcome: Outcome) -> dict[str, Any]:
    """All that a run has measured, without how long it took."""
    return {
        "metrics": outcome.metrics,
        "losses": outcome.consecutive_losses,
        "series": outcome.series,
        "packets": outcome.bottleneck_packets,
    }


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Keep all processors busy."""
    loop = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(loop) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.weekly
@on_this_host
def test_a_run_is_the_same_in_any_order_and_on_a_busy_computer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = backends.find("linux")
    first, other = scenario(SHORT), scenario(SHORT, 1)
    alone = everything_of(maker.run(first))
    with busy(), ThreadPoolExecutor(2) as threads:
        beside = [everything_of(each) for each in threads.map(maker.run, [other, first, first])]
    assert beside[1] == beside[2] == alone
    assert beside[0]["metrics"] != alone["metrics"], "the seed says so"
    # A snapshot that is made anew.
    monkeypatch.setattr(snapshots, "folder", lambda: tmp_path / "snapshots")
    assert everything_of(maker.run(first)) == alone
    kept = sorted(path.name for path in (tmp_path / "snapshots").glob("snapshot-*"))
    assert [name.partition(".")[2] for name in kept] == ["json", "state"]
    # One that is damaged is not used.
    with (tmp_path / "snapshots" / kept[1]).open("r+b") as state:
        state.seek(50_000_000)
        state.write(b"redtail")
    with pytest.warns(RedtailWarning, match="is damaged"):
        assert everything_of(maker.run(first)) == alone


# Of both backends one kind with each push.
PUSHED = {("red", "linux"), ("fq-codel", "linux-tcp")}


@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        pytest.param(*each, marks=[] if each in PUSHED else [pytest.mark.weekly])
        for each in itertools.product(AGREEMENT, ["linux", "linux-tcp"])
    ],
)
@on_this_host
def test_a_kernel_agrees_with_the_simulator(kind: str, backend: str, tmp_path: Path) -> None:
    text, tolerances = agreeing(kind, backend), AGREEMENT[kind][2]
    measured = redtail.run(redtail.Toml(text), out=tmp_path, backend=backend, replications=2)
    simulated = redtail.run(redtail.Toml(text), out=tmp_path, replications=6)
    far = {}
    for metric, tolerance in tolerances.items():
        here, there = mean(measured, metric), mean(simulated, metric)
        if abs(here - there) > tolerance * there:
            far[metric] = (here, there, tolerance)
    assert not far
    assert mean(measured, "idle_share") > 0.8
    assert measured.made_by is not None
    assert f"Linux {kernels.find().release}" in measured.made_by and "QEMU" in measured.made_by


@on_this_host
def test_every_kind_of_traffic_works(tmp_path: Path) -> None:
    rows = ["start_s,size_bytes,direction,rtt_s,request_bytes,service_s"]
    rows += [f"{1.1 + 0.1 * i:.1f},{1000 * (i + 1)},down,0.04,300,0.001" for i in range(20)]
    (tmp_path / "flows.csv").write_text("\n".join(rows) + "\n")
    # A flow whose window is too small to fill the link leaves it to the others.
    small = BULK.replace("flows = 4", "flows = 1").replace(
        '"linux"', '{ preset = "linux", receive_window = "15 kB" }'
    )
    text = link('{ kind = "tail-drop", limit = "500 packets" }', "6 s") + small + EVERY_KIND
    (tmp_path / "all.toml").write_text(text.replace("10 Mbit/s", "20 Mbit/s"))
    measured = redtail.run(tmp_path / "all.toml", out=tmp_path / "linux", backend="linux")
    simulated = redtail.run(tmp_path / "all.toml", out=tmp_path / "sim")
    for metric in ("web.responses", "crr.responses", "usual.responses", "flows.responses"):
        assert mean(measured, metric) > 0
    assert mean(measured, "flows.responses") == mean(simulated, "flows.responses") == 20
    for group in ("udp", "call", "game"):  # they send by a schedule
        metric = f"{group}.utilization"
        assert mean(measured, metric) == pytest.approx(mean(simulated, metric), rel=0.02)
    for metric in ("talk.bitrate", "talk.back_bitrate", "talk.frame_delay_mean"):
        assert mean(measured, metric) == pytest.approx(mean(simulated, metric), rel=0.1), metric
    for name in real.ABSENT:
        assert not any(metric.endswith("." + name) for metric in measured.cases[0].metrics)


QUEUES = [
    '{ kind = "tail-drop", limit = "45 kB" }',
    '{ kind = "head-drop", limit = "30 packets" }',
    '{ kind = "red", min_th = "30 kB", max_th = "90 kB", max_p = 0.1, limit = "150 kB" }',
    '{ kind = "codel" }',
    '{ kind = "pie", limit = "100 packets" }',
    '{ kind = "fq-pie" }',
    '{ kind = "sfq" }',
    '{ kind = "sfb" }',
    '{ kind = "choke", min_th = "20 packets", max_th = "60 packets", limit = "100 packets" }',
    '{ kind = "cake" }',
]


# With each push one that is counted in bytes, one with a control law, and one that shapes.
PUSHED_QUEUES = ("tail-drop", "pie", "cake")


@pytest.mark.parametrize(
    "queue",
    some_weekly(QUEUES, lambda queue: not any(f'"{kind}"' in queue for kind in PUSHED_QUEUES)),
)
@on_this_host
def test_queues_of_the_kernel_stand_at_the_link(queue: str, tmp_path: Path) -> None:
    text = link(queue, "3 s") + BULK
    # The kernel reports back what was asked for, and its drops are those that were noticed, or the
    # run is an error or not valid.
    results = redtail.run(redtail.Toml(text), out=tmp_path, backend="linux")
    assert mean(results, "utilization") > 0.5
    assert mean(results, "goodput") > 5e6


# The upper threshold is above what 32 slow starts lift the average to: below HTB it never falls.
ADAPTIVE = (
    '{ kind = "adaptive-red", limit = "600 kB", min_th = "45 kB", max_th = "250 kB", '
    'max_p = 0.02, w_q = 0.001953125, bottom = 0.01, gentle = false, spacing = "linux", '
    'idle_decay = false, mean_packet = "1500 B", above_max_th = "mark" }'
)


SHAPERS = {
    "cake": ('{ kind = "cake", rate = "9.5 Mbit/s" }', 0.95),
    "tbf": (
        '{ kind = "tbf", rate = "9 Mbit/s", burst = "5 kB", '
        'queue = { kind = "tail-drop", limit = "100 packets" } }',
        0.90,
    ),
    "htb": (
        '{ kind = "htb", class = [{ name = "root", rate = "9 Mbit/s", class = [{ name = "all", '
        'rate = "1 Mbit/s", ceil = "9 Mbit/s", queue = { kind = "fq-codel" } }] }] }',
        0.90,
    ),
}


@pytest.mark.parametrize("kind", some_weekly(SHAPERS, lambda kind: kind != "cake"))
@on_this_host
def test_a_queue_may_be_slower_than_its_link(kind: str, tmp_path: Path) -> None:
    queue, share = SHAPERS[kind]
    text = redtail.Toml(link(queue, "3 s", "1 s") + BULK)
    measured = redtail.run(text, out=tmp_path, backend="linux", replications=1)
    assert mean(measured, "utilization") == pytest.approx(share, rel=0.003)
    simulated = redtail.run(text, out=tmp_path, replications=4)
    here, there = mean(measured, "queue_delay_mean"), mean(simulated, "queue_delay_mean")
    assert here == pytest.approx(there, rel=0.15)


@pytest.mark.weekly
@on_this_host
def test_the_kernels_counters_are_what_its_flows_count(tmp_path: Path) -> None:
    results = redtail.run(redtail.Toml(CROWDED), out=tmp_path, backend="linux", replications=1)
    agree(counted(results))


@on_this_host
def test_many_handshakes_at_one_time_are_in_time(tmp_path: Path) -> None:
    # With these flows the process has more than 64 open files.
    flows = """
[[traffic]]
name = "ftp"
kind = "transfer"
flows = 60
size = "10 kB"
start = "0.5 s"
return_delay = "10 ms"
tcp = "linux"
"""
    text = link('{ kind = "tail-drop", limit = "200 packets" }', "1500 ms", "0 s") + flows
    text = text.replace("10 Mbit/s", "100 Mbit/s")
    results = redtail.run(redtail.Toml(text), out=tmp_path, backend="linux-tcp", replications=1)
    assert mean(results, "wakeup_error_max") < 0.004


@pytest.mark.weekly
@on_this_host
def test_adaptive_red_adapts_in_the_kernel_unless_it_is_left_as_tc_makes_it(tmp_path: Path) -> None:
    text = link(ADAPTIVE, "6 s", "2 s") + BULK.replace("flows = 4", "flows = 32")
    changed = {"bottleneck.queue.adapt": False}
    left = redtail.run(redtail.Toml(text), out=tmp_path, backend="linux", set=changed)
    assert mean(left, "queue.max_p") == pytest.approx(0.02, rel=1e-6)
    started = redtail.run(redtail.Toml(text), out=tmp_path, backend="linux")
    # 32 flows need more than 0.02. Twelve steps up, each 0.01 or less, lead to 0.129 at most.
    assert 0.05 < mean(started, "queue.max_p") < 0.13
    assert mean(started, "queue_delay_mean") < mean(left, "queue_delay_mean")


@on_this_host
def test_ect1_is_written_into_the_packets_of_a_group_that_asks_for_it(tmp_path: Path) -> None:
    text = link('{ kind = "dualpi2" }', "3 s", "1 s") + BULK
    text = text.replace('"linux"', '{ preset = "dctcp", ecn_codepoint = "ect1" }')
    low = redtail.run(redtail.Toml(text), out=tmp_path, backend="linux-tcp").cases[0].metrics
    assert low["queue.l_mark"].mean > 0.01, "marks come back, and are answered"
    assert "queue.c_mark" not in low, "nothing has left the classic queue"
    plain = text.replace('"ect1"', '"ect0"')
    other = redtail.run(redtail.Toml(plain), out=tmp_path, backend="linux-tcp").cases[0].metrics
    assert other["queue.c_mark"].mean > 0.01


WITH_DUALPI2 = [] if LACKING else [k.name for k in kernels.known() if "dualpi2" in k.queues()]


@pytest.mark.skipif(
    not WITH_DUALPI2,
    reason="no kernel that is kept has dualpi2 (CONFIG_NET_SCH_DUALPI2, since 6.17)",
)
def test_the_kernels_dualpi2_has_a_queue_for_each_kind_of_sender(tmp_path: Path) -> None:
    # One packet lasts 0.6 ms, so that the step at 1 ms does not mark each one behind another.
    text = link('{ kind = "dualpi2", flavour = "linux" }', "8 s", "3 s") + BULK
    text = text.replace("10 Mbit/s", "20 Mbit/s")
    scalable = text.replace('"linux"\n', '{ preset = "dctcp", ecn_codepoint = "ect1" }\n')
    short, classic = (
        redtail.run(redtail.Toml(file), out=tmp_path, backend=f"linux:{WITH_DUALPI2[0]}")
        for file in (scalable, text)
    )
    assert mean(short, "mark") > 0.05 and mean(short, "loss") == 0
    assert mean(short, "queue_delay_p95") < 0.005, "the step at 1 ms holds the delay"
    assert mean(classic, "loss") > 0 and mean(classic, "mark") == 0
    assert 0.012 < mean(classic, "queue_delay_mean") < 0.020, "the controller's target is 15 ms"


# Failure.


@on_this_host
def test_a_killed_machine_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    maker = backends.find("linux")
    running = real.Stop()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            maker.run(scenario(SHORT.replace('"3 s"', '"60 s"')), running)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not running._running and thread.is_alive():
        time.sleep(0.05)
    other = maker.run(scenario(SHORT))
    for process in list(running._running):
        process.kill()
    thread.join()
    assert isinstance(failed[0], RunError)
    assert "the virtual machine ended without a result" in str(failed[0])
    assert "it was killed; a machine needs up to 768 MiB" in str(failed[0])
    assert other.metrics["utilization"] > 0.9


@on_this_host
def test_a_guest_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SILENCE_S", 1.0)
    stop = real.Stop()

    def halt() -> None:
        while not stop._running:
            time.sleep(0.05)
        (process,) = stop._running
        # Once it has given a sign of life.
        while machine._cpu_s(process.pid) < 1:
            time.sleep(0.05)
        process.send_signal(signal.SIGSTOP)

    threading.Thread(target=halt, daemon=True).start()
    with pytest.raises(RunError, match="the virtual machine hangs: no sign of life for"):
        backends.find("linux").run(scenario(SHORT.replace('"3 s"', '"60 s"')), stop)
    assert not stop._running


@on_this_host
def test_a_guest_that_hangs_while_it_starts_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "SILENCE_CPU_S", 0.5)  # the start takes more
    monkeypatch.setattr(snapshots, "folder", lambda: tmp_path / "snapshots")
    with pytest.raises(RunError, match="the virtual machine hangs: no sign of life for"):
        backends.find("linux").run(scenario(SHORT))
    assert [path.name for path in (tmp_path / "snapshots").iterdir()] == [".lock"]


@on_this_host
def test_too_little_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = tmp_path / machine.PROGRAM
    limited.write_text(f'#!/bin/sh\nulimit -v 600000\nexec {shutil.which(machine.PROGRAM)} "$@"\n')
    limited.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    says = r"Cannot allocate memory; a machine needs up to 768 MiB .*--jobs 1"
    with pytest.raises(RunError, match=says):
        backends.find("linux").run(scenario(SHORT))


@on_this_host
def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backends.find("linux").run(scenario(SHORT))  # so that there is a snapshot
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    written = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.is_relative_to(tmp_path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    says = rf"cannot be written in {tmp_path}: No space left on device; TMPDIR=DIR chooses"
    with pytest.raises(RunError, match=says):
        backends.find("linux").run(scenario(SHORT))
    assert not list(tmp_path.iterdir()), "nothing is left behind"


@on_this_host
def test_ctrl_c_ends_the_machines_and_keeps_what_is_finished(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(SHORT.replace("replications = 1", "replications = 40"))
    command = [sys.executable, "-m", "redtail", "run", str(file), "--backend", "linux"]
    command += ["--jobs", "1", "--out", str(tmp_path / "out"), "--no-figures"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible)
    while process.poll() is None and not list(
        (tmp_path / "out").glob("live@linux/*/manifest.json")
    ):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    kept = re.search(r"interrupted: (\d+) of 40 runs are finished and kept", errors)
    assert kept is not None and int(kept[1]) >= 1


def interruptible() -> None:
    """A shell starts background jobs with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@on_this_host
def test_a_machine_whose_command_is_gone_before_it_starts_ends() -> None:
    # The kernel tells a process of the end of another one only if it was asked before.
    environment = {**os.environ, "LD_PRELOAD": str(virtual.TURNS), "REDTAIL_STARTED_BY": "1"}
    command = [machine.PROGRAM, "-display", "none", "-S"]
    assert subprocess.run(command, env=environment, timeout=600).returncode == 1


@on_this_host
def test_a_killed_command_leaves_no_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    file = tmp_path / "long.toml"
    file.write_text(SHORT.replace('"3 s"', '"600 s"'))
    command = [sys.executable, "-m", "redtail", "run", str(file), "--backend", "linux"]
    process = subprocess.Popen([*command, "--out", str(tmp_path / "out")], stderr=subprocess.PIPE)
    # Not the machine that boots for a snapshot: its files are beside the kernels.
    while not (list(temporary.iterdir()) and (children := machines_of(process.pid))):
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.1)
    process.kill()
    process.communicate()
    for child in children:
        while alive(child):
            time.sleep(0.1)
    # Its files go when the next machine starts.
    assert list(temporary.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    backends.find("linux").run(scenario(SHORT))
    assert not list(temporary.iterdir())


def machines_of(pid: int) -> list[int]:
    """The processes of QEMU that a process has started."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            if name.startswith("qemu") and int(rest.split()[1]) == pid:
                found.append(int(folder.name))
    return found


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@on_this_host
def test_an_image_that_does_not_start_is_told_with_its_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine.Guest.of(kernels.find(), host.qemu())
    broken = machine.Guest(whole.kernel, b"no archive", whole.qemu)  # the kernel finds no agent
    monkeypatch.setattr(snapshots, "folder", lambda: tmp_path / "snapshots")
    with pytest.raises(RunError, match=r"(?s)does not start .*Kernel panic"):
        machine.run(broken, b"", 1.0, real.Stop())
    assert [path.name for path in (tmp_path / "snapshots").iterdir()] == [".lock"]


@on_this_host
def test_a_guest_that_is_too_busy_is_not_valid(tmp_path: Path) -> None:
    # The guest executes 1e9 instructions in a second, which is too few for so many packets.
    fast = SHORT.replace("10 Mbit/s", "900 Mbit/s").replace('"3 s"', '"1500 ms"')
    with pytest.raises(InvalidRun, match=r"too busy|did not keep up|paused|lost between"):
        backends.find("linux-tcp").run(scenario(fast))


# Bad input.


def test_without_qemu_the_message_has_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "qemu", lambda: "")
    monkeypatch.setattr(linux.platform, "machine", lambda: "x86_64")
    with pytest.raises(SpecError, match=r"qemu-system-x86_64 is not installed.*qemu-system-x86 "):
        linux.require_host()


def test_another_processor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux.platform, "machine", lambda: "aarch64")
    with pytest.raises(SpecError, match="needs Linux on x86-64, and this is linux on aarch64"):
        linux.require_host()


def test_a_part_that_was_not_built_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "AGENT", tmp_path / "agent")
    monkeypatch.setattr(host, "qemu", lambda: "7.2.0")
    with pytest.raises(SpecError, match=r"agent is not there; `make dev` builds it"):
        linux.require_host()


def test_without_a_kernel_the_message_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDTAIL_KERNELS", str(tmp_path / "none"))
    monkeypatch.setattr(linux, "require_host", lambda: None)
    with pytest.raises(SpecError, match="redtail kernel fetch"):
        redtail.run(redtail.Toml(SHORT), out=tmp_path, backend="linux")


@on_this_host
def test_a_kernel_that_is_not_kept_is_named_with_those_that_are(tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    file.write_text(SHORT)
    done = CliRunner().invoke(app, ["run", str(file), "--kernel", "9.9", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert 'kernel = "9.9": there is no kernel of this name' in done.stderr
    assert kernels.find().name in done.stderr


def test_other_backends_have_no_kernel_to_choose(tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    file.write_text(SHORT)
    arguments = ["run", str(file), "--kernel", "6.1", "--backend", "live"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert "backend live has no kernel to choose; accepted: backend linux" in done.stderr


@pytest.mark.parametrize(
    ("queue", "says"),
    [
        (
            '{ kind = "dualpi2", flavour = "linux" }',
            r"bottleneck\.queue\.kind: is dualpi2 of the kernel, which this",
        ),
        ('{ kind = "pi2", limit = "100 packets" }', r"bottleneck\.queue\.kind: "),
    ],
)
@on_this_host
def test_a_queue_that_the_kernel_lacks_is_refused(queue: str, says: str, tmp_path: Path) -> None:
    if "dualpi2" in queue and "dualpi2" in kernels.find().queues():
        pytest.skip("this kernel has it")
    with pytest.raises(SpecError, match=says):
        redtail.run(redtail.Toml(link(queue) + BULK), out=tmp_path, backend="linux")
    assert not list(tmp_path.iterdir()), "nothing is written"
