"""Recordings from somebody else: bounded memory and time, values that a line can have, plain text.

The inputs are those of an attack, and the kinds that they stand for. `make attack` looks for more.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import signal
import struct
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import redtail
from attack.__main__ import Worker
from attack.inputs import ROOT
from attack.recordings import SEEDS, seeds
from redtail import escape, lines
from redtail.cli import app
from redtail.errors import SpecError
from redtail.lines.recordings import line, pings, rates, reading, tcp
from redtail.lines.recordings.found import Direction, Flows, Found
from redtail.lines.recordings.rates import Deliveries
from redtail.lines.recordings.values import Estimated, Impossible, within

linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="limits memory, or makes what other systems refuse"
)

NEAR, FAR = bytes([10, 0, 0, 1]), bytes([9, 9, 9, 9])


def segment(
    number: int, payload: int, *, flags: int = 16, port: int = 1000, size: int | None = None
) -> bytes:
    """A segment of TCP over IPv4 without its payload."""
    told = 40 + payload if size is None else size
    ip = struct.pack(">BBHHHBBH", 0x45, 0, told, 0, 0, 64, 6, 0) + NEAR + FAR
    return ip + struct.pack(">HHIIBBHHH", port, 80, number % 2**32, 1, 0x50, flags, 99, 0, 0)


def pcap(packets: Iterator[tuple[int, bytes]], original: int | None = None) -> bytes:
    """A capture of packets, each with its time in us; they claim to have been so large."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)]
    for at, packet in packets:
        size = len(packet) if original is None else original
        parts.append(struct.pack("<IIII", at // 10**6, at % 10**6, len(packet), size) + packet)
    return b"".join(parts)


def pcapng(interfaces: int, packets: Iterator[tuple[int, int, bytes]]) -> bytes:
    """A capture at so many interfaces: packets with their interface and time in us."""
    parts = [struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)]
    parts += [struct.pack("<IIHHII", 1, 20, 101, 0, 0, 20)] * interfaces
    for interface, at, packet in packets:
        size = 32 + len(packet)
        head = struct.pack("<7I", 6, size, interface, at >> 32, at % 2**32, len(packet), 1500)
        parts.append(head + packet + struct.pack("<I", size))
    return b"".join(parts)


def answer(number: object, ms: object, at: float | None = None) -> str:
    """A line of a log of ping."""
    stamp = "" if at is None else f"[{at:.6f}] "
    return f"{stamp}64 bytes from 192.0.2.1: icmp_seq={number} ttl=57 time={ms} ms"


def log(numbers: Iterator[int], stamps: bool = True) -> bytes:
    """A log with answers of these numbers, five a second."""
    lines = [
        answer(number, 10 + count % 7, 1.7e9 + count / 5 if stamps else None)
        for count, number in enumerate(numbers)
    ]
    return "\n".join(lines).encode()


def flent(**changed: Any) -> dict[str, Any]:
    """A data file of Flent with a transfer and pings."""
    at = [0.2 * n for n in range(100)]
    rows = [{"seq": n, "t": 1e9 + 0.2 * n, "val": 10.0 + n % 7} for n in range(100)]
    return {
        "version": 4,
        "metadata": {"NAME": "x", "SERIES_META": {}},
        "x_values": at,
        "results": {"TCP download": [8.0] * 100, "Ping (ms) ICMP": [10.0] * 100},
        "raw_values": {"Ping (ms) ICMP": rows},
        **changed,
    }


def gap(numbers: Callable[[int], int]) -> dict[str, Any]:
    """A data file of Flent whose pings have these numbers."""
    data = flent()
    for row in data["raw_values"]["Ping (ms) ICMP"]:
        row["seq"] = numbers(row["seq"])
    return data


def connections(count: int) -> Iterator[tuple[int, bytes]]:
    """Connections of a packet each."""
    for number in range(count):
        yield 10 * number, segment(0, 1448, port=1 + number % 60_000)


def many_holes(count: int) -> Iterator[tuple[int, bytes]]:
    """Segments with holes between them, which are then filled from the end."""
    for number in range(count):
        yield 10 * number, segment(3000 * number, 1448)
    for number in range(count, 0, -1):
        yield 10 * (2 * count - number), segment(3000 * number - 1500, 1448)


@cache
def bomb() -> bytes:
    """A file of 65 kB that becomes 67 MB."""
    return gzip.compress(b"1\n" * (1 << 25), 9)


LARGE: dict[str, Callable[[], bytes]] = {
    "flent with a gap": lambda: json.dumps(gap(lambda n: n if n < 50 else 10**12 + n)).encode(),
    "flent with gaps": lambda: json.dumps(gap(lambda n: 65_000 * n)).encode(),
    "ping with a gap": lambda: log(n if n < 15 else 3 * 10**9 for n in range(30)),
    "ping with gaps": lambda: log((32_000 * n) % 65536 for n in range(30_000)),
    "mahimahi": lambda: b"1\n5\n100000000000000\n",
    "lengths": lambda: pcap(
        ((10_000 * n + n * 7919 % 5000, segment(1448 * n, 1448, size=0)) for n in range(4000)),
        0xFFFFFFF0,
    ),
    "interfaces": lambda: pcapng(
        200_000, ((100 * n, n * 1000, segment(1448 * n, 1448)) for n in range(2000))
    ),
    "interfaces and conversations": lambda: pcapng(
        20_000, ((n, n * 1000, segment(0, 1448, port=1 + n)) for n in range(20_000))
    ),
    "conversations": lambda: pcap(connections(30_000)),
    "holes": lambda: pcap(many_holes(20_000)),
    "claimed block": lambda: pcap(iter(())) + struct.pack("<IIII", 0, 0, 1 << 26, 1 << 26),
    "gzip": lambda: bomb(),
    "lists": lambda: json.dumps(flent(more=[[]] * 6_000_000)).encode(),
    "nested": lambda: b'{"a":' + b"[" * 200_000,
    "one line": lambda: b"1 bytes from  seq=1 " * 100_000,
    "lines like answers": lambda: (
        b"64 bytes from h: icmp_seq=1 ttl=1 time=1 ms\n"
        + 3000 * (b"1 bytes from seq=1 " * 52 + b"\n")
    ),
    "lines like addresses": lambda: (
        b"Reply from h: bytes=1 time=1ms TTL=1\n" + 3000 * (b"2001:" * 190 + b"\n")
    ),
    "fping": lambda: b"h : " + b"1.5 " * 24_000,
    "hosts": lambda: b"".join(b"h%d : [0], 8 bytes, 1 ms\n" % n for n in range(100_000)),
    "trips": lambda: b'{"round_trips": [' + b'{"delay":{"rtt":5}},' * 200_000 + b"{}]}",
    "intervals": lambda: (
        b'{"start":{},"intervals":['
        + b'{"streams":[{"seconds":1,"bytes":9,"sender":true}]},' * 50_000
        + b"{}]}"
    ),
    "UTF-16": lambda: b"\xff\xfe" + "\u00e9\n".encode("utf-16-le") * 2_000_000,
}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker("attack.estimating")
    yield made
    made.close()


@linux
@pytest.mark.parametrize("name", LARGE)
def test_memory_and_time_are_bounded_by_the_file(name: str, worker: Worker, tmp_path: Path) -> None:
    file = tmp_path / "recording"
    file.write_bytes(LARGE[name]())
    # The worker has a limit of 10 times the file and 100 MB, and of processor time.
    assert "fault" not in worker.attempt(file)


def trace(rows: int) -> bytes:
    return b"".join(b"%d\n" % n for n in range(rows))


BAD: dict[str, tuple[bytes, str]] = {
    "flent far": (
        json.dumps(gap(lambda n: n if n < 50 else 10**12 + n)).encode(),
        r'"raw_values": "Ping \(ms\) ICMP": "seq" goes from 49 to 1000000000050; accepted',
    ),
    "ping far": (
        log(n if n < 15 else 3 * 10**9 for n in range(30)),
        "line 16: the sequence number is 3000000000; accepted: 0 to 65535",
    ),
    "ping slow": (
        f"{answer(1, 5)}\n{answer(2, '9' * 400)}".encode(),
        "line 2: the round trip is inf ms; accepted: 0 to 3600000 ms",
    ),
    "ping late": (
        answer(1, 5, 1e12).encode(),
        "line 1: the time is 1e[+]12 s; accepted: 0 to 1e[+]10 s",
    ),
    "trace far": (b"1\n100000000000000\n", "line 2: '100000000000000' is no time; accepted"),
    "trace of digits": ("1\n\u00b2\n".encode(), "line 2: '\u00b2' is no time"),
    "trace of many digits": (b"1\n" + b"9" * 900, "line 2: '9{40}' is no time"),
    "nested": (b'{"a":' + b"[" * 200_000, "it is JSON with lists within lists, deeper"),
    "constant": (b'{"version": NaN}', "it is JSON with the value NaN; accepted: numbers, and null"),
    "long integer": (b'{"version": ' + b"1" * 5000 + b"}", "Exceeds the limit"),
    "metadata": (json.dumps(flent(metadata=3)).encode(), '"metadata" is 3; accepted: an object'),
    "results": (json.dumps(flent(results=[])).encode(), '"results" is a list; accepted: an object'),
    "series": (
        json.dumps(flent(results={"TCP upload": "x" * 100})).encode(),
        'the series "TCP upload" is a text; accepted: a list',
    ),
    "units": (
        json.dumps(flent(metadata={"SERIES_META": {"TCP download": 3}})).encode(),
        '"SERIES_META": "TCP download" is 3; accepted: an object',
    ),
    "flent name": (
        json.dumps(flent(metadata={"NAME": [1]})).encode(),
        '"metadata": "NAME" is a list; accepted: a text',
    ),
    "negative goodput": (
        json.dumps(flent(results={"TCP download": [8.0] * 99 + [-1]})).encode(),
        'the series "TCP download": value 100 is -1; accepted: 0 to 1000000, or null',
    ),
    "infinite goodput": (
        json.dumps(flent(results={"TCP download": [8.0] * 99 + [7777]}))
        .replace("7777", "1e999")
        .encode(),
        'the series "TCP download": value 100 is Infinity; accepted',
    ),
    "truth value": (
        json.dumps(flent(results={"TCP download": [True] * 100})).encode(),
        'the series "TCP download": value 1 is true; accepted',
    ),
    "negative round trip": (
        json.dumps(flent(raw_values={}, results={"Ping (ms) x": [-1.0] * 100})).encode(),
        r'the series "Ping \(ms\) x": value 1 is -1\.0; accepted: 0 to 3600000, or null',
    ),
    "rows": (
        json.dumps(flent(raw_values={"Ping (ms) ICMP": [3]})).encode(),
        r'"raw_values": "Ping \(ms\) ICMP": value 1 is 3; accepted: an object',
    ),
    "times back": (
        json.dumps(flent(x_values=[1.0, 0.5] * 50)).encode(),
        '"x_values": value 2 is 0.5; accepted: numbers, none before the one in front',
    ),
    "no time": (
        json.dumps(flent(x_values=[1.0] * 100)).encode(),
        '"x_values": 100 values take no time; accepted: two times or more',
    ),
    "packed nothing": (gzip.compress(b""), "the file is empty; accepted: a capture"),
}


@pytest.mark.parametrize("name", BAD)
def test_impossible_values_are_refused_where_they_are(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    file = tmp_path / "recording"
    file.write_bytes(content)
    with pytest.raises(SpecError, match=message) as caught:
        lines.estimate(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_time_stamp_that_no_clock_shows_is_damage(tmp_path: Path) -> None:
    file = tmp_path / "line.pcapng"
    packets = [(0, 1, segment(0, 9)), (0, 2**63, segment(9, 9)), (0, 2, segment(18, 9))]
    file.write_bytes(pcapng(1, iter(packets)))
    (damage,) = [text for text in lines.estimate(file).cautions if "damaged" in text]
    assert "after 2 packets: the packet's time stamp is outside of 0 to 4611686018 s" in damage


def test_packets_that_are_larger_than_any_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "line.pcap"
    sizes = (1500, 8 * 65535, 8 * 65535 + 1, 2**32 - 1, 19, 0)
    parts = [pcap(iter([(n, segment(0, 9, size=0))]), size) for n, size in enumerate(sizes)]
    file.write_bytes(parts[0] + b"".join(part[24:] for part in parts[1:]))
    told = lines.estimate(file)
    assert any("4 packets are left out" in text for text in told.cautions)
    assert "capture of 2 packets" in told.about


@pytest.mark.parametrize(
    "numbers",
    [(math.nan, None, None), (math.inf, None, None), (-1.0, None, None), (2.0, 3.0, 4.0),
     (5.0, 3.0, 4.0), (None, 1.0, 2.0), (1.0, -1.0, 2.0), (1.0, 0.0, math.inf)],
)  # fmt: skip
def test_an_estimate_holds_its_value_in_its_interval(numbers: tuple[float | None, ...]) -> None:
    value, low, high = numbers
    with pytest.raises(Impossible, match="the estimate is impossible"):
        Estimated(value, "s", "", low, high)


def test_shares_round_trips_and_flows_are_what_they_can_be() -> None:
    with pytest.raises(Impossible, match="is no share"):
        Estimated(2.0, "", "")
    with pytest.raises(Impossible, match="a round trip of 0 s"):
        Found(Path("x"), "ping", "", 1.0, rtt=Estimated(0.0, "s", ""))
    with pytest.raises(Impossible, match="busy for"):
        Direction(busy=1.5)
    with pytest.raises(Impossible, match="bit/s from"):
        Direction(steps=((0.0, 1.0, math.nan),))
    assert within(5.0, "s", "", 6.0, 7.0).low == 5.0
    with pytest.raises(SpecError, match="rtt_s = -1: accepted: a number above 0"):
        lines.estimate(ROOT / "examples" / "cellular.trace", rtt_s=-1)
    with pytest.raises(SpecError, match=r"down_bps = 1e[+]300: accepted: a number above 0, up to"):
        lines.estimate(ROOT / "examples" / "cellular.trace", down_bps=1e300)


def test_where_no_packet_waits_nothing_is_said_of_the_buffer(tmp_path: Path) -> None:
    file = tmp_path / "ping.log"
    file.write_text("\n".join(answer(n, 10, 1.7e9 + n) for n in range(60) if n % 9))
    told = lines.estimate(file)
    assert not told.down.wait.known and told.down.wait.basis == "no packet was seen to wait"
    assert told.down.loss.value == pytest.approx(6 / 59)


def test_advice_refuses_buffers_and_flows_that_are_no_lines() -> None:
    told = lines.estimate(ROOT / "examples" / "cellular.trace", rtt_s=0.05, up_bps=1e6)
    long = replace(told, down=replace(told.down, wait=Estimated(60.0, "s", "given")))
    with pytest.raises(SpecError, match="a full buffer waits 60 s down; to advise takes one of up"):
        line.recorded_line(long, "lte", ("web",))
    many = Flows("bulk", "up", 5000, 1e6, 1500, tcp="linux")
    with pytest.raises(SpecError, match="5000 flows send all the time up; to advise takes up to"):
        line.recorded_line(replace(told, flows=(many,)), "lte", ("web",))


def test_retransmitted_syns_are_no_losses_of_data(tmp_path: Path) -> None:
    file = tmp_path / "line.pcap"
    syns = [(10**6 * n, segment(0, 0, flags=2)) for n in range(5)]
    file.write_bytes(pcap(iter([*syns, (6 * 10**6, segment(1, 500))])))
    told = lines.estimate(file)
    (loss,) = [way.loss for way in (told.down, told.up) if way.loss.known]
    assert loss.value == 0.0 and loss.basis.startswith("0 of 1 ")


def test_data_that_fills_a_hole_and_goes_on_is_one_segment() -> None:
    out = tuple(tcp.array("d") for _ in range(4))
    connection = tcp._Connection(0, out)
    for at, (number, length) in enumerate([(100, 10), (120, 10), (112, 30), (142, 5)]):
        connection.data(0, float(at), number, length, 40 + length, True)
    connection.acknowledge(0, 9.0, 147, [], True)
    assert not connection.streams[0].waits()
    (_, _, _, size) = connection.delivered
    assert size == 50 + 50 + 70 + 45 or size == 50 + 70 + 45


def test_packets_of_one_time_have_no_rate() -> None:
    same = Deliveries(np.full(200, 5.0), np.full(200, 1500.0), 0.0, "")
    rate = rates.estimate(same, None).mean
    assert (
        not rate.known and "200 packets of this direction have times within 0 ns only" in rate.basis
    )
    nothing = Deliveries(np.linspace(0, 10, 200), np.zeros(200), 0.0, "")
    none = np.zeros(0)
    busy = rates.Standing(np.array([0.0]), np.array([10.0]), none, none, none.astype(bool))
    assert not rates.estimate(nothing, busy).mean.known


def test_lost_pings_are_counted_and_of_long_gaps_the_ends_are_listed() -> None:
    near = pings.read(enumerate(log(iter([*range(10), *range(20, 30)])).decode().split("\n"), 1))
    assert near.lost == 10 and len(near.lost_s) == 10
    far = pings.read(
        enumerate(log(iter([*range(10), *range(20_000, 20_010)])).decode().split("\n"), 1)
    )
    assert far.lost == 19_990 and len(far.lost_s) == 2


@pytest.mark.parametrize("stamps", [True, False])
def test_a_log_without_its_first_line_is_a_log(stamps: bool, tmp_path: Path) -> None:
    file = tmp_path / "ping.log"
    file.write_bytes(log(iter(range(30)), stamps))
    told = lines.estimate(file)
    assert told.form == "ping" and told.rtt.value == pytest.approx(0.010)
    assert any("has no times" in text for text in told.cautions) != stamps


UNANSWERED = SEEDS / "ping-ip-unreachable.log"

OTHERS = sorted({*SEEDS.glob("*.pcap*"), *SEEDS.glob("*.log")} - {UNANSWERED})


def test_a_log_without_answers_is_refused() -> None:
    with pytest.raises(SpecError, match="begins no recording that is known"):
        lines.estimate(UNANSWERED)


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_recordings_of_other_people_become_experiments(path: Path, tmp_path: Path) -> None:
    given = lines.estimate(path, rtt_s=0.05, down_bps=10e6, up_bps=1e6)
    lines.write_experiment(given, tmp_path / "line.toml")
    redtail.check(tmp_path / "line.toml")


NAMES = {
    "newline": "a\nb = 3\n#",
    "escape": "a\x1b[31mred",
    "delete": "a\x7fb",
    "right": "a\u202eb",
}


@linux
@pytest.mark.parametrize("name", NAMES)
def test_names_of_others_are_escaped_in_the_experiment(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{NAMES[name]}.flent"
    data = flent(metadata={"NAME": NAMES[name]})
    file.write_text(json.dumps(data))
    out = tmp_path / "line.toml"
    lines.write_experiment(lines.estimate(file, rtt_s=0.03), out)
    text = out.read_text(encoding="utf-8")
    assert "b" not in tomllib.loads(text)
    shown = CliRunner().invoke(app, ["estimate", str(file)]).stdout
    assert f"{escape.name(str(file))}: Flent's {escape.name(NAMES[name])}, " in shown
    assert all(sign == "\n" or sign.isprintable() for sign in text)
    redtail.check(out)


def test_names_of_interfaces_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "line.pcapng"
    name = b"bo\x1b[1m\nin = 3"
    data = seeds()["both.pcapng"]
    assert b"bottleneck:in" in data and len(name) == len(b"bottleneck:in")
    file.write_bytes(data.replace(b"bottleneck:in", name))
    lines.write_experiment(lines.estimate(file), tmp_path / "line.toml")
    text = (tmp_path / "line.toml").read_text(encoding="utf-8")
    assert "bo\\u001b[1m\\u000ain = 3" in text.replace("\n# ", " ")
    assert "in" not in tomllib.loads(text)
    shown = CliRunner().invoke(app, ["estimate", str(file)]).stdout
    assert "the queue is between bo\\u001b[1m\\u000ain = 3 and " in shown


@linux
def test_a_name_that_is_no_text_is_escaped(tmp_path: Path) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.trace"))
    file.write_bytes(trace(2000))
    lines.write_experiment(lines.estimate(file, rtt_s=0.03), tmp_path / "line.toml")
    assert "\\udcff" in (tmp_path / "line.toml").read_text(encoding="utf-8")


@linux
def test_the_experiment_and_its_trace_have_two_names(tmp_path: Path) -> None:
    told = lines.estimate(ROOT / "examples" / "cellular.trace", rtt_s=0.05)
    for name, message in {
        "line.trace": "is the name of the trace",
        "a\nb.toml": "cannot be seen",
    }.items():
        with pytest.raises(SpecError, match=message):
            lines.write_experiment(told, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_what_makes_no_experiment_is_not_written(tmp_path: Path) -> None:
    told = lines.estimate(ROOT / "examples" / "cellular.trace", rtt_s=0.05)
    long = replace(told, rtt=Estimated(1e9, "s", "given"))
    with pytest.raises(SpecError, match="makes no experiment; --down, --up and --rtt give other"):
        lines.write_experiment(long, tmp_path / "line.toml")
    assert not list(tmp_path.iterdir())


def redtail_command(*arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    """A process of the command line."""
    return subprocess.Popen([sys.executable, "-m", "redtail", *arguments], **more)


@linux
def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    content = (ROOT / "examples" / "cellular.trace").read_bytes()
    for data in (content, gzip.compress(content)):
        process = redtail_command(
            *("estimate", "/dev/stdin", "--rtt", "50ms", "--json"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        out, _ = process.communicate(data)
        assert process.returncode == 0
        assert json.loads(out)["form"] == "mahimahi"
    capture = tmp_path / "line.pcap"
    capture.write_bytes(pcap((10_000 * n, segment(1448 * n, 1448)) for n in range(200)))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = redtail_command("estimate", str(fifo), "--json", stdout=subprocess.PIPE)
    fifo.write_bytes(capture.read_bytes())
    out, _ = process.communicate()
    assert json.loads(out)["form"] == "capture"


def test_gzip_has_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "line.trace.gz"
    file.write_bytes(bomb())
    assert len(bomb()) < 100_000
    with pytest.raises(SpecError, match="holds more than 64 MB; accepted: 100 times its size or"):
        lines.estimate(file)


@linux
def test_a_pipe_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_PIPED_B", 3_000_000)
    ran = CliRunner().invoke(app, ["estimate", "/dev/zero"])
    assert ran.exit_code == 2
    assert "/dev/zero: holds more than 3 MB; accepted: up to 3 MB from a pipe" in ran.stderr


@linux
def test_what_is_unpacked_has_no_name_that_a_signal_could_leave_behind(tmp_path: Path) -> None:
    folder, fifo = tmp_path / "temporary", tmp_path / "fifo"
    folder.mkdir()
    os.mkfifo(fifo)
    process = redtail_command(
        "estimate", str(fifo), env={**os.environ, "TMPDIR": str(folder)}, stderr=subprocess.DEVNULL
    )
    with fifo.open("wb") as pipe:
        pipe.write(b"1\n" * (4 << 20))  # far more than a pipe holds: some of it is in the file
        assert not list(folder.iterdir())
        process.send_signal(signal.SIGTERM)
        process.wait()
    assert not list(folder.iterdir())
