"""Writes what a run did as qlog files, one for each connection.

A run of `sim` is made again for it, with its packets captured, its events and its windows
recorded: a simulated run is a function of its scenario, and recording never changes a run. Of a
run that cannot be made again its recorded events and windows are written, without packets.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from redtail import native
from redtail.analysis.qlog import packets as of_packets
from redtail.analysis.qlog import trace
from redtail.analysis.story import recorded
from redtail.analysis.story.events import Event, Flow, Log
from redtail.engine import batches
from redtail.errors import SpecError, StoreError
from redtail.metrics import counted
from redtail.running import events
from redtail.scenario import flow_count, is_return, links, seconds
from redtail.store import runs
from redtail.store.folders import read_series, table_of_outcome
from redtail.store.format import slug
from redtail.store.writing import explain_write_errors, replace_file

if TYPE_CHECKING:
    import ipaddress

    import numpy as np
    import pyarrow as pa

INTERVAL_S = 0.01
"""Between two samples of windows, if those are few enough."""

MOST_SAMPLES = 2_000_000
"""Of windows in a run that is made again: about 200 MB. Beyond it they are further apart."""

MOST_PACKETS = 5_000_000
"""Of a run that is made again, at its bottleneck: about 1 GB while they are read."""

MOST_EVENTS = 5_000_000
"""Of a run that is made again."""

MOST_FILES = 100
"""That are written unless more are asked for."""

_TCP = 6


@dataclass(frozen=True)
class Wanted:
    """Which connections are written, and where.

    Attributes:
        folder: where the files go.
        flow: the number of a flow in the run, or of a user, whose connections are written; None
            for all.
        group: the name of a group; None for all.
        most: files at most.
        interval_s: between two samples of windows of a run that is made again; None for
            `INTERVAL_S`, or what makes `MOST_SAMPLES`.
    """

    folder: Path
    flow: int | None = None
    group: str | None = None
    most: int = MOST_FILES
    interval_s: float | None = None


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        files: in the order of flows and connections.
        notes: what is not in them, and why.
        again: whether the run was made again.
        left_out: how many connections were not written, being more than `Wanted.most`.
    """

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    again: bool = True
    left_out: int = 0


class _Talk(NamedTuple):
    """A conversation in a capture, by whose it is: from 10.G.F.F (`docs/how-to/captures.md`).

    Attributes:
        number: of the conversation.
        end: the one that sends data or serves, 0 or 1.
        ends: address and port of this end, and of the other.
        tcp: whether it is TCP.
    """

    number: int
    end: int
    ends: tuple[tuple[str, int], tuple[str, int]]
    tcp: bool


@dataclass(frozen=True)
class _Source:
    """What is known of a run.

    Attributes:
        scenario: of the run.
        about: what files say of the run.
        log: its events; None if they were not recorded.
        series: samples of the windows of all flows; None without.
        columns: of the captured packets, empty without.
        talks: conversations by group, number of the flow or user, and whether users' connection.
        interfaces: the points of the capture.
    """

    scenario: dict[str, Any]
    about: dict[str, Any]
    log: Log | None
    series: pa.Table | None
    columns: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    talks: dict[Flow, _Talk] = field(default_factory=dict)
    interfaces: list[str] = field(default_factory=list)


def write(run: Path, wanted: Wanted) -> Written:
    """Write the connections of a run.

    Args:
        run: its folder; of a run in a segment, the one it would have.
        wanted: which, and where to.

    Raises:
        SpecError: there is no such group or flow.
        StoreError: the run is damaged; or it cannot be made again, and recorded neither events nor
            windows; or a file cannot be written.
    """
    found = runs.show(run.parent, run)
    scenario = found["scenario"]
    groups = _groups(scenario, wanted)
    why = events.not_again(scenario, found["manifest"])
    about = {
        "program": f"redtail {found['manifest']['redtail_version']}",
        "run": found["run"],
        "experiment": found["experiment"],
        "replication": scenario["replication"],
    }
    source = (
        _stored(run, scenario, about, why) if why else _again(run, found, about, groups, wanted)
    )
    flows = [each for each in _flows(source) if _is_wanted(each, groups, wanted)]
    if not flows:
        raise StoreError(f"{run}: no connection of those asked for began in this run")
    files = []
    for flow in flows[: wanted.most]:
        content = trace.file_of(_connection(source, flow))
        files.append(_put(wanted.folder / _name(flow), content))
    notes = (*_missing(source), *((f"{why}: packets are missing",) if why else ()))
    return Written(tuple(files), notes, not why, max(0, len(flows) - wanted.most))


def _groups(scenario: Mapping[str, Any], wanted: Wanted) -> dict[str, int]:
    """Return the number of the first flow of each group.

    Raises:
        SpecError: there is no group or flow as wanted.
    """
    found, first = {}, 0
    for group in scenario["traffic"]:
        found[str(group["name"])] = first
        first += flow_count(group)
    if wanted.group is not None and wanted.group not in found:
        raise SpecError(f"--group {wanted.group}: this run has the groups {', '.join(found)}")
    if wanted.flow is not None and wanted.flow >= first:
        raise SpecError(f"--flow {wanted.flow}: this run has {counted(first, 'flow')}, from 0")
    return found


def _is_wanted(flow: Flow, groups: Mapping[str, int], wanted: Wanted) -> bool:
    return (
        flow.number is not None
        and flow.group in groups
        and wanted.group in (None, flow.group)
        and wanted.flow in (None, flow.number)
    )


def _flows(source: _Source) -> list[Flow]:
    """Return the connections of which something is known, in the order of flows."""
    users = {each["name"] for each in source.scenario["traffic"] if "users" in each}
    found = set(source.talks)
    if source.log is not None:
        found |= {
            each
            for each in source.log.flows
            if each.connection is not None or each.group not in users
        }
    if source.series is not None:
        of_rows = source.series.select(["group", "flow"]).group_by(["group", "flow"]).aggregate([])
        found |= {Flow(str(row["group"]), int(row["flow"])) for row in of_rows.to_pylist()}
    return sorted(found, key=lambda each: (each.number or 0, each.connection or 0))


def _missing(source: _Source) -> Iterator[str]:
    """Yield what the files of a run do not have, and why."""
    if source.log is None:
        yield "events are missing: the run did not record them"
    elif source.log.recorded.cut_s is not None:
        yield f"events after {source.log.recorded.cut_s:.3f} s are missing: there were too many"
    if source.talks and not any(name.endswith(":out") for name in source.interfaces):
        yield (
            "acknowledgements are missing: the experiment has no return link, at which they "
            "could be captured"
        )


# The run


def _stored(run: Path, scenario: dict[str, Any], about: dict[str, Any], why: str) -> _Source:
    """Return what a run recorded."""
    table, series = recorded.table(run), read_series(run, "flows")
    if table is None and series is None:
        raise StoreError(f"{run}: this run recorded neither events nor windows, and {why}")
    log = None if table is None else recorded.log(table, scenario)
    return _Source(scenario, about, log, series)


def _again(
    run: Path,
    found: Mapping[str, Any],
    about: dict[str, Any],
    groups: Mapping[str, int],
    wanted: Wanted,
) -> _Source:
    """Make a run again, and return what it did."""
    scenario = found["scenario"]
    packets = int(found["manifest"]["bottleneck_packets"])
    if packets > MOST_PACKETS:
        raise StoreError(
            f"{run}: {packets} packets passed its bottleneck, and at most "
            f"{MOST_PACKETS} can be written as qlog; give the experiment a shorter duration"
        )
    asked: dict[str, Any] = {"kinds": events.told(), "from": "0 s", "limit": MOST_EVENTS}
    if wanted.group is not None:
        asked["groups"] = [wanted.group]
    if wanted.flow is not None:
        asked["flows"] = [wanted.flow]
    windows = {"queues": False, "goodput": False, **(scenario.get("series") or {})}
    windows |= {"interval": _interval(scenario, wanted), "windows": True}
    more = {"events": asked, "series": windows}
    scenario = {**scenario, **more}
    points = _points(scenario)
    with tempfile.TemporaryDirectory(prefix="redtail-") as aside:
        file = Path(aside) / "packets.pcapng"
        places = [(point, str(file)) for point in points]
        outcome = events.made_again(
            run, found, more, lambda text: batches.run_captured(text, places)
        )
        capture = native.module().read_capture(file)
    columns = _arrays(capture.columns)
    named = {first: name for name, first in groups.items()}
    firsts = [named[first] for first in sorted(named)]
    talks = dict(_talks(_arrays(capture.conversations), scenario, firsts, groups))
    log = recorded.log(table_of_outcome(outcome, "events"), scenario)
    series = table_of_outcome(outcome, "flows") if "flows" in outcome.series else None
    return _Source(scenario, about, log, series, columns, talks, points)


def _interval(scenario: Mapping[str, Any], wanted: Wanted) -> str:
    """Return the time between two samples of windows."""
    if wanted.interval_s is not None:
        return f"{wanted.interval_s * 1e6:.0f} us"
    flows = sum(flow_count(group) for group in scenario["traffic"] if "tcp" in group)
    least_s = seconds(scenario["duration"]) * flows / MOST_SAMPLES
    return f"{max(INTERVAL_S, least_s) * 1e6:.0f} us"


def _points(scenario: Mapping[str, Any]) -> list[str]:
    """Return where packets are captured: where they reach a link, and the peers' leave one."""
    forward = [name for name in links(scenario) if not is_return(name)]
    back = [name for name in links(scenario) if is_return(name)]
    reverse = [group.get("direction") == "reverse" for group in scenario["traffic"]]
    arriving = [*forward, *(back if any(reverse) else [])]
    leaving = [*(back if not all(reverse) else []), *(forward if any(reverse) else [])]
    return [f"{name}:in" for name in arriving] + [f"{name}:out" for name in leaving]


# Its packets


def _arrays(columns: Mapping[str, tuple[str, bytes]]) -> dict[str, np.ndarray[Any, Any]]:
    import numpy as np

    return {name: np.frombuffer(data, kind) for name, (kind, data) in columns.items()}


def _talks(
    columns: Mapping[str, np.ndarray[Any, Any]],
    scenario: Mapping[str, Any],
    names: Sequence[str],
    groups: Mapping[str, int],
) -> Iterator[tuple[Flow, _Talk]]:
    """Yield whose the conversations of a capture are."""
    import ipaddress

    traffic = scenario["traffic"]
    of_ends = {name: columns[name].reshape(-1, 2) for name in ("address", "port")}
    for number, protocol in enumerate(columns["protocol"].tolist()):
        addresses = [ipaddress.IPv4Address(bytes(each)[12:]) for each in of_ends["address"][number]]
        ports = of_ends["port"][number].tolist()
        end = 0 if addresses[0].packed[1] < 128 else 1
        group, flow, connection = _whose(addresses[end], ports[end], ports[1 - end], traffic)
        ends = [(str(address), port) for address, port in zip(addresses, ports, strict=True)]
        whose = Flow(names[group], groups[names[group]] + flow, connection)
        yield whose, _Talk(number, end, (ends[end], ends[1 - end]), protocol == _TCP)


def _whose(
    address: ipaddress.IPv4Address, port: int, peer: int, traffic: Sequence[Mapping[str, Any]]
) -> tuple[int, int, int | None]:
    """Return the group, the flow in it, and the connection of the side that sends data."""
    _, group, high, low = address.packed
    group += 128 * (port - 40_000)
    flow = high << 8 | low
    if "users" in traffic[group]:
        return group, flow, peer - 1024
    return group, flow + (peer - 50_000 << 16), None


def _packets(source: _Source, talk: _Talk) -> Iterator[of_packets.Packet]:
    """Yield the packets of a conversation, in the order of time.

    Those of the side that sends data where they first reach a link, those of its peer where they
    leave the last one.
    """
    import numpy as np

    columns = source.columns
    rows = np.flatnonzero(columns["conversation"] == talk.number)
    ours = rows[columns["end"][rows] == talk.end]
    theirs = rows[columns["end"][rows] != talk.end]
    at = _interfaces(source, ours, ":in")
    chosen = [ours[columns["interface"][ours] == at[0]]] if at else []
    at = _interfaces(source, theirs, ":out")
    chosen += [theirs[columns["interface"][theirs] == at[-1]]] if at else []
    if not chosen:
        return iter(())
    found = np.concatenate(chosen)
    found = found[np.argsort(columns["at_ns"][found], kind="stable")]
    return of_packets.of_conversation(columns, found, talk.end)


def _interfaces(source: _Source, rows: np.ndarray[Any, Any], kind: str) -> list[int]:
    """Return the points of a kind that packets pass, in the order of the first packets."""
    import numpy as np

    used, first = np.unique(source.columns["interface"][rows], return_index=True)
    order = sorted(zip(first.tolist(), used.tolist(), strict=True))
    return [at for _, at in order if source.interfaces[at].endswith(kind)]


# A file


def _connection(source: _Source, flow: Flow) -> trace.Connection:
    """Return what is known of a connection."""
    group = next(each for each in source.scenario["traffic"] if each["name"] == flow.group)
    talk = source.talks.get(flow)
    tcp = group.get("tcp")
    about = {**source.about, "group": flow.group, "flow": flow.number}
    if flow.connection is not None:
        about["connection"] = flow.connection
    return trace.Connection(
        title=str(flow),
        # The side that receives more data opens a connection of a user.
        opens=flow.connection is None,
        protocol="UDP" if tcp is None else "TCP",
        about=about,
        tcp=tcp,
        ends=None if talk is None else talk.ends,
        events=[each for each in _events(source, flow) if _is_ours(each)],
        packets=_packets(source, talk) if talk is not None else (),
        series=_samples(source.series, flow),
    )


def _events(source: _Source, flow: Flow) -> list[Event]:
    return [] if source.log is None else source.log.of(flow)


def _is_ours(event: Event) -> bool:
    """Return whether an event is of the sender whose log this is, or of a packet."""
    return not event.back or event.link is not None


def _samples(series: pa.Table | None, flow: Flow) -> dict[str, list[float]] | None:
    """Return the samples of the windows of a flow."""
    import pyarrow.compute as pc

    if series is None or flow.connection is not None:
        return None
    rows = series.filter(pc.equal(series.column("flow"), flow.number))
    names = [each for each in rows.column_names if each not in ("group", "flow", "state")]
    return {name: rows.column(name).to_pylist() for name in names}


def _name(flow: Flow) -> str:
    """Return the name of the file of a connection."""
    connection = "" if flow.connection is None else f"-{flow.connection}"
    return f"{slug(flow.group)}-{flow.number}{connection}.qlog"


def _put(path: Path, content: Mapping[str, Any]) -> Path:
    data = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data.encode())
    return path
