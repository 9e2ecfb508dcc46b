"""The rate of a link, from what it delivered while it was busy.

A link that has a packet waiting sends all the time. A packet that is seen at time t after it has
waited q tells that the link was busy from t - q to t, so the union of these intervals is when the
link is known to have been busy. The rate is what was delivered in windows that lie within it.
Without waiting times the windows are those whose rate is near the largest that lasted.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from redtail.lines.course import OPPORTUNITY_B
from redtail.lines.recordings.values import Estimated, quantity, within

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

PACKETS_A_WINDOW = 40
"""So many packets make a packet more or less in a window a matter of 2.5 %."""

SHORTEST_S, LONGEST_S = 0.05, 1.0

MOST_WINDOWS = 4000

PACKET_B = 1500
"""A full packet of Ethernet."""

COVERED = 0.98
"""Share of a window in which the link was busy, from which the window counts."""

FEWEST = 8
"""Windows from which a mean and its interval are computed."""

NEAR = 0.9
"""Share of the largest lasting rate from which a window without waiting times counts as busy."""

_NEAR = f"within {100 * (1 - NEAR):.0f} % of the largest rate that lasts"

MOSTLY_BUSY = 0.5
"""Share of the windows that have to be near it."""

SAME = 0.05
"""Relative difference up to which two stretches of time are taken to have one rate."""

VARIES = 0.15
"""Coefficient of variation of windows within stretches from which a rate is taken to vary."""

STEP_S = 1.0
"""Shorter stretches are what a change looks like from afar, such as losses at it."""

TRIMMED = 0.1
"""Share of the windows at either end of a stretch that its rate leaves out: what is around a change
is not what comes before or after it."""

MOST_STEPS = 12

STANDING_PACKETS = 2
"""A queue stands while packets wait longer than so many full packets take."""

STANDING = 0.1
"""A queue stands if all but this share of what tells of waiting shows it."""

LEAST_S = 1.0
"""Time in which a queue has to stand for a rate: ten times the longest round trip within a
continent, as CoDel takes for its interval (RFC 8289, section 4.2)."""

MOST_S, LUMPS = 0.25, 4
"""Time in which the most that was delivered is looked for: time stamps come in lumps, as a network
card hands packets over. It is so many times that over which deliveries are even, at least."""

LASTING = 0.9
"""Share of the bytes of a direction that are sent at the largest lasting rate at most."""

MOST_OPPORTUNITIES = 64
"""Opportunities of a trace for each packet: a host hands 64 kB to its network card at once, which
are 44. Where there are more, there is no trace."""

LONGEST_TRACE_MS = 100 * 24 * 3_600_000
"""The longest that a trace may last, as in an experiment: no run is longer than 100 days."""

FINEST_S = 1e-6
"""Time that a time stamp tells at least: windows are no shorter."""


@dataclass(frozen=True)
class Rate:
    """The rate of a link.

    Attributes:
        mean: the rate; of a link whose rate changes the mean over the time in which it was seen.
        steps: stretches of constant rate: begin (s), end (s), bit/s; one for a constant rate.
        trace_ms: opportunities to deliver 1500 bytes in ms, if the rate varies all the time.
        edges_s: edges of the windows.
        windows_bps: what was delivered in each.
        busy: whether the link was busy throughout the window.
    """

    mean: Estimated
    steps: tuple[tuple[float, float, float], ...] = ()
    trace_ms: Sequence[int] = ()
    edges_s: Array = field(default_factory=lambda: np.zeros(1))
    windows_bps: Array = field(default_factory=lambda: np.zeros(0))
    busy: Array = field(default_factory=lambda: np.zeros(0, bool))

    @property
    def form(self) -> str:
        """How it changes: "constant", "steps", "varying", or "" if it is not known."""
        if not self.mean.known or self.mean.bound:
            return ""
        if self.trace_ms:
            return "varying"
        return "steps" if len(self.steps) > 1 else "constant"


@dataclass(frozen=True)
class Deliveries:
    """What came out of a link.

    Attributes:
        at_s: times.
        size_b: bytes at each of them.
        uncertain: share of the bytes of which it is not known whether they were delivered.
        how: how they were found, in a few words.
        even_s: the time over which they are even.
        late_s: how much later than others some may be seen.
        sure: what was delivered in any case, if these may not have come out of the link yet.
    """

    at_s: Array
    size_b: Array
    uncertain: float
    how: str
    even_s: float = 0.05
    late_s: float = 0.0
    sure: Deliveries | None = None


@dataclass(frozen=True)
class Standing:
    """When a queue is known to have stood, and when not.

    Attributes:
        begins_s: begins of when a packet was in it, in order and disjoint.
        ends_s: their ends.
        at_s: when packets passed that tell how long they waited.
        talk: the conversation of each.
        short: whether each waited for less than a queue that stands makes it wait.
    """

    begins_s: Array
    ends_s: Array
    at_s: Array
    talk: Array
    short: Array

    def windows(self, edges: Array) -> Array:
        """Return of each window whether the queue stood throughout.

        A conversation has to have waited whenever it tells of it. Others may wait less: a queue may
        serve flows in turns.
        """
        found: Array = covered(self.begins_s, self.ends_s, edges) >= COVERED
        slot = np.searchsorted(edges, self.at_s, side="right") - 1
        inside = (slot >= 0) & (slot < len(found))
        cells, place = np.unique(
            np.stack([slot[inside], self.talk[inside].astype(np.int64)]),
            axis=1,
            return_inverse=True,
        )
        ran_empty = np.zeros(cells.shape[1], bool)
        ran_empty[place.reshape(-1)[self.short[inside]]] = True
        told, stood = np.zeros(len(found), bool), np.zeros(len(found), bool)
        told[cells[0]] = True
        stood[cells[0][~ran_empty]] = True
        return found & (stood | ~told)


def standing_s(bps: float, noise_s: float) -> float:
    """Return what a packet waits at least in a queue that stands.

    Args:
        bps: about the rate of the link.
        noise_s: what round trips vary without a queue.
    """
    return noise_s + STANDING_PACKETS * 8 * PACKET_B / bps if bps > 0 else noise_s


def busy_time(at_s: Array, wait_s: Array, slack_s: float) -> tuple[Array, Array]:
    """Return begins and ends of when a link is known to have been busy, in order and disjoint.

    Args:
        at_s: when packets were seen behind the link.
        wait_s: what each had waited.
        slack_s: errors of the waiting times, which are taken off.
    """
    wait = wait_s - slack_s
    kept = wait > 0
    ends, begins = at_s[kept], (at_s - wait)[kept]
    if not len(ends):
        return np.zeros(0), np.zeros(0)
    order = np.argsort(begins)
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    first = np.concatenate([[True], begins[1:] > ends[:-1]])
    last = np.concatenate([first[1:], [True]])
    return begins[first], ends[last]


def covered(begins: Array, ends: Array, edges: Array) -> Array:
    """Return the share of each window that intervals cover."""
    lengths = np.concatenate([[0.0], np.cumsum(ends - begins)])
    position = np.searchsorted(begins, edges, side="right")
    before = lengths[np.maximum(position - 1, 0)]
    inside = np.zeros(len(edges))
    some = position > 0
    last = position[some] - 1
    inside[some] = np.minimum(edges[some], ends[last]) - begins[last]
    total = np.where(some, before + inside, 0.0)
    return np.diff(total) / np.diff(edges)


def cumulative(at_s: Array, size_b: Array) -> tuple[Array, Array]:
    """Return times in order and the bytes delivered up to each."""
    order = np.argsort(at_s, kind="stable")
    return at_s[order], np.cumsum(size_b[order])


def rough(deliveries: Deliveries) -> float:
    """Return about the largest rate that lasts half a second, in bit/s."""
    edges = _edges(deliveries, 0.5)
    return lasting(_windows(deliveries, edges))


def lasting(windows: Array) -> float:
    """Return the largest that lasts of what windows of time have.

    It is a quantile of bytes, not of time: time in which little was sent makes no difference.

    >>> lasting(np.array([5.0] * 20 + [0.0] * 1000))
    5.0
    """
    order = np.sort(windows)
    total = np.cumsum(order)
    if not len(order) or total[-1] <= 0:
        return 0.0
    return float(order[np.searchsorted(total, LASTING * total[-1])])


def estimate(
    deliveries: Deliveries,
    standing: Standing | None,
    *,
    shortest_s: float = SHORTEST_S,
    near: bool = False,
    why: str = "nothing tells how long packets waited",
) -> Rate:
    """Estimate the rate of a link.

    Args:
        deliveries: what came out of it.
        standing: when a queue is known to have stood; None if nothing tells waiting times.
        shortest_s: the shortest window.
        near: whether a window has to be near the largest rate that lasts besides, because packets
            may have waited in another queue.
        why: nothing tells them.
    """
    why_not = _too_little(deliveries)
    if why_not:
        return Rate(Estimated(None, "bit/s", why_not))
    if standing is None:
        return most(deliveries, why)
    edges = _wide(deliveries, shortest_s)
    chosen = standing.windows(edges)
    if chosen.sum() > MOST_WINDOWS:
        edges = _edges(deliveries, float(edges[1] - edges[0]) * chosen.sum() / MOST_WINDOWS)
        chosen = standing.windows(edges)
    windows = _windows(deliveries, edges)
    highest = lasting(windows)
    which = "in which packets waited throughout"
    if near:
        chosen &= windows >= NEAR * highest
        which += f" and {_NEAR}"
    return _of_windows(deliveries, edges, windows, chosen, which, highest if near else 0.0)


def near_largest(deliveries: Deliveries, *, shortest_s: float = SHORTEST_S) -> Rate:
    """Estimate the rate of a link that is known to have been full most of the time.

    It is that of the windows near the largest rate that lasts, if they are most of the windows.
    """
    why_not = _too_little(deliveries)
    if why_not:
        return Rate(Estimated(None, "bit/s", why_not))
    edges = _wide(deliveries, shortest_s)
    edges = _edges(deliveries, max(edges[1] - edges[0], (edges[-1] - edges[0]) / MOST_WINDOWS))
    windows = _windows(deliveries, edges)
    chosen = windows >= NEAR * lasting(windows)
    # A few windows could be a burst, or the best moments of a link that varies.
    if chosen.mean() < MOSTLY_BUSY:
        chosen[:] = False
    return _of_windows(deliveries, edges, windows, chosen, _NEAR, 0.0)


def _too_little(deliveries: Deliveries) -> str:
    """Return why deliveries are too few for a rate; empty if they are not."""
    count, least = len(deliveries.at_s), 2 * PACKETS_A_WINDOW
    if count < least:
        return f"there are {count} packets in this direction, and a rate needs {least}"
    begin, end = float(deliveries.at_s.min()), float(deliveries.at_s.max())
    if end - begin < 2 * FEWEST * _finest(end):
        shown = quantity(end - begin, "s", 3)
        return f"{count} packets of this direction have times within {shown} only"
    return ""


def _wide(deliveries: Deliveries, shortest_s: float) -> Array:
    """Return the edges of windows that have enough packets at the largest rate."""
    span = float(np.ptp(deliveries.at_s))
    width = min(PACKETS_A_WINDOW * PACKET_B * 8 / max(rough(deliveries), 1.0), LONGEST_S)
    return _edges(deliveries, min(max(width, shortest_s), span / FEWEST))


def most(deliveries: Deliveries, why: str) -> Rate:
    """Return the most that was delivered as a lower bound; `why` it is no more than that."""
    nothing = "packets came one by one"
    if deliveries.sure is not None:
        deliveries = deliveries.sure
        nothing = "nothing tells how much of what passed the point of capture passed the line"
    if not len(deliveries.at_s):
        return Rate(Estimated(None, "bit/s", f"{why}; {nothing}"))
    width = max(MOST_S, LUMPS * deliveries.even_s, LUMPS * deliveries.late_s)
    at, total = cumulative(deliveries.at_s, deliveries.size_b)
    inside = total[np.searchsorted(at, at + width) - 1] - total
    # Without the first packet and another one: they may have been sent before, as all may that are
    # seen late.
    value = 8 * float(inside.max() - deliveries.size_b.max()) / (width + deliveries.late_s)
    if value <= 0:
        return Rate(Estimated(None, "bit/s", f"{why}; {nothing}"))
    basis = (
        f"the link is not known to have been full: {why}; this is the most that was delivered in "
        f"{quantity(width, 's', 3)}"
    )
    return Rate(Estimated(value, "bit/s", basis, bound="at least"))


def _of_windows(
    deliveries: Deliveries,
    edges: Array,
    windows: Array,
    chosen: Array,
    why: str,
    least_high: float,
) -> Rate:
    """Return the rate that the chosen windows have; its interval ends at `least_high` or above."""
    from scipy.stats import trim_mean

    width = float(edges[1] - edges[0])
    count = int(chosen.sum())
    if count < FEWEST or count * width < LEAST_S:
        return most(
            deliveries,
            f"there are {count} windows of {1e3 * width:.0f} ms {why}, and {FEWEST} of them and "
            f"{quantity(LEAST_S, 's')} are needed",
        )
    rates = windows[chosen]
    if not rates.any():
        reason = f"nothing was delivered in {count} windows of {1e3 * width:.0f} ms {why}"
        return Rate(Estimated(None, "bit/s", reason))
    begins = edges[:-1][chosen]
    raw = _stretches(rates)
    stretches = raw if len(raw) > MOST_STEPS else _lasting(raw, rates, begins, width)
    steps: list[tuple[float, float, float]] = []
    residual = np.empty(count)
    for number, (first, last) in enumerate(stretches):
        part = rates[first:last]
        here = float(part.mean() if len(stretches) == 1 else trim_mean(part, TRIMMED))
        residual[first:last] = part / here - 1 if here > 0 else 0.0
        # A change is somewhere between two windows that were seen busy.
        begin = begins[first] if number == 0 else (begins[first] + begins[first - 1] + width) / 2
        if steps:
            steps[-1] = (steps[-1][0], float(begin), steps[-1][2])
        steps.append((float(begin), float(begins[last - 1] + width), here))
    level = float(rates.mean())
    varies = len(raw) > MOST_STEPS or (float(residual.std()) > VARIES and width >= SHORTEST_S)
    half = 0.0 if varies else _half_width(residual) * level
    low = level - half - deliveries.uncertain * level
    # A window near the largest may have been idle for a part of it.
    high = max(level + half, least_high)
    what = "mean and 95 % interval" if not varies else "mean; the rate varies"
    basis = (
        f"{what} over {count} windows of {1e3 * width:.0f} ms {why}; bytes of IP packets, "
        f"{deliveries.how}"
    )
    trace: Sequence[int] = ()
    if varies:
        spread = np.quantile(rates, [0.1, 0.9])
        low, high = float(spread[0]), float(spread[1])
        basis += "; the interval has 80 % of the windows"
        first, last = np.flatnonzero(chosen)[[0, -1]]
        if chosen[first : last + 1].mean() >= MOSTLY_BUSY:
            trace = _trace(deliveries)
        if not trace:  # its lines would be too many
            steps = [(steps[0][0], steps[-1][1], level)]
    found = within(level, "bit/s", basis, low, high)
    return Rate(found, tuple(steps), trace, edges, windows, chosen)


def _half_width(residual: Array) -> float:
    """Return half the relative 95 % interval of a mean, from means of at most 20 batches."""
    from scipy.stats import t

    batches = min(20, len(residual) // 2)
    if batches < 3:
        return float(np.ptp(residual)) / 2
    means = [float(part.mean()) for part in np.array_split(residual, batches)]
    factor = float(t.ppf(0.975, batches - 1))
    return float(factor * np.std(means, ddof=1) / np.sqrt(batches))


def _stretches(rates: Array) -> list[tuple[int, int]]:
    """Return the stretches of windows with one rate.

    Changes are found by the dynamic programme of R. Killick, P. Fearnhead, I. A. Eckley (JASA
    107(500), 2012) with the squared error as cost; the penalty is BIC's for a change of the mean,
    with the variance of neighbouring differences, which a change of the mean does not enlarge.
    """
    import ruptures

    count = len(rates)
    if count < 2 * FEWEST:
        return [(0, count)]
    scaled = rates / rates.mean()
    sigma = 1.4826 * float(np.median(np.abs(np.diff(scaled)))) / np.sqrt(2)
    penalty = 3 * max(sigma, 0.005) ** 2 * np.log(count)
    search = ruptures.KernelCPD(kernel="linear", min_size=4).fit(scaled.reshape(-1, 1))
    ends = [int(end) for end in search.predict(pen=penalty)]
    return _merged(list(zip([0, *ends[:-1]], ends, strict=True)), scaled, np.mean)


def _merged(
    stretches: list[tuple[int, int]], rates: Array, level: Callable[[Array], Any]
) -> list[tuple[int, int]]:
    """Return stretches, neighbours that have one rate as one; `level` is the rate of windows."""
    merged = stretches[:1]
    for first, last in stretches[1:]:
        begin, end = merged[-1]
        here, there = level(rates[begin:end]), level(rates[first:last])
        if abs(there - here) <= SAME * here:
            merged[-1] = (begin, last)
        else:
            merged.append((first, last))
    return merged


def _lasting(
    stretches: list[tuple[int, int]], rates: Array, begins: Array, width: float
) -> list[tuple[int, int]]:
    """Return stretches without those that are too short: they go to the neighbour most alike."""
    found = list(stretches)
    while len(found) > 1:
        spans = [float(begins[last - 1] + width - begins[first]) for first, last in found]
        short = int(np.argmin(spans))
        if spans[short] >= STEP_S:
            break
        level = [float(np.median(rates[first:last])) for first, last in found]
        sides = [side for side in (short - 1, short + 1) if 0 <= side < len(found)]
        into = min(sides, key=lambda side: abs(level[side] - level[short]))
        low, high = min(short, into), max(short, into)
        found[low : high + 1] = [(found[low][0], found[high][1])]
    return _merged(found, rates, np.median)


def _trace(deliveries: Deliveries) -> Sequence[int]:
    """Return a mahimahi trace of what was delivered: an opportunity for each 1500 bytes."""
    at, total = cumulative(deliveries.at_s, deliveries.size_b)
    if total[-1] > MOST_OPPORTUNITIES * OPPORTUNITY_B * len(at):
        return ()
    if 1e3 * (at[-1] - at[0]) > LONGEST_TRACE_MS:
        return ()
    due = np.floor(total / OPPORTUNITY_B).astype(np.int64)
    times = np.maximum(1, np.ceil(1e3 * (at - at[0]))).astype(np.int64)
    found = array("q")
    found.frombytes(np.repeat(times, np.diff(due, prepend=0)).tobytes())
    return found


def _finest(end_s: float) -> float:
    """Return the shortest time that times up to an end can tell apart."""
    return max(FINEST_S, 8 * float(np.spacing(end_s)))


def _edges(deliveries: Deliveries, width: float) -> Array:
    """Return the edges of windows over the time of deliveries."""
    begin, end = float(deliveries.at_s.min()), float(deliveries.at_s.max())
    # A damaged time stamp can be years away.
    width = max(width, (end - begin) / (10 * MOST_WINDOWS), _finest(end))
    count = max(1, int((end - begin) / width))
    return begin + width * np.arange(count + 1)


def _windows(deliveries: Deliveries, edges: Array) -> Array:
    sums, _ = np.histogram(deliveries.at_s, edges, weights=deliveries.size_b)
    found: Array = 8 * sums / np.diff(edges)
    return found
