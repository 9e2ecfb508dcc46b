"""Archives of which every checksum is right, and the content is not what was measured."""

from __future__ import annotations

import io
import json
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import redtail
from redtail import archive as archives
from redtail import packing, page
from redtail.analysis import stored
from redtail.cli import app
from redtail.errors import RedtailError, SpecError, StoreError
from redtail.running import runner

from conftest import ROOT
from forging import (
    changed,
    encoded,
    entries_of,
    of_other_code,
    of_segments,
    runs_of,
    scaled,
    sealed_again,
    write_archive,
)
from test_packing import EXPERIMENT

Entries = dict[str, bytes]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    (folder / "given.toml").write_text(EXPERIMENT, encoding="utf-8")
    results = redtail.run(folder / "given.toml", out=folder / "runs")
    page.write([results])
    return packing.pack(results.folder, folder / "packed.zip")


@pytest.fixture(scope="module")
def entries(packed: Path) -> Entries:
    return entries_of(packed)


def invoked(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


def test_what_is_sealed_again_is_the_same(entries: Entries, packed: Path, tmp_path: Path) -> None:
    again = sealed_again(entries)
    assert json.loads(again["pack.json"])["files"] == json.loads(entries["pack.json"])["files"]
    found = packing.verify(write_archive(again, tmp_path / "same.zip"))
    assert found.confirmed and found.bytes_agree
    assert found.unchecked == ("README.md", "results/report.html")


def a_run(entries: Entries, name: str) -> str:
    return f"results/{runs_of(entries)[1]}/{name}"


def table(name: str, **options: Any) -> Callable[[Entries], Entries]:
    return lambda entries: {**entries, name: scaled(entries[name], **options)}


def of_run(name: str, **options: Any) -> Callable[[Entries], Entries]:
    return lambda entries: table(a_run(entries, name), **options)(entries)


def index(change: Callable[[Any], object]) -> Callable[[Entries], Entries]:
    return lambda entries: changed(entries, "results/results.json", change)


FORGED = {
    "cases": (table("results/cases.parquet"), "cases.parquet: mean in row"),
    "replications": (table("results/replications.parquet"), "replications.parquet: queue_delay"),
    "summary": (of_run("summary.parquet"), "queue_delay_mean was"),
    "flows": (of_run("flows.parquet", part="goodput"), "flows.parquet: goodput_bps in row 1 was"),
    "histograms": (
        of_run("histograms.parquet", part="up_to"),
        "histograms.parquet: up_to_s in row",
    ),
    "text": (
        lambda entries: {
            **entries,
            "results/experiment.toml": entries["results/experiment.toml"].replace(b"5 M", b"50 M"),
        },
        "experiment.toml: is not the experiment that was repeated",
    ),
    "another text": (
        lambda entries: {**entries, "results/experiment.json": b"{}"},
        "experiment.json: is only in the archive",
    ),
    "description": (
        index(lambda found: found.update(description="RED is 100 times better")),
        "results.json: description was",
    ),
    "label": (
        index(lambda found: found["cases"][0]["labels"].update({"traffic.ftp.flows": "200"})),
        "results.json: cases[0].labels.traffic.ftp.flows was",
    ),
    "factor": (
        index(lambda found: found["cases"][0]["factors"].update({"traffic.ftp.flows": 200})),
        "results.json: cases[0].factors.traffic.ftp.flows was 200, and is 2",
    ),
    "runs": (
        index(lambda found: found["cases"][0].update(runs=found["cases"][1]["runs"])),
        "results.json: cases[0].runs.0 was",
    ),
    "seed": (
        index(lambda found: found["provenance"].update(seed=8)),
        "results.json: provenance.seed was 8, and is 7",
    ),
    "packets": (
        lambda entries: changed(
            entries, a_run(entries, "manifest.json"), lambda found: found.update(events=1)
        ),
        "manifest.json: events was 1",
    ),
}


@pytest.mark.parametrize("claim", ["this version", "other packages", "other code"])
@pytest.mark.parametrize("kind", FORGED)
def test_forged_values_are_found(kind: str, claim: str, entries: Entries, tmp_path: Path) -> None:
    """Whatever version the archive says made it."""
    forge, message = FORGED[kind]
    forged = sealed_again(forge(entries))
    if claim == "other packages":
        forged = changed(forged, "pack.json", lambda about: about["packages"].update(numpy="1.0"))
    elif claim == "other code":
        forged = of_other_code(forged, "0" * 16)
        if kind in ("runs", "packets"):  # the keys and the events are those of the code
            return
    archive = write_archive(forged, tmp_path / "forged.zip")
    found = packing.verify(archive)
    assert not found.confirmed and not found.numbers_agree and not found.bytes_agree
    assert any(message in line for line in found.numbers), found.numbers
    done = invoked("run", archive, "--verify")
    assert done.exit_code == 1 and "numbers: all are equal" not in done.output
    assert str(tmp_path) not in done.output.replace(str(archive), "")
    told = invoked("run", archive, "--verify", "--json")
    assert told.exit_code == 1 and json.loads(told.stdout)["confirmed"] is False


def test_a_page_is_not_compared_and_this_is_said(entries: Entries, tmp_path: Path) -> None:
    forged = sealed_again({**entries, "results/report.html": b"RED is 100 times better"})
    done = invoked("run", write_archive(forged, tmp_path / "forged.zip"), "--verify")
    assert done.exit_code == 0
    assert "not compared: README.md, results/report.html" in done.output
    told = invoked("run", tmp_path / "forged.zip", "--verify", "--json")
    assert json.loads(told.stdout)["not_compared"] == ["README.md", "results/report.html"]


def test_files_that_nothing_refers_to_are_named(entries: Entries, tmp_path: Path) -> None:
    forged = sealed_again({**entries, "experiment/other.toml": b"", "results/figures/a.png": b""})
    found = packing.verify(write_archive(forged, tmp_path / "forged.zip"))
    assert found.unchecked[1:3] == ("experiment/other.toml", "results/figures/a.png")


@pytest.mark.parametrize("claimed", [True, False])
def test_other_bytes_of_the_same_values_need_another_version(
    claimed: bool, entries: Entries, tmp_path: Path
) -> None:
    name = "results/cases.parquet"
    other = encoded(pq.read_table(io.BytesIO(entries[name])), compression="gzip")
    forged = sealed_again({**entries, name: other})
    if claimed:
        forged = changed(forged, "pack.json", lambda about: about["packages"].update(pyarrow="9"))
    archive = write_archive(forged, tmp_path / "other.zip")
    found = packing.verify(archive)
    assert found.numbers_agree and not found.bytes_agree and found.confirmed is claimed
    done = invoked("run", archive, "--verify")
    assert done.exit_code == (0 if claimed else 1)
    assert "cases.parquet: the bytes differ" in done.output


def test_a_forged_unit_is_found(entries: Entries, tmp_path: Path) -> None:
    name = "results/replications.parquet"
    found = pq.read_table(io.BytesIO(entries[name]))
    at, column = next(
        (at, each.name)
        for at, each in enumerate(found.schema)
        if (each.metadata or {}).get(b"unit") == b"bit/s"
    )
    field = found.schema.field(at).with_metadata(
        {**(found.schema.field(at).metadata or {}), b"unit": b"Mbit/s"}
    )
    forged = sealed_again({**entries, name: encoded(found.cast(found.schema.set(at, field)))})
    forged = changed(forged, "pack.json", lambda about: about["packages"].update(pyarrow="9"))
    verified = packing.verify(write_archive(forged, tmp_path / "forged.zip"))
    assert f"replications.parquet: the unit of {column} differs" in verified.numbers


def test_what_is_known_by_the_manifest_alone_is_refused(entries: Entries, tmp_path: Path) -> None:
    """An archive whose results `redtail runs verify` would refuse."""
    name = a_run(entries, "summary.parquet")
    forged = {**entries, name: scaled(entries[name])}
    about = json.loads(forged["pack.json"])
    about["files"][name] = archives_checksums(forged[name])
    forged["pack.json"] = json.dumps(about).encode()
    with pytest.raises(StoreError, match="as `redtail runs verify` tells") as caught:
        packing.verify(write_archive(forged, tmp_path / "forged.zip"))
    assert "/tmp" not in str(caught.value).replace(str(tmp_path), "")


def archives_checksums(data: bytes) -> dict[str, Any]:
    from redtail.store.sealing import checksums

    return checksums(data)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Entries:
    """Runs in segments."""
    monkeypatch.setattr(runner, "LARGE", 12)
    monkeypatch.setattr(stored, "LARGE", 12)
    text = EXPERIMENT.replace("replications = 2", "replications = 6\nkeep_flows = 10")
    (tmp_path / "given.toml").write_text(text, encoding="utf-8")
    results = redtail.run(tmp_path / "given.toml", out=tmp_path / "runs")
    return entries_of(packing.pack(results.folder, tmp_path / "packed.zip"))


def test_runs_in_segments_are_compared_number_by_number(many: Entries, tmp_path: Path) -> None:
    assert not runs_of(many) or all("segments" in name for name in many if runs_of({name: b""}))
    found = packing.verify(tmp_path / "packed.zip")
    assert found.confirmed and found.unchecked == ("README.md",)

    def metric(given: pa.Table) -> pa.Table:
        at = given.column_names.index("queue_delay_mean_s")
        return given.set_column(at, given.schema.field(at), pc.multiply(given.column(at), 0.1))

    def flows(given: pa.Table) -> pa.Table:
        at = given.column_names.index("flows")
        old = given.column(at).combine_chunks()
        old = old.chunk(0) if isinstance(old, pa.ChunkedArray) else old
        parts = {each.name: old.values.field(each.name) for each in old.type.value_type}
        parts["goodput_bps"] = pc.multiply(parts["goodput_bps"], 0.5)
        rows = pa.StructArray.from_arrays(list(parts.values()), fields=list(old.type.value_type))
        return given.set_column(
            at, given.schema.field(at), pa.ListArray.from_arrays(old.offsets, rows)
        )

    def losses(given: pa.Table) -> pa.Table:
        at = given.column_names.index("consecutive_losses")
        none = pa.array(['{"bottleneck":[7]}'] * given.num_rows, pa.string())
        return given.set_column(at, given.schema.field(at), none)

    for change, message in (
        (metric, "queue_delay_mean was"),
        (flows, "flows: goodput_bps in row 1"),
        (losses, "counts of loss events"),
    ):
        forged = write_archive(of_segments(many, change), tmp_path / "forged.zip")
        found = packing.verify(forged)
        assert not found.confirmed, message
        assert any(message in line for line in found.numbers), found.numbers[:5]
    forged = sealed_again(table("results/replications.parquet")(many))
    assert not packing.verify(write_archive(forged, tmp_path / "forged.zip")).confirmed


def test_runs_beside_the_results_are_named(many: Entries, tmp_path: Path) -> None:
    def fewer(found: Any) -> None:
        for case in found["cases"]:
            del case["runs"]["5"]

    forged = sealed_again(changed(many, "results/results.json", fewer))
    verified = packing.verify(write_archive(forged, tmp_path / "forged.zip"))
    assert any("replication 5: is only in the repetition" in each for each in verified.numbers)
    assert any(each.startswith("results/segments/") for each in verified.unchecked)


# --- ZIP files ------------------------------------------------------------------------------


def refused(archive: Path, folder: Path, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        archives.unpack(archive, folder)
    done = invoked("run", archive, "--verify")
    assert done.exit_code == 1 and done.exception is not None
    assert isinstance(done.exception, SystemExit), done.exception


def with_entry(entries: Entries, archive: Path, name: str, data: bytes, **about: Any) -> Path:
    """Write an archive with one more entry, which is not in the index."""
    write_archive(entries, archive)
    info = zipfile.ZipInfo(name)
    for key, value in about.items():
        setattr(info, key, value)
    with zipfile.ZipFile(archive, "a") as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *given, **named: None)  # of a name twice
        file.writestr(info, data)
    return archive


@pytest.mark.parametrize(
    ("name", "about", "message"),
    [
        ("results/hidden", {}, "is not named by pack.json"),
        ("README.md", {}, "'README.md' is there twice"),
        ("results/link", {"external_attr": (stat.S_IFLNK | 0o777) << 16}, "is a link"),
        ("results/pipe", {"external_attr": (stat.S_IFIFO | 0o644) << 16}, "is no plain file"),
        ("results/lzma", {"compress_type": zipfile.ZIP_LZMA}, "compressed by method 14"),
        ("results/", {}, "no path inside the archive"),
        ("a//b", {}, "no path inside the archive"),
        ("a/./b", {}, "no path inside the archive"),
        ("a\x1b[31m", {}, "no path inside the archive"),
        ("a" * 2000, {}, "no path inside the archive"),
        ("results/trailing. ", {}, "no path inside the archive"),
    ],
)
def test_entries_that_are_no_files_of_their_own_are_refused(
    name: str, about: dict[str, Any], message: str, entries: Entries, tmp_path: Path
) -> None:
    archive = with_entry(entries, tmp_path / "other.zip", name, b"x", **about)
    refused(archive, tmp_path / "into", message)
    assert not (tmp_path / "into").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("readme.MD", "are one name on some systems"),
        ("Results/x", "are one name on some systems"),
        ("README.md/x", "is a file and a folder"),
        ("results", "is a file and a folder"),
    ],
)
def test_names_that_collide_are_refused(
    name: str, message: str, entries: Entries, tmp_path: Path
) -> None:
    forged = sealed_again({**entries, name: b"x"})
    refused(write_archive(forged, tmp_path / "other.zip"), tmp_path / "into", message)


def test_what_unpacks_to_too_much_is_refused(
    entries: Entries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "SLACK", 1 << 20)
    forged = sealed_again({**entries, "results/figures/zeros.png": bytes(900 * len(entries) << 14)})
    refused(
        write_archive(forged, tmp_path / "bomb.zip"), tmp_path / "into", "unpacks to .* at most"
    )
    assert not (tmp_path / "into").exists()
    monkeypatch.undo()
    monkeypatch.setattr(archives, "LARGEST", 1 << 20)
    with pytest.raises(StoreError, match=r"unpacks to .* at most 1048576"):
        archives.unpack(write_archive(entries, tmp_path / "large.zip"), tmp_path / "into")


def test_a_size_that_lies_expands_to_no_more(entries: Entries, tmp_path: Path) -> None:
    """The headers of the ZIP file and the index say 10 bytes; the data have a million."""
    forged = sealed_again({**entries, "results/figures/a.png": bytes(1_000_000)})
    about = json.loads(forged["pack.json"])
    about["files"]["results/figures/a.png"] = archives_checksums(bytes(10))
    forged["pack.json"] = json.dumps(about).encode()
    archive = write_archive(forged, tmp_path / "lying.zip")
    data = archive.read_bytes()
    assert data.count(struct.pack("<I", 1_000_000)) == 2
    archive.write_bytes(data.replace(struct.pack("<I", 1_000_000), struct.pack("<I", 10)))
    refused(archive, tmp_path / "into", "cannot be read as an archive")
    sizes = [each.stat().st_size for each in (tmp_path / "into").rglob("*.png")]
    assert sizes in ([], [0], [10])


def test_a_damaged_stream_is_a_message(entries: Entries, tmp_path: Path) -> None:
    """Damage is refused, unless it is where nothing is read, such as the times of entries."""
    archive = write_archive(entries, tmp_path / "damaged.zip")
    whole = archive.read_bytes()
    refused = 0
    for at in range(60, len(whole), len(whole) // 60):
        archive.write_bytes(
            whole[:at] + bytes(b ^ 0x5A for b in whole[at : at + 8]) + whole[at + 8 :]
        )
        into = tmp_path / f"into-{at}"
        try:
            archives.unpack(archive, into)
        except StoreError:
            refused += 1
        else:
            assert {
                path.relative_to(into).as_posix(): path.read_bytes()
                for path in into.rglob("*")
                if path.is_file() and path.name != "pack.json"
            } == {name: data for name, data in entries.items() if name != "pack.json"}
    assert refused > 50


# --- The experiment of an archive -----------------------------------------------------------


@pytest.mark.parametrize("where", ["absolute", "above", "link"])
def test_an_experiment_reads_no_files_beside_the_archive(
    where: str, entries: Entries, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("start_s,size_bytes\n0.5,5000\nsecret,1\n", encoding="utf-8")
    name = {"absolute": str(secret), "above": "../../../../secret.csv", "link": "~/secret.csv"}[
        where
    ]
    text = entries["experiment/given.toml"].decode().partition("[[traffic]]")[0]
    text += f'[[traffic]]\nname = "t"\nkind = "trace"\nfile = "{name}"\n'
    forged = {**entries, "experiment/given.toml": text.encode()}
    forged["results/experiment.toml"] = text.encode()
    archive = write_archive(sealed_again(forged), tmp_path / "forged.zip")
    with pytest.raises(SpecError, match="is outside of the archive") as caught:
        packing.verify(archive)
    assert "secret,1" not in str(caught.value)
    rate = text.replace('"5 Mbit/s"', f'{{ trace = "{name}" }}')
    forged["experiment/given.toml"] = forged["results/experiment.toml"] = rate.encode()
    with pytest.raises(RedtailError) as caught:
        packing.verify(write_archive(sealed_again(forged), tmp_path / "forged.zip"))
    assert "secret,1" not in str(caught.value)


def test_code_beside_the_archive_is_named_by_its_own_path(tmp_path: Path) -> None:
    """`--allow-code ARCHIVE` would not allow it."""
    (tmp_path / "own").mkdir()
    source = (ROOT / "examples/python-queue.py").read_text("utf-8")
    (tmp_path / "own" / "python-queue.py").write_text(source, encoding="utf-8")
    text = (ROOT / "examples/python-queue.toml").read_text("utf-8")
    (tmp_path / "own" / "own.toml").write_text(text, encoding="utf-8")
    short = ["duration=3 s", "warmup=1 s", "traffic.ftp.start=0 s"]
    results = redtail.run(
        tmp_path / "own" / "own.toml", out=tmp_path / "runs", set=short, replications=1
    )
    archive = packing.pack(results.folder, tmp_path / "packed.zip")
    entries = entries_of(archive)
    for name in ("experiment/own.toml", "results/experiment.toml"):
        entries[name] = entries[name].replace(
            b"python-queue.py:", str(tmp_path / "own" / "python-queue.py").encode() + b":"
        )
    forged = write_archive(sealed_again(entries), tmp_path / "forged.zip")
    with pytest.raises(SpecError, match="is outside of the archive"):
        packing.verify(forged, allow_code=forged)
    for name in ("experiment/own.toml", "results/experiment.toml"):
        entries[name] = entries_of(archive)[name].replace(b"python-queue.py:", b"statistics:")
    forged = write_archive(sealed_again(entries), tmp_path / "forged.zip")
    with pytest.raises(SpecError) as caught:
        packing.verify(forged)
    told = str(caught.value)
    assert "statistics" in told and f"--allow-code {forged}" not in told


def test_runs_in_folders_and_segments_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign that grew: its first runs have folders, and the repetition has none."""
    (tmp_path / "given.toml").write_text(EXPERIMENT, encoding="utf-8")
    redtail.run(tmp_path / "given.toml", out=tmp_path / "runs")
    monkeypatch.setattr(runner, "LARGE", 12)
    monkeypatch.setattr(stored, "LARGE", 12)
    results = redtail.run(tmp_path / "given.toml", out=tmp_path / "runs", replications=6)
    entries = entries_of(packing.pack(results.folder, tmp_path / "packed.zip"))
    assert len(runs_of(entries)) == 4
    found = packing.verify(tmp_path / "packed.zip")
    assert found.confirmed, found.numbers
    names = {name.rpartition("/")[2] for name in found.unchecked}
    assert names == {"README.md", "manifest.json", "flows.parquet"}, "segments keep no flows"
    forged = sealed_again(of_run("summary.parquet")(entries))
    found = packing.verify(write_archive(forged, tmp_path / "forged.zip"))
    assert not found.confirmed and any("queue_delay_mean was" in each for each in found.numbers)


@pytest.mark.parametrize("name", ["cases.parquet", "replications.parquet"])
def test_a_table_that_is_none_is_a_difference(name: str, entries: Entries, tmp_path: Path) -> None:
    forged = sealed_again({**entries, f"results/{name}": b"garbage"})
    found = packing.verify(write_archive(forged, tmp_path / "forged.zip"))
    assert any(f"{name}: cannot be read" in each for each in found.numbers)
    for table in ("flows.parquet", "histograms.parquet"):
        forged = sealed_again({**entries, a_run(entries, table): b"garbage"})
        found = packing.verify(write_archive(forged, tmp_path / "forged.zip"))
        assert any(f"{table}: cannot be read" in each for each in found.numbers)


def test_a_small_table_of_many_values_is_refused(entries: Entries, tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"case": pa.nulls(20_000_000, pa.bool_())}), sink)
    assert len(sink.getvalue()) < 100_000
    forged = sealed_again({**entries, "results/cases.parquet": sink.getvalue()})
    found = packing.verify(write_archive(forged, tmp_path / "forged.zip"))
    assert any("more than redtail writes" in each for each in found.numbers)
