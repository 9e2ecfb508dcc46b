"""Connection vectors of tmix: files of connections that are exchanges of data units.

Both forms are read, the original one and the alternate one of ns-2. Times are in microseconds.

Source: the ns Manual of ns-2.35, chapter "Tmix", sections "Original Connection Vector Format" and
"Alternate Connection Vector Format".
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from redtail.errors import SpecError
from redtail.inputs.connections import LARGEST, LATEST_S, LONGEST_RTT_S, UNKNOWN, TraceTable

_HEADS = {"S": "sequential", "SEQ": "sequential", "C": "concurrent", "CONC": "concurrent"}


def read_vectors(path: Path) -> TraceTable:
    """Read and check a file of connection vectors.

    Args:
        path: the file.

    Raises:
        SpecError: a line is not valid.
    """
    import numpy as np

    vectors = _Vectors(path)
    with path.open(encoding="utf-8") as file:
        for line, text in enumerate(file, start=1):
            words = text.partition("#")[0].split()
            if words:
                vectors.take(line, words)
    vectors.end()
    if not vectors.starts:
        raise SpecError(f"{path}: has no connections; accepted: one or more", file=str(path))
    start = np.array(vectors.starts, dtype=np.uint64)
    first = np.array(vectors.firsts, dtype=np.int64)
    rank = np.argsort(start, kind="stable")
    lengths = np.diff(first, append=len(vectors.rows))[rank]
    ends = np.cumsum(lengths)
    order = np.repeat(first[rank] - (ends - lengths), lengths) + np.arange(len(vectors.rows))
    rows = np.array(vectors.rows, dtype=np.uint64)[order]
    rtt = np.array(vectors.rtts, dtype=np.int64)
    unknown = np.uint64(UNKNOWN)
    return TraceTable(
        path=str(path),
        start_ns=start[rank] * np.uint64(1000),
        rtt_ns=np.where(rtt < 0, unknown, rtt.astype(np.uint64) * np.uint64(1000))[rank],
        reverse=np.zeros(len(rank), dtype=np.uint64),
        first=(ends - lengths).astype(np.uint64),
        request=rows[:, 0].copy(),
        response=rows[:, 1].copy(),
        service_ns=rows[:, 2] * np.uint64(1000),
        think_ns=rows[:, 3] * np.uint64(1000),
        warnings=vectors.warnings(),
        _rows=np.array(vectors.lines)[rank],
        _place=lambda line: f"{path}:{line}",
    )


class _Vectors:
    """Connection vectors, line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.starts: list[int] = []
        self.rtts: list[int] = []
        self.firsts: list[int] = []
        self.lines: list[int] = []
        # Request, response, service and think time.
        self.rows: list[tuple[int, int, int, int]] = []
        self.unused: set[str] = set()
        self._reset()

    def _reset(self) -> None:
        # Who sent last, and the wait of the original form that follows.
        self.last = ""
        self.wait = 0
        self.closed = False

    def refuse(self, line: int, what: str, accepted: str) -> NoReturn:
        raise SpecError(
            f"{self.path}:{line}: {what}; accepted: {accepted}", file=str(self.path), line=line
        )

    def number(self, line: int, words: list[str], index: int, what: str, most: int) -> int:
        """Return a word as a whole number from 0 to `most`."""
        if index >= len(words):
            self.refuse(line, f"{what} is missing", f"a whole number, 0 to {most}")
        word = words[index]
        if not word.isascii() or not word.isdigit():
            problem = "is negative" if word.startswith("-") else "is not a whole number"
            self.refuse(line, f"{what} = {word} {problem}", f"0 to {most}")
        if int(word) > most:
            self.refuse(line, f"{what} = {word} is more than can be run", f"0 to {most}")
        return int(word)

    def time(self, line: int, words: list[str], index: int, what: str) -> int:
        return self.number(line, words, index, f"{what} [us]", LATEST_S * 10**6)

    def take(self, line: int, words: list[str]) -> None:
        """Take the words of a line."""
        head = words[0]
        if head in _HEADS:
            self.begin(line, words)
            return
        if not self.starts:
            self.refuse(line, f"{head!r} stands before the first connection", "S or SEQ")
        match head:
            case "w" | "m" | "l":
                self.set_aside(line, words)
            case "r":
                rtt = self.number(line, words, 1, "round-trip time [us]", LONGEST_RTT_S * 10**6)
                if rtt == 0:
                    self.refuse(line, "round-trip time [us] = 0 is zero", "1 or more")
                self.rtts[-1] = rtt
            case ">" | "<":
                size = self.number(line, words, 1, "size [bytes]", LARGEST)
                self.send(line, "I" if head == ">" else "A", self.wait, size)
                self.wait = 0
            case "t":
                self.wait = self.time(line, words, 1, "wait")
            case "I" | "A":
                sent = self.time(line, words, 1, "wait after sending")
                heard = self.time(line, words, 2, "wait after receiving")
                size = self.number(line, words, 3, "size [bytes]", LARGEST)
                other = self.last not in ("", head)
                if size > 0 and ((sent > 0 and other) or (heard > 0 and self.last == head)):
                    what = "its own last sending" if other else "what it has not received"
                    self.refuse(
                        line,
                        f"{' '.join(words)} waits from {what}",
                        "a wait after sending where the same side sent last, else one after "
                        "receiving",
                    )
                self.send(line, head, sent + heard, size)
            case _:
                self.refuse(
                    line,
                    f"{head!r} begins no line of a sequential connection",
                    "S, SEQ, w, m, r, l, >, <, t, I, A",
                )

    def begin(self, line: int, words: list[str]) -> None:
        self.end()
        if _HEADS[words[0]] == "concurrent":
            self.refuse(
                line,
                f"{words[0]} begins a concurrent connection, whose sides send without waiting for "
                "each other, which exchanges in turn cannot express",
                "sequential connections (S or SEQ)",
            )
        self.starts.append(self.time(line, words, 1, "start"))
        self.rtts.append(-1)
        self.firsts.append(len(self.rows))
        self.lines.append(line)
        self._reset()

    def end(self) -> None:
        """The connection that was begun has no more lines."""
        if self.starts and self.firsts[-1] == len(self.rows):
            self.refuse(self.lines[-1], "the connection carries nothing", "one exchange or more")

    def set_aside(self, line: int, words: list[str]) -> None:
        try:
            values = [float(word) for word in words[1:]]
        except ValueError:
            values = []
        if len(values) != 2:
            self.refuse(line, " ".join(words), f"{words[0]} and two numbers")
        match words[0]:
            case "w":
                self.unused.add("window sizes (w)")
            case "m":
                self.unused.add("segment sizes (m)")
            case _ if any(values):
                self.unused.add("loss rates (l)")

    def send(self, line: int, side: str, wait: int, size: int) -> None:
        if size == 0:
            self.closed = True  # a FIN
            return
        if self.closed:
            self.refuse(line, "follows what closes the connection", "nothing after a size of 0")
        if side == "I":
            self.rows.append((size, 0, 0, wait))
        elif self.last == "I":
            request, _, _, think = self.rows[-1]
            self.rows[-1] = (request, size, wait, think)
        else:
            self.rows.append((0, size, wait, 0))
        self.last = side

    def warnings(self) -> tuple[str, ...]:
        if not self.unused:
            return ()
        return (
            f"{self.path}: {' and '.join(sorted(self.unused))} are not used: all connections have "
            "the group's TCP, and queues and links alone lose packets",
        )
