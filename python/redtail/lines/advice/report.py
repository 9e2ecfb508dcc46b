"""An advice as it is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from redtail import escape
from redtail.analysis.digits import shown
from redtail.analysis.stats import Estimate
from redtail.lines import printing
from redtail.lines.advice.answer import Advice, Expected
from redtail.lines.advice.candidates import Setting
from redtail.lines.advice.objectives import COST, IDLE
from redtail.lines.advice.sentences import (
    CALL_LOST,
    SCALES,
    bounded,
    changes,
    line_of,
    listed,
    margins,
    milliseconds,
    others,
    ranked_value,
    shown_of,
    simulations,
    verdict_of,
    worst_known,
)
from redtail.lines.advice.simulated import AS_IT_IS
from redtail.lines.advice.words import rate
from redtail.lines.line import Overhead, Shaped
from redtail.store.advice import Part

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_WAYS = {
    "down": "Download: a queue on what arrives from the line",
    "up": "Upload: a queue on what leaves for the line",
}

# The same of every line.
_COLUMNS = (
    ("call down", "ms", ("call_down",)),
    ("call up", "ms", ("call_up",)),
    ("game down", "ms", ("game_down",)),
    ("game up", "ms", ("game_up",)),
    ("page", "s", ("page",)),
    CALL_LOST,
    ("lost down", "%", ("lost_down",)),
    ("lost up", "%", ("lost_up",)),
    ("lacks down", "%", ("unequal_down",)),
    ("lacks up", "%", ("unequal_up",)),
)
_FEWER_COLUMNS = (
    ("call", "ms", ("call_down", "call_up")),
    ("game", "ms", ("game_down", "game_up")),
    ("page", "s", ("page",)),
    CALL_LOST,
    ("lost", "%", ("lost_down", "lost_up")),
    ("lacks", "%", ("unequal_down", "unequal_up")),
)

# Columns of a screen on which every table fits.
_ENDLESS = 10_000


def text_of(advice: Advice, width: int) -> str:
    """Return an advice as text with lines of at most so many columns."""

    def parts(console: Console) -> Iterator[RenderableType]:
        for part in _parts(advice, console):
            yield escape.text(part) if isinstance(part, str) else part

    return printing.text_of(parts, width)


def parts_of(advice: Advice) -> tuple[Part, ...]:
    """Return an advice as the page of its results shows it."""
    return (
        Part("What to set", texts=(line_of(advice), verdict_of(advice))),
        *(
            tabled(f"{_WAYS[each.shaped.direction]}, {advice.chosen.label}", _setting(advice, each))
            for each in (advice.chosen.down, advice.chosen.up)
        ),
        replace(
            tabled("What to expect", _expectations(advice, _COLUMNS)),
            texts=(_what_to_expect(advice),),
            items=(
                *(f"{load.name}: {load.about}" for load in advice.wanted.loads),
                *_notes(advice),
            ),
        ),
        replace(
            tabled("All queues", _ranked(advice)),
            texts=(f"{_ranked_by(advice)}.", _LEGEND),
            items=(*others(advice), *margins(advice)),
        ),
        Part(
            "When the rate drops to half"
            if advice.wanted.varied is None
            else "While the rate varies",
            texts=(changes(advice),),
        ),
        Part("Uncertain", items=advice.uncertain),
    )


def tabled(head: str, table: Table) -> Part:
    """Return a table of the terminal as a part of the page."""
    heads = tuple(str(column.header).replace("\n", " ") for column in table.columns)
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    return Part(head, heads=heads, rows=tuple(zip(*columns, strict=True)))


def _parts(advice: Advice, console: Console) -> Iterator[RenderableType]:
    """Yield what is printed of an advice, in its order."""
    yield line_of(advice)
    yield ""
    yield verdict_of(advice)
    for setting in (advice.chosen.down, advice.chosen.up):
        yield ""
        yield f"{_WAYS[setting.shaped.direction]}, {advice.chosen.label}"
        yield _setting(advice, setting)
    yield ""
    yield f"What to expect: m{_what_to_expect(advice)[1:]}"
    yield from _expected(advice, console)
    for load in advice.wanted.loads:
        yield f"{load.name}: {load.about}"
    yield from _notes(advice)
    yield ""
    yield f"{_ranked_by(advice)} (--objective puts another one first):"
    yield _ranked(advice)
    yield _LEGEND
    yield ""
    yield f"Compared with {advice.chosen.label}:"
    yield _list(others(advice))
    yield ""
    yield "A difference counts from this margin on:"
    yield _list(margins(advice))
    yield ""
    yield changes(advice)
    yield ""
    yield "Uncertain:"
    yield _list(advice.uncertain)


def _what_to_expect(advice: Advice) -> str:
    return (
        "Mean ± half-width of the 95 % interval over "
        f"{simulations(advice)} of {advice.wanted.measured_s:g} s. "
        "Delays of packets are 95th percentiles one way, "
        f"{milliseconds(advice.line.rtt_s / 2)} of which is the way itself; times of pages are "
        "medians; lost is the share of "
        "the line's rate that reaches nobody while senders never run out of data; lacks is what a "
        "person with one connection has less than half of it beside one with 8. As it is: the "
        "line without a queue of the router's."
    )


NO_INTERVAL = "±?: no interval can be given from these simulations, most of which are equal"


def _notes(advice: Advice) -> Iterator[str]:
    """Yield what signs in the table of expectations mean, if they are there."""
    values = [each for row in advice.expected for each in row.known.values()]
    if any(each.ci95 is None and each.n > 1 for each in values):
        yield NO_INTERVAL
    if any(row.at_least for row in _rows(advice)):
        yield (
            f"≥: at least; in some simulations most pages took longer than the "
            f"{advice.wanted.measured_s:g} s that were measured"
        )


def _setting(advice: Advice, setting: Setting) -> Table:
    table = plain_table()
    for head in ("parameter", "value"):
        table.add_column(head, no_wrap=head == "parameter", overflow="fold", max_width=34)
    table.add_column("source")
    shaped = setting.shaped
    table.add_row(
        "shaper", bounded(advice, shaped.direction, _shaper(shaped)), setting.shaper_source
    )
    table.add_row("overhead", overhead(shaped.overhead), setting.overhead_source)
    for key in setting.keys:
        table.add_row(*(escape.plain(cell) for cell in (key.name, key.text, key.source)))
    return table


def _shaper(shaped: Shaped) -> str:
    follows = shaped.follows
    if follows is not None:
        least, base, most = map(rate, (follows.least_bps, follows.base_bps, follows.most_bps))
        return f"{least} to {most}, base {base}"
    return "none" if shaped.shaper_bps is None else rate(shaped.shaper_bps)


def overhead(found: Overhead) -> str:
    """Return an overhead in words."""
    text = f"{found.packet_bytes} B a packet"
    if found.minimum_bytes:
        text += f", {found.minimum_bytes} B at least"
    framing = {"none": "", "ptm": ", PTM", "atm": ", ATM cells"}
    return text + framing[found.framing]


def _expected(advice: Advice, console: Console) -> Iterator[RenderableType]:
    """Yield what the advised queue does under each load, with fewer columns on a narrow screen."""
    table = _expectations(advice, _COLUMNS)
    if console.measure(table, options=console.options.update(max_width=_ENDLESS)).maximum > (
        console.width
    ):
        yield "Of the two directions the worse one is shown; a wider screen shows both."
        table = _expectations(advice, _FEWER_COLUMNS)
    yield table


def _expectations(advice: Advice, columns: Sequence[tuple[str, str, tuple[str, ...]]]) -> Table:
    rows = _rows(advice)
    table = plain_table()
    table.add_column("load", no_wrap=True)
    table.add_column("queue", no_wrap=True)
    known = [
        each
        for each in columns
        if any(worst_known(row, each[2]) for row in rows)
        and (each is not CALL_LOST or advice.wanted.policed)
    ]
    for head, unit, _ in known:
        table.add_column(f"{head.replace(' ', chr(10))}\n{unit}", justify="right", no_wrap=True)
    for row in rows:
        cells = [_cell(row, measures, SCALES[unit]) for _, unit, measures in known]
        name = row.load if row.label == advice.chosen.label else ""
        table.add_row(name, row.label, *cells, end_section=row.label == AS_IT_IS)
    return table


def _rows(advice: Advice) -> list[Expected]:
    """Return the rows of the table of expectations: of each load, with the queue and without."""
    labels = [advice.chosen.label, AS_IT_IS]
    return [advice.expects(load.name, label) for load in advice.wanted.loads for label in labels]


def _cell(row: Expected, measures: Sequence[str], scale: float) -> str:
    """Return the largest of the measures as text, a lower bound as such."""
    found = worst_known(row, measures)
    if found is None:
        return ""
    if not set(measures).isdisjoint(row.at_least):
        return f"≥ {shown(Estimate(found.mean, None, 1), scale)}"
    return shown_of(found, scale)


def _ranked_by(advice: Advice) -> str:
    names = listed([aim.name for aim in advice.shown_aims])
    helps = ""
    if advice.wanted.varied is not None:
        helps = (
            f"What helps is first, then what loses over {COST.margin.text} more than the line as "
            "it is for that, then what does not help. Of these, what "
        )
    return (
        f"All queues by {names}, in this order; of each the worst load and direction count. "
        f"{helps or 'What '}loses over {IDLE.margin.text} more than the best one leaves first; "
        "what no objective tells apart is in the order of preference"
    )


_LEGEND = (
    "compared with the first: = equal within the margin, > worse and < better by more than the "
    "margin, ? undecided; the intervals of differences hold for all queues at once"
)

_SIGNS = {"equal": "=", "worse": ">", "better": "<", "undecided": "?", "no value": " "}


def _ranked(advice: Advice) -> Table:
    table = plain_table()
    table.add_column("", justify="right")
    table.add_column("queue", no_wrap=True)
    for aim in advice.shown_aims:
        table.add_column(f"{aim.name}\n{aim.unit}", justify="right", no_wrap=True)
    rows = [*advice.ranking, *advice.unranked]
    for place, each in enumerate(rows, start=1):
        cells = []
        for aim in advice.shown_aims:
            sign = _SIGNS[each.against_first[aim.name].verdict] if each.against_first else " "
            cells.append(f"{ranked_value(each, aim, unit=False)} {sign}")
        table.add_row("" if each.key is None else str(place), each.label, *cells)
    return table


def _list(texts: Sequence[str]) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column()
    table.add_column()
    for text in texts:
        table.add_row("-", text)
    return table


def plain_table() -> Table:
    """Return an empty table as those of an advice look."""
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), header_style=""
    )
