"""Plug-ins that are WebAssembly modules: `"mine.wasm"`, or `"mine.wasm:NAME"` of several in it.

A module is data until a run calls it, and then it has nothing but its own memory and the functions
of redtail. So it needs no permission, wherever it lies. The hash of its bytes is part of the
scenario. Compiling it, and looking for its functions, executes nothing.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail import native

if TYPE_CHECKING:
    from redtail._native import Compiled

SUFFIX = ".wasm"
ACCEPTED = '"my_queue.wasm", or "my_queue.wasm:NAME" if it has several'

#: As in the crate `redtail-wasm`, which refuses what is larger.
_LARGEST = 4 << 20


class Refused(Exception):
    """A module cannot be used: what is wrong, and what is accepted."""

    def __init__(self, problem: str, accepted: str) -> None:
        super().__init__(problem)
        self.problem, self.accepted = problem, accepted


def is_compiled(name: str) -> bool:
    """Return whether a class is in a WebAssembly module.

    >>> is_compiled("a/fq.wasm"), is_compiled("fq.wasm:fq"), is_compiled("fq.py:Fq")
    (True, True, False)
    """
    return split(name) is not None


def split(name: str) -> tuple[str, str | None] | None:
    """Return the file of a module and the name in it; None if it is no module.

    >>> split("a/fq.wasm"), split("fq.wasm:fq")
    (('a/fq.wasm', None), ('fq.wasm', 'fq'))
    """
    if name.endswith(SUFFIX):
        return name, None
    place, _, inside = name.rpartition(":")
    return (place, inside) if place.endswith(SUFFIX) else None


def read(name: str, folder: Path) -> tuple[Path, bytes]:
    """Return the file of a module, symbolic links followed, and its bytes.

    Raises:
        Refused: there is no such file, or it is too large.
    """
    parts = split(name)
    assert parts is not None, "the name is that of a module"
    path = folder / parts[0]
    try:
        found = path.resolve()
        if not found.is_file():
            raise Refused(f"names a file that cannot be read: {path}", ACCEPTED)
        with found.open("rb") as file:
            code = file.read(_LARGEST + 1)
    except (OSError, ValueError, RuntimeError) as error:
        raise Refused(f"names a file that cannot be read: {path}", ACCEPTED) from error
    return found, code


def source_of(code: bytes) -> str:
    """Return the hash of a module."""
    return hashlib.sha256(code).hexdigest()


def load(name: str, folder: Path, role: str) -> tuple[Compiled, str]:
    """Return the plug-in of this name, compiled, and the hash of its module. Nothing is executed.

    Args:
        name: as in the experiment.
        folder: what its file is looked for in.
        role: what it is to be: "queue" or "controller".

    Raises:
        Refused: there is none, or its module is not one for redtail.
    """
    code = read(name, folder)[1]
    parts = split(name)
    assert parts is not None, "the name is that of a module"
    return _compiled(code, role, parts[1]), source_of(code)


def can_compile() -> bool:
    """Return whether the native module has the compiler of modules, a feature of its build."""
    return hasattr(native.module(), "Compiled")


@functools.lru_cache(maxsize=32)
def _compiled(code: bytes, role: str, inside: str | None) -> Compiled:
    """Compile a module, once in this process."""
    if not can_compile():
        raise Refused(
            "this build of redtail has no compiler of WebAssembly modules",
            "a build with the feature compiled-plug-ins, which `make setup` makes",
        )
    try:
        made: Compiled = native.module().Compiled(code, role, inside)
    except ValueError as error:
        raise Refused(*error.args) from None
    return made


def refused_params(compiled: Compiled, params: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Return what a plug-in says of its `params`, which executes it: key, problem, accepted."""
    return compiled.refuses(json.dumps(params))
