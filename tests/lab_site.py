"""The laboratory's page as a browser gets it: built by `make lab`, and served on this computer."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "target" / "lab"

SETTLED_MS = 60_000
"""How long a test waits for what must come; no test asks how long it took."""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012 (as the base class has it)
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path = BUILT) -> Iterator[str]:
    """Serve the page below a path of its own, and yield the address of the folder."""
    if not (folder / "index.html").exists():
        pytest.skip("the laboratory is not built: `make lab` builds it")
    handler = functools.partial(_Quiet, directory=str(folder.parent))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/{folder.name}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Lab:
    """The page in a browser, with all that it asked for and complained about.

    The page's CSP forbids to evaluate texts, so what is waited for are elements.
    """

    def __init__(self, browser: Any, site: str, page: str = "index.html") -> None:
        self.site = site
        self.view = browser.new_page()
        self.view.set_default_timeout(SETTLED_MS)
        self.asked: list[str] = []
        self.said: list[str] = []
        self.view.on("request", lambda request: self.asked.append(request.url))
        self.view.on("console", lambda message: self.said.append(message.text))
        self.view.on("pageerror", lambda error: self.said.append(str(error)))
        self.view.on("dialog", lambda dialog: self.said.append(f"dialog: {dialog.message}"))
        self.page = site + page

    def open(self, fragment: str = "") -> Lab:
        """Go to this fragment, and wait until a run of both queues is drawn."""
        self.view.goto("about:blank")
        self.view.goto(self.page + (f"#{fragment}" if fragment else ""))
        self.view.locator("body[data-draws]").wait_for(state="attached")
        return self

    def settle(self) -> Lab:
        """Wait until all replications of what is shown are there."""
        self.view.locator("body[data-done=true]").wait_for(state="attached")
        return self

    def part(self, name: str) -> Any:
        """The element of this name."""
        return self.view.locator(f"[data-part='{name}']")

    def knob(self, name: str) -> Any:
        """The slider or the menu of this knob."""
        return self.view.locator(f"[data-knob='{name}']")

    def field(self, name: str) -> str:
        """What the field beside a slider says."""
        return str(self.view.locator(f"[data-field='{name}']").input_value())

    def draws(self) -> int:
        """How often results have been drawn."""
        return int(self.view.locator("body").get_attribute("data-draws") or 0)

    def await_draw(self, before: int) -> Lab:
        """Wait until results have been drawn again."""
        self.view.locator(f"body:not([data-draws='{before}'])").wait_for(state="attached")
        return self

    def set(self, name: str, value: str) -> Lab:
        """Type a value into the field of a knob, and wait for what comes of it."""
        before = self.draws()
        self.view.locator(f"[data-field='{name}']").fill(value)
        self.view.locator(f"[data-field='{name}']").press("Enter")
        self.view.locator(f"[data-field='{name}']").blur()
        return self.await_draw(before)

    def toml(self) -> str:
        """The experiment file of what is shown."""
        self.part("toml").click()
        text = str(self.part("text").input_value())
        self.part("close").click()
        return text

    def run(self, text: str) -> None:
        """Put a text in place of the experiment file, and run it."""
        self.part("toml").click()
        self.part("text").fill(text)
        self.part("run-text").click()

    def charts(self, side: int) -> list[str]:
        """Pictures of the charts of a side."""
        canvases = self.part(f"side-{side}").locator("canvas")
        return [canvas.evaluate("it => it.toDataURL()") for canvas in canvases.all()]

    def table(self) -> list[list[str]]:
        """The rows of the table of measures."""
        rows = self.part("table").locator("tbody tr")
        return [row.locator("th, td").all_inner_texts() for row in rows.all()]

    def close(self) -> None:
        """Close it: it must have asked nobody else, and complained about nothing."""
        outside = [
            url for url in self.asked if not url.startswith((self.site, "about:", "blob:", "data:"))
        ]
        assert outside == [], "something outside was asked"
        assert self.said == []
        self.view.close()
