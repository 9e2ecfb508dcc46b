"""Measures how often a difference is found where there is none: a table of statistics.md.

    .venv/bin/python docs/explanation/verdicts.py

Each row is a kind of differences whose mean is zero, given to the rule of `analysis.paired` 20,000
times, with 5 and with 10 replications, without correction. A verdict of "higher" or "lower" is a
false alarm. It takes a minute.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from redtail.analysis.paired import Paired, Unjudged, p_of

PAGE = Path(__file__).with_name("statistics.md")
EXPERIMENTS = 20_000

COPIES = Unjudged("one observation", "the replications are copies of one run: one observation")


@dataclass(frozen=True)
class Case:
    """A kind of differences.

    Attributes:
        name: what it is.
        verdict: what the rule does with it.
        draw: draws the difference of a replication, of mean zero.
        unjudged: why there is no verdict; None when there may be one.
    """

    name: str
    verdict: str
    draw: Callable[[Random], float]
    unjudged: Unjudged | None = None


@dataclass(frozen=True)
class _Pair(Paired):
    differences: dict[int, float]
    reference: float = 1.0
    refused: str | None = None
    unjudged: Unjudged | None = None
    p: float | None = None
    p_adjusted: float | None = None
    together: int = field(default=1)


def _rare(random: Random) -> float:
    return random.gauss(1, 0.1) + (10.0 if random.random() < 0.07 else 0.0)


CASES = (
    Case("normal values", "t-test", lambda r: r.gauss(0, 1)),
    Case(
        "skewed values (log-normal, σ = 1), both sides alike",
        "t-test",
        lambda r: r.lognormvariate(0, 1) - r.lognormvariate(0, 1),
    ),
    Case(
        "one side is equal in all replications, but not copies (no loss, say); the other is normal",
        "t-test",
        lambda r: 3.0 - r.gauss(3, 1),
    ),
    Case(
        "an outlier in one of ten replications, 30 times the spread, on either side",
        "t-test",
        lambda r: r.gauss(0, 1) + (r.choice((-30.0, 30.0)) if r.random() < 0.1 else 0.0),
    ),
    Case(
        "rare events in 7 % of the replications, both sides alike",
        "t-test; ±? where the metric is known for them",
        lambda r: _rare(r) - _rare(r),
    ),
    Case(
        "rare events on one side only, means equal",
        "t-test; ±? where the metric is known for them",
        lambda r: _rare(r) - r.gauss(1.7, 0.1),
    ),
    Case(
        "ties: one step of a histogram up, down or none, a third each",
        "t-test, or signs where more than half are equal",
        lambda r: float(r.choice((-1, 0, 1))),
    ),
    Case(
        "nearly all equal: no difference in 7 of 10, else one step up or down",
        "signs",
        lambda r: r.choice((-1.0, 1.0)) if r.random() < 0.3 else 0.0,
    ),
    Case("all differences zero", "equal", lambda r: 0.0),
    Case("one side is copies of one run", "one observation", lambda r: r.gauss(0, 1), COPIES),
    Case("both sides are copies of one run", "one observation", lambda r: 1.0, COPIES),
)


def false_alarms(case: Case, replications: int, experiments: int, seed: int = 1) -> float:
    """Return the share of experiments in which a difference is found, in the mean or the sign."""
    random = Random(f"{seed} {case.name} {replications}")
    alarms = 0
    for _ in range(experiments):
        values = [case.draw(random) for _ in range(replications)]
        p = p_of(values, case.unjudged)
        row = _Pair(dict(enumerate(values)), unjudged=case.unjudged, p=p, p_adjusted=p)
        alarms += row.distinguishable is True
    return alarms / experiments


def table(experiments: int = EXPERIMENTS) -> str:
    """Return the table of the page."""
    lines = ["| differences | judged by | 2 | 5 | 10 |", "| --- | --- | --- | --- | --- |"]
    for case in CASES:
        rates = (false_alarms(case, n, experiments) for n in (2, 5, 10))
        shown = " | ".join(f"{100 * rate:.1f} %" if rate else "0" for rate in rates)
        lines.append(f"| {case.name} | {case.verdict} | {shown} |")
    return "\n".join(lines)


def main() -> None:
    """Write the table into the page."""
    found = f"<!-- measured: verdicts -->\n\n{table()}\n\n<!-- end -->"
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(r"<!-- measured: verdicts -->.*?<!-- end -->", re.S)
    PAGE.write_text(pattern.sub(lambda _: found, text), encoding="utf-8")


if __name__ == "__main__":
    main()
