"""The scenarios of ``reference/bbr``, as experiment files that can be run.

A kernel's runs of BBR in these networks are in ``reference/linux-more.json`` (``bbr_1_pfifo100``,
``bbr_2_cubic_2_pfifo300``, ``bbr_4_pfifo50``), with which ``test_linux_more.py`` compares.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_linux_reference import run

FILES = sorted((Path(__file__).parent / "bbr").glob("*.toml"))


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
