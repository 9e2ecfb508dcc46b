"""When packets were received: by the kernel, where it tells, since a program is late at times."""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import time

_TIMESTAMPNS = 35
"""SO_TIMESTAMPNS of Linux, which Python does not name (include/uapi/asm-generic/socket.h)."""

_TIMESPEC = struct.Struct("@ll")

_ROOM = socket.CMSG_SPACE(_TIMESPEC.size) if hasattr(socket, "CMSG_SPACE") else 0

_TOGETHER_NS, _TRIES = 50_000, 5
"""Two clocks are read together within this time, in so many tries: the system may give the
processor to others between them."""

_LATEST_NS = 1_000_000_000
"""A stamp that is longer ago is not believed: the clock was set."""


def ask(connection: socket.socket) -> None:
    """Ask the kernel for the times of packets; without it the program's own are taken."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)


def receive(connection: socket.socket, most: int) -> tuple[bytes, object, int]:
    """Return a packet, the address it is from, and when it came (`time.monotonic_ns`).

    Raises:
        BlockingIOError: there is none.
        OSError: the system tells an error.
    """
    data, told, _, address = connection.recvmsg(most, _ROOM)
    now, at = _clocks()
    for level, kind, stamp in told:
        if (level, kind) == (socket.SOL_SOCKET, _TIMESTAMPNS) and len(stamp) == _TIMESPEC.size:
            seconds, nanos = _TIMESPEC.unpack(stamp)
            late = now - (1_000_000_000 * seconds + nanos)
            if 0 <= late <= _LATEST_NS:
                at -= late
    return data, address, at


def _clocks() -> tuple[int, int]:
    """Return the time of day and `time.monotonic_ns`, read together."""
    for _ in range(_TRIES):
        before = time.monotonic_ns()
        now = time.time_ns()
        after = time.monotonic_ns()
        if after - before < _TOGETHER_NS:
            break
    return now, (before + after) // 2
