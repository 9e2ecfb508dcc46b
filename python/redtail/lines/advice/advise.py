"""Advises a queue for a line: from what its owner knows to settings, with simulations of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from redtail import experiment, facts
from redtail.errors import SpecError
from redtail.lines.advice.access import ACCESS, as_known, with_overhead
from redtail.lines.advice.answer import Advice
from redtail.lines.advice.candidates import QUEUES
from redtail.lines.advice.loads import USES, loads
from redtail.lines.advice.objectives import chosen
from redtail.lines.advice.simulated import (
    BUFFER,
    EFFORTS,
    buffers_of,
    candidates,
    experiment_text,
    simulated,
    trace_files,
)
from redtail.lines.advice.sold import as_sold
from redtail.lines.line import Line, Recorded
from redtail.options import ExecuteOptions
from redtail.running import runner
from redtail.selection import split
from redtail.studies.runner import quietly

LEAST_BPS = 200e3
"""The slowest line, in bit/s. Source: a call sends 80 kbit/s, and it is part of every load."""

MOST_BPS = 100e9
"""The fastest line, in bit/s. Source: our choice."""

SHORTEST_RTT_S = 0.0001
"""The shortest round trip, in s. Source: our choice."""

LONGEST_RTT_S = 2.0
"""The longest round trip, in s. Source: our choice; by a geostationary satellite it is 0.6 s."""

MOST_UNEQUAL = 200
"""The largest ratio of the two rates.

Source: our choice; from 75 on, the acknowledgements of a download fill the upload (one of 40 B for
two packets of 1500 B).
"""

MOST_PEOPLE = 1000
"""Source: our choice; a line for more is not that of a home or an office."""


def advise(
    down: str,
    up: str,
    rtt: str,
    *,
    access: str = "unknown",
    use: str | Sequence[str],
    people: int = 1,
    port_rate: str | None = None,
    provider: str = "buffer",
    rates: str = "line",
    **options: Unpack[AdviseOptions],
) -> Advice:
    """Advise a queue for both directions of a line.

    Args:
        down: the line's rate towards the people, such as "50 Mbit/s": what the modem or the
            contract states, or what a speed test measures.
        up: the same from them.
        rtt: round trip to near servers when nobody else uses the line, as `ping` shows it.
        access: the access technology, a name of `redtail.lines.ACCESS`.
        use: what it is used for, a list or "calls,web", of `redtail.lines.USES`.
        people: number of people who use it.
        port_rate: rate of the Ethernet port that the router is connected to, such as "1 Gbit/s".
            If it is no faster than `up`, the upload needs no shaper.
        provider: what the provider does with what exceeds the rates: "buffer" delays it; "policer"
            drops it, beyond a burst that may be named, as in "policer:125 kB".
        rates: what `down` and `up` are of: the "line", as a modem or a contract states, or of a
            "speed-test", which counts payload.
        **options: as for `advise_on`.

    Raises:
        SpecError: a value makes no sense.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept.
    """
    line = given_line(
        *(down, up, rtt, access, use, people), port_rate=port_rate, provider=provider, rates=rates
    )
    return advise_on(line, **options)


def given_line(
    down: str,
    up: str,
    rtt: str,
    access: str,
    use: str | Sequence[str],
    people: int,
    *,
    port_rate: str | None = None,
    provider: str = "buffer",
    rates: str = "line",
) -> Line:
    """Return a line from texts; arguments and errors as for `advise`."""
    line = Line(
        down_bps=facts.rate_bps("down", down),
        up_bps=facts.rate_bps("up", up),
        rtt_s=facts.time_s("rtt", rtt),
        access=access,
        uses=names_of(use),
        people=people,
    )
    given = {"down": f'"{down}"', "up": f'"{up}"', "rtt": f'"{rtt}"'}
    _refuse(line, given)
    return as_sold(line, port_rate, provider, rates)


def names_of(texts: str | Sequence[str]) -> tuple[str, ...]:
    """Return names that are given as a list or between commas, each once.

    >>> names_of("calls, web,calls"), names_of(["web"])
    (('calls', 'web'), ('web',))
    """
    return tuple(dict.fromkeys(split(texts)))


def advise_on(
    line: Line,
    *,
    recorded: Recorded | None = None,
    queues: str | Sequence[str] = (),
    objective: str | None = None,
    buffer: str | None = None,
    effort: str = "normal",
    follows: bool = True,
    **running: Unpack[ExecuteOptions],
) -> Advice:
    """Advise a queue for both directions of a line that is known as numbers.

    Args:
        line: the line.
        recorded: what a recording told of its buffers and flows.
        queues: the queues to choose from, of `redtail.lines.QUEUES`, such as those that
            a router has; by default all but WRED, which is RED where packets have no marks, and
            fair queues with and without LLQ, of routers without FQ-CoDel; where the rate varies,
            CAKE and FQ-CoDel.
        objective: what counts before all else when they are ranked: "calls", "games", "pages" or
            "throughput"; by default the first of these that the line is used for.
        buffer: time that a full buffer of the modem or the provider takes to empty, such as
            "200 ms"; what was recorded takes its place.
        effort: how much is simulated: "quick", "normal" or "thorough".
        follows: whether the router can have cake-autorate, a program that makes CAKE's shaper
            follow the line's rate, where that varies.
        **running: as for `redtail.run`: jobs, out, progress, executor.

    Raises:
        SpecError: a value makes no sense.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept, and the same call goes on.
    """
    _refuse(line, {})
    line = with_overhead(line, recorded)
    varies = recorded is not None and recorded.varies
    _refuse_policer(line, varies=varies)
    kinds = _kinds(queues, varies=varies)
    ranked_by = chosen(objective, line.uses, line.burst_bytes is not None)
    if effort not in EFFORTS:
        raise SpecError(
            f'effort = "{effort}" is none; accepted: {", ".join(EFFORTS)}', key="effort"
        )
    buffers = buffers_of(recorded, _buffer(buffer))
    wanted = simulated(line, kinds, EFFORTS[effort], buffers, recorded, follows=follows)
    text = experiment_text(wanted, _name(line, recorded), _about(line))
    # What the checks warn of are properties of the candidates that the answer shows.
    name = "the experiment of this advice"
    plan = experiment.prepare(experiment.Toml(text, name=name, files=trace_files(wanted)))
    results = quietly(lambda: runner.execute(plan, **running))
    # What is set on the line itself, which is not divided.
    whole = None if wanted.varied is None else replace(wanted.varied, divisor=1.0)
    over = loads(line.uses, line.people, recorded)
    found = Advice(
        line=line,
        recorded=recorded,
        objective=ranked_by,
        candidates=candidates(line, kinds, over, whole, follows=follows),
        wanted=wanted,
        results=results,
        text=text,
    )
    found.keep()
    return found


class AdviseOptions(ExecuteOptions, total=False):
    """Options of `advise_on`, which describes them."""

    queues: str | Sequence[str]
    objective: str | None
    buffer: str | None
    effort: str
    follows: bool


def _kinds(queues: str | Sequence[str], *, varies: bool) -> tuple[str, ...]:
    named = names_of(queues)
    for name in named:
        if name not in QUEUES:
            hint = facts.hint(name, QUEUES)
            raise SpecError(
                f'queues = "{name}" is no queue to advise; accepted: {", ".join(QUEUES)}{hint}',
                key="queues",
            )
    usual = (kind for kind, each in QUEUES.items() if (each.varied if varies else each.usual))
    return named or tuple(usual)


def _buffer(text: str | None) -> float:
    if text is None:
        return BUFFER
    seconds = facts.time_s("buffer", text)
    if not 0.001 <= seconds <= 10:
        raise SpecError(
            f'buffer = "{text}" is no buffer of a line; accepted: from "1 ms" to "10 s"',
            key="buffer",
        )
    return seconds


def _refuse(line: Line, given: dict[str, str]) -> None:
    """Refuse a line that cannot be simulated.

    Args:
        line: the line.
        given: its values as they were given, by their keys.

    Raises:
        SpecError: a value makes no sense; the message names it and what is accepted.
    """

    def refuse(key: str, value: object, problem: str, accepted: str) -> None:
        raise SpecError(f"{key} = {given.get(key, value)} {problem}; accepted: {accepted}", key=key)

    for key, rate in (("down", line.down_bps), ("up", line.up_bps)):
        if not LEAST_BPS <= rate <= MOST_BPS:
            accepted = 'from "200 kbit/s" to "100 Gbit/s"'
            refuse(key, f"{rate:g} bit/s", "is no rate of a line", accepted)
    pairs = (("down", line.down_bps, "up", line.up_bps), ("up", line.up_bps, "down", line.down_bps))
    for key, rate, other, slower in pairs:
        if rate > MOST_UNEQUAL * slower:
            problem = f"is more than {MOST_UNEQUAL} times {other}"
            refuse(key, f"{rate:g} bit/s", problem, f"up to {MOST_UNEQUAL} times {other}")
    if not SHORTEST_RTT_S <= line.rtt_s <= LONGEST_RTT_S:
        refuse("rtt", f"{line.rtt_s:g} s", "is no round trip", 'from "100 us" to "2 s"')
    if line.access not in ACCESS:
        titles = ", ".join(f"{each.name} ({each.title})" for each in ACCESS.values())
        refuse("access", f'"{line.access}"', "is no access technology", titles)
    uses = ", ".join(f"{use} ({of})" for use, of in USES.items())
    if not line.uses:
        refuse("use", '""', "names no use", uses)
    for name in line.uses:
        if name not in USES:
            refuse("use", f'"{name}"', "is no use of a line", uses)
    if not 1 <= line.people <= MOST_PEOPLE:
        accepted = f"1 to {MOST_PEOPLE}; for the subscribers of a provider, --subscribers"
        refuse("people", line.people, "is no number of people", accepted)


def _refuse_policer(line: Line, *, varies: bool) -> None:
    """Refuse a policer where the rate varies.

    Raises:
        SpecError: a policer has one rate.
    """
    if varies and line.burst_bytes is not None:
        raise SpecError(
            'provider = "policer" has one rate, and the recording shows one that varies; '
            "accepted: buffer, or the rates in the place of the recording",
            key="provider",
        )


def _name(line: Line, recorded: Recorded | None) -> str:
    """Return what the experiment is called; its results are in a folder of that name."""
    policed = "" if line.burst_bytes is None else ", policed"
    rates = " and ".join(f"{bps / 1e6:g}" for bps in as_known(line, recorded).values())
    return f"Line of {rates} Mbit/s, {line.access}{policed}"


def _about(line: Line) -> list[str]:
    people = "1 person" if line.people == 1 else f"{line.people} people"
    return [
        f"{people}: {', '.join(line.uses)}. Base round trip {1e3 * line.rtt_s:g} ms.",
        "redtail run repeats the simulations of the advice; change what is not as on your line.",
    ]
