"""Mutants of `results.json` and `pack.json`: each is read, or refused with a message."""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from pathlib import Path

import pytest
from rich.console import Console

import redtail
from redtail import archive, packing, page
from redtail.analysis import moved
from redtail.display import tables
from redtail.errors import RedtailError
from redtail.store import runs
from redtail.store.sealing import sealed

from forging import entries_of, write_archive
from mutants import mutant

# So many of each in the suite; MUTANTS=5000 makes more.
COUNT = int(os.environ.get("MUTANTS", "60"))

EXPERIMENT = """
name = "Mutated"
duration = "2 s"
warmup = "1 s"
replications = 2
[bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
[[traffic]]
name = "ftp"
kind = "bulk"
start = "uniform 0..100 ms"
[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "10 packets", label = "short" },
  { kind = "sfq", limit = "20 packets" },
]
"bottleneck.rate" = ["2 Mbit/s", "3 Mbit/s"]
[metrics]
share = "ftp.goodput / goodput"
[report]
metrics = ["goodput", "share"]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "given.toml").write_text(EXPERIMENT, encoding="utf-8")
    results = redtail.run(folder / "given.toml", out=folder / "runs")
    packing.pack(results.folder, folder / "packed.zip")
    return folder


def read(folder: Path, original: redtail.Results) -> int:
    """Do with results what commands do; returns how much was refused."""
    refused = 0
    try:
        results = redtail.load(folder)
    except RedtailError:
        results = None
        refused += 1
    if results is not None:
        for use in (
            lambda: results.to_json(),
            lambda: results.table_text("csv"),
            lambda: results.table_text("latex"),
            lambda: Console(file=sys.stdout).print(tables.summary_table(results, 100, True)),
            lambda: results.warnings,
            lambda: results.compare(["goodput"]).to_json(),
            lambda: moved.diff(original, results).to_json(),
            lambda: moved.diff(results, original).to_json(),
            lambda: results.to_arrow("cases"),
            lambda: results.cdf("queue_delay"),
            lambda: page.page([results]),
        ):
            try:
                use()
            except RedtailError:
                refused += 1
    list(runs.verify(folder))
    runs.listing(folder.parent)
    try:
        runs.show(folder.parent, folder)
    except RedtailError:
        refused += 1
    try:
        packing.pack(folder, folder.parent / "mutant.zip")
    except RedtailError:
        refused += 1
    return refused


def test_mutants_of_the_index_of_results_are_read_or_refused(made: Path, tmp_path: Path) -> None:
    original = redtail.load(made / "runs" / "mutated")
    folder = tmp_path / "runs" / "mutated"
    shutil.copytree(original.folder, folder)
    index = json.loads((folder / "results.json").read_bytes())
    del index["checksum"]
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(COUNT):
            try:
                data = sealed(mutant(index, seed), ensure_ascii=True)
            except (RecursionError, TypeError):
                continue  # no document
            (folder / "results.json").write_bytes(data)
            try:
                refused += read(folder, original) > 0
            except Exception as error:
                raise AssertionError(f"mutant {seed}: {error!r}") from error
    assert COUNT * 0.5 < refused < COUNT, "some are as good as the original"


def test_mutants_of_the_index_of_archives_are_read_or_refused(made: Path, tmp_path: Path) -> None:
    entries = entries_of(made / "packed.zip")
    about = json.loads(entries["pack.json"])
    refused = 0
    for seed in range(COUNT):
        try:
            text = json.dumps(mutant(about, seed)).encode()
        except RecursionError:
            continue
        forged = write_archive({**entries, "pack.json": text}, tmp_path / "forged.zip")
        into = tmp_path / "into"
        try:
            archive.unpack(forged, into)
        except RedtailError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"mutant {seed}: {error!r}") from error
        shutil.rmtree(into, ignore_errors=True)
    assert {path.name for path in tmp_path.iterdir()} == {"forged.zip"}, "nothing beside the folder"
    assert COUNT * 0.5 < refused < COUNT


@pytest.mark.parametrize(
    "change",
    [
        {"packages": []},
        {"packages": {"numpy": 1}},
        {"code_packages": []},
        {"machine": "x"},
        {"set": {}},
        {"set": [1]},
        {"files": []},
        {"files": {"a": []}},
        {"files": {"a": {"bytes": -1, "sha256": ""}}},
        {"files": {"a": {"bytes": 1.5, "sha256": ""}}},
        {"experiment": "results/experiment.toml"},
        {"experiment": ["experiment/given.toml"]},
        {"format": True},
        {"format": None},
        {"backend": 5},
        {"backend": "\x1b[31m"},
        {"code_version": float("nan")},
    ],
    ids=str,
)
def test_a_malformed_index_ends_in_a_message(
    change: dict[str, object], made: Path, tmp_path: Path
) -> None:
    entries = entries_of(made / "packed.zip")
    about = {**json.loads(entries["pack.json"]), **change}
    entries["pack.json"] = json.dumps(about).encode()
    with pytest.raises(RedtailError, match=r"forged\.zip: ") as caught:
        packing.verify(write_archive(entries, tmp_path / "forged.zip"))
    assert "redtail-" not in str(caught.value).replace(str(tmp_path), "")


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"null", b'{"format": 1, "format": 1}', b"\xff", b"[" * 9999]
)
def test_what_is_no_index_ends_in_a_message(text: bytes, made: Path, tmp_path: Path) -> None:
    entries = {**entries_of(made / "packed.zip"), "pack.json": text}
    with pytest.raises(RedtailError, match="cannot be read as an archive"):
        packing.verify(write_archive(entries, tmp_path / "forged.zip"))
