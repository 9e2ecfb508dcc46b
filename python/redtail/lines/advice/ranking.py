"""Ranks queues by several aims, each with a margin that a person would notice.

    for each aim, the most important one first:
        the queue with the smallest mean is the measure
        a queue that is certainly further from it than the margin leaves
    of those that remain, the first one in the order of preference is chosen

Then the same is done without the chosen one, which gives the second place, and so on. So a small
difference never decides, a large one decides in the order of the aims, and what is within the
margins of all aims is decided by what is fairer and simpler (elimination by aspects, Tversky 1972,
with a threshold for each).

A difference is that of the same loads with the same random numbers, replication by replication. It
is judged as `analysis.paired` does, shifted by the margin, at 5 % divided by the number of other
queues (Bonferroni), so that the verdicts of an aim hold together:

- **worse**, **better**: the mean difference is beyond the margin, and its interval, too.
- **equal**: the interval lies within the margin on both sides (two one-sided tests).
- **undecided**: neither. More replications would tell, and it is said how many.

Where all differences are equal there is no spread, and they are taken as they are. Where runs are
over parts of a recording, the parts are a source of chance beside the replications (`crossed`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from redtail.analysis.paired import LEVEL, replications_needed
from redtail.analysis.stats import Estimate, estimate
from redtail.lines.advice.crossed import REPLICATIONS, Runs
from redtail.lines.advice.objectives import Objective

Verdict = Literal["better", "worse", "equal", "undecided", "no value"]
"""What is said of a queue compared with another one in an aim."""


@dataclass(frozen=True)
class Compared:
    """A queue compared with another one in an aim.

    Attributes:
        aim: the aim.
        difference: the queue less the other one, replication by replication, with an interval that
            holds for all queues at once.
        margin: the difference that would be noticed, in the aim's unit.
        verdict: what is said.
        needed: about how many replications would decide, where it is undecided; None where none of
            at most `analysis.paired.MOST_NEEDED` would, and of runs over cuts.
    """

    aim: Objective
    difference: Estimate
    margin: float
    verdict: Verdict
    needed: int | None = None

    @property
    def can_be_worse(self) -> bool:
        """Whether the runs do not rule out that the queue is worse by more than the margin."""
        found = self.difference
        most = found.most if found.ci95 is None else found.high
        return not most <= self.margin  # also where nothing is known

    def unknown(self) -> Compared:
        """Return the same where the values do not tell the difference."""
        nothing = Estimate(math.nan, None, 0, "the values are bounds")
        return replace(self, difference=nothing, verdict="no value", needed=None)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "difference": self.difference.as_json(),
            "margin": self.margin,
            "verdict": self.verdict,
            "replications_needed": self.needed,
        }


def compared(
    aim: Objective,
    values: Sequence[float],
    other: Sequence[float],
    together: int = 1,
    runs: Runs = REPLICATIONS,
) -> Compared:
    """Compare a queue with another one.

    Args:
        aim: the aim.
        values: of the queue, replication by replication; NaN for none.
        other: of the other one.
        together: the number of comparisons that hold together.
        runs: how the runs share their chance.
    """
    together = max(1, together)
    pairs = list(zip(values, other, strict=True))
    known = [(a, b) for a, b in pairs if not math.isnan(a + b)]
    difference = runs.mean_difference(values, other, 1 - LEVEL / together)
    sides = [estimate(side).mean for side in zip(*known, strict=True)]
    margin = aim.margin.of(min(sides, default=math.nan))
    if not known:
        return Compared(aim, difference, margin, "no value")

    def p_beyond(bound: float) -> float | None:
        return runs.p_zero_mean([a - b - bound for a, b in pairs])

    verdict = _verdict(difference, p_beyond, margin, LEVEL / together)
    needed = None
    if verdict == "undecided" and len(known) > 1 and runs.cuts == 1:
        nearest = math.copysign(margin, difference.mean)
        needed = replications_needed([a - b - nearest for a, b in known], together)
    return Compared(aim, difference, margin, verdict, needed)


def _verdict(
    found: Estimate, p_beyond: Callable[[float], float | None], margin: float, level: float
) -> Verdict:
    if found.constant:  # exactly known
        if abs(found.mean) <= margin:
            return "equal"
        return "worse" if found.mean > 0 else "better"

    def beyond(bound: float) -> bool:
        """Whether the mean is certainly on the side of the bound on which it is."""
        p = p_beyond(bound)
        return p is not None and p <= level

    if abs(found.mean) > margin:
        if not beyond(math.copysign(margin, found.mean)):
            return "undecided"
        return "worse" if found.mean > 0 else "better"
    return "equal" if beyond(margin) and beyond(-margin) else "undecided"


@dataclass(frozen=True)
class Entrant:
    """What is ranked.

    Attributes:
        label: its label.
        values: its values by the name of the aim, replication by replication.
        preference: the smaller, the rather it is chosen among those that are equal or undecided.
        merits: what each part of `preference` stands for, in words, where it speaks for it.
        group: all of a smaller one are before it, whatever the aims say.
    """

    label: str
    values: Mapping[str, Sequence[float]]
    preference: tuple[float, ...]
    merits: tuple[str, ...] = ()
    group: int = 0


@dataclass(frozen=True)
class Step:
    """An aim by which queues left.

    Attributes:
        aim: the aim.
        margin: its margin, in its unit.
        best: the label of the queue with the smallest mean.
        left: labels of those that were certainly worse by more than the margin.
    """

    aim: Objective
    margin: float
    best: str
    left: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """The queue that is chosen, and why.

    Attributes:
        label: its label.
        steps: the aims by which others left.
        remaining: labels of those that no aim decided against, the chosen one first.
        merit: what decided among them; None where it stands alone or nothing tells them apart.
    """

    label: str
    steps: tuple[Step, ...]
    remaining: tuple[str, ...]
    merit: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "left": [
                {
                    "objective": step.aim.name,
                    "margin": step.margin,
                    "best": step.best,
                    "left": list(step.left),
                }
                for step in self.steps
            ],
            "remaining": list(self.remaining),
            "preferred_because": self.merit,
        }


def choose(
    entrants: Sequence[Entrant],
    aims: Sequence[Objective],
    together: int,
    runs: Runs = REPLICATIONS,
) -> Choice:
    """Choose a queue.

    Args:
        entrants: the queues.
        aims: the aims, the most important one first.
        together: the number of comparisons that hold together.
        runs: how the runs share their chance.
    """
    least = min(each.group for each in entrants)
    left = [each for each in entrants if each.group == least]
    left.sort(key=lambda each: each.preference)
    steps = []
    for aim in aims:
        best = _best(left, aim)
        if best is None:
            continue
        found = {
            each.label: compared(aim, each.values[aim.name], best.values[aim.name], together, runs)
            for each in left
            if each is not best
        }
        out = tuple(label for label, each in found.items() if each.verdict == "worse")
        if out:
            steps.append(Step(aim, found[out[0]].margin, best.label, out))
            left = [each for each in left if each.label not in out]
    first, *others = left
    return Choice(
        first.label,
        tuple(steps),
        tuple(each.label for each in left),
        _merit(first, others[0]) if others else None,
    )


def _best(entrants: Sequence[Entrant], aim: Objective) -> Entrant | None:
    """Return the queue with the smallest mean, the first of equal ones; None without values."""
    means = [(estimate(each.values[aim.name]).mean, each) for each in entrants]
    known = [(mean, each) for mean, each in means if not math.isnan(mean)]
    return min(known, key=lambda pair: pair[0])[1] if known else None


def _merit(first: Entrant, second: Entrant) -> str | None:
    for own, other, merit in zip(first.preference, second.preference, first.merits, strict=False):
        if own != other:
            return merit
    return None


def in_order(
    entrants: Sequence[Entrant],
    aims: Sequence[Objective],
    together: int,
    runs: Runs = REPLICATIONS,
) -> tuple[list[str], Choice]:
    """Return the labels of all queues in the order of their places, and why the first is first.

    Arguments as for `choose`.
    """
    left = list(entrants)
    order: list[str] = []
    first: Choice | None = None
    while left:
        choice = choose(left, aims, together, runs)
        first = first or choice
        order.append(choice.label)
        left = [each for each in left if each.label != choice.label]
    assert first is not None
    return order, first
