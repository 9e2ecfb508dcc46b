"""The experiment file of an advice, and the traces beside it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from redtail.errors import SpecError
from redtail.experiment import toml_value
from redtail.files import path_of
from redtail.lines.advice.simulated import HEADER, Simulated, trace_files


def save(text: str, wanted: Simulated, file: str | os.PathLike[str]) -> Path:
    """Write an experiment file, and the cuts of its traces beside it.

    Args:
        text: the experiment.
        wanted: what is simulated.
        file: its path.

    Raises:
        SpecError: it cannot be written, or a file of another origin is there.
    """
    path = require_writable(file)
    traces = trace_files(wanted, path.stem)
    for own, name in zip(trace_files(wanted), traces, strict=True):
        text = text.replace(f'"{own}"', toml_value(name))
    contents = {path.with_name(name): trace for name, trace in traces.items()}
    if not path.exists():
        _require_free(contents)
    contents[path] = text
    for each, content in contents.items():
        write(each, content)
    return path


def write(path: Path, content: str) -> None:
    """Write a file whose path is known to be free or ours.

    Raises:
        SpecError: it cannot be written.
    """
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{path}: cannot be written: {error.strerror}") from None


def require_writable(file: str | os.PathLike[str]) -> Path:
    """Return the path of a file that an experiment may be written to.

    Raises:
        SpecError: there is a file that was not made here, or no folder for it.
    """
    path = path_of(file)
    if not path.parent.is_dir():
        raise SpecError(f"save {path}: there is no folder {path.parent}", key="save")
    if path.is_dir():
        raise SpecError(f"save {path}: is a folder; accepted: a file", key="save")
    if path.exists():
        try:
            own = path.read_text(encoding="utf-8").startswith(HEADER)
        except (OSError, UnicodeDecodeError):
            own = False
        if not own:
            raise SpecError(
                f"save {path}: the file exists, and redtail advise has not made it; accepted: "
                "another file",
                key="save",
            )
    return path


def _require_free(files: Iterable[Path]) -> None:
    """Refuse to replace traces that are not beside an experiment file of their name.

    Raises:
        SpecError: there is one.
    """
    for file in files:
        if file.exists():
            raise SpecError(
                f"save {file}: the file exists; accepted: another name for the experiment file",
                key="save",
            )
