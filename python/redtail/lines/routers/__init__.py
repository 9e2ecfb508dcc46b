"""Commands that set an advised queue on a router.

    >>> from redtail.lines import Overhead, Shaped
    >>> docsis = Overhead(packet_bytes=18, minimum_bytes=64, framing="none")
    >>> up = Shaped("up", {"kind": "codel"}, 9_500_000, docsis, 10_000_000)
    >>> for line in commands([up], device="freebsd", wan="em0").set_up:
    ...     print(line)
    sysctl net.inet.ip.dummynet.pipe_slot_limit=1000
    ipfw pipe 1 config bw 9387351bit/s queue 1000 codel target 5000us interval 100000us noecn
    ipfw add 101 pipe 1 ip from any to any out xmit em0

The mapping is `table`, and for the options of `tc` the table of the native module;
docs/reference/router-commands.md is made from both.

It must not know how a queue was chosen: it is given what is advised for each direction
(`lines.line`). It writes commands and runs none.

    table      the mapping as data, and the devices
    units      what devices accept, and how values are rounded
    tc         a queue that Linux can have, with the options of `crates/live`
    linux, systemd, networkd, openwrt, dummynet, vyos, routeros, ios, junos
               the commands of a device (dummynet: FreeBSD, OPNsense and pfSense), each with a
               function `made`
    autorate    the settings of cake-autorate, where a shaper follows the line
    rates      shapers that cannot be told a line's overhead
    names      names that two lines of a router do not share
    model      the result
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from redtail.engine import kernel_queues
from redtail.errors import SpecError
from redtail.lines.line import Shaped
from redtail.lines.routers import (
    dummynet,
    ios,
    junos,
    linux,
    networkd,
    openwrt,
    routeros,
    systemd,
    table,
    tc,
    vyos,
)
from redtail.lines.routers.model import Change, Commands, Made
from redtail.lines.routers.table import DEVICES

__all__ = [
    "DEVICES",
    "FOLLOW",
    "Change",
    "Commands",
    "choices",
    "commands",
    "kinds",
    "require_interfaces",
]

MTU = 1500
"""Bytes of a full IP packet: Ethernet's, IEEE 802.3."""

_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")


def kinds(device: str) -> tuple[str, ...]:
    """Return the kinds of queue that a device has, as the experiment file calls them.

    Raises:
        SpecError: no device has this name.
    """
    if device not in DEVICES:
        raise SpecError(
            f'device = "{device}": no commands can be made for it; accepted: {", ".join(DEVICES)}',
            key="device",
        )
    if device == "openwrt":
        return tuple(openwrt.QDISCS)
    if device in _BY_TC:
        return tuple(dict.fromkeys(row["kind"] for row in _tc_table()))
    return table.kinds(device)


def choices(device: str) -> tuple[str, ...]:
    """Return the kinds of `kinds` that a device of this name usually has, as they are advised.

    Raises:
        SpecError: as for `kinds`.
    """
    unusual = _UNUSUAL.get(device, ())
    return tuple(kind for kind in kinds(device) if kind not in unusual)


FOLLOW = ("linux", "openwrt")
"""Devices for which there is cake-autorate, a program that makes CAKE's shaper follow the line.
Source: cake-autorate, INSTALLATION.md (OpenWrt; Debian and Ubuntu)."""

_BY_TC = ("linux", "systemd")
"""Devices with all the queues that the table of `tc` has."""

_RARE = (
    "adaptive-red",  # does not adapt as tc makes it
    "dualpi2",  # is new in Linux 6.17, and Debian's kernels do not have it
    "prio",  # CAKE and FQ-CoDel need no marks
    "sfq",  # FQ-CoDel is there
    "wred",  # is RED where packets have no marks
)
_UNUSUAL = {
    **dict.fromkeys(_BY_TC, _RARE),
    "vyos": ("sfq",),  # FQ-CoDel is there
    "ios": ("wred",),  # is RED where packets have no marks
}


def _tc_table() -> list[dict[str, str]]:
    found = kernel_queues.tc_table()
    if found is None:
        raise SpecError(
            "device = linux and openwrt need the table of tc's options, which redtail has on Linux "
            "only; accepted: redtail on Linux, or another device",
            key="device",
        )
    return found


def commands(
    directions: Iterable[Shaped],
    *,
    device: str,
    wan: str,
    lan: str | None = None,
    mtu: int = MTU,
    nat: bool = True,
    hz: int | None = None,
    alternatives: Sequence[str] = (),
) -> Commands:
    """Return the commands or settings that set advised queues on a router.

    Args:
        directions: what is advised, for one direction or for both.
        device: a name of `DEVICES`.
        wan: the router's interface to the line.
        lan: its interface to the people; routeros, ios and junos shape what arrives there.
        mtu: largest IP packet on the line, in bytes.
        nat: whether the router translates addresses.
        hz: ticks of the kernel's clock in a second, for Linux; by default 250 (Debian), and 100 for
            OpenWrt, whose targets differ.
        alternatives: kinds of queue that were advised as well, the best first; named where the
            device does not have the advised one.

    Raises:
        SpecError: the device does not have the queue, or a value makes no sense.
    """
    given = list(directions)
    if not given or len({shaped.direction for shaped in given}) < len(given):
        raise SpecError(
            "directions: commands are made for one or two directions, each once; accepted: down, "
            "up, or both",
            key="directions",
        )
    known = kinds(device)
    if device not in FOLLOW and any(shaped.follows is not None for shaped in given):
        raise SpecError(
            f"device = {device}: there is no cake-autorate for {DEVICES[device].title}, by which a "
            f"shaper follows the line; accepted: {', '.join(FOLLOW)}, or a shaper of one rate",
            key="device",
        )
    for shaped in given:
        _require(known, device, str(shaped.queue["kind"]), alternatives)
    require_interfaces(wan, lan)
    if not 576 <= mtu <= 65_535:
        raise SpecError(f"mtu = {mtu}; accepted: 576 to 65535 bytes", key="mtu")
    given.sort(key=lambda shaped: shaped.direction, reverse=True)  # up first
    told: list[Change] = []
    if device not in (*_BY_TC, "networkd"):
        given, told = _with_shapers(given)
    kernel = tc.Kernel(
        mtu=mtu,
        hz=hz or (openwrt.HZ if device == "openwrt" else tc.Kernel.hz),
        header=linux.headers(wan),
        nat=nat,
    )
    made = _MADE[device](given, wan, lan, kernel)
    about = DEVICES[device]
    return Commands(
        device=device,
        where=about.where,
        set_up=tuple(made.set_up),
        check=tuple(made.check),
        undo=tuple(made.undo),
        changes=(*told, *made.changes),
        notices=(*made.notices, processor(device)),
        sources=about.sources,
    )


def require_interfaces(wan: str, lan: str | None) -> None:
    """Refuse names that no interface has: they stand in lines for a shell.

    Raises:
        SpecError: the text says which signs are accepted.
    """
    for name, value in (("wan", wan), ("lan", lan)):
        if value is not None and not _INTERFACE.fullmatch(value):
            raise SpecError(
                f'{name} = "{value}" is no name of an interface; accepted: letters, digits and '
                ". _ : / @ -",
                key=name,
            )


def _require(known: Sequence[str], device: str, kind: str, alternatives: Sequence[str]) -> None:
    """Refuse a queue that a device does not have.

    Raises:
        SpecError: the text says which queues it has.
    """
    if kind in known:
        return
    title = DEVICES[device].title
    also = [other for other in alternatives if other in known and other != kind]
    if also:
        accepted = f"of what is advised as well, it has {', '.join(also)}"
    elif alternatives:
        others = ", ".join(alternatives)
        accepted = f"it has none of what is advised as well ({others}), but {', '.join(known)}"
    else:
        accepted = ", ".join(known)
    raise SpecError(f'queue "{kind}": {title} does not have it; accepted: {accepted}', key="queue")


def _with_shapers(given: Sequence[Shaped]) -> tuple[list[Shaped], list[Change]]:
    """Give a direction without a shaper one of the line's rate, where queues need one."""
    shaped, told = [], []
    for each in given:
        if each.shaper_bps is None:
            rate = f"{each.line_bps:.0f} bit/s"
            why = "the device has such a queue behind a shaper only"
            told.append(Change(each.direction, "shaper", "none", rate, why))
            each = replace(each, shaper_bps=each.line_bps)
        shaped.append(each)
    return shaped, told


_MADE: Mapping[str, Callable[[Sequence[Shaped], str, str | None, tc.Kernel], Made]] = {
    "linux": linux.made,
    "systemd": systemd.made,
    "networkd": networkd.made,
    "openwrt": openwrt.made,
    "freebsd": dummynet.made,
    "opnsense": dummynet.forms,
    "pfsense": dummynet.limiters,
    "vyos": vyos.made,
    "routeros": routeros.made,
    "ios": ios.made,
    "junos": junos.made,
}

_LOAD = {
    **dict.fromkeys(("linux", "systemd", "networkd", "vyos"), "`mpstat -P ALL 1`, column %soft"),
    "openwrt": "`top`, the value sirq",
    **dict.fromkeys(("freebsd", "opnsense", "pfsense"), "`top -P`"),
    "routeros": "`/tool profile cpu=all`",
    "ios": "`show processes cpu sorted`",
    "junos": "`show chassis routing-engine`",
}


def processor(device: str) -> str:
    """Return how to see whether a router's processor keeps up with the shaper.

    Source: OpenWrt, SQM (openwrt.org/docs/guide-user/network/traffic-shaping/sqm): the load depends
    on the processor, and a slow one does not keep up with the line. What one takes is not computed
    here, because it depends on the packets, the drivers and what else the router does.
    """
    return (
        "a shaper handles each packet on a processor, past offloading by hardware, and a slow one "
        "does not keep up (OpenWrt, SQM). How much it takes is not known here: fill the line, and "
        f"look at the busiest core with {_LOAD[device]}. Where one is busy all the time, it is the "
        "limit: compare the rate with and without the queue"
    )
