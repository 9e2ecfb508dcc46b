"""What is said of an advice, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from redtail.analysis.digits import shown
from redtail.analysis.paired import MOST_NEEDED
from redtail.analysis.stats import Estimate
from redtail.lines.advice.access import ACCESS, as_known
from redtail.lines.advice.objectives import THROUGHPUT, Objective
from redtail.lines.advice.ranking import Compared
from redtail.lines.advice.simulated import AS_IT_IS, EFFORTS
from redtail.lines.advice.words import rate

if TYPE_CHECKING:
    from redtail.lines.advice.answer import Advice, Expected, Ranked
    from redtail.lines.line import Direction

# Head, unit and the measures of which the largest is shown; of a policed line alone, which loses
# what others delay.
CALL_LOST = ("call lost", "%", ("call_lost_down", "call_lost_up"))

_CALLS = ("call_down", "call_up")

SCALES = {"ms": 1e3, "s": 1.0, "%": 100.0}


def line_of(advice: Advice) -> str:
    """Return the line and who uses it."""
    line = advice.line
    people = "1 person" if line.people == 1 else f"{line.people} people"
    return (
        f"Line: {_way(advice, 'down')}, {_way(advice, 'up')}, round trip "
        f"{bounded(advice, 'rtt', milliseconds(line.rtt_s))}, {ACCESS[line.access].title}; "
        f"{people}: {', '.join(line.uses)}"
    )


def _way(advice: Advice, direction: Direction) -> str:
    """Return the rate of a direction, as much of it as is known."""
    bps = as_known(advice.line, advice.recorded)[direction]
    text = f"{bounded(advice, direction, rate(bps))} {direction}"
    varied = advice.wanted.varied
    course = None if varied is None else varied.courses.get(direction)
    if course is None:
        return text
    low, high = (rate(course.quantile(share)) for share in (0.1, 0.9))
    return f"{text} on average ({low} to {high} in 80 % of the time)"


def bounded(advice: Advice, name: str, text: str) -> str:
    """Return a value as a text, with its bound if that is all it is."""
    bound = "" if advice.recorded is None else advice.recorded.bound(name)
    return f"{bound} {text}".lstrip()


def verdict_of(advice: Advice) -> str:
    """Return whether the advised queue helps, and why it is the first."""
    return _assumed(advice) + _answer(advice)


def _assumed(advice: Advice) -> str:
    """Return what the verdict is for, where of a rate only a bound is known; else nothing."""
    if advice.recorded is None:
        return ""
    rates = as_known(advice.line, advice.recorded)
    bounds = [f"{rate(bps)} {name}" for name, bps in rates.items() if advice.recorded.bound(name)]
    if not bounds:
        return ""
    return f"For a line of just {listed(bounds)}, of which the recording says no more than that: "


def _answer(advice: Advice) -> str:
    aim = advice.objective
    if aim not in advice.shown_aims:
        return (
            f"No simulation has a value of the objective, {aim.title}: nothing is ranked by it. "
            "--effort thorough simulates more, and --objective puts another one first."
        )
    if not advice.tested:
        return (
            "These simulations do not rank queues: no load has filled the line, so that no packet "
            f"waits for another. {advice.chosen.label} is shown below as it would be set, and what "
            "it does is not tested."
        )
    text = _of_the_first(advice) + _of_a_policer(advice) + _in_the_modem(advice)
    return f"{_on_condition(advice, text)} {_why(advice)}".rstrip()


def _decides(advice: Advice) -> Objective:
    """Return the objective that decides whether the first queue helps."""
    if advice.gain is None or advice.verdict == "undecided":
        return advice.objective
    return advice.gain.aim


def _of_the_first(advice: Advice) -> str:
    """Return whether the first queue helps."""
    first, number, aim = advice.ranking[0], len(advice.ranking), _decides(advice)
    here, before = (ranked_value(each, aim) for each in (first, advice.as_it_is))
    what = f"{aim.title} under the worst load"
    place = "the only queue to choose from" if number == 1 else f"first of {number} queues"
    below = f"Below is what {first.label} needs and does."
    match advice.verdict:
        case "helps":
            return (
                f"Set {first.label} in both directions, {place}: {what} {here}, where the line as "
                f"it is has {before}.{_lost(advice)}"
            )
        case "costs":
            return (
                f"Nothing in the router helps without a cost. With {first.label}, {what} is {here} "
                f"instead of {before}.{_lost(advice)} Set it if that is worth it; if not, leave "
                f"the line as it is.{_costly(advice, aim)}"
            )
        case "nothing":
            found = advice.as_it_is.against_first.values()
            # Where one objective speaks against the queue and another for it, the reader chooses.
            leave = all(each.verdict != "worse" for each in found)
            return (
                f"Nothing in the router helps: the line as it is has {what} {before}, and "
                f"{first.label}, {place}, has {here}. {'Leave the line as it is. ' * leave}{below}"
            )
        case "undecided":
            return (
                f"Undecided: the line as it is has {what} {before}, and {first.label}, {place}, "
                f"{here}. These simulations do not tell whether that helps; --effort thorough "
                f"simulates more. {below}"
            )


def _lost(advice: Advice) -> str:
    """Return what the first queue and the line as it is lose, where that weighs."""
    lost = [each.values.get(THROUGHPUT.name) for each in (advice.ranking[0], advice.as_it_is)]
    if None in lost or (advice.verdict == "helps" and advice.wanted.varied is None):
        return ""
    here, without = map(_percent, lost)
    return f" It loses {here} of the throughput, the line as it is {without}."


def _costly(advice: Advice, aim: Objective) -> str:
    """Return what other queues help at a cost."""
    found = [
        f"{each.label} ({ranked_value(each, aim)}, loses {_percent(each.values[THROUGHPUT.name])})"
        for each in advice.ranking[1:]
        if each.verdict == "costs"
    ]
    return f" So do, at their cost: {listed(found)}." if found else ""


def _in_the_modem(advice: Advice) -> str:
    """Return what a queue in the modem would do, where the rate varies."""
    modem, aim = advice.in_modem, _decides(advice)
    if modem is None:
        return ""
    return (
        " In the modem, if it has one, a queue management is where the packets of an upload wait: "
        f"with {modem.label}, and no queue in the router, {aim.title} is "
        f"{ranked_value(modem, aim)}."
    )


def _on_condition(advice: Advice, text: str) -> str:
    """Return a promise behind its condition; of one rate, behind what holds for half of it."""
    if advice.holds_if is None:
        return text
    held = f"If {advice.holds_if}: {text[0].lower()}{text[1:]}"
    if advice.wanted.varied is not None:
        return held
    line = advice.line
    _, after, without = (worst_known(each, _CALLS) for each in advice.halved)
    return (
        "The rate of such a line changes, and this advice does not know how: it promises nothing "
        f"for the line. At half its rate ({rate(line.down_bps / 2)} and {rate(line.up_bps / 2)}) a "
        f"call's packets take {_shown_ms(after)} with {advice.chosen.label} behind this shaper, "
        f"and {_shown_ms(without)} without it. {held}"
    )


def _why(advice: Advice) -> str:
    """Return why the first queue is the first."""
    choice = advice.choice
    found = [
        f"By {step.aim.title}, {listed(step.left)} {'is' if len(step.left) == 1 else 'are'} worse "
        f"than {step.best} by more than {step.aim.margin.text}."
        for step in choice.steps
    ]
    found += _that_do_not_help(advice)
    found += _among_the_rest(advice)
    second = advice.ranking[1:2]
    if second:
        found.append(f"{choice.label}: {_against(advice, second[0], mirrored=True)}.")
    return " ".join(found)


def _that_do_not_help(advice: Advice) -> Iterator[str]:
    """Yield which queues are behind the first because it is not sure that they help."""
    if advice.wanted.varied is None:
        return
    for verdict, ending in (("undecided", "help is undecided"), ("nothing", "do not help")):
        names = [each.label for each in advice.ranking if each.verdict == verdict != advice.verdict]
        if names:
            yield f"{'Whether ' * (verdict == 'undecided')}{listed(names)} {ending}."


def _among_the_rest(advice: Advice) -> Iterator[str]:
    """Yield what is said of the queues that no objective decides against, but for the first."""
    choice = advice.choice
    others = [each for each in advice.ranking if each.label in choice.remaining[1:]]
    if not others:
        return
    open_ = [each for each in others if not each.is_equal]
    equal = [each.label for each in others if each.is_equal]
    if equal:
        yield f"{listed(equal)} {'is' if len(equal) == 1 else 'are'} equal within the margins."
    if open_:
        yield (
            f"{listed([each.label for each in open_])} {'is' if len(open_) == 1 else 'are'} "
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


def others(advice: Advice) -> list[str]:
    """Return what is said of each other queue compared with the first, a sentence each."""
    rows = [*advice.ranking[1:], *advice.unranked]
    return [f"{each.label}: {_against(advice, each)}" for each in rows]


def _against(advice: Advice, each: Ranked, *, mirrored: bool = False) -> str:
    """Return how a queue compares with the first, or the first with it."""
    equal, parts = [], []
    for name, found in each.against_first.items():
        unit, aim = found.aim.unit, found.aim
        match found.verdict:
            case "equal":
                margin = f"{found.margin * SCALES[unit]:.2g} {unit}"
                equal.append(f"within {margin} for {name}")
            case "better" | "worse":
                worse = (found.verdict == "worse") != mirrored
                positive = replace(found.difference, mean=abs(found.difference.mean))
                parts.append(f"{name} {value_of(aim, positive)} {aim.words[worse]}")
            case "no value":
                parts.append(f"{name} not known")
    if equal:
        parts.insert(0, f"equal {f'to {each.label} ' if mirrored else ''}{', '.join(equal)}")
    if each.undecided:
        parts.append(f"undecided: {_would_decide(advice, each.undecided)}")
    return "; ".join(parts)


def _would_decide(advice: Advice, found: Sequence[Compared]) -> str:
    if advice.wanted.varied is not None:
        return f"more parts of a recording for {', '.join(each.aim.name for each in found)}"
    numbers = [
        f"over {MOST_NEEDED:,}" if each.needed is None else f"about {each.needed}" for each in found
    ]
    needs = [
        f"{each.aim.name} ({number} replications)"
        for each, number in zip(found, numbers, strict=True)
    ]
    return f"more replications for {', '.join(needs)}"


def margins(advice: Advice) -> list[str]:
    """Return the margin of each objective and its source."""
    return [f"{aim.name}: {aim.margin.text}; {aim.margin.source}" for aim in advice.shown_aims]


def _of_a_policer(advice: Advice) -> str:
    """Return what a policed line loses of calls; empty for others."""
    if not advice.wanted.policed:
        return ""
    lost, more = advice.calls_lost
    if lost.mean == 0:
        return " The line as it is loses no packet of a call."
    return (
        f" Of a call's packets the line as it is loses {shown_of(lost, 100)} %, "
        f"{shown_of(more, 100)} % more than with {advice.chosen.label}."
    )


def changes(advice: Advice) -> str:
    """Return what happens when the line's rate is not what it is on average."""
    return _half(advice) if advice.wanted.varied is None else _while_it_varies(advice)


def _while_it_varies(advice: Advice) -> str:
    load = advice.wanted.halved.name
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
    delays = [worst_known(each, _CALLS) for each in (before, after, without)]
    if advice.wanted.policed:
        lost = [worst_known(each, CALL_LOST[2]) for each in (before, after, without)]
        return (
            f"When the provider lets only half pass ({rate(line.down_bps / 2)} and "
            f"{rate(line.up_bps / 2)}), a shaper at a fixed rate is above that and does nothing: "
            f"the provider drops. Under '{advice.wanted.halved.name}' {_percent(lost[1])} of a "
            f"call's packets are then lost instead of {_percent(lost[0])} with "
            f"{advice.chosen.label} ({_percent(lost[2])} without it)."
        )
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


def simulations(advice: Advice) -> str:
    """Return how many simulations there are of each load and queue."""
    wanted = advice.wanted
    if wanted.varied is None:
        return f"{wanted.replications} simulations"
    cuts = wanted.varied.amount.cuts
    each = f"{wanted.replications} over each of {cuts} parts of the recording"
    return f"{wanted.runs} simulations, {each},"


def worst_known(row: Expected, measures: Sequence[str]) -> Estimate | None:
    """Return the largest of the measures that have a value."""
    found = [each for name, each in row.known.items() if name in measures]
    return max(found, key=lambda each: each.mean, default=None)


def shown_of(found: Estimate, scale: float) -> str:
    """Return an estimate as text. One line below the table explains all that have no interval."""
    return shown(replace(found, mostly=None), scale)


def value_of(aim: Objective, found: Estimate) -> str:
    """Return an estimate in an objective's unit."""
    return f"{shown_of(found, SCALES[aim.unit])} {aim.unit}"


def ranked_value(each: Ranked, aim: Objective, *, unit: bool = True) -> str:
    """Return a queue's value in an objective, a lower bound as such."""
    found, ending = each.values[aim.name], f" {aim.unit}" * unit
    if aim.name in each.at_least:
        return f"≥ {shown(Estimate(found.mean, None, 1), SCALES[aim.unit])}{ending}"
    return f"{shown_of(found, SCALES[aim.unit])}{ending}"


def _percent(found: Estimate | None) -> str:
    return "–" if found is None else f"{shown_of(found, 100)} %"


def _shown_ms(found: Estimate | None) -> str:
    return "–" if found is None else f"{shown_of(found, 1e3)} ms"


def milliseconds(seconds: float) -> str:
    """Return a time in ms."""
    return f"{1e3 * seconds:.4g} ms"


def listed(names: Sequence[str]) -> str:
    """Return names with commas and an "and"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
