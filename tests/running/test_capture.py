"""Captures as others read them: tshark and tcptrace against our own counters.

docs/how-to/captures.md says how the counts are matched. Every seed is fixed, and every count is
compared exactly.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

import redtail
from redtail import native
from redtail.cli import app
from redtail.engine import batches

#: Data is captured where it arrives at the bottleneck, before any loss, and acknowledgements
#: where they leave the return link; both are a few microseconds from the sender.
BOTH = ("bottleneck:in", "return:out")

EXPERIMENT = """
name = "Captured"
duration = "60 s"
host_jitter = "0 s"
replications = 1
seed = 7
[bottleneck]
rate = "5 Mbit/s"
delay = "40 ms"
queue = {queue}
[bottleneck.return]
rate = "5 Mbit/s"
delay = "0 s"
queue = {{ kind = "tail-drop", limit = "1000 packets" }}
[[traffic]]
name = "ftp"
flows = 3
access_rate = "1 Gbit/s"
tcp = {tcp}
{kind}
"""

TRANSFER = 'kind = "transfer"\nsize = "4 MB"\nstart = "uniform 0..2 s"'
BULK = 'kind = "bulk"\nstart = "0 s"'

SMALL_BUFFER = '{ kind = "tail-drop", limit = "20 packets" }'
LARGE_BUFFER = '{ kind = "tail-drop", limit = "1000 packets" }'
MARKING = (
    '{ kind = "red", limit = "60 packets", min_th = "5 packets", max_th = "20 packets", '
    "max_p = 0.1, w_q = 0.01, gentle = true, ecn = true }"
)
MARKING_EARLY = (
    '{ kind = "red", limit = "1000 packets", min_th = "5 packets", max_th = "300 packets", '
    "max_p = 1.0, w_q = 0.1, ecn = true }"
)

LOSSY = {
    "sack": (SMALL_BUFFER, '"sack"'),
    "newreno": (SMALL_BUFFER, '"newreno"'),
    "reno": (SMALL_BUFFER, '"reno"'),
    "tahoe": (SMALL_BUFFER, '"tahoe"'),
    "cubic": (SMALL_BUFFER, '"cubic"'),
    "linux": (SMALL_BUFFER, '"linux"'),
    "ns2-sack": (SMALL_BUFFER, '"ns2-sack"'),
    "every segment acknowledged": (SMALL_BUFFER, '{ preset = "sack", delayed_ack = false }'),
    "no handshake": (SMALL_BUFFER, '{ preset = "sack", handshake = false }'),
    "timestamps": (SMALL_BUFFER, '{ preset = "newreno", timestamps = true }'),
    "ecn": (MARKING, '{ preset = "sack", ecn = true }'),
    "newreno with ecn": (MARKING, '{ preset = "newreno", ecn = true }'),
    "bbr3": (SMALL_BUFFER, '"bbr3"'),
}

#: What an episode of recovery begins with is a fast retransmission to tshark as well, except
#: where losses are judged by time (RFC 8985), without waiting for duplicates.
BY_DUPLICATES = [name for name in LOSSY if name not in ("linux", "bbr3")]


def tool(name: str) -> str:
    """The path of a tool that a test needs."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed (on Debian: apt-get install {name})")
    return path


def captured(
    variant: tuple[str, str], path: Path, kind: str = TRANSFER, points: tuple[str, ...] = BOTH
) -> dict[str, float]:
    """Capture a run of a variant into one file; returns its metrics."""
    queue, tcp = variant
    text = EXPERIMENT.format(queue=queue, tcp=tcp, kind=kind)
    return redtail.capture(redtail.Toml(text), dict.fromkeys(points, path)).metrics


class Row(NamedTuple):
    """What tshark says of a packet; empty where it says nothing."""

    stream: str
    server: bool
    seq: int
    ack: int
    length: int
    retransmission: str
    fast: str
    out_of_order: str
    duplicate: str
    lost: str
    ecn: str
    flags: str
    completeness: str


def tshark(path: Path, *fields: str) -> list[list[str]]:
    """The fields of each packet, checksums verified."""
    command = [tool("tshark"), "-r", str(path), "-T", "fields"]
    for protocol in ("ip", "tcp", "udp"):
        command += ["-o", f"{protocol}.check_checksum:TRUE"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def analysed(path: Path) -> list[Row]:
    rows = tshark(
        path,
        "tcp.stream",
        "tcp.srcport",
        "tcp.seq",
        "tcp.ack",
        "tcp.len",
        *(
            f"tcp.analysis.{what}"
            for what in (
                "retransmission",
                "fast_retransmission",
                "out_of_order",
                "duplicate_ack",
                "lost_segment",
            )
        ),
        "ip.dsfield.ecn",
        "tcp.flags",
        "tcp.completeness",
    )
    return [
        Row(stream, int(port) >= 50000, int(seq), int(ack), int(length), *rest)
        for stream, port, seq, ack, length, *rest in rows
    ]


class Captured(NamedTuple):
    """A capture of a run, what the run measured, and what tshark says of each packet."""

    path: Path
    metrics: dict[str, float]
    rows: list[Row]


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Captured]:
    """Return what was captured of one of LOSSY, which is run and analysed once."""

    @cache
    def of(name: str) -> Captured:
        path = tmp_path_factory.mktemp("lossy") / "both.pcapng"
        metrics = captured(LOSSY[name], path)
        return Captured(path, metrics, analysed(path))

    return of


def with_payload(path: Path) -> Path:
    """A copy in which the payload, all zeros, has been put back, for its checksums to be seen."""
    data, at, out = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + length - 4]
        if kind == 1:
            body = body[:4] + bytes(4) + body[8:]  # no limit to what is kept
        if kind == 6:
            kept, original = struct.unpack_from("<II", body, 12)
            packet = body[20 : 20 + kept].ljust(original + -original % 4, b"\0")
            body = body[:12] + struct.pack("<II", original, original) + packet
        size = struct.pack("<I", len(body) + 12)
        out.append(struct.pack("<I", kind) + size + body + size)
        at += length
    copy = path.with_suffix(".whole.pcapng")
    copy.write_bytes(b"".join(out))
    return copy


MIXED = """
name = "Mixed"
duration = "5 s"
replications = 1
[bottleneck]
rate = "5 Mbit/s"
delay = "5 ms"
[bottleneck.queue]
kind = "red"
limit = "40 packets"
min_th = "5 packets"
max_th = "20 packets"
ecn = true
[bottleneck.return]
rate = "1 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "40 packets" }
[[traffic]]
name = "ecn"
kind = "bulk"
tcp = { preset = "sack", ecn = true }
[[traffic]]
name = "linux"
kind = "bulk"
tcp = "linux"
[[traffic]]
name = "reno"
kind = "bulk"
tcp = { preset = "reno", receive_window = "20 kB" }
[[traffic]]
name = "back"
kind = "bulk"
direction = "reverse"
tcp = "cubic"
[[traffic]]
name = "udp"
kind = "cbr"
rate = "200 kbit/s"
packet = "573 B"
"""


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("snapped", [True, False])
def test_no_packet_is_malformed_or_has_a_bad_checksum(
    ip: int, snapped: bool, tmp_path: Path
) -> None:
    path = tmp_path / "mixed.pcapng"
    points = ("bottleneck:in", "bottleneck:out", "return:in", "return:out")
    redtail.capture(redtail.Toml(MIXED), dict.fromkeys(points, path), ip=ip)
    file = path if snapped else with_payload(path)
    rows = tshark(
        file,
        "_ws.malformed",
        "ip.checksum.status",
        "tcp.checksum.status",
        "udp.checksum.status",
        "_ws.expert.severity",
        "ip.proto" if ip == 4 else "ipv6.nxt",
    )
    assert len(rows) > 5000
    good, unverified = "1", "2"
    protocols = Counter(row[5] for row in rows)
    assert set(protocols) == {"6", "17"} and protocols["17"] > 300
    error = str(0x00800000)
    for malformed, of_ip, tcp, udp, severity, protocol in rows:
        assert not malformed and error not in severity.split(",")
        assert of_ip == (good if ip == 4 else "")
        seen = tcp if protocol == "6" else udp
        assert seen == good or (snapped and seen == unverified)


@pytest.mark.parametrize("name", LOSSY)
def test_tshark_counts_what_the_senders_count(name: str, lossy: Callable[[str], Captured]) -> None:
    _, metrics, rows = lossy(name)
    data = [row for row in rows if row.length > 0]
    assert not any(row.lost for row in rows), "the capture misses packets"
    assert len(data) == metrics["ftp.data_segments"]
    again = sum(bool(row.retransmission or row.out_of_order) for row in data)
    assert again == metrics["ftp.retransmissions"] > 20
    assert sum(bool(row.duplicate) for row in rows) == metrics["ftp.duplicate_acks"] > 0


@pytest.mark.parametrize("name", BY_DUPLICATES)
def test_episodes_of_fast_retransmission_are_those_the_senders_count(
    name: str, lossy: Callable[[str], Captured]
) -> None:
    _, metrics, rows = lossy(name)
    acked, sent, recover = Counter[str](), Counter[str](), Counter[str]()
    episodes = 0
    for row in rows:
        stream = row.stream
        if row.server:
            acked[stream] = row.ack
            continue
        if row.fast and acked[stream] >= recover[stream]:
            episodes += 1
            recover[stream] = sent[stream]
        sent[stream] = max(sent[stream], row.seq + row.length)
    assert episodes == metrics["ftp.fast_recoveries"] > 0


@pytest.mark.parametrize("name", ["ecn", "newreno with ecn"])
def test_packets_with_ce_are_those_the_queue_marked(name: str, tmp_path: Path) -> None:
    before, after = tmp_path / "in.pcapng", tmp_path / "out.pcapng"
    metrics = captured(LOSSY[name], before, points=("bottleneck:in",))
    captured(LOSSY[name], after, points=("bottleneck:out",))
    arrived = analysed(before)
    assert not any(row.ecn == "3" for row in arrived)
    marks = metrics["mark"] * len(arrived)
    assert marks == pytest.approx(round(marks), abs=1e-6)
    assert sum(row.ecn == "3" for row in analysed(after)) == round(marks) > 50
    told = [comment for (comment,) in tshark(before, "frame.comment") if comment]
    law = r"average \d+\.\d packets, probability \d\.\d{3}"
    marked = [text for text in told if re.fullmatch(f"marked CE at bottleneck: red, {law}", text)]
    assert len(marked) == round(marks)
    dropped = r"dropped at bottleneck: red, (limit|early|forced), " + law
    dropped = [text for text in told if re.fullmatch(dropped, text)]
    assert len(marked) + len(dropped) == len(told)
    assert len(dropped) == round(metrics["loss"] * len(arrived))


def test_tools_read_what_is_told_beside_packets(tmp_path: Path) -> None:
    path, whole = tmp_path / "out.pcapng", tmp_path / "edited.pcapng"
    captured((SMALL_BUFFER, '"sack"'), path, points=("bottleneck:in", "bottleneck:out"))
    (dropped,) = (text.count("dropped at") for text in [path.read_bytes().decode("latin-1")])
    subprocess.run([tool("editcap"), str(path), str(whole)], check=True, capture_output=True)
    for file in (path, whole):
        told = [text for (text,) in tshark(file, "frame.comment") if text]
        assert set(told) == {"dropped at bottleneck: tail-drop, limit"} and len(told) == dropped
        seen = subprocess.run(
            [tool("capinfos"), "-c", "-M", str(file)], capture_output=True, text=True, check=True
        ).stdout
        packets = len(native.module().read_capture(file).columns["ecn"][1])
        assert re.search(rf"Number of packets: +{packets}$", seen, re.MULTILINE)
    # Interface statistics: what passed each point, and what did not fit the queue behind it.
    data, at, counted = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 5:
            interface, _, option, _, received, other, _, lost = struct.unpack_from(
                "<IQHHQHHQ", data, at + 8
            )
            assert (option, other) == (4, 5)
            counted.append((interface, received, lost))
        at += length
    columns = native.module().read_capture(path).columns
    passed = Counter(struct.unpack(f"<{packets}I", columns["interface"][1]))
    assert counted == [(0, passed[0], 0), (1, passed[1], dropped)]


def tcptrace(path: Path, name: str) -> list[float]:
    """A number that tcptrace gives for each direction of each connection, sender's first."""
    command = [tool("tcptrace"), "-n", "-l", "-r", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(number) for number in re.findall(rf"{name}:\s+([\d.]+)", done.stdout)]


@pytest.mark.parametrize("name", LOSSY)
def test_tcptrace_counts_the_same_retransmissions(
    name: str, lossy: Callable[[str], Captured]
) -> None:
    path, metrics, _ = lossy(name)
    # tcptrace counts a SYN that is sent again; our counter is of data alone.
    again = sum(max(sent - 1, 0) for sent in tcptrace(path, "SYN/FIN pkts sent"))
    assert sum(tcptrace(path, "rexmt data pkts")) - again == metrics["ftp.retransmissions"]


@pytest.mark.parametrize("name", LOSSY)
def test_tcptrace_has_the_throughput(name: str, tmp_path: Path) -> None:
    path = tmp_path / "both.pcapng"
    queue, tcp = LOSSY[name]
    metrics = captured((queue, tcp), path, kind=BULK)
    bytes_per_s = tcptrace(path, "throughput")
    assert len(bytes_per_s) == 6
    assert sum(bytes_per_s) * 8 == pytest.approx(metrics["ftp.goodput"], rel=0.01)


#: ns-2's one-way agents know neither SYN nor FIN.
CLOSING = [name for name in LOSSY if name not in ("ns2-sack", "no handshake")]


@pytest.mark.parametrize("name", CLOSING)
def test_connections_are_complete_to_both_tools(
    name: str, lossy: Callable[[str], Captured]
) -> None:
    path, metrics, rows = lossy(name)
    assert metrics["ftp.completed"] == 1
    command = [tool("tcptrace"), "-n", "-l", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"complete conn: (\w+)", done) == ["yes"] * 3
    assert re.findall(r"missed data:\s+(\d+)", done) == ["0"] * 6
    pairs = re.findall(r"SYN/FIN pkts sent:\s+(\d+)/(\d+)", done)
    assert len(pairs) == 6 and all(int(syn) >= 1 and int(fin) >= 1 for syn, fin in pairs)
    # 31: SYN, SYN-ACK, ACK, data and FIN were seen.
    assert {row.stream: row.completeness for row in rows} == dict.fromkeys("012", "31")
    # The last of each connection is the sender's acknowledgement of the peer's FIN.
    for stream in "012":
        *_, fin, ack = [row for row in rows if row.stream == stream]
        assert fin.server and int(fin.flags, 16) & 0x11 == 0x11
        # SYN, four million bytes, FIN.
        assert (fin.seq, fin.ack) == (1, 4000002)
        assert not ack.server and (ack.seq, ack.ack) == (4000002, 2)
        assert ack.flags == "0x0010"


@pytest.mark.parametrize("name", ["timestamps", "linux"])
def test_both_ends_show_their_clocks_and_echo_the_others(
    name: str, lossy: Callable[[str], Captured]
) -> None:
    path = lossy(name).path
    stamps = ("tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr")
    seen: dict[tuple[str, str], set[int]] = {}
    for stream, port, value, echo, time_s, flags in tshark(
        path, "tcp.stream", "tcp.srcport", *stamps, "frame.time_epoch", "tcp.flags"
    ):
        # The clock counts microseconds from the start of the run; an acknowledgement has
        # crossed the return queue since, data the access link.
        assert 0 <= float(time_s) * 1e6 - int(value) < 200_000
        other = "50000" if port == "40000" else "40000"
        if int(flags, 16) & 0x10:
            assert int(echo) in seen[stream, other]
        seen.setdefault((stream, port), set()).add(int(value))
    assert all(len(values) > 1000 for values in seen.values())


def test_tshark_sees_zero_windows_probes_and_updates(tmp_path: Path) -> None:
    path = tmp_path / "both.pcapng"
    tcp = '{ preset = "sack", receive_window = "4 kB", read_rate = "4 kbit/s" }'
    kind = 'kind = "transfer"\nsize = "20 kB"\nstart = "0 s"'
    metrics = captured((LARGE_BUFFER, tcp), path, kind=kind)
    assert metrics["ftp.completed"] == 1
    # Read at 500 B/s, but for what the buffer holds at the end.
    assert 32 <= metrics["ftp.completion_time_mean"] < 34
    assert metrics["ftp.timeouts"] == metrics["ftp.retransmissions"] == 0
    assert metrics["ftp.duplicate_acks"] == 0
    counts = Counter[str]()
    kinds = ("zero_window", "zero_window_probe", "zero_window_probe_ack", "window_update")
    wrong = ("retransmission", "out_of_order", "duplicate_ack", "lost_segment", "keep_alive")
    for row in tshark(path, *(f"tcp.analysis.{what}" for what in (*kinds, *wrong))):
        counts.update(what for what, told in zip((*kinds, *wrong), row, strict=True) if told)
    assert not any(counts[what] for what in wrong)
    # Eleven times, on each of three connections, 1460 B take 2.92 s to read.
    assert counts["window_update"] >= 3 * 10
    assert counts["zero_window_probe"] == counts["zero_window_probe_ack"] >= 3 * 10
    assert counts["zero_window"] == 3 * 11 + counts["zero_window_probe_ack"]


LOSSLESS = {
    "sack": (LARGE_BUFFER, '{ preset = "sack", receive_window = "60 kB" }'),
    "newreno": (LARGE_BUFFER, '{ preset = "newreno", receive_window = "60 kB" }'),
    "cubic": (LARGE_BUFFER, '{ preset = "cubic", receive_window = "90 kB" }'),
    "linux": (LARGE_BUFFER, '{ preset = "linux", receive_window = "90 kB" }'),
    "every segment acknowledged": (
        LARGE_BUFFER,
        '{ preset = "sack", receive_window = "60 kB", delayed_ack = false }',
    ),
    "no handshake": (
        LARGE_BUFFER,
        '{ preset = "sack", receive_window = "60 kB", handshake = false }',
    ),
    "ecn": (MARKING_EARLY, '{ preset = "sack", ecn = true, initial_window = 2 }'),
}


@pytest.mark.parametrize("name", LOSSLESS)
def test_tcptrace_has_the_round_trip(name: str, tmp_path: Path) -> None:
    path = tmp_path / "both.pcapng"
    metrics = captured(LOSSLESS[name], path, kind=BULK)
    assert metrics["ftp.retransmissions"] == 0
    data_bits, ack_bits = 1500 * 8, (52 if name == "linux" else 40) * 8
    # Two queues, two transmissions, the exit link, an acknowledgement's transmission.
    fixed_s = 0.040 + data_bits / 5e6 + data_bits / 50e6 + ack_bits / 5e6
    own_s = fixed_s + metrics["queue_delay_mean"] + metrics["return.queue_delay_mean"]
    samples = tcptrace(path, "RTT samples")[::2]
    means_ms = tcptrace(path, "RTT avg")[::2]
    assert len(samples) == 3 and min(samples) > 1000
    total_ms = sum(mean * count for mean, count in zip(means_ms, samples, strict=True))
    assert total_ms / sum(samples) == pytest.approx(own_s * 1000, rel=0.01)


def quickstart(tmp_path: Path, *arguments: str) -> tuple[int, str, str]:
    command = ["run", "examples/quickstart.toml", "--no-figures", "--out", str(tmp_path / "runs")]
    command += ["--replications", "1", *arguments]
    done = CliRunner().invoke(app, command)
    return done.exit_code, done.stdout, done.stderr


def test_a_capture_measures_what_the_run_does_and_leaves_the_store_alone(tmp_path: Path) -> None:
    file = "examples/quickstart.toml"
    results = redtail.run(file, replications=1, out=tmp_path / "runs")
    stored = sorted(tmp_path.rglob("*"))
    done = redtail.capture(file, {"bottleneck": tmp_path / "packets.pcapng"}, case=1)
    assert done.files == (tmp_path / "packets.pcapng",)
    assert done.case == redtail.check(file).cases[1]
    assert results.cases[1].runs[0].metrics == done.metrics
    assert sorted(tmp_path.rglob("*")) == sorted([*stored, *done.files])


def test_the_command_line_captures_beside_the_results(tmp_path: Path) -> None:
    file = tmp_path / "packets.pcapng"
    code, out, err = quickstart(
        tmp_path, "--pcap", f"bottleneck:in={file}", "--pcap-case", "0", "--pcap-ip", "6"
    )
    assert (code, err) == (0, "")
    assert f"capture: {file}\n" in out and "2 runs, in" in out
    assert file.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    code, out, _ = quickstart(tmp_path)
    assert "2 runs, 2 of them reused" in out, "a capture is no part of what names a result"
    code, out, err = quickstart(
        tmp_path, "--json", "--pcap", f"bottleneck={file}", "--pcap-case", "1"
    )
    assert code == 0 and len(json.loads(out)["cases"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--pcap", "bottleneck=FILE"],
            "one run is captured, and there are 2 cases; choose one by its number with "
            "--pcap-case N (case=N in Python):\n  0: tail drop\n  1: RED\n",
        ),
        (["--pcap", "bottleneck=FILE", "--pcap-case", "2"], "there is no case 2 to capture"),
        (
            ["--pcap", "bottleneck=FILE", "--pcap-case", "0", "--pcap-replication", "1"],
            "there is no replication 1 to capture; the experiment has 1, counted from 0",
        ),
        (
            ["--pcap", "return=FILE", "--pcap-case", "0"],
            'no link is called "return"; this experiment has: bottleneck',
        ),
        (["--pcap", "bottleneck:at=FILE", "--pcap-case", "0"], 'a link has no end "at"; accepted:'),
        (["--pcap", "bottleneck", "--pcap-case", "0"], "--pcap bottleneck: accepted: LINK=FILE"),
        (["--pcap", "bottleneck=FILE", "--pcap-case", "0", "--pcap-ip", "5"], "4 or 6, not 5"),
        (["--pcap-case", "0"], "there is no --pcap"),
    ],
)
def test_what_cannot_be_captured_is_refused_before_anything_runs(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    arguments = [text.replace("FILE", str(tmp_path / "x.pcapng")) for text in arguments]
    code, out, err = quickstart(tmp_path, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_a_capture_that_cannot_be_written_is_reported_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "none" / "x.pcapng"
    code, _, err = quickstart(tmp_path, "--pcap", f"bottleneck={file}", "--pcap-case", "0")
    assert code == 1
    assert f"error: {file} cannot be written: No such file or directory" in err


def test_a_full_disk_is_reported_by_the_name_of_the_capture() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with pytest.raises(redtail.StoreError, match="/dev/full cannot be written: No space left"):
        redtail.capture("examples/quickstart.toml", {"bottleneck": "/dev/full"}, case=0)
    assert Path("/dev/full").is_char_device()


def test_a_capture_that_was_interrupted_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cancelled:
        def __init__(self) -> None:
            self.token = native.module().CancelToken()
            self.token.cancel()

    monkeypatch.setattr(batches, "cancel_token", lambda: Cancelled().token)
    with pytest.raises(redtail.Cancelled):
        redtail.capture(
            "examples/quickstart.toml",
            {"bottleneck": tmp_path / "x.pcapng"},
            case=0,
            set={"duration": "1000 s"},
        )
    assert list(tmp_path.iterdir()) == []


USERS = """
name = "Users"
duration = "100 s"
replications = 1
seed = 3
[bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
queue = {{ kind = "tail-drop", limit = "20 packets" }}
[bottleneck.return]
rate = "50 Mbit/s"
delay = "0 s"
queue = {{ kind = "tail-drop", limit = "1000 packets" }}
[[traffic]]
name = "web"
kind = "web"
model = "{model}"
users = 20
start = "uniform 0..5 s"
stop = "15 s"
object = "pareto min 2 kB shape 1.2 max 300 kB"
think = "exponential mean 5 s"
access_rate = "1 Gbit/s"
hosts = 3
tcp = "{tcp}"
"""


@pytest.mark.parametrize("model", ["feldmann", "request-think", "empirical", "http1", "http2"])
@pytest.mark.parametrize("tcp", ["sack", "linux"])
def test_connections_of_users_are_whole_to_tshark(model: str, tcp: str, tmp_path: Path) -> None:
    # All users have stopped long before the end: every connection was opened and closed.
    path = tmp_path / "users.pcapng"
    text = USERS.format(model=model, tcp=tcp)
    metrics = redtail.capture(redtail.Toml(text), dict.fromkeys(BOTH, path)).metrics
    assert metrics["web.unanswered"] == 0
    rows = tshark(
        path,
        "tcp.stream",
        "tcp.srcport",
        "tcp.dstport",
        "tcp.flags.syn",
        "tcp.flags.fin",
        "tcp.len",
        "tcp.analysis.retransmission",
        "tcp.analysis.out_of_order",
        "tcp.analysis.lost_segment",
        "tcp.analysis.reused_ports",
        "ip.checksum.status",
        "_ws.malformed",
    )
    flags: dict[str, Counter[str]] = {}
    ports, data, again = set(), 0, 0
    for stream, source, to, syn, fin, length, resent, late, lost, reused, ip, malformed in rows:
        assert not (lost or reused or malformed) and ip == "1"
        seen = flags.setdefault(stream, Counter())
        side = "server" if source == "40000" else "client"
        seen[f"syn {side}"] += syn in ("1", "True")
        seen[f"fin {side}"] += fin in ("1", "True")
        ports.add((stream, min(source, to), max(source, to)))
        data += int(length) > 0
        again += int(length) > 0 and bool(resent or late)
    assert len(flags) == len(ports) == metrics["web.connections"] > 10
    for seen in flags.values():
        assert len(seen) == 4 and all(seen.values())
    assert data == metrics["web.data_segments"]
    assert again == metrics["web.retransmissions"] > 0
