"""Runs one experiment under several backends, to compare what they measure."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from redtail import backends as known
from redtail import experiment, measured
from redtail.analysis.gap import Gaps, gaps, require_metrics
from redtail.analysis.results import Results
from redtail.analysis.tolerances import Tolerances
from redtail.engine.plans import Plan
from redtail.errors import RedtailWarning, SpecError
from redtail.experiment import Source
from redtail.measured import Measured
from redtail.options import ExecuteOptions, RunOptions, split
from redtail.running import runner


def compare_backends(
    source: Source,
    backends: Sequence[str],
    *,
    tolerances: Mapping[str, str] | None = None,
    **options: Unpack[RunOptions],
) -> Gaps:
    """Run an experiment under several backends, and say how far they are apart.

    Every backend runs the same cases with the same seeds. Its runs and results are kept in a
    folder of its own, as those of `run` are, so runs that are stored are not made again.
    `redtail.analysis.gap` says which test decides.

    Args:
        source: a path, `Toml` text or an `Experiment`.
        backends: their names, two or more; every other one is compared with the first.
        tolerances: by metric a text such as `"1.5 %"`, `"3 packets"` or `"15 % or 0.2 points"`;
            `redtail.analysis.tolerances.DEFAULTS` has those of the others.
        **options: as for `run`, without `backend`. `metrics` are those to compare; without them
            utilization, goodput, loss, marks, the mean queue, and the median or mean times that
            users and transfers take.

    Raises:
        SpecError: the experiment is not valid, a backend cannot run it, or there is no such
            metric, backend or tolerance.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    checking, running = split(options)
    if running.get("backend") is not None:
        raise SpecError(
            f"backend = {running['backend']!r}: not here; accepted: backends, a list of two or more"
        )
    require_several(backends)
    plan = experiment.prepare(source, **checking)
    limits = Tolerances(tolerances, "tolerances: ", [each.name for each in plan.derived])
    for text in plan.warnings:
        warnings.warn(text, RedtailWarning, stacklevel=2)
    metrics = measured.shown(plan) if checking.get("metrics") else None
    found = execute(plan, backends, metrics=metrics, tolerances=limits, **running)
    for text in found.warnings:
        warnings.warn(text, RedtailWarning, stacklevel=2)
    for results in found.results:
        if results.failures:
            text = f"backend {results.backend}: {results.failure_summary()}"
            warnings.warn(text, RedtailWarning, stacklevel=2)
    return found


def execute(
    plan: Plan,
    backends: Sequence[str],
    *,
    metrics: Sequence[str] | None = None,
    tolerances: Tolerances | None = None,
    **options: Unpack[ExecuteOptions],
) -> Gaps:
    """Run a checked experiment under several backends; arguments and errors as above.

    What failed on the way is in the results, and there is no warning of it.
    """
    require_several(backends)
    require_able([plan], backends)
    _require_known(plan, metrics or ())
    (found,) = zip(*execute_all([plan], backends, **options), strict=True)
    if metrics is not None:
        require_metrics(metrics, [name for each in found for name in each.metric_names])
    return gaps(found, metrics=metrics, tolerances=tolerances)


def execute_all(
    plans: Sequence[Plan],
    backends: Sequence[str],
    *,
    stored_only: bool = False,
    **options: Unpack[ExecuteOptions],
) -> list[list[Results]]:
    """Run checked experiments under several backends, one backend after the other.

    Users that a load asks for are searched once, under the first backend, so that all have as many.
    With `stored_only` no other run is made.

    Returns:
        For each backend the results of each experiment.

    Raises:
        SpecError: a backend cannot run an experiment.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    first, *others = backends
    given: ExecuteOptions = {**options, "backend": first}
    found = [runner.execute_all(plans, stored_only=stored_only, **given)]
    for place, results in enumerate(found[0]):
        if any(case.loads for case in results.cases):
            users = tuple({load.group: load.users for load in case.loads} for case in results.cases)
            plans = [*plans[:place], replace(plans[place], users=users), *plans[place + 1 :]]
    for name in others:
        given = {**options, "backend": name}
        found.append(runner.execute_all(plans, stored_only=stored_only, **given))
    return found


def require_able(plans: Sequence[Plan], backends: Sequence[str]) -> None:
    """Refuse experiments that one of the backends cannot run, before any run is made.

    Raises:
        SpecError: it cannot; the message has every reason.
    """
    for name in backends:
        known.require_able(known.find(name), plans)


def require_several(backends: Sequence[str]) -> None:
    """Refuse what are not two backends or more.

    Raises:
        SpecError: there is no such backend, only one, or one twice.
    """
    accepted = f"accepted: two or more of {', '.join(known.KNOWN)}"
    if isinstance(backends, str):
        raise SpecError(f"backends = {backends!r}: a list is wanted; {accepted}", key="backends")
    text = ",".join(backends)
    for name in backends:
        if not known.exists(name):
            raise SpecError(
                f"backends = {text}: there is no backend {name!r}; {accepted}", key="backends"
            )
        if backends.count(name) > 1:
            raise SpecError(f"backends = {text}: {name} is there twice; {accepted}", key="backends")
    if len(backends) < 2:
        raise SpecError(
            f"backends = {text}: there is nothing to compare it with; {accepted}", key="backends"
        )


def _require_known(plan: Plan, metrics: Sequence[str]) -> None:
    """Refuse a metric that no run can have, before any is made."""
    if not metrics:
        return
    found = Measured.of_plan(plan)
    for name in metrics:
        if found is not None and name not in found:
            raise SpecError(
                f"--metric {name}: no run of this experiment has it{found.nearest(name)}",
                file=plan.file,
                key=name,
            )
