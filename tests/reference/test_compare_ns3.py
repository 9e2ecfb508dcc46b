"""The comparison with ns-3: what of it needs no ns-3."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import redtail

PEERS = Path(__file__).parents[2] / "benches" / "peers"


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PEERS))
    spec = importlib.util.spec_from_file_location("compare_ns3", PEERS / "compare_ns3.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "compare_ns3", module)
    spec.loader.exec_module(module)
    return module


def test_without_ns3_it_says_what_is_missing(
    compare: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.modules["run"], "_NS3_HEADERS", Path("/nowhere"))
    assert compare.main([]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "skipped, ns-3: no headers (Debian: apt install libns3-dev)\n"


@pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")
def test_every_scenario_is_one_that_redtail_accepts(compare: ModuleType, tmp_path: Path) -> None:
    settings = [*compare.SCENARIOS.values(), *(each.setting for each in compare.DIFFERENCES)]
    assert len(settings) > 20
    for index, setting in enumerate(settings):
        file = tmp_path / f"{index}.toml"
        file.write_text(setting.for_redtail(1))
        redtail.check(file)


def test_a_tolerance_is_relative_or_absolute(compare: ModuleType) -> None:
    assert compare.agrees("loss", 0.0009, 0.0)
    assert compare.agrees("loss", 0.0215, 0.0200)
    assert not compare.agrees("loss", 0.0225, 0.0200)
    assert not compare.agrees("goodput", 9.6e6, 9.8e6)
