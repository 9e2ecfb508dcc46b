"""Captures that were not made to be estimated: servers that take their time, and idle lines.

The truth stands in the experiment that made the capture. A rate is a value only if the line was
full; where it is a bound, the bound has to hold.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from altered import Packet, altered, clock_set, cut, near_proxy, one_interface, twice
from test_recordings import BUFFER, RATE, RECEIVER, RTT, SENDER, folder, known

import redtail
from redtail import lines
from redtail.lines.recordings import clocks, line, rates, tcp
from redtail.lines.recordings.found import Found
from redtail.lines.recordings.rates import Deliveries
from redtail.lines.recordings.values import Estimated

DOWN, UP, BASE_S, PACKETS = 20e6, 5e6, 0.030, 200

LINE = """
name = "Line"
duration = "{duration} s"
warmup = "1 s"
replications = 1
seed = 3
[bottleneck]
rate = "20 Mbit/s"
delay = "15 ms"
queue = {{ kind = "tail-drop", limit = "200 packets" }}
[bottleneck.return]
rate = "5 Mbit/s"
delay = "15 ms"
queue = {{ kind = "tail-drop", limit = "200 packets" }}
{traffic}
"""

RPC = """
[[traffic]]
name = "rpc"
kind = "transactions"
users = 6
tcp = "linux"
service = "exponential mean 400 ms"
think = "exponential mean 500 ms"
request = "400 B"
response = "6 kB"
connections = "one"
"""

PAGES = """
[[traffic]]
name = "web"
kind = "web"
model = "http2"
users = 4
tcp = "linux"
"""

TEST = """
[[traffic]]
name = "download"
kind = "bulk"
flows = 2
tcp = "linux"
start = "1 s"
stop = "14 s"
[[traffic]]
name = "upload"
kind = "bulk"
flows = 1
tcp = "linux"
direction = "reverse"
start = "17 s"
stop = "30 s"
"""

CALL = """
[[traffic]]
name = "call"
kind = "voip"
"""

WINDOW = """
[[traffic]]
name = "download"
kind = "bulk"
flows = 1
tcp = { preset = "linux", receive_window = "48 kB" }
"""

LINES = {
    "slow servers": (60, RPC + PAGES),
    "answers": (30, RPC),
    "speed test": (32, TEST),
    "window": (20, WINDOW),
    "no timestamps": (20, WINDOW.replace("linux", "sack")),
    "losses": (20, WINDOW),
    "losses without timestamps": (20, WINDOW.replace("linux", "sack")),
}

POINTS = pytest.mark.parametrize("points", [SENDER, RECEIVER], ids=["sender", "receiver"])


@cache
def captured(name: str, points: tuple[str, ...]) -> Path:
    """A capture of a line at some points."""
    duration, traffic = LINES[name]
    file = folder() / f"{name} {points[0].replace(':', ' ')}.pcapng"
    text = LINE.format(duration=duration, traffic=traffic)
    if name.startswith("losses"):  # of a radio: no queue stands
        text = text.replace("[bottleneck]", "[bottleneck]\nwire.loss = 0.003", 1)
    redtail.capture(redtail.Toml(text), dict.fromkeys(points, file))
    return file


@cache
def found(name: str, points: tuple[str, ...]) -> Found:
    """What a capture of a line tells."""
    return lines.estimate(captured(name, points))


def holds(value: Estimated, truth: float, within: float) -> bool:
    """Whether an estimate agrees with the truth: near it, or a bound that holds."""
    if value.value is None:
        return True
    if value.bound == "at least":
        return value.value <= 1.01 * truth
    if value.bound == "at most":
        return value.value >= 0.99 * truth
    return abs(value.value - truth) <= within * truth


@POINTS
def test_time_at_servers_is_not_queueing(points: tuple[str, ...]) -> None:
    told = found("slow servers", points)
    assert known(told.down.rate) == pytest.approx(DOWN, rel=RATE)
    assert len(told.down.steps) == 1 and not told.down.trace_ms
    assert known(told.rtt) == pytest.approx(BASE_S, rel=RTT) and known(told.rtt) >= BASE_S
    assert holds(told.down.buffer, PACKETS * 1500, BUFFER), told.down.buffer.text
    assert holds(told.down.wait, 8 * PACKETS * 1500 / DOWN, BUFFER), told.down.wait.text
    assert told.up.rate.bound == "at least" and (told.up.rate.value or 0) <= UP
    assert not told.up.buffer.known and "known to have been full" in told.up.buffer.basis


@POINTS
def test_advice_is_for_the_rate_of_the_line(points: tuple[str, ...]) -> None:
    told = lines.estimate(captured("slow servers", points), up_bps=UP)
    made, _ = line.recorded_line(told, "docsis")
    assert made.down_bps == pytest.approx(DOWN, rel=RATE)
    assert made.rtt_s == pytest.approx(BASE_S, rel=RTT)


@POINTS
@pytest.mark.parametrize(
    "name", ["answers", "window", "no timestamps", "losses", "losses without timestamps"]
)
def test_a_line_that_hosts_leave_idle_has_bounds(name: str, points: tuple[str, ...]) -> None:
    told = found(name, points)
    # Acknowledgements alone go up, unless there are requests. What passes has passed the line too
    # if the point of capture is behind it, which losses tell: here they are behind both points.
    told_up = name == "answers" or name.startswith("losses")
    for way, rate in ((told.down, DOWN), (told.up, UP)):
        assert not way.buffer.known and not way.wait.known
        if way is told.up and not told_up:
            assert not way.rate.known and "nothing tells how much" in way.rate.basis
            continue
        assert way.rate.bound == "at least" and 0 < (way.rate.value or 0) <= rate
        assert "not known to have been full" in way.rate.basis
    assert known(told.rtt) == pytest.approx(BASE_S, rel=RTT)


def tells_both(told: Found) -> None:
    """What a speed test tells: both rates, the round trip, and what the upload's buffer holds."""
    assert known(told.down.rate) == pytest.approx(DOWN, rel=RATE)
    assert known(told.up.rate) == pytest.approx(UP, rel=RATE)
    assert len(told.down.steps) == len(told.up.steps) == 1
    assert BASE_S <= known(told.rtt) <= (1 + RTT) * BASE_S
    for way, rate in ((told.down, DOWN), (told.up, UP)):
        size, full = PACKETS * 1500, 8 * PACKETS * 1500 / rate
        assert way.buffer.bound != "at most" and way.wait.bound != "at most"
        assert way.buffer.value == pytest.approx(size, rel=BUFFER), way.buffer.text
        assert way.wait.value == pytest.approx(full, rel=BUFFER), way.wait.text


@POINTS
def test_a_speed_test_tells_both_directions(points: tuple[str, ...]) -> None:
    told = found("speed test", points)
    tells_both(told)
    made, recorded = line.recorded_line(told, "docsis")
    assert (made.down_bps, made.up_bps) == pytest.approx((DOWN, UP), rel=RATE)
    assert recorded.down_flows == 2 and recorded.up_flows == 1


SET = {
    "half an hour of idle time": (15.5, 1800.0),
    "forwards": (7.0, 3600.0),
    "forwards in the upload": (22.0, 2.0),
    "backwards": (7.0, -2.0),
    "backwards in the upload": (22.0, -2.0),
    "backwards a day": (7.0, -86400.0),
}


@POINTS
@pytest.mark.parametrize("name", SET)
def test_pauses_and_clocks_that_are_set_make_no_difference(
    name: str, points: tuple[str, ...], tmp_path: Path
) -> None:
    at_s, by_s = SET[name]
    late = captured("speed test", points)
    if by_s < -10.0:  # no time is before 1970
        late = altered(late, tmp_path / "late.pcapng", clock_set(0.0, 1e6))
    file = altered(late, tmp_path / "set.pcapng", clock_set(at_s, by_s))
    told = lines.estimate(file)
    tells_both(told)
    said = [text for text in told.cautions if "the clock was set back" in text]
    assert len(said) == (by_s < 0)


def test_a_file_that_is_not_in_the_order_of_time_is_sorted(tmp_path: Path) -> None:
    def in_turns(found: list[Packet]) -> list[Packet]:
        blocks = [found[n : n + 400] for n in range(0, len(found), 400)]
        return [
            each
            for pair in zip(blocks[1::2], blocks[::2], strict=False)
            for block in pair
            for each in block
        ]

    points = RECEIVER
    file = altered(captured("speed test", points), tmp_path / "turns.pcapng", in_turns)
    told = lines.estimate(file)
    assert not any("the clock was set back" in text for text in told.cautions)
    tells_both(told)


@POINTS
def test_a_line_that_is_faster_at_first_has_no_shorter_round_trip(
    points: tuple[str, ...], tmp_path: Path
) -> None:
    bulk = '[[traffic]]\nname = "a"\nkind = "bulk"\ntcp = "linux"\nstart = "0 s"\n'
    slow = 'rate = "20 Mbit/s"\nrate_changes = [{ at = "0.1 s", rate = "400 kbit/s" }]'
    text = LINE.format(duration=40, traffic=bulk).replace('rate = "20 Mbit/s"', slow, 1)
    file = tmp_path / "boost.pcapng"
    redtail.capture(redtail.Toml(text), dict.fromkeys(points, file))
    told = lines.estimate(file)
    assert known(told.down.rate) == pytest.approx(400e3, rel=RATE)
    assert known(told.rtt) == pytest.approx(BASE_S, rel=RTT)


def test_round_trips_are_those_of_handshakes_where_something_near_answers(tmp_path: Path) -> None:
    file = altered(captured("window", SENDER), tmp_path / "near.pcapng", near_proxy)
    told = lines.estimate(file, local=LOCAL)
    assert told.rtt.value == pytest.approx(BASE_S, rel=RTT), told.rtt.text
    assert told.down.rate.bound == "at least"
    assert any("something near acknowledges" in text for text in told.cautions)


LOCAL = ("10.128.0.0/16", "10.1.0.0/16")
"""Of hosts that download, and of those that upload."""


@pytest.mark.parametrize("translated", [False, True], ids=["bridge", "nat"])
def test_packets_that_a_router_captures_twice_count_once(translated: bool, tmp_path: Path) -> None:
    file = altered(
        captured("speed test", RECEIVER), tmp_path / "any.pcapng", twice(50e-6, translated)
    )
    told = lines.estimate(file, local=LOCAL)
    tells_both(told)
    assert {flows.direction: flows.count for flows in told.flows} == {"down": 2, "up": 1}


def test_a_call_that_a_router_translates_counts_once(tmp_path: Path) -> None:
    text = LINE.format(duration=20, traffic=TEST.replace("17 s", "2 s") + CALL)
    file = tmp_path / "call.pcapng"
    redtail.capture(redtail.Toml(text.replace("30 s", "14 s")), dict.fromkeys(RECEIVER, file))
    single = lines.estimate(file, local=LOCAL)
    both = altered(file, tmp_path / "any.pcapng", twice(50e-6, True))
    told = lines.estimate(both, local=LOCAL)
    calls = [
        [
            (flows.count, round(flows.bps))
            for flows in found.flows
            if flows.kind in ("steady", "udp")
        ]
        for found in (single, told)
    ]
    assert calls[0] and calls[0] == calls[1]


def test_copies_on_both_sides_of_a_queue_tell_its_waits(tmp_path: Path) -> None:
    points = ("bottleneck:in", "bottleneck:out", "return:in", "return:out")
    file = altered(captured("speed test", points), tmp_path / "any.pcapng", one_interface)
    told = lines.estimate(file, local=LOCAL)
    tells_both(told)
    assert any("the queue is between" in text for text in told.cautions)


@POINTS
def test_a_snap_length_that_cuts_options_is_enough(points: tuple[str, ...], tmp_path: Path) -> None:
    told = lines.estimate(altered(captured("speed test", points), tmp_path / "cut.pcapng", cut(68)))
    tells_both(told)
    assert not any("left out" in text for text in told.cautions)


class Observed:
    """A connection whose segments are told one by one, with what it says of them."""

    def __init__(self) -> None:
        self.out = tuple(array("d") for _ in range(4))
        self.connection = tcp._Connection(0, self.out)

    def data(self, end: int, at: float, seq: int, length: int, **more: bool) -> None:
        self.connection.data(end, at, seq, length, 40 + length, True, **more)

    def acknowledged(self, at: float, number: int, *blocks: tuple[int, int]) -> float:
        """How long the receiver of end 0 may have taken."""
        self.connection.acknowledge(0, at, number, list(blocks), True)
        (late,) = self.out[0][6::7][-1:]
        return float(late)

    def stamped(self, end: int, at: float, value: int, echo: int, **more: bool) -> float | None:
        before = len(self.out[0])
        given = {"data": True, "quiet": True, **more}
        self.connection.stamp(end, at, value, echo, 1500, **given)
        return float(self.out[0][-1]) if len(self.out[0]) > before else None


def test_a_receiver_answers_at_once_what_is_more_than_a_segment() -> None:
    seen = Observed()
    for number in range(5):
        seen.data(0, float(number), 1000 * number, 1000)
    assert seen.acknowledged(10.0, 2000) == 0.0, "two segments"
    # Only one: had the next one come before, it would be acknowledged too.
    assert seen.acknowledged(11.0, 3000) == 1.0
    assert seen.acknowledged(12.0, 3000, (4000, 5000)) == 0.0, "out of order"


def test_what_an_older_block_tells_first_is_no_round_trip() -> None:
    seen = Observed()
    for number in range(8):
        seen.data(0, float(number), 1000 * number, 1000)
    assert seen.acknowledged(10.0, 1000, (2000, 3000)) == 0.0
    count = len(seen.out[0])
    # The acknowledgement that told of 4000 to 5000 first was lost, and that of the newest was not.
    seen.connection.acknowledge(0, 20.0, 1000, [(6000, 7000), (4000, 5000), (2000, 3000)], True)
    trips = np.array(seen.out[0][count:]).reshape(-1, 7)
    assert trips[:, 0].tolist() == [6.0]


def test_of_the_last_segment_all_may_be_the_receivers_time() -> None:
    seen = Observed()
    seen.data(0, 1.0, 0, 400)
    assert seen.acknowledged(1.5, 400) == pytest.approx(0.5)
    seen.data(0, 2.0, 400, 1, syn=True)
    assert seen.acknowledged(2.5, 401) == 0.0, "a SYN is answered at once"


def test_an_old_echo_may_be_a_hosts_time() -> None:
    seen = Observed()
    assert seen.stamped(1, 1.0, 100, 0, data=False) is None
    # The host has nothing to send for a while.
    assert seen.stamped(0, 1.4, 7, 100) == pytest.approx(0.4)
    seen.stamped(1, 2.0, 200, 7, data=False)
    seen.stamped(1, 2.01, 210, 7, data=False)
    # It had not got the next value yet.
    assert seen.stamped(0, 2.03, 8, 200) == pytest.approx(0.01)
    # What an end sends beside data that is not acknowledged may not be echoed (RFC 7323, 4.3).
    seen.stamped(1, 3.0, 300, 8, data=False)
    seen.stamped(1, 3.01, 310, 8, data=False, quiet=False)
    assert seen.stamped(0, 3.5, 9, 300) == pytest.approx(0.5)


@pytest.mark.parametrize("blocks", [((1000, 2000),), ((3000, 4000), (3000, 5000))])
def test_what_was_received_twice_was_not_lost(blocks: tuple[tuple[int, int], ...]) -> None:
    seen = Observed()
    for number in range(5):
        seen.data(0, float(number), 1000 * number, 1000)
    for again in (1000, 3000):
        seen.data(0, 6.0, again, 1000)
    lost = seen.out[2]
    assert (lost[2], lost[7]) == (0.0, 0.0)
    seen.connection.acknowledge(0, 7.0, 2000, list(blocks), True)
    assert (lost[2], lost[7]) == ((-1.0, 0.0) if blocks[0][0] == 1000 else (0.0, -1.0))


def full(seconds: float, bps: float = 10e6) -> Deliveries:
    """What a link delivers that is full for so long, and then idle for a minute."""
    gap = 8 * 1500 / bps
    at = gap * np.arange(int(seconds / gap))
    at = np.concatenate([at, [seconds + 60.0]])
    return Deliveries(at, np.full(len(at), 1500.0), 0.0, "")


def test_a_rate_takes_a_queue_that_stands_for_long() -> None:
    def rate(stands_s: float, *empty_s: float, others: bool = False) -> Estimated:
        at = np.concatenate([np.arange(0.0, 3.0, 0.01) if others else [], empty_s])
        found_empty = np.arange(len(at)) >= len(at) - len(empty_s)
        standing = rates.Standing(
            np.array([0.0]), np.array([stands_s]), at, found_empty.astype(float), found_empty
        )
        return rates.estimate(full(3.0), standing).mean

    assert known(rate(3.0)) == pytest.approx(10e6, rel=0.01)
    assert rate(0.8).bound == "at least" and "and 1 s are needed" in rate(0.8).basis
    # One packet that found it empty in each window says that it did not stand,
    empty = np.arange(0.0, 3.0, 0.02)
    assert rate(3.0, *empty).bound == "at least"
    # but not where others had to wait: flows may be served in turns.
    assert known(rate(3.0, *empty, others=True)) == pytest.approx(10e6, rel=0.01)
    told = rates.estimate(full(3.0), None).mean
    assert told.bound == "at least" and 0.9 * 10e6 < (told.value or 0) <= 10e6


def test_idle_time_makes_no_difference() -> None:
    at = np.concatenate([full(3.0).at_s, 1800.0 + full(3.0).at_s])
    idle = Deliveries(at, np.full(len(at), 1500.0), 0.0, "")
    assert rates.rough(idle) == pytest.approx(10e6, rel=0.05)
    told = rates.estimate(idle, None).mean
    assert 0.9 * 10e6 < (told.value or 0) <= 10e6


def test_times_that_no_clock_has_are_not_corrected() -> None:
    latest = clocks.LATEST_NS
    at_ns = np.array([1, latest, 2, 3, 4, 5, 6, latest - 1])
    times, steps = clocks.without_steps(at_ns, np.zeros(len(at_ns), np.int64))
    assert steps == []
    assert times.tolist() == at_ns.tolist()
    # The same step an hour long.
    hour = 3_600_000_000_000
    at_ns = np.array([1, hour, 2, 3, 4, 5, 6, 7])
    times, steps = clocks.without_steps(at_ns, np.zeros(len(at_ns), np.int64))
    assert steps == [(2, hour - 2)]
    assert times.tolist() == [1, hour, *range(hour, hour + 6)]


def test_a_lower_bound_counts_what_was_delivered_in_any_case() -> None:
    # A burst passes the point of capture, and is acknowledged at the rate of a link behind it.
    burst = Deliveries(np.linspace(0, 0.1, 100), np.full(100, 1500.0), 0.0, "as they passed")
    acked = Deliveries(np.linspace(0, 1.2, 100), np.full(100, 1500.0), 0.0, "as acked")
    of_burst = rates.most(burst, "").mean.value
    assert of_burst is not None
    assert of_burst > 4e6
    told = rates.most(replace(burst, sure=acked), "").mean
    assert told.value is not None
    assert 0.8e6 < told.value < 0.99e6  # the link delivers 99 packets in 1.2 s


@cache
def single(traffic: str, points: tuple[str, ...], text: str = LINE) -> Found:
    """What a capture of one group tells."""
    place = points[0].replace(":", " ")
    file = folder() / f"single {abs(hash((traffic, text)))} {place}.pcapng"
    redtail.capture(
        redtail.Toml(text.format(duration=20, traffic=traffic)), dict.fromkeys(points, file)
    )
    return lines.estimate(file)


@POINTS
@pytest.mark.parametrize("up", ["300 kbit/s", "150 kbit/s"])
def test_acknowledgements_that_wait_are_no_queue_of_the_data(
    up: str, points: tuple[str, ...]
) -> None:
    bulk = '[[traffic]]\nname = "download"\nkind = "bulk"\nflows = 2\ntcp = "linux"\n'
    told = single(bulk, points, LINE.replace("5 Mbit/s", up))
    assert known(told.down.rate) == pytest.approx(DOWN, rel=RATE)
    assert len(told.down.steps) == 1 and not told.down.trace_ms
    # Of the way up, acknowledgements wait 200 packets of 52 B: more than the data, at its 120 ms.
    assert holds(told.down.wait, 8 * PACKETS * 1500 / DOWN, BUFFER)
    if points == RECEIVER:
        assert not told.up.rate.known  # what passes the point is dropped behind it


@POINTS
def test_a_queue_management_that_drops_seldom_has_no_full_buffer(points: tuple[str, ...]) -> None:
    """CoDel at 100 Mbit/s: five losses in 20 s, three of them at the same backlog."""
    bulk = '[[traffic]]\nname = "download"\nkind = "bulk"\nflows = 1\ntcp = "linux"\n'
    text = LINE.replace("20 Mbit/s", "100 Mbit/s").replace("5 Mbit/s", "20 Mbit/s")
    managed = text.replace(
        '{{ kind = "tail-drop", limit = "200 packets" }}', '{{ kind = "codel" }}', 1
    )
    told = single(bulk, points, managed)
    assert known(told.down.rate) == pytest.approx(100e6, rel=RATE)
    assert told.down.buffer.bound == told.down.wait.bound == "at least"


@pytest.mark.parametrize("place", ["bottleneck:in", "bottleneck:out"])
def test_udp_alone_tells_no_rate_where_nothing_says_that_it_passed_the_line(place: str) -> None:
    flood = '[[traffic]]\nname = "flood"\nkind = "cbr"\nrate = "30 Mbit/s"\npacket = "1200 B"\n'
    told = single(flood, (place,))
    assert not told.down.rate.known and "nothing tells how much" in told.down.rate.basis
