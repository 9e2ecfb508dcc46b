"""Replications that are implausibly alike: flows in step with the queue that drops from them.

Behind tail drop the times at which packets of few flows arrive decide which of them meet a full
queue. Where nothing disturbs these times all replications take the same course, or one of a few,
and differ less than those of real hosts would (`docs/explanation/phase-effects.md`).

What is looked at in each case: the mean completion time of every group of transfers and, where all
TCP flows are endless, Jain's index over them (its distance from 1), or the goodput of the group
that gets least if several send in one direction. Only cases in which tail drop lost packets in
every replication, and that have 2 to 20 TCP flows, none of them a user's, can be in step. Large
campaigns, whose runs are many to a file, are not looked at.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from redtail import metrics as names
from redtail.analysis.stats import clusters
from redtail.store.segments import LedgerRuns

if TYPE_CHECKING:
    from redtail.analysis.results import CaseResult, Results

_FEW_FLOWS = range(2, 21)
_QUANTITY = re.compile(r"([0-9.]+) ?([kMG]?)(bit/s|B)")
_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_TIMES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def warnings(results: Results) -> list[str]:
    """Return what to tell of cases whose replications are implausibly alike: a line, or none."""
    alike = []
    for case in results.cases:
        found = _found(case)
        if found is not None:
            alike.append((case, *found))
    if not alike:
        return []
    case, name, lie, packet_s = alike[0]
    title = f", first in '{case.title}'" if case.title else ""
    cases = names.counted(len(results.cases), "case")
    return [
        f"replications are implausibly alike in {len(alike)} of {cases}{title}: {name} {lie}; "
        "a few flows behind tail drop are in step, and one phase or another decides what they get; "
        f'to see what hosts with random delays get, set host_jitter = "{_time(packet_s)}" '
        "(one packet's transmission time at the bottleneck)"
    ]


def _found(case: CaseResult) -> tuple[str, str, float] | None:
    """Return of a case in step: a metric, how its values lie, a packet's time at the queue."""
    asked = _asked(case)
    if asked is None:
        return None
    looked_at, packet_s = asked
    for name in looked_at:
        values = case.values(name)
        if name == "fairness":
            values = [1 - value for value in values]
        found = clusters(values)
        if found:
            return name, _lie(name, found), packet_s
    return None


def _lie(name: str, found: list[list[float]]) -> str:
    """Say how the values of a metric lie."""
    metric = names.describe(name)
    ends = [(each[0], each[-1]) for each in found]
    if name == "fairness":
        ends = [(1 - high, 1 - low) for low, high in reversed(ends)]
    shown = [f"{low * metric.scale:.5g} to {high * metric.scale:.5g}" for low, high in ends]
    unit = f" {metric.shown_unit}" if metric.shown_unit else ""
    several = f"{len(found)} clusters, " if len(found) > 1 else ""
    return f"of {sum(map(len, found))} replications is in {several}{' and '.join(shown)}{unit}"


def _asked(case: CaseResult) -> tuple[list[str], float] | None:
    """Return the metrics to look at, and how long a packet takes at the tail drop.

    None when few flows do not share a tail drop that loses packets, or the runs are many to a file.
    """
    if isinstance(case.runs, LedgerRuns) or not case.runs:
        return None
    try:
        text = (case.runs[min(case.runs)].folder / "scenario.json").read_text(encoding="utf-8")
    except OSError:  # cleaned away since
        return None
    scenario = json.loads(text)
    groups = [group for group in scenario.get("traffic", ()) if "tcp" in group]
    # What users have is in "users".
    if sum(group.get("flows", math.inf) for group in groups) not in _FEW_FLOWS:
        return None
    looked_at = [f"{it['name']}.completion_time_mean" for it in groups if it["kind"] == "transfer"]
    if all(it["kind"] == "bulk" for it in groups):
        if len(groups) == 1:
            looked_at.append("fairness")
        elif len({it["direction"] for it in groups}) == 1:
            goodputs = [f"{it['name']}.goodput" for it in groups]
            # The others' differ by less, as a part of what they are.
            looked_at.append(min(goodputs, key=lambda name: case.metric(name).mean))
    packet = max(_number(group["tcp"]["mss"]) + _number(group["tcp"]["header"]) for group in groups)
    for link, spec in _links(scenario):
        loss = case.values(f"{link}.loss" if link else "loss")
        if spec["queue"]["kind"] == "tail-drop" and loss and min(loss) > 0:
            return looked_at, 8 * packet / _number(spec["rate"])
    return None


def _links(scenario: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return every link of a scenario with what results call it, the bottleneck ""."""
    found = []
    if "bottleneck" in scenario:
        found.append(("", scenario["bottleneck"]))
        if "return" in scenario["bottleneck"]:
            found.append(("return", scenario["bottleneck"]["return"]))
    for number, hop in enumerate(scenario.get("chain", {}).get("hop", []), 1):
        found.append((f"hop{number}", hop))
        if "return" in hop:
            found.append((f"hop{number}.return", hop["return"]))
    return found


def _number(text: str) -> float:
    """Return a rate in bit/s or a size in bytes from its text in a scenario."""
    found = _QUANTITY.fullmatch(text)
    assert found is not None, text
    return float(found[1]) * _FACTORS[found[2]]


def _time(seconds: float) -> str:
    """Return a time as the experiment file has it, of three digits.

    >>> _time(0.0857142), _time(1.2e-6)
    ('85.7 ms', '1.2 us')
    """
    unit, factor = next((u, f) for u, f in _TIMES if seconds >= f or u == "ns")
    return f"{seconds / factor:.3g} {unit}"
