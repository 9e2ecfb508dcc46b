"""The picture of a run: what it shows is what happened in the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import redtail
from redtail.analysis.results import Results
from redtail.cli import app
from redtail.errors import SpecError, StoreError
from redtail.page import moving
from redtail.running import replaying
from redtail.running.replaying import Wanted
from redtail.store import runs

EXPERIMENT = """
name = "Replayed </script>"
duration = "4 s"
warmup = "1 s"
replications = 1

[bottleneck]
rate = "4 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "20 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 3
start = "uniform 0..200 ms"
tcp = { preset = "cubic", ecn = true }

[series]
interval = "7 ms"

[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "20 packets" },
  { kind = "red", limit = "40 packets", min_th = "5 packets", max_th = "15 packets", ecn = true },
  { kind = "fq-codel", limit = "30 packets", ecn = false },
]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return redtail.run(redtail.Toml(EXPERIMENT), out=tmp_path_factory.mktemp("runs"))


def folder_of(results: Results, case: int) -> Path:
    return results.cases[case].runs[0].folder


def shown(
    results: Results, case: int, wanted: Wanted | None = None, most: int = 10_000
) -> moving.Picture:
    folder = folder_of(results, case)
    found = runs.show(folder.parent, folder)
    return replaying.picture(folder, found, wanted or Wanted(), "", most)


@pytest.mark.parametrize("case", range(3))
def test_the_picture_has_the_queue_of_the_series_and_all_drops_and_marks(
    results: Results, case: int
) -> None:
    picture = shown(results, case)
    packets = picture.packets
    assert picture.window == (0.0, 4.0)
    series = results.series("queues", case=case)
    times, lengths = series["time_s"].to_numpy(), series["packets"].to_numpy()
    # A sample shows the state just before the events of its instant.
    waiting = [((packets.arrival_s < t) & (packets.out_s >= t)).sum() for t in times]
    assert (np.array(waiting) == lengths).mean() == 1
    assert (packets.fate == moving.DROPPED).sum() == series["drops"].to_numpy().sum()
    assert (packets.mark != moving.UNMARKED).sum() == series["marks"].to_numpy().sum()
    assert {each.of for each in picture.curves} >= {"cwnd"}
    assert ("average" in {each.of for each in picture.curves}) == (case == 1)
    assert picture.rows == ("flows" if case == 2 else "one")
    assert all(0 <= each.time_s <= 4 for each in picture.told)


def test_reasons_of_drops_are_those_of_the_queue(results: Results) -> None:
    def reasons(case: int) -> set[str]:
        picture = shown(results, case)
        packets = picture.packets
        dropped = packets.reason[packets.fate == moving.DROPPED]
        return {picture.reasons[each] for each in dropped}

    assert reasons(0) == {"limit"}
    assert "early" in reasons(2) or "limit" in reasons(2)


def test_a_window_is_chosen_where_not_all_packets_fit(results: Results) -> None:
    picture = shown(results, 0, most=300)
    start, end = picture.window
    assert 0 < end - start < 1.5 and start <= picture.start_s <= end
    inside = (picture.packets.arrival_s >= start) & (picture.packets.arrival_s <= end)
    assert 200 <= inside.sum() <= 310
    assert any("more than a picture holds" in line for line in picture.notes)


def test_a_window_and_flows_can_be_asked_for(results: Results) -> None:
    picture = shown(results, 0, Wanted(from_s=2.0, to_s=2.5, flows=(1,)))
    assert picture.window == (2.0, 2.5)
    pale = {picture.flows[place][1] for place in picture.hidden}
    assert pale and 1 not in pale
    assert picture.packets.arrival_s.max() <= 2.5 and picture.packets.out_s.min() >= 2.0
    drawn = {picture.flows[each.flow][1] for each in picture.curves if each.flow is not None}
    assert drawn == {1}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted(link="hop7"), "--link hop7: there is no such link; accepted: bottleneck"),
        (Wanted(from_s=9.0), "--from: the run ends at 4 s"),
        (Wanted(from_s=2.0, to_s=1.0), "--to: is not after --from"),
        (Wanted(flows=(9,)), "--flow 9: .*flows that did: 0, 1, 2"),
    ],
)
def test_what_is_not_in_the_run_is_refused(results: Results, wanted: Wanted, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        shown(results, 0, wanted)


def test_a_run_with_real_packets_without_recorded_ones_is_refused(results: Results) -> None:
    folder = folder_of(results, 0)
    found = runs.show(folder.parent, folder)
    live: dict[str, Any] = json.loads(json.dumps(found, default=str))
    live["manifest"]["backend"] = "live"
    with pytest.raises(StoreError, match="cannot be made again"):
        replaying.picture(folder, live, Wanted(), "", 1000)


def test_packets_that_a_run_recorded_are_shown_without_another_run(
    results: Results, tmp_path: Path
) -> None:
    text = EXPERIMENT.partition("[factors]")[0]
    kinds = ["arrival", "departure", "drop", "mark"]
    source = redtail.Toml(f"{text}[events]\nkinds = {json.dumps(kinds)}\n")
    folder = folder_of(redtail.run(source, out=tmp_path), 0)
    found = runs.show(folder.parent, folder)
    found["manifest"] = {**found["manifest"], "backend": "live"}
    picture = replaying.picture(folder, found, Wanted(), "", 10_000)
    again = shown(results, 0).packets
    for name in ("arrival_s", "out_s", "flow", "fate", "reason"):
        columns = [np.sort(getattr(each, name)) for each in (picture.packets, again)]
        assert (columns[0] == columns[1]).all(), name
    assert picture.curves == [] and "recorded" in picture.notes[0]


def test_the_command_writes_the_picture(results: Results, tmp_path: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["replay", str(results.folder), "--case", "1"])
    assert done.exit_code == 0, done.output
    text = (results.folder / "replay.html").read_text("utf-8")
    assert text.count("</script") == 2 and "Replayed" in text
    assert len(text) < 200_000
    out = str(results.folder.parent)
    assert runner.invoke(app, ["runs", "verify", "--out", out]).exit_code == 0
    file = tmp_path / "a.html"
    key = results.cases[0].runs[0].key
    assert runner.invoke(app, ["replay", key, "--out", out, "-o", str(file)]).exit_code == 0
    assert file.is_file()
    refused = runner.invoke(app, ["replay", str(results.folder)])
    assert refused.exit_code != 0 and "choose one with --case" in refused.output
