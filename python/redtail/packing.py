"""One archive with all that a reviewer needs to repeat a result, and the check that it repeats.

A ZIP file (`archive` reads it, and has its limits):

    README.md         what it is, and the commands
    pack.json         format, versions, and a checksum of every other file
    experiment/…      the experiment as it was given, and the files that it names
    results/…         the folder of results: tables, runs, and the page if there is one

Entries have no times and are in order, so the same results give the same archive.

A folder of results may come from others. It is packed if `redtail runs verify` finds nothing wrong
in it, so it has no links and no files that redtail does not write. The paths in its `results.json`
are data: a file that they name is packed if its content is the one that `results.json` has the
hash of, or if it is in a folder that the user names.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import posixpath
import shlex
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from redtail import archive, backends, escape
from redtail.analysis import stored
from redtail.analysis.results import Results
from redtail.archive import FORMAT, unpack
from redtail.engine import plans
from redtail.engine.plans import Plan
from redtail.errors import Cancelled, RedtailError, RunError, SpecError, StoreError
from redtail.files import digest, is_archive, is_file_name, is_plain, is_within, path_of
from redtail.inputs.code import Allowed, Code
from redtail.inputs.programs import Lines
from redtail.metrics import counted
from redtail.options import ExecuteOptions
from redtail.repetition import Verified, compare
from redtail.running import runner
from redtail.store import runs
from redtail.store.format import ADVICE, EXPERIMENT_FILES, REPORT, SEGMENTS, run_key
from redtail.store.locks import in_use
from redtail.store.sealing import checksums
from redtail.store.segments import keys_of
from redtail.store.writing import explain_write_errors, machine, temporary_path

__all__ = ["FORMAT", "Verified", "is_archive", "pack", "packages", "unpack", "verify"]

REAL_TIME = ("live", "live-tc")
"""The backends whose runs are others each time."""

# What decides how tables are written; another version may write the same numbers in other bytes.
_PACKAGES = ("numpy", "pyarrow")

# The experiment's own files that belong to its results.
_PACKED = (
    *("results.json", "cases.parquet", "replications.parquet"),
    *(*EXPERIMENT_FILES, REPORT, ADVICE),
)

_CHUNK = 1 << 20
_PROBLEMS_SHOWN = 3


def pack(
    folder: str | os.PathLike[str],
    file: str | os.PathLike[str] | None = None,
    *,
    base: str | os.PathLike[str] | None = None,
    within: str | os.PathLike[str] | None = None,
) -> Path:
    """Pack the results of an experiment with all that it takes to repeat them.

    Args:
        folder: of the results, for instance `runs/quickstart`, or its URL.
        file: the archive; by default the folder's name with `.zip`, in the current folder.
        base: the folder that the files named by the experiment are relative to; by default that of
            the experiment's file, as it was given to `redtail run`.
        within: the folder that files must be in of which the results have no hash (those of an
            older version); by default `base`.

    Returns:
        The path of the archive. An older one is replaced in one step.

    Raises:
        StoreError: the results cannot be read, are not as redtail wrote them, or are without their
            experiment.
        SpecError: a file that the experiment names is missing, is not as it was in the runs, or
            cannot be known to be the one.
    """
    results = stored.load(folder)
    _refuse_damaged(results.folder)
    if results.provenance.text is None:
        raise StoreError(
            f"{folder}: the experiment is not in this folder, since an older redtail wrote it; "
            "give the experiment's command again, which adds it and repeats no run of this version"
        )
    home = _home(results)
    experiment = f"{home}/{_file_name(results)}"
    sources: dict[str, bytes | Path] = {experiment: results.provenance.text.encode()}
    for name, source in _inputs(results, base, within):
        sources[posixpath.normpath(posixpath.join(home, name))] = source
    _check_names(folder, sources)
    files = {name: _checksums(source) for name, source in sources.items()}
    _refuse_changed(results, experiment, sources)
    for path in _results_files(results):
        sources[f"results/{path.relative_to(results.folder).as_posix()}"] = path
    sources["README.md"] = _readme(results, home).encode()
    _check_names(folder, sources)
    files |= {name: _checksums(each) for name, each in sources.items() if name not in files}
    index = {
        "format": FORMAT,
        "redtail_version": results.provenance.version,
        "code_version": results.made_by,
        "backend": results.backend,
        "experiment": experiment,
        "set": results.provenance.sets,
        "packages": packages(),
        "code_packages": dict(results.provenance.packages),
        "machine": {key: text for key, text in machine().items() if key != "host"},
        "files": dict(sorted(files.items())),
    }
    sources[archive.INDEX] = (json.dumps(index, indent=2, ensure_ascii=False) + "\n").encode()
    target = Path(f"{results.folder.name}.zip") if file is None else path_of(file)
    _write(target, sources, files)
    return target


def verify(
    file: str | os.PathLike[str],
    *,
    allow_code: Allowed = (),
    **options: Any,
) -> Verified:
    """Repeat the experiment of an archive and compare the files that the repetition writes.

    Nothing of the archive is executed, unless it is allowed: code in it counts as code from
    elsewhere. The experiment may name files of the archive only.

    Args:
        file: what `pack` wrote.
        allow_code: files and folders with code that may be executed; the archive's own path
            allows the code in it.
        **options: of running, as for `redtail.run`: jobs, progress.

    Raises:
        StoreError: the archive is damaged, or no archive of `pack`.
        SpecError: the experiment cannot be repeated: it was made in real time, or names code that
            is not allowed.
    """
    given = path_of(file)
    with TemporaryDirectory(prefix="redtail-") as temporary:
        folder = Path(temporary)
        with _of_archive(given, folder):
            root = folder / "archive"
            index = unpack(given, root)
            backend = index["backend"]
            if backend in REAL_TIME:
                raise SpecError(
                    f"was made in real time by the backend {backend}, whose runs are others each "
                    "time; unpack it, run its experiment, and compare with `redtail diff`"
                )
            _refuse_damaged(root / "results")
            paths = [allow_code] if isinstance(allow_code, str | os.PathLike) else list(allow_code)
            own = [path for path in paths if path_of(path).resolve() == given.resolve()]
            allowed = [path for path in paths if path not in own] + ([root] if own else [])
            plan = _plan_of(root, index, allowed, folder / "no-code", given)
            running: ExecuteOptions = {**options, "out": folder / "runs", "backend": backend}  # type: ignore[typeddict-item]
            again = runner.execute(plan, **running)
            home = posixpath.dirname(index["experiment"])
            used = {posixpath.normpath(posixpath.join(home, name)) for name in plan.inputs}
            return compare(root, index, again, _why(index, again), {index["experiment"], *used})


def packages() -> dict[str, str]:
    """Return the versions of the packages that decide how tables are written."""
    found = {}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


@contextlib.contextmanager
def _of_archive(given: Path, folder: Path) -> Iterator[None]:
    """Name the archive in errors, and no temporary folder, which is gone when they are read."""
    places = {str(each) for each in (folder, folder.resolve())}

    def told(error: RedtailError) -> str:
        lines = str(error).splitlines()
        for place in sorted(places, key=len, reverse=True):
            # Logs of the repetition are gone with it.
            lines = [line for line in lines if f"{place}{os.sep}runs" not in line] or lines[:1]
            for inner in ("archive", "runs"):
                lines = [line.replace(f"{place}{os.sep}{inner}{os.sep}", "") for line in lines]
            lines = [line.replace(place, "the archive") for line in lines]
        text = "\n".join(lines)
        return text if text.startswith(f"{given}:") else f"{given}: {text}"

    try:
        yield
    except Cancelled:
        raise Cancelled("interrupted; the runs of a repetition are not kept") from None
    except SpecError as error:
        raise SpecError(told(error)) from None
    except RunError as error:
        raise RunError(told(error)) from None
    except RedtailError as error:
        raise StoreError(told(error)) from None


def _refuse_damaged(folder: Path) -> None:
    """Refuse a folder of results in which `redtail runs verify` finds something wrong.

    Raises:
        StoreError: it does, or a campaign is at work there.
    """
    if in_use(folder):
        raise StoreError(f"{folder}: a campaign is at work here; wait until it has ended")
    problems = [str(each) for each in runs.verify(folder)]
    if problems:
        shown = "\n".join(problems[:_PROBLEMS_SHOWN])
        more = len(problems) - _PROBLEMS_SHOWN
        raise StoreError(
            f"{folder}: these are not the results as redtail wrote them "
            f"({counted(len(problems), 'problem')}, as `redtail runs verify` tells):\n{shown}"
            + (f"\nand {more} more" if more > 0 else "")
        )


def _check_names(folder: object, names: Mapping[str, object]) -> None:
    """Refuse files that an archive cannot have.

    Raises:
        SpecError: there is one.
    """
    try:
        archive.check_names([*names, archive.INDEX])
    except ValueError as error:
        raise SpecError(
            f"{folder}: cannot be packed: {error}; accepted: files whose names are different on "
            "every system"
        ) from None


def _inputs(
    results: Results,
    base: str | os.PathLike[str] | None,
    within: str | os.PathLike[str] | None,
) -> list[tuple[str, Path]]:
    """Return the files that the experiment names, each with its path here; errors as for `pack`."""
    given = results.provenance.file
    home = path_of(base) if base is not None else Path(given).parent if given else Path()
    inside = path_of(within) if within is not None else path_of(base) if base is not None else None
    found = []
    for name in _named(results):
        path = home / name
        known = results.provenance.checksums.get(name)
        if known is None and inside is None:
            raise SpecError(
                f"the results do not say what was in {name}, since an older redtail wrote them; "
                "name the folder of the experiment's file with --experiment FOLDER"
            )
        if known is None and not is_within(path, inside):
            raise SpecError(
                f"{path}: is not in {inside}, and the results do not say what was in it; accepted: "
                "a file in this folder, or --inputs FOLDER with the folder that all files are in"
            )
        if not path.is_file():
            raise SpecError(
                f"{path}: there is no such file, but the experiment names {name}; say with "
                "--experiment FOLDER where the experiment's file is"
            )
        if known is not None and _checksums(path) != known:
            raise SpecError(_CHANGED.format(path, ""))
        found.append((name, path))
    return found


_CHANGED = (
    "the results are not of the files that the experiment names now: {}{}; bring them back as they "
    "were, or give the experiment's command again"
)


def _checksums(source: bytes | Path) -> dict[str, Any]:
    if isinstance(source, bytes):
        return checksums(source)
    try:
        return digest(source)
    except OSError as error:
        raise StoreError(f"{source}: cannot be read: {error.strerror or error}") from error


def _file_name(results: Results) -> str:
    """Return the name of the experiment's file in the archive."""
    given = results.provenance.file
    name = "" if given is None else PurePosixPath(Path(given).as_posix()).name
    form = "json" if name.endswith(".json") else "toml"
    if is_file_name(name) and form == results.provenance.form:
        return name
    return results.provenance.name


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


def _refuse_changed(results: Results, experiment: str, sources: Mapping[str, bytes | Path]) -> None:
    """Refuse files that are not as they were in the runs, as far as this can be known.

    The key of a run has them in it. It cannot be found again when another version of the code has
    made the runs. Classes that the archive could not have are refused as well. No code is executed,
    and no file is read that is not packed.

    Args:
        results: the results.
        experiment: the entry of the experiment's file.
        sources: the entries of the files that are read.

    Raises:
        SpecError: a file is another one, or the experiment cannot be packed.
    """
    if results.made_by != backends.find(results.backend).identity():
        return
    given = (results.provenance.text or "", *results.provenance.sets)
    if len(sources) == 1 and not any("class" in text for text in given):
        return
    with TemporaryDirectory(prefix="redtail-") as temporary:
        root = Path(temporary)
        for name, source in sources.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(source, bytes):
                path.write_bytes(source)
            else:
                shutil.copyfile(source, path)
        try:
            plan = plans.plan(
                results.provenance.text or "",
                file=str(root / experiment),
                sets=results.provenance.sets,
                format=results.provenance.form,
                confined=root,
            )
        except SpecError as error:
            text = str(error)
            for place in (root.resolve(), root):
                text = text.replace(f"{place}{os.sep}", "")
            raise SpecError(f"the experiment cannot be packed: {text}") from None
        _refuse_others(results, plan, [path for path in sources.values() if isinstance(path, Path)])


def _refuse_others(results: Results, plan: Plan, sources: Sequence[Path]) -> None:
    """Refuse a plan whose runs are not those of the results; errors as for `_refuse_changed`."""
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
            raise SpecError(_CHANGED.format(listed, others))


def _results_files(results: Results) -> Iterator[Path]:
    """Yield the files of the results and of their runs.

    Raises:
        StoreError: one is a link, or no file.
    """
    folder = results.folder
    names = [name for name in _PACKED if os.path.lexists(folder / name)]
    found = [folder / name for name in names]
    keys = {key for case in results.cases for key in keys_of(case.runs).values()}
    inner = [*sorted(keys), "figures", SEGMENTS]
    for path in (folder / name for name in inner):
        if path.is_symlink():
            raise StoreError(f"{path}: is a link, which is not packed; put a folder in its place")
        if path.is_dir():
            found += sorted(
                each for each in path.rglob("*") if each.is_symlink() or not each.is_dir()
            )
    for path in found:
        if not is_plain(path):
            raise StoreError(
                f"{path}: is a link or no file, which is not packed; put a file in its place"
            )
        yield path


def _readme(results: Results, home: str) -> str:
    archive = shlex.quote(f"{results.folder.name}.zip")
    sets = "".join(f" --set {shlex.quote(each)}" for each in results.provenance.sets)
    backend = "" if results.backend == "sim" else f" --backend {shlex.quote(results.backend)}"
    used = ", ".join(f"{name} {version}" for name, version in results.provenance.packages.items())
    packages = f"The classes of the experiment import installed packages: {used}.\n" if used else ""
    repeat = (
        f"    redtail run {shlex.quote(f'{home}/{_file_name(results)}')}{sets}{backend}\n"
        if results.provenance.form == "toml"
        else f"The experiment was made in Python; `{home}/{_file_name(results)}` has it as JSON.\n"
    )
    return escape.text(
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


def _write(
    target: Path, sources: Mapping[str, bytes | Path], files: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write the archive, in the place of an older one.

    Args:
        target: where to.
        sources: the content of each entry, or the file with it.
        files: the checksums of the entries but for the index.

    Raises:
        StoreError: it cannot be written, or would not be read again; a file has changed.
    """
    with explain_write_errors(target):
        aside = temporary_path(target.absolute().parent, target.name)
        try:
            with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as file:
                for name, source in sorted(sources.items()):
                    about = zipfile.ZipInfo(name)
                    about.compress_type = zipfile.ZIP_DEFLATED
                    about.external_attr = 0o644 << 16
                    if isinstance(source, bytes):
                        file.writestr(about, source)
                    elif _copied(source, file, about, files[name]) != files[name]:
                        raise StoreError(f"{source}: was changed while it was packed")
            try:
                archive.check_sizes(files, aside.stat().st_size)
            except ValueError as error:
                raise StoreError(f"{target}: cannot be written as an archive: {error}") from None
            os.replace(aside, target)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise


def _copied(
    source: Path, file: zipfile.ZipFile, about: zipfile.ZipInfo, expected: Mapping[str, Any]
) -> dict[str, Any]:
    """Copy a file into an entry; returns the checksums of what was copied."""
    about.file_size = expected["bytes"]
    whole = hashlib.sha256()
    size = 0
    with source.open("rb") as data, file.open(about, "w") as entry:
        while chunk := data.read(_CHUNK):
            whole.update(chunk)
            size += len(chunk)
            if size > expected["bytes"]:
                break
            entry.write(chunk)
    return {"bytes": size, "sha256": whole.hexdigest()}


def _plan_of(
    root: Path, index: Mapping[str, Any], allowed: Sequence[Any], nowhere: Path, given: Path
) -> Plan:
    """Check the experiment of an archive; its own folder is none whose code may be executed."""
    nowhere.mkdir()
    file = root / index["experiment"]
    form = "json" if file.suffix == ".json" else "toml"
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise SpecError(
            f"{index['experiment']}: is not a text file in UTF-8 (byte {error.start})"
        ) from None

    def made(*, load: bool) -> Plan:
        return plans.plan(
            text,
            file=str(file),
            sets=index["set"],
            format=form,
            load=load,
            refuse=load,
            allow_code=tuple(allowed),
            within=nowhere,
            confined=root,
        )

    plan = made(load=False)
    code: list[Code | Lines] = [*plan.code, *plan.programs]
    refused = [each for each in code if each.needs is not None]
    if refused:
        shown = dict.fromkeys(
            text for each in refused for text in (each.shown, *getattr(each, "imported", ()))
        )
        # Code of the archive is allowed by its path, code beside it by its own.
        needs = {
            str(given if is_within(each.needs, root) else each.needs): None
            for each in refused
            if each.needs is not None
        }
        options = " ".join(f"--allow-code {shlex.quote(path)}" for path in needs)
        whose = "code of the archive" if list(needs) == [str(given)] else "code"
        raise SpecError(
            f"repeating it executes {whose}: {', '.join(shown)}; look at it, and allow it with "
            f"{options}"
        )
    return made(load=True)


def _why(index: Mapping[str, Any], again: Results) -> list[str]:
    """Return what of the versions is other than when the results were made."""
    why = []
    if again.made_by != index["code_version"]:
        why.append(f"made by the code {index['code_version']}, and this is {again.made_by}")
    for name, version in packages().items():
        was = index["packages"].get(name)
        if was != version:
            why.append(f"written by {name} {was}, and this is {version}")
    for name, version in again.provenance.packages.items():
        was = index["code_packages"].get(name)
        if was != version:
            why.append(f"the experiment's classes used {name} {was}, and this is {version}")
    return why
