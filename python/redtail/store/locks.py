"""The locks of an experiment's folder: campaigns share one, cleaning has it alone.

Nothing here knows what is in the folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from redtail.errors import StoreError
from redtail.store.writing import LEFTOVER, explain_write_errors, leftovers

try:
    import fcntl

    _LOCKS = True
except ImportError:  # on Windows; there process numbers alone show what is a leftover
    _LOCKS = False


# A lock is no link to a file elsewhere, and no pipe that nobody writes to.
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

LOCK = ".lock"
LOCK_RESULTS = ".lock-results"


@contextlib.contextmanager
def cleaning(folder: Path) -> Iterator[bool]:
    """Lock an experiment's folder against campaigns; false when one is at work there.

    Raises:
        StoreError: the folder cannot be written.
    """
    with explain_write_errors(folder):
        lock = lock_file(folder / LOCK)
    try:
        free = True
        if lock is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                free = False
            except OSError:  # a file system without locks: process numbers are used
                free = not any(set(folder.glob(f"{LEFTOVER}*")) - set(leftovers(folder)))
        yield free
    finally:
        unlock(lock)


def in_use(folder: Path) -> bool:
    """Return whether a campaign is at work in an experiment's folder, as far as this is known."""
    try:
        lock = os.open(folder / LOCK, os.O_RDONLY | _PLAIN)
    except OSError:
        return False
    try:
        if _LOCKS:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return False


def lock_file(path: Path) -> int | None:
    """Open a file to lock it; None where there are no locks."""
    if not _LOCKS:
        return None
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | _PLAIN, 0o666)
    except PermissionError:
        # Another user's, which can be locked all the same.
        return os.open(path, os.O_RDONLY | _PLAIN)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise StoreError(
            f"{path}: is a symbolic link, and is not followed; remove it, or choose another folder "
            "with --out DIR"
        ) from None


def unlock(lock: int | None) -> None:
    """Let a lock go."""
    if lock is not None:
        os.close(lock)


def lock_shared(path: Path) -> tuple[int | None, bool]:
    """Lock a folder in common with the other processes that use it.

    Returns:
        What holds the lock, and whether no other process uses the folder: then it is held alone.
    """
    lock = lock_file(path)
    if lock is None:
        return None, True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock, True
    except BlockingIOError:
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock, False
    except OSError:  # a file system without locks
        os.close(lock)
        return None, True
