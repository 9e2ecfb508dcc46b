"""Draws the figure of each queue's page: what a load step does to it.

    .venv/bin/python docs/queues/load_step.py [KIND ...]

The experiment is `load-step.toml`, which has all queues. The upper axis shows what waits, the lower
one the law's probability; where that says little its average or delay; and where there is no law
the data in flight of both groups.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redtail
from redtail.display import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FIGURES = Path(__file__).parent.parent / "figures"

FILE = Path(__file__).with_name("load-step.toml")
CASES = {case.labels["bottleneck.queue"]: case for case in redtail.check(FILE).cases}

# Where the average is what the length is held by, in packets.
_AVERAGES_LENGTH = (
    "red",
    "adaptive-red",
    "self-configuring-red",
    "dynamic-threshold-red",
    "red-tail",
    "wred",
    "choke",
)
# What else the average is: its name on the axis.
_AVERAGE = {
    "gsp": "Interval (s)",
    "codel": "Delay (s)",
    "fq-codel": "Delay (s)",
    "cobalt": "Delay (s)",
    "cake": "Delay (s)",
}
# What a "probability" is that is none.
_PROBABILITY = {"avq": "Virtual capacity"}

STEPS = (50.0, 150.0)


def run(kind: str, folder: Path, duration: str = "200 s") -> redtail.Results:
    """Run the case of a queue."""
    own: dict[str, Any] = {key: [value] for key, value in CASES[kind].factors.items()}
    with warnings.catch_warnings():
        # The step itself is within the measurement; nothing here is averaged.
        warnings.filterwarnings("ignore", ".*first round trips", redtail.RedtailWarning)
        return redtail.run(FILE, set={**own, "duration": duration}, jobs=1, out=folder)


def figure(kind: str, results: redtail.Results) -> Figure:
    """Draw what waits, and the law behind it."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    queue: Any = results.series("queues").to_pandas()
    queue = queue[queue["link"] == "bottleneck"]
    with mpl.rc_context(style.RC):
        drawn = Figure(figsize=(6.4, 3.6), layout="constrained")
        upper, lower = drawn.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        time = queue["time_s"]
        upper.plot(time, queue["packets"], color=style.COLOURS[6], linewidth=0.8, label="length")
        if kind in _AVERAGES_LENGTH:
            upper.plot(time, queue["average"], color="black", linewidth=1.0, label="average")
            upper.legend(frameon=False, ncols=2, loc="upper left", borderpad=0)
        upper.set_ylabel("Queue (packets)")
        _law(kind, lower, queue, results)
        lower.set_xlabel("Time (s)")
        lower.set_xlim(0, 200)
        for axes in (upper, lower):
            axes.set_ylim(bottom=0)
            for at in STEPS:
                axes.axvline(at, color="0.5", linewidth=0.8, linestyle="--")
    return drawn


def _law(kind: str, axes: Any, queue: pd.DataFrame, results: redtail.Results) -> None:
    time = queue["time_s"]
    column, name = "probability", _PROBABILITY.get(kind, "Probability")
    if kind in _AVERAGE:
        column, name = "average", _AVERAGE[kind]
    if queue[column].notna().any():
        axes.plot(time, queue[column], color=style.COLOURS[1], linewidth=0.8)
        # The bursts of all slow starts would hide the rest.
        top = 1.5 * queue[column].quantile(0.98)
        cut = queue[column].max() > 1.5 * top > 0
        if cut:
            axes.set_ylim(top=top)
        axes.set_ylabel(f"{name}, cut" if cut else name)
    else:
        flows: Any = results.series("flows").to_pandas()
        flows = flows.assign(packets=flows["in_flight_bytes"] / 1460)
        for number, (name, of) in enumerate(flows.groupby("group", sort=False, observed=True)):
            sums = of.groupby("time_s")["packets"].sum()
            colour = style.COLOURS[number + 1]
            axes.plot(sums.index, sums, color=colour, linewidth=0.8, label=str(name))
        axes.set_ylabel("In flight (packets)")
        axes.legend(frameon=False, ncols=2, loc="upper left", borderpad=0)


def png(drawn: Figure) -> bytes:
    """Return a figure as a small PNG file: it is kept in the repository."""
    from PIL import Image

    whole, small = BytesIO(), BytesIO()
    drawn.savefig(whole, format="png", dpi=110)
    with Image.open(whole) as image:
        image.convert("RGB").quantize(32).save(small, format="png", optimize=True)
    return small.getvalue()


def main(kinds: list[str]) -> None:
    """Draw the figures of these kinds, or of all."""
    FIGURES.mkdir(exist_ok=True)
    for kind in kinds or CASES:
        with tempfile.TemporaryDirectory() as folder:
            path = FIGURES / f"{kind}-load-step.png"
            path.write_bytes(png(figure(kind, run(kind, Path(folder)))))
            print(f"{path.name}: {path.stat().st_size // 1024} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
