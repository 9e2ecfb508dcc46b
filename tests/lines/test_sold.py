"""Lines as they are sold: ports, policers, satellites, rates that change, what is not known."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from typer.testing import CliRunner

import redtail
from redtail.cli import app
from redtail.lines import PROVIDERS, RATES, Line, as_sold
from redtail.lines.advice import doubts
from redtail.lines.advice.access import (
    ACCESS,
    PORT_RATES,
    carried,
    own_port,
    wire_bytes,
    with_overhead,
)
from redtail.lines.advice.advise import given_line
from redtail.lines.advice.answer import Advice
from redtail.lines.advice.filled import filled
from redtail.lines.advice.simulated import (
    AS_IT_IS,
    EFFORTS,
    HALF,
    experiment_text,
    simulated,
)
from redtail.lines.advice.sold import BURST_S, LEAST_BURST, policer, port_of
from redtail.lines.advice.timing import PAGE_B, PAGES, ROUND_TRIPS, WARMUP_S, needed
from redtail.lines.advice.varied import bounds
from redtail.lines.course import Course
from redtail.lines.line import Recorded
from redtail.studies.runner import quietly

runner = CliRunner()


def line_of(**given: Any) -> Line:
    return given_line("100mbit", "100mbit", "30ms", "ethernet", "calls,backup", 3, **given)


def advised(line: Line, out: Path, queues: str = "fq-codel", **options: Any) -> redtail.Advice:
    return redtail.advise_on(line, queues=queues, effort="quick", out=out, **options)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sold")


# A port that is faster than the line.


@pytest.mark.parametrize("rate", PORT_RATES)
def test_a_rate_that_ports_have_is_no_own_port_unless_the_port_is_known(rate: float) -> None:
    line = Line(rate, rate, 0.01, "ethernet", ("calls",), 1)
    for kind in ("fq-codel", "cake"):
        for way in simulated(line, [kind], EFFORTS["quick"]).candidates:
            assert way.up.shaped.shaper_bps is not None
    assert any("is also the rate of a port" in text for text in doubts.about_the_port(line))
    known = dataclasses.replace(line, port_bps=rate)
    assert own_port(known)
    (found,) = simulated(known, ["fq-codel"], EFFORTS["quick"]).candidates
    assert found.up.shaped.shaper_bps is None
    assert found.down.shaped.shaper_bps is not None  # the queue there stands at the provider
    assert not any("is also the rate" in text for text in doubts.about_the_port(known))


def test_a_line_of_100_behind_a_port_of_1000_has_a_shaper(out: Path) -> None:
    options = ["--rtt", "10ms", "--use", "calls,backup", "--queues", "fq-codel"]
    rates = ["--down", "100mbit", "--up", "100mbit", "--access", "ethernet"]
    for port, shaper, doubt in (
        (None, 95e6, True),
        ("1gbit", 95e6, False),
        ("100mbit", None, False),
    ):
        given = [] if port is None else ["--port-rate", port]
        done = runner.invoke(
            app,
            [
                "advise",
                *rates,
                *options,
                *given,
                *("--effort", "quick", "--json"),
                *("--out", str(out)),
            ],
        )
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["up"]["shaper_bps"] == shaper
        assert any("is also the rate of a port" in text for text in found["uncertain"]) == doubt


def test_a_port_that_is_slower_than_the_line_is_the_line() -> None:
    line = given_line("8gbit", "3gbit", "10ms", "fibre", "web", 1, port_rate="2.5gbit")
    assert (line.down_bps, line.up_bps, own_port(line)) == (2.5e9, 2.5e9, True)
    # An asymmetric fibre on the same port: its upload is slower than the port.
    line = given_line("2gbit", "1gbit", "10ms", "fibre", "web", 1, port_rate="2.5gbit")
    assert (line.down_bps, line.up_bps, own_port(line)) == (2e9, 1e9, False)


# What a speed test shows.


@pytest.mark.parametrize(
    ("access", "line"),
    [
        # 1500 B of which 1448 are payload, in a frame of 1518.
        ("docsis", 1518 / 1448),
        # 1492 B with 40 more are 32 cells of 53 B; 1440 are payload.
        ("adsl", 32 * 53 / 1440),
        # 1492 B with 30 more are 1522, and a byte for each 64 of them.
        ("pppoe-vdsl2", 1546 / 1440),
        ("pppoe-fibre", 1542 / 1440),
        ("lte", 1500 / 1448),
    ],
)
def test_a_speed_test_shows_payload_and_the_line_carries_more(access: str, line: float) -> None:
    given = ("10mbit", "2mbit", "30ms", access, "web", 1)
    found = given_line(*given, rates="speed-test")
    assert found.down_bps == pytest.approx(10e6 * line)
    assert found.up_bps == pytest.approx(2e6 * line)
    assert given_line(*given).down_bps == 10e6


@pytest.mark.parametrize("access", ["docsis", "adsl", "unknown", "lte"])
def test_a_shaper_carries_its_share_of_the_packets_that_were_recorded(access: str) -> None:
    line = Line(20e6, 5e6, 0.03, access, ("calls",), 1)
    recorded = Recorded(of_packets=("down",), bounds=(("down", "at least"),))
    found = with_overhead(line, recorded)
    # What the line carries of full packets is what was recorded; what was given is the line's.
    assert carried(ACCESS[access].overhead, found.down_bps) == pytest.approx(20e6)
    assert found.up_bps == 5e6
    shaped = simulated(found, ["cake"], EFFORTS["quick"], recorded=recorded).candidates[0].down
    assert shaped.shaped.shaper_bps is not None
    of_packets = carried(shaped.shaped.overhead, shaped.shaped.shaper_bps)
    assert of_packets == pytest.approx(20e6 * ACCESS[access].share, rel=1e-3)
    # The bound is told as it was recorded, and what the line has then beside it.
    (bound,) = doubts.about_bounds(found, recorded)
    assert "at least 20 Mbit/s" in bound
    told = [*doubts.about_what_is_added(found, recorded)]
    assert len(told) == (access != "lte")
    assert not any("5 Mbit/s" in text for text in told)


def test_a_recorded_rate_is_not_above_the_port() -> None:
    line = Line(98e6, 98e6, 0.03, "ethernet", ("calls",), 1, port_bps=100e6)
    found = with_overhead(line, Recorded(of_packets=("down", "up")))
    assert (found.down_bps, found.up_bps) == (100e6, 100e6)
    assert own_port(found)


def test_bounds_of_a_shaper_that_follows_carry_what_was_recorded() -> None:
    course = Course(steps=((8.0, 20e6), (2.0, 8e6)))
    for access in ("lte", "adsl"):
        line = Line(20e6, 5e6, 0.03, access, ("calls",), 1)
        overhead, share = ACCESS[access].overhead, ACCESS[access].share
        found = bounds(line, course, 1.0)
        assert carried(overhead, found.most_bps) == pytest.approx(20e6, rel=1e-3)
        assert carried(overhead, found.base_bps) == pytest.approx(share * 8e6, rel=1e-3)


# A policer.


def _cbr(queue: dict[str, Any], seconds: float, warmup: float = 0.0) -> Any:
    """60 Mbit/s in packets of 1000 B on a port of 1 Gbit/s."""
    from redtail.experiment import toml_value

    text = f"""
name = "policed"
duration = "{seconds} s"
warmup = "{warmup} s"
replications = 1
[bottleneck]
rate = "1 Gbit/s"
delay = "10 ms"
queue = {toml_value(queue)}
[[traffic]]
name = "steady"
kind = "cbr"
rate = "20 Mbit/s"
packet = "1000 B"
flows = 3
access_rate = "10 Gbit/s"
"""
    return redtail.Toml(text)


def test_a_policer_lets_its_rate_pass_and_delays_nothing(out: Path) -> None:
    results = redtail.run(_cbr(policer(40e6, 100e3), 11.0, 1.0), out=out)
    (case,) = results.cases
    assert case.values("loss")[0] == pytest.approx(1 / 3, abs=1e-4)
    assert case.values("queue_delay_p99")[0] < 20e-6  # two packets that came at once


@pytest.mark.parametrize("burst", [3000.0, 20e3, 1e6])
def test_a_policer_lets_its_burst_pass_at_once(burst: float, out: Path) -> None:
    seconds = 0.2
    results = redtail.run(_cbr(policer(40e6, burst), seconds), out=out)
    (case,) = results.cases
    sent = 60e6 * seconds / 8
    passed = (1 - case.values("loss")[0]) * sent
    # In any time t at most B + R t; here as much, but for what arrives in whole packets.
    assert passed == pytest.approx(min(sent, burst + 40e6 * seconds / 8), abs=4000)


_POLICER = """
class Policer:
    def __init__(self, context, rate, burst):
        self.rate, self.burst, self.tokens, self.at, self.packets = rate, burst, burst, 0.0, []

    def enqueue(self, packet, now):
        self.tokens = min(self.burst, self.tokens + self.rate / 8 * (now - self.at))
        self.at = now
        if packet.size > self.tokens:
            return False
        self.tokens -= packet.size
        self.packets.append(packet)
        return True

    def dequeue(self, now):
        return self.packets.pop(0)
"""


def test_a_policed_line_loses_throughput_that_a_shaper_keeps(out: Path, tmp_path: Path) -> None:
    """The promises of an advice against a policer in Python, with other random numbers.

    A mean of the advice and one of these runs may not differ by more than Welch's test allows at
    0.1 %: 1.2 % false alarms for twelve of them.
    """
    given = ("10 Mbit/s", "10 Mbit/s", "40 ms", "ethernet", "calls,backup", 1)
    line = given_line(*given, provider="policer", port_rate="1 Gbit/s")
    assert line.burst_bytes == (10e6 * BURST_S / 8,) * 2
    found = redtail.advise_on(line, queues="fq-codel", effort="normal", out=out)
    assert found.helps
    assert found.objective.name == "throughput"
    assert found.wanted.divisor == 1
    fair = found.expects("one backup", "FQ-CoDel").measures
    as_it_is = found.expects("one backup", AS_IT_IS).measures
    assert as_it_is["lost_up"].mean > fair["lost_up"].mean + 0.1
    assert max(fair["call_lost_up"].mean, fair["call_lost_down"].mean) == 0

    other = dataclasses.replace(found, results=_behind_another_policer(found, tmp_path))
    for load, measure in (
        ("one backup", "lost_up"),
        ("one backup", "call_up"),
        ("everything", "lost_up"),
        ("everything", "lost_down"),
        ("everything", "call_up"),
        ("everything", "call_down"),
    ):
        for label in ("FQ-CoDel", AS_IT_IS):
            values = [each.values[load, label][measure] for each in (found, other)]
            assert _agree(*values), (load, measure, label, values)


def _behind_another_policer(found: Advice, folder: Path) -> redtail.Results:
    """The runs of an advice with the other policer, and other random numbers."""
    from redtail.experiment import toml_value

    wanted, text = found.wanted, found.text
    own = toml_value(wanted.link_queue("down"))
    assert text.count(own) == 2
    assert wanted.line.burst_bytes is not None
    params = {"rate": wanted.down_bps, "burst": wanted.line.burst_bytes[0]}
    table = {"kind": "plugin", "class": "policer.py:Policer", "limit": "10000 packets"}
    text = text.replace(own, toml_value({**table, "params": params}))
    text = text.replace("replications = 10", "replications = 6\nseed = 20261128")
    (folder / "policer.py").write_text(_POLICER, encoding="utf-8")
    (folder / "line.toml").write_text(text, encoding="utf-8")
    return quietly(lambda: redtail.run(folder / "line.toml", out=folder / "runs"))


def _agree(promised: Any, values: Any) -> bool:
    mean = sum(promised) / len(promised)
    if max(*promised, *values) - min(*promised, *values) < 0.002 * abs(mean) + 1e-9:
        return True  # no more apart than a fifth of a percent of the value
    return bool(stats.ttest_ind(promised, values, equal_var=False).pvalue > 0.001)


def test_what_is_uncertain_of_a_policer_is_told(out: Path) -> None:
    line = line_of(provider="policer")
    assert port_of(line) == 1e9
    told = " ".join(doubts.about_the_port(line))
    assert "125 kB pass at once" in told
    assert "The port is assumed to have 1 Gbit/s" in told
    assert "is also the rate of a port" not in told
    told = " ".join(doubts.about_the_port(line_of()))
    assert "--provider policer simulates the other" in told


@pytest.mark.parametrize(
    ("given", "burst"),
    [
        ({"provider": "policer"}, 125e3),
        ({"provider": "policer:50kB"}, 50e3),
        ({"provider": "policer:250 ms"}, 3.125e6),
        ({"provider": "buffer"}, None),
    ],
)
def test_a_burst_is_a_size_or_a_time(given: dict[str, str], burst: float | None) -> None:
    found = line_of(**given).burst_bytes
    assert found == (None if burst is None else (burst, burst))


def test_a_small_contract_has_a_burst_of_two_packets() -> None:
    line = given_line("500kbit", "500kbit", "30ms", "ethernet", "web", 1, provider="policer")
    assert line.burst_bytes == (LEAST_BURST, LEAST_BURST)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"provider": "shaper"}, 'provider = "shaper" is none; accepted: buffer, policer, or '),
        ({"provider": "buffer:1 ms"}, 'provider = "buffer:1 ms" is none; accepted: buffer, '),
        ({"provider": "policer:x"}, 'provider = "policer:x": "x"'),
        ({"provider": "policer:5 Mbit/s"}, 'provider = "policer:5 Mbit/s" has neither a size nor'),
        ({"provider": "policer:1 B"}, 'provider = "policer:1 B" has no burst of a policer; accep'),
        ({"provider": "policer:11 s"}, 'provider = "policer:11 s" has no burst of a policer; acc'),
        (
            {"provider": "policer", "port_rate": "100mbit"},
            'provider = "policer" needs a port that is faster than the line, and port-rate = "100m',
        ),
        ({"port_rate": "1"}, 'port-rate = "1": '),
        ({"rates": "contract"}, 'rates = "contract" is none; accepted: line, speed-test'),
    ],
    ids=str,
)
def test_what_makes_no_sense_of_a_sold_line_is_refused(
    given: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(redtail.SpecError) as refused:
        line_of(**given)
    assert str(refused.value).startswith(message)
    options = [
        part for key, value in given.items() for part in (f"--{key.replace('_', '-')}", value)
    ]
    base = ["--down", "100mbit", "--up", "100mbit", "--rtt", "30ms", "--use", "calls"]
    done = runner.invoke(app, ["advise", *base, *options, "--out", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_names_of_providers_and_rates_are_those_of_the_options() -> None:
    plain = given_line("1mbit", "1mbit", "30ms", "fibre", "web", 1)
    for provider in PROVIDERS:
        for rates in RATES:
            assert as_sold(plain, None, provider, rates).up_bps >= plain.up_bps


# Times that a line needs.

FAR = Line(50e6, 10e6, 0.6, "docsis", ("calls", "web", "backup"), 3)


def test_a_far_line_is_simulated_until_it_is_full() -> None:
    """On 600 ms, 13 s of which 8 are measured do not show what queues do; these times do."""
    wanted = simulated(FAR, ["fq-codel"], EFFORTS["quick"])
    assert wanted.measured_s >= ROUND_TRIPS * 0.6
    assert wanted.warmup_s > 2 * WARMUP_S
    usual = simulated(dataclasses.replace(FAR, rtt_s=0.03), ["fq-codel"], EFFORTS["quick"])
    assert (usual.warmup_s, usual.measured_s, usual.divisor) == (5.0, 8.0, 1.0)


def test_times_grow_with_round_trip_and_rate_and_pages() -> None:
    flows: Any = {"down": 4, "up": 2}
    far = needed(FAR, flows, pages=False)
    near = needed(dataclasses.replace(FAR, rtt_s=0.3), flows, pages=False)
    slow = needed(dataclasses.replace(FAR, down_bps=5e6, up_bps=1e6), flows, pages=False)
    assert near.warmup_s < far.warmup_s
    assert slow.warmup_s < far.warmup_s
    modem = Line(0.5e6, 0.2e6, 0.05, "adsl", ("web",), 1)
    assert needed(modem, flows, pages=True).measured_s >= PAGES * PAGE_B * 8 / 0.5e6
    assert needed(modem, flows, pages=False).measured_s < 10


def test_a_load_that_does_not_fill_the_line_tests_nothing_and_is_told(out: Path) -> None:
    """The issue's satellite, as it was simulated before: its senders are still in slow start."""
    wanted = simulated(FAR, ["fq-codel"], EFFORTS["quick"])
    # Of the upload, and so short that nobody has sent as much as the line carries.
    short = dataclasses.replace(wanted, line=FAR, divisor=1.0, warmup_s=1.0, measured_s=2.0)
    text = experiment_text(short, "short", [])
    results = quietly(lambda: redtail.run(redtail.Toml(text), out=out))
    (case,) = (
        each
        for each in results.cases
        if each.labels["case.name"] == "one backup" and each.labels["chain.hop2.queue"] == AS_IT_IS
    )
    assert not filled(case, "up", short, short.up_bps)
    found = Advice(
        line=FAR,
        recorded=None,
        objective=redtail.lines.OBJECTIVES["calls"],
        candidates=wanted.candidates,
        wanted=short,
        results=results,
        text=text,
    )
    assert ("one backup", "up") in found.not_filled
    assert not found.tested
    said = " ".join(found.to_text().split())
    assert "These simulations do not rank queues: no load has filled the line" in said
    assert "Set FQ-CoDel" not in said
    assert any("one backup: up" in text for text in found.uncertain)


def test_a_satellite_is_full_and_its_queue_is_told_from_the_modem(out: Path) -> None:
    line = Line(5e6, 1e6, 0.6, "docsis", ("calls", "backup"), 1)
    found = advised(line, out, "fq-codel,codel")
    assert found.not_filled == ()
    assert found.tested
    as_it_is = found.expects("one backup", AS_IT_IS).measures["call_up"]
    fair = found.expects("one backup", "FQ-CoDel").measures["call_up"]
    # 300 ms are the way; the buffer holds 200 more, and FQ-CoDel a packet of 12 ms.
    assert as_it_is.mean > 0.45
    assert fair.mean < 0.34


def test_pages_that_do_not_finish_are_a_bound(out: Path) -> None:
    line = Line(1e6, 0.25e6, 0.05, "adsl", ("web", "backup"), 3)
    found = advised(line, out)
    bounds = [each for each in found.expected if each.at_least]
    assert bounds
    for each in bounds:
        values = found.values[each.load, each.label]["page"]
        assert max(values) >= found.wanted.measured_s
        assert each.as_dict()["at_least"] == ["page"]
    # Two bounds do not tell how the queue compares with the line as it is.
    assert "pages" in found.ranking[0].at_least and "pages" in found.as_it_is.at_least
    assert found.as_it_is.against_first["pages"].verdict in ("no value", "undecided")
    text = found.to_text(150)
    assert "≥ " in text
    assert "≥: at least; in some simulations most pages took longer" in " ".join(text.split())


# Rates that change.


@pytest.mark.parametrize("access", ["lte", "satellite"])
def test_a_line_whose_rate_changes_gets_a_condition_and_half_the_rate_first(
    access: str, out: Path
) -> None:
    assert ACCESS[access].varies
    line = Line(10e6, 2e6, 0.05, access, ("calls", "backup"), 1)
    found = advised(line, out)
    text = " ".join(found.to_text().split())
    places = [
        text.index(each)
        for each in (
            "At half its rate (5 Mbit/s and 1 Mbit/s)",
            "If the rates stay at 10 Mbit/s and 2 Mbit/s: set FQ-CoDel",
            "delay of calls' packets under the worst load",
        )
    ]
    assert places == sorted(places)
    assert "it promises nothing for the line" in text
    data = found.to_dict()
    assert data["holds_if"] == "the rates stay at 10 Mbit/s and 2 Mbit/s"
    # What stands there is what the runs at half the rate have.
    after = found.expects("everything" + HALF, "FQ-CoDel").measures
    worst = max(after["call_down"].mean, after["call_up"].mean)
    assert f"take {1e3 * worst:.0f}"[:7] in text
    assert any("A recording tells" in each for each in found.uncertain)
    assert "iperf3 -c SERVER" in text


def test_a_line_whose_rate_stays_has_no_condition(out: Path) -> None:
    found = advised(Line(10e6, 2e6, 0.05, "docsis", ("calls", "backup"), 1), out)
    assert found.to_dict()["holds_if"] is None
    assert "promises nothing" not in " ".join(found.to_text().split())


# What is not known.


def test_the_access_may_be_left_out_and_that_is_told(out: Path) -> None:
    options = ["--down", "10mbit", "--up", "2mbit", "--rtt", "20ms", "--use", "calls,backup"]
    done = runner.invoke(
        app,
        [
            "advise",
            *options,
            "--queues",
            "fq-codel",
            "--effort",
            "quick",
            "--json",
            "--out",
            str(out),
        ],
    )
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["line"]["access"] == "unknown"
    unknown = ACCESS["unknown"].overhead
    assert found["up"]["overhead"]["packet_bytes"] == unknown.packet_bytes
    for each in ACCESS.values():
        for size in (40, 600, 1492, 1500):
            assert wire_bytes(unknown, size) >= wire_bytes(each.overhead, size)
    assert any("access technology is not known (--access)" in text for text in found["uncertain"])
    api = redtail.advise(
        *("10 Mbit/s", "2 Mbit/s", "20 ms"),
        use="calls,backup",
        queues="fq-codel",
        effort="quick",
        out=out,
    )
    assert json.loads(api.to_json()) == found


def test_windows_that_cannot_fill_a_fast_line_are_told() -> None:
    line = Line(10e9, 10e9, 0.05, "fibre", ("backup",), 1)
    wanted = simulated(line, ["fq-codel"], EFFORTS["quick"])
    told = list(doubts.about_the_windows(line, wanted))
    assert len(told) == 2
    assert "4 connections of Linux carry at most 2.013 Gbit/s" in told[0]
    near = dataclasses.replace(line, rtt_s=0.002)
    assert not list(doubts.about_the_windows(near, simulated(near, ["pie"], EFFORTS["quick"])))


def test_windows_are_divided_as_the_rates_are(out: Path) -> None:
    """What a connection has under way makes a queue of the same time on the divided line.

    Two connections of 3 MiB on 400 Mbit/s and 10 ms: they have 126 ms of the line under way, so
    that 116 ms wait, and the buffer of 1 s is never full.
    """
    line = Line(400e6, 400e6, 0.01, "lte", ("calls", "backup"), 1)
    found = advised(line, out, buffer="1 s")
    assert found.wanted.divisor > 5
    alone = found.expects("one backup", AS_IT_IS).measures["call_up"]
    assert alone.mean == pytest.approx(0.005 + 2 * (3 << 20) * 8 / 400e6 - 0.01, rel=0.1)
    plan = redtail.check(redtail.Toml(found.text))
    assert not plan.warnings
    fast = dataclasses.replace(line, down_bps=90e9, up_bps=90e9)
    wanted = simulated(fast, ["pie"], EFFORTS["quick"])
    redtail.check(redtail.Toml(experiment_text(wanted, "fast", [])))
    assert list(doubts.about_the_windows(fast, wanted))


def test_a_buffer_of_few_packets_is_told() -> None:
    line = Line(1e6, 0.25e6, 0.05, "adsl", ("calls",), 1)
    _, told = doubts.about_the_buffers(simulated(line, ["pie"], EFFORTS["quick"]))
    assert "The modem's buffer of 200 ms holds 3.6 full packets" in told
