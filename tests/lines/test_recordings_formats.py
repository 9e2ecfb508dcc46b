"""Results of test programs in JSON and text, and pairs of recordings: lines of known truth.

The line has 20 Mbit/s down, 5 Mbit/s up and a base round trip of 30 ms; what a program would write
of it is computed here. A rate is a value only where the file shows a standing queue.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from redtail import lines
from redtail.cli import app
from redtail.errors import SpecError
from redtail.lines.recordings import crusader
from redtail.lines.recordings.found import Found

DOWN, UP, BASE_S = 20e6, 5e6, 0.030

MSS, WIRE = 1448, 1500


def written(folder: Path, name: str, data: object) -> Path:
    file = folder / name
    file.write_text(json.dumps(data))
    return file


def told(folder: Path, data: object, **more: Any) -> Found:
    return lines.estimate(written(folder, "recording.json", data), **more)


# iperf3


def iperf3(
    *,
    bps: Callable[[int], float] = lambda _: UP,
    rtt_ms: Callable[[int], float] | None = None,
    reverse: bool = False,
    streams: int = 1,
    seconds: int = 20,
    received: float | None = None,
    server: bool = False,
) -> dict[str, Any]:
    """A test by TCP; round trips are of the side that sends."""
    sends = reverse == server
    intervals = []
    for n in range(seconds):
        each = []
        for stream in range(streams):
            size = int(bps(n) / 8 * MSS / WIRE / streams)
            row: dict[str, Any] = {
                "socket": 5 + stream, "start": n, "end": n + 1, "seconds": 1.0, "bytes": size,
                "bits_per_second": 8.0 * size, "omitted": False, "sender": sends,
            }  # fmt: skip
            if sends and rtt_ms is not None:
                row |= {"retransmits": 2, "snd_cwnd": 90_000, "rtt": int(1000 * rtt_ms(n))}
            each.append(row)
        intervals.append({"streams": each, "sum": {}})
    total = sum(row["bytes"] for interval in intervals for row in interval["streams"])
    got = int(total * (received or 1.0))
    start: dict[str, Any] = {
        "version": "iperf 3.12",
        "tcp_mss_default": MSS,
        "test_start": {"protocol": "TCP", "num_streams": streams, "blksize": 0, "omit": 0,
                       "duration": seconds, "reverse": int(reverse)},
    }  # fmt: skip
    start["accepted_connection" if server else "connecting_to"] = {"host": "192.0.2.1"}
    return {
        "start": start,
        "intervals": intervals,
        "end": {"streams": [], "sum_received": {"bytes": got, "seconds": float(seconds)}},
    }


def loaded(n: int) -> float:
    """The smoothed round trip in ms: idle at first, then the queue is full between losses."""
    return 30.0 if n == 0 else 110.0 + 40 * (n % 3) / 2


def test_an_upload_whose_round_trips_grow_and_stay_tells_the_rate(tmp_path: Path) -> None:
    found = told(tmp_path, iperf3(rtt_ms=loaded))
    assert found.form == "iperf3" and not found.down.rate.known
    assert found.up.rate.value == pytest.approx(UP, rel=0.01) and not found.up.rate.bound
    assert found.rtt.bound == "at most" and found.rtt.value == pytest.approx(BASE_S)
    assert found.up.wait.bound == "at least"
    assert found.up.loss.value is not None and 0 < found.up.loss.value < 0.01
    assert [flows.kind for flows in found.flows] == ["bulk"]


def test_an_upload_under_load_from_its_begin_needs_the_idle_round_trip(tmp_path: Path) -> None:
    data = iperf3(rtt_ms=lambda n: 110 + n % 3)
    alone = told(tmp_path, data)
    assert alone.up.rate.bound == "at least" and "--rtt TIME" in alone.up.rate.basis
    assert alone.up.rate.value is not None and alone.up.rate.value <= UP
    with_base = told(tmp_path, data, rtt_s=BASE_S)
    assert with_base.up.rate.value == pytest.approx(UP, rel=0.01) and not with_base.up.rate.bound
    assert with_base.rtt.given


def test_a_window_that_limits_an_upload_is_no_full_line(tmp_path: Path) -> None:
    found = told(tmp_path, iperf3(bps=lambda _: 2e6, rtt_ms=lambda n: 30 + 0.1 * (n % 5)))
    assert found.up.rate.bound == "at least"
    assert found.up.rate.value == pytest.approx(2e6, rel=0.02)
    assert "a queue that stands" in found.up.rate.basis


def test_an_upload_that_varies_has_no_mean(tmp_path: Path) -> None:
    found = told(tmp_path, iperf3(bps=lambda n: UP * (0.4 + n % 4 / 4), rtt_ms=loaded))
    assert found.up.rate.bound == "at least" and "it varied from" in found.up.rate.basis


def test_what_was_written_into_a_socket_is_not_what_was_received(tmp_path: Path) -> None:
    found = told(tmp_path, iperf3(bps=lambda _: 1.5 * UP, rtt_ms=loaded, received=1 / 1.5))
    assert found.up.rate.bound == "at least"
    assert found.up.rate.value is not None and 0.9 * UP < found.up.rate.value <= UP
    data = iperf3(rtt_ms=loaded)
    del data["end"]["sum_received"]
    assert not told(tmp_path, data).up.rate.known


def test_a_download_has_round_trips_of_the_server_if_it_was_asked(tmp_path: Path) -> None:
    data = iperf3(bps=lambda _: DOWN, reverse=True)
    alone = told(tmp_path, data)
    assert alone.down.rate.bound == "at least" and not alone.up.rate.known
    assert not alone.rtt.known
    sent = iperf3(bps=lambda _: DOWN, reverse=True, server=True, rtt_ms=loaded)
    found = told(tmp_path, {**data, "server_output_json": sent})
    assert found.down.rate.value == pytest.approx(DOWN, rel=0.01) and not found.down.rate.bound
    other = told(tmp_path, data, direction="up")
    assert other.up.rate.known and not other.down.rate.known
    of_server = told(tmp_path, sent)
    assert of_server.down.rate.known and not of_server.up.rate.known


def test_transfers_both_ways_give_bounds(tmp_path: Path) -> None:
    data, back = iperf3(rtt_ms=loaded), iperf3(bps=lambda _: DOWN, reverse=True)
    for interval, other in zip(data["intervals"], back["intervals"], strict=True):
        interval["streams"] += other["streams"]
    found = told(tmp_path, data)
    assert found.down.rate.bound == found.up.rate.bound == "at least"


def udp(lost: Callable[[int], float], bps: float = DOWN) -> dict[str, Any]:
    """A download by UDP of which a share is lost in each second."""
    data = iperf3(reverse=True)
    data["start"]["test_start"]["protocol"] = "UDP"
    for n, interval in enumerate(data["intervals"]):
        got = int(bps / 8 / (MSS + 28))
        gone = round(got * lost(n) / (1 - lost(n)))
        interval["streams"][0] |= {"bytes": got * MSS, "lost_packets": gone, "packets": got + gone}
    return data


def test_udp_that_loses_much_all_the_time_tells_the_rate(tmp_path: Path) -> None:
    found = told(tmp_path, udp(lambda _: 0.3))
    assert found.down.rate.value == pytest.approx(DOWN, rel=0.01) and not found.down.rate.bound
    assert found.down.loss.value == pytest.approx(0.3, rel=0.02)


@pytest.mark.parametrize("lost", [lambda _: 0.0, lambda _: 0.02, lambda n: 0.5 * (n % 3 == 0)])
def test_udp_that_loses_little_or_seldom_tells_a_bound(
    lost: Callable[[int], float], tmp_path: Path
) -> None:
    found = told(tmp_path, udp(lost))
    assert found.down.rate.bound == "at least"
    assert found.down.rate.value == pytest.approx(DOWN, rel=0.01)


def test_a_stream_of_events_is_the_same_result(tmp_path: Path) -> None:
    data = iperf3(rtt_ms=loaded)
    events = [("start", data["start"]), *(("interval", one) for one in data["intervals"]),
              ("end", data["end"])]  # fmt: skip
    file = tmp_path / "stream.json"
    file.write_text("".join(f'{{"event":"{name}","data":{json.dumps(value)}}}\n'
                            for name, value in events))  # fmt: skip
    assert lines.estimate(file).up.rate == told(tmp_path, data).up.rate


def test_omitted_intervals_are_left_out(tmp_path: Path) -> None:
    data = iperf3(rtt_ms=loaded)
    slow = json.loads(json.dumps(data["intervals"][:3]))
    for interval in slow:
        interval["streams"][0] |= {"omitted": True, "bytes": 10**9}
    found = told(tmp_path, {**data, "intervals": [*slow, *data["intervals"]]})
    assert found.up.rate.value == pytest.approx(UP, rel=0.01) and found.duration_s == 20


# irtt


def irtt(
    up_ms: Callable[[int], float],
    down_ms: Callable[[int], float],
    *,
    ahead_s: float = 10.0,
    drift: float = 0.0,
    lost: dict[int, str] | None = None,
    stamps: bool = True,
) -> dict[str, Any]:
    """300 round trips, one each 50 ms; the server's clock is ahead and may run faster."""
    rows = []
    for n in range(300):
        row: dict[str, Any] = {"seqno": n, "lost": (lost or {}).get(n, "false")}
        if row["lost"] == "false":
            sent = 1_000_000_000 + 50_000_000 * n
            arrived = sent + int(1e6 * (15 + up_ms(n)))
            back = arrived + int(1e6 * (15 + down_ms(n)))
            other = int(1e9 * ahead_s) + int(arrived * (1 + drift))
            row["delay"] = {"rtt": back - sent, "send": other - sent, "receive": back - other}
            if stamps:
                row["timestamps"] = {
                    "client": {"send": {"monotonic": sent}, "receive": {"monotonic": back}},
                    "server": {"receive": {"monotonic": other}, "send": {"monotonic": other}},
                }
        rows.append(row)
    config = {"params": {"interval": 50_000_000, "duration": 15_000_000_000}}
    return {"version": {"irtt": "0.9.1"}, "config": config, "stats": {}, "round_trips": rows}


def full(n: int) -> float:
    """What a packet waits: the queue fills to 160 ms, stays full, and is half empty then."""
    return 0.0 if n < 40 else min(80 + 4 * ((n - 40) % 40), 160.0)


LOST_UP = {n: "true_up" for n in range(70, 300, 40)}


@pytest.mark.parametrize("stamps", [True, False])
def test_irtt_tells_in_which_direction_packets_wait(stamps: bool, tmp_path: Path) -> None:
    data = irtt(full, lambda n: 0.3 * (n % 3), lost=LOST_UP, stamps=stamps)
    found = told(tmp_path, data)
    assert found.form == "irtt"
    assert found.rtt.value == pytest.approx(BASE_S, rel=0.01)
    assert found.up.wait.value == pytest.approx(0.160, rel=0.05) and not found.up.wait.bound
    assert found.down.wait.bound == "at least"
    assert found.down.wait.value is not None and found.down.wait.value < 0.001
    assert found.up.loss.value == pytest.approx(len(LOST_UP) / 300)
    assert found.down.loss.value == 0
    assert told(tmp_path, data, up_bps=UP).up.buffer.value == pytest.approx(100e3, rel=0.05)


def test_clocks_that_do_not_go_alike_do_not_tell_a_direction(tmp_path: Path) -> None:
    data = irtt(full, lambda _: 0.0, drift=0.01, lost=LOST_UP)
    found = told(tmp_path, data)
    assert any("the clocks did not go alike" in text for text in found.cautions)
    assert found.rtt.value == pytest.approx(BASE_S, rel=0.01)
    assert found.down.wait.value == pytest.approx(0.160, rel=0.05)


# mtr, networkQuality and crusader


HUBS = [
    {"count": 1, "host": "router", "Loss%": 0.0, "Snt": 50, "Best": 0.5, "Wrst": 9.0},
    {"count": 2, "host": "???", "Loss%": 100.0, "Snt": 50, "Best": 0.0, "Wrst": 0.0},
    {"count": 3, "host": "server", "Loss%": 4.0, "Snt": 50, "Best": 30.1, "Wrst": 150.3},
]

MTR = {"report": {"mtr": {"src": "a", "dst": "server", "tests": 50}, "hubs": HUBS}}

MTR_TEXT = """\
Start: 2026-11-14T10:00:00+0000
HOST: home                        Loss%   Snt   Last   Avg  Best  Wrst StDev
  1.|-- router                     0.0%    50    0.8   1.0   0.5   9.0   1.2
  2.|-- ???                       100.0    50    0.0   0.0   0.0   0.0   0.0
  3.|-- server                     4.0%    50   31.0  50.0  30.1 150.3  20.0
"""

MTR_CSV = """\
Mtr_Version,Start_Time,Status,Host,Hop,Ip,Loss%,Snt, ,Last,Avg,Best,Wrst,StDev,
MTR.0.95,1763114400,OK,server,1,router,0.00,50,0,0.80,1.00,0.50,9.00,1.20
MTR.0.95,1763114400,OK,server,2,???,100.00,50,0,0.00,0.00,0.00,0.00,0.00
MTR.0.95,1763114400,OK,server,3,server,4.00,50,0,31.00,50.00,30.10,150.30,20.00
"""


def test_a_report_of_mtr_is_of_its_last_host(tmp_path: Path) -> None:
    for name, content in {"json": json.dumps(MTR), "text": MTR_TEXT, "csv": MTR_CSV}.items():
        file = tmp_path / name
        file.write_text(content)
        found = lines.estimate(file, direction="up")
        assert found.form == "mtr", name
        assert found.rtt.text == "at most 30.1 ms", name
        assert found.up.wait.text == "at least 120.2 ms", name
        assert found.up.loss.value == pytest.approx(0.04), name


def test_of_several_reports_the_last_counts(tmp_path: Path) -> None:
    file = tmp_path / "mtr.csv"
    file.write_text(MTR_CSV.replace("30.10", "25.00") + MTR_CSV)
    found = lines.estimate(file)
    assert found.rtt.text == "at most 30.1 ms"
    assert any("has 2 reports, and the last is used" in text for text in found.cautions)


def test_what_powershell_redirects_is_read(tmp_path: Path) -> None:
    file = tmp_path / "iperf3.json"
    file.write_bytes(b"\xff\xfe" + json.dumps(iperf3(rtt_ms=loaded)).encode("utf-16-le"))
    assert lines.estimate(file).up.rate.value == pytest.approx(UP, rel=0.01)


def test_a_report_of_mtr_whose_last_host_is_silent_says_so(tmp_path: Path) -> None:
    silent = {**HUBS[1], "count": 4}
    found = told(tmp_path, {"report": {"mtr": {}, "hubs": [*HUBS, silent]}})
    assert not found.down.loss.known and found.rtt.text == "at most 30.1 ms"
    assert any("the last host of the path did not answer" in text for text in found.cautions)
    with pytest.raises(SpecError, match="no host answered"):
        told(tmp_path, {"report": {"mtr": {}, "hubs": [silent]}})


def test_raw_output_of_mtr_is_a_series(tmp_path: Path) -> None:
    rows = ["x 0 1", "h 0 192.0.2.9", "p 0 700 1", "x 1 2", "h 1 192.0.2.1", "p 1 30100 2"]
    rows += ["x 2 3", "h 2 192.0.2.1", "p 2 30100 3"]  # mtr asks beyond the last host at first
    for n in range(4, 40):
        rows.append(f"x 1 {n}")
        rows += [f"p 1 {30_100 + 1000 * (n % 5)} {n}"] if n != 20 else []
    file = tmp_path / "mtr.raw"
    file.write_text("\n".join(rows))
    found = lines.estimate(file)
    assert found.rtt.value == pytest.approx(0.0301)
    assert found.down.loss.value == pytest.approx(1 / 37)


QUALITY = {
    "base_rtt": 31.5, "dl_throughput": 19_000_000, "ul_throughput": 4_700_000, "dl_flows": 12,
    "ul_flows": 12, "dl_bytes_transferred": 30_000_000, "ul_bytes_transferred": 7_000_000,
    "responsiveness": 180.5, "il_tcp_handshake_443": [31, 33, 30], "os_version": "Version 14.5",
    "lud_foreign_tcp_handshake_443": [150, 160, 40], "start_date": "2026-11-14 10:00:00.000",
    "end_date": "2026-11-14 10:00:21.500", "interface_name": "en0",
}  # fmt: skip


def test_networkquality_has_no_course_over_time_and_so_bounds(tmp_path: Path) -> None:
    found = told(tmp_path, QUALITY)
    assert found.form == "networkquality" and found.duration_s == 21.5
    assert found.down.rate.bound == found.up.rate.bound == "at least"
    assert found.down.rate.value == pytest.approx(19e6 * 1500 / 1460)
    assert found.rtt.text == "at most 30 ms"
    assert [flows.count for flows in found.flows] == [12, 12]
    one_way = {key: value for key, value in QUALITY.items() if not key.startswith("ul")}
    assert not told(tmp_path, one_way).up.rate.known
    with pytest.raises(SpecError, match="ended with the error -1009"):
        told(tmp_path, {"os_version": "14", "error_code": -1009, "end_date": "x"})
    with pytest.raises(SpecError, match="names its directions itself"):
        told(tmp_path, QUALITY, direction="up")


def seconds(value: float) -> dict[str, int]:
    return {"secs": int(value), "nanos": int(1e9 * (value % 1))}


def of_crusader(waits: bool = True) -> dict[str, Any]:
    """Idle for 2 s, a download of 10 s, a pause of 4 s, and an upload of 10 s."""
    periods = {"down": (2.0, 12.0, DOWN, 0.100), "up": (16.0, 26.0, UP, 0.160)}
    groups = []
    for name, (begin, end, bps, _) in periods.items():
        points = [
            {"time": seconds(begin + 0.02 * n), "bytes": int(bps / 8 * MSS / WIRE * 0.02 * n)}
            for n in range(int((end - begin) / 0.02) + 1)
        ]
        groups.append({"download": name == "down", "both": False, "streams": [{"data": points}]})
    echoes = []
    for n in range(3000):
        at = 0.01 * n
        wait = 0.0002 * (n % 4)
        for begin, end, _, most in periods.values():
            if waits and begin < at < end:
                wait += most * min(0.6 + 0.8 * (n % 100) / 100, 1.0)
        lost = waits and n % 100 == 75 and any(b < at < e for b, e, *_ in periods.values())
        latency = None if lost else {"total": seconds(BASE_S + wait), "up": seconds(BASE_S / 2)}
        echoes.append({"index": n, "sent": seconds(at), "latency": latency})
    return {
        "version": 2, "generated_by": "Crusader 0.3", "duration": seconds(30.0),
        "stream_groups": groups, "pings": echoes,
    }  # fmt: skip


def test_an_export_of_crusader_tells_the_line(tmp_path: Path) -> None:
    found = told(tmp_path, of_crusader())
    assert found.form == "crusader"
    assert found.rtt.value == pytest.approx(BASE_S, rel=0.01)
    for way, bps, wait in ((found.down, DOWN, 0.100), (found.up, UP, 0.160)):
        assert way.rate.value == pytest.approx(bps, rel=0.02) and not way.rate.bound
        assert way.wait.value == pytest.approx(wait, rel=0.05) and not way.wait.bound
        assert way.buffer.value == pytest.approx(wait * bps / 8, rel=0.07)
    idle = told(tmp_path, of_crusader(waits=False))
    assert idle.down.rate.bound == idle.up.rate.bound == "at least"


def test_the_binary_file_of_crusader_is_named_with_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / "test.crr"
    file.write_bytes(crusader.MAGIC + b"\x02" + bytes(7) + b"\xff\x06\x00\x00sNaPpY")
    with pytest.raises(SpecError, match="crusader export FILE"):
        lines.estimate(file)


# What is no such result


BAD: dict[str, tuple[object, str]] = {
    "protocol": (
        {"start": {"test_start": {"protocol": "SCTP"}}, "intervals": []},
        '"protocol" is "SCTP"; accepted: TCP or UDP',
    ),
    "no intervals": (
        {"start": {}, "intervals": [], "error": "unable to connect to server"},
        'without intervals; iperf3 says "unable to connect to server"',
    ),
    "intervals": ({"start": {}, "intervals": {}}, '"intervals" is an object; accepted: a list'),
    "bytes": (
        {"start": {}, "intervals": [{"streams": [{"seconds": 1, "bytes": -1}]}]},
        '"intervals": value 1: "streams": "bytes" is -1; accepted: 0 to 1e[+]17',
    ),
    "rtt": (
        {"start": {}, "intervals": [{"streams": [{"seconds": 1, "bytes": 9, "rtt": "x"}]}]},
        '"rtt" is a text; accepted',
    ),
    "streams": (
        {"start": {}, "intervals": [{"streams": [{}] * 300}]},
        "value 1 has 300 streams; accepted: up to 256",
    ),
    "round trips": ({"round_trips": [{}] * 20}, "irtt with 0 round trips, and 10 are needed"),
    "delay": (
        {"round_trips": [{"delay": {"rtt": -5}}]},
        '"round_trips": value 1: "delay": "rtt" is -5; accepted',
    ),
    "hubs": ({"report": {"hubs": [3]}}, '"report": "hubs": value 1 is 3; accepted: an object'),
    "columns": ({"report": {"hubs": [{"Avg": 3}]}}, 'accepted: "Loss%", "Snt", "Best" and "Wrst"'),
    "throughput": ({"dl_throughput": 1e300}, '"dl_throughput" is 1e[+]300; accepted'),
    "handshakes": (
        {"dl_throughput": 1, "il_tcp_handshake_443": [-3]},
        '"il_tcp_handshake_443": value 1 is -3; accepted',
    ),
    "groups": ({"stream_groups": 3}, '"stream_groups" is 3; accepted: a list'),
    "points": (
        {"stream_groups": [{"streams": [{"data": [{"time": {"secs": 2}}, {"time": {}}]}]}]},
        "times and bytes go back",
    ),
    "events": ("lines", "line 2: begins as JSON, but is none"),
    "unknown": ({"a": 1}, "it is JSON of no program that is known; accepted: a capture"),
}


@pytest.mark.parametrize("name", BAD)
def test_results_with_impossible_values_are_refused_where_they_are(
    name: str, tmp_path: Path
) -> None:
    data, message = BAD[name]
    file = written(tmp_path, "recording", data)
    if data == "lines":
        file.write_text('{"event":"start","data":{}}\n{"event":\n')
    with pytest.raises(SpecError, match=message) as caught:
        lines.estimate(file)
    assert str(caught.value).startswith(f"{file}: ")


@pytest.mark.parametrize(
    ("first", "message"),
    {
        "Connecting to host 192.0.2.1, port 5201": "is the text of iperf3, .* iperf3 -J",
        "==== SUMMARY ====": "networkQuality -c",
        "[Connecting] x\nseq=0 rtt=30.1ms rd=15ms sd=15ms ipdv=n/a": "irtt -o FILE",
        '<?xml version="1.0"?>': "mtr --json",
        "10:00:00.123456 IP 192.0.2.1.80 > 192.0.2.9.5000: Flags [S]": "tcpdump -w FILE",
        "traceroute to 192.0.2.1 (192.0.2.1), 30 hops max": "mtr --report",
        "   Speedtest by Ookla": "tcpdump -s 128 -w FILE",
    }.items(),
)
def test_texts_that_are_known_and_not_read_name_the_way_out(
    first: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "recording.txt"
    file.write_text(f"{first}\nmore\n")
    with pytest.raises(SpecError, match=message):
        lines.estimate(file)


# Two recordings


def trace(folder: Path, name: str, every_ms: int) -> Path:
    file = folder / name
    file.write_text("".join(f"{n * every_ms}\n" for n in range(1, 2000 // every_ms + 1)))
    return file


@pytest.mark.parametrize(
    ("first", "second"),
    [("down.trace", "up.trace"), ("Verizon-LTE.up", "Verizon-LTE.down"), ("a.trace", "b.trace")],
)
def test_two_traces_are_one_line(first: str, second: str, tmp_path: Path) -> None:
    swapped = "up" in first
    files = [
        trace(tmp_path, first, 4 if swapped else 1),
        trace(tmp_path, second, 1 if swapped else 4),
    ]
    found = lines.estimate(*files, rtt_s=BASE_S)
    assert found.down.rate.value == pytest.approx(12e6, rel=0.01)
    assert found.up.rate.value == pytest.approx(3e6, rel=0.01)
    assert len(found.down.trace_ms) == 2000 and len(found.up.trace_ms) == 500
    made = lines.write_experiment(found, tmp_path / "line.toml")
    assert [path.name for path in made] == ["line.toml", "line.trace", "line.return.trace"]
    assert made[2].read_text().split()[:2] == ["4", "8"]
    checked = CliRunner().invoke(app, ["check", str(made[0])])
    assert checked.exit_code == 0, checked.stderr
    shown = CliRunner().invoke(app, ["estimate", *map(str, files), "--rtt", "30ms"])
    assert shown.exit_code == 0 and "12 Mbit/s" in shown.stdout and "3 Mbit/s" in shown.stdout


def test_an_upload_and_a_download_are_one_line(tmp_path: Path) -> None:
    up = written(tmp_path, "a.json", iperf3(rtt_ms=loaded))
    down = written(tmp_path, "b.json", iperf3(bps=lambda _: DOWN, reverse=True))
    found = lines.estimate(up, down)
    assert found.up.rate.value == pytest.approx(UP, rel=0.01)
    assert found.down.rate.bound == "at least"
    assert found.rtt.value == pytest.approx(BASE_S)
    assert [flows.direction for flows in found.flows] == ["down", "up"]


def test_pairs_that_are_not_one_of_each_direction_are_refused(tmp_path: Path) -> None:
    down = trace(tmp_path, "a.down", 1)
    other = trace(tmp_path, "b.down", 1)
    ping = tmp_path / "ping.log"
    ping.write_text("".join(f"64 bytes from h: icmp_seq={n} ttl=1 time=9 ms\n" for n in range(20)))
    up = written(tmp_path, "up.json", iperf3(rtt_ms=loaded))
    both = written(tmp_path, "quality.json", QUALITY)
    for files, message in {
        (down, other): "both say down; accepted: one of each direction",
        (down, ping): "has round trips, in which both directions are",
        (up, up): "both tell of the way up; accepted: one recording of each direction",
        (up, both): "quality.json tells of both directions",
    }.items():
        with pytest.raises(SpecError, match=message):
            lines.estimate(*files)
    with pytest.raises(SpecError, match="two recordings are of both directions"):
        lines.estimate(down, up, direction="up")
    ran = CliRunner().invoke(app, ["estimate", *3 * [str(down)]])
    assert ran.exit_code == 2 and "there are 3 recordings; accepted: one" in ran.stderr


def test_advise_takes_two_recordings(tmp_path: Path) -> None:
    files = [trace(tmp_path, name, every) for name, every in (("down", 1), ("up", 4))]
    ran = CliRunner().invoke(
        app, ["advise", "--from", str(files[0]), "--from", str(files[1]), "--use", "calls"]
    )
    assert ran.exit_code == 2 and "to advise takes the base round trip" in ran.stderr
