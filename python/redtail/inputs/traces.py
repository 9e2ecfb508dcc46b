"""Tables of connections: read, checked, summed up, written, and found for an experiment.

A table is a CSV or Parquet file with a row for each exchange, or a file of tmix's connection
vectors. Whatever its form, it becomes the same columns in the same order, and a scenario names the
table by the hash of these: two files with the same content give the same results.
"""

from __future__ import annotations

import functools
import hashlib
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from redtail._module import native
from redtail.errors import RedtailWarning, SpecError, StoreError
from redtail.files import OUTSIDE, is_within, path_of
from redtail.store.parquet import read_parquet

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

REQUEST_BYTES = 1000
"""Payload of a request where the table has no such column: about 1 kB, the example of RFC 2884,
section 4.4, as for transactions."""

# Up to this time a float of seconds is exact to the nanosecond.
LATEST_S = 2_000_000
LONGEST_RTT_S = 3600
LARGEST = 10**12

# As a number of nanoseconds: not known.
UNKNOWN = 2**64 - 1

_NS = 1e9

_DIRECTIONS = {"forward": 0, "down": 0, "reverse": 1, "up": 1}

_FORMS = ".csv, .parquet or .cvec"


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
        return native().Trace(self.name, **columns)

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
        columns["start_s"] = pa.array(self.start_ns[of] / _NS)
        if self.reverse.any():
            columns["direction"] = ways.take(pa.array(self.reverse[of]))
        if known.any():
            columns["rtt_s"] = pa.array(self.rtt_ns[of] / _NS, mask=~known[of])
        columns["request_bytes"] = pa.array(self.request.astype(np.int64))
        columns["service_s"] = pa.array(self.service_ns / _NS)
        columns["size_bytes"] = pa.array(self.response.astype(np.int64))
        columns["think_s"] = pa.array(self.think_ns / _NS)
        return pa.table(columns)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet, in its normal form.

        Raises:
            StoreError: the file cannot be written.
        """
        import pyarrow.parquet as pq

        target = path_of(path)
        aside = target.with_name(f".{target.name}.part")
        try:
            pq.write_table(self.to_arrow(), aside, compression="zstd")
            aside.replace(target)
        except OSError as error:
            aside.unlink(missing_ok=True)
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
        start = self.start_ns / _NS
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


def read_trace(path: str | os.PathLike[str]) -> TraceTable:
    """Read and check a table of connections.

    Args:
        path: a `.csv`, `.parquet` or `.cvec` file.

    Raises:
        SpecError: the file cannot be read, or a row is not valid; the message names the first one.
    """
    trace = _read(path_of(path))
    for text in trace.warnings:
        warnings.warn(text, RedtailWarning, stacklevel=2)
    return trace


def _read(path: Path) -> TraceTable:
    from redtail.inputs.vectors import read_vectors

    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".cvec": read_vectors}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise SpecError(
            f"{path}: a table cannot be a {path.suffix or 'file without an ending'}; "
            f"accepted: {_FORMS}",
            file=str(path),
        )
    try:
        return reader(path)
    except FileNotFoundError:
        raise SpecError(f"{path}: no such file", file=str(path)) from None
    except UnicodeDecodeError as error:
        raise SpecError(
            f"{path}: not a text file in UTF-8 (byte {error.start})", file=str(path)
        ) from None
    except SpecError:
        raise
    except (OSError, ValueError) as error:  # a name with a null byte, too
        reason = getattr(error, "strerror", None) or error
        raise SpecError(f"{path}: cannot be read: {reason}", file=str(path)) from None


# --- Rows and columns -----------------------------------------------------------------------


def _read_csv(path: Path) -> TraceTable:
    import pyarrow as pa
    from pyarrow import csv

    with path.open("rb") as file:
        head = file.readline()
    names = [name.strip() for name in head.decode("utf-8-sig").strip().split(",")]
    names = [name.strip('"') for name in names]
    _check_names(path, names)
    try:
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=names, skip_rows=1),
            # As texts, so that a value that is none can be shown as it stands.
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        _ragged(path, len(names), error)

    def place(row: int) -> str:
        return f"{path}:{_line_of(path, row)}"

    return _normalised(path, {name: table.column(name) for name in names}, place)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the values of each row, the first left out; slow, for messages."""
    import csv

    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        next(reader, None)
        before = reader.line_num
        for values in reader:
            if values:
                yield before + 1, values
            before = reader.line_num


def _line_of(path: Path, row: int) -> int:
    for number, (line, _) in enumerate(_rows(path)):
        if number == row:
            return line
    return row + 2


def _ragged(path: Path, expected: int, error: Exception) -> NoReturn:
    for line, values in _rows(path):
        if len(values) != expected:
            raise SpecError(
                f"{path}:{line}: has {len(values)} values; accepted: {expected}, as in the first "
                "line",
                file=str(path),
                line=line,
            ) from None
    raise SpecError(f"{path}: cannot be read as CSV: {error}", file=str(path)) from None


def _read_parquet(path: Path) -> TraceTable:
    import pyarrow as pa

    try:
        table = read_parquet(path)
    except pa.ArrowInvalid as error:
        raise SpecError(f"{path}: cannot be read as Parquet: {error}", file=str(path)) from None
    _check_names(path, table.column_names)
    columns = {name: table.column(name) for name in table.column_names}
    return _normalised(path, columns, lambda row: f"{path}: row {row + 1}")


def _check_names(path: Path, names: list[str]) -> None:
    accepted = ", ".join(COLUMNS)
    for name in names:
        if name not in COLUMNS:
            raise SpecError(
                f"{path}: there is no column {name!r}; accepted: {accepted}", file=str(path)
            )
        if names.count(name) > 1:
            raise SpecError(f"{path}: the column {name!r} is given twice", file=str(path))
    for name in ("start_s", "size_bytes"):
        if name not in names:
            raise SpecError(
                f"{path}: the column {name!r} is missing; accepted: {accepted}", file=str(path)
            )


@dataclass(frozen=True)
class _Kind:
    """What a column of numbers takes."""

    least: float
    most: float
    whole: bool
    unit: str

    def accepted(self) -> str:
        number = "a whole number of" if self.whole else "a number of"
        low = "more than 0" if self.least > 0 and not self.whole else f"{self.least:g}"
        join = ", up to" if low.startswith("more") else " to"
        return f"{number} {self.unit}, {low}{join} {self.most:.0f}"

    def fits(self, values: Array) -> Array:
        import numpy as np

        # Comparisons with what is no number are false.
        fitting = (values >= self.least) & (values <= self.most)
        if self.whole:
            fitting &= values == np.floor(values)
        return fitting

    def problem(self, value: float) -> str:
        if value != value:
            return "is not a number"
        if value < 0:
            return "is negative"
        if value == 0:
            return "is zero"
        if value > self.most:
            return "is more than can be run"
        return "is not a whole number" if self.whole else "is too small"


_KINDS = {
    "start_s": _Kind(0, LATEST_S, False, "seconds"),
    # Half a nanosecond would be none.
    "rtt_s": _Kind(1e-9, LONGEST_RTT_S, False, "seconds"),
    "request_bytes": _Kind(0, LARGEST, True, "bytes"),
    "service_s": _Kind(0, LATEST_S, False, "seconds"),
    "size_bytes": _Kind(0, LARGEST, True, "bytes"),
    "think_s": _Kind(0, LATEST_S, False, "seconds"),
}


class _Table:
    """The columns of a file, and the first row of it that is not valid."""

    def __init__(self, path: Path, columns: Mapping[str, Any], place: Callable[[int], str]) -> None:
        self.path = path
        self.columns = columns
        self.place = place
        self.rows = len(next(iter(columns.values())))
        self.worst: tuple[int, int, str, str, str] | None = None

    def refuse(self, row: int, name: str, problem: str, accepted: str) -> None:
        """Note what is wrong with a row; the first row counts, and in it the first column."""
        found = (row, list(COLUMNS).index(name), name, problem, accepted)
        if self.worst is None or found[:2] < self.worst[:2]:
            self.worst = found

    def refuse_first(self, bad: Array, name: str, problem: str, accepted: str) -> None:
        """Note the first row for which `bad` holds."""
        if bad.any():
            self.refuse(int(bad.argmax()), name, problem, accepted)

    def settle(self) -> None:
        """Raise the error of the first row that is not valid."""
        if self.worst is None:
            return
        row, _, name, problem, accepted = self.worst
        place = self.place(row)
        line = place.rpartition(":")[2]
        raise SpecError(
            f"{place}: {name}{self.shown(name, row)} {problem}; accepted: {accepted}",
            file=str(self.path),
            line=int(line) if line.isdigit() else None,
            key=name,
        )

    def shown(self, name: str, row: int) -> str:
        if name not in self.columns:
            return ""
        value = self.columns[name][row].as_py()
        if value is None or (isinstance(value, str) and not value.strip()):
            return ""
        return f" = {value.strip() if isinstance(value, str) else value}"

    def numbers(self, name: str) -> tuple[Array, Array]:
        """Return a column of numbers, and where it has none."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = _KINDS[name]
        if name not in self.columns:
            return np.zeros(self.rows), np.ones(self.rows, dtype=bool)
        column = self.columns[name]
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = pc.utf8_trim_whitespace(column)
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
            try:
                column = column.cast(pa.float64())
            except pa.ArrowInvalid:
                column = self.by_hand(name, column)
        elif pa.types.is_null(column.type):
            column = pa.chunked_array([pa.nulls(self.rows, pa.float64())])
        elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise SpecError(
                f"{self.path}: the column {name!r} holds values of type {column.type}; accepted: "
                "numbers",
                file=str(self.path),
                key=name,
            )
        missing = column.is_null().to_numpy()
        values = column.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy()
        bad = ~kind.fits(values) & ~missing
        if bad.any():
            row = int(bad.argmax())
            self.refuse(row, name, kind.problem(float(values[row])), kind.accepted())
        return values, missing

    def by_hand(self, name: str, column: Any) -> Any:
        """Return numbers of which some are none, and note the first such."""
        import pyarrow as pa

        values: list[float | None] = []
        for row, value in enumerate(column.to_pylist()):
            try:
                values.append(
                    None if value is None else pa.scalar(value).cast(pa.float64()).as_py()
                )
            except pa.ArrowInvalid:
                self.refuse(row, name, "is not a number", _KINDS[name].accepted())
                values.append(None)
                break
        # What comes after is of no interest.
        values += [None] * (self.rows - len(values))
        return pa.chunked_array([pa.array(values, pa.float64())])

    def codes(self, name: str) -> tuple[Array, list[Any]]:
        """Return a column of texts or numbers as codes, in the order of appearance."""
        import pyarrow as pa

        column = self.columns[name]
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
            text = True
        if text:
            import pyarrow.compute as pc

            column = pc.utf8_trim_whitespace(column)
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
        encoded = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return codes, encoded.dictionary.to_pylist()


def _normalised(path: Path, columns: Mapping[str, Any], place: Callable[[int], str]) -> TraceTable:
    """Check every row, and bring them into order."""
    import numpy as np

    table = _Table(path, columns, place)
    if table.rows == 0:
        raise SpecError(f"{path}: has no rows; accepted: one or more", file=str(path))
    rows = table.rows

    if "connection" in columns:
        of, known = table.codes("connection")
        table.refuse_first(of < 0, "connection", "is missing", "a number or a text in every row")
        if table.worst is not None:
            table.settle()
        firsts = np.full(len(known), rows, dtype=np.int64)
        np.minimum.at(firsts, of, np.arange(rows))
    else:
        of = firsts = np.arange(rows)
    begins = np.zeros(rows, dtype=bool)
    begins[firsts] = True

    start, missing = table.numbers("start_s")
    table.refuse_first(missing & begins, "start_s", "is missing", _KINDS["start_s"].accepted())
    same = "the one of the connection's first row, or none"
    differs = ~missing & (start != start[firsts][of])
    table.refuse_first(differs, "start_s", "is not that of the connection", same)

    rtt, missing = table.numbers("rtt_s")
    differs = ~missing & ((rtt != rtt[firsts][of]) | missing[firsts][of])
    table.refuse_first(differs, "rtt_s", "is not that of the connection", same)
    no_rtt = missing

    reverse = np.zeros(rows, dtype=np.int64)
    if "direction" in columns:
        codes, texts = table.codes("direction")
        ways = [_DIRECTIONS.get(str(text).lower(), -1) for text in texts]
        reverse = np.array([*ways, 0])[codes]
        accepted = "forward or down, reverse or up"
        table.refuse_first(reverse < 0, "direction", "is none", accepted)
        differs = (codes >= 0) & (reverse != reverse[firsts][of])
        table.refuse_first(differs, "direction", "is not that of the connection", same)

    size, missing = table.numbers("size_bytes")
    accepted = f"{_KINDS['size_bytes'].accepted()}; 0 only beside request_bytes of 1 or more"
    table.refuse_first(missing, "size_bytes", "is missing", accepted)
    request, absent = table.numbers("request_bytes")
    empty = (size == 0) & ~missing & (absent | (request == 0))
    table.refuse_first(empty, "size_bytes", "is zero", accepted)
    request = np.where(absent, REQUEST_BYTES, request)

    service, _ = table.numbers("service_s")
    table.refuse_first(
        (size == 0) & (service > 0), "service_s", "delays a response of no bytes", "0, or none"
    )
    think, _ = table.numbers("think_s")
    table.refuse_first(
        (request == 0) & (think > 0), "think_s", "delays a request of no bytes", "0, or none"
    )
    table.settle()

    rank = np.argsort(start[firsts], kind="stable")
    position = np.empty_like(rank)
    position[rank] = np.arange(len(rank))
    order = np.argsort(position[of], kind="stable")
    lengths = np.bincount(position[of], minlength=len(rank))
    firsts = firsts[rank]
    return TraceTable(
        path=str(path),
        start_ns=_ns(start[firsts]),
        rtt_ns=np.where(no_rtt[firsts], np.uint64(UNKNOWN), _ns(rtt[firsts])),
        reverse=reverse[firsts].astype(np.uint64),
        first=(np.cumsum(lengths) - lengths).astype(np.uint64),
        request=request[order].astype(np.uint64),
        response=size[order].astype(np.uint64),
        service_ns=_ns(service[order]),
        think_ns=_ns(think[order]),
        warnings=(),
        _rows=firsts,
        _place=place,
    )


def _ns(seconds: Array) -> Array:
    import numpy as np

    return np.rint(seconds * _NS).astype(np.uint64)


# --- Tables of an experiment ----------------------------------------------------------------

Refusal: TypeAlias = tuple[str, str, str]
"""What is wrong with a table: the key, the problem, what is accepted."""


@dataclass(frozen=True)
class Located:
    """A table by its file, so that another process can find it too.

    Attributes:
        name: what scenarios call it.
        path: its file.
    """

    name: str
    path: str
    _native: Any = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Located, (self.name, self.path)

    def load(self) -> Any:
        """Return the table as the engine takes it.

        Raises:
            SpecError: it is not what it was when the experiment was checked.
        """
        return self._native or _loaded(self.name, self.path)

    def pack(self) -> dict[str, bytes]:
        """Return the table's content, for a process that has not got the file.

        Raises:
            SpecError: it is not what it was when the experiment was checked.
        """
        trace = _read(Path(self.path))
        if trace.name != self.name:
            raise SpecError(_changed(self.path), file=self.path)
        return {name: each.astype("<u8").tobytes() for name, each in trace._columns().items()}

    def unpack(self, content: Mapping[str, bytes]) -> Located:
        """Return the same with the content that `pack` gave in another process."""
        return Located(self.name, self.path, native().Trace(self.name, **content))


def _changed(path: str) -> str:
    return f"{path}: has changed since the experiment was checked"


@functools.lru_cache(maxsize=4)
def _loaded(name: str, path: str) -> Any:
    trace = _read(path_of(path))
    if trace.name != name:
        raise SpecError(_changed(path), file=path)
    return trace.native()


@dataclass(frozen=True)
class _ResolvedFile:
    """A table that has been read, and what has to be asked of it for every case."""

    path: Path
    located: Located
    native: Any
    last_start_ns: int
    least_rtt_ns: int
    any_reverse: bool


class Resolver:
    """Finds the tables that an experiment names, each once.

    Args:
        file: the experiment's file, if it has one.
        confined: the folder that they must lie in; by default they may lie anywhere.
    """

    def __init__(self, file: str | None, confined: Path | None = None) -> None:
        self.confined = confined
        path = Path(file) if file is not None else None
        self.folder = path.parent if path is not None and path.is_file() else Path()
        self.found: dict[str, _ResolvedFile] = {}
        self.failed: dict[str, Refusal] = {}
        self.warnings: list[str] = []

    def __call__(self, file: str, duration_ps: int, path_ps: int, both_ways: bool) -> Any:
        """Return a table, or what is wrong with it for a run like this."""
        if file not in self.found and file not in self.failed:
            try:
                self.found[file] = self._find(file)
            except SpecError as error:
                problem, _, accepted = str(error).partition("; accepted: ")
                self.failed[file] = (
                    "file",
                    f"cannot be used: {problem}",
                    accepted or f"a table of connections, {_FORMS}",
                )
        if file in self.failed:
            return self.failed[file]
        found = self.found[file]
        if (
            found.last_start_ns * 1000 >= duration_ps
            or found.least_rtt_ns * 1000 < path_ps
            or (found.any_reverse and not both_ways)
        ):
            return self._refusal(found.path, duration_ps, path_ps, both_ways)
        return found.native

    def _find(self, file: str) -> _ResolvedFile:
        path = self.folder / path_of(file)
        if not is_within(path, self.confined):
            raise SpecError("{}: {}; accepted: {}".format(path, *OUTSIDE), file=str(path))
        trace = _read(path)
        self.warnings += trace.warnings
        native = trace.native()
        located = Located(trace.name, str(path.resolve()), native)
        return _ResolvedFile(
            path=path,
            located=located,
            native=native,
            last_start_ns=int(trace.start_ns[-1]),
            least_rtt_ns=int(trace.rtt_ns.min()),
            any_reverse=bool(trace.reverse.any()),
        )

    def _refusal(self, path: Path, duration_ps: int, path_ps: int, both_ways: bool) -> Refusal:
        """Say which row of a table does not go with the run."""
        import numpy as np

        trace = _read(path)
        # In whole numbers, as above: rounded up to nanoseconds.
        late = trace.start_ns >= np.uint64(-(-duration_ps // 1000))
        short = trace.rtt_ns < np.uint64(-(-path_ps // 1000))
        stuck = (trace.reverse > 0) & np.full(trace.connections, not both_ways)
        bad = np.flatnonzero(late | short | stuck)
        row = int(bad[np.argmin(trace._rows[bad])])
        place = trace.place(row)
        if late[row]:
            value, end = trace.start_ns[row] / _NS, duration_ps / 1e12
            return (
                "file",
                f"has in {place} start_s = {value:g}, and the run ends at {end:g} s",
                "starts before that, or a longer duration",
            )
        if short[row]:
            value, least = trace.rtt_ns[row] / _NS, path_ps / 1e12
            return (
                "file",
                f"has in {place} rtt_s = {value:g}, less than the {least:g} s that the links make",
                f"{least:g} or more, or links of less delay",
            )
        return (
            "file",
            f"has in {place} direction = reverse, which has no link to travel on",
            "forward, or a `return` link",
        )

    def located(self) -> dict[str, Located]:
        """Return what has been found, by the names that scenarios have for it."""
        return {each.located.name: each.located for each in self.found.values()}
