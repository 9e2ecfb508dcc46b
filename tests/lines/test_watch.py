"""Queues of a router, watched: real outputs of tc, and lines of known truth."""

from __future__ import annotations

import json
import os
import stat
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from redtail.cli import app
from redtail.errors import RedtailError, SpecError
from redtail.lines.watch import commands, tc
from redtail.lines.watch.judge import READINGS, Judge
from redtail.lines.watch.rows import Row, reading, rows, shaper
from redtail.lines.watch.watching import Seen, Watch, watch_device

HERE = Path(__file__).parent / "tc"
LINUX: dict[str, str] = json.loads((HERE / "linux-6.1.json").read_text())
LIBREQOS: dict[str, str] = json.loads((HERE / "libreqos.json").read_text())

UP = {"lo": "up"}


def seen(kind: str, first: int = 1, last: int = 2, directions: dict[str, str] = UP) -> list[Row]:
    """What happened between two recorded outputs."""
    readings = []
    for number in (first, last):
        classes = LINUX.get(f"{kind}-class-{number}")
        readings.append(
            reading(
                float(number),
                tc.queues(LINUX[f"{kind}-qdisc-{number}"]),
                [each for each in tc.classes(classes, "lo") if each.kind == "htb"]
                if classes
                else [],
            )
        )
    return list(rows(readings[0], readings[1], directions))


def test_cake_tells_rates_delays_drops_and_marks_of_each_tin() -> None:
    found = {row.name: row for row in seen("cake")}
    assert list(found) == ["cake", "Bulk", "Best Effort", "Video", "Voice"]
    whole, tin = found["cake"], found["Best Effort"]
    # The outputs are a second apart by the shell's clock, and the machine was slower.
    assert whole.shaper_bps == 5e6 and whole.bps == 8 * (2_357_470 - 1_673_032)
    assert whole.shaped_bps > whole.bps, "overhead 18"
    assert tin.delay_how == "told" and tin.delay_s is not None and 0 < tin.delay_s < 1
    assert found["Bulk"].bps == 0 and found["Bulk"].delay_s is None
    assert whole.delay_s == tin.delay_s and whole.marks == tin.marks


def test_classes_of_htb_are_read_from_the_text_that_tc_prints_for_them() -> None:
    found = {row.name: row for row in seen("htb")}
    assert {"htb 1:1", "htb 1:10", "htb 1:20", "fq_codel in 1:20"} <= set(found)
    assert found["htb 1:20"].shaper_bps == found["htb 1:1"].shaper_bps == 5e6
    assert found["htb 1:10"].bps == 0 < found["htb 1:20"].bps
    assert found["htb 1:20"].backlog_packets == 2 and found["htb 1:20"].backlog_b == 13776
    estimated = found["htb 1:20"]
    assert estimated.delay_how == "backlog / rate"
    assert estimated.delay_s == pytest.approx(8 * 13776 / estimated.bps)
    chosen = shaper(list(found.values()), "up")
    assert chosen is not None and chosen.shaper_bps == 5e6
    as_json = [
        {"class": "htb", "handle": "1:20", "parent": "1:1", "rate": 500_000, "ceil": 625_000,
         "stats": {"bytes": 7, "packets": 1, "drops": 2, "backlog": 3, "qlen": 1}},
        {"class": "htb", "handle": "1:1", "root": True, "rate": 625_000, "ceil": 625_000,
         "bytes": 9},
    ]  # fmt: skip
    inner, root = tc.classes(json.dumps(as_json), "eth0")
    assert (inner.shaper_bps, inner.counts.drops, inner.counts.backlog_packets) == (5e6, 2, 1)
    assert root.parent == "" and root.counts.bytes == 9


@pytest.mark.parametrize(
    ("kind", "inner", "told"), [("tbf", "codel", True), ("pie", "pie", True), ("red", "red", False)]
)
def test_queues_in_a_tbf_tell_their_delay_if_they_know_it(
    kind: str, inner: str, told: bool
) -> None:
    found = {row.kind: row for row in seen(kind)}
    assert found["tbf"].shaper_bps == 5e6 and found[inner].shaper_bps is None
    assert (found[inner].delay_how == "told") is told
    assert found[inner].bps > 1e6


def test_what_is_redirected_to_an_ifb_is_the_way_down() -> None:
    assert tc.redirected(LINUX["ifb-filter"]) == "ifb4lo"
    found = seen("ifb", directions={"lo": "up", "ifb4lo": "down"})
    assert {(row.direction, row.kind) for row in found} == {("up", "cake"), ("down", "cake")}
    down = shaper(found, "down")
    assert down is not None and down.shaper_bps == 20e6


def test_queues_of_another_operator_are_read() -> None:
    (cake,) = tc.queues(LIBREQOS["cake"], "eth1")
    assert (cake.device, cake.parent, cake.shaper_bps) == ("eth1", "3:205", None)
    assert [name for name, _ in cake.tins] == ["Bulk", "Best Effort", "Video", "Voice"]
    assert dict(cake.tins)["Voice"].delay_s == pytest.approx(0.421103)
    assert cake.counts.marks == 10986 + 25
    (fq_codel,) = tc.queues(LIBREQOS["fq_codel"], "eth1")
    assert fq_codel.counts.packets == 8 and fq_codel.counts.delay_s is None


def test_rates_may_be_texts_and_unknown_keys_pass_by() -> None:
    told = [{"kind": "cake", "handle": "1:", "dev": "eth0", "root": True, "new": [1, {"a": 2}],
             "options": {"bandwidth": "9.5Mbit"}, "tins": [{}]}]  # fmt: skip
    (queue,) = tc.queues(json.dumps(told))
    assert queue.shaper_bps == 9.5e6 and queue.tins[0][0] == "Tin 0"


def test_counters_that_went_back_make_no_row() -> None:
    first = tc.queues(LINUX["tbf-qdisc-1"])
    later = tc.queues(LINUX["tbf-qdisc-2"])
    assert list(rows(reading(0.0, later, []), reading(1.0, first, []), UP)) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("qdisc noqueue 0: dev lo root refcnt 2", "accepted: JSON"),
        ('{"kind": "cake"}', "accepted: a list"),
        ("[3]", "value 1 is 3; accepted: an object"),
        ('[{"kind": "tbf"}]', '"dev" is null; accepted: a text'),
        ('[{"kind": "tbf", "dev": "a", "bytes": -1}]', '"bytes" is -1'),
        ('[{"kind": "tbf", "dev": "a", "bytes": "9"}]', '"bytes" is a text'),
        ('[{"kind": "tbf", "dev": "a", "options": [3]}]', '"options" is a list'),
        ('[{"kind": "cake", "dev": "a", "tins": 4}]', '"tins" is 4; accepted: a list'),
        ('[{"kind": "cake", "dev": "a", "tins": [1]}]', '"tins": value 1 is 1'),
        (json.dumps([{"kind": "cake", "dev": "a", "tins": [{}] * 17}]), "accepted: up to 16"),
        (json.dumps([{"kind": "x" * 65, "dev": "a"}]), "accepted: a text of up to 64"),
        ("[" * 100_000, "deeper than"),
        (" " * (tc.MOST_B + 1), "accepted: up to 4000000"),
        (json.dumps([{}] * (tc.MOST_QUEUES + 1)), "accepted: up to 10000"),
    ],
)
def test_an_output_that_is_no_output_of_tc_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        tc.queues(text)
    assert says in str(caught.value)


# Whether the shaper is above the line.


def row(
    direction: str, share: float, *, holds: bool, delay_s: float = 0.0, rate: float = 10e6
) -> Row:
    return Row(
        direction, "eth0", "cake", "cake", share * rate, delay_s, "told", 0, 0,
        15_000 if holds else 0, 10 if holds else 0, rate, share * rate,
    )  # fmt: skip


def judged(
    direction: str,
    share: float,
    *,
    holds: bool,
    pings_ms: float | None = None,
    idle: int = 5,
    delay_s: float = 0.0,
    other: float | None = 0.03,
    ingress: float | None = None,
) -> Any:
    """A verdict after some readings without load, with round trips of 20 ms, and then some with."""
    judge = Judge(pings=pings_ms is not None)
    way_back = "up" if direction == "down" else "down"
    for number in range(idle + READINGS):
        quiet = number < idle
        found = [
            row(direction, 0.0 if quiet else share, holds=holds and not quiet, delay_s=delay_s)
        ]
        if other is not None:
            found.append(row(way_back, 0.0 if quiet else other, holds=False))
        if ingress is not None:
            there = row(way_back, 0.0 if quiet else ingress, holds=False)
            found.append(replace(there, shaper_bps=None, kind="ingress"))
        pings = [] if pings_ms is None else [0.020 if quiet else pings_ms / 1e3]
        judge.add(found, pings)
    return judge.verdict(direction)


@pytest.mark.parametrize(
    ("given", "state", "says"),
    [
        # 10 Mbit/s in a line that has more: packets wait in the shaper alone.
        ({"direction": "down", "share": 1.0, "holds": True}, "not above", "brought as much"),
        ({"direction": "up", "share": 1.0, "holds": True, "pings_ms": 22}, "not above", "behind"),
        # A single queue: pings wait in the shaper itself.
        ({"direction": "up", "share": 1.0, "holds": True, "pings_ms": 70, "delay_s": 0.05},
         "not above", "behind it"),
        # A modem takes anything; only pings tell.
        ({"direction": "up", "share": 1.0, "holds": True}, "undecided", "--ping HOST"),
        ({"direction": "up", "share": 1.0, "holds": True, "pings_ms": 200}, "above", "all the"),
        # A line that is slower than the shaper.
        ({"direction": "up", "share": 0.8, "holds": False, "pings_ms": 300}, "above", "in the"),
        ({"direction": "down", "share": 0.8, "holds": False, "pings_ms": 300}, "above", "80 %"),
        # Bursts of a line that is a little slower than the shaper wait in it for a moment.
        ({"direction": "down", "share": 0.94, "holds": True, "pings_ms": 90}, "above", "94 %"),
        ({"direction": "down", "share": 1.0, "holds": True, "pings_ms": 90}, "undecided",
         "a lower rate tells"),
        # Without pings, or with a server that is slower than all, nothing can be told.
        ({"direction": "down", "share": 0.8, "holds": False}, "undecided", "--ping HOST"),
        ({"direction": "down", "share": 0.8, "holds": False, "pings_ms": 21}, "undecided",
         "the senders are slower"),
        ({"direction": "up", "share": 0.0, "holds": False, "pings_ms": 21}, "undecided",
         "load the line"),
        # Pings wait in both directions.
        ({"direction": "up", "share": 0.8, "holds": False, "pings_ms": 300, "other": 0.9},
         "undecided", "the way down carries a load"),
        ({"direction": "up", "share": 0.8, "holds": False, "pings_ms": 300, "other": None},
         "undecided", "nothing tells what the way down carries"),
        # What comes in is counted, and not shaped: acknowledgements, or a download.
        ({"direction": "up", "share": 0.8, "holds": False, "pings_ms": 300, "other": None,
          "ingress": 0.03}, "above", "in the"),
        ({"direction": "up", "share": 0.8, "holds": False, "pings_ms": 300, "other": None,
          "ingress": 0.9}, "undecided", "the way down carries a load"),
        # The line was never idle: what seems to be no wait may be a standing one.
        ({"direction": "up", "share": 1.0, "holds": True, "pings_ms": 80, "idle": 0},
         "undecided", "no ping passed without load"),
    ],
)  # fmt: skip
def test_a_shaper_is_above_the_line_or_not_or_nothing_tells(
    given: dict[str, Any], state: str, says: str
) -> None:
    found = judged(**given)
    assert (found.state, says in found.why) == (state, True), found


def test_a_verdict_needs_a_shaper_and_some_readings() -> None:
    judge = Judge()
    judge.add([], [])
    assert "no shaper" in judge.verdict("up").why
    judge.add([row("up", 1.0, holds=True)], [])
    assert f"2 of {READINGS} readings" in judge.verdict("up").why


# Readings by commands.


class Recorded:
    """`tc` as it was recorded: what it printed, output by output."""

    def __init__(self, kind: str) -> None:
        self.kind, self.number = kind, 0

    def __call__(self, *words: str) -> str:
        if "qdisc" in words:
            self.number = min(self.number + 1, 3)
            return LINUX[f"{self.kind}-qdisc-{self.number}"]
        return LINUX[f"{self.kind}-class-{self.number}"]


def ticks() -> Iterator[float]:
    at = 0.0
    while True:
        yield at
        at += 1.0


def test_a_device_is_watched_reading_by_reading() -> None:
    clock = ticks()
    watched = Watch("lo", Recorded("htb"), None)
    found: list[Seen] = list(watched.seen(count=2, clock=lambda: next(clock), sleep=lambda _: None))
    assert len(found) == 2
    first = found[0]
    assert first.verdicts["up"].state == "undecided"
    assert any("htb 1:20" in line for line in first.lines())
    assert len(first.cells()[0]) == len(watched.heads)
    assert json.loads(json.dumps(first.to_dict(), allow_nan=False))["rows"]


def script(folder: Path, name: str, body: str) -> Path:
    """An executable that is found before all others."""
    file = folder / name
    file.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def found_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


TC = """
    import json, os, sys
    kept = json.load(open({file!r}))
    words = sys.argv[1:]
    if "filter" in words:
        print(kept["ifb-filter"])
    else:
        number = os.path.getsize({count!r}) if os.path.exists({count!r}) else 0
        with open({count!r}, "a") as file:
            file.write("x")
        print(kept[f"ifb-qdisc-{{min(number // 4 + 1, 3)}}"])
"""


def test_the_command_reads_tc_by_another_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = TC.format(file=str(HERE / "linux-6.1.json"), count=str(tmp_path / "count"))
    script(tmp_path, "tc", body)
    script(
        tmp_path,
        "far",
        """
        import os, sys
        with open(os.path.join(os.path.dirname(__file__), "words"), "w") as file:
            file.write(repr(sys.argv[1:]))
        os.execvp(sys.argv[2], sys.argv[2:])
        """,
    )
    found_first(tmp_path, monkeypatch)
    words = ["watch", "lo", "--by", "far 'a host; rm -rf x'", "--count", "2", "--every", "0.1 s"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0, ran.output
    assert "down ifb4lo cake:" in ran.stdout and "up lo cake:" in ran.stdout
    assert "shaper down: undecided: 2 of 10 readings so far" in ran.stdout
    assert (tmp_path / "words").read_text().startswith("['a host; rm -rf x', 'tc', '-s', '-j'")
    table = CliRunner().invoke(app, [*words[:-4], "--count", "1", "--format", "csv"])
    assert table.stdout.splitlines()[0].startswith('"time (s)","direction","device"')
    assert len(table.stdout.splitlines()) > 1
    as_json = CliRunner().invoke(app, [*words[:-4], "--count", "1", "--format", "json"])
    assert json.loads(as_json.stdout)["shapers"]["up"]["state"] == "undecided"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("import sys; sys.exit('Cannot find device')", "Cannot find device"),
        ("import time; time.sleep(600)", "took longer than"),
        ("print('[' + '1,' * 3_000_000 + '1]')", "printed more than 4 MB"),
        ("print('[{\"kind\": 3, \"dev\": \"lo\"}]')", '"kind" is 3'),
    ],
)  # fmt: skip
def test_a_tc_that_misbehaves_ends_with_an_error(
    body: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, "tc", body)
    found_first(tmp_path, monkeypatch)
    monkeypatch.setattr(commands, "LONGEST_S", 2.0 if "sleep" in body else 60.0)
    with pytest.raises(RedtailError, match=says):
        list(watch_device("lo", ifb="ifb0").seen(count=1))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["watch", "eth0; reboot"], "accepted: the name of a network device"),
        (["watch", "-n"], "No such option"),
        (["watch", "eth0", "--ifb", "a b"], "--ifb a b: accepted"),
        (["watch", "eth0", "--by", "'"], "No closing quotation"),
        (["watch", "eth0", "--by", ""], "it has no words"),
        (["watch", "eth0", "--rtt", "3 ms"], "accepted: with --ping HOST"),
        (["watch", "eth0", "--by", "/nowhere/ssh"], "cannot be started"),
    ],
)
def test_words_that_make_no_sense_are_refused(words: Sequence[str], says: str) -> None:
    ran = CliRunner().invoke(app, list(words))
    assert ran.exit_code != 0 and says in ran.output.replace("\n", " ")


def test_a_host_to_ping_is_a_host() -> None:
    for text in ("-f", "a b", "$(reboot)", "x" * 300):
        with pytest.raises(SpecError, match="--ping"):
            commands.Ping(text)


def test_pings_are_taken_reading_by_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(
        tmp_path,
        "ping",
        """
        import sys
        for n in range(1, 4):
            print(f"64 bytes from 192.0.2.1: icmp_seq={n} ttl=57 time={10 * n}.5 ms", flush=True)
        print("ping: gone", file=sys.stderr, flush=True)
        """,
    )
    found_first(tmp_path, monkeypatch)
    with commands.Ping("192.0.2.1") as pings:
        pings.process.wait(timeout=600)
        pings.thread.join(600)
        assert pings.take() == [0.0105, 0.0205, 0.0305]
        with pytest.raises(RedtailError, match="ping: gone"):
            pings.take()
