"""Tables in Markdown, and pages in which something is filled in between two marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_BLOCK = re.compile(r"<!-- (?P<mark>[^>]+?) -->\n.*?<!-- end -->", re.S)


def row(cells: Iterable[object]) -> str:
    """Return a row of a table, whose cells are Markdown; None is a cell without anything."""
    return "".join("| " if cell is None else f"| {cell} " for cell in cells) + "|"


def table(heads: Sequence[object], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a table, whose cells are Markdown.

    >>> table(("queue", "delay"), [("codel", "5 ms")])
    ['| queue | delay |', '|---|---|', '| codel | 5 ms |']
    """
    return [row(heads), "|" + "---|" * len(heads), *map(row, rows)]


def marks(page: str) -> list[str]:
    """Return the marks of a page: what stands in `<!-- MARK -->` before an `<!-- end -->`."""
    return [found["mark"] for found in _BLOCK.finditer(page)]


def filled(page: str, blocks: Mapping[str, Sequence[str]]) -> str:
    """Return a page with lines between some of its marks and the `<!-- end -->` of each."""

    def block(found: re.Match[str]) -> str:
        if (lines := blocks.get(found["mark"])) is None:
            return found[0]
        return "\n".join([f"<!-- {found['mark']} -->", "", *lines, "", "<!-- end -->"])

    return _BLOCK.sub(block, page)
