"""Campaigns that are killed, crowded or refused by the system, and what is in the store then."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import redtail
from redtail.errors import RedtailWarning, StoreError
from redtail.store import folders as store
from redtail.store import runs, writing

from conftest import ROOT
from fake_native import FakeNative

SCRIPT = ROOT / "tests" / "store_process.py"

# What differs between two makings of the same run, and nothing else may.
BY_NATURE = ("created", "wall_time_s", "host", "platform", "processor", "python", "checksum")


def contents(root: Path) -> dict[str, bytes]:
    """Every file of a store but what differs by nature."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_dir():
            continue
        data = path.read_bytes()
        if path.name == "manifest.json":
            manifest = json.loads(data)
            data = json.dumps({k: v for k, v in manifest.items() if k not in BY_NATURE}).encode()
        found[str(path.relative_to(root))] = data
    return found


def stored(root: Path) -> set[str]:
    """The keys of the runs that are in a store."""
    return {
        path.parent.name for path in root.glob("*/*/manifest.json") if path.parent.name[0] != "."
    }


def start(root: Path, replications: int, log: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(SCRIPT), str(root), str(replications), str(log), *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, complaints = process.communicate(timeout=600)
    return process.returncode, complaints.decode()


def lines(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, bytes]]:
    """The store that a campaign leaves when nothing happens, by its number of replications."""
    found = {}
    for replications in (1, 25):
        folder = tmp_path_factory.mktemp("undisturbed")
        process = start(folder / "runs", replications, folder / "log")
        assert finish(process) == (0, "")
        assert len(lines(folder / "log")) == 4 * replications
        found[replications] = contents(folder / "runs")
    return found


@pytest.mark.weekly
def test_killed_at_random_moments_and_finished_it_is_as_if_never_killed(
    undisturbed: dict[int, dict[str, bytes]], tmp_path: Path
) -> None:
    """15 times SIGKILL, each at a random moment after a random number of runs was stored."""
    draw = random.Random(20011)
    root = tmp_path / "runs"
    made: list[str] = []
    left = []
    for number in range(15):
        log = tmp_path / f"log-{number}"
        before = stored(root)
        process = start(root, 25, log)
        more = draw.randint(0, 5)
        while len(stored(root)) < len(before) + more and process.poll() is None:
            time.sleep(0.0005)
        # Without any that is stored, from the start on: modules are being loaded.
        time.sleep(draw.uniform(0.0, 0.006 if more else 1.0))
        process.kill()
        finish(process)
        assert not before & set(lines(log)), "a run was made that was in the store"
        made += lines(log)
        left.append(len(stored(root)))
        for key in stored(root):
            store.read_run(root / "killed" / key)  # whole at any moment
    assert len({count for count in left if 0 < count < 100}) >= 5, f"no test of anything: {left}"

    before = stored(root)
    last = tmp_path / "log"
    assert finish(start(root, 25, last)) == (0, "")
    assert not before & set(lines(last))
    # Short runs are handed out in batches, four at a time, each of at most an eighth of what is
    # left for each of two threads: what a kill can cost is what was not stored yet.
    assert 100 <= len(made) + len(lines(last)) <= 100 + 15 * 4 * (100 // (8 * 2))
    assert contents(root) == undisturbed[25]
    assert list(runs.verify(root / "killed")) == []


def test_killed_at_each_change_to_the_file_system_it_is_as_if_never_killed(
    undisturbed: dict[int, dict[str, bytes]], tmp_path: Path
) -> None:
    """Half a file is left where the change is a file's content."""
    stores = tmp_path / "stores"
    process = start(stores, 1, tmp_path / "log", "--die-at-each-change")
    assert finish(process) == (0, "")
    folders = [path for path in stores.iterdir() if path.is_dir()]
    assert len(folders) > 4 * 6  # of each run three files, its folder and its renaming, at least
    for root in folders:
        assert contents(root) == undisturbed[1], root
        if root.with_suffix(".finished").exists():
            kept, made = (lines(root.with_suffix(ending)) for ending in (".kept", ".finished"))
            assert sorted(kept + made) == sorted(stored(root))  # no run again, none forgotten
    assert any(0 < len(lines(path)) < 4 for path in stores.glob("*.kept"))


def test_two_processes_run_overlapping_campaigns_into_one_store(
    undisturbed: dict[int, dict[str, bytes]], tmp_path: Path
) -> None:
    root = tmp_path / "runs"
    both = [start(root, n, tmp_path / f"log-{n}") for n in (15, 25)]
    assert [finish(process) for process in both] == [(0, ""), (0, "")]
    assert len(stored(root)) == 100
    assert list(runs.verify(root / "killed")) == []  # the tables are of one of them, not of both
    after = tmp_path / "log"
    assert finish(start(root, 25, after)) == (0, "")
    assert lines(after) == []
    assert contents(root) == undisturbed[25]


def test_the_tables_of_two_commands_are_not_mixed(
    fake: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is made to finish its campaign while the other is between two of its files."""
    root = tmp_path / "runs"
    redtail.run(fake_file, out=root, replications=3)
    write = store.ExperimentStore.write
    begun = threading.Event()
    waited = []

    def between(opened: store.ExperimentStore, name: str, data: bytes) -> Path:
        if name == "replications.parquet" and not begun.is_set():
            begun.set()
            other.start()
            other.join(0.3)  # without a lock it is done by now
            waited.append(other.is_alive())
        return write(opened, name, data)

    other = threading.Thread(
        target=lambda: redtail.run(fake_file, out=root, replications=2, jobs=1)
    )
    monkeypatch.setattr(store.ExperimentStore, "write", between)
    redtail.run(fake_file, out=root, replications=3)
    other.join()
    assert waited == [True]
    assert list(runs.verify(root / "fake-experiment")) == []
    assert redtail.load(root / "fake-experiment").run_count == 8


def test_what_another_process_is_making_is_not_cleaned_away(tmp_path: Path) -> None:
    """Its runs are in no results before its end."""
    root = tmp_path / "runs"
    process = start(root, 15, tmp_path / "log")
    while not stored(root) and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    try:
        assert process.poll() is None
        before = stored(root)
        found = runs.clean(root / "killed", unreferenced=True, yes=True)
        assert (found.removed, found.removals) == (False, [])
        assert "a campaign is at work here" in found.kept[0]
        assert stored(root) == before
    finally:
        process.send_signal(signal.SIGCONT)
    assert finish(process) == (0, "")
    assert runs.clean(root / "killed", unreferenced=True, yes=True).removals == []


def test_a_disk_that_is_full_at_any_write_leaves_whole_runs_only(
    fake: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENOSPC at the first change to the file system, at the second, and so on."""
    redtail.run(fake_file, out=tmp_path / "whole", replications=1, jobs=1)
    expected = contents(tmp_path / "whole")
    count = 0
    full_at = 0

    def take_place(path: object) -> bool:
        nonlocal count
        count += 1
        return count == full_at

    def full(path: object) -> OSError:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    write_new, mkdir, rename, replace = writing.write_new, Path.mkdir, os.rename, os.replace

    def written(path: Path, data: bytes) -> None:
        if take_place(path):
            write_new(path, data[: len(data) // 2])
            raise full(path)
        write_new(path, data)

    def made(path: Path, *rest: object, **more: object) -> None:
        if take_place(path):
            raise full(path)
        mkdir(path, *rest, **more)  # type: ignore[arg-type]

    def renamed(source: object, target: object) -> None:
        if take_place(target):
            raise full(target)
        rename(source, target)  # type: ignore[arg-type]

    def replaced(source: object, target: object) -> None:
        if take_place(target):
            raise full(target)
        replace(source, target)  # type: ignore[arg-type]

    for full_at in itertools.count(1):  # noqa: B007
        root = tmp_path / "runs"
        count = 0
        with monkeypatch.context() as patch:
            patch.setattr(writing, "write_new", written)
            patch.setattr(Path, "mkdir", made)
            patch.setattr(os, "rename", renamed)
            patch.setattr(os, "replace", replaced)
            try:
                redtail.run(fake_file, out=root, replications=1, jobs=1)
            except StoreError as error:
                assert "No space left on device" in str(error)
                assert "goes on from there" in str(error)
            else:
                break
        for key in stored(root):
            store.read_run(root / "fake-experiment" / key)
        assert not list(root.rglob(".tmp-*"))
        fake.ran.clear()
        before = stored(root)
        redtail.run(fake_file, out=root, replications=1, jobs=1)
        assert len(fake.ran) == 4 - len(before)
        assert contents(root) == expected
        shutil.rmtree(root)
    assert full_at > 4 * 7, "every file of every run was to be refused"


def test_a_failing_run_on_a_full_disk_still_says_why_it_failed(
    fake: FakeNative, fake_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(number: int) -> None:
        raise RuntimeError("no luck")

    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    fake.before_run = fail
    monkeypatch.setattr(writing, "write_new", full)
    with pytest.raises(redtail.RunError, match="no luck"):
        redtail.run(fake_file, out=tmp_path)
    assert not list(tmp_path.rglob("*.log"))


def damages(size: int) -> Iterator[tuple[str, object]]:
    """Ways to damage a file: cut short, a byte flipped, grown, gone, or a folder in its place."""
    for cut in sorted({0, 1, size // 2, size - 1}):
        yield f"cut to {cut}", lambda data, cut=cut: data[:cut]
    draw = random.Random(size)
    places = {0, 1, 7, size // 2, size - 8, size - 2, size - 1}
    for place in sorted(places | {draw.randrange(size) for _ in range(20)}):
        bit = 1 << draw.randrange(8)
        yield (
            f"bit {bit} of byte {place}",
            lambda data, place=place, bit=bit: (
                data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]
            ),
        )
    yield "grown", lambda data: data + b"\0"
    yield "missing", None


def test_damage_at_any_place_of_any_file_is_noticed_and_made_good(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    root = tmp_path / "runs"
    redtail.run(fake_file, out=root, replications=1)
    expected = contents(root)
    folder = root / "fake-experiment"
    key = sorted(stored(root))[1]
    whole = {path.name: path.read_bytes() for path in (folder / key).iterdir()}
    tried = 0
    with store.ExperimentStore(root, "Fake experiment") as opened:
        for name, data in sorted(whole.items()):
            for what, change in damages(len(data)):
                path = folder / key / name
                if change is None:
                    path.unlink()
                else:
                    path.write_bytes(change(data))  # type: ignore[operator]
                with pytest.warns(RedtailWarning, match=f"{key}: the stored run is damaged"):
                    assert opened.load(key) is None, (name, what)
                assert {each.kind for each in runs.verify_run(folder / key)} == {"damaged"}
                path.write_bytes(data)
                tried += 1
    assert tried > 5 * 25

    for name in sorted(whole):  # and made anew by the same command
        (folder / key / name).write_bytes(whole[name][:-1])
        fake.ran.clear()
        with pytest.warns(RedtailWarning, match="run again"):
            redtail.run(fake_file, out=root, replications=1)
        assert len(fake.ran) == 1
        assert contents(root) == expected
    shutil.rmtree(folder / key)
    (folder / key).write_text("a file where the run's folder was")
    with pytest.warns(RedtailWarning, match="run again"):
        redtail.run(fake_file, out=root, replications=1)
    assert contents(root) == expected


def test_a_run_under_the_name_of_another_is_not_taken_for_it(
    fake: FakeNative, fake_file: Path, tmp_path: Path
) -> None:
    root = tmp_path / "runs"
    redtail.run(fake_file, out=root, replications=1)
    expected = contents(root)
    one, other, *_ = sorted(stored(root))
    shutil.rmtree(root / "fake-experiment" / one)
    shutil.copytree(root / "fake-experiment" / other, root / "fake-experiment" / one)
    with pytest.warns(RedtailWarning, match=f"it is the run {other}; it is run again"):
        redtail.run(fake_file, out=root, replications=1)
    assert contents(root) == expected


@pytest.mark.parametrize("shift", [-10 * 365 * 86400.0, 10 * 365 * 86400.0])
def test_a_clock_that_is_wrong_does_not_matter(
    fake: FakeNative,
    fake_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shift: float,
) -> None:
    """Manifests from the future or from long ago are whole; what others write is let alone."""
    root = tmp_path / "runs"
    redtail.run(fake_file, out=root)
    folder = root / "fake-experiment"
    busy = folder / f".tmp-redtail-0123456789abcdef-{platform.node()}-{os.getppid()}-17"
    elsewhere = folder / ".tmp-redtail-0123456789abcdef-another.machine-1-17"
    busy.mkdir()
    elsewhere.mkdir()
    for path in sorted(root.rglob("*"), reverse=True):
        if path.name != elsewhere.name:
            os.utime(path, (time.time() - shift, time.time() - shift))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + shift)
    again = redtail.run(fake_file, out=root)
    assert again.reused == 12
    assert busy.exists() and elsewhere.exists()


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Be another user for a while; only root can."""
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users can reach; pytest's own they cannot."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


two_users = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be two users"
)


@two_users
def test_a_store_of_another_user_is_refused_by_name_before_any_run(
    fake: FakeNative, fake_file: Path, shared: Path
) -> None:
    source = redtail.Toml(fake_file.read_text())
    root = shared / "runs"
    redtail.run(source, out=root)
    before = contents(root)
    fake.ran.clear()
    told = r"cannot be written: Permission denied \(.*runs.* belongs to root, and this is nobody\)"
    with as_nobody(), pytest.raises(StoreError, match=told + ".*--out DIR"):
        redtail.run(source, out=root)
    with as_nobody(), pytest.raises(StoreError, match=told):
        redtail.run(source, out=root / "fake-experiment")
    assert fake.ran == []
    with as_nobody():  # reading is allowed
        assert list(runs.verify(root / "fake-experiment")) == []
        assert runs.listing(root)[0].runs == 12
        assert redtail.load(root / "fake-experiment").run_count == 12
    assert contents(root) == before


@two_users
def test_users_of_one_group_share_a_store_and_unreadable_runs_are_not_taken_for_damaged(
    fake: FakeNative, fake_file: Path, shared: Path
) -> None:
    source = redtail.Toml(fake_file.read_text())
    root = shared / "runs"
    redtail.run(source, out=root, replications=1)
    for path in (root, root / "fake-experiment"):
        path.chmod(0o777)
    with as_nobody():
        (root / "fake-experiment" / "results.json").read_bytes()
        assert redtail.run(source, out=root, replications=2).reused == 4
    hidden = root / "fake-experiment" / min(stored(root))
    owner = hidden.stat().st_uid
    hidden.chmod(0)
    os.chown(hidden, 0, 0)
    told = r"cannot be read: Permission denied \(.* belongs to root, and this is nobody\)"
    with as_nobody(), pytest.raises(StoreError, match=told):
        redtail.run(source, out=root, replications=2)
    with as_nobody():
        (finding,) = runs.verify(root / "fake-experiment")
        assert (finding.path, finding.kind) == (hidden, "refused")
    os.chown(hidden, owner, owner)
    hidden.chmod(0o755)
    assert redtail.run(source, out=root, replications=2).reused == 8


@two_users
def test_a_read_only_store_can_be_looked_at_and_says_that_it_cannot_be_cleaned(
    fake: FakeNative, fake_file: Path, shared: Path
) -> None:
    root = shared / "runs"
    redtail.run(redtail.Toml(fake_file.read_text()), out=root, replications=1)
    folder = root / "fake-experiment"
    victim = folder / min(stored(root))
    (victim / "summary.parquet").write_bytes(b"PAR1")
    before = contents(root)
    with as_nobody(), warnings.catch_warnings():
        assert [each.kind for each in runs.verify(folder)] == ["damaged"]
        assert len(runs.clean(folder).removals) == 1
        with pytest.raises(StoreError, match=r"cannot be removed: Permission denied.*root"):
            runs.clean(folder, yes=True)
    assert contents(root) == before
