"""Runs in real time, with the TCP of this host's kernel (`--backend live`).

The tests need user namespaces, `/dev/net/tun` and `ip`; without them they are skipped with the
reason. Real time needs a machine that keeps up: a run that finds itself invalid is made again, and
after several such runs the test is skipped, because it can say nothing then.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import json
import math
import os
import platform
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import redtail
from redtail import backends, experiment, facts
from redtail.analysis.results import Results
from redtail.backends import agent, host, live
from redtail.backends.real import ABSENT
from redtail.cli import app
from redtail.engine import realtime
from redtail.errors import RedtailError, SpecError
from redtail.running import shell as programs

from conftest import some_weekly

LACKING = live.missing()

pytestmark = [
    pytest.mark.live,
    # Short runs with few flows and small buffers are what is wanted here.
    pytest.mark.filterwarnings("ignore::redtail.RedtailWarning"),
]
on_this_host = pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))

TRIES = 4
"""Runs of an experiment before a test gives up on a machine that does not keep up."""


def measured(text: str, out: Path, backend: str = "live", **options: object) -> Results:
    """Return the results of an experiment with a backend in real time, once its runs are valid."""
    for _ in range(TRIES):
        results = redtail.run(
            redtail.Toml(text), out=out, backend=backend, keep_going=True, **options
        )
        if not results.failed:
            return results
        if "not valid" not in results.failure_summary():
            pytest.fail(results.failure_summary())
    pytest.skip(f"this machine does not keep up with real time: {results.failure_summary()}")


def link(queue: str, duration: str = "5 s", warmup: str = "1 s") -> str:
    return f"""
name = "live"
duration = "{duration}"
warmup = "{warmup}"
replications = 1
seed = 11

[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {queue}
"""


BULK = """
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
return_delay = "10 ms"
tcp = "linux"
"""

TAIL_DROP = '{ kind = "tail-drop", limit = "50 packets" }'


def mean(results: Results, metric: str) -> float:
    values = [case.metrics[metric].mean for case in results.cases]
    assert len(values) == 1 and values[0] is not None
    return values[0]


# What is refused, before anything starts.


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"bottleneck.rate": "100 Gbit/s"}, r"bottleneck\.rate: is 100 Gbit/s; accepted: up to"),
        ({"traffic.ftp.tcp": "tahoe"}, r'traffic\.ftp\.tcp\.preset: "tahoe": no Linux kernel'),
        (
            {"traffic.ftp.tcp": {"preset": "linux", "mss": "20 kB"}},
            r"traffic\.ftp\.tcp\.mss: is 20 kB; accepted: 88 B to",
        ),
        (
            {"traffic.ftp.tcp": {"preset": "linux", "initial_rto": "3 s"}},
            r"traffic\.ftp\.tcp\.initial_rto: is .* cannot be set in a kernel; accepted: the",
        ),
        (
            {"traffic.ftp.tcp.growth.beta": 0.5},
            r'tcp\.growth: is "linux-cubic" with other constants, which cannot be set',
        ),
        (
            {"events.kinds": ["alpha", "undo"]},
            r"events\.kinds: has only events of which a kernel does not tell; accepted: timeout, ",
        ),
        (
            {"traffic.ftp.packet": "uniform 1400..1600 B"},
            r"traffic\.ftp\.packet: is a law, and only the simulator draws .* accepted: a constant",
        ),
        (
            {"traffic.ftp.trains": True},
            r"traffic\.ftp\.trains: is true, and senders here .* accepted: false, or backend sim",
        ),
    ],
)
@on_this_host
def test_what_a_kernel_cannot_do_is_refused_with_its_key(
    change: dict[str, object], says: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match=says) as caught:
        redtail.run(redtail.Toml(link(TAIL_DROP) + BULK), out=tmp_path, backend="live", set=change)
    assert "backend live cannot run this experiment" in str(caught.value)
    assert not list(tmp_path.iterdir()), "nothing is written"


@on_this_host
def test_hosts_that_groups_share_are_refused_by_name(tmp_path: Path) -> None:
    text = link(TAIL_DROP) + BULK + BULK.replace('"ftp"', '"more"\nhosts = "ftp"')
    says = r'traffic\.more\.hosts: is "ftp", and each group has addresses of its own here; accepted'
    text = text.replace('return_delay = "10 ms"\n', "")
    with pytest.raises(SpecError, match=says):
        redtail.run(redtail.Toml(text), out=tmp_path, backend="live")


@on_this_host
def test_video_calls_that_need_marks_are_refused(tmp_path: Path) -> None:
    call = '[[traffic]]\nname = "talk"\nkind = "call"\ncontroller = "scream"\necn = true\n'
    with pytest.raises(
        SpecError, match=r"traffic\.talk\.ecn: is true, and sockets of calls do not"
    ):
        redtail.run(redtail.Toml(link(TAIL_DROP) + call), out=tmp_path, backend="live")
    assert not list(tmp_path.iterdir()), "nothing is written"


def test_a_host_without_ip_is_told_which_package_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "iproute2", str)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(SpecError, match=r"`ip` is not installed; .* package iproute2 \(Debian"):
        live.require_host()


@pytest.mark.parametrize(("release", "told"), [("5.10.0-8-amd64", True), ("5.11.0", False)])
def test_a_kernel_that_waits_for_whole_milliseconds_is_refused(
    release: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "release", lambda: release)
    assert (f"it needs Linux 5.11 or later, and this is {release}" in live.missing()) == told


@pytest.mark.parametrize("setting", list(agent.SETTINGS))
def test_a_setting_that_forbids_namespaces_is_named(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, (allowing, _) in agent.SETTINGS.items():
        path = tmp_path / key
        path.parent.mkdir(exist_ok=True)
        forbidding = "1" if allowing == "0" else "0"
        path.write_text((forbidding if key == setting else allowing) + "\n")
    monkeypatch.setattr(agent, "PROC_SYS", tmp_path)
    said = agent.forbidden(PermissionError(1, "no"))
    name = setting.replace("/", ".")
    wanted = agent.SETTINGS[setting][0]
    assert f"setting {name} = " in said and f"sysctl -w {name}={wanted}" in said


def test_a_container_that_forbids_namespaces_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "PROC_SYS", tmp_path)
    assert "seccomp=unconfined" in agent.forbidden(PermissionError(1, "no"))


# Agreement with the simulator. The tolerances were written before the first run of these tests:
# the share of the simulator's value by which the mean of two runs may differ.

AGREEMENT = {
    "tail-drop": (
        TAIL_DROP,
        "linux",
        {"utilization": 0.02, "ftp.goodput": 0.03, "queue_delay_mean": 0.15, "loss": 0.4},
    ),
    "red": (
        '{ kind = "red", min_th = "10 packets", max_th = "30 packets", max_p = 0.1, '
        'limit = "100 packets", ecn = true }',
        '{ preset = "linux", ecn = true }',
        {"utilization": 0.03, "ftp.goodput": 0.04, "queue_delay_mean": 0.2, "mark": 0.4},
    ),
    "fq-codel": (
        '{ kind = "fq-codel" }',
        "linux",
        {"utilization": 0.03, "ftp.goodput": 0.04, "queue_delay_mean": 0.25, "loss": 0.5},
    ),
}


KERNEL_RED = (
    '{ kind = "red", min_th = "30 kB", max_th = "90 kB", max_p = 0.1, limit = "150 kB", '
    "ecn = true }"
)
"""The kernel's RED counts bytes. Under a shaper its average stays where it is while the queue is
empty (docs/limitations.md), so thresholds that slow start exceeds by far would end all traffic."""


@functools.cache
def kernel_queues() -> frozenset[str]:
    """The kinds of queues that this kernel has, as `tc` calls them."""
    queues: dict[str, str] = {} if LACKING else live.survey()["queues"]
    return frozenset(kind for kind, why in queues.items() if not why)


def require_kernel_queue(kind: str) -> None:
    if kind not in kernel_queues():
        pytest.skip(f"this kernel has no {kind}")


NEEDS = {"tail-drop": "pfifo", "red": "red", "fq-codel": "fq_codel"}
"""What the kernel needs for each of these."""


def agreeing(kind: str, backend: str) -> str:
    """The experiment of which real time and the simulator must measure the same."""
    queue, tcp, _ = AGREEMENT[kind]
    if backend in ("live-tc", "linux") and kind == "red":
        queue = KERNEL_RED
    tcp = tcp if tcp.startswith("{") else f'"{tcp}"'
    return link(queue, "10 s", "2 s") + BULK.replace('"linux"', tcp)


def standing(queue: str) -> str:
    """An experiment in which a queue of the kernel and the one on the way back are always full."""
    way_back = (
        "\n[bottleneck.return]\n"
        'rate = "200 kbit/s"\n'
        'delay = "10 ms"\n'
        'queue = { kind = "tail-drop", limit = "20 packets" }\n'
    )
    return link(queue, "6 s") + way_back + BULK.replace('return_delay = "10 ms"', "")


@pytest.fixture(scope="module")
def ahead(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the stores of the longer tests have been filled, two at the same time.

    Two runs take little of two processors. One that was disturbed finds itself invalid, is not in
    its store, and is made again by its test, alone.
    """
    folder = tmp_path_factory.mktemp("ahead")
    wanted = []
    for item in request.session.items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        match getattr(item, "originalname", ""), given:
            case "test_real_tcp_agrees_with_the_simulator", {"kind": kind, "backend": backend}:
                if backend == "live" or NEEDS[kind] in kernel_queues():
                    wanted.append((agreeing(kind, backend), f"{kind}-{backend}", backend, 2))
            case "test_queues_of_the_kernel_stand_at_all_links", {"needs": needs, "queue": queue}:
                if needs in kernel_queues():
                    wanted.append((standing(queue), needs, "live-tc", 1))

    def fill(text: str, name: str, backend: str, replications: int) -> None:
        with contextlib.suppress(RedtailError):  # the test will say so
            redtail.run(
                redtail.Toml(text),
                out=folder / name,
                backend=backend,
                replications=replications,
                keep_going=True,
            )

    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        list(pool.map(lambda each: fill(*each), wanted))
    return folder


# With each push the queue that every kernel has; the others run in virtual machines as well.
@pytest.mark.parametrize("backend", ["live", "live-tc"])
@pytest.mark.parametrize("kind", some_weekly(AGREEMENT, lambda kind: kind != "tail-drop"))
@on_this_host
def test_real_tcp_agrees_with_the_simulator(
    kind: str, backend: str, ahead: Path, tmp_path: Path
) -> None:
    if backend == "live-tc":
        require_kernel_queue(NEEDS[kind])
    text, tolerances = agreeing(kind, backend), AGREEMENT[kind][2]
    real = measured(text, ahead / f"{kind}-{backend}", backend, replications=2)
    simulated = redtail.run(redtail.Toml(text), out=tmp_path, replications=6)
    far = {}
    for metric, tolerance in tolerances.items():
        here, there = mean(real, metric), mean(simulated, metric)
        if abs(here - there) > tolerance * there:
            far[metric] = (here, there, tolerance)
    assert not far


@pytest.mark.parametrize(
    ("backend", "queue", "metric"),
    [
        ("live", TAIL_DROP, "ftp.stalls"),
        ("live-tc", '{ kind = "dualpi2" }', "queue.l_delay_mean"),
    ],
)
def test_a_stop_rule_about_what_is_not_measured_is_refused(
    backend: str, queue: str, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "require_host", lambda: None)
    monkeypatch.setattr(live, "survey", lambda: {"queues": {}, "filters": {}})
    says = rf"replications\.until: .*backend {backend} does not measure {metric}"
    with pytest.raises(SpecError, match=says):
        redtail.run(
            redtail.Toml(link(queue) + BULK),
            out=tmp_path,
            backend=backend,
            until=f"{metric} within 5 %",
        )


# The kernel's own queues.


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"bottleneck.queue": {"kind": "red-tail", "limit": "50 packets"}},
            r'bottleneck\.queue\.kind: = "red-tail": .* or backend live or linux-tcp',
        ),
        (
            {"bottleneck.queue": {"kind": "adaptive-red", "limit": "75 kB"}},
            r"bottleneck\.queue\.min_th: is left out; accepted: bytes",
        ),
        (
            {"bottleneck.rate_changes": [{"at": "2 s", "rate": "5 Mbit/s"}]},
            r"bottleneck\.rate_changes: changes the rate, which the kernel's shaper does not",
        ),
    ],
)
@on_this_host
def test_what_the_kernels_queues_cannot_be_is_refused(
    change: dict[str, object], says: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match=says):
        redtail.run(
            redtail.Toml(link(TAIL_DROP) + BULK), out=tmp_path, backend="live-tc", set=change
        )
    assert not list(tmp_path.iterdir()), "nothing is written"


@on_this_host
def test_a_queue_that_this_kernel_lacks_is_refused_with_those_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"namespaces": "", "queues": {"pfifo": "", "fq_codel": "no module"}, "filters": {}}
    monkeypatch.setattr(live, "survey", lambda: found)
    says = (
        r"bottleneck\.queue\.kind: is fq_codel of the kernel, .* accepted: pfifo, or backend live "
    )
    with pytest.raises(SpecError, match=says):
        redtail.run(
            redtail.Toml(link('{ kind = "fq-codel" }') + BULK), out=tmp_path, backend="live-tc"
        )


@pytest.mark.parametrize(
    ("needs", "queue"),
    [
        ("bfifo", '{ kind = "tail-drop", limit = "45 kB" }'),
        # It drops packets that wait, which are found by those that come out.
        ("pfifo_head_drop", '{ kind = "head-drop", limit = "30 packets" }'),
    ],
)
@on_this_host
def test_queues_of_the_kernel_stand_at_all_links(needs: str, queue: str, ahead: Path) -> None:
    require_kernel_queue(needs)
    results = measured(standing(queue), ahead / needs, "live-tc")
    # Valid runs have compared the drops that were noticed with the kernel's counters.
    assert mean(results, "loss") > 0 and mean(results, "return.loss") > 0
    # 30 full packets, or 20 acknowledgements, wait at most, and one is being sent. Half of the
    # packets may be read late on a busy machine before a median shows it.
    assert 0.01 < mean(results, "queue_delay_p50") < 31 * 0.0012 + 0.004
    assert 0.01 < mean(results, "return.queue_delay_p50") < 21 * 0.0021 * 1.5 + 0.004
    assert mean(results, "return.utilization") == pytest.approx(1, abs=0.02)
    assert results.backend == "live-tc"


# What a run measures.

EVERY_KIND = """
[[traffic]]
name = "file"
kind = "transfer"
flows = 3
size = ["30 kB", "5 kB"]
start = ["1500 ms", "2 s", "2500 ms"]
tcp = "linux"

[[traffic]]
name = "udp"
kind = "cbr"
flows = 2
rate = "200 kbit/s"
packet = "1000 B"

[[traffic]]
name = "call"
kind = "voip"
flows = 2

[[traffic]]
name = "talk"
kind = "call"
flows = 3
hosts = 2
start_rate = "400 kbit/s"
max_rate = "800 kbit/s"

[[traffic]]
name = "bursts"
kind = "on-off"
flows = 2
rate = "200 kbit/s"
packet = "1000 B"
on = "pareto mean 500 ms shape 1.4"
off = "pareto mean 500 ms shape 1.4"

[[traffic]]
name = "game"
kind = "game"
flows = 2

[[traffic]]
name = "crr"
kind = "transactions"
users = 3
response = "5 kB"
tcp = "linux"

[[traffic]]
name = "web"
kind = "web"
model = "feldmann"
users = 20
start = "uniform 0..3 s"
stop = "4 s"
tcp = "linux"

[[traffic]]
name = "tv"
kind = "video"
users = 1
bitrates = ["500 kbit/s"]
segment = "1 s"
buffer = "5 s"
algorithm = "throughput"
tcp = "linux"

[[traffic]]
name = "usual"
kind = "arrivals"
gap = "exponential mean 100 ms"
size = "10 kB"
stop = "4 s"
tcp = "linux"

[[traffic]]
name = "flows"
kind = "trace"
file = "flows.csv"
tcp = "linux"
"""

WITH_LOSSES_ALONE = {"consecutive_loss_mean", "loss_interval_mean", "loss_interval_std"}
"""Metrics that are undefined if no packet is lost, as is often so on the wide link of this test."""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Results]:
    """The same experiment with every kind of traffic on a wide link, live and simulated."""
    if LACKING:
        pytest.skip("; ".join(LACKING))
    folder = tmp_path_factory.mktemp("everything")
    rows = ["start_s,size_bytes,direction,rtt_s,request_bytes,service_s"]
    rows += [f"{1.1 + 0.1 * i:.1f},{1000 * (i + 1)},down,0.04,300,0.001" for i in range(20)]
    (folder / "flows.csv").write_text("\n".join(rows) + "\n")
    # A bulk flow whose window is too small to fill the link leaves the queue to the others.
    small = '{ preset = "linux", receive_window = "30 kB" }'
    bulk = BULK.replace("flows = 4", "flows = 1").replace('"linux"', small)
    text = link('{ kind = "tail-drop", limit = "500 packets" }', "8 s") + bulk
    text += EVERY_KIND + '\n[series]\ninterval = "100 ms"\nwindows = true\n'
    # Real hosts have times of their own, which the simulator's would be a model of.
    text = 'host_jitter = "0 s"\n' + text
    text = text.replace("10 Mbit/s", "50 Mbit/s").replace(
        "seed = 11", 'seed = 11\nphases = ["3 s"]'
    )
    (folder / "all.toml").write_text(text)
    file = folder / "all.toml"
    for _ in range(TRIES):
        real = redtail.run(file, out=folder / "live", backend="live", keep_going=True)
        if not real.failed:
            return real, redtail.run(file, out=folder / "sim")
    pytest.skip(f"this machine does not keep up with real time: {real.failure_summary()}")


def test_every_metric_is_measured_or_documented_as_absent(
    everything: tuple[Results, Results],
) -> None:
    real, simulated = (set(results.cases[0].metrics) for results in everything)
    absent = ABSENT | WITH_LOSSES_ALONE
    assert not {name for name in simulated - real if name.rpartition(".")[2] not in absent}
    page = (Path(__file__).parents[2] / "docs/explanation/metrics.md").read_text()
    reasons = page.partition("## In real time")[2]
    for name in ABSENT:
        assert f"`{name}`" in reasons
        assert not any(metric.endswith("." + name) for metric in real), "a made-up number"


def test_hosts_draw_what_the_simulator_draws(everything: tuple[Results, Results]) -> None:
    real, simulated = everything
    here, there = (
        results.transfers().select(["group", "flow", "size_bytes", "start_s"]).to_pylist()
        for results in everything
    )
    assert here == there and len(here) == 3
    for metric in ("usual.unanswered", "flows.unanswered", "web.unanswered"):
        assert mean(real, metric) == mean(simulated, metric) == 0, metric
    for metric in ("flows.responses", "usual.responses"):
        assert mean(real, metric) == mean(simulated, metric) > 0, metric
    assert mean(real, "web.pages") > 0
    # An uncongested link: what comes by a schedule arrives to the same amount.
    for metric in ("udp.utilization", "call.utilization", "game.utilization", "bursts.utilization"):
        assert mean(real, metric) == pytest.approx(mean(simulated, metric), rel=0.02), metric


def test_calls_have_media_and_reports_both_ways(everything: tuple[Results, Results]) -> None:
    real, simulated = everything
    for metric in ("talk.bitrate", "talk.back_bitrate", "talk.frame_rate", "talk.back_frame_rate"):
        assert mean(real, metric) == pytest.approx(mean(simulated, metric), rel=0.1), metric
    # The rate that a call reaches says that reports arrive: without them it stays where it begins.
    assert mean(real, "talk.bitrate") > 450e3
    for metric in ("talk.end_to_end_loss", "talk.back_loss"):
        assert mean(real, metric) == mean(simulated, metric) == 0, metric


def test_times_on_an_idle_link_are_the_simulators(everything: tuple[Results, Results]) -> None:
    real, simulated = everything
    # One way: 10 ms of delay, and of programs and kernel at most a few.
    for group in ("udp", "call", "game", "bursts", "talk"):
        here, there = (mean(each, f"{group}.one_way_delay_p50") for each in everything)
        assert there <= here + 1e-4 and here < there + 0.01, group
    assert mean(real, "file.completed") == mean(simulated, "file.completed") == 1


def test_series_are_recorded(everything: tuple[Results, Results]) -> None:
    real, simulated = (results.series("flows") for results in everything)
    assert real.schema == simulated.schema
    windows = real["cwnd_bytes"].to_pylist()
    assert max(windows) > 14_480, "the window has grown beyond its initial 10 segments"
    assert min(rtt for rtt in real["srtt_s"].to_pylist() if rtt == rtt) > 0.02
    queues = everything[0].series("queues")
    assert len(queues) == len(everything[1].series("queues"))


def test_the_run_says_how_well_the_machine_kept_up(everything: tuple[Results, Results]) -> None:
    real, simulated = everything
    assert 0 <= mean(real, "wakeup_error_p50") <= mean(real, "wakeup_error_p99") <= 0.004
    assert mean(real, "wakeup_error_p99") <= mean(real, "wakeup_error_max")
    assert mean(real, "largest_packet") <= 1500
    achieved, sent = mean(real, "achieved_rate"), mean(real, "utilization") * 50e6
    assert achieved == pytest.approx(sent, rel=0.02)
    assert "wakeup_error_p50" not in simulated.cases[0].metrics


def test_results_say_what_made_them(everything: tuple[Results, Results]) -> None:
    real, simulated = everything
    assert (real.backend, simulated.backend) == ("live", "sim")
    for results in (real, redtail.load(real.folder)):
        assert f"Linux {os.uname().release}" in results.made_by
        assert host.iproute2() in results.made_by and host.iproute2()
        assert results.as_json()["made_by"] == results.made_by
    assert facts.code_version() in simulated.made_by
    assert facts.code_version() not in real.made_by


@on_this_host
def test_a_valid_run_is_not_made_again(tmp_path: Path) -> None:
    text = link(TAIL_DROP, "2 s") + BULK
    measured(text, tmp_path)
    again = redtail.run(redtail.Toml(text), out=tmp_path, backend="live")
    assert (again.run_count, again.reused) == (1, 1)
    simulated = redtail.run(redtail.Toml(text), out=tmp_path)
    assert simulated.reused == 0, "a run of one backend stands for none of another"


@on_this_host
def test_a_queue_of_the_user_serves_real_packets(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from collections import deque\n\n\n"
        "class Short:\n"
        '    """Holds ten packets."""\n\n'
        "    def __init__(self, context):\n"
        "        self.waiting = deque()\n\n"
        "    def enqueue(self, packet, now):\n"
        "        if len(self.waiting) >= 10:\n"
        "            return False\n"
        "        self.waiting.append(packet)\n"
        "        return True\n\n"
        "    def dequeue(self, now):\n"
        "        return self.waiting.popleft() if self.waiting else None\n"
    )
    text = link('{ kind = "plugin", class = "own.py:Short" }', "3 s") + BULK
    file = tmp_path / "own.toml"
    file.write_text(text)
    for _ in range(TRIES):
        results = redtail.run(file, out=tmp_path / "out", backend="live", keep_going=True)
        if not results.failed:
            break
    else:
        pytest.skip(results.failure_summary())
    assert mean(results, "loss") > 0.001
    assert mean(results, "queue_delay_p50") < 10 * 0.0012 + 0.001


@on_this_host
def test_a_run_that_was_too_late_is_told_and_not_averaged_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = link(TAIL_DROP, "2 s") + BULK
    outcome = "the machine did not keep up: 1 in 100 packets reached their receivers 5.0 ms late"
    real = live.Live.measured

    def late(self: live.Live, *of_run: Any) -> object:
        measured, _, code = real(self, *of_run)
        return measured, outcome, code

    monkeypatch.setattr(live.Live, "measured", late)
    results = redtail.run(redtail.Toml(text), out=tmp_path, backend="live", keep_going=True)
    assert results.failed and outcome in results.failure_summary()
    assert not results.cases[0].metrics


# Nothing is left behind.


def agents(mark: str = "") -> set[int]:
    """The processes of this host that make runs in real time, with a mark in their environment."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            marked = mark.encode() in path.with_name("environ").read_bytes()
        except OSError:
            continue
        if b"redtail.backends.agent" in words and marked:
            found.add(int(path.parent.name))
    return found


def interfaces() -> set[str]:
    return set(Path("/proc/net/dev").read_text().split()) & set(os.listdir("/sys/class/net"))


def gone(processes: set[int], within: float = 10) -> bool:
    """Wait until none of the processes is there."""
    for _ in range(int(within / 0.05)):
        if not processes & agents():
            return True
        time.sleep(0.05)
    return False


@on_this_host
def test_a_kill_at_any_moment_leaves_nothing_behind(tmp_path: Path) -> None:
    """20 times SIGKILL, at random moments, four runs at a time."""
    chance = random.Random(5)
    file = tmp_path / "live.toml"
    file.write_text(link(TAIL_DROP, "30 s") + BULK)
    # Other tests make runs at the same time.
    environment = os.environ | {"MARK_OF_TEST": str(tmp_path)}
    mark = f"MARK_OF_TEST={tmp_path}"
    devices = interfaces()
    command = [sys.executable, "-m", "redtail", "run", str(file), "--backend", "live"]
    killed_agents = 0

    def killed(turn: int, process: subprocess.Popen[bytes], moment: float) -> set[int]:
        """Kill a run or, every second time, its agent first; returns the agents that it had."""
        time.sleep(moment)
        ours = {each for each in descendants(process.pid) if each in agents()}
        if turn % 2 and ours:
            with contextlib.suppress(ProcessLookupError):  # the probe of a host is short
                os.kill(min(ours), signal.SIGKILL)
        process.kill()
        process.wait()
        return ours

    for first in range(0, 20, 4):
        turns = range(first, first + 4)
        outs = [tmp_path / f"out{turn}" for turn in turns]
        processes = [
            subprocess.Popen(
                [*command, "--out", str(out)],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for out in outs
        ]
        # Four at a time take longer until they run than one does.
        moments = [chance.uniform(0.3, 3.5) for _ in turns]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(killed, turns, processes, moments))
        killed_agents += sum(map(bool, found))
        assert gone(set().union(*found, agents(mark))), f"turns {turns}: a process is left"
        assert interfaces() == devices, f"turns {turns}: an interface is left"
        left = [path.name for out in outs for path in out.rglob("*")]
        assert not [name for name in left if name.endswith((".partial", ".tmp"))], left
    assert killed_agents > 5, "some kills hit a run"


# redtail shell

SHELL_RUN = "live-run-1@live-shell"
"""The folder of the first run of `shell`."""


def shell(tmp_path: Path, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "line.toml"
    file.write_text(link(TAIL_DROP))
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "redtail",
            "shell",
            str(file),
            "--out",
            str(tmp_path / "out"),
            *words,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,  # type: ignore[call-overload]
    )


EXCHANGE = """
import os, socket
with socket.create_connection((os.environ["REDTAIL_SERVER"], 7000)) as it:
    assert it.getsockname()[0] == os.environ["REDTAIL_CLIENT"]
    size = 0
    while chunk := it.recv(65536):
        size += len(chunk)
print("received", size)
"""

SERVE = """
import os, socket
with socket.create_server((os.environ["REDTAIL_SERVER"], 7000)) as it:
    while True:
        client, _ = it.accept()
        with client:
            client.sendall(bytes(500_000))
"""


@on_this_host
def test_a_program_runs_behind_the_bottleneck(tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(EXCHANGE)
    (tmp_path / "server.py").write_text(SERVE)
    capture = tmp_path / "bottleneck.pcapng"
    ran = shell(
        tmp_path,
        *("--status", "lines", "--seed", "77", "--pcap", f"bottleneck={capture}"),
        "--server",
        f"exec {sys.executable} {tmp_path / 'server.py'}",
        "--",
        "sh",
        "-c",
        f"sleep 1; {sys.executable} {tmp_path / 'client.py'}; sleep 1; "
        "echo seed $REDTAIL_SEED; exit 7",
    )
    assert ran.returncode == 7, ran.stderr
    assert "received 500000" in ran.stdout and "seed 77" in ran.stdout
    assert capture.stat().st_size > 500_000 and not list(tmp_path.glob(".*.part"))
    assert f"capture: {capture}" in ran.stdout
    assert re.search(r"bottleneck: \d+\.\d\d Mbit/s, \d+ packets waiting, delay", ran.stderr)
    results = redtail.load(tmp_path / "out" / SHELL_RUN)
    assert results.backend == "live-shell" and results.name == "live, run 1"
    [scenario] = results.folder.glob("*/scenario.json")
    assert json.loads(scenario.read_text())["seed"] == 77
    received = mean(results, "shell.received_rate")
    assert received > 0 and mean(results, "shell.utilization") > 0
    # 500 kB and its retransmissions over the bottleneck in the length of the run
    bits = mean(results, "achieved_rate") / received
    assert 1 < bits < 1.2, "headers, handshake and retransmissions are the difference"
    assert not [pid for pid in agents() if _speaks_of(pid, tmp_path)]
    # Of 500 kB each byte once; what was sent again is in the received rate alone.
    payload = mean(results, "shell.payload_rate")
    assert 0.5 * received < payload <= received
    assert mean(results, "shell.tcp_rtt_min") >= 0.010
    assert mean(results, "shell.tcp_rtt_p50") > mean(results, "shell.tcp_rtt_min")
    assert not [name for name in results.cases[0].metrics if "datagram" in name or "quic" in name]


def captured_payload(capture: Path) -> int:
    """What a capture has of payload: of TCP each segment once, of UDP every datagram."""
    fields = ("tcp.stream", "tcp.seq_raw", "tcp.len", "udp.length")
    words = ["-o", "tcp.relative_sequence_numbers:FALSE", "-T", "fields", "-E", "separator=,"]
    words += [word for field in fields for word in ("-e", field)]
    printed = subprocess.run(
        ["tshark", "-r", str(capture), "-Y", "tcp or udp", *words],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [line.split(",") for line in printed.splitlines()]
    segments = {(stream, seq): int(length) for stream, seq, length, _ in rows if length}
    return sum(segments.values()) + sum(int(length) - 8 for *_, length in rows if length)


@on_this_host
@pytest.mark.skipif(
    None in (shutil.which("iperf3"), shutil.which("tshark")),
    reason="iperf3 or tshark is not installed",
)
def test_what_packets_tell_is_what_iperf3_and_tshark_report(tmp_path: Path) -> None:
    names = {name: tmp_path / f"{name}.json" for name in ("up", "down")}
    lines = [
        f"iperf3 -c $REDTAIL_SERVER -n 2M --json > {names['up']}",
        f"iperf3 -c $REDTAIL_SERVER -t 2 -u -b 12M -l 1200 -R --json > {names['down']}",
    ]
    back = "{rate='10 Mbit/s', delay='10 ms', queue={kind='tail-drop', limit='50 packets'}}"
    words = ["--set", f"bottleneck.return={back}", "--server", "iperf3 -s"]
    captures = [tmp_path / f"{link}.pcapng" for link in ("bottleneck", "return")]
    for capture in captures:
        words += ["--pcap", f"{capture.stem}={capture}"]
    ran = shell(tmp_path, *words, "--", "sh", "-c", f"sleep 1; {'; '.join(lines)}; sleep 0.5")
    assert ran.returncode == 0, ran.stderr
    told = {name: json.loads(path.read_text())["end"] for name, path in names.items()}
    results = redtail.load(tmp_path / "out" / SHELL_RUN)
    # All that a link has sent off had arrived half a second later.
    down, up = map(captured_payload, captures)
    rates = mean(results, "shell.payload_rate") / mean(results, "shell.back_payload_rate")
    assert rates == pytest.approx(down / up, rel=1e-9)
    # iperf3 stops to count before the last datagrams arrive, of which some are lost.
    sent, received = told["down"]["sum_sent"]["packets"], told["down"]["sum_received"]
    least, unknown = received["lost_packets"], sent - received["packets"]
    lost = mean(results, "shell.datagram_loss") * sent
    assert 0 < least <= round(lost, 6) <= least + unknown
    # TCP's own round trips are smoothed, so their mean lies within the samples.
    own = told["up"]["streams"][0]["sender"]["mean_rtt"] * 1e-6
    low, high = mean(results, "shell.back_tcp_rtt_min"), mean(results, "shell.back_tcp_rtt_p95")
    assert 0.020 <= low <= own <= high


SEND_DATAGRAMS = """
import os, socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
    it.bind((os.environ["REDTAIL_SERVER"], 7000))
    it.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)  # ECT(0)
    _, client = it.recvfrom(100)
    for _ in range(500):
        it.sendto(bytes(1000), client)
"""

HEAR_DATAGRAMS = """
import os, socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
    it.settimeout(2)
    it.sendto(b"go", (os.environ["REDTAIL_SERVER"], 7000))
    size = 0
    try:
        while True:
            size += len(it.recv(2000))
    except TimeoutError:
        print("received", size)
"""


@on_this_host
def test_what_tcp_measures_is_undefined_for_programs_without_tcp(tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(HEAR_DATAGRAMS)
    (tmp_path / "server.py").write_text(SEND_DATAGRAMS)
    ran = shell(
        tmp_path,
        "--server",
        f"exec {sys.executable} {tmp_path / 'server.py'}",
        "--",
        "sh",
        "-c",
        f"sleep 1; {sys.executable} {tmp_path / 'client.py'}",
    )
    assert ran.returncode == 0, ran.stderr
    [received] = re.findall(r"received (\d+)", ran.stdout)
    assert int(received) > 0
    results = redtail.load(tmp_path / "out" / SHELL_RUN)
    metrics = results.cases[0].metrics
    assert metrics["shell.utilization"].mean > 0
    of_tcp = ("received_rate", "data_segments", "retransmissions", "timeouts", "goodput")
    of_others = ("ece_segments", "cwr_segments", "marks_told", "quic_rtt_mean", "quic_rtt_min")
    for name in (*of_tcp, "tcp_rtt_mean", "tcp_rtt_min", *of_others):
        assert f"shell.{name}" not in metrics and f"shell.back_{name}" not in metrics, name
    assert "goodput" not in metrics
    # What the network saw is what the client received: all was sent seconds before the end.
    lost = 1 - int(received) / 500_000
    assert lost > 0 and mean(results, "shell.datagram_loss") == pytest.approx(lost, abs=1e-12)
    rates = mean(results, "shell.payload_rate") / mean(results, "shell.back_payload_rate")
    assert rates == pytest.approx(int(received) / len("go"), rel=1e-9)
    assert mean(results, "shell.ect0") == 1 and mean(results, "shell.back_ect0") == 0
    assert mean(results, "shell.ce_after") == 0 and mean(results, "shell.back_datagram_loss") == 0


def _speaks_of(pid: int, folder: Path) -> bool:
    try:
        return str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@on_this_host
def test_all_programs_end_with_a_killed_shell(tmp_path: Path) -> None:
    file = tmp_path / "line.toml"
    file.write_text(link(TAIL_DROP))
    marks = [str(tmp_path / name) for name in ("client", "server", "grandchild")]
    client, server, grandchild = (f"exec sleep 600.{i}{os.getpid()}" for i in range(3))
    command = [sys.executable, "-m", "redtail", "shell", str(file), "--out", str(tmp_path / "out")]
    servers = ["--server", f"touch {marks[1]}; {server}"]
    line = f"(touch {marks[2]}; {grandchild}) & touch {marks[0]}; {client}"
    process = subprocess.Popen(
        [*command, *servers, "--", "sh", "-c", line],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(400):
        if all(os.path.exists(mark) for mark in marks):
            break
        time.sleep(0.05)
    else:
        process.kill()
        pytest.fail("the programs did not start")

    def sleeping() -> list[str]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                text = path.read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if re.match(rf"sleep 600\.\d{os.getpid()}", text):
                found.append(text)
        return found

    assert len(sleeping()) == 3
    process.send_signal(signal.SIGKILL)
    process.wait()
    for _ in range(200):
        if not sleeping():
            return
        time.sleep(0.05)
    pytest.fail(f"left: {sleeping()}")


@on_this_host
def test_what_servers_print_is_in_files(tmp_path: Path) -> None:
    # The shell that redtail starts ends at once; what it has started writes 300 ms later.
    wrapped = "trap 'sleep 0.3; echo at the end; exit' TERM; while :; do sleep 0.01; done"
    servers = [f'echo to the log; sh -c "{wrapped}"; true', "echo is broken >&2; exit 3"]
    words = [word for server in servers for word in ("--server", server)]
    ran = shell(tmp_path, *words, "--", "sh", "-c", "echo to the terminal; sleep 1")
    assert ran.returncode == 0, ran.stderr
    logs = [tmp_path / "out" / SHELL_RUN / f"server-{number}.log" for number in (1, 2)]
    first, second = (log.read_text().splitlines() for log in logs)
    assert (first[0], first[-1]) == ("to the log", "at the end") and second == ["is broken"]
    assert "to the terminal" in ran.stdout and all(str(log) in ran.stdout for log in logs)
    assert "to the log" not in ran.stdout + ran.stderr
    failed = f"warning: server `{servers[1]}` ended (exit status: 3): is broken ({logs[1]})"
    assert failed in ran.stderr
    verified = CliRunner().invoke(app, ["runs", "verify", "--out", str(tmp_path / "out")])
    assert verified.exit_code == 0, verified.output
    ran = shell(tmp_path, "--", "true")
    assert ran.returncode == 0 and all(log.exists() for log in logs), "no run takes another's place"
    later = redtail.load(tmp_path / "out" / SHELL_RUN.replace("1", "2"))
    assert later.name == "live, run 2" and "$ true" in later.description
    listed = CliRunner().invoke(app, ["runs", "list", "--out", str(tmp_path / "out")]).output
    assert "live-run-1@live-shell" in listed and "live-run-2@live-shell" in listed


OPEN = """
import os
print("environment:", sorted(os.environ.items()))
for pid in ("self", "1"):
    for name in sorted(os.listdir(f"/proc/{pid}/fd"), key=int):
        try:
            print("open:", pid, name, os.readlink(f"/proc/{pid}/fd/{name}").split(":")[0])
        except OSError as error:
            print("open:", pid, name, error.strerror)
    try:
        open(f"/proc/{pid}/environ").close()
    except OSError as error:
        print("open:", pid, "environ", error.strerror)
print("slack:", open("/proc/self/timerslack_ns").read())
"""

FORGE = """
import os, pickle
class Code:
    def __reduce__(self):
        return os.system, ("touch EXECUTED",)
for number in range(3, 64):
    for path in (f"/proc/self/fd/{number}", f"/proc/1/fd/{number}"):
        try:
            with open(path, "wb") as it:
                it.write(pickle.dumps(Code()))
                print("wrote to", path)
        except OSError:
            pass
"""


@on_this_host
def test_programs_have_nothing_of_redtail(tmp_path: Path) -> None:
    (tmp_path / "open.py").write_text(OPEN)
    look = f"{sys.executable} -I {tmp_path / 'open.py'}"
    # Without a locale Python sets one for itself, and REDTAIL_CACHE is a setting of redtail.
    given = {"PATH": os.environ["PATH"], "OWN": "1", "PYTHONHASHSEED": "0"}
    with (tmp_path / "secret").open("w") as secret:
        ran = shell(
            tmp_path,
            "--server",
            look,
            "--",
            *(sys.executable, "-I", "-c", f"import time; time.sleep(1); {OPEN}"),
            pass_fds=(secret.fileno(),),
            env={**given, "REDTAIL_CACHE": str(tmp_path / "cache")},
        )
    assert ran.returncode == 0, ran.stderr
    log = tmp_path / "out" / SHELL_RUN / "server-1.log"
    for said in (ran.stdout, log.read_text()):
        lines = [line for line in said.splitlines() if line.startswith("open:")]
        found = [line.split(maxsplit=3)[1:] for line in lines]
        own = [int(name) for pid, name, _ in found if pid == "self"]
        # The next one is that of the folder in which it looks.
        assert own == [0, 1, 2, 3], said
        of_redtail = {what for pid, _, what in found if pid == "1"}
        assert of_redtail <= {"Permission denied", "No such file or directory"}, said
        assert ["1", "environ", "Permission denied"] in found, said
        [listed] = [line for line in said.splitlines() if line.startswith("environment:")]
        has = dict(ast.literal_eval(listed.partition(":")[2]))
        # Python has set LC_CTYPE for itself, and the shell of a server has PWD.
        kept = {name: value for name, value in has.items() if name not in ("LC_CTYPE", "PWD")}
        ends = {"REDTAIL_CLIENT": "10.1.0.2", "REDTAIL_SERVER": "10.0.0.2", "REDTAIL_SEED": "11"}
        assert {**kept, **ends} == {**given, **ends} and ends.keys() <= kept.keys(), said
        assert "slack: 50000\n" in said, "the timers of programs are as elsewhere"


@on_this_host
def test_a_program_cannot_write_what_is_said_of_it(tmp_path: Path) -> None:
    (tmp_path / "forge.py").write_text(FORGE)
    ran = shell(tmp_path, "--", sys.executable, str(tmp_path / "forge.py"), cwd=tmp_path)
    assert ran.returncode == 0 and "wrote to" not in ran.stdout, (ran.stdout, ran.stderr)
    assert not (tmp_path / "EXECUTED").exists()


SPEAK = """
import os, socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
    for _ in range(20):
        it.sendto(b"a word", (os.environ["REDTAIL_SERVER"], 7000))
        time.sleep(0.1)
"""


@on_this_host
@pytest.mark.skipif(os.geteuid() != 0, reason="programs of root alone can become another user")
@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
def test_tcpdump_gives_up_its_rights_and_writes_a_file(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "speak.py").write_text(SPEAK)
    file = tmp_path / "packets.pcap"
    line = f"tcpdump -i hosts -U -c 3 -w {file} & {sys.executable} {tmp_path / 'speak.py'}; wait"
    ran = shell(tmp_path, "--", "sh", "-c", line)
    assert ran.returncode == 0 and "3 packets captured" in ran.stderr, ran.stderr
    assert b"a word" in file.read_bytes()


CONFINED = """
touch {out} && echo wrote outside
touch {inside}/ok && echo wrote inside
touch /tmp/redtail-of-this-run && echo wrote to tmp
mount -o remount,rw,bind / && echo mounted
umount /tmp && echo unmounted
unshare -Urm sh -c "mount -o remount,rw,bind /; touch {out}" && echo mounted in a namespace
ls /proc/1/root/etc && echo looked into redtail
cat {readable}
"""


@on_this_host
def test_programs_can_be_kept_from_writing(tmp_path: Path) -> None:
    own, writable = tmp_path / "own", tmp_path / "writable"
    own.mkdir()
    writable.mkdir()
    (own / "readable").write_text("can be read")
    script = CONFINED.format(out=own / "out", inside=writable, readable=own / "readable")
    words = ("--read-only", "--writable", str(writable), "--server", script)
    ran = shell(tmp_path, *words, "--", "sh", "-c", f"sleep 1; {script}", cwd=own)
    assert ran.returncode == 0, ran.stderr
    log = tmp_path / "out" / SHELL_RUN / "server-1.log"
    for said in (ran.stdout, log.read_text()):
        lines = [line for line in said.splitlines() if line.startswith(("wrote", "mount", "can"))]
        lines = [line for line in lines if "permission denied" not in line]
        assert lines[:2] == ["wrote inside", "wrote to tmp"], said
        assert "can be read" in said
        for wrong in ("wrote outside", "mounted", "unmounted", "looked into redtail"):
            assert f"{wrong}\n" not in said, said
    assert not (own / "out").exists() and (writable / "ok").exists()
    assert not Path("/tmp/redtail-of-this-run").exists()


def test_what_is_writable_is_a_folder_of_a_shell_that_may_not_write(tmp_path: Path) -> None:
    ran = shell(tmp_path, "--writable", str(tmp_path), "--", "true")
    assert ran.returncode == 2 and "with --read-only" in ran.stderr
    ran = shell(tmp_path, "--read-only", "--writable", str(tmp_path / "none"), "--", "true")
    assert ran.returncode == 2 and "there is no such folder" in ran.stderr


# redtail shell --outside

each_outside = pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"),
        )
        for name in ("pasta", "slirp4netns")
    ],
)

SENT = 500_000
"""Bytes that the computer's server sends on each connection."""

ASKED = 100_000
"""Bytes that it is sent before."""


@pytest.fixture
def loopback() -> Iterator[int]:
    """The port of a server on this computer's loopback, which answers with SENT bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    with client:
                        asked = 0
                        while asked < ASKED and (chunk := client.recv(65536)):
                            asked += len(chunk)
                        client.sendall(bytes(SENT))

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


FETCH = """
import os, socket, sys
print(open("/etc/resolv.conf").read())
with socket.create_connection((os.environ["REDTAIL_COMPUTER"], int(sys.argv[1]))) as it:
    assert it.getsockname()[0] == os.environ["REDTAIL_CLIENT"]
    it.sendall(bytes(int(sys.argv[2])))
    size = 0
    while chunk := it.recv(65536):
        size += len(chunk)
print("received", size)
"""


@each_outside
@on_this_host
def test_the_outside_is_reached_through_the_bottleneck(
    program: str, loopback: int, tmp_path: Path
) -> None:
    (tmp_path / "client.py").write_text(FETCH)
    before = Path("/etc/resolv.conf").read_text()
    fetch = [sys.executable, str(tmp_path / "client.py"), str(loopback), str(ASKED)]
    # Nothing is lost: pasta of 2023 may need minutes to repair what it has sent too fast.
    room = "bottleneck.queue={kind='tail-drop', limit='1000 packets'}"
    ran = shell(tmp_path, "--set", room, "--outside", program, "--", *fetch)
    assert ran.returncode == 0, ran.stderr
    assert f"received {SENT}" in ran.stdout
    assert "\nnameserver 10.254.0.3\n" in "\n" + ran.stdout
    assert Path("/etc/resolv.conf").read_text() == before, "the computer's own file is as it was"
    results = redtail.load(tmp_path / "out" / SHELL_RUN)
    # The payload in both directions crossed the bottleneck, in segments of up to 1448 B.
    assert mean(results, "shell.data_segments") >= (SENT + ASKED) / 1448
    assert mean(results, "largest_packet") <= 1500


@each_outside
@on_this_host
def test_a_killed_shell_leaves_no_connection_to_the_outside(program: str, tmp_path: Path) -> None:
    file = tmp_path / "line.toml"
    file.write_text(link(TAIL_DROP))
    devices, mark = interfaces(), tmp_path / "mark"
    command = [sys.executable, "-m", "redtail", "shell", str(file), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        [*command, "--outside", program, "--", "sh", "-c", f"touch {mark}; exec sleep 600"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(400):
        if mark.exists():
            break
        time.sleep(0.05)
    else:
        process.kill()
        pytest.fail("the program did not start")
    started = descendants(process.pid)
    assert any(line.split()[:1] == [program] for line in started.values()), started
    process.kill()
    process.wait()
    for _ in range(200):
        left = {pid for pid in started if command_line(pid)}
        if not left:
            break
        time.sleep(0.05)
    assert not left, {started[pid] for pid in left}
    assert interfaces() == devices


def command_line(process: int) -> str:
    """The words of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode().replace("\0", " ")
    except OSError:
        return ""


def descendants(process: int) -> dict[int, str]:
    """The processes that a process and its children have started, with their command lines."""
    parents, lines = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        pid = int(path.parent.name)
        lines[pid] = command_line(pid)
        parents[pid] = int(text[text.rindex(")") + 2 :].split()[1])
    found = {process}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: lines[pid] for pid in found - {process}}


@on_this_host
def test_without_the_outside_its_addresses_are_unreachable(tmp_path: Path) -> None:
    client = "import socket; socket.create_connection(('192.0.2.1', 80))"
    ran = shell(tmp_path, "--", sys.executable, "-c", client)
    assert ran.returncode == 1 and "Network is unreachable" in ran.stderr


def test_a_missing_program_for_the_outside_is_told_with_its_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs.shutil, "which", lambda name: None)
    assert programs.connection("off") is None
    with pytest.raises(SpecError, match=r"pasta is not installed \(package passt in Debian"):
        programs.connection("pasta")
    with pytest.raises(SpecError) as caught:
        programs.connection("auto")
    assert "package slirp4netns in Debian, Ubuntu" in str(caught.value)
    assert "package passt in " in str(caught.value)
    monkeypatch.setattr(programs.shutil, "which", lambda name: name if name[0] == "p" else None)
    assert programs.connection("auto") == "pasta"


@on_this_host
def test_the_message_of_a_program_for_the_outside_that_fails_is_shown(tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "pasta"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'No way out of here' >&2\nexit 3\n")
    fake.chmod(0o755)
    path = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    ran = shell(tmp_path, "--outside", "pasta", "--", "true", env=path)
    assert ran.returncode == 1
    expected = "the outside is not connected: pasta ended (exit status: 3): No way out of here"
    assert expected in ran.stderr


@on_this_host
def test_a_shell_refuses_what_it_cannot_run(tmp_path: Path) -> None:
    ran = shell(tmp_path, "--", "no-such-program-here")
    assert ran.returncode == 1 and "no-such-program-here: No such file" in ran.stderr
    ran = shell(tmp_path, "--set", "bottleneck.rate='100 Gbit/s'", "--", "true")
    assert ran.returncode == 2 and "bottleneck.rate: is 100 Gbit/s" in ran.stderr
    ran = shell(tmp_path, "--longest", "soon", "--", "true")
    assert ran.returncode == 2 and "duration" in ran.stderr


def test_the_backend_is_listed() -> None:
    assert "live" in backends.KNOWN
    ran = CliRunner().invoke(app, ["run", "x.toml", "--backend", "nothing"])
    assert ran.exit_code == 2


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@on_this_host
def test_whole_packets_are_captured(tmp_path: Path) -> None:
    queue = (
        '{ kind = "red", min_th = "3 packets", max_th = "9 packets", max_p = 0.1, '
        'limit = "50 packets", ecn = true }'
    )
    text = link(queue, "2 s") + BULK.replace('"linux"', '{ preset = "linux", ecn = true }')
    file = tmp_path / "packets.pcapng"
    captured = redtail.capture(redtail.Toml(text), {"bottleneck": file}, backend="live")
    assert captured.metrics["mark"] > 0

    def shown(expression: str) -> list[list[str]]:
        fields = ["frame.time_relative", "ip.len", "frame.len"]
        columns = [word for field in fields for word in ("-e", field)]
        read = ["tshark", "-r", str(file), "-o", "ip.check_checksum:TRUE", "-T", "fields"]
        ran = subprocess.run(
            [*read, *columns, "-Y", expression],
            capture_output=True,
            text=True,
            check=True,
        )
        return [line.split("\t") for line in ran.stdout.splitlines()]

    packets = shown("tcp")
    assert len(packets) > 500
    assert all(ip == frame for _, ip, frame in packets), "packets begin with the IP header"
    assert max(int(ip) for _, ip, _ in packets) == 1500
    assert len(shown("ip.dsfield.ecn == 3")) > 0, "marks are in the headers"
    assert not shown('ip.checksum.status == "Bad"'), "and in their checksums"
    assert len(shown("tcp.flags.syn == 1")) == 4
    # The link's own times: full packets leave 1.2 ms apart at 10 Mbit/s, or later.
    times = [float(time) for time, ip, _ in packets if ip == "1500"]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert min(gaps) == pytest.approx(0.0012, abs=2e-9)


def refused(queue: str, filters: list[str]) -> list[tuple[str, str]]:
    text = experiment.prepare(redtail.Toml(link(queue) + BULK)).scenario(0, 0)
    return realtime.live_queue_refusals(text, list(host.QUEUES), filters)


def test_classes_without_the_kernels_filters_are_refused() -> None:
    drop = 'queue = { kind = "tail-drop", limit = "9 packets" }'
    queue = (
        '{ kind = "prio", default = "b", class = [{ name = "a", match = { group = "ftp" }, '
        f'{drop} }}, {{ name = "b", {drop} }}] }}'
    )
    assert not refused(queue, list(host.FILTERS))
    [(key, reason)] = refused(queue, ["matchall"])
    assert key == "bottleneck.queue.kind" and '= "prio" needs flower of the kernel' in reason
    assert not refused('{ kind = "codel" }', [])


def test_a_shaper_in_a_class_of_drr_is_refused() -> None:
    shaped = 'queue = { kind = "cake", rate = "1 Mbit/s" }'
    queue = f'{{ kind = "drr", class = [{{ name = "a", quantum = "1500 B", {shaped} }}] }}'
    [(key, reason)] = refused(queue, list(host.FILTERS))
    assert key == "bottleneck.queue.class.a.queue" and "holds packets back" in reason
    assert not refused(queue.replace(', rate = "1 Mbit/s"', ""), list(host.FILTERS))


# A queue of 20 packets, which drops data and SYNs of ten transfers. All end before the run does,
# and nothing is sent before what is measured: the kernel's counters and its flows are read one
# after the other, and a segment may be sent again between the two.
CROWDED = (
    link('{ kind = "tail-drop", limit = "20 packets" }', "8 s", "0 s")
    + """
[[traffic]]
name = "ftp"
kind = "transfer"
flows = 10
size = "400 kB"
start = "uniform 0..2 s"
return_delay = "10 ms"
tcp = "linux"
"""
)


LOGGED = ["retransmission", "recovery", "drop", "arrival"]


def counted(results: Results) -> dict[str, float]:
    """What the kernel has counted, for its hosts and for its flows."""
    flows = results.flows()
    names = ("retransmissions", "timeouts", "spurious_timeouts", "fast_recoveries")
    of_hosts = {name: mean(results, f"ftp.{name}") for name in names}
    own = {
        f"flows' {name}": sum(
            math.nan if value is None else value for value in flows[name].to_pylist()
        )
        for name in names[:2]
    }
    return of_hosts | own


def agree(counts: dict[str, float]) -> None:
    """Check what holds for any kernel.

    The hosts count the FINs of receivers too, which are sent again when the answer is late: one for
    each of the ten flows at most, unless it is lost more than once.
    """
    assert counts["flows' retransmissions"] > 50
    assert 0 <= counts["retransmissions"] - counts["flows' retransmissions"] <= 10
    assert 0 < counts["fast_recoveries"] < counts["retransmissions"]
    assert counts["spurious_timeouts"] <= counts["timeouts"]


@on_this_host
def test_the_kernels_counters_are_what_its_flows_count(tmp_path: Path) -> None:
    results = measured(CROWDED, tmp_path, set={"events.kinds": LOGGED})
    counts = counted(results)
    agree(counts)
    # The event log has each, and the drops of the queue.
    columns = (results.events()[name].to_pylist() for name in ("event", "back"))
    events = Counter(zip(*columns, strict=True))
    assert events["retransmission", None] == counts["flows' retransmissions"]
    assert 0 < events["recovery", None] <= counts["fast_recoveries"]
    assert events["drop", 0] > 0
    share = events["drop", 0] / events["arrival", 0]
    assert share == pytest.approx(mean(results, "ftp.loss"), rel=1e-9)
    if not math.isnan(counts["flows' timeouts"]):  # since Linux 6.7
        assert counts["timeouts"] == counts["flows' timeouts"]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@on_this_host
def test_the_kernels_counters_are_what_a_capture_shows(tmp_path: Path) -> None:
    file = tmp_path / "packets.pcapng"
    done = redtail.capture(redtail.Toml(CROWDED), {"bottleneck:in": file}, backend="live")
    fields = ["tcp.srcport", "ip.src", "tcp.seq_raw", "tcp.len", "tcp.flags"]
    read = ["tshark", "-r", str(file), "-T", "fields"]
    read += [word for field in fields for word in ("-e", field)]
    ran = subprocess.run(read, capture_output=True, text=True, check=True)
    again, connections = 0, set()
    ends: dict[tuple[str, str], int] = {}
    for line in ran.stdout.splitlines():
        port, host, sequence, length, flags = line.split("\t")
        syn, fin = int(flags, 16) >> 1 & 1, int(flags, 16) & 1
        if syn:
            connections.add((host, port))
        elif int(length) or fin:
            flow, end = (host, port), int(sequence) + int(length) + fin
            # Numbers wrap at 2^32; packets come in the order in which the host sent them.
            ahead = (end - ends.get(flow, int(sequence))) % 2**32
            if 0 < ahead < 2**31:
                ends[flow] = end
            else:
                again += 1
    assert len(connections) == 10
    assert done.metrics["ftp.retransmissions"] == again
