"""How places, times, reasons and packets are put into words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from redtail import escape
from redtail.analysis.story.events import Event, Flow
from redtail.metrics import counted
from redtail.scenario import quantity, rate_or_size

# What is written with capital letters in the papers and RFCs.
_SPELLED = {
    "blue": "BLUE",
    "cake": "CAKE",
    "choke": "CHOKe",
    "cobalt": "COBALT",
    "codel": "CoDel",
    "docsis": "DOCSIS",
    "drr": "DRR",
    "dualpi2": "DualPI2",
    "fq": "FQ",
    "gsp": "GSP",
    "htb": "HTB",
    "avq": "AVQ",
    "pi": "PI",
    "pi2": "PI2",
    "pie": "PIE",
    "red": "RED",
    "rem": "REM",
    "sfb": "SFB",
    "sfq": "SFQ",
    "sred": "SRED",
    "tbf": "TBF",
    "wfq": "WFQ",
    "wred": "WRED",
}

BURST_S = 0.01
"""The time between losses of one burst where the rate of the link changes or is not known."""

_BURST_BITS = 3 * 1500 * 8

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def queue(kind: str) -> str:
    """Return the kind of a queue in words.

    >>> queue("red"), queue("tail-drop"), queue("fq-codel")
    ('RED', 'tail drop', 'FQ CoDel')
    """
    return escape.name(" ".join(_SPELLED.get(word, word) for word in kind.split("-")))


class Queue(NamedTuple):
    """What is known of a queue.

    Attributes:
        kind: in words.
        unit: of its law's average: "packets", "bytes", or empty where it is not known.
        burst_s: losses there with less time between them are one burst.
    """

    kind: str
    unit: str = ""
    burst_s: float = BURST_S


def queues_of(links: Mapping[str, Mapping[str, Any]]) -> dict[str, Queue]:
    """Return what is known of the queue of each link of a scenario.

    >>> queues_of({"bottleneck": {"queue": {"kind": "red", "min_th": "10 packets"}}})
    {'bottleneck': Queue(kind='RED', unit='packets', burst_s=0.01)}
    """
    found = {}
    for link, about in links.items():
        given = about.get("queue")
        if isinstance(given, Mapping) and isinstance(given.get("kind"), str):
            # The average is in the unit of the thresholds.
            unit = quantity(given.get("min_th"))[1]
            known = "packets" if unit == "packets" else "bytes" if unit.endswith("B") else ""
            found[link] = Queue(queue(given["kind"]), known, _burst_s(about.get("rate")))
    return found


def _burst_s(rate: object) -> float:
    """Return the time between losses of one burst: that of three full packets.

    >>> _burst_s("36 Mbit/s")
    0.001
    """
    number, unit = quantity(rate)
    if not number or not unit.endswith("bit/s"):
        return BURST_S
    return _BURST_BITS / rate_or_size(str(rate))


def at(time_s: float) -> str:
    """Return a time of the run.

    >>> at(12.30412)
    '12.304 s'
    """
    return f"{time_s:.3f} s"


def lasting(time_s: float) -> str:
    """Return a duration to three digits.

    >>> lasting(0.2961), lasting(1.25), lasting(0.00042), lasting(0.0)
    ('296 ms', '1.25 s', '420 µs', '0 s')
    """
    for size, unit in _UNITS:
        if time_s >= size:
            return f"{time_s / size:.3g} {unit}"
    return f"{time_s * 1e6:.2g} µs" if time_s > 0 else "0 s"


def size(count: float) -> str:
    """Return a number of bytes.

    >>> size(14480), size(540)
    ('14.5 kB', '540 B')
    """
    return f"{count / 1000:.3g} kB" if count >= 1000 else f"{count:.0f} B"


def place(link: str | None) -> str:
    """Return where something happened.

    >>> place("bottleneck"), place("return"), place("hop2")
    ('at the bottleneck', 'on the return path', 'at hop2')
    """
    if link == "bottleneck":
        return "at the bottleneck"
    if link == "return":
        return "on the return path"
    return f"at {escape.name(link)}" if link else "on its way"


def lost(event: Event, queues: Mapping[str, Queue]) -> str:
    """Return where and why a packet was lost, after "was dropped" or "was lost"."""
    if event.event == "wire_loss":
        where = place(event.link).partition(" ")[2]
        full = ", whose delay line was full" if event.reason == "limit" else ""
        return f"on the wire of {where}{full}" if event.link else f"on the wire{full}"
    return f"{place(event.link)}{why(event, queues)}"


def why(event: Event, queues: Mapping[str, Queue]) -> str:
    """Return the queue, its reason and the state of its law, in parentheses."""
    known = queues.get(event.link or "")
    parts = [known.kind] if known is not None else []
    if event.reason:
        parts.append(event.reason)
    if event.average is not None:
        parts.append(f"average {_average(event.average, known.unit if known else '')}")
    if event.probability is not None:
        parts.append(f"probability {100 * event.probability:.3g} %")
    return f" ({', '.join(parts)})" if parts else ""


def _average(value: float, unit: str) -> str:
    return size(value) if unit == "bytes" else f"{value:.1f} {unit}".rstrip()


def verb(event: Event) -> str:
    """Return what happened to a packet: a queue drops, a wire loses."""
    return "lost" if event.event == "wire_loss" else "dropped"


def reasons(events: Iterable[Event], queues: Mapping[str, Queue]) -> str:
    """Return what queues dropped packets for, and how often.

    >>> drops = [Event(0, 1.0, "drop", reason, "a") for reason in ("early", "early", "forced")]
    >>> reasons(drops, {"a": Queue("RED")})
    'RED, early 2, forced 1'
    """
    of: dict[str, Counter[str]] = {}
    for event in events:
        wire = event.event == "wire_loss"
        known = queues.get(event.link or "")
        name = "on the wire" if wire else known.kind if known else event.link or ""
        of.setdefault(name, Counter())[event.reason or ""] += 1
    parts = []
    for name, counts in of.items():
        each = [f"{reason} {count}" for reason, count in counts.most_common() if reason]
        without = counts[""]
        head = f"{name} {without}" if without and name else name
        parts.append(", ".join(part for part in (head, *each) if part))
    return "; ".join(parts)


def flow(flow: Flow) -> str:
    """Return the name of a flow for people."""
    return escape.name(str(flow))


def packets(count: int) -> str:
    """Return a number of packets."""
    return counted(count, "packet")
