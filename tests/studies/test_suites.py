"""A suite examines queues and congestion controls in place of its control."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redtail import backends, experiment, studies
from redtail.backends.linux import Linux
from redtail.cli import app
from redtail.engine.plans import Plan
from redtail.errors import SpecError
from redtail.studies import definition, evaluation, sheet, subjects
from redtail.studies.agreement import refuse_unknown
from redtail.studies.definition import Subject

EXPERIMENT = """
name = "NAME"
duration = "6 s"
warmup = "2 s"
replications = 4
[bottleneck]
rate = "4 Mbit/s"
delay = "10 ms"
queue = { kind = "tail-drop", limit = "50 packets" }
[[traffic]]
name = "ftp"
kind = "bulk"
flows = 4
tcp = { preset = "sack", ecn = true }
start = "uniform 0..1 s"
[factors]
"traffic.ftp.flows" = [2, 4]
"bottleneck.queue" = [{ kind = "tail-drop", limit = "50 packets", label = "tail drop" }]
"""

SUITE = """
title = "Two sections"

[subject]
kind = "queue"
control = "tail drop"
default = ["codel"]

[[comparison]]
name = "steady"
about = "bulk flows over 4 Mbit/s"
queue = "bottleneck.queue"
load = "traffic.ftp.flows"
files = ["steady.toml"]
[[comparison.scale]]
name = "quick"
about = "6 s, 4 replications"

[[comparison]]
name = "ecn"
about = "the same with ECN"
queue = "bottleneck.queue"
load = "traffic.ftp.flows"
files = ["phases.toml"]
subject = { ecn = true }
[[comparison.scale]]
name = "quick"
about = "6 s, 4 replications"

[[section]]
id = "1"
title = "Steady load"
requirement = "must"
about = "Two and four bulk flows."
comparisons = ["steady"]
measures = ["goodput", "queue_delay_mean"]

[[section]]
id = "2"
title = "ECN"
requirement = "should"
about = "The same flows with ECN, in two phases."
comparisons = ["ecn"]
measures = ["mark"]
not_run = "Senders that ignore marks: there are none."

[[section]]
id = "3"
title = "Operator control"
requirement = "should discuss"
not_run = "It is text."

[[criterion]]
name = "delay"
title = "Mean queueing delay"
comparison = "steady"
metric = "queue_delay_mean"
better = "less"
matters = "5 % or 1 ms"

[[criterion]]
name = "goodput"
title = "Goodput of four flows"
comparison = "steady"
metric = "goodput"
better = "more"
load = 4

[[figure]]
name = "plane"
comparison = "steady"
draws = "plane"
caption = "Delay and goodput"
"""

SLOW = 'kind = "codel"\ntarget = "10 ms"\nlabel = "slow CoDel"\n'

runner = CliRunner()


def written(folder: Path, suite: str = SUITE) -> Path:
    folder.mkdir()
    (folder / "study.toml").write_text(suite)
    (folder / "steady.toml").write_text(EXPERIMENT.replace("NAME", "Steady"))
    phases = EXPERIMENT.replace("NAME", "Phases").replace(
        "replications", 'phases = ["4 s"]\nreplications'
    )
    (folder / "phases.toml").write_text(phases)
    return folder


PUBLISHED = """
[[table]]
name = "others"
comparison = "steady"
caption = "Beside others"
source = "a paper"
metrics = ["goodput"]
[[table.rows]]
load = 4
queue = "codel"
values = [3.5e6]
[[table.rows]]
load = 4
queue = "pie"
values = [3.25e6]
"""


def test_published_numbers_stand_beside_those_of_examined_subjects(tmp_path: Path) -> None:
    folder = written(tmp_path / "suite", SUITE + PUBLISHED)
    done = evaluation.evaluate(folder, named=["codel"], sections=["1"], out=tmp_path / "runs")
    page = sheet.sheet(done)
    (row,) = [line for line in page.splitlines() if "[3.5]" in line]
    assert row.startswith("| 4 flows | codel |")
    assert "In brackets: a paper." in page
    assert "3.25" not in page

    wrong = SUITE + PUBLISHED.replace('"pie"', '"pies"')
    (folder / "study.toml").write_text(wrong)
    with pytest.raises(SpecError, match=r"queue = 'pies'; accepted: .*pie"):
        evaluation.evaluate(folder, named=["codel"], out=tmp_path / "runs")


def test_a_suite_examines_queues(tmp_path: Path) -> None:
    folder = written(tmp_path / "suite")
    (tmp_path / "slow.toml").write_text(SLOW)
    words = ["evaluate", str(folder), "--queue", "codel", "--queue", str(tmp_path / "slow.toml")]
    words += ["--queue", "tail-drop", "--out", str(tmp_path / "runs")]
    first = runner.invoke(app, [*words, "--section", "1"])
    assert first.exit_code == 0, first.output
    # The section that was run before is not run again: 2 loads, 4 queues, 4 replications.
    second = runner.invoke(app, [*words, "--pages", str(tmp_path / "pages")])
    assert second.exit_code == 0, second.output
    assert "56 runs, 32 of them reused" in second.output
    found = json.loads((tmp_path / "runs" / "suite" / "quick" / "sheet.json").read_text())

    assert [(each["id"], each["state"]) for each in found["sections"]] == [
        ("1", "run"),
        ("2", "run in part"),
        ("3", "not run"),
    ]
    codel, slow, same = found["subjects"]
    assert slow["label"] == "slow CoDel"
    assert "50 packets" in codel["comparisons"]["ecn"]["set"]["phases.toml"]["limit"]
    assert "as given" in slow["comparisons"]["steady"]["set"]["steady.toml"]["target"]
    assert same["comparisons"]["ecn"]["not_run"] == {
        "phases.toml": "tail-drop has no parameter ecn"
    }
    marks = [row for row in found["sections"][1]["numbers"] if row["subject"] == "codel"]
    assert {row["metric"] for row in marks} == {"mark", "phase1.mark", "phase2.mark"}
    assert all(row["value"]["mean"] > 0 for row in marks)

    # Tail drop with the buffer of the control is the control, in every replication.
    ranks = found["league"]["criteria"][0]["ranks"]
    assert ranks["tail drop"] == ranks["tail-drop"]
    assert ranks["codel"]["rank"] == 1
    assert ranks["tail drop"]["rank"] == 3
    assert ranks["tail drop"]["last_rank"] == 4
    rows = [row["subjects"] for row in found["league"]["rows"]]
    assert ["tail drop", "tail-drop"] in rows

    page = (tmp_path / "pages" / "suite-sheet.md").read_text()
    assert "phase 1, 2 s to 4 s" in page
    assert str(tmp_path) not in page
    card = (tmp_path / "runs" / "suite" / "quick" / "cards" / "slow-CoDel.md").read_text()
    assert "![Delay and goodput](slow-CoDel/plane.png)" in card
    assert (tmp_path / "runs/suite/quick/cards/slow-CoDel/plane.png").is_file()

    # What a kernel makes of it stands beside simulations of the same set-up.
    done = evaluation.evaluate(folder, named=["codel"], out=tmp_path / "runs")
    assert done.reused == done.run_count == 32
    kernel = evaluation.ByKernel(
        backend="linux",
        made_by="a kernel",
        about="it is the same",
        simulated=done.grids,
        measured={"steady": done.grids["steady"]},
        absent={"steady": {"sred": "no kernel has it"}},
        failed={"steady": ("codel: 1 run failed and is missing: it was late",)},
    )
    page = sheet.sheet(replace(done, kernel=kernel))
    assert "Not run by a kernel." in page
    assert page.count("By a kernel (a kernel): it is the same") == 1
    heads = ("simulated", "kernel", "difference")
    assert " | ".join(f"goodput (Mbit/s), {each}" for each in heads) in page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| 2 flows | codel")]
    assert [row[2] for row in rows] and any(row[2] == row[3] and "0" in row[4] for row in rows)
    assert "- sred: not run by the kernel: no kernel has it" in page
    assert "- codel: 1 run failed and is missing: it was late" in page


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"tail drop"\ndefault', '"drop tail"\ndefault', "accepted: drop tail alone"),
        ('"must"', '"has to"', "study.toml:33: section.requirement = 'has to'; accepted: must"),
        ('better = "less"', 'better = "low"', "criterion.better = 'low'; accepted: less, more"),
        ('"5 % or 1 ms"', '"1 Mbit/s"', "criterion.matters: queue_delay_mean = '1 Mbit/s'"),
        ('measures = ["mark"]', 'measures = ["marks"]', "section.measures: no run has the metric"),
        ("load = 4\n", "load = 5\n", "criterion.load = 5; accepted: 2, 4"),
        ('\nabout = "Two and four bulk flows."', "", "comparisons without about"),
        ('not_run = "It is text."', "", "3: neither comparisons nor a reason in not_run"),
        ('kind = "queue"', 'kind = "link"', "subject.kind = 'link'; accepted: queue, tcp"),
        ('comparisons = ["ecn"]', 'comparisons = ["ce"]', "section.comparisons = 'ce'"),
    ],
)
def test_a_mistake_is_told_by_its_line_key_and_value(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in SUITE
    folder = written(tmp_path / "suite", SUITE.replace(old, new, 1))
    result = runner.invoke(app, ["evaluate", str(folder), "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert f"error: {folder / 'study.toml'}:" in result.output
    assert message in result.output


def test_tables_of_a_suite_need_a_subject(tmp_path: Path) -> None:
    start = SUITE.index("[subject]")
    text = SUITE[:start] + SUITE[SUITE.index("[[comparison]]") :]
    folder = written(tmp_path / "suite", text.replace("subject = { ecn = true }", ""))
    with pytest.raises(SpecError, match="needs a table \\[subject\\]"):
        evaluation.load(folder)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--queue", "codell"], 'did you mean "codel"?'),
        (["--queue", "codel", "--queue", "codel"], "one subject for a label"),
        (["--tcp", "cubic"], "examines what --queue names"),
        (["--section", "9"], "--section 9: accepted: 1, 2, 3"),
        (["--scale", "full"], "has no scale 'full'; accepted: quick"),
        (["--queue", "FOLDER/mine.py:Mine"], "--allow-code"),
        (["--queue", "FOLDER/bad.toml"], "bad.toml:2: target = 3"),
    ],
)
def test_what_cannot_be_examined_is_refused(tmp_path: Path, words: list[str], message: str) -> None:
    folder = written(tmp_path / "suite")
    (tmp_path / "mine.py").write_text("class Mine:\n    pass\n")
    (tmp_path / "bad.toml").write_text('kind = "codel"\ntarget = 3\n')
    words = [word.replace("FOLDER", str(tmp_path)) for word in words]
    result = runner.invoke(app, ["evaluate", str(folder), "--out", str(tmp_path), *words])
    assert result.exit_code == 2
    assert message in result.output


def test_every_kind_of_queue_can_be_examined(tmp_path: Path) -> None:
    folder = written(tmp_path / "suite")
    study = evaluation.load(folder)
    subject = study.subject
    assert subject is not None
    examined = subjects.chosen(subject, subjects.everything(subject))
    found = evaluation.requests(study, "quick", ("steady",), examined, ())
    (file,) = found[0].files
    assert file.unfit == {}
    assert set(file.fitted) == set(subjects.kinds("queue"))
    assert len(file.fitted) > 30


def test_a_share_of_a_buffer_is_in_its_own_unit() -> None:
    assert subjects.share_of("3 packets", 1 / 6) == "1 packets"
    assert subjects.share_of("120 ms", 1 / 2) == "0.06 s"
    with pytest.raises(subjects.Unfit, match="limit = 'much'"):
        subjects.share_of("much", 0.5)


def test_presets_are_chosen_by_name() -> None:
    subject = Subject(kind="tcp", control="sack")
    assert [each.label for each in subjects.chosen(subject, None)] == ["cubic", "bbr3"]
    assert "sack" not in subjects.everything(subject)
    with pytest.raises(SpecError, match="as the control"):
        subjects.chosen(subject, ["sack"])


class Linux61(Linux):
    """The backend `linux` with what Debian's kernel 6.1 has, of which no machine is started."""

    def require_host(self) -> None:
        """Nothing is needed, as nothing is run."""

    def controls(self) -> list[str]:
        return ["bbr", "cubic", "reno"]

    def kernel_kinds(self) -> list[str]:
        return ["cake", "codel", "fq_codel", "htb", "netem", "pfifo", "bfifo", "pie", "red"]

    def filter_kinds(self) -> list[str]:
        return ["clsact", "flower", "matchall"]


@pytest.mark.parametrize("name", definition.suites())
def test_a_kernel_can_run_what_a_suite_has_for_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(backends.KNOWN, "linux", Linux61)
    study = studies.load(name)
    kernel, subject = study.kernel, study.subject
    assert subject is not None
    if kernel is None:
        pytest.skip("it has nothing for a kernel")
    assert kernel.each.keys() | kernel.not_run.keys() == {each.name for each in study.comparisons}
    examined = subjects.chosen(subject, ["red", "codel", "pie", "fq-codel", "cake", "sred"])
    everything = evaluation.plans_of(
        each
        for scale in study.scales
        for each in evaluation.requests(study, scale, kernel.each, (), ())
    )
    for scale in study.scales:
        for by in ("linux", None):
            found = evaluation.requests(study, scale, kernel.each, examined, (), kernel, by)
            # Views find in them the factors and the senders that they name.
            refuse_unknown(study, evaluation.plans_of(found), everything)
            for file in (file for request in found for file in request.files):
                backends.require_able(backends.find("linux"), [file.plan])
                assert set(file.unfit) == ({"sred"} if by else set()), file.path
                assert (
                    "126000 B" in file.fitted["red"].set["limit"]
                    or "700500 B" in (file.fitted["red"].set["limit"])
                )
                assert "limit" not in file.fitted["cake"].set


@pytest.mark.parametrize("name", definition.suites())
def test_a_suite_names_metrics_that_some_scale_records(name: str) -> None:
    study = studies.load(name)
    names = [each.name for each in study.comparisons]
    plans = {
        scale: evaluation.plans_of(evaluation.requests(study, scale, names, (), ()))
        for scale in study.scales
    }
    for scale, own in plans.items():
        others = [each for other, each in plans.items() if other != scale]
        merged = {of: [plan for each in others for plan in each.get(of, ())] for of in names}
        refuse_unknown(study, own, merged)


@pytest.mark.parametrize("name", definition.suites())
def test_what_a_built_in_suite_names_is_there(name: str) -> None:
    """The files are valid, and some scale has each metric that sections and criteria name."""
    study = studies.load(name)
    plans = {}
    prepared: dict[tuple[Path, tuple[str, ...]], Plan] = {}
    for comparison in study.comparisons:
        recorded = [tuple(scale.set.get("record", ())) for scale in comparison.scales]
        most = max(recorded, key=len, default=())
        for path in comparison.files:
            if (path, most) not in prepared:
                more = {"record": list(most)} if most else {}
                prepared[path, most] = experiment.prepare(path, set=more)
        plans[comparison.name] = [prepared[path, most] for path in comparison.files]
    refuse_unknown(study, plans)
