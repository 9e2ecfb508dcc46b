from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browsing import ARGUMENTS, CHROMIUM


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium; Debian's package `chromium` has it")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=CHROMIUM,
            headless=True,
            args=list(ARGUMENTS),
            viewport={"width": 1200, "height": 900},
        )
        yield context
        context.close()
