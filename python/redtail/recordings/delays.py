"""Round trips: what of each is the path, and what is waiting.

Packets of several connections that pass a queue at the same time wait equally long. So a round trip
of connection c at time t is base(c) + wait(t), and the bases of connections differ by what their
round trips differ at the same times. This finds the base of a connection that never met an empty
queue, if another one did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

ROUNDS = 30
FEWEST = 20
"""Round trips of a connection from which its base is compared with others'."""


@dataclass(frozen=True)
class Trips:
    """Round trips over a queue.

    Attributes:
        sent_s: when the packet passed the point of capture.
        back_s: when its answer did.
        trip_s: the round trip, without the transmission of the packet.
        talk: the conversation of each.
        wait_s: what of it is waiting.
    """

    sent_s: Array
    back_s: Array
    trip_s: Array
    talk: Array
    wait_s: Array

    def __len__(self) -> int:
        return len(self.sent_s)


def bases(sent_s: Array, trip_s: Array, talk: Array, width_s: float) -> dict[int, float]:
    """Return the base round trip of each conversation.

    Args:
        sent_s: times of the packets.
        trip_s: their round trips.
        talk: their conversations.
        width_s: time within which waiting changes little.
    """
    if not len(talk):
        return {}
    table = pd.DataFrame({"talk": talk.astype(int), "trip": trip_s})
    least = table.groupby("talk")["trip"].min()
    counts = table["talk"].value_counts()
    many = counts.index[counts >= FEWEST]
    if len(many) < 2:
        return {int(name): float(value) for name, value in least.items()}
    table["slot"] = np.floor(sent_s / width_s).astype(np.int64)
    known = table[table["talk"].isin(many)]
    cells = known.groupby(["talk", "slot"])["trip"].median().reset_index()
    base = least.loc[many].astype(float)
    for _ in range(ROUNDS):
        cells["wait"] = cells["trip"] - cells["talk"].map(base)
        wait = cells.groupby("slot")["wait"].median()
        cells["base"] = cells["trip"] - cells["slot"].map(wait)
        new = cells.groupby("talk")["base"].median()
        change = float((new - base).abs().max())
        base = new
        if change < 1e-6:
            break
    # No wait is negative, and the shortest is taken to be none.
    base += float((least.loc[many] - base).min())
    found = {int(name): float(value) for name, value in least.items()}
    found.update({int(name): float(value) for name, value in base.items()})
    return found
