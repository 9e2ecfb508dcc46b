"""Code that an experiment names: told of by `check`, executed by `run` where that is allowed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import redtail
from redtail import cli, packing, studies
from redtail.errors import SpecError, StoreError
from redtail.inputs.code import Rule

pytestmark = pytest.mark.filterwarnings("ignore::redtail.RedtailWarning")

SCENARIO = """\
name = "Own"
duration = "2 s"
warmup = "1 s"
replications = 2

[bottleneck]
rate = "1 Mbit/s"
delay = "10 ms"
queue = {{ kind = "plugin", class = "{name}" }}

[[traffic]]
name = "ftp"
kind = "bulk"
"""

# Leaves a mark where it is executed.
QUEUE = """\
from pathlib import Path
Path({mark!r}).touch()

class Mine:
    def __init__(self, context):
        self.packets = []

    def enqueue(self, packet, now):
        self.packets.append(packet)
        return len(self.packets) < 9 or (self.packets.pop() and False)

    def dequeue(self, now):
        return self.packets.pop(0)
"""

WITH_OTHERS = """
[factors]
"bottleneck.queue" = [
    { kind = "plugin", class = "own.py:Mine", label = "own" },
    { kind = "tail-drop", limit = "9 packets", label = "tail drop" },
]
"""


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """What is there once the code of `write_queue` has been executed."""
    return tmp_path / "executed"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "experiment"
    made.mkdir()
    return made


def write_queue(path: Path, mark: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(QUEUE.format(mark=str(mark)))
    return path


def write_experiment(folder: Path, name: str = "own.py:Mine", more: str = "") -> Path:
    path = folder / "own.toml"
    path.write_text(SCENARIO.format(name=name) + more)
    return path


def command(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_check_and_a_dry_run_execute_nothing(folder: Path, mark: Path, tmp_path: Path) -> None:
    write_queue(folder / "own.py", mark)
    file = write_experiment(folder)
    told = f"would run code: bottleneck.queue: class Mine of {folder / 'own.py'}\n"
    code, text = command("check", file)
    assert code == 0 and told in text
    code, text = command("run", file, "--dry-run", "--out", tmp_path / "runs")
    assert code == 0 and told in text
    assert "all 1 case would run code: nothing is estimated" in text
    (found,) = redtail.check(file).code
    assert (found.name, found.files) == ("own.py:Mine", (folder / "own.py",))
    assert not mark.exists()
    redtail.run(file, out=tmp_path / "runs")
    assert mark.exists()


def test_a_dry_run_estimates_the_cases_without_code(
    folder: Path, mark: Path, tmp_path: Path
) -> None:
    write_queue(folder / "own.py", mark)
    file = write_experiment(folder, more=WITH_OTHERS)
    arguments = ("run", file, "--dry-run", "--out", tmp_path / "runs")
    code, text = command(*arguments)
    assert code == 0 and not mark.exists()
    assert "own: runs code, not looked up" in text and "tail drop: 0 runs stored" in text
    assert "1 case of 2 would run code" in text
    assert "measured in one trial run of the first case without code" in text
    redtail.run(file, out=tmp_path / "runs")
    mark.unlink()
    assert "tail drop: 2 runs stored" in command(*arguments)[1]
    assert not mark.exists()


def test_the_packages_of_a_module_are_not_executed_by_check(folder: Path, mark: Path) -> None:
    write_queue(folder / "outer_of_test" / "__init__.py", mark)
    write_queue(folder / "outer_of_test" / "inner" / "queue.py", mark)  # a folder is a namespace
    file = write_experiment(folder, "outer_of_test.inner.queue:Mine")
    (found,) = redtail.check(file).code
    assert [path.name for path in found.files] == ["__init__.py", "queue.py"]
    assert found.needs is None and not mark.exists()
    assert redtail.run(file, replications=1, out=folder / "runs").run_count == 1
    assert mark.exists()


def by_a_path(folder: Path, outside: Path) -> tuple[str, Path]:
    return os.path.relpath(outside / "own.py", folder), outside / "own.py"


def by_an_absolute_path(folder: Path, outside: Path) -> tuple[str, Path]:
    return str(outside / "own.py"), outside / "own.py"


def by_a_link(folder: Path, outside: Path) -> tuple[str, Path]:
    (folder / "link.py").symlink_to(outside / "own.py")
    return "link.py", outside / "own.py"


def by_a_linked_folder(folder: Path, outside: Path) -> tuple[str, Path]:
    (folder / "below").symlink_to(outside)
    return "below/own.py", outside / "own.py"


def by_a_module(folder: Path, outside: Path) -> tuple[str, Path]:
    (outside / "own.py").rename(outside / "module_of_test.py")
    return "module_of_test", outside / "module_of_test.py"


def by_a_package(folder: Path, outside: Path) -> tuple[str, Path]:
    package = outside / "package_of_test"
    package.mkdir()
    (outside / "own.py").rename(package / "own.py")
    (package / "__init__.py").touch()
    return "package_of_test.own", package


def by_an_installed_package(folder: Path, outside: Path) -> tuple[str, Path]:
    site = folder / ".venv" / "lib" / "site-packages"
    site.mkdir(parents=True)
    return ".venv/lib/site-packages/own.py", Path(shutil.move(outside / "own.py", site))


@pytest.mark.parametrize(
    "way",
    [
        by_a_path,
        by_an_absolute_path,
        by_a_link,
        by_a_linked_folder,
        by_a_module,
        by_a_package,
        by_an_installed_package,
    ],
)
def test_code_elsewhere_has_to_be_allowed(
    way: Callable[[Path, Path], tuple[str, Path]],
    folder: Path,
    mark: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outside = tmp_path / "elsewhere"
    monkeypatch.syspath_prepend(str(outside))
    write_queue(outside / "own.py", mark)
    place, needs = way(folder, outside)
    file = write_experiment(folder, f"{place}:Mine")
    out = tmp_path / "runs"

    code, text = command("check", file)
    assert code == 0 and f"; needs --allow-code {needs}\n" in text
    for arguments in (("run", file), ("compare", file, "--metric", "goodput")):
        code, text = command(*arguments, "--out", out)
        assert code == 2
        assert text.startswith(f'error: {file}:9: bottleneck.queue.class = "{place[:9]}')
        assert "names code outside the experiment's folder" in text
        assert f"--allow-code {needs}" in text and "allow_code" in text
    for call in (
        lambda: redtail.run(file, out=out),
        lambda: redtail.Campaign([file]).run(out=out),
        lambda: redtail.capture(file, {"bottleneck": tmp_path / "packets.pcapng"}),
    ):
        with pytest.raises(SpecError) as refused:
            call()
        assert refused.value.line == 9
        assert refused.value.key == "bottleneck.queue.class"
    assert not mark.exists() and not out.exists()

    assert "needs" not in command("check", file, "--allow-code", needs)[1]
    code, text = command("run", file, "--allow-code", needs, "--no-figures", "--out", out)
    assert code == 0, text
    assert mark.exists()
    redtail.run(file, allow_code=needs, out=out)
    redtail.Campaign([file]).run(allow_code=[needs], out=out)
    redtail.capture(file, {"bottleneck": tmp_path / "packets.pcapng"}, allow_code=needs)


def test_imports_from_elsewhere_have_to_be_allowed(
    folder: Path, mark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    monkeypatch.syspath_prepend(str(outside))
    own = write_queue(folder / "own.py", tmp_path / "of the class")
    own.write_text(f"import near_of_test, law_of_test\n{own.read_text()}")
    (folder / "near_of_test.py").write_text("import law_of_test\n")
    law = outside / "law_of_test.py"
    law.write_text(f"from pathlib import Path\nPath({str(mark)!r}).touch()\n")
    file = write_experiment(folder)
    out = tmp_path / "runs"
    code, text = command("check", file)
    told = f"of {own}, with {folder / 'near_of_test.py'}, {law}; needs --allow-code {law}\n"
    assert code == 0 and told in text
    code, text = command("run", file, "--out", out)
    assert code == 2 and f"{law}, which {own} imports" in text and f"--allow-code {law}" in text
    assert not mark.exists() and not (tmp_path / "of the class").exists() and not out.exists()
    results = redtail.run(file, allow_code=law, out=out)
    assert mark.exists()
    # Another computer does not have it on Python's path.
    with pytest.raises(SpecError, match="law_of_test; accepted: modules in the folder"):
        packing.pack(results.folder, tmp_path / "packed.zip")

    (folder / "law_of_test.py").write_text("")
    assert "needs" not in command("check", file)[1]
    assert redtail.run(file, out=out).reused == 0


def test_nothing_is_executed_before_all_is_valid(folder: Path, mark: Path, tmp_path: Path) -> None:
    write_queue(folder / "own.py", mark)
    write_queue(tmp_path / "elsewhere" / "own.py", mark)
    other = '{ kind = "plugin", class = "../elsewhere/own.py:Mine" }'
    file = write_experiment(folder, more=WITH_OTHERS.replace("]", f"    {other},\n]"))
    with pytest.raises(SpecError, match=r"elsewhere/own\.py"):
        redtail.run(file, out=tmp_path / "runs")
    valid = tmp_path / "valid"
    valid.mkdir()
    write_queue(valid / "own.py", mark)
    good = write_experiment(valid)
    with pytest.raises(SpecError, match=r"elsewhere/own\.py"):
        redtail.Campaign({"good": good, "bad": file}).run(out=tmp_path / "runs")
    with pytest.raises(SpecError, match="delay"):
        redtail.run(good, set={"bottleneck.delay": "1 kg"}, out=tmp_path / "runs")
    assert not mark.exists()


def test_the_home_folder_may_be_named_by_its_sign(
    folder: Path, mark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_queue(tmp_path / "shared" / "own.py", mark)
    file = write_experiment(folder, name="../shared/own.py:Mine")
    plan = redtail.check(file, allow_code="~/shared")
    assert plan.allowed == (str(tmp_path / "shared"),)
    assert "needs" not in plan.code[0].text
    assert "needs" in redtail.check(file).code[0].text


def test_what_is_allowed_has_to_be_there(folder: Path, mark: Path) -> None:
    write_queue(folder / "own.py", mark)
    file = write_experiment(folder)
    code, text = command("run", file, "--allow-code", folder / "none")
    assert code == 2 and f"--allow-code {folder / 'none'}: no such file or folder" in text
    with pytest.raises(SpecError, match="no such file or folder"):
        redtail.run(file, allow_code="no/such/folder")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sys:Mine", "not in a file: sys"),
        ("sys.x:Mine", "not in a file: sys"),
        ("..own:Mine", "does not name a file or module"),
        ("own.py:", "does not name a file or module"),
        ("a\\u0000b.py:Mine", "cannot be read"),
        ("loop.py:Mine", "cannot be read"),
        ("below:Mine", "names a folder and not a module"),
        ("no_such_module.x:Mine", "not found: no_such_module"),
    ],
)
def test_check_refuses_code_that_is_not_there(folder: Path, name: str, says: str) -> None:
    (folder / "loop.py").symlink_to(folder / "loop.py")
    (folder / "below").mkdir()
    file = write_experiment(folder, name)
    with pytest.raises(SpecError, match=says) as refused:
        redtail.check(file)
    assert refused.value.line == 9


def test_a_plan_that_was_checked_alone_is_not_run(folder: Path, mark: Path) -> None:
    from redtail.running import runner

    write_queue(folder / "own.py", mark)
    plan = redtail.check(write_experiment(folder))
    with pytest.raises(SpecError, match="without loading the code"):
        runner.execute(plan, out=folder / "runs")
    assert not (folder / "runs").exists() and not mark.exists()


def test_the_command_that_repeats_a_run_allows_what_was_allowed(
    folder: Path, mark: Path, tmp_path: Path
) -> None:
    path = write_queue(tmp_path / "elsewhere" / "own.py", mark)
    path.write_text(path.read_text().replace("self.packets.pop(0)", "1 / 0"))
    file = write_experiment(folder, "../elsewhere/own.py:Mine")
    with pytest.raises(redtail.QueueError, match=f"--allow-code {path}"):
        redtail.run(file, allow_code=path, out=tmp_path / "runs")


def test_opening_results_executes_nothing(folder: Path, mark: Path, tmp_path: Path) -> None:
    path = write_queue(folder / "own.py", mark)
    file = write_experiment(folder, more=WITH_OTHERS)
    out = tmp_path / "runs"
    redtail.run(file, set={"series": {"interval": "100 ms", "queues": True}}, out=out)
    for broken in (path.read_text(), "1 / 0\n"):
        path.write_text(broken)
        mark.unlink(missing_ok=True)
        results = redtail.load(out / "own")
        assert results.case(queue="own").metric("goodput").mean > 0
        results.series("queues", case=0, replication=0)
        results.figures(tmp_path / "figures", every=True)
        for arguments in (
            ("compare", out / "own", "--metric", "goodput"),
            ("runs", "list", "--out", out),
            ("runs", "show", "own", "--out", out),
            ("runs", "verify", "--out", out),
        ):
            code, text = command(*arguments)
            assert code == 0, text
        assert not mark.exists()


def test_results_that_are_pickles_are_not_opened(tmp_path: Path) -> None:
    import pickle

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "executed"),)

    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "results.json").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(StoreError):
        redtail.load(folder)
    assert not (tmp_path / "executed").exists()


def paper(folder: Path, file: str) -> Path:
    """Write a study of one comparison and one figure."""
    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(
        f"""
title = "Mine"
authors = "I"
published = "Never"

[[comparison]]
name = "loads"
about = "a queue of ours"
queue = "bottleneck.queue"
load = "traffic.ftp.flows"
files = ["{file}"]

[[comparison.scale]]
name = "quick"
about = "short"
set = {{ replications = 2 }}
"""
    )
    (folder / "findings.toml").write_text(
        """
[[finding]]
id = "F-1"
statement = "Something is lost."

[[finding.check]]
comparison = "loads"
test = "level"
metric = "loss"
at_least = 0.0
"""
    )
    return folder


LOADS = """
[factors]
"traffic.ftp.flows" = [1, 2]
"bottleneck.queue" = [
    { kind = "plugin", class = "%s:Mine", label = "own" },
    { kind = "tail-drop", limit = "9 packets", label = "tail drop" },
]
"""


def test_a_paper_executes_the_code_of_its_folder(folder: Path, mark: Path, tmp_path: Path) -> None:
    own = paper(tmp_path / "paper", "own.toml")
    outside = write_queue(tmp_path / "elsewhere" / "own.py", mark)
    write_experiment(own, str(outside), LOADS % outside)
    out = tmp_path / "runs"
    code, text = command("reproduce", own, "--out", out)
    assert code == 2 and f"--allow-code {outside}" in text and f"{own / 'own.toml'}:" in text
    # Nor that beside an experiment elsewhere, which a paper could name as well.
    write_queue(folder / "own.py", mark)
    write_experiment(folder, more=LOADS % "own.py")
    paper(own, "../experiment/own.toml")
    with pytest.raises(SpecError, match="outside the experiment's folder"):
        studies.run(str(own), out=out)
    assert not mark.exists()

    done = studies.run(str(own), out=out, allow_code=folder)
    assert mark.exists() and done.run_count == 8
    mark.unlink()
    paper(own, "own.toml")
    shutil.copy(outside, own / "own.py")
    write_experiment(own, more=LOADS % "own.py")
    code, text = command("reproduce", own, "--out", out)
    assert code == 0 and mark.exists(), text


def test_a_rule_sees_through_links_to_the_experiments_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "own.py").touch()
    (tmp_path / "real" / "own.toml").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    rule = Rule.of(str(tmp_path / "link" / "own.toml"))
    found = rule.locate("own.py:Mine", rule.folder)
    assert found.needs is None and found.files == (tmp_path / "real" / "own.py",)
    assert found.shown == str(tmp_path / "link" / "own.py")
