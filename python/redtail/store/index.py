"""The index of an experiment's results, `results.json`: its cases, and the runs of each case."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from redtail.errors import StoreError
from redtail.store.folders import (
    MALFORMED,
    RUN_FILES,
    RUN_NAME,
    UnreadableError,
    brief,
    expect,
    is_sealed,
    owner,
)

FORMAT = 1
"""Version of results.json."""


def read_index(folder: Path) -> dict[str, Any]:
    """Read an experiment's results.json and check it.

    Raises:
        FileNotFoundError: the file does not exist.
        UnreadableError: it has another format, or belongs to another user.
        StoreError: it was altered, or redtail did not write it.
    """
    path = folder / "results.json"
    again = "give the experiment's command again to write it anew"
    try:
        data = path.read_bytes()
        index: dict[str, Any] = json.loads(data)
        number = expect(index["format"], int, "format")
        # Older files have no checksum; only their form can be checked.
        if number == FORMAT and "checksum" in index and not is_sealed(data, index):
            raise ValueError("its content was altered")
        if number == FORMAT:
            _check_form(index)
    except FileNotFoundError:
        raise
    except PermissionError as error:
        raise UnreadableError(
            f"{path}: cannot be read: {error.strerror}{owner(path)}; ask for the right to read it"
        ) from error
    except MALFORMED as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else brief(error)
        raise StoreError(f"{path}: cannot be read: {what}; {again}") from error
    if number != FORMAT:
        raise UnreadableError(
            f"{path}: written in format {number}, this redtail reads {FORMAT}; "
            f"use the redtail that wrote it, or {again}"
        )
    return index


def _check_form(index: dict[str, Any]) -> None:
    """Refuse an index with values of wrong types, or with invalid names of runs or tables."""
    expect(index["experiment"], str, "experiment")
    expect(index["description"], str, "description")
    # Older files do not name a backend.
    expect(index.get("backend", "sim"), str, "backend")
    report = expect(index.get("report", {}), dict, "report")
    for name in expect(report.get("metrics", []), list, "metrics of report"):
        expect(name, str, "a metric of report")
    for metric in expect(index.get("metrics", []), list, "metrics"):
        for value in expect(metric, dict, "a metric of metrics").values():
            expect(value, str, "a part of a metric of metrics")
    for key in expect(index["factors"], list, "factors"):
        expect(key, str, "a factor")
    for case in expect(index["cases"], list, "cases"):
        expect(case["factors"], dict, "factors of a case")
        for label in expect(case["labels"], dict, "labels of a case").values():
            expect(label, str, "a label")
        for number, key in expect(case["runs"], dict, "runs of a case").items():
            if not re.fullmatch("[0-9]{1,9}", number) or not RUN_NAME.fullmatch(
                expect(key, str, "a run")
            ):
                raise ValueError(f"{number!r}: {key!r} is no run")
    for name, about in expect(index.get("files", {}), dict, "files").items():
        if not RUN_FILES.fullmatch(name):
            raise ValueError(f"{name!r} is no table")
        expect(expect(about, dict, name)["bytes"], int, f"bytes of {name}")
        expect(about["sha256"], str, f"sha256 of {name}")
