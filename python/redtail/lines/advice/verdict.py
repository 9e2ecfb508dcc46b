"""Whether a queue helps: what a person would notice of it beside the line as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, get_args

from redtail.lines.advice.objectives import THROUGHPUT
from redtail.lines.advice.ranking import Compared

Verdict: TypeAlias = Literal["helps", "costs", "undecided", "nothing"]
"""Whether a queue helps; only at the cost of much throughput; whether the simulations do not tell;
or that it does not."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""The best one first."""


def decisive(found: Iterable[Compared]) -> Compared | None:
    """Return the first objective in which the line as it is is better or worse; None for none."""
    return next((each for each in found if each.verdict in ("better", "worse")), None)


def verdict(found: Sequence[Compared], lost: Compared | None) -> Verdict:
    """Return whether a queue helps.

    It does if the first objective that decides speaks for it. Where none does, it helps nothing
    only if each objective up to the one that decides rules out that it is better by the margin.
    Throughput does not count there, unless it counts most: a shaper carries less than the line.

    Args:
        found: the line as it is compared with the queue, in the objective that counts most first.
        lost: the same by throughput, with the margin that a queue may lose (`objectives.COST`);
            None where it may lose any.
    """
    can_help = False
    for each in found:
        if each.verdict == "worse":
            # By the mean: that a queue costs nothing is not said where it is not certain.
            return "costs" if lost is not None and lost.difference.mean < -lost.margin else "helps"
        if each.verdict == "better":
            break
        if each.aim is not THROUGHPUT or each is found[0]:
            can_help = can_help or each.can_be_worse
    return "undecided" if can_help else "nothing"
