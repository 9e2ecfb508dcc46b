"""Explains a run: what happened in it, or the story of one of its flows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redtail import escape
from redtail.analysis.story import flow as stories
from redtail.analysis.story import overview, recorded, timeouts, words
from redtail.analysis.story.events import Flow, Log, Sent
from redtail.errors import SpecError
from redtail.running import events

AROUND_S = 1.0
"""What is told around a time: so much before and after it."""

MOST_LINES = 100
"""So many lines are told if nothing else is asked for."""


@dataclass(frozen=True)
class Wanted:
    """What is asked about a run.

    Attributes:
        flow: number of a flow, counted over all groups in the order of the file; None for all.
        group: name of a group, None for all.
        kinds: kinds of events; empty for all but those that are many and say little alone.
        from_s: what happened earlier is left out.
        to_s: what happened later is left out; None for the end of the run.
        most: lines at most.
    """

    flow: int | None = None
    group: str | None = None
    kinds: tuple[str, ...] = ()
    from_s: float = 0.0
    to_s: float | None = None
    most: int = MOST_LINES

    @property
    def tells_lines(self) -> bool:
        """Whether single events are asked for, and not an overview."""
        times = self.from_s > 0 or self.to_s is not None
        return self.flow is not None or bool(self.kinds) or times

    def holds(self, line: stories.Line) -> bool:
        """Return whether a line is wanted."""
        ends = self.to_s is None or line.time_s <= self.to_s
        return ends and line.time_s >= self.from_s and stories.mentions(line, self.kinds)


@dataclass(frozen=True)
class Explanation:
    """What a run's events tell.

    Attributes:
        run: its key.
        notes: how its events came to be, and what they lack.
        counts: how many events of each kind there are.
        lines: what happened, in order; empty for an overview.
        more: how many lines are left out.
        flows: whose lines these are.
        timeouts: the causes of the timeouts of these flows, counted, in a sentence.
        overview: of the whole run; None where lines were asked for.
    """

    run: str
    notes: list[str]
    counts: dict[str, int]
    lines: list[stories.Line]
    more: int
    flows: list[Flow]
    timeouts: str
    overview: overview.Overview | None

    def as_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        told = self.overview
        return {
            "format": 1,
            "run": self.run,
            "notes": self.notes,
            "events": self.counts,
            **({"overview": told.as_json()} if told is not None else {}),
            **(
                {
                    "lines": [line.as_json() for line in self.lines],
                    "more": self.more,
                    "timeouts": self.timeouts,
                }
                if told is None
                else {}
            ),
        }

    def text(self) -> str:
        """Return it for people."""
        texts = [f"note:     {note}" for note in self.notes]
        told = self.overview
        if told is None:
            one = len(self.flows) == 1 and self.flows[0].connection is None
            texts += [
                escape.name(str(line) if one else f"{words.flow(line.flow)}: {line}")
                for line in self.lines
            ]
            if not self.lines:
                texts.append("nothing of this was recorded")
            if self.more:
                texts.append(f"and {self.more} more; --from, --to, --kinds or --most choose")
            if self.timeouts:
                texts.append(f"summary:  {self.timeouts}")
            return "\n".join(texts)
        texts.append(f"events:   {_counts(self.counts)}")
        if told.timeouts:
            texts.append(f"timeouts: {told.timeouts.partition(': ')[2]}")
        for part in told.parts:
            texts.append(f"{part.title}:")
            texts += [f"  {escape.name(each.text)}" for each in part.entries]
            if part.more:
                texts.append(f"  and {part.more} more")
        return "\n".join(texts)


def _counts(counts: dict[str, int]) -> str:
    if not counts:
        return "none happened"
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{kind} {count}" for kind, count in ranked)


def explain(folder: Path, wanted: Wanted) -> Explanation:
    """Return what the events of a run tell.

    Args:
        folder: of the run.
        wanted: what is asked.

    Raises:
        SpecError: there is no such flow, group or kind of events.
        StoreError: the run is damaged; or it has no events and cannot be made again.
    """
    narrow = {"flows": [wanted.flow]} if wanted.flow is not None else {}
    found = events.of_run(folder, narrow)
    log = recorded.log(found.table, found.scenario)
    groups = [str(each.get("name")) for each in found.scenario["traffic"]]
    if wanted.group is not None and wanted.group not in groups:
        raise SpecError(f"there is no group {wanted.group!r}; accepted: {', '.join(groups)}")
    for kind in wanted.kinds:
        if kind not in events.kinds():
            raise SpecError(
                f"there is no kind of events {kind!r}; accepted: {', '.join(events.kinds())}"
            )
    notes = _notes(found, log)
    if missing := timeouts.unexplained(log, _flows(log, wanted)):
        # What arrived tells which duplicate acknowledgements there were.
        arrivals = events.arrivals(folder, missing)
        if arrivals is not None:
            log.sent = Sent(arrivals)
    if not wanted.tells_lines and wanted.group is None:
        told = overview.overview(log)
        return Explanation(found.key, notes, log.counts, [], 0, [], told.timeouts, told)
    flows = _flows(log, wanted)
    if wanted.flow is not None and not flows:
        raise SpecError(_no_flow(log, wanted))
    lines = [line for flow in flows for line in stories.lines(log, flow) if wanted.holds(line)]
    lines.sort(key=lambda line: line.time_s)
    causes = [line.cause for line in lines if line.cause is not None]
    summary = timeouts.summary(causes, log.queues) if causes else ""
    more = max(0, len(lines) - wanted.most)
    return Explanation(
        found.key, notes, log.counts, lines[: wanted.most], more, flows, summary, None
    )


def _flows(log: Log, wanted: Wanted) -> list[Flow]:
    return [
        each
        for each in log.flows
        if wanted.flow in (None, each.number) and wanted.group in (None, each.group)
    ]


def _no_flow(log: Log, wanted: Wanted) -> str:
    """Return why there is nothing of a flow."""
    flow = Flow(wanted.group or "", wanted.flow)
    if log.recorded.leaves_out(flow):
        return f"events of flow {wanted.flow} were not recorded: [events] asked for others"
    return f"there are no events of flow {wanted.flow}; flows are counted from 0 over all groups"


def _notes(found: events.RunEvents, log: Log) -> list[str]:
    """Return how the events came to be, and what they lack."""
    notes = []
    if found.again:
        notes.append(
            "the run recorded no events, so it was made again with them; it measured the same"
        )
    kept = log.recorded
    if kept.cut_s is not None:
        notes.append(
            f"the log reached its limit at {kept.cut_s:.3f} s; what happened later is not in it"
        )
    if not found.again:
        for key, names in (("groups", kept.groups), ("flows", kept.flows)):
            if names is not None:
                listed = ", ".join(sorted(map(str, names)))
                notes.append(f"only events of {key} {listed} were recorded")
    return notes
