"""The layout of stored results: names of folders and files, and the keys of runs."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from redtail.errors import StoreError
from redtail.files import plain_bytes
from redtail.store.locks import LOCK, LOCK_RESULTS
from redtail.store.writing import owner

FORMAT = 2
"""Version of the folder's layout, higher when a reader of the old one would misread the new.

2 has a checksum of the manifest itself, which every later format must keep: it shows whether
an unknown format number is a newer format or damage. 1 has none and is read all the same.
"""

READABLE = (1, 2)
"""The formats that are read."""

RUN_NAME = re.compile(r"[0-9a-f]{16}")
"""The form of the name of a run's folder."""

FAILED = "failed"
"""The folder of the logs of runs that failed."""

_OF_BACKEND = "@"

EXPERIMENT_FILES = ("experiment.toml", "experiment.json")
"""The names that the experiment's own text may have there: as a file, or of typed objects."""

REPORT = "report.html"
"""The page of `redtail report`."""

REPLAY = "replay.html"
"""The picture of `redtail replay`."""

ADVICE = "advice.json"
"""What `redtail advise` says of its runs, for their page."""

PROGRESS = ".progress.json"
"""How far the campaign at work here is."""

OWN_FILES = (
    "results.json",
    "cases.parquet",
    "replications.parquet",
    *EXPERIMENT_FILES,
    REPORT,
    REPLAY,
    ADVICE,
    PROGRESS,
    LOCK,
    LOCK_RESULTS,
)
"""The files that an experiment's folder has in addition to its runs."""

SERVER_LOG = re.compile(r"server-[1-9]\d*\.log")
"""The form of the names of files with what servers of `redtail shell` printed."""

SEGMENTS = "segments"
"""The folder of runs that are kept many to a file (see `segments`)."""

OWN_FOLDERS = ("figures", FAILED, SEGMENTS)
"""The folders that it has in addition to its runs."""

RUN_FILES = re.compile(r"(manifest|scenario)\.json|[a-z_]+\.parquet")
"""The form of the names of a run's files."""

MALFORMED = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
    NotImplementedError,
)
"""Errors that reading a damaged file raises; Arrow's errors are among these."""

# What the files that every run has always contain.
_MARKS = {
    "manifest.json": (b'"code_version"', b'"redtail_version"'),
    "scenario.json": (b'"seed"', b'"replication"'),
}

# File systems take 255 bytes.
_LONGEST_SLUG = 200

NAME_IN_RESULTS = re.compile(rb'"experiment": ("(?:[^"\\]|\\.)*")')

_HASH_DIGITS = 16


class UnreadableError(StoreError):
    """A run exists and may be complete, but this redtail or this user cannot read it.

    It is not run again, since the new one would take the place of what another can read.
    """


def slug(name: str) -> str:
    """Return `name` as the name of a folder.

    A name that a run's folder or one of `OWN_FOLDERS` has is changed: an experiment must not be
    taken for one of them. One with letters beyond a to z gets a hash in their place, so that names
    in Greek do not all have the same folder; so does one that is cut because it is long.

    >>> slug("Tail drop against RED, 64 bulk flows")
    'tail-drop-against-red-64-bulk-flows'
    >>> slug("…")
    'experiment'
    >>> slug("Ουρά"), slug("Ουρά 2")
    ('experiment-a6b4b196', '2-73c73d4e')
    >>> slug("2026112201300000"), slug("Figures")
    ('experiment-2026112201300000', 'experiment-figures')
    """
    found = re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-._") or "experiment"
    cut = found[:_LONGEST_SLUG].strip("-._")
    if cut != found or any(letter.isalnum() and not letter.isascii() for letter in name):
        found = f"{cut}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    taken = RUN_NAME.fullmatch(found) is not None or found in OWN_FOLDERS
    return f"experiment-{found}" if taken else found


def folder_name(name: str, backend: str = "sim") -> str:
    """Return the name of an experiment's folder with the results that a backend made.

    >>> folder_name("Quickstart"), folder_name("Quickstart", "live")
    ('quickstart', 'quickstart@live')
    """
    # No slug has an @, so the folder is that of no other experiment.
    return slug(name) if backend == "sim" else f"{slug(name)}{_OF_BACKEND}{backend}"


def parts_of(folder: str) -> tuple[str, str]:
    """Return what `folder_name` made the name of a folder of.

    >>> parts_of("quickstart"), parts_of("quickstart@live")
    (('quickstart', 'sim'), ('quickstart', 'live'))
    """
    name, _, backend = folder.partition(_OF_BACKEND)
    return name, backend or "sim"


def is_run(folder: Path) -> bool:
    """Return whether a folder is that of a run: has a run's name, and a file that redtail wrote.

    A damaged run is one if its manifest or its scenario can be recognised. A folder that cannot
    be read counts as one, so that it is reported; it is never removed.
    """
    if RUN_NAME.fullmatch(folder.name) is None or folder.is_symlink() or not folder.is_dir():
        return False
    for name, marks in _MARKS.items():
        try:
            data = plain_bytes(folder / name)
        except PermissionError:
            return True
        except (OSError, ValueError):
            continue
        if all(mark in data for mark in marks):
            return True
    return False


def inside(folder: Path, name: str, form: str = "*") -> list[Path]:
    """Return what is in one of `OWN_FOLDERS`, in order; nothing if a link is in its place.

    Args:
        folder: of the experiment.
        name: of the folder in it.
        form: a pattern of the names that are wanted.
    """
    own = folder / name
    return [] if own.is_symlink() else sorted(own.glob(form))


def refuse_link(path: Path) -> None:
    """Refuse a link in the place of one of `OWN_FOLDERS`: what is written there would be elsewhere.

    Raises:
        StoreError: there is one.
    """
    if path.is_symlink():
        raise StoreError(
            f"{path}: is a link, and redtail writes in the experiment's own folder; put a folder "
            "in its place, or choose another with --out DIR"
        )


def figures_of(folder: Path, *inner: str) -> Path:
    """Return the folder of an experiment's figures, or one in it.

    Raises:
        StoreError: a link is in its place.
    """
    path = folder / "figures"
    refuse_link(path)
    for name in inner:
        path /= name
        refuse_link(path)
    return path


def run_key(scenario: str, code_version: str, backend: str = "sim") -> str:
    """Return the name under which a run is stored.

    >>> run_key("{}", "abc") == run_key("{}", "abc", "sim") != run_key("{}", "abd")
    True
    """
    (key,) = run_keys([scenario], code_version, backend)
    return key


def run_keys(scenarios: Iterable[str], code_version: str, backend: str) -> list[str]:
    """Return the names under which runs are stored."""
    # The parts are separated by a byte that none of them can contain.
    common = hashlib.sha256(f"{backend}\0{code_version}\0".encode())
    keys = []
    for scenario in scenarios:
        whole = common.copy()
        whole.update(scenario.encode())
        keys.append(whole.hexdigest()[:_HASH_DIGITS])
    return keys


def brief(error: Exception) -> str:
    """Return the first line of what an error says, without the folder of a file."""
    if isinstance(error, OSError):
        return f"{Path(error.filename or '').name}: {error.strerror}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


@contextlib.contextmanager
def explain_read_errors(folder: Path) -> Iterator[None]:
    """Turn every error of reading a run into one of two errors."""
    try:
        yield
    except PermissionError as error:
        raise UnreadableError(
            f"{folder}: the stored run cannot be read: {error.strerror}{owner(folder)}; "
            "ask for the right to read it, or choose another folder with --out DIR"
        ) from error
    except MALFORMED as error:
        raise StoreError(f"{folder}: the stored run is damaged: {brief(error)}") from error


def segment_name(data: bytes) -> str:
    """Return the name of a segment with this content."""
    return hashlib.sha256(data).hexdigest()[:_HASH_DIGITS]
