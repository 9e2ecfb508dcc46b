"""The verdict on a finding, from what its checks find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redtail.errors import RedtailError
from redtail.studies.checks import TESTS, Answer, Evidence, located
from redtail.studies.definition import Check, Finding, Judgement
from redtail.studies.grid import Grid


@dataclass(frozen=True)
class Tested:
    """A check and what it found."""

    check: Check
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Verdict:
    """A finding, what was measured, and what follows.

    Attributes:
        finding: the finding.
        judgement: what follows.
        tested: the checks with their evidence; after conditions that do not hold or that are
            undecided, these first.
        why: the reason in words.
    """

    finding: Finding
    judgement: Judgement
    tested: tuple[Tested, ...]
    why: str


def judge(finding: Finding, grids: Mapping[str, Grid]) -> Verdict:
    """Judge a finding by the results, by comparison or view, that it looks at."""
    if not finding.checks:
        return Verdict(finding, Judgement.UNTESTED, (), finding.untested)
    looked_at = {check.comparison for check in (*finding.checks, *finding.conditions)}
    missing = sorted(looked_at - grids.keys())
    if missing:
        why = f"this scale does not run: {', '.join(missing)}"
        return Verdict(finding, Judgement.UNTESTED, (), why)
    absent = _absent([*finding.checks, *finding.conditions], grids)
    if absent:
        why = f"no runs of the queue: {', '.join(absent)}"
        return Verdict(finding, Judgement.UNTESTED, (), why)

    conditions = tuple(_tested(check, grids) for check in finding.conditions)
    of_conditions = [row for each in conditions for row in each.evidence]
    for answer, judgement, how in (
        (Answer.NO, Judgement.UNTESTED, "not met"),
        (Answer.UNDECIDED, Judgement.UNDECIDED, "undecided"),
    ):
        for row in of_conditions:
            if row.answer is answer:
                why = f"a condition for the test is {how}: {row.about}"
                return Verdict(finding, judgement, conditions, why)

    tested = tuple(_tested(check, grids) for check in finding.checks)
    answers = [row.answer for each in tested for row in each.evidence]
    inside, outside, undecided = map(answers.count, Answer)
    why = f"{inside} of {len(answers)} numbers are within their bounds"
    why += f", {outside} are outside, {undecided} undecided" if undecided else ""
    # The undecided numbers may be all inside, all outside, or some of each.
    possible = {
        _follows(inside + more, outside + undecided - more, part=bool(finding.untested))
        for more in range(undecided + 1)
    }
    judgement = possible.pop() if len(possible) == 1 else Judgement.UNDECIDED
    if finding.untested:
        why += f"; not tested: {finding.untested}"
    return Verdict(finding, judgement, tested, why)


def _follows(inside: int, outside: int, *, part: bool) -> Judgement:
    """Return the verdict from the numbers inside and outside their bounds.

    Args:
        inside: how many are inside.
        outside: how many are outside.
        part: whether the tests cover a part of the finding only.
    """
    if not inside:
        return Judgement.FAILS
    return Judgement.IN_PART if outside or part else Judgement.HOLDS


def _absent(checks: Sequence[Check], grids: Mapping[str, Grid]) -> list[str]:
    """Return the queues that checks name and that were not run, as when no kernel has them."""
    found: dict[str, None] = {}
    for check in checks:
        grid = grids[check.comparison]
        for key in ("queues", "to"):
            named = check.parameters.get(key, ())
            for label in named if isinstance(named, list) else ():
                if label not in (*grid.queues, *grid.variants):
                    found[label] = None
    return list(found)


def _tested(check: Check, grids: Mapping[str, Grid]) -> Tested:
    grid = grids[check.comparison]
    try:
        given = located(check.test, check.parameters, grid)
    except RedtailError as error:
        raise RedtailError(f"{check.comparison}: {check.test}: {error}") from None
    return Tested(check, tuple(TESTS[check.test](grid, **given)))
