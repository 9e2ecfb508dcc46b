"""The causes of timeouts: why no fast recovery repaired the loss, as far as the events tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from redtail.analysis.story import words
from redtail.analysis.story.events import Event, Flow, Log, Sender
from redtail.analysis.story.losses import Losses, side

# The causes, as they are counted.
AGAIN = "the retransmission was dropped again"
AFTER_TIMEOUT = "the retransmission after a timeout was dropped again"
PROBE = "the tail was dropped, and the tail-loss probe too"
WINDOW = "all packets from the first missing one on were dropped"
FEW = "too few packets arrived for three duplicate acknowledgements"
SLOW = "fast recovery was in progress and had not come to it"
LEFT = "fast recovery ended without sending it again"
ACKS = "acknowledgements were dropped"
SYN = "the SYN or its answer was dropped"
SPURIOUS = "spurious: nothing was lost"
UNKNOWN = "the cause is not in the recorded events"

NEEDED = ("drop", "retransmission")
"""The kinds of events without which no cause can be told."""

_RECOVERY = ("recovery", "recovery_end")


@dataclass(frozen=True)
class Cause:
    """Why a timer expired.

    Attributes:
        kind: one of the causes above.
        text: the sentence, without time and duration.
        lost: the losses that it names.
    """

    kind: str
    text: str
    lost: tuple[Event, ...] = ()


class Timeouts:
    """The timeouts of one flow.

    Args:
        log: the events of the run.
        flow: which flow.
        events: of the flow, in order.
    """

    def __init__(self, log: Log, flow: Flow, events: Sequence[Event]) -> None:
        self.log = log
        self.flow = flow
        self.queues = log.queues
        self.sender = log.senders.get(flow.group, Sender())
        self._losses = {back: Losses(events, back) for back in (0, 1)}
        self._timeouts = [event for event in events if event.event == "timeout"]
        self._probes = [event for event in events if event.event == "tail_loss_probe"]
        self._recoveries = [event for event in events if event.event in _RECOVERY]
        self._undone = [event for event in events if event.event in ("spurious", "undo")]
        self._times = {(each.event, each.time_s) for each in (*self._timeouts, *self._probes)}

    def causes(self) -> list[tuple[Event, Cause]]:
        """Return each timeout with its cause."""
        found = []
        for number, event in enumerate(self._timeouts):
            later = self._timeouts[number + 1 : number + 2]
            after = later[0].row if later else None
            found.append((event, self._cause(event, self._losses[side(event)], after)))
        return found

    def _cause(self, timeout: Event, losses: Losses, after: int | None) -> Cause:
        if timeout.reason == "handshake":
            return self._handshake(timeout, losses)
        if timeout.sequence is None:
            return self._unknown(timeout, "it has no sequence number, which kernels do not tell")
        # A SYN has the number of the first byte; its losses end with the handshake's timeouts.
        handshake = max(
            (each.row for each in self._timeouts if each.reason == "handshake"), default=-1
        )
        lost = [each for each in losses.of(timeout.sequence, timeout.row) if each.row > handshake]
        again = losses.again(timeout.sequence, timeout.row)
        latest = [each for each in lost if not again or each.row > again[-1].row]
        if latest and again:
            return self._lost_again(again, latest[-1], len(lost))
        if latest:
            return self._never_sent_again(timeout, latest[0], losses)
        return self._not_lost(timeout, again, losses, after)

    def _handshake(self, timeout: Event, losses: Losses) -> Cause:
        lost = [
            each
            for each in [event for part in losses.data.values() for event in part] + losses.acks
            if each.row < timeout.row
        ]
        if not lost:
            return self._unknown(timeout, "no packet of the handshake was dropped in them")
        last = max(lost, key=lambda each: each.row)
        text = f"a packet of the handshake was {self._lost(last)} at {words.at(last.time_s)}"
        return Cause(SYN, text, (last,))

    def _lost_again(self, again: Sequence[Event], last: Event, times: int) -> Cause:
        """What was sent again was lost again."""
        latest = again[-1]
        sent = words.at(latest.time_s)
        if self._at_same_time(latest, "tail_loss_probe"):
            what, kind = f"the tail-loss probe of {sent} repeated it and", PROBE
        elif self._at_same_time(latest, "timeout"):
            what, kind = f"the retransmission of {sent}, after the timeout then,", AFTER_TIMEOUT
        else:
            what, kind = f"the retransmission of {sent}", AGAIN
        text = f"{what} was {words.verb(last)} again {words.lost(last, self.queues)}"
        if times > 2:
            text += f"; the packet was lost {times} times"
        return Cause(kind, text, (last,))

    def _at_same_time(self, sent: Event, kind: str) -> bool:
        """Return whether a timeout or a probe made a retransmission: it is at the same time."""
        return (kind, sent.time_s) in self._times

    def _never_sent_again(self, timeout: Event, first: Event, losses: Losses) -> Cause:
        """The packet was lost, and the sender did not notice before its timer expired."""
        assert timeout.sequence is not None
        behind = losses.behind(timeout.sequence, first.row, timeout.row)
        probes = [
            each
            for each in self._probes
            if side(each) == side(timeout) and first.row < each.row < timeout.row
        ]
        in_a_row = self._in_a_row(timeout.sequence, behind)
        probe = probes[-1] if probes else None
        lost_probe = self._lost_probe(probe, behind) if probe is not None else None
        what = (
            f"the packet lost at {words.at(first.time_s)} {words.lost(first, self.queues)} was not "
            "sent again before"
        )
        counted = f"{words.packets(len(in_a_row))} from it on"
        reasons = words.reasons(behind, self.queues)
        if probe is not None and lost_probe is not None:
            whole = lost_probe.sequence in in_a_row
            rest = f"all {counted} were lost" if whole else "the tail-loss probe was lost too"
            text = f"{what}: {rest} ({reasons}), the last of them the tail-loss probe of "
            text += words.at(probe.time_s)
            return Cause(WINDOW if whole and len(in_a_row) > 2 else PROBE, text, tuple(behind))
        recovery = self._recovery(timeout, first)
        if recovery is not None:
            kind, rest = recovery
            return Cause(kind, f"{what}: {rest}", (first,))
        sent = self.log.sent.copies(
            self.flow, side(timeout), timeout.time_s - self.log.round_trip_s
        )
        if sent is not None:
            return self._of_what_arrived(timeout.sequence, sent, what, behind, losses)
        acks = losses.acks_lost(first.row, timeout.row)
        if acks:
            return Cause(ACKS, f"{what}: {self._acks(acks)}", (first, *acks))
        return Cause(
            UNKNOWN,
            f"{what}; why no fast recovery noticed it is not in the recorded events"
            f"{self._missing(timeout)}",
            (first,),
        )

    def _lost_probe(self, probe: Event, behind: Sequence[Event]) -> Event | None:
        """Return the loss of a tail-loss probe, None if it was not lost.

        The event has the end of the probe's data.
        """
        later = [each for each in behind if each.row > probe.row]
        return next(
            (
                each
                for each in later
                if each.sequence is not None
                and probe.sequence is not None
                and each.sequence
                < probe.sequence
                <= each.sequence + (self.sender.payload or each.bytes or 0)
            ),
            None,
        )

    def _in_a_row(self, sequence: int, behind: Sequence[Event]) -> set[int]:
        """Return the sequence numbers of lost packets that follow each other without a gap."""
        found = {sequence}
        numbers = sorted({each.sequence for each in behind if each.sequence is not None})
        payload = self.sender.payload or next(
            (later - one for one, later in pairwise(numbers)), None
        )
        while payload and max(found) + payload in numbers:
            found.add(max(found) + payload)
        return found

    def _recovery(self, timeout: Event, first: Event) -> tuple[str, str] | None:
        """Return the fast recovery that had not sent a packet again, as a cause and its sentence.

        It was in progress when the timer expired; or it had begun after the loss and ended.
        """
        before = [
            each
            for each in self._recoveries
            if each.row < timeout.row and side(each) == side(timeout)
        ]
        if not before:
            return None
        last = before[-1]
        if last.event == "recovery":
            begun = words.at(last.time_s)
            return SLOW, f"the fast recovery of {begun} was in progress, and had not come to it"
        begins = [each for each in before if each.event == "recovery"]
        if begins and begins[-1].row > first.row:
            begun, ended = words.at(begins[-1].time_s), words.at(last.time_s)
            return LEFT, f"the fast recovery of {begun} ended at {ended} without sending it again"
        return None

    def _of_what_arrived(
        self,
        sequence: int,
        sent: Counter[int],
        what: str,
        behind: Sequence[Event],
        losses: Losses,
    ) -> Cause:
        """It is known what was sent behind the missing packet, and so what of it arrived."""
        lost = Counter(each.sequence for each in behind)
        beyond = [number for number in sent if number > sequence]
        arrived = sum(sent[number] > lost[number] for number in beyond)
        reasons = words.reasons(behind, self.queues)
        if not arrived:
            count = words.packets(len(beyond) + 1)
            text = f"{what}: all {count} from it on were lost ({reasons})"
            return Cause(WINDOW, text, tuple(behind))
        count = f"{arrived} of the {words.packets(len(beyond))} behind it arrived"
        acks = losses.acks_lost(behind[0].row, behind[-1].row + 1) if behind else []
        wanted = self.sender.duplicates
        if wanted is not None and arrived < wanted:
            text = (
                f"{what}: {count}, which makes fewer than {wanted} duplicate acknowledgements "
                "(RFC 5681, section 3.2)"
            )
            return Cause(FEW, text, (behind[0],))
        if acks:
            return Cause(ACKS, f"{what}: {count}, and {self._acks(acks)}", tuple(acks))
        return Cause(
            UNKNOWN,
            f"{what}: {count}; why no fast recovery began is not in the recorded events",
            (behind[0],),
        )

    def _not_lost(
        self, timeout: Event, again: Sequence[Event], losses: Losses, after: int | None
    ) -> Cause:
        """The last copy of the packet was not lost, as far as the events tell."""
        undone = next(
            (
                each
                for each in self._undone
                if each.row > timeout.row and (after is None or each.row < after)
            ),
            None,
        )
        wait = f" of {words.lasting(timeout.value)}" if timeout.value is not None else ""
        since = again[-1].row if again else -1
        earliest = again[-1].time_s if again else timeout.time_s - (timeout.value or 0.0)
        acks = [each for each in losses.acks_lost(since, timeout.row) if each.time_s >= earliest]
        if acks:
            return Cause(ACKS, self._acks(acks), tuple(acks))
        if undone is not None:
            by = f" ({undone.reason})" if undone.reason else ""
            text = (
                f"it was spurious: the timer{wait} was shorter than the round trip then, and an "
                f"acknowledgement that came afterwards showed it at {words.at(undone.time_s)}{by}"
            )
            return Cause(SPURIOUS, text)
        return self._unknown(timeout, "no loss of the packet is in them")

    def _acks(self, acks: Sequence[Event]) -> str:
        count = len(acks)
        many = "acknowledgement" if count == 1 else "acknowledgements"
        were = "was" if count == 1 else "were"
        return (
            f"{count} {many} of the flow {were} lost {words.place(acks[-1].link)} "
            f"({words.reasons(acks, self.queues)})"
        )

    def _unknown(self, timeout: Event, why: str) -> Cause:
        missing = self._missing(timeout)
        return Cause(UNKNOWN, f"{UNKNOWN}{missing or f' ({why})'}")

    def _missing(self, timeout: Event) -> str:
        since = max(0.0, timeout.time_s - 2 * (timeout.value or 0.0))
        missing = self.log.recorded.missing(since, timeout.time_s, NEEDED)
        return f" ({missing})" if missing else ""

    def _lost(self, event: Event) -> str:
        return f"{words.verb(event)} {words.lost(event, self.queues)}"


def unexplained(log: Log, flows: Iterable[Flow]) -> list[int]:
    """Return the numbers of the flows of which a timeout has no cause in the events."""
    found = set()
    for flow in flows:
        causes = Timeouts(log, flow, log.of(flow)).causes()
        if flow.number is not None and any(cause.kind == UNKNOWN for _, cause in causes):
            found.add(flow.number)
    return sorted(found)


def summary(causes: Sequence[Cause], queues: Mapping[str, words.Queue]) -> str:
    """Return how often each cause was, with the reasons of the last losses.

    >>> drop = Event(0, 1.0, "drop", "early", "a")
    >>> summary([Cause(AGAIN, "", (drop,)), Cause(UNKNOWN, "")], {"a": words.Queue("RED")})
    '2 timeouts: 1 the retransmission was dropped again (RED, early 1); 1 the cause is not in the \
recorded events'
    """
    kinds: dict[str, list[Cause]] = {}
    for cause in causes:
        kinds.setdefault(cause.kind, []).append(cause)
    parts = []
    for kind, those in sorted(kinds.items(), key=lambda item: -len(item[1])):
        lost = [cause.lost[-1] for cause in those if cause.lost]
        reasons = words.reasons(lost, queues)
        parts.append(f"{len(those)} {kind}" + (f" ({reasons})" if reasons else ""))
    many = "timeout" if len(causes) == 1 else "timeouts"
    return f"{len(causes)} {many}: {'; '.join(parts)}"
