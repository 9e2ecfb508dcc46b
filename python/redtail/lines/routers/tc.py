"""From an advised queue to one whose every value Linux's `tc` can have.

What cannot be had exactly becomes the nearest that can, and is told. The options themselves are
those of the table of `crates/live` (module `tc`), which refuses what is left.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from redtail import facts
from redtail.engine import kernel_queues
from redtail.errors import SpecError
from redtail.lines.line import Direction, Shaped
from redtail.lines.routers.model import Change
from redtail.lines.routers.units import (
    Exponent,
    Place,
    digits,
    in_bytes,
    in_packets,
    is_packets,
    listed,
    parts,
)
from redtail.scenario import seconds

ETHERNET_HEADER = 14
"""Bytes of an Ethernet header, which the kernel counts as part of a packet."""


@dataclass(frozen=True)
class Kernel:
    """What of a router with Linux matters to the options of `tc`.

    Attributes:
        mtu: largest IP packet of the device, in bytes.
        hz: ticks of the kernel's clock in a second (CONFIG_HZ).
        header: bytes of the link header that the kernel counts with each packet.
        nat: whether the router translates addresses: then CAKE looks up those before translation.
    """

    mtu: int = 1500
    hz: int = 250
    header: int = ETHERNET_HEADER
    nat: bool = True


_IN_BYTES = ("red", "adaptive-red", "wred")
_IN_PACKETS = ("codel", "pie", "dualpi2", "fq-codel", "fq-pie", "choke", "sfq", "sfb", "head-drop")
_IN_TICKS = ("pie", "fq-pie")
_FULL_PACKET = {"codel": "mtu", "fq-codel": "mtu", "pie": "mean_packet", "fq-pie": "mean_packet"}


def adapted(shaped: Shaped, kernel: Kernel) -> tuple[dict[str, Any], list[Change]]:
    """Return the keys of a queue that the kernel can have, and what is not as it was advised.

    Raises:
        SpecError: the kernel has no such queue, or cannot have a value.
    """
    queue = copy.deepcopy(dict(shaped.queue))
    queue.pop("label", None)
    ((kind, keys),) = facts.queue_by_kind(queue).items()
    found = _Keys(shaped.direction, kind, keys)
    _groups(found)
    place = Place(shaped.shaper_bps or shaped.line_bps, kernel.mtu)
    _sizes(found, place)
    if kind == "adaptive-red":
        _adaptive_red(found, place)
    if kind == "dualpi2":
        _dualpi2(found)
    _numbers(found, place, kernel)
    _fixed(found, place, kernel)
    return found.keys, found.changes


@dataclass
class _Keys:
    """The keys of a queue, and what has become of them."""

    direction: Direction
    kind: str
    keys: dict[str, Any]
    changes: list[Change] = field(default_factory=list)

    def set(self, key: str, made: Any, why: str, within: dict[str, Any] | None = None) -> None:
        """Set a key of the queue, or of a table within it, to another value, and tell."""
        table = self.keys if within is None else within
        self.tell(key, table.get(key), made, why)
        table[key] = made

    def tell(self, key: str, asked: Any, made: Any, why: str) -> None:
        """Tell what a value becomes."""
        self.changes.append(Change(self.direction, key, _text(asked), _text(made), why))


def _groups(found: _Keys) -> None:
    """Leave out what only simulations know of a packet: its group of traffic."""
    for each in found.keys.get("class", ()):
        rules = listed(each.get("match", []))
        kept = [rule for rule in rules if "group" not in rule]
        if len(kept) < len(rules):
            groups = " and ".join(str(rule["group"]) for rule in rules if "group" in rule)
            why = "the kernel does not know groups of traffic"
            marks = " or ".join(str(mark) for rule in kept for mark in listed(rule.get("dscp", [])))
            found.tell("class.match.group", groups, f"DSCP {marks}", why)
            each["match"] = kept


def _sizes(found: _Keys, place: Place) -> None:
    """Turn limits and thresholds into what the kernel counts them in."""
    keys = found.keys
    of_bytes = f"the kernel counts bytes: packets of {place.packet_bytes} B"
    for table in (keys, *keys.get("profiles", ())) if found.kind in _IN_BYTES else ():
        for key in ("limit", "min_th", "max_th"):
            if key in table and any(map(is_packets, parts(table[key]))):
                size = min(in_bytes(part, place) for part in parts(table[key]))
                found.set(key, f"{round(size)} B", of_bytes, table)
    if found.kind in _IN_PACKETS and "limit" in keys:
        each = parts(keys["limit"])
        packets = [part for part in each if is_packets(part)]
        # With packets and bytes, the kernel has both; without packets, and with time, it has none.
        if not packets or any(part[-1] == "s" and not is_packets(part) for part in each):
            size = round(min(in_packets(part, place) for part in each))
            why = f"the kernel counts packets: of {place.packet_bytes} B"
            found.set("limit", f"{max(size, 1)} packets", why)


def _adaptive_red(found: _Keys, place: Place) -> None:
    """Give Adaptive RED the keys that tc has no defaults for."""
    found.keys.setdefault("mean_packet", f"{place.packet_bytes} B")
    # Floyd, Gummadi, Shenker 2001, section 4: 1 - exp(-1/C), C in packets per second.
    packets_s = place.rate_bps / 8 / place.packet_bytes
    found.keys.setdefault("w_q", -math.expm1(-1 / packets_s))
    why = "what tc sends for its word `adaptive` does not start the adaptation: max_p stays"
    found.tell("adapt", True, False, why)
    found.keys["adapt"] = False


def _dualpi2(found: _Keys) -> None:
    """Give DualPI2 the keys that tc has in place of `rtt_max` (RFC 9332, appendix A.1)."""
    keys = found.keys
    keys["flavour"] = "linux"
    if "rtt_max" not in keys:
        return
    asked = keys.pop("rtt_max")
    rtt = seconds(asked)
    update = min(seconds(keys.get("target", "15 ms")), rtt / 3)
    own = {"update": f"{round(1e6 * update)} us", "alpha": 0.1 * update / rtt**2, "beta": 0.3 / rtt}
    given = {key: value for key, value in own.items() if key not in keys}
    keys |= given
    made = ", ".join(f"{key} = {_text(value)}" for key, value in given.items())
    found.tell("rtt_max", asked, made, "RFC 9332, appendix A.1")


def _numbers(found: _Keys, place: Place, kernel: Kernel) -> None:
    """Round what the table of `tc` would refuse to round, because it changes too much."""
    keys = found.keys
    if "w_q" in keys:
        weight = Exponent(1, 31).write(keys["w_q"], place)
        if weight.kept is not None:
            found.set("w_q", 2.0 ** -int(weight.text), "the weight is a power of two")
    if "update" in keys and found.kind in _IN_TICKS:
        ticks = math.ceil(seconds(keys["update"]) * kernel.hz - 1e-9)
        if ticks / kernel.hz != seconds(keys["update"]):
            made = f"{digits(1e3 * ticks / kernel.hz)} ms"
            found.set("update", made, f"whole ticks of a kernel with {kernel.hz} Hz")
    full = _FULL_PACKET.get(found.kind)
    if full is not None:
        mtu = f"{kernel.mtu} B"
        if keys.setdefault(full, mtu) != mtu:
            found.set(full, mtu, "the MTU of the device")


def _fixed(found: _Keys, place: Place, kernel: Kernel) -> None:
    """Give keys of which the kernel has one value this one, and tell what it keeps of the others.

    Raises:
        SpecError: it cannot have a value.
    """
    kind = found.kind
    rows = {row["key"]: row for row in kernel_queues.tc_table() or () if row["kind"] == kind}
    while True:
        try:
            made = kernel_queues.tc_queue(
                {kind: _with_rate(kind, found.keys, place)},
                rate_bps=math.floor(place.rate_bps),
                mtu=kernel.mtu,
                hz=kernel.hz,
                device="DEVICE",
            )
            break
        except SpecError as error:
            key = error.key or ""
            only = rows[key]["only"] if key in rows else ""
            if not only or key not in found.keys:
                raise SpecError(
                    f'{found.direction}: queue "{kind}" on Linux: {error}', key=key or "queue"
                ) from None
            found.set(key, json.loads(only), "what the kernel always does")
    for key, kept in made.kept.items():
        if key in found.keys:
            found.tell(key, found.keys[key], kept, rows[key]["unit"])


def _with_rate(kind: str, keys: Mapping[str, Any], place: Place) -> Mapping[str, Any]:
    """Return the keys; those of CAKE with a shaper, as it will have one."""
    return {**keys, "rate": f"{math.floor(place.rate_bps)} bit/s"} if kind == "cake" else keys


def _text(value: Any) -> str:
    """Return a value as the experiment file has it, texts without quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return " and ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
