"""The load that a group was asked to offer, and the users that offer it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


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
