"""The network of an experiment as a drawing: routers, links, queues, and a lane for each group.

Here is what is drawn where; `templates/network.svg` draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redtail import escape
from redtail import metrics as names
from redtail.scenario import hop_names, is_return, links

if TYPE_CHECKING:
    from redtail.analysis.results import Results

WIDTH = 760
"""Width of the drawing in its own units, which are about pixels."""

_MARGIN = 40
_CHAIN_Y = 74
_RETURN_ROOM = 76
_FIRST_LANE = 84
_LANE = 52
_VALUES_SHOWN = 4


@dataclass(frozen=True)
class Link:
    """A link, with the queue in front of it.

    Attributes:
        x1, x2, y: where it begins and ends; `x1` is that of the router that sends.
        parts: rate and delay, each with whether the experiment varies it.
        queue: its queue in words.
        compared: whether the experiment varies that.
    """

    x1: float
    x2: float
    y: float
    parts: tuple[tuple[str, bool], ...]
    queue: str
    compared: bool

    @property
    def backward(self) -> bool:
        """Whether it goes from right to left."""
        return self.x2 < self.x1


@dataclass(frozen=True)
class Lane:
    """A group of traffic: which routers its data cross, and what it is.

    Attributes:
        x1, x2, y: from where to where its data go.
        name: of the group.
        parts: what it is, each with whether the experiment varies it.
    """

    x1: float
    x2: float
    y: float
    name: str
    parts: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Drawing:
    """All that is drawn.

    Attributes:
        routers: the centre of each.
        y: of the routers.
        links: all links.
        lanes: a lane for each group.
        height: of the drawing.
        caption: the same in words, for those who do not see it.
    """

    routers: tuple[float, ...]
    y: float
    links: tuple[Link, ...]
    lanes: tuple[Lane, ...]
    height: float
    caption: str


def varied(results: Results) -> dict[str, list[str]]:
    """Return what the experiment varies: the labels of each key, by the dotted key.

    Cases that the file lists by name set keys of their own; where a case does not set one, it has
    what the file has.
    """
    found = {
        key: list(dict.fromkeys(case.labels.get(key, "") for case in results.cases))
        for key in results.factors
        if key != names.CASE_NAME
    }
    for key in dict.fromkeys(key for case in results.cases for key in case.own or ()):
        given = (
            (case.own or {}).get(key, _in_file(results.scenario, key)) for case in results.cases
        )
        found.setdefault(key, list(dict.fromkeys(map(_value_text, given))))
    return found


def _in_file(scenario: Mapping[str, Any], key: str) -> Any:
    """Return what a scenario has under a dotted key of an experiment file; None for nothing."""
    found: Any = scenario
    for part in key.split("."):
        if isinstance(found, list):
            found = next((each for each in found if each.get("name") == part), None)
        elif isinstance(found, Mapping) and part != "hop" and "hop" in found:
            found = dict(zip(hop_names(found["hop"]), found["hop"], strict=True)).get(part)
        else:
            found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _value_text(value: Any) -> str:
    """Return the value of a key in a few words.

    >>> _value_text({"kind": "fq-codel"}), _value_text({"preset": "linux"}), _value_text(True)
    ('fq codel', 'linux', 'true')
    """
    if isinstance(value, Mapping):
        words = value.get("label") or value.get("preset")
        return str(words or value.get("kind", "others")).replace("-", " ")
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)


def drawing(scenario: Mapping[str, Any], settings: Mapping[str, Sequence[str]]) -> Drawing | None:
    """Return the drawing of a network; None when the scenario does not say what it is.

    Args:
        scenario: the first run of the first case.
        settings: the labels of each factor, by its dotted key.
    """
    found = links(scenario)
    if not found:
        return None
    hops = [name for name in found if not is_return(name)]
    step = (WIDTH - 2 * _MARGIN) / max(len(hops), 1)
    routers = tuple(_MARGIN + step * place for place in range(len(hops) + 1))
    returns = any(map(is_return, found))
    drawn = []
    for name, link in found.items():
        backward = is_return(name)
        place = 0 if name == "return" else hops.index(name.removesuffix(".return"))
        ends = (routers[place], routers[place + 1])
        key = link_key(name, scenario)
        labels = _varied(settings, f"{key}.queue")
        drawn.append(
            Link(
                x1=ends[1] if backward else ends[0],
                x2=ends[0] if backward else ends[1],
                y=_CHAIN_Y + (_RETURN_ROOM if backward else 0),
                parts=tuple(_link_parts(link, key, settings)),
                queue=_several(labels) if labels else _queue_text(link.get("queue", {})),
                compared=bool(labels),
            )
        )
    top = _CHAIN_Y + (_RETURN_ROOM if returns else 0) + _FIRST_LANE
    lanes: list[Lane] = []
    for group in scenario.get("traffic", ()):
        first = routers[int(group.get("first_hop", 1)) - 1]
        last = routers[int(group.get("last_hop", len(hops)))]
        forward = group.get("direction", "forward") == "forward"
        lanes.append(
            Lane(
                x1=first if forward else last,
                x2=last if forward else first,
                y=top + _LANE * len(lanes),
                name=escape.name(str(group["name"])),
                parts=tuple(_parts(group, settings)),
            )
        )
    return Drawing(
        routers=routers,
        y=_CHAIN_Y,
        links=tuple(drawn),
        lanes=tuple(lanes),
        height=top + _LANE * len(lanes) - _LANE / 2 + 4,
        caption=_caption(drawn, lanes),
    )


def link_key(name: str, scenario: Mapping[str, Any]) -> str:
    """Return the key under which the experiment file has a link, by its name in results."""
    if "chain" not in scenario:
        return "bottleneck" if name == "bottleneck" else "bottleneck.return"
    (first, *_) = hop_names(scenario["chain"]["hop"])
    return f"chain.{first}.return" if name == "return" else f"chain.{name}"


def _varied(settings: Mapping[str, Sequence[str]], key: str) -> list[str]:
    """Return the labels of a factor, or of one that is a part of what `key` names."""
    for factor, labels in settings.items():
        if factor == key:
            return list(labels)
        if factor.startswith(f"{key}."):
            part = factor.removeprefix(f"{key}.").replace("_", " ")
            return [f"{part} {_several(labels)}"]
    return []


def _several(labels: Sequence[str]) -> str:
    """Return the settings of a factor in a few words."""
    shown = " · ".join(escape.name(label) for label in labels[:_VALUES_SHOWN])
    more = len(labels) - _VALUES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _queue_text(queue: Mapping[str, Any]) -> str:
    words = str(queue.get("label") or queue.get("kind", "")).replace("-", " ")
    limit = queue.get("limit")
    return escape.name(f"{words}, {limit}" if isinstance(limit, str) else words)


def _link_parts(
    link: Mapping[str, Any], key: str, settings: Mapping[str, Sequence[str]]
) -> list[tuple[str, bool]]:
    """Return the rate and the delay of a link."""
    parts = []
    for part in ("rate", "delay"):
        labels = settings.get(f"{key}.{part}")
        if labels:
            parts.append((_several(labels), True))
        elif part == "rate" and ("rate_trace" in link or "rate_changes" in link):
            parts.append((escape.name(f"{link.get('rate', '')}, changing"), False))
        elif link.get(part):
            parts.append((escape.name(str(link[part])), False))
    return parts


def _parts(
    group: Mapping[str, Any], settings: Mapping[str, Sequence[str]]
) -> list[tuple[str, bool]]:
    """Return what a group is: how many, what kind, its TCP, its way to the network."""
    name = f"traffic.{group['name']}"
    found: list[tuple[str, bool]] = []
    for key in ("flows", "users"):
        labels = settings.get(f"{name}.{key}")
        if labels:
            found.append((f"{_several(labels)} {key}", True))
        elif isinstance(group.get(key), int) and f"{name}.load" not in settings:
            found.append((f"{group[key]} {key if group[key] != 1 else key[:-1]}", False))
    if labels := settings.get(f"{name}.load"):
        found.append((f"load {_several(labels)}", True))
    found.append((str(group.get("kind", "")).replace("-", " "), False))
    if labels := settings.get(f"{name}.tcp"):
        found.append((f"TCP {_several(labels)}", True))
    elif isinstance(tcp := group.get("tcp"), Mapping) and "preset" in tcp:
        varied = f"{name}.tcp.kernel_control" in settings
        control = "" if varied else tcp.get("kernel_control")
        found.append((f"TCP {tcp['preset']}" + (f" with {control}" if control else ""), False))
    if group.get("rate") and f"{name}.rate" not in settings:
        found.append((str(group["rate"]), False))
    delay = None if f"{name}.access_delay" in settings else group.get("access_delay")
    if isinstance(delay, list) and delay:
        found.append((f"access delay {delay[0]} to {delay[-1]}", False))
    elif isinstance(delay, str) and not delay.startswith("0 "):
        found.append((f"access delay {delay}", False))
    shown = {f"{name}.{key}" for key in ("flows", "users", "load", "tcp")}
    for key, labels in settings.items():
        if key.startswith(f"{name}.") and key not in shown:
            part = key.removeprefix(f"{name}.").replace(".", " ").replace("_", " ")
            found.append((f"{part} {_several(labels)}", True))
    return [(escape.name(text), varied) for text, varied in found if text]


def _caption(drawn: Sequence[Link], lanes: Sequence[Lane]) -> str:
    ways = [
        f"{'return link' if link.backward else 'link'} of "
        f"{', '.join(text for text, _ in link.parts)}, queue: {link.queue}"
        for link in drawn
    ]
    groups = [f"{lane.name}: {', '.join(text for text, _ in lane.parts)}" for lane in lanes]
    return "; ".join([*ways, *groups])
