"""Which figures are drawn, and that none is drawn twice."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import redtail
from redtail.analysis.results import Results
from redtail.cli import app
from redtail.display import drawn, plots, style
from redtail.errors import RedtailError

TEXT = """
name = "Small"
duration = "3 s"
warmup = "1 s"
replications = 3
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 2
[factors]
"bottleneck.queue" = [
    { label = "small", kind = "tail-drop", limit = "20 packets" },
    { label = "large", kind = "tail-drop", limit = "60 packets" },
]
"""

runner = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    return redtail.run(redtail.Toml(TEXT), out=root).folder


@pytest.fixture
def results(folder: Path) -> Results:
    return redtail.load(folder)


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the figures that are drawn from now on."""
    names: list[str] = []
    real = style.save

    def save(figures: list[tuple[str, style.Figure]], *rest: object) -> list[Path]:
        names.extend(name for name, _ in figures)
        return real(figures, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(plots, "save", save)
    return names


def test_few_figures_are_drawn_by_default(results: Results, tmp_path: Path) -> None:
    paths = results.figures(tmp_path)
    assert [path.name for path in paths] == ["delay_and_goodput.png"]
    every = {each.name for each in plots.drawings(results)}
    assert {"goodput", "differences", "queue_delay_tail"} <= every


def test_what_was_asked_for_is_drawn(tmp_path: Path) -> None:
    recorded = TEXT + '[series]\ninterval = "100 ms"\nqueues = true\n'
    found = redtail.run(redtail.Toml(recorded), out=tmp_path)
    stems = {path.stem for path in found.figures()}
    assert stems == {"delay_and_goodput", "queue_over_time", "time_series_1"}
    chosen = redtail.run(redtail.Toml(TEXT), out=tmp_path, metrics=["loss", "goodput"])
    assert {path.stem for path in chosen.figures()} == {"loss", "goodput", "differences"}


def test_one_case_has_a_figure_too(tmp_path: Path) -> None:
    found = redtail.run(redtail.Toml(TEXT.partition("[factors]")[0]
        .replace('"10 ms"', '"10 ms"\nqueue = { kind = "tail-drop", limit = "20 packets" }')),
        out=tmp_path,
    )  # fmt: skip
    assert [path.stem for path in found.figures()] == ["queue_delay_tail"]


def test_nothing_is_drawn_twice(results: Results, tmp_path: Path, saved: list[str]) -> None:
    first = results.figures(tmp_path)
    assert saved == ["delay_and_goodput"]
    assert results.figures(tmp_path) == first
    every = results.figures(tmp_path, every=True)
    assert sorted(saved) == sorted({path.stem for path in every})
    before = list(saved)
    assert results.figures(tmp_path, every=True) == every
    assert results.figures(tmp_path, names=["loss"]) == [tmp_path / "loss.png"]
    assert saved == before
    results.figures(tmp_path, names=["loss"], formats=["png", "svg"])
    assert saved == [*before, "loss"]


@pytest.mark.parametrize("damage", ["altered", "missing", "a link"])
def test_a_figure_that_is_not_as_it_was_drawn_is_drawn_again(
    results: Results, tmp_path: Path, saved: list[str], damage: str
) -> None:
    [path] = results.figures(tmp_path / "figures")
    content = path.read_bytes()
    path.unlink()
    if damage == "altered":
        path.write_bytes(content[:-1])
    elif damage == "a link":
        (tmp_path / "own").write_bytes(b"mine")
        path.symlink_to(tmp_path / "own")
    results.figures(tmp_path / "figures")
    assert path.read_bytes() == content and saved == ["delay_and_goodput"] * 2
    assert not path.is_symlink()
    assert damage != "a link" or (tmp_path / "own").read_bytes() == b"mine"


def test_figures_of_other_results_go_and_files_of_others_stay(tmp_path: Path) -> None:
    found = redtail.run(redtail.Toml(TEXT), out=tmp_path)
    found.figures(every=True)
    figures = found.folder / "figures"
    own = figures / "own.png"
    own.write_bytes(b"mine")
    (figures / "goodput.png").write_bytes(b"changed by hand")
    redtail.run(redtail.Toml(TEXT), out=tmp_path, replications=4).figures()
    names = sorted(path.name for path in figures.iterdir())
    assert names == [".drawn.json", "delay_and_goodput.png", "goodput.png", "own.png"]
    assert own.read_bytes() == b"mine"


@pytest.mark.parametrize(
    "record",
    [
        "no JSON",
        "[]",
        "{}",
        json.dumps({"format": 2, "of": "x", "files": {}, "choices": {}}),
        json.dumps({"format": 1, "of": "x", "files": {"../own.png": "DIGEST"}, "choices": {}}),
        json.dumps({"format": 1, "of": "x", "files": {}, "choices": {"answers": ["../own"]}}),
        json.dumps({"format": 1, "of": "x", "files": {"a.png": 1}, "choices": {}}),
        "[" * 100_000,
    ],
)
def test_a_record_of_others_is_data(results: Results, tmp_path: Path, record: str) -> None:
    """Nothing outside of the folder is removed or taken for a figure."""
    own = tmp_path / "own.png"
    own.write_bytes(b"mine")
    folder = tmp_path / "figures"
    folder.mkdir()
    record = record.replace("DIGEST", drawn._sha256(own))
    (folder / ".drawn.json").write_text(record)
    paths = results.figures(folder)
    assert own.read_bytes() == b"mine"
    assert [path.name for path in paths] == ["delay_and_goodput.png"] and paths[0].is_file()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes as Unix has them")
def test_a_pipe_in_the_place_of_the_record_is_not_waited_for(
    results: Results, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / ".drawn.json")
    assert [path.name for path in results.figures(tmp_path)] == ["delay_and_goodput.png"]


@pytest.mark.weekly
def test_several_processes_draw_the_same(results: Results, tmp_path: Path) -> None:
    one = results.figures(tmp_path / "one", every=True)
    two = results.figures(tmp_path / "two", every=True, jobs=2)
    assert [path.name for path in one] == [path.name for path in two]
    for first, second in zip(one, two, strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_what_cannot_be_drawn_is_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(RedtailError, match=r"no figure godput; accepted: .*goodput"):
        results.figures(tmp_path, names=["godput"])
    with pytest.raises(RedtailError, match="tiff; accepted: png, svg, pdf"):
        results.figures(tmp_path, formats=["tiff"])
    assert not list(tmp_path.iterdir())


def test_the_command_draws_lists_and_refuses(folder: Path, tmp_path: Path) -> None:
    def said(*words: object) -> tuple[int, list[str]]:
        done = runner.invoke(app, ["figures", *map(str, words)])
        return done.exit_code, done.output.splitlines()

    into = ("--folder", tmp_path)
    by_name = (folder.name, "--out", folder.parent, *into)
    assert said(*by_name) == (0, [str(tmp_path / "delay_and_goodput.png")])
    code, lines = said(folder, "--list")
    assert code == 0 and "queue_delay_tail" in lines
    code, lines = said(folder, "loss", "goodput", "--format", "svg,pdf", *into)
    names = [f"{name}.{kind}" for name in ("goodput", "loss") for kind in ("svg", "pdf")]
    assert (code, sorted(lines)) == (0, sorted(str(tmp_path / name) for name in names))
    code, lines = said(folder, "--all", "loss")
    assert code == 2 and "accepted: one of the three" in lines[0]
