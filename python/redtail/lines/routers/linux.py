"""Linux: commands of `ip` and `tc`.

The options of queues are those of the table that the backends `live` and `linux` use
(`crates/live`, module `tc`); here are the shaper, what counts the bytes of the line, and the queue
for what arrives.

    sent:      WAN, root: stab, htb, and the queue in its only class; CAKE shapes itself
    received:  WAN, ingress -> a device `ifb`, at whose root there is the same

Sources: tc-htb(8), tc-cake(8), tc-stab(8), tc-mirred(8) and the manual page of each queue.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redtail.engine import kernel_queues
from redtail.lines.line import Shaped
from redtail.lines.routers import autorate
from redtail.lines.routers.model import Change, Made
from redtail.lines.routers.names import short_hash
from redtail.lines.routers.tc import ETHERNET_HEADER, Kernel, adapted
from redtail.lines.routers.units import digits

HEADERLESS = ("ppp", "pppoe", "tun", "wg", "wwan", "rmnet")
"""Beginnings of names of devices without a link header."""

BURST_S = 1e-3
"""Time for which the shaper may send at once: sqm-scripts, defaults.sh, SHAPER_BURST_DUR_US."""

PTM = 64 / 65
"""The share of a line with PTM that carries bytes of packets (tc-cake(8), `ptm`)."""

BYTE = 8
"""Bits: the kernel counts rates in whole bytes per second."""

NAME_BYTES = 15
"""Bytes of an interface's name: include/uapi/linux/if.h, IFNAMSIZ, less the zero at its end."""

PREFERENCE = 7281
"""The preference of the filter that redirects what arrives, by which the undo finds it.

Source: our choice; filters without a preference get 49152 and less (Linux, net/sched/cls_api.c,
tcf_auto_prio).
"""

CLASS = "line"
"""The name of the shaper's only class."""

_BY_HOST = ("srchost", "dsthost", "hosts", "dual-srchost", "dual-dsthost", "triple-isolate")


@dataclass(frozen=True)
class Tree:
    """The queue for one direction, below its shaper.

    Attributes:
        queue: `{kind: keys}`, as `redtail.kernel_queues.tc_queue` takes it.
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
        made = kernel_queues.tc_queue(
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
        return kernel_queues.tc_differs(
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
    """Return the name of the device for what arrives at a device, another one for each device.

    A name in Linux has at most 15 bytes (IFNAMSIZ, 16 with the zero at its end): a longer one
    becomes a hash of the device's name, behind another sign, so that no short one is the same.

    >>> ifb("eth0"), ifb("enp0s31f6.100"), ifb("enp0s31f6.101")
    ('rtifb-eth0', 'rtifb_be552334', 'rtifb_76c2694a')
    """
    name = f"rtifb-{device}"
    if len(name) <= NAME_BYTES:
        return name
    return f"rtifb_{short_hash(device)}"


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
    rate, told = shaper(shaped, BYTE)
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


def shaper(shaped: Shaped, step_bps: int, *, counts_ptm: bool = False) -> tuple[int, list[Change]]:
    """Return the rate of a shaper, rounded down, and what changed.

    Args:
        shaped: what was advised; it has a shaper.
        step_bps: the rate is a multiple of it.
        counts_ptm: whether the shaper knows that PTM sends 65 bytes for 64.
    """
    assert shaped.shaper_bps is not None
    ptm = shaped.overhead.framing == "ptm" and not counts_ptm
    rate = math.floor(shaped.shaper_bps * (PTM if ptm else 1) / step_bps) * step_bps
    if rate == shaped.shaper_bps:
        return rate, []
    unit = {BYTE: "whole bytes per second", 1000: "whole kbit/s"}[step_bps]
    why = unit + (", and PTM sends 65 bytes for 64" if ptm else "")
    advised, made = f"{digits(shaped.shaper_bps)} bit/s", f"{rate} bit/s"
    return rate, [Change(shaped.direction, "shaper", advised, made, why)]


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


def _cake(shaped: Shaped, keys: Mapping[str, Any], changes: Sequence[Change]) -> Tree:
    """Return CAKE, which is its own shaper."""
    if shaped.shaper_bps is None:
        return Tree({"cake": keys}, math.floor(shaped.line_bps), (), tuple(changes))
    rate, told = shaper(shaped, BYTE, counts_ptm=True)
    line = shaped.overhead
    of_shaper = {
        "rate": f"{rate} bit/s",
        "overhead": f"{line.packet_bytes} B",
        "mpu": f"{line.minimum_bytes} B",
        "framing": line.framing,
    }
    return Tree({"cake": {**keys, **of_shaper}}, rate, (), (*told, *changes))


def made(directions: Sequence[Shaped], wan: str, lan: str | None, kernel: Kernel) -> Made:
    """Return the commands of a Linux that keeps them until the next boot."""
    found = Made(
        [*set_up(directions, wan, kernel)],
        [*check(directions, wan)],
        [*undo(directions, wan)],
        [change for shaped in directions for change in tree(shaped, kernel).changes],
        [*notices(directions, wan, kernel), *until_boot(wan)],
    )
    interfaces = {"down": ifb(wan), "up": wan}
    return autorate.added(found, directions, autorate.debian(wan), interfaces)


def set_up(directions: Sequence[Shaped], device: str, kernel: Kernel) -> Iterator[str]:
    """Yield the commands that make the queues at a device."""
    here = ifb(device)
    for shaped in directions:  # up comes first
        made = tree(shaped, kernel)
        if shaped.direction == "up":
            yield _quietly(f"tc qdisc del dev {device} root")
            if _has_filters(shaped):
                yield _quietly(f"tc qdisc del dev {device} clsact")
            yield from made.commands(device, kernel)
            continue
        yield _quietly(f"tc filter del dev {device} ingress pref {PREFERENCE}")
        yield _quietly(f"ip link del dev {here}")
        yield f"ip link add name {here} type ifb"
        yield f"ip link set dev {here} up"
        yield from made.commands(here, kernel)
        # Another qdisc for what arrives, ingress or clsact, stays as it is.
        yield _quietly(f"tc qdisc add dev {device} handle ffff: ingress")
        yield (
            f"tc filter add dev {device} ingress pref {PREFERENCE} protocol all u32 match u32 0 0 "
            f"action mirred egress redirect dev {here}"
        )


def check(directions: Sequence[Shaped], device: str) -> Iterator[str]:
    """Yield the commands that show what `set_up` has made, and what it does."""
    for shaped in directions:
        if shaped.direction == "up":
            yield f"tc -s qdisc show dev {device}"
        else:
            yield f"tc -s filter show dev {device} ingress pref {PREFERENCE}"
            yield f"tc -s qdisc show dev {ifb(device)}"


def undo(directions: Sequence[Shaped], device: str) -> Iterator[str]:
    """Yield the commands that remove what `set_up` has made, and nothing else."""
    for shaped in directions:
        if shaped.direction == "up":
            yield f"tc qdisc del dev {device} root handle 1:"
            if _has_filters(shaped):
                yield f"tc filter del dev {device} egress"
        else:
            yield f"tc filter del dev {device} ingress pref {PREFERENCE}"
            yield f"ip link del dev {ifb(device)}"
    if any(map(_has_filters, directions)):
        yield _unless_used(device, "clsact", "ingress", "egress")
    elif any(shaped.direction == "down" for shaped in directions):
        yield _unless_used(device, "ingress", "ingress")


def _unless_used(device: str, qdisc: str, *ways: str) -> str:
    """Return a command for a shell: it removes the qdisc of filters if there are none any more.

    It says nothing where the qdisc is the other of the two, which somebody else has made.
    """
    shown = "".join(f"$(tc filter show dev {device} {way} 2> /dev/null)" for way in ways)
    return f'[ -n "{shown}" ] || tc qdisc del dev {device} {qdisc} 2> /dev/null || true'


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
    if any(shaped.direction == "up" for shaped in directions):
        yield (
            f"what stood at the root of {device} is replaced, and the undo leaves the kernel's "
            f"default: `tc qdisc show dev {device} root` shows it before"
        )
    if any(map(_has_filters, directions)):
        yield (
            f"the filters of wred stand in a qdisc clsact at {device}: one that is there is "
            "replaced, with the filters of others"
        )
    if any(shaped.direction == "down" for shaped in directions):
        yield (
            f"what arrives waits in {ifb(device)}. The modules sch_ingress, cls_u32, act_mirred "
            "and ifb must be there"
        )


def until_boot(device: str) -> Iterator[str]:
    """Yield how long the commands hold."""
    yield (
        "the queues last until the next boot, or until the device is made anew; `--device systemd` "
        f"makes a unit that sets them whenever {device} appears"
    )
