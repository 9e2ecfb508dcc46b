from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from matplotlib.figure import Figure

from browsing import ARGUMENTS, CHROMIUM
from redtail import native
from redtail.display import plots

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


# Files whose tests take longest, the longest first.
SLOW = (
    "tests/studies/test_papers.py",
    "tests/documents/test_docs.py",
    "tests/reference/test_redtail_table3.py",
    "tests/running/test_capture.py",
    "tests/lines/test_recordings.py",
    "tests/lines/test_captures.py",
    "tests/lines/test_measure.py",
    "tests/store/test_kills.py",
    "tests/lab/test_lab_page.py",
    "tests/reference/test_delivery_times.py",
    "tests/running/test_offered_load.py",
    "tests/store/test_runs.py",
    "tests/reference/test_loss_throughput.py",
    "tests/reference/test_linux_more.py",
    "tests/cli/test_cli.py",
    "tests/analysis/test_results.py",
    "tests/running/test_cluster.py",
    "tests/house/test_attack.py",
    "tests/engine/test_engine.py",
    "tests/cli/test_every_command.py",
    "tests/store/test_objects.py",
    "tests/display/test_escape.py",
    "tests/inputs/test_traces.py",
)


def some_weekly(values: Iterable[Any], is_weekly: Callable[[Any], bool]) -> list[ParameterSet]:
    """Return parameters of a test, of which some are left to `make test-weekly`."""
    return [
        pytest.param(value, marks=[pytest.mark.weekly] if is_weekly(value) else [])
        for value in values
    ]


# Files of which the tests with parameters are long and share nothing.
APART = (
    "tests/studies/test_papers.py",
    "tests/documents/test_docs.py",
    "tests/engine/test_engine.py",
    "tests/backends/test_linux.py",
)


def unit(nodeid: str) -> str:
    """Return what a test belongs to that one worker runs: its file, or in APART itself.

    Tests of a file may share fixtures and cached results, which each worker would have to make.

    >>> unit("tests/store/test_kills.py::test_damage[1]")
    'tests/store/test_kills.py'
    >>> unit("tests/documents/test_docs.py::test_page[a]")
    'tests/documents/test_docs.py::test_page[a]'
    """
    file = nodeid.partition("::")[0]
    return nodeid if file in APART and "[" in nodeid else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a worker of pytest-xdist the next unit when it has nearly finished what it has.

    `--dist loadgroup` would be for this, but pytest 9.2 ignores how pytest-xdist 3.8 marks groups.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid)

    config.option.loadscopereorder = False  # by the number of tests
    return Units(config, log)


def long_tests() -> set[str]:
    """Return the node ids of long tests, which are left to `make test-weekly`."""
    lines = (ROOT / "tests" / "long.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if not line.startswith("#")}


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave long tests to `make test-weekly`, and put the longest of the others first.

    So no worker waits at the end for one that began late.
    """
    long = long_tests()
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.weekly)
    items.sort(key=_rank)


def pytest_collection_finish() -> None:
    """Keep what is loaded now out of garbage collections, a tenth of the time of some tests."""
    gc.collect()
    gc.freeze()


def _rank(item: pytest.Item) -> tuple[bool, int]:
    """Return the place of a test: the papers first, then the slow files."""
    file = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""
    return (
        item.get_closest_marker("papers") is None,
        SLOW.index(file) if file in SLOW else len(SLOW),
    )


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples and doctests name files as a user at the root of the project would."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(autouse=True)
def _no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of pytest-xdist are told the width of its own terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)


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
    monkeypatch.setattr(native, "module", lambda: engine)
    return engine


@pytest.fixture
def figures_unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn, and their files are empty: what is in them has tests of its own."""

    def save(
        figures: Iterable[tuple[str, Figure]], folder: Path, formats: Sequence[str] = ("png",)
    ) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, figure in figures:
            figure.draw_without_rendering()
            paths += [folder / f"{name}.{kind}" for kind in formats]
        for path in paths:
            path.touch()
        return paths

    monkeypatch.setattr(plots, "save", save)


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


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium; Debian's package `chromium` has it")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=CHROMIUM,
            headless=True,
            args=list(ARGUMENTS),
            viewport={"width": 1200, "height": 900},
        )
        yield context
        context.close()
