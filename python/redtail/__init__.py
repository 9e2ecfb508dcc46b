"""redtail: what does this queue, with these parameters, do to this traffic on this link?

    >>> import redtail
    >>> redtail.check("examples/quickstart.toml").name
    'Quickstart'

`redtail.run` runs an experiment from a file, from TOML text or from typed objects and returns
its `Results`; `redtail.check` only checks one. Everything else is loaded when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redtail._engine import Case, Plan
    from redtail._native import Packet, QueueContext
    from redtail.advice.advise import advise, advise_on
    from redtail.advice.answer import Advice
    from redtail.advice.line import Line, Overhead, Recorded, Shaped
    from redtail.advice.parameters import QueueParameter, QueueParameters, queue_parameters
    from redtail.analysis.gap import Gap, Gaps
    from redtail.analysis.results import CaseResult, Results, load
    from redtail.analysis.stats import Estimate
    from redtail.errors import (
        Cancelled,
        QueueError,
        RedtailError,
        RedtailWarning,
        RunError,
        SpecError,
        StoreError,
    )
    from redtail.experiment import Toml, check
    from redtail.inputs.queues import Queue
    from redtail.inputs.traces import TraceTable, read_trace
    from redtail.model import *  # noqa: F403 (every typed object, by its `__all__`)
    from redtail.running.campaign import Campaign, CampaignResults
    from redtail.running.captures import Captured, capture
    from redtail.running.gaps import compare_backends
    from redtail.running.runner import Progress, run
    from redtail.tuning.found import Tuned
    from redtail.tuning.search import tune

    __version__: str

_MODULES = {
    "Advice": "advice.answer",
    "Campaign": "running.campaign",
    "CampaignResults": "running.campaign",
    "Cancelled": "errors",
    "Captured": "running.captures",
    "Case": "_engine",
    "CaseResult": "analysis.results",
    "Estimate": "analysis.stats",
    "Gap": "analysis.gap",
    "Gaps": "analysis.gap",
    "Line": "advice.line",
    "Overhead": "advice.line",
    "Packet": "_native",
    "Plan": "_engine",
    "Progress": "running.runner",
    "Queue": "inputs.queues",
    "QueueContext": "_native",
    "QueueError": "errors",
    "QueueParameter": "advice.parameters",
    "QueueParameters": "advice.parameters",
    "Recorded": "advice.line",
    "RedtailError": "errors",
    "RedtailWarning": "errors",
    "Results": "analysis.results",
    "RunError": "errors",
    "Shaped": "advice.line",
    "SpecError": "errors",
    "StoreError": "errors",
    "Toml": "experiment",
    "TraceTable": "inputs.traces",
    "Tuned": "tuning.found",
    "advise": "advice.advise",
    "advise_on": "advice.advise",
    "capture": "running.captures",
    "check": "experiment",
    "compare_backends": "running.gaps",
    "load": "analysis.results",
    "queue_parameters": "advice.parameters",
    "read_trace": "inputs.traces",
    "run": "running.runner",
    "tune": "tuning.search",
}

__all__ = [
    "Advice",
    "Campaign",
    "CampaignResults",
    "Cancelled",
    "Captured",
    "Case",
    "CaseResult",
    "Estimate",
    "Gap",
    "Gaps",
    "Line",
    "Overhead",
    "Packet",
    "Plan",
    "Progress",
    "Queue",
    "QueueContext",
    "QueueError",
    "QueueParameter",
    "QueueParameters",
    "Recorded",
    "RedtailError",
    "RedtailWarning",
    "Results",
    "RunError",
    "Shaped",
    "SpecError",
    "StoreError",
    "Toml",
    "TraceTable",
    "Tuned",
    "advise",
    "advise_on",
    "capture",
    "check",
    "compare_backends",
    "load",
    "queue_parameters",
    "read_trace",
    "run",
    "tune",
]


def _typed_objects() -> Any:
    return import_module("redtail.model")


# A type checker that saw this would take any name for one of redtail's.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module("redtail._engine").version()
        module = _MODULES.get(name)
        if module is not None:
            return getattr(import_module(f"redtail.{module}"), name)
        # The typed objects are many and generated; their module lists them.
        if name[:1].isupper() and name in _typed_objects().__all__:
            return getattr(_typed_objects(), name)
        raise AttributeError(f"module 'redtail' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_typed_objects().__all__})
