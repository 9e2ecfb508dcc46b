"""Juniper Junos: a shaper and a scheduler, with a drop profile for RED.

Source: Junos OS Class of Service, the statements of `table.DEVICES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redtail import facts
from redtail.lines.line import Shaped
from redtail.lines.routers import rates, table
from redtail.lines.routers.model import Change
from redtail.lines.routers.units import Percent, Place, in_bytes

COUNTED = 14
"""Bytes of link header that the shaper counts; we assume Ethernet without its check sequence."""


def name(shaped: Shaped) -> str:
    """Return the name of what is made for a direction."""
    return f"redtail-{shaped.direction}"


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
    here, (interface, number) = name(shaped), unit(device)
    cos = "set class-of-service"
    scheduler = f"{cos} schedulers {here}"
    made = []
    if shaped.queue["kind"] == "red":
        buffer_bytes = int(values["limit"].text) * rate / 8e6
        levels, more = _levels(shaped, thresholds, buffer_bytes, place)
        changes += more
        made += [_profile(here, levels, int(values["max_p"].text), values["gentle"].text)]
    made += [
        f"{scheduler} transmit-rate percent 100",
        f"{scheduler} buffer-size temporal {values['limit'].text}",
    ]
    if shaped.queue["kind"] == "red":
        made.append(
            f"{scheduler} drop-profile-map loss-priority any protocol any drop-profile {here}"
        )
    return [
        *made,
        f"{cos} scheduler-maps {here} forwarding-class best-effort scheduler {here}",
        f"set interfaces {interface} per-unit-scheduler",
        f"{cos} interfaces {interface} unit {number} scheduler-map {here}",
        f"{cos} interfaces {interface} unit {number} shaping-rate {rate}",
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


def _profile(here: str, levels: Sequence[int], max_p: int, gentle: str) -> str:
    """Return the drop profile: points of the fullness and the probability, both in percent."""
    least, most = levels
    points = [(least, 0), (max(most, least + 1), max_p)]
    last = min(2 * most, 100) if gentle == "to 2 max_th" else min(most + 1, 100)
    if last > points[-1][0]:
        points.append((last, 100))
    fill, drop = (" ".join(str(point[at]) for point in points) for at in (0, 1))
    return (
        f"set class-of-service drop-profiles {here} interpolate fill-level [ {fill} ] "
        f"drop-probability [ {drop} ]"
    )


def undo(shaped: Shaped, device: str) -> list[str]:
    """Return the configuration that removes it."""
    here, (interface, number) = name(shaped), unit(device)
    cos = "delete class-of-service"
    made = [
        f"{cos} interfaces {interface} unit {number}",
        f"delete interfaces {interface} per-unit-scheduler",
        f"{cos} scheduler-maps {here}",
        f"{cos} schedulers {here}",
    ]
    if shaped.queue["kind"] == "red":
        made.append(f"{cos} drop-profiles {here}")
    return made


def notices() -> Iterator[str]:
    """Yield what to know before."""
    yield (
        "all packets must be of the forwarding class best-effort: with classifiers of your own, "
        "give each class a scheduler"
    )
    yield (
        "per-unit-scheduler, shaping-rate at a unit, and up to 200000 us of buffer need an "
        "interface that has them: `commit check` says so. Some round the buffer down"
    )
