"""What `make bench` does with runs in real time; how fast they are is not tested."""

from __future__ import annotations

import importlib.util
import struct
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "benches" / "real_time.py"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("real_time", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "real_time", module)
    spec.loader.exec_module(module)
    return module


def test_a_trace_has_the_packets_of_the_rate_and_none_too_early(bench: ModuleType) -> None:
    for rate in bench.RATES:
        opportunities = bench.opportunities(rate)
        assert len(opportunities) * 1500 * 8 == rate * 1000 * opportunities[-1]
        for number, at_ms in enumerate(opportunities, start=1):
            exact_ms = number * 1500 * 8 / (rate * 1000)
            assert exact_ms <= at_ms < exact_ms + 1


def test_a_rate_counts_if_one_try_is_good_and_the_search_ends_where_none_is(
    bench: ModuleType,
) -> None:
    errors = {50: [1e-3, 1e-5], 100: [1e-5], 200: [1e-3, 1e-3, 1e-3]}

    def measure(rate: int) -> Any:
        return bench.Try(rate, utilization=1.0, cpu=0.5, error_s=errors[rate].pop(0))

    runs = bench.search(measure, bench.punctual, tries=3)
    assert [run.rate for run in runs] == [50, 50, 100, 200, 200, 200]
    assert bench.highest(runs, bench.punctual).rate == 100


@pytest.mark.parametrize(
    ("change", "punctual"),
    [
        ({}, True),
        ({"error_s": 200e-6}, False),
        ({"utilization": 0.5}, False),
        ({"valid": False}, False),
    ],
    ids=["good", "late", "no bottleneck", "not valid"],
)
def test_a_punctual_run_is_valid_not_late_and_has_a_bottleneck(
    bench: ModuleType, change: dict[str, Any], punctual: bool
) -> None:
    run = bench.Try(50, **{"utilization": 1.0, "cpu": 0.5, "error_s": 199e-6} | change)
    assert bench.punctual(run) == punctual


def test_the_table_shows_the_highest_good_run_and_the_best_one_above(
    bench: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "fq-codel, 99 % less than 200 us late"
    runs = [bench.Try(50, 1.0, 0.25, 15e-6), bench.Try(100, 0.5, 0.5, 300e-6)]
    bench.show_live({name: [*runs, bench.Try(100, 0.5, 0.5, 400e-6)]})
    lines = capsys.readouterr().out.splitlines()
    words = next(line for line in lines if line.startswith(name))[len(name) :].split()
    assert words == ["50", "15", "100.0%", "0.25", "100", "300", "50.0%", "0.50"]
    assert any(line.startswith("mm-link") and "not measured" in line for line in lines)


def pcap(times_us: list[int]) -> bytes:
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 40, 101)
    records = [struct.pack("<IIII", *divmod(at, 1_000_000), 4, 1500) + b"data" for at in times_us]
    return header + b"".join(records)


def test_lateness_is_what_has_passed_of_the_millisecond(bench: ModuleType) -> None:
    # 98 packets at 20 us after a millisecond and two later ones; the first second does not count.
    times = [5_000_900, *(6_500_020 + 1000 * i for i in range(98)), 6_600_450, 6_601_870]
    assert bench.lateness(pcap(times), skipped_s=1) == pytest.approx(450e-6)


@pytest.mark.parametrize("capture", [b"", b"\n\r\r\n" * 9, pcap([])], ids=["empty", "pcapng", "no"])
def test_a_capture_without_packets_is_no_measurement(bench: ModuleType, capture: bytes) -> None:
    with pytest.raises(RuntimeError, match="dumpcap"):
        bench.lateness(capture, skipped_s=1)
