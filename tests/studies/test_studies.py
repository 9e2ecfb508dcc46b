"""A study is a folder of data: it is written, run, judged and shown without code of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redtail import studies
from redtail.cli import app
from redtail.errors import SpecError
from redtail.studies import pages
from redtail.studies.definition import Judgement
from redtail.studies.reading import opened

EXPERIMENT = """
name = "Two queues"
duration = "8 s"
warmup = "2 s"
replications = 6
[bottleneck]
rate = "4 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "100 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
start = "uniform 0..1 s"
[factors]
"traffic.ftp.flows" = [4]
"bottleneck.queue" = [
  { kind = "tail-drop", limit = "100 packets", label = "tail drop" },
  { kind = "codel", label = "CoDel" },
]
"""

STUDY = """
title = "Two queues"

[[comparison]]
name = "both"
about = "four flows"
queue = "bottleneck.queue"
load = "traffic.ftp.flows"
files = ["two.toml"]

[[comparison.scale]]
name = "quick"
about = "all of it"

[[measure]]
name = "used"
title = "Share of the link"
formula = "goodput / 4e6"

[[finding]]
id = "SHORT"
statement = "CoDel's delay is less than half of tail drop's."
[[finding.check]]
comparison = "both"
test = "ratio"
metric = "queue_delay_mean"
queues = ["CoDel"]
to = ["tail drop"]
at_most = 0.5

[[finding]]
id = "LONG"
statement = "Each keeps the delay below a millisecond, and uses half of the link."
[[finding.check]]
comparison = "both"
test = "level"
metric = "queue_delay_mean"
at_most = 0.001
[[finding.check]]
comparison = "both"
test = "level"
metric = "used"
at_least = 0.5

[[finding]]
id = "PEOPLE"
statement = "People like it."
untested = "nobody was asked"

[[table]]
name = "numbers"
comparison = "both"
caption = "Delay, the shortest first"
order = ["queue_delay_mean"]
[[table.column]]
metric = "queue_delay_mean"
head = "delay ms"
digits = 1
[[table.column]]
metric = "used"
"""

runner = CliRunner()


def written(folder: Path, study: str = STUDY) -> Path:
    folder.mkdir()
    (folder / "two.toml").write_text(EXPERIMENT)
    (folder / "study.toml").write_text(study)
    return folder


def test_a_new_study_needs_no_python(tmp_path: Path) -> None:
    folder = written(tmp_path / "mine")
    out = tmp_path / "out"
    done = runner.invoke(app, ["reproduce", str(folder), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "holds: 1, holds in part: 1, not tested: 1" in done.stdout

    found = json.loads((out / "mine" / "quick" / "verdicts.json").read_text())
    verdicts = {finding["id"]: finding["verdict"] for finding in found["findings"]}
    assert verdicts == {"SHORT": "holds", "LONG": "holds in part", "PEOPLE": "not tested"}
    (ratio,) = found["findings"][0]["checks"][0]["evidence"]
    assert 0 < ratio["value"]["mean"] < 0.5 and ratio["within"] == "yes"

    report = (out / "mine" / "quick" / "report.md").read_text()
    assert report.startswith("# mine: Two queues\n\nScale quick (both: all of it), 12 runs")
    rows = [
        line.split(" | ") for line in report.splitlines() if line.startswith(("| CoDel", "| tail"))
    ]
    assert [row[0] for row in rows] == ["| CoDel", "| tail drop"]
    assert float(rows[0][1].split()[0]) < float(rows[1][1].split()[0])
    assert "| queue | delay ms | Share of the link |" in report
    assert "## Figures" not in report

    # The same again makes no run; what it found is expected of the next one.
    again = runner.invoke(app, ["reproduce", str(folder), "--out", str(out), "--write-expected"])
    assert "12 runs, 12 of them reused" in again.stdout
    assert studies.load(folder).expected["quick"] == verdicts
    assert not list(folder.glob("*.py"))


def test_a_study_of_tables_alone_shows_them(tmp_path: Path) -> None:
    begin, end = STUDY.index("[[finding]]"), STUDY.index("[[table]]")
    folder = written(tmp_path / "mine", STUDY[:begin] + STUDY[end:])
    done = runner.invoke(app, ["reproduce", str(folder), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "Delay, the shortest first" in done.stdout
    assert done.stdout.index("CoDel") < done.stdout.index("tail drop")
    assert "verdict " not in done.stdout
    report = (tmp_path / "out" / "mine" / "quick" / "report.md").read_text()
    assert "## Verdicts" not in report and "| tail drop |" in report


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("digits = 1", 'digits = "1"', "table.column.digits = '1'; accepted: a whole number"),
        ('"ratio"', '"ration"', "finding.check.test = 'ration'; accepted: level, spread, "),
        ('name = "numbers"', "name = 3", "table.name = 3; accepted: a text"),
        ('name = "quick"', 'name = "a/b"', "comparison.scale.name = 'a/b' cannot be the name"),
        ('"bottleneck.queue"', '"bottleneck.kueue"', "is no factor; accepted: traffic.ftp.flows, "),
        ('["queue_delay_mean"]', '["delay"]', "table.order: no run has the metric delay"),
        ('files = ["two.toml"]', "files = []", "comparison.files = []; accepted: one experiment"),
        ('files = ["two.toml"]', 'file = ["two.toml"]', "comparison.file: unknown key; accepted: "),
        ("untested =", "unproven =", "finding.unproven: unknown key; accepted: id, statement, "),
    ],
)
def test_a_mistake_is_told_by_its_line_key_and_value(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in STUDY
    folder = written(tmp_path / "mine", STUDY.replace(old, new, 1))
    line = STUDY[: STUDY.index(old)].count("\n") + 1
    done = runner.invoke(app, ["reproduce", str(folder), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {folder / 'study.toml'}:{line}: ")
    assert message in done.stderr
    assert not (tmp_path / "out").exists(), "nothing was run"


def test_a_study_is_refused_where_it_has_nothing_to_run(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    (folder / "study.toml").write_text('title = "Nothing"\n')
    with pytest.raises(SpecError, match="has no scale 'quick'; accepted: none"):
        studies.run(folder, out=tmp_path / "out")
    done = runner.invoke(app, ["validate", "--study", str(folder)])
    assert done.exit_code == 2 and "gaps = None; accepted: a table [gaps]" in done.output


def test_lines_of_tables_and_keys_are_found(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        'text = """\n[[not.a.table]]\nkey = 1\n"""\n\n[[a]]\nx.y = 1 # one\n[[a.b]]\n"q.r" = [\n'
        "  { s = 1 },\n\n  # two\n  { s = 2 },\n]\n[[a]]\n[[a.b]]\n[a.c]\nz = 1\n"
    )
    values, place = opened(file)
    assert values["a"][0]["b"][0]["q.r"][1] == {"s": 2}
    lines = {
        ("text",): 1,
        ("a", 0): 6,
        ("a", 0, "x", "y"): 7,
        ("a", 0, "b", 0): 8,
        ("a", 0, "b", 0, "q.r"): 9,
        ("a", 0, "b", 0, "q.r", 0): 10,
        ("a", 0, "b", 0, "q.r", 1, "s"): 13,
        ("a", 1): 15,
        ("a", 1, "b", 0): 16,
        ("a", 1, "c"): 17,
        ("a", 1, "c", "z"): 18,
        ("nowhere",): None,
    }
    assert {path: place.below(*path).line for path in lines} == lines


def test_a_page_is_filled_between_its_marks() -> None:
    page = "A\n<!-- one -->\nold\n<!-- end -->\nB\n<!-- two: x -->\n<!-- end -->\n<!-- three -->\n"
    assert pages.marks(page) == ["one", "two: x"]
    new = pages.filled(page, {"one": ["new", "er"], "three": ["never"]})
    assert new == page.replace("old", "\nnew\ner\n")


def test_every_built_in_study_is_read_and_its_verdicts_are_words() -> None:
    names = studies.names()
    assert {"iscc2001", "league"} <= set(names)
    for name in names:
        study = studies.load(name)
        assert study.comparisons and "quick" in study.scales
        for verdicts in study.expected.values():
            assert set(verdicts.values()) <= set(Judgement)
