"""What `tc -s -j qdisc show` and `tc -s -j class show` print, checked.

Source of the form: tc/tc_qdisc.c, tc/tc_class.c and tc/q_*.c of iproute2 6.1: rates are in bytes a
second, delays of `cake`, `codel` and `pie` in us. Rates may be texts ("5Mbit"), and of classes 6.1
prints text whatever it is asked for. Keys that are not known are passed by, for each version has
more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from redtail.lines.recordings.documents import number, of_kind, parsed, short, shown

MOST_B, MOST_QUEUES, MOST_TINS = 4_000_000, 10_000, 16
"""Bytes of an output, its queues, and tins of one: 8 are the most that CAKE has. Source: our
choice; a router of an access provider has some thousands of classes."""

LARGEST = 2.0**64

LONGEST_US = 1e9

_RATE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([KMGT]?)bit")
_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

SILENT = {"noqueue", "ingress", "clsact"}
"""Kinds that hold no packets."""

DELAYS = {"codel": "ldelay", "pie": "delay"}
"""Kinds that tell the delay of a packet that left last, in us, and the key."""

KNOWN = SILENT | {
    *("bfifo", "cake", "cake_mq", "choke", "codel", "drr", "dualpi2", "fq", "fq_codel", "fq_pie"),
    *("gred", "hfsc", "htb", "mq", "mqprio", "multiq", "netem", "pfifo", "pfifo_fast", "pie"),
    *("prio", "red", "sfb", "sfq", "tbf"),
}
"""Kinds whose counters are known to mean what they say; others pass by with a word."""

_TINS = {
    "diffserv3": ("Bulk", "Best Effort", "Voice"),
    "diffserv4": ("Bulk", "Best Effort", "Video", "Voice"),
}
"""Names that tc has for CAKE's tins (tc/q_cake.c)."""


@dataclass(frozen=True)
class Counts:
    """Counters of a queue, a class or a tin, and what waits in it.

    Attributes:
        bytes, packets, drops, marks: counted since it was set.
        backlog_b: bytes that wait.
        backlog_packets: packets that wait; None where that is not told.
        delay_s: what packets waited that left last; None where that is not told.
    """

    bytes: int
    packets: int
    drops: int
    marks: int
    backlog_b: int
    backlog_packets: int | None = None
    delay_s: float | None = None


@dataclass(frozen=True)
class Queue:
    """A queue, or a class, as tc tells of it.

    Attributes:
        device: where it is.
        kind: its kind.
        handle: its handle, or the class's.
        parent: the handle of what it is in; empty for the root.
        counts: its counters.
        shaper_bps: rate of its shaper, in bit/s; None without one.
        wire: what the shaper counts for a packet besides its bytes: bytes more, the least bytes,
            and how it is framed ("", "atm" or "ptm").
        tins: of CAKE, the name and the counters of each.
    """

    device: str
    kind: str
    handle: str
    parent: str
    counts: Counts
    shaper_bps: float | None = None
    wire: tuple[float, float, str] = (0.0, 0.0, "")
    tins: tuple[tuple[str, Counts], ...] = ()


def queues(text: str, device: str | None = None) -> list[Queue]:
    """Return the queues in an output of `tc -s -j qdisc show`.

    Args:
        text: the output.
        device: the device that was asked for, where the output does not name it.

    Raises:
        ValueError: it is none; the text says which value is wrong.
    """
    return [_queue(row, where, device) for where, row in _rows(text, "tc -s -j qdisc show", "kind")]


def classes(text: str, device: str) -> list[Queue]:
    """Return the classes in an output of `tc -s -j class show dev DEVICE`, JSON or text.

    Raises:
        ValueError: it is none; the text says which value is wrong.
    """
    if text.lstrip().startswith("class "):
        return _classes_of_text(text, device)
    return [
        _class(row, where, device) for where, row in _rows(text, "tc -s -j class show", "class")
    ]


def redirected(text: str) -> str | None:
    """Return the device that an output of `tc -j filter show` says packets are sent to.

    Raises:
        ValueError: it is none.
    """
    for where, row in _rows(text, "tc -j filter show", "kind"):
        options = of_kind(row.get("options", {}), dict, f'{where}: "options"')
        actions = of_kind(options.get("actions", []), list, f'{where}: "actions"')
        for action in actions:
            of_kind(action, dict, f'{where}: "actions"')
            name = action.get("to_dev")
            if action.get("mirred_action") == "redirect" and isinstance(name, str):
                return name
    return None


def _rows(text: str, command: str, key: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the objects in a list that have a key, each with its place."""
    if len(text) > MOST_B:
        raise ValueError(f"{command} printed {len(text)} characters; accepted: up to {MOST_B}")
    try:
        data = parsed(text) if text.strip() else []
    except ValueError as error:
        raise ValueError(
            f"{command}: {error}; accepted: JSON, which tc of iproute2 4.16 and later prints"
        ) from None
    rows = of_kind(data, list, f"{command}: what it printed")
    if len(rows) > MOST_QUEUES:
        raise ValueError(f"{command}: {len(rows)} values; accepted: up to {MOST_QUEUES}")
    found = []
    for place, row in enumerate(rows, start=1):
        where = f"{command}: value {place}"
        if key in of_kind(row, dict, where):
            found.append((where, row))
    return found


def _queue(row: Mapping[str, Any], where: str, device: str | None) -> Queue:
    kind = _text(row, "kind", where)
    options = of_kind(row.get("options") or {}, dict, f'{where}: "options"')
    place = f"{where} ({short(kind)})"
    named = device if "dev" not in row and device is not None else _text(row, "dev", place)
    parent = "" if row.get("root") else _text(row, "parent", place, "")
    counts = _counts(row, place, kind)
    tins = _tins(row, options, place) if kind.startswith("cake") else ()
    if tins:
        counts = _with_tins(counts, tins)
    shaper = _rate(options, "bandwidth" if kind.startswith("cake") else "rate", place)
    if kind not in ("cake", "cake_mq", "tbf"):
        shaper = None
    wire = _wire(row, options, place) if tins else (0.0, 0.0, "")
    handle = _text(row, "handle", place, "")
    return Queue(named, short(kind), handle, parent, counts, shaper, wire, tins)


def _class(row: Mapping[str, Any], where: str, device: str) -> Queue:
    kind, handle = _text(row, "class", where), _text(row, "handle", where)
    place = f"{where} ({short(kind)} {short(handle)})"
    told = of_kind(row.get("stats", row), dict, f'{place}: "stats"')
    shaper = _rate(row, "ceil", place) or _rate(row, "rate", place)
    parent = "" if row.get("root") else _text(row, "parent", place, "")
    return Queue(device, short(kind), handle, parent, _counts(told, place, kind), shaper)


_CLASS = re.compile(
    r"class (?P<kind>[a-z_]{1,32}) (?P<handle>[0-9a-f:]{1,16}) "
    r"(?:root|parent (?P<parent>[0-9a-f:]{1,16}))"
)
_SENT = re.compile(r"\s*Sent ([0-9]{1,20}) bytes ([0-9]{1,20}) pkt \(dropped ([0-9]{1,20})")
_WAITS = re.compile(r"\s*backlog ([0-9]{1,12})([KMG]?)b ([0-9]{1,12})p")
_TEXT_RATE = re.compile(r" (rate|ceil) ([0-9.]+[KMGT]?bit)")
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _classes_of_text(text: str, device: str) -> list[Queue]:
    if len(text) > MOST_B:
        raise ValueError(f"tc class show printed {len(text)} characters; accepted: up to {MOST_B}")
    found: list[Queue] = []
    for place, line in enumerate(text.splitlines(), start=1):
        if line.startswith("class "):
            match = _CLASS.match(line)
            if match is None:
                raise ValueError(
                    f"tc class show: line {place} is {short(line)!r}; accepted: class KIND HANDLE "
                    "root, or parent HANDLE"
                )
            if len(found) == MOST_QUEUES:
                raise ValueError(f"tc class show: more than {MOST_QUEUES} classes; accepted: fewer")
            rates = dict(_TEXT_RATE.findall(line))
            shaper = _rate(rates, "ceil", device) or _rate(rates, "rate", device)
            none = Counts(0, 0, 0, 0, 0)
            found.append(
                Queue(device, match["kind"], match["handle"], match["parent"] or "", none, shaper)
            )
        elif found and (match := _SENT.match(line)) is not None:
            sent, packets, drops = (int(match[n]) for n in (1, 2, 3))
            counts = replace(found[-1].counts, bytes=sent, packets=packets, drops=drops)
            found[-1] = replace(found[-1], counts=counts)
        elif found and (match := _WAITS.match(line)) is not None:
            waits = int(match[1]) * _BYTES[match[2]]
            counts = replace(found[-1].counts, backlog_b=waits, backlog_packets=int(match[3]))
            found[-1] = replace(found[-1], counts=counts)
    return found


def _text(row: Mapping[str, Any], key: str, where: str, missing: str | None = None) -> str:
    found = row.get(key, missing)
    if not isinstance(found, str) or len(found) > 64:
        raise ValueError(f'{where}: "{key}" is {shown(found)}; accepted: a text of up to 64')
    return found


def _count(row: Mapping[str, Any], key: str, where: str) -> int:
    return int(number(row, key, where, LARGEST) or 0)


def _counts(row: Mapping[str, Any], where: str, kind: str) -> Counts:
    us = number(row, DELAYS[kind], where, LONGEST_US) if kind in DELAYS else None
    return Counts(
        _count(row, "bytes", where),
        _count(row, "packets", where),
        _count(row, "drops", where),
        sum(_count(row, key, where) for key in ("ecn_mark", "marked", "step_mark")),
        _count(row, "backlog", where),
        _count(row, "qlen", where) if "qlen" in row else None,
        None if us is None else us / 1e6,
    )


def _tins(
    row: Mapping[str, Any], options: Mapping[str, Any], where: str
) -> tuple[tuple[str, Counts], ...]:
    told = of_kind(row.get("tins", []), list, f'{where}: "tins"')
    if len(told) > MOST_TINS:
        raise ValueError(f'{where}: "tins" has {len(told)} values; accepted: up to {MOST_TINS}')
    mode = options.get("diffserv")
    names = _TINS.get(mode, ()) if isinstance(mode, str) else ()
    found = []
    for place, tin in enumerate(told):
        here = f'{where}: "tins": value {place + 1}'
        of_kind(tin, dict, here)
        us = number(tin, "avg_delay_us", here, LONGEST_US)
        counts = Counts(
            _count(tin, "sent_bytes", here),
            _count(tin, "sent_packets", here),
            _count(tin, "drops", here),
            _count(tin, "ecn_mark", here),
            _count(tin, "backlog_bytes", here),
            None,
            None if us is None else us / 1e6,
        )
        found.append((names[place] if len(names) == len(told) else f"Tin {place}", counts))
    return tuple(found)


def _with_tins(counts: Counts, tins: tuple[tuple[str, Counts], ...]) -> Counts:
    """Return the counters of a CAKE with what its tins tell: marks."""
    return Counts(
        counts.bytes, counts.packets, counts.drops, sum(tin.marks for _, tin in tins),
        counts.backlog_b, counts.backlog_packets,
    )  # fmt: skip


def _wire(
    row: Mapping[str, Any], options: Mapping[str, Any], where: str
) -> tuple[float, float, str]:
    """Return what CAKE counts for a packet besides its bytes (`cake_calc_overhead`)."""
    if options.get("raw"):
        return 0.0, 0.0, ""
    header = number(row, "avg_hdr_offset", where, 1e4) or 0.0
    overhead = number(options, "overhead", where, 1e4, -1e4) or 0.0
    framing = options.get("atm")
    return (
        overhead - header,
        number(options, "mpu", where, 1e4) or 0.0,
        framing if framing in ("atm", "ptm") else "",
    )


def _rate(row: Mapping[str, Any], key: str, where: str) -> float | None:
    """Return a rate in bit/s; None for none."""
    value = row.get(key)
    if isinstance(value, str):
        match = _RATE.fullmatch(value)
        return float(match[1]) * _SCALES[match[2]] if match else None
    told = number(row, key, where, LARGEST)
    return 8 * told if told else None


def on_wire(counts_b: float, packets: float, wire: tuple[float, float, str]) -> float:
    """Return the bytes that a shaper counts for packets of so many bytes.

    >>> on_wire(15140, 10, (4.0, 0.0, "")), on_wire(15140, 10, (4.0, 0.0, "atm"))
    (15180.0, 16960.0)
    """
    if packets <= 0:
        return counts_b
    more, least, framing = wire
    size = max(counts_b / packets + more, least)
    if framing == "atm":
        size = 53 * math.ceil(size / 48)
    elif framing == "ptm":
        size += math.ceil(size / 64)
    return float(packets * size)
