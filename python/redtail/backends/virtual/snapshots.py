"""Snapshots of virtual machines that wait for a request, kept between commands.

    snapshots/snapshot-IDENTITY.state     what QEMU wrote
              snapshot-IDENTITY.json      its seal: the identity, and size and SHA-256 of the state

They are in `redtail/snapshots` in the folder of caches, where nothing else is. A state is used if
it is what its seal says, and made again if it is not. Only a state that has a seal is ever removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from redtail.errors import RedtailWarning, StoreError
from redtail.files import caches, is_plain, plain_bytes
from redtail.store import format, sealing, writing

KEPT = 3
"""Snapshots that are kept; others go when a new one is made. They take 100 MB each."""

_SEAL = re.compile(r"snapshot-([0-9a-f]{64})\.json")
_LARGEST_SEAL = 4096
_FORMAT = 1

_MAKING = threading.Lock()
# What was found right in this process: the path, and what the file system says of the file.
_FOUND: dict[Path, tuple[int, ...]] = {}


def folder() -> Path:
    """Return where snapshots are kept."""
    return caches() / "snapshots"


def get(identity: str, make: Callable[[Path], None]) -> Path:
    """Return the state of a machine, made if there is none that is whole.

    Args:
        identity: a SHA-256 in hexadecimal of all that the state is made from.
        make: writes the state to a path in the same folder.

    Raises:
        StoreError: the folder cannot be written, or has a state without its seal.
        Exception: as `make`.
    """
    room = folder()
    state, seal = room / f"snapshot-{identity}.state", room / f"snapshot-{identity}.json"
    # QEMU reads them. Anybody can make a seal, so they have to be this user's.
    writing.make_own(room, "is to hold snapshots of virtual machines", "XDG_CACHE_HOME=DIR")
    with _MAKING:
        if not _wrong(state, seal, identity):
            return state
        with _alone(room):
            # Another command may have made it since.
            reason = _wrong(state, seal, identity)
            if not reason:
                return state
            if reason != _MISSING:
                text = f"the snapshot {state} is damaged ({reason}) and is made again"
                warnings.warn(text, RedtailWarning, stacklevel=2)
            aside = writing.temporary_path(room, state.name)
            try:
                make(aside)
                with writing.explain_write_errors(state):
                    # The seal first: a state that has none is not redtail's.
                    writing.replace_file(seal, sealing.sealed(_about(identity, aside)))
                    os.replace(aside, state)
            finally:
                aside.unlink(missing_ok=True)
            _FOUND[state] = _stat(state)
            _prune(room, state)
    return state


@contextlib.contextmanager
def _alone(room: Path) -> Iterator[None]:
    """Wait until no other command makes a snapshot."""
    import fcntl

    with writing.explain_write_errors(room):
        lock = os.open(room / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


_MISSING = "it is missing"


def _wrong(state: Path, seal: Path, identity: str) -> str:
    """Return what is wrong with a state; nothing if it is what its seal says."""
    if state.is_symlink() or (state.exists() and not state.is_file()):
        raise StoreError(f"{state}: is not a file of redtail; move it away")
    if not state.exists():
        return _MISSING
    if not seal.exists():
        raise StoreError(f"{state}: has no seal {seal.name}, so it is not redtail's; move it away")
    if _FOUND.get(state) == _stat(state):
        return ""
    about = _sealed(seal)
    if about is None or about.get("identity") != identity:
        return f"its seal {seal.name} was altered"
    size = state.stat().st_size
    if size != about["bytes"]:
        return f"it has {size} bytes of {about['bytes']}"
    if _sha256(state) != about["sha256"]:
        return "its content was altered"
    with contextlib.suppress(OSError):
        os.utime(state)  # the ones that were used last are kept
    _FOUND[state] = _stat(state)
    return ""


def _about(identity: str, state: Path) -> dict[str, object]:
    size, digest = state.stat().st_size, _sha256(state)
    return {"format": _FORMAT, "identity": identity, "bytes": size, "sha256": digest}


def _sealed(path: Path) -> dict[str, object] | None:
    """Return what a seal says, None if it is none."""
    try:
        if not is_plain(path):
            return None
        data = plain_bytes(path, _LARGEST_SEAL)
        about = json.loads(data)
        whole = sealing.is_sealed(data, about) and about["format"] == _FORMAT
    except (*format.MALFORMED, OSError):
        return None
    return about if whole else None


def _prune(room: Path, newest: Path) -> None:
    """Remove all but the latest states, as far as they have seals of redtail."""
    states = []
    for seal in room.iterdir():
        named = _SEAL.fullmatch(seal.name)
        about = _sealed(seal) if named else None
        state = seal.with_suffix(".state")
        if named and about and about["identity"] == named[1] and state != newest:
            with contextlib.suppress(OSError):
                used = os.lstat(state).st_mtime_ns if state.exists() else 0
                states.append((used, state, seal))
    for _, state, seal in sorted(states)[: -KEPT + 1]:
        with contextlib.suppress(OSError):
            state.unlink(missing_ok=True)
            seal.unlink(missing_ok=True)


def _stat(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
