"""What a backend is asked for, and what refuses an experiment.

Nothing here knows which backends exist.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from redtail.errors import RunError

if TYPE_CHECKING:
    from redtail.engine.plans import Plan
    from redtail.inputs import programs, queues, traces
    from redtail.outcomes import Outcome, Outcomes


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
        traces: Mapping[str, traces.Located | programs.Located] | None = None,
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
        traces: Mapping[str, traces.Located | programs.Located] | None = None,
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
        traces: Mapping[str, traces.Located | programs.Located] | None = None,
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
