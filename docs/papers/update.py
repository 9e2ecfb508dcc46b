"""Puts what a paper's reproduction measures into its page, and its figures beside it.

    .venv/bin/python docs/papers/update.py NAME [--scale quick|paper] [--now SCALE] [--out DIR]
    .venv/bin/python docs/papers/update.py NAME --kernel BACKEND [--scale SCALE]
    .venv/bin/python docs/papers/update.py NAME --expect

Runs are kept in DIR (runs/ by default) and not made again. In NAME.md, what stands between a mark
and the next `<!-- end -->` is replaced:

    <!-- verdicts -->         counts, the table of verdicts, scale, version and date
    <!-- table: NAME -->      one of the paper's tables
    <!-- then and now -->     headline findings under each setting
    <!-- kernel -->           all findings, simulated and by a kernel
    <!-- figures -->          all figures

Verdicts, tables and figures are of --scale, by default the paper's own; then and now, which is as
many runs again for each setting, is of --now, by default quick. A mark may end with the name of a
scale, as in `<!-- verdicts @full -->`: only such marks are filled when --scale names it, and no
others. With --expect the verdicts at quick scale become the expected ones, and the page stays as it
is.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from pathlib import Path

from PIL import Image

from redtail import papers
from redtail.papers import Reproduction, report
from redtail.papers.reproduction import versions

PAGES = Path(__file__).parent
_MARK = re.compile(
    r"<!-- (verdicts|table: [^>@]+|then and now|kernel|figures)(?: @(\w+))? -->\n.*?<!-- end -->",
    re.S,
)


def main() -> None:
    """Run a paper and fill its page, or write what is expected of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("name", choices=papers.names())
    parser.add_argument("--scale")
    parser.add_argument("--now", default="quick")
    parser.add_argument("--out", default="runs")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--kernel", metavar="BACKEND")
    parser.add_argument("--expect", action="store_true")
    given = parser.parse_args()
    paper = papers.load(given.name)

    def made(scale: str, then_and_now: bool, backend: str | None = None) -> Reproduction:
        return papers.reproduce(
            given.name,
            scale=scale,
            then_and_now=then_and_now,
            backend=backend,
            out=given.out,
            jobs=given.jobs,
            progress=lambda at: print(f"\r{at.done}/{at.total} runs", end="", file=sys.stderr),
        )

    if given.expect:
        done = made("quick", False)
        done.expect()
        print(f"\n{report.counts(done)}")
        return
    page = PAGES / f"{given.name}.md"
    if given.kernel:
        done = made(given.scale or "quick", False, given.kernel)

        def replaced(found: re.Match[str]) -> str:
            return section(done, done, found[1]) if found[1] == "kernel" else found[0]

        page.write_text(_MARK.sub(replaced, page.read_text()))
        return
    scale = given.scale or "paper"
    text = page.read_text()
    named = any(found[2] == scale for found in _MARK.finditer(text))
    together = bool(paper.settings) and given.now == scale and not named
    done = made(scale, together)
    now = made(given.now, True) if paper.settings and not (together or named) else done
    print(f"\n{report.counts(done)}")
    done.write()

    def renewed(found: re.Match[str]) -> str:
        other = found[2] != (scale if named else None)
        return found[0] if other or found[1] == "kernel" else section(done, now, found[1], found[2])

    page.write_text(_MARK.sub(renewed, text))
    if named:
        return
    for figure in paper.figures:
        drawn = done.folder / "figures" / f"{figure.name}.png"
        if drawn.is_file():
            with Image.open(drawn) as image:
                few = image.convert("RGB").quantize(
                    48, Image.Quantize.FASTOCTREE
                )  # they are kept in the repository
            few.save(PAGES / "figures" / f"{given.name}-{figure.name}.png", optimize=True)


def section(done: Reproduction, now: Reproduction, mark: str, scale: str | None = None) -> str:
    """Return what a mark stands for, marks included. `scale` is the one that it names."""
    when = (
        f"on {datetime.datetime.now(datetime.UTC).date()} with redtail "
        f"{versions()['redtail_version']}"
    )
    kind, _, name = mark.partition(": ")
    match kind:
        case "verdicts":
            lines = [
                f"Measured at {done.scale} scale ({done.paper.scales[done.scale]}) {when}: "
                f"{report.counts(done)}.",
                "",
                *report.verdict_lines(done),
            ]
        case "table":
            (table,) = (each for each in done.paper.tables if each.name == name)
            lines = report.table_lines(done, table)
        case "kernel":
            lines = [f"Measured {when}.", "", *report.kernel_lines(done)]
        case "then and now":
            at = f"{now.scale} scale ({now.paper.scales[now.scale]})"
            lines = [f"Measured at {at} {when}.", "", *report.now_lines(now)]
        case _:
            lines = report.figure_lines(done, f"figures/{done.paper.name}-")[:-1]
    named = f" @{scale}" if scale else ""
    return "\n".join([f"<!-- {mark}{named} -->", "", *lines, "", "<!-- end -->"])


if __name__ == "__main__":
    main()
