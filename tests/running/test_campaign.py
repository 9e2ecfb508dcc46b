"""Several experiments as one; what a campaign will take; results as arrays with names."""

from __future__ import annotations

import re
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import redtail
from redtail.analysis.case import CaseResult
from redtail.analysis.results import Results
from redtail.cli import app
from redtail.errors import RedtailError, SpecError
from redtail.running.forecast import forecast
from redtail.store.folders import StoredRun

from conftest import FAKE_EXPERIMENT
from fake_native import FakeNative

OTHER = 'name = "Other"\nreplications = 2\n[factors]\nload = ["few", "many"]\n'
THIRD = 'name = "Third"\n[factors]\nload = [1, 2]\n'

REAL = """
name = "Small"
duration = "2 s"
warmup = "1 s"
replications = 4
[bottleneck]
rate = "1 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "20 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 2
[[case]]
name = "fast"
"bottleneck.rate" = "2 Mbit/s"
[[case]]
name = "short"
"bottleneck.queue" = { kind = "tail-drop", limit = "5 packets" }
[[case]]
name = "as it is"
"""


def test_a_campaign_is_its_experiments(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    campaign = redtail.Campaign([fake_file, redtail.Toml(OTHER)])
    states = []
    results = campaign.run(
        out=tmp_path / "runs",
        set={"seed": 7},
        jobs=1,
        progress=lambda state: states.append((state.done, state.total)),
    )
    assert list(results) == ["Fake experiment", "Other"]
    assert states[0] == (0, 16) and states[-1] == (16, 16)
    assert [done for done, _ in states] == sorted(done for done, _ in states)
    assert results["Other"].case(load="many").metric("mark").n == 2
    alone = redtail.run(redtail.Toml(OTHER), out=tmp_path / "alone", set={"seed": 7})
    assert results["Other"].to_json() == alone.to_json()
    assert len({run for run in fake.ran}) == 16
    again = campaign.run(out=tmp_path / "runs", set={"seed": 7})
    assert sum(each.reused for each in again.values()) == 16


def test_nobody_waits_for_the_last_runs_of_an_experiment(fake: FakeNative, tmp_path: Path) -> None:
    """Three experiments of one run each, and three runs that go on only when all have begun."""
    meet = threading.Barrier(3, timeout=600)
    fake.before_run = lambda number: meet.wait()
    one = [
        redtail.Toml(f'name = "{name}"\nreplications = 1\n[factors]\nload = ["{name}"]\n')
        for name in "abc"
    ]
    results = redtail.Campaign(one).run(out=tmp_path, jobs=3)
    assert [each.run_count for each in results.values()] == [1, 1, 1]


def test_a_round_of_a_stop_rule_that_ends_holds_nobody_up(tmp_path: Path) -> None:
    """Each experiment looks at its own runs alone, so all is as if it were run alone."""
    first = redtail.Toml(REAL)
    other = redtail.Toml(REAL.replace("Small", "Other").replace("flows = 2", "flows = 3"))
    rule = {"until": "goodput within 0.1 %", "at_least": 2, "at_most": 5}
    states: list[tuple[int, int]] = []
    results = redtail.Campaign([first, other]).run(
        out=tmp_path / "both",
        jobs=2,
        progress=lambda state: states.append((state.done, state.total)),
        **rule,
    )
    assert [done for done, _ in states] == sorted(done for done, _ in states)
    assert states[0] == (0, 12) and states[-1][0] == states[-1][1] == sum(
        each.run_count for each in results.values()
    )
    for name, source in (("Small", first), ("Other", other)):
        alone = redtail.run(source, out=tmp_path / "alone", **rule)
        assert results[name].to_json() == alone.to_json()
        assert results[name].unsure == alone.unsure
        for table in ("cases.parquet", "replications.parquet", "results.json"):
            read = [(each.folder / table).read_bytes() for each in (results[name], alone)]
            assert read[0] == read[1]


def test_what_goes_wrong_in_one_experiment_is_said_and_the_others_kept(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    campaign = redtail.Campaign([fake_file, redtail.Toml(OTHER), redtail.Toml(THIRD)])

    def fail(number: int) -> None:
        if number == 13:
            raise RuntimeError("no luck")

    fake.before_run = fail
    with pytest.raises(redtail.RunError, match=r"replication 0: .*no luck") as caught:
        campaign.run(out=tmp_path / "runs", replications=3, jobs=1)
    told = re.search(r"(\d+) of 24 runs are finished and kept in (\S+);", str(caught.value))
    assert told is not None
    assert told[2] == str(tmp_path / "runs")
    fake.before_run = lambda number: None
    results = campaign.run(out=tmp_path / "runs", replications=3, jobs=1, keep_going=True)
    assert sum(each.reused for each in results.values()) == int(told[1]) >= 12
    assert sum(each.run_count for each in results.values()) == 24

    def interrupt(number: int) -> None:
        if number == len(fake.ran) - 1 == begun + 14:
            fake.delay = 60.0
            signal.raise_signal(signal.SIGINT)

    begun = len(fake.ran)
    fake.before_run = interrupt
    with pytest.raises(redtail.Cancelled, match=r"14 of 24 runs are finished") as cancelled:
        campaign.run(out=tmp_path / "more", replications=3, jobs=1)
    assert (cancelled.value.kept, cancelled.value.total) == (14, 24)
    assert redtail.load(tmp_path / "more" / "fake-experiment").run_count == 12


def test_its_tables_are_one(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    campaign = redtail.Campaign(
        {"a": fake_file, "b": redtail.Toml(OTHER), "c": redtail.Toml(THIRD)}
    )
    results = campaign.run(out=tmp_path, replications=1)
    frame = results.to_pandas()
    assert frame["experiment"].tolist() == ["a"] * 4 + ["b"] * 2 + ["c"] * 2
    assert frame["load"].tolist()[4:] == ["few", "many", "1", "2"]
    assert frame["traffic.ftp.flows"].tolist()[:4] == [16, 64, 16, 64]
    assert frame["bottleneck.queue"].isna().tolist() == [False] * 4 + [True] * 4
    assert results.to_polars("cases").height == 8 * 13


def test_nothing_is_run_when_one_experiment_is_refused(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    same = redtail.Toml(FAKE_EXPERIMENT.replace("Fake experiment", "fake-experiment"))
    with pytest.raises(SpecError, match="'Fake experiment', has its results in the same folder"):
        redtail.Campaign([fake_file, same]).run(out=tmp_path)
    with pytest.raises(SpecError, match="no such file"):
        redtail.Campaign([fake_file, tmp_path / "none.toml"]).run(out=tmp_path)
    assert fake.ran == []
    with pytest.raises(SpecError, match="a list is wanted"):
        redtail.Campaign(str(fake_file))


def test_a_dry_run_shows_cases_and_makes_none(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(REAL)
    out = tmp_path / "runs"
    arguments = ["run", str(file), "--dry-run", "--out", str(out), "--jobs", "1"]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    first = told.stdout.splitlines()
    assert first[:5] == [
        "Small: 3 cases, 4 replications, 12 runs",
        "  fast: 0 runs stored",
        "  short: 0 runs stored",
        "  as it is: 0 runs stored",
        "stored:  0 of 12 runs are in the store already",
    ]
    assert "measured in one trial run of the first case" in told.stdout
    assert not out.exists()

    redtail.run(file, out=out, replications=3, set=["case.name=['fast', 'short']"])
    told = CliRunner().invoke(app, arguments)
    assert "stored:  6 of 12 runs are in the store already" in told.stdout
    assert "  short: 3 runs stored" in told.stdout
    assert "measured in 6 stored runs" in told.stdout


def test_a_forecast_is_work_per_packet_times_packets(tmp_path: Path) -> None:
    plan = redtail.check(redtail.Toml(REAL))
    found = forecast(plan, out=tmp_path, jobs=2)
    # 2 s at 1 Mbit/s, or 2 Mbit/s in one of the cases, in packets of 1500 B: four runs of each.
    packets = 4 * (2 + 1 + 1) * 2e6 / 8 / 1500
    assert found.seconds[1] == pytest.approx(found.seconds_per_packet * packets / 2, rel=0.02)
    assert found.runs == (12, 12)
    ruled = redtail.check(redtail.Toml(REAL), until="goodput within 5 %", at_least=2, at_most=8)
    found = forecast(ruled, out=tmp_path, jobs=1)
    assert found.runs == (6, 24)
    assert found.seconds[1] == pytest.approx(4 * found.seconds[0])


def test_named_cases_are_stored_and_read_back(tmp_path: Path) -> None:
    results = redtail.run(redtail.Toml(REAL), out=tmp_path)
    assert results.case(name="fast").title == "fast"
    again = redtail.load(results.folder)
    assert again.cases[0].settings == {"bottleneck.rate": "2 Mbit/s"}
    assert again.to_json() == results.to_json()
    assert results.to_pandas()["case.name"].tolist()[::4] == ["fast", "short", "as it is"]
    with pytest.warns(redtail.RedtailWarning, match=r"differ in bottleneck\.rate, which"):
        found = results.compare("queue_delay_mean", baseline="as it is")
    assert [(row.label, row.shared) for row in found] == [("fast", False), ("short", True)]


def test_arrays_have_a_dimension_per_factor(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    results = redtail.run(fake_file, out=tmp_path)
    found = results.to_xarray()
    delay = found["queue_delay_mean"]
    assert delay.dims == ("queue", "flows", "replication")
    assert delay.shape == (2, 2, 3)
    assert delay.attrs == {"long_name": "Mean queueing delay", "units": "s"}
    for case in results.cases:
        queue, flows = case.labels["bottleneck.queue"], case.factors["traffic.ftp.flows"]
        chosen = delay.sel(queue=queue, flows=flows)
        assert chosen.values.tolist() == case.values("queue_delay_mean")


def test_cases_that_are_no_grid_have_one_dimension(tmp_path: Path) -> None:
    cases = [
        CaseResult.of(
            {"bottleneck.rate": rate, "bottleneck.queue.limit": limit},
            {"bottleneck.rate": rate, "bottleneck.queue.limit": limit},
            {0: StoredRun("k", tmp_path, {"loss": 0.5}, {}, {})} if rate == "1" else {},
            (),
        )
        for rate, limit in (("1", "10"), ("2", "20"))
    ]
    results = Results(
        name="z",
        description="",
        factors=["bottleneck.rate", "bottleneck.queue.limit"],
        cases=tuple(cases),
        folder=tmp_path,
    )
    found = results.to_xarray()
    assert found["loss"].dims == ("case", "replication")
    assert found["limit"].values.tolist() == ["10", "20"]
    assert found["limit"].dims == ("case",)
    np.testing.assert_array_equal(found["loss"], [[0.5], [np.nan]])


def test_without_xarray_the_message_says_what_to_install(
    fake: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(RedtailError, match=r"pip install 'redtail\[notebook\]'"):
        redtail.run(fake_file, out=tmp_path, replications=1).to_xarray()
