"""What to set for the subscribers of a provider, and what to expect of it, plan by plan."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from redtail import experiment, facts
from redtail.analysis.case import CaseResult
from redtail.analysis.results import Results
from redtail.analysis.stats import Estimate, estimate, paired_difference
from redtail.errors import SpecError
from redtail.lines.advice.advise import LONGEST_RTT_S, MOST_UNEQUAL, SHORTEST_RTT_S
from redtail.lines.advice.objectives import DELAY, LOST_AT_MOST, worst_of
from redtail.lines.advice.saved import require_writable, write
from redtail.lines.provider import libreqos
from redtail.lines.provider.plans import LEAST_BPS, MOST_BPS, Plan, read_plans, sold
from redtail.lines.provider.simulated import (
    EFFORTS,
    NOTHING,
    WAYS,
    Load,
    Sample,
    Simulated,
    Way,
    case_name,
    experiment_text,
    names_of,
    simulated,
)
from redtail.options import ExecuteOptions
from redtail.running import runner
from redtail.studies.runner import quietly

MARGIN_S = 0.005
"""Differences of a call's delay that count as none, in s. Source: our choice; a call needs 150 ms
(ITU-T G.114), and nobody hears a thirtieth of that."""

UNSETTLED = 0.2
"""How much the second half of a measurement may differ from the first, as a share of it, before it
is said. Source: our choice."""


@dataclass(frozen=True)
class Row:
    """What the subscribers of a plan have under a load.

    Attributes:
        load: the load's name.
        way: the label of the way to shape.
        plan: the plan's name.
        measures: "busy_call" and "calm_call" (delay of a call's packets, 95th percentile, the worse
            direction, in s), "busy_page" and "calm_page" (median time of a page, in s) and "rate"
            (what a subscriber's download gets, as a share of the plan); those that exist.
    """

    load: str
    way: str
    plan: str
    measures: Mapping[str, Estimate]


@dataclass(frozen=True)
class Ranked:
    """What a way to shape does, over loads and plans.

    Attributes:
        way: the way.
        call: the delay of a call's packets where it is longest, in s.
        lost: the share of the full line that nobody gets.
        fits: whether it keeps the plans and loses little enough of the line to be set.
        difference: the delay less that of the first, replication by replication; None for it.
    """

    way: Way
    call: Estimate
    lost: Estimate
    fits: bool
    difference: Estimate | None

    @property
    def told_apart(self) -> bool:
        """Whether the 95 % interval of the difference is without zero."""
        found = self.difference
        if found is None or found.ci95 is None:
            return False
        return found.low > 0 or found.high < 0


@dataclass(frozen=True)
class ProviderAdvice:
    """What is advised for a provider's line.

    Attributes:
        plans: the plans.
        down_bps: the line's rate towards the subscribers, in bit/s.
        up_bps: the same from them.
        rtt_s: round trip to near servers, in s.
        wanted: what was simulated.
        results: the runs.
        text: the experiment file.
    """

    plans: tuple[Plan, ...]
    down_bps: float
    up_bps: float
    rtt_s: float
    wanted: Simulated
    results: Results
    text: str

    def __repr__(self) -> str:
        return f"<ProviderAdvice {self.chosen.label}>"

    @cached_property
    def _cases(self) -> Mapping[str, CaseResult]:
        return {str(case.labels["case.name"]): case for case in self.results.cases}

    def _measures(self, load: Load, way: Way, sample: Sample) -> Mapping[str, list[float]]:
        case = self._cases[case_name(load, way)]
        found: dict[str, list[float]] = {}
        for sort in ("busy", "calm"):
            names = names_of(sample.plan, sort)
            calls = [case.values(f"{names[each]}.{DELAY}") for each in ("call_down", "call_up")]
            found[f"{sort}_call"] = [worst_of(both) for both in zip(*calls, strict=True)]
            if "page" in names:
                found[f"{sort}_page"] = list(case.values(f"{names['page']}.page_time_p50"))
            if sort == "busy":
                gets = [
                    case.values(f"{name}.goodput")
                    for what, name in names.items()
                    if what.startswith("get")
                ]
                whole = sample.busy * sample.plan.down_bps
                found["rate"] = [math.fsum(each) / whole for each in zip(*gets, strict=True)]
        return found

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """What each plan has under each load with each way."""
        return tuple(
            Row(
                load.name,
                way.label,
                sample.plan.name,
                {
                    name: found
                    for name, values in self._measures(load, way, sample).items()
                    if not math.isnan((found := estimate(values)).mean)
                },
            )
            for load in self.wanted.loads
            for way in WAYS
            for sample in load.samples
        )

    def _worst_call(self, way: Way) -> list[float]:
        columns = [
            self._measures(load, way, sample)[name]
            for load in self.wanted.loads
            for sample in load.samples
            for name in ("busy_call", "calm_call")
        ]
        return [worst_of(each) for each in zip(*columns, strict=True)]

    @cached_property
    def ranking(self) -> tuple[Ranked, ...]:
        """The ways, the one that is advised first."""
        peak = self.wanted.loads[-1]
        values = {way.label: self._worst_call(way) for way in WAYS}
        calls = {label: estimate(each) for label, each in values.items()}
        lost = {
            way.label: estimate(
                [
                    max(0.0, 1 - each)
                    for each in self._cases[case_name(peak, way)].values("utilization")
                ]
            )
            for way in WAYS
        }
        least = min(each.mean for each in lost.values())

        def fits(way: Way) -> bool:
            full = not self.wanted.fills or lost[way.label].mean <= least + LOST_AT_MOST
            return way.keeps_plans and full

        fitting = [way for way in WAYS if fits(way)] or [way for way in WAYS if way.keeps_plans]
        best = min(calls[way.label].mean for way in fitting)
        first = next(way for way in fitting if calls[way.label].mean <= best + MARGIN_S)
        others = sorted(
            (way for way in WAYS if way is not first),
            key=lambda way: (not fits(way), calls[way.label].mean),
        )
        return tuple(
            Ranked(
                way,
                calls[way.label],
                lost[way.label],
                fits(way),
                None if way is first else paired_difference(values[way.label], values[first.label]),
            )
            for way in (first, *others)
        )

    @property
    def chosen(self) -> Way:
        """What is advised."""
        return self.ranking[0].way

    def row(self, load: str, way: str, plan: str) -> Row:
        """Return what a plan has under a load with a way."""
        return next(
            each for each in self.rows if (each.load, each.way, each.plan) == (load, way, plan)
        )

    @cached_property
    def unsettled(self) -> tuple[str, ...]:
        """The loads in which the second half of the measurement is not as the first."""
        found = []
        for load in self.wanted.loads:
            case = self._cases[case_name(load, self.chosen)]
            for sample in load.samples:
                halves = [
                    math.fsum(
                        estimate(case.values(f"phase{half}.{name}.goodput")).mean
                        for what, name in names_of(sample.plan, "busy").items()
                        if what.startswith("get")
                    )
                    for half in (1, 2)
                ]
                if abs(halves[1] - halves[0]) > UNSETTLED * halves[0]:
                    found.append(f"{load.name}, {sample.plan.name}")
        return tuple(found)

    @property
    def uncertain(self) -> tuple[str, ...]:
        """What is uncertain, a sentence or two each."""
        wanted = self.wanted
        total = sum(plan.number for plan in self.plans)
        found = []
        if wanted.fewer > 1:
            active = " and ".join(
                f"{sum(each.busy + each.calm for each in load.samples)} ({load.name})"
                for load in wanted.loads
            )
            found.append(
                f"A sample of the {total} subscribers was simulated: {active} are active at a "
                f"time, on a line whose rate was divided by {wanted.fewer:.3g}. Few subscribers "
                "vary more than many do. Each plan has at least one busy and four calm ones, "
                "which may be more than its part."
            )
        if wanted.slower > 1:
            found.append(
                f"All rates were divided by {wanted.slower:.3g}, the round trip was not. At the "
                "real rates a packet takes less time, so that delays and page times are lower."
            )
        if not wanted.fills:
            found.append(
                "The subscribers cannot fill the line even at the peak: nothing is known of what a "
                "full line does."
            )
        if self.unsettled:
            found.append(
                f"Not settled: in {'; '.join(self.unsettled)} the download rate of the second half "
                f"of the measurement differs from the first by over {100 * UNSETTLED:.0f} %. "
                "--effort thorough measures longer."
            )
        found += [
            "Nobody knows the load. In the evening 2 % of the subscribers download and 10 % call "
            "or read pages; at the peak so many download that they have bought 1.5 times the line. "
            "The experiment file has all of it, to be changed.",
            "The subscriber's own line, Wi-Fi and router are not simulated: a line that is slower "
            "than its plan has a queue of its own, which no shaper of the provider removes.",
            "Servers are as far as the round trip that you gave, for all subscribers.",
            "Whether the shaper's processors keep up is not known here.",
        ]
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, in SI units and shares."""
        return {
            "format": 1,
            "plans": [asdict(plan) for plan in self.plans],
            "down_bps": self.down_bps,
            "up_bps": self.up_bps,
            "rtt_s": self.rtt_s,
            "set": self.chosen.label,
            "ranking": [
                {
                    "way": each.way.label,
                    "keeps_plans": each.way.keeps_plans,
                    "call_s": each.call.as_json(),
                    "lost": each.lost.as_json(),
                    "fits": each.fits,
                    "less_first_s": None if each.difference is None else each.difference.as_json(),
                    "told_apart_from_first": each.told_apart,
                }
                for each in self.ranking
            ],
            "rows": [
                {
                    "load": row.load,
                    "way": row.way,
                    "plan": row.plan,
                    **{name: each.as_json() for name, each in row.measures.items()},
                }
                for row in self.rows
            ],
            "loads": {load.name: load.about for load in self.wanted.loads},
            "uncertain": list(self.uncertain),
            "simulated": {
                "replications": self.wanted.effort.replications,
                "measured_s": self.wanted.effort.seconds,
                "subscribers_divided_by": self.wanted.fewer,
                "rates_divided_by": self.wanted.slower,
                "line_filled": self.wanted.fills,
                "experiment": self.results.name,
            },
        }

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_text(self, width: int = 100) -> str:
        """Return it as the command prints it, in so many columns."""
        from redtail.lines.provider.report import text_of

        return text_of(self, width)

    def keep(self) -> Path:
        """Write what is advised beside its runs, for the page of `redtail report`.

        Raises:
            StoreError: it cannot be written.
        """
        from redtail.lines.provider.report import parts_of
        from redtail.store import advice

        return advice.write(self.results.folder, self.text, parts_of(self), self.to_dict())

    def export(self, folder: str | os.PathLike[str]) -> libreqos.Exported:
        """Write the files of LibreQoS that set what is advised into a folder, which is made.

        Raises:
            SpecError: LibreQoS does not have it, a file is there already, or none can be written.
        """
        made = libreqos.files(self.plans, self.down_bps, self.up_bps, self.chosen)
        return libreqos.write(made, folder)

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the experiment file, which `redtail run` makes the same runs of.

        Raises:
            SpecError: it cannot be written, or a file of another origin is there.
        """
        path = require_writable(file)
        write(path, self.text)
        return path


def advise_provider(
    subscribers: str | Sequence[Plan],
    down: str,
    up: str,
    rtt: str,
    *,
    use: Sequence[str] = ("calls", "web", "downloads"),
    effort: str = "normal",
    **running: Unpack[ExecuteOptions],
) -> ProviderAdvice:
    """Advise how to shape the subscribers of an access provider.

    Args:
        subscribers: the plans, as for `read_plans`, or as it returns them.
        down: the line's rate towards the subscribers, such as "1 Gbit/s".
        up: the same from them.
        rtt: round trip to near servers when the line is empty.
        use: what subscribers do whose plan does not say it.
        effort: how much is simulated: "quick", "normal" or "thorough".
        **running: as for `redtail.run`: jobs, out, progress, executor.

    Raises:
        SpecError: a value makes no sense.
        StoreError: results cannot be written.
        RunError: a run failed.
        Cancelled: it was interrupted; what was finished is kept, and the same call goes on.
    """
    plans = read_plans(subscribers, use) if isinstance(subscribers, str) else tuple(subscribers)
    rates = {"down": facts.rate_bps("down", down), "up": facts.rate_bps("up", up)}
    rtt_s = facts.time_s("rtt", rtt)
    for key, rate in rates.items():
        other = rates["up" if key == "down" else "down"]
        if not LEAST_BPS <= rate <= MOST_BPS or rate > MOST_UNEQUAL * other:
            raise SpecError(
                f'{key} = "{down if key == "down" else up}" is no rate of a provider\'s line; '
                f'accepted: from "200 kbit/s" to "100 Gbit/s", up to {MOST_UNEQUAL} times the '
                "other direction",
                key=key,
            )
        for plan in plans:
            bought = plan.down_bps if key == "down" else plan.up_bps
            if bought > rate:
                raise SpecError(
                    f"subscribers: plan {plan.name}: {key} = {bought:g} bit/s is more than the "
                    f"line's {rate:g} bit/s; accepted: a plan that the line can carry",
                    key="subscribers",
                )
    if not SHORTEST_RTT_S <= rtt_s <= LONGEST_RTT_S:
        raise SpecError(
            f'rtt = "{rtt}" is no round trip; accepted: from "100 us" to "2 s"', key="rtt"
        )
    if effort not in EFFORTS:
        raise SpecError(
            f'effort = "{effort}" is none; accepted: {", ".join(EFFORTS)}', key="effort"
        )
    wanted = simulated(plans, rates["down"], rates["up"], rtt_s, EFFORTS[effort])
    total = sum(plan.number for plan in plans)
    name = f"Provider with {total} subscribers on {rates['down'] / 1e6:g} Mbit/s"
    about = [
        f"{total} subscribers in {len(plans)} plans, which have bought "
        f"{sold(plans, 'down') / rates['down']:.3g} times the line.",
        "redtail run repeats the simulations of the advice; change what is not as with you.",
    ]
    text = experiment_text(wanted, name, about)
    runs = experiment.prepare(experiment.Toml(text, name="the experiment of this advice"))
    results = quietly(lambda: runner.execute(runs, **running))
    found = ProviderAdvice(
        plans=plans,
        down_bps=rates["down"],
        up_bps=rates["up"],
        rtt_s=rtt_s,
        wanted=wanted,
        results=results,
        text=text,
    )
    found.keep()
    return found


__all__ = ["MARGIN_S", "NOTHING", "ProviderAdvice", "Ranked", "Row", "advise_provider"]
