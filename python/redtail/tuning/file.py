"""The experiment file that a search results in.

It is the file that the search began with, comments included, with the queue that was found beside
its own queues, a name of its own, and the seed and replications of the report: to run it shows the
report's numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from redtail import escape, experiment
from redtail.scenario import hop_names
from redtail.tuning.bench import Queue

if TYPE_CHECKING:
    from redtail.tuning.found import Tuned

HEADER = "# Made by redtail tune."
"""The first line of each such file."""


def experiment_text(tuned: Tuned) -> str:
    """Return the experiment file of a result."""
    import tomlkit
    from tomlkit import items

    finding = tuned.finding
    text, _, form = experiment.read(finding.source)
    document: Any = tomlkit.parse(text) if form == "toml" else tomlkit.document()
    if form != "toml":
        for key, value in json.loads(text).items():
            document[key] = value
    for setting in finding.sets:
        key, _, value = setting.partition("=")
        _put(document, key.strip(), _argument(value.strip()))
    document["name"] = finding.name
    document["seed"] = finding.seed
    document["replications"] = finding.replications
    queues = tomlkit.array().multiline(True)
    for queue in (*(each.queue for each in tuned.own), tuned.queue):
        queues.append(_inline(queue))
    factors = document.get("factors")
    if not isinstance(factors, items.Table | items.InlineTable):
        document["factors"] = tomlkit.table()
        factors = document["factors"]
    document["factors"] = _with_queues(factors, finding.key, queues)
    made = str(tomlkit.dumps(document)).lstrip("\n")
    return "\n".join([HEADER, *_explained(tuned), "", made])


def _explained(tuned: Tuned) -> list[str]:
    """Return how the queue was found, as comments."""
    finding = tuned.finding
    loads = "the worst load counts" if finding.over == "worst" else "the mean over loads counts"
    lines = [
        f"{tuned.queue.label}: {', '.join(aim.text for aim in finding.objectives)}",
        *(f"subject to {aim.text}" for aim in finding.bounds),
        f"varied: {'; '.join(axis.text for axis in finding.axes)}",
        f"{len(tuned.candidates)} candidates by {finding.sampler}; {loads}",
        "seed and replications are those of the report, which the search has not used",
        *(f"in it: --set {setting}" for setting in finding.sets),
    ]
    # A label may have characters that end the line.
    return [f"# {escape.name(line)}" for line in lines]


def _with_queues(factors: Mapping[str, Any], key: str, queues: Any) -> Any:
    """Return the table [factors] with the queues, at the place of those that it had.

    Lists of tables end it: what follows one would be part of its last table.
    """
    import tomlkit
    from tomlkit import items

    table = tomlkit.table()
    listed = {**factors, key: queues}
    for other in sorted(listed, key=lambda name: isinstance(listed[name], items.AoT)):
        table.add(items.SingleKey(other), listed[other])
    return table


def _inline(queue: Queue) -> Any:
    import tomlkit

    return tomlkit.parse(f"queue = {queue.toml}")["queue"]


def _put(document: Any, key: str, value: Any) -> None:
    """Set a value as `--set` does: among the factors, in the values of a factor, or in the file."""
    factors = document.get("factors", {})
    if key.startswith("factors."):
        name = key.removeprefix("factors.").strip('"')
        document.setdefault("factors", {})[name] = value
        return
    if key in factors:
        factors[key] = value if isinstance(value, list) else [value]
        return
    for name, values in factors.items():
        if key.startswith(f"{name}."):
            for each in values:
                _below(each, key.removeprefix(f"{name}.").split("."), value)
            return
    _below(document, key.split("."), value)


def _below(place: Any, steps: list[str], value: Any) -> None:
    """Set a value below a table; groups of traffic and hops of a chain go by their names."""
    for step in steps[:-1]:
        if isinstance(place.get(step), list) and step == "traffic":
            rest = steps[steps.index(step) + 1 :]
            for group in place[step]:
                if group.get("name") == rest[0]:
                    _below(group, rest[1:], value)
            return
        if step != "hop" and "hop" in place:
            place = dict(zip(hop_names(place["hop"]), place["hop"], strict=True))[step]
            continue
        place = place.setdefault(step, {})
    place[steps[-1]] = value


def _argument(text: str) -> Any:
    """Return the value of `--set KEY=VALUE`: TOML, or else a text without quotes."""
    import tomlkit
    from tomlkit.exceptions import ParseError

    try:
        return tomlkit.parse(f"value = {text}")["value"]
    except ParseError:
        return text
