"""Whether a shaper is above the line, from what it did and what pings waited meanwhile.

A shaper keeps the queue of a line to itself while it lets through less than the line carries. Then
packets wait in the shaper, it sends at its rate, and nothing waits behind it (OpenWrt, "SQM
Details", sets a shaper below the line for this; T. Hoeiland-Joergensen, D. Taht, J. Morton, "Piece
of CAKE", LANMAN 2018). Above the line it has nothing to hold: packets wait in the modem or at the
provider, where a ping meets them and the shaper's counters do not. So:

- not above: the shaper held packets in nearly all readings, and sent at its rate on average. What
  comes in has passed the line, so that this shows that the line carries as much, unless pings
  waited elsewhere. What goes out is handed to a modem that takes anything: pings have to show that
  nothing waits behind the shaper.
- above: pings waited in nearly all readings, longer than in the shaper, while this direction
  carried a load, and the other one did not.
- undecided: all else, with what is missing.

`HOLDS` of `READINGS` have to agree, since a reading looks at the backlog at one moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Literal, TypeAlias

from redtail.lines.recordings.transfers import STANDING_S
from redtail.lines.recordings.values import quantity
from redtail.lines.watch.rows import Row, carried, shaper

READINGS, HOLDS = 10, 0.8
"""Readings that are looked at, and the share of them that has to agree. Source: our choice: 10 s
are many round trips; one flow of CUBIC empties a shaper's queue for a moment at each loss."""

AT_RATE = 0.97
"""Share of its rate that a shaper sends on average where it always has packets: all of it, but for
the clocks of the readings and for what is not known of the overhead. Source: our choice."""

LOADED, QUIET = 0.3, 0.1
"""Share of its shaper's rate from which a direction carries a load, and up to which it is quiet.
Source: our choice; acknowledgements of a download take 2 to 5 % of as much upload."""

FEWEST_IDLE = 3
"""Readings in which neither direction carried a load that tell the base round trip."""

DIRECTIONS = ("up", "down")

State: TypeAlias = Literal["not above", "above", "undecided"]


@dataclass(frozen=True)
class Verdict:
    """What is said of a shaper.

    Attributes:
        state: whether it is above the line.
        why: the evidence, or what is missing.
    """

    state: State
    why: str


@dataclass(frozen=True)
class Moment:
    """A reading, as far as a verdict needs it.

    Attributes:
        shapers: by direction, the row of the shaper; None without one.
        carried: by direction, what it carried, in bit/s; None where nothing tells.
        ping_s: the median round trip since the last reading; None without one.
    """

    shapers: Mapping[str, Row | None]
    carried: Mapping[str, float | None]
    ping_s: float | None

    def other_share(self, direction: str) -> float | None:
        """Return how much the other direction carries, as a share; None if nothing tells.

        It is that of its shaper's rate, or without one `LOADED` where it carries `QUIET` of what
        this direction does: acknowledgements alone are less.
        """
        other = "up" if direction == "down" else "down"
        row = self.shapers[other]
        if row is not None:
            return _share(row)
        here, there = self.carried[direction], self.carried[other]
        if there is None or not here:
            return None
        return LOADED / QUIET * there / here


@dataclass
class Judge:
    """Watches readings.

    Attributes:
        rtt_s: the base round trip, if it is known.
        pings: whether a host is pinged.
    """

    rtt_s: float | None = None
    pings: bool = False
    moments: deque[Moment] = field(default_factory=lambda: deque(maxlen=READINGS))
    least_s: float | None = None
    idle: int = 0

    def add(self, rows: Sequence[Row], pings_s: Sequence[float]) -> None:
        """Add a reading.

        Args:
            rows: what each class did.
            pings_s: the round trips of pings since the reading before.
        """
        ping = median(pings_s) if pings_s else None
        shapers = {name: shaper(rows, name) for name in DIRECTIONS}
        self.moments.append(
            Moment(shapers, {name: carried(rows, name) for name in DIRECTIONS}, ping)
        )
        if not pings_s:
            return
        self.least_s = min(pings_s) if self.least_s is None else min(self.least_s, *pings_s)
        shares = [_share(row) for row in shapers.values() if row is not None]
        self.idle += bool(shares) and max(shares) < QUIET

    @property
    def base_s(self) -> float | None:
        """The base round trip: what a user knows, or the least that was seen."""
        return self.least_s if self.rtt_s is None else self.rtt_s

    @property
    def base_known(self) -> bool:
        """Whether it was seen without load, and is no upper bound only."""
        return self.rtt_s is not None or self.idle >= FEWEST_IDLE

    def verdict(self, direction: str) -> Verdict:
        """Return what is said of the shaper of a direction."""
        rows = [moment.shapers[direction] for moment in self.moments]
        known = [row for row in rows if row is not None]
        if not known:
            return Verdict(
                "undecided", "there is no shaper: no CAKE with a bandwidth, no TBF, no HTB"
            )
        if len(self.moments) < READINGS:
            return Verdict("undecided", f"{len(self.moments)} of {READINGS} readings so far")
        held = sum(_holds(row) for row in known)
        beyond = self._beyond(direction)
        if held >= HOLDS * READINGS and fmean(map(_share, known)) >= AT_RATE:
            return self._holding(direction, known[-1], held, beyond)
        return self._without_queue(direction, known, held, beyond)

    def _holding(self, direction: str, row: Row, held: int, beyond: list[float] | None) -> Verdict:
        """Return what is said of a shaper that holds packets and sends at its rate."""
        rate = quantity(row.shaper_bps or 0.0, "bit/s", 3)
        text = f"it held packets in {held} of {READINGS} readings and sent at its rate of {rate}"
        if direction == "down":
            if beyond is not None and _agree(beyond, above=True):
                return Verdict(
                    "undecided",
                    f"{text}, but pings waited {_wait(beyond)} elsewhere: a lower rate tells "
                    "whether they wait in the line",
                )
            return Verdict("not above", f"{text}, so that the line brought as much")
        if not self.pings:
            return Verdict(
                "undecided",
                f"{text}, but a modem takes anything: --ping HOST tells whether packets wait "
                "behind it",
            )
        if beyond is None:
            return Verdict("undecided", f"{text}, but few pings came back")
        if _agree(beyond, above=True):
            if other := self._other_load(direction):
                return Verdict("undecided", f"{text}, and pings waited, but {other}")
            return Verdict(
                "above", f"{text}, and pings waited {_wait(beyond)} behind it all the same"
            )
        if not self.base_known:
            return Verdict(
                "undecided",
                f"{text}, but no ping passed without load: --rtt TIME, or a pause, tells the base",
            )
        if _agree(beyond, above=False):
            return Verdict("not above", f"{text}, and pings waited {_wait(beyond)} behind it")
        return Verdict("undecided", f"{text}, but pings waited now and then behind it")

    def _without_queue(
        self, direction: str, rows: Sequence[Row], held: int, beyond: list[float] | None
    ) -> Verdict:
        """Return what is said of a shaper that holds packets rarely, or not at its rate."""
        share = median(_share(row) for row in rows)
        carried = (
            f"it carried {100 * share:.0f} % of its rate and held packets in {held} of {READINGS} "
            "readings"
        )
        if share < LOADED:
            return Verdict("undecided", f"{carried}: load the line, with a download or an upload")
        if not self.pings:
            return Verdict(
                "undecided",
                f"{carried}: the senders, or the line, may be slower; --ping HOST tells whether "
                "packets wait",
            )
        if beyond is None:
            return Verdict("undecided", f"{carried}, and few pings came back")
        if _agree(beyond, above=True):
            if other := self._other_load(direction):
                return Verdict("undecided", f"{carried}, and pings waited, but {other}")
            return Verdict(
                "above",
                f"{carried}, while pings waited {_wait(beyond)}: packets wait in the line, or "
                "behind it",
            )
        return Verdict(
            "undecided",
            f"{carried}, and pings did not wait: the senders are slower, or keep the queue short "
            "(as BBR does)",
        )

    def _beyond(self, direction: str) -> list[float] | None:
        """Return what pings waited elsewhere than in the shaper; None if few came back."""
        base = self.base_s
        found = []
        for moment in self.moments:
            row = moment.shapers[direction]
            if moment.ping_s is None or row is None or base is None:
                continue
            found.append(max(moment.ping_s - base - (row.delay_s or 0.0), 0.0))
        return found if len(found) >= HOLDS * READINGS else None

    def _other_load(self, direction: str) -> str:
        """Return why pings may wait in the other direction; empty if it carries little."""
        other = "up" if direction == "down" else "down"
        shares = [
            share for moment in self.moments if (share := moment.other_share(direction)) is not None
        ]
        if not shares:
            return (
                f"nothing tells what the way {other} carries (tc qdisc add dev DEV handle ffff: "
                "ingress counts it)"
            )
        return "" if median(shares) < LOADED else f"the way {other} carries a load, too"


def _share(row: Row) -> float:
    return row.shaped_bps / row.shaper_bps if row.shaper_bps else 0.0


def _holds(row: Row) -> bool:
    return row.backlog_b > 0 if row.backlog_packets is None else row.backlog_packets > 0


def _agree(waits: Sequence[float], *, above: bool) -> bool:
    """Return whether nearly all waits are of a standing queue, or of none."""
    return sum((wait > STANDING_S) == above for wait in waits) >= HOLDS * len(waits)


def _wait(waits: Sequence[float]) -> str:
    return quantity(median(waits), "s", 2)
