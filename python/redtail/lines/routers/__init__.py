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
    linux, openwrt, dummynet, ios, junos
               the commands of a device (dummynet: FreeBSD and OPNsense)
    rates      shapers that cannot be told a line's overhead
    model      the result
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from redtail.engine import kernel_queues
from redtail.errors import SpecError
from redtail.lines.line import Shaped
from redtail.lines.routers import dummynet, ios, junos, linux, openwrt, rates, table, tc
from redtail.lines.routers.model import Change, Commands
from redtail.lines.routers.table import DEVICES

__all__ = [
    "DEVICES",
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
    if device == "linux":
        return tuple(dict.fromkeys(row["kind"] for row in _tc_table()))
    return table.kinds(device)


def choices(device: str) -> tuple[str, ...]:
    """Return the kinds of `kinds` that a device of this name usually has, as they are advised.

    Raises:
        SpecError: as for `kinds`.
    """
    return tuple(kind for kind in kinds(device) if (device, kind) not in _UNUSUAL)


_UNUSUAL = (
    ("linux", "adaptive-red"),  # does not adapt as tc makes it
    ("linux", "dualpi2"),  # is new in Linux 6.17, and Debian's kernels do not have it
)


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
        lan: its interface to the people; ios and junos shape what arrives there.
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
    for shaped in given:
        _require(known, device, str(shaped.queue["kind"]), alternatives)
    require_interfaces(wan, lan)
    if not 576 <= mtu <= 65_535:
        raise SpecError(f"mtu = {mtu}; accepted: 576 to 65535 bytes", key="mtu")
    given.sort(key=lambda shaped: shaped.direction, reverse=True)  # up first
    told: list[Change] = []
    if device != "linux":
        given, told = _with_shapers(given)
    kernel = tc.Kernel(
        mtu=mtu,
        hz=hz or (openwrt.HZ if device == "openwrt" else tc.Kernel.hz),
        header=linux.headers(wan),
        nat=nat,
    )
    set_up, undo, changes, notices = _made(given, device, wan, lan, kernel)
    about = DEVICES[device]
    return Commands(
        device=device,
        where=about.where,
        set_up=tuple(set_up),
        undo=tuple(undo),
        changes=(*told, *changes),
        notices=tuple(notices),
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


_Made = tuple[list[str], list[str], list[Change], list[str]]


def _made(
    given: Sequence[Shaped], device: str, wan: str, lan: str | None, kernel: tc.Kernel
) -> _Made:
    """Return the lines, those that undo them, what changed, and what to know."""
    if device == "linux":
        changes = [change for shaped in given for change in linux.tree(shaped, kernel).changes]
        notices = list(linux.notices(given, wan, kernel))
        return [*linux.set_up(given, wan, kernel)], [*linux.undo(given, wan)], changes, notices
    if device == "openwrt":
        lines, changes = openwrt.lines(given, wan, kernel)
        return lines, openwrt.undo(), changes, list(openwrt.notices(given))
    set_up: list[str] = []
    undo: list[str] = []
    changes, notices = [], []
    if device in ("freebsd", "opnsense"):
        make = dummynet.commands if device == "freebsd" else dummynet.form
        for shaped in given:
            lines, more = make(shaped, wan, kernel.mtu)
            changes += more
            set_up += [
                line for line in lines if line not in set_up or not line.startswith("sysctl")
            ]
        if device == "freebsd":
            undo, notices = [*dummynet.undo(given)], [*dummynet.notices()]
        else:
            undo = ["delete the rules, queues and pipes that are called redtail", "Apply"]
            set_up.append("Apply")
        counted = dummynet.COUNTED
    else:
        module = ios if device == "ios" else junos
        for shaped in given:
            at = wan if shaped.direction == "up" else lan
            if at is None:
                at = "LAN"
                notices.append(
                    "down: the device shapes only what it sends: write its interface to the "
                    "people in place of LAN (--lan). What it sends there from elsewhere is "
                    "shaped, too"
                )
            lines, more = module.lines(shaped, at, kernel.mtu)
            set_up, changes = set_up + lines, changes + more
            undo += module.undo(shaped, at)
        notices += [*(ios.notices(given) if module is ios else junos.notices())]
        counted = module.COUNTED
    notices += [text for shaped in given if (text := rates.small_packets(shaped, counted))]
    return set_up, undo, changes, notices
