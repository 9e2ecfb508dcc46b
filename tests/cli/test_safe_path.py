"""Modules in the current folder are not imported: only redtail's own and installed ones are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Its path has no current folder.
PROGRAM = str(Path(sys.executable).with_name("redtail"))

NAMES = ("json", "numpy", "pickle", "pyarrow", "redtail", "typing")


def test_processes_that_draw_import_nothing_of_the_current_folder(tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "examples" / "quickstart.toml"
    runs, folder = tmp_path / "runs", tmp_path / "folder"
    folder.mkdir()
    command([sys.executable, "-m", "redtail", "run", str(file), "--out", str(runs)], tmp_path)
    for name in NAMES:
        (folder / f"{name}.py").write_text("open('executed', 'w').close()\n")
    words = ["figures", str(runs / "quickstart"), "--all", "--jobs", "2"]
    done = command([PROGRAM, *words], folder)
    assert len(done.stdout.split()) > 10, done.stderr
    assert not (folder / "executed").exists()


def command(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"},
        capture_output=True,
        check=False,
        text=True,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="backends in real time")
@pytest.mark.parametrize("words", [("doctor",), ("run", "x.toml", "--backend", "live")])
def test_no_command_executes_a_module_of_the_current_folder(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text("open('executed', 'w').close()\n")
    (tmp_path / "x.toml").write_text(
        'name = "X"\nduration = "100 ms"\nreplications = 1\n[bottleneck]\nrate = "2 Mbit/s"\n'
        'delay = "5 ms"\nqueue = { kind = "tail-drop", limit = "10 packets" }\n'
        '[[traffic]]\nname = "ftp"\nkind = "bulk"\ntcp = "linux"\n'
    )
    command([PROGRAM, *words], tmp_path)
    assert not (tmp_path / "executed").exists()
