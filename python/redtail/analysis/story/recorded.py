"""The events that a run recorded, as its folder has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail import scenario as scenarios
from redtail.analysis.story import words
from redtail.analysis.story.events import Log, Recorded, Sender
from redtail.files import plain_bytes
from redtail.store.format import explain_read_errors
from redtail.store.parquet import read_table_of

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "events.parquet"

COLUMNS = ("time_s", "event", "reason", "link", "group", "flow", "sequence", "value")
"""The columns without which a table of events is not read."""


def table(folder: Path) -> pa.Table | None:
    """Return the table of events of a run, None when it recorded none.

    Raises:
        StoreError: it is damaged.
    """
    return read_table_of(folder, FILE, COLUMNS)


def log_of_run(folder: Path) -> Log | None:
    """Return the events of a run, None when it recorded none.

    Raises:
        StoreError: the run is damaged.
    """
    found = table(folder)
    if found is None:
        return None
    with explain_read_errors(folder):
        return log(found, json.loads(plain_bytes(folder / "scenario.json")))


def log(table: pa.Table, scenario: Mapping[str, Any]) -> Log:
    """Return events for stories.

    Args:
        table: the events.
        scenario: of the run, with the table `events` that asked for them.
    """
    links = scenarios.links(scenario)
    recorded = Recorded.of(scenario.get("events") or {}, table)
    return Log(table, recorded, words.queues_of(links), _round_trip_s(links), _senders(scenario))


def _round_trip_s(links: Mapping[str, Mapping[str, Any]]) -> float:
    """Return what every round trip takes at least; 0 where it is not known.

    >>> _round_trip_s({"bottleneck": {"delay": "20 ms"}, "return": {"delay": "5 ms"}})
    0.025
    """
    if "bottleneck" not in links:
        return 0.0  # flows of a chain take different ways
    delays = [links.get(name, {}).get("delay") for name in ("bottleneck", "return")]
    return sum(scenarios.seconds(each) for each in delays if isinstance(each, str))


# Recoveries that do not count duplicate acknowledgements: RFC 8985.
_BY_TIME = ("linux", "rack")


def _senders(scenario: Mapping[str, Any]) -> dict[str, Sender]:
    """Return by group what is known of its senders."""
    found = {}
    for group in scenario["traffic"]:
        tcp = group.get("tcp")
        if not isinstance(tcp, dict):
            continue
        size = tcp.get("mss")
        payload = round(scenarios.rate_or_size(size)) if isinstance(size, str) else None
        counts = tcp.get("recovery") not in (None, *_BY_TIME)
        duplicates = tcp.get("dup_thresh") if counts else None
        found[str(group.get("name"))] = Sender(payload, duplicates)
    return found
