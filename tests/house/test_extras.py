"""What works without the libraries of extras, and what it says where it does not."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import redtail

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
CAPTURE = ROOT / "tests" / "attack" / "seeds" / "dns_tcp.pcap"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Extras that are for the work on redtail itself.
OURS = {"docs", "build", "wheel", "dev"}


def names(lines: list[str]) -> set[str]:
    return {re.match(r"[A-Za-z0-9_-]+", line)[0].lower() for line in lines}  # type: ignore[index]


BASE = names(PROJECT["dependencies"])
EXTRAS = {
    extra: names(lines) - BASE
    for extra, lines in PROJECT["optional-dependencies"].items()
    if extra not in OURS
}
OF_EXTRAS = sorted(set().union(*EXTRAS.values()))

#: Fails as an import of what is not installed does.
BLOCK = f"""
import sys
from importlib.abc import MetaPathFinder
class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OF_EXTRAS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""


def without(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-c", BLOCK + script]
    return subprocess.run(call, cwd=folder, capture_output=True, encoding="utf-8")


def redtail_without(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = f"from redtail.cli import main\nsys.argv = ['redtail', *{words!r}]\nmain()"
    return without(script, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs that were made without any extra."""
    found = tmp_path_factory.mktemp("without")
    short = ["--set", "duration=3 s", "--set", "warmup=1 s", "--replications", "3"]
    file = str(EXAMPLES / "quickstart.toml")
    done = redtail_without("run", file, *short, "--report", folder=found)
    assert done.returncode == 0, done.stderr
    assert (found / "runs/quickstart/report.html").exists()
    assert list((found / "runs/quickstart/figures").glob("*.png"))
    return found


@pytest.mark.parametrize(
    "words",
    [
        ("figures", "runs/quickstart", "--all"),
        ("compare", "runs/quickstart", "--metric", "goodput", "--equal-within", "50 %"),
        ("diff", "runs/quickstart", "runs/quickstart", "--exact"),
        ("pack", "runs/quickstart"),
        ("runs", "verify"),
        ("parameters", "--rate", "10mbit", "--rtt", "40ms", "--flows", "20"),
        ("estimate", str(EXAMPLES / "cellular.trace")),
    ],
    ids=lambda words: words[0],
)
def test_commands_work_without_extras(words: tuple[str, ...], folder: Path) -> None:
    done = redtail_without(*words, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("estimate", str(CAPTURE)), "recordings"),
        (("advise", "--from", str(CAPTURE)), "recordings"),
        (("run", str(EXAMPLES / "quickstart.toml"), "--out", "s3://bucket/runs"), "objects"),
        (("run", str(EXAMPLES / "quickstart.toml"), "--dask", "tcp://localhost:1"), "cluster"),
        (
            (
                *("tune", str(EXAMPLES / "quickstart.toml"), "--queue", "red"),
                *("--vary", "max_p", "--objective", "min queue_delay_p95"),
            ),
            "tune",
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else given[0],
)
def test_a_command_names_the_extra_that_it_lacks(
    words: tuple[str, ...], extra: str, folder: Path
) -> None:
    done = redtail_without(*words, folder=folder)
    assert done.returncode == 1
    assert f"pip install 'redtail[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("function", "extra"), [("pandas", "pandas"), ("polars", "polars"), ("xarray", "notebook")]
)
def test_a_function_names_the_extra_that_it_lacks(function: str, extra: str, folder: Path) -> None:
    script = f"import redtail; redtail.load('runs/quickstart').to_{function}()"
    done = without(script, folder)
    says = f"RedtailError: to_{function} needs {function}, which is not installed; install it with:"
    assert f"{says} pip install 'redtail[{extra}]'" in done.stderr.splitlines()[-1]


def test_a_module_names_the_extra_that_it_lacks(folder: Path) -> None:
    done = without("import redtail.gym", folder)
    says = "RedtailError: redtail.gym needs gymnasium, which is not installed; install it with:"
    assert f"{says} pip install 'redtail[gym]'" in done.stderr.splitlines()[-1]


def test_every_library_is_one_of_the_base_or_of_an_extra() -> None:
    known = BASE | set(OF_EXTRAS)
    for path in Path(redtail.__file__).parent.rglob("*.py"):
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [part.module] if isinstance(part, ast.ImportFrom) else []
            modules += [each.name for each in part.names] if isinstance(part, ast.Import) else []
            for module in modules:
                first = (module or "redtail").partition(".")[0]
                if first != "redtail" and first not in sys.stdlib_module_names:
                    assert first in known, f"{path}: imports {first}"
