"""What happened in a run, and what is worth asking about: each list bounded, the rest counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from redtail.analysis.story import flow as stories
from redtail.analysis.story import words
from redtail.analysis.story.events import Event, Flow, Log, flow_of
from redtail.analysis.story.losses import LOSSES
from redtail.analysis.story.timeouts import Cause, Timeouts, summary
from redtail.metrics import counted

if TYPE_CHECKING:
    import numpy as np

MOST = 5
"""So many entries has each list."""

_FEW = 3
"""So many losses are no burst yet: three duplicate acknowledgements repair one of them."""


@dataclass(frozen=True)
class Entry:
    """One thing that is worth asking about.

    Attributes:
        text: the sentence.
        flow: whose it is, None for several.
        from_s: when it began.
        to_s: when it ended.
    """

    text: str
    flow: Flow | None
    from_s: float
    to_s: float

    def as_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        of = self.flow
        return {
            "text": self.text,
            "from_s": self.from_s,
            "to_s": self.to_s,
            **({"group": of.group, "flow": of.number} if of else {}),
            **({"connection": of.connection} if of and of.connection is not None else {}),
        }


@dataclass(frozen=True)
class Part:
    """A list of the overview.

    Attributes:
        title: what it lists.
        entries: at most `MOST`.
        more: how many there are besides.
    """

    title: str
    entries: list[Entry]
    more: int


@dataclass(frozen=True)
class Overview:
    """What happened in a run.

    Attributes:
        counts: how many events of each kind were recorded.
        timeouts: how often each cause was, in a sentence; empty without timeouts.
        causes: the numbers of timeouts by cause.
        parts: the lists.
    """

    counts: dict[str, int]
    timeouts: str
    causes: dict[str, int]
    parts: list[Part]

    def as_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "events": self.counts,
            "timeouts": self.causes,
            "summary": self.timeouts,
            "ask": [
                {
                    "title": part.title,
                    "entries": [each.as_json() for each in part.entries],
                    "more": part.more,
                }
                for part in self.parts
            ],
        }


def overview(log: Log) -> Overview:
    """Return what happened in a run.

    Args:
        log: its events.
    """
    found = {
        flow: Timeouts(log, flow, log.of(flow)).causes()
        for flow in dict.fromkeys(map(flow_of, log.of_kind("timeout")))
    }
    causes = [cause for each in found.values() for _, cause in each]
    counted_by: dict[str, int] = {}
    for cause in causes:
        counted_by[cause.kind] = counted_by.get(cause.kind, 0) + 1
    parts = [
        _part("flows with most timeouts", sorted(_by_flow(found), key=_rank)),
        _part("longest waits for a timer", sorted(_waits(found), key=_rank)),
        _slowest(log, "stall", "longest stalls"),
        _slowest(log, "page", "slowest pages"),
        _bursts(log),
    ]
    return Overview(
        counts=log.counts,
        timeouts=summary(causes, log.queues) if causes else "",
        causes=counted_by,
        parts=[part for part in parts if part.entries],
    )


def _rank(ranked: tuple[float, Entry]) -> tuple[float, float]:
    return -ranked[0], ranked[1].from_s


def _part(title: str, ranked: Sequence[tuple[float, Entry]]) -> Part:
    return Part(title, [each for _, each in ranked[:MOST]], max(0, len(ranked) - MOST))


def _by_flow(
    found: dict[Flow, list[tuple[Event, Cause]]],
) -> Iterator[tuple[float, Entry]]:
    for flow, causes in found.items():
        times = ", ".join(words.at(event.time_s) for event, _ in causes[:MOST])
        more = f" and {len(causes) - MOST} more" if len(causes) > MOST else ""
        text = f"{words.flow(flow)}: {counted(len(causes), 'timeout')}, at {times}{more}"
        yield len(causes), Entry(text, flow, causes[0][0].time_s, causes[-1][0].time_s)


def _waits(found: dict[Flow, list[tuple[Event, Cause]]]) -> Iterator[tuple[float, Entry]]:
    """Yield the timeouts of one packet, which follow each other, by how long they took."""
    for flow, causes in found.items():
        for _, row in groupby(causes, key=_packet):
            told = list(row)
            (first, _), (last, cause) = told[0], told[-1]
            since = first.time_s - (first.value or 0.0)
            many = f" ({len(told)} timeouts)" if len(told) > 1 else ""
            text = (
                f"{words.flow(flow)}: {words.lasting(last.time_s - since)}{many} until "
                f"{words.at(last.time_s)}: {cause.text}"
            )
            yield last.time_s - since, Entry(text, flow, since, last.time_s)


def _packet(told: tuple[Event, Cause]) -> tuple[bool, int]:
    """Return what stands for the packet of a timeout: without a number each is one of its own."""
    event, _ = told
    return event.sequence is None, event.row if event.sequence is None else event.sequence


def _slowest(log: Log, kind: str, title: str) -> Part:
    found = sorted(log.of_kind(kind), key=lambda event: (-(event.value or 0.0), event.row))
    entries = []
    for event in found[:MOST]:
        flow = flow_of(event)
        told = stories.during(log, stories.related(log, flow), event)
        text = f"{words.flow(flow)}, {words.at(event.time_s)}: {told}"
        entries.append(Entry(text, flow, event.time_s - (event.value or 0.0), event.time_s))
    return Part(title, entries, max(0, len(found) - MOST))


def _bursts(log: Log) -> Part:
    found = bursts(log)
    entries = [burst(log, part) for part in found[:MOST]]
    return Part("largest bursts of losses", entries, max(0, len(found) - MOST))


def bursts(log: Log, link: str | None = None) -> list[np.ndarray[Any, Any]]:
    """Return the places of the losses of each burst at a link, the largest first.

    Args:
        log: the events of the run.
        link: where; None for all links.
    """
    import numpy as np

    found: list[np.ndarray[Any, Any]] = []
    places = log.places(*LOSSES)
    codes, names = log.coded("link")
    for code in np.unique(codes[places]):
        if link is not None and (code < 0 or names[code] != link):
            continue
        own = places[codes[places] == code]
        known = log.queues.get(names[code]) if code >= 0 else None
        apart = known.burst_s if known is not None else words.BURST_S
        gaps = np.flatnonzero(np.diff(log.times[own]) > apart) + 1
        found += [part for part in np.split(own, gaps) if len(part) > _FEW]
    return sorted(found, key=lambda part: (-len(part), part[0]))


def burst(log: Log, places: np.ndarray[Any, Any]) -> Entry:
    """Return a burst of losses in words."""
    since, until = float(log.times[places[0]]), float(log.times[places[-1]])
    events = log.at(places)
    flows = counted(len({flow_of(each) for each in events}), "flow")
    text = (
        f"{words.packets(len(events))} of {flows} were {words.verb(events[0])} "
        f"{words.place(events[0].link)} within {words.lasting(until - since)} from "
        f"{words.at(since)} on ({words.reasons(events, log.queues)})"
    )
    return Entry(text, None, since, until)
