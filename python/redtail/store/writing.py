"""How files are written and removed in folders that others share.

A file appears whole, in one step, and never through a link.

Nothing here knows what is in a file.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import platform
import re
import shutil
import stat
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from redtail.errors import StoreError

LEFTOVER = ".tmp-redtail-"
"""The beginning of the names of incomplete files, whose writer is at work or was killed."""

# What `temporary_path` makes: name, machine, process, time.
_TEMPORARY = re.compile(rf"{re.escape(LEFTOVER)}.+-.+-\d+-\d+", re.DOTALL)

_STALE_AFTER_S = 24 * 3600.0


def temporary_path(folder: Path, name: str) -> Path:
    """Return a path in a folder for an incomplete file; no other process has the same path."""
    unique = f"{platform.node()}-{os.getpid()}-{time.monotonic_ns()}"
    return folder / f"{LEFTOVER}{name}-{unique}"


def write_new(path: Path, data: bytes) -> None:
    """Write a file that is not there; where another user has put a link, it is not followed.

    Raises:
        FileExistsError: there is something of this name.
        OSError: it cannot be written.
    """
    with path.open("xb") as file:
        file.write(data)


def put_in_place(path: Path, data: bytes, aside_in: Path | None = None) -> None:
    """Write a file that appears when it is whole, in the place of an older one.

    Args:
        path: of the file.
        data: its content.
        aside_in: the folder in which it is written before, by default its own. Leftovers of killed
            commands are looked for in the folder of the experiment alone.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    aside = temporary_path(aside_in or path.parent, path.name)
    try:
        write_new(aside, data)
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def replace_file(path: Path, data: bytes) -> None:
    """Write a file in a folder of the user, replacing an older one in one step.

    What killed commands left of it goes as well.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f"{glob.escape(f'{LEFTOVER}{path.name}-')}*"):
        if left in leftovers(path.parent):
            with contextlib.suppress(OSError):
                left.unlink()
    put_in_place(path, data)


def is_temporary(name: str) -> bool:
    """Return whether a name is one that `temporary_path` makes.

    >>> is_temporary(temporary_path(Path(), "results.json").name), is_temporary(".tmp-notes")
    (True, False)
    """
    return _TEMPORARY.fullmatch(name) is not None


def leftovers(folder: Path, now: float | None = None) -> list[Path]:
    """Return what killed processes left, without what a live process is writing.

    It is what has a name of `temporary_path` and belongs to this user.

    Args:
        folder: of the experiment.
        now: the time by the clock of the file system, by default found out by a folder that is made
            there and removed again.
    """
    found = []
    known = [path for path in sorted(folder.glob(f"{LEFTOVER}*")) if is_temporary(path.name)]
    if known and now is None:
        now = _clock(folder)
    for path in known:
        assert now is not None
        ours = re.search(rf"-{re.escape(platform.node())}-(\d+)-\d+$", path.name)
        with contextlib.suppress(OSError):
            there = path.lstat()
            if hasattr(os, "geteuid") and there.st_uid != os.geteuid():
                continue
            # Of another machine's processes nothing is known, only how long ago they wrote.
            if (
                not _alive(int(ours.group(1)))
                if ours is not None
                else now - there.st_mtime > _STALE_AFTER_S
            ):
                found.append(path)
    return found


def _clock(folder: Path) -> float:
    """Return the time by the clock of a folder's file system.

    A clock of this machine that is wrong, or is set while a command runs, then does not count where
    other machines write too. It is asked if nothing can be written there.
    """
    probe = temporary_path(folder, "probe")
    try:
        probe.mkdir()
    except OSError:
        return time.time()
    now = probe.stat().st_mtime
    probe.rmdir()
    return now


def refuse_planted(path: Path) -> None:
    """Refuse a path on which another user has put a link where everybody may.

    Raises:
        StoreError: a part of it is a symbolic link of another user, in a folder in which all users
            can write.
    """
    if not hasattr(os, "geteuid"):
        return
    whole = path.absolute()
    for part in (whole, *whole.parents):
        with contextlib.suppress(OSError):
            its = part.lstat()
            planted = stat.S_ISLNK(its.st_mode) and its.st_uid not in (0, os.geteuid())
            if planted and part.parent.stat().st_mode & stat.S_IWOTH:
                raise StoreError(
                    f"{part}: is a symbolic link of {user_name(its.st_uid)} in a folder in which "
                    "all users can write, and is not followed; choose another folder with --out DIR"
                )


def make_own(folder: Path, use: str, setting: str) -> None:
    """Make a folder for this user alone, unless it is there and is one.

    Args:
        folder: what is in it counts as what this user has put there.
        use: what it is for, as a part of a message.
        setting: what chooses another folder.

    Raises:
        StoreError: it is another user's, all users can write in it, or it cannot be made.
    """
    with explain_write_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    if not hasattr(os, "geteuid"):
        return
    reason = ""
    if about.st_uid != os.geteuid():
        reason = f"belongs to {user_name(about.st_uid)}, not to {user_name(os.geteuid())}"
    elif not stat.S_ISLNK(about.st_mode) and about.st_mode & stat.S_IWOTH:
        reason = "can be written by all users"
    if reason:
        raise StoreError(f"{folder}: {use} and {reason}; {setting} chooses another folder")


def make_inside(folder: Path) -> None:
    """Make a folder of a store, unless it is there.

    Raises:
        StoreError: another user has put a link there.
        OSError: it cannot be made.
    """
    folder.mkdir(exist_ok=True)
    refuse_planted(folder)


def remove(path: Path) -> None:
    """Remove a file or a folder; the folder of a run never holds a part of it.

    Raises:
        OSError: it cannot be removed.
    """
    if path.is_dir() and not path.is_symlink():
        aside = path
        if not path.name.startswith(LEFTOVER):
            aside = temporary_path(path.parent, path.name)
            os.rename(path, aside)
        shutil.rmtree(aside)
    else:
        path.unlink()


@contextlib.contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn an operating system's refusal into a message that says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreError(
                f"{path}: cannot write the result: {reason}. Results stored before are whole; "
                "make room and give the same command again, it goes on from there."
            ) from error
        whose = owner(path) if isinstance(error, PermissionError) else ""
        raise StoreError(
            f"{path}: cannot be written: {reason}{whose}; choose a folder with --out DIR"
        ) from error


def owner(path: Path) -> str:
    """Say whose a path is, or what there is of it, when it is not ours."""
    if not hasattr(os, "geteuid"):
        return ""
    for part in (path, *path.parents):
        with contextlib.suppress(OSError):
            its = part.stat().st_uid
            if its == os.geteuid():
                return ""
            return f" ({part} belongs to {user_name(its)}, and this is {user_name(os.geteuid())})"
    return ""


def user_name(number: int) -> str:
    """Return the name of a user, or its number."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


@cache
def machine() -> dict[str, str]:
    """Return what the manifest of a run says of the machine."""
    return {
        "host": platform.node(),
        "platform": platform.platform(),
        "processor": platform.machine(),
        "python": platform.python_version(),
    }


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
