"""Replications that are copies of one run, because nothing was drawn at random.

When a scenario draws nothing, every replication is the same run: the values are equal in every
metric. Such replications are one observation, however many there are. They have no spread, so that
there is no interval, no p-value and no verdict. `of_metrics` finds them by what was measured,
whatever the reason is. `draws_nothing` says before any run that a scenario can only have copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from redtail.metrics import counted

if TYPE_CHECKING:
    import numpy as np

    from redtail.analysis.results import Results

REMEDY = 'let starts be drawn (start = "uniform 0..1 s") or set host_jitter'
"""What makes replications differ."""

# Kinds of queues without a stream of random numbers of their own. Queues that hash flows have one.
_PLAIN_QUEUES = frozenset(
    {
        "tail-drop",
        "head-drop",
        "codel",
        "gsp",
        "step",
        "avq",
        "pfifo-fast",
        "prio",
        "drr",
        "wfq",
        "tbf",
        "htb",
    }
)

# Kinds of traffic that draw nothing beside what their keys give as a distribution.
_PLAIN_TRAFFIC = frozenset({"bulk", "transfer", "cbr"})

# What a distribution begins with in a scenario (`crates/traffic/src/dist.rs`).
_DISTRIBUTIONS = (
    "uniform",
    "exponential",
    "pareto",
    "lomax",
    "lognormal",
    "weibull",
    "normal",
    "gumbel",
    "geometric",
    "cdf",
)

# Growth laws that draw: BBR's phases, Copa's.
_DRAWING_GROWTH = ("bbr", "copa")

# Keys that make a scenario draw when their value is above zero.
_CHANCES = frozenset({"host_jitter", "dither", "loss", "p", "duplicate", "share"})


def of_metrics(runs: Sequence[Mapping[str, float]]) -> int:
    """Return how many runs are copies of one: all of them, or none (0).

    Runs are copies when each metric has the same value, to the last bit, in all of them.

    Args:
        runs: the metrics of each run of a case, by their names.

    >>> of_metrics([{"loss": 0.1}] * 3), of_metrics([{"loss": 0.1}, {"loss": 0.2}])
    (3, 0)
    """
    if len(runs) < 2:
        return 0
    first, *others = runs
    same = all(
        other.keys() == first.keys()
        and all(
            value == first[name] or (math.isnan(value) and math.isnan(first[name]))
            for name, value in other.items()
        )
        for other in others
    )
    return len(runs) if same and first else 0


def of_columns(columns: Iterable[np.ndarray[Any, Any]]) -> int:
    """Return `of_metrics` for an array of each metric, which has a value for each run."""
    count = 0
    for column in columns:
        count = len(column)
        undefined = column != column
        if count < 2 or not ((column == column[0]) | (undefined & undefined[0])).all():
            return 0
    return count


def reason(count: int) -> str:
    """Return why so many replications that are copies have no interval.

    >>> reason(10)
    'the 10 replications are copies of one run: one observation'
    """
    return f"the {count} replications are copies of one run: one observation"


def warning(copied: int, cases: str, title: str, *, done: bool = True) -> str:
    """Return what to know of cases whose replications are copies.

    Args:
        copied: how many cases.
        cases: the number of all cases in words.
        title: the first of them in a line; possibly empty.
        done: whether the runs were made; without it they would be copies.
    """
    first = f", first in '{title}'" if title else ""
    why = (
        "nothing that was drawn at random changed anything"
        if done
        else "the simulator draws nothing at random"
    )
    return (
        f"all replications {'are' if done else 'would be'} copies of one run in {copied} of "
        f"{cases}{first}: {why}, so they are one observation, without interval and verdict; "
        f"{REMEDY}"
    )


def warnings(results: Results) -> list[str]:
    """Return a warning about cases whose replications are copies of one run, or nothing."""
    copied = [case for case in results.cases if case.copies]
    if not copied:
        return []
    return [warning(len(copied), counted(len(results.cases), "case"), copied[0].title)]


def draws_nothing(scenario: Mapping[str, Any]) -> bool:
    """Return whether a scenario draws nothing at random, so that replications must be copies.

    It is false where that is not certain: queues that hash flows draw, and so do users and queues
    in Python.

    Args:
        scenario: one run, all defaults filled in.

    >>> plain = {"bottleneck": {"queue": {"kind": "codel"}},
    ...          "traffic": [{"kind": "bulk", "start": "0 s"}]}
    >>> draws_nothing(plain)
    True
    >>> draws_nothing({**plain, "traffic": [{"kind": "bulk", "start": "uniform 0 s..1 s"}]})
    False
    """
    groups = scenario.get("traffic", [])
    if any(group.get("kind") not in _PLAIN_TRAFFIC for group in groups):
        return False
    return not _draws(
        {key: value for key, value in scenario.items() if key not in ("name", "description")}
    )


def _draws(value: Any, key: str = "") -> bool:
    if key == "growth" and isinstance(value, Mapping):  # older results have its name alone
        value = value.get("kind", "")
    if isinstance(value, Mapping):
        if "cdf" in value or (key == "queue" and value.get("kind") not in _PLAIN_QUEUES):
            return True
        return any(_draws(each, name) for name, each in value.items())
    if isinstance(value, list):
        return any(_draws(each, key) for each in value)
    if isinstance(value, str):
        if value.startswith(_DRAWING_GROWTH if key == "growth" else _DISTRIBUTIONS):
            return True
        number = value.split()[0] if value.split() else ""
        return key in _CHANCES and number.strip("0.") != ""
    return key in _CHANCES and bool(value)
