"""Where results come from: `experiment.toml` beside them, `redtail pack`, and `--verify`."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import redtail
from redtail import packing
from redtail.analysis import results as stored
from redtail.cli import app
from redtail.errors import SpecError, StoreError

EXPERIMENT = """
name = "Packed"
duration = "4 s"
warmup = "2 s"
replications = 2
seed = 7 # as it was given, with this remark

[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "40 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 2
start = "uniform 0..1 s"

[factors]
"traffic.ftp.flows" = [2, 4]
"""


@pytest.fixture
def ran(tmp_path: Path) -> stored.Results:
    file = tmp_path / "given.toml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    return redtail.run(file, out=tmp_path / "runs", set=["bottleneck.delay=12 ms"])


def invoked(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


def altered(archive: Path, name: str, data: bytes | None, file: Path) -> Path:
    """Copy an archive with another content of one entry, or without it."""
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(file, "w") as new:
        for each in old.namelist():
            if each != name:
                new.writestr(each, old.read(each))
        if data is not None:
            new.writestr(name, data)
    return file


def test_results_have_the_experiment_as_it_was_given(ran: stored.Results) -> None:
    assert (ran.folder / "experiment.toml").read_text("utf-8") == EXPERIMENT
    again = redtail.load(ran.folder)
    assert again.provenance == ran.provenance
    assert again.provenance.seed == 7 and again.provenance.sets == ("bottleneck.delay=12 ms",)
    command = again.provenance.command()
    assert command is not None and command.endswith("--set 'bottleneck.delay=12 ms'")


def test_tables_and_json_say_where_they_come_from(ran: stored.Results) -> None:
    for name in ("cases.parquet", "replications.parquet"):
        metadata = pq.read_schema(ran.folder / name).metadata
        assert metadata[b"redtail.version"].decode() == redtail.__version__
        assert metadata[b"redtail.seed"] == b"7"
        assert metadata[b"redtail.format"] == b"1"
    found = json.loads(ran.to_json())
    assert (found["format"], found["version"], found["seed"]) == (1, redtail.__version__, 7)
    assert found["units"]["goodput"] == "bit/s"
    assert found["units"].keys() == set(ran.metric_names)


def test_typed_experiments_are_kept_as_json(tmp_path: Path) -> None:
    experiment = redtail.Experiment(
        name="Typed",
        duration="2 s",
        warmup="1 s",
        replications=1,
        bottleneck=redtail.Bottleneck(
            rate="5 Mbit/s", delay="10 ms", queue=redtail.TailDrop(limit="20 packets")
        ),
        traffic=[redtail.Bulk(name="ftp", flows=1)],
    )
    results = redtail.run(experiment, out=tmp_path)
    assert json.loads((results.folder / "experiment.json").read_bytes())["name"] == "Typed"
    assert results.provenance.command() is None
    archive = packing.pack(results.folder, tmp_path / "typed.zip")
    assert packing.verify(archive).bytes_agree


def test_an_archive_repeats_byte_by_byte(ran: stored.Results, tmp_path: Path) -> None:
    archive = tmp_path / "packed.zip"
    done = invoked("pack", ran.folder, "--output", archive)
    assert done.exit_code == 0, done.output
    first = archive.read_bytes()
    packing.pack(ran.folder, archive)
    assert archive.read_bytes() == first, "the same results give the same archive"
    done = invoked("run", archive, "--verify")
    assert done.exit_code == 0, done.output
    assert "4 runs repeated: every byte of what they measured agrees" in done.output
    assert done.output.count("every byte agrees") == 3
    assert "not compared: README.md\n" in done.output
    refused = invoked("run", archive)
    assert refused.exit_code == 2 and "--verify" in refused.output


def test_numbers_that_are_others_are_found(ran: stored.Results, tmp_path: Path) -> None:
    archive = packing.pack(ran.folder, tmp_path / "packed.zip")
    with zipfile.ZipFile(archive) as file:
        index = json.loads(file.read("pack.json"))
        text = file.read(index["experiment"]).replace(b"seed = 7", b"seed = 8")
    other = altered(archive, index["experiment"], text, tmp_path / "text.zip")
    with pytest.raises(StoreError, match="was altered"):
        packing.verify(other)
    index["files"][index["experiment"]] = {
        "bytes": len(text),
        "sha256": hashlib.sha256(text).hexdigest(),
    }
    forged = altered(other, "pack.json", json.dumps(index).encode(), tmp_path / "forged.zip")
    found = packing.verify(forged)
    assert not found.bytes_agree and not found.numbers_agree
    assert len(found.differing) == 4
    done = invoked("run", forged, "--verify")
    assert done.exit_code == 1 and "4 of 4 runs: bytes differ" in done.output


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "a\\evil", "C:evil"])
def test_no_entry_leaves_the_archive(name: str, ran: stored.Results, tmp_path: Path) -> None:
    archive = packing.pack(ran.folder, tmp_path / "packed.zip")
    with zipfile.ZipFile(archive) as file:
        index = json.loads(file.read("pack.json"))
    index["files"][name] = {"bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    one = altered(archive, "pack.json", json.dumps(index).encode(), tmp_path / "one.zip")
    with pytest.raises(StoreError, match="no path inside the archive"):
        packing.unpack(altered(one, name, b"x", tmp_path / "two.zip"), tmp_path / "into")
    assert not list(tmp_path.rglob("evil"))


def test_damaged_archives_are_refused(ran: stored.Results, tmp_path: Path) -> None:
    archive = packing.pack(ran.folder, tmp_path / "packed.zip")
    cut = tmp_path / "cut.zip"
    cut.write_bytes(archive.read_bytes()[:500])
    with zipfile.ZipFile(archive) as file:
        index = json.loads(file.read("pack.json"))
    newer = json.dumps({**index, "format": 9}).encode()
    for path, message in (
        (cut, "cannot be read"),
        (altered(archive, "results/results.json", None, tmp_path / "less.zip"), "cannot be read"),
        (altered(archive, "pack.json", newer, tmp_path / "newer.zip"), "written in format 9"),
        (tmp_path / "none.zip", "no such file"),
    ):
        with pytest.raises(StoreError, match=message):
            packing.verify(path)


def test_files_that_the_experiment_names_are_packed(tmp_path: Path) -> None:
    inner = tmp_path / "experiments"
    inner.mkdir()
    table = tmp_path / "flows.csv"
    table.write_text("start_s,size_bytes\n0.1,5000\n0.2,90000\n", encoding="utf-8")
    text = EXPERIMENT.partition("[[traffic]]")[0] + (
        '[[traffic]]\nname = "t"\nkind = "trace"\nfile = "../flows.csv"\n'
    )
    (inner / "traced.toml").write_text(text, encoding="utf-8")
    results = redtail.run(inner / "traced.toml", out=tmp_path / "runs")
    assert results.provenance.inputs == ("../flows.csv",)
    archive = packing.pack(results.folder, tmp_path / "packed.zip")
    names = zipfile.ZipFile(archive).namelist()
    assert {"experiment/level1/traced.toml", "experiment/flows.csv"} <= set(names)
    assert packing.verify(archive).bytes_agree

    kept = table.read_text("utf-8")
    table.write_text(kept.replace("5000", "6000"), encoding="utf-8")
    with pytest.raises(SpecError, match="not of the files that the experiment names now"):
        packing.pack(results.folder, tmp_path / "other.zip")
    table.rename(tmp_path / "moved.csv")
    with pytest.raises(SpecError, match="--experiment FOLDER"):
        packing.pack(results.folder, tmp_path / "other.zip")
    assert not (tmp_path / "other.zip").exists()


def test_code_of_an_archive_is_not_executed_without_permission(tmp_path: Path) -> None:
    source = Path("examples/python-queue.py").read_text("utf-8")
    mark = tmp_path / "executed"
    (tmp_path / "python-queue.py").write_text(
        f"{source}\nfrom pathlib import Path\nPath({str(mark)!r}).touch()\n", encoding="utf-8"
    )
    text = Path("examples/python-queue.toml").read_text("utf-8")
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    short = ["duration=3 s", "warmup=1 s", "traffic.ftp.start=0 s"]
    results = redtail.run(tmp_path / "own.toml", out=tmp_path / "runs", set=short, replications=1)
    mark.unlink()
    archive = packing.pack(results.folder, tmp_path / "packed.zip")
    with pytest.raises(SpecError, match="--allow-code"):
        packing.verify(archive)
    assert not mark.exists(), "neither packing nor a refused check executes code"
    os.rename(tmp_path / "python-queue.py", tmp_path / "gone.py")
    assert packing.verify(archive, allow_code=[archive]).bytes_agree
    assert mark.exists()


def test_modules_that_a_class_imports_are_packed(tmp_path: Path) -> None:
    folder = tmp_path / "experiment"
    (folder / "laws").mkdir(parents=True)
    source = Path("examples/python-queue.py").read_text("utf-8")
    source = source.replace("self.max_p * min", "law.factor() * self.max_p * min")
    (folder / "python-queue.py").write_text(f"from laws import law\n{source}", encoding="utf-8")
    (folder / "laws" / "__init__.py").touch()
    law = folder / "laws" / "law.py"
    law.write_text("def factor():\n    from . import more\n    return more.FACTOR\n")
    (folder / "laws" / "more.py").write_text("FACTOR = 2.0\n")
    text = Path("examples/python-queue.toml").read_text("utf-8")
    (folder / "own.toml").write_text(text, encoding="utf-8")
    short = ["duration=3 s", "warmup=1 s", "traffic.ftp.start=0 s"]
    results = redtail.run(folder / "own.toml", out=tmp_path / "runs", set=short, replications=1)
    archive = packing.pack(results.folder, tmp_path / "packed.zip")
    names = zipfile.ZipFile(archive).namelist()
    assert {f"experiment/laws/{name}.py" for name in ("__init__", "law", "more")} <= set(names)

    (folder / "laws" / "more.py").write_text("FACTOR = 3.0\n")
    with pytest.raises(SpecError, match="not of the files that the experiment names now"):
        packing.pack(results.folder, tmp_path / "other.zip")
    folder.rename(tmp_path / "gone")
    with pytest.raises(SpecError, match=r"laws/more\.py; look at it"):
        packing.verify(archive)
    assert packing.verify(archive, allow_code=archive).bytes_agree


def test_a_class_that_a_program_has_passed_is_not_packed(tmp_path: Path) -> None:
    queue = {"kind": "plugin", "class": _Passed, "limit": "40 packets"}
    (tmp_path / "given.toml").write_text(EXPERIMENT, encoding="utf-8")
    sets = {"bottleneck.queue": queue, "duration": "2 s", "warmup": "1 s"}
    with pytest.warns(redtail.RedtailWarning):
        results = redtail.run(tmp_path / "given.toml", set=sets, out=tmp_path / "runs")
    with pytest.raises(SpecError, match="a program has passed"):
        packing.pack(results.folder, tmp_path / "packed.zip")


class _Passed:
    """Tail drop."""

    def __init__(self, context: redtail.QueueContext) -> None:
        self.context, self.packets = context, list[redtail.Packet]()

    def enqueue(self, packet: redtail.Packet, now: float) -> bool:
        if not self.context.admits(packet):
            return False
        self.packets.append(packet)
        return True

    def dequeue(self, now: float) -> redtail.Packet | None:
        return self.packets.pop(0)


def test_results_without_their_experiment_are_not_packed(
    ran: stored.Results, tmp_path: Path
) -> None:
    index = json.loads((ran.folder / "results.json").read_bytes())
    del index["provenance"], index["checksum"]  # as an older version wrote it
    (ran.folder / "results.json").write_text(json.dumps(index), encoding="utf-8")
    assert redtail.load(ran.folder).provenance.text is None
    with pytest.raises(StoreError, match="an older redtail wrote it"):
        packing.pack(ran.folder, tmp_path / "packed.zip")


def test_the_citation_is_of_this_version() -> None:
    text = Path("CITATION.cff").read_text("utf-8")
    assert f"\nversion: {redtail.__version__}\n" in text


@pytest.mark.parametrize("words", [["--out", "elsewhere"], ["--report"], ["--pcap", "a.pcap"]])
def test_verifying_refuses_what_it_would_not_do(tmp_path: Path, words: list[str]) -> None:
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"PK\x03\x04")
    done = invoked("run", archive, "--verify", *words)
    assert done.exit_code == 2 and "accepted: --jobs, --allow-code, --json" in done.output
