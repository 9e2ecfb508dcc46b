"""The backends `linux` and `linux-tcp`: a Linux kernel in a virtual machine, in virtual time.

Each run is made by a machine of its own (`virtual.machine`), in which the agent of `crates/live` is
the first process. The name of a backend can name a kernel: `linux:6.12`.
"""

from __future__ import annotations

import functools
import json
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.backends import host, virtual
from redtail.backends.interface import Refusal
from redtail.backends.live import old_kernel
from redtail.backends.real import RealTcp, Stop
from redtail.engine import realtime
from redtail.errors import InvalidRun, SpecError
from redtail.scenario import seconds

if TYPE_CHECKING:
    from redtail.backends.virtual.kernels import Kernel
    from redtail.backends.virtual.machine import Guest
    from redtail.backends.virtual.roots import Root
    from redtail.engine.plans import Plan
    from redtail.inputs import programs, queues, traces
    from redtail.outcomes import Outcome


class Linux(RealTcp):
    """Runs scenarios with TCP and the queues of a Linux kernel, in a virtual machine.

    Args:
        kernel: the name of one that `redtail kernel` keeps; None for its default.
        root: what programs of the user find at `/` in the machine; None for a machine without
            programs.
    """

    kind = "linux"
    kernel_queues = True
    host = "the guest"
    at_once = None
    own_metrics = ("runs in real time", "runs in a virtual machine")

    def __init__(self, kernel: str | None = None, root: Root | None = None) -> None:
        self.kernel = kernel
        self.root = root

    def bound(self, plan: Plan) -> Linux:
        """Return the backend whose machines have what the programs of an experiment need.

        Its identity has the content of that.

        Raises:
            SpecError: a program is missing, or the root filesystem cannot be read.
        """
        root = _root(plan)
        return self if root is None else type(self)(self.kernel, root)

    def _guest(self) -> Guest:
        return _guest(self.kernel, self.root)

    @property
    def name(self) -> str:
        """The name of this backend, and of the kernel if it was named."""
        return self.kind if self.kernel is None else f"{self.kind}:{self.kernel}"

    def identity(self) -> str:
        """Return the hash of the code, the kernel's release, and the versions of what runs it."""
        guest = self._guest()
        own = guest.kernel.iproute2
        programs = f"iproute2-{own}" if own else host.iproute2()
        return (
            f"{realtime.live_version()} Linux {guest.kernel.release} "
            f"({guest.identity[:12]}) {programs} QEMU {guest.qemu}"
        )

    def require_host(self) -> None:
        """Refuse a computer without virtual machines, or without a kernel for them."""
        require_host()
        kernel = self._guest().kernel
        reason = old_kernel(kernel.release)
        if reason:
            raise SpecError(f"kernel {kernel.name} cannot be used: {reason}", key="kernel")

    def controls(self) -> Sequence[str]:
        """Return the congestion controls that the kernel has."""
        return self._guest().kernel.controls()

    def kernel_kinds(self) -> Sequence[str]:
        """Return the kinds of queues that the kernel has."""
        return self._guest().kernel.queues()

    def filter_kinds(self) -> Sequence[str]:
        """Return the kinds of filters that the kernel has."""
        return self._guest().kernel.filters()

    def _refusals(self, plan: Plan) -> Iterator[Refusal]:
        for name, located in plan.queues.items():
            if located.role != "queue":
                continue  # refused as any backend with a kernel's TCP does
            reason = f'"{name}" is a class, which no virtual machine can execute'
            yield Refusal(
                "class", f"{reason}; accepted: a queue of redtail, or backend sim or live"
            )
        yield from super()._refusals(plan)

    def run(
        self,
        scenario: str,
        cancel: Any = None,
        queues: Mapping[str, queues.Located] | None = None,
        traces: Mapping[str, traces.Located | programs.Located] | None = None,
    ) -> Outcome:
        """Make one run, in a machine of its own."""
        from redtail.backends.virtual import machine

        start = time.perf_counter()
        stop: Stop = cancel if isinstance(cancel, Stop) else Stop()
        request = realtime.guest_request(scenario, traces, self.kernel_queues)
        duration_s = seconds(json.loads(scenario)["duration"])
        reply = machine.run(self._guest(), request, duration_s, stop)
        outcome, invalid, _ = self.measured(reply, scenario, start)
        if invalid is not None:
            raise InvalidRun(invalid, outcome.metrics)
        return outcome


class LinuxTcp(Linux):
    """The same with redtail's queues under the kernel's TCP."""

    kind = "linux-tcp"
    kernel_queues = False


@functools.cache
def _kept(kernel: Kernel, qemu: str, root: Root | None) -> Guest:
    from redtail.backends.virtual.machine import Guest

    return Guest.of(kernel, qemu, root)


def _guest(kernel: str | None, root: Root | None) -> Guest:
    """Return what machines with a kernel and a root filesystem have in common."""
    from redtail.backends.virtual import kernels

    return _kept(kernels.find(kernel), host.qemu(), root)


def _root(plan: Plan) -> Root | None:
    """Return the root filesystem of the programs of an experiment; None if it has none."""
    from redtail.backends.virtual import collecting, roots
    from redtail.inputs import programs

    if not plan.program_groups():
        return None
    path, add = plan.root
    if path is not None:
        return roots.of(Path(path))
    scenarios = [json.loads(plan.example(case)) for case in range(len(plan.cases))]
    groups = [group for scenario in scenarios for group in scenario["traffic"]]
    lines = [group[key] for group in groups for key in ("server", "client") if key in group]
    files = [each for each in plan.traces.values() if isinstance(each, programs.Located)]
    return collecting.collected(dict.fromkeys(lines), add, [Path(each.path) for each in files])


def require_host() -> None:
    """Refuse a computer on which no virtual machine can be run.

    Raises:
        SpecError: the text says what is missing, and what brings it.
    """
    reasons = missing()
    if reasons:
        raise SpecError(
            "backend linux cannot run on this host: " + "; ".join(reasons), key="backend"
        )


def missing() -> list[str]:
    """Return what this computer lacks for virtual machines, each with what brings it."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return [f"it needs Linux on x86-64, and this is {sys.platform} on {platform.machine()}"]
    found = []
    if not host.qemu():
        found.append(
            "the program qemu-system-x86_64 is not installed; it is in the package "
            "qemu-system-x86 (Debian, Ubuntu, Arch) or qemu-system-x86-core (Fedora)"
        )
    for part in (virtual.AGENT, virtual.TURNS):
        if not part.is_file():
            found.append(f"{part} is not there; `make dev` builds it")
    return found
