"""The runner knows backends by their interface alone."""

from __future__ import annotations

import json
import pickle
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import redtail
from redtail import backends
from redtail.backends import Refusal
from redtail.backends.sim import Sim
from redtail.cli import app
from redtail.engine import batches, plans
from redtail.errors import InvalidRun, RedtailWarning, RunError, SpecError
from redtail.outcomes import Outcome
from redtail.store.format import run_key

from fake_native import FakeNative


class Other:
    """A backend of this file, which measures what the fake engine does, or misbehaves."""

    name = "other"
    at_once: int | None = None
    own_metrics: Sequence[str] = ()

    def __init__(self) -> None:
        self.refusals: list[Refusal] = []
        self.wrong: dict[int, RunError] = {}
        self.ran = 0
        self.kernel = "6.1"
        self.together = self.most_together = 0
        self.lock = threading.Lock()

    def lacks(self, metric: str) -> bool:
        return False

    def identity(self) -> str:
        return f"kernel {self.kernel}"

    def refuse(self, plan: plans.Plan) -> Sequence[Refusal]:
        return self.refusals

    def cancel_token(self) -> backends.Cancel:
        return batches.cancel_token()

    def run(
        self, scenario: str, cancel: Any = None, queues: Any = None, traces: Any = None
    ) -> Outcome:
        with self.lock:
            number, self.ran = self.ran, self.ran + 1
            self.together += 1
            self.most_together = max(self.most_together, self.together)
        try:
            time.sleep(0.005)
            if number in self.wrong:
                raise self.wrong[number]
            return batches.run_one(scenario, cancel)
        finally:
            with self.lock:
                self.together -= 1


@pytest.fixture
def other(fake: FakeNative, monkeypatch: pytest.MonkeyPatch) -> Other:
    backend = Other()
    monkeypatch.setitem(backends.KNOWN, "other", lambda: backend)
    return backend


def test_runs_and_results_say_which_backend_made_them(
    other: Other, fake_file: Path, tmp_path: Path
) -> None:
    results = redtail.run(fake_file, out=tmp_path, backend="other")
    assert other.ran == 12 and results.backend == "other"
    assert json.loads((results.folder / "results.json").read_text())["backend"] == "other"
    assert redtail.load(results.folder).backend == "other"
    manifest = results.cases[0].runs[0].manifest
    assert (manifest["backend"], manifest["code_version"]) == ("other", "kernel 6.1")
    # Its runs are not those of `sim`, nor those of another kernel.
    assert redtail.run(fake_file, out=tmp_path, backend="other").reused == 12
    other.kernel = "6.2"
    assert redtail.run(fake_file, out=tmp_path, backend="other").reused == 0
    assert redtail.run(fake_file, out=tmp_path).reused == 0


def test_results_of_two_backends_do_not_replace_each_other(
    other: Other, fake_file: Path, tmp_path: Path
) -> None:
    first = redtail.run(fake_file, out=tmp_path)
    kept = (first.folder / "results.json").read_bytes()
    second = redtail.run(fake_file, out=tmp_path, backend="other")
    assert (first.folder.name, second.folder.name) == ("fake-experiment", "fake-experiment@other")
    assert (first.folder / "results.json").read_bytes() == kept
    assert (first.replaced, second.replaced) == (0, 0)
    found = [redtail.load(results.folder).backend for results in (first, second)]
    assert found == ["sim", "other"]
    words = ["runs", "show", "fake-experiment@other", "--json", "--out", str(tmp_path)]
    assert json.loads(CliRunner().invoke(app, words).stdout)["in_results"] == 12


def test_keys_of_sim_are_what_they_were(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    results = redtail.run(fake_file, out=tmp_path)
    scenario = redtail.check(fake_file).scenario(0, 0)
    assert results.cases[0].runs[0].folder.name == run_key(scenario, "fake-1", "sim")
    assert redtail.run(fake_file, out=tmp_path, backend="sim").reused == 12
    assert (Sim.name, Sim().identity()) == ("sim", "fake-1")


def test_an_unknown_backend_is_refused_with_those_that_exist(
    other: Other, fake_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    accepted = "accepted: sim, live, live-tc, linux, linux-tcp, other"
    with pytest.raises(SpecError, match=f"'none': there is no such backend; {accepted}"):
        redtail.run(fake_file, out=out, backend="none")
    for more in ([], ["--dry-run"]):
        words = ["run", str(fake_file), "--backend", "none", "--out", str(out), *more]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 2 and accepted in done.output
    assert not out.exists()


def test_what_a_backend_cannot_do_is_refused_before_any_run(
    other: Other, fake_file: Path, tmp_path: Path
) -> None:
    other.refusals = [
        Refusal("bottleneck.queue.kind", "there is no red here; accepted: tail-drop"),
        Refusal("bottleneck.rate", "100 Gbit/s is too fast; accepted: up to 1 Gbit/s"),
    ]
    out = tmp_path / "runs"
    with pytest.raises(SpecError) as refused:
        redtail.run(fake_file, out=out, backend="other")
    assert refused.value.key == "bottleneck.queue.kind"
    for text in (str(fake_file), "backend other", "bottleneck.rate: 100 Gbit/s is too fast"):
        assert text in str(refused.value)
    assert other.ran == 0 and not out.exists()


def test_a_failing_backend_fails_as_the_engine_does(
    other: Other, fake_file: Path, tmp_path: Path
) -> None:
    other.wrong = {4: RunError("the virtual machine did not start")}
    with pytest.raises(RunError, match="the virtual machine did not start") as failed:
        redtail.run(fake_file, out=tmp_path, backend="other", jobs=1)
    assert "--backend other" in str(failed.value)
    assert redtail.run(fake_file, out=tmp_path, backend="other").run_count == 12


def test_an_invalid_run_is_logged_left_out_and_made_again(
    other: Other, fake_file: Path, tmp_path: Path
) -> None:
    other.wrong = {4: InvalidRun("sent 3 ms late", {"goodput": 12345.0})}
    with pytest.warns(RedtailWarning, match="the run is not valid: sent 3 ms late"):
        results = redtail.run(fake_file, out=tmp_path, backend="other", jobs=1)
    # The others were made, without being asked to keep going.
    assert other.ran == 12
    assert (results.run_count, results.failed) == (11, 1)
    (failure,) = results.failures
    assert failure.log is not None
    log = failure.log.read_text()
    assert "sent 3 ms late" in log and '"goodput": 12345.0' in log and "backend other" in log
    assert all(12345.0 not in case.column("goodput") for case in results.cases)

    again = redtail.run(fake_file, out=tmp_path, backend="other")
    assert (again.run_count, again.reused, again.failed) == (12, 11, 0)


def test_the_command_tells_of_an_invalid_run(other: Other, fake_file: Path, tmp_path: Path) -> None:
    other.wrong = {0: InvalidRun("sent 3 ms late")}
    words = ["run", str(fake_file), "--backend", "other", "--no-figures", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert "sent 3 ms late" in done.output


def test_an_invalid_run_crosses_to_another_process_with_what_it_measured() -> None:
    error = pickle.loads(pickle.dumps(InvalidRun("late", {"goodput": 1.0})))
    assert str(error) == "the run is not valid: late" and error.metrics == {"goodput": 1.0}


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_backend_limits_how_many_runs_are_made_at_once(
    at_once: int, other: Other, fake_file: Path, tmp_path: Path
) -> None:
    other.at_once = at_once
    redtail.run(fake_file, out=tmp_path, backend="other", jobs=4)
    assert other.most_together == at_once


def test_a_file_names_its_backend_and_the_option_takes_its_place(
    other: Other, fake_file: Path, tmp_path: Path
) -> None:
    fake_file.write_text(
        fake_file.read_text().replace("replications", 'backend = "other"\nreplications', 1)
    )
    results = redtail.run(fake_file, out=tmp_path)
    assert other.ran == 12 and results.backend == "other"
    assert redtail.run(fake_file, out=tmp_path, backend="sim").backend == "sim"
    assert other.ran == 12


def test_a_file_with_an_unknown_backend_is_refused_when_it_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(_with_backend("life"))
    text = rf'{file}: backend = "life": there is no such backend; accepted: sim, live, live-tc'
    with pytest.raises(SpecError, match=text):
        redtail.check(file)


_FILE = """
name = "x"
duration = "2 s"
replications = 1
traffic = [{ name = "ftp", kind = "bulk", flows = 1 }]

[bottleneck]
rate = "1 Mbit/s"
delay = "1 ms"
queue = { kind = "tail-drop", limit = "9 packets" }
"""


def _with_backend(name: str) -> str:
    return f'backend = "{name}"' + _FILE


def test_the_backend_of_a_file_is_no_part_of_its_scenarios(tmp_path: Path) -> None:
    plain = redtail.check(redtail.Toml(_FILE))
    named = redtail.check(redtail.Toml(_with_backend("live")))
    assert (plain.backend, named.backend) == (None, "live")
    assert plain.scenario(0, 0) == named.scenario(0, 0)


def test_experiments_of_two_backends_cannot_be_run_together() -> None:
    plans = [redtail.check(redtail.Toml(_with_backend(name))) for name in ("sim", "live")]
    with pytest.raises(SpecError, match="name the backends sim, live; accepted: one for all"):
        backends.chosen(None, plans)
    assert backends.chosen("sim", plans) == "sim"
