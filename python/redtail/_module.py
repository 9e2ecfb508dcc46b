"""The native module, loaded when it is first needed, so that `redtail --help` does not load it."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from redtail.errors import RedtailError


def native() -> Any:
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
