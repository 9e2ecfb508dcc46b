"""What a packet costs: at the bottleneck of a run, for each TCP, and in each queue discipline.

Of runs it tells time, events and memory per packet, and how replications scale; of campaigns,
what they cost outside the simulation, and how long their results take to open; of compiled
plug-ins, what they cost beside built-in laws (`compiled.py`); of agents in Gymnasium, what a step
costs (`agents.py`); of runs in real time, up to which rate they are punctual (`real_time.py`); how
long redtail takes to start, beside Python alone; and what is installed without extras
(`installed.py`). Run it as ``make bench``, or as ``make bench-profile`` to measure the build that
wheels have, with a profile; with ``--peers`` (``make bench-peers``) the first two rows are also run
in ns-2 and ns-3, the Web case in ns-2 and row h in htsim, where they are installed. Machines are
noisy, so every row is measured several times in turn with the others and the least is quoted beside
the median; compare ratios within one call, not absolute numbers between calls.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import installed
from agents import measure_agents, show_agents
from compiled import measure_compiled, show_compiled
from real_time import measure_live, show_live

from redtail import _native
from redtail.engine import batches, plans

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parent

#: Rows: what they are and the scenario that makes them.
ROWS = {
    "a": ("64 SACK flows + UDP, RED, 10 Mbit/s", "red-64-sack.toml"),
    "b": ("64 NewReno flows, tail drop, 10 Mbit/s", "tail-drop-64-newreno.toml"),
    "c100": ("100 NewReno flows, tail drop, link to scale", "tail-drop-100-newreno.toml"),
    "w": ("1200 Web sessions + UDP, tail drop, 10 Mbit/s", "web-1200-sack.toml"),
    "h": ("64 NewReno flows, tail drop, 100 Mbit/s", "tail-drop-64-newreno-fast.toml"),
    "c16384": ("16384 NewReno flows, tail drop, link to scale", "tail-drop-16384-newreno.toml"),
}


@dataclass(frozen=True)
class Scale:
    """A row of many flows, each with its share of link and buffer.

    Attributes:
        title: What it is.
        beside: The row of few flows with which its cost is compared.
        template: The scenario, without what is said here.
        flows: Flows or users.
        bits: Bits a second of the link for each.
        packets: Packets of the buffer for each.
        duration: Simulated time.
        warmup: The time in which they start, which is not measured.
    """

    title: str
    beside: str
    template: str
    flows: int
    bits: float
    packets: float
    duration: str
    warmup: str

    def scenario(self) -> str:
        """The text of the experiment file."""
        text = (_HERE / "scenarios" / self.template).read_text()
        filled = {
            "FLOWS": self.flows,
            "BITS": round(self.bits * self.flows),
            "LIMIT": round(self.packets * self.flows),
            "DURATION": self.duration,
            "WARMUP": self.warmup,
        }
        for key, value in filled.items():
            text = text.replace(f"@{key}@", str(value))
        return text


#: Rows of many flows, each measured once. In the last nothing is sent: what is left is set-up and
#: report.
SCALE = {
    name: Scale(title, beside, f"scale-{beside[0]}.toml", flows, *share, duration, warmup)
    for name, title, beside, flows, share, duration, warmup in (
        ("c100k", "100,000 NewReno flows", "c100", 100_000, (156_250, 4.69), "15 s", "10 s"),
        ("c1m", "1,000,000 NewReno flows", "c100", 1_000_000, (156_250, 4.69), "12 s", "10 s"),
        ("w1m", "1,000,000 Web sessions", "w", 1_000_000, (8333, 0.25), "60 s", "50 s"),
        ("c1m-start", "c1m, ended after 1 ms", "c100", 1_000_000, (156_250, 4.69), "1 ms", "0 s"),
    )
}

#: Queues of the rows of TCP presets, which `scenarios/preset.toml` makes. Few segments in a
#: hundred are lost in `drop`, which holds two thirds of a bandwidth-delay product; a model
#: of the path ignores losses and needs `deep`, three of them, to have as few.
QUEUES = {
    "drop": '{ kind = "tail-drop", limit = "300 packets" }',
    "deep": '{ kind = "tail-drop", limit = "1200 packets" }',
    "mark": (
        '{ kind = "red", limit = "1200 packets", min_th = "100 packets", max_th = "101 packets",'
        ' max_p = 1.0, w_q = 1.0, ecn = true, above_max_th = "mark" }'
    ),
}

#: Presets that a row has elsewhere than in `drop`. Each queue has a row of SACK besides.
ELSEWHERE = {"bbr": "deep", "bbr3": "deep", "dctcp": "mark", "prague": "mark"}

#: Simulated runs for the scaling row: enough that threads have work for a second.
SCALING_RUNS = 24

#: What a packet's instructions may grow by from the small backlog to the large one. They do
#: not depend on caches; a search through the backlog would grow by up to a hundred.
GROWTH_ALLOWED = 2.0

#: Campaigns that are made: number of runs and rate of the link, which says how short they are.
CAMPAIGNS = [(2000, "100 Mbit/s"), (10_000, "100 Mbit/s"), (10_000, "10 Mbit/s")]

#: Runs of the results that are opened.
OPENED = 100_000

#: Measurements of each vector of agents.
AGENT_REPEATS = 3

#: Runs in real time at a rate at most, until one is punctual.
LIVE_TRIES = 5

#: Starts: what they are, the program beside the Python in use and its arguments, and seconds at
#: most on an idle machine.
STARTS: dict[str, tuple[list[str], float | None]] = {
    "python -c pass": (["python", "-c", "pass"], None),
    "import redtail": (["python", "-c", "import redtail"], 0.3),
    "redtail --help": (["redtail", "--help"], 0.12),
    "redtail list queues": (["redtail", "list", "queues"], 0.2),
    "redtail check": (["redtail", "check", "examples/quickstart.toml"], 0.2),
}

#: Answers: experiments, and seconds at most from the last replication to the prompt, on an idle
#: machine.
ANSWERS = {"quickstart": 1.0, "taildrop-vs-red": 2.0}

#: Runs of each answer.
ANSWER_REPEATS = 5

#: Starts of each kind: most of what disturbs one is short.
START_REPEATS = 20

#: The function of queue_cost that is measured, as callgrind names it.
_MEASURED = "queue_cost::Place<Q>::measured*"


@dataclass
class Row:
    """Measurements of one scenario."""

    nanoseconds: list[float] = field(default_factory=list)
    events: float = 0.0
    peak_kib: int = 0
    seconds: float = 0.0
    packets: int = 0


def preset_rows() -> dict[str, tuple[str, str]]:
    """Queue and TCP of each preset's row, by the row's name; SACK's rows come first."""
    names = list(json.loads(_native.presets()))
    rows = {f"{queue} sack": (queue, '"sack"') for queue in QUEUES}
    rows["mark sack"] = ("mark", '{ preset = "sack", ecn = true }')
    for name in names:
        queue = ELSEWHERE.get(name, "drop")
        rows.setdefault(f"{queue} {name}", (queue, f'"{name}"'))
    return rows


def preset_scenarios(folder: Path) -> dict[str, Path]:
    """Write the scenarios of the presets' rows to `folder`; their files by the rows' names."""
    template = (_HERE / "scenarios" / "preset.toml").read_text()
    files = {}
    for name, (queue, tcp) in preset_rows().items():
        files[name] = folder / f"{name.replace(' ', '-')}.toml"
        text = template.replace("@QUEUE@", QUEUES[queue]).replace("@TCP@", tcp)
        files[name].write_text(text)
    return files


def scale_scenarios(folder: Path) -> dict[str, Path]:
    """Write the scenarios of the rows of many flows to `folder`; their files by the rows' names."""
    files = {name: folder / f"{name}.toml" for name in SCALE}
    for name, file in files.items():
        file.write_text(SCALE[name].scenario())
    return files


@dataclass
class Cell:
    """Measurements of one discipline at one backlog and number of flows."""

    nanoseconds: list[float] = field(default_factory=list)
    #: Executed for a packet; None where they cannot be counted.
    instructions: float | None = None


#: By discipline, then by backlog and flows.
Queues = dict[str, dict[tuple[int, int], Cell]]


def trained() -> Path | None:
    """The profile of redtail's runs with which `make profile` built the module; None without."""
    stamp = Path(sys.prefix) / ".release"
    named = stamp.read_text().strip() if stamp.exists() else ""
    return Path(named) if named else None


def build(
    package: str,
    name: str,
    *,
    kind: str = "bin",
    profile: str = "bench",
    together_with: str | None = None,
    trained: Path | None = None,
) -> Path:
    """Build an optimised measuring program, a binary or a benchmark, and return its path.

    Named `together_with` it, another package gives shared dependencies the features that it needs,
    so that what was compiled for that package is used. The profile `trained` of a module fits only
    then: the names of functions depend on the features.
    """
    environment = dict(os.environ)
    if trained is not None:
        environment["CARGO_BUILD_RUSTFLAGS"] = f"-Cprofile-use={trained}"
        environment["CARGO_TARGET_DIR"] = str(trained.parent)
    command = ["cargo", "build", "--locked", "--profile", profile, "-p", package, f"--{kind}", name]
    command += ["-p", together_with] if together_with else []
    command += ["--message-format", "json"]
    done = subprocess.run(
        command, cwd=_ROOT, check=True, stdout=subprocess.PIPE, text=True, env=environment
    )
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return Path(message["executable"])
    raise RuntimeError(f"cargo built no {name}")


def measure_once(program: Path, scenario: Path, row: Row) -> None:
    """Run one scenario in a process of its own and add what it measured to `row`."""
    done = subprocess.run([program, scenario], check=True, stdout=subprocess.PIPE, text=True)
    report = json.loads(done.stdout)
    row.nanoseconds.append(report["seconds"] * 1e9 / max(report["packets"], 1))
    row.events = report["events"] / max(report["packets"], 1)
    row.peak_kib = max(row.peak_kib, report["peak_kib"])
    row.seconds = report["seconds"]
    row.packets = report["packets"]


def measure_rows(program: Path, scenarios: dict[str, Path], repeats: int) -> dict[str, Row]:
    """Measure every row `repeats` times, in turn."""
    rows = {name: Row() for name in scenarios}
    for _ in range(repeats):
        for name, scenario in scenarios.items():
            measure_once(program, scenario, rows[name])
    return rows


def build_rows() -> Path:
    """Build the program that measures rows, with the profile that the module has."""
    return build("redtail-bench", "packet_cost", together_with="redtail-py", trained=trained())


def measure_written(scenarios: Callable[[Path], dict[str, Path]], repeats: int) -> dict[str, Row]:
    """Measure the rows whose scenarios a function writes to a folder."""
    with TemporaryDirectory() as folder:
        return measure_rows(build_rows(), scenarios(Path(folder)), repeats)


def measure_scaling(repeats: int) -> float:
    """Speed-up of replications on two threads against one, the median of `repeats`."""
    text = (_HERE / "scenarios" / ROWS["a"][1]).read_text()
    plan = plans.plan(text)
    scenarios = [plan.scenario(0, i) for i in range(SCALING_RUNS)]

    def seconds(threads: int) -> float:
        start = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(batches.run_one, scenarios))
        return time.perf_counter() - start

    return statistics.median(seconds(1) / seconds(2) for _ in range(repeats))


def measure_starts(repeats: int) -> dict[str, list[float]]:
    """Seconds from the start of each process of `STARTS` to its end, all in turn."""
    programs = Path(sys.executable).parent
    seconds: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(repeats):
        for name, ((program, *words), _most) in STARTS.items():
            start = time.perf_counter()
            command = [str(programs / program), *words]
            subprocess.run(command, check=True, capture_output=True, cwd=_ROOT)
            seconds[name].append(time.perf_counter() - start)
    return seconds


def measure_answers(repeats: int) -> dict[str, list[dict[str, float]]]:
    """What `redtail run` takes: seconds in all, of the runs, and from these to the prompt.

    The same again of stored runs, whose figures are drawn already.
    """
    program = str(Path(sys.executable).parent / "redtail")
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(repeats):
        for name in ANSWERS:
            with tempfile.TemporaryDirectory() as out:
                command = [program, "run", f"examples/{name}.toml", "--out", out]
                first, again = _timed(command), _timed(command)
            found.setdefault(name, []).append({**first, "again_s": again["whole_s"]})
    return found


def _timed(command: list[str]) -> dict[str, float]:
    start = time.perf_counter()
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        cwd=_ROOT,
    ) as process:
        assert process.stdout is not None
        begin = process.stdout.readline()  # the table comes when all runs are made
        answered = time.perf_counter()
        text = (begin + process.stdout.read()).decode()
    end = time.perf_counter()
    runs = re.search(r"\d runs?(?:, \d+ of them reused)?, in ([\d.]+) s", text)
    assert runs is not None and process.returncode == 0, text
    return {"whole_s": end - start, "runs_s": float(runs[1]), "after_s": end - answered}


def show_answers(answers: dict[str, list[dict[str, float]]]) -> None:
    """Print the table of answers: the fastest of each."""
    print(
        f"\n{'answer':24}{'runs s':>8}{'whole s':>9}{'to runs':>9}{'after s':>9}{'at most':>9}"
        f"{'again s':>9}"
    )
    for name, each in answers.items():
        least = {key: min(one[key] for one in each) for key in each[0]}
        ratio = least["whole_s"] / max(least["runs_s"], 0.1)
        print(
            f"{name:24}{least['runs_s']:8.1f}{least['whole_s']:9.2f}{ratio:9.1f}"
            f"{least['after_s']:9.2f}{ANSWERS[name]:9.1f}{least['again_s']:9.2f}"
        )


def show_starts(seconds: dict[str, list[float]]) -> None:
    """Print the table of starts."""
    bare = min(next(iter(seconds.values())))
    print(f"\n{'start':24}{'ms':>8}{'median':>8}{'to python':>11}{'at most':>9}")
    for name, each in seconds.items():
        least, median = min(each), statistics.median(each)
        most = STARTS[name][1]
        print(f"{name:24}{1e3 * least:8.0f}{1e3 * median:8.0f}{least / bare:11.1f}", end="")
        print("" if most is None else f"{1e3 * most:9.0f}")


def measure_campaigns() -> list[dict[str, Any]]:
    """What `campaign.py` measures: each campaign, then the opening of results."""
    calls = [["run", str(runs), rate] for runs, rate in CAMPAIGNS]
    # An installed redtail is compiled; so is this one, by the first call.
    environment = os.environ | {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(_ROOT / "target" / "pycache"),
    }
    reports = []
    for words in [["run", "10"], *calls, ["open", str(OPENED)]]:
        command = [sys.executable, str(_HERE / "campaign.py"), *words]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=environment
        )
        reports.append(json.loads(done.stdout))
    return reports[1:]


def show_campaigns(reports: list[dict[str, Any]]) -> None:
    """Print what campaigns cost outside the simulation."""
    heads = (
        f"{'sim ms/run':>12}{'outside':>10}{'share':>8}{'start s':>9}{'without':>9}{'peak MB':>9}"
    )
    print(f"\n{'campaign':30}{heads}")
    for (runs, rate), report in zip(CAMPAIGNS, reports, strict=False):
        inside = report["inside_s"] / runs * 1e3
        outside = report["cpu_s"] / runs * 1e3 - inside
        share = 1 - report["inside_s"] / report["cpu_s"]
        without = 1 - report["inside_s"] / (report["cpu_s"] - report["start_s"])
        name = f"{runs} runs of 1 s at {rate}"
        peak = report["peak_kib"] / 1024
        print(f"{name:30}{inside:12.2f}{outside:10.2f}{share:8.1%}", end="")
        print(f"{report['start_s']:9.2f}{without:9.1%}{peak:9.0f}")
    few, many = reports[0], reports[1]
    growth = (many["peak_kib"] - few["peak_kib"]) * 1024 / (many["runs"] - few["runs"])
    print(f"memory per run: {growth:.0f} B")
    last = reports[-1]
    print(
        f"results of {last['runs']} runs: opened in {last['load_s']:.2f} s, with a table and means "
        f"in {last['table_s']:.2f} s; a column scanned in {last['scan_s']:.3f} s"
    )


def measure_queues(program: Path, repeats: int) -> Queues:
    """Measure every discipline `repeats` times, all in turn, and count its instructions."""
    queues: Queues = {}

    def cell(report: dict[str, Any]) -> Cell:
        place = report["backlog"], report["flows"]
        return queues.setdefault(report["kind"], {}).setdefault(place, Cell())

    for _ in range(repeats):
        done = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True)
        for report in map(json.loads, done.stdout.splitlines()):
            cell(report).nanoseconds.append(report["ns_per_packet"])
    for report, instructions in count_instructions(program):
        cell(report).instructions = instructions / report["packets"]
    return queues


def count_instructions(program: Path) -> list[tuple[dict[str, Any], int]]:
    """Each line of queue_cost with the instructions of its measurement, by callgrind.

    Empty where valgrind is not installed.
    """
    if shutil.which("valgrind") is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        # The two patterns must differ: callgrind keeps one set of options for each.
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        command += ["--toggle-collect=*measured*", f"--dump-after={_MEASURED}", str(program)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        reports = [json.loads(line) for line in done.stdout.splitlines()]
        return [
            (report, total(out.with_suffix(f".{number}")))
            for number, report in enumerate(reports, start=1)
        ]


def total(dump: Path) -> int:
    """The instructions in a dump of callgrind."""
    lines = dump.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("totals:"))


def show_queues(queues: Queues) -> None:
    """Print the table of the disciplines, and name those whose cost grows with backlog."""
    places = list(queues["tail-drop"])
    backlogs = sorted({backlog for backlog, _ in places})
    flow_counts = sorted({flows for _, flows in places})
    least, most = backlogs[0], backlogs[-1]
    print()
    print("queue: ns/packet (enqueue and dequeue), at a backlog of packets/from flows,")
    print("the ratio to tail drop at the first, instructions/packet there, and their growth")
    print(f"from {least} to {most} packets")
    heads = [f"{backlog}/{flows}" for backlog, flows in places]
    print(f"{'kind':24}" + "".join(f"{head:>12}" for head in heads), end="")
    print(f"{'ratio':>8}{'instr.':>8}{'growth':>8}")
    base = min(queues["tail-drop"][places[0]].nanoseconds)
    growing = []
    for kind, cells in queues.items():
        times = [min(cells[place].nanoseconds) for place in places]
        print(f"{kind:24}" + "".join(f"{ns:12.1f}" for ns in times), end="")
        print(f"{times[0] / base:8.2f}", end="")
        counted = {place: cell.instructions for place, cell in cells.items() if cell.instructions}
        if counted:
            growth = max(counted[most, n] / counted[least, n] for n in flow_counts)
            print(f"{counted[places[0]]:8.0f}{growth:8.2f}", end="")
            if growth > GROWTH_ALLOWED:
                growing.append(kind)
        print()
    if growing:
        print(f"more than {GROWTH_ALLOWED:g} times the instructions: {', '.join(growing)}")


def show(rows: dict[str, Row], scaling: float) -> None:
    """Print the table."""
    print(f"{'row':8}{'scenario':48}{'ns/packet':>10}{'median':>8}{'events':>8}{'peak MB':>9}")
    for name, row in rows.items():
        least, median = min(row.nanoseconds), statistics.median(row.nanoseconds)
        peak = row.peak_kib / 1024
        title = ROWS[name][0]
        print(f"{name:8}{title:48}{least:10.0f}{median:8.0f}{row.events:8.2f}{peak:9.1f}")
    web, bulk = (min(rows[name].nanoseconds) for name in ("w", "b"))
    print(f"Web against bulk traffic, per packet: {web / bulk:.2f} times")
    many, few = (min(rows[name].nanoseconds) for name in ("c16384", "c100"))
    print(f"16384 flows against 100, per packet: {many / few:.2f} times")
    print(f"replications on 2 threads against 1: {scaling:.2f} times as fast")


def show_scale(scale: dict[str, Row], rows: dict[str, Row]) -> None:
    """Print the rows of many flows beside those of few."""
    heads = f"{'ns/packet':>10}{'to':>6}{'ratio':>7}{'s':>8}{'B/flow':>9}"
    print(f"\n{'row':10}{'scenario':28}{heads}")
    for name, row in scale.items():
        made = SCALE[name]
        print(f"{name:10}{made.title:28}", end="")
        if row.packets:
            least = min(row.nanoseconds)
            ratio = least / min(rows[made.beside].nanoseconds)
            print(f"{least:10.0f}{made.beside:>6}{ratio:7.2f}", end="")
        else:
            print(f"{'':23}", end="")
        print(f"{row.seconds:8.1f}{row.peak_kib * 1024 / made.flows:9.0f}")


def show_presets(rows: dict[str, Row]) -> None:
    """Print the table of the TCP presets."""
    print(f"\n{'queue':6}{'preset':14}{'ns/packet':>10}{'median':>8}{'events':>8}{'to sack':>9}")
    for name, row in rows.items():
        queue, preset = name.split()
        least, median = min(row.nanoseconds), statistics.median(row.nanoseconds)
        ratio = least / min(rows[f"{queue} sack"].nanoseconds)
        print(f"{queue:6}{preset:14}{least:10.0f}{median:8.0f}{row.events:8.2f}{ratio:9.2f}")


def show_peers(rows: dict[str, Row]) -> None:
    """Run the peers and print the ratios."""
    sys.path.insert(0, str(_HERE / "peers"))
    from run import measure_peers  # type: ignore[import-not-found, unused-ignore]

    plain = measure_peers()
    sampled = measure_peers(queue_samples=True, only=["ns2"]) if "ns2" in plain else {}
    labelled = {
        "ns-2, counters only": plain.get("ns2"),
        "ns-2, queue sampled every 10 ms": sampled.get("ns2"),
        "ns-3": plain.get("ns3"),
        "htsim": plain.get("htsim"),
    }
    for label, measured in labelled.items():
        if measured is None:
            continue
        for row, nanoseconds in measured.items():
            ratio = nanoseconds / min(rows[row].nanoseconds)
            print(f"{row:8}{label:48}{nanoseconds:10.0f}   {ratio:.1f} times redtail")


#: What can be measured alone (``--only``). The peers are left out otherwise.
PARTS = (
    *(
        "rows",
        "scale",
        "presets",
        "starts",
        "installed",
        "campaigns",
        "queues",
        "compiled",
        "agents",
        "real-time",
    ),
    "peers",
)


def _parts(text: str) -> set[str]:
    """The parts named in an argument, between commas."""
    named = set(text.split(","))
    if unknown := named - set(PARTS):
        raise argparse.ArgumentTypeError(
            f"{', '.join(sorted(unknown))}: accepted: {', '.join(PARTS)}"
        )
    return named


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7, help="measurements of each row (7)")
    parser.add_argument("--peers", action="store_true", help="also run ns-2, ns-3 and htsim")
    parser.add_argument("--only", type=_parts, metavar="PARTS", help=f"some of: {', '.join(PARTS)}")
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    options = parser.parse_args(arguments)
    parts = options.only or set(PARTS) - {"peers"}
    if options.peers:
        parts.add("peers")
    profile = trained()
    if not options.json:
        built = "without a profile" if profile is None else f"with the profile {profile.name}"
        print(f"native module and program of the rows: built {built}\n")
    tables: dict[str, Any] = {"profile": profile is not None}
    rows: dict[str, Row] = {}
    if parts & {"rows", "scale", "peers"}:  # with which the others are compared
        named = {name: _HERE / "scenarios" / file for name, (_, file) in ROWS.items()}
        rows = measure_rows(build_rows(), named, options.repeats)
        scaling = measure_scaling(3)
        tables |= {"rows": _plain(rows), "scaling": scaling}
        if not options.json:
            show(rows, scaling)
    if "scale" in parts:
        scale = measure_written(scale_scenarios, 1)
        tables["scale"] = _plain(scale)
        if not options.json:
            show_scale(scale, rows)
    if "presets" in parts:
        presets = measure_written(preset_scenarios, options.repeats)
        tables["presets"] = _plain(presets)
        if not options.json:
            show_presets(presets)
    if "starts" in parts:
        tables["starts"] = measure_starts(START_REPEATS)
        tables["answers"] = measure_answers(ANSWER_REPEATS)
        if not options.json:
            show_starts(tables["starts"])
            show_answers(tables["answers"])
    if "installed" in parts:
        tables["installed"] = installed.measured()
        if not options.json:
            installed.show(tables["installed"])
    if "campaigns" in parts:
        tables["campaigns"] = measure_campaigns()
        if not options.json:
            show_campaigns(tables["campaigns"])
    if "queues" in parts:
        queues = measure_queues(build("redtail-qdisc", "queue_cost", kind="bench"), options.repeats)
        tables["queues"] = [
            {"kind": kind, "backlog": backlog, "flows": flows, **vars(cell)}
            for kind, places in queues.items()
            for (backlog, flows), cell in places.items()
        ]
        if not options.json:
            show_queues(queues)
    if "compiled" in parts:
        pairs = measure_compiled(options.repeats)
        tables["compiled"] = [vars(pair) | {"ratio": pair.ratio} for pair in pairs]
        if not options.json:
            show_compiled(pairs)
    if "agents" in parts:
        agents = measure_agents(AGENT_REPEATS)
        tables["agents"] = [vars(each) | {"ratio": each.ratio} for each in agents]
        if not options.json:
            show_agents(agents)
    if "real-time" in parts:
        real_time = measure_live(LIVE_TRIES)
        tables["real_time"] = {name: _each(found) for name, found in real_time.items()}
        if not options.json:
            show_live(real_time)
    if options.json:
        print(json.dumps(tables))
    if "peers" in parts:
        show_peers(rows)
    return 0


def _plain(rows: dict[str, Row]) -> dict[str, Any]:
    return {name: vars(row) for name, row in rows.items()}


def _each(found: Iterable[object]) -> list[dict[str, Any]]:
    return [vars(one) for one in found]


if __name__ == "__main__":
    sys.exit(main())
