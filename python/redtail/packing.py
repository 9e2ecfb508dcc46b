"""One archive with all that a reviewer needs to repeat a result, and the check that it repeats.

A ZIP file:

    README.md         what it is, and the commands
    pack.json         format, versions, and a checksum of every other file
    experiment/…      the experiment as it was given, and the files that it names
    results/…         the folder of results: tables, runs, and the page if there is one

Entries have no times and are in order, so the same results give the same archive.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import posixpath
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from redtail import _engine, backends
from redtail._engine import Plan
from redtail.analysis import results as stored
from redtail.analysis.results import Results
from redtail.errors import RedtailError, SpecError, StoreError
from redtail.files import path_of
from redtail.inputs.code import Allowed
from redtail.options import ExecuteOptions
from redtail.running import runner
from redtail.store.folders import (
    FAILED,
    MALFORMED,
    RUN_NAME,
    SEGMENTS,
    StoredRun,
    checksums,
    expect,
    explain_write_errors,
    machine,
    run_key,
    temporary_path,
)
from redtail.store.segments import keys_of

FORMAT = 1
"""Version of the archive's layout."""

REAL_TIME = ("live", "live-tc")
"""The backends whose runs are others each time."""

# Of the folder of results, what is not part of them.
_LEFT_OUT = re.compile(r"\.lock.*|\.tmp-.*|server-\d+\.log")

# What decides how tables are written; another version may write the same numbers in other bytes.
_PACKAGES = ("numpy", "pyarrow")

_LARGEST_INDEX = 64 << 20


def pack(
    folder: str | os.PathLike[str],
    file: str | os.PathLike[str] | None = None,
    *,
    base: str | os.PathLike[str] | None = None,
) -> Path:
    """Pack the results of an experiment with all that it takes to repeat them.

    Args:
        folder: of the results, for instance `runs/quickstart`.
        file: the archive; by default the folder's name with `.zip`, in the current folder.
        base: the folder that the files named by the experiment are relative to; by default that of
            the experiment's file, as it was given to `redtail run`.

    Returns:
        The path of the archive. An older one is replaced in one step.

    Raises:
        StoreError: the results cannot be read, or are without their experiment.
        SpecError: a file that the experiment names is missing or is not as it was in the runs.
    """
    results = stored.load(folder)
    if results.provenance.text is None:
        raise StoreError(
            f"{folder}: the experiment is not in this folder, since an older redtail wrote it; "
            "give the experiment's command again, which adds it and repeats no run of this version"
        )
    where = _base(results, base)
    named = _layout(results, where)
    _refuse_changed(results, where, [source for _, source in named])
    entries: dict[str, bytes] = {}
    home = _home(results)
    entries[f"{home}/{_file_name(results)}"] = results.provenance.text.encode()
    for name, source in named:
        entries[name] = source.read_bytes()
    for path in _results_files(results.folder):
        entries[f"results/{path.relative_to(results.folder).as_posix()}"] = path.read_bytes()
    entries["README.md"] = _readme(results, home).encode()
    index = {
        "format": FORMAT,
        "redtail_version": results.provenance.version,
        "code_version": results.made_by,
        "backend": results.backend,
        "experiment": f"{home}/{_file_name(results)}",
        "set": results.provenance.sets,
        "packages": packages(),
        "code_packages": dict(results.provenance.packages),
        "machine": {key: text for key, text in machine().items() if key != "host"},
        "files": {name: checksums(data) for name, data in sorted(entries.items())},
    }
    entries["pack.json"] = (json.dumps(index, indent=2, ensure_ascii=False) + "\n").encode()
    archive = Path(f"{results.folder.name}.zip") if file is None else path_of(file)
    _write(archive, entries)
    return archive


@dataclass(frozen=True)
class Verified:
    """What repeating a packed experiment has shown.

    Attributes:
        runs: how many runs were repeated.
        tables: of each table, whether its bytes are those of the archive.
        differing: the runs of which a byte differs, each with the files that do.
        numbers: the measurements that differ, each with both values.
        why: why bytes may differ though the numbers agree: other versions.
    """

    runs: int
    tables: dict[str, bool]
    differing: dict[str, tuple[str, ...]]
    numbers: tuple[str, ...]
    why: tuple[str, ...]

    @property
    def bytes_agree(self) -> bool:
        """Whether every byte of every table and run agrees."""
        return all(self.tables.values()) and not self.differing

    @property
    def numbers_agree(self) -> bool:
        """Whether every number is the same."""
        return not self.numbers


def verify(
    archive: str | os.PathLike[str],
    *,
    allow_code: Allowed = (),
    **options: Any,
) -> Verified:
    """Repeat the experiment of an archive and compare all that it measures.

    Nothing of the archive is executed, unless it is allowed: code in it counts as code from
    elsewhere.

    Args:
        archive: what `pack` wrote.
        allow_code: files and folders with code that may be executed; the archive's own path
            allows the code in it.
        **options: of running, as for `redtail.run`: jobs, progress.

    Raises:
        StoreError: the archive is damaged, or no archive of `pack`.
        SpecError: the experiment cannot be repeated: it was made in real time, or names code that
            is not allowed.
    """
    given = path_of(archive)
    with TemporaryDirectory(prefix="redtail-") as temporary:
        folder = Path(temporary)
        index = unpack(given, folder / "archive")
        backend = index["backend"]
        if backend in REAL_TIME:
            raise SpecError(
                f"{given}: was made in real time by the backend {backend}, whose runs are others "
                "each time; unpack it, run its experiment, and compare with `redtail diff`"
            )
        root = folder / "archive"
        paths = [allow_code] if isinstance(allow_code, str | os.PathLike) else list(allow_code)
        own = [path for path in paths if path_of(path).resolve() == given.resolve()]
        allowed = [path for path in paths if path not in own] + ([root] if own else [])
        plan = _plan_of(root / index["experiment"], index["set"], allowed, folder, given)
        running: ExecuteOptions = {**options, "out": folder / "runs", "backend": backend}  # type: ignore[typeddict-item]
        again = runner.execute(plan, **running)
        return _compared(stored.load(root / "results"), again, index)


def unpack(archive: Path, folder: Path) -> dict[str, Any]:
    """Unpack an archive, checked; returns its index.

    Raises:
        StoreError: it is damaged, no archive of `pack`, or of a newer format.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            about = file.getinfo("pack.json")
            if about.file_size > _LARGEST_INDEX:
                raise ValueError("pack.json is too large")
            index: dict[str, Any] = json.loads(file.read(about))
            _check_index(index)
            for name, expected in index["files"].items():
                if file.getinfo(name).file_size != expected["bytes"]:
                    raise ValueError(f"{name} has another size than pack.json says")
                data = file.read(name)
                if checksums(data) != expected:
                    raise ValueError(f"{name} was altered")
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
    except FileNotFoundError:
        raise StoreError(f"{archive}: there is no such file") from None
    except (*MALFORMED, zipfile.BadZipFile) as error:
        raise StoreError(
            f"{archive}: cannot be read as an archive of `redtail pack`: {error}"
        ) from error
    return index


def packages() -> dict[str, str]:
    """Return the versions of the packages that decide how tables are written."""
    found = {}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def is_archive(path: Path) -> bool:
    """Return whether a path is that of a ZIP file, which no experiment is."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def _check_index(index: dict[str, Any]) -> None:
    number = expect(index["format"], int, "format")
    if number != FORMAT:
        raise ValueError(f"written in format {number}, this redtail reads {FORMAT}")
    for key in ("backend", "code_version", "redtail_version", "experiment"):
        expect(index[key], str, key)
    expect(index.get("code_packages", {}), dict, "code_packages")
    for each in expect(index["set"], list, "set"):
        expect(each, str, "a value of set")
    for name, about in expect(index["files"], dict, "files").items():
        parts = PurePosixPath(name).parts
        if name != "/".join(parts) or ".." in parts or "\\" in name or ":" in name or not parts:
            raise ValueError(f"{name!r} is no path inside the archive")
        if parts[0] == "/":
            raise ValueError(f"{name!r} is no path inside the archive")
        expect(expect(about, dict, name)["bytes"], int, f"bytes of {name}")
        expect(about["sha256"], str, f"sha256 of {name}")
    if index["experiment"] not in index["files"]:
        raise ValueError("the experiment is not in it")


def _base(results: Results, base: str | os.PathLike[str] | None) -> Path:
    if base is not None:
        return path_of(base)
    given = results.provenance.file
    return Path() if given is None else Path(given).parent


def _file_name(results: Results) -> str:
    given = results.provenance.file
    return results.provenance.name if given is None else PurePosixPath(Path(given).as_posix()).name


def _home(results: Results) -> str:
    """Return the folder of the experiment in the archive.

    It is so deep that files in folders above the experiment's own are in the archive too.
    """
    up = max(
        (
            sum(part == ".." for part in PurePosixPath(posixpath.normpath(name)).parts)
            for name in _named(results)
        ),
        default=0,
    )
    return "/".join(["experiment", *(f"level{number}" for number in range(1, up + 1))])


def _named(results: Results) -> list[str]:
    """Return the files that the experiment names, with slashes; errors as for `pack`."""
    found = []
    for name in results.provenance.inputs:
        path = Path(name)
        if path.is_absolute() or name.startswith("~"):
            raise SpecError(
                f"the experiment names {name}, which is another file on another machine; accepted: "
                "a path relative to the experiment's file"
            )
        found.append(path.as_posix())
    return found


def _layout(results: Results, base: Path) -> list[tuple[str, Path]]:
    """Return for each file that the experiment names its entry and its path; errors as `pack`."""
    home = _home(results)
    found = []
    for name in _named(results):
        path = base / name
        if not path.is_file():
            raise SpecError(
                f"{path}: there is no such file, but the experiment names {name}; say with "
                "--experiment FOLDER where the experiment's file is"
            )
        found.append((posixpath.normpath(posixpath.join(home, name)), path))
    return found


def _refuse_changed(results: Results, base: Path, sources: Sequence[Path]) -> None:
    """Refuse files that are not as they were in the runs, as far as this can be known.

    The key of a run has them in it. It cannot be found again when another version of the code has
    made the runs. Classes that the archive could not have are refused as well. No code is executed.
    """
    if results.made_by != backends.find(results.backend).identity():
        return
    given = (results.provenance.text or "", *results.provenance.sets)
    if not sources and not any("plugin" in text for text in given):
        return
    plan = _engine.plan(
        results.provenance.text or "",
        file=str(base / _file_name(results)) if results.provenance.form == "toml" else None,
        sets=results.provenance.sets,
        format=results.provenance.form,
    )
    for code in plan.code:
        if not code.inputs and not code.files:
            raise SpecError(
                f"the experiment has the class {code.name}, which a program has passed and whose "
                'code is not packed; accepted: a class by its file, "my_queue.py:MyQueue"'
            )
        if code.beyond:
            raise SpecError(
                f"the class {code.name} needs code that Python's path leads to, which another "
                f"computer does not find: {', '.join(code.beyond)}; accepted: modules in the "
                "folder of its file or of the experiment, and installed packages"
            )
    for number, case in enumerate(results.cases):
        if not case.runs:
            continue
        users = {load.group: load.users for load in case.loads}
        users_of_all = tuple(users if each == number else {} for each in range(len(plan.cases)))
        with_users = replace(plan, users=users_of_all)
        replication = min(keys_of(case.runs))
        text = with_users.scenario(number, replication)
        if run_key(text, results.made_by, results.backend) != keys_of(case.runs)[replication]:
            listed = ", ".join(map(str, sources))
            was, now = results.provenance.packages, plan.packages
            others = "".join(
                f"; {name} is {now.get(name, 'not used')} and was {was.get(name, 'not used')}"
                for name in sorted(was.keys() | now.keys())
                if was.get(name) != now.get(name)
            )
            raise SpecError(
                "the results are not of the files that the experiment names now: "
                f"{listed}{others}; "
                "bring them back as they were, or give the experiment's command again"
            )


def _results_files(folder: Path) -> Iterator[Path]:
    """Yield the files of the results and of their runs."""
    index = json.loads((folder / "results.json").read_bytes())
    wanted = {key for case in index["cases"] for key in case["runs"].values()}
    for path in sorted(folder.iterdir()):
        if path.is_file() and not _LEFT_OUT.fullmatch(path.name):
            yield path
        elif path.is_dir() and not path.is_symlink():
            run = RUN_NAME.fullmatch(path.name) is not None
            if (run and path.name in wanted) or path.name in ("figures", SEGMENTS):
                yield from (each for each in sorted(path.rglob("*")) if each.is_file())
            assert path.name != FAILED or not run


def _readme(results: Results, home: str) -> str:
    archive = f"{results.folder.name}.zip"
    sets = "".join(f" --set '{each}'" for each in results.provenance.sets)
    backend = "" if results.backend == "sim" else f" --backend {results.backend}"
    used = ", ".join(f"{name} {version}" for name, version in results.provenance.packages.items())
    packages = f"The classes of the experiment import installed packages: {used}.\n" if used else ""
    repeat = (
        f"    redtail run {home}/{_file_name(results)}{sets}{backend}\n"
        if results.provenance.form == "toml"
        else f"The experiment was made in Python; `{home}/{_file_name(results)}` has it as JSON.\n"
    )
    return (
        f"Results of redtail {results.provenance.version}, and all it takes to repeat them.\n\n"
        "To repeat every run and see whether the bytes agree:\n\n"
        f"    redtail run {archive} --verify\n\n"
        "To run the experiment yourself, in the unpacked archive:\n\n"
        f"{repeat}\n"
        "`results/` has the tables (Parquet) and every run; `results/report.html`, if it is there, "
        "is a page with figures.\n"
        f"{packages}"
        f"The code has the version {results.made_by}. `pack.json` has a checksum of every file.\n"
    )


def _write(archive: Path, entries: dict[str, bytes]) -> None:
    with explain_write_errors(archive):
        aside = temporary_path(archive.absolute().parent, archive.name)
        try:
            with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as file:
                for name, data in sorted(entries.items()):
                    about = zipfile.ZipInfo(name)
                    about.compress_type = zipfile.ZIP_DEFLATED
                    about.external_attr = 0o644 << 16
                    file.writestr(about, data)
            os.replace(aside, archive)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise


def _plan_of(
    file: Path, sets: Sequence[str], allowed: Sequence[Any], empty: Path, archive: Path
) -> Plan:
    """Check the experiment of an archive; its own folder is none whose code may be executed."""
    nowhere = empty / "no-code"
    nowhere.mkdir()
    form = "json" if file.suffix == ".json" else "toml"
    root = f"{empty / 'archive'}{os.sep}"

    def made(*, load: bool) -> Plan:
        return _engine.plan(
            file.read_text(encoding="utf-8"),
            file=str(file),
            sets=sets,
            format=form,
            load=load,
            refuse=load,
            allow_code=tuple(allowed),
            within=nowhere,
        )

    try:
        plan = made(load=False)
        refused = [
            shown
            for code in plan.code
            if code.needs is not None
            for shown in (code.shown, *code.imported)
        ]
        if refused:
            listed = ", ".join(dict.fromkeys(refused)).replace(root, "")
            raise SpecError(
                f"repeating it executes code of the archive: {listed}; look at it, and allow it "
                f"with --allow-code {archive}"
            )
        return made(load=True)
    except RedtailError as error:
        raise SpecError(f"{archive}: {str(error).replace(root, '')}") from error


def _compared(old: Results, new: Results, index: dict[str, Any]) -> Verified:
    """Return how results agree with those of the archive."""
    tables = {}
    before, after = (
        json.loads((each.folder / "results.json").read_bytes())["files"] for each in (old, new)
    )
    for name, expected in before.items():
        tables[name] = after.get(name) == expected
    differing: dict[str, tuple[str, ...]] = {}
    numbers = []
    if [case.labels for case in old.cases] != [case.labels for case in new.cases]:
        numbers.append("the cases are others")
    for one, two in zip(old.cases, new.cases, strict=False):
        for number in sorted(one.runs.keys() | two.runs.keys()):
            title = f"{one.title or 'the case'}, replication {number}"
            if number in one.runs and number in two.runs:
                files, metrics = _differences(one.runs[number], two.runs[number])
                if files:
                    differing[title] = files
                numbers += [f"{title}: {each}" for each in metrics]
            else:
                which = "archive" if number in one.runs else "repetition"
                numbers.append(f"{title}: is only in the {which}")
    why = []
    if new.made_by != index["code_version"]:
        why.append(f"made by the code {index['code_version']}, and this is {new.made_by}")
    for name, version in packages().items():
        was = index.get("packages", {}).get(name)
        if was != version:
            why.append(f"written by {name} {was}, and this is {version}")
    for name, version in new.provenance.packages.items():
        was = index.get("code_packages", {}).get(name)
        if was != version:
            why.append(f"the experiment's classes used {name} {was}, and this is {version}")
    return Verified(new.run_count, tables, differing, tuple(numbers), tuple(why))


def _differences(one: StoredRun, two: StoredRun) -> tuple[tuple[str, ...], list[str]]:
    """Return the files of two runs that differ, and the metrics that do, in words."""
    first, second = (run.manifest.get("files", {}) for run in (one, two))
    names = sorted(first.keys() | second.keys())
    files = tuple(name for name in names if first.get(name) != second.get(name))
    metrics = []
    for name in sorted(one.metrics.keys() | two.metrics.keys()):
        was, now = one.metrics.get(name), two.metrics.get(name)
        if was != now:
            metrics.append(f"{name} was {was}, and is {now}")
    return files, metrics
