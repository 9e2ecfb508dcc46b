"""MikroTik RouterOS 7: a queue type, and a queue of the tree at the interface that sends.

The shaper is the tree's (`max-limit`): CAKE is set without a rate of its own, which would be a
second shaper.

Sources: MikroTik, Queues (help.mikrotik.com/docs/display/ROS/Queues): queue tree, queue types,
FastTrack; CAKE (help.mikrotik.com/docs/display/ROS/CAKE); the CLI reference of /queue/type
(manual.mikrotik.com/docs/cli-reference/queue/type.md) for names and accepted words.
"""

from __future__ import annotations

from collections.abc import Sequence

from redtail.lines.line import Shaped
from redtail.lines.routers import rates, table
from redtail.lines.routers.model import Change, Made
from redtail.lines.routers.names import exit_notices, exits, of_direction
from redtail.lines.routers.tc import Kernel
from redtail.lines.routers.units import Place

COUNTED = 14
"""Bytes of link header that the tree counts; we assume Ethernet without its check sequence."""

KINDS = {
    "cake": "cake",
    "fq-codel": "fq-codel",
    "codel": "codel",
    "tail-drop": "pfifo",
}
"""The `kind` of a queue type."""


def made(directions: Sequence[Shaped], wan: str, lan: str | None, kernel: Kernel) -> Made:
    """Return the commands of RouterOS."""
    found = Made(notices=[*exit_notices(directions, lan), *_notices(directions)])
    for shaped, device in exits(directions, wan, lan):
        set_up, changes = _queue(shaped, device, kernel)
        here = of_direction(shaped, device)
        found.set_up += set_up
        found.changes += changes
        found.check.append(f'/queue tree print stats where name="{here}"')
        found.undo += [f'/queue tree remove [find name="{here}"]']
        found.undo += [f'/queue type remove [find name="{here}"]']
    found.notices += rates.notices(directions, COUNTED)
    return found


def _queue(shaped: Shaped, device: str, kernel: Kernel) -> tuple[list[str], list[Change]]:
    """Return the commands for a direction, and what is not as it was advised."""
    kind = str(shaped.queue["kind"])
    rate, changes = rates.for_full_packets(shaped, kernel.mtu, COUNTED, 1)
    keys = table.keys_of(shaped)
    values, more = table.settings("routeros", shaped, keys, Place(rate, kernel.mtu))
    here = of_direction(shaped, device)
    words = [f"kind={KINDS[kind]}"]
    words += [
        f"{row.setting}={values[row.key].text}"
        for row in table.rows("routeros", kind)
        if row.setting and row.key in values
    ]
    if kind == "cake":
        words.append(f"cake-nat={'yes' if kernel.nat else 'no'}")
    return [
        f'/queue tree remove [find name="{here}"]',
        f'/queue type remove [find name="{here}"]',
        f"/queue type add name={here} {' '.join(words)}",
        f"/queue tree add name={here} parent={device} packet-mark=no-mark queue={here} "
        f"max-limit={rate}",
    ], [*changes, *more]


def _notices(directions: Sequence[Shaped]) -> list[str]:
    found = [
        "RouterOS 7 keeps the commands over a reboot. Packets that carry a packet mark of your own "
        "pass by a queue of no-mark: name the marks in packet-mark",
        "FastTrack passes by queues. If the counters of the check stay at 0, disable the rule: "
        "`/ip firewall filter disable [find action=fasttrack-connection]`",
    ]
    if any(shaped.queue["kind"] in ("cake", "fq-codel", "codel") for shaped in directions):
        found.append("cake, fq-codel and codel need RouterOS 7.1 or later")
    return found
