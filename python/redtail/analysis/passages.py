"""Packets at a queue, from the events of a run: each with its arrival, its end and its mark.

Also which moment of a run is worth a look. Both know columns of events alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

ARRIVAL, MARK, DROP, DEPARTURE = 0, 1, 2, 3
"""What happens to a packet, in the order of what happens at one time."""


@dataclass(frozen=True)
class Passages:
    """Packets at a queue, as columns; the places are those of the events.

    Attributes:
        arrival: the place of the arrival, -1 of a packet that came before the first event.
        mark: the place of its mark, -1 without.
        end: the place of its drop or departure, -1 of a packet that is still there.
    """

    arrival: np.ndarray[Any, Any]
    mark: np.ndarray[Any, Any]
    end: np.ndarray[Any, Any]


def passages(
    keys: np.ndarray[Any, Any], times: np.ndarray[Any, Any], what: np.ndarray[Any, Any]
) -> Passages:
    """Put together the events of each packet.

    A key may come again, as the identification of IP does after 2^16 packets of a flow, once the
    packet that had it is gone.

    Args:
        keys: a number for each packet.
        times: when something happened to it.
        what: `ARRIVAL`, `MARK`, `DROP` or `DEPARTURE`.
    """
    import numpy as np

    order = np.lexsort((what, times, keys))
    key, kind = keys[order], what[order]
    other = np.ones(len(order), bool)
    other[1:] = key[1:] != key[:-1]
    over = np.zeros(len(order), bool)
    over[1:] = kind[:-1] >= DROP
    packet = np.cumsum(other | over | (kind == ARRIVAL)) - 1
    count = int(packet[-1]) + 1 if len(packet) else 0
    found = np.full((3, count), -1, np.int64)
    for row, of in enumerate((kind == ARRIVAL, kind == MARK, kind >= DROP)):
        found[row, packet[of]] = order[of]
    # Of a mark alone neither the arrival nor the end is known.
    known = (found[0] >= 0) | (found[2] >= 0)
    return Passages(*found[:, known])


def most_interesting(
    times: np.ndarray[Any, Any], kinds: np.ndarray[Any, Any], since_s: float, until_s: float
) -> float | None:
    """Return the start of the fiftieth of a time in which the most different things happen.

    Args:
        times: of events.
        kinds: of each event a number for what happened and to whom: what happens to one flow again
            and again counts once.
        since_s: from when, as the end of the warm-up.
        until_s: until when.

    Returns:
        None when nothing happened.
    """
    import numpy as np

    within = (times >= since_s) & (times <= until_s)
    if not within.any():
        return None
    width = (until_s - since_s) / _PARTS
    part = np.minimum(((times[within] - since_s) / width).astype(np.int64), _PARTS - 1)
    different = np.unique(np.stack([part, kinds[within].astype(np.int64)]), axis=1)
    counts = np.bincount(different[0], minlength=_PARTS)
    return float(since_s + width * int(counts.argmax()))


_PARTS = 50
