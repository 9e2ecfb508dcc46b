"""Curves of the page: time series, thinned to what a screen shows, and distributions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from redtail import escape, quantities
from redtail import metrics as names
from redtail.analysis import places
from redtail.analysis.distributions import KINDS, Distribution, distribution
from redtail.errors import StoreError
from redtail.page import marks
from redtail.page.network import link_key
from redtail.scenario import links, seconds
from redtail.store.segments import LARGE

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from redtail.analysis.results import Results
    from redtail.analysis.stats import Estimate

POINTS = 150_000
"""Points of all time series of an experiment, about 2 MB."""

_MOST_CASES = 60

# An axis is logarithmic if its values span so much.
_DECADES = 50

# A share that counts as zero.
_NOTHING = 1e-9

_MOST_OF_A_SERIES = 3000
_LEAST_OF_A_SERIES = 200

_LENGTH = "Queue length (packets)"

# What is drawn of the tables of series: column, title of the axis, factor to the unit shown.
_QUANTITIES = {
    "queues": (
        ("packets", _LENGTH, 1.0),
        ("delay_s", "Queueing delay (ms)", 1e3),
        ("drops", "Drops in each interval (packets)", 1.0),
        ("marks", "Marks in each interval (packets)", 1.0),
        ("average_packets", "Averaged queue length (packets)", 1.0),
        ("probability", "Drop probability (%)", 100.0),
    ),
    "groups": (("goodput_bps", "Goodput (Mbit/s)", 1e-6),),
    "flows": (
        ("cwnd_bytes", "Congestion window (kB)", 1e-3),
        ("ssthresh_bytes", "Slow-start threshold (kB)", 1e-3),
        ("srtt_s", "Smoothed round-trip time (ms)", 1e3),
        ("pacing_rate_bps", "Pacing rate (Mbit/s)", 1e-6),
    ),
}

Source: TypeAlias = "tuple[str, str, int | None]"
"""The table of series that a curve is of, its link or group, and its flow."""

# Of each group that the series of flows has, so many flows are drawn.
_FLOWS_SHOWN = 3

# Points of all curves of distributions, and of one at most and at least.
_TAIL_POINTS = 60_000
_MOST_OF_A_TAIL = 160
_LEAST_OF_A_TAIL = 20
_MOST_TAILS = 24


def series(results: Results, scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the time series of the first replication of each case.

    Returns:
        `panels`, each a quantity with a curve for each case: times in s, values in the unit of its
        title, and by case the limit of the queue whose length it is; and `warmup_s`.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    queues: dict[str, str] = {}
    drafts = list(_drafts(results))
    each = max(_LEAST_OF_A_SERIES, min(_MOST_OF_A_SERIES, POINTS // max(1, len(drafts))))
    known = marks.of_runs(_first_runs(results), len(drafts))
    for title, case, source, times, values in drafts:
        _, of, flow = source
        if title.startswith(_LENGTH):
            queues[title] = of
        x, y = thinned(times, values, each)
        found.setdefault(title, []).append(
            {
                "case": case,
                "name": "" if flow is None else f"flow {flow}",
                "x": [round(float(time), 4) for time in x],
                "y": [float(f"{value:.4g}") for value in y],
                **(known[case].of(*source, times, values) if case in known else {}),
            }
        )
    warmup = scenario.get("warmup")
    return {
        "panels": [
            {
                "title": title,
                "curves": curves,
                "limits": _limits(results, scenario, queues[title]) if title in queues else [],
            }
            for title, curves in found.items()
        ],
        "warmup_s": seconds(warmup) if isinstance(warmup, str) else 0.0,
    }


def _first_runs(results: Results) -> dict[int, Path]:
    """Return by case the folder of the run whose series are drawn."""
    return {
        number: case.runs[min(case.runs)].folder
        for number, case in enumerate(results.cases[:_MOST_CASES])
        if case.runs
    }


def _drafts(results: Results) -> Iterator[tuple[str, int, Source, Any, Any]]:
    """Yield quantity, case, what the curve is of, times and values."""
    import numpy as np

    for number in range(min(len(results.cases), _MOST_CASES)):
        first = next(iter(sorted(results.cases[number].runs)), None)
        for table, drawn in _QUANTITIES.items() if first is not None else ():
            try:
                rows = results.series(table, case=number, replication=first)  # type: ignore[arg-type]
            except StoreError:
                continue
            for of, where, flow, part in _parts(rows, table):
                times = part["time_s"].to_numpy()
                for column, title, scale in drawn:
                    if column not in part.column_names:
                        continue
                    values = part[column].to_numpy().astype(np.float64) * scale
                    if column in ("drops", "marks") and not values.any():
                        continue
                    if np.isfinite(values).any():
                        yield f"{title}{where}", number, (table, of, flow), times, values


def _parts(rows: pa.Table, table: str) -> Iterator[tuple[str, str, int | None, pa.Table]]:
    """Yield the rows of each queue, group or flow: what they are of, in a title too, and the flow.

    Of flows, the first ones of each group that the series has.
    """
    import pyarrow.compute as pc

    column = "link" if table == "queues" else "group"
    known = rows[column].unique().to_pylist()
    for each in known:
        part = rows.filter(pc.equal(rows[column].cast("string"), each))
        where = f", {escape.name(str(each))}" if len(known) > 1 or table != "queues" else ""
        if table != "flows":
            yield each, where, None, part
            continue
        for flow in part["flow"].unique().to_pylist()[:_FLOWS_SHOWN]:
            yield each, where, flow, part.filter(pc.equal(part["flow"], flow))


def thinned(
    times: np.ndarray[Any, Any], values: np.ndarray[Any, Any], most: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return a series with fewer points and the same extremes.

    The lowest and the highest point of each of so many equal parts are kept, so that no peak is
    lost; points without a value are left out.

    >>> import numpy as np
    >>> x, y = thinned(np.arange(1000.0), np.where(np.arange(1000) == 500, 9.0, 1.0), 20)
    >>> len(x) <= 20, float(y.max()), float(x[y.argmax()])
    (True, 9.0, 500.0)
    """
    import numpy as np

    known = np.isfinite(values)
    times, values = times[known], values[known]
    if len(times) <= most:
        return times, values
    kept = set()
    for part in np.array_split(np.arange(len(values)), most // 2):
        kept |= {int(part[values[part].argmin()]), int(part[values[part].argmax()])}
    order = sorted(kept)
    return times[order], values[order]


def _limits(results: Results, scenario: dict[str, Any], link: str) -> list[float | None]:
    """Return the limit of a queue in packets for each case, None where it has none."""
    key = f"{link_key(link, scenario)}.queue"
    given = links(scenario).get(link, {}).get("queue", {})
    found: list[float | None] = []
    for case in results.cases:
        queue = case.settings.get(key, given)
        limit = queue.get("limit") if isinstance(queue, dict) else None
        read = quantities.in_si([case.settings.get(f"{key}.limit", limit)])
        found.append(read[0][0] if read is not None and read[1] == "packets" else None)
    return found


def tails(results: Results) -> list[dict[str, Any]]:
    """Return distributions: each with a curve for every case, its mean and half-width.

    P(a loss event has more losses) at each queue; delays, times from one loss to the next and times
    of responses, complementary; goodputs and round-trip times of flows, cumulative.
    """
    if len(results.cases) > _MOST_CASES or results.run_count >= LARGE:
        return []
    found = []
    for link in results.links:
        curves = []
        for number, case in enumerate(results.cases):
            points = case.exceedance(link)
            if points:
                sizes = [float(size) for size in range(1, len(points) + 1)]
                curves.append(_curve(number, sizes, points))
        if curves:
            where = f", {escape.name(link)}" if len(results.links) > 1 else ""
            found.append(
                {
                    "title": f"Losses in a row{where}",
                    "x": "n (packets)",
                    "y": "P(a loss event has more than n losses)",
                    "log": True,
                    "logx": False,
                    "curves": curves,
                }
            )
    known = results.distributions[:_MOST_TAILS]
    most = _TAIL_POINTS // max(1, len(known) * len(results.cases))
    most = max(_LEAST_OF_A_TAIL, min(_MOST_OF_A_TAIL, most))
    # Packets and answers before the distributions of few flows.
    hops = places.path_delays(results)

    def place(name: str) -> tuple[bool, float]:
        # In a chain the hop where packets wait longest is shown first.
        mean = f"{name}_mean"
        waits = [case.metric(mean).mean for case in results.cases] if mean in hops else []
        known = [each for each in waits if not math.isnan(each)]
        return KINDS[names.base(name)].column is not None, -max(known, default=0.0)

    ordered = sorted(known, key=place)
    links = results.links
    return [*(_tail(distribution(results, name), most, links) for name in ordered), *found]


def _tail(found: Distribution, most: int, links: Sequence[str]) -> dict[str, Any]:
    """Return a distribution, complementary if it is of more than flows, with few points."""
    about = found.about
    unit, scale = _shown_in(found)
    cumulative = about.column is not None
    kept = _spread(len(found.values), most)
    curves = []
    for number, band in enumerate(found.bands):
        if band:
            points = [band[place] for place in kept]
            if not cumulative:
                points = [replace(each, mean=1 - each.mean) for each in points]
            values = [found.values[place] * scale for place in kept]
            curves.append(_curve(number, values, points))
    title = escape.name(found.title(links))
    low = next((value for value in found.values if value > 0), 0.0)
    return {
        "title": title,
        "x": f"{title} ({unit})",
        "y": f"Share of {about.of} {'at or below' if cumulative else 'above'}",
        "log": not cumulative,
        "logx": low > 0 and found.values[-1] >= _DECADES * low,
        "curves": curves,
    }


def _curve(case: int, values: Sequence[float], points: Sequence[Estimate]) -> dict[str, Any]:
    """Return a curve without the points behind the last that says something."""
    last = len(points)
    while last > 1 and points[last - 1].mean < _NOTHING and points[last - 2].mean < _NOTHING:
        last -= 1
    return {
        "case": case,
        "x": [_short(value) for value in values[:last]],
        "y": [_short(max(0.0, each.mean)) for each in points[:last]],
        "half": [_short(each.ci95) for each in points[:last]],
    }


def _shown_in(found: Distribution) -> tuple[str, float]:
    """Return the unit in which values are shown, and what they are multiplied by."""
    middle = found.values[len(found.values) // 2] if found.values else 0.0
    if found.about.unit == "s":
        return ("s", 1.0) if middle >= 1 else ("ms", 1e3)
    return ("Mbit/s", 1e-6) if middle >= 1e5 else ("kbit/s", 1e-3)


def _spread(number: int, most: int) -> list[int]:
    """Return so many places in a list at most, evenly, with the first and the last.

    >>> _spread(5, 9), _spread(9, 3)
    ([0, 1, 2, 3, 4], [0, 4, 8])
    """
    if number <= most:
        return list(range(number))
    return [round(place * (number - 1) / (most - 1)) for place in range(most)]


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
