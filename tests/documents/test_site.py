"""What the documentation site is made from: navigation, links, commands and public names."""

from __future__ import annotations

import re
import types
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.main import get_command

import commands
import links
import navigation
import python_api
import redtail
from redtail import gym, model
from redtail.cli import app

import release

ROOT = Path(__file__).parents[2]

INDEX = """# Documentation

**How to**

- [Start
  here](how-to/start.md#one), with [a figure](https://example.org/x)

**Reference**

- Queues: [tail drop](queues/tail-drop.md),
  [RED](queues/red.md)
- [redtail and others](../README.md)
"""


def test_the_navigation_has_the_links_of_the_index() -> None:
    assert navigation.navigation(
        INDEX, [{"redtail": "README.md"}], {"Reference": [{"Commands": "commands.md"}]}
    ) == [
        {"Start": [{"redtail": "README.md"}]},
        {"How to": [{"Start here": "how-to/start.md"}]},
        {
            "Reference": [
                {"Commands": "commands.md"},
                {"Queues": [{"Tail drop": "queues/tail-drop.md"}, {"RED": "queues/red.md"}]},
                {"redtail and others": "README.md"},
            ]
        },
    ]


def test_a_section_that_the_index_does_not_have_is_noticed() -> None:
    with pytest.raises(ValueError, match="no section Nothing"):
        navigation.navigation(INDEX, [], {"Nothing": []})


def test_every_page_of_the_docs_is_in_the_navigation() -> None:
    index = (ROOT / "docs/index.md").read_text()
    text = str(navigation.navigation(index, navigation.START, navigation.MADE))
    for page in (ROOT / "docs").rglob("*.md"):
        name = str(page.relative_to(ROOT / "docs"))
        assert name == "index.md" or f"'{name}'" in text, name


def test_links_in_code_are_left_alone() -> None:
    text = "[`a`](b.md#c) `[a](b)` [d](https://e)\n\n```\n[a](b)\n```\n[f\ng](h) [i](#j)\n"
    assert links.targets(text) == ["b.md", "h"]
    assert links.rewritten(text, lambda target: f"../{target}") == (
        "[`a`](../b.md#c) `[a](b)` [d](https://e)\n\n```\n[a](b)\n```\n[f\ng](../h) [i](#j)\n"
    )


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("docs/how-to/live.md", "how-to/live.md"),
        ("docs/figures/report.png", "figures/report.png"),
        ("docs/queues/load_step.py", "source/docs/queues/load_step.py.md"),
        ("README.md", "README.md"),
        ("tests/reference/README.md", "tests/reference/README.md"),
        ("crates/qdisc/src/fq.rs", "source/crates/qdisc/src/fq.rs.md"),
    ],
)
def test_every_file_of_the_repository_has_a_name_on_the_site(path: str, name: str) -> None:
    assert links.site_name(path) == name


def test_files_are_found_through_pages_outside_the_docs(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("[x](../b.md) [y](missing.rs) [z](../../outside.rs)")
    (tmp_path / "b.md").write_text("[x](c.rs) [a](docs/a.md)")
    (tmp_path / "c.rs").write_text("fn main() {}\n// ```\n")
    assert links.linked(["docs/a.md"], tmp_path) == {"b.md", "c.rs"}
    shown = links.shown("c.rs", tmp_path)
    assert "\n````rust\nfn main() {}\n// ```\n````\n" in shown


def test_every_command_and_option_is_in_the_reference() -> None:
    page = commands.page(get_command(app))
    found = dict(commands.commands(get_command(app), "redtail"))
    assert {"redtail run", "redtail runs gc", "redtail kernel fetch"} <= set(found)
    for words, command in found.items():
        _, _, section = page.partition(f"\n## {words}\n")
        section = section.split("\n## ")[0]
        for parameter in command.params:
            for name in parameter.opts if parameter.param_type_name == "option" else []:
                assert re.search(rf"`{name}[ `]", section), f"{words} {name}"
    assert "`--out DIR` | Where results are kept" in page
    assert "Default: `runs`." in page


def test_every_public_name_is_documented_and_in_the_reference() -> None:
    assert python_api.undocumented(redtail) == []
    assert python_api.undocumented(model) == []
    page = python_api.functions_page(redtail) + python_api.objects_page(model)
    for name in redtail.__all__:
        assert f"::: redtail.{name}\n" in page
    assert tuple(gym.__all__) == python_api.GYM
    assert python_api.undocumented(gym) == []
    assert "::: redtail.model.Red\n" in page[page.index("## Queues") : page.index("## Traffic")]


@dataclass
class Documented:
    """Has a field too many.

    Attributes:
        told: what it is.
    """

    told: int
    silent: int

    def method(self) -> None:
        pass


@dataclass
class Silent:
    told: int


def test_a_name_without_docstring_is_noticed() -> None:
    module = types.ModuleType("m")
    module.__all__ = ["Documented", "Silent", "silent"]  # type: ignore[attr-defined]
    vars(module).update(Documented=Documented, Silent=Silent, silent=lambda: 0)
    assert python_api.undocumented(module) == [
        "m.Documented.silent",
        "m.Documented.method",
        "m.Silent",
        "m.silent",
    ]


def test_notes_of_a_release_are_those_of_its_version() -> None:
    text = "# C\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n- x\n\n## [0.1.0] - 2026-11-30\n"
    assert release.notes(text, "0.2.0") == "- x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("## [Unreleased]\n\n- x\n\n## [0.2.0] - 2026-12-01\n", r"changes under \[Unreleased\]"),
        ("## [Unreleased]\n\n## [0.2.0]\n", "YYYY-MM-DD"),
        ("## [0.1.0] - 2026-11-30\n", "there is no section"),
    ],
)
def test_a_changelog_that_is_not_cut_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        release.notes(text, "0.2.0")


def test_a_tag_that_is_not_the_version_is_refused() -> None:
    with pytest.raises(ValueError, match="has version"):
        release.check("v99.0.0")


def test_a_release_without_stored_results_is_refused(tmp_path: Path) -> None:
    for name, text in (
        ("Cargo.toml", '[workspace.package]\nversion = "0.2.0"\n'),
        ("CITATION.cff", "version: 0.2.0\n"),
        ("CHANGELOG.md", "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n- x\n"),
    ):
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=r"no results of 0\.2\.0"):
        release.check("v0.2.0", tmp_path)
    (tmp_path / "tests/store/fixtures/results-0.2.0/runs").mkdir(parents=True)
    assert release.check("v0.2.0", tmp_path) == "- x"


def test_jobs_call_targets_of_the_makefile() -> None:
    makefiles = [ROOT / "Makefile", *(ROOT / "tools").glob("*.mk")]
    text = "".join(path.read_text() for path in makefiles)
    targets = set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
    called = 0
    for workflow in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for line in re.findall(r"\bmake ((?:[^\n]| \\\n)*)", workflow.read_text()):
            words = [w for w in line.split() if not w.startswith("-") and "=" not in w]
            if words[0].startswith("${{"):
                continue
            called += 1
            assert words[0] in targets, f"{workflow.name}: make {words[0]}"
    assert called > 10


def test_every_action_has_a_version() -> None:
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        for action in re.findall(r"uses: (\S+)", workflow.read_text()):
            assert action.startswith("./") or re.search(r"@v\d+\.\d+\.\d+$", action), action
