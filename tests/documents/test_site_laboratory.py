"""The laboratory on the documentation site."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import laboratory
import redtail

ROOT = Path(__file__).parents[2]
NAMES: list[str] = json.loads((laboratory.SCENES / "index.json").read_text())


def test_a_page_that_is_not_built_is_left_out(tmp_path: Path) -> None:
    assert laboratory.files(tmp_path) == {}


def test_each_file_of_the_page_is_on_the_site(tmp_path: Path) -> None:
    (tmp_path / "scenes").mkdir()
    for name in ("index.html", "redtail.wasm", "scenes/a.toml"):
        (tmp_path / name).touch()
    assert laboratory.files(tmp_path) == {
        f"lab/{name}": tmp_path / name for name in ("index.html", "redtail.wasm", "scenes/a.toml")
    }


def test_the_button_is_above_the_picture_of_the_first_page() -> None:
    text = (ROOT / "README.md").read_text()
    shown = laboratory.with_button(text)
    button, picture = (shown.index(each) for each in ("lab/index.html", laboratory.PICTURE))
    assert button < picture < shown.index("\n## Install")
    assert shown.replace(f"{laboratory.BUTTON.format(to='lab/index.html')}\n\n", "") == text


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "queues").glob("*.md")), ids=lambda it: it.stem
)
def test_the_page_of_a_queue_ends_with_a_scene_or_its_load_step(page: Path) -> None:
    text = page.read_text()
    shown = laboratory.with_scene(text, page.stem)
    if page.stem in ("classes", "league"):
        assert shown == text
        return
    assert shown.startswith(text)
    (fragment,) = re.findall(
        r'<iframe class="lab" loading="lazy" src="\.\./lab/embed\.html#(\S+)"', shown
    )
    what, _, name = fragment.partition("=")
    assert what in ("scene", "file")
    if what == "scene":
        assert name in NAMES
    else:
        assert f"lab/{name}" in laboratory.experiments()


def test_the_load_step_of_a_queue_is_an_experiment_of_two_cases() -> None:
    made = laboratory.experiments()
    assert len(made) > 20
    for name, text in made.items():
        plan = redtail.check(redtail.Toml(text))
        kind = Path(name).stem
        assert [case.title for case in plan.cases] == ["tail-drop", kind]
        assert f'"bottleneck.queue" = {{kind = "{kind}"' in text
