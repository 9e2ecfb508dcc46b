"""Whether the queues, loads and metrics that findings, figures and tables name exist.

It follows from the experiment files, and is said before anything is run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redtail.engine.plans import Plan
from redtail.errors import RedtailError, SpecError
from redtail.measured import Measured
from redtail.studies.checks import loads_named
from redtail.studies.definition import Comparison, Measure, Study, View
from redtail.studies.grid import QUANTILES, Loads, derived, describe, is_like
from redtail.studies.reading import Placed
from redtail.studies.subjects import kinds

_NAMES = {
    "queues": "queue",
    "to": "queue",
    "metric": "metric",
    "to_metric": "metric",
    "of": "metric",
}
"""What the keys of checks name, besides those that name loads."""


def refuse_unknown(
    study: Study,
    plans: Mapping[str, Sequence[Plan]],
    elsewhere: Mapping[str, Sequence[Plan]] | None = None,
) -> None:
    """Refuse names of what does not exist.

    Args:
        study: the study.
        plans: by comparison, the plans of its files; what names one without plans is passed over.
        elsewhere: the same at the other scales, which may record more metrics.

    Raises:
        SpecError: with the place, and what is accepted there.
    """
    measures = {each.name: each for each in study.measures}
    of = {comparison.name: comparison for comparison in study.comparisons}
    known = {
        view.name: _Known(
            view,
            of[view.comparison],
            plans[view.comparison],
            (elsewhere or {}).get(view.comparison, ()),
            measures,
        )
        for view in study.all_views
        if view.comparison in plans
    }
    for part, view, key, kind, names in _named(study):
        if view in known:
            for name in names:
                known[view].refuse(part, key, kind, name)
    _refuse_of_suite(study, plans, known)


def _refuse_of_suite(
    study: Study, plans: Mapping[str, Sequence[Plan]], known: Mapping[str, _Known]
) -> None:
    """Refuse what sections and criteria name, and files that have more than the control."""
    if study.subject is None:
        return
    for of in study.comparisons:
        for plan in plans.get(of.name, ()):
            labels = sorted({case.labels[of.queue] for case in plan.cases})
            if labels != [study.subject.control]:
                raise of.error(
                    "files",
                    f"{plan.file}: {of.queue} is {', '.join(labels)}; accepted: "
                    f"{study.subject.control} alone, the control of [subject]",
                )
    subjects = (study.subject.control, *kinds(study.subject.kind))
    for row in (row for table in study.tables for row in table.rows):
        if row.queue not in subjects:
            raise row.refused("queue", row.queue, subjects)
    for section in study.sections:
        views = [known[name] for name in section.comparisons if name in known]
        for metric in section.measures if views else ():
            refused = []
            for view in views:
                try:
                    view.refuse(section, "measures", "metric", metric)
                except SpecError as error:
                    refused.append(error)
            if len(refused) == len(views):
                raise refused[0]
    measures = {each.name: each.shown for each in study.measures}
    for criterion in study.criteria:
        criterion.least(measures.get(criterion.metric) or describe(criterion.metric))


class _Known:
    """The queues, loads and metrics that a view of a comparison has."""

    def __init__(
        self,
        view: View,
        comparison: Comparison,
        plans: Sequence[Plan],
        elsewhere: Sequence[Plan],
        measures: Mapping[str, Measure],
    ) -> None:
        self.measures = measures
        cases = [case for plan in plans for case in plan.cases]
        keys = [("queue", view.queue), ("load", view.load), *(("where", of) for of in view.where)]
        for at, key in keys:
            if any(key not in case.factors for case in cases):
                factors = dict.fromkeys(key for case in cases for key in case.factors)
                raise view.error(at, f"= {key!r} is no factor; accepted: {', '.join(factors)}")
        kept = [case for case in cases if is_like(case, view.where)]
        if not kept:
            raise view.error("where", f"= {dict(view.where)}: no case is like this")
        self.own = {case.labels[view.queue] for case in kept}
        of_variants = {variant.label for variant in comparison.variants}
        self.queues = self.own | of_variants if view.queue == comparison.queue else self.own
        try:
            self.loads = Loads(view.load, (case.factors[view.load] for case in kept))
        except RedtailError as error:
            raise view.error("load", str(error)) from None
        self.measured = Measured.of(
            json.loads(plan.example(case))
            for plan in (*plans, *elsewhere)
            for case in range(len(plan.cases))
        )

    def refuse(self, part: Placed, key: str, kind: str, name: Any) -> None:
        """Refuse a name of a kind of things if there is no such thing."""
        match kind:
            case "queue" | "own":
                accepted = self.queues if kind == "queue" else self.own
                if name not in accepted:
                    raise part.refused(key, name, sorted(accepted))
            case "load":
                try:
                    self.loads.find(name)
                except RedtailError as error:
                    raise part.error(key, f"= {error}") from None
            case _:
                self._refuse_metric(part, key, name)

    def _refuse_metric(self, part: Placed, key: str, metric: str) -> None:
        which, _, name = metric.rpartition(":")
        if which and which not in QUANTILES:
            listed = ", ".join(QUANTILES)
            raise part.error(key, f"= {metric!r}; accepted before the colon: {listed}")
        if name in self.measures:
            measure = self.measures[name]
            for used in measure.formula.names:
                self._refuse_metric(measure, "formula", used)
        elif not derived(name) and self.measured is not None and name not in self.measured:
            own = f"; measures: {', '.join(self.measures)}" if self.measures else ""
            near = self.measured.nearest(name)
            raise part.error(key, f"no run has the metric {name}{near}{own}")


def _named(study: Study) -> Iterator[tuple[Placed, str, str, str, Sequence[Any]]]:
    """Yield what names something of a view: itself, the view, the key, what kind, the names."""
    for comparison in study.comparisons:
        for variant in comparison.variants:
            yield variant, comparison.name, "of", "own", [variant.of]
            if variant.solve is not None:
                yield variant.solve, comparison.name, "like", "own", [variant.solve.like]
    for check in (check for finding in study.findings for check in finding.all_checks):
        loads = loads_named(check.test, check.parameters)
        for key, value in check.parameters.items():
            kind = "load" if key in loads else _NAMES.get(key)
            if kind is not None:
                names = value if isinstance(value, list) else [value]
                yield check, check.comparison, key, kind, names
    for figure in study.figures:
        yield figure, figure.comparison, "queues", "queue", figure.queues
        yield figure, figure.comparison, "draws", "metric", figure.metrics
    for table in study.tables:
        for row in table.rows:
            if study.subject is None:
                yield row, table.comparison, "queue", "queue", [row.queue]
            yield row, table.comparison, "load", "load", [row.load]
        yield table, table.comparison, "metrics", "metric", table.metrics
        for column in table.columns:
            yield column, table.comparison, "metric", "metric", [column.metric]
        named = [metric.removeprefix("-") for metric in table.order]
        yield table, table.comparison, "order", "metric", named
    for criterion in study.criteria:
        yield criterion, criterion.view, "metric", "metric", [criterion.metric]
        if criterion.load is not None:
            yield criterion, criterion.view, "load", "load", [criterion.load]
    for numbers in study.then_and_now:
        yield numbers, numbers.comparison, "loads", "load", numbers.loads
        yield numbers, numbers.comparison, "metrics", "metric", numbers.metrics
