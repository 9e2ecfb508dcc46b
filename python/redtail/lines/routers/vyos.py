"""VyOS: a QoS policy for each direction; what arrives is redirected to an input interface (IFB).

Sources: VyOS documentation, Traffic Policy (docs.vyos.io/en/latest/configuration/trafficpolicy/
index.html): sections CAKE, FQ-CoDel, Shaper, Drop Tail, Fair Queue, and "The case of ingress
shaping"; vyos-1x, interface-definitions/interfaces_input.xml.in (names of input interfaces) and
python/vyos/qos/base.py (`noecn`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from redtail.lines.line import Shaped
from redtail.lines.routers import rates, table
from redtail.lines.routers.model import Change, Made
from redtail.lines.routers.names import short_hash, tag
from redtail.lines.routers.tc import Kernel
from redtail.lines.routers.units import Place

COUNTED = 14
"""Bytes of link header that the shapers count: those of Linux, whose options for a line's overhead
VyOS has no settings for (tc-stab(8), tc-cake(8), `raw`)."""

TYPES = (
    ("bond", "bonding"),
    ("br", "bridge"),
    ("eth", "ethernet"),
    ("pppoe", "pppoe"),
    ("tun", "tunnel"),
    ("vtun", "openvpn"),
    ("wg", "wireguard"),
    ("wwan", "wwan"),
)
"""Beginnings of interfaces' names, and their type in the configuration."""

QUEUES = {"fq-codel": "fq-codel", "sfq": "fair-queue", "tail-drop": "drop-tail"}
"""The `queue-type` of a kind in the policy `shaper`."""


def name(shaped: Shaped, wan: str) -> str:
    """Return the name of a direction's policy."""
    return f"REDTAIL-{shaped.direction.upper()}-{tag(wan)}"


def ifb(wan: str) -> str:
    """Return the input interface for what arrives: ifb and a number, another one for each."""
    return f"ifb{int(short_hash(wan), 16)}"


def path(device: str) -> str:
    """Return where an interface stands in the configuration.

    >>> path("eth0"), path("eth0.100"), path("pppoe0")
    ('ethernet eth0', 'ethernet eth0 vif 100', 'pppoe pppoe0')
    """
    port, _, vif = device.partition(".")
    beginning = re.match(r"[a-z]*", port)
    kind = dict(TYPES).get(beginning[0] if beginning else "", "ethernet")
    return f"{kind} {port}" + (f" vif {vif}" if vif else "")


def made(directions: Sequence[Shaped], wan: str, lan: str | None, kernel: Kernel) -> Made:
    """Return the configuration of VyOS."""
    found = Made()
    for shaped in directions:
        set_up, changes = _policy(shaped, wan, kernel)
        found.set_up += set_up
        found.changes += changes
        policy = _path(shaped, wan)
        at = wan if shaped.direction == "up" else ifb(wan)
        found.set_up.append(f"set qos interface {at} egress {name(shaped, wan)}")
        found.check.append(f"run show configuration commands | match {name(shaped, wan)}")
        found.check.append(f"sudo tc -s qdisc show dev {at}")
        if shaped.direction == "up":
            found.undo.append(f"delete qos interface {at} egress")
        else:
            # The documentation: everything else first, then the input interface.
            found.set_up += [f"set interfaces input {at}"]
            found.set_up += [f"set interfaces {path(wan)} redirect {at}"]
            found.undo += [f"delete interfaces {path(wan)} redirect", f"delete qos interface {at}"]
            found.undo += [f"delete interfaces input {at}"]
        found.undo.append(f"delete {policy}")
    found.notices = [*_notices(directions, wan), *rates.notices(directions, COUNTED)]
    return found


def _path(shaped: Shaped, wan: str) -> str:
    policy = "cake" if shaped.queue["kind"] == "cake" else "shaper"
    return f"qos policy {policy} {name(shaped, wan)}"


def _policy(shaped: Shaped, wan: str, kernel: Kernel) -> tuple[list[str], list[Change]]:
    """Return the statements of a direction's policy, and what changed."""
    kind = str(shaped.queue["kind"])
    rate, changes = rates.for_full_packets(shaped, kernel.mtu, COUNTED, 1000)
    keys = table.keys_of(shaped)
    values, more = table.settings("vyos", shaped, keys, Place(rate, kernel.mtu))
    policy = f"set {_path(shaped, wan)}"
    bandwidth = f"{rate // 1000}kbit"
    lines = [f"{policy} bandwidth {bandwidth}"]
    if kind != "cake":
        policy += " default"
        lines += [f"{policy} bandwidth {bandwidth}", f"{policy} queue-type {QUEUES[kind]}"]
    for row in table.rows("vyos", kind):
        if not row.setting or row.key not in values:
            continue
        text = values[row.key].text
        if row.key == "ack_filter":
            lines += [f"{policy} {text}"] if text else []
        else:
            lines.append(f"{policy} {row.setting} {text}")
    if kind == "cake" and kernel.nat:
        lines.append(f"{policy} flow-isolation-nat")
    return lines, [*changes, *more]


def _notices(directions: Sequence[Shaped], wan: str) -> list[str]:
    found = [
        f"an interface has one policy for each direction: with another one at {wan}, note its name "
        f"(`show qos interface {wan}`), and set it again after the undo"
    ]
    if any(shaped.queue["kind"] == "cake" for shaped in directions):
        found.append(
            "`flow-isolation-nat` and `ack-filter` are those of VyOS 1.5: in 1.4 write "
            "`flow-isolation nat`, and leave `ack-filter` out"
        )
    return found
