"""How many users offer a load: found on a network without congestion, as in the Web study.

Le, Aikat, Jeffay and Smith (SIGCOMM 2003) set the load of a link by the number of emulated users,
found on a network without congestion. Here the group runs alone over its own topology with links
1000 times as fast (`Scenario::unconstrained`), with the seeds of the first replications. Users draw
the same pages there as in the runs, so a trial measures what the runs are offered, over the same
period. The mean of a distribution is not used, because a run with a heavy-tailed one is far off it.
`docs/decisions/0007-offered-load.md` weighs this against the alternatives.

The share of the link is close to proportional to the users, so a few trials find the number. Every
trial is an ordinary run and is kept in the store, under `calibrations`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from redtail.analysis.loads import Calibrated
from redtail.errors import RunError

if TYPE_CHECKING:
    from redtail.engine.plans import LoadRequest, Plan

REPLICATIONS = 10
"""Runs of each trial: replications 0 to 9, for any number of replications of the experiment.

So more replications do not change the number of users, nor the runs that exist.
"""

CLOSE_ENOUGH = 0.002
"""A trial ends the search when the relative error of its load is at most this."""

TRIALS = 10
"""Most trials of a search; then the nearest is taken."""

MOST_USERS = 1_000_000
"""Most users that a group may have."""

NOBODY = 1000
"""If so many users offer nothing in any replication, the search ends."""

FOLDER = "calibrations"
"""The experiment in whose name trials are stored."""

Measure = Callable[[list[tuple[str, str]]], list[float | None]]
"""Runs scenarios, and returns the metric that goes with each."""


@dataclass
class _Search:
    """The search for the users of one load.

    Attributes:
        asked: the load.
        next: how many users to try next; None at the end.
        tried: the load by the number of users.
    """

    asked: float
    next: int | None
    tried: dict[int, float] = field(default_factory=dict)

    @property
    def best(self) -> int:
        """The number of users whose load is nearest; the smaller of two as near."""
        return min(self.tried, key=lambda users: (abs(self.tried[users] - self.asked), users))

    def learn(self, users: int, load: float) -> None:
        """Take in what a trial measured, and choose the next number of users."""
        self.tried[users] = load
        near = abs(self.tried[self.best] / self.asked - 1.0) <= CLOSE_ENOUGH
        guess = self._guess()
        done = near or len(self.tried) >= TRIALS or guess in self.tried
        done = done or (load == 0.0 and users >= NOBODY)
        self.next = None if done else guess

    def _guess(self) -> int:
        """Return the number of users that trials so far point to."""
        below = [users for users, load in self.tried.items() if load < self.asked]
        above = [users for users, load in self.tried.items() if load >= self.asked]
        if below and above:
            low, high = max(below), min(above)
            if low < high:
                part = (self.asked - self.tried[low]) / (self.tried[high] - self.tried[low])
                guess = round(low + part * (high - low))
                # Between the two if there is room.
                return min(max(guess, low + 1), high - 1) if high - low > 1 else low
        users = self.best
        load = self.tried[users]
        guess = round(users * self.asked / load) if load > 0 else 10 * users
        # With a heavy tail a load far from the one asked for is of little use.
        return min(max(guess, 1), 10 * users, MOST_USERS)


def calibrate(
    plan: Plan, measure: Measure, report: Callable[[str], None] = lambda _: None
) -> tuple[Plan, list[tuple[Calibrated, ...]]]:
    """Find the users of every group that is asked for by its load.

    Args:
        plan: the experiment.
        measure: runs scenarios and returns a metric of each.
        report: called with a line for each load, once its users are known.

    Returns:
        The plan with the users, and for each case what was found.

    Raises:
        RunError: no number of users offers the load.
    """
    wanted = [(case, load) for case in range(len(plan.cases)) for load in plan.loads(case)]
    if not wanted:
        return plan, [() for _ in plan.cases]
    # Cases that differ in what an unconstrained network does not have share a search.
    searches: dict[tuple[str, float], _Search] = {}
    found_by: list[tuple[int, LoadRequest, tuple[str, float]]] = []
    for case, load in wanted:
        key = (plan.unconstrained(case, 0, load.group, 1), load.share)
        searches.setdefault(key, _Search(load.share, load.estimate))
        found_by.append((case, load, key))
    first = {key: (case, load) for case, load, key in reversed(found_by)}

    def shares(trials: list[tuple[int, LoadRequest, int, int]]) -> list[float]:
        """Measure the load of so many users of a case, in one replication each."""
        scenarios = [
            (plan.unconstrained(case, replication, load.group, users), load.metric)
            for case, load, replication, users in trials
        ]
        # The metric is a share of the fast link.
        return [
            (value or 0.0) * load.speed_up
            for value, (_, load, _, _) in zip(measure(scenarios), trials, strict=True)
        ]

    while open_ := {key: search.next for key, search in searches.items() if search.next}:
        trials = [
            (*first[key], replication, users)
            for key, users in open_.items()
            for replication in range(REPLICATIONS)
        ]
        measured = iter(shares(trials))
        for key, users in open_.items():
            search = searches[key]
            search.learn(
                users, math.fsum(next(measured) for _ in range(REPLICATIONS)) / REPLICATIONS
            )
            case, load = first[key]
            if search.next is None:
                if search.tried[search.best] == 0.0:
                    raise RunError(
                        f"traffic.{load.group}.load: {search.best} users offer nothing between the "
                        "warm-up and the end of a run; a longer run is wanted, or more pages"
                    )
                report(f"calibrated: {load.group} {load.text} of {load.link} = {search.best} users")

    trials = [
        (case, load, replication, searches[key].best)
        for key, (case, load) in first.items()
        for replication in range(plan.at_least)
    ]
    measured = iter(shares(trials))
    offered = {
        key: {replication: next(measured) for replication in range(plan.at_least)} for key in first
    }
    cases: list[list[Calibrated]] = [[] for _ in plan.cases]
    for case, load, key in found_by:
        users = searches[key].best
        cases[case].append(
            Calibrated(load.group, load.link, load.share, load.text, users, offered[key])
        )
    users_of = tuple({each.group: each.users for each in case} for case in cases)
    return replace(plan, users=users_of), [tuple(case) for case in cases]
