"""The guard of instructions a packet: what it runs, and when it fails."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from redtail.engine import plans

BENCHES = Path(__file__).parents[2] / "benches"


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHES)
    return importlib.import_module("instructions")


def test_a_row_fails_when_it_takes_more_than_the_bound_more(guard: ModuleType) -> None:
    known = {"a": 3000.0, "b": 2800.0}
    assert guard.judge({"a": 3089.0, "b": 2000.0}, known) == []
    (fault,) = guard.judge({"a": 3091.0, "b": 2800.0}, known)
    assert "row a: 3091 instructions a packet, +3.0% of 3000" in fault


def test_each_guarded_row_has_a_count_and_a_scenario_that_can_be_shortened(
    guard: ModuleType,
) -> None:
    known = tomllib.loads((BENCHES / "instructions.toml").read_text())["rows"]
    assert set(known) == set(guard.GUARDED)
    for row in guard.GUARDED:
        text = guard.shortened((BENCHES / "scenarios" / guard.ROWS[row][1]).read_text())
        plain = tomllib.loads(text)
        assert (plain["duration"], plain["warmup"]) == (guard.DURATION, guard.WARMUP)
        plans.plan(text).scenario(0, 0)  # raises where it is no valid experiment


def test_a_scenario_without_a_duration_is_refused(guard: ModuleType) -> None:
    with pytest.raises(ValueError, match="0 lines with duration"):
        guard.shortened('warmup = "1 s"\n')
