"""Stores in an object store: fetched, put, damaged, cut off; two machines at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import fsspec
import pytest
from typer.testing import CliRunner

import redtail
from redtail.analysis import stored
from redtail.cli import app
from redtail.errors import RedtailWarning, StoreError
from redtail.running import runner
from redtail.store import objects, runs
from redtail.store.format import RUN_NAME

from conftest import ROOT
from fake_native import FakeNative

URL = "memory://bucket/runs"

SMALL = """
name = "Small"
duration = "100 ms"
[bottleneck]
rate = "1 Mbit/s"
delay = "1 ms"
queue = { kind = "tail-drop", limit = "10 packets" }
[[traffic]]
name = "cbr"
kind = "cbr"
rate = "500 kbit/s"
packet = "500 B"
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of their own for each test, and a memory with nothing in it."""
    monkeypatch.setenv("REDTAIL_CACHE", str(tmp_path / "cache"))
    fsspec.filesystem("memory").store.clear()
    return tmp_path / "cache"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve runs are many."""
    monkeypatch.setattr(runner, "LARGE", 12)
    monkeypatch.setattr(stored, "LARGE", 12)


def there(url: str = URL) -> dict[str, bytes]:
    found = objects.Objects(url)
    return {name: found.read(name) for name in found.there}


def same_but_for_manifests(url: str, folder: Path) -> None:
    """What is in an object store is what is in a folder."""
    here = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".lock")
    }
    found = there(url)
    assert found.keys() == here.keys()
    for name, data in found.items():
        assert name.endswith("manifest.json") or data == here[name], name


def test_what_is_finished_is_there_and_is_not_made_again(
    fake: FakeNative, fake_file: Path, tmp_path: Path, cache: Path
) -> None:
    plain = redtail.run(fake_file, out=tmp_path / "runs", replications=2)
    fake.ran.clear()
    first = redtail.run(fake_file, out=URL, replications=1)
    shutil.rmtree(cache)  # another machine
    second = redtail.run(fake_file, out=f"{URL}/", replications=2)
    assert (len(fake.ran), second.reused) == (8, 4)
    assert second.to_json() == plain.to_json() != first.to_json()
    same_but_for_manifests(URL, tmp_path / "runs")
    shutil.rmtree(cache)
    loaded = redtail.load(f"{URL}/fake-experiment")
    assert loaded.to_json() == plain.to_json()
    assert loaded.series().equals(plain.series())
    with pytest.raises(StoreError, match="not the folder of a finished experiment"):
        redtail.load(f"{URL}/none")


@pytest.mark.usefixtures("large")
def test_segments_travel_too(tmp_path: Path, cache: Path) -> None:
    text = redtail.Toml(SMALL)
    plain = redtail.run(text, out=tmp_path / "runs", replications=14)
    redtail.run(text, out=URL, replications=12)
    shutil.rmtree(cache)
    again = redtail.run(text, out=URL, replications=14)
    assert again.reused == 12
    assert again.to_json() == plain.to_json()
    assert sum(name.startswith("small/segments/") for name in there()) == 2
    shutil.rmtree(cache)
    assert redtail.load(f"{URL}/small").to_json() == plain.to_json()
    # What another process could not put before it died is put by the next.
    (lost, _) = (name for name in there() if name.startswith("small/segments/"))
    fsspec.filesystem("memory").rm_file(f"/bucket/runs/{lost}")
    assert redtail.run(text, out=URL, replications=14).reused == 14
    assert lost in there()


@pytest.mark.usefixtures("large")
def test_damage_is_noticed_and_mended(tmp_path: Path, cache: Path) -> None:
    text = redtail.Toml(SMALL)
    files = fsspec.filesystem("memory")
    first = redtail.run(text, out=URL, replications=2)
    run = first.cases[0].runs[1].key
    redtail.run(text, out=URL, replications=12)
    (segment,) = (name for name in there() if name.startswith("small/segments/"))
    for name in (f"small/{run}/summary.parquet", segment):
        data = there()[name]
        files.pipe_file(f"/bucket/runs/{name}", data[:99] + bytes([data[99] ^ 1]) + data[100:])
    code, output = invoke("verify", "--out", URL)
    assert code == 1
    assert f"{URL}/small/{run}/summary.parquet: damaged: its content was altered" in output
    assert f"{URL}/{segment}: damaged" in output
    shutil.rmtree(cache)
    with pytest.warns(RedtailWarning) as warned:
        again = redtail.run(text, out=URL, replications=12)
    told = [str(each.message) for each in warned]
    assert any(f"{URL}/small/{run}" in each and "run again" in each for each in told)
    assert any(f"{URL}/{segment}: the segment is damaged" in each for each in told)
    assert again.reused == 1
    # In an object store nothing is removed, which nobody could be kept from using meanwhile.
    files.rm_file(f"/bucket/runs/{segment}")
    files.rm(f"/bucket/runs/small/{run}", recursive=True)
    shutil.rmtree(cache)
    assert redtail.run(text, out=URL, replications=12).reused == 12
    assert invoke("verify", "--out", URL)[0] == 0


def test_a_run_that_lost_a_file_there_is_put_again(fake: FakeNative, fake_file: Path) -> None:
    redtail.run(fake_file, out=URL, replications=1)
    name = next(name for name in there() if name.endswith("summary.parquet"))
    fsspec.filesystem("memory").rm_file(f"/bucket/runs/{name}")
    assert redtail.run(fake_file, out=URL, replications=1).reused == 4
    assert name in there()


def invoke(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["runs", *arguments])
    return done.exit_code, done.output


def test_the_commands_take_a_url(fake: FakeNative, fake_file: Path, tmp_path: Path) -> None:
    command = ["run", str(fake_file), "--out", URL, "--replications", "1"]
    done = CliRunner().invoke(app, [*command, "--no-figures"])
    assert done.exit_code == 0, done.output
    assert f"kept in: {URL}" in done.stdout
    before = there()
    told = CliRunner().invoke(app, [*command, "--dry-run"])
    assert "stored:  4 of 4 runs are in the store already" in told.stdout
    code, output = invoke("list", "--out", URL, "--json")
    assert (code, json.loads(output)[0]["runs"]) == (0, 4)
    key = next(name.split("/")[1] for name in before if RUN_NAME.fullmatch(name.split("/")[1]))
    assert f"run {key} of fake-experiment in {URL}/" in invoke("show", key, "--out", URL)[1]
    code, output = invoke("verify", "--out", URL)
    assert (code, output.count("\n")) == (0, 1)
    code, output = invoke("gc", "--out", URL)
    assert code != 0 and "no locks" in output
    assert there() == before
    done = CliRunner().invoke(app, ["reproduce", "iscc2001", "--out", URL])
    assert "in a folder" in done.output


def test_a_failed_run_leaves_its_log_there_until_it_is_made(
    fake: FakeNative, fake_file: Path
) -> None:
    def fail(number: int) -> None:
        if number == 1:
            raise RuntimeError("no luck")

    fake.before_run = fail
    with pytest.raises(redtail.RunError) as caught:
        redtail.run(fake_file, out=URL, replications=1, jobs=1)
    assert f"finished and kept in {URL}/fake-experiment;" in str(caught.value)
    assert f"--out {URL}" in str(caught.value)
    assert [name for name in there() if "/failed/" in name]
    fake.before_run = lambda number: None
    redtail.run(fake_file, out=URL, replications=1)
    assert not [name for name in there() if "/failed/" in name]


def test_what_cannot_be_reached_is_named(
    fake: FakeNative, fake_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match=r"nosuch://x/runs/.*: .*nosuch"):
        redtail.run(fake_file, out="nosuch://x/runs")
    put = objects.Objects.put
    calls = 0

    def cut_off(self: objects.Objects, name: str, data: bytes) -> None:
        nonlocal calls
        calls += 1
        with self._translate_errors("written"):
            if calls > 7:
                raise TimeoutError("the line is dead")
        put(self, name, data)

    monkeypatch.setattr(objects.Objects, "put", cut_off)
    with pytest.raises(StoreError, match=r"cannot be written: the line is dead.*goes on"):
        redtail.run(fake_file, out=URL, jobs=1)
    monkeypatch.setattr(objects.Objects, "put", put)
    made = len(fake.ran)
    again = redtail.run(fake_file, out=URL)
    # What was made and not put is in the copy here.
    assert again.reused >= 2 and len(fake.ran) <= made + 12 - again.reused
    assert invoke("verify", "--out", URL)[0] == 0

    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(StoreError, match=r"pip install 'redtail\[objects\]'"):
        redtail.run(fake_file, out=URL)


PROCESS = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    import redtail, redtail.running.runner, redtail.analysis.results, pyarrow.parquet
    from redtail.store import objects
    text, url, folder = redtail.Toml(sys.argv[1]), sys.argv[2], Path(sys.argv[3])

    def campaign(cache, die_at=None):
        os.environ["REDTAIL_CACHE"] = str(cache)
        put, count = objects.Objects.put, 0

        def counted(self, name, data):
            nonlocal count
            count += 1
            if count == die_at:
                put(self, name, data[: len(data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            put(self, name, data)

        objects.Objects.put = counted
        redtail.run(text, out=url.format(die_at), replications=2, jobs=2)

    def in_a_process(*arguments):
        child = os.fork()
        if child == 0:
            try:
                campaign(*arguments)
            except BaseException as error:
                print(error, file=sys.stderr)
                os._exit(1)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    """
)


def test_a_campaign_killed_at_any_object_is_finished_by_this_machine_or_another(
    tmp_path: Path,
) -> None:
    """SIGKILL in the middle of each object in turn, which the directory behind keeps half."""
    script = PROCESS + textwrap.dedent(
        """
        for at in range(1, 99):
            url_of_this, url = url, url.format(at)
            status = in_a_process(folder / f"cache-{at}", at)
            # The same machine finishes every second one, and another the others.
            next_one = folder / (f"cache-{at}" if at % 2 else f"other-{at}")
            assert status in (0, -signal.SIGKILL), status
            assert status == 0 or in_a_process(next_one) == 0
            url = url_of_this
            if status == 0:
                break
        print(at)
        """
    )
    plain = redtail.run(redtail.Toml(SMALL), out=tmp_path / "plain", replications=2)
    url = f"file://{tmp_path}/bucket-{{}}"
    command = [sys.executable, "-W", "ignore", "-c", script, SMALL, url, str(tmp_path)]
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    last = int(done.stdout)
    assert last == 2 * 6 + 4 + 1, "two runs of six files, the tables, and the experiment"
    for at in range(1, last + 1):
        same_but_for_manifests(url.format(at), tmp_path / "plain")
        assert list(runs.verify(tmp_path / f"bucket-{at}" / "small")) == []
        assert redtail.load(url.format(at) + "/small").to_json() == plain.to_json()


def test_two_machines_at_once_do_each_other_no_harm(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/bucket"
    machines = []
    for number, replications in enumerate((30, 30, 40)):
        script = (
            f"import redtail; redtail.run(redtail.Toml({SMALL!r}), out={url!r}, "
            f"replications={replications}, jobs=1)"
        )
        environment = {**os.environ, "REDTAIL_CACHE": str(tmp_path / f"machine-{number}")}
        machines.append(subprocess.Popen([sys.executable, "-c", script], env=environment))
    assert [machine.wait() for machine in machines] == [0, 0, 0]
    results = redtail.run(redtail.Toml(SMALL), out=url, replications=40)
    assert results.reused == 40
    plain = redtail.run(redtail.Toml(SMALL), out=tmp_path / "plain", replications=40)
    assert results.to_json() == plain.to_json()
    same_but_for_manifests(url, tmp_path / "plain")
    assert list(runs.verify(tmp_path / "bucket" / "small")) == []


def test_names_that_lead_elsewhere_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["small/../../evil", "//evil", "small/a/./b", "small/results.json"]
    found = {f"/bucket/runs/{name}": {"size": 1} for name in names}
    files = fsspec.filesystem("memory")
    monkeypatch.setattr(files, "find", lambda path, detail: found)
    assert list(objects.Objects(URL).there) == ["small/results.json"]


def test_any_file_system_of_fsspec_will_do(tmp_path: Path, cache: Path) -> None:
    """One chained from two: a directory within a local file system."""
    url = f"dir::file://{tmp_path}/bucket"
    first = redtail.run(redtail.Toml(SMALL), out=url, replications=3)
    shutil.rmtree(cache)
    assert redtail.run(redtail.Toml(SMALL), out=url, replications=3).reused == 3
    assert redtail.load(f"{url}/small").to_json() == first.to_json()
