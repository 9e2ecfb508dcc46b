"""`redtail validate` with a matrix of one small experiment, for the tests that kill it.

    python validate_process.py FOLDER BACKENDS

FOLDER gets the matrix, the store `runs` and the report `report.md`. The backend `other` stands for
a kernel where there is none: the simulator under another name.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from redtail import backends
from redtail.backends.sim import Sim
from redtail.cli import app

EXPERIMENT = """\
name = "Small"
duration = "1 s"
warmup = "100 ms"
replications = 2
[bottleneck]
rate = "2 Mbit/s"
delay = "5 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
tcp = "linux"
host_jitter = "6 ms"
[factors]
"traffic.ftp.flows" = [1, 2]
"""

STUDY = """\
title = "Small"
[gaps]
files = ["small.toml"]
"""


class Other(Sim):
    """The simulator under another name."""

    name = "other"


def main(folder: Path, names: str) -> None:
    """Validate."""
    os.chdir(folder)
    matrix = Path("matrix")  # results say under which name the file was given
    matrix.mkdir(exist_ok=True)
    (matrix / "small.toml").write_text(EXPERIMENT)
    (matrix / "study.toml").write_text(STUDY)
    backends.KNOWN["other"] = Other
    words = ["validate", "--backends", names, "--jobs", "2", "--out", "runs", "--study", "matrix"]
    app([*words, "--report", "report.md"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
