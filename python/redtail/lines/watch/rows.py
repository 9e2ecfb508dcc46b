"""Two readings of the counters: rate, delay, drops and marks of each class and direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from redtail.lines.recordings.values import quantity
from redtail.lines.watch.tc import KNOWN, SILENT, Counts, Queue, on_wire

ESTIMATED = "backlog / rate"
"""How a delay is known that a queue does not tell."""

TITLES = ("direction", "class", "rate", "delay", "drops", "marks", "waits")
"""What `Row.texts` has."""


@dataclass(frozen=True)
class Row:
    """What a class did between two readings.

    Attributes:
        direction: "up" for what a device sends, "down" for what is redirected to an ifb.
        device: where it is.
        name: the queue, class or tin.
        kind: its kind.
        bps: what left it, in bit/s.
        delay_s: what packets waited; None where nothing tells.
        delay_how: how that is known: "told" by the queue, or "backlog / rate".
        drops, marks: in this time.
        backlog_b: bytes that wait at the end of it.
        backlog_packets: packets that wait; None where that is not told.
        shaper_bps: rate of its shaper; None without one.
        shaped_bps: what the shaper counts of what left it.
    """

    direction: str
    device: str
    name: str
    kind: str
    bps: float
    delay_s: float | None
    delay_how: str
    drops: int
    marks: int
    backlog_b: int
    backlog_packets: int | None
    shaper_bps: float | None = None
    shaped_bps: float = 0.0

    def texts(self) -> tuple[str, ...]:
        """Return it for people: direction, class, rate, delay, drops, marks and what waits."""
        rate = quantity(self.bps, "bit/s", 3)
        if self.shaper_bps is not None:
            rate += f" of {quantity(self.shaper_bps, 'bit/s', 3)}"
        delay = ""
        if self.delay_s is not None:
            about = "about " if self.delay_how == ESTIMATED and self.delay_s > 0 else ""
            delay = about + quantity(self.delay_s, "s", 2) if self.delay_s > 0 else "0 ms"
        waits = quantity(float(self.backlog_b), "B", 3)
        where = f"{self.direction} {self.device}"
        return where, self.name, rate, delay, str(self.drops), str(self.marks), waits


@dataclass(frozen=True)
class Reading:
    """The queues and classes of devices at a time.

    Attributes:
        at_s: the time.
        queues: those that can be in a table, root first.
    """

    at_s: float
    queues: Mapping[tuple[str, str, str, bool], Queue]


def reading(at_s: float, queues: Sequence[Queue], classes: Sequence[Queue]) -> Reading:
    """Return a reading of some devices.

    Args:
        at_s: the time.
        queues: their queues.
        classes: their classes.
    """
    found = {}
    for is_class, some in ((False, queues), (True, classes)):
        for each in some:
            found[each.device, each.handle, each.parent, is_class] = each
    return Reading(at_s, found)


def unknown(queues: Sequence[Queue]) -> list[str]:
    """Return the kinds of queues that pass by, each once."""
    return sorted({each.kind for each in queues if each.kind not in KNOWN})


def rows(before: Reading, after: Reading, directions: Mapping[str, str]) -> Iterator[Row]:
    """Yield what each class did between two readings; what was set anew in between is left out.

    Args:
        before: a reading.
        after: a later one.
        directions: by device, "up" or "down".
    """
    seconds = after.at_s - before.at_s
    if seconds <= 0:
        return
    for key, now in after.queues.items():
        was = before.queues.get(key)
        direction = _direction(now, directions)
        if was is None or direction is None or was.counts.bytes > now.counts.bytes:
            continue
        is_class = key[3]
        yield _row(direction, now, _name(now, is_class), was.counts, now.counts, seconds)
        if len(now.tins) > 1 and len(was.tins) == len(now.tins):
            for (name, counts), (_, old) in zip(now.tins, was.tins, strict=True):
                if old.bytes <= counts.bytes:
                    yield _row(direction, now, name, old, counts, seconds, is_tin=True)


def _direction(queue: Queue, directions: Mapping[str, str]) -> str | None:
    """Return the direction of a queue; None if it is not shown.

    An ingress counts what comes in, which tells the way down where no ifb does.
    """
    found = directions.get(queue.device)
    if queue.kind == "ingress" and found == "up":
        return None if "down" in directions.values() else "down"
    return found if queue.kind in KNOWN - SILENT else None


def _name(queue: Queue, is_class: bool) -> str:
    if is_class:
        return f"{queue.kind} {queue.handle}"
    return queue.kind if not queue.parent else f"{queue.kind} in {queue.parent}"


def _row(
    direction: str,
    queue: Queue,
    name: str,
    was: Counts,
    now: Counts,
    seconds: float,
    *,
    is_tin: bool = False,
) -> Row:
    sent, packets = now.bytes - was.bytes, max(now.packets - was.packets, 0)
    bps = 8 * sent / seconds
    delay, how = now.delay_s, "told"
    if queue.tins and not is_tin:
        # Of a CAKE the tin with the longest delay, of those that sent.
        told = [tin.delay_s for _, tin in queue.tins if tin.delay_s is not None]
        delay = max(told, default=None)
    if delay is not None and sent == 0:
        delay = None  # what it tells is old
    if queue.kind in SILENT:
        delay, how = None, ""
    elif delay is None:
        how = ""
        if now.backlog_b == 0 and sent > 0:
            delay, how = 0.0, ESTIMATED
        elif sent > 0:
            delay, how = 8 * now.backlog_b / bps, ESTIMATED
    return Row(
        direction,
        queue.device,
        name,
        queue.kind,
        bps,
        delay,
        how,
        max(now.drops - was.drops, 0),
        max(now.marks - was.marks, 0),
        now.backlog_b,
        now.backlog_packets,
        None if is_tin else queue.shaper_bps,
        8 * on_wire(sent, packets, queue.wire) / seconds,
    )


def carried(found: Sequence[Row], direction: str) -> float | None:
    """Return what a direction carries, in bit/s: the most of its rows; None if it has none."""
    return max((row.bps for row in found if row.direction == direction), default=None)


def shaper(found: Sequence[Row], direction: str) -> Row | None:
    """Return the row of a direction's shaper: the one with the largest rate; None without one."""
    shaped = [row for row in found if row.direction == direction and row.shaper_bps]
    return max(shaped, key=lambda row: row.shaper_bps or 0.0, default=None)
