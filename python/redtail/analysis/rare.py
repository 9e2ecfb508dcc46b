"""Metrics whose mean depends on events in few replications, whatever their values look like.

When most replications are equal, the values themselves show it (`stats.estimate`). There are
metrics where they do not:

- An extreme of a run (`GROUP.ack_wait_max`): its distribution has a long tail, and ten values have
  nothing of it. A high quantile of few times in a run (`GROUP.response_time_p99` of 100 responses)
  is as good as an extreme.
- What befalls single flows behind a queue that hashes flows into buckets (FQ-CoDel): two flows
  that share a bucket share its turns, and one that sends little then waits as long as one that
  sends much. Four UDP flows and 16 bulk flows in 1024 buckets share one in 7 % of the runs. Half of
  all experiments of ten replications see none of it, and have a narrow interval of another mean.

`docs/explanation/coverage.md` has what the intervals of these cover.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from redtail import metrics as names
from redtail.scenario import flows_at_once

ENOUGH = 10
"""Events from which there is an interval: pairs of flows in one bucket, expected over all
replications; and times of a run beyond a quantile.

Source: ours. The mean of so many rare events has a skewness of 0.3, which Student's interval takes.
"""

# Quantiles of times of which a run may have few: the share beyond, and what counts the times.
_TAILS = {
    "response_time_p95": (0.05, "responses"),
    "response_time_p99": (0.01, "responses"),
    "slowdown_p99": (0.01, "responses"),
    "page_time_p95": (0.05, "pages"),
}

# Queues that put flows into buckets by a plain hash, and the key that says how many there are.
# CAKE is none: the eight ways of its sets keep flows apart.
_BUCKETS = {"fq-codel": "flows", "fq-pie": "flows", "fq": "flows", "sfq": "divisor"}

_EXTREMES = ("_max", "_min")


def why_no_interval(
    name: str, sharing: Mapping[str, float], n: int, values: Callable[[str], Sequence[float]]
) -> str | None:
    """Return why a metric has no interval over `n` replications; None when it may have one.

    Args:
        name: the metric's name.
        sharing: what the function of this name found for the case.
        n: replications with a value.
        values: gives another metric of the case, replication by replication.

    >>> def values(name):
    ...     return {"web.responses": [90.0, 110.0]}[name]
    >>> why_no_interval("ftp.ack_wait_max", {}, 10, values)
    'an extreme of each run'
    >>> why_no_interval("web.response_time_p99", {}, 10, values)
    'about 1 of the responses in each run are beyond this quantile, too few'
    >>> why_no_interval("hop1.cbr.loss", {"cbr.": 0.07}, 10, values)
    'flows share a bucket of the queue too seldom, about 0.7 times in 10 replications'
    >>> why_no_interval("hop1.cbr.loss", {"cbr.": 0.07}, 200, values)
    """
    if isinstance(name, names.Derived):  # it has what any of its inputs lacks
        found = (why_no_interval(each, sharing, n, values) for each in name.inputs)
        return next((why for why in found if why is not None), None)
    last = names.base(name)
    if last.endswith(_EXTREMES):
        return "an extreme of each run"
    if last in _TAILS:
        share, events = _TAILS[last]
        counts = [each for each in values(f"{names.prefix(name)}.{events}") if each == each]
        beyond = share * sum(counts) / len(counts) if counts else ENOUGH
        if beyond < ENOUGH:
            return (
                f"about {beyond:.2g} of the {events} in each run are beyond this quantile, too few"
            )
    group = names.base(names.prefix(name))
    keys = [f"{group}.{last}", f"{group}."]
    if f"{group}.fairness" not in sharing:  # it is of no group
        keys.append(last)
    pairs = next((sharing[key] for key in keys if key in sharing), None)
    if pairs is None or n * pairs >= ENOUGH:
        return None
    return (
        f"flows share a bucket of the queue too seldom, about {n * pairs:.2g} times in "
        f"{n} replications"
    )


def sharing(scenario: Mapping[str, Any]) -> dict[str, float]:
    """Return how many pairs of flows are expected to share a bucket, by the metrics it decides.

    A key is the name of a metric or, with a dot at its end, of a group all of whose metrics it is.
    These are the groups without TCP, `udp_loss`, the median delay of all packets, which lies
    between theirs and the others', and fairness. TCP fills any turn that it gets, and its other
    metrics do not show who had which. It is empty where no queue hashes flows.

    Args:
        scenario: one run, all defaults filled in.

    >>> found = sharing({
    ...     "bottleneck": {"queue": {"kind": "fq-codel", "flows": 1024}},
    ...     "traffic": [{"name": "ftp", "flows": 16, "tcp": {}}, {"name": "cbr", "flows": 4}],
    ... })
    >>> list(found)
    ['ftp.fairness', 'cbr.', 'udp_loss', 'queue_delay_p50', 'fairness']
    >>> round(found["fairness"], 3), round(found["udp_loss"], 3)
    (0.18, 0.068)
    """
    places = (scenario.get("bottleneck"), scenario.get("chain"))
    buckets = [count for place in places for count in _hashing(place)]
    groups = scenario.get("traffic", [])
    if not buckets or not groups:
        return {}
    flows = [flows_at_once(group) for group in groups]

    def pairs(of: int) -> float:
        """Return the pairs in a bucket of which one at least is among these flows."""
        return of * (sum(flows) - of + (of - 1) / 2) / max(buckets)

    found = {}
    of_all = {"udp_loss": 0, "queue_delay_p50": 0, "fairness": 0}
    for group, count in zip(groups, flows, strict=True):
        if "tcp" not in group:
            found[f"{group['name']}."] = pairs(count)
            of_all["udp_loss"] += count
            of_all["queue_delay_p50"] += count
        else:
            found[f"{group['name']}.fairness"] = pairs(count)
            if "users" not in group:  # they are not in the fairness of all
                of_all["fairness"] += count
    found |= {name: pairs(count) for name, count in of_all.items() if count}
    return {name: expected for name, expected in found.items() if expected > 0}


def _hashing(place: Any) -> Iterator[int]:
    """Yield the buckets of each hashing queue in a part of a scenario."""
    if isinstance(place, Mapping):
        key = _BUCKETS.get(str(place.get("kind")))
        if key is not None and key in place:
            yield int(place[key])
        place = list(place.values())
    if isinstance(place, list):
        for each in place:
            yield from _hashing(each)
