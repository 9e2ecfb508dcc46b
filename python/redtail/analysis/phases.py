"""The phases of runs, with their times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from redtail import metrics as names

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results

BEGIN, END = "begin_time", "end_time"
"""The metrics of a phase that are its times, in seconds from the start of the run."""


def prefix(number: int) -> str:
    """Return what stands before the names of a phase's metrics.

    >>> prefix(2)
    'phase2.'
    """
    return f"phase{number}."


def metrics(results: Results) -> list[str]:
    """Return the names of the metrics that phases have, without that of a phase, in their order."""
    of_phases = (name for name in results.metric_names if names.phase(name))
    return list(dict.fromkeys(name.partition(".")[2] for name in of_phases))


def spans(results: Results, case: CaseResult) -> dict[int, tuple[float, float]]:
    """Return begin and end of each phase of a case, in seconds, by its number.

    Phases whose times are not known, as those of results of an earlier version, are left out.
    """
    found = {}
    for number in results.phases:
        begin, end = (case.metric(prefix(number) + name).mean for name in (BEGIN, END))
        if not (math.isnan(begin) or math.isnan(end)):
            found[number] = (begin, end)
    return found


def whole(spans: dict[int, tuple[float, float]]) -> tuple[float, float] | None:
    """Return begin and end of the measurement period, which the phases divide; None without them.

    >>> whole({1: (2.0, 5.0), 2: (5.0, 9.0)}), whole({})
    ((2.0, 9.0), None)
    """
    if not spans:
        return None
    return min(begin for begin, _ in spans.values()), max(end for _, end in spans.values())
