"""Factors that change along with another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class HasLabels(Protocol):
    """A case, of a plan or of results."""

    @property
    def labels(self) -> Mapping[str, str]:
        """A short text for the value of each factor, by its dotted key."""
        ...


def changing_along(cases: Sequence[HasLabels], factor: str) -> tuple[str, ...]:
    """Return the other factors whose settings follow from that of `factor` in all cases.

    Those of one `[[factors.zip]]` do, and two cases that differ in `factor` cannot be equal in
    them. A factor with one setting is none of them, since it is equal in all cases.
    """
    found = []
    for key in cases[0].labels if cases else ():
        settings: dict[str, set[str]] = {}
        for case in cases:
            settings.setdefault(case.labels[factor], set()).add(case.labels[key])
        several = len(set.union(*settings.values())) > 1
        if key != factor and several and all(len(each) == 1 for each in settings.values()):
            found.append(key)
    return tuple(found)
