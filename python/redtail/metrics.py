"""What metrics and cases are called in tables, in figures and on screen.

The engine names metrics by dotted paths: `goodput` is the forward bottleneck or all traffic
together, `ftp.goodput` is one group's, `return.loss` another queue's. `phase2.` in front of such a
name is the same over the second phase alone. What a metric means and
its unit depend on the last part alone. A name this table does not know is passed through
without a unit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from redtail import escape


@dataclass(frozen=True)
class Metric:
    """How a metric is shown.

    Attributes:
        title: for the axis of a figure.
        short: for the head of a table column.
        unit: SI unit of the stored numbers; "1" for fractions and ratios.
        suffix: unit as the end of a column name; empty for fractions and ratios.
        scale: a shown number is a stored number times this.
        shown_unit: unit of a shown number; empty for a ratio.
    """

    title: str
    short: str
    unit: str
    suffix: str
    scale: float
    shown_unit: str

    @property
    def head(self) -> str:
        """The head of a table column, with the unit on a second line."""
        return f"{self.short}\n{self.shown_unit}"

    @property
    def axis(self) -> str:
        """The text of a figure's axis, with the unit."""
        return f"{self.title} ({self.shown_unit})" if self.shown_unit else self.title


def _fraction(title: str, short: str) -> Metric:
    return Metric(title, short, "1", "", 100.0, "%")


def _delay(title: str, short: str) -> Metric:
    return Metric(title, short, "s", "_s", 1e3, "ms")


def _time(title: str, short: str) -> Metric:
    return Metric(title, short, "s", "_s", 1.0, "s")


def _per_minute(title: str, short: str) -> Metric:
    return Metric(title, short, "1/s", "_per_s", 60.0, "/min")


def _packets(title: str, short: str) -> Metric:
    return Metric(title, short, "packets", "_packets", 1.0, "packets")


def _count(title: str, short: str) -> Metric:
    return _ratio(title, short)


def _ratio(title: str, short: str) -> Metric:
    return Metric(title, short, "1", "", 1.0, "")


METRICS: dict[str, Metric] = {
    "utilization": _fraction("Utilization", "utilization"),
    "goodput": Metric("TCP goodput", "goodput", "bit/s", "_bit_per_s", 1e-6, "Mbit/s"),
    "received_rate": Metric(
        "TCP payload received, in order or not", "received", "bit/s", "_bit_per_s", 1e-6, "Mbit/s"
    ),
    "stalls": _count("Waits of more than 10 s for cumulative progress", "stalls"),
    "ack_wait_max": _time("Longest wait for cumulative progress", "longest wait"),
    "host_wait_max": _delay("Longest wait for a host's link", "host wait"),
    "loss": _fraction("Packets lost at the queue", "loss"),
    "mark": _fraction("Packets marked at the queue", "marked"),
    "random_loss": _fraction("Packets lost on the wire", "lost on wire"),
    "udp_loss": _fraction("UDP packets lost", "UDP loss"),
    "end_to_end_loss": _fraction("Packets lost end to end", "lost"),
    "queue_length_mean": _packets("Mean queue length", "queue"),
    "queue_length_std": _packets("Standard deviation of queue length", "queue sd"),
    "queue_delay_mean": _delay("Mean queueing delay", "delay"),
    "queue_delay_std": _delay("Standard deviation of queueing delay", "delay sd"),
    "queue_delay_p50": _delay("Queueing delay, median", "delay p50"),
    "queue_delay_p95": _delay("Queueing delay, 95th percentile", "delay p95"),
    "queue_delay_p99": _delay("Queueing delay, 99th percentile", "delay p99"),
    "consecutive_loss_mean": _packets("Packets lost per loss event", "losses/event"),
    "loss_synchronization": _fraction("Flows that lose in a congestion event", "losing flows"),
    "loss_interval_mean": _time("Mean time between congestion events", "loss interval"),
    "loss_interval_std": _time(
        "Standard deviation of the time between congestion events", "loss interval sd"
    ),
    "completed": _fraction("Transfers completed", "completed"),
    "completion_time_mean": _time("Mean completion time of transfers", "completion"),
    "handshake_time_mean": _time("Mean handshake time of transfers", "handshake"),
    "first_byte_time_mean": _time("Mean time to first byte of transfers", "first byte"),
    "one_way_delay_mean": _delay("Mean one-way delay", "one-way"),
    "one_way_delay_p50": _delay("One-way delay, median", "one-way p50"),
    "one_way_delay_p95": _delay("One-way delay, 95th percentile", "one-way p95"),
    "one_way_delay_p99": _delay("One-way delay, 99th percentile", "one-way p99"),
    "jitter": _delay("Mean interarrival jitter", "jitter"),
    "late": _fraction("Packets too late to be played", "late"),
    "mos": Metric("Mean opinion score", "MOS", "1", "", 1.0, ""),
    "mos_min": Metric("Mean opinion score of the worst call", "worst MOS", "1", "", 1.0, ""),
    "r_factor": Metric("Transmission rating factor R", "R", "1", "", 1.0, ""),
    "rebuffering_ratio": _fraction("Share of watching time stalled", "stalled"),
    "rebuffering_events": _per_minute("Stalls per user", "stalls"),
    "startup_delay_mean": _time("Mean startup delay of videos", "startup"),
    "bitrate_mean": Metric(
        "Mean bitrate of videos", "bitrate", "bit/s", "_bit_per_s", 1e-6, "Mbit/s"
    ),
    "bitrate_switches": _per_minute("Bitrate switches per user", "switches"),
    "fairness": Metric("Jain's fairness index", "fairness", "1", "", 1.0, ""),
    "responses": _count("Responses", "responses"),
    "unanswered": _fraction("Requests not answered by the end", "unanswered"),
    "transaction_rate": Metric("Responses per second", "responses", "1/s", "_per_s", 1.0, "1/s"),
    "response_time_mean": _delay("Mean response time", "response"),
    "response_time_std": _delay("Standard deviation of response time", "response sd"),
    "response_time_p50": _delay("Response time, median", "resp. p50"),
    "response_time_p95": _delay("Response time, 95th percentile", "resp. p95"),
    "response_time_p99": _delay("Response time, 99th percentile", "resp. p99"),
    "slowdown_mean": _ratio("Mean slowdown of responses", "slowdown"),
    "slowdown_p50": _ratio("Slowdown of responses, median", "slowdown p50"),
    "slowdown_p99": _ratio("Slowdown of responses, 99th percentile", "slowdown p99"),
    "pages": _count("Pages completed", "pages"),
    "page_time_mean": _time("Mean page time", "page"),
    "page_time_p50": _time("Page time, median", "page p50"),
    "page_time_p95": _time("Page time, 95th percentile", "page p95"),
    "offered_load": _fraction("Offered load", "offered"),
    "users": _count("Users", "users"),
    "connections": _count("Connections opened", "opened"),
    "connections_mean": _count("Mean number of open connections", "connections"),
}

# What the engine measures where (crates/sim/src/engine/report.rs); a test holds it against runs.
# At a queue, of all packets and of each group's.
_AT_QUEUE = (
    "utilization",
    "loss",
    "mark",
    "queue_length_mean",
    "queue_length_std",
    "queue_delay_mean",
    "queue_delay_std",
    "queue_delay_p50",
    "queue_delay_p95",
    "queue_delay_p99",
    "consecutive_loss_mean",
)

# At a queue, of all packets alone.
_OF_QUEUE = (
    "loss_synchronization",
    "loss_interval_mean",
    "loss_interval_std",
    "udp_loss",
)

# Of each group of flows, of one kind or another.
_OF_GROUP = (
    "goodput",
    "received_rate",
    "fairness",
    "data_segments",
    "retransmissions",
    "duplicate_acks",
    "fast_recoveries",
    "timeouts",
    "spurious_timeouts",
    "spurious_fast_retransmits",
    "ecn_reductions",
    "stalls",
    "ack_wait_max",
    "host_wait_max",
    "completed",
    "completion_time_mean",
    "handshake_time_mean",
    "first_byte_time_mean",
    "end_to_end_loss",
    "one_way_delay_mean",
    "one_way_delay_p50",
    "one_way_delay_p95",
    "one_way_delay_p99",
    "mos",
    "mos_min",
    "r_factor",
    "jitter",
    "late",
    "rebuffering_ratio",
    "rebuffering_events",
    "startup_delay_mean",
    "bitrate_mean",
    "bitrate_switches",
    "users",
    "responses",
    "unanswered",
    "transaction_rate",
    "response_time_mean",
    "response_time_std",
    "response_time_p50",
    "response_time_p95",
    "response_time_p99",
    "slowdown_mean",
    "slowdown_p50",
    "slowdown_p99",
    "pages",
    "page_time_mean",
    "page_time_p50",
    "page_time_p95",
    "connections",
    "connections_mean",
)

# Bins of response times to a factor of ten (crates/sim/src/answers.rs).
BINS_PER_DECADE = 50

# Metrics of single disciplines: of DualPI2's two queues, and of RED+Tail's.
OWN: dict[str, Metric] = {
    "l_delay_mean": _delay("Mean queueing delay, L queue", "L delay"),
    "l_delay_max": _delay("Longest queueing delay, L queue", "L delay max"),
    "l_mark": _fraction("Packets marked, L queue", "L marked"),
    "l_loss": _fraction("Packets lost, L queue", "L loss"),
    "c_delay_mean": _delay("Mean queueing delay, C queue", "C delay"),
    "c_delay_max": _delay("Longest queueing delay, C queue", "C delay max"),
    "c_mark": _fraction("Packets marked, C queue", "C marked"),
    "c_loss": _fraction("Packets lost, C queue", "C loss"),
    "short_delay_mean": _delay("Mean queueing delay, short queue", "short delay"),
    "long_delay_mean": _delay("Mean queueing delay, long queue", "long delay"),
    "short_loss": _fraction("Packets lost, short queue", "short loss"),
    "long_loss": _fraction("Packets lost, long queue", "long loss"),
    "short_length_mean": _packets("Mean length, short queue", "short queue"),
    "long_length_mean": _packets("Mean length, long queue", "long queue"),
    "short_length_std": _packets("Standard deviation of length, short queue", "short queue sd"),
    "long_length_std": _packets("Standard deviation of length, long queue", "long queue sd"),
    "long_in_range": _fraction("Time that the long queue is in its range", "long in range"),
    "false_alarms": _fraction("Short flows found long", "false alarms"),
}

# Metrics of groups that tables show, with the group's name, for every group that has them.
OF_GROUPS = (
    "mos",
    "bitrate_mean",
    "rebuffering_ratio",
    "transaction_rate",
    "response_time_p50",
    "response_time_p95",
)

# What each group was found to offer that was asked for by its load.
_OFFERED = ("offered_load",)

# Metrics of the printed table, most wanted first: those at the end give way on narrow screens.
TABLE = (
    "utilization",
    "goodput",
    *_OFFERED,
    *OF_GROUPS,
    "udp_loss",
    "loss",
    "mark",
    "queue_delay_mean",
    "queue_delay_std",
    "consecutive_loss_mean",
    "queue_delay_p95",
    "fairness",
    "queue_length_mean",
)

# Of these, every queue beyond the first is worth a column and a figure.
FURTHER_QUEUES = ("utilization", "loss", "queue_delay_mean")

# Metrics that get a figure of their own.
FIGURES = (
    "goodput",
    "utilization",
    *OF_GROUPS,
    "udp_loss",
    "loss",
    "queue_delay_mean",
    "queue_delay_std",
    "queue_delay_p95",
    "queue_length_mean",
    "consecutive_loss_mean",
    "fairness",
)


def describe(name: str) -> Metric:
    """Return how the metric `name` is shown.

    >>> describe("ftp.goodput").axis
    'TCP goodput (Mbit/s)'
    >>> describe("queue.l_delay_mean").axis
    'Mean queueing delay, L queue (ms)'
    >>> describe("ftp.something_new").unit
    ''
    """
    known = METRICS.get(base(name)) or OWN.get(base(name))
    if known is not None:
        return known
    words = escape.name(base(name).replace("_", " "))
    return Metric(words.capitalize(), words, "", "", 1.0, "")


def base(name: str) -> str:
    """Return the last part of a name, which says what it is.

    >>> base("ftp.goodput")
    'goodput'
    """
    return name.rpartition(".")[2]


def prefix(name: str) -> str:
    """Return the group or queue a metric belongs to; empty for the bottleneck or all traffic.

    >>> prefix("ftp.goodput"), prefix("goodput")
    ('ftp', '')
    """
    return name.rpartition(".")[0]


def phase(name: str) -> int | None:
    """Return the number of the phase a metric is about; None for the whole period.

    >>> phase("phase2.ftp.goodput"), phase("ftp.goodput")
    (2, None)
    """
    found = re.match(r"phase([0-9]+)\.", name)
    return int(found[1]) if found else None


def axis(name: str) -> str:
    """Return the text of a figure's axis.

    >>> axis("hop2.queue_delay_mean")
    'hop2: Mean queueing delay (ms)'
    """
    of = prefix(name)
    return f"{of}: {describe(name).axis}" if of else describe(name).axis


def head(name: str) -> str:
    """Return the head of a table column, on two or three lines."""
    of = escape.name(prefix(name))
    return f"{of}\n{describe(name).head}" if of else describe(name).head


def shown(present: Collection[str], links: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return which metrics to show, from the `wanted` ones without a prefix.

    To these come the goodput of each group when there are several, the metrics of `OF_GROUPS` of
    each group that has them, and, for queues beyond the first, those of `FURTHER_QUEUES`. In a
    chain no queue is the first. Phases are left out.

    >>> shown(["goodput", "hop1.loss", "hop1.ftp.loss"], ["hop1"], ["goodput", "loss"])
    ['goodput', 'hop1.loss']
    >>> shown(["utilization", "calls.mos", "calls.jitter"], [], ["mos", "utilization"])
    ['calls.mos', 'utilization']
    >>> shown(["goodput", "web.goodput", "web.transaction_rate"], [], TABLE)
    ['goodput', 'web.transaction_rate']
    """
    groups = [
        name
        for name in present
        if name.count(".") == 1 and name.endswith(".goodput") and phase(name) is None
    ]
    found = []
    for name in wanted:
        if name in present:
            found.append(name)
        if name == "goodput" and len(groups) > 1:
            found.extend(groups)
        if name in (*_OFFERED, *OF_GROUPS):
            found.extend(each for each in present if each.count(".") == 1 and base(each) == name)
        if name in FURTHER_QUEUES:
            found.extend(f"{link}.{name}" for link in links if f"{link}.{name}" in present)
    return found


@dataclass(frozen=True)
class Measured:
    """The metrics that runs of an experiment can have.

    Not every one has a value in every run, and a group has only those of its kind.

    Attributes:
        groups: the names of the groups.
        queues: what stands in front of a queue's metrics; empty for that of a lone bottleneck.
        phases: number of phases.

    >>> known = Measured(("ftp",), ("", "return."), 2)
    >>> [name in known for name in ("loss", "return.ftp.loss", "phase2.goodput", "phase3.goodput")]
    [True, True, True, False]
    """

    groups: tuple[str, ...]
    queues: tuple[str, ...]
    phases: int

    @classmethod
    def of(cls, scenarios: Iterable[Mapping[str, Any]]) -> Measured | None:
        """Return what runs of these scenarios can have; None when they do not tell."""
        groups: dict[str, None] = {}
        queues: dict[str, None] = {}
        phases = 0
        for scenario in scenarios:
            hops = scenario["chain"]["hop"] if "chain" in scenario else [scenario.get("bottleneck")]
            if "traffic" not in scenario or None in hops:
                return None
            groups.update(dict.fromkeys(group["name"] for group in scenario["traffic"]))
            for number, hop in enumerate(hops, start=1):
                name = "" if len(hops) == 1 else f"hop{number}."
                back = [f"{name}return."] if "return" in hop else []
                queues.update(dict.fromkeys([name, *back]))
            ends = len(scenario.get("phases", ()))
            phases = max(phases, ends + 1 if ends else 0)
        return cls(tuple(groups), tuple(queues), phases)

    @cached_property
    def names(self) -> dict[str, None]:
        """All of them, but for the figures that queues add of themselves."""
        ofs = [f"{group}." for group in self.groups]
        often = [f"{queue}{name}" for queue in self.queues for name in (*_AT_QUEUE, *_OF_QUEUE)]
        often += [f"{each}{of}{name}" for each in self.queues for of in ofs for name in _AT_QUEUE]
        often += [f"{of}goodput" for of in ("", *ofs)]
        once = [f"{queue}random_loss" for queue in self.queues] + ["fairness"]
        once += [f"{of}{name}" for of in ofs for name in _OF_GROUP]
        phases = [f"phase{n}.{name}" for n in range(1, self.phases + 1) for name in often]
        return dict.fromkeys(often + once + phases)

    def __contains__(self, name: str) -> bool:
        own = tuple(f"{queue}queue." for queue in self.queues)
        return name in self.names or name.startswith(own)

    def accepted(self, name: str) -> str:
        """Return in words what there is where `name` is looked for, and where else there is more.

        >>> Measured(("ftp", "cbr"), ("", "return."), 0).accepted("return.delay")
        ... # doctest: +ELLIPSIS
        'return.utilization, return.loss, ... return.random_loss; and more under ftp., cbr.'
        """
        fronts = {prefix(known) for known in self.names}
        here = prefix(name) if prefix(name) in fronts else ""
        found = ", ".join(known for known in self.names if prefix(known) == here)
        others = [f"{group}." for group in self.groups] + [queue for queue in self.queues if queue]
        others = [other for other in others if other != f"{here}."]
        if self.phases:
            others.append(f"phase1. to phase{self.phases}.")
        return f"{found}; and more under {', '.join(others)}" if others else found


def column(name: str) -> str:
    """Return the table column that holds the metric `name`: the name with its SI unit.

    >>> column("ftp.goodput"), column("queue_delay_p95"), column("loss")
    ('ftp.goodput_bit_per_s', 'queue_delay_p95_s', 'loss')
    """
    return name + describe(name).suffix


CASE_NAME = "case.name"
"""The factor that stands for a list of cases: its values are their names."""


def factor_title(key: str) -> str:
    """Return the key of a factor as words.

    >>> factor_title("bottleneck.queue"), factor_title("traffic.ftp.flows")
    ('queue', 'ftp flows')
    >>> factor_title("case.name")
    'case'
    """
    if key == CASE_NAME:
        return "case"
    head, _, rest = key.partition(".")
    words = rest if head in ("bottleneck", "traffic", "chain") and rest else key
    return escape.name(words.replace(".", " "))


def counted(number: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "run"), counted(90, "run")
    ('1 run', '90 runs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def case_title(factors: Mapping[str, object], labels: Mapping[str, str]) -> str:
    """Return a case in one line.

    A table (a queue, say) goes by its label alone; a plain value is told with its key. What cannot
    be seen is escaped.

    >>> case_title({"bottleneck.queue": {}, "traffic.ftp.flows": 16},
    ...            {"bottleneck.queue": "RED", "traffic.ftp.flows": "16"})
    'RED, ftp flows 16'
    """
    return ", ".join(
        escape.name(label)
        if key == CASE_NAME or isinstance(factors.get(key), dict)
        else f"{factor_title(key)} {escape.name(label)}"
        for key, label in labels.items()
    )
