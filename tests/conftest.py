from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from redtail import _engine

from fake_native import FakeNative

ROOT = Path(__file__).parent.parent

FAKE_EXPERIMENT = """
name = "Fake experiment"
replications = 3
[factors]
"bottleneck.queue" = [
  { kind = "tail-drop", label = "tail drop" },
  { kind = "red", label = "RED" },
]
"traffic.ftp.flows" = [16, 64]
"""


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples and doctests name files as a user at the root of the project would."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(autouse=True)
def _hears_interrupts() -> Iterator[None]:
    """Tests interrupt runs, also where whoever started them has SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeNative:
    """An engine that measures nothing and can be told to fail."""
    engine = FakeNative()
    monkeypatch.setattr(_engine, "native", lambda: engine)
    return engine


@pytest.fixture
def fake_file(tmp_path: Path) -> Path:
    path = tmp_path / "fake.toml"
    path.write_text(FAKE_EXPERIMENT)
    return path


@pytest.fixture
def small_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COLUMNS", "60")
    assert os.environ["COLUMNS"] == "60"
    return None
