"""The list of tests that `make test-weekly` runs because they are long."""

from __future__ import annotations

import re

import pytest

from conftest import ROOT, long_tests


@pytest.mark.parametrize("nodeid", sorted(long_tests()))
def test_each_is_there(nodeid: str) -> None:
    file, _, name = nodeid.partition("::")
    function = re.escape(name.partition("[")[0])
    assert re.search(rf"^def {function}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
