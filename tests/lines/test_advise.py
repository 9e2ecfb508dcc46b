"""Advice for a line: parameters, ranking, a rate that drops, and what is refused."""

from __future__ import annotations

import html
import json
import math
import signal
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import redtail
from redtail import page
from redtail.analysis.case import CaseResult
from redtail.cli import app
from redtail.experiment import FORMAT
from redtail.lines.advice import objectives
from redtail.lines.advice.access import ACCESS, carried, own_port, shaper, wire_bytes
from redtail.lines.advice.candidates import QUEUES, candidate
from redtail.lines.advice.loads import USES, loads
from redtail.lines.advice.objectives import chosen
from redtail.lines.advice.report import parts_of
from redtail.lines.advice.simulated import AS_IT_IS, EFFORTS, HALF, experiment_text, simulated
from redtail.lines.line import Line, Recorded
from redtail.scenario import quantity
from redtail.store.folders import StoredRun

runner = CliRunner()

HOME = Line(50e6, 10e6, 0.03, "docsis", ("calls", "web", "backup"), 4)
FLOWS: Any = {"down": 4, "up": 4}

# A line on which a simulated second costs little.
SMALL = ("--down", "10mbit", "--up", "2mbit", "--rtt", "20ms", "--access", "docsis")
COMMAND = (
    *("advise", *SMALL, "--use", "calls,backup", "--queues", "tail-drop,fq-codel,codel"),
    *("--effort", "quick"),
)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("advice")


@pytest.fixture(scope="module")
def advice(out: Path) -> redtail.Advice:
    return redtail.advise(
        *("10 Mbit/s", "2 Mbit/s", "20 ms"),
        access="docsis",
        use=["calls", "backup"],
        queues=["tail-drop", "fq-codel", "codel"],
        effort="quick",
        out=out,
    )


def test_a_fair_queue_is_advised_for_calls_beside_a_backup(advice: redtail.Advice) -> None:
    assert advice.ranking[0].key == "fq-codel"
    assert (advice.down.queue["kind"], advice.up.queue["kind"]) == ("fq-codel", "fq-codel")
    by_key = {each.key: each for each in advice.ranking}
    worse = by_key["tail-drop"].against_first["calls"]
    assert worse.difference.mean > 0.01
    assert advice.helps
    assert advice.gain is not None
    assert (advice.gain.aim.name, advice.gain.verdict) == ("calls", "worse")


def test_without_a_queue_of_the_router_a_backup_fills_the_buffer_of_the_modem(
    advice: redtail.Advice,
) -> None:
    fair = advice.expects("one backup", "FQ-CoDel").measures
    as_it_is = advice.expects("one backup", AS_IT_IS).measures
    # 10 ms are the way itself, 6 ms a full packet at 2 Mbit/s; the buffer holds 200 ms.
    assert fair["call_up"].mean < 0.04
    assert 0.15 < as_it_is["call_up"].mean < 0.25
    # The shaper keeps 5 % of the line free.
    assert 0.04 < fair["lost_up"].mean < 0.2
    assert as_it_is["lost_up"].mean < 0.05
    assert math.isnan(fair["lost_down"].mean)  # nobody fills the line


def test_a_line_of_half_its_rate_queues_in_its_own_buffers(advice: redtail.Advice) -> None:
    before, after, without = advice.halved
    assert (before.label, after.label, without.label) == ("FQ-CoDel", "FQ-CoDel", AS_IT_IS)
    assert after.load == before.load + HALF
    assert before.measures["buffer_up"].mean < 0.02
    # What takes 200 ms at the full rate takes 400 ms at half of it, in spite of the shaper.
    for direction in ("down", "up"):
        assert 0.3 < after.measures[f"buffer_{direction}"].mean < 0.42
        assert after.measures[f"call_{direction}"].mean > 0.3


def test_every_queue_is_compared_with_the_first_replication_by_replication(
    advice: redtail.Advice,
) -> None:
    first, *others = advice.ranking
    assert first.against_first == {}
    assert [aim.name for aim in advice.shown_aims] == ["calls", "throughput"]

    def values(aim: objectives.Objective, label: str) -> list[float]:
        return aim.worst([advice.values[load.name, label] for load in advice.wanted.loads])

    for each in (*others, advice.as_it_is):
        for aim in advice.shown_aims:
            found = each.against_first[aim.name]
            pairs = zip(values(aim, each.label), values(aim, first.label), strict=True)
            expected = [a - b for a, b in pairs]
            assert found.difference.mean == pytest.approx(sum(expected) / len(expected))
            assert found.margin == aim.margin.of(0.0)
    # What loses over 10 % of the line more than the best one leaves before all else.
    for step in advice.choice.steps[1:]:
        assert step.aim.name != "idle"


def test_the_same_line_again_makes_no_run(advice: redtail.Advice, out: Path) -> None:
    seen: list[redtail.Progress] = []
    again = redtail.advise_on(
        advice.line,
        queues="tail-drop,fq-codel,codel",
        effort="quick",
        out=out,
        progress=seen.append,
    )
    assert seen[-1].reused == seen[-1].total == len(again.results.cases) * 3
    assert again.to_json() == advice.to_json()


def test_an_objective_that_every_queue_makes_worse_is_answered_so(
    advice: redtail.Advice, out: Path
) -> None:
    found = redtail.advise_on(
        advice.line, queues="tail-drop", objective="throughput", effort="quick", out=out
    )
    assert [aim.name for aim in found.aims] == ["throughput", "calls"]
    # The shaper takes 5 % of the line, and the queue is too short for it; calls are better off.
    assert found.as_it_is.against_first["calls"].verdict == "worse"
    assert found.gain is not None
    assert (found.gain.aim.name, found.gain.verdict) == ("throughput", "better")
    assert not found.helps
    text = " ".join(found.to_text().split())
    assert found.verdict == "nothing"
    assert "Nothing in the router helps: the line as it is has throughput lost under" in text
    assert "Leave the line as it is" not in text  # calls are better off


def test_the_saved_file_repeats_the_simulations(
    advice: redtail.Advice, out: Path, tmp_path: Path
) -> None:
    file = advice.save(tmp_path / "line.toml")
    assert not redtail.check(file).warnings
    assert tomllib.loads(file.read_text())["format"] == FORMAT
    seen: list[redtail.Progress] = []
    with pytest.warns(redtail.RedtailWarning) if advice.results.warnings else _nothing():
        results = redtail.run(file, out=out, progress=seen.append)
    assert seen[-1].reused == seen[-1].total
    assert [case.labels for case in results.cases] == [case.labels for case in advice.results.cases]
    assert advice.save(file) == file  # its own file is replaced
    file.write_text("name = 'mine'", encoding="utf-8")
    with pytest.raises(redtail.SpecError, match="the file exists, and redtail advise has not"):
        advice.save(file)
    assert file.read_text(encoding="utf-8") == "name = 'mine'"


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def test_the_command_answers_in_a_hundred_columns(
    advice: redtail.Advice, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    done = runner.invoke(app, [*COMMAND, "--out", str(out)])
    assert done.exit_code == 0, done.stderr
    text = done.stdout
    assert "Set FQ-CoDel in both directions, first of 3 queues" in text
    for wanted in ("9.5 Mbit/s", "1.9 Mbit/s", "tc-cake(8), docsis", "as it is", "drops to half"):
        assert wanted in text
    assert max(map(len, text.splitlines()[:-3])) <= 100
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_a_narrow_screen_gets_fewer_columns_and_whole_numbers(advice: redtail.Advice) -> None:
    narrow, wide = advice.to_text(60), advice.to_text(100)
    assert "a wider screen shows both" in " ".join(narrow.split())
    assert "a wider screen shows both" not in " ".join(wide.split())
    assert max(map(len, narrow.splitlines())) <= 60
    assert "…" not in narrow


def test_json_has_the_whole_answer(advice: redtail.Advice, out: Path, tmp_path: Path) -> None:
    file = tmp_path / "line.toml"
    done = runner.invoke(app, [*COMMAND, "--out", str(out), "--json", "--save", str(file)])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == json.loads(advice.to_json())
    assert found["queue"] == "fq-codel"
    assert found["up"]["shaper_bps"] == 1.9e6
    assert found["up"]["overhead"]["packet_bytes"] == 18
    assert {each["load"] for each in found["expected"]} == {
        *("evening", "one backup", "everything", "everything" + HALF)
    }
    assert set(found["candidates"]) == {"tail-drop", "fq-codel", "codel"}
    assert all(each["source"].endswith(".") for each in found["down"]["parameters"])
    assert file.read_text(encoding="utf-8") == advice.text


def test_an_interrupted_advice_keeps_its_runs(tmp_path: Path) -> None:
    def interrupt(state: redtail.Progress) -> None:
        if state.done == 4:
            signal.raise_signal(signal.SIGINT)

    line = Line(2e6, 1e6, 0.02, "ethernet", ("calls",), 1)
    with pytest.raises(redtail.Cancelled, match="the same command goes on from there") as caught:
        redtail.advise_on(
            line, queues="pie", effort="quick", out=tmp_path, jobs=1, progress=interrupt
        )
    seen: list[redtail.Progress] = []
    redtail.advise_on(line, queues="pie", effort="quick", out=tmp_path, progress=seen.append)
    assert seen[-1].reused == caught.value.kept >= 4


@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("direction", ["down", "up"])
def test_every_queue_has_a_source_for_each_parameter_and_is_accepted(
    kind: str, direction: str
) -> None:
    found = candidate(kind, HOME, FLOWS, port=False)
    setting = found.down if direction == "down" else found.up
    assert setting.shaped.queue["kind"] == kind
    assert set(setting.shaped.queue) == {"kind", *(key.name for key in setting.keys)}
    for key in setting.keys:
        assert key.source.endswith(".")
        assert key.text
    wanted = simulated(HOME, [kind], EFFORTS["quick"])
    plan = redtail.check(redtail.Toml(experiment_text(wanted, "one", [])))
    assert not plan.warnings


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("cake", "rtt"),
        ("fq-codel", "interval"),
        ("codel", "interval"),
        ("pie", "limit"),
        ("tail-drop", "limit"),
        ("adaptive-red", "limit"),
    ],
)
def test_parameters_follow_the_round_trip(kind: str, key: str) -> None:
    far = Line(50e6, 10e6, 0.6, "docsis", ("calls",), 1)
    near, distant = (candidate(kind, line, FLOWS, port=False).up for line in (HOME, far))
    small, _ = quantity(near.shaped.queue[key])
    large, _ = quantity(distant.shaped.queue[key])
    assert small is not None
    assert large is not None
    assert large > 2 * small


def test_overheads_are_those_of_tc_cake() -> None:
    # Ethernet's header and CRC, and at least its 64 bytes.
    assert [wire_bytes(ACCESS["docsis"].overhead, size) for size in (40, 1500)] == [64, 1518]
    # 1500 + 40 bytes are 33 cells with 48 bytes in each.
    assert wire_bytes(ACCESS["adsl"].overhead, 1500) == 33 * 53
    # 1492 + 30 bytes, and a byte for each 64 of them.
    assert wire_bytes(ACCESS["pppoe-vdsl2"].overhead, 1492) == 1522 + 24
    assert carried(ACCESS["lte"].overhead, 1e6) == 1e6


@pytest.mark.parametrize("access", ACCESS)
def test_a_shaper_is_below_the_line(access: str) -> None:
    line = Line(50e6, 10e6, 0.03, access, ("calls",), 1)
    for direction, rate in (("down", 50e6), ("up", 10e6)):
        found, why = shaper(line, direction, own_port(line))  # type: ignore[arg-type]
        assert found == pytest.approx(rate * ACCESS[access].share, abs=1e3)
        assert found is not None
        assert found < rate
        assert why.endswith(".")


def test_a_port_of_the_router_has_its_queue_without_a_shaper() -> None:
    line = Line(1e9, 1e9, 0.01, "ethernet", ("calls", "backup"), 1, port_bps=1e9)
    wanted = simulated(line, ["fq-codel"], EFFORTS["quick"])
    plan = redtail.check(redtail.Toml(experiment_text(wanted, "port", [])))
    case = json.loads(plan.example(0))["chain"]["hop"]
    assert "fq-codel" in json.dumps(case[0]["return"]["queue"])
    assert "htb" in json.dumps(case[1]["queue"])
    assert "fq-codel" not in json.dumps(case[1]["return"]["queue"])


def test_a_line_that_is_too_fast_is_simulated_smaller_and_the_answer_says_so() -> None:
    line = Line(1e9, 1e8, 0.01, "fibre", ("calls", "web"), 40)
    wanted = simulated(line, ["pie"], EFFORTS["quick"])
    assert wanted.divisor > 5
    assert wanted.line.down_bps == pytest.approx(1e9 / wanted.divisor)
    assert wanted.line.people == round(40 / wanted.divisor)
    assert wanted.line.rtt_s == 0.01
    assert simulated(HOME, ["pie"], EFFORTS["normal"]).divisor == 1


def test_loads_grow_and_have_what_was_named() -> None:
    everything = loads(tuple(USES), 4)
    assert [load.name for load in everything] == [
        *("evening", "one backup", "one download", "everything", "two people")
    ]
    assert [load.full for load in everything] == [
        *((), ("up",), ("down",), ("down", "up"), ("down", "up"))
    ]
    names = {group["name"] for group in everything[-2].groups}
    assert names == {
        *("calls-down", "calls-up", "web", "games-down", "games-up", "streaming"),
        *("download", "backup"),
    }
    assert [load.name for load in loads(("backup",), 1)] == ["evening", "one backup", "everything"]
    two = loads(("web",), 2)[-1]
    assert two.full == ("down",)
    assert [(group["name"], group["flows"]) for group in two.groups[-2:]] == [
        *(("one-down", 1), ("many-down", 8))
    ]
    without = loads(("web",), 1)
    assert [load.name for load in without] == ["evening", "one download", "everything"]
    assert all("backup" not in json.dumps(load.groups) for load in without)
    recorded = loads(("web",), 1, Recorded(up_flows=7))
    assert recorded[-1].full == ("up",)
    assert recorded[-1].groups[-1]["flows"] == 7


def test_what_was_recorded_of_the_buffers_takes_the_place_of_the_assumption(
    tmp_path: Path,
) -> None:
    found = redtail.advise_on(
        Line(2e6, 1e6, 0.02, "docsis", ("calls", "backup"), 1),
        recorded=Recorded(up_buffer_s=0.6, up_flows=3),
        queues="fq-codel",
        effort="quick",
        out=tmp_path,
    )
    assert found.wanted.buffers == (0.2, 0.6)
    as_it_is = found.expects("as recorded", AS_IT_IS).measures
    assert 0.4 < as_it_is["call_up"].mean < 0.7
    assert "as recorded" in found.uncertain[0]


def test_the_objective_is_the_first_that_the_uses_allow() -> None:
    assert chosen(None, ("backup", "web", "calls")).name == "calls"
    assert chosen(None, ("streaming", "games")).name == "games"
    assert chosen(None, ("backup", "web")).name == "pages"
    assert chosen(None, ("backup",)).name == "throughput"
    assert chosen("throughput", ("calls",)).name == "throughput"


GIVEN = {
    "down": "50mbit",
    "up": "10mbit",
    "rtt": "30ms",
    "access": "docsis",
    "use": "calls,backup",
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"down": "50"}, 'down = "50": '),
        ({"down": "50mbps"}, 'down = "50mbps": '),
        ({"up": "10kbit"}, 'up = "10kbit" is no rate of a line; accepted: from "200 kbit/s" to'),
        (
            {"down": "10gbit"},
            'down = "10gbit" is more than 200 times up; accepted: up to 200 times up',
        ),
        ({"up": "11gbit"}, 'up = "11gbit" is more than 200 times down; accepted: up to 200 times'),
        ({"rtt": "3 s"}, 'rtt = "3 s" is no round trip; accepted: from "100 us" to "2 s"'),
        ({"access": "cable"}, 'access = "cable" is no access technology; accepted: docsis ('),
        ({"use": "calls,tv"}, 'use = "tv" is no use of a line; accepted: calls ('),
        ({"use": ","}, 'use = "" names no use; accepted: calls ('),
        ({"people": 0}, "people = 0 is no number of people; accepted: 1 to 1000"),
        ({"queues": "sred"}, 'queues = "sred" is no queue to advise; accepted: cake, fq-codel, '),
        ({"objective": "speed"}, 'objective = "speed" is none; accepted: calls, throughput'),
        (
            {"objective": "pages"},
            'objective = "pages" needs the use web, and use = "calls,backup"; accepted: calls, ',
        ),
        ({"buffer": "1 h"}, 'buffer = "1 h" is no buffer of a line; accepted: from "1 ms" to'),
        ({"effort": "much"}, 'effort = "much" is none; accepted: quick, normal, thorough'),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_with_its_name_and_what_is_accepted(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {**GIVEN, **change}
    with pytest.raises(redtail.SpecError) as refused:
        redtail.advise(**given, out=tmp_path)
    assert str(refused.value).startswith(message)

    options = [part for key, value in given.items() for part in (f"--{key}", str(value))]
    done = runner.invoke(app, ["advise", *options, "--out", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_refused_before_the_simulations(tmp_path: Path) -> None:
    target = tmp_path / "none" / "line.toml"
    options = ["advise", *SMALL, "--use", "calls", "--out", str(tmp_path), "--save", str(target)]
    done = runner.invoke(app, options)
    assert done.exit_code == 2
    assert f"there is no folder {target.parent}" in done.stderr
    assert not list(tmp_path.iterdir())


def test_pages_that_did_not_finish_do_not_make_a_queue_the_best(advice: redtail.Advice) -> None:
    # Of four replications: pages came; so few came that there is no median; nobody asked; all came.
    metrics = {
        "web.page_time_p50": [2.0, math.nan, math.nan, 1.0],
        "web.pages_unfinished": [0.1, 0.8, math.nan, 0.0],
    }
    runs = {
        number: StoredRun(
            f"{number:016x}", Path(), {k: v[number] for k, v in metrics.items()}, {}, {}
        )
        for number in range(4)
    }
    case = CaseResult.of({}, {}, runs, ())
    wanted = advice.wanted
    found = objectives.measured(case, wanted.loads[0], wanted)["page"]
    assert found[:2] == [2.0, wanted.measured_s] and found[3] == 1.0
    assert math.isnan(found[2])


# The page of an advice.


def test_the_report_of_an_advice_has_the_advice_and_what_is_uncertain(
    advice: redtail.Advice,
) -> None:
    parts = {each.head: each for each in parts_of(advice)}
    assert parts["Uncertain"].items == advice.uncertain
    assert len(parts["All queues"].rows) == len(advice.ranking) + 1
    ways = [part for head, part in parts.items() if head.startswith(("Download", "Upload"))]
    for part, setting in zip(ways, (advice.chosen.down, advice.chosen.up), strict=True):
        assert [row[0] for row in part.rows] == [
            "shaper",
            "overhead",
            *(k.name for k in setting.keys),
        ]
    text = html.unescape(page.page([redtail.load(advice.results.folder)]))
    for shown in (*advice.uncertain, *parts["What to set"].texts):
        assert shown in text
    assert "Commands</h3>" not in text


def test_the_report_of_an_advice_for_a_router_has_its_commands(tmp_path: Path) -> None:
    options = ["--out", str(tmp_path), "--device", "linux", "--wan", "wan0"]
    done = runner.invoke(app, [*COMMAND, *options, "--json"])
    assert done.exit_code == 0, done.stderr
    (folder,) = tmp_path.iterdir()
    done_report = runner.invoke(app, ["report", str(folder)])
    assert done_report.exit_code == 0, done_report.stderr
    text = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    commands = json.loads(done.stdout)["commands"]
    for key in ("set_up", "check", "undo"):
        assert "\n".join(commands[key]) in text
    for shown in (*commands["notices"], *json.loads(done.stdout)["uncertain"]):
        assert shown in text


# Low latency queueing.


def test_calls_that_are_marked_pass_by_all_others_and_the_rest_shares() -> None:
    setting = candidate("prio", HOME, FLOWS, False).up
    voice, others = setting.shaped.queue["class"]
    rate = carried(setting.shaped.overhead, 9.5e6)
    assert float(voice["queue"]["rate"].split()[0]) == pytest.approx(rate * 0.33, rel=1e-6)
    assert {"group": "calls-up"} in voice["match"] and "match" not in others
    assert others["queue"]["kind"] == "sfq"
    (key,) = setting.keys
    assert key.text.startswith("EF/VA: first, up to ")
    assert any("most programs do not" in text for text in setting.cautions)


def test_calls_wait_less_with_llq_than_with_red(out: Path) -> None:
    """What a router has that has neither CAKE nor FQ-CoDel; unmarked calls have the fair queues."""
    found = redtail.advise_on(
        Line(10e6, 2e6, 0.02, "docsis", ("calls", "backup"), 1),
        queues="red,sfq,prio",
        effort="quick",
        out=out,
    )
    assert found.ranking[0].key in ("prio", "sfq")
    upload = {
        label: found.expects("one backup", label).measures["call_up"].mean
        for label in ("LLQ and fair queues", "fair queues", "RED")
    }
    # 10 ms are the way itself, 6 ms a full packet at 2 Mbit/s.
    assert upload["LLQ and fair queues"] < 0.018
    assert upload["LLQ and fair queues"] <= upload["fair queues"] < upload["RED"]
    chosen = redtail.lines.commands([found.down, found.up], device="ios", wan="Gi0/0", lan="Gi0/1")
    assert any("fair-queue" in line for line in chosen.set_up)
    assert not any("random-detect" in line for line in chosen.set_up)
