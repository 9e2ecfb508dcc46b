"""What makes runs: the interface of a backend, and the list of those that exist.

The runner, the pool and the store know this interface and no engine. A backend is handed out by
its name, so that a worker in another process finds the same one (docs/decisions/0010-backends.md).

A backend must not know cases, factors, replications or what is made of results: it is given
scenarios and gives outcomes (`refuse` alone sees the plan). `shell` is not handed out by a name: it
runs and stores an experiment, through `running`.

    sim      the engine
    live     real time, with redtail's queues or the kernel's (docs/decisions/0011-real-time.md);
             `agent`: the process that makes such a run
    linux    a kernel in virtual time (docs/decisions/0012-virtual-machines.md), with `virtual`
    real     what the backends with a real kernel's TCP have in common
    shell    a run in real time with programs of the user
    doctor   what this computer has for each
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from redtail.errors import RunError, SpecError

if TYPE_CHECKING:
    from redtail._engine import Plan
    from redtail.inputs import queues, traces
    from redtail.outcomes import Outcome, Outcomes

DEFAULT = "sim"
"""The backend that is used when none is named."""


@dataclass(frozen=True)
class Refusal:
    """Why a backend cannot run an experiment.

    Attributes:
        key: the key of the experiment file that asks for it.
        reason: what the backend cannot do, and what it accepts.
    """

    key: str
    reason: str


class Cancel(Protocol):
    """Stops runs that are being made; any thread may call it."""

    def cancel(self) -> None:
        """Stop them."""
        ...


class Backend(Protocol):
    """One way to make runs.

    `run` is called in threads of this process, or of an executor's workers. A backend that needs
    processes of its own, such as a virtual machine, starts them in `run` and waits for them.
    """

    @property
    def name(self) -> str:
        """The name in options, in the store's key, in manifests and in results."""
        ...

    @property
    def at_once(self) -> int | None:
        """How many runs may be made at the same time; None for as many as are asked for."""
        ...

    @property
    def own_metrics(self) -> Collection[str]:
        """Which metrics of a run only this backend has, as `Definition.of` names them."""
        ...

    def lacks(self, metric: str) -> bool:
        """Say whether runs do not measure a metric that simulated runs have."""
        ...

    def identity(self) -> str:
        """Return all that results depend on, except the scenario, such as a hash of the code.

        It is a part of the store's key: runs of another identity are not reused.
        """
        ...

    def refuse(self, plan: Plan) -> Sequence[Refusal]:
        """Return the reasons why this backend cannot run an experiment; without any, it can."""
        ...

    def cancel_token(self) -> Cancel:
        """Return what stops runs that are given it."""
        ...

    def run(
        self,
        scenario: str,
        cancel: Any = None,
        queues: Mapping[str, queues.Located] | None = None,
        traces: Mapping[str, traces.Located] | None = None,
    ) -> Outcome:
        """Make one run.

        Args:
            scenario: the run, as canonical JSON.
            cancel: what `cancel_token` has returned in this process, or None.
            queues: the classes that the scenario names as queues.
            traces: the tables of connections that it names.

        Raises:
            Cancelled: `cancel` was called before the end.
            InvalidRun: the run came to its end, but what it measured must not be used.
            RunError: the run failed.
        """
        ...


class Batching(Backend, Protocol):
    """A backend that makes short runs faster when it gets several at a time."""

    def run_many(
        self,
        scenarios: Sequence[str],
        cancel: Any = None,
        queues: Mapping[str, queues.Located] | None = None,
        traces: Mapping[str, traces.Located] | None = None,
        columns: bool = False,
    ) -> list[Outcomes | RunError]:
        """Make runs one after the other.

        Args:
            scenarios: the runs, as canonical JSON.
            cancel: as for `run`.
            queues: as for `run`.
            traces: as for `run`.
            columns: whether of runs without series only `Outcomes.rows` is called, for all of them.

        Returns:
            What they measured, in their order: outcomes of one run after the other, and in the
            place of a run that failed its error. Fewer when they were stopped.
        """
        ...


@runtime_checkable
class Capturing(Backend, Protocol):
    """A backend that can capture packets."""

    def run_captured(
        self,
        scenario: str,
        points: Sequence[tuple[str, str]],
        ip: int = 4,
        cancel: Any = None,
        queues: Mapping[str, queues.Located] | None = None,
        traces: Mapping[str, traces.Located] | None = None,
    ) -> Outcome:
        """Make one run and capture packets.

        Args:
            scenario: the run, as canonical JSON.
            points: where, and the file for each: a link's name, or `LINK:in` or `LINK:out`.
            ip: the version of IP in the capture.
            cancel: as for `run`.
            queues: as for `run`.
            traces: as for `run`.
        """
        ...


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
            where = f"{plan.file}: " if plan.file else f"{plan.name}: "
            lines = [f"{each.key}: {each.reason}" for each in refusals]
            raise SpecError(
                f"{where}backend {backend.name} cannot run this experiment: " + "; ".join(lines),
                file=plan.file,
                key=refusals[0].key,
            )
