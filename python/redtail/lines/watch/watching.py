"""Queues of a device, reading by reading, with what is said of its shaper."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from redtail import escape
from redtail.errors import RedtailError, SpecError
from redtail.lines.recordings.values import quantity
from redtail.lines.watch import tc
from redtail.lines.watch.commands import Ping, Tc, device_of, words_of
from redtail.lines.watch.judge import DIRECTIONS, Judge, Verdict
from redtail.lines.watch.rows import TITLES, Reading, Row, reading, rows, unknown

if TYPE_CHECKING:
    from rich.table import Table

CLASSFUL = {"htb", "hfsc", "drr", "qfq", "ets"}
"""Kinds whose classes are read besides; those of others are numbers of queues."""

SHORTEST_S = 0.1
"""The shortest time between two readings: `tc` itself takes some ms. Source: our choice."""

HEADS = (
    *("time (s)", "direction", "device", "class", "rate (bit/s)", "shaper (bit/s)", "delay (s)"),
    *("delay known by", "drops", "marks", "backlog (B)", "ping (s)", "shaper is"),
)
"""What `Seen.cells` has."""


@dataclass(frozen=True)
class Seen:
    """What was seen between two readings.

    Attributes:
        at_s: time since the first reading.
        rows: what each class did.
        ping_s: the median round trip of pings; None without one.
        verdicts: by direction, whether its shaper is above the line.
    """

    at_s: float
    rows: tuple[Row, ...]
    ping_s: float | None
    verdicts: Mapping[str, Verdict]

    def table(self) -> Table:
        """Return it as the command shows it in a terminal."""
        from rich import box
        from rich.table import Table

        title = f"{self.at_s:.0f} s"
        if self.ping_s is not None:
            title += f", ping {quantity(self.ping_s, 's', 3)}"
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
        for head in TITLES:
            table.add_column(head, no_wrap=True)
        for row in self.rows:
            table.add_row(*(escape.plain(escape.name(text)) for text in row.texts()))
        table.caption, table.caption_justify = "\n".join(self.told()), "left"
        return table

    def lines(self) -> Iterator[str]:
        """Yield it as lines for people, one for each class."""
        ping = "" if self.ping_s is None else f"; ping {quantity(self.ping_s, 's', 3)}"
        for row in self.rows:
            where, name, rate, delay, drops, marks, waits = row.texts()
            yield (
                f"{self.at_s:.0f} s {where} {name}: {rate}, delay {delay or 'not told'}, "
                f"drops {drops}, marks {marks}, {waits} wait{ping}"
            )

    def told(self) -> Iterator[str]:
        """Yield what is said of each shaper."""
        for direction, verdict in self.verdicts.items():
            state = {
                "above": "is above the line",
                "not above": "is not above the line",
                "undecided": "undecided",
            }[verdict.state]
            yield f"shaper {direction}: {state}: {verdict.why}"

    def cells(self) -> list[list[str | float | int | None]]:
        """Return it as rows of a table in SI units, in the order of `HEADS`."""
        return [
            [
                *(self.at_s, row.direction, row.device, row.name, row.bps, row.shaper_bps),
                *(row.delay_s, row.delay_how, row.drops, row.marks, row.backlog_b, self.ping_s),
                self.verdicts[row.direction].state if row.direction in self.verdicts else None,
            ]
            for row in self.rows
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, in SI units."""
        return {
            "at_s": self.at_s,
            "rows": [asdict(row) for row in self.rows],
            "ping_s": self.ping_s,
            "shapers": {name: asdict(each) for name, each in self.verdicts.items()},
        }


@dataclass
class Watch:
    """Watches the queues of a device.

    Attributes:
        device: the device.
        tc: what runs `tc`.
        ifb: the device that what comes in is redirected to; None for none.
        notes: what to know, a sentence each.
    """

    device: str
    tc: Callable[..., str]
    ifb: str | None
    notes: list[str] = field(default_factory=list)

    @property
    def directions(self) -> dict[str, str]:
        """By device, the direction."""
        found = {self.device: "up"}
        if self.ifb is not None:
            found[self.ifb] = "down"
        return found

    @property
    def heads(self) -> tuple[str, ...]:
        """What a row of `Seen.cells` has."""
        return HEADS

    def read(self, at_s: float) -> Reading:
        """Return what the counters say now.

        Raises:
            RedtailError: `tc` fails, or prints something else than it should.
        """
        queues, classes = [], []
        for device in self.directions:
            some = _checked(tc.queues, self.tc("-s", "-j", "qdisc", "show", "dev", device), device)
            queues += some
            if any(each.kind in CLASSFUL for each in some):
                text = self.tc("-s", "-j", "class", "show", "dev", device)
                # Of other kinds a class is a flow.
                some = _checked(tc.classes, text, device)
                classes += [each for each in some if each.kind in CLASSFUL]
        strange = unknown(queues)
        if strange:
            told = f"queues of kinds that are not known pass by: {', '.join(strange)}"
            if told not in self.notes:
                self.notes.append(told)
        return reading(at_s, queues, classes)

    def seen(
        self,
        *,
        every_s: float = 1.0,
        count: int | None = None,
        ping: str | None = None,
        rtt_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[Seen]:
        """Yield what is seen between readings.

        Args:
            every_s: time between two readings.
            count: how many; None for no end.
            ping: a host behind the line that is pinged meanwhile.
            rtt_s: its round trip without load, if it is known.
            clock: the time in s.
            sleep: waits.

        Raises:
            SpecError: an argument makes no sense.
            RedtailError: `tc` or `ping` fails.
        """
        if every_s < SHORTEST_S:
            raise SpecError(f"every {every_s:g} s: accepted: {SHORTEST_S:g} s and longer")
        with ExitStack() as stack:
            pings = None if ping is None else stack.enter_context(Ping(ping))
            judge = Judge(rtt_s, pings is not None)
            first = clock()
            before = self.read(first)
            done = 0
            while count is None or done < count:
                sleep(max(first + (done + 1) * every_s - clock(), 0.0))
                after = self.read(clock())
                yield self._of(before, after, first, judge, [] if pings is None else pings.take())
                before, done = after, done + 1

    def _of(
        self, before: Reading, after: Reading, first: float, judge: Judge, pings: list[float]
    ) -> Seen:
        found = tuple(rows(before, after, self.directions))
        names = [name for name in DIRECTIONS if name in self.directions.values()]
        judge.add(found, pings)
        verdicts = {name: judge.verdict(name) for name in names}
        return Seen(after.at_s - first, found, judge.moments[-1].ping_s, verdicts)


def watch_device(device: str, *, ifb: str | None = None, by: str | None = None) -> Watch:
    """Return what watches the queues of a device.

    Args:
        device: the device of the line.
        ifb: the device that what comes in is redirected to; by default as its filters say.
        by: a command that runs `tc` elsewhere, such as "ssh router".

    Raises:
        SpecError: a name is none.
        RedtailError: `tc` fails.
    """
    own = device_of(device)
    run = Tc(words_of(by))
    if ifb is not None:
        return Watch(own, run, device_of(ifb, "--ifb"))
    found, notes = _redirect(run, own)
    return Watch(own, run, found, notes)


def _redirect(run: Callable[..., str], device: str) -> tuple[str | None, list[str]]:
    """Return the device that what comes in is redirected to, and what to know of it."""
    queues = _checked(tc.queues, run("-s", "-j", "qdisc", "show", "dev", device), device)
    if not any(each.kind in ("ingress", "clsact") for each in queues):
        return None, [
            f"nothing that comes in at {device} is redirected: only what goes out is seen"
        ]
    try:
        name = tc.redirected(run("-j", "filter", "show", "dev", device, "ingress"))
    except (ValueError, RedtailError) as error:
        return None, [f"the filters of {device} cannot be read ({error}); --ifb names the device"]
    if name is None:
        return None, [f"no filter of {device} redirects what comes in; --ifb names the device"]
    return device_of(name, "--ifb"), [f"what comes in at {device} is redirected to {name}"]


def _checked(read: Callable[[str, str], Any], text: str, device: str) -> Any:
    """Return what an output of `tc` says.

    Raises:
        RedtailError: it is something else.
    """
    try:
        return read(text, device)
    except ValueError as error:
        raise RedtailError(str(error)) from None
