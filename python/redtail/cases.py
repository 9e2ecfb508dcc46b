"""The cases of an experiment: combinations of the values of its factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redtail.metrics import case_title


@dataclass(frozen=True)
class Case:
    """One combination of factor values.

    Attributes:
        factors: the value of each factor as the experiment gives it, by its dotted key.
        labels: a short text for each of these values.
        settings: every key that the case sets and its value, if these are not its factors.
    """

    factors: dict[str, Any]
    labels: dict[str, str]
    settings: dict[str, Any] | None = None

    @property
    def title(self) -> str:
        """The case in one line; empty for an experiment without factors."""
        return case_title(self.factors, self.labels)
