"""Files of `redtail measure`: what they tell of lines of known truth, and what is refused.

The line has 20 Mbit/s down, 5 Mbit/s up and a base round trip of 30 ms. What a measurement of it
would have is computed here.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from redtail import lines
from redtail.errors import SpecError
from redtail.lines.recordings import measurement
from redtail.lines.recordings.measurement import Measurement, Phase, Transfer

DOWN, UP, BASE_S = 20e6, 5e6, 0.030

PHASES = (
    Phase("idle", 0, 5),
    Phase("down", 5, 15),
    Phase("up", 17, 27),
    Phase("both", 29, 39),
)

RATES = {"down": DOWN, "up": UP}
WAITS = {"idle": 0.0, "down": 0.100, "up": 0.160, "both": 0.260}


def made(waits: bool = True, phases: tuple[Phase, ...] = PHASES, streams: int = 4) -> Measurement:
    """The measurement of a line with tail drop: each loss of a probe is at a full buffer."""
    sent = np.arange(0, 40, 0.02)
    rtt = BASE_S + 0.0002 * (np.arange(len(sent)) % 4)
    for phase in phases:
        inside = (sent >= phase.from_s) & (sent < phase.to_s)
        level = np.minimum(0.6 + 0.8 * (np.arange(len(sent)) % 50) / 50, 1.0)
        if waits:
            rtt = np.where(inside, rtt + WAITS[phase.name] * level, rtt)
            lost = inside & (np.arange(len(sent)) % 50 == 40) & (phase.name != "idle")
            rtt[lost] = np.nan
    transfers = []
    for phase in phases:
        for name in ("down", "up"):
            if phase.name not in (name, "both"):
                continue
            at = np.arange(phase.from_s, phase.to_s + 0.05, 0.1)
            total = RATES[name] / 8 * 1448 / 1500 * (at - at[0]) / streams
            transfers += [Transfer(name, at, total.astype(int))] * streams
    return Measurement(
        "0.1.0", "2026-11-28T12:00:00Z", "192.0.2.1", "udp", phases, sent, rtt,
        transfers=tuple(transfers), notes=("TCP: cubic",),
    )  # fmt: skip


def written(folder: Path, text: str, name: str = "home.json") -> Path:
    file = folder / name
    if name.endswith(".gz"):
        file.write_bytes(gzip.compress(text.encode()))
    else:
        file.write_text(text)
    return file


@pytest.mark.parametrize("name", ["home.json", "home.json.gz"])
def test_a_measurement_tells_the_line(tmp_path: Path, name: str) -> None:
    found = lines.estimate(written(tmp_path, made().to_text(), name))
    assert found.form == "measurement"
    assert found.rtt.value == pytest.approx(BASE_S, rel=0.01)
    for way, bps, wait in ((found.down, DOWN, 0.100), (found.up, UP, 0.160)):
        assert way.rate.value == pytest.approx(bps, rel=0.02) and not way.rate.bound
        assert way.wait.value == pytest.approx(wait, rel=0.05) and not way.wait.bound
        assert way.buffer.value == pytest.approx(wait * bps / 8, rel=0.07)
    assert [(flows.direction, flows.count) for flows in found.flows] == [("down", 4), ("up", 4)]
    assert "TCP: cubic" in found.cautions


def test_without_a_standing_queue_a_rate_is_a_lower_bound(tmp_path: Path) -> None:
    found = lines.estimate(written(tmp_path, made(waits=False).to_text()))
    assert found.down.rate.bound == found.up.rate.bound == "at least"


def test_where_both_directions_are_loaded_pings_do_not_tell_which_is_full(tmp_path: Path) -> None:
    both = made(phases=(Phase("idle", 0, 5), Phase("both", 29, 39)))
    found = lines.estimate(written(tmp_path, both.to_text()))
    assert found.down.rate.bound == "at least" and "other direction" in found.down.rate.basis
    assert not found.down.wait.known


def test_between_two_reports_of_a_transfer_nothing_is_known(tmp_path: Path) -> None:
    measured = made()
    ends = tuple(
        Transfer(each.direction, each.t_s[[0, -1]], each.total_b[[0, -1]])
        for each in measured.transfers
    )
    text = Measurement(**{**vars(measured), "transfers": ends}).to_text()
    found = lines.estimate(written(tmp_path, text))
    assert found.down.rate.bound == "at least" and "8 intervals are" in found.down.rate.basis


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    sent = np.array([0.0, 1.0])
    one_way = (sent, np.array([-3.5, 2.0]), np.array([3.6, np.nan]))
    first = Measurement(**{**vars(made()), "one_way": one_way})
    text = first.to_text()
    again = measurement.parsed(json.loads(text), len(text))
    assert again.to_text() == text
    np.testing.assert_array_equal(again.one_way[1], one_way[1])
    assert again.phases == first.phases and again.duration_s == pytest.approx(39.98)


def changed(**more: Any) -> str:
    return json.dumps({**json.loads(made().to_text()), **more})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (changed(version=2), '"version" is 2; accepted: 1'),
        (changed(begun="yesterday"), '"begun" is "yesterday"; accepted: a time of RFC 3339'),
        (changed(more=1), 'there is a key "more"; accepted: "format"'),
        (changed(server=5), '"server" is 5; accepted: a text'),
        (changed(server="x" * 2000), '"server" has 2000 characters'),
        (changed(phases={}), '"phases" is an object; accepted: a list'),
        (
            changed(phases=[{"name": "rest", "from_s": 0, "to_s": 1}]),
            '"phases": value 1: "name" is "rest"; accepted: "idle", "down", "up", "both"',
        ),
        (
            changed(phases=[{"name": "idle", "from_s": 5, "to_s": 1}]),
            '"phases": value 1 is from 5 to 1 s',
        ),
        (
            changed(phases=[{"name": "idle", "from_s": None, "to_s": 1}]),
            '"phases": value 1 is from nan to 1 s',
        ),
        (changed(delays={"sent_s": [1]}), '"delays": there is no "rtt_s"'),
        (
            changed(delays={"sent_s": [1, 2], "rtt_s": [1]}),
            '"delays": "rtt_s" has 1 values; accepted: 2, as "sent_s"',
        ),
        (
            changed(delays={"sent_s": [2, 1], "rtt_s": [1, 1]}),
            '"delays": "sent_s": value 2 is 1; accepted: numbers, none less',
        ),
        (
            changed(delays={"sent_s": [1, 2], "rtt_s": [1, -1]}),
            '"delays": "rtt_s": value 2 is -1; accepted: 0 to 3600, or null',
        ),
        (
            changed(transfers=[{"direction": "left", "t_s": [], "bytes": [], "protocol": "tcp"}]),
            '"transfers": value 1: "direction" is "left"; accepted: "down", "up"',
        ),
        (
            changed(
                transfers=[{"direction": "up", "t_s": [0, 1], "bytes": [5, 4], "protocol": "tcp"}]
            ),
            '"transfers": value 1: "bytes": value 2 is 4',
        ),
        (changed(notes=[1]), '"notes": value 1 is 1; accepted: a text'),
        (
            changed(delays={"sent_s": [], "rtt_s": []}, transfers=[]),
            "neither transfers nor 10 probes",
        ),
    ],
)
def test_what_is_wrong_is_named_with_file_key_and_what_is_accepted(
    tmp_path: Path, text: str, told: str
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(SpecError) as error:
        lines.estimate(file)
    assert str(error.value).startswith(f"{file}: ") and told in str(error.value)


def test_its_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = made().to_text()
    with pytest.raises(SpecError, match="--direction"):
        lines.estimate(written(tmp_path, text), direction="up")
    monkeypatch.setattr(measurement, "MOST_NUMBERS", 1000)
    with pytest.raises(SpecError, match=r"its lists have \d+ values; accepted: up to 1000"):
        lines.estimate(written(tmp_path, text))
    monkeypatch.setattr(measurement, "MOST_B", 1000)
    with pytest.raises(SpecError, match=r"has \d+ bytes; accepted: up to 1000"):
        lines.estimate(written(tmp_path, text, "home.json.gz"))
