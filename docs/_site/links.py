"""The files of the repository that pages link to, and links to them that work on the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from pathlib import Path

# Code is left alone: fenced blocks, and spans of a line.
_CODE = re.compile(
    r"^(?P<fence>```+).*?^(?P=fence)$|`(?:[^`\n]|\n(?!\n))+`", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"(?<=\]\()(?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?(?=\))")

_LANGUAGES = {
    ".cc": "cpp",
    ".ipynb": "json",
    ".json": "json",
    ".py": "python",
    ".rs": "rust",
    ".tcl": "tcl",
    ".toml": "toml",
    ".yml": "yaml",
}


def targets(text: str) -> list[str]:
    """Return what a page links to inside the repository, without anchors."""
    found = [link["target"] for link in _LINK.finditer(_CODE.sub("", text))]
    return [target for target in found if target and "://" not in target]


def rewritten(text: str, replace: Callable[[str], str]) -> str:
    """Return the page with each target of a link replaced; `replace` takes and returns one."""

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        inside = target and "://" not in target
        return (replace(target) if inside else target) + (found["anchor"] or "")

    parts, end = [], 0
    for code in _CODE.finditer(text):
        # A link's text may be code; its target is behind it, in the next part.
        parts += [text[end : code.start()], code[0]]
        end = code.end()
    parts.append(text[end:])
    marked = "".join(part if place % 2 == 0 else _hidden(place) for place, part in enumerate(parts))
    changed = _LINK.sub(link, marked)
    return re.sub("\0(\\d+)\0", lambda found: parts[int(found[1])], changed)


def _hidden(place: int) -> str:
    return f"\0{place}\0"


def resolved(page: str, target: str) -> str:
    """Return the path in the repository of what a page's link names."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def site_name(path: str) -> str:
    """Return the name on the site of a file of the repository.

    Pages of docs/ keep their names and those above docs/ go beside them, as other pages of the
    repository do. Every other file becomes a page that shows it.
    """
    if path.startswith("docs/") and Path(path).suffix in {".gif", ".md", ".png", ".svg"}:
        return path.removeprefix("docs/")
    if path.endswith(".md"):
        return path
    return f"source/{path}.md"


def linked(pages: Iterable[str], root: Path) -> set[str]:
    """Return the files outside docs/, or in it and no pages, that pages link to.

    Pages outside docs/ that are reached in this way are read too.

    Args:
        pages: Paths of pages, from `root`.
        root: The repository.
    """
    found: set[str] = set()
    waiting = list(pages)
    read = set(waiting)
    while waiting:
        page = waiting.pop()
        for target in targets((root / page).read_text()):
            path = resolved(page, target)
            if path.startswith("..") or path in read or not (root / path).exists():
                continue
            if path.endswith(".md"):
                read.add(path)
                waiting.append(path)
                found.add(path)
            elif site_name(path).startswith("source/"):
                found.add(path)
    return found


def shown(path: str, root: Path) -> str:
    """Return a page, in Markdown, that shows a file or lists a folder of the repository."""
    head = f"---\ntitle: {path}\nsearch:\n  exclude: true\nhide: [toc]\n---\n\n# `{path}`\n\n"
    if (root / path).is_dir():
        names = sorted(
            f"{entry.name}/" if entry.is_dir() else entry.name for entry in (root / path).iterdir()
        )
        return head + "\n".join(f"- `{name}`" for name in names) + "\n"
    text = (root / path).read_text()
    fence = "`" * (1 + max(map(len, re.findall(r"`{3,}", text)), default=2))
    language = _LANGUAGES.get(Path(path).suffix, "text")
    return f"{head}{fence}{language}\n{text.rstrip()}\n{fence}\n"
