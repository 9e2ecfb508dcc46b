"""Replications that are copies of one run: one observation."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import redtail
from redtail import experiment, facts
from redtail.analysis import copies
from redtail.page import model

# Nothing is drawn: the starts are fixed, the hosts do not wait, and the queues do not draw.
TEXT = """
name = "Copies"
duration = "6 s"
warmup = "2 s"
replications = {replications}
host_jitter = "0 s"

[bottleneck]
rate = "12 Mbit/s"
delay = "10 ms"
queue = {{ kind = "codel", limit = "50 packets" }}

[[traffic]]
name = "always"
kind = "bulk"
flows = 4
tcp = "linux"
start = "{start}"
return_delay = "10 ms"

[factors]
"bottleneck.queue" = [
  {{ kind = "codel", limit = "50 packets", interval = "100 ms", label = "A" }},
  {{ kind = "{other}", limit = "50 packets", label = "B" }},
]
"""


def _text(start: str = "0 s", other: str = "head-drop", replications: object = 6) -> redtail.Toml:
    return redtail.Toml(TEXT.format(start=start, other=other, replications=replications), "copies")


def test_copies_are_one_observation_everywhere(tmp_path: Path) -> None:
    with pytest.warns(redtail.RedtailWarning, match="copies of one run in 2 of 2 cases"):
        results = redtail.run(_text(), out=tmp_path)
    for case in results.cases:
        assert case.copies == 6
        for name in case.metrics:
            found = case.metric(name)
            assert found.n in (0, 1) and found.ci95 is None
            assert found.n == 0 or found.no_interval == (
                "the 6 replications are copies of one run: one observation"
            )
    rows = results.compare(["goodput", "queue_delay_mean", "queue_delay_p99"])
    assert rows[1].difference.mean != 0
    for row in rows:
        assert row.p is None and row.p_adjusted is None and row.distinguishable is None
        assert row.judged == "one observation" and row.difference.n == 1
        assert json.loads(rows.to_json())["comparisons"][0]["verdict"] == "one observation"
    (warning,) = (text for text in results.warnings if "copies" in text)
    assert warning.startswith("all replications are copies of one run in 2 of 2 cases")
    assert 'start = "uniform 0..1 s"' in warning
    assert redtail.load(results.folder).warnings == results.warnings
    section = model.section(results, 1)
    lines = [line for each in section.answer for line in each.lines]
    assert {line.verdict for line in lines} == {"one observation"}


def test_one_side_of_copies_gives_no_verdict_either(tmp_path: Path) -> None:
    results = redtail.run(_text(other="pie"), out=tmp_path)
    plain, drawn = results.cases
    assert plain.copies == 6 and drawn.copies == 0
    assert drawn.metric("queue_delay_mean").n == 6
    (row,) = results.compare("queue_delay_mean")
    assert row.judged == "one observation" and row.p is None


def test_runs_that_differ_are_no_copies(tmp_path: Path) -> None:
    results = redtail.run(_text(start="uniform 0..1 s"), out=tmp_path)
    assert [case.copies for case in results.cases] == [0, 0]
    assert not any("copies" in text for text in results.warnings)
    (row,) = results.compare("queue_delay_mean")
    assert row.p is not None


def test_a_stop_rule_ends_at_its_first_look_at_copies(tmp_path: Path) -> None:
    rule = '{ until = "goodput within 1 %", at_least = 4, at_most = 30 }'
    results = redtail.run(_text(replications=rule), out=tmp_path)
    assert [len(case.runs) for case in results.cases] == [4, 4]
    assert len(results.unsure) == 2
    assert "the 4 replications are copies of one run" in results.unsure[0]


def test_check_warns_of_a_scenario_that_draws_nothing() -> None:
    (warning,) = (text for text in experiment.check(_text()).warnings if "copies" in text)
    assert "2 of 2 cases" in warning
    drawing = experiment.check(_text(start="uniform 0..1 s")).warnings
    assert not any("copies" in text for text in drawing)
    once = experiment.check(_text(replications=1)).warnings
    assert not any("copies" in text for text in once)
    (one,) = (text for text in experiment.check(_text(other="pie")).warnings if "copies" in text)
    assert "1 of 2 cases" in one


@pytest.mark.parametrize("kind", sorted(copies._PLAIN_QUEUES))
def test_what_is_said_to_draw_nothing_gives_copies(kind: str, tmp_path: Path) -> None:
    queue = experiment.toml_value({"kind": kind, **tomllib.loads(facts.queue_examples()[kind])})
    text = TEXT.format(start="0 s", other="tail-drop", replications=2).replace(
        '{ kind = "codel", limit = "50 packets" }', queue
    )
    source = redtail.Toml(text.partition("[factors]")[0], "kinds")
    # A queue of classes may have one inside that draws; whether it does is seen from its kind.
    scenario = json.loads(experiment.check(source).example(0))
    assert copies.draws_nothing(scenario) or "class" in queue or "band" in queue
    if copies.draws_nothing(scenario):
        results = redtail.run(source, out=tmp_path)
        assert results.cases[0].copies == 2


def test_queues_that_draw_nothing_are_known_by_their_names() -> None:
    assert facts.queue_examples().keys() > copies._PLAIN_QUEUES
