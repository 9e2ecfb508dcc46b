"""Recordings of a line, whatever their form."""

from __future__ import annotations

import codecs
import gzip
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from redtail.errors import SpecError
from redtail.extras import extra
from redtail.files import path_of
from redtail.lines.recordings import buffers, documents, texts, two
from redtail.lines.recordings.found import Direction, Found
from redtail.lines.recordings.texts import NoTextError, lines
from redtail.lines.recordings.values import given

FORMS = (
    "a capture (pcap or pcapng), a measurement of `redtail measure`, a data file of Flent "
    "(.flent.gz), JSON of iperf3, irtt, mtr, networkQuality or crusader, a log of ping, fping, "
    "hrPING or mtr, or a trace of mahimahi; each also packed by gzip"
)

TIMES_UNPACKED, LEAST_UNPACKED_B, MOST_UNPACKED_B = 100, 64_000_000, 4_000_000_000
"""What gzip packs may be so many times as large as the file, or have the least of bytes if that is
more, and never more than the most."""

MOST_PIPED_B = 1_000_000_000
"""Bytes that are read of a pipe, which cannot be read twice."""

MOST_GIVEN = 1e15
"""Largest rate in bit/s, and round trip in s, that a user gives: more is on no line."""

_CHUNK_B = 1 << 20
_BEGIN_B = 1 << 16

_GZIP = b"\x1f\x8b"
_CAPTURES = (
    b"\x0a\x0d\x0d\x0a",
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
)


def estimate(
    recording: str | os.PathLike[str],
    other: str | os.PathLike[str] | None = None,
    *,
    rtt_s: float | None = None,
    down_bps: float | None = None,
    up_bps: float | None = None,
    local: Sequence[str] = (),
    direction: str | None = None,
) -> Found:
    """Estimate the rate, round trip and buffer of a line, and who sent, from a recording of it.

    Args:
        recording: a capture, a measurement of `redtail measure`, the result of another test (Flent,
            iperf3, crusader, irtt, networkQuality), a log of ping, fping, hrPING or mtr, or a trace
            of mahimahi.
        other: a second recording, where each is of one direction.
        rtt_s: the base round trip in s, in place of what the recording tells.
        down_bps: the rate to the people at the line in bit/s, in place of the same.
        up_bps: the rate from them.
        local: of a capture: addresses and networks of the people.
        direction: "down" or "up": which direction a trace or a log of pings is of, where the data
            of a test went, or most bytes of a capture whose addresses do not tell.

    Raises:
        SpecError: a file cannot be read, or is no recording that is known; or two recordings are
            not of one direction each.
        RedtailError: libraries of the extra `recordings` are not installed.
    """
    path = path_of(recording)
    _refuse_impossible(rtt_s=rtt_s, down_bps=down_bps, up_bps=up_bps)
    if other is None:
        found = _told(path, local, direction, rtt_s)
    else:
        found = _of_two((path, path_of(other)), local, direction, rtt_s)
    return completed(found, rtt_s, down_bps, up_bps)


def _of_two(
    files: tuple[Path, Path], local: Sequence[str], direction: str | None, rtt_s: float | None
) -> Found:
    """Return what two recordings tell; traces do not say which direction they are of."""
    if direction is not None:
        raise SpecError(
            f"--direction {direction}: two recordings are of both directions; accepted: with one"
        )
    first, second = (_told(file, local, None, rtt_s) for file in files)
    try:
        for found in (first, second):
            two.require_one_way(found)
        if first.form in two.UNTOLD or second.form in two.UNTOLD:
            names = two.directions(first, second)
            if first.form in two.UNTOLD:
                first = _told(files[0], local, names[0], rtt_s)
            if second.form in two.UNTOLD:
                second = _told(files[1], local, names[1], rtt_s)
        return two.joined(first, second)
    except ValueError as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(f"{files[0]}, {files[1]}: {error}", file=str(files[0])) from None


def _told(path: Path, local: Sequence[str], direction: str | None, rtt_s: float | None) -> Found:
    """Return what a recording tells.

    Raises:
        SpecError: it cannot be read, or is none that is known.
    """
    try:
        with extra("recordings", f"{path}: an estimate from a recording"):
            return _estimate(path, local, direction, rtt_s)
    except ValueError as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(f"{path}: {error}", file=str(path)) from None
    except OSError as error:
        why = error.strerror or str(error)
        raise SpecError(f"{path}: cannot be read: {why}", file=str(path)) from None


def _refuse_impossible(**given_values: float | None) -> None:
    for name, value in given_values.items():
        if value is not None and not 0 < value <= MOST_GIVEN:
            accepted = f"a number above 0, up to {MOST_GIVEN:g}"
            raise SpecError(f"{name} = {value}: accepted: {accepted}", key=name)


def _estimate(
    path: Path, local: Sequence[str], direction: str | None, rtt_s: float | None
) -> Found:
    if path.is_dir():
        raise ValueError(f"is a folder; accepted: {FORMS}")
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(path.open("rb"))
        place: str | Path = path
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            accepted = f"up to {MOST_PIPED_B // 10**6} MB from a pipe; a file may have more"
            file = stack.enter_context(_copied(file, MOST_PIPED_B, accepted))
            place = _reopened(file)
        if file.read(2) == _GZIP:
            file = stack.enter_context(_unpacked(file))
            place = _reopened(file)
        file.seek(0)
        if (code := texts.UTF_16.get(file.read(2))) is not None:
            file = stack.enter_context(_in_utf_8(file, code))
        return _of_form(file, place, path, local, direction, rtt_s)


def _reopened(file: IO[bytes]) -> str:
    """Return a path by which the native module opens a temporary file.

    It has a name on Windows only, where the system removes it with its last handle.
    """
    return file.name if isinstance(file.name, str) else f"/dev/fd/{file.fileno()}"


def _unpacked(file: IO[bytes]) -> IO[bytes]:
    """Return what gzip has packed, in a file without a name: nothing can leave it behind."""
    size = os.fstat(file.fileno()).st_size
    most = min(max(TIMES_UNPACKED * size, LEAST_UNPACKED_B), MOST_UNPACKED_B)
    accepted = (
        f"{TIMES_UNPACKED} times its size or {LEAST_UNPACKED_B // 10**6} MB, and at most "
        f"{MOST_UNPACKED_B // 10**6} MB; gunzip unpacks what is larger"
    )
    file.seek(0)
    try:
        with gzip.open(file) as packed:
            return _copied(packed, most, accepted)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        text = str(error) or type(error).__name__
        raise ValueError(f"cannot be unpacked: {text}") from None


def _in_utf_8(file: IO[bytes], code: str) -> IO[bytes]:
    """Return a text in UTF-8 that is in UTF-16 and begins with its mark."""
    decoder = codecs.getincrementaldecoder(code)("replace")
    # What is left of a letter at the end of the file is no letter.
    recoded = _Recoded(file, lambda data: decoder.decode(data).encode("utf-8", "replace"))
    return _copied(recoded, 2 * os.fstat(file.fileno()).st_size + _CHUNK_B, "a text in UTF-8")


@dataclass(frozen=True)
class _Recoded:
    """A file of which each part that is read is translated."""

    file: IO[bytes]
    translated: Callable[[bytes], bytes]

    def read(self, size: int) -> bytes:
        while data := self.file.read(size):
            if made := self.translated(data):
                return made
        return b""


def _copied(source: Any, most: int, accepted: str) -> IO[bytes]:
    """Return the bytes of a source in a file without a name.

    Raises:
        ValueError: they are more than the most, or the file cannot be written.
    """
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryFile())
        total = 0
        while chunk := source.read(_CHUNK_B):
            total += len(chunk)
            if total > most:
                raise ValueError(f"holds more than {most // 10**6} MB; accepted: {accepted}")
            try:
                made.write(chunk)
            except OSError as error:
                raise ValueError(
                    f"cannot be unpacked in {tempfile.gettempdir()}: {error.strerror}"
                ) from None
        made.seek(0)
        stack.pop_all()
        return made


def _of_form(
    file: IO[bytes],
    place: str | Path,
    name: Path,
    local: Sequence[str],
    direction: str | None,
    rtt_s: float | None,
) -> Found:
    from redtail.lines.recordings import crusader

    file.seek(0)
    begin = file.read(_BEGIN_B)
    file.seek(0)
    if not begin:
        raise ValueError(f"the file is empty; accepted: {FORMS}")
    if begin.startswith(crusader.MAGIC):
        raise ValueError(crusader.BINARY)
    if begin[:4] in _CAPTURES:
        return _of_capture(place, name, local, direction)
    if local:
        raise ValueError("--local is for captures, and this is none")
    try:
        return _of_text(file, begin, name, direction, rtt_s)
    except NoTextError as error:
        raise ValueError(
            f"begins with the bytes {begin[:4].hex(' ')}, and {error}; accepted: {FORMS}"
        ) from None


def _of_capture(file: str | Path, name: Path, local: Sequence[str], direction: str | None) -> Found:
    from redtail.lines.recordings import captures, packets

    capture = packets.read(file, name)
    if not len(capture):
        why = [*captures.left_out(capture)]
        if capture.damage:
            why.append(f"it is damaged {capture.damage}")
        raise ValueError("; ".join(["has no packets of TCP, UDP or ping", *why]))
    return captures.estimate(capture, local=local, direction=direction)


def _of_text(
    file: IO[bytes], begin: bytes, name: Path, direction: str | None, rtt_s: float | None
) -> Found:
    from redtail.lines.recordings import mahimahi, measurement, mtr, pings, unread

    # `ping -D` begins with the time in brackets.
    if re.match(rb"(\xef\xbb\xbf)?\s*(\{|\[(?!\d+(\.\d+)?\] )\s*[][{\"0-9tfn-])", begin):
        document = documents.read(file)
        if measurement.is_one(document):
            return measurement.estimate(document, os.fstat(file.fileno()).st_size, name, direction)
        return _of_document(document, name, direction, rtt_s)
    code = texts.encoding(begin)
    head = [line for _, line in islice(lines(file, code), pings.LOOKED_AT)]
    if (program := pings.form(head)) is not None:
        return pings.estimate(pings.read(lines(file, code, "replace"), program), name, direction)
    if mtr.looks_like(head):
        return mtr.estimate_text(lines(file, code, "replace"), name, direction)
    first = next((line for line in head if line), "")
    if (hint := unread.hint(head)) is not None:
        raise ValueError(f"is {hint}")
    if mahimahi.looks_like(head[0]):
        return mahimahi.estimate(mahimahi.read(lines(file)), name, direction)
    raise ValueError(f"line 1: {first[:60]!r} begins no recording that is known; accepted: {FORMS}")


def _of_document(data: object, name: Path, direction: str | None, rtt_s: float | None) -> Found:
    from redtail.lines.recordings import crusader, flent, iperf3, irtt, mtr, networkquality

    if not isinstance(data, dict):
        raise ValueError(f"it is JSON without an object at the top; accepted: {FORMS}")
    if iperf3.is_one(data):
        return iperf3.estimate(data, name, direction, rtt_s)
    for form in (crusader, irtt, mtr, networkquality):
        if form.is_one(data):
            found: Found = form.estimate(data, name, direction)
            return found
    if not flent.KEYS & data.keys():
        raise ValueError(f"it is JSON of no program that is known; accepted: {FORMS}")
    return flent.estimate(flent.read(data), name)


def completed(
    found: Found, rtt_s: float | None, down_bps: float | None, up_bps: float | None
) -> Found:
    """Return what was found with what a user knows in place of it."""
    if rtt_s is not None:
        found = replace(found, rtt=given(rtt_s, "s"))
    if down_bps is not None:
        found = replace(found, down=_with_rate(found.down, "down", down_bps))
    if up_bps is not None:
        found = replace(found, up=_with_rate(found.up, "up", up_bps))
    return found


def _with_rate(way: Direction, name: str, bps: float) -> Direction:
    """Return a direction with a given rate; the buffer is then what waits at that rate."""
    rate = given(bps, "bit/s")
    size = buffers.of_wait(way.wait, rate, name) if way.wait.known else way.buffer
    return replace(way, rate=rate, steps=(), trace_ms=(), buffer=size)
