"""`redtail check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from redtail.cli.options import File, with_plan_options
from redtail.cli.output import complain, say
from redtail.options import PlanOptions

if TYPE_CHECKING:
    from redtail.engine.plans import Plan


@with_plan_options
def check(
    file: File,
    **given: Unpack[PlanOptions],
) -> None:
    """Check an experiment without running it, and say what it amounts to.

    Code that it names is not executed.
    """
    from redtail import experiment

    plan = experiment.check(file, **given)
    for text in plan.warnings:
        complain(text, "warning")
    say(f"{file}: {plan.name!r} is valid: {amount(plan)}")
    for line in plan.outline:
        say(f"  {line}")
    print_code(plan)
    print_controls(plan)
    titles = [case.title for case in plan.cases if case.title]
    if titles:
        say("cases:")
    for title in titles:
        say(f"  {title}")


def print_code(plan: Plan) -> None:
    """Say which code of the user a run executes."""
    for text in [each.text for each in plan.code] + [each.text for each in plan.programs]:
        say(f"would run code: {text}")


def print_controls(plan: Plan) -> None:
    """Say which kernels have the congestion controls that an experiment asks for."""
    from redtail.backends import controls

    for key, name in plan.kernel_controls():
        say(f'{key} = "{name}":')
        for line in controls.where(name):
            say(f"  {line}")


def amount(plan: Plan) -> str:
    """Return how many cases, replications and runs there are."""
    from redtail.metrics import counted

    cases = counted(len(plan.cases), "case")
    if plan.stop is None:
        return f"{cases}, {counted(plan.replications, 'replication')}, {counted(plan.runs, 'run')}"
    rule = "; ".join(str(bound) for bound in plan.stop.until)
    return (
        f"{cases}, {plan.at_least} to {plan.replications} replications until {rule}, "
        f"{plan.first_runs} to {counted(plan.runs, 'run')}"
    )
