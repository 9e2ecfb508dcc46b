"""Names with a line each on what they are."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

_LEAST = 20  # columns that a narrow screen leaves to what is said of a name


def index(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Return a line for each name: the name, and the beginning of what is said of it.

    Args:
        rows: each name with a text.
        width: columns of the screen; a text that does not fit ends with an ellipsis.

    >>> index([("red", "Random Early Detection."), ("pi", "The PI controller holds it.")], 27)
    ['red  Random Early …', 'pi   The PI controller …']
    """
    widest = max(len(name) for name, _ in rows)
    room = max(width - widest - 2, _LEAST)
    return [
        f"{name:<{widest}}  {textwrap.shorten(about, room, placeholder=' …')}"
        for name, about in rows
    ]
