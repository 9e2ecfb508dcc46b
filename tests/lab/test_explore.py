"""`redtail explore` serves the page of the laboratory, and nothing else, to this computer alone."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from redtail import exploring
from redtail.cli import app
from redtail.errors import RedtailError, SpecError

ROOT = Path(__file__).parents[2]
SCENES = ROOT / "lab" / "scenes"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A folder like that of the built page, beside a file that is not the page's."""
    folder = tmp_path / "page"
    (folder / "scenes").mkdir(parents=True)
    (folder / "index.html").write_text("<title>page</title>")
    (folder / "redtail.wasm").write_bytes(b"\0asm\1\0\0\0")
    (folder / "lab.js").write_text("1")
    (folder / "scenes" / "a.toml").write_text('name = "é"')
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "way-out").symlink_to(tmp_path / "secret.txt")
    return folder


@pytest.fixture
def server(page: Path) -> Iterator[exploring.Server]:
    more, fragment = exploring.asked(SCENES / "cellular.toml")
    with exploring.Server(page, more=more, fragment=fragment) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def answered(
    server: exploring.Server, path: str, *, method: str = "GET", host: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection(exploring.ADDRESS, server.server_port, timeout=600)
    given = {"Host": f"{exploring.ADDRESS}:{server.server_port}" if host is None else host}
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    found = (answer.status, dict(answer.getheaders()), answer.read())
    connection.close()
    return found


def below(server: exploring.Server) -> str:
    """The path of the page's folder."""
    return urlsplit(server.address).path.removesuffix("index.html")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("redtail.wasm", "application/wasm"),
        ("lab.js", "text/javascript; charset=utf-8"),
        ("scenes/a.toml", "text/plain; charset=utf-8"),
    ],
)
def test_a_file_of_the_page_is_served_as_what_it_is(
    server: exploring.Server, page: Path, name: str, kind: str
) -> None:
    status, headers, body = answered(server, below(server) + name)
    assert (status, body) == (200, (page / name).read_bytes())
    assert headers["Content-Type"] == kind
    assert headers["Content-Security-Policy"] == exploring.POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in exploring.POLICY
    assert answered(server, below(server) + name, method="HEAD")[::2] == (200, b"")


def test_the_experiment_and_its_trace_are_beside_the_page(server: exploring.Server) -> None:
    fragment = urlsplit(server.address).fragment
    assert fragment == "file=experiment/cellular.toml&with=experiment/cellular.trace"
    for part, file in zip(fragment.split("&"), ("cellular.toml", "cellular.trace"), strict=True):
        status, _, body = answered(server, below(server) + part.partition("=")[2])
        assert (status, body) == (200, (SCENES / file).read_bytes())


@pytest.mark.parametrize(
    "path",
    [
        "",
        "way-out",
        "../secret.txt",
        "scenes/../../secret.txt",
        "%2e%2e/secret.txt",
        "scenes/",
        "x",
    ],
)
def test_nothing_else_is_served(server: exploring.Server, path: str) -> None:
    status, headers, body = answered(server, below(server) + path)
    assert status == 404
    assert b"secret" not in body
    assert headers["Content-Security-Policy"] == exploring.POLICY


def test_without_the_random_path_there_is_nothing(server: exploring.Server, page: Path) -> None:
    assert len(below(server)) > 20
    assert answered(server, "/index.html")[0] == answered(server, "/")[0] == 404
    with exploring.Server(page) as other:
        assert below(other) != below(server)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1"])
def test_another_name_of_this_host_is_refused(server: exploring.Server, host: str) -> None:
    path = f"{below(server)}index.html"
    assert answered(server, path, host=host)[0] == 421
    assert answered(server, path, host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_sent(server: exploring.Server, method: str) -> None:
    assert answered(server, f"{below(server)}index.html", method=method)[0] == 501


def test_a_port_that_is_taken_is_told(server: exploring.Server, page: Path) -> None:
    with pytest.raises(RedtailError, match=r"--port \d+: .*; accepted: a port that is free"):
        exploring.Server(page, port=server.server_port)


def test_a_page_that_is_not_built_is_told(tmp_path: Path) -> None:
    package = tmp_path / "python" / "redtail"
    package.mkdir(parents=True)
    with pytest.raises(RedtailError, match="a wheel of a release has it"):
        exploring.folder(package)
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "package.json").touch()
    with pytest.raises(RedtailError, match=r"target/lab/index\.html; `make lab` builds it"):
        exploring.folder(package)
    built = tmp_path / "target" / "lab"
    built.mkdir(parents=True)
    (built / "index.html").touch()
    assert exploring.folder(package) == built


def test_a_wheel_has_the_page_beside_its_modules(tmp_path: Path) -> None:
    (tmp_path / "redtail" / "lab").mkdir(parents=True)
    (tmp_path / "redtail" / "lab" / "index.html").touch()
    assert exploring.folder(tmp_path / "redtail") == tmp_path / "redtail" / "lab"


def test_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="names code of yours, which the page does not run"):
        exploring.asked(ROOT / "examples" / "python-queue.toml")


def test_a_trace_whose_path_the_page_does_not_take_is_refused(tmp_path: Path) -> None:
    shutil.copy(SCENES / "cellular.trace", tmp_path / "a b.trace")
    file = tmp_path / "a.toml"
    text = (SCENES / "cellular.toml").read_text().replace("cellular.trace", "a b.trace")
    file.write_text(text)
    with pytest.raises(SpecError, match=r"names 'a b\.trace', which the page does not open"):
        exploring.asked(file)


def test_a_mistake_in_the_file_is_told_before_anything_is_served(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exploring, "folder", lambda: page)
    file = tmp_path / "a.toml"
    file.write_text((SCENES / "bufferbloat.toml").read_text().replace("20 Mbit/s", "20 mbps"))
    found = CliRunner().invoke(app, ["explore", str(file), "--no-browser"])
    assert found.exit_code == 2
    assert "bottleneck.rate" in found.stderr


COMMAND = """
import sys
from pathlib import Path
from redtail import cli, exploring
page = Path(sys.argv.pop(1))
exploring.folder = lambda: page
cli.main()
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT for one process")
def test_the_command_prints_the_address_and_ends_with_ctrl_c(page: Path) -> None:
    words = [sys.executable, "-c", COMMAND, str(page), "explore", "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None and run.stderr is not None
        line = run.stdout.readline()
        found = re.fullmatch(r"explore: (http://127\.0\.0\.1:\d+/\S+/index\.html)\n", line)
        assert found
        address = urlsplit(found[1])
        connection = http.client.HTTPConnection(address.netloc, timeout=600)
        connection.request("GET", address.path)
        assert connection.getresponse().status == 200
        connection.close()
        run.send_signal(signal.SIGINT)
        assert run.wait(600) == 0
        assert run.stderr.read() == "note: Ctrl-C ends it\n"
