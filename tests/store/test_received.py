"""Folders of results from somebody else: nothing in them leads out of them."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import redtail
from redtail import packing
from redtail.analysis import stored
from redtail.cli import app
from redtail.errors import RedtailError, SpecError, StoreError
from redtail.running import runner
from redtail.store import runs
from redtail.store.sealing import sealed

from forging import encoded, folder_of, runs_of, sealed_again, write_folder
from test_packing import EXPERIMENT

SECRET = "root:x:0:0:secret\n"

TRACED = EXPERIMENT.partition("[[traffic]]")[0] + (
    '[[traffic]]\nname = "t"\nkind = "trace"\nfile = "flows.csv"\n'
)


def invoked(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "given.toml").write_text(EXPERIMENT, encoding="utf-8")
    (folder / "traced.toml").write_text(TRACED.replace('"Packed"', '"Traced"'), encoding="utf-8")
    (folder / "flows.csv").write_text("start_s,size_bytes\n0.5,5000\n1,20000\n", encoding="utf-8")
    for name in ("given", "traced"):
        redtail.run(folder / f"{name}.toml", out=folder / "runs")
    return folder


@pytest.fixture
def received(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "runs" / "packed", tmp_path / "received")
    return tmp_path / "received"


@pytest.fixture
def traced(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "runs" / "traced", tmp_path / "traced")
    return tmp_path / "traced"


def rewritten(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change `results.json`, and seal it again."""
    index = json.loads((folder / "results.json").read_bytes())
    index.pop("checksum")
    change(index)
    (folder / "results.json").write_bytes(sealed(index, ensure_ascii=False))


# --- What the experiment names --------------------------------------------------------------


@pytest.mark.parametrize("made_by", [None, "0" * 16])
@pytest.mark.parametrize(
    ("given_as", "name"),
    [
        ("{here}/x.toml", "passwd"),
        ("{here}/sub/x.toml", "../passwd"),
        ("x.toml", "../../../../../../../../../../../../..{here}/passwd"),
        ("x.toml", "{here}/passwd"),
        ("x.toml", "~/passwd"),
        ("{here}/link/x.toml", "passwd"),
    ],
)
def test_a_file_that_results_name_is_not_packed(
    given_as: str, name: str, made_by: str | None, received: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    (home / "link").symlink_to(home)
    (home / "passwd").write_text(SECRET, encoding="utf-8")

    def forge(index: dict[str, Any]) -> None:
        about = index["provenance"]["experiment"]
        about["given_as"] = given_as.format(here=home)
        about["inputs"] = [name.format(here=home)]
        if made_by:
            index["made_by"] = made_by

    rewritten(received, forge)
    with pytest.raises(SpecError):
        packing.pack(received, tmp_path / "packed.zip")
    done = invoked("pack", received, "--output", tmp_path / "packed.zip")
    assert done.exit_code == 2 and "secret" not in done.output
    assert not (tmp_path / "packed.zip").exists()


def test_a_file_is_packed_if_results_have_its_hash(
    traced: Path, made: Path, tmp_path: Path
) -> None:
    archive = packing.pack(traced, tmp_path / "packed.zip")
    assert packing.verify(archive).confirmed
    table = made / "flows.csv"
    kept = table.read_bytes()
    try:
        table.write_bytes(kept + b"1.5,20000\n")
        with pytest.raises(SpecError, match="not of the files that the experiment names now"):
            packing.pack(traced, tmp_path / "other.zip")
        # Other bytes, and the same runs: what else is in it is not known to the results.
        table.write_bytes(kept.replace(b"0.5,", b"0.50,"))
        with pytest.raises(SpecError, match="not of the files that the experiment names now"):
            packing.pack(traced, tmp_path / "other.zip", base=made)
    finally:
        table.write_bytes(kept)
    assert not (tmp_path / "other.zip").exists()


def without_hashes(index: dict[str, Any]) -> None:
    del index["provenance"]["experiment"]["input_checksums"]


def test_without_a_hash_the_user_names_the_folder(traced: Path, made: Path, tmp_path: Path) -> None:
    """As in results of an older version."""
    rewritten(traced, without_hashes)
    with pytest.raises(SpecError, match="--experiment FOLDER"):
        packing.pack(traced, tmp_path / "packed.zip")
    done = invoked("pack", traced, "--output", tmp_path / "packed.zip", "--experiment", made)
    assert done.exit_code == 0, done.output
    assert "experiment/flows.csv" in zipfile.ZipFile(tmp_path / "packed.zip").namelist()
    assert packing.verify(tmp_path / "packed.zip").confirmed


def test_a_folder_that_the_user_names_is_not_left(traced: Path, made: Path, tmp_path: Path) -> None:
    base = tmp_path / "base" / "inner"
    base.mkdir(parents=True)
    shutil.copy(made / "flows.csv", base.parent / "flows.csv")

    def above(index: dict[str, Any]) -> None:
        without_hashes(index)
        index["provenance"]["experiment"]["inputs"] = ["../flows.csv"]
        index["made_by"] = "0" * 16

    rewritten(traced, above)
    with pytest.raises(SpecError, match="--inputs FOLDER"):
        packing.pack(traced, tmp_path / "packed.zip", base=base)
    words = ["pack", traced, "--output", tmp_path / "packed.zip", "--experiment", base]
    assert invoked(*words, "--inputs", base.parent).exit_code == 0

    rewritten(traced, lambda index: index["provenance"]["experiment"].update(inputs=["flows.csv"]))
    (base / "flows.csv").symlink_to(base.parent / "flows.csv")
    assert invoked(*words).exit_code == 2, "a link to a file elsewhere"


def named(index: dict[str, Any], name: str) -> None:
    index["provenance"]["experiment"]["given_as"] = name


def test_a_name_of_the_experiment_is_no_path(received: Path, tmp_path: Path) -> None:
    for given, wanted in (
        ("..", "experiment.toml"),
        ("/a/b\\c.toml", "experiment.toml"),
        ("a:b.toml", "experiment.toml"),
        ("", "experiment.toml"),
        ("x/own.toml", "own.toml"),
        ("own.json", "experiment.toml"),
        ("\x1b[31m", "experiment.toml"),
    ):
        rewritten(
            received,
            lambda index, name=given: index["provenance"]["experiment"].update(given_as=name),
        )
        archive = packing.pack(received, tmp_path / "packed.zip")
        with zipfile.ZipFile(archive) as file:
            assert json.loads(file.read("pack.json"))["experiment"] == f"experiment/{wanted}"
        assert packing.verify(archive).confirmed, given


def test_commands_in_the_readme_are_words(received: Path, tmp_path: Path) -> None:
    sets = ["name=\"'; touch evil; '\""]
    rewritten(received, lambda index: index["provenance"].update(set=sets))
    archive = packing.pack(received, tmp_path / "it's mine.zip")
    text = zipfile.ZipFile(archive).read("README.md").decode()
    assert "--set 'name=\"'\"'\"'; touch evil; '\"'\"'\"'" in text


# --- What is in the folder ------------------------------------------------------------------


def a_run(folder: Path) -> Path:
    return folder / sorted(runs_of({path.name: b"" for path in folder.iterdir()}))[0]


def link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


LINKS: dict[str, Callable[[Path, Path], None]] = {
    "page": lambda folder, home: link(folder / "report.html", home / "passwd"),
    "text": lambda folder, home: link(folder / "experiment.toml", home / "passwd"),
    "figure": lambda folder, home: link(folder / "figures" / "a.png", home / "passwd"),
    "figures": lambda folder, home: (folder / "figures").rmdir() or link(folder / "figures", home),  # type: ignore[func-returns-value]
    "segments": lambda folder, home: link(folder / "segments", home),
    "table": lambda folder, home: link(a_run(folder) / "extra.parquet", home / "passwd"),
    "same table": lambda folder, home: (
        shutil.move(a_run(folder) / "summary.parquet", home / "summary.parquet")
        and link(a_run(folder) / "summary.parquet", home / "summary.parquet")
    ),
    "run": lambda folder, home: (
        shutil.move(a_run(folder), home / "run")
        and link(folder / (home / "name").read_text(), home / "run")
    ),
    "pipe": lambda folder, home: os.mkfifo(folder / "report.html"),
}


@pytest.mark.parametrize("kind", LINKS)
def test_links_are_not_packed(kind: str, received: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "passwd").write_text(SECRET, encoding="utf-8")
    (home / "name").write_text(a_run(received).name)
    (received / "figures").mkdir()
    LINKS[kind](received, home)
    with pytest.raises(StoreError):
        packing.pack(received, tmp_path / "packed.zip")
    assert not (tmp_path / "packed.zip").exists()
    assert list(runs.verify(received)), "the same is said by `redtail runs verify`"


@pytest.mark.parametrize("name", ["results.json", "experiment.toml", "RUN", "RUN/summary.parquet"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(name: str, received: Path) -> None:
    path = received / name.replace("RUN", a_run(received).name)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError):
        redtail.load(received)
    for words in (("report", received), ("pack", received), ("diff", received, received)):
        assert invoked(*words).exit_code == 1
    assert invoked("runs", "verify", "--out", received).exit_code == 1


def test_what_verify_refuses_is_not_packed(received: Path, tmp_path: Path) -> None:
    (received / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(StoreError, match=r"(?s)1 problem, .*notes.txt: foreign"):
        packing.pack(received, tmp_path / "packed.zip")
    (received / "notes.txt").unlink()
    table = received / "cases.parquet"
    table.write_bytes(table.read_bytes() + b" ")
    assert invoked("runs", "verify", "--out", received).exit_code == 1
    with pytest.raises(StoreError, match=r"(?s)1 problem, .*cases.parquet: damaged"):
        packing.pack(received, tmp_path / "packed.zip")
    assert not (tmp_path / "packed.zip").exists()


def test_the_text_of_the_experiment_is_verified(received: Path) -> None:
    (received / "experiment.toml").write_text("other", encoding="utf-8")
    (found,) = runs.verify(received)
    assert (found.kind, found.path.name) == ("damaged", "experiment.toml")


# --- What is removed and written ------------------------------------------------------------


def test_cleaning_follows_no_link(received: Path, tmp_path: Path) -> None:
    """gc removed what it took for damaged segments and for logs."""
    mine = tmp_path / "mine"
    (mine / "0123456789abcdef").mkdir(parents=True)
    names = ["0123456789abcdef.parquet", "0123456789abcdef.damaged", "data.parquet"]
    logs = [f"{a_run(received).name}.log", "other.log"]
    for name in names + logs:
        (mine / name).write_text("mine", encoding="utf-8")
    (received / "segments").symlink_to(mine)
    (received / "failed").symlink_to(mine)
    words = ["runs", "gc", "--out", received, "--yes", "--unreferenced"]
    assert invoked(*words).exit_code == 0
    assert {path.name for path in mine.iterdir() if path.is_file()} == {*names, *logs}


def test_cleaning_removes_only_names_that_redtail_gives(received: Path) -> None:
    (received / "segments").mkdir()
    (received / "failed").mkdir()
    kept = [
        received / "segments" / "notes.parquet",
        received / "segments" / "old.damaged",
        received / "failed" / "notes.log",
        received / ".tmp-notes",
    ]
    (received / "notes").mkdir()
    for path in kept:
        path.write_text("mine", encoding="utf-8")
        os.utime(path, (0, 0))
    damaged = received / "segments" / "0123456789abcdef.damaged"
    damaged.write_text("redtail's", encoding="utf-8")
    assert invoked("runs", "gc", "--out", received, "--yes").exit_code == 0
    assert all(path.exists() for path in kept) and not damaged.exists()
    redtail.run(redtail.Toml(EXPERIMENT), out=received.parent / "again")
    found = {each.path for each in runs.verify(received) if each.kind == "foreign"}
    assert set(kept) <= found


@pytest.mark.parametrize("name", ["segments", "failed", "figures"])
def test_runs_are_not_written_through_a_link(name: str, made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "runs" / "packed", tmp_path / "runs" / "packed")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "0123456789abcdef.parquet").write_text("mine", encoding="utf-8")
    (tmp_path / "runs" / "packed" / name).symlink_to(mine)
    with pytest.raises(StoreError, match="is a link"):
        redtail.run(made / "given.toml", out=tmp_path / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "LARGE", 3)
        patch.setattr(stored, "LARGE", 3)
        with pytest.raises(StoreError, match="is a link"):
            redtail.run(made / "given.toml", out=tmp_path / "runs")
    assert [path.name for path in mine.iterdir()] == ["0123456789abcdef.parquet"]


def test_figures_and_page_take_the_place_of_links(received: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine", encoding="utf-8")
    (received / "figures").mkdir()
    for name in ("goodput.png", "goodput.svg", "goodput.pdf"):
        (received / "figures" / name).symlink_to(mine)
    (received / "report.html").symlink_to(mine)
    results = redtail.load(received)
    results.figures(names=["goodput"], formats=["png", "svg", "pdf"])
    assert invoked("report", received).exit_code == 0
    assert mine.read_text("utf-8") == "mine"
    assert not (received / "figures" / "goodput.png").is_symlink()
    shutil.rmtree(received / "figures")
    (tmp_path / "elsewhere").mkdir()
    (received / "figures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RedtailError, match="is a link"):
        results.figures(every=True)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_lock_is_no_link(received: Path, made: Path, tmp_path: Path) -> None:
    shutil.copytree(received, tmp_path / "runs" / "packed")
    for name in (".lock", ".lock-results"):
        link(tmp_path / "runs" / "packed" / name, tmp_path / "created")
        with pytest.raises(StoreError):
            redtail.run(made / "given.toml", out=tmp_path / "runs", replications=3)
        (tmp_path / "runs" / "packed" / name).unlink()
    assert not (tmp_path / "created").exists()


@pytest.mark.parametrize("name", ["summary", "flows", "histograms", "consecutive_losses"])
def test_a_table_of_a_run_that_is_none_ends_in_a_message(name: str, received: Path) -> None:
    """Every checksum is right."""
    entries = folder_of(received)
    table = f"results/{a_run(received).name}/{name}.parquet"
    for data in (b"garbage", b"PAR1" + bytes(99) + b"PAR1", encoded(pa.table({"x": [1, 2]}))):
        write_folder(sealed_again({**entries, table: data}), received)
        for words in (
            ("report", received),
            ("diff", received, received, "--exact"),
            ("compare", received, "--metric", "goodput"),
            ("runs", "verify", "--out", received),
        ):
            done = invoked(*words)
            assert done.exception is None or isinstance(done.exception, SystemExit), (words, data)
