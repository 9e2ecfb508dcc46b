"""What a measurement has come to: rates, delays, responsiveness and loss in each phase.

Responsiveness is in round trips per minute, after draft-ietf-ippm-responsiveness-08: 60 s over the
mean of the round trips in the last 4 s of a load, without the longest 5 %. The draft's probes are
handshakes and requests of HTTP, on connections of their own and on those that load the line, and it
takes the mean of both kinds. Here there is one kind, on its own: the probes of the measurement. So
the time of handshakes for TLS and of hosts is not in it, and a queue that serves flows in turns
does not show what a loaded flow waits behind itself. The numbers are not those of networkQuality.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.recordings import loaded, pings
from redtail.lines.recordings.measurement import Measurement, Phase
from redtail.lines.recordings.transfers import MIDDLE
from redtail.lines.recordings.values import Estimated, quantity

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

QUANTILES = {"median": 0.5, "p95": 0.95, "p99": 0.99}
"""The quantiles of delays that are told, by name."""

SURE = 0.95
"""How sure it has to be that the largest of all delays is above a quantile."""

LAST_S, TRIMMED = 4.0, 0.95
"""Time of the probes that responsiveness is of, and the share of them: MAD times ID, and TMP
(draft-ietf-ippm-responsiveness-08, table of parameters)."""

DRIFT = 100e-6
"""How far two clocks may go apart for each s: crystals of network cards have 100 ppm (IEEE 802.3,
section 22.2.2.1)."""


@dataclass(frozen=True)
class MeasuredRow:
    """What a phase has come to.

    Attributes:
        phase: its name.
        rates: by direction, what was received; without those that nothing was sent in.
        least: the least round trip.
        delays: quantiles of the round trips, by name.
        responsiveness: round trips per minute; of the idle line None.
        loss: share of the probes that were lost.
    """

    phase: str
    rates: dict[str, Estimated]
    least: Estimated
    delays: dict[str, Estimated]
    responsiveness: Estimated | None
    loss: Estimated

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        delays = {"least": self.least, **self.delays}
        rpm = self.responsiveness
        return {
            "phase": self.phase,
            "rates": {name: each.to_dict() for name, each in self.rates.items()},
            "delays": {name: each.to_dict() for name, each in delays.items()},
            "responsiveness": None if rpm is None else rpm.to_dict(),
            "loss": self.loss.to_dict(),
        }


def fewest(quantile: float) -> int:
    """Return how many values tell a quantile: one of them is above it, as sure as `SURE`.

    Source: Wilks, Annals of Mathematical Statistics 12, 1941, for values that are independent.

    >>> fewest(0.95), fewest(0.99)
    (59, 299)
    """
    return math.ceil(math.log(1 - SURE) / math.log(quantile))


def rows(measured: Measurement) -> list[MeasuredRow]:
    """Return what each phase has come to."""
    return [_row(measured, phase) for phase in measured.phases]


def _row(measured: Measurement, phase: Phase) -> MeasuredRow:
    part = _within(measured.sent_s, phase)
    margin = MIDDLE * (phase.to_s - phase.from_s) if phase.name != "idle" else 0.0
    middle = Phase(phase.name, phase.from_s + margin, phase.to_s - margin)
    trips = measured.rtt_s[_within(measured.sent_s, middle)]
    rates = {name: _rate(measured, name, phase) for name in ("down", "up")}
    lost = int(np.isnan(measured.rtt_s[part]).sum())
    count = int(part.sum())
    loss = Estimated(None, "", "there were no probes")
    if count:
        loss = Estimated(lost / count, "", f"{lost} of {count} probes")
    return MeasuredRow(
        phase.name,
        {name: each for name, each in rates.items() if each is not None},
        _least(trips),
        {name: delay(trips, quantile) for name, quantile in QUANTILES.items()},
        None if phase.name == "idle" else _responsiveness(measured, phase),
        loss,
    )


def _within(at_s: Array, phase: Phase) -> Array:
    found: Array = (at_s >= phase.from_s) & (at_s < phase.to_s)
    return found


def _least(trips: Array) -> Estimated:
    answered = trips[np.isfinite(trips)]
    if not len(answered):
        return Estimated(None, "s", "no probe was answered")
    return Estimated(float(answered.min()), "s", f"the least of {len(answered)} round trips")


def delay(trips: Array, quantile: float) -> Estimated:
    """Return a quantile of round trips; one that was lost counts as longer than all others.

    That is how RFC 2681, section 4.1, has percentiles.

    Args:
        trips: round trips, NaN for those that were lost.
        quantile: such as 0.95.
    """
    count, needed = len(trips), fewest(quantile)
    if count < needed:
        reason = f"there are {count} probes, and this quantile takes {needed}"
        return Estimated(None, "s", reason)
    answered = trips[np.isfinite(trips)]
    lost = count - len(answered)
    basis = f"of {count} probes, of which {lost} were lost and count as the longest"
    if not len(answered):
        return Estimated(None, "s", f"none of {count} probes was answered")
    place = math.ceil(quantile * count) - 1
    if place >= len(answered):
        return Estimated(float(answered.max()), "s", basis, bound="at least")
    return Estimated(float(np.sort(answered)[place]), "s", basis)


def _responsiveness(measured: Measurement, phase: Phase) -> Estimated:
    last = Phase(phase.name, phase.to_s - LAST_S, phase.to_s)
    if phase.to_s - phase.from_s < 2 * LAST_S:
        reason = f"a load of {2 * LAST_S:g} s is needed, of which the last {LAST_S:g} s count"
        return Estimated(None, "rpm", reason)
    trips = measured.rtt_s[_within(measured.sent_s, last)]
    answered = np.sort(trips[np.isfinite(trips)])
    kept = math.floor(TRIMMED * len(trips))
    if kept < pings.FEWEST or not len(answered):
        return Estimated(None, "rpm", f"{len(answered)} probes of the last {LAST_S:g} s answered")
    mean = float(answered[:kept].mean())
    basis = (
        f"60 s over the mean of the shortest {100 * TRIMMED:.0f} % of {len(trips)} round trips in "
        f"the last {LAST_S:g} s ({measured.probe} alone)"
    )
    return Estimated(60 / mean, "rpm", basis, bound="at most" if kept > len(answered) else "")


def _rate(measured: Measurement, name: str, phase: Phase) -> Estimated | None:
    """Return the rate of a direction in a phase; None if nothing was sent in it."""
    carried = measured.load(name, phase)
    if carried is None:
        if phase.name in (name, "both"):
            return Estimated(None, "bit/s", "nothing was received")
        return None
    sent, wait, why = measured.sent_s, measured.rtt_s, ""
    if phase.name != name:
        sent, *ways = measured.one_way
        delays = ways[0 if name == "up" else 1]
        if not np.isfinite(delays).any():
            sent, delays = measured.sent_s, np.full(len(measured.sent_s), np.nan)
            why = "the other direction was loaded, too, and probes have no delays of each direction"
        wait = _drifted(sent, delays)
    if np.isfinite(wait).any():
        wait = wait - np.nanmin(wait)
    return loaded.rate(carried, carried.intervals(sent, wait).middle(), why)


def _drifted(sent_s: Array, delays: Array) -> Array:
    """Return one-way delays, less what two clocks may have gone apart since the least of them."""
    if not np.isfinite(delays).any():
        return delays
    apart = DRIFT * np.abs(sent_s - sent_s[np.nanargmin(delays)])
    found: Array = np.maximum(delays - apart, np.nanmin(delays))
    return found


def added(told: list[MeasuredRow]) -> str:
    """Return what a load adds to the round trip, in a sentence; empty without evidence.

    It is the median of each load less that of the idle line.
    """
    found = {row.phase: row.delays["median"] for row in told}
    idle = found.pop("idle", None)
    if idle is None or idle.value is None or idle.bound:
        return ""
    more = [
        f"{quantity(max(each.value - idle.value, 0.0), 's', 3)} {name}"
        for name, each in found.items()
        if each.value is not None and not each.bound
    ]
    return f"a load adds to the median round trip: {', '.join(more)}" if more else ""
