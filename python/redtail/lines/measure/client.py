"""A measurement against the server of redtail: transfers over TCP, and probes over UDP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from redtail.errors import RedtailError
from redtail.lines.measure import protocol, stamps
from redtail.lines.measure.options import Measuring
from redtail.lines.measure.protocol import Hello, Refused
from redtail.lines.measure.record import LATE_S, Connection, Record
from redtail.lines.measure.server import read_line

CONNECT_S = 10.0
"""Time in which a connection has to be there: TCP has sent its SYN four times by then (RFC 6298,
section 2: after 1, 3 and 7 s)."""

PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0
"""Time between two loads, at least and at most: it ends when the queue has drained."""

DRAINED_S = 0.005
"""A queue has drained when round trips are so near those of the idle line: TARGET of CoDel
(RFC 8289, section 4.3)."""

MOST_CLOCK_S = 1e9
"""The largest time of the server that is believed, in a probe."""

MOST_REPORTS = 20_000
"""Reports of a connection: twice what 1000 s have."""

FIRST_PROBES, FIRST_S = 8, 0.25
"""Probes that are sent before it is decided that UDP does not pass, and the time between them: 2 s
in all, more than any round trip on Earth and over a satellite."""

HANDSHAKES_S = 0.1
"""The least time between two handshakes: each takes a place for connections at the server."""


@dataclass(frozen=True)
class _Session:
    """What the server has given.

    Attributes:
        place: its address, for connections.
        family: of its address.
        token: what names the session.
        begin_s: when the session began, about, since the begin of the record.
        longest_s: how long it may last.
        most_b: payload that it may have.
        congestion: the congestion control there; empty if it is not told.
    """

    place: tuple[str, int]
    family: socket.AddressFamily
    token: bytes
    begin_s: float
    longest_s: float
    most_b: int
    congestion: str


async def measure(host: str, port: int, options: Measuring, record: Record) -> None:
    """Measure a line against the server of redtail.

    Args:
        host: the server.
        port: its port.
        options: what is measured.
        record: where it is noted.

    Raises:
        RedtailError: the server cannot be reached, or refuses.
    """
    async with _session(host, port, options, record) as session:
        prober = await _prober(session, options, record)
        probing = asyncio.create_task(prober.run())
        try:
            await each_phase(
                options, record, lambda name: _load(session, name, options, record, prober)
            )
        except Refused as error:
            raise RedtailError(f"{host}: {error}") from None
        finally:
            probing.cancel()
            await asyncio.gather(probing, return_exceptions=True)
            prober.close()


def least_s(options: Measuring) -> float:
    """Return how long a measurement takes at least: its phases, and a pause after each."""
    return sum(map(options.length_s, options.phases)) + PAUSE_S * len(options.phases)


async def each_phase(
    options: Measuring, record: Record, load: Callable[[str], Awaitable[None]]
) -> None:
    """Go through the phases: the line is idle, or is loaded and then drained.

    Args:
        options: what is measured.
        record: where it is noted.
        load: loads the line for a phase of this name.
    """
    idle: list[float] = []
    for name in options.phases:
        if name == "idle":
            with record.phase(name):
                await asyncio.sleep(options.idle_s)
            idle = record.series(0.0)
            continue
        await load(name)
        await _drained(record, idle)


@contextlib.asynccontextmanager
async def _session(
    host: str, port: int, options: Measuring, record: Record
) -> AsyncIterator[_Session]:
    """Ask the server for a session, which lasts as long as the context."""
    connection, session = await _asked(host, port, record)
    with contextlib.closing(connection):
        needed = least_s(options)
        if session.longest_s < needed:
            raise RedtailError(
                f"{host}: the server gives {session.longest_s:g} s, and the measurement takes "
                f"{needed:g} s or more; accepted: less --load, or a server with a larger --longest"
            )
        down = options.congestion or session.congestion or "not known"
        up = options.congestion or protocol.congestion(connection) or "not known"
        record.notes.append(f"TCP's congestion control: {down} down, {up} up")
        yield session


async def _asked(host: str, port: int, record: Record) -> tuple[socket.socket, _Session]:
    """Return the connection of a new session, and the session."""
    why = "has no address"
    for family, place in await addresses(host, port):
        try:
            async with asyncio.timeout(CONNECT_S):
                connection = await _connected(family, place)
                before = record.now_s()
                told, _ = await _hello(connection, Hello("session"))
            begin = (before + record.now_s()) / 2
            with contextlib.ExitStack() as refused:
                refused.callback(connection.close)
                session = _given(told, family, place, begin)
                refused.pop_all()
            return connection, session
        except Refused as error:
            raise RedtailError(f"{host}: {error}") from None
        except TimeoutError:
            why = f"does not answer within {CONNECT_S:g} s"
        except (OSError, EOFError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
    raise RedtailError(
        f"{host}, port {port}: {why}; accepted: a host with `redtail measure --serve`, and both "
        "TCP and UDP let through to its port"
    )


def _given(
    told: dict[str, object], family: socket.AddressFamily, place: tuple[str, int], begin_s: float
) -> _Session:
    """Return the session that an answer of the server gives.

    Raises:
        Refused: it gives none.
    """
    token, name = told.get("token"), told.get("congestion")
    if not (isinstance(token, str) and protocol.TOKEN.fullmatch(token)):
        raise Refused("the server's answer has no token")
    known = isinstance(name, str) and protocol.CONGESTION.fullmatch(name) is not None
    return _Session(
        place,
        family,
        bytes.fromhex(token),
        begin_s,
        protocol.whole(told, "longest_ms", 10**10) / 1000,
        protocol.whole(told, "most_b", 10**18),
        str(name) if known else "",
    )


async def addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    """Return the addresses of a host: the only name that is looked up, once."""
    try:
        rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise RedtailError(f"{host}: {why}; accepted: a host that is known") from None
    return [(family, place[:2]) for family, _, _, _, place in rows if isinstance(place[0], str)]


async def _connected(family: socket.AddressFamily, place: tuple[str, int]) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connection, place)
    except BaseException:
        connection.close()
        raise
    return connection


async def _hello(connection: socket.socket, hello: Hello) -> tuple[dict[str, object], bytes]:
    """Say what is wanted; returns the answer, and what came with it.

    Raises:
        Refused: the server refuses, or does not speak the protocol.
    """
    try:
        await asyncio.get_running_loop().sock_sendall(connection, hello.to_line())
        data, rest = await read_line(connection)
        told = protocol.fields(data)
        if "error" in told:
            raise Refused(f"the server refuses: {str(told['error'])[:200]}")
    except BaseException:
        connection.close()
        raise
    return told, rest


async def _prober(session: _Session, options: Measuring, record: Record) -> _Probing:
    """Return what probes: over UDP, or by TCP's handshakes where UDP does not pass."""
    prober = _Prober(session, options.interval_s, record)
    if await prober.passes():
        return prober
    prober.close()
    record.probe = "tcp-handshake"
    record.notes.append(
        "no probe over UDP was answered: delays are those of TCP's handshakes, in which a packet "
        "that is lost counts with the time until it is sent again"
    )
    return _Handshakes(session, max(options.interval_s, HANDSHAKES_S), record)


class _Probing(Protocol):
    """What probes.

    Attributes:
        apart_s: what the server's time is ahead of that of the record.
    """

    apart_s: float

    async def run(self) -> None:
        """Probe until the task is cancelled."""

    def close(self) -> None:
        """Close what is open."""


class _Handshakes:
    """Opens connections, and notes how long each takes to be there.

    Args:
        session: what the server has given.
        interval_s: time between two.
        record: where they are noted.
    """

    def __init__(self, session: _Session, interval_s: float, record: Record) -> None:
        self._session, self._interval_s, self._record = session, interval_s, record
        self.apart_s = -session.begin_s

    def close(self) -> None:
        """Close what is open: nothing is."""

    async def run(self) -> None:
        """Open connections until the task is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(self._probe())
                await asyncio.sleep(self._interval_s)

    async def _probe(self) -> None:
        begin = self._record.now_s()
        number = self._record.sent(begin)
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CONNECT_S):
                connection = await _connected(self._session.family, self._session.place)
            self._record.answered(number, self._record.now_s() - begin)
            protocol.cut_off(connection)


class _Prober:
    """Sends probes over UDP, and notes their answers.

    Args:
        session: what the server has given.
        interval_s: time between two probes.
        record: where they are noted.

    Attributes:
        apart_s: what the server's time is ahead of that of the record.
    """

    def __init__(self, session: _Session, interval_s: float, record: Record) -> None:
        self._session, self._interval_s, self._record = session, interval_s, record
        self._sent_ns: list[int] = []
        self._least_s = np.inf
        self.apart_s = -session.begin_s
        self._socket = socket.socket(session.family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.connect(session.place)
        stamps.ask(self._socket)

    async def passes(self) -> bool:
        """Return whether the first probes are answered."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._socket, self._receive)
        try:
            for _ in range(FIRST_PROBES):
                self._send()
                await asyncio.sleep(FIRST_S)
                if np.isfinite(self._least_s):
                    return True
            return False
        finally:
            loop.remove_reader(self._socket)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    async def run(self) -> None:
        """Send probes until the task is cancelled."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._socket, self._receive)
        try:
            due = loop.time()
            while True:
                self._send()
                due = max(due + self._interval_s, loop.time())
                await asyncio.sleep(due - loop.time())
        finally:
            loop.remove_reader(self._socket)

    def _send(self) -> None:
        number = len(self._sent_ns)
        probe = protocol.PROBE.pack(protocol.MAGIC, self._session.token, number, 0, 0)
        at = time.monotonic_ns()
        try:
            self._socket.send(probe)
        except BlockingIOError:
            return  # the host's own queue is full: nothing was sent
        except OSError:
            pass  # what an earlier probe has met, such as a closed port
        self._sent_ns.append(at)
        self._record.sent((at - self._record.begin_ns) / 1e9)

    def _receive(self) -> None:
        while True:
            try:
                data, _, came_ns = stamps.receive(self._socket, protocol.PROBE.size + 1)
            except OSError:
                return
            if len(data) == protocol.PROBE.size:
                self._note(data, came_ns)

    def _note(self, data: bytes, came_ns: int) -> None:
        """Note an answer, without the time that the server has taken (RFC 5905, section 8)."""
        magic, token, number, received_ns, answered_ns = protocol.PROBE.unpack(data)
        known = magic == protocol.MAGIC and token == self._session.token
        if not known or number >= len(self._sent_ns):
            return
        sent_ns = self._sent_ns[number]
        held_ns = answered_ns - received_ns
        if not 0 <= held_ns < came_ns - sent_ns or abs(received_ns) > MOST_CLOCK_S * 1e9:
            return
        rtt = (came_ns - sent_ns - held_ns) / 1e9
        sent, came = (at - self._record.begin_ns for at in (sent_ns, came_ns))
        up, down = (received_ns - sent) / 1e9, (came - answered_ns) / 1e9
        self._record.answered(number, rtt, (up, down))
        if rtt < self._least_s:
            self._least_s = rtt
            self.apart_s = (up - down) / 2


async def _load(
    session: _Session, name: str, options: Measuring, record: Record, prober: _Probing
) -> None:
    """Load the line for a phase."""
    ways = ("down", "up") if name == "both" else (name,)
    with record.phase(name):
        tasks = [
            asyncio.create_task(_stream(session, way, options, record, prober))
            for _ in range(options.streams)
            for way in ways
        ]
        try:
            done, _ = await asyncio.wait(tasks, timeout=options.load_s)
            _note_ends(done, name, session, record)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _note_ends(done: set[asyncio.Task[None]], name: str, session: _Session, record: Record) -> None:
    """Note connections that have ended on their own.

    Raises:
        Refused: the server has refused one.
    """
    for task in done:
        error = task.exception()
        if isinstance(error, Refused):
            raise error
        why = getattr(error, "strerror", None) or "the server has closed it"
        if isinstance(error, TimeoutError):
            why = f"it was not there within {CONNECT_S:g} s"
        record.notes.append(
            f"a connection of the phase {name} ended before its time: {why} (a measurement may "
            f"have {session.most_b} bytes there)"
        )


async def _stream(
    session: _Session, way: str, options: Measuring, record: Record, prober: _Probing
) -> None:
    """Send or receive over a connection until the task is cancelled, or it ends."""
    async with asyncio.timeout(CONNECT_S):
        connection = await _connected(session.family, session.place)
    try:
        if way == "up":
            protocol.set_congestion(connection, options.congestion)
        hello = Hello(way, session.token, options.congestion if way == "down" else "")
        _, rest = await _hello(connection, hello)
        received = record.connection(way)
        if way == "down":
            await _receive(connection, len(rest), received, record)
        else:
            await _send(connection, rest, received, record, prober)
    finally:
        protocol.cut_off(connection)


async def _receive(
    connection: socket.socket, total: int, received: Connection, record: Record
) -> None:
    loop = asyncio.get_running_loop()

    async def report() -> None:
        while True:
            received.add(record.now_s(), total)
            await asyncio.sleep(protocol.REPORT_S)

    reports = asyncio.create_task(report())
    room = bytearray(protocol.CHUNK_B)
    try:
        while count := await loop.sock_recv_into(connection, room):
            total += count
            await asyncio.sleep(0)  # others have their turn even if there is always something
    finally:
        reports.cancel()
        received.add(record.now_s(), total)


async def _send(
    connection: socket.socket, rest: bytes, received: Connection, record: Record, prober: _Probing
) -> None:
    loop = asyncio.get_running_loop()
    payload = os.urandom(protocol.CHUNK_B)

    async def send() -> None:
        while True:
            await loop.sock_sendall(connection, payload)
            await asyncio.sleep(0)

    sending = asyncio.create_task(send())
    told = rest
    try:
        while True:
            while len(told) >= protocol.REPORT.size:
                at_ns, total = protocol.REPORT.unpack_from(told)
                told = told[protocol.REPORT.size :]
                at = at_ns / 1e9 - prober.apart_s
                if at <= record.now_s() + LATE_S and len(received.at_s) < MOST_REPORTS:
                    received.add(at, total)
            data = await loop.sock_recv(connection, 64 * protocol.REPORT.size)
            if not data:
                return
            told += data
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _drained(record: Record, idle: list[float]) -> None:
    """Wait until the queue has drained after a load."""
    begin = record.now_s()
    await asyncio.sleep(PAUSE_S)
    near = (float(np.median(idle)) if idle else 0.0) + DRAINED_S
    while idle and record.now_s() - begin < LONGEST_PAUSE_S:
        last = record.series(record.now_s() - PAUSE_S / 2)
        if last and last[0] <= near:
            return
        await asyncio.sleep(0.1)
