"""Measures what `phase-effects.md` shows, and puts it there.

    .venv/bin/python docs/explanation/phase_effects.py [--out DIR] [PART ...]

Parts are `mixed` (two flows with round trips of 10 and 80 ms), `shares` (two flows, the example),
`third` (Riva's third flow), `kernel` (the scenarios of a Linux kernel) and `findings` (Riva's
findings); without a part all are measured, in some minutes.
In the page what stands between `<!-- measured: PART -->` and the next `<!-- end -->` is replaced,
and the figures of the page are drawn anew. Runs are kept in DIR (runs/ by default).
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import redtail
from redtail import studies
from redtail.display import style
from redtail.studies import pages

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FIGURES = HERE.parent / "figures"
PAGE = HERE / "phase-effects.md"
EXAMPLE = ROOT / "examples" / "phase-effects.toml"
RIVA = Path(studies.__file__).parent / "papers" / "riva2003"

#: Riva's packet of 1500 bytes takes 85.7 ms at 140 kbit/s: random delays of up to so much of it.
PACKET_MS = 1500 * 8 / 140
PARTS_OF_A_PACKET = (0.0, 0.1, 0.5, 1.0, 2.0)

#: What is looked at, and the TCP that the kernel's runs had.
THIRD = "third.completion_time_mean"
KERNELS_TCP = '{ preset = "linux", growth = "linux-reno", slow_start = "standard" }'
SEEDS_OF_SLOW = 60


def ms(value: float) -> str:
    """A time as the experiment file has it."""
    return f"{value:.4g} ms"


def at(text: str, jitter: str) -> str:
    """An experiment with this `host_jitter` in place of its own or the default."""
    return f'host_jitter = "{jitter}"\n' + re.sub(r"^host_jitter = .*\n", "", text, flags=re.M)


def run(source: Any, folder: Path, **arguments: Any) -> redtail.Results:
    """Run an experiment without its warnings: they are what the page is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", redtail.RedtailWarning)
        return redtail.run(source, out=folder, **arguments)


# --- Two round trips ---------------------------------------------------------------------------


#: The goodput of both flows in Mbit/s that Linux 6.1.0-56 (Debian's cloud kernel) had in this
#: scenario: the same text with 6 replications and `--backend linux`.
KERNELS_MIXED = ("13.8 ±0.7 : 5.3 ±0.7", "15.4 ±0.6 : 3.7 ±0.5", "3.78 ±0.22 : 15.10 ±0.28")


def mixed(folder: Path) -> list[str]:
    """The goodput of two flows with different round trips, by the hosts' random delays."""
    rows: dict[str, list[str]] = {}
    for case in run(PAGE.with_suffix("") / "mixed.toml", folder / "mixed").cases:
        both = (case.metric(f"{name}.goodput") for name in ("near", "far"))
        rows.setdefault(case.labels["host_jitter"], []).append(
            " : ".join(f"{it.mean / 1e6:.1f} ±{(it.ci95 or 0) / 1e6:.1f}" for it in both)
        )
    measured = [(f"`{jitter}`", *row) for jitter, row in rows.items()]
    heads = ("`host_jitter`", "CUBIC", "Reno", "BBR")
    return pages.table(heads, [*measured, ("the kernel", *KERNELS_MIXED)])


# --- Two flows --------------------------------------------------------------------------------


def share(case: Any) -> float:
    """The second flow's share of what both get, in percent, on the mean over replications."""
    a, b = (case.metric(f"{name}.goodput").mean for name in ("a", "b"))
    return float(100 * b / (a + b))


def shares(folder: Path) -> list[str]:
    """The example: the second flow's share against its round trip."""
    results = run(EXAMPLE, folder)
    by_jitter: dict[str, list[tuple[float, float]]] = {}
    for case in results.cases:
        longer = float(case.factors["traffic.b.return_delay"].removesuffix(" ms")) - 100
        by_jitter.setdefault(case.factors["host_jitter"], []).append((longer, share(case)))
    drawn, axes = canvas()
    for (jitter, points), colour in zip(by_jitter.items(), style.COLOURS, strict=False):
        axes.plot(*zip(*points, strict=True), marker="o", color=colour, label=named(jitter))
    axes.set_xlabel("What the second flow's round trip is longer by (ms; a packet takes 10 ms)")
    axes.set_ylabel("Its share of the goodput (%)")
    axes.set_ylim(0, 100)
    axes.legend(frameon=False)
    save(drawn, "phase-effects-shares")
    rows = []
    for jitter, points in by_jitter.items():
        values = [value for _, value in points]
        rows.append((f"`{jitter}`", f"{min(values):.0f} %", f"{max(values):.0f} %"))
    return pages.table(("`host_jitter`", "least share", "largest share"), rows)


# --- Riva's third flow ------------------------------------------------------------------------


def third(folder: Path) -> list[str]:
    """Riva's third flow behind tail drop, by its start and the hosts' random delays."""
    papers_tcp = (RIVA / "lockout.toml").read_text()
    kernels_tcp = papers_tcp.replace('{ preset = "linux-2000", quick_acks = 16 }', KERNELS_TCP)
    assert papers_tcp != kernels_tcp
    draw_all_starts(folder)
    return [
        *("With the paper's TCP:", "", *third_table(folder / "third", papers_tcp), ""),
        *(f"With a kernel's, `{KERNELS_TCP}`:", ""),
        *(*third_table(folder / "kernels", kernels_tcp), ""),
        *("In the scenario of `tests/reference/linux.json`, whose delays are 10 ms:", ""),
        *slow_table(),
    ]


def third_table(folder: Path, text: str) -> list[str]:
    """The third flow's time behind tail drop: mean, least and most, by start and delay."""
    rows, starts = [], []
    for part in PARTS_OF_A_PACKET:
        source = redtail.Toml(at(text, ms(part * PACKET_MS)), "lockout")
        row = []
        for case in run(source, folder / str(part)).cases:
            if case.labels["bottleneck.queue"] == "tail drop":
                row.append(spread_of(case.values(THIRD)))
                starts.append(case.labels["traffic.third.start"])
        rows.append((f"{part:g} packets", *row))
    return pages.table(("`host_jitter`", *dict.fromkeys(starts)), rows)


def slow_table() -> list[str]:
    """The short transfer of the kernel's scenarios D beside ours."""
    first, _ = tests()
    rows = []
    for part in PARTS_OF_A_PACKET:
        row = []
        for text in first.SLOW.values():
            seeds = first.run(with_jitter(text, part), SEEDS_OF_SLOW)
            row.append(spread_of([seed["short.completion_time_mean"] for seed in seeds]))
        rows.append((f"{part:g} packets", *row))
    kernels = []
    for name in first.SLOW:
        found = first.SCENARIOS[name]["metrics"]["elapsed_s"][2]
        kernels.append(f"{found['mean']:.1f} ± {found['ci95']:.1f} ({found['n']} runs)")
    rows.append(("the kernel", *kernels))
    return pages.table(("`host_jitter`", *(f"`{name}`" for name in first.SLOW)), rows)


def spread_of(values: Sequence[float]) -> str:
    """The mean of some times, with the least and the most."""
    return f"{statistics.fmean(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def draw_all_starts(folder: Path) -> None:
    """Draw the third flow's time at every quarter of a second, with and without random delays."""
    drawn, axes = canvas()
    for part, colour, aside in ((0.0, style.COLOURS[0], -0.03), (1.0, style.COLOURS[1], 0.03)):
        jitter = ms(part * PACKET_MS)
        results = run(
            RIVA / "lockout-all-starts.toml", folder / f"all-{part}", set={"host_jitter": jitter}
        )
        points = sorted(
            (float(case.factors["traffic.third.start"].removesuffix(" s")), case.values(THIRD))
            for case in results.cases
            if case.labels["bottleneck.queue"] == "tail drop"
        )
        at = [start + aside for start, _ in points]
        means = [statistics.fmean(values) for _, values in points]
        reach = [
            [mean - min(values) for mean, (_, values) in zip(means, points, strict=True)],
            [max(values) - mean for mean, (_, values) in zip(means, points, strict=True)],
        ]
        label = named(jitter if part else "0 s")
        axes.errorbar(
            at, means, reach, color=colour, marker="o", markersize=3, linewidth=0.8, label=label
        )
    axes.set_xlabel("Start of the third flow (s)")
    axes.set_ylabel("Its time (s): mean, least and most of 20")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    save(drawn, "phase-effects-third")


# --- A kernel's scenarios -----------------------------------------------------------------------


def tests() -> tuple[ModuleType, ModuleType]:
    """The tests that hold redtail against a kernel's figures."""
    import importlib

    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reference")]
    first, more = (
        importlib.import_module(name) for name in ("test_linux_reference", "test_linux_more")
    )
    return first, more


def with_jitter(text: str, delay: float | str) -> str:
    """A scenario whose hosts delay packets by up to a time, or by so many packets' times."""
    if isinstance(delay, str):
        return at(text, delay)
    found = re.search(r'\[bottleneck\]\nrate = "(\d+) (k|M)bit/s"', text)
    assert found is not None
    rate = int(found[1]) * {"k": 1e3, "M": 1e6}[found[2]]
    return at(text, f"{delay * 1500 * 8 / rate * 1e6:.0f} us")


def judged(part: float | str) -> dict[str, dict[str, tuple[bool, float, float]]]:
    """By scenario and metric: whether it is within its tolerance, ours, the kernel's."""
    first, more = tests()
    found: dict[str, dict[str, tuple[bool, float, float]]] = {}

    def plain(seeds: Sequence[dict[str, float]], metrics: dict[str, Any]) -> dict[str, Any]:
        out = {}
        for metric, (relative, absolute) in first.TOLERANCES.items():
            if metric in metrics:
                ours = statistics.fmean(seed.get(metric, 0.0) for seed in seeds)
                theirs = metrics[metric]["mean"]
                inside = abs(ours - theirs) <= max(relative * theirs, absolute)
                out[metric] = (inside, ours, theirs)
        return out

    def spread(ours: Sequence[float], reference: dict[str, float]) -> tuple[bool, float, float]:
        inside = first.inside_spread(ours, reference, first.ELAPSED)
        return inside, statistics.fmean(ours), reference["mean"]

    def seeds_of(text: str, count: int = first.SEEDS) -> tuple[dict[str, float], ...]:
        seeds: tuple[dict[str, float], ...] = first.run(with_jitter(text, part), count)
        return seeds

    for name, reference in first.SCENARIOS.items():
        metrics = reference["metrics"]
        if name in first.SLOW:
            seeds = seeds_of(first.SLOW[name], first.MANY_SEEDS)
            found[name] = plain([first.to_the_end(seed) for seed in seeds], metrics)
            both = [sorted(seed[f"{x}.completion_time_mean"] for x in "ab") for seed in seeds]
            short = [seed["short.completion_time_mean"] for seed in seeds]
            for number, (title, times) in enumerate(
                {
                    "slower": [it[1] for it in both],
                    "faster": [it[0] for it in both],
                    "short": short,
                }.items()
            ):
                found[name][title] = spread(times, metrics["elapsed_s"][number])
        elif name in first.SHARED:
            ecn = first.SHARED[name]
            found[name] = plain(seeds_of(first.shared(ecn, 160)), metrics)
            beyond = seeds_of(first.shared(ecn, 320))
            times = [seed["one.completion_time_mean"] for seed in beyond]
            found[name]["elapsed"] = spread(times, metrics["elapsed_s"][0])
        else:
            found[name] = plain(seeds_of((first.BULK | first.CUBIC)[name]), metrics)
    texts = dict(more.EXPERIMENTS)
    try:
        for name in more.SCENARIOS:
            more.EXPERIMENTS[name] = with_jitter(texts[name], part)
            more.run.cache_clear()
            seeds = more.run(name)
            metrics = more.SCENARIOS[name]["metrics"]
            found[name] = plain(seeds, metrics)
            for metric in more.spread_metrics(name):
                found[name][metric] = spread([seed[metric] for seed in seeds], metrics[metric])
    finally:
        more.EXPERIMENTS |= texts
        more.run.cache_clear()
    return found


def kernel(folder: Path) -> list[str]:
    """How many of the kernel's figures are met with random delays and without."""
    _, more = tests()
    parts: tuple[float | str, ...] = ("0 s", "50 us", "200 us", "500 us", "1 ms", 1.0)
    all_found = {part: judged(part) for part in parts}
    rows: list[Sequence[object]] = []
    for part, found in all_found.items():
        each = [(name, met) for name, metrics in found.items() for met, _, _ in metrics.values()]
        met = sum(inside for _, inside in each)
        outside = sum(not inside for name, inside in each if name in more.OUTSIDE)
        scenarios = sum(all(it[0] for it in metrics.values()) for metrics in found.values())
        rows.append(
            (
                called(part),
                f"{met} of {len(each)}",
                f"{scenarios} of {len(found)}",
                f"{outside} in {len(more.OUTSIDE)}",
            )
        )
    lines = pages.table(
        ("`host_jitter`", "figures", "scenarios", "outside, in scenarios known for it"), rows
    )
    lines += ["", "Every figure that is outside at one of these values:", ""]
    figures = []
    for name, metrics in all_found["0 s"].items():
        for metric, (_, _, theirs) in metrics.items():
            all_of = [all_found[part][name][metric] for part in parts]
            if not all(inside for inside, _, _ in all_of):
                shown = [f"**{ours:.4g}**" if met else f"{ours:.4g}" for met, ours, _ in all_of]
                figures.append((f"`{name}`", f"`{metric}`", f"{theirs:.4g}", *shown))
    head = ("scenario", "figure", "kernel", *map(called, parts))
    return lines + pages.table(head, figures)


def called(delay: float | str) -> str:
    """How the page names a maximum of random delays."""
    return (
        f"`{delay}`"
        if isinstance(delay, str)
        else "1 packet"
        if delay == 1
        else f"{delay:g} packets"
    )


# --- Riva's findings ----------------------------------------------------------------------------


def findings(folder: Path) -> list[str]:
    """The verdicts on Riva's findings at quick scale, by the hosts' random delays."""
    study = studies.load("riva2003")
    verdicts: dict[str, list[str]] = {}
    parts = (0.0, 0.1, 0.5, 1.0)
    for part in parts:
        setting = {"host_jitter": ms(part * PACKET_MS)}
        comparisons = tuple(
            replace(
                comparison,
                scales=tuple(
                    replace(scale, set={**scale.set, **setting}) for scale in comparison.scales
                ),
            )
            for comparison in study.comparisons
        )
        done = studies.run(replace(study, comparisons=comparisons), out=folder / f"riva-{part}")
        for verdict in done.verdicts:
            verdicts.setdefault(verdict.finding.id, []).append(str(verdict.judgement))
    head = ("finding", *(f"{part:g} packets" for part in parts))
    return pages.table(head, ((name, *texts) for name, texts in verdicts.items()))


# --- The page -----------------------------------------------------------------------------------


def named(jitter: str) -> str:
    """A line's name in a figure."""
    return "hosts send at once" if jitter == "0 s" else f"host_jitter = {jitter}"


def canvas() -> tuple[Any, Any]:
    """A figure with one pair of axes, in the style of the others."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(style.RC):
        drawn = Figure(figsize=(6.4, 3.4), layout="constrained")
        return drawn, drawn.subplots()


def save(drawn: Any, name: str) -> None:
    """Keep a figure, with few colours."""
    from io import BytesIO

    from PIL import Image

    data = BytesIO()
    drawn.savefig(data, format="png", dpi=130)
    with Image.open(data) as image:
        few = image.convert("RGB").quantize(32)
    few.save(FIGURES / f"{name}.png", optimize=True)


MEASURE: dict[str, Callable[[Path], list[str]]] = {
    "mixed": mixed,
    "shares": shares,
    "third": third,
    "kernel": kernel,
    "findings": findings,
}


def main() -> None:
    """Measure the parts and put them into the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--out", default="runs")
    given = parser.parse_args()
    unknown = set(given.parts) - set(MEASURE)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; accepted: {', '.join(MEASURE)}")
    measured = {
        name: measure(Path(given.out))
        for name, measure in MEASURE.items()
        if not given.parts or name in given.parts
    }
    for lines in measured.values():
        print("\n".join(lines))
    blocks = {f"measured: {name}": lines for name, lines in measured.items()}
    PAGE.write_text(pages.filled(PAGE.read_text(), blocks))


if __name__ == "__main__":
    main()
