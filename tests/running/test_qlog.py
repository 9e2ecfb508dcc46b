"""Connections as qlog files, against the definitions of the drafts and what was measured."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

import redtail
from redtail.analysis.qlog import packets, recovery
from redtail.analysis.story.events import Event
from redtail.cli import app
from redtail.running import events

SCHEMA = json.loads(Path(__file__).with_name("qlog-0.3.schema.json").read_text())

# No warm-up: metrics and files are of the same time.
LOSSY = """
name = "Lossy"
duration = "20 s"
replications = 1
seed = 7
[bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
[bottleneck.queue]
kind = "red"
limit = "40 packets"
min_th = "5 packets"
max_th = "15 packets"
max_p = 0.1
w_q = 0.01
[bottleneck.return]
rate = "5 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "sack"
kind = "transfer"
size = "3 MB"
flows = 2
start = "0 s"
access_rate = "1 Gbit/s"
tcp = "sack"
[[traffic]]
name = "udp"
kind = "cbr"
rate = "200 kbit/s"
packet = "500 B"
[[traffic]]
name = "web"
kind = "web"
model = "request-think"
users = 1
start = "0 s"
think = "exponential mean 1 s"
object = "pareto min 2 kB shape 1.2 max 300 kB"
tcp = "linux"
"""


def qlog(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["qlog", *arguments])
    return done.exit_code, done.stdout, done.stderr


def read(path: Path) -> list[dict[str, Any]]:
    """Return the events of a file that is as the drafts say."""
    content = json.loads(path.read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(content)
    found = content["traces"][0]["events"]
    times = [each["time"] for each in found]
    assert times == sorted(times), "qvis wants them in order"
    return found


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    """The files of all connections of a run, and what it measured."""
    folder = tmp_path_factory.mktemp("qlog")
    results = redtail.run(redtail.Toml(LOSSY), out=folder / "runs")
    code, out, err = qlog("lossy", "--out", str(folder / "runs"), "--folder", str(folder))
    assert (code, err) == (0, "")
    files = sorted(folder.glob("*.qlog"))
    assert sorted(line.split()[1] for line in out.splitlines()) == [str(path) for path in files]
    return folder, results.cases[0].runs[0].metrics


def test_each_connection_has_a_file_that_the_drafts_allow(
    lossy: tuple[Path, dict[str, float]],
) -> None:
    folder, metrics = lossy
    names = [path.stem for path in sorted(folder.glob("*.qlog"))]
    web = [name for name in names if name.startswith("web-3-")]
    assert sorted(names) == ["sack-0", "sack-1", "udp-2", *sorted(web)]
    assert len(web) == metrics["web.connections"] > 0
    for name in names:
        assert read(folder / f"{name}.qlog")


def test_a_file_tells_what_was_measured(lossy: tuple[Path, dict[str, float]]) -> None:
    folder, metrics = lossy
    told = Counter[str]()
    for name in ("sack-0", "sack-1"):
        sent, dropped, acked = {}, set[int](), list[int]()
        for each in read(folder / f"{name}.qlog"):
            told[each["name"]] += 1
            data = each["data"]
            frames = data.get("frames", [])
            if each["name"] == "redtail:drop" and "from" not in data:
                dropped.add(data["packet_number"])
            if each["name"] == "transport:packet_sent":
                sent[data["header"]["packet_number"]] = data["raw"]
                told["again"] += "trigger" in data
            for frame in frames:
                if frame["frame_type"] == "ack" and each["name"].endswith("received"):
                    for first, *last in frame["acked_ranges"]:
                        acked += range(first, (last or [first])[0] + 1)
        # All data arrived: what was not lost was acknowledged once.
        data = {number for number, raw in sent.items() if raw["payload_length"]}
        assert sorted(acked) == sorted(data - dropped)
        told["data"] += len(data)
        told["dropped"] += len(dropped)
    assert told["data"] == metrics["sack.data_segments"]
    assert told["again"] == metrics["sack.retransmissions"] > 10
    assert told["redtail:timeout"] == metrics["sack.timeouts"]
    assert told["recovery:marked_for_retransmit"] == metrics["sack.retransmissions"]
    assert told["dropped"] > 10


def test_of_a_run_that_cannot_be_made_again_what_it_recorded_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = LOSSY + '[series]\ninterval = "1 s"\nwindows = true\n[events]\nkinds = ["timeout"]\n'
    redtail.run(redtail.Toml(text), out=tmp_path / "runs", set={"duration": "3 s"})
    monkeypatch.setattr(events, "not_again", lambda *_: "it was made by other code")
    where = ["lossy", "--out", str(tmp_path / "runs"), "--folder", str(tmp_path)]
    code, out, err = qlog(*where, "--flow", "0")
    assert code == 0 and out.split() == ["qlog:", str(tmp_path / "sack-0.qlog")]
    assert err == "note: it was made by other code: packets are missing\n"
    names = {each["name"] for each in read(tmp_path / "sack-0.qlog")}
    assert "recovery:metrics_updated" in names and "transport:packet_sent" not in names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--flow", "9"], "--flow 9: this run has 4 flows, from 0"),
        (["--group", "ftp"], "--group ftp: this run has the groups sack, udp, web"),
        (["--interval", "10"], "--interval 10: accepted: a time, such as '10 ms'"),
        (["--case", "1"], "Lossy has 1 cases; there is no case 1; accepted:"),
    ],
)
def test_what_does_not_exist_is_refused(
    arguments: list[str], message: str, lossy: tuple[Path, dict[str, float]]
) -> None:
    code, _, err = qlog("lossy", "--out", str(lossy[0] / "runs"), *arguments)
    assert code == 2 and message in err


def test_states_of_congestion_control_follow_from_events() -> None:
    def states(*told: tuple[str, str | None, float, float]) -> list[str]:
        found = [
            Event(at, at / 10, name, reason, cwnd_bytes=window, ssthresh_bytes=threshold)
            for at, (name, reason, window, threshold) in enumerate(told)
        ]
        return [
            each.data["new"]
            for each in recovery.of_events(found, {})
            if each.name == "recovery:congestion_state_updated"
        ]

    inf = float("inf")
    assert states(
        ("timeout", "handshake", 1000, inf),
        ("slow_start_end", "loss", 9000, 9000),
        ("recovery", None, 9000, 9000),
        ("recovery_end", "timeout", 1000, 4000),
        ("timeout", "data", 1000, 4000),
        ("loss_end", "acknowledged", 2000, 4000),
        ("slow_start_end", "threshold", 4000, 4000),
    ) == [
        "congestion_avoidance",
        "recovery",
        "loss",
        "slow_start",
        "congestion_avoidance",
    ]
    # A model has states of its own; those of Linux's repair are not among them.
    assert states(
        ("state", "startup", 1000, inf),
        ("recovery", None, 1000, inf),
        ("state", "recovery", 1000, inf),
        ("state", "drain", 1000, inf),
    ) == ["drain"]


def test_bytes_are_acknowledged_for_the_transmissions_that_arrived() -> None:
    def packet(at_ns: int, number: int, payload: int) -> packets.Packet:
        return packets.Packet(
            at_ns, True, number, 40 + payload, payload, packets.ACK, 2**32 - 100 + payload * number
        )

    side = packets.Side()
    for number in range(4):
        side.send(packet(number, number, 100))
    lost = side.latest(1)
    assert lost is not None and lost.number == 1
    lost.lost = True
    again = side.send(packet(6, 1, 100)._replace(id=4))
    assert again.again == 1
    # Sequence numbers wrap: the second segment begins at 0.
    ack = packets.Packet(7, False, 0, 40, 0, packets.ACK, 0, 0, 0, ((100, 300),))
    assert side.acknowledge(ack) == [0, 2, 3]
    assert side.acknowledge(ack._replace(ack=300, sack=())) == [4]
    assert packets.ranges([0, 2, 3]) == [[0], [2, 3]]
