"""The backend `sim`: redtail's discrete-event engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from redtail import facts
from redtail.backends.interface import Cancel, Refusal
from redtail.engine import batches
from redtail.errors import RunError

if TYPE_CHECKING:
    from redtail.engine.plans import Plan
    from redtail.inputs import programs, queues, traces
    from redtail.outcomes import Outcome, Outcomes


class Sim:
    """Runs scenarios in simulated time; it can run all that the experiment file can say."""

    name = batches.BACKEND
    at_once = None
    own_metrics: Sequence[str] = ()

    def lacks(self, metric: str) -> bool:
        """Return that it measures all that simulated runs have."""
        return False

    def identity(self) -> str:
        """Return the hash of the engine's code."""
        return facts.code_version()

    def refuse(self, plan: Plan) -> Sequence[Refusal]:
        """Refuse congestion controls of a kernel, and programs; all else can be run."""
        reason = (
            "is a congestion control of a Linux kernel; accepted: backend live, live-tc, linux or "
            "linux-tcp, or a preset of redtail in place of this key"
        )
        controls = [Refusal(key, f'"{name}" {reason}') for key, name in plan.kernel_controls()]
        return controls + [
            Refusal(
                f"traffic.{name}.kind",
                '"program" runs programs, which need a real kernel; accepted: backend live, '
                "live-tc, linux or linux-tcp, or another kind of traffic",
            )
            for name in plan.program_groups()
        ]

    def cancel_token(self) -> Cancel:
        """Return the engine's token."""
        token: Cancel = batches.cancel_token()
        return token

    def run(
        self,
        scenario: str,
        cancel: Any = None,
        queues: Mapping[str, queues.Located] | None = None,
        traces: Mapping[str, traces.Located | programs.Located] | None = None,
    ) -> Outcome:
        """Make one run, without the interpreter lock, except for queues written in Python."""
        return batches.run_one(scenario, cancel, queues, traces)

    def run_many(
        self,
        scenarios: Sequence[str],
        cancel: Any = None,
        queues: Mapping[str, queues.Located] | None = None,
        traces: Mapping[str, traces.Located | programs.Located] | None = None,
        columns: bool = False,
    ) -> list[Outcomes | RunError]:
        """Make runs one after the other."""
        return batches.run_many(scenarios, cancel, queues, traces, columns)

    def run_captured(
        self,
        scenario: str,
        points: Sequence[tuple[str, str]],
        ip: int = 4,
        cancel: Any = None,
        queues: Mapping[str, queues.Located] | None = None,
        traces: Mapping[str, traces.Located | programs.Located] | None = None,
    ) -> Outcome:
        """Make one run and capture packets."""
        return batches.run_captured(scenario, points, ip, cancel, queues, traces)
