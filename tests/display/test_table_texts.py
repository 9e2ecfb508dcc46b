"""Tables as CSV, LaTeX and Markdown."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from redtail.analysis.case import CaseResult
from redtail.analysis.moved import diff
from redtail.analysis.results import Results
from redtail.display import texts
from redtail.errors import SpecError
from redtail.store.folders import StoredRun

QUEUE = "bottleneck.queue"


def _results(
    folder: Path, values: dict[str, list[float]], metric: str = "queue_delay_mean"
) -> Results:
    cases = []
    for label, numbers in values.items():
        runs = {n: StoredRun(f"{n}", folder, {metric: v}, {}, {}) for n, v in enumerate(numbers)}
        factors: dict[str, object] = {QUEUE: {"kind": "red"}}
        cases.append(CaseResult.of(factors, {QUEUE: label}, runs, ()))
    return Results(
        name="made up", description="", factors=[QUEUE], cases=tuple(cases), folder=folder
    )


def _rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text), strict=True))


def test_csv_has_si_values_with_all_digits_and_intervals_in_columns(tmp_path: Path) -> None:
    results = _results(tmp_path, {"RED": [0.1, 0.2, 0.3], "one": [0.5]})
    head, red, one = _rows(results.table_text("csv"))
    name = "queue_delay_mean"
    assert head == [QUEUE, f"{name} (s)", f"{name} ci95 (s)", f"{name} n"]
    found = results.cases[0].metric(name)
    assert red[0] == "RED"
    assert float(red[1]) == found.mean
    assert float(red[2]) == found.ci95
    assert red[3] == "3"
    assert one == ["one", "0.5", "", "1"]


def test_a_label_is_no_formula_of_a_spreadsheet(tmp_path: Path) -> None:
    labels = [
        '=HYPERLINK("http://x")',
        "+1+1",
        "-x",
        "@sum",
        " =1",
        "\uff1d1",
        "\t=1",
        "a;=1",
        "-5",
    ]
    results = _results(tmp_path, {label: [1.0, 2.0] for label in labels})
    text = results.table_text("csv")
    found = [row[0] for row in _rows(text)[1:]]
    shown = [*labels[:6], "\\u0009=1", "a;=1", "-5"]
    assert found == [f"'{label}" for label in shown[:6]] + shown[6:]
    # Texts are in quotes, so that a semicolon does not begin a cell.
    assert '"a;=1"' in text


def test_latex_is_escaped_and_aligned(tmp_path: Path) -> None:
    label = r"50 % of max_p & \input{x} #1 $5$ ~^ {a}"
    results = _results(tmp_path, {label: [0.1, 0.2, 0.3], "b": [0.1, 0.2, 0.6]})
    lines = results.table_text("latex").splitlines()
    assert lines[1] == r"\begin{tabular}{lr}"
    assert lines[3:5] == [r"queue & delay \\", r" & (ms) \\"]
    first = lines[6]
    assert first.startswith(
        r"50 \% of max\_p \& \textbackslash{}input\{x\} \#1 \$5\$ "
        r"\textasciitilde{}\textasciicircum{} \{a\} & 200 $\pm$"
    )
    assert lines[-3:-1] == [r"\bottomrule", r"\end{tabular}"]
    assert all(line.endswith((r"\\", "rule")) for line in lines[2:-2])


def test_markdown_is_escaped(tmp_path: Path) -> None:
    results = _results(tmp_path, {"a|b <img>": [0.1, 0.2, 0.3]})
    lines = results.table_text("markdown").splitlines()
    assert lines[:2] == ["| queue | delay (ms) |", "|---|---:|"]
    assert lines[2].startswith(r"| a\|b \<img> | 200 ±")


def test_each_line_below_a_table_has_a_line_of_its_own(tmp_path: Path) -> None:
    results = _results(tmp_path, {"a": [0.1, 0.1, 0.1], "b": [0.1, 0.2, 0.3]})
    *_, first, second = results.table_text("latex").splitlines()
    assert first.startswith("% mean ± half-width") and first.endswith("cases.parquet")
    assert second.startswith("% without ±: one observation")
    *_, first, second = results.table_text("markdown").splitlines()
    assert first.endswith("cases.parquet  ") and second.startswith("without ±: one observation")


def test_a_comparison_and_a_diff_have_the_same_forms(tmp_path: Path) -> None:
    old = _results(tmp_path, {"RED": [1.0, 1.1, 1.2, 1.3], "=x": [2.0, 2.2, 2.3, 2.1]})
    new = _results(tmp_path, {"RED": [1.5, 1.61, 1.7, 1.82], "=x": [2.0, 2.2, 2.3, 2.1]})
    compared = old.compare("queue_delay_mean")
    head, row = _rows(compared.table_text("csv"))
    assert row[head.index("label")] == "'=x"
    assert float(row[head.index("mean")]) == compared[0].difference.mean
    assert r"\toprule" in compared.table_text("latex")
    assert compared.table_text("markdown").startswith("| case |")
    moved = diff(old, new)
    head, row = _rows(moved.table_text("csv"))
    assert row[head.index("verdict")] == "moved"
    assert float(row[head.index("difference")]) == pytest.approx(0.5075)
    assert "moved" in moved.table_text("latex")


def test_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="format xls: accepted: csv, latex, markdown"):
        _results(tmp_path, {"a": [1.0]}).table_text("xls")  # type: ignore[arg-type]


def test_every_letter_that_latex_takes_for_a_command_is_escaped() -> None:
    for letter in "\\{}$&#_%~^":
        assert texts.latex(letter) != letter
