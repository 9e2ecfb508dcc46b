"""Recordings of a line, whatever their form."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from redtail.errors import SpecError
from redtail.files import path_of
from redtail.recordings.found import Direction, Found
from redtail.recordings.values import Estimated, given

FORMS = (
    "a capture (pcap or pcapng), a data file of Flent (.flent.gz), a log of ping, or a trace of "
    "mahimahi; each also packed by gzip"
)

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
    *,
    rtt_s: float | None = None,
    down_bps: float | None = None,
    up_bps: float | None = None,
    local: Sequence[str] = (),
    direction: str | None = None,
) -> Found:
    """Estimate the rate, round trip and buffer of a line, and who sent, from a recording of it.

    Args:
        recording: a capture, a data file of Flent, a log of ping or a trace of mahimahi.
        rtt_s: the base round trip in s, in place of what the recording tells.
        down_bps: the rate to the people at the line in bit/s, in place of the same.
        up_bps: the rate from them.
        local: of a capture: addresses and networks of the people.
        direction: "down" or "up": which direction a trace or a log of pings is of, or most bytes of
            a capture whose addresses do not tell.

    Raises:
        SpecError: the file cannot be read, or is no recording that is known.
    """
    path = path_of(recording)
    try:
        found = _estimate(path, local, direction)
    except ValueError as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(f"{path}: {error}", file=str(path)) from None
    except OSError as error:
        why = error.strerror or str(error)
        raise SpecError(f"{path}: cannot be read: {why}", file=str(path)) from None
    return completed(found, rtt_s, down_bps, up_bps)


def _estimate(path: Path, local: Sequence[str], direction: str | None) -> Found:
    if path.is_dir():
        raise ValueError(f"is a folder; accepted: {FORMS}")
    with path.open("rb") as file:
        begin = file.read(4)
    if not begin:
        raise ValueError(f"the file is empty; accepted: {FORMS}")
    if begin[:2] == _GZIP:
        with tempfile.NamedTemporaryFile(suffix=".unpacked") as unpacked:
            try:
                with gzip.open(path) as packed:
                    shutil.copyfileobj(packed, unpacked)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                text = str(error) or type(error).__name__
                raise ValueError(f"cannot be unpacked: {text}") from None
            unpacked.flush()
            return _of_form(Path(unpacked.name), path, local, direction)
    return _of_form(path, path, local, direction)


def _of_form(file: Path, name: Path, local: Sequence[str], direction: str | None) -> Found:
    with file.open("rb") as opened:
        begin = opened.read(4)
    if begin in _CAPTURES:
        return _of_capture(file, name, local, direction)
    if local:
        raise ValueError("--local is for captures, and this is none")
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"begins with the bytes {begin.hex(' ')}, and is no text (byte {error.start}); "
            f"accepted: {FORMS}"
        ) from None
    return _of_text(text, name, direction)


def _of_capture(file: Path, name: Path, local: Sequence[str], direction: str | None) -> Found:
    from redtail.recordings import captures, packets

    capture = packets.read(file, name)
    if not len(capture):
        counts = ", ".join(f"{count} {why}" for why, count in capture.left_out.items() if count)
        damage = f"; it is damaged {capture.damage}" if capture.damage else ""
        raise ValueError(
            f"has no packets of TCP, UDP or ping{f' ({counts})' if counts else ''}{damage}"
        )
    return captures.estimate(capture, local=local, direction=direction)


def _of_text(text: str, name: Path, direction: str | None) -> Found:
    from redtail.recordings import flent, mahimahi, pings

    if text.lstrip()[:1] in ("{", "["):
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"line {error.lineno}, column {error.colno}: begins as JSON, but is none: "
                f"{error.msg}"
            ) from None
        return flent.estimate(flent.read(data), name)
    if pings.looks_like(text):
        return pings.estimate(pings.read(text), name, direction)
    if mahimahi.looks_like(text):
        return mahimahi.estimate(mahimahi.read(text), name, direction)
    line = text.lstrip("\n").partition("\n")[0][:60]
    raise ValueError(f"line 1: {line!r} begins no recording that is known; accepted: {FORMS}")


def completed(
    found: Found, rtt_s: float | None, down_bps: float | None, up_bps: float | None
) -> Found:
    """Return what was found with what a user knows in place of it."""
    if rtt_s is not None:
        found = replace(found, rtt=given(rtt_s, "s"))
    if down_bps is not None:
        found = replace(found, down=_with_rate(found.down, down_bps))
    if up_bps is not None:
        found = replace(found, up=_with_rate(found.up, up_bps))
    return found


def _with_rate(way: Direction, bps: float) -> Direction:
    """Return a direction with a given rate; the buffer is then what waits at that rate."""
    size, wait = way.buffer, way.wait
    if wait.value is not None:
        size = Estimated(
            wait.value * bps / 8,
            "B",
            f"the wait times the given rate; {wait.basis}",
            None if wait.low is None else wait.low * bps / 8,
            None if wait.high is None else wait.high * bps / 8,
            wait.bound,
        )
    return replace(way, rate=given(bps, "bit/s"), steps=(), trace_ms=(), buffer=size)
