"""Draws docs/figures/replay.gif: `python docs/_site/moving_picture.py` writes it anew.

It needs chromium, and Python's package `playwright`.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

import redtail
from redtail.running import replaying

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "figures" / "replay.gif"

FRAMES, FRAME_MS = 40, 100
STEP_S = 0.002  # of the run, from one frame to the next
WIDTH = 600
COLOURS = 20


def example(case: int = 1) -> str:
    """Return the picture of a queue of examples/quickstart.toml, by default of RED."""
    with tempfile.TemporaryDirectory() as out:
        results = redtail.run(ROOT / "examples" / "quickstart.toml", replications=1, out=out)
        return replaying.page(results.cases[case].runs[0].folder, replaying.Wanted(), results.name)


def main() -> None:
    """Play the picture in a browser, and keep what the queue shows."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("there is no chromium")
    frames = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "replay.html"
        page.write_text(example(), encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        view = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        view.goto(page.as_uri())
        view.wait_for_selector('[data-name="play"]')
        seek = """t => {
          const slider = document.querySelector('[data-name="time"]');
          slider.step = "any";
          slider.value = t;
          slider.dispatchEvent(new Event("input"));
        }"""
        start = float(view.locator('[data-name="time"]').input_value())
        for frame in range(FRAMES):
            view.evaluate(seek, start + frame * STEP_S)
            drawn = view.locator('[data-canvas="stage"]').screenshot()
            with Image.open(io.BytesIO(drawn)) as image:
                frames.append(image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE))
        browser.close()
    first, *others = frames
    first.save(FILE, save_all=True, append_images=others, duration=FRAME_MS, loop=0)
    print(f"{FILE}: {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
