"""Replications that are implausibly alike, because flows are synchronized with their queue.

With few flows behind tail drop, the arrival times of packets decide which of them meet a full
queue. When nothing disturbs these times, all replications take the same course, or one of a few.
They then differ less than those of real hosts (`docs/explanation/phase-effects.md`).

Each case is examined by the mean completion time of every group of transfers. When all TCP flows
are endless it is also examined by Jain's index over them (its distance from 1) or, if several
groups send in one direction, by the goodput of the group that gets least. Only cases in which tail
drop lost packets in every replication, and that have 2 to 20 TCP flows and no users, can be
synchronized. Large campaigns, which keep many runs in a file, are not examined.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from redtail import metrics as names
from redtail.analysis.stats import clusters
from redtail.files import plain_bytes
from redtail.scenario import links, rate_or_size
from redtail.store.format import MALFORMED
from redtail.store.segments import CaseRuns

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

_FEW_FLOWS = range(2, 21)
_TIMES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def warnings(results: Results) -> list[str]:
    """Return a warning about cases whose replications are implausibly alike, or nothing."""
    alike = []
    for case in results.cases:
        found = _examine(case)
        if found is not None:
            alike.append((case, *found))
    if not alike:
        return []
    case, name, spread, packet_s = alike[0]
    title = f", first in '{case.title}'" if case.title else ""
    cases = names.counted(len(results.cases), "case")
    return [
        f"replications are implausibly alike in {len(alike)} of {cases}{title}: {name} {spread}; "
        "a few flows behind tail drop are synchronized, and their phase decides what they get; "
        f'to see what hosts with random delays get, set host_jitter = "{_time(packet_s)}" '
        "(one packet's transmission time at the bottleneck)"
    ]


def _examine(case: CaseResult) -> tuple[str, str, float] | None:
    """Return the metric, its spread and a packet's transmission time if a case is synchronized."""
    test = _metrics_to_examine(case)
    if test is None:
        return None
    examined, packet_s = test
    for name in examined:
        values = case.values(name)
        if name == "fairness":
            values = [1 - value for value in values]
        found = clusters(values)
        if found:
            return name, _describe_spread(name, found), packet_s
    return None


def _describe_spread(name: str, found: list[list[float]]) -> str:
    """Return the ranges that the values of a metric are in, as words."""
    metric = names.describe(name)
    ends = [(each[0], each[-1]) for each in found]
    if name == "fairness":
        ends = [(1 - high, 1 - low) for low, high in reversed(ends)]
    shown = [f"{low * metric.scale:.5g} to {high * metric.scale:.5g}" for low, high in ends]
    unit = f" {metric.shown_unit}" if metric.shown_unit else ""
    several = f"{len(found)} clusters, " if len(found) > 1 else ""
    return f"of {sum(map(len, found))} replications is in {several}{' and '.join(shown)}{unit}"


def _metrics_to_examine(case: CaseResult) -> tuple[list[str], float] | None:
    """Return the metrics to examine, and a packet's transmission time at the tail drop.

    None unless a few flows share a tail drop that loses packets; None for large campaigns, and for
    copies of one run, which `copies` warns of.
    """
    if isinstance(case.runs, CaseRuns) or not case.runs or case.copies:
        return None
    try:
        data = plain_bytes(case.runs[min(case.runs)].folder / "scenario.json")
        return _examined(case, json.loads(data))
    except MALFORMED:  # removed since, or a scenario that redtail has not written
        return None


def _examined(case: CaseResult, scenario: Mapping[str, Any]) -> tuple[list[str], float] | None:
    """Return what `_metrics_to_examine` does, by the scenario of a run."""
    groups = [group for group in scenario.get("traffic", ()) if "tcp" in group]
    # Groups of users have "users" and no "flows".
    if sum(group.get("flows", math.inf) for group in groups) not in _FEW_FLOWS:
        return None
    examined = [f"{it['name']}.completion_time_mean" for it in groups if it["kind"] == "transfer"]
    if all(it["kind"] == "bulk" for it in groups):
        if len(groups) == 1:
            examined.append("fairness")
        elif len({it["direction"] for it in groups}) == 1:
            goodputs = [f"{it['name']}.goodput" for it in groups]
            # The goodputs of other groups differ by a smaller fraction.
            examined.append(min(goodputs, key=lambda name: case.metric(name).mean))
    packet = max(
        rate_or_size(group["tcp"]["mss"]) + rate_or_size(group["tcp"]["header"]) for group in groups
    )
    for name, link in links(scenario).items():
        loss = case.values("loss" if name == "bottleneck" else f"{name}.loss")
        if link["queue"]["kind"] == "tail-drop" and loss and min(loss) > 0:
            return examined, 8 * packet / rate_or_size(link["rate"])
    return None


def _time(seconds: float) -> str:
    """Return a time as an experiment file has it, with three digits.

    >>> _time(0.0857142), _time(1.2e-6)
    ('85.7 ms', '1.2 us')
    """
    unit, factor = next((u, f) for u, f in _TIMES if seconds >= f or u == "ns")
    return f"{seconds / factor:.3g} {unit}"
