"""Folders that another user shares or prepares: nothing of theirs is followed, read or removed."""

from __future__ import annotations

import os
import platform
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_kills import as_nobody, contents, shared, two_users

import redtail
from redtail.backends.virtual import snapshots
from redtail.display import style
from redtail.errors import StoreError
from redtail.running import watching
from redtail.store import format, objects, runs, writing

from fake_native import FakeNative

__all__ = ["shared"]

pytestmark = two_users

NOBODY = 65534


@pytest.fixture
def sticky(shared: Path) -> Iterator[Path]:
    """A folder like /tmp."""
    folder = shared / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    yield folder


@pytest.fixture
def precious(shared: Path) -> Path:
    """What belongs to the user at work, and is to stay as it is."""
    folder = shared / "precious"
    folder.mkdir()
    for name in ("results.json", "queue_length.png", "a.parquet"):
        (folder / name).write_text("mine")
    return folder


def planted(path: Path, target: Path) -> None:
    """Another user puts a link there."""
    path.symlink_to(target)
    os.lchown(path, NOBODY, NOBODY)


def test_a_link_in_the_place_of_a_store_or_an_experiment_is_not_followed(
    fake: FakeNative, fake_file: Path, sticky: Path, precious: Path
) -> None:
    before = contents(precious)
    planted(sticky / "runs", precious)
    told = r"is a symbolic link of nobody in a folder in which all users can write"
    with pytest.raises(StoreError, match=f"runs: {told}.*--out DIR"):
        redtail.run(fake_file, out=sticky / "runs")
    shared_runs = sticky / "shared"
    shared_runs.mkdir()
    shared_runs.chmod(0o777)
    planted(shared_runs / "fake-experiment", precious)
    with pytest.raises(StoreError, match=f"fake-experiment: {told}"):
        redtail.run(fake_file, out=shared_runs)
    assert contents(precious) == before
    assert fake.ran == []


def test_links_of_this_user_and_of_root_are_followed(
    fake: FakeNative, fake_file: Path, sticky: Path, precious: Path
) -> None:
    (sticky / "runs").symlink_to(precious)
    assert redtail.run(fake_file, out=sticky / "runs", replications=1).run_count == 4
    assert (precious / "fake-experiment" / "results.json").exists()


@pytest.mark.parametrize("name", [".lock", ".lock-results"])
def test_a_lock_that_is_a_link_makes_no_file_elsewhere(
    fake: FakeNative, fake_file: Path, shared: Path, name: str
) -> None:
    folder = shared / "runs" / "fake-experiment"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    planted(folder / name, shared / "made")
    with pytest.raises(StoreError, match=rf"{name}: is a symbolic link, and is not followed"):
        redtail.run(fake_file, out=shared / "runs", replications=1)
    assert not (shared / "made").exists()


def test_files_take_the_place_of_planted_links(
    fake: FakeNative, fake_file: Path, shared: Path, precious: Path
) -> None:
    folder = shared / "runs" / "fake-experiment"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    for name in ("cases.parquet", "replications.parquet"):
        planted(folder / name, precious / "a.parquet")
    before = contents(precious)
    redtail.run(fake_file, out=shared / "runs", replications=1)
    assert contents(precious) == before
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    assert list(runs.verify(folder)) == []


def test_figures_take_the_place_of_planted_links(shared: Path, precious: Path) -> None:
    folder = shared / "figures"
    folder.mkdir()
    folder.chmod(0o777)
    planted(folder / "queue_length.png", precious / "queue_length.png")
    figure = style.Figure(figsize=(2, 1))
    figure.subplots().plot([1, 2])
    style.save([("queue_length", figure)], folder)
    assert (precious / "queue_length.png").read_text() == "mine"
    assert (folder / "queue_length.png").read_bytes().startswith(b"\x89PNG")
    assert not (folder / "queue_length.png").is_symlink()
    assert [path.name for path in folder.iterdir()] == ["queue_length.png"]
    planted(shared / "tmp-figures", precious)
    shared.chmod(0o777)
    with pytest.raises(StoreError, match="symbolic link of nobody"):
        style.save([("queue_length", figure)], shared / "tmp-figures")
    assert (precious / "queue_length.png").read_text() == "mine"


def test_a_file_aside_is_made_anew(shared: Path) -> None:
    planted(shared / "aside", shared / "target")
    with pytest.raises(FileExistsError):
        writing.write_new(shared / "aside", b"x")
    assert not (shared / "target").exists()


def test_only_what_this_user_left_and_redtail_named_is_removed(
    fake: FakeNative, fake_file: Path, shared: Path
) -> None:
    """Also by name: `.tmp-redtail-` alone can be anybody's."""
    root = shared / "runs"
    redtail.run(fake_file, out=root, replications=1)
    folder = root / "fake-experiment"
    dead = f"-{platform.node()}-999999999-17"
    ours = folder / f".tmp-redtail-0123456789abcdef{dead}"
    theirs = folder / f".tmp-redtail-fedcba9876543210{dead}"
    named = folder / ".tmp-redtail-notes"
    old = folder / ".tmp-redtail-0000000000000000-another.machine-3-4"
    for path in (ours, theirs, named, old):
        path.mkdir()
        (path / "data").write_text("x")
        os.utime(path, (0, 0))
    for path in (theirs, old):
        os.chown(path, NOBODY, NOBODY)
    assert writing.leftovers(folder) == [ours]
    assert [each.path for each in runs.clean(folder).removals] == [ours]
    redtail.run(fake_file, out=root, replications=1)
    assert not ours.exists()
    assert all((path / "data").exists() for path in (theirs, named, old))
    runs.clean(folder, yes=True)
    assert all((path / "data").exists() for path in (theirs, named, old))


def test_the_copy_of_an_object_store_is_this_users_alone(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDTAIL_CACHE", str(shared))
    url = "memory://bucket/runs"
    made = objects.own_copy_of(url)
    assert made == objects.copy_of(url)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert objects.own_copy_of(url) == made
    made.chmod(0o777)
    with pytest.raises(StoreError, match=r"can be written by all users; REDTAIL_CACHE=DIR"):
        objects.own_copy_of(url)
    made.chmod(0o755)
    os.chown(made, NOBODY, NOBODY)
    with pytest.raises(StoreError, match=r"belongs to nobody, not to root"):
        objects.own_copy_of(url)
    made.rmdir()
    planted(made, shared)
    with pytest.raises(StoreError, match=r"belongs to nobody, not to root"):
        objects.own_copy_of(url)


def test_snapshots_of_machines_are_this_users_alone(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QEMU reads them: a seal, which anybody can make, is no reason to trust one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared))
    identity = "0" * 64

    def make(path: Path) -> None:
        path.write_bytes(b"state")

    state = snapshots.get(identity, make)
    assert stat.S_IMODE(state.parent.stat().st_mode) == 0o700
    for path in (*state.parent.iterdir(), state.parent):
        os.chown(path, NOBODY, NOBODY)
    with pytest.raises(StoreError, match=r"belongs to nobody, not to root; XDG_CACHE_HOME=DIR"):
        snapshots.get(identity, make)


def test_the_progress_of_others_is_a_plain_small_file(shared: Path) -> None:
    path = shared / format.PROGRESS
    os.mkfifo(path)
    assert watching.read(shared) is None  # and does not wait for somebody who writes
    path.unlink()
    target = shared / "target"
    target.write_text('{"total": 1, "reused": 0, "done": 1, "failed": 0, "packets": 1, ')
    planted(path, target)
    assert watching.read(shared) is None
    path.unlink()
    path.write_bytes(b" " * (1 << 20) + b"{}")
    assert watching.read(shared) is None


def test_another_user_is_refused_by_a_store_of_this_one(
    fake: FakeNative, fake_file: Path, shared: Path
) -> None:
    """The other way round: what this user makes can be written by nobody else."""
    redtail.run(fake_file, out=shared / "runs", replications=1)
    made = [path for path in (shared / "runs").rglob("*")]
    assert not any(path.stat().st_mode & stat.S_IWOTH for path in made)
    with as_nobody(), pytest.raises(PermissionError):
        (shared / "runs" / "fake-experiment" / "x").write_text("x")
