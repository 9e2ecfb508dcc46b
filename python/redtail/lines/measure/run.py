"""A measurement from begin to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from redtail.errors import Cancelled, RedtailError
from redtail.extras import extra
from redtail.files import path_of
from redtail.lines.measure import client, file, programs, summary
from redtail.lines.measure.options import Measuring, place
from redtail.lines.measure.record import MeasureState, Record
from redtail.lines.measure.summary import MeasuredRow
from redtail.lines.recordings.measurement import Measurement

SHOWN_S = 0.2
"""Time between two states that are shown."""

_PROBES = {"redtail": "udp", "iperf3": "icmp", "irtt": "irtt"}


@dataclass(frozen=True)
class Measured:
    """What a measurement has come to.

    Attributes:
        measurement: what was measured.
        stopped: whether Ctrl-C ended it.
        failed: why it ended before its time; empty if it did not.
    """

    measurement: Measurement
    stopped: bool = False
    failed: str = ""

    def rows(self) -> list[MeasuredRow]:
        """Return what each phase has come to.

        Raises:
            RedtailError: libraries of the extra `recordings` are not installed.
        """
        with extra("recordings", "the summary of a measurement"):
            return summary.rows(self.measurement)

    @property
    def added(self) -> str:
        """What a load adds to the round trip, in a sentence; empty without evidence."""
        return summary.added(self.rows())


def measure_line(
    server: str,
    options: Measuring | None = None,
    show: Callable[[MeasureState], None] = lambda state: None,
    *,
    save: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Measured:
    """Measure a line: load it in RRUL's form, and probe its delay at the same time.

    Nothing is sent but to the server. Ctrl-C ends the measurement, and what was measured is kept;
    so it is where the server fails.

    Args:
        server: HOST, HOST:PORT or [ADDRESS]:PORT of a server of one's own.
        options: what is measured.
        show: is called five times in a second with what was measured.
        save: the file that it is written to, which `estimate` reads; None for none.
        force: replace a file that exists.

    Raises:
        SpecError: the server is not named so, or the file cannot be one of a measurement.
        RedtailError: nothing could be measured.
        Cancelled: Ctrl-C came before anything was.
    """
    options = options or Measuring()
    path = None if save is None else path_of(save)
    if path is not None:
        file.require_writable(path, force)
    host, port = place(server, options.port)
    record = Record(host, _PROBES[options.kind], client.least_s(options))
    with _ended(record) as ended:
        asyncio.run(_measured(host, port, options, record, show))
    measurement = record.measurement()
    if not measurement.transfers and not len(measurement.sent_s):
        if ended.stopped:
            raise Cancelled("interrupted before anything was measured")
        raise RedtailError(ended.failed or f"{host}: nothing was measured")
    if ended.stopped:
        record.notes.append("the measurement was stopped by its user")
    elif ended.failed:
        record.notes.append(f"the measurement ended before its time: {ended.failed}")
    measurement = record.measurement()
    if path is not None:
        file.write(measurement, path)
    return Measured(measurement, ended.stopped, ended.failed)


@dataclass
class _End:
    stopped: bool = False
    failed: str = ""


@contextlib.contextmanager
def _ended(record: Record) -> Iterator[_End]:
    """Keep how a measurement has ended."""
    end = _End()
    try:
        yield end
    except KeyboardInterrupt:
        end.stopped = True
    except RedtailError as error:
        end.failed = str(error)
    except NotImplementedError:  # of Windows, whose loop does not wait for sockets
        end.failed = "redtail measure: not on this system; accepted: Linux or macOS"


async def _measured(
    host: str, port: int, options: Measuring, record: Record, show: Callable[[MeasureState], None]
) -> None:
    async def shown() -> None:
        while True:
            show(record.state())
            await asyncio.sleep(SHOWN_S)

    showing = asyncio.create_task(shown())
    try:
        if options.kind == "redtail":
            await client.measure(host, port, options, record)
        elif options.kind == "iperf3":
            await programs.by_iperf3(host, port, options, record)
        else:
            await programs.by_irtt(host, port, options, record)
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
