"""Whether a packet costs more instructions than it did: a guard of the hot path.

It counts the instructions of rows a, b and w of the benchmark, shortened, with callgrind, and
compares them with `instructions.toml`. Unlike times they do not depend on other work of the
machine, so a test can hold them to a bound: a row that takes more than `BOUND` more fails. The
build is that of the tests, without link-time optimisation, so the counts are not those of a
release.

Run it as ``make check-instructions``. When a change is worth its instructions, or saves some,
``make check-instructions RENEW=1`` writes the new counts; say why in the commit.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import ROWS, build, total

_HERE = Path(__file__).resolve().parent
_COUNTS = _HERE / "instructions.toml"

#: The rows that are guarded.
GUARDED = ("a", "b", "w")

#: Simulated time and warm-up of a guarded run: some 50,000 packets in each row.
DURATION, WARMUP = "60 s", "10 s"

#: The function that runs a scenario. What is before and after it is not counted: reading and
#: checking the file is 1 % of so short a run, and its code is built without optimisation here.
RUN = "redtail_sim::engine::run::run"

#: The share by which a row may grow. The count of a build is exact, and differs by some tenths of a
#: per cent between builds in which nothing of the hot path changed.
BOUND = 0.03

_HEADER = """\
# Instructions a bottleneck packet, counted by `make check-instructions`, and the compiler that
# they hold for. `make check-instructions RENEW=1` writes this file.
"""


def shortened(scenario: str) -> str:
    """The text of a scenario with duration and warm-up of a guarded run."""
    for key, value in (("duration", DURATION), ("warmup", WARMUP)):
        scenario, found = re.subn(rf'(?m)^{key} = ".*"$', f'{key} = "{value}"', scenario)
        if found != 1:
            raise ValueError(f"the scenario has {found} lines with {key}, not one")
    return scenario


def count(program: Path, scenario: str) -> float:
    """The instructions of a run of `scenario` for each packet, set-up of the network included.

    Raises:
        RuntimeError: If valgrind or the program fails, or has no function `RUN`.
    """
    with TemporaryDirectory() as folder:
        file, out = Path(folder) / "scenario.toml", Path(folder) / "out"
        file.write_text(scenario)
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        command += [f"--toggle-collect={RUN}", str(program), str(file)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        counted = total(out)
        if counted == 0:
            raise RuntimeError(f"{program.name} has no function {RUN}, so nothing was counted")
        return counted / json.loads(done.stdout)["packets"]


def judge(counts: Mapping[str, float], known: Mapping[str, float]) -> list[str]:
    """The rows of `counts` that take more than `BOUND` more than is known, as messages."""
    return [
        f"row {row}: {counts[row]:.0f} instructions a packet, {counts[row] / known[row] - 1:+.1%}"
        f" of {known[row]:.0f}; at most {BOUND:+.0%} is accepted"
        for row in known
        if counts[row] > known[row] * (1 + BOUND)
    ]


def _compiler() -> str:
    """The version of the Rust compiler, which decides the counts."""
    done = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True)
    return done.stdout.split()[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, and compare or renew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--renew", action="store_true", help="write the counts to instructions.toml"
    )
    options = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: instructions are not counted (apt install valgrind)")
        return 0
    compiler = _compiler()
    stored = tomllib.loads(_COUNTS.read_text()) if _COUNTS.exists() else {}
    if stored.get("compiler") != compiler and not options.renew:
        print(
            f"{_COUNTS.name} has counts of Rust {stored.get('compiler')}, and this is {compiler}: "
            "not compared. After an update of rust-toolchain.toml: make check-instructions RENEW=1"
        )
        return 0
    program = build("redtail-bench", "packet_cost", profile="quick", together_with="redtail-py")
    scenarios = {row: (_HERE / "scenarios" / ROWS[row][1]).read_text() for row in GUARDED}
    counts = {row: count(program, shortened(text)) for row, text in scenarios.items()}
    if options.renew:
        lines = [f"{row} = {instructions:.1f}\n" for row, instructions in counts.items()]
        text = f'{_HEADER}compiler = "{compiler}"\n\n[rows]\n{"".join(lines)}'
        _COUNTS.write_text(text)
    known = tomllib.loads(_COUNTS.read_text())["rows"]
    for row in GUARDED:
        change = counts[row] / known[row] - 1
        print(f"row {row}: {counts[row]:.0f} instructions a packet ({change:+.2%})")
    faults = judge(counts, known)
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults and min(counts[row] / known[row] for row in GUARDED) < 1 - BOUND:
        print("fewer than before: make check-instructions RENEW=1 keeps the gain")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
