"""Round trips: what of each is the path, and what is waiting.

Packets of several connections that pass a queue at the same time wait equally long. So a round trip
of connection c at time t is base(c) + wait(t), and the bases of connections differ by what their
round trips differ at the same times. This finds the base of a connection that never met an empty
queue, if another one did.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

ROUNDS = 30
CONVERGED_S = 1e-6

FEWEST = 20
"""Slots in which a connection meets others, from which its base is compared with theirs."""

PROMPT_S, PROMPT = 0.002, 0.1
"""A host answers promptly if it takes so long at most, or that share of the round trip: segments of
several connections come in between each other."""

MANY = 100
"""Round trips of a connection from which the same is done."""


@dataclass(frozen=True)
class Trips:
    """Round trips over a queue.

    Attributes:
        sent_s: when the packet passed the point of capture.
        back_s: when its answer did.
        trip_s: the round trip, without the transmission of the packet.
        talk: the conversation of each.
        wait_s: what of it is waiting, in a queue or for the host at the far end.
        sure_s: what of that the host cannot have taken.
    """

    sent_s: Array
    back_s: Array
    trip_s: Array
    talk: Array
    wait_s: Array
    sure_s: Array

    def __len__(self) -> int:
        return len(self.sent_s)

    def only(self, keep: Array) -> Trips:
        """Return some of the round trips; `keep` has a truth value for each."""
        return Trips(*(getattr(self, column.name)[keep] for column in fields(self)))


def spans(rows: Array) -> Array:
    """Return the round trips of rows as `tcp.Segments.trips` has them."""
    found: Array = rows[:, 1] - rows[:, 0]
    return found


def prompt(rows: Array, limit_s: float = PROMPT_S) -> Array:
    """Return of rows of round trips whether the host can have taken so much only."""
    found: Array = rows[:, 6] <= np.maximum(limit_s, PROMPT * spans(rows))
    return found


def least(trip_s: Array, talk: Array) -> dict[int, float]:
    """Return the least round trip of each conversation."""
    names, place = np.unique(talk.astype(int), return_inverse=True)
    low = np.full(len(names), np.inf)
    np.minimum.at(low, place, trip_s)
    return dict(zip(names.tolist(), low.tolist(), strict=True))


def _plain(table: pd.Series[float]) -> dict[int, float]:
    names, values = table.index.to_numpy(), table.to_numpy()
    return {int(name): float(value) for name, value in zip(names, values, strict=True)}


def bases(
    at_s: Array, trip_s: Array, talk: Array, meets: Array, width_s: float
) -> dict[int, float]:
    """Return the base round trip of each conversation.

    Args:
        at_s: times at which packets were at the queue.
        trip_s: their round trips.
        talk: their conversations.
        meets: of which packets those that meet have waited equally long.
        width_s: time within which waiting changes little.
    """
    found = least(trip_s, talk)
    at_s, trip_s, talk = at_s[meets], trip_s[meets], talk[meets]
    _, counts = np.unique(talk, return_counts=True)
    if (counts >= MANY).sum() < 2:
        return found
    table = pd.DataFrame({"talk": talk.astype(int), "trip": trip_s})
    table["slot"] = np.floor(at_s / width_s).astype(np.int64)
    cells = table.groupby(["talk", "slot"])["trip"].median().reset_index()
    cells = cells[cells.groupby("slot")["talk"].transform("size") > 1]  # where packets have met
    many = table["talk"].value_counts()
    met = cells["talk"].value_counts()
    known = [name for name in met.index if met[name] >= FEWEST and many[name] >= MANY]
    if len(known) < 2:
        return found
    cells = cells[cells["talk"].isin(known)].copy()
    low = pd.Series({name: found[int(name)] for name in known}, dtype=float)
    base = low.copy()
    for _ in range(ROUNDS):
        cells["wait"] = cells["trip"] - cells["talk"].map(base)
        wait = cells.groupby("slot")["wait"].median()
        cells["base"] = cells["trip"] - cells["slot"].map(wait)
        new = cells.groupby("talk")["base"].median()
        change = float((new - base).abs().max())
        base = new
        if change < CONVERGED_S:
            break
    # No wait is negative, and the shortest is taken to be none.
    base += float((low - base).min())
    found.update(_plain(base[base > 0]))
    return found
