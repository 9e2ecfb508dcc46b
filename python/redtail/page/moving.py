"""The picture that moves: the packets of a queue as they come, wait, are sent, dropped or marked.

Its data are in the page: numbers of packets as differences, in as few bytes as they need, and
compressed.
The script `reel.js` reads them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redtail import escape
from redtail.page.filled import filled

if TYPE_CHECKING:
    import numpy as np

SENT, DROPPED, INSIDE = 0, 1, 2
"""What becomes of a packet; `INSIDE`: it still waits when the window ends."""

UNMARKED, AT_ARRIVAL, AT_DEPARTURE = 0, 1, 2
"""Whether and when a packet gets its mark."""

LARGEST = 5_000_000
"""Bytes of a page at most: what mail still takes, and a browser opens at once."""

_FIRST_PACKETS_PER_S = 50
"""Packets that pass in a second of the watcher, before the watcher changes the speed."""

_SCRIPTS = ("elements.js", "reel.js", "curves.js", "stage.js", "replay.js")

_KEYS = (
    ("Space", "play, pause"),
    ("→ ←", "the next or the last event: a packet arrives, is sent or dropped"),
    ("Shift → ←", "a hundredth of the window on or back"),
    ("N P", "the next or the last drop, mark or event of a flow"),
    ("+ −", "twice or half the speed"),
    ("Home End", "the first or the last moment"),
)


@dataclass(frozen=True)
class Packets:
    """Packets at a queue, as columns.

    Attributes:
        arrival_s: when each arrived, in seconds from the start of the run.
        out_s: when it left the queue, or was dropped.
        flow: its flow, as a place in the picture's list.
        bytes: its size.
        fate: `SENT`, `DROPPED` or `INSIDE`.
        mark: `UNMARKED`, `AT_ARRIVAL` or `AT_DEPARTURE`.
        reason: of a drop or a mark, as a place in the picture's list.
    """

    arrival_s: np.ndarray[Any, Any]
    out_s: np.ndarray[Any, Any]
    flow: np.ndarray[Any, Any]
    bytes: np.ndarray[Any, Any]
    fate: np.ndarray[Any, Any]
    mark: np.ndarray[Any, Any]
    reason: np.ndarray[Any, Any]

    def __len__(self) -> int:
        return len(self.arrival_s)


@dataclass(frozen=True)
class Curve:
    """What is sampled over time.

    Attributes:
        of: "average" or "probability" of the control law, or "cwnd".
        values: a value for each of the picture's times; a window in kB. NaN where there is none.
        flow: of a window its flow.
    """

    of: str
    values: np.ndarray[Any, Any]
    flow: int | None = None


@dataclass(frozen=True)
class Told:
    """What a flow or a user told, such as a timeout.

    Attributes:
        time_s: when.
        kind: its word, as "timeout".
        text: what to show.
        flow: its flow as a place in the picture's list, if it is drawn.
    """

    time_s: float
    kind: str
    text: str
    flow: int | None = None


@dataclass(frozen=True)
class Picture:
    """All that a picture shows.

    Attributes:
        title: the name of the experiment.
        facts: words and texts in its head.
        window: from when until when, in seconds from the start of the run.
        start_s: the moment that is shown first.
        groups: names of the groups.
        flows: group and number of each flow.
        hidden: places of the flows that are pale at first.
        reasons: of drops and marks.
        packets: those at the queue in the window.
        told: what flows and users told in the window.
        curve_times_s: when curves were sampled.
        curves: the samples.
        rate_bps: the rate of the link, if it is constant.
        limit: of the queue, in packets, if it has one.
        rows: "one", "flows" or "groups": whether the queue is shown as several.
        notes: what to know of the picture, such as what was left out.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    window: tuple[float, float]
    start_s: float
    groups: Sequence[str]
    flows: Sequence[tuple[int, int]]
    reasons: Sequence[str]
    packets: Packets
    told: Sequence[Told] = ()
    curve_times_s: Sequence[float] = ()
    curves: Sequence[Curve] = ()
    rate_bps: float | None = None
    limit: float | None = None
    rows: str = "one"
    hidden: Sequence[int] = ()
    notes: Sequence[str] = ()


def html(picture: Picture) -> str:
    """Return the page of a picture."""
    name = escape.name
    return filled(
        "replay.html",
        _data(picture),
        styles=["page.css", "replay.css"],
        scripts=[_SCRIPTS],
        title=name(picture.title),
        facts=[(name(word), name(text)) for word, text in picture.facts],
        notes=[name(line) for line in picture.notes],
        keys=_KEYS,
    )


def _data(picture: Picture) -> dict[str, Any]:
    start, end = picture.window
    return {
        "from_s": start,
        "to_s": end,
        "start_s": picture.start_s,
        "speed": _speed(len(picture.packets), end - start),
        "groups": [escape.name(each) for each in picture.groups],
        "flows": picture.flows,
        "hidden": picture.hidden,
        "reasons": [escape.name(each) for each in picture.reasons],
        "rows": picture.rows,
        "rate_bps": picture.rate_bps,
        "limit": picture.limit,
        "packets": encoded(picture.packets),
        "told": [
            [each.time_s, each.kind, escape.name(each.text), -1 if each.flow is None else each.flow]
            for each in picture.told
        ],
        "curve_times_s": [round(float(each), 9) for each in picture.curve_times_s],
        "curves": [
            {"of": each.of, "flow": each.flow, "values": _plain(each.values)}
            for each in picture.curves
        ],
    }


def _speed(packets: int, window_s: float) -> float:
    """Return a speed at which single packets are seen, as 1, 2 or 5 times a power of ten.

    >>> _speed(8330, 10.0), _speed(100, 10.0)
    (0.05, 5.0)
    """
    wanted = _FIRST_PACKETS_PER_S * window_s / max(packets, 1)
    return max(
        (step for power in range(-9, 2) for step in _steps(power) if step <= wanted), default=1e-7
    )


def _steps(power: int) -> list[float]:
    return [float(f"{step}e{power}") for step in (1, 2, 5)]


def _plain(values: np.ndarray[Any, Any]) -> list[float | None]:
    """Return values as JSON has them: what is no finite number is null."""
    return [float(f"{v:.5g}") if v - v == 0 else None for v in values.tolist()]


def encoded(packets: Packets) -> dict[str, Any]:
    """Return packets as JSON: columns of numbers, one after the other, compressed, in base64.

    The columns are the arrival since that of the packet before, and the wait, both in ticks; flow,
    bytes, and a number from which fate, mark and reason follow.
    """
    import numpy as np

    count = len(packets)
    if not count:
        return {"count": 0, "base_s": 0.0, "tick_s": 1.0, "data": _packed(b"")}
    order = np.lexsort((packets.out_s, packets.arrival_s))
    arrival, out = packets.arrival_s[order], packets.out_s[order]
    base = float(arrival[0])
    tick = _tick(float(max(arrival[-1], out.max())) - base, count)
    arrived = np.rint((arrival - base) / tick).astype(np.uint64)
    left = np.maximum(np.rint((out - base) / tick).astype(np.uint64), arrived)
    code = packets.fate + 3 * packets.mark + 9 * packets.reason.astype(np.uint64)
    columns = [
        np.diff(arrived, prepend=np.uint64(0)),
        left - arrived,
        packets.flow[order],
        packets.bytes[order],
        code[order],
    ]
    data = _varints(np.concatenate([each.astype(np.uint64) for each in columns]))
    return {"count": count, "base_s": base, "tick_s": tick, "data": _packed(data)}


def _tick(span_s: float, count: int) -> float:
    """Return a power of ten, 1 ps or more, that is at most a thousandth of the mean distance.

    Args:
        span_s: from the first to the last time.
        count: of packets.

    >>> _tick(10.0, 8330), _tick(1e-3, 2)
    (1e-06, 1e-07)
    """
    power = -12
    while span_s / count > 1e4 * float(f"1e{power}"):
        power += 1
    return float(f"1e{power}")


def _varints(values: np.ndarray[Any, Any]) -> bytes:
    """Return numbers without sign, seven bits a byte, the lowest first (LEB128).

    >>> import numpy as np
    >>> _varints(np.array([1, 300], np.uint64)).hex()
    '01ac02'
    """
    import numpy as np

    sizes = np.ones(len(values), np.int64)
    for place in range(1, 10):
        sizes += (values >> np.uint64(7 * place)) > 0
    found = np.zeros(int(sizes.sum()), np.uint8)
    starts = np.cumsum(sizes) - sizes
    for place in range(int(sizes.max(initial=0))):
        chosen = sizes > place
        bits = (values[chosen] >> np.uint64(7 * place)) & np.uint64(127)
        more = np.where(sizes[chosen] > place + 1, 128, 0)
        found[starts[chosen] + place] = bits.astype(np.int64) + more
    return found.tobytes()


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()
