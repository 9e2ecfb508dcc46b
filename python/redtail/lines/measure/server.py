"""The server of `redtail measure`: bounded in clients, time and bytes, and no amplifier.

A client that has completed TCP's handshake gets a token, and with it data, places for data, and
answers to probes, which go to the address of the handshake alone and are as large as the probes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from redtail.errors import RedtailError, SpecError
from redtail.lines.measure import protocol, stamps
from redtail.lines.measure.protocol import Hello, Refused

HELLO_S = 5.0
"""Time in which a connection has to say what it wants."""

MOST_WAITING = 32
"""Connections that have not said it yet."""

PROBES_PER_S, BURST = 1000, 200
"""Probes of a client that are answered: ten times MPS of draft-ietf-ippm-responsiveness (100 in a
second), and how many at once."""

MOST_CLIENTS, LONGEST_S, MOST_B = 100, 86_400.0, 10**15
"""What a server may be asked to give."""

MOST_AT_ONCE = 64
"""Probes that are answered before other work has its turn."""


@dataclass(frozen=True)
class ServerLimits:
    """What a server gives at most.

    Attributes:
        clients: sessions at the same time. By default 1: two clients would measure each other.
        longest_s: time of a session. By default 300 s: five times what a measurement takes.
        most_b: payload of a session. By default 10 GB: 40 s at 2 Gbit/s.
    """

    clients: int = 1
    longest_s: float = 300.0
    most_b: int = 10_000_000_000

    def __post_init__(self) -> None:
        if not 1 <= self.clients <= MOST_CLIENTS:
            raise SpecError(f"--clients {self.clients}: accepted: 1 to {MOST_CLIENTS}")
        if not 0 < self.longest_s <= LONGEST_S:
            raise SpecError(
                f"--longest {self.longest_s:g} s: accepted: more than 0, up to {LONGEST_S:g} s"
            )
        if not 1 <= self.most_b <= MOST_B:
            raise SpecError(f"--most {self.most_b} B: accepted: 1 B to {MOST_B // 10**12} TB")


@dataclass
class _Session:
    """A client's session.

    Attributes:
        address: from which its handshake came.
        begin_ns: when it began (`time.monotonic_ns`).
        end_s: when it ends at the latest (`time.monotonic`).
        left_b: payload that it may still send or receive.
        streams: its open transfers, by direction.
        tasks: what works for it.
        answers: answers to probes that it may have now; None before the first.
        answered_s: when that was counted.
        probes: how many were answered.
    """

    address: str
    begin_ns: int
    end_s: float
    left_b: int
    streams: dict[str, int] = field(default_factory=lambda: {"down": 0, "up": 0})
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    answers: float = BURST
    answered_s: float = 0.0
    probes: int = 0

    def may_answer(self, now_s: float) -> bool:
        """Return whether a probe may be answered, and count it if so: a token bucket."""
        gained = (now_s - self.answered_s) * PROBES_PER_S
        self.answers = min(self.answers + gained, BURST)
        self.answered_s = now_s
        if self.answers < 1:
            return False
        self.answers -= 1
        self.probes += 1
        return True


class Server:
    """A server that is bound to its ports.

    Args:
        bind: the address, as numbers; None for all of this computer.
        port: for TCP and UDP; 0 for one that is free.
        limits: what it gives at most.
        tell: is called with a line for each session that begins or ends.

    Attributes:
        port: the port it has.

    Raises:
        SpecError: the address is none of this computer's, or the port is taken.
    """

    def __init__(
        self,
        bind: str | None,
        port: int,
        limits: ServerLimits,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._limits = limits
        self._tell = tell
        self._sessions: dict[bytes, _Session] = {}
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._payload = memoryview(os.urandom(protocol.CHUNK_B))
        self._tcp, self._udp = _bound(bind, port)
        self.port: int = self._tcp.getsockname()[1]

    async def run(self) -> None:
        """Serve until the task is cancelled."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._udp, self._answer)
        try:
            while True:
                try:
                    connection, address = await loop.sock_accept(self._tcp)
                except OSError:
                    # No room for more files, or the client is gone already.
                    await asyncio.sleep(0.1)
                    continue
                if self._waiting >= MOST_WAITING:
                    protocol.cut_off(connection)
                    continue
                task = asyncio.create_task(self._attend(connection, address[0]))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            loop.remove_reader(self._udp)
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._tcp.close()
            self._udp.close()

    def _answer(self) -> None:
        """Answer probes that have come."""
        for _ in range(MOST_AT_ONCE):
            try:
                data, address, came_ns = stamps.receive(self._udp, protocol.PROBE.size + 1)
            except OSError:
                return
            if len(data) != protocol.PROBE.size:
                continue
            magic, token, number, *_ = protocol.PROBE.unpack(data)
            session = self._sessions.get(token) if magic == protocol.MAGIC else None
            if session is None or not isinstance(address, tuple):
                continue
            if address[0] != session.address or not session.may_answer(time.monotonic()):
                continue
            begin = session.begin_ns
            times = came_ns - begin, time.monotonic_ns() - begin
            answer = protocol.PROBE.pack(magic, token, number, *times)
            with contextlib.suppress(OSError):  # as if it had been lost
                self._udp.sendto(answer, address)

    async def _attend(self, connection: socket.socket, address: str) -> None:
        """Do what a connection asks for."""
        connection.setblocking(False)
        try:
            try:
                hello = await self._hello(connection)
                if hello.want == "session":
                    await self._session(connection, address)
                else:
                    await self._transfer(connection, address, hello)
            except Refused as error:
                await _say(connection, {"error": str(error)})
        except (OSError, TimeoutError, EOFError):
            pass
        finally:
            protocol.cut_off(connection)

    async def _hello(self, connection: socket.socket) -> Hello:
        self._waiting += 1
        try:
            async with asyncio.timeout(HELLO_S):
                data, rest = await read_line(connection)
        finally:
            self._waiting -= 1
        if rest:
            raise Refused("there is more than a line before the answer")
        return protocol.hello(data)

    async def _session(self, connection: socket.socket, address: str) -> None:
        if len(self._sessions) >= self._limits.clients:
            raise Refused(f"the server has {len(self._sessions)} clients, the most it takes")
        token = secrets.token_bytes(protocol.TOKEN_B)
        end = time.monotonic() + self._limits.longest_s
        session = _Session(address, time.monotonic_ns(), end, self._limits.most_b)
        self._sessions[token] = session
        self._tell(f"{address}: a measurement begins")
        try:
            told = {
                "token": token.hex(),
                "longest_ms": int(1000 * self._limits.longest_s),
                "most_b": self._limits.most_b,
                "congestion": protocol.congestion(connection),
            }
            await _say(connection, told)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.longest_s):
                    # The client says nothing more; it closes.
                    await asyncio.get_running_loop().sock_recv(connection, 1)
        finally:
            del self._sessions[token]
            for task in list(session.tasks):
                task.cancel()
            gone = self._limits.most_b - session.left_b
            self._tell(f"{address}: it ends; {gone} bytes, {session.probes} probes")

    async def _transfer(self, connection: socket.socket, address: str, hello: Hello) -> None:
        session = self._sessions.get(hello.token)
        if session is None or session.address != address:
            raise Refused("there is no such session")
        if session.streams[hello.want] >= protocol.MOST_STREAMS:
            raise Refused(f"a session has up to {protocol.MOST_STREAMS} connections a direction")
        protocol.set_congestion(connection, hello.congestion)
        task = asyncio.current_task()
        assert task is not None
        session.tasks.add(task)
        session.streams[hello.want] += 1
        try:
            await _say(connection, {"congestion": protocol.congestion(connection)})
            if hello.want == "down":
                await self._send(connection, session)
            else:
                await self._receive(connection, session)
        finally:
            session.streams[hello.want] -= 1
            session.tasks.discard(task)

    async def _send(self, connection: socket.socket, session: _Session) -> None:
        loop = asyncio.get_running_loop()
        while session.left_b > 0:
            part = self._payload[: min(len(self._payload), session.left_b)]
            session.left_b -= len(part)
            await loop.sock_sendall(connection, part)
            await asyncio.sleep(0)  # others have their turn even if the socket takes everything

    async def _receive(self, connection: socket.socket, session: _Session) -> None:
        loop = asyncio.get_running_loop()
        total = 0

        async def report() -> None:
            while True:
                now = time.monotonic_ns() - session.begin_ns
                await loop.sock_sendall(connection, protocol.REPORT.pack(now, total))
                await asyncio.sleep(protocol.REPORT_S)

        reports = asyncio.create_task(report())
        room = bytearray(protocol.CHUNK_B)
        try:
            while session.left_b > 0 and (count := await loop.sock_recv_into(connection, room)):
                total += count
                session.left_b -= count
                await asyncio.sleep(0)
        finally:
            reports.cancel()
            await asyncio.gather(reports, return_exceptions=True)


async def _say(connection: socket.socket, told: dict[str, object]) -> None:
    await asyncio.get_running_loop().sock_sendall(connection, protocol.line(told))


async def read_line(connection: socket.socket) -> tuple[bytes, bytes]:
    """Return the first line of a connection, and what came with it.

    Raises:
        Refused: the line is too long.
        EOFError: the connection was closed before its end.
    """
    loop = asyncio.get_running_loop()
    found = b""
    while b"\n" not in found:
        if len(found) >= protocol.LONGEST_LINE:
            raise Refused(f"a line has more than {protocol.LONGEST_LINE} bytes")
        data = await loop.sock_recv(connection, protocol.LONGEST_LINE)
        if not data:
            raise EOFError("the connection was closed")
        found += data
    told, _, rest = found.partition(b"\n")
    if len(told) >= protocol.LONGEST_LINE:
        raise Refused(f"a line has more than {protocol.LONGEST_LINE} bytes")
    return told, rest


def _bound(bind: str | None, port: int) -> tuple[socket.socket, socket.socket]:
    """Return a socket that listens and one for probes, of one port.

    Raises:
        SpecError: the address is none of this computer's, or the port is taken.
    """
    family = socket.AF_INET
    if bind is None:
        if socket.has_dualstack_ipv6():
            family = socket.AF_INET6
    else:
        family = _family(bind)
    place = bind if bind is not None else ("::" if family == socket.AF_INET6 else "0.0.0.0")
    listening = socket.socket(family, socket.SOCK_STREAM)
    probed = socket.socket(family, socket.SOCK_DGRAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for one in (listening, probed):
            one.setblocking(False)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(bind is not None))
        listening.bind((place, port))
        probed.bind((place, listening.getsockname()[1]))
        listening.listen(2 * protocol.MOST_STREAMS)
        stamps.ask(probed)
    except (OSError, OverflowError) as error:
        listening.close()
        probed.close()
        why = getattr(error, "strerror", None) or str(error)
        raise SpecError(
            f"--bind {place} --port {port}: {why}; accepted: an address of this computer, and a "
            "port that is free"
        ) from None
    return listening, probed


def _family(bind: str) -> socket.AddressFamily:
    try:
        found = socket.getaddrinfo(bind, None, flags=socket.AI_NUMERICHOST)
    except OSError:
        raise SpecError(
            f"--bind {bind}: accepted: an address of this computer as numbers, such as 192.0.2.1"
        ) from None
    return found[0][0]


def serve(
    bind: str | None = None,
    port: int = protocol.PORT,
    limits: ServerLimits | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Serve measurements of others until Ctrl-C.

    Args:
        bind: the address, as numbers; None for all of this computer.
        port: for TCP and UDP; 0 for one that is free.
        limits: what it gives at most.
        tell: is called with a line when it begins, and for each measurement.

    Raises:
        SpecError: the address is none of this computer's, or the port is taken.
        RedtailError: the system lets programs wait for sockets in no way that is known.
    """
    server = Server(bind, port, limits or ServerLimits(), tell)
    place = "all addresses" if bind is None else bind
    tell(f"serving on {place}, port {server.port} (TCP and UDP), until Ctrl-C")
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(server.run())
    except NotImplementedError:
        raise RedtailError(
            "redtail measure --serve: not on this system; accepted: Linux or macOS"
        ) from None
