"""`redtail measure`: the server and its bounds, the client, what the network sends, the summary.

Real lines of known rate and delay are in `test_measure_live.py`. Here everything is on loopback,
where nothing is known of rates and delays but that there are some.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from redtail import lines
from redtail.cli import app, measure
from redtail.errors import RedtailError, SpecError
from redtail.lines.measure import client, programs, protocol, summary
from redtail.lines.measure.options import Measuring, place
from redtail.lines.measure.protocol import PROBE, REPORT, Hello, Refused
from redtail.lines.measure.record import MeasureState, Record
from redtail.lines.measure.run import Measured, measure_line
from redtail.lines.measure.server import Server, ServerLimits
from redtail.lines.recordings.measurement import Measurement, Phase, Transfer, parsed

LONG_S = 600.0
"""Only ends a test that fails."""

PLAIN = ServerLimits()

SHORT = Measuring(load_s=1.0, idle_s=1.0, streams=2)


@contextmanager
def serving(limits: ServerLimits = PLAIN, **more: Any) -> Iterator[Server]:
    """A server on loopback."""
    server = Server("127.0.0.1", 0, limits, **more)
    started, holder = threading.Event(), {}

    async def run() -> None:
        holder["task"] = asyncio.current_task()
        holder["loop"] = asyncio.get_running_loop()
        started.set()
        await server.run()

    def work() -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(run())

    thread = threading.Thread(target=work)
    thread.start()
    started.wait(LONG_S)
    try:
        yield server
    finally:
        holder["loop"].call_soon_threadsafe(holder["task"].cancel)
        thread.join(LONG_S)


def connected(server: Server, address: str = "127.0.0.1") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.port), LONG_S, (address, 0))
    made.settimeout(LONG_S)
    return made


def line(connection: socket.socket) -> dict[str, Any]:
    data = b""
    while not data.endswith(b"\n"):
        one = connection.recv(1)
        if not one:
            raise EOFError
        data += one
    found: dict[str, Any] = json.loads(data)
    return found


def asked(connection: socket.socket, hello: Hello) -> dict[str, Any]:
    connection.sendall(hello.to_line())
    return line(connection)


def session(server: Server) -> tuple[socket.socket, bytes]:
    """A session, once there is a place for it: one that is closed is free a moment later."""
    for _ in range(1000):
        connection = connected(server)
        with suppress(ConnectionError, EOFError, KeyError):
            return connection, bytes.fromhex(asked(connection, Hello("session"))["token"])
        connection.close()
        time.sleep(0.01)
    pytest.fail("the server takes no client")


def drained(connection: socket.socket) -> int:
    """The bytes that come until the connection is closed; it is closed here, too."""
    total = 0
    with connection, suppress(ConnectionResetError):
        while data := connection.recv(1 << 16):
            total += len(data)
    return total


# The server


def answers(server: Server, *probes: bytes, address: str = "127.0.0.1") -> list[bytes]:
    """What comes back for probes, before the answer to a last one that is known to be answered."""
    holder, token = session(server)
    last = PROBE.pack(protocol.MAGIC, token, 4_000_000_000, 0, 0)
    with (
        holder,
        socket.socket(type=socket.SOCK_DGRAM) as one,
        socket.socket(type=socket.SOCK_DGRAM) as sure,
    ):
        one.bind((address, 0))
        for each in probes:
            one.sendto(each, ("127.0.0.1", server.port))
        sure.settimeout(0.2)
        for _ in range(1000):  # it may be lost where many others wait
            sure.sendto(last, ("127.0.0.1", server.port))
            with suppress(TimeoutError):
                assert len(sure.recv(1000)) == len(last)
                break
        # The server answers in order, so what it answers is here.
        one.setblocking(False)
        found = []
        try:
            while True:
                found.append(one.recv(2000))
        except BlockingIOError:
            return found


def test_a_probe_with_the_token_is_answered_and_the_answer_is_no_larger() -> None:
    with serving(ServerLimits(clients=2)) as server:
        holder, token = session(server)
        probe = PROBE.pack(protocol.MAGIC, token, 7, 0, 0)
        (answer,) = answers(server, probe)
        magic, told, number, received, answered = PROBE.unpack(answer)
        assert (len(answer), magic, told, number) == (len(probe), protocol.MAGIC, token, 7)
        assert 0 < received <= answered
        holder.close()


def test_without_token_and_handshake_from_the_same_address_nothing_is_answered() -> None:
    with serving(ServerLimits(clients=2)) as server:
        holder, token = session(server)
        probe = PROBE.pack(protocol.MAGIC, token, 7, 0, 0)
        guessed = PROBE.pack(protocol.MAGIC, bytes(16), 7, 0, 0)
        other = PROBE.pack(b"xxxx", token, 7, 0, 0)
        assert not answers(server, guessed, other, probe[:-1], probe + b"\0", b"", bytes(1400))
        assert not answers(server, probe, address="127.0.0.2")
        holder.close()


def test_the_answers_of_a_session_are_bounded() -> None:
    with serving(ServerLimits(clients=2)) as server:
        holder, token = session(server)
        probe = PROBE.pack(protocol.MAGIC, token, 7, 0, 0)
        # As many as the socket's buffer holds, far faster than the server answers.
        assert 1 <= len(answers(server, *[probe] * 2000)) < 2000
        holder.close()


def test_clients_streams_and_bytes_are_bounded() -> None:
    with serving(ServerLimits(clients=1, most_b=100_000)) as server:
        holder, token = session(server)
        with connected(server) as second:
            assert "1 clients, the most" in asked(second, Hello("session"))["error"]
        down = connected(server)
        assert "error" not in asked(down, Hello("down", token))
        assert drained(down) <= 100_000
        with connected(server) as up:
            assert "error" not in asked(up, Hello("up", token))
            up.settimeout(LONG_S)
            assert drained(up) < 1000  # it closes, for nothing is left
        holder.close()
    with serving() as server:
        holder, token = session(server)
        some = [connected(server) for _ in range(protocol.MOST_STREAMS + 1)]
        told = [asked(each, Hello("up", token)) for each in some]
        assert [("error" in each) for each in told] == [False] * protocol.MOST_STREAMS + [True]
        for each in (*some, holder):
            each.close()


def test_a_session_ends_with_its_time_or_its_connection_and_its_transfers_with_it() -> None:
    said: list[str] = []
    with serving(ServerLimits(longest_s=0.5), tell=said.append) as server:
        holder, token = session(server)
        down = connected(server)
        assert "error" not in asked(down, Hello("down", token))
        assert drained(down) > 0 and drained(holder) == 0
        with connected(server) as late:
            assert asked(late, Hello("down", token))["error"] == "there is no such session"
    with serving(tell=said.append) as server:
        holder, token = session(server)
        down = connected(server)
        asked(down, Hello("down", token))
        holder.close()
        drained(down)
        holder, _ = session(server)  # its place is free again
        holder.close()
    assert said[0] == "127.0.0.1: a measurement begins" and " bytes, 0 probes" in said[1]


def test_a_token_is_for_the_address_that_got_it() -> None:
    with serving() as server:
        holder, token = session(server)
        with connected(server, "127.0.0.2") as other:
            assert asked(other, Hello("down", token))["error"] == "there is no such session"
        holder.close()


def mutants(count: int) -> Iterator[bytes]:
    """First lines that are nearly right, and bytes that are not."""
    draw = random.Random(5)
    right = Hello("down", bytes(range(16)), "cubic").to_line()
    values = [None, True, -1, 1, 2, 1e400, "", "x" * 400, [], {}, [[[]]], "down", "é", "\0"]
    for number in range(count):
        data = bytearray(right)
        if number % 3 == 0:
            for _ in range(draw.randrange(1, 6)):
                data[draw.randrange(len(data))] = draw.randrange(256)
        elif number % 3 == 1:
            told = json.loads(right)
            for key in draw.sample(sorted(told), 2):
                told[key] = draw.choice(values)
            data = bytearray(json.dumps(told).encode() + b"\n")
        else:
            data = bytearray(draw.randbytes(draw.randrange(1, 600)))
        yield bytes(data)


def test_a_first_line_is_read_or_refused() -> None:
    read = refused = 0
    for data in mutants(5000):
        try:
            hello = protocol.hello(data.partition(b"\n")[0])
        except Refused:
            refused += 1
        else:
            read += 1
            assert hello.want in ("session", "down", "up") and len(hello.token) in (0, 16)
    assert refused > 1000 and read > 0
    with pytest.raises(Refused):
        protocol.hello(b"[" * 100_000)


def test_a_server_stays_up_whatever_it_hears() -> None:
    with serving(ServerLimits(clients=2)) as server:
        for data in mutants(150):
            with connected(server) as one, suppress(OSError):  # it has closed already
                one.sendall(data + b"\n")
                one.shutdown(socket.SHUT_WR)
                drained(one)
        draw = random.Random(6)
        with socket.socket(type=socket.SOCK_DGRAM) as one:
            for _ in range(200):
                one.sendto(draw.randbytes(draw.randrange(0, 80)), ("127.0.0.1", server.port))
        # What says nothing has few places.
        silent = [connected(server) for _ in range(60)]
        for each in silent:
            each.close()
        holder, token = session(server)
        assert len(answers(server, PROBE.pack(protocol.MAGIC, token, 1, 0, 0))) == 1
        holder.close()


@pytest.mark.parametrize(
    ("bind", "port"), [("192.0.2.1", 0), ("127.0.0.1", 70000), ("some.name.invalid", 0)]
)
def test_an_address_or_port_that_is_not_there_is_named(bind: str, port: int) -> None:
    with pytest.raises(SpecError, match=r"--bind .*accepted: an address of this computer"):
        Server(bind, port, PLAIN)


# The client


def test_a_measurement_has_rates_delays_and_phases_and_estimate_reads_it(tmp_path: Path) -> None:
    with serving() as server:
        states: list[Any] = []
        done = measure_line(f"127.0.0.1:{server.port}", SHORT, states.append)
    assert not done.stopped and not done.failed
    measured = done.measurement
    assert [phase.name for phase in measured.phases] == ["idle", "down", "up", "both"]
    assert (measured.server, measured.probe) == ("127.0.0.1", "udp")
    for phase in measured.phases[1:]:
        for name in ("down", "up"):
            carried = measured.load(name, phase)
            assert (carried is not None) == (phase.name in (name, "both"))
            if carried is not None:
                assert carried.streams == SHORT.streams and carried.scaled_bps > 1e6
    assert len(measured.sent_s) > 20 and np.isfinite(measured.rtt_s).mean() > 0.5
    assert {"idle", "down", "up", "both"} <= {state.phase for state in states}
    file = tmp_path / "line.json"
    file.write_text(measured.to_text())
    found = lines.estimate(file)
    # Loopback has no queue that stands, so nothing is said to be its rate.
    assert found.down.rate.bound == found.up.rate.bound == "at least"
    assert 0 < found.rtt.value < 1
    assert [row.phase for row in summary.rows(measured)] == ["idle", "down", "up", "both"]


def test_where_udp_does_not_pass_handshakes_are_the_probes(monkeypatch: Any) -> None:
    monkeypatch.setattr(Server, "_answer", lambda self: self._udp.recv(100))
    monkeypatch.setattr("redtail.lines.measure.client.FIRST_S", 0.01)
    with serving() as server:
        options = Measuring(load_s=1.0, idle_s=1.0, phases=("idle", "down"))
        measured = measure_line(f"127.0.0.1:{server.port}", options).measurement
    assert measured.probe == "tcp-handshake"
    assert any("no probe over UDP was answered" in note for note in measured.notes)
    assert np.isfinite(measured.rtt_s).sum() > 3 and not len(measured.one_way[0])


def test_what_a_server_refuses_is_told() -> None:
    with (
        serving(ServerLimits(longest_s=5)) as server,
        pytest.raises(RedtailError, match=r"the server gives 5 s, and the measurement takes"),
    ):
        measure_line(f"127.0.0.1:{server.port}", Measuring())
    with serving() as server:
        holder, _ = session(server)
        with pytest.raises(RedtailError, match="the server refuses: the server has 1 clients"):
            measure_line(f"127.0.0.1:{server.port}", SHORT)
        holder.close()
        options = Measuring(load_s=1.0, idle_s=1.0, congestion="no-such")
        done = measure_line(f"127.0.0.1:{server.port}", options)
        # The idle line was measured before a load was refused.
        assert "congestion control no-such" in done.failed and len(done.measurement.sent_s)
    with pytest.raises(RedtailError, match="accepted: a host with `redtail measure --serve`"):
        measure_line("127.0.0.1:1", SHORT)


def test_a_server_that_goes_away_leaves_what_was_measured() -> None:
    with serving(ServerLimits(most_b=1000)) as server:
        done = measure_line(f"127.0.0.1:{server.port}", SHORT)
    assert not done.failed
    assert any("may have 1000 bytes there" in note for note in done.measurement.notes)


@contextmanager
def pretending(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that is none: each connection is answered by a function."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def work() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    answer(connection)

        threading.Thread(target=work, daemon=True).start()
        yield listening.getsockname()[1]
        # Wakes the thread, which then finds nothing to accept.
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak the protocol"),
        (b"x" * 5000, "a line has more than 512 bytes"),
        (b"[1]\n", "does not speak the protocol"),
        (b"{}\n", "the server's answer has no token"),
        (b'{"token": "' + b"0" * 31 + b'z"}\n', "the server's answer has no token"),
        (b'{"token": "' + b"0" * 32 + b'", "longest_ms": -1}\n', 'no "longest_ms" from 0'),
        (b'{"error": "' + b"e" * 490 + b'"}\n', "the server refuses: eee"),
        (b"", "the connection was closed"),
        (b"[" * 511 + b"\n", "does not speak the protocol"),
    ],
)
def test_what_is_no_server_of_redtail_is_told(answer: bytes, told: str) -> None:
    def say(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(answer)

    with pretending(say) as port, pytest.raises(RedtailError, match=told):
        measure_line(f"127.0.0.1:{port}", SHORT)


def test_reports_that_cannot_be_are_left_out() -> None:
    record = Record("here", "udp", 10.0)
    draw = random.Random(8)
    with record.phase("up"):
        received = record.connection("up")
        for _ in range(5000):
            at, total = REPORT.unpack(draw.randbytes(REPORT.size))
            received.add(at / 1e9, total)
            received.add(draw.choice([-1e12, -1.0, 0.5, 1.0]), draw.choice([-5, 10**18, 2**62, 7]))
        for number in (-1, 0, 5, 10**12):
            record.answered(number, 0.1)
        first = record.sent(0.1)
        for rtt in (-1.0, 0.0, float("nan"), float("inf"), 1e9):
            record.answered(first, rtt)
        record.answered(first, 0.25)
        record.answered(first, 0.75)
    measured = record.measurement()
    assert measured.rtt_s.tolist() == [0.25]
    for each in measured.transfers:
        assert (np.diff(each.t_s) >= 0).all() and (np.diff(each.total_b) >= 0).all()
        assert each.total_b.max() <= 10**17


def test_answers_that_cannot_be_are_left_out() -> None:
    draw = random.Random(9)
    record = Record("here", "udp", 10.0)
    token = draw.randbytes(16)
    given = client._Session(("127.0.0.1", 9), socket.AF_INET, token, 0.0, 300.0, 10**9, "cubic")
    prober = client._Prober(given, 0.02, record)
    for _ in range(50):
        prober._send()
    second = 1_000_000_000
    for _ in range(20_000):
        stamps = [
            draw.choice([0, 1, -1, second, 2**62, -(2**63), draw.randrange(-second, second)])
            for _ in range(2)
        ]
        data = PROBE.pack(protocol.MAGIC, token, draw.randrange(60), *stamps)
        if draw.random() < 0.3:
            data = draw.randbytes(PROBE.size)
        prober._note(data, time.monotonic_ns())
    prober.close()
    assert abs(prober.apart_s) < 1e10
    measured = record.measurement()
    answered = measured.rtt_s[np.isfinite(measured.rtt_s)]
    # No answer is earlier than its probe, or older than the record.
    assert len(answered) > 10 and (answered > 0).all() and (answered < record.now_s()).all()
    text = measured.to_text()
    assert parsed(json.loads(text), len(text)).to_text() == text


# Nothing is sent but to the server that is named

WATCHED = """
import json, sys
seen = []
def hook(event, args):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.getnameinfo"):
        seen.append([event, str(args[0])])
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        seen.append([event, str(args[1])])
    elif event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        seen.append([event, str(args)])
sys.addaudithook(hook)
from redtail.cli import main
sys.argv = ["redtail", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    code = end.code or 0
json.dump([code, seen], open("seen.json", "w"))
"""


def test_nothing_is_sent_but_to_the_server_that_is_named(tmp_path: Path) -> None:
    with serving() as server:
        words = ["measure", f"localhost:{server.port}", "--load", "1 s", "--idle", "1 s"]
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(WATCHED), *words, "--save", "line.json"],
            cwd=tmp_path, check=True, capture_output=True, timeout=LONG_S,
        )  # fmt: skip
        code, seen = json.loads((tmp_path / "seen.json").read_text())
    assert code == 0
    looked_up = [told for event, told in seen if event.startswith("socket.get")]
    assert looked_up == ["localhost"]
    reached = {told for event, told in seen if event.startswith("socket.") and "(" in told}
    there = {f"('127.0.0.1', {server.port})", f"('::1', {server.port}, 0, 0)",
             f"('::1', {server.port})"}  # fmt: skip
    assert reached and reached <= there, reached - there
    assert not [event for event, _ in seen if not event.startswith("socket.")]


# The command


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["measure", *words])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "which server? accepted: HOST[:PORT], or --serve to be one"),
        (["h", "--serve"], "h: --serve measures nothing"),
        (["h", "--port", "5"], "--port: is for a server; accepted: with --serve"),
        (["h", "--phases", "down,sideways"], "--phases down,sideways: accepted: some of idle"),
        (["h", "--phases", "down,down"], "each once"),
        (["h", "--load", "1 ms"], "--load 0.001 s: accepted: 1 to 600 s"),
        (["h", "--interval", "1 us"], "--interval 1e-06 s: accepted: 0.002 to 1 s"),
        (["h", "--interval", "2 ms", "--load", "600 s"], "up to 500000 probes"),
        (["h", "--streams", "0"], "--streams 0: accepted: 1 to 32"),
        (["h", "--tcp", "a b"], "--tcp a b: accepted: a name such as cubic"),
        (["h:x"], "h:x: accepted: HOST, HOST:PORT or [ADDRESS]:PORT"),
        (["h:70000"], "with a port from 1 to 65535"),
        (["--", "-c"], "-c: accepted: HOST"),
        (["h", "--server-kind", "irtt", "--phases", "down"], "an irtt server answers probes alone"),
        (["h", "--save", "line.txt"], "a name that ends with .json or .json.gz"),
        (["h", "--save", "no/such/line.json"], "there is no folder no/such"),
        (["--serve", "--most", "5 s"], "--most 5 s: accepted: a size such as 10 GB"),
        (["--serve", "--clients", "0"], "--clients 0: accepted: 1 to 100"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_accepted(words: list[str], told: str) -> None:
    done = run(*words)
    assert done.exit_code == 2 and told in done.stderr


def test_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "line.json"
    file.write_text("mine")
    done = run("127.0.0.1:1", "--save", str(file))
    assert done.exit_code == 2 and "exists; accepted: another name" in done.stderr
    assert file.read_text() == "mine"


def test_the_summary_is_printed_and_the_file_is_written(tmp_path: Path) -> None:
    file = tmp_path / "line.json.gz"
    with serving() as server:
        done = run(f"127.0.0.1:{server.port}", "--load", "1 s", "--idle", "1 s", "--phases",
                   "idle,down", "--save", str(file))  # fmt: skip
        again = run(f"127.0.0.1:{server.port}", "--load", "1 s", "--idle", "1 s", "--phases",
                    "down", "--save", str(file), "--force", "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "responsiveness" in done.stdout and f"redtail estimate {file}" in done.stdout
    assert "progress: " in done.stderr and "progress" not in done.stdout
    told = json.loads(again.stdout)
    assert told["rows"][0]["phase"] == "down" and told["file"] == str(file)
    assert lines.estimate(file).form == "measurement"


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    with serving(ServerLimits(longest_s=1000)) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "redtail", "measure", f"127.0.0.1:{server.port}", "--idle",
             "600 s", "--load", "1 s", "--phases", "down,idle", "--save", "line.json"],
            cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stderr is not None and process.stdout is not None
        for text in process.stderr:
            if text.startswith("progress: idle"):
                break
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=LONG_S)
    assert process.returncode == 130 and "what was measured is kept" in error, error
    assert "data:    line.json" in out
    found = lines.estimate(tmp_path / "line.json")
    assert found.down.rate.known and "stopped by its user" in " ".join(found.cautions)


def test_a_place_is_a_host_with_a_port_or_without() -> None:
    assert place("[::1]:5000", 1) == ("::1", 5000) and place("fe80::1%eth0", 7)[1] == 7
    for wrong in ("", ":5", "[::1]x", "h:", "h:0", "h:99999", "h:1e3", "-h", "[]:5"):
        with pytest.raises(SpecError, match="accepted: HOST"):
            place(wrong, 1)


def test_the_graph_shows_the_course_of_rates_and_delay() -> None:
    states = deque(
        MeasureState("down", n, 60.0, {"down": 1e6 * n}, 0.030 if n < 5 else 0.120)
        for n in range(10)
    )
    shown = io.StringIO()
    Console(file=shown, width=100).print(measure._graph(states))
    heading, down, up, trip = shown.getvalue().splitlines()
    assert "down, 9 s of about 60 s" in heading
    assert "▁" in down and "█" in down and "9 Mbit/s down" in down
    assert "█" not in up
    assert "▂▂▂▂▂█████" in trip and "round trip 120 ms" in trip


def test_on_a_terminal_the_graph_is_drawn_while_it_measures(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with serving() as server, open(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            [sys.executable, "-m", "redtail", "measure", f"127.0.0.1:{server.port}", "--idle",
             "1 s", "--load", "2 s", "--phases", "idle,down", "--save", "line.json"],
            cwd=tmp_path, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # as Linux tells the end of a terminal
            while data := screen.read(1 << 16):
                shown += data
        assert process.wait(LONG_S) == 0
    text = shown.decode()
    assert "Ctrl-C ends it" in text and "█" in text and "progress: " not in text
    assert "data:    line.json" in text


# iperf3


def iperf3(server: bool = True, **more: Any) -> dict[str, Any]:
    """What iperf3 prints of a test in both directions over 2 s."""

    def told(receives: int, sends: int) -> list[dict[str, Any]]:
        return [
            {"streams": [
                {"socket": receives, "end": n / 10, "bytes": 1000 * receives, "sender": False},
                {"socket": sends, "end": n / 10, "bytes": 9_000_000, "sender": True},
            ]} for n in range(1, 21)
        ]  # fmt: skip

    ends = [{"sender": {"sender": True}, "receiver": {"end": 2.1, "bytes": 140_000}},
            {"sender": {"sender": False}, "receiver": {"end": 2.0, "bytes": 100_000}}]  # fmt: skip
    found: dict[str, Any] = {"intervals": told(5, 6), "end": {"streams": ends}}
    if server:
        found["server_output_json"] = {"intervals": told(7, 8)}
    return {**found, **more}


@pytest.mark.parametrize("server", [True, False])
def test_of_iperf3_what_was_received_counts(server: bool) -> None:
    record = Record("here", "icmp", 10.0)
    programs._note(iperf3(server), 1.0, 4.0, record)
    down, up = record.measurement().transfers
    assert (down.direction, up.direction) == ("down", "up")
    assert down.total_b[-1] == 5000 * 20 and len(down.t_s) == 21
    # Without the server's JSON what arrived up is told in all, and not over time.
    assert (up.total_b[-1], len(up.t_s)) == ((7000 * 20, 21) if server else (140_000, 2))
    assert down.t_s[0] >= 1.0 and up.t_s[-1] <= 4.0
    assert bool(record.notes) != server


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"intervals": 5}, '"intervals" is 5; accepted: a list'),
        ({"intervals": [{"streams": [{"bytes": -1}]}]}, '"bytes" is -1; accepted: 0 to'),
        ({"intervals": [{"streams": [{"socket": 2, "end": "x"}]}]}, '"end" is a text'),
        ({"server_output_json": {"intervals": [[]]}}, "value 1 is a list; accepted: an object"),
    ],
)
def test_what_iperf3_cannot_have_printed_is_refused(more: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        programs._note(iperf3(**more), 1.0, 4.0, Record("here", "icmp", 10.0))


# The summary


def course(rate: float, begin: float, end: float) -> Transfer:
    at = np.arange(begin, end + 0.05, 0.1)
    return Transfer("down", at, (rate / 8 * 1448 / 1500 * (at - begin)).astype(int))


def made(rtt: Callable[[Any], Any], phases: tuple[Phase, ...], **more: Any) -> Measurement:
    sent = np.arange(0, 40, 0.02)
    return Measurement(
        "0", "2026-11-28T12:00:00Z", "h", "udp", phases, sent, rtt(sent), **more
    )  # fmt: skip


def test_responsiveness_is_of_the_last_four_seconds_without_the_longest_twentieth() -> None:
    def rtt(sent: Any) -> Any:
        found = np.where(sent < 26, 9.0, 0.2)
        found[(sent >= 26) & (np.arange(len(sent)) % 20 == 0)] = 5.0
        return found

    (row,) = summary.rows(made(rtt, (Phase("down", 10, 30),)))
    assert row.responsiveness is not None
    assert row.responsiveness.value == pytest.approx(60 / 0.2) and not row.responsiveness.bound

    def losing(sent: Any) -> Any:
        return np.where(np.arange(len(sent)) % 5 == 0, np.nan, 0.2)

    (row,) = summary.rows(made(losing, (Phase("down", 10, 30),)))
    assert row.responsiveness is not None and row.responsiveness.bound == "at most"
    (row,) = summary.rows(made(losing, (Phase("down", 10, 15),)))
    assert row.responsiveness is not None and not row.responsiveness.known


def test_a_lost_probe_counts_as_longer_than_all_others() -> None:
    trips = np.arange(1, 1001) / 1000
    assert summary.delay(trips, 0.5).value == 0.5
    assert summary.delay(trips, 0.99).value == 0.99
    trips[::20] = np.nan
    assert summary.delay(trips, 0.99).bound == "at least"
    assert summary.delay(trips, 0.99).value == 1.0
    assert summary.delay(trips, 0.5).value == pytest.approx(0.53, abs=0.01)
    assert not summary.delay(np.full(500, np.nan), 0.5).known


def test_few_probes_tell_no_quantile() -> None:
    assert summary.delay(np.ones(298), 0.99).value is None
    assert summary.delay(np.ones(299), 0.99).value == 1.0
    assert summary.delay(np.ones(58), 0.95).value is None


def test_beside_the_other_direction_one_way_delays_tell_whether_a_queue_stood() -> None:
    both = (Phase("idle", 0, 9), Phase("both", 10, 30))
    sent = np.arange(0, 40, 0.02)
    way = -1000.0 + np.where((sent > 10) & (sent < 30), 0.05, 0.0)
    for down, known in ((way, True), (np.full(len(sent), -1000.0), False)):
        measured = made(
            lambda sent: np.full(len(sent), 0.1), both,
            transfers=(course(8e6, 10, 30),), one_way=(sent, way, down),
        )  # fmt: skip
        rate = summary.rows(measured)[1].rates["down"]
        assert (rate.bound == "") == known
        assert rate.value == pytest.approx(8e6, rel=0.03)
    without = made(lambda sent: np.full(len(sent), 0.1), both, transfers=(course(8e6, 10, 30),))
    assert summary.rows(without)[1].rates["down"].bound == "at least"


def test_what_two_clocks_go_apart_is_no_queue() -> None:
    phases = (Phase("idle", 0, 9), Phase("both", 100, 120))
    sent = np.arange(0, 130, 0.02)
    for ppm, known in ((90, False), (1000, True)):  # 9 ms and 100 ms in 100 s
        way = -1000.0 + 1e-6 * ppm * sent
        measured = made(
            lambda sent: np.full(len(sent), 0.1),
            phases,
            transfers=(course(8e6, 100, 120),),
            one_way=(sent, way, way),
        )
        assert (summary.rows(measured)[1].rates["down"].bound == "") == known


def test_nothing_measured_is_an_empty_summary() -> None:
    empty = Measured(made(lambda sent: np.full(len(sent), np.nan), ()))
    assert summary.rows(empty.measurement) == [] and empty.added == ""
