"""Juniper Junos: a shaper and a scheduler, with a drop profile for RED.

All statements stand in a configuration group of redtail's own, which the configuration inherits:
so the undo deletes the group and nothing else. What the interface has itself comes before what it
inherits, so a scheduler map and a rate of its own are deactivated, and activated by the undo.

Sources: Junos OS Class of Service, the statements of `table.DEVICES`; Junos CLI User Guide, Use
Configuration Groups (juniper.net/documentation/us/en/software/junos/cli/topics/topic-map/
configuration-groups-usage.html), and Deactivate and Reactivate Statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redtail import facts
from redtail.lines.line import Shaped
from redtail.lines.routers import rates, table
from redtail.lines.routers.model import Change, Made
from redtail.lines.routers.names import exit_notices, exits, of_direction
from redtail.lines.routers.tc import Kernel
from redtail.lines.routers.units import Percent, Place, in_bytes

COUNTED = 14
"""Bytes of link header that the shaper counts; we assume Ethernet without its check sequence."""


OVERRIDDEN = ("scheduler-map", "shaping-rate")
"""What a unit may have itself, and would keep in place of what it inherits."""


def made(directions: Sequence[Shaped], wan: str, lan: str | None, kernel: Kernel) -> Made:
    """Return the configuration of Junos."""
    found = Made(notices=[*exit_notices(directions, lan), *notices()])
    for shaped, device in exits(directions, wan, lan):
        set_up, changes = lines(shaped, device, kernel.mtu)
        found.set_up += [*set_up]
        found.changes += changes
        interface, number = unit(device)
        found.check += [
            f"run show configuration groups {of_direction(shaped, device)} | display set",
            f"run show class-of-service interface {interface}.{number}",
            f"run show interfaces queue {interface}.{number}",
        ]
        found.undo += undo(shaped, device)
    found.notices += rates.notices(directions, COUNTED)
    return found


def unit(device: str) -> tuple[str, str]:
    """Return the physical interface and the logical unit of an interface.

    >>> unit("ge-0/0/0.100"), unit("ge-0/0/0")
    (('ge-0/0/0', '100'), ('ge-0/0/0', '0'))
    """
    interface, _, number = device.partition(".")
    return interface, number or "0"


def lines(shaped: Shaped, device: str, packet_bytes: int) -> tuple[list[str], list[Change]]:
    """Return the configuration for a direction, and what is not as it was advised."""
    rate, changes = rates.for_full_packets(shaped, packet_bytes, COUNTED, 1)
    place = Place(rate, packet_bytes)
    keys = facts.queue_keys(shaped.queue)
    thresholds: dict[str, str] = {}
    for key in ("min_th", "max_th"):
        if key in keys:
            thresholds[key] = keys.pop(key)
    values, more = table.settings("junos", shaped, keys, place)
    changes += more
    here, (interface, number) = of_direction(shaped, device), unit(device)
    group = f"set groups {here}"
    cos = f"{group} class-of-service"
    scheduler = f"{cos} schedulers {here}"
    at_unit = f"interfaces {interface} unit {number}"
    made = []
    if shaped.queue["kind"] == "red":
        buffer_bytes = int(values["limit"].text) * rate / 8e6
        levels, more = _levels(shaped, thresholds, buffer_bytes, place)
        changes += more
        slope = _profile(levels, int(values["max_p"].text), values["gentle"].text)
        made += [f"{cos} drop-profiles {here} interpolate {slope}"]
    made += [
        f"{scheduler} transmit-rate percent 100",
        f"{scheduler} buffer-size temporal {values['limit'].text}",
    ]
    if shaped.queue["kind"] == "red":
        made.append(
            f"{scheduler} drop-profile-map loss-priority any protocol any drop-profile {here}"
        )
    return [
        f"delete groups {here}",
        *made,
        f"{cos} scheduler-maps {here} forwarding-class best-effort scheduler {here}",
        f"{group} interfaces {interface} per-unit-scheduler",
        f"{cos} {at_unit} scheduler-map {here}",
        f"{cos} {at_unit} shaping-rate {rate}",
        *(f"deactivate class-of-service {at_unit} {each}" for each in OVERRIDDEN),
        f"set apply-groups {here}",
    ], changes


def _levels(
    shaped: Shaped, thresholds: Mapping[str, str], buffer_bytes: float, place: Place
) -> tuple[list[int], list[Change]]:
    """Return the thresholds in percent of the buffer, and what was rounded."""
    levels, changes = [], []
    for key, value in thresholds.items():
        written = Percent().write(in_bytes(value, place) / buffer_bytes, place)
        levels.append(int(written.text))
        if written.kept is not None:
            size = round(int(written.text) / 100 * buffer_bytes)
            why = "whole percent of the buffer"
            changes.append(Change(shaped.direction, key, value, f"{size} B", why))
    return levels, changes


def _profile(levels: Sequence[int], max_p: int, gentle: str) -> str:
    """Return the drop profile: points of the fullness and the probability, both in percent."""
    least, most = levels
    points = [(least, 0), (max(most, least + 1), max_p)]
    last = min(2 * most, 100) if gentle == "to 2 max_th" else min(most + 1, 100)
    if last > points[-1][0]:
        points.append((last, 100))
    fill, drop = (" ".join(str(point[at]) for point in points) for at in (0, 1))
    return f"fill-level [ {fill} ] drop-probability [ {drop} ]"


def undo(shaped: Shaped, device: str) -> list[str]:
    """Return the configuration that removes it, and leaves everything else as it was."""
    here, (interface, number) = of_direction(shaped, device), unit(device)
    at_unit = f"class-of-service interfaces {interface} unit {number}"
    return [
        f"delete apply-groups {here}",
        f"delete groups {here}",
        *(f"activate {at_unit} {each}" for each in OVERRIDDEN),
    ]


def notices() -> Iterator[str]:
    """Yield what to know before."""
    yield (
        "`delete`, `deactivate` and `activate` warn of statements that are not there: a first "
        "time, and at an interface without a scheduler map and a rate of its own. One of these "
        "that is inactive before is active after the undo"
    )
    yield (
        "`show | compare` shows what changes before `commit`. At an interface with an "
        "output-traffic-control-profile or a hierarchical-scheduler, `commit check` refuses the "
        "group: deactivate that, too"
    )
    yield (
        "all packets must be of the forwarding class best-effort: with classifiers of your own, "
        "give each class a scheduler"
    )
    yield (
        "per-unit-scheduler, shaping-rate at a unit, and up to 200000 us of buffer need an "
        "interface that has them: `commit check` says so. Some round the buffer down"
    )
