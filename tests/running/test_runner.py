"""Order, cores, interruption, failure."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import redtail
from redtail.errors import Cancelled, RedtailWarning, RunError, SpecError

from conftest import FAKE_EXPERIMENT
from fake_native import FakeNative


def test_threads_do_not_change_results(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    one = redtail.run(fake_file, out=tmp_path / "one", jobs=1)
    four = redtail.run(fake_file, out=tmp_path / "four", jobs=4)
    assert one.to_json() == four.to_json()
    for path in sorted((tmp_path / "one").rglob("*.parquet")):
        assert (
            path.read_bytes()
            == (tmp_path / "four" / path.relative_to(tmp_path / "one")).read_bytes()
        )


def test_runs_go_on_at_the_same_time(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    meet = threading.Barrier(3, timeout=600)
    fake.before_run = lambda number: meet.wait() if number < 3 else None
    assert redtail.run(fake_file, out=tmp_path, jobs=3).run_count == 12


def test_every_case_has_a_first_replication_before_any_has_a_second(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    redtail.run(fake_file, out=tmp_path, jobs=1)
    assert len({run.partition('"case"')[2] for run in fake.ran[:4]}) == 4


def test_an_interrupted_experiment_goes_on_where_it_was(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    fake.delay = 0.02

    def interrupt(number: int) -> None:
        if number == 6:
            fake.delay = 60.0  # only cancelling ends it
            signal.raise_signal(signal.SIGINT)

    fake.before_run = interrupt
    with pytest.raises(Cancelled) as caught:
        redtail.run(fake_file, out=tmp_path, jobs=2)
    kept = caught.value.kept
    assert 5 <= kept <= 6
    assert f"{kept} of 12 runs are finished and kept" in str(caught.value)
    assert "the same command goes on" in str(caught.value)

    fake.before_run = lambda number: None
    fake.delay = 0.0
    fake.ran.clear()
    assert redtail.run(fake_file, out=tmp_path).reused == kept
    assert len(fake.ran) == 12 - kept


def test_a_failing_run_stops_the_rest_and_says_which(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    class Panic(BaseException):
        """Rust's panics arrive as something that is not an Exception."""

    def fail(number: int) -> None:
        if number == 5:
            raise Panic("index out of bounds")

    fake.before_run = fail
    with pytest.raises(RunError, match=r"RED|tail drop.*replication 1.*index out of bounds"):
        redtail.run(fake_file, out=tmp_path, jobs=1)
    assert len(fake.ran) < 12


def test_a_failing_run_does_not_lose_what_ended_at_the_same_time(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    class AtOnce(Executor):
        """All runs that are handed out together have ended when the pool looks at them."""

        def submit(self, call: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(call(*args, **kwargs))
            return future

    def fail(number: int) -> None:
        if number == 0:
            raise RuntimeError("no luck")

    fake.before_run = fail
    with pytest.raises(RunError, match="11 of 12 runs are finished and kept"):
        redtail.run(fake_file, out=tmp_path, jobs=12, executor=AtOnce())
    assert redtail.run(fake_file, out=tmp_path).reused == 11


def test_keep_going_makes_the_other_runs(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    def fail(number: int) -> None:
        if number == 5:
            raise RuntimeError("no luck")

    fake.before_run = fail
    with pytest.warns(RedtailWarning, match="no luck"):
        results = redtail.run(fake_file, out=tmp_path, jobs=1, keep_going=True)
    assert results.run_count == 11
    assert sorted(len(case.runs) for case in results.cases) == [2, 3, 3, 3]
    assert min(case.metric("goodput").n for case in results.cases) == 2


def test_progress_counts_reused_and_finished_runs(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    redtail.run(fake_file, out=tmp_path, replications=1)
    seen: list[tuple[int, int]] = []
    redtail.run(
        fake_file, out=tmp_path, progress=lambda state: seen.append((state.done, state.total))
    )
    assert seen[0] == (4, 12)
    assert seen[-1] == (12, 12)


def test_any_executor_can_run_scenarios(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    class Counting(ThreadPoolExecutor):
        submitted = 0

        def submit(self, *args: object, **kwargs: object) -> Future[object]:  # type: ignore[override]
            self.submitted += 1
            return super().submit(*args, **kwargs)  # type: ignore[arg-type]

    with Counting(1) as executor:
        results = redtail.run(fake_file, out=tmp_path, executor=executor)
        assert executor.submitted == 12
    assert results.run_count == 12


def test_warnings_of_the_plan_are_passed_on(fake: FakeNative, tmp_path: Path) -> None:
    source = redtail.Toml('warnings = ["check this"]\n' + FAKE_EXPERIMENT)
    with pytest.warns(RedtailWarning, match="check this"):
        redtail.run(source, out=tmp_path, replications=1)


def test_text_is_not_taken_for_a_path() -> None:
    with pytest.raises(SpecError, match=r"redtail\.Toml\(text\)"):
        redtail.check('name = "x"\n')


def test_a_missing_native_module_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "redtail._native", None)
    with pytest.raises(redtail.RedtailError, match="make setup"):
        redtail.check("examples/quickstart.toml")
