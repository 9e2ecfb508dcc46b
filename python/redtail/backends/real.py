"""What the backends with a real kernel's TCP have in common."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from redtail import escape, facts
from redtail.backends.interface import Cancel, Refusal
from redtail.engine import realtime
from redtail.errors import RunError
from redtail.metrics import DEFINITIONS
from redtail.scenario import measures

if TYPE_CHECKING:
    from redtail.engine.plans import Plan
    from redtail.outcomes import Outcome

ABSENT = frozenset(
    {"duplicate_acks", "ecn_reductions", "spurious_fast_retransmits", "stalls", "ack_wait_max"}
)
"""Metrics of a group that no kernel measures; docs/explanation/metrics.md has the reasons."""

KERNEL = (5, 11)
"""The first kernel whose `epoll_pwait2` waits for nanoseconds; `epoll_pwait` rounds up to 1 ms."""


class Stop:
    """Ends the processes of the runs that are being made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self.cancelled = False

    def cancel(self) -> None:
        """End them, and start no more."""
        with self._lock:
            self.cancelled = True
            for process in self._running:
                process.kill()

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """Enter a process."""
        with self._lock:
            self._running.add(process)
            if self.cancelled:
                process.kill()

    def remove(self, process: subprocess.Popen[bytes]) -> None:
        """Take a process out, which has ended."""
        with self._lock:
            self._running.discard(process)


class RealTcp:
    """A backend with the TCP of a kernel, and with its queues or redtail's.

    Attributes:
        kernel_queues: whether links have the kernel's own queues.
        host: whose kernel makes the runs, for messages.
    """

    kernel_queues = False
    host = "this host"
    own_metrics: Collection[str] = ("runs in real time",)

    @property
    def name(self) -> str:
        """The name of this backend."""
        raise NotImplementedError

    def require_host(self) -> None:
        """Refuse a computer on which no run can be made.

        Raises:
            SpecError: the text says what is missing, and what brings it.
        """
        raise NotImplementedError

    def controls(self) -> Sequence[str] | None:
        """Return the congestion controls that the kernel has; None for this computer's."""
        raise NotImplementedError

    def kernel_kinds(self) -> Sequence[str]:
        """Return the kinds of queues that the kernel has, as `tc` calls them."""
        raise NotImplementedError

    def filter_kinds(self) -> Sequence[str]:
        """Return the kinds of filters that the kernel has, as `tc` calls them."""
        raise NotImplementedError

    def refuse(self, plan: Plan) -> Sequence[Refusal]:
        """Return what the kernel cannot do of what the experiment asks for.

        Raises:
            SpecError: this computer can run nothing at all.
        """
        self.require_host()
        return list(dict.fromkeys(self._refusals(plan)))

    def _refusals(self, plan: Plan) -> Iterator[Refusal]:
        scenarios = [plan.example(case) for case in range(len(plan.cases))]
        controls = self.controls()
        for scenario in scenarios:
            for key, reason in realtime.live_refusals(scenario, controls):
                yield Refusal(key, reason)
        for bound in plan.stop.until if plan.stop else ():
            if self.lacks(bound.metric):
                reason = f'"{bound}": backend {self.name} does not measure {bound.metric}'
                yield Refusal("replications.until", f"{reason}; accepted: another metric")
        if not self.kernel_queues:
            return
        kinds, filters = self.kernel_kinds(), self.filter_kinds()
        for scenario in scenarios:
            for key, reason in realtime.live_queue_refusals(scenario, kinds, filters):
                yield Refusal(key, reason)

    def lacks(self, metric: str) -> bool:
        """Say whether runs do not measure a metric that simulated runs have.

        A queue of the kernel tells nothing of itself.
        """
        parts = metric.split(".")
        return parts[-1] in ABSENT or (self.kernel_queues and "queue" in parts[:-1])

    def own_names(self) -> set[str]:
        """Return the names of metrics that runs have of whatever experiment."""
        return {each.name for each in DEFINITIONS if each.of in self.own_metrics}

    def measured(
        self, reply: bytes, scenario: str, start: float
    ) -> tuple[Outcome, str | None, int | None]:
        """Return what a reply says of a run of this scenario; as `realtime.run_outcome`.

        Raises:
            RunError: it has a metric that no such run has, or as there.
        """
        outcome, invalid, code = realtime.run_outcome(reply, start, self.host, scenario)
        known, free = facts.metric_names(scenario)
        told = measures(json.loads(scenario))
        strange = sorted(outcome.metrics.keys() - known.keys() - self.own_names() - told)
        for name in strange:
            if not name.startswith(free):
                raise RunError(
                    f"{self.host}'s answer cannot be read: it has the metric {escape.name(name)}, "
                    "which no run of this experiment has"
                )
        return outcome, invalid, code

    def cancel_token(self) -> Cancel:
        """Return what ends the processes of runs."""
        return Stop()
