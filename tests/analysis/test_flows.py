"""Every flow, distributions and time series: what runs keep, how it is read and drawn."""

from __future__ import annotations

import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import redtail
from redtail.analysis import distributions, stored
from redtail.analysis.results import Results
from redtail.cli import progress
from redtail.display import series
from redtail.engine import batches
from redtail.errors import Cancelled, RedtailError, RedtailWarning, StoreError
from redtail.progress import Progress
from redtail.running import pool, runner
from redtail.store import format, segments

MIXED = """
name = "Mixed"
duration = "8 s"
warmup = "2 s"
replications = 3

[bottleneck]
rate = "4 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "30 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
start = "uniform 0..1 s"

[[traffic]]
name = "cbr"
kind = "cbr"
rate = "200 kbit/s"
packet = "500 B"

[factors]
"bottleneck.queue" = [
    { kind = "tail-drop", limit = "30 packets", label = "tail drop" },
    { kind = "codel", limit = "100 packets", label = "CoDel" },
]
"""

SERIES = """
[series]
interval = "100 ms"
windows = true
"""


def run(folder: Path, text: str = MIXED, **options: Any) -> Results:
    return redtail.run(redtail.Toml(text), out=folder, **options)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(tmp_path_factory.mktemp("runs"), MIXED + SERIES)


def test_every_flow_has_a_row_and_rows_add_up_to_the_metrics(results: Results) -> None:
    flows = results.flows().to_pandas()
    assert len(flows) == 2 * 3 * 5
    for number, case in enumerate(results.cases):
        for replication, one in case.runs.items():
            ours = flows[(flows.case == number) & (flows.replication == replication)]
            assert list(ours.flow) == [0, 1, 2, 3, 4]
            ftp = ours[ours.group == "ftp"]
            assert ftp.goodput_bps.sum() == pytest.approx(one.metrics["ftp.goodput"])
            assert ftp.retransmissions.sum() == one.metrics["ftp.retransmissions"]
            cbr = ours[ours.group == "cbr"].iloc[0]
            assert math.isnan(cbr.rtt_min_s) and math.isnan(cbr.retransmissions)
            assert cbr.active_s == 6.0
    assert set(flows["bottleneck.queue"]) == {"tail drop", "CoDel"}
    assert (flows[flows.group == "ftp"].rtt_mean_s > flows[flows.group == "ftp"].rtt_min_s).all()
    some = results.flows(case=1, replication=2).to_pandas()
    same = flows[(flows.case == 1) & (flows.replication == 2)].reset_index(drop=True)
    assert some.equals(same)


def test_the_table_of_flows_is_a_file_with_units(results: Results) -> None:
    table = pq.read_table(results.cases[0].runs[0].folder / "flows.parquet")
    assert table.schema.field("goodput_bps").metadata == {b"unit": b"bit/s"}
    assert table["group"].to_pylist() == ["ftp"] * 4 + ["cbr"]


def test_a_run_with_more_flows_than_are_kept_has_no_table(tmp_path: Path) -> None:
    none = run(tmp_path, MIXED.replace("replications = 3", "replications = 3\nkeep_flows = 4"))
    with pytest.raises(StoreError, match="keep_flows = N in the experiment file"):
        none.flows()
    text = MIXED.replace("replications = 3", "replications = 3\nkeep_flows = 5")
    text = text.replace('"bottleneck.queue" = [', '"traffic.ftp.flows" = [4, 6]\n_unused = [')
    head, _, _ = text.partition("_unused")
    some = run(tmp_path, head)
    with pytest.warns(RedtailWarning, match="3 runs of 6 kept no table of flows"):
        assert some.flows().num_rows == 3 * 5
    assert some.metric_names == none.metric_names
    for first, second in zip(none.cases[0].runs.values(), some.cases[0].runs.values(), strict=True):
        assert first.metrics == second.metrics


def test_what_is_asked_for_must_exist(results: Results) -> None:
    for call, text in [
        (lambda: results.flows(case=7), r"case = 7: there are 2"),
        (lambda: results.flows(replication=9), r"replication = 9: there is no such run"),
        (
            lambda: results.cdf("ftp.goodput"),
            "'ftp.goodput' has no distribution; accepted: queue_d",
        ),
        (lambda: results.cdf("cbr.queue_dealy_p99"), "has no distribution; accepted"),
        (
            lambda: results.cdf("cpr.queue_delay"),
            "no run has the distribution cpr.queue_delay; near",
        ),
        (lambda: results.cdf("queue_delay", at=[-1.0]), r"at = -1.0: a number of at least 0"),
        (lambda: results.fairness_over_time(group="cbr"), "the series has flows of ftp"),
        (lambda: results.figure(kind="series", case=5), r"case = 5: there are 2"),
        (
            lambda: results.figure(kind="series", flows=[9]),
            "the series has no flow 9; it has 0 to 3",
        ),
        (lambda: results.figure("hop7", kind="series"), "'hop7' is not a queue"),
    ]:
        with pytest.raises(RedtailError, match=text):
            call()


def test_a_distribution_agrees_with_the_metrics(results: Results) -> None:
    for name in ("queue_delay", "ftp.queue_delay", "cbr.one_way_delay"):
        assert name in results.distributions
        for case in results.cases:
            exact = case.values(f"{name}_p95")
            # A bin is 2.3 % wide and the metric has three digits.
            at = [max(exact) * 1.03, min(exact) * 0.97]
            table = results.cdf(name, at=at).to_pandas()
            ours = table[table.case == results.cases.index(case)]
            above, below = ours["mean"]
            assert above >= 0.95 > below
            assert list(ours.n) == [3, 3]
    assert results.cdf("queue_delay_p99").equals(results.cdf("queue_delay"))


def test_a_cdf_rises_to_one_and_has_intervals_and_units(results: Results) -> None:
    for name in results.distributions:
        table = results.cdf(name)
        assert table.schema.field("value").metadata[b"unit"].decode() == table["unit"][0].as_py()
        frame = table.to_pandas()
        for _, case in frame.groupby("case"):
            assert case["value"].is_monotonic_increasing
            assert case["mean"].is_monotonic_increasing
            assert case["mean"].iloc[-1] == 1.0
    assert (results.cdf("flow_goodput").to_pandas()["ci95"] > 0).any()
    assert set(results.cdf("flow_goodput")["unit"].to_pylist()) == {"bit/s"}


def test_flows_are_distributed_one_by_one(results: Results) -> None:
    flows = results.flows(case=0).to_pandas()
    ftp = flows[flows.group == "ftp"]
    middle = float(ftp.goodput_bps.median())
    shares = [(run.goodput_bps <= middle).mean() for _, run in ftp.groupby("replication")]
    table = results.cdf("ftp.flow_goodput", at=[middle]).to_pandas()
    assert table[table.case == 0]["mean"].iloc[0] == pytest.approx(np.mean(shares))


def test_large_campaigns_keep_distributions_in_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = MIXED.replace("replications = 3", "replications = 3\nkeep_flows = 10")
    folders = run(tmp_path / "folders", asked)
    for text, kept in ((MIXED, False), (asked, True)):
        with monkeypatch.context() as patched:
            patched.setattr(runner, "LARGE", 6)
            patched.setattr(stored, "LARGE", 6)
            run(tmp_path / f"segments{kept}", text)
        large = redtail.load(tmp_path / f"segments{kept}" / "mixed")
        assert list((large.folder / segments.FOLDER).glob("*.parquet"))
        for name in ("queue_delay", "cbr.one_way_delay", "loss_gap"):
            assert large.cdf(name).equals(folders.cdf(name)), name
        if kept:
            assert large.flows().equals(folders.flows())
            assert large.distributions == folders.distributions
        else:
            with pytest.raises(StoreError, match="experiment of 1000 runs or more"):
                large.flows()


def test_a_segment_whose_tables_were_altered_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LARGE", 6)
    large = run(tmp_path, MIXED)
    (path,) = (large.folder / segments.FOLDER).glob("*.parquet")
    table = segments.read_segment(path)
    about = segments.about(table)
    about["tables"]["histograms"] = about["tables"]["histograms"][:2]
    table = table.replace_schema_metadata({b"redtail": json.dumps(about).encode()})
    data = segments._parquet(table)
    path.unlink()
    (path.parent / f"{format.segment_name(data)}.parquet").write_bytes(data)
    with (
        pytest.warns(RedtailWarning, match="the segment is damaged"),
        pytest.raises(StoreError, match="no run has a distribution of queueing delay"),
    ):
        redtail.load(large.folder).cdf("queue_delay")


def test_series_have_goodput_drops_delay_and_rates(results: Results) -> None:
    groups = results.series("groups").to_pandas()
    ftp = groups[groups.group == "ftp"]
    inside = ftp[(ftp.time_s > 2.0) & (ftp.time_s <= 7.9)].goodput_bps.mean()
    assert inside == pytest.approx(results.cases[0].runs[0].metrics["ftp.goodput"], rel=0.05)
    queue = results.series("queues").to_pandas()
    assert queue.drops.sum() > 0 and queue.arrivals.sum() > queue.drops.sum()
    flows = results.series("flows").to_pandas()
    last = flows[flows.time_s == flows.time_s.max()]
    assert (last.delivered_bytes > 0).all()
    with pytest.raises(StoreError, match="goodput = true"):
        run(results.folder.parent, MIXED).series("groups")


def test_fairness_over_time_is_jains_index(results: Results) -> None:
    table = results.fairness_over_time(every=1.0).to_pandas()
    flows = results.series("flows").to_pandas()
    delivered = flows.pivot_table(index="time_s", columns="flow", values="delivered_bytes")
    got = delivered.loc[5.0] - delivered.loc[4.0]
    expected = got.sum() ** 2 / (4 * (got**2).sum())
    row = table[np.isclose(table.time_s, 5.0)].iloc[0]
    assert row.fairness == pytest.approx(expected) and row.flows == 4


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("cdf", "queue_delay"),
        ("tail", "cbr.one_way_delay_p99"),
        ("cdf", "ftp.flow_goodput"),
        ("tail", "loss_gap"),
        ("fairness", "ftp"),
        ("series", "bottleneck"),
    ],
)
def test_figures_show_what_they_are_asked_for(results: Results, kind: str, metric: str) -> None:
    figure = results.figure(metric, kind=kind)
    axes = figure.axes
    if kind in ("cdf", "tail", "fairness"):
        labels = {line.get_label().strip() for line in axes[0].get_lines()}
        assert {"tail drop", "CoDel"} <= labels | {c.title for c in results.cases}
    if kind == "tail":
        assert axes[0].get_yscale() == "log"
    if kind == "cdf" and metric == "queue_delay":
        assert axes[0].get_xlabel() == "Queueing delay (ms)"
        # Read off the drawn line: the share at the median is one half.
        line = next(x for x in axes[0].get_lines() if x.get_label().strip() == "CoDel")
        median = 1e3 * results.cases[1].metric("queue_delay_p50").mean
        assert np.interp(median, *line.get_data()) == pytest.approx(0.5, abs=0.08)
    if kind == "series":
        titles = [each.get_title("left") for each in axes]
        assert titles == [
            "Goodput (Mbit/s)",
            "Queue at bottleneck (packets)",
            "Queueing delay at bottleneck (ms)",
            "Drops at bottleneck (per s)",
            "Congestion window (kB)",
            "Slow start threshold (kB)",
            "Smoothed round-trip time (ms)",
        ]
        assert [text.get_text() for text in axes[1].get_legend().get_texts()][-1].strip() == "limit"


def test_a_series_marks_limits_targets_rate_steps_and_phases(tmp_path: Path) -> None:
    text = MIXED.partition("[factors]")[0].replace(
        'queue = { kind = "tail-drop", limit = "30 packets" }',
        'queue = { kind = "codel", limit = "40 packets" }\n'
        'rate_changes = [{ at = "4 s", rate = "2 Mbit/s" }]',
    )
    text = text.replace('warmup = "2 s"', 'warmup = "2 s"\nphases = ["4 s", "6 s"]')
    results = run(tmp_path, text + '[series]\ninterval = "100 ms"\n', replications=1)
    goodput, _, delay, *_ = results.figure(kind="series").axes
    rate = next(x for x in goodput.get_lines() if "rate of" in str(x.get_label()))
    assert rate.get_ydata().tolist() == [4.0, 2.0, 2.0]
    target = next(x for x in delay.get_lines() if "target" in str(x.get_label()))
    assert set(target.get_ydata()) == {5.0}
    lines = [x.get_xdata()[0] for x in goodput.get_lines() if len(set(x.get_xdata())) == 1]
    assert lines == [4.0, 6.0]
    assert "rate step" in results.figure(kind="series").get_supxlabel()


def test_without_series_the_figure_says_how_to_get_them(tmp_path: Path) -> None:
    results = run(tmp_path, replications=2)
    with pytest.raises(StoreError, match=r"ask for it with \[series\]"):
        results.figure(kind="series")
    with pytest.raises(StoreError, match="windows = true"):
        results.figure(kind="fairness")


def test_units_suit_the_numbers() -> None:
    assert series._shown("bit/s", 5e5) == ("kbit/s", 1e-3)
    run_of = distributions._shares
    ends, begins = np.array([1.0, 2.0]), np.array([0.5, 1.0])
    assert run_of((ends, begins, np.array([1.0, 3.0])), np.array([0.75, 1.5])).tolist() == [
        0.125,
        0.625,
    ]


def test_progress_says_how_far_runs_are() -> None:
    state = Progress(total=4, started=time.monotonic() - 100.0)
    assert state.left_s is None and not state.slow
    state.running = ((15.0, 60.0), (30.0, 60.0))
    assert state.slow
    assert state.parts == pytest.approx(0.75)
    assert state.left_s == pytest.approx(100.0 / 0.75 * 3.25, rel=1e-3)
    assert progress._words(state)[:2] == ("0/4 runs", "25 %, 50 % simulated")
    state.running, state.done = (), 100
    assert progress._words(state)[1] == ""


def test_a_long_run_says_how_far_it_is() -> None:
    text = MIXED.partition("[factors]")[0].replace('duration = "8 s"', 'duration = "1000000 s"')
    scenario = redtail.check(redtail.Toml(text)).scenario(0, 0)
    token = batches.cancel_token()
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(batches.run_one, scenario, token)
        seen: set[float] = set()
        while len(seen) < 3:
            for now, end in token.running():
                assert end == 1_000_000.0 and 0.0 <= now < end
                seen.add(now)
        token.cancel()
        with pytest.raises(Cancelled):
            future.result()
    assert token.running() == []


def test_progress_is_told_during_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "TICK_S", 0.001)
    told = iter([((10.0, 60.0),), ((20.0, 60.0),)])
    monkeypatch.setattr(pool, "_inside", lambda token: next(told, ()))
    seen: list[tuple[tuple[float, float], ...]] = []
    text = MIXED.partition("[factors]")[0].replace('duration = "8 s"', 'duration = "600 s"')
    run(tmp_path, text, replications=1, progress=lambda state: seen.append(tuple(state.running)))
    assert [each for each in seen if each] == [((10.0, 60.0),), ((20.0, 60.0),)]
    assert seen[-1] == ()


@pytest.mark.parametrize("kind", ["queue_delay", "response_time"])
def test_a_bin_begins_where_the_one_before_it_ends(kind: str) -> None:
    about = distributions.KINDS[kind]
    assert about.per_decade is not None
    ends = [1e-3 * 10 ** (number / about.per_decade) for number in range(3)]
    found, starts, _ = distributions._binned(ends, [1, 2, 3], about)
    assert list(starts[1:]) == pytest.approx(ends[:-1]) and list(found) == ends
