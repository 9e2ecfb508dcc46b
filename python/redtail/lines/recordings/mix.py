"""Who sent in a capture: flows that send all the time, short transfers, and UDP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings.found import Flows
from redtail.lines.recordings.packets import TCP, TIMESTAMPS, UDP, Capture, Conversation

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

LONG_S = 5.0
"""A TCP flow that sends for so long is no short transfer: about what a page takes at most."""

THROUGHOUT = 0.5
"""Share of the recording in which a flow sends from which it counts as one without an end."""

MOST_DOWNLOADS = 20
"""Long transfers with an end are told one by one up to this number."""

ACTIVE = 0.8
"""Share of the slots of its life in which a flow has to send to be one that sends all the time."""

SLOT_S, SLOT_PACKETS = 0.25, 8
"""A slot is so long, and so long that a flow has so many packets in it on average."""

REQUESTS = 0.1
"""Share of the payload of a TCP conversation up to which an end sends requests, not data."""

PAUSE_S = 1.0
"""After such a pause a connection has another transfer: a page is fetched in less."""

LEAST_B = 500
"""Payload of a transfer; less is a request, or the like."""

STEADY = 0.5
"""Coefficient of variation of gaps, and of sizes, up to which UDP counts as of constant rate; it is
1 for packets that come at random."""

FEWEST = 20
"""Packets from which UDP is a flow; less is name service and the like."""


def mix(capture: Capture, is_up: Array, bases: Mapping[int, float]) -> tuple[Flows, ...]:
    """Return who sent.

    Args:
        capture: the packets, each once.
        is_up: of each packet, whether it goes up.
        bases: base round trip of conversations, in s.
    """
    way = capture["conversation"].astype(np.int64) * 2 + capture["end"]
    order = np.argsort(way, kind="stable")
    sums = np.bincount(way, capture["payload"], minlength=2 * len(capture.conversations))
    borders = np.concatenate([[0], np.flatnonzero(np.diff(way[order])) + 1, [len(order)]])
    protocols = capture.conversations.protocols
    found: dict[tuple[str, str], list[_Flow]] = {}
    for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        rows = order[first:last]
        number = int(way[rows[0]]) // 2
        mine, other = sums[way[rows[0]]], sums[way[rows[0]] ^ 1]
        if protocols[number] == TCP and mine <= REQUESTS * other:
            continue
        rows = rows[capture["payload"][rows] > 0]
        if protocols[number] not in (TCP, UDP) or not len(rows):
            continue
        direction = "up" if is_up[rows[0]] else "down"
        for flow in _flows(capture, rows, capture.conversations[number], bases.get(number)):
            found.setdefault((flow.kind, direction), []).append(flow)
    duration = max(capture.duration_s, 1e-9)
    for direction in ("down", "up"):
        if len(found.get(("downloads", direction), ())) > MOST_DOWNLOADS:
            many = found.pop(("downloads", direction))
            found.setdefault(("transfers", direction), []).extend(many)
    return tuple(
        _group(kind, direction, flows, duration)
        for (kind, direction), flows in sorted(found.items(), key=lambda item: _rank(item[0]))
    )


def _rank(key: tuple[str, str]) -> tuple[int, int]:
    kinds = ("bulk", "downloads", "transfers", "steady", "udp")
    return kinds.index(key[0]), ("down", "up").index(key[1])


@dataclass(frozen=True, slots=True)
class _Flow:
    """A flow: when its first packet came, its bytes, and its base round trip if that is known."""

    kind: str
    begin_s: float
    size_b: int
    payload_b: int
    packet_b: int
    rtt_s: float | None
    tcp: str


def _flows(
    capture: Capture, rows: Array, talk: Conversation, rtt_s: float | None
) -> Iterator[_Flow]:
    """Yield what one end sent in one conversation, by its packets with data.

    That is one flow if it sends all the time, and else a transfer for each time that it sends.
    """

    def flow(kind: str, rows: Array, tcp: str = "") -> _Flow:
        size, payload = capture["size"][rows], capture["payload"][rows]
        begin = float(capture["at_s"][rows[0]])
        middle = int(np.median(size))
        return _Flow(kind, begin, int(size.sum()), int(payload.sum()), middle, rtt_s, tcp)

    if talk.protocol == UDP:
        if len(rows) >= FEWEST:
            steady = _steady(capture["at_s"][rows], capture["size"][rows])
            yield flow("steady" if steady else "udp", rows)
        return
    stamps = bool((capture["options"][rows] & TIMESTAMPS).any())
    tcp = "linux" if stamps else "sack" if any(talk.sack) else "newreno"
    if _sends_throughout(capture, rows, THROUGHOUT * capture.duration_s):
        yield flow("bulk", rows, tcp)
        return
    pauses = np.flatnonzero(np.diff(capture["at_s"][rows]) >= PAUSE_S) + 1
    for part in np.split(rows, pauses):
        if capture["payload"][part].sum() >= LEAST_B:
            long = _sends_throughout(capture, part, LONG_S)
            yield flow("downloads" if long else "transfers", part, tcp)


def _sends_throughout(capture: Capture, rows: Array, least_s: float) -> bool:
    """Return whether packets come in most slots of their time, which is so long at least."""
    at = capture["at_s"][rows]
    life = float(at[-1] - at[0])
    if life < least_s or life <= 0:
        return False
    slot = max(SLOT_S, SLOT_PACKETS * life / len(rows))
    return len(np.unique(np.floor(at / slot))) >= ACTIVE * life / slot


def _steady(at: Array, size: Array) -> bool:
    gaps = np.diff(at)
    if gaps.mean() <= 0:
        return False
    # Without the longest hundredth, which are pauses of the capture or of the network.
    gaps = gaps[gaps <= np.quantile(gaps, 0.99)]
    return bool(gaps.std() <= STEADY * gaps.mean() and size.std() <= STEADY * size.mean())


def _group(kind: str, direction: str, flows: list[_Flow], duration: float) -> Flows:
    payloads = np.array([flow.payload_b for flow in flows], float)
    options = Counter(flow.tcp for flow in flows)
    transfers = kind == "transfers"
    return Flows(
        kind=kind,
        direction=direction,
        count=len(flows),
        bps=8 * sum(flow.size_b for flow in flows) / duration,
        packet_b=int(np.median([flow.packet_b for flow in flows])),
        # A short flow may never have met an empty queue.
        rtts_s=()
        if transfers
        else _alike([flow.rtt_s for flow in flows if flow.rtt_s is not None]),
        gap_s=duration / len(flows) if transfers else None,
        size_b=float(payloads.mean()) if transfers else None,
        sizes_b=_quartiles(payloads) if transfers else None,
        starts_s=tuple(flow.begin_s for flow in flows) if kind == "downloads" else (),
        payloads_b=tuple(flow.payload_b for flow in flows) if kind == "downloads" else (),
        tcp=options.most_common(1)[0][0],
    )


def _quartiles(values: Array) -> tuple[float, float, float]:
    low, middle, high = (float(value) for value in np.quantile(values, [0.25, 0.5, 0.75]))
    return low, middle, high


def _alike(rtts: list[float]) -> tuple[tuple[float, int], ...]:
    """Return round trips that differ by more than a tenth, with how many flows have each.

    >>> _alike([0.02, 0.0201, 0.08])
    ((0.02005, 2), (0.08, 1))
    """
    groups: list[list[float]] = []
    for rtt in sorted(rtts):
        if groups and rtt <= 1.1 * groups[-1][0]:
            groups[-1].append(rtt)
        else:
            groups.append([rtt])
    return tuple((float(np.median(group)), len(group)) for group in groups)
