"""Cisco IOS: a policy map that shapes, and below it one with WRED, tail drop or fair queues.

Source: Cisco IOS Quality of Service Solutions Command Reference, the commands of `table.DEVICES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redtail import facts
from redtail.lines.line import Shaped
from redtail.lines.routers import rates, table
from redtail.lines.routers.model import Change
from redtail.lines.routers.units import Place

COUNTED = 14
"""Bytes of link header that the shaper counts; we assume Ethernet without its check sequence."""

STEP_BPS = 8000
"""IOS 12 takes multiples of this rate; later releases take any."""

PRECEDENCES, DSCPS = 8, 64

_NAMED = {"EF": 46, "VA": 44, "DF": 0, "BE": 0, "LE": 1}


def policy(shaped: Shaped) -> str:
    """Return the name of a direction's policy map."""
    return f"REDTAIL-{shaped.direction.upper()}"


def lines(shaped: Shaped, device: str, packet_bytes: int) -> tuple[list[str], list[Change]]:
    """Return the configuration for a direction, and what is not as it was advised."""
    rate, changes = rates.for_full_packets(shaped, packet_bytes, COUNTED, STEP_BPS)
    place, name = Place(rate, packet_bytes), policy(shaped)
    keys = facts.queue_keys(shaped.queue)
    values, more = table.settings("ios", shaped, keys, place)
    changes += more
    text = {key: each.text for key, each in values.items()}
    queue: list[str] = []
    kind = shaped.queue["kind"]
    if kind == "sfq":
        queue.append(f"fair-queue {text['divisor']}")
    if kind in ("red", "wred"):
        queue.append("random-detect dscp-based" if kind == "wred" else "random-detect")
        queue.append(f"random-detect exponential-weighting-constant {text['w_q']}")
        if kind == "red":
            slope = f"{text['min_th']} {text['max_th']} {text['max_p']}"
            queue += [f"random-detect precedence {each} {slope}" for each in range(PRECEDENCES)]
        else:
            profiles, more = _profiles(shaped, keys["profiles"], place)
            changes += more
            queue += profiles
        queue += [text["ecn"]] if text["ecn"] else []
    queue.append(f"queue-limit {text['limit']} packets")
    return [
        f"policy-map {name}-QUEUE",
        " class class-default",
        *(f"  {line}" for line in queue),
        f"policy-map {name}",
        " class class-default",
        f"  shape average {rate}",
        f"  service-policy {name}-QUEUE",
        f"interface {device}",
        f" service-policy output {name}",
    ], changes


def _profiles(
    shaped: Shaped, profiles: Sequence[Mapping[str, Any]], place: Place
) -> tuple[list[str], list[Change]]:
    """Return a line for each DSCP; a profile without `dscp` is for all others."""
    slopes: dict[int, str] = {}
    others, changes = "", []
    for profile in profiles:
        keys = {key: profile[key] for key in ("min_th", "max_th", "max_p")}
        values, more = table.settings("ios", shaped, keys, place, "profiles.")
        changes += more
        slope = " ".join(values[key].text for key in keys)
        dscps = profile.get("dscp") or []
        slopes |= {dscp(each): slope for each in ([dscps] if isinstance(dscps, str) else dscps)}
        others = others if dscps else slope
    return [
        f"random-detect dscp {each} {slopes.get(each, others)}"
        for each in range(DSCPS)
        if slopes.get(each, others)
    ], changes


def dscp(name: str | int) -> int:
    """Return the number of a DSCP.

    >>> dscp("EF"), dscp("AF21"), dscp("CS5"), dscp(7)
    (46, 18, 40, 7)
    """
    text = str(name).upper()
    if text in _NAMED:
        return _NAMED[text]
    if text.startswith("AF"):
        return 8 * int(text[2]) + 2 * int(text[3])
    return 8 * int(text[2]) if text.startswith("CS") else int(text)


def undo(shaped: Shaped, device: str) -> list[str]:
    """Return the configuration that removes it."""
    name = policy(shaped)
    return [
        f"interface {device}",
        f" no service-policy output {name}",
        f"no policy-map {name}",
        f"no policy-map {name}-QUEUE",
    ]


def notices(directions: Sequence[Shaped]) -> Iterator[str]:
    """Yield what to know before."""
    yield (
        "an interface has one policy map for each direction: remove another one with "
        "`no service-policy output NAME` first"
    )
    if any(shaped.queue["kind"] in ("red", "wred") for shaped in directions):
        yield (
            "some platforms refuse queue-limit beside random-detect: leave out the line "
            "queue-limit there. Ranges differ between platforms: `?` behind a command shows "
            "those of yours"
        )
