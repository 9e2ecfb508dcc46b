"""The figure of a queue's length over time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from redtail import escape
from redtail.display import style
from redtail.display.layout import find_load, lines_of, values_of
from redtail.errors import StoreError
from redtail.files import plain_bytes
from redtail.scenario import links, quantity, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results
    from redtail.display.style import Size


def queue_figure(
    results: Results, link: str | None = None, replication: int = 0, *, size: Size | None = None
) -> Figure | None:
    """Draw queue length over time, a panel per case; None when no series was recorded.

    In kB when that is the unit of the averages that are drawn as well.
    """
    link = link or (results.links[0] if results.links else "")
    load = find_load(results)
    lines = lines_of(results, load)
    loads = values_of(load)
    tables, averages, warmups = {}, {}, {}
    for number, case in enumerate(results.cases):
        try:
            tables[id(case)] = results.series("queues", case=number, replication=replication)
        except StoreError:
            continue
        averages[id(case)] = _unit_of_average(case, link, replication)
        warmups[id(case)] = _warmup_of(case, replication)
    if not tables:
        return None
    unit = "bytes" if {*averages.values()} - {""} == {"bytes"} else "packets"
    shown = "kB" if unit == "bytes" else unit
    size = size or ("column" if len(loads) == 1 else "page")
    figure, grid = style.panels(
        len(lines) * len(loads), size, height=1.15 + 0.3 / len(lines), columns=len(loads)
    )
    for number, line in enumerate(lines):
        for axes, x in zip(grid[number * len(loads) :], loads, strict=False):
            if load is not None and number == 0:
                axes.set_title(load.of_panel(x), loc="left")
            if style.is_first(axes):
                label = escape.plot(line.label)
                axes.set_ylabel(f"{label}\n({shown})" if label else f"Queue ({shown})")
            for case in line.at(x):
                if id(case) in tables:
                    averaged = averages[id(case)] == unit
                    colour = style.look(number)["color"]
                    _queue_lines(axes, tables[id(case)], link, unit, colour, averaged=averaged)
                    if warmups[id(case)] > 0:
                        axes.axvspan(0.0, warmups[id(case)], color="#000000", alpha=0.07, lw=0)
    for axes in grid[-len(loads) :]:
        axes.set_xlabel("Time (s)")
    grid[0].set_ylim(bottom=0)
    if unit in averages.values():
        style.legend(figure, grid)
    style.caption(
        figure,
        f"length of the queue at {link} in one run, replication {replication}",
        "shaded: the warm-up, which is not measured" if any(warmups.values()) else "",
    )
    return figure


def _warmup_of(case: CaseResult, replication: int) -> float:
    """Return the warm-up of a run in s; 0 where its scenario does not tell."""
    spec = json.loads(plain_bytes(case.runs[replication].folder / "scenario.json"))
    return seconds(spec["warmup"]) if "warmup" in spec else 0.0


def _queue_lines(
    axes: Axes, table: Any, link: str, unit: str, colour: str, *, averaged: bool
) -> None:
    """Draw one queue's length in packets or, with the unit bytes, in kB, and its average."""
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    rows = [number for number, of in enumerate(columns["link"]) if of == link]
    time = [columns["time_s"][number] for number in rows]
    scale = 1e-3 if unit == "bytes" else 1.0
    # Thousands of line segments are drawn as an image also in the SVG file.
    axes.plot(
        time,
        [columns[unit][number] * scale for number in rows],
        color=colour,
        linewidth=0.8,
        rasterized=True,
        label=style.mark("queue length"),
    )
    if averaged:
        average = [columns["average"][number] * scale for number in rows]
        axes.plot(
            time,
            average,
            color="black",
            linewidth=0.9,
            rasterized=True,
            label=style.mark("average (RED's)"),
        )


# Kinds of queue whose series have RED's average; that of others is of something else.
_AVERAGING = (
    "red",
    "adaptive-red",
    "self-configuring-red",
    "dynamic-threshold-red",
    "red-tail",
    "wred",
    "choke",
)


def _unit_of_average(case: CaseResult, link: str, replication: int) -> str:
    """Return what RED's average of a queue is counted in, packets or bytes; empty without one."""
    spec = json.loads(plain_bytes(case.runs[replication].folder / "scenario.json"))
    queue = links(spec).get(link, {}).get("queue", {})
    if queue.get("kind") not in _AVERAGING:
        return ""
    profiles = queue.get("profile", [queue])
    _, unit = quantity(profiles[0].get("min_th"))  # without it thresholds are computed in packets
    return "packets" if unit in ("", "packet", "packets", "pkt", "pkts") else "bytes"
