"""Congestion controllers written in Python: their interface.

How the class that an experiment names is found, read and executed is in `code` and `queues`, as for
queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from redtail._native import RateSample

METHODS = {"on_ack": "self, sample"}
"""The methods that a class needs, with their arguments."""

OPTIONAL = {
    "on_lost": "self, lost, now",
    "on_recovery": "self, event",
    "on_timeout": "self, event",
    "on_handshake": "self, rtt, now",
    "on_restart": "self, delivered, now",
    "on_undo": "self",
    "set_cwnd": "self, cwnd",
    "report": "self, now",
}
"""The methods that are called if a class has them."""


class Controller(Protocol):
    """A congestion controller of your own.

    It is made with a `redtail.ControllerContext` and the keys of `params` as named arguments, once
    for every sender and run. Times are seconds from the start of the run and never decrease;
    windows are bytes, rates bytes/s.

    What it decides is read from its attributes after each call:

    - `cwnd: float`: the congestion window, which it must have. Less than a segment counts as one
      segment.
    - `pacing_rate: float | None`: the rate at which segments leave. Without it, or with None, the
      sender is paced by its window, or not at all, as the key `pacing` says.
    - `send_quantum: float`: the most bytes that leave at once at the pacing rate.
    - `ssthresh: float | None`: the slow start threshold, for time series.
    - `probes_rtt: bool`: the window is small now to measure the round trip, so that delivery rates
      say nothing about the path.
    - `state: str`: the name of its state.

    These methods are called if the class has them:

    - `on_lost(lost, now) -> None`: a segment was declared lost, a `redtail.LostSegment`.
    - `on_recovery(event) -> None`: fast recovery begins, or marks count as a loss; a
      `redtail.CongestionEvent`.
    - `on_timeout(event) -> None`: the retransmission timer expired.
    - `on_handshake(rtt, now) -> None`: the handshake took this time.
    - `on_restart(delivered, now) -> None`: sending resumes after the application had nothing to
      send; so many bytes were delivered since the start.
    - `on_undo() -> None`: the latest loss or timeout was none.
    - `set_cwnd(cwnd) -> None`: the sender sets the window; without the method, `cwnd` is set.
    - `report(now) -> dict[str, float]`: figures of its own, for time series and metrics.
    """

    cwnd: float

    def on_ack(self, sample: RateSample) -> None:
        """Take an acknowledgement, a duplicate or one in fast recovery too."""
        ...
