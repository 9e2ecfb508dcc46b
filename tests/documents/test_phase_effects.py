"""Warnings of replications that are synchronized, and the page about phase effects."""

from __future__ import annotations

import importlib.util
import random
import re
from pathlib import Path
from types import ModuleType

import pytest

import redtail
from redtail.analysis.case import CaseResult
from redtail.analysis.stats import clusters

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "phase-effects.md"
LOCKOUT = ROOT / "python" / "redtail" / "studies" / "papers" / "riva2003" / "lockout.toml"


def _script() -> ModuleType:
    path = PAGE.with_name("phase_effects.py")
    spec = importlib.util.spec_from_file_location("phase_effects", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = _script()


def _third(tmp_path: Path, start: str, jitter: str, queue: str = "tail-drop") -> redtail.Results:
    """Riva's third flow, in two cases: one is never in step, as its queue draws."""
    text = LOCKOUT.read_text()
    parts = text.replace('start = "0 s"', f'start = "{start}"').split("[[factors.zip]]")
    file = tmp_path / "lockout.toml"
    file.write_text(script.at(parts[0], jitter).replace('"tail-drop"', f'"{queue}"'))
    return script.run(file, tmp_path, replications=10)


def test_flows_in_step_are_a_warning_that_names_the_remedy(tmp_path: Path) -> None:
    results = _third(tmp_path, "5.5 s", "0 s")
    assert results.warnings == redtail.load(results.folder).warnings
    (text,) = (text for text in results.warnings if "alike" in text)
    assert re.fullmatch(
        r"replications are implausibly alike in 1 of 2 cases, first in 'tail drop': "
        r"first\.completion_time_mean of 10 replications is in 2 clusters, "
        r"30\.\d+ to 30\.\d+ and 37\.\d+ to 37\.\d+ s; "
        r"a few flows behind tail drop are synchronized, and their phase decides what they get; "
        r"to see what hosts with random delays get, set host_jitter = \"85\.7 ms\" "
        r"\(one packet's transmission time at the bottleneck\)",
        text,
    )


@pytest.mark.parametrize("start", ["2 s", "5 s", "5.5 s"])
def test_flows_of_hosts_with_random_delays_are_none(start: str, tmp_path: Path) -> None:
    # Were the times of ten replications normal with 10 % of their mean, this would fail once in
    # a million; seeds are fixed.
    assert not any("alike" in text for text in _third(tmp_path, start, "86 ms").warnings)


def test_the_random_traffic_of_the_examples_is_none(tmp_path: Path) -> None:
    # Two flows or more behind tail drop, with starts that are drawn: as far as five replications
    # that spread by 3 % go, one case in 1,400 would be told of in error.
    for name in ("quickstart", "real-time"):
        results = script.run(ROOT / "examples" / f"{name}.toml", tmp_path)
        assert not any("alike" in text for text in results.warnings), name


def _two_flows(tmp_path: Path, longer: int, jitter: str) -> redtail.Results:
    text = script.EXAMPLE.read_text().split("[factors]")[0]
    file = tmp_path / "two.toml"
    at = text.index('name = "b"')
    text = text[:at] + text[at:].replace('"100 ms"', f'"{100 + longer} ms"')
    file.write_text(f'host_jitter = "{jitter}"\n{text}')
    return script.run(file, tmp_path)


def test_endless_flows_are_judged_by_the_goodput_of_the_lesser_group(tmp_path: Path) -> None:
    results = _two_flows(tmp_path, 10, "0 s")
    (text,) = results.warnings
    assert "replications are implausibly alike in 1 of 1 case: b.goodput of 5 replications" in text
    assert 'set host_jitter = "10 ms"' in text
    assert _two_flows(tmp_path, 10, "10 ms").warnings == ()


def test_runs_that_are_cleaned_away_or_few_are_not_judged(tmp_path: Path) -> None:
    results = _two_flows(tmp_path, 10, "0 s")
    few = results.cases[0]
    runs = {number: few.runs[number] for number in range(4)}
    case = CaseResult.of(few.factors, few.labels, runs, ())
    less = redtail.Results(
        name="two", description="", factors=(), cases=(case,), folder=results.folder
    )
    assert less.warnings == ()
    for run in few.runs.values():
        (run.folder / "scenario.json").unlink()
    again = redtail.Results(
        name="two", description="", factors=(), cases=results.cases, folder=results.folder
    )
    assert again.warnings == ()


def test_independent_values_are_seldom_alike() -> None:
    # The exact probability that five normal values lie within a third of their standard
    # deviation is 7e-4: 14 of 20,000 expected, and more than 40 once in 10^8.
    stream = random.Random(1992)

    def alarms(n: int, deviation: float) -> int:
        draws = ([stream.gauss(1, deviation) for _ in range(n)] for _ in range(20_000))
        return sum(bool(clusters(values)) for values in draws)

    assert 2 <= alarms(5, 0.03) <= 40
    assert alarms(5, 0.1) <= 3
    assert alarms(10, 0.03) <= 10
    assert alarms(20, 0.03) <= 3


def test_values_without_a_spread_or_a_mean_are_handled() -> None:
    assert clusters([]) == []
    assert clusters([float("nan")] * 9) == []
    assert clusters([3.0] * 5) == [[3.0] * 5]
    assert clusters([0.0] * 5) == []
    assert clusters([1.0] * 4 + [float("nan")]) == []


def test_the_page_shows_every_part_and_the_figures_of_the_script() -> None:
    text = PAGE.read_text()
    assert re.findall(r"<!-- measured: (\w+) -->", text) == list(script.MEASURE)
    for name in ("phase-effects-shares", "phase-effects-third"):
        assert f"(../figures/{name}.png)" in text
        assert (script.FIGURES / f"{name}.png").stat().st_size < 60_000


def test_the_script_sets_the_delay_to_parts_of_a_packets_time() -> None:
    first, more = script.tests()
    slow = script.with_jitter(first.SLOW["D_bfifo_t2"], 0.5)
    assert slow.startswith('host_jitter = "42857 us"\n')
    assert script.with_jitter(more.EXPERIMENTS["cubic_2"], 1.0).startswith(
        'host_jitter = "1200 us"\n'
    )
    plan = redtail.check(redtail.Toml(slow))
    assert "42857 us" in plan.scenario(0, 0)
    # A time is taken as it is, in place of what the text has.
    again = script.with_jitter(slow, "200 us")
    assert again.startswith('host_jitter = "200 us"\n') and again.count("host_jitter") == 1
