"""What the documents show is what happens.

A page marks what is to be held true with a comment above a fenced block:

    <!-- file: NAME -->   the block is that file; if the project has it, it must be the same
    <!-- run -->          each line that begins with "$ " is run, and what follows is what it prints

A page's blocks run in order in a folder of their own, in which `examples` and `lab` are the
project's. After a change that moves numbers,

    .venv/bin/python tests/documents/test_docs.py

writes what happens now into the pages and draws their figures anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import redtail

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(
    r"^<!-- (?P<what>file|run)(?:: (?P<name>\S+))? -->\n```\w+\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"^\$ (?P<text>(?:.*\\\n)*.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)

# The reader's command, and what of it can be repeated where everything is set up.
_DEMO = "redtail run examples/taildrop-vs-red.toml --report"
_STANDS_FOR = {"make demo": _DEMO}

# The figures of the pages, by the demo's figure that each is.
_FIGURES = ("queue_over_time", "queue_delay_mean", "consecutive_loss")


def pages() -> list[Path]:
    """Every page of the project."""
    folders = ("docs", "tests", "benches", "examples")
    found = [*ROOT.glob("*.md"), *(p for name in folders for p in (ROOT / name).rglob("*.md"))]
    return sorted(found)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


MARKED = [page for page in pages() if _BLOCK.search(page.read_text())]


def _scratch(folder: str | Path) -> Path:
    path = Path(folder)
    for name in ("examples", "lab"):
        (path / name).symlink_to(ROOT / name)
    return path


def _printed(command: str, folder: Path) -> str:
    """What a command prints: errors and warnings, then results; times are not repeatable."""
    own = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(
        ["bash", "-c", _STANDS_FOR.get(command, command)],
        cwd=folder,
        env={**own, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    lines = (done.stderr + done.stdout).splitlines()
    # Python names a script by its whole path.
    return "".join(f"{line.rstrip()}\n".replace(f"{folder}/", "") for line in lines)


def _without_times(text: str) -> str:
    text = re.sub(r"\b\d+\.\d+ M packets/s\b", "… M packets/s", text)
    return re.sub(r"\bin \d+\.\d s\b", "in … s", text)


def _commands(page: str, folder: Path) -> Iterator[tuple[re.Match[str], int]]:
    """Yield each command of a page, in order, with where its block begins; writes its files."""
    for block in _BLOCK.finditer(page):
        if block["what"] == "file":
            if not (ROOT / block["name"]).exists():
                (folder / block["name"]).write_text(block["body"])
            continue
        for command in _COMMAND.finditer(block["body"]):
            yield command, block.start("body")


@pytest.mark.locked
@pytest.mark.parametrize("page", MARKED, ids=_name)
def test_the_commands_of_a_page_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    folder = _scratch(tmp_path)
    for command, _ in _commands(page.read_text(), folder):
        printed = _printed(command["text"], folder)
        assert _without_times(printed) == _without_times(command["output"]), command["text"]


@pytest.mark.parametrize("page", MARKED, ids=_name)
def test_the_files_of_a_page_are_those_of_the_project(page: Path) -> None:
    for block in _BLOCK.finditer(page.read_text()):
        if block["what"] == "file" and (ROOT / block["name"]).exists():
            assert block["body"] == (ROOT / block["name"]).read_text(), block["name"]


def test_a_page_that_shows_something_else_is_noticed(tmp_path: Path) -> None:
    page = (
        "<!-- file: a.txt -->\n```text\none\n```\n<!-- run -->\n```console\n$ cat a.txt\ntwo\n```\n"
    )
    ((command, _),) = _commands(page, _scratch(tmp_path))
    assert _printed(command["text"], tmp_path) == "one\n" != command["output"]


def test_the_demo_is_what_the_makefile_runs() -> None:
    assert f"$(BIN)/{_DEMO}\n" in (ROOT / "Makefile").read_text()


def _anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in headings}


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link in _LINK.finditer(_FENCED.sub("", page.read_text())):
        target, _, anchor = link["target"].partition("#")
        if "://" in target:
            continue
        path = (page.parent / target) if target else page
        assert path.exists(), f"{link['target']}: no such file"
        assert not anchor or anchor in _anchors(path), f"{link['target']}: no such heading"


def test_every_page_of_the_docs_is_reached_from_their_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {
        (index.parent / link["target"]).resolve() for link in _LINK.finditer(index.read_text())
    }
    for page in (ROOT / "docs").rglob("*.md"):
        assert page == index or page in linked, f"{_name(page)} is not in docs/index.md"


def test_pictures_in_the_docs_are_small() -> None:
    for picture in (ROOT / "docs" / "figures").rglob("*.png"):
        assert picture.stat().st_size < 150_000, picture.name


def _update() -> None:
    for page in MARKED:
        text = page.read_text()
        with tempfile.TemporaryDirectory() as folder:
            scratch = _scratch(folder)
            changes = [
                (at + command.start("output"), at + command.end("output"), printed)
                for command, at in _commands(text, scratch)
                if _without_times(printed := _printed(command["text"], scratch))
                != _without_times(command["output"])
            ]
            results = scratch / "runs" / "tail-drop-vs-red"
            if results.is_dir():
                _draw(results)
        for start, end, printed in reversed(changes):
            text = text[:start] + printed + text[end:]
        page.write_text(text)
        print(f"{_name(page)}: {len(changes)} outputs changed")


def _draw(results: Path) -> None:
    """Put the demo's figures into the docs, in few colours: they are kept in the repository."""
    from PIL import Image

    for name, path in zip(_FIGURES, redtail.load(results).figures(names=_FIGURES), strict=True):
        with Image.open(path) as image:
            few = image.convert("RGB").quantize(48, Image.Quantize.FASTOCTREE)
        few.save(ROOT / "docs" / "figures" / f"{name.replace('_', '-')}.png", optimize=True)


if __name__ == "__main__":
    _update()
