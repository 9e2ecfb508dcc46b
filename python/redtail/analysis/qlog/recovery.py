"""Events and samples of windows of a sender as events of qlog."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from redtail.analysis.story.events import Event

CATEGORY = "redtail"
"""The category of what QUIC's events have not; the type is the event's name in the event log."""

OF_LINUX = ("open", "disorder", "reduction", "recovery", "loss")
"""Reasons of `state` that are states of Linux: what they say, episodes of repair say as well."""

# What `value` of an event is called in its data, and the factor to its unit there: times in qlog
# are in milliseconds.
_VALUES: dict[str, tuple[str, float]] = {
    "timeout": ("rto", 1e3),
    "end": ("duration", 1e3),
    "recovery_end": ("duration", 1e3),
    "loss_end": ("duration", 1e3),
    "stall": ("duration", 1e3),
    "page": ("duration", 1e3),
    "response": ("duration", 1e3),
    "undo": ("window_before", 1),
    "mark_answered": ("window_before", 1),
    "idle_restart": ("window_before", 1),
    "slow_start_end": ("window", 1),
    "alpha": ("alpha", 1),
}

_SHARED = (
    ("reason", "reason", None),
    ("link", "link", None),
    ("sequence", "offset", None),
    ("bytes", "length", None),
    ("wait_s", "wait", 1e3),
    ("average", "average", 1),
    ("probability", "probability", 1),
)


class Noted(NamedTuple):
    """An event of qlog.

    Attributes:
        time_ms: from the start of the run.
        name: category and type.
        data: what it says.
    """

    time_ms: float
    name: str
    data: dict[str, Any]


def stream_frame(offset: int, length: int) -> dict[str, Any]:
    """Return bytes of the connection as a frame: TCP has one stream."""
    return {"frame_type": "stream", "stream_id": 0, "offset": offset, "length": length}


def metrics(time_s: float, values: Mapping[str, float], known: dict[str, float]) -> Iterator[Noted]:
    """Yield an event with those metrics that have changed; `known` is updated."""
    data = {
        name: value
        for name, value in values.items()
        if math.isfinite(value) and known.get(name) != value
    }
    known.update(data)
    if data:
        yield Noted(time_s * 1e3, "recovery:metrics_updated", data)


def sampled(series: Mapping[str, Sequence[float]], since_s: float) -> Iterator[Noted]:
    """Yield the samples of a sender's windows.

    Args:
        series: the columns of `series_flows` for one flow.
        since_s: earlier samples are left out: when the flow began.
    """
    known: dict[str, float] = {}
    for place, time_s in enumerate(series["time_s"]):
        if time_s < since_s:
            continue
        srtt_ms = series["srtt_s"][place] * 1e3
        values = {
            "smoothed_rtt": round(srtt_ms, 6) if math.isfinite(srtt_ms) else math.nan,
            "congestion_window": _whole(series["cwnd_bytes"][place]),
            "ssthresh": _whole(series["ssthresh_bytes"][place]),
            "bytes_in_flight": _whole(series["in_flight_bytes"][place]),
            "pacing_rate": _whole(series["pacing_rate_bps"][place]),
        }
        yield from metrics(time_s, values, known)


def _whole(value: float) -> float:
    """Return a number that the schema has as a whole one; a window may have fractions of bytes."""
    return math.floor(value) if math.isfinite(value) else math.nan


def of_events(events: Iterable[Event], numbers: Mapping[int, int]) -> Iterator[Noted]:
    """Yield the events of one flow: those of QUIC's recovery where it has them, and ours.

    Args:
        events: in order.
        numbers: of packets, by the rows of events of packets.
    """
    events = list(events)
    model = any(each.event == "state" and each.reason not in OF_LINUX for each in events)
    state = _State(model)
    known: dict[str, float] = {}
    for event in events:
        yield from _standard(event)
        yield from state.after(event)
        values = {
            "congestion_window": _whole(math.nan if event.cwnd_bytes is None else event.cwnd_bytes),
            "ssthresh": _whole(math.nan if event.ssthresh_bytes is None else event.ssthresh_bytes),
        }
        yield from metrics(event.time_s, values, known)
        if event.event not in ("start", "retransmission"):
            data = _own(event)
            if event.row in numbers:
                data["packet_number"] = numbers[event.row]
            yield Noted(event.time_s * 1e3, f"{CATEGORY}:{event.event}", data)


def _own(event: Event) -> dict[str, Any]:
    """Return what an event says, under the names of `_SHARED` and `_VALUES`."""
    data: dict[str, Any] = {}
    for column, name, factor in _SHARED:
        value = getattr(event, column)
        if value is not None:
            data[name] = value if factor is None else round(value * factor, 9)
    if event.back:
        data["from"] = "peer"
    if event.value is not None and math.isfinite(event.value):
        name, scale = _VALUES.get(event.event, ("value", 1))
        data[name] = round(event.value * scale, 9)
    return data


def _standard(event: Event) -> Iterator[Noted]:
    """Yield what QUIC's events have a name for, but for the state of congestion control."""
    time_ms = event.time_s * 1e3
    if event.event == "timeout":
        yield Noted(time_ms, "recovery:loss_timer_updated", {"event_type": "expired"})
    elif event.event == "tail_loss_probe":
        data = {"timer_type": "pto", "event_type": "expired"}
        yield Noted(time_ms, "recovery:loss_timer_updated", data)
    elif event.event == "retransmission" and event.sequence is not None and event.bytes is not None:
        frames = [stream_frame(event.sequence, event.bytes)]
        yield Noted(time_ms, "recovery:marked_for_retransmit", {"frames": frames})


class _State:
    """The state of congestion control, which only its changes tell."""

    def __init__(self, model: bool) -> None:
        self.model = model
        self.now = "startup" if model else "slow_start"

    def after(self, event: Event) -> Iterator[Noted]:
        """Yield the change that an event tells."""
        new = self._of_model(event) if self.model else self._of_window(event)
        if new is None or new == self.now:
            return
        data = {"old": self.now, "new": new}
        if event.event == "timeout":
            data["trigger"] = "persistent_congestion"
        self.now = new
        yield Noted(event.time_s * 1e3, "recovery:congestion_state_updated", data)

    def _of_model(self, event: Event) -> str | None:
        return event.reason if event.event == "state" and event.reason not in OF_LINUX else None

    def _of_window(self, event: Event) -> str | None:
        if event.event == "recovery":
            return "recovery"
        if event.event == "timeout":
            return None if event.reason == "handshake" else "loss"
        if event.event in ("recovery_end", "loss_end"):
            if event.reason in ("timeout", "recovery"):
                return None  # the event of that name tells it
            window, threshold = event.cwnd_bytes, event.ssthresh_bytes
            below = window is not None and threshold is not None and window < threshold
            return "slow_start" if below else "congestion_avoidance"
        if event.event == "slow_start_end" and self.now == "slow_start":
            return "congestion_avoidance"
        return None
