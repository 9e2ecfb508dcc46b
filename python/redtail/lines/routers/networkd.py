"""Linux with systemd-networkd: sections of the interface's own .network file.

networkd reads one .network file for an interface, so the sections stand in a drop-in beside it
(systemd.network(5)). It has no filters: what arrives is redirected by a unit, to a device `ifb`
that networkd makes.

Sources: systemd.network(5), sections [CAKE], [FairQueueingControlledDelay], [ControlledDelay],
[PFIFO], [HierarchyTokenBucket] and [HierarchyTokenBucketClass]; systemd.netdev(5), Kind=ifb;
systemd 253, NEWS: RTTSec= and AckFilter= of [CAKE].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from redtail.lines.line import Shaped
from redtail.lines.routers import linux, rates, table
from redtail.lines.routers.model import Change, Made
from redtail.lines.routers.systemd import UNITS, escaped, name, written
from redtail.lines.routers.tc import Kernel
from redtail.lines.routers.units import Place

FOLDER = "/etc/systemd/network"
"""Where an administrator's files of networkd are: systemd.network(5)."""

SECTIONS = {
    "cake": "CAKE",
    "fq-codel": "FairQueueingControlledDelay",
    "codel": "ControlledDelay",
    "tail-drop": "PFIFO",
}
"""The section of systemd.network(5) for a kind of queue."""

DROP_IN = "redtail.conf"

_TC = "/usr/sbin/tc"


def made(directions: Sequence[Shaped], wan: str, lan: str | None, kernel: Kernel) -> Made:
    """Return the commands that write the files of networkd, and make it read them."""
    found = Made()
    here, ifb = name(wan), linux.ifb(wan)
    files = [f"{FOLDER}/90-{ifb}.netdev", f"{FOLDER}/90-{ifb}.network"]
    unit_file = f"{UNITS}/{here}.service"
    for shaped in directions:
        lines, changes = sections(shaped, kernel)
        found.changes += changes
        if shaped.direction == "up":
            found.set_up += [*_own_file(wan), 'mkdir -p "$here"']
            found.set_up += written(f'"$here"/{DROP_IN}', lines)
            found.undo += [*_own_file(wan), f'rm -f "$here"/{DROP_IN}', 'rmdir "$here" || true']
            found.check.append(f"tc -s qdisc show dev {wan}")
            continue
        found.set_up += written(files[0], ["[NetDev]", f"Name={ifb}", "Kind=ifb"])
        found.set_up += written(files[1], [*_network(ifb), *lines])
        found.set_up += written(unit_file, redirection(wan))
        found.check += [f"tc -s filter show dev {wan} ingress", f"tc -s qdisc show dev {ifb}"]
        found.undo += [f"systemctl disable --now {here}.service", f"ip link del dev {ifb}"]
        found.undo.append(f"rm -f {unit_file} {' '.join(files)}")
    reloads = ["networkctl reload", f"networkctl reconfigure {wan}"]
    if any(shaped.direction == "down" for shaped in directions):
        found.set_up += ["systemctl daemon-reload", *reloads]
        found.set_up += [f"systemctl enable {here}.service", f"systemctl restart {here}.service"]
        found.undo += ["systemctl daemon-reload"]
    else:
        found.set_up += reloads
    if any(shaped.direction == "up" for shaped in directions):
        found.undo += [f"tc qdisc del dev {wan} root", *reloads]
    else:
        found.undo += reloads[:1]
    found.notices = [*_notices(directions, wan)]
    return found


def _own_file(device: str) -> list[str]:
    """Return lines for a shell that find the folder for drop-ins of an interface's file."""
    return [
        f"here=$(networkctl status {device} | sed -n 's/^ *Network File: *//p')",
        f'here={FOLDER}/"${{here##*/}}".d',
    ]


def _network(device: str) -> list[str]:
    lines = ["[Match]", f"Name={device}", "", "[Link]", "RequiredForOnline=no", ""]
    return [*lines, "[Network]", "LinkLocalAddressing=no", ""]


def redirection(device: str) -> list[str]:
    """Return a unit that redirects what arrives at a device to its `ifb`."""
    of_device, of_ifb = (
        f"{escaped(f'/sys/subsystem/net/devices/{each}')}.device"
        for each in (device, linux.ifb(device))
    )
    where = f"dev {device} ingress pref {linux.PREFERENCE}"
    return [
        "# Made by redtail advise.",
        "[Unit]",
        f"Description=Redirect what arrives at {device}",
        f"BindsTo={of_device} {of_ifb}",
        f"After={of_device} {of_ifb} systemd-networkd.service",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        f"ExecStartPre=-{_TC} qdisc add dev {device} handle ffff: ingress",
        f"ExecStartPre=-{_TC} filter del {where}",
        f"ExecStart={_TC} filter add {where} protocol all u32 match u32 0 0 action mirred egress "
        f"redirect dev {linux.ifb(device)}",
        f"ExecStop=-{_TC} filter del {where}",
        "",
        "[Install]",
        f"WantedBy={of_device}",
    ]


def sections(shaped: Shaped, kernel: Kernel) -> tuple[list[str], list[Change]]:
    """Return the sections of a .network file for a direction, and what changed."""
    if shaped.queue["kind"] == "cake":
        return _cake(shaped, kernel)
    lines: list[str] = []
    changes: list[Change] = []
    parent, rate = "root", math.floor(shaped.line_bps)
    if shaped.shaper_bps is not None:
        parent = f"1:{_CLASS}"
        lines, rate, changes = _shaper(shaped, kernel)
    own, more = _queue(shaped, Place(rate, kernel.mtu))
    return [*lines, *_section(shaped, [f"Parent={parent}", *own])], [*changes, *more]


_CLASS = 1


def _section(shaped: Shaped, lines: Sequence[str]) -> list[str]:
    return [f"[{SECTIONS[str(shaped.queue['kind'])]}]", *lines]


def _shaper(shaped: Shaped, kernel: Kernel) -> tuple[list[str], int, list[Change]]:
    """Return the sections of HTB, the rate, and what changed.

    HTB counts `OverheadBytes` with each packet, and has neither a smallest packet nor cells.
    """
    added = shaped.overhead.packet_bytes
    rate, changes = rates.for_full_packets(shaped, kernel.mtu, added, linux.BYTE)
    burst = max(math.ceil(rate / 8 * linux.BURST_S), kernel.mtu + max(added, kernel.header))
    of_class = [f"Rate={rate}", f"CeilRate={rate}"]
    of_class += [f"BufferBytes={burst}", f"CeilBufferBytes={burst}"]
    # An unsigned number: a line that adds less than Ethernet is counted with what Ethernet adds.
    if added > kernel.header:
        of_class.append(f"OverheadBytes={added - kernel.header}")
    lines = ["[HierarchyTokenBucket]", "Parent=root", "Handle=1", f"DefaultClass={_CLASS}", ""]
    lines += ["[HierarchyTokenBucketClass]", "Parent=root", f"ClassId=1:{_CLASS}", *of_class, ""]
    return lines, rate, changes


def _queue(shaped: Shaped, place: Place) -> tuple[list[str], list[Change]]:
    """Return the keys of a queue's section."""
    kind = str(shaped.queue["kind"])
    keys = table.keys_of(shaped)
    values, changes = table.settings("networkd", shaped, keys, place)
    lines = [
        f"{row.setting}={values[row.key].text}"
        for row in table.rows("networkd", kind)
        if row.setting and row.key in values
    ]
    return lines, changes


def _cake(shaped: Shaped, kernel: Kernel) -> tuple[list[str], list[Change]]:
    """Return the section of CAKE, which is its own shaper."""
    lines, changes = _queue(shaped, Place(shaped.shaper_bps or shaped.line_bps, kernel.mtu))
    first = ["Parent=root"]
    if shaped.shaper_bps is not None:
        rate, told = linux.shaper(shaped, linux.BYTE, counts_ptm=True)
        changes = [*told, *changes]
        first += [f"Bandwidth={rate}", f"OverheadBytes={shaped.overhead.packet_bytes}"]
        if shaped.overhead.minimum_bytes:
            first.append(f"MPUBytes={shaped.overhead.minimum_bytes}")
        first.append(f"CompensationMode={shaped.overhead.framing}")
    if "FlowIsolationMode" in "".join(lines):
        first.append(f"NAT={'yes' if kernel.nat else 'no'}")
    return _section(shaped, [*first, *lines]), changes


def _notices(directions: Sequence[Shaped], wan: str) -> list[str]:
    kinds = {str(shaped.queue["kind"]) for shaped in directions}
    found = [
        f"networkd must run {wan}: `networkctl list` shows it as configured. The files are read "
        "at each boot"
    ]
    if "cake" in kinds:
        found.append("RTTSec and AckFilter need systemd 253: an older one names and ignores them")
    else:
        found.append(
            f"`ethtool -K {wan} tso off gso off gro off` keeps the network card from joining "
            "packets, which would leave in bursts of up to 64 kB"
        )
        for shaped in directions:
            counted = max(shaped.overhead.packet_bytes, linux.headers(wan))
            if text := rates.small_packets(shaped, counted):
                found.append(text)
    return found
