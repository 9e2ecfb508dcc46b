"""The index of an experiment's results, `results.json`: its cases, and the runs of each case."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from redtail.errors import StoreError
from redtail.files import plain_bytes
from redtail.store.format import (
    EXPERIMENT_FILES,
    MALFORMED,
    RUN_FILES,
    RUN_NAME,
    UnreadableError,
    brief,
)
from redtail.store.sealing import decoded, expect, is_sealed
from redtail.store.writing import owner

FORMAT = 1
"""Version of results.json."""

LARGEST = 256 << 20
"""The most bytes of a results.json: some million runs."""


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
        data = plain_bytes(path, LARGEST)
        index: dict[str, Any] = expect(decoded(data), dict, "results.json")
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
    # Older files do not name a backend, nor what made the runs, nor the experiment's origin.
    expect(index.get("backend", "sim"), str, "backend")
    expect(index.get("made_by", ""), str, "made_by")
    if index.get("provenance") is not None:
        _check_provenance(expect(index["provenance"], dict, "provenance"))
    report = expect(index.get("report", {}), dict, "report")
    for name in expect(report.get("metrics", []), list, "metrics of report"):
        expect(name, str, "a metric of report")
    for metric in expect(index.get("metrics", []), list, "metrics"):
        for value in expect(metric, dict, "a metric of metrics").values():
            expect(value, str, "a part of a metric of metrics")
    factors = expect(index["factors"], list, "factors")
    for key in factors:
        expect(key, str, "a factor")
    if len(set(factors)) != len(factors):
        raise ValueError("a factor is there twice")
    for case in expect(index["cases"], list, "cases"):
        _check_case(expect(case, dict, "a case"), factors)
    for name, about in expect(index.get("files", {}), dict, "files").items():
        if not RUN_FILES.fullmatch(name):
            raise ValueError(f"{name!r} is no table")
        _check_sums(name, about)


def _check_case(case: dict[str, Any], factors: list[str]) -> None:
    expect(case["factors"], dict, "factors of a case")
    for label in expect(case["labels"], dict, "labels of a case").values():
        expect(label, str, "a label")
    for key in factors:
        if key not in case["factors"] or key not in case["labels"]:
            raise ValueError(f"a case has no value of the factor {key!r}")
    for number, key in expect(case["runs"], dict, "runs of a case").items():
        if not re.fullmatch("[0-9]{1,9}", number) or not RUN_NAME.fullmatch(
            expect(key, str, "a run")
        ):
            raise ValueError(f"{number!r}: {key!r} is no run")
    if case.get("settings") is not None:
        expect(case["settings"], dict, "settings of a case")
    for name, pairs in expect(case.get("sharing", {}), dict, "sharing of a case").items():
        _check_number(pairs, f"sharing of {name}")
    for load in expect(case.get("loads", []), list, "loads of a case"):
        for key in ("group", "link", "text"):
            expect(expect(load, dict, "a load")[key], str, f"{key} of a load")
        expect(load["users"], int, "users of a load")
        _check_number(load["asked"], "asked of a load")
        for number, share in expect(load["offered"], dict, "offered of a load").items():
            _check_number(share, "a share of offered")
            if not re.fullmatch("[0-9]{1,9}", number):
                raise ValueError(f"{number!r} is no replication")
        if load.keys() != {"group", "link", "asked", "text", "users", "offered"}:
            raise ValueError(f"a load has the keys {', '.join(load)}")


def _check_provenance(given: dict[str, Any]) -> None:
    expect(given["version"], str, "version")
    if given["seed"] is not None:
        expect(given["seed"], int, "seed")
    for each in expect(given["set"], list, "set"):
        expect(each, str, "a value of set")
    about = given.get("experiment")
    if about is None:
        return
    if expect(expect(about, dict, "experiment")["file"], str, "experiment: file") not in (
        EXPERIMENT_FILES
    ):
        raise ValueError(f"experiment: file is {about['file']!r}")
    if about["given_as"] is not None:
        expect(about["given_as"], str, "experiment: given_as")
    expect(about["sha256"], str, "experiment: sha256")
    for each in expect(about["inputs"], list, "experiment: inputs"):
        expect(each, str, "an input")
    for name, sums in expect(about.get("input_checksums", {}), dict, "input_checksums").items():
        _check_sums(name, sums)
    for name, version in expect(about.get("packages", {}), dict, "packages").items():
        expect(version, str, f"the version of {name}")


def _check_sums(name: str, about: Any) -> None:
    expect(expect(about, dict, name)["bytes"], int, f"bytes of {name}")
    expect(about["sha256"], str, f"sha256 of {name}")


def _check_number(value: Any, what: str) -> None:
    if not math.isfinite(expect(value, int | float, what)):
        raise ValueError(f"{what} is {value}")
