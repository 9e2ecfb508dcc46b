"""What a suite examines: queues and congestion controls that take the place of its control.

A subject is a kind of queue or a preset of TCP, a TOML file with the table of one, or a plug-in.
Each experiment of a suite has the control alone; `fit` makes of a subject what stands there in its
place. It keeps what the subject says of itself, and sets by these rules what it must:

- The buffer of a queue is that of the control (RFC 7928, section 3.2: it is equal for all queues).
- A kind that has no default for a threshold gets one from the buffer: RED and its relatives
  `min_th` = 1/6 and `max_th` = 1/2 of it. So `max_th` is three times `min_th`, and where `gentle`
  drops every packet, at twice `max_th`, the buffer ends (S. Floyd, "RED: Discussions of setting
  parameters", 1997, and "Recommendation on using the gentle_ variant of RED", 2000). GSP gets half
  of the buffer, its threshold for one bandwidth-delay product.
- A queue of classes has UDP in one class and all else in the other: in `prio` UDP is first, in
  `drr` and `wfq` the two are alike, in `htb` each has half of the link's rate and may borrow the
  rest. Each class has a tail-drop queue with the buffer of the control.
- `tbf` sends at 95 % of the link's rate, in bursts of ten packets, from a tail-drop queue.

What a suite has for a kind in `[subject.kinds]` replaces these values. Whatever is set is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from redtail import facts, quantities
from redtail.catalog import Catalog
from redtail.engine.plans import Plan
from redtail.errors import RedtailError, SpecError
from redtail.experiment import toml_value
from redtail.studies.definition import Comparison, Kernel, Subject
from redtail.studies.reading import Place, opened

_MARK_ALWAYS = ("step", "dualpi2")
"""Kinds without a parameter `ecn` that mark ECN-capable packets always."""

_THRESHOLDS: dict[str, dict[str, float]] = {
    **{
        kind: {"min_th": 1 / 6, "max_th": 1 / 2}
        for kind in ("red", "self-configuring-red", "dynamic-threshold-red", "choke", "red-tail")
    },
    "gsp": {"threshold": 1 / 2},
}
"""Parameters that follow from the buffer, as shares of it."""

_SHARES = {1 / 6: "1/6 of the buffer", 1 / 2: "half of the buffer"}


@dataclass(frozen=True)
class Examined:
    """A queue or a congestion control that is examined.

    Attributes:
        label: what tables call it.
        value: what stands at its key: a table, or the name of a preset.
        given: how it was named, for messages.
        kind: the kind of queue; the preset of TCP, empty where the table has none.
        own: whether it is a file or a plug-in of the user.
        place: where its table stands; None without a file.
    """

    label: str
    value: Mapping[str, Any]
    given: str
    kind: str
    own: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)

    def error(self, error: SpecError, key: str) -> SpecError:
        """Return the error of an experiment that it was refused for, where its file has the cause.

        Args:
            error: what was refused.
            key: the dotted key at which the subject stands.
        """
        inside = (error.key or "").removeprefix(f"{key}.")
        if self.place is None or inside == error.key:
            return error
        place = self.place.below(*inside.split("."))
        text = brief(str(error)).replace(f"{key}.", "", 1)
        where = str(place.file) if place.line is None else f"{place.file}:{place.line}"
        return SpecError(f"{where}: {text}", file=str(place.file), line=place.line, key=inside)


def brief(text: str) -> str:
    """Return why an experiment was refused, without the overrides that it was refused for.

    >>> brief('--set queue=[{kind = "pie"}]: queue: the key "limit" is missing [in 2 of 4 cases]')
    'queue: the key "limit" is missing'
    """
    first, *_ = text.splitlines()
    found = re.sub(r"^--set .*?: ", "", first)
    found = re.sub(r"^\S+\.toml:(\d+:)? ", "", found)
    return re.sub(r" \[in .*\]$", "", found)


@dataclass(frozen=True)
class Fitted:
    """A subject as it stands in an experiment.

    Attributes:
        values: what stands at each key that has it.
        set: the parameters that were set, each with why.
    """

    values: Mapping[str, Any]
    set: Mapping[str, str]


class Unfit(Exception):
    """A subject cannot be examined in an experiment; the text is why."""


@cache
def _catalog() -> Catalog:
    return Catalog(facts.schema())


@cache
def _keys() -> Mapping[str, frozenset[str]]:
    """Return the parameters of each kind of queue."""
    return {
        str(each.kind): frozenset(parameter.key for parameter in each.parameters)
        for each in _catalog().queues
    }


def kinds(of: str) -> tuple[str, ...]:
    """Return the names of all kinds of queues, or of all presets of TCP.

    Args:
        of: "queue" or "tcp".
    """
    if of == "queue":
        return tuple(kind for kind in _keys() if kind != "plugin")
    return tuple(str(choice.value) for choice in _catalog().tcp[0])


def chosen(subject: Subject, named: Sequence[str] | None) -> tuple[Examined, ...]:
    """Return the subjects of some names.

    Args:
        subject: what the suite examines.
        named: kinds, presets, files and plug-ins; None stands for the usual ones.

    Raises:
        SpecError: there is no such thing, or two have one label.
    """
    found: dict[str, Examined] = {}
    option = f"--{subject.kind}"
    for text in subject.usual if named is None else named:
        each = _examined(subject.kind, text)
        if each.label == subject.control or each.label in found:
            other = "the control" if each.label == subject.control else found[each.label].given
            raise SpecError(
                f"{option} {text}: has the label {each.label!r}, as {other}; accepted: one "
                "subject for a label. The key label of a TOML file gives another one"
            )
        found[each.label] = each
    return tuple(found.values())


def everything(subject: Subject) -> tuple[str, ...]:
    """Return the names of all that a league ranks besides the control."""
    return tuple(kind for kind in kinds(subject.kind) if kind != subject.control)


def _examined(of: str, text: str) -> Examined:
    if text in kinds(of):
        return Examined(text, {"kind" if of == "queue" else "preset": text}, text, text)
    if text.endswith(".toml"):
        return _of_file(of, text)
    place = text.partition(":")[0]
    if place.endswith((".py", ".wasm")):
        path, _, name = text.partition(":")
        value = {"class": _absolute(text, Path())}
        if of == "queue":
            value = {"kind": "plugin", **value}
        return Examined(name or Path(path).stem, value, text, value.get("kind", ""), own=True)
    raise SpecError(
        f"--{of} {text}: accepted: {', '.join(kinds(of))}; a TOML file with the table of one; or "
        f"a plug-in such as mine.py:Mine or mine.wasm{facts.hint(text, kinds(of))}"
    )


def _of_file(of: str, text: str) -> Examined:
    table, place = opened(Path(text))
    key = "kind" if of == "queue" else "preset"
    named = table.get(key)
    if named is None and of == "queue":
        raise place.error(f"{key} is missing; accepted: {', '.join(kinds(of))}, plugin")
    if named is not None and named not in (*kinds(of), *(["plugin"] if of == "queue" else [])):
        raise place.below(key).error(f"= {named!r}; accepted: {', '.join(kinds(of))}")
    label = table.pop("label", Path(text).stem)
    if not isinstance(label, str) or not label:
        raise place.below("label").error(f"= {label!r}; accepted: a text")
    if isinstance(table.get("class"), str):
        table["class"] = _absolute(table["class"], Path(text).parent)
    return Examined(label, table, text, str(named or ""), own=True, place=place)


def _absolute(name: str, folder: Path) -> str:
    """Return the name of a class with the whole path of its file, as experiments lie elsewhere."""
    path, sign, rest = name.partition(":")
    if not path.endswith((".py", ".wasm")):
        return name
    return f"{(folder / path).resolve()}{sign}{rest}"


def fit(
    examined: Examined,
    comparison: Comparison,
    plan: Plan,
    subject: Subject,
    kernel: Kernel | None = None,
) -> Fitted:
    """Return what stands in an experiment in place of the control.

    Args:
        examined: the subject.
        comparison: the comparison that the experiment is of.
        plan: the experiment, with the control.
        subject: what the suite says of its subjects.
        kernel: what it says of them where a kernel is to run the same; None elsewhere.

    Raises:
        Unfit: it cannot be examined there.
    """
    scenario = json.loads(plan.example(0))
    values: dict[str, Any] = {}
    told: dict[str, str] = {}
    for key in (comparison.queue, *comparison.also):
        made = _Made(examined, subject, comparison.subject, kernel)
        control = plan.cases[0].factors.get(key, _at(scenario, key))
        if subject.kind == "queue":
            made.queue(control, _at(scenario, key.rpartition(".")[0]))
        else:
            made.tcp()
        is_factor = key in plan.cases[0].factors
        labelled = {**made.table, "label": examined.label}
        # A label is known in a factor, and in every queue.
        values[key] = [labelled] if is_factor else labelled
        if not is_factor and subject.kind == "tcp":
            values[key] = made.table
        where = "" if key == comparison.queue else f" ({key})"
        told |= {f"{name}{where}": why for name, why in made.told.items()}
    return Fitted(values, told)


class _Made:
    """The table of a subject, and what was set in it."""

    def __init__(
        self,
        examined: Examined,
        subject: Subject,
        wanted: Mapping[str, Any],
        kernel: Kernel | None,
    ) -> None:
        self.kind = examined.kind
        self.table = dict(examined.value)
        self.wanted = wanted
        own = kernel.kinds.get(self.kind, {}) if kernel is not None else {}
        self.suites = {**subject.kinds.get(self.kind, {}), **own}
        self.in_bytes = kernel is not None and self.kind in kernel.buffer_in_bytes
        self.own_buffer = kernel is not None and self.kind in kernel.own_buffer
        self.told = {
            name: f"{_shown(value)}, as given"
            for name, value in self.table.items()
            if examined.own and name not in ("kind", "preset", "class")
        }

    def tcp(self) -> None:
        """Set what a sender gets."""
        for name, value in {**self.suites, **self.wanted}.items():
            self._set(name, value, "set by the suite")

    def queue(self, control: Any, link: Any) -> None:
        """Set what a queue gets.

        Args:
            control: the table of the queue that it replaces.
            link: the table of its link.
        """
        keys = _keys().get(self.kind, frozenset())
        buffer = control.get("limit") if isinstance(control, Mapping) else None
        for name, value in self.wanted.items():
            if name in keys or name in self.table:
                self._set(name, value, "set by the suite")
            elif not (name == "ecn" and self.kind in _MARK_ALWAYS):
                raise Unfit(f"{self.kind} has no parameter {name}")
        for name, value in self.suites.items():
            self._missing(name, value, "set by the suite")
        if buffer is None:
            raise Unfit("the control has no limit, by which the buffer of a subject is set")
        if self.in_bytes:
            buffer = [*map(_in_bytes, buffer)] if isinstance(buffer, list) else _in_bytes(buffer)
        if "limit" in keys and not self.own_buffer:
            own = self.table.get("limit")
            was = "" if own in (None, buffer) else f" (given: {_shown(own)})"
            self._set("limit", buffer, f"the buffer of the control{was}")
        one = buffer[0] if isinstance(buffer, list) else buffer
        if "tune" not in self.table:
            for name, share in _THRESHOLDS.get(self.kind, {}).items():
                self._missing(name, share_of(one, share), _SHARES[share])
        if self.kind == "wred":
            both = {name: share_of(one, share) for name, share in _THRESHOLDS["red"].items()}
            self._missing("profiles", [{**both, "max_p": 0.1}], "as RED")
        self._classes(one, link)

    def _classes(self, buffer: str, link: Any) -> None:
        """Set the classes of a queue of classes, and the rate of a shaper."""
        leaf = {"kind": "tail-drop", "limit": buffer}
        udp: dict[str, Any] = {"name": "udp", "match": {"protocol": "udp"}, "queue": leaf}
        rest: dict[str, Any] = {"name": "rest", "queue": leaf}
        two = "UDP and the rest, each with the buffer of the control"
        match self.kind:
            case "prio":
                self._missing("class", [udp, rest], f"{two}; UDP first")
            case "drr":
                both = [{**each, "quantum": "1500 B"} for each in (udp, rest)]
                self._missing("class", both, f"{two}; equal quanta")
            case "wfq":
                both = [{**each, "weight": 1} for each in (udp, rest)]
                self._missing("class", both, f"{two}; equal weights")
            case "htb" if "class" not in self.table:
                rate = _rate_of(link)
                half = {"rate": f"{rate / 2:.0f} bit/s", "ceil": f"{rate:.0f} bit/s"}
                both = [{**each, **half} for each in (udp, rest)]
                root = {"name": "link", "rate": f"{rate:.0f} bit/s", "class": both}
                self._missing("class", [root], f"{two}; half of the link each, with borrowing")
            case "tbf":
                if "rate" not in self.table:
                    rate = _rate_of(link)
                    self._missing("rate", f"{0.95 * rate:.0f} bit/s", "95 % of the link's rate")
                self._missing("burst", "15 kB", "ten packets")
                self._missing("queue", leaf, "tail drop with the buffer of the control")

    def _missing(self, name: str, value: Any, why: str) -> None:
        if name not in self.table:
            self._set(name, value, why)

    def _set(self, name: str, value: Any, why: str) -> None:
        self.table[name] = value
        brief = why if isinstance(value, list | Mapping) else f"{_shown(value)}, {why}"
        self.told[name] = brief


def share_of(buffer: str, share: float) -> str:
    """Return a share of a buffer as a size, in its own unit.

    >>> share_of("100 packets", 1 / 6), share_of("300 kB", 0.5), share_of("60 ms", 0.5)
    ('17 packets', '150000 B', '0.03 s')
    """
    try:
        size, unit = quantities.parse(buffer)
    except RedtailError as error:
        raise Unfit(f"the control's limit = {buffer!r}: {error}") from None
    if unit == "packets":
        return f"{max(1, round(size * share))} packets"
    if unit == "B":
        return f"{max(1, round(size * share))} B"
    return f"{size * share:.12g} {unit}"


def _in_bytes(buffer: str) -> str:
    """Return a buffer in full packets as one in bytes.

    >>> _in_bytes("84 packets"), _in_bytes("60 ms")
    ('126000 B', '60 ms')
    """
    size, unit = quantities.parse(buffer)
    return f"{size * 1500:.0f} B" if unit == "packets" else buffer


def _rate_of(link: Any) -> float:
    """Return the rate of a link in bit/s."""
    rate = link.get("rate") if isinstance(link, Mapping) else None
    if not isinstance(rate, str):
        raise Unfit("the link has no rate of its own, by which a shaper's rate is set")
    return facts.rate_bps("rate", rate)


def _at(scenario: Any, key: str) -> Any:
    """Return what a scenario has at a dotted key; None where it has nothing.

    Items of a list are named, as groups are, or numbered, as in `hop2`.
    """
    found = scenario
    for part in key.split("."):
        if isinstance(found, Mapping) and part not in found and isinstance(found.get("hop"), list):
            found = found["hop"]
        if isinstance(found, list):
            named = (each for each in found if each.get("name") == part)
            number = part.removeprefix("hop")
            at = int(number) - 1 if number.isdigit() else len(found)
            found = next(named, found[at] if 0 <= at < len(found) else None)
        else:
            found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _shown(value: object) -> str:
    return value if isinstance(value, str) else toml_value(value)


def listing(of: str, subjects: Iterable[Examined]) -> str:
    """Return subjects in words."""
    return ", ".join(each.label for each in subjects) or f"no {of}"
