"""What commands about a line print: texts and tables, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def text_of(parts: Callable[[Console], Iterable[RenderableType]], width: int) -> str:
    """Return parts as text with lines of at most so many columns.

    Args:
        parts: returns texts, which have been escaped, and tables; it may measure them by the
            console.
        width: the columns.
    """
    from rich.console import Console

    console = Console(width=width, highlight=False, markup=False, emoji=False, color_system=None)
    with console.capture() as captured:
        for part in parts(console):
            console.print(part)
    # Tables fill their lines with spaces.
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
