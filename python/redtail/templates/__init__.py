"""Experiments to start from: commented files that a user copies and changes.

A template is a file `NAME.toml` here. Its first line says in one sentence what it is about; what
belongs to it stands beside it (docs/how-to/start.md): a workflow for CI with the same name, and the
files that it names, traces and code with its tests. Code is `NAME.py.txt`, because it is copied and
never imported from here. There are no other modules, and it must not know what an experiment file
means.

    >>> from redtail import templates
    >>> "access-line" in templates.names()
    True
    >>> templates.about("access-line")[:16]
    'A home behind a '
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from redtail.errors import SpecError
from redtail.files import path_of

_FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """Return the names of the templates, in alphabetical order."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def about(name: str) -> str:
    """Return the sentence that says what a template is about."""
    return text(name).partition("\n")[0].removeprefix("# ")


def text(name: str) -> str:
    """Return a template as the file that it becomes.

    Raises:
        SpecError: there is no such template.
    """
    if name not in names():
        raise SpecError(f"there is no template {name!r}; accepted: {', '.join(names())}")
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def beside(name: str) -> tuple[str, ...]:
    """Return the names of the files that belong to a template.

    They are those that it names, traces of its links and code with tests, and a workflow.

    Raises:
        SpecError: there is no such template.
    """
    own = [path.name for path in _FOLDER.glob(f"{name}.*") if path.suffix == ".yml"]
    return tuple(dict.fromkeys([*_files(tomllib.loads(text(name))), *sorted(own)]))


def _files(part: Any) -> Iterator[str]:
    """Yield the files that a part of an experiment names."""
    if isinstance(part, list):
        for each in part:
            yield from _files(each)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in ("rate_trace", "delay_trace"):
                yield value
            elif key == "class" and isinstance(value, str):
                file = value.partition(":")[0]
                yield from (file, f"test_{file}")
            else:
                yield from _files(value)


def write(
    name: str, out: str | os.PathLike[str] | None = None, *, force: bool = False
) -> list[Path]:
    """Write a template, and beside it the files that belong to it.

    Args:
        name: which one.
        out: the file; by default `NAME.toml` in the current folder.
        force: replace files that exist.

    Returns:
        The files, the experiment first.

    Raises:
        SpecError: there is no such template; a file exists, then none is written; or one cannot
            be written.
    """
    file = path_of(out if out is not None else f"{name}.toml")
    if file.is_dir():
        file = file / f"{name}.toml"
    contents = {file: text(name).encode()}
    for each in beside(name):
        stored = f"{each}.txt" if each.endswith(".py") else each
        contents[file.parent / each] = (_FOLDER / stored).read_bytes()
    put(contents, shared=contents.keys() - {file}, force=force)
    return list(contents)


def put(contents: Mapping[Path, bytes], *, shared: Collection[Path], force: bool) -> None:
    """Write files: all, or none if one exists.

    Args:
        contents: the files.
        shared: those of them that may exist with the same content.
        force: replace files that exist.

    Raises:
        SpecError: a file exists, or one cannot be written.
    """
    for path, content in contents.items():
        same = path in shared and path.exists() and path.read_bytes() == content
        if path.exists() and not force and not same:
            raise SpecError(
                f"{path} exists; accepted: another name with --out FILE, or --force to replace it"
            )
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        first = next(iter(contents))
        raise SpecError(f"{error.filename or first}: cannot be written: {error.strerror}") from None
