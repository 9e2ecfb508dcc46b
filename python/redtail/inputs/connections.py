"""A checked table of connections, as plain data.

Nothing here knows which files it is read from.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from redtail import native
from redtail.errors import StoreError
from redtail.files import path_of
from redtail.store.parquet import parquet_bytes
from redtail.store.writing import put_in_place

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Array: TypeAlias = np.ndarray[Any, Any]

COLUMNS = {
    "connection": "rows with the same one are exchanges of one connection, in their order",
    "start_s": "when the connection opens, from the start of the run",
    "direction": "which way the response goes: forward (or down), reverse (or up)",
    "rtt_s": "round-trip time without queueing or transmission",
    "request_bytes": "payload of the request",
    "service_s": "what the answering side waits before it responds",
    "size_bytes": "payload of the response",
    "think_s": "what the asking side waits before it asks",
}
"""The columns of a table, in the order in which they are written."""

# Up to this time a float of seconds is exact to the nanosecond.
LATEST_S = 2_000_000
LONGEST_RTT_S = 3600
LARGEST = 10**12

# As a number of nanoseconds: not known.
UNKNOWN = 2**64 - 1

NS = 1e9


@dataclass(frozen=True)
class TraceTable:
    """A checked table of connections, in the order of their starts.

    Times are in nanoseconds, sizes in bytes, all as numpy arrays of unsigned 64-bit numbers.

    Attributes:
        path: the file it was read from.
        start_ns: by connection, when it opens.
        rtt_ns: by connection, its round-trip time; all ones where the file does not say.
        reverse: by connection, 1 if its responses go against the group's direction.
        first: by connection, its first exchange.
        request: by exchange, the payload of the request.
        response: by exchange, the payload of the response.
        service_ns: by exchange, what the answering side waits.
        think_ns: by exchange, what the asking side waits.
        warnings: what of the file is not used.
    """

    path: str
    start_ns: Array
    rtt_ns: Array
    reverse: Array
    first: Array
    request: Array
    response: Array
    service_ns: Array
    think_ns: Array
    warnings: tuple[str, ...]
    _rows: Array = field(repr=False)
    _place: Callable[[int], str] = field(repr=False)

    @property
    def connections(self) -> int:
        """Number of connections."""
        return len(self.start_ns)

    @property
    def exchanges(self) -> int:
        """Number of exchanges."""
        return len(self.request)

    @functools.cached_property
    def name(self) -> str:
        """What scenarios call it: a hash of its content."""
        digest = hashlib.sha256(b"redtail trace 1\0")
        for column in self._columns().values():
            digest.update(len(column).to_bytes(8, "little"))
            digest.update(column.astype("<u8").tobytes())
        return f"sha256:{digest.hexdigest()}"

    def _columns(self) -> dict[str, Array]:
        return {
            "start_ns": self.start_ns,
            "rtt_ns": self.rtt_ns,
            "reverse": self.reverse,
            "first": self.first,
            "request": self.request,
            "response": self.response,
            "service_ns": self.service_ns,
            "think_ns": self.think_ns,
        }

    def native(self) -> Any:
        """Return the table as the engine takes it."""
        columns = {name: each.astype("<u8").tobytes() for name, each in self._columns().items()}
        return native.module().Trace(self.name, **columns)

    def place(self, connection: int) -> str:
        """Return where in its file a connection begins, for messages."""
        return self._place(int(self._rows[connection]))

    def to_arrow(self) -> pa.Table:
        """Return the table in its normal form, a row for each exchange."""
        import numpy as np
        import pyarrow as pa

        lengths = np.diff(self.first, append=np.uint64(self.exchanges))
        of = np.repeat(np.arange(self.connections, dtype=np.uint32), lengths.astype(np.int64))
        known = self.rtt_ns != UNKNOWN
        ways = pa.array(["forward", "reverse"])
        columns: dict[str, Any] = {}
        if self.exchanges > self.connections:
            columns["connection"] = pa.array(of)
        columns["start_s"] = pa.array(self.start_ns[of] / NS)
        if self.reverse.any():
            columns["direction"] = ways.take(pa.array(self.reverse[of]))
        if known.any():
            columns["rtt_s"] = pa.array(self.rtt_ns[of] / NS, mask=~known[of])
        columns["request_bytes"] = pa.array(self.request.astype(np.int64))
        columns["service_s"] = pa.array(self.service_ns / NS)
        columns["size_bytes"] = pa.array(self.response.astype(np.int64))
        columns["think_s"] = pa.array(self.think_ns / NS)
        return pa.table(columns)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet, in its normal form.

        Raises:
            StoreError: the file cannot be written.
        """
        target = path_of(path)
        try:
            put_in_place(target, parquet_bytes(self.to_arrow()))
        except OSError as error:
            raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error

    def summary(self, intervals: int = 10) -> str:
        """Return a summary of the table, in a few lines.

        Args:
            intervals: number of equal intervals of time for which the load is given.
        """
        import numpy as np

        from redtail.metrics import counted

        ends = np.append(self.first[1:], np.uint64(self.exchanges)).astype(np.int64)
        sums = np.concatenate([[0], np.cumsum(self.response)])
        asked = np.concatenate([[0], np.cumsum(self.request)])
        begins = self.first.astype(np.int64)
        sent = sums[ends] - sums[begins]
        start = self.start_ns / NS
        last = float(start[-1])
        lines = [
            f"{counted(self.connections, 'connection')}, {counted(self.exchanges, 'exchange')}, "
            f"starts from {start[0]:g} s to {last:g} s"
        ]
        for way, text in ((0, "forward"), (1, "reverse")):
            mine = self.reverse == way
            if mine.any():
                lines.append(
                    f"{text}: {counted(int(mine.sum()), 'connection')}, responses of "
                    f"{_bytes(float(sent[mine].sum()))} in all, {_bytes(float(sent[mine].mean()))} "
                    f"each at the mean; requests of "
                    f"{_bytes(float((asked[ends] - asked[begins])[mine].sum()))}"
                )
        rtt = self.rtt_ns[self.rtt_ns != UNKNOWN] / 1e6
        if len(rtt):
            quantiles = np.quantile(rtt, [0, 0.05, 0.5, 0.95, 1])
            texts = [f"{each:.4g}" for each in quantiles]
            distinct = len(np.unique(np.floor(rtt + 0.5)))
            lines.append(
                "round-trip times: {} ms at the least, 5 % up to {}, half up to {}, 95 % up to {}, "
                "{} at the most;".format(*texts)
            )
            lines.append(f"  {distinct} different ones at 1 ms")
        if len(rtt) < self.connections:
            lines.append(
                f"no round-trip time: {counted(self.connections - len(rtt), 'connection')}"
            )
        width = last / intervals if last > 0 else 1.0
        interval = np.minimum((start / width).astype(np.int64), intervals - 1)
        opened = np.bincount(interval, minlength=intervals)
        carried = np.bincount(interval, weights=sent.astype(float), minlength=intervals)
        lines.append("load by the time at which connections begin:")
        most = max(float(carried.max()), 1.0)
        for number in range(intervals):
            if last <= 0 and number > 0:
                break
            rate = float(carried[number]) * 8 / width
            bar = "#" * round(30 * float(carried[number]) / most)
            lines.append(
                f"  {number * width:10.4g} s  {_rate(rate):>12}  {opened[number]:>9} opened  {bar}"
            )
        return "\n".join(line.rstrip() for line in lines)


def _bytes(size: float) -> str:
    return _scaled(size, ("B", "kB", "MB", "GB", "TB"))


def _rate(rate: float) -> str:
    return _scaled(rate, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"))


def _scaled(value: float, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if value < 1000:
            return f"{value:.4g} {unit}"
        value /= 1000
    return f"{value:.4g} {units[-1]}"
