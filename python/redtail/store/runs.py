"""The contents of the store: list, show, verify and clean them.

An experiment is any folder below the store's that has runs or a `results.json`; those of a
reproduced paper stand deeper than others. A run is *in the results* when `results.json` refers to
it. Runs of variants (`--set`), of earlier versions of the file and of other code are not; they
are kept for the command that made them until `gc` is asked to remove them.

What is wrong comes in these kinds:

    damaged     something is missing or altered; it would be made again
    refused     of another format, or of another user who does not permit reading it
    unfinished  left by a process that was killed while it wrote
    foreign     nothing that redtail wrote, or a run under the name of another
    missing     `results.json` refers to a run that is not there
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redtail import metrics as names
from redtail.errors import StoreError
from redtail.files import is_plain, plain_bytes
from redtail.store import folders as store
from redtail.store import format, locks, objects, programs, sealing, segments, writing
from redtail.store.format import (
    FAILED,
    MALFORMED,
    OWN_FILES,
    OWN_FOLDERS,
    RUN_FILES,
    RUN_NAME,
    SEGMENTS,
    SERVER_LOG,
    UnreadableError,
)
from redtail.store.index import read_index

CALIBRATIONS = "calibrations"
"""The experiment with the runs of every search for a load; no `results.json` names them."""

_AGAIN = "give its `redtail run` command again"
_REMOVE = "remove it with `redtail runs gc --yes`"

_KEY_AT_LEAST = 4

# What redtail writes into the folder of segments, and removes from it.
_SEGMENT_NAME = re.compile(rf"{RUN_NAME.pattern}\.(parquet|damaged)")


@dataclass(frozen=True)
class Finding:
    """Something that is wrong in the store.

    Attributes:
        path: what it is about.
        kind: "damaged", "refused", "unfinished", "foreign" or "missing".
        what: what is wrong with it.
        advice: what to do.
    """

    path: Path
    kind: str
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}: {self.kind}: {self.what}; {self.advice}"


@dataclass(frozen=True)
class Removal:
    """Something that cleaning removes.

    Attributes:
        path: the file or folder.
        why: in a few words.
        size: bytes; of some runs of a segment, their share of it.
        runs: those that are taken out of a segment, None when all of it goes.
    """

    path: Path
    why: str
    size: int
    runs: frozenset[str] | None = None


@dataclass
class Cleaning:
    """What cleaning removes, or removed.

    Attributes:
        removals: what.
        kept: lines about what was left alone and why.
        removed: whether it is gone.
    """

    removals: list[Removal] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    removed: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(each.size for each in self.removals)


@dataclass(frozen=True)
class Experiment:
    """A summary of an experiment's folder.

    Attributes:
        folder: where.
        name: its path below the store.
        runs: how many there are, damaged ones included.
        in_results: how many of them `results.json` refers to.
        size: bytes of everything in the folder.
        newest: when the newest run was made, by the clock of its machine; None without one.
        versions: how many runs are of which version of the code.
        failed: how many runs have a log of their failure.
        in_use: whether a campaign is at work here.
    """

    folder: Path
    name: str
    runs: int
    in_results: int
    size: int
    newest: str | None
    versions: dict[str, int]
    failed: int
    in_use: bool

    def as_json(self) -> dict[str, Any]:
        """Return what `redtail runs list --json` prints of it."""
        return {
            "experiment": self.name,
            "folder": str(self.folder),
            "runs": self.runs,
            "in_results": self.in_results,
            "bytes": self.size,
            "newest": self.newest,
            "code_versions": self.versions,
            "failed": self.failed,
            "in_use": self.in_use,
        }


def folders(root: Path) -> list[Path]:
    """Return the folders of all experiments below a folder, or that folder if it is one.

    Raises:
        StoreError: there is no such folder, or it cannot be read.
    """
    if not root.is_dir():
        raise StoreError(f"{root}: there is no such folder; name the store with --out DIR")
    return sorted(_walk(root))


def listing(root: Path) -> list[Experiment]:
    """Return a summary of all experiments; errors as for `folders`."""
    return [summary_of(root, folder) for folder in folders(root)]


def summary_of(root: Path, folder: Path) -> Experiment:
    """Return a summary of one experiment."""
    keys = run_names(folder)
    newest = None
    versions: dict[str, int] = {}
    for key in keys:
        # Not read_manifest: what cannot be relied on can still be counted.
        with contextlib.suppress(*MALFORMED):
            manifest = json.loads((folder / key / "manifest.json").read_bytes())
            version = str(manifest["code_version"])
            versions[version] = versions.get(version, 0) + 1
            newest = max(newest or "", str(manifest["created"]))
    known = set(keys)
    for path in _segments(folder):
        with contextlib.suppress(StoreError):
            scenarios, common, latest = segments.runs_of(path)
            known |= scenarios.keys()
            version = str(common["code_version"])
            versions[version] = versions.get(version, 0) + len(scenarios)
            newest = max(newest or "", latest)
    referred = referred_to(folder) or {}
    return Experiment(
        folder=folder,
        name=_name(root, folder),
        runs=len(known),
        in_results=len(referred.keys() & known),
        size=size_of(folder, nested=False),
        newest=newest,
        versions=versions,
        failed=len(format.inside(folder, FAILED, "*.log")),
        in_use=locks.in_use(folder),
    )


def find(root: Path, text: str) -> Path:
    """Return the folder of a run or of an experiment.

    That of a run in a segment is the one it would have.

    Args:
        root: the store.
        text: an experiment's name; or the beginning of a run's key, with the experiment's name
            and a slash in front if need be.

    Raises:
        StoreError: nothing fits, or too much.
    """
    known = folders(root)
    wanted = text.rstrip("/")
    for folder in known:
        if wanted in (_name(root, folder), str(folder)) or format.slug(wanted) == folder.name:
            return folder
    within, _, key = wanted.rpartition("/")
    found = []
    unread: list[Path] = []
    if len(key) >= _KEY_AT_LEAST:
        found = [
            folder / name
            for folder in known
            if not within or within in (_name(root, folder), str(folder))
            for name in all_names(folder, unread)
            if name.startswith(key)
        ]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(str(path) for path in found[:5])
        raise StoreError(f"{len(found)} runs in {root} begin with {text!r}: {listed}")
    names = ", ".join(_name(root, folder) for folder in known) or "none"
    raise StoreError(
        f"there is no run and no experiment {text!r} in {root}; the experiments are: {names} "
        f"(of a run's key at least {_KEY_AT_LEAST} digits are wanted)"
        + (f"; {unread[0]} cannot be read, see `redtail runs verify`" if unread else "")
    )


def find_there(url: str, text: str) -> str:
    """Return the name of an experiment with results in an object store.

    Args:
        url: of the store.
        text: the experiment's name, or that of its folder.

    Raises:
        StoreError: there is none, or the store cannot be read.
    """
    known = sorted(
        name.removesuffix("/results.json")
        for name in objects.Objects(url).there
        if name.endswith("/results.json")
    )
    wanted = text.rstrip("/")
    for name in known:
        if wanted == name or format.slug(wanted) == name.rpartition("/")[2]:
            return name
    listed = ", ".join(known) or "none"
    raise StoreError(
        f"{text}: there are no results of this name in {url}; the experiments are: {listed}"
    )


def is_run(folder: Path) -> bool:
    """Return whether a folder, as `find` returns it, is that of a run."""
    if folder.is_dir():
        return format.is_run(folder)
    return RUN_NAME.fullmatch(folder.name) is not None  # in a segment


def show(root: Path, folder: Path) -> dict[str, Any]:
    """Return all that is known about a run or an experiment, for JSON.

    Raises:
        StoreError: it is damaged or cannot be read.
    """
    if not is_run(folder):
        referred = referred_to(folder) or {}
        return {
            "format": 1,
            **summary_of(root, folder).as_json(),
            "results": referred,
            "others": [key for key in all_names(folder) if key not in referred],
            "failures": {
                log.stem: _first_line(log) for log in format.inside(folder, FAILED, "*.log")
            },
        }
    segment = _segment_of(folder)
    if segment is not None:
        run, scenario = segments.run_of(segment, folder.name)
    else:
        run = store.read_run(folder)
        scenario = plain_bytes(folder / "scenario.json").decode()
    return {
        "format": 1,
        "run": run.key,
        "experiment": _name(root, folder.parent),
        **({"folder": str(folder)} if segment is None else {"segment": str(segment)}),
        "in_results": (referred_to(folder.parent) or {}).get(run.key),
        "manifest": run.manifest,
        "metrics": run.metrics,
        "programs": [each.text for each in programs.read(folder)],
        "scenario": json.loads(scenario),
    }


def _first_line(log: Path) -> str:
    try:
        return plain_bytes(log).decode(errors="replace").partition("\n")[0]
    except (OSError, ValueError) as error:
        return f"cannot be read: {format.brief(error)}"


def text(shown: dict[str, Any]) -> str:
    """Return what `show` returned, as text for a person."""
    if "run" not in shown:
        lines = [
            f"experiment {shown['experiment']} in {shown['folder']}/",
            f"{names.counted(shown['runs'], 'run')}, {shown['in_results']} of them in the results, "
            f"{shown_size(shown['bytes'])}, newest {shown['newest'] or '-'}",
            *(
                f"code {version}: {names.counted(count, 'run')}"
                for version, count in shown["code_versions"].items()
            ),
        ]
        for title, runs in (
            ("in the results", shown["results"]),
            ("not in the results", dict.fromkeys(shown["others"], "")),
            (f"failed (logs in {FAILED}/)", shown["failures"]),
        ):
            if runs:
                lines += [
                    f"{title}:",
                    *(f"  {key}  {about}".rstrip() for key, about in runs.items()),
                ]
        return "\n".join(lines)
    manifest = {key: value for key, value in shown["manifest"].items() if key != "files"}
    files = shown["manifest"].get("files", {})
    where = shown["segment"] if "segment" in shown else f"{shown['folder']}/"
    width = max(map(len, shown["metrics"]), default=0)
    return "\n".join(
        [
            f"run {shown['run']} of {shown['experiment']} in {where}",
            f"in the results: {shown['in_results'] or 'no'}",
            "manifest:",
            *(f"  {key}: {value}" for key, value in manifest.items()),
            *(["files:"] if files else []),
            *(f"  {name}: {shown_size(about['bytes'])}" for name, about in files.items()),
            *(["programs:"] if shown["programs"] else []),
            *(f"  {program}" for program in shown["programs"]),
            "metrics:",
            *(
                f"  {metric:<{width}}  {value:.6g} {_unit(metric)}".rstrip()
                for metric, value in shown["metrics"].items()
            ),
            "scenario:",
            json.dumps(shown["scenario"], indent=2, ensure_ascii=False),
        ]
    )


def verify(folder: Path) -> Iterator[Finding]:
    """Check everything in an experiment's folder that can be checked.

    What a campaign that is at work here has not finished is not reported.
    """
    with _refused(folder):
        entries = sorted(folder.iterdir())
        left = set(writing.leftovers(folder, time.time()))
        used = locks.in_use(folder)
        keys = set(run_names(folder))
        for path in entries:
            if path.name.startswith(writing.LEFTOVER) and writing.is_temporary(path.name):
                if path in left and not used:
                    what = "left by a process that died while it wrote"
                    yield Finding(path, "unfinished", what, _REMOVE)
            elif path.name in keys:
                yield from verify_run(path)
            elif not _belongs(path):
                yield _foreign(path)
        for path in format.inside(folder, SEGMENTS):
            if not _SEGMENT_NAME.fullmatch(path.name) or not is_plain(path):
                yield _foreign(path)
            elif path.suffix == ".damaged":
                what = "a segment found damaged before; its runs were made again"
                yield Finding(path, "damaged", what, _REMOVE)
            else:
                yield from _verify_segment(path, keys)
        if not (folder / "figures").is_symlink():
            for path in sorted((folder / "figures").rglob("*")):
                if not is_plain(path) and (path.is_symlink() or not path.is_dir()):
                    yield _foreign(path)
        if not used:
            yield from _verify_results(folder, keys)
        for log in format.inside(folder, FAILED):
            if not (log.suffix == ".log" and RUN_NAME.fullmatch(log.stem) and is_plain(log)):
                yield _foreign(log)


def verify_run(folder: Path) -> Iterator[Finding]:
    """Check a run: its files, its manifest, and that it is the run it is named after.

    Of a run in a segment the whole segment is checked.
    """
    segment = _segment_of(folder)
    if segment is not None:
        yield from _verify_segment(segment, set())
        return
    try:
        manifest = store.read_manifest(folder)
    except UnreadableError as error:
        what, _, advice = str(error).removeprefix(f"{folder}: ").partition("; ")
        yield Finding(folder, "refused", what, advice)
        return
    except StoreError as error:
        yield _damaged(folder, error)
        return
    whole = True
    for name, expected in manifest["files"].items():
        wrong = _wrong(folder / name, expected)
        if wrong:
            whole = False
            yield Finding(folder / name, "damaged", wrong, f"{_REMOVE}, or {_AGAIN}")
    known = {*manifest["files"], "manifest.json"}
    for path in sorted(folder.iterdir()):
        if path.name not in known or not is_plain(path):
            yield _foreign(path)
    if not whole:
        return
    try:
        key = store.key_of(folder, manifest)
    except StoreError as error:
        yield _damaged(folder, error)
        return
    if key != folder.name:
        yield Finding(
            folder,
            "foreign",
            f"by its scenario, backend and code version it is the run {key}",
            f"rename it to {key} if that is not there, or {_REMOVE}",
        )
        return
    try:
        store.read_run(folder)
    except StoreError as error:
        yield _damaged(folder, error)


def _damaged(folder: Path, error: StoreError) -> Finding:
    what = str(error).removeprefix(f"{folder}: the stored run is damaged: ")
    return Finding(folder, "damaged", what, f"{_REMOVE}, or {_AGAIN}")


def _verify_segment(path: Path, keys: set[str]) -> Iterator[Finding]:
    """Check a segment, and add the names of its runs to `keys`."""
    try:
        keys.update(segments.runs_of(path)[0])
    except segments.DamagedError as error:
        what = str(error).removeprefix(f"{path}: ")
        yield Finding(path, "damaged", what, f"{_REMOVE}, or {_AGAIN}")
    except StoreError as error:
        what = str(error).removeprefix(f"{path}: ")
        yield Finding(path, "refused", what, "use the redtail that wrote it, or ask its owner")


def clean(
    folder: Path,
    *,
    code_version: str | None = None,
    unreferenced: bool = False,
    yes: bool = False,
) -> Cleaning:
    """Remove useless files from an experiment's folder.

    That is what killed processes left, damaged runs, and logs of failures of runs that were made
    since. A whole run that `results.json` refers to is never removed, and nothing foreign.

    Args:
        folder: of the experiment.
        code_version: remove runs of any other version of the code that are not in the results.
        unreferenced: remove all runs that are not in the results.
        yes: remove; otherwise only say what would be removed.

    Raises:
        StoreError: something cannot be removed.
    """
    if not yes:
        with _refused(folder):
            now = time.time()  # nothing is written there
            found = _rubbish(folder, code_version, unreferenced, writing.leftovers(folder, now))
        if locks.in_use(folder):
            found.kept.append(f"{folder}: a campaign is at work here, nothing would be removed now")
        return found
    with locks.cleaning(folder) as free:
        if not free:
            return Cleaning(kept=[f"{folder}: a campaign is at work here, nothing is removed"])
        with _refused(folder):
            found = _rubbish(folder, code_version, unreferenced, writing.leftovers(folder))
        for each in found.removals:
            try:
                if each.runs is None:
                    writing.remove(each.path)
                else:
                    segments.take_out(each.path, each.runs)
            except OSError as error:
                raise StoreError(
                    f"{each.path}: cannot be removed: {error.strerror or error}"
                    f"{writing.owner(each.path.parent)}"
                ) from error
        found.removed = True
        return found


def _rubbish(
    folder: Path, code_version: str | None, unreferenced: bool, left: list[Path]
) -> Cleaning:
    found = Cleaning()

    def remove(path: Path, why: str) -> None:
        found.removals.append(Removal(path, why, size_of(path)))

    for path in left:
        remove(path, "unfinished")
    referred = referred_to(folder)
    if folder.name == CALIBRATIONS and not (folder / "results.json").exists():
        unreferenced = False  # one search or another refers to them
        referred = {}
    elif referred is None and (unreferenced or code_version is not None):
        found.kept.append(
            f"{folder}: there is no results.json that can be read, so it is unknown which runs are "
            "in the results; no run is removed for that reason"
        )
    for key in run_names(folder):
        path = folder / key
        problems = list(verify_run(path))
        kinds = {each.kind for each in problems}
        if "refused" in kinds:
            found.kept += map(str, problems)
        elif "damaged" in kinds or any(
            each.kind == "foreign" and each.path == path for each in problems
        ):
            others = [each for each in sorted(path.iterdir()) if not RUN_FILES.fullmatch(each.name)]
            if others:
                found.kept += map(str, [*problems, *map(_foreign, others)])
                continue
            remove(path, "damaged" if "damaged" in kinds else "under the name of another run")
        elif kinds:
            found.kept += map(str, problems)
        elif referred is not None and key not in referred:
            version = store.read_manifest(path)["code_version"]
            if code_version is not None and version != code_version:
                remove(path, f"of other code ({version}), not in the results")
            elif unreferenced:
                remove(path, "not in the results")
    for path in format.inside(folder, SEGMENTS, "*.damaged"):
        if _SEGMENT_NAME.fullmatch(path.name):
            remove(path, "damaged")
    made: set[str] = set()
    for path in _segments(folder):
        try:
            scenarios, common, _ = segments.runs_of(path)
        except segments.DamagedError:
            remove(path, "damaged")
            continue
        except StoreError as error:
            found.kept.append(str(error))
            continue
        made |= scenarios.keys()
        rest = frozenset(scenarios.keys() - referred.keys()) if referred is not None else None
        version = common["code_version"]
        if not rest:
            continue
        if code_version is not None and version != code_version:
            why = f"of other code ({version}), not in the results"
        elif unreferenced:
            why = "not in the results"
        else:
            continue
        if len(rest) == len(scenarios):
            remove(path, f"{names.counted(len(rest), 'run')} {why}")
        else:
            why = f"{len(rest)} of {len(scenarios)} runs {why}"
            share = size_of(path) * len(rest) // len(scenarios)
            found.removals.append(Removal(path, why, share, rest))
    for log in format.inside(folder, FAILED, "*.log"):
        if not RUN_NAME.fullmatch(log.stem):
            continue
        if log.stem in made or (folder / log.stem).is_dir():
            remove(log, "log of a failure; the run was made since")
    return found


def referred_to(folder: Path) -> dict[str, str] | None:
    """Return the runs that an experiment's results consist of, with the case and replication.

    None when there are no results, or none that this redtail can read.
    """
    try:
        return _referred(read_index(folder))
    except (FileNotFoundError, StoreError):
        return None


def _referred(index: dict[str, Any]) -> dict[str, str]:
    return {
        key: ", ".join([*case["labels"].values(), f"replication {replication}"])
        for case in index["cases"]
        for replication, key in case["runs"].items()
    }


def run_names(folder: Path) -> list[str]:
    """Return the names of the runs in an experiment's folder, in order."""
    return sorted(
        entry.name
        for entry in os.scandir(folder)
        if RUN_NAME.fullmatch(entry.name) and format.is_run(Path(entry.path))
    )


def all_names(folder: Path, unread: list[Path] | None = None) -> list[str]:
    """Return the names of all runs of an experiment, those in segments included, in order.

    Args:
        folder: of the experiment.
        unread: takes the segments that cannot be read.
    """
    found = set(run_names(folder))
    for path in _segments(folder):
        try:
            found.update(segments.names_in(path))
        except StoreError:
            if unread is not None:
                unread.append(path)
    return sorted(found)


def _segments(folder: Path) -> list[Path]:
    found = format.inside(folder, SEGMENTS, "*.parquet")
    return [path for path in found if _SEGMENT_NAME.fullmatch(path.name)]


def _segment_of(folder: Path) -> Path | None:
    """Return the segment that a run is in, None when it has a folder or is nowhere."""
    if folder.is_dir():
        return None
    for path in _segments(folder.parent):
        with contextlib.suppress(StoreError):
            if folder.name in segments.names_in(path):
                return path
    return None


def size_of(path: Path, nested: bool = True) -> int:
    """Return the bytes of a file, or of all files below a folder.

    Args:
        path: which.
        nested: count experiments inside, too.
    """
    if not path.is_dir() or path.is_symlink():
        with contextlib.suppress(OSError):
            return path.lstat().st_size
        return 0
    total = 0
    with contextlib.suppress(FileNotFoundError):  # a campaign at work has renamed it
        for entry in os.scandir(path):
            inside = Path(entry.path)
            if nested or not (
                entry.is_dir(follow_symlinks=False) and any(True for _ in _walk(inside))
            ):
                total += size_of(inside)
    return total


def shown_size(size: int) -> str:
    """Return a number of bytes as a person reads it.

    >>> [shown_size(size) for size in (0, 999, 12_345, 4_200_000_000)]
    ['0 B', '999 B', '12.3 kB', '4.2 GB']
    """
    if size < 1000:
        return f"{size} B"
    value = size / 1000
    for unit in ("kB", "MB", "GB"):
        if value < 999.95:
            return f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _verify_results(folder: Path, keys: set[str]) -> Iterator[Finding]:
    path = folder / "results.json"
    try:
        index = read_index(folder)
    except FileNotFoundError:
        return
    except StoreError as error:
        what, _, advice = str(error).removeprefix(f"{path}: ").partition("; ")
        kind = "refused" if isinstance(error, UnreadableError) else "damaged"
        yield Finding(path, kind, what, advice)
        return
    for key, about in _referred(index).items():
        if key not in keys:
            what = f"the results refer to it ({about}), and it does not exist"
            yield Finding(folder / key, "missing", what, _AGAIN)
    for name, expected in index.get("files", {}).items():
        wrong = _wrong(folder / name, expected)
        if wrong:
            yield Finding(folder / name, "damaged", wrong, _AGAIN)
    text = (index.get("provenance") or {}).get("experiment")
    if text is not None:
        wrong = _wrong(folder / text["file"], text)
        if wrong:
            yield Finding(folder / text["file"], "damaged", wrong, _AGAIN)


def _wrong(path: Path, expected: dict[str, Any]) -> str | None:
    """Return what is wrong with a file, None when nothing is."""
    try:
        data = plain_bytes(path)
    except FileNotFoundError:
        return "the file is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except ValueError:
        return "it is no file"
    found = sealing.checksums(data)
    if found["bytes"] != expected.get("bytes", found["bytes"]):
        return f"it has {found['bytes']} bytes and was written with {expected['bytes']}"
    if found["sha256"] != expected["sha256"]:
        return "its content was altered"
    return None


def _foreign(path: Path) -> Finding:
    return Finding(path, "foreign", "redtail did not write it here", "move it elsewhere")


def _belongs(path: Path) -> bool:
    """Return whether a file that is not a run belongs in an experiment's folder."""
    if path.is_dir() and not path.is_symlink():
        return path.name in OWN_FOLDERS or any(True for _ in _walk(path))
    own = path.name in OWN_FILES or SERVER_LOG.fullmatch(path.name) is not None
    return own and is_plain(path)


def _walk(folder: Path) -> Iterator[Path]:
    """Return the experiments at and below a folder."""
    inside = []
    here = False
    with _refused(folder):
        entries = list(os.scandir(folder))
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            here = here or entry.name == "results.json"
        elif RUN_NAME.fullmatch(entry.name) and format.is_run(Path(entry.path)):
            here = True
        elif entry.name in OWN_FOLDERS and not (Path(entry.path) / "results.json").exists():
            here = here or entry.name == FAILED
        elif not entry.name.startswith("."):
            inside.append(Path(entry.path))
    if here:
        yield folder
    for each in inside:
        yield from _walk(each)


def _unit(metric: str) -> str:
    unit = names.describe(metric).unit
    return "" if unit == "1" else unit


def _name(root: Path, folder: Path) -> str:
    return folder.name if folder == root else str(folder.relative_to(root))


@contextlib.contextmanager
def _refused(folder: Path) -> Iterator[None]:
    """Turn an operating system's refusal into a message."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{error.filename or folder}: cannot be read: {error.strerror or error}"
            f"{writing.owner(folder) if isinstance(error, PermissionError) else ''}"
        ) from error
