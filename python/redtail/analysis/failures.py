"""Runs that failed: which, why, and what repeats one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redtail import metrics as names
from redtail.store.format import FAILED

# Of runs that failed for the same reason, so many are named after the first.
_SHOWN = 3


@dataclass(frozen=True)
class Failure:
    """A run that failed.

    Attributes:
        key: what its folder would be called.
        run: its case and replication in words.
        reason: why it failed.
        command: what repeats it alone, None when its experiment is not in a file.
        log: the file with the traceback and the scenario, None when it could not be written.
    """

    key: str
    run: str
    reason: str
    command: str | None
    log: Path | None

    @property
    def kind(self) -> str:
        """The reason without the parts that differ between runs: times, addresses, traceback."""
        lines = self.reason.splitlines() or [""]
        return re.sub(r"\d+", "0", f"{lines[0]}\n{lines[-1]}")

    @property
    def text(self) -> str:
        """The message for a user who sees only this failure."""
        lines = [f"{self.run}: {self.reason}"]
        if self.command:
            lines.append(f"To repeat this run alone: {self.command}")
        if self.log:
            lines.append(f"Its traceback and scenario: {self.log}")
        return "\n".join(lines)


def summary(failures: Sequence[Failure], runs: int, folder: Path) -> str:
    """Return what failed and why, a paragraph for each reason; empty when nothing did.

    Args:
        failures: the runs that failed.
        runs: how many did not.
        folder: of the experiment, which has the logs.
    """
    if not failures:
        return ""
    reasons: dict[str, list[Failure]] = {}
    for each in failures:
        reasons.setdefault(each.kind, []).append(each)
    total = names.counted(runs + len(failures), "run")
    lines = [f"{len(failures)} of {total} failed and are missing in the results:"]
    for same in sorted(reasons.values(), key=len, reverse=True):
        lines.append(same[0].text)
        shown = same[1 : 1 + _SHOWN]
        if shown:
            lines.append(
                f"For the same reason: {'; '.join(each.run for each in shown)}"
                + (f"; and {len(same) - 1 - len(shown)} more" if len(same) - 1 > len(shown) else "")
            )
    if any(each.log for each in failures):
        lines.append(f"Each has a log in {folder / FAILED}/")
    return "\n".join(lines)
