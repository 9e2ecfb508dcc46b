"""Which metrics are shown: by name, by family, by the file, and by what the traffic is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import redtail
from redtail import experiment, measured, selection
from redtail.errors import SpecError

TWO_WAY = """
name = "Two ways"
duration = "6 s"
warmup = "2 s"
replications = 2
[bottleneck]
rate = "20 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[bottleneck.return]
rate = "5 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "call"
kind = "voip"
flows = 1
direction = "reverse"
[[traffic]]
name = "web"
kind = "web"
model = "http2"
users = 2
tcp = "linux"
[[traffic]]
name = "upload"
kind = "bulk"
flows = 1
direction = "reverse"
tcp = "linux"
"""

REPORT = '\n[report]\nmetrics = ["return.queue_delay_p99", "call.*"]\n'


def test_the_default_follows_the_traffic_in_both_directions() -> None:
    shown = measured.shown(redtail.check(redtail.Toml(TWO_WAY)))
    for name in (
        "call.mos",
        "call.one_way_delay_p99",
        "call.end_to_end_loss",
        "web.response_time_p95",
        "web.page_time_p50",
        "queue_delay_mean",
        "return.queue_delay_mean",
        "return.loss",
        "return.utilization",
    ):
        assert name in shown, name
    assert not any(name.startswith("upload.response") for name in shown)
    assert len(shown) == len(set(shown))


LIGHT_AND_HEAVY = """
name = "Light and heavy"
duration = "10 s"
warmup = "2 s"
replications = 3
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "fq-codel" }
[bottleneck.return]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 2
[[traffic]]
name = "light"
kind = "cbr"
rate = "100 kbit/s"
packet = "200 B"
[[traffic]]
name = "heavy"
kind = "cbr"
rate = "12 Mbit/s"
packet = "1500 B"
[[traffic]]
name = "up"
kind = "bulk"
flows = 2
direction = "reverse"
"""


def test_groups_of_one_kind_that_differ_are_shown_beside_their_whole(tmp_path: Path) -> None:
    results = redtail.run(redtail.Toml(LIGHT_AND_HEAVY), out=tmp_path)
    (case,) = results.cases
    means = {name: case.metric(name).mean for name in results.select()}
    assert means["light.loss"] == 0 and means["heavy.loss"] > means["udp_loss"] > 0.2
    assert 0.05 * means["queue_delay_mean"] > means["light.queue_delay_mean"]
    shown = list(means)
    assert shown.index("heavy.loss") == shown.index("udp_loss") + 2
    # Acknowledgements of the uploads wait less than the data of the downloads, but are no data.
    assert case.metric("up.queue_delay_mean").mean < case.metric("ftp.queue_delay_mean").mean / 2
    assert not {"up.queue_delay_mean", "ftp.queue_delay_mean", "ftp.loss"} & {*shown}
    # Behind one line the groups meet the same queue.
    fifo = LIGHT_AND_HEAVY.replace("fq-codel", "head-drop").replace("12 M", "4 M")
    text = fifo.replace('"head-drop"', '"head-drop", limit = "50 packets"')
    assert "light.queue_delay_mean" not in redtail.run(redtail.Toml(text), out=tmp_path).select()
    assert redtail.load(results.folder).select(["loss"]) == ["loss"]


def test_names_and_families_are_shown_in_their_order(tmp_path: Path) -> None:
    results = redtail.run(
        redtail.Toml(TWO_WAY), out=tmp_path, metrics="call.one_way*, *.goodput,loss"
    )
    chosen = results.select()
    delays = [name for name in chosen if name.startswith("call.one_way")]
    assert chosen[: len(delays)] == delays and len(delays) >= 3
    assert {"web.goodput", "upload.goodput"} <= set(chosen) and chosen[-1] == "loss"
    assert "goodput" not in chosen  # the pattern has a dot
    assert results.select("call.mos") == ["call.mos"]


def test_the_file_says_what_is_shown_and_changes_no_run(tmp_path: Path) -> None:
    plain, asked = (redtail.check(redtail.Toml(text)) for text in (TWO_WAY, TWO_WAY + REPORT))
    assert plain.scenario(0, 0) == asked.scenario(0, 0)
    results = redtail.run(redtail.Toml(TWO_WAY), out=tmp_path)
    again = redtail.run(redtail.Toml(TWO_WAY + REPORT), out=tmp_path)
    assert again.reused == again.run_count == results.run_count
    shown = again.select()
    assert shown[0] == "return.queue_delay_p99" and "call.jitter" in shown
    assert redtail.load(again.folder).select() == shown
    over = redtail.check(redtail.Toml(TWO_WAY + REPORT), metrics=["loss"])
    assert over.report == ("loss",)
    assert results.select() != shown


def test_figures_show_what_was_asked_for(tmp_path: Path, figures_unwritten: None) -> None:
    results = redtail.run(redtail.Toml(TWO_WAY), out=tmp_path, metrics=["call.mos", "loss"])
    assert {path.stem for path in results.figures()} == {"call.mos", "loss"}


@pytest.mark.parametrize(
    ("wanted", "nearest"),
    [
        ("cal.mos", "call.mos"),
        ("mos", "call.mos"),
        ("*.one_way_dealy_p99", "call.one_way_delay_p99"),
        ("retrun.loss", "return.loss"),
        ("delay", "queue_delay_mean"),
    ],
)
def test_a_misspelt_metric_gets_the_nearest_names(wanted: str, nearest: str) -> None:
    with pytest.raises(SpecError) as caught:
        redtail.check(redtail.Toml(TWO_WAY), metrics=[wanted])
    text = str(caught.value)
    assert repr(wanted) in text
    names = text.partition("nearest: ")[2].split(", ")
    assert nearest in names and len(names) <= 5


def test_a_wrong_report_is_refused_by_check_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(TWO_WAY + '[report]\nmetrics = ["godput"]\n')
    with pytest.raises(SpecError, match=r"two\.toml: report\.metrics: no run has 'godput'; nea"):
        redtail.check(path)
    path.write_text(TWO_WAY + "[report]\nmetrics = []\n")
    with pytest.raises(SpecError, match=r"report\.metrics = \[\] names no metric; accepted: "):
        redtail.check(path)
    path.write_text(TWO_WAY + '[report]\nmetric = ["goodput"]\n')
    with pytest.raises(SpecError, match="metric"):
        redtail.check(path)
    factor = '[factors]\n"report.metrics" = [["loss"], ["goodput"]]\n'
    with pytest.raises(SpecError, match="same for all cases and cannot be a factor"):
        redtail.check(redtail.Toml(TWO_WAY + factor))


def test_phases_are_shown_when_they_are_named() -> None:
    names = ["loss", "phase1.loss", "phase2.loss"]
    assert selection.select(names, ["*loss"]) == ["loss"]
    assert selection.select(names, ["phase*.loss"]) == ["phase1.loss", "phase2.loss"]


def test_a_metric_of_a_queue_of_the_user_may_be_named_before_a_run() -> None:
    example = Path(__file__).parents[2] / "examples" / "python-queue.toml"
    assert redtail.check(example, metrics=["queue.anything"]).report == ("queue.anything",)


def test_a_wide_choice_continues_in_a_further_table(tmp_path: Path) -> None:
    from redtail.display.tables import summary_tables

    results = redtail.run(redtail.Toml(TWO_WAY), out=tmp_path, metrics="call.*")
    tables = summary_tables(results, 80)
    assert len(tables) > 1
    heads = [str(column.header).splitlines() for table in tables for column in table.columns]
    assert sum(head[0] == "call:" for head in heads) == len(results.select())


def test_an_index_with_a_wrong_report_is_refused(tmp_path: Path) -> None:
    results = redtail.run(redtail.Toml(TWO_WAY + REPORT), out=tmp_path)
    index = results.folder / "results.json"
    content = json.loads(index.read_text())
    del content["checksum"]
    content["report"] = {"metrics": [3]}
    index.write_text(json.dumps(content))
    with pytest.raises(redtail.StoreError, match="a metric of report"):
        redtail.load(results.folder)


LOADS = """
name = "Loads"
duration = "30 s"
warmup = "10 s"
replications = 2
[bottleneck]
rate = "200 kbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "web"
kind = "web"
model = "empirical"
load = "40 %"
return_delay = "20 ms"
[factors]
"traffic.web.load" = ["40 %", "40.1 %", "80 %"]
"""


def test_loads_of_the_same_number_of_users_are_warned_of() -> None:
    plan = redtail.check(redtail.Toml(LOADS))
    (text,) = (text for text in plan.warnings if "number of users" in text)
    assert "traffic.web.load: 40 % and 40.1 % of bottleneck are about the same" in text
    apart = redtail.check(redtail.Toml(LOADS), set={"factors.traffic.web.load": ["40 %", "80 %"]})
    assert not any("number of users" in text for text in apart.warnings)


def test_other_cases_may_have_as_many_users() -> None:
    """Half of the load of a link that is twice as fast needs as many users, and is another run."""
    text = LOADS.partition("[factors]")[0] + (
        '[[factors.zip]]\n"traffic.web.load" = ["40 %", "80 %"]\n'
        '"bottleneck.rate" = ["400 kbit/s", "200 kbit/s"]\n'
    )
    assert not any("users" in each for each in redtail.check(redtail.Toml(text)).warnings)


def test_metrics_of_an_experiment_have_a_line_each() -> None:
    from redtail.catalog import metric_listing

    path = Path(__file__).parents[2] / "examples" / "line.toml"
    measured = experiment.measured(path)
    rows = [line.split(maxsplit=2) for line in metric_listing(measured).splitlines()]
    assert [row[0] for row in rows] == list(measured.names)
    assert ["call-up.one_way_delay_p99", "s", "One-way delay of call-up, 99th percentile"] in rows
