"""What `redtail advise` keeps beside its runs, so that their page says what was advised.

The file has parts, each a head with texts, a table, a list or lines to paste: the page shows them
in their order, and does not know what is advised. It names the experiment file that it is of, since
another one can have taken its place in the folder. Beside the parts it has what programs read: the
answer as `redtail advise --json` prints it, for `redtail verify`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from redtail import escape
from redtail.errors import StoreError
from redtail.files import plain_bytes
from redtail.store.format import ADVICE, MALFORMED, brief
from redtail.store.sealing import decoded, expect
from redtail.store.writing import explain_write_errors, replace_file

FORMAT = 1
"""Version of the file."""

LARGEST = 4_000_000
"""Bytes that the file may have. Source: our choice; one of 200 kB is usual."""

OTHERS = f"The advice in {ADVICE} is of another experiment file than these results: it is left out."


@dataclass(frozen=True)
class Part:
    """A part of an advice.

    Attributes:
        head: what it is about.
        texts: paragraphs.
        heads: the heads of a table; empty for none.
        rows: its rows, with as many cells.
        items: a list.
        lines: lines to paste.
    """

    head: str
    texts: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    items: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


def write(
    folder: Path,
    experiment: str,
    parts: Sequence[Part],
    answer: Mapping[str, Any] | None = None,
) -> Path:
    """Write the file; an older one is replaced in one step.

    Args:
        folder: the folder of the results.
        experiment: the text of the experiment file.
        parts: what is shown.
        answer: the advice as plain values, for programs.

    Raises:
        StoreError: it cannot be written.
    """
    path = folder / ADVICE
    document = {
        "format": FORMAT,
        "experiment": _hash(experiment),
        "parts": list(map(asdict, parts)),
        "answer": answer,
    }
    with explain_write_errors(path):
        replace_file(path, json.dumps(document, indent=1, ensure_ascii=False).encode())
    return path


def read(folder: Path, experiment: str | None) -> tuple[list[Part], list[str]]:
    """Return the parts of an advice, safe to show, and what to know of them.

    Args:
        folder: the folder of the results.
        experiment: the text of the experiment file that they are of, if it is known.

    Raises:
        StoreError: the file is damaged, or redtail did not write it.
    """
    path = folder / ADVICE
    try:
        document = expect(decoded(plain_bytes(path, LARGEST)), dict, ADVICE)
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']}; accepted: {FORMAT}")
        parts = [_part(each) for each in expect(document["parts"], list, "parts")]
        of = document["experiment"]
    except FileNotFoundError:
        return [], []
    except MALFORMED as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else brief(error)
        raise StoreError(
            f"{path}: cannot be read: {what}; give the command of the advice again to write it "
            "anew, or remove the file"
        ) from error
    if experiment is None or of != _hash(experiment):
        return [], [OTHERS]
    return parts, []


def answer(folder: Path) -> object:
    """Return the advice that was kept beside its runs, as plain values that nobody has checked.

    Raises:
        StoreError: there is none, or the file is damaged.
    """
    path = folder / ADVICE
    try:
        document = expect(decoded(plain_bytes(path, LARGEST)), dict, ADVICE)
        found: object = document.get("answer")
    except FileNotFoundError:
        found = None
    except MALFORMED as error:
        raise StoreError(f"{path}: cannot be read: {brief(error)}") from error
    if found is None:
        raise StoreError(
            f"{folder}: has no advice for programs; accepted: the folder of the runs of `redtail "
            "advise`, or the file that `redtail advise --json` prints"
        )
    return found


def _hash(experiment: str) -> str:
    return hashlib.sha256(experiment.encode()).hexdigest()


def _part(given: Any) -> Part:
    """Return a part of the file, if it has the form of one.

    Raises:
        KeyError, ValueError: it has not.
    """
    expect(given, dict, "a part")
    heads = _texts(given["heads"], "heads")
    rows = tuple(_texts(row, "rows") for row in expect(given["rows"], list, "rows"))
    if any(len(row) != len(heads) for row in rows):
        raise ValueError(f"a row of a table has not {len(heads)} cells")
    return Part(
        head=escape.name(expect(given["head"], str, "head")),
        texts=_texts(given["texts"], "texts"),
        heads=heads,
        rows=rows,
        items=_texts(given["items"], "items"),
        lines=_texts(given["lines"], "lines"),
    )


def _texts(given: Any, what: str) -> tuple[str, ...]:
    """Return a list of texts, safe to show."""
    return tuple(escape.text(expect(each, str, what)) for each in expect(given, list, what))
