"""What `make mutants` changes, and how it counts."""

from __future__ import annotations

from pathlib import Path

import pytest

import mutation

from conftest import ROOT


def test_mutants_change_one_place_and_no_annotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "law.py"
    module.write_text(
        "def law(x: int | None, y: float = 1.0) -> float | None:\n"
        "    z: int | str = 2\n"
        "    return None if x is None else x + y * z\n"
    )
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    found = [*mutation.mutants(Path("law.py"))]
    texts = [each.text() for each in found]
    assert any(text is not None and "x - y * z" in text for text in texts)
    before = module.read_text().splitlines()
    for each, text in zip(found, texts, strict=True):
        assert text is not None, each
        after = text.splitlines()
        assert "int | None" in after[0] and "float | None" in after[0] and "int | str" in after[1]
        assert sum(one != other for one, other in zip(before, after, strict=True)) == 1
        assert "law.py\n" in each.difference()


def test_rooms_are_folders_of_the_package_and_of_its_tests() -> None:
    for modules, tests in mutation.ROOMS.values():
        assert (ROOT / "python/redtail" / modules).is_dir()
        assert any((ROOT / "tests" / tests).glob("test_*.py"))


def test_the_interval_of_a_share_is_wilsons() -> None:
    # Newcombe (1998), table I: 15 of 148 and 0 of 20.
    assert mutation.interval(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert mutation.interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
