"""Libraries that come with an extra of redtail, because most users do without them.

`pyproject.toml` says which extra brings which library. What is named here is the extra, so that an
error can say how to install it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redtail.errors import RedtailError


@contextmanager
def extra(name: str, what: str, kind: type[RedtailError] = RedtailError) -> Iterator[None]:
    """Say which extra to install, where a library that this block imports is not installed.

    Args:
        name: the extra that brings it.
        what: what needs the library, as a message begins.
        kind: the error that says so.

    Raises:
        RedtailError: the library is not installed.

    >>> with extra("tune", "the search"):
    ...     import a_library_that_nobody_has
    Traceback (most recent call last):
    redtail.errors.RedtailError: the search needs a_library_that_nobody_has, which is not \
installed; install it with: pip install 'redtail[tune]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise kind(
            f"{what} needs {error.name}, which is not installed; install it with: "
            f"pip install 'redtail[{name}]'"
        ) from error
