"""Tables of connections: read, checked, summed up, written, and found for an experiment.

A table is a CSV or Parquet file with a row for each exchange, or a file of tmix's connection
vectors. Whatever its form, it becomes the same columns in the same order, and a scenario names the
table by the hash of these: two files with the same content give the same results.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from redtail import native
from redtail.errors import RedtailWarning, SpecError
from redtail.files import OUTSIDE, is_within, path_of
from redtail.inputs.connections import (
    COLUMNS,
    LARGEST,
    LATEST_S,
    LONGEST_RTT_S,
    NS,
    UNKNOWN,
    TraceTable,
)
from redtail.inputs.vectors import read_vectors
from redtail.store.parquet import read_parquet

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

REQUEST_BYTES = 1000
"""Payload of a request where the table has no such column: about 1 kB, the example of RFC 2884,
section 4.4, as for transactions."""

_DIRECTIONS = {"forward": 0, "down": 0, "reverse": 1, "up": 1}

_FORMS = ".csv, .parquet or .cvec"


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

    return np.rint(seconds * NS).astype(np.uint64)


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
        return Located(self.name, self.path, native.module().Trace(self.name, **content))


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
            value, end = trace.start_ns[row] / NS, duration_ps / 1e12
            return (
                "file",
                f"has in {place} start_s = {value:g}, and the run ends at {end:g} s",
                "starts before that, or a longer duration",
            )
        if short[row]:
            value, least = trace.rtt_ns[row] / NS, path_ps / 1e12
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
