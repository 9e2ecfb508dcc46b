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
from redtail.analysis.stats import Estimate, estimate, paired_difference
from redtail.errors import SpecError
from redtail.files import path_of
from redtail.lines.advice import doubts
from redtail.lines.advice.access import ACCESS, carried
from redtail.lines.advice.candidates import MERITS, Candidate
from redtail.lines.advice.filled import filled
from redtail.lines.advice.objectives import (
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
from redtail.lines.advice.simulated import AS_IT_IS, HALF, HEADER, Simulated
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
        kind: its kind; None for the line as it is.
        label: its label.
        values: its value in each objective by name, of which the worst load and direction count.
        against_first: how it compares with the first queue in each objective by name; empty for the
            first itself.
    """

    kind: str | None
    label: str
    values: Mapping[str, Estimate]
    against_first: Mapping[str, Compared]

    @property
    def undecided(self) -> tuple[Compared, ...]:
        """The comparisons with the first queue that are undecided."""
        return tuple(each for each in self.against_first.values() if each.verdict == "undecided")

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "kind": self.kind,
            "queue": self.label,
            "objectives": {name: each.as_json() for name, each in self.values.items()},
            "against_first": {name: each.as_dict() for name, each in self.against_first.items()},
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

    def candidate(self, kind: str) -> Candidate:
        """Return a candidate by its kind, the one that has all by rule.

        Raises:
            KeyError: it was not among the candidates.
        """
        for each in self.candidates:
            if each.kind == kind:
                return each
        raise KeyError(kind)

    @cached_property
    def values(self) -> Mapping[tuple[str, str], Values]:
        """The measures of each case, by its load and its queue's label."""
        loads = {load.name: load for load in self.wanted.loads}
        found = {}
        for case in self.results.cases:
            name, label = case.labels["case.name"], case.labels["chain.hop2.queue"]
            usual = name.removesuffix(HALF)
            share = 1.0 if usual == name else 0.5
            found[name, label] = measured(case, loads[usual], self.wanted, share)
        return found

    @cached_property
    def expected(self) -> tuple[Expected, ...]:
        """What each queue does under each load, half the rate included."""
        return tuple(
            Expected(
                load,
                label,
                {name: estimate(values[name]) for name in MEASURES},
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

    @cached_property
    def _ranked(self) -> tuple[list[str], Choice]:
        entrants = [
            Entrant(
                each.label,
                {aim.name: self._over_loads(aim, each.label) for aim in self.aims},
                each.preference(self.line.people),
                MERITS,
            )
            for each in self.candidates
        ]
        return in_order(entrants, self.aims, len(self.candidates))

    @property
    def choice(self) -> Choice:
        """Why the first queue is the first."""
        return self._ranked[1]

    @cached_property
    def ranking(self) -> tuple[Ranked, ...]:
        """The candidates, the one that is advised first (`ranking`)."""
        kinds = {each.label: each.kind for each in self.candidates}
        labels = self._ranked[0]
        return tuple(self._placed(kinds[label], label, labels[0]) for label in labels)

    def _placed(self, kind: str | None, label: str, first: str) -> Ranked:
        values = {aim.name: self._over_loads(aim, label) for aim in self.shown_aims}
        against = {
            aim.name: compared(
                aim, values[aim.name], self._over_loads(aim, first), len(self.candidates)
            )
            for aim in self.shown_aims
            if label != first
        }
        means = {name: estimate(each) for name, each in values.items()}
        return Ranked(kind, label, means, against)

    @cached_property
    def as_it_is(self) -> Ranked:
        """The line without a queue of the router's, which is not ranked."""
        return self._placed(None, AS_IT_IS, self.ranking[0].label)

    @property
    def gain(self) -> Compared | None:
        """What decides whether the advised queue helps: the line as it is compared with it.

        It is the first objective in which the line as it is is better or worse by more than the
        margin; None where it is so in none.
        """
        found = self.as_it_is.against_first.values()
        return next((each for each in found if each.verdict in ("better", "worse")), None)

    @property
    def helps(self) -> bool:
        """Whether a person would notice that the advised queue is better than the line as it is.

        A line that is policed delays nothing and loses packets of calls. There a queue helps, too,
        if it makes them fewer.
        """
        if self.wanted.policed and self.calls_lost[1].low > 0:
            return True
        return self.gain is not None and self.gain.verdict == "worse"

    @property
    def calls_lost(self) -> tuple[Estimate, Estimate]:
        """The share of a call's packets that the line as it is loses, under the worst load.

        Returns:
            The share, and how much more it is than with the advised queue.
        """
        loss = replace(THROUGHPUT, measures=("call_lost_down", "call_lost_up"))
        here, with_queue = (
            self._over_loads(loss, label) for label in (AS_IT_IS, self.chosen.label)
        )
        return estimate(here), paired_difference(here, with_queue)

    @property
    def varies(self) -> bool:
        """Whether the line's rate changes by itself, so that simulations of one promise nothing."""
        return ACCESS[self.line.access].varies

    @cached_property
    def not_filled(self) -> tuple[tuple[str, Direction], ...]:
        """The loads and directions that senders did not fill, as they are meant to.

        There nothing waited, so that they test no queue: on the line as it is, or with the queue
        that is advised.
        """
        shaped = {AS_IT_IS: (math.inf, math.inf)}
        for each in self.wanted.candidates:
            rates = ((way.shaped.shaper_bps, way.shaped.overhead) for way in (each.down, each.up))
            shaped[each.label] = tuple(  # type: ignore[assignment]
                math.inf if rate is None else carried(overhead, rate) for rate, overhead in rates
            )
        full = {load.name: load.full for load in self.wanted.loads}
        line = (self.wanted.down_bps, self.wanted.up_bps)
        return tuple(
            dict.fromkeys(
                (case.labels["case.name"], direction)
                for case in self.results.cases
                if (label := case.labels["chain.hop2.queue"]) in (AS_IT_IS, self.chosen.label)
                for direction in full.get(case.labels["case.name"], ())
                if not filled(
                    case,
                    direction,
                    self.wanted,
                    min(shaped[label][direction == "up"], line[direction == "up"]),
                )
            )
        )

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
        """What happens when the line's rate drops to half.

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
        if not self.varies:
            return None
        return f"the rates stay at {rate(self.line.down_bps)} and {rate(self.line.up_bps)}"

    @property
    def uncertain(self) -> tuple[str, ...]:
        """What is uncertain, a sentence or two each."""
        down, up = (f"{1e3 * seconds:.0f} ms" for seconds in self.wanted.buffers)
        both = down if down == up else f"{down} (provider) and {up} (modem)"
        known = self.recorded is not None and self.recorded.up_buffer_s is not None
        found = [
            *doubts.about_the_rate(self.line),
            *doubts.about_the_load(self.not_filled),
            *doubts.about_the_port(self.line),
        ]
        if not self.wanted.policed:
            found.append(
                f"The buffers in front of the line hold {both}: "
                + ("as recorded." if known else "assumed; a recording of the line would tell.")
            )
        found += [
            "Nobody knows your load. These loads have Linux's TCP (CUBIC) without ECN, and calls "
            "that send 80 kbit/s whatever happens; the experiment file has them all.",
            "Servers are as far as the round trip that you gave. To farther ones everything takes "
            "longer, with each queue.",
        ]
        if self.wanted.divisor > 1:
            found.append(
                f"The line is too fast to be simulated in a minute: its rates and its people were "
                f"divided by {self.wanted.divisor:.3g}, its round trip was not. On the line itself "
                "a packet takes less time, so that delays and page times are lower."
            )
        if not known:
            found += doubts.about_the_buffers(self.wanted)
        found += doubts.about_the_windows(self.line, self.wanted)
        found.append(
            "Packets were simulated without what the line adds to them; small packets take more of "
            "the line than here."
        )
        found += ACCESS[self.line.access].cautions
        chosen = self.chosen
        found += dict.fromkeys((*chosen.down.cautions, *chosen.up.cautions))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, in SI units and shares."""
        full, half, as_it_is = self.halved
        return {
            "format": 1,
            "line": asdict(self.line),
            "recorded": None if self.recorded is None else asdict(self.recorded),
            "objective": self.objective.name,
            "objectives": {
                aim.name: {
                    "title": aim.title,
                    "margin": aim.margin.text,
                    "source": aim.margin.source,
                }
                for aim in self.shown_aims
            },
            "queue": self.chosen.kind,
            "down": self.chosen.down.as_dict(),
            "up": self.chosen.up.as_dict(),
            "helps": self.helps,
            "why": {
                "left": [
                    {
                        "objective": step.aim.name,
                        "margin": step.margin,
                        "best": step.best,
                        "left": list(step.left),
                    }
                    for step in self.choice.steps
                ],
                "remaining": list(self.choice.remaining),
                "preferred_because": self.choice.merit,
            },
            "holds_if": self.holds_if,
            "not_filled": [f"{load}, {way}" for load, way in self.not_filled],
            "not_told_apart": [each.label for each in self.equals],
            "ranking": [each.as_dict() for each in (*self.ranking, self.as_it_is)],
            "loads": {load.name: load.about for load in self.wanted.loads},
            "expected": [each.as_dict() for each in self.expected],
            "half_the_rate": {
                "before": full.as_dict(),
                "after": half.as_dict(),
                "as_it_is": as_it_is.as_dict(),
            },
            "uncertain": list(self.uncertain),
            "candidates": {
                each.key: {"down": each.down.as_dict(), "up": each.up.as_dict()}
                for each in self.candidates
            },
            "simulated": {
                "replications": self.wanted.effort.replications,
                "warmup_s": self.wanted.warmup_s,
                "measured_s": self.wanted.measured_s,
                "rates_divided_by": self.wanted.divisor,
                "buffer_down_s": self.wanted.buffers[0],
                "buffer_up_s": self.wanted.buffers[1],
                "experiment": self.results.name,
            },
        }

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

        return advice.write(self.results.folder, self.text, [*parts_of(self), *more])

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the experiment file, which `redtail run` makes the same runs of.

        Raises:
            SpecError: it cannot be written, or a file of another origin is there.
        """
        path = require_writable(file)
        try:
            path.write_text(self.text, encoding="utf-8")
        except OSError as error:
            raise SpecError(f"{path}: cannot be written: {error.strerror}") from None
        return path


def require_writable(file: str | os.PathLike[str]) -> Path:
    """Return the path of a file that an experiment may be written to.

    Raises:
        SpecError: there is a file that was not made here, or no folder for it.
    """
    path = path_of(file)
    if not path.parent.is_dir():
        raise SpecError(f"save {path}: there is no folder {path.parent}", key="save")
    if path.is_dir():
        raise SpecError(f"save {path}: is a folder; accepted: a file", key="save")
    if path.exists():
        try:
            own = path.read_text(encoding="utf-8").startswith(HEADER)
        except (OSError, UnicodeDecodeError):
            own = False
        if not own:
            raise SpecError(
                f"save {path}: the file exists, and redtail advise has not made it; accepted: "
                "another file",
                key="save",
            )
    return path
