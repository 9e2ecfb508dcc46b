"""A line to the Internet: what a recording tells of it, which queue to set on it, and how.

The way from a recording to a router, each step on the result of the one before:

    found = estimate("home.pcapng")                  rates, round trip, buffers, flows: `Found`
    line, recorded = recorded_line(found, "docsis")  the line to advise on: `Line`, `Recorded`
    advice = advise_on(line, recorded=recorded)      simulations, and what they rank: `Advice`
    made = commands([advice.down, advice.up], device="linux", wan="eth0")
    print(made.text())                               lines for the router: `Commands`

`measure_line` makes a recording: it loads the line against a server of its user's own (`serve`).
A line that its owner knows needs no recording: `given_line` reads it from texts, and `advise` goes
from the texts to the advice. `write_experiment` makes an experiment file of what was recorded, and
`queue_parameters` gives the published rules for one queue on one link.

    course      how the rate of a line went, where it varies
    line        the line, and what is advised for a direction: plain data that the others share
    measure     loads a line, and writes a recording of it
    recordings  what a recording tells of a line
    advice      which queue to set on it, and with which parameters
    routers     commands that set it
    verify      whether it helped: two recordings, before and after
    watch       what the queues of a router do, and whether its shaper is above the line
    provider    how to shape the subscribers of an access provider, and files for LibreQoS

`recordings` and `routers` know nothing of `advice`, nor it of them; `measure`, `verify` and `watch`
know `recordings`, and nobody knows these three. The package runs experiments as everybody does
(`running`, `analysis`). It must not know the command line, tuning, or how results are drawn, and
none of these knows it but the command line.

Others use the names below, and of the packages `routers` alone: what the devices have. A name is
loaded when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redtail.lines.advice.access import ACCESS
    from redtail.lines.advice.advise import advise, advise_on, given_line
    from redtail.lines.advice.answer import Advice
    from redtail.lines.advice.candidates import QUEUES
    from redtail.lines.advice.loads import USES
    from redtail.lines.advice.objectives import OBJECTIVES
    from redtail.lines.advice.parameters import QueueParameter, QueueParameters, queue_parameters
    from redtail.lines.advice.saved import require_writable
    from redtail.lines.advice.simulated import EFFORTS
    from redtail.lines.advice.sold import PROVIDERS, RATES, as_sold
    from redtail.lines.course import Course
    from redtail.lines.line import Follows, Line, Overhead, Recorded, Shaped
    from redtail.lines.measure.options import Measuring
    from redtail.lines.measure.protocol import PORT
    from redtail.lines.measure.record import MeasureState
    from redtail.lines.measure.run import Measured, measure_line
    from redtail.lines.measure.server import ServerLimits, serve
    from redtail.lines.measure.summary import MeasuredRow
    from redtail.lines.provider.answer import ProviderAdvice, advise_provider
    from redtail.lines.provider.libreqos import require_exportable
    from redtail.lines.provider.plans import Plan, read_plans
    from redtail.lines.recordings.experiment import experiment_text, write_experiment
    from redtail.lines.recordings.found import Found
    from redtail.lines.recordings.line import recorded_line
    from redtail.lines.recordings.measurement import Measurement
    from redtail.lines.recordings.reading import estimate
    from redtail.lines.recordings.values import Estimated
    from redtail.lines.routers import commands
    from redtail.lines.routers.model import Commands
    from redtail.lines.routers.table import DEVICES
    from redtail.lines.verify.verified import Verified, verify_change
    from redtail.lines.watch.watching import Seen, Watch, watch_device

_MODULES = {
    "ACCESS": "advice.access",
    "Advice": "advice.answer",
    "Commands": "routers.model",
    "Course": "course",
    "DEVICES": "routers.table",
    "EFFORTS": "advice.simulated",
    "Estimated": "recordings.values",
    "Follows": "line",
    "Found": "recordings.found",
    "Line": "line",
    "MeasureState": "measure.record",
    "Measured": "measure.run",
    "MeasuredRow": "measure.summary",
    "Measurement": "recordings.measurement",
    "Measuring": "measure.options",
    "OBJECTIVES": "advice.objectives",
    "Overhead": "line",
    "PORT": "measure.protocol",
    "Plan": "provider.plans",
    "ProviderAdvice": "provider.answer",
    "PROVIDERS": "advice.sold",
    "QUEUES": "advice.candidates",
    "QueueParameter": "advice.parameters",
    "QueueParameters": "advice.parameters",
    "RATES": "advice.sold",
    "Recorded": "line",
    "Seen": "watch.watching",
    "ServerLimits": "measure.server",
    "Shaped": "line",
    "USES": "advice.loads",
    "Verified": "verify.verified",
    "Watch": "watch.watching",
    "advise": "advice.advise",
    "advise_on": "advice.advise",
    "advise_provider": "provider.answer",
    "as_sold": "advice.sold",
    "commands": "routers",
    "estimate": "recordings.reading",
    "experiment_text": "recordings.experiment",
    "given_line": "advice.advise",
    "measure_line": "measure.run",
    "queue_parameters": "advice.parameters",
    "read_plans": "provider.plans",
    "recorded_line": "recordings.line",
    "require_exportable": "provider.libreqos",
    "serve": "measure.server",
    "verify_change": "verify.verified",
    "watch_device": "watch.watching",
    "require_writable": "advice.saved",
    "write_experiment": "recordings.experiment",
}

__all__ = [
    "ACCESS",
    "DEVICES",
    "EFFORTS",
    "OBJECTIVES",
    "PORT",
    "PROVIDERS",
    "QUEUES",
    "RATES",
    "USES",
    "Advice",
    "Commands",
    "Course",
    "Estimated",
    "Follows",
    "Found",
    "Line",
    "MeasureState",
    "Measured",
    "MeasuredRow",
    "Measurement",
    "Measuring",
    "Overhead",
    "Plan",
    "ProviderAdvice",
    "QueueParameter",
    "QueueParameters",
    "Recorded",
    "Seen",
    "ServerLimits",
    "Shaped",
    "Verified",
    "Watch",
    "advise",
    "advise_on",
    "advise_provider",
    "as_sold",
    "commands",
    "estimate",
    "experiment_text",
    "given_line",
    "measure_line",
    "queue_parameters",
    "read_plans",
    "recorded_line",
    "require_exportable",
    "require_writable",
    "serve",
    "verify_change",
    "watch_device",
    "write_experiment",
]


# A type checker that saw this would take any name for one of the package's.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if (module := _MODULES.get(name)) is not None:
            return getattr(import_module(f"redtail.lines.{module}"), name)
        raise AttributeError(f"module 'redtail.lines' has no attribute {name!r}")
