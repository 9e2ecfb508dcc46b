"""The test cases of the BBR draft are what their page says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import redtail
from redtail import experiment
from redtail.studies import expect
from redtail.studies.checks import Answer

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "bbr-tests"
PAGE = (ROOT / "docs" / "explanation" / "bbr.md").read_text()
PRESETS = ("bbr3", "bbr3-google", "bbr")
_ROW = re.compile(r"^\| (?P<case>.+?) \| `(?P<file>[\w-]+\.toml)` \| (?P<verdicts>.+) \|$", re.M)
ROWS = {row["file"]: row for row in _ROW.finditer(PAGE)}


def test_every_file_is_on_the_page_and_names_its_case() -> None:
    assert sorted(ROWS) == sorted(path.name for path in FOLDER.glob("*.toml"))
    for name, row in ROWS.items():
        head = (FOLDER / name).read_text().partition("\n\n")[0]
        assert f'"{row["case"]}"' in " ".join(line.lstrip("# ") for line in head.splitlines())


@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_file_is_valid_and_every_expectation_says_where_it_comes_from(name: str) -> None:
    plan = redtail.check(FOLDER / name)
    assert plan.expected
    assert all(each.source for each in plan.expected)


def test_the_cases_of_the_page_are_those_of_the_draft() -> None:
    section = PAGE.partition("## The draft's test cases")[2]
    left_out = re.findall(r"^\| ([A-Z][^|]+?) \| [a-z]", section, re.M)
    names = [name for row in left_out if ".toml" not in row for name in row.split("; ")]
    assert len(set(names)) + len(ROWS) == 22


@pytest.mark.weekly
def test_the_verdicts_are_those_of_the_page(tmp_path: Path) -> None:
    plans = [experiment.prepare(FOLDER / name) for name in ROWS]
    for row, verdicts in zip(ROWS.values(), expect.run(plans, out=tmp_path), strict=True):
        found = {preset: "holds" for preset in PRESETS}
        for judged in verdicts.judged:
            for each in judged.rows:
                presets = {
                    verdicts.results.cases[case].labels["traffic.bbr.tcp.preset"]
                    for case in each.cases
                }
                for preset in presets:
                    if each.answer is Answer.NO:
                        found[preset] = "fails"
                    elif each.answer is Answer.UNDECIDED and found[preset] == "holds":
                        found[preset] = "undecided"
        assert " | ".join(found[preset] for preset in PRESETS) == row["verdicts"], row["file"]
