"""Runs explained: each cause of the example is checked against a capture of the same run.

The captures are of what arrives at the bottleneck and of what leaves it: a packet that is in the
first alone was dropped. Nothing of the event log is used to find what was sent and lost when.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

import redtail
from redtail import facts
from redtail.analysis.story import timeouts
from redtail.analysis.story.flow import Line
from redtail.cli import app
from redtail.errors import SpecError, StoreError
from redtail.running import events, explaining
from redtail.running.explaining import Wanted

# The example has a small buffer on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:.*bandwidth-delay product:redtail.RedtailWarning")

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "why.toml"


SYN = -1
"""The sequence number of a SYN where data begin with 0."""


class Sent(NamedTuple):
    """A packet with data, or a SYN, as it arrives at the bottleneck."""

    time_s: float
    sequence: int
    arrives: bool


def rows(capture: Path) -> list[list[str]]:
    """Return time, source, sequence number, length and number of SYNs and data in a capture."""
    tshark = shutil.which("tshark")
    assert tshark is not None, "the tests need tshark: apt-get install tshark"
    fields = ("frame.time_epoch", "ip.src", "tcp.seq", "tcp.len", "ip.id")
    command = [
        tshark,
        "-r",
        str(capture),
        "-Y",
        "tcp.len > 0 or tcp.flags.syn == 1",
        "-T",
        "fields",
    ]
    done = subprocess.run(
        command + [word for field in fields for word in ("-e", field)],
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of the example, which recorded no events."""
    results = redtail.run(EXAMPLE, out=tmp_path_factory.mktemp("runs"))
    return results.cases[0].runs[0].folder


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[Sent]]:
    return packets_of(EXAMPLE, tmp_path_factory.mktemp("captures"))


def packets_of(source: Path | redtail.Toml, where: Path) -> dict[int, list[Sent]]:
    """Return the packets of each flow in the order in which they arrive at the bottleneck."""
    ends = {"bottleneck:in": where / "in.pcapng", "bottleneck:out": where / "out.pcapng"}
    redtail.capture(source, ends)
    left = Counter(tuple(row[1:]) for row in rows(ends["bottleneck:out"]))
    found: dict[int, list[Sent]] = defaultdict(list)
    for time, *packet in rows(ends["bottleneck:in"]):
        arrives = left[tuple(packet)] > 0
        left[tuple(packet)] -= arrives
        source, sequence, *_ = packet
        _, group, _, host = map(int, source.split("."))
        # tshark counts the SYN; the flow of BBR is number 0, those of CUBIC follow.
        found[host + group].append(Sent(float(time), int(sequence) - 1, arrives))
    return found


@pytest.fixture(scope="module")
def told(folder: Path) -> list[Line]:
    """Return the timeouts of the example with their causes."""
    wanted = Wanted(kinds=("timeout",), most=1000)
    return explaining.explain(folder, wanted).lines


def test_every_timeout_of_the_example_has_a_cause(told: list[Line]) -> None:
    assert len(told) > 30
    assert {line.cause.kind for line in told if line.cause} == {
        timeouts.AGAIN,
        timeouts.AFTER_TIMEOUT,
        timeouts.WINDOW,
        timeouts.SYN,
    }


def test_the_timeouts_are_those_of_the_capture(
    told: list[Line], captured: dict[int, list[Sent]]
) -> None:
    """The least timeout of these senders is 200 ms: after it something is sent again."""
    found = set()
    for flow, sent in captured.items():
        known: set[int] = set()
        for before, packet in zip([sent[0], *sent], sent, strict=False):
            if packet.sequence in known and packet.time_s - before.time_s > 0.15:
                found.add((flow, round(packet.time_s, 2)))
            known.add(packet.sequence)
    assert {(line.flow.number, round(line.time_s + 1e-4, 2)) for line in told} == found


def test_the_cause_of_each_timeout_is_what_the_capture_shows(
    told: list[Line], captured: dict[int, list[Sent]]
) -> None:
    last: dict[int, float] = {}
    for line in told:
        flow = line.flow.number
        assert line.cause is not None and flow is not None
        first = line.cause.lost[0] if line.cause.kind == timeouts.WINDOW else line.cause.lost[-1]
        sent = [each for each in captured[flow] if each.time_s < line.time_s]
        # The sequence number of a SYN is that before the first byte.
        wanted = SYN if line.cause.kind == timeouts.SYN else first.sequence
        copies = [each for each in sent if each.sequence == wanted]
        assert not any(each.arrives for each in copies), line
        assert copies[-1].time_s == pytest.approx(first.time_s, abs=1e-6), line
        if line.cause.kind == timeouts.SYN:
            assert [each.sequence for each in sent] == [SYN], line
        elif line.cause.kind == timeouts.WINDOW:
            assert len(copies) == 1, line
            behind = [each for each in sent if each.time_s >= copies[0].time_s]
            beyond = [each for each in behind if each.sequence >= copies[0].sequence]
            assert not any(each.arrives for each in beyond), line
            assert len(beyond) == len(line.cause.lost), line
        else:
            assert len(copies) >= 2, line
            by_timeout = copies[-1].time_s - last.get(flow, -1.0) < 0.01
            assert (line.cause.kind == timeouts.AFTER_TIMEOUT) == by_timeout, line
        last[flow] = line.time_s


COUNTING = """
name = "Counts duplicates"
duration = "12 s"
warmup = "3 s"
replications = 1
[bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
queue = { kind = "red", limit = "60 packets", min_th = "5 packets", max_th = "20 packets" }
[bottleneck.return]
rate = "1 Gbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "1000 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 12
tcp = "newreno"
start = "uniform 0..2 s"
"""


def test_what_arrived_behind_a_lost_packet_is_what_the_capture_shows(tmp_path: Path) -> None:
    results = redtail.run(redtail.Toml(COUNTING), out=tmp_path)
    sent = packets_of(redtail.Toml(COUNTING), tmp_path)
    wanted = Wanted(kinds=("timeout",), most=1000)
    found = Counter[str]()
    for line in explaining.explain(results.cases[0].runs[0].folder, wanted).lines:
        assert line.cause is not None and line.flow.number is not None
        counted = re.search(r"(\d+) of the (\d+) packets? behind it arrived", line.text)
        if counted is None:
            continue
        first = line.cause.lost[0].sequence
        assert first is not None
        before = [each for each in sent[line.flow.number] if each.time_s < line.time_s - 0.04]
        behind = {each.sequence for each in before if each.sequence > first}
        arrived = {each.sequence for each in before if each.sequence > first and each.arrives}
        assert (len(arrived), len(behind)) == tuple(map(int, counted.groups())), line
        assert not any(each.arrives for each in before if each.sequence == first), line
        found[line.cause.kind] += 1
    assert found[timeouts.FEW] > 0


def test_the_summary_counts_all_timeouts(folder: Path, told: list[Line]) -> None:
    found = explaining.explain(folder, Wanted())
    assert found.overview is not None
    assert sum(found.overview.causes.values()) == len(told) == found.counts["timeout"]
    assert found.timeouts.startswith(f"{len(told)} timeouts: ")
    assert found.notes == [
        "the run recorded no events, so it was made again with them; it measured the same"
    ]


def test_a_flow_made_again_alone_has_the_same_story(folder: Path, told: list[Line]) -> None:
    alone = explaining.explain(folder, Wanted(flow=10, kinds=("timeout",)))
    assert [each.text for each in alone.lines] == [
        each.text for each in told if each.flow.number == 10
    ]


def test_lines_are_bounded_and_the_rest_is_counted(folder: Path, told: list[Line]) -> None:
    found = explaining.explain(folder, Wanted(kinds=("timeout",), most=5))
    assert (len(found.lines), found.more) == (5, len(told) - 5)
    assert f"and {len(told) - 5} more" in found.text()


def test_a_time_chooses_what_happened_then(folder: Path) -> None:
    found = explaining.explain(folder, Wanted(from_s=9.0, to_s=9.5))
    assert found.lines
    assert all(9.0 <= line.time_s <= 9.5 for line in found.lines)


def test_what_does_not_exist_is_refused(folder: Path) -> None:
    with pytest.raises(SpecError, match="no group 'x'; accepted: bbr, cubic"):
        explaining.explain(folder, Wanted(group="x"))
    with pytest.raises(SpecError, match="no kind of events 'drops'"):
        explaining.explain(folder, Wanted(kinds=("drops",)))


def test_a_run_of_other_code_is_not_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "code_version", cache(lambda: "another"))
    with pytest.raises(StoreError, match="made by other code"):
        events.of_run(folder)


@pytest.mark.parametrize(
    ("scenario", "backend", "why"),
    [
        ({}, "live", "a run of backend live is not a function of its scenario"),
        ({"bottleneck": {"queue": {"class": "q.py:Q"}}}, "sim", "names the class 'q.py:Q'"),
        ({"traffic": [{"kind": "trace"}]}, "sim", "names a table of connections"),
    ],
)
def test_what_cannot_be_made_again_is_said(
    scenario: dict[str, Any], backend: str, why: str
) -> None:
    manifest = {"backend": backend, "code_version": facts.code_version()}
    said = events.why_not_again(scenario, manifest)
    assert why in said and "give the experiment [events] (or --events)" in said


def test_recorded_events_tell_the_same_as_those_of_the_run_made_again(
    tmp_path: Path, told: list[Line]
) -> None:
    results = redtail.run(EXAMPLE, out=tmp_path, set={"events.limit": 100_000})
    folder = results.cases[0].runs[0].folder
    found = explaining.explain(folder, Wanted(kinds=("timeout",), most=1000))
    assert found.notes == []
    assert [str(line) for line in found.lines] == [str(line) for line in told]
    # A log that is cut says so, and claims nothing of what came afterwards.
    with pytest.warns(redtail.RedtailWarning, match="reached its limit, 2000 rows"):
        results = redtail.run(EXAMPLE, out=tmp_path, set={"events.limit": 2000})
    cut = explaining.explain(results.cases[0].runs[0].folder, Wanted())
    assert "the log reached its limit at" in cut.notes[0]


def test_the_command(folder: Path, told: list[Line]) -> None:
    def said(*words: str) -> str:
        done = CliRunner().invoke(app, ["explain", *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    text = said(str(folder.parent), "--flow", "10", "--kinds", "timeout")
    mine = [str(line) for line in told if line.flow.number == 10]
    assert [line for line in text.splitlines() if ": timeout after" in line] == mine
    found = json.loads(said(folder.name, "--out", str(folder.parents[1]), "--json"))
    assert sum(found["overview"]["timeouts"].values()) == len(told)
    for words, told_why in (
        ([str(folder), "--case", "0"], "is one run"),
        ([str(folder.parent), "--case", "7"], "there is no case 7"),
        ([str(folder.parent), "--replication", "7"], "no replication 7"),
        ([str(folder.parent), "--at", "x"], "--at x: accepted: a time"),
        ([str(folder.parent), "--at", "1 s", "--to", "2 s"], "does not go with"),
    ):
        done = CliRunner().invoke(app, ["explain", *words])
        assert done.exit_code == 2 and told_why in done.output, done.output
