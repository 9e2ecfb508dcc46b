"""Draws the figures of docs/how-to/figures.md: `python docs/how-to/gallery.py` writes them anew.

The results are kept in a folder for temporary files, so the second time takes seconds.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

import redtail
from redtail.analysis.results import Results
from redtail.display import style
from redtail.papers.reproduction import reproduce

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


def main() -> None:
    """Run the experiments and write the figures."""
    out = Path(tempfile.gettempdir()) / "redtail-gallery"
    found = (
        redtail.run(source, out=out)
        for source in (EXAMPLE, *map(redtail.Toml, (QUEUES, ACCESS, STEPS, GRID)))
    )
    paper = reproduce("rfc2884", out=out)
    (published,) = (each for each in paper.paper.figures if each.name == "bulk-congestion")
    drawn = {**figures(*found), "published": paper.figure(published)}
    for path in style.save(drawn.items(), FOLDER):
        if path.suffix != ".png":
            path.unlink()
            continue
        with Image.open(path) as image:  # in few colours: they are kept in the repository
            few = image.convert("RGB").quantize(48, Image.Quantize.FASTOCTREE)
        few.save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
