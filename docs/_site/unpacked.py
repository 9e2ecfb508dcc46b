"""An extension of Griffe: `**options: Unpack[SomeOptions]` is shown as the options themselves.

A function whose docstring explains `**options` itself keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import griffe


class UnpackedOptions(griffe.Extension):
    """Replaces the parameter in all functions of a package before docstrings are read."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called when a package is loaded."""
        for function in _functions(pkg):
            for parameter in list(function.parameters):
                annotation = parameter.annotation
                text = function.docstring.value if function.docstring else ""
                if f"**{parameter.name}:" in text or not isinstance(
                    annotation, griffe.ExprSubscript
                ):
                    continue
                if str(annotation.left) == "Unpack":
                    del function.parameters[parameter.name]
                    named = pkg.modules_collection[annotation.slice.canonical_path]
                    for option in _options(named):
                        if option.name not in function.parameters:
                            function.parameters.add(option)


def _functions(within: griffe.Module | griffe.Class) -> Iterator[griffe.Function]:
    for member in within.members.values():
        if member.is_alias:
            continue
        if isinstance(member, griffe.Function):
            yield member
        elif isinstance(member, griffe.Module | griffe.Class):
            yield from _functions(member)


def _options(options: griffe.Class) -> Iterator[griffe.Parameter]:
    for base in options.bases:
        if str(base) != "TypedDict":
            yield from _options(options.modules_collection[base.canonical_path])
    for attribute in options.attributes.values():
        yield griffe.Parameter(
            attribute.name,
            annotation=attribute.annotation,
            kind=griffe.ParameterKind.keyword_only,
            default="...",
        )
