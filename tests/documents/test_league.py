"""The league table of queues: every kind is in it, and the study still makes its page."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from redtail import experiment, facts, studies
from redtail.studies import pages, report

from conftest import ROOT

QUEUES = ROOT / "docs" / "queues"
PAGE = QUEUES / "league.md"
STUDY = studies.load("league")

#: The kind `plugin` is the user's own.
EXAMPLES = {kind: keys for kind, keys in facts.queue_examples().items() if kind != "plugin"}


def test_every_queue_is_in_the_table_once() -> None:
    rows = re.findall(r"^\| \[([^\]]+)\]\(\1\.md\)", PAGE.read_text(), re.M)
    assert sorted(rows) == sorted(EXAMPLES)


def test_the_best_calls_come_first() -> None:
    scores = [float(score) for score in re.findall(r"^\| \[\S+ \| (\S+) ±", PAGE.read_text(), re.M)]
    assert len(scores) > 30
    assert scores == sorted(scores, reverse=True)


def test_each_queue_has_the_parameters_of_its_page() -> None:
    plan = experiment.check(STUDY.comparisons[0].files[0])
    found = {
        case.labels["bottleneck.queue"]: case.factors["bottleneck.queue"] for case in plan.cases
    }
    assert list(found) == list(EXAMPLES)
    for kind, keys in EXAMPLES.items():
        groups = {"always": "bulk", "step": "calls"}  # what the examples of classes name
        if kind == "prio":
            groups = {"always": "calls", "step": "bulk"}
        for group, name in groups.items():
            keys = keys.replace(f'"{group}"', f'"{name}"')
        table = tomllib.loads(keys) if keys else {}
        assert found[kind] == {"kind": kind, **table}, kind


@pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")
def test_the_study_makes_the_rows_of_the_page(tmp_path: Path) -> None:
    kinds = ("tail-drop", "prio", "fq-codel", "dualpi2")
    folder = studies.definition.copy(STUDY, tmp_path / "league")[0].parent
    # The other queues take longer than all other tests of a file.
    plan = experiment.check(folder / "league.toml")
    rows = [plan.cases[number] for number in range(len(plan.cases))]
    kept = [case for case in rows if case.labels["bottleneck.queue"] in kinds]
    assert len(kept) == len(kinds)
    text = (folder / "league.toml").read_text()
    zipped = [f'"{key}" = {experiment.toml_value([case.factors[key] for case in kept])}'
              for key in kept[0].factors if key != "traffic.bulk.flows"]  # fmt: skip
    head = text[: text.index("[[factors.zip]]")]
    (folder / "league.toml").write_text("\n".join([head, "[[factors.zip]]", *zipped, ""]))
    done = studies.run(folder, scale="full", out=tmp_path / "out")
    (table,) = done.study.tables
    lines = report.table_lines(done, table)
    page = PAGE.read_text()
    assert pages.marks(page) == ["table: league"]
    assert len(lines) == 2 + len(kinds)
    assert [line for line in page.splitlines() if line in lines] == lines
