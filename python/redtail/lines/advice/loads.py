"""What people do at a line: plausible loads, as groups of traffic of an experiment.

Nobody knows the load of a line, so an advice is judged by several: a usual evening, the evening
with one large transfer, and everything at once. How many people do what at a time is our choice,
and the experiment file of an advice is there to change it. A call is part of every load, since the
delay of its packets is what the others are judged by; it sends 80 kbit/s in each direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from redtail.lines.advice.timing import START_S, WARMUP_S
from redtail.lines.line import DIRECTIONS, Direction, Recorded
from redtail.scenario import flow_count

USES: dict[str, str] = {
    "calls": "calls, with or without video",
    "web": "Web pages",
    "backup": "photos and files that are copied to a cloud",
    "games": "network games",
    "streaming": "films and television",
    "downloads": "games and updates that are downloaded",
}
"""What a line can be used for."""

WINDOW_B, SEND_BUFFER_B = 3 << 20, 4 << 20
"""What a connection can have under way, and what its sender keeps. Source: Linux 6.1, tcp_rmem and
tcp_wmem (docs/explanation/tcp.md)."""

LEAST_WINDOW_B = 15_000
"""The smallest window that they are divided to. Source: the initial one, 10 packets (RFC 6928)."""

BACKUP_FLOWS = 2
"""Connections of one backup. Source: our choice; clients of clouds send a few files at a time."""

DOWNLOAD_FLOWS = 4
"""Connections of one download. Source: our choice; that of the test RRUL (Flent)."""

MANY_FLOWS = 8
"""Connections of a person with many, beside one who has one. Source: our choice; programs that
download in parts and speed tests have 4 to 16."""

TWO_PEOPLE = "two people"
"""The load of two people who transfer, from which it is seen whether a queue is fair to people."""

ONE, MANY = "one", "many"
"""What the names of their groups begin with."""

_TCP = "linux"

_FIRST_PAGES_S = 3
"""The time after the warm-up within which readers begin, so that everybody has a page that is
measured."""


@dataclass(frozen=True)
class Load:
    """What happens on a line at a time.

    Attributes:
        name: what tables call it.
        about: what it is, in words.
        groups: the groups of traffic, with the keys of the experiment file.
        full: the directions in which senders never run out of data, so that the line is full.
    """

    name: str
    about: str
    groups: tuple[Mapping[str, Any], ...]
    full: tuple[Direction, ...]


def loads(
    uses: Sequence[str], people: int, recorded: Recorded | None = None, warmup_s: float = WARMUP_S
) -> tuple[Load, ...]:
    """Return the loads of a line, the lightest first.

    Args:
        uses: what it is used for, of `USES`.
        people: number of people.
        recorded: with numbers of flows in it, a load that has as many is the last.
        warmup_s: time before what is measured, in s.
    """
    evening = _people(uses, people, 0.25, warmup_s)
    backup = _backup(BACKUP_FLOWS)
    download = _download(DOWNLOAD_FLOWS)
    found = [Load("evening", _said(evening), evening, ())]
    if "backup" in uses:
        groups = (*evening, backup)
        found.append(Load("one backup", _said(groups), groups, ("up",)))
    if "downloads" in uses or "backup" not in uses:
        groups = (*evening, download)
        found.append(Load("one download", _said(groups), groups, ("down",)))
    everybody = _people(uses, people, 0.5, warmup_s)
    if "backup" in uses:
        groups = (*everybody, download, _backup(2 * BACKUP_FLOWS))
        found.append(Load("everything", _said(groups), groups, ("down", "up")))
    else:
        groups = (*everybody, {**download, "flows": 2 * DOWNLOAD_FLOWS})
        found.append(Load("everything", _said(groups), groups, ("down",)))
    if people > 1:
        found.append(_two_people(uses, evening))
    if recorded is not None and (recorded.down_flows or recorded.up_flows):
        found.append(_as_recorded(evening, recorded))
    return tuple(found)


def with_windows(found: Sequence[Load], divisor: float) -> tuple[Load, ...]:
    """Return loads for a line of which the rates were divided: their windows are, too.

    What a connection can have under way makes queues of a part of a second on a fast line. On a
    line of a tenth of its rate they would be ten times as long.
    """
    if divisor == 1:
        return tuple(found)
    tcp = {
        "preset": _TCP,
        "receive_window": f"{max(LEAST_WINDOW_B, round(WINDOW_B / divisor))} B",
        "send_buffer": f"{max(LEAST_WINDOW_B, round(SEND_BUFFER_B / divisor))} B",
    }
    return tuple(
        replace(
            load,
            groups=tuple(
                {**group, "tcp": tcp} if "tcp" in group else group for group in load.groups
            ),
        )
        for load in found
    )


def most_flows(found: Sequence[Load], direction: Direction) -> int:
    """Return the largest number of flows that send at once for long, in one direction."""
    way = "forward" if direction == "down" else "reverse"

    def of(group: Mapping[str, Any]) -> int:
        long = group["kind"] in ("bulk", "video") and group.get("direction", "forward") == way
        return flow_count(group) if long else 0

    return max(1, *(sum(map(of, load.groups)) for load in found))


def flows_of(found: Sequence[Load]) -> dict[Direction, int]:
    """Return the largest number of flows that send at once for long, in each direction."""
    return {name: most_flows(found, name) for name in DIRECTIONS}


def _people(
    uses: Sequence[str], people: int, share: float, warmup_s: float
) -> tuple[Mapping[str, Any], ...]:
    """Return what people do who do not transfer files; a share of them at a time."""
    some = max(1, round(people * share))
    calls = some if "calls" in uses else 1
    groups: list[Mapping[str, Any]] = [
        {"name": f"calls-{way}", "kind": "voip", "flows": calls, "hosts": calls, **direction}
        for way, direction in (("down", {}), ("up", {"direction": "reverse"}))
    ]
    if "web" in uses:
        # People pause between pages, so all of them read.
        groups.append(
            {
                "name": "web",
                "kind": "web",
                "model": "http2",
                "users": people,
                "hosts": people,
                "server": "own",
                "tcp": _TCP,
                "start": f"uniform {warmup_s:g}..{warmup_s + _FIRST_PAGES_S:g} s",
            }
        )
    if "games" in uses:
        groups += [
            {"name": "games-down", "kind": "game", "flows": some, "hosts": some},
            {
                "name": "games-up",
                "kind": "game",
                "sender": "client",
                "direction": "reverse",
                "flows": some,
                "hosts": some,
            },
        ]
    if "streaming" in uses:
        groups.append(
            {
                "name": "streaming",
                "kind": "video",
                "users": some,
                "hosts": some,
                "tcp": _TCP,
                "start": f"uniform 0..{START_S:g} s",
            }
        )
    return tuple(groups)


def _backup(flows: int) -> Mapping[str, Any]:
    return {
        "name": "backup",
        "kind": "bulk",
        "direction": "reverse",
        "flows": flows,
        "tcp": _TCP,
        "start": f"uniform 0..{START_S:g} s",
    }


def _download(flows: int) -> Mapping[str, Any]:
    return {
        "name": "download",
        "kind": "bulk",
        "flows": flows,
        "tcp": _TCP,
        "start": f"uniform 0..{START_S:g} s",
    }


def _two_people(uses: Sequence[str], evening: Sequence[Mapping[str, Any]]) -> Load:
    """Return the evening beside two who transfer, one of them over many connections."""
    full: tuple[Direction, ...] = ("down", "up") if "backup" in uses else ("down",)
    groups = list(evening)
    for way in full:
        transfer = {"down": _download, "up": _backup}[way]
        groups += [
            {**transfer(flows), "name": f"{name}-{way}"}
            for name, flows in ((ONE, 1), (MANY, MANY_FLOWS))
        ]
    return Load(TWO_PEOPLE, _said(groups), tuple(groups), full)


def _as_recorded(evening: Sequence[Mapping[str, Any]], recorded: Recorded) -> Load:
    groups = list(evening)
    full: list[Direction] = []
    if recorded.down_flows:
        groups.append(_download(recorded.down_flows))
        full.append("down")
    if recorded.up_flows:
        groups.append(_backup(recorded.up_flows))
        full.append("up")
    return Load("as recorded", _said(groups), tuple(groups), tuple(full))


_WORDS = {
    "calls-down": ("call", "calls"),
    "web": ("reading pages", "reading pages"),
    "games-down": ("game", "games"),
    "streaming": ("film", "films"),
    "download": ("a download over {} connection", "a download over {} connections"),
    "backup": ("a backup over {} connection", "a backup over {} connections"),
    "one-down": ("a person who downloads over {} connection",) * 2,
    "many-down": ("one who downloads over {} connections",) * 2,
    "one-up": ("a person who uploads over {} connection",) * 2,
    "many-up": ("one who uploads over {} connections",) * 2,
}


def _said(groups: Sequence[Mapping[str, Any]]) -> str:
    """Return what a load has, in words."""
    found = []
    for group in groups:
        words = _WORDS.get(group["name"])
        if words is None:
            continue
        number = flow_count(group)
        text = words[number != 1]
        found.append(text.format(number) if "{}" in text else f"{number} {text}")
    return ", ".join(found)
