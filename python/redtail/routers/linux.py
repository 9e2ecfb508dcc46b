"""Linux: commands of `ip` and `tc`.

The options of queues are those of the table that the backends `live` and `linux` use
(`crates/live`, module `tc`); here are the shaper, what counts the bytes of the line, and the queue
for what arrives.

    sent:      WAN, root: stab, htb, and the queue in its only class; CAKE shapes itself
    received:  WAN, ingress -> a device `ifb`, at whose root there is the same

Sources: tc-htb(8), tc-cake(8), tc-stab(8), tc-mirred(8) and the manual page of each queue.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redtail import _engine
from redtail.advice.line import Direction, Shaped
from redtail.errors import SpecError
from redtail.routers.model import Change
from redtail.routers.units import (
    Exponent,
    Place,
    digits,
    in_bytes,
    in_packets,
    is_packets,
    parts,
)
from redtail.scenario import seconds

ETHERNET_HEADER = 14
"""Bytes of an Ethernet header, which the kernel counts as part of a packet."""

HEADERLESS = ("ppp", "pppoe", "tun", "wg", "wwan", "rmnet")
"""Beginnings of names of devices without a link header."""

BURST_S = 1e-3
"""Time for which the shaper may send at once: sqm-scripts, defaults.sh, SHAPER_BURST_DUR_US."""

PTM = 64 / 65
"""The share of a line with PTM that carries bytes of packets (tc-cake(8), `ptm`)."""

CLASS = "line"
"""The name of the shaper's only class."""

_IN_BYTES = ("red", "adaptive-red", "wred")
_IN_PACKETS = ("codel", "pie", "dualpi2", "fq-codel", "fq-pie", "choke", "sfq", "sfb", "head-drop")
_FULL_PACKET = {"codel": "mtu", "fq-codel": "mtu", "pie": "mean_packet", "fq-pie": "mean_packet"}
_BY_HOST = ("srchost", "dsthost", "hosts", "dual-srchost", "dual-dsthost", "triple-isolate")


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


@dataclass(frozen=True)
class Tree:
    """The queue for one direction, below its shaper.

    Attributes:
        queue: `{kind: keys}`, as `redtail._engine.tc_queue` takes it.
        rate_bps: rate of the shaper, or of the line if there is none, in bit/s.
        stab: the words that correct the sizes of packets.
        changes: what is not as it was advised.
    """

    queue: Mapping[str, Any]
    rate_bps: int
    stab: tuple[str, ...]
    changes: tuple[Change, ...]

    def commands(self, device: str, kernel: Kernel) -> list[str]:
        """Return the commands that put it at the root of a device."""
        made = _engine.tc_queue(
            self.queue, rate_bps=self.rate_bps, mtu=kernel.mtu, hz=kernel.hz, device=device
        )
        first, *others = ([*words] for words in made.commands)
        if self.stab:
            after = first.index("handle") + 2
            first[after:after] = self.stab
        lines = [with_nat(words, kernel) for words in (first, *others)]
        return [f"tc {line}" for line in lines]

    def differs(self, shown: str, kernel: Kernel) -> list[str]:
        """Return in words where a kernel has something else.

        Args:
            shown: the output of `tc -j -d qdisc show dev DEVICE`.
            kernel: what was asked for the commands.
        """
        return _engine.tc_differs(
            self.queue, shown, rate_bps=self.rate_bps, mtu=kernel.mtu, hz=kernel.hz
        )


def with_nat(words: Sequence[str], kernel: Kernel) -> str:
    """Return the words as a text; with NAT, CAKE is told to look up the hosts behind it."""
    by_host = kernel.nat and any(word in _BY_HOST for word in words)
    return " ".join("nat" if by_host and word == "nonat" else word for word in words)


def headers(device: str) -> int:
    """Return the bytes of the link header that the kernel counts at a device of this name.

    >>> headers("eth0"), headers("pppoe-wan")
    (14, 0)
    """
    return 0 if device.startswith(HEADERLESS) else ETHERNET_HEADER


def ifb(device: str) -> str:
    """Return the name of the device for what arrives at a device; Linux has up to 15 letters.

    >>> ifb("eth0"), ifb("enp0s31f6.100")
    ('ifb4eth0', 'ifb4enp0s31f6.1')
    """
    return f"ifb4{device}"[:15]


def tree(shaped: Shaped, kernel: Kernel) -> Tree:
    """Return the queue for one direction, with its shaper.

    Raises:
        SpecError: the kernel cannot have the queue.
    """
    keys, changes = adapted(shaped, kernel)
    kind = shaped.queue["kind"]
    if kind == "cake":
        return _cake(shaped, keys, changes)
    if shaped.shaper_bps is None:
        return Tree({kind: keys}, math.floor(shaped.line_bps), (), tuple(changes))
    rate, told = shaper(shaped)
    packet = kernel.mtu + max(shaped.overhead.packet_bytes, kernel.header)
    burst = max(math.ceil(rate / 8 * BURST_S), packet)
    of_class = {
        "name": CLASS,
        "rate": f"{rate} bit/s",
        "burst": f"{burst} B",
        "cburst": f"{burst} B",
        "queue": {kind: keys},
    }
    return Tree({"htb": {"class": [of_class]}}, rate, stab(shaped, kernel), (*told, *changes))


def shaper(shaped: Shaped) -> tuple[int, list[Change]]:
    """Return the rate of a shaper without PTM in whole bytes per second, and what changed."""
    assert shaped.shaper_bps is not None
    ptm = shaped.overhead.framing == "ptm"
    rate = math.floor(shaped.shaper_bps * (PTM if ptm else 1) / 8) * 8
    if rate == shaped.shaper_bps:
        return rate, []
    why = "whole bytes per second" + (", and PTM sends 65 bytes for 64" if ptm else "")
    return rate, [
        Change(
            shaped.direction,
            "shaper",
            f"{digits(shaped.shaper_bps)} bit/s",
            f"{rate} bit/s",
            why,
        )
    ]


def stab(shaped: Shaped, kernel: Kernel) -> tuple[str, ...]:
    """Return the words with which the kernel counts packets as the line does (tc-stab(8))."""
    line = shaped.overhead
    overhead = line.packet_bytes - kernel.header
    words: list[str] = []
    if line.framing == "atm":
        words = ["overhead", str(overhead), "linklayer", "atm"]
        if line.minimum_bytes:
            words += ["mpu", str(line.minimum_bytes)]
    elif line.minimum_bytes:
        # A table of one entry for each size: with the usual 512 entries, sizes would be rounded up.
        words = ["mtu", "2048", "tsize", "2048", "mpu", str(line.minimum_bytes)]
        words += ["overhead", str(overhead), "linklayer", "ethernet"]
    elif overhead:
        words = ["overhead", str(overhead)]
    return ("stab", *words) if words else ()


def _cake(shaped: Shaped, keys: dict[str, Any], changes: list[Change]) -> Tree:
    keys = dict(keys)
    line, rate = shaped.overhead, math.floor(shaped.line_bps)
    if shaped.shaper_bps is not None:
        rate = math.floor(shaped.shaper_bps / 8) * 8
        keys |= {
            "rate": f"{rate} bit/s",
            "overhead": f"{line.packet_bytes} B",
            "mpu": f"{line.minimum_bytes} B",
            "framing": line.framing,
        }
        if rate != shaped.shaper_bps:
            changes = [
                Change(
                    shaped.direction,
                    "shaper",
                    f"{digits(shaped.shaper_bps)} bit/s",
                    f"{rate} bit/s",
                    "whole bytes per second",
                ),
                *changes,
            ]
    return Tree({"cake": keys}, rate, (), tuple(changes))


def adapted(shaped: Shaped, kernel: Kernel) -> tuple[dict[str, Any], list[Change]]:
    """Return the keys of a queue that the kernel can have, and what is not as it was advised.

    Raises:
        SpecError: the kernel has no such queue, or cannot have a value.
    """
    kind = str(shaped.queue["kind"])
    keys = {key: value for key, value in shaped.queue.items() if key not in ("kind", "label")}
    place = Place(shaped.shaper_bps or shaped.line_bps, kernel.mtu)
    rows = {row["key"]: row for row in _engine.tc_table() or () if row["kind"] == kind}
    changes: list[Change] = []

    def change(key: str, made: Any, why: str, within: dict[str, Any] | None = None) -> None:
        table = keys if within is None else within
        asked, table[key] = table.get(key), made
        changes.append(Change(shaped.direction, key, _text(asked), _text(made), why))

    _sizes(kind, keys, place, change)
    if kind == "adaptive-red":
        # tc has no such defaults: w_q is that of Floyd, Gummadi, Shenker 2001, section 4.
        keys.setdefault("mean_packet", f"{kernel.mtu} B")
        packets_s = place.rate_bps / 8 / kernel.mtu
        keys.setdefault("w_q", -math.expm1(-1 / packets_s))
        keys["adapt"] = False
        why = "what tc sends for its word `adaptive` does not start the adaptation: max_p stays"
        changes.append(Change(shaped.direction, "adapt", "true", "false", why))
    if kind == "dualpi2":
        changes += _dualpi2(shaped.direction, keys)
    if "w_q" in keys:
        kept = Exponent(1, 31).write(keys["w_q"], place)
        if kept.kept is not None:
            change("w_q", 2.0 ** -int(kept.text), "the weight is a power of two")
    if "update" in keys and kind in ("pie", "fq-pie"):
        ticks = math.ceil(seconds(keys["update"]) * kernel.hz - 1e-9)
        if ticks / kernel.hz != seconds(keys["update"]):
            kept_time = f"{digits(1e3 * ticks / kernel.hz)} ms"
            change("update", kept_time, f"whole ticks of a kernel with {kernel.hz} Hz")
    full = _FULL_PACKET.get(kind)
    if full is not None:
        mtu = f"{kernel.mtu} B"
        if keys.get(full, mtu) != mtu:
            change(full, mtu, "the MTU of the device")
        keys[full] = mtu
    probe = keys | ({"rate": f"{math.floor(place.rate_bps)} bit/s"} if kind == "cake" else {})
    while True:
        try:
            made = _engine.tc_queue(
                {kind: probe},
                rate_bps=math.floor(place.rate_bps),
                mtu=kernel.mtu,
                hz=kernel.hz,
                device="DEVICE",
            )
        except SpecError as error:
            key = error.key or ""
            value = rows[key]["only"] if key in rows else ""
            if not value or key not in keys:
                raise SpecError(
                    f'{shaped.direction}: queue "{kind}" on Linux: {error}', key=key or "queue"
                ) from None
            change(key, json.loads(value), "what the kernel always does")
            probe[key] = keys[key]
            continue
        break
    for key, made_of in made.kept.items():
        if key in keys:
            asked, why = _text(keys[key]), rows[key]["unit"]
            changes.append(Change(shaped.direction, key, asked, made_of, why))
    return keys, changes


def _dualpi2(direction: Direction, keys: dict[str, Any]) -> list[Change]:
    """Give DualPI2 the keys that tc has in place of `rtt_max` (RFC 9332, appendix A.1)."""
    keys["flavour"] = "linux"
    if "rtt_max" not in keys:
        return []
    asked = keys.pop("rtt_max")
    rtt = seconds(asked)
    update = min(seconds(keys.get("target", "15 ms")), rtt / 3)
    own = {"update": f"{round(1e6 * update)} us", "alpha": 0.1 * update / rtt**2, "beta": 0.3 / rtt}
    given = {key: value for key, value in own.items() if key not in keys}
    keys |= given
    made = ", ".join(f"{key} = {_text(value)}" for key, value in given.items())
    return [Change(direction, "rtt_max", asked, made, "RFC 9332, appendix A.1")]


def _sizes(kind: str, keys: dict[str, Any], place: Place, change: Any) -> None:
    """Turn limits and thresholds into what the kernel counts them in."""
    of_packets = f"the kernel counts bytes: packets of {place.packet_bytes} B"
    for table in (keys, *keys.get("profiles", ())) if kind in _IN_BYTES else ():
        for key in ("limit", "min_th", "max_th"):
            if key in table and any(map(is_packets, parts(table[key]))):
                size = min(in_bytes(part, place) for part in parts(table[key]))
                change(key, f"{round(size)} B", of_packets, table)
    if kind in _IN_PACKETS and "limit" in keys:
        each = parts(keys["limit"])
        packets = [part for part in each if is_packets(part)]
        # With packets and bytes, the kernel has both; without packets, and with time, it has none.
        if not packets or any(part[-1] == "s" and not is_packets(part) for part in each):
            size = round(min(in_packets(part, place) for part in each))
            why = f"the kernel counts packets: of {place.packet_bytes} B"
            change("limit", f"{max(size, 1)} packets", why)


def _text(value: Any) -> str:
    """Return a value as the experiment file has it, texts without quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return " and ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def set_up(directions: Sequence[Shaped], device: str, kernel: Kernel) -> Iterator[str]:
    """Yield the commands that make the queues at a device."""
    here = ifb(device)
    arrives: tuple[str, ...] = _ARRIVES
    for shaped in directions:  # up comes first
        made = tree(shaped, kernel)
        if shaped.direction == "up":
            yield _quietly(f"tc qdisc del dev {device} root")
            if _has_filters(shaped):
                yield _quietly(f"tc qdisc del dev {device} clsact")
                arrives = _ARRIVES_BESIDE
            yield from made.commands(device, kernel)
            continue
        yield _quietly(f"tc qdisc del dev {device} ingress")
        yield _quietly(f"ip link del dev {here}")
        yield f"ip link add name {here} type ifb"
        yield f"ip link set dev {here} up"
        yield from made.commands(here, kernel)
        for line in arrives:
            yield line.format(device=device, ifb=here)


def undo(directions: Sequence[Shaped], device: str) -> Iterator[str]:
    """Yield the commands that remove what `set_up` has made."""
    beside = False
    for shaped in directions:
        if shaped.direction == "up":
            yield f"tc qdisc del dev {device} root"
            beside = _has_filters(shaped)
            if beside:
                yield f"tc qdisc del dev {device} clsact"
        else:
            if not beside:
                yield f"tc qdisc del dev {device} ingress"
            yield f"ip link del dev {ifb(device)}"


_REDIRECT = "protocol all u32 match u32 0 0 action mirred egress redirect dev {ifb}"
_ARRIVES = (
    "tc qdisc add dev {device} handle ffff: ingress",
    "tc filter add dev {device} parent ffff: " + _REDIRECT,
)
# The qdisc clsact is ingress and more, and a device has one of them.
_ARRIVES_BESIDE = ("tc filter add dev {device} ingress " + _REDIRECT,)


def _has_filters(shaped: Shaped) -> bool:
    """Return whether filters at the exit of the device choose among the profiles of a queue."""
    return any("dscp" in profile for profile in shaped.queue.get("profiles", ()))


def _quietly(command: str) -> str:
    """Return a command that may fail, for a shell."""
    return f"{command} 2> /dev/null || true"


def notices(directions: Sequence[Shaped], device: str, kernel: Kernel) -> Iterator[str]:
    """Yield what to know before the commands are used."""
    kinds = {str(shaped.queue["kind"]) for shaped in directions}
    if kinds != {"cake"}:
        # tc-stab(8), "Ethernet cards considerations"; CAKE divides such packets (`split-gso`).
        yield (
            f"`ethtool -K {device} tso off gso off gro off` keeps the network card from joining "
            "packets, which would leave in bursts of up to 64 kB"
        )
    if "dualpi2" in kinds:
        yield "dualpi2 needs Linux 6.17 and iproute2 6.17, or later"
    if kernel.header == 0 and kinds != {"cake"}:
        yield f"{device} is taken for a device without a link header"
    yield (
        "the queues last until the next boot: put the commands into what starts the network. "
        f"`tc -s qdisc show dev {device}` shows what they do"
    )
    if any(shaped.direction == "down" for shaped in directions):
        yield (
            f"what arrives waits in {ifb(device)}. The modules sch_ingress, cls_u32, act_mirred "
            "and ifb must be there"
        )
