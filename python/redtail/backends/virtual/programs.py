"""Programs for the guest from a distribution's packages, with their libraries.

They are kept by their paths in the guest: programs in bin, libraries where their own loader looks
for them first, and the loader where the programs name it (the System V ABI for x86-64).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from redtail.errors import SpecError

LOADER = "lib64/ld-linux-x86-64.so.2"
"""The path of the loader in the guest."""

LIBRARIES = "lib/x86_64-linux-gnu"
"""The folder of the libraries in the guest."""

_PLACES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")


def found_in(unpacked: Path, programs: Sequence[str]) -> dict[str, tuple[int, Path]]:
    """Return the files of programs in unpacked packages.

    Args:
        unpacked: the folder with what is in the packages of the programs and all their libraries.
        programs: their names.

    Returns:
        Permissions and file, by path in the guest.

    Raises:
        SpecError: a program or a library is not there.
    """
    loader = _first(unpacked, Path(LOADER).name)
    files = {LOADER: (0o755, loader)}
    for program in programs:
        path = _first(unpacked, program, ("bin", "sbin"))
        files[f"bin/{program}"] = (0o755, path)
        for library in _needed(loader, path, unpacked):
            files[f"{LIBRARIES}/{library.name}"] = (0o755, library)
    return files


def _ask(loader: Path, library_path: str, program: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [loader, "--inhibit-cache", "--library-path", library_path, "--list", program],
        env={key: value for key, value in os.environ.items() if not key.startswith("LD_")},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _first(unpacked: Path, name: str, folders: Sequence[str] = ()) -> Path:
    found = sorted(
        path
        for path in unpacked.rglob(name)
        if path.is_file() and (not folders or path.parent.name in folders)
    )
    if not found:
        raise SpecError(
            f"the packages of iproute2 and of what it depends on have no file {name}; accepted: a "
            "suite of Debian or Ubuntu for x86-64",
            key="--suite",
        )
    return found[0]


def _needed(loader: Path, program: Path, unpacked: Path) -> list[Path]:
    """Return the libraries of a program, as its own loader finds them."""
    ran = _ask(loader, ":".join(str(unpacked / place) for place in _PLACES), program)
    libraries = []
    for line in ran.stdout.splitlines():
        found = re.fullmatch(r"\s*(\S+) => (/.*) \(0x[0-9a-f]+\)", line)
        if found and Path(found[1]).name != Path(LOADER).name:
            library = Path(found[2])
            if not library.is_relative_to(unpacked):
                raise SpecError(
                    f"{program.name} needs {found[1]}, which is in no package that iproute2 "
                    "depends on; accepted: a suite of Debian or Ubuntu for x86-64",
                    key="--suite",
                )
            libraries.append(library.with_name(Path(found[1]).name))
    if ran.returncode:
        reason = ran.stderr.strip().splitlines()[-1:] or ["no reason was told"]
        raise SpecError(f"{program.name} cannot be loaded: {reason[0]}", key="--suite")
    return libraries


def runs(loader: Path, library_path: Sequence[Path], program: Path) -> bool:
    """Return whether libraries have what a program needs, as their own loader finds out."""
    path = ":".join(map(str, library_path))
    ran = _ask(loader, path, program)
    return ran.returncode == 0 and "not found" not in ran.stdout + ran.stderr


def keep(files: Mapping[str, tuple[int, Path]], folder: Path) -> None:
    """Copy files into a folder, by their paths in the guest."""
    for name, (mode, path) in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        place.chmod(mode)


def kept_in(folder: Path) -> dict[str, tuple[int, Path]]:
    """Return the files that `keep` has put into a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (0o755, path) for path in paths}
