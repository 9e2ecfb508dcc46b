"""Plug-ins to start from (`redtail init queue --lang c`): a commented one in each language.

Each language has a folder with its own files; the experiment and the README, with words to fill in,
are in `common`, and what describes the interface is in `interface`. There are no other modules.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from redtail import templates
from redtail.errors import SpecError
from redtail.files import path_of

_FOLDER = Path(__file__).parent

#: What is written by `redtail init` with `--lang`, and what it is about.
KINDS = {
    "queue": "A queue of your own, in Python, C, C++ or Rust (--lang)",
    "controller": "A congestion controller of your own, in C, C++ or Rust (--lang)",
}


@dataclass(frozen=True)
class Language:
    """A language of plug-ins.

    Attributes:
        title: its name.
        folder: the folder of its files.
        file: the ending of its files.
        interface: the file that describes the interface; none for Python.
        needs: what builds it, for the README.
    """

    title: str
    folder: str
    file: str
    interface: str = ""
    needs: str = ""


LANGUAGES = {
    "python": Language("Python", "python", "py"),
    "c": Language("C", "c", "c", "redtail_plugin.h", "clang and lld"),
    "c++": Language("C++", "cpp", "cpp", "redtail_plugin.h", "clang and lld"),
    "rust": Language(
        "Rust",
        "rust",
        "rs",
        "redtail_plugin.rs",
        "rustc and its target (rustup target add wasm32-unknown-unknown)",
    ),
}


def files(kind: str, language: str) -> dict[str, bytes]:
    """Return the files of a plug-in by their names, the experiment first.

    Raises:
        SpecError: there is no such plug-in or language.
    """
    if kind not in KINDS:
        raise SpecError(f"there is no plug-in {kind!r}; accepted: {', '.join(KINDS)}")
    accepted = [name for name, one in LANGUAGES.items() if (_FOLDER / kind / one.folder).is_dir()]
    if language not in accepted:
        raise SpecError(f"--lang {language}: accepted for {kind}: {', '.join(accepted)}")
    one = LANGUAGES[language]
    source = f"my_{kind}"
    compiled = bool(one.interface)
    words = {
        "@LANGUAGE@": one.title,
        "@CLASS@": f"{source}.wasm" if compiled else f"{source}.py:My{kind.capitalize()}",
        "@FILE@": f"{source}.{one.file}",
        "@BUILD@": "    make\n" if compiled else "",
        "@INTERFACE@": (
            f"The Makefile needs {one.needs}. `{one.interface}` describes the interface."
            if compiled
            else f"`redtail.{kind.capitalize()}` describes the methods."
        ),
    }
    found = {}
    for name in (f"my-{kind}.toml", "README.md"):
        text = (_FOLDER / kind / "common" / name).read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(word, value)
        found[name] = text.encode()
    own = _FOLDER / kind / one.folder
    for name in ("Makefile", f"{source}.{one.file}") if compiled else (f"{source}.py",):
        stored = own / (name if compiled else f"{name}.txt")
        found[name] = stored.read_bytes()
    if compiled:
        found[one.interface] = (_FOLDER / "interface" / one.interface).read_bytes()
    return found


def write(
    kind: str, language: str, out: str | os.PathLike[str] | None = None, *, force: bool = False
) -> list[Path]:
    """Write a plug-in with its experiment into a folder, by default `my-KIND`.

    Returns:
        The files, the experiment first.

    Raises:
        SpecError: there is no such plug-in or language; a file exists, then none is written; or one
            cannot be written.
    """
    folder = path_of(out if out is not None else f"my-{kind}")
    contents = {folder / name: content for name, content in files(kind, language).items()}
    templates.put(contents, shared=(), force=force)
    return list(contents)
