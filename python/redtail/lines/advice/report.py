"""An advice as it is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from redtail import escape
from redtail.analysis.digits import shown
from redtail.analysis.paired import MOST_NEEDED
from redtail.analysis.stats import Estimate
from redtail.lines.advice.access import ACCESS
from redtail.lines.advice.answer import Advice, Expected, Ranked
from redtail.lines.advice.candidates import Setting
from redtail.lines.advice.objectives import Objective
from redtail.lines.advice.simulated import AS_IT_IS, EFFORTS
from redtail.lines.line import Overhead
from redtail.store.advice import Part

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_WAYS = {
    "down": "Download: a queue on what arrives from the line",
    "up": "Upload: a queue on what leaves for the line",
}

# Head, unit and the measures of which the largest is shown.
_COLUMNS = (
    ("call down", "ms", ("call_down",)),
    ("call up", "ms", ("call_up",)),
    ("game down", "ms", ("game_down",)),
    ("game up", "ms", ("game_up",)),
    ("page", "s", ("page",)),
    ("lost down", "%", ("lost_down",)),
    ("lost up", "%", ("lost_up",)),
    ("lacks down", "%", ("unequal_down",)),
    ("lacks up", "%", ("unequal_up",)),
)
_FEWER_COLUMNS = (
    ("call", "ms", ("call_down", "call_up")),
    ("game", "ms", ("game_down", "game_up")),
    ("page", "s", ("page",)),
    ("lost", "%", ("lost_down", "lost_up")),
    ("lacks", "%", ("unequal_down", "unequal_up")),
)

# Columns of a screen on which every table fits.
_ENDLESS = 10_000

_SCALES = {"ms": 1e3, "s": 1.0, "%": 100.0}


def text_of(advice: Advice, width: int) -> str:
    """Return an advice as text with lines of at most so many columns."""
    from rich.console import Console

    console = Console(width=width, highlight=False, markup=False, emoji=False, color_system=None)
    with console.capture() as captured:
        for part in _parts(advice, console):
            console.print(escape.text(part) if isinstance(part, str) else part)
    # Tables fill their lines with spaces.
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def parts_of(advice: Advice) -> tuple[Part, ...]:
    """Return an advice as the page of its results shows it."""
    return (
        Part("What to set", texts=(_line(advice), _verdict(advice))),
        *(
            _tabled(f"{_WAYS[each.shaped.direction]}, {advice.chosen.label}", _setting(each))
            for each in (advice.chosen.down, advice.chosen.up)
        ),
        replace(
            _tabled("What to expect", _expectations(advice, _COLUMNS)),
            texts=(_what_to_expect(advice),),
            items=(
                *(f"{load.name}: {load.about}" for load in advice.wanted.loads),
                *([_NO_INTERVAL] if _without_interval(advice) else []),
            ),
        ),
        replace(
            _tabled("All queues", _ranked(advice)),
            texts=(f"{_ranked_by(advice)}.", _LEGEND),
            items=(*_others(advice), *_margins(advice)),
        ),
        Part("When the rate drops to half", texts=(_half(advice),)),
        Part("Uncertain", items=advice.uncertain),
    )


def _tabled(head: str, table: Table) -> Part:
    """Return a table of the terminal as a part of the page."""
    heads = tuple(str(column.header).replace("\n", " ") for column in table.columns)
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    return Part(head, heads=heads, rows=tuple(zip(*columns, strict=True)))


def _parts(advice: Advice, console: Console) -> Iterator[RenderableType]:
    """Yield what is printed of an advice, in its order."""
    yield _line(advice)
    yield ""
    yield _verdict(advice)
    for setting in (advice.chosen.down, advice.chosen.up):
        yield ""
        yield f"{_WAYS[setting.shaped.direction]}, {advice.chosen.label}"
        yield _setting(setting)
    yield ""
    yield f"What to expect: m{_what_to_expect(advice)[1:]}"
    yield from _expected(advice, console)
    for load in advice.wanted.loads:
        yield f"{load.name}: {load.about}"
    if _without_interval(advice):
        yield _NO_INTERVAL
    yield ""
    yield f"{_ranked_by(advice)} (--objective puts another one first):"
    yield _ranked(advice)
    yield _LEGEND
    yield ""
    yield f"Compared with {advice.chosen.label}:"
    yield _list(_others(advice))
    yield ""
    yield "A difference counts from this margin on:"
    yield _list(_margins(advice))
    yield ""
    yield _half(advice)
    yield ""
    yield "Uncertain:"
    yield _list(advice.uncertain)


def _what_to_expect(advice: Advice) -> str:
    return (
        "Mean ± half-width of the 95 % interval over "
        f"{advice.wanted.effort.replications} simulations of {advice.wanted.measured_s:g} s. "
        "Delays of packets are 95th percentiles one way, "
        f"{_milliseconds(advice.line.rtt_s / 2)} of which is the way itself; times of pages are "
        "medians; lost is the share of "
        "the line's rate that reaches nobody while senders never run out of data; lacks is what a "
        "person with one connection has less than half of it beside one with 8. As it is: the "
        "line without a queue of the router's."
    )


_NO_INTERVAL = "±?: no interval can be given from these simulations, most of which are equal"


def _without_interval(advice: Advice) -> bool:
    return any(
        each.ci95 is None and each.n > 1 for row in advice.expected for each in row.known.values()
    )


def _line(advice: Advice) -> str:
    line = advice.line
    people = "1 person" if line.people == 1 else f"{line.people} people"
    return (
        f"Line: {rate(line.down_bps)} down, {rate(line.up_bps)} up, round trip "
        f"{_milliseconds(line.rtt_s)}, {ACCESS[line.access].title}; {people}: "
        f"{', '.join(line.uses)}"
    )


def _verdict(advice: Advice) -> str:
    first = advice.ranking[0]
    aim = advice.objective
    if aim not in advice.shown_aims:
        return (
            f"No simulation has a value of the objective, {aim.title}: nothing is ranked by it. "
            "--effort thorough simulates more, and --objective puts another one first."
        )
    number = len(advice.ranking)
    gain = advice.gain
    decides = aim if gain is None else gain.aim
    here, before = (_value(decides, each.values[decides.name]) for each in (first, advice.as_it_is))
    if gain is None or not advice.helps:
        which = "This queue is no" if number == 1 else f"None of the {number} queues is"
        less = "noticeably better" if gain is None else "better"
        return (
            f"{which} {less} than the line as it is by {decides.title}: {before} without a queue "
            f"of the router's, {here} with {first.label}. Below is what {first.label} needs and "
            f"does. {_why(advice)}".rstrip()
        )
    place = "the only queue to choose from" if number == 1 else f"first of {number} queues"
    text = (
        f"Set {first.label} in both directions, {place}: {decides.title} under the worst load "
        f"{here}, where the line as it is has {before}."
    )
    return f"{text} {_why(advice)}".rstrip()


def _why(advice: Advice) -> str:
    """Return why the first queue is the first."""
    choice = advice.choice
    found = [
        f"By {step.aim.title}, {_listed(step.left)} {'is' if len(step.left) == 1 else 'are'} worse "
        f"than {step.best} by more than {step.aim.margin.text}."
        for step in choice.steps
    ]
    found += _among_the_rest(advice)
    second = advice.ranking[1:2]
    if second:
        found.append(f"{choice.label}: {_against(second[0], mirrored=True)}.")
    return " ".join(found)


def _among_the_rest(advice: Advice) -> Iterator[str]:
    """Yield what is said of the queues that no objective decides against, but for the first."""
    choice = advice.choice
    others = [each for each in advice.ranking if each.label in choice.remaining[1:]]
    if not others:
        return
    open_ = [each for each in others if each.undecided]
    equal = [each.label for each in others if not each.undecided]
    if equal:
        yield f"{_listed(equal)} {'is' if len(equal) == 1 else 'are'} equal within the margins."
    if open_:
        yield (
            f"{_listed([each.label for each in open_])} {'is' if len(open_) == 1 else 'are'} "
            f"undecided{_needed(open_)}."
        )
    yield f"{choice.label} is preferred because {choice.merit or 'it is the first in the list'}."


def _needed(rows: Sequence[Ranked]) -> str:
    """Return how many replications would decide, as far as some would."""
    found = [each.needed for row in rows for each in row.undecided if each.needed is not None]
    if not found:
        return ""
    span = f"{min(found)} to {max(found)}" if len(set(found)) > 1 else str(found[0])
    thorough = EFFORTS["thorough"].replications
    return f": more replications would tell (about {span}; --effort thorough has {thorough})"


def _others(advice: Advice) -> list[str]:
    """Return what is said of each other queue compared with the first, a sentence each."""
    rows = [*advice.ranking[1:], advice.as_it_is]
    return [f"{each.label}: {_against(each)}" for each in rows]


def _against(each: Ranked, *, mirrored: bool = False) -> str:
    """Return how a queue compares with the first, or the first with it."""
    equal, parts, undecided = [], [], []
    for name, found in each.against_first.items():
        unit, aim = found.aim.unit, found.aim
        match found.verdict:
            case "equal":
                margin = f"{found.margin * _SCALES[unit]:.2g} {unit}"
                equal.append(f"within {margin} for {name}")
            case "better" | "worse":
                positive = replace(found.difference, mean=abs(found.difference.mean))
                worse = (found.verdict == "worse") != mirrored
                parts.append(f"{name} {_shown(positive, _SCALES[unit])} {unit} {aim.words[worse]}")
            case "undecided":
                number = (
                    f"over {MOST_NEEDED:,}" if found.needed is None else f"about {found.needed}"
                )
                undecided.append(f"{name} ({number} replications)")
            case "no value":
                parts.append(f"{name} not known")
    if equal:
        parts.insert(0, f"equal {f'to {each.label} ' if mirrored else ''}{', '.join(equal)}")
    if undecided:
        parts.append(f"undecided: more replications for {', '.join(undecided)}")
    return "; ".join(parts)


def _margins(advice: Advice) -> list[str]:
    return [f"{aim.name}: {aim.margin.text}; {aim.margin.source}" for aim in advice.shown_aims]


def _setting(setting: Setting) -> Table:
    table = _table()
    for head in ("parameter", "value"):
        table.add_column(head, no_wrap=head == "parameter", overflow="fold", max_width=34)
    table.add_column("source")
    shaped = setting.shaped
    shaper = "none" if shaped.shaper_bps is None else rate(shaped.shaper_bps)
    table.add_row("shaper", shaper, setting.shaper_source)
    table.add_row("overhead", overhead(shaped.overhead), setting.overhead_source)
    for key in setting.keys:
        table.add_row(*(escape.plain(cell) for cell in (key.name, key.text, key.source)))
    return table


def overhead(found: Overhead) -> str:
    """Return an overhead in words."""
    text = f"{found.packet_bytes} B a packet"
    if found.minimum_bytes:
        text += f", {found.minimum_bytes} B at least"
    framing = {"none": "", "ptm": ", PTM", "atm": ", ATM cells"}
    return text + framing[found.framing]


def _shown(found: Estimate, scale: float) -> str:
    """Return an estimate as text. One line below the table explains all that have no interval."""
    return shown(replace(found, mostly=None), scale)


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
    labels = [advice.chosen.label, AS_IT_IS]
    rows = [advice.expects(load.name, label) for load in advice.wanted.loads for label in labels]
    table = _table()
    table.add_column("load", no_wrap=True)
    table.add_column("queue", no_wrap=True)
    known = [each for each in columns if any(_worst_known(row, each[2]) for row in rows)]
    for head, unit, _ in known:
        table.add_column(f"{head.replace(' ', chr(10))}\n{unit}", justify="right", no_wrap=True)
    for row in rows:
        found = [(unit, _worst_known(row, measures)) for _, unit, measures in known]
        cells = ["" if each is None else _shown(each, _SCALES[unit]) for unit, each in found]
        name = row.load if row.label == labels[0] else ""
        table.add_row(name, row.label, *cells, end_section=row.label == AS_IT_IS)
    return table


def _worst_known(row: Expected, measures: Sequence[str]) -> Estimate | None:
    """Return the largest of the measures that have a value."""
    found = [each for name, each in row.known.items() if name in measures]
    return max(found, key=lambda each: each.mean, default=None)


def _ranked_by(advice: Advice) -> str:
    names = _listed([aim.name for aim in advice.shown_aims])
    return (
        f"All queues by {names}, in this order; of each the worst load and direction count. What "
        "loses over 10 % of the line more than the best one leaves first; what no objective tells "
        "apart is in the order of preference"
    )


_LEGEND = (
    "compared with the first: = equal within the margin, > worse and < better by more than the "
    "margin, ? undecided; the intervals of differences hold for all queues at once"
)

_SIGNS = {"equal": "=", "worse": ">", "better": "<", "undecided": "?", "no value": " "}


def _ranked(advice: Advice) -> Table:
    table = _table()
    table.add_column("", justify="right")
    table.add_column("queue", no_wrap=True)
    for aim in advice.shown_aims:
        table.add_column(f"{aim.name}\n{aim.unit}", justify="right", no_wrap=True)
    rows = [*advice.ranking, advice.as_it_is]
    for place, each in enumerate(rows, start=1):
        cells = []
        for aim in advice.shown_aims:
            sign = _SIGNS[each.against_first[aim.name].verdict] if each.against_first else " "
            cells.append(f"{_shown(each.values[aim.name], _SCALES[aim.unit])} {sign}")
        table.add_row("" if each.kind is None else str(place), each.label, *cells)
    return table


def _half(advice: Advice) -> str:
    """Return what breaks when the line's rate drops to half."""
    before, after, without = advice.halved
    line = advice.line
    delays = [_worst_known(each, ("call_down", "call_up")) for each in (before, after, without)]
    text = (
        f"When the rate drops to half ({rate(line.down_bps / 2)} and {rate(line.up_bps / 2)}), a "
        f"shaper at a fixed rate is above the line and does nothing: packets wait in the line's "
        f"own buffer again. Under '{advice.wanted.halved.name}' a call's packets then take "
        f"{_shown_ms(delays[1])} instead of {_shown_ms(delays[0])} with {advice.chosen.label} "
        f"({_shown_ms(delays[2])} without it). The wait in the provider's buffer is "
        f"{_shown_ms(after.measures['buffer_down'])}"
    )
    if advice.up.shaper_bps is None:
        text += ". The queue of the upload stands at the line itself and follows its rate."
    else:
        text += f", in the modem's {_shown_ms(after.measures['buffer_up'])} (95th percentiles)."
    return text + (
        " If your line drops so far, set the shaper below the lowest rate, or let a program such "
        "as cake-autorate follow the rate."
    )


def _list(texts: Sequence[str]) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column()
    table.add_column()
    for text in texts:
        table.add_row("-", text)
    return table


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), header_style=""
    )


def _value(aim: Objective, found: Estimate) -> str:
    return f"{_shown(found, _SCALES[aim.unit])} {aim.unit}"


def _shown_ms(found: Estimate | None) -> str:
    return "–" if found is None else f"{_shown(found, 1e3)} ms"


def rate(bps: float) -> str:
    """Return a rate in the largest unit in which it is at least 1, to four digits.

    >>> rate(47.5e6), rate(9.5e5), rate(2.5e9)
    ('47.5 Mbit/s', '950 kbit/s', '2.5 Gbit/s')
    """
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6)):
        if bps >= size:
            return f"{bps / size:.4g} {unit}"
    return f"{bps / 1e3:.4g} kbit/s"


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.4g} ms"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
