"""Compares what one experiment measures: on 1 and 2 threads, and in two builds of the engine.

    python tests/determinism.py --against target/debug-python

runs the examples' quickstart here on 1 and on 2 threads, and with the redtail package in the
folder given (a debug build, say), and fails unless all stored tables are the same, byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES = ("quickstart.toml", "chain.toml", "congested-return.toml")
SETTINGS = {
    "duration": "6 s",
    "warmup": "2 s",
    "series": {"interval": "50 ms", "queues": True, "windows": True},
}


def measure(jobs: int) -> dict[str, str]:
    """Return a digest of every scenario and table of the examples, cut short."""
    import warnings

    import redtail

    warnings.simplefilter("ignore", redtail.RedtailWarning)
    digests = {}
    with tempfile.TemporaryDirectory() as out:
        for example in EXAMPLES:
            redtail.run(
                ROOT / "examples" / example, set=SETTINGS, replications=2, jobs=jobs, out=out
            )
        for path in sorted(Path(out).rglob("*")):
            if path.suffix == ".parquet" or path.name == "scenario.json":
                name = str(path.relative_to(out))
                digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


def main() -> None:
    """Compare, and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", type=Path, help="folder with another build of redtail")
    parser.add_argument("--measure", action="store_true", help="print digests and do no more")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(jobs=2)))
        return

    one = measure(jobs=1)
    compared = {"2 threads": measure(jobs=2)}
    if options.against is not None:
        done = subprocess.run(
            [sys.executable, __file__, "--measure"],
            env={**os.environ, "PYTHONPATH": str(options.against)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        compared[str(options.against)] = json.loads(done.stdout)
    for name, other in compared.items():
        different = sorted(path for path in one | other if one.get(path) != other.get(path))
        if different:
            sys.exit(f"{name}: different from 1 thread here: {', '.join(different[:10])}")
    print(f"{len(one)} files are the same on 1 thread, and with {', '.join(compared)}")


if __name__ == "__main__":
    main()
