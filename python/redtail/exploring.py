"""Serves the page of the laboratory to a browser on this computer.

The page is a folder of static files, which `make lab` builds: in a checkout `target/lab`, in a
wheel `redtail/lab`. It has an engine of its own, in WebAssembly, and asks nobody else for anything.

What is served is decided before the first request: each file of the folder, and the experiment with
the traces that it names, by its path. A request asks for one of these or for nothing, so that there
is no way out of the folder. The server listens on the loopback address alone; a path of random
characters, which only the command prints, keeps other users of the computer out, and so does the
name of the host other sites in the browser that let their own name lead here (DNS rebinding).
"""

from __future__ import annotations

import http
import re
import secrets
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from redtail import experiment
from redtail.errors import RedtailError, SpecError

ADDRESS = "127.0.0.1"

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
"""What a file is by the ending of its name; any other is plain text."""

# As in the page itself, and that no other page may show it.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

# What the page takes for the path of a file in its address: up to five names (`lab/src/link.ts`).
_NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"
_PATH = re.compile(rf"{_NAME}(/{_NAME}){{0,3}}")

_SILENCE_S = 60.0
"""Seconds after which a connection on which nothing comes is closed; ours."""


def folder(package: Path | None = None) -> Path:
    """Return where the built page is.

    Args:
        package: the folder of redtail's package; by default of this one.

    Raises:
        RedtailError: it is not built.
    """
    package = package or Path(__file__).parent
    checkout = package.parents[1]
    in_checkout = (checkout / "lab" / "package.json").is_file()
    found = checkout / "target" / "lab" if in_checkout else package / "lab"
    if (found / "index.html").is_file():
        return found
    raise RedtailError(
        f"the page is not built: there is no {found / 'index.html'}; "
        + ("`make lab` builds it" if in_checkout else "a wheel of a release has it")
    )


def asked(file: Path) -> tuple[dict[str, Path], str]:
    """Check an experiment, and return what the page needs of it.

    Args:
        file: the experiment file.

    Returns:
        Its files by their paths below the page's folder, and the fragment of the address that names
        them.

    Raises:
        SpecError: it is not valid, or not for the page.
    """
    plan = experiment.prepare(file, load=False)
    if plan.code or plan.programs:
        raise SpecError(
            f"{file}: names code of yours, which the page does not run; "
            "accepted: queues and congestion controls of redtail (`redtail list`)"
        )
    if plan.form != "toml":
        raise SpecError(f"{file}: is no TOML; accepted: an experiment file in TOML")
    files = {f"experiment/{file.name if _PATH.fullmatch(file.name) else 'experiment.toml'}": file}
    for name in plan.inputs:
        if not _PATH.fullmatch(name):
            raise SpecError(
                f"{file}: names {name!r}, which the page does not open; accepted: a file in the "
                "folder of the experiment or below, by names of letters, digits and . _ - alone"
            )
        files[f"experiment/{name}"] = file.parent / name
    first, *others = files
    return files, f"file={first}" + "".join(f"&with={name}" for name in others)


class Server(ThreadingHTTPServer):
    """A server of a folder's files, each by its path.

    Attributes:
        files: the files by the paths of their addresses.
        address: of the page.
    """

    daemon_threads = True

    def __init__(
        self,
        page: Path,
        *,
        port: int = 0,
        more: Mapping[str, Path] | None = None,
        fragment: str = "",
    ) -> None:
        """Listen on the loopback address.

        Args:
            page: the folder of the page.
            port: where to listen; 0 lets the system choose.
            more: further files, by their paths below the folder.
            fragment: of the page's address.

        Raises:
            RedtailError: the port cannot be had.
        """
        within = f"/{secrets.token_urlsafe(16)}/"
        below = {
            path.relative_to(page).as_posix(): path
            for path in sorted(page.rglob("*"))
            if path.is_file() and path.resolve().is_relative_to(page.resolve())
        }
        self.files = {within + name: path for name, path in {**below, **(more or {})}.items()}
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise RedtailError(
                f"--port {port}: {error.strerror}; accepted: a port that is free, or without "
                "--port one that the system chooses"
            ) from None
        self.hosts = {f"{name}:{self.server_port}" for name in (ADDRESS, "localhost")}
        end = f"#{fragment}" if fragment else ""
        self.address = f"http://{ADDRESS}:{self.server_port}{within}index.html{end}"


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD for what the server has."""

    server: Server
    server_version = "redtail"
    sys_version = ""
    timeout = _SILENCE_S

    def do_GET(self) -> None:
        """Send a file."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Send what a file is."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        if self.headers.get("Host") not in self.server.hosts:
            self.send_error(http.HTTPStatus.MISDIRECTED_REQUEST)
            return
        path = self.server.files.get(urlsplit(self.path).path)
        try:
            content = None if path is None else path.read_bytes()
        except OSError:  # removed since, or built anew at this moment
            content = None
        if path is None or content is None:
            self.send_error(http.HTTPStatus.NOT_FOUND)
            return
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", TYPES.get(path.suffix, "text/plain; charset=utf-8"))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def end_headers(self) -> None:
        """Add what holds for every answer."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: requests are no news."""
