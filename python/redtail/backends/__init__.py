"""What makes runs: the interface of a backend, and the list of those that exist.

The runner, the pool and the store know this interface and no engine. A backend is handed out by
its name, so that a worker in another process finds the same one (docs/decisions/0010-backends.md).

A backend must not know cases, factors, replications or what is made of results: it is given
scenarios and gives outcomes (`refuse` alone sees the plan).

    interface  what a backend is asked for
    sim        the engine
    live       real time, with redtail's queues or the kernel's (docs/decisions/0011-real-time.md);
               `agent`: the process that makes such a run
    linux      a kernel in virtual time (docs/decisions/0012-virtual-machines.md), with `virtual`
    real       what the backends with a real kernel's TCP have in common
    host       what this computer has of programs and queues
    doctor     what this computer has for each backend
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from redtail.backends.interface import Backend, Batching, Cancel, Capturing, Refusal
from redtail.errors import SpecError

if TYPE_CHECKING:
    from redtail.engine.plans import Plan

__all__ = ["Backend", "Batching", "Cancel", "Capturing", "Refusal"]

DEFAULT = "sim"
"""The backend that is used when none is named."""


def _sim() -> Backend:
    from redtail.backends.sim import Sim

    return Sim()


def _live() -> Backend:
    from redtail.backends.live import Live

    return Live()


def _live_tc() -> Backend:
    from redtail.backends.live import LiveTc

    return LiveTc()


def _linux(kernel: str | None = None) -> Backend:
    from redtail.backends.linux import Linux

    return Linux(kernel)


def _linux_tcp(kernel: str | None = None) -> Backend:
    from redtail.backends.linux import LinuxTcp

    return LinuxTcp(kernel)


KNOWN: dict[str, Callable[[], Backend]] = {
    DEFAULT: _sim,
    "live": _live,
    "live-tc": _live_tc,
    "linux": _linux,
    "linux-tcp": _linux_tcp,
}
"""What makes each backend, by its name."""

WITH_KERNEL: dict[str, Callable[[str], Backend]] = {"linux": _linux, "linux-tcp": _linux_tcp}
"""Those whose name can name a kernel as well, after a colon."""


def find(name: str) -> Backend:
    """Return the backend of this name.

    Raises:
        SpecError: there is none.
    """
    if not exists(name):
        raise SpecError(
            f"backend = {name!r}: there is no such backend; accepted: {', '.join(KNOWN)}",
            key="backend",
        )
    kind, named, kernel = name.partition(":")
    return WITH_KERNEL[kind](kernel) if named else KNOWN[name]()


def bound(backend: Backend, plan: Plan) -> Backend:
    """Return the backend with what its runs of an experiment need of this computer's programs.

    Raises:
        SpecError: a program is missing.
    """
    bind = getattr(backend, "bound", None)  # of those alone whose runs need some
    return backend if bind is None else cast(Backend, bind(plan))


def exists(name: str) -> bool:
    """Say whether a backend has this name, which may name a kernel too: `linux:6.12`."""
    kind, _, kernel = name.partition(":")
    return name in KNOWN or (kind in WITH_KERNEL and kernel != "")


def with_kernel(name: str, kernel: str) -> str:
    """Return the name of a backend with this kernel.

    Raises:
        SpecError: it has no kernel to choose.
    """
    kind = name.partition(":")[0]
    if kind not in WITH_KERNEL:
        raise SpecError(
            f"kernel = {kernel!r}: backend {name} has no kernel to choose; accepted: backend "
            + " or ".join(WITH_KERNEL),
            key="kernel",
        )
    return f"{kind}:{kernel}"


def chosen(name: str | None, plans: Sequence[Plan]) -> str:
    """Return the name of what makes the runs of experiments that are run together.

    Args:
        name: what the user asks for; None for what the experiments say, by default `DEFAULT`.
        plans: the experiments.

    Raises:
        SpecError: an experiment names a backend that does not exist, or two name different ones.
    """
    for plan in plans:
        if plan.backend is not None and not exists(plan.backend):
            where = f"{plan.file}: " if plan.file else ""
            raise SpecError(
                f'{where}backend = "{plan.backend}": there is no such backend; accepted: '
                + ", ".join(KNOWN),
                file=plan.file,
                key="backend",
            )
    if name is not None:
        return name
    names = list(dict.fromkeys(plan.backend or DEFAULT for plan in plans))
    if len(names) > 1:
        raise SpecError(
            f"experiments that are run together name the backends {', '.join(names)}; accepted: "
            "one for all, which --backend (backend= in Python) can choose",
            key="backend",
        )
    return names[0]


def require_able(backend: Backend, plans: Sequence[Plan]) -> None:
    """Refuse experiments that a backend cannot run.

    Raises:
        SpecError: it cannot; the message has every reason.
    """
    for plan in plans:
        refusals = backend.refuse(plan)
        if refusals:
            line = plan.line_of(refusals[0].key)
            number = "" if line is None else f"{line}:"
            where = f"{plan.file}:{number} " if plan.file else f"{plan.name}: "
            lines = [f"{each.key}: {each.reason}" for each in refusals]
            raise SpecError(
                f"{where}backend {backend.name} cannot run this experiment: " + "; ".join(lines),
                file=plan.file,
                line=line,
                key=refusals[0].key,
            )
