"""The queues that routers have, with parameters for a line, each with its source.

Where a rule for one queue on one link exists (`redtail parameters`), the parameters are its: the
rate is what the shaper lets through of full packets, the round trip the line's, and the number of
flows the largest that sends for long in one of the loads.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from redtail.lines.advice import parameters
from redtail.lines.advice.access import ACCESS, FULL, carried, shaper
from redtail.lines.line import Direction, Line, Shaped
from redtail.scenario import quantity

INTERVAL = 0.1
"""Of CAKE and DualPI2, the round trip that they are set for, in s; CAKE's is more on longer lines.
Source: tc-cake(8), internet; RFC 9332, appendix A.1 (RTT_max)."""

ACKS_AT_MOST = 0.1
"""Share of the upload that the acknowledgements of a full download may take; above it CAKE is tried
with its ACK filter, too. Source: our choice."""

ACK_FILTER = "ack-filter"
"""The variant of CAKE with it."""

VOICE_SHARE = 0.33
"""Share of a shaper that the class of calls may take at most. Source: Cisco, Enterprise QoS
Solution Reference Network Design Guide (SRND), version 3.3, "Best Practices": a third."""

VOICE_BURST_S = 0.2
"""What the class of calls may send at once, in s at its rate. Source: Cisco IOS, `priority`."""

VOICE_LIMIT, FAIR_LIMIT = 64, 64
"""Packets of the class of calls, and the least of the fair queues. Source: Cisco IOS, queue-limit:
its default with the hierarchical queueing framework."""

FAIR_QUEUES = 256
"""Number of fair queues. Source: Cisco IOS, fair-queue (class-default): its default above 512
kbit/s."""

_ACK = 40  # IPv4 and TCP without options, in bytes


@dataclass(frozen=True)
class Key:
    """A parameter of a queue.

    Attributes:
        name: its key in the experiment file.
        value: its value there.
        source: where it comes from, in a sentence.
    """

    name: str
    value: Any
    source: str

    @property
    def text(self) -> str:
        """The value as a person reads it."""
        match self.value:
            case bool():
                return "yes" if self.value else "no"
            case list() if self.name == "class":
                return "; ".join(map(_class, self.value))
            case list():
                return "; ".join(map(_profile, self.value))
            case _:
                return str(self.value)


@dataclass(frozen=True)
class Setting:
    """A queue and its shaper in one direction.

    Attributes:
        shaped: both as plain data.
        keys: the queue's parameters with their sources.
        shaper_source: why the shaper's rate is so, or why there is none.
        overhead_source: where the overhead is from.
        cautions: where a rule is used beyond what it was checked for.
    """

    shaped: Shaped
    keys: tuple[Key, ...]
    shaper_source: str
    overhead_source: str
    cautions: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        overhead, follows = self.shaped.overhead, self.shaped.follows
        return {
            "queue": dict(self.shaped.queue),
            "parameters": [
                {"name": key.name, "value": key.value, "source": key.source} for key in self.keys
            ],
            "shaper_bps": self.shaped.shaper_bps,
            "shaper_follows": None if follows is None else asdict(follows),
            "shaper_source": self.shaper_source,
            "line_bps": self.shaped.line_bps,
            "overhead": {
                "packet_bytes": overhead.packet_bytes,
                "minimum_bytes": overhead.minimum_bytes,
                "framing": overhead.framing,
                "source": self.overhead_source,
            },
        }


@dataclass(frozen=True)
class Candidate:
    """A kind of queue, set for both directions of a line.

    Attributes:
        kind: the kind, as the experiment file has it.
        label: what tables call it.
        down: towards the people.
        up: from them.
        variant: what it has that its kind has not by rule, or where it stands; empty for nothing.
    """

    kind: str
    label: str
    down: Setting
    up: Setting
    variant: str = ""

    @property
    def key(self) -> str:
        """What tells it from all others: the kind, and the variant after it."""
        return f"{self.kind}-{self.variant}" if self.variant else self.kind

    def preference(self, people: int) -> tuple[float, ...]:
        """Return what is preferred where no aim decides: the smaller the better, see `MERITS`."""
        kind = QUEUES[self.kind]
        settings = (self.down, self.up)
        # CAKE is a shaper itself.
        apart = sum(each.shaped.shaper_bps is not None and self.kind != "cake" for each in settings)
        return (
            float(kind.needs_marks),
            float(people > 1 and not kind.fair_to_people),
            float(not kind.fair_to_flows),
            float(not kind.manages_delay),
            float(apart),
            float(any(each.shaped.follows is not None for each in settings)),
            float(sum(len(each.keys) for each in settings)),
            float(list(QUEUES).index(self.kind)),
        )


@dataclass(frozen=True)
class _Place:
    """Where a queue stands: what its parameters depend on.

    Attributes:
        line: the line.
        direction: the direction.
        rate: what the shaper or the line lets through of full IP packets, in bit/s.
        flows: the largest number of flows that send at once for long.
    """

    line: Line
    direction: Direction
    rate: float
    flows: int

    @property
    def packets(self) -> float:
        """Full packets that the rate carries in a second."""
        return self.rate / 8 / FULL

    @property
    def packet_time(self) -> float:
        """Time of one full packet, in s."""
        return 1 / self.packets


def candidate(kind: str, line: Line, flows: Mapping[Direction, int], port: bool) -> Candidate:
    """Return a kind of queue with parameters for a line.

    Args:
        kind: one of `QUEUES`.
        line: the line.
        flows: the largest number of flows that send at once for long, in each direction.
        port: whether the upload's bottleneck is a port of the router.
    """
    return Candidate(
        kind,
        QUEUES[kind].label,
        _setting(kind, line, "down", flows["down"], port),
        _setting(kind, line, "up", flows["up"], port),
    )


MERITS = (
    "it needs no traffic that is marked",
    "it is fair between people",
    "it is fair between connections",
    "it keeps its own delay short",
    "it needs no shaper beside it",
    "it needs no program that changes its rate",
    "it has fewer parameters to set",
    "it is the first in the list of queues",
)
"""What is preferred where no aim decides, the most important first, as `Candidate.preference`.

Source: our choice. What depends on marks fails where programs set none; what is fair helps those
whose traffic the simulations do not have; a queue without a law of its own depends on its limit;
what has fewer parts and parameters has fewer to get wrong.
"""


def variants(found: Candidate, line: Line) -> tuple[Candidate, ...]:
    """Return what is tried of a kind of queue: itself, and CAKE with its ACK filter, too.

    Args:
        found: the kind as it is by rule.
        line: the line.
    """
    # Every second full packet of a download is acknowledged (RFC 5681, section 4.2).
    acks = line.down_bps / FULL / 2 * _ACK / line.up_bps
    if found.kind != "cake" or acks <= ACKS_AT_MOST:
        return (found,)
    why = (
        f"Acknowledgements of a full download would take {100 * acks:.0f} % of the upload; "
        "simulated with the filter and without."
    )
    key = Key("ack_filter", "on", why)
    shaped = replace(found.up.shaped, queue={**found.up.shaped.queue, key.name: key.value})
    up = replace(found.up, shaped=shaped, keys=(*found.up.keys, key))
    label = f"{found.label}, ACK filter"
    return found, replace(found, label=label, up=up, variant=ACK_FILTER)


def _setting(kind: str, line: Line, direction: Direction, flows: int, port: bool) -> Setting:
    rate, why = shaper(line, direction, port)
    whole = line.down_bps if direction == "down" else line.up_bps
    access = ACCESS[line.access]
    carries = carried(access.overhead, whole if rate is None else rate)
    place = _Place(line, direction, carries, flows)
    keys, cautions = QUEUES[kind].rule(place)
    queue = {"kind": kind, **{key.name: key.value for key in keys}}
    shaped = Shaped(direction, queue, rate, access.overhead, whole)
    return Setting(shaped, tuple(keys), why, access.source, tuple(cautions))


_Keys = tuple[list[Key], list[str]]


def _ruled(place: _Place, kind: str, *, but: tuple[str, ...] = ()) -> _Keys:
    """Return the keys of a rule for one queue on one link, without some of them."""
    found = parameters.queue_parameters(
        f"{round(place.rate)} bit/s",
        f"{round(place.line.rtt_s * 1e9)} ns",
        flows=place.flows,
        queue=kind,
    )
    keys = [
        Key(one.name, _value(one), one.source)
        for one in found.parameters
        if one.toml is not None and one.name not in but
    ]
    return keys, list(found.cautions)


def _value(one: parameters.QueueParameter) -> Any:
    """Return a value as the experiment file has it; a time in whole microseconds, as in routers."""
    if one.unit == "s":
        return _ms(math.ceil(round(1e6 * one.value, 3)) / 1e6)
    return tomllib.loads(f"value = {one.toml}")["value"]


def _interval(place: _Place) -> float:
    return max(INTERVAL, place.line.rtt_s)


def _ms(seconds: float) -> str:
    """Return a time as the experiment file has it, in ms, to the microsecond.

    >>> _ms(0.1), _ms(0.0123456)
    ('100 ms', '12.346 ms')
    """
    return f"{round(1e3 * seconds, 3):g} ms"


def _cake(place: _Place) -> _Keys:
    up = place.direction == "up"
    keys = [
        Key(
            "rtt",
            _ms(_interval(place)),
            "tc-cake(8), internet; the line's round trip if that is longer.",
        ),
        Key(
            "diffserv",
            "diffserv3" if up else "besteffort",
            "tc-cake(8), the default: your own devices set the marks."
            if up
            else "tc-cake(8), wash: marks that arrive from outside cannot be trusted.",
        ),
        Key(
            "isolation",
            "dual-srchost" if up else "dual-dsthost",
            "tc-cake(8): fair between your devices first, then between their flows.",
        ),
    ]
    if not up:
        keys += [
            Key(
                "ingress",
                True,
                "The shaper stands behind the line, and counts dropped packets too.",
            ),
            Key("wash", True, "tc-cake(8): for marks that cannot be trusted."),
        ]
    return keys, []


def _quantum(place: _Place) -> Key:
    """Return the quantum that CAKE has at this rate: below a packet, so that small ones pass by."""
    least, share_s = 300, 1 / 4096
    size = min(FULL, max(least, math.floor(place.rate / 8 * share_s)))
    return Key(
        "quantum",
        f"{size} B",
        "What the rate carries in 1/4096 s, from 300 B to a full packet, as in CAKE (Linux 6.1, "
        "sch_cake, cake_set_rate).",
    )


def _fq_codel(place: _Place) -> _Keys:
    ruled, cautions = _ruled(place, "fq-codel")
    keys = [_quantum(place) if key.name == "quantum" else key for key in ruled]
    keys.append(Key("ecn", True, "RFC 8290, section 5.2.6."))
    return keys, cautions


def _fq_pie(place: _Place) -> _Keys:
    pie, cautions = _ruled(place, "pie")
    keys = [Key("limit", "10240 packets", "Linux 6.1, sch_fq_pie.")]
    keys += [key for key in pie if key.name in ("target", "update", "alpha", "beta")]
    keys.append(Key("flows", 1024, "Linux 6.1, sch_fq_pie."))
    keys.append(Key("ecn", True, "RFC 8033, section 5.1: up to a probability of 10 %."))
    return keys, cautions


def _pie(place: _Place) -> _Keys:
    keys, cautions = _ruled(place, "pie", but=("max_burst",))
    keys.append(Key("ecn", True, "RFC 8033, section 5.1: up to a probability of 10 %."))
    return keys, cautions


def _codel(place: _Place) -> _Keys:
    keys, cautions = _ruled(place, "codel")
    keys.append(Key("ecn", True, "tc-codel(8): marks in place of drops, for senders that use ECN."))
    return keys, cautions


def _dualpi2(place: _Place) -> _Keys:
    target = max(0.015, place.packet_time)
    limit = max(100, math.ceil(0.25 * place.packets))
    return [
        Key("limit", f"{limit} packets", "250 ms of full packets (RFC 9332, appendix A.1)."),
        Key(
            "target",
            _ms(target),
            "15 ms (RFC 9332, appendix A.1), and no less than one packet time.",
        ),
        Key("rtt_max", _ms(INTERVAL), "RFC 9332, appendix A.1 (RTT_max), also on longer lines."),
        Key("coupling", 2.0, "RFC 9332, appendix A.1 (k)."),
    ], [
        "DualPI2 keeps delays below a millisecond only for L4S senders. The simulated senders are "
        "none, so its other queue carries everything."
    ]


def _adaptive_red(place: _Place) -> _Keys:
    low = max(5, round(0.0025 * place.packets))
    limit = max(math.ceil(place.packets * place.line.rtt_s), 4 * 3 * low)
    return [
        Key("limit", f"{limit} packets", "C r, and at least 4 max_th; our choice."),
        Key(
            "min_th",
            f"{low} packets",
            "Half of a target delay of 5 ms, at least 5 packets (ns-2.35, red.cc, thresh_ 0).",
        ),
        Key("max_th", f"{3 * low} packets", "Three times min_th (Floyd, Gummadi, Shenker 2001)."),
        Key("gentle", True, "Floyd, Gummadi, Shenker 2001, which adapts gentle RED."),
    ], []


RED_MAX_P, RED_W_Q = 0.1, 0.002
"""Source: S. Floyd, "RED: Discussions of Setting Parameters", 1997; the defaults of Cisco IOS are
nearly the same (1/10 and 2^-9)."""


RED_THRESHOLDS = 0.5
"""Of the thresholds of Ziegler and others 2001. Source: `docs/explanation/advice-rules.md`."""


def _red(place: _Place) -> _Keys:
    """Return half of the thresholds of a model, and Floyd's probability and weight.

    The model is for flows that never end; on a line with short ones the queue grows before its
    probability and weight act, and its thresholds hold a longer queue than a call bears.
    """
    ruled, cautions = _ruled(place, "red")

    def changed(key: Key) -> Key:
        match key.name:
            case "min_th" | "max_th":
                packets = round(RED_THRESHOLDS * (quantity(key.value)[0] or 0.0))
                source = f"Half of: {key.source}"
                return Key(key.name, f"{packets} packets", source)
            case "max_p":
                return Key("max_p", RED_MAX_P, "Floyd 1997; the default of Cisco IOS.")
            case "w_q":
                return Key("w_q", RED_W_Q, "Floyd 1997; near 2^-9, the default of Cisco IOS.")
            case _:
                return key

    return [changed(key) for key in ruled], cautions


# What no other traffic of a home uses, beside calls.
_VOICE = ["EF", "VA"]


def _wred(place: _Place) -> _Keys:
    red, cautions = _red(place)
    by_name = {key.name: key for key in red}
    usual = {key: by_name[key].value for key in ("min_th", "max_th", "max_p")}
    upper, limit = (quantity(by_name[key].value)[0] or 0.0 for key in ("max_th", "limit"))
    between = f"{round((upper + limit) / 2)} packets"
    voice = {"dscp": _VOICE, "min_th": by_name["max_th"].value, "max_th": between}
    return [
        by_name["limit"],
        Key(
            "profiles",
            [{**voice, "max_p": usual["max_p"]}, usual],
            "RED's thresholds for packets without a mark (Ziegler et al. 2001); marked voice (RFC "
            "3246, RFC 5865) from max_th on, to halfway between it and the limit; our choice.",
        ),
        by_name["w_q"],
        by_name["mean_packet"],
    ], [
        *cautions,
        "WRED is RED for packets without marks. The simulated calls carry none, as those of most "
        "programs.",
    ]


def _sfq(place: _Place) -> _Keys:
    limit = max(FAIR_LIMIT, math.ceil(place.packets * place.line.rtt_s))
    return [
        Key("limit", f"{limit} packets", "C r, at least 64 packets (Cisco IOS, queue-limit)."),
        Key("divisor", FAIR_QUEUES, "Cisco IOS, fair-queue (class-default), above 512 kbit/s."),
    ], []


def _low_latency(place: _Place) -> _Keys:
    fair, _ = _sfq(place)
    rate = math.floor(VOICE_SHARE * place.rate)
    voice = {
        "name": "voice",
        "match": [{"dscp": _VOICE}, {"group": f"calls-{place.direction}"}],
        "queue": {
            "kind": "tbf",
            "rate": f"{rate} bit/s",
            "burst": f"{max(FULL, round(rate * VOICE_BURST_S / 8))} B",
            "queue": {"kind": "tail-drop", "limit": f"{VOICE_LIMIT} packets"},
        },
    }
    others = {"name": "others", "queue": {"kind": "sfq", **{key.name: key.value for key in fair}}}
    return [
        Key(
            "class",
            [voice, others],
            "Marked voice (RFC 3246, RFC 5865) first, up to a third of the shaper (Cisco, "
            "Enterprise QoS SRND 3.3); fair queues for all others, as without this class.",
        )
    ], [
        "LLQ: the simulations put each packet of a call into the class of voice, as if all calls "
        "were marked EF or VA. Telephones mark, most programs do not: what is not marked waits in "
        "the fair queues, and has what the row of fair queues says.",
        "LLQ: while the line is full, IOS drops what its class of voice gets above its share. In "
        "the simulations it waits. The fair queues are those of Linux (SFQ), which drop from the "
        "longest one; IOS limits each of them.",
    ]


def _tail_drop(place: _Place) -> _Keys:
    return _ruled(place, "tail-drop")


def _profile(table: Mapping[str, Any]) -> str:
    """Return a profile of WRED as a person reads it."""
    who = "/".join(table["dscp"]) if "dscp" in table else "all others"
    return f"{who}: {table['min_th']} to {table['max_th']}, max_p {table['max_p']:g}"


def _class(table: Mapping[str, Any]) -> str:
    """Return a class as a person reads it."""
    queue = table["queue"]
    marks = [mark for rule in table.get("match", ()) for mark in rule.get("dscp", ())]
    if marks:
        return f"{'/'.join(marks)}: first, up to {queue['rate']}"
    return f"all others: {queue['divisor']} fair queues, {queue['limit']}"


@dataclass(frozen=True)
class Kind:
    """A kind of queue that can be advised.

    Attributes:
        label: what tables call it.
        rule: what gives its parameters and cautions.
        usual: whether it is among the candidates if neither queues nor a router are named.
        varied: the same where the line's rate varies. Source: our choice: there the rate of the
            shaper makes more difference than the queue behind it.
        fair_to_people: whether a person with many connections gets no more than one with one.
        fair_to_flows: whether a connection gets no more than another.
        manages_delay: whether it has a law that keeps the delay short.
        needs_marks: whether it needs traffic that is marked.
    """

    label: str
    rule: Callable[[_Place], _Keys]
    usual: bool = True
    varied: bool = False
    fair_to_people: bool = False
    fair_to_flows: bool = False
    manages_delay: bool = True
    needs_marks: bool = False


QUEUES: dict[str, Kind] = {
    "cake": Kind("CAKE", _cake, varied=True, fair_to_people=True, fair_to_flows=True),
    "fq-codel": Kind("FQ-CoDel", _fq_codel, varied=True, fair_to_flows=True),
    "fq-pie": Kind("FQ-PIE", _fq_pie, fair_to_flows=True),
    "codel": Kind("CoDel", _codel),
    "pie": Kind("PIE", _pie),
    "dualpi2": Kind("DualPI2", _dualpi2),
    "adaptive-red": Kind("Adaptive RED", _adaptive_red),
    "red": Kind("RED", _red),
    # Without marks it is RED, and takes as long to simulate.
    "wred": Kind("WRED", _wred, usual=False, needs_marks=True),
    "tail-drop": Kind("tail drop", _tail_drop, manages_delay=False),
    # What routers have that have neither CAKE nor FQ-CoDel.
    "sfq": Kind("fair queues", _sfq, usual=False, fair_to_flows=True, manages_delay=False),
    "prio": Kind(
        "LLQ and fair queues",
        _low_latency,
        usual=False,
        fair_to_flows=True,
        manages_delay=False,
        needs_marks=True,
    ),
}
"""The kinds of queue that routers of operators have, by the names of the experiment file."""
