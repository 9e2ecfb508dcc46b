"""Draws the figures of docs/how-to/figures.md: `python docs/how-to/gallery.py` writes them anew.

The results are kept in a folder for temporary files, so the second time takes seconds.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

import redtail
from redtail import studies
from redtail.analysis.results import Results
from redtail.display import style

FOLDER = Path(__file__).parent.parent / "figures" / "gallery"

QUEUES = """
name = "Twelve queues"
duration = "20 s"
warmup = "5 s"
replications = 5

[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "100 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
tcp = "linux"
start = "uniform 0..1 s"

[factors]
"traffic.ftp.flows" = [2, 8, 32]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "100 packets", label = "tail drop" },
  { kind = "head-drop", limit = "100 packets", label = "head drop" },
  { kind = "red", limit = "99 packets", min_th = "15 packets", max_th = "65 packets", label = "RED" },
  { kind = "adaptive-red", limit = "100 packets", label = "Adaptive RED" },
  { kind = "blue", limit = "100 packets", label = "BLUE" },
  { kind = "pie", limit = "300 packets", label = "PIE" },
  { kind = "pi2", limit = "300 packets", label = "PI2" },
  { kind = "codel", label = "CoDel" },
  { kind = "fq-codel", label = "FQ-CoDel" },
  { kind = "sfq", label = "SFQ" },
  { kind = "cake", label = "CAKE" },
  { kind = "cobalt", label = "COBALT" },
]
"""  # noqa: E501

ACCESS = """
name = "Access line"
duration = "40 s"
warmup = "10 s"
replications = 10

[bottleneck]
rate = "50 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "300 packets" }

[bottleneck.return]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "300 packets" }

[[traffic]]
name = "call"
kind = "voip"
flows = 1
direction = "reverse"

[[traffic]]
name = "upload"
kind = "bulk"
flows = 2
tcp = "linux"
direction = "reverse"

[[traffic]]
name = "web"
kind = "web"
model = "http2"
users = 8
tcp = "linux"

[factors]
"bottleneck.return.queue" = [
  { kind = "tail-drop", limit = "300 packets", label = "tail drop" },
  { kind = "pie", limit = "300 packets", label = "PIE" },
  { kind = "fq-codel", label = "FQ-CoDel" },
  { kind = "cake", label = "CAKE" },
]
"""

STEPS = """
name = "Rate steps"
duration = "40 s"
warmup = "5 s"
replications = 1
phases = "auto"

[bottleneck]
rate = "20 Mbit/s"
delay = "15 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
rate_changes = [{ at = "15 s", rate = "5 Mbit/s" }, { at = "28 s", rate = "20 Mbit/s" }]

[[traffic]]
name = "cubic"
kind = "bulk"
flows = 2
tcp = "cubic"
start = "uniform 0..1 s"

[[traffic]]
name = "bbr"
kind = "bulk"
flows = 1
tcp = "bbr"

[series]
interval = "250 ms"
windows = true

[factors]
"bottleneck.queue" = [
  { kind = "pie", limit = "1000 packets", label = "PIE" },
  { kind = "tail-drop", limit = "100 packets", label = "tail drop" },
  { kind = "fq-codel", label = "FQ-CoDel" },
]
"""

GRID = """
name = "Rates and delays"
duration = "30 s"
warmup = "5 s"
replications = 5

[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
tcp = "linux"

[factors]
"bottleneck.rate" = ["2 Mbit/s", "10 Mbit/s", "50 Mbit/s"]
"bottleneck.delay" = ["5 ms", "20 ms", "80 ms", "200 ms"]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "100 packets", label = "tail drop" },
  { kind = "codel", label = "CoDel" },
]
"""

# The README's picture.
MOVING = """
name = "Three queues"
duration = "20 s"
warmup = "5 s"
replications = 1

[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "100 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 16
tcp = "sack"
start = "uniform 0..2 s"

[series]
interval = "50 ms"

[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "100 packets", label = "tail drop" },
  { kind = "red", limit = "100 packets", min_th = "15 packets", max_th = "65 packets", label = "RED" },
  { kind = "codel", label = "CoDel" },
]
"""  # noqa: E501
FRAMES = 40
FRAME_MS = 150

EXAMPLE = Path(__file__).parents[2] / "examples" / "taildrop-vs-red.toml"


def figures(
    demo: Results, queues: Results, access: Results, steps: Results, grid: Results
) -> dict[str, Figure]:
    """Return the figures of the page by their names."""
    few = ["tail drop", "RED", "PIE", "FQ-CoDel"]
    return {
        "value": queues.figure("queue_delay_mean", queues=few),
        "rows": access.figure("call.one_way_delay_p99", log=True),
        "many": queues.figure("queue_delay_p95"),
        "differences": access.figure("web.response_time_p50", kind="difference"),
        "differences-load": queues.figure("goodput", kind="difference", queues=few),
        "heatmap": grid.figure("queue_delay_p95", kind="heatmap"),
        "plane": queues.figure(queues=few, kind="plane"),
        "plane-factors": grid.figure(kind="plane"),
        "quartiles": queues.figure("fairness", kind="quartiles", queues=few),
        "response-times": access.figure("web", kind="response_times"),
        "loss-events": demo.figure(kind="loss_events"),
        "cdf": queues.figure("ftp.flow_goodput", kind="cdf", queues=few),
        "tail": access.figure("call.one_way_delay", kind="tail"),
        "series": steps.figure(kind="series"),
        "fairness": steps.figure(kind="fairness"),
    }


def moving(results: Results) -> list[Image.Image]:
    """Return the pictures of a queue that grows with time, one line for each queue."""
    lines = []
    for number, case in enumerate(results.cases):
        series = results.series("queues", case=number)
        lines.append((case.title, series["time_s"].to_numpy(), series["packets"].to_numpy()))
    pictures = []
    end_s = max(time_s[-1] for _, time_s, _ in lines)
    for frame in range(1, FRAMES + 1):
        figure = Figure(figsize=(7.2, 2.7), dpi=100, layout="constrained")
        axes = figure.add_subplot(xlim=(0, end_s), ylim=(0, 125), xlabel="Time (s)")
        axes.set_ylabel("Queue (packets)")
        for (title, time_s, packets), colour in zip(lines, style.COLOURS, strict=False):
            shown = time_s <= end_s * frame / FRAMES
            axes.plot(time_s[shown], packets[shown], color=colour, linewidth=1.2, label=title)
        axes.legend(loc="upper right", ncols=3, frameon=False)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png")
        with Image.open(drawn) as image:
            pictures.append(image.convert("RGB").quantize(16))
    return pictures


def main() -> None:
    """Run the experiments and write the figures."""
    out = Path(tempfile.gettempdir()) / "redtail-gallery"
    first, *others = moving(redtail.run(redtail.Toml(MOVING), out=out))
    # The last picture stays for some seconds before the first one comes again.
    times = [FRAME_MS] * len(others) + [4000]
    first.save(
        FOLDER.parent / "queues.gif", save_all=True, append_images=others, duration=times, loop=0
    )
    found = (
        redtail.run(source, out=out)
        for source in (EXAMPLE, *map(redtail.Toml, (QUEUES, ACCESS, STEPS, GRID)))
    )
    study = studies.run("rfc2884", out=out)
    (published,) = (each for each in study.study.figures if each.name == "bulk-congestion")
    drawn = {**figures(*found), "published": study.figure(published)}
    for path in style.save(drawn.items(), FOLDER):
        if path.suffix != ".png":
            path.unlink()
            continue
        with Image.open(path) as image:  # in few colours: they are kept in the repository
            few = image.convert("RGB").quantize(48, Image.Quantize.FASTOCTREE)
        few.save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
