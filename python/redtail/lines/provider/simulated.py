"""The experiment that the advice for a provider is judged by.

    servers ── the provider's line, with the queue ── subscribers

Subscribers without traffic need no simulation. Of the others each plan has two sorts: *busy* ones,
who download over four connections, call and read pages, and *calm* ones, who call and read pages.
What a subscriber does is on one host (`hosts = "NAME"`), and a class of HTB takes what is on the
host (`match = { group = …, host = … }`).

A line that is too fast to be simulated is made smaller: first its rate and the number of its
subscribers are divided, and then, if the line would be less than `LEAST_RATIO` of its fastest plan,
all rates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redtail.experiment import FORMAT, toml_value
from redtail.lines.advice.loads import DOWNLOAD_FLOWS
from redtail.lines.advice.simulated import HEADER
from redtail.lines.advice.timing import WARMUP_S
from redtail.lines.line import Direction
from redtail.lines.provider.plans import Plan, sold

BUSY_SHARE = 0.02
"""Share of the subscribers who download at a time, in the evening. Source: our choice."""

CALM_SHARE = 0.1
"""Share of them who call and read pages at a time. Source: our choice."""

LEAST_CALM = 4
"""The least number of calm subscribers of a plan that are simulated. Source: our choice; they load
the line little, and one would have few pages."""

OVERLOAD = 1.5
"""At the peak, what the busy ones have bought together, as a share of the line. Source: our choice;
more than 1, so that the line is full."""

LEAST_RATIO = 4.0
"""The least of the line's rate over that of the fastest plan, before all rates are divided. Source:
our choice, so that the peak has several busy subscribers."""

FIFO_S = 0.1
"""Time that a full buffer of the provider's router takes to empty, in s. Source: our choice."""

LEAF_PACKETS = 1000
"""Limit of a FIFO in a class, in packets. Source: Linux, the length of a device's queue."""

MOST_GUARANTEED: dict[Direction, float] = {"down": 25e6, "up": 10e6}
"""The most that a subscriber is guaranteed, in bit/s. Source: LibreQoS 1.5, Configure LibreQoS,
ShapedDevices.csv: "something like 25/10"."""


@dataclass(frozen=True)
class Effort:
    """How much is simulated.

    Attributes:
        replications: runs of each case.
        seconds: simulated time of a run that is measured, in s.
        bits: what the line may carry in one direction in a run.
    """

    replications: int
    seconds: float
    bits: float


EFFORTS: dict[str, Effort] = {
    "quick": Effort(3, 6.0, 1.0e9),
    "normal": Effort(5, 12.0, 4.0e9),
    "thorough": Effort(10, 30.0, 12.0e9),
}
"""Efforts by name. Source: ours, so that "normal" takes some minutes on two processors."""


@dataclass(frozen=True)
class Way:
    """A way to shape subscribers.

    Attributes:
        label: what tables call it.
        leaf: the queue of each subscriber's class; None for one queue for all.
        common: the kind of queue for all.
    """

    label: str
    leaf: dict[str, Any] | None
    common: str = ""

    @property
    def keeps_plans(self) -> bool:
        """Whether a subscriber gets no more than the plan."""
        return self.leaf is not None


LIMITED = "HTB, FIFO each"
"""The label of a shaper that limits, and does no more."""

NOTHING = "one FIFO"
"""The label of the line without any of these."""

WAYS: tuple[Way, ...] = (
    Way("HTB, CAKE each", {"kind": "cake", "diffserv": "diffserv4"}),
    Way("HTB, FQ-CoDel each", {"kind": "fq-codel", "ecn": True}),
    Way(LIMITED, {"kind": "tail-drop", "limit": f"{LEAF_PACKETS} packets"}),
    Way("one CAKE", None, "cake"),
    Way("one FQ-CoDel", None, "fq-codel"),
    Way(NOTHING, None, "tail-drop"),
)
"""What is compared; among equals the first is set. Source: LibreQoS 1.5, lqos.conf, default_sqm
("cake diffserv4"), with CAKE's other parameters as in Linux; sch_fq_codel with ECN (RFC 8290,
section 5.2.6)."""


@dataclass(frozen=True)
class Sample:
    """The subscribers of a plan that are simulated.

    Attributes:
        plan: the plan, with the rates of the simulation.
        busy: how many download.
        calm: how many call and read pages.
    """

    plan: Plan
    busy: int
    calm: int


@dataclass(frozen=True)
class Load:
    """What happens on the line at a time.

    Attributes:
        name: what tables call it.
        samples: the subscribers, by plan.
    """

    name: str
    samples: tuple[Sample, ...]

    @property
    def about(self) -> str:
        """What it is, in words."""
        each = (
            f"{sample.plan.name}: {sample.busy} download, {sample.calm} call or read"
            for sample in self.samples
        )
        return "; ".join(each)


@dataclass(frozen=True)
class Simulated:
    """What is simulated.

    Attributes:
        plans: the plans as they are sold.
        down_bps: the line's rate towards the subscribers, in the simulation, in bit/s.
        up_bps: the same from them.
        rtt_s: round trip to near servers, in s.
        fewer: what the line's rate and the number of subscribers were divided by.
        slower: what all rates were divided by in addition.
        effort: how much is simulated.
        loads: the loads.
        fills: whether the subscribers of the peak can fill the line.
    """

    plans: tuple[Plan, ...]
    down_bps: float
    up_bps: float
    rtt_s: float
    fewer: float
    slower: float
    effort: Effort
    loads: tuple[Load, ...]
    fills: bool


def simulated(
    plans: Sequence[Plan], down_bps: float, up_bps: float, rtt_s: float, effort: Effort
) -> Simulated:
    """Return what is simulated for a provider's line.

    Args:
        plans: the plans.
        down_bps: the line's rate towards the subscribers, in bit/s.
        up_bps: the same from them.
        rtt_s: round trip to near servers, in s.
        effort: how much to simulate.
    """
    most = effort.bits / (WARMUP_S + effort.seconds)
    fastest = max(plan.down_bps for plan in plans)
    wanted = max(1.0, max(down_bps, up_bps) / most)
    fewer = max(1.0, min(wanted, down_bps / (LEAST_RATIO * fastest)))
    slower = wanted / fewer
    line = down_bps / fewer / slower
    here = tuple(
        Plan(plan.name, plan.down_bps / slower, plan.up_bps / slower, plan.number, plan.uses)
        for plan in plans
    )
    total = sum(plan.number for plan in plans)
    mean = sold(here, "down") / total
    peak = OVERLOAD * line / mean / total  # share of the subscribers, as many as there are

    def load(name: str, share: float, divisor: float) -> Load:
        samples = []
        for plan in here:
            most_here = max(1, round(plan.number / fewer))
            busy = max(1, round(plan.number * share / divisor))
            calm = max(LEAST_CALM, round(plan.number * CALM_SHARE / (fewer * slower)))
            samples.append(Sample(plan, min(most_here, busy), min(plan.number, calm)))
        return Load(name, tuple(samples))

    loads = (load("evening", BUSY_SHARE, fewer), load("peak", peak, 1.0))
    asked = math.fsum(each.busy * each.plan.down_bps for each in loads[1].samples)
    return Simulated(
        plans=tuple(plans),
        down_bps=line,
        up_bps=up_bps / fewer / slower,
        rtt_s=rtt_s,
        fewer=fewer,
        slower=slower,
        effort=effort,
        loads=loads,
        fills=asked >= line,
    )


def guaranteed(plans: Sequence[Plan], plan: Plan, line_bps: float, direction: Direction) -> float:
    """Return what a subscriber of a plan is guaranteed, in bit/s.

    It is the subscriber's share of the line, by what all have bought: a class of HTB sends at its
    guaranteed rate whatever its parents do, so that guarantees for more than the line leave the
    line's own buffer to decide (Linux, sch_htb, `HTB_CAN_SEND`). No more than the plan, and no more
    than `MOST_GUARANTEED`.
    """
    bought = plan.down_bps if direction == "down" else plan.up_bps
    share = bought * min(1.0, line_bps / sold(plans, direction))
    return min(share, MOST_GUARANTEED[direction])


def names_of(plan: Plan, sort: str) -> dict[str, str]:
    """Return the names of the groups of a plan's busy or calm subscribers, by what they do."""
    names = {"call_down": "call-down", "call_up": "call-up"}
    if "web" in plan.uses:
        names["page"] = "web"
    if sort == "busy":
        names |= {f"get{i}": f"get{i}" for i in range(1, DOWNLOAD_FLOWS + 1)}
        if "backup" in plan.uses:
            names["put"] = "put"
    return {what: f"{plan.name}-{sort}-{name}" for what, name in names.items()}


def _groups(sample: Sample, sort: str) -> list[dict[str, Any]]:
    count = sample.busy if sort == "busy" else sample.calm
    names = names_of(sample.plan, sort)
    owner = names["call_down"]
    there: dict[str, Any] = {"hosts": owner}
    found: list[dict[str, Any]] = [
        {"name": owner, "kind": "voip", "flows": count, "hosts": count},
        {
            "name": names["call_up"],
            "kind": "voip",
            "direction": "reverse",
            "flows": count,
            **there,
        },
    ]
    if "page" in names:
        found.append(
            {
                "name": names["page"],
                "kind": "web",
                "model": "http2",
                "users": count,
                "server": "own",
                "tcp": "linux",
                "start": "uniform 3..6 s",
                **there,
            }
        )
    bulk: dict[str, Any] = {"kind": "bulk", "flows": count, "tcp": "linux"}
    bulk["start"] = "uniform 0..2 s"
    for what, name in names.items():
        if what.startswith("get"):
            found.append({"name": name, **bulk, **there})
        elif what == "put":
            found.append({"name": name, "direction": "reverse", **bulk, **there})
    return found


def _queue(wanted: Simulated, load: Load, way: Way, direction: Direction) -> dict[str, Any]:
    """Return the queue of the line in a direction."""
    line = wanted.down_bps if direction == "down" else wanted.up_bps
    if way.common == "tail-drop":
        return {"kind": "tail-drop", "limit": f"{max(15_000, round(line * FIFO_S / 8))} B"}
    if way.common == "cake":
        isolation = "dual-dsthost" if direction == "down" else "dual-srchost"
        cake = {"diffserv": "diffserv4", "isolation": isolation}
        return {"kind": "cake", "rate": _rate(line), **cake}
    if way.leaf is None:
        return {"kind": way.common, "ecn": True}
    classes = [
        {
            "name": f"{sample.plan.name}-{sort}-{host}",
            "match": {"group": list(names_of(sample.plan, sort).values()), "host": host},
            "rate": _rate(_guaranteed_here(wanted, sample.plan, direction)),
            "ceil": _rate(sample.plan.down_bps if direction == "down" else sample.plan.up_bps),
            "queue": way.leaf,
        }
        for sample in load.samples
        for sort, count in (("busy", sample.busy), ("calm", sample.calm))
        for host in range(count)
    ]
    root = {"name": "line", "rate": _rate(line), "class": classes}
    return {"kind": "htb", "default": classes[0]["name"], "class": [root]}


def _guaranteed_here(wanted: Simulated, plan: Plan, direction: Direction) -> float:
    own = next(each for each in wanted.plans if each.name == plan.name)
    line = wanted.down_bps if direction == "down" else wanted.up_bps
    return (
        guaranteed(wanted.plans, own, line * wanted.fewer * wanted.slower, direction)
        / wanted.slower
    )


def case_name(load: Load, way: Way) -> str:
    """Return what a case of the experiment is called."""
    return f"{load.name}: {way.label}"


def experiment_text(wanted: Simulated, name: str, about: Sequence[str]) -> str:
    """Return the experiment file.

    Args:
        wanted: what is simulated.
        name: the experiment's name.
        about: what the file is for, a line each.
    """
    end = WARMUP_S + wanted.effort.seconds
    first = wanted.loads[0]

    def traffic(load: Load) -> list[dict[str, Any]]:
        sorts = [(sample, sort) for sample in load.samples for sort in ("busy", "calm")]
        return [group for sample, sort in sorts for group in _groups(sample, sort)]

    lines = [
        HEADER,
        *(f"# {line}" for line in about),
        "",
        f"format = {FORMAT}",
        f"name = {toml_value(name)}",
        f'duration = "{end:g} s"',
        f'warmup = "{WARMUP_S:g} s"',
        f'phases = ["{WARMUP_S + wanted.effort.seconds / 2:g} s"]',
        f"replications = {wanted.effort.replications}",
        "",
        "[bottleneck]",
        f"rate = {toml_value(_rate(wanted.down_bps))}",
        f'delay = "{1e3 * wanted.rtt_s / 2:g} ms"',
        f"queue = {toml_value(_queue(wanted, first, WAYS[-1], 'down'))}",
        "",
        "[bottleneck.return]",
        f"rate = {toml_value(_rate(wanted.up_bps))}",
        f'delay = "{1e3 * wanted.rtt_s / 2:g} ms"',
        f"queue = {toml_value(_queue(wanted, first, WAYS[-1], 'up'))}",
        "",
    ]
    for group in traffic(first):
        lines += ["[[traffic]]", *(f"{key} = {toml_value(it)}" for key, it in group.items()), ""]
    lines += ["# The loads, each with every way to shape.", ""]
    for load in wanted.loads:
        for way in WAYS:
            lines += [f"# {load.about}", "[[case]]", f"name = {toml_value(case_name(load, way))}"]
            lines.append("traffic = [")
            lines += [f"    {toml_value(group)}," for group in traffic(load)]
            lines.append("]")
            for key, direction in _KEYS.items():
                lines.append(f'"{key}" = {toml_value(_queue(wanted, load, way, direction))}')
            lines.append("")
    lines += ["[report]", 'metrics = ["utilization", "return.utilization"]', ""]
    return "\n".join(lines)


_KEYS: dict[str, Direction] = {"bottleneck.queue": "down", "bottleneck.return.queue": "up"}


def _rate(bps: float) -> str:
    return f"{max(1, round(bps))} bit/s"
