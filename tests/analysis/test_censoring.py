"""What did not finish: counts of nothing, shares, quantiles, and comparisons that are refused."""

import json
import math
import re
import warnings
from pathlib import Path

import pytest

import redtail
from redtail import measured
from redtail.analysis import censoring
from redtail.analysis.stats import Estimate
from redtail.display.tables import summary_tables
from redtail.experiment import Toml
from redtail.measured import Measured
from redtail.page import answer, model
from redtail.tuning import aims

ZERO_PAGES = """
name = "Zero pages"
duration = "40 s"
warmup = "10 s"
replications = 10
[bottleneck]
rate = "2 Mbit/s"
delay = "20 ms"
queue = { kind = "fq-codel", limit = "200 packets" }
[[traffic]]
name = "web"
kind = "web"
model = "http1"
users = 3
return_delay = "20 ms"
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 8
return_delay = "20 ms"
[[traffic]]
name = "files"
kind = "transfer"
flows = 6
size = "2 MB"
return_delay = "20 ms"
start = "uniform 10..35 s"
"""

SURVIVORS = """
name = "Survivors"
# Before the first retransmission of a timeout arrives, at 16 ms.
duration = "15 ms"
replications = 3
[bottleneck]
rate = "25 Gbit/s"
delay = "1 us"
queue = { kind = "step", limit = "500 kB", threshold = "65 kB" }
[[traffic]]
name = "query"
kind = "transfer"
flows = 255
hosts = 255
size = "4 kB"
start = "10 ms"
tcp = "dctcp"
return_delay = "1 us"
access_rate = "25 Gbit/s"
[factors]
"bottleneck.queue.limit" = ["50 kB", "200 kB", "2 MB"]
"""


def run(text: str, out: Path) -> redtail.Results:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", redtail.RedtailWarning)
        return redtail.run(Toml(text), out=out)


@pytest.fixture(scope="module")
def zero_pages(tmp_path_factory: pytest.TempPathFactory) -> redtail.Results:
    return run(ZERO_PAGES, out=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def survivors(tmp_path_factory: pytest.TempPathFactory) -> redtail.Results:
    return run(SURVIVORS, out=tmp_path_factory.mktemp("runs"))


def test_a_count_is_zero_where_nothing_happened(zero_pages: redtail.Results) -> None:
    case = zero_pages.cases[0]
    pages = case.metric("web.pages")
    assert pages.n == 10
    assert pages.mean == pytest.approx(0.2)
    for name in ("web.responses", "web.connections", "ftp.stalls", "files.timeouts"):
        assert case.metric(name).n == 10, name


def test_a_time_says_from_how_many_replications_it_is_and_what_is_left_out(
    zero_pages: redtail.Results, tmp_path: Path
) -> None:
    found = zero_pages.cases[0].metric("web.page_time_mean")
    shares = zero_pages.cases[0].values("web.pages_unfinished")
    assert found.n == 1
    assert found.unfinished == pytest.approx(sum(shares) / 10)
    assert found.unfinished > 0.5
    assert found.no_interval == "nothing finished in 9 of 10 replications"
    as_json = json.loads(zero_pages.to_json())["cases"][0]["metrics"]["web.page_time_mean"]
    assert as_json["unfinished"] == found.unfinished
    assert as_json["n"] == 1
    table = zero_pages.to_arrow("cases").to_pylist()
    row = next(row for row in table if row["metric"] == "web.page_time_mean")
    assert row["unfinished"] == found.unfinished
    stored = redtail.load(zero_pages.folder).cases[0].metric("web.page_time_mean")
    assert stored.unfinished == found.unfinished


def test_the_table_does_not_rank_queues_by_what_they_finished(survivors: redtail.Results) -> None:
    small, medium, large = survivors.cases
    name = "query.completion_time_mean"
    assert small.metric(name).n == 0
    assert medium.metric(name).mean < large.metric(name).mean
    assert medium.metric(name).unfinished == pytest.approx(0.916, abs=0.01)
    [table] = summary_tables(survivors, 200)
    cells = {
        str(column.header).replace("\n", " ").split(" ", 1)[-1]: list(map(str, column._cells))
        for column in table.columns
    }
    means = next(texts for head, texts in cells.items() if head.startswith("completion "))
    assert means[0] == "not finished"
    assert re.search(r" of 8\.\d %$", means[1])
    assert " of " not in means[2]
    medians = next(texts for head, texts in cells.items() if head.startswith("completion p50"))
    assert medians[:2] == ["not finished", "not finished"]
    assert medians[2][0].isdigit()
    completed = next(texts for head, texts in cells.items() if head.startswith("completed"))
    assert len(completed) == 3
    assert "did not finish" in str(table.caption)


def test_a_queue_does_not_win_because_its_slow_answers_are_missing(
    survivors: redtail.Results,
) -> None:
    small, medium, large = survivors.cases
    for name in ("query.completion_time_mean", "query.completion_time_p50"):
        for case in (small, medium):
            assert censoring.why_incomparable(name, case.values) is not None
        assert censoring.why_incomparable(name, large.values) is None
    assert math.isnan(medium.metric("query.completion_time_p50").mean)
    assert 1e-4 < large.metric("query.completion_time_p50").mean < 1e-3


OVERLOAD = """
name = "Overload"
duration = "12 s"
warmup = "2 s"
replications = 4
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "quic"
kind = "arrivals"
gap = "exponential mean 14 ms"
size = "pareto mean 20 kB shape 1.5 max 2 MB"
tcp = "linux"
return_delay = "10 ms"
[factors]
"bottleneck.queue" = [
    { kind = "tail-drop", limit = "100 packets" },
    { kind = "tail-drop", limit = "20 packets" },
]
"""


def test_means_of_which_much_is_missing_are_not_comparable(tmp_path: Path) -> None:
    results = run(OVERLOAD, out=tmp_path)
    assert "quic.unanswered" in results.select()
    rows = results.compare(
        ["quic.response_time_mean", "quic.slowdown_mean", "quic.response_time_p50"]
    )
    mean, slowdown, _ = rows
    for row in (mean, slowdown):
        assert row.judged == "not comparable"
        assert row.p is None
        assert row.distinguishable is None
    assert mean.unjudged is not None
    assert "did not finish" in mean.unjudged.why
    assert "quic.response_time_p50" in mean.unjudged.why
    paragraphs = answer.paragraphs(results, ["quic.response_time_mean"], rows)
    assert all(line.verdict not in ("higher", "lower") for p in paragraphs for line in p.lines)


def test_nothing_is_said_of_what_did_not_finish_where_all_did(tmp_path: Path) -> None:
    text = SURVIVORS.replace('["50 kB", "200 kB", "2 MB"]', '["2 MB"]')
    results = run(text, out=tmp_path)
    assert results.cases[0].metric("query.completed").mean == 1
    shown = results.select()
    assert "query.completion_time_mean" in shown
    assert "query.completed" not in shown
    assert "query.completion_time_p50" not in shown
    assert results.select("query.completed") == ["query.completed"]


VIDEO = """
name = "Starved"
duration = "20 s"
replications = 2
[bottleneck]
rate = "20 kbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[traffic]]
name = "tv"
kind = "video"
users = 4
start = "uniform 0..2 s"
"""


def test_a_viewer_who_never_starts_is_in_a_metric(tmp_path: Path) -> None:
    case = run(VIDEO, out=tmp_path).cases[0]
    assert case.values("tv.not_started") == [1.0, 1.0]
    assert case.metric("tv.startup_delay_mean").unfinished == 1.0
    fast = VIDEO.replace("20 kbit/s", "20 Mbit/s")
    case = run(fast, out=tmp_path).cases[0]
    assert case.values("tv.not_started") == [0.0, 0.0]


def test_requests_of_the_warm_up_that_never_return_are_unanswered(tmp_path: Path) -> None:
    text = VIDEO.replace("replications = 2", 'replications = 2\nwarmup = "10 s"')
    case = run(text.replace("20 kbit/s", "10 kbit/s"), out=tmp_path).cases[0]
    # Each of the four users has asked once, before the period, and no segment has come.
    assert case.values("tv.responses") == [0.0, 0.0]
    assert case.values("tv.unanswered") == [1.0, 1.0]


def test_a_quantile_that_a_replication_does_not_show_has_no_mean() -> None:
    values = {"a.completed": [0.9, 0.4], "a.completion_time_p50": [1.0, math.nan]}
    name = "a.completion_time_p50"
    found = censoring.estimated(name, Estimate(1.0, None, 1), values.__getitem__)
    assert math.isnan(found.mean)
    assert found.no_interval is not None
    assert "1 of 2 replications" in found.no_interval
    assert censoring.cell(name, found, 1.0) == "not finished"


def test_the_page_shows_what_is_left_out(survivors: redtail.Results) -> None:
    page = json.dumps(model.section(survivors, 0).data, default=str)
    assert "not finished" in page
    assert " of 8" in page


@pytest.mark.parametrize("backend", ["live", "linux-tcp"])
def test_the_choice_of_metrics_knows_the_backend(backend: str) -> None:
    plan = redtail.check(Toml(ZERO_PAGES))
    name = "wakeup_error_p99"
    assert measured.shown(plan, [name], backend=backend) == [name]
    for absent in ("ftp.stalls", "ftp.duplicate_acks"):
        assert measured.shown(plan, [absent]) == [absent]
        with pytest.raises(redtail.SpecError, match="no run has"):
            measured.shown(plan, [absent], backend=backend)
    with pytest.raises(redtail.SpecError, match="no run has 'wakeup_error_p99'"):
        measured.shown(plan, [name])
    scenario = json.loads(plan.example(0))
    known = Measured.of([scenario], backend=backend)
    assert known is not None
    assert ("idle_share" in known.names) == (backend == "linux-tcp")


def test_a_difference_that_may_not_be_judged_has_no_value(survivors: redtail.Results) -> None:
    name = "query.completion_time_mean"
    rows = survivors.compare(name)
    assert {row.judged for row in rows} == {"not comparable"}
    assert all(math.isnan(row.difference.mean) for row in rows)
    assert all(each["difference"]["mean"] is None for each in rows.as_json()["comparisons"])
    for _, difference in survivors.differences(name):
        assert math.isnan(difference.mean)
        assert difference.no_interval is not None
    (section,) = [model.section(survivors, 1, [name])]
    lines = [line for each in section.answer for line in each.lines]
    assert lines and {line.verdict for line in lines} == {"not comparable"}
    assert all("did not finish" in line.text or "nothing finished" in line.text for line in lines)


def test_tuning_does_not_reach_a_mean_of_which_much_is_missing(survivors: redtail.Results) -> None:
    _, medium, large = survivors.cases
    aim = aims.Aim("query.completion_time_mean:min", "query.completion_time_mean", small=True)
    assert math.isnan(aim.reached([medium], "worst").mean)
    assert aim.reached([large], "worst").mean == pytest.approx(215e-6, rel=0.05)
