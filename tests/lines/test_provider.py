"""Advice for an access provider: plans, the experiment, what is set, and files for LibreQoS."""

from __future__ import annotations

import csv
import html
import io
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

import redtail
from redtail import experiment, page
from redtail.cli import app
from redtail.errors import SpecError
from redtail.lines.provider import libreqos
from redtail.lines.provider.answer import ProviderAdvice
from redtail.lines.provider.plans import MOST_SUBSCRIBERS, Plan, read_plans, sold
from redtail.lines.provider.simulated import (
    EFFORTS,
    LEAST_RATIO,
    MOST_GUARANTEED,
    NOTHING,
    WAYS,
    case_name,
    experiment_text,
    guaranteed,
    simulated,
)

runner = CliRunner()

TWO = "30 x 4mbit/1mbit, 10 x 8mbit/2mbit"
LINE = ("20 Mbit/s", "20 Mbit/s", "20 ms")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("provider")


@pytest.fixture(scope="module")
def advice(out: Path) -> ProviderAdvice:
    return redtail.advise_provider(TWO, *LINE, effort="quick", out=out)


# Plans.


def test_plans_are_read_from_a_text_and_from_files(tmp_path: Path) -> None:
    found = read_plans(TWO)
    uses = ("calls", "web", "downloads")
    assert found == (
        Plan("plan1", 4e6, 1e6, 30, uses),
        Plan("plan2", 8e6, 2e6, 10, uses),
    )
    table = tmp_path / "plans.csv"
    table.write_text(
        "name, down, up, number, uses\nbasic, 4 Mbit/s, 1 Mbit/s, 30, calls web\n"
        "gold, 8mbit, 2mbit, 10,\n",
        encoding="utf-8",
    )
    basic, gold = read_plans(str(table), ["calls", "backup"])
    assert basic == Plan("basic", 4e6, 1e6, 30, ("calls", "web"))
    assert gold == Plan("gold", 8e6, 2e6, 10, ("calls", "backup"))
    other = tmp_path / "plans.toml"
    other.write_text(
        '[[plan]]\nname = "basic"\ndown = "4 Mbit/s"\nup = "1 Mbit/s"\nnumber = 30\n'
        'uses = ["calls", "web"]\n',
        encoding="utf-8",
    )
    assert read_plans(str(other)) == (basic,)
    assert sold((basic, gold), "down") == 200e6


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("200", r'subscribers = "200" is no plan; accepted: "200 x 100mbit/20mbit"'),
        ("0 x 1mbit/1mbit", r"number = 0 is no number of subscribers; accepted: a whole number"),
        ("9 x 1kbit/1mbit", r'down = "1kbit" is no rate of a plan; accepted: from "200 kbit/s"'),
        ("9 x 1/1mbit", r"down"),
        (f"{MOST_SUBSCRIBERS} x 1mbit/1mbit, 1 x 1mbit/1mbit", r"has 100001 subscribers; accepted"),
        (", ".join(["1 x 1mbit/1mbit"] * 21), r"has 21 plans; accepted: 1 to 20"),
        ("nowhere.csv", r"nowhere\.csv: cannot be read \(No such file"),
    ],
)
def test_a_text_that_gives_no_plans_is_refused(text: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        read_plans(text)


HEAD = "name,down,up,number\n"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("p.csv", "name,down,up\n", r"p\.csv:1: the head lacks number; accepted: name, down, up"),
        ("p.csv", "name,down,up,number,colour\n", r'p\.csv:1: .* has the column "colour"'),
        ("p.csv", HEAD, r"has 0 plans; accepted: 1 to 20"),
        ("p.csv", HEAD + "a,1mbit,1mbit\n", r"p\.csv:2: has other columns than the head"),
        ("p.csv", HEAD + "a b,1mbit,1mbit,1\n", r'p\.csv:2: name = "a b" names no plan; accepted'),
        (
            "p.csv",
            HEAD + "a,1mbit,1mbit,-1\n",
            r"p\.csv:2: number = -1 is no number of subscribers",
        ),
        ("p.csv", HEAD + "a,1mbit,1mbit,1\n" * 2, r'name = "a" names two plans; accepted: a name'),
        ("p.csv", HEAD + "a,fast,1mbit,1\n", r"p\.csv:2: down"),
        ("p.csv", "name,down,up,number,uses\na,1mbit,1mbit,1,x\n", r'uses = "x" is no use of a'),
        ("p.toml", "[[plan]]\nname='a'\n", r"p\.toml: plan 1: down is missing; accepted: name"),
        ("p.toml", "plans = 1\n", r"p\.toml: has no list of \[\[plan\]\] alone"),
        ("p.toml", "plan = [1]\n", r"plan 1 is no table"),
        ("p.toml", "[[plan]\n", r"p\.toml: is no TOML"),
        (
            "p.toml",
            "[[plan]]\nname='a'\ndown='1mbit'\nup='1mbit'\nnumber=true\n",
            r"number = True is no number of subscribers",
        ),
    ],
)
def test_what_is_wrong_with_a_file_of_plans_is_told(
    name: str, text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=says):
        read_plans(name)


def test_a_file_of_plans_has_a_bound(tmp_path: Path) -> None:
    table = tmp_path / "plans.csv"
    table.write_text(HEAD + "a,1mbit,1mbit,1\n" * 100_000, encoding="utf-8")
    with pytest.raises(SpecError, match="is too large; accepted: up to 1000000 bytes"):
        read_plans(str(table))


# The experiment.


def test_guarantees_are_together_no_more_than_the_line() -> None:
    plans = read_plans("200 x 100mbit/20mbit, 300 x 300mbit/100mbit")
    for way, line in (("down", 1e9), ("up", 1e9), ("down", 50e9)):
        each = [guaranteed(plans, plan, line, way) for plan in plans]  # type: ignore[arg-type]
        total = sum(plan.number * rate for plan, rate in zip(plans, each, strict=True))
        assert total <= line * (1 + 1e-12)
        assert max(each) <= MOST_GUARANTEED[way]  # type: ignore[index]


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize(
    ("text", "down"),
    [
        ("200 x 100mbit/20mbit", 1e9),
        ("2000 x 50mbit/10mbit", 1e9),
        ("2000 x 1gbit/1gbit", 10e9),
        ("90000 x 300mbit/50mbit", 100e9),
        ("3 x 10mbit/2mbit", 20e6),
    ],
)
def test_what_is_simulated_is_bounded_and_keeps_the_ratios(
    text: str, down: float, effort: str
) -> None:
    plans = read_plans(text)
    wanted = simulated(plans, down, down, 0.02, EFFORTS[effort])
    seconds = 5.0 + EFFORTS[effort].seconds
    assert wanted.down_bps * seconds <= EFFORTS[effort].bits * (1 + 1e-9)
    assert wanted.down_bps * wanted.fewer * wanted.slower == pytest.approx(down)
    fastest = plans[0].down_bps / wanted.slower
    if down / plans[0].down_bps >= LEAST_RATIO:
        assert wanted.down_bps / fastest >= LEAST_RATIO * (1 - 1e-9)
    peak = wanted.loads[-1].samples[0]
    asked = peak.busy * peak.plan.down_bps / wanted.down_bps
    assert wanted.fills == (asked >= 1)
    assert asked == pytest.approx(1.5, rel=0.15)
    assert all(each.busy + each.calm < 500 for load in wanted.loads for each in load.samples)


def test_the_experiment_can_be_run_and_each_subscriber_has_a_class() -> None:
    wanted = simulated(read_plans(TWO), 20e6, 20e6, 0.02, EFFORTS["quick"])
    text = experiment_text(wanted, "a provider", ["of a test"])
    plan = experiment.prepare(experiment.Toml(text, name="a test"))
    assert len(plan.cases) == len(wanted.loads) * len(WAYS)
    for case in tomllib.loads(text)["case"]:
        queue = case["bottleneck.queue"]
        if queue["kind"] == "htb":
            load = next(each for each in wanted.loads if case["name"].startswith(each.name))
            count = sum(sample.busy + sample.calm for sample in load.samples)
            [root] = queue["class"]
            assert len(root["class"]) == count
            assert sum(_bps(each["rate"]) for each in root["class"]) <= _bps(root["rate"])


def _bps(text: str) -> float:
    return float(text.removesuffix(" bit/s"))


# What is advised.


def test_a_queue_for_each_subscriber_keeps_calls_short_and_plans(advice: ProviderAdvice) -> None:
    assert advice.chosen.leaf is not None and advice.chosen.leaf["kind"] in ("cake", "fq-codel")
    ranked = {each.way.label: each for each in advice.ranking}
    # The way takes 10 ms; a full FIFO of 100 ms is in the way of every call at the peak.
    assert 0.010 < ranked[advice.chosen.label].call.mean < 0.05
    assert ranked[NOTHING].call.mean > 0.08
    assert not ranked["one CAKE"].fits
    for load in advice.wanted.loads:
        for plan in advice.plans:
            own = advice.row(load.name, advice.chosen.label, plan.name).measures
            assert 0 < own["rate"].mean <= 1.0
            assert own["calm_call"].mean < 0.05


def _utilization(advice: ProviderAdvice, name: str) -> Sequence[float]:
    [case] = [case for case in advice.results.cases if case.labels["case.name"] == name]
    return case.values("utilization")


def test_the_peak_is_full(advice: ProviderAdvice) -> None:
    assert advice.wanted.fills
    peak = advice.wanted.loads[-1]
    assert min(_utilization(advice, case_name(peak, advice.chosen))) > 0.95


def test_there_is_a_row_for_each_plan(advice: ProviderAdvice) -> None:
    text = advice.to_text(118)
    for load, end in (("evening", "peak ("), ("peak", "Mean ±")):
        part = text.split(f"\n{load} (")[1].split(f"\n{end}")[0]
        for plan in advice.plans:
            assert sum(line.startswith(f"{plan.name} ") for line in part.splitlines()) == 1
    assert len(text.splitlines()) < 90
    found = json.loads(advice.to_json())
    assert found["set"] == advice.chosen.label
    assert len(found["rows"]) == 2 * len(WAYS) * 2


def test_the_report_has_the_advice(advice: ProviderAdvice) -> None:
    text = html.unescape(page.page([redtail.load(advice.results.folder)]))
    for shown in (*advice.uncertain, "For each subscriber", f"Set {advice.chosen.label}: "):
        assert shown in text
    for plan in advice.plans:
        assert f">{plan.name}<" in text


def test_a_sample_is_said_to_be_one() -> None:
    wanted = simulated(read_plans("2000 x 50mbit/10mbit"), 1e9, 1e9, 0.02, EFFORTS["quick"])
    assert wanted.fewer == pytest.approx(5.0)
    assert wanted.slower > 1


# The command, and what it writes.


def test_the_command_writes_the_files_of_libreqos(out: Path, tmp_path: Path) -> None:
    command = ["advise", "--subscribers", TWO, "--down", "20mbit", "--up", "20mbit"]
    command += ["--rtt", "20ms", "--effort", "quick", "--out", str(out)]
    folder, file = tmp_path / "libreqos", tmp_path / "provider.toml"
    done = runner.invoke(app, [*command, "--export", str(folder), "--save", str(file)])
    assert done.exit_code == 0, done.output
    assert file.read_text(encoding="utf-8").startswith("# Made by redtail advise.")
    text = (folder / "ShapedDevices.csv").read_text(encoding="utf-8")
    head, *rows = csv.reader(io.StringIO(text))
    assert tuple(head) == libreqos.COLUMNS
    assert len(rows) == 40
    assert len({row[0] for row in rows}) == len({row[6] for row in rows}) == 40
    first = dict(zip(head, rows[0], strict=True))
    assert (first["Download Max Mbps"], first["Upload Max Mbps"]) == ("4", "1")
    for way, line in (("Download", 20), ("Upload", 20)):
        least = [float(dict(zip(head, row, strict=True))[f"{way} Min Mbps"]) for row in rows]
        assert sum(least) <= line * (1 + 1e-9)
    assert json.loads((folder / "network.json").read_text(encoding="utf-8")) == {}
    queues = tomllib.loads((folder / "lqos.conf.queues").read_text(encoding="utf-8"))["queues"]
    assert queues["downlink_bandwidth_mbps"] == 20
    assert queues["default_sqm"] in ("cake diffserv4", "fq_codel")
    again = runner.invoke(app, [*command, "--export", str(folder)])
    assert again.exit_code == 2
    assert "has a file ShapedDevices.csv; accepted: a folder without it" in again.output


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--access", "docsis"], "--access is about one line; accepted beside --subscribers"),
        (["--people", "3"], "--people is about one line"),
        (["--down", "6mbit"], "is more than the line's 6e+06 bit/s"),
        (["--rtt", "9s"], 'rtt = "9s" is no round trip'),
        (["--effort", "much"], 'effort = "much" is none; accepted: quick, normal, thorough'),
        (["--use", "chess"], 'uses = "chess" is no use of a subscriber'),
    ],
)
def test_what_makes_no_sense_is_refused(more: list[str], says: str) -> None:
    command = ["advise", "--subscribers", TWO, "--down", "20mbit", "--up", "20mbit"]
    done = runner.invoke(app, [*command, "--rtt", "20ms", *more])
    assert done.exit_code == 2
    assert says in " ".join(done.output.split()), done.output


def test_options_of_a_provider_need_subscribers() -> None:
    done = runner.invoke(app, ["advise", "--export", "x"])
    assert done.exit_code == 2 and "accepted: with --subscribers" in done.output
    done = runner.invoke(app, ["advise", "--subscribers", TWO, "--down", "9mbit"])
    assert done.exit_code == 2 and "--up is missing" in done.output
