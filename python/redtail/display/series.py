"""Figures over time of one run: what groups get, what queues do, the windows of chosen flows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from redtail import escape, facts
from redtail.analysis import places
from redtail.analysis.flows import array
from redtail.display import style
from redtail.errors import RedtailError, StoreError
from redtail.files import plain_bytes
from redtail.scenario import TIMES, links, quantity, rate_or_size, seconds

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from redtail.analysis.results import Results
    from redtail.display.style import Size

# An axis ends below what the warm-up reached if this is so many times what came later.
_OVERSHOOT = 3.0

# Flows that are drawn when none is chosen.
_FLOWS = 3

# Rates of a link that are drawn at most.
_MOST_STEPS = 10_000

_GREY = "#555555"

_GOODPUT = "Goodput"


@dataclass(frozen=True)
class Happening:
    """Something that the file says happens at a time.

    Attributes:
        at: when, in seconds.
        text: what, for the legend.
    """

    at: float
    text: str


@dataclass
class Panel:
    """One panel of the figure.

    Attributes:
        title: what it shows; the figure's lines are named after it when there is one line.
        unit: of its values.
        curves: label, times and values of each line.
        levels: limits and targets: the label, and the value at each time from which it holds.
        steps: whether a value is that of the interval that ends at its time.
    """

    title: str
    unit: str
    curves: list[tuple[str, Any, Any]] = field(default_factory=list)
    levels: list[tuple[str, list[tuple[float, float]]]] = field(default_factory=list)
    steps: bool = False


@dataclass(frozen=True)
class Run:
    """What the figure needs of a run.

    Attributes:
        scenario: the run.
        duration: in seconds.
        warmup: in seconds.
        link: the queue that is drawn.
    """

    scenario: Mapping[str, Any]
    duration: float
    warmup: float
    link: str

    @property
    def spec(self) -> Mapping[str, Any]:
        """The link in the scenario."""
        return links(self.scenario).get(self.link, {})

    def rates(self) -> list[tuple[float, float]]:
        """Return the rates of the link with the times from which it has them.

        Nothing if no rate is known, or if it changes too often to be drawn.
        """
        first = self.spec.get("rate")
        changes = self.spec.get("rate_changes", ())
        if isinstance(changes, Mapping):
            found = facts.rate_steps(json.dumps(self.scenario), self.link) or []
            return found if len(found) <= _MOST_STEPS else []
        if first is None:
            return []
        steps = ((seconds(step["at"]), rate_or_size(step["rate"])) for step in changes)
        return [(0.0, rate_or_size(first)), *steps]

    def happenings(self) -> list[Happening]:
        """Return the rate steps and phases of the run."""
        changes = self.spec.get("rate_changes", ())
        # Lines at the changes of a law would hide the curves.
        listed = () if isinstance(changes, Mapping) else changes
        steps = [Happening(seconds(step["at"]), "rate step") for step in listed]
        phases = [Happening(seconds(at), "phase") for at in self.scenario.get("phases", ())]
        # Phases at the steps themselves would be drawn over them.
        taken = {each.at for each in steps}
        return steps + [each for each in phases if each.at not in taken]


def series_figure(
    results: Results,
    *,
    case: int = 0,
    replication: int = 0,
    link: str | None = None,
    flows: Sequence[int] | None = None,
    size: Size | None = None,
) -> Figure:
    """Draw what was recorded over time in one run, a panel for each quantity.

    Goodput of each group; length, delay, drops and marks of a queue; window, slow start threshold,
    round-trip time and pacing rate of chosen flows. The warm-up is shaded; limits, targets and the
    link's rate are thin lines; rate steps and phases are vertical lines.

    Args:
        results: what to draw.
        case: index into `results.cases`.
        replication: from 0.
        link: the queue; by default the bottleneck, and in a chain every hop.
        flows: numbers of flows; by default the first three that the series has.
        size: the figure's width.

    Raises:
        RedtailError: there is no such queue or flow.
        StoreError: no series was recorded.
    """
    run = run_of(results, case, replication, link)
    hops = [run.link] if link else places.forward(results.links) or [run.link]
    shown = [replace(run, link=hop) for hop in hops]
    tables = {}
    for name in ("groups", "queues", "flows"):
        try:
            tables[name] = results.series(name, case=case, replication=replication)
        except StoreError:
            continue
    if not tables:
        raise StoreError(
            f"no series was recorded in replication {replication}; ask for it with [series] and an "
            "interval in the experiment file"
        )
    panels = []
    if "groups" in tables:
        panels.append(_goodput(tables["groups"], shown))
    if "queues" in tables:
        for each in shown:
            panels += _queue(tables["queues"], each)
    if "flows" in tables:
        panels += _flows(tables["flows"], flows)
    panels = [panel for panel in panels if panel.curves]
    happenings = list(dict.fromkeys(each for of in shown for each in of.happenings()))
    figure, grid = style.panels(len(panels), size or "page", height=1.25, columns=1, sharey=False)
    for axes, panel in zip(grid, panels, strict=True):
        _draw(axes, panel, run, happenings)
    grid[-1].set_xlabel("Time (s)")
    title = results.cases[case].title
    style.caption(
        figure,
        ", ".join(filter(None, ["one run", title, f"replication {replication}"])),
        "shaded: warm-up" if run.warmup > 0 else "",
        _BURSTS if any(_beyond_rate(panel) for panel in panels) else "",
        *_in_words(happenings),
    )
    return figure


_BURSTS = (
    "goodput above the link's rate: TCP gives data that waits behind a lost segment to the "
    "application at once, when the retransmission has arrived"
)


def _beyond_rate(panel: Panel) -> bool:
    """Return whether goodput is higher than the rate of every link that is drawn."""
    rates = [rate for _, steps in panel.levels for _, rate in steps]
    if panel.title != _GOODPUT or not rates:
        return False
    return any(bool((values > max(rates)).any()) for _, _, values in panel.curves)


def fairness_figure(
    results: Results, group: str | None = None, *, size: Size | None = None
) -> Figure:
    """Draw Jain's fairness index of the flows over time, a line for each case, of one run each.

    Raises:
        RedtailError: there is no such group.
        StoreError: no series of flows was recorded.
    """
    curves = []
    why: StoreError | None = None
    for number, case in enumerate(results.cases):
        if not case.runs:  # all of them failed
            continue
        try:
            table = results.fairness_over_time(group=group, case=number, every=1.0)
        except StoreError as error:
            why = error
            continue
        curves.append((case.title, array(table["time_s"]), array(table["fairness"])))
    if not curves:
        raise why or StoreError("there is no run to draw")
    groups = style.split(curves)
    figure, cells = style.cells([0.0], groups, size, height=2.0)
    run = run_of(results, 0, 0, None)
    for axes, _, part in cells:
        for number, (label, time, index) in part:
            look = style.look(number)
            axes.plot(
                time,
                index,
                color=look["color"],
                linestyle=look["linestyle"],
                label=style.mark(label),
                marker=look["marker"],
                markevery=max(1, len(time) // 8),
                markersize=4,
            )
        axes.set_ylim(0.0, 1.03)
        axes.set_xlim(0.0, run.duration)
        axes.set_xlabel("Time (s)")
        if run.warmup > 0:
            axes.axvspan(0.0, run.warmup, color="#000000", alpha=0.07, linewidth=0)
        if style.is_first(axes):
            axes.set_ylabel("Jain's fairness index")
    style.legends(figure, [axes for axes, _, _ in cells], len(groups))
    of = f"of {escape.name(group)}" if group else "of all TCP flows"
    style.caption(
        figure,
        f"goodput {of} in each second, one run of each case",
        "1: all flows get the same",
        "shaded: warm-up" if run.warmup > 0 else "",
    )
    return figure


def run_of(results: Results, case: int, replication: int, link: str | None) -> Run:
    """Return what a run's scenario says of its times.

    Raises:
        RedtailError: there is no such case, replication or queue.
        StoreError: its scenario is not there, or tells no duration.
    """
    if not 0 <= case < len(results.cases):
        raise RedtailError(f"case = {case}: there are {len(results.cases)}, numbered from 0")
    found = results.cases[case].runs.get(replication)
    if found is None:
        raise RedtailError(f"replication = {replication}: there is no such run")
    path = found.folder / "scenario.json"
    if not path.is_file():
        raise StoreError(
            f"no series was recorded in replication {replication}; ask for it with [series] and an "
            "interval in the experiment file"
        )
    scenario = json.loads(plain_bytes(path))
    if "duration" not in scenario:
        raise StoreError(f"{path}: is no scenario: it has no duration")
    known = list(results.links)
    if link is not None and link not in known:
        raise RedtailError(f"{link!r} is not a queue; the queues are {', '.join(known)}")
    return Run(
        scenario,
        seconds(scenario["duration"]),
        seconds(scenario.get("warmup", "0 s")),
        link or (known[0] if known else ""),
    )


def _goodput(table: pa.Table, runs: Sequence[Run]) -> Panel:
    """Return the goodput of each group, with the rates of the links that are drawn."""
    panel = Panel(_GOODPUT, "bit/s", steps=True)
    groups = table["group"].cast("string").to_pylist()
    time, rate = array(table["time_s"]), array(table["goodput_bps"])
    for group in dict.fromkeys(groups):
        here = _where(groups, group)
        panel.curves.append((group, time[here], rate[here]))
    for run in runs:
        if steps := run.rates():
            panel.levels.append((f"rate of {run.link}", steps))
    return panel


def _queue(table: pa.Table, run: Run) -> list[Panel]:
    names = table["link"].cast("string").to_pylist()
    here = _where(names, run.link)
    columns = {name: array(table[name])[here] for name in table.column_names if name != "link"}
    if not here.any():
        return []
    time = columns["time_s"]
    queue = run.spec.get("queue", {})
    length = Panel(f"Queue at {run.link}", "packets")
    length.curves.append(("length", time, columns["packets"]))
    for key, label in (("limit", "limit"), ("min_th", "min_th"), ("max_th", "max_th")):
        value, unit = quantity(queue.get(key))
        highest = max(columns["packets"].max(), 1.0)
        # A limit far above everything would hide the rest.
        if value is not None and unit in ("packet", "packets") and value <= 4 * highest:
            length.levels.append((label, [(0.0, value)]))
    panels = [length]
    if "delay_s" in columns:
        delay = Panel(f"Queueing delay at {run.link}", "s")
        delay.curves.append(("mean", time, columns["delay_s"]))
        target, unit = quantity(queue.get("target"))
        if target is not None and unit in TIMES:
            delay.levels.append(("target", [(0.0, seconds(queue["target"]))]))
        interval = time[1] - time[0] if len(time) > 1 else 1.0
        happened = [name for name in ("drops", "marks") if columns[name].any()]
        title = " and ".join(happened).capitalize()
        lost = Panel(f"{title} at {run.link}", "per s", steps=True)
        for name in happened:
            lost.curves.append((name, time, columns[name] / interval))
        panels += [delay, lost]
    return panels


def _flows(table: pa.Table, wanted: Sequence[int] | None) -> list[Panel]:
    import numpy as np

    flow = array(table["flow"])
    known = np.unique(flow).tolist()
    chosen = known[:_FLOWS] if wanted is None else list(wanted)
    for number in chosen:
        if number not in known:
            raise RedtailError(
                f"flows: the series has no flow {number}; it has {known[0]} to {known[-1]}"
            )
    names = table["group"].cast("string").to_pylist()
    texts = ("group", "state")
    columns = {name: array(table[name]) for name in table.column_names if name not in texts}
    panels = {
        "cwnd_bytes": Panel("Congestion window", "bytes"),
        "ssthresh_bytes": Panel("Slow start threshold", "bytes"),
        "srtt_s": Panel("Smoothed round-trip time", "s"),
        "pacing_rate_bps": Panel("Pacing rate", "bit/s"),
    }
    for number in chosen:
        here = flow == number
        label = f"{names[int(here.argmax())]}, flow {number}"
        for name, panel in panels.items():
            values = columns[name][here] if name in columns else np.empty(0)
            values = np.where(np.isfinite(values), values, math.nan)
            if len(values) and not np.isnan(values).all():
                panel.curves.append((label, columns["time_s"][here], values))
    for panel in panels.values():
        if len(panel.curves) == 1:
            panel.title += f" of {panel.curves[0][0]}"
    return list(panels.values())


def _where(names: Sequence[str], wanted: str) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.array([name == wanted for name in names], bool)


_UNITS: dict[str, tuple[tuple[float, str, float], ...]] = {
    "bit/s": ((1e9, "Gbit/s", 1e-9), (1e6, "Mbit/s", 1e-6), (0.0, "kbit/s", 1e-3)),
    "s": ((1.0, "s", 1.0), (1e-3, "ms", 1e3), (0.0, "µs", 1e6)),
    "bytes": ((1e6, "MB", 1e-6), (0.0, "kB", 1e-3)),
}
"""By the unit of stored values: the least value for a unit, the unit, and the factor."""


def _shown(unit: str, top: float) -> tuple[str, float]:
    """Return the unit of an axis and what values are multiplied by.

    >>> _shown("s", 0.12), _shown("packets", 50.0)
    (('ms', 1000.0), ('packets', 1.0))
    """
    for least, name, scale in _UNITS.get(unit, ()):
        if top >= least:
            return name, scale
    return unit, 1.0


def _draw(axes: Axes, panel: Panel, run: Run, happenings: Sequence[Happening]) -> None:
    import numpy as np

    top = max(float(np.nanmax(values)) for _, _, values in panel.curves)
    measured = _top(panel, run.warmup)
    unit, scale = _shown(panel.unit, measured)
    for number, (label, time, values) in enumerate(panel.curves):
        look = style.look(number)
        axes.plot(
            time,
            values * scale,
            color=look["color"],
            linestyle=look["linestyle"] if len(panel.curves) > 1 else "-",
            linewidth=0.9,
            drawstyle="steps-pre" if panel.steps else "default",
            label=style.mark(label),
            # Thousands of line segments are drawn as an image also in vector files.
            rasterized=len(time) > 1000,
        )
    for number, (label, levels) in enumerate(panel.levels):
        times = [at for at, _ in levels] + [run.duration]
        values = [value * scale for _, value in levels]
        axes.plot(
            times,
            [*values, values[-1]],
            drawstyle="steps-post",
            color=_GREY,
            linewidth=0.8,
            linestyle=[(0, (4, 2)), (0, (1, 1.5)), (0, (6, 1.5, 1, 1.5))][number % 3],
            label=style.mark(label),
        )
    if run.warmup > 0:
        axes.axvspan(0.0, run.warmup, color="#000000", alpha=0.07, linewidth=0)
    for each in happenings:
        dash = "-" if each.text == "rate step" else (0, (2, 2))
        axes.axvline(each.at, color=_GREY, linewidth=0.7, linestyle=dash)
    axes.set_title(f"{escape.plot(panel.title)} ({unit})", loc="left")
    axes.set_xlim(0.0, run.duration)
    axes.set_ylim(bottom=0.0)
    if top > _OVERSHOOT * measured > 0:
        axes.set_ylim(top=1.3 * measured * scale)
    if len(panel.curves) + len(panel.levels) > 1:
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(1.0, 1.05),
            frameon=False,
            handlelength=2.2,
            borderaxespad=0.3,
        )


def _top(panel: Panel, warmup: float) -> float:
    """Return the largest value after the warm-up; of all if there is none."""
    import numpy as np

    after = [
        float(np.nanmax(values[time >= warmup]))
        for _, time, values in panel.curves
        if not np.isnan(values[time >= warmup]).all()
    ]
    return max(after, default=max(float(np.nanmax(values)) for _, _, values in panel.curves))


def _in_words(happenings: Sequence[Happening]) -> list[str]:
    kinds = dict.fromkeys(each.text for each in happenings)
    marks = {"rate step": "vertical line: rate step", "phase": "dotted vertical line: phase begins"}
    return [marks[kind] for kind in kinds]
