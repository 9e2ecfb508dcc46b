"""Delivery times against random loss, as in table I of Jou and Baras (2003).

`docs/papers/delivery-times.toml` is the experiment; docs/papers/delivery-times.md shows the tables
that are computed here, and what they say. After a change that moves numbers,

    .venv/bin/python tests/reference/test_delivery_times.py

writes them into the page anew.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import redtail
from redtail.engine import batches, plans

from conftest import some_weekly

ROOT = Path(__file__).parents[2]
EXPERIMENT = ROOT / "docs" / "papers" / "delivery-times.toml"
PAGE = ROOT / "docs" / "papers" / "delivery-times.md"

SIZES = (30, 90, 150)
LOSSES = (0.0, 0.02, 0.04, 0.08)

#: Mean and standard deviation in seconds, by kilobytes, for each of LOSSES (table I).
PAPER = {
    30: ((0.88, 0.0006), (1.60, 1.88), (2.74, 4.27), (5.88, 7.79)),
    90: ((1.18, 0.0008), (2.79, 2.39), (4.81, 3.91), (9.24, 6.30)),
    150: ((1.34, 0.0008), (3.51, 1.90), (6.51, 4.60), (13.38, 8.87)),
}

REPLICATIONS = 4000
#: Of a variant; all draw the same losses.
FEWER = 500

_TCP = "traffic.file.tcp."
#: What is changed, and how it is called in the page.
VARIANTS: dict[str, dict[str, object]] = {
    "as above": {},
    "first timeout 3 s": {_TCP + "initial_rto": "3 s"},
    "first timeout 1 s": {_TCP + "initial_rto": "1 s"},
    "least timeout 0.2 s": {_TCP + "min_rto": "200 ms"},
    "first 1 s and least 0.2 s": {_TCP + "initial_rto": "1 s", _TCP + "min_rto": "200 ms"},
    "no loss on the way back": {"bottleneck.return.wire.loss": 0},
    "no limited transmit": {_TCP + "limited_transmit": False},
    "Tahoe": {_TCP + "preset": "ns2-tahoe"},
    "NewReno": {_TCP + "preset": "ns2-newreno"},
    "SACK": {_TCP + "preset": "ns2-sack"},
    "initial window 2": {_TCP + "initial_window": 2},
    "no handshake": {_TCP + "handshake": False},
    "delayed ACKs": {_TCP + "delayed_ack": True},
    "window of at most 64 kB": {_TCP + "receive_window": "64 kB"},
    "960 B of payload": {_TCP + "mss": "960 B"},
}


@dataclass(frozen=True)
class Cell:
    """The delivery times of one size at one loss, in seconds."""

    mean: float
    sd: float
    n: int

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.sd / math.sqrt(self.n)


KEYS = [(size, loss) for size in SIZES for loss in LOSSES]


@cache
def plan(variant: str) -> plans.Plan:
    """The experiment with a variant's changes."""
    made = redtail.check(EXPERIMENT, set=VARIANTS[variant])
    titles = [f"file size {size} kB, {loss:g}" for size, loss in KEYS]
    assert [case.title for case in made.cases] == titles
    return made


@cache
def transfer(variant: str, size: int, loss: float, replication: int) -> float:
    """The delivery time of one transfer in seconds."""
    scenario = plan(variant).scenario(KEYS.index((size, loss)), replication)
    return batches.run_one(scenario).metrics["file.completion_time_mean"]


@cache
def cell(variant: str, size: int, loss: float, replications: int = REPLICATIONS) -> Cell:
    """One cell of the table, from that many transfers."""
    n = replications if loss else 2  # without loss nothing is random
    # A transfer takes less time than to hand it to a thread.
    times = [transfer(variant, size, loss, replication) for replication in range(n)]
    return Cell(statistics.fmean(times), statistics.stdev(times), n)


@pytest.mark.parametrize("size", SIZES)
def test_times_without_loss_are_those_of_the_paper(size: int) -> None:
    assert cell("as above", size, 0.0).mean == pytest.approx(PAPER[size][0][0], rel=0.02)


@pytest.mark.parametrize("size", some_weekly(SIZES, lambda size: size > min(SIZES)))
@pytest.mark.parametrize("loss", some_weekly([0.02, 0.04], lambda loss: loss > 0.02))
def test_times_under_moderate_loss_are_within_a_fifth_of_the_papers(size: int, loss: float) -> None:
    # Finding RT-15. Each mean is four standard errors inside the bound: other seeds would
    # bring one of the six beyond it with a probability below 1e-3.
    ours = cell("as above", size, loss)
    paper = PAPER[size][LOSSES.index(loss)][0]
    assert abs(ours.mean - paper) + 4 * ours.error <= 0.2 * paper


@pytest.mark.weekly
def test_times_and_their_spread_grow_with_loss_and_times_with_size() -> None:
    # The order at a loss of 0.08 is what RT-15 asks; the paper has it as well. Neighbours
    # are many standard errors apart.
    for size in SIZES:
        row = [cell("as above", size, loss) for loss in LOSSES]
        for less, more in itertools.pairwise(row):
            assert more.mean - less.mean > 6 * math.hypot(less.error, more.error)
            assert more.sd > less.sd
    for loss in LOSSES[1:]:
        column = [cell("as above", size, loss) for size in SIZES]
        for less, more in itertools.pairwise(column):
            assert more.mean - less.mean > 6 * math.hypot(less.error, more.error)


@pytest.mark.parametrize(
    "variant",
    some_weekly(
        ["first timeout 1 s", "no loss on the way back", "first 1 s and least 0.2 s"],
        lambda variant: variant != "first timeout 1 s",
    ),
)
def test_timers_of_today_or_a_perfect_way_back_do_not_reach_the_papers_times(variant: str) -> None:
    # The shortest file at 4 %: six standard errors below what a fifth allows.
    ours = cell(variant, 30, 0.04)
    assert ours.mean + 6 * ours.error < 0.8 * PAPER[30][2][0]


def results_table() -> str:
    """The table of the page: ours with 95 % intervals, and the paper's."""
    head = [f"p = {loss:g}" for loss in LOSSES]
    lines = [f"| | {' | '.join(head)} |", "|---" * (1 + len(LOSSES)) + "|"]
    for size in SIZES:
        ours = [cell("as above", size, loss) for loss in LOSSES]
        texts = [f"{c.mean:.2f} ± {1.96 * c.error:.2f} ({c.sd:.2f})" for c in ours]
        texts[0] = f"{ours[0].mean:.2f}"
        lines.append(f"| {size} kB | {' | '.join(texts)} |")
        papers = [f"{mean:.2f} ({sd:.2f})" for mean, sd in PAPER[size]]
        papers[0] = f"{PAPER[size][0][0]:.2f}"
        lines.append(f"| {size} kB, paper | {' | '.join(papers)} |")
    return "\n".join(lines) + "\n"


def variants_table() -> str:
    """The table of the page with what each assumption does: means over the paper's."""
    head = [f"{size} kB, {loss:g}" for size, loss in KEYS]
    lines = [f"| | {' | '.join(head)} |", "|---" * (1 + len(head)) + "|"]
    for variant in VARIANTS:
        ratios = [
            cell(variant, size, loss, FEWER).mean / PAPER[size][LOSSES.index(loss)][0]
            for size, loss in KEYS
        ]
        lines.append(f"| {variant} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")
    return "\n".join(lines) + "\n"


_TABLE = re.compile(r"^<!-- table: (?P<name>\w+) -->\n\n(?P<body>(?:\|.*\n)+)", re.MULTILINE)
_TABLES = {"results": results_table, "variants": variants_table}


# The variants take a minute of processor time.
@pytest.mark.parametrize("name", some_weekly(_TABLES, lambda name: name == "variants"))
def test_the_page_shows_the_table(name: str) -> None:
    shown = {found["name"]: found["body"] for found in _TABLE.finditer(PAGE.read_text())}
    assert shown[name] == _TABLES[name]()


def _update() -> None:
    page = PAGE.read_text()
    for found in reversed(list(_TABLE.finditer(page))):
        page = page[: found.start("body")] + _TABLES[found["name"]]() + page[found.end("body") :]
    PAGE.write_text(page)


if __name__ == "__main__":
    _update()
