"""What a campaign costs outside the simulation, and what it costs to open its results.

The start is the time for loading redtail and the libraries that a campaign needs.

`bench.py` starts this program anew for every figure, so that memory is that of one campaign:

    campaign.py run RUNS [RATE]   makes a campaign of so many runs of one second
    campaign.py open RUNS         opens the results of a campaign of so many runs
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

_SCENARIO = Path(__file__).resolve().parent / "scenarios" / "campaign.toml"

#: Of the table that is opened; metrics as many as a run of `campaign.toml` has.
CASES = 1000
METRICS = 37


def cpu_s() -> float:
    """CPU time of this process, all threads, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_kib() -> int:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run(runs: int, rate: str) -> dict[str, float]:
    """Make a campaign; the time inside is that of the native call, by the thread's own clock."""
    start = time.perf_counter()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `redtail run` does
    import pyarrow.parquet

    import redtail
    import redtail.running.runner
    from redtail import _native

    assert pyarrow.parquet
    start_s = cpu_s()
    inside = 0.0
    native = _native.run_many

    def timed(*arguments: object) -> object:
        nonlocal inside
        before = time.thread_time()
        result = native(*arguments)
        inside += time.thread_time() - before
        return result

    _native.run_many = timed
    with TemporaryDirectory() as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = redtail.run(
            _SCENARIO, set={"bottleneck.rate": rate}, replications=runs // 2, out=out
        )
        return {
            "runs": done.run_count,
            "start_s": start_s,
            "inside_s": inside,
            "cpu_s": cpu_s(),
            "wall_s": time.perf_counter() - start,
            "peak_kib": peak_kib(),
        }


def made(runs: int, out: Path) -> Path:
    """Write results of so many runs that were never made; returns their folder."""
    import numpy as np

    from redtail.analysis.case import CaseResult
    from redtail.analysis.results import Results
    from redtail.analysis.stored import write
    from redtail.store.folders import ExperimentStore
    from redtail.store.segments import CaseRuns, RunTable

    store = ExperimentStore(out, "many")
    run_table = RunTable(store.folder)
    names = ["goodput", "utilization", *(f"ftp.metric_{n}" for n in range(METRICS - 2))]
    draws = np.random.default_rng(1).normal(1.0, 0.1, (runs, METRICS))
    for number, row in enumerate(draws):
        run_table.add(f"{number:016x}", dict(zip(names, map(float, row), strict=True)), "{}")
    each = runs // CASES
    cases = tuple(
        CaseResult.of(
            {"traffic.ftp.flows": case},
            {"traffic.ftp.flows": str(case)},
            CaseRuns(run_table, {n: case * each + n for n in range(each)}),
            (),
        )
        for case in range(CASES)
    )
    results = Results(
        name="many", description="", factors=["traffic.ftp.flows"], cases=cases, folder=store.folder
    )
    write(results, store)
    return store.folder


def opened(folder: Path) -> dict[str, float]:
    """Open results, and ask for the mean of a metric by case."""
    start = time.perf_counter()
    import polars as pl

    import redtail

    results = redtail.load(folder)
    load_s = time.perf_counter() - start
    column = "goodput_bit_per_s"
    rows = results.to_polars().group_by("case").agg(pl.col(column).mean()).height
    seconds = time.perf_counter() - start

    start = time.perf_counter()
    scan = pl.scan_parquet(folder / "replications.parquet").group_by("case")
    assert scan.agg(pl.col(column).mean()).collect().height == rows
    return {
        "runs": results.run_count,
        "load_s": load_s,
        "table_s": seconds,
        "scan_s": time.perf_counter() - start,
        "peak_kib": peak_kib(),
    }


def main() -> int:
    """Print one measurement as JSON."""
    what, words = sys.argv[1], sys.argv[2:]
    if what == "run":
        report = run(int(words[0]), words[1] if len(words) > 1 else "100 Mbit/s")
    elif what == "opened":
        report = opened(Path(words[0]))
    else:
        with TemporaryDirectory() as out:
            folder = made(int(words[0]), Path(out))
            command = [sys.executable, __file__, "opened", str(folder)]
            return subprocess.run(command, check=False).returncode
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
