"""The packets of a flow that were lost, and what its sender sent again."""

from __future__ import annotations

from collections.abc import Sequence

from redtail.analysis.story.events import Event

LOSSES = ("drop", "wire_loss")
AGAIN = ("retransmission", "tail_loss_probe")


class Losses:
    """What is known of the packets of a flow.

    Args:
        events: of the flow, in order.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.data: dict[int, list[Event]] = {}
        self.sent: dict[int, list[Event]] = {}
        self.acks: list[Event] = []
        for event in events:
            if event.event in LOSSES:
                if is_ack(event):
                    self.acks.append(event)
                elif event.sequence is not None:
                    self.data.setdefault(event.sequence, []).append(event)
            elif event.event in AGAIN and event.sequence is not None:
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


def is_ack(event: Event) -> bool:
    """Return whether a lost packet had no data."""
    return event.sequence is None
