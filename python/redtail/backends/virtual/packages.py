"""Kernels from the packages of Debian and Ubuntu, without root."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from redtail.errors import RedtailError, SpecError, StoreError

DEFAULTS = {"debian": "linux-image-cloud-amd64", "ubuntu": "linux-image-virtual"}
"""The package with the newest kernel for virtual machines, by distribution."""

_TOOLS = ("apt-cache", "apt-get", "dpkg-deb")
_INSTEAD = "`redtail kernel add NAME --image FILE --modules DIR` takes a kernel from files"
_STALE = "as root `apt-get update` renews the lists of packages"

# A name as Debian's Policy Manual, 5.6.1, and a version as 5.6.12 has it.
_PACKAGE = re.compile(r"([a-z0-9][a-z0-9+.-]+)(=[A-Za-z0-9.+:~-]+)?")
# What a kernel is made of: Debian has image (and, in newer ones, binary and modules), Ubuntu has
# image, modules, and modules-extra with most of the queues, which no package depends on.
_PART = re.compile(
    r"(?P<name>linux-(?:image|binary|modules)-[a-z0-9+.-]+)(:\w+)?"
    r"(\s*\((?P<relation>[<=>]+)\s*(?P<version>[^)]+)\))?"
)


@dataclass(frozen=True)
class Wanted:
    """What is to be downloaded.

    Attributes:
        image: the package with the image.
        version: its version.
        parts: all packages, as apt-get takes them: NAME=VERSION.
        download: bytes of the packages.
        installed: bytes of what is in them.
    """

    image: str
    version: str
    parts: tuple[str, ...]
    download: int
    installed: int

    @property
    def origin(self) -> str:
        """The package with the image and its version."""
        return f"{self.image} {self.version}"


def resolve(package: str | None) -> Wanted:
    """Return what has to be downloaded for a package with a kernel, by the lists of apt.

    Args:
        package: its name, or NAME=VERSION; None for the distribution's in `DEFAULTS`.

    Raises:
        SpecError: apt does not know it, it is no kernel's, or this computer has no apt.
    """
    _require_apt()
    name = package if package is not None else _default()
    found = _PACKAGE.fullmatch(name)
    if found is None:
        raise SpecError(
            f"{name}: cannot be the name of a package; accepted: a name such as "
            "linux-image-cloud-amd64, or NAME=VERSION",
            key="PACKAGE",
        )
    parts: dict[str, Mapping[str, str]] = {}
    _follow(name, parts)
    for part in list(parts):
        if part.startswith("linux-modules-") and not part.startswith("linux-modules-extra-"):
            extra = part.replace("linux-modules-", "linux-modules-extra-", 1)
            version = parts[part].get("Version", "")
            if extra not in parts and (about := _about(f"{extra}={version}")):
                parts[extra] = about
    kernels = [part for part in parts if part.startswith("linux-image-")]
    if not kernels:
        raise SpecError(
            f"{name}: is not a package with a kernel, and depends on none; accepted: packages "
            "such as linux-image-cloud-amd64; `apt-cache pkgnames linux-image-` lists them",
            key="PACKAGE",
        )
    image = kernels[-1]  # the others depend on it
    return Wanted(
        image,
        parts[image].get("Version", ""),
        tuple(f"{part}={about.get('Version', '')}" for part, about in parts.items()),
        sum(int(about.get("Size", 0)) for about in parts.values()),
        sum(1024 * int(about.get("Installed-Size", 0)) for about in parts.values()),
    )


def unpack(wanted: Wanted, folder: Path, unpacked: Path, progress: Callable[[str], None]) -> None:
    """Download packages and unpack them.

    Args:
        wanted: the packages.
        folder: a folder for the packages.
        unpacked: a folder for what is in them.
        progress: is told what is being done.

    Raises:
        RedtailError: they cannot be downloaded, or are damaged.
        StoreError: there is not enough room.
    """
    from redtail.store.runs import shown_size

    needed = wanted.download + wanted.installed
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StoreError(
            f"{folder.parent}: unpacking {wanted.image} needs {shown_size(needed)}, and "
            f"{shown_size(free)} are free; make room, or REDTAIL_KERNELS=DIR chooses another folder"
        )
    progress(f"downloading {wanted.origin} ({shown_size(wanted.download)})")
    ran = _run(["apt-get", "-q", "download", *wanted.parts], folder)
    if ran.returncode:
        raise _failure(f"{wanted.image} cannot be downloaded", ran.stderr, folder, _advice)
    files = sorted(folder.glob("*.deb"))
    if len(files) != len(wanted.parts):
        raise RedtailError(
            f"{wanted.image}: apt-get has downloaded {len(files)} of the {len(wanted.parts)} "
            f"packages {', '.join(wanted.parts)}"
        )
    progress("unpacking it")
    for file in files:
        ran = _run(["dpkg-deb", "-x", str(file), str(unpacked)], folder)
        if ran.returncode:
            raise _failure(f"{file.name} cannot be unpacked", ran.stderr, folder, lambda _: "")


def _require_apt() -> None:
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        raise SpecError(
            f"this is {platform.system()} on {platform.machine()}; kernels can be fetched on "
            "Linux on x86-64 alone, and the backend linux runs there alone",
            key="backend",
        )
    lacking = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if lacking:
        raise SpecError(
            "kernels can be fetched from the packages of Debian, Ubuntu and what is made of them, "
            f"and {_system()} has no {lacking[0]}; {_INSTEAD}",
            key="PACKAGE",
        )


def _release() -> Mapping[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def _system() -> str:
    return _release().get("PRETTY_NAME") or "this system"


def _default() -> str:
    """Return the package of this distribution, or of the nearest one that it is made of."""
    about = _release()
    for name in (about.get("ID", ""), *about.get("ID_LIKE", "").split()):
        if name in DEFAULTS:
            return DEFAULTS[name]
    raise SpecError(
        f"it is not known which package of {_system()} has a kernel for virtual machines; "
        f"accepted: `redtail kernel fetch PACKAGE`; or {_INSTEAD}",
        key="PACKAGE",
    )


def _follow(name: str, parts: dict[str, Mapping[str, str]]) -> None:
    """Enter a package and those parts of a kernel that it depends on."""
    about = _about(name)
    plain = name.partition("=")[0]
    if not about:
        raise SpecError(
            f"{name}: apt does not know this package: its name is wrong, or the lists of packages "
            f"are missing or old; {_STALE}, and `apt-cache pkgnames linux-image-` lists the names",
            key="PACKAGE",
        )
    parts[plain] = about
    relations = ", ".join(about.get(key, "") for key in ("Pre-Depends", "Depends"))
    for relation in relations.split(","):
        found = _PART.fullmatch(relation.split("|")[0].strip())
        if found and found["name"] not in parts:
            version = f"={found['version']}" if found["relation"] == "=" else ""
            _follow(found["name"] + version, parts)


def _about(package: str) -> dict[str, str]:
    """Return what apt knows of a package, by field; nothing if it does not know it."""
    ran = _run(["apt-cache", "show", "--no-all-versions", package], None)
    if ran.returncode:
        return {}
    lines = ran.stdout.strip().split("\n\n")[0].splitlines()
    return dict(line.split(": ", 1) for line in lines if re.match(r"[A-Za-z0-9-]+: ", line))


def _advice(said: str) -> str:
    if "404" in said or "Can't find a source" in said:
        return f"; {_STALE}"
    return f"; check this computer's network; {_STALE}"


def _failure(what: str, said: str, folder: Path, advice: Callable[[str], str]) -> RedtailError:
    """Return the error for what a program of apt or dpkg has said."""
    lines = [line.removeprefix("E: ") for line in said.splitlines() if "W: " not in line[:3]]
    reason = " ".join(line.strip() for line in lines if line.strip()) or "no reason was told"
    if "No space left" in said or "enough free space" in said:
        return StoreError(
            f"{folder.parent}: {what}: {reason}; make room, or REDTAIL_KERNELS=DIR chooses "
            "another folder"
        )
    return RedtailError(f"{what}: {reason}{advice(said)}")


def _run(words: Sequence[str], folder: Path | None) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder; with Ctrl-C it ends, and so do the programs that it started."""
    process = subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, errors = process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(words, process.returncode, out, errors)
