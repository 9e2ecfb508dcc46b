"""What an editor and a type checker know of the package."""

from __future__ import annotations

import pytest
from mypy import api

import redtail
from redtail import model

from conftest import ROOT

# What other packages offer is no question of these tests; to analyse it takes ten times as long.
_CONFIGURATION = f"""
[mypy]
mypy_path = {ROOT / "python"}
[mypy-numpy.*,scipy.*,pandas.*,polars.*,pyarrow.*,matplotlib.*,rich.*,typer.*,fsspec.*]
follow_imports = skip
follow_imports_for_stubs = True
[mypy-redtail.*]
follow_imports = silent
"""

_MISTAKES = {
    'redtail.Red(limit="3 packets")': "",
    'redtail.Red(limitt="3 packets")': 'Unexpected keyword argument "limitt" for "Red"',
    "redtail.Red(limit=3)": 'Argument "limit" to "Red" has incompatible type "int"',
    'redtail.Red(limit="3 packets", gentle="twice")': 'Argument "gentle" to "Red"',
    'redtail.Redd(limit="3 packets")': 'Module has no attribute "Redd"',
    'redtail.runn("file.toml")': 'Module has no attribute "runn"',
    'redtail.run("file.toml", job=2)': 'Unexpected keyword argument "job" for "run"',
    'redtail.check("file.toml", replication=2)': 'keyword argument "replication" for "check"',
    'redtail.Campaign(["file.toml"]).run(job=2)': 'Unexpected keyword argument "job" for "run"',
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """What mypy says of each line of a program with one mistake a line."""
    folder = tmp_path_factory.mktemp("types")
    file, configuration = folder / "program.py", folder / "mypy.ini"
    file.write_text("\n".join(["import redtail", *_MISTAKES]) + "\n")
    configuration.write_text(_CONFIGURATION)
    words = ["--config-file", str(configuration), "--cache-dir", str(folder / "cache")]
    printed, failed, _ = api.run([*words, "--strict", "--hide-error-context", str(file)])
    assert not failed
    said = [line.split(":", 2) for line in printed.splitlines() if ": error: " in line]
    return {int(number): text for _, number, text in said}


@pytest.mark.parametrize("line", _MISTAKES)
def test_a_type_checker_refuses_a_misspelt_name_or_key(
    line: str, complaints: dict[int, str]
) -> None:
    number = 2 + list(_MISTAKES).index(line)
    expected = _MISTAKES[line]
    if expected:
        assert expected in complaints[number]
    else:
        assert number not in complaints


def test_completion_offers_every_public_name() -> None:
    assert {"Red", "Bulk", "Experiment", "Campaign", "run"} <= set(dir(redtail))
    assert all(hasattr(redtail, name) for name in dir(redtail))
    assert set(model.__all__) <= set(dir(redtail))
