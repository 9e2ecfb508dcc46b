"""Recordings of all forms with seeded damage: of bytes, and of what the bytes mean."""

from __future__ import annotations

import gzip
import json
import os
import random
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import redtail
from attack.inputs import ROOT

SEEDS = Path(__file__).parent / "seeds"
"""Recordings of other people; its README says whose."""

MORE = "REDTAIL_RECORDINGS"
"""A folder with further recordings to start from, in this variable of the environment."""

# Larger recordings make a mutant slow, and what doubles them again and again takes all memory.
_LARGEST, _MOST = 300_000, 1_000_000

_EXPERIMENT = """
name = "Seed"
duration = "4 s"
replications = 1
seed = 5
[bottleneck]
{rate}
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "15 kB" }}
[bottleneck.return]
rate = "1 Mbit/s"
delay = "5 ms"
queue = {{ kind = "tail-drop", limit = "15 kB" }}
{traffic}
"""

_BULK = '[[traffic]]\nname = "bulk"\nkind = "bulk"\nflows = 2\ntcp = "{tcp}"\n'
_BACK = '[[traffic]]\nname = "back"\nkind = "bulk"\ntcp = "linux"\ndirection = "reverse"\n'
_MORE = """
[[traffic]]
name = "web"
kind = "web"
model = "http1"
users = 3
tcp = "linux"
[[traffic]]
name = "voice"
kind = "cbr"
rate = "64 kbit/s"
packet = "200 B"
"""
_STEPS = 'rate = "2 Mbit/s"\nrate_changes = [{ at = "2 s", rate = "1 Mbit/s" }]'

_SENDER, _RECEIVER = ("bottleneck:in", "return:out"), ("bottleneck:out", "return:in")
_BOTH = ("bottleneck:in", "bottleneck:out", "return:out")

_RUNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "linux": ('rate = "2 Mbit/s"', _BULK.format(tcp="linux"), _SENDER),
    "sack": ('rate = "2 Mbit/s"', _BULK.format(tcp="sack"), _RECEIVER),
    "newreno": ('rate = "2 Mbit/s"', _BULK.format(tcp="newreno"), _SENDER),
    "both": ('rate = "2 Mbit/s"', _BULK.format(tcp="linux"), _BOTH),
    "mixed": ('rate = "2 Mbit/s"', _BULK.format(tcp="linux") + _MORE, _SENDER),
    "steps": (_STEPS, _BULK.format(tcp="linux"), _RECEIVER),
    "reverse": ('rate = "2 Mbit/s"', _BULK.format(tcp="linux") + _BACK, _SENDER),
}


@dataclass(frozen=True)
class Capture:
    """A capture in parts: what stands before the packets, and each of them.

    Attributes:
        order: of the bytes, as `struct` names it.
        head: the header of the file, or the blocks before the first packet.
        packets: records or blocks.
        blocks: whether these are blocks of pcapng.
    """

    order: str
    head: bytes
    packets: tuple[bytes, ...]
    blocks: bool

    @property
    def data(self) -> bytes:
        """The file."""
        return self.head + b"".join(self.packets)


@cache
def seeds() -> dict[str, bytes]:
    """All recordings to start from, by name; those of others have their folder before it."""
    found = _own()
    folders = [SEEDS, *(Path(folder) for folder in (os.environ.get(MORE),) if folder)]
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".md":
                data = path.read_bytes()
                if data[:2] == b"\x1f\x8b":
                    data = gzip.decompress(data)
                # A document in JSON that is cut is none.
                if len(data) <= _LARGEST or data[:1] != b"{":
                    found[f"{folder.name} {path.name}"] = data[:_LARGEST]
    return found


def _own() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (rate, traffic, points) in _RUNS.items():
            file = Path(folder) / f"{name}.pcapng"
            text = _EXPERIMENT.format(rate=rate, traffic=traffic)
            redtail.capture(redtail.Toml(text), dict.fromkeys(points, file))
            found[f"{name}.pcapng"] = file.read_bytes()
    for name, order, fraction in (("linux", "<", 6), ("mixed", ">", 6), ("sack", "<", 9)):
        found[f"{name}{order}{fraction}.pcap"] = as_pcap(found[f"{name}.pcapng"], order, fraction)
    draw = random.Random(7)
    trips = [30 + 40 * abs((n % 60) - 30) / 30 + draw.random() for n in range(200)]
    sent = [n for n in range(200) if n % 60 not in (29, 30)]
    for name, stamps in (("ping", False), ("ping-D", True)):
        lines = [] if stamps else ["PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data."]
        for n in sent:
            stamp = f"[{1_700_000_000 + n / 5 + trips[n] / 1e3:.6f}] " if stamps else ""
            lines.append(
                f"{stamp}64 bytes from 192.0.2.1: icmp_seq={n + 1} ttl=57 time={trips[n]:.1f} ms"
            )
        found[f"{name}.log"] = "\n".join(lines).encode() + b"\n"
    found["cellular.trace"] = (ROOT / "examples" / "cellular.trace").read_bytes()[:4000]
    found["x.flent"] = json.dumps(_flent(draw, sent, trips)).encode()
    return found | _results(draw, sent, trips) | _logs(sent, trips)


def _results(draw: random.Random, sent: list[int], trips: list[float]) -> dict[str, bytes]:
    """What test programs write in JSON."""
    made: dict[str, Any] = {}
    for name, protocol, reverse in (("tcp", "TCP", 0), ("udp", "UDP", 1)):
        streams = [
            {"seconds": 1.0, "bytes": draw.randrange(500_000, 600_000), "sender": not reverse,
             "omitted": n < 2, "retransmits": n % 4, "rtt": 30_000 + 900 * (n % 90),
             "lost_packets": 100 + n, "packets": 500}
            for n in range(30)
        ]  # fmt: skip
        made[f"iperf3-{name}.json"] = {
            "start": {"connecting_to": {}, "tcp_mss_default": 1448, "test_start": {
                "protocol": protocol, "reverse": reverse, "num_streams": 1, "blksize": 1448}},
            "intervals": [{"streams": [stream], "sum": {}} for stream in streams],
            "end": {"sum_received": {"bytes": 15_000_000, "seconds": 28.0}, "streams": [],
                    "sum": {"packets": 9000, "lost_packets": 900}},
        }  # fmt: skip
    rows: list[dict[str, Any]] = [{"seqno": n, "lost": "true_up", "delay": {}} for n in range(200)]
    for n in sent:
        rows[n]["lost"] = "false"
        rows[n]["delay"] = {"rtt": int(1e6 * trips[n]), "send": int(1e6 * trips[n]) - 15_000_000,
                            "receive": 15_000_000}  # fmt: skip
    made["irtt.json"] = {"config": {"params": {"interval": 20_000_000}}, "round_trips": rows}
    hubs = [{"count": n, "host": f"h{n}", "Loss%": 2.0, "Snt": 50, "Best": 9.0 * n, "Wrst": 90.0}
            for n in range(1, 5)]  # fmt: skip
    made["mtr.json"] = {"report": {"mtr": {"src": "a", "dst": "b"}, "hubs": hubs}}
    made["networkquality.json"] = {
        "base_rtt": 31.5, "dl_throughput": 19_000_000, "ul_throughput": 4_700_000, "dl_flows": 12,
        "il_tcp_handshake_443": [31, 33], "lud_foreign_tcp_handshake_443": [150, 160],
        "responsiveness": 180.5, "start_date": "2026-11-14 10:00:00.000",
    }  # fmt: skip
    points = [{"time": {"secs": n // 50, "nanos": n % 50 * 20_000_000}, "bytes": 50_000 * n}
              for n in range(200)]  # fmt: skip
    pings = [{"index": n, "sent": {"secs": n // 50, "nanos": n % 50 * 20_000_000},
              "latency": {"total": {"secs": 0, "nanos": int(1e6 * trip)}} if n in sent else None}
             for n, trip in enumerate(trips)]  # fmt: skip
    groups = [{"download": True, "both": False, "streams": [{"data": points}]}]
    made["measurement.json"] = _measurement(sent, trips)
    made["crusader.json"] = {"stream_groups": groups, "pings": pings, "duration": {"secs": 4}}
    return {name: json.dumps(data).encode() for name, data in made.items()}


def _measurement(sent: list[int], trips: list[float]) -> dict[str, Any]:
    """What `redtail measure` writes."""
    at = [n / 50 for n in range(len(trips))]
    half = at[len(at) // 2]
    return {
        "format": "redtail-measurement", "version": 1, "redtail": "0.1.0", "server": "192.0.2.1",
        "begun": "2026-11-14T10:00:00Z", "probe": "udp",
        "phases": [{"name": "idle", "from_s": 0, "to_s": half},
                   {"name": "down", "from_s": half, "to_s": at[-1]}],
        "delays": {"sent_s": at,
                   "rtt_s": [t / 1e3 if n in sent else None for n, t in enumerate(trips)]},
        "one_way": {"sent_s": at[:5], "up_s": [-3.5] * 5, "down_s": [3.6, None, 3.6, 3.6, 3.6]},
        "transfers": [{"direction": "down", "t_s": at, "protocol": "tcp",
                       "bytes": [50_000 * n for n in range(len(at))]}],
        "notes": ["TCP: cubic"],
    }  # fmt: skip


def _logs(sent: list[int], trips: list[float]) -> dict[str, bytes]:
    """What programs that ping print."""
    windows = ["Ping wird ausgeführt für 192.0.2.1 mit 32 Bytes Daten:"]
    fping, raw, hrping = [], ["h 0 192.0.2.1"], []
    for n, trip in enumerate(trips):
        answered = n in sent
        windows.append(f"Antwort von 192.0.2.1: Bytes=32 Zeit={trip:.0f}ms TTL=57" if answered
                       else "Zeitüberschreitung der Anforderung.")  # fmt: skip
        told = f"64 bytes, {trip:.1f} ms" if answered else "timed out"
        fping.append(f"[{1_700_000_000 + n / 5:.6f}] 192.0.2.1 : [{n}], {told} (9 avg, 3% loss)")
        raw += [f"x 0 {n}", *([f"p 0 {1e3 * trip:.0f} {n}"] if answered else [])]
        at = f"2026-11-14 10:{n // 60:02}:{n % 60:02}.500"
        hrping.append(
            f"{at}: From 192.0.2.1: bytes=60 seq={n:04x} TTL=57 ID=2dc4 time={trip:.3f}ms"
            if answered else f"{at}: Timeout waiting for seq={n:04x}"
        )  # fmt: skip
    table = "192.0.2.1 : " + " ".join(f"{trip:.1f}" if n in sent else "-"
                                      for n, trip in enumerate(trips))  # fmt: skip
    report = ["HOST: home  Loss%   Snt   Last   Avg  Best  Wrst StDev",
              "  1.|-- h1  0.0%    50    0.8   1.0   0.5   9.0   1.2"]  # fmt: skip
    made = {"windows": windows, "fping": fping, "mtr-raw": raw, "hrping": hrping, "table": [table],
            "mtr-report": report}  # fmt: skip
    found = {f"{name}.log": "\r\n".join(rows).encode() + b"\n" for name, rows in made.items()}
    found["windows-16.log"] = b"\xff\xfe" + "\r\n".join(windows).encode("utf-16-le")
    found["windows-850.log"] = "\r\n".join(windows).encode("cp850")
    return found


def _flent(draw: random.Random, sent: list[int], trips: list[float]) -> dict[str, Any]:
    at = [0.2 * n for n in range(200)]
    results: dict[str, list[float | None]] = {
        f"TCP download::{n}": [8 + draw.random() if 20 < k < 180 else None for k in range(200)]
        for n in range(1, 3)
    }
    results["TCP download sum"] = [16.0] * 200
    results["Ping (ms) ICMP"] = [*trips]
    rows = [{"seq": n, "t": 1.7e9 + n / 5, "val": trips[n]} for n in sent]
    units = {name: {"UNITS": "ms" if "Ping" in name else "Mbits/s"} for name in results}
    return {
        "version": 4,
        "metadata": {"NAME": "tcp_ndown", "LENGTH": 40, "STEP_SIZE": 0.2, "SERIES_META": units},
        "x_values": at,
        "results": results,
        "raw_values": {"Ping (ms) ICMP": rows},
    }


def as_pcap(data: bytes, order: str, fraction: int) -> bytes:
    """A capture of redtail as pcap of raw IP; `fraction` is digits of a second."""
    magic = 0xA1B2C3D4 if fraction == 6 else 0xA1B23C4D
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, 101)]
    capture = parsed(data)
    assert capture is not None
    for block in capture.packets:
        kind, _, _, high, low, kept, size = struct.unpack_from(capture.order + "7I", block)
        if kind == 6:
            ns = high << 32 | low
            tick = 10 ** (9 - fraction)
            stamp = (1_700_000_000 + ns // 10**9, ns % 10**9 // tick, kept - 14, size - 14)
            parts += [struct.pack(order + "4I", *stamp), block[28 + 14 : 28 + kept]]
    return b"".join(parts)


@lru_cache(maxsize=100)  # more than there are of redtail
def parsed(data: bytes) -> Capture | None:
    """A capture in parts; None if the data is none."""
    orders = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">",
              b"\xa1\xb2\x3c\x4d": ">"}  # fmt: skip
    blocks = data[:4] == b"\x0a\x0d\x0d\x0a"
    order = orders.get(data[:4]) or ("<" if data[8:12] == b"\x4d\x3c\x2b\x1a" else ">")
    if not blocks and data[:4] not in orders:
        return None
    at = 0 if blocks else 24
    head, packets = data[:at], []
    while at + 16 <= len(data):
        kind, length, kept = struct.unpack_from(order + "3I", data, at)
        size = max(length, 12) if blocks else 16 + kept
        part = data[at : at + size]
        if blocks and kind != 6 and not packets:
            head += part
        else:
            packets.append(part)
        at += size
    return Capture(order, head, tuple(packets), blocks) if packets else None


def mutant(seed: int, number: int) -> tuple[str, bytes]:
    """Return the recording that this one comes from, and this one."""
    draw = random.Random(f"recordings {seed} {number}")
    known = seeds()
    # Those of redtail are longer, so that more of the analysis sees them.
    own = draw.random() < 0.6
    names = sorted(each for each in known if (" " in each) != own)
    # Those that tell most of a line have most that can be wrong.
    telling = [each for each in names if ".pcap" in each or each.endswith((".trace", ".flent"))]
    name = draw.choice(telling if telling and draw.random() < 0.7 else names)
    data = known[name]
    for _ in range(draw.choice((1, 1, 1, 2, 3, 5, 10))):
        changed = _changed(draw, data)
        if len(changed) <= _MOST:
            data = changed
    if draw.random() < 0.15:
        data = gzip.compress(data, 1, mtime=0)
        if draw.random() < 0.3:
            data = _bytes(draw, data)
    return name, data


def _changed(draw: random.Random, data: bytes) -> bytes:
    if draw.random() < 0.2 or not data:
        return _bytes(draw, data)
    capture = parsed(data)
    if capture is not None:
        return draw.choice(_OF_CAPTURES)(draw, capture).data
    if data[:1] == b"{" and draw.random() < 0.9:
        try:
            return json.dumps(_of_tree(draw, json.loads(data))).encode()
        except (ValueError, RecursionError):
            return _bytes(draw, data)
    return _lines(draw, data)


_EDGES = (0, 1, 2, 3, 4, 20, 40, 127, 128, 255, 256, 1500, 65535, 65536, 2**24, 2**31 - 1, 2**31,
          2**32 - 16, 2**32 - 1, 2**48, 2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip


def _bytes(draw: random.Random, data: bytes) -> bytes:
    """Change, insert, remove, double or cut bytes, whatever they mean."""
    at = draw.randrange(len(data) + 1)
    size = draw.choice((1, 1, 2, 4, 8, 16, 60, 1000))
    match draw.randrange(7):
        case 0:
            return data[:at] + draw.randbytes(size) + data[at + size :]
        case 1:
            return data[:at] + draw.randbytes(size) + data[at:]
        case 2:
            return data[:at] + data[at + size :]
        case 3:
            return data[: at + size] + data[at:]
        case 4:
            return data[:at]
        case 5:
            width = draw.choice((1, 2, 4, 8))
            number = draw.choice(_EDGES) % (1 << 8 * width)
            order = draw.choice(("little", "big"))
            return data[:at] + number.to_bytes(width, order) + data[at + width :]
        case _:
            other = seeds()[draw.choice(sorted(seeds()))]
            return data[:at] + other[draw.randrange(len(other)) :][:5000]


def _placed(capture: Capture, number: int, offset: int, format: str, *values: int) -> Capture:
    """Return a capture with other values at a place of a packet; outside of it, the same one."""
    part = bytearray(capture.packets[number])
    if offset >= 0 and offset + struct.calcsize(format) <= len(part):
        struct.pack_into(format, part, offset, *values)
    packets = (*capture.packets[:number], bytes(part), *capture.packets[number + 1 :])
    return replace(capture, packets=packets)


def _some(draw: random.Random, capture: Capture) -> range:
    """Return numbers of packets: one, some in a row, or all."""
    count = len(capture.packets)
    first = draw.randrange(count)
    return draw.choice(
        (range(first, first + 1), range(first, min(first + 40, count)), range(count))
    )


def _time(draw: random.Random, capture: Capture) -> Capture:
    """Set the time of packets: far off, back, all the same, or in other units."""
    rows = _some(draw, capture)
    packets = list(capture.packets)
    kind, far = draw.randrange(4), draw.choice((1, 10**3, 10**6, 10**9, 2**31, 2**40, 2**62, 2**63))
    for number in rows:
        part = packets[number]
        if len(part) < 20:
            continue
        place = 12 if capture.blocks else 0
        one, two = struct.unpack_from(capture.order + "2I", part, place)
        whole = one << 32 | two
        match kind:
            case 0:
                whole += far
            case 1:
                whole -= far
            case 2:
                whole = far
            case _:
                whole = whole * draw.choice((0, 2, 1000)) + draw.randrange(3)
        whole %= 1 << 64
        new = struct.pack(capture.order + "2I", whole >> 32, whole & 0xFFFFFFFF)
        packets[number] = part[:place] + new + part[place + 8 :]
    return replace(capture, packets=tuple(packets))


def _length(draw: random.Random, capture: Capture) -> Capture:
    """Claim another length of packets, in the record or in the IP header."""
    value = draw.choice(_EDGES)
    in_record = draw.random() < 0.5
    for number in _some(draw, capture)[:40]:
        if in_record:
            place = (24 if capture.blocks else 12) - (4 if draw.random() < 0.1 else 0)
            format, most = capture.order + "I", 1 << 32
        else:
            place, format, most = _ip(capture, number) + 2, ">H", 1 << 16
        capture = _placed(capture, number, place, format, value % most)
    return capture


def _ip(capture: Capture, number: int) -> int:
    """Return where the IP header of a packet may begin."""
    begin = 28 if capture.blocks else 16
    part = capture.packets[number]
    return begin if part[begin : begin + 1] in (b"\x45", b"\x60") else begin + 14


def _header(draw: random.Random, capture: Capture) -> Capture:
    """Change a field of IP or TCP: protocol, address, ports, numbers, flags, options."""
    offset, width = draw.choice(
        ((0, 1), (4, 2), (6, 2), (9, 1), (12, 4), (16, 4), (20, 2), (22, 2), (24, 4), (28, 4),
         (32, 1), (33, 1), (40, 4), (44, 4), (48, 4), (52, 4))
    )  # fmt: skip
    kinds = {1: "B", 2: "H", 4: "I"}
    same = draw.choice(_EDGES)
    alike = draw.random() < 0.5
    for number in _some(draw, capture)[:60]:
        value = same if alike else draw.randrange(1 << 8 * width)
        place = _ip(capture, number) + offset
        capture = _placed(capture, number, place, f">{kinds[width]}", value % (1 << 8 * width))
    return capture


def _packets(draw: random.Random, capture: Capture) -> Capture:
    """Remove, double, turn around or shuffle packets."""
    rows = _some(draw, capture)
    part = list(capture.packets[rows.start : rows.stop])
    match draw.randrange(5):
        case 0:
            part = part[:: draw.choice((2, 3, 10))]
        case 1:
            part *= draw.choice((2, 3))
        case 2:
            part.reverse()
        case 3:
            draw.shuffle(part)
        case _:
            part = [draw.choice(capture.packets)] * draw.choice((1, 100, 300))
    packets = (*capture.packets[: rows.start], *part, *capture.packets[rows.stop :])
    return replace(capture, packets=packets or capture.packets)


def _one_way(draw: random.Random, capture: Capture) -> Capture:
    """Keep the packets of one size, which go one way mostly, or of one interface."""
    draw_size = draw.random() < 0.5
    first = draw.choice(capture.packets)
    kept = [
        each
        for each in capture.packets
        if (len(each) == len(first) if draw_size else each[8:12] == first[8:12])
    ]
    return replace(capture, packets=tuple(kept))


def _blocks(draw: random.Random, capture: Capture) -> Capture:
    """Change the header, the link type or the clock; add interfaces, or name others."""
    if not capture.blocks or draw.random() < 0.3:
        at = draw.randrange(len(capture.head))
        value = bytes([draw.choice((0, 1, 6, 9, 101, 113, 127, 128, 255))])
        return replace(capture, head=capture.head[:at] + value + capture.head[at + 1 :])
    if draw.random() < 0.5:
        count = draw.choice((1, 5, 300))
        resolution, offset = draw.choice((0, 6, 9, 18, 0x80, 0x81, 0xBF)), draw.choice(_EDGES)
        options = struct.pack(capture.order + "HHB3x", 9, 1, resolution)
        options += struct.pack(capture.order + "HHQHH", 14, 8, offset % 2**64, 0, 0)
        body = struct.pack(capture.order + "HHI", draw.choice((1, 101, 113)), 0, 0) + options
        length = struct.pack(capture.order + "I", 12 + len(body))
        block = struct.pack(capture.order + "I", 1) + length + body + length
        capture = replace(capture, head=capture.head + count * block)
    top = draw.choice((1, 2, 3, 300))
    for number in _some(draw, capture)[:200]:
        capture = _placed(capture, number, 8, capture.order + "I", draw.randrange(top))
    return capture


_OF_CAPTURES: tuple[Callable[[random.Random, Capture], Capture], ...] = (
    *(_time, _time, _length, _length, _header, _header, _header),
    *(_packets, _packets, _one_way, _blocks),
)

_VALUES: tuple[Any, ...] = (
    *(0, -1, 1, 1e-300, 1e300, -1e300, 10**12, 2**53, 2**63, 10**400, 0.5, 65536, -0.0),
    *(float("nan"), float("inf"), float("-inf"), None, True, "", "x", "7", "\x1b[31m\n"),
    *([], {}, [1], [[]], {"a": 1}, [None] * 200, [0] * 200, ["x"] * 200),
)


def _of_tree(draw: random.Random, tree: Any) -> Any:
    """Put another value in the place of one, remove it, double it, or rename its key."""
    places: list[tuple[Any, Any]] = []

    def walk(part: Any, depth: int) -> None:
        keys = list(part) if isinstance(part, dict) else range(len(part))
        for key in keys:
            places.append((part, key))
            if isinstance(part[key], dict | list) and depth < 6:
                walk(part[key], depth + 1)

    if not isinstance(tree, dict | list) or not tree:
        return draw.choice(_VALUES)
    walk(tree, 0)
    # As often a part of the whole as a number far within.
    few = [place for place in places if isinstance(place[1], str)]
    part, key = draw.choice(few if few and draw.random() < 0.5 else places)
    value = part[key]
    match draw.randrange(8):
        case 0:
            del part[key]
        case 1 if isinstance(part, list):
            part.insert(draw.randrange(len(part) + 1), value)
        case 2 if isinstance(part, dict):
            part[draw.choice(("TCP upload", "TCP download::9", "Ping (ms) x", "\x1b", ""))] = value
        case 3 if isinstance(value, list):
            part[key] = value[: draw.randrange(len(value) + 1)]
        case 4 if isinstance(value, list):
            same = draw.choice(_VALUES)
            part[key] = [same if draw.random() < 0.5 else each for each in value]
        case 5 if isinstance(value, int | float) and not isinstance(value, bool):
            part[key] = value * draw.choice((-1, 0, 1e-6, 1e6, 1e12))
        case 6:
            nested: Any = value
            for _ in range(draw.choice((1, 3, 200))):
                nested = [nested]
            part[key] = nested
        case _:
            part[key] = draw.choice(_VALUES)
    return tree


_NUMBERS = (
    *("0", "-1", "1", "0.0", "0.001", "65535", "65536", "1000000000000", "100000000000000"),
    *("9" * 30, "9" * 400, "1e9", "nan", "inf", "\u0661", "0x10", "1.5.5", "8640000001"),
)


def _lines(draw: random.Random, data: bytes) -> bytes:
    """Change a number; remove, double, move or join lines; make one long."""
    lines = data.split(b"\n")
    at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(9):
        case 0:
            del lines[at : at + draw.choice((1, 10, 1000))]
        case 1:
            lines[other:other] = lines[at : at + draw.choice((1, 10, 1000))]
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = lines[at][:1000] * draw.choice((2, 30, 3000))
        case 4:
            draw.shuffle(lines)
        case _:
            words = lines[at].replace(b"=", b"= ").replace(b"[", b"[ ").split(b" ")
            word = draw.randrange(len(words))
            new = draw.choice(_NUMBERS).encode()
            rows = draw.choice((range(at, at + 1), range(at, min(at + 20, len(lines)))))
            old = words[word]
            for row in rows:
                lines[row] = lines[row].replace(old, new) if old else new
    return b"\n".join(lines)
