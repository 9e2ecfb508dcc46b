"""BBR beside the kernel's: the scenarios of ``reference/bbr``, as experiment files.

The kernel's runs of them are to come. Those that ``reference/linux.json`` then has by a scenario's
name are compared with ours, within the tolerances of the other scenarios; until then each is run
for a short time, so that the files stay what can be run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from test_linux_reference import SCENARIOS, assert_agrees, run

FILES = sorted((Path(__file__).parent / "reference" / "bbr").glob("*.toml"))
MEASURED = [file for file in FILES if file.stem in SCENARIOS]


def test_the_scenarios_are_named_as_their_files() -> None:
    assert len(FILES) == 3
    for file in FILES:
        assert f'name = "{file.stem}"' in file.read_text()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_scenario_fills_the_link(file: Path) -> None:
    text = file.read_text().replace('"120 s"', '"40 s"')
    (metrics,) = run(text, seeds=1)
    assert metrics["utilization"] > 0.95
    assert metrics["bbr.goodput"] > 1e6


@pytest.mark.parametrize("file", MEASURED, ids=lambda file: file.stem)
def test_bbr_flows_agree_with_linux(file: Path) -> None:
    assert_agrees(file.stem, run(file.read_text()))
