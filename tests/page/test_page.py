"""The page of `redtail report`, read as a file and used in a browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import redtail
from browsing import Browsed
from redtail import page
from redtail.analysis.results import Results
from redtail.cli import app
from redtail.errors import SpecError, StoreError
from redtail.page import answer, marks, model, network

EXPERIMENT = """
name = "Two queues"
description = "A short one"
duration = "6 s"
warmup = "2 s"
replications = 3

[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "40 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 2
start = "uniform 0..1 s"

[series]
interval = "20 ms"
queues = true

[factors]
"traffic.ftp.flows" = [2, 8]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "40 packets", label = "tail drop" },
  { kind = "codel", limit = "40 packets", label = "CoDel" },
]
"""

QUEUE = "bottleneck.queue"
HOSTILE = "</script><script>window.hit=1</script><img src=x onerror=window.hit=1>"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return redtail.run(redtail.Toml(EXPERIMENT), out=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def text(results: Results) -> str:
    return page.page([results])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Results:
    given = EXPERIMENT.replace("Two queues", HOSTILE).replace("A short one", "A\u202e one")
    given = given.replace('"CoDel"', json.dumps(HOSTILE))
    return redtail.run(redtail.Toml(given), out=tmp_path_factory.mktemp("runs"))


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])["e1"]


def test_the_page_has_results_network_and_what_it_takes_to_repeat_them(
    results: Results, text: str
) -> None:
    assert "<h1>Two queues</h1>" in text
    assert "CoDel against tail drop" in text
    assert "5 Mbit/s, 10 ms" in text
    assert "at ftp flows 2" in text.replace("\u00a0", " ")
    case = results.case(queue="CoDel", flows=8)
    assert f"{1e3 * case.metric('queue_delay_mean').mean:.1f}" in text
    assert "[series]" in text and results.made_by in text
    assert all(run.key in text for case in results.cases for run in case.runs.values())
    # Nothing is named that a browser would fetch.
    head = text[: text.index("<script")]
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", head)
    assert "default-src 'none'" in head


def test_data_of_the_page_are_those_of_the_results(results: Results, text: str) -> None:
    data = data_of(text)
    names = [metric["name"] for metric in data["metrics"]]
    assert set(names) == set(results.metric_names)
    place = names.index("goodput")
    for number, case in enumerate(results.cases):
        mean, half, n, _ = data["estimates"][place][number]
        found = case.metric("goodput")
        assert mean == pytest.approx(found.mean / 1e6, rel=1e-5)
        assert n == 3
        if found.ci95 is not None:
            assert half == pytest.approx(found.ci95 / 1e6, rel=1e-5)
    rows = data["differences"]["tail drop"]["goodput"]
    expected = dict(
        (case.title, found)
        for case, found in results.differences("goodput", factor="bottleneck.queue")
    )
    for case, row in zip(data["cases"], rows, strict=True):
        if case["labels"][1] == "tail drop":
            assert row is None
        else:
            assert row[0] == pytest.approx(expected[case["title"]].mean / 1e6, rel=1e-4)
    (panel, *_) = data["series"]["panels"]
    assert {curve["case"] for curve in panel["curves"]} == {0, 1, 2, 3}
    assert panel["title"] == "Queue length (packets)" and panel["limits"] == [40.0] * 4
    assert data["series"]["warmup_s"] == 2.0


def test_names_of_users_are_harmless(hostile: Results) -> None:
    text = page.page([hostile])
    # The three scripts of the page and no other; no element that was named.
    assert text.lower().count("</script") == 3
    assert "<img" not in text
    assert "window.hit=1&lt;/script&gt;" in text
    assert HOSTILE in data_of(text)["cases"][1]["labels"]
    # What would turn the direction of writing is shown by its number, also where the file is shown.
    assert "\u202e" not in text and text.count("\\u202e") == 2


def test_an_answer_says_only_what_the_comparison_says(results: Results) -> None:
    compared = results.compare(
        ["queue_delay_mean", "utilization"], baseline="tail drop", by="queue"
    )
    (paragraph,) = answer.paragraphs(results, ["queue_delay_mean", "utilization"], compared)
    assert paragraph.head == "CoDel against tail drop"
    (delay, _) = paragraph.lines
    verdicts = {row.distinguishable for row in compared if row.metric == "queue_delay_mean"}
    if verdicts == {True}:
        assert delay.verdict == "lower"
    assert answer.paragraphs(results, [], None) == []


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([[5.0, 5.1, 4.9, 5.05], [5.2, 5.0, 5.1, 4.95]], "higher"),
        ([[-5.0, -5.1, -4.9, -5.05], [-5.2, -5.0, -5.1, -4.95]], "lower"),
        ([[5.0, 5.1, 4.9, 5.05], [-5.2, -5.0, -5.1, -4.95]], "mixed"),
        ([[1.0, -1.1, 0.9, -0.9], [-1.0, 1.2, -0.7, 0.6]], "not distinguishable"),
        ([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], "equal"),
    ],
)
def test_verdicts(differences: list[list[float]], verdict: str) -> None:
    from redtail.analysis.compare import Comparison
    from redtail.analysis.stats import p_zero_mean

    rows = []
    for place, values in enumerate(differences):
        p = p_zero_mean(values)
        rows.append(
            Comparison(
                metric="queue_delay_mean",
                factor="bottleneck.queue",
                label="B",
                baseline="A",
                others=f"flows {place}",
                differences={number: 1e-3 * value for number, value in enumerate(values)},
                reference=0.01,
                p=p,
                p_adjusted=p,
                shared=True,
            )
        )
    line = answer._of_rows(rows, len(rows))
    assert line is not None and line.verdict == verdict
    if verdict in ("higher", "lower"):
        assert line.rest.startswith(" by ") and "−" not in line.text
        assert "(50 %)" in line.text.replace("\u00a0", " ")


def test_an_answer_says_how_many_replications_would_decide_without_an_interval() -> None:
    from redtail.analysis.compare import Comparison

    def line(replications: int) -> answer.Line:
        # Values that are nearly alike, so that there is no interval: the sign test decides.
        row = Comparison(
            metric="queue_delay_mean",
            factor="bottleneck.queue",
            label="B",
            baseline="A",
            others="",
            differences=dict.fromkeys(range(replications), -0.095),
            reference=0.1,
            p=2 * 0.5**replications,
            p_adjusted=min(1.0, 4 * 2 * 0.5**replications),
            shared=True,
            together=4,
        )
        found = answer._of_rows([row], 4)
        assert found is not None
        return found

    few = line(5)
    assert few.verdict == "too few replications"
    assert (
        "about 8 replications like these would decide" in few.text
        and "(−95 %)" in few.text.replace("\u00a0", " ")
    )
    assert line(7).verdict == "too few replications"
    assert line(8).verdict == "lower"


def test_an_answer_says_that_the_number_of_comparisons_decides() -> None:
    from redtail.analysis.compare import Comparison

    values = [-5.0, -6.0, -4.1, -7.2, -3.9]
    row = Comparison(
        metric="goodput",
        factor="bottleneck.queue",
        label="B",
        baseline="A",
        others="",
        differences={number: 1e6 * value for number, value in enumerate(values)},
        reference=20e6,
        p=0.0008,
        p_adjusted=0.0008 * 100,
        shared=True,
        together=100,
    )
    found = answer._of_rows([row], 100)
    assert found is not None and found.verdict == "not distinguishable"
    text = found.text.replace("\u00a0", " ")
    assert "distinguishable alone, but not among 100 comparisons" in text
    assert "about 6 replications like these would decide" in text


def test_metrics_of_the_answer_begin_with_the_delay_and_name_a_loss_once(tmp_path: Path) -> None:
    text = EXPERIMENT.partition("[series]")[0]
    queues = '[{ kind = "tail-drop", limit = "20 packets" }, { kind = "codel" }]'
    source = redtail.Toml(f'{text}[factors]\n"bottleneck.queue" = {queues}\n')
    results = redtail.run(source, out=tmp_path)
    chosen = ["udp_loss", "goodput", "fairness", "queue_delay_mean"]
    twice = [*chosen, "loss", "loss"]
    found = model._deciding(results, twice, QUEUE, asked_for=False)
    assert found[0] == "queue_delay_mean"
    assert found.count("loss") == 1
    assert model._deciding(results, twice, QUEUE, asked_for=True) == twice


def test_of_many_settings_the_extremes_are_named(tmp_path: Path) -> None:
    queues = ", ".join(
        f'{{ kind = "tail-drop", limit = "{limit} packets", label = "{limit}" }}'
        for limit in (10, 20, 40, 60, 80)
    )
    text = EXPERIMENT.partition("[series]")[0] + f'[factors]\n"bottleneck.queue" = [{queues}]\n'
    results = redtail.run(redtail.Toml(text), out=tmp_path)
    (paragraph,) = model.section(results, 1).answer
    assert paragraph.head == "Of all settings of queue"
    delay = next(line for line in paragraph.lines if line.metric == "Mean queueing delay")
    means = {case.labels[QUEUE]: case.metric("queue_delay_mean").mean for case in results.cases}
    least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    assert delay.text.startswith(f"lowest with {least} (")
    assert f"highest with {most} (" in delay.text


def test_a_chain_is_drawn_with_its_return_links() -> None:
    hop = {"rate": "1 Mbit/s", "delay": "1 ms", "queue": {"kind": "red"}}
    scenario = {
        "chain": {"hop": [hop, {**hop, "return": hop}]},
        "traffic": [
            {"name": "a", "kind": "bulk", "flows": 1, "first_hop": 2, "last_hop": 2},
            {"name": "b", "kind": "cbr", "flows": 2, "direction": "reverse"},
        ],
    }
    found = network.drawing(scenario, {"chain.hop2.queue": ["x", "y"]})
    assert found is not None and len(found.routers) == 3
    assert [link.backward for link in found.links] == [False, False, True]
    assert [link.compared for link in found.links] == [False, True, False]
    assert found.links[1].queue == "x · y"
    one, two = found.lanes
    assert (one.x1, one.x2) == found.routers[1:]
    assert (two.x1, two.x2) == (found.routers[2], found.routers[0])
    assert network.drawing({}, {}) is None


def test_what_the_experiment_varies_is_marked_in_the_drawing(tmp_path: Path) -> None:
    text = """
name = "Cases"
duration = "2 s"
warmup = "1 s"
replications = 1
[bottleneck]
rate = "1 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 1
access_delay = "1 ms"
tcp = "linux"
"""
    by_name = """
[[case]]
name = "as it is"
[[case]]
name = "changed"
"bottleneck.rate" = "2 Mbit/s"
"bottleneck.queue" = { kind = "head-drop", limit = "20 packets" }
"traffic.ftp.tcp" = "dctcp"
"""
    found = network.varied(redtail.run(redtail.Toml(text + by_name), out=tmp_path))
    assert found == {
        "bottleneck.rate": ["1 Mbit/s", "2 Mbit/s"],
        "bottleneck.queue": ["tail drop", "head drop"],
        "traffic.ftp.tcp": ["linux", "dctcp"],
    }
    factor = '[factors]\n"traffic.ftp.access_delay" = ["1 ms", "9 ms"]\n'
    results = redtail.run(redtail.Toml(text + factor), out=tmp_path / "factor")
    drawn = network.drawing(results.scenario, network.varied(results))
    assert drawn is not None
    marked = [text for text, varied in drawn.lanes[0].parts if varied]
    assert marked == ["access delay 1 ms · 9 ms"]
    assert sum("access delay" in text for text, _ in drawn.lanes[0].parts) == 1
    rates = network.drawing(results.scenario, found)
    assert rates is not None
    assert rates.links[0].parts == (("1 Mbit/s · 2 Mbit/s", True), ("5 ms", False))


def test_a_panel_has_the_limit_of_the_queue_that_it_shows(tmp_path: Path) -> None:
    text = EXPERIMENT.replace(
        "[[traffic]]",
        '[bottleneck.return]\nrate = "4 Mbit/s"\ndelay = "10 ms"\n'
        'queue = { kind = "tail-drop", limit = "30 packets" }\n[[traffic]]',
    )
    factors = text[text.index("[factors]") :].replace("bottleneck.queue", "bottleneck.return.queue")
    factors = factors.replace("40 packets", "20 packets", 1).replace("40 packets", "30 packets")
    text = text[: text.index("[factors]")] + factors
    results = redtail.run(redtail.Toml(text), out=tmp_path, replications=1)
    panels = {each["title"]: each for each in data_of(page.page([results]))["series"]["panels"]}
    assert panels["Queue length (packets), bottleneck"]["limits"] == [40.0] * 4
    assert panels["Queue length (packets), return"]["limits"] == [20.0, 30.0, 20.0, 30.0]
    data = data_of(page.page([results]))
    assert data["plane"] == ["return.queue_delay_mean", "goodput"]


EVENTFUL = """
name = "Events"
duration = "8 s"
warmup = "2 s"
replications = 1
[bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
queue = { kind = "red", limit = "60 packets", min_th = "5 packets", max_th = "15 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 12
tcp = "linux"
start = "uniform 0..1 s"
[series]
interval = "20 ms"
windows = true
[events]
"""


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return redtail.run(redtail.Toml(EVENTFUL), out=tmp_path_factory.mktemp("events"))


def panel(found: Any, title: str) -> Any:
    (wanted,) = (each for each in found["series"]["panels"] if each["title"].startswith(title))
    return wanted


def test_events_are_marks_on_the_curves_that_they_are_of(eventful: Results) -> None:
    data = data_of(page.page([eventful]))
    events = eventful.events().to_pylist()
    for curve in panel(data, "Congestion window")["curves"]:
        shown = curve["marks"]
        assert 0 < len(shown) <= marks.EACH
        assert [mark["x"] for mark in shown] == sorted(mark["x"] for mark in shown)
        number = int(curve["name"].removeprefix("flow "))
        timeouts = [e for e in events if (e["event"], e["flow"]) == ("timeout", number)]
        told = [mark for mark in shown if mark["kind"] == "timeout"]
        assert [mark["x"] for mark in told] == [round(e["time_s"], 4) for e in timeouts]
        assert all(": timeout after " in mark["text"] for mark in told)
        assert all(0 <= mark["y"] <= max(curve["y"]) for mark in shown)
    (queue,) = panel(data, "Queue length")["curves"]
    assert all("were dropped at the bottleneck" in mark["text"] for mark in queue["marks"])


def test_so_many_marks_are_shown_and_the_rest_is_counted(
    eventful: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_queue() -> tuple[list[Any], int]:
        (curve,) = panel(data_of(page.page([eventful])), "Queue length")["curves"]
        return curve["marks"], curve["left_out"]

    every, none = of_queue()
    monkeypatch.setattr(marks, "EACH", 3)
    few, left_out = of_queue()
    assert none == 0 and len(few) == 3 and left_out == len(every) - 3
    # The largest bursts are those that stay.
    sizes = sorted((int(mark["text"].split()[0]) for mark in every), reverse=True)
    assert sorted((int(mark["text"].split()[0]) for mark in few), reverse=True) == sizes[:3]


def test_without_events_there_are_no_marks(text: str) -> None:
    panels = data_of(text)["series"]["panels"]
    assert not any("marks" in curve for each in panels for curve in each["curves"])


def test_metrics_can_be_chosen(results: Results) -> None:
    data = data_of(page.page([results], metrics=["loss", "ftp.*"]))
    chosen = [metric["name"] for metric in data["metrics"] if metric["chosen"]]
    assert chosen[0] == "loss"
    assert all(name == "loss" or name.startswith("ftp.") for name in chosen)
    with pytest.raises(SpecError, match="nearest: goodput"):
        page.page([results], metrics=["godput"])


def test_one_case_and_several_experiments(tmp_path: Path, results: Results) -> None:
    alone = redtail.run(
        redtail.Toml(EXPERIMENT.partition("[factors]")[0].replace("Two queues", "Alone")),
        out=tmp_path,
        replications=1,
    )
    text = page.page([results, alone])
    assert 'id="e1"' in text and 'id="e2"' in text
    assert "each case was run once" in text
    single = model.section(alone, 1)
    assert single.data["compared"] is None and single.data["differences"] == {}
    assert [each.head for each in single.answer] == ["Measured"]


def test_the_command_writes_the_page(results: Results, tmp_path: Path) -> None:
    runner = CliRunner()
    file = tmp_path / "sub" / "page.html"
    done = runner.invoke(app, ["report", str(results.folder), "--output", str(file)])
    assert done.exit_code == 0, done.output
    assert str(file) in done.output and "<h1>Two queues</h1>" in file.read_text("utf-8")
    by_name = ["report", "Two queues", "--out", str(results.folder.parent)]
    assert runner.invoke(app, by_name).exit_code == 0
    assert (results.folder / "report.html").is_file()
    # It is no foreign file in the store, and is not in the way of anything.
    assert (
        runner.invoke(app, ["runs", "verify", "--out", str(results.folder.parent)]).exit_code == 0
    )
    missing = runner.invoke(app, ["report", str(tmp_path / "none")])
    assert isinstance(missing.exception, SystemExit) and missing.exit_code != 0


def test_an_altered_experiment_is_refused(results: Results, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(results.folder, copy)
    (copy / "experiment.toml").write_text("name = 'another'\n")
    with pytest.raises(StoreError, match="is not the experiment that results"):
        redtail.load(copy)


# --- In a browser -------------------------------------------------------------------------------


class Opened(Browsed):
    """The page of a report."""

    def drawn(self, name: str) -> list[dict[str, Any]]:
        """Return the curves of a figure: what Plotly was given and has drawn."""
        found: list[dict[str, Any]] = self.view.evaluate(
            "name => document.querySelector(`[data-plot=${name}]`).data"
            ".map(each => ({name: each.name, x: [...each.x], y: [...each.y]}))",
            name,
        )
        return found

    def control(self, name: str) -> Any:
        return self.view.locator(f'[data-name="{name}"]')

    def axis(self, name: str) -> str:
        return str(self.view.locator(f"[data-plot={name}] .ytitle").text_content())


@pytest.fixture
def opened(browser: Any, text: str, tmp_path: Path) -> Iterator[Opened]:
    found = Opened(browser, text, tmp_path / "page.html")
    yield found
    found.close()


def test_hiding_a_queue_and_changing_the_metric_change_what_is_drawn(
    opened: Opened, results: Results
) -> None:
    opened.control("metric").select_option(label="Utilization (%)")
    assert opened.axis("metric") == "Utilization (%)"
    assert [curve["name"] for curve in opened.drawn("metric")] == ["tail drop", "CoDel"]
    opened.control("metric").select_option(label="Mean queueing delay (ms)")
    assert opened.axis("metric") == "Mean queueing delay (ms)"
    (first, second) = opened.drawn("metric")
    expected = [
        1e3 * results.case(queue="CoDel", flows=n).metric("queue_delay_mean").mean for n in (2, 8)
    ]
    assert second["y"] == pytest.approx(expected, rel=1e-5)
    assert second["x"] == [2, 8]
    assert [curve["name"] for curve in opened.drawn("differences")] == ["CoDel"]
    opened.control("base").select_option(label="CoDel")
    assert [curve["name"] for curve in opened.drawn("differences")] == ["tail drop"]

    box = opened.view.locator('[data-setting="1"]')
    box.focus()
    opened.view.keyboard.press("Space")
    for name in ("metric", "plane", "series"):
        assert not any("CoDel" in curve["name"] for curve in opened.drawn(name))
    assert opened.drawn("metric") == [first]
    opened.view.keyboard.press("Space")
    assert opened.drawn("metric") == [first, second]


def test_a_series_is_zoomed_by_keyboard(opened: Opened) -> None:
    def bounds() -> list[float]:
        found: list[float] = opened.view.evaluate(
            "() => document.querySelector('[data-plot=series]').layout.xaxis.range"
        )
        return found

    whole = bounds()
    assert whole == pytest.approx([0, 6], abs=0.1)
    buttons = opened.view.get_by_role("group", name="Zoom in time")
    buttons.get_by_role("button", name="Zoom in").focus()
    opened.view.keyboard.press("Enter")
    assert bounds() == pytest.approx([whole[1] / 4, 3 * whole[1] / 4])
    buttons.get_by_role("button", name="Later").press("Enter")
    assert bounds() == pytest.approx([whole[1] / 2, whole[1]])
    buttons.get_by_role("button", name="Show the whole run").press("Enter")
    assert bounds() == whole


def test_events_are_reached_by_keyboard_and_printed(
    browser: Any, eventful: Results, tmp_path: Path
) -> None:
    shown = Opened(browser, page.page([eventful]), tmp_path / "events.html")
    shown.control("panel").select_option(label="Congestion window (kB), ftp")
    events = shown.view.locator("[data-events]")
    drawn = [trace for trace in shown.drawn("series") if trace["name"] == "event"]
    count = sum(len(trace["x"]) for trace in drawn)
    assert count > 0
    assert events.locator("summary").inner_text().startswith(f"{count} events on the curves")
    events.locator("summary").press("Enter")
    button = events.locator("button").first
    button.focus()
    said = button.inner_text()
    time = said.split(" s: ")[0].split(" ")[-1]
    label = shown.view.locator('[data-plot="series"] .hoverlayer')
    assert time in label.text_content()
    button.press("Enter")
    low, high = shown.view.evaluate(
        "document.querySelector('[data-plot=series]').layout.xaxis.range"
    )
    assert low <= float(time) <= high and high - low <= 2
    assert events.locator("button").first.evaluate("each => each === document.activeElement")
    events.locator("summary").press("Enter")
    for event, is_open in (("beforeprint", True), ("afterprint", False)):
        shown.view.evaluate(f"window.dispatchEvent(new Event('{event}'))")
        assert events.evaluate("each => each.open") is is_open


def test_the_table_is_sorted_and_shows_differences(opened: Opened, results: Results) -> None:
    table = opened.view.locator("table.results")

    def column(place: int) -> list[str]:
        cells = table.locator(f"tbody tr > :nth-child({place})")
        return [str(text) for text in cells.all_text_contents()]

    assert column(2) == ["tail drop", "CoDel", "tail drop", "CoDel"]
    head = table.get_by_role("button", name="delay", exact=True)
    head.press("Enter")
    sorted_up = column(2), column(1)
    order = sorted(results.cases, key=lambda case: case.metric("queue_delay_mean").mean)
    labels = [list(case.labels.values()) for case in order]
    assert sorted_up == ([each[1] for each in labels], [each[0] for each in labels])
    assert table.locator('th[aria-sort="ascending"]').count() == 1
    head.press("Enter")
    assert column(2) == sorted_up[0][::-1]
    opened.control("table-show").select_option("differences")
    place = 1 + table.locator("thead th").all_text_contents().index(
        next(
            text
            for text in table.locator("thead th").all_text_contents()
            if text.startswith("delay")
        )
    )
    found = column(place)
    assert found.count("–") == 2 and sum(text.startswith("−") for text in found) == 2
    opened.view.get_by_text("Columns (").click()
    before = table.locator("thead th").count()
    opened.control("column-queue_delay_p99").check()
    assert table.locator("thead th").count() == before + 1


def test_dark_light_and_paper(opened: Opened) -> None:
    def colour() -> str:
        return str(
            opened.view.evaluate(
                "() => document.querySelector('[data-plot=metric]').layout.paper_bgcolor"
            )
        )

    assert colour() == "#ffffff"
    opened.view.get_by_role("button", name="Dark").press("Enter")
    assert colour() != "#ffffff"
    dark = colour()
    opened.view.emulate_media(color_scheme="dark")
    assert colour() == dark
    printed = opened.view.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert colour() == dark  # as before it was printed


def test_hostile_names_do_nothing_in_a_browser(
    browser: Any, hostile: Results, tmp_path: Path
) -> None:
    opened = Opened(browser, page.page([hostile]), tmp_path / "page.html")
    assert opened.view.evaluate("() => window.hit") is None
    assert opened.view.locator("h1").text_content() == HOSTILE
    assert opened.view.locator(".legend label").nth(1).text_content().endswith(HOSTILE)
    # Plotly, too, shows it as it is.
    label = opened.view.locator("[data-plot=differences] .gtitle").text_content()
    assert label == "Difference from tail drop"
    opened.control("base").select_option(label=HOSTILE)
    label = opened.view.locator("[data-plot=differences] .gtitle").text_content()
    assert label == f"Difference from {HOSTILE}"
    assert opened.view.locator("img").count() == 0
    opened.close()


def test_results_without_a_run_have_a_page(results: Results) -> None:
    empty = Results(
        name="Nothing",
        description="",
        factors=results.factors,
        cases=tuple(replace(case, runs={}) for case in results.cases),
        folder=results.folder,
    )
    text = page.page([empty])
    assert "<h1>Nothing</h1>" in text and "Nothing was measured" in text
