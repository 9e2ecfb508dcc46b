"""What the engine knows without a run: schema, names, examples, values of texts, its version.

It must not know experiments: those are plans of `engine`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from redtail import native
from redtail.errors import SpecError


def schema() -> dict[str, Any]:
    """Return the JSON schema of the experiment file."""
    found: dict[str, Any] = json.loads(native.module().schema())
    return found


def hint(word: str, known: Iterable[str]) -> str:
    """Return what a user probably meant by a word, as the end of a message.

    Words of ns-2, ns-3, tc and other programs are known too. Empty if nothing is like it.

    >>> hint("DropTail", ["red", "tail-drop"])
    '; did you mean "tail-drop" ("DropTail" in ns-2)?'
    """
    # A stand-in for the native module may not have the function.
    found = getattr(native.module(), "hint", None)
    return "" if found is None else str(found(word, list(known)))


def presets() -> Any:
    """Return the TCP presets as the native module describes them."""
    return json.loads(native.module().presets())


def metric_definitions() -> list[dict[str, Any]]:
    """Return the definitions of all metrics."""
    found: list[dict[str, Any]] = json.loads(native.module().metrics())
    return found


def units() -> list[dict[str, Any]]:
    """Return the units that an experiment can give for its own metrics."""
    found: list[dict[str, Any]] = json.loads(native.module().units())
    return found


def event_kinds() -> list[dict[str, Any]]:
    """Return what each kind of events of a log means: name, value, reasons."""
    found: list[dict[str, Any]] = json.loads(native.module().event_kinds())
    return found


def queue_keys(queue: Mapping[str, Any]) -> dict[str, Any]:
    """Return all keys of a queue with their values, defaults filled in.

    Args:
        queue: its table, with `kind`.

    Raises:
        SpecError: it is no queue.
    """
    with native.translated():
        found: dict[str, Any] = json.loads(
            native.module().queue_keys(json.dumps(queue_by_kind(queue)))
        )
    return found


def queue_by_kind(queue: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of a queue as the native module takes it, those of its classes as well.

    >>> queue_by_kind({"kind": "tbf", "rate": "1 Mbit/s", "queue": {"kind": "codel"}})
    {'tbf': {'rate': '1 Mbit/s', 'queue': {'codel': {}}}}
    """
    keys = {key: value for key, value in queue.items() if key != "kind"}
    if isinstance(keys.get("queue"), Mapping):
        keys["queue"] = queue_by_kind(keys["queue"])
    if "class" in keys:
        keys["class"] = [
            {**each, "queue": queue_by_kind(each["queue"])} if "queue" in each else dict(each)
            for each in keys["class"]
        ]
    return {str(queue["kind"]): keys}


def metric_names(scenario: str) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the names of the metrics that runs of a scenario can have.

    Args:
        scenario: the scenario's canonical JSON.

    Returns:
        Each name with the place of its definition among `metric_definitions`; and what stands in
        front of names that queues of users choose.

    Raises:
        SpecError: the text is not a scenario.
    """
    with native.translated():
        known, free = native.module().metric_names(scenario)
    return dict(known), tuple(free)


def rate_steps(scenario: str, link: str) -> list[tuple[float, float]] | None:
    """Return the rates of a link, in bit/s, each with the time in seconds from which it holds.

    Args:
        scenario: the scenario's canonical JSON.
        link: the name of the link in results.

    Returns:
        The rates; none for a link with a trace, and for a name that no link has.

    Raises:
        SpecError: the text is not a scenario.
    """
    with native.translated():
        found = native.module().rate_steps(scenario, link)
    return None if found is None else [(at, float(rate)) for at, rate in found]


def traffic_examples() -> dict[str, str]:
    """Return every kind of traffic with the keys of a small group of it."""
    return dict(native.module().traffic_examples())


def queue_examples() -> dict[str, str]:
    """Return every kind of queue with the keys of a small queue of it."""
    return dict(native.module().queue_examples())


def rate_bps(key: str, text: str) -> float:
    """Return a rate in bit/s from its text.

    Args:
        key: what it is for, for the message.
        text: the rate with its unit.

    Raises:
        SpecError: the text is no rate.
    """
    with native.translated():
        return float(native.module().rate_bps(key, text))


def time_s(key: str, text: str) -> float:
    """Return a time in s from its text; arguments and errors as for `rate_bps`."""
    with native.translated():
        return float(native.module().time_s(key, text))


def si_value(text: str) -> tuple[float, str]:
    """Return what `redtail.quantities.parse` returns."""
    with native.translated():
        value, unit = native.module().si_value(text)
        return float(value), str(unit)


def advise(**situation: Any) -> dict[str, Any]:
    """Return parameters for a queue, as `redtail.lines.advice.parameters` describes them.

    Raises:
        SpecError: the situation makes no sense.
    """
    flows = situation["flows"]
    if not 0 <= flows < 2**64:
        raise SpecError(
            f"flows = {flows} is no number of flows to plan for; accepted: 1 to 1000000",
            key="flows",
        )
    with native.translated():
        found: dict[str, Any] = json.loads(native.module().advise(**situation))
    return found


def code_version() -> str:
    """Return the hash of the engine's sources: results of another one are not reused."""
    return str(native.module().code_version())


def version() -> str:
    """Return redtail's version."""
    return str(native.module().version())
