"""Tables of experiments with many like groups: one column for all of them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from redtail.analysis.case import CaseResult
from redtail.analysis.results import Results
from redtail.display.tables import summary_table
from redtail.store.folders import StoredRun


def _results(folder: Path, count: int) -> Results:
    values = {f"s{i}.goodput": 1e6 * (i + 1) for i in range(count)} | {"goodput": 7e6}
    case = CaseResult.of({}, {}, {0: StoredRun("0", folder, values, {}, {})}, ())
    return Results(name="many", description="", factors=[], cases=(case,), folder=folder)


def _printed(results: Results, metrics: tuple[str, ...] = ()) -> str:
    console = Console(width=118, record=True, file=io.StringIO())
    console.print(summary_table(results, 118, metrics=metrics))
    return console.export_text()


def test_many_groups_are_one_column(tmp_path: Path) -> None:
    text = _printed(_results(tmp_path, 501))
    assert len(text.splitlines()) < 12
    assert "s0 to s500:" in text
    assert "251 (1 to 501)" in text
    assert "the median of 501 groups, and from the least to the largest" in text


@pytest.mark.parametrize("count", [2, 8])
def test_some_groups_have_a_column_each(tmp_path: Path, count: int) -> None:
    text = _printed(_results(tmp_path, count))
    assert "s0:" in text and f"s{count - 1}:" in text and "median" not in text


def test_what_is_asked_for_by_name_has_a_column_each(tmp_path: Path) -> None:
    text = _printed(_results(tmp_path, 20), ("s*.goodput",))
    assert "s19:" in text and "median" not in text


def test_hops_of_a_chain_stay_apart(tmp_path: Path) -> None:
    values = {f"hop{i}.loss": 0.01 * i for i in range(1, 13)}
    case = CaseResult.of({}, {}, {0: StoredRun("0", tmp_path, values, {}, {})}, ())
    results = Results(name="hops", description="", factors=[], cases=(case,), folder=tmp_path)
    assert "median" not in _printed(results)
