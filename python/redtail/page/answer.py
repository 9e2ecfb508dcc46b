"""The answer in a few lines: what differs between the settings compared, and by how much.

Every line is a statement about paired differences with Holm's correction over all comparisons of
the answer, so that all lines hold at once (see `analysis.compare`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from redtail import escape
from redtail import metrics as names
from redtail.analysis import censoring
from redtail.analysis.digits import shown
from redtail.analysis.paired import LEVEL, MOST_NEEDED

if TYPE_CHECKING:
    from redtail.analysis.case import CaseResult
    from redtail.analysis.compare import Comparison, Comparisons
    from redtail.analysis.results import Results

_MOST_EACH = 3
"""So many settings are compared with the baseline one by one; of more, the extremes are named."""

_UNBROKEN = "\u00a0"
"""A space at which no line ends."""

_LEAST_SHARE = 5e-5
"""A smaller share of the baseline is not worth a number."""


@dataclass(frozen=True)
class Line:
    """One statement.

    Attributes:
        metric: what it is about, in words.
        verdict: a verdict of `analysis.paired`, "mixed" of several, or empty.
        text: the statement, which begins with the verdict.
    """

    metric: str
    verdict: str
    text: str

    @property
    def rest(self) -> str:
        """The statement without the verdict at its beginning."""
        return self.text.removeprefix(self.verdict)


@dataclass(frozen=True)
class Paragraph:
    """What is said of one setting.

    Attributes:
        head: which setting, and what it is compared with.
        lines: a statement for each metric.
    """

    head: str
    lines: tuple[Line, ...]


def paragraphs(
    results: Results, metrics: Sequence[str], comparisons: Comparisons | None
) -> list[Paragraph]:
    """Return the answer.

    Args:
        results: the experiment's results.
        metrics: the metrics that decide, the most important first.
        comparisons: of these metrics, of every setting with the baseline; None without a factor.
    """
    if comparisons is None or not len(comparisons):
        case = results.cases[0] if len(results.cases) == 1 else None
        return [Paragraph("Measured", tuple(_measured(case, metrics)))] if case else []
    labels = list(dict.fromkeys(row.label for row in comparisons))
    if len(labels) > _MOST_EACH:
        lines = (_extremes(results, metric, comparisons) for metric in metrics)
        title = names.factor_title(comparisons.factor)
        return [Paragraph(f"Of all settings of {title}", tuple(line for line in lines if line))]
    found = []
    for label in labels:
        rows = [row for row in comparisons if row.label == label]
        lines = (
            _of_rows([row for row in rows if row.metric == name], len(comparisons))
            for name in metrics
        )
        # A plain value says nothing without its key.
        plain = not any(
            isinstance(case.factors.get(comparisons.factor), dict) for case in results.cases
        )
        of = f"{names.factor_title(comparisons.factor)}: " if plain else ""
        head = f"{of}{escape.name(label)} against {escape.name(rows[0].baseline)}"
        found.append(Paragraph(head, tuple(line for line in lines if line is not None)))
    return found


def _measured(case: CaseResult, metrics: Sequence[str]) -> list[Line]:
    found = []
    for name in metrics:
        estimate = case.metric(name)
        if not math.isnan(estimate.mean):
            about = names.describe(name)
            text = f"{shown(estimate, about.scale)} {about.shown_unit}".strip()
            if estimate.unfinished and estimate.unfinished > censoring.BOUND:
                text += f"; {censoring.percent(estimate.unfinished)} did not finish"
            found.append(Line(names.title_of(name), "", text))
    return found


def _of_rows(rows: Sequence[Comparison], together: int) -> Line | None:
    """Return what the comparisons of one setting say of one metric, at all other settings.

    Args:
        rows: these comparisons.
        together: the number of all comparisons that were asked for together.
    """
    refused = next((row.unjudged for row in rows if row.judged == "not comparable"), None)
    metric = names.title_of(rows[0].metric) if rows else ""
    rows = [row for row in rows if not math.isnan(row.difference.mean)]
    if not rows and refused is not None:
        text = f"{refused.verdict}: {escape.name(refused.why)}"
        return Line(metric, refused.verdict, text)
    if not rows:
        return None
    different = [row for row in rows if row.distinguishable]
    signs = {row.difference.mean > 0 for row in different}
    ends = sorted(different or rows, key=lambda row: row.difference.mean)
    ends = [ends[0], ends[-1]] if len(ends) > 1 else ends
    amounts = " to ".join(_amount(row) for row in ends)
    total = len(rows)
    if not different:
        verdict, text = _undecided(rows, amounts, together)
    elif len(signs) == 1:
        verdict = "higher" if signs.pop() else "lower"
        ends.sort(key=lambda row: abs(row.difference.mean))
        amounts = " to ".join(_amount(row, size=True) for row in ends)
        where = "" if len(different) == total else f" in {len(different)} of {total} places"
        most = " in most runs" if any(row.refused for row in different) else ""
        text = f"{verdict}{most}{where} by {amounts}"
    else:
        higher = sum(row.difference.mean > 0 for row in different)
        verdict = "mixed"
        text = (
            f"mixed: higher in {higher} and lower in {len(different) - higher} of {total} places, "
            f"from {amounts}"
        )
    return Line(names.title_of(rows[0].metric), verdict, text)


def _undecided(rows: Sequence[Comparison], amounts: str, together: int) -> tuple[str, str]:
    """Return the verdict and the statement of comparisons of which none is distinguishable.

    Args:
        rows: the comparisons.
        amounts: their differences in words.
        together: the number of all comparisons that were asked for together.
    """
    found = {row.judged for row in rows}
    if found == {"equal"}:
        return "equal", "equal in every replication"
    unjudged = next((row.unjudged for row in rows if row.unjudged is not None), None)
    if unjudged is not None:
        return unjudged.verdict, f"{unjudged.verdict}: {amounts}; {escape.name(unjudged.why)}"
    if found == {"one observation"}:
        return "", f"{amounts}, no interval"
    few = sum(row.judged == "too few replications" for row in rows)
    verdict = "too few replications" if few else "not distinguishable"
    text = verdict
    if any(digit in amounts.partition(" at ")[0] for digit in "123456789"):
        text += f": {amounts}"
    if few:
        where = "" if len(rows) == 1 else f" in {few} of {len(rows)} places"
        text += f", with one sign in all replications{where}"
    elif together > 1 and any(row.p is not None and row.p <= LEVEL for row in rows):
        text += f", which would be distinguishable alone, but not among {together} comparisons"
    needed = [row.needed for row in rows]
    known = sorted(each for each in needed if each is not None)
    if known:
        # Of several places, those that more replications would decide first.
        text += f"; about {known[0]} replications like these would decide"
    elif verdict == "not distinguishable":
        text += f"; {MOST_NEEDED:,} replications like these would not decide"
    return verdict, text


def _amount(row: Comparison, *, size: bool = False) -> str:
    """Return a difference with its interval, its share of the baseline, and where it is.

    Args:
        row: the comparison.
        size: without its sign, which the sentence has in words.
    """
    about = names.describe(row.metric)
    difference, relative = row.difference, row.relative.mean
    if size:
        difference, relative = replace(difference, mean=abs(difference.mean)), abs(relative)
    # A difference of two percentages is not a percentage of either.
    unit = "points" if about.shown_unit == "%" else about.shown_unit
    text = f"{signed(shown(difference, about.scale), plus=not size)} {unit}".strip()
    share = f"{100 * relative:.2g}" if abs(relative) < 1 else f"{100 * relative:.0f}"
    if abs(relative) >= _LEAST_SHARE:
        text += f" ({signed(share, plus=not size)} %)"
    text = text.replace(" ", _UNBROKEN)
    return f"{text} at {row.others}" if row.others else text


def signed(text: str, *, plus: bool = True) -> str:
    """Return a number as text with a sign that cannot be taken for a hyphen; zero has none.

    >>> signed("1.5 ±0.2"), signed("-1.5 ±0.2"), signed("-0 ±?"), signed("–")
    ('+1.5 ±0.2', '−1.5 ±0.2', '0 ±?', '–')
    """
    number = text.partition(" ")[0]
    if not any(digit in number for digit in "123456789"):
        return text.removeprefix("-")
    return text.replace("-", "−", 1) if number.startswith("-") else f"{'+' * plus}{text}"


def _extremes(results: Results, metric: str, comparisons: Comparisons) -> Line | None:
    """Return which settings have the lowest and the highest mean, place by place."""
    places: dict[tuple[str, ...], list[CaseResult]] = {}
    for case in results.cases:
        if not math.isnan(case.metric(metric).mean):
            rest = tuple(case.labels[key] for key in comparisons.held)
            places.setdefault(rest, []).append(case)
    ranked = [sorted(each, key=lambda case: case.metric(metric).mean) for each in places.values()]
    ranked = [each for each in ranked if len(each) > 1]
    if not ranked:
        return None
    about = names.describe(metric)

    def named(place: int) -> str:
        counts: dict[str, list[CaseResult]] = {}
        for each in ranked:
            counts.setdefault(each[place].labels[comparisons.factor], []).append(each[place])
        label, cases = max(counts.items(), key=lambda item: len(item[1]))
        value = f"{shown(cases[0].metric(metric), about.scale)} {about.shown_unit}".strip()
        where = "" if len(ranked) == 1 else f", in {len(cases)} of {len(ranked)} places"
        return f"{escape.name(label)} ({value}{where})"

    return Line(names.title_of(metric), "", f"lowest with {named(0)}, highest with {named(-1)}")
