"""OpenWrt: the settings of SQM, as commands of `uci`.

SQM makes the shaper and the queue with `tc`; what it has no setting for is given to `tc` as it is
(`iqdisc_opts`, `eqdisc_opts`). Later options override those that SQM writes itself.

Source: sqm-scripts (June 2024), src/run-openwrt.sh (settings), src/functions.sh,
src/piece_of_cake.qos and src/simplest.qos (what becomes of them).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from redtail.engine import kernel_queues
from redtail.errors import SpecError
from redtail.lines.line import Shaped
from redtail.lines.routers import autorate, linux, tc
from redtail.lines.routers.model import Change, Made
from redtail.lines.routers.names import tag

QDISCS = {
    "cake": "cake",
    "fq-codel": "fq_codel",
    "codel": "codel",
    "pie": "pie",
    "fq-pie": "fq_pie",
}
"""Kinds that SQM's functions get_limit, get_target and get_ecn know, and their names in `tc`."""

HZ = 100
"""Ticks in a second: OpenWrt's targets differ, and no kernel for a router has fewer."""


def section(device: str) -> str:
    """Return the name of the section of /etc/config/sqm for an interface.

    >>> section("wan"), section("eth1.2")
    ('redtail_wan', 'redtail_eth1_2_42a8d316')
    """
    return f"redtail_{tag(device, '_')}"


FIELDS = (
    ("shaper", "download, upload", "whole kbit/s, rounded down"),
    (
        "overhead",
        "overhead",
        "bytes; for queues but CAKE without the 14 bytes of an Ethernet header",
    ),
    ("mpu", "tcMPU", "bytes"),
    ("framing", "linklayer", "`none` and `ptm`: ethernet, `atm`: atm; PTM in the options of CAKE"),
    ("limit", "ilimit, elimit", "packets"),
    ("target", "itarget, etarget", "us"),
    ("ecn", "ingress_ecn, egress_ecn", "`true`: ECN, `false`: NOECN"),
    ("all other keys", "iqdisc_opts, eqdisc_opts", "as for [tc](tc.md)"),
)
"""Keys, settings of SQM and their units, for the reference page."""

_OF_SHAPER = ("rate", "overhead", "mpu", "framing")
_OWN = {"limit": "limit", "target": "target", "ecn": "ecn"}


def made(directions: Sequence[Shaped], wan: str, lan: str | None, kernel: tc.Kernel) -> Made:
    """Return the commands of OpenWrt.

    Raises:
        SpecError: SQM cannot have the queues.
    """
    set_up, changes = lines(directions, wan, kernel)
    found = Made(set_up, ["tc -s qdisc show"], undo(wan), changes, [*notices(directions)])
    interfaces = {"down": ifb(wan), "up": wan}
    return autorate.added(found, directions, autorate.openwrt(section(wan)), interfaces)


def ifb(device: str) -> str:
    """Return the name that SQM gives to the device for what arrives: the end of a long name.

    Source: sqm-scripts, src/functions.sh, create_new_ifb_for_if.

    >>> ifb("wan"), ifb("enp0s31f6.100")
    ('ifb4wan', 'ifb4p0s31f6.100')
    """
    return f"ifb4{device[-(linux.NAME_BYTES - len('ifb4')) :]}"


def lines(
    directions: Sequence[Shaped], device: str, kernel: tc.Kernel
) -> tuple[list[str], list[Change]]:
    """Return the commands that set SQM up, and what is not as it was advised.

    Raises:
        SpecError: SQM cannot have the queues.
    """
    first = directions[0]
    kind = str(first.queue["kind"])
    for other in directions[1:]:
        if other.queue["kind"] != kind or other.overhead != first.overhead:
            raise SpecError(
                f'SQM has one kind of queue and one overhead for both directions, and "{kind}" and '
                f'"{other.queue["kind"]}" were advised; accepted: the same queue for both, or '
                "device linux, whose commands OpenWrt runs too",
                key="device",
            )
    is_cake = kind == "cake"
    changes: list[Change] = []
    values = {
        "enabled": "1",
        "interface": device,
        "download": "0",
        "upload": "0",
        "script": "piece_of_cake.qos" if is_cake else "simplest.qos",
        "qdisc": QDISCS[kind],
        **_link(first, is_cake, kernel),
        "qdisc_advanced": "1",
        "qdisc_really_really_advanced": "1",
        "squash_dscp": "0",
        "squash_ingress": "0",
    }
    for shaped in directions:
        rate, told = linux.shaper(shaped, 1000, counts_ptm=is_cake)
        own, more = _of_direction(shaped, kernel)
        changes += [*told, *more]
        values["download" if shaped.direction == "down" else "upload"] = str(rate // 1000)
        values |= own
    here = section(device)
    commands = [f"uci -q delete sqm.{here} || true", f"uci set sqm.{here}=queue"]
    commands += [f"uci set sqm.{here}.{name}='{value}'" for name, value in values.items()]
    return [*commands, *_restart()], changes


def undo(device: str) -> list[str]:
    """Return the commands that remove it."""
    return [f"uci delete sqm.{section(device)}", *_restart()]


def _restart() -> list[str]:
    return ["uci commit sqm", "/etc/init.d/sqm restart"]


def _link(shaped: Shaped, is_cake: bool, kernel: tc.Kernel) -> dict[str, str]:
    """Return how SQM counts the bytes of the line."""
    line = shaped.overhead
    # The kernel counts the link header with its table of sizes; CAKE leaves it out.
    overhead = line.packet_bytes - (0 if is_cake else kernel.header)
    return {
        "linklayer": "atm" if line.framing == "atm" else "ethernet",
        "overhead": str(overhead),
        "linklayer_advanced": "1",
        "tcMTU": "2047",
        # One entry for each size: with the usual 512, sizes would be rounded up.
        "tcTSIZE": "128" if line.framing == "atm" else "2048",
        "tcMPU": str(line.minimum_bytes),
        "linklayer_adaptation_mechanism": "cake" if is_cake else "tc_stab",
    }


def _of_direction(shaped: Shaped, kernel: tc.Kernel) -> tuple[dict[str, str], list[Change]]:
    """Return the settings of the queue of a direction."""
    keys, changes = tc.adapted(shaped, kernel)
    kind = str(shaped.queue["kind"])
    made = kernel_queues.tc_queue(
        {kind: keys | ({"rate": "1 Mbit/s"} if kind == "cake" else {})},
        rate_bps=math.floor(shaped.shaper_bps or shaped.line_bps),
        mtu=kernel.mtu,
        hz=kernel.hz,
        device="DEVICE",
    )
    way = "i" if shaped.direction == "down" else "e"
    own: dict[str, str] = {}
    options: list[str] = []
    for key, words in made.words.items():
        if kind == "cake" and key in _OF_SHAPER:
            continue
        if kind != "cake" and key in _OWN and words:
            own |= _setting(way, key, words)
            options += words[2:]  # the limit of memory beside that of packets
        else:
            options += words
    if kind == "cake" and shaped.overhead.framing == "ptm":
        options.append("ptm")
    own[f"{way}qdisc_opts"] = linux.with_nat(options, kernel)
    return own, changes


def _setting(way: str, key: str, words: Sequence[str]) -> dict[str, str]:
    """Return the setting of SQM for a key of a queue."""
    if key == "ecn":
        direction = "ingress" if way == "i" else "egress"
        return {f"{direction}_ecn": "ECN" if words[0] == "ecn" else "NOECN"}
    return {f"{way}{key}": words[1]}


def notices(directions: Sequence[Shaped]) -> Iterator[str]:
    """Yield what to know before."""
    qdisc = QDISCS[str(directions[0].queue["kind"])]
    yield (
        f"the kernel needs the module sch_{qdisc}, and hardware flow offloading must be off, "
        "because it passes by the queue"
    )
    yield "disable other sections of /etc/config/sqm for the same interface"
