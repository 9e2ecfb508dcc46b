"""Values of expectations in a run: of its time series, and of the path of a group.

A condition is looked at where there are samples, so a time is known to an interval of the series.
Samples of a flow before its start and after its end do not count.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.analysis.flows import array
from redtail.errors import RedtailError
from redtail.expectation import FLOW_SERIES, GROUP_SERIES, QUEUE_SERIES, OfPath, OverTime, Quantity
from redtail.scenario import rate_or_size, seconds
from redtail.store.folders import read_series
from redtail.store.parquet import read_table_of

if TYPE_CHECKING:
    import numpy as np

    Values = np.ndarray[Any, Any]

_COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_COLUMNS = {"flows": FLOW_SERIES, "groups": GROUP_SERIES, "queues": QUEUE_SERIES}
_WHERE = {"flows": "group", "groups": "group", "queues": "link"}


class Run:
    """A stored run, of which values are asked.

    Args:
        folder: of the run.
        scenario: a run of its case, all defaults filled in.
    """

    def __init__(self, folder: Path, scenario: Mapping[str, Any]) -> None:
        self.folder = folder
        self.scenario = scenario
        self._tables: dict[str, dict[str, Values]] = {}

    @property
    def size(self) -> int:
        """How many bytes its tables take in memory."""
        return sum(column.nbytes for table in self._tables.values() for column in table.values())

    def path(self, term: OfPath, group: str) -> float:
        """Return a quantity of a group's path; NaN where its flows have no table.

        Args:
            term: which.
            group: the group where the term names none.
        """
        rate = _rate(self.scenario, term.group or group)
        match term.what:
            case "rate":
                return term.times * rate
            case "RTT":
                return term.times * self._round_trip(term.group or group)
            case _:
                return term.times * rate / 8 * self._round_trip(term.group or group)

    def over_time(self, term: OverTime, group: str) -> float:
        """Return a value of a time series; NaN where no sample counts.

        A time at which a condition begins to hold is infinite where it does not before the end.

        Args:
            term: which.
            group: the group of quantities of the path that name none.
        """
        import numpy as np

        values = [self._of_part(term, group, part) for part in self._parts(term)]
        known = [value for value in values if not math.isnan(value)]
        if not known:
            return math.nan
        match term.how:
            case "max" | "time":  # the latest flow
                return max(known)
            case "min":
                return min(known)
            case _:
                return float(np.mean(known))

    def left(self, group: str, begin: float | None = None, end: float | None = None) -> float:
        """Return how long a run goes on after the start of a group's last flow, in seconds.

        Args:
            group: the group; of a link, which has no flows, after the start of the run.
            begin: after this time, if it is given.
            end: until this time, if it is before the end of the run.
        """
        starts = self._flows["start_s"][self._flows["group"] == group]
        since = begin if begin is not None else max(starts, default=0.0)
        last = seconds(self.scenario["duration"])
        return (last if end is None else min(end, last)) - float(since)

    def _parts(self, term: OverTime) -> list[dict[str, Values]]:
        """Return the samples of each flow, or those of the group or the link."""
        import numpy as np

        table = self._table(term.table)
        here = table[_WHERE[term.table]] == term.place
        picked = {name: column[here] for name, column in table.items()}
        if term.table != "flows":
            return [picked]
        return [
            {name: column[picked["flow"] == flow] for name, column in picked.items()}
            for flow in np.unique(picked["flow"])
        ]

    def _of_part(self, term: OverTime, group: str, part: Mapping[str, Values]) -> float:
        times = part["time_s"]
        values = part[_COLUMNS[term.table][term.series][0]]
        first, last = self._lasts(term, part)
        exists = (times >= first) & (times <= last)
        part = {name: column[exists] for name, column in part.items()}
        times, values = times[exists], values[exists]
        window = term.window
        begin = first if window.begin is None else window.begin
        counts = times >= begin
        if window.end is not None:
            counts &= times <= window.end
        if window.state:
            counts &= part["state"] == window.state
        if term.series != "state":
            counts &= values == values
        if not counts.any():
            return math.nan
        unknown = term.table != "queues" and not len(self._flows["group"])
        if term.how == "time" and window.begin is None and unknown:
            return math.nan  # when the flow starts is not known
        if term.condition is not None:
            holds = self._holds(term, group, values)[counts]
            if term.how == "share":
                return float(holds.mean())
            return float(times[counts][holds.argmax()] - begin) if holds.any() else math.inf
        values = values[counts]
        match term.how:
            case "first" | "last":
                return float(values[0 if term.how == "first" else -1])
            case how:
                return float(getattr(values, how)())

    def _holds(self, term: OverTime, group: str, values: Values) -> Values:
        """Return of each sample of a flow whether the condition holds.

        The first sample of a flow enters the state that it is in.
        """
        import numpy as np

        assert term.condition is not None
        how, bound = term.condition
        if isinstance(bound, str):
            there = values == bound
            before = np.concatenate(([False], there[:-1]))
            found: Values = {"is": there, "enters": there & ~before, "leaves": before & ~there}[how]
            return found
        limit = bound.value if isinstance(bound, Quantity) else self.path(bound, group)
        found = _COMPARED[how](values, limit)
        return found

    def _lasts(self, term: OverTime, part: Mapping[str, Values]) -> tuple[float, float]:
        """Return from when to when samples count, by the flow or the group that they are of."""
        if term.table == "queues":
            return 0.0, math.inf
        flows = self._flows
        of = flows["group"] == term.place
        if term.table == "flows" and len(part["flow"]):
            of &= flows["flow"] == part["flow"][0]
        if not of.any():
            return 0.0, math.inf
        ends = flows["start_s"][of] + flows["completion_time_s"][of]
        done = ends.max() if (ends == ends).all() else math.inf
        return float(flows["start_s"][of].min()), float(done)

    def _round_trip(self, group: str) -> float:
        found = self._flows["round_trip_s"][self._flows["group"] == group]
        return float(found.mean()) if len(found) else math.nan

    @cached_property
    def _flows(self) -> dict[str, Values]:
        import numpy as np

        wanted = ("group", "flow", "round_trip_s", "start_s", "completion_time_s")
        table = read_table_of(self.folder, "flows.parquet", wanted)
        if table is None:
            return {name: np.array([]) for name in wanted}
        return {name: _array(table[name]) for name in wanted}

    def _table(self, name: str) -> dict[str, Values]:
        if name not in self._tables:
            table = read_series(self.folder, name)
            if table is None:
                raise RedtailError(
                    f"{self.folder}: has no time series of {name}; accepted: series.replications "
                    "as large as the number of replications, also those of --more"
                )
            self._tables[name] = {column: _array(table[column]) for column in table.column_names}
        return self._tables[name]


def _array(column: Any) -> Values:
    """Return a column as an array: names as such, null as NaN."""
    import numpy as np
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return array(column)
    parts = [
        np.array(chunk.dictionary.to_pylist(), dtype=object)[array(chunk.indices)]
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate(parts) if parts else np.array([])


def _rate(scenario: Mapping[str, Any], group: str) -> float:
    """Return the lowest rate of the links that the data of a group crosses, in bit/s.

    Of a link whose rate changes it is that at the beginning, of a trace its mean.
    """
    of = next(each for each in scenario["traffic"] if each["name"] == group)
    back = of.get("direction") == "reverse"
    hops = ([scenario["bottleneck"]] if "bottleneck" in scenario else scenario["chain"]["hop"])[
        (of.get("first_hop") or 1) - 1 : of.get("last_hop")
    ]
    crossed = [hop.get("return") if back else hop for hop in hops]
    rates = [rate_or_size(link["rate"]) for link in crossed if link]
    rates += [rate_or_size(of[key]) for key in ("access_rate", "exit_rate") if of.get(key)]
    return min(rates)
