"""The laboratory's page in Firefox."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from lab_site import ROOT, served

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")


@pytest.mark.weekly
def test_a_knob_changes_what_is_drawn_in_firefox(tmp_path: Path) -> None:
    if FIREFOX is None:
        pytest.skip("there is no Firefox; Debian's package `firefox-esr` has it")
    playwright = pytest.importorskip("playwright")
    # The Node.js that Playwright brings: the script needs one of version 22 or later.
    node = Path(playwright.__file__).parent / "driver/node"
    if not node.exists():
        pytest.skip("this Playwright brings no Node.js")
    picture = tmp_path / "firefox.png"
    with served() as site:
        done = subprocess.run(
            [node, ROOT / "lab/tests/firefox.mjs", FIREFOX, f"{site}index.html", picture],
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    outside = [url for url in seen["asked"] if not url.startswith((site, "data:", "blob:"))]
    assert outside == []
    assert seen["said"] == []
    assert "means of 10 runs" in seen["runs"]
    assert len(seen["charts"]) == 4
    assert seen["moved"] != seen["charts"]
    assert "#k=" in seen["address"]
    assert picture.read_bytes().startswith(b"\x89PNG")
