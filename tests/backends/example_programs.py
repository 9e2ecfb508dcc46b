"""The examples with programs, and what each needs of this computer."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "programs"

NAMES = ("iperf3", "http", "quic", "quinn")


def require(name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of an example, with the tests' own `python3`; skip without its programs."""
    for program in {"iperf3": ["iperf3"], "http": ["curl"]}.get(name, []):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    if name == "quic" and find_spec("aioquic") is None:
        pytest.skip("aioquic is not installed (pip install aioquic)")
    if name == "quinn" and not (EXAMPLES / "quinn-pair").exists():
        pytest.skip("the program is not built (make quinn-pair)")
    here = Path(sys.executable).parent
    if name == "quic" and here.is_relative_to("/tmp"):
        pytest.skip("programs have a /tmp of their own, and the tests' Python is in /tmp")
    monkeypatch.setenv("PATH", os.pathsep.join([str(here), os.environ["PATH"]]))
    return EXAMPLES / f"{name}.toml"
