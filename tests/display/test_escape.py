"""Names, labels and captions are shown as they are, and act on nothing that shows them."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from typer.testing import CliRunner

import redtail
from redtail import cli, escape, studies
from redtail import metrics as names
from redtail.display import lengths, losses, plots, responses, values
from redtail.errors import RedtailError, SpecError

pytestmark = pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")

ODD = (
    "$5_$ plan",
    "[red]x[/red]",
    "a|b",
    "<b>",
    ":warning:",
    "_begins",
    "e\x1b[31mscape",
    "over\u202eride",
    "two\nlines",
)
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

SCENARIO = """\
name = {name}
description = {name}
duration = "4 s"
warmup = "1 s"
replications = 2

[bottleneck]
rate = "1 Mbit/s"
delay = "10 ms"
queue = {{ kind = "tail-drop", limit = "10 packets" }}

[series]
interval = "100 ms"
queues = true

[[traffic]]
name = "web"
kind = "transactions"
users = 2
response = "5 kB"

[[traffic]]
name = "ftp"
kind = "bulk"

[factors]
{factors}
"""


def toml(text: str) -> str:
    return json.dumps(text)


def queues(labels: tuple[str, ...] = ODD) -> str:
    return ", ".join(
        f'{{ kind = "tail-drop", limit = "{6 + number} packets", label = {toml(label)} }}'
        for number, label in enumerate(labels)
    )


def write(path: Path, name: str = "odd \x1b[1m\u202e names", flows: str = "[1, 2]") -> Path:
    factors = f'"bottleneck.queue" = [{queues()}]'
    if flows:
        factors += f'\n"traffic.ftp.flows" = {flows}'
    path.write_text(SCENARIO.format(name=toml(name), factors=factors))
    return path


def command(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_a_label_with_dollar_signs_does_not_end_a_finished_campaign(tmp_path: Path) -> None:
    file = tmp_path / "dollars.toml"
    factors = f'"bottleneck.queue" = [{queues(("$5_$ plan", "<b>"))}]'
    file.write_text(SCENARIO.format(name='"Dollars"', factors=factors))
    code, text = command(
        *("run", file, "--out", tmp_path / "runs"),
        *(
            "--metrics",
            "loss",
            "--set",
            "replications=1",
            "--set",
            "series.queues=false",
            "--set",
            "traffic.web.users=1",
        ),
    )
    assert code == 0, text
    assert "$5_$ plan" in text and "Traceback" not in text
    assert (tmp_path / "runs" / "dollars" / "figures" / "loss.png").is_file()


def test_odd_labels_survive_a_whole_campaign(tmp_path: Path) -> None:
    file = write(tmp_path / "odd.toml")
    out = tmp_path / "runs"
    code, text = command("run", file, "--no-figures", "--out", out)
    assert code == 0, text
    (folder,) = (path for path in out.iterdir() if path.is_dir())
    commands = (
        ("check", file),
        ("run", file, "--dry-run", "--out", out),
        ("run", file, "--json", "--out", out),
        ("compare", folder, "--metric", "loss"),
        ("runs", "list", "--out", out),
        ("runs", "show", folder.name, "--out", out),
    )
    printed = {"table": text}
    for arguments in commands:
        code, printed[" ".join(map(str, arguments[:1]))] = command(*arguments)
        assert code == 0, arguments
    for shown in printed.values():
        assert not HIDDEN.search(shown)
    for label in ("$5_$ plan", "[red]x[/red]", "a|b", "<b>", ":warning:", "_begins"):
        assert label in printed["table"] and label in printed["compare"]
        assert label in printed["check"]
    for label in (r"e\u001b[31mscape", r"over\u202eride", r"two\u000alines"):
        assert label in printed["table"] and label in printed["check"]
    _, data = command("run", file, "--json", "--out", out)
    assert not HIDDEN.search(data)
    found = [case["labels"]["bottleneck.queue"] for case in json.loads(data)["cases"]]
    assert set(found) == set(ODD)
    assert set(redtail.load(folder).to_pandas()["bottleneck.queue"]) == set(ODD)


def test_a_label_is_no_markup_in_an_svg(tmp_path: Path) -> None:
    figure = Figure()
    figure.text(0.1, 0.5, escape.plot("--><script>a</script>"))
    figure.text(0.1, 0.2, escape.plot("]]>&lt;\x1b"))
    svg = ElementTree.parse(plots.save([("odd", figure)], tmp_path, ["svg"])[0])
    assert not [each for each in svg.iter() if "script" in each.tag]


def legend(figure: Figure) -> list[str]:
    of_panels = [found for axes in figure.axes if (found := axes.get_legend()) is not None]
    return [text.get_text() for of in (*figure.legends, *of_panels) for text in of.get_texts()]


def test_every_figure_has_the_labels_as_they_are(tmp_path: Path) -> None:
    results = redtail.run(write(tmp_path / "odd.toml"), out=tmp_path / "runs")
    wanted = {escape.plot(label) for label in ODD}
    about = names.describe("loss")
    drawn = {
        "metric": legend(values.metric_figure(results, "loss")),
        "quartiles": legend(values.quartile_figure(results, "loss", about)),
        "responses": legend(responses.response_figure(results, "web")),
    }
    lost = losses.loss_figure(results)
    alone = [line for axes in lost.axes for text in axes.texts for line in shown(text)]
    drawn["losses"] = [*legend(lost), *alone]
    over_time = lengths.queue_figure(results)
    assert over_time is not None
    drawn["queues"] = [axes.get_ylabel().rpartition("\n")[0] for axes in over_time.axes]
    for kind, labels in drawn.items():
        assert wanted <= set(labels), kind
    rows = values.metric_figure(
        redtail.run(write(tmp_path / "rows.toml", flows=""), out=tmp_path / "rows"), "loss"
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Glyph")  # Matplotlib warns of signs it cannot draw
        for figure in (lost, over_time, rows):
            FigureCanvasAgg(figure).draw()
    assert [text.get_text() for text in rows.axes[0].get_yticklabels()] == list(
        map(escape.plot, ODD)
    )


def shown(text: object) -> list[str]:
    return str(text.get_text()).splitlines()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "label", ["$5_$ plan", "a $x^2$ b", r"a\$b", "100 $", "$ $ $", r"\alpha", "5 % # & ~ {}"]
)
def test_a_text_is_drawn_sign_by_sign(label: str) -> None:
    def image(text: str, **more: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        figure = Figure(figsize=(3, 1))
        canvas = FigureCanvasAgg(figure)
        figure.text(0.1, 0.5, text, **more)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba()).copy()

    plain = image(label, parse_math=False)
    assert (image(escape.plot(label)) == plain).all()
    assert (plain != 255).any()


@pytest.mark.parametrize(
    "code",
    [
        *(*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F),
        *(*range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF, 0xD800),
    ],
)
def test_what_cannot_be_seen_is_escaped(code: int) -> None:
    assert escape.name(f"a{chr(code)}b") == f"a\\u{code:04x}b"
    kept = chr(code) in "\n\t"
    assert (escape.text(f"a{chr(code)}b") == f"a{chr(code)}b") == kept


def test_other_languages_are_left_alone() -> None:
    for text in ("Größe", "очередь", "大きさ", "תור", "قائمة", "é", "👍🏽", "µs ≤ 5 %"):
        assert escape.name(text) == escape.text(text) == escape.plot(text) == text
        assert escape.markdown(text) == escape.paragraph(text) == text


def test_errors_and_warnings_show_escapes() -> None:
    assert str(RedtailError("a\x1b[2Jb\nc")) == "a\\u001b[2Jb\nc"
    assert str(redtail.RedtailWarning("a\u202eb")) == "a\\u202eb"
    with pytest.raises(SpecError) as refused:
        redtail.check("no\x1b[31m.toml")
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$5_$ plan", r"\$5\_\$ plan"),
        ("a|b", r"a\|b"),
        ("<b>bold</b>", r"\<b>bold\</b>"),
        ("<!-- gone -->", r"\<!-- gone -->"),
        ("&lt; & a", r"\&lt; & a"),
        ("[a](javascript:b)", r"[a\](javascript:b)"),
        ("![a](b)", r"![a\](b)"),
        ("[a]: b", r"[a\]: b"),
        ("`a` ~b~", r"\`a\` \~b\~"),
        ("*a* 2 * 3 **b**", r"\*a\* 2 * 3 \*\*b\*\*"),
        ("max_p _a_ __b__", r"max_p \_a\_ \_\_b\_\_"),
        (r"a\|b \n", r"a\\\|b \n"),
        ("2 < 3 > 1, +5 %", "2 < 3 > 1, +5 %"),
        ("a\nb\x1b", r"a b\u001b"),
    ],
)
def test_markdown_is_escaped(text: str, wanted: str) -> None:
    assert escape.markdown(text) == wanted


@pytest.mark.parametrize("text", ["# a", "- a", "+ a", "> a", "1. a", "12) a", "=== a", "---"])
def test_a_paragraph_stays_one(text: str) -> None:
    found = escape.paragraph(text)
    assert found.replace("\\", "") == text and re.match(r"\d*\\", found)


def paper(folder: Path, **changed: str) -> Path:
    """Write a paper with odd captions."""
    odd = " ".join(ODD)
    texts = {"figure": "all odd", "comparison": "loads", "scale": "quick"} | changed
    folder.mkdir()
    factors = f'"bottleneck.queue" = [{queues()}]\n"traffic.ftp.flows" = [1, 2]'
    (folder / "own.toml").write_text(SCENARIO.format(name='"Own"', factors=factors))
    (folder / "study.toml").write_text(
        f"""\
title = {toml(odd)}
authors = {toml(odd)}
published = "never"

[[comparison]]
name = {toml(texts["comparison"])}
about = {toml(odd)}
queue = "bottleneck.queue"
load = "traffic.ftp.flows"
files = ["own.toml"]

[[comparison.scale]]
name = {toml(texts["scale"])}
about = {toml(odd)}
set = {{ replications = 2 }}

[[figure]]
name = {toml(texts["figure"])}
comparison = {toml(texts["comparison"])}
draws = "loss"
caption = {toml(odd)}

[[table]]
name = "table"
comparison = {toml(texts["comparison"])}
caption = {toml(odd)}
source = {toml(odd)}
metrics = ["loss"]
"""
    )
    (folder / "findings.toml").write_text(
        f"""
[[finding]]
id = "F-1"
statement = {toml(odd)}

[[finding.check]]
comparison = {toml(texts["comparison"])}
test = "level"
metric = "loss"
at_least = 0.0
"""
    )
    return folder


def test_a_report_shows_captions_and_labels_as_they_are(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    code, text = command("reproduce", paper(tmp_path / "paper"), "--out", out)
    assert code == 0, text
    assert not HIDDEN.search(text) and "[red]x[/red]" in text
    report = (out / "paper" / "quick" / "report.md").read_text()
    assert not HIDDEN.search(report)
    shown = escape.markdown(" ".join(ODD))
    assert f"![{shown}](figures/all%20odd.png)\n\n{shown}\n" in report
    assert (out / "paper" / "quick" / "figures" / "all odd.png").is_file()
    assert f"## {shown}\n" in report and f"In brackets: {shown}.\n" in report
    # A row has as many cells as its table, whatever the labels.
    tables = re.findall(r"(?m)(?:^\|.*\n)+", report)
    assert tables
    for rows in tables:
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()}
        assert len(cells) == 1, rows
    assert "<b>" not in report.replace(r"\<b>", "")


@pytest.mark.parametrize("table", ["figure", "comparison", "scale"])
@pytest.mark.parametrize(
    "name", ["../out", "a/b", "/tmp/x", "a\\b", "..", ".", "", ".hidden", "a\x1bb", "\u202ea", "c:"]
)
def test_a_name_cannot_leave_the_folder_of_results(tmp_path: Path, table: str, name: str) -> None:
    folder = paper(tmp_path / "paper", **{table: name})
    code, text = command("reproduce", folder, "--out", tmp_path / "runs")
    assert code == 2
    header = {"scale": "comparison.scale"}.get(table, table)
    lines = (folder / "study.toml").read_text().splitlines()
    at = lines.index(f"[[{header}]]") + 2
    assert text.startswith(f"error: {folder / 'study.toml'}:{at}: {header}.name = {name!r} ")
    assert "accepted: " in text
    with pytest.raises(SpecError) as refused:
        studies.load(str(folder))
    assert (refused.value.line, refused.value.key) == (at, f"{header}.name")
    assert [path.name for path in tmp_path.iterdir()] == ["paper"]


def test_no_figure_is_written_outside_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be the name"):
        plots.save([("../out", Figure())], tmp_path / "figures")
    assert not list(tmp_path.iterdir())
