"""`redtail explore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redtail.cli.output import complain, say


def explore(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="An experiment, in TOML; without it the page's first scene."
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="N",
            help="The port on which the page is served; 0 is one that is free.",
        ),
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Open the laboratory in a browser: knobs, and two queues side by side. Ctrl-C ends it.

    The page simulates by itself, in the browser, and needs no network. It is served on this
    computer alone (127.0.0.1), under a path of random characters.
    """
    import contextlib
    import sys
    import threading
    import webbrowser

    from redtail import exploring

    more, fragment = ({}, "") if file is None else exploring.asked(file)
    page = exploring.folder()
    with (
        exploring.Server(page, port=port, more=more, fragment=fragment) as server,
        contextlib.suppress(KeyboardInterrupt),
    ):
        # A browser in the terminal keeps the command until it ends, and asks for files meanwhile.
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        complain("Ctrl-C ends it", "note")
        say(f"explore: {server.address}")
        sys.stdout.flush()
        if browser and not webbrowser.open(server.address):
            complain("no browser was found; open the address in one", "note")
        while serving.is_alive():
            serving.join(1)  # Windows interrupts no wait without an end
