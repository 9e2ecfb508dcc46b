"""An advice: what to set, what to expect of it, and how sure that is."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from redtail.analysis.paired import LEVEL, adjusted
from redtail.analysis.results import Results
from redtail.analysis.stats import Estimate
from redtail.errors import SpecError
from redtail.experiment import toml_value
from redtail.files import path_of
from redtail.lines.advice.candidates import Candidate
from redtail.lines.advice.crossed import crossed, crossed_difference, p_crossed
from redtail.lines.advice.objectives import (
    LOST_AT_MOST,
    LOST_WHERE_IT_VARIES,
    MEASURES,
    THROUGHPUT,
    Objective,
    Values,
    measured,
)
from redtail.lines.advice.simulated import AS_IT_IS, HALF, HEADER, Simulated, trace_files
from redtail.lines.advice.uncertain import uncertain
from redtail.lines.line import Line, Recorded, Shaped

if TYPE_CHECKING:
    from redtail.store.advice import Part

NOTICED = 0.1
"""Share of what the line has as it is: where the rate varies, no queue helps if none improves it by
so much. Source: our choice."""

Verdict: TypeAlias = Literal["helps", "costs", "nothing", "undecided"]
"""Whether the first queue helps; only at the cost of much throughput; whether no queue does; or
whether the simulations do not tell."""


@dataclass(frozen=True)
class Expected:
    """What a queue does under a load.

    Attributes:
        load: the load's name.
        label: the queue's label.
        measures: the estimate of each of `MEASURES`; those that do not exist have no value.
    """

    load: str
    label: str
    measures: Mapping[str, Estimate]

    @property
    def known(self) -> dict[str, Estimate]:
        """The measures that have a value."""
        return {name: each for name, each in self.measures.items() if not math.isnan(each.mean)}

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, in SI units and shares."""
        known = {name: each.as_json() for name, each in self.known.items()}
        return {"load": self.load, "queue": self.label, **known}


@dataclass(frozen=True)
class Ranked:
    """A queue's place.

    Attributes:
        kind: its name; None for what is not ranked: the line as it is, and what a modem could have.
        label: its label.
        value: the objective, of which the worst load counts.
        lost: the share of throughput lost, of which the worst load counts.
        fits: whether it loses little enough throughput to be ranked by the objective.
        difference: the objective less that of the first, replication by replication; None for the
            first itself.
        told_apart: whether this difference is not by chance, among all that were asked about
            (Holm's correction, 5 %); None where nothing can be said.
    """

    kind: str | None
    label: str
    value: Estimate
    lost: Estimate
    fits: bool
    difference: Estimate | None
    told_apart: bool | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "kind": self.kind,
            "queue": self.label,
            "objective": self.value.as_json(),
            "throughput_lost": self.lost.as_json(),
            "loses_little": self.fits,
            "less_first": None if self.difference is None else self.difference.as_json(),
            "told_apart_from_first": self.told_apart,
        }


@dataclass(frozen=True)
class Advice:
    """What is advised for a line.

    Attributes:
        line: the line.
        recorded: what a recording told of it; None without one.
        objective: what queues were ranked by.
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
        return self.candidate(str(self.ranking[0].kind))

    @property
    def down(self) -> Shaped:
        """What is advised towards the people."""
        return self.chosen.down.shaped

    @property
    def up(self) -> Shaped:
        """What is advised from them."""
        return self.chosen.up.shaped

    def candidate(self, kind: str) -> Candidate:
        """Return a candidate by its name, which is its kind unless the line's rate varies.

        Raises:
            KeyError: it was not among the candidates.
        """
        for each in self.candidates:
            if each.name == kind:
                return each
        raise KeyError(kind)

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
    def _cuts(self) -> int:
        return 1 if self.wanted.varied is None else self.wanted.varied.amount.cuts

    def _estimate(self, values: Sequence[float]) -> Estimate:
        return crossed(values, self._cuts)

    @cached_property
    def expected(self) -> tuple[Expected, ...]:
        """What each queue does under each load, half the rate included."""
        return tuple(
            Expected(load, label, {name: self._estimate(values[name]) for name in MEASURES})
            for (load, label), values in self.values.items()
        )

    def expects(self, load: str, label: str) -> Expected:
        """Return what a queue does under a load."""
        return next(each for each in self.expected if (each.load, each.label) == (load, label))

    def _over_loads(self, objective: Objective, label: str) -> list[float]:
        return objective.worst([self.values[load.name, label] for load in self.wanted.loads])

    @cached_property
    def ranking(self) -> tuple[Ranked, ...]:
        """The candidates, the one that is advised first.

        Those that lose little throughput come first, in the order of the objective's mean. Where
        the rate varies, those that are better than the line as it is come before the others, and of
        those that lose much the one that loses least.
        """
        values = {
            each.label: self._over_loads(self.objective, each.label) for each in self.candidates
        }
        means = {label: self._estimate(each) for label, each in values.items()}
        lost = {
            each.label: self._estimate(self._over_loads(THROUGHPUT, each.label))
            for each in self.candidates
        }
        as_it_is = self._estimate(self._over_loads(THROUGHPUT, AS_IT_IS))
        varies = self.wanted.varied is not None
        losses = [as_it_is.mean] if varies else [each.mean for each in lost.values()]
        least = min((each for each in losses if not math.isnan(each)), default=0.0)
        most = least + (LOST_WHERE_IT_VARIES if varies else LOST_AT_MOST)

        def fits(label: str) -> bool:
            if self.objective is THROUGHPUT or math.isnan(lost[label].mean):
                return True
            return lost[label].mean <= most

        def cost(each: Candidate) -> tuple[bool, bool, float]:
            mean, fitting = means[each.label].mean, fits(each.label)
            worse = varies and not self._better(each.label)
            if varies and not worse and not fitting:
                mean = lost[each.label].mean
            return worse, not fitting, math.inf if math.isnan(mean) else mean

        first, *others = sorted(self.candidates, key=cost)
        less_first = self._less(values[first.label], [values[each.label] for each in others])
        return tuple(
            Ranked(
                each.name,
                each.label,
                means[each.label],
                lost[each.label],
                fits(each.label),
                difference,
                told,
            )
            for each, (difference, told) in zip(
                [first, *others], [(None, None), *less_first], strict=True
            )
        )

    def _less(
        self, first: Sequence[float], others: Sequence[Sequence[float]]
    ) -> list[tuple[Estimate, bool | None]]:
        """Return the differences of others from the first, and whether each is not by chance."""
        differences = [crossed_difference(each, first, self._cuts) for each in others]
        p_values = [p_crossed(each, first, self._cuts) for each in others]
        told = [None if p is None else p <= LEVEL for p in adjusted(p_values)]
        return list(zip(differences, told, strict=True))

    def _improved(self, label: str) -> Estimate:
        """Return by how much the objective is less than on the line as it is."""
        without = self._over_loads(self.objective, AS_IT_IS)
        return crossed_difference(without, self._over_loads(self.objective, label), self._cuts)

    def _better(self, label: str) -> bool:
        improved = self._improved(label)
        return improved.mean > 0 if improved.ci95 is None else improved.low > 0

    def _unranked(self, label: str) -> Ranked:
        value = self._over_loads(self.objective, label)
        chosen = self._over_loads(self.objective, self.chosen.label)
        return Ranked(
            None,
            label,
            self._estimate(value),
            self._estimate(self._over_loads(THROUGHPUT, label)),
            True,
            crossed_difference(value, chosen, self._cuts),
            None,
        )

    @property
    def as_it_is(self) -> Ranked:
        """The line without a queue of the router's, which is not ranked."""
        return self._unranked(AS_IT_IS)

    @property
    def in_modem(self) -> Ranked | None:
        """A queue management in the modem, where the rate varies; it is not ranked."""
        made = self.wanted.in_modem
        return None if made is None else self._unranked(made.label)

    @property
    def unranked(self) -> tuple[Ranked, ...]:
        """What is told beside the queues that were ranked."""
        return tuple(each for each in (self.as_it_is, self.in_modem) if each is not None)

    @property
    def verdict(self) -> Verdict:
        """Whether the advised queue helps, by the objective."""
        first = self.ranking[0]
        improved = self._improved(first.label)
        if self.wanted.varied is None:
            worse = improved.mean < 0 if improved.ci95 is None else improved.high < 0
            return "nothing" if worse else "helps"
        if self._better(first.label):
            return "helps" if first.fits else "costs"
        most = improved.mean if improved.ci95 is None else improved.high
        return "undecided" if most > NOTICED * self.as_it_is.value.mean else "nothing"

    @property
    def costly(self) -> tuple[Ranked, ...]:
        """The queues behind the first that help only at the cost of much throughput."""
        return tuple(
            each for each in self.ranking[1:] if not each.fits and self._better(each.label)
        )

    @property
    def helps(self) -> bool:
        """Whether the advised queue is no worse than the line as it is, by the objective.

        Where the rate varies: whether it is better.
        """
        return self.verdict == "helps"

    @property
    def equals(self) -> tuple[Ranked, ...]:
        """The queues that the runs do not tell apart from the one that is advised."""
        return tuple(each for each in self.ranking[1:] if each.fits and not each.told_apart)

    @property
    def halved(self) -> tuple[Expected, Expected, Expected]:
        """What happens when the line's rate drops to half, where it does not vary by itself.

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
    def uncertain(self) -> tuple[str, ...]:
        """What is uncertain, a sentence or two each."""
        return uncertain(self.line, self.recorded, self.wanted, self.chosen)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, in SI units and shares."""
        return {
            "format": 1,
            "line": asdict(self.line),
            "recorded": None if self.recorded is None else self.recorded.as_dict(),
            "objective": self.objective.name,
            "queue": self.chosen.kind,
            "down": self.chosen.down.as_dict(),
            "up": self.chosen.up.as_dict(),
            "helps": self.helps,
            "verdict": self.verdict,
            "not_told_apart": [each.kind for each in self.equals],
            "ranking": [each.as_dict() for each in (*self.ranking, *self.unranked)],
            "loads": {load.name: load.about for load in self.wanted.loads},
            "expected": [each.as_dict() for each in self.expected],
            "half_the_rate": self._half(),
            "uncertain": list(self.uncertain),
            "candidates": {
                each.name: {"down": each.down.as_dict(), "up": each.up.as_dict()}
                for each in self.candidates
            },
            "simulated": {
                "replications": self.wanted.replications,
                "cuts": self._cuts,
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

        return advice.write(self.results.folder, self.text, [*parts_of(self), *more])

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the experiment file, which `redtail run` makes the same runs of.

        Where the line's rate varies all the time, the cuts of its trace are written beside it.

        Raises:
            SpecError: it cannot be written, or a file of another origin is there.
        """
        path = require_writable(file)
        text = self.text
        traces = trace_files(self.wanted, path.stem)
        for own, name in zip(trace_files(self.wanted), traces, strict=True):
            text = text.replace(f'"{own}"', toml_value(name))
        contents = {path.with_name(name): trace for name, trace in traces.items()}
        if not path.exists():
            _require_free(contents)
        contents[path] = text
        for each, content in contents.items():
            try:
                each.write_text(content, encoding="utf-8")
            except OSError as error:
                raise SpecError(f"{each}: cannot be written: {error.strerror}") from None
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


def _require_free(files: Iterable[Path]) -> None:
    """Refuse to replace traces that are not beside an experiment file of their name.

    Raises:
        SpecError: there is one.
    """
    for file in files:
        if file.exists():
            raise SpecError(
                f"save {file}: the file exists; accepted: another name for the experiment file",
                key="save",
            )
