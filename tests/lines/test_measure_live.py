"""`redtail measure` on lines of known rate, delay and queue, which `redtail shell` makes.

The packets are real, and so is time: a machine that does not keep up moves packets late. Then the
shell says that its results are not to be trusted, and the test is made again; after several such
runs it is skipped. The bounds are wide: they tell a right measurement from a wrong one, and not how
exact it is. A rate may be a lower bound where the machine was uneven, but not above the line's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from redtail import lines
from redtail.backends import live
from redtail.lines.measure import summary
from redtail.lines.recordings import measurement
from redtail.lines.recordings.documents import parsed
from redtail.lines.recordings.found import Found
from redtail.lines.recordings.measurement import Measurement
from redtail.lines.recordings.values import Estimated

LACKING = live.missing()

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING)),
]

TRIES = 2
"""Runs before a test gives up on a machine that does not keep up."""

DOWN, UP, BASE_S = 20e6, 5e6, 0.030

LINE = """
name = "line"
duration = "60 s"
warmup = "1 s"
replications = 1
seed = 1
[bottleneck]
rate = "20 Mbit/s"
delay = "15 ms"
queue = { QUEUE }
[bottleneck.return]
rate = "5 Mbit/s"
delay = "15 ms"
queue = { QUEUE }
[[traffic]]
name = "call"
kind = "voip"
flows = 1
"""

FIFO = 'kind = "tail-drop", limit = "150 packets"'


@dataclass(frozen=True)
class Run:
    """A measurement behind a line."""

    measured: Measurement
    found: Found


def measured(folder: Path, queue: str, server: str, words: str) -> Run:
    """Measure behind a line of 20/5 Mbit/s and 30 ms."""
    (folder / "line.toml").write_text(LINE.replace("QUEUE", queue))
    redtail = f"{sys.executable} -m redtail"
    script = f"sleep 3; {redtail} measure $REDTAIL_SERVER --tcp cubic {words} --save m.json --force"
    said = ""
    for _ in range(TRIES):
        done = subprocess.run(
            [*redtail.split(), "shell", "line.toml", "--status", "off",
             "--server", server.replace("redtail", redtail), "--", "sh", "-c", script],
            cwd=folder, capture_output=True, text=True, timeout=600,
            env={**os.environ, "COLUMNS": "200"},
        )  # fmt: skip
        said = done.stdout + done.stderr
        if done.returncode == 0 and "do not trust" not in done.stderr:
            text = (folder / "m.json").read_text()
            data = parsed(text)
            assert measurement.is_one(data)
            return Run(measurement.parsed(data, len(text)), lines.estimate(folder / "m.json"))
        assert "do not trust" in done.stderr, said
    pytest.skip(f"this machine does not keep up with real time: {said[-500:]}")


def near(rate: Estimated, bps: float) -> bool:
    """Whether a rate is that of the line, or a lower bound that holds."""
    if rate.value is None:
        return False
    # 5 %: the probes and a call take 0.1 Mbit/s, and headers are not those of each packet.
    if rate.bound:
        return rate.bound == "at least" and 0.5 * bps < rate.value <= 1.05 * bps
    assert rate.low is not None and rate.high is not None
    return rate.low <= 1.05 * bps and rate.high >= 0.93 * bps


def test_a_line_with_tail_drop_is_measured_as_it_is(tmp_path: Path) -> None:
    run = measured(tmp_path, FIFO, "redtail measure --serve", "--load '12 s' --idle '6 s'")
    # The propagation, and a probe's own transmission: 0.13 ms.
    assert run.found.rtt.value == pytest.approx(BASE_S, abs=0.003)
    assert near(run.found.down.rate, DOWN), run.found.down.rate
    assert near(run.found.up.rate, UP), run.found.up.rate
    rows = {row.phase: row for row in summary.rows(run.measured)}
    idle, down, up, both = (rows[name] for name in ("idle", "down", "up", "both"))
    # 150 packets of 1500 bytes wait 90 ms down and 360 ms up; CUBIC keeps half of it or more.
    waits = [row.delays["median"].value - idle.delays["median"].value for row in (down, up)]
    assert 0.035 < waits[0] < 0.110 and 0.14 < waits[1] < 0.400, waits
    assert both.rates.keys() == {"down", "up"}
    for name, bps in (("down", DOWN), ("up", UP)):
        assert both.rates[name].value is not None and both.rates[name].value < 1.1 * bps
    assert down.responsiveness is not None and up.responsiveness is not None
    assert 60 / 0.160 < down.responsiveness.value < 60 / 0.060
    assert 60 / 0.450 < up.responsiveness.value < 60 / 0.150
    assert idle.loss.value is not None and idle.loss.value < 0.05


def test_behind_fair_queues_a_load_makes_probes_wait_little(tmp_path: Path) -> None:
    words = "--load '8 s' --idle '6 s' --phases idle,down,up"
    run = measured(tmp_path, 'kind = "fq-codel"', "redtail measure --serve", words)
    rows = {row.phase: row for row in summary.rows(run.measured)}
    base = rows["idle"].delays["median"].value
    assert base == pytest.approx(BASE_S, abs=0.003)
    for name in ("down", "up"):
        # A packet of each of five flows is before it at most: 12 ms up.
        assert rows[name].delays["median"].value - base < 0.020
    # No queue of the probes stood, so nothing is said to be the rate.
    assert run.found.down.rate.bound in ("", "at least")
    assert 0.5 * DOWN < run.found.down.rate.value <= 1.05 * DOWN


@pytest.mark.skipif(
    shutil.which("iperf3") is None or shutil.which("ping") is None, reason="iperf3 and ping"
)
def test_an_iperf3_server_measures_the_same_line(tmp_path: Path) -> None:
    words = "--server-kind iperf3 --load '12 s' --idle '6 s'"
    run = measured(tmp_path, FIFO, "iperf3 -s -J -i 0.1", words)
    assert run.measured.probe == "icmp"
    assert run.found.rtt.value == pytest.approx(BASE_S, abs=0.003)
    assert near(run.found.down.rate, DOWN), run.found.down.rate
    assert near(run.found.up.rate, UP), run.found.up.rate
    both = summary.rows(run.measured)[-1]
    for name, bps in (("down", DOWN), ("up", UP)):
        assert both.rates[name].value is not None and both.rates[name].value < 1.1 * bps


@pytest.mark.skipif(shutil.which("irtt") is None, reason="irtt")
def test_an_irtt_server_answers_probes(tmp_path: Path) -> None:
    run = measured(tmp_path, FIFO, "irtt server", "--server-kind irtt --idle '6 s'")
    assert run.measured.probe == "irtt" and len(run.measured.one_way[0]) > 200
    assert run.found.rtt.value == pytest.approx(BASE_S, abs=0.003)
