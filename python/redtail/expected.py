"""Of which cases an expectation has to hold, and whether their runs have what it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

from redtail import metrics as names
from redtail.expectation import Expectation, OfMetric, OfPath, OverTime, Term, in_words
from redtail.scenario import links, series_key


class HasLabels(Protocol):
    """A case, of a plan or of results."""

    @property
    def labels(self) -> Mapping[str, str]:
        """A short text for the value of each factor, by its dotted key."""

    @property
    def factors(self) -> Mapping[str, Any]:
        """The value of each factor."""


@dataclass(frozen=True)
class RowOf:
    """A case, or several that are compared, of which an expectation has to hold.

    Attributes:
        title: what tells it from other rows; empty for the only one.
        cases: the case of each term that is measured, by the term's name: its place among all.
    """

    title: str
    cases: Mapping[str, int]


def rows_of(expected: Expectation, cases: Sequence[HasLabels]) -> list[RowOf]:
    """Return of which cases an expectation has to hold.

    Args:
        expected: the expectation.
        cases: all cases of the experiment.

    Raises:
        SpecError: a label is none of the cases', or of several factors'.
    """
    measured = {
        name: term.labels
        for name, term in expected.terms.items()
        if isinstance(term, OfMetric | OverTime)
    }
    some = any(measured.values()) and not all(measured.values())
    picked_in_all = [
        {factor for factor, _ in (_picked(expected, cases, label) for label in labels)}
        for labels in measured.values()
    ]
    left_out = set.intersection(*picked_in_all)
    rows: dict[tuple[int, ...], RowOf] = {}
    for number in _chosen(expected, cases):
        of = {name: _case(expected, cases, number, labels) for name, labels in measured.items()}
        places = tuple(of.values())
        if some and len(set(places)) == 1:
            continue  # a case beside itself
        kept = {
            factor: label
            for factor, label in cases[number].labels.items()
            if factor not in left_out
        }
        rows.setdefault(places, RowOf(names.case_title(cases[number].factors, kept), of))
    if not rows:
        raise expected.error("is about no case; accepted: labels that leave one")
    return list(rows.values())


def _factors_of(cases: Sequence[HasLabels]) -> dict[str, dict[str, None]]:
    """Return the labels of each factor, in their order."""
    found: dict[str, dict[str, None]] = {}
    for case in cases:
        for factor, label in case.labels.items():
            found.setdefault(factor, {})[label] = None
    return found


def _picked(expected: Expectation, cases: Sequence[HasLabels], label: str) -> tuple[str, str]:
    """Return the factor and the label that a text names, as LABEL or as KEY=LABEL."""
    factors = _factors_of(cases)
    key, sign, value = label.partition("=")
    if sign and key.strip() in factors and value.strip() in factors[key.strip()]:
        return key.strip(), value.strip()
    found = [factor for factor, labels in factors.items() if label in labels]
    if len(found) == 1:
        return found[0], label
    every = list(dict.fromkeys(each for labels in factors.values() for each in labels))
    if found:
        accepted = ", ".join(f'"{factor}={label}"' for factor in found)
        raise expected.error(f"several factors have the label {label}; accepted: {accepted}")
    near = get_close_matches(label, every, n=3)
    raise expected.error(
        f"no case has the label {label}; accepted: {', '.join(every) or 'none: no factor varies'}"
        + (f"; nearest: {', '.join(near)}" if near else "")
    )


def _chosen(expected: Expectation, cases: Sequence[HasLabels]) -> list[int]:
    wanted: dict[str, set[str]] = {}
    for each in expected.cases:
        factor, label = _picked(expected, cases, each)
        wanted.setdefault(factor, set()).add(label)
    return [
        number
        for number, case in enumerate(cases)
        if all(case.labels[factor] in labels for factor, labels in wanted.items())
    ]


def _case(
    expected: Expectation, cases: Sequence[HasLabels], number: int, labels: tuple[str, ...]
) -> int:
    """Return the case that has these labels and is else like a case."""
    if not labels:
        return number
    wanted = dict(_picked(expected, cases, label) for label in labels)
    with_them = [
        each
        for each, case in enumerate(cases)
        if all(case.labels[factor] == label for factor, label in wanted.items())
    ]
    # What changes along with the factor, as in one [[factors.zip]], cannot be as it was.
    free = [
        factor
        for factor in cases[number].labels
        if factor not in wanted and len({cases[each].labels[factor] for each in with_them}) > 1
    ]
    like = [
        each
        for each in with_them
        if all(cases[each].labels[factor] == cases[number].labels[factor] for factor in free)
    ]
    if len(like) != 1:
        raise expected.error(f"no case has the labels {', '.join(labels)} together")
    return like[0]


class Known(Protocol):
    """The names of the metrics that runs can have; `measured.Measured` is one."""

    def __contains__(self, name: str) -> bool: ...

    def nearest(self, name: str) -> str:
        """Return the names that are most like `name`, as the end of a message."""


def check(
    expected: Sequence[Expectation],
    known: Known,
    cases: Sequence[HasLabels],
    scenarios: Sequence[Mapping[str, Any]],
    replications: int,
    backend: str = "sim",
) -> None:
    """Refuse expectations about what no run has, before any is made.

    Args:
        expected: the expectations.
        known: what runs of the experiment can have.
        cases: its cases.
        scenarios: the last replication of each.
        replications: how many there are.
        backend: the name of what makes the runs.

    Raises:
        SpecError: for the first one that is not valid.
    """
    for each in expected:
        states = [
            term
            for term in each.terms.values()
            if isinstance(term, OverTime) and (term.series == "state" or term.window.state)
        ]
        if states and backend != "sim":
            raise each.error(
                f"{in_words(states[0])}: a kernel does not tell its states; accepted: backend sim"
            )
        for row in rows_of(each, cases):
            for name, number in row.cases.items():
                _check_term(each, each.terms[name], known, scenarios[number], replications)
            group_of_path(each, scenarios[next(iter(row.cases.values()))])


def _check_term(
    expected: Expectation,
    term: Term,
    known: Known,
    scenario: Mapping[str, Any],
    replications: int,
) -> None:
    if isinstance(term, OfMetric):
        if term.metric not in known:
            raise expected.error(f"no run has the metric {term.metric}{known.nearest(term.metric)}")
        return
    assert isinstance(term, OverTime)
    if term.table == "queues":
        places = list(links(scenario))
    else:
        places = [
            group["name"]
            for group in scenario.get("traffic", ())
            if term.table == "groups" or "tcp" in group
        ]
    if term.place not in places:
        what = "link" if term.table == "queues" else "group of TCP flows"
        raise expected.error(
            f"{term.series} of {term.place}: there is no such {what}; accepted: {', '.join(places)}"
        )
    key = series_key(term.table)
    if not scenario.get("series", {}).get(key):
        raise expected.error(
            f"{in_words(term)} needs a time series of every replication; accepted: with a table "
            f'[series] that has interval = "10 ms" or another one, {key} = true, and '
            f"replications = {replications}"
        )


def group_of_path(expected: Expectation, scenario: Mapping[str, Any]) -> str:
    """Return the group whose path `2 BDP` is of where the expectation does not say it.

    Empty if there is no such quantity.

    Raises:
        SpecError: it is not clear which group it is, or one is named that there is not.
    """
    bounds = [
        term.condition[1]
        for term in expected.terms.values()
        if isinstance(term, OverTime) and term.condition is not None
    ]
    paths = [each for each in (*expected.terms.values(), *bounds) if isinstance(each, OfPath)]
    if not paths:
        return ""
    groups = [str(group["name"]) for group in scenario.get("traffic", ())]
    for each in paths:
        if each.group and each.group not in groups:
            raise expected.error(
                f"{in_words(each)}: there is no such group; accepted: {', '.join(groups)}"
            )
    named = dict.fromkeys(
        group
        for term in expected.terms.values()
        for group in groups
        if (isinstance(term, OverTime) and term.place == group)
        or (isinstance(term, OfMetric) and term.metric.startswith(f"{group}."))
    )
    found = list(named) or groups
    if len(found) != 1 and not all(each.group for each in paths):
        what = paths[0].what
        raise expected.error(
            f"{what}: of which group? accepted: "
            + ", ".join(f"{what} of {group}" for group in found)
        )
    return found[0]
