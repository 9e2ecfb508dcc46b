"""Up to which rate a bottleneck in real time is punctual, and what it costs.

`bench.py` prints these rows; alone the program is `benches/real_time.py [--tries N]`. A row is
a search upwards over `RATES`. Its runs have four bulk flows of this computer's TCP with
packets of 1500 B. Other work on the machine only makes a run later, so a rate counts if one of
a few tries is good.

The rows of redtail are runs of backend live. Where mahimahi's `mm-link` and `iperf3` are installed,
they do the same work for two rows. mm-link may deliver at whole milliseconds of the clock only. How
late after them it delivers is seen from outside, where Wireshark's `dumpcap` is installed and may
capture: the kernel's time stamps of what mm-link sends, modulo a millisecond. This is the least
lateness that they allow; a packet that is later than a millisecond looks punctual. The second
criterion is that flows get the rate, which is shown for redtail too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from redtail.backends import live
from redtail.engine import plans
from redtail.errors import InvalidRun

_SCENARIO = Path(__file__).resolve().parent / "scenarios" / "real-time.toml"

#: In Mbit/s.
RATES = (50, 100, 200, 300, 400, 500, 700, 1000, 1200, 1400, 1900, 2200, 2600)

#: What the 99th percentile of the wake-up error must stay below, in seconds.
PUNCTUAL = 200e-6

#: The share of the rate that flows must get.
ENOUGH = 0.97

#: The share that they must get in a row about punctuality, so that the link is the bottleneck.
BUSY = 0.9

#: Measured in a run, in seconds, after one second that is not.
MEASURED = 3

#: Bytes of data in a packet of 1500 B: 52 B are headers with timestamps.
PAYLOAD = 1448

#: The queues of redtail's rows; @LIMIT@ is 10 ms at the rate, in packets.
QUEUES = {
    "tail-drop": '{ kind = "tail-drop", limit = "@LIMIT@ packets" }',
    "fq-codel": '{ kind = "fq-codel" }',
}


@dataclass
class Try:
    """What one run measured."""

    rate: int
    #: Bits of packets that left the link in the measurement, by what could have.
    utilization: float
    #: CPU time of all its processes, user and system, by the time that they existed.
    cpu: float
    #: The 99th percentile of the wake-up error in seconds; None if nobody tells.
    error_s: float | None = None
    valid: bool = True


#: By row: the tries.
Rows = dict[str, list[Try]]


def limit(rate: int) -> int:
    """The packets of 1500 B that a link sends in 10 ms."""
    return rate * 10_000 // (8 * 1500)


def punctual(found: Try) -> bool:
    """Whether a run was punctual at a bottleneck."""
    assert found.error_s is not None
    return found.valid and found.error_s < PUNCTUAL and found.utilization >= BUSY


def enough(found: Try) -> bool:
    """Whether flows got the rate."""
    return found.utilization >= ENOUGH


def search(measure: Callable[[int], Try], good: Callable[[Try], bool], tries: int) -> list[Try]:
    """Go up the rates until none of `tries` runs at one is good; returns all runs."""
    found: list[Try] = []
    for rate in RATES:
        for _ in range(tries):
            found.append(measure(rate))
            if good(found[-1]):
                break
        else:
            break
    return found


def highest(found: Sequence[Try], good: Callable[[Try], bool]) -> Try | None:
    """The good run at the highest rate."""
    return max(filter(good, found), key=lambda run: run.rate, default=None)


class Cost:
    """The CPU time of children that have ended, by the time since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter(), self._cpu_s()

    def _cpu_s(self) -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def share(self) -> float:
        """The share of one CPU until now."""
        start, cpu_s = self._start
        return (self._cpu_s() - cpu_s) / (time.perf_counter() - start)


def redtail(queue: str, rate: int) -> Try:
    """Make a run of backend live."""
    text = _SCENARIO.read_text().replace("@QUEUE@", QUEUES[queue])
    text = text.replace("@RATE@", str(rate)).replace("@LIMIT@", str(limit(rate)))
    scenario = plans.plan(text.replace("@DURATION@", str(1 + MEASURED))).scenario(0, 0)
    cost = Cost()
    valid = True
    try:
        metrics: Any = live.Live().run(scenario).metrics
    except InvalidRun as error:
        metrics, valid = error.metrics, False
    share = cost.share()
    values = dict(metrics)
    return Try(rate, values["utilization"], share, values["wakeup_error_p99"], valid)


def opportunities(rate: int) -> list[int]:
    """The milliseconds at which a link of `rate` Mbit/s may deliver 1500 B, for 12 ms."""
    return [-(-12 * number // rate) for number in range(1, rate + 1)]


def lateness(capture: bytes, skipped_s: float) -> float:
    """The 99th percentile of how long after a whole millisecond packets were captured, in seconds.

    Args:
        capture: a file in the format of pcap, little-endian, with microseconds.
        skipped_s: how much of its beginning is left out.

    Raises:
        RuntimeError: it is another format, or has no packet after that time.
    """
    if capture[:4] != b"\xd4\xc3\xb2\xa1":
        raise RuntimeError("dumpcap wrote no file in the format of pcap")
    times = []
    at = 24
    while at + 16 <= len(capture):
        seconds, micros, length = struct.unpack_from("<III", capture, at)
        times.append(seconds * 1_000_000 + micros)
        at += 16 + length
    start = min(times, default=0) + skipped_s * 1e6
    late = sorted(time % 1000 for time in times if time >= start)
    if not late:
        raise RuntimeError("dumpcap saw no packet of mm-link")
    return float(late[int(0.99 * (len(late) - 1))]) * 1e-6


def watch(device: str, port: str, into: Path) -> subprocess.Popen[str]:
    """Capture what arrives from a device that is about to exist, on its way to a port.

    Raises:
        RuntimeError: there is no such device after 5 s, or dumpcap may not capture.
    """
    end = time.monotonic() + 5
    while not Path("/sys/class/net", device).exists():
        if time.monotonic() > end:
            raise RuntimeError(f"mm-link has made no device {device}")
        time.sleep(0.001)
    command = ["dumpcap", "-q", "-P", "-p", "-s", "40", "-B", "64", "-i", device, "-w", str(into)]
    watching = subprocess.Popen(
        [*command, "-f", f"tcp dst port {port}"], stderr=subprocess.PIPE, text=True
    )
    assert watching.stderr is not None
    told = ""
    while "File:" not in told:
        line = watching.stderr.readline()
        if not line:
            raise RuntimeError(f"dumpcap may not capture: {told}")
        told += line
    return watching


def watched_mm_link(rate: int) -> Try:
    """As [`mm_link`], with a look from outside at how late packets are."""
    return mm_link(rate, watched=True)


def mm_link(rate: int, watched: bool = False) -> Try:
    """Send over mm-link, in both directions at this rate, from a process that is not root.

    Such a process may always use Reno, and CUBIC on some computers only.

    Raises:
        RuntimeError: mm-link, iperf3 or dumpcap could not do it.
    """
    with socket.socket() as place:
        place.bind(("", 0))
        port = str(place.getsockname()[1])
    nobody: dict[str, Any] = {}
    if os.geteuid() == 0:
        nobody = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        trace = Path(folder) / "trace"
        trace.write_text("".join(f"{at}\n" for at in opportunities(rate)))
        cost = Cost()
        server = subprocess.Popen(
            ["iperf3", "-s", "-1", "-p", port, "--forceflush"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            while "listening" not in server.stdout.readline():
                pass
            flows = f"-P 4 -C reno -t {MEASURED} -O 1 -J"
            queue = f"packets={limit(rate)}"
            command = ["mm-link", str(trace), str(trace), "--uplink-queue=droptail"]
            command += [f"--uplink-queue-args={queue}", "--downlink-queue=droptail"]
            command += [f"--downlink-queue-args={queue}", "--", "sh", "-c"]
            command.append(f"exec iperf3 -c $MAHIMAHI_BASE -p {port} {flows}")
            pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            with subprocess.Popen(command, text=True, cwd="/", **pipes, **nobody) as sending:
                capture = Path(folder) / "capture"
                watching = watch(f"link-{sending.pid}", port, capture) if watched else None
                printed, complaint = sending.communicate()
            error_s = None
            if watching is not None:
                watching.terminate()
                watching.communicate()
                error_s = lateness(capture.read_bytes(), skipped_s=1)
        finally:
            server.kill()
            server.communicate()
        share = cost.share()
    try:
        goodput = json.loads(printed)["end"]["sum_received"]["bits_per_second"]
    except (ValueError, KeyError):
        raise RuntimeError(f"mm-link did not run: {complaint}{printed[-200:]}") from None
    return Try(rate, goodput * 1500 / PAYLOAD / (rate * 1e6), share, error_s)


#: By row: what makes a run of it, and its criterion.
ROWS: dict[str, tuple[Callable[[int], Try], Callable[[Try], bool]]] = {
    "tail-drop, 99 % less than 200 us late": (lambda rate: redtail("tail-drop", rate), punctual),
    "fq-codel, 99 % less than 200 us late": (lambda rate: redtail("fq-codel", rate), punctual),
    "tail-drop, 97 % of the rate": (lambda rate: redtail("tail-drop", rate), enough),
    "mm-link droptail, 99 % less than 200 us late": (watched_mm_link, punctual),
    "mm-link droptail, 97 % of the rate": (mm_link, enough),
}

#: By what makes a run of mm-link: the programs that it needs.
NEEDS: dict[Callable[[int], Try], list[str]] = {
    watched_mm_link: ["mm-link", "iperf3", "dumpcap"],
    mm_link: ["mm-link", "iperf3"],
}


def measure_live(tries: int) -> Rows:
    """Measure the rows for which this computer has what is needed."""
    rows = {}
    lacking = live.missing()
    for name, (measure, good) in ROWS.items():
        if measure in NEEDS:
            if not all(map(shutil.which, NEEDS[measure])):
                continue
        elif lacking:
            continue
        try:
            rows[name] = search(measure, good, tries)
        except RuntimeError as error:
            print(error, file=sys.stderr)
    return rows


def show_live(rows: Rows) -> None:
    """Print, for each row, the run at the highest good rate, then the best one at the next rate."""
    print(f"\n{'real time':40}{'Mbit/s':>8}{'late us':>9}{'used':>8}{'CPU':>7}   next rate")
    for name, found in rows.items():
        good = ROWS[name][1]
        best = highest(found, good)
        print(f"{name:40}" + (cells(best) if best else f"{'none':>8}{'':24}"), end="   ")
        above = [run for run in found if run.rate > (best.rate if best else 0)]
        key = (lambda run: run.error_s) if good is punctual else (lambda run: -run.utilization)
        print(cells(min(above, key=key)) if above else "")
    for name, (measure, _) in ROWS.items():
        if name not in rows:
            needs = " and ".join(NEEDS.get(measure, ["what `redtail doctor` says"]))
            print(f"{name:40}not measured; it needs {needs}")


def cells(run: Try) -> str:
    """The numbers of a run."""
    late = "" if run.error_s is None else f"{run.error_s * 1e6:.0f}"
    return f"{run.rate:8}{late:>9}{run.utilization:8.1%}{run.cpu:7.2f}"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tries", type=int, default=5, help="runs at a rate at most (5)")
    parser.add_argument("--json", action="store_true", help="print all runs as JSON")
    options = parser.parse_args()
    rows = measure_live(options.tries)
    if options.json:
        print(json.dumps({name: [vars(run) for run in found] for name, found in rows.items()}))
    else:
        show_live(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
