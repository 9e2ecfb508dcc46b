"""`tc`, here or by another command, and `ping`: bounded in time and in what they print."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import IO

from redtail.errors import RedtailError, SpecError
from redtail.lines.recordings import unix
from redtail.lines.recordings.documents import short
from redtail.lines.recordings.echoes import LONGEST_LINE
from redtail.lines.watch.tc import MOST_B

LONGEST_S = 10.0
"""Time that a command may take. Source: our choice; a connection by ssh takes one or two."""

PING_S = 0.2
"""Time between two pings: the shortest that iputils grants to users. Source: ping(8), -i."""

MOST_PINGS = 100_000

# A name of a network device has up to 15 letters (IFNAMSIZ of Linux); no shell sees more in it.
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,14}")
_HOST = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:%_-]{0,252}")


def device_of(text: str, option: str = "DEV") -> str:
    """Return the name of a device.

    Raises:
        SpecError: it is none.
    """
    if not _DEVICE.fullmatch(text):
        raise SpecError(f"{option} {short(text)}: accepted: the name of a network device, as eth0")
    return text.partition("@")[0]


def words_of(by: str | None) -> tuple[str, ...]:
    """Return the words of a command that runs another one, such as "ssh router".

    Raises:
        SpecError: it has none, or a quotation without an end.
    """
    if by is None:
        return ()
    try:
        words = tuple(shlex.split(by))
    except ValueError as error:
        raise SpecError(f"--by {short(by)}: {error}; accepted: words, as 'ssh router'") from None
    if not words:
        raise SpecError("--by: it has no words; accepted: a command, as 'ssh router'")
    return words


class Tc:
    """Runs `tc`.

    Args:
        by: the words of a command that runs it elsewhere; none for this computer. No shell of this
            computer reads them.
    """

    def __init__(self, by: Sequence[str] = ()) -> None:
        self.by = tuple(by)

    def __call__(self, *words: str) -> str:
        """Return what `tc` prints.

        Raises:
            RedtailError: it cannot be started, fails, takes too long, or prints too much.
        """
        argv = [*self.by, "tc", *words]
        told = short(shlex.join(argv))
        env = os.environ if self.by else {**os.environ, "PATH": _with_admin(), "LC_ALL": "C"}
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(env),
                start_new_session=True,
            )
        except OSError as error:
            raise RedtailError(f"{told}: cannot be started: {error.strerror}") from None
        assert process.stdout is not None and process.stderr is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(LONGEST_S, end)
        timer.start()
        try:
            errors = _Tail(process.stderr)
            output = process.stdout.read(MOST_B + 1)
            if len(output) > MOST_B:
                _kill(process)
            code = process.wait()
        finally:
            timer.cancel()
            _kill(process)
            process.wait()
            process.stdout.close()
        if late.is_set():
            raise RedtailError(f"{told}: took longer than {LONGEST_S:g} s")
        if len(output) > MOST_B:
            raise RedtailError(f"{told}: printed more than {MOST_B // 10**6} MB; accepted: less")
        if code != 0:
            raise RedtailError(f"{told}: ended with {code}: {errors.last() or 'without a word'}")
        return output.decode("utf-8", "replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process, and those that it has started: they would keep its output open."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


class _Tail:
    """The last line that a process wrote to standard error; all is read, so that it never waits."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.kept: deque[bytes] = deque(maxlen=4)
        self.thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self.thread.start()

    def _read(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError), stream:
            while line := stream.readline(LONGEST_LINE):
                if line.strip():
                    self.kept.append(line)

    def last(self) -> str:
        """Return it; empty if there is none."""
        self.thread.join(1.0)
        return short(self.kept[-1].decode("utf-8", "replace").strip()) if self.kept else ""


def _with_admin() -> str:
    """Return the PATH with the folders of an administrator's programs."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


class Ping:
    """Pings a host all the time, in the background.

    Args:
        host: its name or its address.

    Raises:
        SpecError: it is neither.
        RedtailError: `ping` cannot be started.
    """

    def __init__(self, host: str) -> None:
        if not _HOST.fullmatch(host):
            raise SpecError(f"--ping {short(host)}: accepted: the name of a host, or an address")
        argv = ["ping", "-n", "-i", str(PING_S), host]
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            raise RedtailError(f"ping: cannot be started: {error.strerror}") from None
        self.found: deque[tuple[float, float]] = deque(maxlen=MOST_PINGS)
        assert self.process.stderr is not None
        self.errors = _Tail(self.process.stderr)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        with contextlib.suppress(OSError, ValueError), stream:
            while line := stream.readline(LONGEST_LINE):
                text = line.decode("utf-8", "replace").strip()
                for echo in unix.echoes([(0, text)]):
                    self.found.append((time.monotonic(), float(echo.ms) / 1e3))

    def take(self) -> list[float]:
        """Return the round trips since the last call, in s.

        Raises:
            RedtailError: `ping` has ended.
        """
        taken = []
        while self.found:
            taken.append(self.found.popleft()[1])
        if not taken and self.process.poll() is not None:
            why = self.errors.last() or f"it ended with {self.process.returncode}"
            raise RedtailError(f"ping: {why}")
        return taken

    def __enter__(self) -> Ping:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=LONGEST_S)
        self.thread.join(LONGEST_S)
