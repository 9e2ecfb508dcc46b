"""Every kind of traffic and every choice of TCP is in the documentation.

Queues are in `test_load_step.py`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from redtail import facts
from redtail.catalog import Catalog

ROOT = Path(__file__).parents[2]
SCHEMA = facts.schema()
TRAFFIC = [str(section.kind) for section in Catalog(SCHEMA).traffic]


def _pages(folder: str) -> str:
    return "\n".join(page.read_text() for page in sorted((ROOT / "docs" / folder).glob("*.md")))


def _choices(name: str) -> list[str]:
    """The values that a type of the schema accepts."""
    parts: list[dict[str, Any]] = SCHEMA["$defs"][name]["oneOf"]
    return [value for part in parts for value in part.get("enum", [part.get("const")])]


def _shows(pages: str, kind: str) -> bool:
    """Whether one of the pages has a block with a group of this kind."""
    blocks = re.findall(r"^```toml\n(.*?)^```", pages, re.MULTILINE | re.DOTALL)
    return any(f'kind = "{kind}"' in block for block in blocks)


def _names(pages: str, choice: str) -> bool:
    """Whether one of the pages has this value as code, alone or as the value of a key."""
    return re.search(rf'`(?:[a-z_]+ = )?"?{re.escape(choice)}"?`', pages) is not None


@pytest.mark.parametrize("kind", TRAFFIC)
def test_every_kind_of_traffic_has_an_example_on_a_page(kind: str) -> None:
    assert _shows(_pages("traffic"), kind)


@pytest.mark.parametrize("name", ["Growth", "RecoveryKind", "Preset"])
def test_every_congestion_control_recovery_and_preset_is_explained(name: str) -> None:
    pages = _pages("explanation")
    assert [choice for choice in _choices(name) if not _names(pages, choice)] == []


def test_a_kind_without_a_page_is_noticed() -> None:
    assert not _shows(_pages("traffic"), "no-such-kind")
    assert not _shows('a `kind = "web"` in the text', "web")
    assert not _names(_pages("explanation"), "no-such-law")
    assert not _names("linux-cubic and `cubic-like`", "cubic")
