"""Makes the picture of a run that moves: its packets at one queue, from its events."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail import quantities
from redtail.analysis import passages, stored
from redtail.analysis.story import flow as stories
from redtail.analysis.story import recorded
from redtail.analysis.story.events import PACKETS
from redtail.engine import batches
from redtail.errors import SpecError, StoreError
from redtail.files import path_of
from redtail.metrics import counted
from redtail.page import moving
from redtail.running import events
from redtail.scenario import flow_count, links, rate_or_size, seconds
from redtail.store import runs
from redtail.store.folders import table_of_outcome
from redtail.store.format import REPLAY
from redtail.store.writing import explain_write_errors, replace_file

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from redtail.analysis.story.events import Log

MOST_PACKETS = 150_000
"""Packets of a picture: about 1.5 MB, and what a browser still looks through for each frame."""

MOST_TOLD = 20_000
"""Events of flows in a picture: about 1.5 MB."""

_MOST_WINDOWS = 24
_SAMPLES = 800
_MOST_ROWS = 2_000_000  # of a series, in memory

_AT_QUEUE = (*PACKETS, "drop", "mark")

_NOTED = frozenset(
    {"drop", "mark", "timeout", "tail_loss_probe", "recovery", "undo", "spurious", "idle_restart"}
    | {"stall", "wire_loss", "mark_answered"}
)
"""Kinds of events that make a moment interesting."""

_BY_FLOW = ("fq", "fq-codel", "fq-pie", "sfq", "cake")
_BY_CLASS = ("dualpi2", "prio", "pfifo-fast", "drr", "wfq", "htb")
_MOST_ROWS_SHOWN = 12


@dataclass(frozen=True)
class Wanted:
    """What of a run is wanted in a picture.

    Attributes:
        link: name of the link whose queue is shown; None for the first.
        from_s: when the window begins; None to choose it.
        to_s: when it ends; None to choose it.
        flows: numbers of the flows that have colours; empty for all.
    """

    link: str | None = None
    from_s: float | None = None
    to_s: float | None = None
    flows: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Window:
    """What a picture shows: from when, until when, and which moment first."""

    from_s: float
    to_s: float
    start_s: float
    note: str = ""


@dataclass(frozen=True)
class _Recorded:
    """What is known of a run before its packets: when they came to the link, and what happened."""

    log: Log
    times: np.ndarray[Any, Any]
    came: np.ndarray[Any, Any]


def write(
    folder: Path, wanted: Wanted, title: str = "", file: str | os.PathLike[str] | None = None
) -> Path:
    """Write the picture of a run; an older one is replaced in one step.

    Args:
        folder: of the run.
        wanted: what of it.
        title: of the page; by default the name of the experiment.
        file: where to; by default `replay.html` in the folder of the experiment's results.

    Returns:
        The path of the file.

    Raises:
        SpecError: there is no such link, flow or time.
        StoreError: the run is damaged, or its packets are not known; or the file cannot be written.
    """
    text = page(folder, wanted, title)
    path = folder.parent / REPLAY if file is None else path_of(file)
    with explain_write_errors(path):
        replace_file(path, text.encode())
    return path


def page(folder: Path, wanted: Wanted, title: str = "", most: int = MOST_PACKETS) -> str:
    """Return the picture of a run as HTML; arguments and errors as for `write`."""
    found = runs.show(folder.parent, folder)
    known = _known(folder, found, wanted)
    while True:
        text = moving.html(_picture(folder, found, known, wanted, title, most))
        if len(text.encode()) <= moving.LARGEST or most <= 1:
            return text
        most //= 2


def picture(
    folder: Path, found: Mapping[str, Any], wanted: Wanted, title: str, most: int
) -> moving.Picture:
    """Return what a picture shows.

    Args:
        folder: of the run.
        found: what `runs.show` says of it.
        wanted: what of it.
        title: of the page.
        most: packets at most.
    """
    return _picture(folder, found, _known(folder, found, wanted), wanted, title, most)


def _picture(
    folder: Path,
    found: Mapping[str, Any],
    known: _Recorded,
    wanted: Wanted,
    title: str,
    most: int,
) -> moving.Picture:
    scenario = found["scenario"]
    link = _link(scenario, wanted.link)
    simulated = _is_simulated(found)
    window = _window(known, link, scenario, wanted, most)
    if simulated:
        table, queues, flows = _packets_again(folder, found, window)
    else:
        table, queues, flows = known.log.table, None, None
    shown = _AtQueue(table, link, window, wanted.flows)
    unit = known.log.queues[link].unit if link in known.log.queues else ""
    curves, times, note = _curves(queues, flows, link, window, shown, unit)
    about = links(scenario)[link]
    rows, rows_note = _rows(about, shown)
    cut = known.log.recorded.cut_s
    told, told_note = _told(known.log, window, shown)
    notes = [
        "The run was made again to record its packets; it measured the same as the stored one."
        if simulated
        else "The packets are those that the run recorded.",
        "A square is a packet that waits, as high as it is large; a bar in it is a mark (ECN). On "
        "the right is the packet that is being sent. What falls was dropped, for the reason beside "
        "it.",
        window.note,
        rows_note,
        note,
        told_note,
        f"The log reached its limit at {cut:.4g} s; later events are not in it." if cut else "",
    ]
    return moving.Picture(
        title=title or _title(folder, found),
        facts=_facts(found, link, known.log, window, shown),
        window=(window.from_s, window.to_s),
        start_s=window.start_s,
        groups=shown.groups,
        flows=shown.flows,
        hidden=shown.hidden,
        reasons=shown.reasons,
        packets=shown.packets(_constant_rate(about)),
        told=told,
        curve_times_s=times,
        curves=curves,
        rate_bps=_constant_rate(about),
        limit=_limit(about),
        rows=rows,
        notes=[each for each in notes if each],
    )


def _title(folder: Path, found: Mapping[str, Any]) -> str:
    """Return the name of the experiment, or of its folder where there are no results."""
    try:
        return stored.load(folder.parent).name
    except StoreError:
        return str(found["experiment"])


def _link(scenario: Mapping[str, Any], name: str | None) -> str:
    known = list(links(scenario))
    if name is not None and name not in known:
        raise SpecError(f"--link {name}: there is no such link; accepted: {', '.join(known)}")
    return name or known[0]


# --- What is known of the run -------------------------------------------------------------------


def _is_simulated(found: Mapping[str, Any]) -> bool:
    return bool(found["manifest"]["backend"] == batches.BACKEND)


def _known(folder: Path, found: Mapping[str, Any], wanted: Wanted) -> _Recorded:
    """Return what is known of a run before its packets."""
    link = _link(found["scenario"], wanted.link)
    make = _made_again if _is_simulated(found) else _stored
    return make(folder, found, link)


def _made_again(folder: Path, found: Mapping[str, Any], link: str) -> _Recorded:
    """Make the run again with all but the events of packets, of which there are many."""
    import numpy as np
    import pyarrow.compute as pc

    scenario = found["scenario"]
    asked = {"kinds": events.told(), "from": "0 s", "limit": events.LIMIT}
    interval = seconds(scenario["duration"]) / (2 * _SAMPLES)
    outcome = events.made_again(
        folder, found, {"events": asked, "series": _series(interval, windows=False)}
    )
    table = table_of_outcome(outcome, "events")
    queues = table_of_outcome(outcome, "queues")
    part = queues.filter(pc.equal(queues["link"].cast("string"), link))
    log = recorded.log(table, {**scenario, "events": asked})
    came = np.cumsum(part["arrivals"].to_numpy().astype(np.float64))
    return _Recorded(log, part["time_s"].to_numpy(), came)


def _stored(folder: Path, found: Mapping[str, Any], link: str) -> _Recorded:
    """Return what a run recorded that cannot be made again."""
    import numpy as np

    known = events.of_run(folder)
    missing = [kind for kind in PACKETS if kind not in known.scenario["events"]["kinds"]]
    if missing:
        raise StoreError(
            f"{folder}: this run recorded no events of kind {' and '.join(missing)}, and a run of "
            f"backend {known.backend} cannot be made again with them; give the experiment "
            f"[events] with kinds = [..., {', '.join(map(repr, PACKETS))}] and run it again"
        )
    log = recorded.log(known.table, known.scenario)
    at = np.asarray(log.places("arrival"), np.int64)
    times = log.times[at[_is(known.table, "link", link)[at]]]
    return _Recorded(log, times, np.arange(1.0, len(times) + 1))


def _packets_again(
    folder: Path, found: Mapping[str, Any], window: _Window
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Make the run again with the packets of a window, and with series."""
    scenario = found["scenario"]
    span = window.to_s - window.from_s
    flows = sum(flow_count(each) if "flows" in each else 1 for each in scenario["traffic"])
    rows = (flows + len(links(scenario))) * seconds(scenario["duration"])
    asked = {
        "kinds": list(_AT_QUEUE),
        "from": _text(window.from_s),
        # What waits at the end of the window has left a little later.
        "to": _text(window.to_s + 0.02 * span),
        "limit": 10_000_000,
    }
    series = _series(max(span / _SAMPLES, rows / _MOST_ROWS), windows=True)
    outcome = events.made_again(folder, found, {"events": asked, "series": series})
    table, queues, flows_ = (table_of_outcome(outcome, n) for n in ("events", "queues", "flows"))
    return table, queues, flows_


def _series(interval_s: float, *, windows: bool) -> dict[str, Any]:
    return {
        "interval": f"{max(1, round(interval_s * 1e9))} ns",
        "queues": True,
        "windows": windows,
        "goodput": False,
    }


def _text(time_s: float) -> str:
    return f"{round(time_s * 1e12)} ps"


def _is(table: pa.Table, column: str, *names: str) -> np.ndarray[Any, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = table.column(column).cast("string")
    found: np.ndarray[Any, Any] = pc.is_in(values, value_set=pa.array(names)).to_numpy(
        zero_copy_only=False
    )
    return found


def _numbers(table: pa.Table, column: str) -> np.ndarray[Any, Any]:
    """Return a column of numbers without sign, -1 where an event does not say it."""
    import pyarrow.compute as pc

    values = pc.fill_null(table[column].cast("int64"), -1)
    found: np.ndarray[Any, Any] = values.to_numpy()
    return found


def _coded(table: pa.Table, column: str) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Return a column of names as places in a list, -1 where there is none, and the list."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pa.chunked_array([table[column].cast("string").combine_chunks()])
    found = found.dictionary_encode().combine_chunks()
    codes = pc.fill_null(found.indices.cast("int64"), -1)
    return codes.to_numpy(zero_copy_only=False), found.dictionary.to_pylist()


# --- The window ---------------------------------------------------------------------------------


def _window(
    known: _Recorded, link: str, scenario: Mapping[str, Any], wanted: Wanted, most: int
) -> _Window:
    """Choose what is shown: what is asked for, or as much around the most interesting moment."""
    import numpy as np

    duration, warmup = seconds(scenario["duration"]), seconds(scenario["warmup"])
    low, high = wanted.from_s or 0.0, duration if wanted.to_s is None else wanted.to_s
    if low >= duration:
        raise SpecError(f"--from: the run ends at {duration:g} s; accepted: a time before")
    if high <= low:
        raise SpecError(f"--to: is not after --from; accepted: more than {low:g} s")
    high = min(high, duration)
    moment = _moment(known.log, link, max(low, warmup) if warmup < high else low, high)
    before, after = np.interp([low, high], known.times, known.came, left=0.0)
    if after - before <= most:
        return _Window(low, high, moment)

    def reaches(count: float) -> float:
        return float(np.interp(count, known.came, known.times))

    first = before
    if wanted.from_s is None:
        at = float(np.interp(moment, known.times, known.came, left=0.0))
        first = min(max(before, at - most / 4), after - most)
        low = min(max(low, reaches(first)), moment)
    high = max(min(high, reaches(first + most)), low + 1e-9)
    note = (
        f"{counted(round(after - before), 'packet')} came to this queue, more than a picture "
        f"holds. It shows those of {high - low:.4g} s from {low:.4g} s on"
        + ("" if wanted.from_s is not None else ", around the moment in which the most happens")
        + "; --from and --to choose others."
    )
    return _Window(low, high, min(max(moment, low), high), note)


def _moment(log: Log, link: str, low: float, high: float) -> float:
    """Return when the most different things happen, a little before it."""
    import numpy as np

    codes, _ = _coded(log.table, "event")
    of_queue = np.isin(np.arange(len(log)), log.places("drop", "mark", "wire_loss"))
    noted = np.isin(np.arange(len(log)), log.places(*_NOTED))
    if len(log):
        noted &= ~of_queue | _is(log.table, "link", link)
    flows = _numbers(log.table, "flow")
    found = passages.most_interesting(
        log.times[noted], (codes << 33 | (flows + 1))[noted], low, high
    )
    return low if found is None else found


# --- Packets ------------------------------------------------------------------------------------


class _AtQueue:
    """The packets at a queue in a window, with the names of what they are of.

    Args:
        table: events.
        link: whose queue.
        window: from when until when.
        wanted: numbers of the flows that have colours; empty for all.
    """

    def __init__(self, table: pa.Table, link: str, window: _Window, wanted: Sequence[int]) -> None:
        import numpy as np

        self.window = window
        here = _is(table, "link", link) & _is(table, "event", *_AT_QUEUE)
        self.table = table.filter(here)
        self.times = self.table["time_s"].to_numpy()
        self.what = np.select(
            [_is(self.table, "event", name) for name in ("arrival", "mark", "drop")],
            [passages.ARRIVAL, passages.MARK, passages.DROP],
            passages.DEPARTURE,
        )
        codes, self.groups = _coded(self.table, "group")
        flow = _numbers(self.table, "flow")
        pairs, self.flow = np.unique(np.stack([flow, codes], axis=1), axis=0, return_inverse=True)
        self.flow = self.flow.reshape(-1)
        self.flows: list[tuple[int, int]] = [(int(group), int(of)) for of, group in pairs]
        self.places = {of: place for place, (_, of) in enumerate(self.flows)}
        unknown = [each for each in wanted if each not in self.places]
        if unknown:
            raise SpecError(
                f"--flow {unknown[0]}: it sent nothing to {link} in this time; flows that did: "
                f"{_some(sorted(self.places))}"
            )
        self.hidden = [at for at, (_, of) in enumerate(self.flows) if wanted and of not in wanted]
        reason, reasons = _coded(self.table, "reason")
        self.reason, self.reasons = reason + 1, ["", *reasons]

    def packets(self, rate_bps: float | None) -> moving.Packets:
        """Return the packets.

        Args:
            rate_bps: of the link, if it is constant: of packets that came before the window only
                the end of their transmission is known.
        """
        import numpy as np

        table = self.table
        keys = [self.flow, *(_numbers(table, each) for each in ("connection", "back", "packet"))]
        _, key = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
        found = passages.passages(key.reshape(-1), self.times, self.what)
        of = np.where(found.arrival >= 0, found.arrival, found.end)
        bytes_ = _numbers(table, "bytes")[of]
        end_s = self.times[found.end]
        wait = np.nan_to_num(table["wait_s"].to_numpy()[found.end])
        sent = (found.end >= 0) & (self.what[found.end] == passages.DEPARTURE)
        takes = 8 * bytes_ / rate_bps if rate_bps else 0.0
        arrival = np.where(
            found.arrival >= 0, self.times[found.arrival], end_s - wait - np.where(sent, takes, 0)
        )
        inside = found.end < 0
        after = 2 * self.window.to_s - self.window.from_s
        out = np.where(inside, after, np.where(sent, arrival + wait, end_s))
        fate = np.where(inside, moving.INSIDE, np.where(sent, moving.SENT, moving.DROPPED))
        marked = found.mark >= 0
        waited = ~np.isnan(table["wait_s"].to_numpy()[found.mark])
        mark = np.where(marked, np.where(waited, moving.AT_DEPARTURE, moving.AT_ARRIVAL), 0)
        reason = np.where(
            fate == moving.DROPPED,
            self.reason[found.end],
            np.where(marked, self.reason[found.mark], 0),
        )
        kept = (arrival <= self.window.to_s) & (out >= self.window.from_s)
        return moving.Packets(
            *(each[kept] for each in (arrival, out, self.flow[of], bytes_, fate, mark, reason))
        )


def _some(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers[:12]))
    return f"{listed} and {len(numbers) - 12} more" if len(numbers) > 12 else listed or "none"


# --- What else is shown -------------------------------------------------------------------------


def _curves(
    queues: pa.Table | None,
    flows: pa.Table | None,
    link: str,
    window: _Window,
    shown: _AtQueue,
    unit: str,
) -> tuple[list[moving.Curve], Sequence[float], str]:
    """Return the state of the control law and windows, with the times of the samples.

    The law's average is one of packets only if its unit says so: it is drawn beside their number.
    """
    import numpy as np

    if queues is None or flows is None:
        return [], (), "The run has no series of its windows and its control law."
    part = queues.filter(_is(queues, "link", link))
    times = part["time_s"].to_numpy()
    within = (times >= window.from_s) & (times <= window.to_s)
    curves = []
    for name in ("average", "probability") if unit == "packets" else ("probability",):
        values = part[name].to_numpy()[within]
        if np.isfinite(values).any():
            curves.append(moving.Curve(name, values))
    of = flows["flow"].to_numpy()
    hidden = {shown.flows[place][1] for place in shown.hidden}
    wanted = [each for each in np.unique(of).tolist() if each in shown.places]
    drawn = [each for each in wanted if each not in hidden][:_MOST_WINDOWS]
    cwnd = flows["cwnd_bytes"].to_numpy()
    for flow in drawn:
        values = cwnd[of == flow][within] / 1e3
        curves.append(moving.Curve("cwnd", values, shown.places[flow]))
    left = len(wanted) - len(drawn)
    note = f"The windows of {len(drawn)} of {len(wanted)} flows are drawn." if left else ""
    return curves, times[within].tolist(), note


def _told(log: Log, window: _Window, shown: _AtQueue) -> tuple[list[moving.Told], str]:
    """Return what flows and users told in a window, in the words of `redtail explain`."""
    hidden = {shown.flows[place][1] for place in shown.hidden}
    found = [
        moving.Told(line.time_s, line.kind, line.text, shown.places.get(flow.number or 0))
        for flow in log.flows
        if flow.number not in hidden
        for line in stories.lines(log, flow)
        if window.from_s <= line.time_s <= window.to_s and not line.quiet and line.text
    ]
    found.sort(key=lambda each: each.time_s)
    note = (
        f"Of {len(found)} events of flows those up to {found[MOST_TOLD - 1].time_s:.4g} s are told."
        if len(found) > MOST_TOLD
        else ""
    )
    return found[:MOST_TOLD], note


def _rows(about: Mapping[str, Any], shown: _AtQueue) -> tuple[str, str]:
    """Return as how many rows the queue is shown first, and why."""
    kind = str(about["queue"].get("kind"))
    many = 1 < len(shown.flows) <= _MOST_ROWS_SHOWN
    if kind in _BY_FLOW and many:
        note = "Each flow has a row, for the queue serves flows apart"
        return "flows", f"{note}; events do not tell when two of them share a queue."
    if kind in _BY_CLASS and 1 < len(shown.groups) <= _MOST_ROWS_SHOWN:
        note = "Each group has a row, for the queue has several classes"
        return "groups", f"{note}; events do not tell in which a packet waits."
    if kind in (*_BY_FLOW, *_BY_CLASS):
        return "one", "Packets stand in the order in which they came; this queue sends in another."
    return "one", ""


def _facts(
    found: Mapping[str, Any], link: str, log: Log, window: _Window, shown: _AtQueue
) -> list[tuple[str, str]]:
    return [
        ("Run", str(found["in_results"] or found["run"])),
        ("Link", link),
        ("Queue", log.queues[link].kind if link in log.queues else ""),
        ("Window", f"{window.from_s:.4g} s to {window.to_s:.4g} s"),
        ("Flows at the link", str(len(shown.flows))),
    ]


def _constant_rate(about: Mapping[str, Any]) -> float | None:
    if about.get("rate_changes") or about.get("rate_trace") or "rate" not in about:
        return None
    return rate_or_size(str(about["rate"]))


def _limit(about: Mapping[str, Any]) -> float | None:
    limit = about["queue"].get("limit")
    if not isinstance(limit, str):
        return None
    value, unit = quantities.parse(limit)
    return value if unit == "packets" else None
