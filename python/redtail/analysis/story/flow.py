"""The story of one flow: a sentence for each event, with its cause as far as it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from redtail.analysis.story import words
from redtail.analysis.story.events import Event, Flow, Log
from redtail.analysis.story.losses import LOSSES, is_ack
from redtail.analysis.story.timeouts import Cause, Timeouts

# What stands beside other events, or so often that it says little one by one.
QUIET = (*LOSSES, "mark", "retransmission", "alpha", "response")
"""Kinds that are told only when they are asked for."""

# States of Linux (tcp_ca_state), which follow from other events.
_STATES_OF_LINUX = ("open", "disorder", "reduction", "recovery", "loss")

# States of BBR that follow each other all the time.
_PROBING = "probe_bw"

# Reasons of events, in words.
_REASONS = {
    ("slow_start_end", "threshold"): "the window reached the slow-start threshold",
    ("slow_start_end", "loss"): "a loss was detected",
    ("slow_start_end", "timeout"): "the retransmission timer expired",
    ("slow_start_end", "mark"): "marks were answered",
    ("slow_start_end", "delay"): "round trips grew (HyStart lowers the threshold then)",
    ("recovery_end", "acknowledged"): "all that was sent before it is acknowledged",
    ("recovery_end", "timeout"): "a timeout took its place",
    ("recovery_end", "recovery"): "another took its place, for later losses",
    ("recovery_end", "undo"): "it proved spurious",
    ("loss_end", "acknowledged"): "all that was sent before it is acknowledged",
    ("loss_end", "recovery"): "fast recovery took its place",
    ("loss_end", "undo"): "the timeout proved spurious",
    (
        "spurious",
        "frto",
    ): "a timeout was spurious: what was sent before it is acknowledged after it (F-RTO, RFC 5682)",
    ("spurious", "dsack"): "each retransmission was reported as a duplicate, so nothing was lost "
    "(D-SACK, RFC 3708)",
    ("spurious", "eifel"): "an acknowledgement is of what was sent before the retransmission "
    "(Eifel, RFC 3522)",
    ("undo", "timeout"): "of the timeout",
    ("undo", "fast_retransmit"): "of fast recovery",
    ("tail_loss_probe", "new_data"): "with new data",
    ("tail_loss_probe", "last_segment"): "which repeats the last segment",
    ("stall", "video"): "the picture stood still",
}


@dataclass(frozen=True)
class Line:
    """A sentence of a story.

    Attributes:
        time_s: when it happened.
        kind: of the event.
        flow: whose event it is.
        link: of an event of a queue or a link, else None.
        text: the sentence, without the time.
        cause: of a timeout.
        quiet: whether it is told only when it is asked for.
    """

    time_s: float
    kind: str
    flow: Flow
    link: str | None
    text: str
    cause: Cause | None = None
    quiet: bool = False

    def __str__(self) -> str:
        """Return the sentence with its time."""
        return f"{words.at(self.time_s)}: {self.text}"

    def as_json(self) -> dict[str, Any]:
        """Return it for JSON: times in s."""
        cause = self.cause
        return {
            "time_s": self.time_s,
            "kind": self.kind,
            "group": self.flow.group,
            "flow": self.flow.number,
            **({"connection": self.flow.connection} if self.flow.connection is not None else {}),
            **({"link": self.link} if self.link else {}),
            "text": self.text,
            **(
                {"cause": cause.kind, "lost": [_as_json(each) for each in cause.lost]}
                if cause
                else {}
            ),
        }


def _as_json(event: Event) -> dict[str, Any]:
    kept = ("time_s", "event", "reason", "link", "sequence", "wait_s", "average", "probability")
    return {key: value for key in kept if (value := getattr(event, key)) is not None}


def lines(log: Log, flow: Flow) -> list[Line]:
    """Return the story of a flow, all kinds of events included.

    Args:
        log: the events of the run.
        flow: whose story.
    """
    return list(_Teller(log, flow).lines())


def mentions(line: Line, kinds: Sequence[str] | None) -> bool:
    """Return whether a line is wanted: of these kinds, or by default of all but the quiet ones."""
    return line.kind in kinds if kinds else not line.quiet


class _Teller:
    """Goes through the events of a flow, and knows which losses are not repaired yet."""

    def __init__(self, log: Log, flow: Flow) -> None:
        self.log = log
        self.flow = flow
        self.events = log.of(flow)
        self.unrepaired: dict[int, Event] = {}
        self.unplaced: list[Event] = []  # of kernels, whose logs have no sequence numbers
        self.marks: list[Event] = []
        self.state = ""
        self.slow_start_ended = False
        told = Timeouts(log, flow, self.events).causes()
        self.causes = {event.row: cause for event, cause in told}

    def lines(self) -> Iterator[Line]:
        for event in self.events:
            tell = _TELLERS.get(event.event, _plain)
            text = tell(self, event)
            if text:
                cause = self.causes.get(event.row)
                quiet = event.event in QUIET or self._is_routine(event)
                yield Line(event.time_s, event.event, self.flow, event.link, text, cause, quiet)

    def _is_routine(self, event: Event) -> bool:
        """Return whether an event is one of many that say little alone."""
        if event.event == "slow_start_end":
            again, self.slow_start_ended = self.slow_start_ended, True
            return again and event.reason == "threshold"
        if event.event != "state":
            return False
        before, self.state = self.state, event.reason or ""
        within = before.startswith(_PROBING) and self.state.startswith(_PROBING)
        return within or self.state in _STATES_OF_LINUX

    @cached_property
    def related(self) -> list[Event]:
        """The events of the flow, and of the other connections of its user."""
        return related(self.log, self.flow)

    @property
    def queues(self) -> Mapping[str, words.Queue]:
        return self.log.queues


def _timeout(teller: _Teller, event: Event) -> str:
    after = f" after {words.lasting(event.value)}" if event.value is not None else ""
    return f"timeout{after}: {teller.causes[event.row].text}"


def _loss(teller: _Teller, event: Event) -> str:
    what = "an acknowledgement" if is_ack(event) else "a packet"
    if event.sequence is not None:
        teller.unrepaired[event.sequence] = event
        what += f" (bytes from {event.sequence})"
    elif not is_ack(event):
        teller.unplaced.append(event)
    waited = f", after it had waited {words.lasting(event.wait_s)}" if event.wait_s else ""
    return f"{what} was {words.verb(event)} {words.lost(event, teller.queues)}{waited}"


def _retransmission(teller: _Teller, event: Event) -> str:
    lost = teller.unrepaired.pop(event.sequence, None) if event.sequence is not None else None
    what = f"retransmission of bytes from {event.sequence}"
    if lost is None:
        return what
    return (
        f"{what}, {words.verb(lost)} at {words.at(lost.time_s)} {words.lost(lost, teller.queues)}"
    )


def _mark(teller: _Teller, event: Event) -> str:
    teller.marks.append(event)
    return f"a packet was marked {words.lost(event, teller.queues)}"


def _mark_answered(teller: _Teller, event: Event) -> str:
    by = ""
    if teller.marks:
        last = teller.marks[-1]
        several = f", the last of {len(teller.marks)}," if len(teller.marks) > 1 else ""
        by = (
            f"; a packet{several} was marked at {words.at(last.time_s)} "
            f"{words.lost(last, teller.queues)}"
        )
    elif missing := teller.log.recorded.missing(event.time_s, event.time_s, ("mark",)):
        by = f"; what marked is not known ({missing})"
    teller.marks.clear()
    return f"the sender answered marks{_window(event)}{by}"


def _recovery(teller: _Teller, event: Event) -> str:
    head = f"fast recovery began{_window(event)}"
    # What was lost less than a round trip ago, the sender cannot know.
    known = event.time_s - teller.log.round_trip_s
    lost = [
        each
        for number, each in teller.unrepaired.items()
        if number >= (event.sequence or 0) and each.time_s <= known
    ]
    if lost:
        first = min(lost, key=lambda each: each.row)
        others = len(teller.unrepaired) - 1
        more = f"; {words.packets(others)} more of the flow lost since then" if others > 0 else ""
        return f"{head}: the packet {_before(teller, first, event)} is missing{more}"
    unplaced = [each for each in teller.unplaced if each.time_s <= known]
    del teller.unplaced[: len(unplaced)]
    if unplaced:
        count = words.packets(len(unplaced))
        return (
            f"{head}: since the last one the flow had lost {count}, the first "
            f"{_before(teller, unplaced[0], event)}; what is missing is not known, as the log "
            "has no sequence numbers of packets"
        )
    missing = teller.log.recorded.missing(0.0, event.time_s, ("drop",))
    why = (
        f"the cause is not in the recorded events ({missing})"
        if missing
        else "no loss that it could answer is in the recorded events: a packet may be late or "
        "overtaken"
    )
    return f"{head}: {why}"


def _before(teller: _Teller, lost: Event, event: Event) -> str:
    """Return where and why a packet was lost, and how long before an event."""
    where = words.lost(lost, teller.queues)
    return f"{words.verb(lost)} {where} {words.lasting(event.time_s - lost.time_s)} before"


def _window(event: Event) -> str:
    """Return the window, when the event has one."""
    return f", window {words.size(event.cwnd_bytes)}" if event.cwnd_bytes is not None else ""


def _reason(event: Event) -> str:
    """Return the reason of an event in words."""
    if event.reason is None:
        return ""
    return _REASONS.get((event.event, event.reason), event.reason.replace("_", " "))


def _end(what: str) -> Callable[[_Teller, Event], str]:
    def tell(_: _Teller, event: Event) -> str:
        after = f" after {words.lasting(event.value)}" if event.value is not None else ""
        return f"{what} ended{after}{_window(event)}: {_reason(event)}"

    return tell


def _undo(_: _Teller, event: Event) -> str:
    before = f" from {words.size(event.value)}" if event.value is not None else ""
    after = f" to {words.size(event.cwnd_bytes)}" if event.cwnd_bytes is not None else ""
    return f"the reduction {_reason(event)} was undone: the window goes back{before}{after}"


def _slow_start_end(_: _Teller, event: Event) -> str:
    size = f" with a window of {words.size(event.value)}" if event.value is not None else ""
    return f"slow start ended{size}: {_reason(event)}"


def _probe(_: _Teller, event: Event) -> str:
    return f"tail-loss probe {_reason(event)}".rstrip()


def _idle_restart(_: _Teller, event: Event) -> str:
    before = f" from {words.size(event.value)}" if event.value is not None else ""
    after = f" to {words.size(event.cwnd_bytes)}" if event.cwnd_bytes is not None else ""
    return f"the flow had been idle: the window was reduced{before}{after}"


def _stall(teller: _Teller, event: Event) -> str:
    return during(teller.log, teller.related, event)


def _page(teller: _Teller, event: Event) -> str:
    return during(teller.log, teller.related, event)


def during(log: Log, events: Sequence[Event], event: Event) -> str:
    """Return how long a stall or a page took, with the timeouts and losses in its time.

    Args:
        log: the events of the run.
        events: of its flow, or of all connections of its user.
        event: its end.
    """
    took = words.lasting(event.value or 0.0)
    what = f"stalled for {took}" if event.event == "stall" else f"a page was complete after {took}"
    if event.reason == "video":
        what = f"{what}: {_reason(event)}"
    since = event.time_s - (event.value or 0.0)
    within = [each for each in events if since <= each.time_s <= event.time_s]
    timeouts = sum(each.event == "timeout" for each in within)
    lost = [each for each in within if each.event in LOSSES]
    parts = []
    if timeouts:
        parts.append(f"{timeouts} {'timeout' if timeouts == 1 else 'timeouts'}")
    if lost:
        parts.append(f"{words.packets(len(lost))} lost ({words.reasons(lost, log.queues)})")
    return f"{what}; in this time {' and '.join(parts)}" if parts else what


def related(log: Log, flow: Flow) -> list[Event]:
    """Return the events of a flow and of the connections of the same user, in order."""
    if flow.connection is not None:
        return log.of(flow)
    same = [each for each in log.flows if (each.group, each.number) == (flow.group, flow.number)]
    found = [event for each in same for event in log.of(each)]
    return sorted(found, key=lambda event: event.row)


def _plain(_: _Teller, event: Event) -> str:
    reason = f": {_reason(event)}" if event.reason else ""
    value = f" ({event.value:.4g})" if event.value is not None else ""
    return f"{event.event.replace('_', ' ')}{reason}{value}"


def _state(_: _Teller, event: Event) -> str:
    return f"state {_reason(event)}{_window(event)}"


def _start(_: _Teller, __: Event) -> str:
    return "the flow begins"


def _flow_end(_: _Teller, event: Event) -> str:
    after = f", {words.lasting(event.value)} after its start" if event.value is not None else ""
    return f"all that the flow had to send is acknowledged{after}"


def _alpha(_: _Teller, event: Event) -> str:
    return (
        f"alpha, the share of marked bytes, is {event.value:.3g}" if event.value is not None else ""
    )


def _response(_: _Teller, event: Event) -> str:
    size = f" of {words.size(event.bytes)}" if event.bytes is not None else ""
    return f"a response{size} was complete after {words.lasting(event.value or 0.0)}"


_TELLERS: Mapping[str, Callable[[_Teller, Event], str]] = {
    "start": _start,
    "end": _flow_end,
    "timeout": _timeout,
    "tail_loss_probe": _probe,
    "retransmission": _retransmission,
    "recovery": _recovery,
    "recovery_end": _end("fast recovery"),
    "loss_end": _end("the repair after the timeout"),
    "undo": _undo,
    "mark_answered": _mark_answered,
    "state": _state,
    "alpha": _alpha,
    "slow_start_end": _slow_start_end,
    "idle_restart": _idle_restart,
    "stall": _stall,
    "page": _page,
    "response": _response,
    "drop": _loss,
    "wire_loss": _loss,
    "mark": _mark,
}
