"""The root filesystem of programs that are taken from this computer, with all that they need.

A path of this computer is the same path in the guest. Programs are those that the words of command
lines name, and their libraries are found by reading (`elf`). What a program opens by itself, such
as its configuration or a plug-in, is not known, and is named by the user. An interpreter of Python
is asked for the folders of its modules; no other program is started.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from redtail.backends.virtual import elf, roots
from redtail.errors import SpecError

KEY = f"{roots.KEY}.with"

STANDARD = ("/usr/local/bin", "/usr/bin", "/bin")
"""The PATH in the guest (crates/live/src/pairs.rs).

A program that is elsewhere on this computer has a link in `_OWN`.
"""

_OWN = "/usr/local/bin"

_MOST_LINKS = 40
"""Links on the way to a file (`MAXSYMLINKS`, linux/namei.h)."""

_PYTHON = re.compile(r"python(3(\.\d+)?)?")

# What Python's library has beside the library: its own tests, programs with windows, installers;
# what is needed to compile against it, and what it has compiled for its options -O and -OO.
_NOT_OF_PYTHON = re.compile(
    r"tests?|idlelib|tkinter|_tkinter\..*|turtledemo|ensurepip|lib2to3|pip|setuptools|"
    r"(site|dist)-packages|config-3\..*|.*\.a|.*\.opt-[12]\.pyc"
)

_ASK_PYTHON = (
    "import json, sys; print(json.dumps([sys.executable, sys.path, sys.prefix, sys.base_prefix]))"
)
_PATIENCE_S = 60.0


def collected(
    lines: Iterable[str], further: Sequence[str] = (), files: Sequence[Path] = ()
) -> roots.Root:
    """Return the root with the programs of command lines.

    Args:
        lines: command lines for `sh`.
        further: programs by their names, and files and folders by their paths.
        files: what is put into the working folders: what these need is taken, not they themselves.

    Raises:
        SpecError: something is missing, damaged or too large.
    """
    found = _Collector()
    found.links()
    found.program("sh", required=True)
    for line in lines:
        for word in _words(line):
            found.program(word)
    for name in further:
        found.named(name)
    for file in files:
        found.need_of(file)
    return found.builder.built()


def _words(line: str) -> list[str]:
    """Return the words of a command line that can name programs."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    words.commenters = ""
    try:
        found = list(words)
    except ValueError:  # a quotation that does not end; sh will say so
        found = line.split()
    # A line within a line, as in `sh -c "a; b"`.
    inner = [each for word in found if " " in word for each in _words(word) if each != word]
    return [word for word in (*found, *inner) if re.fullmatch(r"[\w./+-]*[\w+]", word)]


class _Collector:
    """Takes files of this computer, each once."""

    def __init__(self) -> None:
        self.builder = roots.Builder("the programs for the guest", KEY)
        self._taken: set[str] = set()

    def links(self) -> None:
        """Take the links at the top, by which scripts find `/bin/sh` in `/usr/bin`."""
        for name in ("bin", "sbin", "lib", "lib64"):
            self._real(Path("/", name))

    def named(self, name: str) -> None:
        """Take a program by its name, or a file or a folder by its path."""
        if "/" not in name:
            self.program(name, required=True)
            return
        path = Path(os.path.expanduser(name))
        if not path.is_absolute() or not path.exists():
            raise SpecError(
                f"{name}: {'no such file or folder' if path.is_absolute() else 'is relative'}; "
                "accepted: the name of a program, or an absolute path of this computer",
                key=KEY,
            )
        if _PYTHON.fullmatch(path.name) and path.is_file():
            self._python(path.name, str(path))
        elif path.is_dir():
            self._folder(path)
        else:
            self._file(path)

    def program(self, word: str, *, required: bool = False) -> None:
        """Take the program that a word names, if it names one."""
        found = shutil.which(word) if "/" not in word or word.startswith("/") else None
        if found is None:
            if required:
                raise SpecError(
                    f"the program {word} is not installed on this computer; accepted: the name of "
                    "a program in PATH, or an absolute path",
                    key=KEY,
                )
            return
        if _PYTHON.fullmatch(Path(found).name):
            self._python(word, found)
            return
        self._file(Path(found))
        if "/" not in word and os.path.dirname(found) not in STANDARD:
            self._link(f"{_OWN}/{word}", found)

    def _link(self, at: str, to: str) -> None:
        if at not in self._taken:
            self._taken.add(at)
            self.builder.add(at.lstrip("/"), stat.S_IFLNK, os.fsencode(to))

    def _file(self, path: Path, *, program: bool = True) -> None:
        """Take a file at its path, with the links that lead there, and what it needs.

        Args:
            path: the file.
            program: whether the interpreter of a script is taken as well.
        """
        real = self._real(path)
        if real in self._taken:
            return
        self._taken.add(real)
        if real.split("/")[1] in roots.MOUNTED:
            raise self.builder.refused(
                f"{real} is in a folder of which the guest has its own; accepted: programs outside "
                f"of {', '.join(f'/{name}' for name in roots.MOUNTED)}"
            )
        place = Path(real)
        mode = place.stat().st_mode
        data = self.builder.read(place)
        self.builder.add(real.lstrip("/"), mode, data)
        if program or data[:2] != b"#!":
            self._needed(place, data, ())

    def _real(self, path: Path) -> str:
        """Return the path of a file without links, which are taken."""
        done, left, links = "", [part for part in str(path).split("/") if part], 0
        while left:
            part = left.pop(0)
            if part == ".":
                continue
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            here = f"{done}/{part}"
            if not os.path.islink(here):
                done = here
                continue
            links += 1
            if links > _MOST_LINKS:
                raise self.builder.refused(f"{path} is a link that leads in a circle")
            to = os.readlink(here)
            self._link(here, to)
            left = [each for each in to.split("/") if each] + left
            done = "" if to.startswith("/") else done
        return done

    def need_of(self, path: Path) -> None:
        """Take what a file needs, and not the file itself."""
        if path.is_dir():
            for _, each in roots.walked(path, self.builder):
                if each.is_file() and not each.is_symlink():
                    self.need_of(each)
        elif path.is_file():
            self._needed(path, self.builder.read(path), ())

    def _needed(self, path: Path, data: bytes, inherited: tuple[str, ...]) -> None:
        """Take the loader and the libraries of an ELF file, or the interpreter of a script."""
        if data[:2] == b"#!":
            self._interpreter(data)
            return
        try:
            file = elf.read(data)
        except ValueError as error:
            raise self.builder.refused(f"{path} cannot be loaded: {error}") from None
        if file is None:
            return
        if file.loader:
            self._library(Path(file.loader), inherited)
        place = path.parent
        early = tuple(elf.expanded(folder, place) for folder in file.early)
        inherited = (*(early if not file.own else ()), *inherited)
        for name in file.needed:
            found = elf.library(name, file, place, inherited)
            if found is None:
                raise self.builder.refused(
                    f"{path} needs the library {name}, which is not on this computer; accepted: a "
                    "program that runs on this computer"
                )
            self._library(found, inherited)

    def _library(self, path: Path, inherited: tuple[str, ...]) -> None:
        real = self._real(path)
        if real in self._taken:
            return
        self._taken.add(real)
        data = self.builder.read(Path(real))
        self.builder.add(real.lstrip("/"), 0o755, data)
        if str(path.parent) not in elf.DEFAULTS and not inherited:
            # The guest's loader has no list of further folders.
            self._link(f"{elf.DEFAULTS[-1]}/{path.name}", str(path))
        self._needed(Path(real), data, inherited)

    def _interpreter(self, data: bytes) -> None:
        words = data[2:4096].split(b"\n", 1)[0].decode(errors="replace").split()
        if words and words[0].startswith("/") and os.path.isfile(words[0]):
            for word in words if words[0].endswith("/env") else words[:1]:
                self.program(word)

    def _folder(self, folder: Path, *, python: bool = False) -> None:
        """Take a folder at its path; links in it to files elsewhere are taken with these.

        Args:
            folder: the folder.
            python: whether it has modules of Python, of which not all is needed.
        """
        real = Path(self._real(folder))
        for _, place in roots.walked(real, self.builder, _NOT_OF_PYTHON if python else None):
            if place.is_symlink():
                if place.is_file():
                    self._file(place, program=False)
                else:
                    self._link(str(place), os.readlink(place))
            elif place.is_file():
                self._file(place, program=False)

    def _python(self, word: str, program: str) -> None:
        """Take an interpreter of Python with its library, and a virtual environment's packages.

        Packages outside of one are too many, and are named by the user.
        """
        if f"python {program}" in self._taken:
            return
        self._taken.add(f"python {program}")
        own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        try:
            ran = subprocess.run(
                [program, "-I", "-c", _ASK_PYTHON],
                env=own,
                capture_output=True,
                text=True,
                errors="replace",
                check=True,
                timeout=_PATIENCE_S,
            )
            executable, path, prefix, base = json.loads(ran.stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise self.builder.refused(
                f"{program} does not say where its modules are: {error}"
            ) from None
        self._file(Path(executable))
        if prefix != base:
            self._file(Path(prefix, "pyvenv.cfg"))
        for each in map(Path, path):
            packages = each.name in ("site-packages", "dist-packages")
            if each.is_dir() and (not packages or (prefix != base and each.is_relative_to(prefix))):
                self._folder(each, python=True)
        if "/" not in word and os.path.dirname(executable) not in STANDARD:
            # A link would lead it past the file that tells of a virtual environment.
            text = f'#!/bin/sh\nexec {shlex.quote(executable)} "$@"\n'
            self.builder.add(f"{_OWN}/{word}".lstrip("/"), 0o755, text.encode())
