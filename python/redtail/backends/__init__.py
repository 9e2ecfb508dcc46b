"""What makes runs: the interface of a backend, and the list of those that exist.

The runner, the pool and the store know this interface and no engine. A backend is handed out by
its name, so that a worker in another process finds the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from redtail.errors import SpecError

if TYPE_CHECKING:
    from redtail._engine import Outcome, Plan
    from redtail.inputs import queues, traces

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


def _sim() -> Backend:
    from redtail.backends.sim import Sim

    return Sim()


KNOWN: dict[str, Callable[[], Backend]] = {DEFAULT: _sim}
"""What makes each backend, by its name."""


def find(name: str) -> Backend:
    """Return the backend of this name.

    Raises:
        SpecError: there is none.
    """
    if name not in KNOWN:
        raise SpecError(
            f"backend = {name!r}: there is no such backend; accepted: {', '.join(KNOWN)}",
            key="backend",
        )
    return KNOWN[name]()


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
