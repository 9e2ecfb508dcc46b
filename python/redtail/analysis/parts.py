"""Groups whose own values differ so much that a number of all of them describes none.

44 % of the UDP packets lost can be 0 % of a group that sends little and 66 % of one that sends
much. Groups of one kind, with TCP or without, that send in the direction of a queue are compared;
what a group's acknowledgements meet in the other direction is no measure of it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from redtail import metrics as names

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

APART = 2.0
"""A group's value is another one if it is so many times as large, and the intervals are apart.

Source: ours. Groups that share a queue of one line differ by less, since bursts meet longer queues.
"""

# What is of all groups at a queue: what each group has in its place, and the kinds of groups
# (whether with TCP) that are compared. The UDP groups have a number of their own for losses.
_WHOLES = {
    "udp_loss": ("loss", (False,)),
    "loss": ("loss", (True,)),
    "queue_delay_mean": ("queue_delay_mean", (False, True)),
}


def with_parts(results: Results, chosen: Sequence[str]) -> list[str]:
    """Return metrics, and behind each that is of all groups those of groups that differ.

    Args:
        results: what they are of.
        chosen: names of metrics.
    """
    found: dict[str, None] = {}
    for name in chosen:
        found[name] = None
        found.update(dict.fromkeys(_parts(results, name, chosen)))
    return list(found)


def _parts(results: Results, name: str, chosen: Collection[str]) -> list[str]:
    link = names.prefix(name)
    if names.base(name) not in _WHOLES or link not in ("", *results.links):
        return []
    base, kinds = _WHOLES[names.base(name)]
    found = []
    for with_tcp in kinds:
        groups = [
            group["name"]
            for group in results.scenario.get("traffic", ())
            if ("tcp" in group) == with_tcp
            and (group.get("direction") == "reverse") == ("return" in link)
        ]
        parts = [f"{link}.{group}.{base}".removeprefix(".") for group in groups]
        parts = [part for part in parts if part in results.metric_names]
        if any(_differ(case, parts) for case in results.cases):
            # The loss of calls from end to end is shown anyway.
            found += [
                part
                for part in parts
                if base != "loss"
                or f"{names.base(names.prefix(part))}.end_to_end_loss" not in chosen
            ]
    return found


def _differ(case: CaseResult, parts: Sequence[str]) -> bool:
    """Return whether the values of two groups are apart."""
    spans = [span for part in parts if (span := _span(case, part)) is not None]
    return any(
        (first[1] < second[0] or second[1] < first[0])
        and max(first[2], second[2]) >= APART * min(first[2], second[2])
        for first, second in combinations(spans, 2)
    )


def _span(case: CaseResult, name: str) -> tuple[float, float, float] | None:
    """Return the ends of an interval and the mean; without an interval the ends of the values."""
    found = case.metric(name)
    if math.isnan(found.mean):
        return None
    if found.ci95 is not None:
        return found.mean - found.ci95, found.mean + found.ci95, found.mean
    values = [value for value in case.values(name) if not math.isnan(value)]
    return min(values), max(values), found.mean
