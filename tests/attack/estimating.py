"""Estimates lines from recordings, in a process that may die of it.

    python -m attack.estimating

reads the name of a file from each line and answers with a line of JSON: {"end": "refused"},
"told" or "saved", or {"fault": "..."} for what must not happen.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import ruptures
import scipy.sparse.csgraph
import scipy.stats

import redtail
from attack.inputs import ROOT
from redtail import lines
from redtail.cli import estimate as command
from redtail.errors import SpecError
from redtail.lines.recordings import (
    captures,
    crusader,
    flent,
    iperf3,
    irtt,
    line,
    mahimahi,
    measurement,
    mtr,
    networkquality,
    pings,
)  # fmt: skip
from redtail.lines.recordings.found import Found
from redtail.lines.recordings.reading import LEAST_UNPACKED_B, completed

# Above that of the empty process: 100 MB, and 10 times the file.
_BESIDE, _TIMES = 100_000_000, 10
# Processor time of an estimate, far above that of the largest recording to start from.
_SECONDS = 20.0

# What an estimate loads when it is needed is in the empty process already.
LOADED = (
    pandas, ruptures, scipy.sparse.csgraph, scipy.stats, captures, crusader, flent, iperf3, irtt,
    mahimahi, measurement, mtr, networkquality, pings,
)  # fmt: skip

# One of so many recordings is shown, which takes as long as an estimate.
_SHOWN = 4

_DIRECTIONS = (None, "down", "up")

_GIVEN: dict[str, Any] = {"rtt_s": 0.05, "down_bps": 10e6, "up_bps": 1e6}


def main() -> None:
    """Answer until there is nothing more to do."""
    # Numbers that were computed of nothing would else be a line on standard error.
    warnings.simplefilter("error", RuntimeWarning)
    with tempfile.TemporaryDirectory() as folder:
        saved(lines.estimate(ROOT / "examples" / "cellular.trace", **_GIVEN), Path(folder))
        for name in sys.stdin:
            try:
                answer = {"end": attempt(Path(name.rstrip("\n")), Path(folder))}
            except BaseException as error:
                answer = {"fault": "".join(traceback.format_exception(error))[-3000:]}
            print(json.dumps(answer), flush=True)


def attempt(path: Path, folder: Path) -> str:
    """Estimate a line, and write what was found as an experiment; returns how far that came.

    Raises:
        BaseException: what must not happen.
    """
    begin = time.process_time()
    with memory(size(path)):
        try:
            direction = _DIRECTIONS[path.stat().st_size % len(_DIRECTIONS)]
            found = lines.estimate(path, direction=direction)
            given = completed(found, **_GIVEN)
        except SpecError as error:
            told(path, error)
            return "refused"
        examine(found)
        examine(given)
        if path.stat().st_size % _SHOWN == 0:
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
                command.show(found)
            assert "\x1b" not in shown.getvalue(), "what others named reaches the terminal"
        end = saved(given, folder)
        with contextlib.suppress(SpecError):
            line.recorded_line(given, "unknown", ("web",))
    spent = time.process_time() - begin
    assert spent < _SECONDS, f"{spent:.0f} s of processor time"
    return end


def told(path: Path, error: SpecError) -> None:
    """Refuse a message that does not say what is wrong with the file."""
    text = str(error)
    assert text.startswith(f"{path}: ") and len(text) > len(f"{path}: "), text
    assert "fault in redtail" not in text, text
    assert len(text) < 2000, f"a message of {len(text)} letters"


def saved(found: Found, folder: Path) -> str:
    """Write an experiment, which has to be valid; returns how far that came."""
    file = folder / "line.toml"
    try:
        lines.write_experiment(found, file, force=True)
    except SpecError as error:
        assert "fault in redtail" not in str(error), str(error)
        return "told"
    redtail.check(file)
    text = file.read_text(encoding="utf-8")
    assert text == "".join(c for c in text if c == "\n" or c.isprintable()), "signs in the file"
    return "saved"


def examine(found: Found) -> None:
    """Refuse what no line can have."""
    tree = json.loads(found.to_json(), parse_constant=constant)
    for name, value in found.rows():
        numbers = [each for each in (value.low, value.value, value.high) if each is not None]
        assert numbers == sorted(numbers), f"{name}: {value}"
        assert all(0 <= each < 1e300 for each in numbers), f"{name}: {value}"
        assert value.known or not numbers, f"{name}: {value}"
        assert value.unit or all(each <= 1 for each in numbers), f"{name}: {value}"
        assert value.basis, f"{name}: nothing says how it was found"
    assert found.rtt.value is None or found.rtt.value > 0, found.rtt
    assert 0 <= tree["duration_s"] < 1e12
    for way in (found.down, found.up):
        assert way.busy is None or 0 <= way.busy <= 1, way.busy
        times = list(way.trace_ms)
        assert times == sorted(times) and all(each >= 0 for each in times), "a trace goes back"
        assert not times or times[-1] > 0, "a trace takes no time"
        assert all(begin <= end and bps >= 0 for begin, end, bps in way.steps), way.steps
    for flows in found.flows:
        assert flows.count > 0 and flows.bps >= 0 and flows.packet_b >= 0, flows
        assert all(rtt > 0 and count > 0 for rtt, count in flows.rtts_s), flows


def constant(name: str) -> object:
    """Refuse what is no JSON."""
    raise AssertionError(f"{name} in JSON")


def size(path: Path) -> int:
    """The bytes of a recording, unpacked up to what is unpacked of small files."""
    data = path.read_bytes()
    with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(path) as packed:
        return len(data) + len(packed.read(LEAST_UNPACKED_B))
    return len(data)


@contextlib.contextmanager
def memory(file: int) -> Iterator[None]:
    """Limit the memory of the process, under Linux, to what it has and what a file may take."""
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    with Path("/proc/self/statm").open() as told_by:
        now = int(told_by.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + _BESIDE + _TIMES * file, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


if __name__ == "__main__":
    main()
