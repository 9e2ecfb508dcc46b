"""Check that a tag is the release that the project's files describe, and print its notes.

    make check-release TAG=v0.1.0

Version, changelog and citation must agree, and the fixtures must have results of the version. The
notes are the changelog's section of the version.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def notes(changelog: str, version: str) -> str:
    """Return the changelog's section of a version.

    Raises:
        ValueError: there is none, it has no date, or there are changes that are not released.
    """
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for section in sections:
        head, _, body = section.partition("\n")
        if head.startswith("[Unreleased]") and body.strip():
            raise ValueError(f"CHANGELOG.md: changes under [Unreleased] belong to [{version}]")
        if head.startswith(f"[{version}]"):
            if not re.fullmatch(re.escape(f"[{version}] - ") + r"\d{4}-\d\d-\d\d", head):
                raise ValueError(
                    f"CHANGELOG.md: '## {head}' should be '## [{version}] - YYYY-MM-DD'"
                )
            return body.strip()
    raise ValueError(f"CHANGELOG.md: there is no section '## [{version}] - YYYY-MM-DD'")


def check(tag: str, root: Path = ROOT) -> str:
    """Return the notes of a release.

    Raises:
        ValueError: a file does not agree with the tag.
    """
    version = tag.removeprefix("v")
    crates = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    cited = re.search(r"^version: (\S+)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    if tag != f"v{version}" or version != crates:
        raise ValueError(f"tag {tag!r}: Cargo.toml has version {crates}, so the tag is v{crates}")
    if cited is None or cited[1] != version:
        raise ValueError(f"CITATION.cff: 'version: {version}' is wanted")
    if not (root / f"tests/store/fixtures/results-{version}/runs").is_dir():
        raise ValueError(
            f"tests/store/fixtures: no results of {version}, which later versions have to open; "
            "make them: .venv/bin/python tests/store/fixtures/make_results.py"
        )
    return notes((root / "CHANGELOG.md").read_text(), version)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make check-release TAG=v0.1.0")
    try:
        print(check(sys.argv[1]))
    except ValueError as error:
        sys.exit(f"error: {error}")
