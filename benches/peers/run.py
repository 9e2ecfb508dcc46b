"""Time ns-2, ns-3 and htsim on scenarios that redtail's own benchmark runs.

The figure is user CPU time per packet that leaves the bottleneck: of a whole
process, less that of a run too short to move a packet, so that start-up does not
count. Peers that are not installed are left out, with a message saying what is
missing; that is not an error.

Run it as ``python benches/peers/run.py``, or import :func:`measure_peers`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_NS2_SCRIPT = _HERE / "dumbbell.tcl"
_NS2_WEB = _HERE / "web.tcl"
_NS3_SOURCE = _HERE / "dumbbell-ns3.cc"
_NS3_HEADERS = Path("/usr/include/ns3")
_BINARIES = _HERE.parents[1] / "target" / "peers"
_HTSIM_SOURCE = _HERE / "dumbbell-htsim.cc"
_NS3_LIBRARIES = (
    "ns3-applications",
    "ns3-internet",
    "ns3-point-to-point",
    "ns3-traffic-control",
    "ns3-network",
    "ns3-core",
)

#: What each scenario asks of the peers' scripts, as key and value.
SCENARIOS: Mapping[str, Mapping[str, str]] = {
    "a": {"aqm": "RED", "tcp": "Sack1", "udp": "1", "n": "64"},
    "b": {"aqm": "DropTail", "tcp": "Newreno", "udp": "0", "n": "64"},
}

#: The case on htsim's own ground, for it alone: it has no RED and no SACK.
FAST: Mapping[str, str] = {"n": "64", "mbps": "100", "buf": "300"}

#: The variable of the environment that names htsim's folder `sim`, in which its library was built.
HTSIM_VARIABLE = "HTSIM"

#: The Web case, for ns-2 alone: ns-3 has no such model.
WEB: Mapping[str, str] = {"sessions": "1200"}

_TITLES = {
    "a": "64 SACK flows + 4 UDP, RED, 10 Mbit/s",
    "b": "64 NewReno flows, tail drop, 10 Mbit/s",
    "w": "1200 Web sessions + 4 UDP, tail drop, 10 Mbit/s",
    "h": "64 NewReno flows, tail drop, 100 Mbit/s",
}

#: Simulated seconds by default: ns-3 takes some 25 times as long as ns-2 for the same.
NS2_DURATION = 200.0
NS3_DURATION = 30.0
HTSIM_DURATION = 400.0

#: Runs of each kind by default.
REPEATS = 5

_NO_TIME = 0.001  # s simulated: everything is built, nothing has been sent


class PeerError(Exception):
    """A peer is installed but did not do what was asked; the text is for the user."""


class PeerMissing(Exception):
    """A peer is not installed; the text says what is missing and how to get it."""


@dataclass(frozen=True)
class Peer:
    """How to run one simulator.

    Attributes:
        command: The program and the arguments every run has.
        argument: How one setting is written, with ``{key}`` and ``{value}``.
        extra: Settings for timing runs only.
    """

    command: tuple[str, ...]
    argument: str
    extra: Mapping[str, str]


def find_ns2(script: Path = _NS2_SCRIPT, extra: Mapping[str, str] | None = None) -> Peer:
    """Look for ns-2.

    Args:
        script: What it is to run.
        extra: Settings for timing runs only.

    Raises:
        PeerMissing: If there is no ``ns`` to run.
    """
    program = shutil.which("ns")
    if program is None:
        raise PeerMissing("ns-2: no program `ns` (Debian: apt install ns2)")
    return Peer((program, str(script)), "{key}={value}", extra or {})


def find_ns3(source: Path = _NS3_SOURCE) -> Peer:
    """Look for ns-3, and compile the scenario if it is newer than the program.

    Args:
        source: The scenario.

    Raises:
        PeerMissing: If there are no headers or no compiler.
        PeerError: If the scenario does not compile.
    """
    compiler = shutil.which("g++")
    if not (_NS3_HEADERS / "core-module.h").exists():
        raise PeerMissing("ns-3: no headers (Debian: apt install libns3-dev)")
    if compiler is None:
        raise PeerMissing("ns-3: no compiler `g++` for the scenario (Debian: apt install g++)")
    binary = _BINARIES / source.stem
    if _older(binary, source):
        _compile([compiler, "-std=c++17", "-O2"], source, binary, _NS3_LIBRARIES)
    return Peer((str(binary),), "--{key}={value}", {})


def find_htsim(source: Path = _HTSIM_SOURCE) -> Peer:
    """Look for htsim's library, and compile the scenario with it.

    Args:
        source: The scenario.

    Raises:
        PeerMissing: If the variable names no folder with the library, or there is no compiler.
        PeerError: If the scenario does not compile.
    """
    folder = Path(os.environ.get(HTSIM_VARIABLE, ""))
    library = folder / "libhtsim.a"
    compiler = shutil.which("g++")
    if not os.environ.get(HTSIM_VARIABLE) or not library.exists():
        raise PeerMissing(
            f"htsim: the variable {HTSIM_VARIABLE} names no folder with libhtsim.a (the folder"
            " `sim` of github.com/Broadcom/csg-htsim, after `make libhtsim.a` in it)"
        )
    if compiler is None:
        raise PeerMissing("htsim: no compiler `g++` for the scenario (Debian: apt install g++)")
    binary = _BINARIES / source.stem
    if _older(binary, source) or _older(binary, library):
        # As its own Makefile has it, without its warnings.
        command = [compiler, "-std=c++17", "-O3", "-w", f"-I{folder}", f"-L{folder}"]
        _compile(command, source, binary, ["htsim"])
    return Peer((str(binary),), "{key}={value}", {})


def _older(product: Path, source: Path) -> bool:
    return not product.exists() or product.stat().st_mtime < source.stat().st_mtime


def _compile(command: list[str], source: Path, binary: Path, libraries: Sequence[str]) -> None:
    binary.parent.mkdir(parents=True, exist_ok=True)
    # Written aside and renamed, so that an interrupted compilation is not taken for a program.
    with tempfile.TemporaryDirectory(dir=binary.parent) as scratch:
        fresh = Path(scratch) / binary.name
        named = [f"-l{library}" for library in libraries]
        done = subprocess.run(
            [*command, "-o", str(fresh), str(source), *named],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise PeerError(f"{source.name} does not compile:\n{done.stderr}")
        fresh.replace(binary)


def _run(peer: Peer, settings: Mapping[str, str]) -> tuple[float, int]:
    """Run a peer once.

    Returns:
        Its user CPU time in seconds, and the packets that left the bottleneck.

    Raises:
        PeerError: If the peer fails or prints something else than its line of JSON.
    """
    arguments = [peer.argument.format(key=key, value=value) for key, value in settings.items()]
    command = [*peer.command, *arguments]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        # wait4 gives the usage of this one process, whatever else the caller has started.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        printed = out.read()
        complaint = err.read().strip()
    if process.returncode != 0:
        raise PeerError(f"{' '.join(command)}: exit status {process.returncode}\n{complaint}")
    try:
        packets = int(json.loads(printed)["bottleneck_packets_total"])
    except (ValueError, KeyError, TypeError) as error:
        raise PeerError(f"{' '.join(command)}: printed no line of results:\n{printed}") from error
    return usage.ru_utime, packets


def ns_per_packet(
    peer: Peer, scenario: Mapping[str, str], duration: float, repeats: int = REPEATS
) -> float:
    """Time one scenario in one peer.

    Args:
        peer: The simulator.
        scenario: One of :data:`SCENARIOS`.
        duration: Simulated seconds.
        repeats: Runs of each kind; the quickest counts, as all others were disturbed.

    Returns:
        Nanoseconds of user CPU time per packet leaving the bottleneck.

    Raises:
        PeerError: If the peer fails, or the run is too short to tell from its start-up.
    """
    settings = {**scenario, **peer.extra}
    idle = busy = math.inf
    packets = 0
    # In turn, so that a busy spell of the machine does not fall on one kind alone.
    for _ in range(repeats):
        idle = min(idle, _run(peer, {**settings, "duration": str(_NO_TIME)})[0])
        seconds, packets = _run(peer, {**settings, "duration": str(duration)})
        busy = min(busy, seconds)
    if packets == 0 or busy <= idle:
        raise PeerError(
            f"{peer.command[0]}: {duration:g} simulated seconds are too few to time"
            f" ({packets} packets, {busy:.3f} s of CPU, {idle:.3f} s of it start-up)"
        )
    return (busy - idle) / packets * 1e9


def measure_peers(
    ns2_duration: float = NS2_DURATION,
    ns3_duration: float = NS3_DURATION,
    htsim_duration: float = HTSIM_DURATION,
    repeats: int = REPEATS,
    queue_samples: bool = False,
    only: Sequence[str] = ("ns2", "ns3", "htsim"),
) -> dict[str, dict[str, float]]:
    """Time the scenarios in every peer that is installed.

    A peer that is missing is named on standard error and left out of the result.

    The peers count packets and bytes and no more, which is the quickest they can be. ns-2's
    mean and standard deviation of the queue come from sampling it in Tcl, which about doubles
    its time; ``queue_samples`` asks for that.

    Args:
        ns2_duration: Simulated seconds in ns-2.
        ns3_duration: Simulated seconds in ns-3.
        htsim_duration: Simulated seconds in htsim.
        repeats: Runs of each kind; the quickest counts.
        queue_samples: Whether ns-2 samples its queue every 10 ms.
        only: The peers to time.

    Returns:
        Nanoseconds of user CPU time per bottleneck packet, by peer (``ns2``, ``ns3``, ``htsim``)
        and scenario (``a``, ``b``; also ``w`` for ns-2; ``h`` for htsim).

    Raises:
        PeerError: If a peer that is installed fails.
    """
    measured: dict[str, dict[str, float]] = {}
    sample = "0.01" if queue_samples else "0"
    finders: tuple[tuple[str, Callable[[], Peer], float, Mapping[str, Mapping[str, str]]], ...] = (
        ("ns2", lambda: find_ns2(extra={"sample": sample}), ns2_duration, SCENARIOS),
        ("ns3", find_ns3, ns3_duration, SCENARIOS),
        ("htsim", find_htsim, htsim_duration, {"h": FAST}),
    )
    for name, find, duration, scenarios in finders:
        if name not in only:
            continue
        try:
            peer = find()
        except PeerMissing as missing:
            print(f"skipped, {missing}", file=sys.stderr)
            continue
        measured[name] = {
            key: ns_per_packet(peer, scenario, duration, repeats)
            for key, scenario in scenarios.items()
        }
    if "ns2" in measured and not queue_samples:
        measured["ns2"]["w"] = ns_per_packet(find_ns2(_NS2_WEB), WEB, ns2_duration, repeats)
    return measured


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text}: more than 0 is wanted")
    return value


def _table(measured: Mapping[str, Mapping[str, float]]) -> str:
    width = max(len(title) for title in _TITLES.values())
    peers = list(measured)
    lines = [" " * (width + 3) + "".join(f"{peer:>10}" for peer in peers)]
    for key, title in _TITLES.items():
        cells = "".join(
            f"{measured[peer][key]:>10.0f}" if key in measured[peer] else f"{'':>10}"
            for peer in peers
        )
        lines.append(f"{key}  {title:<{width}}{cells}")
    lines.append("ns of user CPU time per packet leaving the bottleneck")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the return value is the exit status."""
    parser = argparse.ArgumentParser(
        description="Time ns-2, ns-3 and htsim, if installed, on redtail's benchmark scenarios."
    )
    parser.add_argument(
        "--duration",
        type=_positive,
        metavar="S",
        help=f"simulated seconds, for all (default: {NS2_DURATION:g} in ns-2, "
        f"{NS3_DURATION:g} in ns-3, {HTSIM_DURATION:g} in htsim)",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        choices=range(1, 21),
        default=REPEATS,
        metavar="N",
        help="runs of each kind, 1 to 20; the quickest counts (default: %(default)s)",
    )
    parser.add_argument(
        "--queue-samples",
        action="store_true",
        help="let ns-2 sample its queue every 10 ms, as it must for the queue's mean and deviation",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    try:
        measured = measure_peers(
            options.duration or NS2_DURATION,
            options.duration or NS3_DURATION,
            options.duration or HTSIM_DURATION,
            options.repeats,
            options.queue_samples,
        )
    except PeerError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(measured))
    elif measured:
        print(_table(measured))
    else:
        print("no peer to measure")
    return 0


if __name__ == "__main__":
    sys.exit(main())
