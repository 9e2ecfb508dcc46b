"""What the programs of a run left: two tables in its folder.

`programs.parquet` has a row for each program: how it ended, and when. `program_files.parquet` has a
row for each text that is kept of it, with its content: `stdout`, `stderr`, and `out/NAME` for each
file of its `{out}`. They are data of programs of users, so they stay in tables: no file is written
under a name that a program has chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redtail.outcomes import Program
from redtail.store.columns import column
from redtail.store.parquet import field, parquet_bytes, read_table_of

if TYPE_CHECKING:
    import pyarrow as pa

PROGRAMS = "programs.parquet"
FILES = "program_files.parquet"

_OUT = "out/"


def tables(programs: Sequence[Program]) -> dict[str, bytes]:
    """Return the Parquet files of a run with these programs; none without any."""
    import pyarrow as pa

    if not programs:
        return {}
    ends: list[tuple[pa.Field, list[Any]]] = [
        (field("group", pa.string()), [each.group for each in programs]),
        (field("pair", pa.uint32()), [each.flow for each in programs]),
        (field("role", pa.string()), [each.role for each in programs]),
        (
            field("code", pa.int32(), description="exit code; none if a signal has ended it"),
            [each.code for each in programs],
        ),
        (
            field("signal", pa.int32(), description="the signal that has ended it"),
            [each.signal for each in programs],
        ),
        (
            field("asked", pa.bool_(), description="whether it was asked to end"),
            [each.ended for each in programs],
        ),
        (field("started_s", pa.float64(), unit="s"), [each.started_s for each in programs]),
        (field("ended_s", pa.float64(), unit="s"), [each.ended_s for each in programs]),
        (
            field("output_cut_bytes", pa.uint64(), unit="B", description="of stdout, not kept"),
            [each.output_cut for each in programs],
        ),
        (
            field("left_out", pa.string(), description="names of files not kept, one a line"),
            ["\n".join(map(_one_line, each.left_out)) for each in programs],
        ),
    ]
    texts = [(each, name, content) for each in programs for name, content in _texts(each)]
    files: list[tuple[pa.Field, list[Any]]] = [
        (field("group", pa.string()), [each.group for each, _, _ in texts]),
        (field("pair", pa.uint32()), [each.flow for each, _, _ in texts]),
        (field("role", pa.string()), [each.role for each, _, _ in texts]),
        (field("file", pa.string()), [name for _, name, _ in texts]),
        (field("content", pa.binary()), [content for _, _, content in texts]),
    ]
    return {PROGRAMS: parquet_bytes(_table(ends)), FILES: parquet_bytes(_table(files))}


def _texts(program: Program) -> Iterator[tuple[str, bytes]]:
    yield "stdout", program.output
    yield "stderr", program.errors
    for name, content in program.files.items():
        yield _OUT + name, content


def _one_line(name: str) -> str:
    return name.replace("\n", "\N{REPLACEMENT CHARACTER}")


def _table(columns: Sequence[tuple[pa.Field, list[Any]]]) -> pa.Table:
    import pyarrow as pa

    plain = (pa.binary(), pa.bool_())
    arrays = [
        pa.array(values, each.type) if each.type in plain else column(values, each.type)
        for each, values in columns
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema([each for each, _ in columns]))


def read(folder: Path) -> list[Program]:
    """Return what the programs of a stored run left, without any when it had none.

    Raises:
        StoreError: it is damaged.
    """
    names = ("group", "pair", "role", "code", "signal", "asked", "started_s", "ended_s")
    ends = read_table_of(folder, PROGRAMS, (*names, "output_cut_bytes", "left_out"))
    files = read_table_of(folder, FILES, ("group", "pair", "role", "file", "content"))
    texts: dict[tuple[str, int, str], dict[str, bytes]] = {}
    for row in [] if files is None else files.to_pylist():
        own = texts.setdefault((row["group"], row["pair"], row["role"]), {})
        own[row["file"]] = row["content"]
    found = []
    for row in [] if ends is None else ends.to_pylist():
        own = texts.get((row["group"], row["pair"], row["role"]), {})
        found.append(
            Program(
                group=row["group"],
                flow=row["pair"],
                role=row["role"],
                code=row["code"],
                signal=row["signal"],
                ended=row["asked"],
                started_s=row["started_s"],
                ended_s=row["ended_s"],
                output=own.get("stdout", b""),
                output_cut=row["output_cut_bytes"],
                errors=own.get("stderr", b""),
                files={
                    name.removeprefix(_OUT): content
                    for name, content in own.items()
                    if name.startswith(_OUT)
                },
                left_out=tuple(filter(None, row["left_out"].split("\n"))),
            )
        )
    return found
