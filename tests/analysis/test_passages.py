"""Packets at a queue, put together from events, and the moment that is worth a look."""

from __future__ import annotations

import numpy as np
import pytest

from redtail.analysis import passages
from redtail.analysis.passages import ARRIVAL, DEPARTURE, DROP, MARK


def test_events_of_a_packet_are_put_together_also_where_a_number_comes_again() -> None:
    rows = [  # key, time, what
        (7, 1.0, DEPARTURE),  # came before the first event
        (8, 2.0, ARRIVAL),
        (9, 2.0, DROP),  # told before its arrival, at the same time
        (9, 2.0, ARRIVAL),
        (8, 3.0, MARK),
        (8, 4.0, DEPARTURE),
        (8, 5.0, ARRIVAL),  # another packet with the number
        (6, 6.0, MARK),  # neither its arrival nor its end is known
    ]
    keys, times, what = (np.array(column) for column in zip(*rows, strict=True))
    found = passages.passages(keys, times, what)
    packets = zip(found.arrival, found.mark, found.end, strict=True)
    assert sorted(map(tuple, packets)) == [(-1, -1, 0), (1, 4, 5), (3, -1, 2), (6, -1, -1)]


def test_without_events_there_are_no_packets() -> None:
    nothing = np.array([], np.int64)
    assert len(passages.passages(nothing, nothing, nothing).end) == 0


def test_the_most_interesting_moment_counts_different_things_once() -> None:
    # One flow is hit a hundred times at 30 s, three flows once at 70 s, nine in the warm-up.
    times = np.array([*[5.0] * 9, *[30.5] * 100, 70.1, 70.5, 71.9])
    kinds = np.array([*range(9), *[1] * 100, 1, 2, 3])
    assert passages.most_interesting(times, kinds, 10.0, 100.0) == pytest.approx(69.4)
    assert passages.most_interesting(times, kinds, 80.0, 100.0) is None
