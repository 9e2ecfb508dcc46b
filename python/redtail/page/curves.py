"""Curves of the page: time series, thinned to what a screen shows, and distributions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from redtail import escape
from redtail.errors import StoreError
from redtail.scenario import links, quantity, seconds

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from redtail.analysis.results import Results

POINTS = 150_000
"""Points of all time series of an experiment, about 2 MB."""

_MOST_CASES = 60
_MOST_OF_A_SERIES = 3000
_LEAST_OF_A_SERIES = 200

# What is drawn of the tables of series: column, title of the axis, factor to the unit shown.
_QUANTITIES = {
    "queues": (
        ("packets", "Queue length (packets)", 1.0),
        ("average_packets", "Averaged queue length (packets)", 1.0),
        ("probability", "Drop probability (%)", 100.0),
    ),
    "flows": (
        ("cwnd_bytes", "Congestion window (kB)", 1e-3),
        ("ssthresh_bytes", "Slow-start threshold (kB)", 1e-3),
        ("srtt_s", "Smoothed round-trip time (ms)", 1e3),
        ("in_flight_bytes", "In flight (kB)", 1e-3),
    ),
}

_FLOWS_SHOWN = 8


def series(results: Results, scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the time series of the first replication of each case.

    Returns:
        `panels`, each a quantity with a curve for each case: times in s, values in the unit of its
        title; `warmup_s`, and `limits`: those of queues, in packets, by case.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    drafts = list(_drafts(results))
    each = max(_LEAST_OF_A_SERIES, min(_MOST_OF_A_SERIES, POINTS // max(1, len(drafts))))
    for title, case, name, times, values in drafts:
        x, y = thinned(times, values, each)
        found.setdefault(title, []).append(
            {
                "case": case,
                "name": name,
                "x": [round(float(time), 4) for time in x],
                "y": [float(f"{value:.4g}") for value in y],
            }
        )
    warmup = scenario.get("warmup")
    return {
        "panels": [{"title": title, "curves": curves} for title, curves in found.items()],
        "warmup_s": seconds(warmup) if isinstance(warmup, str) else 0.0,
        "limits": _limits(results, scenario) if found else [],
    }


def _drafts(results: Results) -> Iterator[tuple[str, int, str, Any, Any]]:
    """Yield quantity, case, name of the curve, times and values."""
    for number in range(min(len(results.cases), _MOST_CASES)):
        for table, quantities in _QUANTITIES.items():
            first = next(iter(sorted(results.cases[number].runs)), None)
            if first is None:
                continue
            try:
                rows = results.series(table, case=number, replication=first)  # type: ignore[arg-type]
            except StoreError:
                continue
            for name, part in _parts(rows, table):
                times = part["time_s"].to_numpy()
                for column, title, scale in quantities:
                    if column in part.column_names:
                        values = part[column].to_numpy() * scale
                        where = f", {name}" if table == "queues" and name else ""
                        yield f"{title}{where}", number, name, times, values


def _parts(rows: pa.Table, table: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each queue, or of some flows, with its name."""
    import pyarrow.compute as pc

    if table == "queues":
        known = rows["link"].unique().to_pylist()
        for link in known:
            name = escape.name(str(link)) if len(known) > 1 else ""
            yield name, rows.filter(pc.equal(rows["link"].cast("string"), link))
        return
    for flow in rows["flow"].unique().to_pylist()[:_FLOWS_SHOWN]:
        yield f"flow {flow}", rows.filter(pc.equal(rows["flow"], flow))


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


def _limits(results: Results, scenario: dict[str, Any]) -> list[float | None]:
    """Return the limit of the first queue in packets for each case, None where it has none."""
    first = next(iter(links(scenario).values()), {})
    found: list[float | None] = []
    for case in results.cases:
        queue = next(
            (
                value
                for key, value in case.settings.items()
                if key.endswith(".queue") and isinstance(value, dict)
            ),
            first.get("queue", {}),
        )
        limit = next(
            (value for key, value in case.settings.items() if key.endswith(".queue.limit")),
            queue.get("limit"),
        )
        number, unit = quantity(limit)
        found.append(number if unit == "packets" else None)
    return found


def tails(results: Results) -> list[dict[str, Any]]:
    """Return distributions: each with a curve for every case, its mean and half-width.

    P(a loss event has more losses) at each queue, and the times that responses take.
    """
    found = []
    for link in results.links if len(results.cases) <= _MOST_CASES else ():
        curves = []
        for number, case in enumerate(results.cases):
            points = case.exceedance(link)
            if points:
                curves.append(
                    {
                        "case": number,
                        "x": list(range(1, len(points) + 1)),
                        "y": [_short(each.mean) for each in points],
                        "half": [_short(each.ci95) for each in points],
                    }
                )
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
    if len(results.cases) <= _MOST_CASES:
        found += [_responses(results, group) for group in results.user_groups]
    return found


def _responses(results: Results, group: str) -> dict[str, Any]:
    times, bands = results.response_time_bands(group)
    return {
        "title": f"Response times of {escape.name(group)}",
        "x": "Response time (s)",
        "y": "P(a response takes longer)",
        "log": True,
        "logx": True,
        "curves": [
            {
                "case": number,
                "x": [_short(time) for time in times],
                "y": [_short(1 - each.mean) for each in band],
                "half": [_short(each.ci95) for each in band],
            }
            for number, band in enumerate(bands)
            if band
        ],
    }


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
