"""The load that a group was asked to offer, and the users that offer it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redtail.analysis.results import Results


@dataclass(frozen=True)
class Calibrated:
    """The users found for a load.

    Attributes:
        group: the group's name.
        link: what results call the link.
        asked: the load, a share of the link's rate.
        text: the load as it is printed.
        users: how many users offer it.
        offered: the share that they offer in each replication, by its number.
    """

    group: str
    link: str
    asked: float
    text: str
    users: int
    offered: dict[int, float]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it, where keys are texts."""
        offered = {str(number): share for number, share in self.offered.items()}
        return {**asdict(self), "offered": offered}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Calibrated:
        """Return what `as_json` returned."""
        offered = {int(number): share for number, share in found["offered"].items()}
        return cls(**{**found, "offered": offered})


def alike(
    loads: Iterable[tuple[Mapping[str, Any], str, str, float, str, int]], *, about: bool
) -> list[str]:
    """Return a warning for each two loads of a group that are the same number of users.

    Args:
        loads: of each case and group, what the case sets, the group, the link, the load as a share
            and as it is printed, and the users.
        about: whether the users are an estimate.

    >>> cases = [({"traffic.web.load": text}, "web", "hop1", share, text, 1)
    ...          for share, text in ((0.04, "4 %"), (0.05, "5 %"))]
    >>> alike(cases, about=False)[0].partition(", so ")[0]
    'traffic.web.load: 4 % and 5 % of hop1 are the same number of users, 1'
    """
    found: dict[tuple[str, str, str, int], dict[float, str]] = {}
    for settings, group, link, share, text, users in loads:
        # Loads are compared where all else is equal.
        others = {
            key: value
            for key, value in settings.items()
            if key not in (f"traffic.{group}.load", "case.name")
        }
        place = (json.dumps(others, sort_keys=True, default=str), group, link, users)
        found.setdefault(place, {})[share] = text
    return list(
        dict.fromkeys(
            f"traffic.{group}.load: {' and '.join(texts[share] for share in sorted(texts))} of "
            f"{link} are {'about ' if about else ''}the same number of users, {users}, so their "
            f"cases {'may be' if about else 'are'} the same runs; loads further apart are wanted, "
            "or users who offer less each"
            for (_, group, link, users), texts in found.items()
            if len(texts) > 1
        )
    )


def warnings(results: Results) -> list[str]:
    """Return a warning for each two loads that were found to be the same number of users."""
    return alike(
        (
            (case.settings, load.group, load.link, load.asked, load.text, load.users)
            for case in results.cases
            for load in case.loads
        ),
        about=False,
    )
