"""Each rule of `redtail advise` is put to a test, and the page has what was found."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import redtail
from redtail.lines.advice.candidates import QUEUES, candidate, variants
from redtail.lines.advice.objectives import OBJECTIVES

DOCS = Path(__file__).parents[2] / "docs"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "advice_rules", DOCS / "explanation" / "advice_rules.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["advice_rules"] = module
    spec.loader.exec_module(module)
    return module


script = _script()
PAGE = script.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", QUEUES)
def test_every_parameter_of_every_queue_has_a_rule_that_is_tried(kind: str) -> None:
    tried = {key for rule in script.RULES if rule.kind == kind for key in rule.keys}
    for line in (script.HOME, script.ASYMMETRIC, script.ADSL):
        ruled = candidate(kind, line, {"down": 4, "up": 4}, port=False)
        for each in variants(ruled, line):
            assert {key.name for key in (*each.down.keys, *each.up.keys)} <= tried


def test_shapers_and_overheads_are_tried_too() -> None:
    assert {"shaper", "overhead"} <= {key for rule in script.RULES for key in rule.keys}


@pytest.mark.parametrize("rule", script.RULES, ids=lambda rule: rule.name)
def test_the_page_has_each_rule_with_a_verdict(rule: script.Rule) -> None:  # type: ignore[name-defined]
    found = [chapter for chapter in PAGE.split("\n### ") if f". {rule.says}\n" in chapter]
    assert found
    for label in rule.instead:
        rows = re.findall(rf"^\| {re.escape(label)} \|.*\| ([^|]+) \|$", "\n".join(found), re.M)
        assert rows
        for verdict in rows:
            assert re.fullmatch(
                r"(helps|does not help)(, (and costs|but for) [a-z ]+)?|undecided|no difference",
                verdict,
            )


@pytest.mark.parametrize("rule", script.RULES, ids=lambda rule: rule.name)
def test_the_experiment_of_each_rule_is_accepted(rule: script.Rule) -> None:  # type: ignore[name-defined]
    text, wanted = script.simulated_rule(rule, "quick")
    plan = redtail.check(redtail.Toml(text))
    assert len(plan.cases) == len(wanted.candidates) * len(wanted.loads)
    assert len({str(each.down.shaped) + str(each.up.shaped) for each in wanted.candidates}) == len(
        wanted.candidates
    )


def test_fairness_between_hosts_speaks_for_its_rule(tmp_path: Path) -> None:
    (rule,) = (each for each in script.RULES if each.keys == ("isolation",))
    found = script.tried(rule, tmp_path, "quick")
    assert found.against("flows") == "helps"
    (fairness,) = (each for each in found.comparisons["flows"] if each.aim.name == "fairness")
    assert fairness.verdict == "worse" and fairness.difference.mean > 0.4
    assert "| flows |" in script.table(found)


def test_the_page_of_advice_has_the_margins_and_their_sources() -> None:
    page = (DOCS / "how-to" / "choose-a-queue.md").read_text(encoding="utf-8")
    for aim in OBJECTIVES.values():
        assert aim.margin.text in page
