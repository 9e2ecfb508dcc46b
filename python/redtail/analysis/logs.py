"""Event logs that reached their limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redtail import metrics as names
from redtail.store.folders import last_event

if TYPE_CHECKING:
    from redtail.analysis.results import Results


def warnings(results: Results) -> list[str]:
    """Return a warning about runs whose event log left events out, or nothing."""
    if "events" not in results.scenario:
        return []
    left_out = [
        last["value"]
        for case in results.cases
        for run in case.runs.values()
        if (last := last_event(run.folder)) is not None and last["event"] == "log_full"
    ]
    if not left_out:
        return []
    limit = results.scenario["events"]["limit"]
    return [
        f"the event log of {len(left_out)} of {names.counted(results.run_count, 'run')} reached "
        f"its limit, {limit} rows: up to {max(left_out):.0f} later events were left out; "
        "events.limit, kinds, groups, from and to say what is recorded"
    ]
