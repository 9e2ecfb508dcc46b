"""The record of what is drawn, so that nothing is drawn twice. Nothing here loads Matplotlib.

    figures/.drawn.json     what the figures are of, and of each file its SHA-256

Figures are of results, of the version of the code that draws, and of the metrics that were asked
for. When these change, the files of the record that are as they were drawn go, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.files import is_file_name, is_plain, plain_bytes
from redtail.store import format, sealing, writing

if TYPE_CHECKING:
    from redtail.analysis.results import Results

RECORD = ".drawn.json"

DEFAULT = "png"
FORMATS = ("png", "svg", "pdf")
"""The files that a figure can have."""

ANSWERS, EVERY = "answers", "every"
"""The figures that `redtail run` draws, and all that the results have data for."""

_FORMAT = 1
_LARGEST = 4 << 20


class Record:
    """What is drawn in a folder of these results' figures.

    Args:
        folder: of the figures.
        results: what they are of.
    """

    def __init__(self, folder: Path, results: Results) -> None:
        self.folder = folder
        self.of = _identity(results)
        self.choices: dict[str, list[str]] = {}
        self.files: dict[str, str] = {}
        before = _read(folder / RECORD)
        if before is None:
            return
        if self.of is not None and before["of"] == self.of:
            self.choices, self.files = before["choices"], before["files"]
        else:
            for name, digest in before["files"].items():
                if _is(folder / name, digest):
                    (folder / name).unlink()
            with contextlib.suppress(FileNotFoundError):
                (folder / RECORD).unlink()

    def kept(self, choice: str, formats: Sequence[str]) -> list[Path] | None:
        """Return the files of a choice of figures; None if one is missing or was changed."""
        names = self.choices.get(choice)
        return None if names is None else self.files_of(names, formats)

    def files_of(self, names: Iterable[str], formats: Sequence[str]) -> list[Path] | None:
        """Return the files of these figures; None if one is missing or was changed."""
        paths = [self.folder / f"{name}.{kind}" for name in names for kind in formats]
        whole = all(_is(path, self.files.get(path.name, "")) for path in paths)
        return paths if whole else None

    def add(self, choice: str, names: Sequence[str], paths: Iterable[Path]) -> None:
        """Enter files that were drawn, of a choice of figures."""
        if self.of is None:
            return
        self.choices[choice] = list(names)
        self.files.update({path.name: _sha256(path) for path in paths})
        about = {
            "format": _FORMAT,
            "of": self.of,
            "choices": self.choices,
            "files": self.files,
        }
        text = json.dumps(about, indent=1) + "\n"
        writing.replace_file(self.folder / RECORD, text.encode())


def _identity(results: Results) -> str | None:
    """Return a hash of what figures are drawn from; None for results that are in no folder."""
    try:
        index = (results.folder / "results.json").read_bytes()
    except OSError:
        return None
    about = json.dumps([list(results.report), [case.title for case in results.cases]])
    whole = hashlib.sha256(index)
    whole.update(about.encode())
    whole.update(_code().encode())
    return whole.hexdigest()


@cache
def _code() -> str:
    """Return a hash of the code that draws, and of the version of Matplotlib."""
    from importlib.metadata import version

    package = Path(__file__).parent.parent
    whole = hashlib.sha256(version("matplotlib").encode())
    for folder in ("display", "analysis"):
        for path in sorted((package / folder).glob("*.py")):
            whole.update(path.read_bytes())
    return whole.hexdigest()


def _read(path: Path) -> dict[str, Any] | None:
    """Return a record; None if there is none, or it is not one."""
    try:
        if not is_plain(path):
            return None
        about: dict[str, Any] = json.loads(plain_bytes(path, _LARGEST))
        if about["format"] != _FORMAT:
            return None
        sealing.expect(about["of"], str, "of")
        for name, digest in sealing.expect(about["files"], dict, "files").items():
            sealing.expect(digest, str, name)
            if not is_file_name(name):
                return None
        for names in sealing.expect(about["choices"], dict, "choices").values():
            for name in sealing.expect(names, list, "a choice"):
                if not is_file_name(sealing.expect(name, str, "a name")):
                    return None
    except format.MALFORMED:
        return None
    return about


def _is(path: Path, digest: str) -> bool:
    try:
        return is_plain(path) and _sha256(path) == digest
    except OSError:
        return False


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
