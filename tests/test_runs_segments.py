"""The store's commands know the runs that large campaigns keep many to a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import redtail
from redtail import runs

TEXT = """
name = "many"
duration = "100 ms"
replications = 1000
[bottleneck]
rate = "1 Mbit/s"
delay = "1 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "cbr"
kind = "cbr"
rate = "500 kbit/s"
packet = "500 B"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    redtail.run(redtail.Toml(TEXT), out=folder)
    return folder


def test_a_large_campaign_is_listed_and_whole(store: Path) -> None:
    (found,) = runs.listing(store)
    assert (found.runs, found.in_results) == (1000, 1000)
    assert sum(found.versions.values()) == 1000
    assert list(runs.verify(found.folder)) == []


def test_a_segment_that_was_altered_is_found_and_named(store: Path) -> None:
    path = next((store / "many" / "segments").glob("*.parquet"))
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    try:
        findings = list(runs.verify(store / "many"))
        assert (findings[0].path, findings[0].kind) == (path, "damaged")
        # What the results refer to in it is missing.
        assert {each.kind for each in findings[1:]} == {"missing"}
    finally:
        path.write_bytes(data)
    other = path.with_name("notes.txt")
    other.write_text("mine")
    try:
        (finding,) = runs.verify(store / "many")
        assert (finding.path, finding.kind) == (other, "foreign")
    finally:
        other.unlink()
