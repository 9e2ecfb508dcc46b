"""The packets of a flow that were lost, and what its sender sent again."""

from __future__ import annotations

from collections.abc import Sequence

from redtail.analysis.story.events import Event

LOSSES = ("drop", "wire_loss")
AGAIN = "retransmission"


class Losses:
    """What is known of the packets of one sender of a flow.

    Args:
        events: of the flow, in order.
        back: which sender: 0 for the side that sends data or serves, 1 for the other.
    """

    def __init__(self, events: Sequence[Event], back: int = 0) -> None:
        self.data: dict[int, list[Event]] = {}
        self.sent: dict[int, list[Event]] = {}
        self.acks: list[Event] = []
        for event in events:
            own = side(event) == back
            if event.event in LOSSES:
                if not own:
                    self.acks.append(event)
                elif event.sequence is not None:
                    self.data.setdefault(event.sequence, []).append(event)
            elif own and event.event == AGAIN and event.sequence is not None:
                self.sent.setdefault(event.sequence, []).append(event)

    def of(self, sequence: int, before: int) -> list[Event]:
        """Return the losses of what begins at a sequence number, before a row."""
        return [each for each in self.data.get(sequence, ()) if each.row < before]

    def again(self, sequence: int, before: int) -> list[Event]:
        """Return when it was sent again, before a row."""
        return [each for each in self.sent.get(sequence, ()) if each.row < before]

    def acks_lost(self, since: int, before: int) -> list[Event]:
        """Return the acknowledgements that were lost between two rows."""
        return [each for each in self.acks if since < each.row < before]

    def behind(self, sequence: int, since: int, before: int) -> list[Event]:
        """Return the losses from a sequence number on, in a range of rows, by sequence."""
        found = [
            each
            for number, lost in self.data.items()
            if number >= sequence
            for each in lost
            if since <= each.row < before
        ]
        return sorted(found, key=lambda each: (each.sequence, each.row))


def side(event: Event) -> int:
    """Return which side sent a packet, or is the sender: 0 unless the event says 1."""
    return event.back or 0


def is_ack(event: Event) -> bool:
    """Return whether a packet was one back to the sender of data, without data of its own."""
    return side(event) == 1 and event.sequence is None
