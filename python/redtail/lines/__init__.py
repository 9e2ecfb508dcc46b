"""A line to the Internet: what a recording tells of it, which queue to set on it, and how.

The way from a recording to a router, each step on the result of the one before:

    found = estimate("home.pcapng")                  rates, round trip, buffers, flows: `Found`
    line, recorded = recorded_line(found, "docsis")  the line to advise on: `Line`, `Recorded`
    advice = advise_on(line, recorded=recorded)      simulations, and what they rank: `Advice`
    made = commands([advice.down, advice.up], device="linux", wan="eth0")
    print(made.text())                               lines for the router: `Commands`

A line that its owner knows needs no recording: `given_line` reads it from texts, and `advise` goes
from the texts to the advice. `write_experiment` makes an experiment file of what was recorded, and
`queue_parameters` gives the published rules for one queue on one link.

    course      how the rate of a line went, where it varies
    line        the line, and what is advised for a direction: plain data that the others share
    recordings  what a recording tells of a line
    advice      which queue to set on it, and with which parameters
    routers     commands that set it

`recordings` and `routers` know nothing of `advice`, nor it of them. The package runs experiments
as everybody does (`running`, `analysis`). It must not know the command line, tuning, or how
results are drawn, and none of these knows it but the command line.

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
    from redtail.lines.recordings.experiment import experiment_text, write_experiment
    from redtail.lines.recordings.found import Found
    from redtail.lines.recordings.line import recorded_line
    from redtail.lines.recordings.reading import estimate
    from redtail.lines.recordings.values import Estimated
    from redtail.lines.routers import commands
    from redtail.lines.routers.model import Commands
    from redtail.lines.routers.table import DEVICES

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
    "OBJECTIVES": "advice.objectives",
    "Overhead": "line",
    "PROVIDERS": "advice.sold",
    "QUEUES": "advice.candidates",
    "QueueParameter": "advice.parameters",
    "QueueParameters": "advice.parameters",
    "RATES": "advice.sold",
    "Recorded": "line",
    "Shaped": "line",
    "USES": "advice.loads",
    "advise": "advice.advise",
    "advise_on": "advice.advise",
    "as_sold": "advice.sold",
    "commands": "routers",
    "estimate": "recordings.reading",
    "experiment_text": "recordings.experiment",
    "given_line": "advice.advise",
    "queue_parameters": "advice.parameters",
    "recorded_line": "recordings.line",
    "require_writable": "advice.saved",
    "write_experiment": "recordings.experiment",
}

__all__ = [
    "ACCESS",
    "DEVICES",
    "EFFORTS",
    "OBJECTIVES",
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
    "Overhead",
    "QueueParameter",
    "QueueParameters",
    "Recorded",
    "Shaped",
    "advise",
    "advise_on",
    "as_sold",
    "commands",
    "estimate",
    "experiment_text",
    "given_line",
    "queue_parameters",
    "recorded_line",
    "require_writable",
    "write_experiment",
]


# A type checker that saw this would take any name for one of the package's.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if (module := _MODULES.get(name)) is not None:
            return getattr(import_module(f"redtail.lines.{module}"), name)
        raise AttributeError(f"module 'redtail.lines' has no attribute {name!r}")
