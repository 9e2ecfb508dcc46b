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


# A Python with aioquic and little else, as a virtual machine takes all packages of its environment.
SMALL = EXAMPLES.parents[1] / "target" / "aioquic" / "bin"


def require(name: str, monkeypatch: pytest.MonkeyPatch, *, small: bool = False) -> Path:
    """Return the file of an example; skip without its programs.

    The `python3` of aioquic is that of the tests, or one in a small environment.
    """
    for program in {"iperf3": ["iperf3"], "http": ["curl"]}.get(name, []):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    if name == "quinn" and not (EXAMPLES / "quinn-pair").exists():
        pytest.skip("the program is not built (make quinn-pair)")
    if name == "quic":
        here = SMALL if small else Path(sys.executable).parent
        if small and not here.exists():
            pytest.skip("the environment is not made (make aioquic)")
        if not small and find_spec("aioquic") is None:
            pytest.skip("aioquic is not installed (pip install aioquic)")
        if here.is_relative_to("/tmp"):
            pytest.skip("programs have a /tmp of their own, and this Python is in /tmp")
        monkeypatch.setenv("PATH", os.pathsep.join([str(here), os.environ["PATH"]]))
    return EXAMPLES / f"{name}.toml"
