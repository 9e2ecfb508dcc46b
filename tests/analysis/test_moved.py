"""`redtail diff`: what moved between two results of one experiment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import redtail
from redtail.analysis import moved
from redtail.analysis.case import CaseResult
from redtail.analysis.results import Results
from redtail.analysis.tolerances import Tolerances
from redtail.cli import app
from redtail.errors import SpecError
from redtail.store.folders import StoredRun


def results(values: dict[str, list[float]], metric: str = "goodput") -> Results:
    """Results with one metric: for each case its value by replication."""
    cases = []
    for label, measured in values.items():
        runs = {
            number: StoredRun(f"{number:016x}", Path(), {metric: value}, {}, {})
            for number, value in enumerate(measured)
        }
        factors: dict[str, Any] = {"bottleneck.queue": {}}
        cases.append(CaseResult.of(factors, {"bottleneck.queue": label}, runs, ()))
    return Results(
        name="Made up",
        description="",
        factors=["bottleneck.queue"],
        cases=tuple(cases),
        folder=Path("here"),
    )


NOISE = [0.1, -0.2, 0.05, 0.15, -0.1, 0.02, -0.07, 0.12]
OLD = [10.0, 10.5, 9.8, 10.2, 10.1, 9.9, 10.4, 10.3]


def verdict(new: list[float], old: list[float] = OLD, **options: Any) -> str:
    (row,) = moved.diff(results({"RED": old}), results({"RED": new}), **options)
    return row.verdict


def test_verdicts() -> None:
    noisy = [value + noise for value, noise in zip(OLD, NOISE, strict=True)]
    shifted = [value + 1 for value in noisy]
    assert verdict(OLD) == "equal"
    assert verdict(noisy) == "within noise"
    assert verdict(shifted) == "moved"
    # One and the same shift everywhere: the sign test needs six of them.
    assert verdict([value + 1 for value in OLD[:6]], OLD[:6]) == "moved"
    assert verdict([value + 1 for value in OLD[:5]], OLD[:5]) == "not certain"
    # Copies of one run are one observation, as one replication is.
    assert verdict([11.0] * 8, [10.0] * 8) == "not certain"
    assert verdict([11.0] * 8) == "not certain"
    assert verdict([11.0], [10.0]) == "not certain"
    allowed = Tolerances({"goodput": "20 %"})
    assert verdict(shifted, tolerances=allowed) == "within tolerance"
    assert verdict([11.0], [10.0], tolerances=allowed) == "within tolerance"
    assert verdict(shifted, tolerances=Tolerances({"goodput": "1 %"})) == "moved"
    # A tolerance that is exceeded by noise alone is not exceeded.
    assert verdict(noisy, tolerances=Tolerances({"goodput": "0.001 %"})) == "within noise"
    # A tolerance of another metric, or a default one of `compare --backends`, does not count.
    assert verdict(shifted, tolerances=Tolerances({"loss": "50 %"})) == "moved"


def test_many_comparisons_do_not_make_noise_a_finding() -> None:
    shift = [value + noise + 0.12 for value, noise in zip(OLD, NOISE, strict=True)]
    many = {"moved": OLD} | {f"same {number}": OLD for number in range(3)}
    new = {name: shift if name == "moved" else OLD for name in many}
    alone = moved.diff(results(many), results(new), correction="none")
    assert [row.title for row in alone.moved] == ["moved"]
    noise = {f"noise {n}": [v + e for v, e in zip(OLD, NOISE, strict=True)] for n in range(30)}
    old = {"moved": OLD} | {name: OLD for name in noise}
    found = moved.diff(results(old), results({"moved": shift} | noise))
    (first, *_) = found
    assert first.p_adjusted is not None and first.p is not None
    assert first.p_adjusted == pytest.approx(min(1.0, 31 * first.p))


def test_what_one_of_the_two_lacks_is_said() -> None:
    found = moved.diff(results({"RED": OLD, "PIE": OLD}), results({"RED": OLD, "CoDel": OLD}))
    assert found.only == ("PIE: only in the old results", "CoDel: only in the new results")
    assert not found.same and not found.moved
    with pytest.raises(SpecError, match="no case in common"):
        moved.diff(results({"RED": OLD}), results({"PIE": OLD}))
    lost = moved.diff(results({"RED": OLD}), results({"RED": OLD}, "loss"))
    assert {row.metric: row.verdict for row in lost} == {"goodput": "missing", "loss": "missing"}
    assert not lost.same


def test_the_command_exits_with_1_when_something_moved(tmp_path: Path) -> None:
    def made(out: str, *words: str) -> str:
        redtail.run(
            "examples/quickstart.toml",
            out=tmp_path / out,
            replications=3,
            set=["duration=14 s", *words],
        )
        return str(tmp_path / out / "quickstart")

    old, same, other = made("a"), made("b"), made("c", "bottleneck.delay=60 ms")
    runner = CliRunner()
    done = runner.invoke(app, ["diff", old, same])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("nothing moved: ") and "moved:" not in done.output[14:]
    done = runner.invoke(app, ["diff", old, other, "--correction", "none"])
    assert done.exit_code == 1
    assert "loss %" in done.output and "bottleneck.delay=60 ms" in done.output
    wide = ["--metrics", "queue_delay_mean", "--tolerance", "queue_delay_mean=1 s"]
    assert runner.invoke(app, ["diff", old, other, *wide]).exit_code == 0
    found = json.loads(runner.invoke(app, ["diff", old, other, "--json"]).stdout)
    assert found["old"]["seed"] == 1
    rows = {(row["metric"], row["case"]): row for row in found["rows"]}
    loss = rows["loss", "RED"]
    assert loss["difference"]["mean"] == pytest.approx(loss["new"]["mean"] - loss["old"]["mean"])
    misspelt = runner.invoke(app, ["diff", old, same, "--metrics", "los"])
    assert misspelt.exit_code == 2 and "nearest: loss" in misspelt.output
