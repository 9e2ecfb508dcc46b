"""The native module, loaded when it is first needed, so that `redtail --help` does not load it.

Tests replace `module` here to give redtail a stand-in.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redtail.errors import Cancelled, RedtailError, RunError, SpecError


def module() -> Any:
    """Return the native module.

    Raises:
        RedtailError: it is not built, or built for another Python.
    """
    found = sys.modules.get("redtail._native")
    if found is not None:
        return found
    try:
        return importlib.import_module("redtail._native")
    except ImportError as error:
        raise RedtailError(
            f"redtail's native module cannot be loaded ({error}); build it with: make setup"
        ) from error


@contextmanager
def translated(failed: Callable[[Exception], Exception] | None = None) -> Iterator[None]:
    """Turn the native module's exceptions into the family of `redtail.errors`.

    Args:
        failed: returns what is raised where a class of the user failed.
    """
    loaded = module()
    try:
        yield
    except loaded.SpecError as error:
        raise SpecError(
            str(error),
            file=getattr(error, "file", None),
            line=getattr(error, "line", None),
            key=getattr(error, "key", None),
        ) from None
    except loaded.Cancelled:
        raise Cancelled() from None
    except (RedtailError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except getattr(loaded, "PluginFailed", ()) as error:
        raise (failed(error) if failed else error) from error.__cause__
    except BaseException as error:  # a panic in Rust arrives as a BaseException
        raise RunError(
            f"the engine failed: {error}\n"
            "This is a fault in redtail; please report it together with the experiment file."
        ) from error
