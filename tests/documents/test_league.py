"""The league table of queues: every kind is in it, and its script still makes its rows."""

from __future__ import annotations

import importlib
import re
from types import ModuleType

import pytest

from conftest import ROOT

QUEUES = ROOT / "docs" / "queues"


@pytest.fixture
def league(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(QUEUES)
    return importlib.import_module("league")


def test_every_queue_is_in_the_table_once(league: ModuleType) -> None:
    page = (QUEUES / "league.md").read_text()
    rows = re.findall(r"^\| \[([^\]]+)\]\(\1\.md\)", page, re.M)
    assert sorted(rows) == sorted(league.QUEUES)


def test_the_best_calls_come_first() -> None:
    page = (QUEUES / "league.md").read_text()
    scores = [float(score) for score in re.findall(r"^\| \[\S+ \| (\S+) ±", page, re.M)]
    assert len(scores) > 30
    assert scores == sorted(scores, reverse=True)


@pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")
@pytest.mark.parametrize("kind", ["tail-drop", "prio", "fq-codel", "dualpi2"])
def test_the_script_makes_the_row_of_the_page(league: ModuleType, kind: str) -> None:
    assert league.row(kind, league.run(kind)) in (QUEUES / "league.md").read_text()
