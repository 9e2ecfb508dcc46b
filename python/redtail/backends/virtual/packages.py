"""Kernels from the packages of Debian and Ubuntu, without root."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from redtail.backends.virtual.suites import SYSTEM, Source, run
from redtail.errors import RedtailError, SpecError, StoreError

DEFAULTS = {"debian": "linux-image-cloud-amd64", "ubuntu": "linux-image-virtual"}
"""The package with the newest kernel for virtual machines, by distribution."""

_TOOLS = ("apt-cache", "apt-get", "dpkg-deb")
_INSTEAD = "`redtail kernel add NAME --image FILE --modules DIR` takes a kernel from files"
_IPROUTE2 = "iproute2"

# A name as Debian's Policy Manual, 5.6.1, and a version as 5.6.12 has it.
_PACKAGE = re.compile(r"([a-z0-9][a-z0-9+.-]+)(=[A-Za-z0-9.+:~-]+)?")
# What a kernel is made of: Debian has image and, in newer ones, binary, modules and base with the
# list of what is built in; Ubuntu has image, modules, and modules-extra with most of the queues,
# which no package depends on.
_PART = re.compile(
    r"(?P<name>linux-(?:image|binary|modules|base)-[a-z0-9+.-]+)(:\w+)?"
    r"(\s*\((?P<relation>[<=>]+)\s*(?P<version>[^)]+)\))?"
)
# What modules are built with: Debian has headers, those that all its kernels have, and programs.
_HEADERS = re.compile(
    r"(?P<name>linux-(?:headers|kbuild)-[a-z0-9+.-]+)(:\w+)?"
    r"(\s*\((?P<relation>[<=>]+)\s*(?P<version>[^)]+)\))?"
)
# The packages of libraries that programs need; others are for their installation.
_LIBRARY = re.compile(r"(?P<name>(?:lib[a-z0-9]|zlib1g)[a-z0-9+.-]*)(:\w+)?(\s*\(.*\))?")


@dataclass(frozen=True)
class Wanted:
    """What is to be downloaded.

    Attributes:
        image: the package with the image.
        version: its version.
        parts: the packages of the kernel, as apt-get takes them: NAME=VERSION.
        programs: those of iproute2 with its libraries; none if this computer's are used.
        download: bytes of all packages.
        installed: bytes of what is in them.
    """

    image: str
    version: str
    parts: tuple[str, ...]
    programs: tuple[str, ...]
    download: int
    installed: int

    @property
    def origin(self) -> str:
        """The package with the image and its version."""
        return f"{self.image} {self.version}"

    @property
    def iproute2(self) -> str:
        """The version of iproute2; empty if this computer's is used."""
        found = (part.removeprefix(f"{_IPROUTE2}=") for part in self.programs)
        return next((version for version in found if "=" not in version), "")


def resolve(package: str | None, source: Source = SYSTEM) -> Wanted:
    """Return what has to be downloaded for a package with a kernel, by the lists of apt.

    Args:
        package: its name, or NAME=VERSION; None for the distribution's in `DEFAULTS`.
        source: where packages come from; from another suite than this computer's, iproute2 is
            taken with the kernel, because this computer's may not know its queues.

    Raises:
        SpecError: apt does not know it, it is no kernel's, or this computer has no apt.
    """
    name = package if package is not None else _default()
    found = _PACKAGE.fullmatch(name)
    if found is None:
        raise SpecError(
            f"{name}: cannot be the name of a package; accepted: a name such as "
            "linux-image-cloud-amd64, or NAME=VERSION",
            key="PACKAGE",
        )
    parts: dict[str, Mapping[str, str]] = {}
    _follow(name, parts, source)
    for part in list(parts):
        if part.startswith("linux-modules-") and not part.startswith("linux-modules-extra-"):
            extra = part.replace("linux-modules-", "linux-modules-extra-", 1)
            version = parts[part].get("Version", "")
            if extra not in parts and (about := _about(f"{extra}={version}", source)):
                parts[extra] = about
    kernels = [part for part in parts if part.startswith("linux-image-")]
    if not kernels:
        raise SpecError(
            f"{name}: is not a package with a kernel, and depends on none; accepted: packages "
            "such as linux-image-cloud-amd64; `apt-cache pkgnames linux-image-` lists them",
            key="PACKAGE",
        )
    image = kernels[-1]  # the others depend on it
    programs: dict[str, Mapping[str, str]] = {}
    if source.suite:
        _follow_libraries(_IPROUTE2, programs, source)
    return _wanted(image, parts, programs)


def headers(origin: str, source: Source = SYSTEM) -> Wanted:
    """Return what has to be downloaded to build modules for a kernel from a package.

    Args:
        origin: the package with the kernel's image and its version.
        source: where packages come from.

    Raises:
        SpecError: it is no such package, or apt does not know its headers.
    """
    found = re.match(r"linux-image-(?:unsigned-)?(\S+) ([^\s,]+)", origin)
    if found is None:
        raise SpecError(
            f"{origin}: is no package with a kernel; accepted: a kernel from `redtail kernel "
            "fetch`; of a kernel of yours the build tree takes the place of headers",
            key="--kernel",
        )
    name, version = f"linux-headers-{found[1]}", found[2]
    parts: dict[str, Mapping[str, str]] = {}
    _follow(f"{name}={version}", parts, source, _HEADERS)
    return _wanted(name, parts, {})


def _wanted(
    name: str, parts: Mapping[str, Mapping[str, str]], programs: Mapping[str, Mapping[str, str]]
) -> Wanted:
    everything = [*parts.values(), *programs.values()]
    return Wanted(
        name,
        parts[name].get("Version", ""),
        _as_words(parts),
        _as_words(programs),
        sum(int(about.get("Size", 0)) for about in everything),
        sum(1024 * int(about.get("Installed-Size", 0)) for about in everything),
    )


def _as_words(packages: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    return tuple(f"{name}={about.get('Version', '')}" for name, about in packages.items())


def unpack(
    wanted: Wanted,
    folder: Path,
    progress: Callable[[str], None],
    source: Source = SYSTEM,
) -> tuple[Path, Path | None]:
    """Download packages and unpack them.

    Args:
        wanted: the packages.
        folder: a folder for the packages and what is in them.
        progress: is told what is being done.
        source: where packages come from.

    Returns:
        The folder with what is in the kernel's packages, and that of iproute2, if there is one.

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
    kernel = _downloaded(wanted, wanted.parts, folder / "kernel.deb", source)
    programs = _downloaded(wanted, wanted.programs, folder / "programs.deb", source)
    progress("unpacking it")
    _extract(kernel, folder / "unpacked")
    if not programs:
        return folder / "unpacked", None
    _extract(programs, folder / "programs")
    return folder / "unpacked", folder / "programs"


def _downloaded(wanted: Wanted, parts: tuple[str, ...], folder: Path, source: Source) -> list[Path]:
    """Download packages into a new folder and return their files."""
    folder.mkdir()
    if not parts:
        return []
    ran = source.run("apt-get", ["-q", "download", *parts], folder)
    if ran.returncode:
        raise source.failure(f"{wanted.image} cannot be downloaded", ran.stderr, folder.parent)
    files = sorted(folder.glob("*.deb"))
    if len(files) != len(parts):
        raise RedtailError(
            f"{wanted.image}: apt-get has downloaded {len(files)} of the {len(parts)} "
            f"packages {', '.join(parts)}"
        )
    return files


def _extract(files: list[Path], folder: Path) -> None:
    folder.mkdir()
    for file in files:
        ran = run(["dpkg-deb", "-x", str(file), str(folder)], folder)
        if ran.returncode:
            what = f"{file.name} cannot be unpacked"
            raise SYSTEM.failure(what, ran.stderr, folder.parent, advice="")


def require_apt() -> None:
    """Refuse a computer on which no package can be fetched.

    Raises:
        SpecError: it is none with x86-64, Linux and apt.
    """
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


def _follow(
    name: str,
    parts: dict[str, Mapping[str, str]],
    source: Source,
    part: re.Pattern[str] = _PART,
) -> None:
    """Enter a package and those parts of a kernel, or of its headers, that it depends on."""
    about = _about(name, source)
    plain = name.partition("=")[0]
    if not about:
        if source.suite:
            raise SpecError(
                f"{name}: {source.suite} has no such package; accepted: a package with a kernel, "
                "such as linux-image-cloud-amd64",
                key="PACKAGE",
            )
        raise SpecError(
            f"{name}: apt does not know this package: its name is wrong, or the lists of packages "
            f"are missing or old; {source.advice}, and `apt-cache pkgnames linux-image-` lists the "
            "names",
            key="PACKAGE",
        )
    parts[plain] = about
    for relation in _relations(about):
        found = part.fullmatch(relation)
        if found and found["name"] not in parts:
            version = f"={found['version']}" if found["relation"] == "=" else ""
            _follow(found["name"] + version, parts, source, part)


def _follow_libraries(name: str, parts: dict[str, Mapping[str, str]], source: Source) -> None:
    """Enter a package and the libraries that it needs, as far as apt knows them."""
    about = _about(name, source)
    if not about:
        return
    parts[name] = about
    for relation in _relations(about):
        found = _LIBRARY.fullmatch(relation)
        if found and found["name"] not in parts:
            _follow_libraries(found["name"], parts, source)


def _relations(about: Mapping[str, str]) -> list[str]:
    """Return what a package depends on: of alternatives, the first."""
    fields = ", ".join(about.get(key, "") for key in ("Pre-Depends", "Depends"))
    return [relation.split("|")[0].strip() for relation in fields.split(",")]


def _about(package: str, source: Source) -> dict[str, str]:
    """Return what apt knows of a package, by field; nothing if it does not know it."""
    ran = source.run("apt-cache", ["show", "--no-all-versions", package], None)
    if ran.returncode:
        return {}
    lines = ran.stdout.strip().split("\n\n")[0].splitlines()
    return dict(line.split(": ", 1) for line in lines if re.match(r"[A-Za-z0-9-]+: ", line))
