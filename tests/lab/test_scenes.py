"""The scenes of the laboratory show what their texts say.

A scene's table `[expect]` has what its five lines say, each expectation with the number of its
line in front. With every push the first run of each case is looked at. Its seed is fixed, so chance
raises no alarm; a change that only alters random numbers raises one in a scene with a probability
of some 2 % (in 2 of 11 scenes with ten replications each, one replication broke a bound). Each week
all ten replications are judged: then what is right fails with a probability of at most 5 % (Holm's
correction, as in `redtail expect`).
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from redtail import experiment
from redtail.studies import expect
from redtail.studies.definition import Judgement

ROOT = Path(__file__).parents[2]
SCENES = ROOT / "lab" / "scenes"
NAMES: list[str] = json.loads((SCENES / "index.json").read_text())
NUMBERED = re.compile(r"(?P<line>Q?\d) \S")


def about(name: str) -> dict[str, Any]:
    """What a scene says, and the questions to it."""
    found: dict[str, Any] = json.loads((SCENES / f"{name}.json").read_text())
    return found


TRIED = [
    (name, number)
    for name in NAMES
    for number, question in enumerate(about(name)["questions"])
    if "try" in question
]


def test_every_scene_is_in_the_menu() -> None:
    assert sorted(NAMES) == sorted(path.stem for path in SCENES.glob("*.toml"))
    assert {*NAMES, "index"} == {path.stem for path in SCENES.glob("*.json")}


@pytest.mark.parametrize("name", NAMES)
def test_a_scene_has_five_lines_two_questions_and_sources(name: str) -> None:
    said = about(name)
    assert len(said["look"]) == 5
    assert all(text.endswith(".") for text in [said["summary"], *said["look"]])
    assert len(said["questions"]) == 2
    assert all(each["question"] and each["answer"] for each in said["questions"])
    assert said["sources"]
    assert said["view"] in ("queue", "delay", "flows", "packets")
    assert all((SCENES / each).is_file() for each in said.get("files", []))


@pytest.mark.parametrize("name", NAMES)
def test_each_line_of_a_scene_is_expected_of_its_numbers(name: str) -> None:
    plan = experiment.prepare(SCENES / f"{name}.toml", load=False)
    lines = []
    for each in plan.expected:
        found = NUMBERED.match(each.name)
        assert found, each.name
        lines.append(found["line"])
    assert {"1", "2", "3", "4", "5"} <= set(lines)
    kinds = {
        value["kind"]
        for case in plan.cases
        for value in case.factors.values()
        if isinstance(value, dict)
    }
    assert set(about(name)["queues"]) <= kinds


@pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")
@pytest.mark.parametrize("name", NAMES)
def test_one_run_of_a_scene_is_as_its_text_says(name: str, tmp_path: Path) -> None:
    plan = experiment.prepare(SCENES / f"{name}.toml", replications=1)
    (found,) = expect.run([plan], out=tmp_path)
    for judged in found.judged:
        for row in judged.rows:
            (value,) = row.values
            bounds = row.evidence.bounds
            outside = bounds.under(value) or bounds.over(value)
            assert not outside, f"{judged.expected.name}, {row.case}: {value}, {bounds.text()}"
    assert set(about(name)["metrics"]) <= set(found.results.cases[0].runs[0].metrics)


@pytest.mark.weekly
@pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")
def test_scenes_are_as_their_texts_say(tmp_path: Path) -> None:
    plans = [experiment.prepare(SCENES / f"{name}.toml") for name in NAMES]
    for found in expect.run(plans, out=tmp_path):
        for judged in found.judged:
            assert judged.judgement is Judgement.HOLDS, (found.results.name, judged.expected.name)


@pytest.mark.weekly
@pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")
@pytest.mark.parametrize(("name", "number"), TRIED)
def test_what_an_answer_lets_people_try_is_so(name: str, number: int, tmp_path: Path) -> None:
    tried = about(name)["questions"][number]["try"]
    for each in about(name).get("files", []):
        shutil.copy(SCENES / each, tmp_path)
    # What is expected of the scene as it stands may be otherwise when something is changed.
    file = tmp_path / f"{name}.toml"
    text = (SCENES / file.name).read_text().partition("\n[expect]\n")[0]
    file.write_text(f"{text}\n[expect]\n" + "".join(map(_line, tried["expect"].items())))
    (found,) = expect.run([experiment.prepare(file, set=tried["set"])], out=tmp_path / "runs")
    for judged in found.judged:
        assert judged.judgement is Judgement.HOLDS, judged.expected.name


def _line(expected: tuple[str, dict[str, Any]]) -> str:
    """An expectation as a line of TOML."""
    name, keys = expected
    return (
        f'"{name}" = {{ {", ".join(f"{key} = {json.dumps(it)}" for key, it in keys.items())} }}\n'
    )
