"""Users for an offered load: what is asked for, what is offered, and what is run for it.

Seeds are fixed, so a pass is a pass. The experiments are small: a hundred seconds of a slow link.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import redtail
from redtail import experiment
from redtail.analysis.loads import Calibrated
from redtail.analysis.results import Results
from redtail.errors import RedtailWarning, RunError
from redtail.progress import Progress
from redtail.running import calibration, runner
from redtail.running.calibration import calibrate

WEB = """
name = "Web"
duration = "130 s"
warmup = "30 s"
replications = 10
[bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "web"
kind = "web"
model = "empirical"
load = "90 %"
return_delay = "20 ms"
"""

SHORT = WEB.replace('"130 s"', '"12 s"').replace('"30 s"', '"2 s"').replace("4 Mbit", "1 Mbit")


def _run(text: str, out: Path, **options: object) -> Results:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RedtailWarning)  # small experiments are often degenerate
        return redtail.run(redtail.Toml(text), out=out, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def loaded(out: Path) -> Results:
    factors = """
[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "100 packets" },
  { kind = "codel" },
]
"traffic.web.load" = ["80 %", "90 %", "105 %"]
"""
    return _run(WEB + factors, out)


def test_what_is_offered_is_what_was_asked_for(loaded: Results) -> None:
    for case in loaded.cases:
        (load,) = case.loads
        assert load.text == case.labels["traffic.web.load"]
        assert case.metric("web.offered_load").mean == pytest.approx(load.asked, rel=0.02)
        assert set(case.values("web.users")) == {load.users}
    by_load = {case.loads[0].asked: case.loads[0].users for case in loaded.cases}
    assert list(by_load) == [0.8, 0.9, 1.05]
    assert by_load[0.8] < by_load[0.9] < by_load[1.05]


@pytest.mark.parametrize(
    "model",
    [
        'model = "feldmann"',  # sizes and numbers of objects without a variance
        'model = "http1"',  # users who think after a page, however long that took
        'model = "request-think"',  # what is left of a connection is used for the next page
    ],
    ids=["feldmann", "http1", "request-think"],
)
def test_any_law_offers_what_was_asked_for(model: str, tmp_path: Path) -> None:
    results = _run(WEB.replace('model = "empirical"', model), tmp_path)
    assert results.cases[0].metric("web.offered_load").mean == pytest.approx(0.9, rel=0.02)


def test_a_link_that_holds_nobody_up_carries_the_load(tmp_path: Path) -> None:
    # On a nearly empty link users find what they find on an unconstrained one, so that what the
    # engine measures there, in each replication, is what was offered. What is left is a page that
    # is still on its way at the end of the run.
    results = _run(WEB.replace('"90 %"', '"5 %"').replace('"4 Mbit/s"', '"40 Mbit/s"'), tmp_path)
    case = results.cases[0]
    pairs = zip(case.values("web.offered_load"), case.values("web.utilization"), strict=True)
    for offered, carried in pairs:
        assert carried == pytest.approx(offered, rel=0.01)


def test_data_on_the_way_back_loads_the_link_back(tmp_path: Path) -> None:
    link = 'return = { rate = "2 Mbit/s", delay = "20 ms", queue = { kind = "codel" } }\n'
    text = WEB.replace("[[traffic]]", f"{link}[[traffic]]", 1)
    results = _run(text + 'direction = "reverse"\n', tmp_path)
    (load,) = results.cases[0].loads
    assert load.link == "return"
    assert results.cases[0].metric("web.offered_load").mean == pytest.approx(0.9, rel=0.02)
    assert results.cases[0].metric("return.utilization").mean > 0.7


def test_users_are_found_once(loaded: Results, out: Path) -> None:
    runs = list((out / "calibrations").glob("*/scenario.json"))
    # Both queues share them; some trials for each of three loads, of ten runs each.
    assert len(runs) % calibration.REPLICATIONS == 0
    assert 3 <= len(runs) / calibration.REPLICATIONS <= 12
    seen: list[Progress] = []
    again = _run(WEB, out, progress=seen.append)
    assert set((out / "calibrations").glob("*/scenario.json")) == set(runs)
    assert again.cases[0].loads == loaded.case(queue="tail-drop", load="90 %").loads
    assert again.reused == 10  # the very runs of that case
    assert any("calibrated: web 90 % of bottleneck = " in note for note in seen[-1].notes)


def test_a_run_has_the_users_and_no_load(loaded: Results, out: Path) -> None:
    case = loaded.case(queue="tail-drop", load="105 %")
    scenario = json.loads((case.runs[0].folder / "scenario.json").read_bytes())
    assert scenario["traffic"][0]["users"] == case.loads[0].users
    assert "load" not in scenario["traffic"][0]
    given = WEB.replace('load = "90 %"', f"users = {case.loads[0].users}")
    assert _run(given, out).reused == 10


def test_results_that_are_read_back_know_their_loads(tmp_path: Path) -> None:
    case = _run(SHORT, tmp_path, replications=2).cases[0]
    (same,) = redtail.load(tmp_path / "web").cases
    assert same.loads == case.loads != ()
    assert same.metrics == case.metrics


def test_more_replications_do_not_change_the_users(loaded: Results, out: Path) -> None:
    for replications in (2, 12):
        results = _run(WEB, out, replications=replications)
        (load,) = results.cases[0].loads
        assert load.users == loaded.case(queue="tail-drop", load="90 %").loads[0].users
        assert sorted(load.offered) == list(range(replications))
        assert results.cases[0].metric("web.offered_load").n == replications


def test_a_load_beside_its_users_is_refused(tmp_path: Path) -> None:
    with pytest.raises(redtail.SpecError, match="accepted: one of the two"):
        _run(WEB + "users = 7\n", tmp_path)


def test_users_who_never_come_offer_nothing(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="offer nothing between the warm-up and the end"):
        _run(WEB + 'start = "20 s"\nstop = "21 s"\n', tmp_path)


def test_a_capture_is_of_the_run_with_the_users(tmp_path: Path) -> None:
    results = _run(SHORT, tmp_path / "runs", replications=1)
    captured = redtail.capture(redtail.Toml(SHORT), {"bottleneck": tmp_path / "a.pcapng"})
    assert captured.metrics["web.users"] == results.cases[0].loads[0].users
    assert captured.metrics["utilization"] == results.cases[0].metric("utilization").mean


def _trials(load_of: dict[int, float] | None, asked: float, estimate: int) -> tuple[int, list[int]]:
    """Search for users on a made-up network; returns what was found, and what was tried."""
    search = calibration._Search(asked, estimate)
    tried = []
    while search.next:
        users = search.next
        tried.append(users)
        search.learn(users, load_of[users] if load_of else 0.003 * users)
    return search.best, tried


def test_the_search_is_short_where_the_load_is_proportional() -> None:
    assert _trials(None, 0.9, 300) == (300, [300])
    assert _trials(None, 0.9, 200) == (300, [200, 300])
    # No number of users is nearer: two of them offer 0.6 %, one 0.3 %.
    assert _trials(None, 0.005, 10)[0] == 2


def test_the_search_ends_where_one_user_makes_all_the_difference() -> None:
    load_of = {users: 0.1 + (0.9 if users >= 37 else 0.001 * users) for users in range(1, 2000)}
    found, tried = _trials(load_of, 0.8, 20)
    assert len(tried) <= calibration.TRIALS
    assert len(tried) == len(set(tried))
    assert found >= 37  # 1.0 is nearer than 0.136


def test_calibrating_nothing_runs_nothing() -> None:
    plan = experiment.check(redtail.Toml(WEB.replace('load = "90 %"', "users = 3")))

    def measure(_: object) -> list[float | None]:
        raise AssertionError

    assert calibrate(plan, measure) == (plan, [()])
    assert runner.calibrated(plan)[0] is plan


def test_what_was_found_survives_json() -> None:
    found = Calibrated("web", "bottleneck", 0.9, "90 %", 1043, {0: 0.89, 10: 0.91})
    assert Calibrated.from_json(json.loads(json.dumps(found.as_json()))) == found
