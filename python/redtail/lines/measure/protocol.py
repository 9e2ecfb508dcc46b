"""What the client and the server of `redtail measure` say to each other.

A connection over TCP begins with a line of JSON in each direction. The first asks for a session,
and stays open as long as it lasts; its answer has a token. Others name the token and ask for data
down or up. Down, the server sends until it is told to stop. Up, it says ten times in a second what
it has received. Probes go over UDP to the same port. A probe has the token, so that only who has
completed TCP's handshake gets answers, to the address from which it did; an answer is as large as
its probe.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
from dataclasses import dataclass
from typing import Any

PORT = 61707
"""Among the ports that are never assigned (RFC 6335, section 6), above those that Linux gives to
clients (net.ipv4.ip_local_port_range: 32768 to 60999)."""

VERSION = 1

LONGEST_LINE = 512
"""Bytes of a line, with its end."""

TOKEN_B = 16
"""128 bits, which nobody guesses (RFC 4086, section 8.2.2)."""

TOKEN = re.compile(rf"[0-9a-f]{{{2 * TOKEN_B}}}", re.ASCII)
"""A token in a line."""

PROBE = struct.Struct("!4s16sIqq")
"""Magic, token, number, when the server received it and when it answered, in ns since the begin of
the session; zeros in a probe."""

MAGIC = b"rtm1"

REPORT = struct.Struct("!qq")
"""Time in ns since the begin of the session, and payload that was received up to it."""

REPORT_S = 0.1
"""Time between two reports of a transfer."""

CONGESTION = re.compile(r"[a-z0-9_-]{1,15}", re.ASCII)
"""Names of congestion controls: TCP_CA_NAME_MAX of Linux is 16, with the end of the text."""

CHUNK_B = 1 << 17

MOST_STREAMS = 32
"""Connections of a direction: twice MNP, the most of draft-ietf-ippm-responsiveness."""


class Refused(ValueError):
    """What the other end has said is not what the protocol has, or it has refused."""


@dataclass(frozen=True)
class Hello:
    """The first line of a connection.

    Attributes:
        want: "session", "down" or "up".
        token: of the session; empty to ask for one.
        congestion: the congestion control that the server takes; empty for its default.
    """

    want: str
    token: bytes = b""
    congestion: str = ""

    def to_line(self) -> bytes:
        """Return it as a line."""
        told: dict[str, Any] = {"redtail-measure": VERSION, "want": self.want}
        if self.token:
            told["token"] = self.token.hex()
        if self.congestion:
            told["congestion"] = self.congestion
        return line(told)


def line(told: dict[str, Any]) -> bytes:
    """Return a line of JSON."""
    return json.dumps(told).encode() + b"\n"


def fields(data: bytes) -> dict[str, Any]:
    """Return what a line of JSON has.

    Raises:
        Refused: it is none.
    """
    try:
        found = json.loads(data.decode("ascii"))
    except (ValueError, RecursionError):
        raise Refused("the other end does not speak the protocol of redtail measure") from None
    if not isinstance(found, dict):
        raise Refused("the other end does not speak the protocol of redtail measure")
    return found


def hello(data: bytes) -> Hello:
    """Return the first line of a connection.

    Raises:
        Refused: it is none; the text says what is accepted.
    """
    told = fields(data)
    version, want = told.get("redtail-measure"), told.get("want")
    token, congestion = told.get("token", ""), told.get("congestion", "")
    if version != VERSION:
        raise Refused(f"this server speaks version {VERSION} of the protocol")
    if want not in ("session", "down", "up"):
        raise Refused('"want": accepted: "session", "down", "up"')
    if not isinstance(token, str) or not (token == "" or TOKEN.fullmatch(token)):
        raise Refused(f'"token": accepted: {2 * TOKEN_B} hexadecimal digits')
    if not isinstance(congestion, str) or not (
        congestion == "" or CONGESTION.fullmatch(congestion)
    ):
        raise Refused('"congestion": accepted: the name of a congestion control')
    return Hello(want, bytes.fromhex(token), congestion)


def whole(told: dict[str, Any], key: str, most: int) -> int:
    """Return a number of an answer.

    Raises:
        Refused: it is none, or outside of 0 to the most.
    """
    value = told.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise Refused(f'the server\'s answer has no "{key}" from 0 to {most}')
    return value


def set_congestion(connection: socket.socket, name: str) -> None:
    """Let a connection send by a congestion control.

    Raises:
        Refused: the computer does not have it, or does not let users have it.
    """
    if not name:
        return
    if not hasattr(socket, "TCP_CONGESTION"):
        raise Refused(f"congestion control {name}: this system lets programs choose none")
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    except OSError as error:
        raise Refused(f"congestion control {name}: {error.strerror}") from None


def congestion(connection: socket.socket) -> str:
    """Return the congestion control of a connection; empty if the system does not tell it."""
    if not hasattr(socket, "TCP_CONGESTION"):
        return ""
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    name = told.split(b"\0")[0].decode("ascii", "replace")
    return name if CONGESTION.fullmatch(name) else ""


def cut_off(connection: socket.socket) -> None:
    """Close a connection at once: what was not sent yet is not sent any more (RST)."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
