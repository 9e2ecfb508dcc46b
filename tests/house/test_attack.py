"""A short form of `make attack`; and that it sees what it is to look for."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import redtail
from attack import estimating, identities, mutate, recordings, schema
from attack.__main__ import Attack, Worker, repeat
from attack.inputs import QUEUES, copy_data, files
from redtail import facts
from redtail.catalog import Catalog
from redtail.engine import batches
from redtail.errors import SpecError
from redtail.lines import Estimated, Found, estimate
from redtail.lines.recordings.found import Direction
from redtail.outcomes import Outcome


@pytest.fixture
def attack(tmp_path: Path) -> Attack:
    return Attack(20261122, tmp_path)


def test_every_file_to_start_from_is_valid_and_every_kind_is_among_them(tmp_path: Path) -> None:
    copy_data(tmp_path)
    texts = []
    for name, text in files().items():
        path = tmp_path / f"{name}.toml"
        path.write_text(text)
        plan = redtail.check(path)
        texts += [plan.example(case) for case in range(len(plan.cases))]
    known = " ".join(texts)
    catalog = Catalog(facts.schema())
    for section in (*catalog.queues, *catalog.traffic):
        if section.kind in schema.KINDS_LEFT_OUT:
            continue
        assert f'"kind":"{section.kind}"' in known, section.kind
    for preset in facts.presets():
        assert f'"preset":"{preset}"' in known, preset


def test_damaged_files_are_refused_with_a_message_or_run(attack: Attack) -> None:
    for _ in range(120):
        attack.one("mutate")
    attack.worker.close()
    assert attack.faults == []
    assert min(attack.ends[end] for end in ("refused", "checked", "ran")) > 5


def test_damaged_recordings_are_refused_or_tell_what_a_line_can_have(attack: Attack) -> None:
    for _ in range(120):
        attack.one("recordings")
    attack.close()
    assert attack.faults == []
    assert min(attack.ends[f"recording {end}"] for end in ("refused", "told", "saved")) > 0


@pytest.mark.parametrize("number", [122, 3793, 5427])
def test_a_base_round_trip_of_which_nothing_remains_is_a_bound(number: int, tmp_path: Path) -> None:
    _, data = recordings.mutant(7, number)  # captures with clocks that jump
    file = tmp_path / "recording.pcap"
    file.write_bytes(data)
    rtt = estimate(file).rtt
    assert rtt.value is not None
    assert rtt.value > 0
    assert rtt.bound == "at most"


def test_recordings_of_all_forms_are_damaged(tmp_path: Path) -> None:
    forms = set()
    file = tmp_path / "recording"
    for name, data in recordings.seeds().items():
        file.write_bytes(data)
        try:
            found = estimate(file)
        except SpecError:
            continue
        capture = recordings.parsed(data)
        forms.add((found.form, capture.order + str(capture.blocks) if capture else ""))
        # Those of redtail have all that a recording of their form tells.
        if " " not in name and found.form == "capture":
            assert found.rtt.known and found.direction(found.main).rate.known, name
    assert forms == {
        *(("capture", "<False"), ("capture", ">False"), ("capture", "<True")),
        *((form, "") for form in ("flent", "iperf3", "crusader", "irtt", "networkquality")),
        *((form, "") for form in ("ping", "mtr", "mahimahi", "measurement")),
    }
    made = [recordings.mutant(3, number) for number in range(40)]
    assert made == [recordings.mutant(3, number) for number in range(40)]
    assert any(data[:2] == b"\x1f\x8b" for _, data in made)
    assert all(len(data) < 2_000_000 for _, data in made)


def test_it_sees_what_no_line_can_have(attack: Attack, tmp_path: Path) -> None:
    found = estimate("examples/cellular.trace", rtt_s=0.05)
    estimating.examine(found)

    def forged(value: float, low: float, high: float) -> Found:
        rate = Estimated(1.0, "bit/s", "given", 1.0, 1.0)
        for name, number in {"value": value, "low": low, "high": high}.items():
            object.__setattr__(rate, name, number)
        return replace(found, down=Direction(rate=rate))

    for numbers in ((2.0, 3.0, 4.0), (float("nan"), 0.0, 1.0), (-1.0, -1.0, 0.0)):
        with pytest.raises((AssertionError, ValueError)):
            estimating.examine(forged(*numbers))
    if sys.platform.startswith("linux"):
        with estimating.memory(1 << 20):
            np.ones(1 << 20)
            with pytest.raises(MemoryError):
                np.ones(1 << 26)
    # A fault is kept, with the command that repeats it.
    attack.estimator.close()
    attack.estimator = Worker("attack.nowhere")
    attack.one("recordings")
    (kept,) = (attack.folder / "found").glob("recordings-*-0")
    assert "the process died of it" in kept.with_suffix(".why").read_text()
    assert repeat(kept) == 0


def test_the_figures_of_every_queue_agree(attack: Attack) -> None:
    for _ in QUEUES:
        attack.one("identities")
    assert attack.faults == []


def test_a_killed_campaign_is_as_if_never_killed(attack: Attack) -> None:
    attack.one("kills")
    assert attack.faults == []


def test_the_same_seed_makes_the_same_files() -> None:
    first = [mutate.mutant(3, number) for number in range(20)]
    assert first == [mutate.mutant(3, number) for number in range(20)]
    assert first != [mutate.mutant(4, number) for number in range(20)]


def test_it_goes_on_where_it_was_stopped(attack: Attack, tmp_path: Path) -> None:
    for _ in range(3):
        attack.one("mutate")
    attack.worker.close()
    again = Attack(attack.seed, tmp_path)
    assert (again.done, again.ends) == (attack.done, attack.ends)
    again.one("mutate")
    again.worker.close()
    assert json.loads(again.state.read_text())["done"]["mutate"] == 4


def test_it_sees_what_it_looks_for(
    attack: Attack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A process that dies, and the one that takes its place.
    path = attack.folder / "work" / "x.toml"
    path.write_text(files()["quickstart"])
    worker = Worker()
    assert worker.attempt(path)["end"] == "ran"
    assert worker.process is not None
    worker.process.kill()
    worker.process.wait()
    assert worker.attempt(path) == {"fault": "the process died of it"}
    assert worker.attempt(path)["end"] == "ran"
    worker.close()
    # Figures that do not agree, kept with the command that repeats them.
    queue, text = identities.scenario(1, 0)
    assert identities.wrong(queue, text) == []
    run_one = batches.run_one

    def altered(scenario: str) -> Outcome:
        outcome = run_one(scenario)
        outcome.metrics["queue_length_mean"] *= 0.999
        outcome.metrics["loss"] = -0.1
        return outcome

    monkeypatch.setattr(batches, "run_one", altered)
    attack.one("identities")
    assert len(attack.faults) == 1
    (kept,) = (attack.folder / "found").glob("identities-*.toml")
    told = kept.with_suffix(".why").read_text()
    assert f"--repeat {kept}" in told
    for part in ("packets waited", "its groups make", "is no fraction"):
        assert part in told
    assert repeat(kept) == 1
    monkeypatch.undo()
    assert repeat(kept) == 0
    assert "nothing is wrong" in capsys.readouterr().out


def test_random_experiments_of_the_schema_agree_with_themselves(attack: Attack) -> None:
    for _ in range(60):
        attack.one("schema")
    assert attack.faults == []
    assert attack.ends["valid"] > 50


@pytest.mark.weekly
def test_the_schema_is_drawn_from_whole() -> None:
    """Every kind, and nearly every key, in experiments that are valid."""
    drawn: set[str] = set()
    for number in range(400):
        text, faults, valid = schema.experiment(5, number)
        assert faults == []
        if valid:
            drawn.update(schema.keys_of(schema.read_back(text)))
    known = {
        f"{kind['properties']['kind']['const']}.{key}"
        for name in ("QueueSpec", "TrafficGroup")
        for kind in facts.schema()["$defs"][name]["oneOf"]
        if kind["properties"]["kind"]["const"] not in schema.KINDS_LEFT_OUT
        for key in kind["properties"]
        if key not in schema.LEFT_OUT
    } | {f"tcp.{key}" for key in facts.schema()["$defs"]["TcpTable"]["properties"]}
    assert {each for each in known - drawn if each.endswith(".kind")} == set()
    assert len(known - drawn) < len(known) / 50, sorted(known - drawn)


def test_it_sees_experiments_that_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    text, _, valid = schema.experiment(1, 0)
    assert valid and schema.wrong(text) == []
    run_one = batches.run_one
    broken = {
        "queue_length_mean": (1.01, "s waited"),
        "loss": (0.5, "lost"),
        "utilization": (1.1, "its groups make"),
        "queue_delay_p99": (0.01, "and the p99 is"),
    }

    def altered(name: str, by: float) -> None:
        def run(*rest: object, **more: object) -> Outcome:
            outcome = run_one(*rest, **more)  # type: ignore[arg-type]
            if name in outcome.metrics:
                outcome.metrics[name] *= by
            return outcome

        monkeypatch.setattr(batches, "run_one", run)

    for number in range(40):
        text, _, _ = schema.experiment(9, number)
        for name, (by, told) in list(broken.items()):
            altered(name, by)
            found = "\n".join(schema.wrong(text))
            if told in found:
                del broken[name]
            if found:
                assert "a capture changes the run" in found
    assert broken == {}
