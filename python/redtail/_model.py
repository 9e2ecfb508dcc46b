"""What the generated classes of `redtail.model` have in common."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, ClassVar


@dataclasses.dataclass(kw_only=True)
class Part:
    """A table of an experiment.

    An attribute that is None is left out, so that redtail's own default holds.
    """

    _kind: ClassVar[str | None] = None

    def as_json(self) -> dict[str, Any]:
        """Return the table as the experiment file has it, as Python objects."""
        found: dict[str, Any] = {} if self._kind is None else {"kind": self._kind}
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if value is not None:
                # A key that is a word of Python's own has an underscore behind it.
                found[each.name.removesuffix("_")] = plain(value)
        return found


def plain(value: Any) -> Any:
    """Return a value with all typed objects in it as plain ones."""
    if isinstance(value, Part):
        return value.as_json()
    if isinstance(value, type):
        from redtail.inputs.queues import name_of

        return name_of(value)
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


@dataclasses.dataclass(kw_only=True)
class Whole(Part):
    """The whole experiment."""

    def to_json(self) -> str:
        """Return the experiment as JSON, the form in which it reaches the engine."""
        return json.dumps(self.as_json(), ensure_ascii=False, default=_refuse)


def _refuse(value: object) -> Any:
    from redtail.errors import SpecError

    raise SpecError(
        f"{value!r}: a {type(value).__name__} cannot be a value in an experiment; "
        "accepted: text, numbers, truth values, lists, mappings and the classes of redtail"
    )
