"""Snapshots of machines: only whole ones are used, and nothing of others is removed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from redtail.backends.virtual import kernels, snapshots
from redtail.errors import RedtailWarning, RunError, StoreError
from redtail.store import writing

A, B, C, D = (letter * 64 for letter in "abcd")


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("REDTAIL_KERNELS", str(tmp_path / "mine" / "kernels"))
    monkeypatch.setattr(snapshots, "_FOUND", {})
    return tmp_path / "caches" / "redtail" / "snapshots"


def making(content: bytes, made: list[bytes] | None = None) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(content)
        if made is not None:
            made.append(content)

    return make


def names(room: Path) -> list[str]:
    return sorted(path.name for path in room.iterdir() if path.name != ".lock")


def test_a_snapshot_is_made_once(room: Path) -> None:
    made: list[bytes] = []
    for _ in range(3):
        path = snapshots.get(A, making(b"state", made))
        assert path.read_bytes() == b"state" and path.parent == room
        snapshots._FOUND.clear()  # as in another process
    assert made == [b"state"]
    assert names(room) == [f"snapshot-{A}.json", f"snapshot-{A}.state"]


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (b"stat", "it has 4 bytes of 5"),
        (b"stbte", "its content was altered"),
        (b"", "it has 0 bytes of 5"),
    ],
)
def test_a_damaged_snapshot_is_named_and_made_again(room: Path, damaged: bytes, why: str) -> None:
    path = snapshots.get(A, making(b"state"))
    path.write_bytes(damaged)
    with pytest.warns(RedtailWarning, match=rf"snapshot {path} is damaged \({why}\)"):
        again = snapshots.get(A, making(b"new state"))
    assert again == path and path.read_bytes() == b"new state"
    assert snapshots.get(A, making(b"never")).read_bytes() == b"new state"


def test_a_change_is_noticed_also_in_a_process_that_has_used_it(room: Path) -> None:
    path = snapshots.get(A, making(b"state"))
    before = path.stat()
    with path.open("r+b") as file:  # the same size, and the same time
        file.write(b"X")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.warns(RedtailWarning, match="its content was altered"):
        assert snapshots.get(A, making(b"again")).read_bytes() == b"again"


def test_an_altered_seal_is_noticed(room: Path) -> None:
    path = snapshots.get(A, making(b"state"))
    seal = path.with_suffix(".json")
    about = json.loads(seal.read_bytes())
    path.write_bytes(b"forge")
    about.update(sha256=snapshots._sha256(path))
    seal.write_text(json.dumps(about, indent=2) + "\n")
    with pytest.warns(RedtailWarning, match=r"its seal .* was altered"):
        assert snapshots.get(A, making(b"again")).read_bytes() == b"again"


def test_a_pipe_in_the_place_of_a_seal_is_not_waited_for(room: Path) -> None:
    path = snapshots.get(A, making(b"state"))
    path.with_suffix(".json").unlink()
    os.mkfifo(path.with_suffix(".json"))
    snapshots._FOUND.clear()
    with pytest.warns(RedtailWarning, match=r"its seal .* was altered"):
        assert snapshots.get(A, making(b"again")).read_bytes() == b"again"


def test_a_seal_of_another_snapshot_is_none(room: Path) -> None:
    path, other = snapshots.get(A, making(b"state")), snapshots.get(B, making(b"other"))
    path.write_bytes(other.read_bytes())
    path.with_suffix(".json").write_bytes(other.with_suffix(".json").read_bytes())
    snapshots._FOUND.clear()
    with pytest.warns(RedtailWarning, match="was altered"):
        assert snapshots.get(A, making(b"again")).read_bytes() == b"again"


def test_the_latest_are_kept(room: Path) -> None:
    for number, identity in enumerate((A, B, C)):
        path = snapshots.get(identity, making(identity.encode()))
        os.utime(path, (1000 + number, 1000 + number))
    snapshots._FOUND.clear()
    snapshots.get(A, making(b"never"))  # used again: the latest of the three
    snapshots.get(D, making(b"d"))
    kept = {name.removeprefix("snapshot-")[0] for name in names(room)}
    assert kept == {"a", "c", "d"} and len(names(room)) == 6


def test_files_of_others_are_never_removed(room: Path) -> None:
    """Neither beside the kernels, where snapshots once were, nor among the snapshots."""
    beside = kernels.store().parent / "machines"
    own: list[Path] = []
    for folder in (beside, room):
        folder.mkdir(parents=True)
        for number in range(6):
            own.append(folder / f"virtual-machine-{number}.qcow2")
        own.append(folder / f"snapshot-{'e' * 64}.state")  # without a seal
        own.append(folder / f"snapshot-{'f' * 64}.json")  # a seal that is none
    for path in own:
        path.write_text("mine")
        os.utime(path, (1, 1))
    for identity in (A, B, C, D, "9" * 64):
        snapshots.get(identity, making(b"state"))
    assert all(path.read_text() == "mine" for path in own)


def test_what_has_the_place_of_a_snapshot_is_not_replaced(room: Path, tmp_path: Path) -> None:
    room.mkdir(parents=True)
    place = room / f"snapshot-{A}.state"
    place.write_text("mine")
    with pytest.raises(StoreError, match=r"has no seal .*move it away"):
        snapshots.get(A, making(b"state"))
    assert place.read_text() == "mine"
    place.unlink()
    target = tmp_path / "elsewhere"
    target.write_text("mine")
    place.symlink_to(target)
    with pytest.raises(StoreError, match="is not a file of redtail"):
        snapshots.get(A, making(b"state"))
    assert target.read_text() == "mine"


def test_nothing_is_left_when_it_cannot_be_made(room: Path) -> None:
    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise RunError("no machine")

    with pytest.raises(RunError, match="no machine"):
        snapshots.get(A, fail)
    assert names(room) == []


def test_what_a_killed_command_left_is_used_or_made_again(room: Path) -> None:
    """A seal without its state is what is left between the two."""
    path = snapshots.get(A, making(b"state"))
    path.unlink()
    assert snapshots.get(A, making(b"again")).read_bytes() == b"again"


def test_leftovers_are_of_this_user_and_have_a_name_of_redtail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [
        tmp_path / name
        for name in (".tmp-cache", ".tmp-redtail-x", ".tmp-redtail-x-other-1-17.bak")
    ]
    left = tmp_path / ".tmp-redtail-x-other-1-17"
    for path in [*old, left]:
        path.write_text("")
        os.utime(path, (1, 1))
    assert writing.leftovers(tmp_path) == [left]
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert writing.leftovers(tmp_path) == []
