"""Draws the figures of start.md: one of those that each template's run draws.

    .venv/bin/python docs/how-to/start.py [TEMPLATE ...]

The templates run as they are, at their own length and number of replications.
"""

from __future__ import annotations

import sys
import tempfile
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

import redtail
from redtail import templates

FIGURES = Path(__file__).parent.parent / "figures"

# What is drawn of each: a metric or what else a figure is about, and the kind of figure.
SHOWN: dict[str, tuple[str | None, str]] = {
    "access-line": ("calls.one_way_delay_p95", "value"),
    "cellular": (None, "plane"),
    "congestion-control": ("mine.goodput", "value"),
    "data-center": ("query", "response_times"),
    "rrul": ("return", "queue"),
    "slow-last-hop": ("stream.one_way_delay_p95", "value"),
    "small-office": ("calls.one_way_delay_p95", "value"),
}


def figure(name: str, results: redtail.Results) -> Figure:
    """Return the figure that the page shows of a template's results."""
    about, kind = SHOWN[name]
    return results.figure(about, kind=kind)


def png(drawn: Figure) -> bytes:
    """Return a figure as a small PNG file: it is kept in the repository.

    The octree keeps the colours of lines, which the default mixes with each other.
    """
    from PIL import Image

    whole, small = BytesIO(), BytesIO()
    drawn.savefig(whole, format="png", dpi=160)
    with Image.open(whole) as image:
        image.convert("RGB").quantize(48, Image.Quantize.FASTOCTREE).save(
            small, format="png", optimize=True
        )
    return small.getvalue()


def main(names: list[str]) -> None:
    """Draw the figures of these templates, or of all."""
    for name in names or templates.names():
        with tempfile.TemporaryDirectory() as folder:
            (file, *_) = templates.write(name, folder)
            results = redtail.run(file, out=Path(folder) / "runs")
            path = FIGURES / f"start-{name}.png"
            path.write_bytes(png(figure(name, results)))
            print(f"{path.name}: {path.stat().st_size // 1024} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
