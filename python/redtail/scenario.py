"""What is in a scenario: the JSON from which a run is made, with every default filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_QUANTITY = re.compile(r"\s*([0-9][0-9_.]*(?:e[+-]?[0-9]+)?)\s*([A-Za-zµ/]+|%)\s*")
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "min": 60.0, "h": 3600.0}
"""Units of time in a scenario, in seconds."""

_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


def links(scenario: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every link of a scenario by its name in results.

    >>> list(links({"bottleneck": {"return": {}}}))
    ['bottleneck', 'return']
    >>> list(links({"chain": {"hop": [{"return": {}}, {}]}}))
    ['hop1', 'hop1.return', 'hop2']
    >>> list(links({"chain": {"hop": [{"name": "left", "return": {}}]}}))
    ['left', 'return']
    """
    found = {}
    if "bottleneck" in scenario:
        found["bottleneck"] = scenario["bottleneck"]
        if "return" in scenario["bottleneck"]:
            found["return"] = scenario["bottleneck"]["return"]
    hops = scenario.get("chain", {}).get("hop", ())
    for name, hop in zip(hop_names(hops), hops, strict=True):
        found[name] = hop
        if "return" in hop:
            found["return" if len(hops) == 1 else f"{name}.return"] = hop["return"]
    return found


def hop_names(hops: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what keys and results call the hops of a chain: their names, or their numbers.

    >>> hop_names([{"name": "left"}, {}])
    ['left', 'hop2']
    """
    return [str(hop.get("name", f"hop{number}")) for number, hop in enumerate(hops, start=1)]


def is_return(link: str) -> bool:
    """Return whether a link, by its name in results, is one of the way back.

    >>> is_return("return"), is_return("left.return"), is_return("left-return")
    (True, True, False)
    """
    return link == "return" or link.endswith(".return")


def measures(scenario: Mapping[str, Any]) -> set[str]:
    """Return the names of the metrics that programs of a scenario measure.

    >>> measures({"traffic": [{"kind": "program", "name": "a", "measure": {"rtt": {}}}]})
    {'a.measured.rtt'}
    """
    groups = (group for group in scenario["traffic"] if group.get("kind") == "program")
    return {
        f"{group['name']}.measured.{name}" for group in groups for name in group.get("measure", {})
    }


def series_key(table: str) -> str:
    """Return the key of the [series] section that asks for a table of series."""
    return {"flows": "windows", "controllers": "windows", "groups": "goodput"}.get(table, table)


def quantity(value: object) -> tuple[float | None, str]:
    """Return the number and the unit of a value; None for what is neither number nor quantity.

    >>> quantity("10 Mbit/s"), quantity(5), quantity("RED")
    ((10.0, 'Mbit/s'), (5.0, ''), (None, ''))
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), ""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None, ""
    return float(match[1].replace("_", "")), match[2]


def flow_count(group: Mapping[str, Any]) -> int:
    """Return how many flows or users a group has in all activations; one where a table says it.

    >>> flow_count({"flows": 3}), flow_count({"users": 20}), flow_count({"file": "table.csv"})
    (3, 20, 1)
    >>> flow_count({"flows": 3, "repeat": "60 s", "activations": 2})
    6
    """
    return flows_at_once(group) * int(group.get("activations", 1))


def flows_at_once(group: Mapping[str, Any]) -> int:
    """Return how many flows or users each activation of a group has; one where a table says it.

    >>> flows_at_once({"flows": 3, "repeat": "60 s", "activations": 2})
    3
    """
    count = group.get("flows", group.get("users", 1))
    return count if isinstance(count, int) else 1


def seconds(text: str) -> float:
    """Return a time in seconds from its text in a scenario.

    >>> seconds("60 s"), seconds("1.5 ms")
    (60.0, 0.0015)
    """
    number, unit = quantity(text)
    assert number is not None
    return number * TIMES[unit]


def rate_or_size(text: str) -> float:
    """Return a rate in bit/s or a size in bytes from its text in a scenario.

    >>> rate_or_size("1.5 Mbit/s"), rate_or_size("40 B")
    (1500000.0, 40.0)
    """
    number, unit = quantity(text)
    assert number is not None, text
    return number * _FACTORS[unit.removesuffix("bit/s").removesuffix("B")]
