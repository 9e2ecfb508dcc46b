"""Compare redtail with ns-3: the same bulk flows through the same queue in both.

Run it as ``make compare-ns3``. Twelve scenarios are run in ns-3 as it is, in ns-3 with the
rules of the RFCs put in where it departs from them, and in redtail; a table tells which
figures agree. ``--differences`` runs the experiments of ``docs/explanation/ns3.md`` instead,
one for each difference. Both take a few minutes. Without ns-3 nothing is run, and a message
says what is missing; that is not an error.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from run import Peer, PeerError, PeerMissing, find_ns3

import redtail

_HERE = Path(__file__).resolve().parent
_SOURCE = _HERE / "compare-ns3.cc"

#: Runs of each scenario: seeds in ns-3, replications in redtail.
NS3_RUNS = 3
REDTAIL_RUNS = 8

#: Figures that are compared, with relative and absolute tolerance: those of the comparison
#: with ns-2 (tests/reference/README.md).
TOLERANCES: Mapping[str, tuple[float, float]] = {
    "goodput": (0.01, 0.0),
    "utilization": (0.01, 0.0),
    "loss": (0.10, 0.001),
    "queue_length_mean": (0.05, 3.0),
    "queue_length_std": (0.25, 0.0),
}

#: How figures are shown: heading, factor and format.
_SHOWN: Mapping[str, tuple[str, float, str]] = {
    "goodput": ("goodput, Mbit/s", 1e-6, ".2f"),
    "utilization": ("utilization, %", 100, ".1f"),
    "loss": ("loss, %", 100, ".2f"),
    "mark": ("marked, %", 100, ".2f"),
    "queue_length_mean": ("queue, packets", 1, ".1f"),
    "queue_length_std": ("queue sd", 1, ".1f"),
    "fairness": ("fairness", 1, ".3f"),
    "even_share": ("share of the first, %", 100, ".0f"),
    "timeouts": ("timeouts", 1, ".1f"),
    "fast_recoveries": ("fast recoveries", 1, ".0f"),
    "reduced_to": ("ssthresh / flight", 1, ".2f"),
    "exits_that_grow": ("ends that grow, %", 100, ".0f"),
}


@dataclass(frozen=True)
class Setting:
    """Bulk flows through one queue.

    Attributes:
        tcp: TCP of the flows.
        queue: The queue's kind.
        flows: Their number; flow i sits on host i modulo the number of ``rtts``.
        rtts: Base round trip of each host, ms.
        rate: Of the bottleneck, Mbit/s.
        limit: Of the queue, packets.
        thresholds: RED's, packets; two alike ask for marking of all beyond, unaveraged.
        ecn: Whether TCP and queue use ECN.
        mtu: With no more than this many bytes left, CoDel drops nothing.
        other: TCP of the hosts with odd numbers, if another.
        duration: s; the first 20 do not count.
        keys: What redtail's TCP has beside what the TCP asks for, as TOML.
        device: Whether ns-3's device holds a packet that the queue disc does not count.
        random_loss: Fraction of the packets that is lost behind the queue.
        rules: Rules of the RFCs that ns-3 is to follow.
    """

    tcp: str
    queue: str
    flows: int
    rtts: tuple[int, ...] = (40, 60, 80, 100)
    rate: float = 10.0
    limit: int = 1000
    thresholds: tuple[int, int] = (20, 60)
    ecn: bool = False
    mtu: int = 1500
    other: str = ""
    duration: int = 120
    keys: str = ""
    device: bool = False
    random_loss: float = 0.0
    rules: str = "none"

    def for_ns3(self, seed: int) -> list[str]:
        """The arguments of compare-ns3."""
        settings = {
            "tcp": self.tcp,
            "queue": "red" if self.queue == "step" else self.queue,
            "flows": self.flows,
            "rtts": ",".join(map(str, self.rtts)),
            "rate": self.rate,
            "limit": self.limit,
            "minth": self.thresholds[0],
            "maxth": self.thresholds[1],
            "ecn": int(self.ecn),
            "guard": self.mtu + 1,
            "device": int(self.device),
            "random-loss": self.random_loss,
            "rules": self.rules,
            "duration": self.duration,
            "seed": seed,
        }
        if self.other:
            settings["other"] = self.other
        return [f"--{key}={value}" for key, value in settings.items()]

    def _tcp(self, name: str) -> str:
        exact = "delayed_ack = false"
        wanted = {
            "cubic": 'preset = "cubic", slow_start = "standard"',
            "dctcp": (
                'preset = "sack", ecn = true, ecn_feedback = "dctcp", ecn_reduction = "dctcp"'
            ),
            "ledbat": (
                'preset = "ledbat", slow_start = "standard", timestamps = true, mss = "1448 B",'
                ' header = "52 B"'
            ),
            "bbr": 'preset = "bbr", timestamps = false, mss = "1460 B", header = "40 B"',
        }.get(name, f'preset = "{name}"')
        if self.ecn and name != "dctcp":
            wanted += ", ecn = true"
        return f"{{ {wanted}, {exact}{', ' if self.keys else ''}{self.keys} }}"

    def _queue(self) -> str:
        low, high = self.thresholds
        ecn = f"ecn = {str(self.ecn).lower()}"
        guard = f'{ecn}, mtu = "{self.mtu} B"'
        keys = {
            "tail-drop": "",
            "red": (
                f', min_th = "{low} packets", max_th = "{high} packets", mean_packet = "1500 B"'
                f', spacing = "wait", {ecn}'
            ),
            # ns-3 marks the packet that finds so many; this marks what finds more.
            "step": f', threshold = "{low - 1} packets"',
            "codel": f", {guard}",
            "fq-codel": f', quantum = "1500 B", {guard}',
            "pie": f", derandomize = false, {ecn}",
        }[self.queue]
        return f'{{ kind = "{self.queue}", limit = "{self.limit} packets"{keys} }}'

    def for_redtail(self, runs: int) -> str:
        """The experiment file."""
        names = [self.tcp, self.other] if self.other else [self.tcp]
        text = (
            f'name = "redtail and ns-3"\nduration = "{self.duration} s"\nwarmup = "20 s"\n'
            f"replications = {runs}\nseed = 1\n"
            'host_jitter = "0 s"\n\n'  # hosts of ns-3 send at once
            "[bottleneck]\n"
            f'rate = "{self.rate:g} Mbit/s"\ndelay = "1 ms"\nqueue = {self._queue()}\n'
        )
        if self.random_loss:
            text += f"wire.loss = {self.random_loss}\n"
        for index, name in enumerate(names):
            rtts = self.rtts[index :: len(names)]
            delays = ", ".join(f'"{rtt - 1} ms"' for rtt in rtts)
            text += (
                f'\n[[traffic]]\nname = "{"abc"[index]}"\nkind = "bulk"\n'
                f"flows = {self.flows // len(names)}\ntcp = {self._tcp(name)}\n"
                f'access_delay = [{delays}]\nstart = "uniform 0..4 s"\n'
            )
        return text


#: What is compared: queues that drop, TCPs whose differences can be taken out, 1 to 32 flows.
SCENARIOS: Mapping[str, Setting] = {
    "tail drop, 1 SACK": Setting("sack", "tail-drop", 1, limit=60),
    "tail drop, 4 SACK": Setting("sack", "tail-drop", 4, limit=100),
    "tail drop, 16 SACK": Setting("sack", "tail-drop", 16, limit=100),
    "RED, 4 SACK": Setting("sack", "red", 4, limit=150),
    "RED, 8 SACK": Setting("sack", "red", 8, limit=150),
    "RED, 32 SACK": Setting("sack", "red", 32, limit=150),
    "CoDel, 4 SACK": Setting("sack", "codel", 4),
    "CoDel, 16 SACK": Setting("sack", "codel", 16),
    "FQ-CoDel, 2 SACK": Setting("sack", "fq-codel", 2),
    "PIE, 8 SACK": Setting("sack", "pie", 8),
    "PIE, 32 SACK": Setting("sack", "pie", 32),
    "tail drop, 4 CUBIC": Setting("cubic", "tail-drop", 4, limit=100),
}


@dataclass(frozen=True)
class Difference:
    """An experiment about one difference.

    Attributes:
        title: What the page calls it.
        figures: What is told.
        setting: What all runs have.
        rule: The RFC's rule, for a row of ns-3 with that rule; none if there is none.
        others: Rules that ns-3 follows in all its rows, so that this difference stands alone.
        ns3: Further rows of ns-3: label and what they have.
        ours: Further rows of redtail: label and what they have.
    """

    title: str
    figures: tuple[str, ...]
    setting: Setting
    rule: str = ""
    others: str = "none"
    ns3: tuple[tuple[str, Mapping[str, object]], ...] = ()
    ours: tuple[tuple[str, Mapping[str, object]], ...] = ()


_RENO = "flight,exit"

#: One for each difference of docs/explanation/ns3.md that can be run.
DIFFERENCES: Sequence[Difference] = (
    Difference(
        "ssthresh from the pipe",
        ("reduced_to", "utilization", "loss", "queue_length_mean"),
        Setting("sack", "pie", 8),
        rule="flight",
        others="exit",
    ),
    Difference(
        "growth when recovery ends",
        ("exits_that_grow", "loss", "queue_length_mean", "timeouts"),
        Setting("sack", "pie", 32),
        rule="exit",
        others="flight",
    ),
    Difference(
        "NewReno without SACK",
        ("goodput", "utilization", "loss", "queue_length_mean", "timeouts"),
        Setting("newreno", "tail-drop", 4, limit=100),
        rule=_RENO,
    ),
    Difference(
        "CUBIC's Reno-friendly region",
        ("goodput",),
        Setting("cubic", "tail-drop", 1, rtts=(20,), rate=50, random_loss=0.01),
        rule="friendly",
        others=_RENO,
    ),
    Difference(
        "Vegas",
        ("queue_length_mean", "fairness"),
        Setting("vegas", "tail-drop", 8, rtts=(40,), limit=300),
        rule="samples",
    ),
    Difference(
        "LEDBAT",
        ("queue_length_mean", "goodput"),
        Setting("ledbat", "tail-drop", 1, rtts=(40,), limit=300),
        rule="allowed",
    ),
    Difference(
        "DCTCP",
        ("timeouts", "mark", "queue_length_mean", "fairness"),
        Setting("dctcp", "step", 16, rtts=(10,), thresholds=(10, 10), ecn=True),
        rule="least",
    ),
    Difference(
        "BBR",
        ("utilization", "loss", "queue_length_mean", "fairness", "timeouts"),
        Setting("bbr", "tail-drop", 4, limit=30),
    ),
    Difference(
        "FQ-CoDel's guard",
        ("queue_length_mean", "loss", "utilization"),
        Setting("sack", "fq-codel", 10, rtts=(50,)),
        others=_RENO,
        ns3=(("its guard at its least", {"mtu": 0}),),
        ours=(("no guard (mtu = 0 B)", {"mtu": 0}),),
    ),
    Difference(
        "CoDel's next mark",
        ("mark", "queue_length_mean"),
        Setting("sack", "codel", 8, rate=4, ecn=True),
        others=_RENO,
    ),
    Difference(
        "RED with small thresholds",
        ("utilization", "loss", "queue_length_mean"),
        Setting("sack", "red", 5, limit=30, thresholds=(5, 15)),
        others=_RENO,
    ),
    Difference(
        "the device's packet",
        ("queue_length_mean", "loss", "utilization"),
        Setting("sack", "codel", 4, rate=4),
        others=_RENO,
        ns3=(("the device holds a packet", {"device": True}),),
    ),
)


def in_ns3(peer: Peer, setting: Setting, runs: int) -> dict[str, float]:
    """Means over seeds of every figure that compare-ns3 prints.

    Raises:
        PeerError: If a run fails or prints something else.
    """
    lines = []
    for seed in range(1, runs + 1):
        command = [*peer.command, *setting.for_ns3(seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            lines.append(json.loads(done.stdout))
        except ValueError as error:
            printed = done.stdout + done.stderr
            raise PeerError(f"{' '.join(command)}: printed no results:\n{printed}") from error
    return {key: statistics.fmean(line[key] for line in lines) for key in lines[0]}


def in_redtail(setting: Setting, runs: int, folder: Path) -> dict[str, float]:
    """Means over replications of every metric."""
    file = folder / "compare.toml"
    file.write_text(setting.for_redtail(runs))
    (case,) = redtail.run(file, out=folder / "runs").as_json()["cases"]
    all_means = {key: value["mean"] for key, value in case["metrics"].items()}
    first = {key[2:]: mean for key, mean in all_means.items() if key.startswith("a.")}
    means = {**first, **all_means}
    if setting.other:
        means["even_share"] = first["goodput"] / (first["goodput"] + all_means["b.goodput"])
    return means


def agrees(figure: str, ours: float, theirs: float) -> bool:
    """Whether a figure of redtail's is within the tolerance of ns-3's."""
    relative, absolute = TOLERANCES[figure]
    return abs(ours - theirs) <= max(relative * abs(theirs), absolute)


def _cell(figure: str, value: float | None) -> str:
    if value is None:
        return ""
    _, factor, form = _SHOWN.get(figure, (figure, 1, ".3f"))
    return format(value * factor, form)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown whose columns are aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| "
        + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    )


def compare(peer: Peer, runs: int, jobs: int) -> str:
    """The table of agreement.

    Args:
        peer: ns-3's program.
        runs: Seeds in ns-3.
        jobs: Runs of ns-3 at a time.

    Raises:
        PeerError: If a run of ns-3 fails.
    """
    with ThreadPoolExecutor(jobs) as pool:
        plain = [pool.submit(in_ns3, peer, each, runs) for each in SCENARIOS.values()]
        ruled = [
            pool.submit(in_ns3, peer, replace(each, rules="rfc"), runs)
            for each in SCENARIOS.values()
        ]
        with TemporaryDirectory() as folder:
            ours = [in_redtail(each, REDTAIL_RUNS, Path(folder)) for each in SCENARIOS.values()]
        rows = []
        counts = [0, 0]
        for name, mine, as_it_is, by_rfc in zip(SCENARIOS, ours, plain, ruled, strict=True):
            line = [name]
            for figure in TOLERANCES:
                cells = [_cell(figure, mine[figure])]
                for index, theirs in enumerate((by_rfc.result(), as_it_is.result())):
                    agreed = agrees(figure, mine[figure], theirs[figure])
                    counts[index] += agreed
                    cells.append(_cell(figure, theirs[figure]) + ("" if agreed else "*"))
                line.append(" / ".join(cells))
            rows.append(line)
    total = len(SCENARIOS) * len(TOLERANCES)
    head = ["scenario", *(_SHOWN[figure][0] for figure in TOLERANCES)]
    return (
        f"redtail / ns-3 with the RFCs' rules / ns-3 as it is; * is outside the tolerance\n\n"
        f"{_table(head, rows)}\n\n"
        f"{counts[0]} of {total} figures agree with ns-3 with the RFCs' rules, "
        f"{counts[1]} with ns-3 as it is."
    )


def differ(peer: Peer, wanted: Difference, runs: int, jobs: int) -> str:
    """The table of one difference.

    Raises:
        PeerError: If a run of ns-3 fails.
    """
    base = replace(wanted.setting, rules=wanted.others)
    theirs = [("ns-3", base)]
    if wanted.rule:
        rules = wanted.rule if wanted.others == "none" else f"{wanted.others},{wanted.rule}"
        theirs.append(("ns-3 with the RFC's rule", replace(base, rules=rules)))
    theirs += [(f"ns-3, {label}", replace(base, **change)) for label, change in wanted.ns3]  # type: ignore[arg-type]
    ours = [("redtail", base)]
    ours += [(f"redtail, {label}", replace(base, **change)) for label, change in wanted.ours]  # type: ignore[arg-type]
    rows = []
    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(lambda row: in_ns3(peer, row[1], runs), theirs))
    with TemporaryDirectory() as folder:
        found += [in_redtail(setting, REDTAIL_RUNS, Path(folder)) for _, setting in ours]
    for (label, _), means in zip([*theirs, *ours], found, strict=True):
        rows.append([label, *(_cell(figure, means.get(figure)) for figure in wanted.figures)])
    head = [wanted.title, *(_SHOWN.get(figure, (figure,))[0] for figure in wanted.figures)]
    return _table(head, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print; the return value is the exit status."""
    parser = argparse.ArgumentParser(description="Compare redtail with ns-3, if it is installed.")
    parser.add_argument(
        "--differences",
        nargs="?",
        const="",
        metavar="WORD",
        help="the experiments of docs/explanation/ns3.md instead, or those with WORD in the title",
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=NS3_RUNS,
        metavar="N",
        help="seeds of each scenario in ns-3 (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="runs of ns-3 at a time (default: one for each processor)",
    )
    options = parser.parse_args(arguments)
    try:
        peer = find_ns3(_SOURCE)
        if options.differences is None:
            print(compare(peer, options.runs, options.jobs))
            return 0
        for wanted in DIFFERENCES:
            if options.differences in wanted.title:
                print(differ(peer, wanted, options.runs, options.jobs), end="\n\n", flush=True)
    except PeerMissing as missing:
        print(f"skipped, {missing}", file=sys.stderr)
    except PeerError as error:
        print(f"compare_ns3.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
