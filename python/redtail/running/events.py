"""The events of a run: those that it recorded, or those of the same run made again.

A simulated run is a function of its scenario, and recording never changes a run. So a run of
`sim` that recorded no events is made again with events, by the same code, and what it measures is
compared with what is stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail import facts
from redtail.analysis.story import recorded
from redtail.analysis.story.events import ARRIVAL, FULL, PACKETS
from redtail.engine import batches
from redtail.errors import RedtailError, SpecError, StoreError
from redtail.store import runs
from redtail.store.folders import table_of_outcome

if TYPE_CHECKING:
    import pyarrow as pa

    from redtail.outcomes import Outcome

LIMIT = 1_000_000
"""The most events of a run that is made again: about 125 MB."""


@dataclass(frozen=True)
class RunEvents:
    """The events of one run.

    Attributes:
        key: of the run.
        table: the events in the order in which they happened.
        scenario: of the run; its table `events` says which were asked for.
        backend: what made it.
        again: whether the run was made again for them.
    """

    key: str
    table: pa.Table
    scenario: dict[str, Any]
    backend: str
    again: bool


def of_run(folder: Path, wanted: Mapping[str, Any] | None = None) -> RunEvents:
    """Return the events of a run.

    Args:
        folder: of the run; of a run in a segment, the one it would have.
        wanted: keys of `[events]` for a run that is made again; by default all but the events of
            every packet.

    Raises:
        StoreError: the run is damaged; or it has no events and cannot be made again.
    """
    found = runs.show(folder.parent, folder)
    scenario, manifest = found["scenario"], found["manifest"]
    table = recorded.table(folder) if "events" in scenario else None
    if table is not None:
        return RunEvents(found["run"], table, scenario, manifest["backend"], again=False)
    why = why_not_again(scenario, manifest)
    if why:
        raise StoreError(f"{folder}: this run recorded no events, and {why}")
    told = [kind for kind in kinds() if kind not in PACKETS]
    asked = {"kinds": told, "from": "0 s", "limit": LIMIT, **(wanted or {})}
    scenario = {**scenario, "events": asked}
    outcome = made_again(scenario, found["metrics"], folder)
    table = table_of_outcome(outcome, "events")
    return RunEvents(found["run"], table, scenario, manifest["backend"], again=True)


def arrivals(folder: Path, flows: Sequence[int]) -> pa.Table | None:
    """Return the arrivals of the packets of some flows at links, from the run made again.

    None for a run that cannot be made again.

    Raises:
        StoreError: the run is damaged.
    """
    found = runs.show(folder.parent, folder)
    if why_not_again(found["scenario"], found["manifest"]):
        return None
    asked = {"kinds": [ARRIVAL, FULL], "flows": list(flows), "from": "0 s", "limit": LIMIT}
    scenario = {**found["scenario"], "events": asked}
    return table_of_outcome(made_again(scenario, found["metrics"], folder), "events")


def kinds() -> list[str]:
    """Return the kinds of events."""
    return [each["name"] for each in facts.event_kinds()]


def why_not_again(scenario: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    """Return why a run cannot be made again; empty when it can."""
    remedy = "give the experiment [events] (or --events) and run it again"
    if manifest["backend"] != batches.BACKEND:
        return (
            f"a run of backend {manifest['backend']} is not a function of its scenario, so it "
            f"cannot be made again with them; {remedy}"
        )
    if manifest["code_version"] != facts.code_version():
        return (
            f"it was made by other code (version {manifest['code_version']}, this is "
            f"{facts.code_version()}), which may decide otherwise; {remedy}"
        )
    named = _of_users(scenario)
    if named:
        return f"its scenario names {named}, which only its experiment knows; {remedy}"
    return ""


def _of_users(part: Any) -> str:
    """Return what of the user's a scenario names that is not in it; empty without any."""
    if isinstance(part, dict):
        if isinstance(part.get("class"), str):
            return f"the class {part['class']!r}"
        if part.get("kind") == "trace":
            return "a table of connections"
        part = list(part.values())
    if isinstance(part, list):
        return next(filter(None, map(_of_users, part)), "")
    return ""


def made_again(
    scenario: Mapping[str, Any],
    metrics: Mapping[str, float],
    folder: Path,
    make: Callable[[str], Outcome] = batches.run_one,
) -> Outcome:
    """Make a run again to record more of it, and check that it is the same run.

    Args:
        scenario: of the run, with what is to be recorded.
        metrics: what the run measured.
        folder: of the run.
        make: makes a run of a scenario.

    Raises:
        RedtailError: it is another run, which is a fault of redtail.
        StoreError: it cannot be made.
    """
    try:
        outcome = make(json.dumps(scenario, ensure_ascii=False))
    except SpecError as error:
        raise StoreError(f"{folder}: the run cannot be made again: {error}") from error
    stored = {name: value for name, value in metrics.items() if name in outcome.metrics}
    if stored != {name: outcome.metrics[name] for name in stored}:
        raise RedtailError(
            f"{folder}: the run that was made again to record more of it measured something else; "
            "this is a fault of redtail"
        )
    return outcome
