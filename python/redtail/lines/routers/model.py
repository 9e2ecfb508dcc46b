"""The commands for a device, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from redtail.lines.line import Direction
from redtail.store.advice import Part

_OTHERWISE = "What the device has otherwise than advised"


@dataclass(frozen=True)
class Change:
    """A value that the device does not have as it was advised.

    Attributes:
        direction: "down" or "up".
        key: the key of the experiment file, or "shaper" for the shaper's rate.
        advised: the value that was advised.
        made: the value that the device has.
        why: what the device accepts, or what it does instead.
    """

    direction: Direction
    key: str
    advised: str
    made: str
    why: str

    @property
    def what(self) -> str:
        """The change in a sentence, without its direction."""
        return f"{self.key} = {self.advised} becomes {self.made} ({self.why})"


@dataclass
class Made:
    """What the module of a device returns.

    Attributes:
        set_up: the lines that make the queues.
        check: the lines that show them, and what they do.
        undo: the lines that remove them, and nothing else.
        changes: values that the device does not have as they were advised.
        notices: what to know before the lines are used.
    """

    set_up: list[str] = field(default_factory=list)
    check: list[str] = field(default_factory=list)
    undo: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Commands:
    """Commands or settings for a device.

    Attributes:
        device: a name of `redtail.lines.DEVICES`.
        where: where they are entered, in words.
        set_up: the lines that make the queues.
        check: the lines that show them, and what they do.
        undo: the lines that remove them, and nothing else.
        changes: values that the device does not have as they were advised.
        notices: what to know before the lines are used.
        sources: the documents from which the mapping comes.
        doubt: why the queues may better not be set; empty for no reason.
    """

    device: str
    where: str
    set_up: tuple[str, ...]
    check: tuple[str, ...]
    undo: tuple[str, ...]
    changes: tuple[Change, ...]
    notices: tuple[str, ...]
    sources: tuple[str, ...]
    doubt: str = ""

    @property
    def otherwise(self) -> tuple[str, ...]:
        """What the device has otherwise than advised, once for both directions if it is equal."""
        ways: dict[str, list[str]] = {}
        for change in self.changes:
            ways.setdefault(change.what, []).append(change.direction)
        return tuple(f"{' and '.join(way)}: {what}" for what, way in ways.items())

    def text(self) -> str:
        """Return the lines to paste, then what changed, and what to know."""
        lines = [f"# {self.doubt}"] if self.doubt else []
        lines += [f"# Commands: {self.where}", *self.set_up]
        lines += ["", "# Check", *self.check, "", "# Undo", *self.undo]
        if self.changes:
            lines += ["", f"# {_OTHERWISE}", *(f"# {text}" for text in self.otherwise)]
        if self.notices:
            lines += ["", "# Note", *(f"# {notice}" for notice in self.notices)]
        return "\n".join(lines)

    def parts(self) -> tuple[Part, ...]:
        """Return it as the page of an advice shows it."""
        texts = (self.doubt, self.where[:1].upper() + self.where[1:])
        found = [
            Part("Commands", texts=tuple(filter(None, texts)), lines=self.set_up),
            Part("Check", lines=self.check),
            Part("Undo", lines=self.undo),
        ]
        if self.changes:
            found.append(Part(_OTHERWISE, items=self.otherwise))
        if self.notices:
            found.append(Part("Note", items=self.notices))
        found.append(Part("Sources of the commands", items=self.sources))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def beside(self, document: Mapping[str, Any]) -> str:
        """Return another document as JSON text, with this as its value `commands`."""
        both = {**document, "commands": self.to_dict()}
        return json.dumps(both, indent=2, ensure_ascii=False, allow_nan=False)
