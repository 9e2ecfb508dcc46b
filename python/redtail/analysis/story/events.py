"""The events of a run, by flow and in order, and what of the run was recorded at all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from redtail.scenario import seconds

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from redtail.analysis.story.words import Queue

TEXTS = ("event", "reason", "link", "group")
NUMBERS = ("flow", "connection", "back", "sequence", "bytes")
VALUES = ("wait_s", "average", "probability", "cwnd_bytes", "ssthresh_bytes", "value")

ARRIVAL = "arrival"
PACKETS = (ARRIVAL, "departure")
"""Events of every packet: recorded only when asked for, and no part of a story."""


FULL = "log_full"
"""The event that says when the limit of rows was reached, and how many were left out."""


class Flow(NamedTuple):
    """Whose events they are.

    Attributes:
        group: its name.
        number: of the flow or the user in the run; None for events of a group.
        connection: of a user, None for a flow of its own.
    """

    group: str
    number: int | None
    connection: int | None = None

    def __str__(self) -> str:
        """Return `cubic 7`, or `web 3, connection 12`."""
        name = self.group if self.number is None else f"{self.group} {self.number}"
        return name if self.connection is None else f"{name}, connection {self.connection}"


class Event(NamedTuple):
    """One row of the table of events; what does not exist is None.

    Attributes:
        row: its place in the table, which is the order in which things happened.
        back: of a packet, and of a sender of a user's connection: 0 for the side that sends data or
            serves, 1 for the other.
    """

    row: int
    time_s: float
    event: str
    reason: str | None = None
    link: str | None = None
    group: str | None = None
    flow: int | None = None
    connection: int | None = None
    back: int | None = None
    sequence: int | None = None
    bytes: int | None = None
    wait_s: float | None = None
    average: float | None = None
    probability: float | None = None
    cwnd_bytes: float | None = None
    ssthresh_bytes: float | None = None
    value: float | None = None


@dataclass(frozen=True)
class Recorded:
    """What of a run its events can tell.

    Attributes:
        kinds: the kinds of events that were recorded; None for all that a story needs.
        from_s: when recording began.
        to_s: when it ended; None for the end of the run.
        cut_s: when the limit of rows was reached, after which nothing was recorded; None if it was
            not.
        groups: the groups whose events were recorded; None for all.
        flows: the numbers of the flows whose events were recorded; None for all.
    """

    kinds: frozenset[str] | None = None
    from_s: float = 0.0
    to_s: float | None = None
    cut_s: float | None = None
    groups: frozenset[str] | None = None
    flows: frozenset[int] | None = None

    @classmethod
    def of(cls, events: Mapping[str, Any], table: pa.Table) -> Recorded:
        """Return what the table `events` of a scenario asked for.

        Args:
            events: the table in the scenario.
            table: what was recorded.
        """

        def names(key: str) -> frozenset[Any] | None:
            return None if events.get(key) is None else frozenset(events[key])

        import pyarrow.compute as pc

        full = table.filter(pc.equal(table.column("event").cast("string"), FULL)).column("time_s")
        return cls(
            kinds=names("kinds"),
            from_s=seconds(events.get("from", "0 s")),
            to_s=seconds(events["to"]) if events.get("to") is not None else None,
            cut_s=full[0].as_py() if len(full) else None,
            groups=names("groups"),
            flows=names("flows"),
        )

    def lacks(self, kind: str) -> bool:
        """Return whether events of this kind were not recorded."""
        return self.kinds is not None and kind not in self.kinds

    def missing(self, since_s: float, until_s: float, kinds: Sequence[str]) -> str:
        """Return why events of a time may be missing; empty when none are."""
        lacking = [kind for kind in kinds if self.lacks(kind)]
        if lacking:
            return f"events of kind {' and '.join(lacking)} were not recorded"
        if since_s < self.from_s:
            return f"recording began at {self.from_s:g} s"
        if self.cut_s is not None and until_s >= self.cut_s:
            return f"their limit of rows was reached at {self.cut_s:.3f} s"
        if self.to_s is not None and until_s > self.to_s:
            return f"recording ended at {self.to_s:g} s"
        return ""

    def leaves_out(self, flow: Flow) -> bool:
        """Return whether events of a flow were not asked for."""
        by_group = self.groups is not None and flow.group not in self.groups
        return by_group or (self.flows is not None and flow.number not in self.flows)


@dataclass(frozen=True)
class Sender:
    """What is known of the senders of a group.

    Attributes:
        payload: bytes of data in a full segment, None if it is not known.
        duplicates: so many duplicate acknowledgements tell of a loss; None where other rules do.
    """

    payload: int | None = None
    duplicates: int | None = None


class _Rows:
    """The rows of a table by flow, each flow's looked up once."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._of = _grouped(table, _coded(table, "group"))
        self._known: dict[Flow, list[dict[str, Any]]] = {}

    def of(self, flow: Flow) -> list[dict[str, Any]] | None:
        """Return the rows of a flow, None if it has none."""
        if flow not in self._known:
            places = self._of.get(flow)
            if places is None:
                return None
            columns = ["time_s", "link", "back", "sequence"]
            self._known[flow] = self._table.select(columns).take(places).to_pylist()
        return self._known[flow]


class Sent:
    """What the flows of a run sent, as it arrived at the first link of each.

    Args:
        table: of events; it tells nothing if it has no arrivals.
    """

    def __init__(self, table: pa.Table) -> None:
        import pyarrow.compute as pc

        kinds = table.column("event").cast("string")
        part = table.filter(pc.equal(kinds, ARRIVAL))
        self.end_s = math.inf
        self._rows = _Rows(part) if part.num_rows else None
        full = table.filter(pc.equal(kinds, FULL))
        if full.num_rows:
            self.end_s = full.column("time_s")[0].as_py()

    def copies(self, flow: Flow, back: int, before_s: float) -> Counter[int] | None:
        """Return how often each packet of data was sent before a time, by its sequence number.

        None where it is not known.
        """
        rows = self._rows.of(flow) if self._rows is not None and before_s < self.end_s else None
        if rows is None:
            return None
        first = next((row["link"] for row in rows if (row["back"] or 0) == back), None)
        return Counter(
            row["sequence"]
            for row in rows
            if row["time_s"] < before_s
            and row["link"] == first
            and (row["back"] or 0) == back
            and row["sequence"] is not None
        )


class Log:
    """The events of one run.

    Args:
        table: the table of events, in the order in which they happened.
        recorded: what of the run they can tell.
        queues: by link, what is known of its queue.
        round_trip_s: what every round trip takes at least, as far as it is known.
        senders: by group, what is known of its senders.

    Attributes:
        sent: what the flows sent; from arrivals in the table, or in another of the same run.
    """

    def __init__(
        self,
        table: pa.Table,
        recorded: Recorded | None = None,
        queues: Mapping[str, Queue] | None = None,
        round_trip_s: float = 0.0,
        senders: Mapping[str, Sender] | None = None,
    ) -> None:
        self.recorded = recorded or Recorded()
        self.queues = queues or {}
        self.round_trip_s = round_trip_s
        self.senders = senders or {}
        self.table = table
        self.times = table.column("time_s").to_numpy()
        self._names = {name: _coded(table, name) for name in TEXTS}
        self._of = _grouped(table, self._names["group"])
        self.sent = Sent(table)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def flows(self) -> list[Flow]:
        """Whose events there are, in the order of groups and numbers."""
        return sorted(
            self._of, key=lambda each: (each.group, each.number or 0, each.connection or 0)
        )

    def of(self, flow: Flow) -> list[Event]:
        """Return the events of a flow, without those of every packet."""
        places = self._of.get(flow)
        return [] if places is None else self.at(places)

    def of_kind(self, *kinds: str) -> list[Event]:
        """Return the events of some kinds, in order."""
        return self.at(self.places(*kinds))

    def places(self, *kinds: str) -> np.ndarray[Any, Any]:
        """Return the places of the events of some kinds."""
        import numpy as np

        codes, known = self._names["event"]
        wanted = [code for code, name in enumerate(known) if name in kinds]
        return np.flatnonzero(np.isin(codes, wanted))

    def coded(self, column: str) -> tuple[np.ndarray[Any, Any], list[str]]:
        """Return the codes of a column of names, -1 for none, and the names."""
        return self._names[column]

    @property
    def counts(self) -> dict[str, int]:
        """How many events of each kind there are."""
        import numpy as np

        codes, known = self._names["event"]
        counts = np.bincount(codes[codes >= 0], minlength=len(known))
        return {name: int(count) for name, count in zip(known, counts, strict=True) if count}

    def at(self, places: np.ndarray[Any, Any]) -> list[Event]:
        """Return the events at some places of the table, without those of every packet."""
        part = self.table.take(places)
        present = part.column_names
        columns: dict[str, list[Any]] = {}
        for name in (*TEXTS, *NUMBERS, *VALUES):
            values = part.column(name).to_pylist() if name in present else [None] * len(places)
            columns[name] = [_known(value) for value in values]
        times = part.column("time_s").to_pylist()
        found = []
        for number, place in enumerate(places.tolist()):
            if columns["event"][number] not in PACKETS:
                rest = {name: values[number] for name, values in columns.items()}
                found.append(Event(place, times[number], **rest))
        return found


def flow_of(event: Event) -> Flow:
    """Return whose event it is."""
    return Flow(event.group or "", event.flow, event.connection)


_UNSET = (2**32 - 1, 2**64 - 1)


def _known(value: Any) -> Any:
    """Return a value, None for what stands for none."""
    if value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    return None if isinstance(value, int) and value in _UNSET else value


def _coded(table: pa.Table, name: str) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Return the codes of a column of names, -1 for none, and the names."""
    import numpy as np

    if name not in table.column_names:
        return np.full(table.num_rows, -1), []
    column = table.column(name).cast("string").combine_chunks().dictionary_encode()
    column = column.chunk(0) if hasattr(column, "chunk") else column
    return column.indices.fill_null(-1).to_numpy(
        zero_copy_only=False
    ), column.dictionary.to_pylist()


def _grouped(
    table: pa.Table, groups: tuple[np.ndarray[Any, Any], list[str]]
) -> dict[Flow, np.ndarray[Any, Any]]:
    """Return the places of the events of each flow."""
    import numpy as np

    codes, names = groups
    keys = [codes.astype(np.int64)]
    for name in ("flow", "connection"):
        if name in table.column_names:
            column = table.column(name).cast("uint64").fill_null(_UNSET[1])
            values = column.to_numpy().astype(np.uint64)
            values = np.where(np.isin(values, np.array(_UNSET, np.uint64)), _UNSET[0], values)
            keys.append(values.astype(np.int64))
        else:
            keys.append(np.full(table.num_rows, _UNSET[0]))
    if not table.num_rows:
        return {}
    order = np.lexsort(keys[::-1])
    sorted_keys = np.stack([key[order] for key in keys])
    begins = np.flatnonzero(np.any(np.diff(sorted_keys, axis=1) != 0, axis=0)) + 1
    found = {}
    for part in np.split(order, begins):
        code, flow, connection = (int(key[part[0]]) for key in keys)
        if code >= 0:
            found[Flow(names[code], _known(flow), _known(connection))] = np.sort(part)
    return found
