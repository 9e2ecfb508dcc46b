"""An advice: what to set, what to expect of it, and how sure that is."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.analysis.results import Results
from redtail.analysis.stats import Estimate
from redtail.lines.advice import doubts, saved
from redtail.lines.advice import verdict as verdicts
from redtail.lines.advice.access import as_known
from redtail.lines.advice.candidates import MERITS, Candidate
from redtail.lines.advice.crossed import REPLICATIONS, Runs
from redtail.lines.advice.filled import not_filled
from redtail.lines.advice.objectives import (
    COST,
    IDLE,
    MEASURES,
    THROUGHPUT,
    Objective,
    Values,
    in_turn,
    measured,
    unfinished,
)
from redtail.lines.advice.ranking import Choice, Compared, Entrant, compared, in_order
from redtail.lines.advice.simulated import AS_IT_IS, HALF, Simulated
from redtail.lines.advice.verdict import VERDICTS, Verdict
from redtail.lines.advice.words import rate
from redtail.lines.line import Direction, Line, Recorded, Shaped

if TYPE_CHECKING:
    from redtail.store.advice import Part


@dataclass(frozen=True)
class Expected:
    """What a queue does under a load.

    Attributes:
        load: the load's name.
        label: the queue's label.
        measures: the estimate of each of `MEASURES`; those that do not exist have no value.
        at_least: those of which the mean is a lower bound, because pages did not finish.
    """

    load: str
    label: str
    measures: Mapping[str, Estimate]
    at_least: tuple[str, ...] = ()

    @property
    def known(self) -> dict[str, Estimate]:
        """The measures that have a value."""
        return {name: each for name, each in self.measures.items() if not math.isnan(each.mean)}

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, in SI units and shares."""
        known = {name: each.as_json() for name, each in self.known.items()}
        bounds = {"at_least": list(self.at_least)} if self.at_least else {}
        return {"load": self.load, "queue": self.label, **known, **bounds}


@dataclass(frozen=True)
class Ranked:
    """A queue's place.

    Attributes:
        key: its key; None for what is not ranked: the line as it is, and what a modem could have.
        label: its label.
        verdict: whether it helps; None for the line as it is.
        values: its value in each objective by name, of which the worst load and direction count.
        against_first: how it compares with the first queue in each objective by name; empty for the
            first itself.
        at_least: names of objectives of which the mean is a lower bound.
    """

    key: str | None
    label: str
    verdict: Verdict | None
    values: Mapping[str, Estimate]
    against_first: Mapping[str, Compared]
    at_least: tuple[str, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether each objective finds it equal to the first queue."""
        return all(each.verdict == "equal" for each in self.against_first.values())

    @property
    def undecided(self) -> tuple[Compared, ...]:
        """The comparisons with the first queue that are undecided."""
        return tuple(each for each in self.against_first.values() if each.verdict == "undecided")

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "key": self.key,
            "queue": self.label,
            "verdict": self.verdict,
            "objectives": {name: each.as_json() for name, each in self.values.items()},
            "against_first": {name: each.as_dict() for name, each in self.against_first.items()},
            "at_least": list(self.at_least),
        }


@dataclass(frozen=True)
class Advice:
    """What is advised for a line.

    Attributes:
        line: the line.
        recorded: what a recording told of it; None without one.
        objective: what queues were ranked by before all others.
        candidates: the queues, with parameters for the line.
        wanted: what was simulated.
        results: the runs.
        text: the experiment file.
    """

    line: Line
    recorded: Recorded | None
    objective: Objective
    candidates: tuple[Candidate, ...]
    wanted: Simulated
    results: Results
    text: str

    def __repr__(self) -> str:
        return f"<Advice {self.chosen.label}>"

    @property
    def chosen(self) -> Candidate:
        """The queue that is advised."""
        label = self.ranking[0].label
        return next(each for each in self.candidates if each.label == label)

    @property
    def down(self) -> Shaped:
        """What is advised towards the people."""
        return self.chosen.down.shaped

    @property
    def up(self) -> Shaped:
        """What is advised from them."""
        return self.chosen.up.shaped

    def candidate(self, key: str) -> Candidate:
        """Return a candidate by its key: its kind, unless it is a variant of it.

        Raises:
            KeyError: it was not among the candidates.
        """
        for each in self.candidates:
            if each.key == key:
                return each
        raise KeyError(key)

    @cached_property
    def values(self) -> Mapping[tuple[str, str], Values]:
        """The measures of each case, by its load and its queue's label."""
        loads = {load.name: load for load in self.wanted.loads}
        found: dict[tuple[str, str], Values] = {}
        for case in self.results.cases:
            name, label = case.labels["case.name"], case.labels["chain.hop2.queue"]
            usual = name.removesuffix(HALF)
            share = 1.0 if usual == name else 0.5
            values = measured(case, loads[usual], self.wanted, share)
            # Where the rate varies there is a case for each cut, in order.
            before = found.get((name, label), {})
            found[name, label] = {key: [*before.get(key, ()), *values[key]] for key in values}
        return found

    @property
    def runs(self) -> Runs:
        """How the runs of a load and a queue share their chance."""
        varied = self.wanted.varied
        return REPLICATIONS if varied is None else Runs(varied.amount.cuts)

    @cached_property
    def expected(self) -> tuple[Expected, ...]:
        """What each queue does under each load, half the rate included."""
        return tuple(
            Expected(
                load,
                label,
                {name: self.runs.mean(values[name]) for name in MEASURES},
                unfinished(values, self.wanted),
            )
            for (load, label), values in self.values.items()
        )

    def expects(self, load: str, label: str) -> Expected:
        """Return what a queue does under a load."""
        return next(each for each in self.expected if (each.load, each.label) == (load, label))

    def _over_loads(self, objective: Objective, label: str) -> list[float]:
        return objective.worst([self.values[load.name, label] for load in self.wanted.loads])

    @cached_property
    def aims(self) -> tuple[Objective, ...]:
        """What queues are ranked by, the objective that counts most first."""
        return in_turn(self.objective, self.line.uses, self.line.people)

    @property
    def shown_aims(self) -> tuple[Objective, ...]:
        """The same without the guard against idle lines, and without what has no value."""
        known = [each for each in self.aims if each is not IDLE]
        return tuple(
            each
            for each in known
            if any(not math.isnan(value) for value in self._over_loads(each, AS_IT_IS))
        )

    def _compared(self, aim: Objective, label: str, other: str) -> Compared:
        values, others = (self._over_loads(aim, each) for each in (label, other))
        found = compared(aim, values, others, len(self.candidates), self.runs)
        bound = self._is_bound(aim, label) or self._is_bound(aim, other)
        # Two bounds that are equal say nothing of what they are bounds of.
        return found.unknown() if bound and found.verdict == "equal" else found

    def _is_bound(self, aim: Objective, label: str) -> bool:
        """Whether values of a queue in an objective are at least so large."""
        loads = (self.values[load.name, label] for load in self.wanted.loads)
        return any(set(aim.measures).intersection(unfinished(of, self.wanted)) for of in loads)

    @cached_property
    def _verdicts(self) -> Mapping[str, Verdict]:
        modem = self.wanted.in_modem
        labels = [each.label for each in (*self.candidates, *([modem] if modem else []))]
        return {label: self._verdict(label) for label in labels}

    def _verdict(self, label: str) -> Verdict:
        """Return whether a queue helps, by its label."""
        # What is policed delays nothing. There a queue helps, too, if calls lose fewer packets.
        if self.wanted.policed and self._calls_lost(label)[1].low > 0:
            return "helps"
        found = [self._compared(aim, AS_IT_IS, label) for aim in self.shown_aims]
        asked = self._leaving_it_is_a_choice and IDLE in self.aims
        return verdicts.verdict(found, self._compared(COST, AS_IT_IS, label) if asked else None)

    @property
    def _leaving_it_is_a_choice(self) -> bool:
        """Whether each shaper costs much, so that a queue has to be worth it."""
        # As it does where the rate varies.
        return self.wanted.varied is not None

    def _entrant(self, each: Candidate) -> Entrant:
        # What helps is then before what does not.
        verdict = VERDICTS.index(self._verdicts[each.label])
        return Entrant(
            each.label,
            {aim.name: self._over_loads(aim, each.label) for aim in self.aims},
            each.preference(self.line.people),
            MERITS,
            verdict if self._leaving_it_is_a_choice else 0,
        )

    @cached_property
    def _ranked(self) -> tuple[list[str], Choice]:
        entrants = [self._entrant(each) for each in self.candidates]
        return in_order(entrants, self.aims, len(entrants), self.runs)

    @property
    def choice(self) -> Choice:
        """Why the first queue is the first."""
        return self._ranked[1]

    @cached_property
    def ranking(self) -> tuple[Ranked, ...]:
        """The candidates, the one that is advised first (`ranking`)."""
        keys = {each.label: each.key for each in self.candidates}
        labels = self._ranked[0]
        return tuple(self._placed(keys[label], label, labels[0]) for label in labels)

    def _placed(self, key: str | None, label: str, first: str) -> Ranked:
        means = {aim.name: self.runs.mean(self._over_loads(aim, label)) for aim in self.shown_aims}
        against = {
            aim.name: self._compared(aim, label, first) for aim in self.shown_aims if label != first
        }
        bounds = tuple(aim.name for aim in self.shown_aims if self._is_bound(aim, label))
        return Ranked(key, label, self._verdicts.get(label), means, against, bounds)

    @cached_property
    def as_it_is(self) -> Ranked:
        """The line without a queue of the router's, which is not ranked."""
        return self._placed(None, AS_IT_IS, self.ranking[0].label)

    @cached_property
    def in_modem(self) -> Ranked | None:
        """A queue management in the modem, where the rate varies; it is not ranked."""
        made = self.wanted.in_modem
        return None if made is None else self._placed(None, made.label, self.ranking[0].label)

    @property
    def unranked(self) -> tuple[Ranked, ...]:
        """What is told beside the queues that were ranked."""
        return tuple(each for each in (self.as_it_is, self.in_modem) if each is not None)

    @property
    def gain(self) -> Compared | None:
        """What decides whether the advised queue helps: the line as it is compared with it.

        It is the first objective in which the line as it is is better or worse by more than the
        margin; None where it is so in none.
        """
        return verdicts.decisive(self.as_it_is.against_first.values())

    @property
    def verdict(self) -> Verdict:
        """Whether the advised queue helps."""
        verdict = self.ranking[0].verdict
        assert verdict is not None
        return verdict

    @property
    def helps(self) -> bool:
        """Whether a person would notice that the advised queue is better than the line as it is.

        Where the rate varies, not if it is so only at the cost of over 25 % of the line. A line
        that is policed delays nothing and loses packets of calls. There a queue helps, too, if it
        makes them fewer.
        """
        return self.verdict == "helps"

    @property
    def calls_lost(self) -> tuple[Estimate, Estimate]:
        """The share of a call's packets that the line as it is loses, under the worst load.

        Returns:
            The share, and how much more it is than with the advised queue.
        """
        return self._calls_lost(self.chosen.label)

    def _calls_lost(self, label: str) -> tuple[Estimate, Estimate]:
        loss = replace(THROUGHPUT, measures=("call_lost_down", "call_lost_up"))
        here, with_queue = (self._over_loads(loss, each) for each in (AS_IT_IS, label))
        return self.runs.mean(here), self.runs.mean_difference(here, with_queue)

    @cached_property
    def not_filled(self) -> tuple[tuple[str, Direction], ...]:
        """The loads and directions that senders did not fill, as they are meant to (`filled`)."""
        return not_filled(self.results, self.wanted, self.chosen.label)

    @property
    def tested(self) -> bool:
        """Whether a load has filled the line, so that queues can be ranked."""
        meant = {(load.name, way) for load in self.wanted.loads for way in load.full}
        return not meant or not meant <= set(self.not_filled)

    @property
    def equals(self) -> tuple[Ranked, ...]:
        """The queues that no objective tells apart from the first, or not yet."""
        decided = ("better", "worse")
        return tuple(
            each
            for each in self.ranking[1:]
            if not any(a.verdict in decided for a in each.against_first.values())
        )

    @property
    def halved(self) -> tuple[Expected, Expected, Expected]:
        """What happens when the line's rate drops to half, where no recording shows how it varies.

        Returns:
            The advised queue at the full rate and at half of it, and the line as it is at half.
        """
        load = self.wanted.halved.name
        return (
            self.expects(load, self.chosen.label),
            self.expects(load + HALF, self.chosen.label),
            self.expects(load + HALF, AS_IT_IS),
        )

    @property
    def holds_if(self) -> str | None:
        """The condition of all that is promised; None for none but those of `uncertain`."""
        known = as_known(self.line, self.recorded)
        rates = {name: rate(bps) for name, bps in known.items()}
        match doubts.unknown_courses(self.line, self.recorded):
            case []:
                return None
            case [way]:
                return f"the {doubts.WAYS[way]} stays at {rates[way]}"
            case _:
                return f"the rates stay at {rates['down']} and {rates['up']}"

    @property
    def uncertain(self) -> tuple[str, ...]:
        """What is uncertain, a sentence or two each."""
        return doubts.uncertain(self.line, self.recorded, self.wanted, self.chosen, self.not_filled)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, in SI units and shares."""
        return {
            "format": 1,
            "line": asdict(self.line),
            "recorded": None if self.recorded is None else self.recorded.as_dict(),
            "objective": self.objective.name,
            "objectives": {
                aim.name: {
                    "title": aim.title,
                    "margin": aim.margin.text,
                    "source": aim.margin.source,
                }
                for aim in self.shown_aims
            },
            "queue": self.chosen.key,
            "down": self.chosen.down.as_dict(),
            "up": self.chosen.up.as_dict(),
            "helps": self.helps,
            "verdict": self.verdict,
            "why": self.choice.as_dict(),
            "holds_if": self.holds_if,
            "not_filled": [f"{load}, {way}" for load, way in self.not_filled],
            "not_told_apart": [each.label for each in self.equals],
            "ranking": [each.as_dict() for each in (*self.ranking, *self.unranked)],
            "loads": {load.name: load.about for load in self.wanted.loads},
            "expected": [each.as_dict() for each in self.expected],
            "half_the_rate": self._half(),
            "uncertain": list(self.uncertain),
            "candidates": {
                each.key: {"down": each.down.as_dict(), "up": each.up.as_dict()}
                for each in self.candidates
            },
            "simulated": {
                "replications": self.wanted.replications,
                "cuts": self.runs.cuts,
                "warmup_s": self.wanted.warmup_s,
                "measured_s": self.wanted.measured_s,
                "rates_divided_by": self.wanted.divisor,
                "buffer_down_s": self.wanted.buffers[0],
                "buffer_up_s": self.wanted.buffers[1],
                "experiment": self.results.name,
            },
        }

    def _half(self) -> dict[str, Any] | None:
        if self.wanted.varied is not None:
            return None
        names = ("before", "after", "as_it_is")
        return {name: each.as_dict() for name, each in zip(names, self.halved, strict=True)}

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_text(self, width: int = 100) -> str:
        """Return it as the command prints it, in so many columns."""
        from redtail.lines.advice.report import text_of

        return text_of(self, width)

    def keep(self, more: Sequence[Part] = ()) -> Path:
        """Write what is advised beside its runs, for the page of `redtail report`.

        Args:
            more: further parts, such as the commands for a router (`Commands.parts`).

        Raises:
            StoreError: it cannot be written.
        """
        from redtail.lines.advice.report import parts_of
        from redtail.store import advice

        parts = [*parts_of(self), *more]
        return advice.write(self.results.folder, self.text, parts, self.to_dict())

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the experiment file, which `redtail run` makes the same runs of.

        Where the line's rate varies all the time, the cuts of its trace are written beside it.

        Raises:
            SpecError: it cannot be written, or a file of another origin is there.
        """
        return saved.save(self.text, self.wanted, file)
