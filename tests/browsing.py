"""Pages in a browser."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# What a browser in a test must not do: fetch updates, look for devices, keep a profile.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Browsed:
    """A page in the browser, with all that it asked for and complained about."""

    def __init__(self, browser: Any, text: str, file: Path) -> None:
        file.write_text(text, encoding="utf-8")
        self.view = browser.new_page()
        self.asked: list[str] = []
        self.said: list[str] = []
        self.view.on("request", lambda request: self.asked.append(request.url))
        self.view.on("console", lambda message: self.said.append(message.text))
        self.view.on("pageerror", lambda error: self.said.append(str(error)))
        self.view.goto(file.as_uri())
        self.uri = file.as_uri()

    def close(self) -> None:
        """Close it; it must have asked for nothing and complained about nothing."""
        assert self.asked == [self.uri], "something was fetched"
        assert self.said == []
        self.view.close()
