"""The advice for a provider as it is printed: one row for each plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from redtail import escape
from redtail.analysis.digits import shown
from redtail.analysis.stats import Estimate
from redtail.lines import printing
from redtail.lines.advice.report import NO_INTERVAL, plain_table, tabled
from redtail.lines.advice.words import rate
from redtail.lines.provider.answer import MARGIN_S, ProviderAdvice
from redtail.lines.provider.plans import sold
from redtail.lines.provider.simulated import LIMITED, NOTHING, guaranteed
from redtail.store.advice import Part

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

# The measure, the head of its column and the scale.
_COLUMNS = (
    ("busy_call", "call,\nbusy\nms", 1e3),
    ("calm_call", "call,\ncalm\nms", 1e3),
    ("busy_page", "page,\nbusy\ns", 1.0),
    ("calm_page", "page,\ncalm\ns", 1.0),
    ("rate", "of the\nplan\n%", 100.0),
)


def text_of(advice: ProviderAdvice, width: int) -> str:
    """Return an advice as text with lines of at most so many columns."""
    parts = (escape.text(part) if isinstance(part, str) else part for part in _parts(advice))
    return printing.text_of(lambda _: parts, width)


def parts_of(advice: ProviderAdvice) -> tuple[Part, ...]:
    """Return an advice as the page of its results shows it."""
    loads = (
        replace(tabled(f"Load: {load.name}", _plans(advice, load.name)), texts=(load.about,))
        for load in advice.wanted.loads
    )
    return (
        Part("What to set", texts=(_line(advice), _verdict(advice))),
        tabled("For each subscriber", _settings(advice)),
        *loads,
        replace(tabled("All ways to shape", _ways(advice)), items=tuple(_legend(advice))),
        Part("Uncertain", items=advice.uncertain),
    )


def _parts(advice: ProviderAdvice) -> Iterator[RenderableType]:
    yield _line(advice)
    yield ""
    yield _verdict(advice)
    yield ""
    yield "What to set for each subscriber:"
    yield _settings(advice)
    for load in advice.wanted.loads:
        yield ""
        yield f"{load.name} ({load.about}):"
        yield _plans(advice, load.name)
    yield from _legend(advice)
    yield ""
    yield "All ways to shape:"
    yield _ways(advice)
    yield ""
    yield "Uncertain:"
    for text in advice.uncertain:
        yield f"- {text}"


def _legend(advice: ProviderAdvice) -> Iterator[str]:
    """Yield what the values in the tables are."""
    yield (
        f"Mean ± half-width of the 95 % interval over {advice.wanted.effort.replications} "
        f"simulations of {advice.wanted.effort.seconds:g} s, after 5 s. A busy subscriber "
        "downloads over four connections, a calm one does not. Call: 95th percentile of the delay "
        f"of its packets one way, {1e3 * advice.rtt_s / 2:.4g} ms of which is the way itself, in "
        "the worse direction. Page: median time; –: too few finished in a simulation. Of the plan: "
        "what a download gets of the rate bought."
    )
    if any(each.ci95 is None for row in advice.rows for each in row.measures.values()):
        yield NO_INTERVAL


def _line(advice: ProviderAdvice) -> str:
    total = sum(plan.number for plan in advice.plans)
    plans = "1 plan" if len(advice.plans) == 1 else f"{len(advice.plans)} plans"
    return (
        f"Line: {rate(advice.down_bps)} down, {rate(advice.up_bps)} up, round trip "
        f"{1e3 * advice.rtt_s:.4g} ms; {total} subscribers in {plans}, who have bought "
        f"{sold(advice.plans, 'down') / advice.down_bps:.3g} times the line down and "
        f"{sold(advice.plans, 'up') / advice.up_bps:.3g} times it up"
    )


def _verdict(advice: ProviderAdvice) -> str:
    by_label = {each.way.label: each for each in advice.ranking}
    first, before, limited = advice.ranking[0], by_label[NOTHING], by_label[LIMITED]
    text = (
        f"Set {first.way.label}: where it is longest, the delay of a call's packets is "
        f"{_shown(first.call, 1e3)} ms, where a FIFO in each class has "
        f"{_shown(limited.call, 1e3)} ms, and {NOTHING} for all {_shown(before.call, 1e3)} ms. "
        f"Differences below {1e3 * MARGIN_S:g} ms count as none."
    )
    alike = [each.way.label for each in advice.ranking[1:] if each.fits and not each.told_apart]
    if alike:
        text += f" These simulations do not tell {' and '.join(alike)} apart from it."
    without = [each for each in advice.ranking if not each.way.keeps_plans]
    best = min(without, key=lambda each: each.call.mean)
    if best.call.mean < first.call.mean - MARGIN_S:
        text += f" With {best.way.label} it is {_shown(best.call, 1e3)} ms, and plans are not kept."
    return text


def _settings(advice: ProviderAdvice) -> Table:
    table = plain_table()
    for head in ("plan", "subscribers", "down, at least", "at most", "up, at least", "at most"):
        table.add_column(head, justify="left" if head == "plan" else "right", no_wrap=True)
    for plan in advice.plans:
        table.add_row(
            plan.name,
            str(plan.number),
            rate(guaranteed(advice.plans, plan, advice.down_bps, "down")),
            rate(plan.down_bps),
            rate(guaranteed(advice.plans, plan, advice.up_bps, "up")),
            rate(plan.up_bps),
        )
    return table


def _plans(advice: ProviderAdvice, load: str) -> Table:
    labels = (advice.chosen.label, NOTHING)
    rows = [advice.row(load, label, plan.name) for plan in advice.plans for label in labels]
    known = [each for each in _COLUMNS if any(each[0] in row.measures for row in rows)]
    table = plain_table()
    table.add_column("plan", no_wrap=True)
    table.add_column("queue", no_wrap=True)
    for _, head, _ in known:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        found = [(row.measures.get(name), scale) for name, _, scale in known]
        # Where some simulations have no median, those that have one are the better ones.
        whole = advice.wanted.effort.replications
        cells = [
            "–" if each is None or each.n < whole else _shown(each, scale) for each, scale in found
        ]
        name = row.plan if row.way == labels[0] else ""
        table.add_row(name, row.way, *cells, end_section=row.way == NOTHING)
    return table


def _ways(advice: ProviderAdvice) -> Table:
    table = plain_table()
    table.add_column("", justify="right")
    table.add_column("way", no_wrap=True)
    table.add_column("call\nms", justify="right", no_wrap=True)
    table.add_column("lost\n%", justify="right", no_wrap=True)
    table.add_column("less the first\nms", justify="right", no_wrap=True)
    table.add_column("keeps plans")
    for place, each in enumerate(advice.ranking, start=1):
        lost = _shown(each.lost, 100) if advice.wanted.fills else "–"
        keeps = "yes" if each.way.keeps_plans else "no"
        if each.way.keeps_plans and not each.fits:
            keeps += "; loses too much"
        number = str(place) if each.fits else ""
        less = "" if each.difference is None else _shown(each.difference, 1e3)
        table.add_row(number, each.way.label, _shown(each.call, 1e3), lost, less, keeps)
    return table


def _shown(found: Estimate, scale: float) -> str:
    return shown(replace(found, mostly=None), scale)
