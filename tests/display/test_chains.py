"""What results, figures and pages say of a chain: no hop stands for the others."""

from __future__ import annotations

import html
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import redtail
from redtail import page
from redtail.analysis.results import Results
from redtail.analysis.stats import interval_in_words
from redtail.display import plane, recorded

CHAIN = """
name = "two queues"
duration = "10 s"
warmup = "3 s"
replications = 3
[series]
interval = "100 ms"
queues = true
[[chain.hop]]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "80 packets" }}
[[chain.hop]]
rate = "10 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "80 packets" }}
{more}
[[traffic]]
name = "both"
kind = "bulk"
flows = 2
start = "uniform 0..1 s"
[[traffic]]
name = "second"
kind = "bulk"
flows = 2
start = "uniform 0..1 s"
first_hop = 2
[factors]
"chain.hop1.queue" = [
  {{ kind = "codel", limit = "80 packets", label = "CoDel" }},
  {{ kind = "pie", limit = "80 packets", label = "PIE" }},
]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return redtail.run(redtail.Toml(CHAIN.format(more="")), out=tmp_path_factory.mktemp("store"))


def texts(figure: Any) -> str:
    """The titles of axes and panels, and the caption, each on one line."""
    caption = figure.get_supxlabel()
    parts = [part for axes in figure.axes for part in (axes.get_xlabel(), axes.get_title("left"))]
    return " | ".join(" ".join(part.split()) for part in [*parts, caption])


def test_the_plane_has_the_delays_of_all_hops(results: Results) -> None:
    figure = results.figure()
    assert "Sum of the mean queueing delays at hop1 and hop2 (ms)" in texts(figure)
    assert "added over the hops" in texts(figure)
    case = results.cases[0]
    first, second = (case.values(f"hop{hop}.queue_delay_mean") for hop in (1, 2))
    wanted = sorted(1e3 * (one + two) for one, two in zip(first, second, strict=True))
    drawn = {round(float(x), 6) for line in figure.axes[0].lines for x in line.get_xdata()}
    assert {round(x, 6) for x in wanted} <= drawn
    # Packets wait at the second hop, whose queue is the larger one.
    assert min(second) > 10 * max(first)


def test_a_delay_that_is_asked_for_is_that_of_one_hop(results: Results) -> None:
    figure = results.figure("hop2.queue_delay_mean", kind="plane")
    assert "Mean queueing delay at hop2 (ms)" in texts(figure)


def test_each_hop_has_a_tail_that_names_it(results: Results) -> None:
    drawings = recorded.drawings(results, results.select())
    found = {each.name: each.draw() for each in drawings}
    assert {"hop1.queue_delay_tail", "hop2.queue_delay_tail"} <= found.keys()
    for hop in (1, 2):
        title = found[f"hop{hop}.queue_delay_tail"].axes[0].get_xlabel()
        assert f"Queueing delay at hop{hop} (" in title
        caption = texts(found[f"hop{hop}.queue_delay_tail"])
        assert f"with more than x and its {interval_in_words()}, at each value alone" in caption


def test_a_run_over_time_has_the_queue_of_each_hop(results: Results) -> None:
    found = texts(results.figure(kind="series"))
    assert "Queue at hop1" in found and "Queue at hop2" in found
    found = texts(results.figure("hop2", kind="series"))
    assert "Queue at hop1" not in found and "Queue at hop2" in found


def test_consecutive_losses_are_of_every_queue(results: Results) -> None:
    table = results.consecutive_losses()
    assert "hop2" in set(table["link"].to_pylist())
    only = results.consecutive_losses("hop2")
    assert set(only["link"].to_pylist()) == {"hop2"}
    for case in results.as_json()["cases"]:
        assert list(case["consecutive_loss_exceeds_at"]) == ["hop1", "hop2"]
        assert case["consecutive_loss_exceeds_at"]["hop2"]
        assert {row["queue"] for row in case["consecutive_loss_exceeds"]} <= {"hop1"}


def test_the_page_has_the_sum_and_begins_with_the_longest_queue(results: Results) -> None:
    text = page.page([results])
    for paired in (False, True):
        assert interval_in_words(paired=paired) in html.unescape(text)
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])["e1"]
    number = [metric["name"] for metric in data["metrics"]].index(data["plane"][0])
    assert data["metrics"][number]["axis"] == (
        "Sum of the mean queueing delays at hop1 and hop2 (ms)"
    )
    case = results.cases[0]
    total = sum(case.metric(f"hop{hop}.queue_delay_mean").mean for hop in (1, 2))
    assert math.isclose(data["estimates"][number][0][0], 1e3 * total, rel_tol=1e-5)
    titles = [each["title"] for each in data["tails"]]
    assert titles[0] == "Queueing delay at hop2" and "Queueing delay at hop1" in titles


def test_hops_with_names_go_by_them(results: Results, tmp_path: Path) -> None:
    text = CHAIN.format(more="")
    for name in ("left", "right-2"):
        text = text.replace("[[chain.hop]]\nrate", f'[[chain.hop]]\nname = "{name}"\nrate', 1)
    text = text.replace('"chain.hop1.queue"', '"chain.left.queue"')
    text = text.replace("first_hop = 2", 'first_hop = "right-2"')
    named = redtail.run(redtail.Toml(text), out=tmp_path)
    assert named.links == ("left", "right-2")
    # The same runs, under other names.
    for case, other in zip(results.cases, named.cases, strict=True):
        assert case.values("goodput") == other.values("goodput")
        for metric in ("loss", "second.queue_delay_mean"):
            assert case.values(f"hop2.{metric}") == other.values(f"right-2.{metric}")
    assert "Sum of the mean queueing delays at left and right-2 (ms)" in texts(named.figure())
    found = texts(named.figure("right-2", kind="series"))
    assert "Queue at right-2" in found and "Queue at left" not in found
    drawings = {each.name: each.draw() for each in recorded.drawings(named, named.select())}
    axis = drawings["right-2.queue_delay_tail"].axes[0].get_xlabel()
    assert "Queueing delay at right-2 (" in axis
    assert "right-2" in page.page([named])


def test_a_return_link_has_its_own_plane(tmp_path: Path) -> None:
    back = (
        '[chain.hop.return]\nrate = "8 Mbit/s"\ndelay = "10 ms"\n'
        'queue = { kind = "tail-drop", limit = "50 packets" }\n'
    )
    text = CHAIN.format(more=back).replace('"chain.hop1.queue"', '"chain.hop2.return.queue"')
    results = redtail.run(redtail.Toml(text), out=tmp_path, replications=2)
    found = texts(results.figure())
    assert "Mean queueing delay at the hop2 return link" in found
    tail = texts(results.figure("hop2.return.queue_delay", kind="tail"))
    assert "Queueing delay at the hop2 return link" in tail


def test_a_bottleneck_with_a_return_link_is_named(tmp_path: Path) -> None:
    text = """
name = "b"
duration = "4 s"
warmup = "1 s"
replications = 2
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "codel", limit = "80 packets" }
[bottleneck.return]
rate = "1 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
[[traffic]]
name = "a"
kind = "bulk"
flows = 2
"""
    results = redtail.run(redtail.Toml(text), out=tmp_path)
    assert "delay: at the bottleneck" in texts(results.figure())
    assert "Queueing delay at the bottleneck" in texts(results.figure("queue_delay", kind="tail"))
    assert plane.can_draw(results)
