"""Whether the queues, loads and metrics that findings, figures and tables name exist.

It follows from the experiment files, and is said before anything is run.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from redtail.engine.plans import Plan
from redtail.errors import RedtailError, SpecError
from redtail.measured import Measured
from redtail.papers.checks import loads_named
from redtail.papers.definition import Measure, Paper, Study, View
from redtail.papers.grid import QUANTILES, Loads, derived, is_like


@dataclass(frozen=True)
class Named:
    """What one place names of a study or view.

    Attributes:
        where: the place.
        view: the name of the study or view.
        queues: the queues.
        loads: the names of the loads.
        metrics: the metrics and measures.
    """

    where: str
    view: str
    queues: Collection[str] = ()
    loads: Collection[float | str] = ()
    metrics: Collection[str] = ()


def refuse_unknown(paper: Paper, plans: Mapping[str, Sequence[Plan]]) -> None:
    """Refuse names of what does not exist.

    Args:
        paper: the paper.
        plans: by study, the plans of its files; what names a study without plans is passed over.

    Raises:
        SpecError: with the place, and what is accepted there.
    """
    measures = {each.name: each for each in paper.measures}
    known = {
        view.name: _Known(view, study, plans[study.name])
        for study in paper.studies
        if study.name in plans
        for view in paper.all_views
        if view.study == study.name
    }
    for study in paper.studies:
        if study.name in plans:
            labels = known[study.name].own
            for variant in study.variants:
                like = [variant.solve.like] if variant.solve else []
                for name in (variant.of, *like):
                    _refuse(paper, f"paper.toml: {study.name}: {variant.label}", name, labels)
    for named in _named(paper):
        if named.view not in known:
            continue
        there = known[named.view]
        for queue in named.queues:
            _refuse(paper, named.where, queue, there.queues)
        for load in named.loads:
            try:
                there.loads.find(load)
            except RedtailError as error:
                raise SpecError(f"{paper.folder}/{named.where}: load {error}") from None
        for metric in named.metrics:
            there.refuse_metric(f"{paper.folder}/{named.where}", metric, measures)


class _Known:
    """The queues, loads and metrics that a view of a study has."""

    def __init__(self, view: View, study: Study, plans: Sequence[Plan]) -> None:
        cases = [case for plan in plans for case in plan.cases]
        for key in (view.queue, view.load, *view.where):
            if any(key not in case.factors for case in cases):
                factors = ", ".join(dict.fromkeys(key for case in cases for key in case.factors))
                raise SpecError(f"{view.name}: {key} is no factor; accepted: {factors}")
        kept = [case for case in cases if is_like(case, view.where)]
        if not kept:
            raise SpecError(f"{view.name}: where = {dict(view.where)}: no case is like this")
        self.own = {case.labels[view.queue] for case in kept}
        of_variants = {variant.label for variant in study.variants}
        self.queues = self.own | of_variants if view.queue == study.queue else self.own
        try:
            self.loads = Loads(view.load, (case.factors[view.load] for case in kept))
        except RedtailError as error:
            raise SpecError(f"{view.name}: {error}") from None
        self.measured = Measured.of(
            json.loads(plan.example(case)) for plan in plans for case in range(len(plan.cases))
        )

    def refuse_metric(self, where: str, metric: str, measures: Mapping[str, Measure]) -> None:
        which, _, name = metric.rpartition(":")
        if which and which not in QUANTILES:
            raise SpecError(
                f"{where}: {metric!r}; accepted before the colon: {', '.join(QUANTILES)}"
            )
        if name in measures:
            for part in measures[name].formula.names:
                self.refuse_metric(f"{where}: measure {name}", part, measures)
        elif not derived(name) and self.measured is not None and name not in self.measured:
            own = f"; measures: {', '.join(measures)}" if measures else ""
            raise SpecError(
                f"{where}: no run has the metric {name}{self.measured.nearest(name)}{own}"
            )


def _named(paper: Paper) -> Iterator[Named]:
    for finding in paper.findings:
        for check in (*finding.checks, *finding.conditions):
            given = check.parameters
            to = given.get("to", ())
            yield Named(
                f"findings.toml: {finding.id}",
                check.study,
                [*given.get("queues", ()), *(to if isinstance(to, list) else ())],
                loads_named(check.test, given),
                [given[key] for key in ("metric", "to_metric", "of") if key in given],
            )
    for figure in paper.figures:
        yield Named(
            f"paper.toml: figure {figure.name}", figure.study, figure.queues, (), figure.metrics
        )
    for table in paper.tables:
        yield Named(
            f"paper.toml: table {table.name}",
            table.study,
            {queue for _, queue, _ in table.rows},
            [load for load, _, _ in table.rows],
            table.metrics,
        )
    for number, numbers in enumerate(paper.then_and_now, start=1):
        where = f"paper.toml: then_and_now {number}"
        yield Named(where, numbers.study, (), numbers.loads, numbers.metrics)


def _refuse(paper: Paper, where: str, name: str, accepted: Collection[str]) -> None:
    if name not in accepted:
        raise SpecError(
            f"{paper.folder}/{where}: {name!r}; accepted: {', '.join(sorted(accepted))}"
        )
