"""The crates that other projects can depend on, and the rooms in which `unsafe` stands."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

#: Those that `make check-publish` packs, in its order.
CRATES = ("redtail-inert", "redtail-core", "redtail-qdisc", "redtail-transport")

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")


def _cargo(*arguments: str) -> str:
    done = subprocess.run(
        ["cargo", *arguments, "--locked", "--quiet"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def _packages() -> dict[str, dict[str, Any]]:
    metadata = json.loads(_cargo("metadata", "--no-deps", "--format-version", "1"))
    return {package["name"]: package for package in metadata["packages"]}


def _dependencies(crate: str, *features: str) -> set[str]:
    """The names of the packages that a program with this crate alone compiles."""
    chosen = ["--features", ",".join(features)] if features else []
    tree = _cargo("tree", "-p", crate, "--edges", "normal", "--prefix", "none", *chosen)
    return {line.split()[0] for line in tree.splitlines()}


def test_the_target_packs_the_crates_that_are_not_kept_from_being_published() -> None:
    target = re.search(r"^CRATES := (.*)$", (ROOT / "tools/publish.mk").read_text(), re.MULTILINE)
    assert target is not None
    assert tuple(target[1].split()) == CRATES
    assert {name for name, package in _packages().items() if package["publish"] is None} == set(
        CRATES
    )


@pytest.mark.parametrize("crate", CRATES)
def test_no_feature_is_needed(crate: str) -> None:
    assert not _dependencies(crate) & {"serde", "serde_core", "serde_json", "schemars", "rustix"}


def test_each_feature_adds_the_crate_that_it_names() -> None:
    assert "serde" in _dependencies("redtail-qdisc", "serde")
    assert "schemars" not in _dependencies("redtail-qdisc", "serde")
    assert "schemars" in _dependencies("redtail-transport", "schema")
    # It asks the kernel of Linux alone.
    tree = _cargo("tree", "-p", "redtail-core", "--features", "large-pages", "--target", "all")
    assert "rustix" in tree


@pytest.mark.parametrize("crate", CRATES)
def test_a_package_says_what_it_is(crate: str) -> None:
    package = _packages()[crate]
    for key in ("description", "license", "readme", "rust_version", "keywords", "categories"):
        assert package[key], key
    assert len(package["keywords"]) <= 5
    for dependency in package["dependencies"]:
        # One without a version is left out of the package: it is for tests here.
        if dependency["kind"] is None and dependency["name"].startswith("redtail-"):
            assert dependency["req"] == f"^{package['version']}", dependency["name"]


@pytest.mark.parametrize("crate", CRATES)
def test_a_package_has_its_sources_and_its_licence_and_no_tests(crate: str) -> None:
    files = _cargo("package", "-p", crate, "--list", "--allow-dirty").splitlines()
    assert {"Cargo.toml", "LICENSE", "README.md", "src/lib.rs"} <= set(files)
    assert not [name for name in files if name.startswith(("tests/", "benches/"))]


def test_unsafe_stands_in_its_rooms_alone() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    paragraph = re.search(r"`unsafe` stands in these rooms alone(.*?)\n\n", text, re.DOTALL)
    assert paragraph is not None
    rooms = set(re.findall(r"`([a-z]+(?:/[a-z_]+(?:\.rs)?)*)`", paragraph[1]))
    allowed = re.compile(r"#!?\[allow\(unsafe_code\)\]")
    found = set()
    for source in (ROOT / "crates").rglob("*.rs"):
        if allowed.search(source.read_text()):
            name = source.relative_to(ROOT / "crates").as_posix()
            room = next((room for room in rooms if name == room or name.startswith(f"{room}/")), "")
            assert room, name
            found.add(room)
    assert found == rooms
