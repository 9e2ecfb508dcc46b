"""The backend `live`: the TCP of this host's kernel, in real time.

Each run is made by a process of its own (`redtail.backends.agent`), which moves into namespaces
that it makes for itself. The kernel removes them when that process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from redtail.backends import host
from redtail.backends.agent import Request
from redtail.backends.real import KERNEL, RealTcp, Stop
from redtail.engine import realtime
from redtail.errors import (
    Cancelled,
    InvalidRun,
    RedtailWarning,
    RunError,
    SpecError,
    tells_no_memory,
)

if TYPE_CHECKING:
    from redtail.inputs import programs, queues, traces
    from redtail.outcomes import Outcome


LARGEST_REPLY = 1 << 30
"""Bytes of an agent's reply. A sample of a flow takes some 60 bytes: this is 15 million of them."""


class Live(RealTcp):
    """Runs scenarios with the TCP of this host, over redtail's links and queues, in real time."""

    name = "live"
    at_once = 1  # two runs at a time would disturb each other's clocks

    def identity(self) -> str:
        """Return the hash of the code, the kernel's release and the version of iproute2."""
        return f"{realtime.live_version()} Linux {platform.release()} {host.iproute2()}"

    def require_host(self) -> None:
        """Refuse a host on which no run can be made."""
        require_host()

    def controls(self) -> None:
        """Return that they are those of this host."""

    def kernel_kinds(self) -> Sequence[str]:
        """Return the kinds of queues that this host's kernel has."""
        return [kind for kind, why in survey()["queues"].items() if not why]

    def filter_kinds(self) -> Sequence[str]:
        """Return the kinds of filters that this host's kernel has."""
        return [kind for kind, why in survey()["filters"].items() if not why]

    def run(
        self,
        scenario: str,
        cancel: Any = None,
        queues: Mapping[str, queues.Located] | None = None,
        traces: Mapping[str, traces.Located | programs.Located] | None = None,
    ) -> Outcome:
        """Make one run, in a process of its own."""
        request = Request(scenario, queues or {}, traces or {}, kernel_queues=self.kernel_queues)
        outcome, invalid, _ = self._received(request, cancel)
        if invalid is not None:
            raise InvalidRun(invalid, outcome.metrics)
        return outcome

    def run_captured(
        self,
        scenario: str,
        points: Sequence[tuple[str, str]],
        ip: int = 4,
        cancel: Any = None,
        queues: Mapping[str, queues.Located] | None = None,
        traces: Mapping[str, traces.Located | programs.Located] | None = None,
    ) -> Outcome:
        """Make one run and capture packets, as `batches.run_captured` does.

        A run that must not be used has its capture all the same; the user is warned.
        """
        if ip != 4:
            raise SpecError("backend live sends packets of IP version 4; accepted: 4")
        request = Request(
            scenario,
            queues or {},
            traces or {},
            captures=[(point, os.path.abspath(file)) for point, file in points],
            kernel_queues=self.kernel_queues,
        )
        outcome, invalid, _ = self._received(request, cancel)
        if invalid is not None:
            warnings.warn(f"the captured run is not valid: {invalid}", RedtailWarning, stacklevel=2)
        return outcome

    def _received(self, request: Request, cancel: Any) -> tuple[Outcome, str | None, int | None]:
        """Return what an agent's run has measured; as `measured`."""
        start = time.perf_counter()
        reply = self._asked(request, cancel)
        return self.measured(reply, request.scenario, start)

    def _asked(self, request: Request, cancel: Any) -> bytes:
        """Return the reply of an agent."""
        stop: Stop = cancel if isinstance(cancel, Stop) else Stop()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "redtail.backends.agent", *_options(request.scenario)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches this process, which ends that one
        )
        stop.add(process)
        try:
            # The pipe stays open: its end tells the agent that this process is gone.
            assert process.stdin is not None
            try:
                process.stdin.write(request.to_bytes())
                process.stdin.flush()
            except BrokenPipeError:
                pass  # it has ended; its messages say why
            output, errors = _read(process)
        finally:
            process.kill()
            with contextlib.suppress(BrokenPipeError), process:
                pass  # closes the pipes and waits
            stop.remove(process)
        if stop.cancelled:
            raise Cancelled()
        if not output:
            text = errors.decode(errors="replace").strip()
            raise RunError(f"the agent ended without a result: {text or process.returncode}")
        return output


class LiveTc(Live):
    """The same with the kernel's own queues at all links, as `tc` makes them."""

    name = "live-tc"
    kernel_queues = True


def _options(scenario: str) -> list[str]:
    """Return the options of the agent that makes a run."""
    groups = json.loads(scenario)["traffic"]
    return ["--pairs"] if any(each["kind"] == "program" for each in groups) else []


def reply_of(pipe: IO[bytes]) -> bytes:
    """Return the reply that comes from a pipe.

    Raises:
        RunError: it is larger than any reply may be.
    """
    reply = pipe.read(LARGEST_REPLY + 1)
    if len(reply) > LARGEST_REPLY:
        raise RunError(f"the agent's answer has more than {LARGEST_REPLY >> 20} MiB")
    return reply


def _read(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Return what a process prints, without closing what it reads."""
    assert process.stdout is not None and process.stderr is not None
    errors: list[bytes] = []
    stderr = process.stderr
    reader = threading.Thread(target=lambda: errors.append(stderr.read()), daemon=True)
    reader.start()
    try:
        output = reply_of(process.stdout)
    except RunError:
        process.kill()
        raise
    finally:
        reader.join()
    return output, b"".join(errors)


def _told(question: str) -> subprocess.CompletedProcess[str]:
    """Return what an agent says of this host."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "redtail.backends.agent", question],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def survey() -> dict[str, Any]:
    """Return what the agent finds in namespaces of its own."""
    ran = _told("--survey")
    if ran.returncode:
        return {"namespaces": ran.stderr.strip() or "the agent failed", "tun": "not tried"}
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def require_host() -> None:
    """Refuse a host on which no run can be made.

    Raises:
        SpecError: the text says what is missing, and what brings it.
    """
    reasons = missing()
    if reasons:
        raise SpecError(
            "backend live cannot run on this host: " + "; ".join(reasons), key="backend"
        )


def old_kernel(release: str) -> str:
    """Return why a kernel of this release is too old, or nothing."""
    if tuple(map(int, re.findall(r"\d+", release)[:2])) >= KERNEL:
        return ""
    return f"it needs Linux {'.'.join(map(str, KERNEL))} or later, and this is {release}"


def missing() -> list[str]:
    """Return what this host lacks for runs in real time, each with what brings it."""
    if not sys.platform.startswith("linux"):
        return [f"it needs Linux, and this is {platform.system()}"]
    found = [reason for reason in (old_kernel(platform.release()),) if reason]
    if not host.iproute2():
        found.append(host.not_installed("ip", "iproute"))
    probe = _told("--probe")
    found += [line for line in probe.stdout.splitlines() if line]
    if probe.returncode and not found:
        if tells_no_memory(probe.stderr):
            raise MemoryError("to try namespaces")
        last = probe.stderr.strip().rpartition("\n")[2]
        found.append(f"namespaces could not be tried: {last}")
    return found
