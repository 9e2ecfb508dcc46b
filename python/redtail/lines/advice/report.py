"""An advice as it is printed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from redtail import escape
from redtail.analysis.digits import shown
from redtail.analysis.stats import Estimate
from redtail.lines.advice.access import ACCESS
from redtail.lines.advice.answer import Advice, Expected, Ranked
from redtail.lines.advice.candidates import Setting
from redtail.lines.advice.objectives import LOST_AT_MOST, LOST_WHERE_IT_VARIES, THROUGHPUT
from redtail.lines.advice.simulated import AS_IT_IS
from redtail.lines.line import Direction, Overhead, Shaped
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
)
_FEWER_COLUMNS = (
    ("call", "ms", ("call_down", "call_up")),
    ("game", "ms", ("game_down", "game_up")),
    ("page", "s", ("page",)),
    ("lost", "%", ("lost_down", "lost_up")),
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
            _tabled(
                f"{_WAYS[each.shaped.direction]}, {advice.chosen.label}", _setting(advice, each)
            )
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
            texts=(f"{_ranked_by(advice)}.",),
        ),
        Part(
            "When the rate drops to half"
            if advice.wanted.varied is None
            else "While the rate varies",
            texts=(_changes(advice),),
        ),
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
        yield _setting(advice, setting)
    yield ""
    yield f"What to expect: m{_what_to_expect(advice)[1:]}"
    yield from _expected(advice, console)
    for load in advice.wanted.loads:
        yield f"{load.name}: {load.about}"
    if _without_interval(advice):
        yield _NO_INTERVAL
    yield ""
    yield f"{_ranked_by(advice)} (--objective ranks by another one):"
    yield _ranked(advice)
    yield ""
    yield _changes(advice)
    yield ""
    yield "Uncertain:"
    yield _list(advice.uncertain)


def _what_to_expect(advice: Advice) -> str:
    return (
        "Mean ± half-width of the 95 % interval over "
        f"{_simulations(advice)} of {advice.wanted.measured_s:g} s. "
        "Delays of packets are 95th percentiles one way, "
        f"{_milliseconds(advice.line.rtt_s / 2)} of which is the way itself; times of pages are "
        "medians; lost is the share of "
        "the line's rate that reaches nobody while senders never run out of data. As it is: the "
        "line without a queue of the router's."
    )


def _simulations(advice: Advice) -> str:
    wanted = advice.wanted
    if wanted.varied is None:
        return f"{wanted.replications} simulations"
    cuts = wanted.varied.amount.cuts
    each = f"{wanted.replications} over each of {cuts} parts of the recording"
    return f"{wanted.runs} simulations, {each},"


_NO_INTERVAL = "±?: no interval can be given from these simulations, most of which are equal"


def _without_interval(advice: Advice) -> bool:
    return any(
        each.ci95 is None and each.n > 1 for row in advice.expected for each in row.known.values()
    )


def _line(advice: Advice) -> str:
    line = advice.line
    people = "1 person" if line.people == 1 else f"{line.people} people"
    return (
        f"Line: {_way(advice, 'down')}, {_way(advice, 'up')}, round trip "
        f"{_bounded(advice, 'rtt', _milliseconds(line.rtt_s))}, {ACCESS[line.access].title}; "
        f"{people}: {', '.join(line.uses)}"
    )


def _way(advice: Advice, direction: Direction) -> str:
    """Return the rate of a direction, as much of it as is known."""
    bps = advice.line.down_bps if direction == "down" else advice.line.up_bps
    text = f"{_bounded(advice, direction, rate(bps))} {direction}"
    varied = advice.wanted.varied
    course = None if varied is None else varied.courses.get(direction)
    if course is None:
        return text
    low, high = (rate(course.quantile(share)) for share in (0.1, 0.9))
    return f"{text} on average ({low} to {high} in 80 % of the time)"


def _bounded(advice: Advice, name: str, text: str) -> str:
    """Return a value as a text, with its bound if that is all it is."""
    bound = "" if advice.recorded is None else advice.recorded.bound(name)
    return f"{bound} {text}".lstrip()


def _verdict(advice: Advice) -> str:
    return _assumed(advice) + _verdict_of(advice)


def _assumed(advice: Advice) -> str:
    """Return what the verdict is for, where of a rate only a bound is known; else nothing."""
    if advice.recorded is None:
        return ""
    line = advice.line
    rates = {"down": rate(line.down_bps), "up": rate(line.up_bps)}
    bounds = [f"{text} {name}" for name, text in rates.items() if advice.recorded.bound(name)]
    if not bounds:
        return ""
    return f"For a line of just {_listed(bounds)}, of which the recording says no more than that: "


def _verdict_of(advice: Advice) -> str:
    first = advice.ranking[0]
    if math.isnan(first.value.mean):
        return (
            f"No simulation has a value of the objective, {advice.objective.title}: nothing is "
            "ranked. --effort thorough simulates more, and --objective ranks by another one."
        )
    number = len(advice.ranking)
    what = f"{advice.objective.title} under the worst load"
    here, before = _value(advice, first.value), _value(advice, advice.as_it_is.value)
    if advice.wanted.varied is not None:
        return _verdict_of_varied(advice, what, here, before)
    if not advice.helps:
        which = "This queue is" if number == 1 else f"None of the {number} queues is"
        return (
            f"{which} better than the line as it is by {what}: {before} without a queue of the "
            f"router's, {here} with {first.label}. Below is what {first.label} needs and does."
        ).replace("This queue is better", "This queue is no better")
    place = "the only queue to choose from" if number == 1 else f"first of {number} queues"
    text = (
        f"Set {first.label} in both directions, {place}: {what} {here}, where the line as it is "
        f"has {before}."
    )
    if advice.equals:
        names = _listed([each.label for each in advice.equals])
        text += f" These simulations do not tell {names} apart from it."
    return text


def _verdict_of_varied(advice: Advice, what: str, here: str, before: str) -> str:
    first = advice.ranking[0]
    label = first.label
    lost = f"{_shown(first.lost, 100)} % of the throughput"
    without = f"{_shown(advice.as_it_is.lost, 100)} %"
    match advice.verdict:
        case "helps":
            text = (
                f"Set {label} in both directions: {what} {here}, where the line as it is has "
                f"{before}. It loses {lost}, the line as it is {without}."
            )
            if advice.equals:
                names = _listed([each.label for each in advice.equals])
                text += f" These simulations do not tell {names} apart from it."
        case "costs":
            text = (
                f"Nothing in the router helps without a cost. {label} has {what} {here} instead of "
                f"{before}, and loses {lost} where the line as it is loses {without}. Set it if "
                "that is worth it; if not, leave the line as it is."
            )
            if advice.costly:
                others = _listed([_costly(advice, each) for each in advice.costly])
                text += f" Others that help, and lose more: {others}."
        case "nothing":
            text = (
                f"Nothing in the router helps: the line as it is has {what} {before}, and the best "
                f"of {len(advice.ranking)}, {label}, has {here}. Leave the line as it is. Below is "
                f"what {label} does."
            )
        case "undecided":
            text = (
                f"Undecided: the line as it is has {what} {before}, and {label}, the best of "
                f"{len(advice.ranking)}, {here}. These simulations do not tell them apart; "
                "--effort thorough simulates more. Below is what that queue does."
            )
    modem = advice.in_modem
    assert modem is not None and modem.kind is None
    return text + (
        f" In the modem, if it has one, a queue management is where the packets of an upload wait: "
        f"with {modem.label}, and no queue in the router, it is {_value(advice, modem.value)}."
    )


def _costly(advice: Advice, each: Ranked) -> str:
    return f"{each.label} ({_value(advice, each.value)}, loses {_shown(each.lost, 100)} %)"


def _setting(advice: Advice, setting: Setting) -> Table:
    bound = "" if advice.recorded is None else advice.recorded.bound(setting.shaped.direction)
    table = _table()
    for head in ("parameter", "value"):
        table.add_column(head, no_wrap=head == "parameter", overflow="fold", max_width=34)
    table.add_column("source")
    shaped = setting.shaped
    table.add_row("shaper", f"{bound} {_shaper(shaped)}".lstrip(), setting.shaper_source)
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
    objective = advice.objective
    text = f"All queues by {objective.title}, of which the worst load and direction count"
    if objective is not THROUGHPUT:
        most, other = (LOST_AT_MOST, "the best one")
        if advice.wanted.varied is not None:
            most, other = (LOST_WHERE_IT_VARIES, "the line as it is")
        text += f"; those that lose over {100 * most:.0f} % of the line more than {other} come last"
    return text


def _ranked(advice: Advice) -> Table:
    objective = advice.objective
    table = _table()
    table.add_column("", justify="right")
    table.add_column("queue", no_wrap=True)
    unit = _unit(advice)
    table.add_column(f"{_short(advice)}\n{unit}", justify="right", no_wrap=True)
    if objective is not THROUGHPUT:
        table.add_column("lost\n%", justify="right", no_wrap=True)
    table.add_column(f"less the first\n{unit}", justify="right", no_wrap=True)
    table.add_column("told apart from the first")
    for place, each in enumerate((*advice.ranking, *advice.unranked), start=1):
        number = str(place) if each.kind is not None else ""
        cells = [number, each.label, _shown(each.value, _SCALES[unit])]
        if objective is not THROUGHPUT:
            cells.append(_shown(each.lost, 100))
        difference = "" if each.difference is None else _shown(each.difference, _SCALES[unit])
        table.add_row(*cells, difference, _told(each))
    return table


def _told(each: Ranked) -> str:
    if each.kind is None:
        return "not ranked"
    if each.difference is None:
        return ""
    told = {True: "yes", False: "no", None: "cannot be said"}[each.told_apart]
    return told if each.fits else f"{told}; loses too much"


def _changes(advice: Advice) -> str:
    """Return what happens when the line's rate is not what it is on average."""
    return _half(advice) if advice.wanted.varied is None else _while_it_varies(advice)


def _while_it_varies(advice: Advice) -> str:
    load = advice.wanted.loads[-1].name
    here, without = advice.expects(load, advice.chosen.label), advice.expects(load, AS_IT_IS)
    waits = [
        f"{_shown_ms(here.measures[f'buffer_{way}'])} instead of "
        f"{_shown_ms(without.measures[f'buffer_{way}'])} {where}"
        for way, where in (("down", "in the provider's buffer"), ("up", "in the modem's"))
    ]
    return (
        f"While the rate varies, a queue in the router helps only as long as its shaper is below "
        f"the line. Under '{load}' packets wait {' and '.join(waits)} with {advice.chosen.label} "
        "(95th percentiles). Without a shaper a queue of the router's is empty, and the line is as "
        "it is."
    )


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


def _unit(advice: Advice) -> str:
    return {"calls": "ms", "games": "ms", "pages": "s"}.get(advice.objective.name, "%")


def _short(advice: Advice) -> str:
    return {"calls": "call", "games": "game", "pages": "page"}.get(advice.objective.name, "lost")


def _value(advice: Advice, found: Estimate) -> str:
    unit = _unit(advice)
    return f"{_shown(found, _SCALES[unit])} {unit}"


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
