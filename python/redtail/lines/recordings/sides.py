"""Which packets of a capture go down, to the people at the line, and which go up."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.errors import SpecError
from redtail.lines.recordings.packets import Capture

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]
    Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Sides:
    """The directions of a capture.

    Attributes:
        local: of each conversation, its end on the people's side (0 or 1).
        told_by: how that was found, in a sentence.
    """

    local: Array
    told_by: str

    def is_up(self, capture: Capture) -> Array:
        """Return of each packet whether it goes up."""
        found: Array = capture["end"] == self.local[capture["conversation"]]
        return found


def networks(texts: Sequence[str]) -> list[Network]:
    """Return the networks that a user names.

    Raises:
        SpecError: a text is no address and no network.
    """
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise SpecError(
                f"--local {text}: is no address; accepted: an address or a network, such as "
                "192.168.1.0/24"
            ) from None
    return found


def sides(capture: Capture, local: Sequence[str] = (), main: str | None = None) -> Sides:
    """Find which end of each conversation is at the people's side of the line.

    Args:
        capture: the packets.
        local: addresses and networks at that side.
        main: "down" or "up": the direction of most of the bytes, where addresses do not tell.

    Raises:
        SpecError: an address cannot be read, or none of them is in the capture.
    """
    if local:
        return _by_networks(capture, networks(local))
    found = _by_interface(capture)
    if found is None:
        found = _by_privacy(capture)
    if found is None:
        found = _by_host(capture)
    return _turned(capture, found, main)


def _by_networks(capture: Capture, known: list[Network]) -> Sides:
    ends = np.zeros(len(capture.conversations), int)
    hits = 0
    for number in range(len(capture.conversations)):
        inside = [
            any(address in network for network in known)
            for address in capture.conversations.addresses(number)
        ]
        hits += sum(inside)
        ends[number] = 1 if inside[1] and not inside[0] else 0
    if not hits:
        named = ", ".join(str(network) for network in known)
        seen = Counter(a for talk in capture.conversations for a in talk.addresses)
        some = ", ".join(address for address, _ in seen.most_common(3))
        raise SpecError(
            f"--local {named}: no packet of {capture.path} is from or to there; it has: {some}"
        )
    return Sides(ends, "down is to the addresses that --local names")


def _by_interface(capture: Capture) -> Sides | None:
    """Tell by where packets were captured, if each interface saw one direction only."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count, places = len(capture.conversations), len(capture.interfaces)
    seen = np.unique(
        np.stack([capture["interface"], capture["conversation"], capture["end"]]).astype(np.int64),
        axis=1,
    )
    # An interface is of one colour or the other: it saw what the ends 0 of conversations sent, or
    # what the ends 1 did. Each choice of it is joined to the choices that follow from it.
    interface, talk, end = seen
    one = np.concatenate([2 * interface, 2 * interface + 1])
    other = 2 * places + np.concatenate([2 * talk + end, 2 * talk + 1 - end])
    size = 2 * (places + count)
    joined = coo_array((np.ones(len(one), np.int8), (one, other)), shape=(size, size))
    _, part = connected_components(joined, directed=False)
    of_talks = part[2 * places :].reshape(-1, 2) == part[2 * int(capture["interface"][0])]
    if (of_talks.sum(axis=1) != 1).any():
        return None
    ends = of_talks.argmax(axis=1)
    # Interfaces of colour 0 saw the packets that these ends sent: they are at the far side.
    return Sides(1 - ends, "each interface of the file saw one direction only")


def _by_privacy(capture: Capture) -> Sides | None:
    """Tell by addresses that are not routed on the Internet, if most packets have one of them."""
    talks = capture.conversations
    private = np.fromiter(
        (not one.is_global for number in range(len(talks)) for one in talks.addresses(number)),
        bool,
        2 * len(talks),
    ).reshape(-1, 2)
    told = private[:, 0] != private[:, 1]
    if not len(capture) or told[capture["conversation"]].mean() < 0.5:
        return None
    ends = np.where(private[:, 1] & ~private[:, 0], 1, 0)
    return Sides(ends, "down is to the private addresses (RFC 1918)")


def _by_host(capture: Capture) -> Sides:
    """Tell by the host that takes part in most conversations, or that receives most bytes."""
    talks = capture.conversations
    packets: Counter[str] = Counter()
    received: Counter[str] = Counter()
    sums = np.zeros((len(talks), 2))
    np.add.at(sums, (capture["conversation"], capture["end"]), capture["size"])
    counts = np.bincount(capture["conversation"], minlength=len(talks))
    for talk, sent, count in zip(talks, sums, counts, strict=True):
        for end, address in enumerate(talk.addresses):
            packets[address] += int(count)
            received[address] += int(sent[1 - end])
    most = max(packets.values(), default=0)
    best = max(packets, key=lambda address: (packets[address] >= 0.9 * most, received[address]))
    whole = packets[best] >= 0.9 * len(capture)
    ends = np.where(sums[:, 1] > sums[:, 0], 0, 1)
    if whole:
        for number, talk in enumerate(talks):
            if best in talk.addresses:
                ends[number] = talk.addresses.index(best)
    if whole:
        return Sides(ends, f"down is to {best}, which all conversations have")
    return Sides(ends, "down is the direction with more bytes")


def _turned(capture: Capture, found: Sides, main: str | None) -> Sides:
    """Turn the directions around, so that the one with more bytes is the main one."""
    if "private" in found.told_by and main is None:
        return found
    up = found.is_up(capture)
    sizes = capture["size"]
    more_up = float(sizes[up].sum()) > float(sizes[~up].sum())
    wanted = "down" if main is None else main
    told = f"{wanted} is the direction with more bytes"
    if main is None:
        told += " (--direction up: it is the other one)"
    if more_up != (wanted == "up"):
        found = Sides(1 - found.local, found.told_by)
    return Sides(found.local, told)
