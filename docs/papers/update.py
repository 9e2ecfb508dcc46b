"""Puts what a study measures into its page (`about`), and its figures beside it.

    .venv/bin/python docs/papers/update.py NAME [--scale quick|paper] [--now SCALE] [--out DIR]
    .venv/bin/python docs/papers/update.py NAME --kernel BACKEND [--scale SCALE]
    .venv/bin/python docs/papers/update.py NAME --now-only [--now SCALE]
    .venv/bin/python docs/papers/update.py NAME --expect

Runs are kept in DIR (runs/ by default) and not made again. In the page, what stands between a mark
and the next `<!-- end -->` is replaced:

    <!-- verdicts -->         counts, the table of verdicts, scale, version and date
    <!-- table: NAME -->      one of the study's tables
    <!-- then and now -->     headline findings under each setting
    <!-- kernel -->           all findings, simulated and by a kernel
    <!-- figures -->          all figures

Verdicts, tables and figures are of --scale, by default the last one without hours of work, "paper"
or "full"; then and now, which is as
many runs again for each setting, is of --now, by default quick. A mark may end with the name of a
scale, as in `<!-- verdicts @full -->`: only such marks are filled when --scale names it, and no
others. With --now-only nothing but then and now is run and filled. With --expect the verdicts at
quick scale become the expected ones, and the page stays as it is.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

from PIL import Image

from redtail import studies
from redtail.studies import StudyResults, pages, report
from redtail.studies.results import versions

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run a study and fill its page, or write what is expected of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("name", choices=studies.names())
    parser.add_argument("--scale")
    parser.add_argument("--now", default="quick")
    parser.add_argument("--now-only", action="store_true")
    parser.add_argument("--out", default="runs")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--kernel", metavar="BACKEND")
    parser.add_argument("--expect", action="store_true")
    given = parser.parse_args()
    study = studies.load(given.name)

    def made(scale: str, then_and_now: bool, backend: str | None = None) -> StudyResults:
        return studies.run(
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
    page = ROOT / study.about
    text = page.read_text()
    if given.kernel:
        done = made(given.scale or "quick", False, given.kernel)
        page.write_text(pages.filled(text, {"kernel": section(done, done, "kernel")}))
        return
    if given.now_only:
        done = made(given.now, True)
        mark = "then and now"
        page.write_text(pages.filled(text, {mark: section(done, done, mark)}))
        return
    scale = given.scale or ("paper" if "paper" in study.scales else "full")
    # A mark is a name, and maybe a scale.
    split = {mark: mark.partition(" @") for mark in pages.marks(text)}
    named = any(of == scale for _, _, of in split.values())
    together = bool(study.settings) and given.now == scale and not named
    done = made(scale, together)
    now = made(given.now, True) if study.settings and not (together or named) else done
    print(f"\n{report.counts(done)}")
    done.write()
    blocks = {
        mark: section(done, now, name)
        for mark, (name, _, of) in split.items()
        if of == (scale if named else "") and name != "kernel"
    }
    page.write_text(pages.filled(text, blocks))
    for figure in study.figures if not named else ():
        drawn = done.folder / "figures" / f"{figure.name}.png"
        if drawn.is_file():
            with Image.open(drawn) as image:
                few = image.convert("RGB").quantize(
                    48, Image.Quantize.FASTOCTREE
                )  # they are kept in the repository
            few.save(page.parent / "figures" / f"{given.name}-{figure.name}.png", optimize=True)


def section(done: StudyResults, now: StudyResults, mark: str) -> list[str]:
    """Return the lines that a mark stands for."""
    when = (
        f"on {datetime.datetime.now(datetime.UTC).date()} with redtail "
        f"{versions()['redtail_version']}"
    )
    kind, _, name = mark.partition(": ")
    match kind:
        case "verdicts":
            return [
                f"Measured at {done.scale} scale ({done.study.scales[done.scale]}) {when}: "
                f"{report.counts(done)}.",
                "",
                *report.verdict_lines(done),
            ]
        case "table":
            (table,) = (each for each in done.study.tables if each.name == name)
            return report.table_lines(done, table)
        case "kernel":
            return [f"Measured {when}.", "", *report.kernel_lines(done)]
        case "then and now":
            at = f"{now.scale} scale ({now.study.scales[now.scale]})"
            return [f"Measured at {at} {when}.", "", *report.now_lines(now)]
        case "figures":
            return report.figure_lines(done, f"figures/{done.study.name}-")[:-1]
        case _:
            raise SystemExit(f"{done.study.about}: <!-- {mark} -->: no such mark")


if __name__ == "__main__":
    main()
