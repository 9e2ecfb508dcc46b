"""Cisco IOS: a policy map that shapes, and below it one with the queue.

The queue is tail drop, RED, WRED, fair queues (`fair-queue`), or low latency queueing: a class with
`priority percent` for packets marked as voice, and fair queues for all others. The last is what the
experiment file has as `prio` over a token bucket and `sfq`.

Source: Cisco IOS Quality of Service Solutions Command Reference, the commands of `table.DEVICES`;
Low Latency Queueing with Priority Percentage Support
(cisco.com/en/US/docs/ios/ios_xe/qos/configuration/guide/llq_with_pps_xe.html).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from redtail import facts
from redtail.errors import SpecError
from redtail.lines.line import Shaped
from redtail.lines.routers import rates, table
from redtail.lines.routers.model import Change, Made
from redtail.lines.routers.names import exit_notices, exits, tag
from redtail.lines.routers.tc import Kernel
from redtail.lines.routers.units import Percent, Place, digits, listed
from redtail.scenario import rate_or_size

COUNTED = 14
"""Bytes of link header that the shaper counts; we assume Ethernet without its check sequence."""

STEP_BPS = 8000
"""IOS 12 takes multiples of this rate; later releases take any."""

PRECEDENCES, DSCPS = 8, 64

_NAMED = {"EF": 46, "VA": 44, "DF": 0, "BE": 0, "LE": 1}


def made(directions: Sequence[Shaped], wan: str, lan: str | None, kernel: Kernel) -> Made:
    """Return the configuration of IOS."""
    found = Made(notices=[*exit_notices(directions, lan), *notices(directions)])
    for shaped, device in exits(directions, wan, lan):
        set_up, changes = lines(shaped, device, kernel.mtu)
        found.set_up += set_up
        found.changes += changes
        found.check.append(f"show policy-map interface {device} output")
        found.undo += undo(shaped, device)
    found.notices += rates.notices(directions, COUNTED)
    return found


def policy(shaped: Shaped, device: str) -> str:
    """Return the name of a direction's policy map at an interface; IOS has up to 40 letters."""
    return f"REDTAIL-{shaped.direction.upper()}-{tag(device)}"


def lines(shaped: Shaped, device: str, packet_bytes: int) -> tuple[list[str], list[Change]]:
    """Return the configuration for a direction, and what is not as it was advised."""
    rate, changes = rates.for_full_packets(shaped, packet_bytes, COUNTED, STEP_BPS)
    place, name = Place(rate, packet_bytes), policy(shaped, device)
    maps: list[str] = []
    if shaped.queue["kind"] == "prio":
        maps, classes, more = _low_latency(shaped, name, place)
    else:
        classes, more = _default_class(shaped, place)
    return [
        *maps,
        f"policy-map {name}-QUEUE",
        *classes,
        f"policy-map {name}",
        " class class-default",
        f"  shape average {rate}",
        f"  service-policy {name}-QUEUE",
        f"interface {device}",
        f" service-policy output {name}",
    ], [*changes, *more]


def _low_latency(
    shaped: Shaped, name: str, place: Place
) -> tuple[list[str], list[str], list[Change]]:
    """Return the class map of voice, the classes of the policy map, and what changed.

    Raises:
        SpecError: the classes are others than a shaped one by DSCP and one for all others.
    """
    classes = shaped.queue["class"]
    shape = [each.get("queue", {}).get("kind") for each in classes]
    if len(classes) != 2 or shape[0] != "tbf" or "match" in classes[1]:
        raise SpecError(
            f'{shaped.direction}: queue "prio" on Cisco IOS has a first class of kind tbf, whose '
            f"match has dscp, and one for all others; this one has {len(classes)} classes with "
            f"{', '.join(map(str, shape))}",
            key="queue",
        )
    voice, others = classes
    rules = voice["match"] if isinstance(voice["match"], list) else [voice["match"]]
    marks = [mark for rule in rules for mark in listed(rule.get("dscp", []))]
    asked = str(voice["queue"]["rate"])
    percent = Percent().write(rate_or_size(asked) / place.rate_bps, place).text
    made = f"{digits(int(percent) / 100 * place.rate_bps)} bit/s"
    changes = []
    if rate_or_size(made) != rate_or_size(asked):
        why = "whole percent of the shaper's rate"
        changes.append(Change(shaped.direction, "class.queue.rate", asked, made, why))
    unknown = [key for rule in rules for key in rule if key != "dscp"]
    for key in dict.fromkeys(unknown):
        names = " and ".join(str(rule[key]) for rule in rules if key in rule)
        why = "IOS tells calls by their marks"
        marked = f"DSCP {' or '.join(map(str, marks))}"
        changes.append(Change(shaped.direction, f"class.match.{key}", names, marked, why))
    rest, more = _default_class(replace(shaped, queue=others["queue"]), place)
    return (
        [f"class-map match-any {name}-VOICE", *(f" match dscp {dscp(mark)}" for mark in marks)],
        [f" class {name}-VOICE", f"  priority percent {percent}", *rest],
        [*changes, *more],
    )


def _default_class(shaped: Shaped, place: Place) -> tuple[list[str], list[Change]]:
    """Return the class for all packets that have no other one, and what changed."""
    keys = facts.queue_keys(shaped.queue)
    values, changes = table.settings("ios", shaped, keys, place)
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
    return [" class class-default", *(f"  {line}" for line in queue)], changes


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
        dscps = listed(profile.get("dscp") or [])
        slopes |= {dscp(each): slope for each in dscps}
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
    name = policy(shaped, device)
    lines = [
        f"interface {device}",
        f" no service-policy output {name}",
        f"no policy-map {name}",
        f"no policy-map {name}-QUEUE",
    ]
    if shaped.queue["kind"] == "prio":
        lines.append(f"no class-map match-any {name}-VOICE")
    return lines


def notices(directions: Sequence[Shaped]) -> Iterator[str]:
    """Yield what to know before."""
    kinds = {str(shaped.queue["kind"]) for shaped in directions}
    yield (
        "an interface has one policy map for each direction: with another one there, IOS refuses "
        "the last line. Remove that one first with `no service-policy output NAME`, and give it "
        "back after the undo; the undo removes nothing but what is called REDTAIL"
    )
    if kinds & {"red", "wred"}:
        yield (
            "some platforms refuse queue-limit beside random-detect: leave out the line "
            "queue-limit there. Ranges differ between platforms: `?` behind a command shows "
            "those of yours"
        )
    if "prio" in kinds:
        yield (
            "the class of voice has the packets that are marked so: telephones mark, most programs "
            "do not. What is not marked waits in the fair queues. Do not trust marks from outside: "
            "let the provider, or a policy map at the input, clear them"
        )
