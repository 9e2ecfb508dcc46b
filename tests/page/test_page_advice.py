"""What `redtail advise` keeps beside its runs, on the page of these runs."""

from __future__ import annotations

import html
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import redtail
from redtail import packing, page
from redtail.analysis.results import Results
from redtail.errors import StoreError
from redtail.store import advice
from redtail.store.format import ADVICE

EXPERIMENT = """
name = "Advised"
duration = "3 s"
warmup = "1 s"
replications = 2

[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "40 packets" }

[[traffic]]
name = "ftp"
kind = "bulk"
flows = 2
"""

PART = advice.Part(
    "What to set",
    texts=("Set CAKE & nothing else.",),
    heads=("parameter", "value"),
    rows=(("shaper", "9.5 Mbit/s"),),
    items=("Nobody knows your load.",),
    lines=("tc qdisc add dev eth0 root cake", "  tc -s qdisc"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return redtail.run(redtail.Toml(EXPERIMENT), out=tmp_path_factory.mktemp("runs"))


@pytest.fixture
def results(made: Results, tmp_path: Path) -> Results:
    return redtail.load(shutil.copytree(made.folder, tmp_path / "advised"))


def test_the_page_has_each_part_as_it_is(results: Results) -> None:
    assert "The advice" not in page.page([results])
    advice.write(results.folder, EXPERIMENT, [PART])
    text = page.page([results])
    assert 'href="#e1-advice"' in text
    assert advice.read(results.folder, EXPERIMENT) == ([PART], [])
    for shown in (*PART.texts, *PART.heads, *PART.rows[0], *PART.items, "\n".join(PART.lines)):
        assert html.escape(shown) in text


def test_an_advice_of_another_experiment_file_is_left_out_and_named(results: Results) -> None:
    advice.write(results.folder, EXPERIMENT.replace("flows = 2", "flows = 3"), [PART])
    text = page.page([results])
    assert "Set CAKE" not in text
    assert html.escape(advice.OTHERS) in text


def test_texts_of_an_advice_are_harmless(results: Results) -> None:
    hostile = "</script><script>window.hit=1</script>\x1b[31m\u202e"
    part = advice.Part(hostile, (hostile,), (hostile,), ((hostile,),), (hostile,), (hostile,))
    advice.write(results.folder, EXPERIMENT, [part])
    text = page.page([results])
    assert "<script>window" not in text
    assert "\x1b" not in text and "\u202e" not in text
    assert text.count("&lt;script&gt;window.hit=1") >= 6


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "format 2; accepted: 1"),
        ({"parts": [{"head": "a"}]}, "'heads' is missing|'rows' is missing"),
        ({"parts": [{**vars(PART), "rows": [["one cell"]]}]}, "has not 2 cells"),
        ({"parts": [{**vars(PART), "rows": ["text"]}]}, "rows is .text."),
        ({"parts": [{**vars(PART), "items": [1]}]}, "items is 1"),
        ({"parts": [{**vars(PART), "lines": "text"}]}, "lines is .text."),
        ({"parts": 3}, "parts is 3"),
        ({"experiment": None, "parts": ["text"]}, "a part is .text."),
    ],
)
def test_a_damaged_file_is_refused_with_its_name(
    results: Results, change: dict[str, Any], says: str
) -> None:
    file = advice.write(results.folder, EXPERIMENT, [PART])
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(StoreError, match=rf"{ADVICE}: cannot be read: .*({says})"):
        page.page([results])


def test_what_is_no_advice_is_refused(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    file = results.folder / ADVICE
    file.write_text("[" * 100_000)
    with pytest.raises(StoreError, match=f"{ADVICE}: cannot be read"):
        page.page([results])
    monkeypatch.setattr(advice, "LARGEST", 10)
    with pytest.raises(StoreError, match="has 100000 bytes; accepted: at most 10"):
        page.page([results])


def test_an_advice_is_packed_with_its_runs(results: Results, tmp_path: Path) -> None:
    advice.write(results.folder, EXPERIMENT, [PART])
    archive = packing.pack(results.folder, tmp_path / "advised.tar")
    (tmp_path / "there").mkdir()
    packing.unpack(archive, tmp_path / "there")
    (file,) = (tmp_path / "there").rglob(ADVICE)
    assert advice.read(file.parent, EXPERIMENT)[0] == [PART]
