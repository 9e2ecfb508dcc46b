"""The reference of the Python interface: its public names, and which of them are not documented."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

_HEAD = """# Python

`import redtail` has these functions and classes. [Typed objects](python-objects.md) describe
experiments. Any other module of the package may change without notice.
"""
_OBJECTS = """# Typed objects

The objects of an experiment, as classes of `redtail`: each is a table of the
[experiment file](experiment-file.md) and each attribute a key of it.
"""
_GYM = """# Environments of Gymnasium

What `redtail.gym` has, with the extra `gym` ([how to](../how-to/machine-learning.md)).

"""
GYM = ("ControllerEnv", "ControllerVectorEnv", "QueueEnv", "QueueVectorEnv")
"""The names of `redtail.gym`, which cannot be asked where Gymnasium is not installed."""
_INHERITED = "    options:\n      inherited_members: [reset, step, close, measures]\n\n"


def functions_page(module: ModuleType) -> str:
    """Return the page of `redtail.__all__`: functions, then classes, then errors."""
    names = sorted(module.__all__)
    kinds = {
        "Functions": [n for n in names if not inspect.isclass(getattr(module, n))],
        "Classes": [
            n for n in names if inspect.isclass(getattr(module, n)) and not _error(module, n)
        ],
        "Errors": [n for n in names if _error(module, n)],
    }
    return _HEAD + "".join(_section(head, module, found) for head, found in kinds.items())


def objects_page(module: ModuleType) -> str:
    """Return the page of the typed objects, by what they are: `redtail.model.__all__`."""
    types = [n for n in module.__all__ if inspect.isclass(getattr(module, n))]
    queues = _members(module.AnyQueue)
    traffic = _members(module.AnyTraffic)
    kinds = {
        "Experiment": [n for n in types if n not in queues and n not in traffic],
        "Queues": [n for n in types if n in queues],
        "Traffic": [n for n in types if n in traffic],
    }
    return _OBJECTS + "".join(_section(head, module, found) for head, found in kinds.items())


def gym_page() -> str:
    """Return the page of `redtail.gym`."""
    return _GYM + "".join(f"::: redtail.gym.{name}\n{_INHERITED}" for name in GYM)


def _members(union: Any) -> set[str]:
    return set(re.findall(r"\w+", str(union).replace("redtail.model.", "")))


def _error(module: ModuleType, name: str) -> bool:
    one = getattr(module, name)
    return inspect.isclass(one) and issubclass(one, BaseException)


def _section(head: str, module: ModuleType, names: Iterable[str]) -> str:
    return f"\n## {head}\n\n" + "".join(f"::: {module.__name__}.{name}\n\n" for name in names)


def undocumented(module: ModuleType) -> list[str]:
    """Return the public names without a docstring: of the module, and of its classes' members.

    A field of a dataclass is documented in the `Attributes` of the class.
    """
    found = []
    for name in module.__all__:
        one = getattr(module, name)
        if inspect.isclass(one):
            found += [f"{module.__name__}.{missing}" for missing in _class(name, one)]
        elif callable(one) and not inspect.getdoc(one):
            found.append(f"{module.__name__}.{name}")
    return found


def _class(name: str, one: type) -> Iterator[str]:
    text = one.__dict__.get("__doc__") or ""
    made = dataclasses.is_dataclass(one) and text.startswith(f"{one.__name__}(")
    if not text or made:
        yield name
        return
    fields = (
        {field.name for field in dataclasses.fields(one)}
        if dataclasses.is_dataclass(one)
        else set()
    )
    for field in sorted(fields):
        if not field.startswith("_") and not re.search(rf"^\s*{field}\b.*?:", text, re.MULTILINE):
            yield f"{name}.{field}"
    for member, value in one.__dict__.items():
        if member.startswith("_") or member in fields:
            continue
        if (callable(value) or isinstance(value, property)) and not inspect.getdoc(value):
            yield f"{name}.{member}"
