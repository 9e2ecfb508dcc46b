"""A measurement by programs of others: iperf3 for transfers, ping and irtt for probes.

They get the address of the server as numbers, so that they look up no name. What they print is read
within limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from typing import Any

import numpy as np

from redtail.errors import RedtailError
from redtail.lines.measure.client import addresses, each_phase
from redtail.lines.measure.options import Measuring
from redtail.lines.measure.record import LATE_S, Record
from redtail.lines.recordings import irtt, unix
from redtail.lines.recordings.documents import number, of_kind, parsed, part
from redtail.lines.recordings.echoes import LONGEST_LINE

MOST_PRINTED_B = 64_000_000
"""Bytes of a program's JSON that are read, as many as a measurement may have."""

BESIDE_S = 15.0
"""Time that a program may take besides the test, such as for connections over a full line."""

WRAP = 1 << 16
"""Numbers of ICMP's echoes come again after so many (RFC 792)."""

REPORT_S = 0.1
"""Time between two reports of iperf3: the least that it has (`-i`, iperf3(1))."""

MOST_SOCKET, MOST_BYTES = 1e9, 1e17


async def by_iperf3(host: str, port: int, options: Measuring, record: Record) -> None:
    """Measure with iperf3, and pings beside it.

    Raises:
        RedtailError: a program is not installed, or the server cannot be reached.
    """
    for program in ("iperf3", "ping"):
        _require(program)
    _, (address, _) = (await addresses(host, port))[0]
    async with _pinged(address, options, record):
        await each_phase(
            options, record, lambda name: _loaded(name, address, port, options, record)
        )


def _require(program: str) -> None:
    if shutil.which(program) is None:
        raise RedtailError(
            f"the program {program} is not installed; accepted: install it, or measure against "
            "`redtail measure --serve`, which needs no other program"
        )


@contextlib.asynccontextmanager
async def _pinged(address: str, options: Measuring, record: Record) -> AsyncIterator[None]:
    """Ping a host as long as the context lasts."""
    words = ("ping", "-n", "-i", f"{options.interval_s:g}", address)
    program = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
    )
    reading = asyncio.create_task(_echoes(program, record))
    try:
        yield
        if program.returncode is not None:
            assert program.stderr is not None
            told = (await program.stderr.read(LONGEST_LINE)).decode("utf-8", "replace").strip()
            raise RedtailError(f"{' '.join(words)}: it ended: {told or program.returncode}")
    finally:
        await _ended(program)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _echoes(program: asyncio.subprocess.Process, record: Record) -> None:
    """Note the round trips that ping prints; numbers without a line are of those that were lost."""
    assert program.stdout is not None
    places: dict[int, int] = {}
    last = None
    while data := await program.stdout.readline():
        text = data.decode("utf-8", "replace")
        for echo in unix.echoes([(0, text.rstrip())]):
            trip = float(echo.ms) / 1e3
            sent = record.now_s() - trip
            if last is None:
                count = echo.number
            else:
                count = echo.number + WRAP * round((last[0] - echo.number) / WRAP)
                missing = range(last[0] + 1, min(count, last[0] + WRAP // 2))
                for between in missing:
                    share = (between - last[0]) / (count - last[0])
                    places[between] = record.sent(last[1] + share * (sent - last[1]))
            place = places.pop(count, None)
            record.answered(record.sent(sent) if place is None else place, trip)
            if last is None or count > last[0]:
                last = (count, sent)


async def _ended(program: asyncio.subprocess.Process) -> None:
    """End a program as Ctrl-C does, and by force if it does not."""
    if program.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            program.send_signal(signal.SIGINT)
        try:
            async with asyncio.timeout(LATE_S):
                await program.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                program.kill()
            await program.wait()


async def _printed(words: tuple[str, ...], longest_s: float) -> Mapping[str, Any]:
    """Return the object that a program prints in JSON.

    Raises:
        RedtailError: it takes too long, prints too much or something else, or tells an error.
    """
    program = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert program.stdout is not None
    data = b""
    try:
        async with asyncio.timeout(longest_s):
            while chunk := await program.stdout.read(1 << 16):
                data += chunk
                if len(data) > MOST_PRINTED_B:
                    raise RedtailError(f"{words[0]} printed more than {MOST_PRINTED_B} bytes")
            await program.wait()
    except TimeoutError:
        raise RedtailError(f"{words[0]} took more than {longest_s:g} s") from None
    finally:
        await _ended(program)
    try:
        found = of_kind(parsed(data.decode("utf-8", "replace")), dict, "what it printed")
    except ValueError as error:
        raise RedtailError(f"{words[0]}: {error}") from None
    if isinstance(found.get("error"), str):
        raise RedtailError(f"{words[0]}: {found['error'][:200]}")
    told: Mapping[str, Any] = found
    return told


async def _loaded(name: str, address: str, port: int, options: Measuring, record: Record) -> None:
    """Load the line for a phase, and note what was received."""
    ways = {"down": ("-R",), "up": (), "both": ("--bidir",)}[name]
    words = (
        *("iperf3", "-c", address, "-p", str(port), "-J", "-i", f"{REPORT_S:g}"),
        *("-t", f"{round(options.load_s)}", "-P", str(options.streams), "--get-server-output"),
        *(("-C", options.congestion) if options.congestion else ()),
        *ways,
    )
    with record.phase(name):
        begin = record.now_s()
        told = await _printed(words, options.load_s + BESIDE_S)
        end = record.now_s()
    try:
        _note(told, begin, end, record)
    except ValueError as error:
        raise RedtailError(f"iperf3: {error}") from None


def _note(told: Mapping[str, Any], begin_s: float, end_s: float, record: Record) -> None:
    """Note what was received of transfers of iperf3.

    The client has what it received, and of what it sent only what it has written into sockets: what
    arrived is told by the server's own JSON, if it prints that (`iperf3 -s -J`), and otherwise as
    one sum at the end.

    Raises:
        ValueError: a value is impossible.
    """
    received = _courses(told, "iperf3")
    server = part(told, "server_output_json", "iperf3")
    sent = _courses(server, '"server_output_json"') if server else _sums(told)
    if sent and not server:
        record.notes.append(
            "the iperf3 server does not tell what it received over time, so that the rate up is a "
            "lower bound; `iperf3 -s -J -i 0.1` does"
        )
    every = [("down", course) for course in received.values()]
    every += [("up", course) for course in sent.values()]
    length = max((at for _, course in every for at, _ in course), default=0.0)
    # The test is somewhere in the program's time: before it and after it there is talk.
    shift = begin_s + max(end_s - begin_s - length, 0.0) / 2
    for way, course in every:
        made = record.connection(way)
        made.add(shift, 0)
        for at, total in course:
            made.add(min(shift + at, end_s), total)


def _courses(told: Mapping[str, Any], where: str) -> dict[float, list[tuple[float, int]]]:
    """Return of each connection that receives, times and the payload up to each."""
    found: dict[float, list[tuple[float, int]]] = {}
    for place, interval in enumerate(_list(told, "intervals", where), start=1):
        here = f'{where}: "intervals": value {place}'
        for stream in _list(of_kind(interval, dict, here), "streams", here):
            of_kind(stream, dict, here)
            if stream.get("sender"):
                continue
            at = number(stream, "end", here, 1e6) or 0.0
            got = number(stream, "bytes", here, MOST_BYTES) or 0.0
            course = found.setdefault(number(stream, "socket", here, MOST_SOCKET) or 0.0, [])
            course.append((at, int(got) + (course[-1][1] if course else 0)))
    return found


def _sums(told: Mapping[str, Any]) -> dict[float, list[tuple[float, int]]]:
    """Return of each connection that the client sent over, what was received in all."""
    found = {}
    for place, stream in enumerate(_list(part(told, "end", "iperf3"), "streams", '"end"')):
        here = f'"end": "streams": value {place + 1}'
        received = part(of_kind(stream, dict, here), "receiver", here)
        sender = part(stream, "sender", here)
        if not sender.get("sender"):
            continue
        at = number(received, "end", here, 1e6) or 0.0
        found[float(place)] = [(at, int(number(received, "bytes", here, MOST_BYTES) or 0.0))]
    return found


def _list(data: Mapping[str, Any], key: str, where: str) -> list[Any]:
    found: list[Any] = of_kind(data.get(key, []), list, f'{where}: "{key}"')
    return found


async def by_irtt(host: str, port: int, options: Measuring, record: Record) -> None:
    """Measure delays with irtt; the line is loaded by nobody, or by others.

    Raises:
        RedtailError: irtt is not installed, or its server does not answer.
    """
    _require("irtt")
    _, (address, _) = (await addresses(host, port))[0]
    place = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    interval, length = round(1e6 * options.interval_s), round(1e3 * options.idle_s)
    words = ("irtt", "client", "-i", f"{interval}us", "-d", f"{length}ms", "-Q", "-o", "-", place)
    with record.phase("idle"):
        begin = record.now_s()
        told = await _printed(words, options.idle_s + BESIDE_S)
        end = record.now_s()
    try:
        sent, trip, up, down = irtt.round_trips(told)
    except ValueError as error:
        raise RedtailError(f"irtt: {error}") from None
    # The test is somewhere in the program's time.
    shift = begin + max(end - begin - options.idle_s, 0.0) / 2
    for at, rtt, *ways in zip(sent + shift, trip, up, down, strict=True):
        place_of = record.sent(float(at))
        if np.isfinite(rtt):
            one_way = (float(ways[0]), float(ways[1])) if np.isfinite(ways).all() else None
            record.answered(place_of, float(rtt), one_way)
