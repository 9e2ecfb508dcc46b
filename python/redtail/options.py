"""The options of functions and commands that check and run experiments, each declared once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypedDict, cast

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from redtail.inputs.code import Allowed
    from redtail.progress import Progress

Overrides: TypeAlias = Mapping[str, object] | Sequence[str]
"""Values by dotted key, or `key=value` texts as on the command line."""


class PlanOptions(TypedDict, total=False):
    """Options for checking an experiment.

    Attributes:
        set: overrides, by dotted key: `{"bottleneck.rate": "20 Mbit/s"}`, or as
            `["bottleneck.rate=20 Mbit/s"]`.
        replications: overrides the experiment's number of replications.
        until: overrides it with a rule, such as `"queue_delay_p99 within 5 %"`.
        at_least: with a rule, replications before it is looked at; 10 by default.
        at_most: with a rule, replications that no case exceeds; 50 by default.
        metrics: names of the metrics that tables and figures show, which may have wildcards; by
            default those of the file's [report], else what suits the traffic.
        allow_code: files and folders outside the experiment's own whose code may be executed.
    """

    set: Overrides | None
    replications: int | None
    until: str | Sequence[str] | None
    at_least: int | None
    at_most: int | None
    metrics: str | Sequence[str] | None
    allow_code: Allowed


class ExecuteOptions(TypedDict, total=False):
    """Options for running a checked experiment.

    Attributes:
        jobs: number of runs at the same time; by default one per processor.
        out: folder of the store, or the URL of an object store; "runs" by default.
        progress: called after each finished run.
        keep_going: when a run fails, make the others and warn, rather than stop.
        executor: runs the scenarios in place of threads of this process.
        backend: the name of what makes the runs; by default what the experiment says, else "sim".
    """

    jobs: int | None
    out: str | os.PathLike[str]
    progress: Callable[[Progress], None] | None
    keep_going: bool
    executor: Executor | None
    backend: str | None


class RunOptions(PlanOptions, ExecuteOptions, total=False):
    """Options of `redtail.run` and of a campaign: how to check, and how to run."""


def split(options: RunOptions) -> tuple[PlanOptions, ExecuteOptions]:
    """Return the options of checking, and those of running.

    Raises:
        TypeError: there is no such option.
    """
    for name in options:
        if name not in RunOptions.__annotations__:
            accepted = ", ".join(RunOptions.__annotations__)
            raise TypeError(f"there is no option {name!r}; accepted: {accepted}")
    checking = {key: options[key] for key in PlanOptions.__annotations__ if key in options}  # type: ignore[literal-required]
    running = {key: options[key] for key in ExecuteOptions.__annotations__ if key in options}  # type: ignore[literal-required]
    return cast(PlanOptions, checking), cast(ExecuteOptions, running)
