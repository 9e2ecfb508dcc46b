"""Puts each rule of `redtail advise` to a test: a queue by the rule, and the same without it.

    .venv/bin/python docs/explanation/advice_rules.py

It writes the tables of `advice-rules.md`; with `--kernels` that of a kernel's CAKE and TCP, which
takes QEMU and six minutes more. Both sides have the loads, the seeds and the margins of
an advice (`redtail.lines.advice`), and differ in one rule. With one core it takes ten minutes;
runs that are there already are taken from `runs/advice-rules`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import redtail
from redtail.analysis.case import CaseResult
from redtail.analysis.digits import shown
from redtail.analysis.stats import Estimate, estimate
from redtail.experiment import toml_key, toml_value
from redtail.lines import Line, queue_parameters
from redtail.lines.advice.access import carried
from redtail.lines.advice.candidates import Candidate, Setting, candidate
from redtail.lines.advice.loads import most_flows
from redtail.lines.advice.objectives import OBJECTIVES, Objective, in_turn, measured
from redtail.lines.advice.ranking import Compared, compared
from redtail.lines.advice.simulated import EFFORTS, HALF, Simulated, experiment_text, simulated
from redtail.studies.runner import quietly

PAGE = Path(__file__).with_name("advice-rules.md")
RUNS = Path("runs/advice-rules")

HOME = Line(50e6, 10e6, 0.03, "docsis", ("calls", "web", "backup"), 4)
SLOW = Line(16e6, 1e6, 0.04, "pppoe-vdsl2", ("calls", "web", "backup"), 2)
ADSL = Line(8e6, 1e6, 0.04, "adsl", ("calls", "web"), 1)
ASYMMETRIC = Line(50e6, 2e6, 0.03, "docsis", ("calls", "web", "backup"), 4)
TEN = Line(10e6, 2e6, 0.02, "docsis", ("calls", "web", "backup"), 2)
FAR = Line(50e6, 10e6, 0.25, "docsis", ("calls", "web", "backup"), 4)
PORT = Line(10e6, 10e6, 0.03, "ethernet", ("calls", "web", "backup"), 4)
RADIO = Line(30e6, 10e6, 0.05, "lte", ("calls", "web"), 2)

Change = Callable[[Candidate], Candidate]
Document = dict[str, Any]


@dataclass(frozen=True)
class Rule:
    """A rule, and what is tried instead of it.

    Attributes:
        says: the rule.
        kind: the kind of queue that it is about.
        keys: the parameters that it gives; "shaper" and "overhead" are such, too.
        line: the line that it is tried on.
        instead: what is tried instead, by its label.
        scene: what is changed on the line or in the loads, and how the page says so.
        note: what follows where the experiment does not speak for the rule.
    """

    says: str
    kind: str
    keys: tuple[str, ...]
    line: Line
    instead: Mapping[str, Change]
    scene: tuple[str, Callable[[Document], None]] = field(default=("", lambda _: None))
    note: str = ""

    @property
    def name(self) -> str:
        """What its experiment is called."""
        return " ".join(filter(None, (self.kind, *self.keys, *self.instead, self.scene[0])))


# What is tried instead.


def _changed(setting: Setting, keys: Mapping[str, Any]) -> Setting:
    queue = {key: value for key, value in setting.shaped.queue.items() if key not in keys}
    queue |= {key: value for key, value in keys.items() if value is not None}
    return replace(setting, shaped=replace(setting.shaped, queue=queue))


def _both(**keys: Any) -> Change:
    return lambda found: replace(
        found, down=_changed(found.down, keys), up=_changed(found.up, keys)
    )


def _down(**keys: Any) -> Change:
    return lambda found: replace(found, down=_changed(found.down, keys))


def _up(**keys: Any) -> Change:
    return lambda found: replace(found, up=_changed(found.up, keys))


def _share(share: float) -> Change:
    """Return the change to a shaper at another share of the line."""

    def shaped(setting: Setting) -> Setting:
        rate = share * setting.shaped.line_bps
        return replace(setting, shaped=replace(setting.shaped, shaper_bps=rate))

    return lambda found: replace(found, down=shaped(found.down), up=shaped(found.up))


def _times(factor: float, *names: str) -> Change:
    """Return the change that multiplies numbers of packets or times."""

    def changed(setting: Setting) -> Setting:
        keys = {}
        for name in names:
            value = setting.shaped.queue[name]
            if isinstance(value, str):
                number, unit = value.split()
                count = float(number) * factor
                keys[name] = f"{max(1, round(count)) if unit == 'packets' else count:g} {unit}"
            else:
                keys[name] = value * factor
        return _changed(setting, keys)

    return lambda found: replace(found, down=changed(found.down), up=changed(found.up))


def _voice(share: float) -> Change:
    """Return the change of LLQ's share of the shaper."""

    def changed(setting: Setting) -> Setting:
        voice, others = setting.shaped.queue["class"]
        number, unit = voice["queue"]["rate"].split()
        rate = round(float(number) * share / 0.33)
        table = {**voice, "queue": {**voice["queue"], "rate": f"{rate} {unit}"}}
        return _changed(setting, {"class": [table, others]})

    return lambda found: replace(found, down=changed(found.down), up=changed(found.up))


def _ziegler(found: Candidate) -> Candidate:
    """Return RED with the probability and the weight of its thresholds' model."""

    def changed(setting: Setting) -> Setting:
        shaped = setting.shaped
        assert shaped.shaper_bps is not None
        model = queue_parameters(
            f"{round(carried(shaped.overhead, shaped.shaper_bps))} bit/s", "30 ms", flows=9
        )
        return _changed(setting, {name: model[name].value for name in ("max_p", "w_q")})

    return replace(found, down=changed(found.down), up=changed(found.up))


# What is changed on the line or in the loads.


def _groups(document: Document, name: str, **keys: Any) -> None:
    """Change all groups whose name begins so."""
    for owner in (document, *document["case"]):
        for group in owner["traffic"]:
            if group["name"].startswith(name):
                group.update(keys)


def _marked_calls(document: Document) -> None:
    _groups(document, "calls", dscp="EF")


def _marked_downloads(document: Document) -> None:
    for name in ("download", "many-down"):
        _groups(document, name, dscp="EF")


def _many_calls(document: Document) -> None:
    """Let marked calls take more than a third of the upload: ten of 80 kbit/s each."""
    _groups(document, "calls", dscp="EF", flows=10, hosts=10)


def _senders(document: Document, **keys: Any) -> None:
    """Change the TCP of all senders."""
    for owner in (document, *document["case"]):
        for group in owner["traffic"]:
            if group.get("tcp") == "linux":
                group["tcp"] = {"preset": "linux", **keys}


def _with_ecn(document: Document) -> None:
    _senders(document, ecn=True)


def _paced(document: Document) -> None:
    _senders(document, pacing=True)


def _without_hystart(document: Document) -> None:
    _senders(document, slow_start="standard")


def _slower(share: float) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        (line, _) = document["chain"]["hop"]
        for link in (line, line["return"]):
            number, unit = link["rate"].split()
            link["rate"] = f"{float(number) * share:.9g} {unit}"

    return change


def _at_the_port(document: Document) -> None:
    """Let the queue of the upload stand at the line itself, with a shaper or without."""
    (factor,) = document["factors"]["zip"]
    factor["chain.hop1.return.queue"] = factor.pop("chain.hop2.return.queue")


def _counted(document: Document, line: Line, overhead: Mapping[str, Any]) -> None:
    """Let the line itself count what it adds, as a shaper without a law of its own."""
    (hop, _) = document["chain"]["hop"]
    for link, rate in ((hop, line.down_bps), (hop["return"], line.up_bps)):
        limit = link["queue"]["limit"]
        link["rate"] = "1 Gbit/s"
        link["queue"] = {
            "kind": "cake",
            "rate": f"{rate:.0f} bit/s",
            "rtt": "60 s",
            "diffserv": "besteffort",
            "isolation": "flowblind",
            "limit": limit,
            **overhead,
        }


ATM = {"overhead": "40 B", "framing": "atm"}


def _on_cells(document: Document) -> None:
    _counted(document, ADSL, ATM)


def _wire(factor: float, **keys: Any) -> Change:
    """Return the change to a shaper of CAKE that counts so; `factor` of the line's whole rate."""

    def changed(setting: Setting) -> Setting:
        rate = f"{round(factor * setting.shaped.line_bps)} bit/s"
        return _changed(setting, {"rate": rate, **keys})

    return lambda found: replace(found, down=changed(found.down), up=changed(found.up))


def _marks(label: str, kind: str) -> Rule:
    """The rule that a queue marks the packets of senders that use ECN."""
    return Rule(
        f"{label} marks instead of dropping.",
        kind,
        ("ecn",),
        HOME,
        {"drops": _both(ecn=False)},
        ("senders use ECN", _with_ecn),
    )


def _gains(label: str, kind: str) -> Rule:
    """The rule for the gains of PIE's controller."""
    return Rule(
        f"{label}'s gains and period are those of RFC 8033.",
        kind,
        ("alpha", "beta", "update"),
        HOME,
        {"half": _times(0.5, "alpha", "beta"), "double": _times(2.0, "alpha", "beta")},
    )


def _target(label: str, kind: str) -> Rule:
    """The rule for the target of PIE's controller."""
    return Rule(
        f"{label}'s target is 15 ms.",
        kind,
        ("target",),
        HOME,
        {"5 ms": _both(target="5 ms"), "30 ms": _both(target="30 ms")},
    )


RULES: tuple[Rule, ...] = (
    Rule(
        "The shaper has 95 % of the line.",
        "cake",
        ("shaper",),
        HOME,
        {"100 %": _share(1.0), "98 %": _share(0.98), "90 %": _share(0.9), "85 %": _share(0.85)},
    ),
    Rule(
        "The shaper has 85 % of a line whose rate changes.",
        "cake",
        ("shaper",),
        RADIO,
        {"95 %": _share(0.95)},
        ("the line carries 10 % less than was measured", _slower(0.9)),
    ),
    Rule(
        "The shaper has 85 % of a line whose rate changes.",
        "cake",
        ("shaper",),
        RADIO,
        {"95 %": _share(0.95)},
        ("the line carries 30 % less than was measured", _slower(0.7)),
    ),
    Rule(
        "Where the line is the router's own port, there is no shaper.",
        "fq-codel",
        ("shaper",),
        PORT,
        {"95 %, up": lambda found: replace(found, up=_share(0.95)(found).up)},
        ("", _at_the_port),
        note="It stays: what makes no difference needs no shaper, and loses none of the line.",
    ),
    Rule(
        "The shaper counts what the line adds to each packet.",
        "cake",
        ("overhead",),
        ADSL,
        {"not counted": _wire(0.95), "not counted, 85 %": _wire(0.85)},
        ("the line counts 40 B a packet and cells (ATM)", _on_cells),
    ),
    Rule(
        "CAKE shares between hosts, then between their flows (`dual-dsthost`, `dual-srchost`).",
        "cake",
        ("isolation",),
        HOME,
        {"triple-isolate": _both(isolation="triple-isolate"), "flows": _both(isolation="flows")},
    ),
    Rule(
        "CAKE has three classes for what the own devices mark (`diffserv3`, upload).",
        "cake",
        ("diffserv",),
        SLOW,
        {"besteffort": _up(diffserv="besteffort")},
        ("calls are marked EF", _marked_calls),
        note="It stays (tc-cake(8), the default): it costs nothing.",
    ),
    Rule(
        "CAKE has one class for what arrives (`besteffort`, `wash`, download).",
        "cake",
        ("diffserv", "wash"),
        HOME,
        {"diffserv3, not washed": _down(diffserv="diffserv3", wash=False)},
        ("downloads arrive marked EF", _marked_downloads),
        note="It stays: marks from outside bring nothing here, and nobody vouches for them.",
    ),
    Rule(
        "CAKE counts dropped packets of the download (`ingress`).",
        "cake",
        ("ingress",),
        HOME,
        {"without": _down(ingress=False)},
        note="It stays (tc-cake(8), for a shaper behind the line): it costs nothing.",
    ),
    Rule(
        "CAKE's `rtt` is 100 ms, more than the line's round trip of 30 ms.",
        "cake",
        ("rtt",),
        HOME,
        {"30 ms": _both(rtt="30 ms"), "50 ms": _both(rtt="50 ms")},
    ),
    Rule(
        "CAKE's `rtt` is the line's round trip of 250 ms, which is more than 100 ms.",
        "cake",
        ("rtt",),
        FAR,
        {"100 ms": _both(rtt="100 ms")},
    ),
    Rule(
        "CAKE is tried with its ACK filter where acknowledgements would take over a tenth of the "
        "upload (50 and 2 Mbit/s: a third).",
        "cake",
        ("ack_filter",),
        ASYMMETRIC,
        {"on": _up(ack_filter="on"), "aggressive": _up(ack_filter="aggressive")},
    ),
    Rule(
        "The same, and senders space their packets in time.",
        "cake",
        ("ack_filter",),
        ASYMMETRIC,
        {"on": _up(ack_filter="on")},
        ("senders pace, as with Linux's fq", _paced),
    ),
    Rule(
        "The same, and slow start does not heed round-trip times.",
        "cake",
        ("ack_filter",),
        ASYMMETRIC,
        {"on": _up(ack_filter="on")},
        ("senders have no HyStart", _without_hystart),
    ),
    Rule(
        "The same at 8 and 1 Mbit/s (a tenth).",
        "cake",
        ("ack_filter",),
        ADSL,
        {"on": _up(ack_filter="on")},
    ),
    Rule(
        "FQ-CoDel's target is a packet's time where that is more than 5 ms (upload).",
        "fq-codel",
        ("target",),
        SLOW,
        {"5 ms": _up(target="5 ms"), "30 ms": _up(target="30 ms")},
    ),
    Rule(
        "FQ-CoDel's interval is the line's round trip where that is more than 100 ms, and its "
        "target 5 % of it.",
        "fq-codel",
        ("interval", "target"),
        FAR,
        {"100 ms, 5 ms": _both(interval="100 ms", target="5 ms")},
    ),
    Rule(
        "FQ-CoDel's quantum is CAKE's: what the rate carries in 1/4096 s, from 300 B to a packet.",
        "fq-codel",
        ("quantum",),
        SLOW,
        {"1500 B": _both(quantum="1500 B")},
        note="The rule was a full packet, which failed this test.",
    ),
    Rule(
        "The same on a faster line.",
        "fq-codel",
        ("quantum",),
        HOME,
        {"1500 B": _both(quantum="1500 B")},
    ),
    Rule(
        "FQ-CoDel has 1024 queues and holds 10,240 packets.",
        "fq-codel",
        ("flows", "limit"),
        HOME,
        {
            "64 queues": _both(flows=64),
            "1000 packets": _both(limit="1000 packets"),
            "200 packets": _both(limit="200 packets"),
        },
    ),
    _marks("FQ-CoDel", "fq-codel"),
    Rule(
        "CoDel's target is a packet's time where that is more than 5 ms (upload).",
        "codel",
        ("target", "interval", "limit"),
        SLOW,
        {"5 ms": _up(target="5 ms"), "30 ms": _up(target="30 ms")},
    ),
    _marks("CoDel", "codel"),
    _target("PIE", "pie"),
    _gains("PIE", "pie"),
    Rule(
        "PIE holds twice what a burst of 150 ms and its target take, at least 100 packets.",
        "pie",
        ("limit",),
        HOME,
        {"a third": _times(0.33, "limit"), "1000 packets": _both(limit="1000 packets")},
    ),
    _marks("PIE", "pie"),
    _target("FQ-PIE", "fq-pie"),
    _gains("FQ-PIE", "fq-pie"),
    Rule(
        "FQ-PIE has 1024 queues and holds 10,240 packets.",
        "fq-pie",
        ("flows", "limit"),
        HOME,
        {"64 queues": _both(flows=64), "1000 packets": _both(limit="1000 packets")},
    ),
    _marks("FQ-PIE", "fq-pie"),
    Rule(
        "DualPI2's target is 15 ms.",
        "dualpi2",
        ("target",),
        HOME,
        {"5 ms": _both(target="5 ms"), "30 ms": _both(target="30 ms")},
        note="It stays (RFC 9332): 5 ms cost a tenth of the line.",
    ),
    Rule(
        "DualPI2's longest round trip is 100 ms, also where the line's is longer.",
        "dualpi2",
        ("rtt_max",),
        FAR,
        {"250 ms": _both(rtt_max="250 ms")},
        note="The rule was the line's round trip where that is longer, which failed this test.",
    ),
    Rule(
        "DualPI2 holds 250 ms, and couples its queues by 2.",
        "dualpi2",
        ("limit", "coupling"),
        HOME,
        {"100 ms": _times(0.4, "limit"), "coupling 1": _both(coupling=1.0)},
    ),
    Rule(
        "Adaptive RED's thresholds are 2.5 ms, at least 5 packets, and three times as much.",
        "adaptive-red",
        ("min_th", "max_th"),
        HOME,
        {"half": _times(0.5, "min_th", "max_th"), "double": _times(2.0, "min_th", "max_th")},
    ),
    Rule(
        "Adaptive RED holds the product of rate and round trip, at least four upper thresholds.",
        "adaptive-red",
        ("limit",),
        HOME,
        {"double": _times(2.0, "limit"), "1000 packets": _both(limit="1000 packets")},
    ),
    Rule(
        "Adaptive RED is gentle.",
        "adaptive-red",
        ("gentle",),
        HOME,
        {"not gentle": _both(gentle=False)},
    ),
    Rule(
        "RED's thresholds are half of those of Ziegler and others.",
        "red",
        ("min_th", "max_th", "limit"),
        TEN,
        {
            "whole": _times(2.0, "min_th", "max_th"),
            "a quarter": _times(0.5, "min_th", "max_th"),
        },
        note="The rule was the whole, which failed this test.",
    ),
    Rule(
        "The same on a long line.",
        "red",
        ("min_th", "max_th", "limit"),
        FAR,
        {
            "whole": _times(2.0, "min_th", "max_th"),
            "a quarter": _times(0.5, "min_th", "max_th"),
        },
        note="A quarter costs throughput here, so that half of them stays.",
    ),
    Rule(
        "RED's `max_p` is 0.1 and its `w_q` 0.002 (Floyd).",
        "red",
        ("max_p", "w_q", "mean_packet"),
        HOME,
        {"those of the model of the thresholds": _ziegler, "max_p 0.02": _both(max_p=0.02)},
        note="The rule was that of the model (Ziegler and others), which failed this test: it is "
        "for flows that never end.",
    ),
    Rule(
        "The same on a slow line.",
        "red",
        ("max_p", "w_q", "mean_packet"),
        TEN,
        {"those of the model of the thresholds": _ziegler, "max_p 0.02": _both(max_p=0.02)},
    ),
    Rule(
        "WRED has profiles of its own for marked voice.",
        "wred",
        ("profiles", "limit", "w_q", "mean_packet"),
        HOME,
        {
            "one profile": lambda found: replace(
                found, down=_one_profile(found.down), up=_one_profile(found.up)
            )
        },
        ("calls are marked EF", _marked_calls),
    ),
    Rule(
        "Tail drop holds the product of rate and round trip.",
        "tail-drop",
        ("limit",),
        HOME,
        {
            "half": _times(0.5, "limit"),
            "double": _times(2.0, "limit"),
            "four": _times(4.0, "limit"),
        },
        note="It stays: with four times as much calls wait nearly as long as without a queue.",
    ),
    Rule(
        "Fair queues hold the product of rate and round trip, at least 64 packets, in 256 queues.",
        "sfq",
        ("limit", "divisor"),
        HOME,
        {"double": _times(2.0, "limit"), "1024 queues": _both(divisor=1024)},
    ),
    Rule(
        "LLQ has a class of marked voice.",
        "prio",
        ("class",),
        TEN,
        {
            "without": lambda found: replace(
                found, down=_fair_alone(found.down), up=_fair_alone(found.up)
            )
        },
        ("calls are marked EF", _marked_calls),
    ),
    Rule(
        "The class of voice has a third of the shaper.",
        "prio",
        ("class",),
        TEN,
        {"a tenth": _voice(0.1), "nine tenths": _voice(0.9)},
        ("ten calls, marked EF, take more than a third of the upload", _many_calls),
        note="It stays (Cisco): what may take all of the line starves the rest if marks are wrong.",
    ),
)

NOT_TRIED = {
    "`nat` (with the commands for routers)": "The simulated router translates no addresses. "
    "Without the word CAKE sees one host behind a translation, and is fair to flows alone.",
    "`split-gso` (CAKE's default)": "Simulated packets come one by one, as after the split.",
    "a limit of memory (`memlimit`, `memory_limit`)": "No rule gives one. The kernel's default, "
    "which packets' overhead in memory fills sooner, is not simulated.",
    "`VOICE_BURST_S`, 0.2 s of LLQ's class": "It is that of Cisco IOS (`priority`), which takes no "
    "other without being told; calls at a steady rate do not use it.",
    "what a line adds to packets, for each `--access`": "The numbers are facts of the technology, "
    "not choices. That they are counted is tried above.",
}
"""What was not put to a test, and why."""


def _one_profile(setting: Setting) -> Setting:
    return _changed(setting, {"profiles": setting.shaped.queue["profiles"][1:]})


def _fair_alone(setting: Setting) -> Setting:
    others = setting.shaped.queue["class"][1]["queue"]
    return replace(setting, shaped=replace(setting.shaped, queue=dict(others)))


@dataclass(frozen=True)
class Found:
    """What was found of a rule.

    Attributes:
        rule: the rule.
        values: the estimate of each aim by its name and label; "by the rule" is one of them.
        comparisons: what is tried instead compared with the rule, in each aim.
    """

    rule: Rule
    values: Mapping[tuple[str, str], Estimate]
    comparisons: Mapping[str, tuple[Compared, ...]]

    def against(self, label: str) -> str:
        """Return what the experiment says of the rule beside what is tried instead.

        The first aim that decides says whether it helps, as in an advice; the others what it costs.
        """
        decided = [each for each in self.comparisons[label] if each.verdict in DECIDED]
        if not decided:
            open_ = any(each.verdict == "undecided" for each in self.comparisons[label])
            return "undecided" if open_ else "no difference"
        first = decided[0].verdict
        names = dict.fromkeys(
            "throughput" if each.aim.name == "idle" else each.aim.name
            for each in decided
            if each.verdict != first
        )
        if first == "worse":
            return f"helps, and costs {' and '.join(names)}" if names else "helps"
        return f"does not help, but for {' and '.join(names)}" if names else "does not help"


DECIDED = ("better", "worse")

RULED = "by the rule"


def simulated_rule(rule: Rule, effort: str = "normal") -> tuple[str, Simulated]:
    """Return the experiment of a rule, and what is simulated."""
    wanted = simulated(rule.line, [rule.kind], EFFORTS[effort])
    flows = {way: most_flows(wanted.loads, way) for way in ("down", "up")}
    port = rule.line is PORT
    ruled = candidate(rule.kind, wanted.line, flows, port)  # type: ignore[arg-type]
    ways = {RULED: ruled, **{label: change(ruled) for label, change in rule.instead.items()}}
    if "overhead" in rule.keys:
        ways[RULED] = _wire(0.95, **ATM)(ruled)
    tried = tuple(replace(each, label=label) for label, each in ways.items())
    wanted = replace(wanted, candidates=tried)
    document = tomllib.loads(experiment_text(wanted, rule.name, []))
    document["case"] = [each for each in document["case"] if not each["name"].endswith(HALF)]
    (factor,) = document["factors"]["zip"]
    for key, tables in factor.items():
        factor[key] = tables[:-1]  # without the line as it is
    rule.scene[1](document)
    return _written(document), wanted


def _run(text: str, out: Path) -> redtail.Results:
    return quietly(lambda: redtail.run(redtail.Toml(text), out=out))


def _written(document: Document) -> str:
    return "\n".join(f"{toml_key(key)} = {toml_value(value)}" for key, value in document.items())


def tried(rule: Rule, out: Path, effort: str = "normal") -> Found:
    """Simulate a line by a rule and without it, and compare."""
    text, wanted = simulated_rule(rule, effort)
    results = _run(text, out)
    by_name = {load.name: load for load in wanted.loads}
    rows: dict[str, list[Any]] = {}
    for case in results.cases:
        load = by_name[case.labels["case.name"]]
        label = next(v for k, v in case.labels.items() if k != "case.name")
        rows.setdefault(label, []).append(measured(case, load, wanted))
    aims = in_turn(OBJECTIVES["calls"], rule.line.uses, rule.line.people)
    worst = {(aim.name, label): aim.worst(rows[label]) for aim in aims for label in rows}
    return Found(
        rule,
        {key: estimate(values) for key, values in worst.items()},
        {
            label: tuple(
                compared(aim, worst[aim.name, label], worst[aim.name, RULED], len(rule.instead))
                for aim in aims
            )
            for label in rule.instead
        },
    )


_SCALES = {"ms": 1e3, "s": 1.0, "%": 100.0}


def _cell(aim: Objective, found: Estimate) -> str:
    text = shown(replace(found, mostly=None), _SCALES[aim.unit])
    return "–" if text == "–" else f"{text} {aim.unit}"


_WORDS = {"worse": "worse", "better": "better", "equal": "=", "undecided": "?", "no value": ""}


def table(found: Found) -> str:
    """Return the table of a rule."""
    aims = [each.aim for each in next(iter(found.comparisons.values())) if each.aim.name != "idle"]
    lines = [
        f"| | {' | '.join(aim.name for aim in aims)} | the rule |",
        f"| --- |{' --- |' * (len(aims) + 1)}",
        f"| {RULED} | {' | '.join(_cell(a, found.values[a.name, RULED]) for a in aims)} | |",
    ]
    for label, row in found.comparisons.items():
        cells = [
            f"{_cell(each.aim, found.values[each.aim.name, label])} {_WORDS[each.verdict]}".strip()
            for each in row
            if each.aim in aims
        ]
        lines.append(f"| {label} | {' | '.join(cells)} | {found.against(label)} |")
    return "\n".join(lines)


def line_in_words(line: Line) -> str:
    """Return a line in words."""
    people = "1 person" if line.people == 1 else f"{line.people} people"
    rates = f"{line.down_bps / 1e6:g} and {line.up_bps / 1e6:g} Mbit/s"
    return f"{rates}, {1e3 * line.rtt_s:g} ms, {line.access}, {people}, {', '.join(line.uses)}"


def chapter(number: int, found: Found) -> str:
    """Return what the page says of a rule."""
    rule = found.rule
    scene = f"; {rule.scene[0]}" if rule.scene[0] else ""
    keys = ", ".join(f"`{key}`" for key in rule.keys)
    note = f"\n\n{rule.note}" if rule.note else ""
    return (
        f"### {number}. {rule.says}\n\n"
        f"`{rule.kind}`: {keys}. {line_in_words(rule.line)}{scene}.\n\n{table(found)}{note}"
    )


def summary(all_found: Sequence[Found]) -> str:
    """Return the verdicts in short."""
    lines = ["| rule | of | instead of it | the rule |", "| --- | --- | --- | --- |"]
    for number, found in enumerate(all_found, start=1):
        verdicts = "; ".join(f"{label}: {found.against(label)}" for label in found.comparisons)
        scene = f" ({found.rule.scene[0]})" if found.rule.scene[0] else ""
        lines.append(f"| {number} | {found.rule.says}{scene} | `{found.rule.kind}` | {verdicts} |")
    return "\n".join(lines)


def written(name: str, text: str, page: str) -> str:
    """Return a page with a part of it replaced."""
    pattern = re.compile(rf"<!-- measured: {name} -->.*?<!-- end -->", re.DOTALL)
    return pattern.sub(lambda _: f"<!-- measured: {name} -->\n\n{text}\n\n<!-- end -->", page)


_WAITS = {
    "a call's packets, down": "calls-down.one_way_delay_p95",
    "provider's buffer": "hop1.queue_delay_p95",
    "shaper's queue, down": "hop2.queue_delay_p95",
    "pages' acknowledgements, up": "hop2.return.web.queue_delay_p95",
}


def waits(out: Path, effort: str = "normal") -> str:
    """Return where packets wait in the evening with the ACK filter and without."""
    lines = [
        f"| senders | filter | {' | '.join(_WAITS)} |",
        f"| --- | --- |{' --- |' * len(_WAITS)}",
    ]
    for rule in RULES:
        if rule.keys != ("ack_filter",) or rule.line is not ASYMMETRIC:
            continue
        text, _ = simulated_rule(rule, effort)
        results = _run(text, out)
        for case in results.cases:
            if case.labels["case.name"] == "evening":
                senders = rule.scene[0] or "as Linux"
                lines.append(f"| {senders} | {_used(case)} | {_waits(case)} |")
    return "\n".join(lines)


def _used(case: CaseResult) -> str:
    label = next(value for key, value in case.labels.items() if key != "case.name")
    return "off" if label == RULED else label


def _waits(case: CaseResult) -> str:
    return " | ".join(f"{shown(estimate(case.values(m)), 1e3)} ms" for m in _WAITS.values())


KERNELS = ("sim", "linux-tcp", "linux")


def kernels(out: Path) -> str:
    """Return where packets wait in the evening in the simulator and with a kernel."""
    lines = [
        f"| backend | filter | {' | '.join(_WAITS)} |",
        f"| --- | --- |{' --- |' * len(_WAITS)}",
    ]
    rule = next(each for each in RULES if each.keys == ("ack_filter",))
    document = tomllib.loads(simulated_rule(rule)[0])
    document |= {"name": "kernel", "duration": "25 s", "replications": 4}
    document["case"] = [each for each in document["case"] if each["name"] == "evening"]
    (factor,) = document["factors"]["zip"]
    for key, tables in factor.items():
        factor[key] = tables[:2]
    for backend in KERNELS:
        text = _written({"backend": backend, **document} if backend != "sim" else document)
        results = _run(text, out)
        for case in results.cases:
            lines.append(f"| `{backend}` | {_used(case)} | {_waits(case)} |")
    return "\n".join(lines)


def main() -> None:
    """Write the tables into the page."""
    if sys.argv[1:] == ["--kernels"]:
        page = written("kernels", kernels(RUNS), PAGE.read_text(encoding="utf-8"))
        PAGE.write_text(page, encoding="utf-8")
        return
    all_found = [tried(rule, RUNS) for rule in RULES]
    page = PAGE.read_text(encoding="utf-8")
    chapters = "\n\n".join(chapter(i, found) for i, found in enumerate(all_found, start=1))
    not_tried = "\n".join(f"- {what}: {why}" for what, why in NOT_TRIED.items())
    for name, text in {
        "verdicts": summary(all_found),
        "rules": chapters,
        "waits": waits(RUNS),
        "not tried": not_tried,
    }.items():
        page = written(name, text, page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
